"""Names that collide, that were changed, and tools that were left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from anykit.runtime import Report, Source, state_of
from anykit.sources.hostile import HIDDEN

from .finding import Case, Finding, Severity

_CALLED = re.compile(r"called (?P<name>\S+): (?P<why>.*)", re.DOTALL)


def names(case: Case) -> Iterator[Finding]:
    """What the catalogue and the sources themselves say of names."""
    for report in case.snapshot.reports:
        found = _of_report(report)
        if found is not None:
            yield found
    for name, source in case.snapshot.sources.items():
        for what, why in left_out_of(source).items():
            if not why.startswith(HIDDEN):
                yield _left_out(name, what.removeprefix("tools/"), why)


def left_out_of(source: Source) -> dict[str, str]:
    """What a connected source listed and does not offer as it listed it, with why."""
    said: Any = state_of(source).detail.get("left_out")
    return {str(what): str(why) for what, why in cast("dict[str, Any]", said).items()} if isinstance(said, dict) else {}


def _of_report(report: Report) -> Finding | None:
    where = f"{report.source}/{report.name}" if report.name else report.source
    called = _CALLED.fullmatch(report.reason)
    if called is not None:
        collides = "another" in called["why"]
        code, severity = ("name_collision", "warning") if collides else ("name_changed", "note")
        given: Severity = "warning" if severity == "warning" else "note"
        return Finding(
            code,
            given,
            where,
            f"is called {called['name']}: {called['why']}",
            f'choose a name: [tools.{called["name"]}] name = "..."',
        )
    if report.reason.startswith("stays "):
        return Finding("name_refused", "warning", where, report.reason, "choose a name that nothing else has")
    if report.reason.startswith("left out") or "is left out" in report.reason:
        return _left_out(report.source, report.name, report.reason.removeprefix("left out: "))
    return None


def _left_out(source: str, name: str, why: str) -> Finding:
    return Finding(
        "tool_left_out",
        "warning",
        f"{source}/{name}" if name else source,
        f"is left out, or not as it was listed: {why}",
        f"mend it in {source}; the rest of its tools work",
    )
