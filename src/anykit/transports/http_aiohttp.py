"""The only module that knows aiohttp; imported with the first request."""

from __future__ import annotations

import asyncio
import io
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextvars import ContextVar
from ssl import SSLCertVerificationError, SSLContext
from typing import TypeAlias

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import Connection
from yarl import URL

from anykit.capabilities import Unavailable

from .guard import AddressGuard, RefusedSocket, connecting_to
from .http_client import Hop, public_url

KEEP_ALIVE = 4.0
"""Seconds that an idle connection is kept: less than the 5 that uvicorn keeps it, so that no request meets its end."""
CHUNK = 64 * 1024
SocketAddress: TypeAlias = tuple[int, int, int, str, tuple[str | int, ...]]
_BODILESS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_NO_GUESS = ("content-type",)
"""What a body is, is said by whoever sends it, or not at all."""
MAX_HOSTS = 256
"""Origins that a session remembers to be allowed by name; their addresses are checked with each connection."""


class GuardedResolver(AbstractResolver):
    """Looks names up and gives only the addresses that the guard lets pass."""

    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """See aiohttp. Raises `AddressRefused` where there is no other address."""
        return [
            ResolveResult(hostname=host, host=address, port=port, family=kind, proto=0, flags=socket.AI_NUMERICHOST)
            for kind, address in await self._guard.resolve(host, port, family)
        ]

    async def close(self) -> None:
        """Nothing is held."""


def guarded_connector(
    guard: AddressGuard, *, socket_factory: Callable[[SocketAddress], socket.socket] | None = None
) -> aiohttp.TCPConnector:
    """Give a connector that connects only where `guard` lets it, for this client or any other user of aiohttp."""
    return aiohttp.TCPConnector(
        resolver=GuardedResolver(guard),
        socket_factory=socket_factory or guard.open_socket,
        keepalive_timeout=KEEP_ALIVE,
    )


def open_wire(guard: AddressGuard, *, connect_timeout: float, tls: SSLContext | None) -> AiohttpWire:
    """Open a session. Needs a running loop."""
    return AiohttpWire(guard, connect_timeout=connect_timeout, tls=tls)


class AiohttpWire:
    """A `Wire` over one aiohttp session."""

    def __init__(self, guard: AddressGuard, *, connect_timeout: float, tls: SSLContext | None) -> None:
        self._guard = guard
        self._connect_timeout = connect_timeout
        self.tls = True if tls is None else tls
        self.session = aiohttp.ClientSession(
            connector=guarded_connector(guard, socket_factory=self._open_socket),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_timeout, connect=connect_timeout),
            request_class=_Request,
            trust_env=False,  # a proxy from the environment would connect where the guard cannot look
        )
        self._hosts: dict[str, str] = {}

    def send(self, hop: Hop, leaving: Callable[[], None]) -> _Sending:
        """See `Wire`."""
        return _Sending(self, hop, leaving)

    def target(self, hop: Hop) -> tuple[URL, str]:
        """Give URL and host of a hop that may be sent by its name. Raises `Unavailable`, `AddressRefused`."""
        try:
            url = URL(hop.url, encoded=hop.exact)
        except ValueError as error:
            raise Unavailable(f"{public_url(hop.url)} is not a usable URL: {error}") from None
        slash = hop.url.find("/", 8)
        origin = hop.url[:slash] if slash > 0 else ""
        host = self._hosts.get(origin)
        if host is None:
            self._guard.check_target(url.scheme, url.raw_host, url.port)
            host = url.raw_host or ""
            if origin and len(self._hosts) < MAX_HOSTS:
                self._hosts[origin] = host
        return url, host

    async def close(self) -> None:
        """See `Wire`."""
        await self.session.close()

    def _open_socket(self, info: SocketAddress) -> socket.socket:
        sending = _sending.get()
        with connecting_to("" if sending is None else sending.host):
            return self._guard.open_socket(info)

    def why(self, error: Exception) -> str:
        """Give the root cause in a few words."""
        match error:
            case aiohttp.ClientConnectorDNSError():
                return f"cannot resolve {error.host!r} ({_os_text(error.os_error)})"
            case aiohttp.ClientConnectorCertificateError():
                inner = error.certificate_error
                text = inner.verify_message if isinstance(inner, SSLCertVerificationError) else str(inner)
                return f"its certificate is not trusted ({text[:200]})"
            case aiohttp.ClientSSLError():
                return f"TLS failed ({_os_text(error.os_error)})"
            case aiohttp.ClientConnectorError():
                return _os_text(error.os_error)
            case aiohttp.ConnectionTimeoutError():
                return f"no connection within {self._connect_timeout:g} s"
            case aiohttp.ServerDisconnectedError():
                return "the connection was closed without an answer"
            case aiohttp.ClientPayloadError():
                return "the answer broke off"
            case aiohttp.ClientResponseError():
                return f"the answer is not HTTP ({error.message[:100]!r})"
            case aiohttp.InvalidURL():
                return f"not a usable URL ({error.description or 'it names no host'})"
            case OSError():
                return _os_text(error)
            case _:
                return f"{type(error).__name__}: {str(error)[:200]}"


