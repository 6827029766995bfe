"""Why an agent's card could not be had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anykit.capabilities import Unavailable


@dataclass(frozen=True, slots=True)
class Tried:
    """One place where a card was looked for, and what was there."""

    url: str
    status: int | None
    """HTTP status; None where there was no answer."""
    reason: str


class CardError(Unavailable):
    """What was found is not an agent card that can be used, or nothing was found.

    `url` is where, `status` the HTTP status there (None without an answer), `tried` every place that was looked at.
    """

    def __init__(self, message: str, *, url: str, status: int | None = None, tried: Sequence[Tried] = ()) -> None:
        detail = {"url": url, "status": status}
        super().__init__(message, detail=detail)
        self.url = url
        self.status = status
        self.tried = tuple(tried)
