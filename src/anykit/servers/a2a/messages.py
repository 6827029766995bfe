"""What a message asks for: which tool with which arguments, or what is still needed to know. No SDK in here.

a data part {"tool": name, "arguments": {...}}     that call, whatever else the message says
metadata.skillId and a data part                   the skill, the data part being its arguments
metadata.skillId and text                          the skill's one text argument
text alone                                         the only skill that takes one text; a call written as JSON counts as data
anything else                                      a question back, with the schema of an answer
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast

from anykit.capabilities import Json, JsonObject
from anykit.tools import Tool

SKILL_KEYS: Final = ("skillId", "skill_id", "skill")
"""Where a message's metadata names the skill; the first that is text."""
SPELLED_OUT: Final = 32
"""Skills whose schemas a question spells out; of more it gives the names, and the card has the schemas."""
NAMED: Final = 200
"""Skills that a question names at all."""
_CALL_KEYS = frozenset({"tool", "arguments"})
_HOPS = 16


class Offered(Protocol):
    """What a message's sender may call."""

    def tools(self) -> Sequence[Tool]:
        """All of it, in order."""
        ...

    def get(self, name: str) -> Tool | None:
        """One of it."""
        ...


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message, read."""

    text: str = ""
    """Its text parts, joined by newlines."""
    data: tuple[Json, ...] = ()
    """Its data parts."""
    files: int = 0
    """Parts that are neither."""
    skill: str = ""
    """What its metadata names."""
    metadata: JsonObject = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Call:
    """A tool and its arguments, not yet checked."""

    tool: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class Needed:
    """What has to be known before anything can run."""

    prompt: str
    schema: JsonObject
    """JSON Schema of the data part that would answer."""
    tool: str = ""
    """The tool, where that much is known: the answer is then its arguments."""


def skill_of(*metadata: JsonObject) -> str:
    """The skill that a message's or a request's metadata names."""
    for said in metadata:
        for key in SKILL_KEYS:
            if isinstance(name := said.get(key), str) and name:
                return name
    return ""


def wanted(incoming: Incoming, offered: Offered, *, chosen: str = "") -> Call | Needed:
    """What a message asks for.

    Args:
        incoming: The message.
        offered: What its sender may call.
        chosen: The tool that an earlier message of the same task settled on.
    """
    if len(incoming.data) > 1:
        return _which(offered, "One call a message: send one data part.")
    skill = incoming.skill or chosen
    if incoming.data:
        return _of_data(incoming.data[0], skill, offered)
    if incoming.text.strip():
        return _of_text(incoming.text, skill, offered)
    if incoming.files:
        return _which(offered, "Files alone cannot be taken: send the arguments as a data part, or text.", skill)
    tool = _find(offered, skill)
    if skill and (tool is None or not _properties(tool.input_schema)):
        return Call(skill, {})
    return _which(offered, "The message is empty.", skill)


def _of_data(data: Json, skill: str, offered: Offered) -> Call | Needed:
    named = _as_call(data)
    if skill:
        if named is not None and named.tool == skill and "tool" not in _properties(_schema(offered, skill)):
            return named
        return Call(skill, data)
    if named is not None:
        return named
    tools = offered.tools()
    if len(tools) == 1 and isinstance(data, dict):
        return Call(tools[0].name, data)
    return _which(offered, 'The data part names no tool: it is {"tool": name, "arguments": {...}}.')


def _of_text(text: str, skill: str, offered: Offered) -> Call | Needed:
    written = _json_object(text)
    named = None if written is None else _as_call(written)
    if named is not None and skill in ("", named.tool) and _find(offered, named.tool) is not None:
        return named
    if skill:
        return _of_text_for(_find(offered, skill), skill, text, written)
    tools = offered.tools()
    takers = [tool for tool in tools if _only_text(tool.input_schema) is not None]
    takers = takers or [tool for tool in tools if text_parameter(tool.input_schema) is not None]
    if len(takers) == 1:
        parameter = text_parameter(takers[0].input_schema)
        return Call(takers[0].name, {parameter or "": text})
    if len(tools) == 1:
        return _of_text_for(tools[0], tools[0].name, text, written)
    return _which(offered, "The text alone does not say which skill is meant.")


def _of_text_for(tool: Tool | None, name: str, text: str, written: JsonObject | None) -> Call | Needed:
    """A text for a tool that is known."""
    if tool is None:
        return Call(name, {})
    parameter = text_parameter(tool.input_schema)
    if parameter is not None:
        return Call(name, {parameter: text})
    if written is not None:
        return Call(name, written)
    if not _properties(tool.input_schema):
        return Call(name, {})
    return needs_arguments(
        tool, f"{name} takes more than a text: send its arguments {_signature(tool)} as a data part."
    )


def needs_arguments(tool: Tool, prompt: str) -> Needed:
    """The question for a tool's arguments."""
    return Needed(prompt, tool.input_schema, tool.name)


