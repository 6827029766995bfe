"""Our client calls agents that are not ours: both official SDKs, fasta2a and toolnexus, and our own host."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, replace

import pytest

from anykit.a2a import agent, agent_tools
from anykit.capabilities import Artifact, BlobPart, CapabilityContext, Event, Status
from anykit.sources.a2a import A2ATool
from anykit.tools import ToolResult
from interop.conftest import HERE, ended, made, started
from interop.environments import FASTA2A, JS, SDK_0_3, TOOLNEXUS, Environment
from interop.matrix import CANNOT, judge

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(400)]


@dataclass(frozen=True)
class Peer:
    """A server and how it is started."""

    name: str
    script: str
    arguments: tuple[str, ...] = ()
    environment: Environment | None = None

    def command(self) -> list[str]:
        """How it is started; its environment is made where that has to be."""
        program = [sys.executable]
        if self.environment is not None:
            folder = made(self.environment).folder
            program = ["env", f"A2A_JS={folder}", "node"] if self.environment.node else [self.environment.python]
        return [*program, str(HERE / "peers" / self.script), *self.arguments]


PEERS = [
    Peer("sdk 1.3 strict", "sdk_1_3.py", ("strict",)),
    Peer("sdk 1.3 compat", "sdk_1_3.py", ("compat",)),
    Peer("sdk 1.3 rest", "sdk_1_3.py", ("rest",)),
    Peer("sdk 1.3 rest compat", "sdk_1_3.py", ("rest-compat",)),
    Peer("sdk 0.3.26 JSONRPC", "sdk_0_3.py", ("JSONRPC",), SDK_0_3),
    Peer("sdk 0.3.26 HTTP+JSON", "sdk_0_3.py", ("HTTP+JSON",), SDK_0_3),
    Peer("js 1.3 strict", "js_agent.mjs", ("strict",), JS),
    Peer("js 1.3 compat", "js_agent.mjs", ("compat",), JS),
    Peer("fasta2a 2.1", "fasta2a_agent.py", (), FASTA2A),
    Peer("toolnexus 0.21", "toolnexus_agent.py", (), TOOLNEXUS),
    Peer("anykit", "own.py"),
]


@pytest.fixture(params=PEERS, ids=lambda peer: peer.name, scope="module")
def peer(request: pytest.FixtureRequest) -> Generator[tuple[Peer, str]]:
    """A running server and its URL."""
    one: Peer = request.param
    process, url = started(one.command())
    yield one, url
    ended(process)


class Run:
    """One call with all that was heard of it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.events: list[Event] = []
        self.tool: A2ATool

    async def __call__(self, task: str) -> ToolResult:
        (found,) = await agent_tools(agent(self.url, timeout=8.0, poll_every=0.05))
        assert isinstance(found, A2ATool)
        self.tool = found
        return await found.execute({"task": task}, self.context())

    def context(self) -> CapabilityContext:
        return CapabilityContext(session_id="interop", emit=self.events.append)


async def instant(run: Run) -> None:
    result = await run("instant")
    assert (result.is_error, result.output, result.metadata["state"]) == (False, "done at once", "completed")
    assert result.metadata["agent"] == "Peer"
    assert result.metadata["task_id"]


async def slow(run: Run) -> None:
    result = await run("slow")
    assert (result.is_error, result.output) == (False, "slow and done")


async def progress(run: Run) -> None:
    await run("slow")
    assert "half done" in [event.message for event in run.events if isinstance(event, Status)]


async def _ends(run: Run, state: str, reason: str) -> None:
    result = await run(state)
    assert (result.is_error, result.metadata["state"]) == (True, state), result
    assert reason in result.output


async def failed(run: Run) -> None:
    await _ends(run, "failed", "the printer is on fire")


async def canceled(run: Run) -> None:
    await _ends(run, "canceled", "never mind")


async def rejected(run: Run) -> None:
    await _ends(run, "rejected", "not for you")


async def _asks(run: Run, task: str, kind: str, question: str) -> ToolResult:
    result = await run(task)
    assert (result.is_error, result.status) == (True, "suspended"), result
    assert result.suspension is not None
    assert (result.suspension.kind, question in result.suspension.prompt) == (kind, True), result.suspension
    assert question in result.output
    return result


