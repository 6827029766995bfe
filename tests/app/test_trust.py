"""What a person agreed to: by path and by what the file defines, kept so that nobody else writes it."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anykit.app import ConfigError
from anykit.app.trust import RECORD, NotTrusted, Trust, definitions


@pytest.fixture
def trust(tmp_path: Path) -> Trust:
    return Trust(tmp_path / "data")


def written(folder: Path, text: str, name: str = "anykit.toml") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_a_file_is_trusted_once_somebody_agreed_and_until_it_is_taken_back(tmp_path: Path, trust: Trust) -> None:
    file = written(tmp_path, 'sources = ["tools.py", {command = "npx", args = ["-y", "x"]}]\n')
    standing = trust.check(file)
    assert standing.state == "untrusted"
    assert standing.asks == ("source tools.py: imports it", "source runs npx -y x")
    with pytest.raises(NotTrusted):
        trust.require(file)
    assert trust.grant(file) == standing.asks
    assert trust.check(file).is_trusted
    trust.require(file)
    assert trust.revoke(file)
    assert not trust.revoke(file)
    assert trust.check(file).state == "untrusted"


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [
        ('sources = ["a.py"]', '# why\nsources = [ "a.py" ]', "trusted"),
        ('sources = ["a.py"]', '[[sources]]\ntarget = "a.py"\nenabled = false', "trusted"),
        ('sources = ["a.py", "b.py"]', 'sources = ["b.py"]', "trusted"),
        ('sources = ["a.py"]', 'sources = ["a.py"]\n[limits]\nqueue = 3\n[serve]\nport = 1', "trusted"),
        ('sources = ["a.py"]', 'sources = ["a.py", "b.py"]', "changed"),
        ('sources = [{command = "x", args = ["1"]}]', 'sources = [{command = "x", args = ["2"]}]', "changed"),
        ('sources = [{command = "x"}]', 'sources = [{command = "x", env = {LD_PRELOAD = "y"}}]', "changed"),
        ('sources = [{url = "http://a"}]', 'sources = [{url = "http://a", headers = {A = "${S}"}}]', "changed"),
        ('[agents.a]\ncard = "http://a"', '[agents.a]\ncard = "http://b"', "changed"),
        ("", '[[a2e.plugins]]\nname = "p"\ntype = "tools"\ncls = "m.C"', "changed"),
        ("", '[toolkits.filesystem.config]\nroot_dir = "/"', "changed"),
        ("", '[bounds]\nroots = ["/"]', "changed"),
        ("", '[serve]\nhost = "0.0.0.0"', "changed"),
    ],
)
def test_what_a_file_starts_is_asked_again_and_nothing_else(
    tmp_path: Path, trust: Trust, before: str, after: str, state: str
) -> None:
    file = written(tmp_path, before)
    trust.grant(file)
    written(tmp_path, after)
    assert trust.check(file).state == state


@pytest.mark.parametrize("key", ["mcpServers", "servers", "mcp_servers", "context_servers"])
def test_the_servers_of_a_clients_file_are_what_it_defines(tmp_path: Path, trust: Trust, key: str) -> None:
    servers: dict[str, Any] = {"a": {"command": "x"}, "b": {"url": "https://u:p@h.example/mcp?token=s"}}
    file = written(tmp_path, json.dumps({key: servers}), ".mcp.json")
    asks = trust.check(file).asks
    assert asks == ("server a: runs x", "server b: https://h.example/mcp?...: connects to it")
    trust.grant(file)
    file.write_text(json.dumps({key: {**servers, "a": {"command": "x", "disabled": True}}}))
    assert trust.check(file).is_trusted
    file.write_text(json.dumps({key: {**servers, "c": {"command": "y", "headersHelper": "z"}}}))
    assert trust.check(file).state == "changed"


def test_servers_and_sources_of_one_file_of_ours_are_both_looked_at(tmp_path: Path, trust: Trust) -> None:
    file = written(tmp_path, json.dumps({"mcpServers": {"a": {"command": "x"}}, "sources": ["t.py"]}), "anykit.json")
    assert trust.check(file).asks == ("server a: runs x", "source t.py: imports it")


def test_a_file_of_servers_that_belongs_to_the_project_is_part_of_it(tmp_path: Path, trust: Trust) -> None:
    servers = written(tmp_path, '{"mcpServers": {"a": {"command": "x"}}}', "mcp.json")
    file = written(tmp_path, 'sources = ["mcp.json"]\n')
    trust.grant(file)
    servers.write_text('{"mcpServers": {"a": {"command":   "x"}}}')
    assert trust.check(file).is_trusted
    servers.write_text('{"mcpServers": {"a": {"command": "evil"}}}')
    assert trust.check(file).state == "changed"


def test_variables_that_would_be_handed_over_are_named_and_secrets_are_not_shown(tmp_path: Path, trust: Trust) -> None:
    file = written(tmp_path, '[[sources]]\nurl = "https://u:pass@h.example/x?key=s3cret"\nheaders = {A = "${TOKEN}"}\n')
    [ask] = trust.check(file).asks
    assert "TOKEN" in ask
    assert "s3cret" not in ask
    assert "pass" not in ask


def test_another_path_and_another_target_of_a_link_are_other_files(tmp_path: Path, trust: Trust) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
        written(folder, 'sources = ["a.py"]')
    link = tmp_path / "anykit.toml"
    link.symlink_to(one / "anykit.toml")
    trust.grant(link)
    assert trust.check(one / "anykit.toml").is_trusted
    link.unlink()
    link.symlink_to(two / "anykit.toml")
    assert trust.check(link).state == "untrusted"


def test_the_record_is_the_persons_own(tmp_path: Path, trust: Trust) -> None:
    file = written(tmp_path, 'sources = ["a.py"]')
    trust.grant(file)
    assert stat.S_IMODE(trust.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(trust.path.parent.stat().st_mode) == 0o700
    trust.path.chmod(0o666)
    with pytest.raises(ConfigError, match="others can write it"):
        trust.check(file)


@pytest.mark.parametrize("text", ["", "[]", '{"files": 5}', '{"files": {"/x": {}}}', "\xff"])
def test_a_record_that_is_broken_trusts_nothing(tmp_path: Path, trust: Trust, text: str) -> None:
    trust.path.parent.mkdir()
    trust.path.write_bytes(text.encode("latin-1"))
    trust.path.chmod(0o600)
    with pytest.raises(ConfigError, match=RECORD):
        trust.check(written(tmp_path, 'sources = ["a.py"]'))


def test_what_is_added_to_a_file_is_trusted_and_what_was_in_it_is_not(tmp_path: Path, trust: Trust) -> None:
    before: dict[str, Any] = {"sources": [{"command": "evil"}]}
    after: dict[str, Any] = {"sources": [{"command": "evil"}, "mine.py"]}
    file = written(tmp_path, json.dumps(after), "anykit.json")
    trust.grant_data(file, after, besides=before)
    assert trust.check(file).asks == ("source runs evil",)
    trust.grant_data(file, after)
    assert trust.check(file).is_trusted


def test_a_file_that_cannot_be_read_is_never_trusted(tmp_path: Path, trust: Trust) -> None:
    file = written(tmp_path, 'sources = ["a.py"]')
    trust.grant(file)
    file.write_text("sources = [")
    with pytest.raises(ConfigError):
        trust.check(file)
    with pytest.raises(ConfigError):
        trust.grant(tmp_path / "nowhere.toml")


def test_many_at_once_lose_nothing_of_each_other(tmp_path: Path, trust: Trust) -> None:
    files = [written(tmp_path, f'sources = ["{n}.py"]', f"{n}.toml") for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(Trust(trust.path.parent).grant, file) for file in files]
    assert all(one.result() for one in asked)
    assert [one.file for one in trust.files()] == sorted(files)


KEYS = st.sampled_from(["sources", "agents", "mcpServers", "servers", "toolkits", "a2e", "serve", "x"])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.dictionaries(KEYS, JSON, max_size=4))
def test_anything_that_a_file_may_hold_can_be_looked_at(data: dict[str, Any]) -> None:
    folder = Path("/nonexistent")
    assert definitions(data, folder) == definitions(json.loads(json.dumps(data)), folder)
