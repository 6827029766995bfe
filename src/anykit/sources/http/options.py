"""What an operator says about an endpoint, as it is written; `endpoint` reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from anykit.capabilities import Json, JsonObject

from .results import ResultKind


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """One endpoint, as in the table `[[sources.endpoints]]` of the configuration; its keys are these."""

    name: str
    url: str = field(repr=False)
    method: str = "GET"
    title: str | None = None
    description: str = ""
    tags: tuple[str, ...] = ()
    query: Mapping[str, Json] = field(default_factory=dict[str, Json], repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    body: Json = field(default=None, repr=False)
    parameters: Mapping[str, Json] = field(default_factory=dict[str, Json])
    input_schema: JsonObject | None = None
    output_schema: JsonObject | None = None
    result: ResultKind = "auto"
    timeout: float | None = None
    idempotent: bool | None = None
    read_only: bool | None = None
    destructive: bool | None = None
    retries: int | None = None
    allow_redirects: bool = True
    max_bytes: int | None = None
    bearer: str | None = field(default=None, repr=False)
    basic: str | None = field(default=None, repr=False)
