"""Agents that talk to a host, over memory and over real HTTP: what the tests of this room share."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncGenerator, Callable
from typing import Any, TypeAlias

import aiohttp
from pydantic import BaseModel, SecretStr

from anykit import ToolError, Toolkit, tool
from anykit.capabilities import Artifact, CapabilityContext, Log, Progress, Status, TextPart
from anykit.runtime import Source
from anykit.servers import A2EApp, A2EHost, Address, Server, a2e_mount, serve_connection
from anykit.servers.a2e import Limits
from anykit.transports import MemoryTransport, memory_pair
from runtime_parts import Bench, functions, toolkit

Fields: TypeAlias = dict[str, Any]

WAIT = 5.0
"""Seconds that a test waits for anything."""


class Agent:
    """One end of a session in memory."""

    def __init__(self, transport: MemoryTransport) -> None:
        self.transport = transport
        self.session_id = ""
        self.heard: list[Fields] = []
        """Everything that came, in order."""
        self._numbers = itertools.count(1)

    async def send(self, type: str, **fields: Any) -> str:
        id = fields.pop("id", f"m{next(self._numbers)}")
        await self.raw(json.dumps({"type": type, "id": id, **fields}).encode())
        return id

    async def raw(self, line: bytes) -> None:
        await self.transport.send(line)

    async def receive(self) -> Fields:
        async with asyncio.timeout(WAIT):
            line = await self.transport.receive()
        assert isinstance(line, bytes)
        message: Fields = json.loads(line)
        self.heard.append(message)
        return message

    async def reply_to(self, id: str) -> Fields:
        """The reply to a message; events and pushes before it are in `heard`."""
        while True:
            message = await self.receive()
            if message.get("req_id") == id and not message["type"].endswith("/event"):
                return message

    async def ask(self, type: str, **fields: Any) -> Fields:
        return await self.reply_to(await self.send(type, **fields))

    async def handshake(self, *caps: str, token: str = "") -> Fields:
        reply = await self.ask("handshake/req", agent_caps=list(caps or ("tools", "toolkits")), auth_token=token)
        self.session_id = reply["session_id"]
        return reply

    async def call(self, name: str, arguments: Fields | None = None, **fields: Any) -> Fields:
        return await self.ask("tool/call/req", tool_name=name, arguments=arguments or {}, **fields)

    async def configure(self, name: str, config: Fields, **fields: Any) -> Fields:
        return await self.ask("toolkit/configure/req", toolkit_name=name, config=config, **fields)

    async def tools(self, **fields: Any) -> list[str]:
        reply = await self.ask("tool/list/req", **fields)
        return [one["name"] for one in reply["tools"]]

    async def toolkits(self, **fields: Any) -> dict[str, Fields]:
        reply = await self.ask("toolkit/list/req", **fields)
        return {one["name"]: one for one in reply["toolkits"]}


@contextlib.asynccontextmanager
async def connected(host: A2EHost, *, secure: bool = True) -> AsyncGenerator[Agent, None]:
    """An agent in memory that has not shaken hands."""
    mine, theirs = memory_pair()
    theirs.secure = secure
    serving = asyncio.create_task(serve_connection(host, theirs))
    try:
        yield Agent(mine)
    finally:
        await mine.close()
        async with asyncio.timeout(WAIT):
            await serving


@contextlib.asynccontextmanager
async def agent_of(host: A2EHost, *caps: str, token: str = "", secure: bool = True) -> AsyncGenerator[Agent, None]:
    """An agent in memory whose session is open."""
    async with connected(host, secure=secure) as agent:
        await agent.handshake(*caps, token=token)
        yield agent


# what is offered


@tool(tags=["math", "pure"], idempotent=True)
async def add(a: int, b: int) -> int:
    """Adds two numbers.

    Args:
        a: The first.
    """
    return a + b


@tool(tags=["text"])
async def echo(value: Any) -> Any:
    """Gives back what it got."""
    return value


@tool
async def fail(reason: str) -> None:
    """Fails, and says why."""
    raise ToolError(reason)


@tool(idempotent=True)
async def flaky() -> None:
    """Breaks; may be run again."""
    raise RuntimeError("secret-traceback")


@tool(deferred=True, tags=["math"])
async def logarithm(x: float) -> float:
    """Found by searching only."""
    return x


@tool
async def narrate(steps: int, context: CapabilityContext) -> str:
    """Tells of its steps."""
    for step in range(steps):
        context.emit(Progress(step + 1, steps, f"step {step}"))
        await asyncio.sleep(0)
    context.emit(Log("info", "nearly"))
    context.emit(Status("done soon"))
    context.emit(Artifact("notes", TextPart(text="é"), last=True))
    return "told"


class Sleeper:
    """A tool that waits until it is let go, and tells what became of its calls."""

    def __init__(self) -> None:
        self.started = asyncio.Semaphore(0)
        self.gate = asyncio.Event()
        self.cancelled = asyncio.Semaphore(0)

    def tool(self, **options: Any) -> Any:
        async def sleep(context: CapabilityContext) -> str:
            """Waits."""
            self.started.release()
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.cancelled.release()
                raise
            return "awake"

        return tool(**options)(sleep)


class Notes(Toolkit):
    """Keeps notes."""

    name = "notes"
    alias = "n"
    category = "Storage"
    tags = ("text", "files")
    version = "2.1.0"

    class Config(BaseModel):
        shelf: str
        depth: int = 3
        key: SecretStr | None = None

    async def setup(self, config: Config) -> None:
        if config.shelf == "missing":
            raise ToolError("there is no such shelf")
        if config.shelf == "half":
            self.disable("write_note", "the shelf is read-only")

    @tool(read_only=True)
    async def read_note(self) -> dict[str, Any]:
        """Reads."""
        key = self.config.key
        return {
            "shelf": self.config.shelf,
            "depth": self.config.depth,
            "key": len(key.get_secret_value()) if key else 0,
        }

    @tool
    async def write_note(self, text: str) -> str:
        """Writes."""
        self.emit("log", {"written": len(text)})
        return text


def make_host(*tools: Any, sources: tuple[Source, ...] = (), **options: Any) -> A2EHost:
    """A host that offers functions, and the notes toolkit."""
    return A2EHost(make_bench(*tools, sources=sources), **options)


def make_bench(*tools: Any, sources: tuple[Source, ...] = ()) -> Bench:
    return Bench(functions(*(tools or (add, echo, fail, flaky, logarithm, narrate))), toolkit(Notes), *sources)


# HTTP


class WebAgent:
    """An agent over HTTP. `listen` opens the stream."""

    def __init__(self, http: aiohttp.ClientSession, url: str, prefix: str = "") -> None:
        self.http = http
        self.url = f"{url}{prefix}"
        self.session_id = ""
        self.extra: dict[str, str] = {}
        """Headers of every request."""
        self.heard: list[Fields] = []
        self.ids: list[int] = []
        self._arrived = asyncio.Event()
        self._stream: aiohttp.ClientResponse | None = None
        self._reading: asyncio.Task[None] | None = None
        self._numbers = itertools.count(1)

    @property
    def headers(self) -> dict[str, str]:
        return {"X-Session-Id": self.session_id, **self.extra}

    async def open(self) -> str:
        async with self.http.post(f"{self.url}/session", headers=self.extra) as reply:
            assert reply.status == 200
            self.session_id = (await reply.json())["session_id"]
        return self.session_id

    async def post(self, body: bytes) -> tuple[int, Fields]:
        async with self.http.post(f"{self.url}/send", data=body, headers=self.headers) as reply:
            return reply.status, await reply.json()

    async def send(self, type: str, **fields: Any) -> str:
        id = fields.pop("id", f"w{next(self._numbers)}")
        status, _ = await self.post(json.dumps({"type": type, "id": id, **fields}).encode())
        assert status == 200
        return id

    async def listen(self, last_id: int | None = None) -> None:
        headers = self.headers if last_id is None else {**self.headers, "Last-Event-ID": str(last_id)}
        self._stream = await self.http.get(f"{self.url}/stream", headers=headers)
        assert self._stream.status == 200
        self._reading = asyncio.create_task(self._read(self._stream))

    async def _read(self, stream: aiohttp.ClientResponse) -> None:
        async for line in stream.content:
            text = line.decode().removesuffix("\n")
            if text.startswith("id: "):
                self.ids.append(int(text[4:]))
            elif text.startswith("data: "):
                self.heard.append(json.loads(text[6:]))
                self._arrived.set()

    async def until(self, fits: Callable[[Fields], bool]) -> Fields:
        async with asyncio.timeout(WAIT):
            while True:
                for message in self.heard:
                    if fits(message):
                        return message
                self._arrived.clear()
                await self._arrived.wait()

    async def reply_to(self, id: str) -> Fields:
        return await self.until(lambda one: one.get("req_id") == id and not one["type"].endswith("/event"))

    async def ask(self, type: str, **fields: Any) -> Fields:
        return await self.reply_to(await self.send(type, **fields))

    async def handshake(self, *caps: str, token: str = "") -> Fields:
        return await self.ask("handshake/req", agent_caps=list(caps or ("tools", "toolkits")), auth_token=token)

    async def ended(self) -> None:
        """Wait for the stream's end."""
        assert self._reading is not None
        async with asyncio.timeout(WAIT):
            await self._reading

    async def hang_up(self) -> None:
        """Close the stream's connection."""
        if self._stream is not None:
            self._stream.close()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)


