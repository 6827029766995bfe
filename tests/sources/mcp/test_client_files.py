"""Every client's file as it writes it, with the right reading beside it: `tests/vectors/clients`."""

from __future__ import annotations

import json
import logging
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anykit.sources.mcp import CLIENTS, Entry, Misfit, Surroundings, client_at, read_server_file, read_servers
from anykit.sources.mcp.gates import residuals
from sources.mcp.reading import reading_of

CASES = Path(__file__).parents[2] / "vectors" / "clients"


def cases() -> list[str]:
    return sorted(case.name for case in CASES.iterdir())


@pytest.mark.parametrize("case", cases())
def test_a_clients_file_is_read_by_its_rules(case: str, tmp_path: Path) -> None:
    place = tmp_path / case
    shutil.copytree(CASES / case, place)
    wanted: dict[str, Any] = json.loads((place / "case.json").read_text())
    file, env = wanted.pop("file"), wanted.pop("env")
    assert reading_of(place, file, env) == wanted


def test_every_client_has_a_case() -> None:
    kinds = {json.loads((CASES / case / "case.json").read_text())["kind"] for case in cases()}
    assert kinds == set(CLIENTS)


def entries(file: Path, tmp_path: Path, **around: Any) -> dict[str, Entry]:
    given: dict[str, Any] = {"env": dict[str, str](), "home": tmp_path / "home", "project": tmp_path, **around}
    return {one.name: one for one in read_servers(file, Surroundings(file.parent, **given))}


def write(file: Path, data: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(data if isinstance(data, str) else json.dumps(data))
    return file


@pytest.mark.parametrize(
    ("path", "client"),
    [
        ("/home/kangaroo/mcp.json", None),
        ("/home/roo/work/mcp.json", None),
        ("/work/my-cursor/mcp.json", None),
        ("/p/.mcp.json.json", None),
        ("/h/.config/Claude/claude_desktop_config.json", "claude-desktop"),
        ("/h/Library/Application Support/Code/User/mcp.json", "vscode"),
        ("/p/.vscode/settings.json", "vscode"),
        ("/h/.config/opencode/opencode.json", "opencode"),
        ("/x/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json", "roo"),
        ("/p/.zed/settings.json", "zed"),
        ("/p/anykit.yaml", "anykit"),
        ("/p/cline_mcp_settings.json", "cline"),
        ("/p/mcp_config.json", "windsurf"),
    ],
)
def test_a_file_is_known_by_its_path(path: str, client: str | None) -> None:
    found = client_at(Path(path))
    assert (None if found is None else found.id) == client


def test_what_was_told_goes_where_the_file_asks_for_it(tmp_path: Path) -> None:
    data = {
        "inputs": [{"id": "key", "password": True}, {"id": "at", "options": [{"label": "Europe", "value": "eu"}]}],
        "servers": {
            "a": {"url": "https://x/${input:at}", "headers": {"K": "${input:key}"}},
            "b": {"url": "https://y/", "headers": {"K": "${input:key}"}},
            "undeclared": {"url": "https://z/", "headers": {"K": "${input:nobody}"}},
        },
    }
    file = write(tmp_path / ".vscode/mcp.json", data)
    found = entries(file, tmp_path, told={"a": {"key": "s3cret${input:at}", "at": "eu"}})
    assert found["a"].server is not None
    assert (found["a"].server.url, found["a"].server.headers) == ("https://x/eu", {"K": "s3cret${input:at}"})
    assert found["b"].server is not None
    assert found["b"].server.headers == {"K": "s3cret${input:at}"}  # one file asks once
    assert found["a"].inputs == {
        "type": "object",
        "properties": {
            "at": {"type": "string", "oneOf": [{"const": "eu", "title": "Europe"}]},
            "key": {"type": "string", "format": "password", "writeOnly": True},
        },
        "required": ["at", "key"],
        "additionalProperties": False,
    }
    assert "needs the input 'nobody'" in found["undeclared"].fault
    assert found["undeclared"].inputs is not None
    assert found["undeclared"].inputs["properties"]["nobody"]["writeOnly"] is True
    assert "s3cret" not in repr(found)


CLAUDE = {"mcpServers": {name: {"command": name} for name in ("a", "b", "a_b", "c")}}


@pytest.mark.parametrize(
    ("where", "settings", "on"),
    [
        (".claude/settings.json", {"disabledMcpServers": ["a"]}, "b a_b c"),
        (".claude/settings.json", {"enabledMcpjsonServers": ["a", "c"]}, "a c"),
        (".claude/settings.json", {"enabledMcpjsonServers": ["a"], "enableAllProjectMcpServers": True}, "a b a_b c"),
        (".claude/settings.json", {"enabledMcpjsonServers": ["a", "c"], "disabledMcpjsonServers": ["a"]}, "c"),
        (".claude/settings.local.json", {"permissions": {"deny": ["mcp__a", "mcp__b__*"]}}, "a_b c"),
        ("home/.claude/settings.json", {"permissions": {"deny": ["mcp__c"]}}, "a b a_b"),
        ("home/.claude/settings.json", {"deniedMcpServers": [{"serverName": "c"}]}, "a b a_b"),
        ("home/.claude.json", {"projects": {"PROJECT": {"disabledMcpjsonServers": ["b"]}}}, "a a_b c"),
        ("home/.claude.json", {"projects": {"PROJECT": {"enabledMcpjsonServers": []}}}, "a b a_b c"),
        ("home/.claude.json", {"projects": {"/else": {"disabledMcpjsonServers": ["b"]}}}, "a b a_b c"),
    ],
)
def test_claude_codes_settings_switch_servers_off(where: str, settings: Any, on: str, tmp_path: Path) -> None:
    write(tmp_path / where, json.dumps(settings).replace("PROJECT", str(tmp_path)))
    found = entries(write(tmp_path / ".mcp.json", CLAUDE), tmp_path)
    assert [name for name, one in found.items() if one.enabled] == on.split()
    assert all(one.fault == "" for one in found.values())


def test_settings_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    write(tmp_path / ".claude/settings.json", "{")
    file = write(tmp_path / ".mcp.json", CLAUDE)
    read = read_server_file(file, Surroundings(tmp_path, env={}, home=tmp_path / "home", project=tmp_path))
    assert len(read.entries) == 4
    [report] = read.reports
    assert report.endswith("what it switches off and denies is not known")


def test_a_denied_tool_is_denied_whatever_allows_it(tmp_path: Path) -> None:
    write(tmp_path / ".claude/settings.json", {"permissions": {"allow": ["mcp__a__x"], "deny": ["mcp__a__x"]}})
    server = entries(write(tmp_path / ".mcp.json", CLAUDE), tmp_path)["a"].server
    assert server is not None
    assert [name for name in ("x", "y") if server.offers(name)] == ["y"]


@given(st.text("ab_*?", max_size=8), st.text("ab_", max_size=4), st.text("ab_", max_size=4))
def test_what_is_left_of_a_pattern_matches_what_is_left_of_a_name(pattern: str, prefix: str, rest: str) -> None:
    from fnmatch import fnmatchcase

    left = any(fnmatchcase(rest, one) for one in residuals(pattern, prefix))
    assert left == (fnmatchcase(prefix + rest, pattern) and (rest != "" or left))
    if rest:
        assert left == fnmatchcase(prefix + rest, pattern)


def test_unknown_keys_are_told_once_a_file_and_approvals_quietly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from anykit.app.opening import Opening, open_file

    servers = {name: {"command": "x", "colour": 1, "autoApprove": ["a"]} for name in ("a", "b", "c")}
    file = write(tmp_path / "mcp.json", {"mcpServers": servers})
    with caplog.at_level(logging.INFO, "anykit"):
        assert [one.failed for one in open_file(str(file), Opening(tmp_path))] == [None, None, None]
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("WARNING", f"{file}: keys that mean nothing here: colour"),
        ("INFO", f"{file}: what it says of approvals is read, and not enforced yet"),
    ]


