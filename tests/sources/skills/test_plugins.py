"""Agent Plugins 1.0.0: the manifest is closed, a fault costs what it is about, and nothing is fetched or filled in but two names."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from anykit import Workbench
from anykit.sources.skills.errors import Unreadable
from anykit.sources.skills.plugins import Plugin, read_plugin
from sources.skills.making import make_skill

pytestmark = pytest.mark.anyio

PLUGIN = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
SERVERS = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json"


def make_plugin(folder: Path, *, servers: Any = None, **manifest: Any) -> Path:
    """A plugin; a field that is None is left out."""
    folder.mkdir(parents=True, exist_ok=True)
    fields = {"$schema": PLUGIN, "name": "tools", **manifest}
    said = {key: value for key, value in fields.items() if value is not None}
    (folder / "plugin.json").write_text(json.dumps(said))
    if servers is not None:
        (folder / "mcp.json").write_text(json.dumps({"$schema": SERVERS, "mcpServers": servers}))
    return folder


def read(folder: Path) -> Plugin:
    return read_plugin(folder, folder.parent / "data")


def server(tmp_path: Path, **entry: Any) -> Any:
    """What becomes of one server's entry: what it is read as, or its fault."""
    [made] = read(make_plugin(tmp_path / "p", servers={"s": entry})).servers
    return made.fault or made.entry


# the manifest


@pytest.mark.parametrize("name", ["a", "my-plugin", "acme.tools", "lint3r", "a" * 64, "a.b-c"])
def test_a_plugin_is_called_by_a_valid_name(tmp_path: Path, name: str) -> None:
    assert read(make_plugin(tmp_path, name=name)).name == name


FULL: dict[str, Any] = {
    "version": "not semantic",
    "description": "d",
    "author": {"name": "a", "email": "no address", "url": "no url"},
    "homepage": "no url",
    "repository": "r",
    "license": "no spdx",
    "keywords": ["a"],
    "extensions": {"com.example": {"a": 1}, "bad": 7},
}


def test_metadata_is_held_against_its_types_only(tmp_path: Path) -> None:
    found = read(make_plugin(tmp_path, **FULL))
    assert (found.version, found.description, found.findings) == ("not semantic", "d", ())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", None),
        ("name", ""),
        ("name", "My-Plugin"),
        ("name", "-a"),
        ("name", "a."),
        ("name", "a--b"),
        ("name", "a..b"),
        ("name", "a" * 65),
        ("name", 7),
        ("name", "a\n"),
        ("$schema", None),
        ("$schema", 7),
        ("$schema", "https://example.org/x"),
        ("$schema", SERVERS),
        ("version", 1),
        ("description", ["a"]),
        ("homepage", {}),
        ("author", "someone"),
        ("author", {"name": 7}),
        ("author", {"phone": "1"}),
        ("keywords", "a"),
        ("keywords", [1]),
    ],
)
def test_any_other_fault_rejects_the_plugin(tmp_path: Path, field: str, value: Any) -> None:
    with pytest.raises(Unreadable) as error:
        read(make_plugin(tmp_path, **{field: value}))
    assert field in error.value.message


def test_another_version_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=r"is for Agent Plugins 2\.0\.0, and 1\.0\.0 is understood"):
        read(make_plugin(tmp_path, **{"$schema": PLUGIN.replace("1.0.0", "2.0.0")}))


