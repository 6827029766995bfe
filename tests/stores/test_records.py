"""One contract for every record store, and what only the file can promise."""

from __future__ import annotations

import asyncio
import json
import math
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from anykit.stores import MemoryRecords, Record, RecordError, RecordStore, SqliteRecords

pytestmark = pytest.mark.anyio


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.time = 1_000_000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite"])
async def records(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> AsyncIterator[RecordStore]:
    store: RecordStore
    if request.param == "memory":
        store = MemoryRecords(now=clock)
    else:
        store = SqliteRecords(tmp_path / "data" / "anykit.db", now=clock)
    yield store
    await store.close()


async def test_a_record_comes_back_as_it_was_put(records: RecordStore, clock: Clock) -> None:
    value: Any = {"text": "héllo \u2028 \x00", "big": 2**70, "none": None, "list": [1, 1.5, True, {"deep": [0]}]}
    await records.put("suspension", "a1", value, principal="alice", expires_at=clock.time + 60)
    assert await records.get("suspension", "a1", principal="alice") == Record(
        "suspension", "a1", "alice", value, clock.time, clock.time + 60
    )


async def test_every_store_is_a_record_store(records: RecordStore) -> None:
    assert isinstance(records, RecordStore)


@pytest.mark.parametrize("value", [None, "", 0, False, [], {}, "\ud800", 2**63])
async def test_small_values_stay_apart(records: RecordStore, value: Any) -> None:
    await records.put("k", "v", value)
    found = await records.get("k", "v")
    assert found is not None
    assert found.value == value
    assert type(found.value) is type(value)


async def test_two_principals_never_meet_under_one_name(records: RecordStore) -> None:
    await records.put("config", "web", 1, principal="alice")
    await records.put("config", "web", 2, principal="bob")
    alice = await records.get("config", "web", principal="alice")
    bob = await records.get("config", "web", principal="bob")
    assert (alice and alice.value, bob and bob.value) == (1, 2)
    assert await records.delete("config", "web", principal="alice")
    assert await records.get("config", "web", principal="alice") is None
    assert await records.get("config", "web", principal="bob") is not None
    assert await records.get("config", "web", principal="carol") is None


async def test_the_operator_finds_a_record_whoever_owns_it(records: RecordStore) -> None:
    await records.put("approval", "h", "x", principal="bob")
    found = await records.get("approval", "h")
    assert found is not None
    assert found.principal == "bob"
    assert await records.delete("approval", "h")
    assert not await records.delete("approval", "h")


async def test_only_one_of_many_removes_a_record(records: RecordStore) -> None:
    await records.put("approval", "once", {})
    removed = await asyncio.gather(*(records.delete("approval", "once", principal="local") for _ in range(20)))
    assert sum(removed) == 1


async def test_a_second_put_replaces_and_keeps_the_birthday(records: RecordStore, clock: Clock) -> None:
    await records.put("k", "a", 1)
    born, clock.time = clock.time, clock.time + 5
    await records.put("k", "a", 2, expires_at=clock.time + 1)
    found = await records.get("k", "a")
    assert found == Record("k", "a", "local", 2, born, clock.time + 1)


async def test_what_is_over_is_as_if_it_never_was(records: RecordStore, clock: Clock) -> None:
    await records.put("k", "a", 1, expires_at=clock.time + 10)
    await records.put("k", "b", 2)
    clock.time += 10
    assert await records.get("k", "a") is None
    assert [record.key for record in await records.list("k")] == ["b"]
    assert not await records.delete("k", "a")
    await records.put("k", "a", 3)
    found = await records.get("k", "a")
    assert found == Record("k", "a", "local", 3, clock.time, None)


async def test_a_list_goes_by_key_and_principal_page_by_page(records: RecordStore) -> None:
    for key in ("b", "a", "c"):
        for principal in ("y", "x"):
            await records.put("k", key, key + principal, principal=principal)
    await records.put("other", "a", 0)
    seen: list[Any] = []
    last: Record | None = None
    while page := await records.list("k", after=last, limit=4):
        assert len(page) <= 4
        seen += [record.value for record in page]
        last = page[-1]
    assert seen == ["ax", "ay", "bx", "by", "cx", "cy"]
    assert [record.value for record in await records.list("k", principal="y")] == ["ay", "by", "cy"]


async def test_what_was_put_cannot_be_changed_from_outside(records: RecordStore) -> None:
    value = {"list": [1]}
    await records.put("k", "a", value)
    value["list"].append(2)
    found = await records.get("k", "a")
    assert found is not None
    found.value["list"].append(3)
    again = await records.get("k", "a")
    assert again is not None
    assert again.value == {"list": [1]}


@pytest.mark.parametrize("value", [math.nan, math.inf, {1, 2}, b"x", object(), {"a": [float("-inf")]}])
async def test_a_value_that_is_not_json_is_refused_and_not_shown(records: RecordStore, value: Any) -> None:
    with pytest.raises(ValueError, match="is JSON"):
        await records.put("k", "a", {"password": "hunter2", "bad": value})
    assert await records.get("k", "a") is None


async def test_a_value_that_nests_without_end_is_refused(records: RecordStore) -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ValueError, match="is JSON"):
        await records.put("k", "a", value)


