"""The wire of both HTTP transports: headers, sessions, streams that break off, redirects, what comes unasked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from anykit.capabilities import ExecutionFailed, InvocableResult, Unavailable
from anykit.sources.mcp import McpServer
from anykit.transports import AddressGuard

from .at_hand import OBJECT, call, eventually, invoke, ready, source, tool, until, when
from .peers.script import Peer
from .web import Reply, Request, Web, serving

pytestmark = pytest.mark.anyio


# headers and sessions


async def test_a_modern_request_says_its_version_method_and_name() -> None:
    async with serving(Peer({"eras": ["modern"]})) as web, ready(McpServer("peer", url=web.url)) as made:
        await call(made, a=1)
        [request] = web.posted("tools/call")
        assert request.headers["mcp-protocol-version"] == "2026-07-28"
        assert request.headers["mcp-method"] == "tools/call"
        assert request.headers["mcp-name"] == "echo"
        assert request.headers["content-type"] == "application/json"
        assert "mcp-session-id" not in request.headers
        assert request.message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]["name"] == "anykit"


async def test_arguments_that_a_server_wants_as_headers_are_headers() -> None:
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    bad = {"type": "object", "properties": {"region": {"type": "object", "x-mcp-header": "Region"}}}
    tools = [{"name": "echo", "inputSchema": schema}, {"name": "bad", "inputSchema": bad}]
    async with serving(Peer({"eras": ["modern"], "tools": tools})) as web:
        async with ready(McpServer("peer", url=web.url)) as made:
            await call(made, region="eu")
            [request] = web.posted("tools/call")
            assert request.headers["mcp-param-region"] == "eu"
            assert [one.name for one in made.left_out] == ["bad"]
            assert "x-mcp-header" in made.left_out[0].reason


async def test_a_legacy_session_is_named_in_every_request_and_ended() -> None:
    async with serving(Peer({"eras": ["legacy"]})) as web:
        async with ready(McpServer("peer", url=web.url)) as made:
            await call(made, a=1)
            [session] = web.known
            [request] = web.posted("tools/call")
            assert request.headers["mcp-session-id"] == session
            assert request.headers["mcp-protocol-version"] == "2025-11-25"
            assert "mcp-session-id" not in web.posted("initialize")[0].headers
            assert "mcp-protocol-version" not in web.posted("initialize")[0].headers
            await eventually(lambda: bool(web.streams))
        assert web.known == set()
        assert [one.method for one in web.requests][-1] == "DELETE"


async def test_a_legacy_server_without_sessions_and_stream_is_as_good() -> None:
    async with serving(Peer({"eras": ["legacy"]}), sessions=False) as web:
        async with ready(McpServer("peer", url=web.url)) as made:
            assert await call(made, a=1) == {"a": 1}
        assert [one.method for one in web.requests if one.method != "POST"] == []


async def test_headers_of_the_operator_go_with_every_request() -> None:
    server_headers = {"X-Team": "blue", "Authorization": "Basic abc"}
    async with serving(Peer({"eras": ["legacy"]})) as web:
        async with ready(McpServer("peer", url=web.url, headers=server_headers)) as made:
            await call(made, a=1)
            await eventually(lambda: bool(web.streams))
        assert {one.headers.get("x-team") for one in web.requests} == {"blue"}
        assert {one.headers.get("authorization") for one in web.requests} == {"Basic abc"}


async def test_userinfo_and_query_are_used_and_never_shown() -> None:
    async with serving() as web:
        url = web.url.replace("http://", "http://ann:hunter2@") + "?key=s3cret"
        async with ready(McpServer("peer", url=url)) as made:
            await call(made, a=1)
            assert "hunter2" not in repr(made.server)
            assert "s3cret" not in repr(made.server)
            assert made.server.place == f"{web.url}?..."
        assert all(one.path.endswith("?key=s3cret") for one in web.requests)
        assert all(one.headers["authorization"].startswith("Basic ") for one in web.requests)
        await web.stop()
        async with source(McpServer("peer", url=url)) as made:
            await until(made, "failed")
            assert "s3cret" not in made.state.reason
            assert "hunter2" not in made.state.reason
        await web.start()


# redirects


async def test_a_redirect_within_the_origin_is_followed_with_the_message() -> None:
    async def before(request: Request, reply: Reply) -> bool:
        if request.path != "/mcp":
            return False
        await reply.send(307, location="/mcp/")
        return True

    async with serving(before=before) as web, ready(McpServer("peer", url=web.url, token="T")) as made:
        assert await call(made, a=1) == {"a": 1}
        assert web.posted("tools/call")[-1].path == "/mcp/"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_elsewhere_is_not_followed(status: int) -> None:
    async with serving() as other:

        async def before(request: Request, reply: Reply) -> bool:
            await reply.send(status, location=other.url)
            return True

        async with serving(before=before) as web, source(McpServer("peer", url=web.url, token="T0KEN")) as made:
            await until(made, "failed")
            assert f"a redirect to {other.url}" in made.state.reason
        assert other.requests == []


async def test_addresses_that_the_guard_refuses_are_not_connected_to() -> None:
    async with serving() as web:
        async with source(McpServer("peer", url=web.url, guard=AddressGuard())) as made:
            await until(made, "failed")
            assert "loopback" in made.state.reason
        assert web.requests == []


# streams


async def test_a_broken_stream_is_resumed_where_the_server_says_how() -> None:
    """Nothing is sent again: what was missed comes over a GET with `Last-Event-ID`."""
    calls: list[Any] = []

    async def before(request: Request, reply: Reply) -> bool:
        if request.method == "GET" and "last-event-id" in request.headers:
            assert request.headers["last-event-id"] in ("e1", "e2")
            await reply.stream()
            if request.headers["last-event-id"] == "e1":
                await reply.event("", id="e2")
                return True
            result: dict[str, Any] = {"content": [], "structuredContent": {"resumed": True}}
            await reply.event({"jsonrpc": "2.0", "id": calls[0], "result": result}, id="e3")
            return True
        if request.message.get("method") != "tools/call":
            return False
        calls.append(request.message["id"])
        await reply.stream()
        await reply.raw(b"retry: 20\nid: e1\ndata:\n\n")
        return True

    async with serving(Peer({"eras": ["legacy"]}), before=before) as web:
        async with ready(McpServer("peer", url=web.url)) as made:
            assert await call(made, a=1) == {"resumed": True}
    assert len(calls) == 1


async def test_a_stream_that_cannot_be_resumed_leaves_the_outcome_unknown() -> None:
    async def before(request: Request, reply: Reply) -> bool:
        if request.method == "GET":
            await reply.send(405)
            return True
        if request.message.get("method") != "tools/call":
            return False
        await reply.stream()
        await reply.raw(b"retry: 10\nid: e1\ndata:\n\n")
        return True

    async with serving(Peer({"eras": ["legacy"]}), before=before) as web:
        async with ready(McpServer("peer", url=web.url)) as made:
            with pytest.raises(Unavailable) as raised:
                await call(made)
            assert raised.value.sent


async def test_events_that_are_no_messages_are_skipped() -> None:
    async def before(request: Request, reply: Reply) -> bool:
        if request.message.get("method") != "tools/call":
            return False
        await reply.stream()
        await reply.raw(b": comment\r\n\r\nevent: ping\r\ndata: {}\r\n\r\ndata: no json\n\nid: 7\ndata:\n\n")
        result: dict[str, Any] = {"resultType": "complete", "content": [], "structuredContent": {"a": 1}}
        text = json.dumps({"jsonrpc": "2.0", "id": request.message["id"], "result": result}, indent=1)
        await reply.raw("".join(f"data: {line}\n" for line in text.splitlines()).encode() + b"\n")
        return True

    async with serving(before=before) as web, ready(McpServer("peer", url=web.url)) as made:
        assert await call(made) == {"a": 1}
        assert made.state.detail["noise"] == 1


async def test_an_answer_with_another_id_on_its_own_stream_is_the_answer() -> None:
    async def before(request: Request, reply: Reply) -> bool:
        if request.message.get("method") != "tools/call":
            return False
        result: dict[str, Any] = {"resultType": "complete", "content": [], "structuredContent": {"a": 1}}
        await reply.json({"jsonrpc": "2.0", "id": "odd", "result": result})
        return True

    async with serving(before=before) as web, ready(McpServer("peer", url=web.url)) as made:
        assert await call(made) == {"a": 1}


async def test_answers_in_a_batch_are_read() -> None:
    async def before(request: Request, reply: Reply) -> bool:
        if request.message.get("method") != "tools/call":
            return False
        log: dict[str, Any] = {
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": {"level": "info", "data": "x"},
        }
        result: dict[str, Any] = {"content": [], "structuredContent": {"a": 1}}
        await reply.json([log, {"jsonrpc": "2.0", "id": request.message["id"], "result": result}])
        return True

    async with serving(Peer({"eras": ["legacy"]}), before=before) as web:
        async with ready(McpServer("peer", url=web.url)) as made:
            assert await call(made) == {"a": 1}


async def test_a_server_that_cannot_answer_now_says_when_and_nothing_ran() -> None:
    async def before(request: Request, reply: Reply) -> bool:
        if request.message.get("method") != "tools/call":
            return False
        await reply.send(503, b"later", "text/plain", retry_after="7")
        return True

    async with serving(before=before) as web, ready(McpServer("peer", url=web.url)) as made:
        with pytest.raises(Unavailable, match="cannot answer now") as raised:
            await call(made)
        assert not raised.value.sent
        assert raised.value.detail["retry_after"] == "7"


async def test_the_stream_for_what_comes_unasked_is_opened_again() -> None:
    peer = Peer({"eras": ["legacy"]})
    async with serving(peer) as web, ready(McpServer("peer", url=web.url)) as made:
        await eventually(lambda: bool(web.streams))
        await web.streams[0].raw(b"retry: 10\nid: s1\ndata:\n\n")
        web.streams[0].writer.close()
        await eventually(lambda: len([one for one in web.requests if one.method == "GET"]) == 2)
        assert web.requests[-1].headers["last-event-id"] == "s1"
        await eventually(lambda: bool(web.streams))
        peer.tools = [{"name": "new", "inputSchema": OBJECT}]
        await web.push({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        await when(made, lambda: [one.spec.name for one in made.invocables()] == ["new"])
        assert made.starts == 1


async def test_a_subscription_that_ends_is_opened_again_and_all_is_listed_then() -> None:
    peer = Peer({"eras": ["modern"]})
    async with serving(peer) as web, ready(McpServer("peer", url=web.url)) as made:
        await eventually(lambda: bool(web.subscriptions))
        peer.tools = [{"name": "new", "inputSchema": OBJECT}]
        web.subscriptions[0][0].writer.close()
        await when(made, lambda: [one.spec.name for one in made.invocables()] == ["new"])
        assert made.starts == 1


async def test_a_call_waits_as_long_as_its_caller_and_costs_nobody_else() -> None:
    release = asyncio.Event()

    async def before(request: Request, reply: Reply) -> bool:
        if request.message.get("method") == "tools/call" and request.message["params"]["arguments"].get("slow"):
            await release.wait()
        return False

    async with serving(before=before) as web, ready(McpServer("peer", url=web.url)) as made:
        slow = asyncio.create_task(call(made, slow=True))
        await eventually(lambda: bool(web.posted("tools/call")))
        for n in range(20):
            assert await call(made, n=n) == {"n": n}
        release.set()
        assert await slow == {"slow": True}


async def test_connections_are_used_again() -> None:
    async with serving() as web, ready(McpServer("peer", url=web.url)) as made:
        writers = len(web._writers)  # pyright: ignore[reportPrivateUsage]
        for n in range(10):
            await call(made, n=n)
        assert len(web._writers) <= writers + 1  # pyright: ignore[reportPrivateUsage]


# HTTP+SSE


@asynccontextmanager
async def old_server(peer: Peer, *, endpoint: str = "/messages?sessionId=1", path: str = "/sse") -> AsyncGenerator[Web]:
    """A server of 2024-11-05: a stream down, an address up."""

    async def before(request: Request, reply: Reply) -> bool:
        if request.method == "GET" and request.path == path:
            await reply.stream()
            await reply.event(endpoint, event="endpoint")
            web.streams.append(reply)
            await asyncio.Event().wait()
        elif request.method == "POST" and request.path == endpoint:
            answer = peer.handle(request.message, lambda message: None)
            await reply.send(202)
            if answer is not None:
                await web.streams[-1].event(answer)
        else:
            await reply.send(405 if request.path == path else 404)
        return True

    async with serving(peer, before=before) as web:
        yield web


@pytest.mark.parametrize(
    ("path", "transport"), [("/sse", "auto"), ("/sse", "sse"), ("/events", "auto"), ("/events", "sse")]
)
async def test_the_transport_before_streamable_http_is_spoken(path: str, transport: Any) -> None:
    peer = Peer({"eras": ["legacy"]})
    async with old_server(peer, path=path) as web:
        url = f"http://127.0.0.1:{web.port}{path}"
        async with ready(McpServer("old", url=url, transport=transport, token="T")) as made:
            assert await call(made, a=1) == {"a": 1}
            peer.tools = [{"name": "new", "inputSchema": OBJECT}]
            await web.streams[-1].event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            await when(made, lambda: [one.spec.name for one in made.invocables()] == ["new"])
        assert {one.headers.get("authorization") for one in web.requests} == {"Bearer T"}


async def test_an_old_server_whose_stream_ends_is_connected_to_again() -> None:
    async with old_server(Peer({"eras": ["legacy"]})) as web:
        async with ready(McpServer("old", url=f"http://127.0.0.1:{web.port}/sse")) as made:
            web.streams[-1].writer.close()
            await eventually(lambda: made.starts == 2 and made.state.status == "ready")
            assert await call(made, a=1) == {"a": 1}


async def test_an_endpoint_of_another_origin_is_not_used() -> None:
    async with serving() as other:
        async with old_server(Peer({"eras": ["legacy"]}), endpoint=f"http://127.0.0.1:{other.port}/steal") as web:
            server = McpServer("old", url=f"http://127.0.0.1:{web.port}/sse", transport="sse", token="T")
            async with source(server) as made:
                await until(made, "failed")
                assert "names an endpoint elsewhere" in made.state.reason
        assert other.requests == []


async def test_an_old_server_that_names_no_endpoint_fails_at_its_deadline() -> None:
    async def before(request: Request, reply: Reply) -> bool:
        await reply.stream()
        await asyncio.Event().wait()
        return True

    async with serving(before=before) as web:
        async with source(McpServer("old", url=web.url, transport="sse", connect_timeout=0.3)) as made:
            await until(made, "failed")
            assert made.state.reason == "no answer within 0.3 s"


async def test_an_address_that_speaks_neither_says_what_it_answered_first() -> None:
    async def before(request: Request, reply: Reply) -> bool:
        await reply.send(404, b"nothing", "text/plain")
        return True

    async with serving(before=before) as web, source(McpServer("x", url=web.url)) as made:
        await until(made, "failed")
        assert made.state.reason == f"{web.url} does not speak MCP: HTTP 404 text/plain, 'nothing'"


async def test_an_error_before_the_answer_stops_at_the_call() -> None:
    async def before(request: Request, reply: Reply) -> bool:
        if request.message.get("method") != "tools/call":
            return False
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32602, "message": "no such tool"}}
        await reply.json(error, 400)
        return True

    async with serving(before=before) as web, ready(McpServer("peer", url=web.url)) as made:
        with pytest.raises((ExecutionFailed, Exception), match="no such tool"):
            await call(made)
        assert made.starts == 1


async def test_closing_ends_calls_in_flight() -> None:
    async def before(request: Request, reply: Reply) -> bool:
        if request.message.get("method") == "tools/call":
            await asyncio.Event().wait()
        return False

    async with serving(before=before) as web, ready(McpServer("peer", url=web.url)) as made:
        waiting = asyncio.create_task(invoke(tool(made)))
        await eventually(lambda: bool(web.posted("tools/call")))
        with anyio.fail_after(5):
            await made.close()
            with pytest.raises(Unavailable, match="closed"):
                assert isinstance(await waiting, InvocableResult)
