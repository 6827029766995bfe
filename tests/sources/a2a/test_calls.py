"""Calling a skill: what is sent, how the result is had, and what becomes of every state and trouble."""

from __future__ import annotations

import asyncio
import json
import statistics
from typing import Any

import anyio
import pytest

from anykit.a2a import agent, agent_tools
from anykit.capabilities import Artifact, BlobPart, CapabilityContext, Event, Status, StructuredPart, TextPart
from anykit.sources.a2a import A2ATool
from anykit.tools import ToolResult
from transports.peers import http

from .agents import Asked, Error, Json, ScriptedAgent, Stream, card_0_3, card_1_0, scripted, task

pytestmark = pytest.mark.anyio


async def tool_of(one: ScriptedAgent, **options: Any) -> A2ATool:
    options = {"timeout": 5.0, "poll_every": 0.05, **options}
    [tool] = await agent_tools(agent(one.card_url, **options))
    assert isinstance(tool, A2ATool)
    return tool


async def call(
    one: ScriptedAgent, text: str = "x", context: CapabilityContext | None = None, **options: Any
) -> ToolResult:
    with anyio.fail_after(8):
        return await (await tool_of(one, **options)).execute({"task": text}, context)


def sequence(*answers: Json) -> Any:
    """Answers in turn; the last one stays."""
    left = list(answers)

    def give(asked: Asked) -> Json:
        return left.pop(0) if len(left) > 1 else left[0]

    return give


# shapes and dialects

FIVE = [
    {"id": "t", "status": {"state": "completed"}, "artifacts": [{"parts": [{"kind": "text", "text": "5"}]}]},
    {"task": {"id": "t", "status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": [{"parts": [{"text": "5"}]}]}},
    {"kind": "message", "role": "agent", "parts": [{"kind": "text", "text": "5"}]},
    {"message": {"role": "ROLE_AGENT", "parts": [{"text": "5"}]}},
]


@pytest.mark.parametrize("result", FIVE)
async def test_b048_a_task_or_a_message_bare_or_wrapped_is_the_same_answer(result: Json) -> None:
    """a2aproject/a2a-python#1192: the result wrapped one level deeper, or not."""
    async with scripted(lambda asked: result) as one:
        found = await call(one)
    assert (found.is_error, found.output, found.metadata["state"]) == (False, "5", "completed")
    assert one.methods == ["SendMessage"]
    assert found.metadata["polls"] == 0


@pytest.mark.parametrize("result", [None, 5, "5", [], {}, {"x": 1}, {"message": {}}, {"task": []}])
async def test_b048_a_result_of_no_such_shape_is_a_protocol_error(result: Json) -> None:
    """a2aproject/a2a-python#1192: what is neither a task nor a message."""

    def answer(asked: Asked) -> Json:
        return http(200, "application/json", json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode())

    async with scripted(answer) as one:
        found = await call(one)
    assert found.is_error
    assert "result is" in found.output
    assert found.code == "unknown"


def speaks_1_0(asked: Asked) -> Json:
    if asked.http.headers.get("a2a-version") != "1.0":
        return Error(-32009, "version not supported")
    match asked.method:
        case "SendMessage":
            assert asked.message["role"] == "ROLE_USER"
            assert asked.message["parts"][0]["text"] == "x"
            return {"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}}
        case "GetTask":
            assert asked.params["id"] == "t"
            status = {"state": "TASK_STATE_COMPLETED"}
            return {"id": "t", "contextId": "c", "status": status, "artifacts": [{"parts": [{"text": "5"}]}]}
        case _:
            return Error(-32601, "method not found")


def speaks_0_3(asked: Asked) -> Json:
    match asked.method:
        case "message/send":
            assert asked.message["role"] == "user"
            assert asked.message["kind"] == "message"
            assert asked.message["parts"] == [{"kind": "text", "text": "x"}]
            assert "a2a-version" not in asked.http.headers
            return {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "working"}}
        case "tasks/get":
            parts = [{"kind": "text", "text": "5"}]
            return {"kind": "task", "id": "t", "status": {"state": "completed"}, "artifacts": [{"parts": parts}]}
        case _:
            return Error(-32601, "method not found")


@pytest.mark.parametrize(
    ("card", "speaks", "first", "rest"),
    [
        (card_1_0, speaks_1_0, [], ["SendMessage", "GetTask"]),
        (card_0_3, speaks_0_3, [], ["message/send", "tasks/get"]),
        (card_1_0, speaks_0_3, ["SendMessage"], ["message/send", "tasks/get"]),
        (card_0_3, speaks_1_0, ["message/send"], ["SendMessage", "GetTask"]),
        (None, speaks_1_0, ["SendMessage"], ["SendMessage", "GetTask"]),
        (None, speaks_0_3, ["SendMessage"], ["message/send", "tasks/get"]),
    ],
)
async def test_b046_a_card_that_is_wrong_about_its_version_costs_one_request_once(
    card: Any, speaks: Any, first: list[str], rest: list[str]
) -> None:
    """BerriAI/litellm#30795, a2aproject/a2a-samples#599: the card says one version, the agent speaks the other."""
    async with scripted(speaks) as one:
        if card is not None:
            one.card = card(one.url + "/")
        tool = await tool_of(one)
        for expected in (first + rest, rest):
            one.asked.clear()
            result = await tool.execute({"task": "x"})
            assert result.output == "5", result
            assert result.metadata["state"] == "completed"
            assert one.methods == expected


