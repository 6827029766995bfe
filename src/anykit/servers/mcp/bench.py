"""What is served, and how much of it at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from anykit.runtime import Session


class Bench(Protocol):
    """What is served: it hands out sessions."""

    def session(self, *, principal: str = "local", face: str = "python", id: str | None = None) -> Session:
        """The verbs of one caller."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """What is taken on. Counts, bytes, seconds."""

    max_parallel: int = 64
    """Calls of one caller at a time: of a session, or of a principal where there are no sessions."""
    queue: int = 256
    """Calls of one caller that may wait."""
    body: int = 8 * 1024 * 1024
    rate: float | None = None
    """Messages a second of one caller."""
    sessions: int = 10_000
    idle: float = 1800.0
    """How long a session lives of which nothing is heard."""
    handshake: float = 60.0
    """The same for one whose client never said that it is initialized."""
    heartbeat: float = 15.0
    """Between two comments on a quiet stream."""
    replay: int = 256 * 1024
    """Bytes of a session's streams that are kept for a client that comes back."""
    listeners: int = 1024
    """Streams of changes that may be open."""
    watched: int = 1000
    """Resources that one caller may watch."""
    early: float = 30.0
    """How long a request waits that comes before MCP is loaded."""
    body_time: float = 60.0
    """How long a body may take to arrive."""


class Busy(Exception):
    """Too much at once; nothing ran."""


class Gate:
    """Lets so many calls of one caller run, so many wait, and no more."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._slots = asyncio.Semaphore(limits.max_parallel)
        self._inside = 0
        self._tokens = _burst(limits)
        self._refilled = time.monotonic()

    @property
    def busy(self) -> bool:
        """Whether something runs or waits."""
        return self._inside > 0

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Wait for a turn and keep it. Raises `Busy`."""
        if self._inside >= self._limits.max_parallel + self._limits.queue:
            raise Busy(
                f"too much at once: {self._limits.max_parallel} calls run and {self._limits.queue} wait; try again later"
            )
        self._inside += 1
        try:
            async with self._slots:
                yield
        finally:
            self._inside -= 1

    def spend(self) -> bool:
        """Count one message against the rate; False where there have been too many."""
        rate = self._limits.rate
        if rate is None:
            return True
        now = time.monotonic()
        self._tokens = min(_burst(self._limits), self._tokens + (now - self._refilled) * rate)
        self._refilled = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True


def _burst(limits: Limits) -> float:
    return max(1.0, 2.0 * (limits.rate or 0.0))
