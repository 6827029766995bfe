"""An MCP server in nothing but the standard library, for the demonstration: it knows nothing of us nor of any SDK.

`ledger.py` speaks on stdin and stdout, `ledger.py http` on a free port, in both eras of the protocol; `ledger.py hung` never
says a word. It ends with its stdin, or with SIGTERM.
"""

from __future__ import annotations

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODERN = "2026-07-28"
VERSION = "io.modelcontextprotocol/protocolVersion"
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
COUNTED = {
    "type": "object",
    "properties": {"words": {"type": "integer"}, "letters": {"type": "integer"}},
    "required": ["words", "letters"],
}
AMOUNT = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
TOOLS = [
    {"name": "tally", "description": "Counts a text.", "inputSchema": TEXT, "outputSchema": COUNTED},
    {"name": "order", "description": "Orders what the text names, and asks how much of it.", "inputSchema": TEXT},
]
RESOURCES = [{"uri": "ledger://today", "name": "today", "mimeType": "text/plain"}]
PROMPTS = [{"name": "remind", "arguments": [{"name": "who", "required": True}]}]
LISTED = {"ttlMs": 0, "cacheScope": "private"}
CAPABILITIES: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}}
Fields = dict[str, Any]


def answer(message: Fields) -> Fields | None:
    """The answer to a message; None where it wants none."""
    if "method" not in message or "id" not in message:
        return None
    params: Fields = message.get("params") or {}
    modern = VERSION in (params.get("_meta") or {})
    result = _result(str(message["method"]), params)
    if result is None:
        error = {"code": -32601, "message": "Method not found"}
        return {"jsonrpc": "2.0", "id": message["id"], "error": error}
    if modern:
        result = {"resultType": "complete", **result}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def _result(method: str, params: Fields) -> Fields | None:
    match method:
        case "server/discover":
            return {"supportedVersions": [MODERN], "capabilities": CAPABILITIES, **LISTED}
        case "initialize":
            info = {"name": "ledger", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": CAPABILITIES, "serverInfo": info}
        case "ping":
            return {}
        case "tools/list":
            return {"tools": TOOLS, **LISTED}
        case "resources/list":
            return {"resources": RESOURCES, **LISTED}
        case "resources/templates/list":
            return {"resourceTemplates": [], **LISTED}
        case "resources/read":
            return {"contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": "tea: 2"}], **LISTED}
        case "prompts/list":
            return {"prompts": PROMPTS, **LISTED}
        case "prompts/get":
            text = f"Remind {params['arguments']['who']} of the tea."
            return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
        case "tools/call":
            return _called(params["name"], params["arguments"]["text"], params)
        case _:
            return None


def _called(name: str, text: str, params: Fields) -> Fields:
    if name == "tally":
        counted = {"words": len(text.split()), "letters": sum(letter.isalpha() for letter in text)}
        return {"content": [{"type": "text", "text": json.dumps(counted)}], "structuredContent": counted}
    responses: Fields = params.get("inputResponses") or {}
    if "amount" not in responses:
        form = {"mode": "form", "message": f"How much {text}?", "requestedSchema": AMOUNT}
        asked = {"amount": {"method": "elicitation/create", "params": form}}
        return {"resultType": "input_required", "requestState": "asked", "inputRequests": asked}
    given: Fields = responses["amount"]
    said = f"{given['content']['amount']} x {text}" if given["action"] == "accept" else "nothing"
    return {"content": [{"type": "text", "text": f"ordered: {said}"}]}


class Handler(BaseHTTPRequestHandler):
    """Streamable HTTP without streams and without sessions."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer one message."""
        said = answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self._send(202, b"") if said is None else self._send(200, json.dumps(said).encode())

    def do_GET(self) -> None:
        """There is no stream to listen to."""
        self._send(405, b"")

    do_DELETE = do_GET

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        if body:
            self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def main() -> None:
    """Serve as the line says."""
    how = sys.argv[1] if len(sys.argv) > 1 else "stdio"
    if how == "hung":
        time.sleep(600)
    elif how == "http":
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        sys.stderr.write(f"listening on http://127.0.0.1:{server.server_address[1]}/mcp\n")
        sys.stderr.flush()
        server.serve_forever()
    else:
        for line in sys.stdin:
            said = answer(json.loads(line))
            if said is not None:
                sys.stdout.write(json.dumps(said) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
