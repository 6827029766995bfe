"""The tools that each framework's program gives to its test model, and how a scenario's result is kept."""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

from anykit import CapabilityContext, ToolError, tool
from anykit.capabilities import (
    BlobPart,
    ImagePart,
    InvocableRequest,
    InvocableResult,
    InvocableSpec,
    Question,
    TextPart,
)

PIXEL = b"\x89PNG\r\n\x1a\n-not-really"
STARTED = asyncio.Event()
ENDED: list[str] = []


@tool(read_only=True, tags=["sums"])
async def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@tool
def keywords(config: str, run_manager: str = "", callbacks: str = "", self_: str = "", ctx: str = "") -> str:
    """Has parameters whose names frameworks use themselves."""
    return f"{config}/{run_manager}/{callbacks}/{self_}/{ctx}"


@tool
def nothing() -> None:
    """Takes nothing and gives nothing."""


@tool
def person(name: str, age: int | None = None) -> dict[str, Any]:
    """Gives an object."""
    return {"name": name, "age": age}


@tool
def picture() -> list[Any]:
    """Gives a picture and a file between texts."""
    pdf = BlobPart(data=b"%PDF-", name="a.pdf", media_type="application/pdf")
    return [TextPart(text="before"), ImagePart(data=PIXEL), pdf, TextPart(text="after")]


@tool
def boom() -> str:
    """Fails, and says why."""
    raise ToolError("the printer is on fire")


@tool
def broken() -> str:
    """Breaks."""
    raise RuntimeError("a secret that must not be shown")


@tool(destructive=True)
async def pay(amount: int, context: CapabilityContext) -> str:
    """Pays, once somebody allows it."""
    answer = await context.ask(Question(kind="approval", prompt=f"Pay {amount}?"))
    ENDED.append(f"paid {amount}" if answer.ok else "refused")
    return ENDED[-1]


@tool
async def name_it(context: CapabilityContext) -> str:
    """Asks for a name."""
    answer = await context.ask(Question(kind="input", prompt="What is the dog called?"))
    return f"dog={answer.data}"


@tool
async def whoami(context: CapabilityContext) -> str:
    """Says what it hears of its caller."""
    return f"session={context.session_id}"


@tool
async def forever() -> str:
    """Never ends by itself."""
    STARTED.set()
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        ENDED.append("cancelled")
        raise
    return "?"


class Either:
    """Takes a city or a zip, which no provider lets its schema say at the root; and a name that Anthropic refuses."""

    spec = InvocableSpec(
        name="either",
        description="Finds a place.",
        input_schema={
            "type": "object",
            "properties": {"city": {"type": "string"}, "zip": {"type": "string"}, "per cent": {"type": "integer"}},
            "anyOf": [{"required": ["city"]}, {"required": ["zip"]}],
        },
    )

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult:
        return InvocableResult(text=json.dumps(request.input, sort_keys=True))


ALL = (add, keywords, nothing, person, picture, boom, broken, pay, name_it, whoami, forever, Either())

Scenario = Callable[[], Awaitable[Any]]


async def results(scenarios: dict[str, Scenario]) -> dict[str, Any]:
    """What each scenario gives; one that breaks costs only itself."""
    found: dict[str, Any] = {}
    for name, scenario in scenarios.items():
        try:
            async with asyncio.timeout(20):
                found[name] = await scenario()
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            found[name] = {"broke": f"{type(error).__name__}: {error}"}
    return found


def printed(found: dict[str, Any]) -> None:
    """The last line of a program's output."""
    print(json.dumps(found))  # noqa: T201 - a program
