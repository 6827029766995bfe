"""Content parts: what a result, a resource or a prompt is made of. Order and media types are kept end to end."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, PlainSerializer, PlainValidator

from .model import Value
from .names import Json, MetadataMap


def _from_base64(value: Any) -> bytes:
    """Bytes are themselves; a string is base64."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error as error:
            raise ValueError("not base64") from error
    raise ValueError("bytes or a base64 string expected")


def _to_base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


Bytes = Annotated[
    bytes,
    PlainValidator(_from_base64, json_schema_input_type=str),
    PlainSerializer(_to_base64, return_type=str, when_used="json"),
]
"""Bytes in Python, base64 in JSON."""


class TextPart(Value):
    """Text for a reader."""

    kind: Literal["text"] = "text"
    text: str
    media_type: str = "text/plain"
    metadata: MetadataMap = Field(default_factory=dict)


class ImagePart(Value):
    """A picture, with its bytes."""

    kind: Literal["image"] = "image"
    data: Bytes
    media_type: str = "image/png"
    metadata: MetadataMap = Field(default_factory=dict)


class AudioPart(Value):
    """A sound, with its bytes."""

    kind: Literal["audio"] = "audio"
    data: Bytes
    media_type: str = "audio/wav"
    metadata: MetadataMap = Field(default_factory=dict)


class BlobPart(Value):
    """A file: its bytes, or the `uri` where a peer says they are. The uri is never fetched by itself."""

    kind: Literal["blob"] = "blob"
    data: Bytes | None = None
    uri: str | None = None
    name: str | None = None
    media_type: str = "application/octet-stream"
    metadata: MetadataMap = Field(default_factory=dict)


class ResourceLink(Value):
    """A pointer to a resource that can be read with its provider."""

    kind: Literal["resource_link"] = "resource_link"
    uri: str
    name: str = ""
    title: str | None = None
    description: str | None = None
    media_type: str | None = None
    size: int | None = None
    """Bytes, where known."""
    metadata: MetadataMap = Field(default_factory=dict)


class EmbeddedResource(Value):
    """A resource's contents, sent along: `text` or `data`."""

    kind: Literal["resource"] = "resource"
    uri: str
    text: str | None = None
    data: Bytes | None = None
    media_type: str | None = None
    metadata: MetadataMap = Field(default_factory=dict)


class StructuredPart(Value):
    """A JSON value."""

    kind: Literal["structured"] = "structured"
    value: Json
    metadata: MetadataMap = Field(default_factory=dict)


ContentPart: TypeAlias = Annotated[
    TextPart | ImagePart | AudioPart | BlobPart | ResourceLink | EmbeddedResource | StructuredPart,
    Field(discriminator="kind"),
]
