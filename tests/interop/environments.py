"""The environments that the peers live in: one each, made on first use, kept between runs in `.venvs/interop`.

`python tests/interop/environments.py` makes them all.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".venvs" / "interop"
TIMEOUT = 300.0
"""Seconds that a registry has."""

_NO_WAY = re.compile(
    r"NewConnectionError|ConnectTimeout|ReadTimeout|Max retries|Name or service not known|getaddrinfo|Connection refused"
    r"|Network is unreachable|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|network request to",
    re.IGNORECASE,
)


class Unreachable(Exception):
    """The registry cannot be reached, or a tool that is needed is not installed."""


@dataclass(frozen=True)
class Environment:
    """A peer's environment."""

    name: str
    packages: tuple[str, ...]
    node: bool = False

    @property
    def folder(self) -> Path:
        """Where it lies; another set of packages or another Python is another folder."""
        state = repr((self.packages, sys.version_info[:2] if not self.node else "node"))
        return KEPT / f"{self.name}-{hashlib.sha256(state.encode()).hexdigest()[:8]}"

    @property
    def python(self) -> str:
        """Its interpreter."""
        return str(self.folder / "bin" / "python")

    def make(self) -> Path:
        """Make it unless it is there. Raises `Unreachable`, or `RuntimeError` where the packages cannot be installed."""
        KEPT.mkdir(parents=True, exist_ok=True)
        made = self.folder / ".made"
        with alone(KEPT / f"{self.name}.lock"):
            if not made.exists():
                shutil.rmtree(self.folder, ignore_errors=True)
                if self.node:
                    self._make_node()
                else:
                    self._make_python()
                made.touch()
        return self.folder

    def _make_python(self) -> None:
        venv.create(self.folder, with_pip=True)
        install([self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *self.packages])

    def _make_node(self) -> None:
        npm = shutil.which("npm")
        if npm is None:
            raise Unreachable("npm is not installed")
        self.folder.mkdir(parents=True)
        (self.folder / "package.json").write_text('{"name": "interop", "version": "1.0.0", "private": true}\n')
        install([npm, "install", "--silent", "--no-audit", "--no-fund", *self.packages], self.folder)


SDK_0_3 = Environment("a2a-sdk-0.3", ("a2a-sdk[http-server]==0.3.26", "uvicorn>=0.34"))
FASTA2A = Environment("fasta2a", ("fasta2a==2.1.1", "uvicorn>=0.34"))
TOOLNEXUS = Environment("toolnexus", ("toolnexus==0.21.0",))
LINT = Environment("a2a-lint", ("a2a-lint==0.1.1",))
JS = Environment("a2a-js", ("@a2a-js/sdk@1.3.0", "express@5"), node=True)
MCP_1 = Environment("mcp-1", ("mcp==1.30.0",))
FASTMCP = Environment("fastmcp", ("fastmcp==4.2.3",))
MCP_JS = Environment("mcp-js", ("@modelcontextprotocol/sdk@1.32.2", "@modelcontextprotocol/client@2.4.0"), node=True)
INSPECTOR = Environment("mcp-inspector", ("@modelcontextprotocol/inspector@2.12.0",), node=True)
NPM_SERVERS = Environment(
    "mcp-servers-npm",
    tuple(
        f"@modelcontextprotocol/server-{one}@2026.8.31"
        for one in ("everything", "filesystem", "memory", "sequential-thinking")
    ),
    node=True,
)
PYPI_SERVERS = Environment(
    "mcp-servers-pypi", ("mcp-server-time==2026.10.19", "mcp-server-git==2026.10.19", "mcp-server-fetch==2026.10.24")
)
PROVIDERS = Environment("provider-sdks", ("openai==3.57.0", "anthropic==2.14.0", "google-genai==3.6.1"))
SKILLS_REF = Environment("skills-ref", ("skills-ref==0.1.1",))
ALL = (
    SDK_0_3,
    FASTA2A,
    TOOLNEXUS,
    LINT,
    JS,
    MCP_1,
    FASTMCP,
    MCP_JS,
    INSPECTOR,
    NPM_SERVERS,
    PYPI_SERVERS,
    PROVIDERS,
    SKILLS_REF,
)


@contextmanager
def alone(path: Path) -> Generator[None]:
    """One process at a time."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install(command: Sequence[str], folder: Path | None = None) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT, env=os.environ)
    except subprocess.TimeoutExpired:
        raise Unreachable(f"the registry did not answer within {TIMEOUT:g} s") from None
    if done.returncode == 0:
        return
    said = f"{done.stdout}\n{done.stderr}"
    last = said.strip().splitlines()[-1] if said.strip() else "nothing was said"
    if _NO_WAY.search(said):
        raise Unreachable(f"the registry cannot be reached: {last}")
    raise RuntimeError(f"cannot install {' '.join(command[-2:])}: {last}")


if __name__ == "__main__":
    for environment in ALL:
        print(f"{environment.name}: {environment.make()}")  # noqa: T201 - a command
