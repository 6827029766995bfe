"""`anykit doctor`: what is wrong, and how to mend it."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from anykit.app import AppConfig, ConfigError, find_config, read_config
from anykit.app.config import NAMES
from anykit.app.doctor import Examined, Finding, examine
from anykit.app.trust import Standing

from .errors import Exit, usage
from .invocation import Invocation
from .local import data_folder, importable, sources_of
from .place import here
from .terminal import Terminal
from .trusting import lines_of, trust_of

WAIT = 5.0
"""Seconds that sources have where no --timeout is given: a person waits for the answer."""
_STYLES = {"error": "red", "warning": "yellow", "note": "cyan"}


def run(
    invocation: Invocation,
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="SOURCE", help="Sources instead of those of the file.", show_default=False),
    ] = None,
) -> int:
    """Say what is wrong with the configuration and its sources, each with how to mend it; exit code 6 where anything is.

    Sources are opened and asked what they have, at most --timeout seconds (5). No tool is called, nothing is written. What
    could not be checked is said on stderr. Findings are errors, warnings and notes, in this order.
    """
    words = list(sources or ())
    files = [word for word in words if Path(word).name in NAMES]
    if len(files) + bool(invocation.flags.config) > 1:
        raise usage(f"one file at a time, not {' and '.join([*files, *filter(None, [invocation.flags.config])])}")
    on_line = tuple(word for word in words if word not in files)
    path = here(files[0]) if files else here(invocation.flags.config) if invocation.flags.config else find_config()
    found = not files and not invocation.flags.config
    if not invocation.terminal.verbose:  # the same is told below, once and with a fix
        logging.getLogger("anykit").setLevel(logging.ERROR)
    examined = invocation.run(_examined(invocation, path, on_line, found=found))
    _print(invocation.terminal, examined, "the sources" if path is None else path.name)
    return Exit.FINDINGS if examined.findings else Exit.OK


async def _examined(invocation: Invocation, path: Path | None, on_line: tuple[str, ...], *, found: bool) -> Examined:
    terminal = invocation.terminal
    try:
        config = AppConfig() if path is None else read_config(path)
        config = config.for_environment(invocation.flags.env or terminal.env.get("ANYKIT_ENV"))
    except ConfigError as error:
        return Examined(
            tuple(_misfit(line, path) for line in str(error).splitlines()), ("sources: the file is not used",)
        )
    plain, named = sources_of(invocation, config, on_line)
    replaced = bool(on_line or invocation.flags.sources)
    untrusted = None
    if path is not None and found and not replaced:
        try:
            untrusted = _untrusted(trust_of(invocation).check(path), path)
        except ConfigError as error:
            untrusted = _misfit(str(error), path)
    # The rules of the file still say something of sources on the line; which of them match nothing there does not count.
    with importable(config), terminal.waiting("looking ..."):
        return await examine(
            plain,
            named,
            data_dir=data_folder(invocation, config),
            env=terminal.env,
            wait=WAIT if invocation.flags.timeout is None else invocation.flags.timeout,
            replaced=replaced,
            untrusted=untrusted,
        )


def _untrusted(standing: Standing, path: Path) -> Finding | None:
    if standing.is_trusted:
        return None
    what = "defines what was not in it when it was trusted" if standing.state == "changed" else "is not trusted"
    asks = "\n".join(lines_of(standing.asks))
    return Finding(
        "file_untrusted",
        "error",
        path.name,
        f"was found here and {what}, so nothing of it is started:\n{asks}",
        f"read it, then: anykit trust {shlex.quote(str(path))}",
    )


def _misfit(line: str, path: Path | None) -> Finding:
    """A line of a `ConfigError` says `FILE: FIELD: what`, or `FILE: what`."""
    rest = line.removeprefix(f"{path}: ") if path else line
    name = path.name if path else "config"
    where, colon, message = rest.partition(": ")
    if not colon or " " in where:
        return Finding(
            "config_invalid", "error", name, rest, "correct it; anykit validate --schema prints what may stand there"
        )
    return Finding(
        "config_invalid",
        "error",
        f"{name}: {where}",
        message,
        "correct it; anykit validate --schema prints what may stand there",
    )


def _print(terminal: Terminal, examined: Examined, what: str) -> None:
    findings = examined.findings
    if terminal.as_json:
        terminal.write_json([one.to_json() for one in findings])
    elif terminal.stdout_is_terminal:
        _print_for_people(terminal, findings)
    elif findings:
        columns = ("severity", "code", "where", "message", "fix")
        terminal.table(columns, [(one.severity, one.code, one.where, one.message, one.fix) for one in findings])
    for line in examined.unchecked:
        terminal.note(f"not checked: {line}")
    tools = f"{examined.tools} tool{'s' if examined.tools != 1 else ''}"
    counts = [(severity, sum(one.severity == severity for one in findings)) for severity in _STYLES]
    told = ", ".join(f"{count} {severity}{'s' if count != 1 else ''}" for severity, count in counts if count)
    terminal.note(f"{what}: {told or f'nothing found ({tools})'}")


def _print_for_people(terminal: Terminal, findings: Sequence[Finding]) -> None:
    for index, one in enumerate(findings):
        if index:
            terminal.write("")
        terminal.write_marked(f"{one.severity}", _STYLES[one.severity], f"{one.where}  [{one.code}]")
        for line in one.message.splitlines():
            terminal.write_line(f"  {line}", diff_style(line))
        terminal.write_marked("  fix:", "bold", one.fix)


def diff_style(line: str) -> str:
    """Lines of a diff have its colours."""
    if line.startswith(("+++", "---", "@@")):
        return "dim"
    return "green" if line.startswith("+") else "red" if line.startswith("-") else ""
