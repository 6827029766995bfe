"""Streamable HTTP: sessions of the old era, requests of the new one, and who is turned away before anything is read."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from anykit import Workbench, tool
from anykit.capabilities import CapabilityContext, Progress
from anykit.servers.mcp import Limits
from servers.mcp.peers import (
    LEGACY,
    MODERN,
    WAIT,
    Slow,
    add,
    call,
    echo,
    envelope,
    greet,
    http,
    initialize,
    modern_headers,
    narrate,
    notification,
    request,
    until,
)

pytestmark = pytest.mark.anyio


# the old era: sessions


async def test_a_handshake_opens_a_session_whose_id_a_header_can_carry() -> None:
    async with http(add) as client:
        reply = await client.post(initialize(5))
        assert (reply.status, reply.kind, reply.json["id"]) == (200, "application/json", 5)
        session = reply.headers["Mcp-Session-Id"]
        assert session.isascii()
        assert session.isprintable()
        assert len(session) >= 32
        assert (await client.post(initialize())).headers["Mcp-Session-Id"] != session


async def test_b033_a_session_that_is_not_known_is_404_with_an_error_of_the_protocol() -> None:
    """markmhendrickson/neotoma#1923."""
    async with http(add) as client:
        gone = {"Mcp-Session-Id": "gone"}
        refused = await client.post(request(1, "tools/list"), headers=gone)
        assert (refused.status, refused.kind) == (404, "application/json")
        assert refused.json["jsonrpc"] == "2.0"
        assert refused.json["error"]["code"] == -32600
        assert (await client.send("GET", client.headers(**gone))).status == 404
        assert (await client.send("DELETE", client.headers(**gone))).status == 404
        assert (await client.post(notification("notifications/initialized"), headers=gone)).status == 404
        fresh = await client.post(initialize(), headers=gone)
        assert fresh.status == 200
        assert fresh.headers["Mcp-Session-Id"] not in ("", "gone")
        missing = await client.post(request(1, "tools/list"))
        assert (missing.status, missing.json["error"]["code"]) == (400, -32600)
        assert missing.json["id"] == 1


async def test_a_handshake_that_fails_leaves_no_session() -> None:
    async with http(add) as client:
        refused = await client.post(request(1, "initialize", protocolVersion=LEGACY))
        assert refused.json["error"]["code"] == -32602
        assert "Mcp-Session-Id" not in refused.headers


async def test_a_session_that_was_deleted_is_gone() -> None:
    slow = Slow()
    async with http(slow.tool()) as client:
        await client.shake_hands()
        running = asyncio.create_task(client.post(call(1, "slow")))
        await slow.started.wait()
        assert (await client.send("DELETE")).status == 200
        assert (await client.ask("ping")).status == 404
        assert (await client.send("DELETE")).status == 404
        async with asyncio.timeout(WAIT):
            await slow.ended.wait()
            await running
        assert slow.cancelled == 1


async def test_more_sessions_than_the_limit_are_refused_until_one_ends() -> None:
    async with http(add, limits=Limits(sessions=2)) as client:
        first = (await client.post(initialize())).headers["Mcp-Session-Id"]
        assert (await client.post(initialize())).status == 200
        full = await client.post(initialize(3))
        assert (full.status, full.json["error"]["data"]) == (429, {"retryable": True})
        assert full.headers["Retry-After"]
        await client.send("DELETE", client.headers(**{"Mcp-Session-Id": first}))
        assert (await client.post(initialize())).status == 200


async def test_an_idle_session_ends_and_a_busy_one_does_not() -> None:
    slow = Slow()
    async with http(slow.tool(), limits=Limits(idle=0.1, handshake=0.1)) as client:
        await client.shake_hands()
        running = asyncio.create_task(client.post(call(1, "slow")))
        await slow.started.wait()
        await asyncio.sleep(0.3)
        slow.release.set()
        assert (await running).last["result"]["content"][0]["text"] == "slept"
        statuses: list[int] = []

        async def gone() -> None:
            while True:
                await asyncio.sleep(0.25)
                statuses.append((await client.ask("ping")).status)
                if statuses[-1] == 404:
                    return

        async with asyncio.timeout(WAIT):
            await gone()


