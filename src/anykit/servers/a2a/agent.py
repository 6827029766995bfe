"""A message becomes a call of the workbench, and the call's outcome a task's state.

Completed ── artifact, completed      Denied ── rejected      Failed ── failed
Suspended ── input-required or auth-required, until a message to the same task answers
wrong or missing arguments ── input-required, with what is wrong and the schema
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import uuid
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.types import Message, Task, TaskState
from google.protobuf import json_format

from anykit.capabilities import Completed, Denied, Failed, JsonObject, Outcome, Suspended, Suspension
from anykit.capabilities import outcomes as codes
from anykit.runtime import CallOptions, Session
from anykit.tools import OUTPUT_LIMIT

from .answers import answer_of
from .limits import Limits
from .messages import Incoming, Needed, needs_arguments, skill_of, wanted
from .parts import JSON_TYPE, Data, Part, Text, needed_parts, question_parts, result_parts, whole_numbers
from .talk import Relay, Talk
from .tasks import EXPIRES_KEY, TERMINAL, WAITING, RecordTasks, owner_of

log = logging.getLogger("anykit.a2a")

TOOL_KEY: Final = "tool"
"""In a task's metadata: the tool that its next message is for."""
QUESTION_KEY: Final = "suspension"
"""In a task's metadata: the question that its next message answers; empty where none waits."""
NO_QUESTION: Final[JsonObject] = {QUESTION_KEY: "", EXPIRES_KEY: 0}
REFUSING: Final = 5.0
"""Seconds that a call has to end once its task is cancelled while it waits."""
RELAYS: Final = 2000
"""Calls that wait for an answer and will be heard when they go on."""


class Bench(Protocol):
    """What is served."""

    def session(self, *, principal: str = "local", face: str = "python", id: str | None = None) -> Session:
        """One caller's verbs."""
        ...


class _Slots:
    """The calls of one principal: so many at a time, so many behind them."""

    def __init__(self, limits: Limits) -> None:
        self._running = asyncio.Semaphore(limits.max_parallel)
        self._room = limits.max_parallel + limits.queue
        self.taken = 0

    @asynccontextmanager
    async def one(self) -> AsyncGenerator[bool]:
        """A place to run in; False where there is not even one to wait."""
        if self.taken >= self._room:
            yield False
            return
        self.taken += 1
        try:
            async with self._running:
                yield True
        finally:
            self.taken -= 1


@dataclass(slots=True)
class _Running:
    """A task that this process is at work on."""

    principal: str
    talk: Talk
    relay: Relay
    asked: bool = False
    """Whether a question of it waited."""
    cancelled: bool = False


