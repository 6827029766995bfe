"""Files that clients write, read as ours: every spelling, and one wrong entry costs only itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anykit.sources.documents import without_comments
from anykit.sources.mcp import Entry, Misfit, Surroundings, entries_of, is_server_file, read_servers
from anykit.sources.mcp.servers import McpServer


def read(entry: Any, tmp_path: Path | None = None, **around: Any) -> Entry:
    given: dict[str, Any] = {"env": dict[str, str](), **around}
    [only] = entries_of({"s": entry}, Surroundings(tmp_path or Path("/folder"), **given))
    return only


def good(entry: Any, tmp_path: Path | None = None, **around: Any) -> McpServer:
    found = read(entry, tmp_path, **around)
    assert found.server is not None, found.fault
    return found.server


def argv(entry: Any, **around: Any) -> tuple[str, ...]:
    command = good(entry, **around).command
    assert command is not None
    return command.argv


CLAUDE = """{
  // servers of the project
  "mcpServers": {
    "files": {"type": "stdio", "command": "npx", "args": ["-y", "server-files", "${ROOT}"], "env": {"K": "${KEY:-none}"}},
    "remote": {"type": "http", "url": "https://x.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
    "events": {"type": "sse", "url": "https://x.example/sse",},
  },
}"""


def test_a_file_of_claude_is_read(tmp_path: Path) -> None:
    file = tmp_path / ".mcp.json"
    file.write_text("\ufeff" + CLAUDE)
    entries = read_servers(file, Surroundings(tmp_path, env={"ROOT": "/data", "TOKEN": "t$1"}))
    files, remote, events = (one.server for one in entries)
    assert files is not None
    assert files.command is not None
    assert files.command.argv == ("npx", "-y", "server-files", "/data")
    assert files.command.env == {"K": "none"}
    assert remote is not None
    assert (remote.url, remote.transport) == ("https://x.example/mcp", "http")
    assert remote.headers == {"Authorization": "Bearer t$1"}
    assert events is not None
    assert events.transport == "sse"


def test_a_file_of_vs_code_is_read_with_its_inputs(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    (tmp_path / ".env").write_text("export A=1\nB='two words'\n# no\n")
    data = {
        "inputs": [
            {"id": "key", "type": "promptString", "description": "The key", "password": True},
            {"id": "region", "type": "pickString", "options": ["eu", "us"], "default": "eu"},
        ],
        "servers": {
            "a": {
                "type": "stdio",
                "command": "${workspaceFolder}/run",
                "args": ["${input:region}", "${env:WHO}", "${userHome}"],
                "env": {"KEY": "${input:key}"},
                "envFile": ".env",
                "cwd": "sub",
            },
            "b": {"url": "https://x.example/${input:region}", "type": "http"},
        },
    }
    file.write_text(json.dumps(data))
    around = Surroundings(tmp_path, env={"WHO": "me"}, inputs={"key": "k"})
    a, b = read_servers(file, around)
    assert a.server is not None
    assert a.server.command is not None
    assert a.server.command.argv == (f"{tmp_path}/run", "eu", "me", str(Path.home()))
    assert a.server.command.env == {"A": "1", "B": "two words", "KEY": "k"}
    assert a.server.command.cwd == tmp_path / "sub"
    assert b.server is not None
    assert b.server.url == "https://x.example/eu"
    without = read_servers(file, Surroundings(tmp_path, env={"WHO": "me"}))
    assert without[0].fault == f"{file}: a.env/KEY: needs the input 'key' (The key)"
    assert without[1].server is not None


def test_a_file_of_toolnexus_is_read_without_its_agents(tmp_path: Path) -> None:
    file = tmp_path / "toolnexus.json"
    data: dict[str, Any] = {
        "mcp": {
            "list": {"command": ["python", "server.py"], "environment": {"A": "1"}, "cwd": "/x", "timeout": 5000},
            "text": {"command": "server", "enabled": False},
            "off": {"url": "https://x.example/", "disabled": True, "headers": {"X": "${UNSET}"}},
            "some": {"url": "https://x.example/", "tools": {"a": True, "b": False}},
        },
        "agents": {"one": {"card": "https://x.example/card"}},
        "builtins": {},
    }
    file.write_text(json.dumps(data))
    entries = {one.name: one for one in read_servers(file, Surroundings(tmp_path, env={}))}
    assert list(entries) == ["list", "text", "off", "some"]
    server = entries["list"].server
    assert server is not None
    assert server.command is not None
    assert (server.command.argv, server.command.env, server.call_timeout) == (("python", "server.py"), {"A": "1"}, 5.0)
    assert [entries["text"].enabled, entries["off"].enabled, entries["off"].fault] == [False, False, ""]
    some = entries["some"].server
    assert some is not None
    assert [name for name in "abc" if some.offers(name)] == ["a"]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"command": "a b"}, ("a b",)),
        ({"command": "a", "args": ["b;c", "$(d)"]}, ("a", "b;c", "$(d)")),
        ({"command": ["a", "b"], "args": ["c"]}, ("a", "b", "c")),
        ({"cmd": "a", "args": [1, True]}, ("a", "1", "true")),
        ({"command": {"path": "a", "args": ["b"], "env": {"X": "1"}}}, ("a", "b")),
        ({"type": "local", "command": ["a"]}, ("a",)),
    ],
)
def test_commands_are_read_in_every_spelling(entry: Any, expected: tuple[str, ...]) -> None:
    assert argv(entry) == expected


@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        ({"url": "https://x/"}, "auto"),
        ({"httpUrl": "https://x/"}, "http"),
        ({"serverUrl": "https://x/"}, "auto"),
        ({"uri": "https://x/", "type": "streamable_http"}, "http"),
        ({"url": "https://x/", "type": "streamableHttp"}, "http"),
        ({"url": "https://x/", "type": "remote"}, "http"),
        ({"url": "https://x/", "transport": "sse"}, "sse"),
    ],
)
def test_urls_are_read_in_every_spelling(entry: Any, transport: str) -> None:
    assert good(entry).transport == transport


@pytest.mark.parametrize(
    ("entry", "token", "oauth"),
    [
        ({"bearer_token_env_var": "T"}, "s3cret", None),
        ({"auth": "abc"}, "abc", None),
        ({"auth": "oauth"}, "", ("authorization_code", "", "")),
        ({"oauth": True}, "", ("authorization_code", "", "")),
        ({"oauth": False}, "", None),
        ({"oauth": {"clientId": "c", "clientSecret": "${T}", "scope": "a"}}, "", ("authorization_code", "c", "a")),
        ({"auth": {"CLIENT_ID": "c", "scopes": ["a", "b"]}}, "", ("authorization_code", "c", "a b")),
        (
            {"oauth": {"grant": "client_credentials", "client_id": "c", "client_secret": "x"}},
            "",
            ("client_credentials", "c", ""),
        ),
    ],
)
def test_credentials_are_read_in_every_spelling(entry: Any, token: str, oauth: Any) -> None:
    server = good({"url": "https://x/", **entry}, env={"T": "s3cret"})
    assert server.token == token
    found = server.oauth
    assert (None if found is None else (found.grant, found.client_id, found.scope)) == oauth
    assert server.login is (entry.get("oauth") is not False)
    assert "s3cret" not in repr(server)


@pytest.mark.parametrize(
    ("entry", "offered"),
    [
        ({"tools": ["a", "b*"]}, "a bb"),
        ({"tools": ["*"]}, "a bb c"),
        ({"tools": {"a": False}}, "bb c"),
        ({"tools": {"a": {"approval_mode": "auto"}}}, "a bb c"),
        ({"includeTools": ["a", "c(x)"], "excludeTools": ["a"]}, "c"),
        ({"enabled_tools": ["a", "bb"], "disabled_tools": ["bb"]}, "a"),
        ({"disabledTools": ["a"]}, "bb c"),
    ],
)
def test_tools_are_allowed_and_denied_in_every_spelling(entry: Any, offered: str) -> None:
    server = good({"command": "x", **entry})
    assert [name for name in ("a", "bb", "c") if server.offers(name)] == offered.split()


TIMES: list[tuple[dict[str, Any], str, float, float | None]] = [
    ({}, "mcp.json", 15.0, None),
    ({"timeout": 5000}, "mcp.json", 15.0, 5.0),
    ({"timeout": 5}, "cline_mcp_settings.json", 15.0, 5.0),
    ({"startup_timeout_sec": 3, "tool_timeout_sec": 7}, "config.toml", 3.0, 7.0),
    ({"connectionTimeout": 3000, "requestTimeout": 7000}, "mcp.json", 3.0, 7.0),
    ({"timeout": 0}, "mcp.json", 15.0, None),
    ({"timeout": 60}, "mcp.json", 15.0, None),
    ({"timeout": 60}, "/home/me/.config/goose/config.yaml", 15.0, 60.0),
    ({"timeout": 60}, "/home/kangaroo/mcp.json", 15.0, None),
]


@pytest.mark.parametrize(("entry", "where", "connect", "call"), TIMES)
def test_times_are_read_in_the_unit_of_their_file(entry: Any, where: str, connect: float, call: float | None) -> None:
    [found] = entries_of({"s": {"command": "x", **entry}}, Surroundings(Path("/f"), env={}), where=where)
    assert found.server is not None
    assert (found.server.connect_timeout, found.server.call_timeout) == (connect, call)


@pytest.mark.parametrize(("text", "era"), [("legacy", "legacy"), ("modern", "modern"), ("2025-06-18", "legacy")])
def test_the_era_is_read(text: str, era: str) -> None:
    assert good({"command": "x", "protocolEra": text}).era == era


def test_b056_placeholders_are_filled_in_once_everywhere(tmp_path: Path) -> None:
    """mastra-ai/mastra#18240: placeholders are sent as they stand, or only work in some fields."""
    env = {"TOK": "s3$1\\2${HOME}"}
    (tmp_path / "key").write_text("from file\n")
    remote = good({"url": "http://h/${P:-x}", "headers": {"Authorization": "Bearer ${TOK}", "H": "$HOME"}}, env=env)
    assert remote.url == "http://h/x"
    assert remote.headers == {"Authorization": "Bearer s3$1\\2${HOME}", "H": "$HOME"}
    child = {"command": "${CMD:-run}", "args": ["--k=${TOK}", "$${TOK}", "{env:TOK}", "${file:key}", "{file:key}"]}
    assert good(child, tmp_path, env=env).command is not None
    command = good({**child, "env": {"A": "${TOK}"}}, tmp_path, env=env).command
    assert command is not None
    assert command.argv == ("run", "--k=s3$1\\2${HOME}", "${TOK}", env["TOK"], "from file", "from file")
    assert command.env == {"A": env["TOK"]}


def test_b056_an_unset_variable_costs_its_server_only_and_is_named(tmp_path: Path) -> None:
    """agentscope-ai/QwenPaw#1623: an unexpanded placeholder takes the whole application down."""
    file = tmp_path / "anykit.json"
    servers = {
        "bad": {"url": "http://h/", "headers": {"A": "Bearer ${TOK}", "X": "$HOME ${MISSING}"}},
        "good": {"command": "x"},
    }
    file.write_text(json.dumps({"mcpServers": servers}))
    bad, fine = read_servers(file, Surroundings(tmp_path, env={"TOK": "s3cret"}))
    assert bad.server is None
    assert bad.fault.startswith(f"{file}: bad.headers/X: the environment variable MISSING is not set")
    assert "s3cret" not in bad.fault
    assert fine.server is not None
    assert "${MISSING}" in file.read_text()


FAULTS: list[tuple[Any, str]] = [
    (7, "s: must be an object"),
    ({}, "s: has neither a `command` nor a `url`"),
    ({"type": "stdio"}, "s.command: is missing"),
    ({"type": "smoke"}, "s.type: there is no transport 'smoke'; it is stdio, http or sse"),
    ({"command": "a", "url": "https://x/"}, "s: has a command and a url; leave one out, or say which with `type`"),
    ({"command": "a", "args": "b"}, "s.args: must be a list"),
    ({"command": "a", "env": ["b"]}, "s.env: must be an object"),
    ({"command": "a", "args": [{}]}, "s.args/0: must be a text"),
    ({"url": "ftp://x/"}, "s: an MCP server is reached over http or https, not 'ftp'"),
    ({"url": "https://"}, "s: the URL names no host"),
    ({"url": "https://x/", "headers": {"A": "b\r\nC: d"}}, "s: the header A must be one line"),
    ({"command": "a", "timeout": "soon"}, "s.timeout: must be a number of milliseconds"),
    ({"command": "a", "envFile": "gone"}, "s.envFile: the file 'gone' cannot be read: No such file or directory"),
    ({"command": "a\0b"}, "s: a command and its environment must not contain NUL or lone surrogates"),
    (
        {"url": "https://x/", "oauth": {"grant": "magic"}},
        "s.oauth/grant: is authorization_code or client_credentials",
    ),
    ({"command": "a", "era": "stone"}, "s: there is no protocol era 'stone'"),
]


@pytest.mark.parametrize(("entry", "fault"), FAULTS)
def test_what_is_wrong_with_an_entry_is_said_with_its_place(entry: Any, fault: str) -> None:
    assert read(entry).fault.startswith(fault)


def test_keys_that_mean_nothing_are_told() -> None:
    found = read({"command": "a", "colour": {}, "gallery": True, "description": "d", "required": True})
    assert found.ignored == ("colour", "gallery")
    assert (found.description, found.required) == ("d", True)


@pytest.mark.parametrize(
    "data",
    [
        {"mcpServers": {"a": {"command": "x"}}},
        {"servers": {"a": {"command": "x"}}},
        {"mcp_servers": {"a": {"command": "x"}}},
        {"context_servers": {"a": {"command": "x"}}},
        {"extensions": {"a": {"cmd": "x"}}},
        {"mcp": {"a": {"command": ["x"]}, "timeout": 5}},
        {"mcp": {"servers": {"a": {"command": "x"}}}},
        {"a": {"command": "x"}, "$schema": "y", "agents": {}},
    ],
)
def test_the_servers_are_found_wherever_a_client_puts_them(data: Any, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(json.dumps(data))
    assert is_server_file(data)
    assert "a" in [one.name for one in read_servers(file)]


def test_other_files_are_none(tmp_path: Path) -> None:
    assert not is_server_file({"openapi": "3.1.0", "servers": [{"url": "https://x/"}], "paths": {}})
    assert not is_server_file({"mcp": {"allowed": ["x"]}})
    for text, why in (
        ("[]", "must hold an object"),
        ("{", "Expecting"),
        ("{}", "no servers in it"),
        ("\xff", "not UTF-8"),
    ):
        file = tmp_path / "bad.json"
        file.write_bytes(text.encode("latin-1"))
        with pytest.raises(Misfit, match=why):
            read_servers(file)
    with pytest.raises(Misfit, match="cannot be read"):
        read_servers(tmp_path / "gone.json")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.toml", '[mcp_servers.a]\ncommand = "x"\n'),
        ("config.yaml", "extensions:\n  a:\n    cmd: x\n"),
        ("config.jsonc", '{"servers": {"a": {"command": "x"}} /* end */ }'),
    ],
)
def test_other_formats_are_read(name: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(text)
    [only] = read_servers(file)
    assert only.server is not None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "// no /* comment */", "b": 1}', {"a": "// no /* comment */", "b": 1}),
        ('{"a": [1, 2, /* x */ ], // y\n "b": "\\"//",}', {"a": [1, 2], "b": '"//'}),
        ('{"u": "https://x/", }', {"u": "https://x/"}),
        ('{"t": ",}",\n// a\n/* b */\n}', {"t": ",}"}),
    ],
)
def test_comments_and_trailing_commas_go(text: str, value: Any) -> None:
    assert json.loads(without_comments(text)) == value
    assert without_comments(text).count("\n") == text.count("\n")


def test_claude_desktop_fills_nothing_in(tmp_path: Path) -> None:
    file = tmp_path / "claude_desktop_config.json"
    file.write_text('{"mcpServers": {"a": {"command": "x", "args": ["${HOME}"]}}}')
    [only] = read_servers(file)
    assert only.server is not None
    assert only.server.command is not None
    assert only.server.command.argv == ("x", "${HOME}")
