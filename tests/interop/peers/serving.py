"""Binds a port, prints the URL, serves until the input ends. For peers in any environment that has uvicorn."""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Any

import uvicorn


def bind() -> tuple[socket.socket, str]:
    """A listening socket and the URL it stands for."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    return listener, f"http://127.0.0.1:{listener.getsockname()[1]}"


async def serve(app: Any, listener: socket.socket, url: str, *, lifespan: str = "auto") -> None:
    """Serve."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan=lifespan, timeout_graceful_shutdown=1))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    print(url, flush=True)  # noqa: T201 - how the tests learn the port
    await asyncio.to_thread(sys.stdin.read)
    server.should_exit = True
    await serving
