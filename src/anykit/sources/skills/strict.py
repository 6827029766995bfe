"""What the Agent Skills specification demands of a folder, as its reference tool (`agentskills validate`) judges it.

That tool reads a stricter YAML: no flow style, no anchors, no tags, no field twice, and every scalar is a text.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any, Final, cast

from anykit.capabilities import Json, JsonObject

from .errors import Unreadable

NAMES: Final = ("SKILL.md", "skill.md")
"""What the file is called; the first is what it should be."""
MAX_FILE: Final = 1024 * 1024
"""Bytes of a `SKILL.md`."""
MAX_NAME: Final = 64
MAX_DESCRIPTION: Final = 1024
MAX_COMPATIBILITY: Final = 500
FIELDS: Final = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
"""Every field that the specification knows."""


def strict_faults(folder: Path, *, limit: int = MAX_FILE) -> list[str]:
    """What is wrong with a skill's folder; [] is a valid skill. At most `limit` bytes of its file are read."""
    if not folder.exists():
        return ["there is no such folder"]
    if not folder.is_dir():
        return ["it is no folder"]
    file = next((folder / name for name in NAMES if (folder / name).exists()), None)
    if file is None:
        return ["there is no SKILL.md in it"]
    try:
        with file.open("rb") as stream:
            raw = stream.read(limit + 1)
    except OSError as error:
        return [f"{file.name} cannot be read: {error.strerror or error}"]
    if len(raw) > limit:
        return [f"{file.name} is larger than {limit} bytes"]
    try:
        text = raw.decode().replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        return [f"{file.name} is not UTF-8 (byte {error.start})"]
    try:
        fields = strict_fields(text)
    except Unreadable as error:
        return [error.message if error.line is None else f"line {error.line}: {error.message}"]
    return faults_of(fields, folder.resolve().name)


def strict_fields(text: str) -> JsonObject:
    """The fields of a frontmatter, every scalar a text. Raises `Unreadable`."""
    if not text.startswith("---"):
        raise Unreadable("must start with YAML frontmatter (---)", 1)
    parts = text.split("---", 2)
    if len(parts) < 3:
        raise Unreadable("the frontmatter is not closed with ---")
    from . import yaml_core  # noqa: PLC0415 - PyYAML costs 30 ms, which those without skills need not pay

    fields = yaml_core.strict(parts[1], 1)
    if not isinstance(fields, dict):
        raise Unreadable("the frontmatter must be a mapping of fields")
    return cast(JsonObject, fields)


def faults_of(fields: JsonObject, folder: str) -> list[str]:
    """What is wrong with the fields of a skill in a folder of that name."""
    faults: list[str] = []
    unknown = sorted(set(fields) - set(FIELDS))
    if unknown:
        shown = ", ".join(name[:60] for name in unknown)
        faults.append(f"unknown field{'s' if len(unknown) > 1 else ''} {shown}; there are {', '.join(FIELDS)}")
    faults += _of_name(fields["name"], folder) if "name" in fields else ["`name` is missing"]
    faults += _of_description(fields["description"]) if "description" in fields else ["`description` is missing"]
    if "compatibility" in fields:
        said: Any = fields["compatibility"]
        if not isinstance(said, str):
            faults.append("`compatibility` must be a text")
        elif len(said) > MAX_COMPATIBILITY:
            faults.append(f"`compatibility` is longer than {MAX_COMPATIBILITY} characters ({len(said)})")
    return faults


def _of_name(said: Json, folder: str) -> list[str]:
    if not isinstance(said, str) or not said.strip():
        return ["`name` must be a text that is not empty"]
    faults: list[str] = []
    name = unicodedata.normalize("NFKC", said.strip())
    shown = repr(name[:80])
    if len(name) > MAX_NAME:
        faults.append(f"`name` is longer than {MAX_NAME} characters ({len(name)})")
    if name != name.lower():
        faults.append(f"`name` {shown} must be in lower case")
    if name.startswith("-") or name.endswith("-"):
        faults.append(f"`name` {shown} must not begin or end with a hyphen")
    if "--" in name:
        faults.append(f"`name` {shown} must not have two hyphens in a row")
    if not all(character.isalnum() or character == "-" for character in name):
        faults.append(f"`name` {shown} may have letters, digits and hyphens only")
    if unicodedata.normalize("NFKC", folder) != name:
        faults.append(f"`name` {shown} must be the name of its folder, {folder[:80]!r}")
    return faults


def _of_description(said: Json) -> list[str]:
    if not isinstance(said, str) or not said.strip():
        return ["`description` must be a text that is not empty"]
    if len(said) > MAX_DESCRIPTION:
        return [f"`description` is longer than {MAX_DESCRIPTION} characters ({len(said)})"]
    return []
