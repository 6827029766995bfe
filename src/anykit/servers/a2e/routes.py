"""A2E over HTTP: `POST /session`, `POST /send`, `GET /stream`, `DELETE /session`, `GET /health`.

Replies come by the stream only, as server-sent events with ids. A reader that comes back names the last id it saw and
goes on behind it; a second reader takes the stream over. A session that is idle costs no task.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from typing import Final

from anykit.servers.identity import Headers, Message, Receive, Scope, Send, Ways
from anykit.wire.a2e import Oversized, new_id

from .connection import Connection
from .host import A2EHost, Limits

log = logging.getLogger("anykit.a2e")

ROUTES: Final = ("/session", "/send", "/stream", "/health")
ENDED_KEPT = 10_000
"""Ids of ended sessions that are told from unknown ones."""
CHUNK = 256 * 1024
"""Bytes of events that are written at once."""
REPLAYED = 512
"""Events that are kept for a reader that comes back, at most."""
CONGESTED = 0.25
"""Part of `Limits.undelivered` from which on nothing more is taken from the agent."""

TURN = 64
"""Messages of one body that are taken before others have their turn."""
BODY_TIMEOUT = 60.0
"""Seconds that a body may take to arrive."""

_JSON = (b"content-type", b"application/json")
_OK = b'{"ok":true}'
_OK_START: Message = {
    "type": "http.response.start",
    "status": 200,
    "headers": [_JSON, (b"content-length", str(len(_OK)).encode())],
}
_OK_BODY: Message = {"type": "http.response.body", "body": _OK}
_STREAM_START: Message = {
    "type": "http.response.start",
    "status": 200,
    "headers": [
        (b"content-type", b"text/event-stream"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
    ],
}


class HttpSession:
    """One session and what waits for its reader."""

    __slots__ = (
        "_buffer",
        "_cursor",
        "_kept",
        "_limits",
        "_next",
        "_waiter",
        "_waiting",
        "bucket",
        "connection",
        "finished",
        "id",
        "reader",
        "seen",
        "streams",
    )

    def __init__(self, session_id: str, limits: Limits, now: float) -> None:
        self.id = session_id
        self.connection: Connection
        self.reader = 0
        """Number of the stream that reads; a later one takes over."""
        self.streams = 0
        """Streams that are open."""
        self.seen = now
        """When the agent was last heard, in the loop's time."""
        self.finished = False
        self.bucket = (now, 0.0)
        """When messages were last counted, and how many count against the rate."""
        self._limits = limits
        self._buffer: dict[int, bytes] = {}
        self._next = 1
        self._cursor = 1
        self._waiting = 0
        self._kept = 0
        self._waiter: asyncio.Future[None] | None = None

    # what is to be read

    def put(self, lines: list[bytes]) -> None:
        """Lines for the reader."""
        for line in lines:
            self._buffer[self._next] = line
            self._next += 1
            self._waiting += len(line)
        self.wake()

    @property
    def undelivered(self) -> int:
        """Bytes that no reader has taken."""
        return self._waiting

    def open_reader(self, last_id: int | None) -> int:
        """Take the stream over; with `last_id` go on behind it, as far back as is kept. Gives the reader's number."""
        if last_id is not None and 0 <= last_id < self._next:
            for number in range(last_id + 1, self._cursor):
                line = self._buffer.get(number)
                if line is not None:
                    self._kept -= len(line)
                    self._waiting += len(line)
            self._cursor = min(self._cursor, last_id + 1)
            while self._cursor < self._next and self._cursor not in self._buffer:
                self._cursor += 1  # too old to be kept
        self.reader += 1
        self.wake()
        return self.reader

    def take(self, reader: int) -> bytes:
        """The next events as they are written; empty where there is nothing, or another reader."""
        if reader != self.reader or self._cursor == self._next:
            return b""
        parts: list[bytes] = []
        size = 0
        while self._cursor < self._next and size < CHUNK:
            line = self._buffer[self._cursor]
            parts.append(b"id: %d\ndata: %b\n\n" % (self._cursor, line))
            self._cursor += 1
            size += len(line)
        self._waiting -= size
        self._kept += size
        self._forget()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _forget(self) -> None:
        first = next(iter(self._buffer))
        while first < self._cursor and (self._kept > self._limits.replay or self._cursor - first > REPLAYED):
            self._kept -= len(self._buffer.pop(first))
            first += 1

    async def wait(self) -> None:
        """Until something happened."""
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def wake(self) -> None:
        """Something happened."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class _HttpCarrier:
    """See `Carrier`."""

    __slots__ = ("_app", "_session", "secure")

    def __init__(self, app: A2EApp, session: HttpSession, *, secure: bool) -> None:
        self._app = app
        self._session = session
        self.secure = secure

    def deliver(self, lines: list[bytes]) -> None:
        session = self._session
        session.put(lines)
        if session.undelivered > self._app.limits.undelivered:
            log.warning("session %s ends: its agent does not read", session.id[:8])
            self._app.drop(session)

    def congested(self) -> bool:
        return self._session.undelivered > self._app.limits.undelivered * CONGESTED

    def over(self, reason: str) -> None:
        self._app.finish(self._session)


class A2EApp:
    """The ASGI application. It answers by the last part of the path, so it can be mounted anywhere.

    Args:
        host: Whose sessions these are.
        ways: Judges whether a secret may travel on a connection.
    """

    def __init__(self, host: A2EHost, *, ways: Ways | None = None) -> None:
        self._host = host
        self._ways = ways or Ways()
        self.limits: Final = host.limits
        self._sessions: dict[str, HttpSession] = {}
        self._carriers: dict[str, _HttpCarrier] = {}
        self._pending: dict[str, HttpSession] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._stopped = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        route = path[path.rfind("/") :]
        method: str = scope["method"]
        if route == "/send":
            await (self._send(scope, receive, send) if method == "POST" else _wrong_method(send, b"POST"))
        elif route == "/stream":
            await (self._stream(scope, receive, send) if method == "GET" else _wrong_method(send, b"GET"))
        elif route == "/session":
            if method == "POST":
                await self._open(scope, send)
            elif method == "DELETE":
                await self._delete(scope, send)
            else:
                await _wrong_method(send, b"POST, DELETE")
        elif route == "/health":
            if method in ("GET", "HEAD"):
                await _answer(send, 200, b'{"status":"ok"}', head=method == "HEAD")
            else:
                await _wrong_method(send, b"GET, HEAD")
        else:
            await _answer(send, 404, b'{"detail":"Not found"}')

    @property
    def sessions(self) -> int:
        """Sessions that are open."""
        return len(self._sessions)

    # sessions

    async def _open(self, scope: Scope, send: Send) -> None:
        if self._stopped:
            await _answer(send, 503, b'{"detail":"The host is shutting down"}')
            return
        if len(self._sessions) >= self.limits.sessions:
            await _too_many(send, b"Too many sessions")
            return
        if len(self._pending) >= self.limits.pending:
            self._drop_late()
        if len(self._pending) >= self.limits.pending:
            await _too_many(send, b"Too many sessions without a handshake")
            return
        loop = asyncio.get_running_loop()
        session = HttpSession(new_id(), self.limits, loop.time())
        carrier = _HttpCarrier(self, session, secure=self._ways.secure(scope))
        session.connection = self._host.connection(carrier, session_id=session.id, rated=False)
        self._sessions[session.id] = self._pending[session.id] = session
        self._carriers[session.id] = carrier
        self._schedule()
        await _answer(send, 200, b'{"session_id":"%b"}' % session.id.encode())

    async def _delete(self, scope: Scope, send: Send) -> None:
        session = await self._find(_header(scope["headers"], b"x-session-id"), send)
        if session is not None:
            self.drop(session)
            await _answer(send, 200, _OK)

    async def _find(self, given: bytes | None, send: Send, *, finished: bool = False) -> HttpSession | None:
        """The session that a request names; None once the error is sent."""
        if not given:
            await _answer(send, 400, b'{"detail":"Missing X-Session-Id"}')
            return None
        session_id = given.decode("latin-1")
        session = self._sessions.get(session_id)
        if session is None:
            if session_id in self._ended:
                await _answer(send, 410, b'{"detail":"Session ended"}')
            else:
                await _answer(send, 404, b'{"detail":"Session not found"}')
            return None
        if session.finished and not finished:
            await _answer(send, 410, b'{"detail":"Session ended"}')
            return None
        return session

    def finish(self, session: HttpSession) -> None:
        """The session is over; what was said may still be read."""
        if session.finished:
            return
        session.finished = True
        session.seen = asyncio.get_running_loop().time()
        self._pending.pop(session.id, None)
        self._close(session)
        session.wake()
        if not session.undelivered:
            self._forget(session)

    def drop(self, session: HttpSession) -> None:
        """The session is over, and nothing more is read."""
        self.finish(session)
        session.reader += 1
        session.wake()
        self._forget(session)

    def _forget(self, session: HttpSession) -> None:
        if self._sessions.pop(session.id, None) is not None:
            del self._carriers[session.id]
            self._ended[session.id] = None
            if len(self._ended) > ENDED_KEPT:
                self._ended.popitem(last=False)

    def _close(self, session: HttpSession) -> None:
        task = asyncio.get_running_loop().create_task(session.connection.close(), name="a2e close")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def end(self, timeout: float = 5.0) -> None:
        """The host stops: answer what is open, end every stream and session. Bounded in time."""
        self._stopped = True
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for session in list(self._sessions.values()):
            session.connection.end("host")
            self.finish(session)
        deadline = asyncio.get_running_loop().time() + timeout
        while any(session.streams for session in self._sessions.values()):
            if asyncio.get_running_loop().time() >= deadline:
                break
            await asyncio.sleep(0.01)
        for session in list(self._sessions.values()):
            self.drop(session)
        if self._closing:
            await asyncio.wait(set(self._closing), timeout=timeout)

    def _schedule(self) -> None:
        if self._sweeper is None and self._sessions:
            soon = min(self.limits.handshake, self.limits.idle)
            delay = min(max(soon / 4, 0.01), 5.0)
            self._sweeper = asyncio.get_running_loop().call_later(delay, self._sweep)

    def _drop_late(self) -> None:
        """End what has not shaken hands in time."""
        now = asyncio.get_running_loop().time()
        for session in [one for one in self._pending.values() if now - one.seen > self.limits.handshake]:
            self.drop(session)

    def _sweep(self) -> None:
        """End what is past its time."""
        self._sweeper = None
        now = asyncio.get_running_loop().time()
        self._drop_late()
        idle = now - self.limits.idle
        over = now - self.limits.handshake
        for session in [
            one
            for one in self._sessions.values()
            if not one.streams
            and one.seen < (over if one.finished else idle)
            and (one.finished or not one.connection.busy)
        ]:
            self.drop(session)
        self._schedule()

    # messages

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = declared = None
        for key, value in scope["headers"]:
            if key == b"x-session-id":
                given = value
            elif key == b"content-length":
                declared = value
        session = await self._find(given, send)
        if session is None:
            return
        limit = self.limits.body
        if declared is not None and declared.isdigit() and int(declared) > limit:
            await _too_large(send, limit)
            return
        try:
            body = await _body(receive, limit)
        except TimeoutError:
            await _answer(send, 408, b'{"detail":"The body did not arrive in time"}')
            return
        if body is None:
            return
        if isinstance(body, Oversized):
            await _too_large(send, limit)
            return
        if session.finished:
            await _answer(send, 410, b'{"detail":"Session ended"}')
            return
        lines = _lines(body)
        if session.undelivered > self.limits.undelivered * CONGESTED:
            await _too_many(send, b"Too much waits to be read: open the stream")
            return
        if self.limits.rate is not None and not self._within_rate(session, len(lines), self.limits.rate):
            await _too_many(send, b"Too many messages")
            return
        carrier = self._carriers[session.id]
        carrier.secure = carrier.secure and self._ways.secure(scope)
        connection = session.connection
        for index, line in enumerate(lines, 1):
            connection.receive(line)
            if index % TURN == 0:
                await asyncio.sleep(0)
        if session.id in self._pending:
            if connection.wire.handshaken:
                del self._pending[session.id]
                session.seen = asyncio.get_running_loop().time()
        else:
            session.seen = asyncio.get_running_loop().time()
        await send(_OK_START)
        await send(_OK_BODY)

    def _within_rate(self, session: HttpSession, count: int, rate: float) -> bool:
        now = asyncio.get_running_loop().time()
        before, used = session.bucket
        used = max(0.0, used - (now - before) * rate)
        fits = used + count <= max(rate, 1.0)
        session.bucket = (now, used + count if fits else used)
        return fits

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = await self._find(_header(scope["headers"], b"x-session-id"), send, finished=True)
        if session is None:
            return
        last = _header(scope["headers"], b"last-event-id")
        reader = session.open_reader(int(last) if last is not None and last.isdigit() and len(last) < 19 else None)
        loop = asyncio.get_running_loop()
        session.streams += 1
        gone = loop.create_task(_until_gone(receive), name="a2e stream")
        gone.add_done_callback(lambda task: session.wake())
        beat = _Beat(session, self.limits.heartbeat)
        try:
            await send(_STREAM_START)
            while not gone.done():
                if chunk := session.take(reader):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                elif session.finished or session.reader != reader:
                    break
                elif beat.due:
                    beat.again()
                    await send({"type": "http.response.body", "body": b": keep-alive\n\n", "more_body": True})
                else:
                    await session.wait()
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()
            beat.stop()
            session.streams -= 1
            session.seen = loop.time()
            if session.finished and not session.undelivered:
                self._forget(session)


class _Beat:
    """Wakes a quiet stream's writer from time to time."""

    __slots__ = ("_every", "_session", "_timer", "due")

    def __init__(self, session: HttpSession, every: float) -> None:
        self._session = session
        self._every = every
        self.due = False
        self._timer = asyncio.get_running_loop().call_later(every, self._ring)

    def _ring(self) -> None:
        self.due = True
        self._session.wake()

    def again(self) -> None:
        self.due = False
        self._timer = asyncio.get_running_loop().call_later(self._every, self._ring)

    def stop(self) -> None:
        self._timer.cancel()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _body(receive: Receive, limit: int) -> bytes | Oversized | None:
    """The body; what is too large is not read further, None where the agent went away. Raises `TimeoutError`."""
    message = await receive()
    if message["type"] == "http.disconnect":
        return None
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        return body if len(body) <= limit else Oversized(limit, b"")
    parts = [body]
    size = len(body)
    async with asyncio.timeout(BODY_TIMEOUT):
        while size <= limit:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if not message.get("more_body", False):
                return b"".join(parts) if size <= limit else Oversized(limit, b"")
    return Oversized(limit, b"")


