"""The client against peers that answer rightly, wrongly, slowly, too much, or not at all. Real sockets on 127.0.0.1."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import gzip
import ipaddress
import socket
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from anykit.capabilities import Unavailable
from anykit.transports import OPEN, AddressGuard, AddressRefused, HttpClient, public_url
from transports.peers import Answer, Request, http, peer

pytestmark = pytest.mark.anyio


def always(data: bytes) -> Answer:
    async def answer(_: Request) -> bytes:
        return data

    return answer


async def test_a_request_and_its_answer() -> None:
    async with peer(always(http(201, "Text/Plain; charset=utf-8", b"made", x_more="1"))) as server:
        async with HttpClient(guard=OPEN, headers={"Authorization": "Bearer t"}) as client:
            answer = await client.request("post", f"{server.url}/a?b=c", headers={"X-One": "1"}, body=b"{}")
    assert (answer.status, answer.content_type, answer.body) == (201, "text/plain", b"made")
    assert answer.headers["x-more"] == "1"
    assert answer.url == f"{server.url}/a?..."
    (request,) = server.requests
    assert (request.method, request.path, request.body) == ("POST", "/a?b=c", b"{}")
    assert request.headers["authorization"] == "Bearer t"
    assert request.headers["x-one"] == "1"
    assert request.headers["user-agent"] == "anykit"


async def test_one_connection_serves_many_requests() -> None:
    async with peer(always(http(200))) as server, HttpClient(guard=OPEN) as client:
        for _ in range(5):
            await client.request("GET", server.url)
        assert server.connections == 1


async def test_cookies_of_a_peer_are_not_kept() -> None:
    async with peer(always(http(200, set_cookie="a=b"))) as server, HttpClient(guard=OPEN) as client:
        await client.request("GET", server.url)
        await client.request("GET", server.url)
        assert "cookie" not in server.requests[1].headers


async def test_credentials_in_a_url_become_a_header_and_are_never_shown() -> None:
    async with peer(always(http(500, "text/plain", b"no"))) as server, HttpClient(guard=OPEN) as client:
        answer = await client.request("GET", f"http://me:p%40ss@127.0.0.1:{server.port}/?token=hunter2")
        assert server.requests[0].headers["authorization"] == "Basic bWU6cEBzcw=="
        text = str(answer.unexpected("JSON")) + repr(answer)
        assert "p%40ss" not in text
        assert "p@ss" not in text
        assert "hunter2" not in text


# -- B025: root causes


async def test_b025_a_refused_connection_says_so_and_leaves_the_task_alone() -> None:
    """openai/openai-agents-python#1288: a failed connect leaves the task cancelled, the error is a bare group."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    async with HttpClient(guard=OPEN) as client:
        with pytest.raises(Unavailable) as caught:
            await client.request("POST", f"http://me:secret@127.0.0.1:{port}/path?key=secret", body=b"x")
    assert caught.value.message == f"cannot reach http://127.0.0.1:{port}/path?...: connection refused"
    assert caught.value.sent is False
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)


async def test_a_name_that_does_not_resolve_is_named() -> None:
    async with HttpClient(guard=OPEN) as client:
        with pytest.raises(Unavailable, match=r"cannot resolve 'no-such-host.invalid'") as caught:
            await client.request("GET", "http://no-such-host.invalid/")
    assert caught.value.sent is False


async def test_a_connection_closed_without_an_answer_may_have_been_carried_out() -> None:
    async def hang_up(_: Request) -> None:
        return None

    async with peer(hang_up) as server, HttpClient(guard=OPEN) as client:
        with pytest.raises(Unavailable, match="closed without an answer") as caught:
            await client.request("POST", server.url, body=b"x")
    assert caught.value.sent is True


async def test_an_answer_that_breaks_off_says_so() -> None:
    async def half(request: Request) -> None:
        request.writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
        await request.writer.drain()

    async with peer(half) as server, HttpClient(guard=OPEN) as client:
        with pytest.raises(Unavailable, match=r"lost http://.*: the answer broke off") as caught:
            await client.request("GET", server.url)
    assert caught.value.sent is True


async def test_a_peer_that_does_not_speak_http_is_described() -> None:
    async def ssh(request: Request) -> None:
        request.writer.write(b"SSH-2.0-OpenSSH_9.0\r\n")
        await request.writer.drain()

    async with peer(ssh) as server, HttpClient(guard=OPEN) as client:
        with pytest.raises(Unavailable, match="not HTTP"):
            await client.request("GET", server.url)


async def test_a_peer_that_does_not_answer_is_given_up_in_time() -> None:
    async def hang(_: Request) -> None:
        await asyncio.sleep(60)

    async with peer(hang) as server, HttpClient(guard=OPEN) as client:
        with pytest.raises(Unavailable, match=r"did not answer within 0.05 s") as caught:
            await client.request("POST", server.url, timeout=0.05)
        assert caught.value.sent is True


