"""Secrets in plain text: which values are taken for one, which files are looked at, and what git says of them."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from anykit import Toolkit, tool
from anykit.app import parse_config
from anykit.app.doctor import Case, Finding
from anykit.app.doctor.exposure import GitSilent, exposure, kind_of, secrets_in, tracked_by_git
from anykit.runtime import Catalog, Source

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

KEY = "sk-" + "ant-api03-" + "Zx8vLq2Rt6Yw9Kp4Md1Nf7Hs3Bg5"
"""Put together, so that no scanner takes this file for one that holds a key."""


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, timeout=10)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    return folder


def case(folder: Path, text: str, *sources: Source, **more: Any) -> Case:
    """A file of ours with that text, 0600, and the sources."""
    file = folder / "anykit.toml"
    file.write_text(text)
    file.chmod(0o600)
    catalog = Catalog()
    if sources:
        catalog.add(*sources)
    return Case(parse_config(tomllib.loads(text), file), env={}, snapshot=catalog.snapshot, home=folder, **more)


def only(examined: Case) -> Finding:
    (finding,) = exposure(examined)
    return finding


# what is taken for a secret


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("note", KEY),
        ("x", "ghp_" + "a1B2" * 9),
        ("x", "github_pat_" + "a1B2" * 9),
        ("x", "glpat-" + "abcDEF12345678901234"),
        ("x", "xoxb-" + "1234567890-abcdef"),
        ("x", "AKIA" + "ABCDEFGHIJKLMNOP"),
        ("x", "AIza" + "a" * 35),
        ("x", "eyJhbGciOiJI" + "." + "eyJzdWIiOiIx" + "." + "abcdefghijkl"),
        ("x", "-----BEGIN RSA PRIVATE " + "KEY-----\nMII"),
        ("url", "postgres://app:hunter22@db/x"),
        ("url", "https://h/mcp?api_key=abcdefgh1234"),
        ("url", "https://h/mcp?a=1&token=abcdefgh1234"),
        ("Authorization", "Bearer some-long-token-value"),
        ("api_key", "some-value"),
        ("apiKey", "some-value"),
        ("X-Api-Key", "some-value"),
        ("DB_PASSWORD", "hunter22"),
        ("client_secret", "some-value"),
        ("GITHUB_TOKEN", "some-value"),
        ("anything", "q8Zr3vXk9Lw2Tn7Yb4Mc6Pf1Hs5Dg0Ja"),
        ("anything", "d41d8cd98f00b204e9800998ecf8427e"),
        ("token", "${TOKEN:-" + KEY + "}"),
    ],
)
def test_it_is_a_secret(key: str, value: str) -> None:
    assert kind_of(("table", key), value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("token", "${TOKEN}"),
        ("Authorization", "Bearer ${TOKEN}"),
        ("url", "postgres://app:${PASSWORD}@db/x"),
        ("url", "https://h/mcp?api_key=${KEY}"),
        ("token", "{env:TOKEN}"),
        ("token", "$TOKEN"),
        ("token", "file:token.txt"),
        ("token", "keyring:a/b"),
        ("token", "${input:token}"),
        ("token", "<your token>"),
        ("api_key", "your-api-key-here"),
        ("api_key", "changeme"),
        ("password", "********"),
        ("token", ""),
        ("token", "xxx"),
        ("auth", "oauth"),
        ("bearer_token_env_var", "GITHUB_TOKEN"),
        ("token_url", "https://h/oauth/token"),
        ("max_tokens", "100000"),
        ("command", "/usr/local/lib/node_modules/server/dist/index.js"),
        ("description", "Finds the customer whose name is given, or all of them"),
        ("id", "3f2504e0-4f89-11d3-9a0c-0305e82c3301"),
        ("package", "@modelcontextprotocol/server-filesystem"),
        ("sha256", "d41d8cd98f00b204e9800998ecf8427e"),
        ("target", "./tools.py"),
    ],
)
def test_it_is_none(key: str, value: str) -> None:
    assert kind_of(("table", key), value) == ""


def test_secrets_on_a_command_line_are_found(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    arguments = [
        "server",
        "--api-key",
        "some-value",
        "--token=other-value",
        "--token",
        "${TOKEN}",
        "--verbose",
        "--auth",
        "-x",
    ]
    file.write_text(json.dumps({"mcpServers": {"a": {"command": "x", "args": arguments}}}))
    assert [one.key for one in secrets_in(file)] == ["mcpServers.a.args.2", "mcpServers.a.args.3"]


def test_a_field_that_a_toolkits_schema_calls_secret_is_one_whatever_its_name(tmp_path: Path) -> None:
    class Rain(Toolkit):
        """Rains."""

        name = "rain"

        class Config(BaseModel):
            region: SecretStr
            zone: str = ""

        @tool
        def fall(self) -> str:
            """Falls."""
            return ""

    text = '[toolkits.rain.config]\nregion = "north-7"\nzone = "north-7"\n'
    examined = case(tmp_path, text, Source("rain", "toolkit", toolkits=(Rain,)))
    assert [(one.key, one.what) for one in secrets_in(tmp_path / "anykit.toml", examined.snapshot)] == [
        ("toolkits.rain.config.region", "a secret of that toolkit")
    ]


# where they stand


def test_a_secret_in_a_file_that_git_tracks_is_an_error_that_shows_no_value(repository: Path) -> None:
    examined = case(repository, f'[serve]\ntoken = "{KEY}"\n')
    assert list(exposure(examined)) == []
    git(repository, "add", "anykit.toml")
    told = only(examined)
    assert (told.code, told.severity, told.where) == ("secret_in_git", "error", "anykit.toml: serve.token")
    assert KEY not in json.dumps(told.to_json())
    assert "${TOKEN}" in told.fix


def test_a_file_that_git_ignores_is_in_peace_unless_others_can_read_it(repository: Path) -> None:
    (repository / ".gitignore").write_text("anykit.toml\n")
    git(repository, "add", ".gitignore")
    examined = case(repository, f'[serve]\ntoken = "{KEY}"\n')
    assert list(exposure(examined)) == []
    (repository / "anykit.toml").chmod(0o644)
    told = only(examined)
    assert (told.code, told.severity) == ("secret_readable", "warning")
    assert "chmod 600" in told.fix


def test_clients_files_and_dotenv_files_are_looked_at_too(repository: Path) -> None:
    (repository / "mcp.json").write_text(json.dumps({"mcpServers": {"a": {"command": "x", "env": {"K": KEY}}}}))
    (repository / ".env").write_text(
        f"# a comment\nexport A={KEY}\nB=plain\nC='other-value'\nDB_PASSWORD=\"hunter22\"\n"
    )
    examined = case(repository, 'sources = ["mcp.json"]\n')
    git(repository, "add", "-A")
    assert [one.where for one in exposure(examined)] == [
        "mcp.json: mcpServers.a.env.K",
        ".env: A",
        ".env: DB_PASSWORD",
    ]


def test_outside_of_a_repository_nobody_asks_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert tracked_by_git([tmp_path / "x.toml"]) == set()


def test_where_git_cannot_be_asked_that_is_said(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository))
    with pytest.raises(GitSilent, match="not installed"):
        tracked_by_git([repository / "x.toml"])


def test_nothing_that_a_repositorys_settings_name_is_run(repository: Path) -> None:
    marker = repository / "ran"
    hook = repository / "hook.sh"
    hook.write_text(f"#!/bin/sh\ntouch {marker}\n")
    hook.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(hook))
    (repository / "a.toml").write_text("")
    assert tracked_by_git([repository / "a.toml"]) == set()
    assert not marker.exists()


def test_a_variable_of_git_does_not_lead_it_elsewhere(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "a.toml").write_text("")
    git(repository, "add", "a.toml")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert tracked_by_git([repository / "a.toml"]) == {repository / "a.toml"}


# the data folder


def test_a_key_and_records_that_others_can_read_are_told(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    (data / "secret.key").write_text("x")
    (data / "secret.key").chmod(0o644)
    told = only(case(tmp_path, "", data_dir=data))
    assert (told.code, told.severity) == ("data_readable", "error")
    assert "chmod" in told.fix
    (data / "secret.key").chmod(0o600)
    assert list(exposure(case(tmp_path, "", data_dir=data))) == []


def test_a_folder_for_its_owner_alone_is_fine(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "anykit.sqlite3").write_text("x")
    assert list(exposure(case(tmp_path, "", data_dir=data))) == []
    assert list(exposure(case(tmp_path, "", data_dir=tmp_path / "none"))) == []
