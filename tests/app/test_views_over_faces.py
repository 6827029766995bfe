"""A token's view holds over every face, and is not to be had without the token."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from anykit import Workbench, tool
from anykit.a2e import A2EClient
from anykit.app.serving import server
from anykit.servers import Address
from anykit.sources.a2e import A2ERequestError

pytestmark = pytest.mark.anyio


@tool(tags=["mail"])
async def send(to: str) -> str:
    """Sends."""
    return f"sent to {to}"


@tool
async def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


CONFIG = {
    "views": {"mail": {"tags": ["mail"]}},
    "serve": {
        "token": "operator",
        "tokens": [
            {"name": "helpdesk", "token": "helpdesk-token", "view": "mail"},
            {"name": "bot", "token": "bot-token"},
        ],
    },
}


@asynccontextmanager
async def served() -> AsyncGenerator[str]:
    listening: asyncio.Future[Address] = asyncio.get_running_loop().create_future()
    async with Workbench(send, add, config=CONFIG) as bench:
        host = server(bench, port=0, listening=listening.set_result)
        serving = asyncio.ensure_future(host.serve(signals=False))
        try:
            async with asyncio.timeout(8):
                yield (await listening).url
        finally:
            host.stop()
            await asyncio.wait_for(serving, 8)


async def post(url: str, token: str, method: str, params: dict[str, Any], headers: dict[str, str]) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    shown = {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream", **headers}
    async with aiohttp.ClientSession() as http, http.post(url, json=message, headers=shown) as answer:
        if answer.status == 401:
            return None
        return await answer.json()


async def mcp(url: str, token: str, method: str, **params: Any) -> Any:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    }
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
    if "name" in params:
        headers["mcp-name"] = params["name"]
    return await post(f"{url}/mcp", token, method, {"_meta": meta, **params}, headers)


async def test_over_mcp_a_token_gets_its_view_and_no_more() -> None:
    async with served() as url:
        listed = {
            token: [one["name"] for one in (await mcp(url, token, "tools/list"))["result"]["tools"]]
            for token in ("operator", "bot-token", "helpdesk-token")
        }
        assert listed == {"operator": ["send", "add"], "bot-token": ["send", "add"], "helpdesk-token": ["send"]}
        outside = await mcp(url, "helpdesk-token", "tools/call", name="add", arguments={"a": 1, "b": 2})
        assert outside["error"]["message"] == "unknown tool 'add'"
        inside = await mcp(url, "helpdesk-token", "tools/call", name="send", arguments={"to": "ada"})
        assert inside["result"]["content"][0]["text"] == "sent to ada"
        assert await mcp(url, "wrong", "tools/list") is None


async def test_over_a2e_a_token_gets_its_view_and_no_more() -> None:
    async with served() as url:
        async with A2EClient(url, token="helpdesk-token") as client:
            assert [one.name for one in await client.tools.list()] == ["send"]
            with pytest.raises(A2ERequestError, match="unknown tool 'add'"):
                await client.tools.call("add", {"a": 1, "b": 2})
        async with A2EClient(url, token="operator") as client:
            assert [one.name for one in await client.tools.list()] == ["send", "add"]
        with pytest.raises(Exception, match="auth"):
            async with A2EClient(url, token="wrong"):
                pass


async def test_over_a2a_a_token_gets_its_view_and_no_more() -> None:
    async def called(url: str, token: str) -> Any:
        part = {"data": {"tool": "add", "arguments": {"a": 1, "b": 2}}}
        message = {"messageId": "m1", "role": "ROLE_USER", "parts": [part]}
        return await post(f"{url}/a2a", token, "SendMessage", {"message": message}, {"a2a-version": "1.0"})

    async with served() as url:
        assert "3" in str(await called(url, "operator"))
        refused = str(await called(url, "helpdesk-token"))
        assert "TASK_STATE_COMPLETED" not in refused
        assert "'add'" in refused
        assert await called(url, "wrong") is None
