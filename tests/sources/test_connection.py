"""One owner a peer: racing callers, failing and hanging peers, lost links, the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
import pytest

from anykit.capabilities import State, Unavailable
from anykit.sources.connection import Backoff, Connection, explain, lose

pytestmark = pytest.mark.anyio


class FakeLink:
    def __init__(self) -> None:
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()


class Peer:
    """Opens links; `plan` says what each try does: "ok", "refuse", "hang" (the last one goes on)."""

    def __init__(self, *plan: str) -> None:
        self.plan = list(plan)
        self.links: list[FakeLink] = []
        self.tries = 0
        self.closed = 0
        self.gate: asyncio.Event | None = None
        self.owners: set[object] = set()

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[FakeLink]:
        what = self.plan[min(self.tries, len(self.plan) - 1)]
        self.tries += 1
        self.owners.add(asyncio.current_task())
        if self.gate is not None:
            await self.gate.wait()
        if what == "refuse":
            raise ExceptionGroup("unhandled errors in a TaskGroup", [ConnectionRefusedError(111, "Connection refused")])
        if what == "hang":
            await asyncio.Event().wait()
        if what == "astray":
            raise asyncio.CancelledError("a scope gone astray")
        link = FakeLink()
        self.links.append(link)
        try:
            yield link
        finally:
            self.owners.add(asyncio.current_task())
            self.closed += 1


def connection_to(
    open: Callable[[], AbstractAsyncContextManager[FakeLink]],
    *,
    backoff: Backoff = Backoff(0.01, 0.02),
    connect_timeout: float = 5.0,
) -> Connection[FakeLink]:
    return Connection("peer", open, backoff=backoff, connect_timeout=connect_timeout, close_timeout=0.5)


async def until(connection: Connection[FakeLink], status: str) -> State:
    changed = asyncio.Event()
    unsubscribe = connection.subscribe(changed.set)
    try:
        with anyio.fail_after(5):
            while connection.state.status != status:
                changed.clear()
                await changed.wait()
    finally:
        unsubscribe()
    return connection.state


async def test_b066_twenty_first_calls_race_to_one_connect() -> None:
    """agno-agi/agno#6821: many first calls race to open the same lazy source."""
    peer = Peer("ok")
    peer.gate = asyncio.Event()
    connection = connection_to(peer.open)

    async def work(link: FakeLink) -> int:
        return id(link)

    calls = [asyncio.create_task(connection.call(work)) for _ in range(20)]
    await asyncio.sleep(0)
    peer.gate.set()
    assert set(await asyncio.gather(*calls)) == {id(peer.links[0])}
    assert peer.tries == connection.starts == 1
    await connection.close()


async def test_b066_when_the_start_fails_all_get_the_same_error_and_a_later_call_tries_again() -> None:
    """agno-agi/agno#6821, variant: the start fails."""
    peer = Peer("refuse", "ok")
    connection = connection_to(peer.open)

    async def work(link: FakeLink) -> str:
        return "done"

    results = await asyncio.gather(*(connection.call(work) for _ in range(20)), return_exceptions=True)
    assert {type(result) for result in results} == {Unavailable}
    assert {str(result) for result in results} == {"peer is not available: connection refused"}
    assert peer.tries == 1
    assert await connection.call(work) == "done"
    assert peer.tries == 2
    await connection.close()
    assert connection.state.status == "closed"


async def test_b025_a_failed_connect_leaves_the_task_of_the_caller_alone() -> None:
    """openai/openai-agents-python#1288: a connection error corrupts the next await."""
    connection = connection_to(Peer("refuse").open)
    with pytest.raises(Unavailable, match="connection refused") as caught:
        await connection.link()
    assert not caught.value.sent
    await asyncio.sleep(0)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await connection.close()


async def test_a_cancelled_error_that_nobody_asked_for_is_a_failure_like_another() -> None:
    peer = Peer("astray", "ok")
    connection = connection_to(peer.open)
    with pytest.raises(Unavailable, match="CancelledError: a scope gone astray"):
        await connection.link()
    assert await connection.link() is peer.links[0]
    await connection.close()


