"""Files of MCP clients as sources of the verbs: on the line, as --config, added, validated; all of them alike."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from .running import anykit

PEER = Path(__file__).parents[1] / "sources" / "mcp" / "peers" / "stdio.py"
ARGUMENTS = [str(PEER), json.dumps({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})]
COMMAND = json.dumps(sys.executable)
SHAPES = {
    ".mcp.json": f'{{"mcpServers": {{"s": {{"command": {COMMAND}, "args": ARGS}}}}}}',
    ".vscode/mcp.json": f'{{/* c */ "inputs": [], "servers": {{"s": {{"command": {COMMAND}, "args": ARGS,}},}},}}',
    "opencode.jsonc": f'{{"mcp": {{"s": {{"type": "local", "command": [{COMMAND}, ITEMS]}}}}}} // c\n',
    ".codex/config.toml": f"[mcp_servers.s]\ncommand = {COMMAND}\nargs = ARGS\n",
    "goose/config.yaml": f"extensions:\n  s: {{cmd: {COMMAND}, args: ARGS}}\n",
    ".zed/settings.json": f'{{"context_servers": {{"s": {{"command": {{"path": {COMMAND}, "args": ARGS}}}}}}}}',
    "servers.json": f'{{"s": {{"command": {COMMAND}, "args": ARGS}}}}',
}


@pytest.fixture(params=SHAPES)
def file(request: pytest.FixtureRequest, folder: Path) -> Path:
    place = folder / request.param
    place.parent.mkdir(exist_ok=True)
    listed = json.dumps(ARGUMENTS)
    place.write_text(SHAPES[request.param].replace("ARGS", listed).replace("ITEMS", listed[1:-1]))
    return place


def test_a_clients_file_is_a_source_wherever_one_is_named(file: Path, folder: Path) -> None:
    where = str(file.relative_to(folder))
    assert [row["name"] for row in anykit("list", "tools", where, "--json").json] == ["s_echo"]
    assert [row["name"] for row in anykit("list", "tools", "--config", where, "--json").json] == ["s_echo"]
    assert anykit("add", where).code == 0
    assert [row["name"] for row in anykit("list", "tools", "--json").json] == ["s_echo"]
    assert anykit("validate", where, "--json").json == []


def test_validate_tells_what_stays_as_it_is(folder: Path) -> None:
    server = {"command": sys.executable, "args": [*ARGUMENTS, "${MISSING}"], "colour": "red"}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"s": server}}))
    done = anykit("validate", ".mcp.json", "--json")
    assert done.code == 6
    [finding] = done.json
    assert (finding["level"], finding["where"]) == ("warning", "s")
    assert "MISSING is not set" in finding["message"]
    assert "colour" in done.err


def test_ours_may_hold_servers_beside_sources(folder: Path) -> None:
    data = {
        "sources": ["tools.py"],
        "mcpServers": {
            "s": {"command": sys.executable, "args": ARGUMENTS},
            "unset": {"url": "https://x.example/mcp", "headers": {"A": "${MISSING}"}},
        },
    }
    (folder / "anykit.json").write_text(json.dumps(data))
    rows = {row["name"]: row for row in anykit("list", "sources", "--config", "anykit.json", "--json").json}
    assert {name: row["state"] for name, row in rows.items()} == {"tools": "ready", "s": "ready", "unset": "failed"}
    for word in ("anykit.json", "unset.headers/A", "MISSING"):
        assert word in rows["unset"]["reason"]


def test_a_server_is_told_what_it_asks_for_and_gets_it(folder: Path, tmp_path: Path) -> None:
    program = folder / "say.py"
    program.write_text(
        "import json, os, sys\nopen('got.json', 'w').write(json.dumps([sys.argv[1], os.environ['KEY']]))\n"
    )
    data = {
        "inputs": [
            {"id": "key", "type": "promptString", "description": "A key", "password": True},
            {"id": "at", "type": "pickString", "options": ["eu", "us"], "default": "eu"},
        ],
        "servers": {
            "s": {"command": sys.executable, "args": [str(program), "${input:at}"], "env": {"KEY": "${input:key}"}}
        },
    }
    file = folder / "servers.json"
    file.write_text(json.dumps(data))
    config = ("--config", str(file))
    missing = anykit("configure", "s", *config, "--no-input")
    assert missing.code == 3
    assert "server 's' needs 'key' (secret)" in missing.err
    assert "anykit configure s" in anykit("list", "sources", *config, "--json").json[0]["reason"]
    assert anykit("configure", "s", "at=mars", *config, "--secret", "key", stdin="k\n").code == 2
    assert anykit("configure", "s", "att=eu", *config, "--secret", "key", stdin="k\n").code == 2
    asked = anykit("configure", "s", *config, stdin="us\ns3cret\n", terminal=True)
    assert asked.code == 0
    assert "A key" in asked.err
    anykit("list", "sources", *config, "--timeout", "3")
    assert json.loads((folder / "got.json").read_text()) == ["us", "s3cret"]
    assert not any(b"s3cret" in one.read_bytes() for one in (tmp_path / "anykit-data").rglob("*") if one.is_file())
    assert anykit("configure", "s", *config, "at=eu").code == 0  # what was told before stays
    assert anykit("configure", "s", *config, "--unset", "--json").json["changed"] is True
    assert anykit("configure", "s", *config, "--unset", "--json").json["changed"] is False
    assert anykit("configure", "s", *config, "--template").code == 2
