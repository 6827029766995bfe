"""Text in files: parts of it by line numbers, whether it is text at all, and exact replacements."""

from __future__ import annotations

import codecs
import re
import time
from dataclasses import dataclass
from typing import BinaryIO

from anykit.tools import ToolError

CHUNK = 1024 * 1024
SAMPLE = 8192
"""Bytes of a file's beginning that decide whether it is text."""

_KINDS = {
    b"\x89PNG\r\n\x1a\n": "PNG image",
    b"\xff\xd8\xff": "JPEG image",
    b"GIF8": "GIF image",
    b"%PDF-": "PDF document",
    b"PK\x03\x04": "ZIP archive (or a document in one)",
    b"\x1f\x8b": "gzip archive",
    b"\x7fELF": "ELF program",
    b"SQLite format 3\x00": "SQLite database",
    codecs.BOM_UTF16_LE: "UTF-16 text",
    codecs.BOM_UTF16_BE: "UTF-16 text",
}


def binary_kind(sample: bytes) -> str | None:
    """What a file is, judged by its beginning, where it is not text that we read; None for text."""
    for magic, kind in _KINDS.items():
        if sample.startswith(magic):
            return kind
    if b"\0" in sample:
        return "binary"
    # Text has hardly any control characters beside the usual ones.
    odd = sum(1 for byte in sample if byte < 32 and byte not in b"\t\n\r\f\b\x1b")
    return "binary" if odd * 20 > len(sample) else None


@dataclass(frozen=True, slots=True)
class Lines:
    """Some lines of a file."""

    data: bytes
    first: int
    last: int
    """The number of the last line in `data`, in whole or in part."""
    more: bool
    """Lines that were asked for are left out, because there was no room."""
    whole: bool
    """`data` ends with a whole line."""


def read_lines(file: BinaryIO, start: int, end: int | None, *, limit: int, deadline: float) -> Lines:
    """Lines `start` to `end` (from 1, both included; None is the last) as they are, at most `limit` bytes.

    Reads through the file once in pieces. Raises `ToolError` where the file has fewer lines, or `deadline`
    (`time.monotonic`) is over.
    """
    line = 1
    ends_open = False
    rest = b""
    while line < start:
        chunk = file.read(CHUNK)
        if not chunk:
            lines = line - 1 + ends_open
            raise ToolError(
                f"start_line {start} is beyond the end: the file has {lines} line{'' if lines == 1 else 's'}"
            )
        if time.monotonic() > deadline:
            raise ToolError(f"reading up to line {start} takes too long; the file is too large")
        breaks = chunk.count(b"\n")
        if line + breaks < start:
            line += breaks
            ends_open = not chunk.endswith(b"\n")
            continue
        position = -1
        for _ in range(start - line):
            position = chunk.find(b"\n", position + 1)
        rest = chunk[position + 1 :]
        line = start
    if start > 1 and not rest and not (rest := file.read(CHUNK)):
        raise ToolError(
            f"start_line {start} is beyond the end: the file has {start - 1} line{'s' if start > 2 else ''}"
        )
    kept = bytearray()
    wanted = None if end is None else end - start + 1
    while True:
        piece = rest or file.read(min(CHUNK, limit + 1))
        rest = b""
        if not piece:
            break
        if wanted is not None:
            breaks = piece.count(b"\n")
            if breaks >= wanted:
                position = -1
                for _ in range(wanted):
                    position = piece.find(b"\n", position + 1)
                kept += piece[: position + 1]
                break
            wanted -= breaks
        kept += piece
        if len(kept) > limit:
            break
    more = len(kept) > limit
    data = bytes(kept[:limit])
    if more and (line_end := data.rfind(b"\n")) >= 0:
        data = data[: line_end + 1]
    elif more:
        data = whole_characters(data)
    whole = not data or data.endswith(b"\n")
    last = start + data.count(b"\n") - (1 if whole else 0)
    return Lines(data, start, max(last, start), more, whole)


def whole_characters(data: bytes) -> bytes:
    """UTF-8 without the beginning of a character that was cut at the end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if length > back else data
    return data


@dataclass(frozen=True, slots=True)
class Replaced:
    """A text after replacements."""

    text: str
    count: int
    lines: list[int]
    """Where the replacements begin, in the old text; the first ten."""


def replace(text: str, old: str, new: str, *, every: bool, name: str) -> Replaced:
    """Replace `old`, which must occur exactly once unless `every`.

    Line breaks of `old` and `new` follow the file: in a file of CRLF lines a plain line feed means CRLF. `name` is how
    errors call the file. Raises `ToolError` that says how often it occurs, and where.
    """
    if not old:
        raise ToolError("`old` is empty: give the text to replace; write_file makes a new file")
    if old == new:
        raise ToolError("`old` and `new` are the same: nothing to do")
    feeds = text.count("\n")
    crlf = feeds > 0 and text.count("\r\n") == feeds
    if crlf or ("\n" in old and old not in text and _crlf(old) in text):
        old, new = _crlf(old), _crlf(new)
    places = _places(text, old)
    if not places:
        raise ToolError(f"`old` was not found in {name}{_near(text, old)}")
    lines = [text.count("\n", 0, place) + 1 for place in places[:10]]
    if every:
        return Replaced(text.replace(old, new), text.count(old), lines)
    if len(places) > 1:
        at = ", ".join(map(str, lines)) + (", ..." if len(places) > 10 else "")
        raise ToolError(
            f"`old` was found {len(places)} times in {name} (lines {at}): add context until it is found once,"
            " or set all=true to replace every one"
        )
    return Replaced(text[: places[0]] + new + text[places[0] + len(old) :], 1, lines)


def _crlf(text: str) -> str:
    return re.sub("\r?\n", "\r\n", text)


def _places(text: str, old: str) -> list[int]:
    """Where `old` begins, overlapping ones too: two readings are not unique."""
    places: list[int] = []
    place = text.find(old)
    while place >= 0 and len(places) < 10_000:
        places.append(place)
        place = text.find(old, place + 1)
    return places


def _near(text: str, old: str) -> str:
    """A hint where the text stands there with other white space."""
    wanted = [line.split() for line in old.strip().splitlines()]
    if not any(wanted) or len(text) > 2 * CHUNK:
        return ""
    lines = [line.split() for line in text.splitlines()]
    for index in range(len(lines) - len(wanted) + 1):
        if lines[index : index + len(wanted)] == wanted:
            return f"; line {index + 1} has it with other white space or line breaks: copy it exactly"
    return "; read the file and copy the text exactly"