def _which(offered: Offered, why: str, skill: str = "") -> Needed:
    """The question for the skill."""
    if (tool := _find(offered, skill)) is not None:
        return needs_arguments(tool, f"{why} {tool.name} takes {_signature(tool)}.")
    tools = offered.tools()
    if not tools:
        return Needed(f"{why} There is no skill to call at the moment.", {"type": "object", "not": {}})
    names = [tool.name for tool in tools[:NAMED]]
    lines = [f"- {tool.name}{_signature(tool)}: {_first_line(tool.description)}" for tool in tools[:SPELLED_OUT]]
    if len(tools) > SPELLED_OUT:
        lines.append(f"- and {len(tools) - SPELLED_OUT} more (see the card)")
    listed = "\n".join(lines)
    prompt = (
        f"{why} Name one in metadata.skillId, or send the call as data or JSON text: "
        f'{{"tool": name, "arguments": {{...}}}}. Skills:\n{listed}'
    )
    schema: JsonObject = {
        "type": "object",
        "properties": {"tool": {"enum": names}, "arguments": {"type": "object"}},
        "required": ["tool", "arguments"],
        "additionalProperties": False,
    }
    if len(tools) <= SPELLED_OUT:
        schema["oneOf"] = [
            {"properties": {"tool": {"const": tool.name}, "arguments": tool.input_schema}} for tool in tools
        ]
    return Needed(prompt, schema)


def _as_call(data: Json) -> Call | None:
    """The call that `{"tool": name, "arguments": {...}}` means; `arguments` may be left out where there are none."""
    if not isinstance(data, dict):
        return None
    said = cast(JsonObject, data)
    name = said.get("tool")
    if not isinstance(name, str) or not said.keys() <= _CALL_KEYS:
        return None
    return Call(name, said.get("arguments", {}))


def _json_object(text: str) -> JsonObject | None:
    stripped = text.strip()
    if not stripped.startswith("{"):
        return None
    try:
        value: object = json.loads(stripped, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    return cast(JsonObject, value) if isinstance(value, dict) else None


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def _find(offered: Offered, name: str) -> Tool | None:
    return offered.get(name) if name else None


def _schema(offered: Offered, name: str) -> JsonObject:
    tool = _find(offered, name)
    return {} if tool is None else tool.input_schema


# what a schema says of its parameters


def _properties(schema: JsonObject) -> JsonObject:
    properties: object = schema.get("properties")
    return cast(JsonObject, properties) if isinstance(properties, dict) else {}


def _required(schema: JsonObject) -> list[str]:
    required: object = schema.get("required")
    return (
        [name for name in cast("list[object]", required) if isinstance(name, str)] if isinstance(required, list) else []
    )


def text_parameter(schema: JsonObject) -> str | None:
    """The parameter that a plain text is for: the only one, or the only required one, if it is a string."""
    only = _only_text(schema)
    if only is not None:
        return only
    required = _required(schema)
    if len(required) == 1 and is_text(_properties(schema).get(required[0]), schema):
        return required[0]
    return None


def _only_text(schema: JsonObject) -> str | None:
    properties = _properties(schema)
    if len(properties) != 1:
        return None
    ((name, part),) = properties.items()
    return name if is_text(part, schema) else None


def is_text(part: object, root: JsonObject, hops: int = 0) -> bool:
    """Whether a schema takes strings of any kind (an enumeration is a choice, not a text)."""
    if not isinstance(part, dict) or hops > _HOPS:
        return False
    said = cast(JsonObject, part)
    reference: object = said.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        found: object = root
        for step in reference[2:].split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            found = cast("dict[str, object]", found).get(name) if isinstance(found, dict) else None
        return is_text(found, root, hops + 1)
    if "enum" in said or "const" in said:
        return False
    kind: object = said.get("type")
    if kind is None:
        branches: object = said.get("anyOf", said.get("oneOf"))
        if not isinstance(branches, list):
            return False
        real = [branch for branch in cast("list[object]", branches) if branch != {"type": "null"}]
        return len(real) == 1 and is_text(real[0], root, hops + 1)
    return kind == "string" or kind in (["string", "null"], ["null", "string"])


def _signature(tool: Tool) -> str:
    required = set(_required(tool.input_schema))
    parameters = [
        f"{name}{'' if name in required else '?'}: {_type_name(part)}"
        for name, part in list(_properties(tool.input_schema).items())[:16]
    ]
    return f"({', '.join(parameters)})"


def _type_name(part: object) -> str:
    kind: object = cast(JsonObject, part).get("type") if isinstance(part, dict) else None
    return kind if isinstance(kind, str) else "any"


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:200]
