"""The agent's side of A2E, against hosts that answer as they please."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from anykit.capabilities import InvalidInput, Unavailable
from anykit.sources import Backoff
from anykit.sources.a2e import A2EClient, A2ERequestError, opener
from anykit.testing.scripted import ScriptedHost, called, event, refused, scripted_host
from anykit.transports import Command, memory_pair
from anykit.wire.a2e import A2EEvent, ToolResult

pytestmark = pytest.mark.anyio

QUICK = Backoff(0.01, 0.05)

FILES = {
    "name": "files",
    "description": "Files.",
    "tools": ["read_file"],
    "schema": {
        "type": "object",
        "properties": {"root": {"type": "string"}, "key": {"type": "string", "writeOnly": True}},
        "required": ["root"],
        "additionalProperties": False,
    },
}


@pytest.fixture
async def host() -> AsyncGenerator[ScriptedHost]:
    async with scripted_host(tools=[{"name": "echo", "description": "Echoes."}], toolkits=[FILES]) as made:
        yield made


def client_of(host: ScriptedHost, **options: Any) -> A2EClient:
    return A2EClient(host.connect, backoff=QUICK, **options)


# the handshake


async def test_it_shakes_hands_with_its_token_and_its_capabilities(host: ScriptedHost) -> None:
    async with client_of(host, token="s3cret", caps=("tools", "toolkits"), agent_id="me") as client:
        assert client.session_id == "session-1"
        assert client.accepted_caps == ("tools", "toolkits")
        assert client.state.status == "ready"
    [sent] = host.of_type("handshake/req")
    assert (sent["auth_token"], sent["agent_caps"], sent["agent_id"]) == ("s3cret", ["tools", "toolkits"], "me")
    assert "s3cret" not in repr(client)


async def test_it_says_goodbye(host: ScriptedHost) -> None:
    async with client_of(host):
        pass
    with anyio.fail_after(2):
        assert await host.heard("shutdown")


@pytest.mark.parametrize("reason", ["auth_failed", "version_mismatch", "no_caps"])
async def test_a_refused_handshake_is_raised_with_its_reason(host: ScriptedHost, reason: str) -> None:
    host.handshake = {"ok": False, "reason": reason}
    with pytest.raises(A2ERequestError) as caught:
        await client_of(host).__aenter__()
    assert caught.value.code == reason
    assert len(host.connections) == 1, "nothing goes on in the background"


async def test_an_error_instead_of_a_handshake_is_raised(host: ScriptedHost) -> None:
    host.answers["handshake/req"] = lambda request: refused("VERSION_MISMATCH", "I am 2.0")
    with pytest.raises(A2ERequestError, match=r"I am 2\.0") as caught:
        await client_of(host).__aenter__()
    assert caught.value.code == "version_mismatch"


async def test_b025_a_host_that_cannot_be_reached_is_one_ordinary_error(host: ScriptedHost) -> None:
    """openai/openai-agents-python#1288: a failed connect must not poison the next await."""
    host.refuse = ExceptionGroup("unhandled errors", [ConnectionRefusedError(111, "Connection refused")])
    with pytest.raises(Unavailable, match="connection refused"):
        await client_of(host).__aenter__()
    await asyncio.sleep(0)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    assert [one for one in asyncio.all_tasks() if one.get_name().startswith("anykit-")] == []


async def test_a_host_that_never_answers_costs_the_connect_deadline_only(host: ScriptedHost) -> None:
    host.answers["handshake/req"] = lambda request: None
    with anyio.fail_after(2), pytest.raises(Unavailable, match=r"no answer within 0\.05 s"):
        await client_of(host, connect_timeout=0.05).__aenter__()


async def test_a_missing_program_is_named() -> None:
    with pytest.raises(Unavailable, match="command not found: '/nonexistent/host'"):
        await A2EClient("/nonexistent/host --stdio a2e").__aenter__()


async def test_it_must_be_entered() -> None:
    with pytest.raises(Unavailable, match="async with"):
        await A2EClient(["x"]).ping()


async def test_it_may_be_entered_again(host: ScriptedHost) -> None:
    client = client_of(host)
    for number in (1, 2):
        async with client:
            assert client.session_id == f"session-{number}"
    assert client.state.status == "closed"


