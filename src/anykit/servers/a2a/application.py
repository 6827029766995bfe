"""The SDK put together over a workbench: the only module that `mounting` imports late, and what it builds."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from a2a.auth.user import User
from a2a.server.context import ServerCallContext
from a2a.server.events import Event
from a2a.server.request_handlers import DefaultRequestHandler, RequestHandler
from a2a.server.routes import DefaultServerCallContextBuilder, create_jsonrpc_routes, create_rest_routes
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Part,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import A2AError, InternalError, UnsupportedOperationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from anykit.servers.identity import PRINCIPAL, App
from anykit.stores import RecordStore, SecretStore
from anykit.transports import AddressGuard

from .agent import Bench, ToolAgent
from .limits import Limits
from .tasks import TERMINAL, RecordTasks, owner_of
from .webhooks import Notifier, Webhooks

log = logging.getLogger("anykit.a2a")

Result = TypeVar("Result")

GRACE: Final = 1
"""Seconds that streams have to end."""


@dataclass(frozen=True, slots=True)
class Application:
    """What was built."""

    app: App
    close: Callable[[], Awaitable[None]]


def build(
    bench: Bench,
    *,
    prefix: str,
    records: RecordStore,
    secrets: SecretStore | None,
    principal: str,
    guard: AddressGuard,
    limits: Limits,
) -> Application:
    """The application under `prefix`: JSON-RPC and HTTP+JSON, 1.0 and 0.3."""
    # Its loggers write what peers sent. Whoever wants that sets their level.
    if (sdk := logging.getLogger("a2a")).level == logging.NOTSET:
        sdk.setLevel(logging.CRITICAL)
    tasks = RecordTasks(records, kept=limits.tasks, lifetime=limits.lifetime)
    agent = ToolAgent(bench, tasks, limits)
    webhooks = Webhooks(records, secrets, now=time.time)

    async def task_of(task_id: str, principal: str) -> Task | None:
        return await tasks.get(task_id, ServerCallContext(user=_Principal(principal)))

    notifier = Notifier(webhooks, guard=guard, task_of=task_of)
    inner = DefaultRequestHandler(
        agent_executor=agent,
        task_store=tasks,
        agent_card=_capabilities(),
        push_config_store=webhooks,
        push_sender=notifier,
        push_url_validator=notifier.screen,
        interrupted_task_timeout=limits.idle,
    )
    handler = SafeHandler(inner, agent, tasks)
    builder = _Contexts(principal)
    routes: list[BaseRoute] = [
        *create_jsonrpc_routes(handler, prefix, builder, enable_v0_3_compat=True, shutdown_grace_period=GRACE),
        *create_rest_routes(handler, builder, enable_v0_3_compat=True, path_prefix=prefix, shutdown_grace_period=GRACE),
    ]
    app = Starlette(routes=[route for route in routes if isinstance(route, Route)])

    async def close() -> None:
        await inner.aclose()
        await agent.close()
        tasks.close()
        await notifier.close()

    return Application(app, close)


def _capabilities() -> AgentCard:
    """What the handler asks a card for; the one that is shown is made in `card`."""
    return AgentCard(
        name="anykit",
        description="anykit",
        version="1",
        supported_interfaces=[AgentInterface(url="/a2a", protocol_binding="JSONRPC", protocol_version="1.0")],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True, extended_agent_card=False),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="tool", name="tool", description="tool", tags=["tool"])],
    )


class _Principal(User):
    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def is_authenticated(self) -> bool:
        return True

    @property
    def user_name(self) -> str:
        return self._name


class _Contexts(DefaultServerCallContextBuilder):
    """Says whom a request stands for. Nothing of its headers but the protocol's own goes further."""

    def __init__(self, principal: str) -> None:
        self._principal = principal

    def build(self, request: Request) -> ServerCallContext:
        context = super().build(request)
        headers = {name: value for name, value in request.headers.items() if name.startswith("a2a-")}
        context.state = {"headers": headers, "v0_3": "/v1/" in request.url.path}
        return context

    def build_user(self, request: Request) -> User:
        shown: object = request.scope.get(PRINCIPAL)
        return _Principal(shown if isinstance(shown, str) else self._principal)


