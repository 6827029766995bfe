"""The task store over our records: owners, pages, what is forgotten, what a dead process leaves behind."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from a2a.types import ListTasksRequest, Message, Part, Task, TaskState, TaskStatus
from a2a.utils.errors import InvalidParamsError

from anykit.servers.a2a.tasks import EXPIRES_KEY, HEAD, SWEEP, RecordTasks
from anykit.stores import MemoryRecords, RecordStore, SqliteRecords
from servers.a2a.callers import by
from servers.a2a.hosts import Sleeper, add, message_of, name_it, output_of, said, served, state_of

pytestmark = pytest.mark.anyio


ANN, BOB = by("ann"), by("bob")


def a_task(id: str, state: Any = TaskState.TASK_STATE_COMPLETED, *, context: str = "c", at: int = 0) -> Task:
    status = TaskStatus(state=state)
    if at:
        status.timestamp.FromSeconds(at)
    return Task(id=id, context_id=context, status=status, history=[Message(message_id="m", parts=[Part(text="hi")])])


@pytest.fixture(params=["memory", "sqlite"])
async def records(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[RecordStore]:
    store: RecordStore = MemoryRecords() if request.param == "memory" else SqliteRecords(tmp_path / "r.sqlite3")
    yield store
    await store.close()


async def test_a_task_comes_back_as_it_was_and_is_a_copy(records: RecordStore) -> None:
    store = RecordTasks(records)
    task = a_task("t", TaskState.TASK_STATE_WORKING)
    await store.save(task, ANN)
    task.context_id = "changed"
    found = await store.get("t", ANN)
    assert found is not None
    assert (found.context_id, found.history[0].parts[0].text) == ("c", "hi")
    found.context_id = "changed"
    again = await store.get("t", ANN)
    assert again is not None
    assert again.context_id == "c"
    await store.save(a_task("t"), ANN)
    ended = await RecordTasks(records).get("t", ANN)
    assert ended is not None
    assert ended.status.state == TaskState.TASK_STATE_COMPLETED


async def test_a_task_belongs_to_its_principal(records: RecordStore) -> None:
    store = RecordTasks(records)
    await store.save(a_task("t"), ANN)
    await store.save(a_task("run", TaskState.TASK_STATE_WORKING), ANN)
    for name in ("t", "run"):
        assert await store.get(name, BOB) is None
    assert not (await store.list(ListTasksRequest(), BOB)).tasks
    await store.delete("t", BOB)
    assert await store.get("t", ANN) is not None
    await store.delete("t", ANN)
    assert await store.get("t", ANN) is None


async def test_tasks_are_listed_the_latest_first_and_a_token_survives_changes(records: RecordStore) -> None:
    store = RecordTasks(records)
    for number in range(1, 8):
        state = TaskState.TASK_STATE_FAILED if number == 3 else TaskState.TASK_STATE_COMPLETED
        await store.save(a_task(f"t{number}", state, context=f"c{number % 2}", at=1000 + number), ANN)
    first = await store.list(ListTasksRequest(page_size=3), ANN)
    assert ([task.id for task in first.tasks], first.total_size) == (["t7", "t6", "t5"], 7)
    await store.delete("t5", ANN)
    second = await store.list(ListTasksRequest(page_size=3, page_token=first.next_page_token), ANN)
    assert [task.id for task in second.tasks] == ["t4", "t3", "t2"]
    last = await store.list(ListTasksRequest(page_size=3, page_token=second.next_page_token), ANN)
    assert ([task.id for task in last.tasks], last.next_page_token) == (["t1"], "")
    failed = await store.list(ListTasksRequest(status=TaskState.TASK_STATE_FAILED), ANN)
    assert [task.id for task in failed.tasks] == ["t3"]
    context = await store.list(ListTasksRequest(context_id="c0"), ANN)
    assert [task.id for task in context.tasks] == ["t6", "t4", "t2"]
    later = ListTasksRequest()
    later.status_timestamp_after.FromSeconds(1006)
    assert [task.id for task in (await store.list(later, ANN)).tasks] == ["t7", "t6"]
    with pytest.raises(InvalidParamsError):
        await store.list(ListTasksRequest(page_token="nonsense"), ANN)


async def test_a_running_task_is_not_written_for_each_event(records: RecordStore) -> None:
    store = RecordTasks(records)
    task = a_task("t", TaskState.TASK_STATE_SUBMITTED)
    await store.save(task, ANN)
    task.status.state = TaskState.TASK_STATE_WORKING
    for number in range(50):
        task.history.append(Message(message_id=str(number)))
        await store.save(task, ANN)
    live = await store.get("t", ANN)
    assert live is not None
    assert len(live.history) == 51
    record = await records.get(HEAD, "t", principal="ann")
    assert record is not None
    assert record.value["state"] == TaskState.TASK_STATE_SUBMITTED


async def test_only_so_many_finished_tasks_are_kept() -> None:
    records = MemoryRecords()
    store = RecordTasks(records, kept=10)
    await store.save(a_task("runs", TaskState.TASK_STATE_WORKING), ANN)
    for number in range(2 * SWEEP):
        await store.save(a_task(f"t{number}", at=1000 + number), ANN)
    found = [task.id for task in (await store.list(ListTasksRequest(page_size=100), ANN)).tasks]
    assert set(found) == {f"t{number}" for number in range(2 * SWEEP - 10, 2 * SWEEP)} | {"runs"}


async def test_a_finished_task_is_forgotten_after_its_time() -> None:
    now = [1000.0]
    records = MemoryRecords(now=lambda: now[0])
    store = RecordTasks(records, lifetime=60, now=lambda: now[0])
    await store.save(a_task("t"), ANN)
    now[0] += 59
    assert await store.get("t", ANN) is not None
    now[0] += 2
    assert await store.get("t", ANN) is None


async def test_a_task_of_a_process_that_is_gone_has_failed() -> None:
    records = MemoryRecords()
    gone = RecordTasks(records)
    for state in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING):
        await gone.save(a_task("t", state), ANN)
        here = RecordTasks(records)
        running = await here.get("t", ANN)
        assert running is not None  # another store of a living process may be at work on it
        assert running.status.state in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING)
        gone.close()
        lost = await here.get("t", ANN)
        assert lost is not None
        assert lost.status.state == TaskState.TASK_STATE_FAILED
        assert "not known" in lost.status.message.parts[0].text
        gone = RecordTasks(records)


async def test_a_process_is_looked_for_where_it_ran() -> None:
    records = MemoryRecords()
    store = RecordTasks(records)
    await store.save(a_task("t", TaskState.TASK_STATE_WORKING), ANN)
    head = await records.get(HEAD, "t", principal="ann")
    assert head is not None
    other = RecordTasks(records)
    for runner, lost in (
        ({"host": "elsewhere", "pid": 1, "token": "x"}, False),
        ({**head.value["runner"], "pid": os.getppid()}, False),
        ({**head.value["runner"], "pid": 2**22 - 3}, True),
    ):
        await records.put(HEAD, "t", {**head.value, "runner": runner}, principal="ann")
        task = await other.get("t", ANN)
        assert task is not None
        assert (task.status.state == TaskState.TASK_STATE_FAILED) is lost


async def test_a_question_that_is_over_fails_its_task() -> None:
    now = [1000.0]
    store = RecordTasks(MemoryRecords(now=lambda: now[0]), now=lambda: now[0])
    task = a_task("t", TaskState.TASK_STATE_INPUT_REQUIRED)
    task.metadata.update({EXPIRES_KEY: 1100.0})
    await store.save(task, ANN)
    waiting = await store.get("t", ANN)
    assert waiting is not None
    assert waiting.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    now[0] = 1101
    over = await store.get("t", ANN)
    assert over is not None
    assert over.status.state == TaskState.TASK_STATE_FAILED


@pytest.mark.parametrize("name", ["", "a" * 513, "\x00", "/../x"])
async def test_a_name_that_cannot_be_one_is_not_found(name: str) -> None:
    assert await RecordTasks(MemoryRecords()).get(name, ANN) is None


# over the wire


async def test_tasks_of_one_principal_are_not_there_for_another() -> None:
    records = MemoryRecords()
    sleeper = Sleeper()
    async with (
        served(add, name_it, sleeper.tool, records=records, principal="ann") as ann,
        served(add, name_it, records=records, principal="bob") as bob,
    ):
        done = await ann.call("add", {"a": 1, "b": 2}, contextId="shared")
        waits = await ann.call("name_it", {"thing": "dog"}, contextId="shared")
        runs = await ann.send({"data": {"tool": "sleep"}}, configuration={"returnImmediately": True})
        for task in (done, waits, runs):
            for method in ("GetTask", "CancelTask", "SubscribeToTask"):
                assert (await bob.rpc(method, {"id": task["id"]}))["error"]["code"] == -32001
            message = message_of("Rex", taskId=task["id"], contextId="shared")
            assert (await bob.rpc("SendMessage", {"message": message}))["error"]["code"] == -32001
        assert (await bob.rpc("ListTasks", {"contextId": "shared"}))["result"]["totalSize"] == 0
        assert (await ann.rpc("ListTasks", {"contextId": "shared"}))["result"]["totalSize"] == 2
        assert output_of(await ann.send("Rex", taskId=waits["id"])) == "dog=Rex"


async def test_tasks_outlive_their_host_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "records.sqlite3"
    sleeper = Sleeper()
    async with served(add, sleeper.tool, name_it, records=SqliteRecords(file)) as host:
        done = await host.call("add", {"a": 1, "b": 2})
        runs = await host.send({"data": {"tool": "sleep"}}, configuration={"returnImmediately": True})
        waits = await host.call("name_it", {"thing": "dog"})
        await sleeper.started.wait()
    async with asyncio.timeout(2):
        await sleeper.cancelled.wait()
    async with served(add, name_it, records=SqliteRecords(file)) as host:
        assert output_of(await host.task("GetTask", {"id": done["id"]})) == "3"
        lost = await host.task("GetTask", {"id": runs["id"]})
        assert (state_of(lost), "shut down" in said(lost)[0]) == ("failed", True)
        late = await host.send("Rex", taskId=waits["id"])
        assert (state_of(late), late["metadata"]["code"]) == ("failed", "unknown_suspension")
