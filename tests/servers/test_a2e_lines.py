"""A session over lines: handshakes, bad input, the end, and the host as a child process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import textwrap
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from anykit.servers import A2EHost, serve_connection
from anykit.transports import MemoryTransport, TransportClosed, memory_pair
from servers.agents import WAIT, Agent, Sleeper, add, agent_of, connected, echo, make_bench, make_host

pytestmark = pytest.mark.anyio


# handshakes


async def test_a_handshake_opens_the_session_with_one_entry_a_capability() -> None:
    async with connected(make_host()) as agent:
        reply = await agent.ask("handshake/req", agent_id="me", agent_caps=["toolkits", "tools", "memory", "nonsense"])
        assert list(reply) == [
            "type", "id", "version", "ts", "req_id", "session_id", "accepted_caps", "max_parallel", "ok", "reason",
        ]  # fmt: skip
        assert (reply["ok"], reply["reason"], reply["max_parallel"]) == (True, "", 64)
        assert reply["accepted_caps"] == [
            {
                "capability": name,
                "enabled": True,
                "metadata": {"name": "anykit", "type": name, "priority": 0, "exclusive": False},
            }
            for name in ("tools", "toolkits")
        ]


async def test_a_wrong_token_leaves_the_session_closed() -> None:
    async with connected(make_host(token="right")) as agent:
        for token in ("", "wrong", "righ", "rightt", "é"):
            reply = await agent.handshake(token=token)
            assert (reply["ok"], reply["reason"], reply["accepted_caps"]) == (False, "auth_failed", [])
            if token != "é":
                assert (await agent.call("add", {"a": 1, "b": 1}))["code"] == "unauthorized"


async def test_an_agent_that_guesses_tokens_is_sent_away() -> None:
    async with connected(make_host(token="right")) as agent:
        for _ in range(5):
            assert (await agent.handshake(token="wrong"))["reason"] == "auth_failed"
        with pytest.raises(TransportClosed):
            await agent.receive()


async def test_the_right_token_opens() -> None:
    async with connected(make_host(token="right")) as agent:
        assert (await agent.handshake(token="wrong"))["ok"] is False
        assert (await agent.handshake(token="right"))["ok"] is True
        assert (await agent.call("add", {"a": 1, "b": 1}))["data"]["data"] == 2


async def test_before_the_handshake_only_a_ping_is_answered() -> None:
    async with connected(make_host()) as agent:
        assert (await agent.ask("ping"))["type"] == "pong"
        for type in ("tool/list/req", "toolkit/list/req", "nonsense/req", "memory/store/req"):
            assert (await agent.ask(type))["code"] == "unauthorized"


async def test_nothing_in_common_is_no_session() -> None:
    async with connected(make_host()) as agent:
        reply = await agent.ask("handshake/req", agent_caps=["memory"])
        assert (reply["ok"], reply["reason"]) == (False, "no_caps")
        assert (await agent.ask("handshake/req", agent_caps=[]))["ok"] is True
    async with connected(make_host(lenient_caps=True)) as agent:
        assert (await agent.ask("handshake/req", agent_caps=["memory"]))["ok"] is True


async def test_another_version_is_a_mismatch() -> None:
    async with connected(make_host()) as agent:
        reply = await agent.ask("handshake/req", version="2.0", agent_caps=["tools"])
        assert (reply["ok"], reply["reason"]) == (False, "version_mismatch")
        await agent.handshake()
        assert (await agent.ask("ping", version="2.0"))["code"] == "version_mismatch"
        assert (await agent.ask("ping", version="1.7"))["type"] == "pong"
        await agent.raw(b'{"type":"ping","id":"old","a2e":"1.0"}')
        assert (await agent.reply_to("old"))["type"] == "pong"


async def test_a_second_handshake_renegotiates_and_keeps_the_session() -> None:
    async with agent_of(make_host()) as agent:
        await agent.configure("notes", {"shelf": "kept"})
        before = agent.session_id
        await agent.handshake("tools")
        assert agent.session_id == before
        assert (await agent.call("read_note"))["data"]["data"]["shelf"] == "kept"
        assert (await agent.ask("toolkit/list/req"))["code"] == "capability_missing"


async def test_another_sessions_id_is_refused() -> None:
    async with agent_of(make_host()) as agent:
        assert (await agent.call("add", {"a": 1, "b": 1}, session_id="other"))["code"] == "unauthorized"
        assert (await agent.call("add", {"a": 1, "b": 1}, session_id=agent.session_id))["data"]["data"] == 2


# bad input

BAD = {
    "not json": (b"{nope", "parse_error"),
    "not an object": (b"[1,2]", "parse_error"),
    "a number": (b"42", "parse_error"),
    "null": (b"null", "parse_error"),
    "invalid utf-8": (b"\xff\xfe garbage", "parse_error"),
    "invalid utf-8 in a string": (b'{"type":"ping","id":"\xff"}', "parse_error"),
    "a lone surrogate": (b'{"type":"ping","id":"x","a":"\\ud800"}', "parse_error"),
    "NaN": (b'{"type":"ping","id":"x","a":NaN}', "parse_error"),
    "Infinity": (b'{"type":"ping","id":"x","a":-Infinity}', "parse_error"),
    "100,000 levels": (b'{"type":"ping","id":"x","a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "parse_error"),
    "129 levels": (b'{"type":"ping","id":"x","a":' + b"[" * 128 + b"]" * 128 + b"}", "parse_error"),
    "unclosed": (b'{"type":"ping","id":"x","a":' + b"[" * 100_000, "parse_error"),
    "a missing field": (b'{"type":"tool/call/req","id":"x","tool_name":"add"}', "schema_violation"),
    "a wrong field": (b'{"type":"tool/call/req","id":"x","tool_name":7,"arguments":{}}', "schema_violation"),
    "arguments that are a list": (
        b'{"type":"tool/call/req","id":"x","tool_name":"add","arguments":[]}',
        "schema_violation",
    ),
    "no type": (b'{"id":"x"}', "invalid_message"),
    "an unknown type": (b'{"type":"nonsense","id":"x"}', "invalid_message"),
    "a type of the wrong kind": (b'{"type":7,"id":"x"}', "invalid_message"),
    "a wrong version": (b'{"type":"ping","id":"x","version":"3.0"}', "version_mismatch"),
    "a version of the wrong kind": (b'{"type":"ping","id":"x","version":1}', "schema_violation"),
}


@pytest.mark.parametrize("name", list(BAD))
async def test_a_bad_line_is_lost_alone(name: str) -> None:
    line, code = BAD[name]
    host = make_host()
    async with agent_of(host) as agent, agent_of(host) as neighbour:
        await agent.raw(line)
        reply = await agent.receive()
        assert (reply["type"], reply["code"]) == ("error", code)
        assert len(json.dumps(reply)) < 2000
        for one in (agent, neighbour):
            assert (await one.call("add", {"a": 1, "b": 2}))["data"]["data"] == 3


async def test_128_levels_and_big_integers_are_legal() -> None:
    async with agent_of(make_host()) as agent:
        deep: Any = 9007199254740993
        for _ in range(120):
            deep = [deep]
        assert (await agent.call("echo", {"value": deep}))["data"]["data"] == deep


async def test_b040_a_line_of_5_mb_passes_and_one_of_9_is_lost_alone() -> None:
    """QwenLM/qwen-code#9298: a line beyond a stream's default limit ended the session."""
    async with agent_of(make_host()) as agent:
        for size in (200_000, 5_000_000):
            text = "é" * (size // 2)
            line = {"type": "tool/call/req", "id": str(size), "tool_name": "echo", "arguments": {"value": text}}
            await agent.raw(json.dumps(line, ensure_ascii=False).encode())
            reply = await agent.reply_to(str(size))
            assert reply["data"]["truncated"] is (size > 1024 * 1024)
        await agent.raw(b'{"type":"ping","pad":"' + b"x" * 9_000_000 + b'"}')
        reply = await agent.receive()
        assert reply["code"] == "parse_error"
        assert "8388608" in reply["message"]
        assert (await agent.ask("ping"))["type"] == "pong"


async def test_b041_bad_bytes_do_not_end_the_session() -> None:
    """modelcontextprotocol/python-sdk#2873: one line that is no UTF-8 ended the session."""
    async with agent_of(make_host()) as agent:
        await agent.raw(b"\xff\xfe garbage")
        assert (await agent.receive())["code"] == "parse_error"
        assert (await agent.ask("ping"))["type"] == "pong"


# the end


async def test_an_agent_that_vanishes_cancels_its_calls() -> None:
    sleeper = Sleeper()
    host = make_host(sleeper.tool(), add)
    async with agent_of(host) as agent:
        await agent.send("tool/call/req", tool_name="sleep", arguments={})
        await sleeper.started.acquire()
        await agent.transport.close()
        async with asyncio.timeout(1):
            await sleeper.cancelled.acquire()
    async with agent_of(host) as agent:
        assert (await agent.call("add", {"a": 1, "b": 1}))["data"]["data"] == 2


async def test_shutdown_lets_calls_end_and_takes_no_more() -> None:
    sleeper = Sleeper()
    mine, theirs = memory_pair()
    serving = asyncio.create_task(serve_connection(make_host(sleeper.tool(), add), theirs))
    agent = Agent(mine)
    await agent.handshake()
    id = await agent.send("tool/call/req", tool_name="sleep", arguments={})
    await sleeper.started.acquire()
    await agent.send("shutdown", timeout=5)
    refused = await agent.call("add", {"a": 1, "b": 1})
    assert (refused["code"], refused["retryable"]) == ("runtime_error", True)
    sleeper.gate.set()
    assert (await agent.reply_to(id))["data"]["data"] == "awake"
    with pytest.raises(TransportClosed):
        await agent.receive()
    async with asyncio.timeout(WAIT):
        assert await serving == "shutdown"


async def test_shutdown_ends_after_its_timeout_whatever_still_runs() -> None:
    sleeper = Sleeper()
    async with agent_of(make_host(sleeper.tool())) as agent:
        id = await agent.send("tool/call/req", tool_name="sleep", arguments={})
        await sleeper.started.acquire()
        await agent.send("shutdown", timeout=0)
        reply = await agent.reply_to(id)
        assert (reply["code"], reply["retryable"]) == ("runtime_error", False)
        async with asyncio.timeout(WAIT):
            await sleeper.cancelled.acquire()
        with pytest.raises(TransportClosed):
            await agent.receive()


async def test_a_host_that_stops_answers_what_is_open() -> None:
    sleeper = Sleeper()
    mine, theirs = memory_pair()
    stop = asyncio.Event()
    serving = asyncio.create_task(serve_connection(make_host(sleeper.tool()), theirs, stop=stop))
    agent = Agent(mine)
    await agent.handshake()
    id = await agent.send("tool/call/req", tool_name="sleep", arguments={})
    await sleeper.started.acquire()
    stop.set()
    assert (await agent.reply_to(id))["code"] == "runtime_error"
    async with asyncio.timeout(WAIT):
        assert await serving == "host"
        await sleeper.cancelled.acquire()


async def test_quick_calls_end_though_the_agent_said_everything_at_once() -> None:
    mine, theirs = memory_pair()
    serving = asyncio.create_task(serve_connection(A2EHost(make_bench(add, echo)), theirs))
    await mine.send(b'{"type":"handshake/req","id":"h","agent_caps":["tools"]}')
    for number in range(200):
        line = {"type": "tool/call/req", "id": str(number), "tool_name": "add", "arguments": {"a": number, "b": 1}}
        await mine.send(json.dumps(line).encode())
    got = [json.loads(await mine.receive()) for _ in range(201)]  # pyright: ignore[reportArgumentType]
    assert {one["data"]["data"] for one in got[1:]} == set(range(1, 201))
    await mine.close()
    async with asyncio.timeout(WAIT):
        assert await serving == "eof"


async def test_lines_leave_together_where_the_transport_can() -> None:
    class Together(MemoryTransport):
        def __init__(self) -> None:
            super().__init__()
            self.batches: list[int] = []

        async def send_all(self, lines: Sequence[bytes]) -> None:
            self.batches.append(len(lines))
            for line in lines:
                await self.send(line)

    mine, theirs = MemoryTransport(), Together()
    mine.wire_to(theirs)
    serving = asyncio.create_task(serve_connection(make_host(add), theirs))
    agent = Agent(mine)
    await agent.handshake()
    ids = [await agent.send("ping") for _ in range(10)]
    replies = [await agent.receive() for _ in ids]
    assert [one["req_id"] for one in replies] == ids
    assert max(theirs.batches) > 1
    await mine.close()
    async with asyncio.timeout(WAIT):
        await serving


# as a child process

PROGRAM = """
    import asyncio, os, subprocess, sys, time
    from anykit.transports import take_stdio
    streams = take_stdio()
    print("a banner on stdout")
    from anykit import tool
    from anykit.capabilities import CapabilityContext
    from anykit.servers import A2EHost, serve_stdio
    sys.path.insert(0, {tests!r})
    from runtime_parts import Bench, functions

    @tool
    async def sleep() -> str:
        "Waits."
        print("asleep", file=sys.stderr, flush=True)
        await asyncio.sleep(60)
        return "awake"

    @tool
    def noisy() -> int:
        "Prints."
        print("hi")
        os.write(1, b"raw")
        subprocess.run(["echo", "x"])
        return 1

    async def main() -> None:
        reason = await serve_stdio(A2EHost(Bench(functions(sleep, noisy))), streams)
        print("left:", reason, file=sys.stderr)

    asyncio.run(main())
    streams.close()
"""


@asynccontextmanager
async def child(tmp_path: Path) -> AsyncGenerator[asyncio.subprocess.Process]:
    program = tmp_path / "program.py"
    tests = str(Path(__file__).parent.parent)
    program.write_text(textwrap.dedent(PROGRAM).replace("{tests!r}", repr(tests)))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(program),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def said(process: asyncio.subprocess.Process, **fields: Any) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(fields).encode() + b"\n")
    await process.stdin.drain()


