"""An agent that asks: the question comes back as a value, and the answer goes to the same task."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import anyio
import pytest

from anykit import Workbench
from anykit.a2a import agent, agent_tools
from anykit.capabilities import Answer, CapabilityContext, Suspension
from anykit.sources.a2a import A2ASource, A2ATool

from .agents import Asked, Error, Json, ScriptedAgent, Stream, card_1_0, scripted, task

pytestmark = pytest.mark.anyio


class Asking:
    """An agent that asks once a task, and answers with what it was told."""

    def __init__(self, state: str = "input-required", parts: Json = None, *, marked: bool = True) -> None:
        self.state = state
        self.parts = parts or [{"kind": "text", "text": "Which city?"}]
        self.marked = marked
        self.slow = 0
        self.answered: Json = None
        self.canceled = False
        self.elsewhere = False

    def status(self) -> Json:
        message: Json = {"role": "agent", "parts": self.parts}
        status: Json = {"state": self.state, "message": message}
        if self.marked:
            message["messageId"] = "q1"
            status["timestamp"] = "2026-01-01T00:00:00Z"
        return {"id": "t1", "contextId": "c1", "status": status}

    def __call__(self, asked: Asked) -> Json:
        match asked.method:
            case "SendMessage":
                if "taskId" not in asked.message:
                    return self.status()
                assert asked.message["taskId"] == "t1"
                assert asked.message["contextId"] == "c1"
                self.answered = asked.message["parts"]
                return self.status() if self.slow else self.done()
            case "GetTask":
                if self.elsewhere or (self.answered is not None and self.slow <= 0):
                    return self.done()
                self.slow -= 1 if self.answered is not None else 0
                return self.status()
            case "CancelTask":
                self.canceled = True
                return task("canceled")
            case _:
                return Error(-32601)

    def done(self) -> Json:
        return task("completed", f"told {json.dumps(self.answered)}")


async def tool_of(one: ScriptedAgent) -> A2ATool:
    [tool] = await agent_tools(agent(one.card_url, timeout=4.0, poll_every=0.05))
    assert isinstance(tool, A2ATool)
    return tool


async def asked(tool: A2ATool) -> Suspension:
    result = await tool.execute({"task": "weather"})
    assert result.suspension is not None
    return result.suspension


async def test_a_bare_tools_question_is_answered_and_its_task_goes_on() -> None:
    asking = Asking()
    async with scripted(asking) as one:
        tool = await tool_of(one)
        question = await asked(tool)
        result = await tool.answer(question, data="Oslo")
    assert (result.is_error, result.output) == (False, 'told [{"kind": "text", "text": "Oslo"}]')
    assert (result.metadata["task_id"], result.metadata["state"]) == ("t1", "completed")


async def test_a_task_that_still_shows_the_answered_question_is_waited_for() -> None:
    asking = Asking()
    asking.slow = 3
    async with scripted(asking) as one:
        tool = await tool_of(one)
        question = await asked(tool)
        result = await tool.answer(question, data="Oslo")
    assert not result.is_error
    assert result.metadata["polls"] == 4


async def test_an_agent_that_asks_again_asks_again() -> None:
    asking = Asking(marked=False)
    asking.slow = 1
    async with scripted(asking) as one:
        tool = await tool_of(one)
        again = await tool.answer(await asked(tool), data="Oslo")
    assert again.status == "suspended"
    assert again.output.startswith("Which city?\n")


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        ("Oslo", [{"kind": "text", "text": "Oslo"}]),
        (None, [{"kind": "text", "text": "yes"}]),
        (7, [{"kind": "text", "text": "7"}]),
        ({"text": "Oslo"}, [{"kind": "text", "text": "Oslo"}]),
        ({"city": "Oslo"}, [{"kind": "text", "text": '{"city":"Oslo"}'}, {"kind": "data", "data": {"city": "Oslo"}}]),
    ],
)
async def test_an_answer_can_be_read_by_agents_that_read_text_only(data: Json, parts: Json) -> None:
    asking = Asking()
    async with scripted(asking) as one:
        tool = await tool_of(one)
        await tool.answer(await asked(tool), data=data)
    assert asking.answered == parts


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


async def test_an_answer_to_a_question_with_a_schema_is_data_and_nothing_else() -> None:
    asking = Asking(parts=[{"kind": "text", "text": "Where?"}, {"kind": "data", "data": {"schema": SCHEMA}}])
    async with scripted(asking) as one:
        tool = await tool_of(one)
        question = await asked(tool)
        assert (question.prompt, question.schema) == ("Where?", SCHEMA)
        await tool.answer(question, data={"city": "Oslo"})
    assert asking.answered == [{"kind": "data", "data": {"city": "Oslo"}}]


async def test_a_refusal_cancels_the_task() -> None:
    asking = Asking()
    async with scripted(asking) as one:
        tool = await tool_of(one)
        result = await tool.answer(await asked(tool), ok=False)
    assert asking.canceled
    assert result.is_error
    assert "refused" in result.output
    assert (result.code, result.metadata["state"]) == ("cancelled", "canceled")


async def test_a_refusal_that_the_agent_cannot_take_is_one_all_the_same() -> None:
    async with scripted(lambda got: task("input-required") if got.method == "SendMessage" else Error(-32601)) as one:
        tool = await tool_of(one)
        result = await tool.answer(await asked(tool), ok=False)
    assert (result.code, result.metadata["state"]) == ("cancelled", "input-required")
    assert "left as it is" in result.output


async def test_an_agent_may_take_an_answer_up_in_another_task() -> None:
    """The server of the contract's library makes a task of each message."""

    def answer(got: Asked) -> Json:
        if got.method == "SendMessage":
            return task("submitted", id="t2") if "taskId" in got.message else task("input-required")
        return task("completed", "5", id=got.params["id"])

    async with scripted(answer) as one:
        tool = await tool_of(one)
        result = await tool.answer(await asked(tool), data="Oslo")
    assert (result.output, result.metadata["task_id"]) == ("5", "t2")


