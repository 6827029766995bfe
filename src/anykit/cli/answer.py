"""`anykit answer`: what waits for an answer, and the answer to it; the call goes on in this process."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, cast

import typer

from anykit.capabilities import CapabilityError, Json, JsonObject, Suspension
from anykit.runtime import Caller, Suspensions
from anykit.stores import RecordError, SecretError, SecretStore, SqliteRecords

from .arguments import assignments, filled, json_given
from .call import EventLines, printed
from .errors import CommandError, Exit, not_found, usage
from .failures import of_capability
from .fields import Field, Form
from .invocation import Invocation
from .local import LocalPlace, configuration, data_folder
from .place import did_you_mean
from .questions import SETTLED_ELSEWHERE, example_of, is_object

_ASSIGNMENT = re.compile(r"[^\s=]+=.*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A question that waits, and the tool whose call asked it."""

    suspension: Suspension
    tool: str

    def to_json(self) -> JsonObject:
        """As it is listed."""
        return {**self.suspension.to_json(), "tool": self.tool}


def run(
    invocation: Invocation,
    id: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="Of the question; without it they are listed.", show_default=False),
    ] = None,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT|k=v|k:=JSON",
            help="The answer: a text, or fields as `call` takes its arguments.",
            show_default=False,
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option("--text", metavar="TEXT", help="The answer as a text, whatever is in it.", show_default=False),
    ] = None,
    input_json_text: Annotated[
        str | None,
        typer.Option(
            "--input-json",
            metavar="JSON|@FILE|-",
            help="The answer as JSON, from a file, or from stdin.",
            show_default=False,
        ),
    ] = None,
    refuse: Annotated[bool, typer.Option("--refuse", help="Give no answer, and end what asks.")] = False,
) -> int:
    """Answer a question that a call asked, and go on with it.

    Prints what comes of it as `call` does, with the same exit codes: 8 where it asks again. Without an ID what waits is
    listed. What is waited for lies in the data folder, so any later process may answer, once.
    """
    if id is None:
        if refuse or text is not None or input_json_text is not None:
            raise usage("which question is answered?", ("look", "anykit answer"))
        return _list(invocation)
    given = [bool(words), text is not None, input_json_text is not None and not words, refuse]
    if sum(given) > 1:
        raise usage("give one answer: words, --text, --input-json, or --refuse")
    waiting = invocation.run(_waiting(invocation))
    found = next((one for one in waiting if one.suspension.id == id), None)
    if found is None:
        raise not_found(
            f"nothing waits for an answer behind {id[:64]!r}: it was answered, is over, or was asked elsewhere",
            *did_you_mean(id, [one.suspension.id for one in waiting]),
            ("look", "anykit answer"),
            code="unknown_suspension",
        )
    data = None if refuse else _data(invocation, found.suspension, words or [], text, input_json_text)
    return invocation.run(_answer(invocation, found, data, ok=not refuse))


# what waits


def _list(invocation: Invocation) -> int:
    terminal = invocation.terminal
    waiting = invocation.run(_waiting(invocation))
    if terminal.as_json:
        terminal.write_json([one.to_json() for one in waiting])
        return Exit.OK
    if not waiting:
        terminal.note("nothing waits for an answer")
        return Exit.OK
    rows = [
        (one.suspension.id, one.suspension.kind, one.tool, _when(one.suspension.expires_at), one.suspension.prompt)
        for one in waiting
    ]
    terminal.table(("id", "kind", "tool", "until", "question"), rows)
    return Exit.OK


def _when(moment: float | None) -> str:
    return "" if moment is None else datetime.fromtimestamp(moment).isoformat(" ", "seconds")


async def _waiting(invocation: Invocation) -> list[Waiting]:
    """What earlier processes kept; nothing is made where there is nothing."""
    folder = data_folder(invocation, configuration(invocation))
    file = folder / "anykit.sqlite3"
    if not file.exists():
        return []
    records = SqliteRecords(file)
    try:
        suspensions = Suspensions(records, SecretStore(records, data_dir=folder))
        await suspensions.load()
        caller = Caller("local", "command", None)
        found: list[Waiting] = []
        for one in suspensions.waiting(caller):
            kept = await suspensions.find(one.id, caller)
            if kept is not None:
                found.append(Waiting(one, kept.tool))
        return found
    except (RecordError, SecretError) as error:
        raise CommandError(f"what waits cannot be read: {error}", code="not_kept") from None
    finally:
        await records.close()