@pytest.mark.parametrize("card", [card_1_0, card_0_3, None])
@pytest.mark.parametrize("streaming", [False, True])
async def test_b046_where_no_dialect_is_understood_one_error_names_both_attempts(card: Any, streaming: bool) -> None:
    """BerriAI/litellm#30795: neither version works."""
    async with scripted(lambda asked: Error(-32601, "method not found")) as one:
        if card is not None:
            one.card = card(one.url + "/", streaming=streaming)
        result = await call(one)
    assert result.is_error
    assert result.code == "unavailable"
    assert "0.3 JSONRPC" in result.output
    assert ("1.0 JSONRPC" in result.output) or ("toolnexus" in result.output)
    assert result.output.count("-32601") == 2
    if not streaming:
        assert len(one.asked) == 2


async def test_the_server_of_the_contracts_library_is_understood_behind_its_0_3_card() -> None:
    """It knows the methods of 1.0 only, and reads no part without its kind."""

    def toolnexus(asked: Asked) -> Json:
        if asked.method not in ("SendMessage", "GetTask"):
            return Error(-32601, "Method not found")
        if asked.method == "SendMessage":
            texts = [part["text"] for part in asked.message["parts"] if part.get("kind") == "text"]
            return task("completed", "".join(texts))
        raise AssertionError(asked.method)

    async with scripted(toolnexus) as one:
        one.card = card_0_3(one.url + "/")
        tool = await tool_of(one)
        for _ in range(2):
            assert (await tool.execute({"task": "hello"})).output == "hello"
        assert one.methods == ["message/send", "SendMessage", "SendMessage"]
        assert "a2a-version" not in one.asked[-1].http.headers


def rest(asked: Asked) -> Json:
    """HTTP+JSON of 1.0 at `/r`, of 0.3 as the official server reads it at `/p`, as its specification has it at `/s`."""
    done = {"state": "TASK_STATE_COMPLETED"}
    kind, _, path = asked.http.path.partition("?")[0].removeprefix("/").partition("/")
    if kind == "s":
        kind, done = "s", {"state": "completed"}
    match kind, asked.http.method, path:
        case "r", "POST", "message:send":
            assert asked.http.headers["a2a-version"] == "1.0"
            return {"task": {"id": "t/1", "status": {"state": "TASK_STATE_WORKING"}}}
        case "p", "POST", "v1/message:send":
            if "content" not in asked.message:
                return http(400, "application/json", b'{"message": "no field named parts"}')
            assert asked.message["role"] == "ROLE_USER"
            assert asked.message["content"] == [{"text": "x"}]
            return {"task": {"id": "t/1", "status": {"state": "TASK_STATE_WORKING"}}}
        case "s", "POST", "v1/message:send":
            if "parts" not in asked.message:
                return http(400, "application/json", b'{"error": "parts is required"}')
            assert asked.message["parts"] == [{"kind": "text", "text": "x"}]
            return {"kind": "task", "id": "t/1", "status": {"state": "working"}}
        case "r", "GET", "tasks/t%2F1":
            return {"id": "t/1", "status": done, "artifacts": [{"parts": [{"text": "5"}]}]}
        case (("p" | "s"), "GET", "v1/tasks/t%2F1"):
            return {"id": "t/1", "status": done, "artifacts": [{"parts": [{"text": "5"}]}]}
        case _:
            return http(404, "application/json", b'{"detail": "Not Found"}')


@pytest.mark.parametrize(("base", "card"), [("/r", card_1_0), ("/r/", card_1_0), ("/p", card_0_3), ("/s", card_0_3)])
async def test_http_json_is_spoken_in_both_versions_and_both_spellings_of_0_3(base: str, card: Any) -> None:
    async with scripted(rest) as one:
        named = {"binding": "HTTP+JSON"} if card is card_1_0 else {"transport": "HTTP+JSON"}
        one.card = card(one.url + base, **named)
        tool = await tool_of(one)
        assert [(await tool.execute({"task": "x"})).output for _ in range(2)] == ["5", "5"]


@pytest.mark.parametrize(("base", "card"), [("/p", card_1_0), ("/r", card_0_3)])
async def test_http_json_of_the_other_version_is_found_by_a_404(base: str, card: Any) -> None:
    async with scripted(rest) as one:
        named = {"binding": "HTTP+JSON"} if card is card_1_0 else {"transport": "HTTP+JSON"}
        one.card = card(one.url + base, **named)
        tool = await tool_of(one)
        assert (await tool.execute({"task": "x"})).output == "5"
        one.asked.clear()
        assert (await tool.execute({"task": "x"})).output == "5"
        assert len(one.asked) == 2


