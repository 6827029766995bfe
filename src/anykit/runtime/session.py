"""One caller's verbs: the seam that every face uses."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import urllib.parse
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from anykit.capabilities import (
    Answer,
    CapabilityContext,
    Completing,
    Failed,
    InvalidInput,
    Json,
    JsonObject,
    Outcome,
    PromptContents,
    PromptDescriptor,
    ResourceContents,
    ResourceDescriptor,
    ResourceProvider,
    ResourceTemplate,
    Subscribable,
    Suspension,
    Templated,
)
from anykit.capabilities import outcomes as codes
from anykit.tools import BenchTool, Tool, ToolResult, tool_result

from .callers import Caller
from .catalog import Catalog
from .executor import DEFAULT, CallOptions, Executor
from .finding import Finding, FindTools
from .listing import (
    READ_TIMEOUT,
    GetPrompt,
    ListPage,
    Lists,
    Provided,
    ToolkitPrompts,
    ToolkitResources,
    matches,
    read_from,
)
from .naming import Candidate
from .scopes import Configured, Scopes, ToolkitEvent, UnknownToolkit
from .snapshot import Snapshot, ToolEntry, ToolkitEntry, state_of
from .unavailable import unavailable_lines
from .views import marked

log = logging.getLogger("anykit.session")


@dataclass(frozen=True, slots=True)
class ToolkitView:
    """A toolkit as one caller sees it."""

    name: str
    alias: str
    description: str
    category: str
    tags: tuple[str, ...]
    icon_svg: str | None
    version: str
    schema: JsonObject
    tools: tuple[str, ...]
    configured: bool
    source: str
    disabled: dict[str, str]
    """Its tools that are switched off for this caller, with why."""


@dataclass(frozen=True, slots=True)
class CatalogChanged:
    """The definitions changed: tools, toolkits, resources, prompts or the state of a source."""

    snapshot: Snapshot


Change = CatalogChanged | ToolkitEvent


class Session:
    """What one caller can see and do. Cheap to make; `close` ends what was configured for it alone."""

    def __init__(self, caller: Caller, *, catalog: Catalog, scopes: Scopes, executor: Executor) -> None:
        self.caller = caller
        self._catalog = catalog
        self._scopes = scopes
        self._executor = executor
        self._closed = False
        self._lists = Lists()
        self._listeners: list[Callable[[Change], None]] = []
        self._found: dict[str, tuple[ToolEntry, ToolEntry]] = {}
        """What was found by searching: as it is deferred, and as it is listed to this caller since."""
        self._finder: tuple[Snapshot, ToolEntry] | None = None

    @property
    def snapshot(self) -> Snapshot:
        """The catalogue as this caller sees it."""
        view = self.caller.view
        return self._catalog.snapshot if view is None else self._catalog.seen(view)

    # tools

    def tools(self) -> list[Tool]:
        """The tools that this caller can call now, in the order of declaration; those to be found say so (`deferred`).

        Where some are to be found, the tool that finds them comes first.
        """
        return [self._handed_out(entry) for entry in self.entries()]

    def entries(self) -> list[ToolEntry]:
        """The same with where they come from."""
        refusal = self._executor.refusal
        caller = self.caller
        snapshot = self.snapshot
        usable = [entry for entry in snapshot.tools.values() if refusal(caller, entry) is None]
        if snapshot.finder is None:
            return usable
        if self._found:
            usable = [self._listed(entry) for entry in usable]
        return [self._finder_in(snapshot), *usable]

    def everything(self) -> list[ToolEntry]:
        """The same, with those that this caller cannot call as things stand."""
        snapshot = self.snapshot
        entries = list(snapshot.tools.values())
        return entries if snapshot.finder is None else [self._finder_in(snapshot), *entries]

    def get(self, name: str) -> Tool | None:
        """The tool of that name, if this caller can call it."""
        snapshot = self.snapshot
        if snapshot.finder is not None and name == snapshot.finder:
            return self._handed_out(self._finder_in(snapshot))
        entry = snapshot.tools.get(name)
        if entry is None or self._executor.refusal(self.caller, entry) is not None:
            return None
        return self._handed_out(self._listed(entry))

    def unavailable(self) -> list[str]:
        """What is not there now, a line for each source: since when, why, when it is tried again."""
        return unavailable_lines(self.snapshot)

    # finding

    def _finder_in(self, snapshot: Snapshot) -> ToolEntry:
        """The tool that finds others, for this caller."""
        if self._finder is None or self._finder[0] is not snapshot:
            finding = Finding(self._search, self._remember, self.unavailable)
            name = snapshot.finder or ""
            self._finder = (snapshot, ToolEntry(FindTools(name, snapshot, finding), name, "anykit", given=name))
        return self._finder[1]

    def _own(self, name: str) -> ToolEntry | None:
        snapshot = self.snapshot
        return self._finder_in(snapshot) if snapshot.finder is not None and name == snapshot.finder else None

    async def _search(self, query: str, limit: int) -> Sequence[ToolEntry]:
        index = await self._catalog.index()
        snapshot = self.snapshot
        found = (snapshot.tools.get(name) for name in index.search(query))
        usable = (entry for entry in found if entry is not None and self._executor.refusal(self.caller, entry) is None)
        return list(itertools.islice(usable, limit))

    def _remember(self, entries: Sequence[ToolEntry]) -> None:
        """List what was found from now on, and say so."""
        fresh = [entry for entry in entries if entry.tool.deferred and self._listed(entry) is entry]
        for entry in fresh:
            self._found[entry.tool.name] = (entry, marked(entry, deferred=False))
        if fresh:
            change = CatalogChanged(self.snapshot)
            for listener in list(self._listeners):
                listener(change)

    def _listed(self, entry: ToolEntry) -> ToolEntry:
        known = self._found.get(entry.tool.name)
        if known is None:
            return entry
        if known[0] is not entry:
            known = self._found[entry.tool.name] = (entry, marked(entry, deferred=False))
        return known[1]

    # calls

    def _handed_out(self, entry: ToolEntry) -> Tool:
        return BenchTool(entry.tool, self._run_tool)

    async def _run_tool(self, name: str, arguments: JsonObject, context: CapabilityContext | None) -> ToolResult:
        options = DEFAULT
        if context is not None:
            options = CallOptions(
                session_id=context.session_id, turn_id=context.turn_id, metadata=context.metadata, emit=context.emit
            )
        return await self.call(name, arguments, options)

    async def run(self, name: str, arguments: Json = None, options: CallOptions = DEFAULT) -> Outcome:
        """One call, to its outcome. Raises nothing but `CancelledError`."""
        return await self._executor.run(self.caller, name, arguments, options, own=self._own(name))

    async def call(self, name: str, arguments: Json = None, options: CallOptions = DEFAULT) -> ToolResult:
        """One call, to what a model reads."""
        outcome = await self._executor.run(self.caller, name, arguments, options, own=self._own(name))
        entry = self.snapshot.tools.get(name)
        return tool_result(outcome) if entry is None else tool_result(outcome, limit=entry.tool.spec.max_output)

    async def execute(self, name: str, arguments: Any, options: CallOptions = DEFAULT) -> ToolResult:
        """A provider's tool call as it comes: `arguments` an object, or a string of JSON ("" is {})."""
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments) if arguments.strip() else {}
            except (ValueError, RecursionError) as error:
                return tool_result(_not_json(name, error))
        return await self.call(name, arguments, options)

    # questions

    def suspensions(self) -> list[Suspension]:
        """What waits for an answer of this caller."""
        return self._executor.waiting(self.caller)

    async def answer(self, id: str, *, ok: bool = True, data: Json = None, options: CallOptions = DEFAULT) -> Outcome:
        """Answer a question and go on with its call, once; `ok` False refuses."""
        return await self._executor.answer(self.caller, id, Answer(ok, data), options)

    # toolkits

    def toolkits(self) -> list[ToolkitView]:
        """Every toolkit, with whether it is configured for this caller."""
        return [self._view(entry) for entry in self.snapshot.toolkits.values()]

    def toolkit(self, name: str) -> ToolkitView | None:
        """One of them."""
        entry = self.snapshot.toolkits.get(name)
        return None if entry is None else self._view(entry)

    def _view(self, entry: ToolkitEntry) -> ToolkitView:
        spec = entry.spec
        instance = self._scopes.find(self.caller, entry.name)
        return ToolkitView(
            name=entry.name,
            alias=spec.alias,
            description=spec.description,
            category=spec.category,
            tags=spec.tags,
            icon_svg=spec.icon_svg,
            version=spec.version,
            schema=spec.schema,
            tools=tuple(entry.tools),
            configured=instance is not None,
            source=entry.source,
            disabled={} if instance is None else dict(instance.disabled),
        )

    async def configure(self, toolkit: str, config: Json, *, keep: bool = True) -> Configured:
        """Configure a toolkit where this caller's configurations hold.

        Raises `UnknownToolkit`, `InvalidInput` with `.errors`, or `ExecutionFailed`; the old one serves on then.
        """
        entry = self._entry(toolkit)
        return await self._scopes.configure(self.caller, entry, config, keep=keep)

    async def unconfigure(self, toolkit: str) -> bool:
        """Take this caller's own configuration away; False where it had none. Raises `UnknownToolkit`."""
        return await self._scopes.remove(self.caller.scope, self._entry(toolkit).name)

    def _entry(self, toolkit: str) -> ToolkitEntry:
        snapshot = self.snapshot
        entry = snapshot.toolkits.get(toolkit)
        if entry is None:
            hint = snapshot.suggest(toolkit, snapshot.toolkits)
            raise UnknownToolkit(f"unknown toolkit {toolkit[:128]!r}{hint}", detail={"toolkit_name": toolkit[:128]})
        return entry

    # resources and prompts

    @property
    def patience(self) -> float:
        """Seconds that each provider has to list its resources or prompts."""
        return self._lists.patience

    @patience.setter
    def patience(self, seconds: float) -> None:
        self._lists.patience = seconds

    @property
    def missing(self) -> dict[str, str]:
        """Whose lists the last look at resources and prompts went without, and why."""
        return {source: why for (source, _), why in self._lists.missing.items()}

    async def resources(self) -> list[ResourceDescriptor]:
        """Every resource that can be listed; a provider that fails, or is silent, is left out (`missing`)."""
        return [descriptor async for descriptor, _, _ in self._resources()]

    async def templates(self) -> list[ResourceTemplate]:
        """Every family of resources."""
        return [template async for template, _ in self._templates()]

    async def read(self, uri: str) -> ResourceContents:
        """Read one resource. Raises `InvalidInput` where there is none, or what its provider raises."""
        provider, original = await self._resource(uri)
        context = CapabilityContext(session_id=self.caller.session, principal=self.caller.principal)
        return await read_from(provider.provider, original, context)

    async def watch(self, uri: str, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call `callback` with `uri` at each change of the resource, until the returned function is called.

        A resource whose provider tells of no change is silent. Raises `InvalidInput` where there is none.
        """
        found, original = await self._resource(uri)
        provider = found.provider
        if not isinstance(provider, Subscribable):
            return _nothing
        async with asyncio.timeout(READ_TIMEOUT):
            return await provider.subscribe_resource(original, lambda _: callback(uri))

    async def complete(
        self, reference: str, argument: str, value: str, arguments: JsonObject | None = None
    ) -> tuple[Sequence[str], bool]:
        """Proposals for an argument of a prompt (by its name here) or of a URI template, and whether there are more.

        `arguments` are those given already. A provider that completes nothing proposes nothing. Raises `InvalidInput`
        for an unknown reference.
        """
        context = CapabilityContext(
            session_id=self.caller.session, principal=self.caller.principal, metadata={"arguments": arguments or {}}
        )
        known = False
        async with aclosing(self._templates()) as templates:
            async for template, provided in templates:
                if template.uri_template == reference:
                    known = True
                    if isinstance(provided.provider, Completing):
                        async with asyncio.timeout(READ_TIMEOUT):
                            return await provided.provider.complete(reference, argument, value, context)
        for descriptor, completing, original in await self._prompts():
            if descriptor.id == reference:
                known = True
                if isinstance(completing, Completing):
                    async with asyncio.timeout(READ_TIMEOUT):
                        return await completing.complete(original, argument, value, context)
        if not known:
            raise InvalidInput(f"nothing to complete for {reference[:512]!r}")
        return (), False

    def _resource_providers(self) -> list[Provided[ResourceProvider]]:
        snapshot = self.snapshot
        found: list[Provided[ResourceProvider]] = [
            Provided(provider, source, source) for source, provider in snapshot.resources
        ]
        found += [
            Provided(ToolkitResources(entry, instance), entry.source, entry.name, entry.name)
            for entry in snapshot.toolkits.values()
            if entry.spec.resources and (instance := self._scopes.find(self.caller, entry.name)) is not None
        ]
        return found

    async def _resources(self) -> AsyncGenerator[tuple[ResourceDescriptor, Provided[ResourceProvider], str]]:
        """Each resource with its provider, and the provider's own URI of it."""
        lens = self.snapshot.lens
        taken: set[str] = set()
        asked = self._lists.of(self._resource_providers(), "resources", lambda one: one.list_resources)
        async with aclosing(asked) as lists:
            async for provided, listed in lists:
                for descriptor in listed:
                    uri = descriptor.id
                    if uri in taken:
                        uri = f"anykit://{provided.owner}/{urllib.parse.quote(uri, safe='')}"
                        if uri in taken:
                            continue
                    names = (uri, descriptor.id, descriptor.name)
                    if lens and not lens.resource(names, source=provided.source, toolkit=provided.toolkit):
                        continue
                    taken.add(uri)
                    shown = descriptor if uri == descriptor.id else descriptor.model_copy(update={"id": uri})
                    yield shown, provided, descriptor.id

    async def _templates(self) -> AsyncGenerator[tuple[ResourceTemplate, Provided[ResourceProvider]]]:
        lens = self.snapshot.lens
        templated = [one for one in self._resource_providers() if isinstance(one.provider, Templated)]
        async with aclosing(self._lists.of(templated, "resource templates", _templates_of)) as lists:
            async for provided, listed in lists:
                for template in listed:
                    names = (template.uri_template, template.name)
                    if not lens or lens.resource(names, source=provided.source, toolkit=provided.toolkit):
                        yield template, provided

    async def _resource(self, uri: str) -> tuple[Provided[ResourceProvider], str]:
        """Who has a resource, and by which URI. Raises `InvalidInput`."""
        known: list[str] = []
        async with aclosing(self._resources()) as resources:
            async for descriptor, provided, original in resources:
                if descriptor.id == uri:
                    return provided, original
                known.append(descriptor.id)
        lens = self.snapshot.lens
        async with aclosing(self._templates()) as templates:
            async for template, provided in templates:
                if matches(template.uri_template, uri) and not (
                    lens and lens.excluded((uri,), source=provided.source, toolkit=provided.toolkit)
                ):
                    return provided, uri
        text = f"no resource {uri[:512]!r}{self.snapshot.suggest(uri[:512], known)}"
        raise InvalidInput("; ".join([text, *itertools.islice(self._lists.missing.values(), 3)]))

    async def prompts(self) -> list[PromptDescriptor]:
        """Every prompt, under names made by the same rule as the tools'; who fails or is silent is left out."""
        return [descriptor for descriptor, _, _ in await self._prompts()]

    async def prompt(self, name: str, args: JsonObject | None = None) -> PromptContents:
        """Fill a prompt in. Raises `InvalidInput` for an unknown name or wrong arguments."""
        context = CapabilityContext(session_id=self.caller.session, principal=self.caller.principal)
        listed = await self._prompts()
        for descriptor, provider, original in listed:
            if descriptor.id == name:
                async with asyncio.timeout(READ_TIMEOUT):
                    return await provider.get_prompt(original, args or {}, context)
        hint = self.snapshot.suggest(name[:128], [descriptor.id for descriptor, _, _ in listed])
        text = f"no prompt {name[:128]!r}{hint}"
        raise InvalidInput("; ".join([text, *itertools.islice(self._lists.missing.values(), 3)]))

    async def _prompts(self) -> list[tuple[PromptDescriptor, GetsPrompt, str]]:
        snapshot = self.snapshot
        found: list[tuple[Candidate, PromptDescriptor, GetsPrompt, str, str | None]] = []
        providers = [Provided(one, source, source, prefix=prefix) for source, prefix, one in snapshot.prompts]
        async for provided, listed in self._lists.of(providers, "prompts", lambda one: one.list_prompts):
            source = provided.source
            found += [
                (Candidate(source, one.id, provided.prefix, source), one, provided.provider, source, None)
                for one in listed
            ]
        for entry in snapshot.toolkits.values():
            if entry.spec.prompts and (instance := self._scopes.find(self.caller, entry.name)) is not None:
                prompts = ToolkitPrompts(entry, instance)
                origin = f"{entry.source}/{entry.name}"
                found += [
                    (
                        Candidate(origin, prompt.name, "", entry.name),
                        prompt.descriptor(),
                        prompts,
                        entry.source,
                        entry.name,
                    )
                    for prompt in entry.spec.prompts.values()
                ]
        names = self._catalog.prompt_names.assign(candidate for candidate, *_ in found)
        lens = snapshot.lens
        unique: dict[str, tuple[PromptDescriptor, GetsPrompt, str]] = {}
        for candidate, descriptor, provider, source, toolkit in found:
            name = names[candidate.key].exposed
            own = (name, descriptor.id, f"{source}/{descriptor.id}")
            if lens and not lens.prompt(own, source=source, toolkit=toolkit):
                continue
            shown = descriptor if name == descriptor.id else descriptor.model_copy(update={"id": name})
            unique.setdefault(name, (shown, provider, descriptor.id))
        return list(unique.values())

    # changes

    def subscribe(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Call `listener`, on the loop's thread, with each change that concerns this caller and that it can see."""
        mine = set(self.caller.scopes)

        def heard(event: ToolkitEvent) -> None:
            if event.scope in mine and (self.caller.view is None or event.toolkit in self.snapshot.toolkits):
                listener(event)

        before = _visible(self.snapshot)

        def changed(whole: Snapshot) -> None:
            nonlocal before
            snapshot = self.snapshot
            if self.caller.view is not None:
                last, before = before, _visible(snapshot)
                # The lists of a source may have changed that look the same from here.
                if last == before and (whole.cause is None or whole.cause not in snapshot.sources):
                    return
            listener(CatalogChanged(snapshot))

        self._listeners.append(listener)
        undo = [
            self._scopes.subscribe(heard),
            self._catalog.subscribe(changed),
            partial(_without, self._listeners, listener),
        ]

        def unsubscribe() -> None:
            for one in undo:
                one()

        return unsubscribe

    async def changes(self) -> AsyncIterator[Change]:
        """The same, to iterate over. A reader that falls behind by 1,000 loses the oldest."""
        queue: asyncio.Queue[Change] = asyncio.Queue(1000)

        def keep(change: Change) -> None:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(change)

        unsubscribe = self.subscribe(keep)
        try:
            while True:
                yield await queue.get()
        finally:
            unsubscribe()

    def close(self) -> None:
        """The caller is gone: what was configured for its session closes once its calls have ended."""
        if not self._closed and self.caller.session is not None:
            self._closed = True
            self._scopes.end(replace(self.caller, face="").scope)


class GetsPrompt(Protocol):
    """What a prompt is filled in by."""

    get_prompt: GetPrompt


def _nothing() -> None:
    """What was not subscribed to needs no end."""


def _without(listeners: list[Callable[[Change], None]], listener: Callable[[Change], None]) -> None:
    if listener in listeners:
        listeners.remove(listener)


def _visible(snapshot: Snapshot) -> object:
    """What can be seen of a catalogue, to be compared."""
    states = {name: state_of(source) for name, source in snapshot.sources.items()}
    return dict(snapshot.tools), {name: tuple(kit.tools) for name, kit in snapshot.toolkits.items()}, states


def _templates_of(provider: ResourceProvider) -> ListPage[ResourceTemplate]:
    assert isinstance(provider, Templated)
    return provider.list_templates


def _not_json(name: str, error: Exception) -> Failed:
    return Failed(codes.INVALID_INPUT, f"the arguments for {name} are not JSON: {error}")
