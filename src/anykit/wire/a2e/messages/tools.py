"""Tools: list them, call one, follow a call."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from .base import A2EEvent
from .envelope import A2EMessage, Int, ListOf, Number, WireModel, now


class ToolErrorCode(StrEnum):
    UNKNOWN_TOOL = "unknown_tool"
    TOOL_DENIED = "tool_denied"
    TOOL_ERROR = "tool_error"


class ToolParameter(WireModel):
    """One declared parameter of a tool."""

    name: str  # parameter name
    type: str  # JSON type name of the value
    description: str  # human-readable explanation
    required: bool = False  # must the caller supply it
    enum: ListOf[str] | None = None  # allowed string values
    properties: dict[str, Any] | None = None  # members of an object parameter


class ToolDefinition(WireModel):
    """A tool as it is listed; the two schemas say in full what the parameter lists can only sketch."""

    name: str  # unique tool name
    description: str  # human-readable explanation
    input_parameters: ListOf[ToolParameter] = Field(default_factory=list[ToolParameter])  # declared inputs
    output_parameters: ListOf[ToolParameter] = Field(default_factory=list[ToolParameter])  # declared outputs
    streaming: bool = True  # tool may emit events
    idempotent: bool = False  # safe to repeat
    tags: ListOf[str] = Field(default_factory=list[str])  # labels used for filtering
    version: str = "1.0.0"  # tool's own version
    toolkit: str | None = None  # toolkit that provides it, if any
    defer_loading: bool = False  # hide from plain listing; searchable
    input_schema: dict[str, Any] | None = None  # JSON Schema of the arguments
    output_schema: dict[str, Any] | None = None  # JSON Schema of the structured result


class ToolEvent(A2EEvent):
    """`tool/event`, host to agent."""

    type: str = "tool/event"


class ToolResult(WireModel):
    """How a call ended."""

    success: bool  # did the operation succeed
    tool_name: str  # tool that produced this
    data: Any = None  # value returned by the tool
    summary: Any = None  # short form of the result
    truncated: bool | None = False  # was the output cut short
    exit_code: Int | None = None  # process exit status, if any
    error: str | None = None  # failure text
    error_code: str | None = None  # machine-readable failure code
    duration_ms: Int  # elapsed milliseconds
    events: ListOf[ToolEvent] = Field(default_factory=list[ToolEvent])  # events collected during the call


class ToolListRequest(A2EMessage):
    """`tool/list/req`, agent to host."""

    type: str = "tool/list/req"
    filter_kind: str = ""  # only this kind; empty means all
    filter_tags: ListOf[str] = Field(default_factory=list[str])  # only items carrying these tags
    query: str = ""  # search text; empty means plain list
    include_deferred: bool = False  # also return deferred tools


class ToolListResponse(A2EMessage):
    """`tool/list/resp`, host to agent."""

    type: str = "tool/list/resp"
    req_id: str = ""
    tools: ListOf[ToolDefinition] = Field(default_factory=list[ToolDefinition])  # matching tool definitions


class ToolCallRequest(A2EMessage):
    """`tool/call/req`, agent to host."""

    type: str = "tool/call/req"
    session_id: str = ""  # session handed out at handshake
    tool_name: str = ""  # tool to run
    arguments: dict[str, Any] = Field(repr=False)  # input values for the tool
    correlation_id: str = ""  # caller's tracing tag for a turn
    streaming: bool = False  # caller wants intermediate events
    timeout: Int = 30  # time limit in seconds


class ToolCallResponse(A2EMessage):
    """`tool/call/resp`, host to agent."""

    type: str = "tool/call/resp"
    req_id: str = ""
    data: ToolResult  # the tool's result object
    created_at: Number = Field(default_factory=now)  # creation time, Unix seconds
