"""A provider in memory that offers all three shapes, in pages, and connects, fails and changes as a test wants."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from anykit.capabilities import (
    BlobPart,
    CapabilityContext,
    ConnectionStatus,
    Fault,
    InvalidInput,
    Invocable,
    InvocableRequest,
    InvocableResult,
    InvocableSpec,
    JsonObject,
    Page,
    PromptArgument,
    PromptContents,
    PromptDescriptor,
    PromptMessage,
    PromptProvider,
    ResourceContents,
    ResourceDescriptor,
    ResourceProvider,
    ResourceTemplate,
    State,
    Suspension,
    TextPart,
    Unavailable,
)

Item = TypeVar("Item")
Answer: TypeAlias = InvocableResult | Suspension
Behaviour: TypeAlias = Callable[[InvocableRequest, CapabilityContext], Awaitable[Answer]]
"""What an operation does with a call."""


async def echo(request: InvocableRequest, context: CapabilityContext) -> InvocableResult:
    """Answer with the input."""
    return InvocableResult(structured=request.input)


class MemoryInvocable:
    """An operation: a spec and what it does. `calls` holds the requests that it got."""

    def __init__(self, spec: InvocableSpec, behaviour: Behaviour, alive: Callable[[], None]) -> None:
        self.spec = spec
        self.calls: list[InvocableRequest] = []
        self._behaviour = behaviour
        self._alive = alive

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> Answer:
        """See `Invocable`."""
        self._alive()
        self.calls.append(request)
        return await self._behaviour(request, context)


class MemoryProvider:
    """Tools, resources and prompts through one provider, as an MCP server would offer them.

        provider = MemoryProvider()
        provider.add_tool("lookup", {"type": "object", "properties": {"key": {"type": "string"}}})
        provider.add_resource("memo://1", "text")
        provider.add_prompt("review", "Review {code}")

    `go` changes its state; while it is not ready, calling, listing and reading raise `Unavailable`. Lists come in pages of
    `page_size`.
    """

    def __init__(self, name: str = "memory", *, page_size: int = 2) -> None:
        self.name = name
        self.page_size = page_size
        self.starts = 0
        self.start_as: ConnectionStatus = "ready"
        """The state that `start` brings about."""
        self.tools: dict[str, MemoryInvocable] = {}
        self._resources: dict[str, tuple[ResourceDescriptor, str | bytes]] = {}
        self._templates: dict[str, tuple[ResourceTemplate, Callable[[Mapping[str, str]], str]]] = {}
        self._prompts: dict[str, tuple[PromptDescriptor, str]] = {}
        self._callbacks: list[Callable[[], None]] = []
        self._watchers: dict[str, list[Callable[[str], None]]] = {}
        self._state = State("connecting", "not started", time.time())

    # what it offers

    def add_tool(
        self,
        name: str,
        input_schema: JsonObject | None = None,
        behaviour: Behaviour = echo,
        *,
        description: str = "",
        **fields: Any,
    ) -> MemoryInvocable:
        """Offer an operation; `fields` are more fields of its spec."""
        schema = input_schema if input_schema is not None else {"type": "object"}
        spec = InvocableSpec(name=name, description=description, input_schema=schema, **fields)
        self.tools[name] = MemoryInvocable(spec, behaviour, self._alive)
        self._changed()
        return self.tools[name]

    def remove_tool(self, name: str) -> None:
        """Offer it no more."""
        del self.tools[name]
        self._changed()

    def add_resource(self, uri: str, contents: str | bytes, *, name: str = "", media_type: str | None = None) -> None:
        """Offer a resource, or change it; those who watch it are told."""
        descriptor = ResourceDescriptor(id=uri, name=name or uri, media_type=media_type, size=len(contents))
        self._resources[uri] = (descriptor, contents)
        for watcher in list(self._watchers.get(uri, ())):
            watcher(uri)
        self._changed()

    def add_template(self, uri_template: str, text: Callable[[Mapping[str, str]], str], *, name: str = "") -> None:
        """Offer a family of resources; `text` gives one from the values in its URI."""
        self._templates[uri_template] = (ResourceTemplate(uri_template=uri_template, name=name or uri_template), text)
        self._changed()

    def add_prompt(self, name: str, text: str, *, description: str = "") -> None:
        """Offer a prompt; each `{name}` in `text` is a required argument."""
        arguments = tuple(PromptArgument(name=one, required=True) for one in dict.fromkeys(_names_in(text)))
        self._prompts[name] = (PromptDescriptor(id=name, description=description or None, arguments=arguments), text)
        self._changed()

    # CapabilityProvider

    def invocables(self) -> Sequence[Invocable]:
        """See `CapabilityProvider`."""
        return tuple(self.tools.values())

    def resources(self) -> Sequence[ResourceProvider]:
        """See `CapabilityProvider`."""
        return (self,) if self._resources or self._templates else ()

    def prompts(self) -> Sequence[PromptProvider]:
        """See `CapabilityProvider`."""
        return (self,) if self._prompts else ()

    # ResourceProvider, Templated, Subscribable

    async def list_resources(self, cursor: str | None = None) -> Page[ResourceDescriptor]:
        """See `ResourceProvider`."""
        return self._page([descriptor for descriptor, _ in self._resources.values()], cursor)

    async def list_templates(self, cursor: str | None = None) -> Page[ResourceTemplate]:
        """See `Templated`."""
        return self._page([template for template, _ in self._templates.values()], cursor)

    async def read_resource(self, id: str, context: CapabilityContext) -> ResourceContents:
        """See `ResourceProvider`."""
        self._alive()
        if id in self._resources:
            descriptor, contents = self._resources[id]
            if isinstance(contents, bytes):
                media_type = descriptor.media_type or "application/octet-stream"
                return ResourceContents(id=id, parts=(BlobPart(data=contents, media_type=media_type),))
            return ResourceContents(
                id=id, parts=(TextPart(text=contents, media_type=descriptor.media_type or "text/plain"),)
            )
        for template, text in self._templates.values():
            if (found := _pattern(template.uri_template).fullmatch(id)) is not None:
                return ResourceContents(id=id, parts=(TextPart(text=text(found.groupdict())),))
        raise InvalidInput(f"no resource {id!r}")

    async def subscribe_resource(self, id: str, callback: Callable[[str], None]) -> Callable[[], None]:
        """See `Subscribable`."""
        self._watchers.setdefault(id, []).append(callback)

        def unsubscribe() -> None:
            if callback in self._watchers[id]:
                self._watchers[id].remove(callback)

        return unsubscribe

    # PromptProvider, Completing

    async def list_prompts(self, cursor: str | None = None) -> Page[PromptDescriptor]:
        """See `PromptProvider`."""
        return self._page([descriptor for descriptor, _ in self._prompts.values()], cursor)

    async def get_prompt(self, id: str, args: JsonObject, context: CapabilityContext) -> PromptContents:
        """See `PromptProvider`."""
        self._alive()
        if id not in self._prompts:
            raise InvalidInput(f"no prompt {id!r}")
        descriptor, text = self._prompts[id]
        missing = [one.name for one in descriptor.arguments if one.name not in args]
        if missing:
            faults: list[Fault] = [{"path": f"/{name}", "message": "is required"} for name in missing]
            raise InvalidInput(f"prompt {id} needs {', '.join(missing)}", faults)
        filled = text
        for one in descriptor.arguments:
            filled = filled.replace("{" + one.name + "}", str(args[one.name]))
        message = PromptMessage(role="user", content=(TextPart(text=filled),))
        return PromptContents(messages=(message,), description=descriptor.description)

    async def complete(
        self, reference: str, argument: str, value: str, context: CapabilityContext
    ) -> tuple[Sequence[str], bool]:
        """See `Completing`: the keys of its resources that begin with `value`."""
        found = [uri for uri in self._resources if uri.startswith(value)]
        return found[:100], len(found) > 100

    # Connected

    @property
    def state(self) -> State:
        """See `Connected`."""
        return self._state

    async def start(self) -> None:
        """Become what `start_as` says."""
        self.starts += 1
        if self._state.status == "connecting":
            self.go(self.start_as)

    async def close(self) -> None:
        """Be closed."""
        self.go("closed", "closed")

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """See `Connected`."""
        self._callbacks.append(callback)

        def unsubscribe() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return unsubscribe

    def go(self, status: ConnectionStatus, reason: str = "") -> None:
        """Change its state."""
        self._state = State(status, reason, time.time())
        self._changed()

    def _changed(self) -> None:
        for callback in list(self._callbacks):
            callback()

    def _alive(self) -> None:
        if self._state.status != "ready":
            raise Unavailable(f"{self.name} is not available: {self._state.reason or self._state.status}")

    def _page(self, items: Sequence[Item], cursor: str | None) -> Page[Item]:
        self._alive()
        if cursor is not None and not (cursor.isdecimal() and int(cursor) < len(items)):
            raise InvalidInput(f"no cursor {cursor[:64]!r}")
        begin = int(cursor or 0)
        end = begin + self.page_size
        return Page(items[begin:end], str(end) if end < len(items) else None)


def _names_in(text: str) -> list[str]:
    return re.findall(r"\{([A-Za-z_][A-Za-z0-9_]*)\}", text)


def _pattern(template: str) -> re.Pattern[str]:
    pieces = re.split(r"\{([A-Za-z_][A-Za-z0-9_]*)\}", template)
    return re.compile(
        "".join(f"(?P<{one}>[^/?#]+)" if index % 2 else re.escape(one) for index, one in enumerate(pieces))
    )
