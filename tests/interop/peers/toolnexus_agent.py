"""toolnexus 0.21's A2A server, with a model that does what the task's text says."""

from __future__ import annotations

import asyncio
import sys
from types import SimpleNamespace
from typing import Any

from toolnexus.serve import start_a2a_server

started = 0


async def run_task(text: str, context_id: str | None = None) -> Any:
    global started
    match text.strip():
        case "instant":
            return SimpleNamespace(status="completed", pending=None, text="done at once")
        case "slow":
            await asyncio.sleep(0.2)
            return SimpleNamespace(status="completed", pending=None, text="slow and done")
        case "failed":
            raise RuntimeError("the printer is on fire")
        case "input":
            return SimpleNamespace(status="pending", pending=SimpleNamespace(prompt="What is the dog called?"), text="")
        case "count":
            return SimpleNamespace(status="completed", pending=None, text=f"{started} 0")
        case "cancel":
            started += 1
            await asyncio.sleep(60)
            return None
        case _:
            raise RuntimeError("no such scenario")


async def main() -> None:
    skill = SimpleNamespace(name="do", description="Does it")
    handle = await start_a2a_server("127.0.0.1:0", {"name": "Peer"}, [skill], run_task)
    print(handle.url, flush=True)  # noqa: T201 - how the tests learn the port
    await asyncio.to_thread(sys.stdin.read)
    await handle.stop()


if __name__ == "__main__":
    asyncio.run(main())
