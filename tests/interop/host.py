"""Our own host as the interop clients find it: one skill a scenario. Prints its URL, serves until its input ends."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from anykit import Toolkit, Workbench, tool
from anykit.capabilities import (
    Artifact,
    BlobPart,
    CapabilityContext,
    InvocableResult,
    Progress,
    Question,
    TextPart,
)
from anykit.servers import Address, Server
from anykit.servers.a2a import a2a_mounts
from anykit.stores import MemoryRecords
from anykit.tools import ToolError
from anykit.transports import AddressGuard


@tool
async def shout(text: str) -> str:
    """Says it louder."""
    return text.upper()


@tool
async def add(a: int, b: int) -> dict[str, Any]:
    """Adds two numbers."""
    return {"sum": a + b}


@tool
async def slow(context: CapabilityContext) -> str:
    """Takes its time, and says so."""
    context.emit(Progress(1, 2, "half done"))
    await asyncio.sleep(0.2)
    return "slow and done"


@tool
async def chunks(context: CapabilityContext) -> str:
    """Sends its result in pieces."""
    for piece, more in (("one ", False), ("two ", True), ("three", True)):
        context.emit(Artifact("story", TextPart(text=piece), append=more, last=piece == "three"))
        await asyncio.sleep(0.02)
    return "one two three"


@tool
async def files() -> InvocableResult:
    """A file."""
    return InvocableResult(text="a table", content=(BlobPart(data=b"a,b\n", name="table.csv", media_type="text/csv"),))


@tool
async def fails() -> str:
    """Never works."""
    raise ToolError("the printer is on fire")


@tool
async def sleep() -> str:
    """Sleeps until it is cancelled."""
    await asyncio.sleep(60)
    return "never said"


@tool
async def name_it(context: CapabilityContext, size: int = 1) -> str:
    """Asks for a name."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    answer = await context.ask(Question("input", "What is the dog called?", schema=schema))
    return f"dog={answer.data['name']}"


@tool
async def approve_it(context: CapabilityContext, amount: int = 5) -> str:
    """Asks for an approval."""
    answer = await context.ask(Question("approval", "Pay 5?"))
    return "paid" if answer.ok else "not paid"


class Vault(Toolkit):
    """Nobody has configured it."""

    name = "vault"

    @tool
    async def open_vault(self) -> str:
        """Opens it."""
        return "open"


async def main(token: str) -> None:
    sources = (shout, add, slow, chunks, files, fails, sleep, name_it, approve_it, Vault)
    async with Workbench(*sources, records=MemoryRecords()) as bench:

        def tell(address: Address) -> None:
            print(address.url, flush=True)  # noqa: T201 - how the tests learn the port

        mounts = a2a_mounts(bench, secured=bool(token), guard=AddressGuard(allow_private=True))
        server = Server(mounts, port=0, token=token, listening=tell)
        serving = asyncio.create_task(server.serve(signals=False))
        await asyncio.to_thread(sys.stdin.read)
        server.stop()
        await serving


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else ""))
