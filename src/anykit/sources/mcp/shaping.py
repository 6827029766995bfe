"""From MCP's words to the layer's. Typed by the SDK, so it comes in with `session.py`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import mcp_types as types
from pydantic import ValidationError

from anykit.capabilities import (
    Annotations,
    AudioPart,
    BlobPart,
    ContentPart,
    EmbeddedResource,
    ExecutionFailed,
    ImagePart,
    InvocableResult,
    InvocableSpec,
    Json,
    JsonObject,
    LogLevel,
    MetadataMap,
    PromptArgument,
    PromptContents,
    PromptDescriptor,
    PromptMessage,
    ResourceContents,
    ResourceDescriptor,
    ResourceLink,
    ResourceTemplate,
    TextPart,
)
from anykit.sources.hostile import Malformed, check_name, clean_text

from .mending import STRUCTURED, reports_of
from .wrapping import inside

MAX_ERROR: Final = 16_384
"""Characters of a failing tool's text."""
MAX_LOG: Final = 4_096
_PROTOCOLS: Final = ("anykit/", "io.modelcontextprotocol/")
"""Keys of a result's `_meta` that say nothing about the result."""
_LEVELS: Final[Mapping[str, LogLevel]] = {
    "debug": "debug",
    "info": "info",
    "notice": "info",
    "warning": "warning",
    "error": "error",
    "critical": "error",
    "alert": "error",
    "emergency": "error",
}


# what is listed


def spec_of(server: str, tool: types.Tool) -> InvocableSpec:
    """The spec of a listed tool; names and schemas were seen to before."""
    hints = tool.annotations
    title = tool.title or (None if hints is None else hints.title)
    metadata: JsonObject = {"server": server, "tool": tool.name}
    if tool.meta:
        metadata["_meta"] = dict(tool.meta)
    output_schema, wrapped = inside(tool.output_schema)
    if wrapped:
        metadata["wrapped"] = True
    return InvocableSpec(
        name=tool.name,
        description=clean_text(tool.description or ""),
        input_schema=tool.input_schema,
        output_schema=output_schema,
        annotations=Annotations(
            title=None if title is None else clean_text(title, 256),
            read_only=None if hints is None else hints.read_only_hint,
            destructive=None if hints is None else hints.destructive_hint,
            idempotent=None if hints is None else hints.idempotent_hint,
            open_world=None if hints is None else hints.open_world_hint,
        ),
        metadata={"mcp": metadata},
    )


def resource_of(resource: types.Resource) -> ResourceDescriptor:
    """A listed resource. Raises `Malformed`."""
    return ResourceDescriptor(
        id=_uri(resource.uri),
        name=clean_text(resource.name, 256),
        title=_text(resource.title, 256),
        description=_text(resource.description),
        media_type=_text(resource.mime_type, 256),
        size=resource.size,
        metadata=_metadata(resource.meta),
    )


def template_of(template: types.ResourceTemplate) -> ResourceTemplate:
    """A listed template. Raises `Malformed`."""
    return ResourceTemplate(
        uri_template=_uri(template.uri_template),
        name=clean_text(template.name, 256),
        title=_text(template.title, 256),
        description=_text(template.description),
        media_type=_text(template.mime_type, 256),
        metadata=_metadata(template.meta),
    )


def prompt_of(prompt: types.Prompt) -> PromptDescriptor:
    """A listed prompt. Raises `Malformed`."""
    return PromptDescriptor(
        id=check_name(prompt.name),
        title=_text(prompt.title, 256),
        description=_text(prompt.description),
        arguments=tuple(
            PromptArgument(
                name=check_name(argument.name),
                description=_text(argument.description),
                required=bool(argument.required),
            )
            for argument in prompt.arguments or ()
        ),
        metadata=_metadata(prompt.meta),
    )


def _uri(uri: str) -> str:
    if len(uri) > 4_096:
        raise Malformed("its URI is longer than 4096 characters")
    if not uri.isascii() or not uri.isprintable():
        check_name(uri[:256])
    return uri


def _text(text: str | None, limit: int = 16_384) -> str | None:
    return None if text is None else clean_text(text, limit)


def _metadata(meta: Mapping[str, Any] | None) -> MetadataMap:
    return {"mcp": {"_meta": dict(meta)}} if meta else {}


# results


def result_of(tool: str, result: types.CallToolResult) -> InvocableResult:
    """What a tool returned. Raises `ExecutionFailed`, with all of it, where the server says that it is an error."""
    parts = tuple(part_of(block) for block in result.content)
    metadata: MetadataMap = {}
    meta = dict(result.meta or {})
    fields: dict[str, Any] = {}
    if "structured_content" in result.model_fields_set:
        fields["structured"] = result.structured_content
    elif STRUCTURED in meta:
        fields["structured"] = meta[STRUCTURED]
    if left_out := reports_of(meta):
        metadata["left_out"] = [f"{name}: {reason}" for name, reason in left_out]
    if theirs := {key: value for key, value in meta.items() if not key.startswith(_PROTOCOLS)}:
        metadata["_meta"] = theirs
    shaped = InvocableResult(content=parts, metadata=metadata, **fields)
    if result.is_error:
        raise ExecutionFailed(_reason(tool, parts, fields.get("structured")), result=shaped)
    if not parts and not shaped.has_structured:
        return shaped.model_copy(update={"text": ""})
    return shaped


