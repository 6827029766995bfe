"""What is kept of a source in the records: configurations of its toolkits, answers to its questions, tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from anykit.runtime import HOST, Source

from .workbench import Workbench


@dataclass(frozen=True, slots=True)
class Kept:
    """What may be forgotten: names of toolkits and of MCP servers of which something is kept."""

    toolkits: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    tokens: tuple[Any, ...] = ()
    """MCP servers whose tokens are kept."""

    def __bool__(self) -> bool:
        return bool(self.toolkits or self.servers or self.tokens)

    def lines(self) -> list[str]:
        """It in words."""
        lines = [f"the configuration of toolkit {name}" for name in self.toolkits]
        lines += [f"what server {name} was told" for name in self.servers]
        return [*lines, *(f"the login at {server.place}" for server in self.tokens)]


async def kept_of(bench: Workbench, sources: Sequence[Source], names: Sequence[str] = ()) -> Kept:
    """What is kept of sources, which need not be connected, and of toolkits and servers by name. Raises `RecordError`."""
    if not (bench.data_dir / "anykit.sqlite3").exists():
        return Kept()
    offered = [*names, *(toolkit.spec().name for source in sources for toolkit in source.toolkits)]
    configured = await bench.configurations.shown()
    told = await bench.told.names()
    tokens: list[Any] = []
    if any(source.kind == "mcp" for source in sources):
        from anykit.sources.mcp.source import McpSource  # noqa: PLC0415 - only those who use MCP pay for it
        from anykit.sources.mcp.vault import SCOPE, Drawer  # noqa: PLC0415 - as above

        names = await bench.secrets.names(SCOPE)
        tokens = [
            source.provider.server
            for source in sources
            if isinstance(source.provider, McpSource) and Drawer(bench.secrets, source.provider.server).name in names
        ]
    return Kept(
        tuple(name for name in dict.fromkeys(offered) if name in configured),
        tuple(name for name in dict.fromkeys([*names, *(source.name for source in sources)]) if name in told),
        tuple(tokens),
    )


async def forget(bench: Workbench, kept: Kept) -> None:
    """Drop it. Raises `RecordError`."""
    for name in kept.toolkits:
        await bench.configurations.forget(HOST, name)
    for name in kept.servers:
        await bench.told.forget(name)
    if kept.tokens:
        from anykit.sources.mcp.vault import Drawer  # noqa: PLC0415 - as above

        for server in kept.tokens:
            await Drawer(bench.secrets, server).clear()
