"""The same answers from every kind of source: the functions, and a plain HTTP server with an OpenAPI document."""

from __future__ import annotations

import json
from typing import Any

from anykit import ToolError, Toolkit, tool
from transports.peers import Request, http

REASON = "no such luck"
ANSWERS: dict[str, Any] = {
    "text": "plain text",
    "structured": {"a": [1, None, True, 1.5], "b": {"c": "d"}, "e": []},
    "unicode": {"text": "grüße 日本 \u2028 😀 \x7f", "ключ": "ё"},
    "big": {"n": 2**70 + 1, "m": -(2**63) - 1},
    "list": [1, "two", {"three": 3}],
    "empty": "",
}
"""What is answered, by what is asked; `error` fails with `REASON`."""
ASKED = (*ANSWERS, "error")


@tool
async def ask(what: str) -> Any:
    """Answers."""
    if what not in ANSWERS:
        raise ToolError(REASON)
    return ANSWERS[what]


class Answers(Toolkit):
    """Answers, as a toolkit."""

    name = "answers"

    @tool
    def ask_toolkit(self, what: str) -> Any:
        """Answers, in a thread."""
        if what not in ANSWERS:
            raise ToolError(REASON)
        return ANSWERS[what]


async def over_http(request: Request) -> bytes:
    """`GET /answers/{what}`: text as text, anything else as JSON."""
    what = request.path.removeprefix("/answers/")
    if what not in ANSWERS:
        return http(422, "application/json", json.dumps({"why": REASON}).encode())
    answer = ANSWERS[what]
    if isinstance(answer, str):
        return http(200, "text/plain; charset=utf-8", answer.encode())
    return http(200, "application/json", json.dumps(answer).encode())


def document(server: str) -> dict[str, Any]:
    """An OpenAPI document of that server."""
    parameter = {"name": "what", "in": "path", "required": True, "schema": {"type": "string"}}
    answers: dict[str, Any] = {
        "200": {"description": "the answer", "content": {"application/json": {}, "text/plain": {}}}
    }
    operation: dict[str, Any] = {"operationId": "ask", "parameters": [parameter], "responses": answers}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Answers", "version": "1"},
        "servers": [{"url": server}],
        "paths": {"/answers/{what}": {"get": operation}},
    }
