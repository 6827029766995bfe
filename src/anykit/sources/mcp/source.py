"""An MCP server as a provider: tools are invocables, resources and prompts stay what they are.

The last known catalogue is kept while the server is away; using it then says that it is away, at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import logging
import uuid
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import urlsplit

from anykit.capabilities import (
    CapabilityContext,
    CapabilityError,
    ExecutionFailed,
    Fault,
    InvalidInput,
    Invocable,
    InvocableRequest,
    InvocableResult,
    InvocableSpec,
    JsonObject,
    LogLevel,
    Page,
    PromptContents,
    PromptDescriptor,
    PromptProvider,
    Question,
    ResourceContents,
    ResourceDescriptor,
    ResourceProvider,
    ResourceTemplate,
    State,
    Suspension,
    Unavailable,
)
from anykit.capabilities import outcomes as codes
from anykit.schema import is_json
from anykit.sources.connection import CLOSE_TIMEOUT, Backoff, Connection, explain
from anykit.transports import HttpClient, ProcessTransport, spawn

from .calls import Call
from .credentials import Credentials, Fixed, Refused
from .frames import unsendable
from .mending import Report
from .questions import prompt_arguments
from .rounds import Rounds
from .servers import Era, McpServer, Offers, Transport
from .vault import Forgetful, Vault

if TYPE_CHECKING:
    from .channel import Channel
    from .link import McpLink

log = logging.getLogger("anykit.sources.mcp")

LIST_TIMEOUT = 30.0
"""Seconds for all pages of a list."""
FRESH = 2.0
"""Seconds that a list of resources or prompts is believed, where its server does not tell of changes."""
QUICK = 5.0
"""Seconds for a list of which an earlier one is known."""
SILENCE = 30.0
"""Seconds that a server which did not answer in that time is left alone."""
REFRESH_PAUSE = 0.05
"""Seconds between two lists that notifications cause, however many come."""
SDK_SECONDS = 60.0
"""What importing the SDK may take on a machine that has other things to do."""
LOG_LINES = 200
KINDS: tuple[str, ...] = ("tools", "resources", "prompts")

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

    `offers` is what the server may ask us for. `vault` keeps OAuth tokens; without one a login lasts as long as the
    process. Used on one event loop.
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
        self._vault = vault
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
        self._left_out: dict[str, tuple[LeftOut, ...]] = {}
        self._dirty = dict.fromkeys(KINDS, False)
        self._refreshing = asyncio.Event()
        self.listed_resources: _Listed[ResourceDescriptor] = _Listed(self, "resources", "resources")
        self.listed_templates: _Listed[ResourceTemplate] = _Listed(self, "templates", "resources")
        self.listed_prompts: _Listed[PromptDescriptor] = _Listed(self, "prompts", "prompts")
        self._provider = McpResources(self)
        self._prompt_provider = McpPrompts(self)
        self._watched: dict[str, list[Callable[[str], None]]] = {}
        self._log: deque[str] = deque(maxlen=LOG_LINES)
        self._stderr = ""
        self._process: ProcessTransport | None = None
        self._noise = 0
        self._described: JsonObject = {}
        self._era: Era = server.era
        self._asked_twice = False
        self._spoken: Transport | None = None
        self._credentials: Credentials | None = None

    def __repr__(self) -> str:
        return f"<McpSource {self.name} {self.state.status}>"

    # CapabilityProvider

    def invocables(self) -> Sequence[Invocable]:
        """The server's tools, as last listed."""
        return self._tools

    def resources(self) -> Sequence[ResourceProvider]:
        """Its resources, as one provider; none where it said that it has none."""
        return () if self._knows_none("resources") else (self._provider,)

    def prompts(self) -> Sequence[PromptProvider]:
        """Its prompts, as one provider; none where it said that it has none."""
        return () if self._knows_none("prompts") else (self._prompt_provider,)

    def _knows_none(self, kind: str) -> bool:
        link = self._connection.current
        if link is None:
            return kind not in self._described.get("offers", ())
        return not link.has(kind)

    # Connected

    @property
    def state(self) -> State:
        """How the connection is. `detail` has what is known of the server: `protocol`, `server`, `left_out`, `noise`."""
        if not self._started:
            return State("connecting", "not started")
        state = self._connection.state
        detail: JsonObject = {key: value for key, value in self._described.items() if key != "offers"}
        if left_out := self.left_out:
            detail["left_out"] = {f"{one.kind}/{one.name}": one.reason for one in left_out}
        link = self._connection.current
        noise = self._noise + (0 if link is None else link.noise)
        if noise:
            detail["noise"] = noise
        if isinstance(error := self._connection.error, Refused) and state.status != "ready":
            detail["needs"] = error.needs
        return replace(state, detail=detail) if detail else state

    async def start(self) -> None:
        """Begin to connect."""
        if not self._started:
            self._started = True
            _importing()  # meanwhile the child starts
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
    def stderr(self) -> str:
        """The end of what its child wrote to stderr, also of one that is gone; declared variables are cut out."""
        return self._stderr if self._process is None else self._process.stderr

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
        return None if self._process is None else self._process.pid

    # Watcher

    def list_changed(self, kind: str) -> None:
        """See `Watcher`."""
        self._dirty[kind] = True
        self._refreshing.set()

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

    # the connection

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[McpLink]:
        """Connect, open the session, list the tools: one deadline for all of it. Raises `CapabilityError`."""
        limit = asyncio.timeout(self.server.connect_timeout)
        try:
            async with limit, AsyncExitStack() as stack:
                try:
                    link = await self._connect(stack, limit)
                    await self._load_tools(link)
                finally:  # ending a child has bounds of its own
                    with contextlib.suppress(RuntimeError):  # it is expiring
                        limit.reschedule(None)
                self._described = {**link.described(), "offers": [kind for kind in KINDS if link.has(kind)]}
                beside = asyncio.create_task(self._while_up(link), name=f"anykit-mcp-{self.name}")
                stack.push_async_callback(_cancelled, beside)
                yield link
        except TimeoutError:
            if not limit.expired():
                raise
            raise Unavailable(f"no answer within {self.server.connect_timeout:g} s") from None

    async def _connect(self, stack: AsyncExitStack, limit: asyncio.Timeout) -> McpLink:
        if self.server.command is not None:
            return await self._to_child(stack, limit)
        return await self._to_url(stack, limit)

    async def _to_child(self, stack: AsyncExitStack, limit: asyncio.Timeout) -> McpLink:
        """Start the child; once more, the old way, if being asked for the new era was the end of it."""
        eras: list[Era] = [self._era]
        if self._era == "auto" and not self._asked_twice:
            eras.append("legacy")
        for era in eras:
            attempt = await stack.enter_async_context(AsyncExitStack())
            try:
                channel = await self._child(attempt, limit)
                link = await self._session(attempt, channel, era)
            except Unavailable as error:
                if era == eras[-1] or not error.detail.get("lost"):
                    raise
                self._asked_twice = True
                await attempt.aclose()
            else:
                self._era = era
                return link
        raise AssertionError("unreachable")

    async def _child(self, stack: AsyncExitStack, limit: asyncio.Timeout) -> Channel:
        assert self.server.command is not None
        process = await spawn(self.server.command)
        self._process = process
        stack.push_async_callback(self._bury, process)
        await _sdk_within(limit)
        from .channel import LineChannel  # noqa: PLC0415 - loaded by now: it costs a second

        return LineChannel(process)

    async def _bury(self, process: ProcessTransport) -> None:
        await process.close()
        if self._process is process:
            self._stderr = process.stderr
            self._process = None

    async def _to_url(self, stack: AsyncExitStack, limit: asyncio.Timeout) -> McpLink:
        """Connect over streamable HTTP, or over the transport before it where the address speaks only that."""
        await _sdk_within(limit)
        first_error: Unavailable | None = None
        for transport in self._transports():
            attempt = await stack.enter_async_context(AsyncExitStack())
            try:
                channel = await self._http(attempt, transport)
                link = await self._session(attempt, channel, self._era)
            except Unavailable as error:
                if not error.detail.get("not_spoken"):
                    raise
                first_error = first_error or error
                await attempt.aclose()
            else:
                self._spoken = transport
                return link
        assert first_error is not None
        raise first_error

    def _transports(self) -> list[Transport]:
        if self._spoken is not None:
            return [self._spoken]
        if self.server.transport != "auto":
            return [self.server.transport]
        if urlsplit(self.server.url).path.rstrip("/").endswith("/sse"):
            return ["sse", "http"]
        return ["http", "sse"]

    async def _http(self, stack: AsyncExitStack, transport: Transport) -> Channel:
        from .http import EventStream, StreamableHttp  # noqa: PLC0415 - loaded by now

        client = HttpClient(
            guard=self.server.guard, headers=self.server.headers, connect_timeout=self.server.connect_timeout
        )
        stack.push_async_callback(client.close)
        if transport == "sse":
            stream = EventStream(self.server, client, self._shown())
            stack.push_async_callback(stream.close)
            await stream.open()
            return stream
        channel = StreamableHttp(self.server, client, self._shown())
        stack.push_async_callback(channel.close)
        return channel

    def _shown(self) -> Credentials:
        """The credentials, the same over all connections: a token that was renewed is renewed for all."""
        if self._credentials is None:
            self._credentials = self._made_credentials()
        return self._credentials

    def _made_credentials(self) -> Credentials:
        if self.server.oauth is None and (self._vault is None or self.server.credentials):
            return Fixed(self.server.token)
        from .oauth import OAuthCredentials  # noqa: PLC0415 - the SDK's, loaded by now

        return OAuthCredentials(self.server, self._vault or Forgetful())

    async def _session(self, stack: AsyncExitStack, channel: Channel, era: Era) -> McpLink:
        from .link import open_session  # noqa: PLC0415 - loaded by now

        return await stack.enter_async_context(open_session(self.server, self.offers, channel, self, era))

    # the catalogue

    async def _load_tools(self, link: McpLink) -> None:
        self._dirty["tools"] = False
        listed, reports = await link.tools()
        known = {tool.spec.name: tool for tool in self._tools}
        tools: dict[str, McpTool] = {}
        for index, tool in enumerate(listed):
            if tool.name in tools:
                reports.append((tool.name, "the server lists that name twice"))
            elif self.server.offers(tool.name):
                spec = link.spec_of(tool)
                old = known.get(tool.name)
                tools[tool.name] = old if old is not None and old.spec == spec else McpTool(spec, self)
            if index % 200 == 199:
                await asyncio.sleep(0)  # thousands of tools leave the others their turn
        self._tools = tuple(tools.values())
        self.report("tools", reports)

    def report(self, kind: str, reports: Sequence[Report]) -> None:
        """Keep, and tell once, what of a list is not offered as it was listed."""
        left_out = tuple(LeftOut(kind, name, reason) for name, reason in reports)
        for one in left_out:
            if one not in self._left_out.get(kind, ()):
                log.warning("%s: %s %s: %s", self.name, kind, one.name or "list", one.reason)
        self._left_out[kind] = left_out

    async def _load_lists(self, kind: str, link: McpLink) -> None:
        if kind == "prompts":
            await self.listed_prompts.load(link)
        else:
            await self.listed_resources.load(link)
            await self.listed_templates.load(link)

    async def _while_up(self, link: McpLink) -> None:
        """What goes on beside a session: lists that changed are listed again, never two at a time."""
        for uri in list(self._watched):
            with contextlib.suppress(CapabilityError):
                await link.subscribe(uri)
        for kind in ("resources", "prompts"):
            if link.has(kind):
                self._dirty[kind] = True
        if any(self._dirty.values()):
            self._refreshing.set()
        while True:
            await self._refreshing.wait()
            self._refreshing.clear()
            for kind in KINDS:
                if self._dirty[kind]:
                    await self._load(kind, link)
            self._changed()
            await asyncio.sleep(REFRESH_PAUSE)

    async def _load(self, kind: str, link: McpLink) -> None:
        self._dirty[kind] = False
        try:
            async with asyncio.timeout(LIST_TIMEOUT):
                if kind == "tools":
                    await self._load_tools(link)
                else:
                    await self._load_lists(kind, link)
        except (CapabilityError, TimeoutError) as error:
            log.warning("%s: the %s could not be listed: %s", self.name, kind, explain(error))

    async def call(self, work: Callable[[McpLink], Awaitable[T]], *, repeatable: bool = False) -> T:
        """Do `work` with the session, once there is one. Raises `CapabilityError`; see `Connection.call`."""
        if not self._started:
            await self.start()
        return await self._connection.call(work, repeatable=repeatable)

    # what the providers need

    async def completed(
        self, reference: str, is_template: bool, argument: str, value: str, context: CapabilityContext
    ) -> tuple[Sequence[str], bool]:
        """Proposals for an argument; none where the server makes none."""

        async def work(link: McpLink) -> tuple[Sequence[str], bool]:
            if not link.has("completions"):
                return (), False
            return await link.complete(reference, is_template, argument, value, context)

        return await self.call(work, repeatable=True)

    @property
    def link(self) -> McpLink | None:
        """The session, while there is one."""
        return self._connection.current

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


