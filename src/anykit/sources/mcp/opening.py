"""From the operator's configuration to sources. What a person got wrong is a source that says so, never an exception."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from pydantic import SecretStr

from anykit.capabilities import CapabilityProvider

from .files import ServerFile, entries_of, read_server_file, tell
from .parts import Entry
from .placeholders import Surroundings
from .servers import McpServer, Offers
from .source import McpSource
from .vault import Vault

KIND = "mcp"
_LAUNCHERS = frozenset({"npx", "bunx", "uvx", "uv", "pipx", "node", "bun", "deno", "docker", "sh", "bash", "env"})
_SUBCOMMANDS = frozenset({"run", "tool", "exec", "x", "dlx"})


class Opening(Protocol):
    """What opening needs to know of its surroundings."""

    @property
    def folder(self) -> Path:
        """Where relative paths start."""
        ...

    @property
    def env(self) -> Mapping[str, str] | None:
        """The environment; the process's own where None."""
        ...

    @property
    def connect_timeout(self) -> float:
        """Seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Opened:
    """A source as it goes into the catalogue; the fields are those of the runtime's `Source`."""

    name: str
    kind: str = KIND
    provider: CapabilityProvider | None = None
    toolkits: tuple[Any, ...] = ()
    prefixed: bool = True
    required: bool = False
    disabled: str | None = None
    failed: str | None = None
    location: str = ""


def open_mcp(config: Any, opening: Opening, *, vault: Vault | None = None, offers: Offers | None = None) -> Opened:
    """One server from its table in the configuration: `command` (with `args`, `env`, `cwd`) or `url`, and options.

    References in the table are replaced already. Options are the keys that `mcp.json` files have (`headers`, `transport`,
    `oauth`, `era`, `timeout` in seconds, `allow`, `deny`).
    """
    try:
        server = server_of(config, opening)
    except ValueError as error:
        return Opened(getattr(config, "name", None) or KIND, failed=str(error))
    return _opened(server, vault, offers)


def open_file(
    path: str | Path,
    opening: Opening,
    *,
    vault: Vault | None = None,
    offers: Offers | None = None,
    inputs: Mapping[str, str] | None = None,
) -> list[Opened]:
    """The servers of a client's file, each a source. Raises `Misfit` where the file as a whole cannot be read."""
    file = opening.folder / Path(path).expanduser()
    found = read_server_file(file, _surroundings(opening, file.parent, inputs))
    return of_file(found, vault=vault, offers=offers)


def of_file(file: ServerFile, *, vault: Vault | None = None, offers: Offers | None = None) -> list[Opened]:
    """The servers of a file that was read, each a source; what there is to say of it is logged."""
    tell(file)
    where = str(file.path or "")
    return [of_entry(entry, location=where, vault=vault, offers=offers) for entry in file.entries]


def open_servers(
    servers: Mapping[str, Any],
    opening: Opening,
    *,
    vault: Vault | None = None,
    offers: Offers | None = None,
    inputs: Mapping[str, str] | None = None,
) -> list[Opened]:
    """The same for a map from name to entry that was read already."""
    entries = entries_of(servers, _surroundings(opening, opening.folder, inputs))
    return [of_entry(entry, location="", vault=vault, offers=offers) for entry in entries]


def of_entry(entry: Entry, *, location: str, vault: Vault | None = None, offers: Offers | None = None) -> Opened:
    """An entry of a file as a source."""
    if entry.disabled:
        return Opened(entry.name, disabled=entry.disabled, location=location)
    if entry.server is None:
        hint = f"; set it: anykit configure {entry.name}" if entry.inputs and "needs the input" in entry.fault else ""
        return Opened(entry.name, failed=entry.fault + hint, required=entry.required, location=location)
    opened = _opened(entry.server, vault, offers)
    return Opened(opened.name, provider=opened.provider, required=entry.required, location=opened.location)


def _opened(server: McpServer, vault: Vault | None, offers: Offers | None) -> Opened:
    return Opened(server.name, provider=McpSource(server, vault=vault, offers=offers), location=server.place)


def _surroundings(opening: Opening, folder: Path, inputs: Mapping[str, str] | None) -> Surroundings:
    given: dict[str, Any] = {"connect_timeout": opening.connect_timeout, "inputs": dict(inputs or {})}
    if opening.env is not None:
        given["env"] = opening.env
        if home := opening.env.get("HOME"):
            given["home"] = Path(home)
    if told := getattr(opening, "told", None):
        given["told"] = told
    return Surroundings(folder, **given)


def server_of(config: Any, opening: Opening) -> McpServer:
    """What a table of the configuration describes. Raises `ValueError`."""

    def given(key: str) -> Any:
        return getattr(config, key, None)

    target: Any = given("target")
    url: Any = given("url") or (target if isinstance(target, str) and re.match(r"https?://", target, re.I) else None)
    command: Any = given("command")
    entry: dict[str, Any] = {}
    for key in ("headers", "oauth", "era", "transport", "required"):
        if given(key) or (key == "oauth" and given(key) is False):
            entry[key] = given(key)
    token: Any = given("token")
    if token is not None:
        entry["token"] = token.get_secret_value() if isinstance(token, SecretStr) else token
    if isinstance(given("timeout"), int | float):
        entry["tool_timeout_sec"] = given("timeout")
    if isinstance(given("connect_timeout"), int | float):
        entry["startup_timeout_sec"] = given("connect_timeout")
    if command:
        entry |= {"command": command, "args": list(given("args") or ()), "env": dict(given("env") or {})}
        for key, spelt in (("cwd", "cwd"), ("env_file", "envFile")):
            if given(key):
                entry[spelt] = given(key)
    elif url:
        entry["url"] = url
        if given("headers_helper"):
            entry["headersHelper"] = given("headers_helper")
    else:
        raise ValueError("an MCP server needs a `command` or a `url`")
    if given("allow"):
        entry["enabled_tools"] = list(given("allow"))
    if given("deny"):
        entry["disabled_tools"] = list(given("deny"))
    name = given("name") or (_name_of_url(url) if not command else _name_of_command(command, given("args")))
    # What the operator's own file says was filled in once; a value is not looked through for placeholders again.
    around = Surroundings(opening.folder, connect_timeout=opening.connect_timeout)
    [read] = entries_of({name: entry}, around, filled=True)
    if read.server is None:
        raise ValueError(read.fault)
    return read.server


def _name_of_url(url: str) -> str:
    return _clean(urlsplit(url).hostname or KIND)


def _name_of_command(command: Any, args: Any) -> str:
    """What a command line is about: the program, or what a launcher launches."""
    argv = [str(one) for one in ([command] if isinstance(command, str) else list(command))] + [
        str(a) for a in args or ()
    ]
    for word in argv:
        name = re.split(r"[\\/]", word)[-1]
        launcher = re.sub(r"[\d.]+$", "", name)
        if launcher in _LAUNCHERS | {"python", "py"} or name.startswith("-") or name in _SUBCOMMANDS or not name:
            continue
        return _clean(re.sub(r"(?<=.)@.*$|\.(py|js|mjs|ts|sh)$|==.*$", "", name))
    return _clean(re.split(r"[\\/]", argv[0])[-1])


def _clean(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:48] or KIND
