"""What a call asks, as what MCP can ask of a client, and the client's answer back. No SDK in here.

a URL                                      elicitation, mode url: what must not pass through here
a form of plain fields                     elicitation, mode form
one value, or anything more complicated    elicitation, mode form with one field
`data["inputRequests"]`                    those requests as they are (elicitation, sampling, roots), all at once

A form never asks for a secret.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from anykit.capabilities import Answer, Json, JsonObject, Suspension
from anykit.schema import secret_pointers
from anykit.schema.documents import Document

from .plain import resolved, without_null

ANSWER: Final = "answer"
"""The key of the one request, and of the one field where there is one."""
MAX_REQUESTS: Final = 32
_METHODS: Final = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})

Need: TypeAlias = Literal["form", "url", "sampling", "roots"]
Shape: TypeAlias = Literal["fields", "one", "json", "none"]
"""How an answer lies in a form: its fields are the answer, one field is, one field has it as JSON, there is none."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a client can be asked for."""

    form: bool = False
    url: bool = False
    sampling: bool = False
    roots: bool = False

    def can(self, need: Need) -> bool:
        """Whether that can be asked."""
        return {"form": self.form, "url": self.url, "sampling": self.sampling, "roots": self.roots}[need]


@dataclass(frozen=True, slots=True)
class Request:
    """One request to the client, as MCP spells it."""

    method: str
    params: JsonObject
    shape: Shape = "fields"

    @property
    def need(self) -> Need:
        """What the client must be able to do."""
        match self.method:
            case "sampling/createMessage":
                return "sampling"
            case "roots/list":
                return "roots"
            case _:
                return "url" if self.params.get("mode") == "url" else "form"

    @property
    def capability(self) -> JsonObject:
        """The same as a client declares it."""
        need = self.need
        return {need: {}} if need in ("sampling", "roots") else {"elicitation": {need: {}}}


@dataclass(frozen=True, slots=True)
class Unaskable:
    """A question that no client may be asked this way, and why."""

    reason: str


def requests_of(suspension: Suspension) -> Mapping[str, Request] | Unaskable:
    """The requests, by key, that ask what the suspension asks."""
    if (raw := _raw_requests(suspension)) is not None:
        return raw
    key = _key(suspension)
    if suspension.url is not None:
        params: JsonObject = {
            "mode": "url",
            "message": suspension.prompt,
            "url": suspension.url,
            "elicitationId": suspension.id,
        }
        return {key: Request("elicitation/create", params, "none")}
    if suspension.kind == "configuration":
        return Unaskable("a configuration may hold secrets, which are never asked for in a form")
    schema = suspension.schema
    if schema is not None and secret_pointers(schema):
        return Unaskable("it asks for a secret, which is never asked for in a form")
    form, shape = _form(suspension)
    params = {"mode": "form", "message": suspension.prompt, "requestedSchema": form}
    return {key: Request("elicitation/create", params, shape)}


def _data(suspension: Suspension) -> JsonObject:
    data: object = suspension.data
    return cast(JsonObject, data) if isinstance(data, dict) else {}


def _key(suspension: Suspension) -> str:
    key: object = _data(suspension).get("key")
    return key if isinstance(key, str) and 0 < len(key) <= 64 else ANSWER


def _raw_requests(suspension: Suspension) -> dict[str, Request] | None:
    said: object = _data(suspension).get("inputRequests")
    if not isinstance(said, dict) or not 0 < len(cast(JsonObject, said)) <= MAX_REQUESTS:
        return None
    found: dict[str, Request] = {}
    for key, one in cast("dict[str, Any]", said).items():
        fields = cast(JsonObject, one) if isinstance(one, dict) else {}
        method: object = fields.get("method")
        params: object = fields.get("params")
        if not isinstance(method, str) or method not in _METHODS:
            return None
        found[key] = Request(method, dict(cast(JsonObject, params)) if isinstance(params, dict) else {})
    return found


def askable(asked: Mapping[str, Request], abilities: Abilities) -> Mapping[str, Request]:
    """Those that a client can be asked; of several it may be some."""
    return {key: request for key, request in asked.items() if abilities.can(request.need)}


def answer_of(
    suspension: Suspension, asked: Mapping[str, Request], responses: Mapping[str, JsonObject]
) -> Answer | None:
    """The client's responses as the answer; None where one is missing. Others than those asked for are ignored.

    Raises `ValueError` with what is wrong where an answer does not fit its form.
    """
    if any(key not in responses for key in asked):
        return None
    if "inputRequests" in _data(suspension):
        return Answer(True, {"inputResponses": {key: dict(responses[key]) for key in asked}})
    [(key, request)] = asked.items()
    response = responses[key]
    if response.get("action") != "accept":
        return Answer(False)
    content: object = response.get("content")
    fields = cast(JsonObject, content) if isinstance(content, dict) else {}
    match request.shape:
        case "none":
            return Answer(True)
        case "fields":
            return Answer(True, dict(fields))
        case "one" | "json":
            if ANSWER not in fields:
                raise ValueError("the answer is missing")
            return Answer(True, _parsed(fields[ANSWER]) if request.shape == "json" else fields[ANSWER])


