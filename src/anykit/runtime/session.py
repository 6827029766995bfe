"""One caller's verbs: the seam that every face uses."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import urllib.parse
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from anykit.capabilities import (
    Answer,
    CapabilityContext,
    Completing,
    Failed,
    InvalidInput,
    Json,
    JsonObject,
    Outcome,
    Page,
    PromptContents,
    PromptDescriptor,
    ResourceContents,
    ResourceDescriptor,
    ResourceProvider,
    ResourceTemplate,
    Subscribable,
    Suspension,
    Templated,
    Unavailable,
)
from anykit.capabilities import outcomes as codes
from anykit.tools import BenchTool, Tool, Toolkit, ToolResult, tool_result

from .callers import Caller
from .catalog import Catalog
from .executor import DEFAULT, CallOptions, Executor
from .naming import Candidate
from .scopes import Configured, Scopes, ToolkitEvent, UnknownToolkit
from .snapshot import Snapshot, ToolEntry, ToolkitEntry

Item = TypeVar("Item")

log = logging.getLogger("anykit.session")

LISTED = 10_000
"""More resources or prompts than that from one provider are not listed."""
LIST_TIMEOUT = 30.0
"""Seconds that listing or reading may take."""


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

    # tools

    def tools(self) -> list[Tool]:
        """The tools that this caller can call now, in the order of declaration."""
        return [self._handed_out(entry) for entry in self.entries()]

    def entries(self) -> list[ToolEntry]:
        """The same with where they come from."""
        refusal = self._executor.refusal
        return [entry for entry in self._catalog.snapshot.tools.values() if refusal(self.caller, entry) is None]

    def get(self, name: str) -> Tool | None:
        """The tool of that name, if this caller can call it."""
        entry = self._catalog.snapshot.tools.get(name)
        if entry is None or self._executor.refusal(self.caller, entry) is not None:
            return None
        return self._handed_out(entry)

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
        return await self._executor.run(self.caller, name, arguments, options)

    async def call(self, name: str, arguments: Json = None, options: CallOptions = DEFAULT) -> ToolResult:
        """One call, to what a model reads."""
        outcome = await self._executor.run(self.caller, name, arguments, options)
        entry = self._catalog.snapshot.tools.get(name)
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
        return [self._view(entry) for entry in self._catalog.snapshot.toolkits.values()]

    def toolkit(self, name: str) -> ToolkitView | None:
        """One of them."""
        entry = self._catalog.snapshot.toolkits.get(name)
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
        snapshot = self._catalog.snapshot
        entry = snapshot.toolkits.get(toolkit)
        if entry is None:
            hint = snapshot.suggest(toolkit, snapshot.toolkits)
            raise UnknownToolkit(f"unknown toolkit {toolkit[:128]!r}{hint}", detail={"toolkit_name": toolkit[:128]})
        return entry

    # resources

    async def resources(self) -> list[ResourceDescriptor]:
        """Every resource that can be listed; a provider that fails is left out."""
        return [descriptor for descriptor, _, _ in await self._resources()]

    async def templates(self) -> list[ResourceTemplate]:
        """Every family of resources."""
        return [
            template
            for _, provider in self._resource_providers()
            if isinstance(provider, Templated)
            for template in await _all(provider.list_templates)
        ]

    async def read(self, uri: str) -> ResourceContents:
        """Read one resource. Raises `InvalidInput` where there is none, or what its provider raises."""
        context = CapabilityContext(session_id=self.caller.session, principal=self.caller.principal)
        listed = await self._resources()
        for descriptor, provider, original in listed:
            if descriptor.id == uri:
                return await _read(provider, original, context)
        for _, provider in self._resource_providers():
            if not isinstance(provider, Templated):
                continue
            for template in await _all(provider.list_templates):
                if _matches(template.uri_template, uri):
                    return await _read(provider, uri, context)
        hint = self._catalog.snapshot.suggest(uri, [descriptor.id for descriptor, _, _ in listed])
        raise InvalidInput(f"no resource {uri[:512]!r}{hint}")

    async def watch(self, uri: str, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call `callback` with `uri` at each change of the resource, until the returned function is called.

        A resource whose provider tells of no change is silent. Raises `InvalidInput` where there is none.
        """
        found: tuple[ResourceProvider, str] | None = None
        for descriptor, provider, original in await self._resources():
            if descriptor.id == uri:
                found = (provider, original)
                break
        else:
            for _, provider in self._resource_providers():
                if isinstance(provider, Templated) and any(
                    _matches(template.uri_template, uri) for template in await _all(provider.list_templates)
                ):
                    found = (provider, uri)
                    break
        if found is None:
            raise InvalidInput(f"no resource {uri[:512]!r}")
        provider, original = found
        if not isinstance(provider, Subscribable):
            return _nothing
        async with asyncio.timeout(LIST_TIMEOUT):
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
        for _, provider in self._resource_providers():
            if isinstance(provider, Templated) and any(
                template.uri_template == reference for template in await _all(provider.list_templates)
            ):
                known = True
                if isinstance(provider, Completing):
                    async with asyncio.timeout(LIST_TIMEOUT):
                        return await provider.complete(reference, argument, value, context)
        for source, prefix, provider in self._catalog.snapshot.prompts:
            for descriptor in await _all(provider.list_prompts):
                candidate = Candidate(source, descriptor.id, prefix, source)
                if self._catalog.prompt_names.assign([candidate])[candidate.key].exposed != reference:
                    continue
                known = True
                if isinstance(provider, Completing):
                    async with asyncio.timeout(LIST_TIMEOUT):
                        return await provider.complete(descriptor.id, argument, value, context)
        if not known and reference not in {descriptor.id for descriptor in await self.prompts()}:
            raise InvalidInput(f"nothing to complete for {reference[:512]!r}")
        return (), False

    def _resource_providers(self) -> list[tuple[str, ResourceProvider]]:
        snapshot = self._catalog.snapshot
        found = list(snapshot.resources)
        found += [
            (entry.name, _ToolkitResources(entry, instance))
            for entry in snapshot.toolkits.values()
            if entry.spec.resources and (instance := self._scopes.find(self.caller, entry.name)) is not None
        ]
        return found

    async def _resources(self) -> list[tuple[ResourceDescriptor, ResourceProvider, str]]:
        found: list[tuple[ResourceDescriptor, ResourceProvider, str]] = []
        taken: set[str] = set()
        for source, provider in self._resource_providers():
            for descriptor in await _all(provider.list_resources):
                uri = descriptor.id
                if uri in taken:
                    uri = f"anykit://{source}/{urllib.parse.quote(uri, safe='')}"
                    if uri in taken:
                        continue
                taken.add(uri)
                shown = descriptor if uri == descriptor.id else descriptor.model_copy(update={"id": uri})
                found.append((shown, provider, descriptor.id))
        return found

    # prompts

    async def prompts(self) -> list[PromptDescriptor]:
        """Every prompt, under names made by the same rule as the tools'."""
        return [descriptor for descriptor, _, _ in await self._prompts()]

    async def prompt(self, name: str, args: JsonObject | None = None) -> PromptContents:
        """Fill a prompt in. Raises `InvalidInput` for an unknown name or wrong arguments."""
        context = CapabilityContext(session_id=self.caller.session, principal=self.caller.principal)
        listed = await self._prompts()
        for descriptor, get, original in listed:
            if descriptor.id == name:
                async with asyncio.timeout(LIST_TIMEOUT):
                    return await get(original, args or {}, context)
        hint = self._catalog.snapshot.suggest(name, [descriptor.id for descriptor, _, _ in listed])
        raise InvalidInput(f"no prompt {name[:128]!r}{hint}")

    async def _prompts(self) -> list[tuple[PromptDescriptor, _GetPrompt, str]]:
        found: list[tuple[Candidate, PromptDescriptor, _GetPrompt]] = []
        for source, prefix, provider in self._catalog.snapshot.prompts:
            found += [
                (Candidate(source, descriptor.id, prefix, source), descriptor, provider.get_prompt)
                for descriptor in await _all(provider.list_prompts)
            ]
        for entry in self._catalog.snapshot.toolkits.values():
            if entry.spec.prompts and (instance := self._scopes.find(self.caller, entry.name)) is not None:
                prompts = _ToolkitPrompts(entry, instance)
                origin = f"{entry.source}/{entry.name}"
                found += [
                    (Candidate(origin, prompt.name, "", entry.name), prompt.descriptor(), prompts.get_prompt)
                    for prompt in entry.spec.prompts.values()
                ]
        names = self._catalog.prompt_names.assign(candidate for candidate, _, _ in found)
        unique: dict[str, tuple[PromptDescriptor, _GetPrompt, str]] = {}
        for candidate, descriptor, get in found:
            name = names[candidate.key].exposed
            shown = descriptor if name == descriptor.id else descriptor.model_copy(update={"id": name})
            unique.setdefault(name, (shown, get, descriptor.id))
        return list(unique.values())

    # changes

    def subscribe(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Call `listener`, on the loop's thread, with each change that concerns this caller."""
        mine = set(self.caller.scopes)

        def heard(event: ToolkitEvent) -> None:
            if event.scope in mine:
                listener(event)

        def changed(snapshot: Snapshot) -> None:
            listener(CatalogChanged(snapshot))

        undo = [self._scopes.subscribe(heard), self._catalog.subscribe(changed)]

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


def _nothing() -> None:
    """What was not subscribed to needs no end."""


class _GetPrompt(Protocol):
    async def __call__(self, id: str, args: JsonObject, context: CapabilityContext) -> PromptContents: ...


class _ToolkitResources:
    """A configured toolkit's resources."""

    def __init__(self, entry: ToolkitEntry, instance: Toolkit) -> None:
        self._resources = entry.spec.resources
        self._instance = instance

    async def list_resources(self, cursor: str | None = None) -> Page[ResourceDescriptor]:
        return Page([one.descriptor() for one in self._resources.values() if not one.is_template])

    async def list_templates(self, cursor: str | None = None) -> Page[ResourceTemplate]:
        return Page([one.template() for one in self._resources.values() if one.is_template])

    async def read_resource(self, id: str, context: CapabilityContext) -> ResourceContents:
        for one in self._resources.values():
            if one.match(id) is not None:
                return await one.read(self._instance, id, context)
        raise InvalidInput(f"no resource {id!r}")


class _ToolkitPrompts:
    """A configured toolkit's prompts."""

    def __init__(self, entry: ToolkitEntry, instance: Toolkit) -> None:
        self._prompts = entry.spec.prompts
        self._instance = instance

    async def get_prompt(self, id: str, args: JsonObject, context: CapabilityContext) -> PromptContents:
        return await self._prompts[id].get(self._instance, args, context)


class _ListPage(Protocol[Item]):
    async def __call__(self, cursor: str | None = None) -> Page[Item]: ...


async def _all(list_page: _ListPage[Item]) -> Sequence[Item]:
    """Every page of a list, bounded in number and time; a list that turns in a circle ends. A failing one is empty."""
    items: list[Item] = []
    seen: set[str] = set()
    cursor: str | None = None
    try:
        async with asyncio.timeout(LIST_TIMEOUT):
            while len(items) < LISTED:
                page = await list_page(cursor)
                items += page.items
                cursor = page.next_cursor
                if cursor is None or cursor in seen:
                    break
                seen.add(cursor)
    except Exception as error:
        log.warning("a list is left out: %s", error)
    return items[:LISTED]


async def _read(provider: ResourceProvider, id: str, context: CapabilityContext) -> ResourceContents:
    try:
        async with asyncio.timeout(LIST_TIMEOUT):
            return await provider.read_resource(id, context)
    except TimeoutError:
        raise Unavailable(f"{id} could not be read within {LIST_TIMEOUT:g} s") from None


def _matches(template: str, uri: str) -> bool:
    """Whether `uri` may be of the RFC 6570 `template` (simple and reserved expansion)."""
    pattern = ""
    for index, piece in enumerate(re.split(r"\{([^{}]*)\}", template)):
        if not index % 2:
            pattern += re.escape(piece)
        elif piece[:1] in "+#":
            pattern += ".+"
        elif piece[:1] in "./;?&":
            pattern += ".*"
        else:
            pattern += "[^/?#]+"
    return re.fullmatch(pattern, uri) is not None


def _not_json(name: str, error: Exception) -> Failed:
    return Failed(codes.INVALID_INPUT, f"the arguments for {name} are not JSON: {error}")
