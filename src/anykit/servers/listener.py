"""uvicorn's server as we need it: no signal handlers, a word when it listens, and heads that are bounded."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Generator

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD = 64 * 1024
"""Bytes of a request's line and headers."""
HEAD_TIMEOUT = 30.0
"""Seconds that a new connection has to send its first head."""


class Listener(uvicorn.Server):
    """Imported when something is served, not before."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], object]) -> None:
        super().__init__(config)
        self._told = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        if self.started:
            self._told()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave the signals to whoever owns the process."""
        yield


class BoundedProtocol(HttpToolsProtocol):
    """One connection. A head that is too long, or never comes, ends it."""

    _head = 0
    _in_body = False
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(HEAD_TIMEOUT, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._first_head_came()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if not self._in_body:
            self._head += len(data)
        super().data_received(data)
        if self._head > MAX_HEAD and not self._in_body:
            self.transport.abort()

    def on_headers_complete(self) -> None:
        """A head is whole; what follows is its body."""
        self._first_head_came()
        self._in_body = True
        self._head = 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """A request is whole; another head may follow."""
        self._in_body = False
        self._head = 0
        super().on_message_complete()

    def _first_head_came(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
