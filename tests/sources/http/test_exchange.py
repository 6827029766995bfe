"""Requests and answers: what goes out, what comes back, what is repeated and what never is. Real sockets on 127.0.0.1."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from anykit.capabilities import (
    BlobPart,
    CapabilityContext,
    ExecutionFailed,
    ImagePart,
    InvalidInput,
    InvocableResult,
    Unavailable,
)
from anykit.sources.http import Exchange, HttpRequest, Multipart, Part
from anykit.sources.http.results import ResultKind
from anykit.transports import PUBLIC_ONLY, AddressRefused
from transports.peers import Answer, Request, http, peer

pytestmark = pytest.mark.anyio

NOBODY = CapabilityContext()


def always(data: bytes) -> Answer:
    async def answer(_: Request) -> bytes:
        return data

    return answer


def in_turn(*answers: bytes) -> Answer:
    """Each once, the last for ever."""
    left = list(answers)

    async def answer(_: Request) -> bytes:
        return left.pop(0) if len(left) > 1 else left[0]

    return answer


async def got(data: bytes, *, result: ResultKind = "auto", method: str = "GET", **options: Any) -> InvocableResult:
    """The result of one request that is answered with `data`."""
    async with peer(always(data)) as server:
        return await Exchange(**options).send(HttpRequest(method, f"{server.url}/x"), NOBODY, result=result)


async def failed(send: Callable[[], Awaitable[object]]) -> ExecutionFailed:
    with pytest.raises(ExecutionFailed) as raised:
        await send()
    return raised.value


async def test_a_request_goes_out_as_it_was_written() -> None:
    async with peer(always(http(200, "text/plain", b"made"))) as server:
        exchange = Exchange(headers={"Authorization": "Bearer t", "X-One": "0"})
        request = HttpRequest("post", f"{server.url}/a%2Fb%2E?q=a%20b%2Bc", (("X-One", "1"), ("X-One", "2")), b"{}")
        result = await exchange.send(request, NOBODY)
    assert result.text == "made"
    (seen,) = server.requests
    assert (seen.method, seen.path, seen.body) == ("POST", "/a%2Fb%2E?q=a%20b%2Bc", b"{}")
    assert seen.headers["authorization"] == "Bearer t"
    assert seen.headers["x-one"] == "1, 2"


async def test_a_started_exchange_keeps_its_connection_and_closes_it() -> None:
    async with peer(always(http(200))) as server:
        exchange = Exchange()
        await exchange.start()
        for _ in range(5):
            await exchange.send(HttpRequest("GET", server.url), NOBODY)
        assert server.connections == 1
        await exchange.close()
        with pytest.raises(Unavailable, match="closed"):
            await exchange.send(HttpRequest("GET", server.url), NOBODY)


@pytest.mark.parametrize(
    ("content_type", "body", "structured"),
    [
        ("application/json", b'{"a":[1,null]}', {"a": [1, None]}),
        ("application/problem+json; charset=utf-8", b'"x"', "x"),
        ("application/json", b"12345678901234567890123", 12345678901234567890123),
        ("text/plain", "grün".encode(), "grün"),
        ("text/plain; charset=iso-8859-1", "grün €".encode("cp1252"), "grün €"),
        ("text/plain; charset=utf-16", "grün".encode("utf-16"), "grün"),
        ("text/plain; charset=shift_jis", "日本".encode("shift_jis"), "日本"),
        ("application/json; charset=iso-8859-1", '"grün"'.encode("latin-1"), "grün"),
        ("application/json", "\ufeff[1]".encode(), [1]),
        ("application/json", b"no json", "no json"),
        ("", b"plain", "plain"),
        ("application/xml", b"<a/>", "<a/>"),
    ],
)
async def test_an_answer_is_read_as_its_content_type_says(content_type: str, body: bytes, structured: object) -> None:
    assert (await got(http(200, content_type, body))).structured == structured


async def test_what_is_no_text_becomes_a_part_with_its_media_type_and_name() -> None:
    image = await got(http(200, "image/png", b"\x89PNG"))
    assert image.content == (ImagePart(data=b"\x89PNG", media_type="image/png"),)
    file = await got(http(200, "application/pdf", b"%PDF", content_disposition='attachment; filename="../../a b.pdf"'))
    assert file.content == (BlobPart(data=b"%PDF", media_type="application/pdf", name="a b.pdf"),)
    unnamed = await got(http(200, "", b"\x00\xff"))
    assert unnamed.content == (BlobPart(data=b"\x00\xff"),)


async def test_each_kind_of_result_is_what_it_says() -> None:
    answer = http(201, "application/json", b'{"a":1}')
    assert (await got(answer, result="text")).text == '{"a":1}'
    assert (await got(answer, result="json")).structured == {"a": 1}
    status = await got(answer, result="status")
    assert status.structured == {"status": 201, "text": '{"a":1}'}
    assert status.text == 'HTTP 201 Created\n{"a":1}'
    binary = await got(answer, result="binary")
    assert binary.content == (BlobPart(data=b'{"a":1}', media_type="application/json"),)


async def test_an_answer_without_a_body_is_empty_text() -> None:
    result = await got(http(204))
    assert (result.text, result.has_structured, result.metadata) == ("", False, {"status": 204})


async def test_a_head_request_gives_status_and_headers() -> None:
    answer = b'HTTP/1.1 200 OK\r\ncontent-length: 512\r\netag: "x"\r\nset-cookie: a=b\r\n\r\n'
    result = await got(answer, method="HEAD")
    assert result.structured == {"status": 200, "headers": {"content-length": "512", "etag": '"x"'}}


async def test_what_should_be_json_and_is_not_fails_with_an_excerpt() -> None:
    error = await failed(lambda: got(http(200, "text/html", b"<p>Log in"), result="json"))
    assert error.code == "invalid_output"
    assert "did not answer with JSON" in error.message
    assert "Log in" in error.message
    assert "<p>" not in error.message


# statuses


@pytest.mark.parametrize("status", [400, 401, 404, 409, 418, 422, 500, 501, 599])
async def test_any_other_status_is_a_failure_with_the_status_and_what_was_said(status: int) -> None:
    error = await failed(lambda: got(http(status, "application/json", b'{"why":"no"}')))
    assert error.detail["status"] == status
    assert str(status) in error.message
    assert '{"why":"no"}' in error.message


async def test_a_page_that_says_no_is_boiled_down_to_its_words() -> None:
    page = (
        "<!doctype html><html><head><title>502 Bad</title><style>p{color:red}</style></head><body><script>evil()"
        "</script><h1>Bad&nbsp;Gateway</h1><p>Try &lt;later&gt;</p></body></html>"
    )
    error = await failed(lambda: got(http(404, "text/html", page.encode())))
    assert error.message.endswith("404 Not Found: 502 Bad - Bad Gateway Try <later>")


@pytest.mark.parametrize("page", ["<" * 200_000, "<a" * 100_000, "<script>" * 30_000, "<!--" * 60_000])
async def test_a_page_of_any_shape_is_boiled_down_at_once(page: str) -> None:
    error = await failed(lambda: got(http(404, "text/html", page.encode())))
    assert len(error.message) < 2500


async def test_an_excerpt_is_bounded() -> None:
    error = await failed(lambda: got(http(400, "text/plain", b"x" * 500_000)))
    assert len(error.message) < 1200


# bounds


async def test_a_text_that_is_too_long_is_cut_and_says_so() -> None:
    result = await got(http(200, "text/plain", b"x" * 5000), max_body=2000)
    assert result.text is not None
    assert len(result.text) <= 2000
    assert result.text.endswith("[cut: 1800 bytes of 5000 bytes shown]")
    assert result.metadata["truncated"] == {"shown_bytes": 1800, "total_bytes": 5000}


async def test_json_that_is_too_long_is_shown_as_cut_text_and_refused_where_json_is_needed() -> None:
    answer = http(200, "application/json", json.dumps(["x"] * 2000).encode())
    assert "[cut:" in ((await got(answer, max_body=2000)).text or "")
    error = await failed(lambda: got(answer, result="json", max_body=2000))
    assert (error.code, error.detail["limit"]) == ("too_large", 2000)
    assert "max_bytes" in error.message


async def test_a_file_that_is_too_long_is_refused_with_its_size() -> None:
    error = await failed(lambda: got(http(200, "image/png", b"x" * 5000), max_body=2000))
    assert "5000 bytes" in error.message


async def test_a_compressed_bomb_is_unpacked_only_up_to_the_bound() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    result = await got(http(200, "text/plain", bomb, content_encoding="gzip"), max_body=10_000)
    assert result.metadata["truncated"]["total_bytes"] is None
    assert len(result.text or "") <= 10_000


# time and repetition


async def test_a_silent_server_costs_the_timeout() -> None:
    async def never(_: Request) -> bytes:
        await asyncio.Event().wait()
        return b""

    async with peer(never) as server:
        exchange = Exchange(timeout=0.1)
        error = await failed(lambda: exchange.send(HttpRequest("POST", server.url), NOBODY))
        assert (error.code, error.retryable) == ("timeout", False)
        deadline = asyncio.get_running_loop().time() + 0.1
        error = await failed(
            lambda: Exchange().send(HttpRequest("GET", server.url), CapabilityContext(deadline=deadline))
        )
        assert (error.code, error.retryable) == ("timeout", True)
        assert len(server.requests) == 2


async def test_a_cancelled_request_closes_its_connection_at_once() -> None:
    arrived, gone = asyncio.Event(), asyncio.Event()

    async def hold(request: Request) -> None:
        request.writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\npart")
        arrived.set()
        try:
            while not request.writer.transport.is_closing():
                request.writer.write(b"x")  # is answered by a reset once the other side is gone
                await asyncio.sleep(0.01)
        finally:
            gone.set()

    async with peer(hold) as server:
        exchange = Exchange()
        await exchange.start()
        task = asyncio.create_task(exchange.send(HttpRequest("GET", server.url), NOBODY))
        async with asyncio.timeout(3):
            await arrived.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await gone.wait()
        await exchange.close()


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_an_idempotent_request_is_repeated_while_the_server_cannot(status: int) -> None:
    async with peer(in_turn(http(status, retry_after="0"), http(200, "text/plain", b"ok"))) as server:
        assert (await Exchange().send(HttpRequest("PUT", server.url, (), b"x"), NOBODY)).text == "ok"
        assert [one.body for one in server.requests] == [b"x", b"x"]


@pytest.mark.parametrize(
    ("method", "idempotent", "times"),
    [("POST", None, 1), ("PATCH", None, 1), ("POST", True, 3), ("GET", False, 1), ("DELETE", None, 3)],
)
async def test_how_often_a_request_is_sent_goes_by_its_idempotence(
    method: str, idempotent: bool | None, times: int
) -> None:
    async with peer(always(http(503, "text/plain", b"busy", retry_after="0"))) as server:
        request = HttpRequest(method, server.url, idempotent=idempotent)
        error = await failed(lambda: Exchange().send(request, NOBODY))
        assert len(server.requests) == times
        assert error.retryable is (times > 1)


async def test_statuses_of_a_fault_in_the_request_are_not_repeated() -> None:
    for status in (400, 404, 500, 501):
        async with peer(always(http(status))) as server:
            await failed(lambda server=server: Exchange().send(HttpRequest("GET", server.url), NOBODY))
            assert len(server.requests) == 1


async def test_a_wait_longer_than_the_deadline_is_not_waited() -> None:
    async with peer(always(http(503, "text/plain", b"busy", retry_after="3600"))) as server:
        async with asyncio.timeout(3):
            error = await failed(lambda: Exchange().send(HttpRequest("GET", server.url), NOBODY))
        assert error.detail == {"status": 503, "content_type": "text/plain", "body": "busy", "retry_after": "3600"}
        assert len(server.requests) == 1


async def test_a_request_that_was_sent_and_lost_is_never_repeated_and_says_so() -> None:
    async def lost(_: Request) -> None:
        return None

    async with peer(lost) as server:
        with pytest.raises(Unavailable) as raised:
            await Exchange().send(HttpRequest("POST", server.url, (), b"x"), NOBODY)
        assert raised.value.sent
        assert len(server.requests) == 1


async def test_a_server_that_is_not_there_is_unavailable_and_nothing_was_sent(free_port: int) -> None:
    exchange = Exchange(retries=1)
    with pytest.raises(Unavailable, match="connection refused") as raised:
        await exchange.send(HttpRequest("GET", f"http://127.0.0.1:{free_port}/"), NOBODY)
    assert not raised.value.sent


async def test_a_connection_that_is_refused_is_tried_again(free_port: int) -> None:
    exchange = Exchange(retries=5)
    task = asyncio.create_task(exchange.send(HttpRequest("GET", f"http://127.0.0.1:{free_port}/"), NOBODY))
    await asyncio.sleep(0)
    async with peer(always(http(200, "text/plain", b"up")), port=free_port):
        assert (await task).text == "up"


# what goes where


async def test_a_peer_gets_no_private_address_where_the_guard_forbids_it() -> None:
    async with peer(always(http(200))) as server:
        with pytest.raises(AddressRefused):
            await Exchange(guard=PUBLIC_ONLY).send(HttpRequest("GET", server.url), NOBODY)
        assert server.connections == 0


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "gopher://h/", "http://a b/", "http://h/ü", "http://h/a\\b", "http:///x"]
)
async def test_what_is_no_url_to_be_called_is_refused(url: str) -> None:
    with pytest.raises((AddressRefused, InvalidInput)):
        await Exchange().send(HttpRequest("GET", url), NOBODY)


@pytest.mark.parametrize("header", [("x-a", "1\r\nx-b: 2"), ("x-a", "1\n"), ("x-a", "\0"), ("x a", "1"), ("", "1")])
async def test_a_header_cannot_smuggle_another(header: tuple[str, str]) -> None:
    with pytest.raises(InvalidInput):
        await Exchange().send(HttpRequest("GET", "http://127.0.0.1:1/", (header,)), NOBODY)


async def test_a_multipart_body_arrives_in_parts() -> None:
    async with peer(always(http(200))) as server:
        body = Multipart((Part("a", "ü".encode()), Part("f", b"\x00\r\n--", 'x"\r\ny.bin', "image/png")))
        await Exchange().send(HttpRequest("POST", server.url, (), body), NOBODY)
    (seen,) = server.requests
    boundary = seen.headers["content-type"].partition("boundary=")[2]
    first, second = seen.body.split(f"--{boundary}".encode())[1:3]
    assert first == '\r\nContent-Disposition: form-data; name="a"\r\n\r\nü\r\n'.encode()
    assert second == (
        b'\r\nContent-Disposition: form-data; name="f"; filename="x%22%0D%0Ay.bin"\r\nContent-Type: image/png\r\n\r\n'
        b"\x00\r\n--\r\n"
    )
    assert seen.body.endswith(f"--{boundary}--\r\n".encode())


async def test_credentials_are_in_no_error_result_or_repr() -> None:
    secret = 'sw0rd"fish/ü'

    async def echo(request: Request) -> bytes:
        said = json.dumps({"auth": request.headers["authorization"], "path": request.path}).encode()
        return http(200 if "ok" in request.path else 403, "application/json", said)

    async with peer(echo) as server:
        exchange = Exchange(headers={"authorization": "Bearer sesame-open"}, secrets=(secret,))
        url = f"{server.url}/sw0rd%22fish%2F%C3%BC"
        request = HttpRequest("GET", f"{url}/ok?key=sw0rd%22fish%2F%C3%BC", secrets=("sesame-open",))
        result = await exchange.send(request, NOBODY)
        assert result.structured == {"auth": "Bearer ***", "path": "/***/ok?key=***"}
        error = await failed(lambda: exchange.send(HttpRequest("GET", url), NOBODY))
        for shown in (str(error), repr(error), repr(error.detail), repr(request), repr(exchange), repr(result)):
            assert "sesame-open" not in shown
            assert "fish" not in shown


# redirects


def moved(status: int, location: str) -> bytes:
    return http(status, location=location)


@pytest.mark.parametrize(
    ("status", "method", "after", "body"),
    [
        (301, "POST", "GET", b""),
        (302, "POST", "GET", b""),
        (303, "PUT", "GET", b""),
        (303, "HEAD", "HEAD", b""),
        (301, "PUT", "PUT", b"x"),
        (307, "POST", "POST", b"x"),
        (308, "PATCH", "PATCH", b"x"),
    ],
)
async def test_a_redirect_keeps_or_changes_the_method_as_the_status_says(
    status: int, method: str, after: str, body: bytes
) -> None:
    async with peer(in_turn(moved(status, "/b"), http(200))) as server:
        given = None if method == "HEAD" else b"x"
        await Exchange().send(HttpRequest(method, f"{server.url}/a", (("content-type", "text/x"),), given), NOBODY)
        second = server.requests[1]
        assert (second.method, second.path, second.body) == (after, "/b", body)
        assert ("content-type" in second.headers) is (after == method)


@pytest.mark.parametrize("status", [302, 307])
async def test_no_credential_crosses_to_another_origin(status: int) -> None:
    async with peer(always(http(200, "text/plain", b"there"))) as other:
        location = f"http://user:pw@127.0.0.1:{other.port}/x?api_key=sesame-open&a=1"
        async with peer(always(moved(status, location))) as server:
            headers = {
                "Authorization": "Bearer sesame-open",
                "Cookie": "a=b",
                "X-Api-Key": "k",
                "X-Tenant": "t",
                "accept": "text/x",
            }
            exchange = Exchange(headers=headers)
            request = HttpRequest("POST", f"{server.url}/?api_key=sesame-open", (), b"body", idempotent=False)
            assert (await exchange.send(request, NOBODY)).text == "there"
    (seen,) = other.requests
    assert seen.path == "/x?a=1"
    assert {"authorization", "cookie", "x-api-key", "x-tenant"}.isdisjoint(seen.headers)
    assert seen.headers["accept"] == "text/x"
    assert (seen.method, seen.body) == (("GET", b"") if status == 302 else ("POST", b"body"))


async def test_credentials_do_not_come_back_with_a_second_redirect() -> None:
    async with peer(always(http(404))) as other:
        async with peer(in_turn(moved(302, f"http://127.0.0.1:{other.port}/"), http(200))) as server:

            async def back(_: Request) -> bytes:
                return moved(302, f"{server.url}/again")

            other.answer = back
            await Exchange(headers={"authorization": "Bearer sesame-open"}).send(HttpRequest("GET", server.url), NOBODY)
            assert "authorization" in server.requests[0].headers
            assert "authorization" not in server.requests[1].headers


async def test_a_redirect_on_the_same_origin_keeps_the_credentials() -> None:
    async with peer(in_turn(moved(302, "b?c=d"), http(200))) as server:
        await Exchange(headers={"authorization": "Bearer t"}).send(HttpRequest("GET", f"{server.url}/a/x"), NOBODY)
        assert (server.requests[1].path, server.requests[1].headers["authorization"]) == ("/a/b?c=d", "Bearer t")


async def test_redirects_end_after_five() -> None:
    async with peer(always(moved(302, "/again"))) as server:
        error = await failed(lambda: Exchange().send(HttpRequest("GET", server.url), NOBODY))
        assert "more than 5 times" in error.message
        assert len(server.requests) == 6


async def test_a_redirect_that_is_not_to_be_followed_is_a_failure_that_says_where_it_leads() -> None:
    async with peer(always(moved(302, "/there?token=1"))) as server:
        exchange = Exchange(max_redirects=0)
        error = await failed(lambda: exchange.send(HttpRequest("GET", server.url), NOBODY))
        assert error.detail["status"] == 302
        assert error.message.endswith(f"a redirect to {server.url}/there?... that is not followed")
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest",
        "http://[fd00:ec2::254]/",
        "http://2852039166/",
        "file:///etc/passwd",
        "gopher://h/",
        "http://[/",
    ],
)
async def test_a_redirect_into_the_cloud_or_to_another_scheme_is_refused(location: str) -> None:
    async with peer(always(moved(302, location))) as server:
        with pytest.raises((AddressRefused, ExecutionFailed)):
            await Exchange().send(HttpRequest("GET", server.url), NOBODY)


async def test_a_body_with_a_credential_does_not_go_to_another_origin() -> None:
    async with peer(always(http(200))) as other, peer(always(moved(307, other.url))) as server:
        request = HttpRequest("POST", server.url, (), b"client_secret=sesame-open", secrets=("sesame-open",))
        error = await failed(lambda: Exchange().send(request, NOBODY))
        assert "credential" in error.message
        assert other.connections == 0
