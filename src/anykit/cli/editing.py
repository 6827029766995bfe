"""A configuration file, added to: what is in it already stays as it is, comments and order too."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from anykit.app.config import MAX_FILE, ConfigError, parse_config
from anykit.capabilities import JsonObject

from .errors import CommandError, Exit, usage
from .template import toml

_INDENT = re.compile(r"\n([ \t]+)\S")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Addition:
    """What is to be added: an entry of `agents` where it has an `id`, else an item of `sources`."""

    value: JsonObject | str
    id: str = ""

    def block(self) -> str:
        """It as TOML, to be pasted."""
        if not self.id:
            return f"sources = [{toml(self.value)}]"
        key = self.id if _BARE.fullmatch(self.id) else toml(self.id)
        value = cast(JsonObject, self.value)
        return "\n".join([f"[agents.{key}]", *(f"{name} = {toml(item)}" for name, item in value.items())])


class _Unfit(Exception):
    """The file is written in a way that cannot be added to."""


def add_to(file: Path, additions: Sequence[Addition]) -> None:
    """Add to a file, which is made where it is missing; all or nothing. Raises `CommandError`."""
    check_form(file, additions)
    before = _read(file)
    text = "" if before is None else _decoded(file, before)
    try:
        after = _json(text, additions) if file.suffix == ".json" else _toml(text, additions)
    except _Unfit as why:
        raise _by_hand(f"{file} cannot be added to: {why}", additions) from None
    except (ValueError, RecursionError) as error:
        raise usage(f"{file}: {error}", ("check it", "anykit validate"), code="bad_config") from None
    try:
        parse_config(json.loads(after) if file.suffix == ".json" else tomllib.loads(after), file)
    except ConfigError as error:
        raise usage(str(error), ("check it", "anykit validate"), code="bad_config") from None
    try:
        _replace(file, after, before)
    except OSError as error:
        raise usage(f"{file}: cannot be written: {error.strerror or error}", code="not_written") from None


def check_form(file: Path, additions: Sequence[Addition] = ()) -> None:
    """Raises `CommandError` for a file in a form that is not written here."""
    if file.suffix not in (".toml", ".json"):
        form = "YAML is" if file.suffix in (".yaml", ".yml") else f"{file.name}: only .toml and .json files are"
        raise _by_hand(f"{form} not written here, so that no comment of yours is lost", additions)


def _by_hand(message: str, additions: Sequence[Addition]) -> CommandError:
    block = "\n".join(addition.block() for addition in additions)
    fixes = [("add it yourself", block)] if block else []
    return CommandError(message, code="not_written", exit=Exit.USAGE, fixes=fixes)


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


def _decoded(file: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise usage(f"{file}: not UTF-8 (byte {error.start})", code="bad_config") from None


def _merged(data: JsonObject, additions: Sequence[Addition]) -> JsonObject:
    """The data with what is added. Raises `_Unfit`."""
    whole = copy.deepcopy(data)
    for addition in additions:
        if addition.id:
            agents = whole.setdefault("agents", {})
            if not isinstance(agents, dict):
                raise _Unfit("its `agents` is no table")
            agents[addition.id] = addition.value
        else:
            sources = whole.setdefault("sources", [])
            if not isinstance(sources, list):
                raise _Unfit("its `sources` is no list")
            cast("list[Any]", sources).append(addition.value)
    return whole


def _json(text: str, additions: Sequence[Addition]) -> str:
    data: Any = json.loads(text) if text.strip() else {}
    if not isinstance(data, dict):
        raise _Unfit("it holds no object")
    indent = found[1] if (found := _INDENT.search(text)) else "  "
    return json.dumps(_merged(cast(JsonObject, data), additions), indent=indent, ensure_ascii=False) + "\n"


def _toml(text: str, additions: Sequence[Addition]) -> str:
    """The text with what is added, in the first of several ways that reads back as what was meant."""
    wanted = _plain(_merged(tomllib.loads(text), additions))
    for way in (_as_tables, _inline):
        with contextlib.suppress(Exception):  # of tomlkit's own, for what it cannot place
            after = _with(text, additions, way)
            if _plain(tomllib.loads(after)) == wanted:
                return after
    raise _Unfit("of the way in which its `sources` or `agents` are written")


def _plain(data: JsonObject) -> JsonObject:
    """The data with every source as a table: a text among them means its target."""
    sources: Any = data.get("sources")
    if not isinstance(sources, list):
        return data
    items = cast("list[Any]", sources)
    return {**data, "sources": [{"target": item} if isinstance(item, str) else item for item in items]}


def _as_tables(value: JsonObject) -> Any:
    import tomlkit  # noqa: PLC0415 - only those who add to a file need it

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


def _with(text: str, additions: Sequence[Addition], way: Callable[[JsonObject], Any]) -> str:
    import tomlkit  # noqa: PLC0415 - as above
    from tomlkit.items import AoT, InlineTable  # noqa: PLC0415 - as above

    document: Any = tomlkit.parse(text)
    for addition in additions:
        value = addition.value
        if not addition.id:
            if "sources" not in document:
                document["sources"] = tomlkit.array()
            sources: Any = document["sources"]
            if isinstance(cast(object, sources), AoT):
                sources.append(_as_tables({"target": value} if isinstance(value, str) else value))
            else:
                sources.append(value if isinstance(value, str) else _inline(value))
            continue
        entry = cast(JsonObject, value)
        if "agents" not in document:
            document["agents"] = tomlkit.table(is_super_table=True)
        agents = document["agents"]
        agents[addition.id] = _inline(entry) if isinstance(agents, InlineTable) else way(entry)
    after = tomlkit.dumps(document)
    if not after.endswith("\n") or (after.endswith("\n\n") and not text.endswith("\n\n")):
        after = after.rstrip("\n") + "\n"
    return after


def _replace(file: Path, text: str, before: bytes | None) -> None:
    """Write it whole or not at all, where nobody else has written meanwhile. Raises `OSError`, `CommandError`."""
    file = file.resolve()
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(file.stat().st_mode & 0o7777 if before is not None else 0o666 & ~_umask())
        if _read(file) != before:
            raise usage(f"{file} was changed by somebody else at the same moment; run it again", code="not_written")
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
