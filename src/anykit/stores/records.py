"""The port onto everything that outlives a call: records with an owner and an end, and logs that only grow.

A record is named by its kind and key and belongs to a principal; two principals' records of one name never meet. Values
are JSON and are copied: what was put cannot be changed from outside. A log keeps its newest rows.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from anykit.capabilities import Json, JsonObject

MAX_LIST = 10_000
"""The most that one `list` or `tail` gives."""
MAX_NAME = 512
"""Characters of a kind, key, principal or log name."""


class RecordError(Exception):
    """The store cannot do it: it is closed, its file cannot be opened, the disk is full. The text shows no value."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record as it was read. Times are Unix seconds."""

    kind: str
    key: str
    principal: str
    value: Json
    created_at: float
    """When the name was first put."""
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One row of a log. `id` grows along the log; `at` is Unix seconds."""

    id: int
    at: float
    row: JsonObject


@runtime_checkable
class RecordStore(Protocol):
    """Every implementation passes the same contract (`tests/stores/test_records.py`)."""

    async def put(
        self, kind: str, key: str, value: Json, *, principal: str = "local", expires_at: float | None = None
    ) -> None:
        """Write a record, replacing what its owner had under that name.

        Raises `ValueError` for a value that is not JSON or a name that is empty, too long or not text, `RecordError`.
        """
        ...

    async def get(self, kind: str, key: str, *, principal: str | None = None) -> Record | None:
        """The record, or None where there is none or its time is over.

        Without `principal` it is the first of that name, whoever owns it: for the operator's own doors only.
        """
        ...

    async def delete(self, kind: str, key: str, *, principal: str | None = None) -> bool:
        """Remove a record; True for the one caller who removed it. Without `principal`: every owner's."""
        ...

    async def list(
        self, kind: str, *, principal: str | None = None, after: Record | None = None, limit: int = 1000
    ) -> Sequence[Record]:
        """Records of a kind by key, then principal, at most `limit` (10,000); `after` is the last one of the page before."""
        ...

    def append(self, log: str, rows: Sequence[JsonObject]) -> None:
        """Add rows to a log: at once, never waits, never raises. The rows must not be changed afterwards."""
        ...

    async def tail(
        self, log: str, limit: int = 100, filters: Mapping[str, Json] | None = None, *, after: int = 0
    ) -> Sequence[LogEntry]:
        """The newest `limit` (10,000) rows of a log, oldest first, that have a greater id than `after`.

        `filters` keeps the rows whose fields equal the given strings, numbers, booleans or None (None: missing or null).
        Rows appended before are seen.
        """
        ...

    @property
    def dropped(self) -> int:
        """How many rows were lost: too many were waiting, or they were not JSON."""
        ...

    async def flush(self) -> None:
        """Return once everything appended so far is kept. Raises `RecordError`."""
        ...

    async def close(self) -> None:
        """Flush and let go; may be called twice. Afterwards rows are dropped and all else raises `RecordError`."""
        ...


_JSON = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def encode(value: Json) -> str:
    """JSON text of a value. Raises `ValueError` where it is none (NaN, a set, too deep); the text shows no value."""
    try:
        return _JSON.encode(value)
    except (TypeError, ValueError, RecursionError):
        raise ValueError("a record's value is JSON: no NaN, no other types, not deeper than JSON can be") from None


def encode_row(row: Json) -> str:
    """JSON text of a log's row. Raises `ValueError` where it is not an object, or not JSON."""
    if not isinstance(row, dict):
        raise ValueError("a row is an object")
    return encode(row)


def encode_rows(rows: Sequence[tuple[str, float, Json]]) -> str:
    """JSON text of (log, time, row) triples. Raises `ValueError` where one is not an object, or not JSON."""
    for _, _, row in rows:
        if not isinstance(row, dict):
            raise ValueError("a row is an object")
    return encode(rows)


