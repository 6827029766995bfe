"""Rows as they come from a database: values that JSON can carry, within limits."""

from __future__ import annotations

import base64
import math
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from datetime import time as clock_time
from decimal import Decimal
from typing import Any, cast

from anykit.capabilities import Json

MAX_RESULT = 512 * 1024
"""Characters that the cells of one result have together, at most."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What a statement gave."""

    columns: list[str]
    rows: list[dict[str, Any]]
    row_count: int
    """Rows given, or changed by a statement that gives none."""
    truncated: bool
    note: str | None
    """Why there may be more, and what was cut."""


class Collected:
    """Rows as they come in, within all limits."""

    def __init__(self, rows: int, wanted: int, cell: int) -> None:
        self._rows = rows
        self._wanted = wanted
        self._cell = cell
        self._room = MAX_RESULT
        self._cut = False

    async def given(self, names: list[str], fetch: Callable[[int], Awaitable[Iterable[Any]]]) -> Rows:
        """Fetch until there are enough."""
        columns = _distinct(names)
        rows: list[dict[str, Any]] = []
        note: str | None = None
        batch = 1
        while note is None:
            fetched = [tuple(row) for row in await fetch(batch)]
            if not fetched:
                break
            before = self._room
            for values in fetched:
                if len(rows) >= self._rows:
                    note = f"only the first {self._rows} rows are given"
                    note += "" if self._rows == self._wanted else f"; more than {self._rows} at a time are not allowed"
                    break
                row = {name: self._shown(value) for name, value in zip(columns, values, strict=True)}
                if self._room < 0 and rows:
                    note = f"only the first {len(rows)} rows are given: the result is too large"
                    break
                rows.append(row)
            # Many small rows at a time, few large ones.
            batch = max(1, min(200, batch * 4, 65536 * batch // max(1, before - self._room)))
        truncated = note is not None
        if self._cut:
            note = "; ".join(filter(None, (note, f"values are cut after {self._cell} characters")))
        return Rows(columns, rows, len(rows), truncated or self._cut, note)

    def _shown(self, value: object) -> Json:
        shown = self._plain(value)
        self._room -= len(shown) if isinstance(shown, str) else 8
        return shown

    def _plain(self, value: object) -> Json:
        """A value that JSON can carry, of bounded size."""
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value)
        if isinstance(value, bytes | bytearray):
            return self._bytes(bytes(value))
        if isinstance(value, memoryview):
            return self._bytes(cast(memoryview[int], value).tobytes())
        if isinstance(value, list | tuple | set | frozenset):
            return [self._shown(item) for item in cast(Iterable[object], value)]
        if isinstance(value, dict):
            return {str(key): self._shown(item) for key, item in cast(dict[object, object], value).items()}
        if isinstance(value, date | clock_time):  # a datetime is a date
            return value.isoformat()
        if isinstance(value, Decimal | timedelta):
            return str(value)
        text = str(value).encode("utf-8", "replace").decode()
        if len(text) <= self._cell:
            return text
        self._cut = True
        return f"{text[: self._cell]}... [{len(text)} characters]"

    def _bytes(self, value: bytes) -> str:
        if len(value) * 4 // 3 > self._cell:
            self._cut = True
            return f"[{len(value)} bytes]"
        return base64.b64encode(value).decode("ascii")


def _distinct(names: list[str]) -> list[str]:
    """Column names, the second `a` being `a_2`."""
    seen: dict[str, int] = {}
    columns: list[str] = []
    for name in names:
        unique = name
        while unique in seen:
            seen[name] += 1
            unique = f"{name}_{seen[name]}"
        seen[unique] = 1
        columns.append(unique)
    return columns
