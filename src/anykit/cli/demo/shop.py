"""A REST service in nothing but the standard library, for the demonstration: `python shop.py` serves it on a free port.

It tells what it is at `/openapi.json`. It ends with SIGTERM.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

STOCK = {"tea": 7, "sugar": 0}
ITEM = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "left": {"type": "integer"},
        "note": {"type": "string", "nullable": True},
    },
    "required": ["name", "left"],
}
DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Shop", "version": "1"},
    "paths": {
        "/items/{name}": {
            "get": {
                "operationId": "getItem",
                "summary": "How much of an item is left.",
                "parameters": [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {"200": {"description": "It", "content": {"application/json": {"schema": ITEM}}}},
            }
        },
        "/orders": {
            "post": {
                "summary": "Order something.",
                "requestBody": {"required": True, "content": {"application/json": {"schema": ITEM}}},
                "responses": {"201": {"description": "Done", "content": {"application/json": {"schema": ITEM}}}},
            }
        },
    },
}


class Handler(BaseHTTPRequestHandler):
    """Answers one request after the other."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """The document, or an item."""
        path = urlsplit(self.path).path
        if path == "/openapi.json":
            self._send(200, DOCUMENT)
            return
        kind, _, name = path.removeprefix("/").partition("/")
        name = unquote(name)
        if kind == "items" and name in STOCK:
            self._send(200, {"name": name, "left": STOCK[name], "note": None})
        else:
            self._send(404, {"title": f"There is no {name}"})

    def do_POST(self) -> None:
        """An order."""
        self._send(201, json.loads(self.rfile.read(int(self.headers["content-length"]))))

    def _send(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def main() -> None:
    """Serve on a free port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    sys.stderr.write(f"listening on http://127.0.0.1:{server.server_address[1]}\n")
    sys.stderr.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
