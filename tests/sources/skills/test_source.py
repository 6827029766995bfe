"""Folders of skills as a source: found within bounds, loaded leniently with reports, followed when they change."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from anykit.capabilities import CapabilityContext, InvalidInput
from anykit.sources.skills import Library, Place, Selection, SkillsSource, look, usual_places
from anykit.sources.skills.resources import TEMPLATE
from sources.skills.making import make_skill, names, said, started, until

pytestmark = pytest.mark.anyio
CONTEXT = CapabilityContext()


# found


async def test_a_folder_of_skills_is_gone_through_in_order_of_names(tmp_path: Path) -> None:
    for name in ("zeta", "alpha", "group/inner"):
        make_skill(tmp_path, name)
    make_skill(tmp_path, "alpha/references/nested")
    for skipped in ("node_modules/x", ".git/x"):
        make_skill(tmp_path, skipped)
    async with started(SkillsSource(tmp_path)) as source:
        assert names(source) == ["alpha", "zeta", "group/inner"]
        assert [skill.folder.name for skill in source.skills] == ["alpha", "zeta", "inner"]


async def test_a_folder_that_is_a_skill_is_that_skill(tmp_path: Path) -> None:
    async with started(SkillsSource(make_skill(tmp_path, "one"))) as source:
        assert (names(source), source.state.status) == (["one"], "ready")


def test_looking_is_bounded_in_depth_and_number(tmp_path: Path) -> None:
    make_skill(tmp_path, "a/b/c/d/deep-enough")
    make_skill(tmp_path, "a/b/c/d/e/too-deep")
    found, _ = look([Place(tmp_path)])
    assert [one.folder.name for one in found] == ["deep-enough"]
    for number in range(2100):
        (tmp_path / "many" / f"{number:04}").mkdir(parents=True)
    make_skill(tmp_path, "many/9999")
    found, findings = look([Place(tmp_path / "many")])
    assert found == []
    assert "has more than 2000 folders" in findings[0].message


def test_links_in_circles_and_out_are_not_followed(tmp_path: Path) -> None:
    skills = tmp_path / "skills"
    make_skill(skills, "good")
    elsewhere = make_skill(tmp_path, "elsewhere")
    (skills / "loop").symlink_to("loop")
    (skills / "self").symlink_to(".")
    (skills / "out").symlink_to(elsewhere)
    (skills / "copy").symlink_to("good")
    found, findings = look([Place(skills)])
    assert [one.folder.name for one in found] == ["good"]
    assert [(Path(one.where).name, one.level) for one in findings] == [("out", "warning")]
    assert "leads out of the folder" in findings[0].message


async def test_b078_a_skill_whose_file_leads_out_or_is_no_file_is_left_out(tmp_path: Path) -> None:
    """Public case B078: instavm/open-skills#11."""
    (tmp_path / "outside.md").write_text("---\nname: out\ndescription: secret\n---\n")
    skills = tmp_path / "skills"
    for name in ("out", "pipe", "folder", "inside"):
        (skills / name).mkdir(parents=True)
    (skills / "out" / "SKILL.md").symlink_to(tmp_path / "outside.md")
    os.mkfifo(skills / "pipe" / "SKILL.md")
    (skills / "folder" / "SKILL.md").mkdir()
    (skills / "inside" / "real.md").write_text("---\nname: inside\ndescription: d\n---\n")
    (skills / "inside" / "SKILL.md").symlink_to("real.md")
    make_skill(skills, "good")
    async with started(SkillsSource(skills)) as source:
        assert names(source) == ["good", "inside"]
        assert said(source) == [
            "error folder/SKILL.md: is no file",
            "error out/SKILL.md: is a link that leads out of its folder",
            "error pipe/SKILL.md: is no file",
        ]


def test_the_usual_places_are_the_project_s_then_the_user_s_then_the_system_s(tmp_path: Path) -> None:
    places = usual_places(tmp_path / "project", {"HOME": str(tmp_path / "home")})
    shown = [(place.scope, str(place.path).removeprefix(str(tmp_path))) for place in places]
    assert shown == [
        ("project", "/project/.agents/skills"),
        ("project", "/project/.claude/skills"),
        ("user", "/home/.agents/skills"),
        ("user", "/home/.claude/skills"),
        ("user", "/home/.cursor/skills"),
        ("user", "/home/.codex/skills"),
        ("user", "/home/.gemini/skills"),
        ("user", "/home/.copilot/skills"),
        ("user", "/home/.config/opencode/skills"),
        ("user", "/home/.config/agents/skills"),
        ("system", "/etc/codex/skills"),
    ]


