"""`anykit disable`: what is named is switched off in the file, which keeps its comments."""

from __future__ import annotations

from typing import Annotated

import typer

from .invocation import Invocation
from .switching import run_switch


def run(
    invocation: Invocation,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="Sources and agents as `anykit list sources` names them, single servers of a client's file, toolkits.",
            show_default=False,
        ),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would change, and change nothing.")] = False,
) -> int:
    """Switch sources, servers, agents or toolkits off, all of those named or none.

    What is off stays in the file and is listed as disabled; a running `anykit serve` lets it go.
    """
    return run_switch(invocation, names, on=False, dry=dry_run)
