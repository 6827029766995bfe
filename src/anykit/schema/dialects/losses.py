"""What a conversion could not say, and the text that says it instead."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from anykit.capabilities import Json, JsonObject
from anykit.schema.pointers import Tokens, pointer

NOTE_LIMIT: Final = 600
"""Characters that one place's description gains."""
_WORD: Final = re.compile(r"[$A-Za-z_][$\w-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Loss:
    """A keyword that the converted schema does not hold; calls are still held against the original."""

    pointer: str
    """Where it stood: a JSON pointer."""
    keyword: str
    value: Json = None

    def __str__(self) -> str:
        return f"{self.pointer or '/'}: {self.keyword}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """What keeps a schema from being converted strictly."""

    pointer: str
    """Where: a JSON pointer into the tool's schema."""
    keyword: str
    reason: str

    def __str__(self) -> str:
        return f"{self.pointer or '/'}: {self.keyword}: {self.reason}"


class NotStrict(ValueError):
    """A schema that a provider's strict subset cannot say without another meaning; `.refusals` has every reason."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        self.refusals = tuple(refusals)
        super().__init__("; ".join(map(str, refusals)))


@dataclass(frozen=True, slots=True)
class Conversion:
    """A schema as a provider takes it."""

    schema: JsonObject
    """It shares literal values with the original: not to be changed."""
    losses: tuple[Loss, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    """Parameters that had to be called otherwise: new name -> the tool's own."""


class Ledger:
    """The losses and refusals of one conversion, as they are found."""

    def __init__(self, places: Mapping[str, str] | None = None) -> None:
        self.losses: list[Loss] = []
        self.refusals: list[Refusal] = []
        self._places = places or {}

    def lose(self, where: Tokens, keyword: str, value: Json = None) -> None:
        """Note that `keyword` is not said."""
        self.losses.append(Loss(self.place(where), keyword, value))

    def refuse(self, where: Tokens, keyword: str, reason: str) -> None:
        """Note that `keyword` stands in the way."""
        self.refusals.append(Refusal(self.place(where), keyword, reason))

    def place(self, where: Tokens) -> str:
        """A place of the converted schema as a pointer into the original."""
        if len(where) >= 2 and where[0] == "$defs" and (known := self._places.get(str(where[1]))) is not None:
            return known + pointer(where[2:])
        return pointer(where)


def described(node: JsonObject, notes: Mapping[str, Any]) -> JsonObject:
    """`node` with `notes` at the end of its description, as `{minimum: 1, pattern: "^a"}`; bounded."""
    if not notes:
        return node
    before: object = node.get("description")
    text = note(notes)
    rest = {key: value for key, value in node.items() if key != "description"}
    return {**rest, "description": f"{before}\n\n{text}" if isinstance(before, str) and before else text}


def note(notes: Mapping[str, Any]) -> str:
    """Keywords and their values as a short text."""
    text = _written(dict(notes))
    return text if len(text) <= NOTE_LIMIT else f"{text[: NOTE_LIMIT - 4]}...}}"


def _written(value: Json) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)}: {_written(item)}" for key, item in cast(JsonObject, value).items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_written, cast("Sequence[Json]", value))) + "]"
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if _WORD.fullmatch(name) else json.dumps(name, ensure_ascii=False)
