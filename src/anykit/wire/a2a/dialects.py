"""What is asked of an agent, in each dialect that agents really speak.

1.0 JSONRPC, 1.0 HTTP+JSON     A2A 1.0
0.3 JSONRPC, 0.3 HTTP+JSON     A2A 0.3; the official server reads the latter as protobuf, with `content` for `parts`
toolnexus                      the Toolnexus A2A tools contract: methods of 1.0, bodies of 0.3, no version header
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast
from urllib.parse import quote

from anykit.capabilities import ContentPart, Json, JsonObject, StructuredPart, TextPart

from .cards import Binding, Card, Interface, Version
from .errors import Refused
from .fields import an_object

VERSION_HEADER = "a2a-version"

_VERSIONS: tuple[Version, ...] = ("1.0", "0.3", "toolnexus")
_BINDINGS: tuple[Binding, ...] = ("JSONRPC", "HTTP+JSON")

_METHODS_1_0 = {
    "send": "SendMessage",
    "stream": "SendStreamingMessage",
    "get": "GetTask",
    "cancel": "CancelTask",
    "subscribe": "SubscribeToTask",
    "extended": "GetExtendedAgentCard",
}
_METHODS_0_3 = {
    "send": "message/send",
    "stream": "message/stream",
    "get": "tasks/get",
    "cancel": "tasks/cancel",
    "subscribe": "tasks/resubscribe",
    "extended": "agent/getAuthenticatedExtendedCard",
}


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to an agent. `parts` are texts and structured values."""

    message_id: str
    parts: Sequence[ContentPart]
    context_id: str = ""
    task_id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class WireRequest:
    """One HTTP request, but for what proves who asks."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Way:
    """How one agent is asked: an interface of its card, and how to write there.

    `tagged`: 1.0 with the `kind` of 0.3 in its parts, for whoever knows the methods of 1.0 and not its bodies.
    `spelled`: 0.3 HTTP+JSON as its specification spells it, not as the official server reads it.
    """

    interface: Interface
    tagged: bool = False
    spelled: bool = False

    @property
    def dialect(self) -> str:
        """What the dialect is called."""
        version, binding = self.interface.version, self.interface.binding
        return version if version == "toolnexus" else f"{version} {binding}"

    @property
    def rpc(self) -> bool:
        """Whether answers come as JSON-RPC."""
        return self.interface.binding == "JSONRPC"

    def to_json(self) -> JsonObject:
        """What tells it from the card's other ways, for a later process (`recalled`)."""
        interface = self.interface
        return {
            "url": interface.url,
            "version": interface.version,
            "binding": interface.binding,
            "tagged": self.tagged,
            "spelled": self.spelled,
        }

    def settled_on(self, result: Json) -> Way:
        """The way to go on in, after the first answer: a task that is not wrapped is no answer of 1.0."""
        answer = an_object(result) or {}
        if self.tagged and "status" in answer and "task" not in answer:
            return Way(replace(self.interface, version="toolnexus"))
        return self

    @property
    def streams(self) -> bool:
        """Whether the dialect has streams at all."""
        return self.interface.version != "toolnexus"

    def send(self, message: Outgoing, id: str, *, stream: bool = False) -> WireRequest:
        """Ask for work. Without `stream` the agent is asked to answer at once, with a task that goes on."""
        params: JsonObject = {"message": self._message(message)}
        if not stream:
            params["configuration"] = (
                {"returnImmediately": True} if self.interface.version == "1.0" else {"blocking": False}
            )
        verb = "stream" if stream else "send"
        return self._request(verb, params, id, path=f"/message:{verb}", streams=stream)

    def get(self, task_id: str, id: str) -> WireRequest:
        """Ask how a task is."""
        return self._request("get", {"id": task_id}, id, path=_task_path(task_id), http="GET")

    def cancel(self, task_id: str, id: str) -> WireRequest:
        """Ask to end a task."""
        return self._request("cancel", {"id": task_id}, id, path=f"{_task_path(task_id)}:cancel")

    def subscribe(self, task_id: str, id: str, *, http: str = "GET") -> WireRequest:
        """Ask to be told of a task from now on. Over HTTP+JSON some want `POST`."""
        path = f"{_task_path(task_id)}:subscribe"
        return self._request("subscribe", {"id": task_id}, id, path=path, http=http, streams=True)

    def extended_card(self, id: str) -> WireRequest:
        """Ask for the card that only known callers see."""
        path = "/extendedAgentCard" if self.interface.version == "1.0" else "/card"
        return self._request("extended", {}, id, path=path, http="GET")

    def _request(
        self, verb: str, params: JsonObject, id: str, *, path: str, http: str = "POST", streams: bool = False
    ) -> WireRequest:
        headers = {"accept": "text/event-stream, application/json" if streams else "application/json"}
        if self.interface.version == "1.0":
            headers[VERSION_HEADER] = "1.0"
        tenant = self.interface.tenant
        if self.rpc:
            methods = _METHODS_0_3 if self.interface.version == "0.3" else _METHODS_1_0
            if tenant:
                params = {"tenant": tenant, **params}
            body: JsonObject = {"jsonrpc": "2.0", "id": id, "method": methods[verb]}
            if params or verb != "extended":
                body["params"] = params
            headers["content-type"] = "application/json"
            return WireRequest("POST", self.interface.url, headers, _encoded(body))
        url, mark, query = self.interface.url.partition("?")
        prefix = "/v1" if self.interface.version == "0.3" else ""
        if tenant and self.interface.version == "1.0":
            prefix = f"/{quote(tenant, safe='')}"
        url = f"{url.rstrip('/')}{prefix}{path}{mark}{query}"
        if http == "GET":
            return WireRequest("GET", url, headers)
        headers["content-type"] = "application/json"
        return WireRequest("POST", url, headers, _encoded(params if "message" in params else {}))

    def _message(self, message: Outgoing) -> JsonObject:
        new = self.interface.version == "1.0"
        proto = self.interface.version == "0.3" and not self.rpc and not self.spelled
        said: JsonObject = {"messageId": message.message_id, "role": "ROLE_USER" if new or proto else "user"}
        if (self.interface.version == "0.3" and not proto) or self.tagged:
            said["kind"] = "message"
        said["content" if proto else "parts"] = [self._part(part, proto=proto) for part in message.parts]
        if message.context_id:
            said["contextId"] = message.context_id
        if message.task_id:
            said["taskId"] = message.task_id
        if message.metadata:
            said["metadata"] = dict(message.metadata)
        return said

    def _part(self, part: ContentPart, *, proto: bool) -> JsonObject:
        if isinstance(part, TextPart):
            said: JsonObject = {"text": part.text}
            kind = "text"
        elif isinstance(part, StructuredPart):
            kind = "data"
            if self.interface.version == "1.0":
                said = {"data": part.value, "mediaType": "application/json"}
            else:
                value: Json = part.value
                data = cast(JsonObject, value) if isinstance(value, dict) else {"value": value}
                said = {"data": {"data": data} if proto else data}
        else:
            raise TypeError(f"a {part.kind} part cannot be sent to an agent")
        tagged = self.tagged or (self.interface.version != "1.0" and not proto)
        return {"kind": kind, **said} if tagged else said


