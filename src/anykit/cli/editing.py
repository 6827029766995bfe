"""A configuration file, edited: what is in it already stays as it is, comments and order too."""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import re
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from anykit.app.config import MAX_FILE, ConfigError, parse_config
from anykit.app.trust import SERVER_MAPS, Trust
from anykit.capabilities import JsonObject

from .edits import Append, Edit, Put, Unfit, applied
from .errors import CommandError, Exit, usage
from .flow_text import edited_json, without_comments
from .template import toml
from .toml_text import edited_toml
from .yaml_text import edited_yaml

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_WRITERS: Mapping[str, Callable[[str, Edit], str]] = {
    ".toml": edited_toml,
    ".json": edited_json,
    ".yaml": edited_yaml,
    ".yml": edited_yaml,
}


@dataclass(frozen=True, slots=True)
class Addition:
    """What is to be added: an entry of `agents` where it has an `id`, else an item of `sources`."""

    value: JsonObject | str
    id: str = ""

    def edit(self) -> Edit:
        """It as an edit of the file."""
        return Put(("agents", self.id), self.value) if self.id else Append(("sources",), self.value)

    def block(self) -> str:
        """It as TOML, to be pasted."""
        if not self.id:
            return f"sources = [{toml(self.value)}]"
        key = self.id if _BARE.fullmatch(self.id) else toml(self.id)
        value = cast(JsonObject, self.value)
        return "\n".join([f"[agents.{key}]", *(f"{name} = {toml(item)}" for name, item in value.items())])


@dataclass(frozen=True, slots=True)
class Change:
    """A file before and after."""

    file: Path
    before: str
    after: str
    data: JsonObject
    """What it says afterwards."""

    def diff(self) -> str:
        """The lines that differ, as `diff -u` shows them."""
        name = self.file.name
        lines = difflib.unified_diff(
            self.before.splitlines(keepends=True), self.after.splitlines(keepends=True), f"a/{name}", f"b/{name}"
        )
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def add_to(
    file: Path, additions: Sequence[Addition], *, trust: Trust | None = None, whole: bool = False, dry: bool = False
) -> Change:
    """Add to a file, which is made where it is missing; all or nothing. See `edit_file`. Raises `CommandError`."""
    check_form(file, additions)
    block = "\n".join(addition.block() for addition in additions)
    return edit_file(
        file, [addition.edit() for addition in additions], by_hand=block, trust=trust, whole=whole, dry=dry
    )


def edit_file(
    file: Path,
    edits: Sequence[Edit],
    *,
    by_hand: str = "",
    trust: Trust | None = None,
    whole: bool = False,
    dry: bool = False,
    expected: str | None = None,
) -> Change:
    """Edit a file; all or nothing, and nothing where `dry`.

    What was not there before is trusted by `trust`, all of it where `whole`. `by_hand` is what a person may paste where
    the file is written in a way that cannot be edited; `expected` is what the edits were made for. Raises `CommandError`.
    """
    check_form(file)
    raw = _read(file)
    before = "" if raw is None else _decoded(file, raw)
    if expected is not None and before != expected:
        raise _meanwhile(file)
    text = before
    try:
        data = data_of(file, text)
        wanted = applied(data, edits)
        for edit in edits:
            text = _WRITERS[file.suffix](text, edit)
        after = data_of(file, text)
        if _comparable(after) != _comparable(wanted):
            raise Unfit("of the way in which it is written")
    except Unfit as why:
        fixes = [("add it yourself", by_hand)] if by_hand else [("change it yourself", str(file))]
        message = f"{file} cannot be {'added to' if by_hand else 'edited'}: {why}"
        raise CommandError(message, code="not_written", exit=Exit.USAGE, fixes=fixes) from None
    except (ValueError, RecursionError) as error:
        raise usage(f"{file}: {error}", ("check it", "anykit validate"), code="bad_config") from None
    _check(file, after)
    change = Change(file, before, text, after)
    if dry or text == before:
        return change
    if trust is not None:
        with contextlib.suppress(ConfigError):  # the file is written all the same, and asked about later
            trust.grant_data(file, after, besides=None if whole or raw is None else data)
    try:
        _replace(file, text, raw)
    except OSError as error:
        raise usage(f"{file}: cannot be written: {error.strerror or error}", code="not_written") from None
    return change


def data_of(file: Path, text: str) -> JsonObject:
    """What a text in the form of `file` says. Raises `ValueError`, `Unfit`."""
    data: Any
    if file.suffix == ".toml":
        data = tomllib.loads(text)
    elif file.suffix == ".json":
        data = _json(text) if text.strip() else {}
    else:
        data = _yaml(text)
    if not isinstance(data, dict):
        raise Unfit("it holds no object")
    return cast(JsonObject, data)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        with contextlib.suppress(ValueError):
            return json.loads(without_comments(text))
        raise


def _yaml(text: str) -> Any:
    import yaml  # noqa: PLC0415 - 30 ms, only for those who write YAML

    try:
        return yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def _check(file: Path, data: JsonObject) -> None:
    """Raises `CommandError` where the file does not fit its schema; a client's own file has another."""
    if any(isinstance(data.get(key), dict) for key in SERVER_MAPS):
        return
    try:
        parse_config(data, file)
    except ConfigError as error:
        raise usage(str(error), ("check it", "anykit validate"), code="bad_config") from None


def _comparable(data: JsonObject) -> JsonObject:
    """What a file says, however a source is spelled, and without what is empty."""
    sources: Any = data.get("sources")
    plain = {name: value for name, value in data.items() if value not in ({}, [], None)}
    if isinstance(sources, list) and sources:
        items = cast("list[Any]", sources)
        plain["sources"] = [{"target": item} if isinstance(item, str) else item for item in items]
    return plain


def check_form(file: Path, additions: Sequence[Addition] = ()) -> None:
    """Raises `CommandError` for a file in a form that is not written here."""
    if file.suffix not in _WRITERS:
        block = "\n".join(addition.block() for addition in additions)
        fixes = [("add it yourself", block)] if block else []
        message = (
            f"{file.name}: only .toml, .json and .yaml files are written here, so that no comment of yours is lost"
        )
        raise CommandError(message, code="not_written", exit=Exit.USAGE, fixes=fixes)


def _read(file: Path) -> bytes | None:
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_FILE + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise usage(f"{file}: cannot be read: {error.strerror or error}", code="bad_config") from None
    if len(raw) > MAX_FILE:
        raise usage(f"{file}: larger than {MAX_FILE} bytes", code="bad_config")
    return raw


def read_text(file: Path) -> str:
    """What a file holds. Raises `CommandError`."""
    raw = _read(file)
    return "" if raw is None else _decoded(file, raw)


def _decoded(file: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise usage(f"{file}: not UTF-8 (byte {error.start})", code="bad_config") from None


def _replace(file: Path, text: str, before: bytes | None) -> None:
    """Write it whole or not at all, where nobody else has written meanwhile. Raises `OSError`, `CommandError`."""
    file = file.resolve()
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    temporary = Path(name)
    marked = before is not None and before.startswith(b"\xef\xbb\xbf")
    try:
        with os.fdopen(handle, "w", encoding="utf-8-sig" if marked else "utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(file.stat().st_mode & 0o7777 if before is not None else 0o666 & ~_umask())
        if _read(file) != before:
            raise _meanwhile(file)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def _meanwhile(file: Path) -> CommandError:
    return usage(f"{file} was changed by somebody else at the same moment; run it again", code="not_written")


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
