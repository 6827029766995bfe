"""An OpenAPI document as a source of tools.

A file is read when the source is made, and again by `refresh`; a document on the network is fetched when the source starts,
as often as it takes, and again by `refresh`, by its ETag.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from anykit.capabilities import (
    CapabilityContext,
    ExecutionFailed,
    Invocable,
    JsonObject,
    PromptProvider,
    ResourceProvider,
    State,
    Unavailable,
)
from anykit.sources.connection import CONNECT_TIMEOUT, Backoff, Connection
from anykit.sources.hostile import clean_text
from anykit.sources.http import Exchange, HttpRequest, Received
from anykit.sources.http.redirects import guard_for, origin
from anykit.transports import OPEN, AddressGuard, public_url
from anykit.transports.http_client import Hop

from .credentials import Wallet
from .document import MAX_DOCUMENT, DocumentError, decoded, parse_document, parse_part, read_text
from .operations import LeftOut, Operation, Prepared, Reading, read_document
from .references import References, gathering
from .security import NOT_CONFIGURED, Scheme, chosen, missing
from .selection import Selection
from .servers import Servers
from .tools import OpenApiTool, spec_of

log = logging.getLogger("anykit.sources.openapi")

TIMEOUT = 60.0
"""Seconds that a call may take, if the operator says nothing."""
FETCH_TIMEOUT = 30.0
SHOWN = 200
"""Things left out that the state tells of."""
_ACCEPT = "application/json, application/yaml, application/vnd.oai.openapi;q=0.9, */*;q=0.5"


@dataclass(frozen=True)
class Options:
    """What the operator says about a document."""

    server: str = ""
    """A URL, or the name, description or URL of a server that the document lists."""
    server_variables: Mapping[str, str] = field(default_factory=dict[str, str])
    security: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """Secrets by security scheme: a text, or a table."""
    token: str = field(default="", repr=False)
    """For every scheme that takes a bearer token, and for the server that the document is fetched from."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Sent with every call."""
    document_headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Sent when the document is fetched."""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    allow_refs: tuple[str, ...] = ()
    timeout: float | None = None
    retries: int = 2
    max_bytes: int = 1024 * 1024
    connect_timeout: float = CONNECT_TIMEOUT
    private_hosts: tuple[str, ...] = ()


class _Held:
    """A document that was fetched; it is not lost again."""

    def __init__(self) -> None:
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()


class OpenApiSource:
    """A provider of one document's operations.

    `location` is a URL, or a file, which is read at once: raises `DocumentError` where that cannot be used.
    """

    def __init__(
        self, name: str, location: str | Path, options: Options | None = None, *, backoff: Backoff | None = None
    ) -> None:
        self.name = name
        self.location = location
        self.options = options or Options()
        given = self.options
        url = location if isinstance(location, str) else ""
        self._wallet = Wallet(
            given.security,
            token=given.token,
            headers=tuple(given.headers.items()),
            location=url,
            server=given.server if "://" in given.server else "",
        )
        calls: dict[str, Any] = {
            "timeout": given.timeout or TIMEOUT,
            "connect_timeout": given.connect_timeout,
            "retries": given.retries,
            "max_body": given.max_bytes,
        }
        self._exchange = Exchange(guard=OPEN, private_hosts=given.private_hosts, **calls)
        self._abroad_settings = calls
        self._abroad: Exchange | None = None
        self._etag = self._modified = ""
        self._reading: Reading | None = None
        self._tools: tuple[OpenApiTool, ...] = ()
        self._since = time.time()
        self._listeners: list[Callable[[], None]] = []
        self._refreshing = asyncio.Lock()
        self._connection: Connection[_Held] | None = None
        try:
            if isinstance(location, Path):
                self._offer(_read_file(location, given))
                return
        except _OnTheNetwork:
            pass
        self._connection = Connection(name, self._open, connect_timeout=given.connect_timeout, backoff=backoff)

    def __repr__(self) -> str:
        return f"<OpenApiSource {self.name} {self.state.status}>"

    # CapabilityProvider

    def invocables(self) -> Sequence[Invocable]:
        """The operations that are offered, as last read."""
        return self._tools

    def resources(self) -> Sequence[ResourceProvider]:
        """None: a document describes operations only."""
        return ()

    def prompts(self) -> Sequence[PromptProvider]:
        """None."""
        return ()

    # Connected

    @property
    def state(self) -> State:
        """How it is. `detail` has the document's title and version, and what of it is left out."""
        state = State("ready", since=self._since) if self._connection is None else self._connection.state
        if self._reading is None:
            return state
        detail: JsonObject = {"title": self._reading.title, "version": self._reading.version}
        if self._reading.left_out:
            detail["left_out"] = {one.place: one.reason for one in self._reading.left_out[:SHOWN]}
        if waiting := self._without_secrets():
            detail["not_configured"] = waiting
        return replace(state, detail=detail)

    async def start(self) -> None:
        """Begin to fetch the document, where it is on the network; keep connections from now on."""
        await self._exchange.start()
        if self._connection is not None:
            self._connection.start()

    async def close(self) -> None:
        """Let go of every connection."""
        if self._connection is not None:
            await self._connection.close()
        await self._exchange.close()
        if self._abroad is not None:
            await self._abroad.close()

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back when the state or the tools changed."""
        if self._connection is not None:
            return self._connection.subscribe(callback)
        self._listeners.append(callback)

        def unsubscribe() -> None:
            if callback in self._listeners:
                self._listeners.remove(callback)

        return unsubscribe

    # what there is to see

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """What of the document is not used, and why."""
        return () if self._reading is None else self._reading.left_out

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What is offered."""
        return () if self._reading is None else self._reading.operations

    def reports(self) -> Sequence[tuple[str, str]]:
        """The same, and what of the operator's table means nothing, for the catalogue."""
        if self._reading is None:
            return ()
        told = [(one.place, one.reason) for one in self._reading.left_out[:SHOWN]]
        if len(self._reading.left_out) > SHOWN:
            told.append(("", f"{len(self._reading.left_out) - SHOWN} more things are left out or mended"))
        known = ", ".join(clean_text(name, 60) for name in self._reading.schemes) or "none"
        return [
            *told,
            *(
                (f"security.{name}", f"the document has no such scheme; it has {known}")
                for name in self._wallet.unknown(self._reading.schemes)
            ),
        ]

    async def refresh(self) -> bool:
        """Read the document again; whether it had changed. Raises `DocumentError`, `Unavailable`; what was known stays."""
        async with self._refreshing:
            reading = await self._fetch()
            if reading is None or reading == self._reading:
                return False
            self._offer(reading)
        self._changed()
        return True

    # calls

    async def call(self, operation: Operation, prepared: Prepared, context: CapabilityContext) -> Received:
        """Send a request with what proves who asks. Raises `CapabilityError`."""
        address = operation.address
        if address.missing:
            raise ExecutionFailed(f"{operation.name} cannot be called: {address.missing}", code=NOT_CONFIGURED)
        received = await self._send(operation, prepared, context)
        if received.status == 401 and self._wallet.renew():
            received = await self._send(operation, prepared, context)  # a token that was fetched may be over
        return received

    async def _send(self, operation: Operation, prepared: Prepared, context: CapabilityContext) -> Received:
        schemes: Mapping[str, Scheme] = {} if self._reading is None else self._reading.schemes
        credentials = await self._wallet.opened(operation, schemes, self._exchange, context)
        address = operation.address
        query = "&".join([*([address.query] if address.query else []), *prepared.query, *credentials.query])
        cookies = "; ".join([*prepared.cookies, *credentials.cookies])
        headers = [*prepared.headers, *credentials.headers]
        if cookies:
            headers.append(("cookie", cookies))
        request = HttpRequest(
            operation.method,
            f"{address.url}{prepared.path}{'?' if query else ''}{query}",
            tuple(headers),
            prepared.body,
            True if operation.method == "QUERY" else None,
            tuple(credentials.secrets),
        )
        at_home = self._wallet.trusts(address.url, chosen=address.chosen)
        exchange = self._exchange if at_home else await self._exchange_abroad()
        return await exchange.receive(request, context)

    async def _exchange_abroad(self) -> Exchange:
        """For servers that a document from the network names: public ones, or the document's own neighbours."""
        if self._abroad is None:
            given = AddressGuard(allow_private=True, private_hosts=self.options.private_hosts)
            guard = await guard_for(Hop("GET", str(self.location)), given)
            if self._abroad is None:
                self._abroad = Exchange(guard=guard, **self._abroad_settings)
                await self._abroad.start()
        return self._abroad

    def not_as_described(self, operation: Operation) -> None:
        """An operation broke its promise: from now on it makes none, so that no reader refuses what it answers."""
        kept = tuple(tool.without_promise() if tool.operation is operation else tool for tool in self._tools)
        if kept != self._tools:
            self._tools = kept
            self._changed()

    # the document

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[_Held]:
        try:
            reading = await self._fetch()
        except DocumentError as error:
            raise Unavailable(str(error)) from None
        if reading is not None:
            self._offer(reading)
        yield _Held()

    async def _fetch(self) -> Reading | None:
        """The document, and what it refers to; None where it has not changed. Raises `CapabilityError`, `DocumentError`."""
        exchange = Exchange(
            guard=OPEN,
            timeout=FETCH_TIMEOUT,
            connect_timeout=self.options.connect_timeout,
            retries=0,
            max_body=MAX_DOCUMENT,
        )
        await exchange.start()
        said: Mapping[str, str] = {}
        try:
            if isinstance(self.location, Path):
                root, url = await asyncio.to_thread(_of_file, self.location), self.location.absolute().as_uri()
            else:
                received = await _get(exchange, self.location, [*self._document_headers(), *self._known()])
                if received.status == 304:
                    return None
                root, url, said = await asyncio.to_thread(_document_in, received), self.location, received.headers
            asking = gathering(root, url, self.options.allow_refs)
            try:
                place = next(asking)
                while True:
                    place = asking.send(await self._part(place, exchange))
            except StopIteration as end:
                reading = await asyncio.to_thread(_read, end.value, self.options)
        finally:
            await exchange.close()
        self._etag, self._modified = said.get("etag", ""), said.get("last-modified", "")
        return reading

    async def _part(self, place: str, exchange: Exchange) -> JsonObject | DocumentError:
        """A document that is referred to."""
        if place.startswith("file:"):
            if not isinstance(self.location, Path):
                return DocumentError("a document from the network cannot refer to a file")
            return await asyncio.to_thread(_part_of_file, place)
        own = self._document_headers() if not isinstance(self.location, Path) and _same(place, self.location) else []
        try:
            return await asyncio.to_thread(_part_in, await _get(exchange, place, own))
        except Unavailable as error:
            return DocumentError(error.message)

    def _document_headers(self) -> list[tuple[str, str]]:
        headers = list(self.options.document_headers.items())
        if self.options.token and not any(name.lower() == "authorization" for name, _ in headers):
            headers.append(("authorization", f"Bearer {self.options.token}"))
        return headers

    def _known(self) -> list[tuple[str, str]]:
        """What asks for the document only if it has changed; what it refers to may have, and then it is asked for."""
        if self._reading is None or self.options.allow_refs:
            return []
        if self._etag:
            return [("if-none-match", self._etag)]
        return [("if-modified-since", self._modified)] if self._modified else []

    def _offer(self, reading: Reading) -> None:
        self._reading = reading
        self._since = time.time()
        self._tools = tuple(
            OpenApiTool(spec_of(operation, timeout=self.options.timeout), operation, self)
            for operation in reading.operations
        )

    def _changed(self) -> None:
        if self._connection is not None:
            self._connection.changed()
        for listener in list(self._listeners):
            listener()

    def _without_secrets(self) -> dict[str, str]:
        """Operations that cannot be called as things are, each with what is missing."""
        if self._reading is None:
            return {}
        schemes = self._reading.schemes
        configured = self._wallet.configured(schemes)
        found: dict[str, str] = {}
        for operation in self._reading.operations:
            if operation.address.missing:
                found[operation.name] = operation.address.missing
            elif chosen(operation.requirements, schemes, configured) is None:
                found[operation.name] = missing(operation.requirements, schemes, configured)
            if len(found) >= SHOWN:
                break
        return found


