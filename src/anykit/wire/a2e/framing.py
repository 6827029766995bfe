"""Lines out of bytes. Only 0x0A ends a line; one CR before it is dropped; a line that is too long is lost alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_LINE: Final = 8 * 1024 * 1024
"""Bytes in one line, its ending not counted."""

_HEAD = 4096


@dataclass(frozen=True, slots=True)
class Oversized:
    """A line of more than `limit` bytes came; what is left of it will be skipped."""

    limit: int
    """Bytes."""
    head: bytes
    """How it began: at most 4 KiB, enough to find an id."""


class LineReader:
    """Cut a stream of bytes into lines, holding at most one line and one chunk.

    However the stream is cut into chunks, the lines are the same.
    """

    def __init__(self, max_bytes: int = MAX_LINE) -> None:
        if max_bytes < 1:
            raise ValueError(f"max_bytes must be at least 1, not {max_bytes!r}")
        self._max = max_bytes
        self._pending = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | Oversized]:
        """The lines that these bytes complete, in order, without their endings. Empty lines are lines."""
        *ends, rest = data.split(b"\n")
        found: list[bytes | Oversized] = []
        for end in ends:
            if self._skipping:
                self._skipping = False
            elif self._pending:
                self._pending += end
                found.append(self._checked(bytes(self._pending)))
                self._pending = bytearray()
            else:
                found.append(self._checked(end))
        if rest and not self._skipping:
            self._pending += rest
            length = len(self._pending)
            # One byte more may be the CR of a line that is just short enough.
            if length > self._max + 1 or (length > self._max and not rest.endswith(b"\r")):
                found.append(self._oversized(self._pending))
                self._pending = bytearray()
                self._skipping = True
        return found

    def finish(self) -> list[bytes | Oversized]:
        """The stream has ended: the last line, where it has no newline. The reader is as new."""
        found: list[bytes | Oversized] = [self._checked(bytes(self._pending))] if self._pending else []
        self._pending = bytearray()
        self._skipping = False
        return found

    def _checked(self, line: bytes) -> bytes | Oversized:
        line = line.removesuffix(b"\r")
        return line if len(line) <= self._max else self._oversized(line)

    def _oversized(self, line: bytes | bytearray) -> Oversized:
        return Oversized(self._max, bytes(line[: min(_HEAD, self._max)]))
