"""Values that are no objects, in and out of MCP's wrapper."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest

from anykit.capabilities import InvocableResult, TextPart
from anykit.sources.mcp.shaping import spec_of
from anykit.sources.mcp.wrapping import is_wrapper, unwrapped


def tool(schema: dict[str, Any]) -> types.Tool:
    return types.Tool(name="t", input_schema={"type": "object"}, output_schema=schema)


def test_a_wrapper_that_says_so_is_taken_off_schema_and_value() -> None:
    wrapped: dict[str, Any] = {
        "type": "object",
        "properties": {"result": {"type": "array", "items": {"$ref": "#/$defs/N"}}},
        "required": ["result"],
        "$defs": {"N": {"type": "integer"}},
        "x-fastmcp-wrap-result": True,
    }
    spec = spec_of("s", tool(wrapped))
    assert spec.output_schema == {
        "$defs": {"N": {"type": "integer"}},
        "type": "array",
        "items": {"$ref": "#/$defs/N"},
    }
    assert spec.metadata["mcp"]["wrapped"] is True
    assert unwrapped(InvocableResult(structured={"result": [1]})).structured == [1]
    assert unwrapped(InvocableResult(structured={"result": None})).has_structured


def test_an_object_that_only_happens_to_have_a_result_stays_as_it_is() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"result": {"type": "integer"}}}
    spec = spec_of("s", tool(schema))
    assert spec.output_schema == schema
    assert "wrapped" not in spec.metadata["mcp"]


@pytest.mark.parametrize(
    ("structured", "text", "expected"),
    [
        ({"result": "hi"}, "hi", True),
        ({"result": ""}, "", True),
        ({"result": [1, {"a": 2}]}, '[1, {"a": 2}]', True),
        ({"result": 5}, "5", True),
        ({"result": None}, "null", True),
        ({"result": 5}, '{"result":5}', False),
        ({"result": 1}, "true", False),
        ({"result": {"a": 1}}, '{"a":1}', False),
        ({"result": 5, "more": 1}, "5", False),
        ({"result": 5}, "five", False),
    ],
)
def test_without_a_schema_a_wrapper_is_known_by_its_text(structured: Any, text: str, expected: bool) -> None:
    assert is_wrapper(InvocableResult(structured=structured, content=(TextPart(text=text),))) is expected
