"""A server of a client's file as a source of ours: references stay references, secrets in plain text become inputs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast
from urllib.parse import parse_qsl, quote, urlsplit

from anykit.capabilities import JsonObject
from anykit.runtime import clean
from anykit.sources.mcp import ServerFile
from anykit.sources.mcp.inputs import inputs_in
from anykit.sources.mcp.parts import Parts
from anykit.stores import has_reference
from anykit.transports import public_url

SECRET_NAME: Final = re.compile(
    r"token|secret|passw|passphrase|api[-_]?key|(?:^|[-_])(?:key|pat|auth)$|^auth|authorization|cookie|credential|signature|^sig$",
    re.IGNORECASE,
)
"""Names whose values are secrets."""
SECRET_VALUE: Final = re.compile(
    r"(?:gh[pousr]_|github_pat_|glpat-|sk-|xox[abprs]-|AKIA|AIza|ya29\.|hf_|npm_|pypi-|Bearer )\S{8,}|eyJ[\w-]{10,}\.[\w-]+"
)
"""Values that are, whatever they are called."""
_FLAG: Final = re.compile(r"--?[A-Za-z][\w-]*")


@dataclass(frozen=True, slots=True)
class Taken:
    """A source of ours, made from a server of a client's file."""

    table: JsonObject = field(repr=False)
    """As it stands in `sources`: its `name`, and all that it needs."""
    transport: str
    about: str
    """What it starts or connects to, without secrets."""
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """What stood there in plain text, by the input that now stands for it."""
    warnings: tuple[str, ...] = ()
    """What was not taken over."""

    @property
    def identity(self) -> tuple[str, ...]:
        """What it is, whatever it is called."""
        return identity_of(self.table)


def identity_of(table: Mapping[str, Any]) -> tuple[str, ...]:
    """What a source's table starts or connects to."""
    if command := table.get("command"):
        argv = [command] if isinstance(command, str) else list(command)
        return ("command", *map(str, argv), *map(str, table.get("args") or ()))
    return ("at", str(table.get("url") or table.get("target") or ""))


def taken_of(file: ServerFile, index: int) -> Taken:
    """The server at `index` of a file. Nothing is looked up. Raises `ValueError` for one that cannot be used."""
    entry = file.entries[index]
    if file.reading is None:  # a file that is a server itself
        if entry.server is None:
            raise ValueError(entry.fault)
        return Taken({"target": str(file.path)}, "stdio", f"fastmcp run {file.path}")
    definition = file.definitions[index]
    value: Any = definition.value
    if not isinstance(value, dict):
        raise ValueError(entry.fault or f"{entry.name}: must be an object")
    parts, env_files = file.reading.referring(entry.name, cast(JsonObject, value))
    gate = file.gates.of(entry.name)
    hiding = _Hiding()
    table: JsonObject = {"name": clean(entry.name), "kind": "mcp"}
    table |= _program(parts, env_files, hiding) if parts.argv else _address(parts, hiding)
    if parts.era != "auto":
        table["era"] = parts.era
    for key, value in (("timeout", parts.call_timeout), ("connect_timeout", parts.connect_timeout)):
        if value:
            table[key] = int(value) if value == int(value) else value
    if parts.allow:
        table["allow"] = list(parts.allow)
    if deny := [*parts.deny, *gate.deny]:
        table["deny"] = deny
    if entry.required:
        table["required"] = True
    asked = [file.reading.inputs.get(id, {"id": id, "password": True}) for id in inputs_in(table)]
    declared = [
        {key: one[key] for key in ("id", "description", "password", "options", "default") if key in one}
        for one in asked
        if one["id"] not in hiding.values
    ]
    hidden = [{"id": id, "description": text, "password": True} for id, text in hiding.described.items()]
    if declared or hidden:
        table["inputs"] = [*declared, *hidden]
    warnings = list(hiding.warnings)
    if parts.transforms is not None:
        warnings.append("the other names and words that its file gives to its tools are not taken over")
    argv = [str(table["command"]), *table.get("args", [])] if parts.argv else []
    about = " ".join(argv) if argv else public_url(str(table["url"]))
    transport = "stdio" if parts.argv else parts.transport
    return Taken(table, transport, about[:200], hiding.values, tuple(warnings))


