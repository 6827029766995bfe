"""Server entries as clients write them (`mcp.json` of Claude, VS Code, toolnexus and their relatives), read as ours.

Nothing is started. A wrong entry costs itself: it is a `Misconfigured` with the place of the fault, beside its neighbours.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from anykit.capabilities import Json, JsonObject
from anykit.sources.connection import CONNECT_TIMEOUT
from anykit.transports import Command

from .servers import McpServer, OAuth, Transport, era_of

MAX_FILE: Final = 4 * 1024 * 1024
MAX_SERVERS: Final = 1_000
SERVER_MAPS: Final = ("mcpServers", "servers", "mcp_servers", "mcp", "context_servers", "extensions")
"""Where the servers stand, the first that is there."""
NO_SERVERS: Final = frozenset({"agents", "builtins", "a2a", "mcpServer", "inputs", "$schema"})
"""Keys beside them that are never one."""

_STDIO: Final = frozenset({"stdio", "local"})
_HTTP: Final = frozenset({"http", "streamable-http", "streamablehttp", "streamable_http", "remote"})
_SECONDS: Final = re.compile(r"(?<![a-z])(cline|roo|goose)(?![a-z])", re.IGNORECASE)
"""Clients that write seconds, as part of their file's path."""
_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_PLACEHOLDER: Final = re.compile(
    rf"\$\$\{{|\$\{{(?:(?P<kind>env|file|input):(?P<argument>[^{{}}]*)|(?P<name>{_NAME})(?::-(?P<default>[^{{}}]*))?)\}}"
    r"|\{(?P<bare>env|file):(?P<what>[^{}]+)\}"
)
_KNOWN: Final = frozenset(
    [
        "command",
        "cmd",
        "args",
        "env",
        "environment",
        "envs",
        "env_vars",
        "envFile",
        "cwd",
        "url",
        "httpUrl",
        "serverUrl",
        "uri",
        "type",
        "transport",
        "headers",
        "http_headers",
        "env_http_headers",
        "bearer_token_env_var",
        "oauth",
        "auth",
        "enabled",
        "disabled",
        "required",
        "timeout",
        "startup_timeout_sec",
        "startup_timeout_ms",
        "tool_timeout_sec",
        "connectionTimeout",
        "requestTimeout",
        "request_timeout_ms",
        "includeTools",
        "enabled_tools",
        "excludeTools",
        "disabled_tools",
        "disabledTools",
        "tools",
        "description",
        "protocolEra",
        "era",
        "token",
        "bearer",
        "name",
        "kind",
    ]
)


