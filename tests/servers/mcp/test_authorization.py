"""Who may come in: the operator's token, or one of an authorization server; and what others are told."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any

import pytest

from anykit import Workbench, tool
from anykit.capabilities import CapabilityContext
from anykit.servers.mcp.authorization import Admitted, Door, ResourceServer, Turned
from servers.mcp.peers import add, call, http, initialize, request

pytestmark = pytest.mark.anyio

RESOURCE = "https://tools.example/mcp"


@dataclass
class Token:
    client_id: str
    scopes: list[str]
    expires_at: int | None = None
    resource: str | None = RESOURCE
    subject: str | None = None
    claims: dict[str, Any] | None = None


class Verifier:
    """Knows some tokens; counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.known = {
            "ann": Token("c1", ["use"], subject="ann", claims={"iss": "https://auth.example"}),
            "bob": Token("c1", ["use"], subject="bob", claims={"iss": "https://auth.example"}),
            "late": Token("c1", ["use"], expires_at=int(time.time()) - 1),
            "other": Token("c1", ["use"], resource="https://tools.example/other"),
            "nowhere": Token("c1", ["use"], resource=None),
            "weak": Token("c1", []),
        }

    async def verify_token(self, token: str) -> Token | None:
        self.asked += 1
        if token == "broken":
            raise RuntimeError("secret-of-the-verifier")
        if token == "slow":
            await asyncio.Event().wait()
        return self.known.get(token)


def scope(*authorization: str) -> dict[str, Any]:
    return {"type": "http", "headers": [(b"authorization", one.encode()) for one in authorization]}


def door(token: str = "") -> tuple[Door, Verifier]:
    verifier = Verifier()
    return Door(token, ResourceServer(verifier, RESOURCE, ["https://auth.example"], ["use"])), verifier


async def test_without_a_token_and_a_verifier_everyone_comes_in() -> None:
    assert await Door("", None).ask(scope()) == Admitted("local")


@pytest.mark.parametrize(
    "given",
    [(), ("Bearer",), ("Bearer wrong",), ("Basic secret",), ("Bearer secret", "Bearer secret"), ("secret",)],
)
async def test_b083_a_missing_or_wrong_token_is_turned_away(given: tuple[str, ...]) -> None:
    """cbcoutinho/nextcloud-mcp-server#261."""
    turned = await Door("secret", None).ask(scope(*given))
    assert isinstance(turned, Turned)
    assert (turned.status, turned.challenge.partition(" ")[0]) == (401, "Bearer")
    assert await Door("secret", None).ask(scope("bearer secret")) == Admitted("local")


@pytest.mark.parametrize(
    ("token", "status", "error"),
    [
        ("unknown", 401, "invalid_token"),
        ("late", 401, "invalid_token"),
        ("other", 401, "invalid_token"),
        ("nowhere", 401, "invalid_token"),
        ("broken", 401, "invalid_token"),
        ("weak", 403, "insufficient_scope"),
        ("with space", 401, "invalid_token"),
        ("x" * 20_000, 401, "invalid_token"),
    ],
)
async def test_a_token_that_is_not_good_is_turned_away_with_the_reason(token: str, status: int, error: str) -> None:
    where, _ = door()
    turned = await where.ask(scope(f"Bearer {token}"))
    assert isinstance(turned, Turned)
    assert turned.status == status
    assert f'error="{error}"' in turned.challenge
    assert 'resource_metadata="https://tools.example/.well-known/oauth-protected-resource/mcp"' in turned.challenge
    assert 'scope="use"' in turned.challenge
    assert "secret" not in turned.challenge + turned.detail


async def test_users_of_one_client_are_two_principals() -> None:
    where, _ = door()
    ann, bob = await where.ask(scope("Bearer ann")), await where.ask(scope("Bearer bob"))
    assert isinstance(ann, Admitted)
    assert isinstance(bob, Admitted)
    assert ann.principal != bob.principal
    assert "ann" in ann.principal


async def test_the_operators_token_needs_no_verifier() -> None:
    where, verifier = door("secret")
    assert await where.ask(scope("Bearer secret")) == Admitted("local")
    assert verifier.asked == 0
    assert isinstance(await where.ask(scope("Bearer ann")), Admitted)


