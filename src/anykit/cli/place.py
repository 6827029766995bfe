"""Where a verb acts: a workbench of its own (`local`), or a running host (`remote`). Both show the same rows."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from anykit.capabilities import Event, JsonObject
from anykit.runtime import Configured
from anykit.tools import ToolResult

from .invocation import Invocation


@dataclass(frozen=True, slots=True)
class ToolRow:
    """A tool; also one that cannot be called now, with the reason."""

    name: str
    original: str
    source: str
    toolkit: str | None
    available: bool
    reason: str | None
    input_schema: JsonObject
    annotations: JsonObject
    title: str | None = None
    description: str = ""
    output_schema: JsonObject | None = None
    tags: tuple[str, ...] = ()
    renamed: str = ""
    """Why its name is not the source's own."""

    def to_json(self) -> JsonObject:
        """As `list` shows it."""
        return {
            "name": self.name,
            "original": self.original,
            "source": self.source,
            "toolkit": self.toolkit,
            "available": self.available,
            "reason": self.reason,
            "input_schema": self.input_schema,
            "annotations": self.annotations,
        }

    def to_whole_json(self) -> JsonObject:
        """As `show` shows it."""
        more = {"title": self.title, "description": self.description, "output_schema": self.output_schema}
        return {**self.to_json(), **more, "tags": list(self.tags)}


@dataclass(frozen=True, slots=True)
class ToolkitRow:
    """A toolkit."""

    name: str
    alias: str
    description: str
    category: str
    tags: tuple[str, ...]
    icon_svg: str | None
    schema: JsonObject
    tools: tuple[str, ...]
    configured: bool
    version: str
    source: str
    disabled: dict[str, str] = field(default_factory=dict[str, str])
    """Tools that are switched off, with why."""
    problem: str | None = None
    """Why its configuration could not be applied."""

    def to_json(self) -> JsonObject:
        """As `list` and `show` show it: the definition as it travels over A2E, and what is only known here."""
        return {
            "name": self.name,
            "alias": self.alias,
            "description": self.description,
            "category": self.category,
            "tags": list(self.tags),
            "icon_svg": self.icon_svg,
            "schema": self.schema,
            "tools": list(self.tools),
            "configured": self.configured,
            "version": self.version,
            "source": self.source,
            "disabled": self.disabled,
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True)
class ResourceRow:
    """A resource, or with `is_template` a family of them."""

    uri: str
    name: str
    title: str | None
    description: str | None
    media_type: str | None
    size: int | None = None
    is_template: bool = False

    def to_json(self) -> JsonObject:
        """As `list` and `show` show it."""
        return {
            "uri": self.uri,
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "media_type": self.media_type,
            "size": self.size,
            "template": self.is_template,
        }


@dataclass(frozen=True, slots=True)
class PromptRow:
    """A prompt; `arguments` are `{name, description, required}`."""

    name: str
    title: str | None
    description: str | None
    arguments: tuple[JsonObject, ...]

    def to_json(self) -> JsonObject:
        """As `list` and `show` show it."""
        arguments = list(self.arguments)
        return {"name": self.name, "title": self.title, "description": self.description, "arguments": arguments}


@dataclass(frozen=True, slots=True)
class SkillRow:
    """A skill."""

    name: str
    description: str
    source: str
    location: str
    """Its `SKILL.md`."""
    scope: str
    """Who put it there: `given`, `project`, `user` or `system`."""
    files: tuple[str, ...] = ()
    toolkits: tuple[str, ...] = ()
    """Toolkits that it wants."""
    reports: tuple[str, ...] = ()

    def to_json(self) -> JsonObject:
        """As `list` shows it."""
        return {
            "name": self.name,
            "description": self.description,
            "source": self.source,
            "location": self.location,
            "scope": self.scope,
            "files": list(self.files),
            "toolkits": list(self.toolkits),
            "reports": list(self.reports),
        }


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """What an agent's card says, fit to be shown."""

    name: str
    description: str
    version: str
    url: str | None
    """Where the card came from."""
    protocol: str
    """The version of A2A in use."""
    dialect: str
    """The version and binding in use."""
    interfaces: tuple[JsonObject, ...]
    """`{url, binding, version}`, the preferred first."""
    skills: tuple[JsonObject, ...]
    """`{id, name, description, tags, examples, tool}`."""
    streaming: bool
    extended: bool
    """Whether callers that prove who they are may see more."""
    schemes: dict[str, str]
    """What each security scheme wants, in words."""
    required: tuple[tuple[str, ...], ...]
    """Alternatives, each the schemes that it needs together; none: everybody may call."""
    provider: str = ""
    documentation: str = ""
    left_out: tuple[str, ...] = ()
    """What of the card is not used, and why."""

    @property
    def security(self) -> str:
        """What it asks of its callers, in words."""
        if not self.required:
            return "none is required"
        alternatives = [
            " and ".join(f"{name} ({self.schemes[name]})" if name in self.schemes else name for name in one)
            or "nothing"
            for one in self.required
        ]
        return ", or ".join(alternatives)

    def to_json(self) -> JsonObject:
        """As `show` shows it."""
        return {
            "name": self.name,
            "description": self.description,
            "version": self.version,
            "url": self.url,
            "protocol": self.protocol,
            "dialect": self.dialect,
            "interfaces": list(self.interfaces),
            "streaming": self.streaming,
            "extended": self.extended,
            "skills": list(self.skills),
            "security": {"schemes": self.schemes, "required": [list(one) for one in self.required]},
            "provider": self.provider,
            "documentation": self.documentation,
            "left_out": list(self.left_out),
        }


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What is known of an MCP server, fit to be shown."""

    server: str
    """Name and version, as it says."""
    protocol: str
    """The revision of MCP in use."""
    instructions: str
    capabilities: JsonObject
    """What it said that it can, as MCP spells it; {} while it is away."""
    tools: int
    resources: int
    templates: int
    prompts: int
    needs: str = ""
    """`login`, `credentials` or `permission`, where it did not let us in."""
    noise: int = 0
    """Lines on its stdout that were no messages."""
    starts: int = 0
    """How often it was tried."""
    pid: int | None = None
    left_out: tuple[str, ...] = ()
    """What of its lists is not offered as it was listed, and why."""
    stderr: tuple[str, ...] = ()
    """The last lines that it wrote to stderr."""
    log: tuple[str, ...] = ()
    """The last lines of its log."""

    def to_json(self) -> JsonObject:
        """As `show` shows it."""
        return {
            "server": self.server,
            "protocol": self.protocol,
            "instructions": self.instructions,
            "capabilities": self.capabilities,
            "tools": self.tools,
            "resources": self.resources,
            "templates": self.templates,
            "prompts": self.prompts,
            "needs": self.needs,
            "noise": self.noise,
            "starts": self.starts,
            "pid": self.pid,
            "left_out": list(self.left_out),
            "stderr": list(self.stderr),
            "log": list(self.log),
        }


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A source. Times are Unix seconds."""

    name: str
    kind: str
    state: str
    reason: str | None
    since: float | None
    retry_at: float | None
    location: str = ""
    connects: bool = False
    """Whether it lies behind a connection, so that failing means unreachable."""
    tools: tuple[str, ...] = ()
    toolkits: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    agent: AgentFacts | None = None
    """Of an A2A agent, once its card was read."""
    server: ServerFacts | None = None
    """Of an MCP server."""

    def to_json(self) -> JsonObject:
        """As `list` shows it."""
        return {
            "name": self.name,
            "kind": self.kind,
            "state": self.state,
            "reason": self.reason,
            "since": self.since,
            "retry_at": self.retry_at,
        }

    def to_whole_json(self) -> JsonObject:
        """As `show` shows it."""
        more = {"location": self.location, "tools": list(self.tools), "toolkits": list(self.toolkits)}
        whole: JsonObject = {**self.to_json(), **more, "reports": list(self.reports)}
        if self.agent is not None:
            whole["agent"] = self.agent.to_json()
        if self.server is not None:
            whole["server"] = self.server.to_json()
        return whole


