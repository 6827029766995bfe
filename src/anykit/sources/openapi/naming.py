"""What operations and their arguments are called; nothing here depends on the order of the document."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

MAX_ARGUMENT = 64
"""Characters; with letters, digits, `_`, `.` and `-`, every provider takes them."""
ORDER = ("path", "query", "querystring", "header", "cookie", "body")
"""Who keeps its own name where several have one."""

_FOREIGN = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class Wish:
    """An argument before it is named: where its value goes, and what it is called there."""

    place: str
    name: str
    whole: bool = False
    """The body as a whole, which has no name of its own."""


def operation_names(operations: Sequence[tuple[str, str, str | None]]) -> list[str]:
    """A name for each (method, path, operationId): the id where it is there and the only one, else method and path."""
    ids = Counter(one for _, _, one in operations if one)
    kept = {one for one, count in ids.items() if count == 1}
    made = [None if given in kept else generated(method, path) for method, path, given in operations]
    count = Counter(name for name in made if name is not None)
    names: list[str] = []
    for (method, path, given), name in zip(operations, made, strict=True):
        if name is None:
            names.append(given or "")
        elif count[name] > 1 or name in kept:
            names.append(f"{name}_{_digest(method.upper(), path)}")
        else:
            names.append(name)
    return names


def generated(method: str, path: str) -> str:
    """`GET /pets/{petId}` as `get_pets_petId`."""
    words = re.sub(r"[^A-Za-z0-9]+", "_", path).strip("_")
    return f"{re.sub(r'[^A-Za-z0-9]+', '_', method).lower()}_{words or 'root'}"


def argument_names(wishes: Sequence[Wish]) -> list[str]:
    """A distinct name for each wish, valid for every provider; a valid one that nobody before it has is kept exactly."""
    names: dict[int, str] = {}
    taken: set[str] = set()

    def rank(index: int) -> tuple[bool, int, str]:
        wish = wishes[index]
        return (_cleaned(wish) != wish.name, ORDER.index(wish.place), wish.name)

    for index in sorted(range(len(wishes)), key=rank):
        wish = wishes[index]
        plain = _cleaned(wish)
        further = "request_body" if wish.whole else _cut(f"{wish.place}_{plain}", wish)
        choices = (plain, further, f"{plain[: MAX_ARGUMENT - 9]}_{_digest(wish.place, wish.name)}")
        name = next((choice for choice in choices if choice not in taken), choices[-1])
        taken.add(name)
        names[index] = name
    return [names[index] for index in range(len(wishes))]


def _cleaned(wish: Wish) -> str:
    name = wish.name
    if _FOREIGN.search(name):
        name = _FOREIGN.sub("_", name).strip("_") or "argument"
    if name[0] in "0123456789-.":
        name = f"_{name}"
    return _cut(name, wish)


def _cut(name: str, wish: Wish) -> str:
    if len(name) <= MAX_ARGUMENT:
        return name
    return f"{name[: MAX_ARGUMENT - 9]}_{_digest(wish.place, wish.name)}"


def _digest(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode(errors="surrogatepass")).hexdigest()[:8]
