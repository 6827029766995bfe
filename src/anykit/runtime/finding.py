"""`find_tools`: how a model comes to the tools that are not listed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from anykit.capabilities import Annotations, CapabilityContext, InvocableRequest, InvocableResult, JsonObject
from anykit.tools import Tool, ToolSpec, result_of, to_json

from .snapshot import Snapshot, ToolEntry

FOUND: Final = 5
"""Tools that one search gives, where nothing is said."""
MOST: Final = 50
ANSWER: Final = 256 * 1024
"""Characters of one answer; tools beyond it are named without their schemas."""
SOURCES: Final = 20
"""Sources that the description names."""

INPUT: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "minLength": 1,
            "description": "What the tool should do, in a few words, or a part of its name.",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST,
            "default": FOUND,
            "description": "How many tools to give at most.",
        },
    },
    "required": ["query"],
    "additionalProperties": False,
}
_TOOL: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "description": {"type": "string"},
        "input_schema": {"type": "object"},
    },
    "required": ["name", "description"],
}
OUTPUT: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "tools": {"type": "array", "items": _TOOL},
        "unavailable": {"type": "array", "items": {"type": "string"}},
        "hint": {"type": "string"},
    },
    "required": ["tools"],
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What a search may see and what it tells."""

    search: Callable[[str, int], Awaitable[Sequence[ToolEntry]]]
    """The nearest tools that the caller can call."""
    found: Callable[[Sequence[ToolEntry]], None]
    """Hears what was found."""
    unavailable: Callable[[], Sequence[str]]
    """What is not there now."""


class FindTools(Tool):
    """Searches one caller's tools."""

    def __init__(self, name: str, snapshot: Snapshot, finding: Finding) -> None:
        super().__init__(
            ToolSpec(
                name=name,
                title="Find tools",
                description=description_of(snapshot),
                input_schema=INPUT,
                output_schema=OUTPUT,
                annotations=Annotations(read_only=True, destructive=False, idempotent=True, open_world=False),
                kind="anykit",
                source="anykit",
            )
        )
        self._finding = finding

    @property
    def may_ask(self) -> bool:
        """It asks nothing."""
        return False

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult:
        """Names, descriptions and schemas of what was found, and what cannot be found now."""
        arguments = cast("Mapping[str, Any]", request.input)
        query, limit = str(arguments["query"]), int(arguments.get("limit", FOUND))
        found = await self._finding.search(query, limit)
        self._finding.found(found)
        answer: JsonObject = {"tools": _shown(found)}
        if not found:
            answer["hint"] = "no tool has to do with that; try other words, or fewer"
        if down := self._finding.unavailable():
            answer["unavailable"] = list(down)
        return result_of(answer)


def _shown(entries: Sequence[ToolEntry]) -> list[JsonObject]:
    shown: list[JsonObject] = []
    left = ANSWER
    for entry in entries:
        spec = entry.tool.spec
        tool: JsonObject = {
            "name": spec.name,
            "description": spec.description or spec.title or spec.name.replace("_", " "),
            "input_schema": spec.input_schema,
        }
        size = len(to_json(tool))
        if size > left:
            tool = {"name": spec.name, "description": spec.description[:1000]}
            size = len(to_json(tool))
        left -= size
        shown.append(tool)
    return shown


def description_of(snapshot: Snapshot) -> str:
    """What the model reads: that there is more, and whose it is."""
    sources = list(dict.fromkeys(entry.source for entry in snapshot.tools.values() if entry.tool.deferred))
    text = (
        "Finds tools by what they do. There are more tools than those listed: search before saying that something"
        " cannot be done. A tool that was found can be called at once by its name."
    )
    if sources:
        more = f" and {len(sources) - SOURCES} others" if len(sources) > SOURCES else ""
        text += f" Not listed are tools of: {', '.join(sources[:SOURCES])}{more}."
    return text
