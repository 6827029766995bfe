"""What a client's settings say about a server outside of its entry: switched off, some of its tools denied.

Gemini CLI    `mcp.allowed`, `mcp.excluded` in the same file
opencode      `tools`, globs over `<server>_<tool>`, in the same file
Claude Code   lists of servers and `permissions` in the settings beside the project's file and in the person's folder
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from anykit.capabilities import JsonObject
from anykit.sources.documents import Unreadable, read_document

from .clients import CLAUDE_CODE, GEMINI, OPENCODE, Client
from .parts import Gate
from .placeholders import Surroundings

MAX_RULES: Final = 10_000


@dataclass(slots=True)
class Gates:
    """What is said of all the servers of a file."""

    off: dict[str, str] = field(default_factory=dict[str, str])
    """Servers that are off, and why."""
    only: tuple[frozenset[str], str] | None = None
    """The only ones that are on, and who says so."""
    rules: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """Decision, pattern over a client's whole name of a tool, who says so."""
    prefix: str = ""
    """What such a name begins with, `{}` for the server."""
    reports: list[str] = field(default_factory=list[str])

    def of(self, server: str) -> Gate:
        """What is said of one."""
        disabled = self.off.get(server, "")
        if not disabled and self.only is not None and server not in self.only[0]:
            disabled = f"not among those that are allowed in {self.only[1]}"
        prefix = self.prefix.format(server)
        deny, approvals = list[str](), list[tuple[str, str]]()
        for decision, rule, who in self.rules:
            patterns = ["*"] if rule == prefix.rstrip("_") else list(residuals(rule, prefix))
            if decision != "deny":
                approvals += [(one, decision) for one in patterns]
            elif "*" in patterns and not disabled and self.prefix.startswith("mcp__"):
                disabled = f"denied in {who}"
            else:
                deny += patterns
        return Gate(disabled, tuple(dict.fromkeys(deny)), tuple(dict.fromkeys(approvals)))


def residuals(pattern: str, prefix: str) -> Iterable[str]:
    """Shell patterns for what may follow `prefix`, so that the whole matches `pattern` (`*` and `?` only)."""
    places = {0}
    for letter in prefix:
        after: set[int] = set()
        for place in _closed(places, pattern):
            if place < len(pattern) and pattern[place] == "*":
                after.add(place)
            elif place < len(pattern) and pattern[place] in ("?", letter):
                after.add(place + 1)
        places = after
    for place in sorted(_closed(places, pattern)):
        rest = pattern[place:]
        if rest:
            yield re.sub(r"[\[\]]", lambda match: f"[{match[0]}]", rest)


def _closed(places: set[int], pattern: str) -> set[int]:
    """A star may also stand for nothing."""
    found = set(places)
    for place in places:
        while place < len(pattern) and pattern[place] == "*":
            place += 1
            found.add(place)
    return found


def gates_of(client: Client, file: Path | None, data: Mapping[str, Any], around: Surroundings) -> Gates:
    """What is said around a file. Never raises: settings that cannot be read are reported."""
    if client is GEMINI:
        return _of_gemini(data)
    if client is OPENCODE:
        return _of_opencode(data)
    if client is CLAUDE_CODE and file is not None:
        return _of_claude_code(file, data, around)
    return Gates()


def _of_gemini(data: Mapping[str, Any]) -> Gates:
    said: Any = data.get("mcp")
    table = cast(JsonObject, said) if isinstance(said, dict) else {}
    gates = Gates(off=dict.fromkeys(_names(table.get("excluded")), "excluded by `mcp.excluded`"))
    if isinstance(table.get("allowed"), list):
        gates.only = (frozenset(_names(table["allowed"])), "`mcp.allowed`")
    return gates


def _of_opencode(data: Mapping[str, Any]) -> Gates:
    said: Any = data.get("tools")
    switches = cast(JsonObject, said) if isinstance(said, dict) else {}
    # A tool that is switched on says nothing: they all are, and what is off wins.
    return Gates(prefix="{}_", rules=[("deny", str(name), "`tools`") for name, on in switches.items() if on is False])


def _of_claude_code(file: Path, data: Mapping[str, Any], around: Surroundings) -> Gates:
    gates = Gates(prefix="mcp__{}__")
    project = around.folder
    for folder in dict.fromkeys((around.home / ".claude", project / ".claude")):
        for name in ("settings.json", "settings.local.json"):
            settings = folder / name
            if not settings.is_file():
                continue
            try:
                _add_settings(gates, read_document(settings), str(settings), is_project=file.name == ".mcp.json")
            except Unreadable as error:
                gates.reports.append(f"{error}; what it switches off and denies is not known")
    person = around.home / ".claude.json"
    if file.name != person.name and person.is_file():
        try:
            data = read_document(person)
        except Unreadable as error:
            gates.reports.append(f"{error}; what it switches off is not known")
            data = {}
    elif file.name != person.name:
        data = {}
    said = project_of(data, around.project)[1]
    _add_settings(gates, said, f"{person} (this project)", is_project=file.name == ".mcp.json")
    return gates


def project_of(data: Mapping[str, Any], project: Path) -> tuple[str, JsonObject]:
    """What `~/.claude.json` says of the project that is worked in: the nearest folder that it knows."""
    listed: Any = data.get("projects")
    projects = cast(JsonObject, listed) if isinstance(listed, dict) else {}
    for folder in (project, *project.parents):
        said: Any = projects.get(str(folder))
        if isinstance(said, dict):
            return str(folder), cast(JsonObject, said)
    return "", {}


def _add_settings(gates: Gates, said: JsonObject, who: str, *, is_project: bool) -> None:
    for key in ("disabledMcpServers", *(["disabledMcpjsonServers"] if is_project else [])):
        for name in _names(said.get(key)):
            gates.off.setdefault(name, f"switched off by `{key}` in {who}")
    denied: Any = said.get("deniedMcpServers")
    for one in cast("list[Any]", denied) if isinstance(denied, list) else ():
        if isinstance(one, dict) and isinstance(name := cast(JsonObject, one).get("serverName"), str):
            gates.off.setdefault(name, f"denied by `deniedMcpServers` in {who}")
    if said.get("enableAllProjectMcpServers") is not True:
        for key in ("enabledMcpServers", *(["enabledMcpjsonServers"] if is_project else [])):
            # An empty list is what Claude Code writes before anything was decided.
            if names := _names(said.get(key)):
                before = gates.only[0] if gates.only is not None else frozenset[str]()
                gates.only = (before | frozenset(names), f"`{key}` in {who}")
    permissions: Any = said.get("permissions")
    for decision in ("deny", "ask", "allow"):
        rules: Any = cast(JsonObject, permissions).get(decision) if isinstance(permissions, dict) else None
        for rule in _names(rules):
            if rule.startswith("mcp__"):
                gates.rules.append((decision, rule.partition("(")[0], f"`permissions.{decision}` of {who}"))


def _names(value: Any) -> list[str]:
    if not isinstance(value, list):
        return []
    return [one for one in cast("list[Any]", value)[:MAX_RULES] if isinstance(one, str)]
