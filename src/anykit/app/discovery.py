"""Where clients keep their files, and the servers in those that are there. Nothing is started, nothing is fetched."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

from anykit.sources.mcp import Misfit, ServerFile, Surroundings, read_server_file

from .config import ConfigError
from .taking import Taken, taken_of
from .trust import Trust

Scope: TypeAlias = Literal["user", "project", "local"]
State: TypeAlias = Literal["new", "in", "disabled", "untrusted", "failed"]
"""`in` is in our file already; `failed` is written in a way that cannot be used."""

LEVELS: Final = 32
"""Folders upwards that are looked at for a project's files."""
UPWARDS: Final = (
    ("cursor", ".cursor/mcp.json"),
    ("gemini", ".gemini/settings.json"),
    ("claude-code", ".mcp.json"),
    ("vscode", ".vscode/mcp.json"),
    ("codex", ".codex/config.toml"),
    ("opencode", "opencode.json"),
    ("opencode", "opencode.jsonc"),
    ("opencode", ".opencode/opencode.json"),
    ("opencode", ".opencode/opencode.jsonc"),
    ("copilot", ".copilot/mcp-config.json"),
    ("roo", ".roo/mcp.json"),
    ("cline", ".cline/mcp.json"),
    ("kiro", ".kiro/settings/mcp.json"),
    ("zed", ".zed/settings.json"),
)
"""A project's files, by client."""
HERE: Final = (("mcp", "mcp.json"), ("fastmcp", "fastmcp.json"))
"""The same, in the folder that is worked in only."""


@dataclass(frozen=True, slots=True)
class Place:
    """A file that a client may have."""

    client: str
    path: Path
    scope: Scope = "user"


@dataclass(frozen=True, slots=True)
class Found:
    """A server in a client's file."""

    name: str
    """Qualified: `cursor:github`."""
    server: str
    client: str
    transport: str
    """`stdio`, `http`, `sse`; `auto` where only asking tells."""
    file: Path
    scope: Scope
    state: State
    reason: str = ""
    """Why it is in that state."""
    about: str = ""
    """What it starts or connects to, without secrets."""
    taken: Taken | None = None
    """It as a source of ours; None where it cannot be one."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """What there is."""

    servers: tuple[Found, ...]
    files: tuple[Path, ...]
    """Files of clients that are there."""
    reports: tuple[str, ...] = ()
    """What could not be read, or not wholly."""


@dataclass(frozen=True, slots=True)
class Home:
    """Where a person keeps things; of the platform."""

    folder: Path
    env: Mapping[str, str]
    platform: str = sys.platform

    @property
    def settings(self) -> Path:
        """Where applications keep their settings."""
        if self.platform == "darwin":
            return self.folder / "Library" / "Application Support"
        if self.platform == "win32":
            return Path(self.env.get("APPDATA") or self.folder / "AppData" / "Roaming")
        return self.dotted

    @property
    def dotted(self) -> Path:
        """Where programs of the command line do."""
        if self.platform == "win32":
            return Path(self.env.get("APPDATA") or self.folder / "AppData" / "Roaming")
        return Path(self.env.get("XDG_CONFIG_HOME") or self.folder / ".config")


def places(project: Path, home: Home) -> Iterator[Place]:
    """Every file that a client may have, the nearest first. Whether it is there is not looked at."""
    user, settings, dotted = home.folder, home.settings, home.dotted
    yield Place("claude-desktop", settings / "Claude" / "claude_desktop_config.json")
    yield Place("claude-code", user / ".claude.json")
    for folder in _upwards(project, user):
        for client, name in UPWARDS:
            yield Place(client, folder / name, "project")
    for client, name in HERE:
        yield Place(client, project / name, "project")
    yield Place("cursor", user / ".cursor" / "mcp.json")
    yield Place("gemini", user / ".gemini" / "settings.json")
    yield Place("goose", dotted / "goose" / "config.yaml")
    for editor in ("Code", "Code - Insiders", "VSCodium"):
        folder = settings / editor / "User"
        yield Place("vscode", folder / "mcp.json")
        storage = folder / "globalStorage"
        yield Place("cline", storage / "saoudrizwan.claude-dev" / "settings" / "cline_mcp_settings.json")
        yield Place("roo", storage / "rooveterinaryinc.roo-cline" / "settings" / "mcp_settings.json")
    yield Place("codex", Path(home.env.get("CODEX_HOME") or user / ".codex") / "config.toml")
    for name in ("opencode.json", "opencode.jsonc"):
        yield Place("opencode", dotted / "opencode" / name)
    yield Place("copilot", Path(home.env.get("COPILOT_HOME") or user / ".copilot") / "mcp-config.json")
    yield Place("windsurf", user / ".codeium" / "windsurf" / "mcp_config.json")
    yield Place("kiro", user / ".kiro" / "settings" / "mcp.json")
    yield Place("zed", (user / ".config" if home.platform == "darwin" else dotted) / "zed" / "settings.json")
    yield Place("inspector", user / ".mcp-inspector" / "mcp.json")


def _upwards(project: Path, home: Path) -> Iterator[Path]:
    """The folder that is worked in and those above it; not the home folder, where a person's own files lie."""
    for folder in (project, *project.parents)[:LEVELS]:
        if folder == home:
            return
        yield folder


