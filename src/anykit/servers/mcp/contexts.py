"""What a request tells of itself. Imports the SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS, is_version_at_least

from anykit.capabilities import JsonObject

from .questions import Abilities
from .view import LEVELS, Level, View

Context: TypeAlias = ServerRequestContext[View, Any]


def is_modern(context: Context) -> bool:
    """Whether the request is of MCP 2026-07-28."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def principal_of(context: Context) -> str:
    """Whom its sender stands for."""
    return context.lifespan_context.principal


_TRACE: Final = ("traceparent", "tracestate", "baggage")


def trace_of(context: Context) -> JsonObject:
    """The trace that the call belongs to (W3C Trace Context); nothing else of the client's goes on."""
    meta = cast("Mapping[str, Any]", context.meta or {})
    return {name: meta[name] for name in _TRACE if isinstance(meta.get(name), str)}


def level_of(context: Context) -> Level | None:
    """From which level on logs are told; None tells none."""
    if not is_modern(context):
        return context.lifespan_context.level
    wanted = cast("Mapping[str, Any]", context.meta or {}).get(types.LOG_LEVEL_META_KEY)
    return wanted if wanted in LEVELS else None


def abilities_of(context: Context) -> Abilities:
    """What its client can be asked."""
    declared = context.session.client_capabilities
    if declared is None:
        return Abilities()
    elicitation = declared.elicitation
    modern = is_modern(context)
    return Abilities(
        # `{}` is what clients declare that know of forms only.
        form=elicitation is not None and (elicitation.form is not None or elicitation.url is None),
        url=elicitation is not None
        and elicitation.url is not None
        and (modern or is_version_at_least(context.protocol_version, "2025-11-25")),
        sampling=declared.sampling is not None,
        roots=declared.roots is not None,
    )
