"""A workbench served over A2A on loopback, and the ways to speak to it: what the tests of this room share."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Any

import aiohttp

from anykit import Toolkit, Workbench, tool
from anykit.capabilities import (
    Artifact,
    BlobPart,
    CapabilityContext,
    ImagePart,
    InvocableResult,
    Log,
    Progress,
    Question,
    Status,
    TextPart,
)
from anykit.servers import Server
from anykit.servers.a2a import a2a_mounts
from anykit.stores import MemoryRecords, RecordStore
from anykit.tools import ToolError

WAIT = 5.0
"""Seconds that a test waits for anything."""
V1 = {"A2A-Version": "1.0"}

# skills


@tool
async def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@tool
async def shout(text: str) -> dict[str, Any]:
    """Says it louder."""
    return {"text": text.upper(), "length": len(text)}


@tool
async def fails() -> str:
    """Never works."""
    raise ToolError("the printer is on fire", structured={"where": "cellar"})


@tool
async def breaks() -> str:
    """Has a bug."""
    raise RuntimeError("secret-in-the-exception")


@tool
async def files(kind: str = "both") -> InvocableResult:
    """A picture and a file."""
    return InvocableResult(
        text="two files",
        content=(
            ImagePart(data=b"\x89PNG", media_type="image/png"),
            BlobPart(data=b"a,b\n", name="table.csv", media_type="text/csv"),
            BlobPart(uri="https://files.example/big.zip", name="big.zip", media_type="application/zip"),
        ),
    )


@tool
async def chunks(context: CapabilityContext) -> str:
    """Sends its result in pieces."""
    for piece, more in (("one ", False), ("two ", True), ("three", True)):
        context.emit(Artifact("story", TextPart(text=piece), append=more, last=piece == "three"))
        await asyncio.sleep(0)
    return "one two three"


@tool
async def tells(context: CapabilityContext) -> str:
    """Tells what it does."""
    context.emit(Progress(1, 4, "a quarter"))
    context.emit(Status("thinking"))
    context.emit(Log("warning", "it is late"))
    context.emit(Log("debug", "not for others"))
    return "told"


@tool
async def name_it(context: CapabilityContext, thing: str, size: int = 1) -> str:
    """Asks for a name."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    answer = await context.ask(Question("input", f"What is the {thing} called?", schema=schema))
    context.emit(Status("writing it down"))
    return f"{thing}={answer.data['name']}" if answer.ok else "unnamed"


@tool
async def approve_it(context: CapabilityContext, amount: int) -> str:
    """Asks for an approval."""
    answer = await context.ask(Question("approval", f"Pay {amount}?"))
    return "paid" if answer.ok else "not paid"


@tool
async def sign_in(context: CapabilityContext) -> str:
    """Asks for a sign-in."""
    answer = await context.ask(Question("authorization", "Sign in first", url="https://login.example/x"))
    return "signed in" if answer.ok else "not signed in"


class Notes(Toolkit):
    """Notes of a shelf."""

    name = "notes"

    @tool
    async def read_note(self, number: int) -> str:
        """Reads a note."""
        return f"note {number}"


