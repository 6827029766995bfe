"""The agent's session: what it says, and its patience with hosts."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anykit.wire.a2e import (
    A2EError,
    AgentEvent,
    AgentSession,
    EncodeError,
    EventFor,
    HandshakeResult,
    HostLimits,
    HostRequest,
    HostSession,
    LineReader,
    Pong,
    ProtocolError,
    Push,
    Reply,
    Request,
    ToolCallRequest,
    ToolCallResponse,
    ToolkitListResponse,
    ToolListResponse,
    ToolResult,
)
from anykit.wire.a2e.messages.env import EnvCloseRequest, EnvCloseResponse
from anykit.wire.a2e.messages.mcp import MCPRootsListResponse


def agent(**options: Any) -> AgentSession:
    numbers = count(1)
    return AgentSession(new_id=lambda: f"a{next(numbers)}", agent_id="probe", **options)


def hear(session: AgentSession, *messages: dict[str, Any] | bytes) -> list[AgentEvent]:
    lines = [message if isinstance(message, bytes) else json.dumps(message).encode() for message in messages]
    return [event for line in lines for event in session.receive(line, 9.0)]


def said(session: AgentSession) -> list[dict[str, Any]]:
    return [json.loads(line) for line in session.take()]


def greeting(req_id: str, **fields: Any) -> dict[str, Any]:
    return {"type": "handshake/resp", "req_id": req_id, "session_id": "s9", "max_parallel": 4, "ok": True, **fields}


def welcomed(*capabilities: str) -> AgentSession:
    session = agent()
    req_id = session.handshake(1.0)
    hear(session, greeting(req_id, accepted_caps=[{"capability": name} for name in capabilities or ("tools",)]))
    session.take()
    return session


def result(**fields: Any) -> dict[str, Any]:
    return {"success": True, "tool_name": "t", "duration_ms": 1, **fields}


# -- what it says ------------------------------------------------------------------------------------------------------


def test_a_handshake_asks_by_the_names_of_the_wire() -> None:
    session = agent(capabilities=("skills", "tools", "procs"), token="s3cret")
    assert session.handshake(2.5) == "a1"
    assert session.take() == [
        b'{"type":"handshake/req","id":"a1","version":"1.0","ts":2.5,"agent_id":"probe",'
        b'"agent_caps":["skill","tools","proc"],"auth_token":"s3cret"}'
    ]
    assert session.take() == []
    assert "s3cret" not in repr(vars(session)["_pending"])


def test_requests_carry_the_session_and_every_key() -> None:
    session = welcomed()
    session.configure_toolkit("fs", {"root_dir": "/x"}, 2.0)
    session.list_tools(2.0, query="q", tags=["a"], kind="k", include_deferred=True)
    session.list_toolkits(2.0, tags=["a"], kind="k")
    session.ping(2.0)
    session.shutdown(2.0, timeout=3)
    configure, tools, toolkits, ping, shutdown = said(session)
    assert (configure["session_id"], configure["config"]) == ("s9", {"root_dir": "/x"})
    assert tools["filter_tags"] == toolkits["filter_tags"] == ["a"]
    assert tools["filter_kind"] == toolkits["filter_kind"] == "k"
    assert (tools["query"], tools["include_deferred"]) == ("q", True)
    assert ping["type"] == "ping"
    assert (shutdown["type"], shutdown["timeout"]) == ("shutdown", 3)
    assert len(session.pending) == 4


def test_a_time_limit_is_a_key_only_where_there_is_one() -> None:
    session = welcomed()
    session.call_tool("t", {}, 2.0)
    session.call_tool("t", {"x": 1}, 2.0, timeout=5, streaming=False, correlation_id="turn")
    free, limited = said(session)
    assert "timeout" not in free
    assert free["streaming"] is True
    assert (limited["timeout"], limited["streaming"], limited["correlation_id"]) == (5, False, "turn")


def test_what_cannot_be_sent_is_not_waited_for() -> None:
    session = welcomed()
    with pytest.raises(EncodeError, match="/arguments/x"):
        session.call_tool("t", {"x": float("nan")}, 2.0)
    assert session.take() == []
    assert not session.pending


# -- the handshake -----------------------------------------------------------------------------------------------------


def test_a_handshake_tells_what_is_usable() -> None:
    session = agent()
    req_id = session.handshake(1.0)
    [event] = hear(session, greeting(req_id, accepted_caps=[{"capability": "tools", "metadata": {"name": "x"}}]))
    assert event == HandshakeResult(req_id, True, "", "s9", {"tools": {"name": "x"}}, 4)
    assert session.handshake_result == event
    assert (session.session_id, dict(session.capabilities)) == ("s9", {"tools": {"name": "x"}})


def test_capabilities_told_twice_switched_off_or_unknown_are_one_none_or_nothing() -> None:
    session = agent()
    caps: list[Any] = [
        {"capability": "tools", "enabled": False, "metadata": {"reason": "no"}},
        {"capability": "tools", "metadata": {"name": "second"}},
        {"capability": "tools", "metadata": {"name": "third"}},
        {"capability": "memory", "enabled": False, "metadata": {"reason": "not loaded"}},
        {"capability": "teleport"},
        {"capability": "skills", "metadata": None},
        "toolkits",
        7,
    ]
    [event] = hear(session, greeting(session.handshake(1.0), accepted_caps=caps))
    assert isinstance(event, HandshakeResult)
    assert event.capabilities == {"tools": {"name": "second"}, "skill": {}, "toolkits": {}}


def test_a_refusal_is_told_and_keeps_an_older_session() -> None:
    session = welcomed("tools")
    req_id = session.handshake(2.0)
    [event] = hear(session, greeting(req_id, ok=False, reason="version_mismatch", version="2.0", session_id=""))
    assert isinstance(event, HandshakeResult)
    assert (event.ok, event.reason) == (False, "version_mismatch")
    assert session.session_id == "s9"


def test_another_session_id_at_each_handshake_is_followed() -> None:
    session = welcomed()
    hear(session, greeting(session.handshake(2.0), session_id="s10", accepted_caps=[]))
    assert (session.session_id, dict(session.capabilities)) == ("s10", {})


# -- replies, events, pushes -------------------------------------------------------------------------------------------


def test_replies_come_in_any_order_and_once() -> None:
    session = welcomed()
    one, two = session.call_tool("t", {}, 2.0), session.ping(2.0)
    reply = {"type": "tool/call/resp", "req_id": one, "data": result(data=5)}
    first, second = hear(session, {"type": "pong", "req_id": two}, reply, reply)
    assert isinstance(first, Reply)
    assert isinstance(first.message, Pong)
    assert isinstance(second, Reply)
    assert second.req_id == one
    assert isinstance(second.message, ToolCallResponse)
    assert second.message.data.data == 5
    assert session.strays == 1
    assert not session.pending


def test_an_error_answers_its_request_in_our_spelling() -> None:
    session = welcomed()
    one, two = session.list_tools(2.0), session.list_toolkits(2.0)
    first, second = hear(
        session,
        {"type": "error", "req_id": one, "code": "UNAUTHORIZED"},
        {"type": "error", "req_id": two, "code": "parse_error", "message": "Unknown type toolkit/list/req"},
    )
    assert isinstance(first, Reply)
    assert isinstance(second, Reply)
    assert isinstance(first.message, A2EError)
    assert isinstance(second.message, A2EError)
    assert (first.message.code, second.message.code) == ("unauthorized", "invalid_message")


def test_an_error_about_nothing_of_ours_is_told_and_a_late_one_counted() -> None:
    session = welcomed()
    late = session.list_tools(2.0)
    session.forget(late)
    events = hear(
        session,
        {"type": "error", "req_id": "", "code": "PARSE_ERROR", "message": "what?"},
        {"type": "error", "req_id": late, "code": "timeout"},
    )
    assert events == [ProtocolError("", "parse_error", "what?")]
    assert session.strays == 1


def test_events_belong_to_their_request_until_its_reply() -> None:
    session = welcomed()
    one, two = session.call_tool("t", {}, 2.0), session.call_tool("t", {}, 2.0)
    event = {"type": "tool/event", "kind": "progress", "data": {"pct": 1}, "seq": 1795987663224}
    events = hear(
        session,
        {**event, "req_id": two},
        {**event, "req_id": one},
        {"type": "tool/call/resp", "req_id": one, "data": result()},
        {**event, "req_id": one},
        {**event, "req_id": "nobody"},
    )
    assert [(type(each).__name__, getattr(each, "req_id", "")) for each in events] == [
        ("EventFor", two),
        ("EventFor", one),
        ("Reply", one),
    ]
    assert isinstance(events[0], EventFor)
    assert events[0].event.data == {"pct": 1}
    assert session.strays == 2


def test_pushes_are_told() -> None:
    session = welcomed()
    events = hear(
        session,
        {"type": "invoke/event", "kind": "status", "req_id": "", "data": {"toolkit": "fs"}},
        {"type": "tool/event", "kind": "log"},
        {"type": "mcp/server/push", "server_id": "m"},
        {"type": "env/state_push", "episode_id": "e", "step_id": 1, "event_type": "status"},
    )
    assert [type(event) for event in events] == [Push] * 4


def test_a_host_may_ask_and_is_answered() -> None:
    session = welcomed("mcp")
    [event] = hear(session, {"type": "mcp/roots/list/req", "id": "q", "server_id": "m"})
    assert isinstance(event, HostRequest)
    session.answer(MCPRootsListResponse(req_id="q", roots=[{"uri": "file:///x"}]), 3.0)
    [answer] = said(session)
    assert (answer["type"], answer["req_id"], answer["ts"]) == ("mcp/root/list/resp", "q", 3.0)


def test_a_reply_that_names_no_request_is_matched_where_only_one_can_be_meant() -> None:
    session = welcomed("env")
    req_id = session.request(EnvCloseRequest(episode_id="e"), 2.0)
    [event] = hear(session, {"type": "env/close/resp", "closed": True})
    assert isinstance(event, Reply)
    assert event.req_id == req_id
    assert isinstance(event.message, EnvCloseResponse)
    session.request(EnvCloseRequest(episode_id="e"), 2.0)
    session.request(EnvCloseRequest(episode_id="f"), 2.0)
    assert hear(session, {"type": "env/close/resp", "closed": True}) == []
    assert session.strays == 1


# -- what cannot be read -----------------------------------------------------------------------------------------------


def test_b030_what_a_host_prints_beside_its_messages_is_skipped() -> None:
    """espressif/esp-idf#19087, UKGovernmentBEIS/inspect_ai#3290: banners, blank lines, numbers, log lines on stdout."""
    session = welcomed()
    req_id = session.ping(2.0)
    noise = b'A2E_SUBPROCESS_HOST_READY\n\n42\n[db] connected\r\n   \nnull\n"x"\n[1,2]\n{"jsonrpc":"2.0","id":1}\n\xff\xfe junk\n'
    pong = b'{"type":"pong","req_id":"%s"}\n' % req_id.encode()
    events = [event for line in LineReader().feed(noise + pong) for event in session.receive(line, 3.0)]
    assert [type(event) for event in events] == [Reply]
    assert session.noise == 8


