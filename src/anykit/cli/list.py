"""`anykit list`: what there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from anykit.capabilities import CapabilityError

from .errors import CommandError, Exit, usage
from .failures import of_capability
from .invocation import Invocation
from .place import Place, PromptRow, ResourceRow, SkillRow, SourceRow, ToolkitRow, ToolRow, opened

NOUNS = ("toolkits", "tools", "resources", "prompts", "skills", "sources")

Row = ToolkitRow | ToolRow | ResourceRow | PromptRow | SkillRow | SourceRow


def run(
    invocation: Invocation,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WHAT|SOURCE",
            help="toolkits, tools, resources, prompts, skills or sources, all of it by default; then where it comes from. A first"
            " word that is one of the six says what: write ./tools for a source of that name.",
            show_default=False,
        ),
    ] = None,
    names: Annotated[
        bool, typer.Option("--names", help="What tools are called here and at their source, and why that differs.")
    ] = False,
    view: Annotated[
        str | None,
        typer.Option(
            "--view", metavar="NAME", help="Only what is in this view of the configuration.", show_default=False
        ),
    ] = None,
) -> int:
    """List toolkits, tools, resources, prompts, skills and sources.

    Sources on the line replace those of the file; without any the built-in toolkits are listed. Tools of toolkits that
    are not configured are listed as not available.
    """
    words = tuple(what or ())
    noun, sources = (words[0], words[1:]) if words[:1] and words[0] in NOUNS else (None, words)
    if invocation.flags.connect and sources:
        raise usage(f"--connect acts on a running host, not on sources ({sources[0]})")
    if invocation.flags.connect and view:
        raise usage("--view is of the configuration here; a running host gives each token its own")
    if names and noun not in (None, "tools"):
        raise usage(f"--names lists tools, not {noun}")
    return invocation.run(_list(invocation, "tools" if names else noun, sources, view, names=names))


async def _list(
    invocation: Invocation, noun: str | None, sources: tuple[str, ...], view: str | None, *, names: bool
) -> int:
    try:
        async with opened(invocation, sources=sources, view=view) as place:
            found = {one: await _rows(place, one) for one in ([noun] if noun else NOUNS)}
            known = await place.sources()
    except CapabilityError as error:
        raise of_capability(error) from None
    if names:
        _print_names(invocation, [row for row in found["tools"] if isinstance(row, ToolRow)])
    elif noun:
        _print_one(invocation, noun, found[noun])
    else:
        _print_all(invocation, found)
    if noun != "sources" and known and all(source.state != "ready" for source in known if source.state != "disabled"):
        raise nothing_there(known)
    return Exit.OK


async def _rows(place: Place, noun: str) -> Sequence[Row]:
    match noun:
        case "toolkits":
            return await place.toolkits()
        case "tools":
            return await place.tools()
        case "resources":
            return await place.resources()
        case "prompts":
            return await place.prompts()
        case "skills":
            return await place.skills()
        case _:
            return await place.sources()


def nothing_there(sources: Sequence[SourceRow]) -> CommandError:
    """How a verb ends where no source is ready."""
    wanted = [source for source in sources if source.state != "disabled"]
    if not wanted:
        return CommandError("every source is switched off", code="no_source", exit=Exit.USAGE)
    unreachable = any(source.connects for source in wanted)
    return CommandError(
        "no source is available",
        code="unavailable" if unreachable else "no_source",
        exit=Exit.UNREACHABLE if unreachable else Exit.USAGE,
        fixes=[("look", "anykit list sources")],
    )


def _print_one(invocation: Invocation, noun: str, rows: Sequence[Row]) -> None:
    terminal = invocation.terminal
    if terminal.as_json:
        terminal.write_json([row.to_json() for row in rows])
    elif rows:
        columns, cells = table_of(rows)
        terminal.table(columns, cells)
    else:
        terminal.note(f"there are no {noun}")


def _print_names(invocation: Invocation, rows: Sequence[ToolRow]) -> None:
    terminal = invocation.terminal
    if terminal.as_json:
        terminal.write_json(
            [
                {"exposed": row.name, "original": row.original, "source": row.source, "reason": row.renamed or None}
                for row in rows
            ]
        )
    elif rows:
        cells = [(row.name, row.original, row.source, row.renamed) for row in rows]
        terminal.table(("exposed", "original", "source", "why renamed"), cells)
    else:
        terminal.note("there are no tools")


def _print_all(invocation: Invocation, found: dict[str, Sequence[Row]]) -> None:
    terminal = invocation.terminal
    if terminal.as_json:
        terminal.write_json([{"type": noun[:-1], **row.to_json()} for noun, rows in found.items() for row in rows])
        return
    first = True
    for noun, rows in found.items():
        if not rows:
            continue
        columns, cells = table_of(rows)
        if terminal.stdout_is_terminal:
            if not first:
                terminal.write("")
            terminal.heading(noun.capitalize())
            terminal.table(columns, cells)
        else:
            terminal.table(("type", *columns), [(noun[:-1], *row) for row in cells])
        first = False
    if first:
        terminal.note("there is nothing to list")


def table_of(rows: Sequence[Row]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Columns and cells of rows of one kind."""
    cells = [_cells(row) for row in rows]
    return _COLUMNS[type(rows[0])], cells


_COLUMNS: dict[type[Row], tuple[str, ...]] = {
    ToolkitRow: ("toolkit", "configured", "source", "tools", "description"),
    ToolRow: ("tool", "available", "toolkit", "source", "description"),
    ResourceRow: ("resource", "name", "type", "description"),
    PromptRow: ("prompt", "arguments", "description"),
    SkillRow: ("skill", "files", "toolkits", "source", "description"),
    SourceRow: ("source", "kind", "state", "reason"),
}


def _cells(row: Row) -> tuple[Any, ...]:
    match row:
        case ToolkitRow():
            return (row.name, row.configured, row.source, len(row.tools), first_line(row.description))
        case ToolRow():
            return (row.name, row.available, row.toolkit, row.source, first_line(row.description))
        case ResourceRow():
            return (row.uri, row.name, row.media_type, first_line(row.description))
        case PromptRow():
            arguments = ", ".join(one["name"] if one.get("required") else f"[{one['name']}]" for one in row.arguments)
            return (row.name, arguments, first_line(row.description))
        case SkillRow():
            return (row.name, len(row.files), ", ".join(row.toolkits), row.source, first_line(row.description))
        case SourceRow():
            return (row.name, row.kind, row.state, row.reason or row.location)


def first_line(text: str | None) -> str:
    """What a description begins with."""
    return (text or "").strip().partition("\n")[0]
