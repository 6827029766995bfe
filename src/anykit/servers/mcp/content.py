"""Parts of results, resources and prompts as MCP spells them, and what a call came to."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from typing import Any, cast
from urllib.parse import quote

from anykit.capabilities import (
    AudioPart,
    BlobPart,
    Completed,
    ContentPart,
    DataReference,
    Denied,
    EmbeddedResource,
    Failed,
    ImagePart,
    InvocableResult,
    Json,
    JsonObject,
    MetadataMap,
    PromptContents,
    PromptDescriptor,
    ResourceContents,
    ResourceDescriptor,
    ResourceLink,
    ResourceTemplate,
    StructuredPart,
    TextPart,
)
from anykit.tools import OUTPUT_LIMIT, describe_part, to_json, tool_result

from .definitions import Offered

_PLAIN = Offered({}, None)


def call_result(outcome: Completed | Denied | Failed, tool: Offered | None, *, limit: int = OUTPUT_LIMIT) -> JsonObject:
    """What a call came to, as a `CallToolResult`. `tool` None is one that is listed no more."""
    shown = tool_result(outcome, limit=limit)
    result: InvocableResult | None = outcome.result if isinstance(outcome, Completed | Failed) else None
    answer: JsonObject = {"content": blocks(shown.content), "isError": shown.is_error}
    meta: JsonObject = {}
    if result is not None:
        if isinstance(theirs := result.metadata.get("_meta"), dict):
            meta |= cast(JsonObject, theirs)
        if result.data is not None:
            answer["content"].append(_reference(result.data))
    if shown.is_error:
        meta["anykit/code"] = shown.code
        meta["anykit/retryable"] = bool(shown.metadata.get("retryable"))
    if "truncated" in shown.metadata:
        meta["anykit/truncated"] = shown.metadata["truncated"]
    if result is not None and result.has_structured:
        value = (
            _uncut(shown.structured, result.structured, tool) if "truncated" in shown.metadata else result.structured
        )
        if value is not None or result.structured is None:
            # What a failing tool says is not what its schema promises.
            answer["structuredContent"] = (_PLAIN if shown.is_error or tool is None else tool).structured(value)
            if result.content and not shown.is_error and not _says(shown.content, value):
                # Clients that know no structured content read the text only.
                answer["content"].append({"type": "text", "text": to_json(value)})
    if meta:
        answer["_meta"] = meta
    return answer


def _uncut(cut: Json, whole: Json, tool: Offered | None) -> Json:
    """What is sent of a value whose text was too long: all of it where an output schema promises it, but for a text."""
    promised = tool is not None and tool.wraps is not None
    return whole if promised and not isinstance(whole, str) else cut


def _says(parts: Iterable[ContentPart], structured: Json) -> bool:
    """Whether one of the texts is the structured value already, however it is spaced."""
    for part in parts:
        if not isinstance(part, TextPart):
            continue
        if part.text == structured:
            return True
        if part.text[:1] in '{["-0123456789tfn':
            try:
                if json.loads(part.text) == structured:
                    return True
            except (ValueError, RecursionError):
                continue
    return False


def failure(message: str, code: str, *, retryable: bool = False) -> JsonObject:
    """A call that did not come to a result, and why."""
    return call_result(Failed(code, message, retryable), None)


def blocks(parts: Sequence[ContentPart]) -> list[JsonObject]:
    """Content blocks, in order."""
    return [block(part, index) for index, part in enumerate(parts)]


def block(part: ContentPart, index: int = 0) -> JsonObject:
    """One content block."""
    match part:
        case TextPart():
            made: JsonObject = {"type": "text", "text": part.text}
        case ImagePart() | AudioPart():
            made = {"type": part.kind, "data": _base64(part.data), "mimeType": part.media_type}
        case StructuredPart():
            made = {"type": "text", "text": to_json(part.value)}
        case BlobPart(data=bytes()):
            uri = part.uri or f"anykit://part/{quote(part.name or str(index), safe='')}"
            made = {"type": "resource", "resource": _blob(uri, part.media_type, cast(bytes, part.data))}
        case BlobPart(uri=str()):
            name = part.name or cast(str, part.uri).rpartition("/")[2] or "file"
            made = {"type": "resource_link", "uri": part.uri, "name": name, "mimeType": part.media_type}
        case ResourceLink():
            made = _without_none(
                type="resource_link",
                uri=part.uri,
                name=part.name or part.uri.rpartition("/")[2] or "resource",
                title=part.title,
                description=part.description,
                mimeType=part.media_type,
                size=part.size,
            )
        case EmbeddedResource():
            made = {"type": "resource", "resource": _embedded(part)}
        case _:
            made = {"type": "text", "text": describe_part(part)}
    return _with_metadata(made, part.metadata)


def _with_metadata(made: JsonObject, metadata: MetadataMap) -> JsonObject:
    for name in ("annotations", "_meta"):
        if isinstance(said := metadata.get(name), dict):
            made[name] = said
    return made


def _reference(data: DataReference) -> JsonObject:
    return _without_none(
        type="resource_link",
        uri=data.uri,
        name=data.uri.rpartition("/")[2] or "data",
        mimeType=data.media_type,
        size=data.size,
    )


def _embedded(part: EmbeddedResource) -> JsonObject:
    if part.data is not None:
        return _blob(part.uri, part.media_type, part.data)
    return _without_none(uri=part.uri, mimeType=part.media_type, text=part.text or "")


def _blob(uri: str, media_type: str | None, data: bytes) -> JsonObject:
    return _without_none(uri=uri, mimeType=media_type, blob=_base64(data))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _without_none(**fields: Any) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}


# resources


def resource(descriptor: ResourceDescriptor) -> JsonObject:
    """A resource as it is listed."""
    return _with_source_meta(
        _without_none(
            uri=descriptor.id,
            name=descriptor.name,
            title=descriptor.title,
            description=descriptor.description,
            mimeType=descriptor.media_type,
            size=descriptor.size,
        ),
        descriptor.metadata,
    )


def template(one: ResourceTemplate) -> JsonObject:
    """A family of resources as it is listed."""
    return _with_source_meta(
        _without_none(
            uriTemplate=one.uri_template,
            name=one.name,
            title=one.title,
            description=one.description,
            mimeType=one.media_type,
        ),
        one.metadata,
    )


def _with_source_meta(made: JsonObject, metadata: MetadataMap) -> JsonObject:
    said: object = metadata.get("mcp")
    theirs: object = cast(JsonObject, said).get("_meta") if isinstance(said, dict) else None
    if isinstance(theirs, dict):
        made["_meta"] = theirs
    return made


def contents(read: ResourceContents) -> list[JsonObject]:
    """A resource as it is read."""
    return [_contents_of(read.id, part) for part in read.parts]


def _contents_of(uri: str, part: ContentPart) -> JsonObject:
    match part:
        case TextPart():
            made: JsonObject = {"uri": uri, "mimeType": part.media_type, "text": part.text}
        case StructuredPart():
            made = {"uri": uri, "mimeType": "application/json", "text": to_json(part.value)}
        case EmbeddedResource():
            made = _embedded(part)
        case ImagePart() | AudioPart():
            made = _blob(uri, part.media_type, part.data)
        case BlobPart(data=bytes()):
            made = _blob(uri, part.media_type, cast(bytes, part.data))
        case _:
            made = {"uri": uri, "mimeType": "text/plain", "text": describe_part(part)}
    if isinstance(meta := part.metadata.get("_meta"), dict):
        made["_meta"] = meta
    return made


# prompts


def prompt(descriptor: PromptDescriptor) -> JsonObject:
    """A prompt as it is listed."""
    made = _without_none(
        name=descriptor.id,
        title=descriptor.title,
        description=descriptor.description or descriptor.title or descriptor.id.replace("_", " "),
    )
    if descriptor.arguments:
        made["arguments"] = [
            _without_none(name=one.name, description=one.description, required=one.required)
            for one in descriptor.arguments
        ]
    return _with_source_meta(made, descriptor.metadata)


def prompt_result(filled: PromptContents) -> JsonObject:
    """A prompt, filled in. A message of MCP has one part, and is the user's or the assistant's."""
    messages = [
        {"role": "assistant" if message.role == "assistant" else "user", "content": block(part, index)}
        for message in filled.messages
        for index, part in enumerate(message.content)
    ]
    return _without_none(description=filled.description, messages=messages)
