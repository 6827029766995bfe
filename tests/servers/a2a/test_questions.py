"""Questions: a call that asks becomes a task that waits, and a message to it is the answer."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from anykit.capabilities import (
    CapabilityContext,
    InvocableRequest,
    InvocableResult,
    InvocableSpec,
    Suspension,
)
from anykit.servers.a2a import Limits
from servers.a2a.hosts import (
    V1,
    Host,
    add,
    approve_it,
    message_of,
    name_it,
    old_message,
    output_of,
    said,
    served,
    sign_in,
    state_of,
)

pytestmark = pytest.mark.anyio


class Remote:
    """Stands for a source whose own task waits: it suspends with a state and goes on with it."""

    def __init__(self, expires_at: float | None = None) -> None:
        self.expires_at = expires_at
        self.answers: list[Any] = []

    @property
    def spec(self) -> InvocableSpec:
        return InvocableSpec(name="remote", description="Asks far away.", input_schema={"type": "object"})

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult | Suspension:
        if request.resume is None:
            return Suspension("x", "input", "Which one?", state={"task": "far-1"}, expires_at=self.expires_at)
        self.answers.append((request.resume.state, request.resume.answer.ok, request.resume.answer.data))
        return InvocableResult(text=f"chose {request.resume.answer.data}")


async def test_a_question_is_input_required_with_its_schema() -> None:
    async with served(name_it) as host:
        task = await host.call("name_it", {"thing": "dog"})
        assert state_of(task) == "input-required"
        prompt, question = said(task)
        assert prompt == "What is the dog called?"
        assert (question["kind"], question["schema"]["required"]) == ("input", ["name"])


@pytest.mark.parametrize(
    "part",
    [{"data": {"name": "Rex"}}, "Rex", '{"name": "Rex"}', {"data": {"ok": True, "data": {"name": "Rex"}}}],
    ids=["data", "text", "json text", "explicit"],
)
async def test_a_message_to_the_task_answers(part: Any) -> None:
    async with served(name_it, add) as host:
        task = await host.call("name_it", {"thing": "dog"})
        done = await host.send(part, taskId=task["id"])
        assert (done["id"], state_of(done), output_of(done)) == (task["id"], "completed", "dog=Rex")


async def test_an_answer_over_0_3_and_over_http_json() -> None:
    async with served(name_it) as host:
        task = await host.call("name_it", {"thing": "dog"})
        message = old_message({"name": "Rex"}, taskId=task["id"], contextId=task["contextId"])
        assert output_of(await host.task("message/send", {"message": message}, headers={})) == "dog=Rex"
        task = await host.call("name_it", {"thing": "cat"})
        body = {"message": message_of("Tom", taskId=task["id"])}
        assert output_of((await host.post("/a2a/message:send", body, V1))[1]["task"]) == "cat=Tom"


async def test_an_answer_that_does_not_fit_leaves_the_question_open() -> None:
    async with served(name_it) as host:
        task = await host.call("name_it", {"thing": "dog"})
        again = await host.send({"data": {"nom": "Rex"}}, taskId=task["id"])
        assert state_of(again) == "input-required"
        assert "'name' is required" in said(again)[0]
        assert output_of(await host.send("Rex", taskId=task["id"])) == "dog=Rex"


async def test_a_refusal_goes_to_the_tool() -> None:
    async with served(name_it) as host:
        task = await host.call("name_it", {"thing": "dog"})
        assert output_of(await host.send({"data": {"ok": False}}, taskId=task["id"])) == "unnamed"


@pytest.mark.parametrize(
    ("answer", "result"),
    [("yes", "paid"), ("No.", "not paid"), ({"data": True}, "paid"), ({"data": {"ok": False}}, "not paid")],
)
async def test_an_approval_is_auth_required_and_takes_yes_or_no(answer: Any, result: str) -> None:
    async with served(approve_it) as host:
        task = await host.call("approve_it", {"amount": 5})
        assert (state_of(task), said(task)[0]) == ("auth-required", "Pay 5?")
        unclear = await host.send("perhaps", taskId=task["id"])
        assert (state_of(unclear), said(unclear)[0]) == ("auth-required", "Answer yes or no.\nPay 5?")
        assert output_of(await host.send(answer, taskId=task["id"])) == result


async def test_a_sign_in_is_auth_required_with_its_url() -> None:
    async with served(sign_in) as host:
        task = await host.call("sign_in")
        assert state_of(task) == "auth-required"
        assert said(task)[0] == "Sign in first\nhttps://login.example/x"
        assert said(task)[1]["url"] == "https://login.example/x"
        assert output_of(await host.send("done", taskId=task["id"])) == "signed in"


async def test_what_the_call_tells_after_the_answer_is_streamed() -> None:
    async with served(name_it) as host:
        task = await host.call("name_it", {"thing": "dog"})
        params = {"message": message_of("Rex", taskId=task["id"])}
        events = [
            event["statusUpdate"]
            async for event in host.stream("SendStreamingMessage", params)
            if "statusUpdate" in event
        ]
        texts = [event["status"]["message"]["parts"][0]["text"] for event in events if "message" in event["status"]]
        assert texts == ["writing it down"]
        assert state_of(events[-1]) == "completed"


async def test_a_stream_ends_at_the_question() -> None:
    async with served(name_it) as host:
        params = {"message": message_of({"data": {"tool": "name_it", "arguments": {"thing": "dog"}}})}
        events = [event async for event in host.stream("SendStreamingMessage", params)]
        assert state_of(events[-1]["statusUpdate"]) == "input-required"
        old = {"message": old_message({"tool": "name_it", "arguments": {"thing": "dog"}})}
        events = [event async for event in host.stream("message/stream", old, headers={})]
        assert (events[-1]["status"]["state"], events[-1]["final"]) == ("input-required", True)


async def test_a_suspended_source_goes_on_with_its_own_state() -> None:
    remote = Remote()
    async with served(remote) as host:
        task = await host.call("remote")
        assert (state_of(task), said(task)[0]) == ("input-required", "Which one?")
        assert "far-1" not in str(task)
        assert output_of(await host.send("the red one", taskId=task["id"])) == "chose the red one"
        assert remote.answers == [({"task": "far-1"}, True, "the red one")]


async def test_cancelling_a_waiting_task_refuses_its_question() -> None:
    remote = Remote()
    async with served(remote, name_it) as host:
        task = await host.call("remote")
        assert state_of(await host.task("CancelTask", {"id": task["id"]})) == "canceled"
        await _answered(host)
        assert remote.answers == [({"task": "far-1"}, False, None)]
        task = await host.call("name_it", {"thing": "dog"})
        assert state_of(await host.task("CancelTask", {"id": task["id"]})) == "canceled"
        await _answered(host)
        assert (await host.rpc("SendMessage", {"message": message_of("Rex", taskId=task["id"])}))["error"]


async def _answered(host: Host) -> None:
    async with asyncio.timeout(5):
        while host.bench.suspensions():  # noqa: ASYNC110 - the answer is given in the background
            await asyncio.sleep(0.005)


async def test_a_waiting_task_leaves_memory_and_is_answered_from_the_store() -> None:
    async with served(name_it, limits=Limits(idle=0.01)) as host:
        task = await host.call("name_it", {"thing": "dog"})
        await asyncio.sleep(0.1)
        assert state_of(await host.task("GetTask", {"id": task["id"]})) == "input-required"
        assert output_of(await host.send("Rex", taskId=task["id"])) == "dog=Rex"


async def test_a_question_answered_elsewhere_fails_the_task_that_asks_again() -> None:
    async with served(name_it) as host:
        task = await host.call("name_it", {"thing": "dog"})
        (question,) = host.bench.suspensions()
        assert (await host.bench.answer(question.id, data={"name": "Rex"})).output == "dog=Rex"
        late = await host.send("Rex", taskId=task["id"])
        assert (state_of(late), late["metadata"]["code"]) == ("failed", "unknown_suspension")


async def test_a_question_that_nobody_answered_in_time_is_over() -> None:
    async with served(Remote(expires_at=time.time() + 0.2)) as host:
        task = await host.call("remote")
        assert state_of(task) == "input-required"
        over = await host.until(task["id"], "failed")
        assert "in time" in said(over)[0]
        answer = await host.rpc("SendMessage", {"message": message_of("late", taskId=task["id"])})
        assert answer["error"]["code"] == -32004


async def test_in_the_dialect_whoever_asks_again_is_told_failed_while_the_task_waits() -> None:
    """A caller of the Toolnexus A2A tools contract polls until completed, failed or canceled."""
    async with served(name_it) as host:
        message = old_message({"tool": "name_it", "arguments": {"thing": "dog"}})
        first = await host.task("SendMessage", {"message": message}, headers={})
        assert state_of(first) == "input-required"
        second = await host.task("GetTask", {"id": first["id"]}, headers={})
        assert (state_of(second), said(second)[0]) == ("failed", "What is the dog called?")
        assert second["metadata"]["state"] == "input-required"
        assert state_of(await host.task("tasks/get", {"id": first["id"]}, headers={})) == "input-required"
        assert output_of(await host.send("Rex", taskId=first["id"])) == "dog=Rex"
