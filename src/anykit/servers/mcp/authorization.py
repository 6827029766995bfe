"""This server as an OAuth 2.1 resource server (MCP authorization; RFC 9728): who a token stands for, and where to get one."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from anykit.servers.identity import Scope, Tokens, bearer

log = logging.getLogger("anykit.mcp")

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
VERIFY_TIMEOUT: Final = 10.0
"""Seconds that judging a token may take."""
MAX_TOKEN: Final = 16 * 1024
_TOKEN = re.compile(rb"[A-Za-z0-9._~+/-]+=*")


class AccessToken(Protocol):
    """What a verifier knows of a token. The MCP SDK's `AccessToken` is one."""

    @property
    def client_id(self) -> str:
        """Whom it was given to."""
        ...

    @property
    def scopes(self) -> Sequence[str]:
        """What it allows."""
        ...

    @property
    def expires_at(self) -> int | None:
        """Unix seconds."""
        ...

    @property
    def resource(self) -> str | None:
        """The server it is for (RFC 8707)."""
        ...


class TokenVerifier(Protocol):
    """Judges bearer tokens. The MCP SDK's verifiers are such."""

    async def verify_token(self, token: str) -> AccessToken | None:
        """What is known of a token; None where it is not good."""
        ...


@dataclass(frozen=True, slots=True)
class ResourceServer:
    """Whose tokens are accepted, and what a client is told that has none.

    Args:
        verifier: Judges tokens.
        resource: The URL of this server as clients know it (`https://tools.example.com/mcp`); tokens must be for it.
        authorization_servers: Where tokens are to be had; issuer URLs.
        scopes: What a token must allow.
    """

    verifier: TokenVerifier
    resource: str
    authorization_servers: Sequence[str]
    scopes: Sequence[str] = ()

    def __post_init__(self) -> None:
        parts = urlsplit(self.resource)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.fragment:
            raise ValueError("the resource is an http or https URL without a fragment")
        if not self.authorization_servers:
            raise ValueError("at least one authorization server is needed, for clients to get a token from")

    @property
    def metadata_path(self) -> str:
        """Where its metadata stand: the well-known name before the resource's own path."""
        path = urlsplit(self.resource).path.rstrip("/")
        return f"{WELL_KNOWN}{path}"

    @property
    def metadata_url(self) -> str:
        """The same as a URL."""
        parts = urlsplit(self.resource)
        return f"{parts.scheme}://{parts.netloc}{self.metadata_path}"

    def metadata(self) -> bytes:
        """What a client reads to find where to get a token."""
        said: dict[str, Any] = {
            "resource": self.resource,
            "authorization_servers": list(self.authorization_servers),
            "bearer_methods_supported": ["header"],
            "resource_name": "anykit",
        }
        if self.scopes:
            said["scopes_supported"] = list(self.scopes)
        return json.dumps(said).encode()


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request may go on, for this principal."""

    principal: str


@dataclass(frozen=True, slots=True)
class Turned:
    """A request may not go on; what its sender is told."""

    status: int
    detail: str
    challenge: str
    """The WWW-Authenticate header."""


class Door:
    """Decides on whose behalf a request comes: the holder of the operator's token, or of one from an authorization server.

    Args:
        token: The operator's token, or all that are given out; "" where there is none.
        server: The resource server; None where there is none. With neither, everyone comes in.
        principal: Whom the operator's token stands for, and everyone where no token is asked for.
    """

    def __init__(self, token: str | Tokens, server: ResourceServer | None, *, principal: str = "local") -> None:
        self._tokens = Tokens.of(token, principal=principal)
        self._server = server
        self._principal = principal

    async def ask(self, scope: Scope) -> Admitted | Turned:
        """Judge one request by its headers."""
        if not self._tokens and self._server is None:
            return Admitted(self._principal)
        given = bearer(scope["headers"])
        if given is None:
            return self._turned(401, "a bearer token is needed")
        if self._tokens and (principal := self._tokens.principal(given)) is not None:
            return Admitted(principal)
        if self._server is None or len(given) > MAX_TOKEN or not _TOKEN.fullmatch(given):
            return self._turned(401, "the bearer token is not good", error="invalid_token")
        return await self._judged(self._server, given.decode("ascii"))

    async def _judged(self, server: ResourceServer, token: str) -> Admitted | Turned:
        try:
            async with asyncio.timeout(VERIFY_TIMEOUT):
                known = await server.verifier.verify_token(token)
        except Exception as error:
            log.warning("a token could not be judged: %s", type(error).__name__)
            return self._turned(401, "the bearer token could not be judged", error="invalid_token")
        if known is None or (known.expires_at is not None and known.expires_at < time.time()):
            return self._turned(401, "the bearer token is not good, or no longer", error="invalid_token")
        if not _same_url(known.resource, server.resource):
            return self._turned(401, "the bearer token is for another server", error="invalid_token")
        missing = [scope for scope in server.scopes if scope not in known.scopes]
        if missing:
            return self._turned(403, "the bearer token does not allow that", error="insufficient_scope")
        return Admitted(_principal_of(known))

    def _turned(self, status: int, detail: str, *, error: str = "") -> Turned:
        said: list[str] = []
        if error:
            said += [f'error="{error}"', f'error_description="{detail}"']
        if self._server is not None:
            if self._server.scopes:
                said.append(f'scope="{" ".join(self._server.scopes)}"')
            said.append(f'resource_metadata="{self._server.metadata_url}"')
        return Turned(status, detail, f"Bearer {', '.join(said)}" if said else "Bearer")


def _same_url(one: str | None, other: str) -> bool:
    if one is None:
        return False
    left, right = urlsplit(one), urlsplit(other)
    return (left.scheme.lower(), left.netloc.lower(), left.path.rstrip("/"), left.query) == (
        right.scheme.lower(),
        right.netloc.lower(),
        right.path.rstrip("/"),
        right.query,
    )


def _principal_of(token: AccessToken) -> str:
    """Issuer and subject where the verifier knows them, else the client."""
    subject: object = getattr(token, "subject", None)
    claims: object = getattr(token, "claims", None)
    issuer: object = claims.get("iss") if isinstance(claims, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    parts = [issuer if isinstance(issuer, str) else "", token.client_id, subject if isinstance(subject, str) else ""]
    return f"oauth:{json.dumps(parts, separators=(',', ':'))}"