async def test_an_open_stream_keeps_its_session() -> None:
    async with http(add, limits=Limits(idle=0.05, handshake=0.05)) as client:
        await client.shake_hands()
        async with client.stream("GET") as stream:
            assert stream.answer.status == 200
            await asyncio.sleep(0.3)
            assert (await client.ask("ping")).status == 200


async def test_what_a_session_configured_ends_with_it() -> None:
    from servers.mcp.peers import Notes

    closed = asyncio.Event()

    class Kit(Notes):
        async def close(self) -> None:
            closed.set()

    async with http(Kit) as client:
        await client.shake_hands()
        session = client.bench.session(principal="local", face="mcp", id=client.session)
        await session.configure("notes", {"folder": "mine"})
        assert (await client.post(call(1, "list_notes"))).last["result"]["isError"] is False
        other = await client.post(initialize())
        headers = {"Mcp-Session-Id": other.headers["Mcp-Session-Id"]}
        refused = await client.post(call(1, "list_notes"), headers=headers)
        assert refused.last["result"]["_meta"]["anykit/code"] == "not_configured"
        await client.send("DELETE")
        async with asyncio.timeout(WAIT):
            await closed.wait()


# answers and streams


async def test_a_quick_answer_is_a_json_body() -> None:
    async with http(add) as client:
        await client.shake_hands()
        reply = await client.post(call("a", "add", {"a": 1, "b": 2}))
        assert (reply.kind, reply.json["id"]) == ("application/json", "a")
        assert reply.headers["Mcp-Session-Id"] == client.session


async def test_what_comes_before_an_answer_makes_it_a_stream() -> None:
    async with http(narrate) as client:
        await client.shake_hands()
        reply = await client.post(call(1, "narrate", {"steps": 2}, _meta={"progressToken": 1}))
        assert reply.kind == "text/event-stream"
        methods = [one.get("method", "answer") for one in reply.messages]
        assert methods == ["notifications/progress", "notifications/message"] * 2 + ["answer"]


async def test_a_client_that_takes_only_json_gets_only_the_answer() -> None:
    async with http(narrate) as client:
        client.accept = "application/json"
        await client.shake_hands()
        reply = await client.post(call(1, "narrate", {"steps": 2}))
        assert reply.kind == "application/json"
        assert reply.json["result"]["content"][0]["text"] == "done"


async def test_a_client_that_takes_only_events_gets_events() -> None:
    async with http(add) as client:
        await client.shake_hands()
        client.accept = "text/event-stream"
        reply = await client.post(call(1, "add", {"a": 1, "b": 2}))
        assert reply.kind == "text/event-stream"
        assert reply.last["result"]["structuredContent"] == {"result": 3}


@pytest.mark.parametrize("accept", ["text/html", "application/xml, image/*"])
async def test_a_client_that_takes_neither_is_told_so(accept: str) -> None:
    async with http(add) as client:
        client.accept = accept
        assert (await client.post(initialize())).status == 406


async def test_a_client_that_says_nothing_takes_both() -> None:
    async with http(add) as client:
        await client.shake_hands()
        assert (await client.post(request(1, "ping"), without=["Accept"])).json["result"] == {}


async def test_b073_two_requests_whose_ids_look_alike_get_their_own_answers() -> None:
    """modelcontextprotocol/python-sdk#961."""
    slow = Slow()
    async with http(slow.tool(), echo) as client:
        await client.shake_hands()
        first = asyncio.create_task(client.post(call(1, "slow")))
        await slow.started.wait()
        second = await client.post(call("1", "echo", {"value": "text"}))
        assert second.last["id"] == "1"
        twice = await client.post(call(1, "slow"))
        assert (twice.status, twice.json["error"]["code"]) == (400, -32600)
        slow.release.set()
        assert (await first).last["id"] == 1


async def test_a_hundred_calls_at_once_each_get_their_own_answer() -> None:
    async with http(echo) as client:
        await client.shake_hands()
        replies = await asyncio.gather(*(client.post(call(id, "echo", {"value": id})) for id in range(100)))
        assert [reply.last["result"]["structuredContent"] for reply in replies] == [{"result": id} for id in range(100)]


