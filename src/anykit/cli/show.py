"""`anykit show`: one toolkit, tool, resource, prompt or source, with all that is known of it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

from anykit.app import find_config
from anykit.capabilities import CapabilityError, JsonObject, Unavailable
from anykit.transports import public_url

from .errors import CommandError, Exit, not_found, usage
from .failures import of_capability
from .fields import Field, Form
from .invocation import Invocation
from .list import first_line
from .place import (
    AgentFacts,
    Place,
    PromptRow,
    ResourceRow,
    ServerFacts,
    SourceRow,
    ToolkitRow,
    ToolRow,
    did_you_mean,
    opened,
)
from .terminal import Terminal

_URL = re.compile(r"https?://", re.IGNORECASE)
Row = ToolkitRow | ToolRow | ResourceRow | PromptRow | SourceRow
KINDS: dict[str, type[Row]] = {
    "toolkit": ToolkitRow,
    "tool": ToolRow,
    "prompt": PromptRow,
    "resource": ResourceRow,
    "source": SourceRow,
}
"""In the order in which a name is looked up."""


def run(
    invocation: Invocation,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|CARD_URL",
            help="A toolkit, tool, prompt, resource (its URI), source, MCP server or agent; or the URL of an agent that is"
            " nowhere yet.",
        ),
    ],
    kind: Annotated[
        Literal["toolkit", "tool", "prompt", "resource", "source", "agent"] | None,
        typer.Option("--kind", help="Which, where several have that name.", show_default=False),
    ] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option(
            "--header",
            metavar="'NAME: VALUE'",
            help="For a card that not everybody may see; ${VARIABLE} is read. May be repeated.",
            show_default=False,
        ),
    ] = None,
) -> int:
    """Show one toolkit, tool, prompt, resource, source or agent.

    An agent's URL, its card's or its base, shows what its card says. That changes nothing and calls nothing.
    """
    if _URL.match(name) and not invocation.flags.connect and kind in (None, "agent"):
        return invocation.run(_show_card(invocation, name, headers or (), is_agent=kind == "agent"))
    if headers:
        raise usage("--header is for an agent's URL")
    return invocation.run(_show(invocation, name, kind))


async def _show_card(invocation: Invocation, url: str, headers: Sequence[str], *, is_agent: bool) -> int:
    """What is at a URL: an agent's card, else perhaps a resource that has it as its URI."""
    from .cards import card_at, facts_of_found, headers_of  # noqa: PLC0415 - only those who look at cards pay for A2A

    terminal = invocation.terminal
    shown = headers_of(headers, invocation.flags.token)
    try:
        with terminal.waiting(f"asking {public_url(url)} ..."):
            found, missing = await card_at(invocation, url, headers=shown, credentials={}, folder=str(Path.cwd()))
    except Unavailable as error:
        if not is_agent and (rows := await _resources(invocation, url)):
            return _show_found(invocation, url, rows, rows)
        raise CommandError(
            error.message,
            code="unavailable",
            exit=Exit.UNREACHABLE,
            fixes=[("if it is no agent", f"anykit list {shlex.quote(public_url(url))}")],
        ) from None
    facts = facts_of_found(found)
    if terminal.as_json:
        terminal.write_json({"type": "agent", **facts.to_json()})
        return Exit.OK
    _print_agent(terminal, facts)
    if missing:
        terminal.note(f"it asks its callers for {missing}")
    terminal.write("")
    terminal.write(f"add it:  anykit add {shlex.quote(url)}")
    return Exit.OK


async def _resources(invocation: Invocation, uri: str) -> list[Row]:
    """The resources with that URI among what is configured."""
    if find_config() is None and not invocation.flags.config and not invocation.flags.sources:
        return []
    try:
        async with opened(invocation) as place:
            return [row for row in await place.resources() if row.uri == uri]
    except CapabilityError:
        return []


async def _show(invocation: Invocation, name: str, kind: str | None) -> int:
    try:
        async with opened(invocation) as place:
            rows = await _everything(place)
    except CapabilityError as error:
        raise of_capability(error) from None
    found = [row for row in rows if _name_of(row) == name and _is_kind(row, kind)]
    found = found or [row for row in rows if _is_agent_called(row, name) and _is_kind(row, kind)]
    if not found:
        among = [_name_of(row) for row in rows if _is_kind(row, kind)]
        raise not_found(
            f"there is no {kind or 'toolkit, tool, prompt, resource or source'} {name!r}",
            *did_you_mean(name, among),
            ("look", "anykit list"),
        )
    return _show_found(invocation, name, found, rows)


