"""Rules that match nothing: a silent rule is often a misspelt one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, runtime_checkable

from anykit.runtime import Source, state_of

from .finding import Case, Finding

_IDLE = re.compile(r"matches (none|nothing)|there is no such|void: ")


@runtime_checkable
class Filtering(Protocol):
    """A provider that is told which of its tools to offer."""

    @property
    def idle(self) -> tuple[str, ...]:
        """Patterns that match nothing."""
        ...


def rules(case: Case) -> Iterator[Finding]:
    """Globs, tables and views that mean nothing that is there."""
    for report in case.snapshot.reports:
        if _IDLE.search(report.reason):
            place = report.name or report.source
            where = case.at(place) if report.source in ("config", "anykit", "") else f"{report.source}: {place}"
            yield Finding("rule_unused", "warning", where, report.reason, "correct it, or take it out")
    for name, source in case.snapshot.sources.items():
        if state_of(source).status == "ready" and isinstance(source.provider, Filtering):
            for pattern in source.provider.idle:
                yield Finding(
                    "rule_unused",
                    "warning",
                    name,
                    f"{pattern!r} of its allow or deny matches none of its tools",
                    "correct it, or take it out",
                )
    if not case.replaced:
        yield from _toolkits(case)
        yield from _twice(case)


def _toolkits(case: Case) -> Iterator[Finding]:
    """Tables of toolkits that no source offers; one that may come with a source that is away is not judged."""
    snapshot, config = case.snapshot, case.config
    if any(
        state_of(source).status not in ("ready", "disabled") and source.kind not in _WITHOUT_TOOLKITS
        for source in snapshot.sources.values()
    ):
        return
    offered = {*snapshot.toolkits, *_switched_off(case)}
    for name, said in config.toolkits.items():
        if name not in offered and said.enabled:
            hint = snapshot.suggest(name, offered)
            yield _unused(case, ("toolkits", name), f"no source offers a toolkit {name}{hint}")
    for environment, over in config.env.items():
        for name in over.toolkits:
            if name not in offered and name not in config.toolkits:
                hint = snapshot.suggest(name, offered)
                yield _unused(case, ("env", environment, "toolkits", name), f"no source offers a toolkit {name}{hint}")


_WITHOUT_TOOLKITS = frozenset({"mcp", "a2a", "http", "openapi", "skills"})
"""Kinds that bring none."""


def _switched_off(case: Case) -> Iterable[str]:
    return [name for name, said in case.config.toolkits.items() if not said.enabled]


def _unused(case: Case, steps: tuple[str, ...], message: str) -> Finding:
    return Finding("rule_unused", "warning", case.at(*steps), message, "correct the name, or take the table out")


def _twice(case: Case) -> Iterator[Finding]:
    """Sources that are named twice: their tools collide."""
    seen: dict[str, str] = {}
    for name, place in _places(case.snapshot.sources).items():
        first = seen.setdefault(place, name)
        if first != name:
            yield Finding("source_twice", "warning", name, f"is the same as {first}: {place}", f"anykit remove {name}")


def _places(sources: Mapping[str, Source]) -> dict[str, str]:
    """Where each source comes from, where that tells one from the other."""
    return {
        name: f"{source.kind} {source.location}"
        for name, source in sources.items()
        if source.location and source.kind in ("python", "toolkit", "a2e", "a2a") and source.disabled is None
    }
