"""Sources that are dead, slow or hung, and why."""

from __future__ import annotations

from collections.abc import Iterator

from anykit.capabilities import State
from anykit.runtime import Source, state_of

from .finding import Case, Finding

SLOW = 3.0
"""Seconds to become ready that are worth a word."""


def health(case: Case) -> Iterator[Finding]:
    """What keeps sources from being used."""
    for name, source in case.snapshot.sources.items():
        state = state_of(source)
        if state.status == "disabled":
            continue
        if state.status == "connecting":
            yield _hung(case, name, state)
        elif state.status != "ready":
            yield _dead(name, source, state)
        elif (seconds := case.took.get(name, 0.0)) >= SLOW:
            yield Finding(
                "source_slow",
                "warning",
                name,
                f"took {seconds:.1f} s to be ready; until then its tools are missing",
                _installed(source)
                or f"anykit show {name} says what it wrote; a source that is not needed: {_off(name)}",
            )


def _hung(case: Case, name: str, state: State) -> Finding:
    why = f": {state.reason}" if state.reason else ""
    return Finding(
        "source_hung",
        "error",
        name,
        f"no answer within {case.waited:.1f} s{why}",
        f"--timeout {max(30, round(case.waited * 3))} waits longer; anykit show {name} says what it wrote; {_off(name)}",
    )


def _dead(name: str, source: Source, state: State) -> Finding:
    reason = state.reason or state.status
    code, fix = "source_dead", _fix(name, source, reason, str(state.detail.get("needs", "")))
    if "not trusted" in reason or "nobody has agreed to" in reason:
        code, fix = "file_untrusted", f"read it, then: anykit trust {source.location or name}"
    return Finding(code, "error", name, reason, fix)


def _fix(name: str, source: Source, reason: str, needs: str) -> str:
    low = reason.casefold()
    if needs == "login":
        return f"anykit login {name}"
    if needs:
        return f"give it what it asks for: `headers`, `token` or `oauth` of the source {name}"
    if "not set" in low:
        return "set the variable, or give it a default: ${NAME:-default}"
    if "no such file" in low or "does not exist" in low or "not found" in low or "there is no" in low:
        return f"correct its command or path ({source.location or name}), or leave it out: {_off(name)}"
    if "refused" in low or "resolve" in low or "unreachable" in low or "timed out" in low:
        return f"start it, or correct its address ({source.location or 'url'}); leave it out: {_off(name)}"
    return f"anykit show {name} says more; leave it out: {_off(name)}"


def _off(name: str) -> str:
    return f"anykit disable {name}"


def _installed(source: Source) -> str:
    """What a launcher that downloads at each start may be replaced by."""
    words = source.location.split()
    if words and words[0].rpartition("/")[2] in ("npx", "uvx", "bunx", "pnpx"):
        return f"install what {words[0]} fetches at each start, and start that"
    return ""
