"""`remove`, `enable`, `disable`: the entries of a file by the names that `list sources` shows."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.running import anykit

FILE = """\
# mine
sources = [
    "tools.py", # functions
    {target = "tickets.py", name = "desk"},
    "mcp.json", # servers
]

# remote
[agents.calc]
card = "http://127.0.0.1:9/card.json" # away
"""
SERVERS = '{"mcpServers": {"shop": {"command": "nowhere-at-all"}, "bank": {"command": "nowhere-at-all"}}}'


@pytest.fixture
def file(folder: Path) -> Path:
    place = folder / "anykit.toml"
    place.write_text(FILE)
    (folder / "mcp.json").write_text(SERVERS)
    return place


def data(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text())


def states() -> dict[str, str]:
    listed = anykit("list", "sources", "--json", "--timeout", "3").json
    return {one["name"]: one["state"] for one in listed}


def test_the_names_are_those_that_are_listed(file: Path) -> None:
    assert set(states()) == {"tools", "desk", "shop", "bank", "calc"}
    done = anykit("disable", "tools", "desk", "shop", "calc")
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        "switched off source tools in anykit.toml",
        "switched off source desk in anykit.toml",
        "switched off server shop in anykit.toml",
        "switched off agent calc in anykit.toml",
    ]
    now = states()
    assert {name for name, state in now.items() if state == "disabled"} == {"tools", "desk", "shop", "calc"}
    assert set(now) == {"tools", "desk", "shop", "bank", "calc"}
    assert data(file)["sources"] == [
        {"target": "tools.py", "enabled": False},
        {"target": "tickets.py", "name": "desk", "enabled": False},
        {"target": "mcp.json", "disabled": ["shop"]},
    ]
    for comment in ("# mine", "# functions", "# servers", "# remote", "# away"):
        assert comment in file.read_text()
    assert (file.parent / "mcp.json").read_text() == SERVERS
    assert anykit("enable", "tools", "desk", "shop", "calc").code == 0
    assert "disabled" not in states().values()


def test_what_is_as_it_should_be_is_left_alone(file: Path) -> None:
    before = file.read_bytes()
    done = anykit("enable", "tools")
    assert (done.code, done.out) == (0, "")
    assert "tools is on already" in done.err
    assert file.read_bytes() == before
    assert anykit("enable", "tools", "--json").json == [
        {"name": "tools", "kind": "source", "enabled": True, "changed": False, "file": str(file)}
    ]


@pytest.mark.parametrize("verb", ["remove", "enable", "disable"])
def test_a_name_that_is_not_there_changes_nothing_and_the_nearest_is_proposed(file: Path, verb: str) -> None:
    done = anykit(verb, "calc", "tols")
    assert (done.code, done.out) == (5, "")
    assert "there is no 'tols' in anykit.toml" in done.err
    assert "did you mean:  tools" in done.err
    assert file.read_text() == FILE


@pytest.mark.parametrize("verb", ["remove", "disable"])
def test_a_dry_run_shows_the_diff(file: Path, verb: str) -> None:
    done = anykit(verb, "tools", "--dry-run")
    assert done.code == 0
    assert '-    "tools.py", # functions\n' in done.out
    assert file.read_text() == FILE
    shown = anykit(verb, "tools", "--dry-run", "--json").json
    assert shown["diff"] == done.out


def test_sources_and_agents_are_taken_out_by_name_or_as_they_are_written(file: Path) -> None:
    done = anykit("remove", "mcp.json", "tools", "calc")
    assert done.code == 0, done.err
    assert file.read_text() == ('# mine\nsources = [\n    {target = "tickets.py", name = "desk"},\n]\n\n# remote\n')
    assert anykit("remove", "desk", "--json").json == [
        {"name": "desk", "kind": "source", "removed": True, "file": str(file)}
    ]
    assert data(file)["sources"] == []


def test_a_server_of_a_clients_file_is_switched_off_and_not_taken_out(file: Path) -> None:
    done = anykit("remove", "shop")
    assert done.code == 2
    assert "stands in mcp.json, which is not written here" in done.err
    assert "anykit disable shop" in done.err
    assert file.read_text() == FILE


def test_a_toolkit_is_switched_off(file: Path) -> None:
    assert anykit("disable", "tickets").code == 0
    assert data(file)["toolkits"] == {"tickets": {"enabled": False}}
    assert "tickets" not in {one["name"] for one in anykit("list", "toolkits", "--json", "--timeout", "2").json}
    assert anykit("enable", "tickets").code == 0
    assert "tickets" in {one["name"] for one in anykit("list", "toolkits", "--json", "--timeout", "2").json}
    done = anykit("remove", "tickets")
    assert (done.code, "anykit disable tickets" in done.err) == (2, True)


def test_nothing_is_imported_to_find_a_source(folder: Path) -> None:
    (folder / "loud.py").write_text("from pathlib import Path\nPath('ran').touch()\n")
    (folder / "anykit.toml").write_text('sources = ["loud.py"]\n')
    for argv in (("disable", "loud"), ("enable", "loud"), ("disable", "nobody"), ("remove", "loud")):
        anykit(*argv, trusting=False)
    assert not (folder / "ran").exists()
    assert data(folder / "anykit.toml") == {"sources": []}


@pytest.mark.parametrize("name", ["anykit.json", "anykit.yaml"])
def test_every_form_is_edited(folder: Path, name: str) -> None:
    file = folder / name
    load = json.loads if name.endswith("json") else yaml.safe_load
    assert anykit("add", "tools.py", "tickets.py", "--config", name).code == 0
    assert anykit("disable", "tools", "--config", name).code == 0
    assert load(file.read_text())["sources"] == [{"target": "tools.py", "enabled": False}, "tickets.py"]
    assert anykit("enable", "tools").code == 0
    assert anykit("remove", "tickets").code == 0
    assert load(file.read_text())["sources"] == [{"target": "tools.py", "enabled": True}]
    assert anykit("call", "add", "a=1", "b=2").out == "3\n"


def test_servers_in_a_file_of_ours_are_entries_of_their_own(folder: Path) -> None:
    file = folder / "anykit.json"
    file.write_text(json.dumps({"mcpServers": {"shop": {"command": "nowhere-at-all"}}, "sources": ["tools.py"]}))
    assert anykit("disable", "shop").code == 0
    assert json.loads(file.read_text())["mcpServers"]["shop"]["enabled"] is False
    assert states() == {"tools": "ready", "shop": "disabled"}
    assert anykit("remove", "shop").code == 0
    assert json.loads(file.read_text())["mcpServers"] == {}


def test_two_sources_of_one_name_are_told_apart_by_their_numbers(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "tools.py").write_text((folder / "tools.py").read_text())
    (folder / "anykit.toml").write_text('sources = ["tools.py", "sub/tools.py"]\n')
    assert anykit("disable", "tools_2").code == 0
    assert data(folder / "anykit.toml")["sources"][1] == {"target": "sub/tools.py", "enabled": False}
    assert anykit("remove", "tools").code == 0
    assert data(folder / "anykit.toml")["sources"] == [{"target": "sub/tools.py", "enabled": False}]


def test_a_source_keeps_its_name_while_it_is_off(folder: Path) -> None:
    (folder / "anykit.toml").write_text(
        '[[sources]]\nkind = "mcp"\ncommand = "npx"\nargs = ["-y", "server-shop"]\n[[sources]]\ntarget = "json.tool"\n'
    )
    names = set(states())
    assert anykit("disable", *names).code == 0
    assert states() == dict.fromkeys(names, "disabled")


def test_without_a_file_there_is_nothing_to_edit(folder: Path) -> None:
    done = anykit("disable", "tools")
    assert (done.code, "anykit init" in done.err) == (2, True)


# what is kept


@pytest.fixture
def kept(folder: Path) -> Path:
    assert anykit("add", "tickets.py").code == 0
    done = anykit("configure", "tickets", "url=http://t", "--secret", "api_key", stdin="s3cret\n")
    assert done.code == 0, done.err
    return folder / "anykit.toml"


def is_kept() -> bool:
    return anykit("call", "whoami").out.startswith("http://t s3cret")


def test_what_is_kept_of_a_source_outlives_it_and_is_told_of(kept: Path) -> None:
    done = anykit("remove", "tickets")
    assert done.code == 0
    assert "kept: the configuration of toolkit tickets" in done.err
    assert "anykit remove tickets --forget" in done.err
    anykit("add", "tickets.py")
    assert is_kept()


def test_it_is_forgotten_where_that_is_said_at_once_or_later(kept: Path) -> None:
    assert is_kept()
    done = anykit("remove", "tickets", "--forget")
    assert (done.code, "forgot the configuration of toolkit tickets" in done.err) == (0, True)
    anykit("add", "tickets.py")
    assert not is_kept()


def test_it_is_forgotten_by_name_once_the_source_is_gone(kept: Path) -> None:
    anykit("remove", "tickets")
    done = anykit("remove", "tickets", "--forget")
    assert (done.code, "forgot the configuration of toolkit tickets" in done.err) == (0, True)
    assert anykit("remove", "tickets", "--forget").code == 5


@pytest.mark.parametrize(("typed", "stays"), [("y\n", False), ("\n", True)])
def test_on_a_terminal_it_is_asked(kept: Path, typed: str, stays: bool) -> None:
    done = anykit("remove", "tickets", terminal=True, stdin=typed)
    assert "Forget the configuration of toolkit tickets too? [y/N]" in done.err
    anykit("add", "tickets.py")
    assert is_kept() is stays
