"""An A2E session over HTTP against a host that the test plays."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import pytest

from anykit.capabilities import Unavailable
from anykit.transports import (
    OPEN,
    AddressGuard,
    AddressRefused,
    HttpClient,
    HttpSessionTransport,
    LineTransport,
    Oversized,
    TransportClosed,
    encode_comment,
    encode_event,
)
from transports.peers import Peer, Request, http, peer

pytestmark = pytest.mark.anyio

STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n"


@dataclass
class Host:
    """A host with one session, whose stream the test writes."""

    prefix: str = ""
    sent: list[bytes] = field(default_factory=list[bytes])
    send_answers: list[bytes] = field(default_factory=list[bytes])
    streams: asyncio.Queue[Request] = field(default_factory=asyncio.Queue[Request])
    stream_answers: list[bytes] = field(default_factory=list[bytes])
    deleted: int = 0

    async def answer(self, request: Request) -> bytes | None:
        match request.method, request.path.removeprefix(self.prefix) if request.path.startswith(self.prefix) else "":
            case "POST", "/session":
                return http(200, "application/json", b'{"session_id":"s1"}')
            case "POST", "/send" if request.headers["x-session-id"] == "s1":
                if self.send_answers:
                    return self.send_answers.pop(0)
                self.sent.append(request.body)
                return http(200, "application/json", b'{"ok":true}')
            case "GET", "/stream" if request.headers["x-session-id"] == "s1":
                if self.stream_answers:
                    return self.stream_answers.pop(0)
                request.writer.write(STREAM_HEAD)
                await request.writer.drain()
                await self.streams.put(request)
                await request.writer.wait_closed()
                return None
            case "DELETE", "/session":
                self.deleted += 1
                return http(200, "application/json", b'{"ok":true}')
            case _:
                return http(404, "application/json", b'{"detail":"Not Found"}')

    async def stream(self) -> Request:
        """The next stream that the transport opens."""
        async with asyncio.timeout(5):
            return await self.streams.get()


@contextlib.asynccontextmanager
async def session(host: Host, path: str = "") -> AsyncGenerator[tuple[HttpSessionTransport, Peer], None]:
    async with peer(host.answer) as server, HttpClient(guard=OPEN) as client:
        transport = await HttpSessionTransport.open(server.url + path, client=client)
        try:
            yield transport, server
        finally:
            await transport.close()


async def receive(transport: HttpSessionTransport) -> bytes | Oversized:
    async with asyncio.timeout(5):
        return await transport.receive()


async def say(stream: Request, data: bytes) -> None:
    stream.writer.write(data)
    await stream.writer.drain()


async def test_lines_go_out_by_post_and_come_in_by_stream() -> None:
    host = Host()
    async with session(host) as (transport, server):
        assert isinstance(transport, LineTransport)
        assert transport.secure
        assert transport.session_id == "s1"
        await transport.send(b'{"type":"ping"}')
        assert host.sent == [b'{"type":"ping"}']
        stream = await host.stream()
        text = '{"type":"pong","t":"\u2028"}'.encode()
        await say(stream, encode_event(text, id="1") + encode_event(b'{\n"a":1}') + encode_event(b""))
        assert await receive(transport) == text
        assert await receive(transport) == b'{ "a":1}'
        waiting = asyncio.create_task(transport.receive())
        await asyncio.sleep(0)
        await transport.close()
        with pytest.raises(TransportClosed, match="closed"):
            await waiting
    assert host.deleted == 1
    posts = [request for request in server.requests if request.method == "POST"]
    assert posts[1].headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("prefix", "path"),
    [("", ""), ("", "/"), ("/a2e", ""), ("/a2e", "/a2e"), ("", "/a2e/"), ("/x/a2e", "/x"), ("/x", "/x/")],
)
async def test_the_base_is_found_with_and_without_its_prefix(prefix: str, path: str) -> None:
    host = Host(prefix=prefix)
    async with session(host, path) as (transport, _):
        await transport.send(b"{}")
        assert host.sent == [b"{}"]


async def test_a_page_where_the_session_was_looked_for_is_passed_by() -> None:
    host = Host(prefix="/a2e")

    async def site(request: Request) -> bytes | None:
        if request.path == "/session":
            return http(200, "text/html", b"<html>the console</html>")
        return await host.answer(request)

    async with peer(site) as server, HttpClient(guard=OPEN) as client:
        transport = await HttpSessionTransport.open(server.url, client=client)
        assert transport.url == f"{server.url}/a2e"
        await transport.close()


@pytest.mark.parametrize(
    ("status", "content_type", "body", "described"),
    [
        (500, "text/plain", b"boom", "HTTP 500 text/plain, 'boom'"),
        (403, "text/html", b"<h1>no</h1>", "HTTP 403 text/html, '<h1>no</h1>'"),
        (200, "text/html", b"<html>", "HTTP 200 text/html, '<html>'"),
        (200, "application/json", b"", "HTTP 200 application/json, no body"),
        (200, "application/json", b"[1,2", "HTTP 200 application/json, '[1,2'"),
        (200, "application/json", b"null", "HTTP 200 application/json, 'null'"),
        (200, "application/json", b'{"session_id":""}', "HTTP 200 application/json"),
        (200, "application/json", b'{"session_id":"a\\r\\nx: y"}', "HTTP 200 application/json"),
        (404, "text/plain", b"nothing", "HTTP 404 text/plain, 'nothing'"),
    ],
)
async def test_b018_what_is_no_host_is_described(status: int, content_type: str, body: bytes, described: str) -> None:
    """PrefectHQ/fastmcp#2595: an HTTP peer that answers with something that is not the protocol."""

    async def answer(_: Request) -> bytes:
        return http(status, content_type, body)

    async with peer(answer) as server, HttpClient(guard=OPEN) as client:
        with pytest.raises(Unavailable) as caught:
            await HttpSessionTransport.open(server.url, client=client)
    assert described in caught.value.message
    assert f"{server.url}/session did not answer with an A2E session" in caught.value.message
    assert caught.value.sent is False


