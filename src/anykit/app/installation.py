"""What a client needs to know to use this host: the entry in its own shape, and the file where it looks for it."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Literal, TypeAlias

from anykit.capabilities import JsonObject
from anykit.sources.documents import LARGE, MAX_FILE

from .discovery import Home

Scope: TypeAlias = Literal["user", "project"]
Shape: TypeAlias = Callable[[Sequence[str]], JsonObject]

_VARIABLE: Final = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")


class NotInstallable(ValueError):
    """What is wanted is not possible with this client; the text says why, and what is."""


@dataclass(frozen=True, slots=True)
class Client:
    """How one client is told of a server."""

    id: str
    title: str
    map: str
    """The key that the servers stand under."""
    user: Callable[[Home], Path]
    project: str = ""
    """The file of a project, from its folder; empty where the client has none."""
    stdio: Shape = lambda argv: {"command": argv[0], "args": list(argv[1:])}
    url: str = "url"
    """The key of an address; empty where the client reaches none."""
    remote: Mapping[str, str | bool | int | list[str]] | None = None
    """What else an entry with an address has."""
    reference: str = ""
    """How a variable is written in a header; empty where none is filled in."""
    again: str = "restart it"
    """What makes it notice."""

    def file(self, scope: Scope, project: Path, home: Home) -> Path:
        """The file of a scope, the one that is there where it may be called otherwise. Raises `NotInstallable`."""
        if scope == "user":
            return _there(self.user(home))
        if not self.project:
            raise NotInstallable(f"{self.title} has no file of a project; leave --scope out")
        return _there(project / self.project)

    def entry(self, argv: Sequence[str], url: str, token: str) -> JsonObject:
        """The entry that starts `argv`, or that connects to `url` with a reference to a token. Raises `NotInstallable`."""
        if not url:
            return self.stdio(argv)
        if not self.url:
            raise NotInstallable(f"{self.title} starts programs only; leave --url out")
        entry: JsonObject = {
            **{key: value for key, value in (self.remote or {}).items() if key == "type"},
            self.url: url,
        }
        entry |= {key: value for key, value in (self.remote or {}).items() if key != "type"}
        if token:
            entry |= self._credentials(token)
        return entry

    def _credentials(self, token: str) -> JsonObject:
        found = _VARIABLE.fullmatch(token)
        if found is None:
            raise NotInstallable("a token is not written down plainly; name a variable: --token '${VARIABLE}'")
        if self.id == "codex":
            return {"bearer_token_env_var": found[1]}
        if not self.reference:
            raise NotInstallable(
                f"{self.title} fills no variable into a header; let it start the host: leave --url out"
            )
        return {"headers": {"Authorization": f"Bearer {self.reference.format(found[1])}"}}


def _there(file: Path) -> Path:
    """A JSON file may also be one with comments, by its name."""
    with_comments = file.with_suffix(".jsonc")
    return with_comments if file.suffix == ".json" and not file.exists() and with_comments.exists() else file


def _typed(kind: str) -> Shape:
    return lambda argv: {"type": kind, "command": argv[0], "args": list(argv[1:])}


CLIENTS: Final = {
    client.id: client
    for client in (
        Client(
            "claude",
            "Claude Code",
            "mcpServers",
            lambda home: home.folder / ".claude.json",
            ".mcp.json",
            _typed("stdio"),
            remote={"type": "http"},
            reference="${{{}}}",
            again="start it again, and look with /mcp",
        ),
        Client(
            "claude-desktop",
            "Claude Desktop",
            "mcpServers",
            lambda home: home.settings / "Claude" / "claude_desktop_config.json",
            url="",
            again="quit it and start it again",
        ),
        Client(
            "cursor",
            "Cursor",
            "mcpServers",
            lambda home: home.folder / ".cursor" / "mcp.json",
            ".cursor/mcp.json",
            reference="${{env:{}}}",
            again="switch it on in Cursor's settings, under MCP",
        ),
        Client(
            "vscode",
            "VS Code",
            "servers",
            lambda home: home.settings / "Code" / "User" / "mcp.json",
            ".vscode/mcp.json",
            _typed("stdio"),
            remote={"type": "http"},
            reference="${{env:{}}}",
            again="run MCP: List Servers in VS Code, and start it",
        ),
        Client(
            "codex",
            "Codex",
            "mcp_servers",
            lambda home: Path(home.env.get("CODEX_HOME") or home.folder / ".codex") / "config.toml",
            ".codex/config.toml",
        ),
        Client(
            "gemini",
            "Gemini CLI",
            "mcpServers",
            lambda home: home.folder / ".gemini" / "settings.json",
            ".gemini/settings.json",
            url="httpUrl",
        ),
        Client(
            "opencode",
            "opencode",
            "mcp",
            lambda home: home.dotted / "opencode" / "opencode.json",
            "opencode.json",
            lambda argv: {"type": "local", "command": list(argv), "enabled": True},
            remote={"type": "remote", "enabled": True},
            reference="{{env:{}}}",
        ),
        Client(
            "copilot",
            "Copilot CLI",
            "mcpServers",
            lambda home: Path(home.env.get("COPILOT_HOME") or home.folder / ".copilot") / "mcp-config.json",
            stdio=lambda argv: {"type": "local", "command": argv[0], "args": list(argv[1:]), "tools": ["*"]},
            remote={"type": "http", "tools": ["*"]},
            reference="${{{}}}",
        ),
        Client(
            "windsurf",
            "Windsurf",
            "mcpServers",
            lambda home: home.folder / ".codeium" / "windsurf" / "mcp_config.json",
            url="serverUrl",
            reference="${{env:{}}}",
            again="press refresh in its MCP settings",
        ),
        Client(
            "kiro",
            "Kiro",
            "mcpServers",
            lambda home: home.folder / ".kiro" / "settings" / "mcp.json",
            ".kiro/settings/mcp.json",
            reference="${{{}}}",
        ),
        Client(
            "zed",
            "Zed",
            "context_servers",
            lambda home: (
                (home.folder / ".config" if home.platform == "darwin" else home.dotted) / "zed" / "settings.json"
            ),
            ".zed/settings.json",
            lambda argv: {"source": "custom", "command": argv[0], "args": list(argv[1:]), "env": {}},
            again="look in its agent panel; it reads the file at once",
        ),
        Client(
            "goose",
            "Goose",
            "extensions",
            lambda home: home.dotted / "goose" / "config.yaml",
            stdio=lambda argv: {
                "type": "stdio",
                "name": "anykit",
                "cmd": argv[0],
                "args": list(argv[1:]),
                "enabled": True,
                "timeout": 300,
            },
            url="uri",
            remote={"type": "streamable_http", "name": "anykit", "enabled": True, "timeout": 300},
        ),
    )
}
ALIASES: Final = {"claude-code": "claude", "vs-code": "vscode", "code": "vscode", "gemini-cli": "gemini"}


def command_of_ours(arguments: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """The command line, with absolute paths, that starts this anykit from anywhere."""
    for place in (
        Path(sys.argv[0]),
        Path(sys.executable).parent / "anykit",
        shutil.which("anykit", path=env.get("PATH")),
    ):
        if place is not None and Path(place).name in ("anykit", "anykit.exe") and os.access(place, os.X_OK):
            return [str(Path(place).absolute()), *arguments]
    return [sys.executable, "-m", "anykit", *arguments]


def back_up(file: Path) -> Path | None:
    """A copy beside a file, readable by whom the file is; None where there is no file yet. Raises `OSError`."""
    if not file.exists():
        return None
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")  # local time: it is for the eyes of whoever looks for it
    number = 0
    while True:
        copy = file.with_name(f"{file.name}.{stamp}{f'-{number}' if number else ''}.bak")
        try:
            with copy.open("xb"):
                pass
        except FileExistsError:
            number += 1
            continue
        shutil.copy2(file, copy)
        return copy


def bytes_of(file: Path) -> bytes | None:
    """A file's bytes; None where there is none. Raises `OSError`, `NotInstallable`."""
    limit = LARGE.get(file.name, MAX_FILE)
    try:
        with file.open("rb") as stream:
            raw = stream.read(limit + 1)
    except FileNotFoundError:
        return None
    if len(raw) > limit:
        raise NotInstallable(f"{file}: larger than {limit} bytes")
    return raw


def write_whole(file: Path, text: str, before: bytes | None) -> None:
    """Write a file whole or not at all, and only where nobody wrote since. Raises `OSError`, `NotInstallable`."""
    file = file.resolve()
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)  # made 0600
    temporary = Path(name)
    marked = before is not None and before.startswith(b"\xef\xbb\xbf")
    try:
        with os.fdopen(handle, "w", encoding="utf-8-sig" if marked else "utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        if before is not None:
            temporary.chmod(file.stat().st_mode & 0o7777)
        if bytes_of(file) != before:
            raise NotInstallable(f"{file} was changed by somebody else at the same moment; run it again")
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
