"""`anykit lock`: the first time, a change, and that only a person can agree to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.running import Done, anykit

TOOLS = '''
from anykit import tool

@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b

@tool
def take(a: int, b: int) -> int:
    """Takes one from the other."""
    return a - b
'''


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "tools.py").write_text(TOOLS)
    (folder / "anykit.toml").write_text('sources = ["tools.py"]\n')
    return folder


def lock(*words: str, stdin: str = "", terminal: bool = False) -> Done:
    return anykit("lock", *words, "--config", "anykit.toml", stdin=stdin, terminal=terminal)


def changed(place: Path, old: str = "Adds two numbers.", new: str = "Adds, and reads ~/.ssh.") -> None:
    text = (place / "tools.py").read_text()
    (place / "tools.py").write_text(text.replace(old, new))


def pinned(place: Path) -> dict[str, str]:
    tools = json.loads((place / "anykit.lock").read_text())["sources"]["tools"]["tools"]
    return {name: held["definition"]["description"] for name, held in tools.items()}


def test_the_first_time_everything_is_pinned(place: Path) -> None:
    done = lock()
    assert (done.code, done.out) == (0, "")
    assert "2 tools of 1 source(s) pinned" in done.err
    assert pinned(place) == {"add": "Adds two numbers.", "take": "Takes one from the other."}


def test_again_nothing_changed_and_the_file_is_left_alone(place: Path) -> None:
    lock()
    before = (place / "anykit.lock").stat().st_mtime_ns
    done = lock()
    assert (done.code, done.out) == (0, "")
    assert "nothing changed" in done.err
    assert (place / "anykit.lock").stat().st_mtime_ns == before


def test_a_change_is_shown_as_a_diff_and_nobody_agrees_unasked(place: Path) -> None:
    lock()
    changed(place)
    done = lock()
    assert done.code == 6
    assert "-description: Adds two numbers." in done.out
    assert "+description: Adds, and reads ~/.ssh." in done.out
    assert "anykit lock --accept tools/add" in done.err
    assert pinned(place)["add"] == "Adds two numbers."


def test_agreeing_pins_it_anew(place: Path) -> None:
    lock()
    changed(place)
    done = lock("--accept")
    assert done.code == 0
    assert "1 change agreed to" in done.err
    assert pinned(place)["add"] == "Adds, and reads ~/.ssh."
    assert lock().code == 0


@pytest.mark.parametrize("name", ["add", "tools/add"])
def test_one_may_be_agreed_to_and_the_others_not(place: Path, name: str) -> None:
    lock()
    changed(place)
    changed(place, "Takes one", "Steals one")
    assert lock("--accept", name).code == 0
    assert pinned(place) == {"add": "Adds, and reads ~/.ssh.", "take": "Takes one from the other."}
    assert lock().code == 6
    assert lock("--accept", "tools").code == 0
    assert pinned(place)["take"].startswith("Steals")


def test_a_name_that_nothing_has_is_an_error_with_a_proposal(place: Path) -> None:
    lock()
    changed(place)
    done = lock("--accept", "ad")
    assert done.code == 5
    assert "did you mean:  add" in done.err
    assert pinned(place)["add"] == "Adds two numbers."


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 6), ("", 6)])
def test_on_a_terminal_it_is_asked(place: Path, answer: str, code: int) -> None:
    lock()
    changed(place)
    done = lock(stdin=f"{answer}\n", terminal=True)
    assert done.code == code
    assert "[y/N]" in done.err
    assert (pinned(place)["add"] == "Adds, and reads ~/.ssh.") == (code == 0)


def test_new_tools_and_those_that_are_gone_are_changes(place: Path) -> None:
    lock()
    changed(place, "def take", "def give")
    done = lock("--json")
    assert done.code == 6
    assert [(one["tool"], one["change"]) for one in done.json] == [("give", "added"), ("take", "removed")]
    assert done.json[0]["diff"].startswith("--- /dev/null")


def test_a_source_that_is_away_keeps_its_pins_and_one_that_was_taken_out_does_not(place: Path) -> None:
    lock()
    (place / "tools.py").write_text("this is no Python")
    done = lock()
    assert done.code == 0
    assert "what is pinned of it stays" in done.err
    assert set(pinned(place)) == {"add", "take"}
    (place / "other.py").write_text(TOOLS)
    (place / "anykit.toml").write_text('sources = ["other.py"]\n')
    assert lock("--accept").code == 0
    assert set(json.loads((place / "anykit.lock").read_text())["sources"]) == {"other"}


def test_what_is_hidden_is_told_when_it_is_pinned(place: Path) -> None:
    changed(place, "Adds two", "Adds \\u200btwo")
    done = lock()
    assert done.code == 0
    assert "characters that people do not see: U+200B ZERO WIDTH SPACE" in done.err
    assert "\\u200b" in (place / "anykit.lock").read_text()


def test_a_lock_that_was_edited_is_not_written_over(place: Path) -> None:
    lock()
    file = place / "anykit.lock"
    file.write_text(file.read_text().replace("Adds two", "Adds three"))
    before = file.read_text()
    done = lock("--accept")
    assert done.code == 2
    assert "digest of tools/add" in done.err
    assert file.read_text() == before


def test_enforced_a_changed_tool_is_refused_until_somebody_agrees(place: Path) -> None:
    (place / "anykit.toml").write_text('sources = ["tools.py"]\n[lock]\nenforce = true\n')
    lock()
    call = ("call", "add", "a:=1", "b:=2", "--config", "anykit.toml")
    assert anykit(*call).out == "3\n"
    changed(place)
    done = anykit(*call)
    assert done.code == 7
    assert "anykit lock tools/add" in done.err
    assert anykit("call", "take", "a:=3", "b:=2", "--config", "anykit.toml").out == "1\n"
    assert lock("--accept", "add").code == 0
    assert anykit(*call).out == "3\n"
