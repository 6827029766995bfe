"""One request and its answer, for every kind of source that speaks plain HTTP: bounded, guarded, repeated only where safe.

    send ─> try ─> hop ─guard─> hop ─guard─> answer ─> result
             ^      (each redirect is a hop)
             └── again, where the request is idempotent

An exchange that was started keeps its connections until it is closed; one that was not opens them for each request.
"""

from __future__ import annotations

import asyncio
import base64
import importlib
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ssl import SSLContext
from typing import TypeAlias
from urllib.parse import unquote, urlsplit, urlunsplit

from anykit.capabilities import CapabilityContext, ExecutionFailed, InvalidInput, InvocableResult, Unavailable
from anykit.capabilities.outcomes import TIMEOUT as TIMED_OUT
from anykit.transports import OPEN, AddressGuard, AddressRefused, public_url
from anykit.transports.http_client import CONNECT_TIMEOUT, Hop, Wire, WireAnswer

from .bodies import Multipart
from .redirects import MAX_REDIRECTS, REDIRECTS, following, guard_for, origin, refused
from .results import Received, ResultKind, failure, shaped
from .secrecy import Secrets, credentials

TIMEOUT = 120.0
"""Seconds for a request with everything that belongs to it: redirects, repetitions, the whole body."""
RETRIES = 2
MAX_BODY = 1024 * 1024
"""Bytes of an answer, unpacked."""
IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
"""Methods that may be repeated (RFC 9110 9.2.2)."""
PAUSE = 0.25
"""Seconds before the first repetition; twice as long before each further one."""

KNOWN = 64
"""Sets of headers that an exchange remembers the checked form of."""

_TRIED_AGAIN = frozenset({429, 502, 503, 504})
_NOT_IN_A_URL = re.compile(r"[\x00-\x20\x7f-\U0010ffff\\]")
_NOT_IN_A_HEADER = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

