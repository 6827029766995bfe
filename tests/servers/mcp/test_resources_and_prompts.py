"""Resources, prompts and completion over MCP, in both eras: read, filled in and proposed as themselves, never as tools."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from anykit import Workbench, prompt, resource
from anykit.testing import MemoryProvider
from servers.mcp.offering import Offered
from servers.mcp.peers import OFFERED, Fields, Lines, envelope, http, lines, request, shaken

pytestmark = pytest.mark.anyio

PICTURE = b"\x89PNG\x00\xff"


@resource("test://picture", media_type="image/png")
def picture() -> bytes:
    """Bytes."""
    return PICTURE


@resource("test://text", title="A text", description="Says something")
def text() -> str:
    """A text."""
    return "a\u2028b 😀"


@resource("test://named/{name}/x")
def named(name: str) -> str:
    """What it is called."""
    return name


@resource("test://numbered/{number}")
def numbered(number: int) -> int:
    """A number, twice."""
    return number * 2


@prompt(title="Dialogue")
def dialogue(topic: str) -> list[str]:
    """Two of them talk.

    Args:
        topic: About what.
    """
    return [f"What about {topic}?", "Well."]


@pytest.fixture(params=["legacy", "modern"])
def era(request: pytest.FixtureRequest) -> str:
    return request.param


async def opened(client: Lines, era: str) -> Fields:
    """What goes into each request."""
    if era == "modern":
        return {"_meta": envelope()}
    await client.shake_hands()
    return {}


# resources


async def test_resources_and_templates_are_listed_apart(era: str) -> None:
    async with Workbench(picture, text, named) as bench, lines(bench) as client:
        meta = await opened(client, era)
        listed = (await client.result("resources/list", **meta))["resources"]
        assert [one["uri"] for one in listed] == ["test://picture", "test://text"]
        assert listed[0]["mimeType"] == "image/png"
        assert (listed[1]["title"], listed[1]["description"]) == ("A text", "Says something")
        [template] = (await client.result("resources/templates/list", **meta))["resourceTemplates"]
        assert (template["uriTemplate"], template["name"]) == ("test://named/{name}/x", "named")


async def test_a_resource_is_read_as_text_or_bytes(era: str) -> None:
    async with Workbench(picture, text) as bench, lines(bench) as client:
        meta = await opened(client, era)
        [read] = (await client.result("resources/read", uri="test://text", **meta))["contents"]
        assert read == {"uri": "test://text", "mimeType": "text/plain", "text": "a\u2028b 😀"}
        [read] = (await client.result("resources/read", uri="test://picture", **meta))["contents"]
        assert (read["mimeType"], base64.b64decode(read["blob"])) == ("image/png", PICTURE)


@pytest.mark.parametrize(
    ("uri", "shown"),
    [("test://named/b%20c/x", "b c"), ("test://numbered/21", "42"), ("test://named/%E2%98%83/x", "☃")],
)
async def test_a_resource_of_a_family_is_read_with_its_parameters(era: str, uri: str, shown: str) -> None:
    async with Workbench(named, numbered) as bench, lines(bench) as client:
        meta = await opened(client, era)
        [read] = (await client.result("resources/read", uri=uri, **meta))["contents"]
        assert (read["uri"], read["text"]) == (uri, shown)


@pytest.mark.parametrize(
    "uri", ["test://nothing", "", "file:///etc/passwd", "test://named/a/b/x", "test://numbered/", "x" * 100_000]
)
async def test_a_resource_that_is_not_there_is_an_error_that_names_it(era: str, uri: str) -> None:
    async with Workbench(named, numbered) as bench, lines(bench) as client:
        meta = await opened(client, era)
        refused = (await client.ask(request(1, "resources/read", uri=uri, **meta)))["error"]
        assert refused["code"] == (-32002 if era == "legacy" else -32602)
        assert refused["data"] == {"uri": uri}
        assert len(refused["message"]) < 2000
        assert "result" in await client.ask(request(2, "resources/list", **meta))


async def test_a_resource_that_breaks_leaks_nothing(era: str) -> None:
    async with Workbench(*OFFERED) as bench, lines(bench) as client:
        meta = await opened(client, era)
        refused = (await client.ask(request(1, "resources/read", uri="test://broken", **meta)))["error"]
        assert refused["code"] == -32603
        assert "secret-traceback" not in json.dumps(refused)


async def test_lists_come_in_pages_and_a_cursor_of_another_list_is_refused(era: str) -> None:
    provider = MemoryProvider()
    provider.go("ready")
    for index in range(1500):
        provider.add_resource(f"memo://{index:04}", "x")
    provider.page_size = 700
    async with lines(Offered(provider)) as client:
        meta = await opened(client, era)
        first = await client.result("resources/list", **meta)
        second = await client.result("resources/list", cursor=first["nextCursor"], **meta)
        uris = [one["uri"] for one in [*first["resources"], *second["resources"]]]
        assert uris == [f"memo://{index:04}" for index in range(1500)]
        assert "nextCursor" not in second
        for cursor in ("", "?", "bm90aGluZw==", "\ud7ff", first["nextCursor"] + "A"):
            refused = await client.ask(request(1, "resources/list", cursor=cursor, **meta))
            assert refused["error"]["code"] == -32602, cursor


async def test_a_source_that_is_away_costs_its_own_resources_only(era: str) -> None:
    here, away = MemoryProvider(), MemoryProvider("away")
    here.go("ready")
    here.add_resource("memo://here", "here")
    away.go("ready")
    away.add_resource("memo://away", "away")
    away.go("failed", "down")
    async with lines(Offered(here, away)) as client:
        meta = await opened(client, era)
        listed = (await client.result("resources/list", **meta))["resources"]
        assert [one["uri"] for one in listed] == ["memo://here"]
        assert (await client.result("resources/read", uri="memo://here", **meta))["contents"][0]["text"] == "here"


# prompts


async def test_a_prompt_is_listed_with_its_arguments(era: str) -> None:
    async with Workbench(*OFFERED, dialogue) as bench, lines(bench) as client:
        meta = await opened(client, era)
        listed = {one["name"]: one for one in (await client.result("prompts/list", **meta))["prompts"]}
        assert listed["report"]["arguments"] == [
            {"name": "city", "description": "Where.", "required": True},
            {"name": "tone", "required": False},
        ]
        assert (listed["dialogue"]["title"], listed["dialogue"]["description"]) == ("Dialogue", "Two of them talk.")


async def test_a_prompt_is_filled_in(era: str) -> None:
    async with Workbench(*OFFERED, dialogue) as bench, lines(bench) as client:
        meta = await opened(client, era)
        filled = await client.result("prompts/get", name="report", arguments={"city": "Rome"}, **meta)
        assert filled["messages"] == [{"role": "user", "content": {"type": "text", "text": "Weather in Rome, dry"}}]
        filled = await client.result("prompts/get", name="dialogue", arguments={"topic": "tea"}, **meta)
        assert [one["content"]["text"] for one in filled["messages"]] == ["What about tea?", "Well."]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("reprot", {"city": "Rome"}, "report"),
        ("report", {}, "city"),
        ("report", None, "city"),
        ("report", {"city": "Rome", "more": "x"}, "more"),
        ("", {}, "no prompt"),
    ],
)
async def test_wrong_names_and_arguments_of_prompts_are_invalid_params(
    era: str, name: str, arguments: Any, said: str
) -> None:
    async with Workbench(*OFFERED) as bench, lines(bench) as client:
        meta = await opened(client, era)
        given = {"name": name, **({} if arguments is None else {"arguments": arguments})}
        refused = (await client.ask(request(1, "prompts/get", **given, **meta)))["error"]
        assert refused["code"] == -32602
        assert said in refused["message"]


async def test_arguments_of_prompts_are_texts(era: str) -> None:
    async with Workbench(*OFFERED) as bench, lines(bench) as client:
        meta = await opened(client, era)
        refused = await client.ask(request(1, "prompts/get", name="report", arguments={"city": 7}, **meta))
        assert refused["error"]["code"] == -32602


# completion


async def test_arguments_are_completed(era: str) -> None:
    provider = MemoryProvider()
    provider.go("ready")
    provider.add_prompt("read", "Read {uri}")
    for index in range(150):
        provider.add_resource(f"memo://{index}", "x")
    async with lines(Offered(provider)) as client:
        meta = await opened(client, era)
        if era == "legacy":
            capabilities = (await client.ask(request(9, "ping"))) and client.heard[0]["result"]["capabilities"]
            assert capabilities["completions"] == {}
        reference = {"type": "ref/prompt", "name": "read"}

        async def completed(value: str) -> Any:
            argument = {"name": "uri", "value": value}
            return (await client.result("completion/complete", ref=reference, argument=argument, **meta))["completion"]

        assert await completed("memo://14") == {
            "values": ["memo://14", *(f"memo://14{index}" for index in range(10))],
            "hasMore": False,
        }
        many = await completed("memo://")
        assert (len(many["values"]), many["hasMore"]) == (100, True)
        assert (await completed("other"))["values"] == []


async def test_a_workbench_without_proposals_proposes_nothing(era: str) -> None:
    async with Workbench(*OFFERED) as bench, lines(bench) as client:
        meta = await opened(client, era)
        for reference in (
            {"type": "ref/prompt", "name": "report"},
            {"type": "ref/resource", "uri": "test://item/{id}"},
        ):
            argument = {"name": "city", "value": ""}
            result = await client.result("completion/complete", ref=reference, argument=argument, **meta)
            assert result["completion"] == {"values": [], "hasMore": False}


async def test_over_http_in_the_new_era_a_resource_is_named_in_the_header() -> None:
    async with http(*OFFERED) as client:
        read = await client.modern("resources/read", uri="test://fixed")
        assert read.json["result"]["contents"][0]["text"] == "fixed"
        filled = await client.modern("prompts/get", name="report", arguments={"city": "Rome"})
        assert filled.json["result"]["messages"][0]["content"]["text"] == "Weather in Rome, dry"


async def test_nothing_of_resources_and_prompts_is_a_tool() -> None:
    async with shaken(picture, text, named, dialogue) as (client, _):
        assert (await client.result("tools/list"))["tools"] == []
        refused = await client.ask(request(1, "tools/call", name="dialogue", arguments={"topic": "x"}))
        assert refused["error"]["code"] == -32602
