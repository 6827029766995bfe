"""Finding tools by words: BM25 over names, titles, tags, descriptions, and the names and descriptions of arguments.

Pure Python. What a tool's words are is remembered for as long as its spec is the same, so a catalogue that changed in one
place is indexed again in a moment. The order is stable: equal scores keep the order of declaration.
"""

from __future__ import annotations

import bisect
import heapq
import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from anykit.capabilities import JsonObject
from anykit.tools import ToolSpec

K1: Final = 1.2
B: Final = 0.6
"""The usual constants of BM25: how soon a repeated word counts no more, how much a long text is held against a tool."""
WEIGHTS: Final[Mapping[str, float]] = {"name": 4.0, "title": 3.0, "tag": 2.0, "argument": 2.0, "text": 1.0}
"""How much a word counts where it stands."""
PREFIX: Final = 0.5
TYPO: Final = 0.4
"""What a word counts for that only begins with the one asked for, or is one letter away from it."""
MAX_QUERY: Final = 1000
"""Characters of a query that are read."""
MAX_TERMS: Final = 32
MAX_TEXT: Final = 4000
"""Characters of one description that are read."""
MAX_TOOL: Final = 16_000
"""Characters of one tool that are read."""
MAX_ARGUMENTS: Final = 100
MAX_PREFIXED: Final = 20
"""Words that one beginning may stand for."""
SHORTEST_TYPO: Final = 4
"""Shorter words have too many neighbours."""

_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
"""Scripts that put no spaces between words."""


def terms_of(text: str) -> Iterator[str]:
    """The words of a text, folded: identifiers in their parts, wide scripts in pairs of characters."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    for word in _WORD.findall(_HUMP.sub(" ", text)):
        folded = word.casefold()
        if folded.isascii():
            yield _stem(folded)
            continue
        rest = 0
        for wide in _WIDE.finditer(folded):
            if wide.start() > rest:
                yield folded[rest : wide.start()]
            run = wide[0]
            if len(run) == 1:
                yield run
            yield from (run[at : at + 2] for at in range(len(run) - 1))
            rest = wide.end()
        if rest < len(folded):
            yield folded[rest:]


def _stem(word: str) -> str:
    """The singular of an English plural, roughly; both sides of a search are folded alike."""
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) > 3 and word.endswith("s") and word[-2] not in "sui":
        return word[:-1]
    return word


def _words_of(spec: ToolSpec) -> dict[str, float]:
    """Each word of a tool with how much it counts there."""
    counted: dict[str, float] = defaultdict(float)
    left = MAX_TOOL

    def count(text: object, weight: float) -> None:
        nonlocal left
        if isinstance(text, str) and left > 0:
            read = text[: min(MAX_TEXT, left)]
            left -= len(read)
            for term in terms_of(read):
                counted[term] += weight

    count(spec.name, WEIGHTS["name"])
    count(spec.title, WEIGHTS["title"])
    for tag in spec.tags:
        count(tag, WEIGHTS["tag"])
    count(spec.toolkit, WEIGHTS["tag"])
    count(spec.description, WEIGHTS["text"])
    properties: object = spec.input_schema.get("properties")
    if isinstance(properties, dict):
        for name, part in list(cast("dict[str, Any]", properties).items())[:MAX_ARGUMENTS]:
            count(name, WEIGHTS["argument"])
            if isinstance(part, dict):
                count(cast(JsonObject, part).get("description"), WEIGHTS["text"])
    return dict(counted)


class Words:
    """What the words of tools are, remembered by their specs."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[ToolSpec, dict[str, float]]] = {}

    def of(self, specs: Iterable[ToolSpec]) -> list[dict[str, float]]:
        """The words of each; those of tools that are gone are forgotten."""
        known = self._known
        self._known = {}
        found: list[dict[str, float]] = []
        for spec in specs:
            before = known.get(spec.name)
            words = before[1] if before is not None and _same(before[0], spec) else _words_of(spec)
            self._known[spec.name] = (spec, words)
            found.append(words)
        return found


