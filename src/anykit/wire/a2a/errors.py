"""What goes wrong on the wire, and what the peers' numbers and words for it mean.

WireError
├── Unreadable     the answer is not the protocol
│   └── Misconduct     and asking again will not make it so
└── Refused        the peer says no; `kind` says why, in one word for every dialect
"""

from __future__ import annotations

from typing import Literal, TypeAlias

RefusalKind: TypeAlias = Literal[
    "parse",
    "invalid_request",
    "method_not_found",
    "invalid_params",
    "internal",
    "task_not_found",
    "not_cancelable",
    "push_not_supported",
    "unsupported_operation",
    "content_type",
    "invalid_agent_response",
    "no_extended_card",
    "extension_required",
    "version_not_supported",
    "unauthorized",
    "no_route",
    "throttled",
    "unavailable",
    "other",
]

BY_CODE: dict[int, RefusalKind] = {
    -32700: "parse",
    -32600: "invalid_request",
    -32601: "method_not_found",
    -32602: "invalid_params",
    -32603: "internal",
    -32001: "task_not_found",
    -32002: "not_cancelable",
    -32003: "push_not_supported",
    -32004: "unsupported_operation",
    -32005: "content_type",
    -32006: "invalid_agent_response",
    -32007: "no_extended_card",
    -32008: "extension_required",
    -32009: "version_not_supported",
}
"""JSON-RPC 2.0, 5.1, and A2A 1.0, 9.5."""

BY_REASON: dict[str, RefusalKind] = {
    "TASK_NOT_FOUND": "task_not_found",
    "TASK_NOT_CANCELABLE": "not_cancelable",
    "PUSH_NOTIFICATION_NOT_SUPPORTED": "push_not_supported",
    "UNSUPPORTED_OPERATION": "unsupported_operation",
    "CONTENT_TYPE_NOT_SUPPORTED": "content_type",
    "INVALID_AGENT_RESPONSE": "invalid_agent_response",
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED": "no_extended_card",
    "EXTENSION_SUPPORT_REQUIRED": "extension_required",
    "VERSION_NOT_SUPPORTED": "version_not_supported",
    "INVALID_PARAMS": "invalid_params",
    "INVALID_REQUEST": "invalid_request",
    "METHOD_NOT_FOUND": "method_not_found",
    "INTERNAL_ERROR": "internal",
}
"""`reason` of a google.rpc.ErrorInfo (A2A 1.0, HTTP+JSON)."""

BY_STATUS: dict[int, RefusalKind] = {
    400: "invalid_request",
    401: "unauthorized",
    403: "unauthorized",
    404: "no_route",
    405: "no_route",
    415: "content_type",
    422: "invalid_params",
    429: "throttled",
    503: "unavailable",
}


class WireError(Exception):
    """Base of this room's errors. The text may quote the peer: clean it before it is shown."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Unreadable(WireError):
    """An answer that is not the protocol."""


class Misconduct(Unreadable):
    """An answer that is about something else, or without end."""


class Refused(WireError):
    """The peer says no. `code` is its JSON-RPC number, `status` the HTTP status, where it gave them."""

    def __init__(self, kind: RefusalKind, message: str, *, code: int | None = None, status: int | None = None) -> None:
        super().__init__(message)
        self.kind: RefusalKind = kind
        self.code = code
        self.status = status

    def describe(self) -> str:
        """The number, the status and the words, as far as there are any."""
        numbers = [] if self.code is None else [str(self.code)]
        if self.status is not None and self.status >= 300:
            numbers.append(f"HTTP {self.status}")
        words = self.message or self.kind.replace("_", " ")
        return f"{', '.join(numbers)}: {words}" if numbers else words