def test_a_reply_behind_the_reference_hosts_prefix_is_read() -> None:
    session = welcomed()
    req_id = session.ping(2.0)
    [event] = hear(session, b'line: {"type":"pong","req_id":"%s"}' % req_id.encode())
    assert isinstance(event, Reply)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'{"type":"tool/call/resp","req_id":"REQ","data":{"success":true,"data":NaN}}', "parse_error"),
        (b'{"type":"tool/call/resp","req_id":"REQ","data":{"success":true,"data":"\\ud83d"}}', "parse_error"),
        (b'{"type":"tool/call/resp","req_id":"REQ","data":{"success":true,"data":"\xff"}}', "parse_error"),
        (b'{"type":"tool/call/resp","req_id":"REQ","data":{"success":tr', "parse_error"),
        (b'{"type":"tool/call/resp","req_id":"REQ","data":' + b"[" * 100_000, "parse_error"),
        (b'{"type":"tool/call/resp","req_id":"REQ","data":{"success":"maybe"}}', "schema_violation"),
        (b'{"type":"tool/call/answer","req_id":"REQ"}', "invalid_message"),
        (b'{"type":"tool/call/resp","req_id":"REQ","version":"2.0"}', "version_mismatch"),
    ],
)
def test_a_reply_that_cannot_be_read_fails_its_request_and_no_other(line: bytes, code: str) -> None:
    session = welcomed()
    other, req_id = session.ping(2.0), session.call_tool("t", {}, 2.0)
    [event] = hear(session, line.replace(b"REQ", req_id.encode()))
    assert isinstance(event, ProtocolError)
    assert (event.req_id, event.code) == (req_id, code)
    assert set(session.pending) == {other}


