"""What a source hands out: tools as invocables, resources and prompts as providers, each list as last known."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from anykit.capabilities import (
    CapabilityContext,
    CapabilityError,
    ExecutionFailed,
    Fault,
    InvalidInput,
    InvocableRequest,
    InvocableResult,
    InvocableSpec,
    JsonObject,
    Page,
    PromptContents,
    PromptDescriptor,
    Question,
    ResourceContents,
    ResourceDescriptor,
    ResourceTemplate,
    Suspension,
    Unavailable,
)
from anykit.capabilities import outcomes as codes
from anykit.schema import is_json
from anykit.sources.connection import explain

from .calls import Call
from .frames import unsendable
from .mending import Report
from .questions import prompt_arguments
from .rounds import Rounds
from .servers import McpServer
from .transforms import ToolTransform
from .wrapping import is_wrapper, unwrapped

if TYPE_CHECKING:
    from .link import McpLink

LIST_TIMEOUT = 30.0
"""Seconds for all pages of a list."""
QUICK = 5.0
"""Seconds for a list of which an earlier one is known."""
SILENCE = 30.0
"""Seconds that a server which did not answer in that time is left alone."""
FRESH = 2.0
"""Seconds that a list is believed, where its server does not tell of changes."""

T = TypeVar("T")


class Home(Protocol):
    """The source that a tool or a provider belongs to."""

    @property
    def server(self) -> McpServer:
        """Its server."""
        ...

    @property
    def link(self) -> McpLink | None:
        """The session, while there is one."""
        ...

    async def call(self, work: Callable[[McpLink], Awaitable[T]], *, repeatable: bool = False) -> T:
        """Do `work` with the session, once there is one. Raises `CapabilityError`."""
        ...

    def report(self, kind: str, reports: Sequence[Report]) -> None:
        """Keep, and tell once, what of a list is not offered as it was listed."""
        ...

    async def watch(self, uri: str, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call back when the resource changes. Raises `CapabilityError`."""
        ...


class McpTool:
    """A tool of a server, as an invocable."""

    def __init__(self, spec: InvocableSpec, home: Home, look: ToolTransform | None = None) -> None:
        self._original = spec
        self._look = look
        self._spec = spec if look is None else look.spec(spec)
        self._home = home

    def same(self, other: McpTool) -> bool:
        """Whether it stands for the same thing in the same words."""
        return self._original == other._original and self._look == other._look

    def __repr__(self) -> str:
        return f"<McpTool {self._spec.name} of {self._home.server.name}>"

    @property
    def spec(self) -> InvocableSpec:
        """See `Invocable`; the name is the server's own, unless its file gives it another one."""
        return self._spec

    @property
    def repeatable(self) -> bool:
        """Whether the server says that a second call does no harm."""
        hints = self._spec.annotations
        return hints is not None and bool(hints.idempotent or hints.read_only)

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult | Suspension:
        """Call it over there. A question of the server is a suspension, with which a later process can go on."""
        if not is_json(request.input):
            raise InvalidInput(f"the arguments for {self._spec.name} are not JSON", unsendable(request.input))
        arguments = request.input if self._look is None else self._look.arguments_for(request.input)
        server = self._home.server
        if request.resume is None:
            rounds = Rounds(server.name)
        else:
            rounds = Rounds.resumed(server.name, request.resume.state, request.resume.answer)
        call = Call(context)
        clock = asyncio.timeout(server.call_timeout)
        try:
            async with clock:
                call.clock = clock

                async def work(link: McpLink) -> InvocableResult | Question:
                    call.failure = None
                    return await link.call_tool(self._original.name, arguments, call, rounds)

                outcome = await self._home.call(work, repeatable=self.repeatable)
        except TimeoutError:
            if not clock.expired():
                raise
            raise ExecutionFailed(
                f"{server.name} did not answer within {server.call_timeout:g} s",
                code=codes.TIMEOUT,
                retryable=self.repeatable,
                detail={"timeout": server.call_timeout},
            ) from None
        if isinstance(outcome, Question):
            return rounds.suspension(uuid.uuid4().hex, outcome)
        wrapped = self._spec.metadata["mcp"].get("wrapped")
        if not wrapped and self._spec.output_schema is None:
            wrapped = is_wrapper(outcome)
        return unwrapped(outcome) if wrapped else outcome


