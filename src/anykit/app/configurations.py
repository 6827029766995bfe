"""Toolkit configurations that outlive the process: what may be seen in a record, the whole, encrypted, as a secret."""

from __future__ import annotations

import json

from anykit.capabilities import JsonObject
from anykit.runtime import HOST, Scope
from anykit.schema import redact
from anykit.stores import RecordStore, SecretStore

KIND = "toolkit_config"


class Configurations:
    """The operator's configurations of one project. `project` keeps two projects of one person apart."""

    def __init__(self, records: RecordStore, secrets: SecretStore, *, project: str) -> None:
        self._records = records
        self._secrets = secrets
        self._project = project

    async def save(self, scope: Scope, toolkit: str, schema: JsonObject, config: JsonObject) -> None:
        """Keep a host configuration; a session's dies with the session. Raises `RecordError`, `SecretError`."""
        if scope != HOST:
            return
        shown = redact(schema, config)
        if shown == config:
            await self._secrets.delete(self._project, toolkit)
        else:
            await self._secrets.put(self._project, toolkit, json.dumps(config))
        await self._records.put(KIND, toolkit, shown, principal=self._project)

    async def forget(self, scope: Scope, toolkit: str) -> None:
        """Drop one, its secrets too."""
        if scope == HOST:
            await self._records.delete(KIND, toolkit, principal=self._project)
            await self._secrets.delete(self._project, toolkit)

    async def load(self) -> dict[str, JsonObject]:
        """Every configuration kept for this project, with its secrets. Raises `SecretError`, `RecordError`."""
        found: dict[str, JsonObject] = {}
        for name, shown in (await self.shown()).items():
            whole = await self._secrets.get(self._project, name)
            found[name] = shown if whole is None else json.loads(whole)
        return found

    async def shown(self) -> dict[str, JsonObject]:
        """The same with `{"set": true}` for each secret: for eyes and exports."""
        return {record.key: record.value for record in await self._records.list(KIND, principal=self._project)}
