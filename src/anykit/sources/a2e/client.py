"""An agent's face to an A2E host: one client, whatever the host is reached by, that comes back when it is lost."""

from __future__ import annotations

import asyncio
import copy
import difflib
import logging
import math
import os
import time
import uuid
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, TypeVar

from anykit.capabilities import InvalidInput, Json, JsonObject, State, Unavailable
from anykit.schema import SchemaError, compile_schema
from anykit.sources.connection import CONNECT_TIMEOUT, Backoff, Connection, lose
from anykit.sources.hostile import clean_text
from anykit.transports import MAX_LINE
from anykit.wire.a2e import (
    A2EEvent,
    AgentSession,
    Message,
    Pong,
    ToolDefinition,
    ToolkitConfigureResponse,
    ToolkitDefinition,
    ToolResult,
)

from .errors import A2ERequestError
from .link import A2ELink, OnEvent, open_link
from .targets import Target, opener

log = logging.getLogger("anykit.sources.a2e")

LIST_TIMEOUT = 30.0
"""Seconds that a list may take."""
CALL_TIMEOUT = 120.0
"""Seconds that a call may take where its caller says nothing."""
CONFIGURE_TIMEOUT = 90.0
"""Seconds that configuring may take: a toolkit may have to connect somewhere."""
PING_TIMEOUT = 10.0
GRACE = 1.0
"""Seconds after a call's time in which the host may say that it was up."""
PUSHES = 1000
"""Pushes that wait to be read; the oldest are dropped."""

R = TypeVar("R")


