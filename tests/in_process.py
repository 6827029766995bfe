"""Real A2E hosts for the contracts: a workbench behind every way in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from anykit import Workbench
from anykit.servers.a2e import A2EHost, serve_connection
from anykit.transports import LineTransport, memory_pair


class InProcess:
    """A host in this process; `connect` makes a session in memory, as a target of `A2EClient` wants it."""

    def __init__(self, bench: Workbench) -> None:
        self.host = A2EHost(bench)
        self._serving: set[asyncio.Task[str]] = set()

    async def connect(self) -> LineTransport:
        ours, theirs = memory_pair()
        task = asyncio.create_task(serve_connection(self.host, ours))
        self._serving.add(task)
        return theirs

    async def close(self) -> None:
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)


@asynccontextmanager
async def in_process(*sources: object) -> AsyncGenerator[InProcess]:
    """A host that offers `sources`, until the end of the block."""
    async with Workbench(*sources) as bench:
        host = InProcess(bench)
        try:
            yield host
        finally:
            await host.close()
