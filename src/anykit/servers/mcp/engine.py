"""Streamable HTTP in both eras, on one URL: which era a request is of, sessions, and their limits. Imports the SDK."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final
from weakref import WeakValueDictionary

from mcp_types import DEFAULT_NEGOTIATED_VERSION, INVALID_REQUEST
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from anykit.servers.identity import Message, Receive, Send

from . import modern
from .bench import Bench, Gate, Limits
from .configuring import Desk, Place
from .face import Face
from .jsonrpc import BUSY, INTERNAL_ERROR, Incoming, Refused, encode, error_message, read
from .legacy import LegacySession, new_session_id
from .replies import Reply, Writing
from .skills import Skills
from .view import View, spawn

log = logging.getLogger("anykit.mcp")

SESSION: Final = "mcp-session-id"
ENDING: Final = 5.0
"""Seconds that sessions and streams have to end."""

Headers = Sequence[tuple[str, str]]


class Engine:
    """Serves what came in over HTTP.

    Args:
        bench: What is served.
        limits: How much of it.
        instructions: What clients are told.
        desk: Where toolkits are configured.
        state_keys: Seal what clients carry for us.
    """

    def __init__(
        self,
        bench: Bench,
        *,
        limits: Limits,
        instructions: str | None,
        desk: Desk,
        state_keys: Sequence[bytes],
    ) -> None:
        self._bench = bench
        self._limits = limits
        self._desk = desk
        self._face = Face(
            limits=limits, instructions=instructions, desk=desk, skills=Skills(bench), state_keys=state_keys
        )
        self._sessions: dict[str, LegacySession] = {}
        self._gates: WeakValueDictionary[str, Gate] = WeakValueDictionary()
        self._answering: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._stopped = False

    @property
    def sessions(self) -> int:
        """Sessions that are open."""
        return len(self._sessions)

    async def end(self) -> None:
        """The host stops: streams of changes end, what runs is cancelled, sessions close. Bounded in time."""
        self._stopped = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._face.end()
        closing = [asyncio.ensure_future(session.close()) for session in list(self._sessions.values())]
        if closing:
            await asyncio.wait(closing, timeout=ENDING)
        if self._answering:
            await asyncio.wait(set(self._answering), timeout=0.5)
            for task in set(self._answering):
                task.cancel()
            if self._answering:
                await asyncio.wait(set(self._answering), timeout=1.0)
        await self._face.settle()

    # requests

    async def post(
        self, body: bytes, headers: Headers, principal: str, place: Place, receive: Receive, send: Send
    ) -> None:
        """One message."""
        json, events = accepted(headers)
        try:
            incoming = read(body)
            if not json and not events:
                raise Refused(INVALID_REQUEST, "accept application/json and text/event-stream", incoming.id)
        except Refused as refused:
            await answer(send, 400 if json or events else 406, refused)
            return
        version = header(headers, modern.VERSION)
        try:
            if modern.is_modern(incoming, version):
                await self._modern(incoming, headers, principal, place, receive, send, json, events)
            else:
                await self._legacy(incoming, headers, principal, place, receive, send, json, events)
        except Refused as refused:
            await answer(send, _STATUS.get(refused.code) or modern.status_of(refused.code), refused)

    def _gate(self, principal: str) -> Gate:
        gate = self._gates.get(principal)
        if gate is None:
            gate = self._gates[principal] = Gate(self._limits)
        return gate

    # 2026-07-28

    async def _modern(
        self,
        incoming: Incoming,
        headers: Headers,
        principal: str,
        place: Place,
        receive: Receive,
        send: Send,
        json: bool,
        events: bool,
    ) -> None:
        if incoming.kind == "response":
            raise Refused(INVALID_REQUEST, "a client sends requests and notifications only")
        if incoming.kind == "notification":
            modern.check_notification(header(headers, modern.VERSION))
            await _accepted(send)
            return
        if incoming.method == "subscriptions/listen" and not events:
            await answer(send, 406, Refused(INVALID_REQUEST, "accept text/event-stream", incoming.id))
            return
        verdict = modern.route(incoming, headers)
        gate = self._gate(principal)
        if not gate.spend():
            raise Refused(BUSY, "too many messages", incoming.id, {"retryable": True})
        view = View(self._bench, self._limits, principal, None, gate, place)
        modern.check_arguments(incoming, headers, view)
        reply = Reply()
        task = spawn(modern.answer(self._face, view, incoming, verdict, headers, reply), "mcp request")
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)
        writing = Writing(reply, json=json, events=events, heartbeat=self._limits.heartbeat)
        try:
            await writing.run(receive, send)
        finally:
            task.cancel()  # done, or its client is gone

    # until 2025-11-25

    async def _legacy(
        self,
        incoming: Incoming,
        headers: Headers,
        principal: str,
        place: Place,
        receive: Receive,
        send: Send,
        json: bool,
        events: bool,
    ) -> None:
        opening = incoming.kind == "request" and incoming.method == "initialize"
        # A client that starts anew may still send the id of a session that is gone, and gets a new one.
        session = self._open(incoming, principal, place) if opening else self._find(headers, principal, incoming)
        if not session.view.gate.spend():
            raise Refused(BUSY, "too many messages", incoming.id, {"retryable": True})
        session.touch()
        if incoming.kind != "request":
            session.tell(incoming)
            await _accepted(send)
            return
        version = header(headers, modern.VERSION) or DEFAULT_NEGOTIATED_VERSION
        session.open += 1
        try:
            reply = session.ask(incoming, events=events and not opening, version=version)
            if opening:
                await self._opened(session, reply, receive, send)
                return
            extra = [(SESSION.encode(), session.id.encode())]
            writing = Writing(
                reply,
                json=json,
                events=events,
                heartbeat=self._limits.heartbeat,
                headers=extra,
                primed=reply.number is not None,
            )
            if await writing.run(receive, send) and reply.answer_alone is not None:
                session.delivered(reply)
        finally:
            session.open -= 1
            session.touch()

    def _open(self, incoming: Incoming, principal: str, place: Place) -> LegacySession:
        if self._stopped:
            raise Refused(INTERNAL_ERROR, "the host is shutting down", incoming.id)
        if len(self._sessions) >= self._limits.sessions:
            raise Refused(BUSY, "too many sessions are open", incoming.id, {"retryable": True})
        view = View(self._bench, self._limits, principal, new_session_id(), Gate(self._limits), place)
        session = LegacySession(self._face, view, self._limits, self._over)
        self._sessions[session.id] = session
        self._schedule()
        return session

    async def _opened(self, session: LegacySession, reply: Reply, receive: Receive, send: Send) -> None:
        """The handshake: only one that succeeds leaves a session."""
        while not reply.finished:
            await reply.more(reply.end, reply.reader, self._limits.heartbeat)
        line = reply.last
        succeeded = line is not None and b'"result":' in line[:200] and not session.ended
        extra = [(SESSION.encode(), session.id.encode())] if succeeded else []
        writing = Writing(reply, json=True, events=False, heartbeat=self._limits.heartbeat, headers=extra)
        if not await writing.run(receive, send) or not succeeded:
            spawn(session.close(), "mcp close")

    def _find(self, headers: Headers, principal: str, incoming: Incoming | None = None) -> LegacySession:
        id = header(headers, SESSION)
        asked = None if incoming is None else incoming.id
        if id is None:
            raise Refused(INVALID_REQUEST, "the Mcp-Session-Id header is missing: initialize first", asked)
        session = self._sessions.get(id)
        if session is None or session.ended or session.principal != principal:
            raise UnknownSession(INVALID_REQUEST, "there is no session of that id: initialize again", asked)
        return session

    def _over(self, session: LegacySession) -> None:
        self._sessions.pop(session.id, None)
        self._desk.leave(session.view.session)

    async def get(self, headers: Headers, principal: str, receive: Receive, send: Send) -> None:
        """The stream of a session that belongs to no request, or the rest of one that broke."""
        version = header(headers, modern.VERSION)
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            await not_allowed(send, b"POST")
            return
        _, events = accepted(headers)
        try:
            session = self._find(headers, principal)
            if not events:
                await answer(send, 406, Refused(INVALID_REQUEST, "accept text/event-stream"))
                return
            reply, seen = session.standalone, None
            if (last := header(headers, "last-event-id")) is not None:
                found = session.resume(last)
                if found is None:
                    raise Refused(INVALID_REQUEST, "that stream is not kept any more")
                reply, seen = found
        except Refused as refused:
            await answer(send, 400, refused)
            return
        session.open += 1
        session.touch()
        try:
            writing = Writing(
                reply,
                json=False,
                events=True,
                heartbeat=self._limits.heartbeat,
                headers=[(SESSION.encode(), session.id.encode())],
                seen=reply.taken if seen is None else seen,
            )
            await writing.run(receive, send)
        finally:
            session.open -= 1
            session.touch()

    async def delete(self, headers: Headers, principal: str, send: Send) -> None:
        """The end of a session."""
        version = header(headers, modern.VERSION)
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            await not_allowed(send, b"POST")
            return
        try:
            session = self._find(headers, principal)
        except Refused as refused:
            await answer(send, 400, refused)
            return
        session.ended = True
        self._sessions.pop(session.id, None)
        spawn(session.close(), "mcp close")
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    # time

    def _schedule(self) -> None:
        if self._sweeper is None and self._sessions and not self._stopped:
            soon = min(self._limits.handshake, self._limits.idle)
            delay = min(max(soon / 4, 0.01), 5.0)
            self._sweeper = asyncio.get_running_loop().call_later(delay, self._sweep)

    def _sweep(self) -> None:
        """End what is past its time."""
        self._sweeper = None
        now = asyncio.get_running_loop().time()
        for session in list(self._sessions.values()):
            limit = self._limits.idle if session.established else min(self._limits.handshake, self._limits.idle)
            if session.idle and now - session.seen > limit:
                session.ended = True
                self._sessions.pop(session.id, None)
                spawn(session.close(), "mcp close")
        self._schedule()


_STATUS: Final = {BUSY: 429, INTERNAL_ERROR: 503}


class UnknownSession(Refused):
    """There is none of that id, or it is another's: told alike."""


