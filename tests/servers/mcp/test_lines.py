"""MCP over lines, message by message: both eras, and what a client may do wrong."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from anykit import Workbench, tool
from anykit.servers.mcp import Limits, serve_mcp_lines
from anykit.transports import memory_pair
from runtime_parts import Bench, functions
from servers.mcp.peers import (
    LEGACY,
    MODERN,
    OFFERED,
    WAIT,
    Slow,
    add,
    call,
    echo,
    envelope,
    initialize,
    lines,
    notification,
    request,
    shaken,
    until,
)

pytestmark = pytest.mark.anyio


def modern(id: Any, method: str, capabilities: Any = None, meta: Any = None, **params: Any) -> Any:
    return request(id, method, _meta=envelope(capabilities, **(meta or {})), **params)


# the handshake


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_revision_with_a_handshake_is_spoken(version: str) -> None:
    async with Workbench(add) as bench, lines(bench) as client:
        told = await client.shake_hands(version)
        assert told["protocolVersion"] == version
        assert told["serverInfo"]["name"] == "anykit"
        assert told["serverInfo"]["version"]
        result = await client.result("tools/call", name="add", arguments={"a": 2, "b": 3})
        assert result["content"] == [{"type": "text", "text": "5"}]


async def test_an_unknown_revision_is_answered_with_the_newest_that_has_a_handshake() -> None:
    async with Workbench(add) as bench, lines(bench) as client:
        assert (await client.shake_hands("2042-01-01"))["protocolVersion"] == LEGACY


async def test_lists_may_change_and_the_client_is_told_so() -> None:
    async with Workbench(add) as bench, lines(bench) as client:
        capabilities = (await client.shake_hands())["capabilities"]
    assert capabilities["tools"] == {"listChanged": True}
    assert capabilities["prompts"] == {"listChanged": True}
    assert capabilities["resources"] == {"listChanged": True, "subscribe": True}
    assert {"logging", "completions"} <= capabilities.keys()


async def test_nothing_is_served_before_the_handshake_but_a_ping() -> None:
    async with Workbench(add) as bench, lines(bench) as client:
        assert (await client.ask(request(1, "ping")))["result"] == {}
        assert "error" in await client.ask(request(2, "tools/list"))
        assert (await client.ask(request(3, "no/such/method")))["error"]["code"] == -32601


async def test_requests_of_the_new_era_need_no_handshake() -> None:
    async with Workbench(*OFFERED) as bench, lines(bench) as client:
        told = (await client.ask(modern(1, "server/discover")))["result"]
        assert told["supportedVersions"] == [MODERN]
        assert told["cacheScope"] == "private"
        assert told["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "anykit"
        listed = (await client.ask(modern(2, "tools/list")))["result"]
        assert (listed["resultType"], listed["cacheScope"], listed["ttlMs"]) == ("complete", "private", 0)
        assert "add" in [one["name"] for one in listed["tools"]]
        done = (await client.ask(modern(3, "tools/call", name="add", arguments={"a": 1, "b": 2})))["result"]
        assert (done["resultType"], done["structuredContent"]) == ("complete", {"result": 3})
        assert (await client.ask(initialize(4)))["error"]["code"] == -32022


# what a client may send


@pytest.mark.parametrize("id", ["1", 1, 0, "é", -7, 2**60])
async def test_b073_an_answer_has_the_id_that_was_sent(id: Any) -> None:
    """modelcontextprotocol/python-sdk#961."""
    async with shaken(add) as (client, _):
        answer = await client.ask(call(id, "add", {"a": 1, "b": 1}))
        assert (answer["id"], type(answer["id"])) == (id, type(id))


async def test_b073_one_and_one_as_text_are_two_requests() -> None:
    """modelcontextprotocol/python-sdk#961."""
    slow = Slow()
    async with shaken(slow.tool(), echo) as (client, _):
        await client.say(call(1, "slow"))
        await slow.started.wait()
        assert (await client.ask(call("1", "echo", {"value": "text"})))["result"]["content"][0]["text"] == "text"
        slow.release.set()
        assert (await client.answer(1))["result"]["content"][0]["text"] == "slept"


