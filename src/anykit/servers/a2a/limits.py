"""How much the face takes on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Counts, bytes, seconds."""

    max_parallel: int = 64
    """Calls that run at a time for one principal."""
    queue: int = 256
    """Calls that wait behind them; what comes then is refused as busy."""
    body: int = 8 * 1024 * 1024
    tasks: int = 1000
    """Finished tasks that a principal keeps."""
    lifetime: float = 24 * 3600.0
    """How long those are kept."""
    idle: float = 10.0
    """How long a task that waits for an answer stays in memory; then it waits in the store."""
