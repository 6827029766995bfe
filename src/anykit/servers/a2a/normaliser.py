"""Ahead of the SDK: bodies are read and bounded, what it would round or choke on is refused, dialects are translated.

body ── bounded, JSON, whole characters ── exact numbers ── dialect ── the SDK's application ── answer, as asked
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Final, cast

from pydantic_core import from_json

from anykit.capabilities import Json, JsonObject
from anykit.schema import is_json, json_faults
from anykit.servers.identity import App, Message, Receive, Scope, Send, headers_named
from anykit.tools import to_json

from .dialects import (
    STREAMS,
    VERSION_HEADER,
    Told,
    decoded,
    each_file,
    encodes_twice,
    is_toolnexus,
    of_toolnexus,
    rest_03,
    with_final,
    without_empty_ids,
)
from .parts import EXACT, inexact, whole_numbers

BODY: Final = 8 * 1024 * 1024
BODY_TIMEOUT: Final = 60.0
"""Seconds that a body may take to arrive."""
NAME: Final = 512
"""Characters of a task's or a context's id."""

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
INVALID_PARAMS: Final = -32602

_STATUS: Final[Mapping[int, tuple[int, str, str]]] = {
    PARSE_ERROR: (400, "INVALID_ARGUMENT", "INVALID_REQUEST"),
    INVALID_REQUEST: (400, "INVALID_ARGUMENT", "INVALID_REQUEST"),
    INVALID_PARAMS: (400, "INVALID_ARGUMENT", "INVALID_PARAMS"),
}


class Refused(Exception):
    """A request is not passed on; the text is for its sender."""

    def __init__(self, code: int, message: str, *, http: int = 200, answered: Json = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.http = http
        """The status, where the transport itself is at fault."""
        self.answered = answered
        """The request's id, where it could be read."""


class Normaliser:
    """ASGI middleware for `prefix` (JSON-RPC) and below it (HTTP+JSON).

    Args:
        app: The SDK's application.
        prefix: Where it stands.
        body: Bytes that a body may have.
    """

    def __init__(self, app: App, *, prefix: str, body: int = BODY) -> None:
        self._app = app
        self._prefix = prefix
        self._limit = body
        self._told = Told()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = str(scope["path"])
        if path == f"{self._prefix}/":
            path = self._prefix
            scope = {**scope, "path": path, "raw_path": path.encode()}
        old = path.startswith(f"{self._prefix}/v1/")
        if path != self._prefix:
            change = None
            if old:
                change = with_final if self._twice(scope) else _once
            send = Rewritten(send, change).send
        if scope["method"] != "POST":
            await self._app(scope, receive, send)
        elif path == self._prefix:
            await self._rpc(scope, receive, send)
        else:
            await self._rest(scope, receive, send, old=old)

    # JSON-RPC

    async def _rpc(self, scope: Scope, receive: Receive, send: Send) -> None:
        answered: Json = None
        try:
            text = await self._body(scope, receive)
            request = _envelope(read(text))
            answered = request.get("id")
            params: object = request.get("params", {})
            changed = request
            if isinstance(params, dict):
                changed = {**request, "params": _checked(cast(JsonObject, params), ("params",), "parts")}
            version = _version(scope)
            dialect = is_toolnexus(str(request["method"]), changed.get("params"), version)
            if dialect:
                changed = of_toolnexus(changed)
                scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0] != VERSION_HEADER]}
        except Refused as refused:
            await _refuse_rpc(send, refused, refused.answered if answered is None else answered)
            return
        change = None
        if dialect and request["method"] in ("GetTask", "SendMessage"):
            change = self._translated
        elif changed["method"] in STREAMS:
            change = with_final
        send = Rewritten(send, change).send
        await self._app(scope, replayed(text if changed is request else to_json(changed).encode(), receive), send)

    def _translated(self, answer: JsonObject) -> JsonObject:
        task: object = answer.get("result")
        return {**answer, "result": self._told.translate(cast(JsonObject, task))} if isinstance(task, dict) else answer

    # HTTP+JSON

    async def _rest(self, scope: Scope, receive: Receive, send: Send, *, old: bool) -> None:
        try:
            text = await self._body(scope, receive)
            if not text.strip():
                await self._app(scope, replayed(text, receive), send)
                return
            value = read(text)
            if not isinstance(value, dict):
                raise Refused(INVALID_REQUEST, "the body has to be an object")
            body = cast(JsonObject, value)
            changed = rest_03(body, twice=self._twice(scope)) if old else body
            changed = _checked(changed, (), "content" if old else "parts")
        except Refused as refused:
            await _refuse_rest(send, refused)
            return
        await self._app(scope, replayed(text if changed is body else to_json(changed).encode(), receive), send)

    def _twice(self, scope: Scope) -> bool:
        agents = headers_named(scope["headers"], b"user-agent")
        return bool(agents) and encodes_twice(agents[0].decode("latin-1"))

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        sizes = headers_named(scope["headers"], b"content-length")
        if sizes and sizes[0].isdigit() and int(sizes[0]) > self._limit:
            raise Refused(INVALID_REQUEST, f"the body is larger than {self._limit} bytes", http=413)
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(BODY_TIMEOUT):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise Refused(INVALID_REQUEST, "the body broke off", http=400)
                    chunk: bytes = message.get("body", b"")
                    size += len(chunk)
                    if size > self._limit:
                        raise Refused(INVALID_REQUEST, f"the body is larger than {self._limit} bytes", http=413)
                    chunks.append(chunk)
                    if not message.get("more_body"):
                        return b"".join(chunks)
        except TimeoutError:
            raise Refused(INVALID_REQUEST, f"the body did not arrive within {BODY_TIMEOUT:g} s", http=408) from None


