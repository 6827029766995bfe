"""What every test gets: asyncio as the loop, and an environment of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


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