@pytest.mark.parametrize("text", ["", "[]", "{", "// no\n{}", '{"a": NaN', "[" * 100_000, "\xff"])
def test_a_manifest_that_is_no_json_object_rejects_the_plugin(tmp_path: Path, text: str) -> None:
    (tmp_path / "plugin.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(Unreadable):
        read(tmp_path)


def test_unknown_fields_and_odd_extensions_are_reported_and_ignored(tmp_path: Path) -> None:
    found = read(make_plugin(tmp_path, commands="./x", mcpServers={}, extensions=[]))
    assert [one.message for one in found.findings] == [
        "the field 'commands' is unknown and ignored",
        "the field 'mcpServers' is unknown and ignored",
        "extensions is no object and is ignored",
    ]


def test_a_manifest_that_leads_out_rejects_the_plugin(tmp_path: Path) -> None:
    make_plugin(tmp_path / "other")
    (tmp_path / "p").mkdir()
    (tmp_path / "p/plugin.json").symlink_to(tmp_path / "other/plugin.json")
    with pytest.raises(Unreadable):
        read(tmp_path / "p")


# skills


async def test_skills_lie_right_beneath_their_folder_and_must_conform(tmp_path: Path) -> None:
    folder = make_plugin(tmp_path / "p", name="acme.tools")
    make_skill(folder / "skills", "good", files={"x.md": b"x"})
    make_skill(folder / "skills", "own-field", more="model: opus\n")
    make_skill(folder / "skills/group", "too-deep")
    make_skill(folder / "skills", "plain-colon", "a: b")
    make_skill(folder / "skills", "other", raw=b"---\nname: another\ndescription: d\n---\n")
    make_skill(folder / "skills", "lower")
    (folder / "skills/lower/SKILL.md").rename(folder / "skills/lower/skill.md")
    async with Workbench(str(folder)) as bench:
        [source] = bench.sources()
        assert (source.name, source.kind, source.state.status) == ("acme_tools", "plugin", "ready")
        assert bench.tools()[0].input_schema["properties"]["name"]["enum"] == ["good", "own-field"]
        reports = {Path(one.partition(":")[0]).parent.name: one for one in source.reports}
        assert "does not conform to the Agent Skills specification" in reports["plain-colon"]
        assert "must be the name of its folder" in reports["other"]
        assert "unknown field model" in reports["own-field"]


async def test_a_folder_of_skills_that_leads_out_is_left_out(tmp_path: Path) -> None:
    make_skill(tmp_path / "elsewhere", "secret")
    folder = make_plugin(tmp_path / "p")
    (folder / "skills").symlink_to(tmp_path / "elsewhere")
    async with Workbench(str(folder)) as bench:
        assert bench.tools() == []
        assert "is no folder of the plugin" in bench.sources()[0].reports[0]


async def test_a_rejected_plugin_is_a_source_that_says_why(tmp_path: Path) -> None:
    folder = make_plugin(tmp_path / "p", name="Bad Name")
    make_skill(folder / "skills", "good")
    async with Workbench(str(folder)) as bench:
        [source] = bench.sources()
        assert (source.kind, source.state.status, bench.tools()) == ("plugin", "failed", [])
        assert "name must be 1 to 64 lower-case" in source.state.reason


# servers


def test_two_names_are_filled_in_once_and_nothing_else(tmp_path: Path) -> None:
    made = server(
        tmp_path,
        type="stdio",
        command="./bin/run",
        args=["${PLUGIN_ROOT}/x", "${HOME}", "$PLUGIN_ROOT", "${PLUGIN_DATA}${PLUGIN_DATA}", "${env:HOME}"],
        env={"A": "${PLUGIN_DATA}/a", "${PLUGIN_ROOT}": "b", "T": "${TOKEN:-x}"},
        cwd="${PLUGIN_DATA}/work",
    )
    root, data = f"{tmp_path}/p", f"{tmp_path}/data"
    assert made == {
        "type": "stdio",
        "command": f"{root}/bin/run",
        "args": [f"{root}/x", "${HOME}", "$PLUGIN_ROOT", data + data, "${env:HOME}"],
        "env": {
            "A": f"{data}/a",
            "${PLUGIN_ROOT}": "b",
            "T": "${TOKEN:-x}",
            "PLUGIN_ROOT": root,
            "PLUGIN_DATA": data,
        },
        "cwd": f"{data}/work",
    }


def test_what_a_path_holds_is_not_looked_through_again(tmp_path: Path) -> None:
    folder = make_plugin(
        tmp_path / "${PLUGIN_DATA}", servers={"s": {"type": "stdio", "command": "x", "args": ["${PLUGIN_ROOT}"]}}
    )
    [made] = read(folder).servers
    assert made.entry["args"] == [f"{tmp_path}/${{PLUGIN_DATA}}"]


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ({}, "type must be"),
        ({"command": "x"}, "type must be"),
        ({"type": "http", "url": "https://x"}, "type must be"),
        ({"type": "stdio"}, "command must be"),
        ({"type": "stdio", "command": ["x"]}, "command must be"),
        ({"type": "stdio", "command": "../x"}, "bare name"),
        ({"type": "stdio", "command": "/bin/x"}, "bare name"),
        ({"type": "stdio", "command": "bin/x"}, "bare name"),
        ({"type": "stdio", "command": "./../x"}, "leads out"),
        ({"type": "stdio", "command": "${PLUGIN_ROOT}/x"}, "bare name"),
        ({"type": "stdio", "command": "x", "args": "a"}, "args must be"),
        ({"type": "stdio", "command": "x", "args": [1]}, "args must be"),
        ({"type": "stdio", "command": "x", "env": {"A": 1}}, "env must be"),
        ({"type": "stdio", "command": "x", "env": {"PLUGIN_DATA": "a"}}, "env must not set PLUGIN_DATA"),
        ({"type": "stdio", "command": "x", "cwd": "data"}, "cwd must begin"),
        ({"type": "stdio", "command": "x", "cwd": "/"}, "cwd must begin"),
        ({"type": "stdio", "command": "x", "cwd": "./.."}, "cwd leads out"),
        ({"type": "stdio", "command": "x", "cwd": "${PLUGIN_DATA}/.."}, "cwd leads out"),
        ({"type": "stdio", "command": "x", "cwd": "${PLUGIN_ROOT}x"}, "cwd must begin"),
        ({"type": "stdio", "command": "x", "url": "https://x"}, "url is unknown"),
        ({"type": "stdio", "command": "x", "disabled": True}, "disabled is unknown"),
        ({"type": "sse"}, "url must be"),
        ({"type": "sse", "url": "x"}, "url must be an absolute"),
        ({"type": "sse", "url": "ftp://x/"}, "url must be an absolute"),
        ({"type": "streamable-http", "url": "http://x.example/"}, "must be https"),
        ({"type": "streamable-http", "url": "http://localhost.example/"}, "must be https"),
        ({"type": "streamable-http", "url": "https://u:p@x/"}, "no user"),
        ({"type": "streamable-http", "url": "https://x/#a"}, "no fragment"),
        ({"type": "streamable-http", "url": "https://x:99999/"}, "url must be"),
        ({"type": "streamable-http", "url": "https://x/", "headers": {"a": 1}}, "headers must be"),
        ({"type": "streamable-http", "url": "https://x/", "headers": {"A": "1", "a": "2"}}, "twice"),
        ({"type": "streamable-http", "url": "https://x/", "headers": {"a b": "1"}}, "no header"),
        ({"type": "streamable-http", "url": "https://x/", "headers": {"a": "1\r\nb: 2"}}, "no header"),
        ({"type": "streamable-http", "url": "https://x/", "command": "x"}, "command is unknown"),
    ],
)
def test_a_fault_of_a_server_costs_that_server(tmp_path: Path, entry: dict[str, Any], fault: str) -> None:
    good = {"type": "streamable-http", "url": "http://127.0.0.1:1/${HOME}", "headers": {"X": "${TOKEN}"}}
    found = read(make_plugin(tmp_path / "p", servers={"bad": entry, "good": good}))
    assert fault in found.servers[0].fault
    assert found.servers[1].entry == good
    assert [one.level for one in found.findings] == ["error"]


