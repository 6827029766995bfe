"""Which files may start something here: what a person has agreed to, by the file's path and what it defines.

A file of a project may come with a clone, and it says what to run. One that was found, not named, starts nothing before
somebody agreed; what it defines differently later is asked again. Comments, order, and whether something is switched on
are no part of that. What was agreed to lies in the data folder, in a file that only its owner can read.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import stat
import tempfile
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from anykit.sources.skills import Place, digest_of_tree, files_of_skill, look
from anykit.stores.paths import private_folder

from .config import ConfigError, read_data

State: TypeAlias = Literal["trusted", "changed", "untrusted"]

RECORD = "trusted.json"
MAX_RECORD = 4 * 1024 * 1024
SERVER_MAPS = ("mcpServers", "servers", "mcp_servers", "mcp", "context_servers", "extensions")
"""Where clients keep their servers."""
FILES = frozenset({".json", ".jsonc", ".toml", ".yaml", ".yml"})
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_VARIABLE = re.compile(r"\$?\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-[^{}]*)?\}")
_SECTIONS = ("toolkits", "env", "bounds", "serve", "data_dir")
"""What else of our own file decides what code does here, beside the sources, agents and plugins."""
_OUR_KEYS = frozenset(
    {"sources", "agents", "toolkits", "bounds", "serve", "limits", "a2e", "data_dir", "views", "tools", "env"}
)
_SWITCHES = frozenset({"enabled", "disabled"})
"""Of an entry: whether it is used, which is no part of what it is."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One thing that a file defines: what it is, for people, and a digest of all of it."""

    key: str
    about: str
    """What it would start, connect to or set: one line, without secrets."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a file stands."""

    file: Path
    """With links followed."""
    state: State
    """`changed`: something was agreed to, and the file defines more, or otherwise, now."""
    asks: tuple[str, ...] = ()
    """What it would start, connect to or set that nobody has agreed to yet."""
    defines: tuple[Definition, ...] = ()
    """All of it, as it was looked at."""

    @property
    def is_trusted(self) -> bool:
        """Whether it may be used."""
        return self.state == "trusted"


@dataclass(frozen=True, slots=True)
class Trusted:
    """A file that somebody agreed to."""

    file: Path
    since: float
    """Unix seconds."""
    digests: frozenset[str]


class NotTrusted(ConfigError):
    """A file that was found starts nothing before somebody agreed to it."""

    def __init__(self, standing: Standing) -> None:
        word = "defines what nobody has agreed to" if standing.state == "changed" else "is not trusted"
        super().__init__(f"{standing.file}: {word}, so nothing of it is started")
        self.standing = standing