class A2EClient:
    """An A2E host as seen by an agent.

        async with A2EClient("http://127.0.0.1:7777", token="...") as host:
            await host.toolkits.ensure("filesystem", {"root_dir": "/data"})
            result = await host.tools.call("read_file", {"path": "a.txt"})

    `target` is a URL (with or without `/a2e`), a command line, an argv, a `Command`, a transport, or what makes one. `env`
    and `cwd` are for a command, `headers` for a URL. `ensure` holds configurations by toolkit that are brought about at every connect.

    Entering connects, and raises `A2ERequestError` where the host refuses, `Unavailable` where it is not to be had; nothing
    is left running then. A lost host is connected to again, with a new handshake; what `toolkits.ensure` configured is
    configured again. A call that was lost on the way raises `Unavailable` with `sent` and is never repeated by itself.
    """

    def __init__(
        self,
        target: Target,
        *,
        token: str = "",
        caps: Sequence[str] = ("tools", "toolkits"),
        agent_id: str = "anykit",
        ensure: Mapping[str, JsonObject] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        headers: Mapping[str, str] | None = None,
        connect_timeout: float = CONNECT_TIMEOUT,
        backoff: Backoff | None = None,
        max_line: int = MAX_LINE,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[], str] | None = None,
        while_connected: Callable[[A2ELink], AbstractAsyncContextManager[None]] | None = None,
        on_push: Callable[[Message], None] | None = None,
    ) -> None:
        self.name, self._open_transport = opener(target, env=env, cwd=cwd, headers=headers, max_line=max_line)
        self.faults: dict[str, str] = {}
        """Toolkits that could not be configured again after the last connect, with the reasons."""
        self.tools = Tools(self)
        self.toolkits = Toolkits(self)
        self._token = token
        self._caps = tuple(str(cap) for cap in caps)
        self._agent_id = agent_id
        self._ensured: dict[str, JsonObject] = {name: copy.deepcopy(config) for name, config in (ensure or {}).items()}
        self._connect_timeout = connect_timeout
        self._backoff = backoff
        self._clock = clock
        self._new_id = new_id or (lambda: uuid.uuid4().hex)
        self._while_connected = while_connected
        self._on_push = on_push
        self._connection: Connection[A2ELink] | None = None
        self._events = Events()
        self._last: AgentSession | None = None

    def __repr__(self) -> str:
        return f"<A2EClient {self.name} {self.state.status}>"

    # its life

    async def __aenter__(self) -> A2EClient:
        connection = self.open()
        try:
            state = await connection.settled()
            if state.status != "ready":
                if isinstance(connection.error, A2ERequestError):
                    raise connection.error
                raise Unavailable(f"{self.name}: {state.reason}")
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def open(self) -> Connection[A2ELink]:
        """Begin to connect, and say no word about how it goes: see `state`. Give the connection."""
        if self._connection is None:
            self._events = Events()
            self._connection = Connection(
                self.name, self._live, connect_timeout=self._connect_timeout, backoff=self._backoff, clock=self._clock
            )
            self._connection.start()
        return self._connection

    async def close(self) -> None:
        """End the session, bounded in time. It may be entered again."""
        connection, self._connection = self._connection, None
        self._events.end()
        if connection is not None:
            await connection.close()

    async def reconnect(self) -> None:
        """Leave the host and shake hands anew. Raises as entering does."""
        connection = self._opened()
        if connection.current is not None:
            lose(connection.current, "connecting anew")
        await connection.link()

    @asynccontextmanager
    async def _live(self) -> AsyncGenerator[A2ELink]:
        async with open_link(self._open_transport, self._new_session, clock=self._clock, on_push=self._pushed) as link:
            await self._replay(link)
            if self._while_connected is None:
                yield link
                return
            async with self._while_connected(link):
                yield link

    def _new_session(self) -> AgentSession:
        self._last = AgentSession(
            new_id=self._new_id, agent_id=self._agent_id, capabilities=self._caps, token=self._token
        )
        return self._last

    async def _replay(self, link: A2ELink) -> None:
        """Configure again what was ensured. What fails costs itself only, and is kept in `faults`."""
        self.faults = {}
        if not self._ensured:
            return
        try:
            listed = await link.list_toolkits()
        except A2ERequestError as error:
            self.faults = dict.fromkeys(self._ensured, error.message)
        else:
            ready = {definition.name for definition in listed if definition.configured}
            missing = {name: config for name, config in self._ensured.items() if name not in ready}
            faults = await asyncio.gather(
                *(self._replay_one(link, listed, name, config) for name, config in missing.items())
            )
            self.faults = {name: fault for name, fault in zip(missing, faults, strict=True) if fault}
        for name, reason in self.faults.items():
            log.warning("%s: toolkit %s is not configured: %s", self.name, name, reason)

    async def _replay_one(
        self, link: A2ELink, listed: Sequence[ToolkitDefinition], name: str, config: JsonObject
    ) -> str | None:
        """Give why it failed. One that takes long does not keep the host waiting: a push tells when it is done."""
        seconds = self._connect_timeout / 2
        try:
            _check(listed, name, config, link.transport.secure)
            async with asyncio.timeout(seconds):
                answer = await link.configure_toolkit(name, config)
        except TimeoutError:
            return f"the host is still at it after {seconds:g} s"
        except (InvalidInput, A2ERequestError) as error:
            return error.message
        if answer.status == "error":
            return clean_text(answer.message or "the host could not configure it", 1000)
        return None

    # what there is to see

    @property
    def state(self) -> State:
        """How the connection is."""
        return self._connection.state if self._connection is not None else State("closed", "not entered")

    @property
    def session_id(self) -> str:
        """The session that the host opened last; "" before the first handshake."""
        return self._last.session_id if self._last is not None else ""

    @property
    def accepted_caps(self) -> tuple[str, ...]:
        """The capabilities that the host serves in this session."""
        return tuple(self._last.capabilities) if self._last is not None else ()

    @property
    def secure(self) -> bool:
        """Whether a secret may travel on the connection there is."""
        link = self._connection.current if self._connection is not None else None
        return link is not None and link.transport.secure

    @property
    def noise(self) -> int:
        """Lines of this session that were no messages."""
        return self._last.noise if self._last is not None else 0

    @property
    def events(self) -> Events:
        """What the host says unasked, to iterate over: each push once, the last 1,000 kept until they are read.

        Events of a call made with `streaming` alone come here too, with its `req_id`.
        """
        return self._events

    async def ping(self, *, timeout: float = PING_TIMEOUT) -> Pong:
        """Ask whether the host lives."""
        return await self.borrow("ping", lambda link: link.ping(), timeout, repeatable=True)

    # for the parts of it

    async def borrow(
        self, what: str, work: Callable[[A2ELink], Awaitable[R]], timeout: float, *, repeatable: bool = False
    ) -> R:
        """Do `work` with the link within `timeout` seconds, connecting included."""
        connection = self._opened()
        try:
            async with asyncio.timeout(timeout):
                return await connection.call(work, repeatable=repeatable)
        except TimeoutError:
            raise A2ERequestError(
                "timeout", f"{self.name} did not answer {what} within {timeout:g} s", {"timeout": timeout}
            ) from None

    def remember(self, name: str, config: JsonObject) -> None:
        """Configure a toolkit again after each connect."""
        self._ensured[name] = copy.deepcopy(config)

    def _opened(self) -> Connection[A2ELink]:
        if self._connection is None:
            raise Unavailable(f"{self.name} is not connected: use `async with`")
        return self._connection

    def _pushed(self, message: Message) -> None:
        self._events.put(message)
        if self.faults and isinstance(message, A2EEvent) and message.data.get("configured") is True:
            self.faults.pop(str(message.data.get("toolkit")), None)
        if self._on_push is not None:
            self._on_push(message)


