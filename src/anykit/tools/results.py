"""From what a function returned to a result, by these rules.

str                      the text as it is
None                     text `null`, structured null
bool int float dict ...  compact JSON as text, the value as structured
date, time, UUID, ...    ISO 8601, strings; Decimal is a string
set, frozenset           a sorted array
dataclass, model, enum   an object, the value
bytes                    a blob part at the top, base64 inside JSON
a generator              the list of what it yields, at most 100,000 items
a content part           itself; a list of parts, or of parts and strings, keeps its order
InvocableResult          itself
ToolResult               what it says; one that is an error fails the call
NaN, Infinity, a lone surrogate, anything else     an error that names the place; never on a wire
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
from collections.abc import AsyncIterator, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from dataclasses import dataclass, field
from datetime import date, time
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, TypeAlias, cast
from uuid import UUID

import pydantic_core
from pydantic import BaseModel, SecretBytes, SecretStr

from anykit.capabilities import (
    AudioPart,
    BlobPart,
    Completed,
    ContentPart,
    Denied,
    EmbeddedResource,
    Failed,
    ImagePart,
    InvocableResult,
    Json,
    MetadataMap,
    Outcome,
    ResourceLink,
    StructuredPart,
    Suspended,
    Suspension,
    TextPart,
)

from .errors import ToolError, UnsendableResult

PARTS = (TextPart, ImagePart, AudioPart, BlobPart, ResourceLink, EmbeddedResource, StructuredPart)
DEPTH = 128
"""How deep a result may nest."""
_PLAIN = frozenset({str, int, float, bool, type(None), dict})
"""Types that hold no parts: most results."""
MAX_ITEMS = 100_000
"""Items of an iterator."""
OUTPUT_LIMIT = 1024 * 1024
"""Bytes of text that reach a model, where the tool says nothing else."""

Status: TypeAlias = Literal["completed", "denied", "suspended", "failed"]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gave, as a model and its program read it.

    `is_error` is False only where `status` is `completed`; otherwise `output` holds the reason, or the question and how
    to answer it (`suspension` is set then). `metadata` has `code` and `retryable` for what went wrong.
    """

    output: str
    is_error: bool = False
    content: tuple[ContentPart, ...] = ()
    structured: Json = None
    metadata: MetadataMap = field(default_factory=dict[str, Any])
    status: Status = "completed"
    suspension: Suspension | None = None

    @property
    def code(self) -> str | None:
        """Why it is an error, as a word; None where it is none."""
        return self.metadata.get("code")


def jsonable(value: object, path: str = "", depth: int = 0) -> Json:
    """The JSON value of `value`.

    Raises `UnsendableResult` naming the JSON pointer of what cannot be carried.
    """
    kind = type(value)
    if kind is str:
        return _text(cast(str, value), path)
    if value is None or kind is bool or kind is int:
        return value
    if kind is float:
        return _number(cast(float, value), path)
    if depth > DEPTH:
        raise UnsendableResult(f"the result nests deeper than {DEPTH} levels")
    if isinstance(value, Mapping):
        return {
            _key(key, path): jsonable(item, f"{path}/{_escaped(key)}", depth + 1)
            for key, item in cast(Mapping[object, object], value).items()
        }
    if isinstance(value, list | tuple):
        return [jsonable(item, f"{path}/{i}", depth + 1) for i, item in enumerate(cast(Iterable[object], value))]
    return _other(value, path, depth)


def _other(value: object, path: str, depth: int) -> Json:
    match value:
        case Enum():
            return jsonable(value.value, path, depth + 1)
        case bool() | int():
            return int(value)
        case float():
            return _number(float(value), path)
        case str():
            return _text(str(value), path)
        case SecretStr() | SecretBytes():
            return str(value)
        case BaseModel():
            return jsonable(value.model_dump(by_alias=True), path, depth + 1)
        case set() | frozenset():
            return _sorted([jsonable(item, path, depth + 1) for item in cast(Iterable[object], value)])
        case date() | time():
            return value.isoformat()
        case Decimal():
            if not value.is_finite():
                raise UnsendableResult(f"{value} at {path or 'the root'} of the result is not a JSON number")
            return str(value)
        case UUID():
            return str(value)
        case bytes() | bytearray():
            return base64.b64encode(value).decode("ascii")
        case memoryview():
            return base64.b64encode(cast("memoryview[int]", value).tobytes()).decode("ascii")
        case KeysView() | ValuesView() | ItemsView() | range() | Iterator():
            items = cast(Iterable[object], value)
            return [jsonable(item, f"{path}/{index}", depth + 1) for index, item in enumerate(_bounded(items))]
        case _:
            pass
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {f.name: jsonable(getattr(value, f.name), f"{path}/{f.name}", depth + 1) for f in fields}
    try:
        plain = pydantic_core.to_jsonable_python(value, inf_nan_mode="constants")
    except (pydantic_core.PydanticSerializationError, ValueError, RecursionError) as error:
        where = path or "the root"
        raise UnsendableResult(f"a {type(value).__name__} at {where} of the result cannot be sent as JSON") from error
    return jsonable(plain, path, depth + 1)


