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
import time
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from .errors import Busy

TOTAL = 128
QUEUE = 256
PER_TOOL = 16
MOMENT = 0.0002
"""Seconds that a caller waits on the spot for a function whose last call took less than half of it."""

Returned = TypeVar("Returned")


class _Job:
    """One call. Its result is taken either from `outcome`, by a caller who waits a moment, or through `future`."""

    __slots__ = ("call", "done", "future", "key", "limit", "loop", "moment", "outcome", "variables")

    def __init__(self, call: Callable[[], Any], *, key: object, limit: int, done: Callable[[], None] | None) -> None:
        self.call = call
        self.key = key
        self.limit = limit
        self.done = done
        self.loop = asyncio.get_running_loop()
        self.variables = contextvars.copy_context()
        self.moment: threading.Lock | None = None
        self.outcome: tuple[Any, Exception | None] | None = None
        self.future: asyncio.Future[Any] | None = None

    def answer(self) -> None:
        """On the loop's thread: tell whoever awaits the future."""
        future = self.future
        if future is None or future.done() or self.outcome is None:
            return
        result, error = self.outcome
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


def _failure(name: str, error: BaseException) -> RuntimeError:
    failure = RuntimeError(f"the function raised {name}")
    failure.__cause__ = error
    return failure


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
        self._quick: set[object] = set()
        """Keys whose last call took less than a moment."""

    async def run(
        self,
        call: Callable[[], Returned],
        *,
        key: object,
        limit: int = PER_TOOL,
        done: Callable[[], None] | None = None,
        on_the_spot: bool = False,
    ) -> Returned:
        """Run `call` in a thread, at most `limit` at a time for one `key`; context variables are copied in.

        `done` is called in the thread once the call has really ended, also after its caller was cancelled, and at once
        where the call never starts. With `on_the_spot` a call known to be quick may be waited for without a turn of the
        loop: only for what tells the loop nothing meanwhile, since that would come after the result. Raises `Busy` where threads and queue are full, and whatever `call` raises, except that what would end
        more than the call (`SystemExit`, `KeyboardInterrupt`, `CancelledError`) comes as a `RuntimeError`.
        """
        job = _Job(call, key=key, limit=limit, done=done)
        if on_the_spot and key in self._quick:
            job.moment = threading.Lock()
            job.moment.acquire()
        with self._lock:
            placed = self._place(job)
        if placed is None:
            if done is not None:
                done()
            raise Busy(f"all the threads that it may have are at work and {self._queue} calls wait already")
        # Waiting on a lock for a function that is known to be quick costs half of what the loop's own wake-up does; it
        # blocks the loop no longer than an asynchronous function of the same length would.
        if placed and job.moment is not None and job.moment.acquire(timeout=MOMENT) and job.outcome is not None:
            result, error = job.outcome
            if error is None:
                return result
            raise error
        with self._lock:
            job.moment = None
            job.future = job.loop.create_future()
            if job.outcome is not None:
                job.answer()
        try:
            return await job.future
        except asyncio.CancelledError:
            self._abandon(job)
            raise

    def _place(self, job: _Job) -> bool | None:
        """True where it runs already, False where it waits, None where there is no room."""
        if self._may_start(job):
            self._start(job)
            return True
        if len(self._waiting) >= self._queue:
            return None
        self._waiting.append(job)
        return False

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
                self._run(current)
                if current.done is not None:
                    current.done()
                with self._lock:
                    following = self._next(current.key, inbox)
                self._hand_over(current)
                del current
            del job

    def _run(self, job: _Job) -> None:
        begun = time.monotonic()
        try:
            job.outcome = (job.variables.run(job.call), None)
        except Exception as error:
            job.outcome = (None, _failure("StopIteration", error) if isinstance(error, StopIteration) else error)
        except BaseException as error:  # `sys.exit()` in a worker's thread ends the call, not the process
            job.outcome = (None, _failure(type(error).__name__, error))
        if time.monotonic() - begun < MOMENT / 2:
            self._quick.add(job.key)
        else:
            self._quick.discard(job.key)

    def _hand_over(self, job: _Job) -> None:
        """Let the caller have the outcome: by its lock while it holds its breath, else through its loop."""
        with self._lock:
            moment, future = job.moment, job.future
            if future is None:
                if moment is not None:
                    moment.release()
                return
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            job.loop.call_soon_threadsafe(job.answer)

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