async def test_an_authorization_given_elsewhere_needs_no_word_to_the_agent() -> None:
    asking = Asking("auth-required", [{"kind": "text", "text": "See https://id.example/x"}])
    async with scripted(asking) as one:
        tool = await tool_of(one)
        question = await asked(tool)
        assert (question.kind, question.url) == ("authorization", "https://id.example/x")
        asking.elsewhere = True
        result = await tool.answer(question)
        assert not result.is_error
        assert one.methods == ["SendMessage", "GetTask"]


async def test_an_authorization_that_the_agent_waits_to_hear_of_is_told() -> None:
    asking = Asking("auth-required")
    async with scripted(asking) as one:
        tool = await tool_of(one)
        result = await tool.answer(await asked(tool))
        assert not result.is_error
        assert one.methods == ["SendMessage", "GetTask", "SendMessage"]


async def test_a_streamed_answer_to_a_question_begins_with_the_old_question_and_is_followed() -> None:
    def answer(got: Asked) -> Json:
        status = {
            "state": "TASK_STATE_INPUT_REQUIRED",
            "timestamp": "1",
            "message": {"messageId": "q", "parts": [{"text": "?"}]},
        }
        asking = {"task": {"id": "t1", "contextId": "c1", "status": status}}
        if "taskId" not in got.message:
            return Stream([asking])
        return Stream([asking, {"task": task("TASK_STATE_COMPLETED", "5")}])

    async with scripted(answer) as one:
        one.card = card_1_0(one.url + "/", streaming=True)
        tool = await tool_of(one)
        assert (await tool.answer(await asked(tool), data="x")).output == "5"


async def test_a_question_without_words_is_still_one() -> None:
    async with scripted(lambda got: task("input-required")) as one:
        question = await asked(await tool_of(one))
    assert question.prompt == "Calc Agent needs an answer, and does not say which"


async def test_a_state_that_is_not_ours_is_refused() -> None:
    async with scripted(Asking()) as one:
        tool = await tool_of(one)
        states: list[Json] = [None, {}, {"task": 5}, "t1", []]
        for state in states:
            result = await tool.answer(Suspension("x", "input", "?", state=state), data="Oslo")
            assert result.code == "unknown_suspension"
        assert one.asked == []


# in a workbench


async def bench_with(bench: Workbench, one: ScriptedAgent) -> None:
    await bench.add(A2ASource(agent(one.card_url, timeout=4.0, poll_every=0.05)))
    assert await bench.settled(5)


async def test_a_workbench_keeps_the_question_and_goes_on_with_the_answer() -> None:
    asking = Asking()
    async with scripted(asking) as one, Workbench() as bench:
        await bench_with(bench, one)
        result = await bench.call("Calc_Agent_add", {"task": "weather"})
        assert result.status == "suspended"
        assert result.output.startswith("Which city?\n")
        assert result.suspension is not None
        assert [waiting.id for waiting in bench.suspensions()] == [result.suspension.id]
        assert result.suspension.state is None
        assert result.suspension.data["task_id"] == "t1"
        done = await bench.answer(result.suspension.id, data="Oslo")
        assert done.output == 'told [{"kind": "text", "text": "Oslo"}]'
        assert bench.suspensions() == []


async def test_a_question_outlives_the_process(tmp_path: Path) -> None:
    asking = Asking()
    async with scripted(asking) as one:
        async with Workbench(data_dir=tmp_path) as bench:
            await bench_with(bench, one)
            result = await bench.call("Calc_Agent_add", {"task": "weather"})
            assert result.suspension is not None
        async with Workbench(data_dir=tmp_path) as bench:
            await bench_with(bench, one)
            assert [waiting.prompt for waiting in bench.suspensions()] == ["Which city?"]
            done = await bench.answer(result.suspension.id, data="Oslo")
            assert not done.is_error
    assert asking.answered == [{"kind": "text", "text": "Oslo"}]


