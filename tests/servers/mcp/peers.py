"""Clients of the MCP face that say exactly what a test wants said: over lines in memory, and over real HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import aiohttp
from pydantic import BaseModel, SecretStr

from anykit import ToolError, Toolkit, Workbench, prompt, resource, tool
from anykit.capabilities import CapabilityContext, Log, Progress, Question
from anykit.servers.http import Server
from anykit.servers.mcp import Limits, mcp_mount, serve_mcp_lines
from anykit.transports import MemoryTransport, memory_pair

Fields: TypeAlias = dict[str, Any]

WAIT = 8.0
"""Seconds that a test waits for anything."""
LEGACY = "2025-11-25"
MODERN = "2026-07-28"
FORM: Fields = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


# what is offered


@tool(idempotent=True, tags=["math"], title="Addition")
async def add(a: int, b: int) -> int:
    """Adds two numbers.

    Args:
        a: The first.
    """
    return a + b


@tool
async def echo(value: Any) -> Any:
    """Gives back what it got."""
    return value


@tool
async def fail(reason: str) -> None:
    """Fails, and says why."""
    raise ToolError(reason, structured={"why": reason})


@tool
async def crash() -> None:
    """Breaks."""
    raise RuntimeError("secret-traceback")


@tool
async def narrate(steps: int, context: CapabilityContext) -> str:
    """Tells of its steps."""
    for step in range(steps):
        context.emit(Progress(step + 1, steps, f"step {step}"))
        context.emit(Log("info", f"did {step}"))
        context.emit(Log("debug", f"detail {step}"))
    return "done"


@tool
async def greet(context: CapabilityContext) -> str:
    """Asks for a name."""
    answer = await context.ask(Question("input", "What is your name?", FORM))
    return f"Hello, {answer.data['name']}!" if answer.ok else "Hello, nobody."


class Notes(Toolkit):
    """Keeps notes."""

    name = "notes"
    alias = "Notes"

    class Config(BaseModel):
        """Where they are kept."""

        folder: str
        token: SecretStr | None = None
        size: int = 10

    config: Config

    @tool
    async def list_notes(self) -> str:
        """Lists them."""
        return f"notes in {self.config.folder}"


class Slow:
    """A tool that runs until it is let go, and remembers how it ended."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.ended = asyncio.Event()
        self.release = asyncio.Event()
        self.cancelled = 0
        self.runs = 0

    def tool(self) -> Any:
        @tool
        async def slow() -> str:
            """Takes its time."""
            self.runs += 1
            self.started.set()
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                await asyncio.sleep(0)  # a cleanup that waits is not cut short
                raise
            finally:
                self.ended.set()
            return "slept"

        return slow


@resource("test://fixed", media_type="text/plain")
def fixed() -> str:
    """A text."""
    return "fixed"


@resource("test://item/{id}")
def item(id: str) -> Fields:
    """One of many."""
    return {"id": id}


@resource("test://broken")
def broken() -> str:
    """Breaks."""
    raise RuntimeError("secret-traceback")


@prompt
def report(city: str, tone: str = "dry") -> str:
    """Asks for a report.

    Args:
        city: Where.
    """
    return f"Weather in {city}, {tone}"


OFFERED = (add, echo, fail, crash, narrate, greet, Notes, fixed, item, broken, report)


async def until(reached: Callable[[], bool]) -> None:
    """Wait for what nobody tells of."""
    async with asyncio.timeout(WAIT):
        while not reached():  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.005)


# messages


def call(id: Any, name: str, arguments: Fields | None = None, **params: Any) -> Fields:
    """A tool call."""
    return request(id, "tools/call", name=name, arguments=arguments or {}, **params)


def request(id: Any, method: str, **params: Any) -> Fields:
    """A request."""
    message: Fields = {"jsonrpc": "2.0", "id": id, "method": method}
    return {**message, "params": params} if params else message


def notification(method: str, **params: Any) -> Fields:
    """A notification."""
    message: Fields = {"jsonrpc": "2.0", "method": method}
    return {**message, "params": params} if params else message


