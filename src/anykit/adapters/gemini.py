"""A tool in the request of Gemini's `generateContent`, as its REST API and google-genai take it."""

from __future__ import annotations

from collections.abc import Sequence

from anykit.capabilities import JsonObject

from .described import Described


def declaration(tool: Described, schema: JsonObject, *, strict: bool) -> JsonObject:
    """`FunctionDeclaration`. One without parameters has no `parameters`: an object without members is refused there."""
    made: JsonObject = {"name": tool.name, "description": tool.text}
    return {**made, "parameters": schema} if schema.get("properties") else made


def together(declarations: Sequence[JsonObject]) -> list[JsonObject]:
    """All declarations as the request's one `Tool`; none where there are none."""
    return [{"functionDeclarations": list(declarations)}] if declarations else []
