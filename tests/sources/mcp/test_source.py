"""A server as a provider, over both transports and in both eras: the catalogue, calls, results, what is said meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from anykit.capabilities import (
    AudioPart,
    CapabilityContext,
    CapabilityProvider,
    Completing,
    Connected,
    EmbeddedResource,
    ExecutionFailed,
    ImagePart,
    InvalidInput,
    InvocableResult,
    Log,
    Progress,
    PromptProvider,
    ResourceLink,
    ResourceProvider,
    Subscribable,
    Templated,
    TextPart,
    Unavailable,
)
from anykit.sources.mcp import McpPrompts, McpResources, McpServer, McpSource
from anykit.sources.mcp.providers import McpTool
from anykit.transports import Command

from .at_hand import (
    OBJECT,
    Hearing,
    call,
    child,
    eventually,
    invoke,
    names,
    python,
    ready,
    source,
    text,
    tool,
    until,
    when,
)
from .peers.script import Out, Peer
from .web import Web, serving

pytestmark = pytest.mark.anyio

Serve = Callable[[Peer], AbstractAsyncContextManager[tuple[McpSource, Web]]]

WAYS = [("legacy", False), ("legacy", True), ("modern", False), ("modern", True)]


@pytest.fixture(params=WAYS, ids=["legacy-json", "legacy-sse", "modern-json", "modern-sse"])
def connected(request: pytest.FixtureRequest) -> Serve:
    """A source connected to a peer over HTTP, each way in turn."""
    era, sse = request.param

    @asynccontextmanager
    async def serve(peer: Peer) -> AsyncGenerator[tuple[McpSource, Web]]:
        peer.script["eras"] = [era]
        async with serving(peer, sse=sse) as web, ready(McpServer("peer", url=web.url)) as made:
            yield made, web

    return serve


# life


async def test_it_is_a_provider_with_a_life() -> None:
    async with source(McpServer("peer", child()), start=False) as made:
        assert isinstance(made, CapabilityProvider)
        assert isinstance(made, Connected)
        assert (made.state.status, made.state.reason) == ("connecting", "not started")
        assert (made.invocables(), made.resources(), made.prompts()) == ((), (), ())
        await made.start()
        await made.start()
        await until(made, "ready")
        assert names(made) == ["echo"]
        assert made.state.detail["protocol"] == "2026-07-28"
        await made.close()
        await made.close()
        assert made.state.status == "closed"
        assert made.pid is None


async def test_importing_the_source_does_not_import_the_sdk() -> None:
    program = "import sys, anykit.sources.mcp; print('mcp' in sys.modules, 'mcp_types' in sys.modules)"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert out.split() == [b"False", b"False"]


@pytest.mark.parametrize(
    ("era", "protocol"), [("auto", "2026-07-28"), ("modern", "2026-07-28"), ("legacy", "2025-11-25")]
)
async def test_the_era_can_be_pinned(era: Any, protocol: str) -> None:
    async with ready(McpServer("peer", child(), era=era)) as made:
        assert made.state.detail["protocol"] == protocol
        assert await call(made, a=1) == {"a": 1}


@pytest.mark.parametrize(("pinned", "spoken"), [("modern", "legacy"), ("legacy", "modern")])
async def test_a_pinned_era_that_the_server_does_not_speak_fails_with_its_reason(pinned: Any, spoken: str) -> None:
    async with source(McpServer("peer", child({"eras": [spoken]}), era=pinned)) as made:
        await until(made, "failed")
        assert "peer refuses" in made.state.reason


async def test_a_server_that_ignores_what_it_does_not_know_is_asked_the_old_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Mute(Peer):
        def handle(self, message: dict[str, Any], out: Out) -> dict[str, Any] | None:
            if message.get("method") == "server/discover":
                return None
            return super().handle(message, out)

    async with serving(Mute({"eras": ["legacy"]})) as web:
        async with source(McpServer("peer", url=web.url)) as made:
            with anyio.fail_after(6):
                await until(made, "ready")
            assert made.state.detail["protocol"] == "2025-11-25"


# the catalogue

TOOL = {
    "name": "weather",
    "title": "Weather",
    "description": "What the weather is.",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "outputSchema": {"type": "object", "properties": {"t": {"type": "number"}}, "required": ["t"]},
    "annotations": {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": True,
        "title": "Other",
    },
    "_meta": {"x": 1},
}


async def test_a_tool_keeps_all_that_its_server_says(connected: Serve) -> None:
    async with connected(Peer({"tools": [TOOL]})) as (made, _):
        spec = tool(made, "weather").spec
        assert spec.description == "What the weather is."
        assert spec.input_schema == TOOL["inputSchema"]
        assert spec.output_schema == TOOL["outputSchema"]
        assert spec.annotations is not None
        assert spec.annotations.model_dump() == {
            "title": "Weather",
            "read_only": True,
            "destructive": False,
            "idempotent": True,
            "open_world": True,
        }
        assert spec.metadata["mcp"] == {"server": "peer", "tool": "weather", "_meta": {"x": 1}}


async def test_b021_one_bad_tool_costs_only_itself(connected: Serve) -> None:
    """anthropics/claude-code#88049: one tool whose inputSchema is no object drops all of them, without a word."""
    tools = [
        {"name": "good", "inputSchema": {"type": "object"}},
        {"name": "b1", "inputSchema": {"type": "string"}},
        {"name": "b2", "inputSchema": {"type": "int"}},
        {"name": "b3", "inputSchema": {"type": "object", "properties": {"k": {"type": "string"}, "required": ["k"]}}},
        {"inputSchema": {"type": "object"}},
        "not-an-object",
        {"name": "b4", "inputSchema": ["type"]},
        {"name": "b5\u202e", "inputSchema": {"type": "object"}},
        {"name": "good", "description": "again", "inputSchema": {"type": "object"}},
        {"name": "bare"},
        {"name": "odd", "inputSchema": {"properties": None}, "description": 7, "annotations": "x", "outputSchema": 3},
    ]
    async with connected(Peer({"tools": tools})) as (made, _):
        assert names(made) == ["good", "bare", "odd"]
        assert await call(made, "good", a=1) == {"a": 1}
        told = {one.name: one.reason for one in made.left_out}
        assert set(told) == {"b1", "b2", "b3", "a tool", "#5", "b4", "b5\u202e", "good", "odd"}
        assert "describes no object but 'string'" in told["b1"]
        assert "cannot be used" in told["b3"]
        assert "twice" in told["good"]
        assert made.state.detail["left_out"]["tools/b1"] == told["b1"]


