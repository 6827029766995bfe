"""The file: `anykit.toml`, or the same keys as JSON or YAML.

Reading it never starts anything. What does not fit is a `ConfigError` that names the file, the field and the fix.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast, get_args

import pydantic
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from anykit.capabilities import Json, JsonObject
from anykit.sources.documents import Unreadable, read_document

from .source_tables import TABLES, KindTable, SourceEntry, published, table_for
from .source_tables import SourceConfig as SourceConfig
from .source_tables import Table as _Table
from .tool_tables import ArgumentConfig, FacesConfig, HintsConfig, TokenConfig, ToolConfig, ViewConfig

NAMES = ("anykit.toml", "anykit.json", "anykit.yaml", "anykit.yml")
_SERVER_MAPS = frozenset({"mcpServers", "servers", "mcp_servers", "mcp", "context_servers"})
"""Keys by which MCP clients' files are known."""
MAX_FILE = 4 * 1024 * 1024
"""Bytes of a configuration file."""


class ConfigError(Exception):
    """A configuration that cannot be used; the text names the file, the field and the fix."""


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
    faces: FacesConfig = Field(
        default_factory=FacesConfig, description="The view that each face serves, instead of everything."
    )
    tokens: list[TokenConfig] = Field(
        default=[], description="Further tokens `[[serve.tokens]]`, each with a name and, if wanted, a view."
    )


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


class LockConfig(_Table):
    """What `anykit.lock` is for."""

    enforce: bool = Field(
        default=False, description="Offer only tools that are as they were when `anykit lock` pinned them."
    )


class EnvironmentConfig(_Table):
    """What differs in one environment, chosen by `--env` or `ANYKIT_ENV`."""

    toolkits: dict[str, ToolkitConfig] = Field(default={}, description="Laid over `[toolkits]`, key by key.")


class AppConfig(_Table):
    """The whole file."""

    schema_: str | None = Field(default=None, alias="$schema", description="For editors.")
    sources: list[SourceEntry] = Field(default=[], description="Where capabilities come from.")
    agents: dict[str, JsonObject] = Field(
        default={},
        description="A2A agents by name: `card`, `headers`, `timeout` and `pollEvery` in milliseconds, `enabled`.",
    )
    data_dir: str | None = Field(default=None, description="Where records and secrets lie.")
    toolkits: dict[str, ToolkitConfig] = Field(default={}, description="What the operator says about each toolkit.")
    tools: dict[str, ToolConfig] = Field(
        default={}, description="What the operator says about single tools, by name or as `source/original`."
    )
    views: dict[str, ViewConfig] = Field(default={}, description="Parts of everything, for a face, a token or a model.")
    allow: list[str] = Field(default=[], description="Tools that are offered; patterns as in a view. All, if none.")
    deny: list[str] = Field(default=[], description="Tools that are not offered to anyone; patterns. It wins.")
    deferred_after: int | None = Field(
        default=None,
        ge=0,
        description="So many tools are listed; the rest is found by `find_tools`. All, if not given.",
    )
    bounds: BoundsConfig = Field(default_factory=BoundsConfig, description="What no caller can go beyond.")
    serve: ServeConfig = Field(default_factory=ServeConfig, description="How `anykit serve` listens.")
    limits: LimitsConfig = Field(default_factory=LimitsConfig, description="What one host takes on.")
    a2e: A2EConfig = Field(default_factory=A2EConfig, description="The A2E face.")
    offers: OffersConfig = Field(default_factory=OffersConfig, description="What MCP servers may ask us for.")
    lock: LockConfig = Field(default_factory=LockConfig, description="What `anykit.lock` is for.")
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
    schema = published(schema)
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
    maps = _SERVER_MAPS & data.keys()
    if file.name in NAMES and maps:
        # Ours, with servers written as in a client's file: they are sources beside the others.
        rest = {key: value for key, value in data.items() if key not in maps and key != "inputs"}
        sources = rest.get("sources", [])
        return parse_config({**rest, "sources": [*_listed(sources), str(file.absolute())]}, file)
    if file.name not in NAMES and _is_of_client(data, file):
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
    if wrong := [*_wrong_views(config)]:
        raise ConfigError("\n".join(f"{path or 'config'}: {one}" for one in wrong))
    return config.model_copy(update={"path": None if path is None else path.absolute()})


