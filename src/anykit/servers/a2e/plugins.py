"""What the author of a plugin subclasses (A2E toolkits capability, "Plugin Contract").

    A2EPlugin               any capability: `supported_messages` and `handle`
    ├── ToolPlugin          `_list_tools` and `_execute_tool`
    └── ToolkitPlugin       `_list_toolkits` and `_configure_toolkit`

Every method may be plain (it runs in a worker thread) or `async`. One instance serves one session.
"""

from __future__ import annotations

import inspect
import uuid
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, cast

from pydantic import BaseModel

from anykit.capabilities import JsonObject
from anykit.tools import result_of, text_of
from anykit.wire.a2e import (
    A2EError,
    A2EErrorCode,
    A2EEvent,
    Message,
    ToolCallRequest,
    ToolCallResponse,
    ToolDefinition,
    ToolEvent,
    ToolkitConfigureRequest,
    ToolkitConfigureResponse,
    ToolkitListRequest,
    ToolkitListResponse,
    ToolListRequest,
    ToolListResponse,
    ToolResult,
)

CURRENT_CALL: ContextVar[str] = ContextVar("anykit_a2e_call", default="")
"""The request that the running code answers; it goes with the call into its thread and its tasks."""


class A2EPlugin(ABC):
    """A plugin for any capability. The host makes it as `cls(host, config)`, or as `cls()` and then `setup(host, config)`.

    `config` is the entry's metadata with `name`, `type`, `session_id` and `audit_log`. `priority` and `exclusive` of the
    entry win over the class's.
    """

    name: str = "plugin"
    type: str = ""
    priority: int = 0
    exclusive: bool = False

    host_instance: Any = None
    """The host's face: `send(message)`, `session_id`."""
    config: dict[str, Any]

    _set_up: bool = False
    _setting_up: object = None

    def __init__(self, host_instance: Any = None, config: Mapping[str, Any] | None = None) -> None:
        if host_instance is not None or config is not None:
            self._setting_up = self.setup(host_instance, dict(config or {}))
            self._set_up = True

    def setup(self, host: Any, config: dict[str, Any]) -> object:
        """Take what the host gives. Override it to prepare, and call this one."""
        self.host_instance = host
        self.config = config or {}
        self._audit: Any = self.config.get("audit_log")
        self._session_id: str = self.config.get("session_id") or str(uuid.uuid4())
        self._set_up = True
        return None

    @abstractmethod
    def supported_messages(self) -> Mapping[str, type[BaseModel]]:
        """The message types that it answers, each with its class."""

    @abstractmethod
    def handle(self, message: Any, /) -> Any:
        """Answer one message with a message; None where it is another's business."""

    def caps_metadata(self) -> dict[str, Any]:
        """What a handshake tells of it."""
        config = getattr(self, "config", {})
        return {
            "name": self.name,
            "type": config.get("type", self.type),
            "priority": config.get("priority", self.priority),
            "exclusive": config.get("exclusive", self.exclusive),
        }

    def emit_event(self, event: Any) -> None:
        """Send an event to the agent, from any thread: an `A2EEvent`, or a dict with its fields."""
        send = getattr(self.host_instance, "send", None)
        if callable(send):
            send(event)

    def teardown(self) -> object:
        """The session is over: give back what was taken."""
        return None


class ToolPlugin(A2EPlugin):
    """Tools. The host filters lists, checks arguments, keeps the time and shapes the result."""

    name = "tool_plugin"
    type = "tools"

    _event_cb: Callable[[ToolEvent], Any] | None = None

    def _list_tools(self) -> Sequence[ToolDefinition] | Awaitable[Sequence[ToolDefinition]]:
        """Every tool. Override it."""
        raise NotImplementedError(f"{type(self).__name__} must give _list_tools()")

    def _execute_tool(self, name: str, arguments: JsonObject) -> Any:
        """Run one: return a value that JSON can carry or a `ToolResult`; raise to fail. Override it."""
        raise NotImplementedError(f"{type(self).__name__} must give _execute_tool(name, arguments)")

    def _search_tools(
        self, query: str, include_deferred: bool = False
    ) -> Sequence[ToolDefinition] | Awaitable[Sequence[ToolDefinition]] | None:
        """The tools that fit a query. None leaves the search to the host."""
        return None

    def set_event_callback(self, fn: Callable[[ToolEvent], Any] | None) -> None:
        """Where `emit` sends; the host's business."""
        self._event_cb = fn

    def emit(self, kind: str, data: JsonObject) -> None:
        """Tell of the running call: `progress`, `log`, `artifact` or `status`. Dropped where nobody listens."""
        if self._event_cb is not None:
            self._event_cb(ToolEvent(kind=kind, req_id=CURRENT_CALL.get(), data=data))

    def supported_messages(self) -> Mapping[str, type[BaseModel]]:
        """`tool/list/req` and `tool/call/req`."""
        return {"tool/list/req": ToolListRequest, "tool/call/req": ToolCallRequest}

    def handle(self, message: Any, /) -> Any:
        """List or run."""
        if isinstance(message, ToolListRequest):
            return _then(self._listed(message), lambda tools: ToolListResponse(req_id=message.id, tools=_tools(tools)))
        if isinstance(message, ToolCallRequest):
            given = self._execute_tool(message.tool_name, message.arguments)
            return _then(given, lambda value: _called(message, value))
        return None

    def _listed(self, message: ToolListRequest) -> Any:
        if not message.query:
            return self._list_tools()
        found = self._search_tools(message.query, message.include_deferred)
        return self._list_tools() if found is None else found


