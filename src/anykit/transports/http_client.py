"""A small HTTP client for talking to peers: guarded, bounded, one session a peer, and errors that say what happened.

    HttpClient.request ─> stream ─> hop ─guard─> hop ─guard─> answer
                                    (each redirect is a hop)

aiohttp is imported with the first request, in a thread: it costs half a second.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import importlib
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from ssl import SSLContext
from typing import Any, Protocol
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from anykit.capabilities import Json, Unavailable

from .guard import PUBLIC_ONLY, SCHEMES, AddressGuard
from .lines import MAX_LINE

TIMEOUT = 30.0
"""Seconds for a request with its redirects and its body."""
CONNECT_TIMEOUT = 15.0
MAX_BODY = MAX_LINE
MAX_REDIRECTS = 5
EXCERPT = 200
"""Characters of a body that an error quotes."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TELL_ANYONE = frozenset({"accept", "accept-language", "user-agent", "content-type"})
"""Headers that go along to another origin; any other may be a credential."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One request to one origin."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    body: bytes | None = field(default=None, repr=False)
    exact: bool = False
    """The URL is ASCII and goes over the wire as it stands, nothing in it quoted anew."""


class WireAnswer(Protocol):
    """The head of an answer, and its body as it comes."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Give the body. Raises `Unavailable` (sent) where it breaks off."""
        ...

    async def read(self, most: int) -> tuple[bytes, bool]:
        """Give the body's first `most` bytes, and whether that is all. Raises as `chunks` does."""
        ...