class Misfit(ValueError):
    """An entry, or a file, that cannot be used; the text says where and why, without the value of anything secret."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A server as it stands in a file: what to connect to, or why not."""

    name: str
    server: McpServer | None = None
    fault: str = ""
    """Why there is no `server`."""
    enabled: bool = True
    required: bool = False
    description: str = ""
    ignored: tuple[str, ...] = ()
    """Keys that mean nothing to us, or whose value does not."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What placeholders are filled from."""

    folder: Path
    """Where relative paths, and `${workspaceFolder}`, start."""
    env: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    inputs: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Values for the `inputs` of a VS Code file, by id."""
    connect_timeout: float = CONNECT_TIMEOUT


def is_server_file(data: Mapping[str, Any]) -> bool:
    """Whether a file's contents are a client's servers, and not something else."""
    return _server_map(data) is not None


def read_servers(path: str | os.PathLike[str], around: Surroundings | None = None) -> list[Entry]:
    """The servers in a client's file: JSON (with comments), TOML or YAML, by its ending.

    Raises `Misfit` where the file as a whole cannot be read; a wrong entry is one with a `fault`.
    """
    file = Path(path).expanduser()
    around = around or Surroundings(file.parent)
    data = _contents(file)
    servers = _server_map(data)
    if servers is None:
        raise Misfit(f"{file}: no servers in it; expected an object under `mcpServers` (or `servers`, `mcp`)")
    return entries_of(servers, around, where=str(file), inputs=_inputs(data))


def entries_of(
    servers: Mapping[str, Any],
    around: Surroundings,
    *,
    where: str = "",
    inputs: Mapping[str, JsonObject] | None = None,
    filled: bool = False,
) -> list[Entry]:
    """The servers of a map from name to entry, in its order. `filled` says that placeholders were filled in already."""
    entries: list[Entry] = []
    for name, value in list(servers.items())[:MAX_SERVERS]:
        if name in NO_SERVERS:
            continue
        literal = filled or Path(where).name == "claude_desktop_config.json"  # that client fills in nothing
        reader = _Reader(name, value, around, where=where, inputs=inputs or {}, literal=literal)
        entries.append(reader.entry())
    return entries


# the file


def _contents(file: Path) -> JsonObject:
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_FILE + 1)
    except OSError as error:
        raise Misfit(f"{file}: cannot be read: {error.strerror or error}") from None
    if len(raw) > MAX_FILE:
        raise Misfit(f"{file}: larger than {MAX_FILE} bytes")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Misfit(f"{file}: not UTF-8 (byte {error.start})") from None
    data: Any
    try:
        if file.suffix == ".toml":
            data = tomllib.loads(text)
        elif file.suffix in (".yaml", ".yml"):
            data = _yaml(text)
        else:
            data = json.loads(without_comments(text))
    except (ValueError, RecursionError) as error:
        raise Misfit(f"{file}: {error}") from None
    if not isinstance(data, dict):
        raise Misfit(f"{file}: must hold an object, not {type(data).__name__}")
    return cast(JsonObject, data)


def _yaml(text: str) -> Any:
    import yaml  # noqa: PLC0415 - 30 ms, only for those who write YAML

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


_JSONC: Final = re.compile(
    r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/|,(?=\s*(?:(?://[^\n]*\n|/\*.*?\*/)\s*)*[}\]])', re.DOTALL
)


def without_comments(text: str) -> str:
    """JSON with comments and trailing commas as JSON; every line stays where it was."""

    def kept(match: re.Match[str]) -> str:
        piece = match[0]
        return piece if piece.startswith('"') else re.sub(r"[^\n]", " ", piece)

    return _JSONC.sub(kept, text)


def _server_map(data: Mapping[str, Any]) -> JsonObject | None:
    for key in SERVER_MAPS:
        servers = data.get(key)
        if not isinstance(servers, dict):
            continue
        found = cast(JsonObject, servers)
        if key == "mcp" and isinstance(inner := found.get("servers"), dict):
            return cast(JsonObject, inner)  # VS Code's settings.json
        if key not in ("mcp", "extensions") or any(_is_entry(value) for value in found.values()):
            return found
    if any(_is_entry(value) for key, value in data.items() if key not in NO_SERVERS):
        return {key: value for key, value in data.items() if isinstance(value, dict) and key not in NO_SERVERS}
    return None


def _is_entry(value: Json) -> bool:
    if not isinstance(value, dict):
        return False
    return any(key in value for key in ("command", "cmd", "url", "httpUrl", "serverUrl", "uri"))


def _inputs(data: Mapping[str, Any]) -> dict[str, JsonObject]:
    """VS Code's `inputs`, by id."""
    listed = data.get("inputs")
    found: dict[str, JsonObject] = {}
    for each in cast("list[Any]", listed) if isinstance(listed, list) else ():
        if isinstance(each, dict) and isinstance(cast(JsonObject, each).get("id"), str):
            found[cast(JsonObject, each)["id"]] = cast(JsonObject, each)
    return found


# an entry


