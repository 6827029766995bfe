"""File name patterns, matched name by name while walking down, so that what cannot match is never entered.

`*` and `?` match within a name, `[a-z]` a character, `**` any number of folders, `{a,b}` one of several.
"""

from __future__ import annotations

import fnmatch
import re
from typing import TypeAlias

from anykit.tools import ToolError

MAX_LENGTH = 1000
MAX_CHOICES = 64

States: TypeAlias = frozenset[tuple[int, int]]
"""How far each choice of a pattern has matched."""

_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


class Glob:
    """A pattern. Raises `ToolError` for one that is empty, too long, absolute or leads upwards."""

    def __init__(self, pattern: str) -> None:
        if not pattern or len(pattern) > MAX_LENGTH or "\0" in pattern:
            raise ToolError(f"a file pattern has 1 to {MAX_LENGTH} characters and no NUL")
        self.folders_only = pattern.endswith("/")
        self._choices: list[list[re.Pattern[str] | None]] = []
        self.names: set[str] = set()
        """The parts as they were written."""
        for choice in _expand(pattern):
            parts = [part for part in choice.split("/") if part not in ("", ".")]
            if choice.startswith("/") or ".." in parts or not parts:
                raise ToolError(f"the pattern {pattern!r} is relative to `path` and does not lead upwards")
            self.names.update(parts)
            # `fnmatch` makes expressions that match in linear time.
            self._choices.append([None if part == "**" else re.compile(fnmatch.translate(part)) for part in parts])

    def start(self) -> States:
        """Nothing matched yet."""
        return self._closed({(choice, 0) for choice in range(len(self._choices))})

    def step(self, states: States, name: str) -> tuple[States, bool]:
        """Go down to `name`: what may match beneath it, and whether it matches itself."""
        following: set[tuple[int, int]] = set()
        for choice, index in states:
            parts = self._choices[choice]
            if index == len(parts):
                continue
            part = parts[index]
            if part is None:
                following.add((choice, index))
            elif part.match(name):
                following.add((choice, index + 1))
        closed = self._closed(following)
        return closed, any(index == len(self._choices[choice]) for choice, index in closed)

    def matches(self, parts: tuple[str, ...]) -> bool:
        """Whether a whole path matches."""
        states, matched = self.start(), False
        for name in parts:
            states, matched = self.step(states, name)
        return matched

    def _closed(self, states: set[tuple[int, int]]) -> States:
        """`**` matches no folder too."""
        closed = set(states)
        for choice, index in states:
            parts = self._choices[choice]
            while index < len(parts) and parts[index] is None:
                index += 1
                closed.add((choice, index))
        return frozenset(closed)


def _expand(pattern: str) -> list[str]:
    """`{a,b}` as several patterns, the innermost first."""
    waiting, done = [pattern], list[str]()
    while waiting:
        current = waiting.pop(0)
        braces = _BRACES.search(current)
        if braces is None:
            done.append(current)
        else:
            waiting += [current[: braces.start()] + word + current[braces.end() :] for word in braces[1].split(",")]
        if len(waiting) + len(done) > MAX_CHOICES:
            raise ToolError(f"the pattern stands for more than {MAX_CHOICES} patterns")
    return done
