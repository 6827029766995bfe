"""A server's tools given another look, as FastMCP's files do: other names, words and arguments, some of them fixed.

What the server gets is always its own: its tool's name, its arguments' names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from anykit.capabilities import InvalidInput, InvocableSpec, Json, JsonObject

_META_TAGS = ("fastmcp", "_fastmcp")


@dataclass(frozen=True, slots=True)
class ArgumentTransform:
    """One argument, seen from outside. None leaves what the server says."""

    name: str | None = None
    description: str | None = None
    required: bool | None = None
    hide: bool = False
    """Nobody sees it; the server gets `default`, or nothing."""
    default: Json = None
    has_default: bool = False


@dataclass(frozen=True, slots=True)
class ToolTransform:
    """One tool, seen from outside. None leaves what the server says."""

    name: str | None = None
    title: str | None = None
    description: str | None = None
    tags: tuple[str, ...] | None = None
    enabled: bool = True
    arguments: Mapping[str, ArgumentTransform] = field(default_factory=dict[str, ArgumentTransform])

    def spec(self, spec: InvocableSpec) -> InvocableSpec:
        """The spec as it is offered."""
        changes: dict[str, Any] = {}
        if self.name is not None:
            changes["name"] = self.name
        if self.description is not None:
            changes["description"] = self.description
        if self.title is not None and spec.annotations is not None:
            changes["annotations"] = spec.annotations.model_copy(update={"title": self.title})
        if self.tags is not None:
            changes["metadata"] = {**spec.metadata, "tags": list(self.tags)}
        if self.arguments:
            changes["input_schema"] = self._schema(spec.input_schema)
        return spec.model_copy(update=changes) if changes else spec

    def _schema(self, schema: JsonObject) -> JsonObject:
        given: Any = schema.get("properties")
        listed: Any = schema.get("required")
        required = [str(one) for one in cast("list[Any]", listed)] if isinstance(listed, list) else []
        properties: JsonObject = {}
        wanted: list[str] = []
        for name, value in cast(JsonObject, given).items() if isinstance(given, dict) else ():
            said = self.arguments.get(name)
            if said is None:
                properties[name] = value
                wanted += [name] if name in required else []
                continue
            if said.hide:
                continue
            shown: Any = dict(cast(JsonObject, value)) if isinstance(value, dict) else {}
            if said.description is not None:
                shown["description"] = said.description
            if said.has_default:
                shown["default"] = said.default
            needed = said.required if said.required is not None else name in required and not said.has_default
            properties[said.name or name] = shown
            wanted += [said.name or name] if needed else []
        kept = {key: value for key, value in schema.items() if key not in ("properties", "required")}
        return {**kept, "properties": properties, **({"required": wanted} if wanted else {})}

    def arguments_for(self, given: JsonObject) -> JsonObject:
        """What the server gets for what was given. Raises `InvalidInput` for an argument that is not offered."""
        if not self.arguments:
            return given
        original = {said.name: name for name, said in self.arguments.items() if said.name is not None}
        sent: JsonObject = {}
        for name, value in given.items():
            said = self.arguments.get(name)
            if name not in original and said is not None and (said.hide or said.name is not None):
                raise InvalidInput(f"there is no argument {name!r}", [{"path": f"/{name}", "message": "is unknown"}])
            sent[original.get(name, name)] = value
        for name, said in self.arguments.items():
            if said.has_default and name not in sent:
                sent[name] = said.default
        return sent


@dataclass(frozen=True, slots=True)
class Transforms:
    """What a file says of the look of a server's tools."""

    tools: Mapping[str, ToolTransform] = field(default_factory=dict[str, ToolTransform])
    include_tags: frozenset[str] | None = None
    """Only tools with one of these tags."""
    exclude_tags: frozenset[str] = frozenset()
    """No tool with one of these; it wins."""

    def of(self, name: str) -> ToolTransform | None:
        """What is said of one tool, by the server's own name."""
        return self.tools.get(name)

    def offers(self, spec: InvocableSpec) -> bool:
        """Whether a tool is offered, as far as its tags and what is said of it go; `spec` is the server's."""
        said = self.of(spec.name)
        if said is not None and not said.enabled:
            return False
        if self.include_tags is None and not self.exclude_tags:
            return True
        tags = set(_tags_of(spec)) | set(said.tags or () if said is not None else ())
        if tags & self.exclude_tags:
            return False
        return self.include_tags is None or bool(tags & self.include_tags)


def transforms_of(tools: Json, include: Json, exclude: Json) -> Transforms | None:
    """What `tools`, `include_tags` and `exclude_tags` of an entry say; None where that is nothing.

    Raises `ValueError` for what is not as it has to be.
    """
    found: dict[str, ToolTransform] = {}
    for name, value in cast(JsonObject, tools).items() if isinstance(tools, dict) else ():
        if isinstance(value, dict):
            found[str(name)] = _tool(str(name), cast(JsonObject, value))
    names = [said.name for said in found.values() if said.name is not None]
    if len(set(names)) < len(names):
        raise ValueError("tools: two of them would get the same name")
    included, excluded = _tags(include, "include_tags"), _tags(exclude, "exclude_tags")
    if not any(said != ToolTransform() for said in found.values()) and included is None and not excluded:
        return None
    return Transforms(found, None if included is None else frozenset(included), frozenset(excluded or ()))


def _tool(name: str, given: JsonObject) -> ToolTransform:
    arguments: Any = given.get("arguments") or {}
    if not isinstance(arguments, dict):
        raise ValueError(f"tools/{name}/arguments: must be an object")
    return ToolTransform(
        name=_text(given, "name", name),
        title=_text(given, "title", name),
        description=_text(given, "description", name),
        tags=_tags(given.get("tags"), f"tools/{name}/tags"),
        enabled=given.get("enabled") is not False,
        arguments={
            str(key): _argument(cast(JsonObject, one), f"{name}/arguments/{key}")
            for key, one in cast(JsonObject, arguments).items()
            if isinstance(one, dict)
        },
    )


def _argument(given: JsonObject, where: str) -> ArgumentTransform:
    required: Any = given.get("required")
    return ArgumentTransform(
        name=_text(given, "name", where),
        description=_text(given, "description", where),
        required=required if isinstance(required, bool) else None,
        hide=given.get("hide") is True,
        default=given.get("default"),
        has_default="default" in given and given["default"] is not None,
    )


def _text(given: JsonObject, key: str, where: str) -> str | None:
    value = given.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or (key == "name" and not value):
        raise ValueError(f"tools/{where}/{key}: must be a text")
    return value


def _tags(value: Json, where: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise ValueError(f"{where}: must be a list")
    return tuple(str(one) for one in cast("list[Any]", value))


def _tags_of(spec: InvocableSpec) -> Sequence[str]:
    """The tags that FastMCP's servers send beside a tool."""
    described: Any = spec.metadata.get("mcp")
    meta: Any = cast(JsonObject, described).get("_meta") if isinstance(described, dict) else None
    for key in _META_TAGS:
        table: Any = cast(JsonObject, meta).get(key) if isinstance(meta, dict) else None
        tags: Any = cast(JsonObject, table).get("tags") if isinstance(table, dict) else None
        if isinstance(tags, list):
            return [str(one) for one in cast("list[Any]", tags)]
    return ()
