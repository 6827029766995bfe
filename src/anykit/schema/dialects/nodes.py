"""Looking at schemas whose parts may be anything: every accessor gives the shape that it promises, empty where it is not."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from anykit.capabilities import Json, JsonObject
from anykit.schema.documents import MANY, NAMED, ONE, Node

JSON_TYPES: Final = ("object", "array", "string", "integer", "number", "boolean", "null")
ANNOTATIONS: Final = frozenset(
    ("description", "title", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment")
)
"""Keywords that refuse no value."""
_KINDS: Final[tuple[tuple[str, frozenset[str]], ...]] = (
    (
        "object",
        frozenset(
            (
                "properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties",
                "maxProperties", "dependentRequired", "dependentSchemas", "unevaluatedProperties",
            )
        ),
    ),
    (
        "array",
        frozenset(
            (
                "items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains",
                "unevaluatedItems",
            )
        ),
    ),
    ("string", frozenset(("minLength", "maxLength", "pattern", "contentEncoding", "contentMediaType"))),
    ("number", frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))),
)  # fmt: skip
KEYWORDS_OF: Final = dict(_KINDS)
"""The keywords that speak of one kind of value only."""


def named(node: JsonObject, keyword: str) -> dict[str, Node]:
    """A keyword's schemas by name."""
    value: object = node.get(keyword)
    return cast("dict[str, Node]", value) if isinstance(value, dict) else {}


def schemas(node: JsonObject, keyword: str) -> list[Node]:
    """A keyword's list of schemas."""
    value: object = node.get(keyword)
    if not isinstance(value, list):
        return []
    return [cast(Node, one) for one in cast("list[object]", value) if isinstance(one, dict | bool)]


def strings(node: JsonObject, keyword: str) -> list[str]:
    """A keyword's list of strings."""
    value: object = node.get(keyword)
    if not isinstance(value, list):
        return []
    return [one for one in cast("list[object]", value) if isinstance(one, str)]


def types_of(node: JsonObject) -> list[str]:
    """The types that a schema names; [] where it names none."""
    value: object = node.get("type")
    if isinstance(value, str):
        return [value]
    return list(dict.fromkeys(strings(node, "type")))


def type_of_value(value: Json) -> str:
    """The JSON type of a value; a whole float is an integer."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case _:
            return "object"


def literals_of(node: JsonObject) -> list[Json] | None:
    """The only values that a schema takes (`const`, `enum`); None where it names none."""
    if "const" in node:
        return [node["const"]]
    value: object = node.get("enum")
    return list(cast("list[Json]", value)) if isinstance(value, list) else None


def same(first: Json, second: Json) -> bool:
    """JSON equality: 1 is 1.0, true is not 1."""
    return _keyed(first) == _keyed(second)


def distinct(values: Sequence[Any]) -> list[Any]:
    """The values, each once, in order."""
    kept: dict[str, Any] = {}
    for value in values:
        kept.setdefault(_keyed(value), value)
    return list(kept.values())


def _keyed(value: Json) -> str:
    return json.dumps(_whole(value), sort_keys=True)


def _whole(value: Json) -> Json:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in cast(JsonObject, value).items()}
    if isinstance(value, list | tuple):
        return [_whole(item) for item in cast("Sequence[Json]", value)]
    return value


def kinds_of(node: JsonObject) -> list[str]:
    """The types of the values that a schema seems to mean: as it says, else as its literals, else as its keywords."""
    if found := types_of(node):
        return found
    values = literals_of(node)
    if values is not None:
        return list(dict.fromkeys(type_of_value(value) for value in values))
    return [kind for kind, keywords in _KINDS if not keywords.isdisjoint(node)]


def is_constrained(node: JsonObject) -> bool:
    """Whether it says anything beyond annotations."""
    return any(key not in ANNOTATIONS and not key.startswith("x-") for key in node)


def rebuilt(node: JsonObject, change: Callable[[Node], Node]) -> JsonObject:
    """A copy in which each schema directly inside is changed; literal data is shared, never looked into."""
    made: JsonObject = {}
    for keyword, value in node.items():
        if keyword in NAMED and isinstance(value, dict):
            made[keyword] = {
                name: change(cast(Node, child)) if isinstance(child, dict | bool) else child
                for name, child in cast(JsonObject, value).items()
            }
        elif keyword in MANY and isinstance(value, list):
            made[keyword] = [
                change(cast(Node, child)) if isinstance(child, dict | bool) else child
                for child in cast("list[object]", value)
            ]
        elif keyword in ONE and isinstance(value, dict | bool):
            made[keyword] = change(cast(Node, value))
        else:
            made[keyword] = value
    return made


DEFS: Final = "#/$defs/"


def definition_named(node: JsonObject) -> str | None:
    """The definition that a schema refers to."""
    reference: object = node.get("$ref")
    return reference.removeprefix(DEFS) if isinstance(reference, str) and reference.startswith(DEFS) else None
