"""Toolkit configurations that outlive the process: plain values in a record, secrets in the secret store."""

from __future__ import annotations

import copy
import json
from typing import Any

from anykit.capabilities import Json, JsonObject
from anykit.runtime import HOST, Scope
from anykit.schema import secret_values, with_values
from anykit.stores import RecordStore, SecretStore

KIND = "toolkit_config"
_SECRET = {"$secret": True}


class Configurations:
    """The operator's configurations of one project. `project` keeps two projects of one person apart."""

    def __init__(self, records: RecordStore, secrets: SecretStore, *, project: str) -> None:
        self._records = records
        self._secrets = secrets
        self._project = project

    async def save(self, scope: Scope, toolkit: str, schema: JsonObject, config: JsonObject) -> None:
        """Keep a host configuration; a session's dies with the session."""
        if scope != HOST:
            return
        secrets = secret_values(schema, config)
        await self.forget(scope, toolkit)
        if secrets:
            await self._secrets.put(self._project, toolkit, json.dumps(secrets))
        plain = with_values(config, dict.fromkeys(secrets, _SECRET))
        await self._records.put(KIND, toolkit, plain, principal=self._project)

    async def forget(self, scope: Scope, toolkit: str) -> None:
        """Drop one, its secrets too."""
        if scope != HOST:
            return
        await self._records.delete(KIND, toolkit, principal=self._project)
        await self._secrets.delete(self._project, toolkit)

    async def load(self) -> dict[str, JsonObject]:
        """Every configuration kept for this project, with its secrets. Raises `SecretError`, `RecordError`."""
        found: dict[str, JsonObject] = {}
        for record in await self._records.list(KIND, principal=self._project):
            found[record.key] = await self._whole(record.key, record.value)
        return found

    async def shown(self) -> dict[str, JsonObject]:
        """The same with `{"set": true}` for each secret: for eyes and exports."""
        found: dict[str, JsonObject] = {}
        for record in await self._records.list(KIND, principal=self._project):
            found[record.key] = _masked(record.value)
        return found

    async def _whole(self, toolkit: str, plain: Any) -> JsonObject:
        secrets = await self._secrets.get(self._project, toolkit)
        return copy.deepcopy(plain) if secrets is None else with_values(plain, json.loads(secrets))


def _masked(value: Json) -> Any:
    if value == _SECRET:
        return {"set": True}
    if isinstance(value, dict):
        return {key: _masked(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [_masked(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value
