"""The part `mcp`: servers in through us, and out again, beside the peers and the least there is."""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import driver
import mcp_driver
from mcp_driver import ERAS, LEGACY, MODERN, Era
from report import ANYKIT, FASTMCP, HANGAR, HERE, PYTHON, TOOLNEXUS, columns, figures, has, row, verdict

ROUNDS = 3
COMES_UP = 10.0
"""Seconds that a server has to list what is behind it."""
CALLS = 150
ABSENT = "not installed"
PROXY_CALLS = 6
"""Calls through a peer that starts its servers anew for each, or lets through 10 a second."""
TOOLS = 1000
UPSTREAM = str(HERE / "mcp_upstream.py")
Measured = list[tuple[float, float]]
"""CPU ms of the server's process and wall ms, by round."""


def child(*arguments: str) -> dict[str, Any]:
    return {"command": PYTHON, "args": ["-S", "-E", UPSTREAM, *arguments]}


def written(folder: Path, name: str, servers: dict[str, Any]) -> str:
    file = folder / f"{name}.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    return str(file)


def serve(file: str, folder: Path) -> list[str]:
    """Our command; the configuration names nothing, since whoever runs this has their own, perhaps."""
    data = str(folder / "data")
    return [ANYKIT, "serve", file, "--config", str(HERE / "anykit.toml"), "--port", "0", "--data-dir", data]


def bench_mcp() -> None:
    print(
        f"\nMCP: medians of {ROUNDS} rounds, programs in turn; CPU is the server's process alone, without its children"
    )
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        row("", "anykit", "toolnexus 0.21")
        start(folder)
        asyncio.run(calls(folder))
        asyncio.run(lists(folder))


def start(folder: Path) -> None:
    slow = written(folder, "slow", {f"s{number}": child("1") for number in range(20)})
    runs = [figures(PYTHON, "mcp_many_anykit.py", slow) for _ in range(ROUNDS)]
    took = statistics.median(columns(runs, "usable"))
    peer = (
        f"{figures(TOOLNEXUS, 'mcp_many_toolnexus.py', slow)['usable']:.1f} s"
        if has(TOOLNEXUS, "toolnexus")
        else ABSENT
    )
    row("20 servers that wait 1 s, all have answered", f"{took:.2f} s", peer, "", f"{verdict(took < 3)} (limit 3 s)")
    hung = {f"hung{number}": child("hung") for number in range(3)}
    for wait, title in (("0", "17 servers beside 3 hung have answered"), ("1", "the same, where the 17 wait 1 s")):
        good = {f"s{number}": child(wait) for number in range(17)}
        file = written(folder, f"hung{wait}", {**hung, **good})
        runs = [figures(PYTHON, "mcp_many_anykit.py", file) for _ in range(ROUNDS)]
        took = statistics.median(columns(runs, "usable"))
        row(title, f"{took:.2f} s", "", "", f"{verdict(took < 2)} (limit 2 s)")
    away, when = runs[-1]["away"], statistics.median(columns(runs, "reported"))
    row("the hung ones are reported (connect is 3 s)", f"{away:.0f}: {when:.2f} s", "", "", verdict(away == 3))


async def calls(folder: Path) -> None:
    async with AsyncExitStack() as stack:

        async def host(command: list[str]) -> tuple[int, int]:
            process, port = await stack.enter_async_context(driver.http_host(command))
            return process.pid, port

        floors = {
            name: await host([PYTHON, str(HERE / "floor_mcp.py"), what])
            for name, what in (("raw ASGI", "raw"), ("SDK low-level", "sdk"))
        }
        web = {"url": f"http://127.0.0.1:{floors['SDK low-level'][1]}/mcp"}
        file = written(folder, "both", {"child": child(), "web": web})
        ours = await host(serve(file, folder))
        proxy = await host([FASTMCP, str(HERE / "mcp_fastmcp.py"), file]) if has(FASTMCP, "fastmcp") else None
        hangar = None
        if has(HANGAR, "mcp_hangar"):
            argv = [PYTHON, "-S", "-E", UPSTREAM]
            hangar = await host([HANGAR, str(HERE / "mcp_hangar_host.py"), str(folder), *argv])
            await until_answered(hangar[1])
        if not await until_listed(ours[1], 2):
            return
        for era in ERAS:
            await calls_in(era, ours, proxy, floors if era == MODERN else {}, hangar if era == LEGACY else None)


async def until_answered(port: int) -> None:
    """Wait until a host that said where it will listen does, and its server is up."""
    async with asyncio.timeout(COMES_UP * 2):
        while True:
            try:
                async with mcp_driver.connected(port, LEGACY) as client:
                    await client.call(mcp_driver.HANGAR_CALL, 1)
                return
            except (OSError, AssertionError, asyncio.IncompleteReadError):
                await asyncio.sleep(0.1)


