"""An agent on the official Python SDK 1.3: MODE is strict, compat, rest or rest-compat. The task's text is the scenario."""

from __future__ import annotations

import asyncio
import sys
import uuid

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Part,
    Role,
    Task,
    TaskState,
    TaskStatus,
)
from google.protobuf import json_format, struct_pb2
from serving import bind, serve
from starlette.applications import Starlette


def said(text: str) -> list[Part]:
    return [Part(text=text)]


class Agent(AgentExecutor):
    def __init__(self) -> None:
        self.started = self.cancelled = 0

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text = context.get_user_input().strip()
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if context.current_task is None:
            if text == "message":
                message = Message(message_id=uuid.uuid4().hex, role=Role.ROLE_AGENT, parts=said("just a message"))
                await event_queue.enqueue_event(message)
                return
            task = Task(id=context.task_id, context_id=context.context_id, history=[context.message])
            task.status.CopyFrom(TaskStatus(state=TaskState.TASK_STATE_SUBMITTED))
            await event_queue.enqueue_event(task)
        elif context.current_task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED:
            text, answer = "answered", text
        else:
            text, answer = "signed", text
        await updater.start_work()
        match text:
            case "instant":
                await updater.add_artifact(said("done at once"))
                await updater.complete()
            case "slow":
                message = updater.new_agent_message(said("half done"))
                await updater.update_status(TaskState.TASK_STATE_WORKING, message)
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
                await updater.requires_input(updater.new_agent_message(said("What is the dog called?")))
            case "answered":
                await updater.add_artifact(said(f"dog={answer}"))
                await updater.complete()
            case "auth":
                await updater.requires_auth(updater.new_agent_message(said("Sign in first")))
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
                data = Part(data=json_format.ParseDict({"sum": 5}, struct_pb2.Value()))
                file = Part(raw=b"a,b\n", filename="table.csv", media_type="text/csv")
                await updater.add_artifact([Part(text="five"), data, file])
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


async def main(mode: str) -> None:
    listener, url = bind()
    rest = mode.startswith("rest")
    version = "0.3" if mode.endswith("compat") else "1.0"
    binding = "HTTP+JSON" if rest else "JSONRPC"
    card = AgentCard(
        name="Peer",
        description="A peer",
        version="1",
        supported_interfaces=[AgentInterface(url=url, protocol_binding=binding, protocol_version=version)],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="do", name="do", description="Does it", tags=["do"])],
    )
    handler = DefaultRequestHandler(agent_executor=Agent(), task_store=InMemoryTaskStore(), agent_card=card)
    compat = version == "0.3"
    routes = create_agent_card_routes(card)
    if rest:
        routes += create_rest_routes(handler, enable_v0_3_compat=compat)
    else:
        routes += create_jsonrpc_routes(handler, "/", enable_v0_3_compat=compat)
    await serve(Starlette(routes=routes), listener, url)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
