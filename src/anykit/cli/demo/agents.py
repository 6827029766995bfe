"""The steps with A2A agents: one on the official SDK called by us, our host called by the official client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from anykit.a2a import agent
from anykit.app import Workbench
from anykit.capabilities import CapabilityContext, Event, Status

from .stage import argv_of_host, command, listening, require
from .steps import Step

PATIENCE = 12.0
"""Seconds to wait for what has to come at once."""
CALL_SECONDS = 10.0
QUICK = 1.5
"""Seconds within which a good agent has to be usable, whoever else hangs."""
FILE = "agents.toml"
SENTENCE = "one toolbox for any agent"


@dataclass(frozen=True, slots=True)
class AgentStage:
    """An agent of somebody else, and our own host."""

    transport: str
    title: str
    folder: Path
    agent_url: str
    """Of the agent on the official SDK."""
    host_url: str
    """Of our host."""

    def bench(self, *more: str, settle: float = PATIENCE) -> Workbench:
        """A workbench with the agent, and with those at more URLs."""
        agents = [agent(url, timeout=CALL_SECONDS) for url in (self.agent_url, *more)]
        return Workbench(agents=agents, data_dir=self.folder / "data", settle=settle)


@asynccontextmanager
async def with_agents(folder: Path) -> AsyncGenerator[AgentStage]:
    """Both, each in a process of its own on a free port of this machine."""
    clerk = [sys.executable, "-m", "anykit.cli.demo.clerk"]
    async with contextlib.AsyncExitStack() as stack:
        agent_url = await stack.enter_async_context(listening(clerk, folder))
        host_url = await stack.enter_async_context(listening(argv_of_host(folder, "--port", "0"), folder))
        (folder / FILE).write_text(f'data_dir = "data"\n\n[agents.clerk]\ncard = "{agent_url}"\n')
        title = f"an agent on the official SDK, {agent_url}; anykit serve, {host_url}"
        yield AgentStage("a2a", title, folder, agent_url, host_url)


async def call_official_agent(stage: AgentStage) -> str:
    """Its skills are tools; its progress and its answer, sent in pieces, arrive."""
    heard: list[Event] = []
    async with stage.bench() as bench:
        names = [tool.name for tool in bench.tools()]
        require(names == ["Clerk_file", "Clerk_book"], f"its tools are {names}")
        result = await bench.call("Clerk_file", {"task": SENTENCE}, context=CapabilityContext(emit=heard.append))
        state = bench.sources()[0].state
    require(result.output == f"filed: {SENTENCE}", f"it answered {result.output[:200]!r}")
    said = [event.message for event in heard if isinstance(event, Status)]
    require("looking for a pen" in said, f"of its progress only {said} arrived")
    return f"{(state.detail or {}).get('dialect', 'A2A')}: {result.output!r}, after {said[0]!r}"


async def called_by_official_client(stage: AgentStage) -> str:
    """A tool is a skill; text and structured result reach the official client."""
    return await _called(stage, "1.0")


async def called_by_official_client_0_3(stage: AgentStage) -> str:
    """The same in 0.3, which the client speaks where the card offers nothing else."""
    return await _called(stage, "0.3")


async def _called(stage: AgentStage, version: str) -> str:
    # A second of imports, for these two steps only.
    import httpx  # noqa: PLC0415
    from a2a.client import A2ACardResolver, ClientConfig, ClientFactory  # noqa: PLC0415
    from a2a.types import AgentCard, Message, Part, Role, SendMessageRequest  # noqa: PLC0415
    from google.protobuf.json_format import MessageToDict  # noqa: PLC0415

    async with httpx.AsyncClient(timeout=CALL_SECONDS) as http:
        card = await A2ACardResolver(http, stage.host_url).get_agent_card()
        skills = [skill.id for skill in card.skills]
        require("count_words" in skills, f"the card's skills are {skills}")
        spoken = AgentCard()
        spoken.CopyFrom(card)
        del spoken.supported_interfaces[:]
        spoken.supported_interfaces.extend(one for one in card.supported_interfaces if one.protocol_version == version)
        require(len(spoken.supported_interfaces) > 0, f"the card offers no {version}")
        client = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(spoken)
        message = Message(message_id=uuid.uuid4().hex, role=Role.ROLE_USER, parts=[Part(text=SENTENCE)])
        message.metadata["skillId"] = "count_words"
        request = SendMessageRequest(message=message)
        answers = [json.dumps(MessageToDict(answer)) async for answer in client.send_message(request)]
    whole = answers[-1] if answers else ""
    require('"words": 5' in whole.replace("5.0", "5"), f"the answer is {whole[:300]}")
    return f"{version} {spoken.supported_interfaces[0].protocol_binding}: 5 words, 21 letters, as data"


async def isolate_agents(stage: AgentStage) -> str:
    """One agent is dead, one accepts and never answers: the third is usable at once, and both say what is wrong."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with _hung() as hung:
            begun = time.monotonic()
            async with stage.bench(dead, hung, settle=0) as bench:
                result = await asyncio.wait_for(bench.call("Clerk_file", {"task": "quick"}), PATIENCE)
                took = time.monotonic() - begun
                require(result.output == "filed: quick", f"it answered {result.output[:200]!r}")
                require(took < QUICK, f"the good agent took {took:.2f} s")
                states = {source.location: source.state for source in bench.sources()}
                require(states[dead].status == "failed", f"the dead one is {states[dead].status}")
                require(states[hung].status == "connecting", f"the hung one is {states[hung].status}")
                reason = states[dead].reason
    require(time.monotonic() - begun < PATIENCE, "the hung one kept the workbench from closing")
    return f"the good one answered after {took:.2f} s; the dead one: {reason}"


@asynccontextmanager
async def _hung() -> AsyncGenerator[str]:
    """What accepts connections and never says a word."""

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read(-1)  # until the other side gives up
        finally:
            writer.close()

    server = await asyncio.start_server(never, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def answer_question(stage: AgentStage) -> str:
    """The agent asks; this workbench ends; another process answers, and the same task goes on."""
    async with stage.bench() as bench:
        asked = await bench.call("Clerk_book", {"task": "a table for two"})
    suspension = asked.suspension
    require(suspension is not None, f"it did not ask: {asked.output[:200]!r}")
    if suspension is None:
        return ""
    require(suspension.prompt == "For which day?", f"it asked {suspension.prompt!r}")
    done = await command(stage.folder, FILE, "answer", suspension.id, "Friday", "at", "eight")
    require(done == "booked: Friday at eight", f"the answer led to {done[:200]!r}")
    left = await command(stage.folder, FILE, "answer", "--json")
    require(json.loads(left) == [], f"still waiting is {left[:200]}")
    return f"{suspension.prompt} anykit answer {suspension.id} Friday at eight -> {done!r}"


A2A_STEPS = (
    Step("an agent on the official SDK is called", call_official_agent),
    Step("our host is called by the official client", called_by_official_client),
    Step("our host is called by the official client in 0.3", called_by_official_client_0_3),
    Step("a dead and a hung agent cost only themselves", isolate_agents),
    Step("a question is answered by another process", answer_question),
)
"""What `anykit demo` shows with A2A agents. Later ones are added here."""
