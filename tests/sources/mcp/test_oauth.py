"""Logging in to a server: discovery, registration, PKCE, renewal, and where credentials never go."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio
import pytest

from anykit.capabilities import ExecutionFailed, Unavailable
from anykit.sources.mcp import McpServer, OAuth, is_logged_in, login, logout
from anykit.sources.mcp.vault import SCOPE, Forgetful
from anykit.transports import HttpClient
from anykit.transports.guard import OPEN

from .at_hand import call, ready, source, until
from .peers.script import Peer
from .web import Reply, Request, Web, serving

pytestmark = pytest.mark.anyio


class Issuer:
    """A server and its authorization server on one port."""

    def __init__(self) -> None:
        self.web: Web = Web(Peer())
        self.valid: set[str] = set()
        self.refresh: dict[str, str] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.clients: dict[str, dict[str, Any]] = {}
        self.tokens: list[dict[str, str]] = []
        """Forms that came to the token endpoint."""
        self.rotate = True
        self.pkce: list[str] | None = ["S256"]
        self.scope_needed = ""
        self.secret = ""
        self.scopes_for_calls: set[str] = set()
        self.granted: dict[str, str] = {}
        self.authorization_server = ""
        """Another one than its own."""

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.web.port}"

    def issue(self, scope: str = "") -> dict[str, Any]:
        token = f"access-{len(self.valid) + len(self.tokens)}-{id(self)}"
        again = f"refresh-{len(self.refresh)}-{id(self)}"
        self.valid.add(token)
        self.refresh[again] = token
        issued: dict[str, Any] = {"access_token": token, "token_type": "bearer", "expires_in": 3600}
        if scope:
            issued["scope"] = self.granted[token] = scope
        if self.rotate or len(self.refresh) == 1:
            issued["refresh_token"] = again
        return issued

    async def before(self, request: Request, reply: Reply) -> bool:
        path = urlsplit(request.path).path
        match path:
            case "/mcp":
                shown = request.headers.get("authorization", "").removeprefix("Bearer ")
                if shown in self.valid:
                    missing = self.scopes_for_calls - set(self.granted.get(shown, "").split())
                    if missing and request.message.get("method") == "tools/call":
                        wide = " ".join(sorted(missing))
                        challenge = f'Bearer error="insufficient_scope", scope="{wide}"'
                        await reply.send(403, b"", www_authenticate=challenge)
                        return True
                    return False
                challenge = f'Bearer resource_metadata="{self.base}/.well-known/oauth-protected-resource/mcp"'
                if self.scope_needed:
                    challenge += f', scope="{self.scope_needed}"'
                await reply.send(401, b"", www_authenticate=challenge)
            case "/.well-known/oauth-protected-resource/mcp":
                server = self.authorization_server or self.base
                await reply.json({"resource": f"{self.base}/mcp", "authorization_servers": [server]})
            case "/.well-known/oauth-authorization-server":
                base = self.authorization_server or self.base
                metadata: dict[str, Any] = {
                    "issuer": base,
                    "authorization_endpoint": f"{base}/authorize",
                    "token_endpoint": f"{base}/token",
                    "registration_endpoint": f"{base}/register",
                    "response_types_supported": ["code"],
                    "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
                }
                if self.pkce is not None:
                    metadata["code_challenge_methods_supported"] = self.pkce
                await reply.json(metadata)
            case "/register":
                client = {**request.message, "client_id": f"client-{len(self.clients)}"}
                self.clients[client["client_id"]] = client
                await reply.json(client, 201)
            case "/token":
                await self._token(request, reply)
            case _:
                await reply.send(404)
        return True

    async def _token(self, request: Request, reply: Reply) -> None:
        form = {key: values[0] for key, values in parse_qs(request.body.decode()).items()}
        basic = request.headers.get("authorization", "")
        if basic:
            form["basic"] = base64.b64decode(basic.removeprefix("Basic ")).decode()
        self.tokens.append(form)
        scope = ""
        match form["grant_type"]:
            case "authorization_code":
                scope = self.codes.get(form["code"], {}).get("scope", "")
                code = self.codes.pop(form["code"], None)
                digest = hashlib.sha256(form["code_verifier"].encode()).digest()
                challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
                good = code is not None and code["code_challenge"] == challenge
            case "refresh_token":
                good = self.refresh.get(form["refresh_token"]) is not None
            case _:
                good = form.get("basic") == f"robot:{self.secret}"
        if good:
            await reply.json(self.issue(scope))
        else:
            await reply.json({"error": "invalid_grant", "error_description": "no"}, 400)

    async def consent(self, url: str, *, deny: bool = False, state: str | None = None) -> str:
        """What a browser does: the URL that it is sent back to."""
        asked = {key: values[0] for key, values in parse_qs(urlsplit(url).query).items()}
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        assert asked["resource"] == f"{self.base}/mcp"
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        answer = {"error": "access_denied"} if deny else {"code": code}
        return f"{asked['redirect_uri']}?{urlencode({**answer, 'state': state or asked['state']})}"


@asynccontextmanager
async def issuing() -> AsyncGenerator[Issuer]:
    issuer = Issuer()
    async with serving(Peer(), before=issuer.before) as web:
        issuer.web = web
        yield issuer


def browser(issuer: Issuer, **how: Any) -> Any:
    """Opens what it is shown, consents and comes back to the port."""

    async def show(url: str) -> None:
        back = await issuer.consent(url, **how)

        async def visit() -> None:
            async with HttpClient(guard=OPEN) as client:
                await client.request("GET", back)

        visits.append(asyncio.create_task(visit()))

    visits: list[asyncio.Task[None]] = []
    return show


async def test_a_login_gives_a_token_that_a_source_then_uses() -> None:
    vault = Forgetful()
    async with issuing() as issuer:
        server = McpServer("shop", url=issuer.web.url)
        async with source(server, vault=vault) as made:
            await until(made, "failed")
            assert made.state.reason == f"{issuer.web.url} answered 401: it wants a login; run: anykit login shop"
            assert made.state.detail["needs"] == "login"
            assert issuer.clients == {}  # nobody is registered before somebody wants to log in
            assert not await is_logged_in(server, vault)
            with anyio.fail_after(8):
                await login(server, vault, show=browser(issuer))
            assert await is_logged_in(server, vault)
            await until(made, "ready")
            assert await call(made, a=1) == {"a": 1}
        [client] = issuer.clients.values()
        assert client["client_name"] == "anykit"
        assert client["redirect_uris"][0].startswith("http://127.0.0.1:")
        async with ready(server, vault=vault) as again:
            assert await call(again, a=2) == {"a": 2}
        assert len(issuer.tokens) == 1
        assert await logout(server, vault)
        assert not await is_logged_in(server, vault)


async def test_without_a_browser_the_url_is_pasted() -> None:
    async with issuing() as issuer:
        shown: list[str] = []

        async def paste() -> str:
            return "nonsense" if not pasted.append(1) and len(pasted) == 1 else await issuer.consent(shown[0])

        pasted: list[int] = []
        vault = Forgetful()
        server = McpServer("shop", url=issuer.web.url)
        with anyio.fail_after(8):
            await login(server, vault, show=shown.append, paste=paste)
        assert await is_logged_in(server, vault)
        async with ready(server, vault=vault) as made:
            assert await call(made, a=1) == {"a": 1}


async def test_an_expired_token_is_renewed_once_for_all_who_wait() -> None:
    vault = Forgetful()
    async with issuing() as issuer:
        server = McpServer("shop", url=issuer.web.url)
        await login(server, vault, show=browser(issuer))
        async with ready(server, vault=vault) as made:
            issuer.rotate = False
            issuer.valid.clear()
            results = await asyncio.gather(*(call(made, n=n) for n in range(8)))
            assert results == [{"n": n} for n in range(8)]
            assert [one["grant_type"] for one in issuer.tokens] == ["authorization_code", "refresh_token"]
            issuer.valid.clear()
            assert await call(made, n=9) == {"n": 9}  # a server that sends no new refresh token means the old one
            assert len(issuer.tokens) == 3
            assert len(issuer.web.peer.calls("tools/call")) == 9


async def test_a_renewal_that_is_refused_wants_a_new_login() -> None:
    vault = Forgetful()
    async with issuing() as issuer:
        server = McpServer("shop", url=issuer.web.url)
        await login(server, vault, show=browser(issuer))
        async with ready(server, vault=vault) as made:
            issuer.valid.clear()
            issuer.refresh.clear()
            with pytest.raises(ExecutionFailed, match="run: anykit login shop") as raised:
                await call(made)
            assert raised.value.code == "unauthorized"
            assert "access-" not in str(raised.value)
            assert "refresh-" not in str(raised.value)


async def test_a_refused_consent_fails_the_login() -> None:
    vault = Forgetful()
    async with issuing() as issuer:
        server = McpServer("shop", url=issuer.web.url)
        with pytest.raises(ExecutionFailed, match="the authorization server refused: access_denied"):
            await login(server, vault, show=browser(issuer, deny=True))
        with pytest.raises(ExecutionFailed, match="State"):
            await login(server, vault, show=browser(issuer, state="forged"))
        assert not await is_logged_in(server, vault)


async def test_nobody_who_logs_in_fails_the_login_in_time() -> None:
    async with issuing() as issuer:
        server = McpServer("shop", url=issuer.web.url)
        with pytest.raises(ExecutionFailed, match=r"nobody logged in within 0\.4 s"):
            await login(server, Forgetful(), show=lambda url: None, timeout=0.4)


@pytest.mark.parametrize("methods", [None, ["plain"]])
async def test_an_authorization_server_without_pkce_is_not_used(methods: list[str] | None) -> None:
    async with issuing() as issuer:
        issuer.pkce = methods
        with pytest.raises(ExecutionFailed, match="PKCE"):
            await login(McpServer("shop", url=issuer.web.url), Forgetful(), show=browser(issuer))


async def test_the_scope_that_the_server_wants_is_asked_for() -> None:
    async with issuing() as issuer:
        issuer.scope_needed = "read write"
        shown: list[str] = []

        async def show(url: str) -> None:
            shown.append(url)
            await browser(issuer)(url)

        await login(McpServer("shop", url=issuer.web.url), Forgetful(), show=show)
        assert parse_qs(urlsplit(shown[0]).query)["scope"] == ["read write"]
        own = McpServer("shop", url=issuer.web.url, oauth=OAuth(scope="mine"))
        await login(own, Forgetful(), show=show)
        assert parse_qs(urlsplit(shown[1]).query)["scope"] == ["mine"]


async def test_a_scope_that_a_call_wants_is_asked_for_at_the_next_login_beside_the_others() -> None:
    vault = Forgetful()
    async with issuing() as issuer:
        issuer.scope_needed = "read"
        issuer.scopes_for_calls = {"write"}
        server = McpServer("shop", url=issuer.web.url)
        await login(server, vault, show=browser(issuer))
        async with ready(server, vault=vault) as made:
            with pytest.raises(ExecutionFailed, match=r"wants the scope 'write'.*anykit login shop") as raised:
                await call(made)
            assert raised.value.code == "forbidden"
            await login(server, vault, show=browser(issuer))
            assert set(issuer.granted.values()) == {"read", "read write"}
            assert await call(made, a=1) == {"a": 1}
            assert made.starts == 1


async def test_a_registered_client_is_used_as_it_is() -> None:
    async with issuing() as issuer:
        server = McpServer("shop", url=issuer.web.url, oauth=OAuth(client_id="mine"))
        await login(server, Forgetful(), show=browser(issuer))
        assert issuer.clients == {}
        assert issuer.tokens[0]["client_id"] == "mine"


async def test_a_machine_logs_in_by_itself_and_again_when_its_token_is_over() -> None:
    async with issuing() as issuer:
        issuer.secret = "hush"
        oauth = OAuth("client_credentials", client_id="robot", client_secret="hush")
        server = McpServer("shop", url=issuer.web.url, oauth=oauth)
        async with ready(server, vault=Forgetful()) as made:
            assert await call(made, a=1) == {"a": 1}
            issuer.valid.clear()
            assert await call(made, a=2) == {"a": 2}
        assert [one["basic"] for one in issuer.tokens] == ["robot:hush", "robot:hush"]
        assert "hush" not in repr(server)


async def test_b083_a_clients_secret_goes_to_no_other_host() -> None:
    """awslabs/mcp#3695: credentials sent to other servers; whoever runs a server must not choose who gets a secret."""
    async with issuing() as issuer:
        issuer.secret = "hush"
        issuer.authorization_server = issuer.base.replace("127.0.0.1", "localhost")
        oauth = OAuth("client_credentials", client_id="robot", client_secret="hush")
        async with source(McpServer("shop", url=issuer.web.url, oauth=oauth), vault=Forgetful()) as made:
            await until(made, "failed")
            assert issuer.tokens == []
            assert "on another host" in made.state.reason
            assert "hush" not in made.state.reason
        trusted = replace(oauth, issuer=issuer.authorization_server)
        async with ready(McpServer("shop", url=issuer.web.url, oauth=trusted), vault=Forgetful()) as made:
            assert await call(made, a=1) == {"a": 1}


