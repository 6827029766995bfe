"""What is not there now, in one line each: since when, why, and when it is tried again. For models and people alike."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from .naming import clean
from .snapshot import Snapshot, Source, state_of

REASON: Final = 200
"""Characters of a reason that are told."""
LINES: Final = 5
"""Lines that go into an error or into instructions; the rest is counted."""
_DAY: Final = 24 * 3600.0


def unavailable_lines(snapshot: Snapshot, *, now: float | None = None) -> list[str]:
    """One line for each source that failed, or has said nothing yet."""
    at = time.time() if now is None else now
    return [line for source in snapshot.sources.values() if (line := line_of(source, at))]


def line_of(source: Source, now: float) -> str:
    """`github is unavailable since 12:03 UTC: connection refused; retry at 12:04 UTC`; "" where it is not."""
    state = state_of(source)
    if state.status not in ("failed", "connecting", "closed"):
        return ""
    what = "still connecting" if state.status == "connecting" and not state.reason else "unavailable"
    line = f"{_plain(source.name)} is {what}"
    if state.since is not None:
        line += f" since {clock(state.since, now)}"
    if state.reason:
        line += f": {_plain(state.reason)}"
    if state.retry_at is not None and state.retry_at > now:
        line += f"; retry at {clock(state.retry_at, now)}"
    return line


def clock(at: float, now: float) -> str:
    """A time of day, with the date where it is not within a day of now."""
    pattern = "%H:%M UTC" if abs(now - at) < _DAY else "%Y-%m-%d %H:%M UTC"
    return time.strftime(pattern, time.gmtime(at))


def told(snapshot: Snapshot, name: str = "") -> str:
    """The lines as one text, few of them; those that have to do with a tool's `name` come first. "" where all is well."""
    down = unavailable_lines(snapshot)
    if name:
        mine = [
            line
            for source in snapshot.sources.values()
            if source.prefixed
            and name.startswith(f"{clean(source.name)}_")
            and (line := line_of(source, time.time())) in down
        ]
        down = [*mine, *(line for line in down if line not in mine)]
    return _few(down)


def _few(lines: Sequence[str]) -> str:
    text = "; ".join(lines[:LINES])
    return f"{text}; and {len(lines) - LINES} more sources are unavailable" if len(lines) > LINES else text


def _plain(text: str) -> str:
    """One line without what cannot be seen."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= REASON else f"{line[: REASON - 3]}..."
