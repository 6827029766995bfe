"""Server-sent events (WHATWG HTML, 9.2): bytes from events, events from bytes in any chunks. Pure.

Lines end with CR, LF or CRLF and with nothing else: U+2028 in JSON stays where it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from .lines import MAX_LINE, Oversized

MAX_RETRY = 60_000
"""Milliseconds; a peer that asks to be left alone for longer is not believed."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event as it was dispatched."""

    data: bytes
    event: str = "message"
    id: str = ""
    """The last event id at that moment: this event's, or an earlier one's that still holds."""


def encode_event(data: bytes, *, event: str | None = None, id: str | None = None, retry: int | None = None) -> bytes:
    """Give the bytes of one event. `retry` is in milliseconds. Raises `ValueError` for a name or id of several lines."""
    head = b""
    if event is not None:
        head += b"event: " + _one_line("event", event) + b"\n"
    if id is not None:
        head += b"id: " + _one_line("id", id) + b"\n"
    if retry is not None:
        head += b"retry: %d\n" % retry
    if b"\n" not in data and b"\r" not in data:
        return head + b"data: " + data + b"\n\n"
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return head + b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"


def encode_comment(text: bytes = b"") -> bytes:
    """Give the bytes of a comment, which keeps a quiet stream alive."""
    if b"\n" in text or b"\r" in text:
        raise ValueError("a comment must be one line")
    return b": " + text + b"\n\n" if text else b":\n\n"


def _one_line(what: str, text: str) -> bytes:
    if any(character in text for character in "\r\n\0"):
        raise ValueError(f"an {what} must be one line without NUL")
    return text.encode()


class SseDecoder:
    """Read a stream of events. A new stream needs a new decoder; `last_event_id` carries over.

    Args:
        max_event: Bytes of one event's data; a longer one is skipped, and reported once.
        last_event_id: What the stream before ended with.
    """

    def __init__(self, max_event: int = MAX_LINE, *, last_event_id: str = "") -> None:
        self._max_event = max_event
        self._parts: list[bytes] = []
        self._length = 0
        self._after_cr = False
        self._start = b""
        self._started = False
        self._cut = False
        self._data: list[bytes] = []
        self._size = 0
        self._skipping = False
        self._event = ""
        self._next_id = last_event_id
        self.last_event_id = last_event_id
        """What to send as `Last-Event-ID` to go on after the last event given."""
        self.retry: int | None = None
        """Milliseconds that the peer asks to wait before coming again, at most `MAX_RETRY`."""
        self.comments = 0
        """Comments so far."""

    def feed(self, data: bytes) -> list[ServerEvent | Oversized]:
        """Take the next bytes and give the events that they complete."""
        events: list[ServerEvent | Oversized] = []
        if not self._started:
            data = self._without_mark(data)
        if not data:
            return events
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
        self._after_cr = data.endswith(b"\r") if data else False
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._hold(line, events)
            whole = b"".join(self._parts) if self._parts else b""
            self._parts.clear()
            self._length = 0
            cut, self._cut = self._cut, False
            if not cut:
                self._line(whole, events)
        if rest:
            self._hold(rest, events)
        return events

    def _without_mark(self, data: bytes) -> bytes:
        """Drop the byte order mark that may begin the stream."""
        data = self._start + data
        mark = b"\xef\xbb\xbf"
        if len(data) < 3 and mark.startswith(data):
            self._start = data
            return b""
        self._started = True
        self._start = b""
        return data.removeprefix(mark)

    def _hold(self, piece: bytes, events: list[ServerEvent | Oversized]) -> None:
        """Keep a piece of the current line, within bounds."""
        if self._cut:
            return
        self._length += len(piece)
        if self._length > self._max_event + 64:  # the field's name comes on top
            self._parts.clear()
            self._cut = True
            self._too_large(self._length, events)
        elif piece:
            self._parts.append(piece)

    def _too_large(self, size: int, events: list[ServerEvent | Oversized]) -> None:
        """Skip the rest of this event."""
        self._data.clear()
        if not self._skipping:
            self._skipping = True
            events.append(Oversized(size, self._max_event))

    def _line(self, line: bytes, events: list[ServerEvent | Oversized]) -> None:
        if not line:
            self._dispatch(events)
            return
        if line.startswith(b":"):
            self.comments += 1
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._size += len(value) + 1
                if self._size - 1 > self._max_event:
                    self._too_large(self._size - 1, events)
                elif not self._skipping:
                    self._data.append(value)
            case b"event":
                self._event = value[:1024].decode("utf-8", "replace")
            case b"id" if b"\0" not in value and len(value) <= 1024:
                self._next_id = value.decode("utf-8", "replace")
            case b"retry" if value.isdigit() and len(value) <= 18:
                self.retry = min(int(value), MAX_RETRY)
            case _:
                pass

    def _dispatch(self, events: list[ServerEvent | Oversized]) -> None:
        self.last_event_id = self._next_id
        if self._data and not self._skipping:
            events.append(ServerEvent(b"\n".join(self._data), self._event or "message", self.last_event_id))
        self._data.clear()
        self._size = 0
        self._skipping = False
        self._event = ""
