"""A statement to PostgreSQL through asyncpg itself.

SQLAlchemy fetches fifty rows at a time, however large; and asyncpg wants a date for a date, where a caller's JSON has a
string. Here the statement is prepared first, so that both are known.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol

from anykit.tools import ToolError

from .rows import Collected, Rows
from .sql import Statement


class Named(Protocol):
    """A type or a column."""

    @property
    def name(self) -> str: ...


class Cursor(Protocol):
    async def fetch(self, n: int) -> Iterable[Iterable[Any]]: ...


class Prepared(Protocol):
    def get_parameters(self) -> Iterable[Named]: ...
    def get_attributes(self) -> Iterable[Named]: ...
    def get_statusmsg(self) -> str: ...
    async def fetch(self, *values: Any) -> object: ...
    async def cursor(self, *values: Any) -> Cursor: ...


class Connection(Protocol):
    """What we use of an asyncpg connection; the package is an extra."""

    def transaction(self, *, readonly: bool) -> AbstractAsyncContextManager[None]: ...
    async def prepare(self, query: str) -> Prepared: ...


async def ask(
    connection: Connection, statement: Statement, values: Mapping[str, Any], rows: Collected, *, read_only: bool
) -> Rows:
    """Run a statement in a transaction of its own. Raises `ToolError` for a value of the wrong kind, asyncpg's errors."""
    async with connection.transaction(readonly=read_only):
        prepared = await connection.prepare(statement.numbered)
        given = [
            _fitting(name, values[name], kind.name)
            for name, kind in zip(statement.parameters, prepared.get_parameters(), strict=True)
        ]
        columns = [column.name for column in prepared.get_attributes()]
        if not columns:
            await prepared.fetch(*given)
            changed = prepared.get_statusmsg().rpartition(" ")[2]
            return Rows([], [], int(changed) if changed.isdigit() else 0, False, None)
        cursor = await prepared.cursor(*given)
        return await rows.given(columns, cursor.fetch)


def _fitting(name: str, value: Any, kind: str) -> Any:
    """The value as asyncpg takes it for a parameter of this type."""
    read = _READERS.get(kind)
    if read is None or value is None or isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    if not isinstance(value, str) and kind != "numeric":
        return value
    try:
        return read(str(value))
    except (ValueError, InvalidOperation, binascii.Error):
        raise ToolError(f"parameter {name.lstrip('_')} is no {kind}: write it {_SPELLINGS[kind]}") from None


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


_READERS: dict[str, Callable[[str], Any]] = {
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timetz": time.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "timestamptz": datetime.fromisoformat,
    "numeric": Decimal,
    "bytea": _bytes,
}
_SPELLINGS = dict.fromkeys(_READERS, "as in ISO 8601") | {"numeric": "as a decimal number", "bytea": "in base64"}
