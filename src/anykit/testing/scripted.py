"""A scripted A2E host in memory: what it answers is up to the test, also what no host should ever answer."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, cast

from anykit.capabilities import JsonObject
from anykit.transports import LineTransport, MemoryTransport, TransportClosed, memory_pair

Handler: TypeAlias = Callable[[JsonObject], object] | Callable[[JsonObject], Awaitable[object]]
"""Answers one request: with fields of the reply, a raw line (bytes), several of both (a list), or None for silence."""


class ScriptedHost:
    """Serves any number of connections; `connect` makes one, as a target of `A2EClient` wants it.

        async with scripted_host() as host:
            host.tools = [{"name": "add", "description": "Adds."}]
            host.answers["tool/call/req"] = lambda request: {"type": "tool/call/resp", "data": {...}}
            async with A2EClient(host.connect) as client: ...

    Without a script it shakes hands, lists `tools` and `toolkits`, configures any toolkit that it lists, answers pings, and
    answers a call with its own arguments.
    """

    def __init__(self) -> None:
        self.tools: list[Any] = []
        """What `tool/list/resp` holds, as raw JSON values."""
        self.toolkits: list[Any] = []
        """What `toolkit/list/resp` holds."""
        self.answers: dict[str, Handler] = {}
        """By type of request; wins over what is done without a script."""
        self.handshake: JsonObject = {}
        """Fields that go into the handshake's reply."""
        self.greeting: list[bytes] = []
        """Lines that come before anything else, as a chatty child prints them."""
        self.refuse: Exception | None = None
        """Raised instead of connecting."""
        self.secure = True
        self.received: list[JsonObject] = []
        """Every message, over all connections."""
        self.connections: list[MemoryTransport] = []
        """The host's ends, in the order in which they were made."""
        self.configured: list[str] = []
        """Toolkits configured in the newest connection."""
        self._serving: set[asyncio.Task[None]] = set()
        self._heard = asyncio.Event()

    async def connect(self) -> LineTransport:
        """Make a connection and give the agent's end."""
        if self.refuse is not None:
            raise self.refuse
        ours, theirs = memory_pair()
        theirs.secure = self.secure
        self.connections.append(ours)
        self.configured = []
        self._spawn(self._serve(ours))
        return theirs

    async def drop(self) -> None:
        """Go away from the newest connection without a word."""
        await self.connections[-1].close()

    async def push(self, data: JsonObject, *, kind: str = "status") -> None:
        """Say something that nobody asked for."""
        event = {"type": "invoke/event", "id": "push", "kind": kind, "req_id": "", "data": data, "seq": 0}
        await self.say(event)

    async def say(self, message: JsonObject | bytes) -> None:
        """Send one message, or one raw line, on the newest connection."""
        await self.connections[-1].send(_line(message))

    def of_type(self, kind: str) -> list[JsonObject]:
        """The messages of one type that came so far."""
        return [message for message in self.received if message.get("type") == kind]

    async def heard(self, kind: str, count: int = 1) -> list[JsonObject]:
        """Wait until so many messages of one type have come. The caller brings the deadline."""
        while len(self.of_type(kind)) < count:
            self._heard.clear()
            await self._heard.wait()
        return self.of_type(kind)

    async def close(self) -> None:
        """End every connection and every answer that is still being made."""
        for connection in self.connections:
            await connection.close()
        serving = list(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, transport: MemoryTransport) -> None:
        with contextlib.suppress(TransportClosed):
            for line in self.greeting:
                await transport.send(line)
            while True:
                line = await transport.receive()
                if isinstance(line, bytes):
                    message = cast(JsonObject, json.loads(line))
                    self.received.append(message)
                    self._heard.set()
                    self._spawn(self._answer(message, transport))

    async def _answer(self, message: JsonObject, transport: MemoryTransport) -> None:
        answer = self.answers.get(str(message.get("type")), self._unscripted)
        given = answer(message)
        if inspect.isawaitable(given):
            given = await given
        replies = cast("list[object]", given) if isinstance(given, list) else [given]
        with contextlib.suppress(TransportClosed):
            for reply in replies:
                if reply is not None:
                    await transport.send(_line(_addressed(reply, message)))

    def _unscripted(self, message: JsonObject) -> object:
        match message.get("type"):
            case "handshake/req":
                caps: list[JsonObject] = [{"capability": cap, "enabled": True} for cap in message.get("agent_caps", ())]
                return {
                    "type": "handshake/resp",
                    "session_id": f"session-{len(self.connections)}",
                    "accepted_caps": caps,
                    "max_parallel": 64,
                    "ok": True,
                    "reason": "",
                    **self.handshake,
                }
            case "ping":
                return {"type": "pong", "uptime_seconds": 1.0}
            case "tool/list/req":
                return {"type": "tool/list/resp", "tools": self.tools}
            case "toolkit/list/req":
                return {"type": "toolkit/list/resp", "toolkits": [self._as_listed(one) for one in self.toolkits]}
            case "toolkit/configure/req":
                name = str(message.get("toolkit_name"))
                self.configured.append(name)
                return {"type": "toolkit/configure/resp", "toolkit_name": name, "status": "ok", "message": "done"}
            case "tool/call/req":
                return called(message, message.get("arguments"))
            case _:
                return None

    def _as_listed(self, toolkit: Any) -> Any:
        if not isinstance(toolkit, Mapping):
            return toolkit
        fields = dict(cast("Mapping[str, Any]", toolkit))
        return {**fields, "configured": fields.get("configured", False) or fields.get("name") in self.configured}


def called(request: JsonObject, data: Any, **fields: Any) -> JsonObject:
    """A `tool/call/resp` that gives `data`; `fields` go into its result."""
    result = {"success": True, "tool_name": request.get("tool_name", ""), "data": data, "duration_ms": 1, **fields}
    return {"type": "tool/call/resp", "data": result, "created_at": 0.0}


def refused(code: str, message: str = "", *, detail: JsonObject | None = None, retryable: bool = False) -> JsonObject:
    """An `error` message."""
    return {"type": "error", "code": code, "message": message, "detail": detail or {}, "retryable": retryable}


def event(request: JsonObject, kind: str, data: JsonObject, seq: int = 0) -> JsonObject:
    """A `tool/event` of a call."""
    return {"type": "tool/event", "kind": kind, "req_id": request["id"], "data": data, "seq": seq}


@asynccontextmanager
async def scripted_host(tools: Sequence[Any] = (), toolkits: Sequence[Any] = ()) -> AsyncGenerator[ScriptedHost]:
    """A host that ends with the block."""
    host = ScriptedHost()
    host.tools = list(tools)
    host.toolkits = list(toolkits)
    try:
        yield host
    finally:
        await host.close()


def _addressed(reply: object, request: JsonObject) -> JsonObject | bytes:
    if isinstance(reply, bytes):
        return reply
    fields = cast(JsonObject, reply)
    return {"id": f"re-{request.get('id')}", "version": "1.0", "ts": 0.0, "req_id": request.get("id", ""), **fields}


def _line(message: JsonObject | bytes) -> bytes:
    return (
        message
        if isinstance(message, bytes)
        else json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")
    )
