"""`anykit remove`: what is named is taken out of the file, which keeps its comments; its secrets only where asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated

import typer

from anykit.app import ConfigError, Workbench
from anykit.app.entries import Entry
from anykit.app.forgetting import Kept, forget, kept_of
from anykit.app.opening import opened_one
from anykit.runtime import Source
from anykit.stores import RecordError, SecretError

from .editing import edit_file
from .edits import Drop
from .errors import CommandError, Exit
from .invocation import Invocation
from .local import data_folder, importable
from .switching import FileToEdit, file_to_edit, named, refused, report
from .trusting import shown, trust_of


def run(
    invocation: Invocation,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="Sources and agents as `anykit list sources` names them; a client's file as it is written.",
            show_default=False,
        ),
    ],
    forget_it: Annotated[
        bool, typer.Option("--forget", help="Forget what is kept of them too: configurations, logins, answers.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would change, and change nothing.")] = False,
) -> int:
    """Take sources or agents out of the file, all of those named or none.

    Comments and order stay as they are. What is kept of them, such as a toolkit's configuration with its secrets, stays
    too unless --forget; on a terminal it is asked.
    """
    file = file_to_edit(invocation)
    # What went from the file earlier may still be forgotten, by its name.
    gone = invocation.run(_kept(invocation, file, names)) if forget_it else []
    entries = named(invocation, file, [name for name in names if name not in gone], toolkits=False)
    for entry in entries:
        if entry.file or entry.kind == "toolkit":
            raise refused(entry, file.path)
    edits = [Drop(entry.path) for entry in sorted(entries, key=_last_first, reverse=True)]
    # Opened before the file is written: afterwards nothing can be told of what is not there any more.
    sources = [] if dry_run else _sources(invocation, file, entries)
    change = edit_file(file.path, edits, dry=dry_run, expected=file.text) if edits else None
    forgotten = [] if dry_run else invocation.run(_forget(invocation, file, sources, gone, sure=forget_it))
    report(
        invocation,
        file.path,
        change,
        dry=dry_run,
        rows=[
            {"name": entry.name, "kind": entry.kind, "removed": not dry_run, "file": str(file.path)}
            for entry in entries
        ],
        lines=[f"removed {entry.kind} {entry.name} from {shown(file.path)}" for entry in entries],
        notes=[f"forgot {one}" for one in forgotten],
    )
    return Exit.OK


def _last_first(entry: Entry) -> tuple[str, int]:
    """Items of a list from its end, so that the others keep their places."""
    place = entry.path[-1]
    return (str(entry.path[0]), place if isinstance(place, int) else -1)


def _sources(invocation: Invocation, file: FileToEdit, entries: Sequence[Entry]) -> list[Source]:
    """The sources that go, opened but not connected; nothing of a file that is not trusted is imported."""
    try:
        if not invocation.flags.config and not trust_of(invocation).check(file.path).is_trusted:
            return []
    except ConfigError:
        return []
    if not (data_folder(invocation, file.config) / "anykit.sqlite3").exists():
        return []
    with importable(file.config):
        return [
            source for entry in entries if entry.said is not None for source in opened_one(entry.said, file.opening)
        ]


async def _kept(invocation: Invocation, file: FileToEdit, names: Sequence[str]) -> list[str]:
    """Those of the names that the file has no entry of, and of which something is kept."""
    known = {name for entry in file.entries for name in (entry.name, *entry.aliases)}
    async with _records(invocation, file) as bench:
        kept = await kept_of(bench, [], [name for name in names if name not in known])
        return [*kept.toolkits, *kept.servers]


async def _forget(
    invocation: Invocation, file: FileToEdit, sources: Sequence[Source], names: Sequence[str], *, sure: bool
) -> list[str]:
    """Forget what is kept of what went, where that is wanted; gives what was forgotten, in words."""
    if not sources and not names:
        return []
    async with _records(invocation, file) as bench:
        kept = await kept_of(bench, sources, names)
        if not kept:
            return []
        if not sure and not _agrees(invocation, kept):
            where = " ".join([*kept.toolkits, *kept.servers])
            how = f"; to forget it:  anykit remove {where} --forget" if where else ""
            invocation.terminal.note(f"kept: {', '.join(kept.lines())}{how}")
            return []
        await forget(bench, kept)
    return kept.lines()


@asynccontextmanager
async def _records(invocation: Invocation, file: FileToEdit) -> AsyncGenerator[Workbench]:
    """A workbench that is not entered, for its records. Raises `CommandError`."""
    bench = Workbench(config=file.config, data_dir=data_folder(invocation, file.config))
    try:
        yield bench
    except (RecordError, SecretError) as error:
        raise CommandError(f"what is kept cannot be reached: {error}", code="not_forgotten") from None
    finally:
        if (bench.data_dir / "anykit.sqlite3").exists():
            await bench.records.close()


def _agrees(invocation: Invocation, kept: Kept) -> bool:
    terminal = invocation.terminal
    if not terminal.interactive:
        return False
    answer = terminal.ask(f"Forget {', '.join(kept.lines())} too? [y/N] ")
    return answer.strip().lower() in ("y", "yes")
