"""One line a call: who, what, outcome, duration, sizes. Never a value."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

import pydantic_core

from anykit.capabilities import Completed, Failed, Json, Outcome, Suspended
from anykit.tools import text_of

from .callers import Caller

LOG = "calls"


class Log(Protocol):
    """Where lines go; must not block."""

    def append(self, log: str, rows: Sequence[dict[str, Any]]) -> None: ...


class Nowhere:
    """A journal that keeps nothing."""

    def append(self, log: str, rows: Sequence[dict[str, Any]]) -> None:
        """Drop them."""


class Journal:
    """Writes the lines, off the path of the call."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def record(
        self,
        *,
        caller: Caller,
        tool: str,
        call_id: str,
        turn_id: str | None,
        outcome: Outcome | None,
        seconds: float,
        arguments: Json,
    ) -> None:
        """One call that ended; `outcome` None is a cancelled one."""
        code = ""
        size = 0
        if outcome is None:
            word = "cancelled"
        elif isinstance(outcome, Completed):
            word = "completed"
            text = outcome.result.text
            size = len(text) if text is not None else len(text_of(outcome.result))
        elif isinstance(outcome, Failed):
            word, code = "failed", outcome.code
        elif isinstance(outcome, Suspended):
            word = "suspended"
        else:
            word, code = "denied", outcome.reason
        self._log.append(
            LOG,
            (
                {
                    "at": time.time(),
                    "principal": caller.principal,
                    "face": caller.face,
                    "session": caller.session,
                    "turn": turn_id,
                    "call": call_id,
                    "tool": tool,
                    "outcome": word,
                    "code": code,
                    "ms": round(seconds * 1000, 3),
                    "input_bytes": _size(arguments),
                    "output_chars": size,
                },
            ),
        )


def _size(arguments: Json) -> int:
    if not arguments:
        return 2
    try:
        return len(pydantic_core.to_json(arguments))
    except (TypeError, ValueError, RecursionError, pydantic_core.PydanticSerializationError):
        return -1
