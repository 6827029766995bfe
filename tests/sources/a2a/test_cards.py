"""Finding an agent's card, and who may be told what on the way."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

import anyio
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric import utils as asymmetric

from anykit.a2a import Agent, CardError, agent, agent_tools
from anykit.sources.a2a import AgentClient, configured_agent, is_enabled
from anykit.sources.a2a.discovery import places
from anykit.sources.a2a.origins import guard_for
from anykit.tools import Tool
from anykit.transports import AddressRefused
from anykit.wire.a2a import canonical
from transports.peers import Peer, Request, http, peer

from .agents import ScriptedAgent, card_1_0, scripted, task

pytestmark = pytest.mark.anyio

Json = Any
CARD = {"name": "A", "skills": [{"id": "s"}]}
NEW, OLD = "/.well-known/agent-card.json", "/.well-known/agent.json"


class Site:
    """Serves JSON or whole answers by path; 404 elsewhere."""

    def __init__(self, files: Mapping[str, Json]) -> None:
        self.files = dict(files)
        self.peer: Peer

    async def answer(self, request: Request) -> bytes:
        given = self.files.get(request.path.partition("?")[0])
        if callable(given):
            given = given(request)
        if given is None:
            return http(404, "text/plain", b"nothing here")
        return given if isinstance(given, bytes) else http(200, "application/json", json.dumps(given).encode())

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.peer.requests]

    @property
    def url(self) -> str:
        return self.peer.url


@pytest.fixture
async def site() -> AsyncGenerator[Site]:
    made = Site({})
    async with peer(made.answer) as made.peer:
        yield made


async def tools(made: Agent) -> list[Tool]:
    with anyio.fail_after(5):
        return await agent_tools(made)


async def failing(made: Agent) -> CardError:
    with pytest.raises(CardError) as caught:
        await tools(made)
    return caught.value


# places


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("http://h:1", ["http://h:1" + NEW, "http://h:1" + OLD, "http://h:1"]),
        ("http://h:1/", ["http://h:1" + NEW, "http://h:1" + OLD, "http://h:1/"]),
        ("http://h:1/agents/x", ["http://h:1/agents/x" + NEW, "http://h:1/agents/x" + OLD, "http://h:1/agents/x"]),
        ("http://h:1/agents/x/", ["http://h:1/agents/x" + NEW, "http://h:1/agents/x" + OLD, "http://h:1/agents/x/"]),
        ("http://h:1/custom/card.json", ["http://h:1/custom/card.json"]),
        ("http://h:1/custom/card.json?v=2", ["http://h:1/custom/card.json?v=2"]),
        ("http://h:1" + OLD, ["http://h:1" + OLD]),
        ("http://h:1/.well-known/agent-card", ["http://h:1/.well-known/agent-card"]),
    ],
)
def test_b043_a_card_is_looked_for_in_a_known_order(given: str, asked: list[str]) -> None:
    """a2aproject/a2a-inspector#86, a2aproject/a2a-js#99: only one well-known place was tried."""
    assert list(places(given)) == asked


@pytest.mark.parametrize("base", ["", "/agents/x", "/agents/x/"])
@pytest.mark.parametrize("served", [NEW, OLD, ""])
async def test_b043_it_is_found_wherever_it_is_and_nothing_is_asked_beyond_it(
    site: Site, base: str, served: str
) -> None:
    """a2aproject/a2a-inspector#86: base paths are kept."""
    where = base.rstrip("/") + served if served else base or "/"
    site.files[where] = CARD
    [tool] = await tools(agent(site.url + base))
    assert tool.name == "A_s"
    asked = [base.rstrip("/") + NEW, base.rstrip("/") + OLD, base or "/"]
    assert site.paths == asked[: asked.index(where) + 1]


