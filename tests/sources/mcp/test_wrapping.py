"""Values that are no objects, in and out of MCP's wrapper."""

from __future__ import annotations

from typing import Any

import mcp_types as types

from anykit.capabilities import InvocableResult
from anykit.sources.mcp.shaping import spec_of
from anykit.sources.mcp.wrapping import unwrapped


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
