"""One host's connection as the agent sees it: requests out, lines in, events out. No socket, no clock.

It is patient with hosts: a capability told twice is one, codes may be in upper case, lines that are no messages are noise to be
counted and skipped. A reply that cannot be read fails its request at once, instead of leaving it to its deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from pydantic import ValidationError

from .capability_names import CAPABILITIES, capability_alias
from .codec import DecodeError, build, check_version, encode, find_type
from .codes import normal_code
from .framing import Oversized
from .json_values import JsonError, head_member, read_json
from .messages.answers import AnswerRequest
from .messages.base import A2EError, A2EEvent, HandshakeRequest, HandshakeResponse, Ping, Shutdown
from .messages.envelope import A2EMessage, Message, WireModel
from .messages.registry import SESSION_TYPES, WireType
from .messages.toolkits import ToolkitConfigureRequest, ToolkitDefinition, ToolkitListRequest
from .messages.tools import ToolCallRequest, ToolDefinition, ToolListRequest

_NOISE_PREFIX = b"line: {"
_READ_IN_ANY_VERSION = frozenset({"handshake/resp", "error"})
"""They say why a host of another version turns us away."""
_LISTS: Final[Mapping[str, tuple[str, type[WireModel]]]] = {
    "tool/list/resp": ("tools", ToolDefinition),
    "toolkit/list/resp": ("toolkits", ToolkitDefinition),
}


@dataclass(frozen=True, slots=True)
class HandshakeResult:
    """How the handshake ended. `capabilities` holds what is usable, with what the host says of it."""

    req_id: str
    ok: bool
    reason: str
    session_id: str
    capabilities: Mapping[str, Mapping[str, Any]]
    max_parallel: int


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a request; an `A2EError` (its code in our spelling) is one too."""

    req_id: str
    message: Message


@dataclass(frozen=True, slots=True)
class EventFor:
    """An event of a request that is not answered yet."""

    req_id: str
    event: A2EEvent


@dataclass(frozen=True, slots=True)
class Push:
    """Something that no request asked for: `invoke/event` with `req_id` "", or a push type of a capability."""

    message: Message


@dataclass(frozen=True, slots=True)
class HostRequest:
    """The host asks the agent (`mcp/sample/req`, `mcp/root/list/req`)."""

    message: Message


@dataclass(frozen=True, slots=True)
class ProtocolError:
    """What came cannot be read, or is an error about no request of ours.

    With a `req_id`, that request has failed with it; otherwise only this line is lost.
    """

    req_id: str
    code: str
    message: str


AgentEvent: TypeAlias = HandshakeResult | Reply | EventFor | Push | HostRequest | ProtocolError


