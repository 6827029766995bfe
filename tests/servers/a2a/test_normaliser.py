"""Ahead of the SDK: what is refused before it sees it, and how; and what dialects become."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from anykit.servers.a2a import Limits
from anykit.servers.a2a.dialects import (
    Told,
    each_file,
    is_toolnexus,
    of_toolnexus,
    rest_03,
    with_final,
    without_empty_ids,
)
from servers.a2a.hosts import V1, add, files, message_of, name_it, old_message, output_of, served, shout, state_of

pytestmark = pytest.mark.anyio

CALL = {"tool": "add", "arguments": {"a": 2, "b": 3}}


def _rpc(body: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 7, **body}).encode()


BAD: list[tuple[bytes, int]] = [
    (b"", -32700),
    (b"{", -32700),
    (b"\xff\xfe", -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"a":NaN}}', -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"a":1e400}}', -32700),
    (b"[" * 200_000, -32700),
    (b'{"a":' * 150 + b"1" + b"}" * 150, -32700),
    (b"1" * 5000, -32700),
    (b"[]", -32600),
    (b'[{"jsonrpc":"2.0","id":1,"method":"GetTask"}]', -32600),
    (b"5", -32600),
    (b"{}", -32600),
    (b'{"jsonrpc":"1.0","id":1,"method":"GetTask"}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600),
    (b'{"jsonrpc":"2.0","id":1}', -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"GetTask"}', -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"GetTask"}', -32600),
    (b'{"jsonrpc":"2.0","id":{},"method":"GetTask"}', -32600),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"GetTask"}', -32600),
    (_rpc({"method": "SendMessage", "params": []}), -32602),
    (_rpc({"method": "SendMessage", "params": "x"}), -32600),
    (_rpc({"method": "SendMessage", "params": {"message": 5}}), -32602),
    (_rpc({"method": "SendMessage", "params": {"message": {"parts": 5}}}), -32602),
    (_rpc({"method": "SendMessage", "params": {}}), -32602),
    (_rpc({"method": "GetTask", "params": {"id": 5}}), -32602),
    (_rpc({"method": "GetTask", "params": {}}), -32602),
]


async def test_what_is_no_request_is_answered_with_its_error_and_the_next_one_works() -> None:
    async with served(add) as host:
        for body, code in BAD:
            status, answer = await host.post("/a2a", body, V1)
            assert (status, answer["jsonrpc"], answer["error"]["code"]) == (200, "2.0", code), body[:100]
        assert output_of(await host.send({"data": CALL})) == "5"


async def test_a_reply_has_the_requests_id_in_type_and_value() -> None:
    identifiers: list[Any] = ["1", 0, "é", -1, "", 2**60]
    async with served(add) as host:
        for identifier in identifiers:
            for method, headers in (("GetTask", V1), ("tasks/get", {}), ("GetTask", {}), ("Nope", V1)):
                request = {"jsonrpc": "2.0", "id": identifier, "method": method, "params": {"id": "none"}}
                _, answer = await host.post("/a2a", request, headers)
                assert answer["id"] == identifier
                assert type(answer["id"]) is type(identifier)


async def test_a_body_that_is_too_large_is_refused_before_it_is_read() -> None:
    async with served(add, limits=Limits(body=1000)) as host:
        for path in ("/a2a", "/a2a/message:send"):
            status, answer = await host.post(path, b" " * 2000, V1)
            assert (status, "larger" in answer["error"]["message"]) == (413, True)
        reader, writer = await asyncio.open_connection("127.0.0.1", int(host.url.rpartition(":")[2]))
        writer.write(b"POST /a2a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50000000\r\n\r\n")
        async with asyncio.timeout(3):
            assert b" 413 " in await reader.readline()
        writer.close()
        await writer.wait_closed()


async def test_http_json_errors_are_those_of_the_protocol() -> None:
    async with served(add) as host:
        for body in (b"{", b"[]", b'{"message":{"parts":[{"data":{"a":9007199254740993}}]}}'):
            status, answer = await host.post("/a2a/message:send", body, V1)
            assert (status, answer["error"]["code"], answer["error"]["status"]) == (400, 400, "INVALID_ARGUMENT")
            assert answer["error"]["details"][0]["domain"] == "a2a-protocol.org"
        status, answer = await host.post("/a2a/message:send", {"message": message_of("x")})
        assert (status, answer["error"]["details"][0]["reason"]) == (400, "VERSION_NOT_SUPPORTED")


async def test_ids_that_are_far_too_long_are_refused() -> None:
    async with served(add) as host:
        for key in ("taskId", "contextId", "messageId"):
            answer = await host.rpc("SendMessage", {"message": message_of("x", **{key: "a" * 600})})
            assert (answer["error"]["code"], key in answer["error"]["message"]) == (-32602, True)
        assert (await host.rpc("GetTask", {"id": "a" * 600}))["error"]["code"] == -32001
        assert (await host.rpc("GetTask", {"id": "\x00"}))["error"]["code"] == -32001


async def test_a_slash_at_the_end_is_the_same_place() -> None:
    async with served(add) as host:
        request = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "SendMessage",
            "params": {"message": message_of({"data": CALL})},
        }
        assert output_of((await host.post("/a2a/", request, V1))[1]["result"]["task"]) == "5"
        async with host.http.get(f"{host.url}/a2a") as reply:
            assert reply.status == 405
        async with host.http.get(f"{host.url}/a2a/nothing") as reply:
            assert reply.status == 404


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "parts": [{"kind": "text", "text": "hi"}]},
        {"role": "user", "parts": [{"type": "text", "text": "hi"}], "messageId": "m"},
        {"parts": [{"kind": "text", "text": "hi"}], "taskId": None, "contextId": ""},
        {"kind": "message", "role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "hi"}]},
    ],
)
async def test_the_dialect_may_leave_out_what_its_contract_does_not_have(message: Any) -> None:
    """The Toolnexus A2A tools contract: method names of 1.0, bodies of 0.3, no version header, a bare task back."""
    async with served(shout) as host:
        answer = await host.rpc("SendMessage", {"message": message, "configuration": {"blocking": True}}, headers={})
        task = answer["result"]
        assert (task["kind"], task["status"]["state"]) == ("task", "completed")
        assert task["artifacts"][0]["parts"][0]["kind"] == "text"
        again = await host.rpc("GetTask", {"id": task["id"]}, headers={})
        assert again["result"]["status"]["state"] == "completed"


async def test_the_dialect_sends_without_waiting_and_looks_for_the_end() -> None:
    async with served(add) as host:
        message = {"role": "user", "parts": [{"kind": "text", "text": json.dumps(CALL)}]}
        params = {"message": message, "configuration": {"blocking": False}}
        task = await host.task("SendMessage", params, headers={})
        assert state_of(task) in ("submitted", "working", "completed")
        async with asyncio.timeout(3):
            while state_of(task) != "completed":
                await asyncio.sleep(0.005)
                task = await host.task("GetTask", {"id": task["id"]}, headers={})
        assert output_of(task) == "5"


async def test_files_of_0_3_over_http_json_are_read_by_both_kinds_of_clients() -> None:
    """The official Python SDK encodes them twice and expects that; everyone else follows the protocol buffers."""
    async with served(files) as host:
        body = {"message": old_message({"tool": "files"})}
        once = base64.b64encode(b"a,b\n").decode()
        for agent, expected in (("node", once), ("python-httpx/0.28", base64.b64encode(once.encode()).decode())):
            _, answer = await host.post("/a2a/v1/message:send", body, {"user-agent": agent})
            file = answer["task"]["artifacts"][0]["parts"][2]["file"]
            assert file["fileWithBytes"] == expected


def test_what_is_the_dialect_and_what_is_not() -> None:
    old, new = {"message": old_message("x")}, {"message": message_of("x")}
    assert is_toolnexus("SendMessage", old, "")
    assert is_toolnexus("SendMessage", old, "0.3")
    assert is_toolnexus("GetTask", {"id": "x"}, "")
    assert not is_toolnexus("SendMessage", old, "1.0")
    assert not is_toolnexus("SendMessage", new, "")
    assert not is_toolnexus("message/send", old, "")
    assert not is_toolnexus("ListTasks", {}, "")
    assert is_toolnexus("SendMessage", {"message": {"role": "user", "parts": []}}, "")


def test_the_dialects_methods_have_names_of_0_3() -> None:
    assert of_toolnexus({"method": "GetTask", "params": {"id": "x"}})["method"] == "tasks/get"
    assert of_toolnexus({"method": "CancelTask"})["params"] == {}
    message = of_toolnexus({"method": "SendMessage", "params": {"message": {"parts": [{"text": "x"}, 5]}}})
    assert message["params"]["message"]["parts"] == [{"kind": "text", "text": "x"}, 5]


def test_a_waiting_task_is_told_as_it_is_once_for_each_time_it_waits() -> None:
    told = Told()
    task = {"id": "t", "status": {"state": "input-required", "timestamp": "1"}}
    assert told.translate(task)["status"]["state"] == "input-required"
    assert told.translate(task)["status"]["state"] == "failed"
    again = {"id": "t", "status": {"state": "input-required", "timestamp": "2"}}
    assert told.translate(again)["status"]["state"] == "input-required"
    assert told.translate({"id": "t", "status": {"state": "working"}})["status"]["state"] == "working"
    assert told.translate(again)["status"]["state"] == "input-required"
    rejected = {"id": "r", "status": {"state": "rejected"}, "metadata": {"code": "policy"}}
    assert told.translate(rejected) == rejected
    assert told.translate(rejected)["metadata"] == {"code": "policy", "state": "rejected"}
    assert told.translate({"id": 5}) == {"id": 5}


def test_ids_that_say_nothing_are_taken_out() -> None:
    message = {"messageId": "m", "taskId": "", "contextId": None}
    assert without_empty_ids(message) == {"messageId": "m"}
    whole = {"messageId": "m", "taskId": "t"}
    assert without_empty_ids(whole) is whole


def test_a_body_of_0_3_gets_the_names_of_its_protocol_buffers() -> None:
    file = {"kind": "file", "file": {"bytes": "aGk=", "name": "f"}}
    body = {
        "message": old_message("hi", {"a": 1}, file),
        "configuration": {"pushNotificationConfig": {"url": "u"}, "blocking": True},
    }
    changed = rest_03(body, twice=False)
    assert changed["message"]["role"] == "ROLE_USER"
    assert changed["message"]["content"] == [
        {"text": "hi"},
        {"data": {"data": {"a": 1}}},
        {"file": {"fileWithBytes": "YUdrPQ==", "name": "f"}},
    ]
    assert changed["configuration"] == {"pushNotification": {"url": "u"}, "blocking": True}
    theirs = {"message": {"content": [{"file": {"fileWithBytes": "aGk="}}]}}
    assert rest_03(theirs, twice=True) is theirs
    assert rest_03(theirs, twice=False)["message"]["content"][0]["file"]["fileWithBytes"] == "YUdrPQ=="
    assert rest_03({"message": 5}, twice=False) == {"message": 5}


def test_only_files_are_encoded_anew() -> None:
    value = {"file": {"fileWithBytes": "a"}, "data": {"fileWithBytes": "b"}, "x": [{"fileWithBytes": "c"}]}
    assert each_file(value, str.upper) == {
        "file": {"fileWithBytes": "A"},
        "data": {"fileWithBytes": "b"},
        "x": [{"fileWithBytes": "C"}],
    }


def test_an_event_is_final_where_the_task_begins_to_wait() -> None:
    waits = {"kind": "status-update", "status": {"state": "input-required"}, "final": False}
    assert with_final({"id": 1, "result": waits})["result"]["final"] is True
    works = {"kind": "status-update", "status": {"state": "working"}, "final": False}
    assert with_final(works) == works
    rest = {"statusUpdate": {"status": {"state": "TASK_STATE_AUTH_REQUIRED"}}}
    assert with_final(rest)["statusUpdate"]["final"] is True
    assert with_final({"kind": "task", "status": {"state": "input-required"}}) == {
        "kind": "task",
        "status": {"state": "input-required"},
    }


async def test_a_stream_of_0_3_over_http_json_is_final_at_the_question() -> None:
    async with served(name_it) as host:
        body = {"message": old_message({"tool": "name_it", "arguments": {"thing": "dog"}})}
        async with host.http.post(f"{host.url}/a2a/v1/message:stream", json=body) as reply:
            events = [json.loads(line[5:]) async for line in reply.content if line.startswith(b"data:")]
        assert events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        assert events[-1]["statusUpdate"]["final"] is True
