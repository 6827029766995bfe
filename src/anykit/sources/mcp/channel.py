"""What carries frames between the SDK's session and a server: the SDK gets streams, the bytes are ours.

Channel
├── LineChannel           a child's stdin and stdout, or any other transport of lines
└── HttpChannel           either HTTP transport (http.py)

Imports the SDK; comes in with `session.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from abc import ABC, abstractmethod
from collections import deque
from types import TracebackType
from typing import Any, Self, TypeAlias, cast

import anyio
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from anykit.capabilities import CapabilityError, InvalidInput, JsonObject, Unavailable
from anykit.sources.connection import lose
from anykit.sources.hostile import clean_text
from anykit.transports import LineTransport, Oversized, TransportClosed

from .calls import current
from .frames import NotAFrame, encode, excerpt, parse, stray_id
from .mending import mend

log = logging.getLogger("anykit.sources.mcp")

LARGE = 256 * 1024
"""Bytes of a message that is read in a thread."""
BREATH = 32
"""Messages that nobody asked for, or lines of noise, between two pauses."""
PAUSE = 0.005
"""Seconds of such a pause: a server that never stops talking leaves the loop to others."""
LAST_WORDS = 2.0
"""Seconds that telling a server of a cancellation may take."""
VERSION_HEADER = "mcp-protocol-version"
MAX_MESSAGE = 4_096
"""Characters of an error's text."""

Delivery: TypeAlias = tuple[JSONRPCMessage, contextvars.Context | None]
"""A message, and the context of the request that it came for, where the transport can tell."""


class Channel(ABC):
    """Frames in both directions, until `ended`. The SDK's session reads and writes through `reader` and `writer`."""

    def __init__(self) -> None:
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Done once the server is lost, with the reason."""
        self.noise = 0
        """Lines or events that were no protocol, and were skipped."""
        self.last_noise = ""
        self.modern = False
        """Whether what is asked now is MCP 2026-07-28; the session says so with every message."""
        self._asked: dict[RequestId, str] = {}
        self._ready: deque[Delivery] = deque()
        self._unasked = 0

    # for the session

    @abstractmethod
    async def receive(self) -> Delivery:
        """Give the next message. Raises `Unavailable` at the end."""

    @abstractmethod
    async def send(self, item: SessionMessage) -> None:
        """Send one message. Raises `InvalidInput` for what JSON cannot carry, `Unavailable` where the server is lost."""

    @property
    def reader(self) -> Reader:
        """The SDK's read stream."""
        return Reader(self)

    @property
    def writer(self) -> Writer:
        """The SDK's write stream."""
        return Writer(self)

    # for the subclasses

    def _lost(self, reason: str) -> None:
        lose(self, reason)

    def _note(self, item: SessionMessage) -> JsonObject:
        """Remember what is asked, and give the message as JSON."""
        message = item.message
        if isinstance(item.metadata, ClientMessageMetadata) and item.metadata.headers is not None:
            version = item.metadata.headers.get(VERSION_HEADER)
            if version is not None:
                self.modern = version in MODERN_PROTOCOL_VERSIONS
        if isinstance(message, JSONRPCRequest):
            if message.method == "initialize":
                self.modern = False
            self._asked[message.id] = message.method
        return _plain(message)

    def _forget(self, id: RequestId) -> None:
        self._asked.pop(id, None)

    def _failed(self, id: RequestId, error: CapabilityError, context: contextvars.Context | None = None) -> None:
        """Answer a request of ours ourselves: there will be no answer, and this is why."""
        call = current.get() if context is None else context.get(current)
        if call is not None and call.failure is None:
            call.failure = error
        self._forget(id)
        self._deliver(_refusal(id, INTERNAL_ERROR, error.message), context)

    def _deliver(self, message: JSONRPCMessage, context: contextvars.Context | None = None) -> None:
        self._ready.append((message, context))

    async def _frames(self, data: bytes) -> list[JsonObject]:
        """The frames in `data`, answers mended. Raises `NotAFrame`."""
        if len(data) > LARGE:
            return await asyncio.to_thread(self._read, data)
        return self._read(data)

    def _read(self, data: bytes) -> list[JsonObject]:
        frames = parse(data)
        for frame in frames:
            if "method" in frame:
                continue
            frame["id"] = id = _own_id(frame.get("id"), self._asked)
            method = None if id is None else self._asked.get(id)
            result: Any = frame.get("result")
            if method is not None and isinstance(result, dict):
                frame["result"] = mend(
                    method, cast(JsonObject, result), modern=self.modern or method == "server/discover"
                )
        return frames

    def _take(self, frames: list[JsonObject], context: contextvars.Context | None = None) -> bool:
        """Deliver frames; whether one of them is an answer."""
        answered = False
        for frame in frames:
            message = _message(frame)
            if isinstance(message, JSONRPCResponse | JSONRPCError):
                answered = True
            id = message.id if isinstance(message, JSONRPCResponse | JSONRPCError) else None
            if id is None or self._asked.pop(id, None) is None:
                self._unasked += 1
            self._deliver(message, context)
        return answered

    async def _breathe(self) -> None:
        """Pause now and then where the server talks unasked."""
        if self._unasked >= BREATH:
            self._unasked = 0
            await asyncio.sleep(PAUSE)

    def _noise(self, data: bytes) -> None:
        self.noise += 1
        self._unasked += 1
        self.last_noise = clean_text(excerpt(data), 200)
        if self.noise == 1:
            log.info("what an MCP server sent is no MCP and is skipped: %s", self.last_noise)


