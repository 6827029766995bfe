"""Streams: what a call says while it runs, tasks that go on without their caller, cancelling them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from anykit import tool
from anykit.capabilities import Artifact, CapabilityContext, Progress, Status, TextPart
from servers.a2a.hosts import (
    V1,
    WAIT,
    Sleeper,
    add,
    chunks,
    message_of,
    old_message,
    output_of,
    parts_of,
    served,
    state_of,
    tells,
)

pytestmark = pytest.mark.anyio

LATER = {"returnImmediately": True}


def _kind(event: dict[str, Any]) -> str:
    return next(iter(event))


async def test_a_stream_tells_the_task_its_states_and_its_result() -> None:
    async with served(add) as host:
        params = {"message": message_of({"data": {"tool": "add", "arguments": {"a": 1, "b": 2}}})}
        events = [event async for event in host.stream("SendStreamingMessage", params)]
        assert [_kind(event) for event in events] == ["task", "statusUpdate", "artifactUpdate", "statusUpdate"]
        assert state_of(events[0]["task"]) == "submitted"
        assert state_of(events[-1]["statusUpdate"]) == "completed"
        assert events[2]["artifactUpdate"]["artifact"]["parts"][0] == {"text": "3"}


async def test_a_stream_of_0_3_ends_with_a_final_event() -> None:
    async with served(add) as host:
        params = {"message": old_message({"tool": "add", "arguments": {"a": 1, "b": 2}})}
        for method in ("message/stream", "SendStreamingMessage"):
            events = [event async for event in host.stream(method, params, headers={})]
            assert [event["kind"] for event in events] == ["task", "status-update", "artifact-update", "status-update"]
            assert events[-1]["final"] is True
            assert events[-1]["status"]["state"] == "completed"


async def test_a_stream_over_http_json() -> None:
    async with served(add) as host:
        body = {"message": message_of({"data": {"tool": "add", "arguments": {"a": 1, "b": 2}}})}
        async with host.http.post(f"{host.url}/a2a/message:stream", json=body, headers=V1) as reply:
            text = await reply.text()
        assert text.count("data:") == 4
        assert '"TASK_STATE_COMPLETED"' in text


async def test_what_a_call_tells_is_streamed() -> None:
    async with served(tells) as host:
        params = {"message": message_of({"data": {"tool": "tells"}})}
        updates = [
            event["statusUpdate"]
            async for event in host.stream("SendStreamingMessage", params)
            if "statusUpdate" in event
        ]
        texts = [one["status"]["message"]["parts"][0]["text"] for one in updates if "message" in one["status"]]
        assert texts == ["a quarter", "thinking", "it is late"]
        assert updates[1]["metadata"]["progress"] == {"done": 1, "total": 4}
        assert updates[3]["metadata"]["level"] == "warning"


async def test_pieces_of_a_result_are_streamed_and_not_said_twice() -> None:
    async with served(chunks) as host:
        params = {"message": message_of({"data": {"tool": "chunks"}})}
        updates = [
            event["artifactUpdate"]
            async for event in host.stream("SendStreamingMessage", params)
            if "artifactUpdate" in event
        ]
        assert "".join(one["artifact"]["parts"][0]["text"] for one in updates) == "one two three"
        assert len({one["artifact"]["artifactId"] for one in updates}) == 1
        assert [one.get("append", False) for one in updates] == [False] + [True] * (len(updates) - 1)
        assert updates[-1]["lastChunk"] is True
        task = await host.call("chunks")
        assert [artifact["name"] for artifact in task["artifacts"]] == ["story"]
        assert output_of(task) == "one two three"


async def test_a_result_that_differs_from_its_pieces_stands_beside_them() -> None:
    @tool
    async def draft(context: CapabilityContext) -> dict[str, int]:
        """Sends a draft first."""
        context.emit(Artifact("draft", TextPart(text="rough"), append=True, last=False))
        return {"words": 1}

    async with served(draft) as host:
        task = await host.call("draft")
        assert [artifact["name"] for artifact in task["artifacts"]] == ["draft", "result"]
        assert [part.get("text") for part in parts_of(task)] == ["rough", '{"words":1}', None]


async def test_a_flood_of_progress_is_merged_and_its_end_is_told() -> None:
    @tool
    async def count(context: CapabilityContext) -> str:
        """Counts."""
        for number in range(5000):
            context.emit(Progress(number + 1, 5000))
            if number % 500 == 0:
                await asyncio.sleep(0)
        return "counted"

    async with served(count) as host:
        params = {"message": message_of({"data": {"tool": "count"}})}
        reports = [
            event["statusUpdate"]["metadata"]["progress"]["done"]
            async for event in host.stream("SendStreamingMessage", params)
            if "progress" in event.get("statusUpdate", {}).get("metadata", {})
        ]
        assert len(reports) < 50
        assert reports[-1] == 5000


async def test_a_long_result_in_small_pieces_arrives_whole_and_in_few() -> None:
    @tool
    async def write(context: CapabilityContext) -> str:
        """Writes a lot, a word at a time."""
        for number in range(5000):
            context.emit(Artifact("text", TextPart(text=f"{number} "), append=number > 0, last=False))
            if number % 10 == 0:
                await asyncio.sleep(0)
        return "".join(f"{number} " for number in range(5000))

    async with served(write) as host:
        params = {"message": message_of({"data": {"tool": "write"}})}
        updates = [
            event["artifactUpdate"]["artifact"]
            async for event in host.stream("SendStreamingMessage", params)
            if "artifactUpdate" in event
        ]
        whole = "".join(f"{number} " for number in range(5000))
        assert "".join(one["parts"][0]["text"] for one in updates) == whole
        assert len(updates) < 200
        (task,) = (await host.rpc("ListTasks", {"includeArtifacts": True}))["result"]["tasks"]
        assert output_of(task) == whole


async def test_a_talkative_call_keeps_its_history_short() -> None:
    @tool
    async def talk(context: CapabilityContext) -> str:
        """Talks."""
        for number in range(3000):
            context.emit(Status(f"remark {number}"))
            await asyncio.sleep(0)
        return "done"

    async with served(talk) as host:
        task = await host.call("talk")
        assert output_of(task) == "done"
        assert len(task["history"]) <= 1001


async def test_a_call_goes_on_when_its_caller_does_not_wait() -> None:
    sleeper = Sleeper()
    async with served(sleeper.tool) as host:
        task = await host.send({"data": {"tool": "sleep"}}, configuration=LATER)
        assert state_of(task) in ("submitted", "working")
        await sleeper.started.wait()
        assert state_of(await host.until(task["id"], "working")) == "working"
        sleeper.wake.set()
        assert output_of(await host.until(task["id"], "completed")) == "awake"


async def test_a_broken_stream_is_taken_up_again() -> None:
    sleeper = Sleeper()
    async with served(sleeper.tool) as host:
        params = {"message": message_of({"data": {"tool": "sleep"}})}
        stream = host.stream("SendStreamingMessage", params)
        first = await anext(stream)
        await stream.aclose()
        await sleeper.started.wait()
        for method, headers in (("SubscribeToTask", V1), ("tasks/resubscribe", {})):
            again = host.stream(method, {"id": first["task"]["id"]}, headers=headers)
            assert state_of((await anext(again)).get("task", {"status": {"state": "working"}})) == "working"
            await again.aclose()
        again = host.stream("SubscribeToTask", {"id": first["task"]["id"]})
        assert state_of((await anext(again))["task"]) == "working"
        sleeper.wake.set()
        rest = [event async for event in again]
        assert [_kind(event) for event in rest] == ["artifactUpdate", "statusUpdate"]
        assert state_of(rest[-1]["statusUpdate"]) == "completed"
        over = await host.rpc("SubscribeToTask", {"id": first["task"]["id"]})
        assert over["error"]["code"] == -32004
        assert sleeper.calls == 1


@pytest.mark.parametrize(
    ("method", "headers"),
    [("CancelTask", V1), ("tasks/cancel", {}), ("CancelTask", {})],
    ids=["1.0", "0.3", "toolnexus"],
)
async def test_cancelling_a_task_cancels_its_call(method: str, headers: dict[str, str]) -> None:
    sleeper = Sleeper()
    async with served(sleeper.tool) as host:
        task = await host.send({"data": {"tool": "sleep"}}, configuration=LATER)
        await sleeper.started.wait()
        cancelled = await host.task(method, {"id": task["id"]}, headers=headers)
        assert state_of(cancelled) == "canceled"
        async with asyncio.timeout(WAIT):
            await sleeper.cancelled.wait()
        assert state_of(await host.task("GetTask", {"id": task["id"]})) == "canceled"
        assert (await host.rpc("CancelTask", {"id": task["id"]}))["error"]["code"] == -32002


async def test_cancelling_over_http_json() -> None:
    sleeper = Sleeper()
    async with served(sleeper.tool) as host:
        for path, headers in (("/a2a/tasks", V1), ("/a2a/v1/tasks", {})):
            task = await host.send({"data": {"tool": "sleep"}}, configuration=LATER)
            await sleeper.started.wait()
            status, answer = await host.post(f"{path}/{task['id']}:cancel", b"", headers)
            assert (status, state_of(answer)) in ((200, "canceled"), (200, "cancelled"))  # 0.3's REST writes two l


async def test_a_waiting_stream_hears_of_the_cancelling() -> None:
    sleeper = Sleeper()
    async with served(sleeper.tool) as host:
        params = {"message": message_of({"data": {"tool": "sleep"}})}
        stream = host.stream("SendStreamingMessage", params)
        first = await anext(stream)
        await sleeper.started.wait()
        await host.task("CancelTask", {"id": first["task"]["id"]})
        events = [event async for event in stream]
        assert state_of(events[-1]["statusUpdate"]) == "canceled"


async def test_an_unknown_task_can_be_neither_read_nor_cancelled_nor_followed() -> None:
    async with served(add) as host:
        for method in ("GetTask", "CancelTask", "SubscribeToTask"):
            assert (await host.rpc(method, {"id": "nope"}))["error"]["code"] == -32001
        for method in ("tasks/get", "tasks/cancel"):
            assert (await host.rpc(method, {"id": "nope"}, headers={}))["error"]["code"] == -32001
        async with host.http.get(f"{host.url}/a2a/tasks/nope", headers=V1) as reply:
            assert reply.status == 404
            assert (await reply.json())["error"]["details"][0]["reason"] == "TASK_NOT_FOUND"
        async with host.http.get(f"{host.url}/a2a/v1/tasks/nope") as reply:
            assert reply.status == 404


async def test_streams_end_when_the_host_does() -> None:
    sleeper = Sleeper()
    async with served(sleeper.tool) as host:
        params = {"message": message_of({"data": {"tool": "sleep"}})}
        stream = host.stream("SendStreamingMessage", params)
        await anext(stream)
        await sleeper.started.wait()
        host.server.stop()
        async with asyncio.timeout(WAIT):
            async for _ in stream:
                pass
            await sleeper.cancelled.wait()