def ways(card: Card) -> tuple[Way, ...]:
    """Every way that a card offers, the preferred first."""
    return tuple(Way(interface) for interface in card.interfaces)


def recalled(given: Json, card: Card) -> Way | None:
    """The way that an earlier process found to work, where the card still leads to the same place."""
    known = an_object(given) or {}
    interface = next((one for one in card.interfaces if one.url == known.get("url")), None)
    if interface is None:
        return None
    for version in _VERSIONS:
        for binding in _BINDINGS:
            if known.get("version") == version and known.get("binding") == binding:
                same = replace(interface, version=version, binding=binding)
                return Way(same, tagged=known.get("tagged") is True, spelled=known.get("spelled") is True)
    return None


def other_way(way: Way, refusal: Refused, card: Card) -> Way | None:
    """What to try once where a card was wrong about itself; None where the refusal says nothing of the kind.

    Only for refusals after which nothing can have been done: no such method, version or route, or unreadable parameters.
    """
    kind, version = refusal.kind, way.interface.version
    if kind == "invalid_params" or (kind == "invalid_request" and refusal.code is None):
        if way.dialect == "0.3 HTTP+JSON":
            return replace(way, spelled=not way.spelled)
        if way.dialect == "toolnexus":
            return _as(way, "1.0")
        return None
    if kind not in ("method_not_found", "version_not_supported", "no_route"):
        return None
    listed = [other for other in ways(card) if other.interface != way.interface]
    if kind == "no_route":
        elsewhere = next((other for other in listed if other.interface.url != way.interface.url), None)
        if elsewhere is not None:
            return elsewhere
        if way.rpc:
            return Way(replace(way.interface, binding="HTTP+JSON", version="0.3" if version == "0.3" else "1.0"))
        return Way(replace(way.interface, version="1.0" if version == "0.3" else "0.3"))
    same_place = next((other for other in listed if other.rpc == way.rpc and other.interface.version != version), None)
    if same_place is not None:
        return same_place
    if version == "toolnexus":
        return _as(way, "1.0" if kind == "version_not_supported" else "0.3")
    if version == "1.0":
        return Way(replace(way.interface, version="0.3"))
    return _as(way, "1.0")


def _as(way: Way, version: Any) -> Way:
    interface = replace(way.interface, version=version)
    return Way(interface, tagged=version == "1.0" and way.rpc)


def _task_path(task_id: str) -> str:
    return f"/tasks/{quote(task_id, safe='')}"


def _encoded(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
