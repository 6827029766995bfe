"""MCP over lines: one client, on stdin and stdout or any other transport of ours. The SDK gets streams."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from anykit.transports import LineTransport
from anykit.transports.importing import import_alone

from .bench import Bench, Limits

if TYPE_CHECKING:
    from .talking import Talk  # imports the SDK

log = logging.getLogger("anykit.mcp")

End: TypeAlias = Literal["eof", "host"]
"""Why a connection ended: the client went, or this side stopped."""


async def serve_mcp_lines(
    bench: Bench,
    transport: LineTransport,
    *,
    limits: Limits | None = None,
    stop: asyncio.Event | None = None,
    instructions: str | None = None,
    state_keys: Callable[[], Sequence[bytes]] | None = None,
    principal: str = "local",
) -> End:
    """Serve one client until it is gone or `stop` is set; give why.

    Nothing that the client sends raises here. What it says while the SDK is loaded waits. At the end calls are
    cancelled, what was said is sent, and the transport is closed, all bounded in time.
    """
    stopping = asyncio.ensure_future(stop.wait() if stop is not None else asyncio.Future[bool]())
    keys: Sequence[bytes] = ()

    def load() -> Any:
        nonlocal keys
        keys = () if state_keys is None else state_keys()
        return import_alone("anykit.servers.mcp.talking")

    loading = asyncio.ensure_future(asyncio.to_thread(load))
    try:
        await asyncio.wait([loading, stopping], return_when=asyncio.FIRST_COMPLETED)
        if not loading.done():
            return "host"
        made: type[Talk] = loading.result().Talk
        talk = made(
            bench,
            transport,
            limits=limits or Limits(),
            session_id=secrets.token_hex(16),
            principal=principal,
            instructions=instructions,
            state_keys=keys,
        )
        running = asyncio.ensure_future(talk.run())
        await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
        ended: End = "eof" if running.done() else "host"
        running.cancel()
        await talk.close()
        await asyncio.gather(running, return_exceptions=True)
        return ended
    finally:
        stopping.cancel()
        await transport.close()
