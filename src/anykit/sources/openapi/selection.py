"""Which operations are offered: rules by tag, path, operation and method.

tag:pets          a tag, as it is written or in another case
path:/pets/**     a path; `*` is within a segment, `**` beyond it; a rule that begins with `/` is one too
operation:get*    an operationId, or the name that was made
method:GET        a method
GET /pets/*       a method and a path
getPet*           an operation or a tag
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

_METHOD_AND_PATH = re.compile(r"([A-Za-z]+)\s+(/.*)")
_KINDS = ("tag", "path", "operation", "method")


@dataclass(frozen=True, slots=True)
class Subject:
    """What rules are held against."""

    method: str
    path: str
    name: str
    operation_id: str
    tags: tuple[str, ...]


@dataclass(frozen=True)
class Selection:
    """Rules of what is offered (all, where `include` is empty) and what is not; `exclude` wins."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def takes(self, subject: Subject) -> bool:
        """Whether an operation is offered."""
        if any(matches(rule, subject) for rule in self.exclude):
            return False
        return not self.include or any(matches(rule, subject) for rule in self.include)

    def unused(self, subjects: Sequence[Subject]) -> list[tuple[str, str]]:
        """Rules that match nothing, each with what may have been meant."""
        rules = dict.fromkeys((*self.include, *self.exclude))
        return [
            (rule, _meant(rule, subjects)) for rule in rules if not any(matches(rule, subject) for subject in subjects)
        ]


def matches(rule: str, subject: Subject) -> bool:
    """Whether one rule is about an operation."""
    kind, value = parted(rule)
    match kind:
        case "tag":
            return any(_fits(tag, value) for tag in subject.tags)
        case "path":
            return _path(value).fullmatch(subject.path) is not None
        case "operation":
            return _is_called(subject, value)
        case "method":
            return subject.method.casefold() == value.casefold()
        case _:
            both = _METHOD_AND_PATH.fullmatch(value)
            if both is not None:
                return subject.method.casefold() == both[1].casefold() and matches(f"path:{both[2]}", subject)
            if value.startswith("/"):
                return matches(f"path:{value}", subject)
            return _is_called(subject, value) or any(_fits(tag, value) for tag in subject.tags)


def parted(rule: str) -> tuple[str, str]:
    """A rule as its kind ("" where it says none) and its value."""
    kind, colon, value = rule.partition(":")
    kind = {"tags": "tag", "paths": "path", "operationid": "operation", "operations": "operation"}.get(
        kind.strip().lower(), kind.strip().lower()
    )
    return (kind, value.strip()) if colon and kind in _KINDS else ("", rule.strip())


def _is_called(subject: Subject, value: str) -> bool:
    return fnmatchcase(subject.name, value) or (subject.operation_id != "" and fnmatchcase(subject.operation_id, value))


def _fits(tag: str, value: str) -> bool:
    return fnmatchcase(tag.casefold(), value.casefold())


def _path(glob: str) -> re.Pattern[str]:
    """`*` within a segment, `**` over any number of them."""
    pieces = re.split(r"(\*+|\?)", glob)
    words = {"*": "[^/]*", "?": "[^/]"}
    pattern = "".join(words.get(one, ".*" if one[:1] == "*" and one else re.escape(one)) for one in pieces)
    return re.compile(pattern.replace("/.*", "(?:/.*)?") if glob.endswith("/**") else pattern)


def _meant(rule: str, subjects: Iterable[Subject]) -> str:
    kind, value = parted(rule)
    known: dict[str, None] = {}
    for subject in subjects:
        if kind in ("tag", ""):
            known.update(dict.fromkeys(subject.tags))
        if kind in ("operation", ""):
            known.update(dict.fromkeys((subject.operation_id or subject.name,)))
        if kind == "path" or value.startswith("/"):
            known[subject.path] = None
        if kind == "method":
            known[subject.method] = None
    close = difflib.get_close_matches(value, known, n=2, cutoff=0.6)
    if close:
        return f"; did you mean {' or '.join(map(repr, close))}?"
    some = list(known)[:8]
    return f"; there are {', '.join(map(repr, some))}" if some else ""
