"""`init` and `validate`."""

from __future__ import annotations

from pathlib import Path

import pytest

from anykit.app import config_file_schema
from anykit.schema import compile_schema
from cli.running import Done, anykit


def findings(*argv: str) -> list[tuple[str, str]]:
    done = anykit("validate", "--json", *argv)
    assert done.code == (6 if done.json else 0)
    return [(item["where"], item["message"]) for item in done.json]


def test_init_writes_what_works_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "new"
    done = anykit("init", str(place))
    assert (done.code, done.out) == (0, "")
    assert {path.name for path in place.iterdir()} == {"anykit.toml", "tools.py", "AGENTS.md"}
    assert f"cd {place} && anykit list" in done.err
    monkeypatch.chdir(place)
    assert findings() == []
    assert anykit("call", "add", "a:=2", "b:=3").out == "5\n"
    assert "Adds two numbers" in anykit("call", "read_file", "path=tools.py").out


def test_init_touches_nothing_that_exists(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text("mine")
    (tmp_path / "anykit.toml").symlink_to(tmp_path / "nowhere")
    done = anykit("init", str(tmp_path), "--json")
    assert done.code == 0
    assert done.json == {"folder": str(tmp_path), "written": ["AGENTS.md"], "kept": ["anykit.toml", "tools.py"]}
    assert (tmp_path / "tools.py").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


def test_init_where_nothing_can_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = anykit("init", str(tmp_path / "file" / "below"))
    assert done.code == 2
    assert "cannot be written" in done.err


def test_nothing_wrong_is_said_and_exit_zero(folder: Path) -> None:
    (folder / "anykit.toml").write_text('sources = ["tools.py", "tickets.py"]\n')
    done = anykit("validate")
    assert (done.code, done.out) == (0, "")
    assert done.err == f"{folder / 'anykit.toml'}: nothing wrong\n"


def test_every_unknown_key_is_a_finding(folder: Path) -> None:
    (folder / "anykit.toml").write_text("sorces = []\n[serve]\nprt = 1\n[toolkits.x]\nconfg = {}\n")
    assert dict(findings()) == {
        "serve.prt": "unknown key; did you mean port?",
        "sorces": "unknown key; did you mean sources?",
        "toolkits.x.confg": "unknown key; did you mean config?",
    }


def test_a_file_that_cannot_be_read_is_a_finding(folder: Path) -> None:
    (folder / "anykit.toml").write_text("data_dir = 1 2\n")
    [(where, message)] = findings()
    assert where.endswith("anykit.toml")
    assert "line 1" in message
    [(where, message)] = findings("nowhere.toml")
    assert "cannot be read" in message


def test_everything_that_is_wrong_is_found_at_once(folder: Path) -> None:
    (folder / "broken.py").write_text("import no_such_module_anywhere\n")
    (folder / "anykit.toml").write_text(
        'sources = ["tickets.py", "nowhere.py", "broken.py", {target = "${NO_SUCH_VARIABLE}.py", name = "unset"}]\n'
        '[toolkits.tickets.config]\nurl = "x"\nlimit = 0\napi_key = "${NO_SUCH_KEY}"\n'
        "[toolkits.plain.config]\nextra = 1\n[toolkits.ticket.config]\n"
        '[serve]\ntoken = "${NO_SUCH_TOKEN}"\ntls_cert = "nowhere.pem"\n'
        '[[a2e.plugins]]\nname = "p"\ntype = "tools"\ncls = "no_such_module_anywhere.Plugin"\n'
    )
    found = findings()
    for where, part in (
        ("nowhere", "does not exist"),
        ("broken", "no_such_module_anywhere"),
        ("unset", "NO_SUCH_VARIABLE is not set"),
        ("toolkits.tickets.config.api_key", "NO_SUCH_KEY is not set"),
        ("toolkits.plain.config.extra", "extra"),
        ("toolkits.ticket", "did you mean tickets?"),
        ("serve.token", "NO_SUCH_TOKEN is not set"),
        ("serve.tls_cert", "cannot be read"),
        ("serve", "belong together"),
        ("a2e.plugins.p", "no_such_module_anywhere"),
    ):
        assert any(place == where and part in message for place, message in found), (where, part, found)


def test_a_configuration_is_held_against_its_schema_and_no_secret_is_shown(folder: Path) -> None:
    (folder / "anykit.toml").write_text(
        'sources = ["tickets.py"]\n[toolkits.tickets.config]\nurl = "x"\nlimit = 0\napi_key = ["s3cr3t"]\n'
    )
    done = anykit("validate")
    assert done.code == 6
    assert sorted(row[1] for row in done.rows) == [
        "toolkits.tickets.config.api_key",
        "toolkits.tickets.config.limit",
        "toolkits.tickets.config.url",
    ]
    assert "s3cr3t" not in done.out + done.err
    assert "3 findings" in done.err


def test_validate_sets_no_toolkit_up_and_writes_nothing(folder: Path, tmp_path: Path) -> None:
    (folder / "touchy.py").write_text(
        "from pathlib import Path\nfrom anykit import Toolkit, tool\n"
        "class Touchy(Toolkit):\n    name = 'touchy'\n"
        "    async def setup(self, config):\n        Path('touched').write_text('')\n"
        "    @tool\n    def go(self): 'x'\n"
    )
    (folder / "anykit.toml").write_text('sources = ["touchy.py"]\n[toolkits.touchy.config]\n')
    assert findings() == []
    assert not (folder / "touched").exists()


def test_a_host_that_is_down_is_a_finding_also_where_it_is_required(folder: Path) -> None:
    (folder / "anykit.toml").write_text('sources = [{name = "far", url = "http://127.0.0.1:9", required = true}]\n')
    [(where, message)] = findings()
    assert where == "far"
    assert "refused" in message


def test_a_renamed_tool_is_a_warning(folder: Path) -> None:
    (folder / "other.py").write_text("from anykit import tool\n@tool\ndef add(): 'x'\n")
    done = anykit("validate", "tools.py", "other.py", "--json")
    assert done.code == 6
    assert {item["level"] for item in done.json} == {"warning"}


def test_sources_or_a_file_may_be_named(folder: Path) -> None:
    (folder / "else.toml").write_text('sources = ["nowhere.py"]\n')
    assert [where for where, _ in findings("else.toml")] == ["nowhere"]
    assert [where for where, _ in findings("--config", "else.toml")] == ["nowhere"]
    assert findings("tools.py", "tickets.py") == []
    assert findings("else.toml", "tools.py") == []
    assert anykit("validate", "else.toml", "more.toml").code == 2
    assert anykit("validate", "else.toml", "--config", "more.toml").code == 2


def test_the_schema_of_the_file_is_printed_and_fits_what_init_writes(tmp_path: Path) -> None:
    done: Done = anykit("validate", "--schema")
    assert done.code == 0
    assert done.json == config_file_schema()
    assert compile_schema(done.json).is_valid({"sources": ["tools.py"], "serve": {"port": 1}})
    assert not compile_schema(done.json).is_valid({"sorces": []})