async def test_b020_a_dead_peer_is_tried_a_handful_of_times_and_says_why() -> None:
    """google/adk-python#5025: restarts back off."""
    peer = Peer("refuse")
    connection = connection_to(peer.open, backoff=Backoff(0.2, 30.0))
    connection.start()
    state = await until(connection, "failed")
    assert state.reason == "connection refused"
    assert state.retry_at is not None
    assert state.since is not None
    with anyio.move_on_after(0.7):
        await asyncio.Event().wait()
    assert 2 <= peer.tries <= 4
    await connection.close()


@pytest.mark.parametrize(("failures", "pause"), [(1, 0.2), (2, 0.4), (4, 1.6), (9, 30.0), (10_000, 30.0)])
def test_pauses_grow_from_two_tenths_to_thirty_seconds(failures: int, pause: float) -> None:
    backoff = Backoff()
    assert backoff.pause(failures, 0.5) == pytest.approx(pause)
    assert backoff.pause(failures, 0.0) < pause < backoff.pause(failures, 0.99)


async def test_a_peer_that_never_answers_fails_at_the_connect_deadline() -> None:
    connection = connection_to(Peer("hang").open, connect_timeout=0.05)
    with anyio.fail_after(2), pytest.raises(Unavailable, match=r"no answer within 0\.05 s"):
        await connection.link()
    await connection.close()


async def test_a_caller_waits_inside_its_own_deadline() -> None:
    connection = connection_to(Peer("hang").open)
    with anyio.fail_after(2), pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await connection.link()
    assert connection.state.status == "connecting"
    await connection.close()


async def test_a_known_failure_is_told_at_once() -> None:
    connection = connection_to(Peer("refuse").open, backoff=Backoff(20.0, 20.0))
    connection.start()
    await until(connection, "failed")
    begun = asyncio.get_running_loop().time()
    with pytest.raises(Unavailable, match="connection refused"):
        await connection.link()
    assert asyncio.get_running_loop().time() - begun < 0.2
    await connection.close()


async def test_calls_in_flight_fail_as_sent_when_the_link_is_lost() -> None:
    peer = Peer("ok")
    connection = connection_to(peer.open)
    await connection.link()
    runs = 0

    async def work(link: FakeLink) -> None:
        nonlocal runs
        runs += 1
        await asyncio.Event().wait()

    calls = [asyncio.create_task(connection.call(work)) for _ in range(3)]
    await asyncio.sleep(0)
    lose(peer.links[0], "exited with code 3")
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert [str(result) for result in results] == ["peer: exited with code 3"] * 3
    assert all(isinstance(result, Unavailable) and result.sent for result in results)
    assert all(call.cancelling() == 0 for call in calls)
    assert runs == 3, "what was sent is never sent again"
    await connection.close()


async def test_b023_a_lost_call_is_not_sent_again_and_the_next_one_finds_a_new_link() -> None:
    """zavora-ai/adk-rust#504: the peer ran the tool and went away; the call must not be replayed."""
    peer = Peer("ok")
    connection = connection_to(peer.open)
    count = 0

    async def work(link: FakeLink) -> int:
        nonlocal count
        count += 1
        if count == 1:
            lose(link, "gone")
            await asyncio.Event().wait()
        return count

    with anyio.fail_after(5), pytest.raises(Unavailable) as lost:
        await connection.call(work)
    assert lost.value.sent
    assert count == 1
    assert await connection.call(work) == 2
    assert peer.tries == 2
    await connection.close()


@pytest.mark.parametrize(("sent", "repeatable", "runs"), [(False, False, 2), (True, True, 2), (True, False, 1)])
async def test_work_is_done_again_only_where_that_does_no_harm(sent: bool, repeatable: bool, runs: int) -> None:
    peer = Peer("ok")
    connection = connection_to(peer.open)
    links: list[FakeLink] = []

    async def work(link: FakeLink) -> str:
        links.append(link)
        if len(links) == 1:
            lose(link, "gone")
            raise Unavailable("gone", sent=sent)
        return "done"

    call = connection.call(work, repeatable=repeatable)
    with anyio.fail_after(5):
        if runs == 2:
            assert await call == "done"
            assert links[0] is not links[1]
        else:
            with pytest.raises(Unavailable):
                await call
    assert len(links) == runs
    await connection.close()