async def test_a_body_that_trickles_is_given_up_in_time() -> None:
    async def trickle(request: Request) -> None:
        request.writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
        while True:
            request.writer.write(b"x")
            await request.writer.drain()
            await asyncio.sleep(0.01)

    async with peer(trickle) as server, HttpClient(guard=OPEN, timeout=0.1) as client:
        with pytest.raises(Unavailable, match="did not answer within"):
            await client.request("GET", server.url)


async def test_a_callers_own_deadline_stays_a_timeout() -> None:
    async def hang(_: Request) -> None:
        await asyncio.sleep(60)

    async with peer(hang) as server, HttpClient(guard=OPEN) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.request("GET", server.url)


# -- B018: answers that are not the protocol


@pytest.mark.parametrize(
    ("status", "content_type", "body", "described"),
    [
        (500, "text/plain", b"boom", "HTTP 500 text/plain, 'boom'"),
        (403, "text/html", b"<h1>no</h1>", "HTTP 403 text/html, '<h1>no</h1>'"),
        (200, "text/html", b"<html>", "HTTP 200 text/html, '<html>'"),
        (200, "text/plain", b"this is not json", "HTTP 200 text/plain, 'this is not json'"),
        (200, "application/json", b"", "HTTP 200 application/json, no body"),
        (200, "application/json", b"[1,2", "HTTP 200 application/json, '[1,2'"),
        (200, "application/json", b"NaN", "HTTP 200 application/json, 'NaN'"),
        (200, "application/json", b"[" * 200_000, "HTTP 200 application/json, '[[["),
        (200, "", b"\xff\x00\n\tx", "HTTP 200 without content type, '\ufffd x'"),
    ],
)
async def test_b018_what_is_not_the_protocol_is_described(
    status: int, content_type: str, body: bytes, described: str
) -> None:
    """PrefectHQ/fastmcp#2595, google/adk-python#4901: status, content type and a short excerpt, at once."""
    async with peer(always(http(status, content_type, body))) as server, HttpClient(guard=OPEN) as client:
        answer = await client.request("GET", server.url)
        with pytest.raises(Unavailable) as caught:
            answer.json()
    assert described in caught.value.message
    assert len(caught.value.message) < 500
    assert caught.value.detail == {"status": status, "content_type": content_type}


async def test_b018_an_excerpt_never_quotes_what_we_sent_as_a_credential() -> None:
    """modelcontextprotocol/python-sdk#2432: the excerpt comes from the peer, which may echo our headers."""

    async def echo(request: Request) -> bytes:
        return http(401, "text/plain", repr(request.headers).encode())

    async with peer(echo) as server:
        async with HttpClient(
            guard=OPEN, headers={"Authorization": "Bearer sk-12345678", "X-Key": "k-87654321"}
        ) as client:
            answer = await client.request("GET", server.url)
    assert b"sk-12345678" in answer.body
    assert "sk-12345678" not in answer.describe()
    assert "k-87654321" not in answer.describe()


async def test_b018_json_null_is_a_value() -> None:
    """modelcontextprotocol/python-sdk#1382."""
    async with peer(always(http(200, "application/json", b"null"))) as server, HttpClient(guard=OPEN) as client:
        assert (await client.request("GET", server.url)).json() is None


# -- bounds


@pytest.mark.parametrize("packed", [False, True])
async def test_a_body_beyond_the_limit_is_refused_however_it_is_packed(packed: bool) -> None:
    body = b"\0" * 3_000_000
    answer = http(200, "", gzip.compress(body), content_encoding="gzip") if packed else http(200, "", body)
    async with peer(always(answer)) as server, HttpClient(guard=OPEN, max_body=100_000) as client:
        with pytest.raises(Unavailable, match="more than 100000 bytes") as caught:
            await client.request("GET", server.url)
    assert caught.value.detail["reason"] == "too_large"


async def test_a_stream_comes_in_pieces_and_may_be_left() -> None:
    more = asyncio.Event()

    async def events(request: Request) -> None:
        request.writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\none")
        await request.writer.drain()
        await more.wait()
        request.writer.write(b"two")
        await request.writer.drain()
        await asyncio.sleep(60)

    async with peer(events) as server, HttpClient(guard=OPEN) as client:
        async with client.stream("GET", server.url) as stream:
            assert (stream.status, stream.content_type) == (200, "text/event-stream")
            async with contextlib.aclosing(stream.chunks()) as chunks:
                assert await anext(chunks) == b"one"
                more.set()
                assert await anext(chunks) == b"two"
                stream.idle = 0.05
                with pytest.raises(Unavailable, match=r"silent for 0\.05 s"):
                    await anext(chunks)


