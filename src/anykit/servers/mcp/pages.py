"""Lists in pages. Imports the SDK."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError

from anykit.capabilities import JsonObject

from .jsonrpc import INVALID_PARAMS

T = TypeVar("T")

PAGE: Final = 1000
"""Items of one page."""


def listed(name: str, items: Sequence[JsonObject], cursor: str | None) -> JsonObject:
    """A page as a result."""
    listed: JsonObject = {"resultType": "complete", name: list(items)}
    if cursor is not None:
        listed["nextCursor"] = cursor
    return listed


def cursor_of(params: types.PaginatedRequestParams | None) -> str | None:
    """Behind what a client wants to go on."""
    return None if params is None else params.cursor


def page_of(
    items: Sequence[T], cursor: str | None, key: Callable[[T], str], size: int = PAGE
) -> tuple[Sequence[T], str | None]:
    """A page of `size` behind the item that a cursor names, and the next cursor. Raises `MCPError` for a cursor that is none."""
    start = 0
    if cursor is not None:
        last = _opened(cursor)
        start = next((index + 1 for index, item in enumerate(items) if key(item) == last), -1)
        if last is None or start < 0:
            raise MCPError(INVALID_PARAMS, "the cursor is not good, or the list has changed: start again without one")
    page = items[start : start + size]
    more = start + size < len(items)
    return page, _sealed(key(page[-1])) if more else None


def _sealed(key: str) -> str:
    return base64.urlsafe_b64encode(key.encode(errors="surrogatepass")).decode()


def _opened(cursor: str) -> str | None:
    try:
        key = base64.urlsafe_b64decode(cursor.encode()).decode(errors="surrogatepass")
    except ValueError:
        return None
    return key if _sealed(key) == cursor else None
