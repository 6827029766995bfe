"""CPU of `Workbench.call` of a function tool: validation, policy hook and journal on. Prints one JSON line."""

import asyncio
import json
import sys
import tempfile
import time

from anykit import Workbench, tool


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


async def add_async(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


async def main() -> None:
    rounds = {}
    with tempfile.TemporaryDirectory() as folder:
        async with Workbench(tool(add), tool(add_async), data_dir=folder) as bench:
            for name in ("add", "add_async"):
                for _ in range(200):  # warm
                    result = await bench.call(name, {"a": 2, "b": 3})
                assert result.output == "5", result
                rounds[name] = []
                for _ in range(7):
                    cpu, wall = time.process_time(), time.perf_counter()
                    for _ in range(1000):
                        await bench.call(name, {"a": 2, "b": 3})
                    rounds[name].append((time.process_time() - cpu, time.perf_counter() - wall))
    json.dump(
        {name: [min(column) * 1000 for column in zip(*values, strict=True)] for name, values in rounds.items()},
        sys.stdout,
    )


asyncio.run(main())
