"""Streamable HTTP with a handshake (until 2025-11-25): a session, the streams of its requests, and one for the rest.

Imports the SDK.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from mcp.server.runner import serve_loop
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from mcp_types.version import is_version_at_least

from .bench import Limits
from .face import Face
from .jsonrpc import INVALID_REQUEST, Id, Incoming, Refused, encode
from .replies import Reply
from .streams import Reader, Writer, bare, from_json, to_json
from .view import View

log = logging.getLogger("anykit.mcp")

RESUMABLE: Final = "2025-11-25"
"""Since when a stream may begin with an id and no data."""
KEPT: Final = 64
"""Streams of requests that a client can come back for."""
STANDALONE: Final = 0
"""Number of the stream that belongs to no request."""


class LegacySession:
    """One client's session. Used on the loop's thread only.

    Args:
        face: Answers.
        view: The caller.
        limits: How much of everything.
        over: Called once it has ended by itself.
    """

    def __init__(self, face: Face, view: View, limits: Limits, over: Callable[[LegacySession], None]) -> None:
        assert view.session_id is not None
        self.id = view.session_id
        self.view = view
        self.seen = asyncio.get_running_loop().time()
        """When it was last heard of, in the loop's time."""
        self.open = 0
        """Requests and streams that are being served."""
        self.ended = False
        self.standalone = Reply(STANDALONE)
        self._limits = limits
        self._reader = Reader()
        self._open: dict[tuple[type, Id], Reply] = {}
        self._streams: OrderedDict[int, Reply] = OrderedDict()
        self._number = STANDALONE
        self._over = over
        self._task = asyncio.get_running_loop().create_task(self._serve(face), name="mcp session")

    @property
    def principal(self) -> str:
        """Whose it is."""
        return self.view.principal

    @property
    def established(self) -> bool:
        """Whether the client said that it is initialized."""
        return self.view.tell is not None

    @property
    def idle(self) -> bool:
        """Whether nothing is going on."""
        return not self.open and not self._open and not self.view.gate.busy

    def touch(self) -> None:
        """It was heard of."""
        self.seen = asyncio.get_running_loop().time()

    async def _serve(self, face: Face) -> None:
        try:
            await serve_loop(
                face.server, self._reader, Writer(self._send), lifespan_state=self.view, session_id=self.id
            )
        except Exception:
            log.exception("session %s broke", self.id[:8])
        finally:
            self._finish()

    def _finish(self) -> None:
        self.ended = True
        for reply in (*self._open.values(), self.standalone):
            reply.finish(None)
        self._open.clear()
        self.view.close()
        self._over(self)

    async def close(self) -> None:
        """End it: what runs is cancelled, streams end."""
        self._reader.close()
        await asyncio.wait([self._task], timeout=2.0)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task], timeout=1.0)

    # messages in

    def ask(self, incoming: Incoming, *, events: bool, version: str) -> Reply:
        """Take a request; its reply is filled in as it is answered. Raises `Refused` for an id that is in use."""
        assert incoming.id is not None
        key = (type(incoming.id), incoming.id)
        if key in self._open:
            raise Refused(INVALID_REQUEST, "a request of that id is being answered", incoming.id)
        resumable = events and is_version_at_least(version, RESUMABLE)
        if resumable:
            self._number += 1
        reply = Reply(self._number if resumable else None)
        self._open[key] = reply
        if resumable:
            self._remember(reply)

        async def unanswered() -> None:
            if self._open.get(key) is reply:
                del self._open[key]
            reply.finish(None)

        metadata = ServerMessageMetadata(on_request_unanswered=unanswered, can_send_request=events)
        message = from_json(incoming)
        assert message is not None
        self._reader.put(SessionMessage(message, metadata))
        return reply

    def tell(self, incoming: Incoming) -> None:
        """Take a notification or a response."""
        message = from_json(incoming)
        if message is not None:
            self._reader.put(SessionMessage(message, ServerMessageMetadata()))

    # messages out

    async def _send(self, item: SessionMessage) -> None:
        message = item.message
        line = encode(to_json(message))
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            id = bare(message.id)
            if id is not None and (reply := self._open.pop((type(id), id), None)) is not None:
                reply.finish(line)
            return
        metadata = item.metadata
        related = bare(metadata.related_request_id) if isinstance(metadata, ServerMessageMetadata) else None
        asks = isinstance(message, JSONRPCRequest)
        if related is None:
            self.standalone.say(line)
            self.standalone.forget(self._limits.replay)
        elif (reply := self._open.get((type(related), related))) is not None:
            reply.say(line, droppable=not asks)
        elif isinstance(message, JSONRPCNotification):
            log.debug("news of a request came after its answer")

    # streams that broke

    def _remember(self, reply: Reply) -> None:
        assert reply.number is not None
        self._streams[reply.number] = reply
        for number, old in list(self._streams.items()):
            kept = sum(one.size for one in self._streams.values() if one.finished)
            if len(self._streams) <= KEPT and kept <= self._limits.replay:
                break
            if old.finished or len(self._streams) > KEPT:
                del self._streams[number]

    def delivered(self, reply: Reply) -> None:
        """A client has read it in one body, so it will not come back for it."""
        if reply.number is not None:
            self._streams.pop(reply.number, None)

    def resume(self, event: str) -> tuple[Reply, int] | None:
        """The stream behind the id of an event, and how much of it the client has; None where it is not kept."""
        stream, _, seen = event.partition("-")
        if not (stream.isdecimal() and seen.isdecimal() and len(event) <= 40):
            return None
        reply = self.standalone if int(stream) == STANDALONE else self._streams.get(int(stream))
        return None if reply is None else (reply, int(seen))


def new_session_id() -> str:
    """An id that cannot be guessed, of characters that a header takes."""
    return secrets.token_hex(16)