async def test_a_refused_line_does_not_cost_the_link() -> None:
    peer = Peer("ok")
    connection = connection_to(peer.open)

    async def work(link: FakeLink) -> None:
        raise Unavailable("this one is too large")

    with pytest.raises(Unavailable, match="too large"):
        await connection.call(work)
    assert connection.current is peer.links[0]
    assert peer.tries == 1
    await connection.close()


async def test_a_timeout_of_the_work_itself_stays_one() -> None:
    connection = connection_to(Peer("ok").open)

    async def work(link: FakeLink) -> None:
        async with asyncio.timeout(0.01):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await connection.call(work)
    assert connection.state.status == "ready"
    await connection.close()


async def test_one_task_enters_and_exits_every_link() -> None:
    peer = Peer("ok")
    connection = connection_to(peer.open)
    for _ in range(3):
        lose(await connection.link(), "gone")
        await until(connection, "connecting")
    await connection.link()
    await connection.close()
    assert peer.closed == peer.tries == 4
    assert len(peer.owners) == 1
    assert asyncio.current_task() not in peer.owners


async def test_a_link_that_dies_young_again_and_again_becomes_a_failure() -> None:
    peer = Peer("ok")
    connection = connection_to(peer.open, backoff=Backoff(2.0, 2.0))
    await connection.link()
    lose(peer.links[0], "crashed")
    state = await until(connection, "failed")
    assert state.reason == "crashed"
    await connection.close()


async def test_watchers_see_every_state_and_a_broken_one_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    peer = Peer("ok")
    connection = connection_to(peer.open)
    seen: list[str] = []

    def broken() -> None:
        raise ValueError("I broke")

    connection.subscribe(broken)
    unsubscribe = connection.subscribe(lambda: seen.append(connection.state.status))
    await connection.link()
    lose(peer.links[0], "gone")
    await until(connection, "connecting")
    await until(connection, "ready")
    await connection.close()
    unsubscribe()
    unsubscribe()
    connection.changed()
    steps = [status for index, status in enumerate(seen) if index == 0 or seen[index - 1] != status]
    assert steps == ["connecting", "ready", "connecting", "ready", "closed"]
    assert "whoever watches peer broke" in caplog.text


@pytest.mark.parametrize("plan", ["ok", "hang", "refuse"])
async def test_close_is_bounded_and_may_be_called_twice(plan: str) -> None:
    connection = connection_to(Peer(plan).open, backoff=Backoff(20.0, 20.0))
    connection.start()
    if plan != "hang":
        await connection.settled()
    with anyio.fail_after(3):
        await connection.close()
        await connection.close()
    assert connection.state.status == "closed"
    with pytest.raises(Unavailable, match="closed"):
        await connection.link()
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "anykit-link-peer"]


async def test_a_link_that_does_not_want_to_end_is_left_after_a_while() -> None:
    @asynccontextmanager
    async def stubborn() -> AsyncGenerator[FakeLink]:
        try:
            yield FakeLink()
        finally:
            await asyncio.Event().wait()

    connection = Connection("peer", stubborn, close_timeout=0.05)
    await connection.link()
    with anyio.fail_after(3):
        await connection.close()
    assert connection.state.status == "closed"


async def test_calls_in_flight_end_when_the_connection_is_closed() -> None:
    connection = connection_to(Peer("ok").open)

    async def work(link: FakeLink) -> None:
        await asyncio.Event().wait()

    call = asyncio.create_task(connection.call(work))
    await until(connection, "ready")
    await asyncio.sleep(0)
    await connection.close()
    with pytest.raises(Unavailable, match="closed"):
        await call


def test_root_causes_are_flattened_and_named_once() -> None:
    refused = ConnectionRefusedError(111, "Connection refused")
    group = ExceptionGroup("outer", [ExceptionGroup("inner", [refused, ValueError("bad\nline")]), refused])
    assert explain(group) == "connection refused; ValueError: bad line"
    assert explain(Unavailable("say this")) == "say this"
    assert len(explain(ValueError("x" * 10_000))) <= 500
