"""One skill: a folder with a `SKILL.md`, read leniently. What is wrong and does not hinder is reported."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from anykit.capabilities import Json, JsonObject
from anykit.sources.hostile import Malformed, check_name, clean_text

from . import files
from .errors import Finding, Unreadable
from .files import Tree
from .frontmatter import Parted, parted
from .strict import MAX_COMPATIBILITY, MAX_DESCRIPTION, MAX_FILE, MAX_NAME, NAMES

MAX_TOOLKITS: Final = 64
MAX_RESOURCES: Final = 512
"""Files that a skill may have whose digests are told (Skills extension of MCP, "Limits")."""
MAX_BYTES: Final = 16 * 1024 * 1024
"""Bytes that they may have together (the same)."""

Scope: TypeAlias = Literal["given", "project", "user", "system"]
"""Who put a skill there: it was named, or lies where a project, a user or the system keeps skills."""

_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill that is offered."""

    name: str
    description: str
    """Fit for readers: no hidden characters."""
    folder: Path
    """Where it really lies."""
    file: str
    """What its `SKILL.md` is called there."""
    frontmatter: JsonObject
    """As it is written."""
    scope: Scope
    tree: Tree = field(repr=False)
    toolkits: tuple[str, ...] = ()
    """Toolkits that it wants to be there."""
    hidden: bool = False
    """Whether its author wants no model to start it by itself (`disable-model-invocation`)."""
    misfit: str = ""
    """Why it is none of MCP's Skills extension, which takes only what conforms; "" where it is one."""
    findings: tuple[Finding, ...] = ()

    @property
    def location(self) -> Path:
        """Its `SKILL.md`."""
        return self.folder / self.file

    @property
    def uri(self) -> str:
        """Its folder as a resource."""
        return f"skill://{files.quoted(self.name).replace('/', '%2F')}"

    def uri_of(self, path: str) -> str:
        """One of its files as a resource."""
        return f"{self.uri}/{files.quoted(path)}"

    @property
    def listed(self) -> Sequence[files.Listed]:
        """Its files, its `SKILL.md` first and under that name."""
        ordered = sorted(self.tree.files, key=lambda one: (one.path != self.file, one.path))
        if self.file == NAMES[0]:
            return ordered
        return [files.Listed(NAMES[0], one.size, one.stamp) if one.path == self.file else one for one in ordered]

    def read(self, path: str, *, limit: int = files.MAX_READ) -> bytes:
        """One of its files. Raises `files.NotThere` or `files.TooLarge`."""
        return files.read(self.folder, self.file if path == NAMES[0] else path, limit=limit)

    def instructions(self) -> Parted:
        """Its `SKILL.md` as it is now. Raises `Unreadable`."""
        return read_file(self.folder, self.file)

    @property
    def dynamic(self) -> bool:
        """Whether it is more than what digests are told of."""
        listed = self.tree.files
        return not self.tree.complete or len(listed) > MAX_RESOURCES or sum(one.size for one in listed) > MAX_BYTES


def read_file(folder: Path, name: str) -> Parted:
    """A `SKILL.md` apart. Raises `Unreadable`."""
    try:
        data = files.read(folder, name, limit=MAX_FILE)
    except files.NotThere:
        raise Unreadable("is no file that can be read, or leads out of its folder") from None
    except files.TooLarge:
        raise Unreadable(f"is larger than {MAX_FILE} bytes") from None
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"is not UTF-8 (byte {error.start})", line) from None
    return parted(text)


class _Warnings:
    """What is odd about one file."""

    def __init__(self, where: Path, lines: Mapping[str, int]) -> None:
        self.found: list[Finding] = []
        self._where = where
        self._lines = lines

    def __call__(self, message: str, field: str = "") -> None:
        line = self._lines.get(field)
        where = str(self._where) if line is None else f"{self._where}:{line}"
        self.found.append(Finding("warning", where, message))

    def fault(self, message: str, field: str) -> Unreadable:
        """Why it cannot be offered. What is not there is missing from the first line on."""
        return Unreadable(message, self._lines.get(field, 1))


def read_skill(folder: Path, file: str, scope: Scope = "given", tree: Tree | None = None) -> Skill:
    """The skill in a folder whose real path that is. Raises `Unreadable` where it cannot be offered."""
    found = read_file(folder, file)
    where = folder / file
    warn = _Warnings(where, found.lines)
    for odd in found.odd:
        line, _, message = odd.removeprefix("line ").partition(": ")
        warn.found.append(Finding("warning", f"{where}:{line}", message))
    if file != NAMES[0]:
        warn(f"is to be called {NAMES[0]}")
    fields = found.fields
    name = _name(fields.get("name"), folder.name, warn)
    description = _description(fields, warn)
    _look_at_the_rest(fields, warn)
    if _normal(folder.name) != _normal(name):
        warn(f"`name` is {name!r}, and its folder {files.printable(folder.name)!r}; they should be the same", "name")
    if tree is None:
        tree = files.tree_of(folder)
    if not tree.complete:
        warn("has more files, or deeper folders, than are listed")
    misfit = _misfit(fields, name, file, found)
    if misfit:
        warn(f"is not listed over MCP's Skills extension: {misfit}")
    return Skill(
        name=name,
        description=description,
        folder=folder,
        file=file,
        frontmatter=fields,
        scope=scope,
        tree=tree,
        toolkits=toolkits_of(fields),
        hidden=fields.get("disable-model-invocation") is True,
        misfit=misfit,
        findings=tuple(warn.found),
    )