async def test_b025_a_host_that_is_down_is_an_ordinary_error_with_its_cause() -> None:
    """openai/openai-agents-python#1288."""
    async with peer(Host().answer) as server:
        url = server.url
    async with HttpClient(guard=OPEN) as client:
        with pytest.raises(Unavailable, match="connection refused") as caught:
            await HttpSessionTransport.open(url, client=client)
    assert caught.value.sent is False
    assert url in caught.value.message


async def test_a_host_at_an_address_that_is_not_allowed_is_not_contacted() -> None:
    async with peer(Host().answer) as server:
        with pytest.raises(AddressRefused):
            await HttpSessionTransport.open(server.url)
        assert server.connections == 0


async def test_secure_is_tls_or_this_machine() -> None:
    for url, secure in (
        ("https://h.example", True),
        ("http://127.0.0.1:1", True),
        ("http://localhost", True),
        ("http://[::1]:1", True),
        ("http://h.example", False),
        ("http://10.0.0.1", False),
        ("http://127.0.0.1.h.example", False),
    ):
        transport = HttpSessionTransport(HttpClient(guard=AddressGuard()), url, "s", owns_client=True)
        assert transport.secure is secure
        await transport.close()


# -- the stream drops


async def test_a_dropped_stream_is_taken_up_after_the_last_event() -> None:
    host = Host()
    async with session(host) as (transport, _):
        first = await host.stream()
        assert "last-event-id" not in first.headers
        await say(first, encode_event(b'"one"', id="41") + encode_event(b'"two"', id="42") + b"id: 43\ndata: half")
        assert [await receive(transport), await receive(transport)] == [b'"one"', b'"two"']
        first.writer.transport.abort()
        second = await host.stream()
        assert second.headers["last-event-id"] == "42"
        await say(second, encode_event(b'"three"', id="43"))
        assert await receive(transport) == b'"three"'
        assert transport.resumed == 1
        second.writer.close()
        third = await host.stream()
        assert third.headers["last-event-id"] == "43"


@pytest.mark.parametrize("status", [404, 410])
async def test_a_session_that_ended_ends_the_transport(status: int) -> None:
    host = Host()
    async with session(host) as (transport, _):
        first = await host.stream()
        host.stream_answers = [http(status, "application/json", b'{"detail":"Session not found"}')]
        await say(first, encode_event(b'"last"'))
        first.writer.close()
        assert await receive(transport) == b'"last"'
        with pytest.raises(TransportClosed, match="the session has ended") as caught:
            await receive(transport)
        assert caught.value.detail == {"status": status}
        with pytest.raises(TransportClosed) as caught:
            await transport.send(b"{}")
        assert caught.value.sent is False
    assert host.deleted == 0


async def test_a_stream_that_cannot_be_had_for_a_while_is_waited_for() -> None:
    host = Host(stream_answers=[http(503, "text/plain", b"starting"), http(502)])
    async with session(host) as (transport, _):
        await say(await host.stream(), encode_event(b"{}"))
        assert await receive(transport) == b"{}"


async def test_a_stream_that_is_none_ends_the_transport_with_what_came() -> None:
    host = Host(stream_answers=[http(200, "text/html", b"<html>login</html>")])
    async with session(host) as (transport, _):
        with pytest.raises(TransportClosed, match=r"event stream: HTTP 200 text/html, '<html>login</html>'"):
            await receive(transport)


async def test_a_host_that_goes_away_ends_the_transport_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anykit.transports.a2e_http.STREAM_PAUSES", (0.0, 0.01, 0.01))
    host = Host()
    async with HttpClient(guard=OPEN) as client:
        async with peer(host.answer) as server:
            transport = await HttpSessionTransport.open(server.url, client=client)
            await host.stream()
        with pytest.raises(TransportClosed, match=r"stream lost: .*connection refused"):
            await receive(transport)
        await transport.close()


