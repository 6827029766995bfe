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

HIDDEN = "it holds invisible characters"
"""How a report begins that says so."""

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


def hidden_in(text: str) -> tuple[str, ...]:
    """What people do not see in a text, each kind once, as `U+200B ZERO WIDTH SPACE`; joiners that make an emoji, and
    marks that a right-to-left script needs, are seen.
    """
    if text.isascii() and text.isprintable():
        return ()
    found: dict[str, None] = {}
    letters_to_left = False
    for index, character in enumerate(text):
        if character in "\t\n\r" or (character.isascii() and character.isprintable()):
            continue
        letters_to_left = letters_to_left or (
            character.isalpha() and unicodedata.bidirectional(character) in ("R", "AL")
        )
        if not is_unseen(character) or _is_needed(text, index, letters_to_left):
            continue
        found[f"U+{ord(character):04X} {unicodedata.name(character, _kind_of(character))}"] = None
    return tuple(found)


def hidden_inside(value: Json, depth: int = 0) -> tuple[str, ...]:
    """The same of every text in a JSON value, its keys too."""
    if isinstance(value, str):
        return hidden_in(value)
    if depth > MAX_DEPTH:
        return ()
    inside: list[Json] = []
    if isinstance(value, dict):
        members = cast(JsonObject, value)
        inside = [*members.keys(), *members.values()]
    elif isinstance(value, list | tuple):
        inside = list(cast("Sequence[Json]", value))
    return tuple(dict.fromkeys(one for each in inside for one in hidden_inside(each, depth + 1)))


def visible(text: str) -> str:
    """A text in which everything that people do not see is written out, as `\\u200b`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in "\t\n" or not is_unseen(c) else _escaped(c) for c in text)


def is_unseen(character: str) -> bool:
    """Whether people do not see it, wherever it stands."""
    return _is_hidden(character) or _is_blank(character)


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def _is_needed(text: str, index: int, letters_to_left: bool) -> bool:
    """Whether a character that is not seen itself belongs to what stands around it."""
    character = text[index]
    before = text[index - 1] if index else ""
    if character in "\u200c\u200d":  # joiners: inside an emoji, or between letters that change their shape
        return (
            bool(before)
            and (unicodedata.category(before) in ("So", "Sk", "Mn") or before.isalpha())
            and (not before.isascii() and index + 1 < len(text) and not text[index + 1].isascii())
        )
    if "\ufe00" <= character <= "\ufe0f":  # how what stands before is drawn; one is enough
        return (
            bool(before) and not "\ufe00" <= before <= "\ufe0f" and (not before.isascii() or before in "#*0123456789")
        )
    return character in "\u200e\u200f\u061c" and letters_to_left


def _is_blank(character: str) -> bool:
    """Whether it is drawn as nothing, though it is no control: fillers, and selectors that can carry a text of their own."""
    return character in "\u115f\u1160\u2800\u3164\uffa0\u034f\u17b4\u17b5" or (
        "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
    )


def _kind_of(character: str) -> str:
    return {"Cc": "CONTROL", "Co": "PRIVATE USE", "Cs": "HALF A SURROGATE"}.get(
        unicodedata.category(character), "UNASSIGNED"
    )


def clean_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """The tags that are left, each once."""
    cleaned = (clean_text(tag, MAX_TAG).strip() for tag in tags[:MAX_TAGS])
    return tuple(dict.fromkeys(tag for tag in cleaned if tag))


def _is_hidden(character: str) -> bool:
    # Cc control, Cf format (zero-width, bidi, tags), Cs half surrogates, Co private, Cn unassigned; Zl, Zp separators.
    category = unicodedata.category(character)
    return category[0] == "C" or category in ("Zl", "Zp")
