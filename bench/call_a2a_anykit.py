"""Agents through us, journal on: `call_a2a_anykit.py BASE speed|together|five`. Prints one JSON object.

`speed`: CPU µs and wall ms of a call to an instant agent, and ms from a 300 ms task's end until its result is here, by the agent.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable

from anykit import Workbench
from anykit.a2a import agent

ROUNDS, CALLS, LATE, TOGETHER = 3, 40, 7, 3
Ask = Callable[[str, str], Awaitable[str]]


async def speed(ask: Ask, names: list[str], late: list[str]) -> dict[str, float]:
    """The same for whoever asks: `ask(agent, text)` gives the answer's text. `late` are those whose lateness counts."""
    found: dict[str, float] = {}
    for name in names:
        for _ in range(10):  # warm
            answer = await ask(name, "now")
        assert answer == "now", answer
        rounds, walls = [], []
        for _ in range(ROUNDS):
            cpu = time.process_time()
            for _ in range(CALLS):
                start = time.perf_counter()
                await ask(name, "now")
                walls.append((time.perf_counter() - start) * 1e3)
            rounds.append((time.process_time() - cpu) / CALLS * 1e6)
        found[name], found[f"{name} wall"] = min(rounds), statistics.median(walls)
        if name in late:
            lateness = []
            for _ in range(LATE):
                ended = float(await ask(name, "0.3"))
                lateness.append((time.monotonic() - ended) * 1000)
            found[f"{name} late"] = statistics.median(lateness)
    return found


async def together(ask: Ask, names: list[str]) -> dict[str, float]:
    """Seconds that 24 calls of 1 s take, made at once."""
    found: dict[str, float] = {}
    for name in names:
        await ask(name, "now")
        rounds = []
        for _ in range(TOGETHER):
            start = time.perf_counter()
            await asyncio.gather(*(ask(name, "1.0") for _ in range(24)))
            rounds.append(time.perf_counter() - start)
        found[name] = statistics.median(rounds)
    return found


async def five(base: str, folder: str) -> dict[str, float]:
    """Seconds until each good one of five has answered, from before the workbench is made."""
    names = ["good1", "hung", "good2", "broken", "good3"]
    start = time.perf_counter()
    agents = [agent(f"{base}/{name}", id=name) for name in names]
    async with Workbench(agents=agents, data_dir=folder, settle=0) as bench:
        good = [name for name in names if name.startswith("good")]
        answers = await asyncio.gather(*(bench.call(f"{name}_ask", {"task": "now"}) for name in good))
        took = time.perf_counter() - start
        assert all(answer.output == "now" for answer in answers), answers
        states = {source.name: source.state for source in bench.sources()}
        ready = [name for name, state in states.items() if state.status == "ready"]
        assert sorted(ready) == good, states
        assert states["broken"].reason, states
    return {"five": took}


async def main(base: str, what: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        if what == "five":
            return await five(base, folder)
        names = ["message", "task", "stream"]
        agents = [agent(f"{base}/{name}", id=name) for name in names]
        async with Workbench(agents=agents, data_dir=folder, settle=5) as bench:

            async def ask(name: str, text: str) -> str:
                result = await bench.call(f"{name}_ask", {"task": text})
                assert not result.is_error, result
                return result.output

            return await (speed(ask, names, names[1:]) if what == "speed" else together(ask, names[1:]))


if __name__ == "__main__":
    json.dump(asyncio.run(main(*sys.argv[1:])), sys.stdout)
