"""Prompt messages in the shape of a model provider's request.

    openai       {"role", "content": text or [{"type": "text"}, {"type": "image_url"}, {"type": "input_audio"}]}
    anthropic    {"role", "content": [{"type": "text"}, {"type": "image", "source"}, {"type": "document", "source"}]}
    gemini       {"role": "user" | "model", "parts": [{"text"}, {"inline_data": {"mime_type", "data"}}]}

What a provider has no part for is named in a text. Text is cut where the bound is reached, and says so.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

from anykit.capabilities import (
    AudioPart,
    BlobPart,
    ContentPart,
    EmbeddedResource,
    ImagePart,
    JsonObject,
    PromptMessage,
)
from anykit.tools import cut, describe_part

Format: TypeAlias = Literal["openai", "anthropic", "gemini"]
FORMATS: tuple[str, ...] = get_args(Format)

_ANTHROPIC_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


def shaped_messages(messages: Sequence[PromptMessage], format: Format, *, limit: int) -> list[JsonObject]:
    """`messages` for a provider, in order, at most `limit` bytes of content in all.

    Raises `ValueError` for an unknown format.
    """
    if format not in FORMATS:
        raise ValueError(f"no format {format!r}; known: {', '.join(FORMATS)}")
    room = limit
    shaped: list[JsonObject] = []
    for message in messages:
        parts: list[JsonObject] = []
        for part in message.content:
            given, size = _part(part, format, room)
            room = max(0, room - size)
            parts.append(given)
        shaped.append(_message(message.role, parts, format))
    return shaped


def _message(role: str, parts: list[JsonObject], format: Format) -> JsonObject:
    if format == "gemini":
        return {"role": "model" if role == "assistant" else "user", "parts": parts}
    if format == "anthropic":
        return {"role": "assistant" if role == "assistant" else "user", "content": parts}
    if len(parts) == 1 and parts[0]["type"] == "text":
        return {"role": role, "content": parts[0]["text"]}
    return {"role": role, "content": parts}


def _part(part: ContentPart, format: Format, room: int) -> tuple[JsonObject, int]:
    """The part as the provider takes it, and how many bytes of the bound it uses."""
    if isinstance(part, ImagePart | AudioPart | BlobPart | EmbeddedResource):
        data = part.data
        if data is not None and len(data) <= room:
            media_type = part.media_type or "application/octet-stream"
            inline = _inline(media_type, base64.b64encode(data).decode("ascii"), format)
            if inline is not None:
                return inline, len(data)
    whole = describe_part(part)
    text, size = cut(whole, room)
    return ({"text": text} if format == "gemini" else {"type": "text", "text": text}), min(size, room)


def _inline(media_type: str, data: str, format: Format) -> JsonObject | None:
    source: dict[str, Any] = {"type": "base64", "media_type": media_type, "data": data}
    if format == "gemini":
        return {"inline_data": {"mime_type": media_type, "data": data}}
    if format == "anthropic":
        if media_type in _ANTHROPIC_IMAGES:
            return {"type": "image", "source": source}
        return {"type": "document", "source": source} if media_type == "application/pdf" else None
    if media_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": f"data:{media_type};base64,{data}"}}
    if media_type in _AUDIO:
        return {"type": "input_audio", "input_audio": {"data": data, "format": _AUDIO[media_type]}}
    return None
