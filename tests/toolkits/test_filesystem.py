"""The filesystem toolkit on real files: what it does, and that nothing leads out of its root."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from anykit.toolkits.filesystem import Filesystem, Written
from anykit.tools import Bounds, ToolError

pytestmark = pytest.mark.anyio

Open = Callable[..., Awaitable[Filesystem]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with some files, beside one that nobody may see."""
    root = tmp_path / "root"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "a.txt").write_bytes(b"one\ntwo\nthree\n")
    (root / "src" / "main.py").write_bytes(b"import os\n\ndef main():\n    pass\n")
    (root / "src" / "deep" / "x.md").write_bytes(b"# title\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("hunter2\n")
    return root


@pytest.fixture
async def kits() -> Any:
    opened: list[Filesystem] = []

    async def open_kit(root: Path | str, *, bounds: Bounds | None = None, **config: Any) -> Filesystem:
        kit = Filesystem()
        kit.bounds = bounds
        kit.config = Filesystem.Config(root_dir=str(root), **config)
        opened.append(kit)
        await kit.setup(kit.config)
        return kit

    yield open_kit
    for kit in opened:
        await kit.close()


@pytest.fixture
async def fs(root: Path, kits: Open) -> Filesystem:
    return await kits(root)


# What it is.


def test_its_definition_is_the_one_that_agents_know() -> None:
    spec = Filesystem.spec()
    assert (spec.name, spec.alias, spec.category, spec.tags) == ("filesystem", "fs", "io", ("fs", "files"))
    assert list(spec.tools) == ["read_file", "write_file", "edit_file", "list_dir", "glob", "grep"]
    assert spec.schema["required"] == ["root_dir"]
    assert spec.schema["properties"]["root_dir"]["description"] == "Root directory for file operations"
    assert spec.schema["properties"]["root_dir"]["type"] == "string"
    for name, tool in spec.tools.items():
        writes = name in ("write_file", "edit_file")
        assert tool.annotations.read_only is not writes
        assert bool(tool.annotations.destructive) is writes
        assert tool.annotations.open_world is False
        assert tool.output_schema is not None


def test_the_arguments_are_the_promised_ones() -> None:
    tools = Filesystem.spec().tools
    assert {name: (list(tool.input_schema["properties"]), tool.input_schema.get("required", [])) for name, tool in tools.items()} == {
        "read_file": (["path", "start_line", "end_line"], ["path"]),
        "write_file": (["path", "content"], ["path", "content"]),
        "edit_file": (["path", "old", "new", "all"], ["path", "old", "new"]),
        "list_dir": (["path"], []),
        "glob": (["pattern", "path"], ["pattern"]),
        "grep": (["pattern", "path", "include"], ["pattern"]),
    }  # fmt: skip


async def test_every_tool_runs_through_its_schemas(fs: Filesystem) -> None:
    calls: list[tuple[Any, dict[str, Any], str]] = [
        (fs.read_file, {"path": "a.txt"}, "one"),
        (fs.write_file, {"path": "new.txt", "content": "x"}, "created"),
        (fs.edit_file, {"path": "new.txt", "old": "x", "new": "y"}, "replacements"),
        (fs.list_dir, {}, "a.txt"),
        (fs.glob, {"pattern": "**/*.py"}, "src/main.py"),
        (fs.grep, {"pattern": "tw."}, "two"),
    ]
    for tool, arguments, expected in calls:
        result = await tool.execute(arguments)
        assert not result.is_error, result.output
        assert expected in result.output


def test_b060_defaults_are_there_when_a_tool_runs() -> None:
    """python-jsonschema/jsonschema#266: a schema's defaults are missing when the tool runs."""
    given = {"root_dir": "/r"}
    config = Filesystem.Config.model_validate(given)
    assert (config.read_only, config.max_results) == (False, 1000)
    assert given == {"root_dir": "/r"}
    for name, field in Filesystem.spec().schema["properties"].items():
        if name != "root_dir":
            assert field["default"] == getattr(config, name)


# The root.


@pytest.mark.parametrize("name", ["missing", "a.txt", "missing/deeper", "a\0b", "~nobody-of-that-name/x"])
async def test_a_root_that_is_no_directory_is_refused(root: Path, kits: Open, name: str) -> None:
    with pytest.raises(ToolError, match="root"):
        await kits(f"{root}/{name}" if not name.startswith("~") else name)


async def test_a_root_lies_inside_the_operators_bounds(root: Path, kits: Open) -> None:
    bounds = Bounds(roots=(root,))
    for inside in (root, root / "src", f"{root}/./src/../src/deep"):
        assert (await kits(inside, bounds=bounds)).list_dir()


@pytest.mark.parametrize(
    "where", ["..", "../outside", "../missing", "../outside/secret.txt", "/", "/etc", "/missing", "link", "loop"]
)
async def test_a_root_outside_the_bounds_is_refused_whether_or_not_it_exists(
    root: Path, kits: Open, where: str
) -> None:
    (root / "link").symlink_to(root.parent / "outside")
    (root / "loop").symlink_to(root / "loop")
    with pytest.raises(ToolError) as refused:
        await kits(where if where.startswith("/") else root / where, bounds=Bounds(roots=(root,)))
    if where != "loop":
        assert "outside the directories that the operator of this host allows" in str(refused.value)


async def test_a_name_that_begins_like_a_bound_is_no_part_of_it(root: Path, kits: Open) -> None:
    (root.parent / "root2").mkdir()
    with pytest.raises(ToolError, match="operator"):
        await kits(root.parent / "root2", bounds=Bounds(roots=(root,)))
    with pytest.raises(ToolError, match="operator"):
        await kits(root, bounds=Bounds())


async def test_a_tilde_is_home_for_the_operator_only(root: Path, kits: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(root))
    monkeypatch.chdir(root)
    assert (await kits("~/src")).list_dir().entries
    with pytest.raises(ToolError, match="No such file"):
        await kits("~/src", bounds=Bounds(roots=(root,)))


async def test_a_root_that_is_moved_is_still_the_root(root: Path, fs: Filesystem) -> None:
    os.rename(root, root.parent / "moved")
    os.symlink(root.parent / "outside", root)
    assert fs.read_file("a.txt") == "one\ntwo\nthree\n"
    with pytest.raises(ToolError, match="does not exist"):
        fs.read_file("secret.txt")


async def test_a_closed_toolkit_reads_nothing(fs: Filesystem) -> None:
    await fs.close()
    await fs.close()
    with pytest.raises(ToolError):
        fs.read_file("a.txt")


async def test_the_root_of_all_is_a_root_too(kits: Open, root: Path) -> None:
    kit = await kits("/")
    assert kit.read_file(f"{root}/a.txt") == kit.read_file(f"{root}/a.txt".lstrip("/")) == "one\ntwo\nthree\n"


# Confinement.


def escapes(root: Path) -> list[str]:
    """Paths that lead outside, to what exists and to what does not."""
    outside = root.parent / "outside"
    (root / "link_file").symlink_to(outside / "secret.txt")
    (root / "link_missing").symlink_to(outside / "missing.txt")
    (root / "link_dir").symlink_to(outside)
    (root / "link_up").symlink_to("../outside")
    (root / "chain").symlink_to("link_file")
    (root / "src" / "up2").symlink_to("../../outside/secret.txt")
    (root / "link_etc").symlink_to("/etc/passwd")
    (root / "link_root").symlink_to("/")
    return [
        "../outside/secret.txt", "../missing", "..", "../..", "src/../../outside/secret.txt", "ref/../../x", "./../x",
        "/etc/passwd", "/etc/missing", "/", "//etc/passwd", str(outside / "secret.txt"), f"{root}x", f"{root}/../outside",
        "link_file", "link_missing", "link_dir/secret.txt", "link_dir/missing.txt", "link_dir", "link_up/secret.txt",
        "link_up/missing", "chain", "src/up2", "link_etc", "link_root/etc/passwd", "link_root/missing",
        "src/../link_dir/secret.txt", "link_dir/../root/a.txt",
    ]  # fmt: skip


async def test_b078_nothing_outside_is_reached_or_told_of(root: Path, fs: Filesystem) -> None:
    """instavm/open-skills#11: file names escape the folder (`..`, absolute, symlinked file, symlinked directory)."""
    before = sorted(path for path in root.parent.rglob("*"))
    for path in (made := escapes(root)):
        uses: list[Callable[[], object]] = [
            lambda path=path: fs.read_file(path),
            lambda path=path: fs.write_file(path, "pwned"),
            lambda path=path: fs.write_file(f"{path}/new/file", "pwned"),
            lambda path=path: fs.edit_file(path, "hunter2", "pwned"),
            lambda path=path: fs.list_dir(path),
            lambda path=path: fs.glob("*", path),
            lambda path=path: fs.grep("hunter", path),
        ]
        for number, use in enumerate(uses):
            with pytest.raises(ToolError) as refused:
                use()
            said = str(refused.value)
            assert "outside the root directory" in said, (path, number, said)
            assert "hunter2" not in said
    # The words are the same whether the target exists or not.
    said = {str(_refusal(lambda path=path: fs.read_file(path))).replace(repr(path), "PATH") for path in made}
    assert len(said) == 1
    assert (root.parent / "outside" / "secret.txt").read_text() == "hunter2\n"
    assert sorted(path for path in root.parent.rglob("*") if not path.is_symlink()) == before


def _refusal(use: Callable[[], object]) -> ToolError:
    with pytest.raises(ToolError) as refused:
        use()
    return refused.value


async def test_searches_do_not_walk_outside(root: Path, fs: Filesystem) -> None:
    escapes(root)
    assert fs.grep("hunter").matches == []
    assert not [path for path in fs.glob("**/*").paths if "secret" in path]
    assert not [path for path in fs.glob("**").paths if "link" in path]
    listed = {entry.name: entry for entry in fs.list_dir().entries}
    assert (listed["link_file"].type, listed["link_file"].size) == ("symlink", None)
    assert (listed["link_missing"].type, listed["link_missing"].size) == ("symlink", None)
    for pattern in ("../*", "/etc/*", "src/../../*", "{../,}x"):
        with pytest.raises(ToolError, match="pattern"):
            fs.glob(pattern)
        with pytest.raises(ToolError, match="pattern"):
            fs.grep("x", include=pattern)


@pytest.mark.parametrize("path", ["a\0b", "\0", "a.txt\0", "x" * 5000, "\ud800", "a/" * 2000])
async def test_b078_what_is_no_path_is_refused(fs: Filesystem, path: str) -> None:
    """instavm/open-skills#11: a NUL in a file name."""
    for use in (
        lambda: fs.read_file(path),
        lambda: fs.write_file(path, ""),
        lambda: fs.list_dir(path),
        lambda: fs.grep("x", path),
    ):
        with pytest.raises(ToolError):
            use()


async def test_a_name_too_long_for_the_system_is_refused(fs: Filesystem) -> None:
    with pytest.raises(ToolError, match="too long"):
        fs.write_file("x" * 300, "")


async def test_symlinks_that_stay_inside_are_fine(root: Path, fs: Filesystem) -> None:
    (root / "to_file").symlink_to("a.txt")
    (root / "to_absolute").symlink_to(root / "src" / "main.py")
    (root / "to_dir").symlink_to("src/deep")
    (root / "src" / "up").symlink_to("../a.txt")
    (root / "around").symlink_to(f"../{root.name}/a.txt")
    (root / "dangling").symlink_to("not_yet.txt")
    assert fs.read_file("to_file") == fs.read_file("src/up") == fs.read_file("around") == "one\ntwo\nthree\n"
    assert fs.read_file("to_absolute").startswith("import os")
    assert fs.read_file("to_dir/x.md") == "# title\n"
    assert fs.read_file("to_dir/../main.py").startswith("import os")  # `..` is where the directory really lies
    assert [entry.name for entry in fs.list_dir("to_dir").entries] == ["x.md"]
    assert fs.write_file("to_dir/new.txt", "x").path == "src/deep/new.txt"
    assert fs.write_file("dangling", "x").path == "not_yet.txt"
    assert fs.write_file("to_file", "changed").path == "a.txt"
    assert (root / "to_file").is_symlink()
    assert (root / "a.txt").read_text() == "changed"
    assert fs.edit_file("src/up", "changed", "again").path == "a.txt"
    assert "to_file" in fs.glob("*").paths


async def test_absolute_paths_inside_are_fine(root: Path, fs: Filesystem, kits: Open) -> None:
    assert fs.read_file(str(root / "a.txt")) == fs.read_file(f"{root}//src/../a.txt") == "one\ntwo\nthree\n"
    (root.parent / "alias").symlink_to(root)
    alias = await kits(root.parent / "alias")
    assert alias.read_file(str(root.parent / "alias" / "a.txt")) == alias.read_file(str(root / "a.txt"))


async def test_b078_loops_pipes_and_devices_do_not_hang(root: Path, fs: Filesystem) -> None:
    """instavm/open-skills#11: a symlink loop or a FIFO does not hang."""
    (root / "loop1").symlink_to("loop2")
    (root / "loop2").symlink_to("loop1")
    (root / "self").symlink_to(".")
    (root / "src" / "back").symlink_to("..")
    os.mkfifo(root / "pipe")
    (root / "to_pipe").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        os.chdir(root)  # the name of a socket is short
        listener.bind("sock")
        os.chdir("/")
        for name, why in {"pipe": "named pipe", "to_pipe": "named pipe", "sock": "socket"}.items():
            for use in (
                lambda name=name: fs.read_file(name),
                lambda name=name: fs.write_file(name, "x"),
                lambda name=name: fs.edit_file(name, "x", "y"),
                lambda name=name: fs.grep("x", name),
            ):
                with pytest.raises(ToolError, match=why):
                    use()
        with pytest.raises(ToolError, match=r"loop|not a directory"):
            fs.read_file("loop1")
        assert fs.read_file("self/self/src/back/a.txt") == "one\ntwo\nthree\n"
        with pytest.raises(ToolError, match="loop"):
            fs.read_file("self/" * 100 + "a.txt")
        assert fs.grep("two").files_searched == 3
        assert fs.glob("**/*.txt").paths == ["a.txt"]
        assert {entry.type for entry in fs.list_dir().entries} == {"directory", "file", "symlink", "other"}


async def test_a_directory_exchanged_for_a_symlink_leads_nowhere(root: Path, fs: Filesystem) -> None:
    """While one thread turns `victim` from a directory into a symlink and back, no read gets what lies outside."""
    (root / "real").mkdir()
    (root / "real" / "secret.txt").write_text("inside\n")
    (root / "link").symlink_to(root.parent / "outside")
    os.rename(root / "real", root / "victim")
    done = threading.Event()

    def exchange() -> None:
        while not done.is_set():
            os.rename(root / "victim", root / "real")
            os.rename(root / "link", root / "victim")
            os.rename(root / "victim", root / "link")
            os.rename(root / "real", root / "victim")

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            with suppress(ToolError):
                assert fs.read_file("victim/secret.txt") == "inside\n"
            with suppress(ToolError):
                fs.edit_file("victim/secret.txt", "hunter2", "pwned")
            assert fs.grep("hunter2").matches == []
    finally:
        done.set()
        thread.join()
    assert (root.parent / "outside" / "secret.txt").read_text() == "hunter2\n"
    assert os.listdir(root.parent / "outside") == ["secret.txt"]


# Reading.


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((None, None), "one\ntwo\nthree\n"),
        ((1, 1), "one\n"),
        ((2, 3), "two\nthree\n"),
        ((2, None), "two\nthree\n"),
        ((None, 2), "one\ntwo\n"),
        ((3, 99), "three\n"),
    ],
)
async def test_lines_are_counted_from_one_and_both_ends_belong(
    fs: Filesystem, lines: tuple[int | None, int | None], expected: str
) -> None:
    assert fs.read_file("a.txt", *lines) == expected


