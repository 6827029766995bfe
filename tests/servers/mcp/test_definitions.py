"""Tools as MCP lists them: the schemas exactly, an output schema whose root is an object."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema_rs
import pytest
from pydantic import BaseModel

from anykit import tool
from anykit.capabilities import Annotations
from anykit.runtime import ToolEntry
from anykit.servers.mcp.definitions import Offered, offered, published
from anykit.tools import Tool, ToolSpec


class Node(BaseModel):
    """Refers to itself."""

    name: str
    kids: list[Node] = []


class Pair(BaseModel):
    """Plain."""

    left: int
    right: int


@tool
def a() -> Node:
    """A node."""
    return Node(name="a", kids=[Node(name="b")])


@tool
def b() -> list[int]:
    """A list."""
    return [1, 2]


@tool
def c() -> int:
    """A number."""
    return 3


@tool
def d() -> Pair:
    """An object."""
    return Pair(left=1, right=2)


@tool
def e() -> list[Node]:
    """A list of what refers to itself."""
    return []


@tool
def f() -> Pair | None:
    """An object, or nothing."""
    return None


def of(one: Tool) -> Offered:
    return offered(ToolEntry(one, one.name, "python"))


VALUES: list[tuple[Tool, Any, Any]] = [
    (a, {"name": "a", "kids": [{"name": "b", "kids": []}]}, None),
    (b, [1, 2], {"result": [1, 2]}),
    (c, 3, {"result": 3}),
    (d, {"left": 1, "right": 2}, None),
    (e, [{"name": "a", "kids": []}], {"result": [{"name": "a", "kids": []}]}),
    (f, None, {"result": None}),
    (f, {"left": 1, "right": 2}, {"result": {"left": 1, "right": 2}}),
]


@pytest.mark.parametrize(("one", "value", "shown"), VALUES)
def test_b016_the_root_of_an_output_schema_is_an_object_that_the_value_fits(one: Any, value: Any, shown: Any) -> None:
    """PrefectHQ/fastmcp#2455."""
    before = copy.deepcopy(one.output_schema)
    listed = of(one)
    schema = listed.definition["outputSchema"]
    assert schema["type"] == "object"
    structured = listed.structured(value)
    assert structured == (value if shown is None else shown)
    assert jsonschema_rs.validator_for(schema).is_valid(structured)
    assert not jsonschema_rs.validator_for(schema).is_valid({"result": object} if shown is None else {})
    assert one.output_schema == before


def test_a_reference_at_the_root_is_followed() -> None:
    schema, wraps = published(
        {"$ref": "#/$defs/N", "$defs": {"N": {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}}}}
    )
    assert not wraps
    assert schema["properties"] == {"n": {"$ref": "#/$defs/N"}}
    assert "$ref" not in schema


def test_a_root_that_says_more_beside_its_reference_keeps_both() -> None:
    given: dict[str, Any] = {
        "$ref": "#/$defs/N",
        "properties": {"a": {}},
        "$defs": {"N": {"type": "object", "properties": {"b": {}}}},
    }
    schema, wraps = published(given)
    assert (schema, wraps) == ({"type": "object", **given}, False)


WRAPPED: list[tuple[Any, Any, Any]] = [
    ({"type": "array", "items": {"$ref": "#"}}, [[], [[]]], [1]),
    ({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/anyOf/0"}}]}, [1], ["x"]),
    ({"$defs": {"N": {"enum": [1]}}, "type": "array", "items": {"$ref": "#/$defs/N"}}, [1], [2]),
    (
        {
            "$id": "https://example.com/s",
            "type": "array",
            "items": {"$ref": "#/definitions/n"},
            "definitions": {"n": {"enum": [1]}},
        },
        [1],
        [2],
    ),
    (
        {"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": [{"type": "string"}]},
        ["a"],
        [1],
    ),
    (
        {"const": {"$ref": "#/not/a/reference"}},
        {"$ref": "#/not/a/reference"},
        {"$ref": "#/properties/result/not/a/reference"},
    ),
    ({"type": "array", "items": {"properties": {"$ref": {"type": "integer"}}}}, [{"$ref": 1}], [{"$ref": "#"}]),
    ({}, [1], None),
]


@pytest.mark.parametrize(("schema", "good", "bad"), WRAPPED)
def test_a_wrapped_schema_means_what_it_meant(schema: Any, good: Any, bad: Any) -> None:
    outer, wraps = published(schema)
    assert wraps
    validator = jsonschema_rs.validator_for(outer)
    assert validator.is_valid({"result": good})
    assert bad is None or not validator.is_valid({"result": bad})


def test_a_value_without_a_schema_is_wrapped_only_where_it_is_no_object() -> None:
    plain = Offered({}, None)
    assert plain.structured({"a": 1}) == {"a": 1}
    assert plain.structured([1]) == {"result": [1]}
    assert plain.structured(None) == {"result": None}


def test_schemas_are_listed_exactly() -> None:
    schema = {
        "type": "object",
        "properties": {"x": {"type": ["string", "null"], "default": None, "x-mcp-header": "X"}, "$ref": {"const": None}},
        "required": ["x"],
        "anyOf": [{"required": ["x"]}],
        "default": None,
        "x-own": [None],
    }  # fmt: skip
    spec = ToolSpec(name="t", description="", input_schema=copy.deepcopy(schema))
    assert of(Tool(spec)).definition["inputSchema"] == schema


def test_a_schema_that_does_not_say_that_it_is_an_object_does_when_it_is_listed() -> None:
    spec = ToolSpec(name="t", description="x", input_schema={"properties": {"a": {}}})
    assert of(Tool(spec)).definition["inputSchema"] == {"type": "object", "properties": {"a": {}}}


def test_annotations_title_tags_and_toolkit_are_told() -> None:
    spec = ToolSpec(
        name="close_it",
        description="",
        input_schema={"type": "object"},
        title="Close it",
        tags=("x",),
        toolkit="kit",
        metadata={"mcp": {"server": "s", "tool": "close", "_meta": {"com.example/k": 1}}},
        annotations=Annotations(title="Close!", read_only=False, destructive=True, idempotent=None, open_world=False),
    )
    assert of(Tool(spec)).definition == {
        "name": "close_it",
        "title": "Close it",
        "description": "Close it",
        "inputSchema": {"type": "object"},
        "annotations": {"title": "Close!", "readOnlyHint": False, "destructiveHint": True, "openWorldHint": False},
        "_meta": {"com.example/k": 1, "anykit/tags": ["x"], "anykit/toolkit": "kit"},
    }


def test_a_tool_without_a_description_has_its_name_in_words() -> None:
    spec = ToolSpec(name="do_it", description="", input_schema={"type": "object"})
    assert of(Tool(spec)).definition["description"] == "do it"
