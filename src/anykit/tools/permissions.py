"""What a call is about to touch: asked of a tool before it runs, judged by the policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

PermissionKind: TypeAlias = Literal["shell", "file_read", "file_write", "file_delete", "network", "peer_call", "custom"]


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """One thing that a call wants to do. `target` is what it does it to: a path, a host, a command, a peer."""

    kind: PermissionKind
    target: str
    detail: Mapping[str, Any] = field(default_factory=dict[str, Any])