class Wire(Protocol):
    """What sends hops: the seam to the HTTP library."""

    def send(self, hop: Hop, leaving: Callable[[], None]) -> AbstractAsyncContextManager[WireAnswer]:
        """Send `hop` to an address that the guard lets pass; call `leaving` before the first byte leaves.

        Entering raises `Unavailable`, `AddressRefused`.
        """
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A whole answer."""

    url: str
    """Where it came from in the end, fit to be shown."""
    status: int
    headers: Mapping[str, str] = field(repr=False)
    """Names in lower case."""
    body: bytes = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """What `describe` must not quote."""

    @property
    def content_type(self) -> str:
        """The media type without parameters, in lower case."""
        return media_type(self.headers)

    def describe(self) -> str:
        """Say what came: status, content type and a short excerpt of the body, or where it wants to send us."""
        if self.status in _REDIRECTS and "location" in self.headers:
            return f"HTTP {self.status}, a redirect to {public_url(urljoin(self.url, self.headers['location']))}"
        excerpt = _excerpt(self.body, self.secrets)
        return f"HTTP {self.status} {self.content_type or 'without content type'}, {excerpt}"

    def json(self) -> Json:
        """Give the body's JSON value. Raises `Unavailable` (sent) with a description if it is none."""
        try:
            return json.loads(self.body, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            raise self.unexpected("JSON") from None

    def unexpected(self, wanted: str, *, sent: bool = True) -> Unavailable:
        """Give the error for an answer that is not the protocol."""
        detail: dict[str, Any] = {"status": self.status, "content_type": self.content_type}
        return Unavailable(f"{self.url} did not answer with {wanted}: {self.describe()}", sent=sent, detail=detail)


class HttpStream:
    """An answer whose body is still coming; lives inside `HttpClient.stream`."""

    def __init__(self, hop: Hop, wire: WireAnswer, *, max_body: int, secrets: tuple[str, ...]) -> None:
        self.url = public_url(hop.url)
        self.location = hop.url
        """The real URL in the end; may hold secrets in its query."""
        self.status = wire.status
        self.headers = wire.headers
        self.idle: float | None = None
        """Seconds that the body may be silent; may be set while it comes."""
        self._wire = wire
        self._max_body = max_body
        self._secrets = secrets

    @property
    def content_type(self) -> str:
        """The media type without parameters, in lower case."""
        return media_type(self.headers)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Give the body as it comes. Raises `Unavailable` where it breaks off, or is silent for `idle` seconds."""
        chunks = aiter(self._wire.chunks())
        while True:
            try:
                async with asyncio.timeout(self.idle):
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise Unavailable(f"{self.url} was silent for {self.idle:g} s", sent=True) from None
            yield chunk

    async def read(self) -> HttpAnswer:
        """Read the whole body. Raises `Unavailable` if it is too large."""
        body = bytearray()
        async for chunk in self._wire.chunks():
            body += chunk
            if len(body) > self._max_body:
                raise Unavailable(
                    f"{self.url} answered with more than {self._max_body} bytes",
                    sent=True,
                    detail={"status": self.status, "reason": "too_large"},
                )
        return HttpAnswer(self.url, self.status, self.headers, bytes(body), self._secrets)

    async def excerpt(self, seconds: float = 2.0) -> HttpAnswer:
        """Read only as much as an error would quote, from a body that may never end."""
        body = bytearray()
        try:
            async with asyncio.timeout(seconds):
                async for chunk in self._wire.chunks():
                    body += chunk
                    if len(body) > 4 * EXCERPT:
                        break
        except (TimeoutError, Unavailable):
            pass
        return HttpAnswer(self.url, self.status, self.headers, bytes(body), self._secrets)


class HttpClient:
    """A session with one peer. Close it, or use it as an async context manager.

    Args:
        guard: Which addresses may be connected to; by default public ones only.
        headers: Sent with every request to the origin that the request names, never to another one.
        timeout: Seconds for a request as a whole.
        connect_timeout: Seconds for making a connection.
        max_body: Bytes of an answer, unpacked.
        max_redirects: How often a request may be sent elsewhere.
        tls: Certificates to trust, where the system's are not right.
        wire: What sends; by default aiohttp.
    """

    def __init__(
        self,
        *,
        guard: AddressGuard = PUBLIC_ONLY,
        headers: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
        connect_timeout: float = CONNECT_TIMEOUT,
        max_body: int = MAX_BODY,
        max_redirects: int = MAX_REDIRECTS,
        tls: SSLContext | None = None,
        wire: Wire | None = None,
    ) -> None:
        self._guard = guard
        self._headers = {name.lower(): value for name, value in (headers or {}).items()}
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._max_body = max_body
        self._max_redirects = max_redirects
        self._tls = tls
        self._wire = wire
        self._closed = False

    async def __aenter__(self) -> HttpClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout: float | None = None,
        max_redirects: int | None = None,
    ) -> HttpAnswer:
        """Send a request and read the whole answer, whatever its status.

        Raises `Unavailable` with the root cause; its `sent` says whether the request may have been carried out.
        `AddressRefused` (an `Unavailable`) where the guard says no.
        """
        seconds = self._timeout if timeout is None else timeout
        progress = _Progress()
        try:
            async with asyncio.timeout(seconds):
                async with self._stream(
                    self._first(method, url, headers, body), progress, seconds, max_redirects
                ) as stream:
                    return await stream.read()
        except TimeoutError:
            raise Unavailable(f"{public_url(url)} did not answer within {seconds:g} s", sent=progress.sent) from None

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout: float | None = None,
        max_redirects: int | None = None,
    ) -> AsyncGenerator[HttpStream, None]:
        """Send a request and give the answer while its body comes. `timeout` is for its head only; see `request`."""
        seconds = self._timeout if timeout is None else timeout
        hop = self._first(method, url, headers, body)
        async with self._stream(hop, _Progress(), seconds, max_redirects) as stream:
            yield stream

    async def close(self) -> None:
        """Close every connection."""
        self._closed = True
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.close()

    @asynccontextmanager
    async def _stream(
        self, hop: Hop, progress: _Progress, seconds: float, max_redirects: int | None
    ) -> AsyncGenerator[HttpStream, None]:
        wire = await self._open()
        left = self._max_redirects if max_redirects is None else max_redirects
        first = public_url(hop.url)
        while True:
            async with AsyncExitStack() as stack:
                progress.sent = False
                try:
                    async with asyncio.timeout(seconds):
                        answer = await stack.enter_async_context(wire.send(hop, progress.leaving))
                except TimeoutError:
                    message = f"{public_url(hop.url)} did not answer within {seconds:g} s"
                    raise Unavailable(message, sent=progress.sent) from None
                following = _redirect(hop, answer) if max_redirects != 0 else None
                if following is None:
                    progress.sent = True
                    yield HttpStream(hop, answer, max_body=self._max_body, secrets=self._secrets(hop))
                    return
            if left <= 0:
                raise Unavailable(f"{first} redirects too often")
            left -= 1
            self._guard.check_url(following.url)
            hop = following

    def _first(self, method: str, url: str, headers: Mapping[str, str] | None, body: bytes | None) -> Hop:
        self._guard.check_url(url)
        url, basic = _without_userinfo(url)
        merged = {"user-agent": "anykit", **self._headers}
        if basic is not None:
            merged.setdefault("authorization", basic)
        merged |= {name.lower(): value for name, value in (headers or {}).items()}
        return Hop(method.upper(), url, merged, body)

    async def _open(self) -> Wire:
        if self._wire is None and not self._closed:
            module = await asyncio.to_thread(importlib.import_module, "anykit.transports.http_aiohttp")
            if self._wire is None and not self._closed:
                self._wire = module.open_wire(self._guard, connect_timeout=self._connect_timeout, tls=self._tls)
        if self._wire is None:
            raise Unavailable("the HTTP client is closed")
        return self._wire

    def _secrets(self, hop: Hop) -> tuple[str, ...]:
        """Give the header values that a peer could echo and an error must not quote."""
        values = [value for name, value in hop.headers.items() if name not in _TELL_ANYONE]
        words = [word for value in values for word in value.split() if len(word) >= 6]
        return tuple(sorted({*words, *(value for value in values if len(value) >= 6)}, key=len, reverse=True))


class _Progress:
    """How far a request got."""

    def __init__(self) -> None:
        self.sent = False

    def leaving(self) -> None:
        self.sent = True


@functools.lru_cache(256)
def public_url(url: str) -> str:
    """Give a URL fit for a log or an error: no user, no password, no query, no fragment."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return "the URL"
    if ":" in host:
        host = f"[{host}]"
    return f"{parts.scheme}://{host}{port}{parts.path}{'?...' if parts.query else ''}"


def media_type(headers: Mapping[str, str]) -> str:
    """Give the content type without its parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _without_userinfo(url: str) -> tuple[str, str | None]:
    """Split the credentials off a URL, as a Basic `Authorization` value."""
    parts = urlsplit(url)
    userinfo, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, None
    user, _, password = userinfo.partition(":")
    token = base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
    return urlunsplit(parts._replace(netloc=host)), f"Basic {token}"


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or SCHEMES.get(parts.scheme)


def _redirect(hop: Hop, answer: WireAnswer) -> Hop | None:
    """Give the hop that a redirecting answer asks for. Raises `Unavailable` where it must not be followed."""
    target = answer.headers.get("location", "").strip().replace(" ", "%20")
    if answer.status not in _REDIRECTS or not target:
        return None
    try:
        url, _ = _without_userinfo(urljoin(hop.url, target))  # a peer does not choose our credentials
        same_origin = _origin(url) == _origin(hop.url)
    except ValueError:
        raise Unavailable(f"{public_url(hop.url)} redirects to what is not a URL") from None
    headers = dict(hop.headers)
    method, body = hop.method, hop.body
    becomes_get = (answer.status == HTTPStatus.SEE_OTHER and method != "HEAD") or (
        answer.status in (HTTPStatus.MOVED_PERMANENTLY, HTTPStatus.FOUND) and method == "POST"
    )
    if becomes_get:
        method, body = "GET", None
        headers.pop("content-type", None)
    if not same_origin:
        if method not in ("GET", "HEAD"):
            raise Unavailable(
                f"{public_url(hop.url)} redirects {method} to another origin ({public_url(url)}), which is not followed"
            )
        headers = {name: value for name, value in headers.items() if name in _TELL_ANYONE}
    return Hop(method, url, headers, body)


def _excerpt(body: bytes, secrets: tuple[str, ...]) -> str:
    if not body:
        return "no body"
    text = body[: 4 * EXCERPT].decode("utf-8", "replace")
    for secret in secrets:
        text = text.replace(secret, "***")
    text = re.sub(r"\s+", " ", "".join(character if character.isprintable() else " " for character in text)).strip()
    return repr(text if len(text) <= EXCERPT else text[:EXCERPT] + "...")


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")
