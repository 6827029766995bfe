"""How a call ends. Outcomes are values; exceptions are for the unexpected.

Outcome
├── Completed(result)                                  it ran and returned
├── Denied(message, detail)                            it was not allowed to run
├── Suspended(suspension)                              it waits for an answer
└── Failed(code, message, retryable, detail)           it could not run, or ran and failed
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from .calls import InvocableResult
from .names import Json, JsonObject, MetadataMap

SuspensionKind: TypeAlias = Literal["input", "authorization", "approval", "configuration"]


@dataclass(frozen=True, slots=True)
class Suspension:
    """A question that stands in the way of a result.

    `state` is the source's own (sealed before it leaves the process); with it a later process can go on.
    """

    id: str
    kind: SuspensionKind
    prompt: str
    schema: JsonObject | None = None
    """JSON Schema of the answer's `data`, where the asker gave one."""
    url: str | None = None
    """Where a person gives the answer, for what must not pass through us."""
    data: Json = None
    expires_at: float | None = None
    """Unix seconds."""
    state: Json = None

    def to_json(self) -> JsonObject:
        """What may leave the process: everything but `state`."""
        return {
            "id": self.id,
            "kind": self.kind,
            "prompt": self.prompt,
            "schema": self.schema,
            "url": self.url,
            "data": self.data,
            "expires_at": self.expires_at,
        }


@dataclass(frozen=True, slots=True)
class Question:
    """What a running call asks (`CapabilityContext.ask`)."""

    kind: SuspensionKind
    prompt: str
    schema: JsonObject | None = None
    url: str | None = None
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: `ok` False is a refusal."""

    ok: bool
    data: Json = None


FailureCode: TypeAlias = str
"""One of the codes below, or a source's own word."""

UNKNOWN_TOOL = "unknown_tool"
"""No tool of that name."""
INVALID_INPUT = "invalid_input"
"""The arguments do not fit; nothing ran."""
EXECUTION_FAILED = "execution_failed"
"""The tool says that it failed."""
INTERNAL = "internal"
"""The tool broke; the text says an id, the log the rest."""
INVALID_OUTPUT = "invalid_output"
"""The tool returned what cannot be sent, or not what its output schema promises."""
UNAVAILABLE = "unavailable"
"""The source is not reachable; nothing ran."""
TIMEOUT = "timeout"
BUSY = "busy"
"""Too much is running or queued already; nothing ran."""
CANCELLED = "cancelled"
UNKNOWN = "unknown"
"""Sent and lost: whether it ran is not known."""

NOT_CONFIGURED = "not_configured"
"""Denied: the toolkit is not configured for this caller."""
DISABLED = "disabled"
"""Denied: the tool or its toolkit is switched off."""
POLICY = "policy"
"""Denied: a rule says no."""


@dataclass(frozen=True, slots=True)
class Completed:
    """It ran and returned."""

    result: InvocableResult


@dataclass(frozen=True, slots=True)
class Denied:
    """It was not allowed to run."""

    message: str
    reason: str = POLICY
    detail: MetadataMap = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Suspended:
    """It waits for an answer."""

    suspension: Suspension


@dataclass(frozen=True, slots=True)
class Failed:
    """It could not run, or ran and failed."""

    code: FailureCode
    message: str
    retryable: bool = False
    """True where the same call may be sent again without a second side effect."""
    detail: MetadataMap = field(default_factory=dict[str, Any])
    result: InvocableResult | None = None
    """What a failing tool said beside its message: parts, structured data."""


Outcome: TypeAlias = Completed | Denied | Suspended | Failed
