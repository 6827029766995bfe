"""Agents for tests: a scripted one on a real loopback socket, which answers in whatever dialect the test wants."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from transports.peers import Peer, Request, http, peer

Json: TypeAlias = Any
Handler: TypeAlias = "Callable[[Asked], Any]"
"""Gives a result, an `Error`, a `Stream`, the bytes of a whole answer, or a coroutine of one."""


@dataclass(frozen=True)
class Error:
    """A JSON-RPC error."""

    code: int
    message: str = "no"


@dataclass(frozen=True)
class Stream:
    """Results, one event each; then the stream ends, or breaks off, or stays open."""

    results: Iterable[Json]
    end: str = "end"
    rpc: bool = True


@dataclass(frozen=True)
class Asked:
    """A request that arrived."""

    method: str
    """The JSON-RPC method, or `POST /message:send`."""
    params: Json
    http: Request

    @property
    def message(self) -> Json:
        return self.params["message"]

    @property
    def text(self) -> str:
        parts = self.message.get("parts") or self.message.get("content")
        return "".join(part.get("text", "") for part in parts)


@dataclass
class ScriptedAgent:
    """Its card, its answers, and what it was asked."""

    card: Json
    handler: Handler
    card_path: str = "/.well-known/agent-card.json"
    peer: Peer = field(init=False, repr=False)
    asked: list[Asked] = field(default_factory=list[Asked])

    @property
    def url(self) -> str:
        return self.peer.url

    @property
    def card_url(self) -> str:
        return self.url + self.card_path

    @property
    def methods(self) -> list[str]:
        return [one.method for one in self.asked]

    async def answer(self, request: Request) -> bytes | None:
        path = request.path.partition("?")[0]
        if request.method == "GET" and path == self.card_path:
            card = self.card() if callable(self.card) else self.card
            if isinstance(card, bytes):
                return card
            return http(200, "application/json", json.dumps(card).encode())
        body: Json = json.loads(request.body) if request.body else {}
        rpc = "jsonrpc" in body
        asked = Asked(
            body["method"] if rpc else f"{request.method} {path}", body.get("params") if rpc else body, request
        )
        self.asked.append(asked)
        given: Json = self.handler(asked)
        if inspect.isawaitable(given):
            given = await given
        if given is None:
            return None
        if isinstance(given, bytes):
            return given
        if isinstance(given, Stream):
            await send_stream(request, given, body.get("id"))
            return b"" if given.end == "end" else None
        if isinstance(given, Error):
            answer: Json = {
                "jsonrpc": "2.0",
                "id": body.get("id"),
                "error": {"code": given.code, "message": given.message},
            }
        else:
            answer = {"jsonrpc": "2.0", "id": body.get("id"), "result": given} if rpc else given
        return http(200, "application/json", json.dumps(answer).encode())


async def send_stream(request: Request, stream: Stream, id: Json) -> None:
    """Write the events; how it ends is the stream's own."""
    writer = request.writer
    writer.write(b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    for given in stream.results:
        result: Json = await cast(Any, given)() if callable(given) else given
        if isinstance(result, Error):
            payload: Json = {"jsonrpc": "2.0", "id": id, "error": {"code": result.code, "message": result.message}}
        else:
            payload = {"jsonrpc": "2.0", "id": id, "result": result} if stream.rpc else result
        data = result if isinstance(result, bytes) else f"data: {json.dumps(payload)}\n\n".encode()
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await writer.drain()
    if stream.end == "end":
        writer.write(b"0\r\n\r\n")
        await writer.drain()
    elif stream.end == "hang":
        await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def scripted(
    handler: Handler, card: Json = None, *, card_path: str = "/.well-known/agent-card.json"
) -> AsyncGenerator[ScriptedAgent]:
    """Serve an agent until the block ends. A card is completed with the agent's url where it has none."""
    agent = ScriptedAgent(card or {}, handler, card_path)
    async with peer(agent.answer) as agent.peer:
        if card is None:
            agent.card = {"name": "Calc Agent", "url": agent.url + "/", "skills": [{"id": "add"}]}
        yield agent


def task(state: str = "completed", text: str | None = None, *, id: str = "t1", **more: Json) -> Json:
    """A task as the contract spells it."""
    made: Json = {"id": id, "status": {"state": state}, **more}
    if text is not None:
        made["artifacts"] = [{"parts": [{"kind": "text", "text": text}]}]
    return made


def card_1_0(url: str, *, streaming: bool = False, binding: str = "JSONRPC", **more: Json) -> Json:
    """A card of A2A 1.0."""
    card: Json = {
        "name": "Calc Agent",
        "description": "Calculates.",
        "version": "1.0.0",
        "supportedInterfaces": [{"url": url, "protocolBinding": binding, "protocolVersion": "1.0"}],
        "capabilities": {"streaming": streaming},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "add", "name": "Add", "description": "Adds two numbers", "tags": ["sums"]}],
        **more,
    }
    return card


def card_0_3(url: str, *, streaming: bool = False, transport: str = "JSONRPC", **more: Json) -> Json:
    """A card of A2A 0.3."""
    card: Json = {
        "name": "Calc Agent",
        "description": "Calculates.",
        "version": "1.0.0",
        "protocolVersion": "0.3.0",
        "url": url,
        "preferredTransport": transport,
        "capabilities": {"streaming": streaming},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "add", "name": "Add", "description": "Adds two numbers", "tags": ["sums"]}],
        **more,
    }
    return card
