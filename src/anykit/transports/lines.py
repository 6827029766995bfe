"""Bytes to lines. Only 0x0A ends a line; a CR before it goes; a line that is too long is skipped in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass

MAX_LINE = 8 * 1024 * 1024
"""Bytes of one line, its end not counted."""


@dataclass(frozen=True, slots=True)
class Oversized:
    """A message longer than the limit: skipped up to its end, reported once, as soon as the limit is crossed."""

    size: int
    """Bytes seen when it was given up; the whole is at least as long."""
    limit: int

    def __str__(self) -> str:
        return f"message too large: more than {self.limit} bytes"


class LineReader:
    """Split a stream of bytes, whatever its chunks, into lines. Blank lines are counted and dropped."""

    def __init__(self, max_line: int = MAX_LINE) -> None:
        if max_line < 1:
            raise ValueError("max_line must be at least 1")
        self._max_line = max_line
        self._parts: list[bytes] = []
        self._length = 0
        self._skipping = False
        self.blank = 0
        """Blank lines so far."""
        self.oversized = 0
        """Lines skipped so far because they were too long."""

    def feed(self, data: bytes) -> list[bytes | Oversized]:
        """Take the next bytes and give the lines that they complete."""
        items: list[bytes | Oversized] = []
        if not data:
            return items
        *complete, rest = data.split(b"\n")
        for piece in complete:
            if self._skipping:
                self._skipping = False
            elif self._parts:
                self._hold(piece, items)
                if self._skipping:
                    self._skipping = False
                else:
                    self._give(self._take(), items)
            else:
                self._give(piece, items)
        if rest and not self._skipping:
            self._hold(rest, items)
        return items

    def finish(self) -> list[bytes | Oversized]:
        """Give the last line where the stream ended without a line end."""
        items: list[bytes | Oversized] = []
        if self._parts:
            self._give(self._take(), items)
        self._skipping = False
        return items

    def _take(self) -> bytes:
        line = b"".join(self._parts)
        self._parts.clear()
        self._length = 0
        return line

    def _hold(self, piece: bytes, items: list[bytes | Oversized]) -> None:
        self._length += len(piece)
        if self._length > self._max_line + 1:  # one more: it may be the CR that goes
            self._report(self._length, items)
            self._parts.clear()
            self._length = 0
            self._skipping = True
        else:
            self._parts.append(piece)

    def _give(self, line: bytes, items: list[bytes | Oversized]) -> None:
        if line.endswith(b"\r"):
            line = line[:-1]
        if len(line) > self._max_line:
            self._report(len(line), items)
        elif not line or line.isspace():
            self.blank += 1
        else:
            items.append(line)

    def _report(self, size: int, items: list[bytes | Oversized]) -> None:
        self.oversized += 1
        items.append(Oversized(size, self._max_line))
