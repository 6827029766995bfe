"""The web toolkit against a real server on loopback: what it gives, and where it does not go."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from pydantic import ValidationError

from anykit.toolkits.web import Web
from anykit.tools import Bounds, ToolError

pytestmark = pytest.mark.anyio

Open = Callable[..., Awaitable[Web]]


class Site:
    """A small HTTP server: paths to answers; counts what it was asked."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.asked: list[str] = []
        self.headers: list[str] = []
        self.port = 0
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.StreamWriter] = set()

    def put(
        self, path: str, body: bytes | str, content_type: str | None = "text/html", status: int = 200, **headers: str
    ) -> None:
        data = body.encode() if isinstance(body, str) else body
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.pages[path] = (status, named | ({"content-type": content_type} if content_type else {}), data)

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._connections:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            path = head.split(" ")[1]
            self.asked.append(path)
            self.headers.append(head)
            if path == "/hang":
                await reader.read()
            status, headers, body = self.pages.get(path, (404, {"content-type": "text/plain"}, b"nothing here"))
            lines = [
                f"HTTP/1.1 {status} X",
                *(f"{name}: {value}" for name, value in headers.items()),
                "connection: close",
            ]
            if path == "/endless":
                writer.write("\r\n".join([*lines, "", ""]).encode())
                while not writer.is_closing():
                    writer.write(body)
                    await writer.drain()
            lines.append(f"content-length: {len(body)}")
            writer.write("\r\n".join([*lines, "", ""]).encode() + body)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._connections.discard(writer)
            writer.close()


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    await site.start()
    yield site
    await site.stop()


@pytest.fixture
async def kits() -> AsyncIterator[Open]:
    opened: list[Web] = []

    async def open_kit(*, bounds: Bounds | None = None, **config: Any) -> Web:
        kit = Web()
        kit.bounds = bounds
        kit.config = Web.Config(**config)
        opened.append(kit)
        await kit.setup(kit.config)
        return kit

    yield open_kit
    for kit in opened:
        await kit.close()


@pytest.fixture
async def web(kits: Open) -> Web:
    return await kits(allow_private=True)


# What it is.


def test_its_definition_is_the_promised_one() -> None:
    spec = Web.spec()
    assert list(spec.tools) == ["fetch"]
    fetch = spec.tools["fetch"]
    assert fetch.input_schema["properties"]["format"]["enum"] == ["markdown", "text"]
    assert fetch.input_schema["properties"]["format"]["default"] == "markdown"
    assert (fetch.annotations.read_only, fetch.annotations.open_world) == (True, True)
    assert "required" not in spec.schema


async def test_it_runs_through_its_schemas(web: Web, site: Site) -> None:
    site.put("/", "<h1>Hi</h1>")
    result = await web.fetch.execute({"url": site.url("/")})
    assert (result.is_error, result.output) == (False, "# Hi\n")
    result = await web.fetch.execute({"url": site.url("/"), "format": "pdf"})
    assert result.is_error
    assert len(site.asked) == 1


# What it gives.

PAGE = """<!DOCTYPE html><html><head><title>The &amp; title</title><script>evil('<p>no</p>')</script>
<style>p { color: red }</style></head><body>
<p>One <b>bold</b> <a href="/rel?a=1&amp;b=2">link</a> <a href="javascript:alert(1)">script</a></p>
<ul><li>1<ul><li>1.1</ul><li>2</ul>
<table><tr><th>a<th>b<tr><td>1<td>2</table>
<pre><code>x = 1
  y &lt; 2</code></pre><noscript>none</noscript><svg><text>drawn</text></svg>
<img src="data:image/png;base64,AAAA" alt="a picture"><img src="y.png" alt="why">
</body></html>"""


async def test_html_becomes_markdown(web: Web, site: Site) -> None:
    site.put("/d/page", PAGE)
    text = await web.fetch(site.url("/d/page"))
    assert text.startswith("# The & title\n")
    for expected in (
        "One **bold** [link](" + site.url("/rel?a=1&b=2") + ") script",
        "- 1\n  - 1.1\n- 2",
        "| a | b |\n| --- | --- |\n| 1 | 2 |",
        "```\nx = 1\n  y < 2\n```",
        "a picture",
        f"![why]({site.url('/d/y.png')})",
    ):
        assert expected in text
    for gone in ("evil", "color", "javascript", "none", "drawn", "base64", "<"):
        assert gone not in text.replace("y < 2", "")