Headers: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """What is to be sent."""

    method: str
    url: str = field(repr=False)
    """As it goes over the wire: ASCII, everything percent-encoded that has to be."""
    headers: Headers = field(default=(), repr=False)
    body: bytes | Multipart | None = field(default=None, repr=False)
    """Bytes need a `content-type` among the headers; multipart brings its own."""
    idempotent: bool | None = None
    """Whether a repetition does no harm; what the method says where None."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Values that no error and no result may quote, beside the credentials in `headers`."""

    @property
    def repeatable(self) -> bool:
        """Whether it may be sent again when nobody knows what became of it."""
        return self.method.upper() in IDEMPOTENT if self.idempotent is None else self.idempotent


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one request; what the exchange has where None."""

    timeout: float | None = None
    retries: int | None = None
    max_redirects: int | None = None
    max_body: int | None = None


class Exchange:
    """A session with the servers of one source. `start` it and `close` it, or use it as it is for single requests.

    Args:
        guard: Which addresses may be connected to; any, by default, since the operator wrote the URLs.
        private_hosts: What a redirect from a public server may reach although it is not public.
        headers: Sent with every request to the origin that it names, never to another one; a request's own win.
        secrets: Values that no error and no result may quote, beside the credentials in `headers`.
        timeout: Seconds for a request as a whole; a call's own deadline may be nearer.
        connect_timeout: Seconds for making a connection.
        retries: How often an idempotent request is repeated.
        max_redirects: How often a request may be sent elsewhere; 0 follows none.
        max_body: Bytes of an answer that are kept, unpacked.
        tls: Certificates to trust, where the system's are not right.
    """

    def __init__(
        self,
        *,
        guard: AddressGuard = OPEN,
        private_hosts: tuple[str, ...] = (),
        headers: Mapping[str, str] | Headers = (),
        secrets: tuple[str, ...] = (),
        timeout: float = TIMEOUT,
        connect_timeout: float = CONNECT_TIMEOUT,
        retries: int = RETRIES,
        max_redirects: int = MAX_REDIRECTS,
        max_body: int = MAX_BODY,
        tls: SSLContext | None = None,
    ) -> None:
        self._guard = replace(guard, private_hosts=(*guard.private_hosts, *private_hosts)) if private_hosts else guard
        pairs = tuple(headers.items()) if isinstance(headers, Mapping) else headers
        self._headers = _joined({"user-agent": "anykit"}, pairs)
        self._secrets = Secrets((*secrets, *credentials(self._headers.items())))
        self._limits = _Bounds(timeout, retries, max_redirects, max_body)
        self._connect_timeout = connect_timeout
        self._known: dict[tuple[Headers, tuple[str, ...], str | None], tuple[Mapping[str, str], Secrets]] = {}
        self._tls = tls
        self._wires: dict[AddressGuard, Wire] | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<Exchange {'closed' if self._closed else 'lasting' if self._wires is not None else 'single requests'}>"

    async def start(self) -> None:
        """Keep connections from now on, until `close`; none is made yet."""
        self._closed = False
        if self._wires is None:
            self._wires = {}

    async def close(self) -> None:
        """Close every connection; requests fail from now on. May be called again."""
        wires, self._wires, self._closed = self._wires or {}, None, True
        for wire in wires.values():
            await wire.close()

    async def send(
        self,
        request: HttpRequest,
        context: CapabilityContext,
        *,
        result: ResultKind = "auto",
        limits: Limits | None = None,
        watched: bool = False,
    ) -> InvocableResult:
        """Send a request and give its answer as a result, whatever it is made of.

        With `watched` whoever set the context's deadline ends the call then by cancelling it, as a workbench does.

        Raises `ExecutionFailed` for any status but 2xx (its `detail` has `status` and an excerpt) and when the time is
        up, `InvalidInput` for what no request can hold, `Unavailable` where the server cannot be reached or the answer
        is lost; its `sent` says whether the request may have been carried out.
        """
        received = await self.receive(request, context, limits=limits, watched=watched)
        if not 200 <= received.status < 300:
            raise failure(received, retryable=request.repeatable)
        return shaped(received, result)

    async def receive(
        self,
        request: HttpRequest,
        context: CapabilityContext,
        *,
        limits: Limits | None = None,
        watched: bool = False,
    ) -> Received:
        """Send a request and give the answer, whatever its status. Raises as `send` does."""
        hop, secrets = self._first(request)
        now = asyncio.get_running_loop().time()
        bounds = self._limits if limits is None else self._limits.narrowed(limits)
        limit = now + bounds.timeout
        if context.deadline is not None and context.deadline < limit:
            limit = context.deadline
        else:
            watched = False
        call = _Call(secrets, {} if self._wires is None else self._wires, bounds, limit)
        try:
            if watched and self._wires is not None:
                return await self._tries(hop, request, call)
            async with asyncio.timeout_at(limit), self._connections() as call.wires:
                return await self._tries(hop, request, call)
        except (Unavailable, ExecutionFailed) as error:
            if secrets.are_in(error.message):  # the path of a URL may hold one
                error.message = secrets.masked(error.message)
                error.args = (error.message,)
            raise
        except TimeoutError:
            raise ExecutionFailed(
                f"{hop.method} {secrets.masked(public_url(hop.url))} did not answer within {limit - now:.3g} s",
                code=TIMED_OUT,
                retryable=request.repeatable or not call.sent,
                detail={"timeout": limit - now, "sent": call.sent},
            ) from None

    # one request

    def _first(self, request: HttpRequest) -> tuple[Hop, Secrets]:
        url, basic = _without_userinfo(request.url)
        if _NOT_IN_A_URL.search(url):
            raise InvalidInput("the URL holds characters that must be percent-encoded")
        headers, secrets = self._prepared(request.headers, request.secrets, basic)
        body = request.body
        if isinstance(body, Multipart):
            kind, body = body.encoded()
            headers = {**headers, "content-type": kind}
        return Hop(request.method.upper(), url, headers, body, exact=True), secrets

    def _prepared(
        self, given: Headers, secrets: tuple[str, ...], basic: str | None
    ) -> tuple[Mapping[str, str], Secrets]:
        """All headers of a request and what is secret in it. Most requests have those of the one before."""
        key = (given, secrets, basic)
        known = self._known.get(key)
        if known is None:
            headers = _joined(self._headers, given)
            if basic is not None:
                headers.setdefault("authorization", basic)
            if len(self._known) >= KNOWN:
                self._known.clear()
            known = self._known[key] = headers, self._secrets.with_more((*secrets, *credentials(headers.items())))
        return known

    async def _tries(self, hop: Hop, request: HttpRequest, call: _Call) -> Received:
        left = call.bounds.retries if request.repeatable else 0
        loop = asyncio.get_running_loop()
        pause = PAUSE
        while True:
            try:
                received = await self._follow(hop, call)
            except Unavailable as error:
                if call.carried_out and not error.sent:
                    error.sent = True
                if left <= 0 or isinstance(error, AddressRefused) or loop.time() + pause >= call.limit:
                    raise
                wait = pause
            else:
                if left <= 0 or received.status not in _TRIED_AGAIN:
                    return received
                asked = retry_after(received.headers)
                wait = pause if asked is None else asked
                if loop.time() + wait >= call.limit:
                    return received
            left -= 1
            pause *= 2
            await asyncio.sleep(wait)

    async def _follow(self, hop: Hop, call: _Call) -> Received:
        """One try, with its redirects."""
        guard = self._guard
        left = most = call.bounds.max_redirects
        while True:
            wire = call.wires.get(guard) or await self._open(guard, call.wires)
            call.sent = False
            async with wire.send(hop, call.leaving) as answer:
                status = answer.status
                wanted = None
                if status in REDIRECTS and most > 0:
                    wanted = following(hop, status, answer.headers.get("location", ""), call.secrets)
                if wanted is None:
                    return await _read(hop, answer, call)
            if left <= 0:
                raise refused(hop, status, f"was redirected more than {most} times")
            left -= 1
            if wanted.method != hop.method:
                call.carried_out = True  # by the server that sent us on to see the outcome
            if origin(wanted.url) != origin(hop.url):
                guard = await guard_for(hop, guard)
            guard.check_url(wanted.url)
            hop = wanted

    # connections

    @asynccontextmanager
    async def _connections(self) -> AsyncGenerator[dict[AddressGuard, Wire]]:
        """The connections that are kept, or some for one request."""
        if self._closed:
            raise Unavailable("the source is closed")
        if self._wires is not None:
            yield self._wires
            return
        wires: dict[AddressGuard, Wire] = {}
        try:
            yield wires
        finally:
            for wire in wires.values():
                await wire.close()

    async def _open(self, guard: AddressGuard, wires: dict[AddressGuard, Wire]) -> Wire:
        module = await asyncio.to_thread(importlib.import_module, "anykit.transports.http_aiohttp")
        if self._closed:
            raise Unavailable("the source is closed")
        wire = wires.get(guard)
        if wire is None:
            wire = wires[guard] = module.open_wire(guard, connect_timeout=self._connect_timeout, tls=self._tls)
        return wire


@dataclass(frozen=True, slots=True)
class _Bounds:
    timeout: float
    retries: int
    max_redirects: int
    max_body: int

    def narrowed(self, by: Limits) -> _Bounds:
        return _Bounds(
            self.timeout if by.timeout is None else by.timeout,
            self.retries if by.retries is None else by.retries,
            self.max_redirects if by.max_redirects is None else by.max_redirects,
            self.max_body if by.max_body is None else by.max_body,
        )


@dataclass(slots=True)
class _Call:
    """What one `receive` carries along."""

    secrets: Secrets
    wires: dict[AddressGuard, Wire]
    bounds: _Bounds
    limit: float
    sent: bool = False
    """Whether a byte of the last hop may have left."""
    carried_out: bool = False
    """Whether a server did what was asked and sent us on to see the outcome."""

    def leaving(self) -> None:
        self.sent = True


async def _read(hop: Hop, answer: WireAnswer, call: _Call) -> Received:
    body, whole = (b"", True) if hop.method == "HEAD" else await answer.read(call.bounds.max_body)
    return Received(hop.method, hop.url, answer.status, answer.headers, body, whole, call.secrets)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait (RFC 9110 10.2.3); None where it says nothing that can be read."""
    said = headers.get("retry-after", "").strip()
    if not said:
        return None
    if re.fullmatch(r"[0-9]{1,9}", said):
        return float(said)
    try:
        when = parsedate_to_datetime(said)
    except (TypeError, ValueError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def _joined(base: Mapping[str, str], more: Headers) -> dict[str, str]:
    """Headers by lower-case name; of one name several become a list (RFC 9110 5.3). Raises `InvalidInput`."""
    own: dict[str, str] = {}
    for given, value in more:
        name = given.lower()
        if not _TOKEN.fullmatch(name):
            raise InvalidInput(f"{given[:100]!r} is no name of a header")
        if _NOT_IN_A_HEADER.search(value):
            raise InvalidInput(f"the header {name!r} cannot hold line breaks or other control characters")
        own[name] = f"{own[name]}{'; ' if name == 'cookie' else ', '}{value}" if name in own else value.strip(" \t")
    return {**base, **own}


def _without_userinfo(url: str) -> tuple[str, str | None]:
    """Split the credentials off a URL, as a Basic `Authorization` value."""
    if "@" not in url:
        return url, None
    parts = urlsplit(url)
    userinfo, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, None
    user, _, password = userinfo.partition(":")
    token = base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
    return urlunsplit(parts._replace(netloc=host)), f"Basic {token}"
