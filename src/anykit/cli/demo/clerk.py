"""An A2A agent on the official SDK, for the demonstration: `python -m anykit.cli.demo.clerk` serves it on a free port.

It knows nothing of us. It ends with SIGTERM.
"""

from __future__ import annotations

import asyncio
import socket
import sys

import uvicorn
from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part
from starlette.applications import Starlette

BACKLOG = 64


class Clerk(AgentExecutor):
    """Files what it is given, and asks for the day where a table is to be booked."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Do one message's work."""
        text = context.get_user_input()
        task = context.current_task
        is_answer = task is not None
        if task is None:
            if context.message is None:
                raise ValueError("there is no message")
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work(updater.new_agent_message([Part(text="looking for a pen")]))
        if "table" in text and not is_answer:
            await updater.requires_input(updater.new_agent_message([Part(text="For which day?")]))
            return
        await asyncio.sleep(0.05)
        done = f"booked: {text}" if is_answer else f"filed: {text}"
        await updater.add_artifact([Part(text=done[:10])], "a", append=False, last_chunk=False)
        await updater.add_artifact([Part(text=done[10:])], "a", append=True, last_chunk=True)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """End a task."""
        if context.task_id is not None and context.context_id is not None:
            await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def application(base: str) -> Starlette:
    """The agent as an application that is reached at `base`."""
    card = AgentCard(
        name="Clerk",
        description="Files notes and books tables.",
        version="1.0.0",
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        supported_interfaces=[AgentInterface(url=f"{base}/", protocol_binding="JSONRPC", protocol_version="1.0")],
        skills=[
            AgentSkill(id="file", name="File", description="Files a note.", tags=["office"]),
            AgentSkill(id="book", name="Book", description="Books a table.", tags=["office"]),
        ],
    )
    handler = DefaultRequestHandler(Clerk(), InMemoryTaskStore(), card)
    return Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")])


def main() -> None:
    """Serve until SIGTERM."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as place:
        place.bind(("127.0.0.1", 0))
        place.listen(BACKLOG)
        base = f"http://127.0.0.1:{place.getsockname()[1]}"
        server = uvicorn.Server(uvicorn.Config(application(base), log_config=None, lifespan="off"))
        sys.stderr.write(f"listening on {base}\n")
        sys.stderr.flush()
        server.run(sockets=[place])


if __name__ == "__main__":
    main()
