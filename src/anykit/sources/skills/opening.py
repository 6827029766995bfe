"""From what the operator wrote to sources: a folder, the usual places, a plugin. What is wrong is a source that says so."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from anykit.capabilities import CapabilityProvider
from anykit.stores.paths import data_dir, private_folder

from .errors import Finding, Unreadable
from .files import SKIPPED
from .folders import Place, usual_places
from .library import KIND, Library
from .plugins import MANIFEST, SERVERS, Plugin, read_plugin
from .source import Allowed, Selection, SkillsSource
from .strict import NAMES

PLUGIN: Final = "plugin"
"""The kind of a folder with `plugin.json`."""
USUAL: Final = "anykit:skills"
"""What names the usual places."""
LOOKED_AT: Final = 500
"""Folders that are looked into to tell what a folder is."""


class Opening(Protocol):
    """What opening needs to know of its surroundings."""

    @property
    def folder(self) -> Path:
        """Where relative paths start, and whose skills are the project's."""
        ...

    @property
    def env(self) -> Mapping[str, str] | None:
        """The environment; the process's own where None."""
        ...

    @property
    def secrets(self) -> Any:
        """Where tokens of servers are kept."""
        ...

    @property
    def offers(self) -> Any:
        """What MCP servers may ask for."""
        ...

    @property
    def library(self) -> Library | None:
        """The skills of the host."""
        ...

    @property
    def allowed(self) -> Allowed | None:
        """Judges skills that were found in a project."""
        ...

    @property
    def data_dir(self) -> Path | None:
        """Where data lies; the platform's folder where None."""
        ...


@dataclass(frozen=True, slots=True)
class Opened:
    """A source as it goes into the catalogue; the fields are those of the runtime's `Source`."""

    name: str
    kind: str = KIND
    provider: CapabilityProvider | None = None
    failed: str | None = None
    location: str = ""
    prefixed: bool = False


def kind_of(folder: Path) -> Literal["plugin", "skills"] | None:
    """What a folder is: a plugin, a skill or a folder of skills; None for any other."""
    if (folder / MANIFEST).is_file():
        return PLUGIN
    todo = [(folder, 0)]
    for _ in range(LOOKED_AT):
        if not todo:
            return None
        place, depth = todo.pop(0)
        if any((place / name).is_file() for name in NAMES):
            return KIND
        if depth < 2:
            try:
                deeper = sorted(one for one in place.iterdir() if one.name not in SKIPPED and one.is_dir())
            except OSError:
                continue
            todo += [(one, depth + 1) for one in deeper[:LOOKED_AT]]
    return None


def open_source(config: Any, opening: Opening) -> Opened:
    """The entry point `skills`: the folder that a table names, or the usual places where it names none."""
    target = config.target
    name: str = config.name or ""
    select = Selection(
        tuple(getattr(config, "include", None) or ("*",)),
        tuple(getattr(config, "exclude", None) or ()),
    )
    if not target or target == USUAL:
        env = os.environ if opening.env is None else opening.env
        places = usual_places(opening.folder, env)
        source = SkillsSource(
            *places, name=name or KIND, allowed=opening.allowed, select=select, library=opening.library
        )
        return Opened(source.name, provider=source, location=USUAL)
    folder = opening.folder / Path(target).expanduser()
    if folder.name in NAMES and folder.is_file():
        folder = folder.parent
    name = name or _name_of(folder)
    if not folder.is_dir():
        return Opened(name, failed=f"{target}: there is no such folder", location=str(folder))
    source = SkillsSource(Place(folder), name=name, select=select, library=opening.library)
    return Opened(name, provider=source, location=str(folder))


def open_plugin(folder: Path, opening: Opening, *, name: str = "") -> list[Opened]:
    """The sources of a plugin: its skills, then its servers."""
    own = hashlib.sha256(os.path.realpath(folder).encode(errors="surrogatepass")).hexdigest()[:8]
    place = (opening.data_dir or data_dir(env=opening.env)) / "plugins"
    fallback = name or _name_of(folder)
    try:
        plugin = read_plugin(folder, place / f"{_name_of(folder)}-{own}")
        if any(server.entry.get("type") == "stdio" for server in plugin.servers):
            private_folder(private_folder(place) / f"{_name_of(folder)}-{own}")
    except Unreadable as error:
        return [Opened(fallback, PLUGIN, failed=f"{folder}: {error.message}", location=str(folder))]
    except OSError as error:
        reason = f"{place}: cannot be written: {error.strerror or error}"
        return [Opened(fallback, PLUGIN, failed=reason, location=str(folder))]
    return [_skills_of(plugin, name, opening), *_servers_of(plugin, opening)]


def _skills_of(plugin: Plugin, name: str, opening: Opening) -> Opened:
    notes = list(plugin.findings)
    if plugin.skills is None and not plugin.servers and not notes:
        notes.append(Finding("warning", str(plugin.root), "the plugin has no skills and no servers"))
    places = [] if plugin.skills is None else [Place(plugin.skills, recursive=False, exact=True)]
    source = SkillsSource(*places, name=name or _clean(plugin.name), strict=True, library=opening.library, notes=notes)
    return Opened(source.name, PLUGIN, source, location=str(plugin.root))


def _servers_of(plugin: Plugin, opening: Opening) -> list[Opened]:
    if not plugin.servers:
        return []
    from anykit.sources.mcp import McpServer, McpSource  # noqa: PLC0415 - only for plugins with servers
    from anykit.transports import Command  # noqa: PLC0415 - the same

    where = str(plugin.root / SERVERS)
    made: list[Opened] = []
    for server in plugin.servers:
        name, entry = _clean(server.name), server.entry
        if server.fault:
            made.append(Opened(name, "mcp", failed=f"{where}: {server.fault}", location=where))
            continue
        try:
            if entry["type"] == "stdio":
                argv = (entry["command"], *entry["args"])
                started = McpServer(name, Command(argv, env=entry["env"], cwd=Path(entry["cwd"])))
            else:
                transport = "sse" if entry["type"] == "sse" else "http"
                started = McpServer(name, url=entry["url"], transport=transport, headers=entry["headers"])
        except ValueError as error:
            made.append(Opened(name, "mcp", failed=f"{where}: mcpServers.{name}: {error}", location=where))
            continue
        provider = McpSource(started, vault=opening.secrets, offers=opening.offers)
        made.append(Opened(name, "mcp", provider, location=started.place, prefixed=True))
    return made


def _name_of(folder: Path) -> str:
    return _clean(folder.resolve().name)


def _clean(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:48] or KIND