async def test_a_project_s_skill_overrides_a_user_s_and_that_is_reported(tmp_path: Path) -> None:
    make_skill(tmp_path / "home/.agents/skills", "pdf", "The user's.")
    make_skill(tmp_path / "home/.agents/skills", "mail", "The user's.")
    make_skill(tmp_path / "project/.claude/skills", "pdf", "The project's.")
    (tmp_path / "home/.claude/skills").mkdir(parents=True)
    (tmp_path / "home/.claude/skills/mail").symlink_to("../../.agents/skills/mail")  # as installers do
    places = usual_places(tmp_path / "project", {"HOME": str(tmp_path / "home")}, system=())
    async with started(SkillsSource(*places)) as source:
        assert {skill.name: (skill.description, skill.scope) for skill in source.skills} == {
            "pdf": ("The project's.", "project"),
            "mail": ("The user's.", "user"),
        }
        [shadowed] = said(source)
        assert shadowed.startswith("warning pdf/SKILL.md: is shadowed by ")


async def test_what_lies_in_a_project_needs_somebody_s_agreement_and_gets_it_later(tmp_path: Path) -> None:
    folder = make_skill(tmp_path / "p/.agents/skills", "pdf")
    make_skill(tmp_path / "u/.agents/skills", "mine")
    agreed: set[Path] = set()
    places = usual_places(tmp_path / "p", {"HOME": str(tmp_path / "u")}, system=())
    async with started(SkillsSource(*places, allowed=lambda one: one in agreed)) as source:
        assert names(source) == ["mine"]
        assert "nobody has agreed to it; if you do: anykit trust" in said(source)[0]
        agreed.add(folder)
        await source.refresh()
        assert (names(source), said(source)) == (["pdf", "mine"], [])


# loaded


@pytest.mark.parametrize(
    ("raw", "name", "reports"),
    [
        (b"---\nname: other\ndescription: d\n---\n", "other", ["`name` is 'other', and its folder 'it'"]),
        (
            b"---\nname: %b\ndescription: d\n---\n" % (b"n" * 65),
            "n" * 65,
            ["longer than 64 characters", "its folder", "is not listed"],
        ),
        (b"---\nname: It\ndescription: d\n---\n", "It", ["should be lower-case", "its folder", "is not listed"]),
        (b"---\ndescription: d\n---\n", "it", ["`name` is missing; the folder's is taken", "is not listed"]),
        (b"---\nname: 7\ndescription: d\n---\n", "7", ["`name` is no text", "its folder", "is not listed"]),
        (b"---\nname: it\ndescription: 7\n---\n", "it", ["`description` is no text", "is not listed"]),
        (
            b"---\nname: it\ndescription: %b\n---\n" % (b"d" * 1025),
            "it",
            ["longer than 1024 characters", "is not listed"],
        ),
        (b"---\nname: it\ndescription: a: b\n---\n", "it", ["put it in quotes", "is not listed"]),
        (b"\xef\xbb\xbf---\nname: it\ndescription: d\n---\n", "it", ["byte order mark", "is not listed"]),
        (b"---\nname: it\ndescription: d\nmetadata: [a]\n---\n", "it", ["`metadata` must be a mapping"]),
        (b"---\nname: it\ndescription: d\nmetadata: {a: 1, b: x}\n---\n", "it", ["put quotes around a"]),
        (b"---\nname: it\ndescription: d\ncompatibility: [a]\n---\n", "it", ["`compatibility` must be a text"]),
        (b'---\nname: it\ndescription: "d\\u200bd"\n---\n', "it", ["characters that people do not see"]),
        (b"---\nname: it\ndescription: d\nmodel: any\nargument-hint: x\n---\n", "it", []),
        (b"---\r\nname: it\r\ndescription: d\r\n---\r\nx", "it", []),
    ],
)
async def test_what_is_nearly_right_is_loaded_and_reported(
    tmp_path: Path, raw: bytes, name: str, reports: list[str]
) -> None:
    async with started(SkillsSource(make_skill(tmp_path, "it", raw=raw))) as source:
        assert names(source) == [name]
        shown = said(source)
        assert len(shown) == len(reports), shown
        assert all(report in line for report, line in zip(reports, shown, strict=True)), shown
        assert all(line.startswith("warning ") for line in shown)


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"---\nname: it\n---\n", "SKILL.md:1: `description` is missing"),
        (b"---\nname: it\ndescription: ''\n---\n", "SKILL.md:3: `description` is missing"),
        (b'---\nname: it\ndescription: "\\u200b"\n---\n', "SKILL.md:3: `description` is missing"),
        (b"---\nname: it\ndescription: [a]\n---\n", "SKILL.md:3: `description` must be a text"),
        (b"---\nname: [it]\ndescription: d\n---\n", "SKILL.md:2: `name` must be a text"),
        (b'---\nname: "i\\u202et"\ndescription: d\n---\n', "SKILL.md:2: `name` cannot be used"),
        (b'---\nname: "a\\nb"\ndescription: d\n---\n', "SKILL.md:2: `name` cannot be used"),
        (b"---\nname: ..\ndescription: d\n---\n", "SKILL.md:2: `name` cannot be '..'"),
        (b"---\nname: %b\ndescription: d\n---\n" % (b"n" * 300), "SKILL.md:2: `name` cannot be used"),
        (b"---\nname: it\ndescription: [\n---\n", "SKILL.md:4: not YAML"),
        (b"---\nname: it\ndescription: d\n", "SKILL.md:1: the frontmatter is never closed"),
        (b"# it\n", "SKILL.md:1: has no frontmatter"),
        (b"", "SKILL.md:1: has no frontmatter"),
        (b"---\nname: it\ndescription: d\n---\ncaf\xe9\n", "SKILL.md:5: is not UTF-8 (byte 35)"),
        (b"---\nname: it\ndescription: d\n---\n" + b"x" * 1024 * 1024, "SKILL.md: is larger than 1048576 bytes"),
    ],
)
async def test_what_cannot_be_loaded_is_an_error_with_file_and_line_and_costs_only_itself(
    tmp_path: Path, raw: bytes, error: str
) -> None:
    make_skill(tmp_path, "it", raw=raw)
    make_skill(tmp_path, "good")
    async with started(SkillsSource(tmp_path)) as source:
        assert names(source) == ["good"]
        [line] = said(source)
        assert line.startswith(f"error it/{error}"), line
        assert len(line) < 400


