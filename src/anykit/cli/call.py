"""`anykit call`: one call, its text on stdout, its exit code by what became of it."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Callable
from typing import Annotated, Any

import typer

from anykit.capabilities import (
    Artifact,
    AudioPart,
    BlobPart,
    CapabilityError,
    ContentPart,
    EmbeddedResource,
    Event,
    ImagePart,
    JsonObject,
    Log,
    Progress,
    ResourceLink,
    Status,
    StructuredPart,
    Suspension,
    TextPart,
)
from anykit.schema import SchemaError, compile_schema
from anykit.tools import ToolResult, describe_part, to_json

from .arguments import assignments, filled, input_json
from .errors import CommandError, Exit, not_found
from .failures import CALL_EXITS, of_capability
from .fields import Form
from .invocation import Invocation
from .place import Place, ToolkitRow, ToolRow, did_you_mean, opened
from .questions import example_of
from .show import configure_line
from .terminal import Terminal


def run(
    invocation: Invocation,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The tool's name.", show_default=False)],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="k=v|k:=JSON",
            help="Arguments. k=v is read as the tool's schema says (a text, a number, true or false); k:=JSON is JSON;"
            " a.b=v reaches into an object; a name that comes again makes a list.",
            show_default=False,
        ),
    ] = None,
    input_json_text: Annotated[
        str | None,
        typer.Option(
            "--input-json",
            metavar="JSON|@FILE|-",
            help="All arguments as one JSON object, from a file, or from stdin; k=v goes over it.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything and print the call, without making it.")
    ] = False,
) -> int:
    """Call a tool and print what it returns.

    With --json the result as MCP spells it: content, structuredContent, isError. --timeout is how long to wait for the
    tool's source, and where it is given the call's own deadline. Ctrl-C cancels the call.
    """
    given = assignments(arguments or [])
    whole = input_json(input_json_text, invocation.terminal)

    def made(row: ToolRow | None) -> JsonObject:
        return filled(Form({} if row is None else row.input_schema), given, whole)

    return invocation.run(_call(invocation, tool, made, dry_run=dry_run))


async def _call(
    invocation: Invocation, name: str, made: Callable[[ToolRow | None], JsonObject], *, dry_run: bool
) -> int:
    terminal = invocation.terminal
    try:
        async with opened(invocation, wanted=name) as place:
            rows = await place.tools()
            row = next((row for row in rows if row.name == name), None)
            if row is None:
                raise await _unknown(place, name, rows)
            arguments = made(row)
            if dry_run:
                return _print_dry_run(terminal, row, arguments)
            events = EventLines(terminal)
            with terminal.waiting(f"calling {name} ..."):
                result = await place.call(name, arguments, timeout=invocation.flags.timeout, listen=events)
            toolkits = await place.toolkits() if result.is_error else []
            outlives = result.suspension is not None and place.outlives(result.suspension.id)
    except CapabilityError as error:
        raise of_capability(error) from None
    return printed(invocation, result, row, toolkits, outlives=outlives)


def printed(
    invocation: Invocation, result: ToolResult, row: ToolRow, toolkits: list[ToolkitRow], *, outlives: bool
) -> int:
    """Print what a call gave. `outlives`: its question, if it asks one, can be answered by a later process.

    Raises `CommandError` where it did not give a result.
    """
    terminal = invocation.terminal
    if terminal.as_json:
        terminal.write_json(mcp_result(result))
    elif not result.is_error:
        terminal.write(result.output)
    if result.suspension is not None:
        raise _question(invocation, result.suspension, outlives=outlives)
    if result.is_error:
        raise _failure(result, row, toolkits, is_remote=bool(invocation.flags.connect))
    return Exit.OK


def _question(invocation: Invocation, asked: Suspension, *, outlives: bool) -> CommandError:
    """It waits: what for, and how to answer."""
    message = asked.prompt if asked.url is None or asked.url in asked.prompt else f"{asked.prompt}\n{asked.url}"
    if outlives:
        fixes = [("answer it", example_of(asked, _same_place(invocation)))]
    elif asked.url is not None:
        fixes = [("answer it", asked.url)]
    else:
        fixes = []
        message = f"{message}\n[it asked in the middle of the call, which ended with this process]"
    return CommandError(message, code="suspended", exit=Exit.WAITING, fixes=fixes)


def _same_place(invocation: Invocation) -> list[str]:
    """The flags with which another command acts where this one did."""
    flags = invocation.flags
    pairs = [("--config", flags.config), ("--env", flags.env), ("--data-dir", flags.data_dir)]
    pairs += [("--source", source) for source in flags.sources]
    return [word for name, value in pairs if value for word in (name, value)]


async def _unknown(place: Place, name: str, rows: list[ToolRow]) -> CommandError:
    if why := place.held_back(name):
        return CommandError(f"{name} cannot run: {why}", code="disabled", exit=Exit.DENIED)
    down = [source for source in await place.sources() if source.state in ("failed", "connecting")]
    behind = [source for source in down if source.connects and name.startswith(f"{source.name}_")]
    usable = any(source.state == "ready" for source in await place.sources())
    reasons = "; ".join(f"source {source.name} is not available: {source.reason or 'no answer yet'}" for source in down)
    message = f"there is no tool {name!r}" + (f"; {reasons}" if reasons else "")
    if behind or (down and not usable and any(source.connects for source in down)):
        return CommandError(message, code="unavailable", exit=Exit.UNREACHABLE)
    fixes = did_you_mean(name, [row.name for row in rows])
    return not_found(message, *fixes, ("look", "anykit list tools"), code="unknown_tool")


def _print_dry_run(terminal: Terminal, row: ToolRow, arguments: JsonObject) -> int:
    try:
        validator = compile_schema(row.input_schema)
        faults = validator.faults(arguments)
        whole = validator.with_defaults(arguments) if not faults else arguments
    except SchemaError as error:
        raise CommandError(f"{row.name} cannot be called: {error}", code="unavailable", exit=Exit.FAILED) from None
    if faults:
        lines = [f"{fault['path'] or '/'}: {fault['message']}" for fault in faults]
        message = "\n".join([f"invalid arguments for {row.name}", *lines])
        raise CommandError(message, code="invalid_input", exit=Exit.USAGE)
    if not row.available:
        terminal.warn(f"it would be refused as things are: {row.reason}")
    terminal.write_json({"name": row.name, "arguments": whole, "available": row.available, "reason": row.reason})
    return Exit.OK


class EventLines:
    """What a running call says, on stderr."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._said = ""

    def __call__(self, event: Event) -> None:
        """Show one event."""
        match event:
            case Progress(done, total, message):
                part = f"{done:g}" if total is None else f"{done:g}/{total:g}"
                self._terminal.progress(f"{part} {message}".rstrip())
            case Status(message):
                self._status(message)
            case Log(level, message):
                if level in ("warning", "error"):
                    self._terminal.warn(message)
                elif level == "info":
                    self._terminal.note(message)
                else:
                    self._terminal.detail(message)
            case Artifact(name, part):
                self._terminal.detail(f"{name}: {describe_part(part)}")

    def _status(self, message: str) -> None:
        """How it stands: over itself for people, in a pipe a line whenever it changed."""
        if self._terminal.stderr_is_terminal:
            self._terminal.progress(message)
        elif message != self._said:
            self._terminal.note(message)
        self._said = message