@pytest.mark.parametrize("lines", [(0, None), (-1, None), (3, 2), (None, 0)])
async def test_impossible_lines_are_refused(fs: Filesystem, lines: tuple[int | None, int | None]) -> None:
    with pytest.raises(ToolError, match="counted from 1"):
        fs.read_file("a.txt", *lines)


@pytest.mark.parametrize(
    ("data", "count"),
    [(b"a\nb\n", "2 lines"), (b"a\nb", "2 lines"), (b"a", "1 line"), (b"\n", "1 line"), (b"", "0 lines")],
)
async def test_a_line_beyond_the_end_says_how_many_there_are(
    root: Path, fs: Filesystem, data: bytes, count: str
) -> None:
    (root / "f").write_bytes(data)
    for start in (3, 4, 1000):
        with pytest.raises(ToolError, match=f"has {count}$"):
            fs.read_file("f", start)


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"no end", b"a\r\nb\r\n", b"a\rb", "é\u2028\U0001f600\n".encode(), b"\xef\xbb\xbfbom\n"]
)
async def test_a_text_is_read_as_it_is(root: Path, fs: Filesystem, data: bytes) -> None:
    (root / "f").write_bytes(data)
    assert fs.read_file("f").encode() == data


async def test_a_huge_file_is_cut_and_says_how_to_go_on(root: Path, kits: Open) -> None:
    (root / "huge").write_bytes(b"".join(b"line %07d\n" % number for number in range(1, 500_001)))
    fs = await kits(root, max_read_bytes=1024)
    text = fs.read_file("huge")
    assert len(text) < 1200
    lines = text.splitlines()
    assert lines[0] == "line 0000001"
    assert lines[-1] == (
        f"[cut after line {len(lines) - 1}; the file has 6500000 bytes: go on with start_line={len(lines)}]"
    )
    assert fs.read_file("huge", len(lines)).startswith(f"line {len(lines):07}\n")
    assert fs.read_file("huge", 499_999) == "line 0499999\nline 0500000\n"
    assert fs.read_file("huge", 250_000, 250_000) == "line 0250000\n"
    with pytest.raises(ToolError, match="500000 lines"):
        fs.read_file("huge", 500_001)


