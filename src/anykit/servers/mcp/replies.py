"""What goes back on one HTTP request: a JSON body, or server-sent events once anything comes before the answer.

A reply is written to one reader at a time. One with a number gives its events ids, so that a client whose connection
broke can come back for the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from anykit.servers.identity import Message, Receive, Send

QUICK: Final = 0.2
"""Seconds in which an answer comes without anybody looking whether the client is still there."""
UNREAD: Final = 1024 * 1024
"""Bytes that wait for a client that does not read; beyond them the oldest news is dropped, never an answer."""
RETRY: Final = 1000
"""Milliseconds after which a client whose stream broke should come back."""
CHUNK: Final = 256 * 1024
"""Bytes that are written at once."""

_JSON: Final = (b"content-type", b"application/json")
_EVENTS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


class Reply:
    """Messages on their way to a client, the last of them the answer."""

    __slots__ = (
        "_answered",
        "_first",
        "_lines",
        "_sizes",
        "_waiter",
        "finished",
        "number",
        "reader",
        "status",
        "taken",
    )

    def __init__(self, number: int | None = None) -> None:
        self.number = number
        self.status = 200
        """Of the answer as a JSON body."""
        self.finished = False
        self.reader = 0
        """Number of the reader that is written to; a later one takes over."""
        self.taken = 0
        """How many messages were written to a reader."""
        self._lines: list[bytes] = []
        self._first = 0
        """How many messages are no longer kept."""
        self._sizes = 0
        self._answered = False
        self._waiter: asyncio.Future[None] | None = None

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        return self._sizes

    @property
    def end(self) -> int:
        """How many messages there have been."""
        return self._first + len(self._lines)

    @property
    def answer_alone(self) -> bytes | None:
        """The answer, where nothing came before it."""
        return self._lines[0] if self._answered and self.end == 1 else None

    @property
    def last(self) -> bytes | None:
        """The answer; None where there is none."""
        return self._lines[-1] if self._answered else None

    def say(self, line: bytes, *, droppable: bool = True) -> None:
        """A message before the answer. A client that does not read loses the oldest that are droppable."""
        if self.finished:
            return
        if droppable and self._sizes + len(line) > UNREAD:
            self.forget(UNREAD // 2)
        self._keep(line)

    def finish(self, line: bytes | None, status: int = 200) -> None:
        """The answer; None where there will be none."""
        if self.finished:
            return
        self.finished = True
        self.status = status
        if line is not None:
            self._answered = True
            self._keep(line)
        else:
            self.wake()

    def _keep(self, line: bytes) -> None:
        self._lines.append(line)
        self._sizes += len(line)
        self.wake()

    def forget(self, limit: int) -> None:
        """Keep at most `limit` bytes of the newest."""
        while self._sizes > limit and self._lines:
            self._sizes -= len(self._lines.pop(0))
            self._first += 1

    def since(self, seen: int) -> tuple[bytes, int]:
        """The events behind the first `seen` messages, as they are written, and how many have been seen then."""
        start = max(seen, self._first)
        parts: list[bytes] = []
        size = 0
        for line in self._lines[start - self._first :]:
            if size > CHUNK:
                break
            start += 1
            size += len(line)
            id = b"" if self.number is None else b"id: %d-%d\n" % (self.number, start)
            parts.append(b"%bevent: message\ndata: %b\n\n" % (id, line))
        return b"".join(parts), start

    async def more(self, seen: int, reader: int, seconds: float) -> bool:
        """Wait until there is more than `seen`, it is finished, or another reads it; False where time is up."""
        if self.end > seen or self.finished or self.reader != reader:
            return True
        if self._waiter is None or self._waiter.done():
            self._waiter = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(self._waiter)
        except TimeoutError:
            return False
        return True

    def wake(self) -> None:
        """Something happened."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Writing:
    """Writes a reply to a client.

    Args:
        json: Whether the client takes a JSON body.
        events: Whether it takes server-sent events.
        heartbeat: Seconds after which a quiet stream says that it is alive.
        headers: More headers.
        primed: Whether a stream begins with an id, so that a client can come back that has heard nothing yet.
        seen: How many messages the client has already.
    """

    def __init__(
        self,
        reply: Reply,
        *,
        json: bool,
        events: bool,
        heartbeat: float,
        headers: Sequence[tuple[bytes, bytes]] = (),
        primed: bool = False,
        seen: int = 0,
    ) -> None:
        self._reply = reply
        self._json = json
        self._events = events
        self._heartbeat = heartbeat
        self._headers = headers
        self._primed = primed
        self._seen = seen
        reply.reader += 1
        self._reader = reply.reader
        reply.wake()

    async def run(self, receive: Receive, send: Send) -> bool:
        """Write until it is finished; False where the client went before."""
        if self._json:
            await self._reply.more(0 if self._events else self._reply.end, self._reader, QUICK)
            if await self._as_json(send):
                return True
        writing = asyncio.ensure_future(self._write(send))
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait([writing, leaving], return_when=asyncio.FIRST_COMPLETED)
            if writing.done():
                writing.result()
                return True
            return False
        finally:
            for task in (writing, leaving):
                if not task.done():
                    task.cancel()
            await asyncio.gather(writing, leaving, return_exceptions=True)

    async def _as_json(self, send: Send) -> bool:
        """The answer as a body, if it has come and nothing has to be told before it."""
        reply = self._reply
        if not reply.finished:
            return False
        answer = reply.answer_alone
        if answer is None:
            if self._events:
                return False
            answer = reply.last or b""
        start: Message = {
            "type": "http.response.start",
            "status": reply.status,
            "headers": [_JSON, (b"content-length", str(len(answer)).encode()), *self._headers],
        }
        await send(start)
        await send({"type": "http.response.body", "body": answer})
        return True

    async def _write(self, send: Send) -> None:
        reply = self._reply
        if not self._events:
            while not await self._as_json(send):
                await reply.more(reply.end, self._reader, self._heartbeat)
            return
        if self._json and not reply.end:
            await reply.more(0, self._reader, self._heartbeat)
            if await self._as_json(send):
                return
        await send({"type": "http.response.start", "status": 200, "headers": [*_EVENTS, *self._headers]})
        begin = b""
        if self._primed and reply.number is not None:
            begin = b"id: %d-%d\nretry: %d\ndata: \n\n" % (reply.number, self._seen, RETRY)
        await send({"type": "http.response.body", "body": begin or b": \n\n", "more_body": True})
        while reply.reader == self._reader:
            if self._seen < reply.end:
                data, seen = reply.since(self._seen)
                await send({"type": "http.response.body", "body": data, "more_body": True})
                self._seen = reply.taken = seen
            elif reply.finished:
                break
            elif not await reply.more(self._seen, self._reader, self._heartbeat):
                await send({"type": "http.response.body", "body": b": \n\n", "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _left(receive: Receive) -> None:
    """Until the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
