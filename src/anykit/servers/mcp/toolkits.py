"""Toolkits as resources: what can be configured, with its schema, and how. Never what it is configured with."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote

from anykit.capabilities import JsonObject, ResourceContents, ResourceDescriptor, TextPart
from anykit.runtime import Session, ToolkitView
from anykit.tools import to_json

PREFIX: Final = "anykit://toolkits/"


def uri_of(toolkit: str) -> str:
    """The URI of a toolkit."""
    return f"{PREFIX}{quote(toolkit, safe='')}"


def descriptors(session: Session) -> list[ResourceDescriptor]:
    """Every toolkit, as its caller sees it."""
    return [_descriptor(view) for view in session.toolkits()]


def _descriptor(view: ToolkitView) -> ResourceDescriptor:
    state = "configured" if view.configured else "not configured: its tools appear once it is"
    return ResourceDescriptor(
        id=uri_of(view.name),
        name=f"toolkit {view.name}",
        title=view.alias,
        description=f"{view.description} ({state})".strip(),
        media_type="application/json",
    )


def read(session: Session, uri: str) -> ResourceContents | None:
    """A toolkit's schema and state; None where the URI is none of a toolkit."""
    if not uri.startswith(PREFIX):
        return None
    view = session.toolkit(unquote(uri.removeprefix(PREFIX)))
    if view is None:
        return None
    shown: JsonObject = {
        "name": view.name,
        "alias": view.alias,
        "description": view.description,
        "category": view.category,
        "tags": list(view.tags),
        "version": view.version,
        "configured": view.configured,
        "tools": list(view.tools),
        "disabled": view.disabled,
        "schema": view.schema,
        "configure": how_to(view.name),
    }
    return ResourceContents(id=uri, parts=(TextPart(text=to_json(shown), media_type="application/json"),))


def how_to(toolkit: str) -> str:
    """How it gets configured. Secrets are no arguments of tools."""
    return (
        f"call one of its tools with a client that can open URLs for its user (elicitation, mode url), "
        f"or let the operator run: anykit configure {toolkit}"
    )
