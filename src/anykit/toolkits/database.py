"""The `database` toolkit: tables and queries of one database, read-only unless its configuration says otherwise."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import difflib
import math
import time
import urllib.parse
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from datetime import time as clock_time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from anykit.capabilities import Json
from anykit.tools import ToolError, Toolkit, tool

from . import sql as statements
from .database_url import Target, target

if TYPE_CHECKING:  # 1.4 s; imported when a database is configured
    import sqlite3

    import aiosqlite
    from sqlalchemy import Connection
    from sqlalchemy.engine import Inspector
    from sqlalchemy.engine.interfaces import ReflectedColumn
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

MAX_TABLES = 2000
MAX_RESULT = 512 * 1024
"""Characters that the cells of one result have together, at most."""
MAX_VALUE = 32 * 1024 * 1024
"""Bytes that one SQLite value may have."""
MAX_ERROR = 1000
GRACE = 5.0
"""Seconds that a stopped SQLite statement has to end by itself."""

Found = TypeVar("Found")

_READING_PRAGMAS = frozenset(
    {"table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list"}
    | {"data_version", "collation_list"}
)
_ASKING_PRAGMAS = frozenset(
    {"read_uncommitted", "encoding", "user_version", "foreign_keys", "page_size", "page_count", "schema_version"}
)
"""These change something as soon as they are given a value."""
_REFUSED_FUNCTIONS = frozenset({"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"})
_TABLE_MODULES = frozenset({"fts3", "fts4", "fts5", "rtree", "rtree_i32", "geopoly"})


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view."""

    name: str
    """With its schema where that is not the default one."""
    kind: Literal["table", "view"]


@dataclass(frozen=True, slots=True)
class Tables:
    """What can be asked."""

    tables: list[Table]
    truncated: bool


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    type: str
    nullable: bool
    default: str | None
    primary_key: bool


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Columns that name a row of another table."""

    columns: list[str]
    refers_to: str
    """A table."""
    referred_columns: list[str]


@dataclass(frozen=True, slots=True)
class Index:
    """An index of a table."""

    name: str
    columns: list[str]
    unique: bool


@dataclass(frozen=True, slots=True)
class TableDescription:
    """How a table is made."""

    name: str
    kind: Literal["table", "view"]
    columns: list[Column]
    foreign_keys: list[ForeignKey]
    indexes: list[Index]


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


class _Watch:
    """When a call's SQLite statement must stop: its time is up, or nobody waits any more."""

    __slots__ = ("deadline", "running", "stopped")

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.stopped = False
        self.running = False
        """A connection looks here."""


class _Slot:
    """What an SQLite connection asks while it works: whether the call that it works for must stop."""

    __slots__ = ("__weakref__", "watch")

    def __init__(self) -> None:
        self.watch: _Watch | None = None

    def __call__(self) -> int:
        watch = self.watch
        return 1 if watch is not None and (watch.stopped or time.monotonic() > watch.deadline) else 0


