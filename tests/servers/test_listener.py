"""What is written in one turn of the loop leaves together."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from anykit.servers.listener import TOGETHER, JoinedWrites

pytestmark = pytest.mark.anyio


class Written(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.ended = ""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def close(self) -> None:
        self.ended = "closed"

    def abort(self) -> None:
        self.ended = "aborted"

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return f"extra {name}"


async def turn() -> None:
    await asyncio.sleep(0)


async def test_a_head_and_its_body_are_one_write() -> None:
    below = Written()
    joined = JoinedWrites(below, asyncio.get_running_loop())
    joined.write(b"head")
    joined.write(bytearray(b" body"))
    assert below.writes == []
    await turn()
    assert below.writes == [b"head body"]
    joined.write(b"alone")
    await turn()
    await turn()
    assert below.writes == [b"head body", b"alone"]
    assert joined.get_extra_info("socket") == "extra socket"


async def test_much_does_not_wait() -> None:
    below = Written()
    joined = JoinedWrites(below, asyncio.get_running_loop())
    for _ in range(10):
        joined.write(b"x" * TOGETHER)
    assert sum(map(len, below.writes)) >= 9 * TOGETHER
    await turn()
    assert sum(map(len, below.writes)) == 10 * TOGETHER


async def test_closing_sends_what_waits_and_aborting_does_not() -> None:
    below = Written()
    joined = JoinedWrites(below, asyncio.get_running_loop())
    joined.write(b"last words")
    joined.close()
    assert (below.writes, below.ended) == ([b"last words"], "closed")
    below = Written()
    joined = JoinedWrites(below, asyncio.get_running_loop())
    joined.write(b"never")
    joined.abort()
    await turn()
    assert (below.writes, below.ended) == ([], "aborted")