class AgentSession:
    """The agent's half of one session. `now` is Unix seconds everywhere."""

    def __init__(
        self,
        *,
        new_id: Callable[[], str],
        agent_id: str = "",
        capabilities: Sequence[str] = ("tools", "toolkits"),
        token: str = "",
        types: Mapping[str, WireType] = SESSION_TYPES,
    ) -> None:
        self._new_id = new_id
        self._agent_id = agent_id
        self._wanted = [capability_alias(name) for name in capabilities]
        self._token = token
        self._types = types
        self._out: list[bytes] = []
        self._pending: dict[str, str] = {}
        self._result: HandshakeResult | None = None
        self.heard_at: float | None = None
        """When the last line came."""
        self.noise = 0
        """Lines that were no messages."""
        self.strays = 0
        """Replies and events of requests that are not, or no longer, ours."""

    @property
    def handshake_result(self) -> HandshakeResult | None:
        """The last accepted handshake."""
        return self._result

    @property
    def session_id(self) -> str:
        """The session that the host opened; "" before the handshake."""
        return self._result.session_id if self._result else ""

    @property
    def capabilities(self) -> Mapping[str, Mapping[str, Any]]:
        """What the host serves in this session."""
        return self._result.capabilities if self._result else {}

    @property
    def pending(self) -> Set[str]:
        """The ids of the requests that are not answered."""
        return self._pending.keys()

    def take(self) -> list[bytes]:
        """The lines to write, in order, without newlines. They are handed out once."""
        lines, self._out = self._out, []
        return lines

    # -- what the agent says ------------------------------------------------------------------------------------------

    def handshake(self, now: float) -> str:
        """Ask for the session (again). Returns the request's id; so do the other requests."""
        request = HandshakeRequest(
            id=self._new_id(), ts=now, agent_id=self._agent_id, agent_caps=self._wanted, auth_token=self._token
        )
        return self.request(request, now)

    def ping(self, now: float) -> str:
        """Ask whether the host lives."""
        return self.request(Ping(id=self._new_id(), ts=now), now)

    def shutdown(self, now: float, *, timeout: int = 10) -> None:
        """End the session; the host has `timeout` seconds to finish what runs. There is no reply."""
        self._out.append(encode(Shutdown(id=self._new_id(), ts=now, timeout=timeout)))

    def list_tools(
        self,
        now: float,
        *,
        query: str = "",
        tags: Sequence[str] = (),
        kind: str = "",
        include_deferred: bool = False,
    ) -> str:
        """Ask for the tools; `tags` must all be carried."""
        request = ToolListRequest(
            id=self._new_id(),
            ts=now,
            filter_kind=kind,
            filter_tags=list(tags),
            query=query,
            include_deferred=include_deferred,
        )
        return self.request(request, now)

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        now: float,
        *,
        timeout: int | None = None,
        streaming: bool = True,
        correlation_id: str = "",
    ) -> str:
        """Call a tool. `timeout` (seconds) is a word to the host: None leaves the key out and the deadline to others.

        Raises:
            EncodeError: the arguments cannot be sent.
        """
        request = ToolCallRequest(
            id=self._new_id(),
            ts=now,
            session_id=self.session_id,
            tool_name=name,
            arguments=dict(arguments),
            correlation_id=correlation_id,
            streaming=streaming,
            timeout=timeout if timeout is not None else 30,
        )
        return self.request(request, now, exclude={"timeout"} if timeout is None else None)

    def answer_suspension(self, suspension_id: str, now: float, *, ok: bool = True, data: Any = None) -> str:
        """Answer a question that suspended a call; `ok` False refuses.

        Raises:
            EncodeError: the data cannot be sent.
        """
        request = AnswerRequest(
            id=self._new_id(), ts=now, session_id=self.session_id, suspension_id=suspension_id, ok=ok, data=data
        )
        return self.request(request, now)

    def list_toolkits(self, now: float, *, tags: Sequence[str] = (), kind: str = "") -> str:
        """Ask for the toolkits; `tags` must all be carried, `kind` is the category."""
        request = ToolkitListRequest(id=self._new_id(), ts=now, filter_kind=kind, filter_tags=list(tags))
        return self.request(request, now)

    def configure_toolkit(self, name: str, config: Mapping[str, Any], now: float) -> str:
        """Configure a toolkit.

        Raises:
            EncodeError: the configuration cannot be sent.
        """
        request = ToolkitConfigureRequest(
            id=self._new_id(), ts=now, session_id=self.session_id, toolkit_name=name, config=dict(config)
        )
        return self.request(request, now)

    def request(self, message: Message, now: float, *, exclude: Set[str] | None = None) -> str:
        """Send any request. `exclude` names fields whose keys are left out.

        Raises:
            EncodeError: it cannot be sent; nothing was.
        """
        req_id = self._stamp(message, now)
        line = encode(message, exclude=exclude)
        self._pending[req_id] = message.type
        self._out.append(line)
        return req_id

    def answer(self, message: Message, now: float) -> None:
        """Send the reply to a `HostRequest`.

        Raises:
            EncodeError: it cannot be sent; nothing was.
        """
        self._stamp(message, now)
        self._out.append(encode(message))

    def forget(self, req_id: str) -> None:
        """Nobody waits for this request any more; what still comes for it is a stray."""
        self._pending.pop(req_id, None)

    def _stamp(self, message: Message, now: float) -> str:
        if not isinstance(message, A2EMessage):
            return self._new_id()
        if "id" not in message.model_fields_set:
            message.id = self._new_id()
        if "ts" not in message.model_fields_set:
            message.ts = now
        return message.id

    # -- what the host says -------------------------------------------------------------------------------------------

    def receive(self, line: bytes | Oversized, now: float) -> list[AgentEvent]:
        """Take one line. Whatever it holds, the session lives; nothing is raised."""
        self.heard_at = now
        if isinstance(line, Oversized):
            text = f"a message of more than {line.limit} bytes"
            return self._unreadable(head_member(line.head, "req_id"), "parse_error", text)
        if line.startswith(_NOISE_PREFIX):  # how the reference's stdio host prints its replies
            line = line[len(_NOISE_PREFIX) - 1 :]
        if not line.lstrip(b" \t\r\n\xef\xbb\xbf").startswith(b"{"):
            self.noise += bool(line.strip())
            return []
        try:
            fields: Any = read_json(line)
        except JsonError as error:
            if error.value is None:  # a banner that begins like an object, or a message that was cut short
                self.noise += 1
                return self._unreadable(head_member(line, "req_id"), "parse_error", str(error))
            return self._unreadable(_text(error.value, "req_id"), "parse_error", str(error))
        if not isinstance(fields, dict) or "type" not in fields:
            self.noise += 1
            return []
        return self._take_in(cast("dict[str, Any]", fields), now)

    def _take_in(self, fields: dict[str, Any], now: float) -> list[AgentEvent]:
        fields.setdefault("ts", now)
        if "id" not in fields:
            fields["id"] = self._new_id()
        lost: list[AgentEvent] = []
        try:
            kind = find_type(fields, types=self._types)
            if kind.name not in _READ_IN_ANY_VERSION:
                check_version(fields)
            if kind.name == "handshake/resp":
                _normalise_capabilities(fields)
            try:
                message = build(kind, fields)
            except DecodeError:
                _complete(kind, fields)
                lost = _drop_bad_entries(kind, fields)
                message = build(kind, fields)
        except DecodeError as error:
            return self._unreadable(_text(fields, "req_id"), error.code, error.message)
        return [*lost, *self._sort(kind, message)]

    def _sort(self, kind: WireType, message: Message) -> list[AgentEvent]:
        if isinstance(message, A2EError):
            return self._error(message)
        if kind.kind == "event":
            return self._event(message)
        if kind.kind == "request":
            if kind.sender == "host":
                return [HostRequest(message)]
            self.strays += 1
            return []
        req_id = self._match(kind, message)
        if req_id is None or self._pending.pop(req_id, None) is None:
            self.strays += 1
            return []
        if isinstance(message, HandshakeResponse):
            return [self._handshaken(req_id, message)]
        return [Reply(req_id, message)]

    def _match(self, kind: WireType, message: Message) -> str | None:
        """Which request a reply answers: the one it names, else the only one of its kind that is open."""
        named: object = getattr(message, "req_id", "")
        if isinstance(named, str) and named:
            return named
        stem = _stem(kind.name)
        open_ones = [req_id for req_id, name in self._pending.items() if _stem(name) == stem]
        return open_ones[0] if len(open_ones) == 1 else None

    def _handshaken(self, req_id: str, message: HandshakeResponse) -> HandshakeResult:
        ok, reason = message.ok, message.reason
        if ok and message.version.partition(".")[0] != "1":
            ok, reason = False, "version_mismatch"
        result = HandshakeResult(
            req_id=req_id,
            ok=ok,
            reason=reason,
            session_id=message.session_id,
            capabilities={each.capability.value: each.metadata for each in message.accepted_caps if each.enabled},
            max_parallel=message.max_parallel,
        )
        if ok:
            self._result = result
        return result

    def _error(self, error: A2EError) -> list[AgentEvent]:
        error.code = normal_code(error.code, error.message)
        if self._pending.pop(error.req_id, None) is not None:
            return [Reply(error.req_id, error)]
        if error.req_id:
            self.strays += 1
            return []
        return [ProtocolError("", error.code, error.message)]

    def _event(self, message: Message) -> list[AgentEvent]:
        if not isinstance(message, A2EEvent) or not message.req_id:
            return [Push(message)]
        if message.req_id in self._pending:
            return [EventFor(message.req_id, message)]
        self.strays += 1
        return []

    def _unreadable(self, req_id: str | None, code: str, message: str) -> list[AgentEvent]:
        if req_id is not None and self._pending.pop(req_id, None) is not None:
            return [ProtocolError(req_id, code, message)]
        return [ProtocolError("", code, message)]


