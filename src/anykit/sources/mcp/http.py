"""What both HTTP transports share: requests over our own guarded client, credentials, redirects, events.

HttpChannel
├── StreamableHttp     a POST a message, since 2025-03-26 (streamable.py)
└── EventStream        one stream down, an address up, until 2024-11-05 (event_stream.py)

A request that fails costs only itself. Imports the SDK; comes in with `session.py`.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urljoin, urlsplit

from anykit.capabilities import MetadataMap, Unavailable
from anykit.transports import HttpClient, HttpStream, Oversized, ServerEvent, SseDecoder

from .channel import Channel, Delivery
from .credentials import Credentials, refusal
from .frames import NotAFrame
from .servers import McpServer

FOREVER = 7 * 24 * 3600.0
"""Seconds for an answer to begin: how long that may be is for the caller's deadline to say, which cancels the request."""
MESSAGE_SECONDS = 10.0
"""What sending a notification or an answer may take."""
MAX_REDIRECTS = 3
EVENTS = "text/event-stream"
JSON = "application/json"


class NotSpoken(Unavailable):
    """The address does not speak this transport; perhaps it speaks the other one. Nothing was carried out."""

    def __init__(self, message: str, detail: MetadataMap) -> None:
        super().__init__(message, detail={**detail, "not_spoken": True})


class HttpChannel(Channel):
    """What both transports share: the client, credentials, tasks, and a queue of what came."""

    def __init__(self, server: McpServer, client: HttpClient, credentials: Credentials) -> None:
        super().__init__()
        self._server = server
        self._client = client
        self._credentials = credentials
        self._url = server.url
        self._arrived = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self.on_unreachable: Callable[[str], None] = _nobody
        """Told when a request could not even be sent."""

    async def receive(self) -> Delivery:
        """See `Channel`."""
        while not self._ready:
            if self.ended.done():
                raise Unavailable(self.ended.result(), sent=True)
            self._arrived.clear()
            await self._arrived.wait()
        return self._ready.popleft()

    def _deliver(self, message: object, context: contextvars.Context | None = None) -> None:
        super()._deliver(message, context)  # pyright: ignore[reportArgumentType]
        self._arrived.set()

    def _lost(self, reason: str) -> None:
        super()._lost(reason)
        self._arrived.set()

    def _spawn(self, work: Awaitable[None], name: str) -> asyncio.Task[None]:
        async def run() -> None:
            await work

        task = asyncio.create_task(run(), name=f"anykit-mcp-{name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """End every request, bounded in time."""
        self._lost("closed")
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @asynccontextmanager
    async def _request(
        self,
        method: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        seconds: float = FOREVER,
    ) -> AsyncGenerator[HttpStream, None]:
        """Send one request: credentials renewed once where they are refused, redirects followed within the origin.

        Entering raises `Refused` for a 401 or 403, `Unavailable` otherwise.
        """
        renewed = False
        redirects = 0
        while True:
            credentials = await self._credentials.headers()
            async with self._client.stream(
                method, self._url, headers={**credentials, **headers}, body=body, timeout=seconds, max_redirects=0
            ) as answer:
                again = False
                if answer.status in (401, 403) and not renewed:
                    renewed = True
                    again = await self._credentials.challenged(answer.status, answer.headers, credentials)
                elif redirects < MAX_REDIRECTS and (elsewhere := _within_origin(answer)) is not None:
                    redirects += 1
                    self._url = elsewhere
                    again = True
                if not again:
                    if answer.status in (401, 403):
                        raise refusal(self._server, answer.status, answer.headers)
                    yield answer
                    return

    async def _events(self, answer: HttpStream, decoder: SseDecoder) -> AsyncGenerator[ServerEvent, None]:
        """The events of a stream with something in them. Raises `Unavailable` where it breaks off."""
        async for chunk in answer.chunks():
            for event in decoder.feed(chunk):
                if isinstance(event, Oversized):
                    raise Unavailable(f"{answer.url}: {event}", sent=True)
                if event.data:
                    yield event
                    await self._breathe()

    async def _take_event(self, event: ServerEvent, context: contextvars.Context | None = None) -> bool:
        """Deliver what an event holds; whether it is an answer."""
        if event.event != "message":
            return False
        try:
            return self._take(await self._frames(event.data), context)
        except NotAFrame:
            self._noise(event.data)
            return False


def _nobody(reason: str) -> None:
    """Nobody wants to know."""


def _within_origin(answer: HttpStream) -> str | None:
    """Where a redirect leads, if the same request may be sent there: the same origin, or its TLS twin."""
    target = answer.headers.get("location", "").strip()
    if answer.status not in (307, 308) or not target:
        return None
    try:
        url = urljoin(answer.location, target)
        here, there = origin_of(answer.location), origin_of(url)
    except ValueError:
        return None
    if here == there or (here[1] == there[1] and here[::2] == ("http", 80) and there[::2] == ("https", 443)):
        return url
    return None


def origin_of(url: str) -> tuple[str, str, int]:
    """Scheme, host and port."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
