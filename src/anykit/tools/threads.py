"""Where synchronous tools run: daemon threads of our own, bounded, so that no tool can stop the loop.

A job waits in a queue when its tool, or the whole pool, has as many threads as it may; when the queue is full too, the
answer is `Busy`. A job whose caller is gone before it starts never starts; one that runs keeps its thread until it
returns, whoever still listens.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from .errors import Busy

TOTAL = 128
QUEUE = 256
PER_TOOL = 16

Returned = TypeVar("Returned")


class _Job:
    __slots__ = ("abandoned", "call", "done", "future", "key", "limit", "loop", "variables")

    def __init__(
        self,
        call: Callable[[], Any],
        *,
        key: object,
        limit: int,
        done: Callable[[], None] | None,
    ) -> None:
        self.call = call
        self.key = key
        self.limit = limit
        self.done = done
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.variables = contextvars.copy_context()
        self.abandoned = False

    def run(self) -> None:
        """In the thread."""
        result: Any = None
        error: BaseException | None = None
        try:
            result = self.variables.run(self.call)
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self.loop.call_soon_threadsafe(self._answer, result, error)

    def _answer(self, result: Any, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(result)
        elif isinstance(error, StopIteration):
            self.future.set_exception(RuntimeError("the tool raised StopIteration"))
        else:
            self.future.set_exception(error)


class Threads:
    """A bounded set of daemon threads, used from any loop."""

    def __init__(self, *, total: int = TOTAL, queue: int = QUEUE) -> None:
        self._total = total
        self._queue = queue
        self._lock = threading.Lock()
        self._waiting: deque[_Job] = deque()
        self._running: dict[object, int] = {}
        self._idle: list[SimpleQueue[_Job | None]] = []
        self._threads = 0

    async def run(
        self,
        call: Callable[[], Returned],
        *,
        key: object,
        limit: int = PER_TOOL,
        done: Callable[[], None] | None = None,
    ) -> Returned:
        """Run `call` in a thread, at most `limit` at a time for one `key`; context variables are copied in.

        `done` is called in the thread once the call has really ended, also after its caller was cancelled, and at once
        where the call never starts. Raises `Busy` where threads and queue are full, and whatever `call` raises.
        """
        job = _Job(call, key=key, limit=limit, done=done)
        with self._lock:
            placed = self._place(job)
        if not placed:
            if done is not None:
                done()
            raise Busy(f"{self._total} threads are at work and {self._queue} calls wait already")
        try:
            return await job.future
        except asyncio.CancelledError:
            self._abandon(job)
            raise

    def _place(self, job: _Job) -> bool:
        if self._may_start(job):
            self._start(job)
            return True
        if len(self._waiting) >= self._queue:
            return False
        self._waiting.append(job)
        return True

    def _may_start(self, job: _Job) -> bool:
        if self._running.get(job.key, 0) >= job.limit:
            return False
        return bool(self._idle) or self._threads < self._total

    def _start(self, job: _Job) -> None:
        self._running[job.key] = self._running.get(job.key, 0) + 1
        if self._idle:
            self._idle.pop().put(job)
            return
        self._threads += 1
        inbox: SimpleQueue[_Job | None] = SimpleQueue()
        inbox.put(job)
        threading.Thread(target=self._work, args=(inbox,), name=f"anykit-tool-{self._threads}", daemon=True).start()

    def _work(self, inbox: SimpleQueue[_Job | None]) -> None:
        while (job := inbox.get()) is not None:
            following: _Job | None = job
            while following is not None:
                current = following
                current.run()
                if current.done is not None:
                    current.done()
                with self._lock:
                    following = self._next(current.key, inbox)
                del current
            del job

    def _next(self, key: object, inbox: SimpleQueue[_Job | None]) -> _Job | None:
        """Give the thread its next job, or lay it by. Under the lock."""
        left = self._running[key] - 1
        if left:
            self._running[key] = left
        else:
            del self._running[key]
        for index, waiting in enumerate(self._waiting):
            if self._running.get(waiting.key, 0) < waiting.limit:
                del self._waiting[index]
                self._running[waiting.key] = self._running.get(waiting.key, 0) + 1
                return waiting
        self._idle.append(inbox)
        return None

    def _abandon(self, job: _Job) -> None:
        """The caller is gone: a waiting job never starts."""
        with self._lock:
            try:
                self._waiting.remove(job)
            except ValueError:
                return
        if job.done is not None:
            job.done()


SHARED = Threads()
"""The process's own: 128 threads is a bound for the process, not for one bench."""