# tools


async def test_lists_pass_their_filters_on(host: ScriptedHost) -> None:
    async with client_of(host) as client:
        [tool] = await client.tools.list(query="q", kind="k", tags=["a", "b"], include_deferred=True)
    assert tool.name == "echo"
    [sent] = host.of_type("tool/list/req")
    assert (sent["query"], sent["filter_kind"], sent["filter_tags"], sent["include_deferred"]) == (
        "q",
        "k",
        ["a", "b"],
        True,
    )


async def test_one_malformed_tool_is_lost_alone(host: ScriptedHost) -> None:
    host.tools = [{"name": "good", "description": "d"}, {"description": "no name"}, "no object", {"name": 7}]
    async with client_of(host) as client:
        assert [tool.name for tool in await client.tools.list()] == ["good"]


async def test_a_call_gives_the_result_of_the_wire(host: ScriptedHost) -> None:
    big = 2**70 + 1
    async with client_of(host) as client:
        result = await client.tools.call("echo", {"n": big, "text": "a\u2028b"})
    assert isinstance(result, ToolResult)
    assert result.success
    assert result.data == {"n": big, "text": "a\u2028b"}
    [sent] = host.of_type("tool/call/req")
    assert "timeout" not in sent, "its key counts only where a caller said so"
    assert sent["session_id"] == "session-1"
    assert sent["streaming"] is False


async def test_an_unsuccessful_result_is_returned_as_it_is(host: ScriptedHost) -> None:
    host.answers["tool/call/req"] = lambda request: called(request, None, success=False, error="no", error_code="x")
    async with client_of(host) as client:
        result = await client.tools.call("echo")
    assert (result.success, result.error, result.error_code) == (False, "no", "x")


async def test_an_error_of_the_host_is_typed(host: ScriptedHost) -> None:
    detail = {"errors": [{"path": "/a", "message": "missing"}]}
    host.answers["tool/call/req"] = lambda request: refused("SCHEMA_VIOLATION", "bad", detail=detail, retryable=True)
    async with client_of(host) as client:
        with pytest.raises(A2ERequestError) as caught:
            await client.tools.call("echo")
    error = caught.value
    assert (error.code, error.message, error.detail, error.retryable) == ("schema_violation", "bad", detail, True)


async def test_arguments_that_json_does_not_have_are_refused_before_anything_is_sent(host: ScriptedHost) -> None:
    async with client_of(host) as client:
        with pytest.raises(InvalidInput, match="NaN"):
            await client.tools.call("echo", {"x": float("nan")})
        assert (await client.tools.call("echo", {"x": 1})).success
    assert len(host.of_type("tool/call/req")) == 1


async def test_events_of_a_call_are_heard_in_order_before_its_result(host: ScriptedHost) -> None:
    def answer(request: dict[str, Any]) -> list[object]:
        stranger = {**request, "id": "someone else's"}
        return [
            event(request, "progress", {"pct": 1}, 0),
            event(stranger, "progress", {"pct": 50}, 0),
            event(request, "log", {"level": "info", "message": "hi"}, 1),
            called(request, "done"),
        ]

    host.answers["tool/call/req"] = answer
    heard: list[tuple[str, dict[str, Any]]] = []
    async with client_of(host) as client:
        result = await client.tools.call("echo", on_event=lambda said: heard.append((said.kind, said.data)))
    assert heard == [("progress", {"pct": 1}), ("log", {"level": "info", "message": "hi"})]
    assert result.data == "done"
    assert host.of_type("tool/call/req")[0]["streaming"] is True


async def test_events_of_a_call_that_only_streams_are_among_the_clients(host: ScriptedHost) -> None:
    host.answers["tool/call/req"] = lambda request: [event(request, "progress", {"pct": 1}, 0), called(request, 1)]
    async with client_of(host) as client:
        await client.tools.call("echo", streaming=True)
        said = await anext(client.events)
    assert isinstance(said, A2EEvent)
    assert (said.kind, said.data, said.req_id) == ("progress", {"pct": 1}, host.of_type("tool/call/req")[0]["id"])


