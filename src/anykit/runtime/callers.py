"""Who calls, and what belongs to whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

ScopeKind: TypeAlias = Literal["session", "principal", "host"]


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a toolkit's configuration holds."""

    kind: ScopeKind
    id: str = ""


HOST = Scope("host")
"""What the operator configured: for everyone."""

OPERATOR_FACES = frozenset({"python", "config", "command", "console"})
"""Faces behind which the operator stands."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Built by faces only. No header and no token in it: nothing of the caller's can be passed through."""

    principal: str
    face: str
    session: str | None = None
    view: str | None = None
    """The part of everything that it is served; None is all."""

    @property
    def operator(self) -> bool:
        """Whether it speaks for the host's operator."""
        return self.face in OPERATOR_FACES

    @property
    def scope(self) -> Scope:
        """Where what this caller configures will hold."""
        if self.operator:
            return HOST
        if self.session is not None:
            return Scope("session", self.session)
        return Scope("principal", self.principal)

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Where its toolkits are looked up, nearest first."""
        mine = Scope("principal", self.principal)
        if self.session is None:
            return (mine, HOST)
        return (Scope("session", self.session), mine, HOST)
