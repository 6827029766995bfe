"""A peer that speaks just enough HTTP to be wrong in every way that a test wants. A real socket on 127.0.0.1."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import TypeAlias


@dataclass
class Request:
    """What arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    writer: asyncio.StreamWriter = field(repr=False)


Answer: TypeAlias = Callable[[Request], Awaitable[bytes | None]]
"""Gives the whole answer's bytes, or writes to `writer` itself and gives None: then the connection is closed."""


def http(status: int, content_type: str = "", body: bytes = b"", **headers: str) -> bytes:
    """Make a whole answer."""
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}"]
    if content_type:
        lines.append(f"content-type: {content_type}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


@dataclass
class Peer:
    """A server whose answers the test gives."""

    answer: Answer
    port: int = 0
    scheme: str = "http"
    requests: list[Request] = field(default_factory=list[Request])
    connections: int = 0

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._answer_all(reader, writer)
                writer.close()
                await writer.wait_closed()
        finally:
            writer.transport.abort()

    async def _answer_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            first, *rest = head.decode("latin-1").split("\r\n")[:-2]
            method, path, _ = first.split(" ")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            request = Request(method, path, headers, body, writer)
            self.requests.append(request)
            data = await self.answer(request)
            if data is None:
                return
            writer.write(data)
            await writer.drain()


@contextlib.asynccontextmanager
async def peer(answer: Answer, *, port: int = 0, tls: SSLContext | None = None) -> AsyncGenerator[Peer, None]:
    """Serve on 127.0.0.1 until the block ends."""
    one = Peer(answer, scheme="https" if tls else "http")
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(one.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", port, ssl=tls)
    one.port = server.sockets[0].getsockname()[1]
    try:
        yield one
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # aborted transports close in the next turn of the loop
        await server.wait_closed()
