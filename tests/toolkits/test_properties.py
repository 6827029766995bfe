"""What holds for any input: no path leaves the root, no pattern or page takes long, no statement hides another."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anykit.toolkits.confined import Root
from anykit.toolkits.html_text import Close, Open, clean, to_text, tokens
from anykit.toolkits.patterns import Glob
from anykit.toolkits.sql import parse
from anykit.toolkits.text_files import read_lines, whole_characters
from anykit.tools import ToolError

quick = settings(max_examples=150, deadline=2000, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Root]]:
    """A root full of links, some of which lead outside."""
    folder = tmp_path_factory.mktemp("tree")
    (folder / "root" / "a" / "b").mkdir(parents=True)
    (folder / "out").mkdir()
    (folder / "out" / "f").write_text("outside")
    (folder / "root" / "f").write_text("inside")
    for name, target in {
        "up": "..", "in": "a/b", "out": "../out", "abs": str(folder / "out"), "self": ".", "loop": "loop",
        "back": str(folder / "root"), "a/up": "..", "a/b/up2": "../..", "a/b/out": "../../../out", "root": "/",
    }.items():  # fmt: skip
        (folder / "root" / name).symlink_to(target)
    root = Root(folder / "root")
    yield folder / "root", root
    root.close()


steps = st.sampled_from(
    ["a", "b", "f", "up", "in", "out", "abs", "self", "loop", "back", "up2", "root", "..", ".", "", "tmp", "x"]
)


@given(st.lists(steps, max_size=8), st.booleans())
@quick
def test_no_path_leaves_the_root(tree: tuple[Path, Root], names: list[str], absolute: bool) -> None:
    folder, root = tree
    path = ("/" if absolute else "") + "/".join(names)
    try:
        with root.place(path) as place:
            real = os.path.realpath(folder.joinpath(*place.parts))
            assert real == str(folder) or real.startswith(f"{folder}/")
            assert real == str(folder.joinpath(*place.parts))  # the way it names is the real one
            if place.status is not None:
                assert os.path.samestat(place.status, os.lstat(real))
    except ToolError:
        pass


@given(st.text(max_size=40))
@quick
def test_any_text_is_a_path_or_an_error(tree: tuple[Path, Root], path: str) -> None:
    folder, root = tree
    try:
        with root.place(path) as place:
            assert os.path.realpath(folder.joinpath(*place.parts)).startswith(str(folder))
    except ToolError:
        pass


@given(
    st.text(alphabet="ab*?[]!-{},/.", max_size=20),
    st.lists(st.text(alphabet="ab.", min_size=1, max_size=4), min_size=1, max_size=4),
)
@quick
def test_a_pattern_means_what_its_parts_mean(pattern: str, path: list[str]) -> None:
    try:
        glob = Glob(pattern)
    except ToolError:
        return
    matched = glob.matches(tuple(path))
    if re.fullmatch(r"[ab./]*", pattern):
        parts = [part for part in pattern.split("/") if part not in ("", ".")]
        assert matched is (parts == path)
    assert Glob("**/" + pattern.lstrip("/")).matches(("x", *path)) or not matched


@given(st.text(alphabet="<>/!-?abpliuo \"'=&;\n#", max_size=200))
@quick
def test_a_page_is_written_anew_well_formed(page: str) -> None:
    written, elements = clean(page, "http://h/")
    open_names: list[str] = []
    for token in tokens(written):
        if isinstance(token, Open) and token.name not in ("br", "hr", "img"):
            open_names.append(token.name)
        elif isinstance(token, Close):
            assert open_names.pop() == token.name
    assert not open_names
    assert elements >= written.count("</")
    assert isinstance(to_text(page), str)


@given(
    st.text(alphabet="abc ;'\"`$-/*\n:?[]\\", max_size=60), st.sampled_from(["sqlite", "postgresql", "mysql", "mssql"])
)
@quick
def test_a_statement_is_one_or_an_error(text: str, dialect: str) -> None:
    try:
        statement = parse(f"SELECT {text}", dialect=dialect)
    except ToolError:
        return
    again = parse("".join(f":{piece} " if named else piece for piece, named in statement.pieces), dialect=dialect)
    assert (again.words, again.parameters) == (statement.words, statement.parameters)
    with pytest.raises(ToolError):
        parse(f"SELECT {text}\n; DELETE", dialect=dialect)


@given(
    st.lists(st.sampled_from([b"a", b"\n", b"bc\n", b"\r\n", "é".encode()]), max_size=30),
    st.integers(1, 12),
    st.integers(0, 12),
)
@quick
def test_lines_are_those_of_the_file(tmp_path: Path, pieces: list[bytes], start: int, more: int) -> None:
    data = b"".join(pieces)
    (tmp_path / "f").write_bytes(data)
    lines = data.split(b"\n")
    expected = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    with (tmp_path / "f").open("rb") as file:
        try:
            read = read_lines(file, start, start + more, limit=1000, deadline=float("inf"))
        except ToolError:
            assert start > max(len(expected), 1)
            return
    assert read.data == b"".join(expected[start - 1 : start + more])
    assert not read.more


@given(st.text(max_size=10), st.integers(0, 40))
@quick
def test_a_cut_text_is_still_text(text: str, length: int) -> None:
    data = text.encode("utf-8", "replace")[:length]
    kept = whole_characters(data)
    kept.decode()
    assert len(data) - len(kept) < 4
