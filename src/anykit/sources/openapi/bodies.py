"""What a request carries: which of the document's content types is used, what is asked for it, and how it is written."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import unquote

from anykit.capabilities import InvalidInput, Json, JsonObject
from anykit.schema.documents import Node
from anykit.sources.http import Multipart, Part
from anykit.tools import to_json

from .dialect import Schemas
from .references import Misplaced
from .styles import Style, query_pairs, text_of

Kind: TypeAlias = Literal["json", "form", "multipart", "lines", "text", "binary"]

JSON = "application/json"
_JSON = re.compile(r"(application|text)/json|[^/]+/[^/]+\+json")
_LINES = re.compile(r"application/(x-)?(ndjson|jsonl|jsonlines|json-lines)")
_ANY = frozenset({"*/*", "application/*"})
_BYTES = re.compile(r"application/octet-stream|(image|audio|video)/.+|application/(pdf|zip|gzip|x-tar)")
_PLAIN_WORDS = frozenset(
    {"type", "properties", "required", "title", "description", "example", "examples", "xml", "externalDocs"}
    | {"additionalProperties", "deprecated", "allOf", "nullable", "$schema", "$id", "$comment"}
)
"""Keywords of an object that can be asked for by its members."""

FILE: JsonObject = {
    "anyOf": [
        {"type": "string", "contentEncoding": "base64", "description": "The file's bytes, base64."},
        {
            "type": "object",
            "description": "The file as `text`, or as `data` in base64.",
            "properties": {
                "text": {"type": "string"},
                "data": {"type": "string", "contentEncoding": "base64"},
                "filename": {"type": "string"},
                "media_type": {"type": "string"},
            },
            "additionalProperties": False,
        },
    ]
}


@dataclass(frozen=True, slots=True)
class Encoding:
    """How one member of a form is written (OpenAPI, Encoding Object)."""

    content_types: tuple[str, ...] = ()
    style: Style | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an object body that is an argument of its own."""

    name: str
    schema: Node
    required: bool
    uses: frozenset[str] = frozenset()
    is_file: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """A request's body. Where `members` is None, one argument holds all of it, by `schema`."""

    kind: Kind
    media_type: str
    required: bool
    schema: Node = True
    uses: frozenset[str] = frozenset()
    members: tuple[Member, ...] | None = None
    files: frozenset[str] = frozenset()
    """Members that are files, or lists of them."""
    encodings: Mapping[str, Encoding] = field(default_factory=dict[str, Encoding])
    description: str = ""

    def written(self, value: Json, place: str) -> tuple[str | None, bytes | Multipart]:
        """The content type (None where multipart brings its own) and the body. `place` is the argument, for errors.

        Raises `InvalidInput`.
        """
        match self.kind:
            case "json":
                return self.media_type, to_json(value).encode()
            case "form":
                return self.media_type, self._form(_object(value, place)).encode()
            case "multipart":
                return None, self._multipart(_object(value, place), place)
            case "lines":
                rows = cast("list[Json]", value) if isinstance(value, list) else None
                text = text_of(value) if rows is None else "".join(f"{to_json(row)}\n" for row in rows)
                return self.media_type, text.encode()
            case "text":
                kind = self.media_type if "charset" in self.media_type.lower() else f"{self.media_type}; charset=utf-8"
                return kind, text_of(value).encode()
            case "binary":
                file = _File.of(value, place)
                return file.media_type or self.media_type, file.data

    def _form(self, value: JsonObject) -> str:
        pairs: list[str] = []
        for name, item in value.items():
            encoding = self.encodings.get(name, Encoding())
            style = encoding.style
            if style is None:
                # An object without a style is written as JSON, each item of a list by itself.
                style = Style("form", True)
                if isinstance(item, dict) or any(_is_json_type(one) for one in encoding.content_types):
                    item = to_json(cast(Json, item))
            pairs += query_pairs(style, name, item)
        return "&".join(pairs)

    def _multipart(self, value: JsonObject, place: str) -> Multipart:
        parts: list[Part] = []
        for name, item in value.items():
            encoding = self.encodings.get(name, Encoding())
            if encoding.style is not None and name not in self.files:
                parts += _styled(encoding.style, name, item)
                continue
            items = cast("list[Json]", item) if isinstance(item, list) else [item]
            as_one = isinstance(item, list) and any(_is_json_type(one) for one in encoding.content_types)
            for one in cast("list[Json]", [item]) if as_one else items:
                if one is not None:
                    parts.append(self._part(name, one, encoding, f"{place}/{name}" if place else name))
        return Multipart(tuple(parts))

    def _part(self, name: str, item: Json, encoding: Encoding, place: str) -> Part:
        wanted = next((one for one in encoding.content_types if "*" not in one), None)
        if name in self.files:
            file = _File.of(item, place)
            return Part(name, file.data, file.filename or name, file.media_type or wanted or "application/octet-stream")
        if isinstance(item, dict | list) or _is_json_type(wanted or ""):
            return Part(name, to_json(item).encode(), None, wanted or JSON)
        return Part(name, text_of(item).encode(), None, wanted)