class Database(Toolkit):
    """One SQL database: list its tables, describe them, and query them; read-only unless configured otherwise."""

    name = "database"
    alias = "db"
    category = "data"
    tags = ("sql", "database")
    icon_svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2">'
        '<ellipse cx="12" cy="5" rx="8" ry="3"/><path d="M4 5v14c0 2 16 2 16 0V5M4 12c0 2 16 2 16 0"/></svg>'
    )

    class Config(BaseModel):
        """Which database, and what may be done to it."""

        model_config = ConfigDict(extra="forbid")

        url: SecretStr = Field(
            min_length=1,
            max_length=4096,
            description="SQLAlchemy URL of the database, for example sqlite:///data.db or postgresql://user:pw@host/name",
        )
        read_only: bool = Field(default=True, description="Refuse every statement that writes")
        row_limit: int = Field(default=1000, ge=1, le=10_000, description="Rows that one query gives at most")
        time_limit: float = Field(default=30.0, gt=0, le=300, description="Seconds that one call takes at most")
        cell_limit: int = Field(default=4000, ge=16, le=100_000, description="Characters of one value that are shown")

    config: Config

    def __init__(self) -> None:
        self._connected: tuple[AsyncEngine, Target] | None = None
        self._slots: weakref.WeakKeyDictionary[Any, _Slot] = weakref.WeakKeyDictionary()
        self._alone = asyncio.Lock()
        """A database in memory has one connection, which takes one call at a time."""

    async def setup(self, config: Config) -> None:
        """Connect once. Raises `ToolError`: the URL is none, not allowed, has no driver, or nobody answers."""
        bounds = None if self.bounds is None else self.bounds.database_urls
        found = await asyncio.to_thread(target, config.url.get_secret_value(), allowed=bounds)
        engine = await asyncio.to_thread(self._engine, found, config)
        self._connected = engine, found
        try:
            await self._run(_touch)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close every connection."""
        if self._connected is not None:
            engine, _ = self._connected
            self._connected = None
            await engine.dispose()

    @tool(title="List tables", read_only=True, idempotent=True, open_world=False)
    async def list_tables(self) -> Tables:
        """List the tables and views of the database."""
        tables = await self._run(_on_inspector(_tables))
        return Tables(tables[:MAX_TABLES], len(tables) > MAX_TABLES)

    @tool(title="Describe table", read_only=True, idempotent=True, open_world=False)
    async def describe_table(self, table: str) -> TableDescription:
        """Describe a table or view: its columns, keys and indexes.

        Args:
            table: Its name as list_tables gives it.
        """

        def describe(inspector: Inspector) -> TableDescription:
            tables = {found.name: found for found in _tables(inspector)}
            if table not in tables:
                raise ToolError(f"there is no table {table[:200]!r}{_similar(table, tables)}")
            return _description(inspector, tables[table])

        return await self._run(_on_inspector(describe))

    @tool(title="Query", destructive=True, open_world=False)
    async def query(self, sql: str, parameters: dict[str, Any] | list[Any] | None = None, limit: int = 100) -> Rows:
        """Run one SQL statement and give its rows.

        Values belong into `parameters`, never into the text: `WHERE name = :name` with {"name": ...}, or `WHERE name = ?`
        with [...].

        Args:
            sql: One statement, in the SQL of the database.
            parameters: Values by name for `:name`, or in order for `?`; strings, numbers, booleans or null.
            limit: How many rows to give at most.
        """
        if limit < 1:
            raise ToolError("limit is at least 1")
        _, found = self._connection()
        statement = statements.parse(sql, dialect=found.kind, marks=isinstance(parameters, list))
        enforced = found.kind in ("sqlite", "postgresql")
        statements.check(statement, read_only=self.config.read_only, enforced=enforced)
        values = _bound(statement, parameters)
        rows = _Collected(min(limit, self.config.row_limit), limit, self.config.cell_limit)
        reading = statement.first in statements.READING and not statements.WRITING.intersection(statement.words)

        async def ask(connection: AsyncConnection) -> Rows:
            from sqlalchemy import text  # noqa: PLC0415 - loaded by setup

            await _hold_to_reading(connection, found, self.config)
            if not (reading or self.config.read_only):
                result = await connection.execute(text(statement.text), values)
                if not result.returns_rows:
                    changed = result.rowcount
                    if changed < 0 and found.kind == "sqlite":  # the driver counts only what begins with its verb
                        changed = (await connection.execute(text("SELECT changes()"))).scalar_one()
                    await connection.commit()
                    return Rows([], [], max(changed, 0), False, None)
                given = rows.given(list(result.keys()), lambda size: _none_later(result.fetchmany(size)))
                collected = await given
                await connection.commit()
                return collected
            streamed = await connection.stream(text(statement.text), values, execution_options={"max_row_buffer": 8})
            try:
                collected = await rows.given(list(streamed.keys()), streamed.fetchmany)
            finally:
                await streamed.close()
            if not self.config.read_only:  # a function that was selected may have written
                await connection.commit()
            return collected

        return await self._run(ask)

    # Connections.

    def _connection(self) -> tuple[AsyncEngine, Target]:
        if self._connected is None:
            raise ToolError("the database toolkit is not configured")
        return self._connected

    def _engine(self, found: Target, config: Config) -> AsyncEngine:
        """Blocks for the import of SQLAlchemy."""
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 - 1.4 s that only this toolkit pays
        from sqlalchemy.ext.asyncio import create_async_engine  # noqa: PLC0415 - 1.4 s that only this toolkit pays
        from sqlalchemy.pool import NullPool  # noqa: PLC0415 - 1.4 s that only this toolkit pays

        options: dict[str, Any] = {"hide_parameters": True}
        if found.kind == "sqlite":
            options["async_creator"] = lambda: self._open_sqlite(found, config)
            if found.file is not None:
                options["poolclass"] = NullPool
        else:
            options |= {"pool_pre_ping": True, "pool_size": 4, "max_overflow": 4, "pool_timeout": config.time_limit}
        if found.url.drivername == "postgresql+asyncpg":
            options["connect_args"] = {
                "timeout": min(10.0, config.time_limit),
                "server_settings": {
                    "application_name": "anykit",
                    "default_transaction_read_only": "on" if config.read_only else "off",
                    "statement_timeout": str(int(config.time_limit * 1000)),
                },
            }
        try:
            return create_async_engine(found.url, **options)
        except (SQLAlchemyError, ImportError, TypeError, ValueError) as error:
            raise ToolError(f"the database cannot be used: {_told(error, found)}") from None

    async def _open_sqlite(self, found: Target, config: Config) -> aiosqlite.Connection:
        import aiosqlite  # noqa: PLC0415 - loaded with SQLAlchemy

        slot = _Slot()
        connection = aiosqlite.Connection(lambda: _sqlite_connection(found, config, slot), 64)
        thread: Any = getattr(connection, "_thread", connection)
        thread.daemon = True  # it must not keep the process from ending
        self._slots[connection] = slot
        return await connection

    async def _run(self, work: Callable[[AsyncConnection], Awaitable[Found]]) -> Found:
        """Do something with a connection, within the time limit. Raises `ToolError`."""
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 - loaded by setup

        _, found = self._connection()
        seconds = self.config.time_limit
        try:
            # A little later than the database's own watch, which can say it without losing the connection.
            async with asyncio.timeout(seconds + 0.5):
                return await self._stoppable(work, _Watch(time.monotonic() + seconds))
        except TimeoutError:
            raise ToolError(f"stopped after {seconds:g} s: ask for less") from None
        except (SQLAlchemyError, OSError, ArithmeticError, ValueError) as error:
            text = _told(error, found)
            if "interrupted" in text or "statement timeout" in text:
                raise ToolError(f"stopped after {seconds:g} s: ask for less") from None
            if self.config.read_only and ("readonly" in text or "read-only" in text):
                raise ToolError(f"the database is configured read-only: {text}") from None
            if "no such" in text or "does not exist" in text:
                text += " (list_tables names the tables, describe_table their columns)"
            raise ToolError(f"the database says: {text}") from None

    async def _stoppable(self, work: Callable[[AsyncConnection], Awaitable[Found]], watch: _Watch) -> Found:
        """Do it in a task of its own: a cancelled one would wait for SQLite's thread, which must be told first."""
        task = asyncio.create_task(self._with_connection(work, watch))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            watch.stopped = True
            if not watch.running or not (await asyncio.wait([task], timeout=GRACE))[0]:
                task.cancel()
            task.add_done_callback(_forget)
            raise

    async def _with_connection(self, work: Callable[[AsyncConnection], Awaitable[Found]], watch: _Watch) -> Found:
        engine, found = self._connection()
        async with self._alone if found.kind == "sqlite" and found.file is None else contextlib.nullcontext():
            async with engine.connect() as connection:
                raw = await connection.get_raw_connection()
                slot = self._slots.get(raw.driver_connection)
                if slot is None:
                    return await work(connection)
                slot.watch, watch.running = watch, True
                try:
                    return await work(connection)
                finally:
                    slot.watch = None