class Rewritten:
    """An application's answer with `change` applied to its JSON: to the whole of it, or to each event of a stream.

    Whole numbers are written as such: the SDK writes 5 as 5.0, having made a double of it.
    """

    def __init__(self, send: Send, change: Callable[[JsonObject], JsonObject] | None = None) -> None:
        self._send = send
        self._change = change
        self._start: Message | None = None
        self._streams = False
        self._chunks: list[bytes] = []

    async def send(self, message: Message) -> None:
        """The ASGI `send` of the application behind."""
        if message["type"] == "http.response.start":
            types = headers_named(message["headers"], b"content-type")
            self._streams = bool(types) and types[0].startswith(b"text/event-stream")
            if not self._streams:
                self._start = message
                return
        elif message["type"] == "http.response.body":
            body: bytes = message.get("body", b"")
            if self._streams:
                message = {**message, "body": b"\n".join(self._line(line) for line in body.split(b"\n"))}
            elif self._start is not None:
                self._chunks.append(body)
                if not message.get("more_body"):
                    await self._whole(self._start, b"".join(self._chunks))
                return
        await self._send(message)

    async def _whole(self, start: Message, body: bytes) -> None:
        body = self._changed(body)
        kept = [(name, value) for name, value in start["headers"] if name.lower() != b"content-length"]
        await self._send({**start, "headers": [*kept, (b"content-length", str(len(body)).encode())]})
        await self._send({"type": "http.response.body", "body": body})

    def _line(self, line: bytes) -> bytes:
        if not line.startswith(b"data:"):
            return line
        ending = b"\r" if line.endswith(b"\r") else b""
        return b"data: " + self._changed(line[5:].strip()) + ending

    def _changed(self, text: bytes) -> bytes:
        doubles = b".0" in text
        if not doubles and self._change is None:
            return text
        try:
            value: object = json.loads(text)
        except ValueError:
            return text
        if not isinstance(value, dict):
            return text
        answer = cast(JsonObject, whole_numbers(value) if doubles else value)
        return to_json(answer if self._change is None else self._change(answer)).encode()


def _once(answer: JsonObject) -> JsonObject:
    """An answer of 0.3's HTTP+JSON with files as everyone but the official Python SDK reads them."""
    return cast(JsonObject, each_file(with_final(answer), decoded))