def _reason(tool: str, parts: Iterable[ContentPart], structured: Json) -> str:
    said = "\n".join(part.text for part in parts if isinstance(part, TextPart) and part.text.strip())
    if not said and structured is not None:
        said = json.dumps(structured, ensure_ascii=False, separators=(",", ":"))
    return clean_text(said, MAX_ERROR) or f"{tool} failed and does not say why"


def part_of(block: types.ContentBlock) -> ContentPart:
    """A part of a result or a prompt, with its media type; bytes that are not base64 become a text that says so."""
    metadata = _part_metadata(block)
    try:
        match block:
            case types.TextContent():
                return TextPart(text=block.text, metadata=metadata)
            case types.ImageContent():
                return ImagePart(data=_base64(block.data), media_type=block.mime_type, metadata=metadata)
            case types.AudioContent():
                return AudioPart(data=_base64(block.data), media_type=block.mime_type, metadata=metadata)
            case types.ResourceLink():
                return ResourceLink(
                    uri=block.uri,
                    name=block.name,
                    title=block.title,
                    description=block.description,
                    media_type=block.mime_type,
                    size=block.size,
                    metadata=metadata,
                )
            case types.EmbeddedResource():
                return _embedded(block.resource, metadata)
    except ValidationError:
        return TextPart(text=f"[a part of the kind {block.type!r} is left out: its data is not base64]")


def _embedded(
    contents: types.TextResourceContents | types.BlobResourceContents, metadata: MetadataMap | None = None
) -> EmbeddedResource:
    given: dict[str, Any] = {"uri": contents.uri, "media_type": contents.mime_type, "metadata": metadata or {}}
    if isinstance(contents, types.TextResourceContents):
        return EmbeddedResource(text=contents.text, **given)
    return EmbeddedResource(data=_base64(contents.blob), **given)


def _base64(data: str) -> Any:
    """The data as the parts take it: without line breaks and padded, as many encoders leave it."""
    if "\n" in data or "\r" in data or len(data) % 4:
        data = "".join(data.split()).rstrip("=")
        data += "=" * (-len(data) % 4)
    return data


def _part_metadata(block: types.ContentBlock) -> MetadataMap:
    metadata: MetadataMap = {}
    if block.annotations is not None:
        metadata["annotations"] = block.annotations.model_dump(mode="json", by_alias=True, exclude_none=True)
    if block.meta:
        metadata["_meta"] = dict(block.meta)
    return metadata


def contents_of(uri: str, result: types.ReadResourceResult) -> ResourceContents:
    """What reading gave: one text or blob, or embedded resources where one read gives several."""
    contents = result.contents
    if len(contents) == 1 and contents[0].uri == uri:
        [only] = contents
        metadata = {"_meta": dict(only.meta)} if only.meta else {}
        if isinstance(only, types.TextResourceContents):
            part: ContentPart = TextPart(text=only.text, media_type=only.mime_type or "text/plain", metadata=metadata)
            return ResourceContents(id=uri, parts=(part,))
        try:
            media_type = only.mime_type or "application/octet-stream"
            blob = BlobPart(data=_base64(only.blob), uri=uri, media_type=media_type, metadata=metadata)
        except ValidationError:
            raise ExecutionFailed(f"{uri[:200]}: its data is not base64", code="invalid_output") from None
        return ResourceContents(id=uri, parts=(blob,))
    parts: list[ContentPart] = []
    for one in contents:
        try:
            parts.append(_embedded(one))
        except ValidationError:
            parts.append(TextPart(text=f"[{one.uri} is left out: its data is not base64]"))
    return ResourceContents(id=uri, parts=tuple(parts))


def prompted_of(result: types.GetPromptResult) -> PromptContents:
    """A prompt, filled in."""
    messages = (PromptMessage(role=one.role, content=(part_of(one.content),)) for one in result.messages)
    return PromptContents(messages=tuple(messages), description=_text(result.description))


def log_of(params: types.LoggingMessageNotificationParams) -> tuple[LogLevel, str]:
    """A log line's level and text."""
    data: Any = params.data
    if isinstance(data, dict):
        said = {key: value for key, value in cast(JsonObject, data).items() if value is not None}
        data = said.get("msg", said.get("message")) if len(said) == 1 and said.keys() & {"msg", "message"} else said
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
    if params.logger:
        text = f"{params.logger}: {text}"
    return _LEVELS.get(params.level, "info"), clean_text(text, MAX_LOG)
