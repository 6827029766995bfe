"""A2E: an agent that uses a host's toolkits, a host that offers them, and plugins for it.

    async with A2EClient("http://127.0.0.1:7777") as host:         # the agent
        await host.toolkits.configure("filesystem", {"root_dir": "/data"})
        result = await host.tools.call("read_file", {"path": "a.txt"})

    class MyToolkits(ToolkitPlugin): ...                           # a plugin for a host

Every class of the A2E toolkits capability is here under its own name. Names are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .servers.a2e import A2EHost, A2EPlugin, ToolkitPlugin, ToolPlugin, serve_connection
    from .sources.a2e import A2EClient, A2ERequestError, A2ESource
    from .wire.a2e import (
        A2ECapability,
        A2EError,
        A2EErrorCode,
        A2EEvent,
        A2EMessage,
        Capability,
        EventKind,
        HandshakeRequest,
        HandshakeResponse,
        MessageType,
        Ping,
        Pong,
        Shutdown,
        ToolCallRequest,
        ToolCallResponse,
        ToolDefinition,
        ToolErrorCode,
        ToolEvent,
        ToolkitConfigureRequest,
        ToolkitConfigureResponse,
        ToolkitDefinition,
        ToolkitListRequest,
        ToolkitListResponse,
        ToolListRequest,
        ToolListResponse,
        ToolParameter,
        ToolResult,
    )

__all__ = [
    "A2ECapability",
    "A2EClient",
    "A2EError",
    "A2EErrorCode",
    "A2EEvent",
    "A2EHost",
    "A2EMessage",
    "A2EPlugin",
    "A2ERequestError",
    "A2ESource",
    "Capability",
    "EventKind",
    "HandshakeRequest",
    "HandshakeResponse",
    "MessageType",
    "Ping",
    "Pong",
    "Shutdown",
    "ToolCallRequest",
    "ToolCallResponse",
    "ToolDefinition",
    "ToolErrorCode",
    "ToolEvent",
    "ToolListRequest",
    "ToolListResponse",
    "ToolParameter",
    "ToolPlugin",
    "ToolResult",
    "ToolkitConfigureRequest",
    "ToolkitConfigureResponse",
    "ToolkitDefinition",
    "ToolkitListRequest",
    "ToolkitListResponse",
    "ToolkitPlugin",
    "serve_connection",
]

_HOMES = {
    "anykit.servers.a2e": ("A2EHost", "A2EPlugin", "ToolPlugin", "ToolkitPlugin", "serve_connection"),
    "anykit.sources.a2e": ("A2EClient", "A2ERequestError", "A2ESource"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF.get(name, "anykit.wire.a2e")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def open_source(config: Any, opening: Any) -> Any:
    """The entry point `a2e` of the group `anykit.sources`: from a source's table in the configuration to a source.

    A host's tools get its name before theirs only where the table gives one. Never raises for what a person may get wrong.
    """
    from .runtime import Source, clean  # noqa: PLC0415 - whoever wants a message class needs no runtime
    from .sources.a2e import A2ESource  # noqa: PLC0415 - the same

    target: Any = config.url or config.target
    if config.command:
        command = [config.command] if isinstance(config.command, str) else list(config.command)
        target = [*command, *config.args]
    try:
        provider = A2ESource(
            target,
            name=config.name or "",
            token=config.token.get_secret_value() if config.token is not None else "",
            toolkits=config.toolkits,
            env=config.env,
            cwd=None if config.cwd is None else opening.folder / config.cwd,
            connect_timeout=opening.connect_timeout,
        )
    except ValueError as error:
        return Source(config.name or "a2e", "a2e", failed=str(error))
    shown = provider.client.name
    name = config.name or clean(shown.partition("://")[2].partition("/")[0] or shown)
    return Source(name, "a2e", provider, prefixed=bool(config.name), location=shown)
