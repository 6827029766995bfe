"""Tools with another look, as FastMCP's files give them: the server gets its own names back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anykit import Workbench
from anykit.capabilities import InvalidInput, InvocableSpec
from anykit.sources.mcp.transforms import ToolTransform, Transforms, transforms_of

from .peers.script import Peer
from .web import serving

pytestmark = pytest.mark.anyio

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "units": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "units"],
}
TOOLS: list[dict[str, Any]] = [
    {"name": "get_forecast", "description": "raw", "inputSchema": SCHEMA},
    {"name": "old", "inputSchema": SCHEMA},
    {"name": "tagged", "inputSchema": SCHEMA, "_meta": {"fastmcp": {"tags": ["public", "beta"]}}},
    {"name": "public", "inputSchema": SCHEMA, "_meta": {"_fastmcp": {"tags": ["public"]}}},
    {"name": "plain", "inputSchema": SCHEMA},
]


def spec(schema: dict[str, Any] | None = None) -> InvocableSpec:
    return InvocableSpec(name="t", description="d", input_schema=schema or SCHEMA)


async def test_a_file_gives_tools_other_names_words_and_arguments(tmp_path: Path) -> None:
    said = {
        "get_forecast": {
            "name": "forecast",
            "title": "Forecast",
            "description": "What the weather will be",
            "tags": ["weather"],
            "arguments": {
                "city": {"name": "place", "description": "Where"},
                "units": {"hide": True, "default": "metric"},
            },
        },
        "old": {"enabled": False},
    }
    async with serving(Peer({"tools": TOOLS})) as web:
        server = {"url": web.url, "transport": "http", "tools": said, "exclude_tags": ["beta"]}
        (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": {"w": server}}))
        async with Workbench(tmp_path / "servers.json", data_dir=tmp_path, settle=5) as bench:
            names = {tool.name: tool for tool in bench.tools()}
            assert list(names) == ["w_forecast", "w_public", "w_plain"]
            tool = names["w_forecast"]
            assert (tool.title, tool.description, tool.tags) == ("Forecast", "What the weather will be", ("weather",))
            assert tool.input_schema == {
                "type": "object",
                "properties": {"place": {"type": "string", "description": "Where"}, "days": {"type": "integer"}},
                "required": ["place"],
            }
            assert not (await bench.call("w_forecast", {"place": "Oslo", "days": 2})).is_error
            assert (await bench.call("w_old", {})).is_error
        [call] = web.peer.calls("tools/call")
        assert call["params"]["name"] == "get_forecast"
        assert call["params"]["arguments"] == {"city": "Oslo", "days": 2, "units": "metric"}


def test_tags_choose() -> None:
    tagged = InvocableSpec(
        name="a", description="", input_schema={}, metadata={"mcp": {"_meta": {"fastmcp": {"tags": ["x"]}}}}
    )
    own = Transforms({"t": ToolTransform(tags=("x", "y"))}, frozenset({"x"}), frozenset({"y"}))
    assert Transforms({}, frozenset({"x"})).offers(tagged)
    assert not Transforms({}, frozenset({"z"})).offers(tagged)
    assert not own.offers(spec())  # what is excluded wins
    assert Transforms({}).offers(spec())


@pytest.mark.parametrize("given", [{"city": "x"}, {"units": "imperial"}])
def test_what_is_hidden_or_renamed_cannot_be_given_by_its_old_name(given: Any) -> None:
    made = transforms_of({"t": {"arguments": {"city": {"name": "place"}, "units": {"hide": True}}}}, None, None)
    assert made is not None
    look = made.of("t")
    assert look is not None
    with pytest.raises(InvalidInput):
        look.arguments_for(given)
    assert look.arguments_for({"place": "x"}) == {"city": "x"}


def test_the_servers_schema_is_not_touched() -> None:
    before = json.dumps(SCHEMA)
    made = transforms_of({"t": {"arguments": {"city": {"default": "Oslo"}}}}, None, None)
    assert made is not None
    look = made.of("t")
    assert look is not None
    assert look.spec(spec()).input_schema["properties"]["city"] == {"type": "string", "default": "Oslo"}
    assert look.spec(spec()).input_schema["required"] == ["units"]
    assert look.arguments_for({}) == {"city": "Oslo"}
    assert json.dumps(SCHEMA) == before


@pytest.mark.parametrize(
    ("tools", "why"),
    [
        ({"a": {"name": "x"}, "b": {"name": "x"}}, "two of them would get the same name"),
        ({"a": {"name": 7}}, "tools/a/name: must be a text"),
        ({"a": {"tags": "x"}}, "tools/a/tags: must be a list"),
        ({"a": {"arguments": []}}, None),
        ({"a": {"arguments": [1]}}, "must be an object"),
    ],
)
def test_what_is_wrong_is_named(tools: Any, why: str | None) -> None:
    if why is None:
        assert transforms_of(tools, None, None) is None
        return
    with pytest.raises(ValueError, match=why):
        transforms_of(tools, None, None)
