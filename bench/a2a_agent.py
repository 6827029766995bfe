"""Agents on the official SDK, in one program: `/message` and `/task` (instant), `/stream` (instant or slow, streamed), ...

The text of a message says what to do: `now`, or the seconds to wait; the answer to seconds is the clock at the end.
`/good1` to `/good3` are three more, `/hung` never answers, `/broken` answers 500.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import time

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, Role
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

STREAMING = {"message": False, "task": False, "stream": True, "good1": False, "good2": False, "good3": True}
"""Whether an agent's card offers a stream."""


class Prompt(AgentExecutor):
    """Answers at once, or when the time is up."""

    def __init__(self, *, with_task: bool) -> None:
        self._with_task = with_task

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text = context.get_user_input()
        if not self._with_task:
            said = new_text_message(text, role=Role.ROLE_AGENT, context_id=context.context_id)
            await event_queue.enqueue_event(said)
            return
        assert context.message is not None
        task = new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        if text != "now":
            await updater.start_work()
            await asyncio.sleep(float(text))
            text = repr(time.monotonic())
        await updater.complete(updater.new_agent_message([Part(text=text)]))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id is not None
        assert context.context_id is not None
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def agent(name: str, base: str) -> Mount:
    """One agent under its own path."""
    card = AgentCard(
        name=name,
        description="Answers.",
        version="1.0.0",
        capabilities=AgentCapabilities(streaming=STREAMING[name]),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        supported_interfaces=[
            AgentInterface(url=f"{base}/{name}/rpc", protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        skills=[AgentSkill(id="ask", name="Ask", description="Answers.", tags=["bench"])],
    )
    handler = DefaultRequestHandler(Prompt(with_task=name != "message"), InMemoryTaskStore(), card)
    return Mount(f"/{name}", routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/rpc")])


async def hung(request: Request) -> Response:
    await asyncio.Event().wait()
    raise AssertionError


async def broken(request: Request) -> Response:
    return Response(status_code=500)


listener = socket.create_server(("127.0.0.1", 0))
base = f"http://127.0.0.1:{listener.getsockname()[1]}"
bad = [Route("/hung{rest:path}", hung), Route("/broken{rest:path}", broken)]
app = Starlette(routes=[*(agent(name, base) for name in STREAMING), *bad])
print(f"agents: listening on {base}", file=sys.stderr, flush=True)
config = uvicorn.Config(app, log_level="critical", access_log=False, lifespan="off", timeout_graceful_shutdown=1)
uvicorn.Server(config).run(sockets=[listener])
