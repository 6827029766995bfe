"""CPU of the peer's `execute` of the same functions. Prints one JSON line."""

import asyncio
import json
import sys
import time

from toolnexus import create_toolkit, define_tool


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


async def add_async(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


async def main() -> None:
    rounds = {}
    async with await create_toolkit(extra_tools=[define_tool(add), define_tool(add_async)], builtins=False) as toolkit:
        for name in ("add", "add_async"):
            for _ in range(200):  # warm
                result = await toolkit.execute(name, {"a": 2, "b": 3})
            assert result.output == "5", result
            rounds[name] = []
            for _ in range(7):
                cpu, wall = time.process_time(), time.perf_counter()
                for _ in range(1000):
                    await toolkit.execute(name, {"a": 2, "b": 3})
                rounds[name].append((time.process_time() - cpu, time.perf_counter() - wall))
    json.dump(
        {name: [min(column) * 1000 for column in zip(*values, strict=True)] for name, values in rounds.items()},
        sys.stdout,
    )


asyncio.run(main())