# the answer


def _data(invocation: Invocation, asked: Suspension, words: Sequence[str], text: str | None, whole: str | None) -> Json:
    """What was given as an answer. Raises `CommandError` where nothing was, and something is needed."""
    form = Form(asked.schema or {})
    if text is not None:
        return _as_text(form, asked.schema, text)
    if words and all(_ASSIGNMENT.fullmatch(word) for word in words):
        return filled(form, assignments(words), json_given(whole, invocation.terminal))
    if words:
        if whole is not None:
            raise usage("give one answer: a text or --input-json")
        return _as_text(form, asked.schema, " ".join(words))
    if whole is not None:
        return json_given(whole, invocation.terminal)
    if asked.kind in SETTLED_ELSEWHERE and not (asked.schema or {}).get("required"):
        return None if asked.schema is None else {}
    if invocation.terminal.interactive:
        return _typed(invocation, asked, form)
    raise usage(
        f"it asks: {asked.prompt}", ("answer it", example_of(asked)), ("or", f"anykit answer {asked.id} --refuse")
    )


def _as_text(form: Form, schema: JsonObject | None, text: str) -> Json:
    """A text as the schema takes it: itself, or the one field that takes a text."""
    if schema is None or not is_object(schema):
        return text if schema is None else form.value((), text)
    fields = form.fields
    required = [field for field in fields if field.required] or fields
    if len(required) != 1:
        names = ", ".join(field.name for field in fields)
        raise usage(f"a text does not say which field it is for: {names}", ("write", "name=text for each"))
    whole: JsonObject = {}
    place = whole
    path = required[0].path
    for step in path[:-1]:
        place = cast(JsonObject, place.setdefault(step, {}))
    place[path[-1]] = form.value(path, text)
    return whole


def _typed(invocation: Invocation, asked: Suspension, form: Form) -> Json:
    """Ask whoever sits there."""
    terminal = invocation.terminal
    terminal.note(asked.prompt)
    if asked.url:
        terminal.note(asked.url)
    if asked.schema is None or not is_object(asked.schema):
        line = terminal.ask("answer: ")
        return _as_text(form, asked.schema, line)
    lines: list[str] = []
    whole: JsonObject = {}
    for field in form.fields:
        line = _ask(invocation, field)
        if line:
            lines.append(f"{field.name}={line}")
    return filled(form, assignments(lines), whole)


def _ask(invocation: Invocation, field: Field) -> str:
    question = f"{field.name} ({field.kind}{'' if field.required else ', optional'}): "
    terminal = invocation.terminal
    return terminal.ask_secret(question) if field.secret else terminal.ask(question)


# what becomes of it


async def _answer(invocation: Invocation, found: Waiting, data: Json, *, ok: bool) -> int:
    terminal = invocation.terminal
    id, tool = found.suspension.id, found.tool
    try:
        async with LocalPlace.opened(invocation, wanted=tool) as place:
            row = next((row for row in await place.tools() if row.name == tool), None)
            if row is None:
                raise await _tool_is_away(place, tool)
            with terminal.waiting(f"going on with {tool} ..."):
                result = await place.answer(
                    id, ok=ok, data=data, timeout=invocation.flags.timeout, listen=EventLines(terminal)
                )
            toolkits = await place.toolkits() if result.is_error else []
            outlives = result.suspension is not None and place.outlives(result.suspension.id)
    except CapabilityError as error:
        raise of_capability(error) from None
    if not ok and result.code in ("cancelled", "denied"):
        # That is what was asked for.
        if terminal.as_json:
            terminal.write_json({"refused": True, "message": result.output})
        else:
            terminal.note(result.output)
        return Exit.OK
    return printed(invocation, result, row, toolkits, outlives=outlives)


async def _tool_is_away(place: LocalPlace, tool: str) -> CommandError:
    down = [f"{one.name}: {one.reason or 'no answer yet'}" for one in await place.sources() if one.state != "ready"]
    because = f" ({'; '.join(down)})" if down else ""
    return CommandError(
        f"{tool}, which asks, is not available now{because}; the question stays open",
        code="unavailable",
        exit=Exit.UNREACHABLE,
        fixes=[("answer it", "in the folder, or with the --config and --source, where it was called")],
    )
