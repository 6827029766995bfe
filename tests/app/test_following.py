"""Edits of Python sources: the edited module is run again, the others are not, and a broken one costs only itself."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anykit import Workbench
from anykit.sources.reimporting import forget_modules, imports_of, touched_by

pytestmark = pytest.mark.anyio

TOOL = '''
import {helper}
from pathlib import Path
from anykit import tool

with Path("runs").open("a") as runs:
    runs.write("{name} ")

@tool
def {name}() -> str:
    """Says it."""
    return "{name} " + {helper}.WORD
'''
TOOLKIT = '''
import asyncio
from pathlib import Path
from pydantic import BaseModel
from anykit import Toolkit, tool

class Desk(Toolkit):
    """A desk."""

    name = "desk"

    class Config(BaseModel):
        word: str
        {field}

    async def close(self) -> None:
        with Path("closed").open("a") as closed:
            closed.write("{version} ")

    @tool
    async def say(self, seconds: float = 0) -> str:
        """Says it."""
        await asyncio.sleep(seconds)
        return "{version} " + self.config.word
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shared_words.py").write_text('WORD = "1"\n')
    (tmp_path / "own_words.py").write_text('WORD = "1"\n')
    (tmp_path / "one.py").write_text(TOOL.format(name="one", helper="shared_words"))
    (tmp_path / "two.py").write_text(TOOL.format(name="two", helper="shared_words"))
    (tmp_path / "three.py").write_text(TOOL.format(name="three", helper="own_words"))
    yield tmp_path
    forget_modules(tmp_path.glob("*.py"))


def runs(folder: Path) -> list[str]:
    file = folder / "runs"
    found = file.read_text().split() if file.exists() else []
    file.write_text("")
    return found


async def follow(bench: Workbench, *files: Path) -> dict[str, str]:
    return {one.source: one.failed for one in await bench.following.follow(frozenset(files))}


async def said(bench: Workbench, tool: str) -> str:
    return (await bench.call(tool)).output


async def test_only_what_imports_the_edited_file_is_run_again(folder: Path) -> None:
    async with Workbench("one.py", "two.py", "three.py") as bench:
        assert runs(folder) == ["one", "two", "three"]
        assert bench.following.files() == {
            folder / f"{name}.py" for name in ("one", "two", "three", "shared_words", "own_words")
        }
        kept = bench.catalog.snapshot.sources["three"].provider
        # The same size in the same second: a compiled file would be taken for the new one.
        (folder / "shared_words.py").write_text('WORD = "2"\n')
        assert await follow(bench, folder / "shared_words.py") == {"one": "", "two": ""}
        assert runs(folder) == ["one", "two"]
        assert [await said(bench, name) for name in ("one", "two", "three")] == ["one 2", "two 2", "three 1"]
        assert bench.catalog.snapshot.sources["three"].provider is kept
        (folder / "one.py").write_text(TOOL.format(name="uno", helper="shared_words"))
        assert await follow(bench, folder / "one.py") == {"one": ""}
        assert runs(folder) == ["uno"]
        assert await said(bench, "uno") == "uno 2"
        assert (await bench.call("one")).is_error
        assert await follow(bench, folder / "elsewhere.py") == {}


async def test_two_sources_go_on_sharing_what_they_share(folder: Path) -> None:
    async with Workbench("one.py", "two.py") as bench:
        (folder / "shared_words.py").write_text('WORD = "x"\nSTATE: list[int] = []\n')
        for name in ("one", "two"):
            text = (folder / f"{name}.py").read_text()
            (folder / f"{name}.py").write_text(
                text.replace(
                    f'return "{name} "', "shared_words.STATE.append(1)\n    return str(len(shared_words.STATE))"
                )
            )
        await follow(bench, folder / "shared_words.py", folder / "one.py", folder / "two.py")
        assert [await said(bench, "one"), await said(bench, "two")] == ["1x", "2x"]


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("def (:\n", "one.py:1: SyntaxError"),
        ("\n\nraise ValueError('no')\n", "one.py:3: ValueError: no"),
        ("import no_such_module_at_all\n", "one.py:1: ModuleNotFoundError"),
        ("raise SystemExit(3)\n", "one.py:1: SystemExit: 3"),
        ("X = 1\n", "nothing to offer"),
        ("from anykit import tool\n@tool\ndef f(x: 'Nope') -> str:\n    'F.'\n", "one.py:2"),
    ],
)
async def test_a_broken_module_costs_only_itself_and_what_it_was_serves_on(folder: Path, broken: str, why: str) -> None:
    async with Workbench("one.py", "two.py") as bench:
        good = (folder / "one.py").read_text()
        (folder / "one.py").write_text(broken)
        failed = (await follow(bench, folder / "one.py"))["one"]
        assert why in failed
        assert await said(bench, "one") == "one 1"
        assert await said(bench, "two") == "two 1"
        states = {one.name: one.state for one in bench.sources()}
        assert states["one"].status == "ready"
        assert states["one"].reason == f"the edited version is not used: {failed}"
        assert states["two"].reason == ""
        assert (folder / "one.py") in bench.following.files()
        assert (folder / "shared_words.py") in bench.following.files()
        (folder / "one.py").write_text(good.replace('"one "', '"mended "'))
        assert await follow(bench, folder / "one.py") == {"one": ""}
        assert await said(bench, "one") == "mended 1"
        assert next(one.state.reason for one in bench.sources() if one.name == "one") == ""


async def test_a_broken_module_that_is_imported_is_named_with_its_line(folder: Path) -> None:
    async with Workbench("one.py", "two.py", "three.py") as bench:
        before = sys.modules["shared_words"]
        (folder / "shared_words.py").write_text("WORD = 'ok'\nnope\n")
        failed = await follow(bench, folder / "shared_words.py")
        assert set(failed) == {"one", "two"}
        assert all("shared_words.py:2" in why for why in failed.values())
        assert [await said(bench, name) for name in ("one", "two", "three")] == ["one 1", "two 1", "three 1"]
        assert sys.modules["shared_words"] is before
        (folder / "shared_words.py").write_text('WORD = "3"\n')
        await follow(bench, folder / "shared_words.py")
        assert [await said(bench, "one"), await said(bench, "two")] == ["one 3", "two 3"]


async def test_a_module_that_was_broken_from_the_start_is_mended(folder: Path) -> None:
    good = (folder / "one.py").read_text()
    (folder / "one.py").write_text("def (")
    async with Workbench("one.py") as bench:
        (folder / "one.py").write_text("raise ValueError('still')\n")
        assert "still" in (await follow(bench, folder / "one.py"))["one"]
        assert bench.sources()[0].state.status == "failed"
        assert "still" in bench.sources()[0].state.reason
        (folder / "one.py").write_text(good)
        assert await follow(bench, folder / "one.py") == {"one": ""}
        assert await said(bench, "one") == "one 1"


async def test_toolkits_are_set_up_again_with_what_they_were_configured_with(folder: Path) -> None:
    (folder / "desk.py").write_text(TOOLKIT.format(version="v1", field=""))
    async with Workbench("desk.py") as bench:
        await bench.configure("desk", {"word": "host"})
        caller = bench.session(principal="p", face="a2e", id="s1")
        await caller.configure("desk", {"word": "mine"})
        late = asyncio.ensure_future(bench.call("say", {"seconds": 0.2}))
        for _ in range(20):
            await asyncio.sleep(0)
        (folder / "desk.py").write_text(TOOLKIT.format(version="v2", field=""))
        assert await follow(bench, folder / "desk.py") == {"desk": ""}
        assert await said(bench, "say") == "v2 host"
        assert (await caller.call("say")).output == "v2 mine"
        assert not (folder / "closed").exists() or (folder / "closed").read_text() == "v1 "
        assert (await late).output == "v1 host"
        caller.close()
    assert (folder / "closed").read_text().split() == ["v1", "v1", "v2", "v2"]


async def test_a_configuration_that_does_not_do_any_more_is_told_of(folder: Path) -> None:
    (folder / "desk.py").write_text(TOOLKIT.format(version="v1", field=""))
    async with Workbench("desk.py") as bench:
        await bench.configure("desk", {"word": "host"})
        (folder / "desk.py").write_text(TOOLKIT.format(version="v2", field="port: int"))
        [one] = await bench.following.follow(frozenset({folder / "desk.py"}))
        assert not one.failed
        assert "port" in one.problems[0]
        assert (await bench.call("say")).status == "denied"
        await bench.configure("desk", {"word": "host", "port": 1})
        assert await said(bench, "say") == "v2 host"


async def test_modules_by_name_and_picked_members_are_followed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    (folder / "named_mod.py").write_text('def pick() -> str:\n    """P."""\n    return "1"\n')
    async with Workbench("named_mod:pick", "one.py:one") as bench:
        (folder / "named_mod.py").write_text('def pick() -> str:\n    """P."""\n    return "2"\n')
        assert set(await follow(bench, folder / "named_mod.py")) == {"named_mod"}
        assert await said(bench, "pick") == "2"
        (folder / "one.py").write_text((folder / "one.py").read_text().replace('"one "', '"new "'))
        await follow(bench, folder / "one.py")
        assert await said(bench, "one") == "new 1"


async def test_a_reload_of_the_file_goes_on_from_what_was_followed(folder: Path) -> None:
    file = folder / "anykit.toml"
    file.write_text('sources = ["one.py"]\n')
    async with Workbench(config=file) as bench:
        (folder / "one.py").write_text(TOOL.format(name="one", helper="own_words"))
        await follow(bench, folder / "one.py")
        kept = bench.catalog.snapshot.sources["one"].provider
        file.write_text('sources = ["one.py", "two.py"]\n')
        assert (await bench.reload()).kept == ("one",)
        assert bench.catalog.snapshot.sources["one"].provider is kept
        assert folder / "two.py" in bench.following.files()


# which files those are


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import helper", {"helper.py"}),
        ("import helper as h, os", {"helper.py"}),
        ("from helper import x", {"helper.py"}),
        ("from . import helper", {"helper.py"}),
        ("from .pack import part", {"pack/__init__.py", "pack/part.py"}),
        ("import pack.part", {"pack/__init__.py", "pack/part.py"}),
        ("def f():\n    import helper", {"helper.py"}),
        ("import nowhere, json", set[str]()),
        ("from .. import helper", set[str]()),
        ("def (", set[str]()),
    ],
)
def test_imports_from_the_own_folder_are_found(tmp_path: Path, text: str, found: set[str]) -> None:
    (tmp_path / "pack").mkdir()
    for name in ("helper.py", "pack/__init__.py", "pack/part.py"):
        (tmp_path / name).write_text("")
    (tmp_path / "main.py").write_text(text)
    assert set(imports_of(tmp_path / "main.py")) == {tmp_path / "main.py", *(tmp_path / name for name in found)}


def test_a_circle_of_imports_ends(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import b")
    (tmp_path / "b.py").write_text("import c")
    (tmp_path / "c.py").write_text("import a")
    graph = imports_of(tmp_path / "a.py")
    assert set(graph) == {tmp_path / f"{name}.py" for name in "abc"}
    assert touched_by([tmp_path / "c.py"], graph) == set(graph)


@settings(deadline=None)
@given(st.dictionaries(st.integers(0, 8), st.frozensets(st.integers(0, 8))), st.sets(st.integers(0, 12)))
def test_whatever_reaches_a_changed_file_is_touched_and_nothing_else(
    edges: dict[int, frozenset[int]], changed: set[int]
) -> None:
    graph = {Path(str(one)): frozenset(Path(str(other)) for other in others) for one, others in edges.items()}
    touched = touched_by({Path(str(one)) for one in changed}, graph)

    def reaches(one: Path, seen: frozenset[Path] = frozenset()) -> bool:
        if int(one.name) in changed:
            return True
        return any(reaches(other, seen | {one}) for other in graph[one] if other in graph and other not in seen | {one})

    assert touched == {one for one in graph if reaches(one)}
