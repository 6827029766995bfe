"""What MCP servers behind a host may ask for, which of them an agent may register, and questions that outlive the process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from anykit import Workbench
from anykit.app.registering import REGISTERED_SERVERS, AllowedServers
from anykit.app.serving import a2e_host, serve_lines
from anykit.capabilities import Unavailable
from anykit.transports import memory_pair
from servers.agents import WAIT, Agent, agent_of
from servers.mcp.peers import Lines, call, envelope
from servers.mcp.test_asking import Kept

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

ASKS = '''
import asyncio
from typing import Any
import mcp_types as types
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("asks")

@server.tool()
async def think(ctx: Context[Any, Any]) -> str:
    """Asks the client's model."""
    said = await ctx.session.create_message(
        messages=[types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Capital of Italy?"))],
        max_tokens=9,
    )
    return said.content.text

@server.tool()
async def where(ctx: Context[Any, Any]) -> str:
    """Asks where to work."""
    told = await ctx.session.list_roots()
    return " ".join(str(root.uri) for root in told.roots)

@server.tool()
def ready() -> str:
    """Says yes."""
    return "yes"

server.run("stdio")
'''


@pytest.fixture
def asks(tmp_path: Path) -> list[str]:
    script = tmp_path / "asks.py"
    script.write_text(ASKS)
    return [sys.executable, "-W", "ignore", str(script)]


def config(command: list[str], **more: Any) -> dict[str, Any]:
    return {"sources": [{"kind": "mcp", "name": "asks", "command": command, "era": "legacy"}], **more}


async def test_a_server_uses_the_model_of_the_agent_that_calls_where_the_operator_offers_it(
    asks: list[str], tmp_path: Path
) -> None:
    said = config(asks, offers={"sampling": True})
    async with Workbench(config=said, data_dir=tmp_path / "d", settle=20) as bench:
        async with agent_of(a2e_host(bench), "tools", "mcp") as agent:
            id = await agent.send("tool/call/req", tool_name="asks_think", arguments={})
            while (heard := await agent.receive())["type"] != "mcp/sample/req":
                pass
            assert (heard["max_tokens"], heard["messages"][0]["content"]["text"]) == (9, "Capital of Italy?")
            await agent.send("mcp/sample/resp", req_id=heard["id"], content={"type": "text", "text": "Rome"}, model="m")
            assert (await agent.reply_to(id))["data"]["summary"] == "Rome"


async def test_a_server_that_is_offered_nothing_can_ask_for_nothing(asks: list[str], tmp_path: Path) -> None:
    async with Workbench(config=config(asks), data_dir=tmp_path / "d", settle=20) as bench:
        assert (await bench.call("asks_think")).is_error
        assert (await bench.call("asks_where")).is_error
        assert (await bench.call("asks_ready")).output == "yes"


async def test_a_server_is_told_the_roots_of_the_file(asks: list[str], tmp_path: Path) -> None:
    said = config(asks, offers={"roots": [str(tmp_path / "work")]})
    async with Workbench(config=said, data_dir=tmp_path / "d", settle=20) as bench:
        assert (await bench.call("asks_where")).output == (tmp_path / "work").as_uri()


@asynccontextmanager
async def registering(asks: list[str], tmp_path: Path) -> AsyncGenerator[tuple[Agent, Workbench]]:
    said = {"a2e": {"allow_servers": [asks, "http://127.0.0.1:9/mcp"]}}
    async with Workbench(config=said, data_dir=tmp_path / "d") as bench:
        async with agent_of(a2e_host(bench), "tools", "mcp") as agent:
            yield agent, bench


async def test_an_agent_registers_a_server_that_the_operator_allows_and_it_goes_with_the_agent(
    asks: list[str], tmp_path: Path
) -> None:
    async with registering(asks, tmp_path) as (agent, bench):
        reply = await agent.ask("mcp/server/register/req", config={"name": "mine", "cmd": asks})
        assert (reply["ok"], reply["server"]["status"], reply["server"]["tools_count"]) == (True, "ready", 3)
        name = reply["server"]["server_id"]
        assert (await agent.call(f"{name}_ready"))["data"]["summary"] == "yes"
        gone = await agent.ask("mcp/server/unregister/req", server_id=name)
        assert gone["ok"]
        assert bench.tools() == []
        assert (await agent.ask("mcp/server/register/req", config={"name": "mine", "cmd": asks}))["ok"]
        assert len(bench.tools()) == 3
        await agent.transport.close()
        async with asyncio.timeout(WAIT):
            async for _ in bench.changes():
                if not bench.tools():
                    break


async def test_what_is_not_exactly_on_the_list_is_refused(asks: list[str], tmp_path: Path) -> None:
    async with registering(asks, tmp_path) as (agent, bench):
        for wrong in (
            {"cmd": [*asks, "--more"]},
            {"cmd": asks[:1]},
            {"cmd": asks, "env": {"LD_PRELOAD": "x.so"}},
            {"cmd": asks, "cwd": "/"},
            {"url": "http://127.0.0.1:9/mcp/"},
            {"url": "http://127.0.0.1:9/mcp", "cmd": asks},
            {"url": "http://127.0.0.1:9/mcp", "headers": {"x": "y"}},
        ):
            reply = await agent.ask("mcp/server/register/req", config={"name": "evil", **wrong})
            assert reply["type"] == "error", wrong
            assert reply["code"] == "unauthorized", wrong
        assert bench.sources() == []


async def test_only_so_many_are_taken_in_at_a_time() -> None:
    class Growing:
        def __init__(self) -> None:
            self.names: list[str] = []

        async def add(self, source: Any) -> Any:
            self.names.append(source.name)
            return source

        async def remove(self, name: str) -> None:
            self.names.remove(name)

    bench = Growing()
    said = Workbench(config={"a2e": {"allow_servers": ["http://127.0.0.1:9/mcp"]}}).config.a2e
    allowed = AllowedServers(bench, said)

    async def add(number: int) -> str:
        return await allowed.add(f"s{number}", command=[], url="http://127.0.0.1:9/mcp", timeout=0)

    for number in range(REGISTERED_SERVERS):
        await add(number)
    with pytest.raises(Unavailable, match="registered already"):
        await add(99)
    await allowed.remove("s0")
    assert await add(100) == "s100"


@asynccontextmanager
async def host(data: Path) -> AsyncGenerator[Lines]:
    """A workbench that serves MCP over lines, as `anykit serve --stdio mcp` does."""
    async with Workbench(Kept(), data_dir=data) as bench:
        mine, theirs = memory_pair()
        serving = asyncio.create_task(serve_lines(bench, theirs, "mcp"))
        try:
            yield Lines(mine)
        finally:
            await mine.close()
            async with asyncio.timeout(WAIT):
                await serving


async def test_a_client_of_the_new_era_answers_a_question_that_was_asked_before_a_restart(tmp_path: Path) -> None:
    meta = envelope({"elicitation": {"form": {}}})
    async with host(tmp_path) as client:
        [key] = (asked := (await client.ask(call(1, "kept", _meta=meta)))["result"])["inputRequests"]
    again = {
        "requestState": asked["requestState"],
        "inputResponses": {key: {"action": "accept", "content": {"name": "Ann"}}},
    }
    async with host(tmp_path) as client:
        done = (await client.ask(call(2, "kept", _meta=meta, **again)))["result"]
    assert done["content"][0]["text"] == "True {'name': 'Ann'}"
    async with host(tmp_path) as client:
        once = (await client.ask(call(3, "kept", _meta=meta, **again)))["result"]
    assert (once["isError"], once["_meta"]["anykit/code"]) == (True, "unknown_suspension")


async def test_a_state_sealed_with_another_key_is_refused(tmp_path: Path) -> None:
    meta = envelope({"elicitation": {"form": {}}})
    async with host(tmp_path / "one") as client:
        asked = (await client.ask(call(1, "kept", _meta=meta)))["result"]
    async with host(tmp_path / "two") as client:
        again: dict[str, Any] = {"requestState": asked["requestState"], "inputResponses": {}}
        assert (await client.ask(call(2, "kept", _meta=meta, **again)))["error"]["code"] == -32602
