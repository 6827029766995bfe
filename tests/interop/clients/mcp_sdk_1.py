"""The official SDK for Python, version 1, as a client. What came is printed as JSON."""

from __future__ import annotations

import asyncio
import json
import sys

from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from mcp.types import ElicitResult

_, _, url, token, *command = sys.argv


def opened():
    if command:
        return stdio_client(StdioServerParameters(command=command[0], args=command[1:]))
    return streamablehttp_client(url, {"Authorization": f"Bearer {token}"})


async def main() -> None:
    asked, steps = [], []

    async def answer(context, params):
        asked.append(params.message)
        return ElicitResult(action="accept", content={"amount": 2})

    async def step(progress, total, message):
        steps.append([progress, total])

    async with opened() as (read, write, *_), ClientSession(read, write, elicitation_callback=answer) as session:
        version = (await session.initialize()).protocolVersion

        async def call(name, arguments, **more):
            return await session.call_tool(name, arguments, **more)

        added = await call("add", {"a": 2, "b": 3})
        try:
            await call("nothing", {})
            unknown = None
        except McpError as error:
            unknown = error.error.code
        found = {
            "version": version,
            "tools": [tool.name for tool in (await session.list_tools()).tools],
            "add": [added.content[0].text, added.structuredContent],
            "wrong": (await call("add", {"a": "two", "b": 3})).isError,
            "unknown": unknown,
            "narrate": (await call("narrate", {}, progress_callback=step)).content[0].text,
            "steps": steps,
            "resource": (await session.read_resource("test://text")).contents[0].text,
            "order": (await call("order", {"item": "tea"})).content[0].text,
            "asked": asked,
            "echo": (await call("echo", {"value": "a\u2028b 😀"})).content[0].text,
        }
    print(json.dumps(found))  # noqa: T201 - what the tests read


asyncio.run(main())
