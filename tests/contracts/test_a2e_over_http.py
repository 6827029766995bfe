"""Our client and our host over real HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.lowlevel
import pytest

from anykit import Workbench, tool
from anykit.a2e import A2EClient, A2EHost, A2ERequestError
from anykit.capabilities import Unavailable
from anykit.servers import Address, Server, a2e_mount
from anykit.sources import Backoff

pytestmark = pytest.mark.anyio

QUICK = Backoff(0.01, 0.05)


@tool
async def echo(text: str) -> str:
    """Echoes."""
    return text


@asynccontextmanager
async def served(*, token: str = "", port: int = 0) -> AsyncGenerator[str]:
    """A host that listens; gives its URL."""
    addresses: list[Address] = []
    up = anyio.Event()

    def listening(address: Address) -> None:
        addresses.append(address)
        up.set()

    async with Workbench(echo) as bench:
        server = Server(
            [a2e_mount(A2EHost(bench, token=token))], host="127.0.0.1", port=port, token=token, listening=listening
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve)
            with anyio.fail_after(5):
                await up.wait()
            try:
                yield f"http://127.0.0.1:{addresses[0].port}"
            finally:
                server.stop()


@pytest.mark.parametrize("path", ["", "/", "/a2e", "/a2e/"])
async def test_a_url_works_with_and_without_its_path(path: str) -> None:
    async with served() as url, A2EClient(url + path) as client:
        assert client.secure, "loopback"
        assert client.accepted_caps == ("tools", "toolkits")
        assert [one.name for one in await client.tools.list()] == ["echo"]
        assert (await client.tools.call("echo", {"text": "ä\u2028"})).data == "ä\u2028"


async def test_a_wrong_token_is_refused_with_its_reason() -> None:
    async with served(token="right") as url:
        with pytest.raises(A2ERequestError) as caught:
            await A2EClient(url, token="wrong").__aenter__()
        assert caught.value.code == "auth_failed"
        async with A2EClient(url, token="right") as client:
            assert (await client.tools.call("echo", {"text": "in"})).data == "in"


async def test_b025_a_port_where_nobody_listens_is_one_error_with_its_cause() -> None:
    """openai/openai-agents-python#1288: the next await after a failed connect is cancelled."""
    with pytest.raises(Unavailable) as caught:
        await A2EClient("http://127.0.0.1:9").__aenter__()
    assert "127.0.0.1:9" in str(caught.value)
    assert "refused" in str(caught.value)
    with anyio.fail_after(2):
        await anyio.lowlevel.checkpoint()


async def test_a_host_that_comes_back_is_found_again() -> None:
    async with served() as url:
        port = int(url.rpartition(":")[2])
        client = A2EClient(url, backoff=QUICK)
        await client.__aenter__()
        first = client.session_id
    try:
        async with served(port=port):
            with anyio.fail_after(8):
                data = None
                while data is None:
                    with suppress(Unavailable):
                        data = (await client.tools.call("echo", {"text": "again"})).data
            assert data == "again"
            assert client.session_id not in ("", first)
    finally:
        await client.close()
