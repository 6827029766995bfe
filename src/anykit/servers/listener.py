"""uvicorn's server as we need it: no signal handlers, a word when it listens, and heads that are bounded."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Generator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD = 64 * 1024
"""Bytes of a request's line and headers."""
TOGETHER = 64 * 1024
"""Bytes that wait at most for others to leave with."""
HEAD_TIMEOUT = 30.0
"""Seconds that a new connection has to send its first head."""


class Listener(uvicorn.Server):
    """Imported when something is served, not before."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], object]) -> None:
        super().__init__(config)
        self._told = started
        self._leaving = asyncio.Event()

    def leave(self) -> None:
        """End, as soon as what is being answered has been."""
        self.should_exit = True
        self._leaving.set()

    async def main_loop(self) -> None:
        """Once a second, for the date in the heads, instead of ten times; and the end is seen at once."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._leaving.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Without the tenth of a second that uvicorn always takes, where nobody is connected."""
        if self.server_state.connections or self.server_state.tasks:
            await super().shutdown(sockets)
            return
        for server in self.servers:
            server.close()
        for one in sockets or []:
            one.close()
        for server in self.servers:
            await server.wait_closed()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        if self.started:
            self._told()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave the signals to whoever owns the process."""
        yield


class JoinedWrites(asyncio.Transport):
    """A transport on which what is written in one turn of the loop leaves together: a head and its body, say.

    It spares a system call for each answer. At most `TOGETHER` bytes are held, so that a writer who never waits is
    still told when the peer does not read.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []
        self._size = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """See `asyncio.WriteTransport`."""
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(bytes(data))
        self._size += len(data)
        if self._size > TOGETHER:
            self._flush()

    def _flush(self) -> None:
        held = self._held
        if held:
            self._held = []
            self._size = 0
            self._transport.write(held[0] if len(held) == 1 else b"".join(held))

    def close(self) -> None:
        """See `asyncio.BaseTransport`."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """See `asyncio.WriteTransport`."""
        self._held = []
        self._transport.abort()

    def is_closing(self) -> bool:
        """See `asyncio.BaseTransport`."""
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """See `asyncio.BaseTransport`."""
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """See `asyncio.ReadTransport`."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """See `asyncio.ReadTransport`."""
        self._transport.resume_reading()


class BoundedProtocol(HttpToolsProtocol):
    """One connection. A head that is too long, or never comes, ends it."""

    _head = 0
    _in_body = False
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """See `asyncio.Protocol`."""
        super().connection_made(JoinedWrites(transport, self.loop))
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
