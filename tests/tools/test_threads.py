"""Synchronous tools in bounded daemon threads."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from anykit.tools import Busy, Threads

pytestmark = pytest.mark.anyio

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


async def test_a_call_runs_in_a_daemon_thread_and_returns() -> None:
    thread = await Threads().run(threading.current_thread, key="k")
    assert thread.daemon
    assert thread is not threading.current_thread()


async def test_what_it_raises_is_raised() -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await Threads().run(fail, key="k")


async def test_a_stop_iteration_does_not_hang_the_caller() -> None:
    def stop() -> None:
        raise StopIteration

    with pytest.raises(RuntimeError, match="StopIteration"):
        await Threads().run(stop, key="k")


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError()])
async def test_what_would_end_more_than_the_call_is_a_plain_error(error: BaseException) -> None:
    def quit_it() -> None:
        raise error

    with pytest.raises(RuntimeError, match=type(error).__name__) as raised:
        await Threads().run(quit_it, key="k")
    assert raised.value.__cause__ is error


async def test_b065_context_variables_are_copied_in() -> None:
    """modelcontextprotocol/python-sdk#1646: context variables set by the caller are visible in the tool."""
    variable.set("mine")
    assert await Threads().run(variable.get, key="k") == "mine"


async def test_one_tool_holds_at_most_its_share_of_threads() -> None:
    threads = Threads(total=8)
    gate = threading.Event()
    running: set[str] = set()
    most = [0]
    lock = threading.Lock()

    def work(name: str) -> None:
        with lock:
            running.add(name)
            most[0] = max(most[0], len(running))
        gate.wait(5)
        with lock:
            running.discard(name)

    calls = [asyncio.ensure_future(threads.run(lambda n=str(i): work(n), key="slow", limit=2)) for i in range(5)]
    # Another tool is not kept waiting by the first one's queue.
    assert await asyncio.wait_for(threads.run(lambda: "free", key="other"), 5) == "free"
    gate.set()
    await asyncio.gather(*calls)
    assert most[0] <= 2


async def test_a_full_queue_is_busy_and_starts_nothing() -> None:
    threads = Threads(total=1, queue=1)
    gate = threading.Event()
    ended: list[str] = []
    first = asyncio.ensure_future(threads.run(lambda: gate.wait(5), key="k"))
    second = asyncio.ensure_future(threads.run(lambda: ended.append("second"), key="k"))
    await asyncio.sleep(0)
    with pytest.raises(Busy):
        await threads.run(lambda: ended.append("third"), key="k", done=lambda: ended.append("third is done"))
    gate.set()
    await asyncio.gather(first, second)
    assert ended == ["third is done", "second"]


async def test_a_queued_call_whose_caller_is_gone_never_starts() -> None:
    threads = Threads(total=1)
    gate = threading.Event()
    ran: list[str] = []
    done: list[str] = []
    first = asyncio.ensure_future(threads.run(lambda: gate.wait(5), key="k"))
    second = asyncio.ensure_future(
        threads.run(lambda: ran.append("second"), key="k", done=lambda: done.append("second"))
    )
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    gate.set()
    await first
    await threads.run(lambda: None, key="k")
    assert ran == []
    assert done == ["second"]


async def test_a_running_call_keeps_its_thread_until_it_ends() -> None:
    threads = Threads(total=2)
    gate = threading.Event()
    begun = threading.Event()
    done = asyncio.Event()
    loop = asyncio.get_running_loop()

    def work() -> None:
        begun.set()
        gate.wait(5)

    def ended() -> None:
        loop.call_soon_threadsafe(done.set)

    call = asyncio.ensure_future(threads.run(work, key="k", done=ended))
    await threads.run(lambda: begun.wait(5), key="other")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not done.is_set()
    gate.set()
    await asyncio.wait_for(done.wait(), 5)


async def test_a_function_that_was_quick_and_is_not_any_more_leaves_the_loop_free() -> None:
    threads = Threads()
    gate = threading.Event()
    slow = False

    def work() -> str:
        if slow:
            gate.wait(5)
        return "done"

    for _ in range(3):
        assert await threads.run(work, key="k", on_the_spot=True) == "done"
    slow = True
    call = asyncio.ensure_future(threads.run(work, key="k", on_the_spot=True))
    # The loop goes on while it runs: this very line is reached, and opens its gate.
    await asyncio.sleep(0)
    assert not call.done()
    gate.set()
    assert await asyncio.wait_for(call, 5) == "done"
