"""The `database` toolkit: tables and queries of one database, read-only unless its configuration says otherwise."""

from __future__ import annotations

import asyncio
import difflib
import re
import time
import urllib.parse
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from anykit.tools import PermissionRequest, ToolError, Toolkit, tool

from . import postgres
from . import sql as statements
from .database_url import DRIVER_MODULES, Target, target
from .rows import Collected, Rows

if TYPE_CHECKING:  # 1.4 s; imported when a database is configured
    import sqlite3

    import aiosqlite
    from sqlalchemy import Connection
    from sqlalchemy.engine import Inspector
    from sqlalchemy.engine.interfaces import ReflectedColumn
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

MAX_TABLES = 2000
MAX_VALUE = 32 * 1024 * 1024
"""Bytes that one SQLite value may have."""
MAX_ERROR = 1000
CONNECTIONS = 8
"""Connections of one toolkit at a time; further calls wait."""
CANCELLING = 2.0
"""Seconds that telling a server to stop may take."""
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
        self._alone = asyncio.Semaphore(1)
        """A database in memory has one connection, which takes one call at a time."""
        self._few = asyncio.Semaphore(CONNECTIONS)

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
        rows = Collected(min(limit, self.config.row_limit), limit, self.config.cell_limit)
        reading = statement.first in statements.READING and not statements.WRITING.intersection(statement.words)

        async def ask(connection: AsyncConnection) -> Rows:
            from sqlalchemy import text  # noqa: PLC0415 - loaded by setup

            if found.url.drivername == "postgresql+asyncpg":
                raw = cast(postgres.Connection, (await connection.get_raw_connection()).driver_connection)
                return await postgres.ask(raw, statement, values, rows, read_only=self.config.read_only)
            await _hold_to_reading(connection, found, self.config)
            if not (reading or self.config.read_only):
                result = await connection.execute(text(statement.text), values)
                if not result.returns_rows:
                    changed = result.rowcount
                    if changed < 0 and found.kind == "sqlite":  # the driver counts only what begins with its verb
                        changed = (await connection.execute(text("SELECT changes()"))).scalar_one()
                    await connection.commit()
                    return Rows([], [], max(changed, 0), False, None)
                given = rows.given(list(result.keys()), lambda size: _at_once(result.fetchmany(size)))
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

    query.touches(lambda arguments: [PermissionRequest("custom", "database", {"sql": arguments["sql"]})])

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
        if not (found.kind == "sqlite" and found.file is None):
            options["poolclass"] = NullPool  # what a statement did to its connection ends with it
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
        except Exception as error:
            if isinstance(error, ToolError) or not (isinstance(error, SQLAlchemyError | OSError) or _of_driver(error)):
                raise
            text = _told(error, found)
            if "interrupted" in text or "statement timeout" in text:
                raise ToolError(f"stopped after {seconds:g} s: ask for less") from None
            if self.config.read_only and ("readonly" in text or "read-only" in text):
                raise ToolError(f"the database is configured read-only: {text}") from None
            if re.search(r"no such (table|column)|(relation|column) .* does not exist", text):
                text += " (list_tables names the tables, describe_table their columns)"
            raise ToolError(f"the database says: {text}") from None

    async def _stoppable(self, work: Callable[[AsyncConnection], Awaitable[Found]], watch: _Watch) -> Found:
        """Do it in a task of its own: a cancelled one would wait for SQLite's thread, which must be told first."""
        task = asyncio.create_task(self._with_connection(work, watch))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            watch.stopped = True
            if watch.running:
                await asyncio.wait([task], timeout=GRACE)
            task.cancel()
            task.add_done_callback(_forget)
            await asyncio.wait([task], timeout=CANCELLING)
            raise

    async def _with_connection(self, work: Callable[[AsyncConnection], Awaitable[Found]], watch: _Watch) -> Found:
        engine, found = self._connection()
        async with self._alone if found.kind == "sqlite" and found.file is None else self._few:
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


def _of_driver(error: Exception) -> bool:
    """Whether a driver raised it; what comes while rows are fetched is not wrapped by SQLAlchemy."""
    return type(error).__module__.partition(".")[0] in DRIVER_MODULES or isinstance(error, OverflowError | UnicodeError)


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


async def _at_once(rows: Found) -> Found:
    return rows
