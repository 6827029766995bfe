"""The part `a2a`: remote agents through us, beside the official client."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable

import driver
from report import HERE, PYTHON, columns, figures, row, verdict

ROUNDS = 3


async def with_agents(measure: Callable[[str], None]) -> None:
    async with driver.http_host([PYTHON, str(HERE / "a2a_agent.py")]) as (_, port):
        await asyncio.to_thread(measure, f"http://127.0.0.1:{port}")


def bench_a2a() -> None:
    asyncio.run(with_agents(measure))


def measure(base: str) -> None:
    print(f"\nA2A, agents on the official SDK: medians of {ROUNDS} programs each, in turn; CPU is the client's alone")
    row("CPU µs a call (wall ms)", "anykit", "a2a-sdk client", "ratio")
    ours: list[dict[str, float]] = []
    theirs: list[dict[str, float]] = []
    for turn in range(ROUNDS):
        pair = [(ours, "call_a2a_anykit.py", (base, "speed")), (theirs, "call_a2a_sdk.py", (base,))]
        for runs, program, arguments in reversed(pair) if turn % 2 else pair:
            runs.append(figures(PYTHON, program, *arguments))
    for name, title in (
        ("message", "SendMessage, instant, a Message"),
        ("task", "SendMessage, instant, a Task"),
        ("stream", "SendStreamingMessage, instant"),
    ):
        mine, other = (statistics.median(columns(runs, name)) for runs in (ours, theirs))
        # Ratios of a round, since whatever else the machine does changes from round to round.
        ratio = statistics.median(o[name] / t[name] for o, t in zip(ours, theirs, strict=True))
        held = f"{verdict(ratio <= 1)} (limit 1x)"
        wall, others = (statistics.median(columns(runs, f"{name} wall")) for runs in (ours, theirs))
        row(title, f"{mine:,.0f} ({wall:.1f})", f"{other:,.0f} ({others:.1f})", f"{ratio:.2f}x", held)
    for name, title, limit in (
        ("task late", "300 ms task seen done, looking", 30),
        ("stream late", "300 ms task seen done, streamed", 10),
    ):
        mine = statistics.median(columns(ours, name))
        other = f"{statistics.median(columns(theirs, name)):.1f} ms" if name in theirs[0] else "does not look"
        row(title, f"{mine:.1f} ms", other, "", f"{verdict(mine <= limit)} (limit {limit} ms)")
    at_once = figures(PYTHON, "call_a2a_anykit.py", base, "together")
    for name, title in (("task", "24 calls of 1 s at once, looking"), ("stream", "24 calls of 1 s at once, streamed")):
        row(title, f"{at_once[name]:.2f} s", "", "", f"{verdict(at_once[name] < 1.3)} (limit 1.3 s)")
    five = [figures(PYTHON, "call_a2a_anykit.py", base, "five") for _ in range(ROUNDS)]
    took = statistics.median(columns(five, "five"))
    row("three good agents of five have answered", f"{took:.2f} s", "", "", f"{verdict(took <= 0.5)} (limit 0.5 s)")