def _bounded(items: Iterable[object]) -> Iterator[object]:
    """The items, of which an iterator may have without end."""
    for count, item in enumerate(items):
        if count >= MAX_ITEMS:
            raise UnsendableResult(f"an iterator of the result has more than {MAX_ITEMS} items")
        yield item


async def collected(items: AsyncIterator[object]) -> list[object]:
    """All that an asynchronous generator yields. Raises `UnsendableResult` where that does not end."""
    found: list[object] = []
    async for item in items:
        if len(found) >= MAX_ITEMS:
            raise UnsendableResult(f"an iterator of the result has more than {MAX_ITEMS} items")
        found.append(item)
    return found


def sendable(text: str) -> str:
    """The text without lone surrogates, which no wire carries."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _text(value: str, path: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise UnsendableResult(f"a lone surrogate in the text at {path or 'the root'} of the result") from error
    return value


def _number(value: float, path: str) -> float:
    if not math.isfinite(value):
        raise UnsendableResult(f"{value} at {path or 'the root'} of the result is not a JSON number")
    return value


def _key(key: object, path: str) -> str:
    if isinstance(key, Enum):
        key = key.value
    if isinstance(key, str):
        return _text(str(key), path)
    if key is None or isinstance(key, bool | int | float):
        return to_json(key)
    return str(jsonable(key, path))


def _escaped(key: object) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")


def _sorted(items: list[Any]) -> list[Any]:
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=lambda item: (type(item).__name__, to_json(item)))


def to_json(value: Json) -> str:
    """Compact JSON text; non-ASCII characters stand as they are."""
    return pydantic_core.to_json(value).decode()


def result_of(value: object) -> InvocableResult:
    """The result of a returned value, by the rules above. Raises `UnsendableResult`."""
    if type(value) in _PLAIN:
        plain = jsonable(value)
        return InvocableResult(text=plain if type(plain) is str else to_json(plain), structured=plain)
    if isinstance(value, InvocableResult):
        return checked(value)
    if isinstance(value, ToolResult):
        return _of_tool_result(value)
    if isinstance(value, PARTS):
        return checked(InvocableResult(content=(value,)))
    if isinstance(value, bytes | bytearray):
        return InvocableResult(content=(BlobPart(data=bytes(value)),))
    if isinstance(value, memoryview):
        return InvocableResult(content=(BlobPart(data=cast("memoryview[int]", value).tobytes()),))
    if isinstance(value, list | tuple):
        items = cast("list[object]", value)
        if any(isinstance(item, PARTS) for item in items):
            return checked(InvocableResult(content=tuple(_part(item, i) for i, item in enumerate(items))))
    plain = jsonable(cast(object, value))
    return InvocableResult(text=plain if type(plain) is str else to_json(plain), structured=plain)


def _of_tool_result(value: ToolResult) -> InvocableResult:
    """What a tool says in its caller's words. Raises `ToolError` where it says that it failed."""
    if value.is_error:
        raise ToolError(value.output, structured=value.structured)
    fields: dict[str, Any] = {"metadata": dict(value.metadata)}
    if value.content:
        fields["content"] = value.content
    else:
        fields["text"] = value.output
    if value.structured is not None or not value.content:
        fields["structured"] = value.output if value.structured is None else value.structured
    return checked(InvocableResult(**fields))


def _part(item: object, index: int) -> ContentPart:
    if isinstance(item, PARTS):
        return item
    if isinstance(item, bytes | bytearray):
        return BlobPart(data=bytes(item))
    if isinstance(item, str):
        return TextPart(text=item)
    return StructuredPart(value=jsonable(item, f"/{index}"))


def checked(result: InvocableResult) -> InvocableResult:
    """The same result, known to be sendable. Raises `UnsendableResult`."""
    if result.text is not None:
        _text(result.text, "/text")
    for index, part in enumerate(result.content):
        if isinstance(part, TextPart | EmbeddedResource):
            _text(part.text or "", f"/content/{index}")
        elif isinstance(part, StructuredPart):
            jsonable(part.value, f"/content/{index}")
    if result.has_structured:
        plain = jsonable(result.structured)
        if plain != result.structured or result.structured is not plain:
            return result.model_copy(update={"structured": plain})
    return result


