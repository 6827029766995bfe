"""Run the parts, ours and the others' in turn, and print medians and ratios. `bench/run.sh [PART...]`."""

from __future__ import annotations

import asyncio
import datetime
import importlib.metadata
import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import driver
import report
from parts_a2a import bench_a2a
from parts_export import bench_export
from parts_find import bench_find
from parts_http import bench_endpoint
from parts_mcp import bench_mcp
from report import ANYKIT, HERE, PYTHON, ROOT, row, run, verdict

PEERS = report.TOOLNEXUS
ROUNDS = 5
IDLE_SESSIONS = 1000


# call


def bench_call() -> None:
    print(
        "\nIn-process call of a function tool: CPU µs a call, best of seven rounds of 1,000, median of the programs' bests"
    )
    row("", "anykit", "toolnexus 0.21", "ratio")
    ours: list[dict[str, list[float]]] = []
    peers: list[dict[str, list[float]]] = []
    has_peer = report.has(PEERS, "toolnexus")
    for _ in range(3):
        ours.append(json.loads(run(PYTHON, "call_anykit.py")))
        if has_peer:
            peers.append(json.loads(run(PEERS, "call_toolnexus.py")))
    for name, title, limited in (
        ("add", "sync function (runs in a thread)", True),
        ("add_async", "async function", False),
    ):
        mine = statistics.median(one[name][0] for one in ours)
        theirs = statistics.median(one[name][0] for one in peers) if peers else None
        held = verdict(mine <= 60, theirs is None or mine <= theirs / 2) if limited else verdict(mine <= 60)
        limit = "limit 60 µs and 0.50x" if limited else "limit 60 µs; the peer checks no arguments and keeps no journal"
        ratio = f"{mine / theirs:.2f}x" if theirs else ""
        row(title, f"{mine:.1f} µs", f"{theirs:.1f} µs" if theirs else "not installed", ratio, f"{held} ({limit})")


# stdio, http


def bench_wire(transport: str) -> None:
    print(f"\nA2E tool/call over {transport}: medians of {ROUNDS} rounds, hosts run in turn")
    row("", "anykit serve", "floor", "ratio")
    data_dir = str(ROOT / ".venvs/bench-data")
    flags = ["--stdio", "a2e"] if transport == "stdio" else ["--port", "0"]
    config = HERE / "anykit.toml"  # names nothing: whoever runs this has their own file, perhaps
    programs = {
        "ours": [ANYKIT, "serve", str(HERE / "tools.py"), "--config", str(config), *flags],
        "floor": [PYTHON, str(HERE / f"floor_{transport}.py")],
    }
    os.environ["ANYKIT_DATA_DIR"] = data_dir
    together = 6000 if transport == "stdio" else 2000
    rates: dict[str, list[driver.Rates]] = {name: [] for name in programs}
    for turn in range(ROUNDS):
        for name in sorted(programs, reverse=turn % 2 == 1):
            naps = 50 if name == "ours" else 0
            rates[name].append(
                asyncio.run(driver.run_host(transport, programs[name], alone=500, together=together, nap=naps))
            )

    def report(title: str, of: Callable[[driver.Rates], float], shown: str, *, lower_is_better: bool) -> None:
        ours, floor = ([of(one) for one in rates[name]] for name in ("ours", "floor"))
        # Ratios of a round, since whatever else the machine does changes from round to round.
        ratio = statistics.median(o / f if lower_is_better else f / o for o, f in zip(ours, floor, strict=True))
        values = (shown.format(statistics.median(values)) for values in (ours, floor))
        row(title, *values, f"{ratio:.2f}x", f"{verdict(ratio <= 2)} (limit 2x)")

    report("1 in flight, p50", lambda r: r.alone, "{:.0f} µs", lower_is_better=True)
    report("32 in flight", lambda r: r.together, "{:,.0f}/s", lower_is_better=False)
    nap = statistics.median(one.nap for one in rates["ours"]) / 1000
    row("a tool that takes 5 ms, p50", f"{nap:.2f} ms", "", "", f"{verdict(nap <= 8)} (limit 8 ms)")


# import

USAGE = """
import re, resource, sys, time
cpu = time.process_time()
try:
    peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1024
except OSError:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
print(cpu, peak)
"""
"""CPU seconds and peak MB of the program so far; `ru_maxrss` would begin with what the parent had."""
OUR_IMPORT = "from anykit import Workbench, Toolkit, tool\n"
THEIR_IMPORT = """
import asyncio, anyio, jsonschema_rs
from pydantic import BaseModel
class Model(BaseModel):
    a: int
    b: str = ""
"""


