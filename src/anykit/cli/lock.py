"""`anykit lock`: pin what tools say of themselves, and see what changed since."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from anykit.app.doctor import hidden_in_definition
from anykit.app.inspection import Inspection, inspected
from anykit.app.lock import (
    Change,
    Lock,
    LockError,
    Place,
    changes_between,
    lock_file,
    lock_of,
    read_lock,
    write_lock,
)
from anykit.runtime import ToolEntry

from .doctor import diff_style
from .errors import CommandError, Exit, not_found, usage
from .invocation import Invocation
from .local import configuration, data_folder, importable, sources_of
from .place import did_you_mean
from .terminal import Terminal


def run(
    invocation: Invocation,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Tools, toolkits or sources, instead of all: as `anykit list` or the lock file calls them.",
            show_default=False,
        ),
    ] = None,
    accept: Annotated[bool, typer.Option("--accept", help="Agree to what changed without being asked.")] = False,
) -> int:
    """Pin names, descriptions and schemas of all tools in anykit.lock, beside the configuration file.

    The first time everything is pinned. After that what changed is shown as a diff, and pinned anew only where somebody
    agrees: asked on a terminal, or with --accept; elsewhere the exit code is 6. Nothing is called. With `enforce = true`
    under [lock] a tool that changed is not offered before.
    """
    return invocation.run(_lock(invocation, tuple(names or ()), accept))


async def _lock(invocation: Invocation, names: tuple[str, ...], accept: bool) -> int:
    config = configuration(invocation)
    file = lock_file(config.folder)
    try:
        pinned = read_lock(file)
    except LockError as error:
        raise usage(str(error), code="bad_lock") from None
    plain, given = sources_of(invocation, config, ())
    with importable(config), invocation.terminal.waiting("opening the sources ..."):
        async with inspected(
            plain, given, data_dir=data_folder(invocation, config), wait=invocation.wait
        ) as inspection:
            sources = inspection.bench.catalog.snapshot.sources
            now, known = lock_of(sources.values()), set(inspection.ready())
            _say_who_is_away(invocation, inspection)
            exposed = {name: _place(entry) for name, entry in inspection.bench.catalog.snapshot.tools.items()}
    before = pinned or Lock()
    changes = changes_between(before, now, known=known)
    if not given:  # all sources of the file are here: what is pinned of others is of no use any more
        gone = before.sources - sources.keys()
        changes += changes_between(before, Lock(), known=gone)
    chosen = [one for one in changes if not names or any(_means(name, one, exposed) for name in names)]
    if names and not chosen:
        _check(names, before, now, exposed)
    return _end(invocation, file, pinned, chosen, accept=accept)


def _place(entry: ToolEntry) -> Place:
    toolkit = entry.key[0].removeprefix(f"{entry.source}/") if entry.key[0] != entry.source else ""
    return (entry.source, toolkit, entry.original)


def _means(name: str, change: Change, exposed: Mapping[str, Place]) -> bool:
    return change.is_named(name) or exposed.get(name) == change.place


def _check(names: Iterable[str], before: Lock, now: Lock, exposed: Mapping[str, Place]) -> None:
    """Raises `CommandError` for a name that nothing has, changed or not."""
    everything = [Change(place, "changed", None, pin) for lock in (before, now) for place, pin in lock.pins.items()]
    for name in names:
        if name not in exposed and not any(one.is_named(name) for one in everything):
            known = dict.fromkeys([*exposed, *(one.name for one in everything), *before.sources, *now.sources])
            raise not_found(f"there is nothing called {name!r}", *did_you_mean(name, known))


def _say_who_is_away(invocation: Invocation, inspection: Inspection) -> None:
    for view in inspection.bench.sources():
        if view.state.status not in ("ready", "disabled"):
            why = view.state.reason or "no answer yet"
            invocation.terminal.warn(f"source {view.name} is not available, and what is pinned of it stays: {why}")


def _end(invocation: Invocation, file: Path, pinned: Lock | None, changes: Sequence[Change], *, accept: bool) -> int:
    terminal = invocation.terminal
    if terminal.as_json:
        terminal.write_json([one.to_json() for one in changes])
    elif pinned is not None:
        _print(terminal, changes)
    for change in changes:
        if change.after is not None:
            for finding in hidden_in_definition(change.name, change.after.definition):
                terminal.warn(f"{finding.where}: {finding.message}")
    if not changes and pinned is not None:
        terminal.note(f"{file.name}: nothing changed")
        return Exit.OK
    count = f"{len(changes)} change{'s' if len(changes) != 1 else ''}"
    if pinned is not None and not accept:
        if not terminal.interactive:
            return _refuse(terminal, changes, count)
        if terminal.ask(f"Agree to {'it' if len(changes) == 1 else f'these {count}'}? [y/N] ").strip().lower() not in (
            "y",
            "yes",
        ):
            terminal.note(f"{file.name} stays as it was")
            return Exit.FINDINGS
    lock = (pinned or Lock()).with_changes(changes)
    try:
        write_lock(file, lock)
    except LockError as error:
        raise CommandError(str(error), code="not_written") from None
    tools = sum(bool(tool) for _, _, tool in lock.pins)
    done = "written" if pinned is None else f"{count} agreed to"
    terminal.note(f"{file}: {done}, {tools} tool{'s' if tools != 1 else ''} of {len(lock.sources)} source(s) pinned")
    return Exit.OK


def _refuse(terminal: Terminal, changes: Sequence[Change], count: str) -> int:
    names = " ".join(shlex.quote(one.name) for one in changes[:3])
    whole = names if len(changes) <= 3 else ""
    terminal.error(
        CommandError(
            f"{count} that nobody has agreed to",
            code="changed",
            fixes=[("if they are meant", f"anykit lock --accept {whole}".rstrip())],
        )
    )
    return Exit.FINDINGS


def _print(terminal: Terminal, changes: Sequence[Change]) -> None:
    for change in changes:
        if not terminal.stdout_is_terminal:
            terminal.write("\n".join(change.diff()))
            continue
        terminal.write_marked(change.kind, "bold", change.name)
        for line in change.diff()[2:]:
            terminal.write_line(line, diff_style(line))
