"""Beyond A2E 1.0: the answer to a call that was suspended. Under the capability `tools`, between hosts and agents of ours.

A suspended call ends with a `tool/call/resp` whose `error_code` is `suspended` and whose `data` is the question.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from .envelope import A2EMessage, Number, now
from .tools import ToolResult


class AnswerRequest(A2EMessage):
    """`anykit/answer/req`, agent to host."""

    type: str = "anykit/answer/req"
    session_id: str = ""  # session handed out at handshake
    suspension_id: str = Field(repr=False)  # the question's id
    ok: bool = True  # false refuses
    data: Any = Field(default=None, repr=False)  # what the question's schema asks for


class AnswerResponse(A2EMessage):
    """`anykit/answer/resp`, host to agent."""

    type: str = "anykit/answer/resp"
    req_id: str = ""
    data: ToolResult  # what became of the call
    created_at: Number = Field(default_factory=now)  # creation time, Unix seconds
