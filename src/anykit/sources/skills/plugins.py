"""Agent Plugins 1.0.0: a folder with `plugin.json`, skills in `skills/*/SKILL.md`, and servers in `mcp.json`.

The manifest's schema is closed and held here: none is ever fetched. A field that it does not know is reported and ignored;
any other fault of the manifest rejects the plugin, one of `mcp.json` its servers, one of a server that server.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

from anykit.capabilities import Json, JsonObject

from . import files
from .errors import Finding, Unreadable

MANIFEST: Final = "plugin.json"
SERVERS: Final = "mcp.json"
SKILLS: Final = "skills"
MAX_MANIFEST: Final = 1024 * 1024
SCHEMAS: Final = "https://agent-plugins.org/schemas/"
VERSION: Final = "1.0.0"
"""The version of the specification that is understood."""

_NAME: Final = re.compile(r"(?!.*(?:--|\.\.))[a-z0-9](?:[a-z0-9.-]{0,62}[a-z0-9])?")
_TEXTS: Final = ("version", "description", "homepage", "repository", "license")
_FIELDS: Final = frozenset({"$schema", "name", "author", "keywords", "extensions", *_TEXTS})
_RESERVED: Final = frozenset({"PLUGIN_ROOT", "PLUGIN_DATA"})
_PLACEHOLDER: Final = re.compile(r"\$\{(PLUGIN_ROOT|PLUGIN_DATA)\}")
_CWD: Final = re.compile(r"\./|\$\{PLUGIN_ROOT\}(?:/|$)|\$\{PLUGIN_DATA\}(?:/|$)")
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True)
class PluginServer:
    """A server of a plugin: an entry as `mcp.json` files have it, filled in, or why there is none."""

    name: str
    entry: JsonObject = field(default_factory=dict[str, Any], repr=False)
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin as far as it is used."""

    name: str
    root: Path
    """Its real path."""
    version: str = ""
    description: str = ""
    skills: Path | None = None
    """The folder of its skills; None where it has none."""
    servers: tuple[PluginServer, ...] = ()
    findings: tuple[Finding, ...] = ()


def read_plugin(folder: Path, data: Path) -> Plugin:
    """A plugin, with `data` as its PLUGIN_DATA. Raises `Unreadable` where it is to be rejected."""
    root = Path(os.path.realpath(folder))
    manifest = _document(root, MANIFEST)
    where = str(root / MANIFEST)
    findings = [Finding("warning", where, message) for message in _check_manifest(manifest)]
    skills = root / SKILLS
    has_skills = _has(skills)
    if has_skills and not (skills.is_dir() and _inside(os.path.realpath(skills), root)):
        findings.append(Finding("error", str(skills), "is no folder of the plugin, so its skills are left out"))
        has_skills = False
    servers: tuple[PluginServer, ...] = ()
    if _has(root / SERVERS):
        try:
            servers = _servers(root, data)
        except Unreadable as error:
            findings.append(Finding("error", str(root / SERVERS), f"{error.message}, so its servers are left out"))
        findings += [Finding("error", str(root / SERVERS), one.fault) for one in servers if one.fault]
    return Plugin(
        name=str(manifest["name"]),
        root=root,
        version=str(manifest.get("version", "")),
        description=str(manifest.get("description", "")),
        skills=skills if has_skills else None,
        servers=servers,
        findings=tuple(findings),
    )


def _has(path: Path) -> bool:
    return os.path.lexists(path)


def _inside(real: str, root: Path) -> bool:
    return real == str(root) or real.startswith(str(root).rstrip("/") + "/")


def _document(root: Path, name: str) -> JsonObject:
    try:
        text = files.read(root, name, limit=MAX_MANIFEST).decode("utf-8-sig")
        data: Any = json.loads(text)
    except files.NotThere:
        raise Unreadable(f"{name} is no file of the plugin that can be read") from None
    except files.TooLarge as error:
        raise Unreadable(f"{name} is {error}") from None
    except json.JSONDecodeError as error:
        raise Unreadable(f"{name} is not JSON: {error.msg}", error.lineno) from None
    except (ValueError, RecursionError):
        raise Unreadable(f"{name} is not JSON") from None
    if not isinstance(data, dict):
        raise Unreadable(f"{name} must hold an object")
    return cast(JsonObject, data)


def _check_schema(data: JsonObject, name: str) -> None:
    """Raises `Unreadable` for a version that is not understood."""
    said: Any = data.get("$schema")
    file = "plugin.schema.json" if name == MANIFEST else "mcp.schema.json"
    wanted = f"{SCHEMAS}{VERSION}/{file}"
    if said == wanted:
        return
    if not isinstance(said, str):
        raise Unreadable(f"{name}: $schema is missing; it must be {wanted}")
    other = re.fullmatch(rf"{re.escape(SCHEMAS)}([^/]{{1,40}})/{re.escape(file)}", said)
    if other is not None:
        raise Unreadable(f"{name}: is for Agent Plugins {other[1]}, and {VERSION} is understood here")
    raise Unreadable(f"{name}: $schema must be {wanted}")


