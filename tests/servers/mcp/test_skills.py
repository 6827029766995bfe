"""The Skills extension of MCP in both eras: declared, listed with digests, read and followed."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from anykit import Workbench
from servers.mcp.peers import Fields, Lines, envelope, http, lines, request, until
from sources.skills.making import make_skill

pytestmark = pytest.mark.anyio

EXTENSION = "io.modelcontextprotocol/skills"


@pytest.fixture(params=["legacy", "modern"])
def era(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "skills"
    more = "license: MIT\nmetadata:\n  version: '2'\n  count: 1.50\n  day: 2024-05-01\nown: [yes, ~]\n"
    files = {"templates/a b.md": b"x\r\ny", "templates/eu/c.md": b"", "x.png": b"\x89PNG\0\xff", "run": b"\xc3\xa9"}
    make_skill(place, "pdf", "'Reads: PDFs.'", more=more, files=files)
    make_skill(place, "mail")
    make_skill(place, "plain-colon", "Use when: asked.")
    make_skill(place, "Upper")
    (place / "pdf/empty").mkdir()
    return place


@asynccontextmanager
async def talking(era: str, *sources: Any) -> AsyncGenerator[tuple[Lines, Fields, Workbench]]:
    """A client, and what goes into each of its requests."""
    async with Workbench(*map(str, sources)) as bench, lines(bench) as client:
        if era == "legacy":
            await client.shake_hands()
        yield client, {} if era == "legacy" else {"_meta": envelope()}, bench


async def capabilities(client: Lines, era: str) -> Fields:
    """What the server says that it can."""
    if era == "legacy":
        return (await client.shake_hands())["capabilities"]
    return (await client.result("server/discover", _meta=envelope()))["capabilities"]


async def test_the_extension_is_declared_where_there_are_skills(era: str, folder: Path) -> None:
    async with Workbench(str(folder)) as bench, lines(bench) as client:
        declared = await capabilities(client, era)
        assert declared["extensions"] == {EXTENSION: {"directoryRead": True}}
        assert "resources" in declared
    async with Workbench() as bench, lines(bench) as client:
        assert EXTENSION not in (await capabilities(client, era)).get("extensions", {})
        meta = {} if era == "legacy" else {"_meta": envelope()}
        refused = (await client.ask(request(1, "skills/list", **meta)))["error"]
        assert refused["code"] == -32601


async def test_what_conforms_is_listed_with_its_frontmatter_and_the_digest_of_each_file(era: str, folder: Path) -> None:
    async with talking(era, folder) as (client, meta, _):
        result = await client.result("skills/list", **meta)
        assert (result["resultType"], result["ttlMs"], result["cacheScope"]) == ("complete", 0, "private")
        mail, pdf = result["skills"]
        assert mail["frontmatter"] == {"name": "mail", "description": "Does what it is for."}
        assert (pdf["uri"], pdf["frontmatter"]) == (
            "skill://pdf/SKILL.md",
            {
                "name": "pdf",
                "description": "Reads: PDFs.",
                "license": "MIT",
                "metadata": {"version": "2", "count": 1.5, "day": "2024-05-01"},
                "own": ["yes", None],
            },
        )
        assert [one["uri"] for one in pdf["resources"]] == [
            "skill://pdf/SKILL.md",
            "skill://pdf/run",
            "skill://pdf/templates/a%20b.md",
            "skill://pdf/templates/eu/c.md",
            "skill://pdf/x.png",
        ]
        for entry in pdf["resources"]:
            [read] = (await client.result("resources/read", uri=entry["uri"], **meta))["contents"]
            data = read["text"].encode() if "text" in read else base64.b64decode(read["blob"])
            digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
            assert (read["uri"], len(data), digest) == (entry["uri"], entry["size"], entry["digest"])


async def test_one_skill_is_got_by_its_uri(era: str, folder: Path) -> None:
    async with talking(era, folder) as (client, meta, _):
        listed = (await client.result("skills/list", **meta))["skills"]
        got = await client.result("skills/get", uri="skill://pdf/SKILL.md", **meta)
        assert got["skill"] == listed[1]
        assert (got["resultType"], got["ttlMs"], got["cacheScope"]) == ("complete", 0, "private")


@pytest.mark.parametrize(
    "uri",
    ["skill://nothing/SKILL.md", "skill://pdf", "skill://pdf/run", "skill://Upper/SKILL.md", "", "file:///etc/passwd"],
)
async def test_what_is_no_skill_here_is_invalid(era: str, folder: Path, uri: str) -> None:
    async with talking(era, folder) as (client, meta, _):
        refused = (await client.ask(request(1, "skills/get", uri=uri, **meta)))["error"]
        assert (refused["code"], refused["data"]) == (-32602, {"uri": uri})
        assert (await client.ask(request(2, "skills/get", **meta)))["error"]["code"] == -32602


async def test_what_does_not_conform_is_a_resource_all_the_same(era: str, folder: Path) -> None:
    async with talking(era, folder) as (client, meta, _):
        [read] = (await client.result("resources/read", uri="skill://Upper/SKILL.md", **meta))["contents"]
        assert read["text"].startswith("---\nname: Upper\n")


# folders


@pytest.mark.parametrize(
    ("uri", "children"),
    [
        (
            "skill://pdf",
            [
                ("skill://pdf/SKILL.md", "pdf", "text/markdown"),
                ("skill://pdf/empty", "empty", "inode/directory"),
                ("skill://pdf/run", "run", None),
                ("skill://pdf/templates", "templates", "inode/directory"),
                ("skill://pdf/x.png", "x.png", "image/png"),
            ],
        ),
        (
            "skill://pdf/templates",
            [
                ("skill://pdf/templates/a%20b.md", "a b.md", "text/markdown"),
                ("skill://pdf/templates/eu", "eu", "inode/directory"),
            ],
        ),
        ("skill://pdf/empty", []),
    ],
)
async def test_a_folder_is_read_as_its_direct_children(
    era: str, folder: Path, uri: str, children: list[tuple[str, str, str | None]]
) -> None:
    async with talking(era, folder) as (client, meta, _):
        result = await client.result("resources/directory/read", uri=uri, **meta)
        assert [(one["uri"], one["name"], one.get("mimeType")) for one in result["resources"]] == children
        assert result["resultType"] == "complete"


@pytest.mark.parametrize(
    "uri",
    [
        "skill://pdf/SKILL.md",
        "skill://pdf/nothing",
        "skill://pdf/",
        "skill://nothing",
        "skill://pdf/..",
        "skill://pdf/../mail",
        "",
    ],
)
async def test_what_is_no_folder_is_invalid(era: str, folder: Path, uri: str) -> None:
    async with talking(era, folder) as (client, meta, _):
        refused = (await client.ask(request(1, "resources/directory/read", uri=uri, **meta)))["error"]
        assert (refused["code"], refused["data"]) == (-32602, {"uri": uri})


# pages and limits


async def test_lists_come_in_pages(era: str, tmp_path: Path) -> None:
    for number in range(230):
        make_skill(tmp_path, f"s{number:03}")
    async with talking(era, tmp_path) as (client, meta, _):
        seen, more, pages = list[str](), dict[str, str](), 0
        while True:
            result = await client.result("skills/list", **meta, **more)
            seen += [one["uri"] for one in result["skills"]]
            pages += 1
            if "nextCursor" not in result:
                break
            more = {"cursor": result["nextCursor"]}
        assert (len(set(seen)), pages) == (230, 3)
        refused = (await client.ask(request(1, "skills/list", cursor="made up", **meta)))["error"]
        assert refused["code"] == -32602


@pytest.mark.parametrize(
    ("files", "is_dynamic"),
    [
        ({f"f{number}": b"" for number in range(511)}, False),
        ({f"f{number}": b"" for number in range(512)}, True),
        ({"big": b"x" * (16 * 1024 * 1024 - 72)}, False),
        ({"big": b"x" * (16 * 1024 * 1024 - 71)}, True),
        ({"/".join("d" * 20) + "/x": b""}, True),
    ],
    ids=["512 files", "513 files", "16 MiB", "more", "too deep"],
)
async def test_beyond_the_limits_a_skill_is_dynamic(tmp_path: Path, files: dict[str, bytes], is_dynamic: bool) -> None:
    make_skill(tmp_path, "big", files=files)
    async with talking("modern", tmp_path) as (client, meta, _):
        [skill] = (await client.result("skills/list", **meta))["skills"]
        assert (skill["resources"] == "dynamic") == is_dynamic
        if not is_dynamic:
            assert len(skill["resources"]) == 512 or sum(one["size"] for one in skill["resources"]) == 16 * 1024 * 1024


# changes


async def test_a_change_on_disk_is_in_the_next_answer_and_told_of(folder: Path) -> None:
    async with talking("legacy", folder) as (client, _, _):
        before = (await client.result("skills/get", uri="skill://mail/SKILL.md"))["skill"]["resources"]
        make_skill(folder, "mail", "Is another one now.", files={"new.md": b"x"})
        after = (await client.result("skills/get", uri="skill://mail/SKILL.md"))["skill"]["resources"]
        assert before[0]["digest"] != after[0]["digest"]
        assert [one["uri"] for one in after] == ["skill://mail/SKILL.md", "skill://mail/new.md"]
        heard: set[str] = set()
        while not {"notifications/resources/list_changed", "notifications/tools/list_changed"} <= heard:
            heard.add((await client.hear()).get("method", ""))


async def test_an_edit_of_the_same_length_changes_the_digest(folder: Path) -> None:
    async with talking("modern", folder) as (client, meta, _):
        digests: set[str] = set()
        for letter in "abc":
            (folder / "mail/x.md").write_text(letter)
            got = await client.result("skills/get", uri="skill://mail/SKILL.md", **meta)
            digests.add(got["skill"]["resources"][1]["digest"])
        assert len(digests) == 3


async def test_a_resource_that_is_watched_is_told_of(folder: Path) -> None:
    async with talking("legacy", folder) as (client, _, bench):
        await client.result("resources/subscribe", uri="skill://pdf/run")
        (folder / "pdf/run").write_text("another")
        bench.skills_prompt()
        while not client.notifications("notifications/resources/updated"):
            await client.hear()
        assert client.notifications("notifications/resources/updated") == [{"uri": "skill://pdf/run"}]


async def test_skills_that_come_later_are_declared_to_who_asks_later(tmp_path: Path, folder: Path) -> None:
    async with Workbench() as bench, lines(bench) as client:
        assert EXTENSION not in (await capabilities(client, "modern")).get("extensions", {})
        await bench.add(str(folder))
        await until(lambda: bench.get("skill") is not None)
        assert EXTENSION in (await capabilities(client, "modern"))["extensions"]
        await bench.remove("skills")
        assert EXTENSION not in (await capabilities(client, "modern")).get("extensions", {})


async def test_it_is_the_same_over_http(era: str, folder: Path) -> None:
    async with http(str(folder)) as client:
        if era == "legacy":
            declared = (await client.shake_hands())["capabilities"]
            assert declared["extensions"] == {EXTENSION: {"directoryRead": True}}
            reply = await client.ask("skills/list")
        else:
            reply = await client.modern("skills/list")
        assert reply.status == 200
        assert [one["uri"] for one in reply.last["result"]["skills"]] == [
            "skill://mail/SKILL.md",
            "skill://pdf/SKILL.md",
        ]
