"""The `web` toolkit: fetch a page as Markdown or text, from where the configuration and the operator allow."""

from __future__ import annotations

import asyncio
import codecs
import re
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from anykit.capabilities import Unavailable
from anykit.tools import Bounds, PermissionRequest, ToolError, Toolkit, tool
from anykit.transports import AddressGuard, AddressRefused, HttpClient, HttpStream
from anykit.transports.guard import host_name, literal

from . import html_text
from .text_files import SAMPLE, binary_kind

MAX_URL = 4096
MAX_OUTPUT = 768 * 1024
"""Characters of a page that are given."""
CONVERSIONS = 4
"""Pages that one instance turns into Markdown at a time."""

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = re.compile(
    r"text/.*|image/svg\+xml|application/(.*[+/.-])?(json|xml|javascript|ecmascript|yaml|toml|sql|graphql|ndjson|jsonl|x-sh)"
)
_META_CHARSET = re.compile(
    rb"""<meta[^>]{0,200}?charset\s{0,5}=\s{0,5}["']?\s{0,5}([a-zA-Z0-9_.:-]{1,40})""", re.IGNORECASE
)
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_NO_TEXT = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "utf-7", "mbcs", "oem"})
"""What Python calls an encoding and no page is written in."""


@dataclass(frozen=True)  # no slots: the methods extend those of the base
class HostGuard(AddressGuard):
    """An address guard that also looks at names. Asked for the first URL and for every one that is redirected to."""

    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()

    def check_target(self, scheme: str, host: str | None, port: int | None) -> None:
        """See `AddressGuard`. Raises `AddressRefused`."""
        AddressGuard.check_target(self, scheme, host, port)
        name = _comparable(host or "")
        if any(_covers(entry, name, beneath=True) for entry in self.blocked):
            raise AddressRefused(f"refused: the host {name[:200]!r} is blocked by this toolkit's configuration")
        if self.allowed and not any(_covers(entry, name, beneath=False) for entry in self.allowed):
            raise AddressRefused(
                f"refused: the host {name[:200]!r} is not one that this toolkit's configuration allows"
            )


class Web(Toolkit):
    """Pages of the web as Markdown or text; private addresses only where that is allowed."""

    name = "web"
    alias = "web"
    category = "network"
    tags = ("web", "http", "fetch")
    icon_svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2">'
        '<circle cx="12" cy="12" r="9"/><path d="M3 12h18M12 3c-6 6-6 12 0 18c6-6 6-12 0-18"/></svg>'
    )

    class Config(BaseModel):
        """What may be fetched, and how much of it."""

        model_config = ConfigDict(extra="forbid")

        allowed_hosts: list[str] = Field(
            default=[],
            max_length=1000,
            description="Hosts that may be fetched from, all others not; `*.example.com` is every host beneath. Empty: any",
        )
        blocked_hosts: list[str] = Field(
            default=[], max_length=1000, description="Hosts that may not be fetched from, with every host beneath them"
        )
        allow_private: bool = Field(
            default=False, description="Allow private addresses, as far as the operator of the host does"
        )
        max_bytes: int = Field(
            default=512 * 1024, ge=1024, le=8 * 1024 * 1024, description="Bytes of an answer that are read"
        )
        timeout: float = Field(default=20.0, gt=0, le=120, description="Seconds that one fetch takes at most")
        max_redirects: int = Field(default=5, ge=0, le=20, description="Redirects that are followed")

        @field_validator("allowed_hosts", "blocked_hosts")
        @classmethod
        def _hosts(cls, entries: list[str]) -> list[str]:
            for entry in entries:
                if not re.fullmatch(r"(\*\.)?[^\s/*@?#]{1,253}", entry):
                    raise ValueError(f"{entry[:100]!r} is not a host: write example.com or *.example.com")
            return entries

    config: Config

    def __init__(self) -> None:
        self._client: HttpClient | None = None
        self._converting = asyncio.Semaphore(CONVERSIONS)

    async def setup(self, config: Config) -> None:
        """Make the client; nothing is connected to yet. Raises `ToolError` for bounds that cannot be read."""
        try:
            guard = host_guard(config, self.bounds)
        except ValueError as error:
            raise ToolError(str(error)) from None
        self._client = HttpClient(
            guard=guard, timeout=config.timeout, max_redirects=config.max_redirects, connect_timeout=config.timeout
        )

    async def close(self) -> None:
        """Close every connection."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    @tool(title="Fetch", read_only=True, destructive=False, idempotent=True, open_world=True)
    async def fetch(self, url: str, format: Literal["markdown", "text"] = "markdown") -> str:
        """Fetch a page of the web by GET.

        HTML becomes Markdown or text; text, JSON, XML and the like are given as they are; anything else is refused.

        Args:
            url: An http or https URL.
            format: What HTML is turned into.
        """
        if self._client is None:
            raise ToolError("the web toolkit is not configured")
        _check_url(url)
        limit = self.config.timeout
        try:
            async with asyncio.timeout(limit):
                async with self._client.stream("GET", url, headers={"accept": _ACCEPT}) as answer:
                    page = await self._page(answer)
                return await self._rendered(page, format)
        except TimeoutError:
            raise ToolError(f"the page did not come within {limit:g} s") from None
        except Unavailable as error:
            raise ToolError(error.message) from None

    fetch.touches(lambda arguments: [PermissionRequest("network", arguments["url"])])

    async def _page(self, answer: HttpStream) -> _Page:
        """Read as much as is allowed. Raises `ToolError` for an error status and for what is no text."""
        if not 200 <= answer.status < 300:
            said = await answer.excerpt()
            raise ToolError(f"{answer.url} answered with {said.describe()}")
        kind = answer.content_type
        length = answer.headers.get("content-length", "")
        size = f", {length} bytes" if length.isdigit() else ""
        if kind and kind not in _HTML and not _TEXT.fullmatch(kind):
            raise ToolError(f"{answer.url} is {kind[:100]}{size}: only text can be fetched")
        body = bytearray()
        cut = False
        async for chunk in answer.chunks():
            body += chunk
            if len(body) > self.config.max_bytes:
                cut = True
                break
        data = bytes(body[: self.config.max_bytes])
        encoding = _encoding(data, answer.headers.get("content-type", ""), html=not kind or kind in _HTML)
        if not encoding.startswith(("utf-16", "utf-32")) and (found := binary_kind(data[:SAMPLE])) is not None:
            raise ToolError(
                f"{answer.url} is {found}{size}, though it says {kind or 'nothing'}: only text can be fetched"
            )
        text = data.decode(encoding, "replace")
        is_html = kind in _HTML or (not kind and re.match(r"\s*<(!doctype\s+html|html)\b", text[:1000], re.IGNORECASE))
        return _Page(answer.location, text, bool(is_html), len(data) if cut else None)

    async def _rendered(self, page: _Page, format: Literal["markdown", "text"]) -> str:
        text = page.text
        if page.is_html:
            async with self._converting:
                if format == "markdown":
                    text = await asyncio.to_thread(html_text.to_markdown, page.text, page.location)
                else:
                    text = await asyncio.to_thread(html_text.to_text, page.text)
        notes: list[str] = []
        if page.cut_after is not None:
            notes.append(f"only the first {page.cut_after} bytes of the page were read")
        if len(text) > MAX_OUTPUT:
            text = text[:MAX_OUTPUT]
            notes.append(f"cut after {MAX_OUTPUT} characters")
        if not notes:
            return text
        return f"{text}{'' if text.endswith(chr(10)) else chr(10)}[{'; '.join(notes)}]"


def host_guard(config: Web.Config, bounds: Bounds | None) -> HostGuard:
    """What a configuration lets pass, inside the operator's bounds. Raises `ValueError` for bounds that cannot be read."""
    private = () if bounds is None or not config.allow_private else bounds.private_hosts
    return HostGuard(
        allow_private=config.allow_private and bounds is None,
        private_hosts=private,
        allowed=tuple(map(_entry, config.allowed_hosts)),
        blocked=tuple(map(_entry, config.blocked_hosts)),
    )


