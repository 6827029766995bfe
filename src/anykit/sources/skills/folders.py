"""Where skills lie: the places that clients keep them in, and folders as they are given. Looking is bounded."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .errors import Finding
from .files import SKIPPED
from .skill import Scope
from .strict import NAMES

MAX_DEPTH: Final = 5
"""Folders that are gone down to find skills."""
MAX_FOLDERS: Final = 2_000
"""Folders that are looked into."""
MAX_SKILLS: Final = 1_000

_PROJECT: Final = (".agents/skills", ".claude/skills")
_USER: Final = (
    ".agents/skills",
    ".claude/skills",
    ".cursor/skills",
    ".codex/skills",
    ".gemini/skills",
    ".copilot/skills",
)
_CONFIG: Final = ("opencode/skills", "agents/skills")
_SYSTEM: Final = ("/etc/codex/skills",)


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that is looked through."""

    path: Path
    scope: Scope = "given"
    recursive: bool = True
    """Whether skills may lie deeper than in a folder of their own right beneath it."""
    exact: bool = False
    """Whether the file must be called `SKILL.md` exactly."""


@dataclass(frozen=True, slots=True)
class Found:
    """A folder with a `SKILL.md`."""

    folder: Path
    """Its real path."""
    file: str
    place: Place


def usual_places(project: Path, env: Mapping[str, str], *, system: Sequence[str] = _SYSTEM) -> list[Place]:
    """Where clients keep skills, those that count most first: the project's, the user's, the system's."""
    home = Path(env.get("HOME") or os.path.expanduser("~"))
    config = Path(env.get("XDG_CONFIG_HOME") or home / ".config")
    return [
        *(Place(project / one, "project") for one in _PROJECT),
        *(Place(home / one, "user") for one in _USER),
        *(Place(config / one, "user") for one in _CONFIG),
        *(Place(Path(one), "system") for one in system),
    ]


def look(places: Sequence[Place]) -> tuple[list[Found], list[Finding]]:
    """The folders with a `SKILL.md` beneath `places`, each once, in their order, and what was not gone into."""
    looking = _Looking([os.path.realpath(place.path) for place in places])
    for place in places:
        looking.through(place)
    return looking.found, looking.findings


class _Looking:
    def __init__(self, roots: Sequence[str]) -> None:
        self.found: list[Found] = []
        self.findings: list[Finding] = []
        self._roots = roots
        self._seen: set[tuple[int, int]] = set()
        self._left = MAX_FOLDERS

    def through(self, place: Place) -> None:
        root = os.path.realpath(place.path)
        todo: deque[tuple[str, int]] = deque([(root, 0)])
        while todo:
            folder, depth = todo.popleft()
            if len(self.found) >= MAX_SKILLS:
                self._warn(place.path, f"has more than {MAX_SKILLS} skills; the rest is left out")
                return
            if self._left <= 0:
                self._warn(place.path, f"has more than {MAX_FOLDERS} folders; the rest was not looked through")
                return
            self._left -= 1
            try:
                status = os.stat(folder)
                if not stat.S_ISDIR(status.st_mode) or (status.st_dev, status.st_ino) in self._seen:
                    continue
                self._seen.add((status.st_dev, status.st_ino))
                with os.scandir(folder) as entries:
                    names = {entry.name: entry for entry in entries}
            except OSError as error:
                if depth or place.scope == "given":
                    self._warn(Path(folder), f"cannot be looked into: {error.strerror or error}")
                continue
            file = next((name for name in NAMES[: 1 if place.exact else 2] if name in names), None)
            if file is not None and self._is_skill(Path(folder), file, names[file]):
                self.found.append(Found(Path(folder), file, place))
            elif file is None and depth < (MAX_DEPTH if place.recursive else 1):
                todo += [(deeper, depth + 1) for name in sorted(names) if (deeper := self._deeper(names[name]))]

    def _is_skill(self, folder: Path, file: str, entry: os.DirEntry[str]) -> bool:
        try:
            if entry.is_file(follow_symlinks=False):
                return True
            if entry.is_symlink() and entry.is_file():
                if os.path.realpath(entry.path).startswith(f"{folder}/"):
                    return True
                self.findings.append(Finding("error", str(folder / file), "is a link that leads out of its folder"))
                return False
        except OSError:
            pass
        self.findings.append(Finding("error", str(folder / file), "is no file"))
        return False

    def _deeper(self, entry: os.DirEntry[str]) -> str | None:
        """The real path of a folder that is to be looked into."""
        if entry.name in SKIPPED:
            return None
        try:
            if not entry.is_symlink():
                return entry.path if entry.is_dir(follow_symlinks=False) else None
            if not entry.is_dir():
                return None
            real = os.path.realpath(entry.path)
        except OSError:
            return None
        if any(real == root or real.startswith(root.rstrip("/") + "/") for root in self._roots):
            return real
        if any(os.path.isfile(os.path.join(real, name)) for name in NAMES):
            self._warn(Path(entry.path), "is a link that leads out of the folder; name the folder behind it itself")
        return None

    def _warn(self, where: Path, message: str) -> None:
        self.findings.append(Finding("warning", str(where), message))