def initialize(id: Any = 0, version: str = LEGACY, capabilities: Fields | None = None) -> Fields:
    """The first message of the old era."""
    return request(
        id,
        "initialize",
        protocolVersion=version,
        capabilities=capabilities or {},
        clientInfo={"name": "test", "version": "1"},
    )


def envelope(capabilities: Fields | None = None, **more: Any) -> Fields:
    """What each request of the new era carries."""
    return {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": capabilities or {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        **more,
    }


# over lines


class Lines:
    """A client over memory."""

    def __init__(self, transport: MemoryTransport) -> None:
        self.transport = transport
        self.heard: list[Fields] = []
        self._numbers = itertools.count(1)

    async def say(self, message: Fields | bytes) -> None:
        await self.transport.send(message if isinstance(message, bytes) else json.dumps(message).encode())

    async def raw(self) -> bytes:
        async with asyncio.timeout(WAIT):
            line = await self.transport.receive()
        assert isinstance(line, bytes)
        return line

    async def hear(self) -> Fields:
        message: Fields = json.loads(await self.raw())
        self.heard.append(message)
        return message

    async def answer(self, id: Any) -> Fields:
        """The answer to a request; what comes before it is in `heard`."""
        while True:
            message = await self.hear()
            if "method" not in message and message["id"] == id and type(message["id"]) is type(id):
                return message

    async def ask(self, message: Fields) -> Fields:
        await self.say(message)
        return await self.answer(message["id"])

    async def result(self, method: str, **params: Any) -> Fields:
        answer = await self.ask(request(f"r{next(self._numbers)}", method, **params))
        assert "result" in answer, answer
        return answer["result"]

    async def shake_hands(self, version: str = LEGACY, capabilities: Fields | None = None) -> Fields:
        answer = await self.ask(initialize("init", version, capabilities))
        await self.say(notification("notifications/initialized"))
        await self.result("ping")  # it has been heard
        return answer["result"]

    def notifications(self, method: str) -> list[Fields]:
        return [one.get("params", {}) for one in self.heard if one.get("method") == method]


@contextlib.asynccontextmanager
async def lines(
    bench: Any, *, limits: Limits | None = None, stop: asyncio.Event | None = None
) -> AsyncGenerator[Lines]:
    """A client over memory that has said nothing yet."""
    mine, theirs = memory_pair()
    serving = asyncio.create_task(serve_mcp_lines(bench, theirs, limits=limits, stop=stop))
    try:
        yield Lines(mine)
    finally:
        await mine.close()
        async with asyncio.timeout(WAIT):
            await serving


@contextlib.asynccontextmanager
async def shaken(
    *sources: Any, capabilities: Fields | None = None, version: str = LEGACY, limits: Limits | None = None
) -> AsyncGenerator[tuple[Lines, Workbench]]:
    """A client of the old era that has shaken hands, and the workbench behind it."""
    async with Workbench(*(sources or OFFERED)) as bench, lines(bench, limits=limits) as client:
        await client.shake_hands(version, capabilities)
        yield client, bench


# over HTTP


