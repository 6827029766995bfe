"""One caller's side of a connection: its verbs, what it watches, and what is told to it unasked."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, TypeVar

from anykit.capabilities import InvalidInput
from anykit.runtime import CatalogChanged, Change, Session, ToolkitEvent

from . import toolkits
from .bench import Bench, Gate, Limits
from .configuring import Place

log = logging.getLogger("anykit.mcp")

T = TypeVar("T")

PAUSE: Final = 0.05
"""Seconds in which changes are told as one."""

News: TypeAlias = tuple[Literal["tools", "resources", "prompts", "updated"], str]
"""What changed: a list, or one resource with its URI."""
Level: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LEVELS: Final[Sequence[Level]] = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


@dataclass(eq=False)
class View:
    """What handlers know of whom they answer. The SDK hands it to them as the `lifespan_context`.

    Args:
        bench: Gives the caller's verbs.
        limits: How much of everything.
        principal: Whom the caller stands for.
        session_id: Of a connection that has one; requests of MCP 2026-07-28 belong to their principal only.
        gate: Lets so many calls run; shared by all requests of one caller.
        place: Where it came in; None over lines.
    """

    bench: Bench
    limits: Limits
    principal: str
    session_id: str | None
    gate: Gate
    place: Place | None = None
    level: Level = "info"
    """From which on logs are told (2025-11-25 and before)."""
    tell: Callable[[News], Awaitable[None]] | None = None
    """Sends news to the client, once it is initialized."""

    def __post_init__(self) -> None:
        self._session: Session | None = None
        self._watch: Watch | None = None
        self._watched: dict[str, Callable[[], None]] = {}

    @property
    def session(self) -> Session:
        """The caller's verbs."""
        if self._session is None:
            self._session = self.bench.session(principal=self.principal, face="mcp", id=self.session_id)
        return self._session

    def without_session(self) -> None:
        """The caller turned out to speak MCP 2026-07-28: it is its principal."""
        if self._session is None:
            self.session_id = None

    # news

    async def begin(self, tell: Callable[[News], Awaitable[None]]) -> None:
        """Tell of changes from now on."""
        if self._watch is None:
            self.tell = tell
            self._watch = Watch(self.session, tell)
            await self._watch.start()

    async def watch(self, uri: str) -> None:
        """Tell of changes of one resource. Raises `InvalidInput` where there is none, `LookupError` for too many."""
        if uri in self._watched:
            return
        if len(self._watched) >= self.limits.watched:
            raise LookupError(f"more than {self.limits.watched} resources are watched already")
        self._watched[uri] = await watch_resource(self.session, uri, self._updated)

    def unwatch(self, uri: str) -> None:
        """Tell of it no more."""
        if (undo := self._watched.pop(uri, None)) is not None:
            undo()

    def _updated(self, uri: str) -> None:
        if self.tell is not None:
            spawn(self.tell(("updated", uri)), "mcp updated")

    def close(self) -> None:
        """The caller is gone: what was configured for its session alone closes."""
        if self._watch is not None:
            self._watch.stop()
        for uri in list(self._watched):
            self.unwatch(uri)
        if self._session is not None:
            self._session.close()


async def watch_resource(session: Session, uri: str, callback: Callable[[str], None]) -> Callable[[], None]:
    """Call back on each change of a resource, a toolkit's state among them. Raises `InvalidInput`."""
    if uri.startswith(toolkits.PREFIX):
        if toolkits.read(session, uri) is None:
            raise InvalidInput(f"no toolkit at {uri[:512]!r}")

        def heard(change: Change) -> None:
            if isinstance(change, ToolkitEvent) and toolkits.uri_of(change.toolkit) == uri and change.kind == "status":
                callback(uri)

        return session.subscribe(heard)
    return await session.watch(uri, callback)


class Watch:
    """Finds out which of a caller's lists changed, and tells of each once."""

    def __init__(self, session: Session, tell: Callable[[News], Awaitable[None]]) -> None:
        self._session = session
        self._tell = tell
        self._unsubscribe: Callable[[], None] | None = None
        self._before: Mapping[str, object] = {}
        self._looking: asyncio.Task[None] | None = None
        self._again = False

    async def start(self) -> None:
        """Look at the lists as they are, then wait for changes."""
        self._unsubscribe = self._session.subscribe(self._changed)
        before = await self._lists()
        # What changed meanwhile may be in there already, and not in what the client was given: all is told then.
        self._before = dict.fromkeys(before) if self._again else before
        if self._again:
            self._looking = spawn(self._look(), "mcp changes")

    def stop(self) -> None:
        """End it."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        if self._looking is not None:
            self._looking.cancel()

    def _changed(self, change: Change) -> None:
        if not isinstance(change, CatalogChanged) and change.kind != "status":
            return
        self._again = True
        if self._before and (self._looking is None or self._looking.done()):
            self._looking = spawn(self._look(), "mcp changes")

    async def _look(self) -> None:
        while self._again:
            self._again = False
            await asyncio.sleep(PAUSE)  # several changes at once are one piece of news
            now = await self._lists()
            before, self._before = self._before, now
            for kind in ("tools", "resources", "prompts"):
                if now[kind] != before[kind]:
                    await self._tell((kind, ""))

    async def _lists(self) -> dict[str, object]:
        session = self._session
        resources = await session.resources()
        templates = await session.templates()
        prompts = await session.prompts()
        return {
            "tools": {entry.tool.name: entry.tool.spec for entry in session.entries() if not entry.tool.deferred},
            "resources": (resources, templates, toolkits.descriptors(session)),
            "prompts": prompts,
        }


_tasks: set[asyncio.Task[Any]] = set()


def spawn(work: Coroutine[Any, Any, T] | Awaitable[T], name: str) -> asyncio.Task[T]:
    """Run something beside; what it raises is logged."""

    async def run() -> T:
        return await work

    task = asyncio.get_running_loop().create_task(run(), name=name)
    _tasks.add(task)
    task.add_done_callback(_ended)
    return task


def _ended(task: asyncio.Task[Any]) -> None:
    _tasks.discard(task)
    with contextlib.suppress(asyncio.CancelledError):
        if (error := task.exception()) is not None:
            log.error("%s broke", task.get_name(), exc_info=error)