def _forget(task: asyncio.Task[Any]) -> None:
    """Nobody waits for it; what it raised is not news."""
    if not task.cancelled():
        task.exception()


async def _touch(connection: AsyncConnection) -> None:
    from sqlalchemy import text  # noqa: PLC0415 - loaded by setup

    # Reads the file's header, where there is a file: one that is no database is found out now.
    probe = "SELECT count(*) FROM sqlite_master" if connection.dialect.name == "sqlite" else "SELECT 1"
    await connection.execute(text(probe if connection.dialect.name != "oracle" else "SELECT 1 FROM dual"))


async def _hold_to_reading(connection: AsyncConnection, found: Target, config: Database.Config) -> None:
    """The transaction reads only, where the database can be told so."""
    from sqlalchemy import text  # noqa: PLC0415 - loaded by setup

    if config.read_only and found.kind in ("postgresql", "mysql", "mariadb", "oracle"):
        await connection.execute(text("SET TRANSACTION READ ONLY"))


def _sqlite_connection(found: Target, config: Database.Config, slot: _Slot) -> sqlite3.Connection:
    """Open the file so that SQLite itself refuses what is not allowed. Runs in the connection's thread."""
    import sqlite3  # noqa: PLC0415 - loaded with SQLAlchemy

    if found.file is None:
        connection = sqlite3.connect(":memory:", check_same_thread=False)
    else:
        mode = "ro" if config.read_only else "rwc"
        address = f"file:{urllib.parse.quote(found.file)}?mode={mode}"
        connection = sqlite3.connect(address, uri=True, timeout=min(5.0, config.time_limit), check_same_thread=False)
    if config.read_only:
        connection.execute("PRAGMA query_only = ON")
    connection.text_factory = _text
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.set_authorizer(_authorizer())
    connection.set_progress_handler(slot, 10_000)
    return connection


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _authorizer() -> Callable[[int, str | None, str | None, str | None, str | None], int]:
    """Keeps a statement in its file and its connection as it is. Writing is stopped elsewhere: by how the file was opened."""
    import sqlite3  # noqa: PLC0415 - loaded with SQLAlchemy

    def allowed(action: int, first: str | None, second: str | None) -> bool:
        if action == sqlite3.SQLITE_FUNCTION:
            return (second or "").lower() not in _REFUSED_FUNCTIONS
        if action == sqlite3.SQLITE_PRAGMA:
            name = (first or "").lower()
            return name in _READING_PRAGMAS or (name in _ASKING_PRAGMAS and second is None)
        if action == sqlite3.SQLITE_CREATE_VTABLE:
            return (second or "").lower() in _TABLE_MODULES
        return action not in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH)

    def authorize(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
        return sqlite3.SQLITE_OK if allowed(action, first, second) else sqlite3.SQLITE_DENY

    return authorize


def _told(error: Exception, found: Target) -> str:
    """What the driver says, without SQLAlchemy's additions and without the password."""
    original = getattr(error, "orig", None)
    if isinstance(original, BaseException):
        cause = original.__cause__
        text = str(cause if isinstance(cause, Exception) and str(cause) else original)
    else:
        text = str(error)
    text = found.scrubbed(text or type(error).__name__)
    return text if len(text) <= MAX_ERROR else f"{text[:MAX_ERROR]}..."


# Schemas.


def _on_inspector(work: Callable[[Inspector], Found]) -> Callable[[AsyncConnection], Awaitable[Found]]:
    def inspected(connection: Connection) -> Found:
        from sqlalchemy import inspect  # noqa: PLC0415 - loaded by setup

        return work(inspect(connection))

    return lambda connection: connection.run_sync(inspected)


def _tables(inspector: Inspector) -> list[Table]:
    """Those of the default schema, and of others (with their names) that are not the database's own."""
    default = inspector.default_schema_name
    tables: list[Table] = []
    for schema in _schemas(inspector):
        prefix = "" if schema in (None, default) else f"{schema}."
        tables += [Table(prefix + name, "table") for name in sorted(inspector.get_table_names(schema))]
        tables += [Table(prefix + name, "view") for name in sorted(inspector.get_view_names(schema))]
        if len(tables) > MAX_TABLES:
            break
    return tables


def _schemas(inspector: Inspector) -> list[str | None]:
    if inspector.dialect.name != "postgresql":
        return [None]
    default = inspector.default_schema_name
    others = [
        name
        for name in inspector.get_schema_names()
        if name not in (default, "information_schema") and not name.startswith("pg_")
    ]
    return [default, *sorted(others)]


def _description(inspector: Inspector, table: Table) -> TableDescription:
    schema, name = _split(inspector, table.name)
    keys = (
        set(inspector.get_pk_constraint(name, schema)["constrained_columns"]) if table.kind == "table" else set[str]()
    )
    return TableDescription(
        name=table.name,
        kind=table.kind,
        columns=[_column(column, keys) for column in inspector.get_columns(name, schema)],
        foreign_keys=[
            ForeignKey(
                list(key["constrained_columns"]),
                ".".join(filter(None, (key.get("referred_schema"), key["referred_table"]))),
                list(key["referred_columns"]),
            )
            for key in inspector.get_foreign_keys(name, schema)
        ],
        indexes=_indexes(inspector, name, schema),
    )


def _indexes(inspector: Inspector, name: str, schema: str | None) -> list[Index]:
    if inspector.dialect.name == "sqlite":
        return _sqlite_indexes(cast("Connection", inspector.bind), name)
    return [
        Index(index["name"] or "", [column or "(expression)" for column in index["column_names"]], index["unique"])
        for index in inspector.get_indexes(name, schema)
    ]


def _sqlite_indexes(connection: Connection, table: str) -> list[Index]:
    """SQLAlchemy leaves out an index of an expression, with a warning."""
    from sqlalchemy import text  # noqa: PLC0415 - loaded by setup

    listed = connection.execute(
        text("SELECT name, \"unique\" FROM pragma_index_list(:name) WHERE origin <> 'pk'"), {"name": table}
    ).all()
    asked = text("SELECT name FROM pragma_index_info(:name) ORDER BY seqno")
    return [
        Index(
            name,
            [column or "(expression)" for column in connection.execute(asked, {"name": name}).scalars()],
            bool(unique),
        )
        for name, unique in sorted(listed)
    ]


def _split(inspector: Inspector, name: str) -> tuple[str | None, str]:
    schema, dot, rest = name.partition(".")
    if dot and schema in _schemas(inspector) and schema != inspector.default_schema_name:
        return schema, rest
    return None, name


def _column(column: ReflectedColumn, keys: set[str]) -> Column:
    try:
        kind = str(column["type"])
    except Exception:  # a type that SQLAlchemy knows no text for
        kind = type(column["type"]).__name__
    default = column.get("default")
    name = column["name"]
    return Column(name, kind, bool(column["nullable"]), None if default is None else str(default), name in keys)


def _similar(name: str, tables: Iterable[str]) -> str:
    close = difflib.get_close_matches(name[:200], list(tables)[:MAX_TABLES], n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else "; list_tables names them"


# Values.


def _bound(statement: statements.Statement, parameters: dict[str, Any] | list[Any] | None) -> dict[str, Any]:
    """The parameters by name: all that the statement asks for, and no others. Raises `ToolError`."""
    if isinstance(parameters, list):
        if len(parameters) != statement.marks:
            raise ToolError(f"the statement has {statement.marks} '?', and {len(parameters)} parameters are given")
        given: Mapping[str, Any] = {f"_{number}": value for number, value in enumerate(parameters, 1)}
    else:
        given = parameters or {}
    missing = [name for name in statement.parameters if name not in given]
    if missing:
        names = ", ".join(f":{name}" for name in missing)
        raise ToolError(f"the statement names parameters that are not given: {names}")
    unknown = [name for name in given if name not in statement.parameters]
    if unknown:
        raise ToolError(f"the statement has no parameter :{unknown[0][:100]}")
    for name, value in given.items():
        if not isinstance(value, str | int | float | bool | None):
            raise ToolError(f"parameter {name.lstrip('_')} is no plain value: a string, number, boolean or null")
        if isinstance(value, str):
            _check_text(name, value)
    return dict(given)


def _check_text(name: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ToolError(f"parameter {name.lstrip('_')} is no text: it has a lone surrogate") from None


async def _none_later(rows: Found) -> Found:
    return rows


class _Collected:
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
