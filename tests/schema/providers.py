"""What model providers take, as validators, and schemas to hold against them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, cast

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

_NAMES = st.sampled_from(["a", "b", "c-d"])
_TEXTS = st.sampled_from(["", "x", "xy"])
_SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(-1, 3), st.sampled_from([0.5, 2.0]), _TEXTS
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS: st.SearchStrategy[JsonObject] = st.dictionaries(_NAMES, VALUES, max_size=3)
_TYPES = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])
_SMALL = st.integers(0, 2)


def _merged(*parts: st.SearchStrategy[JsonObject]) -> st.SearchStrategy[JsonObject]:
    return st.tuples(*parts).map(lambda found: {key: value for part in found for key, value in part.items()})


def _maybe(**keywords: st.SearchStrategy[Any]) -> st.SearchStrategy[JsonObject]:
    return st.fixed_dictionaries({}, optional=keywords)


_LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.booleans(),
    st.just({}),
    st.builds(lambda kind: {"type": kind}, _TYPES),
    st.builds(lambda kinds: {"type": kinds}, st.lists(_TYPES, min_size=1, max_size=3, unique=True)),
    _merged(st.just({"type": "string"}), _maybe(minLength=_SMALL, maxLength=_SMALL, pattern=st.just("^x"))),
    _merged(
        st.just({"type": "integer"}), _maybe(minimum=_SMALL, exclusiveMaximum=_SMALL, multipleOf=st.integers(1, 2))
    ),
    _merged(st.just({"type": "number"}), _maybe(exclusiveMinimum=_SMALL, maximum=_SMALL, default=st.just(1))),
    st.builds(lambda values: {"enum": values}, st.lists(_SCALARS, min_size=1, max_size=3)),
    st.builds(lambda value: {"const": value, "description": "just that"}, VALUES),
    st.just({"type": "string", "description": "a text", "format": "uri", "title": "Text"}),
)


def _around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    properties = st.dictionaries(_NAMES, inner, min_size=1, max_size=3)
    required = st.lists(_NAMES, max_size=2, unique=True)
    some = st.lists(inner, min_size=1, max_size=3)
    objects = _merged(
        st.builds(lambda members: {"type": "object", "properties": members}, properties),
        _maybe(
            required=required,
            additionalProperties=st.just(False) | inner,
            minProperties=_SMALL,
            patternProperties=st.builds(lambda child: {"^c": child}, inner),
            dependentRequired=st.just({"a": ["b"]}),
        ),
    )
    closed = st.builds(
        lambda members, needed: {
            "type": "object",
            "properties": members,
            "required": [name for name in needed if name in members],
            "additionalProperties": False,
        },
        properties,
        required,
    )
    arrays = _merged(
        st.just({"type": "array"}),
        _maybe(items=inner, prefixItems=some, minItems=_SMALL, uniqueItems=st.booleans(), contains=inner),
    )
    plain_arrays = st.builds(lambda items: {"type": "array", "items": items}, inner)
    unions = st.builds(lambda keyword, forms: {keyword: forms}, st.sampled_from(["anyOf", "oneOf", "allOf"]), some)
    other = st.builds(lambda keyword, child: {"type": "string", keyword: child}, st.sampled_from(["not", "if"]), inner)
    return st.one_of(objects, closed, closed, arrays, plain_arrays, unions, _merged(unions, objects), other)


def _referring(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return inner | st.builds(
        lambda name, more: {"$ref": f"#/$defs/{name}", **more},
        st.sampled_from(["P", "Q/R"]).map(lambda name: name.replace("/", "~1")),
        st.sampled_from([{}, {"description": "said beside"}, {"minLength": 1}]),
    )


_PLAIN = st.recursive(_LEAVES, _around, max_leaves=5)
_INSIDE = st.recursive(_LEAVES | _referring(_LEAVES), _around, max_leaves=6)


@st.composite
def tool_schemas(draw: st.DrawFn) -> JsonObject:
    """Schemas of a tool's arguments, with definitions, one of which refers to itself."""
    members = draw(st.dictionaries(_NAMES, _INSIDE, max_size=3))
    root: JsonObject = {"type": "object", "properties": members}
    root |= draw(
        _maybe(
            required=st.lists(_NAMES, max_size=2, unique=True),
            additionalProperties=st.just(False),
            anyOf=st.lists(_PLAIN.filter(lambda node: isinstance(node, dict)), min_size=1, max_size=2),
            allOf=st.lists(_PLAIN.filter(lambda node: isinstance(node, dict)), min_size=1, max_size=2),
        )
        if draw(st.booleans())
        else _maybe(required=st.lists(_NAMES, max_size=2, unique=True), additionalProperties=st.just(False))
    )
    recursive: JsonObject = {"type": "object", "properties": {"a": {"$ref": "#/$defs/Q~1R"}, "b": draw(_LEAVES)}}
    root["$defs"] = {"P": draw(_PLAIN), "Q/R": recursive}
    return root
