"""Statements are read far enough to know that they are one, whatever a dialect's strings look like."""

from __future__ import annotations

import pytest

from anykit.toolkits.sql import check, parse
from anykit.tools import ToolError


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("postgresql", "SELECT $$; DELETE :a ' $$"),
        ("postgresql", "SELECT $tag$ $$ ; $tag$"),
        ("postgresql", r"SELECT E'it\'s; :a'"),
        ("postgresql", "SELECT /* a /* nested ; */ comment */ 1"),
        ("postgresql", "SELECT a[1:2], b::int, '{}'::jsonb"),
        ("mysql", r"SELECT 'it\'s; :a'"),
        ("mysql", r'SELECT "it\"s; :a"'),
        ("mysql", "SELECT 1 # ; DELETE\n"),
        ("mysql", "SELECT 5--3"),
        ("mysql", "SELECT `a;b`"),
        ("mssql", "SELECT [a;b'c]"),
        ("sqlite", r"SELECT 'back\'"),
    ],
)
def test_what_stands_in_a_literal_is_no_statement_and_no_parameter(dialect: str, sql: str) -> None:
    statement = parse(sql, dialect=dialect)
    assert statement.first == "SELECT"
    assert not statement.parameters
    check(statement, read_only=True, enforced=False)


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("sqlite", r"SELECT 'a\'; DELETE FROM t --'"),
        ("mysql", "SELECT 1 /*! ; DELETE FROM t */"),
        ("mariadb", "SELECT 1 /*M! INTO OUTFILE 'x' */"),
        ("mysql", r"SELECT '\\'; DELETE FROM t"),
        ("postgresql", "SELECT $$a$$; DELETE FROM t"),
        ("postgresql", "SELECT $a$ open"),
        ("postgresql", "SELECT /* a /* b */ ; DELETE FROM t"),
        ("sqlite", "SELECT /* a /* b */ 1; DELETE FROM t"),
        ("mysql", "SELECT 1 -- ;\n; DELETE FROM t"),
    ],
)
def test_a_second_statement_does_not_hide(dialect: str, sql: str) -> None:
    with pytest.raises(ToolError):
        parse(sql, dialect=dialect)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * INTO new FROM t",
        "SELECT a FROM t INTO OUTFILE '/tmp/x'",
        "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x",
        "SELECT * FROM t FOR UPDATE",
        "EXPLAIN ANALYZE INSERT INTO t VALUES (1)",
        "REPLACE INTO t VALUES (1)",
        "WITH x AS (SELECT 1) REPLACE INTO t SELECT * FROM x",
        "CALL f()",
        "SET GLOBAL x = 1",
        "MERGE INTO t USING s ON 1 = 1 WHEN MATCHED THEN DELETE",
    ],
)
def test_a_database_that_cannot_be_held_to_reading_is_asked_nothing_that_writes(sql: str) -> None:
    with pytest.raises(ToolError, match="not allowed"):
        check(parse(sql, dialect="mysql"), read_only=True, enforced=False)


def test_a_word_that_writes_is_fine_as_a_name_in_quotes_or_a_function() -> None:
    sql = "SELECT \"update\", `delete`, 'insert', replace(a, 'b', 'c'), created_at FROM t WHERE updated > 1"
    check(parse(sql, dialect="mysql"), read_only=True, enforced=False)


def test_parameters_are_found_once_each_in_order() -> None:
    statement = parse("SELECT :b, :a, :b, x::int FROM t WHERE y = ':c'", dialect="postgresql")
    assert statement.parameters == ("b", "a")
    assert parse("SELECT ?, '?', ?", dialect="sqlite", marks=True).parameters == ("_1", "_2")
