"""One client over lines: lines in, the SDK's loop for both eras, lines out. Imports the SDK."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Final

import anyio
from mcp.server.runner import serve_dual_era_loop
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import JSONRPCError, JSONRPCResponse

from anykit.transports import LineTransport, Oversized, TransportClosed

from .bench import Bench, Gate, Limits
from .face import Face
from .jsonrpc import BUSY, INVALID_REQUEST, Id, Incoming, Refused, encode, read
from .skills import Skills
from .streams import Reader, Writer, bare, from_json, to_json
from .view import View

log = logging.getLogger("anykit.mcp")

EOF_GRACE: Final = 0.25
"""Seconds that calls have to end by themselves once the client says nothing more; then they are cancelled."""
LISTEN: Final = "subscriptions/listen"
CHEAP: Final = 64
"""Requests beside calls (pings, lists) that may be open as well."""
TURN: Final = 64
"""Lines that are taken in one go before others have their turn."""


class Talk:
    """One connection. `run` serves it; `close` ends it.

    Args:
        bench: What is served.
        transport: Where lines come from and go to; stays the opener's to close.
        limits: How much is taken on.
        session_id: Of the caller, where it speaks a revision that has sessions.
        principal: Whom it stands for.
        instructions: What it is told.
        state_keys: Seal what it carries for us.
    """

    def __init__(
        self,
        bench: Bench,
        transport: LineTransport,
        *,
        limits: Limits,
        session_id: str,
        principal: str,
        instructions: str | None,
        state_keys: Sequence[bytes],
    ) -> None:
        self._transport = transport
        self._limits = limits
        self._face = Face(limits=limits, instructions=instructions, skills=Skills(bench), state_keys=state_keys)
        self._view = View(bench, limits, principal, session_id, Gate(limits))
        self._reader = Reader()
        self._open: dict[tuple[type, Id], str] = {}
        """Requests that have no answer, with their methods."""
        self._changed = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Read until the client is gone."""
        self._serving = asyncio.get_running_loop().create_task(self._serve(), name="mcp talk")
        taken = 0
        while True:
            try:
                item = await self._transport.receive()
            except TransportClosed:
                break
            try:
                if isinstance(item, Oversized):
                    raise Refused(INVALID_REQUEST, str(item))
                self._take(read(item))
            except Refused as refused:
                with contextlib.suppress(anyio.BrokenResourceError):
                    await self._write(encode(refused.answer))
            taken += 1
            if taken % TURN == 0:
                await asyncio.sleep(0)
        await self._settle()

    async def close(self) -> None:
        """End it: streams of changes end, what runs is cancelled. Bounded in time."""
        self._face.end()
        self._reader.close()
        if self._serving is not None:
            await asyncio.wait([self._serving], timeout=2.0)
            self._serving.cancel()
            await asyncio.wait([self._serving], timeout=1.0)
        await self._face.settle()
        self._view.close()

    async def _serve(self) -> None:
        try:
            await serve_dual_era_loop(
                self._face.server,
                self._reader,
                Writer(self._send),
                lifespan_state=self._view,
                session_id=self._view.session_id,
            )
        except Exception:
            log.exception("a connection broke")

    async def _settle(self) -> None:
        """Wait until nothing runs, for a moment."""
        try:
            async with asyncio.timeout(EOF_GRACE):
                while any(method != LISTEN for method in self._open.values()):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass

    # messages in

    def _take(self, incoming: Incoming) -> None:
        if not self._view.gate.spend():
            raise Refused(BUSY, "too many messages", incoming.id, {"retryable": True})
        message = from_json(incoming)
        if message is None:
            return
        if incoming.kind != "request":
            self._reader.put(SessionMessage(message))
            return
        assert incoming.id is not None
        key = (type(incoming.id), incoming.id)
        if key in self._open:
            raise Refused(INVALID_REQUEST, "a request of that id is being answered", incoming.id)
        if len(self._open) >= self._limits.max_parallel + self._limits.queue + CHEAP:
            raise Refused(BUSY, "too many requests at once", incoming.id, {"retryable": True})
        self._open[key] = incoming.method

        async def unanswered() -> None:
            self._done(key)

        self._reader.put(SessionMessage(message, ServerMessageMetadata(on_request_unanswered=unanswered)))

    def _done(self, key: tuple[type, Id]) -> None:
        if self._open.pop(key, None) is not None:
            self._changed.set()

    # messages out

    async def _send(self, item: SessionMessage) -> None:
        message = item.message
        await self._write(encode(to_json(message)))
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._done((type(message.id), bare(message.id)))

    async def _write(self, line: bytes) -> None:
        try:
            await self._transport.send(line)
        except TransportClosed:
            raise anyio.BrokenResourceError from None
