"""What a provider may raise. The executor turns each into an outcome.

CapabilityError
├── Unavailable         the provider cannot be reached; `sent` says whether the request may have left
├── InvalidInput        the input does not fit; `errors` lists every fault
└── ExecutionFailed     it ran and failed; the text is meant for the caller
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from .calls import InvocableResult
from .names import MetadataMap


class Fault(TypedDict):
    """One fault of an input."""

    path: str
    """JSON pointer (RFC 6901); "" is the whole."""
    message: str


class CapabilityError(Exception):
    """Base of the layer's errors. The text is safe to show to a caller."""

    def __init__(self, message: str, *, detail: MetadataMap | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.detail: MetadataMap = detail or {}


class Unavailable(CapabilityError):
    """The provider cannot be reached. With `sent` the request may have been carried out: its outcome is unknown."""

    def __init__(self, message: str, *, sent: bool = False, detail: MetadataMap | None = None) -> None:
        super().__init__(message, detail=detail)
        self.sent = sent


class InvalidInput(CapabilityError):
    """The input does not fit. `errors` is every fault: `[{"path": JSON pointer, "message": text}]`; never a value."""

    def __init__(self, message: str, errors: Sequence[Fault] = (), *, detail: MetadataMap | None = None) -> None:
        super().__init__(message, detail=detail)
        self.errors: list[Fault] = list(errors)


class ExecutionFailed(CapabilityError):
    """It ran and failed. `code` is the source's own word for why; `result` is what it said beside the message."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "execution_failed",
        retryable: bool = False,
        result: InvocableResult | None = None,
        detail: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message, detail=detail)
        self.code = code
        self.retryable = retryable
        self.result = result