async def test_one_endless_line_is_cut_between_characters(root: Path, kits: Open) -> None:
    (root / "long").write_text("é" * 3_000_000 + "\nlast\n")
    fs = await kits(root, max_read_bytes=1025)
    text = fs.read_file("long")
    assert text.startswith("é" * 512 + "\n[cut in line 1, which is too long")
    assert "\ufffd" not in text
    assert fs.read_file("long", 2) == "last\n"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\nxx", "PNG image"),
        (b"text\0more", "binary"),
        (b"\x7fELF\x02\x01", "ELF"),
        (b"\xff\xfet\0e\0", "UTF-16"),
        (bytes(range(1, 32)) * 10, "binary"),
        (b"SQLite format 3\0" + bytes(100), "SQLite"),
    ],
)
async def test_a_binary_file_is_told_and_not_shown(root: Path, fs: Filesystem, data: bytes, kind: str) -> None:
    (root / "f").write_bytes(data)
    with pytest.raises(ToolError, match=f"{kind}.*{len(data)} bytes"):
        fs.read_file("f")
    with pytest.raises(ToolError, match=kind):
        fs.edit_file("f", "a", "b")
    assert fs.grep(".", "f").matches == []


async def test_other_encodings_are_shown_with_a_note_and_never_edited(root: Path, fs: Filesystem) -> None:
    (root / "latin").write_bytes("café au lait\n".encode("latin-1"))
    assert fs.read_file("latin").startswith("caf\ufffd au lait\n[not all of it is UTF-8")
    with pytest.raises(ToolError, match="not UTF-8 at byte 3"):
        fs.edit_file("latin", "au", "con")
    assert (root / "latin").read_bytes() == "café au lait\n".encode("latin-1")