@dataclass(frozen=True, slots=True)
class _File:
    data: bytes
    filename: str | None = None
    media_type: str | None = None

    @classmethod
    def of(cls, value: Json, place: str) -> _File:
        """A file as an argument has it. Raises `InvalidInput`."""
        if isinstance(value, str):
            return cls(_bytes(value, place))
        if not isinstance(value, dict):
            raise _refused(place, "a file is base64 text, or an object with `text` or `data`")
        given = cast(JsonObject, value)
        text, data = given.get("text"), given.get("data")
        if isinstance(text, str) == isinstance(data, str):
            raise _refused(place, "a file needs either `text`, or `data` in base64")
        content = text.encode() if isinstance(text, str) else _bytes(cast(str, data), f"{place}/data")
        media_type = given.get("media_type") or ("text/plain; charset=utf-8" if isinstance(text, str) else None)
        return cls(content, given.get("filename"), media_type)


def _bytes(text: str, place: str) -> bytes:
    if text.startswith("data:") and ";base64," in text[:256]:
        text = text.partition(";base64,")[2]
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise _refused(place, 'it is not base64; a plain text is given as {"text": ...}') from None


def _object(value: Json, place: str) -> JsonObject:
    if isinstance(value, dict):
        return cast(JsonObject, value)
    raise _refused(place, "a form is an object")


def _refused(place: str, why: str) -> InvalidInput:
    return InvalidInput(f"{place}: {why}", [{"path": f"/{place}", "message": why}])


def _styled(style: Style, name: str, item: Json) -> list[Part]:
    """A member of a multipart body that is written as a parameter would be: its names and values, not encoded."""
    pairs = (pair.partition("=") for pair in query_pairs(style, name, item))
    return [Part(unquote(key), unquote(text).encode()) for key, _, text in pairs]


# planning


def plan_body(given: object, base: str, schemas: Schemas) -> tuple[Body | None, str]:
    """The body of an operation, and what of it is left out and why ("" where nothing is).

    Raises `Misplaced` where the operation cannot be called without it.
    """
    body, base = schemas.references.object_at(given, base, "requestBody")
    content = body.get("content")
    if not isinstance(content, dict) or not content:
        if body.get("required") is True:
            raise Misplaced("requestBody has no content")
        return None, ""
    required = body.get("required") is True
    choices: list[tuple[int, str, Kind, JsonObject, str]] = []
    for name, media in cast(JsonObject, content).items():
        try:
            entry, at = schemas.references.object_at(media, base, f"requestBody {name}")
        except Misplaced:
            continue
        kind = _kind_of(name, entry, at, schemas)
        if kind is not None:
            choices.append((kind[0], name, kind[1], entry, at))
    if not choices:
        names = ", ".join(str(name)[:60] for name in list(cast(JsonObject, content))[:8])
        if required:
            raise Misplaced(f"its body is {names}, which is not supported")
        return None, f"its body is left out: {names} is not supported"
    _, name, kind, entry, at = min(choices, key=lambda choice: choice[0])
    description = body.get("description")
    return _planned(kind, name, entry, at, required, schemas, description if isinstance(description, str) else ""), ""


