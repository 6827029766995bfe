"""The mounts: the SDK comes late, early requests wait for it, and everything ends in order."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from typing import Any

import pytest

from anykit import Workbench
from anykit.servers.a2a import Limits
from anykit.servers.a2a.mounting import LateApp
from anykit.servers.identity import Message, Receive, Scope, Send
from anykit.stores import MemoryRecords
from anykit.transports import PUBLIC_ONLY
from servers.a2a.hosts import V1, WAIT, Host, Sleeper, add, message_of, output_of, served

pytestmark = pytest.mark.anyio

START = """
import asyncio, sys, time
from anykit import Workbench, tool
from anykit.servers import Server
from anykit.servers.a2a import a2a_mounts
from anykit.stores import MemoryRecords

@tool
def echo(text: str) -> str:
    "Says it."
    return text

async def main():
    async with Workbench(echo, records=MemoryRecords()) as bench:
        def tell(address):
            print(address.url, "a2a" in sys.modules, flush=True)
        server = Server(a2a_mounts(bench), port=0, listening=tell)
        serving = asyncio.create_task(server.serve(signals=False))
        await asyncio.to_thread(sys.stdin.read)
        server.stop()
        await serving

asyncio.run(main())
"""


def test_the_server_listens_before_the_sdk_is_there_and_an_early_call_waits_for_it() -> None:
    import json
    import urllib.request

    process = subprocess.Popen([sys.executable, "-c", START], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        url, imported = process.stdout.readline().split()
        assert imported == "False"
        with urllib.request.urlopen(f"{url}/.well-known/agent-card.json", timeout=5) as card:
            assert json.load(card)["skills"][0]["id"] == "echo"
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message_of("early")}}
        request = urllib.request.Request(f"{url}/a2a", json.dumps(body).encode(), V1)
        with urllib.request.urlopen(request, timeout=9) as reply:
            assert output_of(json.load(reply)["result"]["task"]) == "early"
    finally:
        process.stdin.close()
        assert process.wait(8) == 0
        process.stdout.close()


class Answers:
    """An application that says it was reached."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"reached"})


async def _ask(app: Any) -> tuple[int, bytes]:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await app({"type": "http", "method": "GET", "path": "/a2a", "headers": []}, receive, send)
    return sent[0]["status"], sent[1]["body"]


def _late(**options: Any) -> LateApp:
    bench = Workbench(add, records=MemoryRecords())
    return LateApp(
        bench,
        records=MemoryRecords(),
        secrets=None,
        principal="local",
        guard=PUBLIC_ONLY,
        limits=Limits(),
        **options,
    )


async def test_who_comes_too_early_for_too_long_is_told_to_come_again() -> None:
    never = asyncio.get_running_loop().create_future()

    async def load(name: str) -> Any:
        return await never

    app = _late(load=load, ready_timeout=0.02)
    assert (await _ask(app))[0] == 503
    await app.end()


async def test_an_sdk_that_cannot_be_imported_costs_a_503_and_no_more() -> None:
    async def load(name: str) -> Any:
        raise ImportError("no module named a2a at /secret/place")

    app = _late(load=load)
    await app.begin()
    status, body = await _ask(app)
    assert (status, b"secret" in body) == (503, False)
    await app.end()


async def test_it_is_built_once_for_all_who_wait() -> None:
    built = 0

    class Module:
        def build(self, *given: Any, **options: Any) -> Any:
            nonlocal built
            built += 1
            return type("Built", (), {"app": Answers(), "close": staticmethod(_nothing)})

    async def load(name: str) -> Any:
        await asyncio.sleep(0)
        return Module()

    app = _late(load=load)
    answers = await asyncio.gather(app.begin(), *(_ask(app) for _ in range(5)))
    assert answers[1:] == [(200, b"reached")] * 5
    assert built == 1
    await app.end()
    assert (await _ask(app))[0] == 503


async def _nothing() -> None: ...


async def test_a_caller_that_leaves_early_does_not_stop_the_import_for_the_others() -> None:
    go = asyncio.Event()

    class Module:
        def build(self, *given: Any, **options: Any) -> Any:
            return type("Built", (), {"app": Answers(), "close": staticmethod(_nothing)})

    async def load(name: str) -> Any:
        await go.wait()
        return Module()

    app = _late(load=load)
    first = asyncio.ensure_future(_ask(app))
    second = asyncio.ensure_future(_ask(app))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    go.set()
    assert (await second)[0] == 200
    await app.end()