class Place(Protocol):
    """What verbs need. Methods raise `CapabilityError`."""

    async def tools(self) -> list[ToolRow]:
        """Every tool, also those of unconfigured toolkits."""
        ...

    async def toolkits(self) -> list[ToolkitRow]:
        """Every toolkit."""
        ...

    async def resources(self) -> list[ResourceRow]:
        """Every resource and template."""
        ...

    async def prompts(self) -> list[PromptRow]:
        """Every prompt."""
        ...

    async def skills(self) -> list[SkillRow]:
        """Every skill that counts."""
        ...

    async def sources(self) -> list[SourceRow]:
        """Every source, disabled and failed ones too."""
        ...

    async def call(
        self, name: str, arguments: JsonObject, *, timeout: float | None, listen: Callable[[Event], None]
    ) -> ToolResult:
        """Call a tool; a failure is a result."""
        ...

    def held_back(self, name: str) -> str:
        """Why a tool is not offered though it is there; "" where nothing holds it back."""
        ...

    def outlives(self, id: str) -> bool:
        """Whether a question can still be answered once this process has ended."""
        ...

    async def stored(self, toolkit: str) -> JsonObject:
        """The configuration that is kept for a toolkit, as it was written: with secrets, with references; {} for none."""
        ...

    def said(self, toolkit: str) -> JsonObject:
        """What the file says of a toolkit's configuration; that goes over what is kept."""
        ...

    async def configure(self, toolkit: ToolkitRow, config: JsonObject) -> Configured:
        """Apply a configuration as the operator wrote it, with what the file says over it, and keep it."""
        ...

    async def unconfigure(self, toolkit: str) -> bool:
        """Take a configuration away; False where there was none."""
        ...


def opened(
    invocation: Invocation,
    *,
    sources: tuple[str, ...] = (),
    wanted: str | None = None,
    configuring: bool = False,
    view: str | None = None,
) -> AbstractAsyncContextManager[Place]:
    """The place that an invocation means; `sources` are those named on the line.

    With `view` it is that part of everything. With `wanted`, a tool or toolkit, nothing is waited for once that is known. `configuring` says that it is about to be
    configured, so that its earlier configuration need not work any more.
    """
    if invocation.flags.connect:
        from .remote import RemotePlace  # noqa: PLC0415 - each verb pays only for the place it acts at

        return RemotePlace.opened(invocation, wanted=wanted, configuring=configuring)
    from .local import LocalPlace  # noqa: PLC0415

    return LocalPlace.opened(invocation, sources=sources, wanted=wanted, configuring=configuring, view=view)


def did_you_mean(name: str, known: Iterable[str]) -> list[tuple[str, str]]:
    """A fix line with the nearest name, or none."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    close = close or [candidate for candidate in names if candidate.endswith(f"_{name}")][:1]
    return [("did you mean", close[0])] if close else []


def variable_of(toolkit: str, *path: str) -> str:
    """The environment variable that holds a field of a toolkit's configuration: `TICKETS_API_KEY`."""
    text = "_".join((toolkit, *path))
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in text).upper()


def here(path: str) -> Path:
    """A path as it was typed, absolute."""
    return Path(path).expanduser().absolute()


def hints_of(annotations: Any) -> JsonObject:
    """An annotations model as JSON, without what is unknown."""
    return {} if annotations is None else annotations.model_dump(exclude_none=True)
