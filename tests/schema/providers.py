"""What model providers take, as validators, and schemas to hold against them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, cast

from hypothesis import strategies as st

from anykit.capabilities import JsonObject
from anykit.schema import Validator, compile_schema
from anykit.schema.documents import subschemas

VECTORS = Path(__file__).parents[1] / "vectors" / "providers"
PROVIDERS = ("openai", "openai-responses", "anthropic", "gemini")


def quirks() -> dict[str, JsonObject]:
    """Schemas with quirks, by what is odd about them."""
    return json.loads((VECTORS / "quirks.json").read_text())["schemas"]


def real_tools() -> list[JsonObject]:
    """What public MCP servers list."""
    servers = json.loads((VECTORS / "real-tools.json").read_text())["servers"]
    return [
        {**tool, "name": f"{server}_{tool['name']}".replace("-", "_")} for server in servers for tool in servers[server]
    ]


@cache
def rules(provider: str, *, strict: bool = False) -> Validator:
    """What the value of the request's `tools` field must be."""
    return compile_schema(json.loads((VECTORS / f"{provider}{'-strict' if strict else ''}.json").read_text()))


def schema_in(tool: JsonObject) -> JsonObject:
    """The schema of a tool in any provider's shape."""
    inner = tool.get("function", tool)
    return inner.get("parameters") or inner.get("input_schema") or {"type": "object", "properties": {}}


def nodes(schema: object) -> list[JsonObject]:
    """A schema and every schema in it."""
    found: list[JsonObject] = []
    stack: list[object] = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            found.append(cast(JsonObject, node))
            stack += [child for _, child in subschemas(cast(JsonObject, node))]
    return found


def of_gemini(node: Any) -> Any:
    """Gemini's dialect as JSON Schema: `nullable` is the one word that JSON Schema lacks."""
    made: JsonObject = {key: value for key, value in node.items() if key not in ("nullable", "propertyOrdering")}
    if "properties" in made:
        made["properties"] = {name: of_gemini(child) for name, child in made["properties"].items()}
    if "items" in made:
        made["items"] = of_gemini(made["items"])
    if "anyOf" in made:
        made["anyOf"] = [of_gemini(child) for child in made["anyOf"]]
    return {"anyOf": [made, {"type": "null"}]} if node.get("nullable") else made


# Small worlds, so that values often fit.

Schemas: TypeAlias = st.SearchStrategy[Any]
_NAMES: st.SearchStrategy[str] = st.sampled_from(["a", "b", "c-d"])
_SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(-1, 3), st.sampled_from([0.5, 2.0]), st.sampled_from(["", "x", "xy"])
)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=2) | st.dictionaries(_NAMES, inner, max_size=3)


VALUES: st.SearchStrategy[Any] = st.recursive(_SCALARS, _containers, max_leaves=6)
ARGUMENTS: st.SearchStrategy[JsonObject] = st.dictionaries(_NAMES, VALUES, max_size=3)
_TYPES = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])
_SMALL = st.integers(0, 2)


def _node(required: Mapping[str, Schemas], optional: Mapping[str, Schemas] | None = None) -> Schemas:
    """Schemas with these keywords, and some of those."""
    return st.fixed_dictionaries(dict(required), optional=dict(optional or {}))


def _typed(kind: str, **optional: Schemas) -> Schemas:
    return _node({"type": st.just(kind)}, optional)


_LEAVES: Schemas = st.one_of(
    st.booleans(),
    _node({}),
    _node({"type": _TYPES}),
    _node({"type": st.lists(_TYPES, min_size=1, max_size=3, unique=True)}),
    _typed("string", minLength=_SMALL, maxLength=_SMALL, pattern=st.just("^x")),
    _typed("integer", minimum=_SMALL, exclusiveMaximum=_SMALL, multipleOf=st.integers(1, 2)),
    _typed("number", exclusiveMinimum=_SMALL, maximum=_SMALL, default=st.just(1)),
    _node({"enum": st.lists(_SCALARS, min_size=1, max_size=3)}),
    _node({"const": VALUES, "description": st.just("just that")}),
    st.just({"type": "string", "description": "a text", "format": "uri", "title": "Text"}),
)


def _closed(node: JsonObject) -> JsonObject:
    """An object that takes what it lists only."""
    required = [name for name in node["required"] if name in node["properties"]]
    return {**node, "required": required, "additionalProperties": False}


def _around(inner: Schemas) -> Schemas:
    properties = st.dictionaries(_NAMES, inner, min_size=1, max_size=3)
    required = st.lists(_NAMES, max_size=2, unique=True)
    some = st.lists(inner, min_size=1, max_size=3)
    open_object = {
        "required": required,
        "additionalProperties": st.just(False) | inner,
        "minProperties": _SMALL,
        "patternProperties": _node({"^c": inner}),
        "dependentRequired": st.just({"a": ["b"]}),
    }
    objects = _node({"type": st.just("object"), "properties": properties}, open_object)
    closed = _node({"type": st.just("object"), "properties": properties, "required": required}).map(_closed)
    arrays = _typed("array", items=inner, prefixItems=some, minItems=_SMALL, uniqueItems=st.booleans(), contains=inner)
    return st.one_of(
        objects,
        closed,
        closed,
        arrays,
        _node({"type": st.just("array"), "items": inner}),
        *(_node({keyword: some}) for keyword in ("anyOf", "oneOf", "allOf")),
        *(_node({keyword: some, "properties": properties}, open_object) for keyword in ("anyOf", "oneOf", "allOf")),
        *(_node({"type": st.just("string"), keyword: inner}) for keyword in ("not", "if")),
    )


_REFERENCES = _node(
    {"$ref": st.sampled_from(["#/$defs/P", "#/$defs/Q~1R"])},
    {"description": st.just("said beside"), "minLength": st.just(1)},
)
_PLAIN: Schemas = st.recursive(_LEAVES, _around, max_leaves=5)
_INSIDE: Schemas = st.recursive(_LEAVES | _REFERENCES, _around, max_leaves=6)
_FORMS: Schemas = st.lists(st.recursive(_node({"type": _TYPES}), _around, max_leaves=4), min_size=1, max_size=2)


@st.composite
def tool_schemas(draw: st.DrawFn) -> JsonObject:
    """Schemas of a tool's arguments, with definitions, one of which refers to itself."""
    optional: dict[str, Schemas] = {
        "required": st.lists(_NAMES, max_size=2, unique=True),
        "additionalProperties": st.just(False),
    }
    if draw(st.booleans()):
        optional |= {"anyOf": _FORMS, "allOf": _FORMS}
    root: JsonObject = draw(_typed("object", **optional))
    recursive: JsonObject = {"type": "object", "properties": {"a": {"$ref": "#/$defs/Q~1R"}, "b": draw(_LEAVES)}}
    members = draw(st.dictionaries(_NAMES, _INSIDE, max_size=3))
    return {**root, "properties": members, "$defs": {"P": draw(_PLAIN), "Q/R": recursive}}
