"""What `remove`, `enable` and `disable` have in common: names looked up in the file, edits made of them, all or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anykit.app import AppConfig, ConfigError, find_config, read_config, source_openers
from anykit.app.config import NAMES, SourceConfig
from anykit.app.entries import Entry, entries_of
from anykit.app.opening import Opening, opened_one
from anykit.capabilities import JsonObject

from .editing import Change, data_of, edit_file, read_text
from .edits import Edit, Put
from .errors import CommandError, not_found, usage
from .invocation import Invocation
from .local import importable
from .place import did_you_mean, here
from .terminal import cleaned
from .trusting import shown, trust_of


@dataclass(frozen=True, slots=True)
class FileToEdit:
    """The file, what it says, and what stands in it."""

    path: Path
    text: str
    data: JsonObject
    config: AppConfig
    entries: tuple[Entry, ...]

    @property
    def opening(self) -> Opening:
        """Its surroundings; nothing of it is connected."""
        return _opening(self.config)


def _opening(config: AppConfig) -> Opening:
    return Opening(folder=config.folder, connect_timeout=config.limits.connect, openers=source_openers())


def file_to_edit(invocation: Invocation) -> FileToEdit:
    """The file that the flags mean, else the nearest. Raises `CommandError`."""
    flags = invocation.flags
    if flags.sources:
        raise usage("name what stands in the file, without --source")
    file = here(flags.config) if flags.config else find_config()
    if file is None or not file.exists():
        where = "there is no anykit.toml here or above" if file is None else f"{shown(file)}: there is no such file"
        raise usage(where, ("make one", "anykit init"), code="no_file")
    try:
        config = read_config(file)
        if str(file.absolute()) in config.sources and file.name not in NAMES:
            raise usage(
                f"{shown(file)}: the file of an MCP client is not written here",
                ("take its servers into a file of ours", f"anykit add {shown(file)}"),
                code="not_written",
            )
        text = read_text(file)
        data = data_of(file, text)
        with importable(config):
            return FileToEdit(file, text, data, config, tuple(entries_of(data, config, _opening(config))))
    except (ConfigError, ValueError) as error:
        raise usage(str(error), ("check it", "anykit validate"), code="bad_config") from None


def named(invocation: Invocation, file: FileToEdit, names: Sequence[str], *, toolkits: bool) -> list[Entry]:
    """The entries of these names, each once. Raises `CommandError` with a proposal where there is none of a name."""
    found: dict[tuple[Any, ...], Entry] = {}
    for name in names:
        entry = _named(invocation, file, name, toolkits=toolkits)
        found[(entry.path, entry.own)] = entry
    return list(found.values())


def _named(invocation: Invocation, file: FileToEdit, name: str, *, toolkits: bool) -> Entry:
    exact = [entry for entry in file.entries if entry.name == name]
    if exact:
        return exact[0]
    known = [entry for entry in file.entries if name in entry.aliases]
    if len(known) == 1:
        return known[0]
    if known:
        either = " or ".join(entry.name for entry in known)
        raise usage(
            f"{name!r} names more than one entry of {shown(file.path)}", ("say which", either), code="ambiguous"
        )
    offered = _toolkits_of(invocation, file) if toolkits else []
    if name in offered:
        return Entry(name, "toolkit", ("toolkits", name))
    among = [*(entry.name for entry in file.entries), *offered]
    raise not_found(
        f"there is no {name!r} in {shown(file.path)}", *did_you_mean(name, among), ("see", "anykit list sources")
    )


def _toolkits_of(invocation: Invocation, file: FileToEdit) -> list[str]:
    """Toolkits of the Python files that the file names; these are imported, so only where the file is trusted."""
    try:
        if not invocation.flags.config and not trust_of(invocation).check(file.path).is_trusted:
            return []
    except ConfigError:
        return []
    with importable(file.config):
        return [
            toolkit.spec().name
            for said in file.config.sources
            if ".py" in (target := said if isinstance(said, str) else said.target or "") or target.isidentifier()
            for source in opened_one(said, file.opening)
            for toolkit in source.toolkits
        ]


def merged(file: FileToEdit, entries: Sequence[Entry], *, on: bool) -> list[Edit]:
    """The edits that switch entries on or off; servers of one file are switched together."""
    edits: list[Edit] = []
    files: dict[tuple[str | int, ...], list[Entry]] = {}
    for entry in entries:
        if entry.file:
            files.setdefault(entry.path, []).append(entry)
        else:
            edits.append(switched(file, entry, on=on))
    for path, servers in files.items():
        said = servers[0].said
        off = set(said.disabled if isinstance(said, SourceConfig) else ())
        names = {entry.own for entry in servers}
        listed = sorted(off - names if on else off | names)
        table = {"target": said, "disabled": listed}
        edits.append(Put(path, table) if isinstance(said, str) else Put((*path, "disabled"), listed))
    return edits


def switched(file: FileToEdit, entry: Entry, *, on: bool) -> Edit:
    """The edit that switches an entry of the file itself on or off."""
    if isinstance(entry.said, str):
        return Put(entry.path, {"target": entry.said, "enabled": on})
    table = _at(file.data, entry.path)
    if isinstance(table, dict) and "disabled" in table and entry.kind in ("agent", "server"):
        return Put((*entry.path, "disabled"), not on)
    return Put((*entry.path, "enabled"), on)


def _at(data: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def run_switch(invocation: Invocation, names: Sequence[str], *, on: bool, dry: bool) -> int:
    """`enable` and `disable`."""
    file = file_to_edit(invocation)
    entries = named(invocation, file, names, toolkits=True)
    wanted = [entry for entry in entries if entry.enabled != on]
    edits = merged(file, wanted, on=on)
    change = edit_file(file.path, edits, dry=dry, expected=file.text) if edits else None
    word = "switched on" if on else "switched off"
    report(
        invocation,
        file.path,
        change,
        dry=dry,
        rows=[
            {"name": entry.name, "kind": entry.kind, "enabled": on, "changed": entry in wanted, "file": str(file.path)}
            for entry in entries
        ],
        lines=[f"{word} {entry.kind} {entry.name} in {shown(file.path)}" for entry in wanted],
        notes=[f"{entry.name} is {'on' if on else 'off'} already" for entry in entries if entry not in wanted],
    )
    return 0


def report(
    invocation: Invocation,
    path: Path,
    change: Change | None,
    *,
    dry: bool,
    rows: Sequence[JsonObject],
    lines: Sequence[str],
    notes: Sequence[str],
) -> None:
    """Say what was done, or what would be."""
    terminal = invocation.terminal
    if dry:
        diff = "" if change is None else change.diff()
        if terminal.as_json:
            terminal.write_json({"file": str(path), "diff": diff, "changes": list(rows)})
            return
        if diff:
            terminal.write(diff)
        for note in notes:
            terminal.note(note)
        return
    if terminal.as_json:
        terminal.write_json(list(rows))
        return
    for note in notes:
        terminal.note(note)
    for line in lines:
        terminal.write(cleaned(line))


def refused(entry: Entry, path: Path) -> CommandError:
    """Why an entry cannot be taken out."""
    if entry.kind == "toolkit":
        return usage(
            f"{entry.name} is a toolkit, which a source brings", ("switch it off", f"anykit disable {entry.name}")
        )
    return usage(
        f"{entry.name} stands in {entry.file}, which is not written here",
        ("switch it off", f"anykit disable {entry.name}"),
        ("or take the whole file out", f"anykit remove {entry.file}"),
        code="not_written",
    )
