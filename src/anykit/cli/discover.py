"""`anykit discover`: the MCP servers that the clients of this machine have, and into our file with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from anykit.app import AppConfig, ConfigError, Workbench, find_config, read_config
from anykit.app.config import SourceConfig
from anykit.app.discovery import Discovery, Found, Home, discover
from anykit.app.taking import Taken, identity_of, renamed
from anykit.app.trust import Trust
from anykit.capabilities import JsonObject
from anykit.runtime import clean
from anykit.sources.mcp.inputs import inputs_of, schema_of_inputs
from anykit.stores import RecordError, SecretError
from anykit.stores import data_dir as default_data_dir

from .configure import literal
from .editing import Addition, add_to, check_form
from .errors import CommandError, Exit, not_found, usage
from .invocation import Invocation
from .local import data_folder
from .place import did_you_mean, here
from .terminal import Terminal


@dataclass(frozen=True, slots=True)
class Imported:
    """A server that is a source of ours now."""

    found: Found
    taken: Taken

    @property
    def name(self) -> str:
        """What it is called in our file."""
        return str(self.taken.table.get("name") or self.taken.table["target"])

    def to_json(self, file: Path) -> JsonObject:
        """As it is printed."""
        return {
            "name": self.found.name,
            "source": self.name,
            "file": str(file),
            "from": str(self.found.file),
            "secrets": list(self.taken.secrets),
        }


def run(
    invocation: Invocation,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CLIENT:SERVER...",
            help="Only these; a client's name alone means all of its servers. With --import those that are switched on,"
            " if none is named.",
            show_default=False,
        ),
    ] = None,
    take: Annotated[
        bool, typer.Option("--import", help="Write them into the file, as sources that are trusted from then on.")
    ] = False,
) -> int:
    """Find the MCP servers in the files of Claude, Cursor, VS Code, Codex, Gemini, opencode and others.

    Looked at are the files that clients keep in the home folder, and those of the project, from here upwards. Nothing is
    started. With --import they become sources of --config, else of the nearest anykit.toml, else of a new one here;
    references such as ${TOKEN} stay, a secret in plain text goes to the encrypted store.
    """
    file, config = _file(invocation)
    known = {identity_of(_table(source, config)) for source in config.sources}
    env = invocation.terminal.env
    home = Home(Path(env.get("HOME") or Path.home()), env)
    trust = trust_of(invocation)
    result = discover(
        Path.cwd(),
        home,
        trust=trust,
        is_in=lambda taken: taken.identity in known or _whole(taken, known),
        ours=file,
    )
    result = _with_whole_files(result, config)
    for report in result.reports:
        invocation.terminal.warn(report)
    chosen = _chosen(result, names or (), asked=bool(names))
    if not take:
        _print(invocation.terminal, chosen, result)
        return Exit.OK
    if str(file.absolute()) in config.sources:
        raise usage(f"{file}: the file of an MCP client is not written here", code="not_written")
    check_form(file)
    return invocation.run(
        _import(invocation, file, config, _importable(invocation.terminal, chosen, names or ()), trust)
    )


def trust_of(invocation: Invocation) -> Trust:
    """What a person has agreed to, in the person's own data folder."""
    flags = invocation.flags
    return Trust(here(flags.data_dir) if flags.data_dir else default_data_dir(env=invocation.terminal.env))


def _file(invocation: Invocation) -> tuple[Path, AppConfig]:
    try:
        file = here(invocation.flags.config) if invocation.flags.config else find_config()
        file = file or Path.cwd() / "anykit.toml"
        return file, read_config(file) if file.exists() else AppConfig(path=file)
    except ConfigError as error:
        raise usage(str(error), ("check it", "anykit validate"), code="bad_config") from None


def _table(source: str | SourceConfig, config: AppConfig) -> JsonObject:
    said = SourceConfig(target=source) if isinstance(source, str) else source
    table = said.model_dump(exclude_unset=True)
    target = table.get("target")
    if isinstance(target, str) and "://" not in target and not target.startswith("anykit:"):
        table["target"] = str(config.folder / Path(target).expanduser())
    return table


def _whole(taken: Taken, known: set[tuple[str, ...]]) -> bool:
    return ("at", str(taken.table.get("target"))) in known


def _with_whole_files(result: Discovery, config: AppConfig) -> Discovery:
    """Servers of a file that is a source as a whole are in there already."""

    targets = {_table(source, config).get("target") for source in config.sources}
    servers = [
        replace(one, state="in", reason="its file is a source already")
        if str(one.file) in targets and one.state in ("new", "untrusted")
        else one
        for one in result.servers
    ]
    return replace(result, servers=tuple(servers))


def _chosen(result: Discovery, names: Sequence[str], *, asked: bool) -> list[Found]:
    """Those that are named; all, where nothing is. Raises `CommandError` for a name that there is not."""
    if not asked:
        return list(result.servers)
    found: dict[str, Found] = {}
    for name in names:
        fitting = [one for one in result.servers if name in (one.name, one.client, str(one.file))]
        if not fitting:
            known = [one.name for one in result.servers]
            raise not_found(
                f"there is no server {name!r}",
                *did_you_mean(name, known),
                ("look", "anykit discover"),
                code="unknown_server",
            )
        found |= {one.name: one for one in fitting}
    return list(found.values())


