"""The body of an endpoint's requests: how it is made of arguments."""

from __future__ import annotations

import base64
import binascii
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from anykit.capabilities import InvalidInput, Json

from .bodies import FORM, JSON, Multipart, Part, form_body, json_body, texts
from .expressions import Expression, Missing, Reader, evaluated, names_in
from .templates import TemplateError, body_text

BodyKind: TypeAlias = Literal["json", "form", "multipart", "raw"]
KINDS: tuple[BodyKind, ...] = ("json", "form", "multipart", "raw")


@dataclass(frozen=True, slots=True)
class Payload:
    """How a body is made: of `content`, or where that is None of the arguments that stand nowhere else."""

    kind: BodyKind
    content: Expression = field(default=None, repr=False)
    of_the_rest: bool = True
    content_type: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Arguments that it names."""
        return tuple(dict.fromkeys(names_in(self.content)))

    def made(self, values: Mapping[str, Json], rest: Mapping[str, Json]) -> tuple[str, bytes] | Multipart | None:
        """Content type and bytes, or parts; None where there is nothing to send. Raises `InvalidInput`."""
        value: Json | Missing = dict(rest) if self.of_the_rest else evaluated(self.content, values)
        if isinstance(value, Missing) or (self.of_the_rest and not rest):
            return None
        if self.kind == "json":
            return self.content_type or JSON, json_body(value)
        if self.kind == "raw":
            return self.content_type or "text/plain; charset=utf-8", body_text(value, "body").encode()
        members = cast("dict[str, Json]", value)
        if self.kind == "form":
            pairs = [(name, text) for name, member in members.items() for text in texts(member)]
            return self.content_type or FORM, form_body(pairs)
        return Multipart(tuple(part for name, member in members.items() for part in _parts(name, member)))


def payload(said: Json, reader: Reader) -> Payload | None:
    """Read what the operator says about the body. Raises `TemplateError`, `UnresolvedReference`."""
    if said is None:
        return None
    if isinstance(said, str):
        if said not in ("json", "form", "multipart"):
            raise TemplateError(
                f"body: {said[:50]!r} is no kind of body; write json, form or multipart, or a table such as {{ raw = ... }}"
            )
        return Payload(cast(BodyKind, said))
    if not isinstance(said, dict):
        raise TemplateError("body: write json, form or multipart, or a table with one of json, form, multipart, raw")
    table = cast("dict[str, Json]", said)
    kinds: list[BodyKind] = [kind for kind in KINDS if kind in table]
    others = [key for key in table if key not in (*KINDS, "content_type")]
    if len(kinds) != 1 or others:
        wrong = f"unknown key {others[0]!r}; " if others else ""
        raise TemplateError(
            f"body: {wrong}write exactly one of json, form, multipart, raw, and content_type if need be"
        )
    (kind,) = kinds
    content = table[kind]
    given = table.get("content_type")
    if given is not None and (not isinstance(given, str) or kind == "multipart"):
        raise TemplateError("body: content_type is a text, and a multipart body has its own")
    if kind in ("form", "multipart") and not isinstance(content, dict):
        raise TemplateError(f"body: {kind} is a table from names to values")
    if kind == "raw" and not isinstance(content, str):
        raise TemplateError("body: raw is a text")
    content_type = None if given is None else reader.plain(given, "/body/content_type")
    return Payload(kind, reader.value(content, f"/body/{kind}"), of_the_rest=False, content_type=content_type)


def _parts(name: str, value: Json) -> list[Part]:
    """The parts of one member: a file where it is a table with `content`, else fields as a form has them."""
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        if "content" in table and table.keys() <= {"content", "filename", "content_type", "encoding"}:
            return [_file(name, table)]
    if isinstance(value, list):
        return [part for item in cast("list[Json]", value) for part in _parts(name, item)]
    return [Part(name, text.encode()) for text in texts(value)]


def _file(name: str, table: Mapping[str, Any]) -> Part:
    content = body_text(table["content"], name)
    data = content.encode()
    if table.get("encoding") == "base64":
        try:
            data = base64.b64decode(content, validate=True)
        except (binascii.Error, ValueError):
            why = "its content is not base64"
            raise InvalidInput(f"{name}: {why}", [{"path": f"/{name}", "message": why}]) from None
    filename = table.get("filename")
    kind = table.get("content_type")
    if kind is None and filename:
        kind = mimetypes.guess_type(str(filename))[0]
    return Part(name, data, None if filename is None else str(filename), None if kind is None else str(kind))
