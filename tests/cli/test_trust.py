"""A file that was found starts nothing before somebody agreed; one that is named, or that we wrote, is trusted."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from cli.running import anykit


def found(*argv: str, terminal: bool = False, stdin: str = ""):
    return anykit(*argv, trusting=False, terminal=terminal, stdin=stdin)


@pytest.fixture
def file(folder: Path) -> Path:
    """A file that came with a clone: it would leave traces."""
    (folder / "loud.py").write_text(
        "from pathlib import Path\nfrom anykit import tool\nPath('ran').touch()\n@tool\ndef hi() -> str:\n"
        '    """Hi."""\n    return "hi"\n'
    )
    place = folder / "anykit.toml"
    place.write_text('sources = ["loud.py", {command = ["touch", "started"], kind = "mcp"}]\n')
    return place


def traces(folder: Path) -> set[str]:
    return {name for name in ("ran", "started") if (folder / name).exists()}


VERBS = [
    ("list",),
    ("list", "tools", "--json"),
    ("show", "hi"),
    ("call", "hi"),
    ("serve", "--port", "0"),
    ("validate",),
    ("configure", "x", "--template"),
    ("read", "x://y"),
    ("prompt", "x"),
]


@pytest.mark.parametrize("argv", VERBS)
def test_nothing_of_a_found_file_starts(folder: Path, file: Path, argv: tuple[str, ...]) -> None:
    done = found(*argv)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error[not_trusted]: anykit.toml was found here and is not trusted")
    assert "source loud.py: imports it" in done.err
    assert "source runs touch started" in done.err
    assert "  if you know it:  anykit trust anykit.toml" in done.err
    assert traces(folder) == set()


def test_a_file_above_is_found_and_asked_about_too(folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(folder / "deep" / "er")
    done = found("list")
    assert done.code == 2
    assert f"anykit trust {file}" in done.err
    assert traces(folder) == set()


def test_once_trusted_it_is_used(folder: Path, file: Path) -> None:
    done = found("trust", "anykit.toml")
    assert (done.code, done.out) == (0, "trusted anykit.toml\n")
    assert "source loud.py: imports it" in done.err
    assert traces(folder) == set()
    assert found("call", "hi", "--timeout", "5").out == "hi\n"
    assert "ran" in traces(folder)


def test_a_changed_definition_is_asked_again_and_a_comment_is_not(folder: Path, file: Path) -> None:
    file.write_text('sources = ["loud.py"]\n')
    found("trust", "anykit.toml")
    file.write_text('# hello\nsources = [\n  "loud.py",\n]\n[serve]\nport = 1234\n')
    assert found("call", "hi").out == "hi\n"
    file.write_text('sources = ["loud.py", {command = ["touch", "started"], kind = "mcp"}]\n')
    done = found("call", "hi")
    assert done.code == 2
    assert "defines what was not in it when it was trusted" in done.err
    assert "source runs touch started" in done.err
    assert "loud.py" not in done.err
    assert "started" not in traces(folder)


@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("yes\n", 0), ("n\n", 2), ("\n", 2), ("maybe\n", 2)])
def test_on_a_terminal_it_is_asked(folder: Path, file: Path, typed: str, code: int) -> None:
    file.write_text('sources = ["loud.py"]\n')
    done = found("call", "hi", terminal=True, stdin=typed)
    assert "source loud.py: imports it" in done.err
    assert "Trust it? [y/N]" in done.err
    assert done.code == code
    assert traces(folder) == (set() if code else {"ran"})
    assert found("call", "hi").code == code


def test_no_input_asks_nobody(folder: Path, file: Path) -> None:
    done = found("list", "--no-input", terminal=True, stdin="y\n")
    assert (done.code, "[y/N]" in done.err) == (2, False)


def test_a_file_that_is_named_is_trusted(folder: Path, file: Path) -> None:
    file.write_text('sources = ["loud.py"]\n')
    assert found("call", "hi", "--config", "anykit.toml").out == "hi\n"
    assert found("validate", "anykit.toml").code == 0
    assert found("call", "hi").code == 2


def test_sources_of_the_line_do_without_it(folder: Path, file: Path) -> None:
    done = found("list", "tools", "tools.py")
    assert done.code == 0
    assert "is not trusted, so nothing of it is used" in done.err
    assert found("call", "add", "a=1", "b=2", "-s", "tools.py").out == "3\n"
    assert traces(folder) == set()


def test_what_it_says_can_be_looked_at(folder: Path, file: Path) -> None:
    assert found("validate", "--no-start").code == 0
    file.write_text('sources = [{url = "http://h.example", token = "${NO_SUCH_VARIABLE}"}]\n[serve]\ntls_cert = "c"\n')
    done = found("validate", "--no-start", "--json")
    assert done.code == 6
    assert [one["where"] for one in done.json] == ["serve.tls_cert", "serve", "sources[0].token"]
    assert traces(folder) == set()


def test_what_init_and_add_wrote_is_trusted(folder: Path) -> None:
    (folder / "tools.py").unlink()
    assert found("init").code == 0
    assert found("call", "add", "a:=2", "b:=3").out == "5\n"
    assert found("add", "tickets.py").code == 0
    assert found("list", "tools").code == 0


def test_what_was_in_a_file_before_is_not_trusted_because_something_was_added(folder: Path, file: Path) -> None:
    done = found("add", "tools.py")
    assert done.code == 0
    assert "what else anykit.toml defines is not trusted" in done.err
    assert found("list").code == 2
    assert traces(folder) == set()
    assert found("add", "tickets.py", "--config", "anykit.toml").code == 0
    assert found("trust", "--list", "--json").json[0]["state"] == "trusted"


def test_enabling_and_removing_change_nothing_about_it(folder: Path, file: Path) -> None:
    found("trust", "anykit.toml")
    for argv in (("disable", "touch"), ("enable", "touch"), ("disable", "loud"), ("remove", "touch")):
        done = found(*argv)
        assert done.code == 0, done.err
        assert found("trust", "--list", "--json").json[0]["state"] == "trusted"


def test_a_file_cannot_say_where_it_is_agreed_to(folder: Path, file: Path) -> None:
    (folder / "own").mkdir()
    file.write_text('sources = ["loud.py"]\ndata_dir = "own"\n')
    assert anykit("trust", "anykit.toml", "--data-dir", "own", trusting=False).code == 0
    assert (folder / "own" / "trusted.json").exists()
    assert found("call", "hi").code == 2
    assert traces(folder) == set()


def test_what_is_trusted_is_listed_and_taken_back(folder: Path, file: Path, tmp_path: Path) -> None:
    assert "no file is trusted" in found("trust", "--list").err
    found("trust")
    [row] = found("trust", "--list").rows
    assert row[:2] == [str(file), "trusted"]
    assert stat.S_IMODE((tmp_path / "anykit-data" / "trusted.json").stat().st_mode) == 0o600
    file.write_text('sources = ["tools.py"]\n')
    assert found("trust", "--list").rows[0][1] == "changed"
    done = found("trust", "--revoke", "anykit.tml")
    assert (done.code, "did you mean" in done.err) == (5, True)
    assert found("trust", "--revoke", "anykit.toml").out == "no longer trusted: anykit.toml\n"
    assert found("trust", "--list", "--json").json == []
    file.unlink()
    assert found("trust").code == 2
    assert found("trust", "nowhere.toml").code == 2


def test_all_files_of_a_line_are_trusted_or_none(folder: Path, file: Path) -> None:
    assert found("trust", "anykit.toml", "nowhere.toml").code == 2
    assert found("trust", "--list", "--json").json == []


def test_completion_asks_nobody_and_starts_nothing(folder: Path, file: Path) -> None:
    done = found("completion", "words", "--", "call", "h", terminal=True, stdin="y\n")
    assert (done.code, done.out) == (0, "")
    assert traces(folder) == set()
