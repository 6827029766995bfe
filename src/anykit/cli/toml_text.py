"""TOML texts, edited so that every other line and comment stays as it is.

What stands under a `[heading]` is edited line by line; what stands in brackets by tomlkit. An edit is tried in several
ways, and the first is taken that reads back as what was meant.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from anykit.capabilities import JsonObject

from .edits import Append, Drop, Edit, Path, Put, Step, Unfit, applied
from .template import toml

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_NAMED = re.compile(r"[ \t]*(?:\"[^\"\n]*\"|'[^'\n]*'|[\w-]+)[ \t]*=")
_TOKEN = re.compile(
    r'(?P<text>"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\')|(?P<comment>#[^\n]*)|(?P<mark>[\[\]{}\n])',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Heading:
    """A `[table]` or an item of a `[[list]]`, and where it stands."""

    path: Path
    """With the number of the item behind the name of its list."""
    start: int
    end: int
    """Behind its last line that says something; comments and empty lines that follow belong to what comes next."""


def edited_toml(text: str, edit: Edit) -> str:
    """A TOML text, edited. Raises `Unfit`, `ValueError`."""
    wanted = _plain(applied(tomllib.loads(text), [edit]))
    ways: Sequence[Callable[[str, Edit], str]] = (_by_lines, _in_brackets, _as_tables)
    for way in ways:
        try:
            after = way(text, edit)
            if "\r\n" in text:
                after = re.sub(r"(?<!\r)\n", "\r\n", after)
            if _plain(tomllib.loads(after)) == wanted and (isinstance(edit, Drop) or _keeps_comments(text, after)):
                return after
        except Exception:  # tomlkit has many of its own, for what it cannot place
            continue
    raise Unfit("of the way in which it is written")


def _plain(data: JsonObject) -> JsonObject:
    """The data with every source as a table, for a text among them means its target; without what is empty."""
    data = {name: value for name, value in data.items() if value not in ({}, [])}
    sources: Any = data.get("sources")
    if not isinstance(sources, list):
        return data
    items = cast("list[Any]", sources)
    return {**data, "sources": [{"target": item} if isinstance(item, str) else item for item in items]}


def _keeps_comments(before: str, after: str) -> bool:
    kept = list(_comments(after))
    for comment in _comments(before):
        if comment not in kept:
            return False
        kept.remove(comment)
    return True


def _comments(text: str) -> Generator[str]:
    for found in _TOKEN.finditer(text):
        if found["comment"]:
            yield found["comment"].rstrip()


# line by line


def _by_lines(text: str, edit: Edit) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    headings = headings_of(text)
    match edit:
        case Drop(path):
            return _without(text, headings, path)
        case Append(path, value):
            return _with_item(text, headings, path, value, newline)
        case Put(path, value):
            return _with_key(text, headings, path, value, newline)


def _without(text: str, headings: Sequence[Heading], path: Path) -> str:
    """Without the tables at a path; comments above them stay."""
    gone = [one for one in headings if one.path[: len(path)] == path]
    if not gone:
        return _without_key(text, headings, path)
    for one in reversed(gone):
        start, end = one.start, _line_end(text, one.end)
        # An empty line above the table goes with it, where another follows.
        behind = re.compile(r"(?:[ \t]*\r?\n)*").match(text, end)
        if behind is not None and (start == 0 or text[:start].endswith(("\n\n", "\n\r\n"))):
            end = behind.end()
        text = text[:start] + text[end:]
    return text


def _without_key(text: str, headings: Sequence[Heading], path: Path) -> str:
    start, end = _body(text, headings, path[:-1])
    key = path[-1]
    if not isinstance(key, str):
        raise Unfit("it is no key")
    for name, line, stop in _assignments(text, start, end):
        if name == key:
            return text[:line] + text[_line_end(text, stop) :]
    raise Unfit(f"it has no `{key}`")


def _with_item(text: str, headings: Sequence[Heading], path: Path, value: Any, newline: str) -> str:
    """One more `[[list]]` behind the last."""
    items = [one for one in headings if one.path[: len(path)] == path and len(one.path) > len(path)]
    if _is_table(value) and len(path) == 1 and path[0] not in tomllib.loads(text):
        head = text if not text or text.endswith("\n") else text + newline
        lines = [*([""] if head.strip() else []), f"[[{_dotted(path)}]]", *_pairs(value)]
        return head + newline.join(lines) + newline
    if not items or not all(isinstance(one.path[len(path)], int) for one in items):
        raise Unfit("it is no list of tables")
    place = _line_end(text, items[-1].end)
    table = {"target": value} if isinstance(value, str) else value
    lines = ["", f"[[{_dotted(path)}]]", *_pairs(table)]
    head = text[:place] if text[:place].endswith("\n") else text[:place] + newline
    gap = text[place:] and not text[place:].startswith(("\n", "\r\n"))
    return head + newline.join(lines) + newline + (newline if gap else "") + text[place:]


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _with_key(text: str, headings: Sequence[Heading], path: Path, value: Any, newline: str) -> str:
    """One more line under a heading that is there, or another value in one; a heading of its own for a table."""
    *parent, key = path
    if not isinstance(key, str):
        raise Unfit("it is no key")
    known = any(one.path == tuple(parent) for one in headings)
    if any(not isinstance(step, str) for step in parent) and not known:
        raise Unfit("it is no table")
    if isinstance(value, dict):
        return _with_table(text, headings, path, cast("dict[str, Any]", value), newline)
    if parent and not known:
        return _with_table(text, headings, tuple(parent), {key: value}, newline)
    start, end = _body(text, headings, tuple(parent))
    for name, line, stop in _assignments(text, start, end):
        if name == key:
            named = _NAMED.match(text, line)
            if named is None:
                raise Unfit("its name is written in an unusual way")
            return f"{text[: named.end()]} {toml(value)}{text[stop:]}"
    place = _line_end(text, end)
    head = text[:place] if not text[:place] or text[:place].endswith("\n") else text[:place] + newline
    return f"{head}{_key(key)} = {toml(value)}{newline}{text[place:]}"


def _with_table(text: str, headings: Sequence[Heading], path: Path, table: dict[str, Any], newline: str) -> str:
    """A table of its own: behind its kin, else at the end."""
    if any(one.path == path for one in headings):
        raise Unfit("it is there")
    lines = [f"[{_dotted(path)}]", *_pairs(table)]
    kin = [one for one in headings if one.path[:1] == path[:1]]
    place = _line_end(text, kin[-1].end) if kin else len(text)
    head = text[:place]
    if head and not head.endswith("\n"):
        head += newline
    if head.strip() and not head.endswith(("\n\n", "\n\r\n")):
        head += newline
    gap = text[place:] and not text[place:].startswith(("\n", "\r\n"))
    return head + newline.join(lines) + newline + (newline if gap else "") + text[place:]


def _pairs(table: dict[str, Any]) -> list[str]:
    return [f"{_key(name)} = {toml(value)}" for name, value in table.items()]


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else toml(name)


def _dotted(path: Path) -> str:
    return ".".join(_key(str(step)) for step in path)


def _line_end(text: str, place: int) -> int:
    """Behind the break of the line; where the place is the start of one, there."""
    if place == 0 or text[place - 1 : place] == "\n":
        return place
    found = text.find("\n", place)
    return len(text) if found < 0 else found + 1


def headings_of(text: str) -> list[Heading]:
    """Every heading, in order. Raises `ValueError` for what is no TOML."""
    starts: list[tuple[int, int]] = []
    lines = list(_lines(text))
    for start, end in lines:
        if text[start:end].lstrip().startswith("["):
            starts.append((start, end))
    found: list[Heading] = []
    counts: dict[Path, int] = {}
    for index, (start, end) in enumerate(starts):
        limit = starts[index + 1][0] if index + 1 < len(starts) else len(text)
        words = text[start:end].strip()
        is_list = words.startswith("[[")
        path: Path = _names(words)
        numbered = _numbered(path if not is_list else path[:-1], counts)
        if is_list:
            place = (*numbered, path[-1])
            counts[place] = counts.get(place, -1) + 1
            numbered = (*place, counts[place])
        last = max((stop for line, stop in lines if start <= line < limit and _says(text[line:stop])), default=end)
        found.append(Heading(numbered, start, last))
    return found


def _numbered(path: Path, counts: dict[Path, int]) -> Path:
    """A path with the number of the newest item behind each list in it."""
    whole: Path = ()
    for step in path:
        whole = (*whole, step)
        if whole in counts:
            whole = (*whole, counts[whole])
    return whole


def _names(heading: str) -> Path:
    """The names in a heading, as tomllib reads them."""
    node: Any = tomllib.loads(heading.partition("#")[0] if "#" not in heading.partition("]")[0] else heading)
    names: list[Step] = []
    while isinstance(node, dict | list) and node:
        if isinstance(node, list):
            node = cast("list[Any]", node)[0]
            continue
        [(name, node)] = cast("dict[str, Any]", node).items()
        names.append(name)
    return tuple(names)


def _lines(text: str) -> Generator[tuple[int, int]]:
    """Each line as it is meant: a value in brackets, or in three quotes, may take several. Without their breaks."""
    depth, start = 0, 0
    for found in _TOKEN.finditer(text):
        match found["mark"]:
            case "[" | "{":
                depth += 1
            case "]" | "}":
                depth -= 1
            case "\n" if depth <= 0:
                yield start, found.start()
                start, depth = found.end(), 0
            case _:
                pass
    if start < len(text):
        yield start, len(text)


def _says(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _body(text: str, headings: Sequence[Heading], path: Path) -> tuple[int, int]:
    """Where the lines under a heading stand; the root's stand above the first."""
    if not path:
        limit = headings[0].start if headings else len(text)
        last = max((stop for line, stop in _lines(text[:limit]) if _says(text[line:stop])), default=0)
        return 0, last
    found = next((one for one in headings if one.path == path), None)
    if found is None:
        raise Unfit(f"it has no [{_dotted(path)}]")
    return found.start, found.end


