"""Tools over A2E: listed, searched, called, and every way in which that fails."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import threading
import time
from contextvars import ContextVar
from typing import Any

import pytest

from anykit import tool
from anykit.capabilities import (
    BlobPart,
    CapabilityContext,
    InvocableRequest,
    InvocableResult,
    InvocableSpec,
    Log,
    Suspension,
    Unavailable,
)
from runtime_parts import functions
from servers.agents import WAIT, Sleeper, add, agent_of, connected, echo, make_host, small

pytestmark = pytest.mark.anyio


async def test_a_result_carries_the_value_its_text_and_its_time() -> None:
    async with agent_of(make_host()) as agent:
        reply = await agent.call("add", {"a": 2, "b": 3})
        assert list(reply) == ["type", "id", "version", "ts", "req_id", "data", "created_at"]
        assert reply["type"] == "tool/call/resp"
        duration = reply["data"].pop("duration_ms")
        assert isinstance(duration, int)
        assert reply["data"] == {
            "success": True,
            "tool_name": "add",
            "data": 5,
            "summary": "5",
            "truncated": False,
            "exit_code": None,
            "error": None,
            "error_code": None,
            "events": [],
        }


@pytest.mark.parametrize("value", [None, "", [], {}, 0, False, 2**70, "a\u2028b\x0b", {"é": [1.5, None]}])
async def test_every_json_value_comes_back_as_it_went(value: Any) -> None:
    async with agent_of(make_host()) as agent:
        assert (await agent.call("echo", {"value": value}))["data"]["data"] == value


async def test_the_agent_lists_tools_with_both_kinds_of_schema() -> None:
    async with agent_of(make_host()) as agent:
        reply = await agent.ask("tool/list/req")
        listed = {one["name"]: one for one in reply["tools"]}
        assert list(listed) == ["add", "echo", "fail", "flaky", "narrate"]
        one = listed["add"]
        assert one["description"] == "Adds two numbers."
        assert one["input_parameters"][0] == {
            "name": "a",
            "type": "integer",
            "description": "The first.",
            "required": True,
            "enum": None,
            "properties": None,
        }
        assert one["input_schema"]["required"] == ["a", "b"]
        assert one["output_schema"] == {"type": "integer"}
        assert one["tags"] == ["math", "pure"]
        assert one["idempotent"] is True
        assert one["toolkit"] is None
        assert one["defer_loading"] is False


async def test_filters_always_apply_and_tags_mean_all_of_them() -> None:
    async with agent_of(make_host()) as agent:
        assert await agent.tools(filter_tags=["math"]) == ["add"]
        assert await agent.tools(filter_tags=["math", "pure"]) == ["add"]
        assert await agent.tools(filter_tags=["math", "text"]) == []
        assert await agent.tools(filter_kind="FUNCTION", filter_tags=["text"]) == ["echo"]
        assert await agent.tools(filter_kind="nothing") == []


async def test_a_query_finds_by_name_description_and_tag() -> None:
    async with agent_of(make_host()) as agent:
        assert await agent.tools(query="adds NUMBERS") == ["add"]
        assert await agent.tools(query="pure") == ["add"]
        assert await agent.tools(query="says why") == ["fail"]
        assert await agent.tools(query="nothing at all") == []
        assert await agent.tools(query="adds", filter_tags=["text"]) == []


async def test_deferred_tools_are_listed_only_where_asked_for() -> None:
    async with agent_of(make_host()) as agent:
        assert "logarithm" not in await agent.tools()
        assert "logarithm" in await agent.tools(include_deferred=True)
        assert await agent.tools(query="searching") == []
        assert await agent.tools(query="searching", include_deferred=True) == ["logarithm"]
        assert (await agent.call("logarithm", {"x": 1}))["data"]["success"] is True


async def test_parameters_show_what_a_list_can_show_of_a_schema() -> None:
    class Box:
        spec = InvocableSpec(
            name="box",
            description="",
            input_schema={
                "type": "object",
                "properties": {
                    "size": {"$ref": "#/$defs/Size"},
                    "colour": {"enum": ["red", "blue"]},
                    "level": {"enum": [1, 2]},
                    "maybe": {"anyOf": [{"type": "null"}, {"type": "number"}]},
                    "either": {"type": ["null", "string"]},
                    "loop": {"$ref": "#/properties/loop"},
                    "odd": True,
                },
                "required": ["size"],
                "$defs": {
                    "Size": {"type": "object", "properties": {"w": {"type": "integer"}}, "description": "How big."}
                },
            },
        )

        async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult:
            return InvocableResult(text="")

    async with agent_of(make_host(Box())) as agent:
        reply = await agent.ask("tool/list/req")
        shown = {one["name"]: one for one in reply["tools"][0]["input_parameters"]}
        assert shown["size"]["type"] == "object"
        assert shown["size"]["description"] == "How big."
        assert shown["size"]["required"] is True
        assert shown["size"]["properties"] == {"w": {"type": "integer"}}
        assert (shown["colour"]["type"], shown["colour"]["enum"]) == ("string", ["red", "blue"])
        assert (shown["level"]["type"], shown["level"]["enum"]) == ("integer", None)
        assert shown["maybe"]["type"] == "number"
        assert shown["either"]["type"] == "string"
        assert shown["odd"]["type"] == "object"


async def test_an_unknown_tool_is_an_error_with_a_proposal() -> None:
    async with agent_of(make_host()) as agent:
        reply = await agent.call("ad", {})
        assert (reply["type"], reply["code"], reply["retryable"]) == ("error", "unknown_tool", False)
        assert "did you mean add" in reply["message"]
        assert list(reply) == [
            "type", "id", "version", "ts", "req_id", "code", "message", "detail", "retryable", "capability_name",
        ]  # fmt: skip


async def test_bad_arguments_are_refused_before_the_tool_runs() -> None:
    async with agent_of(make_host()) as agent:
        reply = await agent.call("add", {"a": "1", "c": 3})
        assert reply["code"] == "schema_violation"
        assert {one["path"] for one in reply["detail"]["errors"]} == {"/a", "/c", ""} or {
            one["path"] for one in reply["detail"]["errors"]
        } == {"/a", "/b", "/c"}
        assert all(one["message"] for one in reply["detail"]["errors"])


async def test_a_tool_that_fails_says_why_and_one_that_breaks_says_an_id() -> None:
    async with agent_of(make_host()) as agent:
        reply = await agent.call("fail", {"reason": "no paper"})
        assert (reply["code"], reply["message"], reply["retryable"]) == ("tool_error", "no paper", False)
        reply = await agent.call("flaky")
        assert (reply["code"], reply["retryable"]) == ("tool_error", True)
        assert "secret-traceback" not in json.dumps(reply)
        assert reply["detail"]["error_id"] in reply["message"]


@pytest.mark.parametrize("idempotent", [True, False])
async def test_the_timeout_of_a_call_is_enforced(idempotent: bool) -> None:
    sleeper = Sleeper()
    async with agent_of(make_host(sleeper.tool(idempotent=idempotent))) as agent:
        reply = await agent.call("sleep", timeout=0)
        assert (reply["code"], reply["retryable"]) == ("timeout", idempotent)
        id = await agent.send("tool/call/req", tool_name="sleep", arguments={}, timeout=1)
        begun = time.monotonic()
        reply = await agent.reply_to(id)
        assert reply["code"] == "timeout"
        assert 0.9 < time.monotonic() - begun < 2
        async with asyncio.timeout(WAIT):
            await sleeper.cancelled.acquire()


async def test_a_call_without_a_timeout_has_the_tools_own() -> None:
    sleeper = Sleeper()
    async with agent_of(make_host(sleeper.tool(timeout=0.05))) as agent:
        reply = await agent.call("sleep")
        assert reply["code"] == "timeout"
        reply = await agent.call("sleep", timeout=100)
        assert reply["code"] == "timeout"


async def test_a_source_that_is_away_is_a_runtime_error_that_may_be_retried() -> None:
    class Away:
        spec = InvocableSpec(name="away", description="", input_schema={"type": "object"})

        def __init__(self, *, sent: bool) -> None:
            self.sent = sent

        async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult:
            raise Unavailable("nobody there", sent=self.sent)

    async with agent_of(make_host(Away(sent=False))) as agent:
        reply = await agent.call("away")
        assert (reply["code"], reply["retryable"], reply["detail"]["reason"]) == ("runtime_error", True, "unavailable")
    async with agent_of(make_host(Away(sent=True))) as agent:
        reply = await agent.call("away")
        assert (reply["code"], reply["retryable"], reply["detail"]["reason"]) == ("runtime_error", False, "unknown")


async def test_a_suspended_call_is_a_result_with_the_question() -> None:
    class Asks:
        spec = InvocableSpec(name="asks", description="", input_schema={"type": "object"})

        async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> Suspension:
            return Suspension("s1", "input", "Which one?", schema={"type": "string"}, state={"sealed": "no"})

    async with agent_of(make_host(Asks())) as agent:
        reply = await agent.call("asks")
        assert reply["type"] == "tool/call/resp"
        data = reply["data"]
        assert (data["success"], data["error_code"]) == (False, "suspended")
        assert data["data"]["prompt"] == "Which one?"
        assert data["data"]["kind"] == "input"
        assert data["data"]["id"]
        assert "sealed" not in json.dumps(reply)


async def test_events_of_a_streaming_call_come_before_its_reply_counted_from_zero() -> None:
    async with agent_of(make_host()) as agent:
        reply = await agent.call("narrate", {"steps": 2}, streaming=True)
        events = [one for one in agent.heard if one["type"] == "tool/event"]
        assert [one["seq"] for one in events] == [0, 1, 2, 3, 4]
        assert [one["kind"] for one in events] == ["progress", "progress", "log", "status", "artifact"]
        assert {one["req_id"] for one in events} == {reply["req_id"]}
        assert (events[0]["data"]["pct"], events[0]["data"]["message"]) == (50, "step 0")
        assert events[2]["data"] == {"level": "info", "message": "nearly"}
        assert events[3]["data"] == {"message": "done soon"}
        assert events[4]["data"] == {
            "name": "notes",
            "mime": "text/plain",
            "chunk": base64.b64encode("é".encode()).decode(),
            "final": True,
            "append": False,
        }
        assert reply["data"]["events"] == []


async def test_a_call_that_does_not_stream_sends_no_events() -> None:
    async with agent_of(make_host()) as agent:
        reply = await agent.call("narrate", {"steps": 1})
        assert [one["type"] for one in agent.heard if one["type"] == "tool/event"] == []
        assert [one["kind"] for one in reply["data"]["events"]] == ["progress", "log", "status", "artifact"]


async def test_events_of_concurrent_calls_keep_to_their_own_call() -> None:
    @tool
    async def say(word: str, context: CapabilityContext) -> str:
        """Says."""
        for _ in range(5):
            context.emit(Log("info", word))
            await asyncio.sleep(0)
        return word

    async with agent_of(make_host(say)) as agent:
        ids = {
            word: await agent.send("tool/call/req", tool_name="say", arguments={"word": word}, streaming=True)
            for word in ("x", "y")
        }
        done: set[str] = set()
        while len(done) < 2:
            message = await agent.receive()
            if message["type"] == "tool/call/resp":
                done.add(message["req_id"])
        for word, id in ids.items():
            mine = [one for one in agent.heard if one["type"] == "tool/event" and one["req_id"] == id]
            assert [one["data"]["message"] for one in mine] == [word] * 5
            assert [one["seq"] for one in mine] == [0, 1, 2, 3, 4]


async def test_a_large_artifact_travels_in_pieces() -> None:
    body = os.urandom(600 * 1024)

    @tool
    async def picture() -> BlobPart:
        """Draws."""
        return BlobPart(data=body, name="a.bin")

    async with agent_of(make_host(picture)) as agent:
        reply = await agent.call("picture", streaming=True)
        events = [one["data"] for one in agent.heard if one["type"] == "tool/event"]
        assert b"".join(base64.b64decode(one["chunk"]) for one in events) == body
        assert [one["final"] for one in events] == [False, False, True]
        assert [one["append"] for one in events] == [False, True, True]
        assert events[0]["name"] == "a.bin"
        assert "a.bin" in reply["data"]["data"]


async def test_a_result_that_is_too_long_is_cut_and_says_so() -> None:
    @tool(max_output=1000)
    async def long() -> str:
        """Talks."""
        return "x" * 5000

    async with agent_of(make_host(long)) as agent:
        data = (await agent.call("long"))["data"]
        assert data["truncated"] is True
        assert data["data"].startswith("x" * 1000)
        assert len(data["data"]) < 1100


async def test_calls_beyond_the_bound_wait_and_beyond_the_queue_are_refused() -> None:
    sleeper = Sleeper()
    host = make_host(sleeper.tool(), add, limits=small(max_parallel=2, queue=1))
    async with connected(host) as agent:
        assert (await agent.handshake())["max_parallel"] == 2
        ids = [await agent.send("tool/call/req", tool_name="sleep", arguments={}) for _ in range(3)]
        for _ in range(2):
            await sleeper.started.acquire()
        reply = await agent.call("add", {"a": 1, "b": 1})
        assert (reply["code"], reply["retryable"]) == ("runtime_error", True)
        assert (await agent.ask("ping"))["type"] == "pong"
        assert sleeper.started.locked()
        sleeper.gate.set()
        replies = [await agent.receive() for _ in ids]
        assert {one["req_id"] for one in replies} == set(ids)
        assert {one["data"]["data"] for one in replies} == {"awake"}


async def test_a_later_call_that_is_quicker_overtakes() -> None:
    sleeper = Sleeper()
    async with agent_of(make_host(sleeper.tool(), add)) as agent:
        slow = await agent.send("tool/call/req", tool_name="sleep", arguments={})
        assert (await agent.call("add", {"a": 1, "b": 1}))["data"]["data"] == 2
        sleeper.gate.set()
        assert (await agent.reply_to(slow))["data"]["data"] == "awake"


async def test_a_repeated_message_runs_once_and_is_answered_the_same() -> None:
    runs: list[int] = []

    @tool
    async def count() -> int:
        """Counts."""
        runs.append(1)
        return len(runs)

    async with agent_of(make_host(count)) as agent:
        first = await agent.call("count", id="once")
        second = await agent.call("count", id="once")
        assert first == second
        assert runs == [1]


async def test_what_the_agent_did_not_negotiate_is_missing() -> None:
    async with agent_of(make_host(), "toolkits") as agent:
        reply = await agent.call("add", {"a": 1, "b": 1})
        assert (reply["code"], reply["capability_name"]) == ("capability_missing", "tools")
        reply = await agent.ask("memory/store/req", content="x")
        assert (reply["code"], reply["capability_name"]) == ("capability_missing", "memory")


async def test_a_message_of_the_capability_that_is_no_request_is_invalid() -> None:
    async with agent_of(make_host()) as agent:
        reply = await agent.ask("toolkit/list/resp")
        assert reply["code"] == "invalid_message"
        reply = await agent.ask("tool/nonsense/req")
        assert reply["code"] == "invalid_message"


async def test_the_agent_hears_that_the_offer_changed() -> None:
    host = make_host(add)
    bench: Any = host._bench  # pyright: ignore[reportPrivateUsage]
    async with agent_of(host) as agent:
        bench.catalog.add(functions(echo, name="more"))
        push = await agent.receive()
        assert (push["type"], push["kind"], push["req_id"]) == ("invoke/event", "status", "")
        assert push["data"]["source"] == "catalog"
        assert await agent.tools() == ["add", "echo"]
        bench.catalog.remove("more")
        assert (await agent.receive())["data"]["source"] == "catalog"
        assert (await agent.call("echo", {"value": 1}))["code"] == "unknown_tool"


# cases


async def test_b065_a_blocking_tool_holds_nobody_up() -> None:
    """modelcontextprotocol/python-sdk#1646: a synchronous tool stopped every other request."""
    gate = threading.Event()
    running = threading.Semaphore(0)
    who: ContextVar[str] = ContextVar("who", default="nobody")

    @tool
    def block() -> str:
        """Blocks."""
        running.release()
        gate.wait(WAIT)
        return who.get()

    who.set("caller")
    async with agent_of(make_host(block)) as agent:
        ids = [await agent.send("tool/call/req", tool_name="block", arguments={}) for _ in range(3)]
        begun = time.monotonic()
        for _ in range(5):
            assert (await agent.ask("ping"))["type"] == "pong"
        assert time.monotonic() - begun < 1
        for _ in range(3):
            assert await asyncio.to_thread(running.acquire, True, WAIT)
        gate.set()
        replies = [await agent.reply_to(id) for id in ids[:1]]
        assert replies[0]["data"]["data"] == "caller"


