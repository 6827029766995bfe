"""An operation's parameters: where each goes, how it is written, and what is asked for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from anykit.capabilities import Json, JsonObject
from anykit.schema.documents import Node
from anykit.sources.hostile import MAX_TEXT, check_name, clean_text
from anykit.tools import to_json

from .dialect import Schemas
from .references import Misplaced
from .styles import Style, cookie_pairs, form_text, header_text, path_text, query_pairs, text_of

MAX_PARAMETERS = 500
PLACES = ("path", "query", "querystring", "header", "cookie")

_DEFAULTS = {"path": "simple", "query": "form", "querystring": "form", "header": "simple", "cookie": "form"}
_STYLES = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "querystring": ("form",),
    "header": ("simple",),
    "cookie": ("form", "cookie"),
}
_NOT_ONES = frozenset({"accept", "content-type", "authorization"})
"""Headers that a document does not describe as parameters (OpenAPI, Parameter Object)."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter."""

    name: str
    place: str
    required: bool
    style: Style
    content: str = ""
    """The media type that its value is written as, instead of a style."""
    schema: Node = True
    uses: frozenset[str] = frozenset()
    omittable: bool = False
    """Whether null is as good as nothing."""

    def in_path(self, value: Json) -> str:
        """What stands in its place of the path."""
        return form_text(self._content_text(value)) if self.content else path_text(self.style, self.name, value)

    def in_query(self, value: Json) -> list[str]:
        """`name=value`, as often as its style says."""
        if self.place == "querystring":
            return self._whole_query(value)
        if self.content:
            return [] if value is None else query_pairs(Style("form", True), self.name, self._content_text(value))
        return query_pairs(self.style, self.name, value)

    def in_header(self, value: Json) -> str:
        """Its header's value."""
        return self._content_text(value) if self.content else header_text(self.style, value)

    def in_cookies(self, value: Json) -> list[str]:
        """`name=value`, as often as its style says."""
        if self.content:
            return query_pairs(Style("form", True), self.name, self._content_text(value))
        return cookie_pairs(self.style, self.name, value)

    def _content_text(self, value: Json) -> str:
        return to_json(value) if "json" in self.content or isinstance(value, dict | list) else text_of(value)

    def _whole_query(self, value: Json) -> list[str]:
        """The whole query in one value (3.2): an object as a form, JSON as it is, text as it is."""
        if value is None:
            return []
        if "json" in self.content:
            return [form_text(to_json(value))]
        if isinstance(value, dict):
            return [
                pair
                for name, item in cast(JsonObject, value).items()
                for pair in query_pairs(Style("form", True), name, to_json(item) if isinstance(item, dict) else item)
            ]
        return [form_text(text_of(value))] if "form-urlencoded" not in self.content else [text_of(value)]


def plan_parameters(levels: Iterable[tuple[object, str]], schemas: Schemas) -> list[Parameter]:
    """The parameters of an operation: those of later `levels` (a list, and the document it stands in) override earlier.

    Raises `Misplaced`.
    """
    found: dict[tuple[str, str], Parameter] = {}
    for given, base in levels:
        if given is None:
            continue
        if not isinstance(given, list):
            raise Misplaced("its parameters are no list")
        for index, one in enumerate(cast("list[Any]", given)):
            if len(found) >= MAX_PARAMETERS:
                raise Misplaced(f"more than {MAX_PARAMETERS} parameters")
            try:
                parameter = _planned(one, base, schemas)
            except Misplaced as error:
                raise Misplaced(f"parameters[{index}]: {error}") from None
            if parameter is not None:
                key = (parameter.place, parameter.name.lower() if parameter.place == "header" else parameter.name)
                found[key] = parameter
    return list(found.values())


def _planned(given: object, base: str, schemas: Schemas) -> Parameter | None:
    entry, base = schemas.references.object_at(given, base, "a parameter")
    name, place = entry.get("name"), entry.get("in")
    if not isinstance(name, str) or not name:
        raise Misplaced("a parameter without a name")
    check_name(name)
    if place not in PLACES:
        hint = "; that is Swagger 2: OpenAPI 3 has a requestBody" if place in ("body", "formData") else ""
        raise Misplaced(f"{name[:64]!r} is in {str(place)[:32]!r}, and a parameter is in {', '.join(PLACES)}{hint}")
    if place == "header" and name.lower() in _NOT_ONES:
        return None
    content = entry.get("content")
    media_type, described = "", entry.get("schema")
    if isinstance(content, dict) and content and (described is None or place == "querystring"):
        media_type, media = next(iter(cast(JsonObject, content).items()))
        media, base = schemas.references.object_at(media, base, f"content {media_type[:64]}")
        media_type, described = media_type.partition(";")[0].strip().lower(), media.get("schema")
    style = _style(entry, str(place), schemas)
    schema: Node = True
    uses: frozenset[str] = frozenset()
    if described is not None:
        schema, uses = schemas.opened(described, base, "request")
    required = place == "path" or entry.get("required") is True
    never_null = isinstance(described, dict) and cast(JsonObject, described).get("nullable") is False
    return Parameter(
        name,
        str(place),
        required,
        style,
        media_type,
        _with_words(schema, entry, schemas.minor),
        uses,
        omittable=not required and not never_null,
    )


def _style(entry: JsonObject, place: str, schemas: Schemas) -> Style:
    style = entry.get("style", _DEFAULTS[place])
    if style not in _STYLES[place]:
        schemas.notes[f"the style {str(style)[:40]!r} is none of a {place} parameter; {_DEFAULTS[place]} is used"] = (
            None
        )
        style = _DEFAULTS[place]
    explode = entry.get("explode")
    if not isinstance(explode, bool):
        explode = style in ("form", "cookie")
    return Style(str(style), explode, place == "query" and entry.get("allowReserved") is True)


def _with_words(schema: Node, entry: JsonObject, minor: int) -> Node:
    """A parameter's schema with what the parameter itself says for readers."""
    said: JsonObject = {}
    description = entry.get("description")
    if isinstance(description, str) and description.strip():
        said["description"] = clean_text(description.strip(), MAX_TEXT)
    if entry.get("deprecated") is True:
        said["deprecated"] = True
    example = entry.get("example")
    if example is not None and len(repr(example)) <= 200 and not (isinstance(schema, dict) and "examples" in schema):
        said["examples"] = [example]
    if isinstance(schema, bool):
        return said if schema else schema
    return {**schema, **said} if said else schema
