"""`anykit trust`: agree to what a file of a project starts, see what was agreed to, take it back."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from anykit.app import ConfigError, find_config
from anykit.app.trust import Trust

from .errors import Exit, not_found, usage
from .invocation import Invocation
from .place import did_you_mean, here
from .terminal import cleaned
from .trusting import lines_of, shown, trust_of


def run(
    invocation: Invocation,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="anykit.toml, a project's .mcp.json or the like, or a folder of skills; the nearest anykit.toml by default.",
            show_default=False,
        ),
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="List the files that are trusted, and how they stand.")
    ] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Trust the FILE no more.")] = False,
) -> int:
    """Trust a file that came with a project: what it defines may be started from now on.

    A file that is named on the line, and what add, init and discover --import wrote, is trusted anyway. When the file
    defines something else later, that is asked again; comments and what is switched off do not count.
    """
    trust = trust_of(invocation)
    try:
        if listed:
            if files or revoke:
                raise usage("--list stands alone")
            return _list(invocation, trust)
        named = files or ([] if invocation.flags.config is None else [invocation.flags.config])
        if revoke:
            if not named:
                raise usage("name the file", ("write", "anykit trust --revoke FILE"))
            return _revoke(invocation, trust, named)
        return _grant(invocation, trust, named)
    except ConfigError as error:
        raise usage(str(error), code="bad_config") from None


def _grant(invocation: Invocation, trust: Trust, named: list[str]) -> int:
    terminal = invocation.terminal
    if named:
        places = [here(one) for one in named]
    else:
        found = find_config()
        if found is None:
            raise usage("there is no anykit.toml here or above", ("name the file", "anykit trust FILE"))
        places = [found]
    # All are looked at before one of them is trusted.
    standings = [trust.check(place) for place in places]
    done: list[dict[str, object]] = []
    for place, standing in zip(places, standings, strict=True):
        about = trust.agree(standing)
        done.append({"file": str(standing.file), "defines": list(about)})
        if terminal.as_json:
            continue
        terminal.write(f"trusted {cleaned(shown(place))}")
        for line in lines_of(about):
            terminal.note(f"  {line}")
    if terminal.as_json:
        terminal.write_json(done)
    return Exit.OK


def _list(invocation: Invocation, trust: Trust) -> int:
    terminal = invocation.terminal
    rows: list[tuple[str, str, float]] = []
    for one in trust.files():
        try:
            state = trust.check(one.file).state
        except ConfigError:
            state = "gone" if not one.file.exists() else "unreadable"
        rows.append((str(one.file), state, one.since))
    if terminal.as_json:
        terminal.write_json([{"file": file, "state": state, "since": since} for file, state, since in rows])
    elif rows:
        cells = [(file, state, datetime.fromtimestamp(since).isoformat(" ", "seconds")) for file, state, since in rows]
        terminal.table(("file", "state", "since"), cells)
    else:
        terminal.note("no file is trusted")
    return Exit.OK


def _revoke(invocation: Invocation, trust: Trust, named: list[str]) -> int:
    terminal = invocation.terminal
    places = [here(one) for one in named]
    known = [str(one.file) for one in trust.files()]
    for place in places:
        if str(place.resolve()) not in known:
            raise not_found(
                f"{shown(place)} is not trusted", *did_you_mean(str(place.resolve()), known), code="not_trusted"
            )
    for place in places:
        trust.revoke(place)
        if not terminal.as_json:
            terminal.write(f"no longer trusted: {cleaned(shown(place))}")
    if terminal.as_json:
        terminal.write_json([{"file": str(place.resolve())} for place in places])
    return Exit.OK
