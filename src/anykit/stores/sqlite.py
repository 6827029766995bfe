"""Records in an SQLite file: one thread writes, in batches; another reads; the event loop waits for neither.

`append` puts a row on a queue and, at most once a batch, wakes the writer. A batch is one transaction.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from anykit.capabilities import Json, JsonObject

from . import migrations
from .paths import private_folder
from .records import (
    LogEntry,
    Record,
    RecordError,
    bounded,
    check_filters,
    check_names,
    encode,
    encode_row,
    encode_rows,
    is_name,
)

if TYPE_CHECKING:
    import sqlite3  # imported in the threads, when the file is opened

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

HOUSEKEEPING = 60.0
"""Seconds between two removals of what is over."""
RETRY = 1.0
"""Seconds until rows that could not be written are tried again."""
TOGETHER = 1000
"""Rows of one statement."""
_INSERT = """
INSERT INTO log (log, at, row)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]') FROM json_each(?)
"""
JOIN_TIMEOUT = 5.0
"""Seconds that closing waits for a read that still runs."""


class _Job:
    """Something to run with the thread's connection, and who waits for it."""

    __slots__ = ("_future", "_loop", "run")

    def __init__(self, run: Callable[[sqlite3.Connection], Any]) -> None:
        self.run = run
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[Any] = self._loop.create_future()

    async def done(self) -> Any:
        return await self._future

    def succeed(self, result: Any) -> None:
        self._tell(lambda: self._future.set_result(result))

    def fail(self, error: Exception) -> None:
        self._tell(lambda: self._future.set_exception(error))

    def _tell(self, settle: Callable[[], None]) -> None:
        def unless_cancelled() -> None:
            if not self._future.done():
                settle()

        with contextlib.suppress(RuntimeError):  # the loop that asked is closed
            self._loop.call_soon_threadsafe(unless_cancelled)


