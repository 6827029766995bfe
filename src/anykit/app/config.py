"""The file: `anykit.toml`, or the same keys as JSON or YAML.

Reading it never starts anything. What does not fit is a `ConfigError` that names the file, the field and the fix.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pydantic
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from anykit.capabilities import Json, JsonObject

NAMES = ("anykit.toml", "anykit.json", "anykit.yaml", "anykit.yml")
_SERVER_MAPS = frozenset({"mcpServers", "servers", "mcp_servers", "mcp", "context_servers"})
"""Keys by which MCP clients' files are known."""
MAX_FILE = 4 * 1024 * 1024
"""Bytes of a configuration file."""


class ConfigError(Exception):
    """A configuration that cannot be used; the text names the file, the field and the fix."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, defer_build=True)


class SourceConfig(_Table):
    """A source with options; a string in `sources` is only its target."""

    target: str | None = Field(default=None, description="A file, module, URL, `anykit:NAME`, or toolkit class.")
    command: str | list[str] | None = Field(default=None, description="The program to start, as one name or as argv.")
    args: list[str] = Field(default=[], description="Arguments for `command`.")
    env: dict[str, str] = Field(default={}, description="Variables for the program, beside the few that it inherits.")
    cwd: str | None = Field(default=None, description="The folder that the program starts in.")
    url: str | None = Field(default=None, description="The address of an A2E host, an A2A agent or an MCP server.")
    headers: dict[str, str] = Field(default={}, description="Headers for an MCP server; references like `${TOKEN}`.")
    transport: str | None = Field(default=None, description="How an MCP server is reached: `stdio`, `http`, `sse`.")
    era: str | None = Field(default=None, description="Which MCP is spoken: `auto`, `modern`, `legacy`.")
    timeout: float | None = Field(default=None, gt=0, description="Seconds that a call of an MCP server may take.")
    allow: list[str] = Field(default=[], description="Tools of an MCP server that are offered; globs.")
    deny: list[str] = Field(default=[], description="Tools of an MCP server that are not; globs. It wins.")
    oauth: JsonObject | bool | None = Field(default=None, description="OAuth for an MCP server, or false for none.")
    token: SecretStr | None = Field(default=None, description="What the host asks for; a reference like `${TOKEN}`.")
    kind: str | None = Field(
        default=None, description="What the source is, where it cannot be told: `python`, `a2e`, `a2a`, `mcp`."
    )
    name: str | None = Field(default=None, description="What it is called; it stands before the names of its tools.")
    enabled: bool = Field(default=True, description="Whether it is used at all.")
    required: bool = Field(default=False, description="Whether nothing starts without it.")
    toolkits: dict[str, JsonObject] = Field(default={}, description="Configurations for the toolkits of an A2E host.")


class ToolkitConfig(_Table):
    """What the operator says about one toolkit."""

    config: JsonObject | None = Field(default=None, description="Its configuration, for everyone.")
    enabled: bool = Field(default=True, description="Whether it is offered at all.")
    auto_configure: bool = Field(
        default=False, description="Configure it with nothing but its defaults, where its schema requires nothing."
    )


class BoundsConfig(_Table):
    """What no caller's configuration can go beyond."""

    roots: list[str] | None = Field(
        default=None, description="Folders that a caller may name; the folder where anykit starts, if not given."
    )
    database_urls: list[str] = Field(default=[], description="Database URLs that a caller may name.")
    private_hosts: list[str] = Field(
        default=[], description="Private hosts, `host:port`s and networks that may be reached on a caller's behalf."
    )


class ServeConfig(_Table):
    """How `anykit serve` listens."""

    host: str = Field(default="127.0.0.1", description="The address to listen on.")
    port: int = Field(default=7777, ge=0, le=65535, description="The port; 0 picks a free one.")
    token: SecretStr | None = Field(default=None, description="What callers must show; a reference like `${TOKEN}`.")
    tls_cert: str | None = Field(default=None, description="A certificate chain, PEM.")
    tls_key: str | None = Field(default=None, description="Its key, PEM.")
    allow_hosts: list[str] = Field(default=[], description="More names that the Host header may carry.")
    allow_origins: list[str] = Field(default=[], description="Origins that a browser may call from.")
    trusted_proxies: list[str] = Field(default=[], description="Addresses whose X-Forwarded-Proto is believed.")


