"""A2E 1.0: messages, codec, framing, and one session a side, without a socket or a clock.

Names are imported when they are first used: a hundred classes that no one asks for cost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agent import (
        AgentEvent,
        AgentSession,
        EventFor,
        HandshakeResult,
        HostRequest,
        ProtocolError,
        Push,
        Reply,
    )
    from .capability_names import CAPABILITIES, capability_alias, capability_name
    from .codec import DecodeError, EncodeError, decode, encode
    from .codes import ERROR_CODES, normal_code
    from .framing import MAX_LINE, LineReader, Oversized
    from .host import (
        Drained,
        Handshaken,
        HandshakeRefused,
        HostEvent,
        HostLimits,
        HostSession,
        PeerError,
        PeerReply,
        Request,
        ShutdownRequested,
    )
    from .json_values import MAX_DEPTH
    from .messages.answers import AnswerRequest, AnswerResponse
    from .messages.base import (
        A2ECapability,
        A2EError,
        A2EErrorCode,
        A2EEvent,
        Capability,
        EventKind,
        HandshakeRequest,
        HandshakeResponse,
        MessageType,
        Ping,
        Pong,
        Shutdown,
    )
    from .messages.envelope import A2E_VERSION, A2EMessage, Message, new_id
    from .messages.registry import CAPABILITY_ALIASES, EVENT_TYPES, MESSAGE_TYPES, SESSION_TYPES, TYPE_ALIASES, WireType
    from .messages.toolkits import (
        ToolkitConfigureRequest,
        ToolkitConfigureResponse,
        ToolkitDefinition,
        ToolkitListRequest,
        ToolkitListResponse,
    )
    from .messages.tools import (
        ToolCallRequest,
        ToolCallResponse,
        ToolDefinition,
        ToolErrorCode,
        ToolEvent,
        ToolListRequest,
        ToolListResponse,
        ToolParameter,
        ToolResult,
    )

__all__ = [
    "A2E_VERSION",
    "CAPABILITIES",
    "CAPABILITY_ALIASES",
    "ERROR_CODES",
    "EVENT_TYPES",
    "MAX_DEPTH",
    "MAX_LINE",
    "MESSAGE_TYPES",
    "SESSION_TYPES",
    "TYPE_ALIASES",
    "A2ECapability",
    "A2EError",
    "A2EErrorCode",
    "A2EEvent",
    "A2EMessage",
    "AgentEvent",
    "AgentSession",
    "AnswerRequest",
    "AnswerResponse",
    "Capability",
    "DecodeError",
    "Drained",
    "EncodeError",
    "EventFor",
    "EventKind",
    "HandshakeRefused",
    "HandshakeRequest",
    "HandshakeResponse",
    "HandshakeResult",
    "Handshaken",
    "HostEvent",
    "HostLimits",
    "HostRequest",
    "HostSession",
    "LineReader",
    "Message",
    "MessageType",
    "Oversized",
    "PeerError",
    "PeerReply",
    "Ping",
    "Pong",
    "ProtocolError",
    "Push",
    "Reply",
    "Request",
    "Shutdown",
    "ShutdownRequested",
    "ToolCallRequest",
    "ToolCallResponse",
    "ToolDefinition",
    "ToolErrorCode",
    "ToolEvent",
    "ToolListRequest",
    "ToolListResponse",
    "ToolParameter",
    "ToolResult",
    "ToolkitConfigureRequest",
    "ToolkitConfigureResponse",
    "ToolkitDefinition",
    "ToolkitListRequest",
    "ToolkitListResponse",
    "WireType",
    "capability_alias",
    "capability_name",
    "decode",
    "encode",
    "new_id",
    "normal_code",
]

_HOMES = {
    "agent": (
        "AgentEvent",
        "AgentSession",
        "EventFor",
        "HandshakeResult",
        "HostRequest",
        "ProtocolError",
        "Push",
        "Reply",
    ),
    "capability_names": ("CAPABILITIES", "capability_alias", "capability_name"),
    "codec": ("DecodeError", "EncodeError", "decode", "encode"),
    "codes": ("ERROR_CODES", "normal_code"),
    "framing": ("MAX_LINE", "LineReader", "Oversized"),
    "host": (
        "Drained",
        "HandshakeRefused",
        "Handshaken",
        "HostEvent",
        "HostLimits",
        "HostSession",
        "PeerError",
        "PeerReply",
        "Request",
        "ShutdownRequested",
    ),
    "json_values": ("MAX_DEPTH",),
    "messages.base": (
        "A2ECapability",
        "A2EError",
        "A2EErrorCode",
        "A2EEvent",
        "Capability",
        "EventKind",
        "HandshakeRequest",
        "HandshakeResponse",
        "MessageType",
        "Ping",
        "Pong",
        "Shutdown",
    ),
    "messages.answers": ("AnswerRequest", "AnswerResponse"),
    "messages.envelope": ("A2E_VERSION", "A2EMessage", "Message", "new_id"),
    "messages.registry": (
        "CAPABILITY_ALIASES",
        "EVENT_TYPES",
        "MESSAGE_TYPES",
        "SESSION_TYPES",
        "TYPE_ALIASES",
        "WireType",
    ),
    "messages.toolkits": (
        "ToolkitConfigureRequest",
        "ToolkitConfigureResponse",
        "ToolkitDefinition",
        "ToolkitListRequest",
        "ToolkitListResponse",
    ),
    "messages.tools": (
        "ToolCallRequest",
        "ToolCallResponse",
        "ToolDefinition",
        "ToolErrorCode",
        "ToolEvent",
        "ToolListRequest",
        "ToolListResponse",
        "ToolParameter",
        "ToolResult",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
