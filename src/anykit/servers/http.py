"""One port for every face: listen, guard, hand on, and leave in good order.

NameGuard (Host, Origin) ── a mount's path? ── TokenGuard where the mount is not open ── the mount's application
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from .identity import (
    App,
    NameGuard,
    Names,
    Receive,
    Scope,
    Send,
    TokenGuard,
    TokenRequired,
    Tokens,
    is_loopback,
    is_wildcard,
    refuse,
)

log = logging.getLogger("anykit.http")

DEFAULT_PORT: Final = 7777
BACKLOG = 2048
END_TIMEOUT = 5.0
"""Seconds that streams and sessions have to end."""
GRACE = 2
"""Seconds that connections have to close after that."""


@dataclass(frozen=True, slots=True)
class Mount:
    """An application and where it stands."""

    app: App
    paths: Sequence[str] = ()
    """Exactly these."""
    prefixes: Sequence[str] = ()
    """These, and everything below; the longest wins."""
    open: bool = False
    """Whether it is reached without the bearer token: it is for everyone, or asks by itself."""
    begin: Callable[[], Awaitable[None]] | None = None
    """Run once the server listens, in the background: what is slow to import."""
    end: Callable[[], Awaitable[None]] | None = None
    """Ends streams and sessions; bounded in time."""
    shown: Sequence[str] = ()
    """Paths that a person is told of."""
    protocol: str = ""
    """What is spoken there, for people."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    port: int
    tls: bool = False

    @property
    def url(self) -> str:
        """As a URL without a path."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


class _Uvicorn(Protocol):
    force_exit: bool

    def leave(self) -> None: ...

    async def serve(self, sockets: list[socket.socket] | None = None) -> None: ...


class Router:
    """Hands each request to the mount whose path it names; the rest is 404."""

    def __init__(self, mounts: Sequence[Mount], token: str | Tokens) -> None:
        self._exact: dict[str, App] = {}
        self._below: list[tuple[str, App]] = []
        for mount in mounts:
            app = mount.app if mount.open or not token else TokenGuard(mount.app, token)
            for path in mount.paths:
                self._exact.setdefault(path, app)
            self._below += [(prefix.rstrip("/"), app) for prefix in mount.prefixes]
        self._below.sort(key=lambda pair: -len(pair[0]))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        app = self._exact.get(path)
        if app is None:
            for prefix, below in self._below:
                if path == prefix or path.startswith(f"{prefix}/"):
                    app = below
                    break
            else:
                await refuse(scope, send, 404, "Not found")
                return
        await app(scope, receive, send)


class Server:
    """Serves mounts on one port, until `stop` or a signal.

    Args:
        mounts: What is served.
        host: The address to bind.
        port: The port; 0 picks a free one.
        token: The bearer token, or tokens, of what is not open. Needed beyond loopback.
        allow_hosts: More names that the Host header may carry.
        allow_origins: Origins whose pages may call.
        tls_cert: A certificate chain, PEM; with `tls_key` the server speaks TLS.
        tls_key: Its key.
        listening: Called with the address once it listens.

    Raises:
        TokenRequired: `host` is reachable from other machines and there is no token.
        ValueError: one of certificate and key is missing.
    """

    def __init__(
        self,
        mounts: Sequence[Mount],
        *,
        host: str = "127.0.0.1",
        port: int = DEFAULT_PORT,
        token: str | Tokens = "",
        allow_hosts: Sequence[str] = (),
        allow_origins: Sequence[str] = (),
        tls_cert: str | None = None,
        tls_key: str | None = None,
        listening: Callable[[Address], object] | None = None,
    ) -> None:
        if not token and not is_loopback(host):
            raise TokenRequired(f"listening on {host} needs a token, since other machines can reach it")
        if (tls_cert is None) != (tls_key is None):
            raise ValueError("TLS needs both a certificate and its key")
        self._mounts = mounts
        self._host = host
        self._port = port
        self._tls = (tls_cert, tls_key)
        self._listening = listening
        self._stop = asyncio.Event()
        self._uvicorn: _Uvicorn | None = None
        self._beginnings: set[asyncio.Future[None]] = set()
        self.address: Address | None = None
        """Where it listens, once it does."""
        self.signalled: signal.Signals | None = None
        """The signal that ended it."""
        names = Names(host, hosts=allow_hosts, origins=allow_origins)
        self.app: App = NameGuard(Router(mounts, token), names)
        """The guarded application, for whoever serves it otherwise."""

    @property
    def urls(self) -> list[tuple[str, str]]:
        """What it answers, once it listens: (protocol, URL)."""
        if self.address is None:
            return []
        return [(mount.protocol, f"{self.address.url}{path}") for mount in self._mounts for path in mount.shown]

    def stop(self) -> None:
        """End streams, close sessions, leave. Asked a second time, it leaves at once."""
        if self._stop.is_set() and self._uvicorn is not None:
            self._uvicorn.force_exit = True
        self._stop.set()

    async def serve(self, *, signals: bool = True) -> None:
        """Listen until `stop`, or SIGINT or SIGTERM where `signals`.

        Raises:
            OSError: the address cannot be bound, or the certificate not read.
        """
        import uvicorn  # noqa: PLC0415 - 0.14 s that only a server pays

        from .listener import BoundedProtocol, Listener  # noqa: PLC0415 - the same

        listener = bind(self._host, self._port)
        self.address = Address(self._host, listener.getsockname()[1], self._tls[0] is not None)
        try:
            config = uvicorn.Config(
                self.app,
                interface="asgi3",
                loop="none",
                http=BoundedProtocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                backlog=BACKLOG,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=GRACE,
                ssl_certfile=self._tls[0],
                ssl_keyfile=self._tls[1],
            )
            config.load()
            server = Listener(config, self._started)
            self._uvicorn = server
            with self._signals() if signals else contextlib.nullcontext():
                await self._run(server, listener)
        finally:
            listener.close()
            for beginning in self._beginnings:
                beginning.cancel()

    async def _run(self, server: _Uvicorn, listener: socket.socket) -> None:
        serving = asyncio.ensure_future(server.serve(sockets=[listener]))
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
            if not serving.done():
                await self._end()
            server.leave()
            await serving
        finally:
            stopping.cancel()
            if not serving.done():
                server.force_exit = True
                server.leave()
                await asyncio.wait([serving], timeout=GRACE)
                serving.cancel()

    async def _end(self) -> None:
        ends = [mount.end for mount in self._mounts if mount.end is not None]
        for result in await asyncio.gather(*(_bounded(end) for end in ends), return_exceptions=True):
            if isinstance(result, Exception):
                log.error("a mount did not end in order", exc_info=result)

    def _started(self) -> None:
        if self._listening is not None and self.address is not None:
            self._listening(self.address)
        for mount in self._mounts:
            if mount.begin is not None:
                self._beginnings.add(asyncio.ensure_future(mount.begin()))

    @contextlib.contextmanager
    def _signals(self) -> Generator[None]:
        """Take SIGINT and SIGTERM: uvicorn would raise them again and end the process before anything is closed."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        taken = (signal.SIGINT, signal.SIGTERM)
        for one in taken:
            loop.add_signal_handler(one, self._signal, one)
        try:
            yield
        finally:
            for one in taken:
                loop.remove_signal_handler(one)

    def _signal(self, number: signal.Signals) -> None:
        self.signalled = self.signalled or number
        self.stop()


async def _bounded(end: Callable[[], Awaitable[None]]) -> None:
    async with asyncio.timeout(END_TIMEOUT * 2):
        await end()


def bind(host: str, port: int) -> socket.socket:
    """A listening socket on `host` (a name, an IPv4 or an IPv6 address).

    Raises:
        OSError: it cannot be had; the text names the address.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or "0.0.0.0", port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise OSError(error.errno, f"cannot listen on {host}: {error.strerror or error}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6 and is_wildcard(host):
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(address)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    return listener


def new_event_loop() -> asyncio.AbstractEventLoop:
    """The fastest loop there is: uvloop's where it is installed."""
    try:
        import uvloop  # noqa: PLC0415 - not on every platform, and only servers want it
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
