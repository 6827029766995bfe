"""One server as a client's file describes it: every spelling of a key read as the one thing that it means.

A wrong entry costs itself only: it is an `Entry` with the place of the fault, beside its neighbours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, cast

from anykit.capabilities import Json, JsonObject
from anykit.transports import Command

from .clients import CLAUDE_CODE, PLUGIN, UNKNOWN, Client, is_transform
from .inputs import inputs_in, schema_of_inputs
from .parts import Entry, Gate, Parts
from .placeholders import Filling, Misfit, Referring, Surroundings, Unfilled, Values
from .servers import McpServer, OAuth, era_of
from .transforms import transforms_of

_STDIO: Final = frozenset({"stdio", "local"})
_HTTP: Final = frozenset({"http", "streamable-http", "streamablehttp", "streamable_http", "remote"})
_ELSEWHERE: Final = frozenset({"builtin", "platform", "frontend", "inline_python", "inprocess", "sdk"})
"""Kinds that are a part of their client: nobody else can start them."""
_SSE: Final = re.compile(r"/sse(?:/|\?|&|$)")
_COMMANDS: Final = ("command", "cmd")
_URLS: Final = ("url", "httpUrl", "serverUrl", "uri")
_KNOWN: Final = frozenset(
    (
        *(*_COMMANDS, "args", "env", "environment", "envs", "env_vars", "env_keys", "envFile", "cwd"),
        *(*_URLS, "type", "transport", "headers", "http_headers", "env_http_headers", "bearer_token_env_var"),
        *("headersHelper", "oauth", "auth", "token", "bearer", "bearer_token", "enabled", "disabled", "required"),
        *("timeout", "startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec", "connectionTimeout"),
        *("requestTimeout", "request_timeout_ms", "includeTools", "enabled_tools", "available_tools", "excludeTools"),
        *("disabled_tools", "disabledTools", "tools", "include_tags", "exclude_tags", "description", "protocolEra"),
        *("era", "name", "display_name", "title", "kind", "icon", "autoApprove", "alwaysAllow", "trust"),
        *("default_tools_approval_mode", "inputs", "source", "keep_alive", "settings", "bundled", "dev", "sandbox"),
        *("sandboxEnabled", "watchPaths", "alwaysLoad"),
    )
)
_MODES: Final = {"approve": "allow", "prompt": "ask", "auto": "auto"}
"""How Codex words what is done before a call."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How the entries of one file are read."""

    around: Surroundings
    client: Client = UNKNOWN
    where: str = ""
    """The file, for what is said of faults."""
    inputs: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    filled: bool = False
    """Whether placeholders were filled in already."""
    start: Path | None = None
    """The folder of a program without a `cwd`; ours, where None."""

    def entry(self, name: str, value: Json, gate: Gate | None = None) -> Entry:
        """Read one. Never raises."""
        gate = gate or Gate()
        if not isinstance(value, dict):
            return Entry(name, fault=_at(self.where, name, "", "must be an object"))
        given = cast(JsonObject, value)
        around = self.around
        if own := around.told.get(name):
            around = replace(around, inputs={**around.inputs, **own})
        values = _Verbatim(around.folder) if self.filled else Filling(self.client, around, self.inputs)
        reader = EntryReader(name, given, self, values)
        description: Any = given.get("description")
        described: dict[str, Any] = {
            "disabled": gate.disabled or reader.disabled(),
            "required": given.get("required") is True,
            "description": description if isinstance(description, str) else "",
            "ignored": tuple(str(key) for key in given if key not in _KNOWN),
            "inputs": None if self.filled else schema_of_inputs(inputs_in(given), self.inputs),
            "approvals": (*reader.approvals(), *gate.approvals),
        }
        server: McpServer | None = None
        fault = ""
        if not described["disabled"]:  # else what it would need is not asked for
            try:
                server = self._server(name, reader.parts(), gate)
            except Misfit as error:
                fault = str(error)
            except ValueError as error:
                fault = _at(self.where, name, "", str(error))
        reports = tuple(f"{name}.{report}" for report in (*reader.reports, *getattr(values, "reports", ())))
        return Entry(name, server, fault=fault, reports=tuple(dict.fromkeys(reports)), **described)

    def _server(self, name: str, parts: Parts, gate: Gate) -> McpServer:
        """Raises `ValueError`."""
        common: dict[str, Any] = {
            "era": parts.era,
            "connect_timeout": parts.connect_timeout or self.around.connect_timeout,
            "call_timeout": parts.call_timeout,
            "allow": parts.allow or ("*",),
            "deny": (*parts.deny, *gate.deny),
            "transforms": parts.transforms,
        }
        if parts.argv:
            cwd = None if parts.cwd is None else Path(parts.cwd)
            return McpServer(name, Command(tuple(parts.argv), env=parts.env, cwd=cwd), **common)
        return McpServer(
            name,
            url=parts.url,
            transport=parts.transport,
            headers=parts.headers,
            headers_helper=parts.headers_helper,
            token=parts.token,
            oauth=parts.oauth,
            login=parts.login,
            **common,
        )

    def referring(self, name: str, value: JsonObject) -> tuple[Parts, list[str]]:
        """An entry's parts with references of ours for what it refers to, and the dotenv files it names.

        Nothing is looked up. Raises `Misfit`, `ValueError`.
        """
        values = Referring(self.client, self.around)
        parts = EntryReader(name, value, self, values).parts()
        return parts, values.env_files


