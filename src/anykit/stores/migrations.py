"""The tables of the records in plain SQL, numbered. A released migration is never changed; a new one is added."""

from __future__ import annotations

SQLITE: tuple[str, ...] = (
    # 1: records and logs
    """
    CREATE TABLE record (
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        principal TEXT NOT NULL,
        value TEXT NOT NULL,
        created_at REAL NOT NULL,
        expires_at REAL,
        PRIMARY KEY (kind, key, principal)
    ) WITHOUT ROWID;
    CREATE INDEX record_expiry ON record (expires_at) WHERE expires_at IS NOT NULL;
    CREATE TABLE log (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        log TEXT NOT NULL,
        at REAL NOT NULL,
        row TEXT NOT NULL
    );
    CREATE INDEX log_name ON log (log, id);
    """,
)
"""Number n is `SQLITE[n - 1]`; the file's `user_version` is the number of the last one applied."""
