"""Whether a file that was found, not named, may start anything: asked where somebody sits, an error where nobody does."""

from __future__ import annotations

import shlex
from pathlib import Path

from anykit.app import ConfigError
from anykit.app.trust import Standing, Trust
from anykit.stores import data_dir

from .errors import CommandError, Exit, usage
from .invocation import Invocation
from .place import here

SHOWN = 20
"""Of what a file would start, as many lines are shown."""


def trust_of(invocation: Invocation) -> Trust:
    """What this person has agreed to; never in a folder that a file names."""
    flags = invocation.flags
    return Trust(here(flags.data_dir) if flags.data_dir else data_dir(env=invocation.terminal.env))


def may_use(invocation: Invocation, file: Path, *, needed: bool) -> bool:
    """Whether a file that was found may be used. Where it is not `needed`, nobody is asked, and a warning says so.

    Raises `CommandError` where it is needed and nobody agrees.
    """
    terminal, trust = invocation.terminal, trust_of(invocation)
    try:
        standing = trust.check(file)
        if standing.is_trusted:
            return True
        if not needed:
            terminal.warn(f"{_said(standing, file)}, so nothing of it is used; to use it: {_command(file)}")
            return False
        if terminal.interactive and _agrees(invocation, standing, file):
            trust.agree(standing)
            return True
    except ConfigError as error:
        raise usage(str(error), ("check it", "anykit validate"), code="bad_config") from None
    raise CommandError(
        "\n".join([f"{_said(standing, file)}, so nothing of it is started", *lines_of(standing.asks)]),
        code="not_trusted",
        exit=Exit.USAGE,
        fixes=[("if you know it", _command(file)), ("or for once", f"--config {shlex.quote(shown(file))}")],
    )


def _said(standing: Standing, file: Path) -> str:
    if standing.state == "changed":
        return f"{shown(file)} defines what was not in it when it was trusted"
    return f"{shown(file)} was found here and is not trusted"


def _agrees(invocation: Invocation, standing: Standing, file: Path) -> bool:
    terminal = invocation.terminal
    terminal.announce(f"{_said(standing, file)}. It would:")
    for line in lines_of(standing.asks):
        terminal.announce(f"  {line}")
    return terminal.ask("Trust it? [y/N] ").strip().lower() in ("y", "yes")


def lines_of(asks: tuple[str, ...]) -> list[str]:
    """What a file would start, fit for a terminal, and not without end."""
    lines = [" ".join(one.split()) for one in asks[:SHOWN]]
    return [*lines, f"and {len(asks) - SHOWN} more"] if len(asks) > SHOWN else lines


def shown(file: Path) -> str:
    """A file as a person here would name it."""
    place = file.absolute()
    return str(place.relative_to(Path.cwd())) if place.is_relative_to(Path.cwd()) else str(place)


def _command(file: Path) -> str:
    return f"anykit trust {shlex.quote(shown(file))}"