async def test_a_missing_file_names_what_is_near(fs: Filesystem) -> None:
    with pytest.raises(ToolError, match=r"'src/mian\.py' does not exist; did you mean 'src/main\.py'\?"):
        fs.read_file("src/mian.py")
    with pytest.raises(ToolError, match=r"'scr/main\.py' does not exist; did you mean 'src'\?"):
        fs.read_file("scr/main.py")
    with pytest.raises(ToolError, match=r"did you mean 'a\.txt'"):
        fs.read_file("A.TXT")
    with pytest.raises(ToolError, match=r"'zzzzzz' does not exist$"):
        fs.read_file("zzzzzz")


async def test_a_directory_is_no_file_and_a_file_no_directory(fs: Filesystem) -> None:
    for use in (lambda: fs.read_file("src"), lambda: fs.write_file("src", "x"), lambda: fs.edit_file("src", "a", "b")):
        with pytest.raises(ToolError, match="is a directory"):
            use()
    for use in (lambda: fs.list_dir("a.txt"), lambda: fs.glob("*", "a.txt"), lambda: fs.read_file("a.txt/x"),
                lambda: fs.write_file("a.txt/x", "x")):  # fmt: skip
        with pytest.raises(ToolError, match="not a directory"):
            use()


# Writing.


async def test_a_file_is_written_exactly(root: Path, fs: Filesystem) -> None:
    text = "é\r\nx\n\u2028\0end"
    assert fs.write_file("new.txt", text) == Written("new.txt", len(text.encode()), True)
    assert (root / "new.txt").read_bytes() == text.encode()
    assert fs.write_file("new.txt", "").created is False
    assert (root / "new.txt").read_bytes() == b""