@pytest.mark.parametrize("name", ["", "x" * 513, "\ud800"])
async def test_an_impossible_name_is_refused_and_never_found(records: RecordStore, name: str) -> None:
    for names in ((name, "key", "p"), ("kind", name, "p"), ("kind", "key", name)):
        with pytest.raises(ValueError, match="name in the records"):
            await records.put(names[0], names[1], 1, principal=names[2])
    await records.put("kind", "key", 1)
    assert await records.get("kind", name) is None
    assert not await records.delete("kind", name)
    assert await records.get("kind", "key") is not None


async def test_hostile_names_are_only_names(records: RecordStore) -> None:
    for key in ("' OR 1=1 --", '"', "%", "a\x00b", "../x", "\u2028"):
        await records.put("k", key, key)
        found = await records.get("k", key)
        assert found is not None
        assert found.value == key
    assert len(await records.list("k")) == 6


async def test_a_log_gives_its_newest_rows_in_order(records: RecordStore, clock: Clock) -> None:
    for number in range(10):
        records.append("calls", [{"n": number}])
    records.append("other", [{"n": 99}])
    entries = await records.tail("calls", 3)
    assert [entry.row for entry in entries] == [{"n": 7}, {"n": 8}, {"n": 9}]
    assert {entry.at for entry in entries} == {clock.time}
    assert [entry.id for entry in entries] == sorted({entry.id for entry in entries})
    assert await records.tail("nothing") == []


async def test_a_log_can_be_followed(records: RecordStore) -> None:
    records.append("calls", [{"n": 1}, {"n": 2}])
    seen = await records.tail("calls")
    records.append("calls", [{"n": 3}])
    assert [entry.row["n"] for entry in await records.tail("calls", after=seen[-1].id)] == [3]
    assert await records.tail("calls", after=2**62) == []


async def test_filters_compare_as_json_does(records: RecordStore) -> None:
    rows: list[dict[str, Any]] = [
        {"n": 0, "v": 1}, {"n": 1, "v": 1.0}, {"n": 2, "v": True}, {"n": 3, "v": "1"}, {"n": 4, "v": None},
        {"n": 5}, {"n": 6, "v": False}, {"n": 7, "v": 0}, {"n": 8, "v": [1]},
    ]  # fmt: skip
    records.append("calls", rows)

    async def found(value: Any) -> list[int]:
        return [entry.row["n"] for entry in await records.tail("calls", filters={"v": value})]

    assert await found(1) == [0, 1]
    assert await found(True) == [2]
    assert await found("1") == [3]
    assert await found(None) == [4, 5]
    assert await found(False) == [6]
    assert await found(0) == [7]
    assert [e.row["n"] for e in await records.tail("calls", filters={"v": 1, "n": 1})] == [1]


@pytest.mark.parametrize("filters", [{'a"b': 1}, {"": 1}, {"a\\": 1}, {"a": [1]}, {"a": 2**64}])
async def test_a_filter_that_cannot_be_is_refused(records: RecordStore, filters: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="filter"):
        await records.tail("calls", filters=filters)