def bench_import() -> None:
    print("\nImport: CPU seconds and peak memory of a program that only imports, medians of 11 runs in turn")
    row("", "anykit", "the four", "ratio")
    measured: dict[str, list[list[float]]] = {OUR_IMPORT: [], THEIR_IMPORT: []}
    for program in measured:
        run(PYTHON, "-c", program)  # once for the bytecode
    for _ in range(11):
        for program, values in measured.items():
            values.append([float(value) for value in run(PYTHON, "-c", program + USAGE).split()])
    (cpu, peak), (their_cpu, their_peak) = (
        [statistics.median(column) for column in zip(*values, strict=True)] for values in measured.values()
    )
    limit = 1.35 * their_cpu + 0.05
    held = verdict(cpu <= limit)
    row("CPU", f"{cpu:.3f} s", f"{their_cpu:.3f} s", f"{cpu / their_cpu:.2f}x", f"{held} (limit {limit:.3f} s)")
    held = verdict(peak <= their_peak + 8)
    row(
        "peak memory",
        f"{peak:.1f} MB",
        f"{their_peak:.1f} MB",
        f"{peak / their_peak:.2f}x",
        f"{held} (limit 8 MB more)",
    )


# serve


def resident(pid: int) -> float:
    """MB of memory that a process has."""
    return (
        int(subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True).stdout)
        / 1024
    )


async def measure_serve() -> tuple[float, float]:
    """Seconds until it listens, and MB that idle sessions take."""
    os.environ["ANYKIT_DATA_DIR"] = str(ROOT / ".venvs/bench-data")
    command = [ANYKIT, "serve", str(HERE / "tools.py"), "--config", str(HERE / "anykit.toml"), "--port", "0"]
    start = time.perf_counter()
    async with asyncio.timeout(driver.DEADLINE), driver.http_host(command) as (child, port):
        listening = time.perf_counter() - start
        connection = driver.Connection(*await asyncio.open_connection("127.0.0.1", port))
        await driver.open_stream(port, await driver.open_session(connection))
        await asyncio.sleep(2)  # what the host loads after listening is not the sessions'
        before = resident(child.pid)
        streams = [await driver.open_stream(port, await driver.open_session(connection)) for _ in range(IDLE_SESSIONS)]
        taken = resident(child.pid) - before
        for writer in (connection.writer, *streams):
            writer.close()
    return listening, taken


def bench_serve() -> None:
    print("\nanykit serve: medians of 3 runs")
    runs = [asyncio.run(measure_serve()) for _ in range(3)]
    listening, taken = (statistics.median(column) for column in zip(*runs, strict=True))
    row("start to listening", f"{listening:.2f} s", "", "", f"{verdict(listening <= 1)} (limit 1 s)")
    row(
        f"{IDLE_SESSIONS:,} idle sessions, streams open",
        f"{taken:.1f} MB",
        "",
        "",
        f"{verdict(taken < 100)} (limit 100 MB)",
    )


# config


def bench_config() -> None:
    print("\nA configuration of 50 sources read and checked: CPU ms, medians of 3 programs")
    row("", "the first time", "again")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "anykit.toml"
        entry = '  {{ kind = "mcp", name = "s{0}", command = "x", args = ["${{HOME}}"], env = {{ A = "b" }} }},'
        file.write_text("\n".join(["sources = [", *(entry.format(number) for number in range(50)), "]"]))
        runs = [report.figures(PYTHON, "read_config.py", str(file)) for _ in range(3)]
    first, again = (statistics.median(report.columns(runs, name)) for name in ("first", "again"))
    row("50 sources", f"{first:.0f} ms", f"{again:.1f} ms", "", f"{verdict(first < 100)} (limit 100 ms)")


PARTS: dict[str, Callable[[], None]] = {
    "call": bench_call,
    "stdio": lambda: bench_wire("stdio"),
    "http": lambda: bench_wire("http"),
    "import": bench_import,
    "serve": bench_serve,
    "a2a": bench_a2a,
    "config": bench_config,
    "find": bench_find,
    "mcp": bench_mcp,
    "export": bench_export,
    "endpoint": bench_endpoint,
}


def processor() -> str:
    try:
        return re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())[1]  # type: ignore[index]
    except (OSError, TypeError):
        return platform.processor() or platform.machine()


def allow_sockets() -> None:
    """As many as the system lets us have; the hosts inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * IDLE_SESSIONS if hard == resource.RLIM_INFINITY else min(2 * IDLE_SESSIONS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def main() -> None:
    allow_sockets()
    parts = sys.argv[1:] or list(PARTS)
    if unknown := [part for part in parts if part not in PARTS]:
        sys.exit(f"unknown part {unknown[0]!r}; there are {', '.join(PARTS)}")
    versions = ["anykit", "pydantic", "jsonschema_rs", "uvicorn", "uvloop", "aiohttp", "a2a-sdk", "mcp"]
    print(f"{processor()}, {os.cpu_count()} cores, {platform.platform()}, Python {platform.python_version()}")
    print(", ".join(f"{name} {importlib.metadata.version(name)}" for name in versions))
    command = "make bench" if len(sys.argv) == 1 else f"bench/run.sh {' '.join(sys.argv[1:])}"
    print(f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC, {command}")
    for part in parts:
        PARTS[part]()


main()