async def test_a_json_rpc_url_that_is_not_there_leads_to_the_cards_other_interface() -> None:
    async with scripted(rest) as one:
        one.card = card_1_0(one.url + "/gone")
        other = {"url": one.url + "/r", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}
        one.card["supportedInterfaces"].append(other)
        assert (await call(one)).output == "5"


async def test_the_skill_and_a_tenant_are_named_to_the_agent() -> None:
    async with scripted(lambda asked: task("completed", "5")) as one:
        one.card = card_1_0(one.url + "/")
        one.card["supportedInterfaces"][0]["tenant"] = "acme"
        await call(one)
        assert one.asked[0].params["tenant"] == "acme"
        assert one.asked[0].message["metadata"] == {"skillId": "add"}
        assert one.asked[0].params["configuration"] == {"returnImmediately": True}


# states


@pytest.mark.parametrize("spelling", ["input-required", "TASK_STATE_INPUT_REQUIRED", "input_required", 6])
async def test_b050_a_question_stops_the_call_and_says_how_to_go_on(spelling: Json) -> None:
    """adcontextprotocol/adcp-client#977: input-required is neither final nor a reason to go on polling."""
    message = {"role": "agent", "messageId": "m", "parts": [{"kind": "text", "text": "Which city?"}]}
    asking = {"id": "t1", "contextId": "c1", "status": {"state": spelling, "message": message}}
    async with scripted(sequence(task("working"), asking)) as one:
        result = await call(one)
    assert (result.is_error, result.status) == (True, "suspended")
    assert result.output.startswith("Which city?")
    assert result.suspension is not None
    assert result.suspension.kind == "input"
    assert result.metadata["state"] == "input-required"
    assert (result.metadata["task_id"], result.metadata["context_id"]) == ("t1", "c1")
    assert one.methods == ["SendMessage", "GetTask"]
    json.dumps([result.suspension.to_json(), result.suspension.state])


@pytest.mark.parametrize("spelling", ["auth-required", "TASK_STATE_AUTH_REQUIRED"])
async def test_b050_an_authorization_is_a_question_with_a_place_to_give_it(spelling: str) -> None:
    """adcontextprotocol/adcp-client#977: auth-required."""
    message = {"role": "agent", "parts": [{"text": "Log in at https://id.example/a?b=1."}]}
    async with scripted(lambda asked: {"task": {"id": "t1", "status": {"state": spelling, "message": message}}}) as one:
        result = await call(one)
    assert result.suspension is not None
    assert (result.suspension.kind, result.suspension.url) == ("authorization", "https://id.example/a?b=1")
    assert result.metadata["state"] == "auth-required"


@pytest.mark.parametrize(
    ("spelling", "state"),
    [
        ("rejected", "rejected"),
        ("TASK_STATE_REJECTED", "rejected"),
        ("canceled", "canceled"),
        ("cancelled", "canceled"),
        ("TASK_STATE_CANCELLED", "canceled"),
        ("failed", "failed"),
    ],
)
async def test_b050_what_did_not_complete_is_an_error_with_its_reason(spelling: str, state: str) -> None:
    """adcontextprotocol/adcp-client#977: rejected and canceled."""
    message = {"role": "agent", "parts": [{"kind": "text", "text": "not my job"}]}
    async with scripted(lambda asked: {"id": "t1", "status": {"state": spelling, "message": message}}) as one:
        result = await call(one)
    assert result.is_error
    assert result.output == f"A2A task t1 {state}: not my job"
    assert result.metadata["state"] == state
    assert one.methods == ["SendMessage"]


@pytest.mark.parametrize("spelling", ["unknown", "some-future-state", "TASK_STATE_UNSPECIFIED", None, 17, {}, ""])
async def test_b050_a_state_that_nobody_knows_is_waited_for(spelling: Json) -> None:
    """adcontextprotocol/adcp-client#977: unknown and future states."""
    odd = {"id": "t1", "status": {"state": spelling}}
    async with scripted(sequence(odd, odd, odd, task("completed", "5"))) as one:
        result = await call(one)
    assert result.output == "5"
    assert result.metadata["polls"] == 3


async def test_b051_a_failed_task_is_an_error_that_keeps_what_there_was() -> None:
    """langchain4j/langchain4j#5470: failed tasks delivered as success."""
    message = {"role": "agent", "parts": [{"kind": "text", "text": "no quota"}]}
    failed = task("failed", "partial") | {"status": {"state": "failed", "message": message}}
    async with scripted(lambda asked: failed) as one:
        result = await call(one)
    assert result.is_error
    assert result.output.startswith("A2A task t1 failed: no quota\n")
    assert "partial result" in result.output
    assert (result.metadata["state"], result.metadata["task_id"], result.metadata["partial"]) == ("failed", "t1", True)
    [said, partial] = result.content
    assert isinstance(said, TextPart)
    assert isinstance(partial, TextPart)
    assert said.text == result.output
    assert (partial.text, partial.metadata["partial"]) == ("partial", True)


async def test_b051_a_failure_without_a_word_is_still_a_useful_error() -> None:
    """langchain4j/langchain4j#5470: failed, and no message."""
    async with scripted(lambda asked: task("failed")) as one:
        result = await call(one)
    assert result.output == "A2A task t1 failed: Calc Agent gave no reason"
    assert result.code == "execution_failed"


