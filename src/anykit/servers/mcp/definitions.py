"""A tool of the catalogue as MCP lists it: the schemas exactly, and an output schema whose root is an object.

a schema of objects       as it is; a reference at its root is followed, so that the root says that it is an object
any other schema          {"type": "object", "properties": {"result": it}, "required": ["result"]}, and so is the value
no schema                 an object as it is, any other value as {"result": it}
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

from anykit.capabilities import Json, JsonObject
from anykit.runtime import Session, ToolEntry
from anykit.schema.documents import Document, subschemas
from anykit.tools import Tool

log = logging.getLogger("anykit.mcp")

RESULT: Final = "result"
"""The one property of a value that is no object."""
_HOPS: Final = 16


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool as it is listed, and how its results are put."""

    definition: JsonObject
    wraps: bool | None
    """Whether a structured value goes into `result`; None without an output schema: then only what is no object."""

    def structured(self, value: Json) -> JsonObject:
        """A structured value as MCP's `structuredContent`, which is an object."""
        if self.wraps or not isinstance(value, dict):
            return {RESULT: value}
        return cast(JsonObject, value)


def offered(entry: ToolEntry) -> Offered:
    """A tool as it is listed."""
    tool = entry.tool
    spec = tool.spec
    definition: JsonObject = {"name": tool.name}
    hints = spec.annotations
    title = spec.title or (hints.title if hints is not None else None)
    if title:
        definition["title"] = title
    definition["description"] = tool.description or title or tool.name.replace("_", " ")
    schema = tool.input_schema
    definition["inputSchema"] = schema if schema.get("type") == "object" else {"type": "object", **schema}
    wraps: bool | None = None
    if spec.output_schema is not None:
        definition["outputSchema"], wraps = published(spec.output_schema)
    if annotations := _annotations(tool):
        definition["annotations"] = annotations
    if meta := _meta(entry):
        definition["_meta"] = meta
    return Offered(definition, wraps)


class Definitions:
    """Tools as they are listed, each made once for its spec."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[object, Offered]] = {}

    def of(self, entry: ToolEntry) -> Offered:
        """A tool of the catalogue."""
        spec = entry.tool.spec
        known = self._known.get(entry.tool.name)
        if known is None or known[0] is not spec:
            known = self._known[entry.tool.name] = (spec, offered(entry))
        return known[1]

    def find(self, session: Session, tool: Tool) -> Offered | None:
        """The same for a tool that a caller was handed."""
        known = self._known.get(tool.name)
        if known is not None and known[0] is tool.spec:
            return known[1]
        return next((self.of(entry) for entry in session.entries() if entry.tool.name == tool.name), None)


def _annotations(tool: Tool) -> JsonObject:
    hints = tool.spec.annotations
    if hints is None:
        return {}
    said = {
        "title": hints.title,
        "readOnlyHint": hints.read_only,
        "destructiveHint": hints.destructive,
        "idempotentHint": hints.idempotent,
        "openWorldHint": hints.open_world,
    }
    return {name: value for name, value in said.items() if value is not None}


def _meta(entry: ToolEntry) -> JsonObject:
    """What its source said of it, and what MCP has no word for."""
    spec = entry.tool.spec
    theirs: object = cast(JsonObject, spec.metadata.get("mcp") or {}).get("_meta")
    meta: JsonObject = dict(cast(JsonObject, theirs)) if isinstance(theirs, dict) else {}
    if spec.tags:
        meta["anykit/tags"] = list(spec.tags)
    if spec.toolkit is not None:
        meta["anykit/toolkit"] = spec.toolkit
    return meta


def published(schema: JsonObject) -> tuple[JsonObject, bool]:
    """An output schema as it is listed, and whether values go into `result`."""
    root = _resolved_root(schema)
    if root is not None and root.get("type") == "object":
        if "$ref" not in schema:
            return schema, False
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        if rest.keys().isdisjoint(root):
            return {**root, **rest}, False
        return {"type": "object", **schema}, False
    return _wrapped(schema), True


def _resolved_root(schema: JsonObject) -> JsonObject | None:
    """What a chain of references at the root ends at; None where it ends nowhere, or says more on the way."""
    document = Document(schema)
    node = schema
    for _ in range(_HOPS):
        reference: object = node.get("$ref")
        if not isinstance(reference, str):
            return node
        target = document.target(node, reference)
        if not isinstance(target, dict):
            return None
        node = target
    return None


WRAPPED: Final = "x-fastmcp-wrap-result"
"""The keyword by which clients know that the value they want is the one under `result`."""
_KEPT_AT_ROOT: Final = ("$schema", "$defs", "definitions")


def _wrapped(schema: JsonObject) -> JsonObject:
    """An object schema whose `result` is `schema`; its local references still mean what they meant."""
    inner = copy.deepcopy(schema)
    outer: JsonObject = {}
    if "$schema" in inner:
        outer["$schema"] = inner.pop("$schema")
    if "$id" not in inner:  # with one, it stays a document of its own, wherever it stands
        nodes = list(_nodes(inner))
        references = [cast(str, node["$ref"]) for node in nodes if _is_local(node)]
        if all(reference.startswith(("#/$defs/", "#/definitions/")) for reference in references):
            outer |= {key: inner.pop(key) for key in _KEPT_AT_ROOT if key in inner}
        else:
            for node in nodes:
                if _is_local(node):
                    node["$ref"] = f"#/properties/{RESULT}{cast(str, node['$ref'])[1:]}"
    return {**outer, "type": "object", "properties": {RESULT: inner}, "required": [RESULT], WRAPPED: True}


def _is_local(node: JsonObject) -> bool:
    reference: object = node.get("$ref")
    return isinstance(reference, str) and (reference == "#" or reference.startswith("#/"))


def _nodes(schema: JsonObject) -> Iterator[JsonObject]:
    """Every subschema, itself first; a document of its own (`$id`) is not gone into."""
    stack: list[Any] = [schema]
    while stack:
        node = stack.pop()
        if not isinstance(node, dict):
            continue
        fields = cast(JsonObject, node)
        yield fields
        stack += [
            child
            for _, child in subschemas(fields)
            if not (isinstance(child, dict) and isinstance(child.get("$id"), str))
        ]
