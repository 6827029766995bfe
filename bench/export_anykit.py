"""1,000 tools in a catalogue, listed and exported to each provider: prints CPU milliseconds, the first time and then.

The schemas are those that real MCP servers list (`tests/vectors/providers`), each made another by a description of its own.
"""

from __future__ import annotations

import asyncio
import copy
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from anykit import Tool, Workbench
from anykit.tools import ToolSpec

TOOLS = 1000
REPEATED = 15
VECTORS = Path(__file__).parents[1] / "tests" / "vectors" / "providers" / "real-tools.json"


def tools() -> list[Tool]:
    real = [one for server in json.loads(VECTORS.read_text())["servers"].values() for one in server]
    made: list[Tool] = []
    for index in range(TOOLS):
        one = real[index % len(real)]
        schema = {**copy.deepcopy(one["inputSchema"]), "description": f"The arguments of tool {index}"}
        name = f"t{index}_{one['name']}".replace("-", "_")[:64]
        made.append(Tool(ToolSpec(name=name, description=one.get("description", ""), input_schema=schema)))
    return made


def timed(work: Callable[[], Any]) -> float:
    begun = time.process_time()
    work()
    return (time.process_time() - begun) * 1000


async def main() -> dict[str, float]:
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with Workbench(*tools(), data_dir=folder) as bench:
            assert len(bench.tools()) == TOOLS
            exports: dict[str, Callable[[], Any]] = {
                "openai": bench.to_openai,
                "openai-responses": bench.to_openai_responses,
                "anthropic": bench.to_anthropic,
                "gemini": bench.to_gemini,
                "openai strict": lambda: bench.to_openai(strict="auto"),
                "anthropic strict": lambda: bench.to_anthropic(strict="auto"),
            }
            for name, export in exports.items():
                found[f"{name} cold"] = timed(export)
                # The least of several: what it costs, whatever else the machine does.
                found[name] = min(timed(lambda export=export: (bench.tools(), export())) for _ in range(REPEATED))
    return found


if __name__ == "__main__":
    json.dump(asyncio.run(main()), sys.stdout)
