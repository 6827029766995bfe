"""anykit: one toolbox for any agent.

Names are imported on first use, so that `import anykit` stays cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .app.workbench import Workbench
    from .capabilities import CapabilityContext
    from .tools import Tool, ToolError, Toolkit, ToolResult, ToolSpec, prompt, resource, tool

__version__ = "0.1.0"

_HOMES = {
    "CapabilityContext": "anykit.capabilities",
    "Tool": "anykit.tools",
    "ToolError": "anykit.tools",
    "ToolResult": "anykit.tools",
    "ToolSpec": "anykit.tools",
    "Toolkit": "anykit.tools",
    "Workbench": "anykit.app.workbench",
    "prompt": "anykit.tools",
    "resource": "anykit.tools",
    "tool": "anykit.tools",
}

__all__ = [
    "CapabilityContext",
    "Tool",
    "ToolError",
    "ToolResult",
    "ToolSpec",
    "Toolkit",
    "Workbench",
    "prompt",
    "resource",
    "tool",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'anykit' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