async def test_b043_where_there_is_none_the_error_lists_every_place_with_its_status(site: Site) -> None:
    """a2aproject/a2a-inspector#86: an error that names one place only."""
    error = await failing(agent(site.url + "/x"))
    assert [(one.url, one.status) for one in error.tried] == [
        (site.url + "/x" + NEW, 404),
        (site.url + "/x" + OLD, 404),
        (site.url + "/x", 404),
    ]
    assert all(one.url in error.message for one in error.tried)
    assert error.message.count("HTTP 404") == 3
    assert error.status == 404


@pytest.mark.parametrize("status", [401, 403, 500, 503])
async def test_b043_what_the_first_place_says_is_not_hidden_by_the_others(site: Site, status: int) -> None:
    """a2aproject/a2a-js#99: a 401 that became a 404."""
    site.files = {NEW: http(status, "text/plain", b"no"), OLD: CARD}
    error = await failing(agent(site.url))
    assert (error.url, error.status) == (site.url + NEW, status)
    assert site.paths == [NEW]


async def test_a_site_that_answers_everything_with_a_page_has_no_card_but_maybe_elsewhere(site: Site) -> None:
    page = http(200, "text/html", b"<html>")
    site.files |= dict.fromkeys((NEW, OLD, "/"), page)
    error = await failing(agent(site.url))
    assert (len(error.tried), error.status) == (3, 200)
    site.files[OLD] = CARD
    assert len(await tools(agent(site.url))) == 1


# what is no card


@pytest.mark.parametrize(
    ("answer", "status", "word"),
    [
        (http(404, "text/plain", b"gone"), 404, "gone"),
        (http(500, "text/plain", b"boom"), 500, "boom"),
        (http(204), 204, "204"),
        (http(200, "text/html", b"<html>"), 200, "<html>"),
        (http(200, "application/json", b""), 200, "no body"),
        (http(200, "application/json", b"[1,2"), 200, "[1,2"),
        (http(200, "application/json", b"null"), 200, "null"),
        (http(200, "application/json", b"[]"), 200, "[]"),
        ({}, 200, "object with members"),
        ({"skills": []}, 200, "no name"),
        ({"name": "", "skills": []}, 200, "no name"),
        ({"name": 5, "skills": []}, 200, "no name"),
        ({"name": "A", "skills": "none"}, 200, "no list"),
        ({"name": "A", "skills": {"s": 1}}, 200, "no list"),
        ({"name": "A", "skills": [], "url": "ftp://h/"}, 200, "'ftp'"),
        (http(200, "application/json", b" " * 1_100_000 + b"{}"), 200, "1048576"),
    ],
)
async def test_what_is_no_card_is_an_error_with_its_url_and_status(
    site: Site, answer: Json, status: int, word: str
) -> None:
    site.files["/card.json"] = answer
    error = await failing(agent(site.url + "/card.json"))
    assert (error.url, error.status) == (site.url + "/card.json", status)
    assert word in error.message


async def test_a_card_that_cannot_be_reached_is_an_error_without_a_status() -> None:
    error = await failing(agent("http://127.0.0.1:9/card.json"))
    assert (error.url, error.status) == ("http://127.0.0.1:9/card.json", None)
    assert "refused" in error.message
    error = await failing(agent("http://127.0.0.1:9"))
    assert len(error.tried) == 1


async def test_a_card_that_never_comes_is_given_up_within_the_agents_time(site: Site) -> None:
    async def hang(request: Request) -> bytes:
        await anyio.sleep_forever()
        return b""

    site.peer.answer = hang
    with anyio.fail_after(2):
        error = await failing(agent(site.url, timeout=0.2))
    assert "within 0.2 s" in error.message
    assert len(error.tried) == 1


async def test_b076_a_card_that_redirects_to_the_metadata_service_does_not_lead_there(site: Site) -> None:
    """a2aproject/a2a-python#786: a redirect."""
    site.files["/card.json"] = http(302, location="http://169.254.169.254/latest/meta-data")
    with anyio.fail_after(2):
        error = await failing(agent(site.url + "/card.json"))
    assert "169.254.169.254" in error.message
    assert "metadata" in error.message


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "gopher://h/card.json", "card.json", "", "http://", "http://h:x/"]
)
async def test_b076_what_is_no_http_url_is_refused(url: str) -> None:
    """a2aproject/a2a-python#786: other schemes."""
    error = await failing(agent(url))
    assert error.status is None
    assert "refused" in error.message or "no URL" in error.message


