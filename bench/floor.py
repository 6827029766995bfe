"""What both floor programs share: decode, validate, call, encode. No gate, no policy, no journal."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal
from uuid import uuid4

import jsonschema_rs
from pydantic import BaseModel, Field, TypeAdapter


class Message(BaseModel):
    id: str = Field(default_factory=lambda: uuid4().hex)
    version: str = "1.0"
    ts: float = Field(default_factory=time.time)


class HandshakeRequest(Message):
    type: Literal["handshake/req"] = "handshake/req"
    agent_id: str = ""
    agent_caps: list[str] = []
    auth_token: str = ""


class HandshakeResponse(Message):
    type: Literal["handshake/resp"] = "handshake/resp"
    req_id: str = ""
    session_id: str = ""
    accepted_caps: list[dict[str, Any]] = []
    max_parallel: int = 64
    ok: bool = True
    reason: str = ""


class ToolCallRequest(Message):
    type: Literal["tool/call/req"] = "tool/call/req"
    session_id: str = ""
    tool_name: str = ""
    arguments: dict[str, Any]
    correlation_id: str = ""
    streaming: bool = False
    timeout: int = 30


class ToolResult(BaseModel):
    success: bool
    tool_name: str
    data: Any = None
    summary: str | None = None
    truncated: bool = False
    exit_code: int | None = None
    error: str | None = None
    error_code: str | None = None
    duration_ms: int = 0
    events: list[Any] = []


class ToolCallResponse(Message):
    type: Literal["tool/call/resp"] = "tool/call/resp"
    req_id: str = ""
    data: ToolResult
    created_at: float = Field(default_factory=time.time)


decode = TypeAdapter[HandshakeRequest | ToolCallRequest](
    Annotated[HandshakeRequest | ToolCallRequest, Field(discriminator="type")]
).validate_json


async def add(a: int, b: int) -> int:
    return a + b


validator = jsonschema_rs.validator_for(
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
)


async def answer(line: bytes) -> bytes:
    """One message in, its answer out, both as JSON."""
    message = decode(line)
    if isinstance(message, HandshakeRequest):
        return HandshakeResponse(req_id=message.id).model_dump_json().encode()
    validator.validate(message.arguments)
    value = await add(**message.arguments)
    result = ToolResult(success=True, tool_name=message.tool_name, data=value, summary=str(value))
    return ToolCallResponse(req_id=message.id, data=result).model_dump_json().encode()