class _Sending:
    """One hop, as a context: a generator's would cost more than all that is done here."""

    __slots__ = ("_hop", "_leaving", "_left", "_response", "_wire", "host")

    def __init__(self, wire: AiohttpWire, hop: Hop, leaving: Callable[[], None]) -> None:
        self._wire = wire
        self._hop = hop
        self._leaving = leaving
        self._left = False

    async def __aenter__(self) -> AiohttpAnswer:
        wire, hop = self._wire, self._hop
        url, self.host = wire.target(hop)
        token = _sending.set(self)
        try:
            self._response = response = await wire.session.request(
                hop.method,
                url,
                headers=hop.headers,
                data=None if hop.body is None else _payload(hop.body),
                ssl=wire.tls,
                allow_redirects=False,
                skip_auto_headers=None if hop.body is None and hop.method in _BODILESS else _NO_GUESS,
            )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, RefusedSocket):
                raise error.os_error.refused from None
            sent = self._left and not isinstance(error, aiohttp.ClientConnectorError)
            raise Unavailable(f"cannot reach {public_url(hop.url)}: {wire.why(error)}", sent=sent) from None
        finally:
            _sending.reset(token)
        return AiohttpAnswer(response, hop.url, wire.why)

    async def __aexit__(self, *_: object) -> None:
        response = self._response
        if not response.closed:  # a body that was read has given its connection back
            response.release() if response.content.at_eof() else response.close()

    def leaves(self) -> None:
        """Its first byte is about to."""
        self._left = True
        self._leaving()


class AiohttpAnswer:
    """A `WireAnswer`."""

    def __init__(self, response: aiohttp.ClientResponse, url: str, why: Callable[[Exception], str]) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}
        self._response = response
        self._url = url
        self._why = why

    async def chunks(self) -> AsyncIterator[bytes]:
        """See `WireAnswer`."""
        content = self._response.content
        try:
            while chunk := await content.readany():
                for start in range(0, len(chunk), CHUNK):
                    yield chunk[start : start + CHUNK]
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise self._lost(error) from None

    async def read(self, most: int) -> tuple[bytes, bool]:
        """See `WireAnswer`."""
        content = self._response.content
        try:
            body = await content.readany()
            if not content.at_eof() and len(body) <= most:  # most bodies come in one piece
                pieces = bytearray(body)
                while len(pieces) <= most and (chunk := await content.readany()):
                    pieces += chunk
                body = bytes(pieces)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise self._lost(error) from None
        return (body, True) if len(body) <= most else (body[:most], False)

    def _lost(self, error: Exception) -> Unavailable:
        return Unavailable(f"lost {public_url(self._url)}: {self._why(error)}", sent=True)


def _payload(body: bytes) -> bytes | io.BytesIO:
    """Give a large body as a file, which is written in pieces: the loop has turns between them."""
    return io.BytesIO(body) if len(body) > CHUNK else body


class _Request(aiohttp.ClientRequest):
    """Says when it has a connection and its first byte is about to leave; aiohttp's tracing would cost ten times that."""

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        """See aiohttp."""
        sending = _sending.get()
        if sending is not None:
            sending.leaves()
        return await super().send(conn)


_sending: ContextVar[_Sending | None] = ContextVar("sending", default=None)


def _os_text(error: OSError) -> str:
    """Give what the system says, without numbers: `connection refused`."""
    if isinstance(error, socket.gaierror):
        return (error.strerror or str(error)).lower()
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()
    if isinstance(error, asyncio.TimeoutError):
        return "timed out"
    return str(error)[:200] or type(error).__name__