async def test_b068_separators_that_only_look_like_line_ends_pass_both_ways() -> None:
    """anthropics/claude-agent-sdk-typescript#137: U+2028 in a result broke the framing."""
    value = {"t": "a\u2028b\u2029c\x85d\x0be\x0cf", "u": "line1\nline2\r\nline3"}
    async with agent_of(make_host()) as agent:
        line = {"type": "tool/call/req", "id": "raw", "tool_name": "echo", "arguments": {"value": value}}
        await agent.raw(json.dumps(line, ensure_ascii=False).encode())
        assert (await agent.reply_to("raw"))["data"]["data"] == value


async def test_b070_integers_of_any_size_arrive_exactly() -> None:
    """cline/cline#9589: large integers were rounded on the way."""
    big = {"id": 9007199254740993, "big": 123456789012345678901234567890}

    @tool
    async def whole(n: int) -> str:
        """Takes an integer."""
        return f"{type(n).__name__} {n}"

    async with agent_of(make_host(echo, whole)) as agent:
        reply = await agent.call("echo", {"value": big})
        assert reply["data"]["data"] == big
        assert json.loads(reply["data"]["summary"]) == big
        assert (await agent.call("whole", {"n": 1.0}))["data"]["data"] == "int 1"
        assert (await agent.call("whole", {"n": True}))["code"] == "schema_violation"
        await agent.raw(b'{"type":"tool/call/req","id":"inf","tool_name":"echo","arguments":{"value":1e400}}')
        assert (await agent.reply_to("inf"))["code"] == "parse_error"
        assert (await agent.call("whole", {"n": 3}))["data"]["data"] == "int 3"


