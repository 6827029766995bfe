"""A tool in the request of OpenAI: chat completions (nested) and responses (flat)."""

from __future__ import annotations

from anykit.capabilities import JsonObject

from .described import Described


def chat_tool(tool: Described, schema: JsonObject, *, strict: bool) -> JsonObject:
    """`ChatCompletionFunctionToolParam`."""
    function: JsonObject = {"name": tool.name, "description": tool.text, "parameters": schema}
    return {"type": "function", "function": {**function, "strict": True} if strict else function}


def responses_tool(tool: Described, schema: JsonObject, *, strict: bool) -> JsonObject:
    """`FunctionToolParam`; it is strict there unless it says that it is not."""
    made: JsonObject = {"type": "function", "name": tool.name, "description": tool.text}
    return {**made, "parameters": schema, "strict": strict}
