"""What is said of one task while it runs: its states, its artifacts, and the events of the call behind it.

call ── emit ──> Relay (bounded, merged) ── pump ──> Talk ──> the SDK's queue ──> streams, webhooks, store
"""

from __future__ import annotations

import asyncio
import math
import re
import secrets
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from a2a.server.events import EventQueue
from a2a.types import (
    Artifact,
    Message,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.types import Part as ProtoPart
from a2a.types import Role as ProtoRole
from google.protobuf import json_format, struct_pb2, timestamp_pb2

from anykit.capabilities import Artifact as ArtifactEvent
from anykit.capabilities import Event, JsonObject, Log, Progress, Status, TextPart

from .parts import Data, File, Part, Text, event_part

MERGE: Final = 0.1
"""Seconds between two reports of progress."""
PACES: Final = ((64, 0.0), (1000, 0.05), (math.inf, 0.5))
"""Pieces of artifacts so far, and the seconds between two from then on."""
STATUSES: Final = 1000
"""Messages that one call may say on the way: each stays in the task's history."""
WAITING_EVENTS: Final = 1000
"""Events of a call that may wait; beyond them only artifacts are kept."""
STREAMED: Final = 16 * 1024 * 1024
"""Bytes of artifacts that a call may send early; what comes later stands in the result only."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class Talk:
    """Says things of a task. After `close` nothing is said any more."""

    def __init__(self, queue: EventQueue, task_id: str, context_id: str) -> None:
        self._queue = queue
        self.task_id = task_id
        self.context_id = context_id
        self.closed = False

    async def begin(self, message: Message) -> None:
        """The task is there."""
        task = Task(
            id=self.task_id, context_id=self.context_id, status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
        )
        task.status.timestamp.CopyFrom(now())
        task.history.append(message)
        await self._queue.enqueue_event(task)

    async def status(self, state: TaskState, parts: Sequence[Part] = (), *, metadata: JsonObject | None = None) -> None:
        """A state, with what there is to say about it."""
        if self.closed:
            return
        status = TaskStatus(state=state, timestamp=now())
        if parts:
            status.message.CopyFrom(self.message(parts))
        event = TaskStatusUpdateEvent(task_id=self.task_id, context_id=self.context_id, status=status)
        if metadata:
            event.metadata.update(metadata)
        await self._queue.enqueue_event(event)

    async def artifact(
        self, identifier: str, parts: Sequence[Part], *, name: str = "", append: bool = False, last: bool = True
    ) -> None:
        """An artifact, or more of one."""
        if self.closed:
            return
        artifact = Artifact(artifact_id=identifier, name=name, parts=[proto_part(part) for part in parts])
        await self._queue.enqueue_event(
            TaskArtifactUpdateEvent(
                task_id=self.task_id, context_id=self.context_id, artifact=artifact, append=append, last_chunk=last
            )
        )

    def message(self, parts: Sequence[Part]) -> Message:
        """A message of the agent."""
        return Message(
            message_id=secrets.token_hex(16),
            task_id=self.task_id,
            context_id=self.context_id,
            role=ProtoRole.ROLE_AGENT,
            parts=[proto_part(part) for part in parts],
        )

    def close(self) -> None:
        """Say no more."""
        self.closed = True


class Relay:
    """Carries a call's events to its talk. It outlives a question: a call that goes on says the rest to the next talk."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._events: deque[Event] = deque()
        self._wake = asyncio.Event()
        self._ending = False
        self._paused = False
        self._pump: asyncio.Task[None] | None = None
        self._last = 0.0
        self._pieces = 0
        self._statuses = 0
        self._begun: dict[str, str] = {}
        self._texts: dict[str, list[str]] = {}
        self._size = 0
        self._whole = True

    def emit(self, event: Event) -> None:
        """Hear an event of the call; on the loop's thread."""
        if self._paused or (isinstance(event, Log) and event.level == "debug"):
            return
        last = self._events[-1] if self._events else None
        if isinstance(event, Progress) and isinstance(last, Progress):
            self._events[-1] = event
        elif isinstance(event, ArtifactEvent):
            self._keep(event, last)
        elif len(self._events) < WAITING_EVENTS:
            self._events.append(event)
        if self._pump is None:
            self._pump = asyncio.get_running_loop().create_task(self._run(), name="a2a events")
        self._wake.set()

    def _keep(self, event: ArtifactEvent, last: Event | None) -> None:
        part = event_part(event.part)
        size = len(part.text) if isinstance(part, Text) else len(part.data or b"") if isinstance(part, File) else 64
        self._size += size
        if part is None or self._size > STREAMED:
            self._whole = False
            return
        if not event.append:
            self._texts[event.name] = []
        if isinstance(part, Text):
            self._texts.setdefault(event.name, []).append(part.text)
        else:
            self._whole = False
        if (
            isinstance(last, ArtifactEvent)
            and event.append
            and last.name == event.name
            and isinstance(last.part, TextPart)
            and isinstance(event.part, TextPart)
        ):
            joined = last.part.model_copy(update={"text": last.part.text + event.part.text})
            self._events[-1] = ArtifactEvent(last.name, joined, append=last.append, last=event.last)
        else:
            self._events.append(event)

    def follow(self, talk: Talk) -> None:
        """The rest is said there."""
        self._talk = talk
        self._paused = False

    def pause(self) -> None:
        """The call waits for an answer: what it says before the task goes on is not of the task."""
        self._paused = True

    async def drain(self) -> None:
        """Say what was heard so far."""
        if self._pump is None:
            return
        pump, self._pump = self._pump, None
        self._ending = True
        self._wake.set()
        try:
            await pump
        finally:
            pump.cancel()
            self._ending = False

    def drop(self) -> None:
        """Forget what was heard."""
        self._events.clear()
        if self._pump is not None:
            self._pump.cancel()
            self._pump = None

    def said(self, text: str) -> bool:
        """Whether the artifacts that came early are that text."""
        if not self._begun or not self._whole:
            return False
        texts = ["".join(pieces) for pieces in self._texts.values()]
        return text in ("".join(texts), "\n".join(texts))

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._wake.clear()
            while self._events:
                if self._can_grow() and await self._too_early():
                    continue
                event = self._events.popleft()
                if isinstance(event, Progress | ArtifactEvent):
                    self._last = loop.time()
                await self._say(event)
            if self._ending:
                return
            await self._wake.wait()

    def _can_grow(self) -> bool:
        """Whether all that waits is one event that the next of its kind would be merged with."""
        if len(self._events) != 1 or self._ending:
            return False
        event = self._events[0]
        return isinstance(event, Progress) or (isinstance(event, ArtifactEvent) and event.append)

    def _pace(self) -> float:
        """Seconds between two such events. Each costs as much as the task is long, so long ones are told more slowly."""
        if isinstance(self._events[0], Progress):
            return MERGE
        return next(pace for pieces, pace in PACES if self._pieces < pieces)

    async def _too_early(self) -> bool:
        """Whether an event had to wait; what else comes meanwhile, or the end, is said sooner."""
        loop = asyncio.get_running_loop()
        until = self._last + self._pace()
        if until <= loop.time():
            return False
        while self._can_grow():
            self._wake.clear()
            try:
                async with asyncio.timeout_at(until):
                    await self._wake.wait()
            except TimeoutError:
                break
        return True

    async def _say(self, event: Event) -> None:
        match event:
            case Progress(done, total, message):
                progress: dict[str, Any] = {"done": done}
                if total is not None:
                    progress["total"] = total
                await self._remark(message, {"progress": progress})
            case Status(message):
                await self._remark(message)
            case Log(level, message):
                await self._remark(message, {"level": level})
            case ArtifactEvent(name, content, append, last):
                part = event_part(content)
                if part is None:
                    return
                known = self._begun.get(name)
                identifier = known or secrets.token_hex(8)
                self._begun[name] = identifier
                more = append and known is not None
                self._pieces += 1
                await self._talk.artifact(identifier, [part], name=name, append=more, last=last)

    async def _remark(self, message: str, metadata: JsonObject | None = None) -> None:
        """Something on the way; without its words once there were too many."""
        parts: Sequence[Part] = ()
        if message and self._statuses < STATUSES:
            self._statuses += 1
            parts = [Text(whole(message))]
        if parts or metadata:
            await self._talk.status(TaskState.TASK_STATE_WORKING, parts, metadata=metadata)


def proto_part(part: Part) -> ProtoPart:
    """A part as the SDK has it."""
    match part:
        case Text(text, media_type):
            return ProtoPart(text=whole(text), media_type=media_type)
        case Data(value):
            made = ProtoPart(media_type="application/json")
            made.data.CopyFrom(json_format.ParseDict(value, struct_pb2.Value()))
            return made
        case File(data, uri, name, media_type):
            if data is None:
                return ProtoPart(url=whole(uri), filename=whole(name), media_type=media_type)
            return ProtoPart(raw=data, filename=whole(name), media_type=media_type)


def whole(text: str) -> str:
    """Text without halves of surrogate pairs, which no wire carries."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def now() -> timestamp_pb2.Timestamp:
    """The time, as the SDK has it."""
    stamp = timestamp_pb2.Timestamp()
    stamp.GetCurrentTime()
    return stamp
