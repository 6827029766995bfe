"""What every test gets: asyncio as the loop, and an environment of its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

_TIMER: pytest.StashKey[Any] = pytest.StashKey()


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> None:
    """Remember how a test is bounded."""
    item.stash[_TIMER] = settings


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Bound a second try as the first: pytest-timeout arms its timer once for all of them, and it may have run out."""
    if getattr(item, "execution_count", 1) > 1 and _TIMER in item.stash:
        item.ihook.pytest_timeout_set_timer(item=item, settings=item.stash[_TIMER])


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No variable of the person who runs the tests reaches them; data goes to a folder of the test."""
    for name in list(os.environ):
        if name.startswith("ANYKIT_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("ANYKIT_DATA_DIR", str(tmp_path / "anykit-data"))
