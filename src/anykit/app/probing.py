"""A bare URL: what answers there? It is asked once, when the workbench starts.

the URL itself             an agent card or an OpenAPI document
/a2e/health                an A2E host that says so (ours: of all that it speaks, A2E carries most)
/.well-known/agent-card…   an A2A agent
initialize                 an MCP server
/health                    an A2E host
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

from anykit.capabilities import Invocable, JsonObject, PromptProvider, ResourceProvider, State, Unavailable
from anykit.runtime import Source
from anykit.transports import OPEN, HttpAnswer, HttpClient, HttpStream

ASK_TIMEOUT = 5.0
"""Seconds for one question."""
RETRY = (1.0, 30.0)
"""Seconds until a URL that nothing known answers is asked again; doubled each time."""

_INITIALIZE = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "anykit", "version": "0"},
        },
    }
).encode()

Decide = Callable[[str], Source]
Decided = Callable[[Source], Awaitable[None]]


class Undecided:
    """A provider of nothing, until it is known what its URL is; then `decided` is called with the real source."""

    def __init__(self, url: str, *, headers: dict[str, str], decide: Decide, timeout: float) -> None:
        self.url = url
        self._headers = headers
        self._decide = decide
        self._timeout = timeout
        self._decided: Decided | None = None
        self._state = State("connecting", since=time.time())
        self._listeners: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None

    def invocables(self) -> Sequence[Invocable]:
        """Nothing yet."""
        return ()

    def resources(self) -> Sequence[ResourceProvider]:
        """Nothing yet."""
        return ()

    def prompts(self) -> Sequence[PromptProvider]:
        """Nothing yet."""
        return ()

    @property
    def state(self) -> State:
        """Connecting, or failed with what was asked and answered."""
        return self._state

    def when_decided(self, decided: Decided) -> None:
        """Whom to tell."""
        self._decided = decided

    async def start(self) -> None:
        """Begin to ask."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._ask(), name=f"ask {self.url}")

    async def close(self) -> None:
        """Stop asking."""
        task, self._task = self._task, None
        if task is not None and task is not asyncio.current_task():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back when the state changed."""
        self._listeners.append(callback)

        def unsubscribe() -> None:
            if callback in self._listeners:
                self._listeners.remove(callback)

        return unsubscribe

    async def _ask(self) -> None:
        pause = RETRY[0]
        while True:
            try:
                async with asyncio.timeout(self._timeout):
                    kind = await kind_of(self.url, self._headers)
                source = self._decide(kind)
                break
            except TimeoutError:
                reason = f"nothing answered within {self._timeout:g} s"
            except Exception as error:
                reason = str(error)
            now = time.time()
            since = self._state.since if self._state.status == "failed" else now
            self._state = State("failed", reason, since=since, retry_at=now + pause)
            for listener in list(self._listeners):
                listener()
            await asyncio.sleep(pause)
            pause = min(pause * 2, RETRY[1])
        if self._decided is not None:
            await self._decided(source)


async def kind_of(url: str, headers: dict[str, str]) -> str:
    """`openapi`, `a2a`, `mcp` or `a2e`. Raises `Unavailable` with everything that was asked."""
    client = HttpClient(guard=OPEN, headers=headers, timeout=ASK_TIMEOUT, connect_timeout=ASK_TIMEOUT)
    try:
        return await _kind_of(url, client)
    finally:
        await client.close()


async def _kind_of(url: str, client: HttpClient) -> str:
    asked: list[str] = []

    async def get(what: str, at: str) -> JsonObject | None:
        return await _json(what, client.request("GET", at, headers={"accept": "application/json"}), asked)

    async def initialize() -> bool:
        accept = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        try:
            async with asyncio.timeout(ASK_TIMEOUT):
                async with client.stream("POST", url, headers=accept, body=_INITIALIZE) as answer:
                    return await _is_mcp(answer, asked)
        except TimeoutError:
            asked.append("MCP: no answer")
        except Unavailable as error:
            asked.append(f"MCP: {error.message}")
        return False

    document, a2e, card, mcp, health = await asyncio.gather(
        get("document", url),
        get("A2E", beneath(url, "a2e/health")),
        get("agent card", beneath(url, ".well-known/agent-card.json")),
        initialize(),
        get("A2E", beneath(url, "health")),
    )
    if document is not None and ("openapi" in document or "swagger" in document):
        return "openapi"
    if _is_card(document):
        return "a2a"
    if _is_health(a2e):
        return "a2e"
    if _is_card(card):
        return "a2a"
    if mcp:
        return "mcp"
    if _is_health(health):
        return "a2e"
    raise Unavailable(f"{_shown(url)}: nothing known answers there ({'; '.join(dict.fromkeys(asked)) or 'no JSON'})")


async def _json(what: str, request: Awaitable[HttpAnswer], asked: list[str]) -> JsonObject | None:
    try:
        answer = await request
    except Unavailable as error:
        asked.append(f"{what}: {error.message}")
        return None
    if answer.status != 200:
        asked.append(f"{what}: {answer.status}")
        return None
    try:
        value: Any = answer.json()
    except (ValueError, Unavailable):
        return {"openapi": ""} if what == "document" and _is_yaml(answer) else None
    return cast(JsonObject, value) if isinstance(value, dict) else None


def _is_yaml(answer: HttpAnswer) -> bool:
    """Whether an answer that is no JSON is an OpenAPI document in YAML."""
    from anykit.sources.openapi import is_document  # noqa: PLC0415 - only for what may be one

    return answer.content_type != "text/html" and is_document(answer.body.decode("utf-8", "replace"))


def _is_card(document: JsonObject | None) -> bool:
    return document is not None and "name" in document and bool({"skills", "supportedInterfaces"} & document.keys())


def _is_health(document: JsonObject | None) -> bool:
    return document is not None and document.get("status") == "ok"


async def _is_mcp(answer: HttpStream, asked: list[str]) -> bool:
    """An answer to `initialize`, or a demand for credentials that an MCP server makes. A stream is not waited for."""
    if answer.status == 401 and "www-authenticate" in answer.headers:
        return True
    if answer.status == 200:
        if answer.content_type == "text/event-stream":
            return True
        async for chunk in answer.chunks():
            return b'"jsonrpc"' in chunk[:4096]
    asked.append(f"MCP: {answer.status}")
    return False


def beneath(url: str, path: str) -> str:
    """`path` under `url`, whose own path is kept and whose query is not."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, f"{parts.path.rstrip('/')}/{path}", "", ""))


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