def _failure(result: ToolResult, row: ToolRow, toolkits: list[ToolkitRow], *, is_remote: bool) -> CommandError:
    code = result.code or result.status
    exit = CALL_EXITS.get(code, Exit.DENIED if result.status == "denied" else Exit.FAILED)
    fixes: list[tuple[str, str]] = []
    toolkit = next((one for one in toolkits if one.name == row.toolkit), None)
    if code == "not_configured" and toolkit is not None:
        fixes.append(("configure it", configure_line(toolkit)))
    elif code == "invalid_input":
        fixes.append(("look", f"anykit show {shlex.quote(row.name)}"))
    elif code == "internal":
        fixes.append(("see why", "the host's log" if is_remote else "run it again with -v"))
    return CommandError(result.output, code=code, exit=exit, fixes=fixes)


def mcp_result(result: ToolResult) -> JsonObject:
    """A result as MCP spells it."""
    spelled: JsonObject = {"content": [mcp_part(part) for part in result.content], "isError": result.is_error}
    if result.structured is not None or _is_null(result):
        spelled["structuredContent"] = result.structured
    meta = {key: value for key, value in result.metadata.items() if value is not None}
    if result.is_error and meta:
        spelled["_meta"] = {"anykit/code": meta.get("code"), "anykit/retryable": meta.get("retryable", False)}
    return spelled


def _is_null(result: ToolResult) -> bool:
    """Whether the tool returned null, which is not the same as nothing structured."""
    return result.status == "completed" and result.output == "null" and len(result.content) == 1


def mcp_part(part: ContentPart) -> JsonObject:
    """A content part as MCP 2026-07-28 spells it."""
    match part:
        case TextPart(text=text):
            return {"type": "text", "text": text}
        case ImagePart(data=data, media_type=media_type):
            return {"type": "image", "data": _base64(data), "mimeType": media_type}
        case AudioPart(data=data, media_type=media_type):
            return {"type": "audio", "data": _base64(data), "mimeType": media_type}
        case BlobPart(data=None, uri=uri, name=name, media_type=media_type):
            return _known(type="resource_link", uri=uri or "", name=name or "file", mimeType=media_type)
        case BlobPart(data=data, uri=uri, name=name, media_type=media_type):
            place = uri or f"anykit://result/{name or 'file'}"
            return {
                "type": "resource",
                "resource": {"uri": place, "blob": _base64(data or b""), "mimeType": media_type},
            }
        case ResourceLink():
            return _known(
                type="resource_link",
                uri=part.uri,
                name=part.name or part.uri,
                title=part.title,
                description=part.description,
                mimeType=part.media_type,
                size=part.size,
            )
        case EmbeddedResource():
            inner = _known(uri=part.uri, mimeType=part.media_type, text=part.text)
            if part.text is None:
                inner["blob"] = _base64(part.data or b"")
            return {"type": "resource", "resource": inner}
        case StructuredPart(value=value):
            return {"type": "text", "text": to_json(value)}


def _known(**fields: Any) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
