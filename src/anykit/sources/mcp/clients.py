"""Clients that keep MCP servers in files: how each file is known, and what its words mean there.

A client's own file is known by its path; a file from elsewhere by what is in it; what is left is `UNKNOWN`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from anykit.capabilities import JsonObject

Form: TypeAlias = Literal[
    "${X}", "${X:-d}", "${env:X}", "{env:X}", "${file:p}", "{file:p}", "${input:id}", "${folder}", "$X", "%X%", "$${"
]
"""A way to write a placeholder. `${folder}` stands for `${workspaceFolder}` and `${userHome}`, `$${` for an escape."""
Unset: TypeAlias = Literal["literal", "empty", "error"]
"""What becomes of a variable that is not set and has no default."""

EVERY_FORM: Final[frozenset[Form]] = frozenset(
    {"${X}", "${X:-d}", "${env:X}", "{env:X}", "${file:p}", "{file:p}", "${input:id}", "${folder}", "$${"}
)
"""But for `$X` and `%X%`, which mean something in Gemini's files only."""
_CLAUDE: Final[frozenset[Form]] = frozenset({"${X}", "${X:-d}"})


@dataclass(frozen=True, slots=True)
class Client:
    """One client, as far as its files differ from those of the others."""

    id: str
    """What `anykit discover` calls it."""
    title: str
    forms: frozenset[Form] = frozenset()
    """Placeholders that are filled in; others stay as they are."""
    fields: frozenset[str] = frozenset()
    """Where they are: only under these keys of a server; empty means wherever text stands."""
    unset: Unset = "literal"
    seconds: bool = False
    """Whether `timeout` is in seconds; else in milliseconds."""
    short: Literal["ignored", "used"] = "used"
    """What becomes of a `timeout` below 1000 ms."""
    lists: bool = False
    """Whether `timeout` is about connecting and listing, not about calls."""
    call_timeout: float | None = None
    """Seconds that a call may take where the file says nothing, if that is more than elsewhere."""
    sse_first: bool = False
    """Whether a bare `url` means HTTP+SSE (both are tried)."""
    dotted: bool = False
    """Whether its project file lies in a folder of its own in the project: relative paths start above that."""
    in_project: bool = False
    """Whether a program without a `cwd` starts in the project's folder."""


CLAUDE_DESKTOP: Final = Client("claude-desktop", "Claude Desktop")
CLAUDE_CODE: Final = Client("claude-code", "Claude Code", _CLAUDE, short="ignored", in_project=True)
VS_CODE: Final = Client(
    "vscode",
    "VS Code",
    frozenset({"${env:X}", "${input:id}", "${folder}"}),
    unset="empty",
    dotted=True,
    in_project=True,
)
CURSOR: Final = Client("cursor", "Cursor", frozenset({"${env:X}", "${folder}"}), dotted=True, in_project=True)
OPENCODE: Final = Client(
    "opencode", "opencode", frozenset({"{env:X}", "{file:p}"}), unset="empty", lists=True, in_project=True
)
CODEX: Final = Client("codex", "Codex", dotted=True)
GEMINI: Final = Client(
    "gemini",
    "Gemini CLI",
    frozenset({"$X", "${X}", "%X%"}),
    fields=frozenset({"env", "environment", "envs"}),
    unset="empty",
    call_timeout=600.0,
    sse_first=True,
    dotted=True,
    in_project=True,
)
COPILOT: Final = Client("copilot", "Copilot CLI", frozenset({"${X}"}), dotted=True)
CLINE: Final = Client("cline", "Cline", seconds=True, dotted=True)
ROO: Final = Client("roo", "Roo Code", frozenset({"${env:X}"}), seconds=True, dotted=True, in_project=True)
WINDSURF: Final = Client("windsurf", "Windsurf", frozenset({"${env:X}", "${file:p}"}))
KIRO: Final = Client("kiro", "Kiro", frozenset({"${X}"}), in_project=True)
ZED: Final = Client("zed", "Zed", dotted=True, in_project=True)
GOOSE: Final = Client("goose", "Goose", seconds=True)
FASTMCP: Final = Client("fastmcp", "FastMCP")
INSPECTOR: Final = Client("inspector", "MCP Inspector", dotted=True)
TOOLNEXUS: Final = Client(
    "toolnexus", "toolnexus", frozenset({"${X}", "${X:-d}"}), fields=frozenset({"headers", "http_headers"})
)
PLUGIN: Final = Client("agent-plugin", "Agent Plugins", fields=frozenset({"args", "env", "cwd"}))
ANYKIT: Final = Client("anykit", "anykit", EVERY_FORM, unset="error", short="ignored")
UNKNOWN: Final = Client("mcp", "MCP", EVERY_FORM, short="ignored")
"""A file of which nothing is known: every placeholder is filled in, and what is unset stays, as Claude Code does it."""

CLIENTS: Final = {
    client.id: client
    for client in (
        *(
            CLAUDE_DESKTOP,
            CLAUDE_CODE,
            VS_CODE,
            CURSOR,
            OPENCODE,
            CODEX,
            GEMINI,
            COPILOT,
            CLINE,
            ROO,
            WINDSURF,
            KIRO,
            ZED,
        ),
        *(GOOSE, FASTMCP, INSPECTOR, TOOLNEXUS, PLUGIN, ANYKIT, UNKNOWN),
    )
}