class Trust:
    """What was agreed to, kept in `folder`: the data folder of the person, never one that a file names."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / RECORD

    def check(self, file: str | os.PathLike[str]) -> Standing:
        """How a file stands now. Raises `ConfigError` where it cannot be read."""
        place, defined = _defined_by(file)
        known = self._read().get(str(place))
        return _standing(place, defined, known)

    def require(self, file: str | os.PathLike[str]) -> None:
        """Raises `NotTrusted` for a file that nobody agreed to, `ConfigError` for one that cannot be read."""
        standing = self.check(file)
        if not standing.is_trusted:
            raise NotTrusted(standing)

    def grant(self, file: str | os.PathLike[str]) -> tuple[str, ...]:
        """Agree to all that a file defines now; gives it, a line each. Raises `ConfigError`."""
        return self.agree(self.check(file))

    def agree(self, standing: Standing) -> tuple[str, ...]:
        """Agree to what a file defined when it was looked at; gives it, a line each. Raises `ConfigError`."""
        digests = frozenset(one.key for one in standing.defines)
        with self._writing() as known:
            known[str(standing.file)] = Trusted(standing.file, time.time(), digests)
        return tuple(one.about for one in standing.defines)

    def grant_data(self, file: Path, data: Mapping[str, Any], *, besides: Mapping[str, Any] | None = None) -> None:
        """Agree to what `data`, about to be written to `file`, defines.

        With `besides`, what the file held before, only to what is new; what was not agreed to before stays so.
        """
        place = file.resolve()
        after = {one.key for one in definitions(data, place.parent)}
        with self._writing() as known:
            before = known.get(str(place))
            agreed = before.digests if before is not None else frozenset[str]()
            if besides is not None:
                foreign = {one.key for one in definitions(besides, place.parent)} - agreed
                after -= foreign
            known[str(place)] = Trusted(place, time.time(), frozenset(after))

    def revoke(self, file: str | os.PathLike[str]) -> bool:
        """Take it back; False where nobody had agreed."""
        with self._writing() as known:
            return known.pop(str(Path(file).expanduser().resolve()), None) is not None

    def files(self) -> list[Trusted]:
        """Every file that somebody agreed to, by its path. Raises `ConfigError`."""
        return sorted(self._read().values(), key=lambda one: one.file)

    def _read(self) -> dict[str, Trusted]:
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be read: {error.strerror or error}") from None
        with os.fdopen(handle, "rb") as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ConfigError(f"{self.path}: is no file")
            if status.st_uid != os.geteuid() or status.st_mode & 0o022:
                raise ConfigError(f"{self.path}: others can write it, so it is not believed; chmod 600 {self.path}")
            raw = stream.read(MAX_RECORD + 1)
        try:
            held: Any = json.loads(raw) if len(raw) <= MAX_RECORD else None
            return {
                path: Trusted(Path(path), float(one["at"]), frozenset(map(str, one["digests"])))
                for path, one in held["files"].items()
            }
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise ConfigError(f"{self.path}: is not what anykit wrote; remove it, and agree again") from None

    @contextlib.contextmanager
    def _writing(self) -> Generator[dict[str, Trusted]]:
        """What is known, to be changed; one at a time, whole or not at all. Raises `ConfigError`."""
        try:
            private_folder(self.path.parent)
            lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be written: {error.strerror or error}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = self._read()
            before = dict(known)
            yield known
            if known != before:
                self._write(known)
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be written: {error.strerror or error}") from None
        finally:
            os.close(lock)

    def _write(self, known: Mapping[str, Trusted]) -> None:
        files = {path: {"at": one.since, "digests": sorted(one.digests)} for path, one in sorted(known.items())}
        handle, name = tempfile.mkstemp(prefix=".trusted.", dir=self.path.parent)  # made 0600
        temporary = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                json.dump({"version": 1, "files": files}, stream, indent=1)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(self.path)
        finally:
            temporary.unlink(missing_ok=True)


def _defined_by(file: str | os.PathLike[str]) -> tuple[Path, tuple[Definition, ...]]:
    place = Path(file).expanduser().resolve()
    if place.is_dir() or place.name in ("SKILL.md", "skill.md"):
        return place, tuple(_skills(place))
    return place, definitions(read_data(place), place.parent)


def _skills(place: Path) -> Generator[Definition]:
    """The skills in a folder, or the one whose `SKILL.md` that is. Raises `ConfigError` where there is none."""
    folder = place if place.is_dir() else place.parent
    found, _ = look([Place(folder)])
    if not found:
        raise ConfigError(f"{place}: there is no skill in it")
    for one in found:
        count = len(files_of_skill(one.folder))
        about = f"skill {one.folder.name}: instructions and files for models, {count} in all, scripts among them if any"
        yield Definition(skill_key(one.folder), about)


def skill_key(folder: Path) -> str:
    """What stands for a skill as it is now, all of its files: agreeing to it is agreeing to that."""
    return _digest("skill", folder.name, digest_of_tree(folder))


def _standing(place: Path, defined: tuple[Definition, ...], known: Trusted | None) -> Standing:
    agreed = known.digests if known is not None else frozenset[str]()
    asks = tuple(one.about for one in defined if one.key not in agreed)
    state: State = "trusted" if not asks else "untrusted" if known is None else "changed"
    return Standing(place, state, asks, defined)


def definitions(data: Mapping[str, Any], folder: Path) -> tuple[Definition, ...]:
    """What the data of a file define: of our own its sources, agents, plugins and settings, of a client's its servers."""
    return tuple(_definitions(data, folder))


def _definitions(data: Mapping[str, Any], folder: Path) -> Generator[Definition]:
    maps = [cast("dict[str, Any]", data[key]) for key in SERVER_MAPS if isinstance(data.get(key), dict)]
    ours = _is_ours(data)
    for servers in maps or ([] if ours else [data]):
        for name, entry in servers.items():
            if isinstance(entry, dict):
                table = cast("dict[str, Any]", entry)
                key = _digest("server", name, _without_switches(table))
                yield Definition(key, f"server {name}: {_of_table(table)}")
    if ours:
        yield from _ours(data, folder)