class McpTool:
    """A tool of a server, as an invocable."""

    def __init__(self, spec: InvocableSpec, source: McpSource) -> None:
        self._spec = spec
        self._source = source

    def __repr__(self) -> str:
        return f"<McpTool {self._spec.name} of {self._source.name}>"

    @property
    def spec(self) -> InvocableSpec:
        """See `Invocable`; the name is the server's own."""
        return self._spec

    @property
    def repeatable(self) -> bool:
        """Whether the server says that a second call does no harm."""
        hints = self._spec.annotations
        return hints is not None and bool(hints.idempotent or hints.read_only)

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult | Suspension:
        """Call it over there. A question of the server is a suspension, with which a later process can go on."""
        if not is_json(request.input):
            raise InvalidInput(f"the arguments for {self._spec.name} are not JSON", unsendable(request.input))
        server = self._source.server
        if request.resume is None:
            rounds = Rounds(server.name)
        else:
            rounds = Rounds.resumed(server.name, request.resume.state, request.resume.answer)
        call = Call(context)
        clock = asyncio.timeout(server.call_timeout)
        try:
            async with clock:
                call.clock = clock

                async def work(link: McpLink) -> InvocableResult | Question:
                    call.failure = None
                    return await link.call_tool(self._spec.name, request.input, call, rounds)

                outcome = await self._source.call(work, repeatable=self.repeatable)
        except TimeoutError:
            if not clock.expired():
                raise
            raise ExecutionFailed(
                f"{server.name} did not answer within {server.call_timeout:g} s",
                code=codes.TIMEOUT,
                retryable=self.repeatable,
                detail={"timeout": server.call_timeout},
            ) from None
        if isinstance(outcome, Question):
            return rounds.suspension(uuid.uuid4().hex, outcome)
        return outcome


