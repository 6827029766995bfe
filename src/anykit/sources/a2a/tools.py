"""An agent's skills as tools."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from anykit.capabilities import (
    Annotations,
    Answer,
    CapabilityContext,
    ExecutionFailed,
    InvocableRequest,
    InvocableResult,
    Json,
    JsonObject,
    Resume,
    Suspension,
)
from anykit.capabilities.outcomes import UNAVAILABLE
from anykit.sources.hostile import clean_tags, clean_text
from anykit.tools import PermissionRequest, Tool, ToolResult, ToolSpec, attempt, tool_result
from anykit.wire.a2a import Card, Skill, sanitize

from .agent import Agent
from .calls import RemoteCall
from .client import AgentClient, new_id

INPUT_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "task": {"type": "string", "description": "What the agent should do, in plain words, with all that it needs."}
    },
    "required": ["task"],
    "additionalProperties": False,
}
"""Of every skill (Toolnexus A2A tools contract)."""
GRACE = 5.0
"""Seconds on top of an agent's `timeout` after which a call that does not end by itself is ended."""
MAX_DESCRIPTION = 4096


class Remote(Protocol):
    """Where a tool gets its client from."""

    async def client(self) -> AgentClient:
        """The client of an agent that is there. Raises `Unavailable`."""
        ...

    def suspect(self) -> None:
        """The agent could not be reached."""
        ...


class A2ATool(Tool):
    """A skill of a remote agent."""

    def __init__(self, spec: ToolSpec, skill: str, agent: Agent, remote: Remote) -> None:
        super().__init__(spec)
        self.skill = skill
        """What the agent calls it."""
        self._agent = agent
        self._remote = remote

    @property
    def may_ask(self) -> bool:
        """Never in the middle of a call: what an agent asks comes back as a `Suspension`."""
        return False

    def preflight(self, request: InvocableRequest) -> Sequence[PermissionRequest]:
        """It calls a peer."""
        return (PermissionRequest("peer_call", self._agent.where, {"skill": self.skill}),)

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult | Suspension:
        """Have the agent do it, or go on with what it asked."""
        name = str(self._spec.metadata.get("agent", ""))
        try:
            return await RemoteCall(self._agent, name, self.skill, context, request).carry_out(self._remote.client)
        except ExecutionFailed as error:
            if error.code == UNAVAILABLE:
                self._remote.suspect()
            raise

    async def execute(self, arguments: JsonObject | None, context: CapabilityContext | None = None) -> ToolResult:
        """Have the agent do it; whatever becomes of it is a result. One that asks is gone on with by `answer`."""
        return _with_metadata(await super().execute(arguments, context))

    async def answer(
        self,
        suspension: Suspension,
        *,
        ok: bool = True,
        data: Json = None,
        context: CapabilityContext | None = None,
    ) -> ToolResult:
        """Answer what the agent asked in `execute`, and go on with its task; `ok` False refuses and cancels it."""
        request = InvocableRequest(
            input={"task": ""}, call_id=new_id(), resume=Resume(suspension.state, Answer(ok, data))
        )
        outcome = await attempt(self, request, context or CapabilityContext())
        return _with_metadata(tool_result(outcome, limit=self._spec.max_output))


def _with_metadata(result: ToolResult) -> ToolResult:
    """A question's result says, as any other, which task it is about."""
    if result.suspension is None or not isinstance(result.suspension.data, dict):
        return result
    known: dict[str, Any] = {key: value for key, value in result.suspension.data.items() if key != "data"}  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return replace(result, metadata={**known, **result.metadata})


def spec_of(skill: Skill, card: Card, agent: Agent, name: str) -> ToolSpec:
    """What a model sees of a skill."""
    title = clean_text(skill.name, 200).strip() or None
    return ToolSpec(
        name=name,
        description=clean_text(skill.description, MAX_DESCRIPTION).strip() or name,
        input_schema=INPUT_SCHEMA,
        metadata={"agent": clean_text(card.name, 100), "skill": clean_text(skill.key, 256)},
        annotations=Annotations(title=title, open_world=True),
        title=title,
        tags=clean_tags(skill.tags),
        kind="a2a",
        source="a2a",
        timeout=agent.timeout + GRACE,
    )


def contract_names(card: Card) -> list[str]:
    """The name of each skill's tool: `sanitize(card.name)_sanitize(skill.id or skill.name)`.

    Where that makes equal ones of different skills, every changed one ends in a hash of its own id.
    """
    prefix = sanitize(card.name)
    plain = [f"{prefix}_{sanitize(skill.key)}" for skill in card.skills]
    count = Counter(plain)
    return [
        name if count[name] == 1 or sanitize(skill.key) == skill.key else f"{name}_{_hash(card.name, skill.key)}"
        for name, skill in zip(plain, card.skills, strict=True)
    ]


def _hash(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode(errors="surrogatepass")).hexdigest()[:8]


class _Bare:
    """A client that is always there, for tools without a source."""

    def __init__(self, client: AgentClient) -> None:
        self._client = client

    async def client(self) -> AgentClient:
        return self._client

    def suspect(self) -> None:
        """Nobody keeps watch."""


async def agent_tools(agent: Agent) -> list[Tool]:
    """Fetch the agent's card and make a tool of each of its skills, in their order.

    Raises `CardError` where there is no card that can be used.
    """
    client = AgentClient(agent)
    card = (await client.load()).card
    remote = _Bare(client)
    return [
        A2ATool(spec_of(skill, card, agent, name), skill.key, agent, remote)
        for skill, name in zip(card.skills, contract_names(card), strict=True)
    ]
