"""The base protocol: handshake, errors, liveness, the end, events."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from .envelope import A2EMessage, Int, ListOf, Number, WireModel, new_id


class EventKind(StrEnum):
    PROGRESS = "progress"
    ARTIFACT = "artifact"
    LOG = "log"
    STATUS = "status"


class A2ECapability(StrEnum):
    SKILL = "skill"
    TOOLS = "tools"
    TOOLKITS = "toolkits"
    ENV = "env"
    PROC = "proc"
    MEMORY = "memory"
    LEARNING = "learning"
    CHAINS = "chains"
    MULTI_AGENT = "multi_agent"
    PLANNING = "planning"
    MCP = "mcp"
    TEST = "test"


class A2EErrorCode(StrEnum):
    PARSE_ERROR = "parse_error"
    RUNTIME_ERROR = "runtime_error"
    INVALID_MESSAGE = "invalid_message"
    VERSION_MISMATCH = "version_mismatch"
    UNAUTHORIZED = "unauthorized"
    SCHEMA_VIOLATION = "schema_violation"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    SANDBOX_CRASH = "sandbox_crash"
    CAPABILITY_MISSING = "capability_missing"


class MessageType(StrEnum):
    HANDSHAKE_REQ = "handshake/req"
    HANDSHAKE_RESP = "handshake/resp"
    ERROR = "error"
    PING = "ping"
    PONG = "pong"
    SHUTDOWN = "shutdown"
    INVOKE_EVENT = "invoke/event"


class Capability(WireModel):
    """One capability that the host serves in this session."""

    capability: A2ECapability  # capability name
    enabled: bool = True  # usable in this session
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])  # plugin name, type, priority, exclusive


class HandshakeRequest(A2EMessage):
    """`handshake/req`, agent to host."""

    type: str = "handshake/req"
    agent_id: str = ""  # caller's self-chosen identity
    agent_caps: ListOf[str] = Field(default_factory=list[str])  # capability names the agent wants
    auth_token: str = Field(default="", repr=False)  # shared secret for authentication


class HandshakeResponse(A2EMessage):
    """`handshake/resp`, host to agent."""

    type: str = "handshake/resp"
    req_id: str = ""
    session_id: str = Field(default_factory=new_id)  # fresh session identifier
    accepted_caps: ListOf[Capability] = Field(default_factory=list[Capability])  # capabilities the host will serve
    max_parallel: Int = 4  # how many requests may overlap
    ok: bool = True  # was the session accepted
    reason: str = ""  # why it was refused


class A2EError(A2EMessage):
    """`error`, from either side."""

    type: str = "error"
    req_id: str = ""
    code: str  # machine-readable error code
    message: str = ""  # human-readable cause
    detail: dict[str, Any] = Field(default_factory=dict[str, Any])  # structured extra facts
    retryable: bool = False  # may an identical retry work
    capability_name: str = ""  # capability that raised the error


class Ping(A2EMessage):
    """`ping`, agent to host."""

    type: str = "ping"


class Pong(A2EMessage):
    """`pong`, host to agent."""

    type: str = "pong"
    req_id: str = ""
    uptime_seconds: Number = 0.0  # seconds since session executor start


class Shutdown(A2EMessage):
    """`shutdown`, agent to host."""

    type: str = "shutdown"
    timeout: Int = 10  # seconds granted to drain work


class A2EEvent(A2EMessage):
    """`invoke/event`, host to agent."""

    type: str = "invoke/event"
    kind: str = "status"  # event category (progress/artifact/log/status)
    req_id: str = ""
    data: dict[str, Any] = Field(default_factory=dict[str, Any])  # payload, shape chosen by kind
    seq: Int = 0  # order of events within a request
