"""What a check found, and what it is told to look at."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from anykit.app.config import AppConfig
from anykit.capabilities import JsonObject
from anykit.runtime import Snapshot

Severity: TypeAlias = Literal["error", "warning", "note"]
"""`error`: it does not work, or it is open to others. `warning`: it works and is not meant so. `note`: look at it."""
ORDER: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, where, and how to mend it. No text shows a secret's value."""

    code: str
    severity: Severity
    where: str
    message: str
    fix: str

    def to_json(self) -> JsonObject:
        """As `--json` shows it."""
        return {
            "code": self.code,
            "severity": self.severity,
            "where": self.where,
            "message": self.message,
            "fix": self.fix,
        }


@dataclass(frozen=True, slots=True)
class Case:
    """What the checks look at: a configuration, and what its sources were once they had been opened."""

    config: AppConfig
    """As it is written, with references."""
    snapshot: Snapshot = field(default_factory=Snapshot)
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    data_dir: Path | None = None
    home: Path = field(default_factory=Path.home)
    took: Mapping[str, float] = field(default_factory=dict[str, float])
    """Seconds to each source's verdict."""
    waited: float = 0.0
    """Seconds that sources were waited for."""
    replaced: bool = False
    """Whether sources on the command line stand in for those of the file, so that its rules may match nothing."""

    @property
    def where(self) -> str:
        """The file, for people."""
        return self.config.path.name if self.config.path is not None else "config"

    def at(self, *steps: str | int) -> str:
        """A place in the file: `anykit.toml: serve.token`."""
        return f"{self.where}: {'.'.join(map(str, steps))}"
