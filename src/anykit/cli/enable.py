"""`anykit enable`: what is named is switched on in the file, which keeps its comments."""

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
    """Switch sources, servers, agents or toolkits on, all of those named or none.

    What is on is offered again; a running `anykit serve` follows.
    """
    return run_switch(invocation, names, on=True, dry=dry_run)