async def test_pages_are_read_to_the_end_in_order(connected: Serve) -> None:
    tools = [{"name": f"t{n}", "inputSchema": OBJECT} for n in range(25)]
    async with connected(Peer({"tools": tools, "page": 10})) as (made, _):
        assert names(made) == [f"t{n}" for n in range(25)]


async def test_a_list_that_turns_in_a_circle_is_cut_with_a_report(connected: Serve) -> None:
    class Circle(Peer):
        def answer(self, method: str, params: dict[str, Any], out: Out) -> dict[str, Any] | None:
            answer = super().answer(method, params, out)
            if method == "tools/list" and answer is not None:
                number = int(params.get("cursor") or 0)
                answer["tools"] = [{"name": f"t{number}", "inputSchema": OBJECT}]
                answer["nextCursor"] = str((number + 1) % 3)
            return answer

    async with connected(Circle()) as (made, _):
        assert names(made)[:3] == ["t0", "t1", "t2"]
        assert any("circle" in one.reason for one in made.left_out)


async def test_thousands_of_tools_are_listed() -> None:
    tools: list[dict[str, Any]] = [
        {
            "name": f"tool_{n}",
            "description": "It does what it does.",
            "inputSchema": {"type": "object", "properties": {}},
        }
        for n in range(3000)
    ]
    async with serving(Peer({"tools": tools, "page": 1500})) as web, ready(McpServer("many", url=web.url)) as made:
        assert len(made.invocables()) == 3000
        assert made.left_out == ()


async def test_only_allowed_tools_are_offered() -> None:
    tools = [{"name": name, "inputSchema": OBJECT} for name in ("read_a", "read_b", "write_a")]
    server = McpServer("peer", child({"tools": tools}), allow=("read_*",), deny=("*_b",))
    async with ready(server) as made:
        assert names(made) == ["read_a"]


async def test_b035_a_change_is_listed_anew_as_a_whole(connected: Serve) -> None:
    """smart-mcp-proxy/mcpproxy-go#207: the old list is kept, and removed tools stay callable."""
    peer = Peer({"tools": [{"name": "a", "inputSchema": OBJECT}, {"name": "b", "inputSchema": OBJECT}]})
    async with connected(peer) as (made, web):
        await eventually(lambda: bool(web.streams or web.subscriptions))
        kept = tool(made, "b")
        changed = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        peer.tools = [{"name": "b", "inputSchema": changed}, {"name": "c", "inputSchema": OBJECT}]
        before = len(peer.calls("tools/list"))
        notification = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        await web.push(notification)
        await web.push(notification)
        await when(made, lambda: names(made) == ["b", "c"])
        await web.push(notification)
        assert tool(made, "b").spec.input_schema == changed
        assert tool(made, "b") is not kept
        assert await call(made, "c", a=1) == {"a": 1}
        await eventually(lambda: len(peer.calls("tools/list")) > before)
        assert len(peer.calls("tools/list")) - before <= 3


async def test_b035_a_change_while_a_list_is_under_way_is_listed_once_more(connected: Serve) -> None:
    """livekit/agents#5604: a change that comes while the list is on its way is lost."""
    peer = Peer({"tools": [{"name": "a", "inputSchema": OBJECT}]})
    release = asyncio.Event()
    held: list[dict[str, Any]] = []

    async def before(request: Any, reply: Any) -> bool:
        if request.message.get("method") != "tools/list" or held:
            return False
        held.append(peer.handle(request.message, print) or {})  # what was there when it was asked
        await release.wait()
        await reply.json(held[0])
        return True

    async with connected(peer) as (made, web):
        await eventually(lambda: bool(web.streams or web.subscriptions))
        web.before = before
        notification = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        peer.tools = [{"name": "b", "inputSchema": OBJECT}]
        await web.push(notification)
        await eventually(lambda: bool(held))
        peer.tools = [{"name": "c", "inputSchema": OBJECT}]
        await web.push(notification)
        release.set()
        await when(made, lambda: names(made) == ["c"])