async def test_a_listener_that_breaks_costs_nothing(host: ScriptedHost, caplog: pytest.LogCaptureFixture) -> None:
    host.answers["tool/call/req"] = lambda request: [event(request, "status", {}), called(request, 1)]

    def broken(said: A2EEvent) -> None:
        raise ValueError("I broke")

    async with client_of(host) as client:
        assert (await client.tools.call("echo", on_event=broken)).data == 1
    assert "whoever listens to a call broke" in caplog.text


# time


async def test_the_time_of_a_call_is_told_and_kept(host: ScriptedHost) -> None:
    host.answers["tool/call/req"] = lambda request: None
    async with client_of(host) as client:
        with anyio.fail_after(3), pytest.raises(A2ERequestError, match="did not answer echo") as caught:
            await client.tools.call("echo", timeout=0.05)
        assert caught.value.code == "timeout"
        assert not caught.value.retryable
        assert (await client.ping()).type == "pong"
    assert host.of_type("tool/call/req")[0]["timeout"] == 1


async def test_a_late_reply_is_nobodys(host: ScriptedHost) -> None:
    gate = asyncio.Event()

    async def answer(request: dict[str, Any]) -> object:
        if request["tool_name"] == "slow":
            await gate.wait()
        return called(request, request["tool_name"])

    host.answers["tool/call/req"] = answer
    async with client_of(host) as client:
        call = asyncio.create_task(client.tools.call("slow"))
        with anyio.fail_after(2):
            await host.heard("tool/call/req")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        gate.set()
        assert (await client.tools.call("quick")).data == "quick"
        assert client.state.status == "ready"
        link = client.open().current
        assert link is not None
        assert not link.session.pending


async def test_no_more_calls_run_at_once_than_the_host_allows(host: ScriptedHost) -> None:
    host.handshake = {"max_parallel": 3}
    running = most = 0

    async def answer(request: dict[str, Any]) -> object:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return called(request, request["arguments"]["n"])

    host.answers["tool/call/req"] = answer
    async with client_of(host) as client:
        results = await asyncio.gather(*(client.tools.call("echo", {"n": n}) for n in range(30)))
    assert [result.data for result in results] == list(range(30))
    assert most <= 3


# noise, junk, size


async def test_b030a_banners_blank_lines_and_numbers_are_skipped_and_counted(host: ScriptedHost) -> None:
    """espressif/esp-idf#19087: a peer prints on its protocol stream."""
    host.greeting = [b"Server started...", b"", b"42", b"[db] connected", b"A2E_SUBPROCESS_HOST_READY"]
    async with client_of(host) as client:
        assert (await client.tools.call("echo", {"a": 1})).data == {"a": 1}
        assert client.noise >= 4


async def test_b041_a_line_of_bad_bytes_is_lost_alone(host: ScriptedHost) -> None:
    """modelcontextprotocol/python-sdk#2873: one line of bad bytes ends the session."""
    host.answers["tool/call/req"] = lambda request: [b"\xff\xfe garbage", b'{"type": "\xff"}', called(request, "fine")]
    async with client_of(host) as client:
        assert (await client.tools.call("echo")).data == "fine"


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"surprise/resp","id":"1","req_id":"x"}',
        b'{"type":"invoke/event","kind":7}',
        b'{"type":"tool/call/resp","req_id":"nobody","data":{}}',
        b'{"type":"error","code":"runtime_error"}',
        b"[1,2,3]",
        b"[" * 100_000,
        b'{"type":"pong","req_id":"nobody","extra":[{"deep":true}]}',
        b'{"type":"handshake/resp","req_id":"nobody","ok":false}',
    ],
)
async def test_what_nobody_asked_for_is_tolerated(host: ScriptedHost, line: bytes) -> None:
    host.answers["tool/call/req"] = lambda request: [line, called(request, "fine")]
    async with client_of(host) as client:
        with anyio.fail_after(5):
            assert (await client.tools.call("echo")).data == "fine"
        assert client.state.status == "ready"


async def test_a_reply_that_cannot_be_read_fails_its_request_at_once(host: ScriptedHost) -> None:
    host.answers["tool/call/req"] = lambda request: {"type": "tool/call/resp", "data": "no result"}
    async with client_of(host) as client:
        with anyio.fail_after(2), pytest.raises(A2ERequestError):
            await client.tools.call("echo")
        assert (await client.ping()).type == "pong"


