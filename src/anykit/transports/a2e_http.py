"""An A2E session over HTTP, as an agent has it: lines out by `POST /send`, lines in by `GET /stream`.

open:  POST /session -> session_id       at the URL given, or under /a2e
send:  POST /send          X-Session-Id, one message a body
in:    GET /stream         server-sent events; dropped -> again with Last-Event-ID
close: DELETE /session
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
from collections import deque
from collections.abc import Mapping
from typing import cast
from urllib.parse import urlsplit, urlunsplit

from anykit.capabilities import Json, MetadataMap, Unavailable

from .base import Received, TransportClosed, check_line
from .guard import AddressRefused, is_loopback
from .http_client import HttpAnswer, HttpClient, public_url
from .lines import MAX_LINE, Oversized
from .sse import SseDecoder

PREFIX = "/a2e"
"""Where a host that serves more than A2E may keep it."""
CONNECT_PAUSES = (0.1, 0.4)
"""Seconds before a request that could not be sent is tried again."""
STREAM_PAUSES = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0)
"""Seconds before a dropped stream is opened again; nothing received after all of them ends the transport."""
IDLE_SECONDS = 60.0
"""How long a stream that is known to send heartbeats may be silent."""
CLOSE_SECONDS = 2.0
HIGH_WATER = 8 * 1024 * 1024
"""Bytes held unread before the stream is not read on."""

_NOT_HERE = (404, 405)
_SESSION_ID = re.compile(r"[!-~]{1,256}")


class HttpSessionTransport:
    """The lines of one session; made by `open`."""

    def __init__(
        self, client: HttpClient, base: str, session_id: str, *, max_line: int = MAX_LINE, owns_client: bool = False
    ) -> None:
        self.session_id = session_id
        self.url = public_url(base)
        """Where the host is, fit to be shown."""
        self.resumed = 0
        """How often the stream was taken up again."""
        parts = urlsplit(base)
        self._secure = parts.scheme == "https" or is_loopback(parts.hostname or "")
        self._client = client
        self._owns_client = owns_client
        self._base = base
        self._headers = {"x-session-id": session_id}
        self._max_line = max_line
        self._items: deque[Received] = deque()
        self._held = 0
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._over: str | None = None
        self._detail: MetadataMap = {}
        self._closed = False
        self._last_event_id = ""
        self._received_any = False
        self._wait = 0.0
        self._reader = asyncio.create_task(self._read(), name=f"anykit-a2e-stream-{self.url}")

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        client: HttpClient | None = None,
        headers: Mapping[str, str] | None = None,
        max_line: int = MAX_LINE,
    ) -> HttpSessionTransport:
        """Start a session at `url`, the host's base with or without `/a2e`.

        Args:
            url: `http://HOST:PORT`, also with a path that a proxy puts before it.
            client: Stays the caller's. Without one a client that reaches public addresses only is made, and closed.
            headers: Sent along where no client is given.
            max_line: Bytes of a message received.

        Raises `Unavailable` with what the host answered; `AddressRefused`.
        """
        ours = HttpClient(headers=headers) if client is None else client
        try:
            base, session_id = await _start_session(ours, url)
        except BaseException:
            if client is None:
                await ours.close()
            raise
        return cls(ours, base, session_id, max_line=max_line, owns_client=client is None)

    @property
    def secure(self) -> bool:
        """TLS, or this machine."""
        return self._secure

    async def send(self, line: bytes) -> None:
        """See `LineTransport`. Returns when the host has taken the message.

        Raises `TransportClosed` where the session is over; `Unavailable` where this message was refused (its `detail`
        has the `status`) or the request was lost, `sent` says whether it may have arrived.
        """
        check_line(line)
        if self._over is not None:
            raise TransportClosed(self._over, detail=self._detail)
        headers = {**self._headers, "content-type": "application/json"}
        answer = await _post(self._client, f"{self._base}/send", headers, line)
        if 200 <= answer.status < 300:
            return
        detail: MetadataMap = {"status": answer.status}
        if "retry-after" in answer.headers:
            detail["retry_after"] = answer.headers["retry-after"]
        if answer.status in (404, 410):
            self._end(f"{self.url}: the session has ended", detail)
            raise TransportClosed(f"{self.url}: the session has ended", detail=detail)
        refused = f"{self.url} did not take the message: {answer.describe()}"
        raise Unavailable(refused, sent=answer.status >= 500 and answer.status != 503, detail=detail)

    async def receive(self) -> Received:
        """See `LineTransport`."""
        while not self._items:
            if self._over is not None:
                raise TransportClosed(self._over, detail=self._detail)
            self._arrived.clear()
            await self._arrived.wait()
        item = self._items.popleft()
        if isinstance(item, bytes):
            self._held -= len(item)
        if self._held <= HIGH_WATER // 2:
            self._room.set()
        return item

    async def close(self) -> None:
        """See `LineTransport`. Ends the session on the host, which has two seconds to answer."""
        if self._closed:
            return
        self._closed = True
        ended_before = self._over is not None
        self._items.clear()
        self._end(f"{self.url}: closed")
        self._reader.cancel()
        await asyncio.wait([self._reader])
        try:
            if not ended_before:
                with contextlib.suppress(Unavailable):
                    await self._client.request(
                        "DELETE", f"{self._base}/session", headers=self._headers, timeout=CLOSE_SECONDS
                    )
        finally:
            if self._owns_client:
                await self._client.close()

    async def _read(self) -> None:
        """Own the stream: open it, and again when it drops, until the session is over."""
        tries = 0
        while self._over is None:
            self._received_any = False
            reason = "the host ended the stream"
            try:
                await self._read_once()
            except AddressRefused as error:
                self._end(error.message)
                return
            except Unavailable as error:
                reason = error.message
            except Exception as error:  # a fault of ours must not leave receivers waiting for ever
                self._end(f"{self.url}: {type(error).__name__} while reading the stream")
                raise
            if self._over is not None:
                return
            tries = 0 if self._received_any else tries
            if tries >= len(STREAM_PAUSES):
                self._end(f"{self.url}: stream lost: {reason}")
                return
            pause = max(STREAM_PAUSES[tries] * (0.5 + random.random()), min(self._wait, STREAM_PAUSES[-1]))
            tries += 1
            await asyncio.sleep(pause)
            self.resumed += 1

    async def _read_once(self) -> None:
        headers = {**self._headers, "accept": "text/event-stream", "cache-control": "no-store"}
        if self._last_event_id:
            headers["last-event-id"] = self._last_event_id
        async with self._client.stream("GET", f"{self._base}/stream", headers=headers, max_redirects=0) as stream:
            if stream.status in (404, 410):
                self._end(f"{self.url}: the session has ended", {"status": stream.status})
                return
            if stream.status != 200 or stream.content_type != "text/event-stream":
                answer = await stream.excerpt()
                error = answer.unexpected("an event stream", sent=False)
                if stream.status < 500 and stream.status != 429:
                    self._end(error.message, error.detail)
                    return
                raise error
            decoder = SseDecoder(self._max_line, last_event_id=self._last_event_id)
            async with contextlib.aclosing(stream.chunks()) as chunks:
                async for chunk in chunks:
                    self._received_any = True
                    self._take(decoder, chunk)
                    await self._room.wait()
                    if decoder.comments:
                        stream.idle = IDLE_SECONDS

    def _take(self, decoder: SseDecoder, chunk: bytes) -> None:
        for event in decoder.feed(chunk):
            if isinstance(event, Oversized):
                self._put(event)
            elif event.data and not event.data.isspace():
                self._put(
                    event.data.replace(b"\n", b" ")
                )  # between the tokens of a JSON value one is as good as the other
        self._last_event_id = decoder.last_event_id
        if decoder.retry is not None:
            self._wait = decoder.retry / 1000

    def _put(self, item: Received) -> None:
        self._items.append(item)
        if isinstance(item, bytes):
            self._held += len(item)
        if self._held > HIGH_WATER:
            self._room.clear()
        self._arrived.set()

    def _end(self, reason: str, detail: MetadataMap | None = None) -> None:
        if self._over is None:
            self._over = reason
            self._detail = detail or {}
        self._arrived.set()
        self._room.set()


def _bases(url: str) -> tuple[str, str]:
    """Give where the host may be: as written first, then with or without `/a2e`."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    other = path.removesuffix(PREFIX) if path.endswith(PREFIX) else path + PREFIX
    bare = parts._replace(query="", fragment="")
    return urlunsplit(bare._replace(path=path)), urlunsplit(bare._replace(path=other))


