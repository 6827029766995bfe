"""The `filesystem` toolkit: files beneath one folder, and nothing outside it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from anykit.capabilities import JsonObject
from anykit.tools import PermissionRequest, ToolError, Toolkit, tool

from . import text_files
from .confined import Place, Root, check_regular, open_file, printable, reason, shown
from .line_search import Searcher, TooSlow
from .patterns import Glob, States

SKIPPED = frozenset(
    {".git", ".hg", ".svn", ".bzr", "node_modules", "__pycache__", ".venv", ".tox", ".mypy_cache", ".pytest_cache"}
    | {".ruff_cache", ".cache", ".DS_Store"}
)
"""Folders that a search does not enter unless it is told to by name."""
MAX_ENTRIES = 200_000
"""Names that one search looks at."""
MAX_SEARCHED = 10 * 1024 * 1024
"""Bytes of a file that grep still searches."""
MAX_PATTERN = 1000


@dataclass(frozen=True, slots=True)
class Written:
    """A file as it was written."""

    path: str
    bytes: int
    created: bool
    """It was not there before."""


@dataclass(frozen=True, slots=True)
class Edited:
    """A file as it was edited."""

    path: str
    replacements: int
    lines: list[int]
    """Where the replaced text began (the first ten)."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a directory."""

    name: str
    type: Literal["file", "directory", "symlink", "other"]
    size: int | None
    """Bytes, of a file."""
    modified: str | None
    """UTC, ISO 8601."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A directory."""

    path: str
    entries: list[Entry]
    truncated: bool
    """There are more entries than are listed."""


@dataclass(frozen=True, slots=True)
class Paths:
    """Files found by name."""

    paths: list[str]
    truncated: bool
    note: str | None
    """Why there may be more."""


