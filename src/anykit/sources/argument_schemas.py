"""The schema of a tool whose arguments are hidden, fixed, renamed, described in other words, or have another default.

What comes out says no more than the tool itself allows, and leaves nothing out that it does: whatever cannot be said about
the arguments that are left (a `not` about one that is gone, say) is not said, and enforced by the tool's own schema once the
arguments are as the tool knows them.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from anykit.capabilities import Json, JsonObject
from anykit.schema import SchemaError, compile_schema
from anykit.schema.documents import Document, Node, matches, subschemas

HOPS: Final = 16
"""References that are followed from one to the next."""
NAME: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
"""What model providers take as the name of an argument."""
_ORIGINAL: Final = "anykit_original"
_POINTER = re.compile(r"#(/.*)?", re.DOTALL)
_SHARED = re.compile(r"#/(\$defs|definitions)/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ArgumentChange:
    """What becomes of one argument."""

    hide: bool = False
    """Callers do not see it; without a value it is left out."""
    fixed: bool = False
    """It always has `value`, and callers do not see it."""
    value: Json = field(default=None, repr=False)
    filled: bool = False
    """It has `default` where callers do not give it."""
    default: Json = None
    name: str | None = None
    """What callers call it."""
    description: str | None = None
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """Texts in `value` that nobody is shown."""

    @property
    def always(self) -> tuple[bool, Json]:
        """Whether callers have no say in it, and what it is then."""
        if self.fixed:
            return True, self.value
        return (True, self.default) if self.hide and self.filled else (False, None)

    @property
    def gone(self) -> bool:
        """Whether callers do not see it."""
        return self.hide or self.fixed


def argument_names(schema: JsonObject) -> list[str]:
    """The arguments that a schema speaks of, in order, wherever in it."""
    found: dict[str, None] = {}
    for node in Document(schema).closure([schema]):
        properties: object = node.get("properties")
        if isinstance(properties, dict):
            found.update(dict.fromkeys(cast("dict[str, object]", properties)))
    return list(found)


def required_names(schema: JsonObject) -> set[str]:
    """The arguments without which nothing fits."""
    document = Document(schema)
    found: set[str] = set()
    stack: list[tuple[object, int]] = [(schema, 0)]
    while stack:
        node, hops = stack.pop()
        if not isinstance(node, dict) or hops > HOPS:
            continue
        fields = cast(JsonObject, node)
        found.update(_texts(fields.get("required")))
        stack += [(target, hops + 1) for target in document.targets(fields)]
        parts: object = fields.get("allOf")
        stack += [(part, hops + 1) for part in cast("list[object]", parts)] if isinstance(parts, list) else []
    return found


def pattern_of(schema: JsonObject, name: str) -> str | None:
    """The pattern of `patternProperties` under which an argument of that name would fall."""
    for node in Document(schema).closure([schema]):
        patterns: object = node.get("patternProperties")
        if isinstance(patterns, dict):
            for pattern in cast("dict[str, object]", patterns):
                if matches(pattern, name):
                    return pattern
    return None


def rearranged(schema: JsonObject, changes: Mapping[str, ArgumentChange]) -> JsonObject:
    """The schema that callers see. Raises `SchemaError` where none can be made. `schema` is not changed."""
    return _Rewriter(copy.deepcopy(schema), changes).schema()


class _Rewriter:
    def __init__(self, schema: JsonObject, changes: Mapping[str, ArgumentChange]) -> None:
        self._root = schema
        self._document = Document(schema)
        self._changes = changes
        self._gone = {name for name, change in changes.items() if change.gone}
        self._given = {name for name, change in changes.items() if change.always[0] or change.filled}
        """Those that are there whether callers give them or not."""
        self._names = {name: change.name for name, change in changes.items() if change.name}
        self._loose = self._gone | self._given
        self._old = "definitions" in schema and "$defs" not in schema
        self._uses_original = False

    def schema(self) -> JsonObject:
        new = cast(JsonObject, self._said(self._root, 0))
        for keyword in ("$defs", "definitions"):
            if keyword in self._root:
                new[keyword] = copy.deepcopy(self._root[keyword])
        if new.get("type") is None:
            new = {"type": "object", **new}
        self._point(new)
        if self._uses_original:
            kept = {key: copy.deepcopy(value) for key, value in self._root.items() if key not in _ROOT_ONLY}
            self._point(kept)
            place = "definitions" if self._old else "$defs"
            new[place] = {**cast(JsonObject, new.get(place, {})), _ORIGINAL: kept}
        compile_schema(new)
        return new

    # what is said of the arguments

    def _said(self, node: Node, hops: int) -> Node:
        """The same of the arguments as callers give them."""
        if isinstance(node, bool):
            return node
        out: JsonObject = {}
        needed: list[str] = []
        more: list[Node] = []
        for keyword, value in node.items():
            match keyword:
                case "$defs" | "definitions":
                    pass
                case "properties" if isinstance(value, dict):
                    out[keyword] = self._properties(cast(JsonObject, value))
                case "required":
                    needed += self._mapped(_texts(value))
                case "dependentRequired" | "dependentSchemas" | "dependencies" if isinstance(value, dict):
                    self._dependents(keyword, cast(JsonObject, value), hops, out, needed, more)
                case "allOf" if isinstance(value, list):
                    more += [self._said(one, hops) for one in cast("list[Node]", value)]
                case "anyOf" | "oneOf" if isinstance(value, list):
                    self._choice(keyword, cast("list[Node]", value), hops, out, more)
                case "not" | "if" | "then" | "else":
                    if not self._speaks(node.get(part) for part in _group_of(keyword)):
                        out[keyword] = self._said(cast(Node, value), hops)
                case "minProperties" if isinstance(value, int):
                    if value > len(self._given):
                        out[keyword] = value - len(self._given)
                case "maxProperties" if isinstance(value, int):
                    out[keyword] = max(value - sum(change.always[0] for change in self._changes.values()), 0)
                case "propertyNames":
                    if not self._names:
                        out[keyword] = copy.deepcopy(value)
                case "const" | "enum":
                    pass
                case "default":
                    out[keyword] = self._example(value)
                case "examples" if isinstance(value, list):
                    out[keyword] = [self._example(one) for one in cast("list[Json]", value)]
                case "$ref" if isinstance(value, str):
                    self._reference(node, value, hops, out, more)
                case _:
                    out[keyword] = copy.deepcopy(value)
        if needed:
            out["required"] = list(dict.fromkeys([*out.get("required", []), *needed]))
        if more:
            out["allOf"] = [*out.get("allOf", []), *more]
        return out

    def _properties(self, properties: JsonObject) -> JsonObject:
        out: JsonObject = {}
        for name, part in properties.items():
            if name in self._gone:
                continue
            said = copy.deepcopy(part)
            change = self._changes.get(name)
            if change is not None and (change.description is not None or change.filled):
                words: JsonObject = {}
                if change.description is not None:
                    words["description"] = change.description
                if change.filled:
                    words["default"] = copy.deepcopy(change.default)
                plain: JsonObject = {} if said else {"not": {}}
                said = {**(cast(JsonObject, said) if isinstance(said, dict) else plain), **words}
            out[self._names.get(name, name)] = said
        return out

    def _mapped(self, names: Iterable[str]) -> list[str]:
        """Names that callers must give, as they call them."""
        return [self._names.get(name, name) for name in names if name not in self._loose]

    def _dependents(
        self, keyword: str, value: JsonObject, hops: int, out: JsonObject, needed: list[str], more: list[Node]
    ) -> None:
        kept: JsonObject = {}
        for name, dependent in value.items():
            names = _texts(cast(Json, dependent)) if isinstance(dependent, list) else None
            if name in self._given:
                if names is not None:
                    needed += self._mapped(names)
                else:
                    more.append(self._said(cast(Node, dependent), hops))
            elif name not in self._gone:
                said = self._mapped(names) if names is not None else self._said(cast(Node, dependent), hops)
                kept[self._names.get(name, name)] = said
        if kept:
            out[keyword] = kept

    def _choice(self, keyword: str, branches: list[Node], hops: int, out: JsonObject, more: list[Node]) -> None:
        left = [branch for branch in branches if self._possible(branch)] or branches
        # Branches that differed in what is gone may fit together now.
        word = "anyOf" if keyword == "oneOf" and self._speaks(branches) else keyword
        said = [self._said(branch, hops) for branch in left]
        if word in out:
            more.append({word: said})
        else:
            out[word] = said

    def _possible(self, branch: Node) -> bool:
        """Whether a branch can hold, with the arguments that callers have no say in."""
        if not isinstance(branch, dict):
            return branch
        for node in [branch, *(one for one in self._document.targets(branch) if isinstance(one, dict))]:
            properties: object = node.get("properties")
            if not isinstance(properties, dict):
                continue
            for name, change in self._changes.items():
                always, value = change.always
                if always and name in properties and not self._fits(cast(JsonObject, properties)[name], value):
                    return False
        return True

    def _fits(self, part: Json, value: Json) -> bool:
        shared = {key: self._root[key] for key in ("$schema", "$defs", "definitions") if key in self._root}
        try:
            return compile_schema({**shared, "allOf": [part]}).is_valid(value)
        except SchemaError:
            return True

    def _reference(self, node: JsonObject, reference: str, hops: int, out: JsonObject, more: list[Node]) -> None:
        target = self._document.target(node, reference)
        if target is None or hops >= HOPS or not self._speaks([target], of=self._changes):
            out["$ref"] = reference
            return
        said = self._said(target, hops + 1)
        if (len(node) == 1 and isinstance(said, dict)) or (isinstance(said, dict) and said.keys().isdisjoint(node)):
            out.update(said)
        else:
            more.append(said)

    def _speaks(self, nodes: Iterable[object], of: Iterable[str] | None = None) -> bool:
        """Whether schemas speak of arguments that are gone or given, or of those of `of`."""
        names = self._loose if of is None else set(of)
        for node in self._document.closure([cast(Node, one) for one in nodes if isinstance(one, dict)]):
            for keyword in _SPEAKING:
                said: object = node.get(keyword)
                if isinstance(said, dict | list) and not names.isdisjoint(
                    name for name in cast("Iterable[object]", said) if isinstance(name, str)
                ):
                    return True
        return False

    def _example(self, value: Json) -> Json:
        if not isinstance(value, dict):
            return copy.deepcopy(value)
        fields = cast(JsonObject, value)
        return {
            self._names.get(name, name): copy.deepcopy(item) for name, item in fields.items() if name not in self._gone
        }

    # references to what was changed

    def _point(self, schema: JsonObject) -> None:
        """Let references into the schema as it was mean what they meant."""
        for node in _all(schema):
            reference = node.get("$ref")
            if isinstance(reference, str) and _POINTER.fullmatch(reference) and not _SHARED.match(reference):
                place = "definitions" if self._old else "$defs"
                node["$ref"] = f"#/{place}/{_ORIGINAL}{reference[1:]}"
                self._uses_original = True


_ROOT_ONLY: Final = frozenset({"$schema", "$id", "$defs", "definitions"})
_SPEAKING: Final = ("properties", "required", "dependentRequired", "dependentSchemas", "dependencies")


def _group_of(keyword: str) -> tuple[str, ...]:
    return ("not",) if keyword == "not" else ("if", "then", "else")


def _all(schema: JsonObject) -> Iterator[JsonObject]:
    stack: list[Any] = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield cast(JsonObject, node)
            stack += [child for _, child in subschemas(cast(JsonObject, node))]


def _texts(value: object) -> list[str]:
    return [one for one in cast("list[object]", value) if isinstance(one, str)] if isinstance(value, list) else []
