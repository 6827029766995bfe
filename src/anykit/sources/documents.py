"""Documents that people write: JSON with comments, TOML, YAML, by a file's ending. Bounded; nothing in them is run."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any, Final, cast

from anykit.capabilities import JsonObject

MAX_FILE: Final = 4 * 1024 * 1024
"""Bytes of a file, where its reader names no other bound."""
LARGE: Final = {".claude.json": 64 * 1024 * 1024}
"""Bytes of files that hold more than what is read of them: Claude Code keeps a history in there."""
ENDINGS: Final = frozenset({".json", ".jsonc", ".toml", ".yaml", ".yml"})


class Unreadable(ValueError):
    """A document that cannot be read; the text names the file and why."""


def read_document(file: Path, *, limit: int | None = None) -> JsonObject:
    """The object in a file. Raises `Unreadable`."""
    return document_of(read_text(file, limit=limit), file)


def read_text(file: Path, *, limit: int | None = None) -> str:
    """A file's text, without a byte order mark. Raises `Unreadable`; a FIFO or a device does not hold us up."""
    limit = limit or LARGE.get(file.name, MAX_FILE)
    try:
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        with os.fdopen(handle, "rb") as stream:
            raw = stream.read(limit + 1) or b""
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a file name"
        raise Unreadable(f"{file}: cannot be read: {reason or error}") from None
    if len(raw) > limit:
        raise Unreadable(f"{file}: larger than {limit} bytes")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"{file}: not UTF-8 (byte {error.start})") from None


def document_of(text: str, file: Path) -> JsonObject:
    """The object in the text of a file; an empty one where there is nothing in it. Raises `Unreadable`."""
    data: Any
    try:
        if file.suffix == ".toml":
            data = tomllib.loads(text)
        elif file.suffix in (".yaml", ".yml"):
            data = _yaml(text)
        elif not without_comments(text).strip():
            data = {}
        else:
            data = json.loads(without_comments(text))
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{file}: {error or 'nests too deep'}") from None
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise Unreadable(f"{file}: must hold an object, not {type(data).__name__}")
    return cast(JsonObject, data)


def _yaml(text: str) -> Any:
    import yaml  # noqa: PLC0415 - 30 ms, only for those who write YAML

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


_JSONC: Final = re.compile(
    r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/|,(?=\s*(?:(?://[^\n]*\n|/\*.*?\*/)\s*)*[}\]])', re.DOTALL
)


def without_comments(text: str) -> str:
    """JSON with comments and trailing commas as JSON; every character stays where it was."""

    def kept(match: re.Match[str]) -> str:
        piece = match[0]
        return piece if piece.startswith('"') else re.sub(r"[^\n]", " ", piece)

    return _JSONC.sub(kept, text)
