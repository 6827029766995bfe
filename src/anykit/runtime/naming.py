"""What a capability is called: one rule for every source.

A valid name is kept exactly. Where cleaning or cutting made names equal, every changed one ends in a hash of its source
and original. Where two sources offer the same valid name at once, each gets its owner before it; one that comes later
takes the longer name. A name, once given, is never pointed at something else while the process lives.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

VALID = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
LENGTH = 64
CLEANED = "not a valid name"
"""Why a name was only cleaned: nobody else is concerned."""
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


def hashed(name: str, key: tuple[str, str], *, salt: int = 0) -> str:
    """`name`, cut so that a hash of `key` fits behind it; another hash for each `salt`."""
    text = "\0".join(key if not salt else (*key, str(salt)))
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:_HASH]
    return f"{name[: LENGTH - _HASH - 1]}_{digest}"


class Names:
    """The names given so far."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], Name] = {}
        self._taken: dict[str, tuple[str, str]] = {}
        self._contested: set[str] = set()
        """Names that several offered at once: nobody got them, and nobody gets them later unasked."""
        self._shown: set[str] = set()
        """Names that callers have seen: these are never pointed at something else."""

    def assign(self, candidates: Iterable[Candidate]) -> dict[tuple[str, str], Name]:
        """Names for all of `candidates`, decided together; those that have one keep it."""
        asked = list(candidates)
        fresh = {candidate.key: candidate for candidate in asked if not self._has_name(candidate.key)}
        exact: dict[str, list[Candidate]] = defaultdict(list)
        changed: dict[str, list[Candidate]] = defaultdict(list)
        for candidate in fresh.values():
            wanted = candidate.prefix + candidate.original
            if VALID.fullmatch(wanted):
                exact[wanted].append(candidate)
            else:
                changed[clean(wanted)[:LENGTH]].append(candidate)
        # Valid names first of all: no longer one, and no hash, may take what is another's own.
        rivals: list[tuple[str, Candidate]] = []
        for wanted, wanting in exact.items():
            if len(wanting) == 1 and self._is_free(wanted):
                self._give(wanting[0], wanted, "source prefix" if wanting[0].prefix else "")
                continue
            if len(wanting) > 1:
                self._contested.add(wanted)
            rivals += [(wanted, rival) for rival in wanting]
        self._give_longer(rivals)
        for wanted, equal in changed.items():
            alone = len(equal) == 1 and self._is_free(wanted)
            for one in equal:
                if alone:
                    self._give(one, wanted, CLEANED)
                else:
                    self._give_hashed(one, wanted, "not a valid name, and equal to another's")
        return {candidate.key: self._given[candidate.key] for candidate in asked}

    def claim(self, key: tuple[str, str], name: str) -> bool:
        """Point `name`, chosen by a person, at what has `key`; False where callers know something else by it."""
        if not VALID.fullmatch(name) or (name in self._shown and self._taken.get(name) != key):
            return False
        self._taken[name] = key
        return True

    def owner(self, name: str) -> tuple[str, str] | None:
        """What `name` was given to last."""
        return self._taken.get(name)

    def show(self, names: Iterable[str]) -> None:
        """Callers see these from now on."""
        self._shown.update(names)

    def _has_name(self, key: tuple[str, str]) -> bool:
        given = self._given.get(key)
        return given is not None and self._taken[given.exposed] == key

    def _is_free(self, name: str) -> bool:
        return name not in self._taken and name not in self._contested

    def _give(self, candidate: Candidate, name: str, reason: str) -> None:
        self._taken[name] = candidate.key
        self._given[candidate.key] = Name(name, reason)

    def _give_hashed(self, candidate: Candidate, name: str, reason: str) -> None:
        salt = 0
        # A source may offer the very name that a hash makes, and short hashes can be made to meet.
        while (made := hashed(name, candidate.key, salt=salt)) in self._taken:
            salt += 1
        self._give(candidate, made, reason)

    def _give_longer(self, rivals: Sequence[tuple[str, Candidate]]) -> None:
        longer = [clean(f"{rival.owner}_{wanted}") for wanted, rival in rivals]
        often = Counter(longer)
        for (wanted, rival), name in zip(rivals, longer, strict=True):
            reason = f"another source offers {wanted!r} too"
            if often[name] == 1 and len(name) <= LENGTH and name != wanted and self._is_free(name):
                self._give(rival, name, reason)
            else:
                self._give_hashed(rival, name, reason)
