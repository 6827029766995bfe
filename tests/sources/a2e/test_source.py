"""A remote host as a provider: catalogue, calls, pushes, absence."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from anykit.capabilities import (
    CapabilityContext,
    CapabilityProvider,
    Connected,
    Event,
    ExecutionFailed,
    ImagePart,
    InvalidInput,
    InvocableRequest,
    InvocableResult,
    Progress,
    Resume,
    Suspension,
    Unavailable,
)
from anykit.capabilities.outcomes import Answer
from anykit.sources import Backoff
from anykit.sources.a2e import A2ESource, A2ETool
from anykit.testing.scripted import ScriptedHost, called, event, refused, scripted_host

pytestmark = pytest.mark.anyio

QUICK = Backoff(0.01, 0.02)

KIT = {"name": "files", "description": "", "tools": ["b"], "schema": {"type": "object", "required": ["root"]}}


@pytest.fixture
async def host() -> AsyncGenerator[ScriptedHost]:
    tools = [{"name": "a", "description": "A."}, {"name": "b", "description": "B.", "idempotent": True}]
    async with scripted_host(tools=tools) as made:
        yield made


@pytest.fixture
async def source(host: ScriptedHost) -> AsyncGenerator[A2ESource]:
    made = A2ESource(host.connect, name="remote", backoff=QUICK)
    yield made
    await made.close()


async def until(source: A2ESource, status: str) -> None:
    await when(source, lambda: source.state.status == status)


async def when(source: A2ESource, true: Any) -> None:
    changed = asyncio.Event()
    unsubscribe = source.subscribe(changed.set)
    try:
        with anyio.fail_after(5):
            while not true():
                changed.clear()
                await changed.wait()
    finally:
        unsubscribe()


def names(source: A2ESource) -> list[str]:
    return [one.spec.name for one in source.invocables()]


def tool(source: A2ESource, name: str) -> A2ETool:
    [found] = [one for one in source.invocables() if one.spec.name == name]
    assert isinstance(found, A2ETool)
    return found


async def call(found: A2ETool, context: CapabilityContext | None = None, **arguments: Any) -> Any:
    result = await found.invoke(InvocableRequest(input=arguments, call_id="1"), context or CapabilityContext())
    assert isinstance(result, InvocableResult)
    return result.structured


async def test_it_is_a_provider_with_a_life(source: A2ESource) -> None:
    assert isinstance(source, CapabilityProvider)
    assert isinstance(source, Connected)
    assert source.state.status == "connecting"
    assert source.invocables() == ()
    await source.start()
    await source.start()
    await until(source, "ready")
    assert names(source) == ["a", "b"]
    assert (source.resources(), source.prompts()) == ((), ())
    await source.close()
    await source.close()
    assert source.state.status == "closed"


async def test_starting_returns_at_once_whatever_the_host_does(host: ScriptedHost, source: A2ESource) -> None:
    host.answers["handshake/req"] = lambda request: None
    with anyio.fail_after(1):
        await source.start()
    assert source.state.status == "connecting"


async def test_a_call_goes_there_and_back(host: ScriptedHost, source: A2ESource) -> None:
    await source.start()
    await until(source, "ready")
    assert await call(tool(source, "a"), x=2**70) == {"x": 2**70}
    [sent] = host.of_type("tool/call/req")
    assert sent["tool_name"] == "a"
    assert "timeout" not in sent
    assert tool(source, "a").preflight(InvocableRequest(input={}, call_id="1"))[0].kind == "peer_call"


async def test_the_time_that_is_left_goes_along(host: ScriptedHost, source: A2ESource) -> None:
    await source.start()
    await until(source, "ready")
    deadline = asyncio.get_running_loop().time() + 7.5
    await call(tool(source, "a"), CapabilityContext(deadline=deadline))
    assert host.of_type("tool/call/req")[0]["timeout"] == 8


async def test_events_reach_the_caller_and_artifacts_the_result(host: ScriptedHost, source: A2ESource) -> None:
    picture = {"name": "content-0", "mime": "image/png", "chunk": base64.b64encode(b"png").decode(), "final": True}
    host.answers["tool/call/req"] = lambda request: [
        event(request, "progress", {"pct": 50}),
        event(request, "artifact", picture, 1),
        called(request, "shown", summary="shown"),
    ]
    await source.start()
    await until(source, "ready")
    heard: list[Event] = []
    result = await tool(source, "a").invoke(
        InvocableRequest(input={}, call_id="1"), CapabilityContext(emit=heard.append)
    )
    assert heard == [Progress(50.0, 100.0)]
    assert isinstance(result, InvocableResult)
    assert result.content == (ImagePart(data=b"png"),)
    assert result.text == "shown"


@pytest.mark.parametrize(
    ("reply", "error", "text"),
    [
        (refused("unknown_tool", "no a"), ExecutionFailed, "no a"),
        (refused("schema_violation", "bad"), InvalidInput, "bad"),
        (refused("timeout", "too slow"), ExecutionFailed, "too slow"),
    ],
)
async def test_errors_are_the_layers(
    host: ScriptedHost, source: A2ESource, reply: dict[str, Any], error: type[Exception], text: str
) -> None:
    host.answers["tool/call/req"] = lambda request: reply
    await source.start()
    await until(source, "ready")
    with pytest.raises(error, match=text):
        await call(tool(source, "a"))


async def test_a_question_is_a_suspension_whose_answer_goes_back_to_the_host(
    host: ScriptedHost, source: A2ESource
) -> None:
    host.answers["tool/call/req"] = lambda request: called(
        request, {"id": "s1", "kind": "input", "prompt": "?"}, success=False, error_code="suspended"
    )
    host.answers["anykit/answer/req"] = lambda request: {
        **called(request, [request["suspension_id"], request["ok"], request["data"]]),
        "type": "anykit/answer/resp",
    }
    await source.start()
    await until(source, "ready")
    suspension = await tool(source, "a").invoke(InvocableRequest(input={}, call_id="1"), CapabilityContext())
    assert isinstance(suspension, Suspension)
    resumed = InvocableRequest(input={}, call_id="2", resume=Resume(suspension.state, Answer(True, {"n": 1})))
    result = await tool(source, "a").invoke(resumed, CapabilityContext())
    assert isinstance(result, InvocableResult)
    assert result.structured == ["s1", True, {"n": 1}]


# the catalogue


async def test_b021_one_malformed_tool_costs_only_itself_and_is_reported(
    host: ScriptedHost, source: A2ESource, caplog: pytest.LogCaptureFixture
) -> None:
    """anthropics/claude-code#88049: one malformed definition drops all tools."""
    host.tools = [
        {"name": "good", "description": "d", "input_schema": {"type": "object"}},
        {"name": "b1", "description": "d", "input_schema": {"type": "string"}},
        {"name": "b2", "description": "d", "input_schema": {"type": "int"}},
        {
            "name": "b3",
            "description": "d",
            "input_schema": {"type": "object", "properties": {"k": {"type": "string"}, "required": ["k"]}},
        },
        {"description": "d", "input_schema": {"type": "object"}},
        "not-an-object",
        {"name": "good", "description": "again"},
        {"name": "b4", "description": "d", "input_schema": "not-an-object"},
    ]
    await source.start()
    await until(source, "ready")
    assert names(source) == ["good"]
    assert await call(tool(source, "good"), a=1) == {"a": 1}
    assert {one.name for one in source.left_out} >= {"b1", "b2", "b3", "good"}
    assert len(source.left_out) == 7
    assert set(source.state.detail["left_out"]) == {one.name for one in source.left_out}
    assert "remote: tool b1 is left out: its input schema describes no object but 'string'" in caplog.text


