"""`anykit serve` while its file changes: in a process of its own, with a client that stays connected."""

from __future__ import annotations

import json
import queue
import signal
import threading
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.hosts import Host, listening
from cli.running import anykit, trusted

pytestmark = pytest.mark.timeout(40)

TOOL = 'from anykit import tool\n\n@tool\ndef {name}() -> str:\n    """Says it."""\n    return "{word}"\n'


class Said:
    """What a host says on stderr from now on."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._lines: queue.Queue[str] = queue.Queue()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.host.process.stderr is not None
        for line in self.host.process.stderr:
            self._lines.put(line.rstrip("\n"))

    def next(self) -> str:
        return self._lines.get(timeout=8)


class Client:
    """An MCP client that stays connected, on the streamable HTTP transport."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/mcp"
        self._headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
        self.ask("initialize", hello)
        self._headers["mcp-protocol-version"] = "2025-11-25"

    def ask(self, method: str, params: object) -> dict[str, Any]:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        request = urllib.request.Request(self._url, body, self._headers)
        with urllib.request.urlopen(request, timeout=20) as answer:
            session = answer.headers.get("mcp-session-id")
            if session:
                self._headers["mcp-session-id"] = session
            text = answer.read().decode()
        data = next((line[5:] for line in text.splitlines() if line.startswith("data:") and "jsonrpc" in line), text)
        return json.loads(data)["result"]

    def tools(self) -> list[str]:
        listed: list[dict[str, Any]] = self.ask("tools/list", {})["tools"]
        return [str(one["name"]) for one in listed]

    def call(self, name: str) -> str:
        result = self.ask("tools/call", {"name": name, "arguments": {}})
        content: list[dict[str, Any]] = result["content"]
        return str(content[0]["text"])


@contextmanager
def serving(folder: Path, *argv: str) -> Generator[tuple[Said, Client]]:
    with listening(folder, *argv) as host:
        yield Said(host), Client(host.url)


@pytest.fixture
def place(folder: Path) -> Path:
    for name in ("one", "two"):
        (folder / f"{name}.py").write_text(TOOL.format(name=name, word=f"{name} 1"))
    (folder / "anykit.toml").write_text('sources = ["one.py"]\n')
    return folder


def test_a_named_file_is_followed_and_a_bad_change_refused(place: Path) -> None:
    file = place / "anykit.toml"
    with serving(place, "--config", "anykit.toml") as (said, client):
        assert client.call("one") == "one 1"
        file.write_text('sources = ["one.py", "two.py"]\n')
        assert said.next() == "reloaded anykit.toml: added two"
        assert client.call("two") == "two 1"
        for text, why in (
            ("sources = [", "anykit.toml"),
            ('sorces = ["two.py"]\n', "did you mean sources"),
            ('sources = [{url = "http://h.example", token = "${NO_SUCH}"}]\n', "NO_SUCH is not set"),
        ):
            file.write_text(text)
            line = said.next()
            assert line.startswith("warning: anykit.toml is not applied, the one before serves on: ")
            assert why in line
            assert (client.call("one"), client.call("two")) == ("one 1", "two 1")
        fresh = place / "fresh"
        fresh.write_text('sources = ["two.py"]\n[serve]\nport = 9\n')
        fresh.replace(file)
        assert said.next() == "reloaded anykit.toml: removed one; [serve] takes a restart"
        assert client.tools() == ["two"]
        assert client.call("two") == "two 1"


def test_what_a_found_file_starts_is_asked_again_before_it_is_applied(place: Path) -> None:
    with serving(place) as (said, client):
        (place / "loud.py").write_text(f"open('ran', 'w')\n{TOOL.format(name='loud', word='!')}")
        (place / "anykit.toml").write_text('sources = ["one.py", "loud.py"]\n')
        line = said.next()
        assert "not applied" in line
        assert "source loud.py: imports it" in line
        assert "anykit trust anykit.toml" in line
        assert not (place / "ran").exists()
        assert client.call("one") == "one 1"
        trusted(place)
        assert said.next() == "reloaded anykit.toml: added loud"
        assert client.call("loud") == "!"
        assert anykit("disable", "loud", trusting=False).code == 0
        assert said.next() == "reloaded anykit.toml: changed loud"
        assert anykit("add", "two.py", trusting=False).code == 0
        assert said.next() == "reloaded anykit.toml: added two"


def test_a_hang_up_reads_it_again(place: Path) -> None:
    with serving(place, "--config", "anykit.toml") as (said, client):
        (place / "anykit.toml").write_text('sources = ["one.py", "late.py"]\n')
        assert [said.next(), said.next()][1].startswith("warning: reloaded anykit.toml: added late; late: ")
        (place / "late.py").write_text(TOOL.format(name="late", word="late 1"))
        said.host.process.send_signal(signal.SIGHUP)
        assert "reloaded anykit.toml: changed late" in (said.next(), said.next())
        assert client.call("late") == "late 1"
        assert said.host.process.poll() is None


def test_edits_of_python_sources_are_followed_where_that_is_wanted(place: Path) -> None:
    with serving(place, "--reload", "one.py", "two.py") as (said, client):
        assert client.call("one") == "one 1"
        (place / "one.py").write_text(TOOL.format(name="one", word="one 2"))
        assert said.next() == "reloaded source one"
        assert client.call("one") == "one 2"
        (place / "one.py").write_text("\ndef (:\n")
        assert said.next() == (
            "warning: source one is not reloaded, what it was serves on: one.py:2: SyntaxError: invalid syntax"
        )
        assert (client.call("one"), client.call("two")) == ("one 2", "two 1")
        (place / "one.py").write_text(TOOL.format(name="one", word="one 3"))
        assert said.next() == "reloaded source one"
        assert client.call("one") == "one 3"


def test_without_reload_python_sources_stay_as_they_were(place: Path) -> None:
    with serving(place, "--config", "anykit.toml") as (said, client):
        (place / "one.py").write_text(TOOL.format(name="one", word="one 2"))
        (place / "anykit.toml").write_text('sources = ["one.py", "two.py"]\n')
        assert said.next() == "reloaded anykit.toml: added two"
        assert client.call("one") == "one 1"
