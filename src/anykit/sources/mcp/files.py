"""Files in which clients keep their servers (`mcp.json` of Claude, VS Code, Codex and their relatives), read as ours.

Nothing is started. A wrong entry costs itself: it is a `Misfit`'s text with the place of the fault, beside its neighbours.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, cast

from anykit.capabilities import Json, JsonObject
from anykit.sources.documents import Unreadable, document_of, read_text
from anykit.transports import Command

from .clients import ANYKIT, CLAUDE_CODE, PLUGIN, UNKNOWN, Client, client_at, client_of, place_of
from .entries import Reading
from .gates import Gates, gates_of, project_of
from .inputs import inputs_of
from .parts import Entry
from .placeholders import Misfit, Surroundings
from .servers import McpServer

log = logging.getLogger("anykit.sources.mcp.files")

MAX_SERVERS: Final = 1_000
SERVER_MAPS: Final = ("mcpServers", "servers", "mcp_servers", "mcp", "context_servers", "extensions")
"""Where the servers stand, the first that is there."""
NO_SERVERS: Final = frozenset({"agents", "builtins", "a2a", "mcpServer", "inputs", "$schema"})
"""Keys beside them that are never one."""
FASTMCP_PROJECT: Final = "fastmcp-project"
"""The kind of a file that is a server itself."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One server as it is written, before anything is filled in."""

    name: str
    value: Json
    scope: str = ""


@dataclass(frozen=True, slots=True)
class ServerFile:
    """A client's file, read."""

    path: Path | None
    kind: str
    """The client's id, or `fastmcp-project`."""
    title: str
    """What the client is called."""
    entries: tuple[Entry, ...]
    reports: tuple[str, ...] = ()
    """What there is to say of the file as a whole, each once."""
    definitions: tuple[Definition, ...] = ()
    """The entries as they are written, in the same order."""
    reading: Reading | None = None
    """How they were read; None where there is nothing to be read another way."""
    gates: Gates = field(default_factory=Gates)
    """What stands elsewhere about them."""


def is_server_file(data: Mapping[str, Any], path: Path | None = None) -> bool:
    """Whether a file's contents are a client's servers, or a FastMCP server project, and not something else."""
    return _is_project(data, path) or _server_map(data, client_at(path)) is not None


def read_server_file(path: str | os.PathLike[str], around: Surroundings | None = None) -> ServerFile:
    """A client's file: JSON (with comments), TOML or YAML, by its ending; by the rules of the client that it is of.

    Raises `Misfit` where the file as a whole cannot be read; a wrong entry is one with a `fault`.
    """
    file = Path(path).expanduser()
    around = around or Surroundings(file.parent)
    try:
        text = read_text(file)
        data = document_of(text, file)
    except Unreadable as error:
        raise Misfit(str(error)) from None
    if _is_project(data, file):
        return _project(file, text, data, around)
    known = client_at(file.absolute())
    servers = _server_map(data, known)
    if servers is None:
        raise Misfit(f"{file}: no servers in it; expected an object under `mcpServers` (or `servers`, `mcp`)")
    client = client_of(file.absolute(), data, servers)
    place = place_of(client, file.absolute(), around.project, around.home)
    if client not in (UNKNOWN, ANYKIT):
        around = replace(around, folder=place.folder)
    if client is PLUGIN and not around.names:
        names = {"PLUGIN_ROOT": str(place.folder), "PLUGIN_DATA": str(place.folder / ".data")}
        around = replace(around, names=names)
    definitions = [Definition(str(name), value) for name, value in servers.items() if name not in NO_SERVERS]
    if client is CLAUDE_CODE:
        definitions = _with_local(definitions, data, around)
    gates = gates_of(client, file.absolute(), data, around)
    reading = Reading(around, client, where=str(file), inputs=inputs_of(data), start=place.start)
    return _read(file, definitions, reading, gates)


def _read(file: Path | None, definitions: list[Definition], reading: Reading, gates: Gates) -> ServerFile:
    reports = list(gates.reports)
    if len(definitions) > MAX_SERVERS:
        reports.append(f"more than {MAX_SERVERS} servers; the rest is left out")
    definitions = definitions[:MAX_SERVERS]
    given = dict(reading.around.inputs)
    for one in definitions:
        given = {**reading.around.told.get(one.name, {}), **given}
    reading = replace(reading, around=replace(reading.around, inputs=given))
    entries = tuple(
        replace(reading.entry(one.name, one.value, gates.of(one.name)), scope=one.scope) for one in definitions
    )
    if ignored := dict.fromkeys(key for entry in entries for key in entry.ignored):
        reports.append(f"keys that mean nothing here: {', '.join(ignored)}")
    return ServerFile(
        file, reading.client.id, reading.client.title, entries, tuple(reports), tuple(definitions), reading, gates
    )


