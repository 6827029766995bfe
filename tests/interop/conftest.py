"""Our own host in a process of its own, and the peers' environments."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from interop.environments import Environment, Unreachable

TOKEN = "interop-token"
HERE = Path(__file__).parent


def made(environment: Environment) -> Environment:
    """An environment, made; the test is skipped where its registry cannot be reached."""
    try:
        environment.make()
    except Unreachable as error:
        pytest.skip(f"INTEROP NOT PROVED: {environment.name} is missing, {error}")
    return environment


def started(command: list[str]) -> tuple[subprocess.Popen[str], str]:
    """A server's process and the URL that it prints first; it ends when its input does."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HERE.parent)
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    assert url.startswith("http"), f"{command} did not start"
    return process, url


def ended(process: subprocess.Popen[str]) -> None:
    """End a server."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(5)
    if process.stdout is not None:
        process.stdout.close()


@pytest.fixture(scope="session")
def our_url() -> Generator[str]:
    """Our host, with a token."""
    process, url = started([sys.executable, str(HERE / "host.py"), TOKEN])
    yield url
    ended(process)


@pytest.fixture(scope="session")
def open_url() -> Generator[str]:
    """Our host, without one."""
    process, url = started([sys.executable, str(HERE / "host.py")])
    yield url
    ended(process)
