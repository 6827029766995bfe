"""Hosts in processes of their own."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cli.running import trusted


def command(*argv: str) -> list[str]:
    return [sys.executable, "-m", "anykit", *argv]


@dataclass
class Host:
    """A host that listens."""

    process: subprocess.Popen[str]
    url: str
    said: list[str] = field(default_factory=list[str])
    """What it said on stderr up to the last of its URLs."""

    def end(self, signal: int) -> tuple[int, str]:
        """Signal it; gives the exit code and what more it said."""
        self.process.send_signal(signal)
        _, rest = self.process.communicate(timeout=8)
        return self.process.returncode, rest


@contextlib.contextmanager
def listening(folder: Path, *argv: str, env: dict[str, str] | None = None) -> Generator[Host]:
    """`anykit serve ARGV --port 0`, once it listens; the file of the folder is trusted."""
    trusted(folder, {**os.environ, **(env or {})})
    process = subprocess.Popen(
        command("serve", "--port", "0", *argv),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
    )
    host = Host(process, "")
    try:
        assert process.stderr is not None
        while not host.url or not host.said[-1].endswith("/mcp"):  # the last of the lines
            line = process.stderr.readline()
            assert line, f"the host ended: {host.said}"
            host.said.append(line.rstrip("\n"))
            if found := re.fullmatch(r"anykit: listening on (https?://\S+)\n", line):
                host.url = found[1]
        yield host
    finally:
        process.kill()
        process.communicate(timeout=5)


def ended(argv: Sequence[str], folder: Path, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    """A command that ends by itself: exit code, stdout, stderr; the file of the folder is trusted."""
    trusted(folder, {**os.environ, **(env or {})})
    done = subprocess.run(
        command(*argv),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=9,
        env={**os.environ, **(env or {})},
    )
    return done.returncode, done.stdout, done.stderr
