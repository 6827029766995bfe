"""A toolkit's configuration as a commented block for the file."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator

from anykit.capabilities import Json, JsonObject

from .fields import Field, Form
from .place import ToolkitRow, variable_of

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def template_of(row: ToolkitRow) -> str:
    """TOML: what is required stands, what has a default is commented out."""
    lines = [*_comment(f"{row.name}: {row.description}" if row.description else row.name)]
    lines.append(f"[toolkits.{_key(row.name)}.config]")
    for field in Form(row.schema).fields:
        about = [field.kind, *(["secret"] if field.secret else []), "required" if field.required else "optional"]
        lines += ["", *_comment(f"{field.description} ({', '.join(about)})".strip())]
        assigned = f"{'.'.join(map(_key, field.path))} = {_value(row.name, field)}"
        lines.append(assigned if field.required else f"# {assigned}")
    return "\n".join(lines) + "\n"


def _comment(text: str) -> Iterator[str]:
    for line in text.splitlines():
        for piece in textwrap.wrap(line, 118) or [""]:
            yield f"# {_printable(piece)}".rstrip()


def _printable(text: str) -> str:
    """A comment ends at a line break and takes no controls (TOML 1.0, Comment)."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else toml(name)


def _value(toolkit: str, field: Field) -> str:
    if field.secret:
        return toml(f"${{{variable_of(toolkit, *field.path)}}}")
    if field.has_default and field.default is not None:
        return toml(field.default)
    if field.choices:
        return toml(field.choices[0])
    return next((example for kind, example in _EXAMPLES.items() if kind in field.types), '""')


_EXAMPLES = {"string": '""', "integer": "0", "number": "0.0", "boolean": "false", "array": "[]", "object": "{}"}


def toml(value: Json) -> str:
    """A JSON value as TOML, on one line. TOML has no null: it is written as an empty text."""
    match value:
        case None:
            return '""'
        case bool():
            return "true" if value else "false"
        case dict():
            return f"{{ {_pairs(value)} }}" if value else "{}"  # pyright: ignore[reportUnknownArgumentType]
        case list():
            return f"[{', '.join(toml(item) for item in value)}]"  # pyright: ignore[reportUnknownVariableType]
        case float():
            text = repr(value)
            return text if any(mark in text for mark in ".e") else f"{text}.0"
        case int():
            return str(value)
        case _:
            # A TOML basic string is a JSON string, DEL aside.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _pairs(value: JsonObject) -> str:
    return ", ".join(f"{_key(name)} = {toml(item)}" for name, item in value.items())
