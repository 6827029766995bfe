"""One run of one verb: its flags and its terminal."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from .flags import Flags
from .terminal import Terminal

T = TypeVar("T")

SOURCE_WAIT = 10.0
"""Seconds that a one-shot verb waits for its sources where no --timeout is given."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """What every verb gets."""

    flags: Flags
    terminal: Terminal

    @property
    def wait(self) -> float:
        """Seconds to wait for sources."""
        return SOURCE_WAIT if self.flags.timeout is None else self.flags.timeout

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a verb's coroutine to its end; Ctrl-C cancels it, which travels to whatever it called."""
        return asyncio.run(work)


_CONNECTIONS = "anykit.sources"


class LogLines(logging.Handler):
    """The log, as lines on stderr; a traceback only where somebody asked for more."""

    def __init__(self, terminal: Terminal, *, tracebacks: bool) -> None:
        super().__init__(_level(terminal))
        self._terminal = terminal
        self._tracebacks = tracebacks
        self._format = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler`."""
        if record.name == _CONNECTIONS and not self._terminal.verbose:
            return  # how a source fares is told by the verb
        try:
            text = record.getMessage()
            if (record.exc_info or record.exc_text) and not self._tracebacks:
                return  # whoever asked is told in one line, and that there is more with -v
            if record.exc_text:
                text = f"{text}\n{record.exc_text}"
            elif record.exc_info:
                text = f"{text}\n{self._format.formatException(record.exc_info)}"
            if record.levelno >= logging.WARNING:
                self._terminal.warn(text)
            else:
                self._terminal.note(text)
        except Exception:
            self.handleError(record)


def _level(terminal: Terminal) -> int:
    return (logging.WARNING, logging.INFO, logging.DEBUG)[min(terminal.verbose, 2)]