@pytest.mark.parametrize("resource", ["tools.example", "ftp://x/", "https://", "https://x/#y"])
def test_a_resource_that_is_no_url_is_refused(resource: str) -> None:
    with pytest.raises(ValueError, match="resource"):
        ResourceServer(Verifier(), resource, ["https://auth.example"])


def test_a_resource_server_names_an_authorization_server() -> None:
    with pytest.raises(ValueError, match="authorization server"):
        ResourceServer(Verifier(), RESOURCE, [])


async def test_b083_over_http_nothing_is_read_or_run_without_a_token() -> None:
    """cbcoutinho/nextcloud-mcp-server#261."""
    ran: list[Any] = []

    @tool
    async def note(context: CapabilityContext) -> str:
        """Remembers what its context has."""
        ran.append({**context.metadata, "principal": context.principal, "session": context.session_id})
        return "ran"

    async with http(note, token="CLIENT") as client:
        for method in ("POST", "GET", "DELETE"):
            refused = await client.send(method, client.headers(), b"{" if method == "POST" else None)
            assert (refused.status, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
            assert refused.json["jsonrpc"] == "2.0"
        wrong = await client.post(initialize(), headers={"Authorization": "Bearer wrong"})
        assert wrong.status == 401
        client.client.headers["Authorization"] = "Bearer CLIENT"
        await client.shake_hands()
        assert (await client.post(call(1, "note"))).last["result"]["content"][0]["text"] == "ran"
    assert "CLIENT" not in json.dumps(ran)
    assert ran[0]["principal"] == "local"


async def test_where_to_get_a_token_can_be_read_without_one() -> None:
    guard = ResourceServer(Verifier(), RESOURCE, ["https://auth.example"], ["use"])
    async with http(add, authorization=guard) as client:
        refused = await client.post(initialize())
        assert refused.status == 401
        assert "resource_metadata=" in refused.headers["WWW-Authenticate"]
        base = client.url.removesuffix("/mcp")
        for path in ("/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"):
            client.url = f"{base}{path}"
            told = await client.send("GET")
            assert told.status == 200
            assert told.json == {
                "resource": RESOURCE,
                "authorization_servers": ["https://auth.example"],
                "bearer_methods_supported": ["header"],
                "resource_name": "anykit",
                "scopes_supported": ["use"],
            }
        client.url = f"{base}/.well-known/oauth-protected-resource/other"
        assert (await client.send("GET")).status == 404


async def test_without_a_verifier_there_is_no_such_place() -> None:
    async with http(add) as client:
        client.url = client.url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")
        assert (await client.send("GET")).status == 404


async def test_a_session_is_its_principals_and_unknown_to_others() -> None:
    guard = ResourceServer(Verifier(), RESOURCE, ["https://auth.example"])
    async with http(add, authorization=guard) as client:
        client.client.headers["Authorization"] = "Bearer ann"
        await client.shake_hands()
        assert (await client.ask("ping")).status == 200
        for method, message in (("POST", request(1, "ping")), ("DELETE", None)):
            body = None if message is None else json.dumps(message).encode()
            stolen = await client.send(method, client.headers(Authorization="Bearer bob"), body)
            assert stolen.status == 404
        assert (await client.ask("ping")).status == 200


async def test_the_sdks_own_tokens_are_taken() -> None:
    from mcp.server.auth.provider import AccessToken

    class SdkVerifier:
        async def verify_token(self, token: str) -> AccessToken | None:
            return AccessToken(token=token, client_id="c", scopes=["use"], resource=RESOURCE, subject="ann")

    where = Door("", ResourceServer(SdkVerifier(), RESOURCE + "/", ["https://auth.example"], ["use"]))
    assert isinstance(await where.ask(scope("Bearer any")), Admitted)


async def test_two_principals_have_configurations_of_their_own() -> None:
    from servers.mcp.peers import Notes

    async with Workbench(Notes) as bench:
        ann, bob = bench.session(principal="ann", face="mcp"), bench.session(principal="bob", face="mcp")
        await ann.configure("notes", {"folder": "anns"})
        assert [one.name for one in ann.tools()] == ["list_notes"]
        assert bob.tools() == []
