"""`anykit install`: a client of this machine is told of this host, in its own file; nothing else in there changes."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from anykit.app import find_config
from anykit.app.discovery import Home
from anykit.app.installation import (
    ALIASES,
    CLIENTS,
    Client,
    NotInstallable,
    back_up,
    bytes_of,
    command_of_ours,
    write_whole,
)
from anykit.capabilities import JsonObject
from anykit.sources.documents import Unreadable, document_of

from .edits import Edit, Put, Unfit, applied
from .errors import CommandError, Exit, usage
from .flow_text import edited_json
from .invocation import Invocation
from .place import did_you_mean, here
from .template import toml
from .terminal import Terminal
from .toml_text import edited_toml
from .yaml_text import edited_yaml

_WRITERS: Mapping[str, Callable[[str, Edit], str]] = {
    ".toml": edited_toml,
    ".json": edited_json,
    ".jsonc": edited_json,
    ".yaml": edited_yaml,
}


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be written where."""

    client: Client
    file: Path
    name: str
    entry: JsonObject

    @property
    def snippet(self) -> str:
        """It alone, as it would stand in an empty file."""
        if self.file.suffix == ".toml":
            lines = [f"[{self.client.map}.{self.name}]"]
            return "\n".join([*lines, *(f"{key} = {toml(value)}" for key, value in self.entry.items())])
        whole = {self.client.map: {self.name: self.entry}}
        if self.file.suffix == ".yaml":
            return edited_yaml("", Put((self.client.map, self.name), self.entry)).rstrip("\n")
        return json.dumps(whole, indent=2, ensure_ascii=False)


def run(
    invocation: Invocation,
    clients: Annotated[
        list[str],
        typer.Argument(
            metavar="CLIENT...",
            help="claude (Claude Code), claude-desktop, cursor, vscode, codex, gemini, opencode, copilot, windsurf, kiro,"
            " zed or goose.",
            show_default=False,
        ),
    ],
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="What the client calls it.")] = "anykit",
    scope: Annotated[
        str | None,
        typer.Option(
            "--scope",
            metavar="user|project",
            help="For you everywhere (the default), or for everyone in this folder.",
            show_default=False,
        ),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            metavar="URL",
            help="Connect to a host that runs, http://127.0.0.1:7777/mcp, instead of starting one; its token as --token"
            " '${VARIABLE}'.",
            show_default=False,
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--print", help="Only show the entry and where it would go.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace another entry of that name.")] = False,
) -> int:
    """Let a client use the tools of this host over MCP: its entry is written into the client's own file.

    The entry starts `anykit serve --stdio mcp` with the file that holds here (--config), or with -s SOURCE. What else
    is in the client's file stays as it is, comments too; a copy of it is left beside it.
    """
    if scope not in (None, "user", "project"):
        raise usage(f"there is no scope {scope!r}", ("write", "--scope user or --scope project"))
    if not name.strip() or any(letter in name for letter in "\r\n\0"):
        raise usage("--name is empty, or no name")
    if url and not url.lower().startswith(("http://", "https://")):
        raise usage(f"{url}: is no URL of a host", ("write", "--url http://127.0.0.1:7777/mcp"))
    if invocation.flags.token and not url:
        raise usage("--token goes with --url; a host that the client starts itself asks for none")
    home = Home(Path(invocation.terminal.env.get("HOME") or Path.home()), invocation.terminal.env)
    argv = [] if url else _argv(invocation)
    wishes: list[Wish] = []
    for word in dict.fromkeys(clients):
        client = _client(word)
        try:
            file = client.file(scope or "user", Path.cwd(), home)
            entry = client.entry(argv, url or "", invocation.flags.token or "")
        except NotInstallable as error:
            raise usage(str(error)) from None
        if client.id == "goose" and "name" in entry:
            entry = {**entry, "name": name}
        wishes.append(Wish(client, file, name, entry))
    if show:
        _show(invocation.terminal, wishes)
        return Exit.OK
    done = [_install(wish, force=force) for wish in wishes]
    _print(invocation.terminal, done)
    return Exit.OK


def _client(word: str) -> Client:
    client = CLIENTS.get(ALIASES.get(word, word))
    if client is None:
        known = f"known are {', '.join(CLIENTS)}"
        raise usage(f"there is no client {word!r}; {known}", *did_you_mean(word, CLIENTS), code="unknown_client")
    return client


def _argv(invocation: Invocation) -> list[str]:
    """What the client is to start."""
    flags = invocation.flags
    arguments = ["serve", "--stdio", "mcp"]
    file = here(flags.config) if flags.config else find_config()
    if file is not None and not file.is_file():
        raise usage(f"{file}: there is no such file", code="no_file")
    if file is not None:
        arguments += ["--config", str(file.absolute())]
    for source in flags.sources:
        arguments += ["--source", _from_anywhere(source)]
    for flag, value in (("--env", flags.env), ("--data-dir", flags.data_dir and str(here(flags.data_dir)))):
        arguments += [flag, value] if value else []
    if file is None and not flags.sources:
        invocation.terminal.note("there is no anykit.toml here: the client gets the three built-in toolkits")
    return command_of_ours(arguments, invocation.terminal.env)


