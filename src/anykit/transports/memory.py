"""Two cross-wired ends in one process and one loop."""

from __future__ import annotations

import asyncio
from collections import deque

from .base import Received, TransportClosed, check_line
from .lines import MAX_LINE, Oversized

MAX_WAITING = 1024
"""Lines that may wait at one end before its peer's `send` waits too."""


class MemoryTransport:
    """One end; made by `memory_pair`."""

    secure = True

    def __init__(self, *, max_line: int = MAX_LINE, max_waiting: int = MAX_WAITING) -> None:
        self._max_line = max_line
        self._max_waiting = max_waiting
        self._inbox: deque[Received] = deque()
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._over: str | None = None
        self._peer: MemoryTransport | None = None

    def wire_to(self, peer: MemoryTransport) -> None:
        """Connect both ends."""
        self._peer, peer._peer = peer, self

    async def send(self, line: bytes) -> None:
        """See `LineTransport`."""
        check_line(line)
        peer = self._peer
        while True:
            if self._over is not None or peer is None:
                raise TransportClosed(self._over or "not connected")
            if peer._room.is_set():
                break
            await peer._room.wait()
        peer._put(line)

    async def receive(self) -> Received:
        """See `LineTransport`."""
        while not self._inbox:
            if self._over is not None:
                raise TransportClosed(self._over)
            self._arrived.clear()
            await self._arrived.wait()
        item = self._inbox.popleft()
        if len(self._inbox) < self._max_waiting:
            self._room.set()
        return item

    async def close(self) -> None:
        """See `LineTransport`. The peer still receives what was sent before."""
        self._inbox.clear()
        self._end("closed")
        if self._peer is not None:
            self._peer._end("the other end closed")

    def _put(self, line: bytes) -> None:
        self._inbox.append(line if len(line) <= self._max_line else Oversized(len(line), self._max_line))
        if len(self._inbox) >= self._max_waiting:
            self._room.clear()
        self._arrived.set()

    def _end(self, reason: str) -> None:
        if self._over is None:
            self._over = reason
        self._arrived.set()
        self._room.set()


def memory_pair(*, max_line: int = MAX_LINE, max_waiting: int = MAX_WAITING) -> tuple[MemoryTransport, MemoryTransport]:
    """Give two ends: what one sends the other receives."""
    one = MemoryTransport(max_line=max_line, max_waiting=max_waiting)
    other = MemoryTransport(max_line=max_line, max_waiting=max_waiting)
    one.wire_to(other)
    return one, other
