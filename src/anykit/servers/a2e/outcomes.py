"""How a call's end is said on the wire: one table."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from anykit.capabilities import Denied, Failed, JsonObject
from anykit.capabilities import outcomes as codes

A2E_CODES: Mapping[str, str] = MappingProxyType(
    {
        codes.UNKNOWN_TOOL: "unknown_tool",
        codes.INVALID_INPUT: "schema_violation",
        codes.EXECUTION_FAILED: "tool_error",
        codes.INTERNAL: "tool_error",
        codes.INVALID_OUTPUT: "tool_error",
        codes.TIMEOUT: "timeout",
        codes.UNAVAILABLE: "runtime_error",
        codes.BUSY: "runtime_error",
        codes.CANCELLED: "runtime_error",
        codes.UNKNOWN: "runtime_error",
        codes.NOT_CONFIGURED: "tool_denied",
        codes.DISABLED: "tool_denied",
        codes.POLICY: "tool_denied",
    }
)
"""Ours to A2E's. A source's own word is a `tool_error` whose detail has it as `code`."""

SAID_BY_CODE = frozenset({codes.UNKNOWN_TOOL, codes.INVALID_INPUT, codes.EXECUTION_FAILED, codes.TIMEOUT})
"""Codes that A2E's own code says fully; of the others the detail tells the `reason`."""


class Refusal(Exception):
    """A request ends with an `error` message; the text and the detail are for the agent."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        detail: Mapping[str, Any] | None = None,
        retryable: bool = False,
        capability: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.detail: JsonObject = dict(detail or {})
        self.retryable = retryable
        self.capability = capability


def refusal_of(outcome: Denied | Failed, *, repeatable: bool) -> Refusal:
    """The error that says how a call went wrong. `repeatable`: the tool may run twice without harm."""
    if isinstance(outcome, Denied):
        detail = {"reason": outcome.reason, **outcome.detail}
        return Refusal(A2E_CODES.get(outcome.reason, "tool_denied"), outcome.message, detail=detail, capability="tools")
    code = A2E_CODES.get(outcome.code)
    detail = dict(outcome.detail)
    if code is None:
        code = "tool_error"
        detail.setdefault("code", outcome.code)
    elif outcome.code not in SAID_BY_CODE:
        detail.setdefault("reason", outcome.code)
    if outcome.result is not None and outcome.result.has_structured:
        detail.setdefault("structured", outcome.result.structured)
    retryable = outcome.retryable or (repeatable and code in ("tool_error", "timeout"))
    return Refusal(code, outcome.message, detail=detail, retryable=retryable, capability="tools")
