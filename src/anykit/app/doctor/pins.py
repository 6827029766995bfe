"""Definitions that are not what `anykit.lock` pins."""

from __future__ import annotations

from collections.abc import Iterator

from anykit.app.lock import Change, LockError, changes_between, lock_file, lock_of, read_lock
from anykit.runtime import state_of

from .finding import Case, Finding

DIFF_LINES = 60
"""Lines of a diff that a finding shows."""


def pins(case: Case) -> Iterator[Finding]:
    """What changed since somebody agreed to it."""
    file = lock_file(case.config.folder)
    try:
        pinned = read_lock(file)
    except LockError as error:
        yield Finding("lock_broken", "error", file.name, str(error), "git checkout anykit.lock, or anykit lock anew")
        return
    if pinned is None:
        if case.config.lock.enforce:
            yield Finding(
                "lock_missing",
                "error",
                case.at("lock", "enforce"),
                f"there is no {file.name} yet, so that nothing is offered",
                "anykit lock",
            )
        return
    sources = case.snapshot.sources
    known = {name for name, source in sources.items() if state_of(source).status == "ready"}
    for change in changes_between(pinned, lock_of(sources.values()), known=known):
        yield _of_change(change, enforced=case.config.lock.enforce)
    if not case.replaced:
        for name in sorted(pinned.sources - sources.keys()):
            yield Finding(
                "lock_stale",
                "note",
                f"{file.name}: {name}",
                "pins a source that the configuration has no more",
                f"anykit lock --accept {name}",
            )


def _of_change(change: Change, *, enforced: bool) -> Finding:
    agree = f"look at it, then: anykit lock --accept {change.name}"
    held = "; it is not offered until somebody agrees" if enforced else ""
    if change.kind == "added":
        return Finding("definition_new", "warning", change.name, f"came after the lock was written{held}", agree)
    if change.kind == "removed":
        return Finding("definition_gone", "note", change.name, "is pinned, and is not offered any more", agree)
    lines = change.diff()
    shown = lines[:DIFF_LINES] + ([f"[{len(lines) - DIFF_LINES} more lines]"] if len(lines) > DIFF_LINES else [])
    return Finding(
        "definition_changed",
        "error",
        change.name,
        "\n".join([f"is not what somebody agreed to{held}", *shown]),
        agree,
    )
