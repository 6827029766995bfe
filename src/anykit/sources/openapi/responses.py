"""What an operation promises to answer: the schema of its structured result, and which content types it is asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from anykit.capabilities import Fault, Json, JsonObject
from anykit.schema import SchemaError, check_form, compile_schema
from anykit.schema.documents import Node

from .dialect import Schemas
from .references import Misplaced

MAX_TYPES = 8
_JSON = re.compile(r"(application|text)/json|[^/]+/[^/]+\+json")
_SUCCESS = re.compile(r"2(\d\d|XX)", re.IGNORECASE)
_MEDIA_TYPE = re.compile(r"[!#$&^_.+*a-z0-9-]+/[!#$&^_.+*a-z0-9-]+")


@dataclass(frozen=True, slots=True)
class Answers:
    """The successful answers of an operation."""

    accept: str = "*/*"
    """The header that asks for what is declared, JSON first."""
    output_schema: JsonObject | None = None
    """Of the structured result, where every success is a JSON object; None promises nothing."""

    def faults(self, value: Json) -> list[Fault]:
        """What of a structured result is not as promised; [] where nothing is, or the promise itself cannot be read."""
        if self.output_schema is None:
            return []
        try:
            validator = compile_schema(self.output_schema)
        except SchemaError:
            return []
        return [] if validator.is_valid(value) else validator.faults(value)


def plan_answers(given: object, base: str, schemas: Schemas) -> tuple[Answers, str]:
    """What is promised, and why less than the document says is ("" where it is all)."""
    if not isinstance(given, dict):
        return Answers(), ""
    types: dict[str, None] = {}
    promises: list[tuple[Node, frozenset[str]]] = []
    kept = True
    note = ""
    successes = {status: one for status, one in cast(JsonObject, given).items() if _SUCCESS.fullmatch(status)}
    if not successes and "default" in given:
        successes = {"default": cast(JsonObject, given)["default"]}
    for status, one in successes.items():
        try:
            response, at = schemas.references.object_at(one, base, f"response {status}")
            content = _content(response)
            types.update(dict.fromkeys(content))
            promise = None if status == "default" else _promise(content, at, schemas)
        except Misplaced as error:
            note = note or f"the answer {status[:12]} is not described: {error}"
            promise = None
        if promise is None:
            kept = False
        elif promise not in promises:
            promises.append(promise)
    schema: JsonObject | None = None
    if kept and promises:
        try:
            schema = _as_one(promises, schemas)
        except Misplaced as error:
            note = note or f"the answer is not described: {error}"
    return Answers(_accept(list(types)), schema), note


def _content(response: JsonObject) -> dict[str, object]:
    content: Any = response.get("content")
    if not isinstance(content, dict):
        return {}
    return {name.partition(";")[0].strip().lower(): one for name, one in cast(JsonObject, content).items()}


def _promise(content: dict[str, object], base: str, schemas: Schemas) -> tuple[Node, frozenset[str]] | None:
    """The schema of an answer in JSON whose root is an object."""
    media = next((one for name, one in content.items() if _JSON.fullmatch(name)), content.get("*/*"))
    if media is None:
        return None
    entry, base = schemas.references.object_at(media, base, "its content")
    if "schema" not in entry or not _is_object(entry["schema"], base, schemas, 0):
        return None
    schema, uses = schemas.opened(entry["schema"], base, "response")
    return ({"type": "object", **schema} if isinstance(schema, dict) else {"type": "object"}), uses


def _is_object(node: object, base: str, schemas: Schemas, depth: int) -> bool:
    node, base = schemas.target(node, base)
    if not isinstance(node, dict) or depth > 8:
        return False
    given = cast(JsonObject, node)
    if given.get("nullable") is True:
        return False
    kind = given.get("type")
    if kind is not None:
        return kind in ("object", ["object"])
    if isinstance(given.get("properties"), dict):
        return True
    if isinstance(given.get("$ref"), str):
        found = schemas.references.find(given["$ref"], base)
        return _is_object(found.value, found.base, schemas, depth + 1)
    if isinstance(given.get("allOf"), list):
        return any(_is_object(one, base, schemas, depth + 1) for one in cast("list[Any]", given["allOf"]))
    for key in ("oneOf", "anyOf"):
        choices: Any = given.get(key)
        if isinstance(choices, list) and choices:
            return all(_is_object(one, base, schemas, depth + 1) for one in cast("list[Any]", choices))
    return False


def _as_one(promises: Sequence[tuple[Node, frozenset[str]]], schemas: Schemas) -> JsonObject:
    uses = frozenset[str]().union(*(used for _, used in promises))
    first = cast(JsonObject, promises[0][0])
    whole = first if len(promises) == 1 else {"type": "object", "anyOf": [schema for schema, _ in promises]}
    definitions = schemas.definitions(uses, "response")
    try:
        check_form(whole)
    except SchemaError as error:
        raise Misplaced(str(error)) from None
    return {**whole, "$defs": definitions} if definitions else dict(whole)


def _accept(types: Sequence[str]) -> str:
    usable = [one for one in types if _MEDIA_TYPE.fullmatch(one)][:MAX_TYPES]
    ordered = sorted(usable, key=lambda one: (one != "application/json", not _JSON.fullmatch(one)))
    return ", ".join([*ordered, "*/*;q=0.1"]) if ordered and "*/*" not in ordered else "application/json, */*;q=0.1"
