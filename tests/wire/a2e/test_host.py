"""The host's session where a talk cannot go: bounds, secrets, a peer's own types, and whatever bytes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date
from itertools import count
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anykit.wire.a2e import (
    MESSAGE_TYPES,
    A2EEvent,
    A2EMessage,
    Drained,
    HostEvent,
    HostLimits,
    HostSession,
    LineReader,
    Request,
    ShutdownRequested,
    ToolCallResponse,
    ToolEvent,
    ToolResult,
    WireType,
)

HANDSHAKE = b'{"type":"handshake/req","id":"hs","agent_caps":["tools","toolkits"]}'


def session(
    *,
    limits: HostLimits | None = None,
    token: str | None = None,
    types: Mapping[str, WireType] = MESSAGE_TYPES,
) -> HostSession:
    numbers = count(1)
    return HostSession(
        session_id="s1",
        capabilities={"tools": {}, "toolkits": {}},
        new_id=lambda: f"h{next(numbers)}",
        now=0.0,
        token=token,
        limits=limits,
        types=types,
    )


def opened(limits: HostLimits | None = None, types: Mapping[str, WireType] = MESSAGE_TYPES) -> HostSession:
    host = session(limits=limits, types=types)
    host.receive(HANDSHAKE, 1.0)
    host.take()
    return host


def call(req_id: str, arguments: Any = None, **fields: Any) -> bytes:
    message: dict[str, Any] = {
        "type": "tool/call/req",
        "id": req_id,
        "tool_name": "t",
        "arguments": arguments or {},
        **fields,
    }
    return json.dumps(message).encode()


def result(data: Any = None) -> ToolCallResponse:
    return ToolCallResponse(data=ToolResult(success=True, tool_name="t", data=data, duration_ms=1), created_at=1.0)


def written(host: HostSession) -> list[dict[str, Any]]:
    return [json.loads(line) for line in host.take()]


def requests(events: list[HostEvent]) -> list[str]:
    return [event.req_id for event in events if isinstance(event, Request)]


def test_a_line_that_is_too_long_is_answered_with_its_id() -> None:
    host = opened()
    reader = LineReader(100)
    for line in reader.feed(call("big", {"x": "y" * 200}) + b"\n" + b'{"type":"ping","id":"p"}\n'):
        host.receive(line, 1.0)
    error, pong = written(host)
    assert (error["code"], error["req_id"], error["detail"]) == ("parse_error", "big", {"limit": 100})
    assert pong["req_id"] == "p"


@pytest.mark.parametrize(
    "line",
    [b'{"type":"x","data":{"id":"inner"},"id":"' + b"y" * 99, b"yyyy", b'{"id":"cut' + b"y" * 100, b'["id","x"]' * 20],
)
def test_no_id_is_guessed_from_the_inside_of_a_line_that_is_too_long(line: bytes) -> None:
    host = opened()
    [oversized] = LineReader(len(line) - 1).feed(line + b"\n")
    host.receive(oversized, 1.0)
    assert [error["req_id"] for error in written(host)] == [""]


def test_64_requests_run_and_256_wait_by_default() -> None:
    host = opened()
    started = [host.receive(call(f"c{number}"), 1.0) for number in range(64 + 256)]
    assert sum(map(len, started)) == host.running == 64
    assert host.waiting == 256
    assert host.take() == []
    host.receive(call("one too many"), 1.0)
    [error] = written(host)
    assert (error["req_id"], error["code"], error["retryable"]) == ("one too many", "runtime_error", True)
    order: list[str] = []
    for number in range(320):
        order += requests(host.reply(f"c{number}", result(), 2.0))
    assert order == [f"c{number}" for number in range(64, 320)]
    assert (host.running, host.waiting) == (0, 0)
    assert len(host.take()) == 320


def test_the_bytes_of_open_requests_are_bounded_but_one_is_always_taken() -> None:
    host = opened(HostLimits(open_bytes=1000))
    assert requests(host.receive(call("huge", {"x": "y" * 2000}), 1.0)) == ["huge"]
    assert host.receive(call("more"), 1.0) == []
    [error] = written(host)
    assert (error["req_id"], error["retryable"], error["detail"]) == ("more", True, {"reason": "busy"})
    host.reply("huge", result(), 1.0)
    assert requests(host.receive(call("more"), 1.0)) == ["more"]


def test_answers_are_remembered_within_their_bytes_and_never_run_again() -> None:
    host = opened(HostLimits(replay_bytes=1000))
    for req_id in ("a", "b"):
        host.receive(call(req_id), 1.0)
        host.reply(req_id, result("x" * 700), 1.0)
    first, second = host.take()
    assert host.receive(call("b"), 2.0) == []
    assert host.take() == [second]
    assert host.receive(call("a"), 2.0) == []
    [error] = written(host)
    assert (error["req_id"], error["code"], error["retryable"]) == ("a", "runtime_error", False)
    assert error["detail"] == {"reason": "duplicate"}
    assert b'"req_id":"a"' in first


def test_a_long_session_keeps_a_bounded_memory_of_its_answers() -> None:
    host = opened(HostLimits(replay_ids=10, replay_bytes=2000))
    for number in range(500):
        assert host.receive(call(f"c{number}"), 1.0)
        host.reply(f"c{number}", result("x" * (number % 90)), 1.0)
    host.take()
    assert host.receive(call("c499"), 1.0) == []
    assert requests(host.receive(call("c480"), 1.0)) == ["c480"]


def test_an_id_of_any_length_is_not_kept() -> None:
    host = opened()
    host.receive(call("x" * 1025), 1.0)
    [error] = written(host)
    assert (error["code"], error["detail"]["field"], error["req_id"]) == ("schema_violation", "id", "")
    assert requests(host.receive(call("x" * 1024), 1.0)) == ["x" * 1024]


def test_an_empty_id_is_as_good_as_none() -> None:
    host = opened()
    first, second = host.receive(call(""), 1.0), host.receive(call(""), 1.0)
    names = requests(first + second)
    assert len(set(names)) == 2
    assert all(names)
    [request] = first
    assert isinstance(request, Request)
    assert isinstance(request.message, A2EMessage)
    assert (request.message.id, request.message.ts) == (request.req_id, 1.0)


def test_a_token_is_in_no_answer_and_no_event() -> None:
    host = session(token="s3cret-of-the-host")
    wrong = b'{"type":"handshake/req","id":"h","agent_caps":["tools"],"auth_token":"s3cret-of-the-agent"}'
    told = repr(host.receive(wrong, 1.0)) + repr([line.decode() for line in host.take()]) + repr(host)
    right = wrong.replace(b"of-the-agent", b"of-the-host")
    told += repr(host.receive(right, 1.0)) + repr([line.decode() for line in host.take()])
    assert host.handshaken
    assert "s3cret" not in told


def test_a_token_may_be_any_text() -> None:
    host = session(token="pässwörd😀")
    host.receive(json.dumps({"type": "handshake/req", "auth_token": "pässwörd😀"}).encode(), 1.0)
    assert host.handshaken


def test_a_configuration_is_in_no_error_and_no_repr() -> None:
    host = opened()
    request = {"type": "toolkit/configure/req", "id": "c", "toolkit_name": 7, "config": {"api_key": "s3cret"}}
    assert host.receive(json.dumps(request).encode(), 1.0) == []
    assert host.receive(b'{"type":"toolkit/configure/req","id":"d","config":{"api_key":"s3cret"', 1.0) == []
    assert host.receive(b'{"type":"toolkit/configure/req","id":"e","config":{"api_key":"s3cret","n":NaN}}', 1.0) == []
    events = host.receive(b'{"type":"toolkit/configure/req","id":"f","config":{"api_key":"s3cret"}}', 1.0)
    assert requests(events) == ["f"]
    lines = host.take()
    assert len(lines) == 3
    assert "s3cret" not in repr(events) + repr(lines)


def test_a_capability_that_does_not_exist_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="'teleport' is no capability of A2E"):
        HostSession(session_id="s", capabilities={"teleport": {}}, new_id=lambda: "i", now=0.0)


def test_events_that_are_collected_are_bounded() -> None:
    host = opened(HostLimits(collected_events=3))
    host.receive(call("c"), 1.0)
    assert [host.event("c", "progress", {"pct": pct}, 1.0) for pct in range(5)] == [True, True, True, False, False]
    host.reply("c", result(), 1.0)
    [reply] = written(host)
    assert [event["data"]["pct"] for event in reply["data"]["events"]] == [0, 1, 2]


def test_an_event_that_cannot_be_sent_is_lost_alone() -> None:
    host = opened()
    host.receive(call("c", streaming=True), 1.0)
    assert host.event("c", "progress", {"pct": math.nan}, 1.0) is False
    assert host.event("c", "progress", {"pct": 1}, 1.0) is True
    assert host.push("status", {"x": "\ud83d"}, 1.0) is False
    assert host.push("status", {}, 1.0) is True
    assert [line["seq"] for line in written(host)] == [0, 0]


def test_an_event_that_a_plugin_made_gets_its_number_and_its_request() -> None:
    host = opened()
    host.receive(call("c", streaming=True), 1.0)
    assert host.emit("c", ToolEvent(id="mine", ts=7.0, kind="log", req_id="other", data={}, seq=99), 1.0)
    assert host.push_message(A2EEvent(kind="status", req_id="c", seq=99), 2.0)
    event, push = written(host)
    assert (event["id"], event["ts"], event["req_id"], event["seq"]) == ("mine", 7.0, "c", 0)
    assert (push["type"], push["req_id"], push["seq"], push["ts"]) == ("invoke/event", "", 0, 2.0)


def test_a_reply_that_is_too_long_becomes_an_error() -> None:
    host = opened(HostLimits(max_line=500))
    host.receive(call("c"), 1.0)
    host.reply("c", result("x" * 500), 1.0)
    [error] = written(host)
    assert error["code"] == "runtime_error"
    assert "more than the 500 of one message" in error["message"]


@pytest.mark.parametrize("text", ["caf\udcff", "x" * 5000])
def test_an_error_whose_text_cannot_be_sent_is_still_an_answer(text: str) -> None:
    host = opened(HostLimits(max_line=2000))
    host.receive(call("c"), 1.0)
    host.fail("c", "tool_error", text, 1.0, detail={"x": math.nan})
    [error] = written(host)
    assert (error["req_id"], error["code"], error["detail"]) == ("c", "tool_error", {})
    assert error["message"].startswith(text[:3])


def test_a_plugins_own_message_type_is_one_more_type() -> None:
    class GreetRequest(A2EMessage):  # in no module that could be imported
        type: str = "acme/greet/req"
        name: str = ""

    kind = WireType.of("acme/greet/req", GreetRequest, capability="tools")
    host = opened(types=MappingProxyType({**MESSAGE_TYPES, kind.name: kind}))
    [event] = host.receive(b'{"type":"acme/greet/req","id":"g","name":"Ada"}', 1.0)
    assert isinstance(event, Request)
    assert isinstance(event.message, GreetRequest)
    assert event.message.name == "Ada"
    assert opened().receive(b'{"type":"acme/greet/req","id":"g"}', 1.0) == []


@pytest.mark.parametrize("seconds", [10**400, -(10**400), 0, 5], ids=["vast", "vast and negative", "0", "5"])
def test_a_time_limit_of_any_size_is_a_number_of_seconds(seconds: int) -> None:
    host = opened()
    [request] = host.receive(call("c", timeout=seconds), 1.0)
    assert isinstance(request, Request)
    assert request.timeout is not None
    assert request.timeout == min(max(0, seconds), 365 * 24 * 3600)
    [asked] = host.receive(json.dumps({"type": "shutdown", "timeout": seconds}).encode(), 1.0)
    assert isinstance(asked, ShutdownRequested)
    assert asked.timeout == min(max(0, seconds), 365 * 24 * 3600)


@pytest.mark.parametrize("ts", ["1" * 400, "-" + "9" * 4000, "1e308", "0"], ids=["400", "4000", "1e308", "0"])
def test_a_time_of_any_size_has_an_answer(ts: str) -> None:
    host = opened()
    host.receive(b'{"type":"ping","id":"p","ts":' + ts.encode() + b"}", 1.0)
    [answer] = written(host)
    assert answer["req_id"] == "p"


def test_what_a_host_says_of_a_capability_can_always_be_sent() -> None:
    host = HostSession(
        session_id="s", capabilities={"tools": {"since": date(2026, 11, 30), "x": {1}}}, new_id=lambda: "i", now=0.0
    )
    host.receive(b'{"type":"handshake/req","agent_id":"' + b"x" * 9999 + b'"}', 1.0)
    host.receive(HANDSHAKE, 1.0)
    assert len(host.agent_id) <= 200
    assert written(host)[-1]["accepted_caps"][0]["metadata"] == {"since": "2026-11-30", "x": [1]}


def test_ending_with_nothing_open_is_quiet() -> None:
    host = opened()
    host.end(1.0)
    assert host.take() == []
    assert host.ending
    assert host.receive(call("c"), 1.0) == []
    assert [error["detail"] for error in written(host)] == [{"reason": "shutting_down"}]


def test_a_drained_session_says_so_once_its_last_reply_is_written() -> None:
    host = opened()
    host.receive(call("c"), 1.0)
    host.receive(b'{"type":"shutdown"}', 1.0)
    assert host.reply("c", result(), 1.0) == [Drained()]


def test_every_type_of_an_unserved_capability_is_told_that_it_is_missing() -> None:
    host = opened()
    for name, kind in MESSAGE_TYPES.items():
        if kind.capability not in (None, "tools", "toolkits"):
            host.receive(json.dumps({"type": name, "id": name}).encode(), 1.0)
            [error] = written(host)
            assert (error["code"], error["capability_name"]) == ("capability_missing", kind.capability)
            assert error["req_id"] == name


def test_a_clock_that_goes_back_breaks_nothing() -> None:
    host = opened(HostLimits(rate=1.0, burst=1))
    host.receive(b'{"type":"ping","id":"p"}', -5.0)
    host.receive(b'{"type":"ping","id":"q"}', 1e9)
    assert [line["type"] for line in written(host)][-1] == "pong"


# -- whatever comes ----------------------------------------------------------------------------------------------------

PIECES = (
    '{"type":"ping","id":"p"}',
    '{"type":"tool/call/req","id":"a","tool_name":"t","arguments":{"x":[1,"é"]},"streaming":true}',
    '{"type":"toolkit/configure/req","id":"b","session_id":"s1","toolkit_name":"f","config":{}}',
    '{"type":"toolkit/list/resp","id":"c","toolkits":[{"name":"x","tools":[]}]}',
    HANDSHAKE.decode(),
    '{"type":"SUBAGENT_SPAWN_REQ","agent":{"name":"n","model":"m"}}',
    '{"type":"error","code":"x","req_id":"a"}',
)


@given(
    st.lists(
        st.one_of(
            st.sampled_from([piece.encode() for piece in PIECES]),
            st.binary(max_size=40),
            st.tuples(st.sampled_from(PIECES), st.integers(0, 90), st.binary(max_size=3)).map(
                lambda parts: parts[0].encode()[: parts[1]] + parts[2] + parts[0].encode()[parts[1] :]
            ),
        ),
        max_size=8,
    )
)
def test_whatever_an_agent_sends_the_session_lives(lines: list[bytes]) -> None:
    host = opened()
    for line in lines:
        for event in host.receive(line, 1.0):
            if isinstance(event, Request):
                host.event(event.req_id, "progress", {}, 1.0)
                host.reply(event.req_id, result(), 1.0)
    for answer in host.take():
        assert answer.isascii()
        assert json.loads(answer)["type"]
    host.receive(b'{"type":"ping","id":"are you there"}', 2.0)
    assert written(host)[-1]["req_id"] == "are you there"


ANSWERED = sorted(
    kind.name
    for kind in MESSAGE_TYPES.values()
    if kind.kind == "request" and kind.sender == "agent" and kind.name != "shutdown"
)


@given(
    st.sampled_from(ANSWERED),
    st.dictionaries(
        st.sampled_from(["id", "session_id", "version", "a2e", "arguments", "config", "timeout", "ts", "agent_caps"]),
        st.one_of(st.none(), st.booleans(), st.integers(), st.just("s1"), st.just([]), st.just({}), st.just(["tools"])),
    ),
)
def test_every_request_has_exactly_one_answer(name: str, fields: dict[str, Any]) -> None:
    host = opened()
    events = host.receive(json.dumps({"type": name, **fields}).encode(), 1.0)
    answers = host.take()
    for req_id in requests(events):
        assert not answers
        host.reply(req_id, result(), 1.0)
        answers = host.take()
    assert len(answers) == 1