async def heard(process: asyncio.subprocess.Process) -> dict[str, Any]:
    assert process.stdout is not None
    async with asyncio.timeout(WAIT):
        return json.loads(await process.stdout.readline())


async def test_b030_stdout_carries_whole_protocol_lines_only(tmp_path: Path) -> None:
    """espressif/esp-idf#19087: print() in a tool corrupted the stream of a stdio server."""
    async with child(tmp_path) as process:
        await said(process, type="handshake/req", id="h", agent_caps=["tools"])
        await said(process, type="tool/call/req", id="1", tool_name="noisy", arguments={})
        assert (await heard(process))["type"] == "handshake/resp"
        assert (await heard(process))["data"]["data"] == 1
        assert process.stdin is not None
        process.stdin.close()
        out, err = await asyncio.wait_for(process.communicate(), WAIT)
        assert out == b""
        for printed in (b"a banner on stdout", b"hi", b"raw", b"x"):
            assert printed in err


async def test_b031_eof_ends_a_host_whose_tool_still_runs(tmp_path: Path) -> None:
    """hangwin/mcp-chrome#300: a stdio server became a zombie when its parent went away."""
    async with child(tmp_path) as process:
        await said(process, type="handshake/req", id="h", agent_caps=["tools"])
        await said(process, type="tool/call/req", id="1", tool_name="sleep", arguments={})
        assert (await heard(process))["ok"] is True
        assert process.stderr is not None
        async with asyncio.timeout(WAIT):
            while b"asleep" not in await process.stderr.readline():
                pass
        begun = time.monotonic()
        assert process.stdin is not None
        process.stdin.close()
        _, err = await asyncio.wait_for(process.communicate(), WAIT)
        assert process.returncode == 0
        assert time.monotonic() - begun < 3
        assert b"Traceback" not in err
        assert b"left: eof" in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_b031_a_signal_answers_what_is_open_and_ends_in_order(number: signal.Signals, tmp_path: Path) -> None:
    """hangwin/mcp-chrome#300, the other ways to end a stdio server."""
    async with child(tmp_path) as process:
        await said(process, type="handshake/req", id="h", agent_caps=["tools"])
        await said(process, type="tool/call/req", id="1", tool_name="sleep", arguments={})
        assert (await heard(process))["ok"] is True
        assert process.stderr is not None
        async with asyncio.timeout(WAIT):
            while b"asleep" not in await process.stderr.readline():
                pass
        process.send_signal(number)
        assert (await heard(process))["code"] == "runtime_error"
        _, err = await asyncio.wait_for(process.communicate(), WAIT)
        assert process.returncode == 0
        assert b"left: host" in err
        assert b"Traceback" not in err


async def test_a_host_whose_parent_is_gone_altogether_ends(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM).replace("{tests!r}", repr(str(Path(__file__).parent.parent))))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(program),
        stdin=asyncio.subprocess.PIPE,
        stdout=write_end,
        stderr=asyncio.subprocess.DEVNULL,
    )
    os.close(write_end)
    os.close(read_end)  # nobody reads its stdout any more
    await said(process, type="handshake/req", id="h", agent_caps=["tools"])
    assert process.stdin is not None
    process.stdin.close()
    async with asyncio.timeout(WAIT):
        assert await process.wait() in (0, -signal.SIGPIPE)