class _Reader:
    """Reads one entry."""

    def __init__(
        self,
        name: str,
        value: Json,
        around: Surroundings,
        *,
        where: str,
        inputs: Mapping[str, JsonObject],
        literal: bool,
    ) -> None:
        self._name = name
        self._value: object = value
        self._around = around
        self._where = where
        self._inputs = inputs
        self._literal = literal
        self._ignored: list[str] = []

    def entry(self) -> Entry:
        value: Any = self._value
        if not isinstance(value, dict):
            return Entry(self._name, fault=self._at("", "must be an object"))
        given = cast(JsonObject, value)
        enabled = given.get("enabled") is not False and given.get("disabled") is not True
        shown: dict[str, Any] = {
            "enabled": enabled,
            "required": given.get("required") is True,
            "description": given["description"] if isinstance(given.get("description"), str) else "",
        }
        self._ignored = [str(key) for key in given if key not in _KNOWN]
        server: McpServer | None = None
        fault = ""
        if enabled:  # else what it would need is not asked for
            try:
                server = self._server(given)
            except Misfit as error:
                fault = str(error)
            except ValueError as error:
                fault = self._at("", str(error))
        return Entry(self._name, server, fault=fault, ignored=tuple(self._ignored), **shown)

    def _at(self, key: str, message: str) -> str:
        """A fault with its place: file, server and key."""
        place = f"{self._name}.{key}" if key else self._name
        return f"{self._where}: {place}: {message}" if self._where else f"{place}: {message}"

    def _server(self, given: JsonObject) -> McpServer:
        kind = str(given.get("type") or given.get("transport") or "").lower()
        url_key = next((key for key in ("url", "httpUrl", "serverUrl", "uri") if given.get(key)), None)
        program = given.get("command") or given.get("cmd")
        if kind and kind not in _STDIO | _HTTP | {"sse"}:
            raise Misfit(self._at("type", f"there is no transport {kind[:40]!r}; it is stdio, http or sse"))
        if program and url_key and not kind:
            raise Misfit(self._at("", "has a command and a url; leave one out, or say which with `type`"))
        over_stdio = kind in _STDIO or (not kind and bool(program))
        if over_stdio and not program:
            raise Misfit(self._at("command", "is missing"))
        if not over_stdio and url_key is None:
            raise Misfit(self._at("", "has neither a `command` nor a `url`"))
        allow, deny = self._tools(given)
        common: dict[str, Any] = {"allow": allow, "deny": deny, **self._times(given)}
        if (era := given.get("protocolEra") or given.get("era")) is not None:
            common["era"] = era_of(str(era))
        if over_stdio:
            return McpServer(self._name, self._command(given), **common)
        assert url_key is not None
        url = self._text(given[url_key], url_key)
        transport: Transport = "sse" if kind == "sse" else "http" if kind or url_key == "httpUrl" else "auto"
        return McpServer(
            self._name,
            url=url,
            transport=transport,
            headers=self._headers(given),
            **self._credentials(given),
            **common,
        )

    def _command(self, given: JsonObject) -> Command:
        key = "command" if given.get("command") else "cmd"
        program = given[key]
        if isinstance(program, dict):
            inner = cast(JsonObject, program)
            given = {**given, "command": inner.get("path"), "args": inner.get("args", []), **_only(inner, "env")}
            program = given["command"]
        if isinstance(program, list):
            argv = [self._text(one, f"{key}/{i}") for i, one in enumerate(cast("list[Any]", program))]
        else:
            argv = [self._text(program, key)]
        argv += [self._text(one, f"args/{i}") for i, one in enumerate(self._list(given.get("args"), "args"))]
        env: dict[str, str] = {}
        if (env_file := given.get("envFile")) is not None:
            env |= self._env_file(self._text(env_file, "envFile"))
        for name in self._list(given.get("env_vars"), "env_vars"):
            if (value := self._around.env.get(str(name))) is not None:
                env[str(name)] = value
        for key in ("envs", "environment", "env"):
            env |= {
                name: self._text(value, f"{key}/{name}") for name, value in self._table(given.get(key), key).items()
            }
        cwd = (
            None
            if given.get("cwd") is None
            else self._around.folder / Path(self._text(given["cwd"], "cwd")).expanduser()
        )
        return Command(tuple(argv), env=env, cwd=cwd)

    def _env_file(self, name: str) -> dict[str, str]:
        """A dotenv file: NAME=value lines, `export` and quotes allowed."""
        try:
            text = (self._around.folder / Path(name).expanduser()).read_text("utf-8-sig")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise Misfit(self._at("envFile", f"{name!r} cannot be read: {reason}")) from None
        found: dict[str, str] = {}
        for line in text.splitlines():
            match = re.fullmatch(rf"\s*(?:export\s+)?({_NAME})\s*=\s*(.*?)\s*", line)
            if match is not None:
                value = match[2]
                quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
                found[match[1]] = value[1:-1] if quoted else value
        return found

    def _headers(self, given: JsonObject) -> dict[str, str]:
        headers: dict[str, str] = {}
        for key in ("headers", "http_headers"):
            table = self._table(given.get(key), key)
            headers |= {name: self._text(value, f"{key}/{name}") for name, value in table.items()}
        for name, variable in self._table(given.get("env_http_headers"), "env_http_headers").items():
            headers[name] = self._variable(str(variable), f"env_http_headers/{name}")
        return headers

    def _credentials(self, given: JsonObject) -> dict[str, Any]:
        if (variable := given.get("bearer_token_env_var")) is not None:
            return {"token": self._variable(str(variable), "bearer_token_env_var")}
        for key in ("token", "bearer"):
            if given.get(key) is not None:
                return {"token": self._text(given[key], key)}
        for key in ("oauth", "auth"):
            value = given.get(key)
            if isinstance(value, str):
                return {"oauth": OAuth()} if value.lower() == "oauth" else {"token": self._text(value, key)}
            if isinstance(value, bool):
                return {"oauth": OAuth()} if value else {"login": False}
            if isinstance(value, dict):
                return {"oauth": self._oauth(cast(JsonObject, value), key)}
        return {}

    def _oauth(self, given: JsonObject, where: str) -> OAuth:
        """Cursor's, opencode's and our own spelling: `client_id`, `clientId`, `CLIENT_ID`."""
        plain = {re.sub(r"[^a-z]", "", str(key).lower()): value for key, value in given.items()}

        def text(*names: str) -> str:
            for name in names:
                value = plain.get(name)
                if isinstance(value, list):
                    return " ".join(str(one) for one in cast("list[Any]", value))
                if value is not None:
                    return self._text(value, f"{where}/{name}")
            return ""

        grant = text("grant", "granttype") or "authorization_code"
        if grant not in ("authorization_code", "client_credentials"):
            raise Misfit(self._at(f"{where}/grant", "is authorization_code or client_credentials"))
        port = plain.get("redirectport") or plain.get("callbackport") or 0
        if not isinstance(port, int):
            raise Misfit(self._at(f"{where}/redirect_port", "must be a port"))
        return OAuth(
            grant="client_credentials" if grant == "client_credentials" else "authorization_code",
            client_id=text("clientid"),
            client_secret=text("clientsecret"),
            scope=text("scope", "scopes"),
            issuer=text("issuer"),
            redirect_port=port,
            client_metadata_url=text("clientmetadataurl"),
        )

    def _tools(self, given: JsonObject) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Patterns that are offered and that are not, from the four things that `tools` may mean, and its relatives."""
        allow: list[str] = []
        deny: list[str] = []
        for key in ("includeTools", "enabled_tools"):
            allow += [_plain_pattern(str(one)) for one in self._list(given.get(key), key)]
        for key in ("excludeTools", "disabled_tools", "disabledTools"):
            deny += [_plain_pattern(str(one)) for one in self._list(given.get(key), key)]
        tools: Any = given.get("tools")
        if isinstance(tools, list):
            allow += [str(one) for one in cast("list[Any]", tools)]
        elif isinstance(tools, dict):
            switches = {str(name): on for name, on in cast(JsonObject, tools).items() if isinstance(on, bool)}
            allow += [name for name, on in switches.items() if on]
            deny += [name for name, on in switches.items() if not on]
        return tuple(allow) or ("*",), tuple(deny)

    def _times(self, given: JsonObject) -> dict[str, float]:
        """Milliseconds, but for keys that say seconds and files known to write them."""
        unit = 1.0 if any(_SECONDS.search(part) for part in Path(self._where).parts[-4:]) else 1000.0

        def seconds(key: str, divisor: float) -> float | None:
            value = given.get(key)
            if value is None:
                return None
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
                raise Misfit(self._at(key, "must be a number of " + ("seconds" if divisor == 1.0 else "milliseconds")))
            if divisor == 1000.0 and 0 < value < 1000:
                self._ignored.append(f"{key} (less than a second; it is in milliseconds)")
                return None
            return value / divisor or None

        times: dict[str, float] = {"connect_timeout": self._around.connect_timeout}
        for key, divisor in (
            ("startup_timeout_sec", 1.0),
            ("startup_timeout_ms", 1000.0),
            ("connectionTimeout", 1000.0),
        ):
            if (value := seconds(key, divisor)) is not None:
                times["connect_timeout"] = value
        calls = (
            ("timeout", unit),
            ("tool_timeout_sec", 1.0),
            ("requestTimeout", 1000.0),
            ("request_timeout_ms", 1000.0),
        )
        for key, divisor in calls:
            if (value := seconds(key, divisor)) is not None:
                times["call_timeout"] = value
        return times

    # values

    def _list(self, value: Json, key: str) -> Sequence[Any]:
        if value is None:
            return ()
        if not isinstance(value, list):
            raise Misfit(self._at(key, "must be a list"))
        return cast("list[Any]", value)

    def _table(self, value: Json, key: str) -> Mapping[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise Misfit(self._at(key, "must be an object"))
        return cast(JsonObject, value)

    def _text(self, value: Json, key: str) -> str:
        if isinstance(value, bool | int | float):
            return json.dumps(value)
        if not isinstance(value, str):
            raise Misfit(self._at(key, "must be a text"))
        return self._filled(value, key)

    def _variable(self, name: str, key: str) -> str:
        value = self._around.env.get(name)
        if value is None:
            raise Misfit(self._at(key, f"the environment variable {name} is not set"))
        return value

    def _filled(self, text: str, key: str) -> str:
        """The text with its placeholders filled in, once: what they hold is not looked through again."""
        return text if self._literal else _PLACEHOLDER.sub(lambda match: self._fill(match, key), text)

    def _fill(self, match: re.Match[str], key: str) -> str:
        if match[0] == "$${":
            return "${"
        kind = match["kind"] or match["bare"]
        argument = match["argument"] if match["kind"] else match["what"]
        match kind:
            case "env":
                return self._variable(argument, key)
            case "file":
                return self._file(argument, key)
            case "input":
                return self._input(argument, key)
            case _:
                name = match["name"]
        around = {"workspaceFolder": str(self._around.folder), "userHome": str(Path.home())}
        if name in around:
            return around[name]
        value = self._around.env.get(name)
        default = match["default"]
        if value is None and default is None:
            raise Misfit(
                self._at(key, f"the environment variable {name} is not set; set it, or write ${{{name}:-...}}")
            )
        return default if default is not None and not value else value or ""

    def _file(self, name: str, key: str) -> str:
        try:
            data = (self._around.folder / Path(name).expanduser()).read_bytes()
            return data[: 64 * 1024].decode("utf-8-sig").strip()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise Misfit(self._at(key, f"the file {name!r} cannot be read: {reason}")) from None

    def _input(self, id: str, key: str) -> str:
        if (value := self._around.inputs.get(id)) is not None:
            return value
        asked = self._inputs.get(id, {})
        if isinstance(default := asked.get("default"), str) and asked.get("password") is not True:
            return default
        described = asked.get("description")
        what = f" ({described})" if isinstance(described, str) else ""
        raise Misfit(self._at(key, f"needs the input {id!r}{what}"))


def _plain_pattern(name: str) -> str:
    """A tool's name as Gemini writes one: what stands in parentheses restricts its arguments."""
    return name.partition("(")[0]


def _only(table: JsonObject, key: str) -> JsonObject:
    return {key: table[key]} if key in table else {}