class _Hiding:
    """Puts inputs where secrets stand in plain text."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.described: dict[str, str] = {}
        self.warnings: list[str] = []

    def hidden(self, name: str, value: str, where: str, *, always: bool = False) -> str:
        """A reference for a value that is secret; else the value."""
        secret = always or SECRET_NAME.search(name) is not None or SECRET_VALUE.search(value) is not None
        if not secret or not value or has_reference(value):
            return value
        # It was written for a file in which nothing, or other things, were references.
        plain = value.replace("$${", "${")
        id = _id(name)
        number = 2
        while id in self.values and self.values[id] != plain:
            id, number = f"{_id(name)}_{number}", number + 1
        self.values[id] = plain
        self.described[id] = where
        return f"${{input:{id}}}"

    def argv(self, argv: list[str]) -> list[str]:
        """A command line; what follows a flag such as `--token` is secret too."""
        found: list[str] = []
        before = ""
        for word in argv:
            flag, equals, value = word.partition("=")
            if equals and _FLAG.fullmatch(flag):
                found.append(f"{flag}={self.hidden(flag.lstrip('-'), value, f'the flag {flag}')}")
            elif before and SECRET_NAME.search(before) and not word.startswith("-"):
                found.append(self.hidden(before.lstrip("-"), word, f"the flag {before}"))
            else:
                found.append(self.hidden("", word, "an argument"))
            before = word if _FLAG.fullmatch(word) else ""
        return found

    def url(self, url: str) -> str:
        """A URL; parameters of its query may be secret."""
        if has_reference(url):
            return url
        parts = urlsplit(url)
        if "@" in parts.netloc:
            self.warnings.append("a user or password in its URL is written down as it is; better: a header")
        query = parts.query
        for name, value in parse_qsl(query):
            hidden = self.hidden(name, value, f"the parameter {name} of its URL")
            if hidden != value:
                for spelt in (value, quote(value), quote(value, safe="")):
                    query = query.replace(f"{name}={spelt}", f"{name}={hidden}")
        return url if query == parts.query else url.replace(f"?{parts.query}", f"?{query}")


def _id(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_-") or "SECRET"


def _program(parts: Parts, env_files: list[str], hiding: _Hiding) -> JsonObject:
    command, *args = hiding.argv(parts.argv)
    table: JsonObject = {"command": command}
    if args:
        table["args"] = args
    if env := {name: hiding.hidden(name, value, f"the variable {name}") for name, value in parts.env.items()}:
        table["env"] = env
    if env_files:
        table["env_file"] = env_files[0]
        hiding.warnings += [f"{name} is not taken over: one envFile can be" for name in env_files[1:]]
    if parts.cwd is not None:
        table["cwd"] = parts.cwd
    return table


def _address(parts: Parts, hiding: _Hiding) -> JsonObject:
    table: JsonObject = {"url": hiding.url(parts.url)}
    if parts.transport != "auto":
        table["transport"] = parts.transport
    if headers := {name: hiding.hidden(name, value, f"the header {name}") for name, value in parts.headers.items()}:
        table["headers"] = headers
    if parts.headers_helper:
        table["headers_helper"] = parts.headers_helper
    if parts.token:
        table["token"] = hiding.hidden("TOKEN", parts.token, "its token", always=True)
    if not parts.login:
        table["oauth"] = False
    elif parts.oauth is not None:
        table["oauth"] = _oauth(parts, hiding)
    return table


def _oauth(parts: Parts, hiding: _Hiding) -> JsonObject | bool:
    said = parts.oauth
    assert said is not None
    secret = hiding.hidden("CLIENT_SECRET", said.client_secret, "its OAuth client's secret", always=True)
    given: dict[str, Any] = {
        "grant": said.grant if said.grant != "authorization_code" else "",
        "client_id": said.client_id,
        "client_secret": secret,
        "scope": said.scope,
        "issuer": said.issuer,
        "redirect_port": said.redirect_port,
        "client_metadata_url": said.client_metadata_url,
    }
    return {key: value for key, value in given.items() if value} or True


def renamed(taken: Taken, name: str) -> Taken:
    """The same by another name."""
    return Taken({**taken.table, "name": name}, taken.transport, taken.about, taken.secrets, taken.warnings)
