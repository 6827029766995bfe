"""What went wrong below, as the command says it."""

from __future__ import annotations

from anykit.capabilities import CapabilityError, InvalidInput, Unavailable

from .errors import CommandError, Exit

CALL_EXITS = {
    "timeout": Exit.UNREACHABLE,
    "unavailable": Exit.UNREACHABLE,
    "busy": Exit.UNREACHABLE,
    "unknown": Exit.UNREACHABLE,
    "invalid_input": Exit.USAGE,
    "not_configured": Exit.CREDENTIALS,
    "unauthorized": Exit.CREDENTIALS,
    "auth_failed": Exit.CREDENTIALS,
    "suspended": Exit.WAITING,
    "disabled": Exit.DENIED,
    "policy": Exit.DENIED,
}
"""By the code of a call that did not complete; any other is `Exit.FAILED`."""


def of_capability(error: CapabilityError, *, code: str = "") -> CommandError:
    """What a provider or a host raised; `code` is the word for it where the error has none of its own."""
    word = str(getattr(error, "code", "")) or code
    match error:
        case Unavailable():
            return CommandError(error.message, code=word or "unavailable", exit=Exit.UNREACHABLE)
        case InvalidInput():
            lines = [f"{fault['path'] or '/'}: {fault['message']}" for fault in error.errors]
            lines = [line for line in lines if line not in error.message]
            return CommandError("\n".join([error.message, *lines]), code=word or "invalid_input", exit=Exit.USAGE)
        case _:
            return CommandError(error.message, code=word or "failed", exit=CALL_EXITS.get(word, Exit.FAILED))
