"""The cells that cannot exist, and how a cell is judged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Cell = tuple[str, str, str]
"""Direction (who our side is: `client` of us, or `server` for us), peer, scenario."""


def _read() -> dict[Cell, str]:
    found: dict[Cell, str] = {}
    for line in (Path(__file__).parent / "cannot.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            direction, peer, scenario, reason = (word.strip() for word in line.split("|", 3))
            assert reason, f"no reason: {line}"
            found[direction, peer, scenario] = reason
    return found


CANNOT = _read()


def judge(cell: Cell, check: Callable[[], None]) -> None:
    """Run a cell's check; one that cannot exist has to fail it."""
    reason = CANNOT.get(cell)
    if reason is None:
        check()
        return
    try:
        check()
    except Exception:
        pytest.xfail(f"cannot exist: {reason}")
    pytest.fail(f"cannot.txt says that {' | '.join(cell)} cannot exist ({reason}), but it works: remove the entry")
