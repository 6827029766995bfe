"""The system's keyring, an optional extra that is asked only where somebody wants it. Its calls block."""

from __future__ import annotations

import importlib
from typing import Protocol, cast


class KeyringError(Exception):
    """The keyring is not installed, or does not answer. The text shows no value."""


class _Keyring(Protocol):
    """What we use of the `keyring` package."""

    def get_password(self, service_name: str, username: str) -> str | None: ...

    def set_password(self, service_name: str, username: str, password: str) -> None: ...


def _keyring() -> _Keyring:
    try:
        return cast(_Keyring, importlib.import_module("keyring"))
    except ImportError:
        raise KeyringError("the system keyring needs an extra: pip install 'anykit[keyring]'") from None


def read_keyring(service: str, name: str) -> str | None:
    """An entry, or None where there is none. Raises `KeyringError`."""
    try:
        return _keyring().get_password(service, name)
    except KeyringError:
        raise
    except Exception as error:  # each backend raises its own kinds; only their names are safe to show
        raise KeyringError(f"the system keyring does not answer ({type(error).__name__})") from None


def write_keyring(service: str, name: str, value: str) -> None:
    """Set an entry. Raises `KeyringError`."""
    try:
        _keyring().set_password(service, name, value)
    except KeyringError:
        raise
    except Exception as error:
        raise KeyringError(f"the system keyring does not take an entry ({type(error).__name__})") from None
