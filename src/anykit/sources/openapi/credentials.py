"""The operator's secrets at work: which requests may carry them, and tokens that are fetched with client credentials."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote, urlencode, urljoin

from anykit.capabilities import CapabilityContext, ExecutionFailed, JsonObject, Unavailable
from anykit.sources.http import Exchange, HttpRequest
from anykit.sources.http.redirects import origin
from anykit.transports import public_url

from .operations import Operation
from .security import NOT_CONFIGURED, Credentials, Scheme, chosen, is_client, missing, shown, wrong

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


class Wallet:
    """Secrets by the name of their scheme. `location` is the URL of the document; "" for a file, which is the operator's.

    What a document from the network says about where secrets go counts only where that is the document's own origin:
    another server is named by the operator.
    """

    def __init__(
        self,
        secrets: Mapping[str, Any],
        *,
        token: str = "",
        headers: Sequence[tuple[str, str]] = (),
        location: str = "",
        server: str = "",
    ) -> None:
        self._secrets = dict(secrets)
        self._token = token
        self._headers = tuple(headers)
        self._location = location
        self._server = server
        self._tokens: dict[str, _Token] = {}
        self._asking = asyncio.Lock()

    def configured(self, schemes: Mapping[str, Scheme]) -> frozenset[str]:
        """Schemes that have a secret."""
        named = {name for name in schemes if self._secrets.get(name)}
        if self._token:
            named |= {name for name, scheme in schemes.items() if scheme.is_bearer}
        given = {name.lower() for name, _ in self._headers}
        for name, scheme in schemes.items():
            header = scheme.parameter.lower() if scheme.kind == "apiKey" else "authorization"
            if header in given and (scheme.kind != "apiKey" or scheme.place == "header"):
                named.add(name)
        return frozenset(named)

    def unknown(self, schemes: Mapping[str, Scheme]) -> list[str]:
        """Secrets whose scheme the document does not have."""
        return sorted(set(self._secrets) - set(schemes))

    def trusts(self, url: str, *, chosen: bool) -> bool:
        """Whether secrets may go to `url`; `chosen` where the operator named the server."""
        if not self._location or chosen:
            return True
        return _same(url, self._location) or (self._server != "" and _same(url, self._server))

    async def opened(
        self, operation: Operation, schemes: Mapping[str, Scheme], exchange: Exchange, context: CapabilityContext
    ) -> Credentials:
        """What a request of `operation` shows. Raises `ExecutionFailed` where a secret is missing or may not be shown."""
        credentials = Credentials()
        requirement = chosen(operation.requirements, schemes, self.configured(schemes))
        if requirement is None:
            why = missing(operation.requirements, schemes, self.configured(schemes))
            raise ExecutionFailed(
                f"{operation.name} cannot be called: {why}",
                code=NOT_CONFIGURED,
                detail={"schemes": [sorted(one) for one in operation.requirements]},
            )
        trusted = self.trusts(operation.address.url, chosen=operation.address.chosen)
        if not trusted and (requirement or self._headers):
            server = public_url(operation.address.url)
            raise ExecutionFailed(
                f"{operation.name} cannot be called: its document comes from {public_url(self._location)} and its server is"
                f' {server}, another origin, which gets no secrets unless you name it: server = "{server}"',
                code=NOT_CONFIGURED,
            )
        given = {name.lower() for name, _ in self._headers}
        credentials.headers += self._headers
        for name in requirement:
            scheme = schemes[name]
            secret = self._secrets.get(name) or (self._token if scheme.is_bearer else None)
            if secret is None:
                continue  # the operator's own header says it
            if is_client(secret):
                secret = await self._fetched(scheme, secret, requirement[name], exchange, context)
            shown(scheme, secret, credentials)
        own = {name.lower() for name, _ in credentials.headers[len(self._headers) :]}
        credentials.headers = [
            pair
            for index, pair in enumerate(credentials.headers)
            if index >= len(self._headers) or pair[0].lower() not in own & given
        ]
        return credentials

    def renew(self) -> bool:
        """Forget tokens that were fetched, after one was refused; whether there were any."""
        had = bool(self._tokens)
        self._tokens.clear()
        return had

    # OAuth2 client credentials (RFC 6749, 4.4)

    async def _fetched(
        self, scheme: Scheme, secret: Any, scopes: Sequence[str], exchange: Exchange, context: CapabilityContext
    ) -> str:
        loop = asyncio.get_running_loop()
        key = f"{scheme.name}\0{' '.join(scopes)}"
        async with self._asking:
            known = self._tokens.get(key)
            if known is not None and known.until > loop.time():
                return known.value
            value, life = await self._ask(scheme, cast("Mapping[str, Any]", secret), scopes, exchange, context)
            self._tokens[key] = _Token(value, loop.time() + max(life - EARLY, min(life, 1.0)))
            return value

    async def _ask(
        self,
        scheme: Scheme,
        secret: Mapping[str, Any],
        scopes: Sequence[str],
        exchange: Exchange,
        context: CapabilityContext,
    ) -> tuple[str, float]:
        client_id, client_secret = secret.get("client_id"), secret.get("client_secret")
        if not isinstance(client_id, str) or not isinstance(client_secret, str):
            raise wrong(scheme, "client_id and client_secret are needed")
        url = self._token_url(scheme, secret)
        form = {"grant_type": "client_credentials"}
        wanted: Any = secret.get("scopes", scopes)
        if wanted:
            form["scope"] = wanted if isinstance(wanted, str) else " ".join(map(str, wanted))
        if isinstance(secret.get("audience"), str):
            form["audience"] = secret["audience"]
        pair = base64.b64encode(f"{quote(client_id, safe='')}:{quote(client_secret, safe='')}".encode()).decode()
        hidden = (client_secret, pair)
        headers = (("content-type", "application/x-www-form-urlencoded"), ("accept", "application/json"))
        request = HttpRequest(
            "POST", url, (*headers, ("authorization", f"Basic {pair}")), urlencode(form).encode(), False, hidden
        )
        received = await exchange.receive(request, context)
        if received.status in (400, 401):  # some know only the other way of RFC 6749, 2.3.1
            form |= {"client_id": client_id, "client_secret": client_secret}
            request = HttpRequest("POST", url, headers, urlencode(form).encode(), False, hidden)
            received = await exchange.receive(request, context)
        try:
            payload: Any = json.loads(received.body)
        except (ValueError, RecursionError):
            payload = None
        answer = cast(JsonObject, payload) if isinstance(payload, dict) else {}
        token, life = answer.get("access_token"), answer.get("expires_in")
        if received.status != 200 or not isinstance(token, str) or not 0 < len(token) <= MAX_TOKEN:
            raise Unavailable(f"no token for {scheme.name[:60]!r} from {public_url(url)}: HTTP {received.phrase}")
        usable = isinstance(life, int | float) and not isinstance(life, bool) and 0 < life < 1e9
        return token, float(cast(float, life)) if usable else TOKEN_LIFE

    def _token_url(self, scheme: Scheme, secret: Mapping[str, Any]) -> str:
        given = secret.get("token_url")
        if isinstance(given, str) and given:
            return given
        url = urljoin(self._location, scheme.token_url) if scheme.token_url else ""
        if not url.startswith(("http://", "https://")):
            raise wrong(scheme, "the document names no token URL; give one as `token_url` beside `client_id`")
        if self._location and not _same(url, self._location) and not (self._server and _same(url, self._server)):
            raise wrong(
                scheme,
                f"its token URL {public_url(url)} is of another origin than the document; give it as `token_url` beside"
                " `client_id`, if it is right",
            )
        return url


def _same(one: str, other: str) -> bool:
    try:
        return origin(one) == origin(other)
    except ValueError:
        return False
