"""An OpenAPI document as a value: read within bounds, and of a version that is understood."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NoReturn, cast

from anykit.capabilities import Json, JsonObject

from .yaml_text import MAX_DEPTH, YamlFault, parse_yaml

MAX_DOCUMENT = 32 * 1024 * 1024
"""Bytes of a document."""
SNIFF = 4096
"""Characters of a text's start that are looked at first."""

_VERSION = re.compile(r"3\.(\d{1,3})(?:\.\d{1,6})?(?:[-+].{0,64})?")
_KNOWN = (0, 1, 2)
_KEY_IN_YAML = re.compile(r"^(?:\ufeff)?(?:openapi|swagger|\"openapi\"|\"swagger\"|'openapi'|'swagger')\s*:", re.M)
_KEY_FIRST = re.compile(r"\{\s*\"(?:openapi|swagger)\"\s*:\s*\"[0-9.]")
_UNQUOTED = re.compile(r"\ufeff?\s*\{\s*[A-Za-z]")
_KEY_IN_JSON = re.compile(r"[\"']?(?:openapi|swagger)[\"']?\s*:")


class DocumentError(ValueError):
    """A document that cannot be used as a whole; the text says why, and what to do."""


def is_document(text: str) -> bool:
    """Whether a text is an OpenAPI or Swagger document, by its key and, in a JSON text, by looking into it."""
    start = text[:SNIFF].lstrip("\ufeff \t\r\n")
    if start[:1] != "{":
        return _KEY_IN_YAML.search(text) is not None
    if _KEY_FIRST.match(start):
        return True
    if _KEY_IN_JSON.search(text) is None:
        return False
    try:
        value = parse_text(text)
    except DocumentError:
        return False
    return isinstance(value, dict) and bool({"openapi", "swagger"} & cast(JsonObject, value).keys())


def read_text(path: Path) -> str:
    """A file's text. Raises `DocumentError`."""
    try:
        if not path.is_file():
            raise DocumentError(f"{path}: there is no such file")
        with path.open("rb") as stream:
            raw = stream.read(MAX_DOCUMENT + 1)
    except OSError as error:
        raise DocumentError(f"{path}: cannot be read: {error.strerror or error}") from None
    try:
        return decoded(raw)
    except DocumentError as error:
        raise DocumentError(f"{path}: {error}") from None


def decoded(raw: bytes) -> str:
    """The text of a document's bytes (UTF-8, or UTF-16 with its mark). Raises `DocumentError`."""
    if len(raw) > MAX_DOCUMENT:
        raise DocumentError(f"larger than {MAX_DOCUMENT // 1024 // 1024} MiB")
    try:
        return raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(f"not UTF-8 (byte {error.start})") from None


def parse_text(text: str) -> Json:
    """The JSON or YAML value of a text. Raises `DocumentError`."""
    if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):
        try:
            value = json.loads(text.lstrip("\ufeff"), parse_constant=_no_constant)
        except RecursionError:
            raise DocumentError(f"nested deeper than {MAX_DEPTH} levels") from None
        except ValueError as error:
            if _UNQUOTED.match(text) and (value := _flow_yaml(text)) is not None:
                return value
            raise DocumentError(f"not JSON: {error}") from None
        _check_depth(value)
        return value
    try:
        return parse_yaml(text)
    except YamlFault as error:
        raise DocumentError(str(error)) from None


def _flow_yaml(text: str) -> Json:
    """What is no JSON, begins with a brace and a word may be YAML; None where it is not."""
    try:
        return parse_yaml(text)
    except YamlFault:
        return None


def parse_document(text: str) -> JsonObject:
    """The document in a text, known to be of a version that is understood. Raises `DocumentError`."""
    value = parse_text(text)
    if not isinstance(value, dict):
        raise DocumentError("it holds no object, and so is no OpenAPI document")
    document = cast(JsonObject, value)
    minor_of(document)
    return document


def parse_part(text: str) -> JsonObject:
    """What another document refers to: any object. Raises `DocumentError`."""
    value = parse_text(text)
    if not isinstance(value, dict):
        raise DocumentError("it holds no object")
    return cast(JsonObject, value)


def minor_of(document: JsonObject) -> int:
    """The `1` of 3.1. Raises `DocumentError` for what is no OpenAPI 3."""
    if "openapi" not in document:
        if "swagger" in document:
            raise DocumentError(
                f"this is Swagger {str(document['swagger'])[:16]}; OpenAPI 3.0, 3.1 and 3.2 are understood. Convert it, for "
                "example with `npx swagger2openapi openapi-2.json -o openapi-3.json`, or at converter.swagger.io, and give the "
                "converted document"
            )
        raise DocumentError("it has no `openapi` key, and so is no OpenAPI document")
    given: Any = document["openapi"]
    found = _VERSION.fullmatch(str(given).strip()) if isinstance(given, str | float | int) else None
    if found is None or int(found[1]) not in _KNOWN:
        raise DocumentError(f"OpenAPI {str(given)[:16]!r} is not understood; 3.0, 3.1 and 3.2 are")
    return int(found[1])


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _check_depth(value: Json) -> None:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                below.extend(cast(JsonObject, one).values())
            elif isinstance(one, list):
                below.extend(cast("list[Any]", one))
        level = [one for one in below if isinstance(one, dict | list)]
        if not level:
            return
    raise DocumentError(f"nested deeper than {MAX_DEPTH} levels")
