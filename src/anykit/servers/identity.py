"""Who may reach an HTTP server: the names it answers to, the pages that may call it, the token, how safe the way is.

A browser can be brought to send requests to a loopback server in a foreign page's name (DNS rebinding). The names in
`Host` and `Origin` give it away, so both are looked at on every route, before the body is.
"""

from __future__ import annotations

import functools
import hmac
import ipaddress
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
"""An ASGI 3 application."""
Headers: TypeAlias = Iterable[tuple[bytes, bytes]]

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

_AUTHORITY = re.compile(
    r"(?:\[(?P<v6>[0-9a-fA-F:.]{2,45})\]|(?P<name>[a-zA-Z0-9_](?:[a-zA-Z0-9._-]{0,251}[a-zA-Z0-9_])?))(?::\d{1,5})?"
)
_HEADER_NAMES = re.compile(rb"[A-Za-z0-9-]+(?:, ?[A-Za-z0-9-]+){0,63}")
_ORIGIN = re.compile(r"https?://(?P<authority>[^/?#@\\\s]+)", re.IGNORECASE)


class TokenRequired(ValueError):
    """A server that is reachable from other machines needs a token."""


def host_of(authority: str) -> str | None:
    """The host in `host[:port]`, in lower case and without brackets; None where it is none."""
    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        return None
    if (name := found["name"]) is not None:
        return name.lower()
    try:
        return str(ipaddress.IPv6Address(found["v6"]))
    except ValueError:
        return None


def _plain(address: str) -> str:
    """An address as `host_of` gives it; an IPv4 one that came through an IPv6 socket as itself."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address.lower()
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)


@functools.lru_cache(maxsize=1024)
def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine itself."""
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def is_wildcard(host: str) -> bool:
    """Whether binding to `host` means every address."""
    try:
        return ipaddress.ip_address(host or "0.0.0.0").is_unspecified
    except ValueError:
        return False


class Names:
    """The names a server answers to, and the origins it lets call.

    Args:
        bound: The address it listens on.
        hosts: More names; `*.example.com` is every name below it, `*` is any name.
        origins: Origins (`https://app.example.com`) whose pages may call, beside those of the names.
    """

    def __init__(self, bound: str = "127.0.0.1", *, hosts: Sequence[str] = (), origins: Sequence[str] = ()) -> None:
        self._exact = set(LOOPBACK_NAMES)
        self._below: list[str] = []
        self._any = False
        self._wildcard = is_wildcard(bound)
        for host in (bound, *hosts):
            if host == "*":
                self._any = True
            elif host.startswith("*."):
                self._below.append(host[1:].lower())
            else:
                bracketed = f"[{host}]" if ":" in host and host_of(host) is None and "[" not in host else host
                self._exact.add(host_of(bracketed) or host.lower())
        self._origins = {origin.rstrip("/").lower() for origin in origins}

    def host_allowed(self, authority: str, local_address: str | None = None) -> bool:
        """Whether a `Host` header names this server. `local_address` is what the connection really reached."""
        host = host_of(authority)
        if host is None:
            return False
        if self._any or host in self._exact or any(host.endswith(suffix) for suffix in self._below):
            return True
        # Bound to every address: an address in digits that the connection really came to cannot be rebound.
        return self._wildcard and local_address is not None and host == _plain(local_address)

    def origin_named(self, origin: str) -> bool:
        """Whether the operator named this origin, so that its pages may also read the answers."""
        return origin.lower() in self._origins

    def origin_allowed(self, origin: str, local_address: str | None = None) -> bool:
        """Whether pages of an `Origin` may call."""
        if "*" in self._origins or origin.lower() in self._origins:
            return True
        found = _ORIGIN.fullmatch(origin)
        if found is None or (self._any and host_of(found["authority"]) not in self._exact):
            return False
        return self.host_allowed(found["authority"], local_address)


def headers_named(headers: Headers, name: bytes) -> list[bytes]:
    """Every value of a header (its name in lower case, as ASGI gives it)."""
    return [value for key, value in headers if key == name]