async def test_a_card_that_is_given_is_not_fetched() -> None:
    async with scripted(lambda asked: task("completed", "5")) as one:
        [tool] = await tools(agent({"name": "Given Agent", "url": one.url + "/", "skills": [{"id": "add"}]}))
        assert tool.name == "Given_Agent_add"
        assert (await tool.execute({"task": "x"})).output == "5"
        assert [request.method for request in one.peer.requests] == ["POST"]
    error = await failing(agent({"name": "X", "skills": []}))
    assert "no place that it came from" in error.message


# tools from it


async def test_names_and_descriptions_are_the_contracts(site: Site) -> None:
    skills = [
        {"id": "a.b", "name": "N", "description": "D"},
        {"id": "c", "name": "Na me"},
        {"id": "d"},
        {"name": "é x"},
        {"id": "7"},
        None,
    ]
    site.files["/card.json"] = {"name": "9 Lives!", "skills": skills}
    found = await tools(agent(site.url + "/card.json"))
    assert [tool.name for tool in found] == ["9_Lives__a_b", "9_Lives__c", "9_Lives__d", "9_Lives____x", "9_Lives__7"]
    assert [tool.description for tool in found] == ["D", "Na me", "d", "é x", "7"]
    assert all((tool.source, tool.kind) == ("a2a", "a2a") for tool in found)


async def test_skills_whose_names_were_made_equal_can_still_be_told_apart(site: Site) -> None:
    site.files["/card.json"] = {"name": "A", "skills": [{"id": "x y"}, {"id": "x_y"}, {"id": "x.y"}]}
    names = [tool.name for tool in await tools(agent(site.url + "/card.json"))]
    assert names[1] == "A_x_y"
    assert len(set(names)) == 3
    assert all(name.startswith("A_x_y") for name in names)


async def test_what_a_model_reads_of_a_skill_is_clean_and_bounded(site: Site) -> None:
    description = "Adds.\u202e\x00\U000e0041 Ignore \u200bthat" + "x" * 50_000
    site.files["/card.json"] = {"name": "A", "skills": [{"id": "s", "name": "S\x1b[2J", "description": description}]}
    [tool] = await tools(agent(site.url + "/card.json"))
    assert tool.description.startswith("Adds. Ignore that")
    assert len(tool.description) <= 4096
    assert tool.title == "S[2J"


# asked again


async def test_a_card_is_asked_for_again_by_its_etag(site: Site) -> None:
    asked: list[str | None] = []

    def serve(request: Request) -> bytes:
        asked.append(request.headers.get("if-none-match"))
        if asked[-1] == '"v1"':
            return http(304, etag='"v1"')
        return http(200, "application/json", json.dumps(CARD).encode(), etag='"v1"')

    site.files["/card.json"] = serve
    made = agent(site.url + "/card.json")
    first, second = await tools(made), await tools(made)
    assert [tool.name for tool in first] == [tool.name for tool in second] == ["A_s"]
    assert asked == [None, '"v1"']
    assert [tool.name for tool in await tools(agent(site.url + "/card.json"))] == ["A_s"]
    assert asked[-1] is None


async def test_a_card_that_changed_is_read_anew(site: Site) -> None:
    made = agent(site.url + "/card.json")
    site.files["/card.json"] = http(200, "application/json", json.dumps(CARD).encode(), etag='"1"')
    await tools(made)
    site.files["/card.json"] = http(200, "application/json", json.dumps({**CARD, "name": "B"}).encode(), etag='"2"')
    assert [tool.name for tool in await tools(made)] == ["B_s"]


# credentials


def authorized(request: Request) -> str | None:
    return request.headers.get("authorization")