def _kind_of(name: str, media: JsonObject, base: str, schemas: Schemas) -> tuple[int, Kind] | None:
    """How good a content type is (less is better) and how it is written; None where it is not understood."""
    kind = name.partition(";")[0].strip().lower()
    if kind == JSON:
        return 0, "json"
    if _JSON.fullmatch(kind):
        return 1, "json"
    if kind in _ANY:
        node, _ = schemas.target(media.get("schema"), base)
        return (6, "binary") if is_bytes(node) else (2, "json")
    if kind == "multipart/form-data":
        return 3, "multipart"
    if kind == "application/x-www-form-urlencoded":
        return 4, "form"
    if _LINES.fullmatch(kind):
        return 5, "lines"
    if "xml" in kind:
        return None
    if kind.startswith("text/"):
        return 5, "text"
    node, _ = schemas.target(media.get("schema"), base)
    if _BYTES.fullmatch(kind) or is_bytes(node):
        return 6, "binary"
    return None


def _planned(
    kind: Kind, name: str, media: JsonObject, base: str, required: bool, schemas: Schemas, description: str
) -> Body:
    media_type = JSON if name.strip() in _ANY and kind == "json" else name.strip()
    if kind == "binary":
        media_type = "application/octet-stream" if "*" in media_type else media_type
        return Body(kind, media_type, required, schema=FILE, description=description)
    media_type = "text/plain" if "*" in media_type else media_type
    given = media.get("schema", {} if kind != "text" else {"type": "string"})
    node, at = schemas.target(given, base)
    if kind in ("form", "multipart"):
        if node == {}:
            node = {"type": "object"}
        if not _is_object(node):
            raise Misplaced(f"its body is {name[:60]} and no object")
    encodings = _encodings(media.get("encoding"), kind)
    raw = frozenset(name for name, encoding in encodings.items() if any(map(_BYTES.fullmatch, encoding.content_types)))
    members = _members(node, at, kind, schemas, raw)
    if members is not None and (required or not any(member.required for member in members)):
        files = frozenset(member.name for member in members if member.is_file)
        return Body(
            kind, media_type, required, members=members, files=files, encodings=encodings, description=description
        )
    files = _files_of(node, at, schemas, raw) if kind == "multipart" else frozenset[str]()
    schema, uses = schemas.opened(node, at, "request")
    if files and isinstance(schema, dict):
        properties = {
            key: _file_schema(child) if key in files else child
            for key, child in cast("dict[str, Node]", schema.get("properties", {})).items()
        }
        schema = {**schema, "properties": properties}
    return Body(kind, media_type, required, schema, uses, None, files, encodings, description)


def _is_object(node: object) -> bool:
    if not isinstance(node, dict):
        return False
    kind = cast(JsonObject, node).get("type", "object")
    return kind == "object" or (isinstance(kind, list) and "object" in kind)


def _members(node: object, base: str, kind: Kind, schemas: Schemas, raw: frozenset[str]) -> tuple[Member, ...] | None:
    """The members of a plain object that its schema says all about; None for any other."""
    if kind not in ("json", "form", "multipart"):
        return None
    found = _plain_members(node, base, schemas, 0)
    if not found:
        return None
    parts, required = found
    if not parts:  # a form that says it has no fields has none
        return () if kind != "json" and "properties" in cast(JsonObject, node) else None
    # As one object, so that what is only for answers is left out as everywhere else.
    whole = {"type": "object", "required": sorted(required), "properties": {n: c for n, (c, _) in parts.items()}}
    bases = {base for _, base in parts.values()}
    if len(bases) > 1:
        return None
    converted, _ = schemas.converted(whole, next(iter(bases)), "request")
    asked = cast("dict[str, Node]", cast(JsonObject, converted)["properties"])
    needed = set(cast(JsonObject, converted).get("required", ()))
    members: list[Member] = []
    for name in asked:
        child, at = parts[name]
        is_file = kind == "multipart" and (_is_file(child, at, schemas) or (child == {} and name in raw))
        schema, uses = schemas.opened(child, at, "request")
        if is_file:
            schema, uses = _file_schema(schema), frozenset[str]()
        members.append(Member(name, schema, name in needed, uses, is_file))
    return tuple(members) if members else None