async def test_folders_on_the_way_are_made_inside(root: Path, fs: Filesystem) -> None:
    assert fs.write_file("x/y/z.txt", "1").path == "x/y/z.txt"
    assert (root / "x" / "y" / "z.txt").read_text() == "1"
    with pytest.raises(ToolError, match="directory"):
        fs.write_file("x/", "1")
    with pytest.raises(ToolError, match="names a directory"):
        fs.write_file("x/new/", "1")
    assert os.listdir(root / "x") == ["y"]


async def test_a_file_is_exchanged_in_one_step_and_keeps_its_mode(root: Path, fs: Filesystem) -> None:
    (root / "run.sh").write_text("old")
    (root / "run.sh").chmod(0o751)
    with (root / "run.sh").open() as reader:
        fs.write_file("run.sh", "new")
        assert reader.read() == "old"
    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o751
    fs.edit_file("run.sh", "new", "newer")
    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o751
    previous = os.umask(0o027)
    try:
        fs.write_file("fresh", "x")
    finally:
        os.umask(previous)
    assert stat.S_IMODE((root / "fresh").stat().st_mode) == 0o640
    assert not [name for name in os.listdir(root) if name.endswith(".tmp")]


async def test_a_write_that_fails_leaves_everything_as_it_was(root: Path, kits: Open) -> None:
    fs = await kits(root, max_write_bytes=10)
    for use in (
        lambda: fs.write_file("a.txt", "x" * 11),
        lambda: fs.edit_file("a.txt", "one", "1"),
        lambda: fs.write_file("a.txt", "\ud800"),
    ):
        with pytest.raises(ToolError):
            use()
    assert (root / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert sorted(os.listdir(root)) == ["a.txt", "src"]


async def test_read_only_refuses_every_write(root: Path, kits: Open) -> None:
    fs = await kits(root, read_only=True)
    for use in (
        lambda: fs.write_file("a.txt", "x"),
        lambda: fs.write_file("n/x", "x"),
        lambda: fs.edit_file("a.txt", "one", "1"),
    ):
        with pytest.raises(ToolError, match="read-only"):
            use()
    assert (root / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert not (root / "n").exists()
    assert fs.read_file("a.txt", 1, 1) == "one\n"


# Editing.


async def test_an_edit_replaces_what_is_unique(root: Path, fs: Filesystem) -> None:
    edited = fs.edit_file("a.txt", "two", "2\n2")
    assert (edited.replacements, edited.lines) == (1, [2])
    assert (root / "a.txt").read_text() == "one\n2\n2\nthree\n"


async def test_an_edit_that_is_not_unique_says_where(root: Path, fs: Filesystem) -> None:
    (root / "f").write_text("x = 1\ny = 1\nx = 1\n")
    with pytest.raises(ToolError, match=r"found 2 times in 'f' \(lines 1, 3\).*all=true"):
        fs.edit_file("f", "x = 1", "x = 2")
    assert (root / "f").read_text() == "x = 1\ny = 1\nx = 1\n"
    assert fs.edit_file("f", "x = 1", "x = 2", all=True).replacements == 2
    assert (root / "f").read_text() == "x = 2\ny = 1\nx = 2\n"


async def test_overlapping_places_are_not_unique(root: Path, fs: Filesystem) -> None:
    (root / "f").write_text("aaa")
    with pytest.raises(ToolError, match="found 2 times"):
        fs.edit_file("f", "aa", "b")


@pytest.mark.parametrize(
    ("old", "reason"),
    [
        ("four", "not found"),
        ("one two", "other white space"),
        ("one \ntwo", "line 1 has it with other white space"),
        ("", "is empty"),
    ],
)
async def test_an_edit_that_finds_nothing_says_why(fs: Filesystem, old: str, reason: str) -> None:
    with pytest.raises(ToolError, match=reason if old != "one two" else "not found"):
        fs.edit_file("a.txt", old, "x")
    with pytest.raises(ToolError, match="the same"):
        fs.edit_file("a.txt", "one", "one")


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny", b"x\r\ny\r\nc\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "x\ny", b"x\r\ny\r\n"),
        (b"a\r\nb\r\n", "b", "b\nc", b"a\r\nb\r\nc\r\n"),
        (b"a\r\nb\nc\n", "b\nc", "x\ny", b"a\r\nx\ny\n"),
        (b"a\r\nb\nc\n", "a\nb", "x\ny", b"x\r\ny\nc\n"),
        (b"a\nb\n", "a\nb", "x\ny", b"x\ny\n"),
        (b"\xef\xbb\xbfa\r\n", "a", "b", b"\xef\xbb\xbfb\r\n"),
        (b"no end", "end", "more", b"no more"),
    ],
)
async def test_line_breaks_are_kept(
    root: Path, fs: Filesystem, before: bytes, old: str, new: str, after: bytes
) -> None:
    (root / "f").write_bytes(before)
    fs.edit_file("f", old, new)
    assert (root / "f").read_bytes() == after


