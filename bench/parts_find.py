"""The part `find`: 1,000 tools in the catalogue, searched, listed and looked at through a view. In process; seconds of CPU."""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import Any

from report import row, verdict

from anykit import Workbench
from anykit.runtime import Source
from anykit.tools import Tool, ToolSpec

TOOLS = 1000
ROUNDS = 50
VERBS = ("create", "update", "delete", "list", "get", "search", "send", "archive")
NOUNS = ("invoice", "customer", "order", "ticket", "message", "repository", "issue", "file", "event", "deployment")
QUERIES = (
    "create an invoice for a customer",
    "delete repositry",
    "get_ticket",
    "archiv",
    "deployment 512 status of an event",
)


class Many:
    """A source of many tools."""

    def __init__(self) -> None:
        self._tools = [Tool(_spec(number)) for number in range(TOOLS)]

    def invocables(self) -> list[Tool]:
        return self._tools

    def resources(self) -> list[Any]:
        return []

    def prompts(self) -> list[Any]:
        return []


def _spec(number: int) -> ToolSpec:
    verb, noun = VERBS[number % len(VERBS)], NOUNS[number % len(NOUNS)]
    arguments = {
        f"{other}_id": {"type": "string", "description": f"The id of the {other}, as `list` gives it."}
        for other in NOUNS[:4]
    }
    return ToolSpec(
        name=f"{verb}_{noun}_{number}",
        description=f"{verb.capitalize()}s a {noun} of tenant {number}, with all the options that a person may want.",
        input_schema={"type": "object", "properties": arguments},
    )


def bench_find() -> None:
    asyncio.run(_measured())


async def _measured() -> None:
    config = {"deferred_after": 20, "views": {"part": {"include": ["*_invoice_*", "*_order_*"]}}}
    async with Workbench(Source("many", "bench", Many()), config=config) as bench:
        print(f"\nFinding tools among {TOOLS}: medians of {ROUNDS} rounds, CPU")
        first = await _cpu(lambda: bench.call("find_tools", {"query": QUERIES[0]}), rounds=1)
        row("the first search, which makes the index", f"{first * 1000:.1f} ms")
        for query in QUERIES:
            taken = await _cpu(lambda query=query: bench.call("find_tools", {"query": query}))
            row(f"find_tools {query[:28]!r}", f"{taken * 1000:.2f} ms", "5 ms", "", verdict(taken <= 0.005))
        listed = await _cpu(lambda: _soon(bench.tools))
        row("list all", f"{listed * 1000:.1f} ms", "20 ms", "", verdict(listed <= 0.020))
        rebuilt = await _cpu(lambda: _soon(bench.catalog.rebuild), rounds=5)
        row("a new snapshot", f"{rebuilt * 1000:.1f} ms")
        seen = await _cpu(lambda: _soon(lambda: (bench.catalog.rebuild(), bench.view("part").tools())), rounds=5)
        row("a new snapshot, and a view of it", f"{seen * 1000:.1f} ms")


async def _soon(work: Any) -> None:
    work()


async def _cpu(work: Any, *, rounds: int = ROUNDS) -> float:
    taken: list[float] = []
    for _ in range(rounds):
        begun = time.process_time()
        await work()
        taken.append(time.process_time() - begun)
    return statistics.median(taken)


if __name__ == "__main__":
    bench_find()