async def test_ending_while_the_import_runs_does_not_wait_for_it() -> None:
    async def load(name: str) -> Any:
        await asyncio.get_running_loop().create_future()

    app = _late(load=load)
    beginning = asyncio.ensure_future(app.begin())
    waiting = asyncio.ensure_future(_ask(app))
    await asyncio.sleep(0)
    async with asyncio.timeout(1):
        await app.end()
        assert (await waiting)[0] == 503
    await asyncio.wait([beginning], timeout=1)
    assert beginning.done()


async def test_the_end_cancels_what_runs_within_its_time() -> None:
    sleeper = Sleeper()
    begun = time.monotonic()
    async with served(sleeper.tool) as host:
        await host.send({"data": {"tool": "sleep"}}, configuration={"returnImmediately": True})
        await sleeper.started.wait()
    assert sleeper.cancelled.is_set()
    assert time.monotonic() - begun < 8


async def test_many_calls_at_a_time() -> None:
    async with served(add) as host:
        tasks = await asyncio.gather(*(host.call("add", {"a": number, "b": 0}) for number in range(100)))
        assert [output_of(task) for task in tasks] == [str(number) for number in range(100)]


async def test_a_client_that_goes_away_in_the_middle_leaves_the_task_going() -> None:
    sleeper = Sleeper()
    async with served(sleeper.tool) as host:
        calling = asyncio.ensure_future(host.call("sleep"))
        await sleeper.started.wait()
        found: list[Any] = []
        async with asyncio.timeout(WAIT):
            while not found:
                found = (await host.rpc("ListTasks", {"status": "TASK_STATE_WORKING"}))["result"]["tasks"]
        calling.cancel()
        (task,) = found
        sleeper.wake.set()
        assert output_of(await host.until(task["id"], "completed")) == "awake"


async def _refused(host: Host, path: str, method: str, headers: dict[str, str]) -> int:
    async with host.http.request(method, host.url + path, headers=headers, data=b"{}") as reply:
        return reply.status


PLACES = [
    ("POST", "/a2a"),
    ("POST", "/a2a/message:send"),
    ("POST", "/a2a/v1/message:send"),
    ("POST", "/a2a/message:stream"),
    ("GET", "/a2a/tasks"),
    ("GET", "/a2a/tasks/x"),
    ("GET", "/a2a/v1/tasks/x"),
    ("POST", "/a2a/tasks/x:cancel"),
    ("GET", "/a2a/extendedAgentCard"),
]


async def test_b083_without_the_token_nothing_but_the_card_is_reached() -> None:
    """cbcoutinho/nextcloud-mcp-server#261: a missing or wrong token is refused before any source is contacted."""
    sleeper = Sleeper()
    async with served(sleeper.tool, token="right") as host:
        for method, path in PLACES:
            for given in ("", "Bearer wrong", "Bearer", "Basic right", "bearer right wrong"):
                assert await _refused(host, path, method, {**V1, "authorization": given}) == 401, path
        async with host.http.get(f"{host.url}/.well-known/agent-card.json", headers={"authorization": ""}) as reply:
            assert reply.status == 200
        assert sleeper.calls == 0


async def test_b083_the_callers_token_reaches_no_tool() -> None:
    """cbcoutinho/nextcloud-mcp-server#261: contexts carry no headers and no tokens, so nothing is passed through."""
    from anykit import tool
    from anykit.capabilities import CapabilityContext

    seen: list[Any] = []

    @tool
    async def look(context: CapabilityContext) -> str:
        """Looks at its context."""
        seen.append((context.metadata, context.principal, context.session_id, context.turn_id))
        return "looked"

    async with served(look, token="client-token") as host:
        await host.call("look", metadata={"authorization": "Bearer in-metadata"}, contextId="talk-1")
        assert "client-token" not in repr(seen)
        assert "in-metadata" not in repr(seen)
        assert "talk-1" not in repr(seen)


