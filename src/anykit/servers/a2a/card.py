"""The agent card: what is served, for everyone to read, without the SDK. 1.0 with the fields of 0.3 beside them.

Protocol versions share one document (A2A 1.0, section 8; 0.3.0, section 5.5): a reader of one ignores the other's fields.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, cast

from anykit.capabilities import Json, JsonObject
from anykit.servers.identity import Receive, Scope, Send, Ways, headers_named
from anykit.tools import Tool, ToolSpec, to_json

CARD_PATHS: Final = ("/.well-known/agent-card.json", "/.well-known/agent.json")
"""The second is where readers before 0.3 look."""
CALLS: Final = "urn:anykit:a2a:calls:1"
"""The extension that tells the skills' schemas and how a call is written."""
INPUT_MODES: Final = ("text/plain", "application/json")
OUTPUT_MODES: Final = ("text/plain", "application/json", "application/octet-stream")
KEPT = 8
"""Cards that are kept, one for each name under which the server is reached."""
_HOPS = 8


@dataclass(frozen=True, slots=True)
class About:
    """Who the agent says that it is."""

    name: str = "anykit"
    description: str = "Tools, each of them a skill; a call is one message. No language model stands in between."
    version: str = ""
    """By default the installed version of this package."""
    organization: str = ""
    url: str = ""
    """The organisation's."""
    documentation: str = ""
    icon: str = ""


def agent_card(tools: Sequence[Tool], base: str, *, about: About, secured: bool) -> JsonObject:
    """The card.

    Args:
        tools: What is exposed, in order.
        base: The URL that the paths are below, without a slash at its end.
        about: Who the agent is.
        secured: Whether a bearer token is needed.
    """
    endpoint = f"{base}/a2a"
    card: JsonObject = {
        "name": about.name,
        "description": about.description or about.name,
        "version": about.version or _installed(),
        "supportedInterfaces": [
            {"url": endpoint, "protocolBinding": binding, "protocolVersion": spoken}
            for spoken in ("1.0", "0.3")
            for binding in ("JSONRPC", "HTTP+JSON")
        ],
        "protocolVersion": "0.3.0",
        "url": endpoint,
        "preferredTransport": "JSONRPC",
        "additionalInterfaces": [
            {"url": endpoint, "transport": "JSONRPC"},
            {"url": endpoint, "transport": "HTTP+JSON"},
        ],
        "capabilities": {
            "streaming": True,
            "pushNotifications": True,
            "extendedAgentCard": False,
            "extensions": [
                {
                    "uri": CALLS,
                    "description": 'A call is a data part {"tool": name, "arguments": {...}}, or a data part of '
                    "arguments under metadata.skillId. The schemas of the arguments are in params.skills.",
                    "required": False,
                    "params": {"skills": {tool.name: _schemas(tool) for tool in tools}},
                }
            ],
        },
        "defaultInputModes": list(INPUT_MODES),
        "defaultOutputModes": list(OUTPUT_MODES),
        "skills": [_skill(tool) for tool in tools],
    }
    if about.organization:
        card["provider"] = {"organization": about.organization, "url": about.url or base}
    if about.documentation:
        card["documentationUrl"] = about.documentation
    if about.icon:
        card["iconUrl"] = about.icon
    if secured:
        # Both spellings in one object: 1.0 reads the member, 0.3 the `type`.
        card["securitySchemes"] = {
            "bearer": {"httpAuthSecurityScheme": {"scheme": "bearer"}, "type": "http", "scheme": "bearer"}
        }
        card["securityRequirements"] = [{"schemes": {"bearer": {"list": []}}}]
        card["security"] = [{"bearer": []}]
    return card


def _installed() -> str:
    try:
        return version("anykit")
    except PackageNotFoundError:
        return "0"


def _skill(tool: Tool) -> JsonObject:
    described = tool.description.strip() or tool.name
    skill: JsonObject = {
        "id": tool.name,
        "name": tool.title or tool.name,
        "description": described,
        "tags": [tag for tag in dict.fromkeys((*tool.tags, tool.toolkit or "", tool.kind or "")) if tag] or ["tool"],
        "examples": [to_json({"tool": tool.name, "arguments": example_of(tool.input_schema)})],
        "inputModes": list(INPUT_MODES),
        "outputModes": list(OUTPUT_MODES),
    }
    return {**skill, **_schemas(tool)}


def _schemas(tool: Tool) -> JsonObject:
    schemas: JsonObject = {"inputSchema": tool.input_schema}
    if tool.output_schema is not None:
        schemas["outputSchema"] = tool.output_schema
    return schemas


def example_of(schema: JsonObject) -> Json:
    """A value that a schema might take: what it offers as an example, else the plainest one of its kind."""
    return _example(schema, schema, 0)