def _plain_members(
    node: object, base: str, schemas: Schemas, depth: int
) -> tuple[dict[str, tuple[object, str]], set[str]] | None:
    if not isinstance(node, dict) or depth > 8:
        return None
    given = cast(JsonObject, node)
    if any(key not in _PLAIN_WORDS and not key.startswith("x-") for key in given):
        return None
    if given.get("additionalProperties", False) is not False or given.get("nullable") is True:
        return None
    if given.get("type", "object") not in ("object", ["object"]):
        return None
    properties, required = given.get("properties", {}), given.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return None
    parts: dict[str, tuple[object, str]] = {name: (c, base) for name, c in cast(JsonObject, properties).items()}
    needed = {name for name in cast("list[Any]", required) if isinstance(name, str)}
    for one in cast("list[Any]", given.get("allOf") or ()):
        inside = _plain_members(*schemas.target(one, base), schemas, depth + 1)
        if inside is None:
            return None
        for name, part in inside[0].items():
            if parts.setdefault(name, part) != part:
                return None
        needed |= inside[1]
    return (parts, needed) if needed <= parts.keys() else None


def is_bytes(node: object) -> bool:
    """Whether a schema is of raw bytes: 3.0 says `format: binary`, 3.1 a media type without an encoding."""
    if not isinstance(node, dict):
        return False
    given = cast(JsonObject, node)
    if given.get("contentEncoding"):
        return False
    kind: Any = given.get("type", "string" if "contentMediaType" in given else None)
    is_text = kind == "string" or (isinstance(kind, list) and "string" in kind)
    return is_text and (given.get("format") == "binary" or isinstance(given.get("contentMediaType"), str))


def _is_file(node: object, base: str, schemas: Schemas, depth: int = 0) -> bool:
    """Whether a member is a file, a list of files, or may be one."""
    if depth > 8:
        return False
    node, base = schemas.target(node, base)
    if is_bytes(node):
        return True
    if not isinstance(node, dict):
        return False
    given = cast(JsonObject, node)
    if given.get("type") == "array":
        return _is_file(given.get("items"), base, schemas, depth + 1)
    choices = [one for key in ("anyOf", "oneOf") for one in cast("list[Any]", given.get(key) or ())]
    return any(_is_file(one, base, schemas, depth + 1) for one in choices)


def _files_of(node: object, base: str, schemas: Schemas, raw: frozenset[str]) -> frozenset[str]:
    properties = cast(JsonObject, node).get("properties") if isinstance(node, dict) else None
    if not isinstance(properties, dict):
        return frozenset()
    return frozenset(
        name
        for name, child in cast(JsonObject, properties).items()
        if _is_file(child, base, schemas) or (child == {} and name in raw)
    )


def _file_schema(schema: Node) -> Node:
    """A converted schema with files in the place of raw bytes."""
    if not isinstance(schema, dict):
        return FILE
    about: JsonObject = {key: schema[key] for key in ("title", "description", "deprecated") if key in schema}
    if schema.get("type") == "array":
        return {**schema, "items": _file_schema(cast(Node, schema.get("items", True)))}
    choices = [one for key in ("anyOf", "oneOf") for one in cast("list[Node]", schema.get(key) or ())]
    lists = [one for one in choices if isinstance(one, dict) and one.get("type") == "array"]
    if lists:
        return {**about, "anyOf": [*(_file_schema(one) for one in lists), {"type": "null"}]}
    kind = schema.get("type")
    nullable = {"type": "null"} in choices or (isinstance(kind, list) and "null" in kind)
    options = [*cast("list[Json]", FILE["anyOf"]), *([{"type": "null"}] if nullable else [])]
    return {**about, "anyOf": options}


def _encodings(given: object, kind: Kind) -> dict[str, Encoding]:
    if not isinstance(given, dict) or kind not in ("form", "multipart"):
        return {}
    found: dict[str, Encoding] = {}
    for name, one in cast(JsonObject, given).items():
        if not isinstance(one, dict):
            continue
        entry = cast(JsonObject, one)
        types = entry.get("contentType")
        kinds = tuple(word.strip() for word in types.split(",") if word.strip()) if isinstance(types, str) else ()
        style = None
        if any(key in entry for key in ("style", "explode", "allowReserved")):
            word = entry.get("style", "form")
            if word not in ("form", "spaceDelimited", "pipeDelimited", "deepObject"):
                word = "form"
            style = Style(word, bool(entry.get("explode", word == "form")), entry.get("allowReserved") is True)
        found[name] = Encoding(kinds, style)
    return found


def _is_json_type(kind: str) -> bool:
    return _JSON.fullmatch(kind.partition(";")[0].strip().lower()) is not None
