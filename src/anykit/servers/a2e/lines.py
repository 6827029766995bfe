"""A session over a transport of lines: stdio, a child's pipes, memory."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from anykit.transports import LineTransport, ProtocolStreams, TransportClosed
from anykit.transports import Oversized as TransportOversized
from anykit.wire.a2e import Oversized

from .connection import Connection

if TYPE_CHECKING:
    from .host import A2EHost

log = logging.getLogger("anykit.a2e")

EOF_GRACE = 0.25
"""Seconds that calls have to end by themselves once the agent says nothing more; then they are cancelled."""
FLUSH_TIMEOUT = 2.0
"""Seconds that the last lines have to leave."""
CONGESTED = 8 * 1024 * 1024
"""Bytes that wait to be sent before nothing more is read."""

TURN = 64
"""Lines that are taken in one go before others have their turn."""

End: TypeAlias = Literal["eof", "shutdown", "host", "auth_failed"]
"""Why a session ended: the agent went, it asked for the end, this side stopped, or it knew no token."""


@runtime_checkable
class SendsTogether(Protocol):
    """A transport that can send many lines at once, which spares it a system call for each."""

    async def send_all(self, lines: Sequence[bytes]) -> None:
        """As `LineTransport.send` for each line, in order."""
        ...


async def serve_connection(
    host: A2EHost, transport: LineTransport, *, session_id: str | None = None, stop: asyncio.Event | None = None
) -> str:
    """Serve one agent until it is gone, or asks for the end, or `stop` is set; give why (`End`).

    Nothing that the agent sends raises here. At the end calls are cancelled, what was said is sent, and the transport is
    closed, all bounded in time.
    """
    carrier = LineCarrier(transport)
    connection = host.connection(carrier, session_id=session_id)
    sending = asyncio.create_task(carrier.send(), name="a2e lines out")
    tasks: list[asyncio.Task[Any]] = [
        sending,
        asyncio.create_task(_read(transport, connection, carrier), name="a2e lines in"),
        asyncio.create_task(carrier.ended.wait(), name="a2e end"),
    ]
    if stop is not None:
        tasks.append(asyncio.create_task(stop.wait(), name="a2e stop"))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not carrier.ended.is_set():
            if stop is not None and stop.is_set():
                connection.end("host")
            else:
                carrier.reason = "eof"
                if not sending.done():
                    await connection.settle(EOF_GRACE)
        return carrier.reason
    finally:
        await connection.close()
        carrier.finish()
        with contextlib.suppress(TimeoutError, TransportClosed):
            async with asyncio.timeout(FLUSH_TIMEOUT):
                await asyncio.shield(sending)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await transport.close()


async def serve_stdio(host: A2EHost, streams: ProtocolStreams) -> str:
    """Serve the parent process until it is gone, asks for the end, or a SIGINT or SIGTERM comes; give why.

    `streams` were taken before anything was imported that may print.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        return await serve_connection(host, streams.open(max_line=host.limits.body), stop=stop)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


async def _read(transport: LineTransport, connection: Connection, carrier: LineCarrier) -> None:
    taken = 0
    while True:
        try:
            item = await transport.receive()
        except TransportClosed:
            return
        if isinstance(item, TransportOversized):
            connection.receive(Oversized(item.limit, b""))
        else:
            connection.receive(item)
        taken += 1
        if connection.wire.waiting or taken % TURN == 0:
            await asyncio.sleep(0)  # let the calls go on before more is read
        await carrier.room()


class LineCarrier:
    """Sends a session's lines, in order, by one task."""

    def __init__(self, transport: LineTransport) -> None:
        self._transport = transport
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._finished = False
        self.ended = asyncio.Event()
        self.reason = "eof"

    @property
    def secure(self) -> bool:
        """See `Carrier`."""
        return self._transport.secure

    def deliver(self, lines: list[bytes]) -> None:
        """See `Carrier`."""
        self._lines += lines
        self._size += sum(map(len, lines))
        if self._size > CONGESTED:
            self._room.clear()
        self._wake.set()

    def congested(self) -> bool:
        """See `Carrier`."""
        return self._size > CONGESTED

    def over(self, reason: str) -> None:
        """See `Carrier`."""
        self.reason = reason
        self.ended.set()

    def finish(self) -> None:
        """Nothing more comes: `send` returns once all is sent."""
        self._finished = True
        self._wake.set()

    async def room(self) -> None:
        """Wait while too much waits to be sent."""
        if self._size > CONGESTED:
            await self._room.wait()

    async def send(self) -> None:
        """Send until `finish`. Returns early where the transport is over."""
        transport = self._transport
        together = transport if isinstance(transport, SendsTogether) else None
        while True:
            while self._lines:
                try:
                    if together is not None and len(self._lines) > 1:
                        lines = list(self._lines)
                        self._lines.clear()
                        await together.send_all(lines)
                        self._size -= sum(map(len, lines))
                    else:
                        line = self._lines.popleft()
                        await transport.send(line)
                        self._size -= len(line)
                except TransportClosed:
                    return
                if self._size <= CONGESTED:
                    self._room.set()
            if self._finished:
                return
            self._wake.clear()
            await self._wake.wait()
