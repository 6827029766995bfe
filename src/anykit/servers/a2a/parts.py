"""A call's result as parts: the text first, then the structured value as data, then files. No SDK in here.

Protocol buffers know one kind of number, the double: a value with an integer beyond 2^53 travels as JSON text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from anykit.capabilities import (
    AudioPart,
    BlobPart,
    Completed,
    ContentPart,
    EmbeddedResource,
    Failed,
    ImagePart,
    InvocableResult,
    Json,
    JsonObject,
    ResourceLink,
    StructuredPart,
    Suspension,
    TextPart,
)
from anykit.tools import to_json, tool_result

EXACT: Final = 2**53
"""The largest integer that a double and its neighbours keep apart."""
JSON_TYPE: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    media_type: str = ""


@dataclass(frozen=True, slots=True)
class Data:
    value: Json


@dataclass(frozen=True, slots=True)
class File:
    """Bytes, or where they are."""

    data: bytes | None = field(default=None, repr=False)
    uri: str = ""
    name: str = ""
    media_type: str = ""


Part = Text | Data | File


def is_exact(value: Json) -> bool:
    """Whether doubles carry every number of a JSON value as it is."""
    level: list[Any] = [value]
    while level:
        deeper: list[Any] = []
        for item in level:
            if item.__class__ is int:
                if not -EXACT <= item <= EXACT:
                    return False
            elif isinstance(item, dict):
                deeper += cast("dict[str, Any]", item).values()
            elif isinstance(item, list | tuple):
                deeper += cast("Sequence[Any]", item)
        level = deeper
    return True


def inexact(value: Json, *steps: str | int) -> str | None:
    """The JSON pointer of the first integer that a double would round, below `steps`; None where there is none."""
    if is_exact(value):
        return None
    waiting: list[tuple[tuple[str | int, ...], Any]] = [(steps, value)]
    while waiting:
        path, item = waiting.pop()
        if type(item) is int and not -EXACT <= item <= EXACT:
            return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
        if isinstance(item, dict):
            waiting += [((*path, key), one) for key, one in reversed(cast("dict[str, Any]", item).items())]
        elif isinstance(item, list | tuple):
            waiting += [((*path, index), one) for index, one in reversed(list(enumerate(cast("list[Any]", item))))]
    return None


def whole_numbers(value: Any) -> Any:
    """A value with its whole numbers as integers again: protocol buffers make doubles of all."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= EXACT else value
    if isinstance(value, dict):
        return {key: whole_numbers(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [whole_numbers(item) for item in cast("list[Any]", value)]
    return value


def json_part(value: Json) -> Part:
    """A data part, or JSON text where data would not be exact."""
    return Data(value) if is_exact(value) else Text(to_json(value), JSON_TYPE)


def result_parts(outcome: Completed | Failed, *, limit: int) -> list[Part]:
    """What a call returned; a text beyond `limit` bytes is cut and says so."""
    shown = tool_result(outcome, limit=limit)
    result = outcome.result
    parts: list[Part] = [Text(shown.output)] if isinstance(outcome, Failed) else []
    if isinstance(outcome, Completed) or (result is not None and result.content):
        for part in shown.content:
            parts += [one for one in _of_part(part) if one not in parts[:1] or not isinstance(outcome, Failed)]
    if result is not None and "truncated" not in shown.metadata:
        parts = _with_structured(parts, result)
    return parts or [Text("")]


def _with_structured(parts: list[Part], result: InvocableResult) -> list[Part]:
    """The structured value behind the leading text, where the text does not say all of it."""
    if not result.has_structured or result.structured is None:
        return parts
    value = result.structured
    if any(isinstance(part, Data) and part.value == value for part in parts):
        return parts
    if isinstance(value, str):
        return parts if any(isinstance(part, Text) and part.text == value for part in parts) else [Text(value), *parts]
    data = json_part(value)
    if isinstance(data, Text) and any(isinstance(part, Text) and part.text == data.text for part in parts):
        return parts  # the text says it exactly already
    leading = 1 if parts and isinstance(parts[0], Text) else 0
    if not leading:
        return [Text(to_json(value)), data, *parts] if isinstance(data, Data) else [data, *parts]
    return [*parts[:leading], data, *parts[leading:]]


def _of_part(part: ContentPart) -> list[Part]:
    match part:
        case TextPart():
            return [Text(part.text, "" if part.media_type == "text/plain" else part.media_type)]
        case StructuredPart():
            return [json_part(part.value)]
        case ImagePart() | AudioPart():
            return [File(part.data, media_type=part.media_type, name=_name(part.metadata))]
        case BlobPart():
            return [File(part.data, part.uri or "" if part.data is None else "", part.name or "", part.media_type)]
        case ResourceLink():
            return [File(uri=part.uri, name=part.name, media_type=part.media_type or "")]
        case EmbeddedResource():
            if part.text is not None:
                return [Text(part.text, part.media_type or "")]
            return [File(part.data or b"", name=part.uri, media_type=part.media_type or "")]


def _name(metadata: JsonObject) -> str:
    name = metadata.get("name")
    return name if isinstance(name, str) else ""


def event_part(part: ContentPart) -> Part | None:
    """A piece of a result that comes early."""
    parts = _of_part(part)
    return parts[0] if parts else None


def question_parts(question: Suspension) -> list[Part]:
    """A question: its text for a reader, and how to answer it as data."""
    prompt = question.prompt if question.url is None else f"{question.prompt}\n{question.url}"
    return [Text(prompt), json_part({key: value for key, value in question.to_json().items() if value is not None})]


def needed_parts(prompt: str, schema: JsonObject) -> list[Part]:
    """What is needed before anything can run."""
    return [Text(prompt), json_part({"kind": "input", "prompt": prompt, "schema": schema})]