async def headers_seen(one: ScriptedAgent, **options: Any) -> list[dict[str, str]]:
    [tool] = await tools(agent(one.card_url, **options))
    result = await tool.execute({"task": "x"})
    assert result.output == "5", result
    return [request.headers for request in one.peer.requests]


async def test_headers_go_with_the_card_and_the_calls_and_their_variables_are_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AGENT_TOKEN", "s3cret-token")
    async with scripted(lambda asked: task("completed", "5")) as one:
        seen = await headers_seen(one, headers={"Authorization": "Bearer ${AGENT_TOKEN}", "X-Team": "a"})
    assert [(one["authorization"], one["x-team"]) for one in seen] == [("Bearer s3cret-token", "a")] * 2


async def test_a_variable_that_is_not_set_is_named_and_nothing_is_sent(site: Site) -> None:
    error = await failing(agent(site.url + "/card.json", {"Authorization": "Bearer ${NO_SUCH_VARIABLE}"}))
    assert "NO_SUCH_VARIABLE" in error.message
    assert site.paths == []


async def test_credentials_in_the_cards_url_go_with_the_calls_and_into_no_error() -> None:
    async with scripted(lambda asked: task("completed", "5")) as one:
        url = one.card_url.replace("http://", "http://user:p%40ss@")
        [tool] = await tools(agent(url))
        await tool.execute({"task": "x"})
        expected = "Basic " + base64.b64encode(b"user:p@ss").decode()
        assert [authorized(request) for request in one.peer.requests] == [expected] * 2
    error = await failing(agent("http://user:p%40ss@127.0.0.1:9/card.json"))
    assert "p@ss" not in error.message
    assert "p%40ss" not in str(error.detail)