class ToolAgent(AgentExecutor):
    """The SDK's executor over a workbench.

    Args:
        bench: Gives a session for each context of a principal.
        tasks: Where tasks are kept.
        limits: How much may run.
    """

    def __init__(self, bench: Bench, tasks: RecordTasks, limits: Limits) -> None:
        self._bench = bench
        self._tasks = tasks
        self._limits = limits
        self._slots: dict[str, _Slots] = {}
        self._running: dict[str, _Running] = {}
        self._relays: OrderedDict[str, Relay] = OrderedDict()
        """Of calls that wait for an answer, so that they are heard when they go on."""
        self._lost: list[tuple[str, str]] = []
        self._ends: set[asyncio.Task[None]] = set()

    def session(self, principal: str, context_id: str) -> Session:
        """The verbs of a principal within a context. Nothing can be configured here, so its id opens nothing."""
        digest = hashlib.sha256(f"{principal}\0{context_id}".encode()).hexdigest()[:32]
        return self._bench.session(principal=principal, face="a2a", id=f"a2a-{digest}")

    # the SDK's port

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Answer one message of a task."""
        task_id, context_id, message = context.task_id or "", context.context_id or "", context.message or Message()
        principal = owner_of(context.call_context)
        talk = Talk(event_queue, task_id, context_id)
        task = context.current_task
        if task is None:
            await talk.begin(message)
        relay = self._relays.pop(task_id, None) or Relay(talk)
        relay.follow(talk)
        running = self._running[task_id] = _Running(principal, talk, relay)
        try:
            await self._answer(running, task, message, self.session(principal, context_id), context.metadata)
        except asyncio.CancelledError:
            relay.drop()
            if not running.cancelled:
                self._lost.append((task_id, principal))
            raise
        except Exception:
            error_id = uuid.uuid4().hex[:12]
            log.exception("a message could not be answered (error %s)", error_id)
            await talk.status(TaskState.TASK_STATE_FAILED, [Text(f"internal error (error {error_id})")])
        finally:
            self._running.pop(task_id, None)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Say that a task is cancelled; the SDK then cancels `execute`, and with it the call."""
        task = context.current_task
        running = self._running.pop(context.task_id or "", None)
        self._relays.pop(context.task_id or "", None)
        if running is not None:
            running.cancelled = True
            running.talk.close()
            running.relay.drop()
        talk = Talk(event_queue, context.task_id or "", context.context_id or "")
        asked = task is not None and bool(_said(task, QUESTION_KEY))
        await talk.status(TaskState.TASK_STATE_CANCELED, metadata=NO_QUESTION if asked else None)
        if task is not None:
            self.forget_question(task, owner_of(context.call_context))

    def forget_question(self, task: Task, principal: str) -> None:
        """Nobody will answer the question of a task that was cancelled: refuse it, so that its call ends."""
        question = _said(task, QUESTION_KEY)
        if not question or task.status.state not in WAITING:
            return
        ending = asyncio.get_running_loop().create_task(
            self._refuse(self.session(principal, task.context_id), question), name="a2a refuse"
        )
        self._ends.add(ending)
        ending.add_done_callback(self._ends.discard)

    async def close(self) -> None:
        """End the tasks that ran: they were not finished."""
        for task_id, principal in self._lost:
            with suppress(Exception):
                await self._tasks.fail(task_id, principal, "the host was shut down while the call ran")
        for ending in list(self._ends):
            ending.cancel()

    # a message

    async def _answer(
        self, running: _Running, task: Task | None, message: Message, session: Session, asked: Mapping[str, Any]
    ) -> None:
        """Do what a message asks for."""
        incoming = incoming_of(message, asked)
        question = "" if task is None else _said(task, QUESTION_KEY)
        chosen = "" if task is None else _said(task, TOOL_KEY)
        if question:
            running.asked = True
            await self._continue(running, question, incoming, session, chosen)
            return
        asks = wanted(incoming, session, chosen=chosen)
        if isinstance(asks, Needed):
            await _need(running.talk, asks)
            return
        outcome = await self._run(
            running, asks.tool, lambda options: session.run(asks.tool, asks.arguments, options), message.message_id
        )
        await self._tell(running, outcome, asks.tool, session)

    async def _continue(
        self, running: _Running, question: str, incoming: Incoming, session: Session, tool: str
    ) -> None:
        """Answer what waits."""
        waiting = next((one for one in session.suspensions() if one.id == question), None)
        shown = waiting or Suspension(question, "input", "")
        answer = answer_of(incoming, shown)
        if isinstance(answer, str):
            await self._ask(running, shown, tool, why=answer)
            return
        outcome = await self._run(
            running, tool, lambda options: session.answer(question, ok=answer.ok, data=answer.data, options=options)
        )
        if isinstance(outcome, Failed) and outcome.code == codes.INVALID_INPUT and waiting is not None:
            still = next((one for one in session.suspensions() if one.id == question), None)
            if still is not None:
                await self._ask(running, still, tool, why=outcome.message)
                return
        await self._tell(running, outcome, tool, session)

    async def _run(
        self,
        running: _Running,
        tool: str,
        call: Callable[[CallOptions], Awaitable[Outcome]],
        message_id: str = "",
    ) -> Outcome:
        slots = self._slots.setdefault(running.principal, _Slots(self._limits))
        async with slots.one() as free:
            if not free:
                return Failed(codes.BUSY, "too many calls run and wait already; nothing was started", retryable=True)
            metadata = {TOOL_KEY: tool, **(NO_QUESTION if running.asked else {})}
            await running.talk.status(TaskState.TASK_STATE_WORKING, metadata=metadata)
            options = CallOptions(
                emit=running.relay.emit,
                metadata={"a2a": {"task_id": running.talk.task_id, "message_id": message_id}},
            )
            outcome = await call(options)
        await running.relay.drain()
        return outcome

    # an outcome

    async def _tell(self, running: _Running, outcome: Outcome, tool: str, session: Session) -> None:
        talk = running.talk
        match outcome:
            case Completed():
                known = session.get(tool)
                limit = OUTPUT_LIMIT if known is None else known.spec.max_output
                parts = result_parts(outcome, limit=limit)
                only = parts[0] if len(parts) == 1 else None
                if not (isinstance(only, Text) and running.relay.said(only.text)):
                    await talk.artifact(uuid.uuid4().hex, parts, name="result")
                await talk.status(TaskState.TASK_STATE_COMPLETED)
            case Denied(message, reason):
                metadata = {"code": reason, "retryable": False}
                await talk.status(TaskState.TASK_STATE_REJECTED, [Text(message)], metadata=metadata)
            case Suspended(suspension):
                await self._ask(running, suspension, tool)
            case Failed():
                await self._failed(talk, outcome, tool, session)

    async def _failed(self, talk: Talk, outcome: Failed, tool: str, session: Session) -> None:
        known = session.get(tool)
        if outcome.code == codes.INVALID_INPUT and known is not None and "errors" in outcome.detail:
            await _need(talk, needs_arguments(known, outcome.message))
            return
        limit = OUTPUT_LIMIT if known is None else known.spec.max_output
        parts = result_parts(replace(outcome, message=outcome.message or outcome.code), limit=limit)
        metadata = {"code": outcome.code, "retryable": outcome.retryable}
        await talk.status(TaskState.TASK_STATE_FAILED, parts, metadata=metadata)

    async def _ask(self, running: _Running, question: Suspension, tool: str, *, why: str = "") -> None:
        talk = running.talk
        parts: list[Part] = question_parts(question)
        if why:
            parts = [Text(f"{why}\n{question.prompt}".strip()), *parts[1:]]
        state = (
            TaskState.TASK_STATE_AUTH_REQUIRED
            if question.kind in ("authorization", "approval")
            else TaskState.TASK_STATE_INPUT_REQUIRED
        )
        metadata: JsonObject = {TOOL_KEY: tool, QUESTION_KEY: question.id, EXPIRES_KEY: question.expires_at or 0}
        running.relay.pause()
        self._relays[talk.task_id] = running.relay
        while len(self._relays) > RELAYS:
            self._relays.popitem(last=False)
        await talk.status(state, parts, metadata=metadata)

    async def _refuse(self, session: Session, question: str) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(REFUSING):
                await session.answer(question, ok=False)