async def test_a_bad_row_is_lost_alone_and_counted(records: RecordStore) -> None:
    bad: Any = [{"n": {1}}, "no object", {"n": math.nan}]
    records.append("calls", [{"n": 1}, *bad, {"n": 2}])
    assert [entry.row["n"] for entry in await records.tail("calls")] == [1, 2]
    assert records.dropped == 3


async def test_a_limit_is_bounded_on_both_sides(records: RecordStore) -> None:
    records.append("calls", [{"n": n} for n in range(20)])
    assert len(await records.tail("calls", -5)) == 1
    assert len(await records.tail("calls", 10**9)) == 20


async def test_a_closed_store_says_so_and_counts_what_it_drops(records: RecordStore) -> None:
    await records.put("k", "a", 1)
    await records.close()
    await records.close()
    records.append("calls", [{"n": 1}, {"n": 2}])
    assert records.dropped == 2
    for use in (records.get("k", "a"), records.put("k", "a", 1), records.delete("k", "a"), records.list("k"),
                records.tail("calls"), records.flush()):  # fmt: skip
        with pytest.raises(RecordError, match="closed"):
            await use


async def test_many_writers_at_once_lose_nothing(records: RecordStore) -> None:
    async def write(number: int) -> None:
        records.append("calls", [{"n": number}])
        await records.put("k", f"{number:03}", number)

    await asyncio.gather(*(write(number) for number in range(200)))
    assert len(await records.list("k")) == 200
    assert sorted(entry.row["n"] for entry in await records.tail("calls", 1000)) == list(range(200))


async def test_memory_keeps_the_newest_rows_only() -> None:
    records = MemoryRecords(keep_rows=5)
    for number in range(3000):
        records.append("calls", [{"n": number}])
    assert [entry.row["n"] for entry in await records.tail("calls", 100)] == [2995, 2996, 2997, 2998, 2999]


# What only the file can promise.


async def test_records_and_rows_outlive_the_store(tmp_path: Path) -> None:
    path = tmp_path / "anykit.db"
    first = SqliteRecords(path)
    await first.put("k", "a", {"x": 1})
    first.append("calls", [{"n": 1}])
    await first.close()
    second = SqliteRecords(path)
    found = await second.get("k", "a")
    assert found is not None
    assert found.value == {"x": 1}
    assert [entry.row for entry in await second.tail("calls")] == [{"n": 1}]
    await second.close()