def _importable(terminal: Terminal, chosen: Sequence[Found], names: Sequence[str]) -> list[Found]:
    """Those of the chosen that become sources. Raises `CommandError` for one that was named and cannot."""
    found: list[Found] = []
    for one in chosen:
        if one.taken is None:
            if one.name in names:
                raise usage(f"{one.name}: {one.reason}", ("see", str(one.file)), code="bad_source")
            if one.state == "failed":
                terminal.warn(f"{one.name} is left out: {one.reason}")
        elif one.state == "in":
            if names:
                terminal.note(f"{one.name}: {one.reason}")
        elif one.state != "disabled" or one.name in names:
            found.append(one)
    return found


async def _import(invocation: Invocation, file: Path, config: AppConfig, chosen: Sequence[Found], trust: Trust) -> int:
    terminal = invocation.terminal
    imported = _named(chosen, config)
    if imported:
        kept = await _keep(invocation, file, config, imported)
        add_to(file, [Addition(one.taken.table) for one in kept], trust=trust)
        imported = kept
    if terminal.as_json:
        terminal.write_json([one.to_json(file) for one in imported])
        return Exit.OK
    for one in imported:
        terminal.write(f"added {one.name} ({one.found.name}) to {_short(file)}: {one.taken.about}")
        for warning in one.taken.warnings:
            terminal.warn(f"{one.name}: {warning}")
        for id in one.taken.secrets:
            terminal.note(f"{one.name}: {id} stood in plain text in {one.found.file}; it is in the encrypted store now")
    if not imported:
        terminal.note("nothing to import")
    return Exit.OK


def _named(chosen: Sequence[Found], config: AppConfig) -> list[Imported]:
    """Each with a name that no other source has; what is the same is taken once."""
    taken_names = {
        source.name for source in config.sources if isinstance(source, SourceConfig) and source.name is not None
    }
    seen: set[tuple[str, ...]] = set()
    found: list[Imported] = []
    for one in chosen:
        assert one.taken is not None
        if one.taken.identity in seen:
            continue
        seen.add(one.taken.identity)
        plain = one.taken.table.get("name")
        if not isinstance(plain, str):  # it is a whole file
            found.append(Imported(one, one.taken))
            continue
        names = [plain, clean(f"{one.client}_{plain}"), *(f"{plain}_{number}" for number in range(2, len(chosen) + 3))]
        name = next(name for name in names if name not in taken_names)
        taken_names.add(name)
        found.append(Imported(one, renamed(one.taken, name)))
    return found


async def _keep(
    invocation: Invocation, file: Path, config: AppConfig, imported: Sequence[Imported]
) -> Sequence[Imported]:
    """Put the secrets into the store before anything refers to them. Raises `CommandError`."""
    if not any(one.taken.secrets for one in imported):
        return imported
    bench = Workbench(
        config=config.model_copy(update={"path": file, "sources": [], "agents": {}}),
        data_dir=data_folder(invocation, config),
    )
    try:
        for one in imported:
            if not one.taken.secrets:
                continue
            declared = inputs_of(one.taken.table)
            schema = schema_of_inputs(declared, declared)
            assert schema is not None
            values = {id: literal(value, id) for id, value in one.taken.secrets.items()}
            await bench.told.save(one.name, schema, values)
    except (RecordError, SecretError) as error:
        raise CommandError(
            f"the secrets of {', '.join(one.name for one in imported if one.taken.secrets)} cannot be kept: {error}",
            code="not_kept",
            fixes=[("keep them elsewhere", "--data-dir DIR")],
        ) from None
    finally:
        await bench.records.close()
    return imported


def _print(terminal: Terminal, chosen: Sequence[Found], result: Discovery) -> None:
    if terminal.as_json:
        terminal.write_json([to_json(one) for one in chosen])
        return
    if chosen:
        rows = [
            (one.name, one.transport or "?", one.state, str(_short(one.file)), one.reason or one.about)
            for one in chosen
        ]
        terminal.table(("server", "kind", "state", "file", ""), rows)
    files = f"{len(result.files)} file{'s' if len(result.files) != 1 else ''} of clients"
    terminal.note(f"{len(chosen)} server{'s' if len(chosen) != 1 else ''} in {files}")
    if any(one.state in ("new", "untrusted") for one in chosen):
        terminal.note("take them:  anykit discover --import [CLIENT:SERVER...]")


def to_json(one: Found) -> JsonObject:
    """A server as it is printed."""
    return {
        "name": one.name,
        "server": one.server,
        "client": one.client,
        "kind": "mcp",
        "transport": one.transport or None,
        "file": str(one.file),
        "scope": one.scope,
        "state": one.state,
        "reason": one.reason or None,
        "about": one.about,
    }


def _short(file: Path) -> Path | str:
    if file.is_relative_to(Path.cwd()):
        return file.relative_to(Path.cwd())
    home = Path.home()
    return f"~/{file.relative_to(home)}" if file.is_relative_to(home) else file
