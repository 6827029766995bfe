"""Against servers on the official SDK, over stdio and HTTP and in both eras: all that a server can do, once."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import anyio
import pytest

from anykit.capabilities import (
    Answer,
    CapabilityContext,
    ExecutionFailed,
    InvalidInput,
    InvocableResult,
    Progress,
    Question,
    Resume,
    Suspension,
    TextPart,
)
from anykit.sources.mcp import McpServer, McpSource
from anykit.transports import Command

from .at_hand import Hearing, call, invoke, names, ready, tool

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

SERVER = str(Path(__file__).parent / "peers" / "sdk.py")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def url() -> AsyncGenerator[str]:
    """A server over HTTP, in a process of its own, for all tests here."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable, SERVER, "http", str(port), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        with anyio.fail_after(20):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await anyio.sleep(0.05)
                    continue
                writer.close()
                await writer.wait_closed()
                break
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        await process.wait()


@pytest.fixture(params=["stdio", "http"])
def place(request: pytest.FixtureRequest, url: str) -> Callable[[str], McpServer]:
    def server(era: str) -> McpServer:
        pinned = "modern" if era == "modern" else "legacy"
        if request.param == "http":
            return McpServer("sdk", url=url, era=pinned)
        return McpServer("sdk", Command((sys.executable, SERVER, "stdio")), era=pinned)

    return server


async def travel(made: McpSource, answer: Answer) -> InvocableResult:
    """Answer its question however it comes: live, or as a suspension."""

    async def ask(question: Question) -> Answer:
        assert question.prompt == "sdk asks: Which city?"
        return answer

    context = CapabilityContext(ask=ask)
    outcome = await invoke(tool(made, "travel"), context=context)
    if isinstance(outcome, Suspension):
        assert outcome.prompt == "sdk asks: Which city?"
        outcome = await invoke(tool(made, "travel"), context=context, resume=Resume(outcome.state, answer))
    assert isinstance(outcome, InvocableResult)
    return outcome


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_server_on_the_sdk_works(place: Callable[[str], McpServer], era: str) -> None:
    async with ready(place(era)) as made:
        assert made.state.detail["protocol"] == ("2026-07-28" if era == "modern" else "2025-11-25")
        assert made.state.detail["server"] == "everything 7"
        assert names(made) == ["add", "steps", "fail", "sleep", "travel"]
        assert await call(made, "add", a=1, b=2) == {"total": 3}
        hearing = Hearing()
        await invoke(tool(made, "steps"), {"n": 2}, context=hearing.context)
        assert hearing.heard == [Progress(1.0, 2.0, "step 1"), Progress(2.0, 2.0, "step 2")]
        with pytest.raises(ExecutionFailed, match="Error executing tool fail"):
            await call(made, "fail")
        with pytest.raises((InvalidInput, ExecutionFailed)):
            await call(made, "add", a="x")
        assert (await travel(made, Answer(True, {"name": "Rome"}))).structured == {"result": "to Rome"}
        with pytest.raises(ExecutionFailed):
            await travel(made, Answer(False))
        [resources], [prompts] = made.resources(), made.prompts()
        assert [one.id for one in (await resources.list_resources()).items] == ["data://fixed"]
        read = await resources.read_resource("data://by/7", CapabilityContext())
        assert read.parts == (TextPart(text="value of 7"),)
        with pytest.raises(InvalidInput):
            await resources.read_resource("data://nothing/at/all", CapabilityContext())
        contents = await prompts.get_prompt("greet", {"who": "Ann"}, CapabilityContext())
        assert contents.messages[0].content == (TextPart(text="Greet Ann"),)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_many_calls_at_once_and_one_given_up(url: str, era: str) -> None:
    server = McpServer("sdk", url=url, era="modern" if era == "modern" else "legacy")
    async with ready(server) as made:
        slow = asyncio.create_task(call(made, "sleep", seconds=30))
        results = await asyncio.gather(*(call(made, "add", a=n, b=n) for n in range(50)))
        assert [one["total"] for one in results] == [2 * n for n in range(50)]
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)
        assert await call(made, "add", a=1, b=1) == {"total": 2}
        assert made.starts == 1
