"""What every transport of lines is, on either side: send one, receive one, close.

LineTransport
├── MemoryTransport        two ends in one process
├── StdioTransport         our own stdin and stdout (host side)
├── ProcessTransport       a child's stdin and stdout (client side)
└── HttpSessionTransport   an A2E session over HTTP (client side)
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol, TypeAlias, runtime_checkable

from anykit.capabilities import MetadataMap, Unavailable

from .lines import Oversized

Received: TypeAlias = bytes | Oversized
"""One line without its end, or the report of one that was longer than the limit and skipped."""


class TransportClosed(Unavailable):
    """The transport is over; `reason` says why. With `sent` the line it was raised for may have left, whole or in part."""

    def __init__(self, reason: str, *, sent: bool = False, detail: MetadataMap | None = None) -> None:
        super().__init__(reason, sent=sent, detail=detail)
        self.reason = reason


@runtime_checkable
class LineTransport(Protocol):
    """Lines of bytes in both directions, in order. One task receives; any task sends."""

    @property
    def secure(self) -> bool:
        """Whether a secret may travel on it: memory, pipes, loopback or TLS."""
        ...

    async def send(self, line: bytes) -> None:
        """Send one line (without its end). Returns once it is on its way; waits while the peer does not read.

        A cancelled send leaves whole lines only. Raises `TransportClosed`; `Unavailable` where this line alone was
        refused; `ValueError` if the line contains 0x0A.
        """
        ...

    async def receive(self) -> Received:
        """Give the next line. Cancelling loses nothing.

        Raises `TransportClosed` once the transport is over and everything received was given.
        """
        ...

    async def close(self) -> None:
        """End it, bounded in time. Closing twice is allowed; a waiting `receive` raises `TransportClosed`."""
        ...


async def received(transport: LineTransport) -> AsyncIterator[Received]:
    """Iterate over what `transport` receives until it is over."""
    while True:
        try:
            item = await transport.receive()
        except TransportClosed:
            return
        yield item


def check_line(line: bytes) -> None:
    """Raise `ValueError` if `line` would be more than one line on the wire."""
    if b"\n" in line:
        raise ValueError("a line to send must not contain a line feed (0x0A)")