async def test_the_reply_of_another_kind_is_no_result(host: ScriptedHost) -> None:
    host.answers["tool/call/req"] = lambda request: {"type": "pong", "uptime_seconds": 1}
    async with client_of(host) as client:
        with pytest.raises(A2ERequestError, match="answered with pong"):
            await client.tools.call("echo")


@pytest.mark.parametrize("size", [200_000, 5_000_000])
async def test_b040_large_replies_arrive_whole(host: ScriptedHost, size: int) -> None:
    """QwenLM/qwen-code#9298: a reply larger than a stream's buffer."""
    text = "ä" * (size // 2)
    host.answers["tool/call/req"] = lambda request: called(request, text)
    async with client_of(host) as client:
        assert (await client.tools.call("echo")).data == text


async def test_b040_a_reply_over_the_limit_is_one_clear_error(host: ScriptedHost) -> None:
    """QwenLM/qwen-code#9298, variant: 9 MB where 8 MiB are the limit."""
    host.answers["tool/call/req"] = lambda request: (
        called(request, "x" * 9_000_000) if request["arguments"] else called(request, "fine")
    )
    async with client_of(host) as client:
        with anyio.fail_after(5), pytest.raises((A2ERequestError, Unavailable), match=r"too large|more than"):
            await client.tools.call("echo", {"large": True})
        assert (await client.tools.call("echo")).data == "fine"


async def test_b040_where_nobody_can_say_whose_it_was_the_host_is_connected_to_anew(host: ScriptedHost) -> None:
    """QwenLM/qwen-code#9298, variant: several replies are awaited."""
    host.answers["tool/call/req"] = lambda request: (
        called(request, "x" * 9_000_000) if request["arguments"] == {"n": 1} else None
    )
    async with client_of(host) as client:
        calls = [client.tools.call("echo", {"n": n}) for n in range(3)]
        with anyio.fail_after(5):
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert [type(result) for result in results] == [Unavailable] * 3
            assert all("message too large" in str(result) for result in results)
            assert (await client.ping()).type == "pong"
        assert client.session_id == "session-2"


async def test_a_question_of_the_host_is_declined(host: ScriptedHost) -> None:
    async with client_of(host) as client:
        await host.say({"type": "mcp/sample/req", "id": "q1", "server_id": "s", "messages": []})
        with anyio.fail_after(2):
            [refusal] = await host.heard("error")
        assert (refusal["req_id"], refusal["code"]) == ("q1", "capability_missing")
        assert client.state.status == "ready"


# toolkits


async def test_a_configuration_is_held_against_the_listed_schema_before_anything_is_sent(host: ScriptedHost) -> None:
    async with client_of(host) as client:
        with pytest.raises(InvalidInput) as caught:
            await client.toolkits.configure("files", {"root": 7, "key": "hush-hush", "more": 1})
    assert sorted(fault["path"] for fault in caught.value.errors) == ["/more", "/root"]
    assert "hush-hush" not in str(caught.value)
    assert host.of_type("toolkit/configure/req") == []


async def test_a_valid_configuration_is_sent_as_it_is(host: ScriptedHost) -> None:
    async with client_of(host) as client:
        answer = await client.toolkits.configure("files", {"root": "/data", "key": "k"})
        assert (answer.status, answer.toolkit_name, answer.message) == ("ok", "files", "done")
        definition = await client.toolkits.get("files")
        assert definition is not None
        assert definition.configured
        assert definition.schema == FILES["schema"]
        assert await client.toolkits.get("none") is None
    [sent] = host.of_type("toolkit/configure/req")
    assert sent["config"] == {"root": "/data", "key": "k"}
    assert sent["session_id"] == "session-1"


async def test_an_unknown_toolkit_is_told_with_its_neighbours(host: ScriptedHost) -> None:
    async with client_of(host) as client:
        with pytest.raises(A2ERequestError, match=r"unknown toolkit 'file'; did you mean files\?") as caught:
            await client.toolkits.configure("file", {})
    assert caught.value.code == "runtime_error"
    assert caught.value.detail["toolkit_name"] == "file"


async def test_a_secret_does_not_travel_on_an_insecure_connection(host: ScriptedHost) -> None:
    host.secure = False
    async with client_of(host) as client:
        with pytest.raises(A2ERequestError) as caught:
            await client.toolkits.configure("files", {"root": "/data", "key": "hush-hush"})
        assert caught.value.code == "unauthorized"
        assert caught.value.detail["reason"] == "insecure_transport"
        assert "hush-hush" not in str(caught.value)
        assert host.of_type("toolkit/configure/req") == []
        assert (await client.toolkits.configure("files", {"root": "/data"})).status == "ok"


async def test_a_schema_that_is_none_does_not_hide_a_secret(host: ScriptedHost) -> None:
    host.toolkits = [{**FILES, "schema": {"$ref": "https://example.com/schema.json"}}]
    host.secure = False
    async with client_of(host) as client:
        with pytest.raises(A2ERequestError, match="insecure"):
            await client.toolkits.configure("files", {"anything": "x"})


async def test_ensure_configures_unless_it_is_configured(host: ScriptedHost) -> None:
    async with client_of(host) as client:
        for _ in range(3):
            assert (await client.toolkits.ensure("files", {"root": "/data"})).status == "ok"
    assert len(host.of_type("toolkit/configure/req")) == 1


async def test_a_status_of_error_passes_configure_and_is_raised_by_ensure(host: ScriptedHost) -> None:
    host.answers["toolkit/configure/req"] = lambda request: {
        "type": "toolkit/configure/resp",
        "toolkit_name": "files",
        "status": "error",
        "message": "no such folder",
    }
    async with client_of(host) as client:
        assert (await client.toolkits.configure("files", {"root": "/x"})).status == "error"
        with pytest.raises(A2ERequestError, match="no such folder"):
            await client.toolkits.ensure("files", {"root": "/x"})


# losing the host


async def test_b023_a_host_that_vanishes_in_a_call_leaves_it_unknown_and_nothing_is_repeated(
    host: ScriptedHost,
) -> None:
    """zavora-ai/adk-rust#504: the call ran, the answer was lost; it must not be sent again."""
    counter = 0

    async def answer(request: dict[str, Any]) -> object:
        nonlocal counter
        counter += 1
        if counter == 1:
            await host.drop()
            return None
        return called(request, counter)

    host.answers["tool/call/req"] = answer
    async with client_of(host) as client:
        with anyio.fail_after(5), pytest.raises(Unavailable) as caught:
            await client.tools.call("echo")
        assert caught.value.sent
        assert counter == 1
        with anyio.fail_after(5):
            assert (await client.tools.call("echo")).data == 2
        assert client.session_id == "session-2"


async def test_b023_an_idempotent_call_and_a_list_are_sent_once_more(host: ScriptedHost) -> None:
    """zavora-ai/adk-rust#504: replay only where that does no harm."""

    async def answer(request: dict[str, Any]) -> object:
        if len(host.connections) == 1:
            await host.drop()
            return None
        return called(request, "again")

    host.answers["tool/call/req"] = answer
    async with client_of(host) as client:
        with anyio.fail_after(5):
            assert (await client.tools.call("echo", idempotent=True)).data == "again"
    assert len(host.of_type("tool/call/req")) == 2


async def test_b023_an_ordinary_error_causes_no_reconnect(host: ScriptedHost) -> None:
    """zavora-ai/adk-rust#504, variant: the tool fails."""
    host.answers["tool/call/req"] = lambda request: refused("tool_error", "no", retryable=True)
    async with client_of(host) as client:
        for _ in range(3):
            with pytest.raises(A2ERequestError):
                await client.tools.call("echo")
    assert len(host.connections) == 1
    assert len(host.of_type("tool/call/req")) == 3


async def test_what_was_ensured_is_configured_again_after_a_reconnect(host: ScriptedHost) -> None:
    async with client_of(host) as client:
        config = {"root": "/data", "key": "k"}
        await client.toolkits.ensure("files", config)
        config["root"] = "changed by its owner later"
        await client.toolkits.configure("files", {"root": "/other"})
        await host.drop()
        with anyio.fail_after(5):
            definition = await client.toolkits.get("files")
        assert definition is not None
        assert definition.configured
        assert client.session_id == "session-2"
    assert [one["config"]["root"] for one in host.of_type("toolkit/configure/req")] == ["/data", "/other", "/data"]
    assert len(host.of_type("handshake/req")) == 2


async def test_a_configuration_that_does_not_fit_any_more_costs_itself_only(host: ScriptedHost) -> None:
    async with client_of(host) as client:
        await client.toolkits.ensure("files", {"root": "/data"})
        host.toolkits = [{**FILES, "schema": {"type": "object", "required": ["other"]}}]
        with anyio.fail_after(5):
            await client.reconnect()
            assert (await client.tools.call("echo", {})).success
        assert "other" in client.faults["files"]


async def test_a_toolkit_that_takes_long_does_not_keep_the_host_waiting(host: ScriptedHost) -> None:
    host.answers["toolkit/configure/req"] = lambda request: None
    ensure = {"files": {"root": "/data"}}
    async with client_of(host, ensure=ensure, connect_timeout=0.4) as client:
        assert client.faults == {"files": "the host is still at it after 0.2 s"}
        assert (await client.tools.call("echo", {"a": 1})).data == {"a": 1}
        await host.push({"source": "toolkit", "toolkit": "files", "status": "ok", "configured": True})
        with anyio.fail_after(2):
            await anext(client.events)
        assert client.faults == {}


async def test_what_a_host_says_of_an_error_is_bounded_and_clean(host: ScriptedHost) -> None:
    host.answers["tool/call/req"] = lambda request: refused("X" * 1000, "\x1b[31m\u202ered" + "x" * 1_000_000)
    async with client_of(host) as client:
        with pytest.raises(A2ERequestError) as caught:
            await client.tools.call("echo")
    assert caught.value.message.startswith("[31mredxxx")
    assert len(caught.value.message) < 20_000
    assert len(caught.value.code) <= 128


async def test_reconnect_shakes_hands_anew(host: ScriptedHost) -> None:
    async with client_of(host) as client:
        with anyio.fail_after(5):
            await client.reconnect()
        assert client.session_id == "session-2"
        assert client.state.status == "ready"


async def test_a_transport_that_was_given_is_used_once() -> None:
    ours, theirs = memory_pair()
    host = ScriptedHost()

    async def serve() -> None:
        await host._serve(ours)  # pyright: ignore[reportPrivateUsage]

    serving = asyncio.create_task(serve())
    try:
        async with A2EClient(theirs, backoff=QUICK) as client:
            assert (await client.ping()).type == "pong"
            await ours.close()
            with anyio.fail_after(5), pytest.raises(Unavailable, match="transport that was given is over"):
                await client.ping()
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        await host.close()


# pushes


async def test_pushes_are_an_iterator_that_ends_with_the_client(host: ScriptedHost) -> None:
    async with client_of(host) as client:
        events = client.events
        for number in (1, 2):
            await host.push({"source": "toolkit", "toolkit": "files", "n": number})
        with anyio.fail_after(2):
            first, second = await anext(events), await anext(events)
        assert isinstance(first, A2EEvent)
        assert isinstance(second, A2EEvent)
        assert (first.data["n"], second.data["n"]) == (1, 2)
    with anyio.fail_after(2):
        assert [event async for event in events] == []


async def test_of_very_many_pushes_the_newest_are_kept(host: ScriptedHost) -> None:
    async with client_of(host) as client:
        for number in range(1_200):
            await host.push({"n": number})
        await client.ping()
        first = await anext(client.events)
        assert isinstance(first, A2EEvent)
        assert first.data["n"] == 200


# targets


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("http://user:pass@127.0.0.1:7777/a2e?key=1", "http://127.0.0.1:7777/a2e"),
        ("https://Example.com", "https://example.com"),
        ("http://[::1]:80/", "http://[::1]:80"),
        ("/opt/bin/host --token hush", "host"),
        (["/opt/my programs/host", "--token", "hush"], "host"),
        (Command(("host", "--token", "hush")), "host"),
        (Path("/opt/my programs/host"), "host"),
    ],
)
def test_a_target_has_a_name_without_secrets(target: Any, name: str) -> None:
    assert opener(target)[0] == name


