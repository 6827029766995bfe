"""Files that are watched by looking: twice a second at what the system says of each, and at its bytes once that changed.

So links may be turned, files replaced by renaming, and folders be on a network. A change is told once it has been quiet
for a moment, for editors write more than once.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import AsyncGenerator, Callable, Iterable
from pathlib import Path
from typing import TypeAlias

EVERY = 0.3
"""Seconds between two looks."""
QUIET = 0.2
"""Seconds without a change until one is told."""
GONE = 2.0
"""Seconds that a file may be missing: while it is replaced, it is not there."""
MAX_BYTES = 64 * 1024 * 1024

Stamp: TypeAlias = "tuple[int, ...] | None"


class Watch:
    """Watches those files that `files` names, which may be others each time. Nothing is held open."""

    def __init__(self, files: Callable[[], Iterable[Path]]) -> None:
        self._files = files
        self._stamps: dict[Path, Stamp] = {}
        self._digests: dict[Path, str | None] = {}
        self._missing: dict[Path, float] = {}
        self._poked = asyncio.Event()
        for file in files():
            self._know(file)

    def poke(self) -> None:
        """Look now, and tell even where nothing changed: with an empty set then."""
        self._poked.set()

    async def changes(self) -> AsyncGenerator[frozenset[Path]]:
        """The files that hold something else than before, each time there are any."""
        while True:
            poked = await self._pause(EVERY)
            if not self._moved() and not poked:
                continue
            while self._moved():
                self._remember()
                await self._pause(QUIET)
            changed = self._changed()
            if changed or poked:
                yield changed

    async def _pause(self, seconds: float) -> bool:
        """Wait; whether somebody poked."""
        try:
            async with asyncio.timeout(seconds):
                await self._poked.wait()
        except TimeoutError:
            return False
        self._poked.clear()
        return True

    def _known(self) -> set[Path]:
        return set(self._files())

    def _know(self, file: Path) -> None:
        self._stamps[file] = _stamp(file)
        self._digests[file] = _digest(file)

    def _moved(self) -> bool:
        """Whether the system says otherwise of a file than it did."""
        moved = False
        for file in self._known():
            if file not in self._digests:
                self._know(file)  # new to us; what it holds was read when it was named
                continue
            stamp = _stamp(file)
            if stamp is None and self._is_being_replaced(file):
                continue
            moved = moved or stamp != self._stamps[file]
        return moved

    def _is_being_replaced(self, file: Path) -> bool:
        now = asyncio.get_running_loop().time()
        return now - self._missing.setdefault(file, now) < GONE

    def _remember(self) -> None:
        for file in self._known():
            stamp = _stamp(file)
            if stamp is not None:
                self._missing.pop(file, None)
                self._stamps[file] = stamp
            elif not self._is_being_replaced(file):
                self._stamps[file] = None

    def _changed(self) -> frozenset[Path]:
        changed: set[Path] = set()
        for file in self._known():
            digest = _digest(file)
            if digest is None and self._is_being_replaced(file):
                continue
            if file in self._digests and digest != self._digests[file]:
                changed.add(file)
            self._digests[file] = digest
        return frozenset(changed)


def _stamp(file: Path) -> Stamp:
    """What the system says of a file, links followed; None where there is none."""
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _digest(file: Path) -> str | None:
    """What is in a file; None where it cannot be read."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as stream:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return None
            return hashlib.sha256(stream.read(MAX_BYTES)).hexdigest()
    except (OSError, ValueError):
        return None