async def test_b083_each_server_sees_its_own_credentials_only() -> None:
    """cbcoutinho/nextcloud-mcp-server#261: one server's token is sent to another."""
    async with serving() as a, serving() as b:
        servers = [
            McpServer("a", url=a.url, token="KEY-A"),
            McpServer("b", url=b.url, headers={"X-Api-Key": "KEY-B"}),
        ]
        async with ready(servers[0]) as one, ready(servers[1]) as two:
            await call(one, a=1)
            await call(two, a=1)
        assert {request.headers.get("authorization") for request in a.requests} == {"Bearer KEY-A"}
        assert {request.headers.get("x-api-key") for request in b.requests} == {"KEY-B"}
        assert not any("KEY-B" in str(request.headers) for request in a.requests)
        assert not any("KEY-A" in str(request.headers) for request in b.requests)


async def test_a_token_is_kept_for_its_url_only() -> None:
    vault = Forgetful()
    async with issuing() as issuer:
        server = McpServer("shop", url=issuer.web.url)
        await login(server, vault, show=browser(issuer))
        other = McpServer("shop", url=issuer.web.url.replace("/mcp", "/other"))
        assert not await is_logged_in(other, vault)
        [(scope, name)] = list(vault._kept)  # pyright: ignore[reportPrivateUsage]
        assert scope == SCOPE
        assert re.fullmatch("[0-9a-f]{32}", name)
        assert "access-" in json.dumps(json.loads(str(await vault.get(scope, name)))["tokens"])


