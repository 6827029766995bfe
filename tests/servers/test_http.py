"""The server: where it listens, what it hands on, and how it leaves."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from anykit.servers import Address, Mount, Server, TokenRequired, Ways, a2e_mount
from anykit.servers.http import bind
from anykit.servers.identity import Receive, Scope, Send
from servers.agents import WAIT, WebAgent, make_host, served

pytestmark = pytest.mark.anyio


def says(word: str) -> Any:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        body = f"{word} {scope['path']}".encode()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


class Running:
    """A server in a task."""

    def __init__(self, *mounts: Mount, **options: Any) -> None:
        self.listening: asyncio.Future[Address] = asyncio.get_running_loop().create_future()
        self.server = Server(mounts, port=options.pop("port", 0), listening=self.listening.set_result, **options)

    async def __aenter__(self) -> Running:
        self.task = asyncio.create_task(self.server.serve(signals=False))
        async with asyncio.timeout(WAIT):
            await asyncio.wait([self.task, self.listening], return_when=asyncio.FIRST_COMPLETED)
            if self.task.done():
                await self.task
            self.address = await self.listening
        self.http = aiohttp.ClientSession()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.close()
        self.server.stop()
        async with asyncio.timeout(WAIT):
            await self.task

    async def get(self, path: str, **options: Any) -> tuple[int, str]:
        async with self.http.get(f"{self.address.url}{path}", **options) as reply:
            return reply.status, await reply.text()


async def test_port_0_picks_a_free_one_and_says_which() -> None:
    async with Running(a2e_mount(make_host())) as one, Running(a2e_mount(make_host())) as other:
        assert one.address.port != other.address.port != 0
        assert one.address.url == f"http://127.0.0.1:{one.address.port}"
        assert one.server.urls == [("A2E", one.address.url), ("A2E", f"{one.address.url}/a2e")]
        assert (await one.get("/health"))[0] == 200


async def test_a_port_in_use_is_an_error_that_names_it() -> None:
    async with Running(a2e_mount(make_host())) as one:
        port = one.address.port
        with pytest.raises(OSError, match=f"127.0.0.1:{port}"):
            await Server([], port=port).serve(signals=False)
    with pytest.raises(OSError, match="no-such-name"):
        bind("no-such-name.invalid", 0)


async def test_each_request_goes_to_the_mount_that_its_path_names() -> None:
    mounts = (
        Mount(says("exact"), paths=["/one"], open=True),
        Mount(says("below"), prefixes=["/two/"], open=True),
        Mount(says("deeper"), prefixes=["/two/three"], open=True),
    )
    async with Running(*mounts) as web:
        assert await web.get("/one") == (200, "exact /one")
        assert await web.get("/two") == (200, "below /two")
        assert await web.get("/two/x") == (200, "below /two/x")
        assert await web.get("/two/three/x") == (200, "deeper /two/three/x")
        for path in ("/one/x", "/twox", "/", "/three"):
            assert (await web.get(path))[0] == 404


async def test_what_is_not_open_asks_for_the_token() -> None:
    mounts = (Mount(says("closed"), prefixes=["/closed"]), Mount(says("open"), paths=["/open"], open=True))
    async with Running(*mounts, token="t") as web:
        assert (await web.get("/open"))[0] == 200
        assert (await web.get("/closed"))[0] == 401
        assert (await web.get("/closed", headers={"Authorization": "Bearer t"})) == (200, "closed /closed")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.7.7", "example.com", ""])
def test_beyond_loopback_a_token_is_needed(host: str) -> None:
    with pytest.raises(TokenRequired):
        Server([], host=host)
    Server([], host=host, token="t")


def test_a_certificate_needs_its_key() -> None:
    with pytest.raises(ValueError, match="both"):
        Server([], tls_cert="cert.pem")


async def test_what_is_slow_begins_once_the_server_listens_and_ends_with_it() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def begin() -> None:
        begun.set()
        await asyncio.Event().wait()

    async def end() -> None:
        ended.set()
        raise RuntimeError("not in order")

    async with Running(Mount(says("x"), paths=["/x"], open=True, begin=begin, end=end)) as web:
        async with asyncio.timeout(WAIT):
            await begun.wait()
        assert (await web.get("/x"))[0] == 200
        assert not ended.is_set()
    assert ended.is_set()


async def test_b081_a_page_cannot_reach_the_server_under_its_own_name() -> None:
    """modelcontextprotocol/rust-sdk#822: a web page reached a loopback server by DNS rebinding."""
    async with served(make_host()) as web:

        async def status(*headers: str, path: str = "/session", method: str = "POST") -> bytes:
            reader, writer = await asyncio.open_connection(web.address.host, web.address.port)
            writer.write(f"{method} {path} HTTP/1.1\r\n".encode())
            writer.writelines(f"{header}\r\n".encode() for header in headers)
            writer.write(b"Content-Length: 0\r\n\r\n")
            async with asyncio.timeout(WAIT):
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                body = await reader.readexactly(length)
            writer.close()
            await writer.wait_closed()
            assert b"evil" not in head + body
            return head.split(b" ")[1]

        port = web.address.port
        for path, method in (("/session", "POST"), ("/a2e/session", "POST"), ("/health", "GET"), ("/nothing", "GET")):
            assert await status(f"Host: evil.example:{port}", path=path, method=method) == b"421"
            assert (
                await status(f"Host: 127.0.0.1:{port}", "Origin: http://evil.example", path=path, method=method)
                == b"403"
            )
            assert await status(path=path, method=method) == b"421"
        assert await status(f"Host: localhost:{port}") == b"200"
        assert await status(f"Host: [::1]:{port}") == b"200"
        assert await status(f"Host: 127.0.0.1:{port}", f"Origin: http://127.0.0.1:{port}") == b"200"