async def test_a_lost_connection_is_no_cancellation_and_the_rest_can_be_fetched() -> None:
    gate = asyncio.Event()

    @tool
    async def steps(context: CapabilityContext) -> str:
        """Tells, waits, tells, and is done."""
        context.emit(Progress(1, 2))
        await gate.wait()
        context.emit(Progress(2, 2))
        return "done"

    async with http(steps) as client:
        await client.shake_hands()
        message = call(1, "steps", _meta={"progressToken": 1})
        async with client.stream("POST", message) as stream:
            assert (await stream.event())["data"] == ""
            assert (await stream.message())["params"]["progress"] == 1
            last = stream.ids[-1]
        gate.set()
        async with client.stream("GET", headers={"Last-Event-ID": last}) as rest:
            assert (await rest.message())["params"]["progress"] == 2
            assert (await rest.message())["result"]["content"][0]["text"] == "done"
            assert await rest.event() == {}
        async with client.stream("GET", headers={"Last-Event-ID": stream.ids[0]}) as whole:
            assert (await whole.message())["method"] == "notifications/progress"


@pytest.mark.parametrize("id", ["999-1", "nonsense", "-1--1", "1", "0x1-0"])
async def test_a_stream_that_is_not_kept_cannot_be_fetched(id: str) -> None:
    async with http(add) as client:
        await client.shake_hands()
        refused = await client.send("GET", client.headers(**{"Last-Event-ID": id}))
        assert (refused.status, refused.json["error"]["code"]) == (400, -32600)


async def test_before_2025_11_25_no_event_is_without_data() -> None:
    async with http(narrate) as client:
        await client.shake_hands("2025-06-18")
        reply = await client.post(call(1, "narrate", {"steps": 1}))
        assert b"data: \n" not in reply.body
        assert b"id: " not in reply.body
        assert reply.last["result"]["content"][0]["text"] == "done"


async def test_a_second_reader_takes_the_stream_over() -> None:
    async with http(add) as client:
        await client.shake_hands()
        async with client.stream("GET") as first:
            assert first.answer.status == 200
            async with client.stream("GET") as second:
                assert await first.event() == {}
                client.bench.register(echo)
                assert (await second.message())["method"] == "notifications/tools/list_changed"


async def test_news_waits_for_a_reader_and_comes_once() -> None:
    async with http(add) as client:
        await client.shake_hands()
        client.bench.register(echo)
        async with client.stream("GET") as stream:
            assert (await stream.message())["method"] == "notifications/tools/list_changed"
        async with client.stream("GET") as again:
            client.bench.register(tool(name="later")(add.function))
            assert (await again.message())["method"] == "notifications/tools/list_changed"
            assert again.ids != stream.ids


async def test_a_quiet_stream_says_that_it_is_alive() -> None:
    slow = Slow()
    async with http(slow.tool(), limits=Limits(heartbeat=0.05)) as client:
        await client.shake_hands()
        running = asyncio.create_task(client.post(call(1, "slow")))
        await slow.started.wait()
        await asyncio.sleep(0.5)
        slow.release.set()
        reply = await running
        assert reply.body.count(b": \n\n") >= 2
        assert reply.last["result"]["content"][0]["text"] == "slept"


async def test_b026_over_http_a_cancelled_call_ends_without_an_answer() -> None:
    """modelcontextprotocol/python-sdk#1152."""
    slow = Slow()
    async with http(slow.tool()) as client:
        await client.shake_hands()
        running = asyncio.create_task(client.post(call(7, "slow")))
        await slow.started.wait()
        for id in (7, 7, 999):
            done = await client.post(notification("notifications/cancelled", requestId=id))
            assert (done.status, done.body) == (202, b"")
        async with asyncio.timeout(1):
            await slow.ended.wait()
        assert (await running).messages == []
        slow.release.set()
        assert (await client.post(call(7, "slow"))).last["result"]["content"][0]["text"] == "slept"


async def test_a_question_comes_on_the_calls_own_stream() -> None:
    async with http(greet) as client:
        await client.shake_hands(capabilities={"elicitation": {}})
        async with client.stream("POST", call(1, "greet")) as stream:
            question = await stream.message()
            assert question["method"] == "elicitation/create"
            answer = {
                "jsonrpc": "2.0",
                "id": question["id"],
                "result": {"action": "accept", "content": {"name": "Ann"}},
            }
            assert (await client.post(answer)).status == 202
            assert (await stream.message())["result"]["content"][0]["text"] == "Hello, Ann!"