_PATHS: Final[tuple[tuple[re.Pattern[str], Client], ...]] = tuple(
    (re.compile(rf"(?:^|/)(?:{pattern})$", re.IGNORECASE), client)
    for pattern, client in (
        (r"anykit\.(?:toml|json|ya?ml)", ANYKIT),
        (r"claude_desktop_config\.json", CLAUDE_DESKTOP),
        (r"\.mcp\.json|\.claude\.json|\.claude/[^/]+\.json|managed-mcp\.json", CLAUDE_CODE),
        (r"\.vscode/[^/]+\.jsonc?|(?:code|code - insiders|vscodium)/user/(?:profiles/[^/]+/)?[^/]+\.json", VS_CODE),
        (r"\.cursor/[^/]+\.json", CURSOR),
        (r"\.?opencode\.jsonc?|\.?opencode/[^/]+\.jsonc?", OPENCODE),
        (r"\.?codex/[^/]+\.toml", CODEX),
        (r"\.gemini/(?:.+/)?[^/]+\.json|gemini-extension\.json", GEMINI),
        (r"\.?copilot/[^/]+\.json|mcp-config\.json", COPILOT),
        (r"rooveterinaryinc\.roo-cline/(?:.+/)?[^/]+\.json|\.?roo/[^/]+\.jsonc?|roo(?:[^/a-z][^/]*)?\.jsonc?", ROO),
        (r"saoudrizwan\.claude-dev/(?:.+/)?[^/]+\.json|\.?cline/[^/]+\.jsonc?|cline(?:[^/a-z][^/]*)?\.jsonc?", CLINE),
        (r"mcp_settings\.json", ROO),
        (r"\.?(?:codeium|windsurf)/(?:.+/)?[^/]+\.json|mcp_config\.json", WINDSURF),
        (r"\.kiro/(?:.+/)?[^/]+\.json", KIRO),
        (r"\.?zed/[^/]+\.jsonc?", ZED),
        (r"\.?goose/[^/]+\.(?:ya?ml|json)|goose(?:[^/a-z][^/]*)?\.(?:ya?ml|json)", GOOSE),
        (r"\.mcp-inspector/[^/]+\.json", INSPECTOR),
        (r"toolnexus[^/]*\.(?:jsonc?|ya?ml|toml)", TOOLNEXUS),
    )
)
_RESERVED: Final = ("agents", "builtins", "a2a", "mcpServer")
_PLUGIN_SCHEMA: Final = re.compile(r"https://agent-plugins\.org/schemas/")


def client_of(path: Path | None, data: Mapping[str, Any], servers: Mapping[str, Any]) -> Client:
    """Whose file this is: by its path, else by what is in it."""
    if _PLUGIN_SCHEMA.match(str(data.get("$schema", ""))):
        return PLUGIN
    return client_at(path) or _by_contents(data, servers)


def client_at(path: Path | None) -> Client | None:
    """Whose file a path says that it is; None where it says nothing."""
    if path is None:
        return None
    text = path.as_posix()
    return next((client for pattern, client in _PATHS if pattern.search(text)), None)


def _by_contents(data: Mapping[str, Any], servers: Mapping[str, Any]) -> Client:
    tables = [cast(JsonObject, one) for one in servers.values() if isinstance(one, dict)]
    if any(data.get(key) is not None for key in _RESERVED):
        return TOOLNEXUS
    if isinstance(data.get("context_servers"), dict):
        return ZED
    if isinstance(data.get("mcp_servers"), dict):
        return CODEX
    if isinstance(data.get("extensions"), dict) and data["extensions"] is servers:
        return GOOSE
    if isinstance(data.get("servers"), dict) and isinstance(data.get("inputs"), list):
        return VS_CODE
    if data.get("mcp") is servers and any(one.get("type") in ("local", "remote") for one in tables):
        return OPENCODE
    gates: Any = data.get("mcp")
    if isinstance(gates, dict) and cast(JsonObject, gates).keys() & {"allowed", "excluded"}:
        return GEMINI
    if any(_is_fastmcp(one) for one in tables):
        return FASTMCP
    return UNKNOWN


def _is_fastmcp(entry: JsonObject) -> bool:
    if entry.keys() & {"include_tags", "exclude_tags", "keep_alive"}:
        return True
    tools: Any = entry.get("tools")
    return isinstance(tools, dict) and any(is_transform(one) for one in cast(JsonObject, tools).values())


def is_transform(value: Any) -> bool:
    """Whether what `tools` says of one tool gives it another look, as in FastMCP's files."""
    return isinstance(value, dict) and bool(
        cast(JsonObject, value).keys() & {"name", "title", "description", "tags", "arguments", "enabled", "meta"}
    )


@dataclass(frozen=True, slots=True)
class Place:
    """Where things start from, for one file."""

    folder: Path
    """Relative paths, and `${workspaceFolder}`."""
    start: Path | None = None
    """Programs without a `cwd`; None where the file is not a project's."""


def place_of(client: Client, file: Path, project: Path, home: Path) -> Place:
    """Where the paths of a client's file start: in its project, or for a person's own file where work is done."""
    folder = file.parent
    if client is KIRO and folder.name == "settings":
        folder = folder.parent
    if folder.name.startswith(".") and (client.dotted or client in (KIRO, OPENCODE)):
        root = folder.parent
        is_own = root == home and client is not OPENCODE
        return Place(project) if is_own else Place(root, root if client.in_project else None)
    if client is CLAUDE_CODE:
        return Place(folder, folder) if file.name == ".mcp.json" else Place(project)
    if client is OPENCODE and folder.name != "opencode":
        return Place(folder, folder)
    if client is PLUGIN:
        return Place(folder, folder)
    return Place(project if client in (VS_CODE, ZED) and client_at(file) is client else folder)
