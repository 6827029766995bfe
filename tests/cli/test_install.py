"""`anykit install`: one entry in a client's own file; everything else in there stays."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from anykit.app.installation import CLIENTS
from anykit.sources.documents import document_of
from anykit.sources.mcp import Surroundings, read_servers

from .running import anykit
from .test_discover import write


@pytest.fixture
def home(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    (folder / "anykit.toml").write_text('sources = ["tools.py"]\n')
    return place


FILES = {
    "claude": ".claude.json",
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".config/Code/User/mcp.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.json",
    "copilot": ".copilot/mcp-config.json",
    "windsurf": ".codeium/windsurf/mcp_config.json",
    "kiro": ".kiro/settings/mcp.json",
    "zed": ".config/zed/settings.json",
    "goose": ".config/goose/config.yaml",
}


def test_every_client_is_tested() -> None:
    assert FILES.keys() == CLIENTS.keys()


@pytest.mark.parametrize("client", FILES)
def test_the_entry_is_in_the_clients_place_and_shape(client: str, home: Path, folder: Path) -> None:
    done = anykit("install", client)
    assert done.code == 0
    file = home / FILES[client]
    assert str(file) in done.out
    [entry] = read_servers(file, Surroundings(file.parent, env={}, home=home, project=folder))
    assert (entry.name, entry.fault, entry.disabled) == ("anykit", "", "")
    assert entry.server is not None
    assert entry.server.command is not None
    program, *arguments = entry.server.command.argv
    assert Path(program).is_absolute()
    assert arguments[-5:] == ["serve", "--stdio", "mcp", "--config", str(folder / "anykit.toml")]


@pytest.mark.parametrize("client", [one for one in FILES if one != "claude-desktop"])
def test_a_host_that_runs_is_connected_to(client: str, home: Path, folder: Path) -> None:
    assert anykit("install", client, "--url", "http://127.0.0.1:7777/mcp", "--name", "far").code == 0
    file = home / FILES[client]
    [entry] = read_servers(file, Surroundings(file.parent, env={}, home=home, project=folder))
    assert entry.name == "far"
    assert entry.server is not None
    assert entry.server.url == "http://127.0.0.1:7777/mcp"


@pytest.mark.parametrize("client", ["claude", "cursor", "vscode", "codex", "opencode", "copilot", "windsurf", "kiro"])
def test_a_token_is_named_never_written(client: str, home: Path, folder: Path) -> None:
    words = ("install", client, "--url", "https://host.example/mcp", "--token")
    refused = anykit(*words, "s3cret")
    assert refused.code == 2
    assert not (home / FILES[client]).exists()
    assert anykit(*words, "${HOST_TOKEN}").code == 0
    file = home / FILES[client]
    [entry] = read_servers(file, Surroundings(file.parent, env={"HOST_TOKEN": "s3cret"}, home=home, project=folder))
    assert entry.server is not None
    assert entry.server.token == "s3cret" or entry.server.headers == {"Authorization": "Bearer s3cret"}
    assert "s3cret" not in file.read_text()


JSONC = """{
    // mine
    "mcpServers": {
        "other": {"command": "x"}, /* kept */
    },
    "theme": "dark", // too
}
"""


def test_everything_else_in_the_file_stays_and_a_copy_is_left(home: Path, folder: Path) -> None:
    file = write(home / ".cursor/mcp.json", JSONC)
    file.chmod(0o640)
    done = anykit("install", "cursor", "--json")
    [said] = done.json
    after = file.read_text()
    for piece in ("// mine", '"other": {"command": "x"}', "/* kept */", '"theme": "dark", // too'):
        assert piece in after
    data = document_of(after, file)
    assert list(data["mcpServers"]) == ["other", "anykit"]
    assert Path(said["backup"]).read_text() == JSONC
    assert Path(said["backup"]).parent == file.parent
    assert file.stat().st_mode & 0o777 == 0o640
    subprocess.run(said["undo"], shell=True, check=True, timeout=10)
    assert file.read_text() == JSONC


@pytest.mark.parametrize(
    ("client", "before"),
    [
        ("codex", '# mine\nmodel = "m"\n\n[mcp_servers.other]\ncommand = "x" # why\n\n[tui]\ntheme = "a"\n'),
        ("goose", "# mine\nGOOSE_MODEL: m\nextensions:\n  other:\n    cmd: x # why\n    enabled: true\n"),
        ("zed", '{\n  // mine\n  "vim_mode": true,\n  "context_servers": {"other": {"command": "x"}}\n}\n'),
        ("vscode", '\ufeff{\r\n\t"inputs": [],\r\n\t"servers": {\r\n\t\t"other": {"command": "x"}\r\n\t}\r\n}\r\n'),
        ("claude", '{"numStartups":7,"mcpServers":{"other":{"command":"x"}},"projects":{}}'),
        ("opencode", '{"$schema": "https://opencode.ai/config.json"}'),
    ],
)
def test_files_of_every_form_are_edited_where_they_stand(client: str, before: str, home: Path, folder: Path) -> None:
    file = write(home / FILES[client], "")
    file.write_bytes(before.encode())
    assert anykit("install", client).code == 0
    after = file.read_bytes().decode()
    kept = [line.strip() for line in before.splitlines() if "mine" in line or "why" in line or "theme" in line]
    assert all(line in after for line in kept)
    assert after.startswith("\ufeff") == before.startswith("\ufeff")
    assert ("\r\n" in after) == ("\r\n" in before)
    old, new = (document_of(text.removeprefix("\ufeff"), file) for text in (before, after))
    key = CLIENTS[client].map
    assert {**new, key: {name: one for name, one in new[key].items() if name != "anykit"}} == {key: {}, **old}


def test_once_more_changes_nothing(home: Path, folder: Path) -> None:
    assert anykit("install", "claude", "codex").code == 0
    before = {file: file.read_bytes() for file in home.rglob("*") if file.is_file()}
    again = anykit("install", "claude", "codex", "--json")
    assert [one["changed"] for one in again.json] == [False, False]
    assert {file: file.read_bytes() for file in home.rglob("*") if file.is_file()} == before


def test_another_entry_of_that_name_is_not_replaced_unasked(home: Path, folder: Path) -> None:
    text = '{"mcpServers": {"anykit": {"command": "mine"}}}'
    file = write(home / ".cursor/mcp.json", text)
    refused = anykit("install", "cursor")
    assert (refused.code, file.read_text()) == (2, text)
    assert "--force" in refused.err
    assert anykit("install", "cursor", "--name", "second").code == 0
    assert list(json.loads(file.read_text())["mcpServers"]) == ["anykit", "second"]
    assert anykit("install", "cursor", "--force").code == 0
    assert json.loads(file.read_text())["mcpServers"]["anykit"]["command"] != "mine"


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("cursor", '{"mcpServers": {'),
        ("cursor", "[]"),
        ("cursor", '{"mcpServers": []}'),
        ("codex", "mcp_servers = [\n"),
        ("goose", "extensions: [a\n"),
        ("claude", "\x00\x01"),
    ],
)
def test_a_file_that_cannot_be_read_is_left_alone(client: str, text: str, home: Path, folder: Path) -> None:
    file = write(home / FILES[client], text)
    done = anykit("install", client, "--force")
    assert done.code == 2
    assert str(file) in done.err
    assert file.read_text() == text
    assert [one.name for one in file.parent.iterdir() if one.is_file()] == [file.name]


def test_print_shows_and_writes_nothing(home: Path, folder: Path) -> None:
    done = anykit("install", "claude", "--print")
    assert json.loads(done.out)["mcpServers"]["anykit"]["type"] == "stdio"
    assert tomllib.loads(anykit("install", "codex", "--print").out)["mcp_servers"]["anykit"]["args"][0] == "serve"
    assert yaml.safe_load(anykit("install", "goose", "--print").out)["extensions"]["anykit"]["type"] == "stdio"
    assert anykit("install", "vscode", "--print", "--json").json[0]["entry"]["type"] == "stdio"
    assert list(home.iterdir()) == []


def test_a_project_has_files_of_its_own(home: Path, folder: Path) -> None:
    assert anykit("install", "claude", "vscode", "cursor", "--scope", "project").code == 0
    for name, key in ((".mcp.json", "mcpServers"), (".vscode/mcp.json", "servers"), (".cursor/mcp.json", "mcpServers")):
        assert list(json.loads((folder / name).read_text())[key]) == ["anykit"]
    assert list(home.iterdir()) == []
    refused = anykit("install", "windsurf", "--scope", "project")
    assert (refused.code, "has no file of a project" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("curser",), "cursor"),
        (("cursor", "--scope", "all"), "--scope user"),
        (("claude-desktop", "--url", "http://x/mcp"), "leave --url out"),
        (("cursor", "--url", "x"), "--url http://"),
        (("cursor", "--token", "${X}"), "--url"),
        (("cursor", "--config", "gone.toml"), "no such file"),
        (("cursor", "--name", " "), "--name"),
    ],
)
def test_what_is_wrong_on_the_line_is_said(words: tuple[str, ...], why: str, home: Path, folder: Path) -> None:
    done = anykit("install", *words)
    assert done.code == 2
    assert why in done.err
    assert list(home.iterdir()) == []


def test_sources_of_the_line_are_started_from_anywhere(home: Path, folder: Path) -> None:
    done = anykit("install", "cursor", "-s", "tools.py:add", "-s", "anykit:web", "--print", "--json")
    arguments = done.json[0]["entry"]["args"]
    assert arguments[-4:] == ["--source", f"{folder}/tools.py:add", "--source", "anykit:web"]


def test_the_entry_starts_a_host_that_speaks_mcp(home: Path, folder: Path, tmp_path: Path) -> None:
    """The command of the entry, in the bare environment that a client gives, from another folder."""
    [said] = anykit("install", "claude-desktop", "--json").json
    entry: dict[str, Any] = said["entry"]
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    done = subprocess.run(
        [entry["command"], *entry["args"]],
        input=json.dumps(hello) + "\n",
        capture_output=True,
        text=True,
        timeout=9,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    first = json.loads(done.stdout.splitlines()[0])
    assert first["result"]["protocolVersion"] == "2025-11-25", done.stderr
    assert Path(entry["command"]).exists()
