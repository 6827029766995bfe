"""A bench as an agent framework uses it: its tools, and calls from whatever loop or thread the framework runs them in.

the bench's own loop            the call is awaited there
another loop (`run_sync`, ...)  it is run on the bench's loop and awaited from here; cancelling reaches it
a thread without a loop         it is run on the bench's loop and waited for
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import importlib
import threading
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

from anykit.capabilities import CapabilityContext, Json, MetadataMap, Suspension
from anykit.tools import Tool, ToolResult

T = TypeVar("T")

BLOCKED = 5.0
"""Seconds after which a loop that does not turn is taken for one that waits for this very call."""


class Bench(Protocol):
    """What an adapter needs of a bench: a `Workbench` or a session of one, entered."""

    def tools(self) -> Sequence[Tool]:
        """The tools that can be called now."""
        ...


@runtime_checkable
class Threaded(Protocol):
    """A bench whose loop runs in a thread of its own: `anykit.sync.Workbench`."""

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Run a coroutine on the bench's loop."""
        ...


@runtime_checkable
class Answering(Protocol):
    """A bench that goes on with a call that asked something."""

    async def answer(self, id: str, *, ok: bool = True, data: Json = None) -> ToolResult:
        """Answer and go on."""
        ...

    def suspensions(self) -> Sequence[Suspension]:
        """What waits for an answer."""
        ...


class MissingFramework(ImportError):
    """The framework is not installed; the text says how to install it."""


def imported(module: str, extra: str) -> Any:
    """A framework's module. Raises `MissingFramework`, which names our extra, where it is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and module.split(".")[0] != error.name.split(".")[0]:
            raise
        raise MissingFramework(
            f"{module.split('.')[0]} is not installed: pip install 'anykit[{extra}]'", name=error.name
        ) from None


class Calls:
    """The calls of one adapter. `session_id` is what the tools hear as the caller's session."""

    def __init__(self, bench: Bench, *, session_id: str | None = None) -> None:
        self.bench = bench
        self._session_id = session_id
        self._loop = None if isinstance(bench, Threaded) else _running()

    async def run(
        self,
        tool: Tool,
        arguments: Json,
        *,
        session_id: str | None = None,
        turn_id: str | None = None,
        metadata: MetadataMap | None = None,
    ) -> ToolResult:
        """Call a tool of the bench; whatever becomes of it is a result. Cancelling cancels the call."""
        return await self.awaited(self._call(tool, arguments, session_id, turn_id, metadata))

    def run_blocking(
        self, tool: Tool, arguments: Json, *, session_id: str | None = None, metadata: MetadataMap | None = None
    ) -> ToolResult:
        """The same from a thread that is not the bench's. Raises `RuntimeError` where the bench's loop cannot turn."""
        work = self._call(tool, arguments, session_id, None, metadata)
        if self._loop is not None and self._loop is _running():
            work.close()
            raise RuntimeError(
                f"{tool.name} cannot be called synchronously on the thread of the bench's own loop, which it would block:"
                " await the asynchronous call (`ainvoke`), or use anykit.sync.Workbench"
            )
        future = self._submitted(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def awaited(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` gives, run on the bench's loop."""
        here = asyncio.get_running_loop()
        if self._loop is None and not isinstance(self.bench, Threaded):
            self._loop = here
        if self._loop is here:
            return await work
        return await asyncio.wrap_future(self._submitted(work))

    async def _call(
        self,
        tool: Tool,
        arguments: Any,
        session_id: str | None,
        turn_id: str | None,
        metadata: MetadataMap | None,
    ) -> ToolResult:
        context = CapabilityContext(
            session_id=self._session_id or session_id, turn_id=turn_id, metadata=dict(metadata or {})
        )
        return await tool.execute(arguments, context)

    def _submitted(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        if isinstance(self.bench, Threaded):
            return self.bench.submit(work)
        loop = self._loop
        if loop is None or not loop.is_running():
            work.close()
            raise RuntimeError(
                "the bench's loop does not run here: make the tools inside `async with Workbench(...)` and stay in it,"
                " or use anykit.sync.Workbench"
            )
        turned = threading.Event()
        loop.call_soon_threadsafe(turned.set)
        if _running() is None and not turned.wait(BLOCKED):
            work.close()
            raise RuntimeError(
                "the bench's loop is blocked, by a synchronous call of the agent on its thread: await the agent"
                " (`ainvoke`), or use anykit.sync.Workbench"
            )
        return asyncio.run_coroutine_threadsafe(work, loop)


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
