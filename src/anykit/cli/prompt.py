"""`anykit prompt`: one prompt, filled in."""

from __future__ import annotations

import asyncio
import shlex
from typing import Annotated

import typer

from anykit.capabilities import (
    CapabilityError,
    ContentPart,
    JsonObject,
    PromptContents,
    PromptMessage,
    TextPart,
)
from anykit.tools import describe_part

from .arguments import assignments, filled, input_json
from .call import mcp_part
from .errors import CommandError, Exit, usage
from .failures import of_capability
from .fields import Form
from .invocation import Invocation
from .local import LocalPlace
from .place import PromptRow, did_you_mean
from .read import READ_SECONDS, nothing_called
from .terminal import Terminal


def run(
    invocation: Invocation,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The prompt's name.", show_default=False)],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="k=v",
            help="Arguments, which are texts; k:=JSON where one of a prompt in Python is something else.",
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
) -> int:
    """Fill a prompt in and print its messages.

    A single message is printed as its text, several each under its role. With --json it is MCP's spelling: messages, with
    role and content.
    """
    given = filled(Form({}), assignments(arguments or []), input_json(input_json_text, invocation.terminal))
    return invocation.run(_prompt(invocation, name, given))


async def _prompt(invocation: Invocation, name: str, arguments: JsonObject) -> int:
    terminal = invocation.terminal
    limit = READ_SECONDS if invocation.flags.timeout is None else invocation.flags.timeout

    async def offered(place: LocalPlace) -> bool:
        return any(row.name == name for row in await place.prompts())

    try:
        async with LocalPlace.opened(invocation, finding=offered) as place:
            rows = await place.prompts()
            row = next((row for row in rows if row.name == name), None)
            if row is None:
                raise nothing_called(
                    f"there is no prompt {name!r}",
                    await place.sources(),
                    [*did_you_mean(name, [row.name for row in rows]), ("look", "anykit list prompts")],
                    code="unknown_prompt",
                )
            _check(row, arguments)
            with terminal.waiting(f"asking for {name} ..."):
                async with asyncio.timeout(limit):
                    contents = await place.prompt(name, arguments)
    except CapabilityError as error:
        raise of_capability(error) from None
    except TimeoutError:
        raise CommandError(f"{name}: no answer within {limit:g} s", code="timeout", exit=Exit.UNREACHABLE) from None
    if terminal.as_json:
        terminal.write_json(mcp_prompt(contents))
    else:
        _print(contents, terminal)
    return Exit.OK


def _check(row: PromptRow, arguments: JsonObject) -> None:
    """Raises `CommandError` for arguments that are missing or unknown, all at once."""
    known = [str(one["name"]) for one in row.arguments]
    lines = [
        f"/{one['name']}: is required" for one in row.arguments if one.get("required") and one["name"] not in arguments
    ]
    lines += [
        f"/{name}: there is no such argument; it takes {', '.join(known) or 'none'}"
        for name in arguments
        if name not in known
    ]
    if lines:
        words = [f"{one['name']}=..." for one in row.arguments if one.get("required")]
        raise usage(
            "\n".join([f"invalid arguments for {row.name}", *lines]),
            ("write", " ".join(["anykit prompt", shlex.quote(row.name), *words])),
            code="invalid_input",
        )


def mcp_prompt(contents: PromptContents) -> JsonObject:
    """A prompt as MCP spells it, where a message has one content."""
    messages = [
        {"role": message.role, "content": mcp_part(part)} for message in contents.messages for part in message.content
    ]
    return {**({"description": contents.description} if contents.description else {}), "messages": messages}


def _print(contents: PromptContents, terminal: Terminal) -> None:
    if len(contents.messages) == 1:
        terminal.write(_text(contents.messages[0]))
        return
    for index, message in enumerate(contents.messages):
        if index:
            terminal.write("")
        terminal.write(f"{message.role}:")
        terminal.write(_text(message))


def _text(message: PromptMessage) -> str:
    return "\n".join(_said(part) for part in message.content)


def _said(part: ContentPart) -> str:
    return part.text if isinstance(part, TextPart) else describe_part(part)