async def test_b073_an_id_that_is_null_is_an_invalid_request() -> None:
    """modelcontextprotocol/python-sdk#961."""
    async with shaken(add) as (client, _):
        await client.say(request(None, "ping"))
        answer = await client.hear()
        assert (answer["id"], answer["error"]["code"]) == (None, -32600)


async def test_an_id_that_is_in_use_is_refused_and_the_first_is_answered() -> None:
    slow = Slow()
    async with shaken(slow.tool()) as (client, _):
        await client.say(call(1, "slow"))
        await slow.started.wait()
        assert (await client.ask(call(1, "slow")))["error"]["code"] == -32600
        slow.release.set()
        assert (await client.answer(1))["result"]["content"][0]["text"] == "slept"
        assert slow.runs == 1


@pytest.mark.parametrize(
    "line", [b"\xff\xfe garbage", b"not json", b"[1,2", b"[]", b'"text"', b"[" * 100_000, b'{"jsonrpc":"2.0"}']
)
async def test_b041_a_bad_line_is_lost_alone(line: bytes) -> None:
    """modelcontextprotocol/python-sdk#2873."""
    async with shaken(add) as (client, _):
        await client.say(line)
        answer = await client.hear()
        assert (answer["id"], answer["error"]["code"]) == (
            None,
            -32600 if line[:1] in b'["{' and line[-1:] in b']"}' else -32700,
        )
        assert (await client.ask(call(1, "add", {"a": 1, "b": 1})))["result"]["structuredContent"] == {"result": 2}


async def test_b040_a_line_that_is_too_long_is_told_and_skipped() -> None:
    """QwenLM/qwen-code#9298."""
    async with Workbench(echo) as bench:
        mine, theirs = memory_pair(max_line=2000)
        serving = asyncio.create_task(serve_mcp_lines(bench, theirs))
        await mine.send(json.dumps(request(1, "ping", _meta={"pad": "x" * 3000})).encode())
        async with asyncio.timeout(WAIT):
            answer = json.loads(await mine.receive())  # type: ignore[arg-type]
        assert (answer["id"], "too large" in answer["error"]["message"]) == (None, True)
        await mine.send(json.dumps(request(2, "ping")).encode())
        async with asyncio.timeout(WAIT):
            assert json.loads(await mine.receive()) == {"jsonrpc": "2.0", "id": 2, "result": {}}  # type: ignore[arg-type]
        await mine.close()
        async with asyncio.timeout(WAIT):
            assert await serving == "eof"


async def test_a_large_result_arrives_whole() -> None:
    async with shaken(echo) as (client, _):
        text = "x" * 5_000_000
        answer = await client.ask(call(1, "echo", {"value": {"text": text}}))
        # The text for a model is cut; the value is not, since its schema promises it.
        assert answer["result"]["_meta"]["anykit/truncated"]["total_bytes"] > 5_000_000


async def test_b070_numbers_are_exact_in_arguments_values_and_text() -> None:
    """cline/cline#9589."""
    numbers = {"id": 9007199254740993, "big": 123456789012345678901234567890, "neg": -0.0}
    async with shaken(echo, add) as (client, _):
        await client.say(call(1, "echo", {"value": numbers}))
        line = await client.raw()
        assert line.count(b"9007199254740993") == line.count(b"123456789012345678901234567890") == 2
        assert line.count(b"-0.0") == 2
        one = await client.ask(call(2, "add", {"a": 1.0, "b": 2}))
        assert one["result"]["structuredContent"] == {"result": 3}
        assert one["result"]["content"][0]["text"] == "3"
        boolean = await client.ask(call(3, "add", {"a": True, "b": 2}))
        assert boolean["result"]["isError"] is True
        huge = b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"echo","arguments":{"value":1e400}}}'
        await client.say(huge)
        assert (await client.answer(4))["error"]["code"] == -32700