async def test_html_becomes_text(web: Web, site: Site) -> None:
    site.put("/", PAGE)
    text = await web.fetch(site.url("/"), "text")
    assert "One bold link script\n" in text
    assert "a\tb\n1\t2\n" in text
    assert "x = 1\n  y < 2\n" in text
    assert not any(gone in text for gone in ("evil", "color", "**", "drawn"))


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", '{"a": [1, "é"]}'),
        ("application/vnd.api+json; charset=utf-8", "{}"),
        ("text/plain", "<b>as it is</b>\r\n  x"),
        ("text/csv", "a,b\n1,2\n"),
        ("application/xml", "<a/>"),
        ("image/svg+xml", "<svg/>"),
        ("application/x-yaml", "a: 1"),
        (None, "plain words"),
    ],
)
async def test_text_is_given_as_it_is(web: Web, site: Site, content_type: str | None, body: str) -> None:
    site.put("/", body, content_type)
    for form in ("markdown", "text"):
        assert await web.fetch(site.url("/"), form) == body


async def test_a_page_without_a_type_is_known_by_its_beginning(web: Web, site: Site) -> None:
    site.put("/", " <!DOCTYPE html><h1>Hi</h1>", None)
    assert await web.fetch(site.url("/")) == "# Hi\n"


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/plain; charset=iso-8859-1", "é€".encode("cp1252")),
        ('text/plain; charset="windows-1252"', "é€".encode("cp1252")),
        ("text/plain", "é€".encode("utf-8-sig")),
        ("text/plain", "é€".encode("utf-16")),
        ("text/plain; charset=utf-16-le", "é€".encode("utf-16-le")),
        ("text/plain; charset=nonsense", "é€".encode()),
        ("text/plain; charset=hex", "é€".encode()),
        ("text/plain; charset=unicode_escape", "é€".encode()),
        ("text/plain; charset=punycode", "é€".encode()),
        ("text/html", b'<meta charset="windows-1252">' + "é€".encode("cp1252")),
        ("text/html", b'<meta http-equiv=Content-Type content="text/html; charset=koi8-r">' + "да".encode("koi8-r")),
        ("text/html; charset=utf-8", b'<meta charset="windows-1252">' + "é€".encode()),
    ],
)
async def test_the_encoding_is_found(web: Web, site: Site, content_type: str, body: bytes) -> None:
    site.put("/", body, content_type)
    assert (await web.fetch(site.url("/"))).strip() in ("é€", "да")


async def test_bytes_that_do_not_fit_their_encoding_are_replaced(web: Web, site: Site) -> None:
    site.put("/", b"a\xff\xfeb", "text/plain; charset=utf-8")
    assert await web.fetch(site.url("/")) == "a\ufffd\ufffdb"


@pytest.mark.parametrize(
    ("content_type", "body", "kind"),
    [
        ("image/png", b"\x89PNG\r\n\x1a\n", "image/png, 8 bytes"),
        ("application/pdf", b"%PDF-1.7", "application/pdf, 8 bytes"),
        ("application/octet-stream", b"abc", "octet-stream, 3 bytes"),
        ("application/zip", b"PK", "application/zip"),
        ("text/plain", b"\x89PNG\r\n\x1a\n\0\0", "PNG image"),
        ("text/html", b"a\0b" * 100, "binary, 300 bytes"),
        (None, b"\x7fELF\0\0", "ELF"),
    ],
)
async def test_what_is_no_text_is_refused_with_its_kind_and_size(
    web: Web, site: Site, content_type: str | None, body: bytes, kind: str
) -> None:
    site.put("/", body, content_type)
    with pytest.raises(ToolError, match=kind):
        await web.fetch(site.url("/"))


async def test_an_error_status_is_an_error(web: Web, site: Site) -> None:
    with pytest.raises(ToolError, match=r"404.*nothing here"):
        await web.fetch(site.url("/missing?token=hunter2"))
    site.put("/moved", "", status=302)
    with pytest.raises(ToolError, match="302"):
        await web.fetch(site.url("/moved"))


# Limits.


async def test_a_large_page_is_cut_and_says_so(kits: Open, site: Site) -> None:
    web = await kits(allow_private=True, max_bytes=1024)
    site.put("/", "x" * 5000, "text/plain")
    text = await web.fetch(site.url("/"))
    assert text == "x" * 1024 + "\n[only the first 1024 bytes of the page were read]"
    site.put("/exact", "x" * 1024, "text/plain")
    assert await web.fetch(site.url("/exact")) == "x" * 1024
    site.put("/endless", "y" * 1000, "text/plain")
    assert len(await web.fetch(site.url("/endless"))) < 1100


async def test_a_packed_page_is_bounded_unpacked(kits: Open, site: Site) -> None:
    web = await kits(allow_private=True, max_bytes=2048)
    site.put("/", gzip.compress(b"z" * 50_000_000), "text/plain", content_encoding="gzip")
    assert len(await web.fetch(site.url("/"))) < 2200


