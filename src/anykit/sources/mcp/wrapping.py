"""MCP's wrapper around values that are no objects. It needs no SDK."""

from __future__ import annotations

import json
from typing import Any, cast

from anykit.capabilities import InvocableResult, JsonObject, TextPart

WRAPPED = "x-fastmcp-wrap-result"
"""The keyword of an output schema by which a server says that it wraps."""
RESULT = "result"


def inside(schema: JsonObject | None) -> tuple[JsonObject | None, bool]:
    """What an output schema promises, and whether it stands in a wrapper.

    MCP knows only objects as structured content; servers (FastMCP's, ours) put anything else under `result` and say so.
    """
    if schema is None or schema.get(WRAPPED) is not True:
        return schema, False
    properties: object = schema.get("properties")
    inner = cast(JsonObject, properties).get(RESULT) if isinstance(properties, dict) else None
    if not isinstance(inner, dict):
        return schema, False
    shared = {key: schema[key] for key in ("$schema", "$defs", "definitions") if key in schema}
    return {**shared, **cast(JsonObject, inner)}, True


def unwrapped(result: InvocableResult) -> InvocableResult:
    """The result with what its wrapper holds."""
    structured: Any = result.structured
    if not isinstance(structured, dict) or RESULT not in structured:
        return result
    return result.model_copy(update={"structured": cast(JsonObject, structured)[RESULT]})


def is_wrapper(result: InvocableResult) -> bool:
    """Whether a structured value that no schema promised is a wrapper: its text is what it holds, and not all of it."""
    structured: Any = result.structured
    if not isinstance(structured, dict) or cast(JsonObject, structured).keys() != {RESULT}:
        return False
    inner: Any = cast(JsonObject, structured)[RESULT]
    if isinstance(inner, dict) or len(result.content) != 1 or result.text is not None:
        return False
    (part,) = result.content
    if not isinstance(part, TextPart):
        return False
    if isinstance(inner, str):
        return part.text == inner
    try:
        return json.dumps(json.loads(part.text)) == json.dumps(inner)  # tells 1 from true and 1.0
    except (ValueError, RecursionError):
        return False
