"""How a verb ends badly: an exit code, a word, a message, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes; scripts rely on them."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    """The command line or the configuration."""
    CREDENTIALS = 3
    """A toolkit lacks its configuration, or a host a token."""
    UNREACHABLE = 4
    """Not reachable, or timed out."""
    FAILED = 5
    """The tool failed, or there is nothing of that name."""
    FINDINGS = 6
    """A check found something."""
    DENIED = 7
    WAITING = 8
    """For an answer of a person."""
    INTERRUPTED = 130


class CommandError(Exception):
    """Printed as `error[code]: message` with a line for each fix, as (label, text)."""

    def __init__(
        self, message: str, *, code: str = "", exit: Exit = Exit.UNEXPECTED, fixes: Sequence[tuple[str, str]] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.exit = exit
        self.fixes = list(fixes)


def usage(message: str, *fixes: tuple[str, str], code: str = "usage") -> CommandError:
    """The command line is wrong."""
    return CommandError(message, code=code, exit=Exit.USAGE, fixes=fixes)


def not_found(message: str, *fixes: tuple[str, str], code: str = "not_found") -> CommandError:
    """There is nothing of that name."""
    return CommandError(message, code=code, exit=Exit.FAILED, fixes=fixes)
