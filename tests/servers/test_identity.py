"""Names, origins, tokens and ways: who may reach a server."""

from __future__ import annotations

from typing import Any

import pytest

from anykit.servers import NameGuard, Names, TokenGuard, Ways
from anykit.servers.identity import Message, Receive, Scope, Send, host_of, is_loopback

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:7777", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:7777", "[0:0:0:0:0:0:0:1]:80"],
)
def test_loopback_names_are_always_known(host: str) -> None:
    assert Names("192.168.7.7").host_allowed(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:7777",
        "localhost.evil.example",
        "evil.localhost.example",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "evil.example@localhost",
        "localhost evil",
        "localhost,evil.example",
        "localhost:7777:7777",
        "localhost:port",
        "localhost:",
        "[::1",
        "::1",
        "[::1]evil",
        "[evil]",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0.0.0.0",
        "localhost\r\nX: y",
        "l\u043ecalhost",  # a Cyrillic letter
        "192.168.7.8",
    ],
)
def test_other_names_are_foreign(host: str) -> None:
    assert not Names("127.0.0.1").host_allowed(host, "127.0.0.1")


def test_the_bound_address_and_the_operators_names_are_known() -> None:
    names = Names("192.168.7.7", hosts=["tools.example", "*.lan.example", "[fe80::1]", "fe80::2"])
    for host in ("192.168.7.7:80", "tools.example", "TOOLS.example:1", "a.lan.example", "[fe80::1]:9", "[fe80::2]"):
        assert names.host_allowed(host), host
    for host in ("192.168.7.8", "lan.example", "a.tools.example", "xlan.example"):
        assert not names.host_allowed(host), host
    assert Names("127.0.0.1", hosts=["*"]).host_allowed("anything.example")


def test_bound_to_every_address_the_one_that_was_reached_is_known() -> None:
    names = Names("0.0.0.0")
    assert names.host_allowed("192.168.7.7:7777", "192.168.7.7")
    assert not names.host_allowed("192.168.7.8", "192.168.7.7")
    assert not names.host_allowed("evil.example", "192.168.7.7")
    assert Names("::").host_allowed("192.168.7.7", "::ffff:192.168.7.7")


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://localhost:3000", True),
        ("https://127.0.0.1", True),
        ("http://[::1]:7777", True),
        ("HTTP://LOCALHOST", True),
        ("https://app.example.com", True),
        ("https://app.example.com:444", False),
        ("http://app.example.com", False),
        ("http://evil.example", False),
        ("http://localhost.evil.example", False),
        ("http://localhost@evil.example", False),
        ("null", False),
        ("", False),
        ("file://", False),
        ("chrome-extension://localhost", False),
        ("http://localhost/path", False),
    ],
)
def test_origins(origin: str, allowed: bool) -> None:
    assert Names("127.0.0.1", origins=["https://app.example.com/"]).origin_allowed(origin) is allowed


def test_any_host_is_not_any_origin() -> None:
    names = Names("0.0.0.0", hosts=["*"])
    assert not names.origin_allowed("http://evil.example")
    assert names.origin_allowed("http://localhost:1")


