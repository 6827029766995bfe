"""What there is at one moment: sources, tools, toolkits, resources and prompts, as values that do not change."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anykit.capabilities import CapabilityProvider, Connected, PromptProvider, ResourceProvider, State
from anykit.tools import Tool, Toolkit, ToolkitSpec

from .naming import clean

if TYPE_CHECKING:
    from .views import Lens


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
    since: float | None = None
    """When it failed so; Unix seconds."""
    location: str = ""
    """The file, URL or module it was given as."""
    allow: tuple[str, ...] = ()
    """Tools that are offered, by globs over their names; all, where there is none."""
    deny: tuple[str, ...] = ()
    """Tools that are not, whatever `allow` says."""
    tags: tuple[str, ...] = ()
    """Tags that each of its tools gets."""


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
    given: str = ""
    """Its name by the rule, where a person chose another one."""
    key: tuple[str, str] = ("", "")
    """What it is, whatever it is called: (source, or source and toolkit; original)."""
    alias: str = ""
    """The name that a person chose."""
    pinned: bool = False
    """Whether a person said that it is not to be deferred."""

    @property
    def names(self) -> tuple[str, ...]:
        """What rules may call it: its name, its name by the rule, `source/original`."""
        name = self.tool.spec.name
        full = f"{self.source}/{self.original}"
        return (name, full) if self.given in ("", name) else (name, self.given, full)


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
    denied: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of tools that the operator does not offer, with why."""
    finder: str | None = None
    """What the tool is called that finds the deferred ones; None where nothing is deferred."""
    crowded: bool = False
    """Whether there are so many tools that some are deferred for their number alone."""
    cause: str | None = None
    """The source whose change made it; None where something else did."""
    lens: Lens | None = None
    """The view that this is seen through; None is everything."""

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
        return State("failed", source.failed, since=source.since)
    if isinstance(source.provider, Connected):
        return source.provider.state
    return State("ready")


def may_come(snapshot: Snapshot, name: str) -> bool:
    """Whether a source without a verdict may bring a tool of that name."""
    return any(
        state_of(source).status == "connecting" and (not source.prefixed or name.startswith(f"{clean(source.name)}_"))
        for source in snapshot.sources.values()
    )
