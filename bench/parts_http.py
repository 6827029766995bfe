"""The part `endpoint`: a call of an HTTP tool beside a bare aiohttp call of the same request."""

from __future__ import annotations

import statistics

from report import PYTHON, columns, figures, row, verdict

PROGRAMS = 3
LIMIT = 1.5


def bench_endpoint() -> None:
    print(
        f"\nHTTP tool: CPU µs a call of the client alone, medians of {PROGRAMS} programs; blocks of both in turn on one loop"
    )
    row("", "Workbench.call", "aiohttp", "ratio")
    runs = [figures(PYTHON, "call_http.py") for _ in range(PROGRAMS)]
    for name, title in (("get", "GET, a path and a query value"), ("post", "POST of a JSON body")):
        mine, other, ratio = (statistics.median(columns(runs, key)) for key in (name, f"{name} bare", f"{name} ratio"))
        held = f"{verdict(ratio <= LIMIT)} (limit {LIMIT}x)"
        row(title, f"{mine:,.0f} µs", f"{other:,.0f} µs", f"{ratio:.2f}x", held)
