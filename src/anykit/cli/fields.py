"""A JSON Schema as a form: the fields that a person fills in, and what a word they typed means in one."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from anykit.capabilities import Json, JsonObject
from anykit.schema import secret_pointers
from anykit.schema.documents import Document, Node

NESTING: Final = 4
"""Levels of objects that are shown field by field; what is deeper is one field that takes JSON."""
_INTEGER = re.compile(r"[+-]?\d{1,4000}")
_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """One field. `path` has one name, or several where it stands in an object."""

    path: Path
    kind: str
    """What it takes, in words."""
    required: bool
    secret: bool
    description: str
    default: Json = None
    has_default: bool = False
    types: frozenset[str] = frozenset()
    choices: tuple[Json, ...] = ()

    @property
    def name(self) -> str:
        """As it is typed: `a.b`."""
        return ".".join(self.path)

    @property
    def placeholder(self) -> str:
        """An argument as it could be typed."""
        if self.choices:
            return assignment(self.name, self.choices[0])
        if "string" in self.types or not self.types:
            return f"{self.name}=..."
        for kind, example in _EXAMPLES.items():
            if kind in self.types:
                return f"{self.name}:={example}"
        return f"{self.name}:=null"


_EXAMPLES = {"integer": "1", "number": "1.5", "boolean": "true", "array": "[...]", "object": "{...}"}


class Form:
    """The fields of a schema whose root is an object."""

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema
        self._document = Document(schema)
        self._secrets = {tuple(pointer.split("/")[1:]) for pointer in secret_pointers(schema)}

    @property
    def fields(self) -> list[Field]:
        """All of them, in the schema's order."""
        return list(self._walk([self._schema], (), required=True))

    def find(self, name: str) -> Field | None:
        """The field that is typed so."""
        return next((field for field in self.fields if field.name == name), None)

    def _walk(self, nodes: Sequence[Node], path: Path, *, required: bool) -> Iterator[Field]:
        wanted: set[str] = set()
        names: dict[str, None] = {}
        for node in self._document.closure(nodes):
            wanted |= set(cast("list[str]", node.get("required") or []))
            names |= dict.fromkeys(cast("dict[str, Any]", node.get("properties") or {}))
        for name in names:
            below = self.below(nodes, name)
            here = (*path, name)
            needed = required and name in wanted
            said = self._document.closure(below)
            inside = any(node.get("properties") for node in said)
            if inside and not self.is_secret(here) and len(here) < NESTING and _types(said) <= {"object", "null"}:
                # What an optional object requires is required only once the object is there.
                yield from self._walk(below, here, required=needed)
            else:
                yield self._field(below, here, needed)

    def _field(self, nodes: Sequence[Node], path: Path, required: bool) -> Field:
        said = self._document.closure(nodes)
        default = next((node["default"] for node in said if "default" in node), None)
        return Field(
            path=path,
            kind=self.kind(nodes),
            required=required,
            secret=self.is_secret(path),
            description=next((str(node["description"]) for node in said if node.get("description")), ""),
            default=default,
            has_default=any("default" in node for node in said),
            types=frozenset(_types(said)),
            choices=tuple(_choices(said)),
        )

    def is_secret(self, path: Path) -> bool:
        """Whether what stands there is secret."""
        return any(path[: len(secret)] == secret for secret in self._secrets)

    def below(self, nodes: Sequence[Node], name: str | int) -> list[Node]:
        """What the schema says about what stands at `name`."""
        return [child for node in self._document.closure(nodes) for child in self._document.below(node, name)]

    def at(self, path: Sequence[str | int]) -> list[Node]:
        """What the schema says about one place."""
        nodes: list[Node] = [self._schema]
        for name in path:
            nodes = self.below(nodes, name)
        return nodes

    def takes(self, path: Path) -> bool:
        """Whether a value may stand there, as far as the schema lists what may."""
        nodes: list[Node] = [self._schema]
        for name in path:
            closed = any(node.get("additionalProperties") is False for node in self._document.closure(nodes))
            nodes = self.below(nodes, name)
            if not nodes:
                return not closed
        return True

    def kind(self, nodes: Sequence[Node]) -> str:
        """What a place takes, in words."""
        said = self._document.closure(nodes)
        choices = _choices(said)
        if choices:
            return " | ".join(choice if isinstance(choice, str) else json.dumps(choice) for choice in choices)
        words: list[str] = []
        for kind in _ORDER:
            if kind not in _types(said):
                continue
            if kind == "array":
                items = self.kind(self.below(said, 0))
                words.append("list" if items == "any" else f"list of {items}")
            elif kind == "string":
                formats = [str(node["format"]) for node in said if node.get("format")]
                words.append(f"string ({formats[0]})" if formats and formats[0] != "password" else "string")
            else:
                words.append(kind)
        return " | ".join(words) or "any"

    # what was typed

    def value(self, path: Sequence[str | int], text: str) -> Json:
        """What `text` means at a place: text where that takes text, else the number, word or JSON that it takes."""
        return self._value(self.at(path), text)

    def _value(self, nodes: Sequence[Node], text: str) -> Json:
        said = self._document.closure(nodes)
        for choice in _choices(said):
            if not isinstance(choice, str) and json.dumps(choice) == text:
                return choice
        types = _types(said)
        if "string" in types or not types:
            return text
        if "null" in types and text in ("null", ""):
            return None
        if "boolean" in types and text.lower() in _WORDS:
            return _WORDS[text.lower()]
        if types & {"integer", "number"} and (number := _number(text)) is not None:
            return number
        if types & {"array", "object"} and text[:1] in ("[", "{"):
            try:
                return parse_json(text)
            except ValueError:
                pass
        if "array" in types:
            return [self._value(self.below(said, 0), text)]
        return text

    def is_list(self, path: Sequence[str | int]) -> bool:
        """Whether a list may stand there."""
        return "array" in _types(self._document.closure(self.at(path)))


_ORDER = ("string", "integer", "number", "boolean", "array", "object", "null")


def _types(nodes: Sequence[JsonObject]) -> set[str]:
    found: set[str] = set()
    for node in nodes:
        kind = node.get("type")
        if isinstance(kind, str):
            found.add(kind)
        elif isinstance(kind, list):
            found |= {str(one) for one in cast("list[Any]", kind)}
    return found


def _choices(nodes: Sequence[JsonObject]) -> list[Json]:
    found: list[Json] = []
    for node in nodes:
        if isinstance(node.get("enum"), list):
            found += node["enum"]
        elif "const" in node:
            found.append(node["const"])
    return found


def _number(text: str) -> int | float | None:
    if _INTEGER.fullmatch(text):
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and not text.strip("+-").lower().startswith("i") else None


def parse_json(text: str) -> Json:
    """The JSON value of a text. Raises `ValueError`: also for NaN, Infinity, 1e400, lone surrogates and deep nesting."""
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it nests too deep") from None
    except UnicodeEncodeError:
        raise ValueError("it holds a lone surrogate") from None
    return value


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON value")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is no finite number")
    return number


def assignment(name: str, value: Json) -> str:
    """An argument as it is typed in a shell."""
    if isinstance(value, str):
        return shlex.quote(f"{name}={value}")
    return shlex.quote(f"{name}:={json.dumps(value, ensure_ascii=False)}")