# the text of a result


def said(role: str, text: str) -> Json:
    return {"role": role, "parts": [{"kind": "text", "text": text}]}


@pytest.mark.parametrize(
    ("result", "output"),
    [
        (task("completed", artifacts=[{"parts": [{"text": "a"}, {"text": "b"}]}, {"parts": [{"text": "c"}]}]), "ab\nc"),
        (task("completed") | {"status": {"state": "completed", "message": said("agent", "done")}}, "done"),
        (task("completed", history=[said("agent", "one"), said("agent", "two"), said("user", "me")]), "two"),
        (task("completed", history=[said("ROLE_USER", "me")]), ""),
        (task("completed") | {"status": {"state": "completed", "message": said("user", "me")}}, ""),
        (task("completed", "5", history=[said("agent", "old")]), "5"),
        (task("completed", ""), ""),
    ],
)
async def test_the_text_is_that_of_artifacts_else_status_else_history_never_the_callers(
    result: Json, output: str
) -> None:
    async with scripted(lambda asked: result) as one:
        found = await call(one)
    assert (found.is_error, found.output) == (False, output)


OLD_PARTS = [
    {"kind": "data", "data": {"n": 1}},
    {"kind": "file", "file": {"name": "r.pdf", "mimeType": "application/pdf", "bytes": "JVBERi0="}},
    {"kind": "file", "file": {"uri": "http://h/x.png"}},
]
NEW_PARTS = [
    {"data": {"n": 1.0}, "mediaType": "application/json"},
    {"raw": "JVBERi0=", "filename": "r.pdf", "mediaType": "application/pdf"},
    {"url": "http://h/x.png"},
]
PROTO_PARTS = [
    {"data": {"data": {"n": 1.0}}},
    {"file": {"fileWithBytes": "JVBERi0", "mimeType": "application/pdf", "name": "r.pdf"}},
    {"file": {"fileWithUri": "http://h/x.png"}},
]


@pytest.mark.parametrize("parts", [OLD_PARTS, NEW_PARTS, PROTO_PARTS])
async def test_b055_data_and_files_are_kept_and_links_are_not_fetched(parts: Json) -> None:
    """alDuncanson/Handler#100: answers of data and files only."""
    async with scripted(lambda asked: task("completed", artifacts=[{"parts": parts}])) as one:
        result = await call(one)
    assert not result.is_error
    assert result.structured == {"n": 1}
    data, pdf, link = result.content
    assert isinstance(data, StructuredPart)
    assert isinstance(pdf, BlobPart)
    assert isinstance(link, BlobPart)
    assert (pdf.name, pdf.media_type, pdf.data, pdf.uri) == ("r.pdf", "application/pdf", b"%PDF-", None)
    assert (link.uri, link.data) == ("http://h/x.png", None)
    assert result.output.splitlines()[0] == '{"n":1}'
    assert "r.pdf" in result.output
    assert "http://h/x.png" in result.output


async def test_structured_data_beside_its_own_text_is_shown_once() -> None:
    parts = [{"kind": "text", "text": '{"n": 1}'}, {"kind": "data", "data": {"n": 1}}]
    async with scripted(lambda asked: task("completed", artifacts=[{"parts": parts}])) as one:
        result = await call(one)
    assert (result.output, result.structured) == ('{"n": 1}', {"n": 1})


async def test_parts_that_cannot_be_read_are_named_and_cost_only_themselves() -> None:
    parts = [None, {"kind": "file", "file": {"bytes": "!!"}}, {"kind": "video"}, {"kind": "text", "text": "5"}]
    async with scripted(lambda asked: task("completed", artifacts=[{"parts": parts}])) as one:
        result = await call(one)
    assert result.output == "5"
    assert len(result.metadata["left_out"]) == 3


async def test_half_a_surrogate_pair_does_not_spoil_a_result() -> None:
    body = b'{"jsonrpc":"2.0","id":1,"result":{"id":"t","status":{"state":"completed"},"artifacts":[{"parts":[{"text":"a\\ud800b"}]}]}}'
    async with scripted(lambda asked: http(200, "application/json", body)) as one:
        assert (await call(one)).output == "a?b"


# polling


async def test_b053_a_bad_gateway_while_polling_is_passed_over() -> None:
    """crewAIInc/crewAI#4180, valyuAI/valyu-py#126: one bad poll taken for the end of the task."""
    bad = http(502, "text/html", b"<h1>Bad gateway</h1>")
    html = http(200, "text/html", b"<html>")
    async with scripted(sequence(task("working"), bad, html, Error(-32603, "hiccup"), task("completed", "5"))) as one:
        result = await call(one)
    assert (result.output, result.metadata["polls"]) == ("5", 4)


async def test_b053_a_reset_connection_while_polling_is_passed_over() -> None:
    """crewAIInc/crewAI#4180: a broken connection."""
    answers = [task("working"), None, None, task("completed", "5")]

    def answer(asked: Asked) -> Json:
        given = answers.pop(0)
        if given is None:
            asked.http.writer.transport.abort()
        return given

    async with scripted(answer) as one:
        assert (await call(one)).output == "5"


