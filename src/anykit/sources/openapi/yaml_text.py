"""YAML as an OpenAPI document means it: JSON values only, by YAML 1.2's core rules.

A date stays a string, `on`, `off`, `yes` and `no` are words, a key is the text that stands there (`200`, `on`, `null`),
nothing is ever constructed by a tag, and an alias counts as often as it is used.
"""

from __future__ import annotations

import re
from typing import Any, cast

from anykit.capabilities import Json, JsonObject

MAX_DEPTH = 128
"""Levels of a document."""
MAX_VALUES = 2_000_000
"""Values of a document, those behind an alias counted at each use."""

_INTEGER = re.compile(r"[-+]?[0-9]{1,4000}")
_RADIX = re.compile(r"0o[0-7]{1,64}|0x[0-9a-fA-F]{1,64}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]{1,400}|[0-9]{1,400}(?:\.[0-9]{0,400})?)(?:[eE][-+]?[0-9]{1,3})?")
_WORDS: dict[str, Json] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_MERGE = "<<"
_STANDARD = "tag:yaml.org,2002:"


class YamlFault(ValueError):
    """It is no YAML that can be used; the text says where and why."""


def parse_yaml(text: str) -> Json:
    """The value of the first document in `text`. Raises `YamlFault`."""
    import yaml  # noqa: PLC0415 - 30 ms, only for those who write YAML

    loader: Any = getattr(yaml, "CLoader", yaml.Loader)  # its parser only: events, nothing is constructed
    try:
        return _Reader(yaml).read(cast(Any, yaml).parse(text, Loader=loader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" (line {mark.line + 1}, column {mark.column + 1})"
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise YamlFault(f"not YAML: {problem}{where}") from None


class _Open:
    """A mapping or a list that is being read."""

    __slots__ = ("anchor", "before", "key", "merged", "value")

    def __init__(self, value: JsonObject | list[Json], anchor: str | None, before: int) -> None:
        self.value = value
        self.anchor = anchor
        self.before = before
        self.key: str | None = None
        self.merged: list[JsonObject] = []


class _Reader:
    def __init__(self, yaml: Any) -> None:
        self._yaml = yaml
        self._anchors: dict[str, tuple[Json, int]] = {}
        self._count = 0
        self._open: list[_Open] = []
        self._result: Json = None
        self._done = False

    def read(self, events: Any) -> Json:
        yaml = self._yaml
        for event in events:
            kind = cast(Any, type(event))
            if kind is yaml.ScalarEvent:
                self._scalar(event)
            elif kind is yaml.MappingStartEvent:
                self._begin({}, event)
            elif kind is yaml.SequenceStartEvent:
                self._begin([], event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._end()
            elif kind is yaml.AliasEvent:
                self._alias(event)
            elif kind is yaml.DocumentEndEvent:
                break
        return self._result

    def _begin(self, value: JsonObject | list[Json], event: Any) -> None:
        self._check_key(event)
        if len(self._open) >= MAX_DEPTH:
            raise YamlFault(f"nested deeper than {MAX_DEPTH} levels{_at(event)}")
        self._weigh(1, event)
        self._open.append(_Open(value, event.anchor, self._count - 1))

    def _end(self) -> None:
        done = self._open.pop()
        value: Json = done.value
        if done.merged and isinstance(value, dict):
            value = done.value = _merged(cast(JsonObject, value), done.merged)
        self._put(value, done.anchor, self._count - done.before)

    def _alias(self, event: Any) -> None:
        self._check_key(event)
        if event.anchor not in self._anchors:
            raise YamlFault(f"the alias *{event.anchor[:64]} has no anchor before it{_at(event)}")
        value, size = self._anchors[event.anchor]
        self._weigh(size, event)
        self._put(value, None, size)

    def _scalar(self, event: Any) -> None:
        self._weigh(1, event)
        top = self._open[-1] if self._open else None
        if top is not None and top.key is None and isinstance(top.value, dict):
            top.key = event.value
            if event.anchor:
                self._anchors[event.anchor] = (event.value, 1)
            return
        self._put(_value_of(event), event.anchor, 1)

    def _put(self, value: Json, anchor: str | None, size: int) -> None:
        if anchor:
            self._anchors[anchor] = (value, size)
        if not self._open:
            self._result = value
            return
        top = self._open[-1]
        if isinstance(top.value, list):
            top.value.append(value)
            return
        key, top.key = cast(str, top.key), None
        if key == _MERGE and (sources := _sources(value)) is not None:
            top.merged += sources
        else:
            top.value[key] = value

    def _check_key(self, event: Any) -> None:
        top = self._open[-1] if self._open else None
        if top is not None and top.key is None and isinstance(top.value, dict):
            raise YamlFault(f"a key that is no text{_at(event)}")

    def _weigh(self, size: int, event: Any) -> None:
        self._count += size
        if self._count > MAX_VALUES:
            raise YamlFault(f"more than {MAX_VALUES} values, its aliases followed{_at(event)}")


def _value_of(event: Any) -> Json:
    text: str = event.value
    plain = event.implicit[0]
    tag: str | None = event.tag
    if tag is not None and tag not in ("!", f"{_STANDARD}str"):
        # A tag of the core says what the text is; any other constructs nothing.
        plain = tag.startswith(_STANDARD)
    return _plain(text) if plain else text


def _plain(text: str) -> Json:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in "0123456789+-.":
        if _INTEGER.fullmatch(text):
            return int(text)
        if _RADIX.fullmatch(text):
            return int(text, 0)
        if _FLOAT.fullmatch(text):
            number = float(text)
            return number if abs(number) != float("inf") else text
    return text


def _sources(value: Json) -> list[JsonObject] | None:
    """What `<<` merges; None where its value is no mapping and no list of them: then it is a key like another."""
    values = cast("list[Json]", value) if isinstance(value, list) else [value]
    return [cast(JsonObject, one) for one in values] if all(isinstance(one, dict) for one in values) else None


def _merged(own: JsonObject, others: list[JsonObject]) -> JsonObject:
    merged: JsonObject = {}
    for other in reversed(others):  # an earlier one wins
        merged.update(other)
    merged.update(own)
    return merged


def _at(event: Any) -> str:
    mark = event.start_mark
    return "" if mark is None else f" (line {mark.line + 1})"