async def refuse(scope: Scope, send: Send, status: int, detail: str, *extra: tuple[bytes, bytes]) -> None:
    """Answer with an error; a web socket is closed."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    body = b'{"detail":"%s"}' % detail.encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *extra]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope.get("method") == "HEAD" else body})


class NameGuard:
    """ASGI middleware: refuses a foreign `Host` (421), then a foreign `Origin` (403), before anything is read.

    What the peer wrote is not echoed.
    """

    def __init__(self, app: App, names: Names) -> None:
        self._app = app
        self._names = names
        self._good: set[tuple[bytes, str | None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        host = origin = None
        hosts = origins = 0
        for key, value in scope["headers"]:
            if key == b"host":
                host = value
                hosts += 1
            elif key == b"origin":
                origin = value
                origins += 1
        local = scope.get("server")
        address = local[0] if local else None
        if hosts != 1 or host is None or not self._known(host, address):
            await refuse(scope, send, 421, "this server does not answer to that Host; see --allow-host")
            return
        if origin is not None:
            text = origin.decode("latin-1")
            if origins > 1 or not self._names.origin_allowed(text, address):
                await refuse(scope, send, 403, "pages of that Origin may not call; see --allow-origin")
                return
            if self._names.origin_named(text) and scope["type"] == "http":
                await self._across(scope, receive, send, origin)
                return
        await self._app(scope, receive, send)

    async def _across(self, scope: Scope, receive: Receive, send: Send, origin: bytes) -> None:
        """Let a page of another origin, which the operator named, ask and read (Fetch standard, CORS protocol)."""
        allow = [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]
        asked = headers_named(scope["headers"], b"access-control-request-method")
        if scope["method"] == "OPTIONS" and asked:
            wanted = b", ".join(headers_named(scope["headers"], b"access-control-request-headers"))
            headers = [
                *allow,
                (b"access-control-allow-methods", b"GET, POST, DELETE"),
                (b"access-control-max-age", b"600"),
                (b"content-length", b"0"),
            ]
            if _HEADER_NAMES.fullmatch(wanted):
                headers.append((b"access-control-allow-headers", wanted))
            await send({"type": "http.response.start", "status": 204, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {
                    **message,
                    "headers": [*message["headers"], *allow, (b"access-control-expose-headers", b"*")],
                }
            await send(message)

        await self._app(scope, receive, told)

    def _known(self, host: bytes, address: str | None) -> bool:
        if (host, address) in self._good:
            return True
        if not self._names.host_allowed(host.decode("latin-1"), address):
            return False
        if len(self._good) < 64:
            self._good.add((host, address))
        return True


PRINCIPAL = "anykit.principal"
"""Key of an ASGI scope: whom the token that was shown stands for."""


class Tokens:
    """Bearer tokens, and whom each stands for.

    Args:
        token: The operator's; "" where there is none.
        principal: Whom it stands for.
        named: Further ones by the principals that they stand for. Where there is any token, everyone must show one.

    Raises `ValueError` for an empty or a repeated one: nobody could tell whose it is.
    """

    def __init__(self, token: str = "", *, principal: str = "local", named: Mapping[str, str] | None = None) -> None:
        known = {**({principal: token} if token else {}), **(named or {})}
        if len(set(known.values())) < len(known) or not all(known.values()):
            raise ValueError("each token is one of its own, and not empty")
        self._known = [(name, text.encode()) for name, text in known.items()]
        self._principal = principal

    @classmethod
    def of(cls, token: str | Tokens, *, principal: str = "local") -> Tokens:
        """`token` as tokens."""
        return token if isinstance(token, Tokens) else cls(token, principal=principal)

    def __bool__(self) -> bool:
        return bool(self._known)

    def principal(self, given: bytes | None) -> str | None:
        """Whom a token stands for; None where it is none of these. Takes as long whichever it is."""
        if not self._known:
            return self._principal
        found: str | None = None
        for name, token in self._known:
            if given is not None and hmac.compare_digest(given, token):
                found = name
        return found


def bearer(headers: Headers) -> bytes | None:
    """The token of an `Authorization: Bearer` header; None where there is not exactly one."""
    given = headers_named(headers, b"authorization")
    scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
    return token.strip() if scheme.lower() == b"bearer" and token.strip() else None


class TokenGuard:
    """ASGI middleware: asks for `Authorization: Bearer <token>` (401) and keeps it from what lies behind.

    Whom the token stands for is in the scope from then on (`PRINCIPAL`).
    """

    def __init__(self, app: App, token: str | Tokens) -> None:
        self._app = app
        self._tokens = Tokens.of(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or not self._tokens:
            await self._app(scope, receive, send)
            return
        principal = self._tokens.principal(bearer(scope["headers"]))
        if principal is None:
            await refuse(scope, send, 401, "a bearer token is needed", (b"www-authenticate", b"Bearer"))
            return
        headers = [(key, value) for key, value in scope["headers"] if key != b"authorization"]
        await self._app({**scope, "headers": headers, PRINCIPAL: principal}, receive, send)


class Ways:
    """Judges whether a secret may travel on a connection: TLS, loopback, or a trusted proxy that says so.

    Args:
        trusted_proxies: Addresses or networks whose `X-Forwarded-Proto` is believed. Behind one of them only `https` is
            safe, whatever address the proxy itself has.
    """

    def __init__(self, trusted_proxies: Sequence[str] = ()) -> None:
        self._proxies = [ipaddress.ip_network(proxy, strict=False) for proxy in trusted_proxies]

    def secure(self, scope: Scope) -> bool:
        """Whether the request of `scope` came on a safe way."""
        if scope.get("scheme") in ("https", "wss"):
            return True
        client = scope.get("client")
        address = client[0] if client else ""
        if self._proxies and self._trusted(address):
            said = headers_named(scope["headers"], b"x-forwarded-proto")
            return len(said) == 1 and said[0].rpartition(b",")[2].strip().lower() == b"https"
        return is_loopback(address)

    def _trusted(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        mapped = getattr(parsed, "ipv4_mapped", None)
        return any((mapped or parsed) in network for network in self._proxies)
