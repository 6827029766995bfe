"""Calls over JSON-RPC and HTTP+JSON, in 1.0, 0.3 and the toolnexus dialect: what a message runs and what comes back."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from servers.a2a.hosts import (
    V1,
    Host,
    Notes,
    Sleeper,
    add,
    breaks,
    fails,
    files,
    message_of,
    name_it,
    old_message,
    output_of,
    parts_of,
    said,
    served,
    shout,
    state_of,
)

pytestmark = pytest.mark.anyio

CALL: dict[str, Any] = {"tool": "add", "arguments": {"a": 2, "b": 3}}


async def _rpc_1_0(host: Host) -> Any:
    return await host.send({"data": CALL})


async def _rpc_0_3(host: Host) -> Any:
    return await host.task("message/send", {"message": old_message(CALL)}, headers={})


async def _toolnexus(host: Host) -> Any:
    message = old_message(CALL)
    del message["kind"]
    return await host.task("SendMessage", {"message": message}, headers={})


async def _rest_1_0(host: Host) -> Any:
    status, answer = await host.post("/a2a/message:send", {"message": message_of({"data": CALL})}, V1)
    assert status == 200
    return answer["task"]


async def _rest_0_3_of_the_sdk(host: Host) -> Any:
    message = {"messageId": "m", "role": "ROLE_USER", "content": [{"data": {"data": CALL}}]}
    status, answer = await host.post("/a2a/v1/message:send", {"message": message})
    assert status == 200
    return answer["task"]


async def _rest_0_3_as_written(host: Host) -> Any:
    status, answer = await host.post("/a2a/v1/message:send", {"message": old_message(CALL)})
    assert status == 200
    return answer["task"]


WAYS = [_rpc_1_0, _rpc_0_3, _toolnexus, _rest_1_0, _rest_0_3_of_the_sdk, _rest_0_3_as_written]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))
async def test_every_way_runs_the_call(way: Any) -> None:
    async with served(add, shout) as host:
        task = await way(host)
        assert state_of(task) == "completed"
        assert output_of(task) == "5"


async def test_a_structured_result_is_data_behind_its_text() -> None:
    async with served(shout) as host:
        task = await host.call("shout", {"text": "hi"})
        text, data = parts_of(task)
        assert text == {"text": '{"text":"HI","length":2}'}
        assert data["data"] == {"text": "HI", "length": 2}
        assert data["mediaType"] == "application/json"


async def test_whole_numbers_are_written_as_such() -> None:
    async with served(add) as host:
        (text, data) = parts_of(await host.call("add", {"a": 2, "b": 3}))
        assert (text["text"], data["data"], type(data["data"])) == ("5", 5, int)
        params = {"message": message_of({"data": CALL})}
        events = [event async for event in host.stream("SendStreamingMessage", params)]
        assert repr(events[2]["artifactUpdate"]["artifact"]["parts"][1]["data"]) == "5"
        for path, body, headers in (
            ("/a2a/message:send", params, V1),
            ("/a2a/v1/message:send", {"message": old_message(CALL)}, {}),
        ):
            _, answer = await host.post(path, body, headers)
            assert "5.0" not in str(answer)


async def test_a_structured_result_is_a_data_part_in_0_3_too() -> None:
    async with served(shout) as host:
        task = await host.task("message/send", {"message": old_message("hi")}, headers={})
        assert [part["kind"] for part in parts_of(task)] == ["text", "data"]
        assert parts_of(task)[1]["data"] == {"text": "HI", "length": 2}


async def test_files_are_file_parts_with_name_and_type() -> None:
    async with served(files) as host:
        text, picture, table, link = parts_of(await host.call("files"))
        assert text == {"text": "two files"}
        assert (base64.b64decode(picture["raw"]), picture["mediaType"]) == (b"\x89PNG", "image/png")
        assert (base64.b64decode(table["raw"]), table["filename"]) == (b"a,b\n", "table.csv")
        assert (link["url"], link["mediaType"]) == ("https://files.example/big.zip", "application/zip")
        old = await host.task("message/send", {"message": old_message({"tool": "files"})}, headers={})
        assert parts_of(old)[2]["file"] == {"bytes": "YSxiCg==", "mimeType": "text/csv", "name": "table.csv"}


async def test_the_data_part_is_the_arguments_under_a_skill_id() -> None:
    async with served(add, shout) as host:
        task = await host.send({"data": {"a": 4, "b": 5}}, metadata={"skillId": "add"})
        assert output_of(task) == "9"


async def test_the_skill_may_be_named_by_the_requests_metadata() -> None:
    async with served(add, shout) as host:
        params = {"message": message_of({"data": {"a": 4, "b": 5}}), "metadata": {"skillId": "add"}}
        assert output_of(await host.task("SendMessage", params)) == "9"


async def test_a_text_runs_the_skill_that_is_named() -> None:
    async with served(shout, name_it) as host:
        task = await host.send("hello", metadata={"skillId": "shout"})
        assert parts_of(task)[1]["data"]["text"] == "HELLO"


async def test_a_text_alone_runs_the_only_skill_with_one_text() -> None:
    async with served(add, shout, fails) as host:
        assert parts_of(await host.send("hello"))[1]["data"]["text"] == "HELLO"


async def test_a_text_that_could_mean_two_skills_is_asked_about_with_the_schema() -> None:
    async with served(add, shout, files) as host:
        task = await host.send("hello")
        assert state_of(task) == "input-required"
        prompt, needed = said(task)
        assert "add(a: integer, b: integer)" in prompt
        schema = needed["schema"]
        assert schema["properties"]["tool"]["enum"] == ["add", "shout", "files"]
        assert schema["oneOf"][0]["properties"]["arguments"]["required"] == ["a", "b"]
        done = await host.send({"data": CALL}, taskId=task["id"])
        assert (done["id"], state_of(done), output_of(done)) == (task["id"], "completed", "5")


async def test_a_text_for_a_skill_that_takes_more_is_asked_about_with_its_schema() -> None:
    async with served(add, shout) as host:
        task = await host.send("two and three", metadata={"skillId": "add"})
        assert state_of(task) == "input-required"
        assert said(task)[1]["schema"]["required"] == ["a", "b"]
        done = await host.send({"data": {"a": 2, "b": 3}}, taskId=task["id"])
        assert output_of(done) == "5"


async def test_arguments_that_do_not_fit_are_asked_for_again_with_every_fault() -> None:
    async with served(add) as host:
        task = await host.call("add", {"a": "two"})
        assert state_of(task) == "input-required"
        assert "/a:" in said(task)[0]
        assert "'b' is required" in said(task)[0]
        assert said(task)[1]["schema"]["required"] == ["a", "b"]
        assert output_of(await host.send({"data": {"a": 1, "b": 1}}, taskId=task["id"])) == "2"


async def test_a_call_written_as_json_text_is_a_call() -> None:
    async with served(add, shout) as host:
        assert output_of(await host.send('{"tool": "add", "arguments": {"a": 2, "b": 3}}')) == "5"


async def test_json_text_that_names_no_skill_is_just_text() -> None:
    async with served(add, shout) as host:
        task = await host.send('{"tool": "hammer", "arguments": {}}')
        assert parts_of(task)[1]["data"]["text"] == '{"TOOL": "HAMMER", "ARGUMENTS": {}}'


async def test_text_of_the_media_type_json_is_data() -> None:
    async with served(add, shout) as host:
        part = {"text": '{"a": 2, "b": 3}', "mediaType": "application/json"}
        assert output_of(await host.send(part, metadata={"skillId": "add"})) == "5"


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [{"raw": "aGk=", "filename": "x.txt"}],
        [{"data": CALL}, {"data": CALL}],
        [{"data": {"a": 1}}],
        [{"data": [1, 2]}],
        [{"text": "  "}],
    ],
    ids=["empty", "file", "two calls", "no tool", "array", "blank"],
)
async def test_what_says_no_call_is_asked_about(parts: list[Any]) -> None:
    async with served(add, fails) as host:
        answer = await host.rpc("SendMessage", {"message": message_of(*parts)})
        if not parts:  # 1.0 requires a part
            assert answer["error"]["code"] == -32602
        else:
            assert state_of(answer["result"]["task"]) == "input-required"


async def test_a_tool_that_says_it_failed_has_failed() -> None:
    async with served(fails) as host:
        task = await host.call("fails")
        assert state_of(task) == "failed"
        assert said(task) == ["the printer is on fire", {"where": "cellar"}]
        assert task["metadata"]["code"] == "execution_failed"


async def test_an_exceptions_text_stays_here_and_an_id_leaves() -> None:
    async with served(breaks) as host:
        answer = await host.rpc("SendMessage", {"message": message_of({"data": {"tool": "breaks"}})})
        assert "secret-in-the-exception" not in str(answer)
        assert "error " in said(answer["result"]["task"])[0]


async def test_an_unknown_tool_fails_and_says_what_was_meant() -> None:
    async with served(add) as host:
        task = await host.call("addd", {"a": 1, "b": 2})
        assert (state_of(task), task["metadata"]["code"]) == ("failed", "unknown_tool")
        assert said(task)[0] == "unknown tool 'addd'; did you mean add?"


async def test_a_tool_of_a_toolkit_that_is_not_configured_is_rejected() -> None:
    async with served(Notes, add, configure=False) as host:
        task = await host.call("read_note", {"number": 1})
        assert (state_of(task), task["metadata"]["code"]) == ("rejected", "not_configured")
        assert "not configured" in said(task)[0]


async def test_a_tool_of_a_configured_toolkit_runs() -> None:
    async with served(Notes) as host:
        assert output_of(await host.call("read_note", {"number": 7})) == "note 7"


async def test_more_calls_than_may_wait_are_told_busy() -> None:
    from anykit.servers.a2a import Limits

    sleeper = Sleeper()
    async with served(sleeper.tool, limits=Limits(max_parallel=1, queue=1)) as host:
        later = {"returnImmediately": True}
        first = await host.send({"data": {"tool": "sleep"}}, configuration=later)
        second = await host.send({"data": {"tool": "sleep"}}, configuration=later)
        third = await host.send({"data": {"tool": "sleep"}})
        assert (state_of(third), third["metadata"]["code"]) == ("failed", "busy")
        assert third["metadata"]["retryable"] is True
        sleeper.wake.set()
        for task in (first, second):
            assert output_of(await host.until(task["id"], "completed")) == "awake"
        assert sleeper.calls == 2


async def test_a_message_to_a_task_that_is_over_is_refused() -> None:
    async with served(add) as host:
        task = await host.call("add", {"a": 1, "b": 2})
        answer = await host.rpc("SendMessage", {"message": message_of("again", taskId=task["id"])})
        assert answer["error"]["code"] == -32004
        assert "completed" in answer["error"]["message"]


async def test_a_message_to_a_task_at_work_is_refused_and_does_not_get_lost() -> None:
    sleeper = Sleeper()
    async with served(sleeper.tool) as host:
        task = await host.send({"data": {"tool": "sleep"}}, configuration={"returnImmediately": True})
        await sleeper.started.wait()
        answer = await host.rpc("SendMessage", {"message": message_of("again", taskId=task["id"])})
        assert (answer["error"]["code"], "working" in answer["error"]["message"]) == (-32004, True)


async def test_a_message_for_an_unknown_task_is_refused() -> None:
    async with served(add) as host:
        answer = await host.rpc("SendMessage", {"message": message_of("again", taskId="nope")})
        assert answer["error"]["code"] == -32001
        old = await host.rpc("message/send", {"message": old_message("again", taskId="nope")}, headers={})
        assert old["error"]["code"] == -32001


async def test_a_context_goes_on_over_tasks_and_a_wrong_one_is_refused() -> None:
    async with served(add, name_it) as host:
        first = await host.call("add", {"a": 1, "b": 2}, contextId="talk-1")
        second = await host.call("name_it", {"thing": "dog"}, contextId="talk-1")
        assert (first["contextId"], second["contextId"]) == ("talk-1", "talk-1")
        params = {"message": message_of("Rex", taskId=second["id"], contextId="talk-2")}
        assert (await host.rpc("SendMessage", params))["error"]["code"] == -32602


async def test_empty_ids_are_no_ids() -> None:
    async with served(add) as host:
        task = await host.call("add", {"a": 1, "b": 2}, taskId="", contextId=None)
        assert output_of(task) == "3"


@pytest.mark.parametrize("version", ["9.0", "banana"])
async def test_a_version_that_is_not_spoken_is_refused(version: str) -> None:
    async with served(add) as host:
        answer = await host.rpc("SendMessage", {"message": message_of("x")}, headers={"A2A-Version": version})
        assert answer["error"]["code"] == -32009


async def test_a_body_of_1_0_without_its_version_is_refused() -> None:
    async with served(add) as host:
        answer = await host.rpc("SendMessage", {"message": message_of("x")}, headers={})
        assert answer["error"]["code"] == -32009


async def test_an_unknown_method_is_not_found() -> None:
    async with served(add) as host:
        assert (await host.rpc("DoTheDishes"))["error"]["code"] == -32601


async def test_tasks_are_listed_the_latest_first_a_page_at_a_time() -> None:
    async with served(add) as host:
        ids = [(await host.call("add", {"a": 1, "b": n}, contextId=f"c{n % 2}"))["id"] for n in range(5)]
        page = await host.rpc("ListTasks", {"pageSize": 2})
        assert [task["id"] for task in page["result"]["tasks"]] == ids[:2:-1]
        assert page["result"]["totalSize"] == 5
        assert "artifacts" not in page["result"]["tasks"][0]
        token = page["result"]["nextPageToken"]
        rest = await host.rpc("ListTasks", {"pageSize": 50, "pageToken": token, "includeArtifacts": True})
        assert [task["id"] for task in rest["result"]["tasks"]] == ids[2::-1]
        assert output_of(rest["result"]["tasks"][0]) == "3"
        mine = await host.rpc("ListTasks", {"contextId": "c1", "status": "TASK_STATE_COMPLETED"})
        assert [task["id"] for task in mine["result"]["tasks"]] == [ids[3], ids[1]]
        assert (await host.rpc("ListTasks", {"pageToken": "!"}))["error"]["code"] == -32602
        async with host.http.get(f"{host.url}/a2a/tasks?pageSize=1", headers=V1) as reply:
            assert [task["id"] for task in (await reply.json())["tasks"]] == [ids[4]]


async def test_no_extended_card_is_offered_and_asking_for_one_says_so() -> None:
    async with served(add) as host:
        assert (await host.rpc("GetExtendedAgentCard"))["error"]["code"] in (-32004, -32007)


async def test_the_history_is_cut_as_asked() -> None:
    async with served(add) as host:
        task = await host.call("add", {"a": 1, "b": 2})
        assert len(task["history"]) == 1
        assert "history" not in await host.task("GetTask", {"id": task["id"], "historyLength": 0})