class _Listed(Generic[T]):
    """A list of the server's as last known, listed anew when it may have changed."""

    def __init__(self, source: McpSource, kind: str, capability: str) -> None:
        self._source = source
        self._kind = kind
        self._capability = capability
        self._items: tuple[T, ...] | None = None
        self._at = 0.0
        self._loading = asyncio.Lock()

    async def get(self) -> Page[T]:
        """All of it. While the server is away, or silent, what was known last; raises `CapabilityError` if nothing was."""
        source = self._source
        link = source.link
        if link is None and self._items is None:
            link = await source.call(_itself, repeatable=True)
        if link is not None and self._is_stale(link):
            try:
                async with asyncio.timeout(LIST_TIMEOUT if self._items is None else QUICK):
                    async with self._loading:
                        if self._is_stale(link):
                            await self.load(link)
            except (CapabilityError, TimeoutError) as error:
                self._at = asyncio.get_running_loop().time() + SILENCE
                if self._items is None:
                    raise Unavailable(
                        f"{source.name}: its {self._kind} could not be listed: {explain(error)}"
                    ) from None
        return Page(self._items or ())

    def _is_stale(self, link: McpLink) -> bool:
        if self._items is None:
            return True
        return not link.tells_changes(self._capability) and asyncio.get_running_loop().time() - self._at > FRESH

    async def load(self, link: McpLink) -> None:
        """List it. Raises `CapabilityError`."""
        items: Sequence[Any]
        items, reports = await getattr(link, self._kind)()
        self._items = tuple(items)
        self._at = asyncio.get_running_loop().time()
        self._source.report(self._kind, reports)

    @property
    def known(self) -> tuple[T, ...]:
        """What was known last."""
        return self._items or ()


