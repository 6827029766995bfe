"""Any draft's schema as draft 2020-12, with every reference into `$defs` of its own.

Tuples become `prefixItems`, a boolean `exclusiveMinimum` a number, `dependencies` the two that replaced it; anchors, ids,
`definitions` and pointers to anywhere (`#/properties/x`, `#/definitions/a~1b`, `#`) become `#/$defs/<name>`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urldefrag

from anykit.capabilities import JsonObject
from anykit.schema.documents import REFERENCES, Document, Node
from anykit.schema.pointers import tokens_of
from anykit.schema.validation import compile_schema

from .nodes import ANNOTATIONS, DEFS, rebuilt, schemas

NEWEST: Final = "https://json-schema.org/draft/2020-12/schema"
_YEARS: Final = {"draft-04": 4, "draft-06": 6, "draft-07": 7, "2019-09": 2019, "2020-12": 2020}
_GONE: Final = frozenset(
    ("$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$defs", "definitions")
)
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_.-]")
_NAME_LENGTH: Final = 64


@dataclass(frozen=True, slots=True)
class Modern:
    """A schema as draft 2020-12."""

    root: Node
    defs: dict[str, Node]
    places: dict[str, str]
    """Where each definition stands in the original: JSON pointers."""
    label: str | None
    """`$schema`, where there was one and it still holds."""


def modern(schema: JsonObject) -> Modern:
    """`schema` as draft 2020-12; it is not changed. Raises `SchemaError` where it is no schema."""
    compiled = compile_schema(schema).schema
    dialect = str(compiled.get("$schema", "")) if isinstance(compiled, dict) else ""
    year = next((year for name, year in _YEARS.items() if name in dialect), 2020)
    reading = _Reading(schema, year)
    root = reading.convert(schema)
    reading.finish()
    label: object = schema.get("$schema")
    if isinstance(label, str):
        label = NEWEST if reading.rewritten else label
    return Modern(root, reading.defs, reading.places, label if isinstance(label, str) else None)


class _Reading:
    def __init__(self, schema: JsonObject, year: int) -> None:
        self._document = Document(schema)
        self._year = year
        self._names: dict[int, str] = {}
        self._waiting: list[tuple[str, JsonObject]] = []
        self.defs: dict[str, Node] = {}
        self.places: dict[str, str] = {}
        self.rewritten = False

    def finish(self) -> None:
        """Convert every definition that something refers to."""
        while self._waiting:
            name, target = self._waiting.pop()
            self.defs[name] = self.convert(target)

    def convert(self, node: Node) -> Node:
        if isinstance(node, bool):
            return node
        said = {key: value for key, value in node.items() if key not in _GONE and not self._is_id(key, value)}
        targets: list[tuple[str, Node]] = []
        for keyword in REFERENCES:
            reference: object = said.pop(keyword, None)
            if isinstance(reference, str) and (target := self._document.target(node, reference)) is not None:
                targets.append((keyword, target))
        if targets and self._year <= 7:
            # Before 2019-09 nothing beside a reference counts; what describes it does no harm.
            said = {key: value for key, value in said.items() if key in ANNOTATIONS}
        made = rebuilt(self._of_today(said), self.convert)
        references = [self._reference(node, keyword, target) for keyword, target in targets]
        if any(reference is False for reference in references):
            return False
        kept = [reference for reference in references if isinstance(reference, dict)]
        if len(kept) > 1:
            made["allOf"] = [*kept, *schemas(made, "allOf")]
        elif kept:
            made = {**kept[0], **made}
        return made

    def _is_id(self, key: str, value: object) -> bool:
        return key == "id" and self._year == 4 and isinstance(value, str)

    def _reference(self, node: JsonObject, keyword: str, target: Node) -> Node:
        if isinstance(target, bool):
            return target
        name = self._names.get(id(target))
        if name is None:
            name = self._names[id(target)] = self._named(str(node[keyword]))
            place = self._document.place(target)
            self.places[name] = place if place is not None else unquote(urldefrag(str(node[keyword])).fragment)
            self._waiting.append((name, target))
            self.defs[name] = True  # the name is taken
        reference = f"{DEFS}{name}"
        self.rewritten = self.rewritten or node[keyword] != reference
        return {"$ref": reference}

    def _named(self, reference: str) -> str:
        uri, fragment = urldefrag(reference)
        fragment = unquote(fragment)
        last = (tokens_of(fragment)[-1:] or ("",))[0] if fragment.startswith("/") else fragment
        name = _FOREIGN.sub("_", last or uri.rstrip("/").rpartition("/")[2])[:_NAME_LENGTH] or "self"
        if name not in self.defs:
            return name
        number = 2
        while f"{name[: _NAME_LENGTH - 8]}_{number}" in self.defs:
            number += 1
        return f"{name[: _NAME_LENGTH - 8]}_{number}"

    def _of_today(self, said: JsonObject) -> JsonObject:
        """What older drafts write otherwise."""
        if self._year >= 2020:
            return said
        made = dict(said)
        if isinstance(made.get("items"), list):
            made["prefixItems"] = made.pop("items")
            if "additionalItems" in made:
                made["items"] = made.pop("additionalItems")
            if not made["prefixItems"]:
                del made["prefixItems"]
        made.pop("additionalItems", None)
        for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if isinstance(made.get(exclusive), bool) and made.pop(exclusive) and limit in made:
                made[exclusive] = made.pop(limit)
        if self._year <= 7 and isinstance(made.get("dependencies"), dict):
            both: dict[str, Any] = made.pop("dependencies")
            lists: JsonObject = {name: value for name, value in both.items() if isinstance(value, list)}
            others: JsonObject = {name: value for name, value in both.items() if name not in lists}
            made |= {"dependentRequired": lists} if lists else {}
            made |= {"dependentSchemas": others} if others else {}
        self.rewritten = self.rewritten or made != said
        return made