async def test_b071_half_a_character_costs_that_call_only() -> None:
    """MemPalace/mempalace#503."""

    @tool
    async def half() -> str:
        """Gives what no UTF-8 can carry."""
        return b"\xff".decode("utf-8", "surrogateescape")

    async with shaken(echo, half) as (client, _):
        line = (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"value":"\\ud83d"}}}'
        )
        await client.say(line)
        assert "surrogate" in (await client.answer(1))["error"]["message"]
        given = await client.ask(call(2, "half"))
        assert given["result"]["isError"] is True
        emoji = await client.ask(call(3, "echo", {"value": "\N{GRINNING FACE}"}))
        assert emoji["result"]["content"][0]["text"] == "\N{GRINNING FACE}"


async def test_b068_every_line_end_that_is_none_passes_unchanged() -> None:
    """anthropics/claude-agent-sdk-typescript#137."""
    text = "a\u2028b\u2029c\u0085d\x0be\x0cf line1\nline2\r\nline3"
    async with shaken(echo) as (client, _):
        raw = json.dumps(call(1, "echo", {"value": text}), ensure_ascii=False).encode()
        await client.say(raw)
        line = await client.raw()
        assert b"\n" not in line
        assert len(line.decode().splitlines()) == 1
        assert json.loads(line)["result"]["content"][0]["text"] == text