def _lines(body: bytes) -> list[bytes]:
    """The messages of a body, one a line. One that is spread over lines, as people write it, is one."""
    if b"\n" not in body:
        return [body]
    lines = [line.removesuffix(b"\r") for line in body.split(b"\n")]
    lines = [line for line in lines if line and not line.isspace()]
    return [body] if lines and _is_spread(lines[0].strip(), body) else lines


def _is_spread(first: bytes, body: bytes) -> bool:
    """Whether lines belong together: the first is no message by itself, while the body is one JSON value."""
    if first == b"{":
        return True
    if first.startswith(b"{") and first.endswith(b"}"):
        return False
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return False
    return True


def _header(headers: Headers, name: bytes) -> bytes | None:
    for key, value in headers:
        if key == name:
            return value
    return None


async def _answer(send: Send, status: int, body: bytes, *extra: tuple[bytes, bytes], head: bool = False) -> None:
    headers = [_JSON, (b"content-length", str(len(body)).encode()), *extra]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else body})


async def _wrong_method(send: Send, allowed: bytes) -> None:
    await _answer(send, 405, b'{"detail":"Method not allowed"}', (b"allow", allowed))


async def _too_many(send: Send, detail: bytes) -> None:
    await _answer(send, 429, b'{"detail":"%b"}' % detail, (b"retry-after", b"1"))


async def _too_large(send: Send, limit: int) -> None:
    await _answer(send, 413, b'{"detail":"The body is larger than %d bytes"}' % limit)
