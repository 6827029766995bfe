"""Placeholders in the texts of a client's file: filled in by that client's rules, once, or kept as references of ours.

What a variable, a file or an input holds is never looked through for placeholders again, and never told.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from anykit.capabilities import JsonObject
from anykit.sources.connection import CONNECT_TIMEOUT

from .clients import Client, Form

MAX_FILE: Final = 64 * 1024
"""Bytes of a file that a placeholder or `envFile` may name."""
_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_PIECES: Final[tuple[tuple[Form, str], ...]] = (
    ("$${", r"(?P<escape>\$\$\{)"),
    ("${folder}", r"\$\{(?P<folder>workspaceFolder|workspaceRoot|workspaceFolderBasename|userHome|pathSeparator|/)\}"),
    ("${env:X}", r"\$\{env:(?P<env>[^{}]*)\}"),
    ("${file:p}", r"\$\{file:(?P<file>[^{}]*)\}"),
    ("${input:id}", r"\$\{input:(?P<input>[^{}]*)\}"),
    ("${X:-d}", rf"\$\{{(?P<named>{_NAME}:-[^{{}}]*)\}}"),
    ("${X}", rf"\$\{{(?P<name>{_NAME})\}}"),
    ("{env:X}", r"(?<!\$)\{env:(?P<bare_env>[^{}]+)\}"),
    ("{file:p}", r"(?<!\$)\{file:(?P<bare_file>[^{}]+)\}"),
    ("$X", rf"\$(?P<plain>{_NAME})"),
    ("%X%", rf"%(?P<percent>{_NAME})%"),
)
_LOOKS_LIKE: Final = re.compile(r"\$\{[^{}\s]{1,200}\}|(?<!\$)\{(?:env|file):[^{}]{1,200}\}")
_OPTIONAL: Final = frozenset({"env_vars", "env_keys", "env_http_headers"})
"""Keys that pass a variable on where it is set."""
_ASSIGNMENT: Final = re.compile(rf"\s*(?:export\s+)?({_NAME})\s*=\s*(.*?)\s*")


class Misfit(ValueError):
    """An entry, or a file, that cannot be used; the text says where and why, without the value of anything secret."""


class Unfilled(ValueError):
    """A placeholder leads nowhere; the text says why."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What placeholders are filled from."""

    folder: Path
    """Where relative paths, and `${workspaceFolder}`, start."""
    env: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    inputs: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Values for the `inputs` of a VS Code file, by id."""
    told: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]], repr=False)
    """The same by server: what somebody gave for one of a file goes for the others that ask for it too."""
    connect_timeout: float = CONNECT_TIMEOUT
    home: Path = field(default_factory=Path.home)
    project: Path = field(default_factory=Path.cwd)
    """The folder that is worked in, for files of a person that say something about one project."""
    names: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Names that stand for something in this file only: `PLUGIN_ROOT`, `PLUGIN_DATA`."""


class Values(Protocol):
    """What becomes of the texts of an entry. Methods raise `Unfilled`."""

    def text(self, text: str, key: str) -> str:
        """A text with its placeholders."""
        ...

    def variable(self, name: str, key: str) -> str | None:
        """A variable that a key names; None where it is not set."""
        ...

    def variables(self, file: str, key: str) -> Mapping[str, str]:
        """The variables in a dotenv file."""
        ...


