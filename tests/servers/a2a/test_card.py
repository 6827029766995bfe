"""The card: what it says, to whom, and that both official readers read it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from anykit import tool
from anykit.servers.a2a import About
from anykit.servers.a2a.card import CALLS, agent_card, example_of
from anykit.servers.identity import Ways
from servers.a2a.hosts import Notes, add, parts_of, served, shout

pytestmark = pytest.mark.anyio

PATH = "/.well-known/agent-card.json"


async def _card(served_by: Any, path: str = PATH, **headers: str) -> dict[str, Any]:
    async with served_by.http.get(served_by.url + path, headers=headers) as reply:
        assert (reply.status, reply.content_type) == (200, "application/json")
        card: dict[str, Any] = await reply.json()
        return card


async def test_the_card_has_the_fields_of_both_versions() -> None:
    async with served(add, shout, about=About(name="Desk", description="Does sums", organization="Acme")) as host:
        card = await _card(host)
        url = f"{host.url}/a2a"
        assert (card["name"], card["description"]) == ("Desk", "Does sums")
        assert card["provider"] == {"organization": "Acme", "url": host.url}
        assert [
            (one["url"], one["protocolBinding"], one["protocolVersion"]) for one in card["supportedInterfaces"]
        ] == [
            (url, "JSONRPC", "1.0"),
            (url, "HTTP+JSON", "1.0"),
            (url, "JSONRPC", "0.3"),
            (url, "HTTP+JSON", "0.3"),
        ]
        assert (card["url"], card["preferredTransport"], card["protocolVersion"]) == (url, "JSONRPC", "0.3.0")
        assert {one["transport"] for one in card["additionalInterfaces"]} == {"JSONRPC", "HTTP+JSON"}
        assert card["capabilities"]["streaming"] is True
        assert card["capabilities"]["pushNotifications"] is True
        assert "securitySchemes" not in card


async def test_each_tool_is_a_skill_with_its_schema() -> None:
    async with served(add, shout) as host:
        card = await _card(host)
        skill = card["skills"][0]
        assert (skill["id"], skill["description"], skill["inputSchema"]) == (
            "add",
            "Adds two numbers.",
            add.input_schema,
        )
        assert skill["tags"]
        (extension,) = card["capabilities"]["extensions"]
        assert (extension["uri"], extension["required"]) == (CALLS, False)
        assert extension["params"]["skills"]["add"]["inputSchema"] == add.input_schema


async def test_the_example_of_a_skill_can_be_sent_as_it_is() -> None:
    async with served(add, shout) as host:
        (example,) = (await _card(host))["skills"][0]["examples"]
        task = await host.send(example)
        assert parts_of(task)[1]["data"] == 2


async def test_the_sdks_reader_reads_it() -> None:
    from a2a.client.card_resolver import parse_agent_card

    async with served(add, token="t") as host:
        card = parse_agent_card(await _card(host))
        assert [one.protocol_version for one in card.supported_interfaces] == ["1.0", "1.0", "0.3", "0.3"]
        assert card.security_schemes["bearer"].http_auth_security_scheme.scheme == "bearer"
        assert card.skills[0].id == "add"


async def test_it_agrees_with_what_the_sdk_would_serve() -> None:
    """The SDK adds the fields of 0.3 to a card of 1.0 by itself; what it would add is what stands there."""
    from a2a.client.card_resolver import parse_agent_card
    from a2a.server.request_handlers.response_helpers import agent_card_to_dict

    async with served(add, token="t") as host:
        ours = await _card(host)
        theirs = agent_card_to_dict(parse_agent_card(json.loads(json.dumps(ours))))
        for key in ("name", "version", "url", "preferredTransport", "security", "defaultInputModes"):
            assert ours[key] == theirs[key], key
        assert ours["securitySchemes"]["bearer"]["type"] == theirs["securitySchemes"]["bearer"]["type"]


async def test_tools_of_toolkits_that_are_not_configured_are_not_exposed() -> None:
    async with served(Notes, add, configure=False) as host:
        assert [skill["id"] for skill in (await _card(host))["skills"]] == ["add"]
        await host.bench.configure("notes", {})
        assert [skill["id"] for skill in (await _card(host))["skills"]] == ["add", "read_note"]


async def test_the_card_is_public_and_says_that_a_token_is_needed() -> None:
    async with served(add, token="secret-token") as host:
        card = await _card(host, authorization="")
        assert card["securitySchemes"]["bearer"]["scheme"] == "bearer"
        assert card["security"] == [{"bearer": []}]
        assert card["securityRequirements"] == [{"schemes": {"bearer": {"list": []}}}]
        assert "secret-token" not in json.dumps(card)


async def test_a_reader_that_knows_the_card_gets_no_body() -> None:
    async with served(Notes, add, configure=False) as host:
        async with host.http.get(host.url + PATH) as reply:
            tag = reply.headers["etag"]
        for known in (tag, f'"x", W/{tag}', "*"):
            async with host.http.get(host.url + PATH, headers={"if-none-match": known}) as reply:
                assert (reply.status, reply.headers["etag"], await reply.read()) == (304, tag, b"")
        await host.bench.configure("notes", {})
        async with host.http.get(host.url + PATH, headers={"if-none-match": tag}) as reply:
            assert (reply.status, reply.headers["etag"] != tag) == (200, True)


async def test_the_old_place_and_head_and_nothing_else() -> None:
    async with served(add) as host:
        assert await _card(host, "/.well-known/agent.json") == await _card(host)
        async with host.http.head(host.url + PATH) as reply:
            assert (reply.status, await reply.read()) == (200, b"")
        async with host.http.post(host.url + PATH) as reply:
            assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")


async def test_the_urls_are_those_that_the_card_was_asked_under() -> None:
    async with served(add) as host:
        port = host.url.rpartition(":")[2]
        assert (await _card(host, host=f"localhost:{port}"))["url"] == f"http://localhost:{port}/a2a"
    async with served(add, ways=Ways(trusted_proxies=["127.0.0.1"])) as host:
        assert (await _card(host, **{"x-forwarded-proto": "https"}))["url"].startswith("https://127.0.0.1:")
    async with served(add, url="https://agents.example/desk/") as host:
        assert (await _card(host))["url"] == "https://agents.example/desk/a2a"


def test_the_card_needs_no_sdk() -> None:
    import subprocess
    import sys

    program = (
        "import sys, anykit.servers.a2a as face\n"
        "from anykit.servers.a2a.card import About, agent_card\n"
        "agent_card([], 'http://x', about=About(), secured=True)\n"
        "print([name for name in ('a2a', 'google.protobuf', 'httpx', 'starlette') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=10)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_tool_without_a_description_is_called_by_its_name() -> None:
    @tool(name="bare", description="")
    def bare() -> None: ...

    card = agent_card([bare], "http://x", about=About(), secured=False)
    assert card["skills"][0]["description"] == "bare"


@pytest.mark.parametrize(
    ("schema", "example"),
    [
        (
            {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]},
            {"a": 1},
        ),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "number", "examples": [2.5]}, 2.5),
        ({"enum": ["x", "y"]}, "x"),
        ({"type": "string", "default": "d"}, "d"),
        ({"type": ["boolean", "null"]}, True),
        ({"type": "array", "items": {"type": "string"}, "minItems": 1}, ["text"]),
        ({"type": "array"}, []),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "text"),
        ({"$ref": "#/$defs/T", "$defs": {"T": {"const": 3}}}, 3),
        ({"$ref": "#"}, None),
        ({"$ref": "http://elsewhere/"}, None),
        ({}, None),
    ],
)
def test_an_example_is_the_plainest_value_a_schema_takes(schema: dict[str, Any], example: Any) -> None:
    assert example_of(schema) == example
