"""References: a configuration names a secret or a variable, and says where it lies, instead of holding it.

    ${VAR}  ${VAR:-default}     a variable of the environment, anywhere in a text; `$${` is a plain `${`
    ${env:VAR}  {env:VAR}       the same, as other clients write it; a default may follow too
    ${file:PATH}  {file:PATH}   anywhere in a text: the contents of a file, without its last line break
    ${input:ID}                 what an MCP server was told by `anykit configure`; only where such inputs are given
    file:PATH                   the whole text: the same
    keyring:SERVICE/NAME        the whole text: an entry of the system's keyring

A text is read once: what a variable, file or keyring holds is never read for references again. Only what the operator
wrote is resolved; from a caller a reference is plain text. A URL (`file://...`) is not a reference.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from anykit.capabilities import Fault, Json, JsonObject

from .keyring import KeyringError, read_keyring

MAX_FILE = 64 * 1024
"""Bytes of a file that a reference may name."""
MAX_DEPTH = 128

_VARIABLE = re.compile(
    r"\$\$\{"
    r"|(?:\$\{(?:env:)?|\{env:)(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^{}]*))?\}"
    r"|\$?\{file:(?P<file>[^{}]+)\}"
    r"|\$\{input:(?P<input>[^{}]+)\}"
    r"|\$\{"
)
_FILE = re.compile(r"file:(?!//)")
_KEYRING = "keyring:"


class UnresolvedReference(ValueError):
    """A reference leads nowhere. `errors` is every one: the field's JSON pointer and what is wrong; never a value."""

    def __init__(self, errors: Sequence[Fault]) -> None:
        super().__init__(
            "; ".join(f"{fault['path']}: {fault['message']}" if fault["path"] else fault["message"] for fault in errors)
        )
        self.errors: list[Fault] = list(errors)


def has_reference(text: str) -> bool:
    """Whether `resolve` would read something for this text."""
    if _FILE.match(text) or text.startswith(_KEYRING):
        return True
    return any(match["name"] or match["file"] or match["input"] for match in _VARIABLE.finditer(text))


def resolve(
    text: str,
    env: Mapping[str, str] | None = None,
    base_dir: str | os.PathLike[str] = ".",
    *,
    where: str = "",
    inputs: Mapping[str, str] | None = None,
) -> str:
    """The text with its references replaced, once.

    `env` is the environment (the process's own where None), `base_dir` the folder that a relative `file:` starts in,
    `where` the field that an error names, `inputs` what `${input:ID}` stands for. Raises `UnresolvedReference`: a variable that is unset and has no default, a
    file that cannot be read, a keyring entry that does not exist, a `${` that is neither a reference nor escaped.
    """
    environment = os.environ if env is None else env

    def replace(match: re.Match[str]) -> str:
        name = match["name"]
        if match["file"] is not None:
            return _read_file(match["file"], Path(base_dir), where)
        if match["input"] is not None:
            if (given := (inputs or {}).get(match["input"])) is None:
                raise _unresolved(where, f"needs the input {match['input']!r}")
            return given
        if name is None:
            if match[0] == "$${":
                return "${"
            raise _unresolved(
                where, "'${' begins no reference: write ${NAME} or ${NAME:-default}, or $${ for a plain '${'"
            )
        default = match["default"]
        value = environment.get(name)
        if value is None and default is None:
            raise _unresolved(
                where, f"the environment variable {name} is not set; set it, or give a default: ${{{name}:-...}}"
            )
        # As in a shell, `:-` stands in for an empty variable too.
        return default if default is not None and not value else value or ""

    expanded = _VARIABLE.sub(replace, text)
    # What kind of reference it is was written by the operator: a variable's value cannot make it one.
    if _FILE.match(text):
        return _read_file(expanded.removeprefix("file:"), Path(base_dir), where)
    if text.startswith(_KEYRING):
        return _read_entry(expanded.removeprefix(_KEYRING), where)
    return expanded


def resolve_all(
    value: Json,
    env: Mapping[str, str] | None = None,
    base_dir: str | os.PathLike[str] = ".",
    *,
    where: str = "",
    inputs: Mapping[str, str] | None = None,
) -> Json:
    """A copy of a JSON value with the references in all its strings replaced (not in its keys).

    Raises `UnresolvedReference` with every fault of the whole value; `where` is the JSON pointer that leads to it.
    """
    errors: list[Fault] = []

    def walk(item: Json, path: str, depth: int) -> Json:
        if depth > MAX_DEPTH:
            errors.append({"path": path, "message": f"nested deeper than {MAX_DEPTH}"})
            return None
        if isinstance(item, str):
            try:
                return resolve(item, env, base_dir, where=path, inputs=inputs)
            except UnresolvedReference as error:
                errors.extend(error.errors)
                return None
        if isinstance(item, dict):
            return {
                key: walk(child, f"{path}/{_pointer(str(key))}", depth + 1)
                for key, child in cast(JsonObject, item).items()
            }
        if isinstance(item, list):
            return [walk(child, f"{path}/{index}", depth + 1) for index, child in enumerate(cast(list[Json], item))]
        return item

    resolved = walk(value, where, 0)
    if errors:
        raise UnresolvedReference(errors)
    return resolved


def _pointer(key: str) -> str:
    """One step of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


def _unresolved(where: str, message: str) -> UnresolvedReference:
    return UnresolvedReference([{"path": where, "message": message}])


def _read_file(name: str, base_dir: Path, where: str) -> str:
    path = base_dir / Path(name).expanduser()
    if not name:
        raise _unresolved(where, "'file:' names no file")
    try:
        # A FIFO or a device must not hold us up.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            data = file.read(MAX_FILE + 1)
        text = (data or b"").decode()
    except UnicodeDecodeError:
        raise _unresolved(where, f"the file {name!r} is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a file name"
        raise _unresolved(where, f"the file {name!r} cannot be read: {reason}") from None
    if len(data) > MAX_FILE:
        raise _unresolved(where, f"the file {name!r} is larger than {MAX_FILE // 1024} KiB")
    return text.removesuffix("\n").removesuffix("\r")


def _read_entry(name: str, where: str) -> str:
    service, slash, entry = name.partition("/")
    if not (service and slash and entry):
        raise _unresolved(where, "a keyring reference is keyring:SERVICE/NAME")
    try:
        value = read_keyring(service, entry)
    except KeyringError as error:
        raise _unresolved(where, str(error)) from None
    if value is None:
        raise _unresolved(where, f"the keyring has no entry {entry!r} of the service {service!r}")
    return value
