"""An MCP client over HTTP as thin as asyncio allows, the same for every server: posts, waits for the answer.

Both eras: each request of 2026-07-28 stands alone; the older one shakes hands first.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

Era = Literal["2026-07-28", "2025-11-25"]
MODERN: Era = "2026-07-28"
LEGACY: Era = "2025-11-25"
HANGAR_CALL = "hangar_call"
ERAS: tuple[Era, ...] = (MODERN, LEGACY)


class Client:
    """One kept connection, one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, era: Era) -> None:
        self._reader, self._writer, self._port, self._era = reader, writer, port, era
        self._session = ""
        self._count = 0

    async def begin(self) -> None:
        """Shake hands, in the era that does."""
        if self._era == MODERN:
            return
        info = {"name": "bench", "version": "1"}
        await self.ask("initialize", {"protocolVersion": self._era, "capabilities": {}, "clientInfo": info})
        await self._post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}', [])

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a request. Raises `AssertionError` where there is none."""
        self._count += 1
        headers = [f"Mcp-Method: {method}"]
        if self._era == MODERN:
            meta = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
            }
            params = {**params, "_meta": meta}
            if "name" in params:
                headers.append(f"Mcp-Name: {params['name']}")
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        body = await self._post(json.dumps(message, separators=(",", ":")).encode(), headers)
        if not body.startswith(b"{"):
            body = [line[5:] for line in body.splitlines() if line.startswith(b"data:") and len(line) > 8][-1]
        answer = json.loads(body)
        assert answer.get("id") == self._count, answer
        assert "result" in answer, answer
        return answer["result"]

    async def _post(self, body: bytes, headers: list[str]) -> bytes:
        if self._session or self._era == MODERN:
            headers = [f"MCP-Protocol-Version: {self._era}", *headers]
        if self._session:
            headers.append(f"Mcp-Session-Id: {self._session}")
        fixed = "Content-Type: application/json\r\nAccept: application/json, text/event-stream"
        head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n{fixed}\r\n"
        head += "".join(f"{line}\r\n" for line in headers)
        self._writer.write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        first, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        told = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self._session = told.get("mcp-session-id", self._session)
        if told.get("transfer-encoding") == "chunked":
            read = b""
            while size := int(await self._reader.readline(), 16):
                read += (await self._reader.readexactly(size + 2))[:-2]
            await self._reader.readline()
        else:
            read = await self._reader.readexactly(int(told.get("content-length", 0)))
        assert first.split()[1] in ("200", "202"), (first, read)
        return read

    async def call(self, name: str, a: int) -> None:
        """One call of `add`, its answer looked at: a fast wrong answer is no answer."""
        arguments: dict[str, Any] = {"a": a, "b": 3}
        if name == HANGAR_CALL:  # it takes calls of its servers' tools in batches
            arguments = {"calls": [{"mcp_server": "child", "tool": "add", "arguments": arguments}]}
        result = await self.ask("tools/call", {"name": name, "arguments": arguments})
        assert not result.get("isError"), result
        text = result["content"][0]["text"]
        if name == HANGAR_CALL:
            text = json.loads(text)["results"][0]["result"]["content"][0]["text"]
        assert text == str(a + 3), result

    async def list(self) -> int:
        """How many tools there are, all pages."""
        count, params = 0, {}
        while True:
            result = await self.ask("tools/list", params)
            count += len(result["tools"])
            if not result.get("nextCursor"):
                return count
            params = {"cursor": result["nextCursor"]}


@asynccontextmanager
async def connected(port: int, era: Era) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    try:
        client = Client(reader, writer, port, era)
        await client.begin()
        yield client
    finally:
        writer.close()


def cpu_of(pid: int) -> float:
    """CPU seconds that a process has used, without its children."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        shown = subprocess.run(["ps", "-o", "time=", "-p", str(pid)], capture_output=True, text=True, check=True).stdout
        minutes, _, seconds = shown.strip().rpartition(":")
        return 60 * int(minutes.rpartition(":")[2] or 0) + float(seconds)


async def measure_calls(client: Client, pid: int, name: str, count: int) -> tuple[float, float]:
    """CPU ms of the process `pid`, and wall ms, a call."""
    cpu, start = cpu_of(pid), time.perf_counter()
    for a in range(count):
        await client.call(name, a)
    took = time.perf_counter() - start
    return (cpu_of(pid) - cpu) / count * 1000, took / count * 1000


async def measure_lists(client: Client, pid: int, count: int, tools: int) -> tuple[float, float]:
    """CPU ms of the process `pid`, and wall ms, for a list of all tools."""
    cpu, start = cpu_of(pid), time.perf_counter()
    for _ in range(count):
        assert await client.list() == tools
    took = time.perf_counter() - start
    return (cpu_of(pid) - cpu) / count * 1000, took / count * 1000
