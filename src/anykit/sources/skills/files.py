"""The files of a folder that nothing leaves: listed without following links out, read one step at a time.

A path is walked from the folder's own descriptor with `O_NOFOLLOW`, along the way where it really lies: what becomes a link
in between stops the walk. What lies outside, what is no regular file and what is not there are refused in the same words.
"""

from __future__ import annotations

import hashlib
import mimetypes
import os
import stat
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import quote, unquote_to_bytes

MAX_FILES: Final = 5_000
"""Files of one skill that are listed."""
MAX_DEPTH: Final = 16
"""Folders that a file may lie deep."""
MAX_READ: Final = 16 * 1024 * 1024
"""Bytes of a file that is read."""
MAX_PATH: Final = 1024
MAX_HASHED: Final = 256 * 1024 * 1024
"""Bytes of a file whose digest is taken."""
SKIPPED: Final = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})
"""Folders that are nobody's instructions; nothing in them is listed or read."""

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class NotThere(LookupError):
    """There is no such file in the folder, or none that may be read."""


class TooLarge(ValueError):
    """It is longer than what is read."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A file of a folder."""

    path: str
    """From the folder, with `/`; names that are no UTF-8 hold surrogates, as Python has them."""
    size: int
    stamp: tuple[int, int, int, int]
    """Changes when the file does: time of change and of its inode (ns), size, inode."""

    @property
    def shown(self) -> str:
        """The path as text that JSON can carry."""
        return printable(self.path)


@dataclass(frozen=True, slots=True)
class Tree:
    """What a folder holds."""

    files: tuple[Listed, ...] = ()
    """In order of their paths."""
    folders: tuple[str, ...] = ()
    """Paths of the folders beneath it, in order."""
    complete: bool = True
    """Whether that is all of it."""


def printable(path: str) -> str:
    """A path as text that JSON can carry."""
    return os.fsencode(path).decode("utf-8", "replace")


def quoted(path: str) -> str:
    """A path as part of a URI."""
    return quote(os.fsencode(path), safe="/")


def unquoted(path: str) -> str:
    """The path that a part of a URI means."""
    return os.fsdecode(unquote_to_bytes(path))


def tree_of(folder: Path) -> Tree:
    """What `folder` holds. Links are not walked; one to a file counts where the file lies in the folder."""
    root = os.path.realpath(folder)
    files: list[Listed] = []
    folders: list[str] = []
    complete = True
    todo: deque[tuple[str, int]] = deque([("", 0)])
    while todo:
        beneath, depth = todo.popleft()
        try:
            with os.scandir(os.path.join(root, beneath)) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            complete = False
            continue
        for entry in found:
            path = f"{beneath}/{entry.name}" if beneath else entry.name
            if len(files) + len(folders) >= MAX_FILES:
                return Tree(_sorted(files), tuple(sorted(folders)), complete=False)
            try:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name in SKIPPED:
                        continue
                    folders.append(path)
                    if depth < MAX_DEPTH:
                        todo.append((path, depth + 1))
                    else:
                        complete = False
                    continue
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISLNK(status.st_mode):
                    if not _is_inside(root, os.path.realpath(entry.path)):
                        continue
                    status = entry.stat()
                if stat.S_ISREG(status.st_mode):
                    files.append(Listed(path, status.st_size, _stamp(status)))
            except OSError:
                continue  # it went, or is a link that leads nowhere
    return Tree(_sorted(files), tuple(sorted(folders)), complete)


def _sorted(files: list[Listed]) -> tuple[Listed, ...]:
    return tuple(sorted(files, key=lambda file: file.path))


