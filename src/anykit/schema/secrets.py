"""Which fields are secret, and how they are shown, kept and never shown.

Secret is a schema with `writeOnly: true`, `format: password` (pydantic's `SecretStr` says both), or a true `sensitive`,
`isSecret` or `x-secret`; everything below it is secret too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias, TypeVar, cast

from anykit.capabilities import Json, JsonObject

from .documents import Document, Node, subschemas
from .json_values import MAX_DEPTH, is_json
from .pointers import Tokens, pointer

T = TypeVar("T")

FLAGS: Final = ("writeOnly", "sensitive", "isSecret", "x-secret")
ANY: Final = "*"
"""Stands in a secret pointer for every item, or every name that the schema does not list."""
MAX_VISITS: Final = 10_000
"""Places that are looked at for secret pointers; references may make a schema larger than it is."""

Nodes: TypeAlias = list[JsonObject]
"""Everything that a schema says about one place."""


def is_secret(node: JsonObject) -> bool:
    """Whether this schema itself says so."""
    return node.get("format") == "password" or any(node.get(flag) is True for flag in FLAGS)


class Secrets:
    """The secret places of one schema's instances."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.any = _mentions_secret(document)
        """False where the schema has no secret at all."""

    def root(self) -> Nodes:
        """What the schema says about the whole."""
        return self._document.closure([self._document.root])

    def below(self, nodes: Nodes, token: str | int) -> Nodes:
        """What it says about what stands at `token`."""
        return self._document.closure([child for node in nodes for child in self._document.below(node, token)])

    def prefix(self, tokens: Tokens) -> Tokens | None:
        """The outermost secret place on the way to `tokens`; None where there is none."""
        if not self.any:
            return None
        nodes = self.root()
        for depth, token in enumerate(tokens):
            if any(is_secret(node) for node in nodes):
                return tokens[:depth]
            nodes = self.below(nodes, token)
        return tokens if any(is_secret(node) for node in nodes) else None

    def redacted(self, value: Json) -> Json:
        """A copy of `value` in which every secret is `{"set": true}`, or `{"set": false}` where it is null or empty."""
        return self._redact(self.root(), value)

    def _redact(self, nodes: Nodes, value: Json) -> Json:
        if any(is_secret(node) for node in nodes):
            return {"set": value is not None and value != ""}
        if isinstance(value, dict):
            fields = cast(JsonObject, value)
            return {name: self._redact(self.below(nodes, name), item) for name, item in fields.items()}
        if isinstance(value, list | tuple):
            items = cast("Sequence[Any]", value)
            return [self._redact(self.below(nodes, index), item) for index, item in enumerate(items)]
        return value

    def texts(self, value: Json) -> Iterator[str]:
        """Every text that is secret in `value`."""
        yield from self._texts(self.root(), value, False)

    def _texts(self, nodes: Nodes, value: Json, secret: bool) -> Iterator[str]:
        secret = secret or any(is_secret(node) for node in nodes)
        if isinstance(value, dict):
            for name, item in cast(JsonObject, value).items():
                yield from self._texts(self.below(nodes, name), item, secret)
        elif isinstance(value, list | tuple):
            for index, item in enumerate(cast("Sequence[Any]", value)):
                yield from self._texts(self.below(nodes, index), item, secret)
        elif secret and value is not None and not isinstance(value, bool) and value != "":
            yield str(value)

    def merged(self, new: Json, old: Json) -> Json:
        """`new` with the secrets of `old` where it says to keep them."""
        value = self._merge(self.root(), new, old)
        return None if value is _GONE else value

    def _merge(self, nodes: Nodes, new: Json, old: Json) -> Json:
        if any(is_secret(node) for node in nodes):
            return new if not says_keep(new) else _GONE if old is None else _copied(old)
        if isinstance(new, dict):
            before = cast(JsonObject, old) if isinstance(old, dict) else {}
            merged = {
                name: self._merge(self.below(nodes, name), item, before.get(name))
                for name, item in cast(JsonObject, new).items()
            }
            return {name: item for name, item in merged.items() if item is not _GONE}
        if isinstance(new, list | tuple):
            items = cast("Sequence[Any]", new)
            earlier = cast("list[Any]", old) if isinstance(old, list) else []
            pairs = zip(items, self._partners(nodes, items, earlier), strict=True)
            merged = [self._merge(self.below(nodes, index), item, mate) for index, (item, mate) in enumerate(pairs)]
            return [item for item in merged if item is not _GONE]
        return new

    def _partners(self, nodes: Nodes, new: Sequence[Json], old: list[Json]) -> list[Json]:
        """For each item the old item that it was: the one that alone is equal but for the secrets, else the one in its place.

        The place counts only where nothing was added or removed: else a removed item's secret would go to its neighbour.
        """
        if not old:
            return [None] * len(new)
        was = [self._redact(self.below(nodes, index), item) for index, item in enumerate(old)]
        now = [
            self._redact(self.below(nodes, index), self._kept(self.below(nodes, index), item))
            for index, item in enumerate(new)
        ]
        same_length = len(new) == len(old)
        mates: dict[int, int] = {}
        if same_length:
            mates = {index: index for index in range(len(new)) if now[index] == was[index]}
        for index in range(len(new)):
            equal = [other for other in range(len(old)) if was[other] == now[index]]
            if index not in mates and len(equal) == 1 and equal[0] not in mates.values():
                mates[index] = equal[0]
        if same_length:
            for index in range(len(new)):
                if index not in mates and index not in mates.values():
                    mates[index] = index
        return [old[mates[index]] if index in mates else None for index in range(len(new))]

    def _kept(self, nodes: Nodes, value: Json) -> Json:
        """`value` with each secret that says "keep" as if it were set, for comparing."""
        if any(is_secret(node) for node in nodes):
            return "set" if says_keep(value) else value
        if isinstance(value, dict):
            return {name: self._kept(self.below(nodes, name), item) for name, item in cast(JsonObject, value).items()}
        if isinstance(value, list | tuple):
            items = cast("Sequence[Any]", value)
            return [self._kept(self.below(nodes, index), item) for index, item in enumerate(items)]
        return value


