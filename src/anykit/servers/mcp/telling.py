"""What a running call says, as MCP's notifications: in order, bounded, and before the answer. Imports the SDK."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import deque
from typing import Any, Final

from mcp.server.context import ServerRequestContext
from mcp_types import LoggingMessageNotification, LoggingMessageNotificationParams

from anykit.capabilities import Event, Log, Progress, Status

from .view import LEVELS, Level, View, spawn

WAITING: Final = 1000
"""Events of one call that wait to be sent; of more the oldest are dropped."""
LAST_WORDS: Final = 2.0
"""Seconds that the last events have before the answer goes out without them."""


class Teller:
    """Tells the client of one request what the call says.

    Args:
        context: Of the request.
        level: From which on logs are told; None tells none.
        name: Of the tool.
    """

    def __init__(self, context: ServerRequestContext[View, Any], level: Level | None, name: str) -> None:
        self._context = context
        self._from = len(LEVELS) if level is None else LEVELS.index(level)
        self._name = name
        self._events: deque[Progress | Log] = deque(maxlen=WAITING)
        self._sending: asyncio.Task[None] | None = None
        self._done = -math.inf
        self._closed = False

    def __call__(self, event: Event) -> None:
        """Take an event, on the loop's thread. Never waits."""
        if isinstance(event, Status):
            event = Log("info", event.message)
        if self._closed or not isinstance(event, Progress | Log):
            return
        if isinstance(event, Log) and LEVELS.index(event.level) < self._from:
            return
        self._events.append(event)
        if self._sending is None or self._sending.done():
            self._sending = spawn(self._send(), "mcp events")

    async def _send(self) -> None:
        while self._events:
            event = self._events.popleft()
            if isinstance(event, Log):
                await self._log(event)
            elif event.done > self._done and math.isfinite(event.done):
                self._done = event.done
                total = event.total if event.total is not None and math.isfinite(event.total) else None
                await self._context.session.report_progress(event.done, total, event.message or None)

    async def _log(self, event: Log) -> None:
        params = LoggingMessageNotificationParams(level=event.level, logger=self._name, data=event.message)
        await self._context.session.send_notification(
            LoggingMessageNotification(params=params), related_request_id=self._context.request_id
        )

    async def close(self) -> None:
        """Send what was said; nothing is heard any more."""
        self._closed = True
        if self._sending is not None and not self._sending.done():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORDS):
                    await asyncio.shield(self._sending)

    def drop(self) -> None:
        """Nobody listens any more."""
        self._closed = True
        self._events.clear()
        if self._sending is not None:
            self._sending.cancel()


class Switch:
    """Where a call's events go: a call that waits for an answer is gone on with in another request."""

    def __init__(self, teller: Teller) -> None:
        self.teller = teller

    def __call__(self, event: Event) -> None:
        """Hand an event on."""
        self.teller(event)
