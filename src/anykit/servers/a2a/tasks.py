"""The SDK's task store as a port onto our records: every task belongs to a principal, in memory or in a file.

A task that runs lives in memory; it is written when it begins, waits or ends. One that a dead process ran has failed.

    a2a-task        context, state, time, who runs it
    a2a-task-body   the task itself (protocol buffers, base64)
"""

from __future__ import annotations

import asyncio
import base64
import os
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from a2a.server.context import ServerCallContext
from a2a.server.tasks import TaskStore
from a2a.types import (
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Part,
    Role,
    Task,
    TaskState,
    TaskStatus,
)
from a2a.utils.errors import InvalidParamsError
from a2a.utils.task import ListTasksCursor, decode_list_tasks_cursor, encode_list_tasks_cursor

from anykit.capabilities import JsonObject
from anykit.stores import Record, RecordStore

HEAD: Final = "a2a-task"
BODY: Final = "a2a-task-body"
PAGE: Final = 50
SWEEP: Final = 64
"""Finished tasks after which those beyond `kept` are looked for."""

TERMINAL: Final = frozenset(
    {
        TaskState.TASK_STATE_COMPLETED,
        TaskState.TASK_STATE_FAILED,
        TaskState.TASK_STATE_CANCELED,
        TaskState.TASK_STATE_REJECTED,
    }
)
WAITING: Final = frozenset({TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED})
LOST: Final = "the process that ran this task is gone; whether the call was carried out is not known"
EXPIRED: Final = "nobody answered in time"

EXPIRES_KEY: Final = "expires"
"""In a waiting task's metadata: until when its question can be answered, in Unix seconds."""

_here: Final = socket.gethostname()
_living: set[str] = set()
"""The stores of this process that are open."""


@dataclass(frozen=True, slots=True)
class Head:
    """What is known of a task without reading it."""

    id: str
    principal: str
    context: str
    state: int
    at: int
    """When its state changed, in nanoseconds."""
    runner: JsonObject
    expires: float | None

    @property
    def order(self) -> tuple[bool, int, str]:
        """Its place in lists, which go from the latest to the earliest."""
        return (True, self.at, self.id)


