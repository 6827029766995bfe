"""Any source on any face: the same calls give the same JSON values, whatever the tool is made of and whoever asks.

functions, toolkit, HTTP, OpenAPI, MCP (stdio, HTTP), A2A, A2E, skills ─> one workbench ─> Python, A2E, MCP, A2A
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, cast

import aiohttp
import pytest

from anykit import Workbench
from anykit.a2e import A2EClient
from anykit.app.serving import server
from anykit.sources.a2e import A2ERequestError
from app.answers import ANSWERS, ASKED, REASON, Answers, ask, document, over_http
from servers.a2a.hosts import V1, Host, message_of, old_message, output_of, parts_of, said, state_of
from servers.mcp.peers import LEGACY, Http
from transports.peers import peer

pytestmark = pytest.mark.anyio

WAIT = 8.0
"""Seconds that a test waits for anything."""
SKILL = """---
name: greeting
description: How to greet.
---
Say grüße, then wait.
"""


@dataclass(frozen=True)
class Offered:
    """A tool that is made of some kind of source."""

    name: str
    argument: str = "what"
    """What it calls what it is asked."""


SOURCES = {
    "functions": Offered("ask"),
    "toolkit": Offered("ask_toolkit"),
    "http": Offered("ask_http"),
    "openapi": Offered("document_ask"),
    "mcp over stdio": Offered("child_ask"),
    "mcp over http": Offered("web_ask"),
    "a2a": Offered("anykit_ask", "task"),
    "a2e": Offered("far_ask"),
}


@dataclass(frozen=True)
class Said:
    """What came of a call."""

    failed: bool
    text: str
    structured: Any = None

    def is_(self, expected: Any) -> bool:
        """Whether it is this JSON value; what stands only in the text is read there."""
        if self.failed:
            return False
        value = self.structured
        if value is None or value == self.text:  # of A2A an integer beyond 2^53 comes in its text only
            value = self.text if isinstance(expected, str) else json.loads(self.text)
        return _exactly(value) == _exactly(expected)


def _exactly(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@dataclass
class Served:
    """The workbench with everything in it, and a client for each of its faces."""

    bench: Workbench
    a2e: A2EClient
    modern: Http
    legacy: Http
    a2a: Host


Face: TypeAlias = Callable[[Served, str, dict[str, Any]], Awaitable[Said]]


async def by_python(served: Served, name: str, arguments: dict[str, Any]) -> Said:
    result = await served.bench.call(name, arguments)
    return Said(result.is_error, result.output, result.structured)


async def by_a2e(served: Served, name: str, arguments: dict[str, Any]) -> Said:
    try:
        result = await served.a2e.tools.call(name, arguments)
    except A2ERequestError as error:
        return Said(True, str(error))
    return Said(not result.success, result.summary or result.error or "", result.data)


def _inside(value: Any, key: str) -> Any:
    """What is in a wrapper that a protocol needs around a value that is no object."""
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    return fields[key] if fields.keys() == {key} else fields


def _of_mcp(result: dict[str, Any]) -> Said:
    text = "\n".join(part["text"] for part in result["content"] if part["type"] == "text")
    return Said(bool(result.get("isError")), text, _inside(result.get("structuredContent"), "result"))


async def by_modern_mcp(served: Served, name: str, arguments: dict[str, Any]) -> Said:
    reply = await served.modern.modern("tools/call", name=name, arguments=arguments)
    return _of_mcp(reply.last["result"])


async def by_legacy_mcp(served: Served, name: str, arguments: dict[str, Any]) -> Said:
    reply = await served.legacy.ask("tools/call", name=name, arguments=arguments)
    return _of_mcp(reply.last["result"])


def _of_a2a(task: dict[str, Any]) -> Said:
    if state_of(task) != "completed":
        return Said(True, "".join(map(str, said(task))))
    values = [part["data"] for part in parts_of(task) if "data" in part]
    return Said(False, output_of(task), values[0] if values else None)


async def by_a2a_1(served: Served, name: str, arguments: dict[str, Any]) -> Said:
    call = {"data": {"tool": name, "arguments": arguments}}
    return _of_a2a(await served.a2a.task("SendMessage", {"message": message_of(call)}, headers=V1))


async def by_a2a_03(served: Served, name: str, arguments: dict[str, Any]) -> Said:
    message = old_message({"tool": name, "arguments": arguments})
    said = _of_a2a(await served.a2a.task("message/send", {"message": message}, headers={}))
    return replace(said, structured=_inside(said.structured, "value"))  # 0.3 knows only objects as data


FACES: dict[str, Face] = {
    "python": by_python,
    "a2e": by_a2e,
    "mcp 2026-07-28": by_modern_mcp,
    "mcp 2025-11-25": by_legacy_mcp,
    "a2a 1.0": by_a2a_1,
    "a2a 0.3": by_a2a_03,
}


# what is served


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Of the whole module, as what is served."""
    return "asyncio"


