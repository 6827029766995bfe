"""`completion`: what Tab proposes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from anykit.cli.program import VERBS
from cli.running import anykit


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["disable", ""], ["tools", "mcp.json", "shop"]),
        (["disable", "tools", "s"], ["shop"]),
        (["enable", ""], ["desk"]),
        (["remove", ""], ["tools", "desk", "mcp.json"]),
        (["disable", "--config", "nowhere.toml", ""], []),
    ],
)
def test_what_stands_in_the_file_is_proposed_and_nothing_is_started(
    folder: Path, words: list[str], found: list[str]
) -> None:
    (folder / "tools.py").write_text("open('ran', 'w')\n")
    (folder / "mcp.json").write_text('{"mcpServers": {"shop": {"command": "x"}}}')
    (folder / "anykit.toml").write_text(
        'sources = ["tools.py", {target = "tickets.py", name = "desk", enabled = false}, "mcp.json"]\n'
    )
    assert proposed(*words) == found
    assert not (folder / "ran").exists()


def proposed(*words: str) -> list[str]:
    done = anykit("completion", "words", "--", *words)
    assert (done.code, done.err) == (0, "")
    return [row[0] for row in done.rows]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["li"], ["list"]),
        (["-q", "li"], ["list"]),
        (["--config", "x.toml", "comp"], ["completion"]),
        (["xyz"], []),
        (["--conn"], ["--connect"]),
        (["list", "--conf"], ["--config"]),
        (["serve", "--tls"], ["--tls-cert", "--tls-key"]),
        (["list", "--color", "a"], ["auto", "always"]),
        (["--color", "n"], ["never"]),
        (["list", "to"], ["toolkits", "tools"]),
        (["completion", "z"], ["zsh"]),
        (["serve", "--stdio", ""], ["a2e", "mcp"]),
        (["validate", ""], []),
        (["list", "--config", ""], []),
        (["call", "-s", "tools.py", "ad"], ["add"]),
        (["-s", "tools.py", "call", "ad"], ["add"]),
        (["call", "--source=tools.py", "ad"], ["add"]),
        (["call", "-s", "tools.py", "add", ""], ["a=", "b="]),
        (["call", "-s", "tools.py", "add", "a=1", ""], ["b="]),
        (["call", "-s", "tools.py", "add", "b:=1", ""], ["a="]),
        (["configure", "-s", "tickets.py", "t"], ["tickets"]),
        (["configure", "-s", "tickets.py", "tickets", "li"], ["limit=", "limits.rows=", "limits.proxy_key="]),
        (["configure", "-s", "tickets.py", "tickets", "--secret", "a"], ["api_key"]),
        (["show", "-s", "tickets.py", "w"], ["whoami"]),
        (["read", "-s", "tools.py", "no"], ["notes://today"]),
        (["read", "-s", "tools.py", "-o", ""], []),
        (["prompt", "-s", "tools.py", ""], ["greet"]),
        (["prompt", "-s", "tools.py", "greet", ""], ["name=", "word="]),
        (["prompt", "-s", "tools.py", "greet", "name=x", ""], ["word="]),
        (["login", "-s", "tools.py", ""], []),
        (["call", "-s", "nowhere.py", "a"], []),
        (["call", "--connect", "http://127.0.0.1:9", "a"], []),
        (["call", "-s", "tools.py", "nothing", ""], []),
        (["install", "claude", "cl"], ["claude-desktop"]),
        (["install", "claude", "--scope", "p"], ["project"]),
        (["discover", "--import", "mcp:"], ["mcp:shop"]),
    ],
)
def test_words_are_completed(folder: Path, words: list[str], found: list[str]) -> None:
    (folder / "mcp.json").write_text('{"mcpServers": {"shop": {"command": "x"}}}')
    assert proposed(*words) == found


def test_an_empty_word_may_become_any_verb() -> None:
    assert proposed("") == [verb.name for verb in VERBS]
    assert proposed() == [verb.name for verb in VERBS]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_printed_for_each_shell(shell: str) -> None:
    done = anykit("completion", shell)
    assert (done.code, done.err) == (0, "")
    assert "completion words -- " in done.out
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=done.out, capture_output=True, text=True, timeout=5)
        assert (checked.returncode, checked.stderr) == (0, "")


def test_an_unknown_shell_is_a_usage_error() -> None:
    done = anykit("completion", "bsh")
    assert done.code == 2
    assert "did you mean:  bash" in done.err


@pytest.mark.skipif(not shutil.which("bash"), reason="this machine has no bash")
def test_bash_completes_with_the_script(folder: Path) -> None:
    (folder / "script.bash").write_text(anykit("completion", "bash").out)
    command = folder / "anykit"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m anykit "$@"\n')
    command.chmod(0o755)
    test = (
        'source ./script.bash; COMP_WORDS=(./anykit call -s tools.py ad); COMP_CWORD=4; _anykit; echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", test], capture_output=True, text=True, timeout=9)
    assert (done.stdout, done.stderr) == ("add\n", "")
