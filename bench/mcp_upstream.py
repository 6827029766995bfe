"""An MCP server over stdio in pure stdlib, of either era: `mcp_upstream.py [WAIT|hung] [TOOLS]`.

It waits before it reads the first line; with nothing it does not. TOOLS is how many more it lists beside `add`.
"""

import json
import sys
import time

wait = sys.argv[1] if len(sys.argv) > 1 else "0"
time.sleep(3600 if wait == "hung" else float(wait))
NUMBERS = {"a": {"type": "integer"}, "b": {"type": "integer"}}
SCHEMA = {"type": "object", "properties": NUMBERS, "required": ["a", "b"]}
more = int(sys.argv[2]) if len(sys.argv) > 2 else 0
names = ["add", *(f"add_{number}" for number in range(more))]
tools = [{"name": name, "description": "Adds two numbers.", "inputSchema": SCHEMA} for name in names]
KEPT = {"ttlMs": 0, "cacheScope": "private"}
CAPABILITIES = {"tools": {"listChanged": False}}

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    method, params = message["method"], message.get("params") or {}
    modern = "io.modelcontextprotocol/protocolVersion" in (params.get("_meta") or {})
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "tools/call":
        given = params.get("arguments") or {}
        result = {"content": [{"type": "text", "text": str(given["a"] + given["b"])}], "isError": False}
    elif method == "tools/list":
        result = {"tools": tools, **(KEPT if modern else {})}
    elif method == "server/discover":
        result = {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES, **KEPT}
    elif method == "initialize":
        result = {
            "protocolVersion": params["protocolVersion"],
            "capabilities": CAPABILITIES,
            "serverInfo": {"name": "upstream", "version": "1"},
        }
    elif method == "ping":
        result = {}
    else:
        result = None
    if result is None:
        answer["error"] = {"code": -32601, "message": "Method not found"}
    else:
        answer["result"] = {"resultType": "complete", **result} if modern else result
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