def _parsed(text: Json) -> Json:
    try:
        return json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        raise ValueError("the answer is not JSON") from None


# forms


def _form(suspension: Suspension) -> tuple[JsonObject, Shape]:
    """A form that clients can show, and how the answer lies in it."""
    schema = suspension.schema
    if schema is None:
        if suspension.kind == "approval":
            return {"type": "object", "properties": {}}, "none"
        return _one({"type": "string", "title": "Answer"}), "one"
    document = Document(schema)
    root = resolved(schema, document)
    if root.get("type") == "object":
        properties: object = root.get("properties", {})
        if isinstance(properties, dict):
            fields = {name: _field(part, document) for name, part in cast("dict[str, Any]", properties).items()}
            if all(field is not None for field in fields.values()):
                return _object(root, fields), "fields"
    elif (field := _field(schema, document)) is not None:
        return _one(field), "one"
    described = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return _one({"type": "string", "title": "Answer", "description": f"JSON that fits {described}"}), "json"


def _one(field: JsonObject) -> JsonObject:
    return {"type": "object", "properties": {ANSWER: field}, "required": [ANSWER]}


def _object(root: JsonObject, fields: Mapping[str, JsonObject | None]) -> JsonObject:
    form: JsonObject = {"type": "object", "properties": dict(fields)}
    needed: object = root.get("required")
    if isinstance(needed, list) and needed:
        form["required"] = [name for name in cast("list[Any]", needed) if name in fields]
    return form


_KEYWORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength", "format"),
    "number": ("minimum", "maximum"),
    "integer": ("minimum", "maximum"),
    "boolean": (),
}
_FORMATS: Final = frozenset({"email", "uri", "date", "date-time"})
_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
}


def _field(schema: object, document: Document) -> JsonObject | None:
    """A schema as one of the fields that a form may have; None where it is none."""
    if not isinstance(schema, dict):
        return None
    part = resolved(cast(JsonObject, schema), document)
    part = without_null(part, document)
    looks = {key: part[key] for key in ("title", "description") if isinstance(part.get(key), str)}
    kind: object = part.get("type")
    if (choices := _choices(part)) is not None:
        return {"type": "string", **looks, **choices, **_default(part, "string")}
    if kind == "array":
        return _choice_of_many(part, looks, document)
    if not isinstance(kind, str) or kind not in _KEYWORDS or "enum" in part or "const" in part:
        return None
    field: JsonObject = {"type": kind, **looks}
    field |= {key: part[key] for key in _KEYWORDS[kind] if key in part}
    if field.get("format") not in _FORMATS:
        field.pop("format", None)
    return field | _default(part, kind)


def _default(part: JsonObject, kind: str) -> JsonObject:
    value: object = part.get("default")
    fits = isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
    return {"default": value} if fits else {}


def _choices(part: JsonObject) -> JsonObject | None:
    """One of several texts, with titles where there are any."""
    values: object = part.get("enum")
    if isinstance(values, list) and values and all(isinstance(value, str) for value in cast("list[Any]", values)):
        names: object = part.get("enumNames")
        return {"enum": values, "enumNames": names} if isinstance(names, list) else {"enum": values}
    for keyword in ("oneOf", "anyOf"):
        if (options := _options(part.get(keyword))) is not None:
            return {"oneOf": options}
    return None


def _options(branches: object) -> list[JsonObject] | None:
    if not isinstance(branches, list) or not branches:
        return None
    options: list[JsonObject] = []
    for branch in cast("list[Any]", branches):
        if not isinstance(branch, dict) or not isinstance(cast(JsonObject, branch).get("const"), str):
            return None
        said = cast(JsonObject, branch)
        title: object = said.get("title")
        options.append({"const": said["const"], "title": title if isinstance(title, str) else said["const"]})
    return options


def _choice_of_many(part: JsonObject, looks: JsonObject, document: Document) -> JsonObject | None:
    items: object = part.get("items")
    if not isinstance(items, dict):
        return None
    choices = _choices(resolved(cast(JsonObject, items), document))
    if choices is None:
        return None
    made: JsonObject = (
        {"anyOf": choices["oneOf"]} if "oneOf" in choices else {"type": "string", "enum": choices["enum"]}
    )
    field: JsonObject = {"type": "array", **looks, "items": made}
    field |= {key: part[key] for key in ("minItems", "maxItems") if key in part}
    default: object = part.get("default")
    if isinstance(default, list) and all(isinstance(one, str) for one in cast("list[Any]", default)):
        field["default"] = default
    return field
