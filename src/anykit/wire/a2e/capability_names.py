"""What a capability is called on the wire, whatever a configuration or a peer calls it."""

from __future__ import annotations

from typing import Final

from .messages.base import A2ECapability
from .messages.registry import CAPABILITY_ALIASES

CAPABILITIES: Final = frozenset(member.value for member in A2ECapability)
"""Every capability of A2E 1.0."""


def capability_alias(name: str) -> str:
    """The name that travels for a capability; a name that is none comes back in lower case."""
    lower = name.strip().lower()
    return CAPABILITY_ALIASES.get(lower, lower)


def capability_name(name: str) -> str:
    """The name that travels for a capability.

    Raises:
        ValueError: the protocol has no such capability.
    """
    found = capability_alias(name)
    if found not in CAPABILITIES:
        raise ValueError(f"{name!r} is no capability of A2E; there are {', '.join(sorted(CAPABILITIES))}")
    return found