@pytest.mark.parametrize("target", ["ftp://host/x", "http://", "http://host:port", 'host "unclosed', 7, []])
def test_what_is_no_target_is_refused(target: Any) -> None:
    with pytest.raises(ValueError, match=r"A2E host|command"):
        A2EClient(target)


CHILD = """
import json, sys
print("A2E_SUBPROCESS_HOST_READY")
print(sys.argv[1:])
for line in sys.stdin:
    message = json.loads(line)
    reply = {"id": "r", "req_id": message["id"]}
    if message["type"] == "handshake/req":
        reply |= {"type": "handshake/resp", "session_id": "s", "ok": True, "accepted_caps": []}
    elif message["type"] == "tool/call/req":
        if message["tool_name"] == "die":
            sys.exit("last words")
        reply |= {"type": "tool/call/resp",
                  "data": {"success": True, "tool_name": "t", "data": sys.argv[1:], "duration_ms": 0}}
    else:
        continue
    print(json.dumps(reply), flush=True)
"""


@pytest.fixture
def child(tmp_path: Path) -> Path:
    path = tmp_path / "a host.py"
    path.write_text(CHILD)
    return path


async def test_a_command_line_is_split_and_no_shell_sees_it(child: Path) -> None:
    async with A2EClient(f"{sys.executable} '{child}' $HOME '*' ;echo") as client:
        assert (await client.tools.call("argv")).data == ["$HOME", "*", ";echo"]