async def test_a_list_that_did_not_change_keeps_its_tools(connected: Serve) -> None:
    peer = Peer()
    async with connected(peer) as (made, web):
        await eventually(lambda: bool(web.streams or web.subscriptions))
        kept = tool(made)
        listed = len(peer.calls("tools/list"))
        await web.push({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        await eventually(lambda: len(peer.calls("tools/list")) > listed)
        assert tool(made) is kept


async def test_the_last_known_catalogue_is_kept_while_the_server_is_away(connected: Serve) -> None:
    resources = [{"uri": "a://1", "name": "one"}]
    async with connected(Peer({"resources": resources, "prompts": [{"name": "p"}]})) as (made, web):
        [provider] = made.resources()
        [prompts] = made.prompts()
        assert [one.id for one in (await provider.list_resources()).items] == ["a://1"]
        assert [one.id for one in (await prompts.list_prompts()).items] == ["p"]
        await web.stop()
        with pytest.raises(Unavailable):
            await call(made)
        await until(made, "failed")
        assert names(made) == ["echo"]
        assert [one.id for one in (await made.resources()[0].list_resources()).items] == ["a://1"]
        assert [one.id for one in (await made.prompts()[0].list_prompts()).items] == ["p"]
        with pytest.raises(Unavailable, match="refused"):
            await provider.read_resource("a://1", CapabilityContext())
        await web.start()


# calls


async def test_b001_the_original_name_goes_on_the_wire(connected: Serve) -> None:
    """modelcontextprotocol#1345: names that MCP allows, and servers use anyway, must reach them unchanged."""
    odd = ["crm.leads.find", "stock/item", "Open Door", "_7day_sum", "2fa_check", "地图", "天气", "!!!"]
    async with connected(Peer({"tools": [{"name": name, "inputSchema": OBJECT} for name in odd]})) as (made, web):
        assert names(made) == odd  # B005: langgenius/dify#22867
        for name in odd:
            assert await call(made, name, a=1) == {"a": 1}
        assert [one["params"]["name"] for one in web.peer.calls("tools/call")] == odd


async def test_b003_equal_names_of_two_servers_go_each_to_its_own() -> None:
    """langchain-ai/langchain-mcp-adapters#605: duplicate tool names are silently overwritten across servers."""
    lookup = [{"name": "lookup", "inputSchema": OBJECT}]
    results: tuple[Any, ...] = (
        {"structuredContent": {"store": "a"}, "content": []},
        {"structuredContent": {"store": "b"}, "content": []},
    )
    async with ready(McpServer("a", child({"tools": lookup, "results": {"lookup": results[0]}}))) as a:
        async with ready(McpServer("b", child({"tools": lookup, "results": {"lookup": results[1]}}))) as b:
            assert await call(a, "lookup") == {"store": "a"}
            assert await call(b, "lookup") == {"store": "b"}


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_b070_numbers_arrive_as_they_were_sent(transport: str) -> None:
    """cline/cline#9589: precision lost when large integers pass through."""
    values = {"id": 9007199254740993, "big": 123456789012345678901234567890, "f": 1.0, "neg": -0.0, "none": None}
    async with serving() as web:
        server = McpServer("peer", child()) if transport == "stdio" else McpServer("peer", url=web.url)
        async with ready(server) as made:
            result = await invoke(tool(made), values)
    assert isinstance(result, InvocableResult)
    assert json.dumps(result.structured, sort_keys=True) == json.dumps(values, sort_keys=True)
    [text] = result.content
    assert isinstance(text, TextPart)
    assert "123456789012345678901234567890" in text.text


@pytest.mark.parametrize("transport", ["stdio", "http", "http-sse"])
async def test_b068_characters_that_end_lines_elsewhere_travel_unchanged(transport: str) -> None:
    """anthropics/claude-agent-sdk-typescript#137: U+2028 in a result breaks the framing."""
    values = {"t": "a\u2028b\u2029c\u0085d\x0be\x0cf", "u": "line1\nline2\r\nline3", "e": "\U0001f600"}
    async with serving(sse=transport == "http-sse") as web:
        server = McpServer("peer", child()) if transport == "stdio" else McpServer("peer", url=web.url)
        async with ready(server) as made:
            assert await call(made, **values) == values


async def test_b071_half_a_character_is_refused_before_it_is_sent(connected: Serve) -> None:
    """MemPalace/mempalace#503: a lone surrogate kills the connection."""
    async with connected(Peer()) as (made, web):
        with pytest.raises(InvalidInput) as raised:
            await call(made, t="\ud83d")
        assert raised.value.errors[0]["path"] == "/t"
        for broken in (float("nan"), float("inf")):
            with pytest.raises(InvalidInput):
                await call(made, t=broken)
        assert web.peer.calls("tools/call") == []
        assert await call(made, t="\U0001f600") == {"t": "\U0001f600"}


async def test_b071_half_a_character_in_an_answer_becomes_a_replacement() -> None:
    """The other direction: whoever waits gets an answer, and the next call works."""

    async def before(request: Any, reply: Any) -> bool:
        if request.message.get("method") != "tools/call" or "half" not in request.message["params"]["arguments"]:
            return False
        body = json.dumps(
            {"jsonrpc": "2.0", "id": request.message["id"], "result": {"resultType": "complete", "content": []}}
        )
        body = body.replace('"content": []', '"content": [{"type": "text", "text": "a\\ud83db"}]')
        await reply.send(200, body.encode(), "application/json")
        return True

    async with serving(before=before) as web, ready(McpServer("peer", url=web.url)) as made:
        result = await invoke(tool(made), {"half": True})
        assert isinstance(result, InvocableResult)
        assert result.content == (TextPart(text="a\ufffdb"),)
        assert await call(made, a=1) == {"a": 1}


async def test_b041_bad_bytes_before_an_answer_are_skipped() -> None:
    """modelcontextprotocol/python-sdk#2873: invalid UTF-8 on stdout ends the session."""
    program = (
        "peer = Peer()\n"
        "out = sys.stdout.buffer\n"
        "for line in sys.stdin:\n"
        "    answer = peer.handle(json.loads(line), print)\n"
        "    out.write(b'\\xff\\xfe garbage\\n')\n"
        "    if answer: out.write(json.dumps(answer).encode() + b'\\r\\n')\n"
        "    out.flush()\n"
    )
    async with ready(McpServer("peer", python(program))) as made:
        assert await call(made, a=1) == {"a": 1}
        assert made.state.detail["noise"] >= 3


@pytest.mark.parametrize("transport", ["stdio", "http", "http-sse"])
async def test_b040_large_answers_arrive_and_too_large_ones_cost_one_call(transport: str) -> None:
    """QwenLM/qwen-code#9298: a result beyond the stream's default limit breaks the connection."""
    sizes = (200_000, 5_000_000, 9_000_000)
    tools = [{"name": str(size), "inputSchema": OBJECT} for size in sizes]

    def text(size: int) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "é" * (size // 2)}]}

    peer = Peer({"tools": tools, "results": {str(size): text(size) for size in sizes}})
    program = (
        "size = lambda t: {'content': [{'type': 'text', 'text': 'é' * (int(t['name']) // 2)}]}\n"
        "peer = Peer({'tools': json.loads(sys.argv[1])})\n"
        "peer.results = {t['name']: size(t) for t in peer.tools}\n"
        "for line in sys.stdin:\n"
        "    answer = peer.handle(json.loads(line), print)\n"
        "    if answer: say(answer)\n"
    )
    command = python(program, json.dumps(tools))
    async with serving(peer, sse=transport == "http-sse") as web:
        server = McpServer("peer", command) if transport == "stdio" else McpServer("peer", url=web.url)
        async with ready(server) as made:
            for size in (200_000, 5_000_000):
                result = await invoke(tool(made, str(size)))
                assert isinstance(result, InvocableResult)
                [part] = result.content
                assert isinstance(part, TextPart)
                assert part.text == "é" * (size // 2)
            with pytest.raises((Unavailable, ExecutionFailed), match=r"too large|more than"):
                await invoke(tool(made, "9000000"))
            assert isinstance(await invoke(tool(made, "200000")), InvocableResult)


async def test_b073_unexpected_traffic_before_the_answer_does_not_confuse_it() -> None:
    """modelcontextprotocol/python-sdk#961 and #192: ids of another type, and messages before the reply."""
    before: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "hello"}},
        {"jsonrpc": "2.0", "method": "notifications/nobody/knows", "params": {}},
        {"jsonrpc": "2.0", "method": "notifications/bad", "params": [1]},
        {"jsonrpc": "2.0", "id": "p1", "method": "ping"},
        {"jsonrpc": "2.0", "id": "u1", "method": "nobody/knows"},
        {"jsonrpc": "2.0", "id": 4711, "result": {}},
    ]
    program = (
        "peer = Peer({'eras': ['legacy']}); before = json.loads(sys.argv[1]); got = []\n"
        "waiting = None\n"
        "for line in sys.stdin:\n"
        "    m = json.loads(line)\n"
        "    if m.get('method') == 'tools/call':\n"
        "        waiting = m\n"
        "        for one in before: say(one)\n"
        "    elif 'method' not in m:\n"
        "        got.append(m)\n"
        "        if len(got) == 2:\n"
        "            answer = peer.handle(waiting, say)\n"
        "            answer['id'] = str(answer['id'])\n"
        "            answer['result']['structuredContent'] = {'got': got}\n"
        "            say(answer)\n"
        "    else:\n"
        "        answer = peer.handle(m, say)\n"
        "        if answer: say(answer)\n"
    )
    command = python(program, json.dumps(before))
    async with ready(McpServer("peer", command)) as made:
        got = {one["id"]: one for one in (await call(made))["got"]}
        assert got["p1"]["result"] == {}
        assert got["u1"]["error"]["code"] == -32601


async def test_progress_and_log_lines_reach_the_one_who_calls(connected: Serve) -> None:
    class Busy(Peer):
        def call(self, name: str, arguments: dict[str, Any], params: dict[str, Any], out: Out) -> dict[str, Any] | None:
            token = params["_meta"]["progressToken"]
            for done in (1, 2):
                step = {"progressToken": token, "progress": done, "total": 2, "message": f"step {done}"}
                out({"jsonrpc": "2.0", "method": "notifications/progress", "params": step})
            said = {"level": "warning", "logger": "db", "data": {"slow": True}}
            out({"jsonrpc": "2.0", "method": "notifications/message", "params": said})
            return super().call(name, arguments, params, out)

    async with connected(Busy()) as (made, _):
        hearing = Hearing()
        await invoke(tool(made), {"a": 1}, context=hearing.context)
        await eventually(lambda: len(hearing.heard) == 3)
        assert hearing.heard[:2] == [Progress(1.0, 2.0, "step 1"), Progress(2.0, 2.0, "step 2")]
        assert Log("warning", 'db: {"slow": true}') in hearing.heard


async def test_log_lines_over_http_belong_to_the_call_on_whose_stream_they_come(connected: Serve) -> None:
    class Busy(Peer):
        def call(self, name: str, arguments: dict[str, Any], params: dict[str, Any], out: Out) -> dict[str, Any] | None:
            said = {"level": "info", "data": arguments["who"]}
            out({"jsonrpc": "2.0", "method": "notifications/message", "params": said})
            return super().call(name, arguments, params, out)

    async with connected(Busy()) as (made, _):
        one, two = Hearing(principal="one"), Hearing(principal="two")
        await asyncio.gather(
            *(invoke(tool(made), {"who": "one"}, context=one.context) for _ in range(5)),
            *(invoke(tool(made), {"who": "two"}, context=two.context) for _ in range(5)),
        )
        await eventually(lambda: len(one.heard) == len(two.heard) == 5)
        assert set(map(str, one.heard)) == {str(Log("info", "one"))}
        assert set(map(str, two.heard)) == {str(Log("info", "two"))}


async def test_a_cancelled_call_stops_the_work_at_the_server(connected: Serve) -> None:
    class Slow(Peer):
        def call(self, name: str, arguments: dict[str, Any], params: dict[str, Any], out: Out) -> dict[str, Any] | None:
            return None if arguments.get("slow") else super().call(name, arguments, params, out)

    async with connected(Slow()) as (made, web):
        waiting = asyncio.create_task(call(made, slow=True))
        await eventually(lambda: bool(web.peer.calls("tools/call")))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        with anyio.fail_after(3):
            await web.cancelled.wait()
        assert await call(made, a=1) == {"a": 1}


async def test_a_cancelled_call_over_stdio_is_told_to_the_server(tmp_path: Path) -> None:
    program = (
        "peer = Peer({'eras': [sys.argv[1]]})\n"
        "for line in sys.stdin:\n"
        "    m = json.loads(line)\n"
        "    if m.get('method') == 'notifications/cancelled': open(sys.argv[2], 'w').write(str(m['params']['requestId']))\n"
        "    if m.get('method') == 'tools/call': open(sys.argv[2] + '.called', 'w').write(str(m['id'])); continue\n"
        "    answer = peer.handle(m, print)\n"
        "    if answer: say(answer)\n"
    )
    for era in ("legacy", "modern"):
        note = tmp_path / era
        command = python(program, era, str(note))
        async with ready(McpServer("peer", command)) as made:
            waiting = asyncio.create_task(call(made))
            called = Path(f"{note}.called")
            await eventually(lambda: bool(text(called)))  # noqa: B023
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await eventually(lambda: bool(text(note)))  # noqa: B023
            assert text(note) == text(called)


async def test_the_servers_own_time_for_a_call_ends_it(connected: Serve) -> None:
    class Slow(Peer):
        def call(self, name: str, arguments: dict[str, Any], params: dict[str, Any], out: Out) -> dict[str, Any] | None:
            return None

    async with connected(Slow()) as (_, web):
        async with ready(McpServer("quick", url=web.url, call_timeout=0.2)) as made:
            with pytest.raises(ExecutionFailed, match=r"did not answer within 0.2 s") as raised:
                await call(made)
            assert raised.value.code == "timeout"
            with anyio.fail_after(3):
                await web.cancelled.wait()


async def test_b023_a_call_whose_answer_was_lost_is_not_made_again(connected: Serve) -> None:
    """zavora-ai/adk-rust#504: after a reconnect the client silently sends the call again."""
    lost = True

    async def before(request: Any, reply: Any) -> bool:
        if not lost or request.message.get("method") != "tools/call":
            return False
        web.peer.seen.append(request.message)
        reply.writer.transport.abort()
        return True

    async with connected(Peer()) as (made, web):
        web.before = before
        with pytest.raises(Unavailable) as raised:
            await call(made, a=1)
        assert raised.value.sent
        assert len(web.peer.calls("tools/call")) == 1
        lost = False
        assert await call(made, a=2) == {"a": 2}
        assert len(web.peer.calls("tools/call")) == 2


@pytest.mark.parametrize(("hint", "runs"), [("idempotentHint", 2), ("readOnlyHint", 2), ("destructiveHint", 1)])
async def test_b023_only_harmless_calls_are_made_again(hint: str, runs: int, tmp_path: Path) -> None:
    """smg-project/smg#2441: replay only what the server marks as harmless."""
    count = tmp_path / "count"
    tools = [{"name": "die", "inputSchema": OBJECT, "annotations": {hint: True}}]
    server = McpServer("peer", child({"tools": tools, "die_on": "die", "count": str(count)}))
    async with ready(server) as made:
        with pytest.raises(Unavailable) as raised:
            await call(made, "die")
        assert raised.value.sent
    assert len(count.read_text()) == runs


async def test_b023_an_ordinary_error_is_no_reason_to_connect_again(connected: Serve) -> None:
    """QwenLM/qwen-code#5381: ordinary tool errors cause reconnects and replays."""
    results = {"echo": {"isError": True, "content": [{"type": "text", "text": "no"}]}}
    async with connected(Peer({"results": results})) as (made, web):
        for _ in range(3):
            with pytest.raises(ExecutionFailed):
                await call(made)
        assert made.starts == 1
        assert len(web.peer.calls("tools/call")) == 3


# results


async def test_b036_structured_content_alone_is_the_result(connected: Serve) -> None:
    """microsoft/agent-framework#3313: structuredContent is not read, so the result is nothing."""
    results: dict[str, Any] = {"echo": {"content": [], "structuredContent": {"id": 7}, "isError": False}}
    async with connected(Peer({"results": results})) as (made, _):
        result = await invoke(tool(made))
        assert isinstance(result, InvocableResult)
        assert (result.structured, result.content, result.text) == ({"id": 7}, (), None)


async def test_b036_a_summary_and_its_data_are_both_kept(connected: Serve) -> None:
    """agno-agi/agno#8653: content is only a summary."""
    results = {"echo": {"content": [{"type": "text", "text": "done"}], "structuredContent": {"rows": [1, 2]}}}
    async with connected(Peer({"results": results})) as (made, _):
        result = await invoke(tool(made))
        assert isinstance(result, InvocableResult)
        assert (result.structured, result.content) == ({"rows": [1, 2]}, (TextPart(text="done"),))


@pytest.mark.parametrize("value", [[1, 2], "text", 7, True])
async def test_structured_content_that_is_no_object_is_kept(connected: Serve, value: Any) -> None:
    async with connected(Peer({"results": {"echo": {"content": [], "structuredContent": value}}})) as (made, _):
        assert await call(made) == value


async def test_b038_an_error_is_its_text_whatever_the_schema_says(connected: Serve) -> None:
    """IBM/mcp-context-forge#4204: the output schema is held against an error, and its text is lost."""
    results = {
        "weather": {
            "isError": True,
            "content": [{"type": "text", "text": "too many seats"}],
            "structuredContent": {"why": "seats"},
        }
    }
    async with connected(Peer({"tools": [TOOL], "results": results})) as (made, _):
        with pytest.raises(ExecutionFailed) as raised:
            await call(made, "weather", city="Rome")
        assert raised.value.message == "too many seats"
        assert raised.value.result is not None
        assert raised.value.result.structured == {"why": "seats"}
        assert raised.value.result.content == (TextPart(text="too many seats"),)


async def test_an_error_without_a_word_still_says_something(connected: Serve) -> None:
    async with connected(Peer({"results": {"echo": {"isError": True, "content": []}}})) as (made, _):
        with pytest.raises(ExecutionFailed, match="echo failed"):
            await call(made)


async def test_every_part_of_a_result_is_kept_in_order(connected: Serve) -> None:
    content = [
        {"type": "text", "text": "t", "annotations": {"audience": ["user"], "priority": 0.5}, "_meta": {"k": 1}},
        {"type": "image", "data": "aGk=", "mimeType": "image/webp"},
        {"type": "audio", "data": "aGk=", "mimeType": "audio/ogg"},
        {"type": "resource_link", "uri": "a://b", "name": "n", "mimeType": "text/x", "size": 3},
        {"type": "resource", "resource": {"uri": "a://t", "text": "in", "mimeType": "text/x"}},
        {"type": "resource", "resource": {"uri": "a://d", "blob": "aGk="}},
    ]
    async with connected(Peer({"results": {"echo": {"content": content}}})) as (made, _):
        result = await invoke(tool(made))
        assert isinstance(result, InvocableResult)
        metadata = {"annotations": {"audience": ["user"], "priority": 0.5}, "_meta": {"k": 1}}
        assert result.content == (
            TextPart(text="t", metadata=metadata),
            ImagePart(data=b"hi", media_type="image/webp"),
            AudioPart(data=b"hi", media_type="audio/ogg"),
            ResourceLink(uri="a://b", name="n", media_type="text/x", size=3),
            EmbeddedResource(uri="a://t", text="in", media_type="text/x"),
            EmbeddedResource(uri="a://d", data=b"hi"),
        )


async def test_a_part_that_nobody_knows_is_left_out_alone_and_told(connected: Serve) -> None:
    content = [
        {"type": "text", "text": "before"},
        {"type": "hologram", "beams": 3},
        {"type": "image", "data": "not base64!", "mimeType": "image/png"},
        "no part",
        {"type": "text", "text": "after"},
    ]
    async with connected(Peer({"results": {"echo": {"content": content, "structuredContent": {"a": 1}}}})) as (made, _):
        result = await invoke(tool(made))
        assert isinstance(result, InvocableResult)
        texts = [part.text for part in result.content if isinstance(part, TextPart)]
        assert (texts[0], texts[-1], len(texts)) == ("before", "after", 5)
        assert "hologram" in texts[1]
        assert result.structured == {"a": 1}
        assert len(result.metadata["left_out"]) == 2


async def test_an_answer_that_is_no_result_is_an_error_of_that_call(connected: Serve) -> None:
    answers: tuple[Any, ...] = (None, [], "x", 7)
    for answer in answers:
        async with connected(Peer()) as (made, web):

            async def before(request: Any, reply: Any, answer: Any = answer) -> bool:
                if request.message.get("method") != "tools/call" or "bad" not in request.message["params"]["arguments"]:
                    return False
                await reply.json({"jsonrpc": "2.0", "id": request.message["id"], "result": answer})
                return True

            web.before = before
            with pytest.raises(ExecutionFailed):
                await call(made, bad=1)
            assert await call(made, a=1) == {"a": 1}


@pytest.mark.parametrize(
    ("error", "said", "kind", "code"),
    [
        ({"code": -32602, "message": "bad city"}, "bad city", InvalidInput, None),
        ({"code": -32601, "message": "no"}, "no", ExecutionFailed, "unsupported"),
        ({"code": -32000, "message": "boom", "data": {"x": 1}}, "boom", ExecutionFailed, "mcp_error"),
        ({"code": "odd", "message": 7}, "7", ExecutionFailed, "mcp_error"),
        ("text", "text", ExecutionFailed, "mcp_error"),
    ],
)
async def test_errors_of_the_protocol_keep_their_words(
    connected: Serve, error: Any, said: str, kind: Any, code: Any
) -> None:
    async with connected(Peer({"results": {"echo": {"error": error}}})) as (made, _):
        with pytest.raises(kind) as raised:
            await call(made)
        assert said in str(raised.value)
        if code is not None:
            assert raised.value.code == code
        assert made.starts == 1


# resources and prompts

RESOURCES = [
    {"uri": "file:///a.txt", "name": "a", "title": "A", "description": "d", "mimeType": "text/plain", "size": 3},
    {"uri": "file:///b", "name": 7},
    {"name": "no uri"},
    "nothing",
]
TEMPLATES = [{"uriTemplate": "file:///{path}", "name": "files", "mimeType": "text/plain"}, {"name": "none"}]
PROMPTS = [
    {"name": "greet", "title": "Greet", "arguments": [{"name": "who", "required": True}, {"name": "how"}, {"x": 1}]},
    {"title": "nameless"},
]


async def test_resources_and_templates_are_a_resource_provider(connected: Serve) -> None:
    async with connected(Peer({"resources": RESOURCES, "templates": TEMPLATES})) as (made, _):
        [provider] = made.resources()
        assert isinstance(provider, ResourceProvider)
        assert isinstance(provider, Templated)
        assert isinstance(provider, Subscribable)
        assert isinstance(provider, Completing)
        page = await provider.list_resources()
        assert page.next_cursor is None
        assert [(one.id, one.name, one.title, one.media_type, one.size) for one in page.items] == [
            ("file:///a.txt", "a", "A", "text/plain", 3),
            ("file:///b", "file:///b", None, None, None),
        ]
        assert [one.uri_template for one in (await provider.list_templates()).items] == ["file:///{path}"]
        read = await provider.read_resource("file:///a.txt", CapabilityContext())
        assert read.id == "file:///a.txt"
        assert read.parts == (TextPart(text="at file:///a.txt"),)
        assert {one.kind for one in made.left_out} == {"resources", "templates"}


async def test_reading_keeps_bytes_and_several_contents(connected: Serve) -> None:
    class Files(Peer):
        def answer(self, method: str, params: dict[str, Any], out: Out) -> dict[str, Any] | None:
            if method != "resources/read":
                return super().answer(method, params, out)
            match params["uri"]:
                case "a://bytes":
                    return {"contents": [{"uri": "a://bytes", "blob": "aGk=", "mimeType": "x/y"}]}
                case "a://folder":
                    return {"contents": [{"uri": "a://1", "text": "1"}, {"uri": "a://2", "blob": "aGk="}, {"no": 1}]}
                case "a://none":
                    return {"error": {"code": -32002, "message": "Resource not found"}}
                case _:
                    return {"error": {"code": -32602, "message": "no such resource"}}

    async with connected(Files({"resources": RESOURCES})) as (made, _):
        [provider] = made.resources()
        [part] = (await provider.read_resource("a://bytes", CapabilityContext())).parts
        assert (part.kind, getattr(part, "data"), getattr(part, "media_type")) == ("blob", b"hi", "x/y")  # noqa: B009
        parts = (await provider.read_resource("a://folder", CapabilityContext())).parts
        assert parts == (EmbeddedResource(uri="a://1", text="1"), EmbeddedResource(uri="a://2", data=b"hi"))
        for uri in ("a://none", "a://other"):
            with pytest.raises(InvalidInput):
                await provider.read_resource(uri, CapabilityContext())


async def test_a_server_without_resources_or_prompts_offers_no_provider(connected: Serve) -> None:
    async with connected(Peer()) as (made, _):
        assert made.resources() == ()
        assert made.prompts() == ()


async def test_prompts_are_a_prompt_provider(connected: Serve) -> None:
    async with connected(Peer({"prompts": PROMPTS})) as (made, _):
        [provider] = made.prompts()
        assert isinstance(provider, PromptProvider)
        assert isinstance(provider, Completing)
        [prompt] = (await provider.list_prompts()).items
        assert [(one.name, one.required) for one in prompt.arguments] == [("who", True), ("how", False)]
        contents = await provider.get_prompt("greet", {"who": "Ann", "how": 2}, CapabilityContext())
        [message] = contents.messages
        assert message.role == "user"
        assert message.content == (TextPart(text='greet {"how": "2", "who": "Ann"}'),)
        with pytest.raises(InvalidInput) as raised:
            await provider.get_prompt("greet", {"how": "x"}, CapabilityContext())
        assert raised.value.errors == [{"path": "/who", "message": "is required"}]
        with pytest.raises(InvalidInput):
            await provider.get_prompt("greet", {"who": ["a"]}, CapabilityContext())


async def test_arguments_are_completed(connected: Serve) -> None:
    async with connected(Peer({"prompts": PROMPTS, "templates": TEMPLATES})) as (made, web):
        [prompts] = made.prompts()
        [resources] = made.resources()
        assert isinstance(prompts, Completing)
        assert isinstance(resources, Completing)
        assert await prompts.complete("greet", "who", "An", CapabilityContext()) == (["An!"], False)
        assert await resources.complete("file:///{path}", "path", "a", CapabilityContext()) == (["a!"], False)
        refs = [one["params"]["ref"] for one in web.peer.calls("completion/complete")]
        assert refs == [
            {"type": "ref/prompt", "name": "greet"},
            {"type": "ref/resource", "uri": "file:///{path}"},
        ]


async def test_a_server_that_completes_nothing_is_not_asked(connected: Serve) -> None:
    async with connected(Peer({"templates": TEMPLATES})) as (made, web):
        [resources] = made.resources()
        assert isinstance(resources, Completing)
        assert await resources.complete("file:///{path}", "path", "a", CapabilityContext()) == ([], False)
        assert web.peer.calls("completion/complete") == []


async def test_a_change_of_resources_and_prompts_is_listed_anew(connected: Serve) -> None:
    peer = Peer({"resources": [{"uri": "a://1", "name": "1"}], "prompts": [{"name": "p"}]})
    async with connected(peer) as (made, web):
        await eventually(lambda: bool(web.streams or web.subscriptions))
        [resources], [prompts] = made.resources(), made.prompts()
        await resources.list_resources()
        await prompts.list_prompts()
        listed = len(peer.calls("resources/list"))
        await resources.list_resources()
        assert len(peer.calls("resources/list")) == listed  # it tells of changes, so what is known is believed
        peer.resources = [{"uri": "a://2", "name": "2"}]
        peer.prompts = [{"name": "q"}]
        for kind in ("resources", "prompts"):
            await web.push({"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"})
        assert isinstance(resources, McpResources)
        assert isinstance(prompts, McpPrompts)
        await eventually(lambda: [one.id for one in resources.resources.known] == ["a://2"])
        await eventually(lambda: [one.id for one in prompts.prompts.known] == ["q"])
        assert [one.id for one in (await resources.list_resources()).items] == ["a://2"]


async def test_whoever_watches_a_resource_is_told_also_after_a_reconnect(connected: Serve) -> None:
    peer = Peer({"resources": [{"uri": "a://1", "name": "1"}, {"uri": "a://2", "name": "2"}]})
    async with connected(peer) as (made, web):
        [provider] = made.resources()
        assert isinstance(provider, Subscribable)
        told: list[str] = []
        stop = await provider.subscribe_resource("a://1", told.append)
        await eventually(lambda: _watches(web, "a://1"))
        await web.push({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "a://1"}})
        await eventually(lambda: "a://1" in told)
        await web.stop()
        with pytest.raises(Unavailable):
            await call(made)
        peer.seen.clear()
        told.clear()
        await web.start()
        await until(made, "ready")
        await eventually(lambda: _watches(web, "a://1"))
        await web.push(
            {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "a://1/below"}}
        )
        await eventually(lambda: "a://1/below" in told)
        stop()
        await eventually(lambda: not _watches(web, "a://1"))


