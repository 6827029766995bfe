"""toolnexus 0.21's `agent_tools` as a client: URL TOKEN; prints what each scenario gave as JSON.

It knows one argument, the task's text, and three ends: completed, failed, canceled.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from toolnexus.a2a import agent, agent_tools


class Signal:
    def __init__(self) -> None:
        self.aborted = False


class Context:
    def __init__(self, signal: Any = None) -> None:
        self.timeout = 6.0
        self.signal = signal


async def main(url: str, token: str) -> None:
    card = f"{url}/.well-known/agent-card.json"
    peer = agent(card, headers={"Authorization": f"Bearer {token}"}, timeout=6000, poll_every=20)
    tools = {tool.name: tool for tool in await agent_tools(peer)}

    async def run(name: str, task: str, context: Any = None) -> dict[str, Any]:
        result = await tools[f"anykit_{name}"].execute({"task": task}, context or Context())
        return {
            "text": result.output,
            "is_error": result.is_error,
            "state": result.metadata["state"],
            "id": result.metadata["taskId"],
        }

    def call(name: str, **arguments: Any) -> str:
        return json.dumps({"tool": name, "arguments": arguments})

    async def instant() -> Any:
        return await run("add", call("add", a=2, b=3))

    async def text() -> Any:
        return await run("shout", "hello")

    async def slow() -> Any:
        return await run("slow", call("slow"))

    async def polling() -> Any:
        return await run("slow", call("slow"))

    async def failed() -> Any:
        return await run("fails", call("fails"))

    async def rejected() -> Any:
        return await run("shout", call("open_vault"))

    async def input_required() -> Any:
        return await run("name_it", call("name_it"))

    async def auth_required() -> Any:
        return await run("approve_it", call("approve_it"))

    async def chunks() -> Any:
        return await run("chunks", call("chunks"))

    async def files() -> Any:
        return await run("files", call("files"))

    async def cancel() -> Any:
        signal = Signal()
        running = asyncio.ensure_future(run("sleep", call("sleep"), Context(signal)))
        await asyncio.sleep(0.2)
        signal.aborted = True
        return await running

    results: dict[str, Any] = {"card": {"name": "anykit", "skills": [name.removeprefix("anykit_") for name in tools]}}
    for scenario in (
        instant,
        text,
        slow,
        polling,
        failed,
        rejected,
        input_required,
        auth_required,
        chunks,
        files,
        cancel,
    ):
        try:
            async with asyncio.timeout(8):
                results[scenario.__name__] = await scenario()
        except Exception as error:
            results[scenario.__name__] = {"broke": f"{type(error).__name__}: {error}"}
    print(json.dumps(results))  # noqa: T201 - what the tests read


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
