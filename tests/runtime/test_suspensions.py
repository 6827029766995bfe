"""Questions: asked, parked, kept and answered."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from anykit import CapabilityContext, Workbench, tool
from anykit.capabilities import (
    Answer,
    InvocableRequest,
    InvocableResult,
    InvocableSpec,
    Question,
    Suspension,
)
from runtime_parts import Offers

pytestmark = pytest.mark.anyio

CHOICE = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@tool
async def book(city: str, context: CapabilityContext) -> str:
    """Books a room, asking how many nights."""
    answer = await context.ask(Question("input", f"How many nights in {city}?", schema=CHOICE))
    return f"{city} for {answer.data['n']}" if answer.ok else "not booked"


class Remote:
    """A source whose questions carry a state."""

    def __init__(self) -> None:
        self.resumed: list[Any] = []

    @property
    def spec(self) -> InvocableSpec:
        return InvocableSpec(name="remote", description="", input_schema={"type": "object"})

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult | Suspension:
        if request.resume is None:
            return Suspension("guessable", "input", "which?", state={"task": "t-1", "secret": "sealed"})
        self.resumed.append((request.input, request.resume.state, request.resume.answer))
        return InvocableResult(text=f"chose {request.resume.answer.data}")


async def test_a_question_comes_back_as_a_suspension_and_the_answer_goes_on() -> None:
    async with Workbench(book) as bench:
        asked = await bench.call("book", {"city": "Oslo"})
        assert (asked.is_error, asked.status) == (True, "suspended")
        assert asked.suspension is not None
        assert asked.output.startswith("How many nights in Oslo?\n")
        assert asked.suspension.id in asked.output
        assert [one.id for one in bench.suspensions()] == [asked.suspension.id]
        wrong = await bench.answer(asked.suspension.id, data={"n": "three"})
        assert wrong.code == "invalid_input"
        result = await bench.answer(asked.suspension.id, data={"n": 3})
        assert (result.is_error, result.output) == (False, "Oslo for 3")
        assert bench.suspensions() == []
        again = await bench.answer(asked.suspension.id, data={"n": 3})
        assert again.code == "unknown_suspension"


async def test_a_refusal_reaches_the_tool() -> None:
    async with Workbench(book) as bench:
        asked = await bench.call("book", {"city": "Oslo"})
        assert asked.suspension is not None
        assert (await bench.answer(asked.suspension.id, ok=False)).output == "not booked"


async def test_with_somebody_to_ask_it_is_answered_inline() -> None:
    asked: list[str] = []

    async def wait_for(suspension: Suspension) -> Answer:
        asked.append(suspension.prompt)
        return Answer(True, {"n": 2})

    remote = Remote()
    async with Workbench(book, Offers(remote), wait_for=wait_for) as bench:
        assert (await bench.call("book", {"city": "Rome"})).output == "Rome for 2"
        assert (await bench.call("remote", {})).output == "chose {'n': 2}"
    assert asked == ["How many nights in Rome?", "which?"]
    assert remote.resumed[0][1] == {"task": "t-1", "secret": "sealed"}


async def test_a_waiting_call_does_not_use_up_its_time() -> None:
    @tool(timeout=0.2)
    async def patient(context: CapabilityContext) -> str:
        await context.ask(Question("input", "well?"))
        return "done"

    async with Workbench(patient) as bench:
        asked = await bench.call("patient")
        assert asked.suspension is not None
        await asyncio.sleep(0.3)
        assert (await bench.answer(asked.suspension.id)).output == "done"


async def test_only_its_principal_may_answer() -> None:
    async with Workbench(book) as bench:
        mine = bench.session(principal="ada", face="a2e", id="1")
        other = bench.session(principal="eve", face="a2e", id="2")
        asked = await mine.call("book", {"city": "Oslo"})
        assert asked.suspension is not None
        assert other.suspensions() == []
        outcome = await other.answer(asked.suspension.id, data={"n": 1})
        assert getattr(outcome, "code", "") == "unknown_suspension"
        assert [one.id for one in mine.suspensions()] == [asked.suspension.id]


async def test_a_kept_question_is_gone_on_with_in_a_new_process_and_its_state_is_sealed(tmp_path: Path) -> None:
    async with Workbench(Offers(Remote()), data_dir=tmp_path) as bench:
        asked = await bench.call("remote", {"x": 1})
        assert asked.suspension is not None
        assert asked.suspension.id != "guessable"
        assert asked.suspension.state is None
    assert not any(b"sealed" in file.read_bytes() for file in tmp_path.iterdir())  # noqa: ASYNC240 - a test folder
    remote = Remote()
    async with Workbench(Offers(remote), data_dir=tmp_path) as bench:
        assert [one.id for one in bench.suspensions()] == [asked.suspension.id]
        results = await asyncio.gather(*(bench.answer(asked.suspension.id, data="b") for _ in range(3)))
        assert sorted(result.is_error for result in results) == [False, True, True]
    assert remote.resumed == [({"x": 1}, {"task": "t-1", "secret": "sealed"}, Answer(True, "b"))]


async def test_a_parked_call_ends_with_its_bench() -> None:
    ended = asyncio.Event()

    @tool
    async def ask(context: CapabilityContext) -> None:
        try:
            await context.ask(Question("input", "?"))
        finally:
            ended.set()

    async with Workbench(ask) as bench:
        await bench.call("ask")
    assert ended.is_set()


async def test_a_cancelled_caller_cancels_a_call_that_may_ask() -> None:
    begun = asyncio.Event()
    cancelled = asyncio.Event()

    @tool
    async def work(context: CapabilityContext) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with Workbench(work) as bench:
        call = asyncio.ensure_future(bench.call("work"))
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert cancelled.is_set()
