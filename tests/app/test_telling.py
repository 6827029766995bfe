"""An MCP server that has to be told something, told in a workbench that runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from anykit import Workbench
from anykit.capabilities import InvalidInput

pytestmark = pytest.mark.anyio

PEER = Path(__file__).parents[1] / "sources" / "mcp" / "peers" / "stdio.py"
SCRIPT = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}


def file(folder: Path) -> Path:
    server = {"command": sys.executable, "args": [str(PEER), json.dumps(SCRIPT)], "env": {"KEY": "${input:key}"}}
    data = {
        "inputs": [{"id": "key", "type": "promptString", "password": True, "description": "The key"}],
        "servers": {"asking": server, "other": {**server, "env": {}}},
    }
    place = folder / "servers.json"
    place.write_text(json.dumps(data))
    return place


def states(bench: Workbench) -> dict[str, str]:
    return {source.name: source.state.status for source in bench.sources()}


async def test_a_server_starts_once_it_was_told_what_it_asks_for(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("THE_KEY", "s3cret")
    place = file(tmp_path)
    async with Workbench(place, data_dir=tmp_path / "data", settle=5) as bench:
        assert states(bench) == {"asking": "failed", "other": "ready"}
        other = bench.catalog.snapshot.sources["other"].provider
        with pytest.raises(InvalidInput) as wrong:
            await bench.configure("asking", {"kee": "x"})
        assert wrong.value.errors
        with pytest.raises(InvalidInput):
            await bench.configure("asking", {"key": "${NOT_SET}"})
        assert states(bench)["asking"] == "failed"
        assert (await bench.configure("asking", {"key": "${THE_KEY}"})).status == "ok"
        await bench.settled(5)
        assert states(bench) == {"asking": "ready", "other": "ready"}
        assert bench.catalog.snapshot.sources["other"].provider is other
        assert not (await bench.call("asking_echo", {})).is_error
    async with Workbench(place, data_dir=tmp_path / "data", settle=5) as bench:
        assert states(bench) == {"asking": "ready", "other": "ready"}
    assert not any(b"s3cret" in one.read_bytes() for one in (tmp_path / "data").rglob("*") if one.is_file())


async def test_a_table_of_ours_may_ask_too(tmp_path: Path) -> None:
    table = {
        "name": "mine",
        "kind": "mcp",
        "command": sys.executable,
        "args": [str(PEER), json.dumps(SCRIPT), "${input:at}"],
        "env": {"KEY": "${input:key}"},
        "inputs": [{"id": "key", "password": True}, {"id": "at", "default": "eu"}],
    }
    config = {"sources": [table], "data_dir": str(tmp_path / "data")}
    async with Workbench(config=config, settle=5) as bench:
        [source] = bench.sources()
        assert "needs the input 'key'" in source.state.reason
        await bench.configure("mine", {"key": "k"})
        await bench.settled(5)
        assert states(bench) == {"mine": "ready"}
