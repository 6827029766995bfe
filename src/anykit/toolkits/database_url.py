"""Database URLs: which driver speaks to them, and whether the operator allows them. A password is never shown."""

from __future__ import annotations

import importlib.util
import os
import urllib.parse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anykit.tools import ToolError

if TYPE_CHECKING:
    from sqlalchemy.engine import URL  # 1.4 s; imported when a database is configured

DRIVERS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "sqlite": (("aiosqlite", "aiosqlite", "aiosqlite"),),
    "postgresql": (("asyncpg", "asyncpg", "anykit[postgres]"), ("psycopg", "psycopg", "psycopg[binary]")),
    "mysql": (("aiomysql", "aiomysql", "aiomysql"), ("asyncmy", "asyncmy", "asyncmy")),
    "mariadb": (("aiomysql", "aiomysql", "aiomysql"), ("asyncmy", "asyncmy", "asyncmy")),
    "oracle": (("oracledb_async", "oracledb", "oracledb"),),
    "mssql": (("aioodbc", "aioodbc", "aioodbc"),),
}
"""For each kind of database its asynchronous drivers: SQLAlchemy's name, the module, what to install."""

DRIVER_MODULES = frozenset(
    {module for drivers in DRIVERS.values() for _, module, _ in drivers} | {"sqlite3", "pymysql", "pyodbc"}
)
"""Where exceptions of drivers come from."""

_PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306, "oracle": 1521, "mssql": 1433}


@dataclass(frozen=True, slots=True)
class Target:
    """A database as it is connected to."""

    url: URL
    """With an asynchronous driver."""
    kind: str
    """`sqlite`, `postgresql`, ..."""
    file: str | None
    """The real path of an SQLite file; None for one in memory and for all others."""
    secrets: tuple[str, ...]
    """What must not appear in a text: the password, as it is and as a URL spells it."""

    def scrubbed(self, text: str) -> str:
        """The text without the password."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def target(text: str, *, allowed: tuple[str, ...] | None) -> Target:
    """What a URL names. `allowed` are the operator's bounds; None where the operator wrote the URL.

    Blocks for an import and for looking up a real path. Raises `ToolError`.
    """
    url = _parsed(text)
    kind = url.get_backend_name()
    if kind not in DRIVERS:
        raise ToolError(f"no driver is known for {kind!r} databases; known are {', '.join(DRIVERS)}")
    file = _file(url) if kind == "sqlite" else None
    if allowed is not None and not any(_permits(bound, url, file) for bound in allowed):
        raise ToolError("this database URL is outside what the operator of this host allows")
    password = str(url.password or "")
    secrets = {password, urllib.parse.quote(password, safe=""), urllib.parse.quote_plus(password)} - {""}
    secrets |= {value for value in _query_values(url) if value}
    return Target(_driven(url, kind), kind, file, tuple(sorted(secrets, key=len, reverse=True)))


def _parsed(text: str) -> URL:
    from sqlalchemy.engine import make_url  # noqa: PLC0415 - 1.4 s that only this toolkit pays
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415 - 1.4 s that only this toolkit pays

    if text.startswith("postgres://"):  # as many hosts still write it
        text = "postgresql" + text.removeprefix("postgres")
    try:
        return make_url(text)
    except (ArgumentError, ValueError):
        raise ToolError(
            "url is not a database URL: sqlite:///path/to/file.db (four slashes for an absolute path), or"
            " postgresql://user:password@host/database"
        ) from None


def _query_values(url: URL) -> list[str]:
    """Values of the URL's query that may be credentials."""
    return [
        value
        for name, values in url.query.items()
        if any(word in name.lower() for word in ("pass", "secret", "token", "key"))
        for value in ((values,) if isinstance(values, str) else values)
    ]


def _driven(url: URL, kind: str) -> URL:
    """The URL with an asynchronous driver that is installed; the named one where it is one."""
    drivers = DRIVERS[kind]
    named = url.drivername.partition("+")[2]
    for name, module, _ in sorted(drivers, key=lambda driver: driver[0] != named):
        if importlib.util.find_spec(module) is not None:
            return url.set(drivername=f"{kind}+{name}")
    raise ToolError(f"{kind} databases need a driver that is not installed: pip install '{drivers[0][2]}'")


def _file(url: URL) -> str | None:
    """The real path of the file; None in memory."""
    name = url.database or ""
    if name in ("", ":memory:"):
        return None
    if name.startswith("file:") or "\0" in name:
        raise ToolError("an SQLite URL names a plain path: sqlite:///path/to/file.db")
    if url.query:
        raise ToolError("an SQLite URL has no parameters here: read_only says how the file is opened")
    return os.path.realpath(os.path.expanduser(name) if name.startswith("~") else name)


def _permits(bound: str, url: URL, file: str | None) -> bool:
    """Whether the operator's URL `bound` is this one, or a beginning of it; passwords are not compared."""
    try:
        permitted = _parsed(bound)
    except ToolError:
        return False
    if permitted.get_backend_name() != url.get_backend_name():
        return False
    if url.get_backend_name() == "sqlite":
        name = permitted.database or ""
        if name in ("", ":memory:"):
            return file is None
        real = os.path.realpath(name)
        if file is None:
            return False
        # A folder, written with a slash at its end, permits what lies in it.
        return file.startswith(real.rstrip("/") + "/") if name.endswith("/") else file == real
    # A parameter can lead to another host (`?host=`): each must be the operator's own.
    return (
        dict(permitted.query) == dict(url.query)
        and (permitted.host or "").lower() == (url.host or "").lower()
        and _port(permitted) == _port(url)
        and permitted.username in (None, url.username)
        and (permitted.database or "") in ("", url.database)
    )


def _port(url: URL) -> int | None:
    return url.port or _PORTS.get(url.get_backend_name())
