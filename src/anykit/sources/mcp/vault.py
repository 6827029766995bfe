"""Where tokens are kept: a port that the encrypted secret store fits as it is, and one that forgets with the process."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Protocol, cast

from anykit.capabilities import JsonObject

from .servers import McpServer

SCOPE = "mcp-oauth"
"""The scope of all that is kept here."""


class Vault(Protocol):
    """Texts by scope and name, kept so that nobody else reads them."""

    async def get(self, scope: str, name: str) -> str | None:
        """The text, or None."""
        ...

    async def put(self, scope: str, name: str, value: str) -> None:
        """Keep a text."""
        ...

    async def delete(self, scope: str, name: str) -> bool:
        """Forget one; whether there was any."""
        ...


class Forgetful:
    """A vault that lasts as long as the process."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], str] = {}

    async def get(self, scope: str, name: str) -> str | None:
        """See `Vault`."""
        return self._kept.get((scope, name))

    async def put(self, scope: str, name: str, value: str) -> None:
        """See `Vault`."""
        self._kept[scope, name] = value

    async def delete(self, scope: str, name: str) -> bool:
        """See `Vault`."""
        return self._kept.pop((scope, name), None) is not None


class Drawer:
    """What is kept for one server: bound to its URL and client, so that no other server ever gets it."""

    def __init__(self, vault: Vault, server: McpServer) -> None:
        self._vault = vault
        client = server.oauth.client_id if server.oauth is not None else ""
        self.name = hashlib.sha256(f"{server.url}\n{client}".encode()).hexdigest()[:32]
        """What it is kept under."""

    async def read(self) -> JsonObject:
        """All of it; {} where there is nothing, or nothing that can be read."""
        text = await self._vault.get(SCOPE, self.name)
        if text is None:
            return {}
        try:
            kept: Any = json.loads(text)
        except ValueError:
            return {}
        return cast(JsonObject, kept) if isinstance(kept, dict) else {}

    async def change(self, **fields: object) -> None:
        """Set some of it; None takes a field away."""
        kept = {**await self.read(), **fields}
        kept = {key: value for key, value in kept.items() if value is not None}
        await self._vault.put(SCOPE, self.name, json.dumps(kept))

    async def clear(self) -> bool:
        """Forget all of it; whether there was any."""
        return await self._vault.delete(SCOPE, self.name)
