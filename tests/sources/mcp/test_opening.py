"""From the operator's configuration to sources."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import SecretStr

from anykit.app.config import SourceConfig
from anykit.app.opening import Opening
from anykit.runtime import Source
from anykit.sources.mcp import McpSource, Misfit, Offers, Opened, open_file, open_mcp, open_servers
from anykit.sources.mcp.vault import Forgetful


def opening(folder: Path, **env: str) -> Opening:
    return Opening(folder=folder, env=env, connect_timeout=3.0)


def server(opened: Opened) -> Any:
    assert opened.failed is None, opened.failed
    assert isinstance(opened.provider, McpSource)
    return opened.provider.server


def test_what_is_opened_is_what_the_catalogue_takes() -> None:
    assert {one.name for one in fields(Opened)} <= {one.name for one in fields(Source)}
    made = open_mcp(SourceConfig(command="x", name="n"), opening(Path("/f")))
    source = Source(**{one.name: getattr(made, one.name) for one in fields(made)})
    assert (source.name, source.kind, source.prefixed) == ("n", "mcp", True)


def test_a_command_is_opened(tmp_path: Path) -> None:
    config = SourceConfig(command="npx", args=["-y", "@scope/server-files@1.2", "${X}"], env={"A": "${B}"}, cwd="sub")
    made = open_mcp(config, opening(tmp_path))
    command = server(made).command
    assert command.argv == (
        "npx",
        "-y",
        "@scope/server-files@1.2",
        "${X}",
    )  # the file's references are filled in before
    assert command.env == {"A": "${B}"}
    assert command.cwd == tmp_path / "sub"
    assert made.name == "server-files"
    assert server(made).connect_timeout == 3.0


@dataclass
class Richer:
    """A table with keys that are still to come."""

    url: str = "https://api.x.example/mcp"
    name: str | None = None
    token: SecretStr | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    oauth: dict[str, Any] | None = None
    era: str | None = None
    transport: str | None = None
    timeout: float | None = None
    allow: list[str] = field(default_factory=list[str])
    deny: list[str] = field(default_factory=list[str])


def test_a_url_is_opened_with_all_its_options() -> None:
    config = Richer(
        token=SecretStr("s3cret"),
        headers={"X": "${Y}"},
        era="legacy",
        transport="sse",
        timeout=7,
        allow=["a*"],
        deny=["ab"],
    )
    made = open_mcp(config, opening(Path("/f")), vault=Forgetful(), offers=Offers(questions=False))
    found = server(made)
    assert (found.url, found.token, found.headers) == ("https://api.x.example/mcp", "s3cret", {"X": "${Y}"})
    assert (found.era, found.transport, found.call_timeout) == ("legacy", "sse", 7.0)
    assert [name for name in ("a", "ab", "b") if found.offers(name)] == ["a"]
    assert (made.name, made.location) == ("api_x_example", "https://api.x.example/mcp")
    assert isinstance(made.provider, McpSource)
    assert not made.provider.offers.questions
    assert "s3cret" not in repr(made)


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["npx", "-y", "@modelcontextprotocol/server-everything"], "server-everything"),
        (["uvx", "mcp-server-git==1.2"], "mcp-server-git"),
        (["uv", "tool", "run", "mcp-server-git"], "mcp-server-git"),
        (["python3.11", "/srv/tools.py"], "tools"),
        (["/opt/bin/weather.sh", "--fast"], "weather"),
        (["node"], "node"),
    ],
)
def test_a_source_without_a_name_is_called_after_what_it_runs(argv: list[str], name: str) -> None:
    assert open_mcp(SimpleNamespace(command=argv), opening(Path("/f"))).name == name


@pytest.mark.parametrize(
    "config", [SimpleNamespace(), SimpleNamespace(url="ftp://x"), SimpleNamespace(command=["a\0"])]
)
def test_what_cannot_be_opened_is_a_source_that_says_why(config: Any) -> None:
    made = open_mcp(config, opening(Path("/f")))
    assert made.provider is None
    assert made.failed


def test_a_file_gives_one_source_a_server_each_for_itself(tmp_path: Path) -> None:
    servers = {
        "good": {"command": "x"},
        "unset": {"url": "https://x/${NOPE}"},
        "off": {"command": "x", "disabled": True},
        "must": {"url": "https://x/${HERE}", "required": True},
    }
    (tmp_path / "anykit.json").write_text(json.dumps({"mcpServers": servers}))
    good, unset, off, must = open_file("anykit.json", opening(tmp_path, HERE="y"))
    assert server(good).command.argv == ("x",)
    assert good.location == "x"
    assert unset.failed is not None
    assert "NOPE is not set" in unset.failed
    assert unset.location == str(tmp_path / "anykit.json")
    assert (off.disabled, off.provider) == ("switched off in the configuration", None)
    assert (must.required, server(must).url) == (True, "https://x/y")
    assert [one.name for one in open_servers(servers, opening(tmp_path, HERE="y"))] == list(servers)


def test_a_file_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(Misfit):
        open_file("gone.json", opening(tmp_path))