def source_config(data: Mapping[str, Any]) -> SourceConfig:
    """Check the table of one source, in the shape of its kind. Raises `ConfigError`."""
    table = table_for(data)
    try:
        return table.model_validate(dict(data))
    except pydantic.ValidationError as error:
        faults = [{**fault, "loc": ("sources", table.__name__, *fault["loc"])} for fault in error.errors()]
        raise ConfigError("\n".join(_explain(None, fault) for fault in faults)) from None


def _is_of_client(data: Mapping[str, Any], file: Path) -> bool:
    from anykit.sources.mcp import is_server_file  # noqa: PLC0415 - only those who use MCP pay for it

    if {"sources", "toolkits", "serve"} & data.keys():
        return False  # ours, by another name
    return is_server_file(data, file)


def _listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _wrong_views(config: AppConfig) -> Iterator[str]:
    """Views that are named and do not exist, and tokens that cannot be told apart."""
    named = [(f"serve.faces.{face}", view) for face, view in config.serve.faces if view is not None]
    seen: set[str] = set()
    for index, token in enumerate(config.serve.tokens):
        where = f"serve.tokens.{index}"
        named += [(f"{where}.view", token.view)] if token.view is not None else []
        if token.name in seen or token.name == "local":
            yield f"{where}.name: {token.name} is another's already; give this token another name"
        seen.add(token.name)
    for where, view in named:
        if view not in config.views:
            yield f"{where}: there is no view {view!r}{_hint(view, config.views)}"


def read_data(file: Path) -> dict[str, Any]:
    """The object in a TOML, JSON (with comments) or YAML file. Raises `ConfigError` with the place of the fault."""
    try:
        return read_document(file)
    except Unreadable as error:
        raise ConfigError(str(error)) from None


def _explain(path: Path | None, fault: Any) -> str:
    """One fault of a file, with its field and a fix; without the value where the field may hold a secret."""
    loc = [str(step) for step in fault["loc"]]
    field = ".".join(_readable(loc))
    where = f"{path or 'config'}: {field}" if field else str(path or "config")
    if fault["type"] == "extra_forbidden":
        model = _table_at(loc[:-1])
        known = _keys_of(model)
        return f"{where}: unknown key{_hint(loc[-1], known)}"
    return f"{where}: {fault['msg'][:1].lower()}{fault['msg'][1:]}"


def _readable(loc: list[str]) -> list[str]:
    return [step for step in loc if step != "str" and step not in TABLES]


def _keys_of(model: type[BaseModel] | None) -> list[str]:
    if model is None:
        return []
    if issubclass(model, KindTable):
        return model.keys()
    return [field.alias or name for name, field in model.model_fields.items() if not field.exclude]


def _table_at(loc: list[str]) -> type[BaseModel] | None:
    """The table that a place in the file belongs to, for what its keys may be called."""
    tables: dict[tuple[str, ...], type[BaseModel]] = {
        (): AppConfig,
        ("bounds",): BoundsConfig,
        ("serve",): ServeConfig,
        ("limits",): LimitsConfig,
        ("a2e",): A2EConfig,
        ("offers",): OffersConfig,
        ("lock",): LockConfig,
        ("toolkits", "*"): ToolkitConfig,
        ("tools", "*"): ToolConfig,
        ("tools", "*", "annotations"): HintsConfig,
        ("tools", "*", "arguments", "*"): ArgumentConfig,
        ("views", "*"): ViewConfig,
        ("serve", "faces"): FacesConfig,
        ("serve", "tokens", "*"): TokenConfig,
        ("sources", "*"): SourceConfig,
        ("a2e", "plugins", "*"): PluginConfig,
        ("env", "*"): EnvironmentConfig,
        ("env", "*", "toolkits", "*"): ToolkitConfig,
    }
    for at, step in enumerate(loc):
        if step in TABLES:
            return _nested(TABLES[step], loc[at + 1 :])
    clean = _readable(loc)
    for place, table in tables.items():
        if len(place) == len(clean) and all(want in ("*", step) for want, step in zip(place, clean, strict=True)):
            return table
    return None


def _nested(table: type[BaseModel], loc: list[str]) -> type[BaseModel] | None:
    """The table at a place inside a source's."""
    for step in loc:
        if step.isdigit():
            continue
        field = table.model_fields.get(step)
        models = [] if field is None else _models_in(field.annotation)
        if len(models) != 1:
            return None
        table = models[0]
    return table


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _models_in(inner)]


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
