"""`anykit serve --stdio mcp` as a process: stdout is the protocol's alone, and it ends when its client does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pytest

from servers.mcp.peers import MODERN, Fields, call, envelope, initialize, notification, request
from servers.mcp.process import FILE

pytestmark = pytest.mark.timeout(30)


class Child:
    """A client that starts its server."""

    def __init__(self, tmp_path: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "anykit", "serve", FILE, "--stdio", "mcp"],
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "ANYKIT_TOKEN": "not-asked-for"},
        )
        self.heard: list[Fields] = []

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.kill()
        self.process.communicate(timeout=5)

    def say(self, message: Any) -> None:
        stream: IO[bytes] | None = self.process.stdin
        assert stream is not None
        stream.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        stream.flush()

    def answer(self, id: Any) -> Fields:
        """Reads lines, each of which is a message, until the answer comes."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            message: Fields = json.loads(line)
            self.heard.append(message)
            if "method" not in message and message["id"] == id:
                return message
        raise AssertionError(f"the server ended: {self.process.stderr and self.process.stderr.read().decode()}")

    def shake_hands(self) -> None:
        self.say(initialize(0))
        assert self.answer(0)["result"]["serverInfo"]["name"] == "anykit"
        self.say(notification("notifications/initialized"))

    def wait_in_a_tool(self, marker: Path) -> None:
        """Returns once a call waits."""
        self.say(call("waiting", "wait", {"marker": str(marker)}, _meta={"progressToken": 1}))
        assert self.process.stdout is not None
        assert json.loads(self.process.stdout.readline())["method"] == "notifications/progress"

    def leave(self) -> tuple[int, str]:
        out, err = self.process.communicate(timeout=8)
        for line in out.splitlines():
            self.heard.append(json.loads(line))
        return self.process.returncode, err.decode()


def test_b030_stdout_carries_the_protocol_only_whatever_is_printed(tmp_path: Path) -> None:
    """espressif/esp-idf#19087: a print() in a tool corrupted the stream."""
    with Child(tmp_path) as child:
        child.shake_hands()
        child.say(call(1, "noisy"))
        assert child.answer(1)["result"]["content"][0]["text"] == "said"
        child.say(call(2, "read_stdin"))
        assert child.answer(2)["result"]["content"][0]["text"] == ""
        child.say(request(3, "ping"))
        assert child.answer(3)["result"] == {}
        code, err = child.leave()
    assert code == 0
    for text in ("while importing", "from print", "without a line end", "from the descriptor", "from a child"):
        assert text in err
    assert "Traceback" not in err


def test_both_eras_and_bad_lines_on_one_stdin(tmp_path: Path) -> None:
    with Child(tmp_path) as child:
        child.say(call(1, "add", {"a": 1, "b": 2}, _meta=envelope()))
        assert child.answer(1)["result"]["structuredContent"] == {"result": 3}
        child.say(b"\xff\xfe\n{\n\n[]\nnoise\n")
        child.say(request(2, "server/discover", _meta=envelope()))
        assert MODERN in child.answer(2)["result"]["supportedVersions"]
        code, _ = child.leave()
    assert code == 0
    assert [one["error"]["code"] for one in child.heard if "error" in one] == [-32700, -32700, -32600, -32700]


def test_b031_it_ends_when_its_client_is_gone_and_its_calls_with_it(tmp_path: Path) -> None:
    """hangwin/mcp-chrome#300: the process stayed when its parent had died."""
    with Child(tmp_path) as child:
        child.shake_hands()
        child.wait_in_a_tool(tmp_path / "marker")
        code, err = child.leave()
    assert code == 0
    assert "Traceback" not in err
    assert (tmp_path / "marker").read_text() == "cancelled"


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_b031_a_signal_ends_it_while_a_tool_runs(tmp_path: Path, number: signal.Signals, expected: int) -> None:
    """hangwin/mcp-chrome#300, the same by a signal."""
    with Child(tmp_path) as child:
        child.shake_hands()
        child.wait_in_a_tool(tmp_path / "marker")
        child.process.send_signal(number)
        assert child.process.wait(8) == expected
        assert child.process.stderr is not None
        assert b"Traceback" not in child.process.stderr.read()
    assert (tmp_path / "marker").exists()


def test_a_client_that_stops_reading_does_not_keep_it(tmp_path: Path) -> None:
    with Child(tmp_path) as child:
        child.shake_hands()
        for id in range(1, 20):
            child.say(call(id, "echo", {"value": "x" * 200_000}))
        child.process.send_signal(signal.SIGTERM)
        assert child.process.wait(10) == 0
