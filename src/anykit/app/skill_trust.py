"""Whether a skill that lies in a project may be used: a person agreed to it, as it is now, by its file or its folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from anykit.sources.skills import files_of_skill

from .config import ConfigError
from .trust import Trust, skill_key

KEPT: Final = 1_000
"""Skills whose digests are remembered."""


class SkillTrust:
    """Judges skills by what was agreed to; asked from threads. Nothing that cannot be read is agreed to."""

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        self._keys: dict[Path, tuple[object, str]] = {}
        self._record: tuple[object, dict[str, frozenset[str]]] = (None, {})

    def __call__(self, folder: Path) -> bool:
        """Whether the skill in `folder`, a real path, may be used."""
        agreed = self._agreed()
        places = {str(folder), *map(str, folder.parents), *(str(folder / name) for name in ("SKILL.md", "skill.md"))}
        digests = [agreed[place] for place in places & agreed.keys()]
        return any(self._key(folder) in known for known in digests)

    def _agreed(self) -> dict[str, frozenset[str]]:
        """What was agreed to, by file or folder; read again where the record changed."""
        try:
            status = self._trust.path.stat()
        except OSError:
            return {}
        stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        if self._record[0] != stamp:
            try:
                known = {str(one.file): one.digests for one in self._trust.files()}
            except ConfigError:
                known = dict[str, frozenset[str]]()
            self._record = (stamp, known)
        return self._record[1]

    def _key(self, folder: Path) -> str:
        stamp = [(one.path, one.stamp) for one in files_of_skill(folder)]
        known = self._keys.get(folder)
        if known is None or known[0] != stamp:
            if len(self._keys) >= KEPT:
                self._keys.clear()
            known = self._keys[folder] = (stamp, skill_key(Path(os.path.realpath(folder))))
        return known[1]