async def test_b035_a_push_brings_the_new_catalogue_whole(host: ScriptedHost, source: A2ESource) -> None:
    """smart-mcp-proxy/mcpproxy-go#207: a changed tool set is not noticed, removed tools stay callable."""
    await source.start()
    await until(source, "ready")
    required = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    host.tools = [{"name": "b", "description": "B.", "input_schema": required}, {"name": "c", "description": "C."}]
    snapshots: list[list[str]] = []
    source.subscribe(lambda: snapshots.append(names(source)))
    for _ in range(2):
        await host.push({"source": "toolkit", "toolkit": "files", "status": "ok", "configured": True})
    await when(source, lambda: names(source) == ["b", "c"])
    assert tool(source, "b").input_schema == required
    assert await call(tool(source, "c")) == {}
    assert all(snapshot in (["a", "b"], ["b", "c"]) for snapshot in snapshots)


async def test_b035_however_many_pushes_come_lists_are_few(host: ScriptedHost, source: A2ESource) -> None:
    """smart-mcp-proxy/mcpproxy-go#207: a bounded number of lists, and none is missed while one is on its way."""
    await source.start()
    await until(source, "ready")
    gate = asyncio.Event()

    async def slowly(request: dict[str, Any]) -> object:
        listed = list(host.tools)
        await gate.wait()
        return {"type": "tool/list/resp", "tools": listed}

    host.answers["tool/list/req"] = slowly
    await host.push({"source": "toolkit"})
    with anyio.fail_after(2):
        await host.heard("tool/list/req", 2)
    host.tools = [{"name": "late", "description": "Came while a list was on its way."}]
    for _ in range(500):
        await host.push({"source": "toolkit"})
    gate.set()
    await when(source, lambda: names(source) == ["late"])
    assert len(host.of_type("tool/list/req")) <= 4


async def test_a_list_that_fails_leaves_the_last_one(host: ScriptedHost, source: A2ESource) -> None:
    await source.start()
    await until(source, "ready")
    host.answers["tool/list/req"] = lambda request: refused("runtime_error", "not now")
    changed = asyncio.Event()
    source.subscribe(changed.set)
    await host.push({"source": "toolkit"})
    with anyio.fail_after(2):
        await changed.wait()
    assert names(source) == ["a", "b"]
    assert source.state.status == "ready"