def _stamp(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _is_inside(root: str, real: str) -> bool:
    """Whether a real path lies in the root, and in none of the folders that are skipped."""
    if not real.startswith(root.rstrip("/") + "/"):
        return False
    return SKIPPED.isdisjoint(real[len(root) :].split("/"))


def read(folder: Path, path: str, *, limit: int = MAX_READ) -> bytes:
    """A file's bytes. Raises `NotThere`, or `TooLarge`."""
    with _open(folder, path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise TooLarge(f"larger than {limit} bytes")
    return data


def digest(folder: Path, path: str, *, limit: int = MAX_READ) -> tuple[str, int]:
    """A file's SHA-256 as `sha256:<hex>`, and how many bytes it is of. Raises as `read`."""
    whole, size = hashlib.sha256(), 0
    with _open(folder, path) as file:
        while piece := file.read(1024 * 1024):
            size += len(piece)
            if size > limit:
                raise TooLarge(f"larger than {limit} bytes")
            whole.update(piece)
    return f"sha256:{whole.hexdigest()}", size


def _open(folder: Path, path: str) -> BinaryIO:
    names = path.split("/")
    if len(path) > MAX_PATH or "\0" in path or any(name in ("", ".", "..") for name in names):
        raise NotThere(path)
    root = os.path.realpath(folder)
    try:
        real = os.path.realpath(os.path.join(root, *names))
        if not _is_inside(root, real):
            raise NotThere(path)
        *way, name = real[len(root) :].strip("/").split("/")
        current = os.open(root, _DIRECTORY)
        try:
            for step in way:
                deeper = os.open(step, _DIRECTORY, dir_fd=current)
                os.close(current)
                current = deeper
            # A pipe or a device is never waited for, and what is open now is what is read.
            descriptor = os.open(name, _FILE, dir_fd=current)
        finally:
            os.close(current)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise NotThere(path)
        return os.fdopen(descriptor, "rb")
    except (OSError, ValueError):
        raise NotThere(path) from None


def files_of_skill(folder: Path) -> Sequence[Listed]:
    """The files of a folder, in order of their paths."""
    return tree_of(folder).files


def digest_of_tree(folder: Path) -> str:
    """One SHA-256, in hex, of all that a folder holds: paths and contents. What cannot be read counts as such."""
    whole = hashlib.sha256()
    for one in tree_of(folder).files:
        try:
            said = digest(folder, one.path, limit=MAX_HASHED)[0]
        except (NotThere, TooLarge):
            said = f"unread:{one.stamp}"
        whole.update(os.fsencode(one.path) + b"\0" + said.encode() + b"\0")
    return whole.hexdigest()


_TYPES: Final = mimetypes.MimeTypes()  # Python's own table: a machine's would make answers differ between hosts
_OURS: Final = {
    ".cfg": "text/plain",
    ".csv": "text/csv",
    ".go": "text/x-go",
    ".ini": "text/plain",
    ".js": "text/javascript",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".jsx": "text/javascript",
    ".log": "text/plain",
    ".markdown": "text/markdown",
    ".md": "text/markdown",
    ".mjs": "text/javascript",
    ".py": "text/x-python",
    ".rb": "text/x-ruby",
    ".rs": "text/x-rust",
    ".rst": "text/x-rst",
    ".sh": "text/x-shellscript",
    ".sql": "application/sql",
    ".toml": "application/toml",
    ".ts": "text/x-typescript",
    ".tsx": "text/x-typescript",
    ".txt": "text/plain",
    ".webp": "image/webp",
    ".xml": "application/xml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}


def media_type(path: str) -> str | None:
    """What a file's name says that it is; None where it says nothing."""
    ending = os.path.splitext(path)[1].lower()
    if ending in _OURS:
        return _OURS[ending]
    return _TYPES.guess_type(f"x{ending}")[0] if ending else None


def as_text(data: bytes) -> str | None:
    """The text that these bytes are, exactly; None where they are none."""
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def nearest(path: str, tree: Tree) -> Sequence[str]:
    """Files whose paths look like `path`."""
    import difflib  # noqa: PLC0415 - only for whoever mistyped

    known = [file.shown for file in tree.files]
    close = difflib.get_close_matches(path, known, n=3, cutoff=0.6)
    name = path.rpartition("/")[2].lower()
    close += [one for one in known if one.rpartition("/")[2].lower() == name and one not in close]
    return close[:3]