def _at(where: str, name: str, key: str, message: str) -> str:
    """A fault with its place: file, server and key."""
    place = f"{name}.{key}" if key else name
    return f"{where}: {place}: {message}" if where else f"{place}: {message}"


class _Verbatim:
    """Texts as they are."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def text(self, text: str, key: str) -> str:
        return text

    def variable(self, name: str, key: str) -> str | None:
        raise Unfilled(f"the environment variable {name} cannot be named here")

    def variables(self, file: str, key: str) -> Mapping[str, str]:
        return Filling(UNKNOWN, Surroundings(self._folder), {}).variables(file, key)


class EntryReader:
    """Reads one entry. `reports` are what works and may not be meant."""

    def __init__(self, name: str, given: JsonObject, reading: Reading, values: Values) -> None:
        self.reports: list[str] = []
        self._name = name
        self._given = given
        self._client = reading.client
        self._around = reading.around
        self._where = reading.where
        self._start = reading.start
        self._values = values

    def disabled(self) -> str:
        """Why it is switched off; empty where it is not."""
        given = self._given
        if given.get("enabled") is False or given.get("disabled") is True:
            return "switched off in the configuration"
        if (kind := str(given.get("type") or "").lower()) in _ELSEWHERE:
            return f"a part of {self._client.title} itself ({kind}): it cannot be started from outside"
        if given.get("source") == "extension" and not any(given.get(key) for key in (*_COMMANDS, *_URLS)):
            return f"an extension of {self._client.title}: how to start it is not in the file"
        return ""

    def approvals(self) -> Sequence[tuple[str, str]]:
        """What the client does before a call."""
        given, found = self._given, list[tuple[str, str]]()
        if (mode := _MODES.get(str(given.get("default_tools_approval_mode")))) is not None:
            found.append(("*", mode))
        if given.get("trust") is True:
            found.append(("*", "allow"))
        for key in ("autoApprove", "alwaysAllow"):
            listed: Any = given.get(key)
            found += [(str(one), "allow") for one in cast("list[Any]", listed)] if isinstance(listed, list) else []
        tools: Any = given.get("tools")
        for tool, said in cast(JsonObject, tools).items() if isinstance(tools, dict) else ():
            if isinstance(said, dict) and (mode := _MODES.get(str(cast(JsonObject, said).get("approval_mode")))):
                found.append((tool, mode))
        return found

    def parts(self) -> Parts:
        """What it says. Raises `Misfit`."""
        given = self._given
        kind = str(given.get("type") or given.get("transport") or "").lower()
        url_key = next((key for key in _URLS if given.get(key)), None)
        program = given.get("command") or given.get("cmd")
        if kind and kind not in _STDIO | _HTTP | {"sse"}:
            raise self._misfit("type", f"there is no transport {kind[:40]!r}; it is stdio, http or sse")
        if program and url_key and not kind:
            raise self._misfit("", "has a command and a url; leave one out, or say which with `type`")
        over_stdio = kind in _STDIO or (not kind and bool(program))
        if over_stdio and not program:
            raise self._misfit("command", "is missing")
        if not over_stdio and url_key is None:
            raise self._misfit("", "has neither a `command` nor a `url`")
        if self._client is PLUGIN:
            self._check_plugin(kind, program, given.get("url"))
        parts = Parts()
        self._tools(parts)
        self._times(parts)
        if (era := given.get("protocolEra") or given.get("era")) is not None:
            parts.era = era_of(str(era))
        if over_stdio:
            self._command(parts)
        else:
            assert url_key is not None
            self._address(parts, url_key, kind)
            self._headers(parts)
            self._credentials(parts)
        if given.get("sandboxEnabled") is True or given.get("sandbox"):
            self.reports.append("sandbox: is not applied here; the program runs without it")
        return parts

    # programs

    def _command(self, parts: Parts) -> None:
        given, key = self._given, "command" if self._given.get("command") else "cmd"
        program = given[key]
        arguments, env_inside = given.get("args"), None
        if isinstance(program, dict):
            inner = cast(JsonObject, program)
            program, arguments, env_inside = inner.get("path"), inner.get("args", arguments), inner.get("env")
            if not program:
                raise self._misfit(f"{key}/path", "is missing")
        if isinstance(program, list):
            argv = [self._text(one, f"{key}/{i}") for i, one in enumerate(cast("list[Any]", program))]
        else:
            argv = [self._text(program, key)]
        parts.argv = argv + [self._text(one, f"args/{i}") for i, one in enumerate(self._list(arguments, "args"))]
        if (env_file := given.get("envFile")) is not None:
            parts.env |= self._asked(
                "envFile", lambda: self._values.variables(self._text(env_file, "envFile"), "envFile")
            )
        for key in ("env_vars", "env_keys"):
            for one in self._list(given.get(key), key):
                name = str(cast(JsonObject, one).get("name")) if isinstance(one, dict) else str(one)
                if (value := self._asked(key, lambda name=name, key=key: self._values.variable(name, key))) is not None:
                    parts.env[name] = value
        for key, table in (("envs", given), ("environment", given), ("env", given), ("env", {"env": env_inside})):
            said = self._table(table.get(key), key)
            parts.env |= {name: self._text(value, f"{key}/{name}") for name, value in said.items() if value is not None}
        if given.get("cwd") is not None:
            written = self._text(given["cwd"], "cwd")
            parts.cwd = written if written.startswith("${") else str(self._around.folder / Path(written).expanduser())
        elif self._start is not None:
            parts.cwd = str(self._start)
        if self._client is PLUGIN and parts.argv[0].startswith("./"):
            parts.argv[0] = str(self._around.folder / parts.argv[0])

    def _check_plugin(self, kind: str, program: Json, url: Json) -> None:
        """What the Agent Plugins specification 1.0 asks for beyond what others do."""
        if not self._given.get("type"):
            raise self._misfit("type", "is required in a plugin: stdio, streamable-http or sse")
        if isinstance(program, str) and ("/" in program or "\\" in program) and not program.startswith("./"):
            raise self._misfit("command", "is a bare name or begins with ./ in a plugin")
        if isinstance(program, str) and ".." in Path(program).parts:
            raise self._misfit("command", "leads out of the plugin")
        if kind not in _STDIO and not re.match(
            r"https://|http://(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?:[:/]|$)", str(url)
        ):
            raise self._misfit("url", "must be https, unless it is this machine")

    # addresses

    def _address(self, parts: Parts, key: str, kind: str) -> None:
        parts.url = self._text(self._given[key], key)
        if re.match(r"(?:unix|pipe):", parts.url):
            raise self._misfit(key, "sockets and pipes of this machine are not supported; give an http URL")
        if kind == "sse":
            parts.transport = "sse"
        elif kind or key == "httpUrl":
            parts.transport = "http"
        elif not self._client.sse_first and _SSE.search(parts.url):
            parts.transport = "sse"

    def _headers(self, parts: Parts) -> None:
        for key in ("headers", "http_headers"):
            table = self._table(self._given.get(key), key)
            parts.headers |= {
                name: self._text(value, f"{key}/{name}") for name, value in table.items() if value is not None
            }
        for name, variable in self._table(self._given.get("env_http_headers"), "env_http_headers").items():
            value = self._values.variable(str(variable), "env_http_headers")
            if value:
                parts.headers[name] = value
            else:
                self.reports.append(
                    f"env_http_headers/{name}: the environment variable {variable} is not set; the header is not sent"
                )
        helper = self._given.get("headersHelper")
        if helper is not None:
            parts.headers_helper = self._text(helper, "headersHelper")

    def _credentials(self, parts: Parts) -> None:
        given = self._given
        if given.get("bearer_token") is not None:
            raise self._misfit(
                "bearer_token",
                "a token does not stand in the file; put it in a variable and name that: bearer_token_env_var",
            )
        if (variable := given.get("bearer_token_env_var")) is not None:
            value = self._asked(
                "bearer_token_env_var", lambda: self._values.variable(str(variable), "bearer_token_env_var")
            )
            if not value:
                raise self._misfit("bearer_token_env_var", f"the environment variable {variable} is not set")
            parts.token = value
            return
        for key in ("token", "bearer"):
            if given.get(key) is not None:
                parts.token = self._text(given[key], key)
                return
        for key in ("oauth", "auth"):
            value: Any = given.get(key)
            if isinstance(value, str) and value.lower() == "oauth":
                parts.oauth = OAuth()
            elif isinstance(value, str):
                parts.token = self._text(value, key)
            elif isinstance(value, bool):
                parts.oauth, parts.login = (OAuth(), True) if value else (None, False)
            elif isinstance(value, dict):
                parts.oauth = self._oauth(cast(JsonObject, value), key)
            if value is not None:
                return

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
            raise self._misfit(f"{where}/grant", "is authorization_code or client_credentials")
        port = plain.get("redirectport") or plain.get("callbackport") or 0
        if not isinstance(port, int):
            raise self._misfit(f"{where}/redirect_port", "must be a port")
        return OAuth(
            grant="client_credentials" if grant == "client_credentials" else "authorization_code",
            client_id=text("clientid"),
            client_secret=text("clientsecret"),
            scope=text("scope", "scopes"),
            issuer=text("issuer"),
            redirect_port=port,
            client_metadata_url=text("clientmetadataurl"),
        )

    # tools and times

    def _tools(self, parts: Parts) -> None:
        """Patterns that are offered and that are not, from the four things that `tools` may mean, and its relatives."""
        given, allow, deny = self._given, list[str](), list[str]()
        for key in ("includeTools", "enabled_tools", "available_tools"):
            listed = self._list(given.get(key), key)
            allow += [_plain_pattern(str(one)) for one in listed]
            if given.get(key) is not None and not listed and key == "enabled_tools":
                deny.append("*")  # Codex: none of them
        for key in ("excludeTools", "disabled_tools", "disabledTools"):
            deny += [_plain_pattern(str(one)) for one in self._list(given.get(key), key)]
        tools: Any = given.get("tools")
        if isinstance(tools, list):
            listed = [str(one) for one in cast("list[Any]", tools)]
            allow += listed
            deny += [] if listed else ["*"]  # Copilot: none of them
        elif isinstance(tools, dict):
            said = cast(JsonObject, tools)
            allow += [str(name) for name, on in said.items() if on is True]
            deny += [str(name) for name, on in said.items() if on is False]
            strange = [
                str(name)
                for name, one in said.items()
                if not isinstance(one, bool) and not is_transform(one) and not _has(one, "approval_mode")
            ]
            self.reports += [f"tools/{name}: what it says is not understood" for name in strange]
        parts.allow, parts.deny = tuple(allow), tuple(deny)
        try:
            parts.transforms = transforms_of(tools, given.get("include_tags"), given.get("exclude_tags"))
        except ValueError as error:
            key, _, message = str(error).partition(": ")
            raise self._misfit(key, message) from None

    def _times(self, parts: Parts) -> None:
        """Milliseconds, but for keys that say seconds and clients that write them."""
        parts.connect_timeout = self._setting("MCP_TIMEOUT")
        parts.call_timeout = self._setting("MCP_TOOL_TIMEOUT") or self._client.call_timeout
        plain = 1.0 if self._client.seconds else 1000.0
        if self._client.lists:
            connecting, calling = [("timeout", plain)], list[tuple[str, float]]()
        else:
            connecting, calling = list[tuple[str, float]](), [("timeout", plain)]
        connecting += [("startup_timeout_sec", 1.0), ("startup_timeout_ms", 1000.0), ("connectionTimeout", 1000.0)]
        calling += [("tool_timeout_sec", 1.0), ("requestTimeout", 1000.0), ("request_timeout_ms", 1000.0)]
        for key, divisor in connecting:
            parts.connect_timeout = self._seconds(key, divisor) or parts.connect_timeout
        for key, divisor in calling:
            parts.call_timeout = self._seconds(key, divisor) or parts.call_timeout

    def _seconds(self, key: str, divisor: float) -> float | None:
        value = self._given.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
            raise self._misfit(key, "must be a number of " + ("seconds" if divisor == 1.0 else "milliseconds"))
        if divisor == 1000.0 and 0 < value < 1000:
            ignored = self._client.short == "ignored"
            less = "is less than a second: it is in milliseconds"
            self.reports.append(f"{key}: {value:g} {less}{', and is ignored' if ignored else ''}")
            return None if ignored else value / divisor
        return value / divisor or None

    def _setting(self, variable: str) -> float | None:
        """A timeout that Claude Code takes from the environment, in milliseconds there."""
        value = self._around.env.get(variable, "") if self._client is CLAUDE_CODE else ""
        return int(value) / 1000.0 if re.fullmatch(r"[1-9]\d{3,9}", value) else None

    # values

    def _misfit(self, key: str, message: str) -> Misfit:
        return Misfit(_at(self._where, self._name, key, message))

    def _asked(self, key: str, ask: Any) -> Any:
        try:
            return ask()
        except Unfilled as error:
            raise self._misfit(key, str(error)) from None

    def _list(self, value: Json, key: str) -> Sequence[Any]:
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self._misfit(key, "must be a list")
        return cast("list[Any]", value)

    def _table(self, value: Json, key: str) -> Mapping[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._misfit(key, "must be an object")
        return cast(JsonObject, value)

    def _text(self, value: Json, key: str) -> str:
        if isinstance(value, bool | int | float):
            return json.dumps(value)
        if not isinstance(value, str):
            raise self._misfit(key, "must be a text")
        try:
            return self._values.text(value, key)
        except Unfilled as error:
            raise self._misfit(key, str(error)) from None


def _plain_pattern(name: str) -> str:
    """A tool's name as Gemini writes one: what stands in parentheses restricts its arguments."""
    return name.partition("(")[0]


def _has(value: Json, key: str) -> bool:
    return isinstance(value, dict) and key in cast(JsonObject, value)