async def test_a_silent_stream_with_heartbeats_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anykit.transports.a2e_http.IDLE_SECONDS", 0.05)
    host = Host()
    async with session(host) as (transport, _):
        await say(await host.stream(), encode_comment())
        await say(await host.stream(), encode_event(b"{}"))
        assert await receive(transport) == b"{}"


async def test_an_event_too_large_is_reported_and_the_next_one_passes() -> None:
    host = Host()
    async with peer(host.answer) as server, HttpClient(guard=OPEN) as client:
        transport = await HttpSessionTransport.open(server.url, client=client, max_line=1000)
        await say(await host.stream(), encode_event(b"x" * 5000) + encode_event(b"fine"))
        assert isinstance(await receive(transport), Oversized)
        assert await receive(transport) == b"fine"
        await transport.close()


async def test_b040_large_messages_pass_both_ways() -> None:
    """QwenLM/qwen-code#9298."""
    large = json.dumps("x" * 5_000_000).encode()
    host = Host()
    async with session(host) as (transport, _):
        await transport.send(large)
        assert host.sent == [large]
        await say(await host.stream(), encode_event(large))
        assert await receive(transport) == large


async def test_b041_bad_bytes_in_an_event_are_a_line_like_any_other() -> None:
    """modelcontextprotocol/python-sdk#2873."""
    host = Host()
    async with session(host) as (transport, _):
        await say(await host.stream(), encode_event(b"\xff\xfe garbage") + encode_event(b"{}"))
        assert [await receive(transport), await receive(transport)] == [b"\xff\xfe garbage", b"{}"]


# -- sending goes wrong


@pytest.mark.parametrize(
    ("status", "sent"), [(400, False), (413, False), (429, False), (500, True), (502, True), (503, False), (307, False)]
)
async def test_a_message_that_was_not_taken_says_why_and_the_next_one_goes(status: int, sent: bool) -> None:
    host = Host(send_answers=[http(status, "text/plain", b"too much", retry_after="3")])
    async with session(host) as (transport, _):
        with pytest.raises(
            Unavailable, match=f"did not take the message: HTTP {status} text/plain, 'too much'"
        ) as caught:
            await transport.send(b"{}")
        assert not isinstance(caught.value, TransportClosed)
        assert caught.value.sent is sent
        assert caught.value.detail == {"status": status, "retry_after": "3"}
        await transport.send(b"[]")
        assert host.sent == [b"[]"]


async def test_a_message_that_may_have_arrived_is_never_sent_again() -> None:
    host = Host()
    posts = 0

    async def answer(request: Request) -> bytes | None:
        nonlocal posts
        if request.path == "/send":
            posts += 1
            return None
        return await host.answer(request)

    async with peer(answer) as server, HttpClient(guard=OPEN) as client:
        transport = await HttpSessionTransport.open(server.url, client=client)
        with pytest.raises(Unavailable) as caught:
            await transport.send(b"{}")
        assert caught.value.sent is True
        assert posts == 1
        await transport.close()


async def test_a_message_that_could_not_leave_is_tried_again_within_bounds() -> None:
    host = Host()
    async with HttpClient(guard=OPEN) as client:
        async with peer(host.answer) as server:
            transport = await HttpSessionTransport.open(server.url, client=client)
        sending = asyncio.create_task(transport.send(b"{}"))
        async with peer(host.answer, port=server.port):
            async with asyncio.timeout(5):
                await sending
            assert host.sent == [b"{}"]
        with pytest.raises(Unavailable, match="connection refused") as caught:
            async with asyncio.timeout(5):
                await transport.send(b"{}")
        assert caught.value.sent is False
        await transport.close()


async def test_closing_a_session_whose_host_hangs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anykit.transports.a2e_http.CLOSE_SECONDS", 0.05)
    host = Host()

    async def answer(request: Request) -> bytes | None:
        if request.method == "DELETE":
            await asyncio.sleep(60)
        return await host.answer(request)

    async with peer(answer) as server, HttpClient(guard=OPEN) as client:
        transport = await HttpSessionTransport.open(server.url, client=client)
        async with asyncio.timeout(2):
            await transport.close()
            await transport.close()


async def test_a_line_feed_inside_a_line_is_refused() -> None:
    async with session(Host()) as (transport, _):
        with pytest.raises(ValueError, match="line feed"):
            await transport.send(b"{}\n{}")


async def test_a_reader_that_is_slow_slows_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anykit.transports.a2e_http.HIGH_WATER", 100_000)
    host = Host()
    async with session(host) as (transport, _):
        stream = await host.stream()
        event = encode_event(b"x" * 50_000)
        written = 0

        async def flood() -> None:
            nonlocal written
            for _ in range(1000):
                await say(stream, event)
                written += 1

        flooding = asyncio.create_task(flood())
        await asyncio.sleep(0.3)
        assert written < 900
        for _ in range(1000):
            assert await receive(transport) == b"x" * 50_000
        await flooding