def _with_local(definitions: list[Definition], data: Mapping[str, Any], around: Surroundings) -> list[Definition]:
    """Claude Code keeps servers for one project in the person's file; they go before those for all."""
    listed: Any = project_of(data, around.project)[1].get("mcpServers")
    local = cast(JsonObject, listed) if isinstance(listed, dict) else {}
    return [
        *(one for one in definitions if one.name not in local),
        *(Definition(str(name), value, "local") for name, value in local.items()),
    ]


def read_servers(path: str | os.PathLike[str], around: Surroundings | None = None) -> list[Entry]:
    """The servers in a client's file; see `read_server_file`."""
    return list(read_server_file(path, around).entries)


def entries_of(
    servers: Mapping[str, Any],
    around: Surroundings,
    *,
    where: str = "",
    inputs: Mapping[str, JsonObject] | None = None,
    filled: bool = False,
) -> list[Entry]:
    """The servers of a map from name to entry, in its order. `filled` says that placeholders were filled in already."""
    path = Path(where) if where else None
    client = client_at(path) or client_of(None, {}, servers)
    definitions = [Definition(str(name), value) for name, value in servers.items() if name not in NO_SERVERS]
    reading = Reading(around, client, where=where, inputs=inputs or {}, filled=filled)
    return list(_read(path, definitions, reading, Gates()).entries)


def tell(file: ServerFile) -> None:
    """Log what there is to say of a file that is about to be used, once."""
    where = file.path or file.title
    for report in file.reports:
        log.warning("%s: %s", where, report)
    for entry in file.entries:
        for report in entry.reports:
            log.warning("%s: %s", where, report)
    if any(entry.approvals for entry in file.entries):
        log.info("%s: what it says of approvals is read, and not enforced yet", where)


# what is in it


def _server_map(data: Mapping[str, Any], client: Client | None) -> JsonObject | None:
    for key in SERVER_MAPS:
        servers = data.get(key)
        if not isinstance(servers, dict):
            continue
        found = cast(JsonObject, servers)
        if key == "mcp" and isinstance(inner := found.get("servers"), dict):
            return cast(JsonObject, inner)  # VS Code's settings.json
        if key not in ("mcp", "extensions") or any(is_entry(value) for value in found.values()):
            return found
    if any(is_entry(value) for key, value in data.items() if key not in NO_SERVERS):
        return {key: value for key, value in data.items() if isinstance(value, dict) and key not in NO_SERVERS}
    if client is CLAUDE_CODE and isinstance(data.get("projects"), dict):
        return {}  # a person's file with servers for projects only
    return None


def is_entry(value: Json) -> bool:
    """Whether a value describes a server."""
    if not isinstance(value, dict):
        return False
    return any(key in value for key in ("command", "cmd", "url", "httpUrl", "serverUrl", "uri"))


# a FastMCP server project


def _is_project(data: Mapping[str, Any], path: Path | None) -> bool:
    """`fastmcp.json` describes a server (`source`, `environment`, `deployment`), and is no list of servers."""
    source = data.get("source")
    if isinstance(source, dict):
        return isinstance(cast(JsonObject, source).get("path"), str)
    return isinstance(source, str) and path is not None and path.name.endswith("fastmcp.json")


def _project(file: Path, text: str, data: JsonObject, around: Surroundings) -> ServerFile:
    if file.suffix == ".json":
        try:
            json.loads(text)
        except ValueError as error:
            raise Misfit(f"{file}: a FastMCP server project is strict JSON, without comments: {error}") from None
    source: Any = data["source"]
    path = str(cast(JsonObject, source)["path"] if isinstance(source, dict) else source)
    name = Path(path.partition(":")[0]).stem or file.absolute().parent.name
    search = os.pathsep.join([around.env.get("PATH", os.defpath), str(Path(sys.executable).parent)])
    program = shutil.which("fastmcp", path=search)
    if program is None:
        fault = f"{file}: a FastMCP server project, which the command fastmcp runs; install it: pip install fastmcp"
        return ServerFile(file, FASTMCP_PROJECT, "FastMCP project", (Entry(name, fault=fault),))
    argv = (program, "run", str(file.absolute()), "--transport", "stdio", "--no-banner")
    command = Command(argv, cwd=file.absolute().parent)
    server = McpServer(name, command, connect_timeout=around.connect_timeout)
    return ServerFile(file, FASTMCP_PROJECT, "FastMCP project", (Entry(name, server),))