class SqliteRecords:
    """Records in the file `path` (0600, WAL), made with its folder when first used.

    At most `max_pending` rows wait to be written, more are dropped and counted; each log keeps its newest `keep_rows`
    rows. `batch_every` seconds go by between two batches of rows.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        batch_every: float = 0.05,
        max_pending: int = 100_000,
        keep_rows: int = 1_000_000,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.path = Path(path)
        self._batch_every = batch_every
        self._max_pending = max_pending
        self._keep_rows = keep_rows
        self._now = now
        self._rows: deque[tuple[str, float, Json]] = deque()
        self._writes: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._reads: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._reader: threading.Thread | None = None
        self._awake = False
        """The writer has been told that rows wait, and has not taken them yet."""
        self._closing: _Job | None = None
        self._dropped_here = 0
        """Counted on the caller's side; the writer counts its own, so that no lock is needed."""
        self._dropped_there = 0
        self._next_housekeeping = 0.0

    async def put(
        self, kind: str, key: str, value: Json, *, principal: str = "local", expires_at: float | None = None
    ) -> None:
        check_names(kind, key, principal)
        row = (kind, key, principal, encode(value), self._now(), expires_at)

        def run(connection: sqlite3.Connection) -> None:
            # What is over does not live on in the time of its successor.
            connection.execute(
                "DELETE FROM record WHERE kind = ? AND key = ? AND principal = ? AND expires_at <= ?",
                (*row[:3], row[4]),
            )
            connection.execute(
                "INSERT INTO record (kind, key, principal, value, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at",
                row,
            )

        await self._write(run)

    async def get(self, kind: str, key: str, *, principal: str | None = None) -> Record | None:
        if not is_name(key):
            return None
        found = await self._select("kind = ? AND key = ?", (kind, key), principal, 1)
        return found[0] if found else None

    async def delete(self, kind: str, key: str, *, principal: str | None = None) -> bool:
        now = self._now()
        if not is_name(key):
            return False

        def run(connection: sqlite3.Connection) -> bool:
            live = connection.execute(
                "DELETE FROM record WHERE kind = ?1 AND key = ?2 AND (?3 IS NULL OR principal = ?3)"
                " AND (expires_at IS NULL OR expires_at > ?4)",
                (kind, key, principal, now),
            )
            return live.rowcount > 0

        return await self._write(run)

    async def list(
        self, kind: str, *, principal: str | None = None, after: Record | None = None, limit: int = 1000
    ) -> Sequence[Record]:
        start = ("", "") if after is None else (after.key, after.principal)
        return await self._select("kind = ? AND (key, principal) > (?, ?)", (kind, *start), principal, bounded(limit))

    def append(self, log: str, rows: Sequence[JsonObject]) -> None:
        pending = self._rows
        if self._closing is not None or len(pending) + len(rows) > self._max_pending:
            self._dropped_here += len(rows)
            return
        at = self._now()
        for row in rows:
            pending.append((log, at, row))
        if not self._awake:
            self._awake = True
            self._start_writer()
            self._writes.put(None)

    async def tail(
        self, log: str, limit: int = 100, filters: Mapping[str, Json] | None = None, *, after: int = 0
    ) -> Sequence[LogEntry]:
        conditions = ["log = ?", "id > ?"]
        values: list[Any] = [log, after]
        for field, value in check_filters(filters).items():
            path = f'$."{field}"'
            if value is None:
                conditions.append("json_extract(row, ?) IS NULL")
                values.append(path)
            elif isinstance(value, bool):
                conditions.append("json_type(row, ?) = ?")
                values += [path, "true" if value else "false"]
            else:
                kinds = "('text')" if isinstance(value, str) else "('integer', 'real')"
                conditions.append(f"json_extract(row, ?) = ? AND json_type(row, ?) IN {kinds}")
                values += [path, value, path]
        values.append(bounded(limit))
        sql = f"SELECT id, at, row FROM log WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT ?"

        def run(connection: sqlite3.Connection) -> list[LogEntry]:
            rows = connection.execute(sql, values).fetchall()
            return [LogEntry(id, at, json.loads(row)) for id, at, row in reversed(rows)]

        await self.flush()
        return await self._read(run)

    @property
    def dropped(self) -> int:
        return self._dropped_here + self._dropped_there

    async def flush(self) -> None:
        await self._write(lambda connection: None)

    async def close(self) -> None:
        if self._closing is None:
            self._closing = _Job(lambda connection: None)
            if self._writer is None:
                self._closing.succeed(None)
            else:
                self._writes.put(self._closing)
            if self._reader is not None:
                self._reads.put(None)
                await asyncio.to_thread(self._reader.join, JOIN_TIMEOUT)
        with contextlib.suppress(RecordError):  # logged where it happened; there is nothing left to do about it
            await self._closing.done()

    async def _select(self, condition: str, values: tuple[str, ...], principal: str | None, limit: int) -> list[Record]:
        sql = (
            "SELECT kind, key, principal, value, created_at, expires_at FROM record"
            f" WHERE {condition} AND (expires_at IS NULL OR expires_at > ?)"
            f"{'' if principal is None else ' AND principal = ?'} ORDER BY key, principal LIMIT ?"
        )
        parameters = (*values, self._now(), *(() if principal is None else (principal,)), limit)

        def run(connection: sqlite3.Connection) -> list[Record]:
            rows = connection.execute(sql, parameters).fetchall()
            return [
                Record(kind, key, owner, json.loads(value), created_at, expires_at)
                for kind, key, owner, value, created_at, expires_at in rows
            ]

        return await self._read(run)

    # What the loop asks of the threads.

    async def _write(self, run: Callable[[sqlite3.Connection], Result]) -> Result:
        self._check_open()
        self._start_writer()
        job = _Job(run)
        self._writes.put(job)
        return await job.done()

    async def _read(self, run: Callable[[sqlite3.Connection], Result]) -> Result:
        self._check_open()
        if self._reader is None:
            await self.flush()  # the writer makes the file and its tables
            self._check_open()
            if self._reader is None:
                self._reader = threading.Thread(target=self._read_jobs, name="anykit-records-read", daemon=True)
                self._reader.start()
        job = _Job(run)
        self._reads.put(job)
        return await job.done()

    def _check_open(self) -> None:
        if self._closing is not None:
            raise RecordError("the records are closed")

    def _start_writer(self) -> None:
        if self._writer is None:
            self._writer = threading.Thread(target=self._write_batches, name="anykit-records-write", daemon=True)
            self._writer.start()

    # The threads.

    def _read_jobs(self) -> None:
        connection: sqlite3.Connection | None = None
        while (job := self._reads.get()) is not None:
            try:
                connection = connection or self._connect(reading=True)
                job.succeed(job.run(connection))
            except Exception as error:
                job.fail(self._explain(error))
        while not self._reads.empty():
            late = self._reads.get()
            if late is not None:
                late.fail(RecordError("the records are closed"))
        if connection is not None:
            connection.close()

    def _write_batches(self) -> None:
        connection: sqlite3.Connection | None = None
        failing = False
        while True:
            jobs = self._next_jobs(RETRY if failing else self._batch_every, failing=failing)
            self._awake = False  # before the rows are taken: a row that comes from now on wakes us again
            rows = [self._rows.popleft() for _ in range(len(self._rows))]
            if not jobs and not rows:
                continue
            closing = self._closing is not None and self._closing in jobs
            try:
                connection = connection or self._open()
                results = self._batch(connection, jobs, rows)
            except Exception as error:
                explained = self._explain(error)
                if not failing or closing:
                    logger.error("%s; %d rows wait", explained, len(rows))
                failing = bool(rows)
                if closing:
                    self._dropped_there += len(rows)
                else:
                    self._rows.extendleft(reversed(rows))
                if connection is not None:
                    connection.close()
                    connection = None
                for job in jobs:
                    job.fail(explained)
            else:
                failing = False
                for job, (result, error) in zip(jobs, results, strict=True):
                    if error is None:
                        job.succeed(result)
                    else:
                        job.fail(error)
            if closing:
                if connection is not None:
                    connection.close()
                while not self._writes.empty():
                    late = self._writes.get()
                    if late is not None:
                        late.fail(RecordError("the records are closed"))
                return

    def _next_jobs(self, pause: float, *, failing: bool) -> list[_Job]:
        """Wait for something to do. Rows alone wait for `pause` seconds for company; a job goes at once."""
        job: _Job | None = None
        if not failing:
            job = self._writes.get()
        if job is None:
            until = time.monotonic() + pause
            while job is None and (left := until - time.monotonic()) > 0:
                try:
                    job = self._writes.get(timeout=left)
                except queue.Empty:
                    break
        jobs = [job] if job is not None else []
        while not self._writes.empty():
            more = self._writes.get()
            if more is not None:
                jobs.append(more)
        return jobs

    def _batch(
        self, connection: sqlite3.Connection, jobs: list[_Job], rows: list[tuple[str, float, Json]]
    ) -> list[tuple[Any, RecordError | None]]:
        """One transaction. A job that fails alone leaves the others as they are."""
        import sqlite3  # noqa: PLC0415 - 20 ms and 2 MB that most programs never need

        results: list[tuple[Any, RecordError | None]] = []
        lost = 0
        connection.execute("BEGIN IMMEDIATE")
        try:
            for job in jobs:
                try:
                    results.append((job.run(connection), None))
                except sqlite3.OperationalError:  # the file, not the job: nothing can be written
                    raise
                except Exception as error:
                    results.append((None, self._explain(error)))

            for start in range(0, len(rows), TOGETHER):
                lost += self._insert(connection, rows[start : start + TOGETHER])
            if time.monotonic() >= self._next_housekeeping:
                self._keep_house(connection)
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        if lost:
            self._dropped_there += lost
            logger.error("%d rows were not JSON and are lost", lost)
        return results

    def _insert(self, connection: sqlite3.Connection, rows: list[tuple[str, float, Json]]) -> int:
        """Write rows; how many were lost because they are no JSON objects.

        All of them in one statement: between two statements this thread and the loop's would fight for the interpreter,
        which costs the loop more than the writing does.
        """
        try:
            for log in {log for log, _, _ in rows}:
                check_names(log)
            together = encode_rows(rows)
        except ValueError:
            good: list[tuple[str, float, Json]] = []
            for row in rows:
                with contextlib.suppress(ValueError):
                    check_names(row[0])
                    encode_row(row[2])
                    good.append(row)
            if len(good) < len(rows):
                return len(rows) - len(good) + (self._insert(connection, good) if good else 0)
            raise
        connection.execute(_INSERT, (together,))
        return 0

    def _keep_house(self, connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM record WHERE expires_at <= ?", (self._now(),))
        for (log,) in connection.execute("SELECT DISTINCT log FROM log").fetchall():
            connection.execute(
                "DELETE FROM log WHERE log = ?1 AND id <= ("
                "SELECT id FROM log WHERE log = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
                (log, self._keep_rows),
            )
        self._next_housekeeping = time.monotonic() + HOUSEKEEPING

    def _open(self) -> sqlite3.Connection:
        """Make the file where it is missing, private to its user, and bring its tables up to date."""
        private_folder(self.path.parent)
        # SQLite gives its -wal and -shm files the mode of the database.
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(handle, 0o600)
        finally:
            os.close(handle)
        connection = self._connect(reading=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            self._migrate(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self, *, reading: bool) -> sqlite3.Connection:
        import sqlite3  # noqa: PLC0415 - 20 ms and 2 MB that most programs never need

        connection = sqlite3.connect(self.path, timeout=5.0, isolation_level=None, check_same_thread=False)
        if reading:
            connection.execute("PRAGMA query_only = ON")
        return connection

    def _migrate(self, connection: sqlite3.Connection) -> None:
        known = len(migrations.SQLITE)
        connection.execute("BEGIN IMMEDIATE")  # two processes that start together migrate one after the other
        try:
            (done,) = connection.execute("PRAGMA user_version").fetchone()
            if done > known:
                raise RecordError(
                    f"{self.path} was made by a newer version of anykit: its tables are number {done},"
                    f" this version knows {known}"
                )
            for number, script in enumerate(migrations.SQLITE[done:], done + 1):
                for statement in script.split(";"):
                    if statement.strip():
                        connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise

    def _explain(self, error: Exception) -> RecordError:
        if isinstance(error, RecordError):
            return error
        return RecordError(f"the records in {self.path} cannot be used: {error}")
