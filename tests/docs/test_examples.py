"""Every example of the documentation runs, and prints what its page says.

A page is run from top to bottom in an empty folder: a block with a title is first written to that file; Python blocks share one
namespace, and what they print has to equal their `#> ` lines; `console` blocks run, and print what is shown (`...` stands for
anything); TOML, YAML and JSON parse; the flags of `sh` blocks are flags of their verb.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
import types
from pathlib import Path

import pytest
import yaml

from docs.pages import ROOT, Block, anykit_commands, blocks, flags_of, pages

PRINTED = re.compile(r"^\s*#> ?(.*)$", re.M)
DEADLINE = 30.0
"""Seconds that one command of a page may take."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the command is found as people find it."""
    work = tmp_path / "page"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    monkeypatch.setenv("PYTHONPATH", str(work))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    return work


def run_python(block: Block, page: Path, module: types.ModuleType) -> None:
    """Run one block in the page's namespace; `await` is allowed at the top, as in a notebook."""
    source = "\n" * (block.line - 1) + textwrap.dedent(block.body)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile(source, str(page), "exec", flags=flags, dont_inherit=True)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        result = eval(code, vars(module))
        if inspect.iscoroutine(result):
            asyncio.run(asyncio.wait_for(result, DEADLINE))
    expected = PRINTED.findall(block.body)
    assert printed.getvalue().splitlines() == expected, f"{page.name}, line {block.line}"


def run_command(command: str, shown: str, page: Path) -> None:
    """Run one command of a page. What is shown has to be its stdout."""
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, f"{page.name}: {command}\n{done.stdout}{done.stderr}"
    pattern = ".*".join(re.escape(piece) for piece in shown.strip().split("..."))
    assert re.fullmatch(pattern, done.stdout.strip(), re.S), f"{page.name}: {command}\n{done.stdout}"


def check_flags(command: str, page: Path) -> None:
    """The flags of a command that is shown and not run are flags of its verb."""
    words = shlex.split(command.replace("[", " ").replace("]", " ").replace("|", " "), comments=True)
    verb, *rest = words[words.index("anykit") + 1 :]
    if verb in ("VERB", "SHELL"):
        return
    known = flags_of(verb)
    assert [word for word in rest if word.startswith("-") and word != "-" and word not in known] == [], named(page)


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.timeout(90)
@pytest.mark.parametrize("page", pages(), ids=named)
def test_the_examples_of_a_page_run_and_print_what_it_says(page: Path, folder: Path) -> None:
    module = types.ModuleType("page")
    sys.modules["page"] = module  # dataclasses and models look their module up
    try:
        for block in blocks(page):
            if block.title is not None:
                Path(block.title).parent.mkdir(parents=True, exist_ok=True)
                Path(block.title).write_text(block.body)
            match block.language:
                case "python" if block.title is not None:
                    run_python(block, page, types.ModuleType(Path(block.title).stem))
                case "python":
                    run_python(block, page, module)
                case "console":
                    for command, shown in anykit_commands(block):
                        run_command(command, shown, page)
                case "toml":
                    tomllib.loads(block.body)
                case "yaml":
                    yaml.safe_load(block.body)
                case "json":
                    json.loads(block.body)
                case "sh":
                    for command, _ in anykit_commands(block):
                        check_flags(command, page)
                case _:
                    assert block.language in ("", "text"), f"{named(page)}: nobody checks {block.language!r} blocks"
    finally:
        del sys.modules["page"]


def test_the_pages_hold_examples_at_all() -> None:
    languages = [block.language for page in pages() for block in blocks(page)]
    assert languages.count("python") > 20
    assert languages.count("console") > 2


def test_a_page_that_prints_something_else_is_noticed(tmp_path: Path) -> None:
    block = Block("python", None, "print(1 + 1)\n#> 3\n", 1)
    with pytest.raises(AssertionError):
        run_python(block, tmp_path / "page.md", types.ModuleType("page"))


def test_a_command_that_prints_something_else_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run_command("echo two", "three", tmp_path / "page.md")
    run_command("echo one; echo two; echo three", "one\n...\nthree\n", tmp_path / "page.md")


def test_every_file_of_docs_src_is_shown_on_a_page() -> None:
    shown = {name for page in pages() for name in re.findall(r'--8<-- "(docs_src/[^"]+)"', page.read_text())}
    assert shown == {f"docs_src/{path.name}" for path in (ROOT / "docs_src").glob("*.py")}


def test_every_page_is_in_the_navigation_and_every_link_leads_somewhere() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    for page in sorted((ROOT / "docs").rglob("*.md")):
        assert str(page.relative_to(ROOT / "docs")) in navigation
    for page in pages():
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{named(page)} links to {target}"
