"""The tables `[[sources]]`: one shape for what is started or reached, and one for each kind that has keys of its own.

A new kind is a subclass of `KindTable` in `KINDS`: its `own_kind`, its `telling` keys, and which keys of the common table
mean nothing to it (`foreign`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Discriminator, Field, SecretStr, Tag, model_validator
from pydantic_core import PydanticCustomError

from anykit.capabilities import Json, JsonObject


class Table(BaseModel):
    """A table of the file: no key but its own, and nothing changes it."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, defer_build=True)


class SourceConfig(Table):
    """A source with options; a string in `sources` is only its target."""

    own_kind: ClassVar[str | None] = None
    """The kind of every source with this table."""
    references: ClassVar[tuple[str, ...]] = (
        *("target", "url", "command", "args", "env", "env_file", "cwd", "headers", "headers_helper", "oauth", "token"),
        "toolkits",
    )
    """Keys in which `${VAR}` and its kin are replaced before the source is opened."""

    target: str | None = Field(default=None, description="A file, module, URL, `anykit:NAME`, or toolkit class.")
    command: str | list[str] | None = Field(default=None, description="The program to start, as one name or as argv.")
    args: list[str] = Field(default=[], description="Arguments for `command`.")
    env: dict[str, str] = Field(default={}, description="Variables for the program, beside the few that it inherits.")
    env_file: str | None = Field(default=None, description="A dotenv file with more variables for the program.")
    cwd: str | None = Field(default=None, description="The folder that the program starts in.")
    url: str | None = Field(default=None, description="The address of an A2E host, an A2A agent or an MCP server.")
    headers: dict[str, str] = Field(default={}, description="Headers for an MCP server; references like `${TOKEN}`.")
    headers_helper: str | None = Field(
        default=None,
        description="A shell's command line that prints more headers as a JSON object, at each connection.",
    )
    transport: str | None = Field(default=None, description="How an MCP server is reached: `stdio`, `http`, `sse`.")
    era: str | None = Field(default=None, description="Which MCP is spoken: `auto`, `modern`, `legacy`.")
    timeout: float | None = Field(default=None, gt=0, description="Seconds that a call of an MCP server may take.")
    connect_timeout: float | None = Field(default=None, gt=0, description="Seconds that an MCP server has to connect.")
    inputs: list[JsonObject] = Field(
        default=[],
        description="What an MCP server has to be told, as VS Code writes it: `id`, `description`, `password`, `options`,"
        " `default`; `${input:ID}` stands for it, and `anykit configure NAME` asks for it.",
    )
    allow: list[str] = Field(default=[], description="Its tools that are offered; globs over their names.")
    deny: list[str] = Field(default=[], description="Its tools that are not; globs. It wins.")
    tags: list[str] = Field(default=[], description="Tags that each of its tools gets.")
    oauth: JsonObject | bool | None = Field(default=None, description="OAuth for an MCP server, or false for none.")
    token: SecretStr | None = Field(default=None, description="What the host asks for; a reference like `${TOKEN}`.")
    kind: str | None = Field(
        default=None, description="What the source is, where it cannot be told: `python`, `a2e`, `a2a`, `mcp`, `http`."
    )
    name: str | None = Field(default=None, description="What it is called; it stands before the names of its tools.")
    enabled: bool = Field(default=True, description="Whether it is used at all.")
    disabled: list[str] = Field(default=[], description="Servers of a client's file that are not used.")
    required: bool = Field(default=False, description="Whether nothing starts without it.")
    toolkits: dict[str, JsonObject] = Field(default={}, description="Configurations for the toolkits of an A2E host.")


