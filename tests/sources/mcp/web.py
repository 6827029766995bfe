"""A scripted MCP server over HTTP inside the test: every byte on the wire is the test's to choose."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from .peers.script import Peer

Handler = Callable[["Request", "Reply"], Awaitable[bool]]


@dataclass
class Request:
    """What came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        return json.loads(self.body) if self.body else {}


@dataclass
class Reply:
    """Writes what goes back; one response a connection unless `send` was used."""

    writer: asyncio.StreamWriter
    keep: bool = False

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        with contextlib.suppress(ConnectionError):
            await self.writer.drain()

    async def send(self, status: int, body: bytes = b"", content_type: str = "", **headers: str) -> None:
        head = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}"]
        if content_type:
            head.append(f"content-type: {content_type}")
        head += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.keep = True
        await self.raw("\r\n".join([*head, "", ""]).encode() + body)

    async def json(self, value: Any, status: int = 200, **headers: str) -> None:
        await self.send(status, json.dumps(value, ensure_ascii=False).encode(), "application/json", **headers)

    async def stream(self, **headers: str) -> None:
        extra = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        await self.raw(
            f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{extra}connection: close\r\n\r\n".encode()
        )

    async def event(self, value: Any, event: str = "message", id: str = "") -> None:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        await self.raw(f"{f'id: {id}' + chr(10) if id else ''}event: {event}\ndata: {text}\n\n".encode())


@dataclass
class Web:
    """The server. `before` sees each request first and may answer it itself (True)."""

    peer: Peer
    sse: bool = False
    """Answers as streams of events."""
    sessions: bool = True
    """A session for those of the old era."""
    before: Handler | None = None
    requests: list[Request] = field(default_factory=list[Request])
    known: set[str] = field(default_factory=set[str])
    streams: list[Reply] = field(default_factory=list[Reply])
    """Open streams that nothing is awaited on: of GET, and of subscriptions."""
    port: int = 0
    _server: asyncio.Server | None = None
    _writers: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])
    subscriptions: list[tuple[Reply, dict[str, Any]]] = field(default_factory=list[tuple[Reply, dict[str, Any]]])
    posts: dict[Any, Reply] = field(default_factory=dict[Any, Reply])
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client closed a stream before its end, or said that it cancels."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, limit=32 * 1024 * 1024)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """As if the process were killed: connections are reset, sessions forgotten."""
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        self.known.clear()
        self.streams.clear()
        self.subscriptions.clear()
        await self._server.wait_closed()

    async def push(self, message: dict[str, Any]) -> None:
        """Send something unasked on every open stream."""
        for reply in self.streams:
            await reply.event(message)
        for reply, request in self.subscriptions:
            params = {**message.get("params", {}), "_meta": {"io.modelcontextprotocol/subscriptionId": request["id"]}}
            await reply.event({**message, "params": params})

    def posted(self, method: str) -> list[Request]:
        return [one for one in self.requests if one.method == "POST" and one.message.get("method") == method]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    request = await _request(reader)
                    self.requests.append(request)
                    reply = Reply(writer)
                    if not (self.before is not None and await self.before(request, reply)):
                        await self._answer(request, reply, reader)
                    if not reply.keep:
                        break
        finally:
            self._writers.discard(writer)
            with contextlib.suppress(ConnectionError):
                writer.close()
                await writer.wait_closed()

    async def _answer(self, request: Request, reply: Reply, reader: asyncio.StreamReader) -> None:
        session = request.headers.get("mcp-session-id")
        if session is not None and session not in self.known:
            await reply.json(
                {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Session not found"}}, 404
            )
        elif request.method == "GET":
            if session is None:
                await reply.send(405)
            else:
                await reply.stream()
                self.streams.append(reply)
                await reader.read(1)
                self.streams = [one for one in self.streams if one is not reply]
        elif request.method == "DELETE":
            self.known.discard(session or "")
            await reply.send(200)
        else:
            await self._post(request, reply, reader)

    async def _post(self, request: Request, reply: Reply, reader: asyncio.StreamReader) -> None:
        message = request.message
        if "id" not in message or "method" not in message:
            self.peer.handle(message, _nowhere)
            if message.get("method") == "notifications/cancelled":
                self.cancelled.set()
            await reply.send(202)
            return
        if message["method"] == "subscriptions/listen":
            await self._subscribe(message, reply, reader)
            return
        sent: list[dict[str, Any]] = []
        answer = self.peer.handle(message, sent.append)
        headers: dict[str, str] = {}
        if message["method"] == "initialize" and self.sessions:
            session = uuid.uuid4().hex
            self.known.add(session)
            headers["mcp_session_id"] = session
        if answer is not None and not self.sse and not sent:
            await reply.json(answer, 200, **headers)
            return
        await reply.stream(**headers)
        for each in sent:
            await reply.event(each)
        if answer is not None:
            await reply.event(answer)
            return
        self.posts[message["id"]] = reply
        if await reader.read(1) == b"":
            self.cancelled.set()

    async def _subscribe(self, message: dict[str, Any], reply: Reply, reader: asyncio.StreamReader) -> None:
        self.peer.seen.append(message)
        wanted = message["params"]["notifications"]
        meta = {"io.modelcontextprotocol/subscriptionId": message["id"]}
        await reply.stream()
        params = {"notifications": wanted, "_meta": meta}
        await reply.event({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params})
        entry = (reply, message)
        self.subscriptions.append(entry)
        await reader.read(1)
        self.subscriptions = [one for one in self.subscriptions if one is not entry]


async def _request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, body)


def _nowhere(message: dict[str, Any]) -> None:
    """Nothing comes before an answer that there is none of."""


@asynccontextmanager
async def serving(peer: Peer | None = None, **options: Any) -> AsyncGenerator[Web]:
    """A server that is up inside the block."""
    web = Web(peer or Peer(), **options)
    await web.start()
    try:
        yield web
    finally:
        await web.stop()
