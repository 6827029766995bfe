"""States of a task, in one spelling whatever the peer's: `completed`, `input-required`."""

from __future__ import annotations

import re

from anykit.capabilities import Json

from .fields import an_object

UNKNOWN = "unknown"
FINAL = frozenset({"completed", "failed", "canceled", "rejected"})
"""Nothing comes after them."""
WAITING = frozenset({"input-required", "auth-required"})
"""The task goes on once it is answered."""

_NUMBERED = {
    0: UNKNOWN,
    1: "submitted",
    2: "working",
    3: "completed",
    4: "failed",
    5: "canceled",
    6: "input-required",
    7: "rejected",
    8: "auth-required",
}
"""TaskState of a2a.proto, for peers that write enums as numbers."""
_OTHER_NAMES = {"cancelled": "canceled", "unspecified": UNKNOWN, "": UNKNOWN}
_WORD = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def read_state(value: Json) -> str:
    """A state from `TASK_STATE_INPUT_REQUIRED`, `input-required`, `input_required` or a number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return _NUMBERED.get(value, UNKNOWN)
    if not isinstance(value, str) or len(value) > 64:
        return UNKNOWN
    word = value.strip().lower().removeprefix("task_state_").replace("_", "-")
    word = _OTHER_NAMES.get(word, word)
    return word if _WORD.fullmatch(word) else UNKNOWN


def state_of(status: Json) -> str:
    """The state in a status, which a few peers write as a bare word."""
    known = an_object(status)
    return read_state(status if known is None else known.get("state"))