async def test_a_dialect_that_was_found_out_outlives_the_process(tmp_path: Path) -> None:
    """The card lies, and what is asked first after the answer is no message, so that it could not be found out again."""

    def answer(got: Asked) -> Json:
        match got.method:
            case "message/send":
                return asking.status()
            case "tasks/cancel":
                asking.canceled = True
                return task("canceled")
            case _:
                return Error(-32601)

    asking = Asking()
    async with scripted(answer) as one:
        one.card = card_1_0(one.url + "/")
        async with Workbench(data_dir=tmp_path) as bench:
            await bench_with(bench, one)
            result = await bench.call("Calc_Agent_add", {"task": "weather"})
            assert result.suspension is not None
        async with Workbench(data_dir=tmp_path) as bench:
            await bench_with(bench, one)
            await bench.answer(result.suspension.id, ok=False)
    assert asking.canceled


async def test_whoever_is_there_to_answer_is_asked_on_the_spot() -> None:
    heard: list[Suspension] = []

    async def wait_for(suspension: Suspension) -> Answer:
        heard.append(suspension)
        return Answer(True, "Oslo")

    asking = Asking()
    async with scripted(asking) as one, Workbench(wait_for=wait_for) as bench:
        await bench_with(bench, one)
        result = await bench.call("Calc_Agent_add", {"task": "weather"})
    assert not result.is_error
    assert [one.prompt for one in heard] == ["Which city?"]


async def test_a_refusal_in_a_workbench_cancels_the_task() -> None:
    asking = Asking()
    async with scripted(asking) as one, Workbench() as bench:
        await bench_with(bench, one)
        result = await bench.call("Calc_Agent_add", {"task": "weather"})
        assert result.suspension is not None
        refused = await bench.answer(result.suspension.id, ok=False)
        assert refused.code == "cancelled"
    assert asking.canceled


# conversations


async def test_a_session_goes_on_in_its_conversation_and_nobody_elses() -> None:
    numbers = iter(range(10))

    def answer(got: Asked) -> Json:
        context = got.message.get("contextId") or f"c{next(numbers)}"
        return task("completed", "5", contextId=context)

    async with scripted(answer) as one:
        tool = await tool_of(one)

        async def context_of(session: str | None, principal: str = "p") -> Json:
            await tool.execute({"task": "x"}, CapabilityContext(session_id=session, principal=principal))
            return one.asked[-1].message.get("contextId")

        assert await context_of("s1") is None
        assert await context_of("s1") == "c0"
        assert await context_of("s2") is None
        assert await context_of("s1", "other") is None
        assert await context_of(None) is None
        assert await context_of(None) is None
        assert await context_of("s2") == "c1"
        assert all("taskId" not in got.message for got in one.asked)


async def test_sessions_of_a_workbench_have_their_own_conversations() -> None:
    async with scripted(lambda got: task("completed", "5", contextId="c1")) as one, Workbench() as bench:
        await bench_with(bench, one)
        session, other = bench.session(id="s1"), bench.session(id="s2")
        for caller in (session, session, other):
            await caller.call("Calc_Agent_add", {"task": "x"})
        assert [got.message.get("contextId") for got in one.asked] == [None, "c1", None]


async def test_a_conversation_that_the_agent_forgot_is_begun_anew() -> None:
    def answer(got: Asked) -> Json:
        if got.message.get("contextId") == "old":
            return Error(-32001, "no such context")
        return task("completed", "5", contextId="old" if len(one.asked) == 1 else "new")

    async with scripted(answer) as one:
        tool = await tool_of(one)
        context = CapabilityContext(session_id="s")
        for _ in range(3):
            assert (await tool.execute({"task": "x"}, context)).output == "5"
        assert [got.message.get("contextId") for got in one.asked] == [None, "old", None, "new"]


async def test_many_calls_at_a_time_do_not_wait_for_each_other() -> None:
    begun: dict[str, float] = {}
    loop = asyncio.get_running_loop()

    def answer(got: Asked) -> Json:
        if got.method == "SendMessage":
            id = got.text
            begun[id] = loop.time()
            return task("working", id=id)
        id = got.params["id"]
        return task("completed", id, id=id) if loop.time() - begun[id] > 1.0 else task("working", id=id)

    async with scripted(answer) as one:
        [tool] = await agent_tools(agent(one.card_url, timeout=5.0))
        start = loop.time()
        with anyio.fail_after(5):
            results = await asyncio.gather(*(tool.execute({"task": f"t{index}"}) for index in range(24)))
        took = loop.time() - start
    assert [result.output for result in results] == [f"t{index}" for index in range(24)]
    assert took < 1.6


async def test_a_workbench_gives_a_timeout_that_says_how_far_it_got() -> None:
    canceled = asyncio.Event()

    def answer(got: Asked) -> Json:
        if got.method == "CancelTask":
            canceled.set()
        return task("working")

    async with scripted(answer) as one, Workbench() as bench:
        await bench_with(bench, one)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        result = await bench.call("Calc_Agent_add", {"task": "x"}, timeout=0.5)
        assert 0.3 < loop.time() - begun < 0.9
        assert result.code == "timeout"
        assert result.metadata["task_id"] == "t1"
        with anyio.fail_after(2):
            await canceled.wait()
