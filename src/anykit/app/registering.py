"""The MCP servers that agents may register: those on the operator's list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from anykit.capabilities import Unavailable

from .config import A2EConfig, SourceConfig

REGISTERED_SERVERS = 16
"""Servers that agents may have registered at a time."""


class Growing(Protocol):
    """A workbench that sources are added to."""

    async def add(self, source: Any) -> Any:
        """Add one; what it gives has a `name`."""
        ...

    async def remove(self, name: str) -> None:
        """Take one out. Raises `KeyError`."""
        ...


class AllowedServers:
    """Takes in the MCP servers that agents register: exactly those on the operator's list, and only so many at a time."""

    def __init__(self, bench: Growing, config: A2EConfig) -> None:
        self._bench = bench
        self._urls = frozenset(one for one in config.allow_servers if isinstance(one, str))
        self._commands = frozenset(tuple(one) for one in config.allow_servers if not isinstance(one, str))
        self._taken: set[str] = set()
        self._coming = 0

    def allows(self, command: Sequence[str], url: str) -> bool:
        """Whether exactly this command or URL stands on the operator's list."""
        return tuple(command) in self._commands if command else url in self._urls

    async def add(self, name: str, *, command: Sequence[str], url: str, timeout: float) -> str:
        """Take one in. `timeout` is in seconds, of its calls; 0 says nothing. Raises `Unavailable` where there are too many."""
        if len(self._taken) + self._coming >= REGISTERED_SERVERS:
            raise Unavailable(f"{REGISTERED_SERVERS} servers are registered already", sent=False)
        self._coming += 1
        try:
            where = {"command": list(command)} if command else {"url": url}
            times = {"timeout": timeout} if timeout > 0 else {}
            view = await self._bench.add(SourceConfig.model_validate({"kind": "mcp", "name": name, **where, **times}))
        finally:
            self._coming -= 1
        self._taken.add(view.name)
        return view.name

    async def remove(self, name: str) -> None:
        """Take it out again. Raises `KeyError`."""
        self._taken.discard(name)
        await self._bench.remove(name)
