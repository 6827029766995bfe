"""Against the official SDK, 1.3, in each of its dialects, streamed and polled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import anyio
import pytest

from anykit.a2a import agent, agent_tools
from anykit.capabilities import BlobPart, CapabilityContext, Event, Status
from anykit.sources.a2a import A2ATool

from .sdk_agent import INTERFACES, Obedient, sdk_agent

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]  # its import takes seconds


@pytest.fixture(params=[False, True], ids=["polled", "streamed"])
def streaming(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture(params=list(INTERFACES))
def dialect(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def served(dialect: str, streaming: bool) -> AsyncGenerator[tuple[str, Obedient]]:
    async with sdk_agent(dialect, streaming=streaming) as made:
        yield made


async def tool_of(served: tuple[str, Obedient]) -> A2ATool:
    [tool] = await agent_tools(agent(served[0], timeout=5.0))
    assert isinstance(tool, A2ATool)
    assert tool.name == "SDK_Agent_obey"
    return tool


async def test_results_come_as_they_are(served: tuple[str, Obedient], streaming: bool) -> None:
    tool = await tool_of(served)
    heard: list[Event] = []
    for text, output in [("instant", "instant"), ("slow", "slow"), ("message", "5"), ("chunks", "hello")]:
        result = await tool.execute({"task": text}, CapabilityContext(emit=heard.append))
        assert (result.is_error, result.output, result.metadata["state"]) == (False, output, "completed")
        assert (result.metadata["polls"] == 0) == (streaming or text == "message")
    assert Status("thinking") in heard
    result = await tool.execute({"task": "files"})
    assert result.structured == {"n": 1}
    _, pdf, link = result.content
    assert isinstance(pdf, BlobPart)
    assert isinstance(link, BlobPart)
    assert (pdf.name, pdf.media_type, pdf.data) == ("r.pdf", "application/pdf", b"%PDF-")
    assert link.uri == "http://h/x.png"


@pytest.mark.parametrize(
    ("text", "state", "words"), [("fail", "failed", "no quota"), ("reject", "rejected", "not my job")]
)
async def test_what_does_not_complete_is_an_error(
    served: tuple[str, Obedient], text: str, state: str, words: str
) -> None:
    result = await (await tool_of(served)).execute({"task": text})
    assert result.is_error
    assert result.output == f"A2A task {result.metadata['task_id']} {state}: {words}"
    assert result.metadata["state"] == state


@pytest.mark.parametrize(("text", "state"), [("ask", "input-required"), ("authorize", "auth-required")])
async def test_a_question_is_answered_in_its_own_task(served: tuple[str, Obedient], text: str, state: str) -> None:
    tool = await tool_of(served)
    asked = await tool.execute({"task": text})
    assert asked.suspension is not None
    assert asked.metadata["state"] == state
    done = await tool.answer(asked.suspension, data="Oslo")
    assert (done.is_error, done.output) == (False, "answer Oslo")
    assert done.metadata["task_id"] == asked.metadata["task_id"]


async def test_a_refused_question_and_a_cancelled_caller_cancel_the_task(served: tuple[str, Obedient]) -> None:
    tool = await tool_of(served)
    asked = await tool.execute({"task": "ask"})
    assert asked.suspension is not None
    assert (await tool.answer(asked.suspension, ok=False)).metadata["state"] == "canceled"
    assert served[1].canceled == [asked.metadata["task_id"]]
    working = asyncio.Event()

    def heard(event: Event) -> None:
        working.set()

    running = asyncio.create_task(tool.execute({"task": "hang"}, CapabilityContext(emit=heard)))
    with anyio.fail_after(5):
        await working.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert len(served[1].canceled) == 2


async def test_a_strict_server_of_1_0_behind_a_card_of_0_3_is_understood(streaming: bool) -> None:
    async with sdk_agent("0.3 JSONRPC", streaming=streaming, strict=True) as served:
        assert (await (await tool_of(served)).execute({"task": "instant"})).output == "instant"