async def test_a_tool_that_did_not_change_stays_the_same_object(host: ScriptedHost, source: A2ESource) -> None:
    await source.start()
    await until(source, "ready")
    before = tool(source, "a")
    host.tools = [*host.tools, {"name": "c", "description": "C."}]
    await host.push({"source": "toolkit"})
    await when(source, lambda: "c" in names(source))
    assert tool(source, "a") is before


# absence


async def test_the_last_known_catalogue_is_kept_while_the_host_is_away(host: ScriptedHost, source: A2ESource) -> None:
    await source.start()
    await until(source, "ready")
    host.refuse = ConnectionRefusedError(111, "Connection refused")
    await host.drop()
    await until(source, "failed")
    assert names(source) == ["a", "b"]
    assert source.state.reason == "connection refused"
    with pytest.raises(Unavailable, match="connection refused") as caught:
        await call(tool(source, "a"))
    assert not caught.value.sent
    host.refuse = None
    host.tools = [{"name": "new", "description": "N."}]
    await until(source, "ready")
    assert names(source) == ["new"]


async def test_b023_a_lost_call_is_unknown_and_only_an_idempotent_one_is_sent_again(
    host: ScriptedHost, source: A2ESource
) -> None:
    """zavora-ai/adk-rust#504: no silent replay of what may have run."""
    ran: list[str] = []

    async def answer(request: dict[str, Any]) -> object:
        ran.append(request["tool_name"])
        if ran.count(request["tool_name"]) == 1:
            await host.drop()
            return None
        return called(request, "again")

    host.answers["tool/call/req"] = answer
    await source.start()
    await until(source, "ready")
    with anyio.fail_after(5):
        with pytest.raises(Unavailable) as caught:
            await call(tool(source, "a"))
        assert caught.value.sent
        assert await call(tool(source, "b")) == "again"
    assert ran == ["a", "b", "b"]


async def test_b020_a_dead_source_says_why_and_costs_nobody_else(host: ScriptedHost) -> None:
    """google/adk-python#5025: one dead server takes the others down."""
    good = A2ESource(host.connect, name="good", backoff=QUICK)
    bad = [
        A2ESource("/nonexistent/program", name="missing"),
        A2ESource("http://127.0.0.1:9", name="refused"),
    ]
    try:
        with anyio.fail_after(8):
            for one in (*bad, good):
                await one.start()
            await until(good, "ready")
            for one in bad:
                await until(one, "failed")
        assert await call(tool(good, "a")) == {}
        assert "command not found" in bad[0].state.reason
        assert "127.0.0.1:9" in bad[1].state.reason
        assert all(one.state.retry_at is not None and one.client.open().starts <= 5 for one in bad)
    finally:
        for one in (*bad, good):
            await one.close()


# toolkits


async def test_toolkits_are_ensured_at_each_connect(host: ScriptedHost) -> None:
    host.toolkits = [KIT]
    source = A2ESource(host.connect, toolkits={"files": {"root": "/data"}}, backoff=QUICK)
    try:
        await source.start()
        await until(source, "ready")
        await host.drop()
        await when(source, lambda: len(host.of_type("toolkit/configure/req")) == 2 and source.state.status == "ready")
    finally:
        await source.close()
    assert [one["config"] for one in host.of_type("toolkit/configure/req")] == [{"root": "/data"}] * 2
    assert host.of_type("handshake/req")[0]["agent_caps"] == ["tools", "toolkits"]


async def test_a_toolkit_that_cannot_be_configured_costs_itself_only(host: ScriptedHost) -> None:
    host.toolkits = [KIT]
    wrong = {"files": {"other": "x"}, "nothing": {}}
    source = A2ESource(host.connect, toolkits=wrong, backoff=QUICK)
    try:
        await source.start()
        await until(source, "ready")
        assert names(source) == ["a", "b"]
        reasons = source.state.detail["toolkits"]
        assert "root" in reasons["files"]
        assert "unknown toolkit" in reasons["nothing"]
        assert source.state.reason.startswith("toolkit files is not configured: ")
        assert host.of_type("toolkit/configure/req") == []
    finally:
        await source.close()


async def test_b083_each_source_sends_its_own_token_only() -> None:
    """cbcoutinho/nextcloud-mcp-server#261: one source's credential is sent to another."""
    async with scripted_host() as one, scripted_host() as two:
        sources = [A2ESource(one.connect, token="KEY-A"), A2ESource(two.connect, token="KEY-B")]
        for source in sources:
            await source.start()
        for source in sources:
            await until(source, "ready")
            await source.close()
        assert [m["auth_token"] for m in one.of_type("handshake/req")] == ["KEY-A"]
        assert [m["auth_token"] for m in two.of_type("handshake/req")] == ["KEY-B"]
        assert "KEY-B" not in str(one.received)
        assert "KEY-A" not in str(two.received)
        assert "KEY" not in repr(sources)
