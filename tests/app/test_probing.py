"""What a bare URL is: asked once, decided by what answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from anykit import Workbench, tool
from anykit.a2a import agent
from anykit.app.probing import kind_of
from anykit.capabilities import Unavailable

pytestmark = pytest.mark.anyio

CARD = {"name": "Calc", "url": "http://127.0.0.1:9/", "skills": [{"id": "add", "description": "Adds"}]}
INITIALIZED = {"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": "2025-11-25"}}


@asynccontextmanager
async def serving(routes: dict[tuple[str, str], Any]) -> AsyncGenerator[str]:
    """A server that answers these (method, path) with JSON, and all else with 404."""

    async def answer(request: web.Request) -> web.StreamResponse:
        value = routes.get((request.method, request.path))
        if value is None:
            return web.Response(status=404, text="no")
        return value if isinstance(value, web.Response) else web.json_response(value)

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("path", "routes", "kind"),
    [
        ("/card.json", {("GET", "/card.json"): CARD}, "a2a"),
        ("/api.json", {("GET", "/api.json"): {"openapi": "3.1.0", "paths": {}}}, "openapi"),
        ("", {("GET", "/.well-known/agent-card.json"): CARD}, "a2a"),
        ("/agents/x/", {("GET", "/agents/x/.well-known/agent-card.json"): CARD}, "a2a"),
        ("/mcp", {("POST", "/mcp"): INITIALIZED}, "mcp"),
        ("", {("GET", "/health"): {"status": "ok"}}, "a2e"),
        ("", {("GET", "/.well-known/agent-card.json"): CARD, ("GET", "/health"): {"status": "ok"}}, "a2a"),
        ("", {("GET", "/.well-known/agent-card.json"): CARD, ("GET", "/a2e/health"): {"status": "ok"}}, "a2e"),
    ],
)
async def test_a_url_is_what_answers_there(path: str, routes: dict[tuple[str, str], Any], kind: str) -> None:
    async with serving(routes) as url:
        assert await kind_of(url + path, {}) == kind


async def test_where_nothing_known_answers_everything_asked_is_named() -> None:
    async with serving({}) as url:
        with pytest.raises(Unavailable) as refused:
            await kind_of(url, {})
    for word in ("A2E: 404", "agent card: 404", "MCP: 404"):
        assert word in str(refused.value)


async def test_a_bare_url_in_a_workbench_becomes_the_source_that_it_is() -> None:
    async with serving({("GET", "/.well-known/agent-card.json"): CARD}) as url:
        async with Workbench(url, settle=5) as bench:
            [view] = bench.sources()
            assert (view.kind, view.state.status) == ("a2a", "ready")
            assert [one.name for one in bench.tools()] == ["Calc_add"]


async def test_a_url_where_nobody_listens_is_a_failed_source_and_the_others_work() -> None:
    @tool
    def ping() -> str:
        return "pong"

    async with Workbench("http://127.0.0.1:9", ping, settle=5) as bench:
        assert (await bench.call("ping")).output == "pong"
        [far] = [view for view in bench.sources() if view.kind == "unknown"]
        assert far.state.status == "failed"
        assert "refused" in far.state.reason
        assert far.state.retry_at is not None


async def test_agents_are_sources_and_a_dead_one_costs_only_itself() -> None:
    async with serving(
        {("GET", "/.well-known/agent-card.json"): CARD, ("GET", "/bad"): web.Response(status=500)}
    ) as url:
        good, bad = agent(url, id="good"), agent(f"{url}/bad.json", id="bad")
        async with Workbench(agents=[good, bad], settle=5) as bench:
            assert [one.name for one in bench.tools()] == ["Calc_add"]
            states = {view.name: view.state.status for view in bench.sources()}
            assert (states["good"], states["bad"]) == ("ready", "failed")
            await bench.remove("good")
            assert bench.tools() == []
            await bench.add_agent(good)
            assert await bench.settled(5)
            assert [one.name for one in bench.tools()] == ["Calc_add"]


async def test_an_agents_block_of_the_file_is_read_with_its_times_in_milliseconds() -> None:
    async with serving({("GET", "/.well-known/agent-card.json"): CARD}) as url:
        blocks = {
            "calc": {"card": url, "timeout": 5000, "pollEvery": 50},
            "off": {"card": url, "enabled": False},
            "wrong": {"card": url, "timeout": "soon"},
        }
        async with Workbench(config={"agents": blocks}, settle=5) as bench:
            states = {view.name: view.state for view in bench.sources()}
            assert {name: state.status for name, state in states.items()} == {
                "calc": "ready",
                "off": "disabled",
                "wrong": "failed",
            }
            assert "agents.wrong.timeout" in states["wrong"].reason
