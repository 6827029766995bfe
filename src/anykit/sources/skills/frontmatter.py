"""A `SKILL.md` apart: the YAML between its fences, and the instructions behind them. Lenient, with reports."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from anykit.capabilities import JsonObject

from .errors import Unreadable

MAX_FRONTMATTER: Final = 64 * 1024
"""Characters of a frontmatter."""

_FENCE: Final = re.compile(r"---[ \t]*\r?(?:\n|$)")
_CLOSING: Final = re.compile(r"^---[ \t]*\r?$", re.MULTILINE)
_FIELD: Final = re.compile(r"(?P<indent>[ ]*)(?P<key>[A-Za-z0-9_][A-Za-z0-9_.-]*):[ \t]+(?P<value>\S.*)")
_KEY: Final = re.compile(r"^([A-Za-z0-9_][A-Za-z0-9_.-]*)[ \t]*:", re.MULTILINE)
_ELSE: Final = frozenset("\"'|>[{&*!#")
"""What begins a value that is no plain text."""
BYTE_ORDER_MARK: Final = "\ufeff"


@dataclass(frozen=True, slots=True)
class Parted:
    """What a `SKILL.md` says."""

    fields: JsonObject
    body: str
    """The instructions, trimmed."""
    lines: Mapping[str, int] = field(default_factory=dict[str, int])
    """Where each field begins, as far as it is told by its line."""
    odd: tuple[str, ...] = ()
    """What was read otherwise than it is written, each with its line."""

    @property
    def verbatim(self) -> bool:
        """Whether every reader of YAML finds exactly these fields in it."""
        return not self.odd


def parted(text: str) -> Parted:
    """Part the text of a `SKILL.md`. Raises `Unreadable`."""
    from .yaml_core import core  # noqa: PLC0415 - PyYAML costs 30 ms, which those without skills need not pay

    odd: list[str] = []
    if text.startswith(BYTE_ORDER_MARK):
        text = text[1:]
        odd.append("line 1: the file begins with a byte order mark")
    skipped = len(text) - len(text.lstrip("\r\n \t"))
    if skipped and _FENCE.match(text, skipped):
        odd.append("line 1: the frontmatter must begin in the first line")
    else:
        skipped = 0
    opening = _FENCE.match(text, skipped)
    if opening is None:
        raise Unreadable("has no frontmatter: its first line must be ---, then `name` and `description`", 1)
    line = text.count("\n", 0, opening.end()) + 1
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        raise Unreadable("the frontmatter is never closed: a line that is just --- is missing", line - 1)
    raw = text[opening.end() : closing.start()]
    if len(raw) > MAX_FRONTMATTER:
        raise Unreadable(f"the frontmatter is longer than {MAX_FRONTMATTER} characters", line)
    try:
        fields, more = core(raw, line)
    except Unreadable as fault:
        mended, quoted = _quoted(raw, line)
        if not quoted:
            raise
        try:
            fields, more = core(mended, line)
        except Unreadable:
            raise fault from None
        odd += quoted
    lines = {found[1]: line + raw.count("\n", 0, found.start()) for found in _KEY.finditer(raw)}
    return Parted(fields, text[closing.end() :].strip(), lines, (*odd, *more))


def _quoted(raw: str, first_line: int) -> tuple[str, list[str]]:
    """The same with quotes around plain values that hold `: ` or ` #`, and what was quoted."""
    lines = raw.split("\n")
    made: list[str] = []
    said: list[str] = []
    index = 0
    while index < len(lines):
        line = lines[index].rstrip("\r")
        found = _FIELD.fullmatch(line)
        index += 1
        if found is None or found["value"][0] in _ELSE:
            made.append(line)
            continue
        value = [found["value"].rstrip()]
        indent = len(found["indent"])
        start = index
        while index < len(lines) and _goes_on(lines[index], indent):
            value.append(lines[index].strip())
            index += 1
        whole = " ".join(part for part in value if part)
        if ": " in whole or whole.endswith(":"):
            made.append(f"{found['indent']}{found['key']}: {json.dumps(whole, ensure_ascii=False)}")
            made += [""] * (index - start)
            said.append(
                f"line {first_line + start - 1}: the value of `{found['key']}` holds `: `; put it in quotes, as it is read"
            )
        else:
            made.append(line)
            made += [one.rstrip("\r") for one in lines[start:index]]
    return "\n".join(made), said


def _goes_on(line: str, indent: int) -> bool:
    """Whether a line belongs to the plain value of a field that stands at `indent`."""
    return bool(line.strip()) and len(line) - len(line.lstrip(" ")) > indent
