"""MCP over HTTP, the part that needs no SDK: who may come in, how large a body is, and waiting for the rest to load."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from anykit.servers.identity import Message, Receive, Scope, Send, Tokens, Ways, headers_named, refuse
from anykit.transports.importing import import_alone

from .authorization import WELL_KNOWN, Door, ResourceServer, Turned
from .bench import Bench, Limits
from .configuring import PATH as CONFIGURE
from .configuring import Desk, Place
from .jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, encode, error_message

if TYPE_CHECKING:
    from .engine import Engine  # imports the SDK: a second of CPU, in a thread once the server listens

log = logging.getLogger("anykit.mcp")

PATH: Final = "/mcp"


class McpApp:
    """The ASGI application: `/mcp`, the pages where toolkits are configured, and the resource server's metadata.

    Args:
        bench: What is served.
        token: The operator's bearer token, or all that are given out; "" asks for none.
        authorization: Accept tokens of authorization servers as well.
        limits: How much is taken on.
        ways: Judges whether a secret may travel on a connection.
        instructions: What clients are told of this server.
        state_keys: Gives the keys that seal what clients carry between two rounds of a question; called in a thread. None
            makes a key of this process.
        principal: Whom callers stand for that show the operator's token, or none where none is asked for.
    """

    def __init__(
        self,
        bench: Bench,
        *,
        token: str | Tokens,
        authorization: ResourceServer | None = None,
        limits: Limits | None = None,
        ways: Ways | None = None,
        instructions: str | None = None,
        state_keys: Callable[[], Sequence[bytes]] | None = None,
        principal: str = "local",
    ) -> None:
        self._bench = bench
        self._authorization = authorization
        self._ways = ways or Ways()
        self._instructions = instructions
        self._state_keys = state_keys
        self._door = Door(token, authorization, principal=principal)
        self._desk = Desk(self._ways)
        self._loading: asyncio.Task[Engine] | None = None
        self._ended = False
        self.limits: Final = limits or Limits()

    # life

    async def begin(self) -> None:
        """Load the SDK, in a thread."""
        await self._engine()

    async def end(self) -> None:
        """End streams and sessions. Bounded in time."""
        self._ended = True
        if self._loading is None:
            return
        if self._loading.done() and not self._loading.cancelled() and self._loading.exception() is None:
            await self._loading.result().end()
        else:
            self._loading.cancel()

    async def _engine(self) -> Engine:
        if self._loading is None or (self._loading.done() and self._loading.exception() is not None):
            self._loading = asyncio.get_running_loop().create_task(self._load(), name="mcp load")
        return await asyncio.shield(self._loading)

    async def _load(self) -> Engine:
        module = await asyncio.to_thread(import_alone, "anykit.servers.mcp.engine")
        engine: type[Engine] = module.Engine
        keys = () if self._state_keys is None else await asyncio.to_thread(self._state_keys)
        return engine(
            self._bench,
            limits=self.limits,
            instructions=self._instructions,
            desk=self._desk,
            state_keys=keys,
        )

    # requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await refuse(scope, send, 404, "Not found")
            return
        path: str = scope["path"]
        if path.startswith(f"{CONFIGURE}/"):
            await self._desk(scope, receive, send)
        elif path.startswith(WELL_KNOWN):
            await self._metadata(scope, send)
        elif path.rstrip("/") == PATH:
            await self._mcp(scope, receive, send)
        else:
            await refuse(scope, send, 404, "Not found")

    async def _metadata(self, scope: Scope, send: Send) -> None:
        server = self._authorization
        if server is None or scope["path"] not in (server.metadata_path, WELL_KNOWN):
            await refuse(scope, send, 404, "Not found")
        elif scope["method"] not in ("GET", "HEAD"):
            await refuse(scope, send, 405, "GET", (b"allow", b"GET, HEAD"))
        else:
            await _respond(send, 200, server.metadata(), head=scope["method"] == "HEAD")

    async def _mcp(self, scope: Scope, receive: Receive, send: Send) -> None:
        method: str = scope["method"]
        if method not in ("POST", "GET", "DELETE"):
            await _fail(send, 405, INVALID_REQUEST, "Method Not Allowed", (b"allow", b"GET, POST, DELETE"))
            return
        asked = await self._door.ask(scope)
        if isinstance(asked, Turned):
            challenge = (b"www-authenticate", asked.challenge.encode())
            await _fail(send, asked.status, INVALID_REQUEST, asked.detail, challenge)
            return
        headers = [(name.decode("latin-1"), value.decode("latin-1").strip()) for name, value in scope["headers"]]
        body = b""
        if method == "POST":
            kinds = headers_named(scope["headers"], b"content-type")
            if len(kinds) != 1 or kinds[0].partition(b";")[0].strip().lower() != b"application/json":
                await _fail(send, 415, INVALID_REQUEST, "the body is application/json")
                return
            taken = await self._body(scope, receive, send)
            if taken is None:
                return
            body = taken
        try:
            async with asyncio.timeout(self.limits.early):
                engine = await self._engine()
        except TimeoutError:
            await _fail(send, 503, INTERNAL_ERROR, "MCP is not loaded yet; try again", (b"retry-after", b"5"))
            return
        except Exception:
            log.exception("MCP could not be loaded")
            await _fail(send, 503, INTERNAL_ERROR, "MCP could not be loaded")
            return
        if self._ended:
            await _fail(send, 503, INTERNAL_ERROR, "the host is shutting down")
        elif method == "POST":
            await engine.post(body, headers, asked.principal, self._place(scope), receive, send)
        elif method == "GET":
            await engine.get(headers, asked.principal, receive, send)
        else:
            await engine.delete(headers, asked.principal, send)

    def _place(self, scope: Scope) -> Place:
        secure = self._ways.secure(scope)
        proxied = headers_named(scope["headers"], b"x-forwarded-proto")
        tls = scope.get("scheme") == "https" or (secure and bool(proxied) and proxied[0].strip().lower() == b"https")
        [host] = headers_named(scope["headers"], b"host") or [b"127.0.0.1"]
        return Place(f"{'https' if tls else 'http'}://{host.decode('latin-1')}", secure)

    async def _body(self, scope: Scope, receive: Receive, send: Send) -> bytes | None:
        """The body; None once an error is sent, or the client is gone."""
        limit = self.limits.body
        declared = headers_named(scope["headers"], b"content-length")
        if declared and declared[0].isdigit() and int(declared[0]) > limit:
            await _fail(send, 413, INVALID_REQUEST, f"a message has at most {limit} bytes")
            return None
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.limits.body_time):
                while True:
                    message: Message = await receive()
                    if message["type"] != "http.request":
                        return None
                    piece: bytes = message.get("body", b"")
                    size += len(piece)
                    if size > limit:
                        await _fail(send, 413, INVALID_REQUEST, f"a message has at most {limit} bytes")
                        return None
                    parts.append(piece)
                    if not message.get("more_body", False):
                        return parts[0] if len(parts) == 1 else b"".join(parts)
        except TimeoutError:
            await _fail(send, 408, INVALID_REQUEST, "the body did not arrive in time")
            return None


async def _fail(send: Send, status: int, code: int, message: str, *extra: tuple[bytes, bytes]) -> None:
    """An error of HTTP, with a JSON-RPC error as its body."""
    await _respond(send, status, encode(error_message(None, code, message)), *extra)


async def _respond(send: Send, status: int, body: bytes, *extra: tuple[bytes, bytes], head: bool = False) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *extra]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else body})
