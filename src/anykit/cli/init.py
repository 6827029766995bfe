"""`anykit init`: a first file and a first tool; nothing that exists is touched."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from anykit.app import ConfigError

from .errors import Exit, usage
from .invocation import Invocation
from .place import here
from .trusting import trust_of

CONFIG = """\
# anykit: what is offered to agents, and how. `anykit validate` checks this file; unknown keys are errors.

# Where capabilities come from: Python files and modules, URLs of A2E hosts, and the toolkits that come along
# (anykit:filesystem, anykit:database, anykit:web). Paths are relative to this file.
sources = ["tools.py", "anykit:filesystem"]

# Configured here, a toolkit is ready for everyone; otherwise each caller configures it for itself, inside the bounds.
[toolkits.filesystem.config]
root_dir = "."
read_only = true

# What callers may configure at most. By default: the folder where anykit starts, no database, no private host.
# [bounds]
# roots = ["."]
# database_urls = []
# private_hosts = []

# `anykit serve` listens here. Beyond loopback a token is required.
# [serve]
# host = "127.0.0.1"
# port = 7777
# token = "${ANYKIT_TOKEN}"
"""

TOOLS = '''\
"""Tools: functions with hints and a docstring. What they raise as ToolError reaches the model."""

from anykit import tool


@tool(read_only=True)
async def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b
'''

AGENTS = """\
# Tools of this folder

`anykit.toml` says which tools this folder offers. Look and call from a shell:

- `anykit list` shows them, `anykit show NAME` one with its arguments.
- `anykit call TOOL k=v k:=json` calls one; `--json` gives the result as MCP spells it, the exit code says how it went.
- `anykit validate` after a change to `anykit.toml` or to a file that it names.
- Write a new tool as a function with `@tool`, hints and a docstring in `tools.py`. Never write a secret into a file: write
  `${VARIABLE}`, or `anykit configure TOOLKIT --secret FIELD`.
"""

FILES = {"anykit.toml": CONFIG, "tools.py": TOOLS, "AGENTS.md": AGENTS}


def run(
    invocation: Invocation,
    folder: Annotated[
        str, typer.Argument(metavar="[FOLDER]", help="Where; here by default.", show_default=False)
    ] = ".",
) -> int:
    """Write a first anykit.toml, a tool and a note for coding agents. A file that exists is kept as it is."""
    place = here(folder)
    written: list[str] = []
    kept: list[str] = []
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name, text in FILES.items():
            (written if _write(place / name, text) else kept).append(name)
        if "anykit.toml" in written:
            with suppress(ConfigError):  # then it is asked later
                trust_of(invocation).grant(place / "anykit.toml")
    except OSError as error:
        raise usage(
            f"{error.filename or place}: cannot be written: {error.strerror or error}", code="not_written"
        ) from None
    terminal = invocation.terminal
    if terminal.as_json:
        terminal.write_json({"folder": str(place), "written": written, "kept": kept})
        return Exit.OK
    for name in kept:
        terminal.note(f"kept    {Path(folder, name)}")
    for name in written:
        terminal.note(f"wrote   {Path(folder, name)}")
    start = "" if place == Path.cwd() else f"cd {folder} && "
    terminal.note(f"\nNext:  {start}anykit list\n       anykit call add a:=2 b:=3\n       anykit serve")
    return Exit.OK


def _write(path: Path, text: str) -> bool:
    """Write a file that is not there yet; False where it is."""
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        return False
    return True
