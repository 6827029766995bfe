"""The database toolkit on a real PostgreSQL server, where the extra and a server are installed."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

from anykit.toolkits.database import Database, Table
from anykit.tools import ToolError

asyncpg: Any = pytest.importorskip("asyncpg", reason="needs the extra `postgres`")

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

Open = Callable[..., Awaitable[Database]]

SETUP = """
CREATE TABLE customer (
    id serial PRIMARY KEY, name text NOT NULL DEFAULT 'x', photo bytea, joined date, seen timestamptz, total numeric(10, 2),
    extra jsonb, tags int[], uid uuid, ratio float8
);
INSERT INTO customer (name, photo, joined, seen, total, extra, tags, uid, ratio) VALUES (
    'alice', '\\x00ff', '2026-01-02', '2026-01-02 03:04:05+00', 1.10, '{"k": [1]}', '{1,2}',
    'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'NaN'
);
INSERT INTO customer (name) VALUES ('bob');
CREATE VIEW names AS SELECT name FROM customer;
CREATE INDEX customer_lower ON customer (lower(name));
CREATE SCHEMA other;
CREATE TABLE other.thing (x int REFERENCES customer (id));
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server of our own, with a password that must never be shown."""
    if not (shutil.which("postgres") and shutil.which("initdb")):
        pytest.skip("needs a PostgreSQL server")
    folder = tmp_path_factory.mktemp("postgres")
    user: dict[str, Any] = {}
    if os.geteuid() == 0:  # it refuses to run as root
        try:
            account = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("needs an account that is not root")
        user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        os.chown(folder, account.pw_uid, account.pw_gid)
        for parent in (folder.parent, folder.parent.parent):
            parent.chmod(parent.stat().st_mode | 0o011)
    (folder / "password").write_text("hunt@er2")
    (folder / "password").chmod(0o644)
    subprocess.run(
        ["initdb", "-D", folder / "data", "-A", "scram-sha-256", "-U", "admin", f"--pwfile={folder}/password", "--no-sync"],
        check=True, capture_output=True, cwd="/", timeout=50, **user,
    )  # fmt: skip
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        ["postgres", "-D", folder / "data", "-p", str(port), "-c", "unix_socket_directories=", "-c", "fsync=off"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", **user,
    )  # fmt: skip
    url = f"postgresql://admin:hunt%40er2@127.0.0.1:{port}/postgres"
    try:
        asyncio.run(_prepare(url))
        yield url
    finally:
        process.terminate()
        process.wait(20)


async def _prepare(url: str) -> None:
    until = time.monotonic() + 40
    while True:
        try:
            connection = await asyncpg.connect(url)
            break
        except (OSError, asyncpg.PostgresError):
            if time.monotonic() > until:
                raise
            await asyncio.sleep(0.05)
    await connection.execute(SETUP)
    await connection.close()


@pytest.fixture
async def kits(server: str) -> AsyncIterator[Open]:
    opened: list[Database] = []

    async def open_kit(url: str = server, **config: Any) -> Database:
        kit = Database()
        kit.config = Database.Config(url=url, **config)  # pyright: ignore[reportArgumentType]
        opened.append(kit)
        await kit.setup(kit.config)
        return kit

    yield open_kit
    for kit in opened:
        await kit.close()


@pytest.fixture
async def db(kits: Open) -> Database:
    return await kits()


async def test_tables_of_every_schema_are_listed_and_described(db: Database) -> None:
    tables = (await db.list_tables()).tables
    assert tables[:2] == [Table("customer", "table"), Table("names", "view")]
    assert Table("other.thing", "table") in tables
    customer = await db.describe_table("customer")
    assert {column.name: column.type for column in customer.columns}["total"] == "NUMERIC(10, 2)"
    assert [column.name for column in customer.columns if column.primary_key] == ["id"]
    thing = await db.describe_table("other.thing")
    assert thing.foreign_keys[0].refers_to == "customer"
    with pytest.raises(ToolError, match=r"did you mean 'other\.thing'"):
        await db.describe_table("other.thin")


async def test_values_are_what_json_can_carry(db: Database) -> None:
    given = await db.query.execute({"sql": "SELECT * FROM customer ORDER BY id LIMIT 1"})
    assert not given.is_error, given.output
    assert given.structured["rows"] == [
        {
            "id": 1, "name": "alice", "photo": "AP8=", "joined": "2026-01-02", "seen": "2026-01-02T03:04:05+00:00",
            "total": "1.10", "extra": {"k": [1]}, "tags": [1, 2], "uid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "ratio": "nan",
        }
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "parameters", "expected"),
    [
        ("SELECT name FROM customer WHERE joined = :d", {"d": "2026-01-02"}, "alice"),
        ("SELECT name FROM customer WHERE seen < :d AND id = :i", {"d": "2027-01-01T00:00:00Z", "i": 1}, "alice"),
        ("SELECT name FROM customer WHERE total = ?", [1.1], "alice"),
        ("SELECT name FROM customer WHERE photo = ?", ["AP8="], "alice"),
        ("SELECT name FROM customer WHERE uid = ?", ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"], "alice"),
        ("SELECT extra -> 'k' -> 0 FROM customer WHERE id = :i", {"i": 1}, 1),
        ("SELECT :a || :b || :a", {"a": "x", "b": "'"}, "x'x"),
        ("SELECT E'it\\'s; :a' || $$ ; :b $$ || '{}'::text", None, "it's; :a ; :b {}"),
        ("SELECT tags[1:2] FROM customer WHERE id = 1", None, [1, 2]),
        ("SHOW default_transaction_read_only", None, "on"),
        ("TABLE names", None, "alice"),
    ],
)
async def test_a_value_is_never_part_of_the_text(db: Database, sql: str, parameters: Any, expected: Any) -> None:
    assert next(iter((await db.query(sql, parameters)).rows[0].values())) == expected


@pytest.mark.parametrize(
    ("sql", "parameters", "reason"),
    [
        ("SELECT 1 WHERE CAST(:d AS date) > now()", {"d": "soon"}, "parameter d is no date"),
        ("SELECT :n + 1", {"n": 2**40}, "int32"),
        ("SELECT * FROM customers", None, r"does not exist \(list_tables"),
        ("SELECT 1 / 0", None, "division by zero"),
        ("SELECT 1; SELECT 2", None, "one statement"),
    ],
)
async def test_a_statement_that_cannot_run_says_why(db: Database, sql: str, parameters: Any, reason: str) -> None:
    with pytest.raises(ToolError, match=reason):
        await db.query(sql, parameters)


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM customer",
        "WITH x AS (DELETE FROM customer RETURNING *) SELECT * FROM x",
        "SELECT nextval('customer_id_seq')",
        "SELECT * INTO copy FROM customer",
        "EXPLAIN ANALYZE DELETE FROM customer",
        "COPY customer TO PROGRAM 'cat'",
        "SET TRANSACTION READ WRITE",
        "SELECT set_config('transaction_read_only', 'off', false)",
        "SELECT 1; DELETE FROM customer",
    ],
)
async def test_read_only_means_read_only(db: Database, sql: str) -> None:
    result = await db.query.execute({"sql": sql})
    assert result.is_error
    assert "unexpectedly" not in result.output
    await db.query("SELECT set_config('default_transaction_read_only', 'off', false)")  # ends with its connection
    assert (await db.query.execute({"sql": sql})).is_error
    assert (await db.query("SELECT count(*) AS n FROM customer")).rows == [{"n": 2}]


async def test_writes_are_kept_where_they_are_allowed(kits: Open, db: Database) -> None:
    writable = await kits(read_only=False)
    assert (await writable.query("CREATE TABLE t (x int)")).rows == []
    assert (await writable.query("INSERT INTO t VALUES (:a), (:b)", {"a": 1, "b": 2})).row_count == 2
    assert (await writable.query("DELETE FROM t WHERE x = 2 RETURNING x")).rows == [{"x": 2}]
    with pytest.raises(ToolError, match="division by zero"):
        await writable.query("UPDATE t SET x = 1 / (x - 1)")
    assert (await db.query("SELECT x FROM t")).rows == [{"x": 1}]
    await writable.query("DROP TABLE t")


async def test_what_runs_too_long_or_gives_too_much_is_stopped(kits: Open) -> None:
    db = await kits(time_limit=0.5)
    with pytest.raises(ToolError, match=r"stopped after 0\.5 s"):
        await db.query("SELECT pg_sleep(20)")
    assert (await db.query("SELECT generate_series(1, 1000) AS x", limit=3)).note == "only the first 3 rows are given"
    patient = await kits()
    large = await patient.query("SELECT repeat('x', 1000000) AS x FROM generate_series(1, 100)")
    assert all(len(row["x"]) < 5000 for row in large.rows)


async def test_a_statement_whose_caller_is_gone_is_stopped(db: Database) -> None:
    task = asyncio.create_task(db.query("SELECT pg_sleep(47)"))
    asked = "SELECT count(*) AS n FROM pg_stat_activity WHERE query LIKE '%47)' AND state = 'active'"
    async with asyncio.timeout(20):
        while (await db.query(asked)).rows == [{"n": 0}]:
            pass
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while (await db.query(asked)).rows != [{"n": 0}]:
            pass


@pytest.mark.parametrize(
    ("old", "new"), [("hunt%40er2", "wrong-hunt%40er2"), ("/postgres", "/nowhere"), ("admin", "nobody")]
)
async def test_a_password_is_never_told(kits: Open, server: str, old: str, new: str) -> None:
    with pytest.raises(ToolError) as refused:
        await kits(server.replace(old, new))
    assert "hunt" not in str(refused.value)
