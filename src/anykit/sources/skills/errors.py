"""What can be wrong with skills, for whoever wrote them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


class Unreadable(ValueError):
    """A file that is no skill, no manifest; the text says why, `line` where (1 is the first, None the whole file)."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a person should know of a skill. An `error` is why something is not offered at all."""

    level: Literal["error", "warning"]
    where: str
    """The file, with the line where it is known: `skills/pdf/SKILL.md:3`."""
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"
