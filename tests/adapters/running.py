"""Runs a framework's program in the frameworks' environment, once, and hands out what came of each scenario."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from adapters.environment import FRAMEWORKS
from interop.environments import Unreachable

HERE = Path(__file__).parent / "programs"


@functools.cache
def ran(program: str) -> dict[str, Any]:
    """Its results by scenario; the test is skipped where the frameworks cannot be had."""
    try:
        FRAMEWORKS.make()
    except Unreachable as error:
        pytest.skip(f"FRAMEWORKS NOT PROVED: {error}")
    hushed = {"OPENAI_AGENTS_DISABLE_TRACING": "1", "LANGSMITH_TRACING": "false", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [FRAMEWORKS.python, "-W", "error", str(HERE / program)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **hushed},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert [name for name, one in found.items() if "broke" in one] == [], done.stderr[-3000:]
    return found
