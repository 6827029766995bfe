"""Where things are, how programs are run, and how a row is printed: what all parts share."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
PYTHON = str(ROOT / ".venv/bin/python")
ANYKIT = str(ROOT / ".venv/bin/anykit")
TOOLNEXUS = str(ROOT / ".venvs/bench/bin/python")
FASTMCP = str(ROOT / ".venvs/fastmcp/bin/python")
HANGAR = str(ROOT / ".venvs/hangar/bin/python")
LIMIT = 120.0
"""Seconds that one program may take for everything."""


def row(what: str, ours: str, other: str = "", ratio: str = "", verdict: str = "") -> None:
    print(f"{what:<42}{ours:>16}{other:>16}{ratio:>9}  {verdict}", flush=True)


def verdict(*held: bool) -> str:
    return "ok" if all(held) else "LOST"


def run(*command: str, timeout: float = LIMIT) -> str:
    """A program's stdout. Raises `CalledProcessError` with its stderr printed, `TimeoutExpired`."""
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=timeout)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        done.check_returncode()
    return done.stdout


def figures(*command: str, timeout: float = LIMIT) -> dict[str, float]:
    """What a program measured: the JSON object on its stdout, a number a name."""
    return json.loads(run(*command, timeout=timeout))


def has(python: str, module: str) -> bool:
    """Whether an environment is there, with this module in it."""
    return (
        Path(python).exists() and not subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode
    )


def columns(runs: Sequence[dict[str, float]], name: str) -> list[float]:
    """One figure of every run."""
    return [one[name] for one in runs]
