"""Our own host as a peer: one skill that does what the task's text says."""

from __future__ import annotations

import asyncio
import sys

from anykit import Workbench, tool
from anykit.capabilities import (
    Artifact,
    BlobPart,
    CapabilityContext,
    InvocableResult,
    Question,
    Status,
    TextPart,
)
from anykit.servers import Address, Server
from anykit.servers.a2a import About, a2a_mounts
from anykit.stores import MemoryRecords
from anykit.tools import ToolError


class Seen:
    started = 0
    cancelled = 0


@tool
async def do(task: str, context: CapabilityContext) -> InvocableResult:
    """Does it."""
    match task:
        case "instant":
            return InvocableResult(text="done at once")
        case "slow":
            context.emit(Status("half done"))
            await asyncio.sleep(0.2)
            return InvocableResult(text="slow and done")
        case "failed":
            raise ToolError("the printer is on fire")
        case "input":
            schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
            answer = await context.ask(Question("input", "What is the dog called?", schema=schema))
            return InvocableResult(text=f"dog={answer.data['name']}")
        case "auth":
            await context.ask(Question("authorization", "Sign in first", url="https://login.example/"))
            return InvocableResult(text="signed in")
        case "chunks":
            for number, piece in enumerate(("one ", "two ", "three")):
                context.emit(Artifact("story", TextPart(text=piece), append=number > 0, last=number == 2))
                await asyncio.sleep(0.01)
            return InvocableResult(text="one two three")
        case "data":
            table = BlobPart(data=b"a,b\n", name="table.csv", media_type="text/csv")
            return InvocableResult(text="five", structured={"sum": 5}, content=(table,))
        case "count":
            return InvocableResult(text=f"{Seen.started} {Seen.cancelled}")
        case "cancel":
            Seen.started += 1
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                Seen.cancelled += 1
                raise
            return InvocableResult(text="never said")
        case _:
            raise ToolError("no such scenario")


async def main() -> None:
    async with Workbench(do, records=MemoryRecords()) as bench:

        def tell(address: Address) -> None:
            print(address.url, flush=True)  # noqa: T201 - how the tests learn the port

        server = Server(a2a_mounts(bench, about=About(name="Peer")), port=0, listening=tell)
        serving = asyncio.create_task(server.serve(signals=False))
        await asyncio.to_thread(sys.stdin.read)
        server.stop()
        await serving


if __name__ == "__main__":
    asyncio.run(main())
