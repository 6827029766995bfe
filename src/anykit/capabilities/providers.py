"""The seams (capability-layer design, core concepts 1 to 4). Three shapes that stay three; a provider may offer all.

Most people want a tool, not this: a tool is an invocable with a model-facing schema and permissions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import (
    Any,
    Generic,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    runtime_checkable,
)

from .calls import InvocableRequest, InvocableResult
from .content import ContentPart
from .context import CapabilityContext
from .model import Value
from .names import JsonObject, PromptId, ResourceId
from .outcomes import Suspension
from .specs import InvocableSpec, PromptDescriptor, ResourceDescriptor, ResourceTemplate

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """Part of a list; `next_cursor` asks for the rest, None ends it."""

    items: Sequence[Item]
    next_cursor: str | None = None


class ResourceContents(Value):
    """A resource as read: one or more parts (`text`, `blob`, or embedded resources where one read gives several)."""

    id: ResourceId
    parts: tuple[ContentPart, ...]


class PromptMessage(Value):
    """One message of a prompt."""

    role: Literal["user", "assistant", "system"]
    content: tuple[ContentPart, ...]


class PromptContents(Value):
    """A prompt, filled in."""

    messages: tuple[PromptMessage, ...]
    description: str | None = None


@runtime_checkable
class Invocable(Protocol):
    """A named request/response operation."""

    @property
    def spec(self) -> InvocableSpec:
        """What it is called and takes."""
        ...

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult | Suspension:
        """Run it once.

        Raises `CapabilityError`: `Unavailable`, `InvalidInput` or `ExecutionFailed`.
        """
        ...


@runtime_checkable
class ResourceProvider(Protocol):
    """Addressable artefacts that can be listed and read."""

    async def list_resources(self, cursor: str | None = None) -> Page[ResourceDescriptor]:
        """One page of what there is. Raises `CapabilityError`."""
        ...

    async def read_resource(self, id: ResourceId, context: CapabilityContext) -> ResourceContents:
        """Read one. Raises `InvalidInput` for an id that it does not have."""
        ...


@runtime_checkable
class PromptProvider(Protocol):
    """Parameterised helpers that build prompts."""

    async def list_prompts(self, cursor: str | None = None) -> Page[PromptDescriptor]:
        """One page of what there is. Raises `CapabilityError`."""
        ...

    async def get_prompt(self, id: PromptId, args: JsonObject, context: CapabilityContext) -> PromptContents:
        """Fill one in. Raises `InvalidInput` for an id that it does not have, or wrong arguments."""
        ...


@runtime_checkable
class CapabilityProvider(Protocol):
    """Everything that one integration offers, by shape."""

    def invocables(self) -> Sequence[Invocable]:
        """Operations."""
        ...

    def resources(self) -> Sequence[ResourceProvider]:
        """Readable things."""
        ...

    def prompts(self) -> Sequence[PromptProvider]:
        """Prompts."""
        ...


# What a provider may also be.


@runtime_checkable
class Templated(Protocol):
    """A resource provider whose resources come in families."""

    async def list_templates(self, cursor: str | None = None) -> Page[ResourceTemplate]:
        """One page of URI templates."""
        ...


@runtime_checkable
class Subscribable(Protocol):
    """A resource provider that tells when a resource changes."""

    async def subscribe_resource(self, id: ResourceId, callback: Callable[[ResourceId], None]) -> Callable[[], None]:
        """Call back on each change until the returned function is called."""
        ...


@runtime_checkable
class Completing(Protocol):
    """A prompt or resource provider that completes arguments."""

    async def complete(
        self, reference: str, argument: str, value: str, context: CapabilityContext
    ) -> tuple[Sequence[str], bool]:
        """Proposals for `argument` of the prompt id or URI template `reference`, and whether there are more."""
        ...


ConnectionStatus: TypeAlias = Literal["disabled", "connecting", "ready", "failed", "closed"]


@dataclass(frozen=True, slots=True)
class State:
    """How a connected provider is; times are Unix seconds."""

    status: ConnectionStatus
    reason: str = ""
    since: float | None = None
    retry_at: float | None = None
    detail: dict[str, Any] = field(default_factory=dict[str, Any])


@runtime_checkable
class Connected(Protocol):
    """A provider with a life: it connects, may fail, and comes back."""

    @property
    def state(self) -> State:
        """How it is now."""
        ...

    async def start(self) -> None:
        """Begin to connect. Returns at once; the verdict comes through `state` and `subscribe`."""
        ...

    async def close(self) -> None:
        """End it, bounded in time; may be called twice."""
        ...

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back on the loop's thread when state or offer changed, until the returned function is called."""
        ...
