"""Streamable HTTP, as both eras use it.

A request is a task with a POST: what comes back on its stream is delivered in that task's context, so that a question or
a log line of the server is known to belong to the call.

Imports the SDK; comes in with `session.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest, RequestId

from anykit.capabilities import CapabilityError, ExecutionFailed, Unavailable
from anykit.sources.connection import explain
from anykit.transports import MAX_LINE, HttpAnswer, HttpClient, HttpStream, SseDecoder

from .channel import VERSION_HEADER, cancelled_id
from .credentials import Credentials
from .frames import NotAFrame, encode, parse
from .http import EVENTS, JSON, MESSAGE_SECONDS, HttpChannel, NotSpoken
from .servers import McpServer

log = logging.getLogger("anykit.sources.mcp")

SESSION_HEADER = "mcp-session-id"
IDLE = 300.0
"""Seconds after which a silent stream of events, on which nothing is awaited, is opened anew."""
TAIL = 1.0
"""Seconds that a stream may stay open once the answer has come, so that the connection can be used again."""
RETRY = 1.0
"""Seconds before a stream that broke off is resumed, where the server names none."""
MAX_RETRY = 30.0
RESUMPTIONS = 8
"""How often the stream of one request is resumed in vain."""
NO_STREAM = frozenset({404, 405, 406, 501})
"""Answers to a GET that say: nothing is sent unasked here."""


@dataclass(frozen=True, slots=True)
class _Post:
    task: asyncio.Task[None]
    modern: bool


class StreamableHttp(HttpChannel):
    """MCP's transport since 2025-03-26, as both eras use it."""

    def __init__(self, server: McpServer, client: HttpClient, credentials: Credentials) -> None:
        super().__init__(server, client, credentials)
        self.session: str | None = None
        """The legacy session's id."""
        self._version: str | None = None
        self._posts: dict[RequestId, _Post] = {}

    async def send(self, item: SessionMessage) -> None:
        """See `Channel`. A request is on its way when this returns; anything else has been taken."""
        if self.ended.done():
            raise Unavailable(self.ended.result())
        message = item.message
        body = encode(self._note(item))
        headers = self._headers(item)
        if isinstance(message, JSONRPCRequest):
            work = self._ask(message.id, message.method, body, headers)
            self._posts[message.id] = _Post(self._spawn(work, f"post-{message.method}"), self.modern)
            return
        if (cancelled := cancelled_id(message)) is not None:
            self._forget(cancelled)
            post = self._posts.get(cancelled)
            # Before 2026-07-28 only the message ends the work; from then on only the end of the stream does.
            modern = self.modern if post is None else post.modern
            try:
                if not modern:
                    with contextlib.suppress(CapabilityError):
                        await self._tell(body, headers)
            finally:
                if post is not None:
                    post.task.cancel()
            return
        await self._tell(body, headers)
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/initialized":
            self._spawn(self._listen(), "stream")

    async def close(self) -> None:
        """End every request, then the session where there is one."""
        session = self.session
        await super().close()
        if session is None:
            return
        self.session = None
        with contextlib.suppress(CapabilityError, TimeoutError):
            async with asyncio.timeout(TAIL):
                headers = {**self._common(), SESSION_HEADER: session}
                async with self._request("DELETE", headers=headers, seconds=TAIL):
                    pass

    # headers

    def _common(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        if self.session is not None:
            headers[SESSION_HEADER] = self.session
        if self._version is not None:
            headers[VERSION_HEADER] = self._version
        return headers

    def _headers(self, item: SessionMessage) -> dict[str, str]:
        """What goes with a message: the era's headers as the session stamped them."""
        message = item.message
        if isinstance(message, JSONRPCRequest) and message.method == "initialize":
            self._version = None  # the version is what it asks for
        stamped: dict[str, str] = {}
        if isinstance(item.metadata, ClientMessageMetadata) and item.metadata.headers is not None:
            stamped = item.metadata.headers
            self._version = stamped.get(VERSION_HEADER, self._version)
        headers = {"accept": f"{JSON}, {EVENTS}", "content-type": JSON, **self._common()}
        if isinstance(message, JSONRPCRequest | JSONRPCNotification):
            headers["mcp-method"] = message.method  # wanted from 2026-07-28 on, also of what finds the era out
        return {**headers, **stamped}

    # a request and its answer

    async def _ask(self, id: RequestId, method: str, body: bytes, headers: Mapping[str, str]) -> None:
        context = contextvars.copy_context()
        this = asyncio.current_task()
        try:
            async with self._request("POST", headers=headers, body=body) as answer:
                await self._answered(id, method, answer, context)
        except CapabilityError as error:
            self._failed(id, error, context)
            if isinstance(error, Unavailable) and not error.sent:
                self.on_unreachable(error.message)
        except Exception as error:
            log.exception("a request to %s broke", self._server.place)
            self._failed(id, Unavailable(f"{self._server.place}: {explain(error)}", sent=True), context)
        finally:
            post = self._posts.get(id)
            if post is not None and post.task is this:
                del self._posts[id]

    async def _answered(self, id: RequestId, method: str, answer: HttpStream, context: contextvars.Context) -> None:
        if answer.status >= 300:
            await self._refused(id, method, answer, context)
            return
        if method == "initialize" and (session := answer.headers.get(SESSION_HEADER)):
            self.session = session
        if answer.content_type == EVENTS:
            if method == "subscriptions/listen":
                answer.idle = IDLE
            await self._streamed(id, answer, context)
            return
        if answer.status == 202:
            raise Unavailable(f"{answer.url} took the request and promised no answer (HTTP 202)", sent=True)
        if answer.content_type != JSON:
            raise (await answer.excerpt()).unexpected("MCP")
        whole = await answer.read()
        try:
            frames = await self._frames(whole.body)
        except NotAFrame:
            raise whole.unexpected("MCP") from None
        self._own(frames, id)
        if not self._take(frames, context):
            raise whole.unexpected("MCP")

    def _own(self, frames: list[dict[str, object]], id: RequestId) -> None:
        """What answers on a request's own stream answers that request, whatever id it has."""
        answers = [frame for frame in frames if "method" not in frame]
        if len(answers) == 1:
            answers[0]["id"] = id

    async def _streamed(self, id: RequestId, answer: HttpStream, context: contextvars.Context) -> None:
        decoder = SseDecoder(MAX_LINE)
        try:
            if await self._until_answered(id, answer, decoder, context):
                return
            ended = Unavailable(f"{answer.url} ended the stream before the answer came", sent=True)
        except Unavailable as error:
            ended = error
        if self.modern or not decoder.last_event_id:
            raise ended
        await self._resumed(id, decoder, ended, context)

    async def _until_answered(
        self, id: RequestId, answer: HttpStream, decoder: SseDecoder, context: contextvars.Context
    ) -> bool:
        answered = False
        events = self._events(answer, decoder)
        try:
            async for event in events:
                if answered:
                    continue
                if event.event != "message":
                    continue
                try:
                    frames = await self._frames(event.data)
                except NotAFrame:
                    self._noise(event.data)
                    continue
                self._own(frames, id)
                if self._take(frames, context):
                    answered = True
                    answer.idle = TAIL
        except Unavailable:
            if not answered:
                raise
        finally:
            await events.aclose()
        return answered

    async def _resumed(
        self, id: RequestId, decoder: SseDecoder, ended: Unavailable, context: contextvars.Context
    ) -> None:
        """Go on where the stream broke off: the server sends what was missed, the request is not made again."""
        failures = 0
        while failures < RESUMPTIONS:
            pause = RETRY if decoder.retry is None else decoder.retry / 1000
            await asyncio.sleep(min(pause * 2**failures if failures else pause, MAX_RETRY))
            last = decoder.last_event_id
            decoder = _continued(decoder)
            headers = {"accept": EVENTS, **self._common(), "last-event-id": last}
            try:
                async with self._request("GET", headers=headers) as answer:
                    if answer.status == 200 and answer.content_type == EVENTS:
                        if await self._until_answered(id, answer, decoder, context):
                            return
                    elif answer.status in NO_STREAM or answer.status < 500:
                        raise ended
            except Unavailable as error:
                if error is ended:
                    raise
                ended = error if error.sent else ended
            failures = 0 if decoder.last_event_id != last else failures + 1
        raise ended

    async def _refused(self, id: RequestId, method: str, answer: HttpStream, context: contextvars.Context) -> None:
        """An answer that is none of HTTP's good ones: MCP's own error where it has one, else what it says."""
        body = await self._read_refusal(answer)
        had_session = self.session is not None and method != "initialize"
        frame = _error_frame(body)
        if had_session and (answer.status == 404 or (answer.status == 400 and _speaks_of_session(frame))):
            # The server does not know the session (any more): it did not look at the request.
            self.session = None
            error = Unavailable(f"{answer.url} has ended the session")
            self._failed(id, error, context)
            self._lost(error.message)
            return
        if frame is not None:
            frame["id"] = id
            self._take([frame], context)
            return
        detail: dict[str, object] = {"status": answer.status, "content_type": answer.content_type}
        if method in ("initialize", "server/discover") and answer.status in (400, 404, 405, 406, 415):
            raise NotSpoken(f"{answer.url} does not speak MCP: {body.describe()}", detail)
        if answer.status in (429, 503):
            if "retry-after" in answer.headers:
                detail["retry_after"] = answer.headers["retry-after"][:64]
            raise Unavailable(f"{answer.url} cannot answer now: {body.describe()}", detail=detail)
        if answer.status < 500:
            raise ExecutionFailed(f"{answer.url} refused: {body.describe()}", code="http_error", detail=detail)
        raise body.unexpected("MCP")

    async def _read_refusal(self, answer: HttpStream) -> HttpAnswer:
        if answer.content_type == JSON:
            with contextlib.suppress(Unavailable, TimeoutError):
                async with asyncio.timeout(MESSAGE_SECONDS):
                    return await answer.read()
        return await answer.excerpt()

    # everything else

    async def _tell(self, body: bytes, headers: Mapping[str, str]) -> None:
        """Send what has no answer. Raises `Unavailable`."""
        try:
            async with asyncio.timeout(MESSAGE_SECONDS):
                async with self._request("POST", headers=headers, body=body, seconds=MESSAGE_SECONDS) as answer:
                    if answer.status == 404 and self.session is not None:
                        self.session = None
                        self._lost(f"{answer.url} has ended the session")
        except TimeoutError:
            raise Unavailable(f"{self._server.place} took no message within {MESSAGE_SECONDS:g} s", sent=True) from None
        except ExecutionFailed as error:
            raise Unavailable(error.message, detail=error.detail) from None

    async def _listen(self) -> None:
        """What a legacy server sends unasked: a GET that stays open, and is opened anew where it ends."""
        decoder = SseDecoder(MAX_LINE)
        failures = 0
        opened = False
        while not self.ended.done() and self.session is not None:
            last = decoder.last_event_id
            decoder = _continued(decoder)
            headers = {"accept": EVENTS, **self._common()} | ({"last-event-id": last} if last else {})
            try:
                async with self._request("GET", headers=headers) as answer:
                    if answer.status == 404 and opened:
                        self.session = None
                        self._lost(f"{answer.url} has ended the session")
                    if answer.status in NO_STREAM:
                        return
                    if answer.status == 200 and answer.content_type == EVENTS:
                        failures = 0
                        opened = True
                        answer.idle = IDLE
                        events = self._events(answer, decoder)
                        try:
                            async for event in events:
                                await self._take_event(event)
                        finally:
                            await events.aclose()
                    else:
                        failures += 1
            except Unavailable as error:
                failures += 1
                if not error.sent:
                    self.on_unreachable(error.message)
            except ExecutionFailed:
                return
            pause = RETRY if decoder.retry is None else max(decoder.retry / 1000, 0.05)
            await asyncio.sleep(min(pause * 2 ** min(failures, 8), MAX_RETRY))


def _continued(decoder: SseDecoder) -> SseDecoder:
    """A decoder for the stream that goes on after this one's."""
    follower = SseDecoder(MAX_LINE, last_event_id=decoder.last_event_id)
    follower.retry = decoder.retry
    return follower


def _error_frame(answer: HttpAnswer) -> dict[str, object] | None:
    """The JSON-RPC error in a body, where there is one."""
    if answer.content_type != JSON:
        return None
    try:
        frames = parse(answer.body)
    except NotAFrame:
        return None
    return frames[0] if len(frames) == 1 and isinstance(frames[0].get("error"), dict) else None


def _speaks_of_session(frame: dict[str, object] | None) -> bool:
    """Whether an error is about an unknown session; some servers say so with 400."""
    if frame is None or not isinstance(error := frame.get("error"), dict):
        return False
    return "session" in str(error.get("message", "")).lower()  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
