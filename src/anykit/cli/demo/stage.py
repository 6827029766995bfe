"""What the steps of the demonstration act on: a host in a process of its own, and agents that connect to it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from anykit.sources.a2e import A2EClient
from anykit.transports import Command

START_SECONDS = 20.0
"""What a host may take to start on a busy machine."""
STOP_SECONDS = 5.0
COMMAND_SECONDS = 20.0
"""What one command may take."""
OUTSIDE = "outside.txt"
SECRET = "nothing in the root leads here"

CONFIG = """\
sources = ["anykit:filesystem", "anykit.cli.demo.sample"]
data_dir = "data"
"""

FILES = {
    "notes/shopping.md": "# Shopping\n\n- tea\n- sugar\n- bread\n",
    "notes/travel.md": "# Travel\n\n- passport\n- tea for the train\n",
    "readme.txt": "A few notes.\n",
}
"""What lies in the root, by path."""


class StepFailed(Exception):
    """Something is not as it has to be; the text says what."""


def require(holds: bool, otherwise: str) -> None:
    """Raises `StepFailed` where it does not hold."""
    if not holds:
        raise StepFailed(otherwise)


@dataclass(frozen=True, slots=True)
class Stage:
    """One host and the agent that acts on it."""

    transport: str
    title: str
    folder: Path
    """Where the host was started; the root and what lies outside of it are in there."""
    agent: A2EClient
    another_agent: Callable[[], A2EClient]
    """A second agent: on the same host where that serves several, else on one started beside it."""

    @property
    def root(self) -> Path:
        """What the toolkit is configured with."""
        return self.folder / "root"


def furnish(folder: Path) -> Path:
    """Put the files there: a root, a file beside it, and a link that leads out. Gives the folder's real path."""
    folder = folder.resolve()
    for name, text in FILES.items():
        path = folder / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / OUTSIDE).write_text(SECRET)
    (folder / "root" / "way-out.txt").symlink_to(folder / OUTSIDE)
    (folder / "anykit.toml").write_text(CONFIG)
    return folder


def argv_of_host(folder: Path, *more: str) -> list[str]:
    """The command line that starts a host in `folder`."""
    return [sys.executable, "-m", "anykit", "serve", "--config", str(folder / "anykit.toml"), *more]


def own_environment() -> dict[str, str]:
    """This process's environment, without what would change how anykit acts."""
    return {key: value for key, value in os.environ.items() if not key.startswith("ANYKIT_")}


def _path() -> dict[str, str]:
    """Lets the child find the package where this process found it."""
    return {"PYTHONPATH": os.environ["PYTHONPATH"]} if os.environ.get("PYTHONPATH") else {}


@asynccontextmanager
async def over_stdio(folder: Path) -> AsyncGenerator[Stage]:
    """A host that speaks on its stdin and stdout; each agent starts its own."""
    command = Command(tuple(argv_of_host(folder, "--stdio", "a2e")), env=_path(), cwd=folder)

    def agent() -> A2EClient:
        return A2EClient(command, connect_timeout=START_SECONDS)

    async with agent() as first:
        yield Stage("stdio", "anykit serve --stdio a2e", folder, first, agent)


@asynccontextmanager
async def over_http(folder: Path) -> AsyncGenerator[Stage]:
    """A host that listens on a free port of this machine."""
    async with listening(argv_of_host(folder, "--port", "0"), folder) as url:

        def agent() -> A2EClient:
            return A2EClient(url, connect_timeout=START_SECONDS)

        async with agent() as first:
            yield Stage("http", f"anykit serve, {url}", folder, first, agent)


@asynccontextmanager
async def listening(argv: Sequence[str], folder: Path) -> AsyncGenerator[str]:
    """A program that says on its stderr where it listens: its URL, until the block ends."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
        env=own_environment(),
    )
    said = process.stderr
    draining: asyncio.Task[bytes] | None = None
    try:
        if said is None:
            raise StepFailed("the host has no stderr")
        url = await _url_said(said)
        draining = asyncio.create_task(said.read())
        yield url
    finally:
        if process.returncode is None:
            process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        if draining is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await draining


async def command(folder: Path, config: str, *argv: str, code: int = 0) -> str:
    """What an anykit command in a process of its own prints. Raises `StepFailed` where it ends with another code."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "anykit", *argv, "--config", str(folder / config)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
        env=own_environment(),
    )
    try:
        async with asyncio.timeout(COMMAND_SECONDS):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    require(process.returncode == code, f"anykit {argv[0]} ended with {process.returncode}: {err.decode()[-300:]}")
    return out.decode().strip()


async def _url_said(said: asyncio.StreamReader) -> str:
    """The URL that the host says it listens on. Raises `StepFailed`."""
    heard = ""
    try:
        async with asyncio.timeout(START_SECONDS):
            while line := (await said.readline()).decode(errors="replace"):
                heard += line
                if found := re.search(r"listening on (http://\S+)", line):
                    return found[1]
    except TimeoutError:
        raise StepFailed(f"the host did not listen within {START_SECONDS:g} s: {heard[-500:]}") from None
    raise StepFailed(f"the host ended before it listened: {heard[-500:]}")
