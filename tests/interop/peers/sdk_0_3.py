"""An agent on the official Python SDK 0.3.26: TRANSPORT is JSONRPC or HTTP+JSON. The task's text is the scenario."""

from __future__ import annotations

import asyncio
import base64
import sys

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentSkill,
    DataPart,
    FilePart,
    FileWithBytes,
    Part,
    TaskState,
    TextPart,
)
from a2a.utils import new_agent_text_message, new_task
from serving import bind, serve


def said(text: str) -> list[Part]:
    return [Part(root=TextPart(text=text))]


class Agent(AgentExecutor):
    def __init__(self) -> None:
        self.started = self.cancelled = 0

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text = context.get_user_input().strip()
        answer = ""
        task = context.current_task
        if task is None:
            if text == "message":
                await event_queue.enqueue_event(new_agent_text_message("just a message"))
                return
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        elif task.status.state == TaskState.input_required:
            text, answer = "answered", text
        else:
            text = "signed"
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        match text:
            case "instant":
                await updater.add_artifact(said("done at once"))
                await updater.complete()
            case "slow":
                await updater.update_status(TaskState.working, updater.new_agent_message(said("half done")))
                await asyncio.sleep(0.2)
                await updater.add_artifact(said("slow and done"))
                await updater.complete()
            case "failed":
                await updater.failed(updater.new_agent_message(said("the printer is on fire")))
            case "canceled":
                await updater.cancel(updater.new_agent_message(said("never mind")))
            case "rejected":
                await updater.reject(updater.new_agent_message(said("not for you")))
            case "input":
                await updater.requires_input(updater.new_agent_message(said("What is the dog called?")), final=True)
            case "answered":
                await updater.add_artifact(said(f"dog={answer}"))
                await updater.complete()
            case "auth":
                await updater.requires_auth(updater.new_agent_message(said("Sign in first")), final=True)
            case "signed":
                await updater.add_artifact(said("signed in"))
                await updater.complete()
            case "chunks":
                for number, piece in enumerate(("one ", "two ", "three")):
                    await updater.add_artifact(
                        said(piece), artifact_id="story", append=number > 0, last_chunk=number == 2
                    )
                    await asyncio.sleep(0.01)
                await updater.complete()
            case "data":
                encoded = base64.b64encode(b"a,b\n").decode()
                file = FilePart(file=FileWithBytes(bytes=encoded, name="table.csv", mime_type="text/csv"))
                await updater.add_artifact([*said("five"), Part(root=DataPart(data={"sum": 5})), Part(root=file)])
                await updater.complete()
            case "count":
                await updater.add_artifact(said(f"{self.started} {self.cancelled}"))
                await updater.complete()
            case "cancel":
                self.started += 1
                await asyncio.sleep(60)
            case _:
                raise RuntimeError("no such scenario")

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.cancelled += 1
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


async def main(transport: str) -> None:
    listener, url = bind()
    card = AgentCard(
        name="Peer",
        description="A peer",
        version="1",
        url=url,
        preferred_transport=transport,
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="do", name="do", description="Does it", tags=["do"])],
    )
    handler = DefaultRequestHandler(agent_executor=Agent(), task_store=InMemoryTaskStore())
    if transport == "JSONRPC":
        app = A2AStarletteApplication(agent_card=card, http_handler=handler).build()
    else:
        app = A2ARESTFastAPIApplication(agent_card=card, http_handler=handler).build()
    await serve(app, listener, url)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