class Reader:
    """The SDK's read stream over a channel. `last_context` is what the SDK handles the last message in."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.last_context: contextvars.Context | None = None

    async def receive(self) -> SessionMessage | Exception:
        """The next message. Raises `anyio.EndOfStream`."""
        try:
            message, self.last_context = await self._channel.receive()
        except Unavailable:
            raise anyio.EndOfStream from None
        return SessionMessage(message)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """Nothing: the channel is closed by whoever opened it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return None


class Writer:
    """The SDK's write stream over a channel."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def send(self, item: SessionMessage, /) -> None:
        """Send one message. What is said to a server that is lost already is dropped; a request fails."""
        message = item.message
        try:
            if _is_cancellation(message):
                # Those who cancel wait for this: it is short, whatever the server does.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LAST_WORDS):
                        await self._channel.send(item)
            else:
                await self._channel.send(item)
        except InvalidInput as error:
            if isinstance(message, JSONRPCRequest):
                raise
            if isinstance(message, JSONRPCResponse):
                await self.send(SessionMessage(_refusal(message.id, INTERNAL_ERROR, error.message)))
        except Unavailable as error:
            call = current.get()
            if call is not None and call.failure is None and isinstance(message, JSONRPCRequest):
                call.failure = error
            raise anyio.BrokenResourceError from None

    async def aclose(self) -> None:
        """Nothing: the channel is closed by whoever opened it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return None


class LineChannel(Channel):
    """A frame a line. `transport` stays the opener's to close."""

    def __init__(self, transport: LineTransport) -> None:
        super().__init__()
        self._transport = transport

    async def receive(self) -> Delivery:
        """See `Channel`."""
        while not self._ready:
            await self._breathe()
            try:
                item = await self._transport.receive()
            except TransportClosed as closed:
                self._lost(closed.reason)
                raise
            if isinstance(item, Oversized):
                self._too_large(item)
                continue
            try:
                self._take(await self._frames(item))
            except NotAFrame as error:
                self._noise(item)
                id = stray_id(item)
                if id in self._asked:
                    self._failed_line(id, error)
        return self._ready.popleft()

    async def send(self, item: SessionMessage) -> None:
        """See `Channel`."""
        line = encode(self._note(item))
        cancelled = cancelled_id(item.message)
        if cancelled is not None:
            self._forget(cancelled)
        try:
            await self._transport.send(line)
        except TransportClosed as closed:
            self._lost(closed.reason)
            raise

    def _too_large(self, item: Oversized) -> None:
        """Whose answer it was is not known, unless only one is awaited."""
        awaited = [id for id, method in self._asked.items() if method != "subscriptions/listen"]
        if len(awaited) == 1:
            self._forget(awaited[0])
            self._deliver(_refusal(awaited[0], INTERNAL_ERROR, str(item)))
        elif awaited:
            self._lost(str(item))
            raise Unavailable(str(item), sent=True)

    def _failed_line(self, id: RequestId, error: NotAFrame) -> None:
        self._forget(id)
        self._deliver(_refusal(id, INTERNAL_ERROR, f"the answer is not MCP: {error}"))


