"""What JSON text may hold here: bounded nesting, finite numbers, whole characters."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from pydantic_core import from_json

MAX_DEPTH: Final = 128
"""Levels of arrays and objects in one message, the message itself included."""

_TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"
_MANY = 50_000
"""Arrays and objects in a bad text, from which on finding out more would take seconds."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a value, and where (a JSON pointer; "" is the whole value)."""

    path: str
    reason: str


class JsonError(ValueError):
    """The text is not JSON that we read. `value` is what it says nevertheless, where that could be found out."""

    def __init__(self, reason: str, value: Any = None) -> None:
        super().__init__(reason)
        self.value = value


def pointer(*steps: str | int) -> str:
    """A JSON pointer (RFC 6901)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def read_json(text: bytes) -> Any:
    """Read one JSON text exactly: integers of any size (Python's 4,300 digits), U+2028, duplicate keys (the last wins).

    Raises:
        JsonError: not UTF-8, not JSON, NaN, Infinity or a number that would become one, more than `MAX_DEPTH` levels, half a
            surrogate pair.
    """
    try:
        value = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        if text.count(b"[") + text.count(b"{") > _MANY:
            reason = _TOO_DEEP if "recursion limit" in str(error) else f"not JSON: {error}"
            raise JsonError(reason, _head(text)) from None
        return _read_slowly(text)
    if _is_too_deep_or_infinite(value):
        fault = find_fault(value)
        raise JsonError(_describe(fault) if fault else _TOO_DEEP, value)
    return value


def find_fault(value: Any, *, max_depth: int = MAX_DEPTH) -> Fault | None:
    """The first thing in a value that must not be on the wire: NaN, Infinity, half a surrogate pair, too deep nesting."""
    if not isinstance(value, dict | list | tuple):
        reason = _scalar_fault(value)
        return Fault("", reason) if reason else None
    path: list[str | int] = []
    open_items = [_items(cast("_Container", value))]
    while open_items:
        for key, child in open_items[-1]:
            if (child is None or child.__class__ is int) and key.__class__ is int:
                continue  # by the million, where a peer means harm
            if isinstance(key, str) and not key.isascii() and _SURROGATE.search(key):
                return Fault(_readable(path), "a key with a lone surrogate, which is not a character")
            if isinstance(child, dict | list | tuple):
                if len(open_items) >= max_depth:
                    return Fault("", f"nested deeper than {max_depth} levels")
                path.append(key)
                open_items.append(_items(cast("_Container", child)))
                break
            if reason := _scalar_fault(child):
                return Fault(_readable([*path, key]), reason)
        else:
            open_items.pop()
            if path:
                path.pop()
    return None


def head_member(text: bytes, name: str) -> str | None:
    """A string member of the outer object, read from the start of a text that as a whole cannot be read.

    It looks at no more than the plain members (strings, numbers, literals) before the first nested value.
    """
    found: str | None = None
    position = 0
    head = text[:4096].removeprefix(_BOM).decode("utf-8", "replace").lstrip(" \t\r\n")
    if not head.startswith("{"):
        return None
    position = 1
    while member := _MEMBER.match(head, position):
        try:
            key: Any = json.loads(member["key"])
            value: Any = json.loads(member["value"])
        except ValueError:
            break
        if key == name:
            found = value if isinstance(value, str) else None
        position = member.end()
    return found


_STRING = r'"(?:[^"\\]|\\.)*"'
_MEMBER = re.compile(
    rf"\s*(?P<key>{_STRING})\s*:\s*(?P<value>{_STRING}|-?\d{{1,400}}(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)\s*[,}}]"
)


_Container: TypeAlias = "dict[Any, Any] | list[Any] | tuple[Any, ...]"


def _items(container: _Container) -> Iterator[tuple[Any, Any]]:
    return iter(container.items()) if isinstance(container, dict) else enumerate(container)


def _scalar_fault(value: Any) -> str | None:
    if isinstance(value, str):
        if not value.isascii() and _SURROGATE.search(value):
            return "a lone surrogate, which is not a character"
    elif isinstance(value, float) and value - value != 0.0:
        return "NaN or Infinity, which JSON does not have"
    return None


def _readable(path: list[str | int]) -> str:
    # A key may hold what cannot be sent, and be as long as the message.
    return pointer(*path)[:200].encode("utf-8", "backslashreplace").decode("utf-8")


def _is_too_deep_or_infinite(value: Any) -> bool:
    # The reader takes 200 levels and reads 1e400 as infinity. Level by level, since this runs for every message.
    level: list[dict[str, Any] | list[Any]] = [value] if isinstance(value, dict | list) else []
    depth = 0
    while level:
        depth += 1
        deeper: list[dict[str, Any] | list[Any]] = []
        for item in level:
            children: Iterable[Any] = item.values() if isinstance(item, dict) else item
            for child in children:
                kind: Any = child.__class__
                if kind is dict or kind is list:
                    deeper.append(child)
                elif kind is float and child - child != 0.0:
                    return True
        level = deeper
    return depth > MAX_DEPTH


def _read_slowly(text: bytes) -> Any:
    """Find out what is wrong with a text, and what it says nevertheless."""
    text = text.removeprefix(_BOM)
    reason: str | None = None
    try:
        characters = text.decode("utf-8")
    except UnicodeDecodeError:
        characters = text.decode("utf-8", "replace")
        reason = "not UTF-8"
    try:
        value: Any = json.loads(characters)
    except json.JSONDecodeError as error:
        raise JsonError(reason or f"not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise JsonError(reason or _TOO_DEEP, _head(text)) from None
    except ValueError:  # Python converts at most 4,300 digits
        raise JsonError(reason or "an integer of more than 4300 digits", _head(text)) from None
    if reason is None and (fault := find_fault(value)):
        reason = _describe(fault)
    if reason is not None:
        raise JsonError(reason, value)
    return value


def _head(text: bytes) -> dict[str, Any]:
    return {name: member for name in ("id", "req_id", "type") if (member := head_member(text, name)) is not None}


def _describe(fault: Fault) -> str:
    return f"{fault.reason}, at {fault.path!r}" if fault.path else fault.reason