async def test_edits_at_once_do_not_lose_each_other(root: Path, fs: Filesystem) -> None:
    (root / "f").write_text("".join(f"<{number}>\n" for number in range(50)))
    results = await asyncio.gather(
        *(fs.edit_file.execute({"path": "f", "old": f"<{n}>", "new": f"[{n}]"}) for n in range(50))
    )
    assert not [result.output for result in results if result.is_error]
    assert (root / "f").read_text() == "".join(f"[{number}]\n" for number in range(50))


# Listing and searching.


async def test_a_directory_is_listed_directories_first(fs: Filesystem) -> None:
    listing = fs.list_dir()
    assert [(entry.name, entry.type, entry.size) for entry in listing.entries] == [
        ("src", "directory", None),
        ("a.txt", "file", 14),
    ]
    assert listing.path == "."
    assert not listing.truncated
    assert fs.list_dir("src/deep/").path == "src/deep"


async def test_a_large_directory_is_cut_and_says_so(root: Path, kits: Open) -> None:
    for number in range(20):
        (root / f"f{number:02}").touch()
    fs = await kits(root, max_results=5)
    listing = fs.list_dir()
    assert (len(listing.entries), listing.truncated) == (5, True)
    found = fs.glob("f*")
    assert (found.paths, found.truncated) == ([f"f{n:02}" for n in range(5)], True)
    assert "5 results" in (found.note or "")
    assert fs.glob("f0[0-4]").truncated is False
    (root / "lines").write_text("x\n" * 20)
    lines = fs.grep("x", "lines")
    assert (len(lines.matches), lines.truncated) == (5, True)