def is_name(name: str) -> bool:
    """Whether it can name a record: 1 to 512 characters, no lone surrogate."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return 0 < len(name) <= MAX_NAME


def check_names(*names: str) -> None:
    """Raises `ValueError` where one is no name."""
    for name in names:
        if not is_name(name):
            raise ValueError(f"a name in the records is text of 1 to {MAX_NAME} characters; this one has {len(name)}")


def check_filters(filters: Mapping[str, Json] | None) -> dict[str, str | int | float | bool | None]:
    """The filters, if each is a plain field name and a plain value. Raises `ValueError`."""
    checked: dict[str, str | int | float | bool | None] = {}
    for field, value in (filters or {}).items():
        if not field or '"' in field or "\\" in field or len(field) > MAX_NAME:
            raise ValueError(f"not a field to filter by: {field!r}")
        if not isinstance(value, str | int | float | bool | None):
            raise ValueError(f"a filter compares with a string, number, boolean or None: {field!r}")
        if isinstance(value, int) and abs(value) >= 2**63:
            raise ValueError(f"a filter's number is within 64 bits: {field!r}")
        checked[field] = value
    return checked


def bounded(limit: int) -> int:
    """The limit, between 1 and `MAX_LIST`."""
    return max(1, min(limit, MAX_LIST))


def _equal(found: Json, wanted: Json) -> bool:
    """JSON equality of plain values: true is not 1, 1 is 1.0."""
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    return found == wanted


_SETTLE_AT = 1000
"""Rows that a log in memory keeps as they came before it turns them into text."""


@dataclass(slots=True)
class _Kept:
    """A record in memory: its value as JSON text."""

    value: str
    created_at: float
    expires_at: float | None


class MemoryRecords:
    """Records that die with the process. A log keeps its newest `keep_rows` rows."""

    def __init__(self, *, keep_rows: int = 10_000, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._keep_rows = keep_rows
        self._records: dict[tuple[str, str, str], _Kept] = {}
        self._pending: list[tuple[str, float, Json]] = []
        self._logs: dict[str, deque[tuple[int, float, str]]] = {}
        self._next_id = 1
        self._dropped = 0
        self._closed = False

    async def put(
        self, kind: str, key: str, value: Json, *, principal: str = "local", expires_at: float | None = None
    ) -> None:
        self._check_open()
        check_names(kind, key, principal)
        text = encode(value)
        now = self._purge()
        old = self._records.get((kind, key, principal))
        self._records[kind, key, principal] = _Kept(text, old.created_at if old else now, expires_at)

    async def get(self, kind: str, key: str, *, principal: str | None = None) -> Record | None:
        self._check_open()
        self._purge()
        if principal is not None:
            kept = self._records.get((kind, key, principal))
            return _record((kind, key, principal), kept) if kept else None
        return min(
            (_record(name, kept) for name, kept in self._records.items() if name[:2] == (kind, key)),
            key=lambda record: record.principal,
            default=None,
        )

    async def delete(self, kind: str, key: str, *, principal: str | None = None) -> bool:
        self._check_open()
        self._purge()
        names = [name for name in self._records if name[:2] == (kind, key) and principal in (None, name[2])]
        for name in names:
            del self._records[name]
        return bool(names)

    async def list(
        self, kind: str, *, principal: str | None = None, after: Record | None = None, limit: int = 1000
    ) -> Sequence[Record]:
        self._check_open()
        self._purge()
        start = (kind, "", "") if after is None else (kind, after.key, after.principal)
        names = sorted(
            name for name in self._records if name[0] == kind and name > start and principal in (None, name[2])
        )
        return [_record(name, self._records[name]) for name in names[: bounded(limit)]]

    def append(self, log: str, rows: Sequence[JsonObject]) -> None:
        if self._closed:
            self._dropped += len(rows)
            return
        at = self._now()
        for row in rows:
            self._pending.append((log, at, row))
        if len(self._pending) >= _SETTLE_AT:
            self._settle()

    async def tail(
        self, log: str, limit: int = 100, filters: Mapping[str, Json] | None = None, *, after: int = 0
    ) -> Sequence[LogEntry]:
        self._check_open()
        wanted = check_filters(filters)
        await self.flush()
        found: list[LogEntry] = []
        for id, at, text in reversed(self._logs.get(log, ())):
            if id <= after or len(found) == bounded(limit):
                break
            row = json.loads(text)
            if all(_equal(row.get(field), value) for field, value in wanted.items()):
                found.append(LogEntry(id, at, row))
        return found[::-1]

    @property
    def dropped(self) -> int:
        return self._dropped

    async def flush(self) -> None:
        self._check_open()
        self._settle()

    async def close(self) -> None:
        self._settle()
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise RecordError("the records are closed")

    def _settle(self) -> None:
        """Keep what was appended, as text; what is not JSON is dropped."""
        for log, at, row in self._pending:
            try:
                check_names(log)
                text = encode_row(row)
            except ValueError:
                self._dropped += 1
            else:
                self._logs.setdefault(log, deque(maxlen=self._keep_rows)).append((self._next_id, at, text))
                self._next_id += 1
        self._pending.clear()

    def _purge(self) -> float:
        now = self._now()
        over = [name for name, kept in self._records.items() if kept.expires_at is not None and kept.expires_at <= now]
        for name in over:
            del self._records[name]
        return now


def _record(name: tuple[str, str, str], kept: _Kept) -> Record:
    kind, key, principal = name
    return Record(kind, key, principal, json.loads(kept.value), kept.created_at, kept.expires_at)