def _same(one: ToolSpec, other: ToolSpec) -> bool:
    return one is other or (
        one.description is other.description
        and one.input_schema is other.input_schema
        and (one.title, one.tags, one.toolkit) == (other.title, other.tags, other.toolkit)
    )


class Index:
    """Tools that can be searched.

    Args:
        specs: The tools, in order.
        words: Remembers between two indexes.
    """

    def __init__(self, specs: Sequence[ToolSpec], words: Words | None = None) -> None:
        self._names = [spec.name for spec in specs]
        self._postings: dict[str, list[tuple[int, float]]] = {}
        documents = (words or Words()).of(specs)
        lengths = [sum(document.values()) for document in documents]
        average = sum(lengths) / len(lengths) if lengths else 0.0
        count = len(documents)
        raw: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for at, document in enumerate(documents):
            scale = K1 * (1 - B + B * lengths[at] / average) if average else K1
            for term, weight in document.items():
                raw[term].append((at, weight * (K1 + 1) / (weight + scale)))
        for term, found in raw.items():
            rarity = math.log(1 + (count - len(found) + 0.5) / (len(found) + 0.5))
            self._postings[term] = [(at, rarity * part) for at, part in found]
        self._sorted: list[str] | None = None
        self._shortened: dict[str, list[str]] | None = None

    def search(self, query: str) -> Iterator[str]:
        """Names of the tools that have to do with a query, the nearest first."""
        text = query[:MAX_QUERY]
        scores: dict[int, float] = defaultdict(float)
        terms = list(dict.fromkeys(terms_of(text)))[:MAX_TERMS]
        for term in terms:
            best: dict[int, float] = {}
            for known, weight in self._meant(term):
                for at, score in self._postings[known]:
                    if score * weight > best.get(at, 0.0):
                        best[at] = score * weight
            for at, score in best.items():
                scores[at] += score
        exact = text.strip().casefold()
        for at, name in enumerate(self._names):
            if name.casefold() == exact:
                scores[at] += 1000.0
        ranked = [(-score, at) for at, score in scores.items()]
        heapq.heapify(ranked)
        while ranked:
            yield self._names[heapq.heappop(ranked)[1]]

    def _meant(self, term: str) -> list[tuple[str, float]]:
        """The known words that a word of a query may mean, with how surely."""
        if term in self._postings:
            return [(term, 1.0)]
        found: dict[str, float] = {}
        if len(term) >= 3 or not term.isascii():
            for longer in self._beginning_with(term):
                found[longer] = PREFIX
        if len(term) >= SHORTEST_TYPO:
            for near in self._near(term):
                found.setdefault(near, TYPO)
        return list(found.items())

    def _beginning_with(self, term: str) -> list[str]:
        if self._sorted is None:
            self._sorted = sorted(self._postings)
        start = bisect.bisect_left(self._sorted, term)
        longer = self._sorted[start : start + MAX_PREFIXED]
        return [word for word in longer if word.startswith(term)]

    def _near(self, term: str) -> list[str]:
        """Known words that one letter more, less, other or swapped makes of `term`: both lose a letter and meet."""
        if self._shortened is None:
            shortened: dict[str, list[str]] = defaultdict(list)
            for word in self._postings:
                if SHORTEST_TYPO <= len(word) <= 32:
                    for variant in _shortened(word):
                        shortened[variant].append(word)
            self._shortened = dict(shortened)
        found: dict[str, None] = {}
        for variant in _shortened(term[:32]):
            for word in self._shortened.get(variant, ()):
                if _is_near(term, word):
                    found[word] = None
        return list(found)


def _shortened(word: str) -> set[str]:
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}


def _is_near(one: str, other: str) -> bool:
    """Whether two words, that share a shortened form, are one edit or one swap of neighbours apart."""
    if len(one) != len(other):
        return True  # the shared form is the shorter of them
    apart = [at for at in range(len(one)) if one[at] != other[at]]
    if len(apart) <= 1:
        return True
    first, second = apart[0], apart[-1]
    return len(apart) == 2 and second == first + 1 and one[first] == other[second] and one[second] == other[first]
