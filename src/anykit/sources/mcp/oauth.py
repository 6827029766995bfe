"""OAuth 2.1 for a server (MCP authorization): the SDK's flow, our HTTP client, tokens in the vault.

Discovery, registration and token requests go to addresses that the server names. They pass a guard: such an address is
public, or on the host that the operator wrote. Nobody is asked for anything here; `login` asks.

Imports the SDK and httpx2; comes in with `session.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp.shared.exceptions import MCPDeprecationWarning
from pydantic import AnyUrl, ValidationError

from anykit.capabilities import ExecutionFailed, Unavailable
from anykit.sources.hostile import clean_text
from anykit.transports import PUBLIC_ONLY, AddressGuard, HttpClient, is_loopback, public_url

from .credentials import challenge_field
from .servers import McpServer, OAuth
from .vault import Drawer, Vault

RENEWAL_SECONDS = 30.0
"""What getting a token without a person may take."""
MAX_BODY = 1024 * 1024
UNREACHED = "http://127.0.0.1/callback"
"""The redirect of a client that never opens a browser."""

# Its tracebacks hold what authorization servers answer; what matters of it is in our errors.
logging.getLogger("mcp.client.auth").addFilter(lambda record: False)
logging.getLogger("mcp.client.auth.oauth2").addFilter(lambda record: False)

Redirect = Callable[[str], Awaitable[None]]
Callback = Callable[[], Awaitable[str]]


class Storage:
    """The SDK's token storage over what is kept for one server."""

    def __init__(self, drawer: Drawer, settings: OAuth, redirect: str) -> None:
        self._drawer = drawer
        self._settings = settings
        self._redirect = redirect

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens, if there are any that can be read."""
        kept = (await self._drawer.read()).get("tokens")
        with contextlib.suppress(ValidationError):
            return None if kept is None else OAuthToken.model_validate(kept)
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep them."""
        until = None if tokens.expires_in is None else time.time() + tokens.expires_in
        await self._drawer.change(tokens=tokens.model_dump(mode="json", exclude_none=True), until=until)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """The client that the operator registered, or the one registered on the way."""
        settings = self._settings
        if settings.client_id:
            method = "client_secret_basic" if settings.client_secret else "none"  # RFC 8414, 2: where nothing is said
            return OAuthClientInformationFull(
                client_id=settings.client_id,
                client_secret=settings.client_secret or None,
                redirect_uris=[AnyUrl(self._redirect)],
                token_endpoint_auth_method=method,
                issuer=settings.issuer or None,
            )
        kept = (await self._drawer.read()).get("client")
        with contextlib.suppress(ValidationError):
            client = None if kept is None else OAuthClientInformationFull.model_validate(kept)
            if client is not None and self._fits(client):
                return client
        return None

    def _fits(self, client: OAuthClientInformationFull) -> bool:
        """Whether a registered client may be sent back to where this login listens."""
        registered = [str(uri) for uri in client.redirect_uris or ()]
        return self._redirect == UNREACHED or not registered or self._redirect in registered

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep a registration."""
        if not self._settings.client_id:
            await self._drawer.change(client=client_info.model_dump(mode="json", exclude_none=True))


class _CodeProvider(OAuthClientProvider):
    """The SDK's flow, which renews a token where it can instead of asking a person again, and insists on PKCE."""

    wanted_scope = ""

    async def _perform_authorization(self) -> httpx2.Request:
        _use_known_method(self)
        if self.context.redirect_handler is None:
            return await self._refresh_token()
        metadata = self.context.oauth_metadata
        if metadata is not None and "S256" not in (metadata.code_challenge_methods_supported or ()):
            raise OAuthFlowError("the authorization server does not say that it supports PKCE (S256)")
        if self.wanted_scope:
            self.context.client_metadata.scope = self.wanted_scope
        return await super()._perform_authorization()

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        before = self.context.current_tokens
        await super()._handle_token_response(response)
        now = self.context.current_tokens
        renewed = self.context.redirect_handler is None
        if renewed and now is not None and now.refresh_token is None and before is not None and before.refresh_token:
            now.refresh_token = before.refresh_token  # RFC 6749, 6: an absent one is still the old one
            await self.context.storage.set_tokens(now)


