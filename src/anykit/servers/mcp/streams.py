"""The SDK's streams over what is ours: messages go in one by one, and what comes out is handed to a function."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, Self, TypeVar

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from anykit.capabilities import JsonObject

from .jsonrpc import Incoming

T = TypeVar("T")
Send = Callable[[SessionMessage], Awaitable[None]]


class Reader:
    """What the SDK reads."""

    def __init__(self) -> None:
        self._items: deque[SessionMessage] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False

    def put(self, item: SessionMessage) -> None:
        """A message from the client. After the end it is dropped."""
        if not self._closed:
            self._items.append(item)
            self._wake()

    def close(self) -> None:
        """Nothing more comes."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def receive(self) -> SessionMessage | Exception:
        """The next message. Raises `anyio.EndOfStream`."""
        while not self._items:
            if self._closed:
                raise anyio.EndOfStream
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._items.popleft()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """See `close`."""
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        self.close()
        return None


class Writer:
    """What the SDK writes to."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def send(self, item: SessionMessage, /) -> None:
        """Hand a message on."""
        await self._send(item)

    async def aclose(self) -> None:
        """Nothing: whoever takes the messages has its own end."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return None


_MARK: Final = f"{secrets.token_hex(8)}:"


def marked(id: T) -> T | str:
    """An id as the SDK is given it, which takes "1" and 1 for the same request: such texts get a mark."""
    if not isinstance(id, str):
        return id
    try:
        int(id)
    except ValueError:
        return id
    return _MARK + id


def bare(id: T) -> T | str:
    """The client's own id for one of the SDK's."""
    return id.removeprefix(_MARK) if isinstance(id, str) else id


def from_json(incoming: Incoming) -> JSONRPCMessage | None:
    """A message as the SDK takes it; None for a response that is none."""
    message = incoming.message
    match incoming.kind:
        case "request":
            assert incoming.id is not None
            return JSONRPCRequest(jsonrpc="2.0", id=marked(incoming.id), method=incoming.method, params=incoming.params)
        case "notification":
            params = incoming.params
            if incoming.method == "notifications/cancelled" and params is not None and "requestId" in params:
                params = {**params, "requestId": marked(params["requestId"])}
            return JSONRPCNotification(jsonrpc="2.0", method=incoming.method, params=params)
        case "response":
            try:
                if "error" in message:
                    return JSONRPCError.model_validate(message)
                return JSONRPCResponse.model_validate(message)
            except ValueError:
                return None


def to_json(message: JSONRPCMessage) -> JsonObject:
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
            plain |= {"id": bare(message.id), "result": message.result}
        case JSONRPCError():
            error: JsonObject = {"code": message.error.code, "message": message.error.message}
            if message.error.data is not None:
                error["data"] = message.error.data
            plain |= {"id": bare(message.id), "error": error}
    return plain