async def _start_session(client: HttpClient, url: str) -> tuple[str, str]:
    """Ask for a session. Gives the base URL that answered, and the session's id."""
    first: Unavailable | None = None
    for base in _bases(url):
        answer = await _post(client, f"{base}/session", {"accept": "application/json"}, None)
        try:
            return base, _session_id(answer)
        except Unavailable as error:
            # "/session" may be a page, or nothing, where A2E lives under a prefix
            if answer.status not in _NOT_HERE and answer.content_type == "application/json":
                raise
            if first is None or (first.detail["status"] in _NOT_HERE and answer.status not in _NOT_HERE):
                first = error
    assert first is not None
    raise first


async def _post(client: HttpClient, url: str, headers: Mapping[str, str], body: bytes | None) -> HttpAnswer:
    """Post, and again after a pause where nothing was sent."""
    for pause in CONNECT_PAUSES:
        try:
            return await client.request("POST", url, headers=headers, body=body, max_redirects=0)
        except Unavailable as error:
            if error.sent or isinstance(error, AddressRefused):
                raise
        await asyncio.sleep(pause * (0.5 + random.random()))
    return await client.request("POST", url, headers=headers, body=body, max_redirects=0)


def _session_id(answer: HttpAnswer) -> str:
    value: Json = None
    if answer.status in (200, 201):
        with contextlib.suppress(Unavailable):
            value = answer.json()
    session_id = cast("dict[str, Json]", value).get("session_id") if isinstance(value, dict) else None
    if isinstance(session_id, str) and _SESSION_ID.fullmatch(session_id):
        return session_id
    raise answer.unexpected("an A2E session", sent=False)
