"""May this call run? Asked in one place, the executor, for every protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from anykit.capabilities import InvocableRequest
from anykit.tools import PermissionRequest, Tool

from .callers import Caller

Verdict: TypeAlias = Literal["allow", "ask", "deny"]


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and, where it is not `allow`, the reason that the caller reads."""

    verdict: Verdict
    reason: str = ""


ALLOWED = Decision("allow")


class Policy(Protocol):
    """Judges a call before it runs. `ask` with nobody to ask is a no."""

    def decide(
        self, caller: Caller, tool: Tool, request: InvocableRequest, permissions: Sequence[PermissionRequest]
    ) -> Decision:
        """Must not block; raising is a no."""
        ...


class AllowAll:
    """Everything may run."""

    def decide(
        self, caller: Caller, tool: Tool, request: InvocableRequest, permissions: Sequence[PermissionRequest]
    ) -> Decision:
        """Yes."""
        return ALLOWED