async def test_a_client_without_events_cannot_be_asked() -> None:
    async with http(greet) as client:
        client.accept = "application/json"
        await client.shake_hands(capabilities={"elicitation": {}})
        reply = await client.post(call(1, "greet"))
        assert reply.json["result"]["content"][0]["text"] == "Hello, nobody."


# the new era


async def test_a_request_of_the_new_era_needs_no_session_and_gets_none() -> None:
    async with http(add) as client:
        reply = await client.modern("tools/call", name="add", arguments={"a": 1, "b": 2})
        assert (reply.status, reply.kind) == (200, "application/json")
        assert reply.json["result"]["structuredContent"] == {"result": 3}
        assert reply.json["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "anykit"
        assert "Mcp-Session-Id" not in reply.headers


async def test_both_eras_are_served_on_one_url_at_once() -> None:
    async with http(add) as client:
        await client.shake_hands()
        old = await client.post(call(1, "add", {"a": 1, "b": 2}))
        new = await client.modern("tools/call", name="add", arguments={"a": 1, "b": 2})
        assert old.last["result"]["content"] == new.last["result"]["content"]
        assert old.last["result"]["structuredContent"] == new.last["result"]["structuredContent"]


@pytest.mark.parametrize(
    ("headers", "body_version", "status", "code"),
    [
        ({"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "sub"}, MODERN, 400, -32020),
        ({"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list", "Mcp-Name": "add"}, MODERN, 400, -32020),
        ({"MCP-Protocol-Version": MODERN, "Mcp-Name": "add"}, MODERN, 400, -32020),
        ({"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call"}, MODERN, 400, -32020),
        ({"Mcp-Method": "tools/call", "Mcp-Name": "add"}, MODERN, 400, -32020),
        ({"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "add"}, "2042-01-01", 400, -32020),
        (
            {"MCP-Protocol-Version": "2042-01-01", "Mcp-Method": "tools/call", "Mcp-Name": "add"},
            "2042-01-01",
            400,
            -32022,
        ),
    ],
)
async def test_headers_and_body_must_agree(headers: Any, body_version: str, status: int, code: int) -> None:
    async with http(add) as client:
        meta = {**envelope(), "io.modelcontextprotocol/protocolVersion": body_version}
        reply = await client.post(call(9, "add", {"a": 1, "b": 2}, _meta=meta), headers=headers)
        assert (reply.status, reply.json["error"]["code"], reply.json["id"]) == (status, code, 9)


@pytest.mark.parametrize(
    ("method", "params", "status", "code"),
    [
        ("no/such/method", {}, 404, -32601),
        ("ping", {}, 404, -32601),
        ("initialize", {}, 404, -32601),
        ("resources/subscribe", {"uri": "test://x"}, 404, -32601),
        ("tools/call", {"name": "nothing"}, 400, -32602),
        ("resources/read", {"uri": "test://nothing"}, 400, -32602),
        ("tools/list", {"cursor": "forged"}, 400, -32602),
    ],
)
async def test_an_error_has_the_status_of_its_code(method: str, params: Any, status: int, code: int) -> None:
    async with http(add) as client:
        reply = await client.modern(method, **params)
        assert (reply.status, reply.json["error"]["code"]) == (status, code)


async def test_notifications_of_the_new_era_are_taken_and_mean_nothing() -> None:
    async with http(add) as client:
        headers = {"MCP-Protocol-Version": MODERN}
        done = await client.post(notification("notifications/cancelled", requestId=1), headers=headers)
        assert (done.status, done.body) == (202, b"")
        other = await client.post(notification("notifications/x"), headers={"MCP-Protocol-Version": "2042-01-01"})
        assert other.json["error"]["code"] == -32022
        response = await client.post({"jsonrpc": "2.0", "id": 1, "result": {}}, headers=headers)
        assert (response.status, response.json["error"]["code"]) == (400, -32600)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_the_new_era_has_no_streams_and_sessions_to_get_or_delete(method: str) -> None:
    async with http(add) as client:
        reply = await client.send(method, client.headers(**{"MCP-Protocol-Version": MODERN}))
        assert (reply.status, reply.headers["Allow"]) == (405, "POST")


async def test_closing_a_request_of_the_new_era_cancels_it() -> None:
    slow = Slow()
    async with http(slow.tool()) as client:
        message = call(1, "slow", _meta=envelope())
        posting = asyncio.create_task(client.post(message, headers=modern_headers("tools/call", {"name": "slow"})))
        await slow.started.wait()
        posting.cancel()
        async with asyncio.timeout(1):
            await slow.ended.wait()
        await until(lambda: slow.cancelled == 1)


async def test_progress_of_the_new_era_comes_before_the_answer() -> None:
    async with http(narrate) as client:
        meta = {"progressToken": "t", "io.modelcontextprotocol/logLevel": "info"}
        reply = await client.modern("tools/call", meta=meta, name="narrate", arguments={"steps": 1})
        assert reply.kind == "text/event-stream"
        assert [one.get("method", "answer") for one in reply.messages] == [
            "notifications/progress",
            "notifications/message",
            "answer",
        ]
        assert b"id: " not in reply.body


async def test_an_argument_that_travels_in_a_header_must_be_the_same_there() -> None:
    from anykit.capabilities import InvocableRequest, InvocableResult
    from anykit.tools import Tool, ToolSpec

    class Headed(Tool):
        async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult:
            return InvocableResult(text=request.input["region"])

    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    async with http(Headed(ToolSpec(name="headed", description="d", input_schema=schema))) as client:

        async def ask(**headers: str) -> Any:
            params = {"name": "headed", "arguments": {"region": "eu"}}
            sent = {
                **modern_headers("tools/call", params),
                **{name.replace("_", "-"): one for name, one in headers.items()},
            }
            return await client.post(call(1, "headed", {"region": "eu"}, _meta=envelope()), headers=sent)

        assert (await ask(Mcp_Param_Region="eu")).json["result"]["content"][0]["text"] == "eu"
        assert (await ask(Mcp_Param_Region="=?base64?ZXU=?=")).status == 200
        for wrong in ({}, {"Mcp_Param_Region": "us"}, {"Mcp_Param_Region": "=?base64?ZX?="}):
            refused = await ask(**wrong)
            assert (refused.status, refused.json["error"]["code"]) == (400, -32020)


# what is refused before anything is read


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:80", "Origin": "http://evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost.evil.example"}, 403),
        ({}, 200),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Host": "localhost"}, 200),
        ({"Host": "[::1]:7777"}, 200),
    ],
)
async def test_b081_a_page_of_another_name_cannot_reach_it(path: str, headers: Any, status: int) -> None:
    """modelcontextprotocol/rust-sdk#822."""
    async with http(add) as client:
        client.url = client.url.removesuffix("/mcp") + path
        reply = await client.post(initialize(), headers=headers)
        assert reply.status == status
        assert "evil" not in reply.body.decode()


async def test_pages_of_an_origin_that_the_operator_named_may_call_and_read() -> None:
    async with http(add, allow_origins=["https://app.example"]) as client:
        asked = await client.send("OPTIONS", {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"})
        assert asked.status == 204
        reply = await client.post(initialize(), headers={"Origin": "https://app.example"})
        assert reply.headers["Access-Control-Allow-Origin"] == "https://app.example"


@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD", "OPTIONS"])
async def test_other_methods_are_refused(method: str) -> None:
    async with http(add) as client:
        reply = await client.send(method)
        assert (reply.status, reply.headers["Allow"]) == (405, "GET, POST, DELETE")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonx"])
async def test_a_body_that_is_not_json_by_its_type_is_refused(kind: str) -> None:
    async with http(add) as client:
        assert (await client.post(initialize(), headers={"Content-Type": kind})).status == 415


async def test_json_with_a_charset_is_json() -> None:
    async with http(add) as client:
        reply = await client.post(initialize(), headers={"Content-Type": "application/json; charset=utf-8"})
        assert reply.status == 200


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_that_is_too_large_is_refused_and_the_next_is_taken(chunked: bool) -> None:
    async with http(add, limits=Limits(body=1000)) as client:
        big = json.dumps(request(1, "ping", _meta={"pad": "x" * 2000})).encode()

        async def pieces() -> Any:
            for start in range(0, len(big), 500):
                yield big[start : start + 500]

        async with client.client.post(
            client.url, data=pieces() if chunked else big, headers=client.headers()
        ) as answer:
            assert answer.status == 413
            assert (await answer.json())["error"]["code"] == -32600
        assert (await client.post(initialize())).status == 200


@pytest.mark.parametrize(
    ("body", "status", "code", "id"),
    [
        (b"", 400, -32700, None),
        (b"{", 400, -32700, None),
        (b"\xff\xfe", 400, -32700, None),
        (b"[]", 400, -32600, None),
        (b"[" * 100_000, 400, -32700, None),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600, None),
        (b'{"jsonrpc":"2.0","id":4,"method":"ping","params":{"v":NaN}}', 400, -32700, 4),
        (b'{"jsonrpc":"2.0","id":4,"method":"ping","params":{"v":"\\ud83d"}}', 400, -32602, 4),
        (b'{"jsonrpc":"2.0","id":4,"method":"ping","params":[]}', 400, -32602, 4),
    ],
)
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_bad_body_gets_a_good_answer(body: bytes, status: int, code: int, id: Any, era: str) -> None:
    async with http(add) as client:
        headers = {}
        if era == "legacy":
            await client.shake_hands()
        else:
            headers = modern_headers("ping", {})
        reply = await client.post(body, headers=headers)
        assert (reply.status, reply.json["error"]["code"], reply.json["id"]) == (status, code, id)
        assert (await client.post(initialize())).status == 200


async def test_b070_over_http_numbers_are_exact_in_both_eras() -> None:
    """cline/cline#9589."""
    numbers = {"id": 9007199254740993, "big": 123456789012345678901234567890}
    async with http(echo) as client:
        new = await client.modern("tools/call", name="echo", arguments={"value": numbers})
        await client.shake_hands()
        old = await client.post(call(1, "echo", {"value": numbers}))
        for reply in (old, new):
            assert reply.body.count(b"9007199254740993") == 2
            assert (
                reply.last["result"]["structuredContent"] == {"result": numbers}
                or reply.last["result"]["structuredContent"] == numbers
            )


async def test_b068_over_http_line_ends_of_some_readers_split_no_event() -> None:
    """anthropics/claude-agent-sdk-typescript#137."""
    text = "a\u2028b\u2029c\u0085d"
    async with http(echo) as client:
        await client.shake_hands()
        client.accept = "text/event-stream"
        raw = json.dumps(call(1, "echo", {"value": text}), ensure_ascii=False).encode()
        reply = await client.post(raw)
        assert [line for line in reply.body.decode().splitlines() if line.startswith("data: {")]
        assert reply.last["result"]["content"][0]["text"] == text


# life


async def test_requests_that_come_early_wait_until_it_is_loaded() -> None:
    async with Workbench(add) as bench:
        from anykit.servers.mcp import McpApp

        app = McpApp(bench, token="")
        replies = await asyncio.gather(*(asgi(app, initialize(id)) for id in range(5)))
        assert [status for status, _ in replies] == [200] * 5
        await app.end()
        assert (await asgi(app, initialize()))[0] == 503


async def test_the_end_of_the_host_ends_what_runs_and_streams() -> None:
    slow = Slow()
    async with http(slow.tool()) as client:
        await client.shake_hands()
        running = asyncio.create_task(client.post(call(1, "slow")))
        new = asyncio.create_task(client.modern("tools/call", name="slow"))
        async with client.stream("GET") as stream:
            await until(lambda: slow.runs == 2)
            assert client.server is not None
            client.server.stop()
            assert await stream.event() == {}
        await asyncio.wait([running, new], timeout=WAIT)
        for task in (running, new):
            task.cancel()
        await asyncio.gather(running, new, return_exceptions=True)
        await until(lambda: slow.cancelled == 2)


async def asgi(app: Any, message: Any) -> tuple[int, bytes]:
    """One request without a server."""
    sent: list[dict[str, Any]] = []
    body = json.dumps(message).encode()
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "scheme": "http",
        "client": ("127.0.0.1", 1),
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")],
    }
    asked = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> dict[str, Any]:
        return next(asked, None) or await asyncio.Event().wait()  # type: ignore[return-value]

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async with asyncio.timeout(WAIT):
        await app(scope, receive, send)
    return sent[0]["status"], b"".join(one.get("body", b"") for one in sent[1:])


def test_importing_it_imports_no_sdk() -> None:
    import subprocess
    import sys

    code = (
        "import sys; import anykit.servers, anykit.servers.mcp;"
        "print([name for name in sys.modules if name.split('.')[0] in ('mcp', 'mcp_types', 'httpx2', 'uvicorn')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.strip() == "[]"
