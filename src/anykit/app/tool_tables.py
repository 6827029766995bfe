"""The tables `[tools.NAME]` and `[views.NAME]`, and those by which a face or a token gets a view."""

from __future__ import annotations

from typing import Any

from pydantic import Field, SecretStr

from .source_tables import Table


class ArgumentConfig(Table):
    """What becomes of one argument of a tool."""

    hide: bool = Field(default=False, description="Callers do not see it; without a `value` it is left out.")
    value: Any = Field(
        default=None, description="It always has this value, and callers do not see it; a reference stays secret."
    )
    default: Any = Field(default=None, description="What it is where callers do not give it; they need not, then.")
    name: str | None = Field(default=None, description="What callers call it.")
    description: str | None = Field(default=None, description="What it is for, for a model.")


class HintsConfig(Table):
    """Hints about a tool's behaviour, over those of its source."""

    title: str | None = Field(default=None, description="A name for people.")
    read_only: bool | None = Field(default=None, description="Nothing is changed by it.")
    destructive: bool | None = Field(default=None, description="It may destroy something.")
    idempotent: bool | None = Field(default=None, description="A repetition does no more.")
    open_world: bool | None = Field(default=None, description="It reaches beyond what is known here.")


class ToolConfig(Table):
    """What the operator says about one tool: by the name that callers see, or as `source/original`."""

    enabled: bool = Field(default=True, description="Whether it is offered at all.")
    name: str | None = Field(default=None, description="What it is called instead.")
    title: str | None = Field(default=None, description="A name for people.")
    description: str | None = Field(default=None, description="What it does, for a model.")
    tags: list[str] = Field(default=[], description="Tags that it gets beside its own.")
    annotations: HintsConfig | None = Field(default=None, description="Hints, over those of its source.")
    timeout: float | None = Field(default=None, gt=0, description="Seconds that a call may take.")
    max_output: int | None = Field(default=None, ge=1, description="Bytes of text that reach a model.")
    deferred: bool | None = Field(
        default=None, description="Whether it is left out of lists, to be found by `find_tools`; false keeps it listed."
    )
    arguments: dict[str, ArgumentConfig] = Field(default={}, description="What becomes of its arguments, by name.")


class ViewConfig(Table):
    """A part of everything, for a face, a token or a model.

    Patterns are globs over names (`crm_*`, `source/original`, URIs), or `tag:GLOB`, `source:GLOB`, `toolkit:GLOB`.
    """

    description: str = Field(default="", description="What it is for, for people.")
    include: list[str] = Field(default=[], description="What is in it; all, where neither this nor `tags` is given.")
    exclude: list[str] = Field(default=[], description="What is not; it wins.")
    tags: list[str] = Field(default=[], description="Tools with one of these tags are in it too.")
    resources: list[str] | None = Field(
        default=None, description="Resources that are in it, by URI or name; as `include` says, if not given."
    )
    prompts: list[str] | None = Field(
        default=None, description="Prompts that are in it; as `include` says, if not given."
    )
    deferred_after: int | None = Field(
        default=None, ge=0, description="So many tools are listed; the rest is found by `find_tools`."
    )
    listed: list[str] = Field(default=[], description="Tools that stay listed, before any others.")


class FacesConfig(Table):
    """Which view a face serves, instead of everything."""

    a2e: str | None = Field(default=None, description="The view that is served over A2E.")
    mcp: str | None = Field(default=None, description="The view that is served over MCP.")
    a2a: str | None = Field(default=None, description="The view that is served over A2A, its card included.")


class TokenConfig(Table):
    """A further bearer token, and whom it stands for."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Whom it stands for; the journal shows this name."
    )
    token: SecretStr = Field(description="What the caller must show; a reference like `${TOKEN}`.")
    view: str | None = Field(default=None, description="The view that it is served, over every face.")