async def test_an_excerpt_of_an_endless_body_is_bounded() -> None:
    async def endless(request: Request) -> None:
        request.writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n")
        while True:
            request.writer.write(b"x" * 1000)
            await request.writer.drain()
            await asyncio.sleep(0)

    async with peer(endless) as server, HttpClient(guard=OPEN) as client:
        async with client.stream("GET", server.url) as stream:
            async with asyncio.timeout(2):
                assert len((await stream.excerpt()).describe()) < 300


# -- redirects


def redirecting(to: str, status: int = 302) -> Answer:
    async def answer(request: Request) -> bytes:
        return http(status, location=to) if request.path == "/from" else http(200, "text/plain", b"there")

    return answer


async def test_a_redirect_within_the_origin_keeps_the_credentials() -> None:
    async with peer(redirecting("/to?x=1")) as server:
        async with HttpClient(guard=OPEN, headers={"Authorization": "Bearer t", "X-Key": "k"}) as client:
            answer = await client.request("GET", f"{server.url}/from")
        assert answer.body == b"there"
        assert answer.url == f"{server.url}/to?..."
        assert server.requests[1].headers["authorization"] == "Bearer t"
        assert server.requests[1].headers["x-key"] == "k"


async def test_a_redirect_to_another_origin_drops_them() -> None:
    async with peer(always(http(200))) as other, peer(redirecting(f"http://u:p@127.0.0.1:{other.port}/to")) as server:
        async with HttpClient(guard=OPEN, headers={"Authorization": "Bearer t", "Accept": "a/b"}) as client:
            await client.request("GET", f"http://me:pw@127.0.0.1:{server.port}/from", headers={"X-Session-Id": "s"})
        (request,) = other.requests
        assert request.headers["accept"] == "a/b"
        assert not {"authorization", "x-session-id", "cookie"} & set(request.headers)


@pytest.mark.parametrize(
    ("status", "method", "becomes"),
    [(301, "POST", "GET"), (302, "POST", "GET"), (303, "PUT", "GET"), (307, "POST", "POST"), (308, "PUT", "PUT")],
)
async def test_what_a_redirect_makes_of_the_method(status: int, method: str, becomes: str) -> None:
    async with peer(redirecting("/to", status)) as server, HttpClient(guard=OPEN) as client:
        await client.request(method, f"{server.url}/from", body=b"body", headers={"content-type": "a/b"})
        assert server.requests[1].method == becomes
        assert server.requests[1].body == (b"body" if becomes == method else b"")
        assert ("content-type" in server.requests[1].headers) is (becomes == method)


async def test_a_body_is_never_sent_on_to_another_origin() -> None:
    async with peer(always(http(200))) as other, peer(redirecting(f"{other.url}/to", 307)) as server:
        async with HttpClient(guard=OPEN) as client:
            with pytest.raises(Unavailable, match="redirects POST to another origin") as caught:
                await client.request("POST", f"{server.url}/from", body=b"secret")
        assert caught.value.sent is False
        assert other.requests == []


async def test_redirects_are_bounded() -> None:
    async with peer(always(http(302, location="/again"))) as server, HttpClient(guard=OPEN) as client:
        with pytest.raises(Unavailable, match="redirects too often"):
            await client.request("GET", server.url)
        assert len(server.requests) == 6
        answer = await client.request("GET", server.url, max_redirects=0)
        assert answer.status == 302
        assert answer.describe() == f"HTTP 302, a redirect to {server.url}/again"


@pytest.mark.parametrize("target", ["file:///etc/passwd", "gopher://h/", "http://[::1/", "ftp://127.0.0.1/"])
async def test_b076_a_redirect_to_another_scheme_is_refused(target: str) -> None:
    """a2aproject/a2a-python#1023."""
    async with peer(redirecting(target)) as server, HttpClient(guard=OPEN) as client:
        with pytest.raises(Unavailable, match=r"only http and https|not a URL"):
            await client.request("GET", f"{server.url}/from")


# -- B076: what is really connected to


async def test_b076_nothing_private_is_contacted_under_the_deny_policy() -> None:
    """a2aproject/a2a-python#786: in any spelling, under any name; the peer's counter stays 0."""
    async with peer(always(http(200))) as server:
        async with HttpClient() as client:
            for host in (
                "127.0.0.1",
                "[::ffff:127.0.0.1]",
                "2130706433",
                "0x7f.1",
                "127.1",
                "localhost",
                "LocalHost",
                "\u2460\u2461\u2466.0.0.1",
                "127.0.0.%31",
                "0.0.0.0",
            ):
                with pytest.raises(Unavailable) as caught:
                    await client.request("GET", f"http://{host}:{server.port}/")
                assert caught.value.sent is False
                assert "refused" in caught.value.message or "%31" in host
        assert server.connections == 0


