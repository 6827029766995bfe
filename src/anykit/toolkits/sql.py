"""One SQL statement, read far enough to know where its literals end: its words, its parameters, and that it is alone."""

from __future__ import annotations

import re
from dataclasses import dataclass

from anykit.tools import ToolError

MAX_LENGTH = 100_000

READING = frozenset({"SELECT", "WITH", "VALUES", "EXPLAIN", "TABLE", "SHOW", "DESCRIBE", "DESC"})
"""What a statement that only reads begins with."""
REFUSED = frozenset(
    {"ATTACH", "DETACH", "PRAGMA", "VACUUM", "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE"}
    | {"ABORT", "PREPARE", "EXECUTE", "DEALLOCATE", "SET", "RESET", "USE", "COPY", "LOAD", "LISTEN", "UNLISTEN"}
    | {"DISCARD", "LOCK", "HANDLER", "INSTALL", "BACKUP", "RESTORE", "SHUTDOWN", "KILL"}
)
"""What no caller may begin a statement with: it reaches other files, or changes the connection for the next call."""
WRITING = frozenset(
    {"INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "UPSERT", "INTO", "CREATE", "DROP", "ALTER", "TRUNCATE", "CALL"}
    | {"EXEC", "EXECUTE", "GRANT", "REVOKE", "LOCK", "SET", "DO", "LOAD", "COPY", "RENAME", "OUTFILE", "DUMPFILE"}
)
"""Words that a reading statement of a database that cannot be held to reading must not have anywhere."""

_TOKEN = re.compile(
    r"""
    (?P<space> \s+ | --[^\n]* )
  | (?P<comment> /\* )
  | (?P<escaped> [eE]'(?:[^'\\]|''|\\.)*' )
  | (?P<quoted> '(?:[^']|'')*' | "(?:[^"]|"")*" | `(?:[^`]|``)*` )
  | (?P<dollar> \$(?:[A-Za-z_]\w*)?\$ )
  | (?P<parameter> :[A-Za-z_]\w* )
  | (?P<colons> :+ )
  | (?P<mark> \? )
  | (?P<end> ; )
  | (?P<word> [^\W\d][\w$]* )
  | (?P<number> \d[\w.]* )
  | (?P<open> ['"`] )
  | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_BACKSLASHED = re.compile(r"""'(?:[^'\\]|''|\\.)*' | "(?:[^"\\]|""|\\.)*" """, re.VERBOSE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, without its comments."""

    pieces: tuple[tuple[str, bool], ...]
    """Its text in order; True marks the name of a parameter."""
    words: tuple[str, ...]
    """In capitals, outside of literals. REPLACE( is a function and left out."""
    parameters: tuple[str, ...]
    """The names after a colon, and `_1`, `_2` ... for each `?`."""
    marks: int
    """How many `?` there are."""

    @property
    def text(self) -> str:
        """As SQLAlchemy's `text()` reads it: `:name` for a parameter, every other colon escaped."""
        return "".join(f" :{piece} " if named else piece.replace(":", "\\:") for piece, named in self.pieces).strip()

    @property
    def numbered(self) -> str:
        """As PostgreSQL itself reads it: `$1` for the first of `parameters`."""
        return "".join(
            f" ${self.parameters.index(piece) + 1} " if named else piece for piece, named in self.pieces
        ).strip()

    @property
    def first(self) -> str:
        """What it begins with."""
        return self.words[0] if self.words else ""


def parse(sql: str, *, dialect: str, marks: bool = False) -> Statement:
    """Read one statement of a SQLAlchemy dialect; with `marks` each `?` is a parameter.

    Raises `ToolError` where it is empty, not one, unfinished, or has a comment that is executed.
    """
    if len(sql) > MAX_LENGTH:
        raise ToolError(f"a statement has at most {MAX_LENGTH} characters")
    if "\0" in sql:
        raise ToolError("a statement has no NUL character")
    backslashes = dialect in ("mysql", "mariadb")
    pieces: list[tuple[str, bool]] = []
    words: list[str] = []
    parameters: list[str] = []
    count = position = 0
    ended = False
    while position < len(sql):
        token = _TOKEN.match(sql, position)
        assert token is not None  # the last alternative is any character
        kind, found = token.lastgroup, token[0]
        if backslashes and re.match(r"--\S", found):  # MySQL: two minus signs
            kind, found = "other", "--"
        if kind == "space" or (backslashes and found == "#"):
            position = _line_end(sql, position) if found == "#" else token.end()
            pieces.append((" ", False))
            continue
        if kind == "comment":
            position = _comment_end(sql, position, nested=dialect == "postgresql")
            pieces.append((" ", False))
            continue
        if ended:
            raise ToolError("one statement at a time: there is something after the ';'")
        if kind == "end":
            ended = True
            position = token.end()
            continue
        if kind == "escaped" and dialect != "postgresql":
            # A name or letter e, and a string that begins after it.
            kind, found = "word", found[0]
        if backslashes and kind in ("quoted", "open") and found[0] in "'\"":
            token = _BACKSLASHED.match(sql, position)
            if token is None:
                raise ToolError("a string of the statement has no end")
            kind, found = "quoted", token[0]
        if kind == "open":
            raise ToolError(f"what the {found} of the statement opens has no end")
        if found == "[" and dialect in ("sqlite", "mssql"):
            end = sql.find("]", position)
            if end < 0:
                raise ToolError("a [name] of the statement has no end")
            kind, found = "quoted", sql[position : end + 1]
        if kind == "dollar" and dialect == "postgresql":
            end = sql.find(found, token.end())
            if end < 0:
                raise ToolError(f"the string that {found} opens has no end")
            kind, found = "quoted", sql[position : end + len(found)]
        position += len(found)
        if kind == "word":
            word = found.upper()
            if word != "REPLACE" or not sql[position:].lstrip().startswith("("):
                words.append(word)
        if kind == "parameter":
            if found[1:] not in parameters:
                parameters.append(found[1:])
            pieces.append((found[1:], True))
        elif kind == "mark" and marks:
            count += 1
            parameters.append(f"_{count}")
            pieces.append((f"_{count}", True))
        else:
            count += kind == "mark"
            pieces.append((found, False))
    if not words:
        raise ToolError("the statement is empty")
    return Statement(tuple(pieces), tuple(words), tuple(parameters), count)


def check(statement: Statement, *, read_only: bool, enforced: bool) -> None:
    """Raises `ToolError` for a statement that may not be asked.

    `enforced`: the database itself refuses to write, so that a word of its text is not suspicious.
    """
    if statement.first in REFUSED:
        raise ToolError(
            f"{statement.first} is not allowed here: every call is one statement in a transaction of its own;"
            " list_tables and describe_table tell what there is"
        )
    if not read_only:
        return
    if statement.first not in READING:
        raise ToolError(f"the database is configured read-only: {statement.first} is not allowed, ask with SELECT")
    if not enforced:
        for word in statement.words:
            if word in WRITING:
                raise ToolError(f"the database is configured read-only: a statement with {word} is not allowed")


def _line_end(sql: str, position: int) -> int:
    end = sql.find("\n", position)
    return len(sql) if end < 0 else end


def _comment_end(sql: str, position: int, *, nested: bool) -> int:
    if sql.startswith(("/*!", "/*M!"), position):
        raise ToolError("comments that are executed are not allowed in a statement")
    depth = 0
    for mark in re.finditer(r"/\*|\*/", sql[position:]):
        depth += 1 if mark[0] == "/*" and (nested or depth == 0) else -1 if mark[0] == "*/" else 0
        if depth == 0:
            return position + mark.end()
    raise ToolError("a comment of the statement has no end")
