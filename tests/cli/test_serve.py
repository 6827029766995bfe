"""`serve`, in a process of its own, since its streams and signals are what is looked at."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, Any

import pytest

from cli.hosts import command, ended, listening
from cli.running import trusted

pytestmark = pytest.mark.timeout(30)


def get(url: str, **headers: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=5) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, None


def test_it_says_where_it_listens_and_what_it_answers(folder: Path) -> None:
    with listening(folder, "tools.py") as host:
        assert host.said == [
            f"anykit: listening on {host.url}",
            f"  A2E   {host.url}",
            f"  A2E   {host.url}/a2e",
            f"  A2A   {host.url}/.well-known/agent-card.json",
            f"  A2A   {host.url}/a2a",
            f"  MCP   {host.url}/mcp",
        ]
        assert host.url.startswith("http://127.0.0.1:")
        assert get(f"{host.url}/health") == (200, {"status": "ok"})
        assert get(f"{host.url}/a2e/health") == (200, {"status": "ok"})
        assert get(f"{host.url}/health", Host="evil.example") == (421, None)
        code, rest = host.end(signal.SIGTERM)
    assert (code, rest) == (0, "")


def test_ctrl_c_ends_it_without_a_traceback(folder: Path) -> None:
    with listening(folder, "tools.py", "-q") as host:
        code, rest = host.end(signal.SIGINT)
    assert code == 130
    assert "Traceback" not in rest


def test_with_no_source_at_all_it_offers_the_built_in_toolkits(folder: Path) -> None:
    with listening(folder) as host:
        start, _, names = host.said[0].partition("offers ")
        assert start == "no source is named, so this "
        assert set(names.split(", ")) == {"filesystem", "database", "web"}


def test_a_source_that_fails_is_told_and_stops_nothing(folder: Path) -> None:
    with listening(folder, "nowhere.py", "tools.py") as host:
        assert host.said[0] == "warning: source nowhere is not available: nowhere.py does not exist"
        assert get(f"{host.url}/health")[0] == 200


def test_a_required_source_that_fails_stops_it(folder: Path) -> None:
    (folder / "anykit.toml").write_text('sources = ["tools.py", {target = "nowhere.py", required = true}]\n')
    code, out, err = ended(["serve", "--port", "0"], folder)
    assert code == 4
    assert "error[source_unavailable]: required source nowhere is not available" in err
    assert out == ""


def test_a_port_that_is_taken_is_said(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, _, err = ended(["serve", "tools.py", "--port", str(taken.getsockname()[1])], folder)
    assert code == 4
    assert err.startswith(f"error[cannot_listen]: cannot listen on 127.0.0.1:{taken.getsockname}"[:44])
    assert "in use" in err
    assert "  pick another:  --port 0, or --port N" in err


def test_beyond_loopback_a_token_is_required(folder: Path) -> None:
    code, _, err = ended(["serve", "tools.py", "--port", "0", "--host", "0.0.0.0"], folder)
    assert code == 2
    assert "error[token_required]: " in err
    assert "  give one:  export ANYKIT_TOKEN=...   or   --token TOKEN" in err
    with listening(folder, "tools.py", "--host", "0.0.0.0", env={"ANYKIT_TOKEN": "t"}) as host:
        assert host.url.startswith("http://0.0.0.0:")


def test_the_file_says_how_to_listen_and_the_line_goes_over_it(folder: Path) -> None:
    (folder / "anykit.toml").write_text(
        'sources = ["tools.py"]\n[serve]\nhost = "::1"\nport = 1\nallow_hosts = ["inner.example"]\n'
    )
    with listening(folder, "--host", "127.0.0.1", "--allow-host", "outer.example") as host:
        for name, status in (("inner.example", 200), ("outer.example", 200), ("other.example", 421)):
            assert get(f"{host.url}/health", Host=name)[0] == status


def test_tls_needs_both_files_and_files_that_are_there(folder: Path) -> None:
    code, _, err = ended(["serve", "tools.py", "--port", "0", "--tls-cert", "cert.pem"], folder)
    assert (code, "error[usage]: TLS needs both" in err) == (2, True)
    code, _, err = ended(["serve", "tools.py", "--port", "0", "--tls-cert", "c.pem", "--tls-key", "k.pem"], folder)
    assert code in (2, 4)
    assert "Traceback" not in err
    assert "No such file" in err


def test_a_token_that_refers_to_nothing_is_an_error(folder: Path) -> None:
    (folder / "anykit.toml").write_text('sources = ["tools.py"]\n[serve]\ntoken = "${NO_SUCH_TOKEN}"\n')
    code, _, err = ended(["serve", "--port", "0"], folder)
    assert (code, "NO_SUCH_TOKEN is not set" in err) == (2, True)


# stdin and stdout


class Wire:
    """An agent that writes lines to a host and reads its lines."""

    def __init__(self, folder: Path, *argv: str, env: dict[str, str] | None = None) -> None:
        trusted(folder)
        self.process = subprocess.Popen(
            command("serve", "--stdio", "a2e", *argv),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
        )
        self.lines: list[dict[str, Any]] = []

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.kill()
        self.process.communicate(timeout=5)

    def say(self, **message: Any) -> None:
        stream: IO[bytes] | None = self.process.stdin
        assert stream is not None
        stream.write(json.dumps(message).encode() + b"\n")
        stream.flush()

    def hear(self, kind: str) -> dict[str, Any]:
        """Read whole lines of protocol until one of that type comes."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            message = json.loads(line)
            self.lines.append(message)
            if message["type"] == kind:
                return message
        raise AssertionError(f"the host ended: {self.lines}")

    def handshake(self) -> None:
        self.say(type="handshake/req", id="1", agent_caps=["tools", "toolkits"])
        assert self.hear("handshake/resp")["ok"] is True

    def leave(self) -> tuple[int, str]:
        """Close its stdin; gives the exit code and what it said on stderr."""
        out, err = self.process.communicate(timeout=8)
        for line in out.splitlines():
            self.lines.append(json.loads(line))
        return self.process.returncode, err.decode()


