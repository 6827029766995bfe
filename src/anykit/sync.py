"""The workbench for scripts and notebooks: the same verbs without `await`, on the loop of a thread of its own.

with Workbench(add) as bench:
    bench.call("add", {"a": 2, "b": 3}).output      # "5"
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import queue
import threading
from collections.abc import Coroutine, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

from .adapters import Exported, Provider
from .app import SourceView
from .app import Workbench as AsyncWorkbench
from .capabilities import (
    Json,
    JsonObject,
    PromptContents,
    PromptDescriptor,
    ResourceContents,
    ResourceDescriptor,
    Suspension,
)
from .runtime import Change, Configured, ToolkitView
from .tools import Tool, ToolResult

T = TypeVar("T")

CLOSE_TIMEOUT = 30.0
"""Seconds that leaving may take."""


class Workbench:
    """As `anykit.Workbench`, which documents the parameters; use it as a context manager. Safe to use from any thread."""

    def __init__(self, *sources: object, **options: Any) -> None:
        self._bench = AsyncWorkbench(*sources, **options)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._thread is not None:
            raise RuntimeError("a workbench is entered once; make a new one")
        started: queue.SimpleQueue[asyncio.AbstractEventLoop] = queue.SimpleQueue()

        def work() -> None:
            with asyncio.Runner() as runner:
                loop = runner.get_loop()
                started.put(loop)
                runner.run(self._stay())

        self._thread = threading.Thread(target=work, name="anykit-sync", daemon=True)
        self._thread.start()
        self._loop = started.get()
        try:
            self._await(self._bench.__aenter__())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._await(self._bench.__aexit__(kind, error, trace), CLOSE_TIMEOUT)
        finally:
            self._end()

    async def _stay(self) -> None:
        self._over = asyncio.Event()
        await self._over.wait()

    def _end(self) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._over.set)
            self._thread.join(CLOSE_TIMEOUT)

    def _await(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Run on the bench's loop and wait; an interrupted wait cancels the work."""
        future = self.submit(work)
        try:
            return future.result(timeout)
        except concurrent.futures.TimeoutError:
            if not future.done():
                future.cancel()
            raise
        except BaseException:
            future.cancel()
            raise

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Run a coroutine on the bench's loop without waiting for it; cancelling the future cancels it.

        Raises `RuntimeError` where the bench is not open.
        """
        if self._loop is None or self._loop.is_closed():
            work.close()
            raise RuntimeError("the workbench is not open; use it in a `with` block")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _look(self, look: Any, *args: Any) -> Any:
        async def here() -> Any:
            return look(*args)

        return self._await(here())

    def tools(self) -> list[Tool]:
        """The tools that can be called now."""
        return self._look(self._bench.tools)

    def get(self, name: str) -> Tool | None:
        """One of them, or None."""
        return self._look(self._bench.get, name)

    def toolkits(self) -> list[ToolkitView]:
        """Every toolkit, with its schema and whether it is configured."""
        return self._look(self._bench.toolkits)

    def sources(self) -> list[SourceView]:
        """Every source, with how it is."""
        return self._look(self._bench.sources)

    def call(
        self,
        name: str,
        arguments: Json = None,
        *,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> ToolResult:
        """Call a tool. `timeout` is in seconds. Ctrl-C cancels the call."""
        return self._await(self._bench.call(name, arguments, timeout=timeout, idempotency_key=idempotency_key))

    def execute(
        self,
        name: str | object,
        arguments: Any = None,
        *,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> ToolResult:
        """A model provider's tool call as it comes: name and arguments, or the call itself."""
        return self._await(self._bench.execute(name, arguments, timeout=timeout, idempotency_key=idempotency_key))

    def to_openai(self, **options: Any) -> list[JsonObject]:
        """The tools for OpenAI's chat completions; parameters as `anykit.Workbench.to_openai`."""
        return self._look(lambda: self._bench.to_openai(**options))

    def to_openai_responses(self, **options: Any) -> list[JsonObject]:
        """The tools for OpenAI's responses."""
        return self._look(lambda: self._bench.to_openai_responses(**options))

    def to_anthropic(self, **options: Any) -> list[JsonObject]:
        """The tools for Anthropic's messages."""
        return self._look(lambda: self._bench.to_anthropic(**options))

    def to_gemini(self, **options: Any) -> list[JsonObject]:
        """The tools for Gemini."""
        return self._look(lambda: self._bench.to_gemini(**options))

    def exported(self, provider: Provider, **options: Any) -> Exported:
        """The tools for any of them, with what their schemas could not say."""
        return self._look(lambda: self._bench.exported(provider, **options))

    def suspensions(self) -> list[Suspension]:
        """The questions that wait for an answer."""
        return self._look(self._bench.suspensions)

    def answer(self, id: str, *, ok: bool = True, data: Json = None) -> ToolResult:
        """Answer one and go on with its call; `ok` False refuses."""
        return self._await(self._bench.answer(id, ok=ok, data=data))

    def configure(self, toolkit: str, config: Json) -> Configured:
        """Configure a toolkit for everyone; returns (status, message). Raises `InvalidInput` with `.errors`."""
        return self._await(self._bench.configure(toolkit, config))

    def unconfigure(self, toolkit: str) -> bool:
        """Take the configuration for everyone away."""
        return self._await(self._bench.unconfigure(toolkit))

    def resources(self) -> list[ResourceDescriptor]:
        """Every resource that can be listed."""
        return self._await(self._bench.resources())

    def read(self, uri: str) -> ResourceContents:
        """Read one. Raises `CapabilityError`."""
        return self._await(self._bench.read(uri))

    def prompts(self) -> list[PromptDescriptor]:
        """Every prompt."""
        return self._await(self._bench.prompts())

    def prompt(self, name: str, args: JsonObject | None = None) -> PromptContents:
        """Fill one in. Raises `CapabilityError`."""
        return self._await(self._bench.prompt(name, args))

    def context(self, **options: Any) -> list[JsonObject]:
        """Resources and prompts as messages for a model; parameters as `anykit.Workbench.context`."""
        return self._await(self._bench.context(**options))

    def add(self, source: object) -> SourceView:
        """Add a source at run time."""
        return self._await(self._bench.add(source))

    def add_agent(self, agent: object) -> SourceView:
        """Add an A2A agent (`anykit.a2a.agent`) at run time."""
        return self._await(self._bench.add_agent(agent))

    def remove(self, name: str) -> None:
        """Take a source out and close it."""
        self._await(self._bench.remove(name))

    def register(self, *tools: object) -> None:
        """Add tools at run time. Raises `ValueError` where a name is taken already."""
        self._look(self._bench.register, *tools)

    def unregister(self, name: str) -> bool:
        """Take a registered tool out."""
        return self._look(self._bench.unregister, name)

    def settled(self, timeout: float) -> bool:
        """Wait until every source has a verdict, at most `timeout` seconds; whether all have."""
        return self._await(self._bench.settled(timeout))

    def changes(self) -> Iterator[Change]:
        """Each change of the catalogue and each toolkit's event, as they come."""
        changes = self._bench.changes()

        async def following() -> Change:
            return await anext(changes)

        with contextlib.suppress(StopAsyncIteration):
            while True:
                yield self._await(following())
