"""Secrets at rest: encrypted, bound to their names, with keys that are private."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from anykit.stores import MASK, MemoryRecords, SecretError, SecretKeyError, SecretStore, SqliteRecords

pytestmark = pytest.mark.anyio

FAKE_KEYRING = """
import json, pathlib
FILE = pathlib.Path(__file__).with_name("entries.json")
def _all():
    return json.loads(FILE.read_text()) if FILE.exists() else {}
def get_password(service, name):
    return _all().get(f"{service}/{name}")
def set_password(service, name, value):
    FILE.write_text(json.dumps({**_all(), f"{service}/{name}": value}))
"""


@pytest.fixture
async def records() -> AsyncIterator[MemoryRecords]:
    records = MemoryRecords()
    yield records
    await records.close()


def key() -> str:
    return Fernet.generate_key().decode()


async def test_a_secret_comes_back_and_lies_encrypted(tmp_path: Path) -> None:
    records = SqliteRecords(tmp_path / "anykit.db")
    store = SecretStore(records, data_dir=tmp_path)
    await store.put("host", "web/token", "hunter2-hunter2")
    assert await store.get("host", "web/token") == "hunter2-hunter2"
    await records.close()
    assert b"hunter2" not in everything_in(tmp_path)


def everything_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


@pytest.mark.parametrize("value", ["", " ", "\ud800", "\x00", "é" * 10_000, "***", "${VAR}"])
async def test_any_text_is_a_secret(records: MemoryRecords, tmp_path: Path, value: str) -> None:
    store = SecretStore(records, data_dir=tmp_path)
    await store.put("host", "n", value)
    assert await store.get("host", "n") == value


async def test_scopes_never_meet(records: MemoryRecords, tmp_path: Path) -> None:
    store = SecretStore(records, data_dir=tmp_path)
    await store.put("alice", "token", "a")
    await store.put("bob", "token", "b")
    assert (await store.get("alice", "token"), await store.get("bob", "token")) == ("a", "b")
    assert await store.get("carol", "token") is None
    assert await store.names("alice") == ["token"]
    assert await store.delete("alice", "token")
    assert not await store.delete("alice", "token")
    assert await store.get("bob", "token") == "b"


async def test_b058_the_mask_is_never_kept_as_the_secret(records: MemoryRecords, tmp_path: Path) -> None:
    """pydantic/pydantic-core#851: a masked secret is saved and later used as if it were the secret."""
    store = SecretStore(records, data_dir=tmp_path)
    await store.put("s1", "api_key", "k1")
    for mask in (MASK, "*" * 6, "*" * 40, "\N{BULLET}" * 8):
        with pytest.raises(SecretError, match="mask"):
            await store.put("s1", "api_key", mask)
    assert await store.get("s1", "api_key") == "k1"


async def test_the_key_file_is_made_once_and_private(records: MemoryRecords, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    stores = [SecretStore(records, data_dir=folder) for _ in range(8)]
    await asyncio.gather(*(store.put("host", str(number), "x") for number, store in enumerate(stores)))
    assert os.listdir(folder) == ["secret.key"]
    assert stat.S_IMODE((folder / "secret.key").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for number in range(8):  # all of them agreed on one key
        assert await stores[0].get("host", str(number)) == "x"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o610])