def _plain(message: JSONRPCMessage) -> JsonObject:
    """A message as JSON, without the SDK's walk through it: what is in it is JSON already."""
    plain: JsonObject = {"jsonrpc": "2.0"}
    match message:
        case JSONRPCRequest():
            plain |= {"id": message.id, "method": message.method}
            if message.params is not None:
                plain["params"] = message.params
        case JSONRPCNotification():
            plain["method"] = message.method
            if message.params is not None:
                plain["params"] = message.params
        case JSONRPCResponse():
            plain |= {"id": message.id, "result": message.result}
        case JSONRPCError():
            plain |= {"id": message.id, "error": message.error.model_dump(exclude_unset=True)}
    return plain


def _message(frame: JsonObject) -> JSONRPCMessage:
    """A frame as the SDK takes it; `parse` has seen that it is one."""
    id: Any = frame.get("id")
    params: Any = frame.get("params")
    if "method" in frame:
        # Params by position are none of MCP's.
        kept: dict[str, Any] = {"params": params} if isinstance(params, dict) else {}
        if id is None or isinstance(id, bool | float):
            return JSONRPCNotification.model_construct(jsonrpc="2.0", method=frame["method"], **kept)
        return JSONRPCRequest.model_construct(jsonrpc="2.0", id=id, method=frame["method"], **kept)
    if "error" in frame:
        given: Any = frame["error"]
        if not isinstance(given, dict):
            return _refusal(id, INTERNAL_ERROR, str(given))
        error = cast(JsonObject, given)
        code: Any = error.get("code")
        if not isinstance(code, int) or isinstance(code, bool):
            code = INTERNAL_ERROR
        return _refusal(id, code, str(error.get("message", "")), error.get("data"))
    result: Any = frame.get("result")
    if result is None:
        result = {}
    if not isinstance(result, dict) or id is None:
        return _refusal(id, INTERNAL_ERROR, "the answer's result is no object")
    return JSONRPCResponse.model_construct(jsonrpc="2.0", id=id, result=result)


def _refusal(id: Any, code: int, message: str, data: Any = None) -> JSONRPCError:
    error = ErrorData(code=code, message=clean_text(message, MAX_MESSAGE), data=data)
    return JSONRPCError.model_construct(jsonrpc="2.0", id=id, error=error)


def _own_id(id: Any, asked: dict[RequestId, str]) -> RequestId | None:
    """The id of ours that a peer means: some send a number as a text, or 5.0 for 5."""
    if isinstance(id, bool) or id is None:
        return None
    if isinstance(id, float):
        id = int(id) if id.is_integer() else str(id)
    if isinstance(id, str) and id not in asked and id.isdecimal() and id.isascii() and len(id) < 19:
        id = int(id)
    return id if isinstance(id, int | str) else None


def _is_cancellation(message: JSONRPCMessage) -> bool:
    return isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled"


def cancelled_id(message: JSONRPCMessage) -> RequestId | None:
    """The request of ours that a message takes back."""
    if not _is_cancellation(message):
        return None
    assert isinstance(message, JSONRPCNotification)
    id = (message.params or {}).get("requestId")
    return id if isinstance(id, int | str) else None
