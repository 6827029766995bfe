"""Two ends in one process."""

from __future__ import annotations

import asyncio

import pytest

from anykit.transports import LineTransport, Oversized, TransportClosed, memory_pair, received

pytestmark = pytest.mark.anyio


async def test_what_one_end_sends_the_other_receives_in_order() -> None:
    one, other = memory_pair()
    for number in range(5):
        await one.send(b"%d" % number)
    await other.send(b"back")
    assert [await other.receive() for _ in range(5)] == [b"0", b"1", b"2", b"3", b"4"]
    assert await one.receive() == b"back"
    assert isinstance(one, LineTransport)
    assert one.secure


async def test_what_was_sent_before_a_close_still_arrives() -> None:
    one, other = memory_pair()
    await one.send(b"last words")
    await one.close()
    await one.close()
    assert [item async for item in received(other)] == [b"last words"]
    with pytest.raises(TransportClosed, match="other end") as caught:
        await other.send(b"too late")
    assert caught.value.sent is False


async def test_closing_wakes_a_waiting_receiver() -> None:
    one, _other = memory_pair()
    waiting = asyncio.create_task(one.receive())
    await asyncio.sleep(0)
    await one.close()
    with pytest.raises(TransportClosed):
        await waiting


async def test_a_sender_waits_while_the_peer_does_not_read() -> None:
    one, other = memory_pair(max_waiting=2)
    await one.send(b"1")
    await one.send(b"2")
    third = asyncio.create_task(one.send(b"3"))
    for _ in range(3):
        await asyncio.sleep(0)
    assert not third.done()
    assert await other.receive() == b"1"
    async with asyncio.timeout(1):
        await third
    assert [await other.receive(), await other.receive()] == [b"2", b"3"]


async def test_a_waiting_sender_hears_of_the_close() -> None:
    one, other = memory_pair(max_waiting=1)
    await one.send(b"1")
    second = asyncio.create_task(one.send(b"2"))
    await asyncio.sleep(0)
    await other.close()
    with pytest.raises(TransportClosed):
        await second


async def test_a_cancelled_receive_loses_nothing() -> None:
    one, other = memory_pair()
    waiting = asyncio.create_task(other.receive())
    await asyncio.sleep(0)
    await one.send(b"kept")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await other.receive() == b"kept"


async def test_a_line_beyond_the_limit_is_reported_not_fatal() -> None:
    one, other = memory_pair(max_line=10)
    await one.send(b"x" * 11)
    await one.send(b"fine")
    assert await other.receive() == Oversized(11, 10)
    assert await other.receive() == b"fine"


async def test_a_line_feed_inside_a_line_is_refused() -> None:
    one, _other = memory_pair()
    with pytest.raises(ValueError, match="line feed"):
        await one.send(b"two\nlines")
