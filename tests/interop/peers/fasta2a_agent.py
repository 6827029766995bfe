"""An agent on fasta2a. The task's text is the scenario."""

from __future__ import annotations

import asyncio
import base64
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fasta2a import FastA2A, Worker
from fasta2a.broker import InMemoryBroker
from fasta2a.storage import InMemoryStorage
from serving import bind, serve


def said(text: str) -> dict[str, Any]:
    return {"role": "agent", "message_id": uuid.uuid4().hex, "parts": [{"text": text}]}


def artifact(*parts: dict[str, Any], identifier: str = "") -> dict[str, Any]:
    return {"artifact_id": identifier or uuid.uuid4().hex, "parts": list(parts)}


def text_part(text: str) -> dict[str, Any]:
    return {"text": text}


class Agent(Worker[Any]):
    def __init__(self, broker: InMemoryBroker, storage: InMemoryStorage[Any]) -> None:
        super().__init__(broker=broker, storage=storage)
        self.started = self.cancelled = 0
        self.running: dict[str, asyncio.Task[None]] = {}

    async def run_task(self, params: Any) -> None:
        # In the background: the worker takes one operation at a time, and a cancelling has to get through.
        self.running[params["id"]] = asyncio.ensure_future(self.work(params))
        if params["message"]["parts"][0].get("text") != "cancel":
            await self.running[params["id"]]

    async def work(self, params: Any) -> None:
        task_id = params["id"]
        task = await self.storage.load_task(task_id)
        context_id = task["context_id"]
        text = params["message"]["parts"][0].get("text", "").strip()
        await self.storage.update_task(task_id, state="working")
        match text:
            case "instant":  # kept only: the end of the stream says no more than that it is over
                await self.finish(task_id, artifact(text_part("done at once")))
            case "slow":
                await self.publish_status(task_id, context_id, "working", said("half done"))
                await asyncio.sleep(0.2)
                await self.finish(task_id, artifact(text_part("slow and done")))
            case "failed":
                await self.storage.update_task(task_id, state="failed", new_messages=[said("the printer is on fire")])
            case "canceled":
                await self.end(task_id, context_id, "canceled", "never mind")
            case "rejected":
                await self.end(task_id, context_id, "rejected", "not for you")
            case "input":
                await self.end(task_id, context_id, "input-required", "What is the dog called?")
            case "auth":
                await self.end(task_id, context_id, "auth-required", "Sign in first")
            case "chunks":
                for number, piece in enumerate(("one ", "two ", "three")):
                    chunk = artifact(text_part(piece), identifier="story")
                    await self.publish_artifact(task_id, context_id, chunk, append=number > 0, last_chunk=number == 2)
                    await asyncio.sleep(0.01)
                await self.finish(task_id, artifact(text_part("one two three"), identifier="story"))
            case "data":
                file = {"raw": base64.b64encode(b"a,b\n").decode(), "filename": "table.csv", "media_type": "text/csv"}
                made = artifact(text_part("five"), {"data": {"sum": 5}}, file)
                await self.publish_artifact(task_id, context_id, made)
                await self.finish(task_id, made)
            case "count":
                made = artifact(text_part(f"{self.started} {self.cancelled}"))
                await self.publish_artifact(task_id, context_id, made)
                await self.finish(task_id, made)
            case "cancel":
                self.started += 1
                await asyncio.sleep(60)
            case _:
                raise RuntimeError("no such scenario")

    async def end(self, task_id: str, context_id: str, state: Any, text: str) -> None:
        await self.storage.update_task(task_id, state=state, new_messages=[said(text)])
        await self.publish_status(task_id, context_id, state, said(text))

    async def finish(self, task_id: str, made: dict[str, Any]) -> None:
        await self.storage.update_task(task_id, state="completed", new_artifacts=[made])

    async def cancel_task(self, params: Any) -> None:
        running = self.running.pop(params["id"], None)
        if running is not None:
            self.cancelled += 1
            running.cancel()
        await self.storage.update_task(params["id"], state="canceled")

    def build_message_history(self, history: list[Any]) -> list[Any]:
        return history

    def build_artifacts(self, result: Any) -> list[Any]:
        return [result]


async def main() -> None:
    listener, url = bind()
    storage: InMemoryStorage[Any] = InMemoryStorage()
    broker = InMemoryBroker()
    worker = Agent(broker, storage)

    @asynccontextmanager
    async def lifespan(app: FastA2A) -> AsyncIterator[None]:
        async with app.task_manager, worker.run():
            yield

    skill = {"id": "do", "name": "do", "description": "Does it", "tags": ["do"]}
    app = FastA2A(storage=storage, broker=broker, name="Peer", url=url, skills=[skill], lifespan=lifespan)
    await serve(app, listener, url, lifespan="on")


if __name__ == "__main__":
    asyncio.run(main())