class SafeHandler(RequestHandler):
    """The SDK's handler: what goes wrong in it reaches the peer without its text, with an id that the log has too."""

    def __init__(self, inner: RequestHandler, agent: ToolAgent, tasks: RecordTasks) -> None:
        self._inner = inner
        self._agent = agent
        self._tasks = tasks

    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task | None:
        task = await _safely(self._inner.on_get_task(params, context))
        return None if task is None else joined(task)

    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        return await _safely(self._inner.on_list_tasks(params, context))

    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task | None:
        before = await _safely(self._tasks.get(params.id, context))
        task = await _safely(self._inner.on_cancel_task(params, context))
        if before is not None:
            # A task that waits in the store only is cancelled there, past the agent.
            self._agent.forget_question(before, owner_of(context))
        return task

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Message | Task:
        await self._open(params, context)
        answer = await _safely(self._inner.on_message_send(params, context))
        return joined(answer) if isinstance(answer, Task) else answer

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        await self._open(params, context)
        async for event in _stream_safely(self._inner.on_message_send_stream(params, context)):
            yield event

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        async for event in _stream_safely(self._inner.on_subscribe_to_task(params, context)):
            yield event

    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        return await _safely(self._inner.on_create_task_push_notification_config(params, context))

    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        return await _safely(self._inner.on_get_task_push_notification_config(params, context))

    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        return await _safely(self._inner.on_list_task_push_notification_configs(params, context))

    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        await _safely(self._inner.on_delete_task_push_notification_config(params, context))

    async def on_get_extended_agent_card(
        self, params: GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> AgentCard:
        return await _safely(self._inner.on_get_extended_agent_card(params, context))

    async def _open(self, params: SendMessageRequest, context: ServerCallContext) -> None:
        """Refuse a message to a task that is over or at work, where it would be lost without a word.

        One that names a task alone gets its context, for which the SDK would make up a new one.
        """
        if not params.message.task_id:
            return
        task = await _safely(self._tasks.get(params.message.task_id, context))
        if task is None:
            return
        state = TaskState.Name(task.status.state).removeprefix("TASK_STATE_").lower().replace("_", "-")
        if task.status.state in TERMINAL:
            raise UnsupportedOperationError(
                message=f"task {task.id} is {state}; send the message without taskId, its contextId may stay"
            )
        if task.status.state in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING):
            raise UnsupportedOperationError(
                message=f"task {task.id} is {state} and takes no message now; wait for it, or cancel it"
            )
        params.message.context_id = params.message.context_id or task.context_id


def joined(task: Task) -> Task:
    """A task whose artifacts have the texts that came in pieces as one part each: readers put newlines between parts."""
    if all(len(artifact.parts) < 2 for artifact in task.artifacts):
        return task
    copy = Task()
    copy.CopyFrom(task)
    for artifact in copy.artifacts:
        parts: list[Part] = []
        for part in artifact.parts:
            last = parts[-1] if parts else None
            if last is not None and _is_piece(last) and _is_piece(part) and last.media_type == part.media_type:
                last.text += part.text
            else:
                fresh = Part()
                fresh.CopyFrom(part)
                parts.append(fresh)
        del artifact.parts[:]
        artifact.parts.extend(parts)
    return copy


def _is_piece(part: Part) -> bool:
    return part.WhichOneof("content") == "text" and not part.filename and not part.HasField("metadata")


async def _safely(work: Awaitable[Result]) -> Result:
    try:
        return await work
    except A2AError as error:
        if isinstance(error, InternalError):
            raise _hidden(error) from None
        raise
    except Exception as error:
        raise _hidden(error) from None


async def _stream_safely(events: AsyncGenerator[Event]) -> AsyncGenerator[Event]:
    try:
        async for event in events:
            yield event
    except A2AError as error:
        if isinstance(error, InternalError):
            raise _hidden(error) from None
        raise
    except Exception as error:
        raise _hidden(error) from None
    finally:
        await events.aclose()


def _hidden(error: Exception) -> InternalError:
    error_id = uuid.uuid4().hex[:12]
    log.error("an A2A request failed (error %s)", error_id, exc_info=error)
    return InternalError(message=f"internal error (error {error_id})")
