"""`anykit schema`: the tools as a model provider's request, or a protocol's list, has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import typer

from anykit.adapters import Exported, StrictRefused
from anykit.adapters.exports import is_wanted
from anykit.capabilities import CapabilityError, JsonObject
from anykit.runtime import ToolEntry

from .errors import CommandError, Exit, not_found, usage
from .failures import of_capability
from .invocation import Invocation
from .list import nothing_there
from .local import LocalPlace
from .place import ToolRow, did_you_mean
from .terminal import Terminal

Format = Literal["openai", "openai-responses", "anthropic", "gemini", "mcp", "a2e"]
LINES = 40
"""Remarks about single tools that are printed; -v prints all."""
NAMES = 8
"""Names that one line lists."""


def run(
    invocation: Invocation,
    format: Annotated[Format, typer.Option("--format", help="Whose request or list it is for.", show_default=False)],
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="SOURCE", help="Where the tools come from, instead of the file.", show_default=False),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="For the provider's strict mode; exit code 6 where a schema stands in the way."),
    ] = False,
    tools: Annotated[
        list[str] | None,
        typer.Option("--tools", metavar="GLOB", help="Only tools of that name or pattern; may be repeated."),
    ] = None,
) -> int:
    """Print the tools as the value of a request's `tools` field, a JSON list.

    What a provider's schemas cannot say stands in their descriptions and is told on stderr; calls are held against the
    original schema. Tools that cannot be called now are left out, and named.
    """
    if strict and format not in ("openai", "openai-responses", "anthropic"):
        raise usage(f"{format} has no strict mode for tools; --strict is for openai, openai-responses and anthropic")
    return invocation.run(_schema(invocation, format, tuple(tools or ()), tuple(sources or ()), strict=strict))


async def _schema(
    invocation: Invocation, format: Format, patterns: Sequence[str], sources: tuple[str, ...], *, strict: bool
) -> int:
    terminal = invocation.terminal
    wanted = patterns or None
    try:
        async with LocalPlace.opened(invocation, sources=sources) as place:
            entries = [
                entry for entry in place.bench.session(face="command").entries() if is_wanted(entry.tool.name, wanted)
            ]
            rows, known = await place.tools(), await place.sources()
            _check_patterns(terminal, patterns, rows)
            shown = _shown(terminal, place, entries, format, wanted, strict=strict)
    except CapabilityError as error:
        raise of_capability(error) from None
    terminal.write_json(shown)
    _say_what_is_missing(terminal, [row for row in rows if not row.available and is_wanted(row.name, wanted)])
    if known and all(source.state != "ready" for source in known if source.state != "disabled"):
        raise nothing_there(known)
    return Exit.OK


def _check_patterns(terminal: Terminal, patterns: Sequence[str], rows: Sequence[ToolRow]) -> None:
    """A name that nothing has is an error, a pattern that nothing falls under a warning."""
    names = [row.name for row in rows]
    for pattern in patterns:
        if any(is_wanted(name, pattern) for name in names):
            continue
        if any(sign in pattern for sign in "*?["):
            terminal.warn(f"no tool falls under {pattern}")
        else:
            raise not_found(
                f"there is no tool {pattern}",
                *did_you_mean(pattern, names),
                ("look", "anykit list tools"),
                code="unknown_tool",
            )


def _shown(
    terminal: Terminal,
    place: LocalPlace,
    entries: Sequence[ToolEntry],
    format: Format,
    wanted: Sequence[str] | None,
    *,
    strict: bool,
) -> list[JsonObject]:
    if format == "mcp":
        from anykit.servers.mcp.definitions import offered  # noqa: PLC0415 - only those who ask for it pay for MCP

        return [offered(entry).definition for entry in entries]
    if format == "a2e":
        from anykit.servers.a2e.definitions import tool_definition  # noqa: PLC0415 - the same for A2E

        return [tool_definition(entry).model_dump(mode="json") for entry in entries]
    try:
        exported = place.bench.exported(format, strict=strict, tools=wanted)
    except StrictRefused as error:
        for tool, refusal in error.refusals:
            terminal.warn(f"{tool}: {refusal}")
        tools = list(dict.fromkeys(tool for tool, _ in error.refusals))
        raise CommandError(
            f"{_listed(tools)} cannot be strict for {format} without another meaning",
            code="strict_refused",
            exit=Exit.FINDINGS,
            fixes=[("leave them out", "--tools GLOB"), ("or", f"anykit schema --format {format}")],
        ) from None
    _say_what_to_know(terminal, exported)
    return exported.tools


def _say_what_to_know(terminal: Terminal, exported: Exported) -> None:
    single = [remark for remark in exported.remarks if remark.tool is not None]
    shown = single if terminal.verbose else single[:LINES]
    for remark in shown:
        terminal.warn(str(remark))
    if len(shown) < len(single):
        terminal.warn(f"and {len(single) - len(shown)} more about other tools; -v prints all")
    for remark in exported.remarks:
        if remark.tool is None:
            terminal.warn(str(remark))


def _say_what_is_missing(terminal: Terminal, rows: Sequence[ToolRow]) -> None:
    reasons: dict[tuple[str | None, str], list[str]] = {}
    for row in rows:
        reason = f"toolkit {row.toolkit} is not configured" if row.toolkit else row.reason or "not available"
        reasons.setdefault((row.toolkit, reason), []).append(row.name)
    for (_, reason), names in reasons.items():
        terminal.warn(f"left out, {reason}: {_listed(names)}")


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - NAMES
    return ", ".join(names[:NAMES]) + (f" and {rest} more" if rest > 0 else "")
