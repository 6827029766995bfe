"""Secrets at rest: encrypted values in the records, with a key that lies elsewhere.

The key is `ANYKIT_SECRET_KEY` (one or several, separated by commas: the first encrypts, all decrypt), else the system's
keyring where that was asked for, else the file `secret.key` in the data folder, made on first use. A value is bound to
its scope and name: a stored one that was moved to another name is refused. No value is ever part of an error or a repr.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import stat
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .keyring import KeyringError, read_keyring, write_keyring
from .paths import private_folder
from .records import Record, RecordStore

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet  # 60 ms; imported when the first secret is touched

VARIABLE = "ANYKIT_SECRET_KEY"
KEY_FILE = "secret.key"
KIND = "secret"
"""The kind of the records that hold secrets."""

MASK = "**********"
"""What stands for a secret wherever one is shown."""


class SecretError(Exception):
    """A secret cannot be kept or read. The text shows no value and no key."""


class SecretKeyError(SecretError):
    """The key is missing, unreadable, not private, or not the one that the value was encrypted with."""


def is_mask(value: str) -> bool:
    """Whether a value is only what was shown in place of a secret, sent back."""
    return len(value) >= 6 and (set(value) == {"*"} or set(value) == {"\N{BULLET}"})


class SecretStore:
    """Encrypted values by scope and name, kept in `records` (kind `secret`, the scope as principal).

    `data_dir` holds the key file where the environment names no key. With `use_keyring` the key lies in the system's
    keyring instead of the file.
    """

    def __init__(
        self,
        records: RecordStore,
        *,
        data_dir: Path,
        env: Mapping[str, str] | None = None,
        use_keyring: bool = False,
    ) -> None:
        self._records = records
        self._data_dir = data_dir
        self._env = os.environ if env is None else env
        self._use_keyring = use_keyring
        self._fernet: MultiFernet | None = None
        self._loading = threading.Lock()

    async def put(self, scope: str, name: str, value: str) -> None:
        """Keep a value, replacing what had that name.

        Raises `SecretError` for a mask (asterisks shown in place of the value are not the value), `SecretKeyError`,
        `RecordError`, `ValueError` for an impossible name.
        """
        if is_mask(value):
            raise SecretError(
                f"{name!r} is the mask that stands for a secret, not the secret: send the value, or nothing"
            )
        fernet = await self._keys()
        token = _seal(fernet, scope, name, value)
        await self._records.put(KIND, name, token, principal=scope)

    async def get(self, scope: str, name: str) -> str | None:
        """The value, or None where there is none. Raises `SecretKeyError`, `RecordError`."""
        record = await self._records.get(KIND, name, principal=scope)
        return None if record is None else await self._decrypt(record)

    async def delete(self, scope: str, name: str) -> bool:
        """Forget a value; False where there was none. Needs no key. Raises `RecordError`."""
        return await self._records.delete(KIND, name, principal=scope)

    async def names(self, scope: str) -> Sequence[str]:
        """What is kept for a scope. Needs no key. Raises `RecordError`."""
        return [record.key for record in await self._all(scope)]

    async def rotate(self, *, new_key: bool = False) -> int:
        """Encrypt every value again with the first key, and say how many there are.

        With `new_key` a key is made first: the key file (or keyring entry) then holds it and the previous one, so that
        what another process writes meanwhile stays readable. Where the key is in the environment it is changed there.
        Raises `SecretKeyError` if a value cannot be read (those before it are done; it may be run again), `RecordError`.
        """
        await asyncio.to_thread(self._renew if new_key else self._reload)
        fernet = await self._keys()
        done = 0
        for listed in await self._all(None):
            # Read again: it may have been set anew since it was listed.
            record = await self._records.get(KIND, listed.key, principal=listed.principal)
            if record is not None:
                value = await self._decrypt(record)
                token = _seal(fernet, record.principal, record.key, value)
                await self._records.put(KIND, record.key, token, principal=record.principal)
                done += 1
        return done

    def derived_keys(self, purpose: str) -> list[bytes]:
        """Keys of 32 bytes for another use, one of each key in the key's order; the same in every process that has the key.

        Blocks: call it in a thread. Raises `SecretKeyError`.
        """
        from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415 - as with the keys
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415

        self._load()
        info = f"anykit {purpose}".encode()
        return [HKDF(SHA256(), length=32, salt=None, info=info).derive(key.encode()) for key in self._read_keys()]

    def __repr__(self) -> str:
        return f"<SecretStore in {self._data_dir}>"

    async def _all(self, scope: str | None) -> list[Record]:
        found: list[Record] = []
        while page := await self._records.list(KIND, principal=scope, after=found[-1] if found else None):
            found.extend(page)
        return found

    async def _keys(self) -> MultiFernet:
        return self._fernet or await asyncio.to_thread(self._load)

    async def _decrypt(self, record: Record) -> str:
        from cryptography.fernet import InvalidToken  # noqa: PLC0415 - loaded with the keys

        token = str(record.value).encode()
        try:
            text = (await self._keys()).decrypt(token)
        except InvalidToken:
            # Another process may have changed the key in the meantime.
            await asyncio.to_thread(self._reload)
            try:
                text = (await self._keys()).decrypt(token)
            except InvalidToken:
                raise SecretKeyError(
                    f"the secret {record.key!r} of {record.principal!r} was encrypted with another key than the one"
                    f" from {self._whence()}: give that key too (several are separated by commas), or set the secret again"
                ) from None
        scope, name, value = json.loads(text)
        if (scope, name) != (record.principal, record.key):
            raise SecretError(
                f"what is stored as {record.key!r} of {record.principal!r} was written under another name"
            )
        return value

    # Keys. All of these block and run in a thread.

    def _load(self) -> MultiFernet:
        from cryptography.fernet import Fernet, MultiFernet  # noqa: PLC0415 - 60 ms that most programs never need

        with self._loading:
            if self._fernet is None:
                fernets: list[Fernet] = []
                for number, key in enumerate(self._read_keys(), 1):
                    try:
                        fernets.append(Fernet(key))
                    except ValueError:
                        raise SecretKeyError(
                            f"key {number} from {self._whence()} is no key: it is 32 random bytes in URL-safe base64"
                            " (44 characters), as cryptography's Fernet.generate_key() makes them"
                        ) from None
                self._fernet = MultiFernet(fernets)
            return self._fernet

    def _reload(self) -> None:
        with self._loading:
            self._fernet = None

    def _whence(self) -> str:
        if self._env.get(VARIABLE):
            return VARIABLE
        return "the system keyring" if self._use_keyring else str(self._data_dir / KEY_FILE)

    def _read_keys(self) -> list[str]:
        if value := self._env.get(VARIABLE):
            keys = _split(value)
        elif self._use_keyring:
            keys = self._keyring_keys()
        else:
            keys = self._file_keys()
        if not keys:
            raise SecretKeyError(f"there is no key in {self._whence()}")
        return keys

    def _keyring_keys(self) -> list[str]:
        try:
            kept = read_keyring("anykit", KEY_FILE)
            if not kept:
                kept = _new_key()
                write_keyring("anykit", KEY_FILE, kept)
        except KeyringError as error:
            raise SecretKeyError(str(error)) from None
        return _split(kept)

    def _file_keys(self) -> list[str]:
        path = self._data_dir / KEY_FILE
        try:
            text = _read_private(path)
            if text is None:
                private_folder(self._data_dir)
                _write_private(path, _new_key() + "\n", replace=False)
                text = _read_private(path)
        except OSError as error:
            raise SecretKeyError(f"the key file {path} cannot be used: {error.strerror or error}") from None
        return _split(text or "")

    def _renew(self) -> None:
        if self._env.get(VARIABLE):
            raise SecretKeyError(
                f"the key is in {VARIABLE}: put a new one before it, separated by a comma, rotate, then take the old one out"
            )
        keys = [_new_key(), *self._read_keys()[:1]]
        try:
            if self._use_keyring:
                write_keyring("anykit", KEY_FILE, ",".join(keys))
            else:
                _write_private(self._data_dir / KEY_FILE, "\n".join(keys) + "\n", replace=True)
        except OSError as error:
            raise SecretKeyError(f"the key file cannot be written: {error.strerror or error}") from None
        except KeyringError as error:
            raise SecretKeyError(str(error)) from None
        self._reload()


def _seal(fernet: MultiFernet, scope: str, name: str, value: str) -> str:
    return fernet.encrypt(json.dumps([scope, name, value]).encode()).decode("ascii")


def _split(text: str) -> list[str]:
    return [key for key in text.replace(",", "\n").split() if key]


def _new_key() -> str:
    from cryptography.fernet import Fernet  # noqa: PLC0415 - loaded with the keys

    return Fernet.generate_key().decode("ascii")


def _read_private(path: Path) -> str | None:
    """The text of a file that only its owner can read; None where there is none. Raises `OSError`, `SecretKeyError`."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise SecretKeyError(f"the key file {path} is not a file")
        if status.st_mode & 0o077:
            raise SecretKeyError(
                f"the key file {path} can be read by others (mode {stat.S_IMODE(status.st_mode):04o}):"
                f" chmod 600 {path}, and change the key if others may have read it"
            )
        return file.read(65536).decode("ascii", errors="replace")


def _write_private(path: Path, text: str, *, replace: bool) -> None:
    """Write a 0600 file at once or not at all. Without `replace` a file that is there already wins."""
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            temporary.replace(path)
        else:
            with contextlib.suppress(FileExistsError):
                os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
