"""`anykit.a2a`: the Toolnexus A2A tools contract (SPEC 7A), its examples carried over to Python, over loopback HTTP."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from anykit import Workbench, a2a
from anykit.a2a import Agent, CardError, agent, agent_tools, open_source
from anykit.app.config import SourceConfig
from anykit.app.opening import Opening
from anykit.capabilities import CapabilityContext, InvocableRequest, InvocableResult
from anykit.runtime import Source
from anykit.sources.a2a import A2ASource
from anykit.tools import Tool
from sources.a2a.agents import Asked, scripted, task
from transports.peers import Request, http, peer

pytestmark = pytest.mark.anyio


def test_every_name_is_there_and_sorted() -> None:
    assert a2a.__all__ == ["Agent", "CardError", "agent", "agent_tools"]
    assert all(getattr(a2a, name) is not None for name in a2a.__all__)


# the contract's examples


async def test_the_smallest_useful_call_resolves_a_card_without_executing() -> None:
    card = {
        "name": "Weather Agent",
        "skills": [{"id": "forecast", "description": "Gives a forecast"}, {"name": "alerts!"}],
    }

    async def serve(request: Request) -> bytes:
        return http(200, "application/json", json.dumps(card).encode())

    async with peer(serve) as one:
        tools = await agent_tools(agent(card=one.url + "/.well-known/agent-card.json"))
        assert [tool.name for tool in tools] == ["Weather_Agent_forecast", "Weather_Agent_alerts_"]
        forecast, alerts = tools
        assert forecast.source == "a2a"
        assert forecast.description == "Gives a forecast"
        assert alerts.description == "alerts!"
        assert len(one.requests) == 1


def calculator(asked: Asked) -> Any:
    match asked.method:
        case "SendMessage":
            return task("submitted")
        case "GetTask":
            return task("completed", "5")
        case _:
            raise AssertionError(asked.method)


async def test_the_full_round_trip_executes_a_tool_over_loopback_http() -> None:
    async with scripted(calculator) as one:
        [add] = await agent_tools(agent(card=one.card_url, poll_every=0.02))
        result = await add.execute({"task": "add 2 and 3"}, CapabilityContext())
        assert not result.is_error
        assert result.output == "5"
        assert result.metadata["agent"] == "Calc Agent"
        assert result.metadata["task_id"] == "t1"
        assert result.metadata["state"] == "completed"
        assert result.metadata["polls"] == 1
        assert result.metadata["ms"] >= 20
        [sent, polled] = one.asked
        assert sent.params["message"]["parts"] == [{"kind": "text", "text": "add 2 and 3"}]
        assert sent.params["message"]["role"] == "user"
        assert sent.params["configuration"] == {"blocking": False}
        assert "a2a-version" not in sent.http.headers
        assert polled.params == {"id": "t1"}


async def test_a_failing_peer_raises_and_the_status_is_told() -> None:
    async def serve(request: Request) -> bytes:
        return http(500, "text/plain", b"card lookup failed")

    async with peer(serve) as one:
        url = one.url + "/.well-known/agent-card.json"
        with pytest.raises(CardError, match="card lookup failed") as caught:
            await agent_tools(agent(card=url))
        assert (caught.value.url, caught.value.status) == (url, 500)
        assert len(one.requests) == 1


# the rest of what it promises


def test_making_a_descriptor_touches_no_network_and_hides_what_is_secret() -> None:
    made = agent("http://user:hush@127.0.0.1:9/card.json?key=hush", {"authorization": "Bearer hush"}, id="x")
    assert isinstance(made, Agent)
    assert (made.timeout, made.poll_every, made.allow_origins, made.id) == (300.0, 1.0, (), "x")
    assert "hush" not in repr(made)


@pytest.mark.parametrize("times", [{"timeout": 0}, {"timeout": float("nan")}, {"poll_every": -1}])
def test_a_time_that_is_none_is_refused_at_once(times: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(times))):
        agent("http://127.0.0.1:9", **times)  # pyright: ignore[reportArgumentType]


async def test_every_tool_takes_one_task_and_nothing_else() -> None:
    async with scripted(calculator) as one:
        [add] = await agent_tools(agent(one.card_url))
        assert isinstance(add, Tool)
        schema = add.input_schema
        assert (schema["type"], schema["required"], schema["additionalProperties"]) == ("object", ["task"], False)
        assert list(schema["properties"]) == ["task"]
        assert schema["properties"]["task"]["type"] == "string"
        for arguments in ({}, {"task": 5}, {"task": "x", "more": 1}):
            result = await add.execute(arguments)
            assert result.code == "invalid_input"
        assert one.asked == []


async def test_a_tool_can_be_invoked_as_the_capability_it_is() -> None:
    async with scripted(calculator) as one:
        [add] = await agent_tools(agent(one.card_url))
        result = await add.invoke(InvocableRequest(input={"task": "x"}, call_id="1"), CapabilityContext())
        assert isinstance(result, InvocableResult)
        assert result.text == "5"


async def test_the_tools_can_be_registered_in_a_workbench() -> None:
    async with scripted(calculator) as one, Workbench() as bench:
        bench.register(*await agent_tools(agent(one.card_url)))
        [tool] = bench.tools()
        assert (tool.name, tool.source) == ("Calc_Agent_add", "a2a")
        result = await bench.call("Calc_Agent_add", {"task": "add 2 and 3"})
        assert (result.output, result.metadata["state"], result.metadata["task_id"]) == ("5", "completed", "t1")
        assert (await tool.execute({"task": "again"})).output == "5"


def test_importing_the_face_is_cheap() -> None:
    code = (
        "import sys, anykit.a2a; anykit.a2a.agent('http://h'); "
        "print([m for m in ('aiohttp', 'cryptography', 'starlette', 'sqlalchemy', 'a2a') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=9)
    assert done.stdout.strip() == "[]"


def test_tools_without_a_source_leave_nothing_open_when_their_loop_ends(tmp_path: Path) -> None:
    code = """