class Listed(Generic[T]):
    """A list of the server's as last known, listed anew when it may have changed."""

    def __init__(
        self,
        home: Home,
        kind: str,
        capability: str,
        fetch: Callable[[McpLink], Awaitable[tuple[Sequence[T], Sequence[Report]]]],
    ) -> None:
        self.kind = kind
        self._home = home
        self._capability = capability
        self._fetch = fetch
        self._items: tuple[T, ...] | None = None
        self._at = 0.0
        self._loading = asyncio.Lock()

    @property
    def known(self) -> tuple[T, ...]:
        """What was known last."""
        return self._items or ()

    async def get(self) -> Page[T]:
        """All of it. While the server is away, or silent, what was known last; raises `CapabilityError` if nothing was."""
        link = self._home.link
        if link is None and self._items is None:
            link = await self._home.call(_itself, repeatable=True)
        if link is not None and self._is_stale(link):
            try:
                async with asyncio.timeout(LIST_TIMEOUT if self._items is None else QUICK):
                    async with self._loading:
                        if self._is_stale(link):
                            await self._load(link)
            except (CapabilityError, TimeoutError) as error:
                self._at = asyncio.get_running_loop().time() + SILENCE
                if self._items is None:
                    name = self._home.server.name
                    raise Unavailable(f"{name}: its {self.kind} could not be listed: {explain(error)}") from None
        return Page(self.known)

    def _is_stale(self, link: McpLink) -> bool:
        if self._items is None:
            return True
        return not link.tells_changes(self._capability) and asyncio.get_running_loop().time() - self._at > FRESH

    async def load(self, link: McpLink) -> bool:
        """List it anew; whether it is another one now. Raises `CapabilityError`."""
        async with self._loading:
            return await self._load(link)

    async def _load(self, link: McpLink) -> bool:
        items, reports = await self._fetch(link)
        before, self._items = self._items, tuple(items)
        self._at = asyncio.get_running_loop().time()
        self._home.report(self.kind, reports)
        return before != self._items


class McpResources:
    """The server's resources. Also `Templated`, `Subscribable` and `Completing`."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self.resources: Listed[ResourceDescriptor] = Listed(home, "resources", "resources", _resources)
        self.templates: Listed[ResourceTemplate] = Listed(home, "templates", "resources", _templates)

    async def list_resources(self, cursor: str | None = None) -> Page[ResourceDescriptor]:
        """See `ResourceProvider`; all of them are one page."""
        return await self.resources.get()

    async def list_templates(self, cursor: str | None = None) -> Page[ResourceTemplate]:
        """See `Templated`; all of them are one page."""
        return await self.templates.get()

    async def read_resource(self, id: str, context: CapabilityContext) -> ResourceContents:
        """See `ResourceProvider`. What the server asks is asked on the spot."""
        return await self._home.call(lambda link: link.read(id, context), repeatable=True)

    async def subscribe_resource(self, id: str, callback: Callable[[str], None]) -> Callable[[], None]:
        """See `Subscribable`; it holds over reconnects."""
        return await self._home.watch(id, callback)

    async def complete(
        self, reference: str, argument: str, value: str, context: CapabilityContext
    ) -> tuple[Sequence[str], bool]:
        """See `Completing`; `reference` is a URI template. Nothing where the server completes nothing."""
        return await self._home.call(
            lambda link: link.complete(reference, True, argument, value, context), repeatable=True
        )


class McpPrompts:
    """The server's prompts. Also `Completing`."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self.prompts: Listed[PromptDescriptor] = Listed(home, "prompts", "prompts", _prompts)

    async def list_prompts(self, cursor: str | None = None) -> Page[PromptDescriptor]:
        """See `PromptProvider`; all of them are one page."""
        return await self.prompts.get()

    async def get_prompt(self, id: str, args: JsonObject, context: CapabilityContext) -> PromptContents:
        """See `PromptProvider`. What the server asks is asked on the spot."""
        texts = prompt_arguments(args)
        known = next((one for one in self.prompts.known if one.id == id), None)
        missing = [one.name for one in known.arguments if one.required and one.name not in texts] if known else []
        if missing:
            faults: list[Fault] = [{"path": f"/{name}", "message": "is required"} for name in missing]
            raise InvalidInput(f"the prompt {id} needs {', '.join(missing)}", faults)
        return await self._home.call(lambda link: link.prompt(id, texts, context), repeatable=True)

    async def complete(
        self, reference: str, argument: str, value: str, context: CapabilityContext
    ) -> tuple[Sequence[str], bool]:
        """See `Completing`; `reference` is a prompt's id. Nothing where the server completes nothing."""
        return await self._home.call(
            lambda link: link.complete(reference, False, argument, value, context), repeatable=True
        )


async def _itself(link: McpLink) -> McpLink:
    return link


async def _resources(link: McpLink) -> tuple[Sequence[ResourceDescriptor], Sequence[Report]]:
    return await link.resources()


async def _templates(link: McpLink) -> tuple[Sequence[ResourceTemplate], Sequence[Report]]:
    return await link.templates()


async def _prompts(link: McpLink) -> tuple[Sequence[PromptDescriptor], Sequence[Report]]:
    return await link.prompts()