async def _need(talk: Talk, needed: Needed) -> None:
    parts = needed_parts(needed.prompt, needed.schema)
    metadata = {TOOL_KEY: needed.tool}
    await talk.status(TaskState.TASK_STATE_INPUT_REQUIRED, parts, metadata=metadata)


def incoming_of(message: Message, asked: Mapping[str, Any] | None = None) -> Incoming:
    """A message of the SDK, read."""
    metadata = json_format.MessageToDict(message.metadata)
    texts: list[str] = []
    data: list[Any] = []
    files = 0
    for part in message.parts:
        match part.WhichOneof("content"):
            case "text":
                written = _json(part.text) if part.media_type == JSON_TYPE else None
                if written is None:
                    texts.append(part.text)
                else:
                    data.append(written.value)
            case "data":
                data.append(whole_numbers(json_format.MessageToDict(part.data)))
            case "raw" if part.media_type == JSON_TYPE and (written := _json(part.raw)) is not None:
                data.append(written.value)
            case _:
                files += 1
    return Incoming(
        text="\n".join(texts),
        data=tuple(data),
        files=files,
        skill=skill_of(metadata, dict(asked or {})),
        metadata=metadata,
    )


def _json(text: str | bytes) -> Data | None:
    try:
        return Data(json.loads(text, parse_constant=_no_constant))
    except (ValueError, RecursionError):
        return None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _said(task: Task, key: str) -> str:
    """What a task's metadata says under a key of ours."""
    if task.status.state in TERMINAL or key not in task.metadata.fields:
        return ""
    return task.metadata.fields[key].string_value