def _from_anywhere(source: str) -> str:
    """A source of the line, as a client starts it from another folder."""
    path, colon, member = source, "", ""
    if ".py:" in source:
        path, _, member = source.partition(".py:")
        path, colon = f"{path}.py", ":"
    return f"{here(path)}{colon}{member}" if "://" not in source and here(path).exists() else source


@dataclass(frozen=True, slots=True)
class Done:
    """What was done."""

    wish: Wish
    changed: bool
    backup: Path | None = None
    is_new: bool = False

    @property
    def undo(self) -> str:
        """The command that takes it back."""
        file = shlex.quote(str(self.wish.file))
        return f"rm {file}" if self.backup is None else f"mv {shlex.quote(str(self.backup))} {file}"


def _install(wish: Wish, *, force: bool) -> Done:
    """Write one entry. Raises `CommandError`, with the file as it was."""
    file = wish.file
    try:
        raw = bytes_of(file)
        text = "" if raw is None else raw.decode("utf-8-sig")
        data = document_of(text, file)
    except (OSError, UnicodeDecodeError, Unreadable, NotInstallable) as error:
        why = error.strerror or str(error) if isinstance(error, OSError) else str(error).removeprefix(f"{file}: ")
        raise usage(
            f"{file} is left as it is, for it cannot be read: {why}",
            ("mend it, or see what to add", "--print"),
            code="bad_client_file",
        ) from None
    path = _path(wish, data)
    there = _at(data, path)
    if there == wish.entry:
        return Done(wish, changed=False)
    if there is not None and not force:
        raise usage(
            f"{file} has another {wish.name!r} already",
            ("replace it", "--force"),
            ("call it otherwise", "--name NAME"),
            code="name_taken",
        )
    edit = Put(path, wish.entry)
    try:
        after = _WRITERS[file.suffix](text, edit)
        if document_of(after, file) != applied(data, [edit]):
            raise Unfit("of the way in which it is written")
    except (Unfit, ValueError, RecursionError) as why:
        raise CommandError(
            f"{file} is left as it is, for it cannot be edited: {why}",
            code="not_written",
            exit=Exit.USAGE,
            fixes=[("add it yourself", wish.snippet)],
        ) from None
    try:
        backup = back_up(file)
        write_whole(file, after, raw)
    except NotInstallable as error:
        raise usage(str(error), code="not_written") from None
    except OSError as error:
        raise usage(f"{file}: cannot be written: {error.strerror or error}", code="not_written") from None
    return Done(wish, changed=True, backup=backup, is_new=raw is None)


def _path(wish: Wish, data: JsonObject) -> tuple[str, ...]:
    """Where the entry goes. Raises `CommandError` where something else stands there."""
    servers: Any = data.get(wish.client.map)
    if servers is not None and not isinstance(servers, dict):
        raise usage(f"{wish.file} is left as it is: its `{wish.client.map}` holds no servers", code="bad_client_file")
    return (wish.client.map, wish.name)


def _at(data: JsonObject, path: Sequence[str]) -> Any:
    here: Any = data
    for step in path:
        here = cast(JsonObject, here).get(step) if isinstance(here, dict) else None
    return here


def _show(terminal: Terminal, wishes: Sequence[Wish]) -> None:
    if terminal.as_json:
        terminal.write_json([_to_json(wish) for wish in wishes])
        return
    for wish in wishes:
        terminal.note(f"{wish.client.title}, {wish.file}:")
        terminal.write(wish.snippet)


def _to_json(wish: Wish) -> JsonObject:
    return {"client": wish.client.id, "file": str(wish.file), "name": wish.name, "entry": wish.entry}


def _print(terminal: Terminal, done: Sequence[Done]) -> None:
    if terminal.as_json:
        terminal.write_json(
            [
                {
                    **_to_json(one.wish),
                    "changed": one.changed,
                    "backup": None if one.backup is None else str(one.backup),
                    "undo": one.undo if one.changed else None,
                }
                for one in done
            ]
        )
        return
    for one in done:
        client, file = one.wish.client, one.wish.file
        if not one.changed:
            terminal.write(f"{client.title} has {one.wish.name} already, in {file}")
            continue
        terminal.write(f"{client.title} has {one.wish.name} now, in {file}")
        if one.backup is not None:
            terminal.note(f"the file as it was:  {one.backup}")
        terminal.note(f"to use it:  {client.again}")
        terminal.note(f"undo:  {one.undo}")