def test_a_program_behind_a_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    folder = make_plugin(tmp_path / "p", servers={"s": {"type": "stdio", "command": "./run"}})
    (folder / "run").symlink_to("/bin/sh")
    assert "leads out" in read(folder).servers[0].fault


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {"mcpServers": {}},
        {"$schema": SERVERS},
        {"$schema": SERVERS, "mcpServers": []},
        {"$schema": SERVERS, "mcpServers": {}, "inputs": []},
        {"$schema": SERVERS.replace("1.0.0", "1.1.0"), "mcpServers": {}},
        {"$schema": PLUGIN, "mcpServers": {}},
    ],
)
def test_a_fault_of_the_file_costs_the_servers_and_not_the_skills(tmp_path: Path, document: Any) -> None:
    folder = make_plugin(tmp_path / "p")
    make_skill(folder / "skills", "good")
    (folder / "mcp.json").write_text(json.dumps(document))
    found = read(folder)
    assert (found.servers, found.skills) == ((), folder / "skills")
    assert "so its servers are left out" in found.findings[0].message


async def test_a_plugin_s_server_runs_with_its_root_and_a_data_folder_of_its_own(tmp_path: Path) -> None:
    folder = make_plugin(tmp_path / "p", servers={"where": {"type": "stdio", "command": "./run"}})
    make_skill(folder / "skills", "good")
    (folder / "run").write_text(f"#!{sys.executable}\n{SCRIPT}")
    (folder / "run").chmod(0o755)
    async with Workbench(str(folder), data_dir=tmp_path / "data") as bench:
        assert await bench.settled(8)
        assert [(one.name, one.kind, one.state.status) for one in bench.sources()] == [
            ("tools", "plugin", "ready"),
            ("where", "mcp", "ready"),
        ]
        told = json.loads((await bench.call("where_tell")).output)
        assert (told["root"], told["cwd"]) == (str(folder), str(folder))
        assert Path(told["data"]).parent == tmp_path / "data/plugins"
        assert os.stat(told["data"]).st_mode == 0o040700


SCRIPT = """
import json, os, sys
for line in sys.stdin:
    ask = json.loads(line)
    method = ask.get("method")
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "w", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "tell", "description": "Tells.", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        told = {"root": os.environ["PLUGIN_ROOT"], "data": os.environ["PLUGIN_DATA"], "cwd": os.getcwd()}
        result = {"content": [{"type": "text", "text": json.dumps(told)}]}
    elif "id" in ask:
        print(json.dumps({"jsonrpc": "2.0", "id": ask["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": ask["id"], "result": result}), flush=True)
"""