import asyncio, json, sys, warnings
from anykit.a2a import agent, agent_tools

async def main():
    async def serve(reader, writer):
        while head := await reader.readuntil(b"\\r\\n\\r\\n"):
            size = [int(l.split(b":")[1]) for l in head.split(b"\\r\\n") if l.lower().startswith(b"content-length")]
            body = json.loads(await reader.readexactly(size[0])) if size else None
            answer = {"name": "A", "skills": [{"id": "s"}]} if body is None else {
                "jsonrpc": "2.0", "id": body["id"], "result": {"id": "t", "status": {"state": "completed"}}}
            data = json.dumps(answer).encode()
            writer.write(b"HTTP/1.1 200 X\\r\\ncontent-type: application/json\\r\\ncontent-length: %d\\r\\n\\r\\n" % len(data) + data)
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    [tool] = await agent_tools(agent(f"http://127.0.0.1:{port}/card.json"))
    assert not (await tool.execute({"task": "x"})).is_error
    print("ran")

asyncio.run(main())
"""
    command = [sys.executable, "-W", "error", "-X", "dev", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=9, cwd=tmp_path)
    assert done.stdout.strip() == "ran"
    assert "Unclosed" not in done.stderr
    assert "never retrieved" not in done.stderr


# the entry point of configured sources


def opened(**table: Any) -> Source:
    source = open_source(SourceConfig.model_validate(table), Opening(folder=Path("/srv"), connect_timeout=3.0))
    assert isinstance(source, Source)
    return source


def test_a_url_is_a_source_whose_tools_are_named_already() -> None:
    source = opened(target="http://user:pw@127.0.0.1:7777/", kind="a2a")
    assert (source.name, source.kind, source.prefixed) == ("_127_0_0_1_7777", "a2a", False)
    assert source.location == "http://127.0.0.1:7777/"
    assert isinstance(source.provider, A2ASource)


def test_a_named_one_keeps_its_name_and_hides_its_token() -> None:
    source = opened(target="https://risk.example/card.json", kind="a2a", name="risk", token="hush")
    assert source.name == "risk"
    assert "hush" not in repr(source)
    assert isinstance(source.provider, A2ASource)
    assert source.provider.agent.headers["authorization"] == "Bearer hush"
