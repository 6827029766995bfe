"""A result as the pieces that frameworks take: texts, and pictures, sounds and files with their bytes, in order."""

from __future__ import annotations

import base64
import mimetypes
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import TypeAdapter

from anykit.capabilities import AudioPart, BlobPart, ContentPart, EmbeddedResource, ImagePart, JsonObject
from anykit.tools import ToolResult, describe_part

MEDIA_LIMIT = 8 * 1024 * 1024
"""Bytes of pictures, sounds and files of one result that go to a model; what is beyond is named."""

_PARTS: TypeAdapter[tuple[ContentPart, ...]] = TypeAdapter(tuple[ContentPart, ...])


@dataclass(frozen=True, slots=True)
class Media:
    """Something that is not text."""

    data: bytes
    media_type: str
    name: str | None = None

    @property
    def base64(self) -> str:
        """The bytes as text."""
        return base64.b64encode(self.data).decode("ascii")

    @property
    def file_name(self) -> str:
        """What it is called, or may be called."""
        return self.name or f"file{mimetypes.guess_extension(self.media_type.partition(';')[0].strip()) or ''}"

    @property
    def is_image(self) -> bool:
        """Whether it is to be looked at."""
        return self.media_type.startswith("image/")

    @property
    def data_url(self) -> str:
        """All of it as a URL (RFC 2397)."""
        return f"data:{self.media_type};base64,{self.base64}"


Piece: TypeAlias = str | Media


def pieces_of(result: ToolResult) -> list[Piece]:
    """The result's pieces; without anything but text that is its `output` alone."""
    room = MEDIA_LIMIT
    media: list[Media | None] = []
    for part in result.content:
        found = _media(part)
        if found is not None and len(found.data) > room:
            found = None
        room -= 0 if found is None else len(found.data)
        media.append(found)
    if not any(media):
        return [result.output]
    texts = [describe_part(part) for part in result.content]
    told = "\n".join(texts)
    if not result.output.startswith(told):  # cut, or in other words: then it stands before what belongs to it
        return [result.output, *(one for one in media if one is not None)]
    pieces: list[Piece] = [text if one is None else one for text, one in zip(texts, media, strict=True)]
    rest = result.output[len(told) :].strip("\n")
    return [*pieces, rest] if rest else pieces


def _media(part: ContentPart) -> Media | None:
    match part:
        case ImagePart() | AudioPart():
            return Media(part.data, part.media_type)
        case BlobPart() if part.data is not None:
            return Media(part.data, part.media_type, part.name)
        case EmbeddedResource() if part.data is not None and part.text is None:
            return Media(part.data, part.media_type or "application/octet-stream", part.uri.rpartition("/")[2] or None)
        case _:
            return None


def plain(result: ToolResult) -> JsonObject:
    """The whole result as plain JSON, for a program beside the model: it can be stored and read back anywhere."""
    given: Any = {
        "status": result.status,
        "structured": result.structured,
        "content": _PARTS.dump_python(result.content, mode="json"),
        "metadata": result.metadata,
        "suspension": None if result.suspension is None else result.suspension.to_json(),
    }
    return given
