"""An agent on the official SDK, 1.3: what it does is what it is told to."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator
from typing import Any

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, Role
from google.protobuf.json_format import ParseDict
from starlette.applications import Starlette

INTERFACES = {
    "1.0 JSONRPC": ("/rpc", "JSONRPC", "1.0"),
    "1.0 HTTP+JSON": ("/rest", "HTTP+JSON", "1.0"),
    "0.3 JSONRPC": ("/rpc", "JSONRPC", "0.3"),
    "0.3 HTTP+JSON": ("/rest", "HTTP+JSON", "0.3"),
}


class Obedient(AgentExecutor):
    """Does what the text says."""

    def __init__(self) -> None:
        self.canceled: list[str] = []

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text = context.get_user_input()
        if text == "message":
            said = new_text_message("5", role=Role.ROLE_AGENT, context_id=context.context_id)
            await event_queue.enqueue_event(said)
            return
        task = context.current_task
        if task is None:
            assert context.message is not None
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work(updater.new_agent_message([Part(text="thinking")]))
        if context.current_task is not None:
            text = f"answer {text}"
        await self._do(text, updater)

    async def _do(self, text: str, updater: TaskUpdater) -> None:
        def saying(words: str) -> Any:
            return updater.new_agent_message([Part(text=words)])

        match text:
            case "ask":
                await updater.requires_input(saying("Which city?"))
                return
            case "authorize":
                await updater.requires_auth(saying("Log in at https://id.example/x"))
                return
            case "fail":
                await updater.failed(saying("no quota"))
                return
            case "reject":
                await updater.reject(saying("not my job"))
                return
            case "hang":
                await asyncio.Event().wait()
            case "slow":
                await asyncio.sleep(0.3)
            case _:
                pass
        if text == "chunks":
            for index, piece in enumerate(("he", "llo")):
                await updater.add_artifact([Part(text=piece)], "a", append=index > 0, last_chunk=index > 0)
        elif text == "files":
            data = ParseDict({"data": {"n": 1}}, Part())
            file = Part(raw=b"%PDF-", filename="r.pdf", media_type="application/pdf")
            await updater.add_artifact([data, file, Part(url="http://h/x.png")])
        else:
            await updater.add_artifact([Part(text=text)])
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id is not None
        assert context.context_id is not None
        self.canceled.append(context.task_id)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


@contextlib.asynccontextmanager
async def sdk_agent(dialect: str, *, streaming: bool, strict: bool = False) -> AsyncGenerator[tuple[str, Obedient]]:
    """Serve on 127.0.0.1 until the block ends; its base URL and what it did. `strict` knows 1.0 only."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{listening.getsockname()[1]}"
        path, binding, version = INTERFACES[dialect]
        card = AgentCard(
            name="SDK Agent",
            description="Does what it is told to.",
            version="1.0.0",
            capabilities=AgentCapabilities(streaming=streaming),
            default_input_modes=["text/plain"],
            default_output_modes=["text/plain"],
            supported_interfaces=[AgentInterface(url=base + path, protocol_binding=binding, protocol_version=version)],
            skills=[AgentSkill(id="obey", name="Obey", description="Obeys.", tags=["test"])],
        )
        executor = Obedient()
        handler = DefaultRequestHandler(executor, InMemoryTaskStore(), card)
        routes = [
            *create_agent_card_routes(card),
            *create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=not strict),
            *create_rest_routes(handler, enable_v0_3_compat=not strict, path_prefix="/rest"),
        ]
        config = uvicorn.Config(Starlette(routes=routes), log_config=None, lifespan="off")
        config.load()
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[listening])
        try:
            yield base, executor
        finally:
            server.force_exit = True
            await server.shutdown(sockets=[listening])
            await handler.aclose()