async def test_an_argv_is_taken_as_it_is(child: Path) -> None:
    async with A2EClient([sys.executable, str(child), "a b", "'c'"]) as client:
        assert (await client.tools.call("argv")).data == ["a b", "'c'"]


async def test_a_child_that_dies_in_a_call_is_told_with_its_last_words(child: Path) -> None:
    async with A2EClient([sys.executable, str(child)], backoff=QUICK) as client:
        with anyio.fail_after(8):
            with pytest.raises(Unavailable, match="last words") as caught:
                await client.tools.call("die")
            assert caught.value.sent
            assert (await client.tools.call("argv")).data == []
    gc.collect()


@pytest.fixture
def slow_child(tmp_path: Path) -> Path:
    """Takes 0.3 s to start, and counts its starts beside itself."""
    path = tmp_path / "slow.py"
    path.write_text(f"open({str(path) + '.starts'!r}, 'a').write('x')\nimport time; time.sleep(0.3)\n{CHILD}")
    return path


async def test_b066_twenty_first_calls_start_one_child(slow_child: Path) -> None:
    """agno-agi/agno#6821: many first calls race to open the same lazy source."""
    client = A2EClient([sys.executable, str(slow_child), "a"])
    client.open()
    try:
        with anyio.fail_after(8):
            results = await asyncio.gather(*(client.tools.call("argv") for _ in range(20)))
    finally:
        await client.close()
    assert [result.data for result in results] == [["a"]] * 20
    assert await anyio.Path(f"{slow_child}.starts").read_text() == "x"


