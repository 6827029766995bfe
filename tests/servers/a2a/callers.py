"""Callers as the SDK sees them."""

from __future__ import annotations

from a2a.auth.user import User
from a2a.server.context import ServerCallContext


class Who(User):
    """A principal."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def is_authenticated(self) -> bool:
        return True

    @property
    def user_name(self) -> str:
        return self._name


def by(name: str) -> ServerCallContext:
    """A request of a principal."""
    return ServerCallContext(user=Who(name))