class ToolkitPlugin(A2EPlugin):
    """Toolkits. The host checks a configuration against the listed schema before `_configure_toolkit` sees it.

    A listed toolkit's `tools` are names of tools that a `ToolPlugin` or a source of the host offers; they appear once the
    toolkit is configured.
    """

    name = "toolkit_plugin"
    type = "toolkits"

    _push_cb: Callable[[Any], Any] | None = None

    @abstractmethod
    def _list_toolkits(self, msg: ToolkitListRequest) -> Any:
        """Must return a `ToolkitListResponse` with every toolkit. Override in subclass."""

    @abstractmethod
    def _configure_toolkit(self, msg: ToolkitConfigureRequest) -> Any:
        """Configure a toolkit and return a `ToolkitConfigureResponse`. Override in subclass."""

    def set_push_callback(self, fn: Callable[[Any], Any] | None) -> None:
        """Where `emit_event` sends; the host's business."""
        self._push_cb = fn

    def emit_event(self, event: Any) -> None:
        """Push an event to the agent, from any thread: an `A2EEvent`, or a dict with its fields."""
        if self._push_cb is not None:
            self._push_cb(event)

    def supported_messages(self) -> Mapping[str, type[BaseModel]]:
        """The four messages of the namespace."""
        return {
            "toolkit/list/req": ToolkitListRequest,
            "toolkit/list/resp": ToolkitListResponse,
            "toolkit/configure/req": ToolkitConfigureRequest,
            "toolkit/configure/resp": ToolkitConfigureResponse,
        }

    def handle(self, message: Any, /) -> Any:
        """Dispatch to `_list_toolkits` or `_configure_toolkit`; any other message is `invalid_message`."""
        if isinstance(message, ToolkitListRequest):
            return self._list_toolkits(message)
        if isinstance(message, ToolkitConfigureRequest):
            return self._configure_toolkit(message)
        return A2EError(
            req_id=str(getattr(message, "id", "")),
            code=A2EErrorCode.INVALID_MESSAGE,
            message=f"Invalid message: {getattr(message, 'type', '')}",
        )


def searches(plugin: object) -> bool:
    """Whether a plugin has a search of its own."""
    kind = type(plugin)
    return getattr(kind, "_search_tools", None) not in (None, ToolPlugin.__dict__["_search_tools"])


def _then(value: Any, step: Callable[[Any], Message]) -> Any:
    """`step(value)`, awaited first where `value` must be."""
    if not inspect.isawaitable(value):
        return step(value)

    async def later() -> Message:
        return step(await value)

    return later()


def _tools(value: Any) -> list[ToolDefinition]:
    return [
        tool if isinstance(tool, ToolDefinition) else ToolDefinition.model_validate(tool)
        for tool in cast("Sequence[Any]", value or ())
    ]


def _called(message: ToolCallRequest, value: Any) -> Message:
    """What `_execute_tool` returned, as a reply: a whole result, or only its value."""
    if isinstance(value, Message):
        return value
    if not isinstance(value, ToolResult):
        if isinstance(value, dict) and {"success", "tool_name", "duration_ms"} <= cast(JsonObject, value).keys():
            value = ToolResult.model_validate(value)
        else:
            result = result_of(cast(object, value))
            data = result.structured if result.has_structured else text_of(result)
            value = ToolResult(
                success=True, tool_name=message.tool_name, data=data, summary=text_of(result), duration_ms=0
            )
    return ToolCallResponse(req_id=message.id, data=value)


def event_of(event: Any) -> Message:
    """An event as a plugin gives it, as a message. Raises `TypeError` or `ValueError` for what is none."""
    if isinstance(event, Message):
        return event.model_copy()
    if isinstance(event, BaseModel):
        event = event.model_dump()
    if isinstance(event, Mapping):
        return A2EEvent.model_validate(dict(cast("Mapping[str, Any]", event)))
    raise TypeError(f"an event is an A2EEvent or a dict, not {type(event).__name__}")
