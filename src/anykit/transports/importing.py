"""Importing what takes long, in a thread, one module at a time.

The MCP SDK imports itself in a circle: two threads that begin at different ends of it fail (`_DeadlockError`, or a name that
a half-imported module does not have yet).
"""

from __future__ import annotations

import importlib
import threading
from types import ModuleType

_ONE_AT_A_TIME = threading.Lock()


def import_alone(name: str) -> ModuleType:
    """Import a module while no other thread imports one this way."""
    with _ONE_AT_A_TIME:
        return importlib.import_module(name)
