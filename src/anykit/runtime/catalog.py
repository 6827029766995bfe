"""What there is, for everyone: definitions, their names, and where they come from.

The catalogue is rebuilt as a whole whenever a source changes, and handed out as an immutable snapshot.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import itertools
import logging
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

from anykit.capabilities import CapabilityProvider, Connected, Invocable, PromptProvider, ResourceProvider
from anykit.schema import SchemaError, compile_schema
from anykit.tools import Tool, Toolkit, lift

from .naming import CLEANED, Candidate, Names, clean, hashed
from .search import Index, Words
from .snapshot import Report, Snapshot, Source, ToolEntry, ToolkitEntry
from .views import Lens, Marks, Patterns, View, deferring

T = TypeVar("T")

log = logging.getLogger("anykit.catalog")

TOOLS_PER_SOURCE = 10_000
"""More than that from one source is a fault of the source."""


FINDER: Final = "find_tools"
"""The tool that finds deferred ones."""
_FINDER_KEY: Final = ("", FINDER)


@dataclass(frozen=True, slots=True)
class Shaped:
    """Tools as the operator wants them: in other words, by other names (`ToolEntry.alias`), fewer."""

    entries: Sequence[ToolEntry]
    denied: Mapping[str, str] = field(default_factory=dict[str, str])
    """Those that are left out, by the name that the rule gave them, with why."""
    reports: Sequence[Report] = ()
    """What means nothing."""
    faults: Sequence[Report] = ()
    """What is void, with why."""


class Shaping(Protocol):
    """What the operator says about tools, whatever source they come from."""

    @property
    def defers(self) -> bool:
        """Whether it may defer tools."""
        ...

    def shaped(self, entries: Sequence[ToolEntry], sources: Mapping[str, Source]) -> Shaped:
        """Apply it. Never raises for what a person may get wrong: what is void is reported."""
        ...


@runtime_checkable
class Shared(Protocol):
    """An invocable that stands for several sources, of which one offers it: whichever it is, its name is the same."""

    @property
    def origin(self) -> str:
        """Whose it is; no source is called so."""
        ...


@runtime_checkable
class Reporting(Protocol):
    """A provider that tells what it does not offer as it was written, and why."""

    def reports(self) -> Sequence[tuple[str, str]]:
        """What it is about, such as a file with a line, and what there is to say."""
        ...


class Catalog:
    """Sources in, snapshots out. Used on the loop's thread only."""

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}
        self._held = False
        self._unsubscribe: dict[str, Callable[[], None]] = {}
        self._names = Names()
        self.prompt_names = Names()
        self._toolkit_names = Names()
        self._listeners: list[Callable[[Snapshot], None]] = []
        self._logged: set[Report] = set()
        self.switched_off: dict[str, str] = {}
        """Tools that the operator does not offer: the original name, and the toolkit that is switched off."""
        self._words = Words()
        self._index: tuple[Snapshot, Index] | None = None
        self._indexing = asyncio.Lock()
        self._marks = Marks()
        self.snapshot = Snapshot()
        """Everything."""
        self._whole = self.snapshot
        self._lenses: dict[str, Lens] = {}
        self._seen: dict[str, Snapshot] = {}
        self._deferred_after: int | None = None
        self._shaping: Shaping | None = None
        self._finder = ""
        self._lifted: dict[tuple[str, str], tuple[Invocable, object, dict[str, Any], ToolEntry]] = {}
        self._renamed: dict[tuple[str, str], tuple[ToolEntry, str, ToolEntry]] = {}
        self.faults: tuple[Report, ...] = ()
        """What of the operator's words about tools is void."""

    @property
    def views(self) -> Mapping[str, View]:
        """The views, by name."""
        return {name: lens.view for name, lens in self._lenses.items()}

    def arrange(
        self,
        *,
        shaping: Shaping | None = None,
        views: Iterable[View] = (),
        deferred_after: int | None = None,
    ) -> None:
        """What the operator says about tools from now on, the views, and how many tools are listed before the rest is
        left to be found (None: all).
        """
        self._shaping = shaping
        self._lenses = {view.name: Lens(view) for view in views}
        self._deferred_after = deferred_after
        if self._sources:
            self.rebuild()

    def judge(self, shaping: Shaping) -> list[Report]:
        """What of a shaping would be void, with the tools that there are now. Nothing changes."""
        entries = [known[3] for known in self._lifted.values()]
        shaped = shaping.shaped(entries, self._sources)
        return [*shaped.faults, *_chosen(shaped.entries, copy.deepcopy(self._names))[1]]

    def seen(self, view: str | None) -> Snapshot:
        """The catalogue as it looks through a view; None is everything. Through a view that is gone nothing is seen."""
        if view is None:
            return self.snapshot
        seen = self._seen.get(view)
        if seen is None:
            lens = self._lenses.get(view)
            if lens is None:
                return Snapshot(self.snapshot.version)
            said = lens.view.deferred_after
            after = self._deferred_after if said is None else said
            narrowed = lens.through(self._whole)
            listed = Patterns(lens.view.listed)
            seen = deferring(narrowed, self._finder, after=after, listed=listed, marks=self._marks)
            self._seen[view] = seen
        return seen

    async def index(self) -> Index:
        """What finds tools by words: made, in a thread, once somebody searches, and anew once the tools change."""
        whole = self._whole
        if self._index is None or self._index[0] is not whole:
            async with self._indexing:
                if self._index is None or self._index[0] is not whole:
                    specs = [entry.tool.spec for entry in whole.tools.values()]
                    self._index = (whole, await asyncio.to_thread(Index, specs, self._words))
        return self._index[1]

    def subscribe(self, listener: Callable[[Snapshot], None]) -> Callable[[], None]:
        """Call `listener` with each new snapshot until the returned function is called."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def add(self, *sources: Source) -> list[Source]:
        """Take sources in, all at once, so that equal names are decided together. A taken name gets a number."""
        added: list[Source] = []
        for source in sources:
            name, number = source.name, 2
            while name in self._sources:
                name, number = f"{source.name}_{number}", number + 1
            taken = _dated(source if name == source.name else replace(source, name=name))
            self._sources[name] = taken
            if isinstance(taken.provider, Connected):
                self._unsubscribe[name] = taken.provider.subscribe(partial(self.rebuild, name))
            added.append(taken)
        self.rebuild()
        return added

    def replace(self, source: Source) -> None:
        """The same source, changed: switched off, or another provider behind its name."""
        source = _dated(source)
        if self._sources[source.name].provider is not source.provider:
            unsubscribe = self._unsubscribe.pop(source.name, None)
            if unsubscribe is not None:
                unsubscribe()
            if isinstance(source.provider, Connected):
                self._unsubscribe[source.name] = source.provider.subscribe(partial(self.rebuild, source.name))
        self._sources[source.name] = source
        self.rebuild()

    def remove(self, name: str) -> Source:
        """Take a source out. Raises `KeyError` where there is none of that name."""
        source = self._sources.pop(name)
        unsubscribe = self._unsubscribe.pop(name, None)
        if unsubscribe is not None:
            unsubscribe()
        self.rebuild()
        return source

    @contextlib.contextmanager
    def at_once(self) -> Generator[None]:
        """Whatever is added, replaced and removed meanwhile is one change, seen as one new snapshot at the end."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
            self.rebuild()

    def put_in_order(self, names: Sequence[str]) -> None:
        """Let the sources of these names come first, in this order, from the next snapshot on."""
        known = [name for name in names if name in self._sources]
        self._sources = {name: self._sources[name] for name in dict.fromkeys([*known, *self._sources])}

    def rebuild(self, cause: str | None = None) -> None:
        """Look at every source again and hand out a new snapshot. `cause` is the source that made it necessary."""
        if self._held:
            return
        reports: list[Report] = []
        offered: list[tuple[Source, str, str | None, Invocable, str]] = []
        resources: list[tuple[str, ResourceProvider]] = []
        prompts: list[tuple[str, str, PromptProvider]] = []
        classes: list[tuple[Source, type[Toolkit]]] = []
        for source in self._sources.values():
            if source.disabled is not None:
                continue
            classes += [(source, toolkit) for toolkit in source.toolkits]
            if source.provider is None:
                continue
            prefix = f"{clean(source.name)}_" if source.prefixed else ""
            offered += [
                (source, prefix, None, invocable, _owner(source, invocable))
                for invocable in self._invocables(source, source.provider, reports)
            ]
            if isinstance(source.provider, Reporting):
                said = _offered(source, source.provider.reports, reports)
                reports += [Report(source.name, name, reason) for name, reason in said]
            resources += [(source.name, one) for one in _offered(source, source.provider.resources, reports)]
            prompts += [(source.name, prefix, one) for one in _offered(source, source.provider.prompts, reports)]
        entries = self._toolkits(classes, reports)
        for entry in entries:
            source = self._sources[entry.source]
            offered += [(source, "", entry.name, tool, entry.name) for tool in entry.spec.tools.values()]
        self._name_finder(offered, reports)
        tools, of_toolkit, denied = self._tools(offered, reports)
        toolkits = {entry.name: replace(entry, tools=of_toolkit.get(entry.name, {})) for entry in entries}
        for report in reports:
            if report not in self._logged:
                self._logged.add(report)
                # A document of REST calls has hundreds of names that are only cleaned; `list --names` tells of them.
                level = logging.INFO if report.reason.endswith(f": {CLEANED}") else logging.WARNING
                log.log(level, "%s: %s: %s", report.source, report.name, report.reason)
        self._whole = Snapshot(
            version=self.snapshot.version + 1,
            tools=tools,
            toolkits=toolkits,
            sources=dict(self._sources),
            resources=tuple(resources),
            prompts=tuple(prompts),
            reports=tuple(reports),
            denied=denied,
            cause=cause,
        )
        self._seen.clear()
        self._marks.turn()
        self.snapshot = deferring(
            self._whole, self._finder, after=self._deferred_after, listed=Patterns(()), marks=self._marks
        )
        for listener in list(self._listeners):
            listener(self.snapshot)

    def _invocables(self, source: Source, provider: CapabilityProvider, reports: list[Report]) -> Iterable[Invocable]:
        """What a source offers, less what is malformed: one bad tool costs only itself."""
        seen: set[str] = set()
        for index, invocable in enumerate(_offered(source, provider.invocables, reports)):
            if index >= TOOLS_PER_SOURCE:
                reports.append(Report(source.name, "", f"more than {TOOLS_PER_SOURCE} tools; the rest is left out"))
                return
            try:
                spec = invocable.spec
                name = spec.name
                checked = isinstance(invocable, Tool) and invocable.is_checked
                fault = _fault(name, spec.input_schema, seen, checked=checked)
            except Exception as error:
                reports.append(Report(source.name, f"#{index}", f"left out: {type(error).__name__}"))
                continue
            if fault:
                reports.append(Report(source.name, name, f"left out: {fault}"))
                continue
            seen.add(name)
            yield invocable

    def _toolkits(self, classes: Sequence[tuple[Source, type[Toolkit]]], reports: list[Report]) -> list[ToolkitEntry]:
        unique: dict[tuple[str, str], tuple[Source, type[Toolkit]]] = {}
        for source, toolkit in classes:
            key = (source.name, toolkit.spec().name)
            if key in unique:
                reports.append(Report(source.name, key[1], "left out: the source has another toolkit of that name"))
                continue
            unique[key] = (source, toolkit)
        names = self._toolkit_names.assign(Candidate(source, name, "", source) for source, name in unique)
        entries: list[ToolkitEntry] = []
        for key, (source, toolkit) in unique.items():
            name = names[key]
            if name.reason:
                reports.append(Report(source.name, key[1], f"called {name.exposed}: {name.reason}"))
            entries.append(ToolkitEntry(name.exposed, source.name, toolkit, toolkit.spec(), {}))
        return entries

    def _name_finder(
        self, offered: Sequence[tuple[Source, str, str | None, Invocable, str]], reports: list[Report]
    ) -> None:
        """Name the tool that finds others before those that come now, once any may have to be found."""
        if self._finder:
            return
        wanted = (
            self._deferred_after is not None
            or (self._shaping is not None and self._shaping.defers)
            or any(lens.view.deferred_after is not None for lens in self._lenses.values())
            or any(getattr(invocable.spec, "deferred", False) for _, _, _, invocable, _ in offered)
        )
        if wanted:
            named = self._names.assign([Candidate(*_FINDER_KEY, "", "anykit")])[_FINDER_KEY]
            self._finder = named.exposed
            self._names.show([self._finder])
            if named.reason:
                reports.append(Report("anykit", FINDER, f"called {named.exposed}: {named.reason}"))

    def _tools(
        self, offered: Sequence[tuple[Source, str, str | None, Invocable, str]], reports: list[Report]
    ) -> tuple[dict[str, ToolEntry], dict[str, dict[str, str]], dict[str, str]]:
        def candidate(source: Source, prefix: str, toolkit: str | None, invocable: Invocable, owner: str) -> Candidate:
            # Two toolkits of one source may each have a tool of the same name.
            origin = source.name if toolkit is None else f"{source.name}/{toolkit}"
            if isinstance(invocable, Shared):
                origin = invocable.origin
            return Candidate(origin, invocable.spec.name, prefix, owner)

        candidates = [candidate(*offer) for offer in offered]
        names = self._names.assign(candidates)
        before, self._lifted = self._lifted, {}
        entries: list[ToolEntry] = []
        for asked, (source, _, toolkit, invocable, _) in zip(candidates, offered, strict=True):
            name = names[asked.key]
            original = asked.original
            changes: dict[str, Any] = {"name": name.exposed}
            if source.prefixed:
                changes["source"] = source.name
            if toolkit is not None:
                changes["toolkit"] = toolkit
            spec = invocable.spec
            known = before.get(asked.key)
            if known is not None and known[0] is invocable and known[1] is spec and known[2] == changes:
                entry = known[3]
            else:
                entry = ToolEntry(
                    lift(invocable, **changes), original, source.name, name.reason, name.exposed, asked.key
                )
            self._lifted[asked.key] = (invocable, spec, changes, entry)
            entries.append(entry)
            if name.reason and name.reason != "source prefix":
                reports.append(Report(source.name, original, f"called {name.exposed}: {name.reason}"))
        shaped = Shaped(entries) if self._shaping is None else self._shaping.shaped(entries, self._sources)
        chosen, collisions = _chosen(shaped.entries, self._names)
        self.faults = (*shaped.faults, *collisions)
        reports += [*self.faults, *shaped.reports]
        tools = {entry.tool.name: entry for entry in self._called(shaped.entries, chosen)}
        self._names.show(tools)
        of_toolkit: dict[str, dict[str, str]] = {}
        for name, entry in tools.items():
            if entry.tool.toolkit is not None:
                of_toolkit.setdefault(entry.tool.toolkit, {})[name] = entry.original
        return tools, of_toolkit, {name: why for name, why in shaped.denied.items() if name not in tools}

    def _called(self, entries: Sequence[ToolEntry], chosen: Mapping[tuple[str, str], str]) -> Iterable[ToolEntry]:
        before, self._renamed = self._renamed, {}
        for entry in entries:
            name = chosen.get(entry.key, entry.tool.name)
            if name == entry.tool.name:
                yield entry
                continue
            known = before.get(entry.key)
            if known is None or known[0] is not entry or known[1] != name:
                reason = "chosen in the configuration" if name == entry.alias else entry.renamed
                known = (entry, name, replace(entry, tool=lift(entry.tool, name=name), renamed=reason))
            self._renamed[entry.key] = known
            yield known[2]


