"""One MCP server as the operator describes it. Data only: nothing is started, nothing is fetched."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from anykit.capabilities import CapabilityContext, JsonObject
from anykit.sources.connection import CONNECT_TIMEOUT
from anykit.transports import OPEN, AddressGuard, Command, public_url

from .transforms import Transforms

Era: TypeAlias = Literal["auto", "modern", "legacy"]
"""`modern` is MCP 2026-07-28, `legacy` every revision with a handshake; `auto` asks the server."""
Transport: TypeAlias = Literal["auto", "http", "sse"]
"""`http` is streamable HTTP, `sse` the HTTP+SSE transport of 2024-11-05; `auto` tries them in that order."""
Grant: TypeAlias = Literal["authorization_code", "client_credentials"]

Sampler: TypeAlias = Callable[[JsonObject, CapabilityContext], Awaitable[JsonObject]]
"""Answers `sampling/createMessage`: its params in, its result out, both as MCP spells them."""

_ERAS: Mapping[str, Era] = {
    "auto": "auto",
    "modern": "modern",
    "legacy": "legacy",
    "2026-07-28": "modern",
    "2025-11-25": "legacy",
    "2025-06-18": "legacy",
    "2025-03-26": "legacy",
    "2024-11-05": "legacy",
}


def era_of(text: str) -> Era:
    """The era that a word or a revision of the protocol names. Raises `ValueError`."""
    era = _ERAS.get(text.strip().lower())
    if era is None:
        raise ValueError(f"there is no protocol era {text[:40]!r}; it is auto, modern, legacy or a revision's date")
    return era


@dataclass(frozen=True, slots=True)
class OAuth:
    """How to get a token for a server (MCP authorization, OAuth 2.1). Nothing given: discover and register."""

    grant: Grant = "authorization_code"
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    issuer: str = ""
    """The authorization server that `client_id` belongs to; its credentials go nowhere else."""
    redirect_port: int = 0
    """The loopback port registered for `client_id`; 0 is any free one."""
    client_metadata_url: str = ""
    """An https URL that describes this client, for servers that take one in place of a registration."""

    def __post_init__(self) -> None:
        if self.grant == "client_credentials" and not (self.client_id and self.client_secret):
            raise ValueError("the grant client_credentials needs a client_id and a client_secret")
        if not 0 <= self.redirect_port < 65536:
            raise ValueError("redirect_port is a port, 0 to 65535")


@dataclass(frozen=True, slots=True)
class McpServer:
    """What to start or where to connect. Exactly one of `command` and `url` is given; times are seconds."""

    name: str
    command: Command | None = None
    url: str = field(default="", repr=False)
    """May hold secrets in its query; `place` is fit to be shown."""
    transport: Transport = "auto"
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    headers_helper: str = field(default="", repr=False)
    """A shell's command line that prints more headers, as a JSON object, before each connection. From trusted files only."""
    token: str = field(default="", repr=False)
    """Sent as a bearer token."""
    oauth: OAuth | None = None
    login: bool = True
    """Whether a token that somebody logged in for is used, where nothing else is given."""
    era: Era = "auto"
    connect_timeout: float = CONNECT_TIMEOUT
    call_timeout: float | None = None
    allow: tuple[str, ...] = ("*",)
    """Tools that are offered, as shell patterns of the server's own names."""
    deny: tuple[str, ...] = ()
    """Tools that are not; it wins."""
    transforms: Transforms | None = None
    """Other names, words and arguments for its tools."""
    guard: AddressGuard = OPEN
    """Addresses that may be connected to; open for what the operator wrote."""

    def __post_init__(self) -> None:
        if (self.command is None) == (not self.url):
            raise ValueError("an MCP server is a command or a URL, one of the two")
        if self.url:
            try:
                parts = urlsplit(self.url)
                host, _ = parts.hostname, parts.port
            except ValueError as error:
                raise ValueError(f"the URL is not valid: {error}") from None
            if parts.scheme not in ("http", "https"):
                raise ValueError(f"an MCP server is reached over http or https, not {parts.scheme[:20]!r}")
            if not host:
                raise ValueError("the URL names no host")
        for name, value in self.headers.items():
            if not name or not name.isascii() or any(c in "\r\n\0: " for c in name):
                raise ValueError(f"{name[:40]!r} is not the name of a header")
            if any(c in "\r\n\0" for c in value):
                raise ValueError(f"the header {name} must be one line")
        if "\r" in self.token or "\n" in self.token:
            raise ValueError("the token must be one line")
        if self.connect_timeout <= 0 or (self.call_timeout is not None and self.call_timeout <= 0):
            raise ValueError("a timeout must be more than 0 seconds")

    @property
    def place(self) -> str:
        """What it is, fit to be shown: the program, or the URL without its secrets."""
        if self.command is not None:
            return os.path.basename(self.command.program) or self.command.program
        return public_url(self.url)

    @property
    def credentials(self) -> bool:
        """Whether something is sent that the server may refuse."""
        given = {name.lower() for name in self.headers}
        return bool(self.token or self.oauth or self.headers_helper) or not given.isdisjoint(
            {"authorization", "x-api-key", "api-key"}
        )

    def offers(self, tool: str) -> bool:
        """Whether a tool of that name passes `allow` and `deny`."""
        if any(fnmatchcase(tool, pattern) for pattern in self.deny):
            return False
        return any(fnmatchcase(tool, pattern) for pattern in self.allow)


@dataclass(frozen=True, slots=True)
class Offers:
    """What a server may ask us for. Only what is here is offered to it."""

    questions: bool = True
    """Forms and URLs for the caller (elicitation); answered through suspensions and `CapabilityContext.ask`."""
    sampler: Sampler | None = None
    """A model that it may use."""
    roots: Sequence[str | os.PathLike[str]] | None = None
    """Folders that it should work in; None offers none."""