class Tools:
    """A host's tools."""

    def __init__(self, client: A2EClient) -> None:
        self._client = client

    async def list(
        self, query: str = "", *, kind: str = "", tags: Sequence[str] = (), include_deferred: bool = False
    ) -> list[ToolDefinition]:
        """The tools that fit: every word of `query` occurs, of that `kind`, with all `tags`; deferred ones if wanted."""
        return await self._client.borrow(
            "the list of tools",
            lambda link: link.list_tools(query=query, kind=kind, tags=tags, include_deferred=include_deferred),
            LIST_TIMEOUT,
            repeatable=True,
        )

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        streaming: bool | None = None,
        on_event: OnEvent | None = None,
        correlation_id: str = "",
        idempotent: bool = False,
    ) -> ToolResult:
        """Call a tool. `timeout` is in seconds; `on_event` hears the call's events, for which `streaming` is asked.

        With `streaming` and no `on_event` the call's events are found among the client's `events`.

        A result with `success` False is returned like another. Raises `A2ERequestError` for an error of the host or when
        the time is up, `Unavailable` where the host is lost: with `sent` nobody knows whether the tool ran. Only with
        `idempotent` is such a call sent once more.
        """
        if streaming and on_event is None:
            on_event = self._client.events.put
        limit = CALL_TIMEOUT + GRACE if timeout is None else timeout
        told = None
        if timeout is not None:
            # The wire knows whole seconds. Where they say the same, the host's own word is waited for.
            told = max(1, math.ceil(timeout))
            limit = timeout + GRACE if told == timeout else timeout
        return await self._client.borrow(
            name,
            lambda link: link.call_tool(
                name,
                arguments or {},
                timeout=told,
                streaming=on_event is not None if streaming is None else streaming,
                on_event=on_event,
                correlation_id=correlation_id,
            ),
            limit,
            repeatable=idempotent,
        )

    async def answer(
        self,
        suspension_id: str,
        *,
        ok: bool = True,
        data: Json = None,
        timeout: float | None = None,
        on_event: OnEvent | None = None,
    ) -> ToolResult:
        """Answer the question that suspended a call, and give what becomes of it; `ok` False refuses.

        Raises as `call`. An answer that was lost on the way is never sent again.
        """
        limit = CALL_TIMEOUT + GRACE if timeout is None else timeout
        return await self._client.borrow(
            "answer",
            lambda link: link.answer(suspension_id, ok=ok, data=data, on_event=on_event),
            limit,
            repeatable=False,
        )