def _chosen(entries: Sequence[ToolEntry], names: Names) -> tuple[dict[tuple[str, str], str], list[Report]]:
    """What those tools are called for which a person chose a name, as far as nothing else is known by it."""
    chosen: dict[tuple[str, str], str] = {}
    reports: list[Report] = []
    if not any(entry.alias for entry in entries):
        return chosen, reports
    taken = {entry.given: entry for entry in entries if not entry.alias}
    void: list[ToolEntry] = []
    for entry in entries:
        if not entry.alias:
            continue
        rival = taken.get(entry.alias)
        if rival is None and names.claim(entry.key, entry.alias):
            taken[entry.alias] = entry
            chosen[entry.key] = entry.alias
            continue
        void.append(entry)
        owner = names.owner(entry.alias)
        if rival is not None:
            who = f"that of {rival.source}/{rival.original}"
        elif owner == _FINDER_KEY:
            who = "that of the tool that finds others"
        else:
            who = f"what callers know {'/'.join(owner or ())} by"
        text = f"stays {entry.given}: the name {entry.alias!r} is {who}; choose another"
        reports.append(Report(entry.source, entry.original, text))
    for entry in void:
        name, salt = entry.given, 0
        while name in taken or not names.claim(entry.key, name):
            name, salt = hashed(entry.given, entry.key, salt=salt), salt + 1
        taken[name] = entry
        chosen[entry.key] = name
    return chosen, reports


