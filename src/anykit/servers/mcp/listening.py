"""What one caller is told of, for the SDK's streams of changes (MCP 2026-07-28). Imports the SDK."""

from __future__ import annotations

import logging
from collections.abc import Callable

import mcp_types as types
from mcp.server.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from anykit.capabilities import CapabilityError
from anykit.runtime import Session

from .view import News, Watch, watch_resource

log = logging.getLogger("anykit.mcp")


class Bus:
    """What one caller is told of, as the SDK's bus of events."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._listener: Callable[[ServerEvent], None] | None = None
        self._watch: Watch | None = None
        self._undo: list[Callable[[], None]] = []

    async def start(self, wanted: types.SubscriptionFilter) -> None:
        """Look at what is listed now, so that changes can be told."""
        if wanted.tools_list_changed or wanted.resources_list_changed or wanted.prompts_list_changed:
            self._watch = Watch(self._session, self._tell)
            await self._watch.start()
        for uri in dict.fromkeys(wanted.resource_subscriptions or []):
            try:
                self._undo.append(await watch_resource(self._session, uri, self._updated))
            except CapabilityError as error:
                log.info("a resource is not watched: %s", error.message[:200])

    def stop(self) -> None:
        """End it."""
        if self._watch is not None:
            self._watch.stop()
        for undo in self._undo:
            undo()

    async def publish(self, event: ServerEvent) -> None:
        """See `SubscriptionBus`."""
        if self._listener is not None:
            self._listener(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """See `SubscriptionBus`."""
        self._listener = listener

        def unsubscribe() -> None:
            self._listener = None

        return unsubscribe

    def _updated(self, uri: str) -> None:
        if self._listener is not None:
            self._listener(ResourceUpdated(uri=uri))

    async def _tell(self, news: News) -> None:
        match news:
            case ("tools", _):
                await self.publish(ToolsListChanged())
            case ("resources", _):
                await self.publish(ResourcesListChanged())
            case ("prompts", _):
                await self.publish(PromptsListChanged())
            case (_, uri):
                self._updated(uri)