def _assignments(text: str, start: int, end: int) -> Generator[tuple[str, int, int]]:
    """The keys in a stretch of lines: (name, start of the line, end of the value)."""
    for line, stop in _lines(text[start:end]):
        words = text[start + line : start + stop]
        if not _says(words) or words.lstrip().startswith("["):
            continue
        try:
            data = tomllib.loads(words)
        except tomllib.TOMLDecodeError:
            continue
        [name] = data
        comments = [found for found in _TOKEN.finditer(words) if found["comment"]]
        tail = comments[-1].start() if comments and comments[-1].end() >= len(words.rstrip("\r")) else len(words)
        yield name, start + line, start + line + len(words[:tail].rstrip())


# in brackets


def _in_brackets(text: str, edit: Edit) -> str:
    return _by_tomlkit(text, edit, _inline)


def _as_tables(text: str, edit: Edit) -> str:
    return _by_tomlkit(text, edit, _table)


def _table(value: JsonObject) -> Any:
    import tomlkit  # noqa: PLC0415 - only those who edit a file need it

    table = tomlkit.table()
    for name, item in value.items():
        table[name] = _inline(cast(JsonObject, item)) if isinstance(item, dict) else item
    table.add(tomlkit.nl())
    return table


def _inline(value: JsonObject) -> Any:
    import tomlkit  # noqa: PLC0415 - as above

    table = tomlkit.inline_table()
    for name, item in value.items():
        table[name] = _inline(cast(JsonObject, item)) if isinstance(item, dict) else item
    return table


def _by_tomlkit(text: str, edit: Edit, made: Callable[[JsonObject], Any]) -> str:
    import tomlkit  # noqa: PLC0415 - as above

    document: Any = tomlkit.parse(text)
    *above, last = edit.path
    here: Any = document
    for step in above:
        if isinstance(step, str) and step not in here:
            here[step] = tomlkit.table(is_super_table=True)
        here = here[step]
    match edit:
        case Drop():
            del here[last]
        case Put(_, value):
            here[last] = made(cast(JsonObject, value)) if isinstance(value, dict) else value
        case Append(_, value):
            if last not in here:
                here[last] = tomlkit.array()
            here[last].append(_inline(cast(JsonObject, value)) if isinstance(value, dict) else value)
    after = tomlkit.dumps(document)
    if not after.endswith("\n") or (after.endswith("\n\n") and not text.endswith("\n\n")):
        after = after.rstrip("\n") + "\n"
    return after
