"""YAML as the frontmatter of skills is written in it: the core schema of YAML 1.2, bounded. Imports PyYAML.

Not PyYAML's own YAML 1.1: there `yes` is true and `2024-05-01` a date, and what we say of a file would differ from what its
other readers find in it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final, cast

import yaml

from anykit.capabilities import Json, JsonObject

from .errors import Unreadable

MAX_DEPTH: Final = 32
"""Levels of a frontmatter."""
MAX_NODES: Final = 5_000
"""Values in a frontmatter, those behind aliases each time that they stand for something."""

_NULL: Final = re.compile(r"~|null|Null|NULL|")
_TRUE: Final = frozenset({"true", "True", "TRUE"})
_FALSE: Final = frozenset({"false", "False", "FALSE"})
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,300}")
_BASED: Final = re.compile(r"0o[0-7]{1,100}|0x[0-9a-fA-F]{1,100}")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_ENDLESS: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_NO_BREAKS: Final = {0x85: 0xE085, 0x2028: 0xE028, 0x2029: 0xE029}
"""Characters that end no line in YAML 1.2, but do for PyYAML, and what they are hidden behind from it."""
_BREAKS: Final = {hidden: shown for shown, hidden in _NO_BREAKS.items()}
_STANDARD: Final = "tag:yaml.org,2002:"
_PLAIN: Final = frozenset(f"{_STANDARD}{name}" for name in ("str", "map", "seq", "null", "bool", "int", "float"))


class _Loader(yaml.SafeLoader):
    """Resolves nothing by itself: a scalar without a tag is a text, and `core` says what it means."""


_Loader.yaml_implicit_resolvers = {}
_yaml: Any = yaml


def core(text: str, first_line: int) -> tuple[JsonObject, list[str]]:
    """The mapping that `text` is, as JSON, and what is odd about it. `first_line` is where it begins in its file.

    Raises `Unreadable` where it is no mapping, is no YAML, or is too large once it is spelled out.
    """
    root = compose(text, first_line)
    if root is None:
        return {}, []
    if not isinstance(root, yaml.MappingNode):
        raise Unreadable("the frontmatter must be a mapping of fields", line_of(root, first_line))
    reading = _Reading(first_line)
    try:
        return cast(JsonObject, reading.value(root, 0)), reading.odd
    except RecursionError:
        raise Unreadable("the frontmatter refers to itself", first_line) from None


def compose(text: str, first_line: int, seen: Callable[[yaml.Event], None] | None = None) -> yaml.Node | None:
    """The nodes of the one document in `text`, None for none; `seen` hears every event. Raises `Unreadable`."""
    text = text.translate(_NO_BREAKS)
    try:
        if seen is not None:
            for event in _yaml.parse(text, Loader=_Loader):
                seen(event)
        return cast(yaml.Node | None, _yaml.compose(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = first_line + (mark.line if mark is not None else 0)
        raise Unreadable(f"not YAML: {_problem(error)}", line) from None
    except yaml.YAMLError as error:
        position = getattr(error, "position", None)
        line = text.count("\n", 0, position) if isinstance(position, int) else 0
        raise Unreadable("not YAML: it holds a character that YAML does not allow", first_line + line) from None
    except RecursionError:
        raise Unreadable(f"the frontmatter is nested deeper than {MAX_DEPTH} levels", first_line) from None


def _problem(error: yaml.MarkedYAMLError) -> str:
    """What is wrong, without the snippet of the file that PyYAML adds."""
    said = " ".join(part for part in (error.context, error.problem) if part)
    return re.sub(r"\s+", " ", said)[:200] or "it cannot be parsed"


def line_of(node: yaml.Node, first_line: int) -> int:
    """Where a node stands in its file."""
    return first_line + int(cast(Any, node).start_mark.line)


class _Reading:
    """One document on its way to JSON."""

    def __init__(self, first_line: int) -> None:
        self.odd: list[str] = []
        self._first_line = first_line
        self._nodes = 0

    def value(self, node: yaml.Node, depth: int) -> Json:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise Unreadable(f"the frontmatter has more than {MAX_NODES} values, aliases counted", self._first_line)
        if depth > MAX_DEPTH:
            raise Unreadable(f"the frontmatter is nested deeper than {MAX_DEPTH} levels", self._first_line)
        if node.tag not in _PLAIN:
            self._say(node, f"the tag {str(node.tag)[:40]!r} means nothing here")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, depth + 1) for item in cast("list[yaml.Node]", node.value)]
        return self._scalar(cast(yaml.ScalarNode, node))

    def _mapping(self, node: yaml.MappingNode, depth: int) -> JsonObject:
        made: JsonObject = {}
        for key, value in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            if not isinstance(key, yaml.ScalarNode):
                raise Unreadable("a field's name must be a text", line_of(key, self._first_line))
            name = self._text(key, str(key.value))
            if name in made:
                self._say(key, f"the field {name[:60]!r} is there twice; the last one counts")
            made[name] = self.value(value, depth + 1)
        return made

    def _scalar(self, node: yaml.ScalarNode) -> Json:
        text = str(node.value)
        if node.style is not None or (node.tag == f"{_STANDARD}str" and self._is_tagged(node)):
            return self._text(node, text)
        if _NULL.fullmatch(text):
            return None
        if text in _TRUE or text in _FALSE:
            return text in _TRUE
        if _INTEGER.fullmatch(text):
            return int(text)
        if _BASED.fullmatch(text):
            return int(text[2:], 8 if text[1] == "o" else 16)
        if _FLOAT.fullmatch(text):
            number = float(text)
            if math.isfinite(number):
                return number
            self._say(node, "the number is beyond what JSON can say; it is read as a text")
        elif _ENDLESS.fullmatch(text):
            self._say(node, "JSON has no such number; it is read as a text")
        return self._text(node, text)

    def _is_tagged(self, node: yaml.ScalarNode) -> bool:
        """Whether the text says `!!str` of itself: its mark begins before the value then."""
        start, end = cast(Any, node).start_mark, cast(Any, node).end_mark
        return start.buffer is not None and start.buffer[start.pointer : end.pointer].startswith("!")

    def _text(self, node: yaml.Node, text: str) -> str:
        """A text that can be sent: halves of surrogate pairs, which escapes can write, become whole characters."""
        if text.isascii():
            return text
        text = text.translate(_BREAKS)
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            line = line_of(node, self._first_line)
            raise Unreadable("a text has half a character in it (a lone surrogate)", line) from None

    def _say(self, node: yaml.Node, what: str) -> None:
        if len(self.odd) < 20:
            self.odd.append(f"line {line_of(node, self._first_line)}: {what}")


def strict(text: str, first_line: int) -> Json:
    """What `text` is to a reader that takes the strict subset only, every scalar a text. Raises `Unreadable`."""

    def check(event: yaml.Event) -> None:
        line = first_line + int(cast(Any, event).start_mark.line)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise Unreadable("anchors and aliases (&, *) are not allowed; put the value in quotes", line)
        if getattr(event, "tag", None) is not None:
            raise Unreadable("tags (!) are not allowed; put the value in quotes", line)
        if getattr(event, "flow_style", False):
            raise Unreadable("flow style ([..], {..}) is not allowed; put the value in quotes", line)

    root = compose(text, first_line, check)
    return None if root is None else _strict(root, first_line, 0)


def _strict(node: yaml.Node, first_line: int, depth: int) -> Json:
    if depth > MAX_DEPTH:
        raise Unreadable(f"the frontmatter is nested deeper than {MAX_DEPTH} levels", first_line)
    if isinstance(node, yaml.SequenceNode):
        return [_strict(item, first_line, depth + 1) for item in cast("list[yaml.Node]", node.value)]
    if not isinstance(node, yaml.MappingNode):
        plain = cast(yaml.ScalarNode, node).style is None
        return None if plain and node.value in ("=", "<<") else str(node.value).translate(_BREAKS)  # no texts there
    made: JsonObject = {}
    column: int | None = None
    for key, value in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
        line = line_of(key, first_line)
        name: Json = _strict(key, first_line, depth + 1)
        if name is None and isinstance(value, yaml.MappingNode):
            name = str(key.value)
        if not isinstance(name, str):
            raise Unreadable("a field's name must be a text", line)
        if name in made:
            raise Unreadable(f"the field {name[:60]!r} is there twice", line)
        if isinstance(value, yaml.MappingNode):
            begins = int(cast(Any, value).start_mark.column)
            if column is not None and begins != column:
                raise Unreadable("mappings beside each other must be indented alike", line_of(value, first_line))
            column = begins
        made[name] = _strict(value, first_line, depth + 1)
    return made