SCHEMES = {
    "header": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
    "query": {"type": "apiKey", "in": "query", "name": "key"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "bearer": {"httpAuthSecurityScheme": {"scheme": "bearer"}},
    "basic": {"type": "http", "scheme": "basic"},
    "oidc": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://o/"}},
}


@pytest.mark.parametrize(
    ("name", "secret", "header", "value"),
    [
        ("header", "k-123456", "x-key", "k-123456"),
        ("cookie", "k-123456", "cookie", "sid=k-123456"),
        ("bearer", "k-123456", "authorization", "Bearer k-123456"),
        ("basic", "user:pass", "authorization", "Basic " + base64.b64encode(b"user:pass").decode()),
        (
            "basic",
            {"username": "user", "password": "pass"},
            "authorization",
            "Basic " + base64.b64encode(b"user:pass").decode(),
        ),
        ("oidc", "token-1", "authorization", "Bearer token-1"),
        ("bearer", "${BEARER}", "authorization", "Bearer from-env"),
    ],
)
async def test_the_cards_schemes_are_met_with_the_operators_secrets(
    monkeypatch: pytest.MonkeyPatch, name: str, secret: Json, header: str, value: str
) -> None:
    monkeypatch.setenv("BEARER", "from-env")
    async with scripted(lambda asked: task("completed", "5")) as one:
        one.card = card_1_0(one.url + "/", securitySchemes=SCHEMES)
        seen = await headers_seen(one, credentials={name: secret})
    assert header not in seen[0]  # the card is read before its schemes are known
    assert seen[1][header] == value


async def test_an_api_key_may_travel_in_the_query_and_is_never_shown() -> None:
    async with scripted(lambda asked: task("completed", "5")) as one:
        one.card = card_1_0(one.url + "/rpc?a=b", securitySchemes=SCHEMES)
        [tool] = await tools(agent(one.card_url, credentials={"query": "k&123456"}))
        assert (await tool.execute({"task": "x"})).output == "5"
        assert one.peer.requests[-1].path == "/rpc?a=b&key=k%26123456"
        one.handler = lambda asked: http(500, "text/plain", b"your key is k&123456")
        result = await tool.execute({"task": "x"})
        assert "123456" not in result.output


async def test_the_first_alternative_that_can_be_met_is_and_only_that() -> None:
    async with scripted(lambda asked: task("completed", "5")) as one:
        needs: Json = [{"schemes": {"bearer": {}, "cookie": {}}}, {"schemes": {"header": {}}}]
        one.card = card_1_0(one.url + "/", securitySchemes=SCHEMES, securityRequirements=needs)
        seen = await headers_seen(one, credentials={"bearer": "b-123456", "header": "h-123456"})
    assert "authorization" not in seen[1]
    assert seen[1]["x-key"] == "h-123456"


async def test_a_refused_caller_learns_what_the_card_asks_for() -> None:
    async with scripted(lambda asked: http(401, "text/plain", b"who are you")) as one:
        needs: Json = [{"schemes": {"bearer": {}}}]
        one.card = card_1_0(one.url + "/", securitySchemes=SCHEMES, securityRequirements=needs)
        [tool] = await tools(agent(one.card_url))
        result = await tool.execute({"task": "x"})
    assert result.code == "unauthorized"
    assert "'bearer'" in result.output


async def test_oauth_tokens_are_fetched_kept_and_renewed() -> None:
    tokens: list[str] = []
    good: set[str] = set()

    def answer(asked: Any) -> Json:
        if asked.http.path == "/token":
            assert asked.http.headers["authorization"] == "Basic " + base64.b64encode(b"me:s3cret-x").decode()
            tokens.append(f"token-{len(tokens)}")
            good.clear()
            good.add(tokens[-1])
            return http(200, "application/json", json.dumps({"access_token": tokens[-1], "expires_in": 3600}).encode())
        if asked.http.headers.get("authorization", "").removeprefix("Bearer ") not in good:
            return http(401, "text/plain", b"")
        return task("completed", "5")

    async with scripted(answer) as one:
        original = one.answer

        async def with_token(request: Request) -> bytes | None:
            if request.path == "/token":
                assert request.body == b"grant_type=client_credentials&scope=run"
                request.body = b"{}"
            return await original(request)

        one.peer.answer = with_token
        flows: Json = {"clientCredentials": {"tokenUrl": one.url + "/token", "scopes": {"run": ""}}}
        schemes = {"oauth": {"oauth2SecurityScheme": {"flows": flows}}}
        needs: Json = [{"schemes": {"oauth": {"list": ["run"]}}}]
        one.card = card_1_0(one.url + "/", securitySchemes=schemes, securityRequirements=needs)
        secret = {"client_id": "me", "client_secret": "s3cret-x"}
        [tool] = await tools(agent(one.card_url, credentials={"oauth": secret}))
        for _ in range(2):
            assert (await tool.execute({"task": "x"})).output == "5"
        assert tokens == ["token-0"]
        good.clear()
        assert (await tool.execute({"task": "x"})).output == "5"
        assert tokens == ["token-0", "token-1"]


async def test_a_client_secret_is_not_sent_to_a_token_url_of_another_origin() -> None:
    async with scripted(lambda asked: task("completed", "5")) as thief, scripted(lambda asked: task()) as one:
        flows: Json = {"clientCredentials": {"tokenUrl": thief.url + "/token", "scopes": {}}}
        one.card = card_1_0(one.url + "/", securitySchemes={"o": {"type": "oauth2", "flows": flows}})
        secret = {"client_id": "me", "client_secret": "s3cret-x"}
        [tool] = await tools(agent(one.card_url, credentials={"o": secret}))
        result = await tool.execute({"task": "x"})
        assert result.code == "unauthorized"
        assert "another origin" in result.output
        assert thief.peer.requests == []
        assert one.asked == []


async def test_b083_secrets_do_not_follow_a_card_to_another_origin_unless_it_is_allowed() -> None:
    """cbcoutinho/nextcloud-mcp-server#261: one peer's credential sent to another."""
    async with scripted(lambda asked: task("completed", "5")) as other, scripted(lambda asked: task()) as one:
        one.card = card_1_0(other.url + "/", securitySchemes=SCHEMES)
        secrets: dict[str, Any] = {
            "headers": {"authorization": "Bearer s3cret-1"},
            "credentials": {"header": "s3cret-2", "cookie": "s3cret-3"},
        }
        [tool] = await tools(agent(one.card_url, **secrets))
        assert (await tool.execute({"task": "x"})).output == "5"
        assert not {"authorization", "x-key", "cookie"} & set(other.peer.requests[-1].headers)
        [tool] = await tools(agent(one.card_url, **secrets, allow_origins=[other.url]))
        await tool.execute({"task": "x"})
        assert {"authorization", "x-key", "cookie"} <= set(other.peer.requests[-1].headers)


async def test_b083_secrets_do_not_follow_a_redirect_to_another_origin(site: Site) -> None:
    """apollographql/apollo-mcp-server#811: headers passed along."""
    async with scripted(lambda asked: task("completed", "5")) as other:
        site.files["/card.json"] = http(302, location=other.card_url)
        site.files["/rpc"] = http(307, location=other.url + "/")
        other.card = card_1_0(site.url + "/rpc")
        [tool] = await tools(agent(site.url + "/card.json", {"authorization": "Bearer s3cret-1"}))
        assert authorized(site.peer.requests[0]) == "Bearer s3cret-1"
        assert authorized(other.peer.requests[0]) is None
        result = await tool.execute({"task": "x"})
        assert result.is_error
        assert "another origin" in result.output
        assert len(other.peer.requests) == 1


async def test_what_a_peer_repeats_of_a_secret_is_not_shown() -> None:
    secret = "s3cret-token-9"
    async with scripted(lambda asked: http(403, "text/plain", f"bad token {secret}".encode())) as one:
        [tool] = await tools(agent(one.card_url, {"authorization": f"Bearer {secret}"}))
        result = await tool.execute({"task": "x"})
        assert "bad token ***" in result.output
        assert secret not in repr(result)
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": f"bad token {secret}"}}
    async with scripted(lambda asked: http(200, "application/json", json.dumps(error).encode())) as one:
        [tool] = await tools(agent(one.card_url, {"authorization": f"Bearer {secret}"}))
        assert secret not in repr(await tool.execute({"task": "x"}))


# the extended card


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_callers_who_prove_who_they_are_get_the_extended_card(binding: str) -> None:
    def answer(asked: Any) -> Json:
        if "authorization" not in asked.http.headers:
            return http(401, "application/json", b"{}")
        more = card_1_0(one.url + "/", binding=binding)
        return {**more, "skills": [*more["skills"], {"id": "secret-skill"}]}

    async with scripted(answer) as one:
        one.card = card_1_0(one.url + "/", binding=binding, capabilities={"extendedAgentCard": True})
        known = await tools(agent(one.card_url, {"authorization": "Bearer x-123456"}))
        assert [tool.name for tool in known] == ["Calc_Agent_add", "Calc_Agent_secret-skill"]
        assert one.methods == ["GetExtendedAgentCard" if binding == "JSONRPC" else "GET /extendedAgentCard"]
        assert len(await tools(agent(one.card_url))) == 1
        assert len(one.asked) == 1


async def test_an_extended_card_that_cannot_be_had_costs_nothing() -> None:
    async with scripted(lambda asked: http(500, "text/plain", b"boom")) as one:
        one.card = card_1_0(one.url + "/", capabilities={"extendedAgentCard": True})
        client = AgentClient(agent(one.card_url, {"authorization": "Bearer x-123456"}))
        found = await client.load()
        assert [skill.key for skill in found.card.skills] == ["add"]
        assert "HTTP 500" in client.extended_fault
        await client.close()


# signatures


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed(card: Json, algorithm: str, sign: Callable[[bytes], bytes], kid: str = "k1") -> Json:
    protected = b64(json.dumps({"alg": algorithm, "kid": kid, "typ": "JOSE"}).encode())
    message = f"{protected}.{b64(canonical(card))}".encode()
    return {**card, "signatures": [{"protected": protected, "signature": b64(sign(message))}]}


def es256(key: ec.EllipticCurvePrivateKey) -> Any:
    def sign(message: bytes) -> bytes:
        r, s = asymmetric.decode_dss_signature(key.sign(message, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    return sign


def pem(key: Any) -> str:
    public = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, public).decode()


SIGNED = {
    "name": "A",
    "skills": [{"id": "s"}],
    "supportedInterfaces": [{"url": "http://h/", "protocolBinding": "JSONRPC"}],
}


async def test_a_card_signed_by_a_trusted_key_is_taken_whatever_the_keys_form(site: Site) -> None:
    elliptic, edwards = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()
    numbers = elliptic.public_key().public_numbers()
    jwk = {
        "kty": "EC",
        "crv": "P-256",
        "kid": "k1",
        "x": b64(numbers.x.to_bytes(32, "big")),
        "y": b64(numbers.y.to_bytes(32, "big")),
    }
    site.files["/card.json"] = signed(SIGNED, "ES256", es256(elliptic))
    for keys in (pem(elliptic), jwk, json.dumps(jwk), {"keys": [jwk]}, {"k1": pem(elliptic)}, [pem(edwards), jwk]):
        assert len(await tools(agent(site.url + "/card.json", keys=keys))) == 1
    site.files["/card.json"] = signed(SIGNED, "EdDSA", edwards.sign)
    assert len(await tools(agent(site.url + "/card.json", keys=pem(edwards)))) == 1
    key = rsa.generate_private_key(65537, 2048)

    def rs256(message: bytes) -> bytes:
        return key.sign(message, padding.PKCS1v15(), hashes.SHA256())

    site.files["/card.json"] = signed(SIGNED, "RS256", rs256)
    assert len(await tools(agent(site.url + "/card.json", keys=pem(key)))) == 1


async def test_a_card_that_is_not_signed_by_a_trusted_key_is_none(site: Site) -> None:
    key, other = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    good = signed(SIGNED, "ES256", es256(key))
    forged = {**good, "name": "B"}

    def confusion(message: bytes) -> bytes:
        return hmac.digest(pem(key).encode(), message, "sha256")

    def nothing(message: bytes) -> bytes:
        return b""

    confused = signed(SIGNED, "HS256", confusion)
    none = signed(SIGNED, "none", nothing)
    for card, keys, words in [
        (SIGNED, pem(key), "not signed"),
        (good, pem(other), "does not fit"),
        (good, {"k2": pem(key)}, "no configured key"),
        (forged, pem(key), "does not fit"),
        (confused, pem(key), "does not fit"),
        (none, pem(key), "not signed|does not fit|no configured key"),
        (good, "no key", "neither PEM"),
        (good, {"kty": "EC"}, "JWK"),
    ]:
        site.files["/card.json"] = card
        with pytest.raises(CardError, match=words):
            await tools(agent(site.url + "/card.json", keys=keys))


async def test_only_what_was_signed_is_believed(site: Site) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    # A server of both versions adds fields of 0.3 that it does not sign, and so may whoever sits between.
    card = {**signed(SIGNED, "ES256", es256(key)), "url": "http://evil.example/", "protocolVersion": "0.3.0"}
    site.files["/card.json"] = card
    client = AgentClient(agent(site.url + "/card.json", keys=pem(key)))
    found = await client.load()
    assert [one.url for one in found.card.interfaces] == ["http://h/"]
    await client.close()


# addresses


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/x",
        "http://127.0.0.1:1/",
        "http://[::ffff:127.0.0.1]:1/",
        "http://2130706433/",
        "http://10.0.0.1/",
        "http://[fd00:ec2::254]/",
        "http://localhost:1/",
    ],
)
async def test_b076_a_public_card_leads_to_no_private_address(url: str) -> None:
    """a2aproject/a2a-python#786: a card that points its endpoint at the caller's own network."""
    guard = guard_for(["https://public.example/card.json"])
    if "localhost" in url:
        with pytest.raises(AddressRefused):
            await guard.resolve("localhost", 1)
    else:
        with pytest.raises(AddressRefused):
            guard.check_url(url)


