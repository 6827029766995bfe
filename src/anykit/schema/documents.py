"""A schema as a document: where its subschemas stand, and what its references mean.

Literal data (`const`, `enum`, `default`, `examples`) is never taken for a schema, and a property called `$ref` or
`title` is never taken for a keyword.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, TypeAlias, cast
from urllib.parse import unquote, urldefrag, urljoin

import jsonschema_rs

from anykit.capabilities import JsonObject

from .json_values import has_surrogate
from .pointers import Tokens, pointer, step, tokens_of

Node: TypeAlias = JsonObject | bool
"""A schema: an object, or true (anything) or false (nothing)."""

ONE: Final = frozenset(
    (
        "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
        "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
    )
)  # fmt: skip
"""Keywords whose value is a schema."""
MANY: Final = frozenset(("allOf", "anyOf", "items", "oneOf", "prefixItems"))
"""Keywords whose value is a list of schemas."""
NAMED: Final = frozenset(
    ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")
)
"""Keywords whose value maps names to schemas."""
REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


def subschemas(node: object) -> Iterator[tuple[Tokens, Node]]:
    """The schemas directly inside a schema, each with the way to it."""
    if not isinstance(node, dict):
        return
    for keyword, value in cast(JsonObject, node).items():
        if isinstance(value, dict):
            if keyword in NAMED:
                for name, child in cast(JsonObject, value).items():
                    if isinstance(child, dict | bool):
                        yield (keyword, name), cast(Node, child)
            elif keyword in ONE:
                yield (keyword,), cast(JsonObject, value)
        elif isinstance(value, list):
            if keyword in MANY:
                for index, child in enumerate(cast("list[object]", value)):
                    if isinstance(child, dict | bool):
                        yield (keyword, index), cast(Node, child)
        elif isinstance(value, bool) and keyword in ONE:
            yield (keyword,), value


class Document:
    """A schema with its references indexed. It is not copied: whoever makes one must not change it afterwards."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self._base_of: dict[int, str] = {}
        """The base URI of each subschema, by identity."""
        self._place_of: dict[int, Tokens] = {}
        self._resources: dict[str, JsonObject] = {}
        self._anchors: dict[tuple[str, str], JsonObject] = {}
        self._index()

    def _index(self) -> None:
        if not isinstance(self.root, dict):
            return
        self._resources[""] = self.root
        stack: list[tuple[Node, str, Tokens]] = [(self.root, "", ())]
        while stack:
            node, base, place = stack.pop()
            if not isinstance(node, dict) or id(node) in self._base_of:
                continue
            for keyword in ("$id", "id"):
                own = node.get(keyword)
                if not isinstance(own, str):
                    continue
                uri, fragment = urldefrag(_joined(base, own))
                if fragment:  # draft-07 and before: `"$id": "#name"` is an anchor
                    self._anchors.setdefault((base, fragment), node)
                elif uri:
                    base = uri
                    self._resources.setdefault(base, node)
                break
            for keyword in ("$anchor", "$dynamicAnchor"):
                own = node.get(keyword)
                if isinstance(own, str):
                    self._anchors.setdefault((base, own), node)
            self._base_of[id(node)] = base
            self._place_of[id(node)] = place
            stack.extend((child, base, (*place, *tokens)) for tokens, child in subschemas(node))

    def place(self, node: JsonObject) -> str | None:
        """The JSON pointer of a subschema in the document; None where it is none of its subschemas."""
        tokens = self._place_of.get(id(node))
        return None if tokens is None else pointer(tokens)

    def target(self, node: JsonObject, reference: str) -> Node | None:
        """The schema that `reference`, standing in `node`, means; None where it is not in this document."""
        base = self._base_of.get(id(node), "")
        uri, fragment = urldefrag(_joined(base, reference))
        resource = self._resources.get(uri if uri or not base else base)
        if resource is None:
            return None
        fragment = unquote(fragment)
        if not fragment:
            return resource
        if not fragment.startswith("/"):
            return self._anchors.get((uri or base, fragment))
        value: object = resource
        for token in tokens_of(fragment):
            found, value = step(value, token)
            if not found:
                return None
        return cast(Node, value) if isinstance(value, dict | bool) else None

    def targets(self, node: JsonObject) -> Iterator[Node]:
        """Every schema that `node` refers to by a reference of its own, where it is in this document."""
        for keyword in REFERENCES:
            reference = node.get(keyword)
            if isinstance(reference, str) and (found := self.target(node, reference)) is not None:
                yield found

    def closure(self, nodes: Sequence[Node]) -> list[JsonObject]:
        """`nodes` and every schema that says something about the same value: references, allOf, anyOf, oneOf, if."""
        seen: dict[int, JsonObject] = {}
        stack = list(nodes)
        while stack:
            node = stack.pop()
            if not isinstance(node, dict) or id(node) in seen:
                continue
            seen[id(node)] = node
            stack.extend(self.targets(node))
            stack.extend(child for tokens, child in subschemas(node) if tokens[0] in IN_PLACE)
        return list(seen.values())

    def below(self, node: JsonObject, token: str | int) -> Iterator[Node]:
        """The schemas that `node` itself applies to what stands at `token` of its value."""
        if isinstance(token, str):
            yield from self._of_property(node, token)
        else:
            yield from _of_item(node, token)

    def _of_property(self, node: JsonObject, name: str) -> Iterator[Node]:
        known = False
        properties = node.get("properties")
        if isinstance(properties, dict) and name in properties:
            known = True
            yield cast(Node, properties[name])
        patterns = node.get("patternProperties")
        if isinstance(patterns, dict):
            for pattern, child in cast("dict[str, Node]", patterns).items():
                if matches(pattern, name):
                    known = True
                    yield child
        if not known:
            for keyword in ("additionalProperties", "unevaluatedProperties"):
                if isinstance(child := node.get(keyword), dict):
                    yield cast(JsonObject, child)


def _of_item(node: JsonObject, index: int) -> Iterator[Node]:
    first, rest = node.get("prefixItems"), node.get("items")
    if isinstance(rest, list):  # draft-07 and before
        first, rest = cast("list[Node]", rest), node.get("additionalItems")
    if isinstance(first, list) and index < len(cast("list[Node]", first)):
        yield cast("list[Node]", first)[index]
    elif isinstance(rest, dict):
        yield cast(JsonObject, rest)
    for keyword in ("contains", "unevaluatedItems"):
        if isinstance(child := node.get(keyword), dict):
            yield cast(JsonObject, child)


@lru_cache(maxsize=512)
def _pattern(pattern: str) -> jsonschema_rs.Validator | None:
    try:
        return jsonschema_rs.Draft202012Validator({"pattern": pattern})
    except ValueError:
        return None


def is_pattern(pattern: str) -> bool:
    """Whether the validator can read a regular expression."""
    return _pattern(pattern) is not None


def matches(pattern: str, name: str) -> bool:
    """Whether a property of that name falls under `pattern`, by the validator's own, bounded regular expressions."""
    compiled = _pattern(pattern)
    return compiled is not None and not has_surrogate(name) and compiled.is_valid(name)


IN_PLACE: Final = frozenset(
    ("allOf", "anyOf", "dependencies", "dependentSchemas", "else", "if", "not", "oneOf", "then")
)
"""Keywords whose schemas apply to the same value."""


def _joined(base: str, reference: str) -> str:
    try:
        return urljoin(base, reference) if base else reference
    except ValueError:  # no URI: it means nothing in this document
        return "invalid:"
