"""What outlives a call: records (memory, SQLite) and secrets (encrypted), and where they live."""

from .paths import data_dir, private_folder
from .records import LogEntry, MemoryRecords, Record, RecordError, RecordStore
from .references import UnresolvedReference, has_reference, resolve, resolve_all
from .secrets import MASK, SecretError, SecretKeyError, SecretStore
from .sqlite import SqliteRecords

__all__ = [
    "MASK",
    "LogEntry",
    "MemoryRecords",
    "Record",
    "RecordError",
    "RecordStore",
    "SecretError",
    "SecretKeyError",
    "SecretStore",
    "SqliteRecords",
    "UnresolvedReference",
    "data_dir",
    "has_reference",
    "private_folder",
    "resolve",
    "resolve_all",
]
