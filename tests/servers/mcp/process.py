"""What a test serves in a process of its own: a tool file that is noisy on every way to stdout."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import anyio

from anykit import resource, tool
from anykit.capabilities import CapabilityContext, Log, Progress, Question

print("noise while importing")  # noqa: T201 - this is what the test is about


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@tool
def noisy() -> str:
    """Writes to stdout in every way."""
    print("noise from print", flush=True)  # noqa: T201 - as above
    sys.stdout.write("noise without a line end")
    sys.stdout.flush()
    os.write(1, b"noise from the descriptor\n")
    subprocess.run([sys.executable, "-c", "print('noise from a child')"], check=True)
    return "said"


@tool
def echo(value: object) -> object:
    """Gives back what it got."""
    return value


@tool
async def order(item: str, context: CapabilityContext) -> str:
    """Orders something, once someone agrees."""
    answer = await context.ask(
        Question("input", f"How many {item}?", {"type": "object", "properties": {"amount": {"type": "integer"}}})
    )
    return f"{answer.data['amount']} x {item}" if answer.ok else "nothing ordered"


@tool
async def narrate(context: CapabilityContext) -> str:
    """Tells of its steps."""
    context.emit(Progress(1, 2, "half"))
    context.emit(Log("info", "did half"))
    await asyncio.sleep(0.05)  # the TypeScript SDK drops progress that comes in one read with the answer
    return "done"


@tool
async def wait(marker: str, context: CapabilityContext) -> str:
    """Waits until it is cancelled; leaves a file then."""
    context.emit(Progress(1, 2))
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        await anyio.Path(marker).write_text("cancelled")
        raise
    return "waited"


@tool
def read_stdin() -> str:
    """Reads what belongs to the protocol."""
    return sys.stdin.read(10)


@resource("test://text")
def text() -> str:
    """A text."""
    return "text"


FILE = str(Path(__file__))