async def test_b081_a_page_that_rebinds_a_name_is_refused() -> None:
    """modelcontextprotocol/rust-sdk#822: Host and Origin are checked on every route, the same for A2A."""
    async with served(add) as host:
        port = host.url.rpartition(":")[2]
        for method, path in [*PLACES, ("GET", "/.well-known/agent-card.json")]:
            for headers, status in (
                ({"host": f"evil.example:{port}"}, 421),
                ({"host": f"127.0.0.1:{port}", "origin": "http://evil.example"}, 403),
            ):
                async with host.http.request(method, host.url + path, headers=headers, data=b"{}") as reply:
                    assert (reply.status, "evil" in await reply.text()) == (status, False), path
            for name in (f"localhost:{port}", f"[::1]:{port}"):
                assert await _refused(host, path, method, {"host": name}) not in (421, 403)


# B070, B071

BIG = 9007199254740993
HUGE = 123456789012345678901234567890


async def test_b070_large_integers_are_exact_in_text_and_refused_as_data() -> None:
    """cline/cline#9589: 64-bit ids are rounded on the way; protocol buffers know only doubles."""
    from anykit import tool

    got: list[Any] = []

    @tool
    async def ids(given: dict[str, Any]) -> dict[str, Any]:
        """Gives ids back."""
        got.append(given)
        return {"id": BIG, "big": HUGE}

    async with served(ids) as host:
        task = await host.call("ids", {"given": {"f": 1.0, "neg": -0.0, "n": 2**53, "half": 0.5}})
        assert output_of(task) == f'{{"id":{BIG},"big":{HUGE}}}'
        assert "9007199254740992" not in str(task["artifacts"])
        assert got == [{"f": 1, "neg": 0, "n": 2**53, "half": 0.5}]
        assert type(got[0]["f"]) is int
        for value in (BIG, HUGE, -BIG, [{"deep": BIG}]):
            call = {"tool": "ids", "arguments": {"given": {"id": value}}}
            answer = await host.rpc("SendMessage", {"message": message_of({"data": call})})
            assert answer["error"]["code"] == -32602
            assert "/params/message/parts/0/data/arguments/given/id" in answer["error"]["message"]
            status, answer = await host.post("/a2a/message:send", {"message": message_of({"data": call})}, V1)
            assert (status, "2^53" in answer["error"]["message"]) == (400, True)
        assert len(got) == 1
        text = f'{{"tool": "ids", "arguments": {{"given": {{"id": {BIG}, "big": {HUGE}}}}}}}'
        await host.send(text)
        assert got[-1] == {"id": BIG, "big": HUGE}


async def test_b070_a_number_that_is_infinite_costs_its_request() -> None:
    """cline/cline#9589: 1e400 is handled like Infinity."""
    async with served(add) as host:
        call = b'{"tool":"add","arguments":{"a":1e400,"b":1}}'
        body = b'{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"parts":[{"data":%b}]}}}' % call
        assert (await host.post("/a2a", body, V1))[1]["error"]["code"] == -32700
        task = await host.send('{"tool":"add","arguments":{"a":1e400,"b":1}}')
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        assert output_of(await host.call("add", {"a": 1.0, "b": 1})) == "2"
        assert (await host.call("add", {"a": True, "b": 1}))["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"


async def test_b071_half_a_character_costs_its_request_and_a_whole_one_passes() -> None:
    """MemPalace/mempalace#503: a lone surrogate kills the server when it writes the reply."""
    import os

    from anykit import tool

    @tool
    async def say(text: str) -> str:
        """Says it."""
        return os.fsdecode(b"\xff") if text == "bad" else text

    async with served(say) as host:
        for part in (
            b'{"text":"\\ud83d"}',
            b'{"data":{"tool":"say","arguments":{"text":"\\ud83d"}}}',
            b'{"\\ud83d":1}',
        ):
            body = b'{"jsonrpc":"2.0","id":"me","method":"SendMessage","params":{"message":{"parts":[%b]}}}' % part
            _, answer = await host.post("/a2a", body, V1)
            assert (answer["id"], answer["error"]["code"]) == ("me", -32700)
            assert "surrogate" in answer["error"]["message"]
        failed = await host.send("bad")
        assert failed["status"]["state"] == "TASK_STATE_FAILED"
        body = (
            b'{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER",'
        )
        body += b'"parts":[{"text":"\\ud83d\\ude00 \\u2028"}]}}}'
        assert output_of((await host.post("/a2a", body, V1))[1]["result"]["task"]) == "\U0001f600 \u2028"