class _OnTheNetwork(Exception):
    """A document in a file refers to one on the network, and the operator allows it."""


def _read(references: References, options: Options) -> Reading:
    location = references.location if references.location.startswith("http") else ""
    return read_document(
        references,
        selection=Selection(options.include, options.exclude),
        servers=Servers(location, options.server, options.server_variables),
    )


def _read_file(path: Path, options: Options) -> Reading:
    """A file and what it refers to. Raises `DocumentError`, `_OnTheNetwork`."""
    asking = gathering(_of_file(path), path.absolute().as_uri(), options.allow_refs)
    try:
        place = next(asking)
        while True:
            if not place.startswith("file:"):
                raise _OnTheNetwork
            place = asking.send(_part_of_file(place))
    except StopIteration as end:
        return _read(end.value, options)


def _of_file(path: Path) -> JsonObject:
    try:
        return parse_document(read_text(path))
    except DocumentError as error:
        text = str(error)
        raise DocumentError(text if text.startswith(str(path)) else f"{path}: {text}") from None


def _part_of_file(place: str) -> JsonObject | DocumentError:
    try:
        return parse_part(read_text(Path(url2pathname(urlsplit(place).path))))
    except DocumentError as error:
        return error


async def _get(exchange: Exchange, url: str, headers: Sequence[tuple[str, str]]) -> Received:
    """Ask for a document. Raises `Unavailable`."""
    try:
        received = await exchange.receive(HttpRequest("GET", url, (("accept", _ACCEPT), *headers)), CapabilityContext())
    except ExecutionFailed as error:
        raise Unavailable(error.message) from None
    if received.status != 304 and not 200 <= received.status < 300:
        raise Unavailable(f"{public_url(url)} answered {received.phrase}")
    return received


def _document_in(received: Received) -> JsonObject:
    """Raises `Unavailable` where the answer is no document that can be used."""
    try:
        return parse_document(_text_in(received))
    except DocumentError as error:
        hint = ""
        if received.content_type == "text/html":
            hint = "; this is a page for people: give the URL of the document itself, often /openapi.json"
        raise Unavailable(f"{received.where}: {error}{hint}") from None


def _part_in(received: Received) -> JsonObject | DocumentError:
    try:
        return parse_part(_text_in(received))
    except DocumentError as error:
        return error


def _text_in(received: Received) -> str:
    if not received.whole:
        raise DocumentError(f"larger than {MAX_DOCUMENT // 1024 // 1024} MiB")
    return decoded(received.body)


def _same(one: str, other: str) -> bool:
    try:
        return origin(one) == origin(other)
    except ValueError:
        return False
