"""What is typed behind a verb: `k=v`, `k:=json`, `a.b=v`, and `--input-json`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from anykit.capabilities import Json, JsonObject

from .errors import CommandError, usage
from .fields import Form, parse_json
from .terminal import Terminal

_ASSIGNMENT = re.compile(r"(?P<name>[^=]*?)(?P<json>:?)=(?P<value>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Assignment:
    """`name=text`, or `name:=value` with `is_json`."""

    name: str
    text: str
    is_json: bool


def assignments(words: Sequence[str]) -> list[Assignment]:
    """Read them. Raises `CommandError` for a word that is none."""
    found: list[Assignment] = []
    for word in words:
        match = _ASSIGNMENT.fullmatch(word)
        if match is None or not match["name"]:
            raise usage(
                f"{word!r} is no argument", ("write", "name=text, name:=json, or --input-json '{...}' for all at once")
            )
        found.append(Assignment(match["name"], match["value"], bool(match["json"])))
    return found


def filled(form: Form, given: Sequence[Assignment], base: Json = None) -> JsonObject:
    """`base` with what was typed laid over it. A name that comes again makes a list of its values."""
    whole = cast(JsonObject, dict(base)) if isinstance(base, dict) else {}  # pyright: ignore[reportUnknownArgumentType]
    typed: dict[tuple[str, ...], int] = {}
    for one in given:
        path = path_of(form, one.name)
        value = _value(form, one, path)
        again = typed.get(path, 0)
        typed[path] = again + 1
        if again:
            if not form.is_list(path) and form.at(path):
                raise usage(f"{one.name} is given twice, and it takes one value")
            earlier = _get(whole, path)
            value = [*(cast("list[Any]", earlier) if isinstance(earlier, list) else [earlier]), *_listed(value)]
        _put(whole, path, value, one.name)
    return whole


def path_of(form: Form, name: str) -> tuple[str, ...]:
    """The place that a name means: a field that is called so, else what the dots lead to."""
    if "." not in name or form.at([name]):
        return (name,)
    return tuple(name.split("."))


def _value(form: Form, one: Assignment, path: tuple[str, ...]) -> Json:
    if not one.is_json:
        return form.value(path, one.text)
    try:
        return parse_json(one.text)
    except ValueError as error:
        secret = form.is_secret(path)
        shown = "" if secret else f": {error}"
        raise usage(
            f"{one.name}:= wants JSON{shown}", ("write", f"{one.name}=text for a text, {one.name}:='\"text\"' for JSON")
        ) from None


def _listed(value: Json) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _get(whole: JsonObject, path: tuple[str, ...]) -> Json:
    value: Any = whole
    for name in path:
        value = value[name]
    return value


def _put(whole: JsonObject, path: tuple[str, ...], value: Json, name: str) -> None:
    place = whole
    for step in path[:-1]:
        inner = place.get(step)
        if inner is None:
            inner = {}
        elif not isinstance(inner, dict):
            raise usage(f"{name}: {step} is no object")
        else:
            inner = dict(cast(JsonObject, inner))
        place[step] = inner
        place = inner
    place[path[-1]] = value


def input_json(text: str | None, terminal: Terminal) -> JsonObject:
    """`--input-json` where an object is needed. Raises `CommandError`."""
    value = json_given(text, terminal)
    if not isinstance(value, dict):
        where = {"-": "stdin"}.get(text or "", text[1:] if text and text.startswith("@") else "--input-json")
        raise usage(f"{where}: must be a JSON object, not {type(value).__name__}")
    return cast(JsonObject, value)


def json_given(text: str | None, terminal: Terminal) -> Json:
    """`--input-json`: the JSON itself, `@FILE`, or `-` for stdin; {} where it is not given. Raises `CommandError`."""
    if text is None:
        return {}
    where = "--input-json"
    if text == "-":
        text, where = terminal.read_all(), "stdin"
    elif text.startswith("@"):
        where = text[1:]
        try:
            text = Path(where).expanduser().read_text("utf-8-sig")
        except OSError as error:
            raise usage(f"{where}: cannot be read: {error.strerror or error}") from None
        except UnicodeDecodeError as error:
            raise usage(f"{where}: not UTF-8 (byte {error.start})") from None
    try:
        return parse_json(text)
    except ValueError as error:
        raise usage(f"{where}: not JSON: {error}") from None


def unknown_field(form: Form, name: str, what: str) -> CommandError:
    """The error for a field that there is not."""
    names = [field.name for field in form.fields]
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    fixes = [("did you mean", close[0])] if close else []
    known = ", ".join(names) or "nothing"
    return usage(f"{what} has no {name!r}; it takes {known}", *fixes)
