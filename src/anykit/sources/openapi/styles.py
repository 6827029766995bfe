"""How a value is written into a path, a query, a header, a cookie or a form (OpenAPI, Style Values; RFC 6570).

Every value is percent-encoded before it meets a delimiter, and the delimiters are not: `a|b` in a list with the delimiter
`|` stays one item. What is null, or a list or an object without members, is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, cast
from urllib.parse import quote

from anykit.capabilities import Json, JsonObject
from anykit.tools import to_json

Write: TypeAlias = Callable[[str], str]

_RESERVED = ":/?[]@!$'()*,;="
"""What `allowReserved` leaves as it is: reserved characters (RFC 3986), but `&`, `+` and `#`, which end a value."""
_IN_NAMES = "[]$@:!*'(),;"
_DELIMITERS = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "|"}
MAX_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class Style:
    """How a value is written."""

    name: str
    explode: bool
    reserved: bool = False

    @property
    def write(self) -> Write:
        """A text with everything encoded that may not stand."""
        return _reserved if self.reserved else _encoded


def text_of(value: Json) -> str:
    """A value as text: booleans and numbers as JSON writes them (1.0 as 1), null as nothing, the rest as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_EXACT:
        return str(int(value))
    return to_json(value)


def query_pairs(style: Style, name: str, value: Json) -> list[str]:
    """`name=value` as often as the style says, ready to be joined by `&`."""
    if value is None:
        return []
    key = quote(name, safe=_IN_NAMES)
    write = style.write
    if style.name == "deepObject" and isinstance(value, dict | list):
        return [f"{place}={write(text)}" for place, text in _deep(key, cast(Json, value))]
    if isinstance(value, list):
        items = [write(text_of(item)) for item in cast("list[Json]", value) if item is not None]
        if not items:
            return []
        if style.explode:
            return [f"{key}={item}" for item in items]
        return [f"{key}={_DELIMITERS.get(style.name, ',').join(items)}"]
    if isinstance(value, dict):
        if style.explode:
            return [pair for member, item in cast(JsonObject, value).items() for pair in _exploded(member, item, write)]
        members = _members(cast(JsonObject, value), write)
        if not members:
            return []
        flat = [word for member, text in members for word in (write(member), text)]
        return [f"{key}={_DELIMITERS.get(style.name, ',').join(flat)}"]
    return [f"{key}={write(text_of(value))}"]


def path_text(style: Style, name: str, value: Json) -> str:
    """What stands in the place of `{name}`."""
    key = quote(name, safe="")
    if style.name == "matrix":
        return "".join(f";{pair}" if not pair.endswith("=") else f";{pair[:-1]}" for pair in _matrix(style, key, value))
    prefix, delimiter = (".", "." if style.explode else ",") if style.name == "label" else ("", ",")
    return prefix + delimiter.join(_words(style, value, _encoded))


def header_text(style: Style, value: Json) -> str:
    """A header's value (style `simple`), as it is; the parts of lists and objects between commas."""
    return ",".join(_words(style, value, str))


def cookie_pairs(style: Style, name: str, value: Json) -> list[str]:
    """`name=value` as often as the style says."""
    if style.name == "cookie":
        return query_pairs_plain(style, name, value)
    return query_pairs(style, name, value)


def query_pairs_plain(style: Style, name: str, value: Json) -> list[str]:
    """The same without any encoding (3.2, style `cookie`)."""
    if isinstance(value, list):
        items = [text_of(item) for item in cast("list[Json]", value) if item is not None]
        return [f"{name}={item}" for item in items] if style.explode else [f"{name}={','.join(items)}"]
    if isinstance(value, dict):
        members = _members(cast(JsonObject, value), str)
        if style.explode:
            return [f"{member}={text}" for member, text in members]
        return [f"{name}={','.join(word for pair in members for word in pair)}"]
    return [f"{name}={text_of(value)}"]


def form_text(text: str) -> str:
    """A text in a form: as in a query, everything encoded."""
    return _encoded(text)


def _exploded(name: str, item: Json, write: Write) -> list[str]:
    """A member as a parameter of its own; a list in it, of which the specification says nothing, as several."""
    items = cast("list[Json]", item) if isinstance(item, list) else [item]
    return [f"{quote(name, safe=_IN_NAMES)}={write(text_of(one))}" for one in items if one is not None]


def _matrix(style: Style, key: str, value: Json) -> list[str]:
    if isinstance(value, list):
        items = [_encoded(text_of(item)) for item in cast("list[Json]", value) if item is not None]
        return [f"{key}={item}" for item in items] if style.explode else [f"{key}={','.join(items)}"]
    if isinstance(value, dict):
        members = _members(cast(JsonObject, value), _encoded)
        if style.explode:
            return [f"{_encoded(member)}={text}" for member, text in members]
        return [f"{key}={','.join(word for member, text in members for word in (_encoded(member), text))}"]
    return [f"{key}={_encoded(text_of(value))}"]


def _words(style: Style, value: Json, write: Write) -> list[str]:
    if isinstance(value, list):
        return [write(text_of(item)) for item in cast("list[Json]", value) if item is not None]
    if isinstance(value, dict):
        members = _members(cast(JsonObject, value), write)
        if style.explode:
            return [f"{write(member)}={text}" for member, text in members]
        return [word for member, text in members for word in (write(member), text)]
    return [write(text_of(value))]


def _members(value: JsonObject, write: Write) -> list[tuple[str, str]]:
    return [(name, write(text_of(item))) for name, item in value.items() if item is not None]


def _deep(key: str, value: Any) -> Iterator[tuple[str, str]]:
    """`f[a][b]`; a list's items are `f[]` where they are scalars and `f[0]` where they are not, as forms have it."""
    if isinstance(value, dict):
        for name, item in cast(JsonObject, value).items():
            yield from _deep(f"{key}[{quote(name, safe='')}]", item)
    elif isinstance(value, list):
        items = cast("list[Any]", value)
        nested = any(isinstance(item, dict | list) for item in items)
        for index, item in enumerate(items):
            yield from _deep(f"{key}[{index}]" if nested else f"{key}[]", item)
    elif value is not None:
        yield key, text_of(value)


def _encoded(text: str) -> str:
    return quote(text, safe="")


def _reserved(text: str) -> str:
    return quote(text, safe=_RESERVED)
