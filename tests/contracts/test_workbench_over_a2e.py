"""Remote hosts in a workbench: names, isolation, loss."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from anykit import Workbench, tool
from anykit.a2e import A2ESource
from anykit.sources import Backoff
from anykit.testing import ScriptedHost, scripted_host
from anykit.testing.scripted import called

pytestmark = pytest.mark.anyio

QUICK = Backoff(0.01, 0.05)


@tool
def local(text: str) -> str:
    """Is here."""
    return text


@pytest.fixture
async def host() -> AsyncGenerator[ScriptedHost]:
    async with scripted_host([{"name": "remote", "description": "Is there."}]) as made:
        yield made


async def test_b003_two_hosts_with_the_same_tool_keep_both() -> None:
    """langchain-ai/langchain-mcp-adapters#605: a later source silently replaces an earlier one's tool."""
    lookup = {"name": "lookup", "description": "Looks up."}
    async with scripted_host([lookup]) as one, scripted_host([lookup]) as two:
        for host, word in ((one, "from a"), (two, "from b")):
            host.answers["tool/call/req"] = lambda request, word=word: called(request, word)
        sources = [A2ESource(one.connect, name="store_a"), A2ESource(two.connect, name="store_b")]
        async with Workbench(*sources) as bench:
            with anyio.fail_after(5):
                await bench.settled(4)
            names = sorted(one.name for one in bench.tools())
            assert len(names) == 2
            results = {name: (await bench.call(name)).output for name in names}
            assert sorted(results.values()) == ["from a", "from b"]
            assert [one["tool_name"] for one in one.of_type("tool/call/req")] == ["lookup"]


async def test_b020_a_dead_host_costs_itself_only(host: ScriptedHost) -> None:
    """google/adk-python#5025: one dead server takes the others down."""
    dead = A2ESource("/nonexistent/program", name="dead")
    hung = ScriptedHost()
    hung.answers["handshake/req"] = lambda request: None
    with anyio.fail_after(5):
        async with Workbench(
            dead, A2ESource(host.connect, name="alive"), A2ESource(hung.connect, name="hung"), local, settle=0.5
        ) as bench:
            states = {one.name: one.state for one in bench.sources()}
            assert states["dead"].status == "failed"
            assert "command not found" in states["dead"].reason
            assert states["hung"].status == "connecting"
            assert states["alive"].status == "ready"
            assert (await bench.call("local", {"text": "x"})).output == "x"
            assert (await bench.call("remote", {"a": 1})).structured == {"a": 1}
    await hung.close()


async def test_b023_a_lost_call_ends_as_unknown_and_ran_once(host: ScriptedHost) -> None:
    """zavora-ai/adk-rust#504: the call must not be replayed."""
    count = 0

    async def answer(request: dict[str, Any]) -> object:
        nonlocal count
        count += 1
        if count == 1:
            await host.drop()
            return None
        return called(request, count)

    host.answers["tool/call/req"] = answer
    async with Workbench(A2ESource(host.connect, backoff=QUICK)) as bench:
        with anyio.fail_after(5):
            lost = await bench.call("remote")
            assert (lost.is_error, lost.code) == (True, "unknown")
            assert count == 1
            assert (await bench.call("remote")).output == "2"


async def test_b035_a_tool_that_went_is_unknown_and_a_new_one_is_called(host: ScriptedHost) -> None:
    """smart-mcp-proxy/mcpproxy-go#207: the old list is kept, removed tools stay callable."""
    async with Workbench(A2ESource(host.connect)) as bench:
        with anyio.fail_after(5):
            changes = bench.changes()
            host.tools = [{"name": "other", "description": "Is new."}]
            await host.push({"source": "toolkit"})
            while bench.get("other") is None:
                await anext(changes)
        gone = await bench.call("remote")
        assert gone.code == "unknown_tool"
        assert (await bench.call("other", {"a": 1})).structured == {"a": 1}


async def test_an_unavailable_hosts_tools_stay_listed_and_say_so(host: ScriptedHost) -> None:
    async with Workbench(A2ESource(host.connect, name="there", backoff=Backoff(5.0, 5.0))) as bench:
        with anyio.fail_after(5):
            changes = bench.changes()
            host.refuse = ConnectionRefusedError(111, "Connection refused")
            await host.drop()
            while bench.sources()[0].state.status != "failed":
                await anext(changes)
            assert [one.name for one in bench.tools()] == ["remote"]
            result = await bench.call("remote", timeout=3)
        assert result.is_error
        assert result.code == "unavailable"
