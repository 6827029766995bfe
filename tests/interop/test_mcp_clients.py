"""MCP clients that are not ours use our host, over HTTP and stdio: the SDKs for Python and TypeScript, FastMCP, the Inspector."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from interop.conftest import HERE, TOKEN, made
from interop.environments import FASTMCP, INSPECTOR, MCP_1, MCP_JS, ROOT, Environment

pytestmark = pytest.mark.timeout(400)  # the first run installs; later ones take seconds

SERVED = [sys.executable, "-m", "anykit", "serve", str(HERE.parent / "servers" / "mcp" / "process.py")]
LEGACY, MODERN = "2025-11-25", "2026-07-28"


@dataclass(frozen=True)
class Client:
    """A program that does everything once and prints what came."""

    name: str
    environment: Environment
    script: str
    arguments: tuple[str, ...]
    version: str

    def run(self, *target: str) -> dict[str, Any]:
        """What came."""
        folder = made(self.environment).folder
        program = "node" if self.environment.node else self.environment.python
        done = subprocess.run(
            [program, str(HERE / "clients" / self.script), *self.arguments, *target],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "MCP_JS": str(folder)},
        )
        assert done.returncode == 0, done.stderr[-2000:]
        found: dict[str, Any] = json.loads(done.stdout.strip().rpartition("\n")[2])
        return found


CLIENTS = [
    Client("python 1.30", MCP_1, "mcp_sdk_1.py", ("legacy",), LEGACY),
    Client("fastmcp 4.2 auto", FASTMCP, "mcp_fastmcp.py", ("auto",), MODERN),
    Client("fastmcp 4.2 legacy", FASTMCP, "mcp_fastmcp.py", ("legacy",), LEGACY),
    Client("typescript 1.32", MCP_JS, "mcp_js.mjs", ("1", "legacy"), LEGACY),
    Client("typescript 2.4 auto", MCP_JS, "mcp_js.mjs", ("2", "auto"), MODERN),
    Client("typescript 2.4 legacy", MCP_JS, "mcp_js.mjs", ("2", "legacy"), LEGACY),
]
CAME: dict[str, Any] = {
    "tools": ["add", "noisy", "echo", "order", "narrate", "wait", "read_stdin"],
    "add": ["5", {"result": 5}],
    "wrong": True,
    "unknown": -32602,
    "narrate": "done",
    "steps": [[1, 2]],
    "resource": "text",
    "order": "2 x tea",
    "asked": ["How many tea?"],
    "echo": "a\u2028b 😀",
}
CANNOT: dict[tuple[str, str], dict[str, Any]] = {
    ("typescript 1.32", "stdio"): {"version": None},  # it does not tell it
}


@pytest.fixture(scope="module")
def mcp_url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """Our host, with a token."""
    data = str(tmp_path_factory.mktemp("data"))
    command = [*SERVED, "--port", "0", "--token", TOKEN, "--data-dir", data]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    listening = next(line for line in iter(process.stderr.readline, "") if "listening on" in line)
    yield f"{listening.split()[-1]}/mcp"
    process.terminate()
    process.communicate(timeout=10)


@pytest.mark.parametrize("way", ["http", "stdio"])
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_client_of_others_finds_everything(
    client: Client, way: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    target = (
        (request.getfixturevalue("mcp_url"), TOKEN)
        if way == "http"
        else ("-", "-", *SERVED, "--stdio", "mcp", "--data-dir", str(tmp_path))
    )
    assert client.run(*target) == {"version": client.version, **CAME, **CANNOT.get((client.name, way), {})}


def inspect(*arguments: str) -> tuple[int, Any]:
    """Run the Inspector's command; its exit code, and what it printed."""
    node = ROOT / ".venvs" / "conformance" / "bin" / "node"
    if not node.exists():
        pytest.skip("INTEROP NOT PROVED: the Inspector needs a newer Node, which `make conformance-setup` brings")
    program = made(INSPECTOR).folder / "node_modules" / ".bin" / "mcp-inspector"
    done = subprocess.run(
        [str(node), str(program), "--cli", *arguments], capture_output=True, text=True, timeout=60, env=os.environ
    )
    printed: Any = json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout + done.stderr
    return done.returncode, printed


@pytest.mark.parametrize("era", ["auto", "legacy", "modern"])
def test_the_inspector_finds_everything(era: str, mcp_url: str) -> None:
    there = (mcp_url, "--transport", "http", "--protocol-era", era)
    known = (*there, "--header", f"Authorization: Bearer {TOKEN}")
    code, listed = inspect(*known, "--method", "tools/list")
    assert (code, [tool["name"] for tool in listed["tools"]]) == (0, CAME["tools"])
    add = ("--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=2", "--tool-arg")
    code, called = inspect(*known, *add, "b=3")
    assert (code, called["structuredContent"]) == (0, {"result": 5})
    code, read = inspect(*known, "--method", "resources/read", "--uri", "test://text")
    assert (code, read["contents"][0]["text"]) == (0, "text")
    assert inspect(*known, *add, "b=three")[0] == 5  # an error of the tool
    assert inspect(*there, "--method", "tools/list")[0] == 3  # it wants a token


def test_the_inspector_starts_it_as_a_child(tmp_path: Path) -> None:
    child = (*SERVED, "--stdio", "mcp", "--data-dir", str(tmp_path))
    code, read = inspect(*child, "--method", "resources/read", "--uri", "test://text")
    assert (code, read["contents"][0]["text"]) == (0, "text")