def _watches(web: Web, uri: str) -> bool:
    """Whether a client is subscribed to `uri` now, in either era."""
    if any(uri in one["params"]["notifications"].get("resourceSubscriptions", ()) for _, one in web.subscriptions):
        return True
    said = [
        one["method"]
        for one in web.peer.seen
        if one.get("params", {}).get("uri") == uri and "subscribe" in one["method"]
    ]
    return bool(web.streams) and bool(said) and said[-1] == "resources/subscribe"


# children


async def test_b061_a_child_gets_what_it_needs_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Temikus/denkeeper#219: every child sees all keys of the host process, or too little to start."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    monkeypatch.setenv("LANG", "C.UTF-8")
    program = (
        "peer = Peer({'results': {'echo': {'content': [], 'structuredContent': dict(os.environ)}}})\n"
        "for line in sys.stdin:\n"
        "    answer = peer.handle(json.loads(line), print)\n"
        "    if answer: say(answer)\n"
    )
    command = python(program, env={"MY": "1"})
    async with ready(McpServer("peer", command)) as made:
        seen = await call(made)
    assert {"PATH", "HOME", "LANG", "MY"} <= set(seen)
    assert "OPENAI_API_KEY" not in seen


async def test_b080_arguments_reach_the_child_exactly_and_no_shell(tmp_path: Path) -> None:
    """kardolus/chatgpt-cli#176: command injection through the stdio transport."""
    odd = ["a; touch marker.txt", "$(touch marker.txt)", "`id`", "--name=x y"]
    program = (
        "peer = Peer({'results': {'echo': {'content': [], 'structuredContent': {'argv': sys.argv[1:]}}}})\n"
        "for line in sys.stdin:\n"
        "    answer = peer.handle(json.loads(line), print)\n"
        "    if answer: say(answer)\n"
    )
    command = python(program, *odd, cwd=tmp_path)
    async with ready(McpServer("peer", command)) as made:
        assert await call(made) == {"argv": odd}
    assert not os.listdir(tmp_path)
    async with source(McpServer("bad", Command(("python3 server.py",)))) as made:
        await until(made, "failed")
        assert "command not found" in made.state.reason


