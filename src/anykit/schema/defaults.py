"""Fills in the defaults that a schema gives, in a copy: neither the caller's value nor the schema is touched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar, cast

from anykit.capabilities import Json, JsonObject

from .documents import Document, Node, matches, subschemas
from .errors import SchemaError

T = TypeVar("T")

Fits: TypeAlias = Callable[[Node, Json], bool]

MAX_FILLED: Final = 10_000
"""Defaults that are put into one value; a schema whose defaults lead to each other would never end."""
MAX_STEPS: Final = 200_000


def copied(value: T) -> T:
    """A JSON value with containers of its own; tuples become lists."""
    if isinstance(value, dict):
        return cast(T, {name: copied(item) for name, item in cast(JsonObject, value).items()})
    if isinstance(value, list | tuple):
        return cast(T, [copied(item) for item in cast("Sequence[Any]", value)])
    return value


class Defaults:
    """The defaults of one schema. `fits` says whether a value fits one of its subschemas, to choose between forms."""

    def __init__(self, document: Document, fits: Fits) -> None:
        self._document = document
        self._fits = fits
        self.any = _mentions_default(document)
        """False where the schema gives none."""

    def filled(self, instance: T) -> T:
        """A copy of `instance` with every default that applies. Raises `SchemaError` where they never end."""
        value = copied(instance)
        if self.any:
            _Filling(self._document, self._fits).fill(self._document.root, value, ())
        return value


class _Filling:
    def __init__(self, document: Document, fits: Fits) -> None:
        self._document = document
        self._fits = fits
        self._filled = 0
        self._steps = 0

    def fill(self, node: Node, value: Json, around: tuple[int, ...]) -> None:
        """Fill `value` in place by all that `node` says; `around` are the schemas whose default `value` came from."""
        self._fill(node, value, around, set())

    def _fill(self, node: Node, value: Json, around: tuple[int, ...], here: set[int]) -> None:
        if not isinstance(node, dict) or not isinstance(value, dict | list) or id(node) in here:
            return
        here.add(id(node))
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise SchemaError("the schema's defaults need too many steps")
        for target in self._document.targets(node):
            self._fill(target, value, around, here)
        for child in _listed(node, "allOf"):
            self._fill(child, value, around, here)
        if isinstance(value, dict):
            self._object(node, cast(JsonObject, value), around)
        else:
            self._array(node, cast("list[Any]", value), around)
        for keyword in ("anyOf", "oneOf"):
            self._one_of(_listed(node, keyword), value, around, here)
        if "if" in node:
            chosen = node.get("then" if self._fits(cast(Node, node["if"]), value) else "else")
            self._fill(cast(Node, chosen), value, around, here)

    def _object(self, node: JsonObject, value: JsonObject, around: tuple[int, ...]) -> None:
        properties = _named(node, "properties")
        for name, child in properties.items():
            if name in value:
                self.fill(child, value[name], around)
                continue
            # A default inside a value that came from the same default would go on for ever.
            found, default, origin = self._default_of(child)
            if found and id(origin) not in around:
                self._filled += 1
                if self._filled > MAX_FILLED:
                    raise SchemaError(f"the schema's defaults lead to more than {MAX_FILLED} values")
                value[name] = copied(default)
                self.fill(child, value[name], (*around, id(origin)))
        patterns = _named(node, "patternProperties")
        rest = node.get("additionalProperties")
        if not patterns and not isinstance(rest, dict):
            return
        for name, item in value.items():
            under = [child for pattern, child in patterns.items() if matches(pattern, name)]
            for child in under:
                self.fill(child, item, around)
            if not under and name not in properties:
                self.fill(cast(Node, rest), item, around)

    def _array(self, node: JsonObject, value: list[Json], around: tuple[int, ...]) -> None:
        first = _listed(node, "prefixItems") or _listed(node, "items")
        rest = node.get("additionalItems") if isinstance(node.get("items"), list) else node.get("items")
        for index, item in enumerate(value):
            self.fill(first[index] if index < len(first) else cast(Node, rest), item, around)

    def _one_of(self, forms: Sequence[Node], value: Json, around: tuple[int, ...], here: set[int]) -> None:
        """By the first form that fits once its own defaults are in."""
        for form in forms:
            if not _may_be(form, value):
                continue
            attempt = copied(value)
            self._fill(form, attempt, around, set(here))
            if self._fits(form, attempt):
                if isinstance(value, dict):
                    cast(JsonObject, value).update(attempt)
                else:
                    cast("list[Any]", value)[:] = attempt
                return

    def _default_of(self, node: Node) -> tuple[bool, Json, Node]:
        """Whether a missing property has a default, which one, and the schema that gives it."""
        seen: set[int] = set()
        stack = [node]
        while stack:
            here = stack.pop(0)
            if not isinstance(here, dict) or id(here) in seen:
                continue
            seen.add(id(here))
            if "default" in here:
                return True, here["default"], here
            stack += [*self._document.targets(here), *_listed(here, "allOf")]
        return False, None, False


def _listed(node: JsonObject, keyword: str) -> list[Node]:
    value: object = node.get(keyword)
    return cast("list[Node]", value) if isinstance(value, list) else []


def _named(node: JsonObject, keyword: str) -> dict[str, Node]:
    value: object = node.get(keyword)
    return cast("dict[str, Node]", value) if isinstance(value, dict) else {}


def _may_be(form: Node, value: Json) -> bool:
    """False where the form's type says that it is another kind of value."""
    if isinstance(form, bool) or "type" not in form:
        return True
    types: object = form["type"]
    mine = "object" if isinstance(value, dict) else "array"
    return mine in cast("list[str]", types) if isinstance(types, list) else types == mine


def _mentions_default(document: Document) -> bool:
    stack: list[Node] = [document.root]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if not isinstance(node, dict) or id(node) in seen:
            continue
        seen.add(id(node))
        if "default" in node:
            return True
        stack.extend(child for _, child in subschemas(node))
        stack.extend(document.targets(node))
    return False
