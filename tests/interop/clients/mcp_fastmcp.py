"""FastMCP 4 as a client. What came is printed as JSON."""

from __future__ import annotations

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from mcp import MCPError

_, era, url, token, *command = sys.argv


async def main() -> None:
    asked, steps = [], []

    async def answer(message, response_type, params, context):
        asked.append(message)
        return {"amount": 2}

    async def step(progress, total, message):
        steps.append([progress, total])

    transport = (
        StdioTransport(command[0], command[1:])
        if command
        else StreamableHttpTransport(url, headers={"Authorization": f"Bearer {token}"})
    )
    async with Client(transport, elicitation_handler=answer, progress_handler=step, mode=era) as client:
        added = await client.call_tool("add", {"a": 2, "b": 3})
        try:
            await client.call_tool_mcp("nothing", {})
            unknown = None
        except MCPError as error:
            unknown = error.error.code
        found = {
            "version": client.session.protocol_version,
            "tools": [tool.name for tool in await client.list_tools()],
            "add": [added.content[0].text, added.structured_content],
            "wrong": (await client.call_tool("add", {"a": "two", "b": 3}, raise_on_error=False)).is_error,
            "unknown": unknown,
            "narrate": (await client.call_tool("narrate", {})).content[0].text,
            "steps": steps,
            "resource": (await client.read_resource("test://text"))[0].text,
            "order": (await client.call_tool("order", {"item": "tea"})).content[0].text,
            "asked": asked,
            "echo": (await client.call_tool("echo", {"value": "a\u2028b 😀"})).content[0].text,
        }
    print(json.dumps(found))  # noqa: T201 - what the tests read


asyncio.run(main())