async def test_names_that_are_no_text_are_shown_as_well_as_can_be(root: Path, fs: Filesystem) -> None:
    (root / os.fsdecode(b"b\xffd.txt")).write_bytes(b"hello\n")
    for tool, arguments in ((fs.list_dir, {}), (fs.glob, {"pattern": "b*"}), (fs.grep, {"pattern": "hello"})):
        result = await tool.execute(arguments)
        assert not result.is_error, result.output
        assert "b\ufffdd.txt" in result.output


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*", ".", ["a.txt"]),
        ("*.py", ".", []),
        ("**/*.py", ".", ["src/main.py"]),
        ("*.py", "src", ["src/main.py"]),
        ("**", ".", ["a.txt", "src/main.py", "src/deep/x.md"]),
        ("**/*", "src", ["src/main.py", "src/deep/x.md"]),
        ("src/**/x.md", ".", ["src/deep/x.md"]),
        ("src/**/main.py", ".", ["src/main.py"]),
        ("**/deep/**/*.md", ".", ["src/deep/x.md"]),
        ("*.{txt,md}", ".", ["a.txt"]),
        ("{src/*,a}.{py,txt}", ".", ["src/main.py", "a.txt"]),
        ("?.txt", ".", ["a.txt"]),
        ("[!b].txt", ".", ["a.txt"]),
        ("./a.txt", ".", ["a.txt"]),
        ("A.TXT", ".", []),
        ("*/", ".", ["src/"]),
        ("**/", ".", ["src/", "src/deep/"]),
        ("[", ".", []),
    ],
)
async def test_patterns_find_what_they_say(fs: Filesystem, pattern: str, path: str, expected: list[str]) -> None:
    found = fs.glob(pattern, path)
    assert sorted(found.paths) == sorted(expected)
    assert not found.truncated


@pytest.mark.parametrize("pattern", ["", "/", ".", "a\0b", "x" * 2000, "{a,b}" * 10])
async def test_a_pattern_that_is_none_is_refused(fs: Filesystem, pattern: str) -> None:
    with pytest.raises(ToolError, match="pattern"):
        fs.glob(pattern)


async def test_caches_and_version_control_are_searched_only_by_name(root: Path, fs: Filesystem) -> None:
    for folder in (".git", "node_modules/x", "__pycache__", ".github"):
        (root / folder).mkdir(parents=True)
        (root / folder / "f.txt").write_text("needle\n")
    assert fs.glob("**/f.txt").paths == [".github/f.txt"]
    assert [match.path for match in fs.grep("needle").matches] == [".github/f.txt"]
    assert fs.glob(".git/*").paths == [".git/f.txt"]
    assert fs.glob("*", ".git").paths == [".git/f.txt"]
    assert [match.path for match in fs.grep("needle", ".git").matches] == [".git/f.txt"]


