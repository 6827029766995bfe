"""Runs command lines in this process, on streams that are looked at afterwards."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anykit.app import ConfigError, find_config
from anykit.app.trust import Trust
from anykit.cli import run
from anykit.stores import data_dir


class Stream(io.StringIO):
    """A stream that may be a terminal."""

    def __init__(self, text: str = "", *, terminal: bool = False) -> None:
        super().__init__(text)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@dataclass(frozen=True)
class Done:
    """How a command line ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What stdout holds."""
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        """The fields of a table in a pipe."""
        return [line.split("\t") for line in self.out.splitlines()]


def trusted(folder: Path | None = None, env: Mapping[str, str] | None = None) -> None:
    """Agree to the file that is found from `folder` (here), as its owner would have."""
    with contextlib.suppress(ConfigError, OSError):
        found = find_config(folder)
        if found is not None:
            Trust(data_dir(env=env)).grant(found)


def anykit(
    *argv: str,
    stdin: str = "",
    terminal: bool = False,
    stdout_terminal: bool = False,
    env: Mapping[str, str] | None = None,
    trusting: bool = True,
) -> Done:
    """Run `anykit ARGV`; with `terminal` somebody sits there and types `stdin`.

    The file of the folder is trusted, unless not `trusting`.
    """
    if trusting:
        trusted(None, {**os.environ, **(env or {})})
    out, err = Stream(terminal=stdout_terminal), Stream(terminal=terminal)
    code = run(
        argv,
        stdin=Stream(stdin, terminal=terminal),
        stdout=out,
        stderr=err,
        env={**os.environ, **(env or {})},
    )
    return Done(code, out.getvalue(), err.getvalue())