async def test_metadata_that_leads_into_the_private_network_is_not_followed() -> None:
    async with issuing() as issuer:
        issuer.authorization_server = "http://169.254.169.254/latest"
        with pytest.raises((ExecutionFailed, Unavailable)) as raised:
            await login(McpServer("shop", url=issuer.web.url), Forgetful(), show=browser(issuer))
        assert "169.254.169.254" in str(raised.value)


async def test_a_server_that_wants_no_login_says_so() -> None:
    async with serving() as web:
        with pytest.raises(ExecutionFailed, match="wants no login"):
            await login(McpServer("open", url=web.url), Forgetful(), show=lambda url: None)
    with pytest.raises(Unavailable):
        await login(McpServer("gone", url="http://127.0.0.1:9/"), Forgetful(), show=lambda url: None)


@pytest.mark.parametrize(
    ("server", "status", "challenge", "told", "needs"),
    [
        ({}, 401, "", "it wants credentials; give a token or headers", "credentials"),
        ({"token": "x" * 8}, 401, "", "it does not accept the credentials given", "credentials"),
        ({"headers": {"Authorization": "x"}}, 401, "", "it does not accept the credentials given", "credentials"),
        ({}, 401, 'Bearer resource_metadata="https://x/"', "it wants a login", "login"),
        ({"token": "x"}, 403, "", "these credentials may not use it", "permission"),
        ({}, 403, 'Bearer error="insufficient_scope", scope="a b"', "it wants the scope 'a b'", "login"),
    ],
)
async def test_401_and_403_say_what_is_needed(
    server: dict[str, Any], status: int, challenge: str, told: str, needs: str
) -> None:
    async def before(request: Request, reply: Reply) -> bool:
        await reply.send(status, b"secret", **({"www_authenticate": challenge} if challenge else {}))
        return True

    async with serving(before=before) as web, source(McpServer("shop", url=web.url, **server)) as made:
        await until(made, "failed")
        assert told in made.state.reason
        assert made.state.detail["needs"] == needs
        assert "secret" not in made.state.reason
