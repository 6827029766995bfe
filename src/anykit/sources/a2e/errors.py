"""What an A2E host answers instead of a result."""

from __future__ import annotations

from anykit.capabilities import CapabilityError, MetadataMap


class A2ERequestError(CapabilityError):
    """The host's `error` message, or what stands for it.

    `code` is A2E's, in lower case (`unknown_tool`, `schema_violation`, `timeout`, ...; for a refused handshake its reason:
    `auth_failed`, `version_mismatch`, `no_caps`). With `retryable` the same request may be sent again without harm.
    """

    def __init__(
        self,
        code: str,
        message: str,
        detail: MetadataMap | None = None,
        retryable: bool = False,
        *,
        capability: str = "",
    ) -> None:
        super().__init__(message or code, detail=detail)
        self.code = code
        self.retryable = retryable
        self.capability = capability

    def __repr__(self) -> str:
        return f"A2ERequestError(code={self.code!r}, message={self.message!r}, retryable={self.retryable!r})"