@dataclass(frozen=True, slots=True)
class LineMatch:
    """A line found by its text."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Matches:
    """Lines found by their text."""

    matches: list[LineMatch]
    files_searched: int
    truncated: bool
    note: str | None
    """Why there may be more."""


class _Enough(Exception):
    """A search reached a limit; the text says which."""


@dataclass(slots=True)
class _Budget:
    """What a search may still look at."""

    seconds: float
    deadline: float
    entries: int = MAX_ENTRIES

    def spend(self, entries: int) -> None:
        self.entries -= entries
        if self.entries < 0:
            raise _Enough(f"stopped after {MAX_ENTRIES} names: search in a smaller directory")
        self.check_time()

    def check_time(self) -> None:
        if time.monotonic() > self.deadline:
            raise self.over()

    def over(self) -> _Enough:
        return _Enough(f"stopped after {self.seconds:g} s: search in a smaller directory or for a simpler pattern")


def _reads(arguments: JsonObject) -> list[PermissionRequest]:
    return [PermissionRequest("file_read", arguments.get("path", "."))]


def _writes(arguments: JsonObject) -> list[PermissionRequest]:
    return [PermissionRequest("file_write", arguments["path"])]


class Filesystem(Toolkit):
    """Files in one directory: read, search, write and edit. Nothing outside that directory can be reached."""

    name = "filesystem"
    alias = "fs"
    category = "io"
    tags = ("fs", "files")
    icon_svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2">'
        '<path d="M3 6h6l2 2h10v11H3z"/></svg>'
    )

    class Config(BaseModel):
        """Where the files are, and what may be done to them."""

        model_config = ConfigDict(extra="forbid")

        root_dir: str = Field(min_length=1, max_length=4096, description="Root directory for file operations")
        read_only: bool = Field(default=False, description="Refuse to write and to edit")
        max_read_bytes: int = Field(
            default=256 * 1024, ge=1024, le=768 * 1024, description="Bytes that one read_file gives at most"
        )
        max_write_bytes: int = Field(
            default=4 * 1024 * 1024, ge=1, le=64 * 1024 * 1024, description="Bytes of a file that is written or edited"
        )
        max_results: int = Field(
            default=1000, ge=1, le=10_000, description="Entries that list_dir, glob and grep give at most"
        )
        time_limit: float = Field(default=10.0, gt=0, le=60, description="Seconds that a search takes at most")

    config: Config

    def __init__(self) -> None:
        self._opened: Root | None = None
        self._writing = threading.Lock()
        """Two edits of one file do not lose each other."""

    async def setup(self, config: Config) -> None:
        """Open the root. Raises `ToolError` where it is no directory, or outside the operator's bounds."""
        if "\0" in config.root_dir:
            raise ToolError("root_dir has a NUL character")
        self._opened = await asyncio.to_thread(self._open, Path(config.root_dir))

    def _open(self, path: Path) -> Root:
        # `~` is the operator's home; for a caller it is a name like any other.
        return Root(Path(os.path.expanduser(path))) if self.bounds is None else Root(path, within=self.bounds.roots)

    async def close(self) -> None:
        """Let the root go."""
        if self._opened is not None:
            opened, self._opened = self._opened, None
            opened.close()

    @property
    def _root(self) -> Root:
        if self._opened is None:
            raise ToolError("the filesystem toolkit is not configured")
        return self._opened

    @tool(title="Read file", read_only=True, idempotent=True, open_world=False)
    def read_file(self, path: str, start_line: int | None = None, end_line: int | None = None) -> str:
        """Read a text file, or some of its lines.

        A long file is cut, with a last line that says how to go on.

        Args:
            path: The file, relative to the root directory.
            start_line: The first line to read, counted from 1.
            end_line: The last line to read; it is included.
        """
        start = 1 if start_line is None else start_line
        if start < 1 or (end_line is not None and end_line < start):
            raise ToolError("lines are counted from 1, and end_line is not before start_line")
        with self._root.place(path) as place:
            self._check_there(path, place)
            with open_file(path, place.folder, place.name) as file:
                size = os.fstat(file.fileno()).st_size
                kind = text_files.binary_kind(file.read(text_files.SAMPLE))
                if kind is not None:
                    raise ToolError(f"{path!r} is not shown: it is no text but {kind}, {size} bytes")
                file.seek(0)
                lines = text_files.read_lines(
                    file,
                    start,
                    end_line,
                    limit=self.config.max_read_bytes,
                    deadline=time.monotonic() + self.config.time_limit,
                )
        return _as_text(lines, size)

    @tool(title="Write file", read_only=False, destructive=True, idempotent=True, open_world=False)
    def write_file(self, path: str, content: str) -> Written:
        """Write a text file, replacing what it held; directories on the way are made.

        The file is exchanged in one step: no reader sees half of it.

        Args:
            path: The file, relative to the root directory.
            content: The whole new text, written as it is.
        """
        self._check_writable()
        data = _encoded(content)
        self._check_size(len(data))
        with self._writing, self._root.place(path, make_folders=True) as place:
            if path.endswith("/"):
                raise ToolError(f"{path!r} names a directory, not a file")
            if place.status is not None:
                check_regular(path, place.status)
            self._exchange(place, data)
            return Written(place.shown, len(data), place.status is None)

    @tool(title="Edit file", read_only=False, destructive=True, idempotent=False, open_world=False)
    def edit_file(self, path: str, old: str, new: str, all: bool = False) -> Edited:
        """Replace a piece of text in a file by another.

        Args:
            path: The file, relative to the root directory.
            old: The exact text to replace; it must occur once, unless `all` is true.
            new: The text to put in its place.
            all: Replace every occurrence.
        """
        self._check_writable()
        _encoded(old)
        _encoded(new)
        with self._writing, self._root.place(path) as place:
            self._check_there(path, place)
            with open_file(path, place.folder, place.name) as file:
                before = os.fstat(file.fileno())
                data = file.read(self.config.max_write_bytes + 1)
            self._check_size(max(len(data), before.st_size))
            text = _decoded(path, data)
            replaced = text_files.replace(text, old, new, every=all, name=repr(path))
            result = replaced.text.encode()
            self._check_size(len(result))
            self._exchange(place, result, before=before)
            return Edited(place.shown, replaced.count, replaced.lines)

    @tool(title="List directory", read_only=True, idempotent=True, open_world=False)
    def list_dir(self, path: str = ".") -> Listing:
        """List a directory: directories first, then by name.

        Args:
            path: The directory, relative to the root directory.
        """
        with self._root.place(path) as place:
            self._check_there(path, place)
            if place.name != ".":
                raise ToolError(f"{path!r} is not a directory: use read_file")
            entries: list[Entry] = []
            more = False
            with os.scandir(place.folder) as scan:
                for entry in scan:
                    if len(entries) >= MAX_ENTRIES:
                        more = True
                        break
                    entries.append(_entry(entry))
            entries.sort(key=lambda entry: (entry.type != "directory", entry.name))
            limit = self.config.max_results
            return Listing(place.shown, entries[:limit], more or len(entries) > limit)

    @tool(title="Find files", read_only=True, idempotent=True, open_world=False)
    def glob(self, pattern: str, path: str = ".") -> Paths:
        """Find files by name.

        `*` and `?` match within a name, `[a-z]` one character, `**` any number of directories, `{a,b}` one of several; a
        pattern that ends in `/` finds directories. Version control and cache directories (.git, node_modules, ...) are
        left out unless they are named.

        Args:
            pattern: For example `**/*.py`, `src/*.{ts,tsx}`.
            path: The directory to search, relative to the root directory.
        """
        wanted = Glob(pattern)
        found: list[str] = []
        try:
            for parts, kind, matched in self._walk(path, wanted, self._budget()):
                if not matched or (kind == "directory") is not wanted.folders_only:
                    continue
                if kind == "symlink" and not self._is_file_inside(parts):
                    continue
                if len(found) >= self.config.max_results:
                    raise _Enough(f"stopped after {self.config.max_results} results: use a narrower pattern")
                found.append(shown(parts) + ("/" if wanted.folders_only else ""))
        except _Enough as enough:
            return Paths(found, True, str(enough))
        return Paths(found, False, None)

    @tool(title="Search in files", read_only=True, idempotent=True, open_world=False, concurrency=4)
    def grep(self, pattern: str, path: str = ".", include: str | None = None) -> Matches:
        """Find lines in text files by a regular expression (Python's; `(?i)` in front ignores case).

        Binary files, files of more than 10 MiB, and version control and cache directories (.git, node_modules, ...) are
        left out.

        Args:
            pattern: The regular expression; it is looked for in each line by itself.
            path: The directory or file to search, relative to the root directory.
            include: A file name pattern, for example `*.py` or `src/**/*.ts`.
        """
        expression = _expression(pattern)
        names = Glob("**/*" if include is None else include if "/" in include else f"**/{include}")
        budget = self._budget()
        found: list[LineMatch] = []
        searched = large = 0
        note: str | None = None
        try:
            with Searcher(expression, seconds=budget.seconds) as searcher:
                for parts, data in self._texts(path, names, budget):
                    if data is None:
                        large += 1
                        continue
                    left = self.config.max_results - len(found)
                    searched += 1
                    lines = searcher.search(data, left + 1)
                    found += [LineMatch(shown(parts), line, text) for line, text in lines[:left]]
                    if len(lines) > left:
                        raise _Enough(f"stopped after {self.config.max_results} lines: use a narrower pattern")
                    budget.check_time()
        except _Enough as enough:
            note = str(enough)
        except TooSlow:
            note = str(budget.over())
        except OSError as error:
            raise ToolError(
                f"the search could not be started ({reason(error)}): a pattern without groups and repetitions may work"
            ) from None
        if note is None and large:
            note = (
                f"{large} file{'s' if large > 1 else ''} of more than {MAX_SEARCHED // 1024 // 1024} MiB not searched"
            )
        return Matches(found, searched, note is not None, note)

    read_file.touches(_reads)
    list_dir.touches(_reads)
    glob.touches(_reads)
    grep.touches(_reads)
    write_file.touches(_writes)
    edit_file.touches(_writes)

    # What the tools are made of.

    def _budget(self) -> _Budget:
        return _Budget(self.config.time_limit, time.monotonic() + self.config.time_limit)

    def _check_writable(self) -> None:
        if self.config.read_only:
            raise ToolError("the filesystem toolkit is configured read-only: files cannot be written or edited")

    def _check_size(self, size: int) -> None:
        if size > self.config.max_write_bytes:
            raise ToolError(f"{size} bytes are more than a written file may have ({self.config.max_write_bytes})")

    def _check_there(self, path: str, place: Place) -> None:
        if place.status is None:
            raise place.missing(path)

    def _is_file_inside(self, parts: tuple[str, ...]) -> bool:
        """Whether a symlink leads to a file inside the root."""
        try:
            with self._root.place("/".join(parts)) as place:
                return place.status is not None and stat.S_ISREG(place.status.st_mode)
        except (ToolError, OSError):
            return False

    def _walk(
        self, path: str, wanted: Glob, budget: _Budget
    ) -> Iterator[tuple[tuple[str, ...], Literal["file", "directory", "symlink", "other"], bool]]:
        """Everything beneath `path` that the pattern may match: its real way, its kind, whether it matches.

        Directories that are symlinks are not entered: nothing is walked twice, and nothing outside.
        """
        with self._root.place(path) as place:
            self._check_there(path, place)
            if place.name != ".":
                raise ToolError(f"{path!r} is not a directory")
            base = place.parts
        waiting: list[tuple[tuple[str, ...], States]] = [(base, wanted.start())]
        while waiting:
            parts, states = waiting.pop()
            deeper: list[tuple[tuple[str, ...], States]] = []
            for name, kind in self._names_in(parts, budget):
                if name in SKIPPED and name not in wanted.names:
                    continue
                following, matched = wanted.step(states, name)
                here = (*parts, name)
                yield here, kind, matched
                if kind == "directory" and following:
                    deeper.append((here, following))
            waiting += reversed(deeper)

    def _names_in(
        self, parts: tuple[str, ...], budget: _Budget
    ) -> list[tuple[str, Literal["file", "directory", "symlink", "other"]]]:
        """A directory's names in order; one that cannot be read, or is gone, has none."""
        names: list[tuple[str, Literal["file", "directory", "symlink", "other"]]] = []
        try:
            folder = self._root.open_folder(parts)
        except OSError:
            budget.spend(1)
            return names
        try:
            with os.scandir(folder) as scan:
                for entry in scan:
                    names.append((entry.name, _kind(entry)))
                    if len(names) % 1000 == 0:
                        budget.spend(1000)
        except OSError:
            return names
        finally:
            os.close(folder)
        budget.spend(len(names) % 1000 + 1)
        return sorted(names)

    def _texts(self, path: str, names: Glob, budget: _Budget) -> Iterator[tuple[tuple[str, ...], bytes | None]]:
        """The text files to search; None stands for one that is too large."""
        with self._root.place(path) as place:
            self._check_there(path, place)
            single = None if place.name == "." else place.parts
            if single is not None:
                check_regular(path, os.stat(place.name, dir_fd=place.folder, follow_symlinks=False))
        if single is not None:
            found = self._text(single)
            if found is not None:
                yield single, found[0]
            return
        for parts, kind, matched in self._walk(path, names, budget):
            if matched and kind == "file":
                budget.check_time()
                found = self._text(parts)
                if found is not None:
                    yield parts, found[0]

    def _text(self, parts: tuple[str, ...]) -> tuple[bytes | None] | None:
        """The bytes of a text file (None: too large); None where it is no text, or cannot be read."""
        try:
            folder = self._root.open_folder(parts[:-1])
            try:
                with open_file(parts[-1], folder, parts[-1]) as file:
                    if os.fstat(file.fileno()).st_size > MAX_SEARCHED:
                        return (None,)
                    sample = file.read(text_files.SAMPLE)
                    if text_files.binary_kind(sample) is not None:
                        return None
                    data = sample + file.read(MAX_SEARCHED + 1 - len(sample))
            finally:
                os.close(folder)
        except (OSError, ToolError):
            return None
        return (data if len(data) <= MAX_SEARCHED else None,)

    def _exchange(self, place: Place, data: bytes, *, before: os.stat_result | None = None) -> None:
        """Put `data` in the place of a file in one step, with the file's mode.

        `before` is how the file was when it was read: one that has changed since is left as it is.
        """
        old = place.status
        if old is not None and not os.access(place.name, os.W_OK, dir_fd=place.folder):
            raise ToolError(f"{place.shown!r} is write-protected")
        temporary = f".anykit-{os.urandom(8).hex()}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(temporary, flags, 0o666 if old is None else 0o600, dir_fd=place.folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                if old is not None:
                    with contextlib.suppress(OSError):  # only root may give files away
                        os.fchown(file.fileno(), old.st_uid, old.st_gid)
                    os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
                os.fsync(file.fileno())
            if before is not None:
                now = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
                if _version(now) != _version(before):
                    raise ToolError(f"{place.shown!r} was changed while it was being edited: read it again")
            os.replace(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=place.folder)
            raise