async def test_notifications_and_responses_that_mean_nothing_are_not_answered() -> None:
    async with shaken(add) as (client, _):
        await client.say(notification("notifications/unheard/of", x=1))
        await client.say({"jsonrpc": "2.0", "id": 77, "result": {}})
        await client.say({"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "m"}})
        await client.say({"jsonrpc": "2.0", "id": 5, "error": "odd"})
        assert (await client.ask(request(1, "ping")))["result"] == {}


# tools


async def test_an_unknown_tool_is_invalid_params_with_a_hint() -> None:
    async with shaken() as (client, _):
        error = (await client.ask(call(1, "ad")))["error"]
        assert error["code"] == -32602
        assert "did you mean add?" in error["message"]


async def test_wrong_arguments_are_an_error_of_the_tool_that_names_each_fault() -> None:
    async with shaken() as (client, _):
        result = (await client.ask(call(1, "add", {"a": "x", "c": 1})))["result"]
        assert result["isError"] is True
        assert result["_meta"]["anykit/code"] == "invalid_input"
        for named in ("/a", "b", "c"):
            assert named in result["content"][0]["text"]


async def test_a_failing_tool_is_an_error_result_with_what_it_says() -> None:
    async with shaken() as (client, _):
        result = (await client.ask(call(1, "fail", {"reason": "no seats"})))["result"]
        assert (result["isError"], result["content"][0]["text"]) == (True, "no seats")
        assert result["structuredContent"] == {"why": "no seats"}


@pytest.mark.parametrize(
    "message", [call(1, "crash"), request(1, "resources/read", uri="test://broken")], ids=["tool", "resource"]
)
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_what_breaks_leaks_nothing_of_its_exception(message: Any, era: str) -> None:
    async with Workbench(*OFFERED) as bench, lines(bench) as client:
        if era == "legacy":
            await client.shake_hands()
        else:
            message = {**message, "params": {**message["params"], "_meta": envelope()}}
        answer = await client.ask(message)
        assert "secret-traceback" not in json.dumps(answer)
        assert "Traceback" not in json.dumps(answer)


async def test_a_thousand_tools_are_listed_in_pages_in_a_stable_order() -> None:
    def made(number: int) -> Any:
        @tool(name=f"t{number:04}")
        async def one() -> int:
            """Gives its number."""
            return number

        return one

    async with lines(Bench(functions(*(made(number) for number in range(1500))))) as client:
        await client.shake_hands()
        first = await client.result("tools/list")
        second = await client.result("tools/list", cursor=first["nextCursor"])
        names = [one["name"] for page in (first, second) for one in page["tools"]]
        assert names == [f"t{number:04}" for number in range(1500)]
        assert "nextCursor" not in second
        again = await client.result("tools/list")
        assert again == first
        wrong = await client.ask(request(9, "tools/list", cursor="forged"))
        assert wrong["error"]["code"] == -32602


async def test_deferred_tools_are_not_listed_and_can_be_called() -> None:
    @tool(deferred=True)
    async def hidden() -> int:
        """Found by searching only."""
        return 1

    async with shaken(add, hidden) as (client, _):
        assert [one["name"] for one in (await client.result("tools/list"))["tools"]] == ["find_tools", "add"]
        assert (await client.result("tools/call", name="hidden"))["structuredContent"] == {"result": 1}


# progress and logs


async def test_progress_and_logs_come_in_order_and_before_the_answer() -> None:
    async with shaken() as (client, _):
        message = call(1, "narrate", {"steps": 3}, _meta={"progressToken": "tok"})
        await client.ask(message)
        told = [one for one in client.heard if "method" in one]
        assert [one["method"] for one in told] == ["notifications/progress", "notifications/message"] * 3
        assert client.notifications("notifications/progress") == [
            {"progressToken": "tok", "progress": step, "total": 3, "message": f"step {step - 1}"} for step in (1, 2, 3)
        ]
        assert client.notifications("notifications/message") == [
            {"level": "info", "logger": "narrate", "data": f"did {step}"} for step in range(3)
        ]


async def test_without_a_token_there_is_no_progress() -> None:
    async with shaken() as (client, _):
        await client.ask(call(1, "narrate", {"steps": 2}))
        assert client.notifications("notifications/progress") == []


async def test_the_level_of_logs_can_be_set() -> None:
    async with shaken() as (client, _):
        assert await client.result("logging/setLevel", level="debug") == {}
        await client.ask(call(1, "narrate", {"steps": 1}))
        assert [one["level"] for one in client.notifications("notifications/message")] == ["info", "debug"]
        client.heard.clear()
        await client.result("logging/setLevel", level="error")
        await client.ask(call(2, "narrate", {"steps": 1}))
        assert client.notifications("notifications/message") == []
        wrong = await client.ask(request(3, "logging/setLevel", level="loud"))
        assert wrong["error"]["code"] == -32602


async def test_in_the_new_era_logs_are_told_only_to_requests_that_want_them() -> None:
    async with Workbench(*OFFERED) as bench, lines(bench) as client:
        await client.ask(modern(1, "tools/call", name="narrate", arguments={"steps": 1}))
        assert [one for one in client.heard if "method" in one] == []
        level = {"io.modelcontextprotocol/logLevel": "debug", "progressToken": 7}
        await client.ask(modern(2, "tools/call", meta=level, name="narrate", arguments={"steps": 1}))
        assert len(client.notifications("notifications/message")) == 2
        assert client.notifications("notifications/progress")[0]["progressToken"] == 7


async def test_progress_that_does_not_grow_is_not_told() -> None:
    from anykit.capabilities import CapabilityContext, Progress

    @tool
    async def jumpy(context: CapabilityContext) -> None:
        """Goes back and forth."""
        for done in (1, 1, 0, float("nan"), float("inf"), 2):
            context.emit(Progress(done, float("inf")))

    async with shaken(jumpy) as (client, _):
        await client.ask(call(1, "jumpy", _meta={"progressToken": 1}))
        assert [one["progress"] for one in client.notifications("notifications/progress")] == [1, 2]


# cancellation


async def test_b026_a_cancelled_call_sees_it_and_is_answered_at_most_once() -> None:
    """modelcontextprotocol/python-sdk#1152."""
    slow = Slow()
    async with shaken(slow.tool(), echo) as (client, _):
        await client.say(call(7, "slow"))
        await slow.started.wait()
        for id in (7, 7, 999, "7", None):
            await client.say(notification("notifications/cancelled", requestId=id))
        async with asyncio.timeout(1):
            await slow.ended.wait()
        assert (await client.ask(call(8, "echo", {"value": 1})))["result"]["structuredContent"] == {"result": 1}
        await client.say(notification("notifications/cancelled", requestId=8))
        assert (await client.ask(request(9, "ping")))["result"] == {}
        assert slow.cancelled == 1
        assert [one for one in client.heard if one.get("id") == 7] == []
        again = await client.ask(call(7, "echo", {"value": 2}))
        assert again["result"]["structuredContent"] == {"result": 2}


async def test_b031_a_client_that_goes_takes_its_calls_along() -> None:
    """hangwin/mcp-chrome#300."""
    slow = Slow()
    async with Workbench(slow.tool()) as bench:
        mine, theirs = memory_pair()
        serving = asyncio.create_task(serve_mcp_lines(bench, theirs))
        await mine.send(json.dumps(initialize()).encode())
        await mine.send(json.dumps(call(1, "slow")).encode())
        async with asyncio.timeout(WAIT):
            await slow.started.wait()
            await mine.close()
            assert await serving == "eof"
            await slow.ended.wait()
        assert slow.cancelled == 1


async def test_what_was_asked_before_the_end_is_still_answered() -> None:
    async with Workbench(add) as bench:
        mine, theirs = memory_pair()
        serving = asyncio.create_task(serve_mcp_lines(bench, theirs))
        for message in (initialize(), call(1, "add", {"a": 1, "b": 2})):
            await mine.send(json.dumps(message).encode())
        async with asyncio.timeout(WAIT):
            answers = [json.loads(await mine.receive()) for _ in range(2)]  # type: ignore[arg-type]
            await mine.close()
            await serving
        assert answers[1]["result"]["structuredContent"] == {"result": 3}


async def test_the_host_can_end_it() -> None:
    stop = asyncio.Event()
    slow = Slow()
    async with Workbench(slow.tool()) as bench:
        mine, theirs = memory_pair()
        serving = asyncio.create_task(serve_mcp_lines(bench, theirs, stop=stop))
        await mine.send(json.dumps(initialize()).encode())
        await mine.send(json.dumps(call(1, "slow")).encode())
        async with asyncio.timeout(WAIT):
            await slow.started.wait()
            stop.set()
            assert await serving == "host"
            await slow.ended.wait()


# bounds


async def test_more_calls_than_may_run_wait_and_more_than_may_wait_are_refused() -> None:
    slow = Slow()
    limits = Limits(max_parallel=2, queue=1)
    async with shaken(slow.tool(), echo, limits=limits) as (client, _):
        for id in range(4):
            await client.say(call(id, "slow"))
        refused = await client.hear()
        assert (refused["id"], refused["result"]["isError"]) == (3, True)
        assert refused["result"]["_meta"] == {"anykit/code": "busy", "anykit/retryable": True}
        assert slow.runs == 2
        assert (await client.ask(request("p", "ping")))["result"] == {}
        slow.release.set()
        answers = {(await client.hear())["id"] for _ in range(3)}
        assert answers == {0, 1, 2}
        assert slow.runs == 3


async def test_a_flood_of_requests_is_refused_and_the_connection_lives() -> None:
    slow = Slow()
    async with shaken(slow.tool(), limits=Limits(max_parallel=1, queue=1)) as (client, _):
        for id in range(200):
            await client.say(call(id, "slow"))
        codes = [await client.hear() for _ in range(150)]
        assert any(one.get("error", {}).get("code") == -32000 for one in codes) or all(
            one["result"]["isError"] for one in codes
        )
        slow.release.set()


async def test_a_client_that_says_too_much_a_second_is_told_so() -> None:
    async with shaken(add, limits=Limits(rate=3.0)) as (client, _):
        answers = [await client.ask(request(id, "ping")) for id in range(20)]
        refused = [one["error"] for one in answers if "error" in one]
        assert refused
        assert refused[0]["code"] == -32000
        assert refused[0]["data"] == {"retryable": True}


@pytest.mark.parametrize("cancelled", [1, "1"])
async def test_b073_cancelling_one_does_not_cancel_the_other_that_looks_alike(cancelled: Any) -> None:
    """modelcontextprotocol/python-sdk#961."""
    slow = Slow()
    async with shaken(slow.tool()) as (client, _):
        for id in (1, "1"):
            await client.say(call(id, "slow"))
        await until(lambda: slow.runs == 2)
        await client.say(notification("notifications/cancelled", requestId=cancelled))
        await until(lambda: slow.cancelled == 1)
        slow.release.set()
        other = "1" if cancelled == 1 else 1
        assert (await client.answer(other))["result"]["content"][0]["text"] == "slept"
