"""The lives of the sources in a catalogue: they connect, make room for others, and close once their calls have ended."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from anykit.capabilities import CapabilityError, CapabilityProvider, Connected
from anykit.runtime import Catalog, Scopes, Source
from anykit.runtime.running import Calls, Running
from anykit.runtime.scopes import Renewal

log = logging.getLogger("anykit.workbench")

PATIENCE = 30.0
"""Seconds that the last calls of a source may take before it is closed under them."""


@runtime_checkable
class Deciding(Protocol):
    """A provider that will know later what it is: another source then takes its place."""

    def when_decided(self, decided: Callable[[Source], Awaitable[None]]) -> None:
        """Whom to tell."""
        ...


@dataclass(slots=True)
class Exchange:
    """A source that is ready to take the place of the one of its name."""

    source: Source
    renewals: list[Renewal] = field(default_factory=list[Renewal])
    gone: list[str] = field(default_factory=list[str])
    """Toolkits that the new one does not have."""
    connects: bool = True
    """Whether it has a connection of its own yet to begin."""

    @property
    def problems(self) -> tuple[str, ...]:
        """What of the toolkits' configurations does not do any more."""
        return tuple(problem for renewal in self.renewals for problem in renewal.problems)


class Lives:
    """Used on the loop's thread only."""

    def __init__(self, catalog: Catalog, scopes: Scopes, running: Running, *, connect_timeout: float) -> None:
        self._catalog = catalog
        self._scopes = scopes
        self._running = running
        self.connect_timeout = connect_timeout
        self._closing: dict[asyncio.Task[None], Calls] = {}
        self.closed = False

    async def connect(self, source: Source) -> None:
        """Let a source begin to connect; it reports by itself."""
        if source.disabled is not None or not isinstance(source.provider, Connected):
            return
        if isinstance(source.provider, Deciding):
            source.provider.when_decided(lambda made: self._decided(source, made))
        try:
            async with asyncio.timeout(self.connect_timeout):
                await source.provider.start()
        except Exception as error:  # one source never costs the others
            log.warning("source %s did not start", source.name, exc_info=error)
            why = error.message if isinstance(error, CapabilityError) else type(error).__name__
            if self._is_current(source):
                self._catalog.replace(replace(source, failed=f"it did not start: {why}"))

    async def _decided(self, asked: Source, made: Source) -> None:
        """A URL has said what it is: the real source takes the place of the question."""
        if self.closed or not self._is_current(asked):
            return
        real = replace(
            made,
            name=asked.name,
            required=asked.required,
            location=asked.location,
            allow=asked.allow,
            deny=asked.deny,
            tags=asked.tags,
        )
        if isinstance(real.provider, Connected):
            await real.provider.start()
        if self._is_current(asked):
            self._catalog.replace(real)
        elif isinstance(real.provider, Connected):
            await real.provider.close()

    def _is_current(self, source: Source) -> bool:
        known = self._catalog.snapshot.sources.get(source.name)
        return known is not None and known.provider is source.provider

    async def prepare(self, source: Source, stack: contextlib.AsyncExitStack) -> Exchange:
        """Get everything ready for a source that is to take the place of the one of its name.

        Toolkits of a new class are set up with the configurations that the old ones have. Nothing changes before `put`.
        """
        known = self._catalog.snapshot.sources[source.name]
        exchange = Exchange(source, connects=known.provider is not source.provider)
        classes = {toolkit.spec().name: toolkit for toolkit in source.toolkits} if source.disabled is None else {}
        for entry in self._catalog.snapshot.toolkits.values():
            if entry.source != source.name:
                continue
            toolkit = classes.get(entry.spec.name)
            if toolkit is None:
                exchange.gone.append(entry.name)
            elif toolkit is not entry.toolkit:
                fresh = replace(entry, toolkit=toolkit, spec=toolkit.spec())
                exchange.renewals.append(await stack.enter_async_context(self._scopes.renewing(fresh)))
        return exchange

    def put(
        self,
        exchanges: Sequence[Exchange],
        *,
        removed: Sequence[str] = (),
        added: Sequence[Source] = (),
        then: Callable[[list[Source]], None] | None = None,
    ) -> list[Source]:
        """Exchange, remove and add in one change of the catalogue; gives the added ones as they are called there.

        `then` is told them, and may change more of the catalogue in the same breath.
        """
        taken: list[Source] = []
        parted: list[tuple[Calls, CapabilityProvider | None]] = []
        gone = [name for exchange in exchanges for name in exchange.gone]
        known = self._catalog.snapshot
        gone += [entry.name for entry in known.toolkits.values() if entry.source in removed]
        with self._catalog.at_once():
            for exchange in exchanges:
                name = exchange.source.name
                old = known.sources[name].provider
                if old is not exchange.source.provider:
                    parted.append((self._running.part(name), old))
                self._catalog.replace(exchange.source)
            parted += [(self._running.part(name), self._catalog.remove(name).provider) for name in removed]
            if added:
                taken = self._catalog.add(*added)
            if then is not None:
                then(taken)
            for exchange in exchanges:
                for renewal in exchange.renewals:
                    renewal.swap()
            for toolkit in gone:
                self._scopes.withdraw(toolkit, "Toolkit was removed")
        for calls, provider in parted:
            self._retire(calls, provider)
        return taken

    def _retire(self, calls: Calls, provider: CapabilityProvider | None) -> None:
        if not isinstance(provider, Connected):
            return
        task = asyncio.get_running_loop().create_task(_drained(calls, provider))
        self._closing[task] = calls
        task.add_done_callback(lambda done: self._closing.pop(done, None))

    async def close(self) -> None:
        """Close every source, those too that still wait for their last calls."""
        self.closed = True
        for calls in self._closing.values():
            calls.give_up()
        if self._closing:
            await asyncio.wait(self._closing, timeout=PATIENCE)
        providers = [source.provider for source in self._catalog.snapshot.sources.values()]
        closing = [provider.close() for provider in providers if isinstance(provider, Connected)]
        await asyncio.gather(*closing, return_exceptions=True)


async def _drained(calls: Calls, provider: Connected) -> None:
    """Close a provider after its last call, or when the host ends."""
    try:
        await calls.ended(PATIENCE)
    finally:
        with contextlib.suppress(Exception):
            await provider.close()
