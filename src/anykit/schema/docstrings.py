"""What a docstring says about a function and its parameters: Google, NumPy and reST styles, however they are spaced."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from typing import Final

_PARAMETERS: Final = r"args|arguments|params|parameters|keyword args|keyword arguments|other parameters"
_OTHERS: Final = (
    r"attributes|example|examples|note|notes|raises|except|exceptions|references|return|returns|see also|todo|warning|"
    r"warnings|warns|yield|yields"
)
# Strings, not compiled: `re` keeps what it compiled, and a program without docstrings pays nothing at import.
_GOOGLE: Final = rf"(?im)^[ \t]*(?P<name>{_PARAMETERS}|{_OTHERS})[ \t]*:[ \t]*$"
_NUMPY: Final = rf"(?im)^[ \t]*(?P<name>{_PARAMETERS}|{_OTHERS})[ \t]*:?[ \t]*\n[ \t]*-{{3,}}[ \t]*$"
_FIELD: Final = r"param|parameter|arg|argument|key|keyword"
_OTHER_FIELD: Final = r"type|returns?|rtype|raises?|except|exception|yields?|ivar|cvar|var|meta"
_REST: Final = rf"(?m)^[ \t]*[:@](?:{_FIELD}|{_OTHER_FIELD})\b[^\n]*?:(?=\s|$)"
_REST_PARAMETER: Final = rf"(?s)[ \t]*[:@](?:{_FIELD})\b[ \t]*(?P<spec>[^\n]*?)[ \t]*:(?=\s|$)(?P<text>.*)"
_ENTRY: Final = (
    r"(?P<name>\*{0,2}[A-Za-z_]\w*)[ \t]*(?:\((?:[^()]|\([^()]*\))*\))?[ \t]*"
    r"(?::(?!:)|[ \t]--?[ \t])[ \t]*(?P<text>.*)"
)


@dataclass(frozen=True, slots=True)
class Documentation:
    """A docstring, read."""

    description: str = ""
    """The text before the first section."""
    parameters: dict[str, str] = field(default_factory=dict[str, str])
    """What is said of each name, on one line. A name need not be a parameter."""


def read_docstring(text: str | None) -> Documentation:
    """Read a docstring in any of the styles; one that is in none is all description."""
    if not text or not text.strip():
        return Documentation()
    text = inspect.cleandoc(text.replace("\r\n", "\n")).strip()
    firsts = {style: found.start() for style, found in _found(text).items() if found is not None}
    if not firsts:
        return Documentation(text)
    style = min(firsts, key=lambda style: firsts[style])  # where two begin, the earlier of the three in `_found`
    start = firsts[style]
    return Documentation(text[:start].strip(), _parameters(text[start:], style))


def _found(text: str) -> dict[str, re.Match[str] | None]:
    return {"numpy": re.search(_NUMPY, text), "google": re.search(_GOOGLE, text), "rest": re.search(_REST, text)}


def _parameters(body: str, style: str) -> dict[str, str]:
    plain = _NORMALISED[style](body)
    if not plain:
        return {}
    from docstring_parser import ParseError, google, numpydoc, rest  # noqa: PLC0415 - 30 ms that few docstrings need

    parse = {"google": google.parse, "numpy": numpydoc.parse, "rest": rest.parse}[style]
    try:
        parsed = parse(plain)
    except (ParseError, ValueError, IndexError):  # no docstring keeps a function from being a tool
        return {}
    found: dict[str, str] = {}
    for parameter in parsed.params:
        words = " ".join((parameter.description or "").split())
        for name in parameter.arg_name.split(","):
            if words:
                found.setdefault(name.strip().lstrip("*"), words)
    return found


# What the parser is strict about is made uniform first: odd spaces, types that it cannot read, lines without a name.


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _google(body: str) -> str:
    entries: list[tuple[str, list[str]]] = []
    inside, header, column = False, 0, -1
    for line in body.expandtabs(4).splitlines():
        title = re.fullmatch(_GOOGLE, line)
        if title is not None and (not inside or column < 0 or _indent(line) < column):
            inside = re.fullmatch(_PARAMETERS, title["name"], re.IGNORECASE) is not None
            header, column = _indent(line), -1
            continue
        if not inside or not line.strip():
            continue
        entry = re.fullmatch(_ENTRY, line.strip())
        if column < 0:
            if _indent(line) <= header and entry is None:
                inside = False
                continue
            column = _indent(line)
        if _indent(line) < column:
            inside = False
        elif entry is not None and _indent(line) == column:
            entries.append((entry["name"], [entry["text"]]))
        elif entries:
            entries[-1][1].append(line.strip())
    if not entries:
        return ""
    # The parser dedents all but the first line: a line before the heading keeps the entries indented.
    return "\n".join([".", "Args:", *(f"    {name}: {' '.join(text).strip()}" for name, text in entries)])


def _rest(body: str) -> str:
    starts = [found.start() for found in re.finditer(_REST, body)]
    lines: list[str] = []
    for start, end in zip(starts, [*starts[1:], len(body)], strict=True):
        found = re.match(_REST_PARAMETER, body[start:end])
        name = found["spec"].split()[-1:] if found is not None else []
        if found is not None and name:
            text = found["text"].split("\n\n", 1)[0] if not found["text"].startswith("\n\n") else ""
            lines.append(f":param {name[0]}: {' '.join(text.split())}")
    return "\n".join(lines)


def _numpy(body: str) -> str:
    lines = body.expandtabs(4).splitlines()
    margin = _indent(lines[0]) if lines else 0
    lines = [line[margin:] if _indent(line) >= margin else line for line in lines]
    for index, line in enumerate(lines[1:], 1):
        if set(line.strip()) == {"-"} and re.match(_NUMPY, f"{lines[index - 1]}\n{line}"):
            # The parser wants the title as numpydoc has it, and as many dashes as it has letters.
            title = lines[index - 1].strip().rstrip(": ").title()
            lines[index - 1 : index + 1] = [title, "-" * len(title)]
    return "\n".join(lines)


_NORMALISED: Final = {"google": _google, "numpy": _numpy, "rest": _rest}