async def input_required(run: Run) -> None:
    asked = await _asks(run, "input", "input", "What is the dog called?")
    assert asked.suspension is not None
    done = await run.tool.answer(asked.suspension, data="Rex", context=run.context())
    assert (done.is_error, done.output) == (False, "dog=Rex"), done
    assert done.metadata["task_id"] == asked.metadata["task_id"]


async def asked(run: Run) -> None:
    await _asks(run, "input", "input", "What is the dog called?")


async def auth_required(run: Run) -> None:
    asked = await _asks(run, "auth", "authorization", "Sign in first")
    assert asked.suspension is not None
    done = await run.tool.answer(asked.suspension, data="done", context=run.context())
    assert (done.is_error, done.output) == (False, "signed in"), done


async def message(run: Run) -> None:
    result = await run("message")
    assert (result.is_error, result.output) == (False, "just a message")


async def chunks(run: Run) -> None:
    result = await run("chunks")
    assert (result.is_error, result.output) == (False, "one two three")


async def streamed(run: Run) -> None:
    await run("chunks")
    pieces = [event for event in run.events if isinstance(event, Artifact)]
    assert len(pieces) == 3, run.events
    assert [piece.append for piece in pieces] == [False, True, True]


async def data(run: Run) -> None:
    result = await run("data")
    assert result.is_error is False
    assert result.output.startswith("five")
    assert {"sum": 5} in [result.structured, *(getattr(part, "value", None) for part in result.content)]


async def files(run: Run) -> None:
    result = await run("data")
    (file,) = [part for part in result.content if isinstance(part, BlobPart)]
    assert (file.data, file.name, file.media_type) == (b"a,b\n", "table.csv", "text/csv")


async def cancel(run: Run) -> None:
    """A caller that is gone cancels the remote task."""
    started, cancelled = await _counted(run.url)
    calling = asyncio.ensure_future(run("cancel"))
    async with asyncio.timeout(5):
        while (await _counted(run.url))[0] == started:  # noqa: ASYNC110 - the peer is another process
            await asyncio.sleep(0.02)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    async with asyncio.timeout(3):
        while (await _counted(run.url))[1] == cancelled:  # noqa: ASYNC110 - the same
            await asyncio.sleep(0.02)


async def _counted(url: str) -> tuple[int, int]:
    """How many calls the peer began that only end by being cancelled, and how many were."""
    result = await Run(url)("count")
    started, cancelled = result.output.split()
    return int(started), int(cancelled)


async def unknown(run: Run) -> None:
    asked = await _asks(run, "input", "input", "What is the dog called?")
    assert asked.suspension is not None
    state = json.loads(json.dumps(asked.suspension.state).replace(asked.metadata["task_id"], "no-such-task"))
    result = await run.tool.answer(replace(asked.suspension, state=state), data="Rex")
    assert result.is_error is True
    assert result.status == "failed"


SCENARIOS: dict[str, Callable[[Run], Awaitable[None]]] = {
    "instant": instant,
    "slow": slow,
    "progress": progress,
    "failed": failed,
    "canceled": canceled,
    "rejected": rejected,
    "asked": asked,
    "input_required": input_required,
    "auth_required": auth_required,
    "message": message,
    "chunks": chunks,
    "streamed": streamed,
    "data": data,
    "files": files,
    "cancel": cancel,
    "unknown": unknown,
}


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_the_cell_works(peer: tuple[Peer, str], scenario: str) -> None:
    one, url = peer
    fault: list[BaseException] = []
    try:
        async with asyncio.timeout(20):
            await SCENARIOS[scenario](Run(url))
    except Exception as error:
        fault.append(error)

    def check() -> None:
        if fault:
            raise fault[0]

    judge(("server", one.name, scenario), check)


def test_no_entry_of_the_file_names_a_cell_that_is_not_there() -> None:
    cells = {("server", peer.name, scenario) for peer in PEERS for scenario in SCENARIOS}
    assert {cell for cell in CANNOT if cell[0] == "server"} <= cells
