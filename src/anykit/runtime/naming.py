"""What a capability is called: one rule for every source.

A valid name is kept exactly. Where cleaning or cutting made names equal, every changed one ends in a hash of its source
and original. Where two sources offer the same valid name at once, each gets its owner before it; one that comes later
takes the longer name. A name, once given, is never pointed at something else while the process lives.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

VALID = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
LENGTH = 64
_HASH = 8
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that needs a name: `original` is its source's own, `owner` its toolkit, module or source."""

    source: str
    original: str
    prefix: str
    owner: str

    @property
    def key(self) -> tuple[str, str]:
        """What it is, whatever it is called."""
        return (self.source, self.original)


@dataclass(frozen=True, slots=True)
class Name:
    """A name and, where it is not the source's own, why not."""

    exposed: str
    reason: str = ""


def clean(name: str) -> str:
    """`name` with each foreign character as `_`, and `_` before a leading digit or hyphen."""
    cleaned = _FOREIGN.sub("_", name)
    return cleaned if cleaned and not cleaned[0].isdigit() and cleaned[0] != "-" else f"_{cleaned}"


def hashed(name: str, key: tuple[str, str]) -> str:
    """`name`, cut so that a hash of `key` fits behind it."""
    digest = hashlib.sha256("\0".join(key).encode(errors="surrogatepass")).hexdigest()[:_HASH]
    return f"{name[: LENGTH - _HASH - 1]}_{digest}"


class Names:
    """The names given so far."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], Name] = {}
        self._taken: set[str] = set()

    def assign(self, candidates: Iterable[Candidate]) -> dict[tuple[str, str], Name]:
        """Names for all of `candidates`, decided together; those that have one keep it."""
        asked = list(candidates)
        fresh = [candidate for candidate in asked if candidate.key not in self._given]
        exact: dict[str, list[Candidate]] = defaultdict(list)
        changed: dict[str, list[Candidate]] = defaultdict(list)
        for candidate in fresh:
            wanted = candidate.prefix + candidate.original
            if VALID.fullmatch(wanted):
                exact[wanted].append(candidate)
            else:
                changed[clean(wanted)[:LENGTH]].append(candidate)
        for wanted, rivals in exact.items():
            if len(rivals) == 1 and wanted not in self._taken:
                self._give(rivals[0], wanted, "source prefix" if rivals[0].prefix else "")
                continue
            for rival in rivals:
                self._give_longer(rival, wanted)
        for wanted, rivals in changed.items():
            alone = len(rivals) == 1 and wanted not in self._taken
            for rival in rivals:
                name = wanted if alone else hashed(wanted, rival.key)
                self._give(rival, name, "not a valid name" if alone else "not a valid name, and equal to another's")
        return {candidate.key: self._given[candidate.key] for candidate in asked}

    def _give(self, candidate: Candidate, name: str, reason: str) -> None:
        self._taken.add(name)
        self._given[candidate.key] = Name(name, reason)

    def _give_longer(self, candidate: Candidate, wanted: str) -> None:
        longer = clean(f"{candidate.owner}_{wanted}")
        if len(longer) > LENGTH or longer in self._taken or longer == wanted:
            longer = hashed(longer, candidate.key)
        self._give(candidate, longer, f"another source offers {wanted!r} too")
