"""What is read of a server in a client's file: the entry as a whole, its parts spelt one way, what its client's settings add."""

from __future__ import annotations

from dataclasses import dataclass, field

from anykit.capabilities import JsonObject

from .servers import Era, McpServer, OAuth, Transport
from .transforms import Transforms


@dataclass(frozen=True, slots=True)
class Entry:
    """A server as it stands in a file: what to connect to, or why not."""

    name: str
    server: McpServer | None = None
    fault: str = ""
    """Why there is no `server`."""
    disabled: str = ""
    """Why it is switched off; empty where it is not."""
    required: bool = False
    description: str = ""
    ignored: tuple[str, ...] = ()
    """Keys that mean nothing to us."""
    reports: tuple[str, ...] = ()
    """What works and may not be meant, each with its place: a placeholder that stays, a timeout that is too short."""
    inputs: JsonObject | None = None
    """The schema of what it has to be told before it starts."""
    approvals: tuple[tuple[str, str], ...] = ()
    """What the client does before a call, by pattern of tools: `allow`, `ask`, `auto`. Nothing of ours goes by it yet."""
    scope: str = ""
    """`local` for one of a person's file that is for this project only."""

    @property
    def enabled(self) -> bool:
        """Whether it is switched on."""
        return not self.disabled


@dataclass(frozen=True, slots=True)
class Gate:
    """What stands elsewhere about a server: in its client's settings."""

    disabled: str = ""
    deny: tuple[str, ...] = ()
    approvals: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Parts:
    """What an entry says, spelt one way; texts are filled in, or references of ours. Times are seconds."""

    argv: list[str] = field(default_factory=list[str], repr=False)
    env: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str | None = None
    url: str = field(default="", repr=False)
    transport: Transport = "auto"
    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    headers_helper: str = ""
    token: str = field(default="", repr=False)
    oauth: OAuth | None = None
    login: bool = True
    era: Era = "auto"
    connect_timeout: float | None = None
    call_timeout: float | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    transforms: Transforms | None = None
