"""What goes wrong with servers, over both transports and in both eras: the right error, in time, nothing left running.

Each test keeps a healthy neighbour and asks it afterwards.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from anykit.capabilities import ExecutionFailed, Unavailable
from anykit.sources.mcp import McpServer, McpSource, McpTool
from anykit.transports import Command

from .at_hand import QUICK, call, child, eventually, invoke, python, ready, source, tool, until
from .peers.script import Peer
from .web import Reply, Request, Web, serving

pytestmark = pytest.mark.anyio

ERAS = ["legacy", "modern"]


def runs(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def pids(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()] if path.exists() else []


@pytest.fixture
async def neighbour() -> AsyncGenerator[McpSource]:
    async with ready(McpServer("neighbour", child())) as made:
        yield made
        assert made.state.status == "ready"
        assert made.starts == 1
        assert await call(made, here=True) == {"here": True}


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return request.param


def stdio(era: str, **script: Any) -> McpServer:
    return McpServer("bad", child({"eras": [era], **script}), connect_timeout=0.6)


def web_server(web: Web, **options: Any) -> McpServer:
    return McpServer("bad", url=web.url, connect_timeout=1.0, **options)


# stdio


async def test_a_missing_command_fails_at_once_with_its_name(neighbour: McpSource) -> None:
    began = time.monotonic()
    async with source(McpServer("bad", Command(("/nonexistent/server",)))) as made:
        await until(made, "failed")
        assert time.monotonic() - began < 1.0
        assert made.state.reason == "command not found: '/nonexistent/server'"
        assert made.state.retry_at is not None
        with pytest.raises(Unavailable, match="command not found"):
            await made.call(_nothing)


async def test_one_that_exits_at_once_fails_with_its_last_words(neighbour: McpSource, era: str) -> None:
    async with source(stdio(era, exit=7)) as made:
        await until(made, "failed")
        assert "exited with code 7: cannot go on" in made.state.reason
        assert "cannot go on" in made.stderr


async def test_one_that_hangs_at_start_fails_at_its_deadline(neighbour: McpSource, era: str, tmp_path: Path) -> None:
    began = time.monotonic()
    async with source(stdio(era, hang=True, pids=str(tmp_path / "pids"))) as made:
        with anyio.fail_after(5):
            await until(made, "failed")
        assert 0.5 < time.monotonic() - began < 4.0
        assert made.state.reason == "no answer within 0.6 s"
    await eventually(lambda: not any(runs(pid) for pid in pids(tmp_path / "pids")))


async def test_one_that_starts_slowly_is_waited_for(neighbour: McpSource, era: str) -> None:
    server = McpServer("slow", child({"eras": [era], "slow": 0.6}))
    async with source(server) as made:
        assert made.state.status == "connecting"
        await until(made, "ready")
        assert await call(made, a=1) == {"a": 1}


async def test_one_that_dies_in_a_call_leaves_its_outcome_unknown_and_comes_back(
    neighbour: McpSource, era: str, tmp_path: Path
) -> None:
    count = tmp_path / "count"
    tools = [{"name": "echo", "inputSchema": {"type": "object"}}, {"name": "die", "inputSchema": {"type": "object"}}]
    async with ready(stdio(era, tools=tools, die_on="die", count=str(count))) as made:
        with pytest.raises(Unavailable, match="exited with code 3") as raised:
            await call(made, "die")
        assert raised.value.sent
        assert count.read_text() == "x"
        assert await call(made, a=2) == {"a": 2}
        assert made.starts == 2
        assert count.read_text() == "xx"


async def test_a_mebibyte_on_stderr_stalls_nobody_and_is_kept_in_part(neighbour: McpSource, era: str) -> None:
    async with ready(stdio(era, stderr=1024 * 1024)) as made:
        assert await call(made, a=1) == {"a": 1}
        assert 1_000 < len(made.stderr) <= 64 * 1024 + 1


async def test_b030a_noise_on_stdout_is_skipped_and_counted(neighbour: McpSource, era: str) -> None:
    """espressif/esp-idf#19087: what a server prints to stdout corrupts the stream."""
    banner = 'Server started...\n\n42\n[db] connected\n{"level": "info", "msg": "up"}\n[1, 2]\nnull\n'
    async with ready(stdio(era, banner=banner)) as made:
        assert await call(made, a=1) == {"a": 1}
        assert made.state.detail["noise"] == 6


