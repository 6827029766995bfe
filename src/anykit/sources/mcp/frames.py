"""Bytes to JSON-RPC frames and back. One bad line costs only itself; what a peer garbled is mended where that is possible."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic_core import from_json

from anykit.capabilities import Fault, InvalidInput, Json, JsonObject
from anykit.schema import json_faults

MAX_DEPTH = 128
"""Levels of a message that had to be mended."""
EXCERPT = 120
"""Characters of noise that are kept to be shown."""

_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False).encode
_HALF = re.compile("[\ud800-\udfff]")
_ID = re.compile(rb'"id"\s*:\s*(-?\d{1,18}|"[\x20-\x21\x23-\x5b\x5d-\x7e]{1,128}")')


class NotAFrame(ValueError):
    """What came is not the protocol."""


def parse(data: bytes) -> list[JsonObject]:
    """The frames in one line, event or body: one, or those of a batch. Raises `NotAFrame`.

    Half characters (lone surrogates, bytes that are not UTF-8) become U+FFFD, so that whoever waits gets an answer.
    """
    try:
        value: Any = from_json(data, allow_inf_nan=False)
    except ValueError:
        value = _mended(data)
    frames: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    if not frames or not all(is_frame(frame) for frame in frames):
        raise NotAFrame("no JSON-RPC message")
    return frames


def is_frame(value: object) -> bool:
    """Whether a JSON value is a JSON-RPC message, be it one that forgot to say so."""
    if not isinstance(value, dict):
        return False
    frame = cast(JsonObject, value)
    if isinstance(frame.get("method"), str):
        return frame.get("jsonrpc", "2.0") == "2.0" and isinstance(frame.get("params", {}), dict | list | None)
    return "id" in frame and ("result" in frame or "error" in frame)


def stray_id(data: bytes) -> int | str | None:
    """The id that a broken answer seems to be for, so that its asker need not wait. None where there is no telling."""
    found = _ID.search(data)
    return None if found is None or b'"method"' in data else json.loads(found[1])


def encode(message: Mapping[str, Any]) -> bytes:
    """One message as one line of JSON. Raises `InvalidInput` for what JSON cannot carry, naming the place."""
    try:
        return _ENCODE(message).encode()
    except (ValueError, TypeError, RecursionError):
        raise InvalidInput("the message cannot be sent as JSON", unsendable(message)) from None


def unsendable(value: Json) -> Sequence[Fault]:
    """Every place of a value that JSON cannot carry."""
    return json_faults(value)


def excerpt(data: bytes) -> str:
    """A little of what came, fit for a log."""
    text = data[: 4 * EXCERPT].decode("utf-8", "replace")
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= EXCERPT else f"{text[:EXCERPT]}…"


def _mended(data: bytes) -> Json:
    try:
        value = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise NotAFrame("no JSON") from None
    return _whole(value, 0)


def _whole(value: Any, depth: int) -> Json:
    """A copy without half characters. Raises `NotAFrame` where it nests too deep."""
    if isinstance(value, str):
        return value if value.isascii() else _HALF.sub("\ufffd", value)
    if depth > MAX_DEPTH:
        raise NotAFrame(f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        members = cast(JsonObject, value)
        return {str(_whole(key, depth)): _whole(item, depth + 1) for key, item in members.items()}
    if isinstance(value, list):
        return [_whole(item, depth + 1) for item in cast("list[Any]", value)]
    return value