_GONE: Final = object()
"""A secret that says "keep" where nothing was kept: it is left out, so that a mask never becomes a value."""


def _mentions_secret(document: Document) -> bool:
    stack: list[Node] = [document.root]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if not isinstance(node, dict) or id(node) in seen:
            continue
        seen.add(id(node))
        if is_secret(node):
            return True
        stack.extend(child for _, child in subschemas(node))
        stack.extend(document.targets(node))
    return False


def says_keep(value: Json) -> bool:
    """Whether a submitted secret means "as it was": `{"set": true}` (or false), a mask of asterisks, or nothing."""
    if isinstance(value, str):
        return not value.strip("*")
    return isinstance(value, dict) and len(cast(JsonObject, value)) == 1 and "set" in value


def _copied(value: T) -> T:
    if isinstance(value, dict):
        return cast(T, {name: _copied(item) for name, item in cast(JsonObject, value).items()})
    if isinstance(value, list):
        return cast(T, [_copied(item) for item in cast("list[Any]", value)])
    return value


def secret_pointers(schema: Node) -> list[str]:
    """JSON pointers of the secret places of an instance, in order of the schema.

    `*` stands for every item of an array and for every name under `additionalProperties`; a pattern of
    `patternProperties` stands as it is. A schema that refers to itself is followed once around.
    """
    walk = _Enumeration(Document(schema))
    walk.visit([walk.document.root], (), ())
    return list(walk.found)


class _Enumeration:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.found: dict[str, None] = {}
        self.visits = 0

    def visit(self, nodes: list[Node], path: Tokens, above: tuple[int, ...]) -> None:
        self.visits += 1
        if self.visits > MAX_VISITS or len(path) > MAX_DEPTH:
            return
        here = self.document.closure(nodes)
        if any(is_secret(node) for node in here):
            self.found[pointer(path)] = None
            return
        around = (*above, *(id(node) for node in here))
        for name, below in _children([node for node in here if id(node) not in above]).items():
            self.visit(below, (*path, name), around)


def _children(nodes: Nodes) -> dict[str, list[Node]]:
    """The schemas one level down, by name, index or `*`."""
    children: dict[str, list[Node]] = {}
    for node in nodes:
        for tokens, child in subschemas(node):
            match tokens:
                case ("properties" | "patternProperties", str(name)):
                    children.setdefault(name, []).append(child)
                case ("prefixItems" | "items", int(index)):
                    children.setdefault(str(index), []).append(child)
                case ("items" | "additionalItems" | "additionalProperties" | "unevaluatedItems" | "contains",) | (
                    "unevaluatedProperties",
                ):
                    children.setdefault(ANY, []).append(child)
                case _:
                    pass
    return children


def redact(schema: Node, value: Json) -> Json:
    """A copy of `value` that may be shown: each secret is `{"set": true}`, or `{"set": false}` where it is empty.

    What is no JSON, or nests beyond the bound, is not shown at all: None.
    """
    if not is_json(value):
        return None
    return Secrets(Document(schema)).redacted(value)


def secret_texts(schema: Node, value: Json) -> frozenset[str]:
    """Every secret of `value`, as text: what must not turn up in anything that is shown."""
    if not is_json(value):
        return frozenset()
    secrets = Secrets(Document(schema))
    return frozenset(secrets.texts(value)) if secrets.any else frozenset()


def merge_masked(schema: Node, new: Json, old: Json) -> Json:
    """`new` with the secrets of `old` where a secret field says "as it was"; neither is changed.

    That is `{"set": true}`, a mask of asterisks, or the empty string. Where `old` (None: nothing is stored) has no such
    secret, the field is left out. A secret that `new` does not mention, or has as null, is not kept. What is no JSON is handed back, for validation to refuse.
    """
    if not is_json(new):
        return new
    return Secrets(Document(schema)).merged(new, old)
