"""One handshaken connection to an A2E host: requests out, replies and events in. It lives inside its owner's task."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar

from anykit.capabilities import InvalidInput, Json, JsonObject, Unavailable
from anykit.sources.connection import lose
from anykit.sources.hostile import clean_text
from anykit.transports import LineTransport, Received, TransportClosed
from anykit.transports import Oversized as LongLine
from anykit.wire.a2e import (
    A2EError,
    A2EEvent,
    AgentEvent,
    AgentSession,
    AnswerResponse,
    EncodeError,
    EventFor,
    HandshakeResult,
    HostRequest,
    Message,
    Oversized,
    Pong,
    ProtocolError,
    Push,
    Reply,
    ToolCallResponse,
    ToolDefinition,
    ToolkitConfigureResponse,
    ToolkitDefinition,
    ToolkitListResponse,
    ToolListResponse,
    ToolResult,
)

from .errors import A2ERequestError
from .targets import Opener

log = logging.getLogger("anykit.sources.a2e")

GOODBYE_SECONDS = 1.0
"""What saying goodbye may take."""
ANSWERING = 16
"""Requests of the host that are being answered at a time; more go unanswered."""

M = TypeVar("M", bound=Message)
OnEvent: TypeAlias = Callable[[A2EEvent], object]
Ask: TypeAlias = Callable[[AgentSession, float], str]
"""Puts a request into the session and gives its id; the second argument is the time, in Unix seconds."""


class _Waiting:
    """Someone who waits for a reply."""

    __slots__ = ("on_event", "reply")

    def __init__(self, reply: asyncio.Future[Message | HandshakeResult], on_event: OnEvent | None) -> None:
        self.reply = reply
        self.on_event = on_event


class A2ELink:
    """See the module. `ended` is done once the host is lost; by then every request has failed with it."""

    def __init__(
        self,
        transport: LineTransport,
        session: AgentSession,
        *,
        clock: Callable[[], float],
        on_push: Callable[[Message], None],
    ) -> None:
        self.transport = transport
        self.session = session
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.left_out: list[str] = []
        """What of the last list could not be read, and why."""
        self._clock = clock
        self._on_push = on_push
        self._waiting: dict[str, _Waiting] = {}
        self._places = asyncio.Semaphore(1)
        self._answering: set[asyncio.Task[None]] = set()
        self._gone = False

    # requests

    async def list_tools(
        self, *, query: str = "", kind: str = "", tags: Sequence[str] = (), include_deferred: bool = False
    ) -> list[ToolDefinition]:
        """The tools that the host lists."""
        self.left_out = []
        reply = await self.request(
            lambda session, now: session.list_tools(
                now, query=query, kind=kind, tags=tags, include_deferred=include_deferred
            )
        )
        return _expect(reply, ToolListResponse).tools

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        timeout: int | None = None,
        streaming: bool = False,
        on_event: OnEvent | None = None,
        correlation_id: str = "",
    ) -> ToolResult:
        """Call a tool; `timeout` (seconds) is told to the host."""
        reply = await self.request(
            lambda session, now: session.call_tool(
                name, arguments, now, timeout=timeout, streaming=streaming, correlation_id=correlation_id
            ),
            on_event=on_event,
        )
        return _expect(reply, ToolCallResponse).data

    async def answer(
        self, suspension_id: str, *, ok: bool = True, data: Json = None, on_event: OnEvent | None = None
    ) -> ToolResult:
        """Answer the question that suspended a call."""
        reply = await self.request(
            lambda session, now: session.answer_suspension(suspension_id, now, ok=ok, data=data), on_event=on_event
        )
        return _expect(reply, AnswerResponse).data

    async def list_toolkits(self, *, kind: str = "", tags: Sequence[str] = ()) -> list[ToolkitDefinition]:
        """The toolkits that the host lists."""
        reply = await self.request(lambda session, now: session.list_toolkits(now, kind=kind, tags=tags))
        return _expect(reply, ToolkitListResponse).toolkits

    async def configure_toolkit(self, name: str, config: JsonObject) -> ToolkitConfigureResponse:
        """Send a configuration as it is."""
        reply = await self.request(lambda session, now: session.configure_toolkit(name, config, now))
        return _expect(reply, ToolkitConfigureResponse)

    async def ping(self) -> Pong:
        """Ask whether the host lives. Waits for no place."""
        return _expect(await self._exchange(lambda session, now: session.ping(now)), Pong)

    async def request(self, ask: Ask, *, on_event: OnEvent | None = None) -> Message:
        """Send one request and wait for its reply, at most `max_parallel` of them at a time.

        Raises `A2ERequestError` for an error, `InvalidInput` for what cannot be sent, `Unavailable` once the host is lost.
        A caller who stops waiting costs nothing: a late reply is counted and dropped.
        """
        async with self._places:
            reply = await self._exchange(ask, on_event)
        if isinstance(reply, HandshakeResult):
            raise A2ERequestError("parse_error", "the host answered with another request's reply")
        return reply

    async def handshake(self) -> HandshakeResult:
        """Open the session. Raises `A2ERequestError` with the host's reason where it refuses."""
        result = await self._exchange(lambda session, now: session.handshake(now))
        if not isinstance(result, HandshakeResult):
            raise A2ERequestError("parse_error", "the host answered the handshake with something else")
        if not result.ok:
            reason = clean_text(result.reason, 200) or "refused"
            raise A2ERequestError(reason, f"the host refused the handshake: {reason}")
        self._places = asyncio.Semaphore(max(1, min(result.max_parallel, 10_000)))
        return result

    async def _exchange(self, ask: Ask, on_event: OnEvent | None = None) -> Message | HandshakeResult:
        if self.ended.done():
            raise Unavailable(self.ended.result())
        try:
            req_id = ask(self.session, self._clock())
        except EncodeError as error:
            raise InvalidInput(f"it cannot be sent: {error}", [{"path": error.path, "message": error.reason}]) from None
        waiting = _Waiting(asyncio.get_running_loop().create_future(), on_event)
        self._waiting[req_id] = waiting
        try:
            for line in self.session.take():
                await self.transport.send(line)
            return await waiting.reply
        except TransportClosed as closed:
            self._lost(closed.reason)
            raise
        finally:
            self._waiting.pop(req_id, None)
            self.session.forget(req_id)
            if waiting.reply.done() and not waiting.reply.cancelled():
                waiting.reply.exception()  # seen, also where sending failed first

    # what comes

    async def read(self) -> None:
        """Take in what the host says until it is lost. Run it beside everything else."""
        reason = "the connection broke"
        try:
            while True:
                self._hear(await self.transport.receive())
        except TransportClosed as closed:
            reason = closed.reason
        except asyncio.CancelledError:
            reason = "closed"
            raise
        except Exception:
            log.exception("reading from an A2E host broke")
        finally:
            self._lost(reason)

    def _hear(self, item: Received) -> None:
        if isinstance(item, LongLine):
            self._hear_long(item)
            return
        noise = self.session.noise
        for event in self.session.receive(item, self._clock()):
            self._take(event)
        if self.session.noise > noise:
            log.debug("noise from an A2E host: %.200r", item)

    def _hear_long(self, line: LongLine) -> None:
        """A line that was too long was somebody's reply; where nobody can say whose, the host is connected to anew."""
        head: bytes = getattr(line, "head", b"")
        before = len(self._waiting)
        for event in self.session.receive(Oversized(line.limit, head), self._clock()):
            self._take(event)
        open_ones = [waiting for waiting in self._waiting.values() if not waiting.reply.done()]
        if len(open_ones) < before:
            return
        if len(open_ones) == 1:
            open_ones[0].reply.set_exception(A2ERequestError("parse_error", str(line)))
        elif open_ones:
            self._lost(str(line))

    def _take(self, event: AgentEvent) -> None:
        match event:
            case Reply(req_id, message):
                if isinstance(message, A2EError):
                    self._fail(req_id, _error(message))
                else:
                    self._answer(req_id, message)
            case HandshakeResult():
                self._answer(event.req_id, event)
            case EventFor(req_id, said):
                self._tell(req_id, said)
            case Push(message):
                self._on_push(message)
            case ProtocolError(req_id, code, text):
                if req_id:
                    self._fail(req_id, A2ERequestError(code, text))
                elif text.startswith(("tools/", "toolkits/")):
                    self.left_out.append(text)
                else:
                    log.debug("an A2E host sent what cannot be read: %s: %s", code, text)
            case HostRequest(message):
                self._decline(message)

    def _answer(self, req_id: str, reply: Message | HandshakeResult) -> None:
        waiting = self._waiting.get(req_id)
        if waiting is not None and not waiting.reply.done():
            waiting.reply.set_result(reply)

    def _fail(self, req_id: str, error: Exception) -> None:
        waiting = self._waiting.get(req_id)
        if waiting is not None and not waiting.reply.done():
            waiting.reply.set_exception(error)

    def _tell(self, req_id: str, event: A2EEvent) -> None:
        waiting = self._waiting.get(req_id)
        if waiting is None or waiting.on_event is None:
            return
        try:
            waiting.on_event(event)
        except Exception:
            log.exception("whoever listens to a call broke")

    def _decline(self, message: Message) -> None:
        """The host asks the agent for something: nobody here serves that."""
        if len(self._answering) >= ANSWERING:
            return
        refusal = A2EError(
            req_id=str(getattr(message, "id", "")),
            code="capability_missing",
            message=f"this agent does not answer {message.type}",
        )
        self.session.answer(refusal, self._clock())
        task = asyncio.create_task(self._send(self.session.take()))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _send(self, lines: Sequence[bytes]) -> None:
        with contextlib.suppress(Unavailable, ValueError):
            for line in lines:
                await self.transport.send(line)

    def _lost(self, reason: str) -> None:
        self._gone = True
        for waiting in self._waiting.values():
            if not waiting.reply.done():
                waiting.reply.set_exception(Unavailable(reason, sent=True))
        lose(self, reason)

    async def goodbye(self) -> None:
        """End the session where the host is still there."""
        if not self._gone:
            self.session.shutdown(self._clock(), timeout=0)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GOODBYE_SECONDS):
                    await self._send(self.session.take())
        self._lost("closed")
        answering = tuple(self._answering)
        for task in answering:
            task.cancel()
        await asyncio.gather(*answering, return_exceptions=True)


@asynccontextmanager
async def open_link(
    open_transport: Opener,
    make_session: Callable[[], AgentSession],
    *,
    clock: Callable[[], float],
    on_push: Callable[[Message], None],
) -> AsyncGenerator[A2ELink]:
    """Connect and shake hands; end the session and the transport behind it."""
    transport = await open_transport()
    link = A2ELink(transport, make_session(), clock=clock, on_push=on_push)
    reader = asyncio.create_task(link.read(), name="anykit-a2e-reader")
    try:
        await link.handshake()
        yield link
    finally:
        try:
            await link.goodbye()
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
            await transport.close()


def _expect(reply: Message | HandshakeResult, kind: type[M]) -> M:
    if isinstance(reply, kind):
        return reply
    name = reply.type if isinstance(reply, Message) else "handshake/resp"
    raise A2ERequestError("parse_error", f"the host answered with {name[:100]}")


def _error(error: A2EError) -> A2ERequestError:
    return A2ERequestError(
        clean_text(error.code, 128),
        clean_text(error.message),
        dict(error.detail),
        error.retryable,
        capability=clean_text(error.capability_name, 128),
    )