def read(text: bytes) -> Json:
    """The JSON value of a body. Raises `Refused`."""
    try:
        value: Json = from_json(text, allow_inf_nan=False)
    except ValueError:
        value = _slowly(text)
    if not is_json(value):
        fault = json_faults(value)[0]
        place = fault["path"][:200].encode("utf-8", "replace").decode() or "the root"
        raise Refused(PARSE_ERROR, f"{fault['message']}, at {place}", answered=_id_of(value))
    return value


def _id_of(value: Json) -> Json:
    identifier: object = cast(JsonObject, value).get("id") if isinstance(value, dict) else None
    return identifier if isinstance(identifier, str | int) and is_json(identifier) else None


def _slowly(text: bytes) -> Json:
    """What is wrong with a text; half a surrogate pair is told with its place."""
    try:
        return json.loads(text.decode(), parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise Refused(PARSE_ERROR, "the body is not UTF-8") from None
    except RecursionError:
        raise Refused(PARSE_ERROR, "the body nests too deep") from None
    except json.JSONDecodeError as error:
        raise Refused(PARSE_ERROR, f"the body is not JSON: {error.msg} at character {error.pos}") from None
    except ValueError as error:
        raise Refused(PARSE_ERROR, f"the body is not JSON: {str(error)[:100]}") from None


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not a JSON number")


def _envelope(value: Json) -> JsonObject:
    """A JSON-RPC 2.0 request. Raises `Refused`."""
    if isinstance(value, list):
        raise Refused(INVALID_REQUEST, "batches are not supported")
    if not isinstance(value, dict):
        raise Refused(INVALID_REQUEST, "a request is an object")
    request = cast(JsonObject, value)
    if request.get("jsonrpc") != "2.0":
        raise Refused(INVALID_REQUEST, "'jsonrpc' has to be \"2.0\"")
    if not isinstance(request.get("method"), str):
        raise Refused(INVALID_REQUEST, "'method' has to be text")
    identifier: object = request.get("id")
    if "id" in request and (isinstance(identifier, bool) or not isinstance(identifier, str | int)):
        raise Refused(INVALID_REQUEST, "'id' has to be text or an integer")
    return request


def _checked(params: JsonObject, path: tuple[str, ...], parts: str) -> JsonObject:
    """A request's parameters, with its message fit for the SDK. Raises `Refused`."""
    message: object = params.get("message")
    if not isinstance(message, dict):
        return params
    said = without_empty_ids(cast(JsonObject, message))
    for key in ("taskId", "contextId", "messageId"):
        if isinstance(given := said.get(key), str) and len(given) > NAME:
            raise Refused(INVALID_PARAMS, f"{key} is longer than {NAME} characters")
    given_parts: object = said.get(parts)
    if isinstance(given_parts, list):
        for index, part in enumerate(cast("list[Json]", given_parts)):
            data: object = cast(JsonObject, part).get("data") if isinstance(part, dict) else None
            where = inexact(data, *path, "message", parts, index, "data")
            if where is not None:
                raise Refused(
                    INVALID_PARAMS,
                    f"the integer at {where} is beyond 2^53 ({EXACT}), where the numbers of this protocol are not exact;"
                    " send it as a string where the tool takes one, or the call as JSON in a text part",
                )
    return params if said is message else {**params, "message": said}


def _version(scope: Scope) -> str:
    given = headers_named(scope["headers"], VERSION_HEADER)
    return given[0].decode("latin-1").strip() if given else ""


def replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives a body that was read already, then what comes after it."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


async def _refuse_rpc(send: Send, refused: Refused, answered: Json) -> None:
    error = {"code": refused.code, "message": refused.message}
    await answer_json(send, refused.http, {"jsonrpc": "2.0", "id": answered, "error": error})


async def _refuse_rest(send: Send, refused: Refused) -> None:
    http, status, reason = _STATUS[refused.code]
    http = refused.http if refused.http != 200 else http
    detail: JsonObject = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": "a2a-protocol.org",
    }
    error: JsonObject = {
        "code": http,
        "status": status,
        "message": refused.message,
        "details": [{**detail, "metadata": {}}],
    }
    await answer_json(send, http, {"error": error})


async def answer_json(send: Send, status: int, value: Json, *extra: tuple[bytes, bytes]) -> None:
    """Answer with a JSON value."""
    body = to_json(value).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *extra]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