@asynccontextmanager
async def listening(bench: Workbench) -> AsyncGenerator[str]:
    """A workbench on a port of its own."""
    up = asyncio.Event()
    one = server(bench, port=0, listening=lambda _: up.set())
    serving = asyncio.create_task(one.serve(signals=False))
    try:
        async with asyncio.timeout(WAIT):
            await up.wait()
        assert one.address is not None
        yield one.address.url
    finally:
        one.stop()
        one.stop()  # at once: its callers are gone
        async with asyncio.timeout(WAIT):
            await serving


def tables(plain: str, far: str, folder: Path) -> list[dict[str, Any]]:
    """The sources that are not Python, as they stand in a configuration."""
    (folder / "document.json").write_text(json.dumps(document(plain)))
    serve = ["-m", "anykit", "serve", str(Path(__file__).with_name("answers.py")), "--stdio", "mcp"]
    data = ["--data-dir", str(folder / "child"), "--config", str(folder / "none.toml")]
    (folder / "none.toml").write_text("")
    paths = {"PYTHONPATH": str(Path(__file__).parents[1])}
    return [
        {
            "kind": "http",
            "name": "plain",
            "base_url": plain,
            "endpoints": [{"name": "ask_http", "url": "/answers/{what}"}],
        },
        {"kind": "openapi", "target": str(folder / "document.json")},
        {"kind": "mcp", "name": "child", "command": sys.executable, "args": [*serve, *data], "env": paths},
        {"kind": "mcp", "name": "web", "url": f"{far}/mcp"},
        {"kind": "a2a", "name": "agent", "url": far},
        {"kind": "a2e", "name": "far", "url": far},
    ]


@pytest.fixture(scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served]:
    """Everything, behind every face."""
    folder = tmp_path_factory.mktemp("faces")
    skill = folder / "skills" / "greeting" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(SKILL)
    async with AsyncExitStack() as stack:
        plain = await stack.enter_async_context(peer(over_http))
        other = await stack.enter_async_context(Workbench(ask, data_dir=folder / "other"))
        far = await stack.enter_async_context(listening(other))
        sources = (*tables(plain.url, far, folder), {"kind": "skills", "target": str(folder / "skills")})
        bench = await stack.enter_async_context(Workbench(ask, Answers, *sources, data_dir=folder / "data"))
        await bench.configure("answers", {})
        await bench.settled(WAIT)
        url = await stack.enter_async_context(listening(bench))
        http = await stack.enter_async_context(aiohttp.ClientSession())
        a2e = await stack.enter_async_context(A2EClient(url))
        legacy = Http(f"{url}/mcp", http)
        await legacy.shake_hands(LEGACY)
        yield Served(bench, a2e, Http(f"{url}/mcp", http), legacy, Host(url, http, None, bench))  # pyright: ignore[reportArgumentType] - its server is ours to stop


async def test_every_source_is_there(served: Served) -> None:
    assert [
        (one.name, one.state.status, one.state.reason) for one in served.bench.sources() if one.state.status != "ready"
    ] == []
    assert {one.name for one in SOURCES.values()} <= {tool.name for tool in served.bench.tools()}


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("source", SOURCES)
async def test_a_call_gives_the_same_value_whatever_it_is_made_of_and_whoever_asks(
    served: Served, source: str, face: str
) -> None:
    offered = SOURCES[source]
    async with asyncio.timeout(WAIT):
        said = {asked: await FACES[face](served, offered.name, {offered.argument: asked}) for asked in ASKED}
    failed = said.pop("error")
    assert failed.failed
    assert REASON in failed.text
    assert {asked: one for asked, one in said.items() if not one.is_(ANSWERS[asked])} == {}


@pytest.mark.parametrize("face", FACES)
async def test_a_skill_is_the_same_on_every_face(served: Served, face: str) -> None:
    async with asyncio.timeout(WAIT):
        loaded = await FACES[face](served, "skill", {"name": "greeting"})
        unknown = await FACES[face](served, "skill", {"name": "nope"})
    expected = await by_python(served, "skill", {"name": "greeting"})
    assert "Say grüße, then wait." in loaded.text
    assert (loaded.failed, loaded.text) == (False, expected.text)
    assert unknown.failed


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("source", SOURCES)
async def test_wrong_arguments_are_refused_by_every_face_before_anything_is_asked(
    served: Served, source: str, face: str
) -> None:
    offered = SOURCES[source]
    async with asyncio.timeout(WAIT):
        said = await FACES[face](served, offered.name, {offered.argument: 5})
    assert said.failed
    assert offered.argument in said.text