def test_b030_stdout_carries_the_protocol_only_whatever_is_printed(folder: Path) -> None:
    """espressif/esp-idf#19087: a print() in a tool corrupted the stream."""
    (folder / "loud.py").write_text("import os\nprint('imported')\nos.write(1, b'raw import\\n')\n" + TOOL)
    with Wire(folder, "tools.py", "loud.py") as wire:
        wire.handshake()
        wire.say(type="tool/call/req", id="2", tool_name="noisy", arguments={})
        assert wire.hear("tool/call/resp")["data"]["data"] == 1
        code, err = wire.leave()
    assert code == 0
    for text in ("imported", "raw import", "hi", "raw", "x"):
        assert text in err


TOOL = "from anykit import tool\n@tool\ndef quiet(): 'x'\n"


def test_b031_it_ends_when_its_agent_is_gone(folder: Path) -> None:
    """hangwin/mcp-chrome#300: the process stayed when its parent had died."""
    with Wire(folder, "tools.py") as wire:
        wire.handshake()
        wire.say(type="tool/call/req", id="2", tool_name="wait", arguments={}, streaming=True)
        wire.hear("tool/event")
        code, err = wire.leave()
    assert code == 0
    assert "Traceback" not in err
    assert (folder / "cancelled.txt").exists()


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_b031_a_signal_ends_it_while_a_tool_runs(folder: Path, number: signal.Signals, expected: int) -> None:
    """hangwin/mcp-chrome#300, the same by a signal."""
    with Wire(folder, "tools.py") as wire:
        wire.handshake()
        wire.say(type="tool/call/req", id="2", tool_name="wait", arguments={}, streaming=True)
        wire.hear("tool/event")
        wire.process.send_signal(number)
        assert wire.process.wait(8) == expected
        assert wire.process.stderr is not None
        assert b"Traceback" not in wire.process.stderr.read()
    assert (folder / "cancelled.txt").exists()


def test_a_bad_line_is_lost_alone(folder: Path) -> None:
    with Wire(folder, "tools.py") as wire:
        assert wire.process.stdin is not None
        wire.process.stdin.write(b"\xff\xfe garbage\n{\n[]\n\n")
        wire.handshake()
        wire.say(type="ping", id="2")
        assert wire.hear("pong")["req_id"] == "2"
        assert wire.leave()[0] == 0
    assert [line["code"] for line in wire.lines if line["type"] == "error"] == ["parse_error"] * 3


def test_over_stdio_no_token_is_asked_for_and_no_port_opened(folder: Path) -> None:
    with Wire(folder, "tools.py", env={"ANYKIT_TOKEN": "t"}) as wire:
        wire.handshake()
        code, err = wire.leave()
    assert (code, err) == (0, "")


def test_what_the_operator_configured_holds_for_every_agent(folder: Path) -> None:
    (folder / "anykit.toml").write_text('sources = ["tickets.py"]\n[toolkits.plain]\nauto_configure = true\n')
    configure = ["configure", "tickets", "url=http://t", "api_key=k1", "-q"]
    assert ended(configure, folder)[0] == 0
    with Wire(folder) as wire:
        wire.handshake()
        for tool, said in (("whoami", "http://t k1 5 [] False"), ("ping", "pong")):
            wire.say(type="tool/call/req", id=tool, tool_name=tool, arguments={})
            assert wire.hear("tool/call/resp")["data"]["data"] == said
        wire.leave()


def test_a_plugin_beside_the_file_is_served(folder: Path) -> None:
    (folder / "beside.py").write_text(
        "from anykit.a2e import ToolkitConfigureResponse, ToolkitDefinition, ToolkitListResponse, ToolkitPlugin\n"
        "class Weather(ToolkitPlugin):\n"
        "    def _list_toolkits(self, msg):\n"
        "        one = ToolkitDefinition(name='weather', schema={}, tools=[])\n"
        "        return ToolkitListResponse(req_id=msg.id, toolkits=[one])\n"
        "    def _configure_toolkit(self, msg):\n"
        "        return ToolkitConfigureResponse(req_id=msg.id, toolkit_name=msg.toolkit_name)\n"
    )
    (folder / "anykit.toml").write_text(
        'sources = ["tools.py"]\n[[a2e.plugins]]\nname = "w"\ntype = "toolkits"\ncls = "beside.Weather"\n'
        '[[a2e.plugins]]\nname = "gone"\ntype = "tools"\ncls = "no_such_module_anywhere.Plugin"\n'
    )
    with Wire(folder) as wire:
        wire.handshake()
        wire.say(type="toolkit/list/req", id="2")
        assert "weather" in [toolkit["name"] for toolkit in wire.hear("toolkit/list/resp")["toolkits"]]
        code, err = wire.leave()
    assert code == 0
    assert "warning: " in err
    assert "no_such_module_anywhere" in err