def _is_ours(data: Mapping[str, Any]) -> bool:
    return not data or bool(_OUR_KEYS & data.keys())


def _ours(data: Mapping[str, Any], folder: Path) -> Generator[Definition]:
    sources: Any = data.get("sources")
    for source in cast("list[Any]", sources) if isinstance(sources, list) else []:
        table = cast("dict[str, Any]", source) if isinstance(source, dict) else {"target": source}
        beside = _beside(table.get("target"), folder)
        about = _of_table(table)
        yield Definition(_digest("source", "", [_without_switches(table), beside]), f"source {about}")
    for id, block in _table(data.get("agents")).items():
        yield _agent(id, block)
    plugins: Any = _table(data.get("a2e")).get("plugins")
    for plugin in cast("list[Any]", plugins) if isinstance(plugins, list) else []:
        table = _table(plugin)
        yield Definition(_digest("plugin", "", plugin), f"plugin {table.get('name')}: imports {table.get('cls')}")
    for name in _SECTIONS:
        if name not in data:
            continue
        value: Any = data[name]
        if name == "serve":
            value = {key: item for key, item in _table(value).items() if key != "port"}
        if value:
            yield Definition(_digest(name, "", value), f"{name}: {_settings(value)}")


def _agent(id: str, block: Any) -> Definition:
    table = _table(block)
    card = table.get("card")
    where = _shown_url(card) if isinstance(card, str) else "its card"
    return Definition(_digest("agent", id, _without_switches(table)), f"agent {id}: connects to {where}{_names(table)}")


def _beside(target: Any, folder: Path) -> str:
    """A digest of the file of servers that a source names, where it belongs to the same project: it says what is run."""
    if not isinstance(target, str) or _URL.match(target):
        return ""
    place = folder / Path(target).expanduser()
    try:
        if place.is_dir():
            place = place / "mcp.json"
        if place.suffix not in FILES or not place.is_file() or not place.resolve().is_relative_to(folder.resolve()):
            return ""
        data = read_data(place)
    except (OSError, ValueError):
        return ""
    except ConfigError:
        return hashlib.sha256(place.read_bytes()).hexdigest()
    if "openapi" in data or "swagger" in data:
        return ""
    return _digest("servers", "", [one.key for one in definitions(data, place.parent)])


def _of_table(table: Mapping[str, Any]) -> str:
    """What an entry would start or connect to, in a few words."""
    command: Any = table.get("command", table.get("cmd"))
    if command:
        if isinstance(command, dict):
            inner = cast("dict[str, Any]", command)
            argv = [inner.get("path"), *_list(inner.get("args"))]
        else:
            argv = [*(_list(command) if isinstance(command, list) else [command]), *_list(table.get("args"))]
        helper = table.get("headersHelper")
        return f"runs {_short(' '.join(map(str, argv)))}{f', {helper}' if helper else ''}{_names(table)}"
    url: Any = next((table[key] for key in ("url", "httpUrl", "serverUrl", "uri") if table.get(key)), None)
    target: Any = table.get("target")
    helper = f", runs {_short(str(table['headersHelper']))}" if table.get("headersHelper") else ""
    if isinstance(url, str) or (isinstance(target, str) and _URL.match(target)):
        return f"{_shown_url(str(url or target))}: connects to it{helper}{_names(table)}"
    name = str(target)
    if name.startswith("anykit:"):
        return f"{name}: a toolkit that comes along"
    path = name.partition(":")[0]
    if path.endswith(".py") or ("/" not in name and Path(name).suffix not in FILES):
        return f"{_short(name)}: imports it"
    return f"{_short(name)}: reads it, and starts what it says"


def _names(value: Any) -> str:
    """The variables of the environment that are handed over."""
    names = sorted(set(_VARIABLE.findall(json.dumps(value, default=str))))
    return f" (with {', '.join(names[:8])})" if names else ""


def _settings(value: Any) -> str:
    if isinstance(value, dict):
        return _short(", ".join(map(str, cast("dict[str, Any]", value)))) + _names(value)
    return _short(str(value))


def _shown_url(url: str) -> str:
    """A URL without what may be secret."""
    try:
        parts = urlsplit(url.strip())
        place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    except ValueError:
        return "a URL"
    return _short(f"{place}?..." if parts.query else place)


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:197]}..."


def _without_switches(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in _SWITCHES}


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _digest(kind: str, name: str, value: Any) -> str:
    text = json.dumps([kind, name, value], sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
