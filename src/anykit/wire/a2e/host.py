"""One agent's connection as the host sees it: lines in, events out, lines to write. No socket, no clock.

    closed --handshake/req--> open --shutdown--> ending --last reply--> drained
      ^ refused: stays closed   ^ handshake/req again: renegotiated, the session is kept

`receive` answers by itself what needs no tool: handshakes, pings, refusals, repeats of answered messages. What is left for
the host comes out as `Request`, when it may start; each ends with one `reply` or `fail`. Checks run in this order: JSON, an
object, rate, handshake, version, session, repeated id, type, capability, direction, schema, shutdown, room.
"""

from __future__ import annotations

import hmac
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from pydantic_core import to_jsonable_python

from .capability_names import capability_alias, capability_name
from .codec import (
    DecodeError,
    EncodeError,
    build,
    check_version,
    encode,
    encode_fields,
    find_type,
    id_of,
    read_object,
)
from .framing import MAX_LINE, Oversized
from .json_values import head_member
from .messages.base import (
    A2ECapability,
    A2EError,
    A2EEvent,
    Capability,
    HandshakeRequest,
    HandshakeResponse,
    Pong,
    Shutdown,
)
from .messages.envelope import A2E_VERSION, A2EMessage, Message
from .messages.registry import EVENT_TYPES, MESSAGE_TYPES, SESSION_TYPES, WireType
from .messages.toolkits import ToolkitConfigureRequest
from .messages.tools import ToolCallResponse, ToolEvent, ToolResult

_BEFORE_HANDSHAKE: Final = frozenset({"ping", "shutdown"})
_MAX_ID = 1024
_MAX_NAME = 200
_MAX_ASKED = 256
"""Questions to the agent whose answers are waited for; of the oldest no answer is taken any more."""
_MAX_SECONDS = 365 * 24 * 3600
"""What a peer's time limit is cut to: its integers have any size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLimits:
    """What one session may use."""

    max_parallel: int = 64
    """Requests that run at once; the handshake tells the agent."""
    queue: int = 256
    """Requests that wait for a place."""
    open_bytes: int = 64 * 1024 * 1024
    """Bytes of the requests that run or wait."""
    max_line: int = MAX_LINE
    """Bytes of one line that we write; a longer reply becomes an error."""
    replay_ids: int = 1024
    """Answered message ids that are remembered."""
    replay_bytes: int = 256 * 1024
    """Bytes of their replies that are kept; the newest always is."""
    collected_events: int = 100
    """Events kept for the result of a call that does not stream."""
    collected_bytes: int = 64 * 1024
    rate: float | None = None
    """Messages a second; None does not limit."""
    burst: int = 100
    """Messages at once, where `rate` is set."""


@dataclass(frozen=True, slots=True)
class Handshaken:
    """The session is open, or negotiated anew (`renewed`)."""

    agent_id: str
    capabilities: tuple[str, ...]
    renewed: bool


@dataclass(frozen=True, slots=True)
class HandshakeRefused:
    """An agent was turned away; a session that was open before still is."""

    reason: str
    """`auth_failed`, `version_mismatch`, `no_caps` or `server_error`."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request that is to be started now. It ends with one `reply` or `fail`."""

    req_id: str
    message: Message
    capability: str
    kind: WireType

    @property
    def timeout(self) -> float | None:
        """Seconds that the agent grants, where it said so; a field's default is no word of the agent's."""
        if "timeout" not in self.message.model_fields_set:
            return None
        value: object = getattr(self.message, "timeout", None)
        return float(min(max(0, value), _MAX_SECONDS)) if isinstance(value, int | float) else None

    @property
    def streaming(self) -> bool:
        """Whether the agent wants the events while the request runs."""
        return bool(getattr(self.message, "streaming", True))


@dataclass(frozen=True, slots=True)
class ShutdownRequested:
    """The agent ends the session: what runs has `timeout` seconds; nothing new is taken."""

    timeout: float


@dataclass(frozen=True, slots=True)
class Drained:
    """After a shutdown: everything is answered, the connection can be closed."""


@dataclass(frozen=True, slots=True)
class PeerError:
    """The agent sent an `error`. It is never answered."""

    error: A2EError


@dataclass(frozen=True, slots=True)
class PeerReply:
    """The agent answered something that it was asked (`ask`)."""

    message: Message