async def test_b066_when_the_child_cannot_start_all_get_the_same_error(tmp_path: Path) -> None:
    """agno-agi/agno#6821, variant: the start fails, and a later call tries again."""
    program = tmp_path / "host"

    def install(program: Path) -> None:
        program.write_text(f"#!{sys.executable}\n{CHILD}")
        program.chmod(0o700)

    client = A2EClient([str(program)], backoff=QUICK)
    client.open()
    try:
        with anyio.fail_after(8):
            results = await asyncio.gather(*(client.tools.call("argv") for _ in range(20)), return_exceptions=True)
            assert len({str(result) for result in results}) == 1
            assert all(isinstance(result, Unavailable) and not result.sent for result in results)
            install(program)
            assert (await client.tools.call("argv")).data == []
    finally:
        await client.close()
    assert [one for one in asyncio.all_tasks() if one.get_name().startswith("anykit-")] == []


async def test_a_slow_reader_of_replies_loses_nothing(host: ScriptedHost) -> None:
    async with client_of(host) as client:
        results = await asyncio.gather(*(client.tools.call("echo", {"n": n}) for n in range(200)))
    assert [result.data for result in results] == [{"n": n} for n in range(200)]
    assert json.loads(json.dumps(host.of_type("tool/call/req")[0]))["arguments"] == {"n": 0}