def _text(fields: Any, name: str) -> str | None:
    if not isinstance(fields, dict):
        return None
    value = cast("dict[str, Any]", fields).get(name)
    return value if isinstance(value, str) else None


def _normalise_capabilities(fields: dict[str, Any]) -> None:
    """One entry a capability, the first that is enabled; names by their aliases; names that nobody knows are dropped."""
    entries = fields.get("accepted_caps")
    if not isinstance(entries, list):
        return
    merged: dict[str, dict[str, Any]] = {}
    for entry in cast("list[Any]", entries):
        if isinstance(entry, str):
            entry = {"capability": entry}
        if not isinstance(entry, dict):
            continue
        found = dict(cast("dict[str, Any]", entry))
        name = capability_alias(str(found.get("capability")))
        if name not in CAPABILITIES:
            continue
        enabled = found.get("enabled", True) is not False
        if name not in merged or (enabled and not merged[name]["enabled"]):
            metadata: object = found.get("metadata")
            merged[name] = {
                "capability": name,
                "enabled": enabled,
                "metadata": metadata if isinstance(metadata, dict) else {},
            }
    fields["accepted_caps"] = list(merged.values())


def _complete(kind: WireType, fields: dict[str, Any]) -> None:
    """What a host left out although it must not, and what can be done without."""
    if kind.name == "tool/call/resp" and isinstance(data := fields.get("data"), dict):
        fields["data"] = {"tool_name": "", "duration_ms": 0, **cast("dict[str, Any]", data)}
    elif kind.name == "tool/list/resp" and isinstance(entries := fields.get("tools"), list):
        fields["tools"] = [
            {"description": "", **cast("dict[str, Any]", entry)} if isinstance(entry, dict) else entry
            for entry in cast("list[Any]", entries)
        ]


def _drop_bad_entries(kind: WireType, fields: dict[str, Any]) -> list[AgentEvent]:
    """One tool or toolkit that cannot be read is lost alone."""
    if kind.name not in _LISTS:
        return []
    member, model = _LISTS[kind.name]
    entries = fields.get(member)
    if not isinstance(entries, list):
        return []
    good: list[Any] = []
    lost: list[AgentEvent] = []
    for index, entry in enumerate(cast("list[Any]", entries)):
        try:
            good.append(model.model_validate(entry))
        except ValidationError as error:
            text = f"{member}/{index} was left out: {error.errors(include_input=False)[0]['msg']}"
            lost.append(ProtocolError("", "schema_violation", text))
    fields[member] = good
    return lost


def _stem(name: str) -> str:
    """What a request type and its reply type share."""
    if name == "pong":
        return "ping"
    for ending in ("/req", "/resp", "_REQ", "_RESP"):
        if name.endswith(ending):
            return name.removesuffix(ending)
    return name
