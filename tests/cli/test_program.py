"""The command as a whole: verbs, flags, streams, exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from anykit import __version__
from anykit.cli.program import VERBS, split
from cli.running import anykit


@pytest.mark.parametrize("argv", [(), ("--help",), ("-h",), ("help",), ("-q",)])
def test_without_a_verb_the_help_is_printed(argv: tuple[str, ...]) -> None:
    done = anykit(*argv)
    assert done.code == 0
    assert all(f"  {verb.name} " in done.out for verb in VERBS)
    assert "--connect" in done.out
    assert done.err == ""


@pytest.mark.parametrize("verb", [verb.name for verb in VERBS])
@pytest.mark.parametrize("form", ["VERB --help", "help VERB"])
def test_each_verb_explains_itself(verb: str, form: str) -> None:
    done = anykit(*form.replace("VERB", verb).split())
    assert done.code == 0
    assert done.out.startswith(f"Usage: anykit {verb}")
    assert "--no-input" in done.out


@pytest.mark.parametrize("argv", [("--version",), ("list", "--version"), ("-q", "--version")])
def test_the_version_is_printed(argv: tuple[str, ...]) -> None:
    assert anykit(*argv) == anykit("--version")
    assert anykit(*argv).out == f"anykit {__version__}\n"


def test_an_unknown_command_is_answered_with_the_nearest() -> None:
    done = anykit("lsit")
    assert done.code == 2
    assert done.err.splitlines()[:2] == [
        "error[unknown_command]: there is no command 'lsit'",
        "  did you mean:  anykit list",
    ]
    assert done.out == ""


def test_a_command_like_no_other_is_answered_with_the_help() -> None:
    done = anykit("xyzzy")
    assert done.code == 2
    assert "did you mean" not in done.err
    assert "  help:  anykit --help" in done.err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("list", "--jsno"), "no such option: --jsno"),
        (("--jsno", "list"), "no such option: --jsno"),
        (("--jsno",), "there is no flag --jsno; did you mean --json?"),
        (("call",), "missing argument"),
        (("list", "--timeout", "soon"), "--timeout"),
        (("list", "--color", "sometimes"), "--color"),
        (("serve", "--port", "70000"), "--port"),
        (("serve", "--stdio", "smoke"), "--stdio"),
        (("list", "--config"), "--config"),
        (("serve", "--connect", "http://127.0.0.1:1"), "serve does not act on a running host"),
    ],
)
def test_a_wrong_line_is_a_usage_error(argv: tuple[str, ...], message: str) -> None:
    done = anykit(*argv)
    assert done.code == 2
    assert done.err.startswith("error[usage]: ")
    assert message in done.err
    assert done.out == ""
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "argv",
    [
        ("--json", "-s", "tools.py", "call", "add", "a=1"),
        ("call", "add", "a=1", "--json", "-s", "tools.py"),
        ("-s", "tools.py", "call", "--json", "add", "a=1"),
        ("--source=tools.py", "--json", "call", "add", "--", "a=1"),
        ("-stools.py", "--json", "--", "call", "add", "a=1"),
        ("-qs", "tools.py", "call", "add", "a=1", "--json"),
    ],
)
def test_flags_stand_before_the_verb_or_after_it(folder: Path, argv: tuple[str, ...]) -> None:
    done = anykit(*argv)
    assert (done.code, done.err) == (0, "")
    assert done.json["structuredContent"] == 11


def test_two_dashes_end_the_flags(folder: Path) -> None:
    done = anykit("call", "-s", "tools.py", "describe", "--", "name=--json")
    assert done.code == 0
    assert '"name":"--json"' in done.out


@pytest.mark.parametrize(
    ("argv", "before", "rest"),
    [
        (["list"], [], ["list"]),
        (["--json", "list", "-q"], ["--json"], ["list", "-q"]),
        (["--config", "list", "list"], ["--config", "list"], ["list"]),
        (["--config=x", "list"], ["--config=x"], ["list"]),
        (["-s", "a.py", "-qv", "list"], ["-s", "a.py", "-qv"], ["list"]),
        (["-qs", "a.py", "list"], ["-qs", "a.py"], ["list"]),
        (["-sa.py", "list"], ["-sa.py"], ["list"]),
        (["-q", "--", "list", "--json"], ["-q"], ["list", "--json"]),
        (["--config"], ["--config"], []),
        ([], [], []),
    ],
)
def test_the_verb_is_the_first_word_that_belongs_to_no_flag(
    argv: list[str], before: list[str], rest: list[str]
) -> None:
    assert split(argv) == (before, rest)


def test_an_unexpected_error_is_one_line_and_a_way_to_see_more(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()  # a working directory that is not there is expected nowhere
    done = anykit("list")
    assert done.code == 1
    assert done.err == (
        "error[internal]: unexpected: FileNotFoundError: [Errno 2] No such file or directory\n"
        "  see where:  run it again with -v\n"
    )
    with pytest.raises(FileNotFoundError):
        anykit("list", "-v")


def command(*argv: str) -> list[str]:
    return [sys.executable, "-m", "anykit", *argv]


def test_a_reader_that_leaves_early_causes_no_traceback(folder: Path) -> None:
    lines = "\n".join(f"@tool\ndef tool_{index}(): '''{'x' * 200}'''" for index in range(1500))
    (folder / "many.py").write_text(f"from anykit import tool\n{lines}\n")
    process = subprocess.Popen(
        command("list", "tools", "many.py"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith("tool_0\t")
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(10) == 0


def test_ctrl_c_cancels_a_call_and_is_no_traceback(folder: Path) -> None:
    process = subprocess.Popen(
        command("-s", "tools.py", "call", "wait"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert process.returncode == 130
    assert (folder / "cancelled.txt").exists()
    assert (out, err) == ("", "error: interrupted\n")


def test_the_help_of_the_command_imports_next_to_nothing() -> None:
    code = (
        "import sys; from anykit.cli import run; run(['--help']); run(['--version']);"
        "print([name for name in ('typer', 'rich', 'pydantic', 'anykit.app') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=10)
    assert done.stdout.splitlines()[-1] == "[]"


def test_listing_in_a_pipe_imports_no_library_for_terminals_or_servers(folder: Path) -> None:
    code = (
        "import sys; from anykit.cli import run; run(['list', 'tools.py', '--json']);"
        "heavy = ('rich', 'uvicorn', 'starlette', 'aiohttp', 'sqlalchemy', 'mcp');"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=10)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_a_character_that_stdout_cannot_encode_does_not_break_a_call(folder: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        command("-s", "tools.py", "call", "echo", "value=Grüße"),
        capture_output=True,
        text=True,
        timeout=10,
        env=environment,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "Gr\\xfc\\xdfe\n", "")
