"""Skills on the command line: listed, loaded, and held against the specification."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.hosts import listening
from cli.running import anykit
from sources.skills.making import VECTORS, make_skill


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without a configuration, of a person without skills."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


def test_skills_are_listed_with_their_files_and_toolkits(tmp_path: Path) -> None:
    make_skill(tmp_path / "s", "pdf", more="metadata: {toolkits: a b}\n", files={"x.md": b""})
    done = anykit("list", "skills", str(tmp_path / "s"))
    assert (done.code, done.rows) == (0, [["pdf", "2", "a, b", "s", "Does what it is for."]])
    [row] = anykit("list", "skills", str(tmp_path / "s"), "--json").json
    assert row == {
        "name": "pdf",
        "description": "Does what it is for.",
        "source": "s",
        "location": str(tmp_path / "s/pdf/SKILL.md"),
        "scope": "given",
        "files": ["SKILL.md", "x.md"],
        "toolkits": ["a", "b"],
        "reports": [],
    }
    every = anykit("list", str(tmp_path / "s"), "--json").json
    assert {row["type"] for row in every} == {"tool", "resource", "skill", "source"}


def test_a_skill_is_loaded_by_a_call(tmp_path: Path) -> None:
    make_skill(tmp_path / "s", "pdf", files={"x.md": b"told"})
    done = anykit("call", "-s", str(tmp_path / "s"), "skill", "name=pdf")
    assert done.code == 0
    assert done.out.startswith('<skill_content name="pdf">\n# Steps')
    assert anykit("call", "-s", str(tmp_path / "s"), "skill", "name=pdf", "file=x.md").out == "told\n"
    assert anykit("call", "-s", str(tmp_path / "s"), "skill", "name=pdg").code == 2


def test_skills_of_a_running_host_are_listed_and_loaded(tmp_path: Path) -> None:
    make_skill(tmp_path / "here/s", "pdf", more="metadata: {toolkits: a}\n", files={"x.md": b"told"})
    with listening(tmp_path / "here", "./s") as host:
        [row] = anykit("list", "skills", "--connect", host.url).rows
        assert row == ["pdf", "0", "a", host.url, "Does what it is for."]
        done = anykit("call", "--connect", host.url, "skill", "name=pdf", "file=x.md")
        assert (done.code, done.out) == (0, "told\n")


def test_a_folder_of_skills_is_added(tmp_path: Path) -> None:
    make_skill(tmp_path / "here/skills", "pdf")
    assert anykit("add", "./skills").code == 0
    assert [row[0] for row in anykit("list", "skills").rows] == ["pdf"]


def test_what_lies_in_a_project_is_listed_once_it_is_trusted(tmp_path: Path) -> None:
    make_skill(tmp_path / "here/.agents/skills", "theirs")
    make_skill(tmp_path / "home/.agents/skills", "mine")
    done = anykit("list", "skills", "anykit:skills")
    assert [row[0] for row in done.rows] == ["mine"]
    assert "nobody has agreed to it; if you do: anykit trust" in done.err
    assert anykit("trust", ".agents/skills").code == 0
    assert [row[0] for row in anykit("list", "skills", "anykit:skills").rows] == ["theirs", "mine"]


def test_validate_tells_what_is_odd_and_what_is_left_out(tmp_path: Path) -> None:
    make_skill(tmp_path, "plain-colon", "a: b")
    make_skill(tmp_path, "broken", raw=b"# no\n")
    make_skill(tmp_path, "good")
    done = anykit("validate", str(tmp_path), "--json")
    assert done.code == 6
    found = {(one["level"], Path(one["where"]).parent.name) for one in done.json}
    assert found == {("warning", "plain-colon"), ("error", "broken")}
    assert anykit("validate", str(tmp_path / "good")).code == 0


@pytest.mark.parametrize("folder", sorted((VECTORS / "valid").iterdir()), ids=lambda folder: folder.name[:20])
def test_strictly_a_valid_skill_is_valid(folder: Path) -> None:
    done = anykit("validate", "--strict", str(folder))
    assert (done.code, done.out) == (0, "")


@pytest.mark.parametrize("folder", sorted((VECTORS / "invalid").iterdir()), ids=lambda folder: folder.name[:20])
def test_strictly_an_invalid_one_is_not(folder: Path) -> None:
    done = anykit("validate", "--strict", str(folder))
    assert done.code == 6
    assert done.rows[0][0] == "error"


def test_strictly_every_skill_of_a_folder_is_judged() -> None:
    assert anykit("validate", "--strict", str(VECTORS / "valid")).code == 0
    found = anykit("validate", "--strict", str(VECTORS / "invalid"), "--json").json
    named = {Path(one["where"]).name for one in found}
    assert named == {folder.name for folder in (VECTORS / "invalid").iterdir()} - {"no-file"}
