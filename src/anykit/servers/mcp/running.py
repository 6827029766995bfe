"""What runs for requests, in tasks of their own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any, TypeVar

log = logging.getLogger("anykit.mcp")

T = TypeVar("T")


class Running:
    """Awaits work so that it is cancelled once, as asyncio does it, and knows what is still cleaning up.

    The SDK cancels through a scope that cancels again at every wait, which would cut every cleanup short.
    """

    def __init__(self) -> None:
        self._left: set[asyncio.Task[Any]] = set()

    async def through(self, work: Awaitable[T], name: str) -> T:
        """What `work` gives. Being cancelled cancels it, and does not wait for its end."""

        async def run() -> T:
            return await work

        task = asyncio.get_running_loop().create_task(run(), name=name)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._left.add(task)
            task.add_done_callback(self._ended)
            task.cancel()
            raise

    async def settle(self, seconds: float) -> None:
        """Wait for what was cancelled."""
        if self._left:
            await asyncio.wait(set(self._left), timeout=seconds)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._left.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.debug("a cancelled call ended with %s", type(error).__name__)