@dataclass
class Reply:
    """An HTTP answer, read whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def kind(self) -> str:
        return self.headers.get("Content-Type", "").partition(";")[0]

    @property
    def messages(self) -> list[Fields]:
        """What it says: one body, or the data of its events."""
        if self.kind == "application/json":
            return [self.json]
        return [json.loads(event["data"]) for event in events_of(self.body) if event.get("data")]

    @property
    def last(self) -> Fields:
        return self.messages[-1]


def events_of(body: bytes) -> list[dict[str, str]]:
    """The server-sent events in a body; comments are left out."""
    found: list[dict[str, str]] = []
    for block in body.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line and not line.startswith(":"))
        if fields:
            found.append(fields)
    return found


@dataclass
class Http:
    """A client over HTTP."""

    url: str
    client: aiohttp.ClientSession
    bench: Any = None
    server: Server | None = None
    session: str = ""
    version: str = LEGACY
    accept: str = "application/json, text/event-stream"
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    def headers(self, **more: str) -> dict[str, str]:
        headers = {"Accept": self.accept, "Content-Type": "application/json", **more}
        if self.session:
            headers = {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": self.version, **headers}
        return headers

    async def post(
        self, message: Fields | bytes, *, headers: Mapping[str, str] | None = None, without: Sequence[str] = ()
    ) -> Reply:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        sent = {**self.headers(), **(headers or {})}
        sent = {name: value for name, value in sent.items() if name not in without}
        return await self.send("POST", sent, body)

    async def send(self, method: str, headers: Mapping[str, str] | None = None, body: bytes | None = None) -> Reply:
        async with asyncio.timeout(WAIT):
            async with self.client.request(method, self.url, data=body, headers=headers or self.headers()) as answer:
                return Reply(answer.status, answer.headers, await answer.read())

    async def shake_hands(self, version: str = LEGACY, capabilities: Fields | None = None) -> Fields:
        reply = await self.post(initialize(0, version, capabilities))
        assert reply.status == 200, reply.body
        self.session = reply.headers["Mcp-Session-Id"]
        self.version = reply.json["result"]["protocolVersion"]
        done = await self.post(notification("notifications/initialized"))
        assert done.status == 202
        return reply.json["result"]

    async def ask(self, method: str, **params: Any) -> Reply:
        """A request of the old era."""
        return await self.post(request(next(self.numbers), method, **params))

    async def modern(
        self, method: str, *, capabilities: Fields | None = None, meta: Fields | None = None, **params: Any
    ) -> Reply:
        """A request of the new era."""
        message = request(next(self.numbers), method, _meta=envelope(capabilities, **(meta or {})), **params)
        return await self.post(message, headers=modern_headers(method, params))

    @contextlib.asynccontextmanager
    async def stream(
        self, method: str, message: Fields | None = None, headers: Mapping[str, str] | None = None
    ) -> AsyncGenerator[Stream]:
        """A request whose answer is read as it comes."""
        body = None if message is None else json.dumps(message).encode()
        async with self.client.request(
            method, self.url, data=body, headers={**self.headers(), **(headers or {})}
        ) as answer:
            yield Stream(answer)


def modern_headers(method: str, params: Fields) -> dict[str, str]:
    """The headers that go with a request of the new era."""
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    name = params.get("uri") if method == "resources/read" else params.get("name")
    if isinstance(name, str):
        headers["Mcp-Name"] = name
    return headers


class Stream:
    """Server-sent events, one by one."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.answer = answer
        self.ids: list[str] = []

    async def event(self) -> dict[str, str]:
        """The next event; the empty one is the end."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(WAIT):
            async for line in self.answer.content:
                text = line.decode().rstrip("\n")
                if not text:
                    if fields:
                        break
                elif not text.startswith(":"):
                    name, _, value = text.partition(": ")
                    fields[name] = value
        if "id" in fields:
            self.ids.append(fields["id"])
        return fields

    async def message(self) -> Fields:
        """The next message; beginnings without one are passed over."""
        while True:
            event = await self.event()
            if event.get("data"):
                return json.loads(event["data"])
            assert event, "the stream has ended"


@contextlib.asynccontextmanager
async def http(
    *sources: Any, bench: Any = None, token: str = "", allow_origins: Sequence[str] = (), **mount: Any
) -> AsyncGenerator[Http]:
    """A client over HTTP of a server with a workbench behind it."""
    async with contextlib.AsyncExitStack() as stack:
        if bench is None:
            bench = await stack.enter_async_context(Workbench(*(sources or OFFERED)))
        up = asyncio.Event()
        server = Server(
            [mcp_mount(bench, token=token, **mount)],
            port=0,
            token=token,
            allow_origins=allow_origins,
            listening=lambda address: up.set(),
        )
        serving = asyncio.create_task(server.serve(signals=False))
        try:
            async with asyncio.timeout(WAIT):
                await up.wait()
            assert server.address is not None
            client = await stack.enter_async_context(aiohttp.ClientSession())
            yield Http(f"{server.address.url}/mcp", client, bench, server)
        finally:
            await stack.aclose()
            server.stop()
            async with asyncio.timeout(WAIT * 2):
                await serving
