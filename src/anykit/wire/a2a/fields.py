"""Reading what peers wrote: both spellings of a field, and no trust in its type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from anykit.capabilities import Json, JsonObject

MAX_TEXT = 16_384
"""Characters of a text about something: a description, a reason."""
MAX_ID = 1024
"""Characters of an id."""


def an_object(value: Json) -> JsonObject | None:
    """The value where it is an object with members, None where it is anything else."""
    return cast(JsonObject, value) if isinstance(value, dict) and value else None


def a_list(value: Json) -> list[Any]:
    """The value where it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def member(given: Mapping[str, Any], *names: str) -> Json:
    """The first of these members that is there and not null."""
    for name in names:
        value = given.get(name)
        if value is not None:
            return value
    return None


def a_text(given: Mapping[str, Any], *names: str, limit: int = MAX_TEXT) -> str:
    """The first of these members that is a text, cut to `limit` characters; "" where none is."""
    for name in names:
        value = given.get(name)
        if isinstance(value, str) and value:
            return well_formed(value[:limit])
    return ""


def an_id(given: Mapping[str, Any], *names: str) -> str:
    """An id as it must be sent back; "" where there is none that can be."""
    for name in names:
        value = given.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and 0 < len(value) <= MAX_ID and well_formed(value) == value:
            return value
    return ""


def texts(value: Json, *, most: int = 64, limit: int = 256) -> tuple[str, ...]:
    """The texts of a list, at most `most`, each at most `limit` long."""
    return tuple(well_formed(item[:limit]) for item in a_list(value)[:most] if isinstance(item, str) and item)


def well_formed(text: str) -> str:
    """The text without halves of surrogate pairs, which no wire can carry."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
