"""The database toolkit on real SQLite files: what it tells, and what it cannot be made to do."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from anykit.toolkits.database import Column, Database, ForeignKey, Index, Table
from anykit.tools import Bounds, ToolError

pytestmark = pytest.mark.anyio

Open = Callable[..., Awaitable[Database]]

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            """
            CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL DEFAULT 'x', photo BLOB, joined DATE);
            CREATE TABLE "order" (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customer(id), total REAL);
            CREATE UNIQUE INDEX customer_name ON customer (name);
            CREATE INDEX customer_lower ON customer (lower(name), id);
            CREATE VIEW spending AS SELECT name, sum(total) AS spent FROM customer JOIN "order" ON customer_id = customer.id;
            CREATE VIRTUAL TABLE note USING fts5(body);
            INSERT INTO customer (name, photo, joined) VALUES ('alice', x'00ff', '2026-01-02'), ('bob', NULL, NULL);
            INSERT INTO "order" (customer_id, total) VALUES (1, 9.5), (1, 0.5), (2, 3);
            INSERT INTO note VALUES ('hello world');
            """
        )
    connection.close()
    return path


@pytest.fixture
async def kits() -> Any:
    opened: list[Database] = []

    async def open_kit(url: str, *, bounds: Bounds | None = None, **config: Any) -> Database:
        kit = Database()
        kit.bounds = bounds
        kit.config = Database.Config(url=url, **config)  # pyright: ignore[reportArgumentType]
        opened.append(kit)
        await kit.setup(kit.config)
        return kit

    yield open_kit
    for kit in opened:
        await kit.close()


@pytest.fixture
async def db(file: Path, kits: Open) -> Database:
    return await kits(f"sqlite:///{file}")


@pytest.fixture
async def writable(file: Path, kits: Open) -> Database:
    return await kits(f"sqlite:///{file}", read_only=False)


def contents(file: Path) -> list[Any]:
    connection = sqlite3.connect(file)
    try:
        return [
            connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall(),
            connection.execute("SELECT * FROM customer ORDER BY id").fetchall(),
        ]
    finally:
        connection.close()


# What it is.


def test_its_definition_is_the_promised_one() -> None:
    spec = Database.spec()
    assert list(spec.tools) == ["list_tables", "describe_table", "query"]
    assert spec.schema["required"] == ["url"]
    assert spec.schema["properties"]["url"]["writeOnly"] is True
    assert spec.schema["properties"]["read_only"]["default"] is True
    assert list(spec.tools["query"].input_schema["properties"]) == ["sql", "parameters", "limit"]
    assert spec.tools["query"].input_schema["properties"]["limit"]["default"] == 100
    assert spec.tools["list_tables"].annotations.read_only is True
    assert spec.tools["query"].annotations.read_only is None


async def test_every_tool_runs_through_its_schemas(db: Database) -> None:
    for tool, arguments, expected in (
        (db.list_tables, {}, "spending"),
        (db.describe_table, {"table": "customer"}, "customer_name"),
        (db.query, {"sql": "SELECT name FROM customer WHERE id = :id", "parameters": {"id": 1}}, "alice"),
    ):
        result = await tool.execute(arguments)
        assert not result.is_error, result.output
        assert expected in result.output


async def test_tables_and_views_are_listed(db: Database) -> None:
    tables = (await db.list_tables()).tables
    assert Table("customer", "table") in tables
    assert Table("order", "table") in tables
    assert Table("spending", "view") in tables


async def test_a_table_is_described(db: Database) -> None:
    customer = await db.describe_table("customer")
    assert customer.columns == [
        Column("id", "INTEGER", True, None, True),
        Column("name", "TEXT", False, "'x'", False),
        Column("photo", "BLOB", True, None, False),
        Column("joined", "DATE", True, None, False),
    ]
    assert customer.indexes == [
        Index("customer_lower", ["(expression)", "id"], False),
        Index("customer_name", ["name"], True),
    ]
    order = await db.describe_table("order")
    assert order.foreign_keys == [ForeignKey(["customer_id"], "customer", ["id"])]
    view = await db.describe_table("spending")
    assert (view.kind, [column.name for column in view.columns]) == ("view", ["name", "spent"])


@pytest.mark.parametrize("name", ["customers", "", "custom'; DROP TABLE customer; --", "x" * 10_000])
async def test_a_table_that_is_not_there_names_what_is(db: Database, file: Path, name: str) -> None:
    before = contents(file)
    with pytest.raises(ToolError, match="there is no table") as refused:
        await db.describe_table(name)
    assert len(str(refused.value)) < 500
    if name == "customers":
        assert "did you mean 'customer'" in str(refused.value)
    assert contents(file) == before


# Queries.


async def test_rows_come_by_column_name(db: Database) -> None:
    given = await db.query("SELECT id, name, photo, joined FROM customer ORDER BY id")
    assert given.columns == ["id", "name", "photo", "joined"]
    assert given.rows == [
        {"id": 1, "name": "alice", "photo": "AP8=", "joined": "2026-01-02"},
        {"id": 2, "name": "bob", "photo": None, "joined": None},
    ]
    assert (given.row_count, given.truncated, given.note) == (2, False, None)


@pytest.mark.parametrize(
    ("sql", "parameters", "expected"),
    [
        ("SELECT :a AS x", {"a": 1}, 1),
        ("SELECT :a || :b || :a AS x", {"a": "1", "b": "'"}, "1'1"),
        ("SELECT ? || ? AS x", ["a", "b"], "ab"),
        ("SELECT '?' || ? AS x -- ? :no\n", ["a"], "?a"),
        ("SELECT ':a' || \"name\" AS x FROM customer WHERE id = :a /* :b ; */", {"a": 1}, ":aalice"),
        ("SELECT '12:30:45' AS x", None, "12:30:45"),
        ("SELECT 'a\\:b' AS x", None, "a\\:b"),
        ("SELECT '100%' AS x", None, "100%"),
        ("SELECT 'it''s; :fine' AS x;", None, "it's; :fine"),
        ("SELECT 'é\u2028' AS x ; -- end", None, "é\u2028"),
        ("SELECT :none IS NULL AS x", {"none": None}, 1),
        ("SELECT :yes AS x", {"yes": True}, 1),
        ("SELECT 1.5 AS x", None, 1.5),
        ("SELECT 9223372036854775807 AS x", None, 2**63 - 1),
        ("SELECT 1e999 AS x", None, "inf"),
        ("SELECT x'' AS x", None, ""),
        ("SELECT CAST(x'ff41' AS TEXT) AS x", None, "\ufffdA"),
        ("VALUES (7)", None, 7),
        ("SELECT replace('aba', 'a', 'c') AS x", None, "cbc"),
        ("SELECT body AS x FROM note WHERE note MATCH 'hello'", None, "hello world"),
        ("SELECT name AS x FROM pragma_table_info('order') WHERE pk", None, "id"),
        ("WITH a AS (SELECT 5 AS n) SELECT n AS x FROM a", None, 5),
        ("select name as x from [customer] where id = 1", None, "alice"),
        ("SELECT name AS x FROM `customer` WHERE id = 1", None, "alice"),
    ],
)
async def test_a_value_is_never_part_of_the_text(db: Database, sql: str, parameters: Any, expected: Any) -> None:
    given = await db.query(sql, parameters)
    assert list(given.rows[0].values()) == [expected]
    result = await db.query.execute({"sql": sql, "parameters": parameters})
    assert not result.is_error, result.output


@pytest.mark.parametrize(
    ("sql", "parameters", "reason"),
    [
        ("SELECT :a, :b", {"a": 1}, ":b"),
        ("SELECT 1", {"a": 1}, "no parameter :a"),
        ("SELECT ?", [1, 2], r"1 '\?', and 2 parameters"),
        ("SELECT :a", {"a": [1]}, "no plain value"),
        ("SELECT :a", {"a": {"b": 1}}, "no plain value"),
        ("SELECT :a", {"a": "\ud800"}, "lone surrogate"),
        ("SELECT :a", {"a": 2**64}, "too large|int"),
        ("", None, "empty"),
        (" ; -- nothing", None, "empty"),
        ("SELECT 'open", None, "no end"),
        ('SELECT "open', None, "no end"),
        ("SELECT /* open", None, "no end"),
        ("SELECT 1\0", None, "NUL"),
        ("SELECT " + "1," * 60_000 + "1", None, "100000 characters"),
        ("SELEC 1", None, "SELEC is not allowed"),
        ("SELECT nope FROM customer", None, "no such column: nope.*describe_table"),
        ("SELECT * FROM customers", None, "no such table: customers.*list_tables"),
        ("SELECT FROM", None, "syntax error"),
    ],
)
async def test_a_statement_that_cannot_run_says_why(db: Database, sql: str, parameters: Any, reason: str) -> None:
    with pytest.raises(ToolError, match=reason):
        await db.query(sql, parameters)
    assert (await db.query("SELECT 1 AS x")).rows == [{"x": 1}]


async def test_equal_column_names_stay_apart(db: Database) -> None:
    given = await db.query("SELECT 1 AS a, 2 AS a, 3 AS a_2, 4 AS a")
    assert given.columns == ["a", "a_2", "a_2_2", "a_3"]
    assert given.rows == [{"a": 1, "a_2": 2, "a_2_2": 3, "a_3": 4}]


# Read-only.


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM customer",
        "delete from customer",
        "/* SELECT */ DELETE FROM customer",
        "-- SELECT\nDELETE FROM customer",
        "WITH x AS (SELECT 1) DELETE FROM customer",
        "WITH x AS (SELECT 1) INSERT INTO customer (name) SELECT 'c' FROM x",
        "WITH x AS (SELECT 1) UPDATE customer SET name = 'x' WHERE id = 1",
        "INSERT INTO customer (name) VALUES ('c') RETURNING id",
        "REPLACE INTO customer (id, name) VALUES (1, 'c')",
        "UPDATE customer SET name = 'x'",
        "CREATE TABLE t (x)",
        "CREATE TEMP TABLE t (x)",
        "CREATE TABLE t AS SELECT * FROM customer",
        "DROP TABLE customer",
        "ALTER TABLE customer RENAME TO c",
        "PRAGMA query_only = OFF",
        "PRAGMA writable_schema = ON",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA user_version = 7",
        "ATTACH DATABASE 'other.db' AS other",
        "DETACH DATABASE main",
        "VACUUM",
        "VACUUM INTO 'copy.db'",
        "REINDEX",
        "ANALYZE",
        "BEGIN IMMEDIATE",
        "COMMIT",
        "SELECT 1; DELETE FROM customer",
        "SELECT 1;; DELETE FROM customer",
        "SELECT 1 /* ; */ ; -- \n DROP TABLE customer",
        "SELECT load_extension('x')",
        "SELECT writefile('x', 'y')",
        "SELECT * FROM pragma_journal_mode('delete')",
        "INSERT INTO note VALUES ('x')",
        "EXPLAIN DELETE FROM customer; DELETE FROM customer",
    ],
)
async def test_read_only_means_read_only(db: Database, file: Path, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    before = contents(file)
    result = await db.query.execute({"sql": sql})
    assert result.is_error
    assert "unexpectedly" not in result.output
    assert contents(file) == before
    assert os.listdir(file.parent) == ["shop.db"]
    assert (await db.query("SELECT count(*) AS n FROM customer")).rows == [{"n": 2}]


async def test_what_may_write_may_not_reach_other_files(
    writable: Database, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    for sql in (
        "ATTACH 'other.db' AS other", "VACUUM INTO 'copy.db'", "PRAGMA journal_mode = WAL", "SELECT load_extension('x')",
        "CREATE VIRTUAL TABLE t USING csv(filename = '/etc/passwd')", "BEGIN", "ROLLBACK", "SAVEPOINT a",
        "DELETE FROM customer; DELETE FROM note",
    ):  # fmt: skip
        with pytest.raises(ToolError):
            await writable.query(sql)
    assert os.listdir(file.parent) == ["shop.db"]
    assert len(contents(file)[1]) == 2


async def test_writes_are_kept_where_they_are_allowed(writable: Database, file: Path) -> None:
    assert (await writable.query("INSERT INTO customer (name) VALUES (:n)", {"n": "carol"})).row_count == 1
    returned = await writable.query("INSERT INTO customer (name) VALUES ('dave') RETURNING id, name")
    assert returned.rows == [{"id": 4, "name": "dave"}]
    assert (await writable.query("UPDATE customer SET joined = '2026' WHERE id > 2")).row_count == 2
    assert (
        await writable.query("WITH x AS (SELECT 4 AS i) DELETE FROM customer WHERE id IN (SELECT i FROM x)")
    ).row_count == 1
    assert (await writable.query("CREATE TABLE t (x)")).rows == []
    assert (await writable.query("SELECT name FROM customer WHERE id = 3")).rows == [{"name": "carol"}]
    names = [row[1] for row in contents(file)[1]]
    assert names == ["alice", "bob", "carol"]


async def test_a_write_that_fails_changes_nothing(writable: Database, file: Path) -> None:
    before = contents(file)
    with pytest.raises(ToolError, match="UNIQUE constraint failed"):
        await writable.query("INSERT INTO customer (name) VALUES ('new'), ('alice')")
    assert contents(file) == before


# Limits.


async def test_rows_are_cut_at_the_limit_and_it_says_so(db: Database, file: Path, kits: Open) -> None:
    given = await db.query(f"{ENDLESS} SELECT x FROM c", limit=7)
    assert [row["x"] for row in given.rows] == [1, 2, 3, 4, 5, 6, 7]
    assert given.truncated
    assert given.note == "only the first 7 rows are given"
    assert (await db.query(f"{ENDLESS} SELECT x FROM c LIMIT 7", limit=7)).truncated is False
    assert (await db.query(f"{ENDLESS} SELECT x FROM c")).row_count == 100
    small = await kits(f"sqlite:///{file}", row_limit=3)
    given = await small.query(f"{ENDLESS} SELECT x FROM c", limit=1000)
    assert (given.row_count, given.truncated) == (3, True)
    assert "more than 3 at a time are not allowed" in (given.note or "")
    for limit in (0, -1):
        with pytest.raises(ToolError, match="at least 1"):
            await db.query("SELECT 1", limit=limit)


async def test_values_and_results_are_cut_at_their_size(file: Path, kits: Open) -> None:
    db = await kits(f"sqlite:///{file}", cell_limit=100, row_limit=10_000)
    given = await db.query("SELECT printf('%.*c', 1000, 'x') AS x, zeroblob(1000) AS b")
    assert given.rows == [{"x": "x" * 100 + "... [1000 characters]", "b": "[1000 bytes]"}]
    assert given.truncated
    assert "cut after 100 characters" in (given.note or "")
    wide = await kits(f"sqlite:///{file}", cell_limit=100_000, row_limit=10_000)
    given = await wide.query(f"{ENDLESS} SELECT printf('%.*c', 50000, 'x') AS x FROM c LIMIT 1000", limit=1000)
    assert given.row_count == 10
    assert "too large" in (given.note or "")
    with pytest.raises(ToolError, match="too big"):
        await wide.query("SELECT zeroblob(1000000000)")


async def test_a_statement_that_runs_too_long_is_stopped(file: Path, kits: Open) -> None:
    db = await kits(f"sqlite:///{file}", time_limit=0.3)
    start = time.monotonic()
    with pytest.raises(ToolError, match=r"stopped after 0\.3 s"):
        await db.query(f"{ENDLESS} SELECT count(*) FROM c")
    assert time.monotonic() - start < 3
    assert (await db.query("SELECT 1 AS x")).rows == [{"x": 1}]


async def test_a_statement_whose_caller_is_gone_is_stopped(db: Database) -> None:
    task = asyncio.create_task(db.query(f"{ENDLESS} SELECT count(*) FROM c"))
    await asyncio.wait([task], timeout=0.1)
    task.cancel()
    start = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - start < 2


async def test_many_queries_at_once(db: Database) -> None:
    given = await asyncio.gather(*(db.query("SELECT :n AS n", {"n": number}) for number in range(30)))
    assert [rows.rows[0]["n"] for rows in given] == list(range(30))


async def test_a_locked_database_is_told(writable: Database, file: Path, kits: Open) -> None:
    hasty = await kits(f"sqlite:///{file}", read_only=False, time_limit=0.2)
    blocker = sqlite3.connect(file, isolation_level=None)
    blocker.execute("BEGIN EXCLUSIVE")
    with pytest.raises(ToolError, match="locked"):
        await hasty.query("DELETE FROM customer")
    blocker.execute("ROLLBACK")
    blocker.close()


# Configuration.


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("not a url", "is not a database URL"),
        ("sqlite", "is not a database URL"),
        ("mongodb://h/x", "no driver is known|is not a database URL"),
        ("sqlite:///missing.db", "unable to open"),
        ("sqlite:///file:shop.db?mode=rwc&uri=true", "plain path"),
        ("sqlite:///shop.db?timeout=1", "no parameters"),
        ("sqlite:///a\0b", "plain path"),
        ("sqlite:///.", "unable to open|disk I/O"),
    ],
)
async def test_a_url_that_cannot_be_used_is_refused(
    kits: Open, file: Path, url: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    with pytest.raises(ToolError, match=reason):
        await kits(url)


async def test_a_file_that_is_no_database_is_refused(kits: Open, tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("hello " * 1000)
    with pytest.raises(ToolError, match="not a database"):
        await kits(f"sqlite:///{tmp_path}/x.db")


@pytest.mark.parametrize("name", ["a b.db", "a#b.db", "é.db", "a;b@c:d.db"])
async def test_a_file_may_be_called_anything(kits: Open, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    sqlite3.connect(path).executescript("CREATE TABLE t (x)").connection.close()
    url = f"sqlite:///{path}"
    assert [table.name for table in (await (await kits(url)).list_tables()).tables] == ["t"]


async def test_a_new_file_is_made_only_where_writing_is_allowed(kits: Open, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="unable to open"):
        await kits(f"sqlite:///{tmp_path}/new.db")
    assert not os.listdir(tmp_path)
    made = await kits(f"sqlite:///{tmp_path}/new.db", read_only=False)
    await made.query("CREATE TABLE t (x)")
    assert os.listdir(tmp_path) == ["new.db"]


async def test_a_write_ahead_log_can_be_read(kits: Open, file: Path) -> None:
    writer = sqlite3.connect(file, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    db = await kits(f"sqlite:///{file}")
    writer.execute("INSERT INTO customer (name) VALUES ('carol')")
    assert (await db.query("SELECT count(*) AS n FROM customer")).rows == [{"n": 3}]
    writer.close()


async def test_a_database_in_memory_lives_as_long_as_the_toolkit(kits: Open) -> None:
    db = await kits("sqlite://", read_only=False)
    await db.query("CREATE TABLE t (x)")
    await asyncio.gather(*(db.query("INSERT INTO t VALUES (:n)", {"n": number}) for number in range(10)))
    assert (await db.query("SELECT count(*) AS n FROM t")).rows == [{"n": 10}]


@pytest.mark.parametrize(
    "url",
    ["postgresql://u:hunt%40er2@127.0.0.1:1/x", "postgres://u:hunt%40er2@127.0.0.1:1/x", "mysql://u:hunt%40er2@127.0.0.1:1/x",
     "mssql+pyodbc://u:hunt%40er2@127.0.0.1:1/x", "nonsense+what://u:hunt%40er2@h/x", "sqlite://u:hunt%40er2@h/x"],
)  # fmt: skip
async def test_a_password_is_never_told(kits: Open, url: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ToolError) as refused:
        await kits(url, time_limit=2)
    said = f"{refused.value} {refused.value!r} {caplog.text}"
    assert "hunt" not in said
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_a_password_is_not_part_of_the_configuration_as_shown() -> None:
    config = Database.Config(url="postgresql://u:hunter2@h/x")  # pyright: ignore[reportArgumentType]
    assert "hunter2" not in f"{config!r} {config} {config.model_dump()} {config.model_dump_json()}"


# The operator's bounds.


async def test_a_caller_may_name_only_what_the_operator_allows(kits: Open, file: Path, tmp_path: Path) -> None:
    inside = tmp_path / "data"
    inside.mkdir()
    os.rename(file, inside / "shop.db")
    (inside / "link.db").symlink_to(tmp_path / "elsewhere.db")
    sqlite3.connect(tmp_path / "elsewhere.db").executescript("CREATE TABLE t (x)").connection.close()
    for allowed in (f"sqlite:///{inside}/shop.db", f"sqlite:///{inside}/", f"sqlite+aiosqlite:///{inside}/"):
        bounds = Bounds(database_urls=("nonsense", allowed))
        assert (await (await kits(f"sqlite:///{inside}/shop.db", bounds=bounds)).list_tables()).tables
        assert (await (await kits(f"sqlite:///{inside}/../data/shop.db", bounds=bounds)).list_tables()).tables
        for other in (
            f"{inside}/../elsewhere.db",
            f"{inside}/link.db",
            f"{tmp_path}/data2/shop.db",
            f"{tmp_path}/missing.db",
            f"{inside}",
        ):
            with pytest.raises(ToolError, match="operator"):
                await kits(f"sqlite:///{other}", bounds=bounds)
        with pytest.raises(ToolError, match="operator"):
            await kits("sqlite://", bounds=bounds)
    for bounds in (Bounds(), Bounds(database_urls=(f"sqlite:///{inside}",)), Bounds(database_urls=("sqlite://",))):
        with pytest.raises(ToolError, match="operator"):
            await kits(f"sqlite:///{inside}/shop.db", bounds=bounds)


@pytest.mark.parametrize(
    ("bound", "url", "allowed"),
    [
        ("postgresql://db.example/app", "postgresql://u:p@db.example/app", True),
        ("postgresql://db.example/app", "postgresql+asyncpg://u:p@DB.example:5432/app", True),
        ("postgresql://u:old@db.example/app", "postgresql://u:new@db.example/app", True),
        ("postgresql://db.example/", "postgresql://u:p@db.example/any", True),
        ("postgresql://u@db.example/app", "postgresql://root:p@db.example/app", False),
        ("postgresql://db.example/app", "postgresql://db.example.evil/app", False),
        ("postgresql://db.example/app", "postgresql://db.example/app2", False),
        ("postgresql://db.example/app", "postgresql://db.example:1/app", False),
        ("postgresql://db.example/app", "postgresql://db.example/app?host=evil", False),
        ("postgresql://db.example/app", "postgresql://db.example@evil/app", False),
        ("postgresql://db.example/app", "mysql://db.example/app", False),
        ("postgresql://db.example/", "sqlite:///db.example/", False),
    ],
)
def test_a_server_is_allowed_as_a_whole_or_by_database(bound: str, url: str, allowed: bool) -> None:
    from anykit.toolkits.database_url import target

    try:
        assert target(url, allowed=(bound,)).kind == "postgresql"
        permitted = True
    except ToolError as refused:
        permitted = "operator" not in str(refused)  # past the bounds the driver may be missing: it is an extra
    assert permitted is allowed