async def test_b053_a_task_that_the_agent_forgot_is_a_prompt_error() -> None:
    """adcontextprotocol/adcp-client#1596: polling an evicted task."""
    async with scripted(sequence(task("working"), Error(-32001, "Task not found"))) as one:
        with anyio.fail_after(1):
            result = await call(one)
    assert result.is_error
    assert "no longer knows" in result.output
    assert "t1" in result.output
    assert result.code == "task_not_found"
    assert one.methods == ["SendMessage", "GetTask"]


async def test_b053_a_task_that_never_ends_is_given_up_at_the_deadline_and_canceled() -> None:
    """crewAIInc/crewAI#4180: a polling timeout that nobody caught."""
    canceled = asyncio.Event()

    def answer(asked: Asked) -> Json:
        if asked.method == "CancelTask":
            canceled.set()
        return task("working")

    async with scripted(answer) as one:
        begun = asyncio.get_running_loop().time()
        result = await call(one, timeout=0.5)
        took = asyncio.get_running_loop().time() - begun
        with anyio.fail_after(2):
            await canceled.wait()
    assert 0.45 < took < 1.0
    assert result.code == "timeout"
    assert "t1" in result.output
    assert "working" in result.output
    assert (result.metadata["task_id"], result.metadata["state"]) == ("t1", "working")


@pytest.mark.parametrize("streaming", [False, True])
async def test_b053_a_cancelled_caller_cancels_the_task_and_is_cancelled(streaming: bool) -> None:
    """crewAIInc/crewAI#4180: the caller goes away."""
    polled = asyncio.Event()

    async def answer(asked: Asked) -> Json:
        if asked.method == "SendStreamingMessage":
            polled.set()
            return Stream([{"task": task("TASK_STATE_WORKING")}], end="hang")
        if asked.method == "GetTask":
            polled.set()
        return task("working")

    async with scripted(answer) as one:
        one.card = card_1_0(one.url + "/", streaming=streaming)
        tool = await tool_of(one)
        running = asyncio.create_task(tool.execute({"task": "x"}))
        with anyio.fail_after(4):
            await polled.wait()
            if streaming:
                await anyio.sleep(0.05)  # let the event arrive
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        assert one.methods[-1] == "CancelTask"
        assert one.asked[-1].params == {"id": "t1"}


async def test_a_caller_who_goes_away_before_the_agent_answered_still_cancels_the_task() -> None:
    arrived = asyncio.Event()

    async def answer(asked: Asked) -> Json:
        if asked.method == "SendMessage":
            arrived.set()
            await anyio.sleep(0.1)  # the agent takes its time to say which task it is
        return task("working")

    async with scripted(answer) as one:
        tool = await tool_of(one)
        running = asyncio.create_task(tool.execute({"task": "x"}))
        with anyio.fail_after(4):
            await arrived.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        assert one.methods == ["SendMessage", "CancelTask"]


async def test_an_agent_that_hangs_on_the_cancel_holds_nobody_longer_than_two_seconds() -> None:
    async def answer(asked: Asked) -> Json:
        if asked.method == "CancelTask":
            await asyncio.Event().wait()
        return task("working")

    async with scripted(answer) as one:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        result = await call(one, timeout=0.3)
        assert result.code == "timeout"
        assert loop.time() - begun < 0.8