def test_b040_a_reply_that_is_too_long_fails_its_request_at_once() -> None:
    """QwenLM/qwen-code#9298: one clear error, and the next line is read."""
    session = welcomed()
    req_id, other = session.call_tool("t", {}, 2.0), session.ping(2.0)
    reader = LineReader(1000)
    long = {"type": "tool/call/resp", "id": "i", "version": "1.0", "ts": 1.0, "req_id": req_id, "data": "x" * 2000}
    pong = {"type": "pong", "req_id": other}
    lines = reader.feed(b"".join(json.dumps(message).encode() + b"\n" for message in (long, pong)))
    first, second = [event for line in lines for event in session.receive(line, 3.0)]
    assert first == ProtocolError(req_id, "parse_error", "a message of more than 1000 bytes")
    assert isinstance(second, Reply)


def test_one_tool_that_cannot_be_read_is_lost_alone() -> None:
    session = welcomed("tools", "toolkits")
    tools, toolkits = session.list_tools(2.0), session.list_toolkits(2.0)
    good, bad = {"name": "a", "description": "d", "x-new": 1}, {"name": 7, "description": "s3cret"}
    lost, listed = hear(session, {"type": "tool/list/resp", "req_id": tools, "tools": [bad, good]})
    assert isinstance(lost, ProtocolError)
    assert lost.message.startswith("tools/0 was left out")
    assert "s3cret" not in lost.message
    assert isinstance(listed, Reply)
    assert isinstance(listed.message, ToolListResponse)
    assert [tool.name for tool in listed.message.tools] == ["a"]
    lost, listed = hear(session, {"type": "toolkit/list/resp", "req_id": toolkits, "toolkits": [{"name": "x"}]})
    assert isinstance(lost, ProtocolError)
    assert isinstance(listed, Reply)
    assert isinstance(listed.message, ToolkitListResponse)
    assert listed.message.toolkits == []


