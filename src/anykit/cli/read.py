"""`anykit read`: one resource, its text on stdout, its bytes into a file."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from anykit.capabilities import (
    AudioPart,
    BlobPart,
    CapabilityError,
    ContentPart,
    EmbeddedResource,
    ImagePart,
    InvalidInput,
    JsonObject,
    ResourceContents,
    StructuredPart,
    TextPart,
)
from anykit.tools import describe_part, to_json

from .call import mcp_part
from .errors import CommandError, Exit, not_found, usage
from .failures import of_capability
from .invocation import Invocation
from .local import LocalPlace
from .place import SourceRow, did_you_mean, here
from .terminal import Terminal

READ_SECONDS = 60.0
"""What one read may take where no --timeout is given."""
_ADDRESS = "resource://anykit/read"


def run(
    invocation: Invocation,
    uri: Annotated[str, typer.Argument(metavar="URI", help="The resource's URI, as `list resources` shows it.")],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write it there, byte for byte.", show_default=False),
    ] = None,
) -> int:
    """Read a resource and print it.

    Text goes to stdout. What is no text goes into a file with -o, or into a pipe; with --json it is MCP's spelling:
    contents, with uri, mimeType and text or blob.
    """
    if output is not None and invocation.flags.json:
        raise usage("--output takes the resource as it is; leave out --json")
    return invocation.run(_read(invocation, uri, output))


async def _read(invocation: Invocation, uri: str, output: str | None) -> int:
    terminal = invocation.terminal
    limit = READ_SECONDS if invocation.flags.timeout is None else invocation.flags.timeout

    async def listed(place: LocalPlace) -> bool:
        # A template that it fits proves nothing: a source that still connects may have just this one.
        return any(row.uri == uri and not row.is_template for row in await place.resources())

    try:
        async with LocalPlace.opened(invocation, finding=listed) as place:
            rows = [row for row in await place.resources() if _may_be(row.uri, uri, is_template=row.is_template)]
            if not rows:
                raise await _unknown(place, uri)
            with terminal.waiting(f"reading {uri} ..."):
                try:
                    async with asyncio.timeout(limit):
                        contents = await place.read(uri)
                except InvalidInput as error:
                    raise not_found(error.message, ("look", "anykit list resources"), code="unknown_resource") from None
    except CapabilityError as error:
        raise of_capability(error) from None
    except TimeoutError:
        raise CommandError(f"{uri}: no answer within {limit:g} s", code="timeout", exit=Exit.UNREACHABLE) from None
    if terminal.as_json:
        terminal.write_json({"contents": [mcp_contents(part, uri, rows[0].media_type) for part in contents.parts]})
    elif output is not None:
        _save(contents, output, terminal)
    else:
        _print(contents, uri, terminal)
    return Exit.OK


def _may_be(offered: str, uri: str, *, is_template: bool) -> bool:
    return uri.startswith(offered.partition("{")[0]) if is_template else uri == offered


async def _unknown(place: LocalPlace, uri: str) -> CommandError:
    rows = [row.uri for row in await place.resources()]
    return nothing_called(
        f"there is no resource {uri!r}",
        await place.sources(),
        [*did_you_mean(uri, rows), ("look", "anykit list resources")],
        code="unknown_resource",
    )


def nothing_called(
    message: str, sources: Sequence[SourceRow], fixes: Sequence[tuple[str, str]], *, code: str
) -> CommandError:
    """There is nothing of that name, which a source that is away may well have."""
    down = [source for source in sources if source.state in ("failed", "connecting")]
    reasons = "; ".join(f"source {source.name} is not available: {source.reason or 'no answer yet'}" for source in down)
    if reasons:
        message = f"{message}; {reasons}"
    usable = any(source.state == "ready" for source in sources)
    if down and not usable and any(source.connects for source in down):
        return CommandError(message, code="unavailable", exit=Exit.UNREACHABLE)
    return not_found(message, *fixes, code=code)


# what was read


def mcp_contents(part: ContentPart, uri: str, media_type: str | None = None) -> JsonObject:
    """A part of a resource as MCP spells it: `uri`, `mimeType` (a text's is the listed one), and `text` or `blob`."""
    match part:
        case TextPart(text=text):
            return {"uri": uri, **({"mimeType": media_type} if media_type else {}), "text": text}
        case StructuredPart(value=value):
            return {"uri": uri, "mimeType": "application/json", "text": to_json(value)}
        case EmbeddedResource():
            found: JsonObject = mcp_part(part)["resource"]
            return found
        case ImagePart(data=data, media_type=kind) | AudioPart(data=data, media_type=kind):
            return _blob(data, uri, kind)
        case BlobPart(data=data, media_type=kind) if data is not None:
            return _blob(data, part.uri or uri, kind)
        case _:
            return {"uri": uri, "text": describe_part(part)}


def _blob(data: bytes, uri: str, media_type: str | None) -> JsonObject:
    spelled: Any = mcp_part(EmbeddedResource(uri=uri, data=data, media_type=media_type))["resource"]
    return spelled


def _content(part: ContentPart) -> str | bytes:
    match part:
        case TextPart(text=text):
            return text
        case StructuredPart(value=value):
            return to_json(value)
        case EmbeddedResource(text=text, data=data):
            return text if text is not None else data or b""
        case ImagePart(data=data) | AudioPart(data=data):
            return data
        case BlobPart(data=data) if data is not None:
            return data
        case _:
            return describe_part(part)


def _save(contents: ResourceContents, output: str, terminal: Terminal) -> None:
    pieces = [_content(part) for part in contents.parts]
    data = b"".join(piece if isinstance(piece, bytes) else piece.encode() for piece in pieces)
    file = here(output)
    try:
        file.write_bytes(data)
    except OSError as error:
        raise usage(f"{output}: cannot be written: {error.strerror or error}", code="not_written") from None
    shown = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
    terminal.note(f"wrote {len(data)} bytes to {shown}")


def _print(contents: ResourceContents, uri: str, terminal: Terminal) -> None:
    pieces = [_content(part) for part in contents.parts]
    texts = [piece for piece in pieces if isinstance(piece, str)]
    if len(texts) == len(pieces):
        for text in texts:
            terminal.write(text)
        return
    whole = b"".join(piece if isinstance(piece, bytes) else piece.encode() for piece in pieces)
    if not terminal.write_bytes(whole):
        kinds = ", ".join(describe_part(part) for part in contents.parts)
        raise usage(
            f"{uri} is no text ({kinds}); it is not printed here",
            ("write it to a file", f"anykit read {shlex.quote(uri)} -o FILE"),
            code="binary",
        )