class KindTable(SourceConfig):
    """A table for one kind."""

    telling: ClassVar[frozenset[str]] = frozenset()
    """Keys that tell the kind where `kind` does not."""
    foreign: ClassVar[frozenset[str]] = frozenset(
        {
            *("command", "args", "env", "env_file", "cwd", "headers_helper", "transport", "era", "oauth", "toolkits"),
            *("connect_timeout", "inputs", "disabled"),
        }
    )
    """Keys of the common table that mean nothing to this kind."""

    @model_validator(mode="before")
    @classmethod
    def _no_foreign_keys(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            given = [key for key in cast("Mapping[str, Any]", data) if key in cls.foreign]
            if given:
                raise PydanticCustomError(
                    "foreign_key",
                    "{keys} means nothing to a source of kind {kind}; leave it out",
                    {"keys": ", ".join(f"`{key}`" for key in given), "kind": cls.own_kind},
                )
        return cast(Any, data)

    @classmethod
    def tells(cls, given: Mapping[str, Any]) -> bool:
        """Whether a table without `kind` is of this one."""
        return bool(cls.telling & given.keys())

    @classmethod
    def keys(cls) -> list[str]:
        """What may stand in the table."""
        return [field.alias or name for name, field in cls.model_fields.items() if name not in cls.foreign]


class HttpAuth(Table):
    """Credentials of an HTTP source."""

    bearer: SecretStr | None = Field(default=None, description="A token, as a reference like `${TOKEN}`.")
    basic: SecretStr | None = Field(default=None, description="`user:password`, as a reference.")


class HttpEndpoint(Table):
    """One endpoint: one tool."""

    name: str = Field(description="What the tool is called.")
    url: str = Field(
        description="Where it is, from `base_url` on; `{placeholders}` are arguments, one path segment each."
    )
    method: str = Field(default="GET", description="The HTTP method.")
    title: str | None = Field(default=None, description="A name for people.")
    description: str = Field(default="", description="What it does, for a model.")
    tags: list[str] = Field(default=[], description="Labels for filters and views.")
    query: dict[str, Json] = Field(default={}, description='Parameters behind `?`; `"{name}"` is an argument.')
    headers: dict[str, str] = Field(default={}, description="Headers; references and `{placeholders}`.")
    body: Json = Field(
        default=None,
        description="`json`, `form`, `multipart` (of the arguments that are left), or a table with one of these or `raw`.",
    )
    parameters: dict[str, Json] = Field(
        default={}, description="Schema of an argument by name: a JSON Schema, or a type such as `integer`."
    )
    input_schema: JsonObject | None = Field(default=None, description="JSON Schema of all arguments, instead.")
    output_schema: JsonObject | None = Field(default=None, description="JSON Schema of the result, where it is JSON.")
    result: Literal["auto", "text", "json", "status", "status+text", "binary"] | None = Field(
        default=None, description="What becomes of the answer: `auto`, `text`, `json`, `status` (and text), `binary`."
    )
    timeout: float | None = Field(default=None, gt=0, description="Seconds that a call may take.")
    idempotent: bool | None = Field(
        default=None, description="Whether a repetition does no harm; what the method says, if not given."
    )
    read_only: bool | None = Field(
        default=None, description="Whether nothing is changed by it; what the method says, if not given."
    )
    destructive: bool | None = Field(
        default=None, description="Whether it destroys something; what the method says, if not given."
    )
    retries: int | None = Field(default=None, ge=0, le=10, description="How often an idempotent request is repeated.")
    allow_redirects: bool | None = Field(default=None, description="Whether redirects are followed, at most five.")
    max_bytes: int | None = Field(
        default=None, ge=1024, le=64 * 1024 * 1024, description="Bytes of an answer that are taken."
    )


class HttpSourceConfig(KindTable):
    """HTTP endpoints as tools: one by itself, or several that share an address and headers."""

    own_kind: ClassVar[str | None] = "http"
    telling: ClassVar[frozenset[str]] = frozenset({"endpoints", "base_url", "method"})
    references: ClassVar[tuple[str, ...]] = ()  # read with its placeholders, so that a value holds none

    endpoints: list[HttpEndpoint] = Field(default=[], description="The endpoints `[[sources.endpoints]]`.")
    base_url: str | None = Field(default=None, description="What stands before the `url` of each endpoint.")
    auth: HttpAuth | None = Field(default=None, description="Credentials: `bearer` or `basic`.")
    method: str = Field(default="GET", description="The HTTP method.")
    title: str | None = Field(default=None, description="A name for people.")
    description: str = Field(default="", description="What it does, for a model.")
    tags: list[str] = Field(default=[], description="Labels for filters and views.")
    query: dict[str, Json] = Field(default={}, description="Parameters behind `?`, of every endpoint.")
    body: Json = Field(default=None, description="See the endpoints' `body`.")
    parameters: dict[str, Json] = Field(default={}, description="See the endpoints' `parameters`.")
    input_schema: JsonObject | None = Field(default=None, description="JSON Schema of all arguments, instead.")
    output_schema: JsonObject | None = Field(default=None, description="JSON Schema of the result, where it is JSON.")
    result: Literal["auto", "text", "json", "status", "status+text", "binary"] = Field(
        default="auto", description="What becomes of an answer."
    )
    idempotent: bool | None = Field(default=None, description="Whether a repetition does no harm.")
    read_only: bool | None = Field(default=None, description="Whether nothing is changed by it.")
    destructive: bool | None = Field(default=None, description="Whether it destroys something.")
    retries: int = Field(default=2, ge=0, le=10, description="How often an idempotent request is repeated.")
    allow_redirects: bool = Field(default=True, description="Whether redirects are followed, at most five.")
    max_bytes: int = Field(
        default=1024 * 1024, ge=1024, le=64 * 1024 * 1024, description="Bytes of an answer that are taken."
    )


class SkillsSourceConfig(KindTable):
    """Agent Skills: a folder, or the places where clients keep them if no `target` is given."""

    own_kind: ClassVar[str | None] = "skills"
    foreign: ClassVar[frozenset[str]] = KindTable.foreign | {"url", "headers", "timeout", "token"}
    references: ClassVar[tuple[str, ...]] = ("target",)

    include: list[str] = Field(
        default=[], description="Skills that are offered, by globs over their names; all, if none."
    )
    exclude: list[str] = Field(default=[], description="Skills that are not; globs. It wins.")


class OpenApiSourceConfig(KindTable):
    """An OpenAPI document: every operation a tool."""

    own_kind: ClassVar[str | None] = "openapi"
    telling: ClassVar[frozenset[str]] = frozenset(
        {"security", "server", "server_variables", "allow_refs", "document_headers"}
    )
    references: ClassVar[tuple[str, ...]] = (
        *("target", "url", "headers", "token", "security", "server", "server_variables", "document_headers"),
    )

    security: dict[str, str | dict[str, str | list[str]]] = Field(
        default={},
        repr=False,
        description="Secrets by the name of the document's security scheme: a key or token as a reference like `${TOKEN}`,"
        " `user:password`, or a table with `client_id`, `client_secret`, `scopes`, `token_url`.",
    )
    server: str | None = Field(
        default=None,
        description="Where calls go: a URL, or the name or description of a server that the document lists.",
    )
    server_variables: dict[str, str] = Field(default={}, description="Values for `{variables}` in a server's URL.")
    include: list[str] = Field(
        default=[],
        description="Operations that are offered: `tag:NAME`, `path:GLOB`, `operation:GLOB`, `method:NAME`, `GET /path`.",
    )
    exclude: list[str] = Field(default=[], description="Operations that are not, by the same rules. It wins.")
    allow_refs: list[str] = Field(
        default=[], description="Other documents that a `$ref` may lead to, as it is written or as a URL; globs."
    )
    document_headers: dict[str, str] = Field(default={}, description="Headers for fetching the document.")
    retries: int = Field(default=2, ge=0, le=10, description="How often an idempotent request is repeated.")
    max_bytes: int = Field(
        default=1024 * 1024, ge=1024, le=64 * 1024 * 1024, description="Bytes of an answer that are taken."
    )

    @classmethod
    def tells(cls, given: Mapping[str, Any]) -> bool:
        """Also a choice of operations from what can only be a document."""
        if super().tells(given):
            return True
        place = given.get("url") or given.get("target")
        is_document = isinstance(place, str) and place.endswith((".json", ".yaml", ".yml"))
        return is_document and bool({"include", "exclude"} & given.keys())


KINDS: dict[str, type[KindTable]] = {
    "skills": SkillsSourceConfig,
    "http": HttpSourceConfig,
    "openapi": OpenApiSourceConfig,
}
"""Tables by kind; any other kind has the common one."""

TABLES: dict[str, type[BaseModel]] = {table.__name__: table for table in (SourceConfig, *KINDS.values())}
"""The same by the name under which pydantic reports a place in them."""


def table_for(data: object) -> type[SourceConfig]:
    """The table that a source is written in: by its `kind`, else by a key that tells it."""
    if isinstance(data, SourceConfig):
        return type(data)
    if not isinstance(data, Mapping):
        return SourceConfig
    given = cast("Mapping[str, Any]", data)
    kind = given.get("kind")
    if kind is not None:
        return KINDS.get(kind, SourceConfig) if isinstance(kind, str) else SourceConfig
    return next((table for table in KINDS.values() if table.tells(given)), SourceConfig)


def _tag(value: object) -> str:
    return "str" if isinstance(value, str) else table_for(value).__name__


SourceEntry: TypeAlias = Annotated[
    Annotated[str, Tag("str")]
    | Annotated[SourceConfig, Tag("SourceConfig")]
    | Annotated[SkillsSourceConfig, Tag("SkillsSourceConfig")]
    | Annotated[HttpSourceConfig, Tag("HttpSourceConfig")]
    | Annotated[OpenApiSourceConfig, Tag("OpenApiSourceConfig")],
    Discriminator(_tag),
]
"""An item of `sources`."""


def published(schema: JsonObject) -> JsonObject:
    """The file's JSON Schema, with the source tables as a validator without our rules can hold a source against them."""
    definitions = cast("dict[str, Any]", schema["$defs"])
    for table in KINDS.values():
        properties = definitions[table.__name__]["properties"]
        for key in table.foreign:
            properties.pop(key, None)
        properties["kind"] = {"const": table.own_kind, "description": "What the source is."}
    definitions["SourceConfig"]["properties"]["kind"]["not"] = {"enum": [table.own_kind for table in KINDS.values()]}
    items = schema["properties"]["sources"]["items"]
    items["anyOf"] = items.pop("oneOf")
    items.pop("discriminator", None)
    return schema
