"""What there is, for everyone: definitions, their names, and where they come from.

The catalogue is rebuilt as a whole whenever a source changes, and handed out as an immutable snapshot.
"""

from __future__ import annotations

import difflib
import itertools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from anykit.capabilities import (
    CapabilityProvider,
    Connected,
    Invocable,
    PromptProvider,
    ResourceProvider,
    State,
)
from anykit.schema import SchemaError, compile_schema
from anykit.tools import Tool, Toolkit, ToolkitSpec, lift

from .naming import Candidate, Names, clean

T = TypeVar("T")

log = logging.getLogger("anykit.catalog")

TOOLS_PER_SOURCE = 10_000
"""More than that from one source is a fault of the source."""


@dataclass(frozen=True, slots=True)
class Source:
    """Something that offers capabilities, as the operator named it."""

    name: str
    kind: str
    provider: CapabilityProvider | None = None
    toolkits: tuple[type[Toolkit], ...] = ()
    prefixed: bool = False
    """Whether its tools are called `<source>_<name>`; functions and toolkits keep their own names."""
    required: bool = False
    """Whether the workbench may start without it."""
    disabled: str | None = None
    """Why it is switched off; None where it is not."""
    failed: str | None = None
    """Why it could not even be opened; None where it could."""
    location: str = ""
    """The file, URL or module it was given as."""


@dataclass(frozen=True, slots=True)
class Report:
    """Something left out, renamed or repaired, and why."""

    source: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """A tool as it is offered."""

    tool: Tool
    original: str
    source: str
    renamed: str = ""
    """Why its name is not the source's own."""


