"""Views: the part of everything that somebody is served, and which of its tools a model finds only by searching.

A view narrows; what is outside is unknown to whoever has it. It is worked out once for each snapshot and then is a
snapshot itself, so that a call pays no more for it than one look into another dictionary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import translate
from typing import Final, TypeAlias

from anykit.tools import LiftedTool, Tool

from .naming import clean
from .snapshot import Snapshot, Source, ToolEntry, ToolkitEntry

Kind: TypeAlias = str
KINDS: Final = ("tag", "source", "toolkit")
"""What a pattern may speak of, before a colon; without one it speaks of names."""
_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class View:
    """What is in a view, as the operator says it.

    Patterns are globs over names (a tool's name, its name by the rule where it has another one, or `source/original`; a
    resource's URI or name; a prompt's name), or `tag:GLOB`, `source:GLOB`, `toolkit:GLOB`.
    """

    name: str
    description: str = ""
    include: tuple[str, ...] = ()
    """What is in it; all, where neither this nor `tags` says anything."""
    exclude: tuple[str, ...] = ()
    """What is not in it, whatever else says that it is."""
    tags: tuple[str, ...] = ()
    """Tools with one of these tags are in it too."""
    resources: tuple[str, ...] | None = None
    """Resources that are in it; None: as `include` says."""
    prompts: tuple[str, ...] | None = None
    """Prompts that are in it; None: as `include` says."""
    deferred_after: int | None = None
    """So many tools are listed and the rest is found by searching; None is no bound."""
    listed: tuple[str, ...] = ()
    """Tools that stay listed, before any others."""


class Patterns:
    """Several patterns; something matches where one of them does."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self.texts = tuple(dict.fromkeys(patterns))
        self._exact: set[str] = set()
        self._names: list[Callable[[str], object]] = []
        self._of: dict[Kind, list[Callable[[str], object]]] = {kind: [] for kind in KINDS}
        self._heads: list[str] = []
        for text in self.texts:
            kind, colon, rest = text.partition(":")
            if colon and kind in KINDS:
                self._of[kind].append(_glob(rest))
            elif _WILD.search(text):
                self._names.append(_glob(text))
                self._heads.append(_WILD.split(text, maxsplit=1)[0])
            else:
                self._exact.add(text)
                self._heads.append(text)

    def __bool__(self) -> bool:
        return bool(self.texts)

    def tool(self, entry: ToolEntry) -> bool:
        """Whether a tool matches."""
        spec = entry.tool.spec
        return self.match(
            entry.names, tags=spec.tags, source=entry.source, toolkit=spec.toolkit if self._of["toolkit"] else None
        )

    def match(
        self, names: Iterable[str], *, tags: Iterable[str] = (), source: str = "", toolkit: str | None = None
    ) -> bool:
        """Whether something of these names, of that source and toolkit, matches."""
        for name in names:
            if name in self._exact or any(fits(name) for fits in self._names):
                return True
        of = self._of
        return (
            any(fits(source) for fits in of["source"])
            or (toolkit is not None and any(fits(toolkit) for fits in of["toolkit"]))
            or (bool(of["tag"]) and any(fits(tag) for fits in of["tag"] for tag in tags))
        )

    def may_speak_of(self, source: Source) -> bool:
        """Whether tools that a source has not brought yet might match."""
        if any(fits(source.name) for fits in self._of["source"]) or self._of["tag"] or self._of["toolkit"]:
            return True
        prefix = f"{clean(source.name)}_" if source.prefixed else ""
        slashed = f"{source.name}/"
        return any(
            head.startswith((prefix, slashed)) or prefix.startswith(head) or slashed.startswith(head)
            for head in self._heads
        )


def _glob(pattern: str) -> Callable[[str], object]:
    return re.compile(translate(pattern)).match