async def test_only_what_is_selected_is_offered(tmp_path: Path) -> None:
    for name in ("pdf-read", "pdf-write", "mail"):
        make_skill(tmp_path, name)
    select = Selection(("pdf-*",), ("*-write",))
    async with started(SkillsSource(tmp_path, select=select)) as source:
        assert names(source) == ["pdf-read"]


# resources


async def test_every_file_is_a_resource_with_its_type_and_size(tmp_path: Path) -> None:
    files = {"ref/a b.md": b"# x", "x.png": b"\x89PNG\0", "run": b"#!/bin/sh\n"}
    make_skill(tmp_path, "pdf", "Reads <PDF>s.", files=files)
    async with started(SkillsSource(tmp_path)) as source:
        [provider] = source.resources()
        page = await provider.list_resources()
        assert [(one.id, one.name, one.media_type, one.size) for one in page.items] == [
            ("skill://pdf/SKILL.md", "pdf", "text/markdown", 65),
            ("skill://pdf/ref/a%20b.md", "a b.md", "text/markdown", 3),
            ("skill://pdf/run", "run", None, 10),
            ("skill://pdf/x.png", "x.png", "image/png", 5),
        ]
        assert page.items[0].description == "Reads <PDF>s."
        read = {one.id: (await provider.read_resource(one.id, CONTEXT)).parts[0] for one in page.items}
        assert [(part.kind, getattr(part, "media_type", "")) for part in read.values()] == [
            ("text", "text/markdown"),
            ("text", "text/markdown"),
            ("text", "text/plain"),
            ("blob", "image/png"),
        ]


@pytest.mark.parametrize(
    "uri",
    [
        "skill://pdf/../secret",
        "skill://pdf/%2e%2e/secret",
        "skill://pdf/..%2fsecret",
        "skill://pdf/%2Fetc%2Fpasswd",
        "skill://pdf//etc/passwd",
        "skill://pdf/link_out",
        "skill://pdf/a%00b",
        "skill://pdf/nothing",
        "skill://pdf/",
        "skill://pdf",
        "skill://../secret",
        "skill://other/SKILL.md",
        "skill://pdf/SKILL.md?x",
        "skill://pdf/SKILL.md#x",
        "file:///etc/passwd",
    ],
)
async def test_b078_no_uri_leads_out_of_a_skill(tmp_path: Path, uri: str) -> None:
    """Public case B078: instavm/open-skills#11."""
    (tmp_path / "secret").write_text("secret")
    skill = make_skill(tmp_path / "skills", "pdf")
    (skill / "link_out").symlink_to(tmp_path / "secret")
    async with started(SkillsSource(tmp_path / "skills")) as source:
        [provider] = source.resources()
        with pytest.raises(InvalidInput) as error:
            await provider.read_resource(uri, CONTEXT)
        assert "secret\n" not in error.value.message


