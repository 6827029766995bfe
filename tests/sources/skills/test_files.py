"""Nothing leaves a skill's folder: neither a name, nor a link, nor what becomes one; and nothing hangs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anykit.sources.skills import files
from anykit.sources.skills.files import NotThere, TooLarge, read, tree_of
from sources.skills.making import make_skill


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.md").write_text("secret")
    made = make_skill(tmp_path, "inside", files={"ref/x.md": b"x", "a b#?.md": b"odd"})
    (made / "link_in").symlink_to("ref/x.md")
    (made / "dir_in").symlink_to("ref")
    (made / "link_out").symlink_to("/etc/passwd")
    (made / "dirlink").symlink_to(tmp_path / "outside")
    (made / "loop").symlink_to("loop")
    (made / "ref" / "up").symlink_to("..")
    os.mkfifo(made / "fifo")
    (made / ".git").mkdir()
    (made / ".git" / "config").write_text("secret")
    return made


@pytest.mark.parametrize(
    "path",
    [
        "../../etc/passwd",
        "../secret",
        "/etc/passwd",
        "ref/../../secret",
        "ref/../SKILL.md",
        "./SKILL.md",
        "link_out",
        "dirlink/x.md",
        "dirlink/nothing",
        "a\0b",
        "loop",
        "fifo",
        "ref",
        "",
        ".",
        "..",
        "ref//x.md",
        "SKILL.md/",
        "SKILL.md/x",
        ".git/config",
        "\ud800",
        "x" * 5000,
        "/".join("a" * 500),
    ],
)
def test_b078_what_is_not_in_the_folder_is_refused_in_the_same_words(folder: Path, path: str) -> None:
    """Public case B078: instavm/open-skills#11, NousResearch/hermes-agent#68711, librefang/librefang#1527."""
    with pytest.raises(NotThere) as error:
        read(folder, path)
    assert str(error.value) == str(NotThere(path))


@pytest.mark.parametrize("path", ["link_in", "dir_in/x.md", "ref/up/ref/x.md"])
def test_b078_a_link_that_stays_inside_is_followed(folder: Path, path: str) -> None:
    """Public case B078: instavm/open-skills#11."""
    assert read(folder, path) == b"x"


def test_b078_listing_does_not_walk_outside_nor_in_circles(folder: Path) -> None:
    """Public case B078: NousResearch/hermes-agent#68711."""
    tree = tree_of(folder)
    assert [one.path for one in tree.files] == ["SKILL.md", "a b#?.md", "link_in", "ref/x.md"]
    assert (tree.folders, tree.complete) == (("ref",), True)


def test_a_file_that_is_too_long_is_refused(folder: Path) -> None:
    with pytest.raises(TooLarge):
        read(folder, "a b#?.md", limit=2)
    assert read(folder, "a b#?.md", limit=3) == b"odd"
    with pytest.raises(TooLarge):
        files.digest(folder, "a b#?.md", limit=2)


def test_names_that_are_no_utf8_are_listed_and_read(folder: Path) -> None:
    name = os.fsdecode(b"caf\xe9.md")
    (folder / name).write_text("x")
    [listed] = [one for one in tree_of(folder).files if one.path == name]
    assert (listed.shown, files.quoted(name)) == ("caf\ufffd.md", "caf%E9.md")
    assert read(folder, files.unquoted("caf%E9.md")) == b"x"


def test_folders_that_are_too_deep_are_cut_and_said_to_be(tmp_path: Path) -> None:
    deep = make_skill(tmp_path, "deep", files={"/".join("d" * 20) + "/x": b""})
    tree = tree_of(deep)
    assert ([one.path for one in tree.files], tree.complete) == (["SKILL.md"], False)


def test_all_of_a_folder_has_one_digest_that_any_change_changes(tmp_path: Path) -> None:
    made = make_skill(tmp_path, "one", files={"a": b"1"})
    digests = [files.digest_of_tree(made)]
    for change in (
        lambda: (made / "a").write_bytes(b"2"),
        lambda: (made / "a").rename(made / "b"),
        lambda: (made / "c").touch(),
    ):
        change()
        digests.append(files.digest_of_tree(made))
    assert len(set(digests)) == 4


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("SKILL.md", "text/markdown"),
        ("a.PY", "text/x-python"),
        ("a.ts", "text/x-typescript"),
        ("a.png", "image/png"),
        ("a.pdf", "application/pdf"),
        ("a.yaml", "application/yaml"),
        ("Makefile", None),
        (".env", None),
        ("a.nobody", None),
    ],
)
def test_a_media_type_is_told_by_the_ending(name: str, kind: str | None) -> None:
    assert files.media_type(name) == kind


def test_text_is_what_comes_back_as_the_same_bytes() -> None:
    assert files.as_text("é\r\n\ufeff".encode()) == "é\r\n\ufeff"
    assert files.as_text(b"a\0b") is None
    assert files.as_text(b"\xff") is None


@given(st.binary(max_size=60))
def test_any_name_survives_the_way_through_a_uri(name: bytes) -> None:
    path = os.fsdecode(name)
    assert files.unquoted(files.quoted(path)) == path