async def test_one_deaf_to_signals_is_gone_with_its_grandchild(neighbour: McpSource, era: str, tmp_path: Path) -> None:
    script = {"deaf": True, "pids": str(tmp_path / "pids"), "grandchild": str(tmp_path / "grandchildren")}
    async with ready(stdio(era, **script)) as made:
        pid = made.pid
        assert pid is not None
        [grandchild] = pids(tmp_path / "grandchildren")
        assert runs(pid)
        assert runs(grandchild)
        began = time.monotonic()
        await made.close()
        assert time.monotonic() - began < 4.0
    assert not runs(pid)
    await eventually(lambda: not runs(grandchild))


async def test_closing_from_another_task_is_as_good(neighbour: McpSource, era: str) -> None:
    async with ready(stdio(era)) as made:
        await asyncio.create_task(made.close())
        assert made.state.status == "closed"
        with pytest.raises(Unavailable, match="closed"):
            await call(made)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_server_that_knows_no_new_words_is_started_once_more_the_old_way(tmp_path: Path) -> None:
    script = {"eras": ["legacy"], "exit_on_unknown": True, "pids": str(tmp_path / "pids")}
    async with ready(McpServer("old", child(script))) as made:
        assert made.state.detail["protocol"] == "2025-11-25"
        assert made.starts == 1
    assert len(pids(tmp_path / "pids")) == 2


async def test_b028_nothing_is_left_of_failed_connects(tmp_path: Path) -> None:
    """metatool-ai/metamcp#162: children left alive after failed connects; typescript-sdk#2023 for their children."""
    script = {"hang": True, "deaf": True, "grandchild": str(tmp_path / "grandchildren"), "pids": str(tmp_path / "pids")}
    async with ready(McpServer("first", child())):
        pass
    descriptors = len(os.listdir("/proc/self/fd"))
    server = McpServer("hung", child(script), connect_timeout=0.7)
    async with source(server) as made:
        with anyio.fail_after(9):
            await eventually(lambda: made.starts >= 2)
    left = pids(tmp_path / "pids") + pids(tmp_path / "grandchildren")
    assert len(left) >= 2
    await eventually(lambda: not any(runs(pid) for pid in left))
    assert len(os.listdir("/proc/self/fd")) <= descriptors


FLOODS = {
    "noise": "no protocol at all",
    "log lines": '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}',
    "changes": '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
    "requests": '{"jsonrpc":"2.0","id":"a","method":"ping"}',
    "answers": '{"jsonrpc":"2.0","id":4711,"result":{}}',
}


@pytest.mark.parametrize("flood", list(FLOODS))
async def test_a_server_that_never_stops_talking_leaves_the_loop_to_others(neighbour: McpSource, flood: str) -> None:
    program = (
        "import threading\n"
        "peer = Peer({'eras': ['legacy']}); line = (sys.argv[1] + '\\n').encode() * 500\n"
        "def talk():\n"
        "    while True: os.write(1, line)\n"
        "for text in sys.stdin:\n"
        "    m = json.loads(text)\n"
        "    answer = peer.handle(m, say) if 'method' in m else None\n"
        "    if answer and threading.active_count() == 1: say(answer)\n"
        "    if m.get('method') == 'tools/list' and threading.active_count() == 1:\n"
        "        threading.Thread(target=talk, daemon=True).start()\n"
    )
    async with ready(McpServer("loud", python(program, FLOODS[flood]))):
        slow: list[float] = []
        for n in range(50):
            began = time.monotonic()
            assert await call(neighbour, n=n) == {"n": n}
            slow.append(time.monotonic() - began)
        assert sorted(slow)[25] < 0.05


# HTTP


ANSWERS: list[tuple[int, str, bytes, str]] = [
    (500, "text/plain", b"boom", "HTTP 500 text/plain, 'boom'"),
    (403, "text/html", b"<h1>no</h1>", "answered 403"),
    (200, "text/html", b"<html>", "HTTP 200 text/html, '<html>'"),
    (200, "text/plain", b"this is not json", "HTTP 200 text/plain, 'this is not json'"),
    (200, "application/json", b"", "HTTP 200 application/json, no body"),
    (200, "application/json", b"[1,2", "HTTP 200 application/json, '[1,2'"),
    (200, "application/json", b"null", "HTTP 200 application/json, 'null'"),
    (200, "application/json", b"\xff\xfe\x00", "HTTP 200 application/json"),
    (404, "text/plain", b"nothing here", "HTTP 404 text/plain, 'nothing here'"),
    (302, "text/plain", b"", "a redirect to http://elsewhere.test/"),
    (202, "", b"", "HTTP 202"),
]


