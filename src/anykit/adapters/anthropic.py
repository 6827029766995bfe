"""A tool in the request of Anthropic's messages."""

from __future__ import annotations

from anykit.capabilities import JsonObject

from .described import Described


def message_tool(tool: Described, schema: JsonObject, *, strict: bool) -> JsonObject:
    """`ToolParam`."""
    made: JsonObject = {"name": tool.name, "description": tool.text, "input_schema": schema}
    if strict:
        made["strict"] = True
    if tool.deferred:
        made["defer_loading"] = True
    return made
