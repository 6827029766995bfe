"""One call as data: the request that goes in and the result that comes out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from .content import ContentPart
from .model import Value
from .names import Json, JsonObject, MetadataMap, SessionId, TurnId


@dataclass(frozen=True, slots=True)
class Resume:
    """Goes on with a suspended call: the `state` that its suspension carried and the answer given."""

    state: Json
    answer: Any
    """An `Answer`."""


@dataclass(frozen=True, slots=True)
class InvocableRequest:
    """What a caller asks of an invocable."""

    input: JsonObject
    call_id: str
    session_id: SessionId | None = None
    turn_id: TurnId | None = None
    metadata: MetadataMap = field(default_factory=dict[str, Any])
    idempotency_key: str | None = None
    resume: Resume | None = None


class DataReference(Value):
    """A result that lies elsewhere: a URI that its reader may fetch."""

    uri: str
    media_type: str | None = None
    size: int | None = None
    """Bytes, where known."""


class InvocableResult(Value):
    """What an invocable returns: `text`, `structured` JSON, `content` parts or a `data` reference, and any mix of them.

    A `structured` that was given counts even when it is None, so that null, "", [] and 0 stay apart
    (`has_structured`).
    """

    text: str | None = None
    structured: Json = None
    content: tuple[ContentPart, ...] = ()
    data: DataReference | None = None
    metadata: MetadataMap = Field(default_factory=dict)

    @property
    def has_structured(self) -> bool:
        """Whether a structured value was given, be it null."""
        return "structured" in self.model_fields_set
