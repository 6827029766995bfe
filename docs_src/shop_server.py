"""A small MCP server to try things on, in plain Python: `python shop_server.py` speaks on stdin and stdout."""

import json
import sys

STOCK = {"tea": 12, "sugar": 0}
ITEM = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
AMOUNT = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
TOOLS = [
    {"name": "stock", "description": "How much of an item there is.", "inputSchema": ITEM},
    {"name": "order", "description": "Orders an item, and asks how much of it.", "inputSchema": ITEM},
]
LISTS = {
    "tools/list": {"tools": TOOLS},
    "resources/list": {"resources": [{"uri": "shop://hours", "name": "hours", "mimeType": "text/plain"}]},
    "resources/templates/list": {"resourceTemplates": []},
    "prompts/list": {"prompts": [{"name": "complain", "arguments": [{"name": "item", "required": True}]}]},
}


def text(value: str) -> dict:
    return {"type": "text", "text": value}


def called(name: str, item: str, answers: dict) -> dict:
    if name == "stock":
        left = {"item": item, "left": STOCK.get(item, 0)}
        return {"content": [text(json.dumps(left))], "structuredContent": left}
    if not answers:
        form = {"mode": "form", "message": f"How much {item}?", "requestedSchema": AMOUNT}
        asked = {"amount": {"method": "elicitation/create", "params": form}}
        return {"resultType": "input_required", "requestState": "asked", "inputRequests": asked}
    if answers["amount"]["action"] != "accept":
        return {"content": [text("nothing ordered")]}
    return {"content": [text(f"ordered {answers['amount']['content']['amount']} x {item}")]}


def result(method: str, params: dict) -> dict | None:
    if method == "server/discover":
        capabilities = {"tools": {}, "resources": {}, "prompts": {}}
        return {"supportedVersions": ["2026-07-28"], "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private"}
    if method in LISTS:
        return {**LISTS[method], "ttlMs": 0, "cacheScope": "private"}
    if method == "tools/call":
        return called(params["name"], params["arguments"]["item"], params.get("inputResponses") or {})
    if method == "resources/read":
        hours = {"uri": params["uri"], "mimeType": "text/plain", "text": "nine to five"}
        return {"contents": [hours], "ttlMs": 0, "cacheScope": "private"}
    if method == "prompts/get":
        complaint = f"Write a polite complaint about the {params['arguments']['item']}."
        return {"messages": [{"role": "user", "content": text(complaint)}]}
    return None


if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        found = result(message["method"], message.get("params") or {})
        answer = {"error": {"code": -32601, "message": "Method not found"}}
        if found is not None:
            answer = {"result": {"resultType": "complete", **found}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
