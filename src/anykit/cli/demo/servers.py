"""The steps with MCP servers: two of nothing but the standard library come in, and go out over every protocol."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from anykit.a2a import agent
from anykit.app import Workbench
from anykit.app.config import SourceConfig
from anykit.capabilities import Suspension
from anykit.sources.a2e import A2EClient

from .agents import CALL_SECONDS, PATIENCE, SENTENCE
from .stage import START_SECONDS, command, listening, require
from .steps import Step

LEDGER = str(Path(__file__).with_name("ledger.py"))
FILE = "servers.toml"
WANTED = {"words": 5, "letters": 21}


@dataclass(frozen=True, slots=True)
class ServerStage:
    """Servers of somebody else, and our own host with them in it."""

    transport: str
    title: str
    folder: Path
    server_url: str
    """Of the server over HTTP."""
    host_url: str

    def bench(self, *, settle: float = PATIENCE) -> Workbench:
        """A workbench with the same servers."""
        sources = [SourceConfig.model_validate(entry) for entry in entries(self.server_url)]
        return Workbench(*sources, data_dir=self.folder / "data", settle=settle)


def entries(server_url: str) -> list[dict[str, Any]]:
    """A server over stdio, one over HTTP, and one that is hung, as they stand in a file."""
    return [
        {"name": "desk", "kind": "mcp", "command": sys.executable, "args": [LEDGER]},
        {"name": "shop", "kind": "mcp", "url": server_url},
        {"name": "hung", "kind": "mcp", "command": sys.executable, "args": [LEDGER, "hung"]},
    ]


@asynccontextmanager
async def with_servers(folder: Path) -> AsyncGenerator[ServerStage]:
    """The server over HTTP and our host, each in a process of its own; who needs the others starts them."""
    async with contextlib.AsyncExitStack() as stack:
        server_url = await stack.enter_async_context(listening([sys.executable, LEDGER, "http"], folder))
        sources = "\n".join(f"  {{ {_toml(entry)} }}," for entry in entries(server_url))
        (folder / FILE).write_text(f'data_dir = "data"\nsources = [\n{sources}\n]\n')
        host = [sys.executable, "-m", "anykit", "serve", "--config", str(folder / FILE), "--port", "0"]
        host_url = await stack.enter_async_context(listening(host, folder))
        title = f"two servers in plain Python, on stdio and on {server_url}; anykit serve, {host_url}"
        yield ServerStage("mcp", title, folder, server_url, host_url)


def _toml(entry: dict[str, Any]) -> str:
    return ", ".join(f"{key} = {json.dumps(value)}" for key, value in entry.items())


async def isolate_servers(stage: ServerStage) -> str:
    """Two servers are usable while a third says nothing, which keeps nobody from closing."""
    begun = time.monotonic()
    async with stage.bench(settle=0) as bench:
        for name in ("desk_tally", "shop_tally"):
            result = await bench.call(name, {"text": SENTENCE}, timeout=PATIENCE)
            require(result.structured == WANTED, f"{name} answered {result.output[:200]!r}")
        took = time.monotonic() - begun
        states = {source.name: source.state for source in bench.sources()}
        require(states["hung"].status == "connecting", f"the hung one is {states['hung'].status}")
        spoken = (states["desk"].detail or {}).get("protocol", "?")
    require(time.monotonic() - begun < 2 * PATIENCE, "the hung one kept the workbench from closing")
    return f"over stdio and HTTP {WANTED['words']} words, in MCP {spoken}, after {took:.2f} s; the hung one: connecting"


async def read_and_prompt(stage: ServerStage) -> str:
    """A resource is read and a prompt is filled in; neither is a tool."""
    read, filled = await asyncio.gather(
        command(stage.folder, FILE, "read", "ledger://today"),
        command(stage.folder, FILE, "prompt", "desk_remind", "who=Ann"),
    )
    require(read == "tea: 2", f"the resource is {read[:200]!r}")
    require(filled == "Remind Ann of the tea.", f"the prompt is {filled[:200]!r}")
    return f"anykit read ledger://today -> {read!r}; anykit prompt desk_remind who=Ann -> {filled!r}"


async def one_result_everywhere(stage: ServerStage) -> str:
    """The tool of the stdio server, called at our host over MCP in both eras, over A2A and over A2E."""
    found: dict[str, Any] = {}
    async with A2EClient(stage.host_url, connect_timeout=START_SECONDS) as client:
        async with asyncio.timeout(PATIENCE):
            while "desk_tally" not in {tool.name for tool in await client.tools.list(include_deferred=True)}:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)
        found["A2E"] = (await client.tools.call("desk_tally", {"text": SENTENCE}, timeout=CALL_SECONDS)).data
    for mode in ("2026-07-28", "legacy"):
        version, found[f"MCP {mode}"] = await _over_mcp(stage.host_url, mode)
        require((version == mode) == (mode != "legacy"), f"{mode} became {version}")
    async with _as_agent(stage) as bench:
        found["A2A"] = (await bench.call(_skill(bench, "desk_tally"), {"task": SENTENCE})).structured
    wrong = {name: value for name, value in found.items() if value != WANTED}
    require(not wrong, f"other results: {wrong}")
    return f"{', '.join(found)}: {json.dumps(WANTED)}"


async def _over_mcp(host_url: str, mode: Literal["2026-07-28", "legacy"]) -> tuple[str, Any]:
    """The revision that the official client speaks, and what it gets."""
    from mcp import Client  # noqa: PLC0415 - a second of imports, for this step only

    async with Client(f"{host_url}/mcp", mode=mode, read_timeout_seconds=CALL_SECONDS) as client:
        result = await client.call_tool("desk_tally", {"text": SENTENCE})
        return client.protocol_version, result.structured_content


@asynccontextmanager
async def _as_agent(stage: ServerStage) -> AsyncGenerator[Workbench]:
    """Our host as an A2A agent, in a workbench of somebody else."""
    host = agent(stage.host_url, timeout=CALL_SECONDS)
    async with Workbench(agents=[host], data_dir=stage.folder / "other", settle=PATIENCE) as bench:
        yield bench


def _skill(bench: Workbench, name: str) -> str:
    found = [tool.name for tool in bench.tools() if tool.name.endswith(name)]
    require(len(found) == 1, f"the skill {name} is not on the card: {[tool.name for tool in bench.tools()]}")
    return found[0]


async def answer_over_a2a(stage: ServerStage) -> str:
    """The MCP server asks in the middle of a call; whoever called over A2A answers, and the call goes on."""
    async with _as_agent(stage) as bench:
        asked = await bench.call(_skill(bench, "shop_order"), {"task": "tea"})
        suspension = asked.suspension
        require(isinstance(suspension, Suspension), f"it did not ask: {asked.output[:200]!r}")
        if suspension is None:
            return ""
        require("How much tea?" in suspension.prompt, f"it asked {suspension.prompt[:200]!r}")
        done = await bench.answer(suspension.id, data={"amount": 2})
    require(done.output == "ordered: 2 x tea", f"the answer led to {done.output[:200]!r}")
    return f"{suspension.prompt} 2 -> {done.output!r}"


MCP_STEPS = (
    Step("two MCP servers come in, a hung one costs only itself", isolate_servers),
    Step("a resource is read and a prompt filled in", read_and_prompt),
    Step("one tool, one result over MCP, A2A and A2E", one_result_everywhere),
    Step("what an MCP server asks is answered over A2A", answer_over_a2a),
)
"""What `anykit demo` shows with MCP servers. Later ones are added here."""
