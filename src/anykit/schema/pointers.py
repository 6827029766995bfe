"""JSON pointers (RFC 6901) and how names and values are written into messages."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, cast

from anykit.capabilities import Json

Tokens: TypeAlias = tuple[str | int, ...]
"""The way to a place in a JSON value: names and indexes."""

NAME_LIMIT = 80
"""Characters of a name that a message shows; names come from peers."""
NAMES_LIMIT = 30
"""Names that a message lists."""


def escape(token: str | int) -> str:
    """One token as it stands in a pointer."""
    return str(token).replace("~", "~0").replace("/", "~1")


def pointer(tokens: Iterable[str | int]) -> str:
    """The JSON pointer of a place; "" is the whole."""
    return "".join(f"/{escape(token)}" for token in tokens)


def tokens_of(text: str) -> tuple[str, ...]:
    """The tokens of a JSON pointer."""
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:])


def step(value: Json, token: str | int) -> tuple[bool, Json]:
    """Whether `value` has something at `token`, and what."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return (True, fields[token]) if isinstance(token, str) and token in fields else (False, None)
    if isinstance(value, list | tuple) and str(token).isdecimal():
        items = cast("Sequence[Any]", value)
        index = int(token)
        return (True, items[index]) if index < len(items) else (False, None)
    return False, None


def at(value: Json, tokens: Iterable[str | int]) -> Json:
    """What stands at `tokens`; None where nothing does."""
    for token in tokens:
        _, value = step(value, token)
    return value


def quoted(name: object) -> str:
    """A name for a message: quoted, escaped, cut."""
    text = str(name)
    return repr(text if len(text) <= NAME_LIMIT else text[: NAME_LIMIT - 3] + "...")


def listed(names: Iterable[object]) -> str:
    """Several names for a message."""
    every = [quoted(name) for name in names]
    rest = len(every) - NAMES_LIMIT
    return ", ".join(every[:NAMES_LIMIT]) + (f" and {rest} more" if rest > 0 else "")


def literal(value: Json) -> str:
    """A value *of a schema* for a message, as JSON, cut."""
    text = json.dumps(value)
    return text if len(text) <= NAME_LIMIT else text[: NAME_LIMIT - 3] + "..."


def nearest(name: str, names: Iterable[str]) -> str:
    """`; did you mean 'x'?` where one of the names is close, else nothing; a hundred are looked at."""
    if len(name) > NAME_LIMIT:
        return ""
    close = difflib.get_close_matches(name, [other for other in names if len(other) <= NAME_LIMIT][:100], 1, 0.6)
    return f"; did you mean {quoted(close[0])}?" if close else ""