@pytest.mark.parametrize(("status", "content_type", "body", "told"), ANSWERS)
async def test_b018_what_is_not_the_protocol_is_told_at_once_and_costs_one_call(
    era: str, status: int, content_type: str, body: bytes, told: str
) -> None:
    """PrefectHQ/fastmcp#2595: a client that hangs where the server answers with something else."""
    broken = True

    async def before(request: Request, reply: Reply) -> bool:
        if not broken or request.message.get("method") != "tools/call":
            return False
        await reply.send(
            status, body, content_type, **({"location": "http://elsewhere.test/"} if status == 302 else {})
        )
        return True

    async with serving(Peer({"eras": [era]}), before=before) as web:
        web.known.add("forever")
        async with ready(web_server(web)) as made:
            began = time.monotonic()
            with pytest.raises((Unavailable, ExecutionFailed)) as raised:
                await call(made)
            assert time.monotonic() - began < 1.0
            if not (status == 404 and era == "legacy"):
                assert told in str(raised.value)
                broken = False
                assert await call(made, a=1) == {"a": 1}
                assert made.starts == 1


@pytest.mark.parametrize(("status", "content_type", "body", "told"), ANSWERS)
async def test_b018_a_server_that_never_was_one_fails_with_what_it_says(
    status: int, content_type: str, body: bytes, told: str
) -> None:
    """google/adk-python#4901: five minutes of silence for an answer that is not 2xx."""
    broken = True

    async def before(request: Request, reply: Reply) -> bool:
        if broken:
            await reply.send(
                status, body, content_type, **({"location": "http://elsewhere.test/"} if status == 302 else {})
            )
        return broken

    async with serving(before=before) as web, source(McpServer("bad", url=web.url)) as made:
        began = time.monotonic()
        await until(made, "failed")
        assert time.monotonic() - began < 2.0
        assert told in made.state.reason
        broken = False
        await until(made, "ready")
        assert await call(made, a=1) == {"a": 1}


async def test_a_server_that_is_not_there_is_told_with_its_address(neighbour: McpSource) -> None:
    async with source(McpServer("bad", url="http://127.0.0.1:9/mcp")) as made:
        await until(made, "failed")
        assert made.state.reason == "cannot reach http://127.0.0.1:9/mcp: connection refused"
        with pytest.raises(Unavailable, match="connection refused"):
            await made.call(_nothing)


async def test_a_server_that_takes_connections_and_says_nothing_fails_at_its_deadline(neighbour: McpSource) -> None:
    async def silence(request: Request, reply: Reply) -> bool:
        await asyncio.Event().wait()
        return True

    async with serving(before=silence) as web:
        async with source(McpServer("bad", url=web.url, connect_timeout=0.5)) as made:
            await until(made, "failed")
            assert made.state.reason == "no answer within 0.5 s"


async def test_a_restarted_server_is_used_again(neighbour: McpSource, era: str) -> None:
    async with serving(Peer({"eras": [era]})) as web, ready(web_server(web)) as made:
        assert await call(made, a=1) == {"a": 1}
        await web.stop()
        with pytest.raises(Unavailable):
            await call(made, a=2)
        await until(made, "failed")
        assert [one.spec.name for one in made.invocables()] == ["echo"]
        await web.start()
        assert await call(made, a=3) == {"a": 3}
        assert len(web.peer.calls("tools/call")) == 2


async def test_a_forgotten_session_is_opened_anew_and_the_call_made_once(neighbour: McpSource) -> None:
    async with serving(Peer({"eras": ["legacy"]})) as web, ready(web_server(web)) as made:
        web.known.clear()
        assert await call(made, a=1) == {"a": 1}
        assert made.starts == 2
        assert len(web.peer.calls("tools/call")) == 1


async def test_a_server_that_says_400_for_a_forgotten_session_is_understood(neighbour: McpSource) -> None:
    forgotten = False

    async def before(request: Request, reply: Reply) -> bool:
        nonlocal forgotten
        if not forgotten or request.message.get("method") != "tools/call":
            return False
        forgotten = False
        error = {"code": -32000, "message": "Bad Request: No valid session ID provided"}
        await reply.json({"jsonrpc": "2.0", "id": None, "error": error}, 400)
        return True

    async with serving(Peer({"eras": ["legacy"]}), before=before) as web, ready(web_server(web)) as made:
        forgotten = True
        assert await call(made, a=1) == {"a": 1}
        assert made.starts == 2


async def test_a_stream_cut_off_leaves_the_outcome_unknown_and_the_connection_alive(
    neighbour: McpSource, era: str
) -> None:
    cut = True

    async def before(request: Request, reply: Reply) -> bool:
        if not cut or request.message.get("method") != "tools/call":
            return False
        await reply.stream()
        await reply.raw(b'event: message\ndata: {"jsonrpc": "2.0", "id"')
        return True

    async with serving(Peer({"eras": [era]}), before=before) as web, ready(web_server(web)) as made:
        with pytest.raises(Unavailable, match="ended the stream") as raised:
            await call(made)
        assert raised.value.sent
        cut = False
        assert await call(made, a=1) == {"a": 1}
        assert made.starts == 1