class Sleeper:
    """A tool that sleeps until it is woken, and knows what became of it."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.wake = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.calls = 0

        @tool(name="sleep")
        async def sleep() -> str:
            """Sleeps."""
            self.calls += 1
            self.started.set()
            try:
                await self.wake.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
            return "awake"

        self.tool = sleep


# hosts


class Host:
    """A served workbench and a plain HTTP client for it."""

    def __init__(self, url: str, http: aiohttp.ClientSession, server: Server, bench: Workbench) -> None:
        self.url = url
        self.http = http
        self.server = server
        self.bench = bench
        self._ids = itertools.count(1)

    async def post(self, path: str, body: Any, headers: Mapping[str, str] | None = None) -> tuple[int, Any]:
        """Send JSON (or bytes as they are); the status and the JSON that came."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with asyncio.timeout(WAIT):
            async with self.http.post(self.url + path, data=data, headers=dict(headers or {})) as reply:
                text = await reply.text()
                return reply.status, json.loads(text) if text else None

    async def rpc(self, method: str, params: Any = None, *, headers: Mapping[str, str] = V1) -> dict[str, Any]:
        """A JSON-RPC request; the whole answer."""
        number = next(self._ids)
        request: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": number,
            "method": method,
            "params": {} if params is None else params,
        }
        status, answer = await self.post("/a2a", request, headers)
        assert status == 200
        assert answer["id"] == number
        return answer

    async def task(self, method: str, params: Any, *, headers: Mapping[str, str] = V1) -> dict[str, Any]:
        """The task in the answer."""
        answer = await self.rpc(method, params, headers=headers)
        assert "result" in answer, answer
        return answer["result"].get("task", answer["result"])

    async def send(self, *parts: Any, configuration: Any = None, **message: Any) -> dict[str, Any]:
        """SendMessage in 1.0; the task that came."""
        params: dict[str, Any] = {"message": message_of(*parts, **message)}
        if configuration is not None:
            params["configuration"] = configuration
        return await self.task("SendMessage", params)

    async def call(self, name: str, arguments: Any = None, **message: Any) -> dict[str, Any]:
        """A call; the task that came."""
        return await self.send({"data": {"tool": name, "arguments": arguments or {}}}, **message)

    async def stream(
        self, method: str, params: Any, *, headers: Mapping[str, str] = V1
    ) -> AsyncGenerator[dict[str, Any]]:
        """The results of a stream, one after the other."""
        request = {"jsonrpc": "2.0", "id": "s", "method": method, "params": params}
        async with self.http.post(self.url + "/a2a", json=request, headers=dict(headers)) as reply:
            assert reply.content_type == "text/event-stream", await reply.text()
            async for line in reply.content:
                if line.startswith(b"data:"):
                    answer = json.loads(line[5:])
                    assert answer["id"] == "s"
                    yield answer.get("result", answer)

    async def until(self, task_id: str, *states: str) -> dict[str, Any]:
        """Ask for a task until it is in one of the states."""
        async with asyncio.timeout(WAIT):
            while True:
                task = await self.task("GetTask", {"id": task_id})
                if state_of(task) in states:
                    return task
                await asyncio.sleep(0.005)


def message_of(*parts: Any, **more: Any) -> dict[str, Any]:
    """A message in 1.0; a string is a text part."""
    return {
        "messageId": uuid.uuid4().hex,
        "role": "ROLE_USER",
        "parts": [{"text": part} if isinstance(part, str) else part for part in parts],
        **more,
    }


def old_message(*parts: Any, **more: Any) -> dict[str, Any]:
    """A message in 0.3; a string is a text part, a dict without `kind` a data part's data."""
    given: list[Any] = []
    for part in parts:
        if isinstance(part, str):
            given.append({"kind": "text", "text": part})
        else:
            given.append(part if "kind" in part else {"kind": "data", "data": part})
    return {"kind": "message", "messageId": uuid.uuid4().hex, "role": "user", "parts": given, **more}


def state_of(task: Mapping[str, Any]) -> str:
    """A task's state in the spelling of 0.3."""
    state: str = task["status"]["state"]
    return state.removeprefix("TASK_STATE_").lower().replace("_", "-")


def said(task: Mapping[str, Any]) -> list[Any]:
    """The parts of the status message: texts as they are, data as data."""
    message = task["status"].get("message", {"parts": []})
    return [part.get("text", part.get("data")) for part in message["parts"]]


def parts_of(task: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The parts of all artifacts."""
    return [part for artifact in task.get("artifacts", []) for part in artifact["parts"]]


def output_of(task: Mapping[str, Any]) -> str:
    """The text of all artifacts."""
    return "".join(part.get("text", "") for part in parts_of(task))


@contextlib.asynccontextmanager
async def served(
    *tools: Any,
    folder: Path | None = None,
    records: RecordStore | None = None,
    token: str = "",
    configure: bool = True,
    listen: Callable[[Workbench], Server] | None = None,
    **options: Any,
) -> AsyncGenerator[Host]:
    """A host with some tools; `options` go to the mounts."""
    store = records or MemoryRecords()
    listening = asyncio.Event()
    async with Workbench(*tools, records=store, data_dir=folder) as bench:
        if configure and any(isinstance(one, type) for one in tools):
            await bench.configure("notes", {})
        options.setdefault("records", store)
        mounts = a2a_mounts(bench, secured=bool(token), **options)
        server = Server(mounts, port=0, token=token, listening=lambda _: listening.set())
        serving = asyncio.create_task(server.serve(signals=False))
        try:
            async with asyncio.timeout(WAIT):
                await listening.wait()
            assert server.address is not None
            headers = {"authorization": f"Bearer {token}"} if token else {}
            async with aiohttp.ClientSession(headers=headers) as http:
                yield Host(server.address.url, http, server, bench)
        finally:
            server.stop()
            server.stop()  # at once: its connections are closed already
            await serving
