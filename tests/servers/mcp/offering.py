"""A workbench put together by hand whose sessions watch resources and complete arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anykit.capabilities import CapabilityContext, Completing, InvalidInput, JsonObject, Subscribable
from anykit.runtime import Caller, Session, Source
from anykit.testing import MemoryProvider
from runtime_parts import Bench


class Offering(Session):
    """One caller's verbs, with two more."""

    async def watch(self, uri: str, callback: Callable[[str], None]) -> Callable[[], None]:
        for descriptor, provider, original in await self._resources():
            if descriptor.id == uri and isinstance(provider, Subscribable):
                return await provider.subscribe_resource(original, lambda _: callback(uri))
        raise InvalidInput(f"no resource {uri!r}")

    async def complete(
        self, reference: str, argument: str, value: str, arguments: JsonObject | None = None
    ) -> tuple[Sequence[str], bool]:
        context = CapabilityContext(principal=self.caller.principal, metadata={"arguments": arguments})
        for _, _, provider in self._catalog.snapshot.prompts:
            if isinstance(provider, Completing):
                return await provider.complete(reference, argument, value, context)
        raise InvalidInput(f"nothing to complete for {reference!r}")


class Offered(Bench):
    """Gives such sessions, over providers in memory."""

    def __init__(self, *providers: MemoryProvider) -> None:
        super().__init__(*(Source(f"memory{index}", "memory", one) for index, one in enumerate(providers)))

    def session(self, id: str | None = None, *, principal: str = "p", face: str = "a2e") -> Session:
        caller = Caller(principal, face, id)
        return Offering(caller, catalog=self.catalog, scopes=self.scopes, executor=self.executor)
