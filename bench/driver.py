"""An A2E agent as thin as asyncio allows, the same for every host: sends `tool/call`, waits for the answer, counts.

Each function runs one whole host program and returns microseconds (p50 alone) and calls a second (many in flight).
"""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

LISTENING = re.compile(rb"listening on http://127\.0\.0\.1:(\d+)")
DEADLINE = 60.0
"""Seconds that one host program may take for everything."""

Call = Callable[[str, dict[str, object]], Awaitable[dict[str, object]]]


@dataclass
class Pending:
    """Answers by the id of the request, and ids in order."""

    waiting: dict[str, asyncio.Future[dict[str, object]]] = field(default_factory=dict)
    count: int = 0

    def request(self, session: str, tool: str, arguments: dict[str, object]) -> tuple[bytes, asyncio.Future]:
        self.count += 1
        id = f"{self.count:032x}"
        message = {
            "type": "tool/call/req",
            "id": id,
            "version": "1.0",
            "ts": time.time(),
            "session_id": session,
            "tool_name": tool,
            "arguments": arguments,
        }
        future = asyncio.get_running_loop().create_future()
        self.waiting[id] = future
        return json.dumps(message, separators=(",", ":")).encode(), future

    def answer(self, line: bytes) -> None:
        message = json.loads(line)
        future = self.waiting.pop(message.get("req_id", ""), None)
        if future is not None and not future.done():
            future.set_result(message)


HANDSHAKE = (
    b'{"type":"handshake/req","id":"hello","version":"1.0","ts":1.0,"agent_id":"bench",'
    b'"agent_caps":["tools","toolkits"],"auth_token":""}'
)


@asynccontextmanager
async def over_stdio(command: list[str]) -> AsyncIterator[Call]:
    """Run a stdio host and hand out its `call`."""
    child = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=1 << 20,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    pending = Pending()
    hello = asyncio.get_running_loop().create_future()
    pending.waiting["hello"] = hello

    async def read() -> None:
        while line := await child.stdout.readline():
            pending.answer(line)
        for future in pending.waiting.values():
            if not future.done():
                future.set_exception(ConnectionError("the host ended"))

    reading = asyncio.create_task(read())
    child.stdin.write(HANDSHAKE + b"\n")
    session = str((await hello).get("session_id", ""))

    async def call(tool: str, arguments: dict[str, object]) -> dict[str, object]:
        line, future = pending.request(session, tool, arguments)
        child.stdin.write(line + b"\n")
        return await future

    try:
        yield call
    finally:
        child.stdin.close()
        try:
            await asyncio.wait_for(child.wait(), 5)
        except TimeoutError:
            child.kill()
            await child.wait()
        await reading


class Connection:
    """One kept connection that posts, one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def post(self, path: str, session: str, body: bytes) -> bytes:
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Session-Id: {session}\r\n"
        self.writer.write(
            head.encode() + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        answer = await self.reader.readuntil(b"\r\n\r\n")
        if not answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 202")):
            raise ConnectionError(answer.decode())
        length = re.search(rb"(?i)content-length: *(\d+)", answer)
        return await self.reader.readexactly(int(length[1])) if length else b""


async def wait_for_port(child: asyncio.subprocess.Process) -> int:
    """The port that the host names on stderr once it listens."""
    assert child.stderr is not None
    while line := await child.stderr.readline():
        if found := LISTENING.search(line):
            return int(found[1])
    raise ConnectionError("the host ended before it listened")


@asynccontextmanager
async def http_host(command: list[str]) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    """Run an HTTP host and hand out its process and port."""
    child = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    try:
        port = await wait_for_port(child)
        drain = asyncio.create_task(child.stderr.read())  # a full pipe would stall it
        yield child, port
        drain.cancel()
    finally:
        if child.returncode is None:
            child.terminate()
        try:
            await asyncio.wait_for(child.wait(), 5)
        except TimeoutError:
            child.kill()
            await child.wait()


async def open_session(connection: Connection) -> str:
    """A session that has shaken hands; its answer waits for a stream."""
    session = json.loads(await connection.post("/session", "", b""))["session_id"]
    await connection.post("/send", session, HANDSHAKE)
    return session


async def open_stream(port: int, session: str) -> asyncio.StreamWriter:
    """The session's stream, with the answer to its handshake read; hands out what closes it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /stream HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Session-Id: {session}\r\n\r\n".encode())
    await reader.readuntil(b"handshake/resp")
    return writer


@asynccontextmanager
async def over_http(command: list[str], connections: int) -> AsyncIterator[Call]:
    """Run an HTTP host and hand out its `call`, which posts on one of `connections` kept connections."""
    async with http_host(command) as (_, port):
        pending = Pending()
        hello = asyncio.get_running_loop().create_future()
        pending.waiting["hello"] = hello
        idle: asyncio.LifoQueue[Connection] = asyncio.LifoQueue()
        for _ in range(connections):
            idle.put_nowait(Connection(*await asyncio.open_connection("127.0.0.1", port)))
        first = await idle.get()
        session = await open_session(first)
        idle.put_nowait(first)
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        writer.write(f"GET /stream HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Session-Id: {session}\r\n\r\n".encode())

        async def read() -> None:
            await reader.readuntil(b"\r\n\r\n")
            rest = b""
            while size := int(await reader.readline(), 16):
                *lines, rest = (rest + (await reader.readexactly(size + 2))[:-2]).split(b"\n")
                for line in lines:
                    if line.startswith(b"data:"):
                        pending.answer(line[5:])

        reading = asyncio.create_task(read())
        await hello

        async def call(tool: str, arguments: dict[str, object]) -> dict[str, object]:
            body, future = pending.request(session, tool, arguments)
            connection = await idle.get()
            await connection.post("/send", session, body)
            idle.put_nowait(connection)
            return await future

        try:
            yield call
        finally:
            reading.cancel()
            writer.close()
            while not idle.empty():
                idle.get_nowait().writer.close()


def check(reply: dict[str, object], value: object) -> None:
    """A fast wrong answer is no answer."""
    data = reply.get("data")
    if not isinstance(data, dict) or data.get("data") != value:
        raise AssertionError(f"wrong answer: {reply}")


async def measure_alone(call: Call, tool: str, arguments: dict[str, object], value: object, count: int) -> float:
    """Median microseconds of one call at a time."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        reply = await call(tool, arguments)
        times.append(time.perf_counter() - start)
        check(reply, value)
    return statistics.median(times) * 1e6


async def measure_together(call: Call, count: int, in_flight: int) -> float:
    """Calls a second with `in_flight` at a time."""
    left = count

    async def work() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            a = left
            check(await call("add", {"a": a, "b": 3}), a + 3)

    start = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(work())
    return count / (time.perf_counter() - start)


@dataclass
class Rates:
    """What one run of one host gave."""

    alone: float
    """Median µs of one call at a time."""
    together: float
    """Calls a second, 32 in flight."""
    nap: float = 0.0
    """Median µs of a tool that sleeps 5 ms, where the host has one."""


async def run_host(transport: str, command: list[str], *, alone: int, together: int, nap: int = 0) -> Rates:
    """Run one host program and measure it."""
    async with asyncio.timeout(DEADLINE):
        opened = over_stdio(command) if transport == "stdio" else over_http(command, 32)
        async with opened as call:
            await measure_alone(call, "add", {"a": 2, "b": 3}, 5, 50)  # warm
            rates = Rates(
                await measure_alone(call, "add", {"a": 2, "b": 3}, 5, alone), await measure_together(call, together, 32)
            )
            if nap:
                rates.nap = await measure_alone(call, "nap", {}, "awake", nap)
            return rates
