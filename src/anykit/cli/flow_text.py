"""JSON texts, comments allowed, and the bracketed pieces of YAML: edited where they stand, the rest is not touched."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from .edits import Append, Drop, Edit, Path, Put, Step, Unfit, applied

MAX_DEPTH = 128
SHORT = 80
"""Characters of a value that is written on one line."""


@dataclass(slots=True)
class Node:
    """A value and where it stands: `text[start:end]`."""

    kind: Literal["map", "list", "scalar"]
    start: int
    end: int
    items: list[Item] = field(default_factory=list["Item"])
    flow: bool = True
    """Whether it stands in brackets; YAML has others."""


@dataclass(slots=True)
class Item:
    """A member of an object, or an item of a list; it starts where its key starts."""

    key: str | None
    start: int
    node: Node


def find(node: Node, step: Step) -> tuple[int, Item] | None:
    """The item at a step, and its place among its siblings."""
    for index, item in enumerate(node.items):
        if (item.key == step and node.kind == "map") or (index == step and node.kind == "list"):
            return index, item
    return None


def descend(root: Node, path: Path) -> tuple[Node, Path]:
    """As far down as there is something; what is left of the path."""
    node = root
    for depth, step in enumerate(path):
        found = find(node, step)
        if found is None:
            return node, path[depth:]
        node = found[1].node
    return node, ()


# reading

_SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\n]*|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"', re.DOTALL)
_WORD = re.compile(r"[-+.\w]+")


def read_json(text: str) -> Node:
    """Where everything stands. Raises `ValueError`."""
    node, end = _value(text, _skip(text, 0), 0)
    end = _skip(text, end)
    if end != len(text):
        raise ValueError(f"something follows the value (character {end})")
    return node


def _skip(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place


def _value(text: str, place: int, depth: int) -> tuple[Node, int]:
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    opened = text[place : place + 1]
    if opened in ("{", "["):
        return _collection(text, place, depth, "map" if opened == "{" else "list")
    found = (_STRING if opened == '"' else _WORD).match(text, place)
    if found is None:
        raise ValueError(f"no value at character {place}")
    return Node("scalar", place, found.end()), found.end()


def _collection(text: str, place: int, depth: int, kind: Literal["map", "list"]) -> tuple[Node, int]:
    node = Node(kind, place, place)
    close = "}" if kind == "map" else "]"
    place = _skip(text, place + 1)
    while text[place : place + 1] != close:
        start, key = place, None
        if kind == "map":
            found = _STRING.match(text, place)
            if found is None:
                raise ValueError(f"no key at character {place}")
            key = json.loads(found[0])
            place = _skip(text, found.end())
            if text[place : place + 1] != ":":
                raise ValueError(f"no colon at character {place}")
            place = _skip(text, place + 1)
        value, place = _value(text, place, depth + 1)
        node.items.append(Item(key, start, value))
        place = _skip(text, place)
        if text[place : place + 1] == ",":
            place = _skip(text, place + 1)
        elif text[place : place + 1] != close:
            raise ValueError(f"neither a comma nor {close} at character {place}")
    node.end = place + 1
    return node, node.end


def without_comments(text: str) -> str:
    """The same as strict JSON: comments and trailing commas become spaces. Raises `ValueError`."""
    read_json(text)
    pieces: list[str] = []
    place = 0
    for found in re.finditer(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', text, re.DOTALL):
        pieces.append(text[place : found.start()])
        pieces.append(found[0] if found[0].startswith('"') else " " * len(found[0]))
        place = found.end()
    bare = "".join([*pieces, text[place:]])
    return re.sub(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', lambda found: found[1] or " ", bare, flags=re.DOTALL)


# writing


@dataclass(frozen=True, slots=True)
class Style:
    """How new text is written."""

    unit: str
    """One step of indentation."""
    newline: str
    key: Callable[[str], str] = json.dumps

    def one_line(self, value: Any) -> str:
        """A value on one line."""
        if isinstance(value, dict):
            pairs = ", ".join(f"{self.key(name)}: {self.one_line(item)}" for name, item in value.items())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            return f"{{{pairs}}}"
        if isinstance(value, list):
            return f"[{', '.join(map(self.one_line, value))}]"  # pyright: ignore[reportUnknownArgumentType]
        return json.dumps(value, ensure_ascii=False)

    def laid_out(self, value: Any, indent: str) -> str:
        """A value on one line where it is short, else over lines, the first of which is indented already."""
        short = self.one_line(value)
        if len(short) <= SHORT:
            return short
        text = json.dumps(value, indent=self.unit or None, ensure_ascii=False)
        return text.replace("\n", f"{self.newline}{indent}")


def style_of(text: str) -> Style:
    """How a JSON text is written."""
    found = re.search(r"\n([ \t]+)\S", text)
    return Style(found[1] if found else "  ", "\r\n" if "\r\n" in text else "\n")


def edited_json(text: str, edit: Edit) -> str:
    """A JSON text, edited. Raises `Unfit`, `ValueError`."""
    style = style_of(text)
    if not text.strip() or re.fullmatch(r"\s*\{\s*\}\s*", text):
        return (
            json.dumps(applied({}, [edit]), indent=style.unit, ensure_ascii=False).replace("\n", style.newline)
            + style.newline
        )
    return edited_flow(text, read_json(text), edit, style)


def edited_flow(text: str, root: Node, edit: Edit, style: Style) -> str:
    """One edit inside of brackets. Raises `Unfit`."""
    match edit:
        case Put(path, value):
            node, left = descend(root, path)
            if not left:
                return text[: node.start] + style.laid_out(value, _indent_at(text, node.start)) + text[node.end :]
            for step in reversed(left[1:]):
                value = {step: value}
            return _inserted(text, node, left[0], value, style)
        case Append(path, value):
            node, left = descend(root, path)
            if left:
                return edited_flow(text, root, Put(path, [value]), style)
            return _inserted(text, node, None, value, style)
        case Drop(path):
            node, left = descend(root, path[:-1])
            found = None if left else find(node, path[-1])
            if found is None:
                raise Unfit(f"it has no `{path[-1]}`")
            return _dropped(text, node, found[0])


def _inserted(text: str, node: Node, key: Step | None, value: Any, style: Style) -> str:
    if node.kind != ("list" if key is None else "map") or not isinstance(key, str | None):
        raise Unfit("of the way in which it is written")
    if not node.flow:
        raise Unfit("of the way in which it is written")
    before = "" if key is None else f"{style.key(key)}: "
    if not node.items:
        base = _indent_at(text, node.start)
        inside = text[node.start + 1 : node.end - 1]
        indent = base + style.unit
        if not inside.strip() and (key is None or "\n" not in text.strip()):
            new = before + style.laid_out(value, base)
        else:
            kept = inside.rstrip()
            new = f"{kept}{style.newline}{indent}{before}{style.laid_out(value, indent)}{style.newline}{base}"
        return text[: node.start + 1] + new + text[node.end - 1 :]
    last = node.items[-1]
    end = last.node.end
    comma = _comma(text, end)
    line = text.rfind("\n", node.start, last.start)
    lead = text[line + 1 : last.start]
    if line < 0 or lead.strip():
        new = f"{'' if comma >= 0 else ','} {before}{style.one_line(value)}"
        place = comma + 1 if comma >= 0 else end
        return text[:place] + new + text[place:]
    new = f"{style.newline}{lead}{before}{style.laid_out(value, lead)}{',' if comma >= 0 else ''}"
    if comma < 0:
        text = f"{text[:end]},{text[end:]}"
        comma = end
    place = _rest_of_line(text, comma + 1, node.end)
    return text[:place] + new + text[place:]


def _dropped(text: str, node: Node, index: int) -> str:
    """Without an item, and without what stands behind it on its line. Comments above it stay."""
    item = node.items[index]
    before = node.start if index == 0 else _comma(text, node.items[index - 1].node.end)
    end = item.node.end
    comma = _comma(text, end)
    if comma >= 0:
        end = comma + 1
    last = index == len(node.items) - 1
    line = text.rfind("\n", before, item.start)
    if line >= 0 and not text[line : item.start].strip():
        start = line - 1 if text[line - 1] == "\r" else line
        end = _rest_of_line(text, end, node.end - 1)
    else:
        start = item.start if index == 0 else before + 1
        if index == 0 and not last:
            end = _skip(text, end)
    if last and index > 0 and comma < 0:
        # What is now the last has no comma behind it, as the last had none.
        return text[:before] + text[before + 1 : start] + text[end:]
    return text[:start] + text[end:]


def _comma(text: str, place: int) -> int:
    """Where the comma behind a value stands; -1 where none does."""
    place = _skip(text, place)
    return place if text[place : place + 1] == "," else -1


def _rest_of_line(text: str, place: int, limit: int) -> int:
    """The end of the line where only a comment is left on it, before its break; else the place itself."""
    found = re.compile(r"[ \t]*(?://[^\n]*|/\*[^\n]*?\*/[ \t]*|#[^\n]*)?(?=\r?\n)").match(text, place, limit)
    if found is None:
        return place
    return found.end() - (1 if text[found.end() - 1 : found.end()] == "\r" else 0)


def _indent_at(text: str, place: int) -> str:
    line = text.rfind("\n", 0, place) + 1
    return text[line : line + len(text[line:place]) - len(text[line:place].lstrip())]