async def test_a_peer_that_drips_its_answer_does_not_stretch_the_deadline() -> None:
    async def drip(asked: Asked) -> Json:
        writer = asked.http.writer
        writer.write(b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n")
        while True:
            writer.write(b" ")
            await writer.drain()
            await anyio.sleep(0.02)

    async with scripted(drip) as one:
        begun = asyncio.get_running_loop().time()
        result = await call(one, timeout=0.4)
        assert asyncio.get_running_loop().time() - begun < 0.9
    assert result.code == "timeout"


async def test_the_callers_deadline_counts_where_it_is_nearer() -> None:
    async with scripted(lambda asked: task("working")) as one:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        result = await call(one, context=CapabilityContext(deadline=begun + 0.4))
        assert loop.time() - begun <= 0.6
    assert result.code == "timeout"
    assert result.metadata["task_id"] == "t1"


async def test_a_finished_task_is_noticed_soon_and_a_long_one_is_asked_about_rarely() -> None:
    ended = 0.0

    def make(seconds: float) -> Any:
        begun: float | None = None

        def answer(asked: Asked) -> Json:
            nonlocal begun, ended
            now = asyncio.get_running_loop().time()
            begun = begun or now
            ended = begun + seconds
            return task("completed", "5") if now >= ended else task("working")

        return answer

    late: list[float] = []
    polls: list[int] = []
    for _ in range(5):
        async with scripted(make(0.3)) as one:
            result = await call(one, poll_every=1.0)
            late.append(asyncio.get_running_loop().time() - ended)
            polls.append(result.metadata["polls"])
    assert statistics.median(late) < 0.04
    assert statistics.median(polls) < 18


# what goes wrong when asking


@pytest.mark.parametrize(
    ("answer", "words", "code"),
    [
        (http(500, "text/plain", b"boom"), ["HTTP 500", "text/plain", "boom"], "unknown"),
        (http(403, "text/html", b"<h1>no</h1>"), ["HTTP 403", "text/html", "no"], "unauthorized"),
        (http(200, "text/html", b"<html>"), ["HTTP 200", "text/html", "<html>"], "unknown"),
        (http(200, "text/plain", b"this is not json"), ["HTTP 200", "this is not json"], "unknown"),
        (http(200, "application/json", b""), ["HTTP 200", "application/json", "no body"], "unknown"),
        (http(200, "application/json", b"[1,2"), ["HTTP 200", "[1,2"], "unknown"),
        (http(200, "application/json", b"null"), ["HTTP 200", "null"], "unknown"),
        (http(429, "text/plain", b"slow down"), ["HTTP 429"], "busy"),
        (http(503, "text/plain", b"later"), ["HTTP 503"], "unavailable"),
        (Error(-32602, "bad parameters"), ["-32602", "bad parameters"], "execution_failed"),
        (Error(-32603, "oops"), ["-32603", "oops"], "execution_failed"),
        (Error(-32000, "custom"), ["-32000", "custom"], "execution_failed"),
    ],
)
async def test_b018_an_answer_that_is_no_answer_is_a_prompt_error_with_what_came(
    answer: Json, words: list[str], code: str
) -> None:
    """PrefectHQ/fastmcp#2595: a client that hangs on HTTP errors."""
    async with scripted(lambda asked: answer) as one:
        one.card = card_1_0(one.url + "/")
        with anyio.fail_after(2):
            result = await call(one)
        assert result.is_error
        assert [word for word in words if word not in result.output] == []
        assert result.code == code
        assert result.metadata["agent"] == "Calc Agent"
        one.handler = lambda asked: task("completed", "5")
        assert (await call(one)).output == "5"


async def test_b025_an_agent_that_is_not_there_is_one_ordinary_error_and_cancels_nobody() -> None:
    """openai/openai-agents-python#1288: a failed connect corrupts the next await."""
    async with scripted(lambda asked: task("completed", "5")) as one:
        one.card = card_1_0("http://127.0.0.1:9/")
        result = await call(one)
    assert (result.is_error, result.code, result.metadata["retryable"]) == (True, "unavailable", True)
    assert "127.0.0.1:9" in result.output
    await asyncio.sleep(0)
    current = asyncio.current_task()
    assert current is not None
    assert current.cancelling() == 0


async def test_a_lost_answer_is_not_asked_for_twice() -> None:
    def answer(asked: Asked) -> Json:
        asked.http.writer.transport.abort()

    async with scripted(answer) as one:
        result = await call(one)
        assert len(one.asked) == 1
    assert (result.code, result.metadata["retryable"]) == ("unknown", False)


async def test_a_task_that_goes_on_and_has_no_id_is_a_protocol_error() -> None:
    async with scripted(lambda asked: {"status": {"state": "working"}}) as one:
        result = await call(one)
    assert "named the task" in result.output


async def test_an_answer_about_another_task_is_not_believed() -> None:
    async with scripted(sequence(task("working"), task("completed", "stolen", id="t2"))) as one:
        result = await call(one)
        assert one.methods == ["SendMessage", "GetTask", "CancelTask"]
    assert result.is_error
    assert "another task" in result.output


async def test_a_message_that_only_echoes_the_callers_is_no_answer() -> None:
    async with scripted(lambda asked: asked.message | {"kind": "message"}) as one:
        result = await call(one)
    assert result.is_error
    assert "the message that it was sent" in result.output


# streams


def told(state: str, text: str = "", *, final: bool = False) -> Json:
    status: Json = {"state": state}
    if text:
        status["message"] = {"role": "ROLE_AGENT", "parts": [{"text": text}]}
    return {"statusUpdate": {"taskId": "t1", "contextId": "c1", "status": status}}


def piece(text: str, *, id: str = "a", append: bool = False, last: bool = False) -> Json:
    artifact = {"artifactId": id, "name": "out", "parts": [{"text": text}]}
    return {"artifactUpdate": {"taskId": "t1", "artifact": artifact, "append": append, "lastChunk": last}}


WORKING = {"task": {"id": "t1", "contextId": "c1", "status": {"state": "TASK_STATE_WORKING"}}}
DONE = told("TASK_STATE_COMPLETED")


async def streamed(
    events: list[Json], card: Any = card_1_0, **options: Any
) -> tuple[ToolResult, list[Event], list[str]]:
    heard: list[Event] = []
    async with scripted(lambda asked: Stream(events, **options)) as one:
        one.card = card(one.url + "/", streaming=True)
        result = await call(one, context=CapabilityContext(emit=heard.append))
    return result, heard, one.methods


async def test_chunks_are_joined_and_passed_on_as_they_come() -> None:
    events = [
        WORKING,
        told("TASK_STATE_WORKING", "thinking"),
        piece("he"),
        piece("llo", append=True, last=True),
        piece("bye", id="b", last=True),
        DONE,
    ]
    result, heard, methods = await streamed(events)
    assert (result.output, result.metadata["state"], result.metadata["polls"]) == ("hello\nbye", "completed", 0)
    assert methods == ["SendStreamingMessage"]
    assert heard == [
        Status("thinking"),
        Artifact("out", TextPart(text="he"), append=False, last=False),
        Artifact("out", TextPart(text="llo"), append=True, last=True),
        Artifact("out", TextPart(text="bye"), append=False, last=True),
    ]


async def test_streams_of_0_3_are_understood() -> None:
    artifact = {"artifactId": "a", "parts": [{"kind": "text", "text": "5"}]}
    events = [
        {"kind": "task", "id": "t1", "contextId": "c", "status": {"state": "submitted"}},
        {"kind": "status-update", "taskId": "t1", "status": {"state": "working"}, "final": False},
        {"kind": "artifact-update", "taskId": "t1", "artifact": artifact},
        {"kind": "status-update", "taskId": "t1", "status": {"state": "completed"}, "final": True},
    ]
    result, _, methods = await streamed(events, card_0_3)
    assert (result.output, methods) == ("5", ["message/stream"])


async def test_a_chunk_that_does_not_append_takes_the_place_of_what_was_there() -> None:
    result, _, _ = await streamed([WORKING, piece("draft"), piece("final"), DONE])
    assert result.output == "final"


async def test_a_message_in_a_stream_is_the_whole_answer() -> None:
    result, _, methods = await streamed([{"message": {"role": "ROLE_AGENT", "parts": [{"text": "5"}]}}], end="hang")
    assert (result.output, methods) == ("5", ["SendStreamingMessage"])


async def test_a_settled_task_is_not_kept_waiting_by_a_stream_that_stays_open() -> None:
    result, _, _ = await streamed([WORKING, piece("5"), DONE], end="hang")
    assert result.output == "5"


async def test_a_question_in_a_stream_stops_the_call() -> None:
    result, _, _ = await streamed([WORKING, told("TASK_STATE_INPUT_REQUIRED", "Which city?")], end="hang")
    assert result.output.startswith("Which city?\n")
    assert result.metadata["state"] == "input-required"


async def test_an_answer_in_one_piece_to_a_request_for_a_stream_is_taken() -> None:
    async with scripted(lambda asked: {"task": task("TASK_STATE_COMPLETED", "5")}) as one:
        one.card = card_1_0(one.url + "/", streaming=True)
        assert (await call(one)).output == "5"
        assert one.methods == ["SendStreamingMessage"]


@pytest.mark.parametrize("refusal", [Error(-32004, "no streaming"), Error(-32601), http(405, "text/plain", b"no")])
async def test_an_agent_that_does_not_stream_as_it_promised_is_asked_plainly_from_then_on(refusal: Json) -> None:
    def answer(asked: Asked) -> Json:
        return refusal if asked.method == "SendStreamingMessage" else task("completed", "5")

    async with scripted(answer) as one:
        one.card = card_1_0(one.url + "/", streaming=True)
        tool = await tool_of(one)
        assert (await tool.execute({"task": "x"})).output == "5"
        assert (await tool.execute({"task": "x"})).output == "5"
        assert one.methods == ["SendStreamingMessage", "SendMessage", "SendMessage"]


@pytest.mark.parametrize("end", ["end", "break"])
async def test_a_broken_stream_is_taken_up_again_and_nothing_is_lost(end: str) -> None:
    whole = {"id": "t1", "status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": [{"parts": [{"text": "hello"}]}]}

    def answer(asked: Asked) -> Json:
        match asked.method:
            case "SendStreamingMessage":
                return Stream([WORKING, piece("he")], end=end)
            case "SubscribeToTask":
                assert asked.params == {"id": "t1"}
                return Stream([piece("o", append=True), DONE])  # what came between was missed
            case "GetTask":
                return whole
            case _:
                raise AssertionError(asked.method)

    async with scripted(answer) as one:
        one.card = card_1_0(one.url + "/", streaming=True)
        assert (await call(one)).output == "hello"
        assert one.methods == ["SendStreamingMessage", "SubscribeToTask", "GetTask"]


@pytest.mark.parametrize("refusal", [Error(-32004), Error(-32601), Error(-32001), http(404, "text/plain", b"")])
async def test_where_a_stream_cannot_be_taken_up_again_the_task_is_looked_at(refusal: Json) -> None:
    looks = [task("TASK_STATE_WORKING"), task("TASK_STATE_COMPLETED", "5")]

    def answer(asked: Asked) -> Json:
        match asked.method:
            case "SendStreamingMessage":
                return Stream([WORKING], end="break")
            case "GetTask":
                return looks.pop(0)
            case _:
                return refusal

    async with scripted(answer) as one:
        one.card = card_1_0(one.url + "/", streaming=True)
        assert (await call(one)).output == "5"
        assert one.methods == ["SendStreamingMessage", "SubscribeToTask", "GetTask", "GetTask"]


async def test_a_stream_of_mere_states_leaves_the_rest_to_a_look() -> None:
    """As the streams of fasta2a: the results are in its storage only."""

    def answer(asked: Asked) -> Json:
        if asked.method == "GetTask":
            return task("TASK_STATE_COMPLETED", "5")
        return Stream([{"task": task("TASK_STATE_SUBMITTED", history=[said("ROLE_USER", "x")])}, DONE])

    async with scripted(answer) as one:
        one.card = card_1_0(one.url + "/", streaming=True)
        assert (await call(one)).output == "5"
        assert one.methods == ["SendStreamingMessage", "GetTask"]


async def test_a_stream_that_breaks_before_it_begins_may_have_been_heard() -> None:
    result, _, methods = await streamed([], end="break")
    assert (result.code, methods) == ("unknown", ["SendStreamingMessage"])


async def test_bad_events_are_passed_over_and_errors_end_the_call() -> None:
    result, _, _ = await streamed([WORKING, b"data: {oops\n\n", b": keep-alive\n\n", piece("5"), DONE])
    assert result.output == "5"
    result, _, _ = await streamed([Error(-32603, "broken")])
    assert "broken" in result.output


async def test_a_stream_that_drips_does_not_stretch_the_deadline() -> None:
    async def drip() -> Json:
        await anyio.sleep(0.02)
        return told("TASK_STATE_WORKING", "still at it")

    async with scripted(lambda asked: Stream([WORKING, *[drip] * 1000])) as one:
        one.card = card_1_0(one.url + "/", streaming=True)
        begun = asyncio.get_running_loop().time()
        result = await call(one, timeout=0.4)
        assert asyncio.get_running_loop().time() - begun < 1.0
    assert (result.code, result.metadata["state"]) == ("timeout", "working")


async def test_rest_streams_are_understood_and_their_errors_too() -> None:
    card: Json = {"binding": "HTTP+JSON", "streaming": True}
    async with scripted(lambda asked: Stream([WORKING, piece("5"), DONE], rpc=False)) as one:
        one.card = card_1_0(one.url + "/", **card)
        assert (await call(one)).output == "5"
        assert one.methods == ["POST /message:stream"]
        error = {"error": {"code": 400, "message": "no", "details": [{"reason": "UNSUPPORTED_OPERATION"}]}}
        one.handler = lambda asked: http(400, "application/json", json.dumps(error).encode())
        assert "no" in (await call(one)).output


async def test_a_rest_subscription_that_wants_post_gets_it() -> None:
    def answer(asked: Asked) -> Json:
        match asked.method:
            case "POST /message:stream":
                return Stream([WORKING], rpc=False)
            case "GET /tasks/t1:subscribe":
                return http(405, "text/plain", b"")
            case "POST /tasks/t1:subscribe":
                return Stream([{"task": task("TASK_STATE_COMPLETED", "5")}], rpc=False)
            case _:
                return task("completed", "5")

    async with scripted(answer) as one:
        one.card = card_1_0(one.url + "/", binding="HTTP+JSON", streaming=True)
        assert (await call(one)).output == "5"
        assert one.methods[:3] == ["POST /message:stream", "GET /tasks/t1:subscribe", "POST /tasks/t1:subscribe"]


async def test_a_stream_is_noticed_at_once() -> None:
    sent = 0.0

    async def late() -> Json:
        nonlocal sent
        await anyio.sleep(0.1)
        sent = asyncio.get_running_loop().time()
        return DONE

    gaps: list[float] = []
    for _ in range(5):
        async with scripted(lambda asked: Stream([WORKING, piece("5"), late])) as one:
            one.card = card_1_0(one.url + "/", streaming=True)
            await call(one)
            gaps.append(asyncio.get_running_loop().time() - sent)
    assert statistics.median(gaps) < 0.02


# hostile


async def test_an_answer_larger_than_its_bound_is_not_read() -> None:
    def answer(asked: Asked) -> Json:
        return http(200, "application/json", b" " * (9 * 1024 * 1024))

    async with scripted(answer) as one:
        result = await call(one)
    assert result.is_error
    assert "more than" in result.output


async def test_endless_pieces_end_the_call() -> None:
    big = piece("x" * 1_000_000, append=True)
    result, _, methods = await streamed([WORKING, *[big] * 20])
    assert "larger than" in result.output
    assert methods == ["SendStreamingMessage", "CancelTask"]


async def test_data_that_nests_without_end_is_left_out() -> None:
    deep: Json = 1
    for _ in range(150):
        deep = [deep]
    parts = [{"kind": "data", "data": {"d": deep}}, {"kind": "text", "text": "5"}]
    async with scripted(lambda asked: task("completed", artifacts=[{"parts": parts}])) as one:
        result = await call(one)
    assert result.output == "5"
    assert "nests deeper" in result.metadata["left_out"][0]


async def test_what_people_read_of_an_agent_holds_no_hidden_characters() -> None:
    message = {"role": "agent", "parts": [{"kind": "text", "text": "no\u202equota\x1b[31m"}]}
    async with scripted(lambda asked: {"id": "t1", "status": {"state": "failed", "message": message}}) as one:
        result = await call(one)
    assert result.output == "A2A task t1 failed: noquota[31m"
