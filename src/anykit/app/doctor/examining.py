"""Every check, over one configuration. Nothing is called, nothing is set up, nothing is written."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from anykit.app.config import AppConfig
from anykit.app.inspection import inspected
from anykit.app.opening import Named

from .bindings import bindings
from .exposure import GitSilent, exposure
from .files import files
from .finding import ORDER, Case, Finding
from .health import health
from .names import names
from .pins import pins
from .portability import portability
from .rules import rules
from .variables import variables
from .wording import wording

log = logging.getLogger("anykit.doctor")

Check = Callable[[Case], Iterable[Finding]]

CHECKS: tuple[tuple[str, Check], ...] = (
    ("variables", variables),
    ("secrets in plain text", exposure),
    ("bindings and bounds", bindings),
    ("clients' files", files),
    ("sources", health),
    ("names", names),
    ("schemas", portability),
    ("rules", rules),
    ("words", wording),
    ("pinned definitions", pins),
)
"""By what they look at, in the order in which a person mends."""
UNOPENED = ("variables", "secrets in plain text", "bindings and bounds", "clients' files")
"""Those that need no source."""


@dataclass(frozen=True, slots=True)
class Examined:
    """What was found, and what could not be looked at."""

    findings: tuple[Finding, ...]
    unchecked: tuple[str, ...] = ()
    """Checks that could not be made, with why."""
    sources: int = 0
    tools: int = 0


async def examine(
    config: AppConfig,
    given: Sequence[Named] = (),
    *,
    data_dir: Path | None = None,
    env: Mapping[str, str],
    home: Path | None = None,
    wait: float = 5.0,
    replaced: bool = False,
    untrusted: Finding | None = None,
) -> Examined:
    """Look at a configuration and, unless it is `untrusted`, at its sources and `given`.

    `wait` is how many seconds sources have. `replaced` says that `given` stand in for the sources of the file.
    """
    case = Case(config, env=env, data_dir=data_dir, home=home or Path.home(), replaced=replaced)
    if untrusted is not None:
        told, unchecked = await asyncio.to_thread(_checked, case, UNOPENED)
        others = ", ".join(name for name, _ in CHECKS if name not in UNOPENED)
        return Examined(_sorted([untrusted, *told]), (*unchecked, f"{others}: nothing of the file is started"))
    async with inspected(config, given, data_dir=data_dir, wait=wait) as inspection:
        snapshot = inspection.bench.catalog.snapshot
        case = replace(case, snapshot=snapshot, took=dict(inspection.took), waited=inspection.waited)
        told, unchecked = await asyncio.to_thread(_checked, case, tuple(name for name, _ in CHECKS))
    return Examined(_sorted(told), tuple(unchecked), len(snapshot.sources), len(snapshot.tools))


def _checked(case: Case, wanted: tuple[str, ...]) -> tuple[list[Finding], list[str]]:
    findings: list[Finding] = []
    unchecked: list[str] = []
    for name, check in CHECKS:
        if name not in wanted:
            continue
        try:
            findings += check(case)
        except GitSilent as error:
            unchecked.append(f"{name}: {error}")
        except Exception as error:  # one check never costs the others
            log.exception("the check of %s broke", name)
            unchecked.append(f"{name}: the check broke ({type(error).__name__}); -v says where")
    return findings, unchecked


def _sorted(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(_once(findings), key=lambda one: ORDER[one.severity]))


def _once(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Each once; what one finding says is not said again by another that follows from it."""
    kept = list(dict.fromkeys(findings))
    unset = {one.message for one in kept if one.code == "variable_unset"}
    shown = {one.where for one in kept if one.code in ("secret_in_git", "secret_readable")}
    for one in kept:
        follows = (one.code == "source_dead" and any(message in one.message for message in unset)) or (
            one.code == "token_in_file" and one.where in shown
        )
        if not follows:
            yield one
