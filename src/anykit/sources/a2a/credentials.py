"""How an agent learns who asks: the operator's headers, and the card's security schemes with the operator's secrets.

They go to the card's origin and to the origins that the operator allows, nowhere else.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast
from urllib.parse import quote, unquote, urlencode, urlsplit, urlunsplit

from anykit.capabilities import ExecutionFailed, Unavailable
from anykit.stores import resolve, resolve_all
from anykit.transports import HttpClient, public_url
from anykit.wire.a2a import Card, Scheme, WireError, WireRequest, decode

from .agent import Agent
from .origins import Origin, origin_of

log = logging.getLogger("anykit.sources.a2a")

TOKEN_TIMEOUT = 15.0
TOKEN_LIFE = 300.0
"""Seconds that a token is used where its issuer does not say."""
EARLY = 30.0
"""Seconds before its end at which a token is renewed."""
MAX_TOKEN = 16_384


@dataclass(frozen=True, slots=True)
class _Token:
    value: str
    until: float
    """Of the loop's clock."""


class Credentials:
    """What proves who asks. Resolving the operator's references raises `UnresolvedReference`."""

    def __init__(self, agent: Agent, trusted: Sequence[str]) -> None:
        table = "" if agent.id is None else f"/agents/{agent.id}"
        headers = {
            name: resolve(value, agent.env, agent.base_dir, where=f"{table}/headers/{name}")
            for name, value in agent.headers.items()
        }
        self._headers = {name.lower(): value for name, value in headers.items()}
        self._given: dict[str, Any] = resolve_all(
            dict(agent.credentials), agent.env, agent.base_dir, where=f"{table}/credentials"
        )
        urls = [*trusted, *agent.allow_origins]
        self._trusted: set[Origin] = {origin for origin in map(origin_of, urls) if origin is not None}
        if agent.card_url is not None and (basic := _basic_of(agent.card_url)) is not None:
            self._headers.setdefault("authorization", basic)
        self._chosen: tuple[Scheme, ...] = ()
        self._scopes: Mapping[str, tuple[str, ...]] = {}
        self._tokens: dict[str, _Token] = {}
        self._asking: asyncio.Lock | None = None
        self.missing = ""
        """Which secrets the card asks for and nobody gave; "" where none."""
        self._secrets = sorted(self._all_secrets(), key=len, reverse=True)

    @property
    def present(self) -> bool:
        """Whether there is anything to show."""
        return bool(self._headers or self._chosen)

    def trusts(self, url: str) -> bool:
        """Whether secrets may go to `url`."""
        return origin_of(url) in self._trusted

    def choose(self, card: Card) -> None:
        """Look which of the card's demands can be met: the first alternative that can, else every scheme with a secret."""
        have = {name: scheme for name, scheme in card.schemes.items() if name in self._given}
        unknown = sorted(set(self._given) - set(card.schemes))
        if unknown:
            log.warning("the card of %s knows no security scheme %s", card.name[:100], ", ".join(unknown))
        fitting = next((one for one in card.requirements if one and all(name in have for name in one)), None)
        self.missing = ""
        if fitting is not None:
            self._chosen = tuple(have[name] for name in fitting)
            self._scopes = fitting
            return
        self._chosen, self._scopes = tuple(have.values()), {}
        if card.requirements and all(card.requirements):
            self.missing = " or ".join(" with ".join(map(repr, one)) for one in card.requirements[:4])

    async def applied(self, request: WireRequest, http: HttpClient) -> WireRequest:
        """The request with what proves who asks, where its origin may know. Raises `Unavailable`, `ExecutionFailed`."""
        if not self.present or not self.trusts(request.url):
            return request
        headers = {**self._headers, **request.headers}
        url = request.url
        for scheme in self._chosen:
            secret = self._given[scheme.name]
            match scheme.kind:
                case "apiKey" if scheme.place == "query":
                    url = _with_query(url, scheme.parameter, _text(scheme, secret))
                case "apiKey" if scheme.place == "cookie":
                    cookie = f"{scheme.parameter}={_text(scheme, secret)}"
                    headers["cookie"] = f"{headers['cookie']}; {cookie}" if "cookie" in headers else cookie
                case "apiKey":
                    headers.setdefault(scheme.parameter.lower(), _text(scheme, secret))
                case "http" if scheme.scheme == "basic":
                    headers.setdefault("authorization", f"Basic {_base64(_pair(scheme, secret))}")
                case "oauth2" if isinstance(secret, Mapping):
                    token = await self._token(scheme, cast("Mapping[str, Any]", secret), http)
                    headers.setdefault("authorization", f"Bearer {token}")
                case _:
                    headers.setdefault("authorization", f"Bearer {_text(scheme, secret)}")
        return replace(request, url=url, headers=headers)

    def renew(self) -> bool:
        """Forget tokens that were fetched, after one was refused; whether there were any."""
        had = bool(self._tokens)
        self._tokens.clear()
        return had

    def mask(self, text: str) -> str:
        """The text without any secret that a peer may have repeated."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        for token in self._tokens.values():
            text = text.replace(token.value, "***")
        return text

    # OAuth2 client credentials (RFC 6749, 4.4)

    async def _token(self, scheme: Scheme, secret: Mapping[str, Any], http: HttpClient) -> str:
        loop = asyncio.get_running_loop()
        known = self._tokens.get(scheme.name)
        if known is not None and known.until > loop.time():
            return known.value
        if self._asking is None:
            self._asking = asyncio.Lock()
        async with self._asking:
            known = self._tokens.get(scheme.name)
            if known is not None and known.until > loop.time():
                return known.value
            value, life = await self._ask_for_token(scheme, secret, http)
            self._tokens[scheme.name] = _Token(value, loop.time() + max(life - EARLY, min(life, 1.0)))
            return value

    async def _ask_for_token(self, scheme: Scheme, secret: Mapping[str, Any], http: HttpClient) -> tuple[str, float]:
        given = secret.get("token_url")
        url = given if isinstance(given, str) and given else scheme.token_url
        if not url:
            raise _wrong(scheme, "the card names no token URL; give one as token_url")
        if url != given and not self.trusts(url):
            raise _wrong(
                scheme, f"its token URL {public_url(url)} is of another origin; allow_origins or token_url may allow it"
            )
        client_id, client_secret = secret.get("client_id"), secret.get("client_secret")
        if not isinstance(client_id, str) or not isinstance(client_secret, str):
            raise _wrong(scheme, "client_id and client_secret are needed")
        scopes = secret.get("scopes", self._scopes.get(scheme.name, ()))
        form = {"grant_type": "client_credentials"}
        if scopes:
            form["scope"] = scopes if isinstance(scopes, str) else " ".join(map(str, scopes))
        headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
        pair = f"{quote(client_id, safe='')}:{quote(client_secret, safe='')}"
        answer = await http.request(
            "POST",
            url,
            headers={**headers, "authorization": f"Basic {_base64(pair)}"},
            body=urlencode(form).encode(),
            timeout=TOKEN_TIMEOUT,
            max_redirects=0,
        )
        if answer.status in (400, 401):  # some know only the other way of RFC 6749, 2.3.1
            form |= {"client_id": client_id, "client_secret": client_secret}
            body = urlencode(form).encode()
            answer = await http.request("POST", url, headers=headers, body=body, timeout=TOKEN_TIMEOUT, max_redirects=0)
        try:
            payload = decode(answer.body)
        except WireError:
            payload = None
        token = cast("dict[str, Any]", payload).get("access_token") if isinstance(payload, dict) else None
        if answer.status != 200 or not isinstance(token, str) or not 0 < len(token) <= MAX_TOKEN:
            raise Unavailable(f"no token from {public_url(url)}: HTTP {answer.status} {answer.content_type}")
        life = cast("dict[str, Any]", payload).get("expires_in")
        usable = isinstance(life, int | float) and not isinstance(life, bool) and 0 < life < 1e9
        return token, float(cast(float, life)) if usable else TOKEN_LIFE

    def _all_secrets(self) -> set[str]:
        found: set[str] = set()

        def walk(value: Any) -> None:
            if isinstance(value, str):
                found.update(word for word in (value, *value.split()) if len(word) >= 6)
            elif isinstance(value, Mapping):
                for name, item in cast("Mapping[str, Any]", value).items():
                    if name not in ("client_id", "scopes", "token_url"):
                        walk(item)
            elif isinstance(value, list | tuple):
                for item in cast("Sequence[Any]", value):
                    walk(item)

        walk(list(self._headers.values()))
        walk(self._given)
        return found - {"Bearer", "bearer"}


def _wrong(scheme: Scheme, why: str) -> ExecutionFailed:
    return ExecutionFailed(f"security scheme {scheme.name[:64]!r}: {why}", code="unauthorized")


def _text(scheme: Scheme, secret: Any) -> str:
    if not isinstance(secret, str):
        raise _wrong(scheme, "its secret must be a text")
    return secret


def _pair(scheme: Scheme, secret: Any) -> str:
    """`user:password`."""
    if isinstance(secret, Mapping):
        table = cast("Mapping[str, Any]", secret)
        secret = [table.get("username", table.get("user")), table.get("password")]
    if isinstance(secret, list | tuple):
        secret = ":".join(map(str, cast("Sequence[Any]", secret)))
    if not isinstance(secret, str) or ":" not in secret:
        raise _wrong(scheme, "its secret must be 'user:password'")
    return secret


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _basic_of(url: str) -> str | None:
    """The credentials that an operator wrote into the card's URL."""
    userinfo, at, _ = urlsplit(url).netloc.rpartition("@")
    if not at:
        return None
    user, _, password = userinfo.partition(":")
    pair = f"{unquote(user)}:{unquote(password)}"
    return f"Basic {_base64(pair)}"


def _with_query(url: str, name: str, value: str) -> str:
    parts = urlsplit(url)
    added = urlencode({name: value})
    return urlunsplit(parts._replace(query=f"{parts.query}&{added}" if parts.query else added))