def describe_part(part: ContentPart) -> str:
    """A part as text for a model; a picture or a file is named, not shown."""
    match part:
        case TextPart():
            return part.text
        case StructuredPart():
            return to_json(part.value)
        case ImagePart() | AudioPart():
            return f"[{part.kind} {part.media_type}, {len(part.data)} bytes]"
        case BlobPart():
            size = "" if part.data is None else f", {len(part.data)} bytes"
            at = f" at {part.uri}" if part.uri else ""
            return f"[file {part.name or 'without a name'} ({part.media_type}{size}){at}]"
        case ResourceLink():
            return f"[resource {part.title or part.name or part.uri}: {part.uri}]"
        case EmbeddedResource():
            if part.text is not None:
                return part.text
            return f"[resource {part.uri} ({part.media_type or 'unknown type'}, {len(part.data or b'')} bytes)]"


def text_of(result: InvocableResult) -> str:
    """The text that a model reads: all of the data, each once."""
    if result.text is not None and not result.content:
        return result.text
    lines = [] if result.text is None else [result.text]
    lines += [describe_part(part) for part in result.content]
    if result.data is not None:
        lines.append(f"[data {result.data.media_type or 'of unknown type'} at {result.data.uri}]")
    if result.has_structured and result.text is None and not _says(lines, result.structured):
        lines.append(to_json(result.structured))
    return "\n".join(lines)


def _says(lines: list[str], structured: Json) -> bool:
    """Whether one of the texts is the structured value already, however it is spaced.

    MCP wraps what is no object as `{"result": ...}`; its text says what is inside.
    """
    inside: object = structured
    if isinstance(structured, dict) and structured.keys() == {"result"}:
        inside = cast("dict[str, object]", structured)["result"]
    for line in lines:
        if line in (structured, inside):
            return True
        if line[:1] in '{["-0123456789tfn':
            try:
                if json.loads(line) in (structured, inside):
                    return True
            except (ValueError, RecursionError):
                continue
    return False


def cut(text: str, limit: int) -> tuple[str, int]:
    """At most `limit` bytes of `text`, with a line that says what was cut; and how many bytes it had."""
    if len(text) * 4 <= limit:
        return text, len(text)
    data = text.encode()
    if len(data) <= limit:
        return text, len(data)
    kept = data[:limit].decode(errors="ignore")
    return f"{kept}\n[cut: {limit} of {len(data)} bytes shown]", len(data)


def content_of(result: InvocableResult, text: str) -> tuple[ContentPart, ...]:
    """All parts in order; what was only text or structured stands as one text part."""
    if not result.content:
        return (TextPart(text=text),)
    if result.text is not None:
        return (TextPart(text=result.text), *result.content)
    return result.content


def asked(suspension: Suspension) -> str:
    """A question as text, with how it is answered."""
    lines = [suspension.prompt]
    if suspension.url is not None:
        lines.append(suspension.url)
    lines.append(
        f"[it waits for an answer: bench.answer({suspension.id!r}, data=...), or anykit answer {suspension.id}]"
    )
    if suspension.schema is not None:
        lines.append(f"[the answer's schema: {to_json(suspension.schema)}]")
    return "\n".join(lines)


def tool_result(outcome: Outcome, *, limit: int = OUTPUT_LIMIT, metadata: MetadataMap | None = None) -> ToolResult:
    """A call's outcome as a tool result, its text at most `limit` bytes."""
    meta: MetadataMap = dict(metadata) if metadata else {}
    match outcome:
        case Completed(result):
            if result.metadata:
                meta = {**result.metadata, **meta}
            whole = text_of(result)
            text, size = cut(whole, limit)
            structured = result.structured
            if text is not whole:
                meta["truncated"] = {"shown_bytes": limit, "total_bytes": size}
                if not result.content:
                    structured = text if isinstance(structured, str) else None
            return ToolResult(
                output=text, content=content_of(result, text), structured=structured, metadata=meta, status="completed"
            )
        case Denied(message, reason, detail):
            meta.update(code=reason, detail=detail, retryable=False)
            return ToolResult(
                output=message, is_error=True, content=(TextPart(text=message),), metadata=meta, status="denied"
            )
        case Suspended(suspension):
            given = cast(object, suspension.data)
            if isinstance(given, dict):
                facts = cast("dict[str, Any]", given)
                meta = {**{key: value for key, value in facts.items() if key != "data"}, **meta}
            text = asked(suspension)
            meta.update(code="suspended", retryable=False)
            return ToolResult(
                output=text,
                is_error=True,
                content=(TextPart(text=text),),
                metadata=meta,
                status="suspended",
                suspension=suspension,
            )
        case Failed(code, message, retryable, detail, result):
            meta.update(code=code, retryable=retryable)
            if detail:
                meta["detail"] = detail
            text, _ = cut(message, limit)
            if result is not None and result.metadata:
                meta = {**result.metadata, **meta}
            return ToolResult(
                output=text,
                is_error=True,
                content=(TextPart(text=text),) if result is None or not result.content else result.content,
                structured=None if result is None else result.structured,
                metadata=meta,
                status="failed",
            )
