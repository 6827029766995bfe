"""A folder of its own for each test, with sources in it."""

from __future__ import annotations

from pathlib import Path

import pytest

TOOLS = '''
"""Functions of every kind."""
import asyncio
import os
import subprocess
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from anykit import CapabilityContext, ToolError, prompt, resource, tool
from anykit.capabilities import BlobPart, ImagePart, Log, Progress, TextPart


@tool(title="Addition", read_only=True)
async def add(a: int, b: Annotated[int, Field(description="The other one")] = 10) -> int:
    """Adds two numbers.

    The second one may be left out.
    """
    return a + b


@tool
def echo(value: Any = None) -> Any:
    """Gives back what it gets."""
    return value


class Place(BaseModel):
    city: str
    floor: int = 0


@tool
def describe(
    name: str, size: Literal["small", "large"] = "small", at: Place | None = None, tags: list[str] = [], on: bool = False,
    ratio: float = 0.5,
) -> dict[str, Any]:
    """Describes."""
    return {
        "name": name, "size": size, "at": at.model_dump() if at else None, "tags": tags, "on": on, "ratio": ratio
    }


@tool
def fail() -> str:
    """Fails."""
    raise ToolError("the printer is out of paper")


@tool
def breaks() -> str:
    """Breaks."""
    raise ValueError("inner secret")


@tool
async def wait(context: CapabilityContext, seconds: float = 60.0) -> str:
    """Waits, and notes that it was cancelled."""
    context.emit(Log("info", "started"))
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        Path("cancelled.txt").write_text("yes")
        raise
    return "waited"


@tool
async def talk(context: CapabilityContext) -> str:
    """Says how it goes."""
    context.emit(Progress(1, 2, "half"))
    context.emit(Log("info", "halfway there"))
    context.emit(Log("debug", "a detail"))
    context.emit(Log("warning", "it is hot"))
    return "said"


@tool
def noisy() -> int:
    """Prints wherever it can."""
    print("hi")
    os.write(1, b"raw")
    subprocess.run(["echo", "x"])
    return 1


@tool
def parts():
    """Several parts."""
    return [TextPart(text="see"), ImagePart(data=b"png", media_type="image/png"), BlobPart(data=b"x", name="a.bin")]


@resource("notes://today", media_type="text/markdown")
def today() -> str:
    """What is to be done."""
    return "tea"


@resource("notes://{day}")
def note(day: str) -> str:
    """A day's note."""
    return day


@prompt
def greet(name: str, word: str = "hi") -> str:
    """Greets."""
    return f"{word} {name}"
'''

TICKETS = '''
"""A toolkit with a secret."""
from pathlib import Path

from pydantic import BaseModel, Field, SecretStr

from anykit import Toolkit, ToolError, tool


class Limits(BaseModel):
    rows: int = Field(default=10, description="How many at once")
    proxy_key: SecretStr | None = None


class Tickets(Toolkit):
    """The ticket system."""

    name = "tickets"
    alias = "tk"
    category = "work"
    tags = ("support",)

    class Config(BaseModel):
        url: str = Field(description="Where it is", min_length=3)
        api_key: SecretStr = Field(description="A key of yours")
        limit: int = Field(default=5, ge=1)
        labels: list[str] = []
        verbose: bool = False
        limits: Limits = Limits()

    async def setup(self, config: Config) -> None:
        if config.url == "http://down":
            raise ToolError("the ticket system is down")
        if config.url == "http://half":
            self.disable("close_ticket", "only reading is allowed there")

    @tool(read_only=True)
    def whoami(self) -> str:
        """Whose key this is."""
        config = self.config
        return f"{config.url} {config.api_key.get_secret_value()} {config.limit} {config.labels} {config.verbose}"

    @tool(destructive=True)
    def close_ticket(self, id: int) -> str:
        """Closes a ticket."""
        return f"closed {id}"


class Plain(Toolkit):
    """Needs nothing."""

    name = "plain"

    @tool
    def ping(self) -> str:
        """Answers."""
        return "pong"
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where `tools.py` and `tickets.py` lie; the working directory."""
    place = tmp_path / "work"
    place.mkdir()
    (place / "tools.py").write_text(TOOLS)
    (place / "tickets.py").write_text(TICKETS)
    monkeypatch.chdir(place)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    return place