def test_hosts_are_read_strictly() -> None:
    assert host_of("Tools.Example:80") == "tools.example"
    assert host_of("[0::1]:80") == "::1"
    assert host_of("[::g]") is None


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("localhost", True),
        ("", False),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("example.com", False),
    ],
)
def test_loopback_is_this_machine(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def scope(**fields: Any) -> Scope:
    headers = [(name.encode(), value.encode("latin-1")) for name, value in fields.pop("headers", [])]
    return {"type": "http", "method": "GET", "path": "/", "scheme": "http", "headers": headers, **fields}


class Seen:
    """An application that notes what reaches it."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


async def ask(app: Any, scope: Scope) -> tuple[int, bytes]:
    sent: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("the body was read")

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0].get("status", sent[0].get("code", 0)), b"".join(one.get("body", b"") for one in sent[1:])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([("host", "evil.example:1")], 421),
        ([("host", "evil.example:1"), ("origin", "http://evil.example")], 421),
        ([("host", "127.0.0.1"), ("origin", "http://evil.example")], 403),
        ([("host", "127.0.0.1"), ("origin", "null")], 403),
        ([("host", "localhost:1")], 200),
        ([("host", "[::1]:1")], 200),
        ([], 421),
        ([("host", "localhost"), ("host", "localhost")], 421),
        ([("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://localhost")], 403),
    ],
)
async def test_b081_foreign_names_are_refused_before_anything_is_read(headers: Any, status: int) -> None:
    """modelcontextprotocol/rust-sdk#822: a web page reached a loopback server by DNS rebinding."""
    seen = Seen()
    got, body = await ask(NameGuard(seen, Names()), scope(headers=headers))
    assert got == status
    assert b"evil" not in body
    assert len(seen.scopes) == (status == 200)


async def test_only_pages_that_the_operator_named_may_read_the_answers() -> None:
    guarded = NameGuard(Seen(), Names(origins=["https://app.example.com"]))
    host = ("host", "localhost")
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError("the body was read")

    async def headers(*given: tuple[str, str], method: str = "GET") -> dict[bytes, bytes]:
        sent.clear()
        await guarded(scope(method=method, headers=[host, *given]), receive, send)
        return dict(sent[0]["headers"])

    named = await headers(("origin", "https://app.example.com"))
    assert named[b"access-control-allow-origin"] == b"https://app.example.com"
    assert named[b"vary"] == b"Origin"
    asked = ("access-control-request-method", "POST")
    wants = ("access-control-request-headers", "x-session-id, content-type")
    flight = await headers(("origin", "https://app.example.com"), asked, wants, method="OPTIONS")
    assert sent[0]["status"] == 204
    assert flight[b"access-control-allow-headers"] == b"x-session-id, content-type"
    flight = await headers(("origin", "https://app.example.com"), asked, (wants[0], "x\xe9y"), method="OPTIONS")
    assert b"access-control-allow-headers" not in flight
    assert await headers(("origin", "http://localhost:3000")) == {}
    assert await headers() == {}


async def test_a_web_socket_is_guarded_too() -> None:
    seen = Seen()
    guarded = NameGuard(seen, Names())
    code, _ = await ask(guarded, scope(type="websocket", headers=[("host", "evil.example")]))
    assert code == 1008
    assert seen.scopes == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([], 401),
        ([("authorization", "Bearer wrong")], 401),
        ([("authorization", "Bearer righ")], 401),
        ([("authorization", "Basic right")], 401),
        ([("authorization", "right")], 401),
        ([("authorization", "Bearer right"), ("authorization", "Bearer right")], 401),
        ([("authorization", "Bearer \xe9")], 401),
        ([("authorization", "Bearer right")], 200),
        ([("authorization", "bearer  right")], 200),
    ],
)
async def test_b083_a_token_lets_in_and_goes_no_further(headers: Any, status: int) -> None:
    """cbcoutinho/nextcloud-mcp-server#261: a client's token was passed on to what lay behind."""
    seen = Seen()
    got, _ = await ask(TokenGuard(seen, "right"), scope(headers=[*headers, ("x-other", "kept")]))
    assert got == status
    for one in seen.scopes:
        assert one["headers"] == [(b"x-other", b"kept")]


async def test_no_token_lets_everyone_in() -> None:
    assert (await ask(TokenGuard(Seen(), ""), scope()))[0] == 200


@pytest.mark.parametrize(
    ("fields", "proxies", "secure"),
    [
        ({"client": ("127.0.0.1", 1)}, [], True),
        ({"client": ("::1", 1)}, [], True),
        ({"client": ("192.168.7.7", 1)}, [], False),
        ({"client": ("192.168.7.7", 1), "scheme": "https"}, [], True),
        ({"client": None}, [], False),
        ({"client": ("192.168.7.7", 1), "headers": [("x-forwarded-proto", "https")]}, [], False),
        ({"client": ("10.0.0.1", 1), "headers": [("x-forwarded-proto", "https")]}, ["10.0.0.0/8"], True),
        ({"client": ("10.0.0.1", 1), "headers": [("x-forwarded-proto", "http, https")]}, ["10.0.0.1"], True),
        ({"client": ("10.0.0.1", 1), "headers": [("x-forwarded-proto", "https, http")]}, ["10.0.0.1"], False),
        ({"client": ("10.0.0.1", 1)}, ["10.0.0.1"], False),
        ({"client": ("127.0.0.1", 1)}, ["127.0.0.1"], False),
        ({"client": ("127.0.0.1", 1), "headers": [("x-forwarded-proto", "https")]}, ["127.0.0.1"], True),
        ({"client": ("::ffff:10.0.0.1", 1), "headers": [("x-forwarded-proto", "https")]}, ["10.0.0.1"], True),
        ({"client": ("unix", 1), "headers": [("x-forwarded-proto", "https")]}, ["10.0.0.1"], False),
    ],
)
def test_a_way_is_safe_by_tls_by_loopback_or_by_a_trusted_proxys_word(
    fields: Any, proxies: list[str], secure: bool
) -> None:
    assert Ways(proxies).secure(scope(**fields)) is secure


def test_a_proxy_that_is_no_address_is_an_error() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        Ways(["nonsense"])