class Web:
    """A server and its agents."""

    def __init__(self, server: Server, app: A2EApp, http: aiohttp.ClientSession, address: Address) -> None:
        self.server = server
        self.app = app
        self.http = http
        self.address = address
        self.url = address.url
        self._agents: list[WebAgent] = []

    def agent(self, prefix: str = "") -> WebAgent:
        agent = WebAgent(self.http, self.url, prefix)
        self._agents.append(agent)
        return agent

    async def session(self, *, token: str = "", prefix: str = "") -> WebAgent:
        """An agent whose session is open and whose stream is read."""
        agent = self.agent(prefix)
        await agent.open()
        await agent.listen()
        await agent.handshake(token=token)
        return agent

    async def close(self) -> None:
        for agent in self._agents:
            await agent.hang_up()


@contextlib.asynccontextmanager
async def served(host: A2EHost, /, **options: Any) -> AsyncGenerator[Web, None]:
    """A server on a free port of 127.0.0.1."""
    listening: asyncio.Future[Address] = asyncio.get_running_loop().create_future()
    mount = a2e_mount(host)
    assert isinstance(mount.app, A2EApp)
    server = Server([mount], port=0, listening=listening.set_result, **options)
    serving = asyncio.create_task(server.serve(signals=False))
    async with asyncio.timeout(WAIT):
        await asyncio.wait([serving, listening], return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            await serving
        address = await listening
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as http:
        web = Web(server, mount.app, http, address)
        try:
            yield web
        finally:
            await web.close()
            server.stop()
            async with asyncio.timeout(2 * WAIT):
                await serving


def small(**limits: Any) -> Limits:
    """Limits that a test can reach."""
    return Limits(**limits)