async def test_b075_a_schema_that_refers_elsewhere_is_left_out_and_never_fetched(tmp_path: Path) -> None:
    """PrefectHQ/prefect#22252: a remote $ref in a schema is fetched."""
    async with serving() as web:
        elsewhere = f"http://127.0.0.1:{web.port}/s.json"
        schemas = [
            {"type": "object", "properties": {"a": {"$ref": elsewhere}}},
            {"type": "object", "properties": {"a": {"$ref": "file:///etc/hostname"}}},
            {"type": "object", "properties": {"a": {"$ref": "other.json#/A"}}},
            {"type": "object", "$id": f"http://127.0.0.1:{web.port}/base", "properties": {"a": {"$ref": "x"}}},
        ]
        tools = [{"name": f"t{n}", "inputSchema": schema} for n, schema in enumerate(schemas)]
        inside = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "integer"}}}
        tools.append({"name": "inside", "inputSchema": inside})
        async with ready(McpServer("peer", child({"tools": tools}))) as made:
            assert names(made) == ["inside"]
            assert all("unresolvable reference" in one.reason for one in made.left_out)
        assert web.requests == []


async def test_a_tool_is_shown_by_its_name_and_source() -> None:
    async with ready(McpServer("peer", child())) as made:
        found = tool(made)
        assert isinstance(found, McpTool)
        assert repr(found) == "<McpTool echo of peer>"
        assert repr(made) == "<McpSource peer ready>"