def header(headers: Headers, name: str) -> str | None:
    """The first header of that name."""
    return next((value for key, value in headers if key == name), None)


def accepted(headers: Headers) -> tuple[bool, bool]:
    """Whether the client takes JSON, and server-sent events. One that says nothing takes both."""
    said = ",".join(value for key, value in headers if key == "accept")
    if not said.strip():
        return True, True
    kinds = {part.partition(";")[0].strip().lower() for part in said.split(",")}
    return (
        not kinds.isdisjoint({"*/*", "application/*", "application/json"}),
        not kinds.isdisjoint({"*/*", "text/*", "text/event-stream"}),
    )


async def answer(send: Send, status: int, refused: Refused) -> None:
    """An error, as a JSON-RPC message."""
    status = 404 if isinstance(refused, UnknownSession) else status
    body = encode(error_message(refused.id, refused.code, refused.message, refused.data))
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status in (429, 503):
        headers.append((b"retry-after", b"1"))
    start: Message = {"type": "http.response.start", "status": status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": body})


async def not_allowed(send: Send, allow: bytes) -> None:
    """The method is none of this resource's."""
    body = encode(error_message(None, INVALID_REQUEST, "Method Not Allowed"))
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"allow", allow),
    ]
    await send({"type": "http.response.start", "status": 405, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _accepted(send: Send) -> None:
    await send({"type": "http.response.start", "status": 202, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})
