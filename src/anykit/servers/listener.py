"""uvicorn's server without its signal handlers, and with a word when it listens."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Generator

import uvicorn


class Listener(uvicorn.Server):
    """Imported when something is served, not before."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], object]) -> None:
        super().__init__(config)
        self._told = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        if self.started:
            self._told()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave the signals to whoever owns the process."""
        yield