def discover(
    project: Path,
    home: Home,
    *,
    trust: Trust | None = None,
    is_in: Callable[[Taken], bool] = lambda taken: False,
    ours: Path | None = None,
) -> Discovery:
    """The servers in the files of every client.

    `is_in` says whether one is in our file already; a host that serves that file, `ours`, is no server for it.
    """

    def is_known(taken: Taken) -> bool:
        return is_in(taken) or (ours is not None and _serves(taken, ours))

    files, reports = list[Path](), list[str]()
    found: list[tuple[Place, ServerFile]] = []
    seen: set[Path] = set()
    around = Surroundings(project, env=home.env, home=home.folder, project=project)
    for place in places(project, home):
        try:
            real = place.path.resolve()
            if real in seen or not place.path.is_file():
                continue
        except OSError:
            continue
        seen.add(real)
        files.append(place.path)
        try:
            read = read_server_file(place.path, around)
        except Misfit as error:
            if "no servers in it" not in str(error):  # a client's settings need not name any
                reports.append(str(error))
            continue
        reports += [f"{place.path}: {report}" for report in read.reports if not report.startswith("keys that mean")]
        found.append((place, read))
    servers = [one for place, read in found for one in _servers(place, read, trust, is_known)]
    return Discovery(tuple(_named(servers)), tuple(files), tuple(reports))


def _servers(place: Place, read: ServerFile, trust: Trust | None, is_in: Callable[[Taken], bool]) -> Iterator[Found]:
    is_trusted = place.scope != "project" or _is_trusted(place.path, trust)
    for index, entry in enumerate(read.entries):
        taken = fault = None
        try:
            taken = taken_of(read, index)
        except ValueError as error:
            fault = str(error).removeprefix(f"{read.path}: ")
        state, reason = _state(taken, fault, entry.disabled, is_in, is_trusted=is_trusted)
        yield Found(
            name=f"{place.client}:{entry.name}",
            server=entry.name,
            client=place.client,
            transport="" if taken is None else taken.transport,
            file=place.path,
            scope="local" if entry.scope == "local" else place.scope,
            state=state,
            reason=reason,
            about="" if taken is None else taken.about,
            taken=taken,
        )


def _state(
    taken: Taken | None, fault: str | None, disabled: str, is_in: Callable[[Taken], bool], *, is_trusted: bool
) -> tuple[State, str]:
    if taken is not None and is_in(taken):
        return "in", "in the file already"
    if disabled:
        return "disabled", disabled
    if taken is None:
        return "failed", fault or ""
    if not is_trusted:
        return "untrusted", "a project's file that nobody has agreed to"
    return "new", ""


def _serves(taken: Taken, ours: Path) -> bool:
    """Whether it is what `anykit install` wrote: a host does not use itself."""
    argv = list(map(str, taken.table.get("args", ())))
    return "serve" in argv and "--config" in argv[:-1] and argv[argv.index("--config") + 1] == str(ours.absolute())


def _is_trusted(file: Path, trust: Trust | None) -> bool:
    if trust is None:
        return False
    try:
        return trust.check(file).is_trusted
    except ConfigError:
        return False


def _named(servers: Sequence[Found]) -> Iterable[Found]:
    """Each with a name of its own: where a client has two of one name, the nearest keeps the plain one."""

    taken: set[str] = set()
    for one in servers:
        names = [one.name, f"{one.client}-{one.scope}:{one.server}"]
        names += [f"{one.client}-{number}:{one.server}" for number in range(2, len(servers) + 2)]
        name = next(name for name in names if name not in taken)
        taken.add(name)
        yield one if name == one.name else replace(one, name=name)