@pytest.mark.parametrize(
    ("given", "allowed", "refused"),
    [
        (
            "http://127.0.0.1:5000/",
            ["http://127.0.0.1:6000/", "http://[::1]:1/"],
            ["http://10.0.0.1/", "http://169.254.169.254/"],
        ),
        ("http://localhost:5000/", ["http://127.0.0.1:6000/"], ["http://192.168.0.1/", "http://100.100.100.200/"]),
        (
            "http://10.1.2.3/",
            ["http://10.9.9.9/", "http://192.168.1.1/"],
            ["http://127.0.0.1/", "http://169.254.169.254/"],
        ),
        (
            "http://[fd12:3456:789a::1]/",
            ["http://[fd12:3456:789a:1::2]/"],
            ["http://[fd00:ec2::254]/", "http://127.0.0.1/"],
        ),
        ("http://169.254.1.1/", ["http://169.254.1.1:99/"], ["http://169.254.169.254/", "http://127.0.0.1/"]),
        ("https://8.8.8.8/", ["https://1.1.1.1/"], ["http://127.0.0.1/", "http://10.0.0.1/"]),
    ],
)
def test_b076_private_addresses_are_of_the_kind_that_the_operator_gave(
    given: str, allowed: list[str], refused: list[str]
) -> None:
    """a2aproject/a2a-python#1023: peers on a private network keep working where the operator put them there."""
    guard = guard_for([given])
    for url in allowed:
        guard.check_url(url)
    for url in refused:
        with pytest.raises(AddressRefused):
            guard.check_url(url)


