"""A person logs in to a server: a URL to open, a browser that comes back to a port of ours, or a URL pasted by hand."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

from anykit.capabilities import ExecutionFailed, Unavailable
from anykit.transports import AddressGuard, HttpClient, is_loopback

from .connecting import sdk
from .servers import McpServer
from .vault import Drawer, Vault

LOGIN_SECONDS = 300.0
"""What a person has for it."""
ASK_SECONDS = 15.0
HEAD = 16 * 1024
"""Bytes of a browser's request that are read."""

_PROBE = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {}}).encode()
_ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
_PAGE = b"<!doctype html><meta charset=utf-8><title>anykit</title><p>%s You can close this page."


async def login(
    server: McpServer,
    vault: Vault,
    *,
    show: Callable[[str], object],
    paste: Callable[[], Awaitable[str]] | None = None,
    timeout: float = LOGIN_SECONDS,
) -> None:
    """Log in to a server and keep the token in `vault`, where a source of the same server finds it.

    `show` is given the URL to open (in a browser, or printed). The browser comes back to a port of this machine; where it
    runs elsewhere, `paste` gives the URL that it was sent to. `timeout` is in seconds. Raises `ExecutionFailed` where
    the server wants no login, or it failed; `Unavailable` where the server cannot be reached.
    """
    if not server.url:
        raise ExecutionFailed(f"{server.name} is a program, which has no login", code="unsupported")
    try:
        async with asyncio.timeout(timeout):
            refusal = await _refusal(server)
            await sdk()
            await _log_in(server, vault, refusal, show, paste)
    except TimeoutError:
        raise ExecutionFailed(f"{server.name}: nobody logged in within {timeout:g} s", code="expired") from None


async def logout(server: McpServer, vault: Vault) -> bool:
    """Forget the token and the registration; whether there was any."""
    return await Drawer(vault, server).clear()


async def is_logged_in(server: McpServer, vault: Vault) -> bool:
    """Whether a token is kept for the server; it may be over."""
    return "tokens" in await Drawer(vault, server).read()


async def _refusal(server: McpServer) -> tuple[int, dict[str, str]]:
    """What the server answers to one who shows nothing."""
    public = {name: value for name, value in server.headers.items() if name.lower() != "authorization"}
    async with HttpClient(guard=server.guard, headers=public, timeout=ASK_SECONDS) as client:
        answer = await client.request("POST", server.url, headers=_ACCEPT, body=_PROBE, max_redirects=0)
        if answer.status in (404, 405):
            async with client.stream("GET", server.url, headers={"accept": "text/event-stream"}) as stream:
                answer = await stream.excerpt(0.5)
    if answer.status == 401 or (answer.status == 403 and "www-authenticate" in answer.headers):
        return answer.status, dict(answer.headers)
    if answer.status < 300:
        raise ExecutionFailed(f"{server.place} wants no login: it answers without one", code="unsupported")
    raise Unavailable(f"{server.place} asks for no login: {answer.describe()}")


async def _log_in(
    server: McpServer,
    vault: Vault,
    refusal: tuple[int, dict[str, str]],
    show: Callable[[str], object],
    paste: Callable[[], Awaitable[str]] | None,
) -> None:
    from .oauth import OAuthCredentials  # noqa: PLC0415 - typed by the SDK, loaded by now

    if server.oauth is not None and server.oauth.grant == "client_credentials":
        await OAuthCredentials(server, vault).log_in(*refusal)
        return
    port = 0 if server.oauth is None else server.oauth.redirect_port
    async with _listening(port) as (address, came_back):

        async def opened(url: str) -> None:
            _check(url)
            result = show(url)
            if asyncio.iscoroutine(result):
                await result

        async def returned() -> str:
            return await _first(came_back, paste)

        credentials = OAuthCredentials(server, vault, redirect=opened, callback=returned, redirect_uri=address)
        await credentials.log_in(*refusal)


async def _first(came_back: asyncio.Future[str], paste: Callable[[], Awaitable[str]] | None) -> str:
    """The URL that the browser was sent to, however it comes."""
    if paste is None:
        return await came_back

    async def pasted() -> str:
        while "code=" not in (text := (await paste()).strip()) and "error=" not in text:
            continue
        return text

    by_hand = asyncio.create_task(pasted())
    try:
        await asyncio.wait({came_back, by_hand}, return_when=asyncio.FIRST_COMPLETED)
        return came_back.result() if came_back.done() else by_hand.result()
    finally:
        by_hand.cancel()
        await asyncio.gather(by_hand, return_exceptions=True)


def _check(url: str) -> None:
    """A browser is sent to web pages only, over TLS unless it is this machine. Raises `ExecutionFailed`."""
    AddressGuard(allow_private=True).check_url(url)
    parts = urlsplit(url)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise ExecutionFailed("the authorization server's page is not on https; it is not opened", code="unauthorized")


@asynccontextmanager
async def _listening(port: int) -> AsyncGenerator[tuple[str, asyncio.Future[str]]]:
    """Wait on a loopback port for the browser to come back (RFC 8252, 7.3); its address, and where it came back to."""
    came_back: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def visited(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(
            OSError, ValueError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError
        ):
            async with asyncio.timeout(10):
                head = await reader.readuntil(b"\r\n\r\n")
                method, target, _ = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
                fields = parse_qs(urlsplit(target).query)
                mine = method == "GET" and urlsplit(target).path == "/callback" and "state" in fields
                if mine and not came_back.done() and ("code" in fields or "error" in fields):
                    came_back.set_result(target)
                    status, page = b"200 OK", _PAGE % (b"Logged in." if "code" in fields else b"Not logged in.")
                else:
                    status, page = b"404 Not Found", _PAGE % b"There is nothing here."
                writer.write(
                    b"HTTP/1.1 %s\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: %d\r\n"
                    b"cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n%s"
                    % (status, len(page), page)
                )
                await writer.drain()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    try:
        listener = await asyncio.start_server(visited, "127.0.0.1", port, limit=HEAD)
    except OSError as error:
        raise ExecutionFailed(f"port {port} cannot be listened on: {error.strerror}", code="execution_failed") from None
    async with listener:
        bound = listener.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{bound}/callback", came_back
