"""An MCP server in pure stdlib, of either era, that does what its script says. It runs as a child and inside tests.

A script is JSON: `eras` (["legacy"], ["modern"] or both), `tools` (a list as it goes on the wire), `results` (by tool,
what `tools/call` answers), and the keys that `Peer` reads below.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
OBJECT = {"type": "object"}
Out = Callable[[dict[str, Any]], None]


class Peer:
    """Answers messages; `handle` gives what goes back, `None` where nothing does."""

    def __init__(self, script: dict[str, Any] | None = None) -> None:
        self.script = script or {}
        self.tools: list[Any] = self.script.get("tools", [{"name": "echo", "inputSchema": OBJECT}])
        self.resources: list[Any] = self.script.get("resources", [])
        self.templates: list[Any] = self.script.get("templates", [])
        self.prompts: list[Any] = self.script.get("prompts", [])
        self.results: dict[str, Any] = self.script.get("results", {})
        self.seen: list[dict[str, Any]] = []
        self.capabilities: dict[str, Any] = self.script.get("capabilities") or self._capabilities()

    def _capabilities(self) -> dict[str, Any]:
        said: dict[str, Any] = {"tools": {"listChanged": True}}
        if self.resources or self.templates:
            said["resources"] = {"listChanged": True, "subscribe": True}
        if self.prompts:
            said["prompts"] = {"listChanged": True}
            said["completions"] = {}
        return said

    @property
    def eras(self) -> list[str]:
        return self.script.get("eras", ["legacy", "modern"])

    def calls(self, method: str) -> list[dict[str, Any]]:
        return [message for message in self.seen if message.get("method") == method]

    def handle(self, message: dict[str, Any], out: Out) -> dict[str, Any] | None:
        """The answer to a message. `out` sends what comes before it."""
        self.seen.append(message)
        method: Any = message.get("method")
        params: dict[str, Any] = message.get("params") or {}
        if method is None or "id" not in message:
            return None
        modern = "io.modelcontextprotocol/protocolVersion" in (params.get("_meta") or {})
        if modern and "modern" not in self.eras:
            return self.error(message, -32601, "Method not found")
        if method == "server/discover":
            return self.result(
                message, {"supportedVersions": [MODERN], "capabilities": self.capabilities, **_cache()}, modern
            )
        if method == "initialize":
            if "legacy" not in self.eras:
                return self.error(message, -32022, "unsupported", {"supported": [MODERN], "requested": LEGACY})
            info = {"name": "peer", "version": "1"}
            version: str = params.get("protocolVersion", LEGACY)
            return self.result(
                message, {"protocolVersion": version, "capabilities": self.capabilities, "serverInfo": info}, False
            )
        answer = self.answer(method, params, out)
        if isinstance(answer, dict) and "error" in answer:
            return {"jsonrpc": "2.0", "id": message["id"], **answer}
        return None if answer is None else self.result(message, answer, modern)

    def answer(self, method: str, params: dict[str, Any], out: Out) -> dict[str, Any] | None:
        """The result of a request, `{"error": ...}`, or None for silence."""
        match method:
            case "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe":
                return {}
            case "tools/list":
                return self._page("tools", self.tools, params)
            case "resources/list":
                return self._page("resources", self.resources, params)
            case "resources/templates/list":
                return self._page("resourceTemplates", self.templates, params)
            case "prompts/list":
                return self._page("prompts", self.prompts, params)
            case "tools/call":
                return self.call(params["name"], params.get("arguments") or {}, params, out)
            case "resources/read":
                return {"contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": f"at {params['uri']}"}]}
            case "prompts/get":
                text = json.dumps(params.get("arguments") or {}, sort_keys=True)
                return {"messages": [{"role": "user", "content": {"type": "text", "text": f"{params['name']} {text}"}}]}
            case "completion/complete":
                return {"completion": {"values": [params["argument"]["value"] + "!"], "hasMore": False}}
            case _:
                return {"error": {"code": -32601, "message": "Method not found"}}

    def call(self, name: str, arguments: dict[str, Any], params: dict[str, Any], out: Out) -> dict[str, Any] | None:
        """The result of a tool: as scripted, else the arguments."""
        if name in self.results:
            return self.results[name]
        if name not in [tool["name"] for tool in self.tools if isinstance(tool, dict) and "name" in tool]:
            return {"error": {"code": -32602, "message": f"Unknown tool: {name}"}}
        return {"content": [{"type": "text", "text": json.dumps(arguments)}], "structuredContent": arguments}

    def _page(self, key: str, items: list[Any], params: dict[str, Any]) -> dict[str, Any]:
        size = self.script.get("page", 1_000_000)
        start = int(params.get("cursor") or 0)
        page: dict[str, Any] = {key: items[start : start + size], **_cache()}
        if start + size < len(items):
            page["nextCursor"] = str(start + size)
        return page

    def result(self, message: dict[str, Any], result: dict[str, Any], modern: bool) -> dict[str, Any]:
        if modern:
            result = {"resultType": "complete", **result}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def error(self, message: dict[str, Any], code: int, text: str, data: Any = None) -> dict[str, Any]:
        error = {"code": code, "message": text}
        if data is not None:
            error["data"] = data
        return {"jsonrpc": "2.0", "id": message["id"], "error": error}


def _cache() -> dict[str, Any]:
    return {"ttlMs": 0, "cacheScope": "private"}