def _is_kind(row: Row, kind: str | None) -> bool:
    if kind == "agent":
        return isinstance(row, SourceRow) and row.kind == "a2a"
    return kind is None or isinstance(row, KINDS[kind])


def _is_agent_called(row: Row, name: str) -> bool:
    """An agent may also be meant by what it calls itself."""
    return isinstance(row, SourceRow) and row.agent is not None and row.agent.name == name


def _show_found(invocation: Invocation, name: str, found: list[Row], rows: list[Row]) -> int:
    row = found[0]
    terminal = invocation.terminal
    if terminal.as_json:
        terminal.write_json({"type": _kind_of(row), **_whole_json(row)})
        return Exit.OK
    _print(terminal, row, rows)
    for other in found[1:]:
        terminal.note(f"there is also a {_kind_of(other)} {name}: anykit show {name} --kind {_kind_of(other)}")
    return Exit.OK


async def _everything(place: Place) -> list[Row]:
    return [
        *await place.toolkits(),
        *await place.tools(),
        *await place.prompts(),
        *await place.resources(),
        *await place.sources(),
    ]


def _name_of(row: Row) -> str:
    return row.uri if isinstance(row, ResourceRow) else row.name


def _kind_of(row: Row) -> str:
    return next(kind for kind, of in KINDS.items() if isinstance(row, of))


def _whole_json(row: Row) -> JsonObject:
    return row.to_whole_json() if isinstance(row, ToolRow | SourceRow) else row.to_json()


def _print(terminal: Terminal, row: Row, rows: list[Row]) -> None:
    match row:
        case ToolkitRow():
            _print_toolkit(terminal, row, [one for one in rows if isinstance(one, ToolRow)])
        case ToolRow():
            _print_tool(terminal, row)
        case PromptRow():
            _print_title(terminal, "prompt", row.name, row.title, row.description)
            if row.arguments:
                cells = [(one["name"], bool(one.get("required")), one.get("description")) for one in row.arguments]
                _print_table(terminal, "Arguments", ("argument", "required", "description"), cells)
        case ResourceRow():
            _print_title(terminal, "resource", row.uri, row.title or row.name, row.description)
            _print_facts(
                terminal,
                {"name": row.name, "type": row.media_type, "size": row.size, "template": row.is_template or None},
            )
        case SourceRow():
            _print_source(terminal, row)


def _print_title(terminal: Terminal, kind: str, name: str, title: str | None, description: str | None) -> None:
    terminal.write_title(name, kind)
    if title and title != name:
        terminal.write(title)
    if description:
        terminal.write(description)


def _print_facts(terminal: Terminal, facts: dict[str, Any]) -> None:
    known = [(name, value) for name, value in facts.items() if value not in (None, "", (), [])]
    if known:
        terminal.write("")
        terminal.table(("", ""), known)


