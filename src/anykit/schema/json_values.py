"""Is it JSON at all? Asked before a value goes to the native validator, which trusts its input."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import isfinite
from typing import Any, cast

from anykit.capabilities import Fault

from .pointers import NAME_LIMIT, Tokens, pointer

MAX_DEPTH = 128
"""Levels of arrays and objects in an instance or a schema."""
MAX_FAULTS = 256
"""Faults that are listed; the last one says that there are more."""


def is_json(value: object, depth: int = MAX_DEPTH) -> bool:
    """Whether `value` is JSON: finite numbers, text without lone surrogates, string keys, at most `depth` levels."""
    kind = type(value)
    if kind is str:
        return cast(str, value).isascii() or not has_surrogate(cast(str, value))
    if value is None or kind is int or kind is bool:
        return True
    if kind is float:
        return isfinite(cast(float, value))
    if isinstance(value, dict):
        if depth == 0:
            return False
        for key, item in cast("dict[object, object]", value).items():
            if type(key) is not str or not (key.isascii() or not has_surrogate(key)):
                return False
            kind = type(item)
            if kind is str:
                if not cast(str, item).isascii() and has_surrogate(cast(str, item)):
                    return False
            elif kind is not int and item is not None and kind is not bool and not is_json(item, depth - 1):
                return False
        return True
    if isinstance(value, list | tuple):
        if depth == 0:
            return False
        for item in cast("Sequence[object]", value):
            kind = type(item)
            if kind is not int and not is_json(item, depth - 1):
                return False
        return True
    return _is_plain_member(value)


def _is_plain_member(value: object) -> bool:
    """Members of `StrEnum` and `IntEnum` are the strings and numbers that they are made of."""
    return isinstance(value, Enum) and isinstance(value, str | int)


def has_surrogate(text: str) -> bool:
    """Whether `text` holds half of a surrogate pair, which no UTF-8 can carry."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def json_faults(value: object) -> list[Fault]:
    """Everything that keeps `value` from being JSON, each with its place; at most `MAX_FAULTS`."""
    return [{"path": pointer(path), "message": message} for path, message in json_problems(value)]


def json_problems(value: object) -> list[tuple[Tokens, str]]:
    """The same as places and messages."""
    found: list[tuple[Tokens, str]] = []
    _collect(value, (), found)
    return found


def _collect(value: object, path: Tokens, faults: list[tuple[Tokens, str]]) -> None:
    if len(faults) >= MAX_FAULTS or is_json(value, MAX_DEPTH - len(path)):
        return
    reason = ""
    if isinstance(value, dict):
        if len(path) >= MAX_DEPTH:
            reason = f"nests deeper than {MAX_DEPTH} levels"
        else:
            for key, item in cast("dict[object, object]", value).items():
                if type(key) is not str:
                    faults.append(_fault(path, f"has a name that is not text but {_kind(key)}"))
                elif has_surrogate(key):
                    faults.append(_fault(path, "has a name with a lone surrogate, which is not valid Unicode"))
                else:
                    _collect(item, (*path, key), faults)
    elif isinstance(value, list | tuple):
        if len(path) >= MAX_DEPTH:
            reason = f"nests deeper than {MAX_DEPTH} levels"
        else:
            for index, item in enumerate(cast("Sequence[object]", value)):
                _collect(item, (*path, index), faults)
    elif type(value) is float:
        reason = "NaN and Infinity are not JSON numbers"
    elif type(value) is str:
        reason = "contains a lone surrogate, which is not valid Unicode"
    else:
        reason = f"must be a JSON value; {_kind(value)} is none"
    if reason:
        faults.append(_fault(path, reason))


def _kind(value: Any) -> str:
    name: str = type(value).__qualname__
    return name[:NAME_LIMIT]


def _fault(path: Tokens, message: str) -> tuple[Tokens, str]:
    # A deep place would make a pointer as long as the bound is deep: the first steps say where.
    return path if len(path) < MAX_DEPTH else path[:8], message
