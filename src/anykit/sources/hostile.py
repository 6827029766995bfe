"""What a peer says about itself, made harmless: bounded, and without characters that people do not see."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, cast

from anykit.capabilities import Json, JsonObject

MAX_NAME = 256
"""Characters of a name."""
MAX_DESCRIPTION = 16_384
"""Characters of a description."""
MAX_TEXT = 4_096
"""Characters of any other text in a schema that is for readers."""
MAX_DEPTH = 64
"""Levels of a schema."""
MAX_NODES = 20_000
"""Values in a schema."""
MAX_TAGS = 64
MAX_TAG = 128

_FOR_READERS = frozenset({"title", "description", "$comment"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_DATA = frozenset({"enum", "const", "default", "examples"})


class Malformed(ValueError):
    """It cannot be used; the text says why, without quoting it at length."""


def clean_text(text: str, limit: int = MAX_DESCRIPTION) -> str:
    """Text for readers: no control, format, private or unassigned characters but tab and newline; at most `limit` long."""
    if not (text.isascii() and text.isprintable()):
        text = "".join(c for c in text.replace("\r\n", "\n").replace("\r", "\n") if c in "\t\n" or not _is_hidden(c))
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def check_name(name: str) -> str:
    """The name itself. Raises `Malformed` where it is empty, too long, or holds what people do not see."""
    if not name.strip():
        raise Malformed("it has no name")
    if len(name) > MAX_NAME:
        raise Malformed(f"its name is longer than {MAX_NAME} characters")
    if not (name.isascii() and name.isprintable()) and any(_is_hidden(c) for c in name):
        raise Malformed("its name holds control or invisible characters")
    return name


def clean_schema(schema: Mapping[str, Any]) -> JsonObject:
    """A copy of a schema whose texts for readers are clean; what is data in it stays as it is.

    Raises `Malformed` where it is too deep, too large, or a property's name holds what people do not see.
    """
    return _Cleaner().schema(schema, 0)


class _Cleaner:
    def __init__(self) -> None:
        self._nodes = 0

    def schema(self, schema: Mapping[str, Any], depth: int) -> JsonObject:
        self._count(depth)
        return {key: self._member(key, value, depth + 1) for key, value in schema.items()}

    def _member(self, key: str, value: Any, depth: int) -> Json:
        if isinstance(value, str):
            return clean_text(value, MAX_TEXT) if key in _FOR_READERS else value
        if key in _DATA:
            self._weigh(value, depth)
            return value
        if key in _NAMED and isinstance(value, dict):
            self._count(depth)
            members = cast(JsonObject, value)
            for name in members:
                if any(_is_hidden(c) for c in name):
                    raise Malformed("a property's name holds control or invisible characters")
            return {name: self._value(member, depth + 1) for name, member in members.items()}
        return self._value(value, depth)

    def _value(self, value: Any, depth: int) -> Json:
        if isinstance(value, dict):
            return self.schema(cast(JsonObject, value), depth)
        if isinstance(value, list):
            self._count(depth)
            return [self._value(item, depth + 1) for item in cast("list[Any]", value)]
        self._count(depth)
        return value

    def _weigh(self, value: Any, depth: int) -> None:
        self._count(depth)
        if isinstance(value, dict):
            for member in cast(JsonObject, value).values():
                self._weigh(member, depth + 1)
        elif isinstance(value, list):
            for item in cast("list[Any]", value):
                self._weigh(item, depth + 1)

    def _count(self, depth: int) -> None:
        self._nodes += 1
        if depth > MAX_DEPTH:
            raise Malformed(f"its schema is nested deeper than {MAX_DEPTH} levels")
        if self._nodes > MAX_NODES:
            raise Malformed(f"its schema has more than {MAX_NODES} parts")


def clean_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """The tags that are left, each once."""
    cleaned = (clean_text(tag, MAX_TAG).strip() for tag in tags[:MAX_TAGS])
    return tuple(dict.fromkeys(tag for tag in cleaned if tag))


def _is_hidden(character: str) -> bool:
    # Cc control, Cf format (zero-width, bidi, tags), Cs half surrogates, Co private, Cn unassigned; Zl, Zp separators.
    category = unicodedata.category(character)
    return category[0] == "C" or category in ("Zl", "Zp")