async def test_the_files_are_private_and_the_folder_is_made(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        records = SqliteRecords(tmp_path / "new" / "anykit.db")
        await records.put("k", "a", 1)
        await records.get("k", "a")
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    files = list((tmp_path / "new").iterdir())
    assert {file.name for file in files} >= {"anykit.db", "anykit.db-wal"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    await records.close()


async def test_a_store_that_nobody_uses_makes_no_file_and_no_thread(tmp_path: Path) -> None:
    before = threading.active_count()
    records = SqliteRecords(tmp_path / "new" / "anykit.db")
    await records.close()
    assert threading.active_count() == before
    assert not (tmp_path / "new").exists()


async def test_rows_are_written_without_a_flush_before_long(tmp_path: Path) -> None:
    records = SqliteRecords(tmp_path / "anykit.db", batch_every=0.01)
    await records.flush()
    records.append("calls", [{"n": 1}])
    assert await asyncio.to_thread(rows_come, tmp_path / "anykit.db")
    await records.close()


def rows_come(path: Path) -> bool:
    """Whether another connection sees a row within 5 s."""
    reader = sqlite3.connect(path)
    until = time.monotonic() + 5
    try:
        while time.monotonic() < until:
            if reader.execute("SELECT count(*) FROM log").fetchone()[0]:
                return True
            threading.Event().wait(0.005)
        return False
    finally:
        reader.close()


async def test_a_full_queue_drops_rows_and_counts_them(tmp_path: Path) -> None:
    records = SqliteRecords(tmp_path / "anykit.db", max_pending=10)
    await records.flush()
    blocker = sqlite3.connect(tmp_path / "anykit.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")  # nothing can be written
    for number in range(100):
        records.append("calls", [{"n": number}])
    assert records.dropped >= 80
    blocker.execute("ROLLBACK")
    blocker.close()
    kept = await records.tail("calls", 1000)
    assert len(kept) + records.dropped == 100
    await records.close()


async def test_a_file_that_cannot_be_opened_is_an_error_and_close_still_ends(tmp_path: Path) -> None:
    (tmp_path / "anykit.db").mkdir()
    records = SqliteRecords(tmp_path / "anykit.db")
    with pytest.raises(RecordError, match="cannot be used"):
        await records.put("k", "a", 1)
    records.append("calls", [{"n": 1}])
    await records.close()
    assert records.dropped == 1


async def test_a_file_that_is_no_database_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "anykit.db").write_text("this is not a database, by any means" * 100)
    records = SqliteRecords(tmp_path / "anykit.db")
    with pytest.raises(RecordError, match="not a database"):
        await records.get("k", "a")
    await records.close()


async def test_rows_wait_until_the_file_can_be_written_again(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    folder.write_text("a file where the folder should be")
    records = SqliteRecords(folder / "anykit.db")
    records.append("calls", [{"n": 1}])
    with pytest.raises(RecordError):
        await records.flush()
    folder.unlink()
    assert [entry.row for entry in await records.tail("calls")] == [{"n": 1}]
    assert records.dropped == 0
    await records.close()


async def test_one_bad_write_leaves_its_neighbours_as_they_are(tmp_path: Path) -> None:
    records = SqliteRecords(tmp_path / "anykit.db")
    results = await asyncio.gather(
        records.put("k", "a", 1),
        records.delete("\ud800", "x"),
        records.put("k", "b", 2),
        return_exceptions=True,
    )
    assert results[0] is None
    assert isinstance(results[1], RecordError)
    assert results[2] is None
    assert len(await records.list("k")) == 2
    await records.close()


async def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    records = SqliteRecords(tmp_path / "anykit.db")
    await records.flush()
    await records.close()
    with sqlite3.connect(tmp_path / "anykit.db") as file:
        file.execute("PRAGMA user_version = 999")
    file.close()
    newer = SqliteRecords(tmp_path / "anykit.db")
    with pytest.raises(RecordError, match="newer version"):
        await newer.put("k", "a", 1)
    await newer.close()


async def test_two_processes_share_a_file(tmp_path: Path) -> None:
    mine = SqliteRecords(tmp_path / "anykit.db")
    await mine.put("k", "mine", 1)
    program = (
        "import asyncio, sys\n"
        "from anykit.stores import SqliteRecords\n"
        "async def main():\n"
        "    records = SqliteRecords(sys.argv[1])\n"
        "    print([r.key for r in await records.list('k')])\n"
        "    await records.put('k', 'theirs', 2)\n"
        "    await records.close()\n"
        "asyncio.run(main())\n"
    )
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", program, str(tmp_path / "anykit.db")], capture_output=True, timeout=8
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.decode().replace("'", '"')) == ["mine"]
    assert [record.key for record in await mine.list("k")] == ["mine", "theirs"]
    await mine.close()


async def test_a_log_in_a_file_keeps_its_newest_rows_only(tmp_path: Path) -> None:
    first = SqliteRecords(tmp_path / "anykit.db")
    first.append("calls", [{"n": number} for number in range(50)])
    await first.close()
    second = SqliteRecords(tmp_path / "anykit.db", keep_rows=10)
    await second.flush()  # house is kept when a file is opened
    second.append("calls", [{"n": 50}])
    assert [entry.row["n"] for entry in await second.tail("calls", 1000)] == list(range(40, 51))
    await second.close()


async def test_a_cancelled_caller_disturbs_nobody(tmp_path: Path) -> None:
    records = SqliteRecords(tmp_path / "anykit.db")
    task = asyncio.create_task(records.put("k", "a", 1))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await records.put("k", "b", 2)
    assert "b" in [record.key for record in await records.list("k")]
    await records.close()


def test_sqlite_is_not_loaded_before_a_file_is_opened() -> None:
    program = "import sys, anykit.stores; print('sqlite3' in sys.modules, 'cryptography' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=8, check=True)
    assert done.stdout.split() == [b"False", b"False"]