async def until_listed(port: int, tools: int) -> bool:
    """Wait until what is behind it is there; False where it does not come, and that is printed."""
    said = f"{tools:,} were never listed"
    async with mcp_driver.connected(port, MODERN) as client:
        for _ in range(int(COMES_UP / 0.05)):
            try:
                if await client.list() == tools:
                    return True
            except AssertionError as error:  # no result
                said = str(error)
            await asyncio.sleep(0.05)
    row(f"a server with {tools:,} tools behind it", "", "", "", f"{verdict(False)} ({said})")
    return False


async def calls_in(
    era: Era,
    ours: tuple[int, int],
    proxy: tuple[int, int] | None,
    floors: dict[str, tuple[int, int]],
    hangar: tuple[int, int] | None,
) -> None:
    found: dict[str, Measured] = {}

    async def measure(title: str, server: tuple[int, int], tool: str, count: int) -> None:
        pid, port = server
        async with asyncio.timeout(driver.DEADLINE), mcp_driver.connected(port, era) as client:
            for a in range(2 if count == PROXY_CALLS else 20):  # warm
                await client.call(tool, a)
            found.setdefault(title, []).append(await mcp_driver.measure_calls(client, pid, tool, count))

    for _ in range(ROUNDS):
        for name, server in floors.items():
            await measure(name, server, "add", 2 * CALLS)
        if hangar is not None:
            await measure("hangar", hangar, mcp_driver.HANGAR_CALL, PROXY_CALLS)
        for upstream in ("child", "web"):
            await measure(f"ours {upstream}", ours, f"{upstream}_add", CALLS)
            if proxy is not None:
                await measure(f"proxy {upstream}", proxy, f"{upstream}_add", PROXY_CALLS)
    row(f"CPU ms a call (wall ms), {era}", "anykit serve", "FastMCP proxy", "ratio")
    for upstream, title in (("child", "through to a stdio server"), ("web", "through to an HTTP server")):
        mine, wall = medians(found[f"ours {upstream}"])
        other = found.get(f"proxy {upstream}")
        theirs = "{:.1f} ({:.1f})".format(*medians(other)) if other else ABSENT
        ratio = f"{mine / medians(other)[0]:.2f}x" if other else ""
        row(title, f"{mine:.1f} ({wall:.1f})", theirs, ratio, f"{verdict(mine <= 7)} (limit 7 CPU-ms)")
    if hangar is not None:
        mine, theirs = medians(found["ours child"])[0], medians(found["hangar"])
        row("mcp-hangar, through to a stdio server", "", "{:.1f} ({:.1f})".format(*theirs), f"{mine / theirs[0]:.2f}x")
    for name in floors:
        row(f"the floor, nothing behind it: {name}", "", "{:.1f} ({:.1f})".format(*medians(found[name])))


def medians(rounds: Measured) -> tuple[float, float]:
    cpu, wall = zip(*rounds, strict=True)
    return statistics.median(cpu), statistics.median(wall)


async def lists(folder: Path) -> None:
    async with AsyncExitStack() as stack:
        file = written(folder, "thousand", {"child": child("0", str(TOOLS - 1))})
        commands = {"ours": serve(file, folder), "sdk": [PYTHON, str(HERE / "floor_mcp.py"), "sdk", str(TOOLS - 1)]}
        hosts = {name: await stack.enter_async_context(driver.http_host(command)) for name, command in commands.items()}
        for _, port in hosts.values():
            if not await until_listed(port, TOOLS):
                return
        for era in ERAS:
            found: dict[str, Measured] = {}
            for turn in range(ROUNDS):
                for name in sorted(hosts, reverse=turn % 2 == 1):
                    process, port = hosts[name]
                    async with asyncio.timeout(driver.DEADLINE), mcp_driver.connected(port, era) as client:
                        await client.list()  # warm
                        found.setdefault(name, []).append(
                            await mcp_driver.measure_lists(client, process.pid, 20, TOOLS)
                        )
            row(f"{TOOLS:,} tools listed, {era}", "anykit serve", "SDK low-level", "ratio")
            for which, title in ((0, "CPU"), (1, "wall")):
                mine, theirs = (medians(found[name])[which] for name in ("ours", "sdk"))
                # Ratios of a round, since whatever else the machine does changes from round to round.
                ratio = statistics.median(o[which] / f[which] for o, f in zip(found["ours"], found["sdk"], strict=True))
                held = f"{verdict(ratio <= 1.5)} (limit 1.5x)"
                row(title, f"{mine:.1f} ms", f"{theirs:.1f} ms", f"{ratio:.2f}x", held)
