"""An MCP server as a provider: tools are invocables, resources and prompts stay what they are.

The last known catalogue is kept while the server is away; using it then says that it is away, at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeVar

from anykit.capabilities import (
    CapabilityError,
    Invocable,
    JsonObject,
    LogLevel,
    PromptProvider,
    ResourceProvider,
    State,
    Unavailable,
)
from anykit.sources.connection import CLOSE_TIMEOUT, Backoff, Connection, explain

from .connecting import Connector, begin_import
from .credentials import Refused
from .mending import Report
from .providers import LIST_TIMEOUT, McpPrompts, McpResources, McpTool
from .servers import McpServer, Offers
from .vault import Vault

if TYPE_CHECKING:
    from .link import McpLink

log = logging.getLogger("anykit.sources.mcp")

REFRESH_PAUSE = 0.05
"""Seconds between two lists that notifications cause, however many come."""
SDK_SECONDS = 60.0
"""What importing the SDK may take on a machine that has other things to do."""
LOG_LINES = 200
KINDS = ("tools", "resources", "prompts")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that a server listed and that is not offered as it is, with the reason."""

    kind: str
    """`tools`, `resources`, `templates` or `prompts`."""
    name: str
    reason: str


class McpSource:
    """A provider of what one MCP server has.

    `offers` is what the server may ask us for. `vault` keeps OAuth tokens; without one only a client with credentials of
    its own can log in, for as long as the process lives. Used on one event loop.
    """

    def __init__(
        self,
        server: McpServer,
        *,
        offers: Offers | None = None,
        vault: Vault | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        self.server = server
        self.name = server.name
        self.offers = offers or Offers()
        self._connector = Connector(server, self.offers, self, vault)
        self._connection: Connection[McpLink] = Connection(
            server.name,
            self._open,
            # Its own deadline is in `_open`: importing the SDK is none of the server's time.
            connect_timeout=server.connect_timeout + SDK_SECONDS,
            close_timeout=CLOSE_TIMEOUT,
            backoff=backoff,
        )
        self._connection.subscribe(self._changed)
        self._started = False
        self._callbacks: list[Callable[[], None]] = []
        self._tools: tuple[McpTool, ...] = ()
        self._listed: frozenset[str] = frozenset()
        self._resources = McpResources(self)
        self._prompts = McpPrompts(self)
        self._left_out: dict[str, tuple[LeftOut, ...]] = {}
        self._dirty = {kind: asyncio.Event() for kind in KINDS}
        self._watched: dict[str, list[Callable[[str], None]]] = {}
        self._log: deque[str] = deque(maxlen=LOG_LINES)
        self._described: JsonObject = {}
        self._offered: tuple[str, ...] = ()
        self._noise = 0

    def __repr__(self) -> str:
        return f"<McpSource {self.name} {self.state.status}>"

    # CapabilityProvider

    def invocables(self) -> Sequence[Invocable]:
        """The server's tools, as last listed."""
        return self._tools

    def resources(self) -> Sequence[ResourceProvider]:
        """Its resources, as one provider; none before it said that it has any."""
        return (self._resources,) if "resources" in self._offered else ()

    def prompts(self) -> Sequence[PromptProvider]:
        """Its prompts, as one provider; none before it said that it has any."""
        return (self._prompts,) if "prompts" in self._offered else ()

    # Connected

    @property
    def state(self) -> State:
        """How the connection is.

        `detail` has what is known of the server: `protocol`, `server`, `instructions`, `left_out`, `noise`, and `needs`
        (`login`, `credentials`, `permission`) where it did not let us in.
        """
        if not self._started:
            return State("connecting", "not started")
        state = self._connection.state
        detail = dict(self._described)
        if left_out := self.left_out:
            detail["left_out"] = {f"{one.kind}/{one.name}": one.reason for one in left_out}
        link = self.link
        if noise := self._noise + (0 if link is None else link.noise):
            detail["noise"] = noise
        if isinstance(error := self._connection.error, Refused) and state.status != "ready":
            detail["needs"] = error.needs
        return replace(state, detail=detail) if detail else state

    async def start(self) -> None:
        """Begin to connect."""
        if not self._started:
            self._started = True
            begin_import()
            self._connection.start()

    async def close(self) -> None:
        """End the session, and the child with everything that it started."""
        self._started = True
        await self._connection.close()
        self._changed()

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back when the state or what is offered changed."""
        self._callbacks.append(callback)

        def unsubscribe() -> None:
            with contextlib.suppress(ValueError):
                self._callbacks.remove(callback)

        return unsubscribe

    def _changed(self) -> None:
        for callback in list(self._callbacks):
            try:
                callback()
            except Exception:
                log.exception("whoever watches %s broke", self.name)

    # what there is to see

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """What of the last lists is not offered as it was listed."""
        return tuple(one for kind in self._left_out.values() for one in kind)

    @property
    def idle(self) -> tuple[str, ...]:
        """Patterns of `allow` and `deny` that match nothing that the server lists: a silent rule is often a misspelt one."""
        rules = [one for one in (*self.server.allow, *self.server.deny) if one != "*"]
        return tuple(one for one in rules if not any(fnmatchcase(name, one) for name in self._listed))

    @property
    def stderr(self) -> str:
        """The end of what its child wrote to stderr, also of one that is gone; declared variables are cut out."""
        return self._connector.stderr

    @property
    def log(self) -> tuple[str, ...]:
        """The last log lines of the server that belong to no call."""
        return tuple(self._log)

    @property
    def starts(self) -> int:
        """How often it tried to connect."""
        return self._connection.starts

    @property
    def pid(self) -> int | None:
        """Its child, while there is one."""
        return self._connector.pid

    # Watcher

    def list_changed(self, kind: str) -> None:
        """See `Watcher`."""
        self._dirty[kind].set()

    def resource_updated(self, uri: str) -> None:
        """See `Watcher`. A subscription also hears of what lies below its URI."""
        for watched, callbacks in list(self._watched.items()):
            if uri == watched or uri.startswith(watched.rstrip("/") + "/"):
                for callback in list(callbacks):
                    try:
                        callback(uri)
                    except Exception:
                        log.exception("whoever watches a resource of %s broke", self.name)

    def logged(self, level: LogLevel, text: str) -> None:
        """See `Watcher`."""
        self._log.append(f"{level}: {text}")

    # Home

    @property
    def link(self) -> McpLink | None:
        """The session, while there is one."""
        return self._connection.current

    async def call(self, work: Callable[[McpLink], Awaitable[T]], *, repeatable: bool = False) -> T:
        """Do `work` with the session, once there is one. Raises `CapabilityError`; see `Connection.call`."""
        await self.start()
        return await self._connection.call(work, repeatable=repeatable)

    def report(self, kind: str, reports: Sequence[Report]) -> None:
        """Keep, and tell once, what of a list is not offered as it was listed."""
        left_out = tuple(LeftOut(kind, name, reason) for name, reason in reports)
        for one in left_out:
            if one not in self._left_out.get(kind, ()):
                log.warning("%s: %s %s: %s", self.name, kind, one.name or "list", one.reason)
        self._left_out[kind] = left_out

    async def watch(self, uri: str, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call back when the resource changes, over all sessions to come, until the returned function is called.

        Raises `ExecutionFailed` where the server refuses.
        """
        callbacks = self._watched.setdefault(uri, [])
        callbacks.append(callback)

        def stop() -> None:
            with contextlib.suppress(ValueError):
                callbacks.remove(callback)
            if not callbacks and self._watched.get(uri) is callbacks:
                del self._watched[uri]
                if (link := self.link) is not None:
                    link.forget(uri)

        if len(callbacks) == 1:
            try:
                await self.call(lambda link: link.subscribe(uri), repeatable=True)
            except Unavailable:
                pass  # the next session begins with it
            except BaseException:
                stop()
                raise
        return stop

    # a session

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[McpLink]:
        """Connect, open the session, list the tools: one deadline for all of it. Raises `CapabilityError`."""
        limit = asyncio.timeout(self.server.connect_timeout)
        try:
            async with limit, AsyncExitStack() as stack:
                try:
                    link = await self._connector.connect(stack, limit)
                    self._dirty["tools"].clear()
                    await self._load_tools(link)
                finally:  # ending a child has bounds of its own
                    with contextlib.suppress(RuntimeError):  # it is expiring
                        limit.reschedule(None)
                self._described = link.described()
                self._offered = tuple(kind for kind in KINDS if link.has(kind))
                beside = [asyncio.create_task(self._refresh(kind, link)) for kind in self._offered]
                beside.append(asyncio.create_task(self._subscribe(link)))
                stack.push_async_callback(_cancelled, beside)
                try:
                    yield link
                finally:
                    self._noise += link.noise
        except TimeoutError:
            if not limit.expired():
                raise
            raise Unavailable(f"no answer within {self.server.connect_timeout:g} s") from None

    async def _subscribe(self, link: McpLink) -> None:
        """Watch what was watched before."""
        for uri in list(self._watched):
            with contextlib.suppress(CapabilityError):
                await link.subscribe(uri)

    async def _refresh(self, kind: str, link: McpLink) -> None:
        """List again what changed, never twice at a time, and tell where it is different now.

        Resources and prompts are also listed as the session begins: what is known is what there is while it is away.
        """
        if kind != "tools":
            self._dirty[kind].set()
        while True:
            await self._dirty[kind].wait()
            self._dirty[kind].clear()
            try:
                async with asyncio.timeout(LIST_TIMEOUT):
                    if await self._load(kind, link):
                        self._changed()
            except (CapabilityError, TimeoutError) as error:
                log.warning("%s: the %s could not be listed: %s", self.name, kind, explain(error))
            await asyncio.sleep(REFRESH_PAUSE)

    async def _load(self, kind: str, link: McpLink) -> bool:
        match kind:
            case "tools":
                return await self._load_tools(link)
            case "prompts":
                return await self._prompts.prompts.load(link)
            case _:
                changed = await self._resources.resources.load(link)
                return await self._resources.templates.load(link) or changed

    async def _load_tools(self, link: McpLink) -> bool:
        listed, reports = await link.tools()
        known = {tool.spec.name: tool for tool in self._tools}
        tools: dict[str, McpTool] = {}
        look = self.server.transforms
        seen: set[str] = set()
        for index, tool in enumerate(listed):
            if tool.name in seen:
                reports.append((tool.name, "the server lists that name twice"))
            elif self.server.offers(tool.name) and (
                look is None or look.offers(link.spec_of(tool))  # tags are known by now only
            ):
                said = None if look is None else look.of(tool.name)
                made = McpTool(link.spec_of(tool), self, said)
                name = made.spec.name
                if name in tools:
                    reports.append((tool.name, f"another of its tools is called {name} already"))
                else:
                    old = known.get(name)
                    tools[name] = old if old is not None and old.same(made) else made
            seen.add(tool.name)
            if index % 200 == 199:
                await asyncio.sleep(0)  # thousands of tools leave the others their turn
        before, self._tools = self._tools, tuple(tools.values())
        self._listed = frozenset(seen)
        self.report("tools", reports)
        return before != self._tools


async def _cancelled(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