async def test_a_page_that_does_not_come_is_given_up(kits: Open, site: Site) -> None:
    web = await kits(allow_private=True, timeout=0.2)
    with pytest.raises(ToolError, match=r"0\.2 s"):
        await web.fetch(site.url("/hang"))


async def test_nobody_there_is_told(web: Web, site: Site) -> None:
    await site.stop()
    with pytest.raises(ToolError, match=r"cannot reach .*refused"):
        await web.fetch(site.url("/"))


@pytest.mark.parametrize(
    "unit",
    ["<", "<a", "<!--", "<![CDATA[", "<?", "&", "<a b='", "<div>", "<ol><li>a", "<li>a", "<table><tr><td>", "<script>"],
)
async def test_no_page_takes_long(web: Web, site: Site, unit: str) -> None:
    """Python's own parser needs minutes for some of these."""
    start = "<ol>" if unit == "<li>a" else ""
    site.put("/", start + unit * (100_000 // len(unit)))
    async with asyncio.timeout(8):
        assert isinstance(await web.fetch(site.url("/")), str)
        assert isinstance(await web.fetch(site.url("/"), "text"), str)


async def test_redirects_are_followed_as_far_as_allowed(kits: Open, site: Site) -> None:
    for number in range(10):
        site.put(f"/{number}", "", status=302, location=f"/{number + 1}")
    site.put("/3", "here", "text/plain")
    assert await (await kits(allow_private=True, max_redirects=3)).fetch(site.url("/0")) == "here"
    with pytest.raises(ToolError, match="redirects too often"):
        await (await kits(allow_private=True, max_redirects=2)).fetch(site.url("/0"))
    with pytest.raises(ToolError, match="redirects too often"):
        await (await kits(allow_private=True, max_redirects=0)).fetch(site.url("/0"))


# Where it does not go.


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/x", "http://127.0.0.1:PORT/", "http://[::ffff:127.0.0.1]:PORT/", "http://2130706433:PORT/",
        "http://0x7f000001:PORT/", "http://127.1:PORT/", "http://localhost:PORT/", "http://0.0.0.0:PORT/", "http://[::1]:PORT/",
        "http://10.0.0.1/", "http://192.168.1.1/", "http://[fd00::1]/", "http://127.0.0.1.:PORT/",
        "file:///etc/passwd", "gopher://127.0.0.1:PORT/", "ftp://127.0.0.1/", "data:text/plain,x", "javascript:1",
        "FILE:///etc/passwd", "", "/etc/passwd", "http://", "http:///x", "//127.0.0.1:PORT/", "127.0.0.1:PORT", "http://a b/",
        "http://exa\nmple/", "http://\ud800/", "http://" + "x" * 5000,
    ],
)  # fmt: skip
@pytest.mark.parametrize("bounded", [False, True])
async def test_b076_private_addresses_and_other_schemes_are_not_contacted(
    kits: Open, site: Site, url: str, bounded: bool
) -> None:
    """a2aproject/a2a-python#786: SSRF through a URL that a peer names."""
    bounds = Bounds(private_hosts=("127.0.0.1", "localhost")) if bounded else None
    web = await kits(bounds=bounds)  # allow_private is not set: the operator's permission alone opens nothing
    with pytest.raises(ToolError) as refused:
        await web.fetch(url.replace("PORT", str(site.port)))
    assert str(refused.value)
    assert site.asked == []


@pytest.mark.parametrize("url", ["file:///etc/passwd", "gopher://h/", "ftp://h/", "http://169.254.169.254/"])
async def test_b076_some_urls_are_refused_even_where_private_ones_are_allowed(kits: Open, url: str) -> None:
    """a2aproject/a2a-python#786: non-http(s) schemes are always refused."""
    web = await kits(bounds=Bounds(private_hosts=("127.0.0.1",)), allow_private=True)
    with pytest.raises(ToolError, match="refused"):
        await web.fetch(url)


@pytest.mark.parametrize(
    "location",
    ["http://169.254.169.254/x", "http://10.0.0.1/", "file:///etc/passwd", "//2130706433:PORT/secret", "gopher://x/"],
)
async def test_b076_a_redirect_is_checked_again(kits: Open, site: Site, location: str) -> None:
    """a2aproject/a2a-python#786: none is contacted, also after a redirect."""
    web = await kits(bounds=Bounds(private_hosts=(f"localhost:{site.port}",)), allow_private=True)
    site.put("/go", "", status=302, location=location.replace("PORT", str(site.port)))
    site.put("/secret", "secret", "text/plain")
    with pytest.raises(ToolError, match="refused"):
        await web.fetch(site.url("/go", "localhost"))
    assert site.asked == ["/go"]


