"""The measurements that decisions lean on. `bench/choices.sh` makes the environment and runs it; minutes, not part of `make bench`."""

from __future__ import annotations

import asyncio
import datetime
import importlib.metadata
import os
import platform
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

IMPORTS = {
    "pydantic": "import pydantic",
    "jsonschema_rs": "import jsonschema_rs",
    "anyio": "import anyio",
    "starlette": "import starlette.applications",
    "uvicorn": "import uvicorn",
    "typer": "import typer",
    "aiohttp": "import aiohttp",
    "sqlalchemy (asyncio)": "import sqlalchemy.ext.asyncio",
    "mcp": "import mcp",
    "docstring_parser": "import docstring_parser",
    "griffelib": "import griffe",
}


def show(what: str, value: str, other: str = "") -> None:
    print(f"{what:<44}{value:>16}{other:>16}", flush=True)


def bench_imports() -> None:
    print("\nImport: CPU seconds beyond a bare interpreter's, median of 7")

    def cpu(program: str) -> float:
        program += "\nimport time; print(time.process_time())"
        return float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)

    bare = statistics.median(cpu("") for _ in range(7))
    for name, program in IMPORTS.items():
        cpu(program)
        show(name, f"{statistics.median(cpu(program) for _ in range(7)) - bare:.3f} s")


def bench_schema() -> None:
    import jsonschema
    import jsonschema_rs

    print("\nJSON Schema: a valid list of 50 objects, µs, best of 5")
    item = {
        "type": "object",
        "properties": {"name": {"type": "string", "minLength": 1}, "n": {"type": "integer"}},
        "required": ["name", "n"],
        "additionalProperties": False,
    }
    schema = {"type": "array", "items": item}
    value = [{"name": f"item {n}", "n": n} for n in range(50)]
    slow, fast = jsonschema.Draft202012Validator(schema), jsonschema_rs.Draft202012Validator(schema)
    times = []
    for check, count in ((fast.is_valid, 1000), (slow.is_valid, 20)):
        rounds = []
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(count):
                assert check(value)
            rounds.append((time.perf_counter() - start) / count * 1e6)
        times.append(min(rounds))
    show("jsonschema_rs, jsonschema", f"{times[0]:.1f} µs", f"{times[1]:.1f} µs")


HTTP = """
import socket, uvicorn
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    head = [(b"content-type", b"application/json"), (b"content-length", b"11")]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": b'{"ok":true}'})
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off")).run(sockets=[listener])
"""


async def median_ms(call: Callable[[], Awaitable[object]], count: int) -> float:
    times = []
    for _ in range(count):
        start = time.perf_counter()
        await call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


def bench_http() -> None:
    print("\nHTTP client: POST of small JSON to a bare ASGI function on loopback, ms, median of 500")
    with subprocess.Popen([sys.executable, "-c", HTTP], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            fast, slow = asyncio.run(measure_http(f"http://127.0.0.1:{server.stdout.readline().strip()}/"))
        finally:
            server.terminate()
    show("aiohttp, httpx", f"{fast:.2f} ms", f"{slow:.2f} ms")


async def measure_http(url: str) -> tuple[float, float]:
    import aiohttp
    import httpx

    async with aiohttp.ClientSession() as session, httpx.AsyncClient() as client:

        async def with_aiohttp() -> None:
            async with session.post(url, json={"a": 1}) as response:
                assert (await response.json())["ok"]

        async def with_httpx() -> None:
            assert (await client.post(url, json={"a": 1})).json()["ok"]

        await median_ms(with_aiohttp, 50)
        await median_ms(with_httpx, 50)
        return await median_ms(with_aiohttp, 500), await median_ms(with_httpx, 500)


async def bench_insert() -> None:
    from sqlalchemy import text
    from sqlalchemy.ext.asyncio import create_async_engine

    print("\nSQLite, WAL: one insert with its commit, ms, median of 500")
    with tempfile.TemporaryDirectory() as folder:
        plain = sqlite3.connect(Path(folder) / "plain.db", isolation_level=None)
        plain.execute("pragma journal_mode=wal")
        plain.execute("pragma synchronous=normal")
        plain.execute("create table t (a integer, b text)")
        times = []
        for n in range(500):
            start = time.perf_counter()
            plain.execute("insert into t values (?, ?)", (n, "text"))
            times.append(time.perf_counter() - start)
        plain.close()
        engine = create_async_engine(f"sqlite+aiosqlite:///{folder}/alchemy.db")
        async with engine.begin() as connection:
            await connection.execute(text("pragma journal_mode=wal"))
            await connection.execute(text("create table t (a integer, b text)"))

        async def insert() -> None:
            async with engine.begin() as connection:
                await connection.execute(text("insert into t values (:a, :b)"), {"a": 1, "b": "text"})

        alchemy = await median_ms(insert, 500)
        await engine.dispose()
    show("sqlite3, SQLAlchemy asyncio", f"{statistics.median(times) * 1000:.3f} ms", f"{alchemy:.3f} ms")


def main() -> None:
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    cpu = found[1] if found else platform.machine()
    print(f"{cpu}, {os.cpu_count()} cores, {platform.platform()}, Python {platform.python_version()}")
    names = [
        "pydantic",
        "jsonschema",
        "jsonschema_rs",
        "aiohttp",
        "httpx",
        "sqlalchemy",
        "mcp",
        "docstring_parser",
        "griffelib",
    ]
    print(", ".join(f"{name} {importlib.metadata.version(name)}" for name in names))
    print(f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC, bench/choices.sh")
    bench_imports()
    bench_schema()
    bench_http()
    asyncio.run(bench_insert())


main()
