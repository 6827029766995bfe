"""A peer's life: one task owns the link, enters and exits it; everyone else only borrows it.

            ┌────────────── lost: again, after a pause ──────────────┐
            v                                                         │
    connecting ──entered──> ready ────────────────────────────────────┤
            │                 │                                       │
            └──did not──> failed ──pause (grows, with jitter)──> tries again, still called failed
                              │
         close() at any time ─┴─> closed

What fails in the owner stays in the owner: a caller sees `Unavailable` with the root cause and is never cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, cast

from anykit.capabilities import CapabilityError, ConnectionStatus, State, Unavailable

log = logging.getLogger("anykit.sources")

CONNECT_TIMEOUT = 15.0
"""Seconds from the first byte to a usable link."""
CLOSE_TIMEOUT = 5.0
"""Seconds that a link may take to end by itself."""
PATIENCE = 1.0
"""Seconds that a caller waits for another try at a peer known to have failed; and the least between tries that callers cause."""
STABLE = 5.0
"""A link that lived for so many seconds was a good one: pauses begin small again."""
REASON_LENGTH = 500
"""Characters of a reason that are kept."""


class Link(Protocol):
    """What an owner holds while its peer is there."""

    @property
    def ended(self) -> asyncio.Future[str]:
        """Done once the peer is lost, with the reason. What waits on the link has been told before."""
        ...


L = TypeVar("L", bound=Link)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses between tries, in seconds: from `first` to `most`, each twice the last, give or take a half."""

    first: float = 0.2
    most: float = 30.0

    def pause(self, failures: int, chance: float) -> float:
        """The pause after so many failures in a row; `chance` is in [0, 1)."""
        return min(self.first * 2 ** min(failures - 1, 32), self.most) * (0.5 + chance)