def test_a_fastmcp_project_is_a_server_that_is_run(tmp_path: Path) -> None:
    file = write(tmp_path / "fastmcp.json", {"source": {"path": "server.py", "entrypoint": "mcp"}, "environment": {}})
    program = write(tmp_path / "bin/fastmcp", "#!/bin/sh\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    [server] = entries(file, tmp_path, env={"PATH": str(tmp_path / "bin")}).values()
    assert server.name == "server"
    assert server.server is not None
    assert server.server.command is not None
    argv = (str(program), "run", str(file), "--transport", "stdio", "--no-banner")
    assert (server.server.command.argv, server.server.command.cwd) == (argv, tmp_path)
    write(file, '{"source": {"path": "server.py"}, // no comments here\n}')
    with pytest.raises(Misfit, match="strict JSON"):
        read_servers(file)


def test_a_fastmcp_project_without_fastmcp_says_what_is_missing(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    file = write(tmp_path / "fastmcp.json", {"source": {"path": "server.py"}})
    [server] = entries(file, tmp_path, env={"PATH": str(tmp_path)}).values()
    assert "pip install fastmcp" in server.fault


def test_a_file_that_never_ends_holds_nobody_up(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "mcp.json")
    with pytest.raises(Misfit, match="no servers"):
        read_servers(tmp_path / "mcp.json")
    write(tmp_path / "a.json", {"mcpServers": {"a": {"command": "x", "envFile": "mcp.json"}}})
    assert entries(tmp_path / "a.json", tmp_path)["a"].server is not None


def test_reserved_words_are_no_servers(tmp_path: Path) -> None:
    words = ("agents", "builtins", "a2a", "mcpServer", "inputs", "$schema")
    file = write(tmp_path / "x.json", {**{word: {"command": "never"} for word in words}, "real": {"command": "x"}})
    assert list(entries(file, tmp_path)) == ["real"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda x: (
            st.lists(x)
            | st.dictionaries(
                st.sampled_from(
                    ["command", "args", "env", "url", "headers", "tools", "timeout", "cwd", "auth", "type", "x"]
                ),
                x,
            )
        ),
        max_leaves=10,
    )
)
def test_whatever_an_entry_holds_it_costs_itself_only(value: Any) -> None:
    from anykit.sources.mcp import entries_of

    around = Surroundings(Path("/nowhere"), env={}, home=Path("/nowhere"), project=Path("/nowhere"))
    bad, good = entries_of({"bad": value, "good": {"command": "x"}}, around)
    assert good.server is not None
    assert (bad.server is not None) + bool(bad.fault) + bool(bad.disabled) == 1
