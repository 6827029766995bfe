"""A folder that nothing leaves: paths are walked one name at a time from the folder's own descriptor.

Every step opens its name beneath the one before with `O_NOFOLLOW`, so a name that becomes a symlink in between stops the
walk instead of leading it away. A symlink is read, its real target computed, and the walk begins again there if the
target lies inside. What lies outside is refused before it is looked at, in the same words whether it exists or not.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import os
import stat
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from anykit.tools import ToolError

MAX_LINKS = 40
"""Symlinks followed in one path; more is a loop."""
MAX_PATH = 4096
"""Characters of a path."""
MAX_DEPTH = 128
"""Folders that a path may go down; each is held open while it is walked."""

_SPECIAL = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISLNK, "a symbolic link"),
)
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class Place:
    """Where a path leads: an open folder and a name in it that is no symlink, and may not exist.

    `name` is "." where the path is a folder that was opened itself. Close `folder` when done.
    """

    folder: int
    name: str
    parts: tuple[str, ...]
    """The real way to it from the root."""
    status: os.stat_result | None
    """None where nothing is there."""

    @property
    def shown(self) -> str:
        """The path as results show it."""
        return shown(self.parts)

    def missing(self, path: str) -> ToolError:
        """The error for a path that does not exist."""
        return missing(path, self.folder, self.parts[:-1], self.name)


def shown(parts: tuple[str, ...]) -> str:
    """A relative path as text; bytes that are no UTF-8 are replaced."""
    return printable("/".join(parts)) or "."


def printable(name: str) -> str:
    """A file name as text that JSON can carry."""
    return os.fsencode(name).decode("utf-8", "replace")


class Root:
    """The folder. With `within` it must lie in one of those folders, and is opened from there.

    Raises `ToolError` where it does not, is no folder or cannot be opened.
    """

    def __init__(self, path: Path, *, within: Sequence[Path] | None = None) -> None:
        self.given = os.path.abspath(path)
        self.path = os.path.realpath(path)
        start, parts = self.path, tuple[str, ...]()
        if within is not None:
            start, parts = self._bound(path, within)
        try:
            self._descriptor = os.open(start, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            if parts:
                # The real path again, step by step: what was changed since it was looked up leads nowhere.
                outer = self._descriptor
                try:
                    self._descriptor = self.open_folder(parts)
                finally:
                    os.close(outer)
        except OSError as error:
            raise ToolError(f"the root directory {str(path)!r} cannot be used: {reason(error)}") from None

    def _bound(self, path: Path, within: Sequence[Path]) -> tuple[str, tuple[str, ...]]:
        """The folder of `within` that holds the root, and the way from there."""
        for folder in map(os.path.realpath, within):
            beneath = folder.rstrip("/") + "/"
            if self.path == folder:
                return folder, ()
            if self.path.startswith(beneath):
                return folder, tuple(self.path[len(beneath) :].split("/"))
        raise ToolError(
            f"the root directory {str(path)!r} is outside the directories that the operator of this host allows"
        )

    def close(self) -> None:
        """Let the folder go; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @contextlib.contextmanager
    def place(self, path: str, *, make_folders: bool = False) -> Generator[Place, None, None]:
        """Walk to a path. With `make_folders` the folders that miss on the way are made.

        Raises `ToolError`: it leads outside, a folder on the way is missing or none, it is a loop, it is not a path.
        """
        folders: list[int] = [os.dup(self._descriptor)]
        try:
            parts, status = self._walk(path, folders, make_folders=make_folders)
            yield Place(folders[-1], parts[-1] if len(folders) <= len(parts) else ".", tuple(parts), status)
        except OSError as error:
            raise ToolError(f"{path!r}: {reason(error)}") from None
        finally:
            for folder in folders:
                os.close(folder)

    def open_folder(self, parts: tuple[str, ...]) -> int:
        """Open a folder by its real way from the root. Raises `OSError`; what became a symlink is not followed."""
        folder = os.dup(self._descriptor)
        for name in parts:
            try:
                deeper = os.open(name, _DIRECTORY, dir_fd=folder)
            finally:
                os.close(folder)
            folder = deeper
        return folder

    def _walk(self, path: str, folders: list[int], *, make_folders: bool) -> tuple[list[str], os.stat_result | None]:
        """Leaves the last folder opened in `folders`. The last name is not opened unless it is a folder."""
        todo = deque(self._names(path))
        parts: list[str] = []
        links = 0
        while todo:
            name = todo.popleft()
            if name == "..":
                if not parts:
                    raise outside(path)
                parts.pop()
                os.close(folders.pop())
                continue
            try:
                status = os.stat(name, dir_fd=folders[-1], follow_symlinks=False)
            except FileNotFoundError:
                if not todo:
                    return [*parts, name], None
                if not make_folders:
                    raise missing(path, folders[-1], tuple(parts), name) from None
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=folders[-1])
                status = os.stat(name, dir_fd=folders[-1], follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                links += 1
                if links > MAX_LINKS:
                    raise ToolError(f"{path!r} goes round in a loop of symbolic links")
                todo.extendleft(reversed(self._target(path, folders[-1], parts, name)))
                parts.clear()
                while len(folders) > 1:
                    os.close(folders.pop())
                continue
            if not stat.S_ISDIR(status.st_mode):
                if todo:
                    raise ToolError(f"{path!r}: {shown((*parts, name))!r} is not a directory")
                return [*parts, name], status
            if len(folders) > MAX_DEPTH:
                raise ToolError(f"a path goes at most {MAX_DEPTH} directories down")
            folders.append(os.open(name, _DIRECTORY, dir_fd=folders[-1]))
            parts.append(name)
        return parts, os.fstat(folders[-1])

    def _names(self, path: str) -> list[str]:
        """The names of a caller's path, beneath the root."""
        if "\0" in path or len(path) > MAX_PATH:
            raise ToolError("a path is at most 4096 characters and has no NUL")
        try:
            path.encode()
        except UnicodeEncodeError:
            raise ToolError("a path is text: it has a lone surrogate") from None
        relative = path
        if path.startswith("/"):
            # An absolute path is taken where it names something inside, as the root was given or as it really lies.
            for root in (self.given, self.path):
                if path == root or path.startswith(root.rstrip("/") + "/"):
                    relative = path[len(root) :]
                    break
            else:
                raise outside(path)
        names = [name for name in relative.split("/") if name not in ("", ".")]
        depth = 0
        for name in names:  # so that a missing folder on the way makes no difference to what is outside
            depth += -1 if name == ".." else 1
            if depth < 0:
                raise outside(path)
        return names

    def _target(self, path: str, folder: int, parts: list[str], name: str) -> list[str]:
        """Where a symlink really leads, from the root."""
        target = os.readlink(name, dir_fd=folder)
        real = os.path.realpath(os.path.join(self.path, *parts, target))
        inside = self.path.rstrip("/") + "/"
        if real != self.path and not real.startswith(inside):
            raise outside(path)
        return [name for name in real[len(self.path) :].split("/") if name]


def missing(path: str, folder: int, parts: tuple[str, ...], name: str) -> ToolError:
    """The error for a path that does not exist, with what its folder has under similar names."""
    try:
        names = [printable(entry) for entry in os.listdir(folder)[:10_000]]
    except OSError:
        names = []
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    close += [entry for entry in names if entry.lower() == name.lower() and entry not in close]
    hint = f"; did you mean {' or '.join(repr(shown((*parts, entry))) for entry in close)}?" if close else ""
    return ToolError(f"{path!r} does not exist{hint}")


def open_file(path: str, folder: int, name: str) -> BinaryIO:
    """Open a regular file for reading; a pipe or device is never waited for. Raises `ToolError`, `OSError`."""
    check_regular(path, os.stat(name, dir_fd=folder, follow_symlinks=False))
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    file = os.fdopen(os.open(name, flags, dir_fd=folder), "rb")
    try:
        check_regular(path, os.fstat(file.fileno()))  # what is open now is what is read
    except ToolError:
        file.close()
        raise
    return file


def check_regular(path: str, status: os.stat_result) -> None:
    """Raises `ToolError` where it is no file with contents."""
    if stat.S_ISREG(status.st_mode):
        return
    kind = next((kind for test, kind in _SPECIAL if test(status.st_mode)), "no regular file")
    hint = ": use list_dir" if kind == "a directory" else ""
    raise ToolError(f"{path!r} is {kind}, not a file with contents{hint}")


def outside(path: str) -> ToolError:
    """The error for a path that leads out of the root, whether or not it exists there."""
    return ToolError(f"{path!r} is outside the root directory; paths are relative to it")


def reason(error: OSError) -> str:
    """What an error of the system means, without the path that it names."""
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "it is not a directory, or was changed while it was being opened"
    return error.strerror or type(error).__name__