class Lens:
    """A view, ready to be looked through."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._include = Patterns([*view.include, *(f"tag:{tag}" for tag in view.tags)])
        self._exclude = Patterns(view.exclude)
        self._resources = self._include if view.resources is None else Patterns(view.resources)
        self._prompts = self._include if view.prompts is None else Patterns(view.prompts)

    def tool(self, entry: ToolEntry) -> bool:
        """Whether a tool is in the view."""
        return (not self._include or self._include.tool(entry)) and not self._exclude.tool(entry)

    def resource(self, names: Sequence[str], *, source: str, toolkit: str | None = None) -> bool:
        """Whether a resource, or a family of them, is in it; `names` are its URI and its names."""
        everything = self.view.resources is None and not self._include
        inside = everything or self._resources.match(names, source=source, toolkit=toolkit)
        return inside and not self.excluded(names, source=source, toolkit=toolkit)

    def excluded(self, names: Sequence[str], *, source: str, toolkit: str | None = None) -> bool:
        """Whether something is said not to be in it."""
        return self._exclude.match(names, source=source, toolkit=toolkit)

    def prompt(self, names: Sequence[str], *, source: str, toolkit: str | None = None) -> bool:
        """Whether a prompt is in it."""
        everything = self.view.prompts is None and not self._include
        inside = everything or self._prompts.match(names, source=source, toolkit=toolkit)
        return inside and not self._exclude.match(names, source=source, toolkit=toolkit)

    def _may_speak_of(self, source: Source) -> bool:
        if self._exclude.match((), source=source.name):
            return False
        return not self._include or any(
            patterns.may_speak_of(source) for patterns in (self._include, self._resources, self._prompts)
        )

    def through(self, whole: Snapshot) -> Snapshot:
        """The catalogue as it looks through the view."""
        tools = {name: entry for name, entry in whole.tools.items() if self.tool(entry)}
        bringing = {entry.source for entry in tools.values()}
        toolkits: dict[str, ToolkitEntry] = {}
        for name, entry in whole.toolkits.items():
            inside = {exposed: own for exposed, own in entry.tools.items() if exposed in tools}
            more = not entry.tools or bool(entry.spec.resources or entry.spec.prompts)
            if inside or (more and self._speaks_of_toolkit(entry)):
                toolkits[name] = replace(entry, tools=inside)
                bringing.add(entry.source)
        sources = {
            name: source for name, source in whole.sources.items() if name in bringing or self._may_speak_of(source)
        }
        return replace(
            whole,
            tools=tools,
            toolkits=toolkits,
            sources=sources,
            resources=tuple(one for one in whole.resources if one[0] in sources),
            prompts=tuple(one for one in whole.prompts if one[0] in sources),
            denied={},
            reports=tuple(report for report in whole.reports if report.source in sources),
            lens=self,
        )

    def _speaks_of_toolkit(self, entry: ToolkitEntry) -> bool:
        return self.prompt((), source=entry.source, toolkit=entry.name) or self.resource(
            (), source=entry.source, toolkit=entry.name
        )


class Marks:
    """Tools marked as deferred or listed, remembered so that one that did not change is the same one again."""

    def __init__(self) -> None:
        self._before: dict[tuple[tuple[str, str], bool], tuple[ToolEntry, ToolEntry]] = {}
        self._now: dict[tuple[tuple[str, str], bool], tuple[ToolEntry, ToolEntry]] = {}

    def turn(self) -> None:
        """The catalogue is made anew: what nobody asks for again is forgotten."""
        self._before, self._now = self._now, {}

    def of(self, entry: ToolEntry, *, deferred: bool) -> ToolEntry:
        """The same tool, listed or to be found."""
        if entry.tool.deferred == deferred:
            return entry
        key = (entry.key, deferred)
        known = self._now.get(key) or self._before.get(key)
        if known is None or known[0] is not entry:
            known = (entry, marked(entry, deferred=deferred))
        self._now[key] = known
        return known[1]


def deferring(snapshot: Snapshot, finder: str, *, after: int | None, listed: Patterns, marks: Marks) -> Snapshot:
    """The same, with the tools beyond the first `after` left to be found, beside those that say so themselves.

    Those that are to stay `listed` count first; they and the first of the others make up the number. `finder` is what the
    tool is called that finds them.
    """
    tools = snapshot.tools
    if after is None and not any(entry.tool.deferred for entry in tools.values()):
        return snapshot
    kept = {name for name, entry in tools.items() if entry.pinned or (listed and listed.tool(entry))}
    deferred = {name for name, entry in tools.items() if entry.tool.deferred and name not in kept}
    crowded = after is not None and len(tools) > after
    if after is not None and crowded:
        others = [name for name in tools if name not in kept and name not in deferred]
        deferred.update(others[max(after - len(kept), 0) :])
    if not deferred:
        shown = {name: marks.of(entry, deferred=False) for name, entry in snapshot.tools.items()}
        return replace(snapshot, tools=shown, finder=None)
    shown = {name: marks.of(entry, deferred=name in deferred) for name, entry in snapshot.tools.items()}
    return replace(snapshot, tools=shown, finder=finder, crowded=crowded)


def marked(entry: ToolEntry, *, deferred: bool) -> ToolEntry:
    """The same tool, listed or to be found."""
    if entry.tool.deferred == deferred:
        return entry
    return replace(entry, tool=_marked(entry.tool, deferred))


def _marked(tool: Tool, deferred: bool) -> Tool:
    inner = tool.invocable if type(tool) is LiftedTool else tool
    return LiftedTool(inner, tool.spec.model_copy(update={"deferred": deferred}))