async def test_a_long_list_comes_in_pages(tmp_path: Path) -> None:
    make_skill(tmp_path, "big", files={f"f{number:04}": b"" for number in range(1100)})
    async with started(SkillsSource(tmp_path)) as source:
        [provider] = source.resources()
        cursor, seen, pages = None, list[str](), 0
        while True:
            page = await provider.list_resources(cursor)
            seen += [one.id for one in page.items]
            pages += 1
            if (cursor := page.next_cursor) is None:
                break
        assert (len(seen), len(set(seen)), pages) == (1101, 1101, 3)


async def test_names_and_paths_are_completed(tmp_path: Path) -> None:
    make_skill(tmp_path, "pdf", files={"ref/a.md": b"", "ref/b.md": b""})
    make_skill(tmp_path, "mail")
    async with started(SkillsSource(tmp_path)) as source:
        provider: object = source.resources()[0]
        complete = getattr(provider, "complete")  # noqa: B009 - it is one of the optional protocols
        assert await complete(TEMPLATE, "name", "p", CONTEXT) == (["pdf"], False)
        given = CapabilityContext(metadata={"arguments": {"name": "pdf"}})
        assert await complete(TEMPLATE, "path", "ref/", given) == (["ref/a.md", "ref/b.md"], False)


# followed


@pytest.mark.parametrize("change", ["add", "edit", "remove", "break"])
async def test_a_change_on_disk_is_told_of(tmp_path: Path, change: str) -> None:
    folder = make_skill(tmp_path, "pdf", "Old.")
    told: list[str] = []
    async with started(SkillsSource(tmp_path, poll=0.02)) as source:
        source.subscribe(lambda: told.append(" ".join(f"{one.name}={one.description}" for one in source.skills)))
        changes: dict[str, tuple[Callable[[], object], str]] = {
            "add": (lambda: make_skill(tmp_path, "mail", "New."), "mail=New. pdf=Old."),
            "edit": (lambda: make_skill(tmp_path, "pdf", "New and longer."), "pdf=New and longer."),
            "remove": (lambda: (folder / "SKILL.md").unlink(), ""),
            "break": (lambda: (folder / "SKILL.md").write_text("no skill"), ""),
        }
        make, after = changes[change]
        make()
        await until(lambda: told and told[-1] == after)


async def test_nothing_is_told_of_while_nothing_changes(tmp_path: Path) -> None:
    make_skill(tmp_path, "pdf")
    async with started(SkillsSource(tmp_path, poll=None)) as source:
        told: list[None] = []
        source.subscribe(lambda: told.append(None))
        tool = source.invocables()[0]
        for _ in range(3):
            await source.refresh()
        assert told == []
        assert source.invocables()[0] is tool


async def test_who_watches_a_file_hears_of_its_change_only(tmp_path: Path) -> None:
    folder = make_skill(tmp_path, "pdf", files={"a.md": b"1", "b.md": b"1"})
    async with started(SkillsSource(tmp_path, poll=None)) as source:
        heard: list[str] = []
        undo = source.watch("skill://pdf/a.md", heard.append)
        (folder / "b.md").write_text("22")
        await source.refresh()
        assert heard == []
        (folder / "a.md").write_text("22")
        await source.refresh()
        assert heard == ["skill://pdf/a.md"]
        undo()
        (folder / "a.md").unlink()
        await source.refresh()
        assert heard == ["skill://pdf/a.md"]


async def test_a_source_that_is_closed_leaves_the_library(tmp_path: Path) -> None:
    make_skill(tmp_path, "pdf")
    library = Library()
    async with started(SkillsSource(tmp_path, library=library)) as source:
        assert (library.offered, list(library.skills)) == (True, ["pdf"])
    assert (library.offered, list(library.skills), source.state.status) == (False, [], "closed")
    await source.close()


async def test_a_folder_that_is_gone_is_a_report_and_no_failure(tmp_path: Path) -> None:
    async with started(SkillsSource(tmp_path / "nothing", poll=None)) as source:
        assert (source.state.status, source.invocables()) == ("ready", ())
        assert "cannot be looked into: No such file" in said(source)[0]
        make_skill(tmp_path / "nothing", "pdf")
        await source.refresh()
        assert (names(source), said(source)) == (["pdf"], [])
