"""A remote agent as a source: one failing costs only itself, and its tools stay listed while it is away."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from anykit.capabilities import (
    Invocable,
    JsonObject,
    PromptProvider,
    ResourceProvider,
    State,
)
from anykit.sources.connection import CONNECT_TIMEOUT, Backoff, Connection, lose
from anykit.sources.hostile import clean_text
from anykit.wire.a2a import Card, sanitize

from .agent import Agent
from .client import AgentClient
from .discovery import Found
from .errors import CardError
from .tools import A2ATool, spec_of

log = logging.getLogger("anykit.sources.a2a")

REFRESH = 300.0
"""Seconds between two looks at the card, where its server says nothing else."""
REFRESH_BOUNDS = (30.0, 3600.0)
MISSES = 2
"""Looks in a row that may fail before the agent counts as gone."""


class _Presence:
    """An agent whose card was read."""

    def __init__(self) -> None:
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()


class A2ASource:
    """A provider of one agent's skills. Its tools are called `<clean(card.name)>_<skill>` already: no prefix is needed."""

    def __init__(
        self,
        agent: Agent,
        *,
        name: str = "",
        connect_timeout: float = CONNECT_TIMEOUT,
        backoff: Backoff | None = None,
        refresh: float = REFRESH,
    ) -> None:
        self.agent = agent
        self.name = name or agent.id or _name_of(agent)
        self._client = AgentClient(agent, lasting=True)
        self._refresh_every = refresh
        self._check = asyncio.Event()
        self._tools: tuple[A2ATool, ...] = ()
        self._connection: Connection[_Presence] = Connection(
            self.name, self._open, connect_timeout=connect_timeout, backoff=backoff
        )

    def __repr__(self) -> str:
        return f"<A2ASource {self.name} {self.state.status}>"

    # CapabilityProvider

    def invocables(self) -> Sequence[Invocable]:
        """The agent's skills, as last seen."""
        return self._tools

    def resources(self) -> Sequence[ResourceProvider]:
        """None: A2A has no resources."""
        return ()

    def prompts(self) -> Sequence[PromptProvider]:
        """None: A2A has no prompts."""
        return ()

    # Connected

    @property
    def state(self) -> State:
        """How it is. `detail` has the agent's name, version and dialect once known, and what of its card is left out."""
        state, found = self._connection.state, self._client.found
        if found is None:
            return state
        detail: JsonObject = {
            "agent": self._client.name,
            "version": clean_text(found.card.version, 64),
            "dialect": self.dialect,
        }
        if found.card.dropped:
            detail["left_out"] = {clean_text(one.what, 100): clean_text(one.reason, 300) for one in found.card.dropped}
        if self._client.extended_fault:
            detail["extended_card"] = self._client.extended_fault
        return replace(state, detail=detail)

    async def start(self) -> None:
        """Begin to look for the card."""
        self._connection.start()

    async def close(self) -> None:
        """Let go of the agent."""
        await self._connection.close()
        await self._client.close()

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back when the state or the tools changed."""
        return self._connection.subscribe(callback)

    # what can be shown of it

    @property
    def card(self) -> Card | None:
        """The card, once read."""
        return None if self._client.found is None else self._client.found.card

    @property
    def dialect(self) -> str:
        """The dialect in use: what the card promises, or what worked in its place. "" before the card is read."""
        return "" if self._client.way is None else self._client.way.dialect

    # for its tools

    async def client(self) -> AgentClient:
        """The client of an agent that is there; waits for one that is being looked for. Raises `Unavailable`."""
        await self._connection.link()
        return self._client

    def suspect(self) -> None:
        """Something went wrong with the agent: look now whether it is still there."""
        self._check.set()

    # its life

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[_Presence]:
        found = await self._client.load()
        self._offer(found)
        presence = _Presence()
        looking = asyncio.create_task(self._look_again(presence), name=f"anykit-a2a-card-{self.name}")
        try:
            yield presence
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)

    async def _look_again(self, presence: _Presence) -> None:
        """Look at the card from time to time, and whenever a call could not reach the agent."""
        misses = 0
        while True:
            self._check.clear()
            suspected = False
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause()):
                    await self._check.wait()
                    suspected = True
            if self.agent.card_url is None:
                continue
            before = self._client.found
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT):
                    found = await self._client.load()
            except (CardError, TimeoutError) as error:
                reason = error.message if isinstance(error, CardError) else "its card is not answered"
                misses += 1
                log.warning("%s: the card could not be read again: %s", self.name, reason)
                if suspected or misses >= MISSES:
                    lose(presence, reason)
                    return
                continue
            misses = 0
            if before is None or found.card != before.card:
                self._offer(found)
                self._connection.changed()

    def _pause(self) -> float:
        found = self._client.found
        if found is None or found.max_age is None:
            return self._refresh_every
        least, most = REFRESH_BOUNDS
        return min(max(found.max_age, least), most)

    def _offer(self, found: Found) -> None:
        known = {(tool.skill, tool.name): tool for tool in self._tools}
        prefix = _clean(found.card.name)
        tools: list[A2ATool] = []
        for skill in found.card.skills:
            # Not sanitized yet: the catalogue does that, so that it can tell and report what it made equal.
            spec = spec_of(skill, found.card, self.agent, f"{prefix}_{clean_text(skill.key, 256)}")
            old = known.get((skill.key, spec.name))
            tools.append(old if old is not None and old.spec == spec else A2ATool(spec, skill.key, self.agent, self))
        for one in found.card.dropped:
            log.warning("%s: %s is left out: %s", self.name, clean_text(one.what, 100), clean_text(one.reason, 300))
        self._tools = tuple(tools)


def _clean(name: str) -> str:
    """As sources' names are: foreign characters are `_`, and one stands before a leading digit or hyphen."""
    cleaned = sanitize(name)
    return cleaned if cleaned and not (cleaned[0].isdigit() or cleaned[0] == "-") else f"_{cleaned}"


def _name_of(agent: Agent) -> str:
    """A name from where the card is, for an agent without an id."""
    if agent.card_url is None:
        name = None if isinstance(agent.card, str) else agent.card.get("name")
        return _clean(name[:64]) if isinstance(name, str) and name else "agent"
    host = re.sub(r"^[a-z+.-]+://(?:[^@/]*@)?", "", agent.card_url, flags=re.IGNORECASE).partition("/")[0]
    return _clean(host or "agent")
