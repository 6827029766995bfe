"""`demo`: it passes here, and it fails where something is wrong."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from anykit.capabilities import CapabilityError
from anykit.cli.demo import ledger
from anykit.cli.demo.agents import A2A_STEPS, AgentStage, answer_question, call_official_agent
from anykit.cli.demo.bring import BRING_STEPS
from anykit.cli.demo.servers import MCP_STEPS, ServerStage, isolate_servers, one_result_everywhere
from anykit.cli.demo.stage import Stage, StepFailed, furnish, require
from anykit.cli.demo.steps import STEPS, Step
from anykit.cli.demo.verb import Report, demonstrate
from anykit.sources.a2e import A2EClient
from cli.running import anykit


@pytest.mark.timeout(120)
def test_the_demonstration_passes_over_both_transports_with_agents_and_with_servers() -> None:
    done = anykit("demo", "--json")
    assert done.code == 0, done.out
    titles = [step.title for step in STEPS]
    more = [step.title for step in (*A2A_STEPS, *MCP_STEPS, *BRING_STEPS)]
    assert [report["step"] for report in done.json] == [*titles, *titles, *more]
    sections = ["stdio"] * len(STEPS) + ["http"] * len(STEPS) + ["a2a"] * len(A2A_STEPS) + ["mcp"] * len(MCP_STEPS)
    sections += ["bring"] * len(BRING_STEPS)
    assert [report["transport"] for report in done.json] == sections
    assert all(report["passed"] for report in done.json)
    assert sum(report["seconds"] for report in done.json) < 60


@asynccontextmanager
async def nowhere(folder: Path) -> AsyncGenerator[Stage]:
    yield Stage("nowhere", "nothing", folder, cast(A2EClient, None), lambda: cast(A2EClient, None))


@asynccontextmanager
async def broken(folder: Path) -> AsyncGenerator[Stage]:
    raise StepFailed("the host did not listen")
    yield  # what makes it a generator


async def passes(stage: Stage) -> str:
    return f"{(stage.folder / 'root' / 'readme.txt').read_text().strip()}"


async def fails(stage: Stage) -> str:
    require(False, "it is wrong")
    return ""


async def raises(stage: Stage) -> str:
    raise ValueError("broke")


@pytest.mark.anyio
async def test_a_step_that_fails_is_reported_and_takes_no_other_with_it() -> None:
    headings: list[str] = []
    steps = [Step("good", passes), Step("bad", fails), Step("worse", raises), Step("last", passes)]
    found: list[Report] = [
        report async for report in demonstrate(steps, [("nowhere", nowhere)], heading=headings.append)
    ]
    assert [(report.step, report.passed, report.detail) for report in found] == [
        ("good", True, "A few notes."),
        ("bad", False, "it is wrong"),
        ("worse", False, "ValueError: broke"),
        ("last", True, "A few notes."),
    ]
    assert headings == ["nowhere: nothing"]


@pytest.mark.anyio
async def test_a_host_that_does_not_start_is_reported_and_the_next_is_tried() -> None:
    transports = [("broken", broken), ("nowhere", nowhere)]
    found = [report async for report in demonstrate([Step("good", passes)], transports, heading=lambda text: None)]
    assert [(report.transport, report.passed) for report in found] == [("broken", False), ("nowhere", True)]
    assert found[0].detail == "the host did not listen"


@pytest.mark.anyio
@pytest.mark.parametrize("act", [call_official_agent, answer_question])
async def test_a_step_with_an_agent_that_is_not_there_fails(
    tmp_path: Path, act: Callable[[AgentStage], Awaitable[str]]
) -> None:
    stage = AgentStage("a2a", "nothing", tmp_path, "http://127.0.0.1:1", "http://127.0.0.1:1")
    with pytest.raises(StepFailed):
        await act(stage)


@pytest.mark.anyio
@pytest.mark.parametrize("act", [isolate_servers, one_result_everywhere])
async def test_a_step_with_a_server_or_a_host_that_is_not_there_fails(
    tmp_path: Path, act: Callable[[ServerStage], Awaitable[str]]
) -> None:
    stage = ServerStage("mcp", "nothing", tmp_path, "http://127.0.0.1:1/mcp", "http://127.0.0.1:1")
    with pytest.raises((StepFailed, CapabilityError)):
        await act(stage)


@pytest.mark.anyio
async def test_the_demonstrations_server_speaks_both_eras_and_asks() -> None:
    call: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    arguments = {"name": "tally", "arguments": {"text": "a bc"}}
    old = ledger.answer({**call, "params": arguments})
    new = ledger.answer({**call, "params": {**arguments, "_meta": {ledger.VERSION: ledger.MODERN}}})
    assert old is not None
    assert new is not None
    assert old["result"]["structuredContent"] == {"words": 2, "letters": 3}
    assert new["result"] == {"resultType": "complete", **old["result"]}
    asked = ledger.answer({**call, "params": {"name": "order", "arguments": {"text": "tea"}}})
    assert asked is not None
    assert asked["result"]["inputRequests"]["amount"]["params"]["message"] == "How much tea?"
    assert ledger.answer({"jsonrpc": "2.0", "method": "notifications/initialized"}) is None
    assert "error" in (ledger.answer({**call, "method": "nothing"}) or {})


def test_the_folder_has_a_root_and_a_way_out_of_it(tmp_path: Path) -> None:
    folder = furnish(tmp_path)
    assert (folder / "root" / "way-out.txt").resolve() == folder / "outside.txt"
