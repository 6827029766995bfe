"""Changes, as a server of MCP 2026-07-28 tells them: subscriptions, opened anew where they end.

There is no replay, so what is opened again is taken as changed. Imports the SDK; comes in with `session.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, Protocol

from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, Subscription, listen
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND

from anykit.capabilities import CapabilityError, LogLevel
from anykit.sources.hostile import clean_text

from .calls import Call, InFlight
from .session import Session

log = logging.getLogger("anykit.sources.mcp")

LISTEN_SECONDS = 10.0
"""What a server has to accept a subscription."""
PAUSE = 0.5
"""Seconds before a subscription that ended is opened anew; twice as long after each failure."""
MAX_PAUSE = 30.0


class Watcher(Protocol):
    """Whoever is told what a server says unasked."""

    def list_changed(self, kind: str) -> None:
        """`tools`, `resources` or `prompts` are others now."""
        ...

    def resource_updated(self, uri: str) -> None:
        """A resource that was subscribed to, or one below it, has other contents."""
        ...

    def logged(self, level: LogLevel, text: str) -> None:
        """A log line that belongs to no call."""
        ...


class Listener:
    """The subscriptions of one session."""

    def __init__(self, name: str, session: Session, watcher: Watcher) -> None:
        self._name = name
        self._session = session
        self._watcher = watcher
        self._uris: set[str] = set()
        self._uris_changed = asyncio.Event()

    def add(self, uri: str) -> None:
        """Hear of a resource from now on."""
        self._uris.add(uri)
        self._uris_changed.set()

    def remove(self, uri: str) -> None:
        """Hear of it no more."""
        self._uris.discard(uri)
        self._uris_changed.set()

    async def hear_changes(self, kinds: Sequence[str]) -> None:
        """Tell of lists that change, until cancelled or refused."""
        wanted = {f"{kind}_list_changed": True for kind in kinds}
        pause = PAUSE
        first = True
        while True:
            async with AsyncExitStack() as stack:
                events = await self._opened(stack, **wanted)
                if isinstance(events, str):
                    log.info("%s tells no changes: %s", self._name, events)
                    return
                if events is None:
                    pause = min(pause * 2, MAX_PAUSE)
                else:
                    pause = PAUSE
                    if not first:
                        for kind in kinds:
                            self._watcher.list_changed(kind)
                    first = False
                    await self._hear(events)
            await asyncio.sleep(pause)

    async def hear_updates(self) -> None:
        """Tell of resources that somebody watches, with another subscription for each other set of them."""
        pause = PAUSE
        missed: set[str] = set()
        while True:
            while not self._uris:
                self._uris_changed.clear()
                await self._uris_changed.wait()
            self._uris_changed.clear()
            wanted = sorted(self._uris)
            async with AsyncExitStack() as stack:
                events = await self._opened(stack, resource_subscriptions=wanted)
                if isinstance(events, str):
                    log.info("%s tells no updates: %s", self._name, events)
                    return
                if events is None:
                    pause = min(pause * 2, MAX_PAUSE)
                else:
                    pause = PAUSE
                    for uri in missed & self._uris:
                        self._watcher.resource_updated(uri)
                    missed.clear()
                    if await self._hear_until_others_are_wanted(events):
                        continue
                    missed.update(wanted)
            await asyncio.sleep(pause)

    async def _hear_until_others_are_wanted(self, events: Subscription) -> bool:
        """Whether others are wanted; else the subscription has ended."""
        hearing = asyncio.create_task(self._hear(events))
        changed = asyncio.create_task(self._uris_changed.wait())
        try:
            await asyncio.wait({hearing, changed}, return_when=asyncio.FIRST_COMPLETED)
            return changed.done()
        finally:
            hearing.cancel()
            changed.cancel()
            await asyncio.gather(hearing, changed, return_exceptions=True)

    async def _hear(self, events: Subscription) -> None:
        with contextlib.suppress(RuntimeError):  # SubscriptionLost
            async for event in events:
                match event:
                    case ResourceUpdated(uri):
                        self._watcher.resource_updated(uri)
                    case ResourcesListChanged():
                        self._watcher.list_changed("resources")
                    case PromptsListChanged():
                        self._watcher.list_changed("prompts")
                    case _:
                        self._watcher.list_changed("tools")

    async def _opened(self, stack: AsyncExitStack, **wanted: Any) -> Subscription | str | None:
        """A subscription; None where it failed for now, a reason where it will for ever."""
        call = Call()
        try:
            with InFlight().flying(call):
                async with asyncio.timeout(LISTEN_SECONDS):
                    return await stack.enter_async_context(listen(self._session, **wanted))
        except MCPError as error:
            if call.failure is None and error.code in (METHOD_NOT_FOUND, INVALID_PARAMS):
                return clean_text(error.message, 200)
            return None
        except (TimeoutError, RuntimeError, CapabilityError):
            return None
