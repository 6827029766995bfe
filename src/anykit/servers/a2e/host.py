"""The A2E host: what its sessions have in common."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from anykit.runtime import Session
from anykit.servers.identity import Tokens
from anykit.transports import MemoryTransport, memory_pair
from anykit.wire.a2e import HostLimits, HostSession, new_id

from .connection import Carrier, Connection
from .definitions import metadata_of
from .lines import serve_connection
from .loading import PluginClass, PluginProblem, load_plugins
from .mcp import AgentModels, Catalogued, McpMessages, Registrar
from .plugged import Plugged
from .skill import CAPABILITY as SKILL
from .skill import Shelved, SkillMessages

log = logging.getLogger("anykit.a2e")

OWN_NAME = "anykit"


class MessageIds:
    """Gives random ids (uuid4, 32 hex digits), from one draw of random bytes for many."""

    def __init__(self) -> None:
        self._pool: list[str] = []

    def __call__(self) -> str:
        """The next one."""
        if not self._pool:
            digits = os.urandom(4096).hex()
            self._pool = [
                f"{part[:12]}4{part[13:16]}{_VARIANT[part[16]]}{part[17:]}"
                for part in (digits[at : at + 32] for at in range(0, len(digits), 32))
            ]
        return self._pool.pop()


_VARIANT = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}


class Bench(Protocol):
    """What a host serves: it hands out sessions."""

    def session(self, *, principal: str = "local", face: str = "python", id: str | None = None) -> Session:
        """The verbs of one caller."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """What one host takes on. Counts, bytes, seconds."""

    max_parallel: int = 64
    queue: int = 256
    body: int = 8 * 1024 * 1024
    rate: float | None = None
    """Messages a second of one session."""
    sessions: int = 10_000
    pending: int = 64
    """Sessions that have not shaken hands."""
    handshake: float = 10.0
    """How long those live."""
    idle: float = 1800.0
    heartbeat: float = 15.0
    """Between two comments on a quiet stream."""
    undelivered: int = 32 * 1024 * 1024
    """Bytes that wait for an agent that does not read; beyond them its session ends."""
    replay: int = 256 * 1024
    """Bytes of a stream that are kept for a reader that comes back."""


class A2EHost:
    """Serves a workbench over A2E.

    Args:
        bench: Gives a session for each agent.
        token: What a handshake must show, or all that are given out; "" is an open host.
        plugins: Entries of the configuration (`name`, `type`, `cls`, `metadata`), or plugin classes.
        lenient_caps: Accept a handshake even where none of the wanted capabilities is served.
        principal: Whom the agents stand for.
        models: Has the agents' models answer what MCP servers ask; its `sample` is those sources' sampler.
        registrar: Takes MCP servers in that agents register, as far as the operator allows it; None takes none.
    """

    def __init__(
        self,
        bench: Bench,
        *,
        token: str | Tokens = "",
        plugins: Iterable[object] = (),
        limits: Limits | None = None,
        lenient_caps: bool = False,
        principal: str = "local",
        models: AgentModels | None = None,
        registrar: Registrar | None = None,
    ) -> None:
        self._bench = bench
        self._in_memory: set[asyncio.Task[str]] = set()
        self._tokens = Tokens.of(token, principal=principal)
        self._lenient = lenient_caps
        self._principal = principal
        self._models = models
        self._registrar = registrar
        self.limits = limits or Limits()
        self._ids = MessageIds()
        self._plugins: Sequence[PluginClass]
        self._plugins, self._problems = load_plugins(plugins)
        self._capabilities = _capabilities(self._plugins, mcp=isinstance(bench, Catalogued))

    @property
    def problems(self) -> Sequence[PluginProblem]:
        """Plugins that could not be loaded."""
        return self._problems

    @property
    def capabilities(self) -> Mapping[str, Mapping[str, Any]]:
        """What is served, with what a handshake tells of it; skills only where there is a source of them."""
        if isinstance(self._bench, Shelved) and self._bench.skills.offered and SKILL not in self._capabilities:
            return {**self._capabilities, SKILL: metadata_of(OWN_NAME, SKILL)}
        return self._capabilities

    def _admitted(self, token: str) -> str | None:
        return self._tokens.principal(token.encode(errors="surrogatepass"))

    async def connect(self) -> MemoryTransport:
        """An agent's end of a new session in this process, such as an `A2EClient` takes; it ends when that is closed."""
        theirs, ours = memory_pair()
        task = asyncio.create_task(serve_connection(self, ours), name="a2e in memory")
        self._in_memory.add(task)
        task.add_done_callback(self._in_memory.discard)
        return theirs

    def connection(
        self,
        carrier: Carrier,
        *,
        session_id: str | None = None,
        rated: bool = True,
        ids: Callable[[], str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Connection:
        """A new session that sends through `carrier`. Needs a running loop.

        With `rated` False whoever carries the lines keeps the rate. `ids` and `clock` (Unix seconds) are of its messages.
        """
        limits = self.limits
        ids = ids or self._ids
        wire = HostSession(
            session_id=session_id or new_id(),
            capabilities=self.capabilities,
            new_id=ids,
            now=clock(),
            admit=self._admitted if self._tokens else None,
            limits=HostLimits(
                max_parallel=limits.max_parallel,
                queue=limits.queue,
                max_line=limits.body,
                rate=limits.rate if rated else None,
            ),
            lenient_caps=self._lenient,
        )

        def open_session(agent_id: str) -> Session:
            principal = wire.principal or self._principal
            return self._bench.session(principal=principal, face="a2e", id=wire.session_id)

        def plugged(connection: Connection) -> Plugged | None:
            return Plugged(self._plugins, wire.session_id, connection.heard) if self._plugins else None

        def mcp(connection: Connection) -> McpMessages | None:
            if not isinstance(self._bench, Catalogued):
                return None
            return McpMessages(
                self._bench.catalog,
                session=lambda: connection.session,
                push=lambda message: connection.heard("", message),
                registrar=self._registrar,
            )

        def skills(connection: Connection) -> SkillMessages | None:
            if not isinstance(self._bench, Shelved):
                return None
            return SkillMessages(
                self._bench.skills,
                session=lambda: connection.session,
                tell=connection.tell,
                toolkits=connection.toolkits,
                clock=clock,
            )

        return Connection(
            wire,
            new_id=ids,
            clock=clock,
            open_session=open_session,
            carrier=carrier,
            plugged=plugged,
            mcp=mcp,
            models=self._models,
            skills=skills,
        )


def _capabilities(plugins: Sequence[PluginClass], *, mcp: bool) -> Mapping[str, Mapping[str, Any]]:
    """One entry a capability, with the metadata of whoever answers first; the host's own has priority 0."""
    served: dict[str, Mapping[str, Any]] = {
        "tools": metadata_of(OWN_NAME, "tools"),
        "toolkits": metadata_of(OWN_NAME, "toolkits"),
    }
    if mcp:
        served["mcp"] = metadata_of(OWN_NAME, "mcp")
    for plugin in reversed(plugins):
        if plugin.capability not in served or plugin.priority >= 0:
            served[plugin.capability] = plugin.metadata
    return served
