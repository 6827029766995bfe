"""Tools and toolkits as A2E lists them, and which of them a list request means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from anykit.capabilities import JsonObject
from anykit.runtime import ToolEntry, ToolkitView
from anykit.tools import Tool, repeatable
from anykit.wire.a2e import ToolDefinition, ToolkitDefinition, ToolkitListRequest, ToolListRequest, ToolParameter

_HOPS = 16
"""References that are followed to find a parameter's type."""


def kind_of(tool: Tool) -> str:
    """What a tool is made of; one of an MCP server says so in its metadata."""
    return "mcp" if isinstance(tool.spec.metadata.get("mcp"), dict) else tool.kind


def tool_definition(entry: ToolEntry) -> ToolDefinition:
    """A tool of the catalogue."""
    tool = entry.tool
    tags = list(tool.tags)
    if kind_of(tool) == "mcp":
        tags = list(dict.fromkeys(["mcp", entry.source, entry.original, *tags]))
    return _definition(tool, tags)


def _definition(tool: Tool, tags: list[str]) -> ToolDefinition:
    return ToolDefinition(
        name=tool.name,
        description=tool.description,
        input_parameters=parameters_of(tool.input_schema),
        output_parameters=parameters_of(tool.output_schema or {}),
        streaming=True,
        idempotent=repeatable(tool),
        tags=tags,
        version=tool.spec.version,
        toolkit=tool.toolkit,
        defer_loading=tool.deferred,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
    )


def parameters_of(schema: JsonObject) -> list[ToolParameter]:
    """The top level of an object schema as A2E's list of parameters, as far as that can say it."""
    properties: object = schema.get("properties")
    if not isinstance(properties, dict):
        return []
    required: object = schema.get("required")
    needed = cast("list[Any]", required) if isinstance(required, list) else []
    return [
        _parameter(name, part, schema, name in needed) for name, part in cast("dict[str, object]", properties).items()
    ]


def _parameter(name: str, part: object, root: JsonObject, required: bool) -> ToolParameter:
    said = cast(JsonObject, part) if isinstance(part, dict) else {}
    whole = _resolved(said, root)
    description: object = said.get("description", whole.get("description", ""))
    members: object = whole.get("properties")
    values: object = whole.get("enum")
    texts = cast("list[Any]", values) if isinstance(values, list) else []
    return ToolParameter(
        name=name,
        type=_type_of(whole, root),
        description=description if isinstance(description, str) else "",
        required=required,
        enum=texts if texts and all(isinstance(text, str) for text in texts) else None,
        properties=cast(JsonObject, members) if isinstance(members, dict) else None,
    )


def _resolved(part: JsonObject, root: JsonObject) -> JsonObject:
    """The schema that a chain of local references ends at."""
    for _ in range(_HOPS):
        reference: object = part.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        found: object = root
        for step in reference[2:].split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            found = cast("dict[str, object]", found).get(name) if isinstance(found, dict) else None
        if not isinstance(found, dict):
            break
        part = {**found, **{key: value for key, value in part.items() if key != "$ref"}}
    return part


def _type_of(part: JsonObject, root: JsonObject, hops: int = 0) -> str:
    """A JSON type name: the first that is not null, `object` where the schema says none."""
    kind: object = part.get("type")
    if isinstance(kind, str):
        return kind
    if isinstance(kind, list):
        return next((name for name in cast("list[Any]", kind) if isinstance(name, str) and name != "null"), "null")
    if hops < _HOPS:
        for keyword in ("anyOf", "oneOf", "allOf"):
            branches: object = part.get(keyword)
            if not isinstance(branches, list):
                continue
            for branch in cast("list[Any]", branches):
                if isinstance(branch, dict):
                    found = _type_of(_resolved(cast(JsonObject, branch), root), root, hops + 1)
                    if found != "null":
                        return found
    values: object = part.get("enum", [part["const"]] if "const" in part else None)
    if isinstance(values, list) and values:
        return _type_of_value(cast("list[Any]", values)[0])
    return "object"


def _type_of_value(value: object) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case None:
            return "null"
        case _:
            return "object"


def schema_of(definition: ToolDefinition) -> JsonObject:
    """The JSON Schema of a tool's arguments: its own, or made from the list of parameters."""
    if definition.input_schema is not None:
        return definition.input_schema
    properties: JsonObject = {}
    for parameter in definition.input_parameters:
        part: JsonObject = {"type": parameter.type} if parameter.type in _JSON_TYPES else {}
        if parameter.description:
            part["description"] = parameter.description
        if parameter.enum is not None:
            part["enum"] = parameter.enum
        if parameter.properties is not None and parameter.type == "object":
            part["properties"] = parameter.properties
        properties[parameter.name] = part
    required = [parameter.name for parameter in definition.input_parameters if parameter.required]
    schema: JsonObject = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


_JSON_TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})


def toolkit_definition(view: ToolkitView) -> ToolkitDefinition:
    """A toolkit of the catalogue, as its caller sees it."""
    return ToolkitDefinition(
        name=view.name,
        alias=view.alias,
        description=view.description,
        category=view.category,
        tags=list(view.tags),
        icon_svg=view.icon_svg,
        schema=view.schema,
        tools=list(view.tools),
        configured=view.configured,
        version=view.version,
    )


def toolkit_wanted(definition: ToolkitDefinition, request: ToolkitListRequest) -> bool:
    """Whether a list request means a toolkit: the kind is its category, in any case; it has every tag."""
    kind = request.filter_kind.strip().lower()
    return (not kind or definition.category.lower() == kind) and _has_tags(definition.tags, request.filter_tags)


def tool_wanted(definition: ToolDefinition, kind: str, request: ToolListRequest) -> bool:
    """Whether a list request means a tool, a search for words left aside. A deferred one must be asked for."""
    wanted = request.filter_kind.strip().lower()
    if wanted and kind.lower() != wanted:
        return False
    if definition.defer_loading and not request.include_deferred:
        return False
    return _has_tags(definition.tags, request.filter_tags)


def _has_tags(tags: Iterable[str], wanted: Sequence[str]) -> bool:
    return not wanted or set(wanted) <= set(tags)


def searched(definitions: Sequence[ToolDefinition], query: str) -> list[ToolDefinition]:
    """The tools in which every word of a query occurs; those that have them in the name come first."""
    words = query.lower().split()
    if not words:
        return list(definitions)
    found: list[tuple[int, ToolDefinition]] = []
    for definition in definitions:
        name = definition.name.lower()
        text = "\n".join((name, definition.description, definition.toolkit or "", *definition.tags)).lower()
        if all(word in text for word in words):
            found.append((sum(word not in name for word in words), definition))
    return [definition for _, definition in sorted(found, key=lambda pair: pair[0])]


def metadata_of(name: str, capability: str, priority: int = 0, *, exclusive: bool = False) -> Mapping[str, Any]:
    """What a handshake tells of who serves a capability."""
    return {"name": name, "type": capability, "priority": priority, "exclusive": exclusive}