async def test_a_head_that_does_not_end_ends_the_connection() -> None:
    async with served(make_host()) as web:
        reader, writer = await asyncio.open_connection(web.address.host, web.address.port)
        writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ")
        async with asyncio.timeout(WAIT):
            try:
                for _ in range(100):
                    writer.write(b"x" * 10_000)
                    await writer.drain()
                ended = await reader.read()
            except ConnectionError:
                ended = b""
        assert ended == b""
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        agent = await web.session()
        for _ in range(30):  # heads are counted one by one
            assert (await agent.post(b'{"type":"ping"}' + b" " * 8000))[0] == 200


def outward() -> str | None:
    """An address of this machine that is not loopback, where it has one. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address = str(probe.getsockname()[0])
    return None if address.startswith("127.") else address


async def test_a_secret_does_not_travel_in_the_open() -> None:
    address = outward()
    if address is None:
        pytest.skip("this machine has no address but loopback")
    async with served(make_host(token="t"), host="0.0.0.0", token="t") as web:
        secret = {"toolkit_name": "notes", "config": {"shelf": "a", "key": "hunter2"}}
        near = WebAgent(web.http, f"http://127.0.0.1:{web.address.port}")
        far = WebAgent(web.http, f"http://{address}:{web.address.port}")
        for agent in (near, far):
            await agent.open()
            await agent.listen()
            await agent.handshake(token="t")
        refused = await far.ask("toolkit/configure/req", **secret)
        assert (refused["code"], refused["detail"]["reason"]) == ("unauthorized", "insecure_transport")
        assert (await near.ask("toolkit/configure/req", **secret))["status"] == "ok"
        for agent in (near, far):
            await agent.hang_up()
        async with web.http.get(f"{far.url}/health", headers={"Host": "evil.example"}) as reply:
            assert reply.status == 421


async def test_behind_a_trusted_proxy_its_word_counts() -> None:
    host = make_host()
    mount = a2e_mount(host, ways=Ways(["127.0.0.1"]))
    async with Running(mount) as web:
        for proto, status in (("https", "toolkit/configure/resp"), ("http", "error"), (None, "error")):
            agent = WebAgent(web.http, web.address.url)
            agent.extra = {"X-Forwarded-Proto": proto} if proto else {}
            await agent.open()
            await agent.listen()
            await agent.handshake()
            config = {"shelf": "a", "key": "hunter2"}
            reply = await agent.ask("toolkit/configure/req", toolkit_name="notes", config=config)
            assert reply["type"] == status
            await agent.hang_up()


async def test_over_tls_and_on_ipv6(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    cert, key = certificate(tmp_path)
    async with Running(a2e_mount(make_host()), tls_cert=cert, tls_key=key) as web:
        assert web.address.url.startswith("https://")
        context = ssl.create_default_context(cafile=cert)
        assert (await web.get("/health", ssl=context))[0] == 200
    if socket.has_ipv6:
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            return
        async with Running(a2e_mount(make_host()), host="::1") as web:
            assert web.address.url == f"http://[::1]:{web.address.port}"
            assert (await web.get("/health"))[0] == 200


def certificate(folder: Path) -> tuple[str, str]:
    """A certificate of our own for 127.0.0.1."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return str(cert_file), str(key_file)


PROGRAM = """
    import asyncio, sys
    sys.path.insert(0, {tests!r})
    from runtime_parts import Bench, functions
    from anykit.servers import A2EHost, Server, a2e_mount, new_event_loop
    from anykit import tool

    @tool
    async def sleep() -> str:
        "Waits."
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            print("cancelled", flush=True)
            raise
        return ""

    async def main() -> None:
        host = A2EHost(Bench(functions(sleep)))
        server = Server([a2e_mount(host)], port=0, listening=lambda at: print(at.url, flush=True))
        await server.serve()
        print("left", server.signalled.name, flush=True)

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_b031_a_signal_ends_streams_and_sessions_and_leaves_in_order(
    number: signal.Signals, tmp_path: Path
) -> None:
    """hangwin/mcp-chrome#300: a server did not end with its parent."""
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM).replace("{tests!r}", repr(str(Path(__file__).parent.parent))))
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(program), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(WAIT):
            url = (await process.stdout.readline()).decode().strip()
        async with aiohttp.ClientSession() as http:
            agent = WebAgent(http, url)
            await agent.open()
            await agent.listen()
            await agent.handshake()
            id = await agent.send("tool/call/req", tool_name="sleep", arguments={})
            await agent.ask("ping")
            begun = time.monotonic()
            os.kill(process.pid, number)
            assert (await agent.reply_to(id))["code"] == "runtime_error"
            await agent.ended()
            await agent.hang_up()
        async with asyncio.timeout(WAIT):
            out, err = await process.communicate()
        assert time.monotonic() - begun < 4
        assert process.returncode == 0
        assert out.decode().split("\n")[:2] == ["cancelled", f"left {number.name}"]
        assert b"Traceback" not in err
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