def _dated(source: Source) -> Source:
    """A source that failed, with when."""
    return source if source.failed is None or source.since is not None else replace(source, since=time.time())


def _offered(source: Source, ask: Callable[[], Iterable[T]], reports: list[Report]) -> list[T]:
    """What a provider offers; one that breaks when it is asked costs only itself. No more than is looked at."""
    try:
        return list(itertools.islice(ask(), TOOLS_PER_SOURCE + 1))
    except Exception as error:
        log.exception("source %s broke when it was asked what it offers", source.name)
        reports.append(Report(source.name, "", f"left out: asking it failed with {type(error).__name__}"))
        return []


def _fault(name: object, schema: object, seen: set[str], *, checked: bool = False) -> str:
    if not isinstance(name, str) or not name:
        return "it has no name"
    if name in seen:
        return "the source offers that name twice"
    if not isinstance(schema, dict):
        return "its input schema is not an object"
    kind = schema.get("type", "object")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if kind != "object":
        return f"its input schema describes no object but {str(kind)[:40]!r}"  # pyright: ignore[reportUnknownArgumentType]
    if checked:
        return ""
    try:
        compile_schema(schema)  # pyright: ignore[reportUnknownArgumentType]
    except SchemaError as error:
        return str(error)
    return ""


def _owner(source: Source, invocable: Invocable) -> str:
    if source.prefixed:
        return source.name
    module = getattr(getattr(invocable, "function", None), "__module__", None)
    return module.rpartition(".")[2] if isinstance(module, str) and module else source.name