@dataclass(frozen=True, slots=True)
class _Page:
    location: str
    """Where it came from in the end: its links are relative to this."""
    text: str
    is_html: bool
    cut_after: int | None
    """Bytes, where there was more."""


_ACCEPT = "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,application/xml;q=0.8,*/*;q=0.1"


def _check_url(url: str) -> None:
    if len(url) > MAX_URL:
        raise ToolError(f"a URL has at most {MAX_URL} characters")
    try:
        url.encode()
    except UnicodeEncodeError:
        raise ToolError("the URL is no text: it has a lone surrogate") from None


def _encoding(data: bytes, content_type: str, *, html: bool) -> str:
    """How the text is written: by its first bytes, its header, its own word, else UTF-8."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    named = re.search(r"""charset\s*=\s*["']?([a-zA-Z0-9_.:-]{1,40})""", content_type[:500], re.IGNORECASE)
    if named and (encoding := _known(named[1])):
        return encoding
    if html and (meta := _META_CHARSET.search(data[:2048])) and (encoding := _known(meta[1].decode("ascii"))):
        return "utf-8" if encoding.startswith("utf-16") else encoding  # a page that could say so is not UTF-16
    return "utf-8"


def _known(name: str) -> str | None:
    """Python's name of an encoding; None for one that is unknown or no encoding of text."""
    try:
        found = codecs.lookup(name).name
        b"aa".decode(found, "replace")  # raises for what turns bytes into bytes
    except (LookupError, ValueError):
        return None
    if found.replace("_", "-") in _NO_TEXT:
        return None
    return "cp1252" if found in ("iso8859-1", "ascii") else found  # as browsers read it (WHATWG Encoding)


def _entry(entry: str) -> str:
    """An entry of a list of hosts, as it is compared."""
    return f"*.{_comparable(entry[2:])}" if entry.startswith("*.") else _comparable(entry)


def _comparable(host: str) -> str:
    """A host's name as it is compared: an address in one spelling, a name in ASCII and lower case."""
    address = literal(host)
    if address is not None:
        mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        return str(mapped or address)
    name = host_name(host)
    try:
        return name if name.isascii() else name.encode("idna").decode("ascii")
    except UnicodeError:
        return name


def _covers(entry: str, name: str, *, beneath: bool) -> bool:
    """Whether an entry means this host; with `beneath` a plain name means every host beneath it too."""
    if entry.startswith("*."):
        return name.endswith(entry[1:])
    return name == entry or (beneath and name.endswith(f".{entry}"))