async def test_a_key_file_that_others_can_read_is_refused(records: MemoryRecords, tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secret.key"
    path.write_text(secret := key())
    path.chmod(mode)
    with pytest.raises(SecretKeyError, match="chmod 600") as refused:
        await SecretStore(records, data_dir=tmp_path).put("host", "n", "x")
    assert secret not in str(refused.value)


async def test_a_key_file_that_is_no_file_does_not_hang(records: MemoryRecords, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "secret.key", 0o600)
    with pytest.raises(SecretKeyError, match="not a file"):
        await SecretStore(records, data_dir=tmp_path).put("host", "n", "x")


async def test_the_variable_comes_before_the_file(records: MemoryRecords, tmp_path: Path) -> None:
    store = SecretStore(records, data_dir=tmp_path / "data", env={"ANYKIT_SECRET_KEY": key()})
    await store.put("host", "n", "x")
    assert await store.get("host", "n") == "x"
    assert not (tmp_path / "data").exists()


async def test_the_first_key_encrypts_and_all_decrypt(records: MemoryRecords, tmp_path: Path) -> None:
    old, new = key(), key()
    await SecretStore(records, data_dir=tmp_path, env={"ANYKIT_SECRET_KEY": old}).put("host", "a", "1")
    both = SecretStore(records, data_dir=tmp_path, env={"ANYKIT_SECRET_KEY": f" {new} , {old}"})
    await both.put("host", "b", "2")
    assert await both.get("host", "a") == "1"
    alone = SecretStore(records, data_dir=tmp_path, env={"ANYKIT_SECRET_KEY": new})
    assert await alone.get("host", "b") == "2"
    with pytest.raises(SecretKeyError):
        await alone.get("host", "a")
    assert await both.rotate() == 2
    assert await alone.get("host", "a") == "1"


async def test_rotation_reaches_every_scope_beyond_a_page(records: MemoryRecords, tmp_path: Path) -> None:
    old, new = key(), key()
    before = SecretStore(records, data_dir=tmp_path, env={"ANYKIT_SECRET_KEY": old})
    for number in range(1100):
        await before.put(f"s{number}", "token", str(number))
    assert await SecretStore(records, data_dir=tmp_path, env={"ANYKIT_SECRET_KEY": f"{new},{old}"}).rotate() == 1100
    after = SecretStore(records, data_dir=tmp_path, env={"ANYKIT_SECRET_KEY": new})
    assert await after.get("s0", "token") == "0"
    assert await after.get("s1099", "token") == "1099"


async def test_a_new_key_file_is_followed_by_a_process_that_still_runs(records: MemoryRecords, tmp_path: Path) -> None:
    running, rotating = SecretStore(records, data_dir=tmp_path), SecretStore(records, data_dir=tmp_path)
    await running.put("host", "a", "1")
    first = (tmp_path / "secret.key").read_text()
    assert await rotating.rotate(new_key=True) == 1
    assert (tmp_path / "secret.key").read_text().split()[1] == first.strip()
    assert stat.S_IMODE((tmp_path / "secret.key").stat().st_mode) == 0o600
    assert await running.get("host", "a") == "1"
    assert os.listdir(tmp_path) == ["secret.key"]


async def test_a_key_in_the_environment_is_changed_there(records: MemoryRecords, tmp_path: Path) -> None:
    store = SecretStore(records, data_dir=tmp_path, env={"ANYKIT_SECRET_KEY": key()})
    with pytest.raises(SecretKeyError, match="ANYKIT_SECRET_KEY"):
        await store.rotate(new_key=True)


async def test_a_wrong_key_is_told_without_showing_anything(records: MemoryRecords, tmp_path: Path) -> None:
    wrong = key()
    await SecretStore(records, data_dir=tmp_path, env={"ANYKIT_SECRET_KEY": key()}).put("host", "token", "hunter2")
    record = await records.get("secret", "token")
    assert record is not None
    store = SecretStore(records, data_dir=tmp_path, env={"ANYKIT_SECRET_KEY": wrong})
    with pytest.raises(SecretKeyError, match="'token' of 'host' was encrypted with another key") as refused:
        await store.get("host", "token")
    said = str(refused.value) + repr(store)
    assert not any(part in said for part in ("hunter2", wrong, record.value))
    assert refused.value.__suppress_context__


@pytest.mark.parametrize("bad", ["passphrase", "x" * 44, ",", "é"])
async def test_a_key_that_is_none_is_told_without_showing_it(records: MemoryRecords, tmp_path: Path, bad: str) -> None:
    store = SecretStore(records, data_dir=tmp_path, env={"ANYKIT_SECRET_KEY": bad})
    with pytest.raises(SecretKeyError, match="key") as refused:
        await store.put("host", "n", "x")
    assert "ANYKIT_SECRET_KEY" in str(refused.value)
    if len(bad) > 1:
        assert bad not in str(refused.value)


async def test_a_value_moved_to_another_name_is_refused(records: MemoryRecords, tmp_path: Path) -> None:
    store = SecretStore(records, data_dir=tmp_path)
    await store.put("alice", "token", "hunter2")
    stolen = await records.get("secret", "token")
    assert stolen is not None
    await records.put("secret", "token", stolen.value, principal="mallory")
    with pytest.raises(SecretError, match="another name") as refused:
        await store.get("mallory", "token")
    assert "hunter2" not in str(refused.value)


async def test_the_keyring_is_used_only_where_asked_for(
    records: MemoryRecords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "keyring.py").write_text(FAKE_KEYRING)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "lib"), *sys.path])
    monkeypatch.delitem(sys.modules, "keyring", raising=False)
    await SecretStore(records, data_dir=tmp_path / "data").put("host", "a", "1")
    assert not (tmp_path / "lib" / "entries.json").exists()
    store = SecretStore(records, data_dir=tmp_path / "unused", use_keyring=True)
    await store.put("host", "b", "2")
    assert await SecretStore(records, data_dir=tmp_path / "unused", use_keyring=True).get("host", "b") == "2"
    assert not (tmp_path / "unused").exists()
    monkeypatch.delitem(sys.modules, "keyring")


async def test_a_keyring_that_is_not_there_is_told(
    records: MemoryRecords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "keyring.py").write_text("raise ImportError('no module named keyring')")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "keyring", raising=False)
    with pytest.raises(SecretKeyError, match=r"anykit\[keyring\]"):
        await SecretStore(records, data_dir=tmp_path, use_keyring=True).put("host", "a", "1")


async def test_keys_for_other_uses_are_the_same_in_every_process_and_follow_a_rotation(
    records: MemoryRecords, tmp_path: Path
) -> None:
    store = SecretStore(records, data_dir=tmp_path)
    [mine] = store.derived_keys("states")
    assert len(mine) == 32
    assert SecretStore(records, data_dir=tmp_path).derived_keys("states") == [mine]
    assert store.derived_keys("other") != [mine]
    assert mine not in (tmp_path / "secret.key").read_bytes()
    await store.rotate(new_key=True)
    assert store.derived_keys("states")[1:] == [mine]