async def test_b071_a_lone_surrogate_costs_one_call() -> None:
    """MemPalace/mempalace#503: a lone surrogate in a reply killed the server."""

    @tool
    async def broken() -> str:
        """Returns what cannot be sent."""
        return os.fsdecode(b"\xff")

    @tool
    async def infinite() -> float:
        """The same."""
        return float("nan")

    async with agent_of(make_host(broken, infinite, echo)) as agent:
        await agent.raw(b'{"type":"tool/call/req","id":"half","tool_name":"echo","arguments":{"value":"\\ud83d"}}')
        assert (await agent.reply_to("half"))["code"] == "parse_error"
        await agent.raw(b'{"type":"tool/call/req","id":"key","tool_name":"echo","arguments":{"value":{"\\ud83d":1}}}')
        assert (await agent.reply_to("key"))["code"] == "parse_error"
        assert (await agent.call("broken"))["code"] == "tool_error"
        assert (await agent.call("infinite"))["code"] == "tool_error"
        await agent.raw(
            b'{"type":"tool/call/req","id":"pair","tool_name":"echo","arguments":{"value":"\\ud83d\\ude00"}}'
        )
        assert (await agent.reply_to("pair"))["data"]["data"] == "😀"


async def test_b073_ids_come_back_as_they_were() -> None:
    """modelcontextprotocol/python-sdk#961: a reply's id did not match its request's."""
    async with agent_of(make_host()) as agent:
        for id in ("1", "0", "é", "a" * 200, " "):
            assert (await agent.call("add", {"a": 1, "b": 1}, id=id))["req_id"] == id
        await agent.raw(b'{"type":"ping"}')
        assert len((await agent.receive())["req_id"]) == 32
        await agent.raw(b'{"type":"ping","id":7}')
        assert (await agent.receive())["code"] == "schema_violation"