class _MachineProvider(ClientCredentialsOAuthProvider):
    """The SDK's flow for a client without a person."""

    wanted_scope = ""

    async def _perform_authorization(self) -> httpx2.Request:
        _use_known_method(self)
        if self.wanted_scope:
            self.context.client_metadata.scope = self.wanted_scope
        return await super()._perform_authorization()


def _use_known_method(provider: OAuthClientProvider) -> None:
    """Show a configured secret in the way that the authorization server takes."""
    metadata, client = provider.context.oauth_metadata, provider.context.client_info
    known = None if metadata is None else metadata.token_endpoint_auth_methods_supported
    if client is not None and client.client_secret and known and "client_secret_basic" not in known:
        client.token_endpoint_auth_method = "client_secret_post" if "client_secret_post" in known else known[0]


class OAuthCredentials:
    """Tokens of one server. See `Credentials`.

    With `redirect` and `callback` a person can be asked: the first is given the URL to open, the second gives the URL
    that the browser was sent back to.
    """

    def __init__(
        self,
        server: McpServer,
        vault: Vault,
        *,
        redirect: Redirect | None = None,
        callback: Callback | None = None,
        redirect_uri: str = UNREACHED,
    ) -> None:
        self._server = server
        self._settings = server.oauth or OAuth()
        self._drawer = Drawer(vault, server)
        self._storage = Storage(self._drawer, self._settings, redirect_uri)
        self._redirect = redirect
        self._callback = callback
        self._redirect_uri = redirect_uri
        self._lock = asyncio.Lock()
        self._tokens: OAuthToken | None = None
        self._loaded = False

    async def headers(self) -> Mapping[str, str]:
        """See `Credentials`."""
        if not self._loaded:
            self._tokens = await self._storage.get_tokens()
            self._loaded = self._tokens is not None
        return {} if self._tokens is None else {"authorization": f"Bearer {self._tokens.access_token}"}

    async def challenged(self, status: int, headers: Mapping[str, str], used: Mapping[str, str]) -> bool:
        """See `Credentials`. Many requests may be challenged at once: the first renews, the others take what it got."""
        async with self._lock:
            self._loaded = False  # another process may have logged in meanwhile
            now = await self.headers()
            if now.get("authorization") != used.get("authorization"):
                return True
            if not self._can_renew(status, headers):
                if status == 403 and challenge_field(headers, "error") == "insufficient_scope":
                    await self._drawer.change(challenge=headers.get("www-authenticate"))  # for the next login
                return False
            try:
                async with asyncio.timeout(RENEWAL_SECONDS):
                    await self.renew(status, headers)
            except TimeoutError:
                raise Unavailable(f"{self._server.place}: no token within {RENEWAL_SECONDS:g} s") from None
            return True

    def _can_renew(self, status: int, headers: Mapping[str, str]) -> bool:
        machine = self._settings.grant == "client_credentials"
        if status == 403:
            return machine and challenge_field(headers, "error") == "insufficient_scope"
        return machine or (self._tokens is not None and self._tokens.refresh_token is not None)

    async def renew(self, status: int, headers: Mapping[str, str]) -> None:
        """Get a token: from what is kept, or from a person where one can be asked.

        `status` and `headers` are the server's refusal. Raises `CapabilityError`.
        """
        request = httpx2.Request("POST", self._server.url)
        async with HttpClient(guard=self._guard(), max_body=MAX_BODY) as client:
            flow = self._provider().async_auth_flow(request)
            try:
                await self._drive(
                    flow, request, client, httpx2.Response(status, headers=dict(headers), request=request)
                )
            except (OAuthFlowError, ValidationError, ValueError) as error:
                text = clean_text(" ".join(str(error).split()), 300)
                raise ExecutionFailed(
                    f"{self._server.place}: no token was got: {text}; run: anykit login {self._server.name}",
                    code="unauthorized",
                    detail={"needs": "login"},
                ) from None
            finally:
                await flow.aclose()
        self._tokens = await self._storage.get_tokens()
        self._loaded = self._tokens is not None
        if self._tokens is None:
            raise ExecutionFailed(f"{self._server.place}: the login gave no token", code="unauthorized")
        await self._drawer.change(challenge=None)

    async def _drive(
        self,
        flow: AsyncGenerator[httpx2.Request, httpx2.Response],
        request: httpx2.Request,
        client: HttpClient,
        refusal: httpx2.Response,
    ) -> None:
        """Send what the flow wants sent, until it would make the request itself once more."""
        wanted = await anext(flow)
        response = refusal
        first = True
        try:
            while True:
                if wanted is request:
                    if not first:
                        return
                    first = False
                    response = refusal
                else:
                    response = await self._sent(wanted, client)
                wanted = await flow.asend(response)
        except StopAsyncIteration:
            return

    async def _sent(self, request: httpx2.Request, client: HttpClient) -> httpx2.Response:
        url = str(request.url)
        body = await request.aread()
        self._check_destination(url, body, request.headers)
        headers = {
            name: value
            for name, value in request.headers.items()
            if name.lower() not in ("host", "content-length", "accept-encoding", "connection", "user-agent")
        }
        answer = await client.request(request.method, url, headers=headers, body=body or None, max_redirects=0)
        kept = {name: value for name, value in answer.headers.items() if name != "content-encoding"}
        return httpx2.Response(answer.status, headers=kept, content=answer.body, request=request)

    def _check_destination(self, url: str, body: bytes, headers: Mapping[str, str]) -> None:
        """A configured secret goes to the issuer that it belongs to, or to the server's own host."""
        secret = self._settings.client_secret
        if not secret or self._settings.issuer or ("authorization" not in headers and secret.encode() not in body):
            return
        if urlsplit(url).hostname != urlsplit(self._server.url).hostname:
            raise ExecutionFailed(
                f"{self._server.place} wants the client's secret sent to {public_url(url)}, on another host;"
                " where it belongs there, set the issuer",
                code="unauthorized",
            )

    def _guard(self) -> AddressGuard:
        """Public addresses, and the host that the operator wrote, be it a private one."""
        host = urlsplit(self._server.url).hostname or ""
        near = {host, urlsplit(self._settings.issuer).hostname or host}
        if any(is_loopback(one) for one in near):
            near |= {"localhost", "127.0.0.0/8", "::1"}
        try:
            return AddressGuard(private_hosts=tuple(sorted(near)))
        except ValueError:
            return PUBLIC_ONLY

    def _provider(self) -> OAuthClientProvider:
        settings = self._settings
        url = self._server.url
        if settings.grant == "client_credentials":
            with warnings.catch_warnings():
                # Without an issuer the secret goes nowhere but to the server's own host.
                warnings.simplefilter("ignore", MCPDeprecationWarning)
                machine = _MachineProvider(
                    url,
                    self._storage,
                    settings.client_id,
                    settings.client_secret,
                    scope=settings.scope or None,
                    issuer=settings.issuer or None,
                )
            machine.wanted_scope = settings.scope
            return machine
        metadata = OAuthClientMetadata(
            client_name="anykit",
            redirect_uris=[AnyUrl(self._redirect_uri)],
            token_endpoint_auth_method="none",
            scope=settings.scope or None,
        )
        provider = _CodeProvider(
            url,
            metadata,
            self._storage,
            self._redirect,
            None if self._callback is None else self._code,
            settings.client_metadata_url or None,
        )
        provider.wanted_scope = settings.scope
        return provider

    async def _code(self) -> AuthorizationCodeResult:
        assert self._callback is not None
        fields = parse_qs(urlsplit(await self._callback()).query)

        def field(name: str) -> str | None:
            return fields[name][0] if name in fields else None

        if (error := field("error")) is not None:
            said = field("error_description") or error
            raise OAuthFlowError(f"the authorization server refused: {clean_text(said, 200)}")
        return AuthorizationCodeResult(code=field("code") or "", state=field("state"), iss=field("iss"))

    async def log_in(self, status: int, headers: Mapping[str, str]) -> None:
        """Get a new token, from a person where one can be asked. Raises `CapabilityError`.

        Where the server asked for a wider scope than the last one, that is what is asked for, beside what was granted.
        """
        challenge = (await self._drawer.read()).get("challenge")
        if isinstance(challenge, str) and "tokens" in await self._drawer.read():
            status, headers = 403, {"www-authenticate": challenge}
        else:
            await self._drawer.change(tokens=None, until=None)  # an old token must not be taken for the new one
        await self.renew(status, headers)