async def test_one_failing_request_leaves_the_others_in_flight(neighbour: McpSource, era: str) -> None:
    go = asyncio.Event()

    async def before(request: Request, reply: Reply) -> bool:
        if request.message.get("method") != "tools/call":
            return False
        if request.message["params"]["arguments"].get("fail"):
            reply.writer.transport.abort()
            return True
        await go.wait()
        return False

    async with serving(Peer({"eras": [era]}), before=before) as web, ready(web_server(web)) as made:
        waiting = asyncio.create_task(call(made, a=1))
        await eventually(lambda: bool(web.posted("tools/call")))
        with pytest.raises(Unavailable):
            await call(made, fail=True)
        go.set()
        assert await waiting == {"a": 1}
        assert made.starts == 1


# calls and callers


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_b025_a_failed_connect_leaves_the_task_as_it_was(transport: str) -> None:
    """openai/openai-agents-python#1288: after a failed connect the next await is cancelled."""
    server = (
        McpServer("bad", Command(("/nonexistent/server",)))
        if transport == "stdio"
        else McpServer("bad", url="http://127.0.0.1:9/")
    )
    async with source(server) as made:
        with pytest.raises(Unavailable) as raised:
            await made.call(_nothing)
        assert "refused" in str(raised.value) or "not found" in str(raised.value)
        await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0


async def test_b020_one_bad_server_costs_only_itself() -> None:
    """google/adk-python#5025: graceful degradation when a server is not available."""

    async def silence(request: Request, reply: Reply) -> bool:
        await asyncio.Event().wait()
        return True

    async with serving(before=silence) as silent:
        bad = [
            McpServer("missing", Command(("/nonexistent/server",))),
            McpServer("refused", url="http://127.0.0.1:9/"),
            McpServer("silent", url=silent.url, connect_timeout=0.5),
            McpServer("hung", child({"hang": True}), connect_timeout=0.5),
        ]
        async with source(McpServer("ok1", child())) as ok1, source(McpServer("ok2", child())) as ok2:
            made = [McpSource(server, backoff=QUICK) for server in bad]
            try:
                for one in made:
                    await one.start()
                await until(ok1, "ready")
                await until(ok2, "ready")
                for one in made:
                    await until(one, "failed")
                    assert one.state.reason
                    assert one.invocables() == ()
                assert await call(ok1, a=1) == {"a": 1}
                assert await call(ok2, a=2) == {"a": 2}
            finally:
                await asyncio.gather(*(one.close() for one in made))


async def test_b020_tries_at_a_dead_server_back_off(tmp_path: Path) -> None:
    """Kuadrant/mcp-gateway#1029: restarts in a tight loop."""
    server = McpServer("dead", child({"exit": 1, "pids": str(tmp_path / "pids")}))
    made = McpSource(server)
    await made.start()
    await until(made, "failed")
    await asyncio.sleep(1.0)  # the pauses are what is looked at
    await made.close()
    assert 2 <= len(pids(tmp_path / "pids")) <= 6


async def test_b066_many_first_calls_share_one_start(tmp_path: Path) -> None:
    """agno-agi/agno#6821: parallel first calls each open the source, or deadlock."""
    server = McpServer("slow", child({"slow": 0.3, "pids": str(tmp_path / "pids")}))
    async with ready(McpServer("known", child())) as known, source(server, start=False) as made:
        tools = [McpTool(tool(known).spec, made) for _ in range(20)]
        results = await asyncio.gather(*(invoke(one, {"n": n}) for n, one in enumerate(tools)))
        assert [getattr(one, "structured", None) for one in results] == [{"n": n} for n in range(20)]
    assert len(pids(tmp_path / "pids")) == 1


async def test_b066_many_first_calls_share_one_failure(tmp_path: Path) -> None:
    """The other half: nothing is left running, and a later call tries again."""
    server = McpServer("dead", child({"exit": 2, "pids": str(tmp_path / "pids")}))
    async with source(server, start=False) as made:
        errors = await asyncio.gather(*(made.call(_nothing) for _ in range(20)), return_exceptions=True)
        assert {type(error) for error in errors} == {Unavailable}
        assert len({str(error) for error in errors}) == 1
        tried = len(pids(tmp_path / "pids"))
        assert tried <= 4
        await eventually(lambda: len(pids(tmp_path / "pids")) > tried)
    await eventually(lambda: not any(runs(pid) for pid in pids(tmp_path / "pids")))


async def _nothing(link: Any) -> None:
    """Work that needs a session and does nothing with it."""