def test_a_configuration_in_a_request_that_comes_back_is_not_told() -> None:
    session = welcomed()
    assert hear(session, {"type": "toolkit/configure/req", "id": "x", "config": {"key": "s3cret"}}) == []
    assert session.strays == 1


@given(st.lists(st.one_of(st.binary(max_size=40), st.binary(max_size=20).map(lambda tail: b'{"type":"pong"' + tail))))
def test_whatever_a_host_sends_the_session_lives(lines: list[bytes]) -> None:
    session = welcomed()
    req_id = session.ping(2.0)
    hear(session, *lines)
    session.handshake(2.0)
    if req_id in session.pending:
        [event] = hear(session, {"type": "pong", "req_id": req_id})
        assert isinstance(event, Reply)


# -- both ends ---------------------------------------------------------------------------------------------------------


def test_an_agent_and_a_host_of_ours_understand_each_other() -> None:
    numbers = count(1)
    host = HostSession(
        session_id="s1",
        capabilities={"tools": {"name": "t"}},
        new_id=lambda: f"h{next(numbers)}",
        now=0.0,
        token="pä55",
        limits=HostLimits(max_parallel=2),
    )
    session = agent(token="pä55")

    def to_host() -> list[Any]:
        return [event for line in session.take() for event in host.receive(line, 2.0)]

    def to_agent() -> list[Any]:
        return [event for line in host.take() for event in session.receive(line, 2.0)]

    session.handshake(1.0)
    to_host()
    [greeted] = to_agent()
    assert (greeted.ok, greeted.session_id, greeted.max_parallel) == (True, "s1", 2)
    assert dict(greeted.capabilities) == {"tools": {"name": "t"}}
    arguments = {"t": "a\u2028b😀", "n": 2**70, "deep": [[[{"x": None}]]]}
    req_id = session.call_tool("t", arguments, 1.0, timeout=5)
    [request] = to_host()
    assert isinstance(request, Request)
    assert isinstance(request.message, ToolCallRequest)
    assert (request.message.arguments, request.timeout, request.streaming) == (arguments, 5.0, True)
    host.event(request.req_id, "progress", {"pct": 50}, 2.0)
    done = ToolResult(success=True, tool_name="t", data=arguments, duration_ms=1)
    host.reply(request.req_id, ToolCallResponse(data=done), 2.0)
    progress, reply = to_agent()
    assert isinstance(progress, EventFor)
    assert (progress.req_id, progress.event.seq) == (req_id, 0)
    assert reply.message.data.data == arguments
    session.shutdown(1.0)
    assert [type(event).__name__ for event in to_host()] == ["ShutdownRequested", "Drained"]


def test_a_host_that_welcomes_us_in_another_version_is_none_of_ours() -> None:
    session = agent()
    req_id = session.handshake(1.0)
    [event] = hear(session, greeting(req_id, version="2.0", accepted_caps=[{"capability": "tools"}]))
    assert isinstance(event, HandshakeResult)
    assert (event.ok, event.reason) == (False, "version_mismatch")


def test_a_result_may_lack_what_can_be_done_without() -> None:
    session = welcomed()
    req_id = session.call_tool("echo", {}, 1.0)
    [event] = hear(session, {"type": "tool/call/resp", "req_id": req_id, "data": {"success": True, "data": 7}})
    assert isinstance(event, Reply)
    assert isinstance(event.message, ToolCallResponse)
    assert (event.message.data.success, event.message.data.data, event.message.data.duration_ms) == (True, 7, 0)


def test_a_listed_tool_may_lack_its_description() -> None:
    session = welcomed()
    req_id = session.list_tools(1.0)
    [event] = hear(session, {"type": "tool/list/resp", "req_id": req_id, "tools": [{"name": "bare"}]})
    assert isinstance(event, Reply)
    assert isinstance(event.message, ToolListResponse)
    assert [(one.name, one.description) for one in event.message.tools] == [("bare", "")]