class McpResources:
    """The server's resources. Also `Templated`, `Subscribable` and `Completing`."""

    def __init__(self, source: McpSource) -> None:
        self._source = source

    async def list_resources(self, cursor: str | None = None) -> Page[ResourceDescriptor]:
        """See `ResourceProvider`; all of them are one page."""
        return await self._source.listed_resources.get()

    async def list_templates(self, cursor: str | None = None) -> Page[ResourceTemplate]:
        """See `Templated`; all of them are one page."""
        return await self._source.listed_templates.get()

    async def read_resource(self, id: str, context: CapabilityContext) -> ResourceContents:
        """See `ResourceProvider`. What the server asks is asked on the spot."""
        return await self._source.call(lambda link: link.read(id, context), repeatable=True)

    async def subscribe_resource(self, id: str, callback: Callable[[str], None]) -> Callable[[], None]:
        """See `Subscribable`; it holds over reconnects."""
        return await self._source.watch(id, callback)

    async def complete(
        self, reference: str, argument: str, value: str, context: CapabilityContext
    ) -> tuple[Sequence[str], bool]:
        """See `Completing`; `reference` is a URI template."""
        return await self._source.completed(reference, True, argument, value, context)


class McpPrompts:
    """The server's prompts. Also `Completing`."""

    def __init__(self, source: McpSource) -> None:
        self._source = source

    async def list_prompts(self, cursor: str | None = None) -> Page[PromptDescriptor]:
        """See `PromptProvider`; all of them are one page."""
        return await self._source.listed_prompts.get()

    async def get_prompt(self, id: str, args: JsonObject, context: CapabilityContext) -> PromptContents:
        """See `PromptProvider`. What the server asks is asked on the spot."""
        texts = prompt_arguments(args)
        known = next((one for one in self._source.listed_prompts.known if one.id == id), None)
        missing = [one.name for one in known.arguments if one.required and one.name not in texts] if known else []
        if missing:
            faults: list[Fault] = [{"path": f"/{name}", "message": "is required"} for name in missing]
            raise InvalidInput(f"the prompt {id} needs {', '.join(missing)}", faults)
        return await self._source.call(lambda link: link.prompt(id, texts, context), repeatable=True)

    async def complete(
        self, reference: str, argument: str, value: str, context: CapabilityContext
    ) -> tuple[Sequence[str], bool]:
        """See `Completing`; `reference` is a prompt's id."""
        return await self._source.completed(reference, False, argument, value, context)


async def _itself(link: McpLink) -> McpLink:
    return link


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@functools.cache
def _importing() -> Future[ModuleType]:
    """The SDK and what of ours is typed by it, imported in a thread: a second of CPU that the loop does not wait for."""
    executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="anykit-mcp-sdk")
    future = executor.submit(importlib.import_module, f"{__package__}.link")
    executor.shutdown(wait=False)
    return future


async def sdk() -> None:
    """Wait until the SDK is imported."""
    await asyncio.shield(asyncio.wrap_future(_importing()))


async def _sdk_within(limit: asyncio.Timeout) -> None:
    """Wait for the SDK; that time is none of the server's."""
    importing = _importing()
    if importing.done():
        importing.result()
        return
    loop = asyncio.get_running_loop()
    when = limit.when()
    left = None if when is None else when - loop.time()
    limit.reschedule(None)
    await sdk()
    if left is not None:
        limit.reschedule(loop.time() + left)