class LimitsConfig(_Table):
    """Bounds of what one host takes on. Bytes, seconds, counts."""

    body: int = Field(default=8 * 1024 * 1024, ge=1024, description="Bytes of one message.")
    max_parallel: int = Field(default=64, ge=1, description="Calls of one session at a time.")
    queue: int = Field(default=256, ge=0, description="Calls of one session that may wait.")
    rate: float | None = Field(default=None, gt=0, description="Messages a second of one session; no limit if not set.")
    sessions: int = Field(default=10_000, ge=1, description="Sessions at a time.")
    idle: float = Field(default=1800.0, gt=0, description="Seconds after which an idle session ends.")
    connect: float = Field(default=15.0, gt=0, description="Seconds that a source may take to connect.")


class PluginMeta(BaseModel):
    """Of an A2E plugin; further keys are the plugin's own."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)

    enabled: bool = True
    priority: int = 0
    exclusive: bool = False


class PluginConfig(_Table):
    """An A2E plugin."""

    name: str = Field(description="What it is called.")
    type: str = Field(description="The capability that it serves: `toolkits`, `tools`, `memory`, ...")
    cls: str = Field(description="Its class, as a dotted path.")
    metadata: PluginMeta = Field(
        default_factory=PluginMeta, description="`enabled`, `priority`, `exclusive`, its own keys."
    )


class A2EConfig(_Table):
    """The A2E face."""

    plugins: list[PluginConfig] = Field(default=[], description="Plugins that run in this host, in this order.")
    allow_servers: list[str | list[str]] = Field(
        default=[],
        description="MCP servers that an agent may register: exact URLs, and exact commands as lists. None, if not given.",
    )
    lenient_caps: bool = Field(
        default=False, description="Accept a handshake even where none of the wanted capabilities is served."
    )


class OffersConfig(_Table):
    """What MCP servers behind this host may ask us for; what is not here is not offered to them."""

    sampling: bool = Field(
        default=False, description="Whether they may use the model of the A2E agent whose call they work on."
    )
    roots: list[str] | None = Field(default=None, description="Folders that they are told to work in.")


class EnvironmentConfig(_Table):
    """What differs in one environment, chosen by `--env` or `ANYKIT_ENV`."""

    toolkits: dict[str, ToolkitConfig] = Field(default={}, description="Laid over `[toolkits]`, key by key.")


class AppConfig(_Table):
    """The whole file."""

    schema_: str | None = Field(default=None, alias="$schema", description="For editors.")
    sources: list[str | SourceConfig] = Field(default=[], description="Where capabilities come from.")
    agents: dict[str, JsonObject] = Field(
        default={},
        description="A2A agents by name: `card`, `headers`, `timeout` and `pollEvery` in milliseconds, `enabled`.",
    )
    data_dir: str | None = Field(default=None, description="Where records and secrets lie.")
    toolkits: dict[str, ToolkitConfig] = Field(default={}, description="What the operator says about each toolkit.")
    bounds: BoundsConfig = Field(default_factory=BoundsConfig, description="What no caller can go beyond.")
    serve: ServeConfig = Field(default_factory=ServeConfig, description="How `anykit serve` listens.")
    limits: LimitsConfig = Field(default_factory=LimitsConfig, description="What one host takes on.")
    a2e: A2EConfig = Field(default_factory=A2EConfig, description="The A2E face.")
    offers: OffersConfig = Field(default_factory=OffersConfig, description="What MCP servers may ask us for.")
    env: dict[str, EnvironmentConfig] = Field(default={}, description="Environments, by name.")

    path: Path | None = Field(default=None, exclude=True, repr=False, json_schema_extra={"internal": True})
    """The file it was read from; None where it was made in Python."""

    @property
    def folder(self) -> Path:
        """Where its relative paths start."""
        return Path.cwd() if self.path is None else self.path.parent

    def for_environment(self, name: str | None) -> AppConfig:
        """The same with `[env.NAME]` laid over it. Raises `ConfigError` for an unknown name."""
        if not name:
            return self
        if name not in self.env:
            raise ConfigError(f"{self.path or 'config'}: there is no [env.{name}]{_hint(name, self.env)}")
        toolkits = dict(self.toolkits)
        for key, over in self.env[name].toolkits.items():
            given = over.model_dump(exclude_unset=True)
            base = toolkits.get(key, ToolkitConfig()).model_dump(exclude_unset=True)
            merged = _merged(base, given)
            toolkits[key] = ToolkitConfig(**merged)
        return self.model_copy(update={"toolkits": toolkits})


def config_file_schema() -> JsonObject:
    """The JSON Schema of the file."""
    schema = AppConfig.model_json_schema(by_alias=True)
    schema["properties"].pop("path", None)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "anykit configuration"}


def find_config(start: Path | None = None) -> Path | None:
    """The nearest `anykit.toml`, `.json` or `.yaml` in `start` (the working directory) or above."""
    folder = (start or Path.cwd()).resolve()
    for place in (folder, *folder.parents):
        for name in NAMES:
            if (place / name).is_file():
                return place / name
    return None


def read_config(path: str | os.PathLike[str]) -> AppConfig:
    """Read and check a file. Raises `ConfigError`."""
    file = Path(path).expanduser()
    data = read_data(file)
    if _SERVER_MAPS & data.keys():
        # A client's own file, as it is: its servers are the sources.
        agents = data.get("agents")
        return parse_config(
            {"sources": [str(file.absolute())], "agents": agents if isinstance(agents, dict) else {}}, file
        )
    if "path" in data:
        raise ConfigError(f"{file}: unknown key 'path'")
    return parse_config(data, file)


def parse_config(data: Mapping[str, Any], path: Path | None = None) -> AppConfig:
    """Check a configuration that was read, or written in Python. Raises `ConfigError`."""
    try:
        config = AppConfig.model_validate(dict(data))
    except pydantic.ValidationError as error:
        raise ConfigError("\n".join(_explain(path, fault) for fault in error.errors())) from None
    return config.model_copy(update={"path": None if path is None else path.absolute()})


def read_data(file: Path) -> dict[str, Any]:
    """The object in a TOML, JSON or YAML file. Raises `ConfigError` with the place of the fault."""
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_FILE + 1)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror or error}") from None
    if len(raw) > MAX_FILE:
        raise ConfigError(f"{file}: larger than {MAX_FILE} bytes")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not UTF-8 (byte {error.start})") from None
    data: Any
    try:
        if file.suffix == ".toml":
            data = tomllib.loads(text)
        elif file.suffix in (".yaml", ".yml"):
            data = _yaml(text)
        else:
            data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: {error}") from None
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise ConfigError(f"{file}: must hold an object, not {type(data).__name__}")
    return cast("dict[str, Any]", data)


def _yaml(text: str) -> Any:
    import yaml  # noqa: PLC0415 - 30 ms, only for those who write YAML

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def _explain(path: Path | None, fault: Any) -> str:
    """One fault of a file, with its field and a fix; without the value where the field may hold a secret."""
    loc = [str(step) for step in fault["loc"]]
    field = ".".join(_readable(loc))
    where = f"{path or 'config'}: {field}" if field else str(path or "config")
    if fault["type"] == "extra_forbidden":
        model = _table_at(loc[:-1])
        known = [f.alias or name for name, f in model.model_fields.items() if not f.exclude] if model else []
        return f"{where}: unknown key{_hint(loc[-1], known)}"
    return f"{where}: {fault['msg'][:1].lower()}{fault['msg'][1:]}"


def _readable(loc: list[str]) -> list[str]:
    return [step for step in loc if step not in ("str", "SourceConfig")]


def _table_at(loc: list[str]) -> type[BaseModel] | None:
    """The table that a place in the file belongs to, for what its keys may be called."""
    tables: dict[tuple[str, ...], type[BaseModel]] = {
        (): AppConfig,
        ("bounds",): BoundsConfig,
        ("serve",): ServeConfig,
        ("limits",): LimitsConfig,
        ("a2e",): A2EConfig,
        ("offers",): OffersConfig,
        ("toolkits", "*"): ToolkitConfig,
        ("sources", "*"): SourceConfig,
        ("a2e", "plugins", "*"): PluginConfig,
        ("env", "*"): EnvironmentConfig,
        ("env", "*", "toolkits", "*"): ToolkitConfig,
    }
    clean = _readable(loc)
    for place, table in tables.items():
        if len(place) == len(clean) and all(want in ("*", step) for want, step in zip(place, clean, strict=True)):
            return table
    return None


def _hint(name: str, known: Any) -> str:
    close = difflib.get_close_matches(name, list(known), n=2, cutoff=0.6)
    if close:
        return f"; did you mean {' or '.join(close)}?"
    return f"; known: {', '.join(known)}" if known else ""


def _merged(base: Json, over: Json) -> Any:
    if isinstance(base, dict) and isinstance(over, dict):
        left, right = cast(JsonObject, base), cast(JsonObject, over)
        return {**left, **{key: _merged(left.get(key), value) for key, value in right.items()}}
    return over
