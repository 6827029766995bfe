"""The part `export`: 1,000 tools listed and exported to each model provider."""

from __future__ import annotations

import statistics

from report import PYTHON, columns, figures, row, verdict

ROUNDS = 3
LIMIT = 20.0
"""CPU milliseconds of listing and exporting, once converted."""
TITLES = ("openai", "openai-responses", "anthropic", "gemini", "openai strict", "anthropic strict")


def bench_export() -> None:
    print(f"\n1,000 tools of real MCP servers, listed and exported: CPU ms, medians of {ROUNDS} programs")
    row("for", "again", "first time")
    runs = [figures(PYTHON, "export_anykit.py") for _ in range(ROUNDS)]
    for title in TITLES:
        again = statistics.median(columns(runs, title))
        first = statistics.median(columns(runs, f"{title} cold"))
        row(title, f"{again:.1f} ms", f"{first:.0f} ms", "", f"{verdict(again <= LIMIT)} (limit {LIMIT:.0f} ms)")
