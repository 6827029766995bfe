"""A2A: the skills of remote agents as tools.

weather = agent("https://weather.example")                  # touches no network
for tool in await agent_tools(weather):                     # one tool a skill; raises CardError
    result = await tool.execute({"task": "Will it rain in Oslo?"})

async with Workbench(agents=[weather]) as bench: ...        # an agent that is away costs only itself
"""

from __future__ import annotations

from typing import Any

from .sources.a2a import Agent, CardError, agent, agent_tools

__all__ = ["Agent", "CardError", "agent", "agent_tools"]


def open_source(config: Any, opening: Any) -> Any:
    """The entry point `a2a` of the group `anykit.sources`: from a source's table in the configuration to a source.

    Never raises for what a person may get wrong.
    """
    from .runtime import Source  # noqa: PLC0415 - whoever wants an agent's tools needs no runtime
    from .sources.a2a import A2ASource  # noqa: PLC0415 - the same

    target = str(config.url or config.target or "")
    token = config.token.get_secret_value() if config.token is not None else ""
    # What the table held is resolved already, and a text is read for references only once.
    headers = {"authorization": f"Bearer {token.replace('${', '$${')}"} if token else None
    made = agent(target, headers, id=config.name or None)
    provider = A2ASource(made, name=config.name or "", connect_timeout=opening.connect_timeout)
    return Source(provider.name, "a2a", provider, prefixed=False, location=made.where)