async def test_b076_a_redirect_inwards_is_refused() -> None:
    """a2aproject/a2a-js#584: each hop passes the guard."""
    async with peer(always(http(200))) as inner, peer(redirecting(f"{inner.url}/to")) as server:
        async with HttpClient(guard=AddressGuard(private_hosts=(f"127.0.0.1:{server.port}",))) as client:
            with pytest.raises(AddressRefused, match="loopback"):
                await client.request("GET", f"{server.url}/from")
        assert len(server.requests) == 1
        assert inner.connections == 0


async def test_b076_a_name_that_the_operator_allows_keeps_working() -> None:
    """a2aproject/a2a-python#786: configured loopback peers work."""
    async with peer(always(http(200, "text/plain", b"hi"))) as server:
        for entry in ("localhost", f"localhost:{server.port}", "127.0.0.0/8"):
            async with HttpClient(guard=AddressGuard(private_hosts=(entry,))) as client:
                assert (await client.request("GET", f"http://localhost:{server.port}/")).body == b"hi"
        async with HttpClient(guard=AddressGuard(private_hosts=("localhost",))) as client:
            with pytest.raises(AddressRefused):
                await client.request("GET", f"{server.url}/")


async def test_b076_the_address_that_is_connected_to_is_the_one_that_is_checked() -> None:
    """a2aproject/a2a-python#786: a name server's second answer (rebinding) must not matter."""
    from anykit.transports.guard import RefusedSocket, connecting_to

    guard = AddressGuard(private_hosts=("internal.example",))
    info = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 80))
    with connecting_to("public.example"), pytest.raises(RefusedSocket) as caught:
        guard.open_socket(info)
    assert "'public.example' (127.0.0.1)" in caught.value.refused.message
    with connecting_to("internal.example"):
        guard.open_socket(info).close()
    with pytest.raises(RefusedSocket):
        guard.open_socket(info)


async def test_the_connector_alone_refuses_too() -> None:
    import aiohttp

    from anykit.transports import PUBLIC_ONLY
    from anykit.transports.http_aiohttp import guarded_connector

    async with peer(always(http(200))) as server:
        async with aiohttp.ClientSession(connector=guarded_connector(PUBLIC_ONLY)) as session:
            with pytest.raises(aiohttp.ClientConnectorError, match="loopback"):
                await session.get(f"http://127.0.0.1:{server.port}/")
            with pytest.raises(AddressRefused):
                await session.get(f"http://localhost:{server.port}/")
        assert server.connections == 0


# -- TLS, lives


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that nobody signed, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "certificate.pem"
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return file


async def test_tls_is_checked(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    async with peer(always(http(200, "text/plain", b"safe")), tls=context) as server:
        async with HttpClient(guard=OPEN) as client:
            with pytest.raises(Unavailable, match=r"certificate is not trusted \(self-signed") as caught:
                await client.request("POST", server.url, body=b"secret")
            assert caught.value.sent is False
        assert server.requests == []
        async with HttpClient(guard=OPEN, tls=ssl.create_default_context(cafile=str(certificate))) as client:
            assert (await client.request("GET", server.url)).body == b"safe"


async def test_a_peer_that_does_not_speak_tls_is_noticed_and_a_silent_one_given_up() -> None:
    def shout(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(shout, "127.0.0.1", 0) as server, HttpClient(guard=OPEN) as client:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Unavailable, match=rf"cannot reach https://127.0.0.1:{port}/: ") as caught:
            await client.request("POST", f"https://127.0.0.1:{port}/", body=b"secret")
        assert caught.value.sent is False
    async with peer(always(http(200))) as silent, HttpClient(guard=OPEN, connect_timeout=0.1) as client:
        with pytest.raises(Unavailable, match=r"no connection within 0\.1 s") as caught:
            await client.request("GET", silent.url.replace("http:", "https:"))
        assert caught.value.sent is False


async def test_a_closed_client_says_so() -> None:
    client = HttpClient(guard=OPEN)
    await client.close()
    await client.close()
    with pytest.raises(Unavailable, match="closed"):
        await client.request("GET", "http://127.0.0.1/")


async def test_a_client_recovers_with_its_peer() -> None:
    async with HttpClient(guard=OPEN) as client:
        async with peer(always(http(200))) as server:
            await client.request("GET", server.url)
        with pytest.raises(Unavailable):
            await client.request("GET", server.url)
        async with peer(always(http(200)), port=server.port):
            assert (await client.request("GET", server.url)).status == 200


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://u:p@h.example:8443/a/b?token=x#f", "https://h.example:8443/a/b?..."),
        ("http://[::1]:80/", "http://[::1]:80/"),
        ("http://h:bad/", "the URL"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert public_url(url) == shown
