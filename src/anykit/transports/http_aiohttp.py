"""The only module that knows aiohttp; imported with the first request."""

from __future__ import annotations

import asyncio
import io
import os
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from ssl import SSLCertVerificationError, SSLContext
from types import SimpleNamespace

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from anykit.capabilities import Unavailable

from .guard import AddressGuard, RefusedSocket, connecting_to
from .http_client import Hop, public_url

KEEP_ALIVE = 4.0
"""Seconds that an idle connection is kept: less than the 5 that uvicorn keeps it, so that no request meets its end."""
CHUNK = 64 * 1024


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


def guarded_connector(guard: AddressGuard) -> aiohttp.TCPConnector:
    """Give a connector that connects only where `guard` lets it, for this client or any other user of aiohttp."""
    return aiohttp.TCPConnector(
        resolver=GuardedResolver(guard), socket_factory=guard.open_socket, keepalive_timeout=KEEP_ALIVE
    )


def open_wire(guard: AddressGuard, *, connect_timeout: float, tls: SSLContext | None) -> AiohttpWire:
    """Open a session. Needs a running loop."""
    return AiohttpWire(guard, connect_timeout=connect_timeout, tls=tls)


class AiohttpWire:
    """A `Wire` over one aiohttp session."""

    def __init__(self, guard: AddressGuard, *, connect_timeout: float, tls: SSLContext | None) -> None:
        self._guard = guard
        self._connect_timeout = connect_timeout
        self._tls = True if tls is None else tls
        trace = aiohttp.TraceConfig()
        trace.on_request_headers_sent.append(_headers_leave)
        self._session = aiohttp.ClientSession(
            connector=guarded_connector(guard),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_timeout, connect=connect_timeout),
            trace_configs=[trace],
            trust_env=False,  # a proxy from the environment would connect where the guard cannot look
            skip_auto_headers=("content-type",),
        )

    @asynccontextmanager
    async def send(self, hop: Hop, leaving: Callable[[], None]) -> AsyncGenerator[AiohttpAnswer, None]:
        """See `Wire`."""
        where = public_url(hop.url)
        try:
            url = URL(hop.url, encoded=hop.exact)
        except ValueError as error:
            raise Unavailable(f"{where} is not a usable URL: {error}") from None
        self._guard.check_target(url.scheme, url.raw_host, url.port)
        left = False

        def tell() -> None:
            nonlocal left
            left = True
            leaving()

        try:
            with connecting_to(url.raw_host or ""):
                response = await self._session.request(
                    hop.method,
                    url,
                    headers=hop.headers,
                    data=_payload(hop.body),
                    ssl=self._tls,
                    allow_redirects=False,
                    trace_request_ctx=tell,
                )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, RefusedSocket):
                raise error.os_error.refused from None
            sent = left and not isinstance(error, aiohttp.ClientConnectorError)
            raise Unavailable(f"cannot reach {where}: {self._why(error)}", sent=sent) from None
        try:
            yield AiohttpAnswer(response, where, self._why)
        finally:
            response.close() if not response.closed and not response.content.at_eof() else response.release()

    async def close(self) -> None:
        """See `Wire`."""
        await self._session.close()

    def _why(self, error: Exception) -> str:
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


class AiohttpAnswer:
    """A `WireAnswer`."""

    def __init__(self, response: aiohttp.ClientResponse, where: str, why: Callable[[Exception], str]) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}
        self._response = response
        self._where = where
        self._why = why

    async def chunks(self) -> AsyncIterator[bytes]:
        """See `WireAnswer`."""
        content = self._response.content
        try:
            while chunk := await content.readany():
                for start in range(0, len(chunk), CHUNK):
                    yield chunk[start : start + CHUNK]
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Unavailable(f"lost {self._where}: {self._why(error)}", sent=True) from None


def _payload(body: bytes | None) -> bytes | io.BytesIO | None:
    """Give a large body as a file, which is written in pieces: the loop has turns between them."""
    return io.BytesIO(body) if body is not None and len(body) > CHUNK else body


async def _headers_leave(
    _session: aiohttp.ClientSession, context: SimpleNamespace, _params: aiohttp.TraceRequestHeadersSentParams
) -> None:
    context.trace_request_ctx()


def _os_text(error: OSError) -> str:
    """Give what the system says, without numbers: `connection refused`."""
    if isinstance(error, socket.gaierror):
        return (error.strerror or str(error)).lower()
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()
    if isinstance(error, asyncio.TimeoutError):
        return "timed out"
    return str(error)[:200] or type(error).__name__