async def test_lines_are_found_with_their_numbers(root: Path, fs: Filesystem) -> None:
    (root / "crlf.txt").write_bytes(b"one\r\ntwo\r\n")
    found = fs.grep("^t.o$")
    assert [(match.path, match.line, match.text) for match in found.matches] == [
        ("a.txt", 2, "two"),
        ("crlf.txt", 2, "two"),
    ]
    assert (found.files_searched, found.truncated, found.note) == (4, False, None)
    assert [match.path for match in fs.grep("(?i)IMPORT", include="*.py").matches] == ["src/main.py"]
    assert [match.path for match in fs.grep("t", include="src/**/*.md").matches] == ["src/deep/x.md"]
    assert fs.grep("import", include="*.txt").matches == []
    assert [match.line for match in fs.grep("o", "a.txt").matches] == [1, 2]
    assert [match.line for match in fs.grep(r"(\w)\1", "a.txt").matches] == [3]


@pytest.mark.parametrize("pattern", ["(", "[", "*", "(?P<", "", "x" * 1001, "(" * 500])
async def test_what_is_no_expression_is_refused(fs: Filesystem, pattern: str) -> None:
    with pytest.raises(ToolError, match=r"expression|characters"):
        fs.grep(pattern)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*)*x", r"(a?){40}a{40}", ".*.*.*.*=.*x"])
async def test_no_expression_can_hang_a_search(root: Path, kits: Open, pattern: str) -> None:
    """The loop keeps turning meanwhile: the expression runs in a process that is killed."""
    (root / "evil.txt").write_text("a" * 5000 + "!\n")
    fs = await kits(root, time_limit=0.4)
    start = time.monotonic()
    search = asyncio.create_task(fs.grep.execute({"pattern": pattern, "path": "evil.txt"}))
    lag = 0.0
    while not search.done():
        before = time.monotonic()
        await asyncio.wait([search], timeout=0.01)
        lag = max(lag, time.monotonic() - before)
    result = search.result()
    assert time.monotonic() - start < 4
    assert lag < 1
    assert not result.is_error
    if result.structured["truncated"]:
        assert "stopped after 0.4 s" in result.structured["note"]


async def test_a_long_line_is_shown_around_its_match(root: Path, fs: Filesystem) -> None:
    (root / "min.js").write_text("x" * 100_000 + "NEEDLE" + "y" * 100_000 + "\n")
    for pattern in ("NEEDLE", "NEE(D)LE"):
        (match,) = fs.grep(pattern).matches
        assert "NEEDLE" in match.text
        assert match.text.startswith("...")
        assert match.text.endswith("...")
        assert len(match.text) < 600


async def test_a_file_too_large_to_search_is_told(root: Path, fs: Filesystem) -> None:
    with (root / "sparse.log").open("wb") as file:
        file.truncate(11 * 1024 * 1024)
    found = fs.grep("one")
    assert [match.path for match in found.matches] == ["a.txt"]
    assert found.note is not None
    assert "1 file of more than 10 MiB" in found.note


async def test_a_deep_tree_is_walked_with_few_descriptors(root: Path, fs: Filesystem) -> None:
    deep = "/".join("d" * 300)
    os.makedirs(root / deep)
    os.rename(root / "a.txt", root / deep / "bottom.txt")
    assert fs.glob("**/bottom.txt").paths == [f"{deep}/bottom.txt"]
    assert len(fs.grep("two").matches) == 1


async def test_every_descriptor_is_given_back(root: Path, fs: Filesystem) -> None:
    paths = ["a.txt", *escapes(root), "src", "missing/x", "a.txt/x", "a\0"]
    before = _open_descriptors()
    for path in paths:
        for use in (
            lambda path=path: fs.read_file(path),
            lambda path=path: fs.write_file(path, "x"),
            lambda path=path: fs.edit_file(path, "x", "y"),
            lambda path=path: fs.list_dir(path),
            lambda path=path: fs.glob("**/*", path),
            lambda path=path: fs.grep("(x|y)+", path),
        ):
            with suppress(ToolError):
                use()
    assert _open_descriptors() == before


def _open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))
