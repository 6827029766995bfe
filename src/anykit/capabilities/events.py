"""What a running call says before it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from .content import ContentPart

LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total` (None where the end is unknown)."""

    done: float
    total: float | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Log:
    """A line for whoever watches."""

    level: LogLevel
    message: str


@dataclass(frozen=True, slots=True)
class Artifact:
    """A piece of the result, early: `append` adds to the artifact of that name, `last` ends it."""

    name: str
    part: ContentPart
    append: bool = False
    last: bool = True


@dataclass(frozen=True, slots=True)
class Status:
    """What it is doing now."""

    message: str


Event: TypeAlias = Progress | Log | Artifact | Status