def _example(part: object, root: JsonObject, hops: int) -> Json:
    if not isinstance(part, dict) or hops > _HOPS:
        return None
    said = cast(JsonObject, part)
    reference: object = said.get("$ref")
    if isinstance(reference, str):
        found: object = root
        for step in reference.removeprefix("#").lstrip("/").split("/"):
            found = cast("dict[str, object]", found).get(step) if isinstance(found, dict) else None
        return _example(found, root, hops + 1)
    for keyword in ("examples", "enum"):
        values: object = said.get(keyword)
        if isinstance(values, list) and values:
            return cast("list[Json]", values)[0]
    for keyword in ("const", "default"):
        if said.get(keyword) is not None:
            return said[keyword]
    for keyword in ("anyOf", "oneOf"):
        branches: object = said.get(keyword)
        if isinstance(branches, list) and branches:
            return _example(cast("list[object]", branches)[0], root, hops + 1)
    kind: object = said.get("type")
    first = cast("list[object]", kind)[0] if isinstance(kind, list) and kind else cast(object, kind)
    match first:
        case "string":
            return "text"
        case "integer" | "number":
            least: object = said.get("minimum", 1)
            return least if isinstance(least, int | float) else 1
        case "boolean":
            return True
        case "array":
            return [_example(said.get("items", {}), root, hops + 1)] if said.get("minItems") else []
        case "object":
            properties: object = said.get("properties")
            members = cast(JsonObject, properties) if isinstance(properties, dict) else {}
            required: object = said.get("required")
            needed = cast("list[Any]", required) if isinstance(required, list) else []
            return {name: _example(member, root, hops + 1) for name, member in members.items() if name in needed}
        case _:
            return None


@dataclass(frozen=True, slots=True)
class _Made:
    """A card as it was last made for one base URL."""

    specs: tuple[ToolSpec, ...]
    body: bytes
    tag: bytes


class CardApp:
    """Answers with the card as it is now (ASGI).

    Args:
        tools: What is exposed now.
        about: Who the agent is.
        secured: Whether a bearer token is needed for calls.
        url: The URL under which the world knows the server; without it, the one that the request was sent to.
        ways: Whose `X-Forwarded-Proto` is believed.
    """

    def __init__(
        self,
        tools: Callable[[], Sequence[Tool]],
        *,
        about: About,
        secured: bool,
        url: str = "",
        ways: Ways | None = None,
    ) -> None:
        self._tools = tools
        self._about = about
        self._secured = secured
        self._url = url.rstrip("/")
        self._ways = ways or Ways()
        self._made: dict[str, _Made] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            await _answer(send, 405, b'{"detail":"Method not allowed"}', (b"allow", b"GET, HEAD"))
            return
        made = self._card(self._base(scope))
        body, tag = made.body, made.tag
        headers = ((b"etag", tag), (b"cache-control", b"no-cache"), (b"vary", b"host, x-forwarded-proto"))
        if _known(headers_named(scope["headers"], b"if-none-match"), tag):
            await send({"type": "http.response.start", "status": 304, "headers": list(headers)})
            await send({"type": "http.response.body", "body": b""})
            return
        await _answer(send, 200, body, *headers, head=scope["method"] == "HEAD")

    def _card(self, base: str) -> _Made:
        tools = self._tools()
        specs = tuple(tool.spec for tool in tools)
        made = self._made.get(base)
        if (
            made is None
            or len(made.specs) != len(specs)
            or any(a is not b for a, b in zip(made.specs, specs, strict=True))
        ):
            card = agent_card(tools, base, about=self._about, secured=self._secured)
            body = to_json(card).encode()
            made = _Made(specs, body, b'"%b"' % hashlib.sha256(body).hexdigest()[:32].encode())
            while len(self._made) >= KEPT:
                del self._made[next(iter(self._made))]
            self._made[base] = made
        return made

    def _base(self, scope: Scope) -> str:
        """The URL that the request was sent to; its host passed the name guard."""
        if self._url:
            return self._url
        hosts = headers_named(scope["headers"], b"host")
        host = hosts[0].decode("latin-1") if hosts else "localhost"
        scheme = scope.get("scheme", "http")
        forwarded = headers_named(scope["headers"], b"x-forwarded-proto")
        if forwarded and forwarded[0].strip().lower() == b"https" and self._ways.secure(scope):
            scheme = "https"
        return f"{scheme}://{host}"


def _known(given: Sequence[bytes], tag: bytes) -> bool:
    """Whether `If-None-Match` names the tag (RFC 9110, 13.1.2: the weak comparison)."""
    names = {name.strip().removeprefix(b"W/") for value in given for name in value.split(b",")}
    return tag in names or b"*" in names


async def _answer(send: Send, status: int, body: bytes, *extra: tuple[bytes, bytes], head: bool = False) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *extra]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else body})