class RecordTasks(TaskStore):
    """See the module.

    Args:
        records: Where tasks are kept.
        kept: Finished tasks that a principal keeps; older ones go.
        lifetime: Seconds that a finished task is kept.
        now: The time, in Unix seconds.
    """

    def __init__(
        self,
        records: RecordStore,
        *,
        kept: int = 1000,
        lifetime: float = 24 * 3600.0,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._records = records
        self._kept = kept
        self._lifetime = lifetime
        self._now = now
        self._live: dict[tuple[str, str], Task] = {}
        self._new = 0
        self._token = secrets.token_hex(8)
        _living.add(self._token)

    def close(self) -> None:
        """What runs here runs no longer."""
        _living.discard(self._token)
        self._live.clear()

    # the SDK's port

    async def save(self, task: Task, context: ServerCallContext) -> None:
        """Keep a task as it is now."""
        key = (owner_of(context), task.id)
        copy = Task()
        copy.CopyFrom(task)
        state = task.status.state
        before = self._live.get(key)
        if state in TERMINAL | WAITING:
            self._live.pop(key, None)
        else:
            self._live[key] = copy
        if before is None or state in TERMINAL | WAITING:
            await self._write(copy, key[0])
            if state in TERMINAL:
                self._new += 1
                if self._new % SWEEP == 0:
                    await self._forget_old(key[0])

    async def get(self, task_id: str, context: ServerCallContext) -> Task | None:
        """A copy of the principal's task of that id."""
        principal = owner_of(context)
        live = self._live.get((principal, task_id))
        if live is not None:
            task = Task()
            task.CopyFrom(live)
            return task
        if not is_task_id(task_id):
            return None
        head, body = await asyncio.gather(
            self._records.get(HEAD, task_id, principal=principal), self._records.get(BODY, task_id, principal=principal)
        )
        return None if head is None or body is None else await self._read(_head(head), body)

    async def list(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """The principal's tasks, the latest first."""
        principal = owner_of(context)
        heads = await self._heads(principal)
        if params.context_id:
            heads = [head for head in heads if head.context == params.context_id]
        if params.status:
            heads = [head for head in heads if head.state == params.status]
        if params.HasField("status_timestamp_after"):
            after = params.status_timestamp_after.ToNanoseconds()
            heads = [head for head in heads if head.at >= after]
        heads.sort(key=lambda head: head.order, reverse=True)
        total = len(heads)
        if params.page_token:
            cursor = decode_list_tasks_cursor(params.page_token)
            if cursor is None:
                raise InvalidParamsError(message="the page token is none of ours")
            behind = cursor.sort_key()
            heads = [head for head in heads if head.order < behind]
        size = params.page_size or PAGE
        shown = heads[:size]
        token = ""
        if len(heads) > size:
            token = encode_list_tasks_cursor(ListTasksCursor(timestamp_ns=shown[-1].at, task_id=shown[-1].id))
        found = [task for head in shown if (task := await self.get(head.id, context)) is not None]
        return ListTasksResponse(tasks=found, next_page_token=token, total_size=total, page_size=size)

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        """Forget a task."""
        principal = owner_of(context)
        self._live.pop((principal, task_id), None)
        await self._delete(task_id, principal)

    # our own

    async def fail(self, task_id: str, principal: str, why: str) -> None:
        """End a task that is not over yet."""
        live = self._live.pop((principal, task_id), None)
        if live is not None:
            await self._failed(live, principal, why)

    async def _delete(self, task_id: str, principal: str) -> None:
        await self._records.delete(BODY, task_id, principal=principal)
        await self._records.delete(HEAD, task_id, principal=principal)

    async def _write(self, task: Task, principal: str) -> None:
        now = self._now()
        expires = _expires(task)
        head: JsonObject = {
            "context": task.context_id,
            "state": int(task.status.state),
            "at": task.status.timestamp.ToNanoseconds() or int(now * 1e9),
            "runner": {"host": _here, "pid": os.getpid(), "token": self._token},
            "expires": expires,
        }
        until = (max(now, expires or now) if task.status.state in TERMINAL | WAITING else now) + self._lifetime
        body = base64.b64encode(task.SerializeToString()).decode("ascii")
        await asyncio.gather(
            self._records.put(BODY, task.id, body, principal=principal, expires_at=until),
            self._records.put(HEAD, task.id, head, principal=principal, expires_at=until),
        )

    async def _heads(self, principal: str) -> list[Head]:
        found: list[Record] = []
        while page := await self._records.list(HEAD, principal=principal, after=found[-1] if found else None):
            found.extend(page)
        return [self._now_of(_head(record)) for record in found]

    def _now_of(self, head: Head) -> Head:
        """A head with what is not written yet of a task that runs here."""
        live = self._live.get((head.principal, head.id))
        if live is None:
            return head
        return replace(head, state=live.status.state, at=live.status.timestamp.ToNanoseconds() or head.at)

    async def _forget_old(self, principal: str) -> None:
        over = [head for head in await self._heads(principal) if head.state in TERMINAL]
        over.sort(key=lambda head: head.at)
        for head in over[: max(0, len(over) - self._kept)]:
            await self._delete(head.id, principal)

    async def _read(self, head: Head, body: Record) -> Task:
        task = Task()
        task.ParseFromString(base64.b64decode(str(body.value)))
        if self._over(task):
            return await self._failed(task, head.principal, EXPIRED)
        if task.status.state not in TERMINAL | WAITING and not self._runs(head):
            return await self._failed(task, head.principal, LOST)
        return task

    def _over(self, task: Task) -> bool:
        expires = _expires(task)
        return task.status.state in WAITING and expires is not None and expires <= self._now()

    def _runs(self, head: Head) -> bool:
        """Whether somebody may still be at work on it."""
        runner = head.runner
        pid: object = runner.get("pid")
        if runner.get("host") != _here or not isinstance(pid, int):
            return True  # another machine on the same records: it cannot be seen from here
        token = runner.get("token")
        if pid == os.getpid():
            return (head.principal, head.id) in self._live if token == self._token else token in _living
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            return True
        return True

    async def _failed(self, task: Task, principal: str, why: str) -> Task:
        status = TaskStatus(state=TaskState.TASK_STATE_FAILED)
        status.message.CopyFrom(agent_message(task, [Part(text=why)]))
        status.timestamp.FromNanoseconds(int(self._now() * 1e9))
        if task.status.HasField("message"):
            task.history.append(task.status.message)
        task.status.CopyFrom(status)
        self._live.pop((principal, task.id), None)
        await self._write(task, principal)
        return task


def owner_of(context: ServerCallContext) -> str:
    """Whose tasks a request is about."""
    return context.user.user_name


def is_task_id(text: str) -> bool:
    """Whether it can name a record at all."""
    return 0 < len(text) <= 512 and "\x00" not in text


def agent_message(task: Task, parts: list[Part]) -> Message:
    """A message of the agent within a task."""
    return Message(
        message_id=secrets.token_hex(16),
        task_id=task.id,
        context_id=task.context_id,
        role=Role.ROLE_AGENT,
        parts=parts,
    )


def _expires(task: Task) -> float | None:
    value: object = task.metadata.fields[EXPIRES_KEY].number_value if EXPIRES_KEY in task.metadata.fields else 0.0
    return float(value) if isinstance(value, float) and value > 0 else None


def _head(record: Record) -> Head:
    value = cast("dict[str, Any]", record.value)
    return Head(
        id=record.key,
        principal=record.principal,
        context=value["context"],
        state=value["state"],
        at=value["at"],
        runner=value["runner"],
        expires=value["expires"],
    )
