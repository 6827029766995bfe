"""A call of an HTTP tool beside a bare aiohttp call of the same request, in turn on one loop. Prints one JSON line.

CPU is this process alone: the server is another. `get` is a GET with a value in its path and one in its query, `post` a
POST of a small JSON body; both answers are parsed.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import quote

import aiohttp

from anykit import Workbench
from anykit.sources.http import http_tool

ROUNDS = 40
CALLS = 40
WARM = 200


async def cpu_of(call: Callable[[], Awaitable[object]]) -> float:
    """CPU µs of one call, of a block of them."""
    begun = time.process_time()
    for _ in range(CALLS):
        await call()
    return (time.process_time() - begun) / CALLS * 1e6


async def measure(base: str) -> dict[str, float]:
    headers = {"Authorization": "Bearer sesame-open"}
    get = http_tool("get", f"{base}/items/{{id}}", query={"q": "{q}"}, headers=headers)
    post = http_tool(
        "post", f"{base}/items", method="POST", headers=headers, parameters={"name": "string", "n": "integer"}
    )
    with tempfile.TemporaryDirectory() as folder:
        async with Workbench(get, post, data_dir=folder) as bench, aiohttp.ClientSession() as session:

            async def our_get() -> object:
                return await bench.call("get", {"id": "a b", "q": "x y"})

            async def their_get() -> object:
                url = f"{base}/items/{quote('a b', safe='')}"
                async with session.get(url, params={"q": "x y"}, headers=headers) as answer:
                    answer.raise_for_status()
                    return await answer.json()

            async def our_post() -> object:
                return await bench.call("post", {"name": "Ada", "n": 1})

            async def their_post() -> object:
                async with session.post(f"{base}/items", json={"name": "Ada", "n": 1}, headers=headers) as answer:
                    answer.raise_for_status()
                    return await answer.json()

            figures: dict[str, float] = {}
            for name, ours, theirs in (("get", our_get, their_get), ("post", our_post, their_post)):
                for call in (ours, theirs):
                    for _ in range(WARM):
                        await call()
                pairs: list[tuple[float, float]] = []
                for turn in range(ROUNDS):
                    if turn % 2:
                        mine, other = await cpu_of(ours), await cpu_of(theirs)
                    else:
                        other, mine = await cpu_of(theirs), await cpu_of(ours)
                    pairs.append((mine, other))
                figures[name] = statistics.median(mine for mine, _ in pairs)
                figures[f"{name} bare"] = statistics.median(other for _, other in pairs)
                figures[f"{name} ratio"] = statistics.median(mine / other for mine, other in pairs)
    return figures


def main() -> None:
    child = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "http_floor.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        figures = asyncio.run(measure(f"http://127.0.0.1:{int(child.stdout.readline())}"))
        json.dump(figures, sys.stdout)
    finally:
        child.stdin.close()
        child.wait(5)


main()
