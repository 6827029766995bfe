"""A server on the official SDK: `sdk.py stdio`, or `sdk.py http PORT`. Everything that a server can do, once."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel

server = MCPServer("everything", version="7", instructions="Be kind.")


class City(BaseModel):
    """Where to."""

    name: str


class Sum(BaseModel):
    total: int


@server.tool(annotations=None, structured_output=True)
def add(a: int, b: int) -> Sum:
    """Adds two numbers."""
    return Sum(total=a + b)


@server.tool()
async def steps(n: int, ctx: Context[Any, Any]) -> str:
    """Tells of its progress."""
    for done in range(n):
        await ctx.report_progress(done + 1, n, f"step {done + 1}")
    return "done"


@server.tool()
async def fail() -> str:
    """Fails."""
    raise ValueError("it broke")


@server.tool()
async def sleep(seconds: float) -> str:
    """Sleeps."""
    await asyncio.sleep(seconds)
    return "slept"


async def _city() -> Elicit[City]:
    return Elicit("Which city?", City)


@server.tool()
async def travel(city: Annotated[City, Resolve(_city)]) -> str:
    """Asks where to."""
    return f"to {city.name}"


@server.resource("data://fixed")
def fixed() -> str:
    """Always the same."""
    return "fixed"


@server.resource("data://by/{key}")
def by_key(key: str) -> str:
    """One of many."""
    return f"value of {key}"


@server.prompt()
def greet(who: str) -> str:
    """Greets somebody."""
    return f"Greet {who}"


def main() -> None:
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        app = server.streamable_http_app()
        uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")


if __name__ == "__main__":
    main()