async def test_b076_a_card_on_loopback_does_not_lead_to_the_metadata_service() -> None:
    """a2aproject/a2a-python#786: nothing is contacted, and the error says why."""
    async with scripted(lambda asked: task()) as one:
        one.card = card_1_0("http://169.254.169.254/latest")
        [tool] = await tools(agent(one.card_url))
        with anyio.fail_after(2):
            result = await tool.execute({"task": "x"})
    assert result.is_error
    assert "169.254.169.254" in result.output
    assert "metadata" in result.output
    assert "allow_origins" in result.output


# agents in files


def test_an_entry_of_an_agents_block_has_milliseconds() -> None:
    block = {"card": "http://h/card.json", "headers": {"a": "${B}"}, "timeout": 1500, "pollEvery": 20}
    made = configured_agent("calc", block, env={"B": "x"}, base_dir="/srv")
    assert (made.id, made.timeout, made.poll_every, dict(made.headers)) == ("calc", 1.5, 0.02, {"a": "${B}"})
    assert (made.env, made.base_dir) == ({"B": "x"}, "/srv")
    plain = configured_agent("calc", {"card": "http://h/card.json"})
    assert (plain.timeout, plain.poll_every) == (300.0, 1.0)


@pytest.mark.parametrize(
    ("block", "key"),
    [
        ({}, "card"),
        ({"card": 5}, "card"),
        ({"card": "http://h", "timeout": "1"}, "timeout"),
        ({"card": "http://h", "timeout": 0}, "timeout"),
        ({"card": "http://h", "pollEvery": True}, "pollEvery"),
        ({"card": "http://h", "headers": ["a"]}, "headers"),
        ({"card": "http://h", "headers": {"a": 5}}, "headers.a"),
        ({"card": "http://h", "allow_origins": ["h"]}, "origin"),
    ],
)
def test_an_entry_that_is_wrong_names_its_key(block: Json, key: str) -> None:
    with pytest.raises(ValueError, match=key):
        configured_agent("calc", block)


def test_disabled_wins_over_enabled() -> None:
    assert all(map(is_enabled, ({}, {"enabled": True}, {"disabled": False})))
    assert not any(map(is_enabled, ({"enabled": False}, {"enabled": True, "disabled": True})))
