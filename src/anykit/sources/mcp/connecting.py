"""From a server's description to an open session: a child or a client, the transport, the era, and the SDK's import."""

from __future__ import annotations

import asyncio
import functools
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from anykit.capabilities import Unavailable
from anykit.transports import HttpClient, ProcessTransport, spawn
from anykit.transports.importing import import_alone

from .credentials import Credentials, Fixed
from .helper import helped
from .servers import Era, McpServer, Offers, Transport
from .vault import Forgetful, Vault

if TYPE_CHECKING:
    from .channel import Channel
    from .link import McpLink
    from .listening import Watcher


@functools.cache
def begin_import() -> Future[ModuleType]:
    """Import the SDK and what of ours is typed by it, in a thread: a second of CPU that the loop does not wait for."""
    executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="anykit-mcp-sdk")
    future = executor.submit(import_alone, f"{__package__}.link")
    executor.shutdown(wait=False)
    future.add_done_callback(_forget_failure)
    return future


def _forget_failure(future: Future[ModuleType]) -> None:
    """A failed import is tried again with the next connection."""
    if not future.cancelled() and future.exception() is not None:
        begin_import.cache_clear()


async def sdk() -> None:
    """Wait until the SDK is imported."""
    await asyncio.shield(asyncio.wrap_future(begin_import()))


async def _sdk_within(limit: asyncio.Timeout) -> None:
    """The same; that time is none of the server's."""
    if begin_import().done():
        begin_import().result()
        return
    loop = asyncio.get_running_loop()
    when = limit.when()
    limit.reschedule(None)
    began = loop.time()
    await sdk()
    if when is not None:
        limit.reschedule(when + loop.time() - began)


class Connector:
    """Opens sessions with one server, one after another, and remembers what it found out about it."""

    def __init__(self, server: McpServer, offers: Offers, watcher: Watcher, vault: Vault | None) -> None:
        self._server = server
        self._offers = offers
        self._watcher = watcher
        self._vault = vault
        self._credentials: Credentials | None = None
        self._era: Era | None = None
        """What it has to be asked in, where asking otherwise ended it once."""
        self._asked_to_death = False
        self._spoken: Transport | None = None
        self._process: ProcessTransport | None = None
        self._last_words = ""

    @property
    def pid(self) -> int | None:
        """The child, while there is one."""
        return None if self._process is None else self._process.pid

    @property
    def stderr(self) -> str:
        """The end of what the child wrote to stderr, also of the last one."""
        return self._last_words if self._process is None else self._process.stderr

    async def connect(self, stack: AsyncExitStack, limit: asyncio.Timeout) -> McpLink:
        """Open a session; what has to be closed goes on `stack`. `limit` is the deadline. Raises `CapabilityError`."""
        if self._server.command is not None:
            return await self._to_child(stack, limit)
        return await self._to_url(stack, limit)

    async def _to_child(self, stack: AsyncExitStack, limit: asyncio.Timeout) -> McpLink:
        """Start the child; once more, the old way, if being asked for the new era was the end of it."""
        eras: list[Era] = [self._era or self._server.era]
        if eras[0] == "auto" and not self._asked_to_death:
            eras.append("legacy")
        for era in eras:
            attempt = await stack.enter_async_context(AsyncExitStack())
            try:
                channel = await self._child(attempt, limit)
                link = await self._session(attempt, channel, era)
            except Unavailable as error:
                self._era = None
                if era == eras[-1] or not error.detail.get("lost"):
                    raise
                self._asked_to_death = True
                await attempt.aclose()
            else:
                self._era = era if era != self._server.era else None
                return link
        raise AssertionError("unreachable")

    async def _child(self, stack: AsyncExitStack, limit: asyncio.Timeout) -> Channel:
        assert self._server.command is not None
        begin_import()  # meanwhile the child starts
        process = await spawn(self._server.command)
        self._process = process
        stack.push_async_callback(self._bury, process)
        await _sdk_within(limit)
        from .channel import LineChannel  # noqa: PLC0415 - loaded by now: it costs a second

        return LineChannel(process)

    async def _bury(self, process: ProcessTransport) -> None:
        await process.close()
        if self._process is process:
            self._last_words = process.stderr
            self._process = None

    async def _to_url(self, stack: AsyncExitStack, limit: asyncio.Timeout) -> McpLink:
        """Connect over streamable HTTP, or over the transport before it where the address speaks only that."""
        await _sdk_within(limit)
        first_error: Unavailable | None = None
        for transport in self._transports():
            attempt = await stack.enter_async_context(AsyncExitStack())
            try:
                channel = await self._http(attempt, transport)
                link = await self._session(attempt, channel, self._server.era)
            except Unavailable as error:
                self._spoken = None
                if not error.detail.get("not_spoken"):
                    raise
                first_error = first_error or error
                await attempt.aclose()
            else:
                self._spoken = transport
                return link
        assert first_error is not None
        raise first_error

    def _transports(self) -> list[Transport]:
        if self._server.transport != "auto":
            return [self._server.transport]
        if self._spoken is not None:
            return [self._spoken]
        if urlsplit(self._server.url).path.rstrip("/").endswith("/sse"):
            return ["sse", "http"]
        return ["http", "sse"]

    async def _http(self, stack: AsyncExitStack, transport: Transport) -> Channel:
        from .event_stream import EventStream  # noqa: PLC0415 - loaded by now
        from .streamable import StreamableHttp  # noqa: PLC0415 - loaded by now

        server = self._server
        headers = server.headers
        if server.headers_helper:
            more = await helped(server.name, server.headers_helper, server.url)
            taken = {name.lower() for name in more}
            headers = {**{name: value for name, value in headers.items() if name.lower() not in taken}, **more}
        client = HttpClient(guard=server.guard, headers=headers, connect_timeout=server.connect_timeout)
        stack.push_async_callback(client.close)
        if transport == "sse":
            stream = EventStream(server, client, self._shown())
            stack.push_async_callback(stream.close)
            await stream.open()
            return stream
        channel = StreamableHttp(server, client, self._shown())
        stack.push_async_callback(channel.close)
        return channel

    def _shown(self) -> Credentials:
        """The credentials, the same over all sessions: a token that was renewed is renewed for all."""
        if self._credentials is None:
            self._credentials = self._made_credentials()
        return self._credentials

    def _made_credentials(self) -> Credentials:
        server = self._server
        if server.oauth is None and (self._vault is None or server.credentials or not server.login):
            return Fixed(server.token)
        from .oauth import OAuthCredentials  # noqa: PLC0415 - the SDK's, loaded by now

        return OAuthCredentials(server, self._vault or Forgetful())

    async def _session(self, stack: AsyncExitStack, channel: Channel, era: Era) -> McpLink:
        from .link import open_session  # noqa: PLC0415 - loaded by now

        return await stack.enter_async_context(open_session(self._server, self._offers, channel, self._watcher, era))