class Toolkits:
    """A host's toolkits."""

    def __init__(self, client: A2EClient) -> None:
        self._client = client

    async def list(self, *, kind: str = "", tags: Sequence[str] = ()) -> list[ToolkitDefinition]:
        """The toolkits of that `kind` (their category) with all `tags`."""
        return await self._client.borrow(
            "the list of toolkits",
            lambda link: link.list_toolkits(kind=kind, tags=tags),
            LIST_TIMEOUT,
            repeatable=True,
        )

    async def get(self, name: str) -> ToolkitDefinition | None:
        """The toolkit of that name, or None."""
        return next((definition for definition in await self.list() if definition.name == name), None)

    async def configure(self, name: str, config: JsonObject) -> ToolkitConfigureResponse:
        """Configure a toolkit for this session. Its status may be `partial`, or a plugin's own `error`.

        The configuration is held against the listed schema first. Raises `InvalidInput` with every fault in `errors`, and
        `A2ERequestError` where a secret would travel on an insecure connection; nothing was sent then. Raises
        `A2ERequestError` for an error of the host.
        """
        return await self._configure(name, config, always=True)

    async def ensure(self, name: str, config: JsonObject) -> ToolkitConfigureResponse:
        """Configure a toolkit unless it is configured, now and after each new connect. Raises as `configure` does.

        A status of `error` is raised too.
        """
        answer = await self._configure(name, config, always=False)
        if answer.status == "error":
            raise A2ERequestError("runtime_error", answer.message or f"toolkit {name} could not be configured")
        self._client.remember(name, config)
        return answer

    async def _configure(self, name: str, config: JsonObject, *, always: bool) -> ToolkitConfigureResponse:
        async def work(link: A2ELink) -> ToolkitConfigureResponse:
            listed = await link.list_toolkits()
            if not always and any(one.name == name and one.configured for one in listed):
                return ToolkitConfigureResponse(
                    req_id="", toolkit_name=name, status="ok", message="Toolkit is configured already"
                )
            _check(listed, name, config, link.transport.secure)
            return await link.configure_toolkit(name, config)

        return await self._client.borrow(f"the configuration of {name}", work, CONFIGURE_TIMEOUT)


class Events:
    """What is said, as it comes: an asynchronous iterator that ends with the client."""

    def __init__(self) -> None:
        self._waiting: deque[Message] = deque(maxlen=PUSHES)
        self._arrived = asyncio.Event()
        self._over = False

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> Message:
        while not self._waiting:
            if self._over:
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        return self._waiting.popleft()

    def put(self, message: Message) -> None:
        """Add one; the oldest goes where too many wait."""
        self._waiting.append(message)
        self._arrived.set()

    def end(self) -> None:
        """No more will come."""
        self._over = True
        self._arrived.set()


def _check(listed: Sequence[ToolkitDefinition], name: str, config: JsonObject, secure: bool) -> None:
    """Hold a configuration against its toolkit's schema. Raises `InvalidInput` or `A2ERequestError`; nothing was sent."""
    known = {definition.name: definition for definition in listed}
    definition = known.get(name)
    if definition is None:
        close = difflib.get_close_matches(name, known, n=3)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise A2ERequestError("runtime_error", f"unknown toolkit {name[:128]!r}{hint}", {"toolkit_name": name[:128]})
    try:
        validator = compile_schema(definition.schema)
    except SchemaError as error:
        # The host holds the configuration against it too; where secrets are cannot be known.
        log.warning("the schema of toolkit %s cannot be used: %s", name, error)
        hidden = bool(config)
    else:
        faults = validator.faults(config)
        if faults:
            text = "; ".join(f"{fault['path'] or '/'}: {fault['message']}" for fault in faults)
            raise InvalidInput(f"invalid configuration for {name}: {text}", faults, detail={"toolkit_name": name})
        hidden = validator.secrets.redacted(config) != config
    if hidden and not secure:
        raise A2ERequestError(
            "unauthorized",
            f"toolkit {name} takes a secret, which must not travel on an insecure connection; use TLS",
            {"reason": "insecure_transport", "toolkit_name": name},
        )
