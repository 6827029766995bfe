"""`anykit discover`: what other clients have, and into our file with it. Nothing is started."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest

from anykit.app.discovery import Home, places
from anykit.app.trust import Trust

from .running import anykit


@pytest.fixture
def home(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    return place


def write(file: Path, data: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(data if isinstance(data, str) else json.dumps(data))
    return file


def everywhere(home: Path, folder: Path) -> None:
    """A server in the file of each client."""
    one = {"mcpServers": {"one": {"command": "touch", "args": [str(folder / "started")]}}}
    write(home / ".config/Claude/claude_desktop_config.json", one)
    write(
        home / ".claude.json",
        {
            "mcpServers": {"one": {"command": "c"}},
            "projects": {str(folder): {"mcpServers": {"local": {"command": "l"}}}},
        },
    )
    for name in (".cursor/mcp.json", ".mcp.json", ".roo/mcp.json", ".kiro/settings/mcp.json", "mcp.json"):
        write(folder / name, one)
    write(folder / ".vscode/mcp.json", '{"servers": {"one": {"command": "v"}}, /* x */}')
    write(home / ".gemini/settings.json", one)
    write(home / ".config/goose/config.yaml", "extensions:\n  one: {cmd: g, enabled: true}\n")
    write(home / ".codex/config.toml", '[mcp_servers.one]\ncommand = "x"\n')
    write(home / ".config/opencode/opencode.jsonc", '{"mcp": {"one": {"type": "local", "command": ["o"]}}}')
    write(home / ".copilot/mcp-config.json", one)
    write(home / ".codeium/windsurf/mcp_config.json", one)
    write(home / ".config/zed/settings.json", '{"context_servers": {"one": {"command": "z"}}}')
    write(home / ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", one)
    write(home / ".mcp-inspector/mcp.json", one)


def test_the_files_of_every_client_are_found_and_nothing_is_started(home: Path, folder: Path) -> None:
    everywhere(home, folder)
    done = anykit("discover", "--json")
    assert done.code == 0
    rows = {row["name"]: row for row in done.json}
    clients = (
        "claude-desktop claude-code cursor vscode roo kiro mcp gemini goose codex opencode copilot windsurf zed cline"
    )
    assert {f"{client}:one" for client in [*clients.split(), "inspector"]} <= set(rows)
    assert rows["claude-code:local"]["scope"] == "local"
    assert rows["cursor:one"]["state"] == "untrusted"
    assert rows["gemini:one"]["state"] == "new"
    assert rows["goose:one"]["transport"] == "stdio"
    assert rows["codex:one"]["file"] == str(home / ".codex/config.toml")
    assert {row["kind"] for row in rows.values()} == {"mcp"}
    assert not (folder / "started").exists()
    assert not (folder / "anykit.toml").exists()


def test_a_projects_files_are_found_from_a_folder_inside_of_it(home: Path, folder: Path, monkeypatch: Any) -> None:
    write(folder / ".cursor/mcp.json", {"mcpServers": {"up": {"command": "x"}}})
    write(folder / "deep/.mcp.json", {"mcpServers": {"near": {"command": "x"}}})
    write(folder / "mcp.json", {"mcpServers": {"only-here": {"command": "x"}}})
    (folder / "deep/er").mkdir()
    monkeypatch.chdir(folder / "deep/er")
    assert [row["name"] for row in anykit("discover", "--json").json] == ["claude-code:near", "cursor:up"]


def test_two_of_one_name_are_told_apart(home: Path, folder: Path) -> None:
    write(folder / ".cursor/mcp.json", {"mcpServers": {"a": {"command": "near"}}})
    write(home / ".cursor/mcp.json", {"mcpServers": {"a": {"command": "far"}}})
    rows = {row["name"]: row["about"] for row in anykit("discover", "--json").json}
    assert rows == {"cursor:a": "near", "cursor-user:a": "far"}


def test_what_a_person_agreed_to_is_new(home: Path, folder: Path, tmp_path: Path) -> None:
    file = write(folder / ".mcp.json", {"mcpServers": {"a": {"command": "x"}}})
    Trust(tmp_path / "anykit-data").grant(file)
    assert [row["state"] for row in anykit("discover", "--json").json] == ["new"]
    write(file, {"mcpServers": {"a": {"command": "other"}}})
    assert [row["state"] for row in anykit("discover", "--json").json] == ["untrusted"]


def test_all_that_are_on_are_imported_and_stay_as_they_refer(home: Path, folder: Path) -> None:
    write(
        home / ".cursor/mcp.json",
        {
            "mcpServers": {
                "r": {"url": "https://r.example/mcp", "headers": {"A": "Bearer ${env:TOK}"}},
                "b": {"command": ""},
            }
        },
    )
    write(
        home / ".gemini/settings.json",
        {
            "mcpServers": {
                "g": {"command": "g", "env": {"K": "$TOK"}, "timeout": 5000, "excludeTools": ["x"]},
                "off": {"command": "o"},
            },
            "mcp": {"excluded": ["off"]},
        },
    )
    done = anykit("discover", "--import", "--json")
    assert [(one["name"], one["source"]) for one in done.json] == [("cursor:r", "r"), ("gemini:g", "g")]
    assert "cursor:b is left out" in done.err
    assert tomllib.loads((folder / "anykit.toml").read_text())["sources"] == [
        {"name": "r", "kind": "mcp", "url": "https://r.example/mcp", "headers": {"A": "Bearer ${TOK}"}},
        {"name": "g", "kind": "mcp", "command": "g", "env": {"K": "${TOK:-}"}, "timeout": 5, "deny": ["x"]},
    ]
    again = anykit("discover", "--import", "--json")
    assert again.json == []
    assert {row["state"] for row in anykit("discover", "cursor:r", "gemini:g", "--json").json} == {"in"}


def test_a_plain_secret_goes_to_the_store_and_is_used(home: Path, folder: Path, tmp_path: Path) -> None:
    program = write(
        folder / "say.py",
        "import json, os, sys\nopen('got.json', 'w').write(json.dumps([sys.argv[1:], os.environ['API_KEY']]))\n",
    )
    server = {
        "command": "python3",
        "args": [str(program), "--token", "s3cret-arg", "--password=s3cret-flag", "ghp_s3cretvalue"],
        "env": {"API_KEY": "s3cret-${env}", "PLAIN": "shown"},
        "cwd": str(folder),
    }
    write(home / ".cursor/mcp.json", {"mcpServers": {"s": server}})
    done = anykit("discover", "--import")
    assert done.code == 0
    assert "s3cret" not in done.out + done.err
    assert "encrypted store" in done.err
    text = (folder / "anykit.toml").read_text()
    assert "s3cret" not in text
    assert "shown" in text
    for file in (tmp_path / "anykit-data").rglob("*"):
        assert not file.is_file() or b"s3cret" not in file.read_bytes()
    anykit("list", "sources", "--timeout", "3")
    args, key = json.loads((folder / "got.json").read_text())
    assert args == ["--token", "s3cret-arg", "--password=s3cret-flag", "ghp_s3cretvalue"]
    assert key == "s3cret-${env}"


def test_what_is_named_is_imported_also_where_it_is_off(home: Path, folder: Path) -> None:
    write(folder / ".mcp.json", {"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}})
    write(
        home / ".config/goose/config.yaml", "extensions:\n  quiet: {cmd: x, enabled: false}\n  part: {type: builtin}\n"
    )
    assert anykit("discover", "--import", "claude-code:b", "goose:quiet").code == 0
    names = [one["name"] for one in tomllib.loads((folder / "anykit.toml").read_text())["sources"]]
    assert names == ["b", "quiet"]
    assert anykit("discover", "--import", "goose:part").code == 2
    missing = anykit("discover", "--import", "claude-code:bb")
    assert missing.code == 5
    assert "claude-code:b" in missing.err


def test_what_is_imported_is_trusted(home: Path, folder: Path, tmp_path: Path) -> None:
    write(folder / ".mcp.json", {"mcpServers": {"a": {"command": "a"}}})
    anykit("discover", "--import")
    assert Trust(tmp_path / "anykit-data").check(folder / "anykit.toml").is_trusted
    assert anykit("list", "sources", "--json", "--timeout", "2").json[0]["name"] == "a"


def test_a_name_that_is_taken_is_not_taken_again(home: Path, folder: Path) -> None:
    (folder / "anykit.toml").write_text('# mine\nsources = [{name = "a", url = "https://mine.example"}]\n')
    write(home / ".cursor/mcp.json", {"mcpServers": {"a": {"command": "x"}}})
    assert anykit("discover", "--import").code == 0
    text = (folder / "anykit.toml").read_text()
    assert text.startswith("# mine\n")
    assert [one["name"] for one in tomllib.loads(text)["sources"]] == ["a", "cursor_a"]


def test_a_file_that_cannot_be_read_costs_itself_only(home: Path, folder: Path) -> None:
    bad = write(home / ".cursor/mcp.json", "{")
    write(home / ".codex/config.toml", '[mcp_servers.one]\ncommand = "x"\n')
    os.mkfifo(folder / ".mcp.json")
    done = anykit("discover", "--json")
    assert done.code == 0
    assert [row["name"] for row in done.json] == ["codex:one"]
    assert str(bad) in done.err


def test_what_install_wrote_is_not_taken_back(home: Path, folder: Path) -> None:
    (folder / "anykit.toml").write_text('sources = ["tools.py"]\n')
    assert anykit("install", "cursor").code == 0
    assert [row["state"] for row in anykit("discover", "--json").json] == ["in"]
    assert anykit("discover", "--import", "--json").json == []


def test_inputs_are_imported_with_their_server(home: Path, folder: Path) -> None:
    write(
        folder / ".vscode/mcp.json",
        {
            "inputs": [{"id": "key", "description": "The key", "password": True, "type": "promptString"}],
            "servers": {"v": {"command": "v", "args": ["${workspaceFolder}"], "env": {"K": "${input:key}"}}},
        },
    )
    assert anykit("discover", "--import").code == 0
    [source] = tomllib.loads((folder / "anykit.toml").read_text())["sources"]
    assert source["args"] == [str(folder)]
    assert source["inputs"] == [{"id": "key", "description": "The key", "password": True}]
    rows = anykit("list", "sources", "--json").json
    assert "needs the input 'key'" in rows[0]["reason"]
    assert anykit("configure", "v", "--from-env", env={"V_KEY": "s3cret"}).code == 0
    assert "not found" in anykit("list", "sources", "--json", "--timeout", "3").json[0]["reason"]


@pytest.mark.parametrize(
    ("platform", "folder"),
    [("darwin", "/h/Library/Application Support"), ("linux", "/h/.config"), ("win32", "/roaming")],
)
def test_each_platform_has_its_own_places(platform: str, folder: str) -> None:
    found = {str(place.path) for place in places(Path("/p"), Home(Path("/h"), {"APPDATA": "/roaming"}, platform))}
    assert f"{folder}/Claude/claude_desktop_config.json" in found
    assert f"{folder}/Code/User/mcp.json" in found
    assert "/h/.claude.json" in found


def test_the_home_folder_is_no_project() -> None:
    found = list(places(Path("/h/a"), Home(Path("/h"), {}, "linux")))
    assert [place.scope for place in found if place.path == Path("/h/.cursor/mcp.json")] == ["user"]


def test_the_file_that_was_made_is_like_any_other(home: Path, folder: Path) -> None:
    write(home / ".cursor/mcp.json", {"mcpServers": {"a": {"command": "x"}}})
    anykit("discover", "--import")
    assert not stat.S_IMODE((folder / "anykit.toml").stat().st_mode) & 0o111