def _print_table(terminal: Terminal, heading: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    terminal.write("")
    terminal.heading(heading)
    terminal.table(columns, rows)


def _print_toolkit(terminal: Terminal, row: ToolkitRow, tools: list[ToolRow]) -> None:
    _print_title(terminal, "toolkit", row.name, row.alias, row.description)
    _print_facts(
        terminal,
        {
            "configured": row.configured,
            "problem": row.problem,
            "category": row.category,
            "tags": ", ".join(row.tags),
            "version": row.version,
            "source": row.source,
        },
    )
    form = Form(row.schema)
    if form.fields:
        columns = ("field", "takes", "required", "default", "description")
        _print_table(terminal, "Configuration", columns, [_field_cells(field) for field in form.fields])
    described = {tool.name: tool for tool in tools}
    cells = [
        (name, row.disabled.get(name) or (first_line(described[name].description) if name in described else ""))
        for name in row.tools
    ]
    _print_table(terminal, "Tools", ("tool", "description"), cells)
    if not row.configured:
        terminal.write("")
        terminal.write(f"configure it:  {configure_line(row)}")


def configure_line(row: ToolkitRow) -> str:
    """The command that configures a toolkit, what it requires filled in with dots."""
    words = [
        f"--secret {field.name}" if field.secret else field.placeholder
        for field in Form(row.schema).fields
        if field.required
    ]
    return " ".join(["anykit configure", row.name, *words])


def _field_cells(field: Field) -> tuple[Any, ...]:
    kind = f"{field.kind}, secret" if field.secret else field.kind
    default = ""
    if field.has_default and not field.secret:
        default = field.default if isinstance(field.default, str) else json.dumps(field.default, ensure_ascii=False)
    return (field.name, kind, field.required, default, first_line(field.description))


def _print_tool(terminal: Terminal, row: ToolRow) -> None:
    _print_title(terminal, "tool", row.name, row.title, row.description)
    hints = [name.replace("_", " ") for name, value in row.annotations.items() if value is True]
    hints += [f"not {name.replace('_', ' ')}" for name, value in row.annotations.items() if value is False]
    _print_facts(
        terminal,
        {
            "available": row.available,
            "reason": row.reason,
            "toolkit": row.toolkit,
            "source": row.source,
            "original name": None if row.original == row.name else row.original,
            "hints": ", ".join(hints),
            "tags": ", ".join(row.tags),
            "returns": Form(row.output_schema).kind([row.output_schema]) if row.output_schema else None,
        },
    )
    fields = Form(row.input_schema).fields
    if fields:
        columns = ("argument", "takes", "required", "default", "description")
        _print_table(terminal, "Arguments", columns, [_field_cells(field) for field in fields])
    words = [field.placeholder for field in fields if field.required]
    terminal.write("")
    terminal.write(f"call it:  {' '.join(['anykit call', row.name, *words])}")


def _print_source(terminal: Terminal, row: SourceRow) -> None:
    _print_title(terminal, "source", row.name, None, None)
    _print_facts(
        terminal,
        {
            "kind": row.kind,
            "state": row.state,
            "reason": row.reason,
            "since": _when(row.since),
            "tries again": _when(row.retry_at),
            "location": row.location,
            "toolkits": ", ".join(row.toolkits),
            "tools": ", ".join(row.tools),
        },
    )
    if row.agent is not None:
        terminal.write("")
        _print_agent(terminal, row.agent)
    if row.server is not None:
        terminal.write("")
        _print_server(terminal, row.server, row.name)
    if row.reports:
        _print_table(terminal, "Reports", ("report",), [(report,) for report in row.reports])


def _print_agent(terminal: Terminal, agent: AgentFacts) -> None:
    _print_title(terminal, "A2A agent", agent.name, None, agent.description)
    extras = [word for word, holds in (("streaming", agent.streaming), ("extended card", agent.extended)) if holds]
    _print_facts(
        terminal,
        {
            "version": agent.version,
            "provider": agent.provider,
            "card": agent.url,
            "protocol": agent.protocol,
            "dialect": agent.dialect,
            "offers": ", ".join(extras),
            "security": agent.security,
            "documentation": agent.documentation,
        },
    )
    cells = [(one["url"], one["binding"], one["version"]) for one in agent.interfaces]
    _print_table(terminal, "Interfaces", ("url", "binding", "version"), cells)
    cells = [(one["id"], one["tool"], ", ".join(one["tags"]), first_line(one["description"])) for one in agent.skills]
    if cells:
        _print_table(terminal, "Skills", ("skill", "tool", "tags", "description"), cells)
    if agent.left_out:
        _print_table(terminal, "Left out", ("left out",), [(one,) for one in agent.left_out])


def _print_server(terminal: Terminal, server: ServerFacts, name: str) -> None:
    _print_title(terminal, "MCP server", server.server or name, None, server.instructions)
    _print_facts(
        terminal,
        {
            "protocol": server.protocol,
            "capabilities": ", ".join(_capability_words(server.capabilities)),
            "tools": server.tools,
            "resources": server.resources,
            "templates": server.templates,
            "prompts": server.prompts,
            "needs": server.needs,
            "process": server.pid,
            "tries": server.starts,
            "noise on stdout": server.noise or None,
        },
    )
    for heading, lines in (("Left out", server.left_out), ("stderr", server.stderr), ("Log", server.log)):
        if lines:
            _print_table(terminal, heading, (heading.lower(),), [(line,) for line in lines])


def _capability_words(capabilities: JsonObject) -> list[str]:
    """`tools (listChanged)`, `logging`, ...: each with what of it holds."""
    words: list[str] = []
    for name, said in capabilities.items():
        flags = (
            [key for key, value in cast(JsonObject, said).items() if value is True] if isinstance(said, dict) else []
        )
        words.append(f"{name} ({', '.join(flags)})" if flags else name)
    return words


def _when(moment: float | None) -> str | None:
    return None if moment is None else datetime.fromtimestamp(moment).isoformat(" ", "seconds")