class Connection(Generic[L]):
    """Keeps a link to one peer. Used on one event loop; made anywhere, alive from `start` to `close`."""

    def __init__(
        self,
        name: str,
        open: Callable[[], AbstractAsyncContextManager[L]],
        *,
        connect_timeout: float = CONNECT_TIMEOUT,
        close_timeout: float = CLOSE_TIMEOUT,
        backoff: Backoff | None = None,
        clock: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        self.starts = 0
        """How often it tried to connect."""
        self._open = open
        self._connect_timeout = connect_timeout
        self._close_timeout = close_timeout
        self._backoff = backoff or Backoff()
        self._clock = clock
        self._chance = chance
        self._state = State("connecting", "not started", clock())
        self._link: L | None = None
        self._error: Exception | None = None
        self._owner: asyncio.Task[None] | None = None
        self._closing = False
        self._trying_since: float | None = None
        self._failed_at = 0.0
        self._due = 0.0
        self._sooner = asyncio.Event()
        self._verdict = asyncio.Event()
        self._borrowed: set[asyncio.Timeout] = set()
        self._callbacks: list[Callable[[], None]] = []

    # what there is to see

    @property
    def state(self) -> State:
        """How it is now."""
        return self._state

    @property
    def current(self) -> L | None:
        """The link, while there is one."""
        return self._link

    @property
    def error(self) -> Exception | None:
        """What the last try ended with, where it failed."""
        return self._error

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back on every change of state, until the returned function is called."""
        self._callbacks.append(callback)

        def unsubscribe() -> None:
            with contextlib.suppress(ValueError):
                self._callbacks.remove(callback)

        return unsubscribe

    def changed(self) -> None:
        """Tell the subscribers that something is different (the state, or what the peer offers)."""
        for callback in list(self._callbacks):
            try:
                callback()
            except Exception:
                log.exception("whoever watches %s broke", self.name)

    # its life

    def start(self) -> None:
        """Begin to connect. Starting twice, or after `close`, does nothing."""
        if self._owner is None and not self._closing:
            self._set("connecting")
            self._owner = asyncio.create_task(self._own(), name=f"anykit-link-{self.name}")

    async def settled(self) -> State:
        """Wait for a verdict: ready, failed or closed."""
        while self._state.status == "connecting":
            await self._verdict.wait()
        return self._state

    async def close(self) -> None:
        """End the link and its task, bounded in time. Closing twice is allowed."""
        self._closing = True
        owner = self._owner
        if owner is not None and not owner.done():
            if self._link is not None:
                lose(self._link, "closed")
            else:
                owner.cancel()
            await asyncio.wait({owner}, timeout=self._close_timeout + 1.0)
            if not owner.done():
                owner.cancel()
                await asyncio.wait({owner}, timeout=1.0)
            if not owner.done():
                log.error("%s does not end; it is left behind", self.name)
        if self._state.status != "closed":
            self._set("closed", "closed")

    # borrowing the link

    async def link(self) -> L:
        """Give the link; wait for one that is being made.

        Raises `Unavailable` (nothing sent) once the try has failed, or at once where it is known to have failed, a short
        second try excepted. How long a caller waits is its own business: it brings its own deadline.
        """
        if (link := self._usable()) is not None:
            return link
        self.start()
        if self._state.status == "failed" and (seconds := self._worth_a_wait()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._verdict.wait()
        while (link := self._usable()) is None and self._state.status in ("connecting", "ready"):
            await self._verdict.wait()
        if link is None:
            raise self._unavailable()
        return link

    async def call(self, work: Callable[[L], Awaitable[R]], *, repeatable: bool = False) -> R:
        """Do `work` with the link.

        Once the link is lost it raises `Unavailable`: whether the peer did it is not known (`sent`). The work is done a
        second time, on a new link, only where the first try sent nothing or repeating does no harm (`repeatable`).
        """
        link = await self.link()
        try:
            return await self._lend(link, work)
        except Unavailable as error:
            if not link.ended.done() or (error.sent and not repeatable) or self._closing:
                raise
        return await self._lend(await self.link(), work)

    async def _lend(self, link: L, work: Callable[[L], Awaitable[R]]) -> R:
        # A timeout without an end, which goes off when the link is lost: it cancels and un-cancels as one should.
        lost = asyncio.timeout(None)
        try:
            async with lost:
                self._borrowed.add(lost)
                try:
                    return await work(link)
                finally:
                    self._borrowed.discard(lost)
        except TimeoutError:
            if not lost.expired():
                raise
            why = link.ended.result() if link.ended.done() else "connection lost"
            raise Unavailable(f"{self.name}: {why}", sent=True) from None

    def _usable(self) -> L | None:
        """The link, unless it is lost and its owner is about to notice."""
        return None if self._link is None or self._link.ended.done() else self._link

    def _worth_a_wait(self) -> float:
        """Seconds in which another try may have a verdict; 0 where waiting is in vain."""
        now = asyncio.get_running_loop().time()
        if self._trying_since is not None:
            return self._trying_since + PATIENCE - now
        if now - self._failed_at >= PATIENCE:
            self._sooner.set()
            return PATIENCE
        pause = max(self._due - now, 0.0)
        return pause + PATIENCE if pause <= PATIENCE / 2 else 0.0

    def _unavailable(self) -> Unavailable:
        state = self._state
        if state.status == "closed":
            return Unavailable(f"{self.name} is closed")
        detail = {} if state.retry_at is None else {"retry_at": state.retry_at}
        return Unavailable(f"{self.name} is not available: {state.reason}", detail=detail)

    # the owner

    async def _own(self) -> None:
        failures = 0
        try:
            while not self._closing:
                reason, lived = await self._live()
                if self._closing:
                    break
                failures = 1 if lived is not None and lived >= STABLE else failures + 1
                pause = self._backoff.pause(failures, self._chance())
                # After a loss, those who come wait for the new link, unless losing has become a habit.
                known = lived is None or pause > PATIENCE
                await self._rest("failed" if known else "connecting", reason, pause)
        finally:
            self._set("closed", "closed")

    async def _rest(self, status: ConnectionStatus, reason: str, pause: float) -> None:
        loop = asyncio.get_running_loop()
        self._failed_at = loop.time()
        self._due = self._failed_at + pause
        self._sooner.clear()
        self._set(status, reason, retry_at=self._clock() + pause)
        if status == "failed":
            log.warning("%s failed: %s; trying again in %.1f s", self.name, reason, pause)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._sooner.wait()

    async def _live(self) -> tuple[str, float | None]:
        """Enter the link, hold it until it is lost, exit it. Gives why it ended and how long it lived, if it did."""
        loop = asyncio.get_running_loop()
        self.starts += 1
        self._trying_since = loop.time()
        born: float | None = None
        reason = ""
        limit = asyncio.timeout(self._connect_timeout)
        try:
            async with limit:
                async with self._open() as link:
                    limit.reschedule(None)
                    born = loop.time()
                    self._rise(link)
                    try:
                        reason = await asyncio.shield(link.ended)
                    finally:
                        self._fall(link, reason or "closed")
                        limit.reschedule(loop.time() + self._close_timeout)
        except (Exception, asyncio.CancelledError, BaseExceptionGroup) as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise asyncio.CancelledError from None
            # A CancelledError that nobody asked for is some scope gone astray in the link: a failure like another.
            if born is not None:
                log.warning("%s did not end well: %s", self.name, explain(error))
            elif limit.expired():
                reason = f"no answer within {self._connect_timeout:g} s"
                self._error = Unavailable(f"{self.name}: {reason}")
            else:
                reason = explain(error)
                self._error = _ordinary(error, reason)
        finally:
            self._trying_since = None
        return reason[:REASON_LENGTH] or "connection lost", None if born is None else loop.time() - born

    def _rise(self, link: L) -> None:
        self._trying_since = None
        self._link = link
        self._error = None
        self._set("ready")

    def _fall(self, link: L, reason: str) -> None:
        if self._link is link:
            self._link = None
        lose(link, reason)
        now = asyncio.get_running_loop().time()
        for lost in list(self._borrowed):
            with contextlib.suppress(RuntimeError):  # it ends just now
                lost.reschedule(now)
        self._set("closed" if self._closing else "connecting", reason)

    def _set(self, status: ConnectionStatus, reason: str = "", *, retry_at: float | None = None) -> None:
        reason = reason[:REASON_LENGTH]
        old = self._state
        since = old.since if old.status == status and old.reason != "not started" else self._clock()
        self._state = State(status, reason, since, retry_at)
        if status != "connecting":
            # Whoever waits gets this verdict; whoever comes later waits for the next.
            self._verdict.set()
            self._verdict = asyncio.Event()
        if self._state != old:
            self.changed()


def lose(link: Link, reason: str) -> None:
    """Declare a link lost, unless it is already."""
    if not link.ended.done():
        link.ended.set_result(reason)


def explain(error: BaseException) -> str:
    """The root causes of an error as one line: groups are flattened, equal causes named once."""
    texts: dict[str, None] = {}
    for leaf in _leaves(error):
        if isinstance(leaf, CapabilityError):
            texts[leaf.message] = None
        elif isinstance(leaf, OSError) and leaf.strerror:
            where = f": {leaf.filename!r}" if leaf.filename else ""
            texts[f"{leaf.strerror.lower()}{where}"] = None
        else:
            text = " ".join(str(leaf).split())
            texts[f"{type(leaf).__name__}: {text}" if text else type(leaf).__name__] = None
    return "; ".join(texts)[:REASON_LENGTH]


def _leaves(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    group = cast("BaseExceptionGroup[BaseException]", error)
    return [leaf for one in group.exceptions for leaf in _leaves(one)]


def _ordinary(error: BaseException, reason: str) -> Exception:
    """The error itself where it is one of the layer's, else one with its root cause."""
    leaves = _leaves(error)
    if len(leaves) == 1 and isinstance(leaves[0], CapabilityError):
        return leaves[0]
    return Unavailable(reason)
