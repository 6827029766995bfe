"""What was named, one by one, and the sources that came of it: so that a change of one touches no other."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, TypeAlias, cast

from pydantic import BaseModel, SecretStr

from anykit.capabilities import JsonObject
from anykit.runtime import Source
from anykit.stores import UnresolvedReference, resolve_all

from .config import AppConfig, SourceConfig
from .opening import Named, Opening, agents_of, opened_by, opened_one

MAX_DOCUMENT = 16 * 1024 * 1024
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_VARIABLE = re.compile(r"\$\$\{|(?:\$\{(?:env:)?|\{env:)(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-[^{}]*)?\}")

Files: TypeAlias = "tuple[Path, ...]"


class Rank(IntEnum):
    """Where a piece was named, which is also its place in lists."""

    SOURCE = 0
    """In `sources`."""
    GIVEN = 1
    """As an argument, or on the line."""
    AGENT = 2
    """In `agents`."""
    OBJECT = 3
    """As an object of the program: no file says anything about it."""


@dataclass(slots=True, eq=False)
class Piece:
    """One thing that was named: an item of `sources`, an agent, an argument of the workbench."""

    said: Named
    """As it was given; the id of an agent."""
    key: str
    """A digest of all that decides what comes of it; two of the same are the same. Empty: it cannot be told."""
    rank: Rank = Rank.OBJECT
    sources: list[Source] = field(default_factory=list[Source])
    """What came of it, under their own names."""
    names: list[str] = field(default_factory=list[str])
    """What these are called in the catalogue."""
    documents: Files = ()
    """Files that it reads and that are no Python: a client's `mcp.json`, an OpenAPI document."""

    @property
    def failed(self) -> bool:
        """Whether something of it could not be opened, and may well be now."""
        return any(source.failed is not None for source in self.sources)

    @property
    def target(self) -> str:
        """The file, module or URL that it names; empty for an object."""
        if isinstance(self.said, SourceConfig):
            return self.said.target or self.said.url or ""
        return str(self.said) if isinstance(self.said, str | Path) else ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A piece that may have to be opened: what the file says, before anything is done about it."""

    said: Named
    key: str
    rank: Rank
    documents: Files = ()
    agent: JsonObject | None = None

    def opened(self, opening: Opening) -> Piece:
        """Open it."""
        if self.agent is not None:
            sources = agents_of({str(self.said): self.agent}, opening)
        else:
            sources = opened_one(self.said, opening)
        return Piece(self.said, self.key, self.rank, sources, documents=self.documents)


def wanted_of(config: AppConfig, opening: Opening) -> list[Wanted]:
    """What a configuration names, in order."""
    sources = [of_named(source, opening, Rank.SOURCE) for source in config.sources]
    agents = [
        Wanted(id, _digest("agent", id, block, _resolved(block, opening)), Rank.AGENT, agent=block)
        for id, block in config.agents.items()
    ]
    return [*sources, *agents]


def of_named(said: Named, opening: Opening, rank: Rank) -> Wanted:
    """One source of the file or of the line."""
    if not isinstance(said, str | Path | SourceConfig):
        return Wanted(said, "", rank)
    source = said if isinstance(said, SourceConfig) else SourceConfig(target=str(said))
    table = plain(source)
    documents = _documents(source, opening)
    contents = [_contents(file) for file in documents]
    key = _digest(type(source).__name__, table, _resolved(table, opening), contents)
    return Wanted(said, key, rank, documents)


def pieces_of(things: Sequence[Named], opening: Opening) -> list[Piece]:
    """The pieces of what was given to a workbench, opened."""
    found: list[Piece] = []
    for said, sources in opened_by(things, opening):
        known = of_named(said, opening, Rank.GIVEN)
        rank = Rank.GIVEN if known.key else Rank.OBJECT
        found.append(Piece(said, known.key, rank, sources, documents=known.documents))
    return found


def plain(source: SourceConfig) -> JsonObject:
    """What a table says, secrets too: for digests only."""
    return cast(JsonObject, _plain(source.model_dump(exclude_defaults=True)))


def _plain(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, BaseModel):
        return _plain(value.model_dump(exclude_defaults=True))
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("Sequence[Any]", value)]
    return value


def _resolved(table: JsonObject, opening: Opening) -> Any:
    """What its references mean now: a file that a reference names may have changed."""
    try:
        return resolve_all(table, opening.env, opening.folder)
    except UnresolvedReference as error:
        return str(error)


def _documents(source: SourceConfig, opening: Opening) -> Files:
    target = source.target or ""
    if not target or _URL.match(target) or target.startswith("anykit:") or ".py" in target:
        return ()
    try:
        file = opening.folder / Path(target).expanduser()
        if file.is_dir():
            file = file / "mcp.json"
        return (file,) if file.is_file() else ()
    except (OSError, ValueError):
        return ()


def _contents(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return hashlib.sha256(stream.read(MAX_DOCUMENT)).hexdigest()
    except OSError as error:
        return str(error)


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def is_same(old: Source, new: Source) -> bool:
    """Whether a source that was opened again is what is there already: an MCP server that its file describes as before."""
    server: Any = getattr(old.provider, "server", None)
    if server is None or getattr(new.provider, "server", None) != server:
        return False
    return (old.kind, old.required, old.disabled, new.failed, old.allow, old.deny, old.tags) == (
        *(new.kind, new.required, new.disabled, None, new.allow, new.deny, new.tags),
    )


def unset_variables(config: AppConfig) -> list[str]:
    """Variables without which what is used of a configuration has no meaning: the name, and where it is referred to."""
    found: list[str] = []
    for index, source in enumerate(config.sources):
        table = {"target": source} if isinstance(source, str) else plain(source)
        if isinstance(source, str) or source.enabled:
            found += _unset(f"sources[{index}]", table)
    for id, block in config.agents.items():
        if block.get("enabled", True) is not False and block.get("disabled") is not True:
            found += _unset(f"agents.{id}", block)
    for name, said in config.toolkits.items():
        if said.enabled:
            found += _unset(f"toolkits.{name}.config", said.config or {})
    if config.serve.token is not None:
        found += _unset("serve.token", config.serve.token.get_secret_value())
    return found


def _unset(where: str, value: Any) -> Iterator[str]:
    if isinstance(value, str):
        for match in _VARIABLE.finditer(value):
            name = match["name"]
            if name and match["default"] is None and name not in os.environ:
                yield f"{where}: the environment variable {name} is not set"
    elif isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            yield from _unset(f"{where}.{key}", item)
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[Any]", value)):
            yield from _unset(f"{where}[{index}]", item)
