"""Two schemas of one value as one: what fits both. What cannot be put together stays in `allOf`, so nothing is lost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from anykit.capabilities import Json, JsonObject
from anykit.schema.documents import Node

from .nodes import ANNOTATIONS, definition_named, literals_of, named, same, schemas, type_of_value, types_of

_LARGER: Final = frozenset(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"))
_SMALLER: Final = frozenset(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"))
_MEMBERS: Final = ("properties", "patternProperties", "additionalProperties")
_ITEMS: Final = ("prefixItems", "items")
_TOGETHER: Final = (("if", "then", "else"), ("contains", "minContains", "maxContains"))
"""Keywords that mean something together only."""
_OWN: Final = frozenset(("type", "const", "enum", *_MEMBERS, *_ITEMS, *(key for group in _TOGETHER for key in group)))


class Merger:
    """Merges schemas that refer to one set of definitions."""

    def __init__(self, defs: Mapping[str, Node]) -> None:
        self.defs = defs

    def expanded(self, node: Node, around: tuple[str, ...] = ()) -> Node:
        """`node` with its own reference followed and its `allOf` merged, as far as that can be; nested ones stay."""
        if isinstance(node, bool) or ("$ref" not in node and "allOf" not in node):
            return node
        made: Node = {key: value for key, value in node.items() if key not in ("$ref", "allOf")}
        name = definition_named(node)
        if name is not None and name not in around:
            made = self.meet(made, self.expanded(self.defs.get(name, True), (*around, name)))
        for child in schemas(node, "allOf"):
            made = self.meet(made, self.expanded(child, around))
        return made

    def meet(self, first: Node, second: Node) -> Node:
        """What fits both; the first's annotations win."""
        if first is False or second is False:
            return False
        if first is True or second is True:
            return second if first is True else first
        return first if first == second else self._both(first, second)

    def _inside(self, first: Node, second: Node) -> Node:
        """The same for a place inside: a reference there is followed when it is looked at, not now."""
        if not first or not second or first == second:  # false, or {}
            return False if first is False or second is False else first or second
        if any(isinstance(node, dict) and ("$ref" in node or "allOf" in node) for node in (first, second)):
            if first is True or second is True:
                return second if first is True else first
            return {"allOf": [first, second]}
        return self.meet(first, second)

    def _both(self, first: JsonObject, second: JsonObject) -> Node:
        made: JsonObject = {}
        apart: JsonObject = {}
        kinds = _kinds(first, second)
        values = _literals(first, second)
        if values is not None and kinds:
            values = [value for value in values if _is_of(value, kinds)]
        if kinds == [] or values == []:
            return False
        for key in (*first, *(key for key in second if key not in first)):
            mine, theirs = key in first, key in second
            if key == "type" and kinds:
                made[key] = kinds[0] if len(kinds) == 1 else kinds
            elif key in ("const", "enum") and values is not None:
                if len(values) == 1:
                    made["const"] = values[0]
                else:
                    made["enum"] = values
            elif key in _OWN:
                continue
            elif not mine or not theirs or key in ANNOTATIONS or same(first[key], second[key]):
                made[key] = first[key] if mine else second[key]
            else:
                found, value = _together(key, first[key], second[key])
                made[key] = value if found else first[key]
                if not found:
                    apart[key] = second[key]
        self._members(first, second, made, apart)
        self._items(first, second, made, apart)
        for group in _TOGETHER:
            _group(group, first, second, made, apart)
        if apart:
            made["allOf"] = [*schemas(made, "allOf"), apart]
        return made

    def _members(self, first: JsonObject, second: JsonObject, made: JsonObject, apart: JsonObject) -> None:
        patterned = any("patternProperties" in node for node in (first, second))
        rest = [cast(Node, node.get("additionalProperties", True)) for node in (first, second)]
        open_ended = all(one is True or one == {} for one in rest)
        if not _in_both(_MEMBERS, first, second) or (patterned and not open_ended):
            _group(_MEMBERS, first, second, made, apart)
            return
        own, other = named(first, "properties"), named(second, "properties")
        closed = self._inside(rest[0], rest[1])
        properties: dict[str, Node] = {}
        for name in dict.fromkeys((*own, *other)):
            member = self._inside(own.get(name, rest[0]), other.get(name, rest[1]))
            if member is not False or closed is not False:
                properties[name] = member
        made["properties"] = properties
        if patterned:
            patterns = dict(named(first, "patternProperties"))
            for pattern, child in named(second, "patternProperties").items():
                patterns[pattern] = self._inside(patterns.get(pattern, True), child)
            made["patternProperties"] = patterns
        if any("additionalProperties" in node for node in (first, second)):
            made["additionalProperties"] = closed

    def _items(self, first: JsonObject, second: JsonObject, made: JsonObject, apart: JsonObject) -> None:
        if "items" in first and "items" in second and not _has("prefixItems", first, second):
            made["items"] = self._inside(cast(Node, first["items"]), cast(Node, second["items"]))
        else:
            _group(_ITEMS, first, second, made, apart)


def _group(group: Iterable[str], first: JsonObject, second: JsonObject, made: JsonObject, apart: JsonObject) -> None:
    """Keywords that mean something together only: one side's, and the other's apart where it says anything else."""
    mine = {key: first[key] for key in group if key in first}
    theirs = {key: second[key] for key in group if key in second}
    made.update(mine or theirs)
    if mine and theirs and mine != theirs:
        apart.update(theirs)


def _in_both(group: Iterable[str], first: JsonObject, second: JsonObject) -> bool:
    return any(key in first for key in group) and any(key in second for key in group)


def _has(key: str, *nodes: JsonObject) -> bool:
    return any(key in node for node in nodes)


def _together(key: str, first: Any, second: Any) -> tuple[bool, Any]:
    """Whether two values of a keyword can be said as one, and which."""
    if key in _LARGER:
        return True, max(first, second)
    if key in _SMALLER:
        return True, min(first, second)
    match key:
        case "required":
            return True, list(dict.fromkeys([*first, *second]))
        case "dependentRequired":
            return True, {name: [*first.get(name, ()), *second.get(name, ())] for name in {**first, **second}}
        case "uniqueItems":
            return True, bool(first or second)
        case "multipleOf" if isinstance(first, int) and isinstance(second, int):
            return True, math.lcm(first, second)
        case "allOf":
            return True, cast("list[Node]", first) + cast("list[Node]", second)
        case "format":
            return True, first
        case _:
            return not _asserts(key), first


def _asserts(key: str) -> bool:
    """Whether a keyword can refuse a value."""
    return key in (
        *("multipleOf", "pattern", "anyOf", "oneOf", "not", "propertyNames", "dependentSchemas"),
        *("unevaluatedItems", "unevaluatedProperties"),
    )


def _kinds(first: JsonObject, second: JsonObject) -> list[str] | None:
    """The types that fit both; None where neither says one."""
    mine, theirs = types_of(first), types_of(second)
    if not mine or not theirs:
        return mine or theirs or None
    whole = ("integer" in mine and "number" in theirs) or ("number" in mine and "integer" in theirs)
    return list(dict.fromkeys([*(kind for kind in mine if kind in theirs), *(["integer"] if whole else [])]))


def _literals(first: JsonObject, second: JsonObject) -> list[Json] | None:
    mine, theirs = literals_of(first), literals_of(second)
    if mine is None or theirs is None:
        return mine if theirs is None else theirs
    return [value for value in mine if any(same(value, other) for other in theirs)]


def _is_of(value: Json, kinds: list[str]) -> bool:
    kind = type_of_value(value)
    return kind in kinds or (kind == "integer" and "number" in kinds)
