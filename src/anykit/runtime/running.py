"""Which calls run, by the source of their tool: a source that goes is closed once the last of its calls has ended."""

from __future__ import annotations

import asyncio


class Calls:
    """The calls that run on one source, as it was when they began."""

    __slots__ = ("_over", "_waited", "count")

    def __init__(self) -> None:
        self.count = 0
        self._over: asyncio.Event | None = None
        self._waited = True

    def end(self) -> None:
        """One of them ended."""
        self.count -= 1
        if not self.count and self._over is not None:
            self._over.set()

    async def ended(self, timeout: float) -> bool:
        """Wait until none runs any more, at most `timeout` seconds; whether none does."""
        if not self.count or not self._waited:
            return not self.count
        self._over = asyncio.Event()
        try:
            async with asyncio.timeout(timeout):
                await self._over.wait()
        except TimeoutError:
            pass
        return not self.count

    def give_up(self) -> None:
        """Let whoever waits for them go on without them."""
        self._waited = False
        if self._over is not None:
            self._over.set()


class Running:
    """All calls that run. Used on the loop's thread only."""

    def __init__(self) -> None:
        self._sources: dict[str, Calls] = {}

    def begin(self, source: str) -> Calls:
        """A call begins on a source; `end` of what this gives is told when it is over."""
        calls = self._sources.get(source)
        if calls is None:
            calls = self._sources[source] = Calls()
        calls.count += 1
        return calls

    def part(self, source: str) -> Calls:
        """The calls that run on a source now; later ones of a source of that name are not among them."""
        return self._sources.pop(source, None) or Calls()