def _check_manifest(data: JsonObject) -> list[str]:
    """What is reported of a manifest. Raises `Unreadable` where it rejects the plugin."""
    reports = [f"the field {key[:80]!r} is unknown and ignored" for key in data if key not in _FIELDS]
    _check_schema(data, MANIFEST)
    name: Any = data.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise Unreadable(
            f"{MANIFEST}: name must be 1 to 64 lower-case letters, digits, hyphens and periods, beginning and ending with a"
            " letter or digit, without -- or .."
        )
    for key in _TEXTS:
        if key in data and not isinstance(data[key], str):
            raise Unreadable(f"{MANIFEST}: {key} must be a text")
    if "keywords" in data:
        words: Any = data["keywords"]
        if not isinstance(words, list) or not all(isinstance(word, str) for word in cast("list[Any]", words)):
            raise Unreadable(f"{MANIFEST}: keywords must be a list of texts")
    if "author" in data:
        author: Any = data["author"]
        known = {"name", "email", "url"}
        if not isinstance(author, dict) or not all(
            key in known and isinstance(value, str) for key, value in cast(JsonObject, author).items()
        ):
            raise Unreadable(f"{MANIFEST}: author must be an object of name, email and url, all texts")
    extensions: Any = data.get("extensions", {})
    if not isinstance(extensions, dict):
        reports.append("extensions is no object and is ignored")
    return reports


# servers


def _servers(root: Path, data: Path) -> tuple[PluginServer, ...]:
    """Raises `Unreadable` where the file as a whole cannot be used."""
    document = _document(root, SERVERS)
    unknown = [key for key in document if key not in ("$schema", "mcpServers")]
    if unknown:
        raise Unreadable(f"{SERVERS}: there may be $schema and mcpServers only, not {unknown[0][:80]!r}")
    _check_schema(document, SERVERS)
    servers: Any = document.get("mcpServers")
    if not isinstance(servers, dict):
        raise Unreadable(f"{SERVERS}: mcpServers must be an object")
    return tuple(_server(name, entry, root, data) for name, entry in cast(JsonObject, servers).items())


def _server(name: str, entry: Json, root: Path, data: Path) -> PluginServer:
    try:
        if not isinstance(entry, dict):
            raise Unreadable("must be an object")
        given = cast(JsonObject, entry)
        match given.get("type"):
            case "stdio":
                made = _stdio(given, root, data)
            case "streamable-http" | "sse":
                made = _remote(given)
            case _:
                raise Unreadable("type must be stdio, streamable-http or sse")
    except Unreadable as error:
        return PluginServer(name, fault=f"mcpServers.{name[:80]}: {error.message}; the server is left out")
    return PluginServer(name, made)


def _only(given: JsonObject, *fields: str) -> None:
    unknown = [key for key in given if key not in fields]
    if unknown:
        raise Unreadable(f"{unknown[0][:80]} is unknown; a server of that type has {', '.join(fields)}")


def _stdio(given: JsonObject, root: Path, data: Path) -> JsonObject:
    _only(given, "type", "command", "args", "env", "cwd")
    filled = {"PLUGIN_ROOT": str(root), "PLUGIN_DATA": str(data)}

    def fill(text: str) -> str:
        return _PLACEHOLDER.sub(lambda match: filled[match[1]], text)

    command: Any = given.get("command")
    if not isinstance(command, str) or not command:
        raise Unreadable("command must be one program")
    if command.startswith("./"):
        program = os.path.realpath(root / command)
        if not _inside(program, root):
            raise Unreadable("command leads out of the plugin")
    elif "/" in command or "\\" in command:
        raise Unreadable("command must be the bare name of a program, or a path that begins with ./")
    else:
        program = command
    arguments: Any = given.get("args", [])
    if not isinstance(arguments, list) or not all(isinstance(one, str) for one in cast("list[Any]", arguments)):
        raise Unreadable("args must be a list of texts")
    env = _texts(given.get("env", {}), "env")
    if taken := _RESERVED & env.keys():
        raise Unreadable(f"env must not set {sorted(taken)[0]}")
    return {
        "type": "stdio",
        "command": program,
        "args": [fill(one) for one in cast("list[str]", arguments)],
        "env": {**{key: fill(value) for key, value in env.items()}, **filled},
        "cwd": _cwd(given.get("cwd"), fill, root, data),
    }


def _cwd(said: Any, fill: Any, root: Path, data: Path) -> str:
    if said is None:
        return str(root)
    if not isinstance(said, str) or not _CWD.match(said):
        raise Unreadable("cwd must begin with ./, ${PLUGIN_ROOT} or ${PLUGIN_DATA}")
    real = os.path.realpath(root / said if said.startswith("./") else fill(said))
    bound = Path(os.path.realpath(data)) if said.startswith("${PLUGIN_DATA}") else root
    if not _inside(real, bound):
        raise Unreadable("cwd leads out of the plugin, or of its data")
    return real


def _remote(given: JsonObject) -> JsonObject:
    _only(given, "type", "url", "headers")
    url: Any = given.get("url")
    try:
        if not isinstance(url, str):
            raise ValueError
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise Unreadable("url must be a URL") from None
    if parts.scheme not in ("http", "https") or not host:
        raise Unreadable("url must be an absolute http or https URL")
    if parts.username is not None or parts.password is not None or "#" in url:
        raise Unreadable("url must hold no user and no fragment")
    if parts.scheme == "http" and not _is_loopback(host):
        raise Unreadable("url must be https, but for this machine itself")
    headers = _texts(given.get("headers", {}), "headers")
    if len({name.lower() for name in headers}) != len(headers):
        raise Unreadable("headers has the same name twice")
    for name, value in headers.items():
        if not _HEADER.fullmatch(name) or any(character in "\r\n\0" for character in value):
            raise Unreadable("headers holds what is no header")
    return {"type": given["type"], "url": url, "headers": dict(headers)}


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _texts(said: Any, key: str) -> Mapping[str, str]:
    if not isinstance(said, dict) or not all(isinstance(value, str) for value in cast(JsonObject, said).values()):
        raise Unreadable(f"{key} must be an object of texts")
    return cast("dict[str, str]", said)
