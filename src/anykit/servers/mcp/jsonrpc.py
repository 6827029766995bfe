"""JSON-RPC messages as bytes: what a peer sent is read strictly, what goes out is one line. No SDK in here.

What cannot be read is answered where its id can be told, so that whoever waits for it need not wait for ever.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from pydantic_core import from_json

from anykit.capabilities import Json, JsonObject
from anykit.schema import MAX_DEPTH, is_json, json_faults

Id: TypeAlias = int | str

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
BUSY: Final = -32000
"""Ours, of those that the protocol leaves to implementations: too much at once, try again."""

MAX_ID: Final = 1024
"""Characters of a request's id."""
MAX_METHOD: Final = 256
MAX_REASON: Final = 500

Kind: TypeAlias = Literal["request", "notification", "response"]


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message, read. `id` is None for a notification only."""

    kind: Kind
    message: JsonObject
    id: Id | None = None
    method: str = ""
    params: JsonObject | None = None


class Refused(Exception):
    """What came is no message that can be served; `answer` is what its sender is told."""

    def __init__(self, code: int, message: str, id: Id | None = None, data: Json = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.id = id
        self.data = data

    @property
    def answer(self) -> JsonObject:
        """The error as a message; its id is null where none could be told."""
        return error_message(self.id, self.code, self.message, self.data)


def read(data: bytes) -> Incoming:
    """Read one message. Raises `Refused`, and nothing else, whatever the bytes are."""
    value = _value(data)
    if isinstance(value, list):
        raise Refused(INVALID_REQUEST, "batches are no part of this protocol: send one message at a time")
    if not isinstance(value, dict):
        raise Refused(INVALID_REQUEST, "a message is a JSON object")
    message = cast(JsonObject, value)
    id = _id(message)
    if message.get("jsonrpc") != "2.0":
        raise Refused(INVALID_REQUEST, 'a message says "jsonrpc": "2.0"', id)
    if "method" not in message:
        if "result" in message or "error" in message:
            return Incoming("response", message, id)
        raise Refused(INVALID_REQUEST, "a message names its method, or is a result or an error", id)
    method: object = message["method"]
    if not isinstance(method, str) or not 0 < len(method) <= MAX_METHOD:
        raise Refused(INVALID_REQUEST, f"a method is named in a string of 1 to {MAX_METHOD} characters", id)
    if "id" in message and id is None:
        raise Refused(INVALID_REQUEST, "the id of a request is a string or an integer, and never null")
    params: object = message.get("params")
    if params is not None and not isinstance(params, dict):
        raise Refused(INVALID_PARAMS, "params are an object", id)
    kind: Kind = "request" if "id" in message else "notification"
    return Incoming(kind, message, id, method, cast("JsonObject | None", params))


def _id(message: Mapping[str, Any]) -> Id | None:
    id: object = message.get("id")
    if isinstance(id, bool) or not isinstance(id, int | str):
        return None
    return None if isinstance(id, str) and len(id) > MAX_ID else id


_BOM = b"\xef\xbb\xbf"


def _value(data: bytes) -> Any:
    data = data.removeprefix(_BOM)
    try:
        value = from_json(data, allow_inf_nan=False)
    except ValueError:
        raise _unreadable(data) from None
    # The reader takes 200 levels, and reads 1e400 as infinity: looked for only where the text can hold such a thing.
    if (data.count(b"[") + data.count(b"{") > MAX_DEPTH or _HUGE.search(data)) and not is_json(value, MAX_DEPTH):
        raise _unsendable(value)
    return value


_HUGE = re.compile(rb"[eE]\+?\d{3}|\d{309}")


def _unreadable(data: bytes) -> Refused:
    """Why a text is no JSON, and whose request it was, where that can be found out."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return Refused(PARSE_ERROR, "not UTF-8")
    if text.count("[") + text.count("{") > _MANY:
        return Refused(PARSE_ERROR, "not JSON, or nested too deep", _stray_id(data))
    try:
        value: Any = json.loads(text)
    except json.JSONDecodeError as error:
        return Refused(PARSE_ERROR, f"not JSON: {error.msg} at character {error.pos}")
    except RecursionError:
        return Refused(PARSE_ERROR, f"nested deeper than {MAX_DEPTH} levels", _stray_id(data))
    except ValueError:  # Python converts at most 4,300 digits
        return Refused(PARSE_ERROR, "an integer of more than 4300 digits", _stray_id(data))
    return _unsendable(value)


_MANY = 50_000
"""Arrays and objects in a bad text, from which on finding out more would take seconds."""


def _unsendable(value: Any) -> Refused:
    id = _id(cast(JsonObject, value)) if isinstance(value, dict) else None
    if isinstance(id, str) and not is_json(id):
        id = None
    faults = json_faults(cast(object, value))
    if not faults:
        return Refused(PARSE_ERROR, "not JSON", id)
    said = "; ".join(f"{fault['path'] or '/'} {fault['message']}" for fault in faults[:5])
    # Half a surrogate pair is JSON by the letter: the request is known, and what is wrong is what it carries. NaN is not.
    parsed = id is not None and not any("Infinity" in fault["message"] for fault in faults)
    return Refused(INVALID_PARAMS if parsed else PARSE_ERROR, said[:MAX_REASON].encode(errors="replace").decode(), id)


_ID = rb'"id"\s*:\s*(-?\d{1,18}|"[\x20-\x21\x23-\x5b\x5d-\x7e]{1,128}")'
_HEAD = re.compile(_ID)
_TAIL = re.compile(_ID + rb"\s*\}\s*$")


def _stray_id(data: bytes) -> Id | None:
    """The id at the head or the tail of a request that cannot be read, so that its sender need not wait."""
    head = data[:4096]
    body = head.find(b'"params"')
    found = _HEAD.search(head if body < 0 else head[:body]) or _TAIL.search(data[-4096:])
    return None if found is None else json.loads(found[1])


# what goes out


def error_message(id: Id | None, code: int, message: str, data: Json = None) -> JsonObject:
    """An error response."""
    error: JsonObject = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": id, "error": error}


_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False).encode
_BREAKS = re.compile("[\u2028\u2029\x85]")


def encode(message: Mapping[str, Any]) -> bytes:
    """One message as one line. What cannot be sent becomes an error with the same id.

    Characters that some readers take for line ends are escaped; everything else stands as it is.
    """
    try:
        text = _ENCODE(message)
        if not text.isascii():
            text = _BREAKS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
        return text.encode()
    except (ValueError, TypeError, RecursionError):
        id = message.get("id")
        return _ENCODE(error_message(id, INTERNAL_ERROR, "the answer cannot be sent as JSON")).encode()
