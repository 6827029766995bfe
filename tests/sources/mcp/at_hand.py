"""What the tests of the MCP source share: sources, waits that are bounded, a context that listens."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from anykit.capabilities import (
    CapabilityContext,
    Event,
    Invocable,
    InvocableRequest,
    InvocableResult,
    Resume,
    Suspension,
)
from anykit.sources.connection import Backoff
from anykit.sources.mcp import McpServer, McpSource, Offers
from anykit.sources.mcp.vault import Vault
from anykit.transports import Command

STDIO = Path(__file__).parent / "peers" / "stdio.py"
QUICK = Backoff(0.02, 0.1)
OBJECT = {"type": "object"}


def child(script: dict[str, Any] | None = None, *, env: dict[str, str] | None = None) -> Command:
    """The scripted server as a child."""
    return Command((sys.executable, str(STDIO), json.dumps(script or {})), env=env or {})


def python(program: str, *arguments: str, **options: Any) -> Command:
    """A child that runs `program`, with `Peer`, `say` and the arguments (from `sys.argv[1]`) at hand."""
    head = (
        f"import json, os, sys; sys.path.insert(0, {str(STDIO.parent)!r}); from script import Peer\n"
        "def say(message): sys.stdout.buffer.write(json.dumps(message, ensure_ascii=False).encode() + b'\\n')"
        "; sys.stdout.buffer.flush()\n"
    )
    return Command((sys.executable, "-c", head + program, *arguments), **options)


@asynccontextmanager
async def source(
    server: McpServer,
    *,
    start: bool = True,
    offers: Offers | None = None,
    vault: Vault | None = None,
    backoff: Backoff = QUICK,
) -> AsyncGenerator[McpSource]:
    """A source that is closed at the end, started unless told otherwise."""
    made = McpSource(server, offers=offers, vault=vault, backoff=backoff)
    try:
        if start:
            await made.start()
        yield made
    finally:
        with anyio.fail_after(8):
            await made.close()


@asynccontextmanager
async def ready(server: McpServer, **options: Any) -> AsyncGenerator[McpSource]:
    """A source that is connected."""
    async with source(server, **options) as made:
        await until(made, "ready")
        yield made


async def until(made: McpSource, status: str) -> None:
    await when(made, lambda: made.state.status == status)


async def when(made: McpSource, true: Callable[[], bool]) -> None:
    """Wait until it is so, as told by the source's own changes."""
    changed = asyncio.Event()
    unsubscribe = made.subscribe(changed.set)
    try:
        with anyio.fail_after(8):
            while not true():
                changed.clear()
                await changed.wait()
    finally:
        unsubscribe()


async def eventually(true: Callable[[], bool]) -> None:
    """Wait for what nobody tells of; looks often, for a bounded time."""
    with anyio.fail_after(8):
        while not true():
            await anyio.lowlevel.checkpoint()
            await anyio.sleep(0.005)


def names(made: McpSource) -> list[str]:
    return [one.spec.name for one in made.invocables()]


def tool(made: McpSource, name: str = "echo") -> Invocable:
    return next(one for one in made.invocables() if one.spec.name == name)


async def invoke(
    found: Invocable,
    arguments: dict[str, Any] | None = None,
    *,
    context: CapabilityContext | None = None,
    resume: Resume | None = None,
) -> InvocableResult | Suspension:
    """Call a tool, in bounded time."""
    request = InvocableRequest(input=arguments or {}, call_id="1", resume=resume)
    with anyio.fail_after(8):
        return await found.invoke(request, context or CapabilityContext())


async def call(made: McpSource, name: str = "echo", **arguments: Any) -> Any:
    """Call a tool for its structured value."""
    result = await invoke(tool(made, name), arguments)
    assert isinstance(result, InvocableResult)
    return result.structured


class Hearing:
    """A context that keeps what is said."""

    def __init__(self, **options: Any) -> None:
        self.heard: list[Event] = []
        self.context = CapabilityContext(emit=self.heard.append, **options)


def text(path: Path) -> str:
    """What a child wrote into a file; nothing where there is none yet."""
    return path.read_text() if path.exists() else ""