def _version(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _as_text(lines: text_files.Lines, size: int) -> str:
    try:
        text, notes = lines.data.decode(), list[str]()
    except UnicodeDecodeError:
        text, notes = lines.data.decode(errors="replace"), ["not all of it is UTF-8: other bytes are shown as \ufffd"]
    if lines.more and lines.whole:
        notes.append(f"cut after line {lines.last}; the file has {size} bytes: go on with start_line={lines.last + 1}")
    elif lines.more:
        notes.append(f"cut in line {lines.last}, which is too long to be shown whole; the file has {size} bytes")
    if not notes:
        return text
    return f"{text}{'' if text.endswith(chr(10)) else chr(10)}[{'; '.join(notes)}]"


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ToolError("the text has a lone surrogate, which no file can hold") from None


def _decoded(path: str, data: bytes) -> str:
    kind = text_files.binary_kind(data[: text_files.SAMPLE])
    if kind is not None:
        raise ToolError(f"{path!r} cannot be edited: it is no text but {kind}, {len(data)} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ToolError(f"{path!r} cannot be edited: it is not UTF-8 at byte {error.start}") from None


def _kind(entry: os.DirEntry[str]) -> Literal["file", "directory", "symlink", "other"]:
    try:
        if entry.is_symlink():
            return "symlink"
        if entry.is_dir(follow_symlinks=False):
            return "directory"
        return "file" if entry.is_file(follow_symlinks=False) else "other"
    except OSError:
        return "other"


def _entry(entry: os.DirEntry[str]) -> Entry:
    kind = _kind(entry)
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:  # gone since it was listed
        return Entry(printable(entry.name), kind, None, None)
    try:
        modified = datetime.fromtimestamp(int(status.st_mtime), UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        modified = None
    return Entry(printable(entry.name), kind, status.st_size if kind == "file" else None, modified)


def _expression(pattern: str) -> re.Pattern[str]:
    if not pattern or len(pattern) > MAX_PATTERN:
        raise ToolError(f"a pattern has 1 to {MAX_PATTERN} characters")
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError, Warning) as error:
        raise ToolError(f"not a regular expression: {error}; escape special characters with a backslash") from None
