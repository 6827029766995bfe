# ruff: noqa: ASYNC240 - what changes on disk is what is tested
"""Files that are watched: every way in which an editor, or a person, changes one is seen, once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from anykit.app.watching import Watch

pytestmark = pytest.mark.anyio


class Heard:
    """What a watch told."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.changes: asyncio.Queue[frozenset[Path]] = asyncio.Queue()

    async def listen(self) -> None:
        async for changed in self.watch.changes():
            self.changes.put_nowait(changed)

    async def next(self) -> set[str]:
        async with asyncio.timeout(4):
            return {file.name for file in await self.changes.get()}

    async def nothing_but(self, poke: Callable[[], object]) -> None:
        """Nothing was told before somebody pokes."""
        poke()
        assert await self.next() == set()


@asynccontextmanager
async def watching(*files: Path) -> AsyncGenerator[Heard]:
    known = set(files)
    heard = Heard(Watch(lambda: known))
    task = asyncio.ensure_future(heard.listen())
    try:
        yield heard
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "a.toml"
    place.write_text("1")
    return place


async def test_a_write_of_the_same_size_is_seen(file: Path) -> None:
    async with watching(file) as heard:
        file.write_text("2")
        assert await heard.next() == {"a.toml"}


async def test_a_file_that_is_renamed_over_it_is_seen(file: Path) -> None:
    async with watching(file) as heard:
        fresh = file.with_name("fresh")
        fresh.write_text("2")
        os.utime(fresh, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
        fresh.replace(file)
        assert await heard.next() == {"a.toml"}


async def test_a_link_that_is_turned_is_seen(file: Path) -> None:
    other, link = file.with_name("other"), file.with_name("link")
    other.write_text("2")
    link.symlink_to(file)
    async with watching(link) as heard:
        turned = file.with_name("turned")
        turned.symlink_to(other)
        turned.replace(link)
        assert await heard.next() == {"link"}


async def test_several_writes_at_once_are_one_change(file: Path) -> None:
    async with watching(file) as heard:
        for text in "2345":
            file.write_text(text)
        assert await heard.next() == {"a.toml"}
        await heard.nothing_but(heard.watch.poke)


async def test_a_file_that_is_only_touched_or_is_written_back_is_no_change(file: Path) -> None:
    async with watching(file) as heard:
        os.utime(file, ns=(1, 1))
        file.write_text("1")
        await heard.nothing_but(heard.watch.poke)


async def test_a_file_that_is_away_for_a_moment_is_no_change(file: Path) -> None:
    async with watching(file) as heard:
        file.unlink()
        await heard.nothing_but(heard.watch.poke)
        file.write_text("1")
        await heard.nothing_but(heard.watch.poke)
        file.unlink()
        file.write_text("2")
        assert await heard.next() == {"a.toml"}


async def test_a_file_that_stays_away_is_told(file: Path) -> None:
    async with watching(file) as heard:
        file.unlink()
        assert await heard.next() == {"a.toml"}
        file.write_text("1")
        assert await heard.next() == {"a.toml"}


async def test_files_that_are_named_later_are_watched_from_then_on(file: Path) -> None:
    known = {file}
    heard = Heard(Watch(lambda: known))
    task = asyncio.ensure_future(heard.listen())
    try:
        later = file.with_name("later")
        later.write_text("1")
        known.add(later)
        await heard.nothing_but(heard.watch.poke)
        later.write_text("2")
        assert await heard.next() == {"later"}
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_what_is_no_file_holds_nobody_up(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    async with watching(pipe, tmp_path, Path("\0")) as heard:
        await heard.nothing_but(heard.watch.poke)
