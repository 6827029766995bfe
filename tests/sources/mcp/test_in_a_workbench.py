"""A server's tools in a workbench: names, texts for a model, questions that suspend, servers that are away."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from anykit import Workbench
from anykit.runtime import Source
from anykit.sources.mcp import McpServer, McpSource

from .at_hand import OBJECT, QUICK, child
from .peers.script import Peer
from .test_asking import Asking, form
from .web import serving

pytestmark = pytest.mark.anyio

VALID = re.compile("[A-Za-z_][A-Za-z0-9_-]{0,63}")


def server(name: str, **options: Any) -> Source:
    provider = McpSource(McpServer(name, **options), backoff=QUICK)
    return Source(name, "mcp", provider, prefixed=True)


async def test_b001_and_b005_every_name_can_be_given_to_a_model(tmp_path: Path) -> None:
    """github/copilot-cli#1879, IBM/mcp-context-forge#2528: one odd name makes the provider refuse the whole request."""
    odd = ["crm.leads.find", "stock/item", "Open Door", "_7day_sum", "2fa_check", "地图", "天气", "!!!"]
    tools = [{"name": name, "inputSchema": OBJECT} for name in odd]
    async with serving(Peer({"tools": tools})) as web:
        async with Workbench(server("crm", url=web.url), data_dir=tmp_path, settle=5) as bench:
            names = [tool.name for tool in bench.tools()]
            assert len(set(names)) == len(odd)
            assert all(VALID.fullmatch(name) for name in names)
            for name in names:
                assert not (await bench.call(name, {"a": 1})).is_error
        assert [one["params"]["name"] for one in web.peer.calls("tools/call")] == odd


async def test_b003_two_servers_with_one_name_are_both_there(tmp_path: Path) -> None:
    """langchain-ai/langchain-mcp-adapters#605."""
    tools = [{"name": "lookup", "inputSchema": OBJECT}]
    results = [{"lookup": {"content": [{"type": "text", "text": store}]}} for store in "ab"]
    sources = [
        server(f"store_{store}", command=child({"tools": tools, "results": result}))
        for store, result in zip("ab", results, strict=True)
    ]
    async with Workbench(*sources, data_dir=tmp_path, settle=5) as bench:
        assert [tool.name for tool in bench.tools()] == ["store_a_lookup", "store_b_lookup"]
        assert (await bench.call("store_a_lookup")).output == "a"
        assert (await bench.call("store_b_lookup")).output == "b"


@pytest.mark.parametrize(
    ("result", "output"),
    [
        ({"content": [], "structuredContent": {"id": 7}}, '{"id":7}'),
        (
            {"content": [{"type": "text", "text": "done, 2 rows"}], "structuredContent": {"rows": [1, 2]}},
            'done, 2 rows\n{"rows":[1,2]}',
        ),
        (
            {"content": [{"type": "text", "text": '{ "rows": [1, 2] }'}], "structuredContent": {"rows": [1, 2]}},
            '{ "rows": [1, 2] }',
        ),
        ({"content": [{"type": "text", "text": "only text"}]}, "only text"),
    ],
)
async def test_b036_a_model_reads_all_of_the_data_once(tmp_path: Path, result: Any, output: str) -> None:
    """microsoft/agent-framework#3313, MoonshotAI/kimi-code#2554."""
    source = server("peer", command=child({"results": {"echo": result}}))
    async with Workbench(source, data_dir=tmp_path, settle=5) as bench:
        found = await bench.call("peer_echo")
        assert (found.output, found.structured) == (output, result.get("structuredContent"))


async def test_b038_errors_and_broken_promises_are_told_apart(tmp_path: Path) -> None:
    """IBM/mcp-context-forge#4204, typescript-sdk#1947."""
    schema = {"type": "object", "properties": {"t": {"type": "number"}}, "required": ["t"]}
    tools = [{"name": name, "inputSchema": OBJECT, "outputSchema": schema} for name in ("one", "two", "three")]
    results: dict[str, Any] = {
        "one": {
            "isError": True,
            "content": [{"type": "text", "text": "too many seats"}],
            "structuredContent": {"why": "seats"},
        },
        "two": {"content": [], "structuredContent": {"t": "x"}},
        "three": {"content": [{"type": "text", "text": "ok"}]},
    }
    source = server("peer", command=child({"tools": tools, "results": results}))
    async with Workbench(source, data_dir=tmp_path, settle=5) as bench:
        one = await bench.call("peer_one")
        assert (one.is_error, one.output, one.code) == (True, "too many seats", "execution_failed")
        for name in ("peer_two", "peer_three"):
            broken = await bench.call(name)
            assert (broken.is_error, broken.code) == (True, "invalid_output")
            assert name in broken.output


async def test_a_question_is_answered_through_the_bench(tmp_path: Path) -> None:
    async with serving(Asking({"k": form()})) as web:
        async with Workbench(server("maps", url=web.url), data_dir=tmp_path, settle=5) as bench:
            asked = await bench.call("maps_echo", {"a": 1})
            assert asked.status == "suspended"
            assert asked.output.startswith("maps asks: Which city?")
            assert asked.suspension is not None
            assert asked.suspension.state is None
            wrong = await bench.answer(asked.suspension.id, data={"town": "Rome"})
            assert wrong.code == "invalid_input"
            done = await bench.answer(asked.suspension.id, data={"city": "Rome"})
            assert done.structured == {"got": [{"k": {"action": "accept", "content": {"city": "Rome"}}}], "a": 1}


async def test_a_server_that_is_away_answers_at_once_with_the_reason(tmp_path: Path) -> None:
    async with serving(Peer()) as web:
        async with Workbench(server("peer", url=web.url), data_dir=tmp_path, settle=5) as bench:
            assert not (await bench.call("peer_echo")).is_error
            await web.stop()
            first = await bench.call("peer_echo", timeout=3)
            assert first.code in ("unavailable", "unknown")
            for _ in range(3):
                again = await bench.call("peer_echo", timeout=3)
                assert again.code == "unavailable"
                assert "connection refused" in again.output
            assert [tool.name for tool in bench.tools()] == ["peer_echo"]
            await web.start()
            assert not (await bench.call("peer_echo", timeout=5)).is_error


async def test_resources_and_prompts_never_go_through_tools(tmp_path: Path) -> None:
    script = {"resources": [{"uri": "a://1", "name": "one"}], "prompts": [{"name": "greet"}]}
    async with Workbench(server("peer", command=child(script)), data_dir=tmp_path, settle=5) as bench:
        assert [one.id for one in await bench.resources()] == ["a://1"]
        assert (await bench.read("a://1")).parts[0].kind == "text"
        assert [one.id for one in await bench.prompts()] == ["peer_greet"]
        assert (await bench.prompt("peer_greet", {"who": "Ann"})).messages[0].role == "user"