@dataclass(frozen=True, slots=True)
class ToolkitEntry:
    """A toolkit as it is offered; `tools` maps exposed names to the toolkit's own."""

    name: str
    source: str
    toolkit: type[Toolkit]
    spec: ToolkitSpec
    tools: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole catalogue at one moment."""

    version: int = 0
    tools: Mapping[str, ToolEntry] = field(default_factory=dict[str, ToolEntry])
    toolkits: Mapping[str, ToolkitEntry] = field(default_factory=dict[str, ToolkitEntry])
    sources: Mapping[str, Source] = field(default_factory=dict[str, Source])
    resources: tuple[tuple[str, ResourceProvider], ...] = ()
    """(source, provider)"""
    prompts: tuple[tuple[str, str, PromptProvider], ...] = ()
    """(source, prefix, provider)"""
    reports: tuple[Report, ...] = ()

    def suggest(self, name: str, among: Iterable[str]) -> str:
        """`; did you mean ...?` with the nearest of `among`, or nothing."""
        known = list(among)
        folded = {candidate.casefold(): candidate for candidate in reversed(known)}
        close = [folded[near] for near in difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)]
        if not close:
            close = [candidate for candidate in known if candidate.endswith(f"_{name}")][:3]
        return f"; did you mean {' or '.join(close)}?" if close else ""


def state_of(source: Source) -> State:
    """How a source is; one without a connection is ready."""
    if source.disabled is not None:
        return State("disabled", source.disabled)
    if source.failed is not None:
        return State("failed", source.failed)
    if isinstance(source.provider, Connected):
        return source.provider.state
    return State("ready")


class Catalog:
    """Sources in, snapshots out. Used on the loop's thread only."""

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}
        self._unsubscribe: dict[str, Callable[[], None]] = {}
        self._names = Names()
        self.prompt_names = Names()
        self._toolkit_names = Names()
        self._listeners: list[Callable[[Snapshot], None]] = []
        self._logged: set[Report] = set()
        self.switched_off: dict[str, str] = {}
        """Tools that the operator does not offer: the original name, and the toolkit that is switched off."""
        self.snapshot = Snapshot()

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
            taken = source if name == source.name else replace(source, name=name)
            self._sources[name] = taken
            if isinstance(taken.provider, Connected):
                self._unsubscribe[name] = taken.provider.subscribe(self.rebuild)
            added.append(taken)
        self.rebuild()
        return added

    def replace(self, source: Source) -> None:
        """The same source, changed: switched off, or another provider behind its name."""
        if self._sources[source.name].provider is not source.provider:
            unsubscribe = self._unsubscribe.pop(source.name, None)
            if unsubscribe is not None:
                unsubscribe()
            if isinstance(source.provider, Connected):
                self._unsubscribe[source.name] = source.provider.subscribe(self.rebuild)
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

    def rebuild(self) -> None:
        """Look at every source again and hand out a new snapshot."""
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
            resources += [(source.name, one) for one in _offered(source, source.provider.resources, reports)]
            prompts += [(source.name, prefix, one) for one in _offered(source, source.provider.prompts, reports)]
        entries = self._toolkits(classes, reports)
        for entry in entries:
            source = self._sources[entry.source]
            offered += [(source, "", entry.name, tool, entry.name) for tool in entry.spec.tools.values()]
        tools, of_toolkit = self._tools(offered, reports)
        toolkits = {entry.name: replace(entry, tools=of_toolkit.get(entry.name, {})) for entry in entries}
        for report in reports:
            if report not in self._logged:
                self._logged.add(report)
                log.warning("%s: %s: %s", report.source, report.name, report.reason)
        self.snapshot = Snapshot(
            version=self.snapshot.version + 1,
            tools=tools,
            toolkits=toolkits,
            sources=dict(self._sources),
            resources=tuple(resources),
            prompts=tuple(prompts),
            reports=tuple(reports),
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
                fault = _fault(name, spec.input_schema, seen)
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

    def _tools(
        self, offered: Sequence[tuple[Source, str, str | None, Invocable, str]], reports: list[Report]
    ) -> tuple[dict[str, ToolEntry], dict[str, dict[str, str]]]:
        def candidate(source: Source, prefix: str, toolkit: str | None, invocable: Invocable, owner: str) -> Candidate:
            # Two toolkits of one source may each have a tool of the same name.
            origin = source.name if toolkit is None else f"{source.name}/{toolkit}"
            return Candidate(origin, invocable.spec.name, prefix, owner)

        candidates = [candidate(*offer) for offer in offered]
        names = self._names.assign(candidates)
        tools: dict[str, ToolEntry] = {}
        of_toolkit: dict[str, dict[str, str]] = {}
        for asked, (source, _, toolkit, invocable, _) in zip(candidates, offered, strict=True):
            name = names[asked.key]
            original = invocable.spec.name
            changes: dict[str, Any] = {"name": name.exposed}
            if source.prefixed:
                changes["source"] = source.name
            if toolkit is not None:
                changes["toolkit"] = toolkit
                of_toolkit.setdefault(toolkit, {})[name.exposed] = original
            tools[name.exposed] = ToolEntry(lift(invocable, **changes), original, source.name, name.reason)
            if name.reason and name.reason != "source prefix":
                reports.append(Report(source.name, original, f"called {name.exposed}: {name.reason}"))
        return tools, of_toolkit


def _offered(source: Source, ask: Callable[[], Iterable[T]], reports: list[Report]) -> list[T]:
    """What a provider offers; one that breaks when it is asked costs only itself. No more than is looked at."""
    try:
        return list(itertools.islice(ask(), TOOLS_PER_SOURCE + 1))
    except Exception as error:
        log.exception("source %s broke when it was asked what it offers", source.name)
        reports.append(Report(source.name, "", f"left out: asking it failed with {type(error).__name__}"))
        return []


def _fault(name: object, schema: object, seen: set[str]) -> str:
    if not isinstance(name, str) or not name:
        return "it has no name"
    if name in seen:
        return "the source offers that name twice"
    if not isinstance(schema, dict):
        return "its input schema is not an object"
    kind = schema.get("type", "object")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if kind != "object":
        return f"its input schema describes no object but {str(kind)[:40]!r}"  # pyright: ignore[reportUnknownArgumentType]
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


def may_come(snapshot: Snapshot, name: str) -> bool:
    """Whether a source without a verdict may bring a tool of that name."""
    return any(
        state_of(source).status == "connecting" and (not source.prefixed or name.startswith(f"{clean(source.name)}_"))
        for source in snapshot.sources.values()
    )
