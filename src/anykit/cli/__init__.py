"""The command: one module a verb, and the only place that prints.

program    argv -> verb, flags; errors -> exit codes
flags      what every verb takes
terminal   what a person sees, and what a pipe gets
place      where a verb acts: a workbench (local) or a running host (remote)
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TextIO

__all__ = ["main", "run"]


def main() -> int:
    """The entry point: run what the command line says; returns the exit code."""
    try:
        return run(sys.argv[1:])
    except KeyboardInterrupt:  # while the command itself was imported
        return 130


def run(
    argv: Sequence[str],
    *,
    stdin: TextIO | None = None,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
    env: Mapping[str, str] | None = None,
) -> int:
    """Run one command line and return its exit code. Streams and environment are the process's where not given."""
    from . import program  # noqa: PLC0415 - so that Ctrl-C while it is imported is caught above

    return program.run(argv, stdin=stdin, stdout=stdout, stderr=stderr, env=env)
