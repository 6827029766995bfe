"""What is offered: the descriptions of invocables, resources and prompts."""

from __future__ import annotations

from pydantic import Field

from .model import Value
from .names import CapabilityName, JsonObject, MetadataMap, PromptId, ResourceId


class Annotations(Value):
    """Hints about an invocable's behaviour (MCP 2026-07-28, ToolAnnotations). None is unknown; hints are never proof."""

    title: str | None = None
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


class InvocableSpec(Value):
    """A named request/response operation (capability-layer design, core concept 1)."""

    name: CapabilityName
    description: str
    input_schema: JsonObject
    """JSON Schema of the input; its root describes an object."""
    metadata: MetadataMap = Field(default_factory=dict)
    annotations: Annotations | None = None
    output_schema: JsonObject | None = None


class ResourceDescriptor(Value):
    """An addressable artefact that can be read (core concept 2)."""

    id: ResourceId
    name: str
    title: str | None = None
    description: str | None = None
    media_type: str | None = None
    size: int | None = None
    """Bytes, where known."""
    metadata: MetadataMap = Field(default_factory=dict)


class ResourceTemplate(Value):
    """A family of resources: an RFC 6570 URI template."""

    uri_template: str
    name: str
    title: str | None = None
    description: str | None = None
    media_type: str | None = None
    metadata: MetadataMap = Field(default_factory=dict)


class PromptArgument(Value):
    """One argument of a prompt."""

    name: str
    description: str | None = None
    required: bool = False


class PromptDescriptor(Value):
    """A parameterised prompt (core concept 3)."""

    id: PromptId
    title: str | None = None
    description: str | None = None
    arguments: tuple[PromptArgument, ...] = ()
    metadata: MetadataMap = Field(default_factory=dict)