async def test_b076_what_operator_and_configuration_allow_is_reached(kits: Open, site: Site) -> None:
    """a2aproject/a2a-python#786: configured loopback or private peers keep working when allowed."""
    site.put("/", "here", "text/plain")
    for private in ("127.0.0.1", f"127.0.0.1:{site.port}", "127.0.0.0/8"):
        web = await kits(bounds=Bounds(private_hosts=(private,)), allow_private=True)
        assert await web.fetch(site.url("/")) == "here"
    for private in (f"127.0.0.1:{site.port + 1}", "10.0.0.0/8", "localhost"):
        web = await kits(bounds=Bounds(private_hosts=(private,)), allow_private=True)
        with pytest.raises(ToolError, match="loopback address"):
            await web.fetch(site.url("/"))
    with pytest.raises(ToolError, match="loopback address"):
        await (await kits(bounds=Bounds(), allow_private=True)).fetch(site.url("/"))
    assert await (await kits(allow_private=True)).fetch(site.url("/", "localhost")) == "here"
    with pytest.raises(ToolError, match="private_hosts"):
        await kits(bounds=Bounds(private_hosts=("http://x/",)), allow_private=True)


async def test_hosts_are_held_against_both_lists_at_every_step(kits: Open, site: Site) -> None:
    site.put("/", "here", "text/plain")
    site.put("/go", "", status=302, location=site.url("/", "localhost"))
    for config in (
        {"allowed_hosts": ["127.0.0.1"]},
        {"blocked_hosts": ["localhost"]},
        {"blocked_hosts": ["LOCALHOST."]},
    ):
        web = await kits(allow_private=True, **config)
        assert await web.fetch(site.url("/")) == "here"
        for path, host in (("/", "localhost"), ("/", "LocalHost."), ("/go", "127.0.0.1")):
            with pytest.raises(ToolError, match="this toolkit's configuration"):
                await web.fetch(site.url(path, host))
    web = await kits(allow_private=True, blocked_hosts=["127.0.0.1"])
    for host in ("127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"):
        with pytest.raises(ToolError, match="blocked"):
            await web.fetch(site.url("/", host))


@pytest.mark.parametrize(
    ("config", "host", "allowed"),
    [
        ({"allowed_hosts": ["example.com"]}, "example.com", True),
        ({"allowed_hosts": ["example.com"]}, "evil.example.com", False),
        ({"allowed_hosts": ["example.com"]}, "example.com.evil", False),
        ({"allowed_hosts": ["*.example.com"]}, "a.b.example.com", True),
        ({"allowed_hosts": ["*.example.com"]}, "example.com", False),
        ({"allowed_hosts": ["*.example.com"]}, "evilexample.com", False),
        ({"allowed_hosts": ["bücher.example"]}, "xn--bcher-kva.example", True),
        ({"blocked_hosts": ["example.com"]}, "example.com", False),
        ({"blocked_hosts": ["example.com"]}, "www.example.com", False),
        ({"blocked_hosts": ["example.com"]}, "notexample.com", True),
        ({"allowed_hosts": ["example.com"], "blocked_hosts": ["example.com"]}, "example.com", False),
    ],
)
def test_a_host_is_compared_as_a_whole(config: dict[str, Any], host: str, allowed: bool) -> None:
    from anykit.toolkits.web import host_guard

    guard = host_guard(Web.Config(**config), None)
    if allowed:
        guard.check_url(f"https://{host}/")
    else:
        with pytest.raises(Exception, match="this toolkit's configuration"):
            guard.check_url(f"https://{host}/")


@pytest.mark.parametrize("host", ["", "http://x", "a b", "a/b", "*", "*.*.x", "u@h", "x" * 300])
def test_what_is_no_host_is_refused_when_configured(host: str) -> None:
    with pytest.raises(ValidationError, match="host"):
        Web.Config(allowed_hosts=[host])


async def test_nothing_of_ours_is_sent_along(web: Web, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    site.put("/", json.dumps({}), "application/json", set_cookie="a=b")
    await web.fetch(site.url("/"))
    await web.fetch(site.url("/"))
    for head in site.headers:
        assert not any(name in head.lower() for name in ("cookie", "authorization", "referer"))
        assert "user-agent: anykit" in head.lower()


async def test_a_closed_toolkit_fetches_nothing(web: Web, site: Site) -> None:
    await web.close()
    await web.close()
    with pytest.raises(ToolError, match="not configured"):
        await web.fetch(site.url("/"))
    assert site.asked == []