HostEvent: TypeAlias = Handshaken | HandshakeRefused | Request | ShutdownRequested | Drained | PeerError | PeerReply


@dataclass(slots=True, eq=False)
class _Open:
    request: Request
    size: int
    lane: str | None
    """Requests of one lane run one after the other, in order of arrival."""
    started: bool = False
    seq: int = 0
    collected: list[ToolEvent] = field(default_factory=list[ToolEvent])
    collected_bytes: int = 0


class _Refused(Exception):
    def __init__(
        self, code: str, message: str, *, req_id: str, retryable: bool = False, capability: str = "", reason: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.req_id = req_id
        self.retryable = retryable
        self.capability = capability
        self.detail: dict[str, Any] = {"reason": reason} if reason else {}


class HostSession:
    """The host's half of one session.

    `capabilities` are what the host serves, in the order in which it lists them, each with the metadata that the handshake
    tells (`name`, `type`, `priority`, `exclusive`). `token` None or "" is an open host; `admit` instead says whom a token
    stands for (`principal`), None for a wrong one. `lenient_caps` opens a session for an
    agent of whose capabilities none is served. `types` are the message types that are understood; a plugin's own can be added.
    Times are Unix seconds.

    Raises:
        ValueError: a capability that the protocol does not have.
    """

    def __init__(
        self,
        *,
        session_id: str,
        capabilities: Mapping[str, Mapping[str, Any]],
        new_id: Callable[[], str],
        now: float,
        token: str | None = None,
        admit: Callable[[str], str | None] | None = None,
        limits: HostLimits | None = None,
        lenient_caps: bool = False,
        types: Mapping[str, WireType] = SESSION_TYPES,
    ) -> None:
        self.session_id: Final = session_id
        self.limits: Final = limits or HostLimits()
        self.agent_id = ""
        self.principal: str | None = None
        """Whom the handshake's token stands for, where somebody says so."""
        self._offered = {
            capability_name(name): cast("dict[str, Any]", to_jsonable_python(dict(metadata), fallback=str))
            for name, metadata in capabilities.items()
        }
        self._new_id = new_id
        self._token = (token or "").encode()
        self._whose = admit
        self._lenient = lenient_caps
        self._types = types
        self._began = now
        self._accepted: tuple[str, ...] | None = None
        self._ending = False
        self._ended = False
        self._out: list[bytes] = []
        self._open: dict[str, _Open] = {}
        self._running = 0
        self._open_bytes = 0
        self._waiting: deque[_Open] = deque()
        self._lanes: set[str] = set()
        self._pushes = 0
        self._asked: deque[str] = deque(maxlen=_MAX_ASKED)
        """Ids of what the agent was asked and has not answered."""
        self._answers: OrderedDict[str, bytes | None] = OrderedDict()
        self._kept: deque[str] = deque()
        self._kept_bytes = 0
        self._tokens = float(self.limits.burst)
        self._refilled = now

    @property
    def handshaken(self) -> bool:
        """Whether a handshake was accepted."""
        return self._accepted is not None

    @property
    def capabilities(self) -> tuple[str, ...]:
        """What was negotiated; empty before the handshake."""
        return self._accepted or ()

    @property
    def ending(self) -> bool:
        """Whether a shutdown was asked for, or the host ended the session."""
        return self._ending

    @property
    def running(self) -> int:
        """Requests that were handed out and are not answered yet."""
        return self._running

    @property
    def waiting(self) -> int:
        """Requests that wait for a place."""
        return len(self._waiting)

    def take(self) -> list[bytes]:
        """The lines to write, in order, without newlines. They are handed out once."""
        lines, self._out = self._out, []
        return lines

    # -- what the agent says ------------------------------------------------------------------------------------------

    def receive(self, line: bytes | Oversized, now: float) -> list[HostEvent]:
        """Take one line. Whatever it holds, the session lives; nothing is raised."""
        if isinstance(line, Oversized):
            self._send_error(
                head_member(line.head, "id") or "",
                "parse_error",
                f"a message of more than {line.limit} bytes",
                now,
                detail={"limit": line.limit},
            )
            return []
        if not line or line.isspace():
            return []
        try:
            fields = read_object(line)
            self._spend(fields, now)
            return self._take_in(fields, len(line), now)
        except DecodeError as error:
            self._send_error(error.req_id, error.code, error.message, now, detail=error.detail)
        except _Refused as refusal:
            self._send_error(
                refusal.req_id,
                refusal.code,
                refusal.message,
                now,
                detail=refusal.detail,
                retryable=refusal.retryable,
                capability_name=refusal.capability,
            )
        return []

    def _take_in(self, fields: dict[str, Any], size: int, now: float) -> list[HostEvent]:
        name: object = fields.get("type")
        if not isinstance(name, str):
            name = ""
        if name == "error":
            return self._peer_error(fields)
        if name == "handshake/req":
            return self._handshake(fields, now)
        if self._accepted is None and name not in _BEFORE_HANDSHAKE:
            raise _Refused("unauthorized", "a session begins with a handshake", req_id=id_of(fields))
        check_version(fields)
        given = fields.get("session_id")
        if isinstance(given, str) and given not in ("", self.session_id):
            raise _Refused("unauthorized", "session_id names another session", req_id=id_of(fields))
        req_id = self._req_id(fields)
        if self._is_repeated(req_id, now):
            return []
        kind = find_type(fields, types=self._types)
        if kind.capability is not None and kind.capability not in self.capabilities:
            raise _Refused(
                "capability_missing",
                f"capability {kind.capability!r} was not negotiated",
                req_id=id_of(fields),
                capability=kind.capability,
            )
        if kind.name == "pong" or (kind.sender == "agent" and kind.kind == "reply"):
            return self._peer_reply(kind, fields)
        if kind.sender != "agent":
            raise DecodeError("invalid_message", f"{kind.name} is not for a host", req_id=id_of(fields))
        if fields.get("id", "") == "":
            fields["id"] = req_id
        fields.setdefault("ts", now)
        message = build(kind, fields)
        if kind.name == "ping":
            uptime = max(0.0, now - self._began)
            pong = Pong(id=self._new_id(), ts=now, req_id=req_id, uptime_seconds=uptime)
            self._send_reply(req_id, encode(pong))
            return []
        if isinstance(message, Shutdown):
            return self._shutdown(message)
        return self._admit(Request(req_id, message, kind.capability or "", kind), size, now)

    def _req_id(self, fields: Mapping[str, Any]) -> str:
        given = fields.get("id")
        if isinstance(given, str) and given:
            if len(given) > _MAX_ID:
                detail = {"field": "id", "errors": [{"path": "/id", "message": f"at most {_MAX_ID} characters"}]}
                raise DecodeError("schema_violation", f"id: at most {_MAX_ID} characters", detail=detail)
            return given
        return self._new_id()  # where it is something else than a string, `build` refuses the message

    def _spend(self, fields: dict[str, Any], now: float) -> None:
        if self.limits.rate is None:
            return
        refill = max(0.0, now - self._refilled) * self.limits.rate
        self._tokens = min(float(self.limits.burst), self._tokens + refill)
        self._refilled = now
        if self._tokens < 1.0:
            raise _Refused(
                "runtime_error", "too many messages", req_id=id_of(fields), retryable=True, reason="rate_limited"
            )
        self._tokens -= 1.0

    def _peer_error(self, fields: dict[str, Any]) -> list[HostEvent]:
        try:
            message = build(MESSAGE_TYPES["error"], fields)
        except DecodeError:
            return []  # an error about an error would only travel in circles
        return [PeerError(message)] if isinstance(message, A2EError) else []

    def _peer_reply(self, kind: WireType, fields: dict[str, Any]) -> list[HostEvent]:
        if fields.get("req_id") not in self._asked:
            return []  # an answer to something that this host never asked
        try:
            message = build(kind, fields)
        except DecodeError:
            return []
        self._asked.remove(fields["req_id"])
        return [PeerReply(message)]

    def _handshake(self, fields: dict[str, Any], now: float) -> list[HostEvent]:
        req_id = id_of(fields) or self._new_id()
        try:
            check_version(fields)
        except DecodeError as error:
            return self._refuse_handshake(req_id, error.code, now)
        if fields.get("id", "") == "":
            fields["id"] = req_id
        fields.setdefault("ts", now)
        message = cast("HandshakeRequest", build(MESSAGE_TYPES["handshake/req"], fields))
        if self._token and not hmac.compare_digest(self._token, message.auth_token.encode()):
            return self._refuse_handshake(req_id, "auth_failed", now)
        principal = None
        if self._whose is not None:
            principal = self._whose(message.auth_token)
            # A session is one caller's: it cannot be handed on to another.
            if principal is None or (self._accepted is not None and principal != self.principal):
                return self._refuse_handshake(req_id, "auth_failed", now)
        if self._ending:
            return self._refuse_handshake(req_id, "server_error", now)
        wanted = {capability_alias(name) for name in message.agent_caps}
        accepted = tuple(name for name in self._offered if name in wanted)
        if message.agent_caps and not accepted and not self._lenient:
            return self._refuse_handshake(req_id, "no_caps", now)
        renewed = self._accepted is not None
        self._accepted = accepted
        self.principal = principal
        self.agent_id = message.agent_id[:_MAX_NAME]
        self._send(
            HandshakeResponse(
                id=self._new_id(),
                ts=now,
                req_id=req_id,
                session_id=self.session_id,
                accepted_caps=[
                    Capability(capability=A2ECapability(name), metadata=self._offered[name]) for name in accepted
                ],
                max_parallel=self.limits.max_parallel,
            )
        )
        return [Handshaken(self.agent_id, accepted, renewed)]

    def _refuse_handshake(self, req_id: str, reason: str, now: float) -> list[HostEvent]:
        self._send(
            HandshakeResponse(
                id=self._new_id(),
                ts=now,
                req_id=req_id,
                session_id=self.session_id if self.handshaken else "",
                max_parallel=self.limits.max_parallel,
                ok=False,
                reason=reason,
            )
        )
        return [HandshakeRefused(reason)]

    def _shutdown(self, message: Shutdown) -> list[HostEvent]:
        if self._ending:
            return []
        self._ending = True
        events: list[HostEvent] = [ShutdownRequested(float(min(max(0, message.timeout), _MAX_SECONDS)))]
        return events if self._open else [*events, Drained()]

    def _admit(self, request: Request, size: int, now: float) -> list[HostEvent]:
        if self._ending:
            raise _Refused(
                "runtime_error", "the session is ending", req_id=request.req_id, retryable=True, reason="shutting_down"
            )
        lane = None
        if isinstance(request.message, ToolkitConfigureRequest):
            lane = request.message.toolkit_name
        opened = _Open(request, size, lane)
        must_wait = self._running >= self.limits.max_parallel or lane in self._lanes
        if (must_wait and len(self._waiting) >= self.limits.queue) or (
            self._open and self._open_bytes + size > self.limits.open_bytes
        ):
            raise _Refused(
                "runtime_error",
                f"too much at once: {self._running} requests run, {len(self._waiting)} wait",
                req_id=request.req_id,
                retryable=True,
                reason="busy",
            )
        self._open[request.req_id] = opened
        self._open_bytes += size
        if must_wait:
            self._waiting.append(opened)
            return []
        return [self._start(opened)]

    def _start(self, opened: _Open) -> Request:
        opened.started = True
        self._running += 1
        if opened.lane is not None:
            self._lanes.add(opened.lane)
        return opened.request

    # -- what the host says -------------------------------------------------------------------------------------------

    def reply(self, req_id: str, message: Message, now: float) -> list[HostEvent]:
        """End a request. Returns the requests that may start now.

        `req_id` is filled in; so are `id` and `ts` where whoever made the message left them to their defaults. A message that
        cannot be sent becomes a `runtime_error` that says why. A second reply, or one to an unknown request, is dropped.
        """
        opened = self._close(req_id)
        if opened is None:
            return []
        if opened.collected and isinstance(message, ToolCallResponse) and not message.data.events:
            message.data.events = opened.collected
        self._stamp(message, req_id, now)
        try:
            line = self._sendable(message)
        except EncodeError as error:
            line = self._error_line(req_id, "runtime_error", f"the reply cannot be sent: {error}", now)
        self._send_reply(req_id, line)
        return self._go_on()

    def reply_success(
        self, req_id: str, *, tool_name: str, data: Any, summary: str, duration_ms: int, now: float
    ) -> list[HostEvent]:
        """`reply` with a `tool/call/resp` that succeeded, without making the message: what nearly every call ends with."""
        opened = self._open.get(req_id)
        if opened is None or opened.collected:
            result = ToolResult(success=True, tool_name=tool_name, data=data, summary=summary, duration_ms=duration_ms)
            return self.reply(req_id, ToolCallResponse(data=result, created_at=now), now)
        self._close(req_id)
        fields: dict[str, Any] = {
            "type": "tool/call/resp",
            "id": self._new_id(),
            "version": A2E_VERSION,
            "ts": now,
            "req_id": req_id,
            "data": {
                "success": True,
                "tool_name": tool_name,
                "data": data,
                "summary": summary,
                "truncated": False,
                "exit_code": None,
                "error": None,
                "error_code": None,
                "duration_ms": duration_ms,
                "events": [],
            },
            "created_at": now,
        }
        try:
            line = encode_fields(fields)
            if len(line) > self.limits.max_line:
                raise EncodeError(f"{len(line)} bytes, more than the {self.limits.max_line} of one message")
        except EncodeError as error:
            line = self._error_line(req_id, "runtime_error", f"the reply cannot be sent: {error}", now)
        self._send_reply(req_id, line)
        return self._go_on()

    def fail(
        self,
        req_id: str,
        code: str,
        message: str,
        now: float,
        *,
        detail: Mapping[str, Any] | None = None,
        retryable: bool = False,
        capability_name: str = "",
    ) -> list[HostEvent]:
        """End a request with an `error`. Returns the requests that may start now."""
        if self._close(req_id) is None:
            return []
        line = self._error_line(
            req_id, code, message, now, detail=detail, retryable=retryable, capability_name=capability_name
        )
        self._send_reply(req_id, line)
        return self._go_on()

    def event(self, req_id: str, kind: str, data: Mapping[str, Any], now: float) -> bool:
        """Tell of a running request, under the event type of its capability. Returns whether it was sent or kept.

        Nothing is said after the reply. A call that does not stream keeps its events for its result.
        """
        opened = self._open.get(req_id)
        if opened is None or not opened.started:
            return False
        model = self._event_model(opened.request.capability)
        return self.emit(req_id, model(id=self._new_id(), ts=now, kind=kind, req_id=req_id, data=dict(data)), now)

    def emit(self, req_id: str, message: Message, now: float) -> bool:
        """Send an event message that someone else made; `req_id` and `seq` are filled in. As `event` otherwise."""
        opened = self._open.get(req_id)
        if opened is None or not opened.started:
            return False
        self._stamp(message, req_id, now)
        if isinstance(message, A2EEvent):
            message.seq = opened.seq
        try:
            line = self._sendable(message)
        except EncodeError:
            return False
        if opened.request.streaming:
            self._out.append(line)
        elif (
            isinstance(message, ToolEvent)
            and len(opened.collected) < self.limits.collected_events
            and opened.collected_bytes + len(line) <= self.limits.collected_bytes
        ):
            opened.collected.append(message)
            opened.collected_bytes += len(line)
        else:
            return False
        opened.seq += 1
        return True

    def push(self, kind: str, data: Mapping[str, Any], now: float) -> bool:
        """Tell something that no request asked for (`invoke/event`, `req_id` ""). Returns whether it was sent."""
        if not self.handshaken or self._ended:
            return False
        return self.push_message(A2EEvent(id=self._new_id(), ts=now, kind=kind, data=dict(data)), now)

    def push_message(self, message: Message, now: float) -> bool:
        """Send an event message that someone else made and that belongs to no request."""
        if not self.handshaken or self._ended:
            return False
        self._stamp(message, "", now)
        if isinstance(message, A2EEvent):
            message.seq = self._pushes
        try:
            line = self._sendable(message)
        except EncodeError:
            return False
        self._pushes += 1
        self._out.append(line)
        return True

    def ask(self, message: A2EMessage, now: float) -> str:
        """Ask the agent something; gives the id that its answer names. It comes out of `receive` as a `PeerReply`.

        Raises:
            EncodeError: it cannot be sent.
            ValueError: nobody can be asked: there was no handshake, or the session has ended.
        """
        if not self.handshaken or self._ended:
            raise ValueError("the session is not open")
        message.id = self._new_id()
        message.ts = now
        self._out.append(self._sendable(message))
        self._asked.append(message.id)
        return message.id

    def end(self, now: float, message: str = "the session has ended") -> None:
        """Answer everything that is still open with an error and take nothing more. Retryable is what never started."""
        self._ending = True
        for req_id, opened in list(self._open.items()):
            self._send_reply(
                req_id,
                self._error_line(
                    req_id,
                    "runtime_error",
                    message,
                    now,
                    detail={"reason": "shutting_down"},
                    retryable=not opened.started,
                ),
            )
        self._open.clear()
        self._waiting.clear()
        self._lanes.clear()
        self._running = self._open_bytes = 0
        self._ended = True

    def _close(self, req_id: str) -> _Open | None:
        opened = self._open.pop(req_id, None)
        if opened is None:
            return None
        self._open_bytes -= opened.size
        if opened.started:
            self._running -= 1
            if opened.lane is not None:
                self._lanes.discard(opened.lane)
        else:
            self._waiting.remove(opened)
        return opened

    def _go_on(self) -> list[HostEvent]:
        events: list[HostEvent] = []
        if self._waiting:
            left: deque[_Open] = deque()
            for opened in self._waiting:
                if self._running < self.limits.max_parallel and opened.lane not in self._lanes:
                    events.append(self._start(opened))
                else:
                    left.append(opened)
            self._waiting = left
        if self._ending and not self._open:
            events.append(Drained())
        return events

    # -- lines --------------------------------------------------------------------------------------------------------

    def _stamp(self, message: Message, req_id: str, now: float) -> None:
        if isinstance(message, A2EMessage):
            said = message.model_fields_set
            if "id" not in said:
                message.id = self._new_id()
            if "ts" not in said:
                message.ts = now
        if "req_id" in type(message).model_fields:
            cast("A2EError", message).req_id = req_id

    def _sendable(self, message: Message) -> bytes:
        line = encode(message)
        if len(line) > self.limits.max_line:
            raise EncodeError(f"{len(line)} bytes, more than the {self.limits.max_line} of one message")
        return line

    def _send(self, message: Message) -> None:
        self._out.append(encode(message))

    def _send_reply(self, req_id: str, line: bytes) -> None:
        self._out.append(line)
        self._remember(req_id, line)

    def _send_error(
        self,
        req_id: str,
        code: str,
        message: str,
        now: float,
        *,
        detail: Mapping[str, Any] | None = None,
        retryable: bool = False,
        capability_name: str = "",
    ) -> None:
        self._out.append(
            self._error_line(
                req_id, code, message, now, detail=detail, retryable=retryable, capability_name=capability_name
            )
        )

    def _error_line(
        self,
        req_id: str,
        code: str,
        message: str,
        now: float,
        *,
        detail: Mapping[str, Any] | None = None,
        retryable: bool = False,
        capability_name: str = "",
    ) -> bytes:
        error = A2EError(
            id=self._new_id(),
            ts=now,
            req_id=req_id,
            code=code,
            message=message,
            detail=dict(detail or {}),
            retryable=retryable,
            capability_name=capability_name,
        )
        try:
            return self._sendable(error)
        except EncodeError:
            # An exception's text may hold anything; an answer there must be.
            error.message = message[:1000].encode("utf-8", "replace").decode()
            error.detail = {}
            return encode(error)

    def _event_model(self, capability: str) -> type[A2EEvent]:
        model = self._types[EVENT_TYPES.get(capability, "invoke/event")].model
        return model if issubclass(model, A2EEvent) else A2EEvent

    # -- repeated messages --------------------------------------------------------------------------------------------

    def _is_repeated(self, req_id: str, now: float) -> bool:
        """Whether the message was taken before: it is answered again with the same line, or is still running."""
        if req_id in self._open:
            return True
        if req_id not in self._answers:
            return False
        line = self._answers[req_id]
        self._out.append(
            line
            if line is not None
            else self._error_line(
                req_id,
                "runtime_error",
                "this message was answered before, and its reply is no longer kept",
                now,
                detail={"reason": "duplicate"},
            )
        )
        return True

    def _remember(self, req_id: str, line: bytes) -> None:
        self._answers[req_id] = line
        self._kept.append(req_id)
        self._kept_bytes += len(line)
        while len(self._kept) > 1 and self._kept_bytes > self.limits.replay_bytes:
            self._forget_line(self._kept.popleft())
        while len(self._answers) > self.limits.replay_ids:
            _, kept = self._answers.popitem(last=False)
            if kept is not None:
                self._kept_bytes -= len(kept)
                self._kept.popleft()  # both are in order of arrival

    def _forget_line(self, req_id: str) -> None:
        line = self._answers.get(req_id)
        if line is not None:
            self._kept_bytes -= len(line)
            self._answers[req_id] = None