def _normal(name: str) -> str:
    return unicodedata.normalize("NFKC", name)


def _name(said: Json, folder: str, warn: _Warnings) -> str:
    if said is None or said == "":
        warn(f"`name` is missing; the folder's is taken, {files.printable(folder)!r}", "name")
        name = folder
    elif isinstance(said, str):
        name = said.strip()
    elif isinstance(said, int | float):
        name = str(said).lower() if isinstance(said, bool) else str(said)
        warn("`name` is no text; put it in quotes", "name")
    else:
        raise warn.fault("`name` must be a text", "name")
    try:
        name.encode()
        check_name(name)
    except UnicodeEncodeError:
        raise warn.fault("`name` is missing, and the folder's is no UTF-8", "name") from None
    except Malformed as error:
        raise warn.fault(f"`name` cannot be used: {error}", "name") from None
    if name in (".", ".."):
        raise warn.fault(f"`name` cannot be {name!r}", "name")
    if len(name) > MAX_NAME:
        warn(f"`name` is longer than {MAX_NAME} characters ({len(name)})", "name")
    elif not _NAME.fullmatch(name):
        warn(f"`name` {name!r} should be lower-case letters, digits and single hyphens", "name")
    return name


def _description(fields: JsonObject, warn: _Warnings) -> str:
    said: Any = fields.get("description")
    if isinstance(said, bool | int | float):
        warn("`description` is no text; put it in quotes", "description")
        said = str(said)
    if said is not None and not isinstance(said, str):
        raise warn.fault("`description` must be a text", "description")
    described = clean_text(said or "").strip()
    if not described:
        raise warn.fault("`description` is missing; a model could not tell what the skill is for", "description")
    if said is not None and len(said) > MAX_DESCRIPTION:
        warn(
            f"`description` is longer than {MAX_DESCRIPTION} characters ({len(said)}); a catalogue shows its beginning",
            "description",
        )
    if said is not None and clean_text(said, len(said) + 1) != said.replace("\r\n", "\n").replace("\r", "\n"):
        warn("`description` holds characters that people do not see; they are left out", "description")
    return described


def _look_at_the_rest(fields: JsonObject, warn: _Warnings) -> None:
    compatibility: Any = fields.get("compatibility")
    if compatibility is not None and not isinstance(compatibility, str):
        warn("`compatibility` must be a text", "compatibility")
    elif compatibility and len(compatibility) > MAX_COMPATIBILITY:
        warn(f"`compatibility` is longer than {MAX_COMPATIBILITY} characters ({len(compatibility)})", "compatibility")
    metadata: Any = fields.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        warn("`metadata` must be a mapping of texts", "metadata")
    elif metadata is not None:
        odd = [key for key, value in cast(JsonObject, metadata).items() if not isinstance(value, str)]
        if odd:
            shown = ", ".join(key[:40] for key in odd[:5])
            warn(f"`metadata` should hold texts only; put quotes around {shown}", "metadata")


def _misfit(fields: JsonObject, name: str, file: str, found: Parted) -> str:
    if file != NAMES[0]:
        return f"its file is not called {NAMES[0]}"
    if not found.verbatim:
        return "its frontmatter is not read by everyone as it is read here"
    if fields.get("name") != name or len(name) > MAX_NAME or not _NAME.fullmatch(name):
        return "its `name` is not valid"
    described: Any = fields.get("description")
    if not isinstance(described, str) or len(described) > MAX_DESCRIPTION:
        return "its `description` is not valid"
    return ""


def toolkits_of(fields: JsonObject) -> tuple[str, ...]:
    """The toolkits that a skill names: `metadata.toolkits`, words or a list; A2E's own field `toolkits` as well."""
    metadata: Any = fields.get("metadata")
    named: list[str] = []
    for said in (
        cast(JsonObject, metadata).get("toolkits") if isinstance(metadata, dict) else None,
        fields.get("toolkits"),
    ):
        named += words_of(said)
    return tuple(dict.fromkeys(named))[:MAX_TOOLKITS]


def words_of(said: Json) -> list[str]:
    """Words that stand in a text, parted by spaces or commas, or in a list; clean."""
    if isinstance(said, str):
        said = re.split(r"[\s,]+", said[:10_000])
    if not isinstance(said, list):
        return []
    texts = [clean_text(one, 128).strip() for one in cast("list[Any]", said)[:1000] if isinstance(one, str)]
    return [one for one in texts if one]