class Filling:
    """Fills in. `reports` are what stays as it is, each with its place."""

    def __init__(self, client: Client, around: Surroundings, inputs: Mapping[str, JsonObject]) -> None:
        self.reports: list[str] = []
        self._client = client
        self._around = around
        self._inputs = inputs
        self._pattern = pattern_of(client, around)

    def text(self, text: str, key: str) -> str:
        """See `Values`."""
        if "$" not in text and "{" not in text and "%" not in text:
            return text
        takes = not self._client.fields or key.partition("/")[0] in self._client.fields
        pieces: list[str] = []
        end = 0
        for match in self._pattern.finditer(text) if takes and self._pattern is not None else ():
            pieces += [self._plain(text[end : match.start()], key), self._fill(match, key)]
            end = match.end()
        return "".join([*pieces, self._plain(text[end:], key)])

    def _plain(self, text: str, key: str) -> str:
        for match in _LOOKS_LIKE.finditer(text):
            self.reports.append(f"{key}: {match[0]} stays as it is: {self._client.title} fills in nothing like it here")
        return text

    def _fill(self, match: re.Match[str], key: str) -> str:
        what, argument = str(match.lastgroup), match[str(match.lastgroup)]
        match what:
            case "escape":
                return "${"
            case "folder":
                return self._folder(argument)
            case "file" | "bare_file":
                return self._file(argument)
            case "input":
                return self._input(argument)
            case "own":
                return self._around.names[argument]
            case _:
                return self._variable(argument, match[0], key)

    def _variable(self, argument: str, written: str, key: str) -> str:
        name, has_default, default = argument.partition(":-")
        value = self._around.env.get(name)
        if has_default:
            return value or default  # as in a shell, an empty one too
        if value is not None:
            return value
        unset = f"the environment variable {name} is not set"
        match self._client.unset:
            case "error":
                raise Unfilled(f"{unset}; set it, or write ${{{name}:-...}}")
            case "empty":
                self.reports.append(f"{key}: {unset}; {written} is empty, as in {self._client.title}")
                return ""
            case "literal":
                self.reports.append(f"{key}: {unset}; {written} stays as it is")
                return written

    def _folder(self, name: str) -> str:
        match name:
            case "userHome":
                return str(self._around.home)
            case "workspaceFolderBasename":
                return self._around.folder.name
            case "pathSeparator" | "/":
                return os.sep
            case _:
                return str(self._around.folder)

    def _file(self, name: str) -> str:
        return _text_of(self._around.folder / _expanded(name, self._around.home), name).strip()

    def _input(self, id: str) -> str:
        if (value := self._around.inputs.get(id)) is not None:
            return value
        asked = self._inputs.get(id, {})
        if isinstance(default := asked.get("default"), str) and asked.get("password") is not True:
            return default
        described = asked.get("description")
        raise Unfilled(f"needs the input {id!r}{f' ({described})' if isinstance(described, str) else ''}")

    def variable(self, name: str, key: str) -> str | None:
        """See `Values`."""
        return self._around.env.get(name)

    def variables(self, file: str, key: str) -> Mapping[str, str]:
        """See `Values`: NAME=value lines, `export` and quotes allowed."""
        found: dict[str, str] = {}
        for line in _text_of(self._around.folder / _expanded(file, self._around.home), file).splitlines():
            match = _ASSIGNMENT.fullmatch(line)
            if match is not None:
                value = match[2]
                quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
                found[match[1]] = value[1:-1] if quoted else value
        return found


class Referring:
    """Keeps what a file refers to, as references of our own files. Nothing is looked up."""

    def __init__(self, client: Client, around: Surroundings) -> None:
        self.env_files: list[str] = []
        self._client = client
        self._around = around
        self._pattern = pattern_of(client, around)

    def text(self, text: str, key: str) -> str:
        """See `Values`."""
        takes = not self._client.fields or key.partition("/")[0] in self._client.fields
        pieces: list[str] = []
        end = 0
        for match in self._pattern.finditer(text) if takes and self._pattern is not None else ():
            pieces += [text[end : match.start()].replace("${", "$${"), self._reference(match)]
            end = match.end()
        return "".join([*pieces, text[end:].replace("${", "$${")])

    def _reference(self, match: re.Match[str]) -> str:
        what, argument = str(match.lastgroup), match[str(match.lastgroup)]
        match what:
            case "escape":
                return "$${"
            case "folder" | "own":
                return Filling(self._client, self._around, {}).text(match[0], next(iter(self._client.fields), ""))
            case "file" | "bare_file":
                return f"${{file:{self._around.folder / _expanded(argument, self._around.home)}}}"
            case "input":
                return match[0]
            case _:
                empty = self._client.unset == "empty" and ":-" not in argument
                return f"${{{argument}:-}}" if empty else f"${{{argument}}}"

    def variable(self, name: str, key: str) -> str | None:
        """See `Values`."""
        return f"${{{name}:-}}" if key in _OPTIONAL else f"${{{name}}}"

    def variables(self, file: str, key: str) -> Mapping[str, str]:
        """See `Values`."""
        self.env_files.append(str(self._around.folder / _expanded(file, self._around.home)))
        return {}


def pattern_of(client: Client, around: Surroundings) -> re.Pattern[str] | None:
    """What is a placeholder in a client's file; None where nothing is."""
    windows = os.name == "nt"
    pieces = [piece for form, piece in _PIECES if form in client.forms and (windows or form != "%X%")]
    if around.names:
        pieces.insert(0, rf"\$\{{(?P<own>{'|'.join(map(re.escape, around.names))})\}}")
    return re.compile("|".join(pieces)) if pieces else None


def _expanded(name: str, home: Path) -> Path:
    return home / name[2:] if name.startswith("~/") else Path(name)


def _text_of(path: Path, name: str) -> str:
    try:
        # A FIFO or a device must not hold us up.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        with os.fdopen(handle, "rb") as stream:
            raw = stream.read(MAX_FILE + 1) or b""
        text = raw.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise Unfilled(f"the file {name!r} cannot be read: {reason}") from None
    if len(raw) > MAX_FILE:
        raise Unfilled(f"the file {name!r} is larger than {MAX_FILE // 1024} KiB")
    return text
