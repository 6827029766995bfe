"""What MCP servers have to be told before they start: who asks for what, and what was answered, kept encrypted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from anykit.capabilities import Json, JsonObject
from anykit.schema import redact
from anykit.sources.documents import ENDINGS
from anykit.stores import RecordStore, SecretStore, UnresolvedReference, resolve

from .source_tables import SourceConfig

KIND = "server_inputs"


@dataclass(frozen=True, slots=True)
class Asked:
    """What one server asks for."""

    server: str
    schema: JsonObject
    file: str
    """Where the server stands."""


class Told:
    """What the servers of one project were told. `project` keeps two projects of one person apart."""

    def __init__(self, records: RecordStore, secrets: SecretStore, *, project: str) -> None:
        self._records = records
        self._secrets = secrets
        self._project = project

    async def save(self, server: str, schema: JsonObject, values: JsonObject) -> None:
        """Keep what a server was told. Raises `RecordError`, `SecretError`."""
        await self._secrets.put(self._project, _key(server), json.dumps(values))
        await self._records.put(KIND, server, redact(schema, values), principal=self._project)

    async def forget(self, server: str) -> bool:
        """Drop it; False where there was nothing."""
        there = any(one.key == server for one in await self._records.list(KIND, principal=self._project))
        await self._records.delete(KIND, server, principal=self._project)
        await self._secrets.delete(self._project, _key(server))
        return there

    async def names(self) -> set[str]:
        """The servers that were told something. Raises `RecordError`."""
        return {record.key for record in await self._records.list(KIND, principal=self._project)}

    async def stored(self) -> dict[str, JsonObject]:
        """Everything as it was written, by server. Raises `RecordError`, `SecretError`."""
        found: dict[str, JsonObject] = {}
        for record in await self._records.list(KIND, principal=self._project):
            whole = await self._secrets.get(self._project, _key(record.key))
            found[record.key] = {} if whole is None else json.loads(whole)
        return found

    async def values(self, env: Mapping[str, str] | None, folder: Path) -> dict[str, dict[str, str]]:
        """The same with references replaced; one that leads nowhere counts as not told."""
        found: dict[str, dict[str, str]] = {}
        for server, config in (await self.stored()).items():
            mine = found.setdefault(server, {})
            for id, value in config.items():
                try:
                    mine[id] = resolve(value, env, folder) if isinstance(value, str) else json.dumps(value)
                except UnresolvedReference:
                    continue
        return found


def _key(server: str) -> str:
    return f"server:{server}"


def inputs_for(config: SourceConfig, told: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """What `${input:ID}` stands for in a source's table: what it was told, else the defaults that it says."""
    said: dict[str, str] = {}
    for one in config.inputs:
        id, default = one.get("id"), one.get("default")
        if isinstance(id, str) and isinstance(default, str) and one.get("password") is not True:
            said[id] = default
    return {**said, **(told.get(config.name or "", {}))}


def asked_by(sources: Sequence[object], folder: Path, env: Mapping[str, str] | None = None) -> dict[str, Asked]:
    """The servers among `sources` that have to be told something, by name. Nothing is started; never raises."""
    found: dict[str, Asked] = {}
    for source in sources:
        config = source if isinstance(source, SourceConfig) else SourceConfig(target=str(source))
        for asked in (*_of_table(config), *_of_file(config.target, folder, env)):
            found.setdefault(asked.server, asked)
    return found


def _of_table(config: SourceConfig) -> Sequence[Asked]:
    if not config.inputs or not config.name:
        return ()
    from anykit.sources.mcp.inputs import inputs_in, inputs_of, schema_of_inputs  # noqa: PLC0415 - only who uses MCP pays

    token = config.token.get_secret_value() if config.token is not None else ""
    declared = inputs_of({"inputs": config.inputs})
    texts: list[Json] = [getattr(config, key) for key in config.references if key != "token"]
    schema = schema_of_inputs({**inputs_in([*texts, token]), **dict.fromkeys(declared)}, declared)
    return () if schema is None else (Asked(config.name, schema, config.url or config.target or ""),)


def _of_file(target: str | None, folder: Path, env: Mapping[str, str] | None) -> Sequence[Asked]:
    if target is None or "://" in target or Path(target).suffix not in ENDINGS:
        return ()
    file = folder / Path(target).expanduser()
    if not file.is_file():
        return ()
    from anykit.sources.mcp import Misfit, Surroundings, read_server_file  # noqa: PLC0415 - as above

    try:
        read = read_server_file(file, Surroundings(file.parent, env={} if env is None else env))
    except Misfit:
        return ()
    return [Asked(one.name, one.inputs, str(file)) for one in read.entries if one.inputs is not None]
