"""The least MCP servers over HTTP: `floor_mcp.py raw` is a bare ASGI function, `floor_mcp.py sdk [TOOLS]` the SDK's own.

TOOLS is how many more the latter lists beside `add`.
"""

from __future__ import annotations

import json
import socket
import sys
from typing import Any

import uvicorn

NUMBERS = {"a": {"type": "integer"}, "b": {"type": "integer"}}
SCHEMA = {"type": "object", "properties": NUMBERS, "required": ["a", "b"]}


async def raw(scope: Any, receive: Any, send: Any) -> None:
    """Answers calls, in the shape of 2026-07-28; checks nothing."""
    if scope["type"] != "http":
        return
    body = b""
    while True:
        event = await receive()
        body += event.get("body", b"")
        if not event.get("more_body"):
            break
    message = json.loads(body)
    given = message["params"]["arguments"]
    content = [{"type": "text", "text": str(given["a"] + given["b"])}]
    result = {"resultType": "complete", "content": content, "isError": False}
    answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
    head = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": answer})


def sdk(more: int) -> Any:
    """The SDK's low-level server over the same tools."""
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

    names = ["add", *(f"add_{number}" for number in range(more))]
    tools = [Tool(name=name, description="Adds two numbers.", input_schema=SCHEMA) for name in names]

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=tools)

    async def call_tool(context: Any, params: Any) -> CallToolResult:
        given = params.arguments
        return CallToolResult(content=[TextContent(type="text", text=str(given["a"] + given["b"]))])

    return Server("floor", version="1", on_list_tools=list_tools, on_call_tool=call_tool).streamable_http_app()


listener = socket.create_server(("127.0.0.1", 0))
app = raw if sys.argv[1] == "raw" else sdk(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
print(f"floor: listening on http://127.0.0.1:{listener.getsockname()[1]}", file=sys.stderr, flush=True)
config = uvicorn.Config(
    app,
    log_level="critical",
    access_log=False,
    lifespan="off" if sys.argv[1] == "raw" else "on",
    timeout_graceful_shutdown=1,
)
uvicorn.Server(config).run(sockets=[listener])
