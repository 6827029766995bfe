"""What stands in a file, by the names that `list sources` shows; nothing is started or imported to tell them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from .config import AppConfig, SourceConfig
from .opening import Opening, names_of, open_file, open_plugin

Kind: TypeAlias = Literal["source", "server", "agent", "toolkit"]
SERVER_MAPS = ("mcpServers", "servers", "mcp_servers", "mcp", "context_servers")


@dataclass(frozen=True, slots=True)
class Entry:
    """Something in a file that can be taken out or switched off."""

    name: str
    kind: Kind
    """`server`: one of those in a client's file that a source names, or in our own."""
    path: tuple[str | int, ...]
    """Where it stands in the file; of a server in another file, where the source stands that names the file."""
    said: str | SourceConfig | None = None
    """What stands there, of a source."""
    enabled: bool = True
    file: str = ""
    """Of a server in another file: that file."""
    own: str = ""
    """Of a server in another file: its name there."""
    aliases: tuple[str, ...] = ()
    """What else it may be called: as it is written in the file."""


def entries_of(data: Mapping[str, Any], config: AppConfig, opening: Opening) -> list[Entry]:
    """Every entry of a file; `data` is what it says, `config` how that was read."""
    numbers = _Numbers()
    found = _sources(data, config, opening, numbers)
    for id, block in config.agents.items():
        enabled = block.get("enabled", True) is not False and not block.get("disabled")
        found.append(Entry(numbers.taken(id), "agent", ("agents", id), enabled=enabled, aliases=(id,)))
    known = {entry.name for entry in found}
    found += [
        Entry(name, "toolkit", ("toolkits", name), enabled=said.enabled)
        for name, said in config.toolkits.items()
        if name not in known
    ]
    return found


class _Numbers:
    """Gives a name that is taken a number, as the catalogue does."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def taken(self, name: str) -> str:
        free, number = name, 2
        while free in self._given:
            free, number = f"{name}_{number}", number + 1
        self._given.add(free)
        return free


def _sources(data: Mapping[str, Any], config: AppConfig, opening: Opening, numbers: _Numbers) -> list[Entry]:
    servers = {
        name: (key, cast("dict[str, Any]", entry))
        for key in SERVER_MAPS
        if isinstance(data.get(key), dict)
        for name, entry in cast("dict[str, Any]", data[key]).items()
        if isinstance(entry, dict)
    }
    own = str(config.path) if config.path is not None else ""
    entries: list[Entry] = []
    for index, said in enumerate(config.sources):
        names = names_of(said, opening)
        if servers and said == own:
            for name in names:
                key, table = servers.get(name, ("", {}))
                if key:
                    enabled = table.get("enabled", True) is not False and not table.get("disabled")
                    entries.append(Entry(numbers.taken(name), "server", (key, name), enabled=enabled))
            continue
        written = _written(said)
        place: tuple[str | int, ...] = ("sources", index)
        enabled = isinstance(said, str) or said.enabled
        if len(names) == 1 and not _holds_several(said, opening):
            entries.append(Entry(numbers.taken(names[0]), "source", place, said, enabled, aliases=written))
            continue
        off: Sequence[str] = said.disabled if isinstance(said, SourceConfig) else ()
        entries.append(Entry(written[0], "source", place, said, enabled, aliases=written))
        entries += [
            Entry(numbers.taken(name), "server", place, said, name not in off, file=written[0], own=name)
            for name in names
        ]
    return entries


def _written(said: str | SourceConfig) -> tuple[str, ...]:
    """What a source is called in the file itself."""
    if isinstance(said, str):
        return (said,)
    command = said.command if isinstance(said.command, str) else " ".join(said.command or ())
    line = " ".join([command, *said.args]).strip()
    return tuple(word for word in (said.target, said.url, line, command) if word)


def _holds_several(said: str | SourceConfig, opening: Opening) -> bool:
    return bool(open_file(said, opening) or open_plugin(said, opening))
