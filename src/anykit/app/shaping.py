"""What the operator says about tools, whatever source they come from: `[tools.NAME]`, `allow`, `deny`, tags.

What is void is left out and reported: it never costs more than itself. A fixed value that cannot be had takes its tool out,
since the tool without it is another one than the operator meant to offer.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Final, cast

from anykit.capabilities import Annotations, Json
from anykit.runtime import Catalog, Patterns, Report, Shaped, Shaping, Source, ToolEntry, View, state_of
from anykit.runtime.naming import VALID
from anykit.schema import SchemaError
from anykit.sources import ArgumentChange, Rearranged, sound
from anykit.stores import UnresolvedReference, has_reference, resolve_all
from anykit.tools import Tool, lift

from .config import AppConfig, ConfigError
from .lock import Enforced
from .tool_tables import ArgumentConfig, ToolConfig

SOURCE: Final = "configuration"
"""Whose the reports are that belong to no source."""


def views_of(config: AppConfig) -> list[View]:
    """The views of a configuration."""
    return [
        View(
            name=name,
            description=said.description,
            include=tuple(said.include),
            exclude=tuple(said.exclude),
            tags=tuple(said.tags),
            resources=None if said.resources is None else tuple(said.resources),
            prompts=None if said.prompts is None else tuple(said.prompts),
            deferred_after=said.deferred_after,
            listed=tuple(said.listed),
        )
        for name, said in config.views.items()
    ]


def arrange(catalog: Catalog, config: AppConfig) -> None:
    """Let a catalogue be as a configuration says, from now on."""
    catalog.arrange(shaping=shaping_of(config), views=views_of(config), deferred_after=config.deferred_after)


def shaping_of(config: AppConfig) -> Shaping:
    """What a configuration says about tools."""
    said = ConfiguredShaping(config)
    return Enforced(said, config.folder) if config.lock.enforce else said


def check(catalog: Catalog, config: AppConfig) -> None:
    """Hold a configuration that is to be applied against the tools that there are. Raises `ConfigError` for what is void."""
    faults = catalog.judge(ConfiguredShaping(config))
    if faults:
        raise ConfigError("\n".join(f"{config.path or 'config'}: {one.name}: {one.reason}" for one in faults))


def view_for(config: AppConfig, principal: str, face: str, *, served: str | None = None) -> str | None:
    """The view of a caller: its token's, else that of everything `served`, else its face's; None is everything."""
    said = config.serve
    for token in said.tokens:
        if token.name == principal and token.view is not None:
            return token.view
    if face not in FACES:
        return None
    return served or getattr(said.faces, face)


FACES: Final = ("a2e", "mcp", "a2a")


@dataclass(slots=True)
class _Made:
    """What became of one tool."""

    given: ToolEntry
    tags: tuple[str, ...]
    entry: ToolEntry
    off: str = ""
    """Why it is not offered."""
    faults: list[Report] = field(default_factory=list[Report])


class ConfiguredShaping:
    """The `Shaping` of a configuration.

    Args:
        config: What is said.
        env: Where references are looked up; the process's environment, if not given.
    """

    def __init__(self, config: AppConfig, env: Mapping[str, str] | None = None) -> None:
        self._tools = dict(config.tools)
        self._views = dict(config.views)
        self._allow = Patterns(config.allow)
        self._deny = Patterns(config.deny)
        self._folder = config.folder
        self._env = env
        self._made: dict[tuple[str, str], _Made] = {}

    @property
    def defers(self) -> bool:
        """Whether a tool is told to be deferred."""
        return any(said.deferred for said in self._tools.values())

    def shaped(self, entries: Sequence[ToolEntry], sources: Mapping[str, Source]) -> Shaped:
        """See `Shaping`."""
        said, faults, reports = self._said_of(entries, sources)
        before, self._made = self._made, {}
        shaped: list[ToolEntry] = []
        denied: dict[str, str] = {}
        for entry in entries:
            source = sources[entry.source]
            known = before.get(entry.key)
            if known is None or known.given is not entry or known.tags != source.tags:
                known = self._one(entry, source.tags, said.get(entry.key, ()))
            self._made[entry.key] = known
            faults += known.faults
            if why := known.off or self._denied(known.entry, source):
                denied[entry.given] = why
            else:
                shaped.append(known.entry)
        reports += self._idle(entries, [self._made[entry.key].entry for entry in entries], sources)
        return Shaped(shaped, denied, reports, faults)

    # which table means which tool

    def _said_of(
        self, entries: Sequence[ToolEntry], sources: Mapping[str, Source]
    ) -> tuple[dict[tuple[str, str], list[tuple[str, ToolConfig]]], list[Report], list[Report]]:
        said: dict[tuple[str, str], list[tuple[str, ToolConfig]]] = {}
        faults: list[Report] = []
        reports: list[Report] = []
        if not self._tools:
            return said, faults, reports
        by_name: dict[str, list[ToolEntry]] = {}
        for entry in entries:
            for name in entry.names:
                by_name.setdefault(name, []).append(entry)
        for name, table in self._tools.items():
            meant = by_name.get(name, [])
            if len(meant) == 1:
                said.setdefault(meant[0].key, []).append((name, table))
            elif meant:
                names = ", ".join(entry.given for entry in meant)
                faults.append(Report(SOURCE, f"tools.{name}", f"void: it means {len(meant)} tools; say which: {names}"))
            elif _all_known(sources, name):
                reports.append(Report(SOURCE, f"tools.{name}", f"there is no such tool{_nearest(name, by_name)}"))
        return said, faults, reports

    # one tool

    def _one(self, entry: ToolEntry, tags: tuple[str, ...], said: Iterable[tuple[str, ToolConfig]]) -> _Made:
        made = _Made(entry, tags, entry)
        tool = entry.tool
        for name, table in said:
            tool = self._arranged(made, tool, name, table)
            changes = _changes(table, tool)
            if changes:
                tool = lift(tool, **changes)
            if not table.enabled:
                made.off = "it is switched off in the configuration"
            if table.name is not None and table.name != entry.given:
                if VALID.fullmatch(table.name):
                    made.entry = replace(made.entry, alias=table.name)
                else:
                    text = (
                        f"stays {entry.given}: {table.name[:80]!r} is no name for a tool; letters, digits, _ and -, at"
                        " most 64 of them, the first a letter or _"
                    )
                    made.faults.append(Report(SOURCE, f"tools.{name}.name", text))
            if table.deferred is False:
                made.entry = replace(made.entry, pinned=True)
        if tags:
            tool = lift(tool, tags=tuple(dict.fromkeys((*tool.tags, *tags))))
        if tool is not entry.tool:
            made.entry = replace(made.entry, tool=tool)
        return made

    def _arranged(self, made: _Made, tool: Tool, name: str, table: ToolConfig) -> Tool:
        """The tool with its arguments as they are to be; what is void stays as it was."""
        if not table.arguments:
            return tool
        changes: dict[str, ArgumentChange] = {}
        for argument, said in table.arguments.items():
            try:
                changes[argument] = self._change(said)
            except UnresolvedReference as error:
                why = error.errors[0]["message"] if error.errors else str(error)
                text = f"its argument {argument} cannot be given its value: {why}"
                made.off = made.off or text
                made.faults.append(Report(SOURCE, f"tools.{name}.arguments.{argument}", f"switched off: {text}"))
        good, bad = sound(tool, changes)
        made.faults += [Report(SOURCE, f"tools.{name}.arguments.{argument}", f"void: {why}") for argument, why in bad]
        if not good:
            return tool
        try:
            return Rearranged(tool, good)
        except SchemaError as error:
            text = f"void: the schema of {made.given.given} cannot be rearranged so: {error}"
            made.faults.append(Report(SOURCE, f"tools.{name}.arguments", text))
            return tool

    def _change(self, said: ArgumentConfig) -> ArgumentChange:
        given = said.model_fields_set
        value, value_secrets = self._resolved(said.value, "/value")
        default, default_secrets = self._resolved(said.default, "/default")
        return ArgumentChange(
            hide=said.hide,
            # A default that is a reference must not stand in a schema: nobody but the tool gets it.
            fixed="value" in given or bool(default_secrets),
            value=value if "value" in given else default,
            filled="default" in given and not default_secrets,
            default=default,
            name=said.name,
            description=said.description,
            secrets=value_secrets | default_secrets,
        )

    def _resolved(self, value: Any, where: str) -> tuple[Json, frozenset[str]]:
        """A value with its references replaced, and the texts that came from them."""
        resolved = resolve_all(value, self._env, self._folder, where=where)
        secrets: set[str] = set()
        for written, text in zip(_texts(value), _texts(resolved), strict=True):
            if has_reference(written):
                secrets |= {text, _differing(written, text)}
        return resolved, frozenset(secrets - {""})

    # who may be called at all

    def _denied(self, entry: ToolEntry, source: Source) -> str:
        """Why a rule keeps a tool from everybody; "" where none does. Deny wins."""
        named = (entry.original, *entry.names)
        for pattern in source.deny:
            if any(fnmatchcase(name, pattern) for name in named):
                return f"the source {source.name} is told to deny {pattern!r}"
        if self._deny.tool(entry) or (entry.alias and self._deny.match([entry.alias])):
            return "the configuration denies it"
        if source.allow and source.kind != "mcp" and not _any_fits(source.allow, named):
            return f"the source {source.name} is told to allow other tools only"
        if self._allow and not (self._allow.tool(entry) or (entry.alias and self._allow.match([entry.alias]))):
            return "the configuration allows other tools only"
        return ""

    # rules that mean nothing

    def _idle(
        self, given: Sequence[ToolEntry], entries: Sequence[ToolEntry], sources: Mapping[str, Source]
    ) -> list[Report]:
        """Rules that match nothing: a silent rule is often a misspelt one. Only what is known by now is judged."""
        reports: list[Report] = []
        for source in sources.values():
            if state_of(source).status != "ready" or not (source.allow or source.deny):
                continue
            mine = [(entry.original, *entry.names) for entry in given if entry.source == source.name]
            # What an MCP server is told to deny is gone before it is seen here.
            rules = [("allow", source.allow)] + ([] if source.kind == "mcp" else [("deny", source.deny)])
            for word, patterns in rules:
                reports += [
                    Report(source.name, word, f"{pattern!r} matches none of its tools")
                    for pattern in patterns
                    if pattern != "*" and not any(_any_fits([pattern], names) for names in mine)
                ]
        if not _all_known(sources):
            return reports
        rules = [("allow", self._allow), ("deny", self._deny)]
        for name, view in self._views.items():
            rules += [
                (f"views.{name}.include", Patterns(view.include)),
                (f"views.{name}.listed", Patterns(view.listed)),
            ]
            rules.append((f"views.{name}.tags", Patterns(f"tag:{tag}" for tag in view.tags)))
            rules.append((f"views.{name}.exclude", Patterns(view.exclude)))
        for where, patterns in rules:
            for text in patterns.texts:
                one = Patterns([text])
                if any(one.tool(entry) or (entry.alias and one.match([entry.alias])) for entry in entries):
                    continue
                kind, _, rest = text.partition(":")
                if kind == "source" and any(fnmatchcase(known, rest) for known in sources):
                    continue
                if where.endswith((".include", ".exclude")) and _may_be_no_tool(text, sources):
                    continue
                reports.append(Report(SOURCE, where, f"{text!r} matches nothing"))
        return reports


def _may_be_no_tool(pattern: str, sources: Mapping[str, Source]) -> bool:
    """Whether a pattern may speak of resources or prompts, which are known only when they are asked for."""
    return ":" in pattern and not pattern.startswith(("tag:", "source:", "toolkit:"))


def _all_known(sources: Mapping[str, Source], name: str = "") -> bool:
    """Whether everything is there that a rule might mean; of `source/original`, that source alone matters."""
    asked, slash, _ = name.partition("/")
    if slash and asked in sources:
        return state_of(sources[asked]).status == "ready"
    return all(state_of(source).status in ("ready", "disabled") for source in sources.values())


def _any_fits(patterns: Iterable[str], names: Iterable[str]) -> bool:
    known = list(names)
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in known)


def _nearest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=2, cutoff=0.6)
    if not close:
        close = [one for one in known if one.endswith((f"_{name}", f"/{name}"))][:2]
    return f"; did you mean {' or '.join(close)}?" if close else ""


def _changes(table: ToolConfig, tool: Tool) -> dict[str, Any]:
    """Fields of the spec that a table says otherwise."""
    changes: dict[str, Any] = {}
    for key in ("title", "description", "timeout", "max_output", "deferred"):
        value = getattr(table, key)
        if value is not None:
            changes[key] = value
    if table.tags:
        changes["tags"] = tuple(dict.fromkeys((*tool.tags, *table.tags)))
    if table.annotations is not None:
        hints = (tool.spec.annotations or Annotations()).model_dump()
        changes["annotations"] = Annotations(**hints | table.annotations.model_dump(exclude_unset=True))
    return changes


def _differing(written: str, text: str) -> str:
    """What a reference stood for within a text: `abc` of `Bearer abc`, written as `Bearer ${TOKEN}`."""
    start = _shared(written, text)
    return text[start : len(text) - _shared(written[start:][::-1], text[start:][::-1])]


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _texts(value: Any) -> Iterable[str]:
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            stack += cast("dict[str, Any]", item).values()
        elif isinstance(item, list):
            stack += cast("list[Any]", item)
