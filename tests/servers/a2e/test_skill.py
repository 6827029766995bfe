"""A2E's `skill` capability: what there is, and one skill's instructions and files as data."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from anykit import Workbench
from anykit.servers import A2EHost
from anykit.servers.a2e import A2EPlugin
from anykit.wire.a2e import Message
from anykit.wire.a2e.messages.skills import SkillDiscoverRequest, SkillDiscoverResponse
from servers.agents import Agent, Notes, agent_of, connected
from sources.skills.making import make_skill

pytestmark = pytest.mark.anyio


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "skills"
    more = (
        "allowed-tools: Bash(git:*) Read\nargument-hint: FILE\ncompatibility: Needs poppler.\nmetadata:\n  version: '2.1'\n"
        "  tags: office, files\n  category: Documents\n  triggers: read a pdf, fill a form\n  toolkits: notes calendar\n"
    )
    make_skill(place, "pdf", more=more, body="# PDF\n\nBegin.", files={"ref/x.md": b"told", "x.png": b"\x89PNG\0"})
    make_skill(place, "mail", more="metadata: {tags: office}\n")
    make_skill(place, "mine", more="disable-model-invocation: true\n")
    return place


@asynccontextmanager
async def agent(folder: Path, *sources: Any, caps: tuple[str, ...] = ("skill",), **host: Any) -> AsyncGenerator[Agent]:
    async with Workbench(str(folder), *sources) as bench, agent_of(A2EHost(bench, **host), *caps) as one:
        yield one


async def call(one: Agent, name: str, **fields: Any) -> dict[str, Any]:
    return await one.ask("skill/call/req", name=name, **fields)


# the handshake


@pytest.mark.parametrize("wanted", ["skill", "skills", "SKILL"])
async def test_the_capability_is_offered_where_there_are_skills(folder: Path, wanted: str) -> None:
    async with Workbench(str(folder)) as bench, connected(A2EHost(bench)) as one:
        reply = await one.handshake("tools", wanted)
        assert [cap["capability"] for cap in reply["accepted_caps"]] == ["tools", "skill"]
        assert reply["accepted_caps"][1]["metadata"] == {
            "name": "anykit",
            "type": "skill",
            "priority": 0,
            "exclusive": False,
        }
    async with Workbench() as bench, connected(A2EHost(bench)) as one:
        reply = await one.handshake("tools", wanted)
        assert [cap["capability"] for cap in reply["accepted_caps"]] == ["tools"]


async def test_what_was_not_negotiated_is_missing(folder: Path) -> None:
    async with agent(folder, caps=("tools",)) as one:
        refused = await one.ask("skill/discover/req")
        assert (refused["type"], refused["code"], refused["capability_name"]) == (
            "error",
            "capability_missing",
            "skill",
        )


# discovery


async def test_skills_are_listed_in_a2e_s_words_and_without_their_instructions(folder: Path) -> None:
    async with agent(folder) as one:
        reply = await one.ask("skill/discover/req")
        assert reply["type"] == "skill/discover/resp"
        mail, pdf = reply["skills"]
        assert pdf == {
            "name": "pdf",
            "version": "2.1",
            "description": "Does what it is for.",
            "triggers": ["read a pdf", "fill a form"],
            "tools": ["Bash(git:*)", "Read"],
            "toolkits": ["notes", "calendar"],
            "status": "Published",
            "input_schema": {
                "type": "object",
                "properties": {
                    "file": {
                        "type": "string",
                        "description": "A file of the skill to read instead of its instructions.",
                    }
                },
            },
            "output_schema": {},
            "instructions": None,
            "file_path": f"{folder}/pdf/SKILL.md",
            "llm_config": None,
            "arguments": ["file"],
            "when_to_use": "Does what it is for.",
            "argument_hint": "FILE",
            "source": "project",
            "category": "Documents",
            "tags": ["office", "files"],
            "max_turns": None,
            "timeout_seconds": None,
            "icon": None,
            "metadata": {
                "version": "2.1",
                "tags": "office, files",
                "category": "Documents",
                "triggers": "read a pdf, fill a form",
                "toolkits": "notes calendar",
            },
        }
        assert (mail["version"], mail["triggers"], mail["toolkits"]) == ("1.0.0", [], None)


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"filter_tags": ["files", "nothing"]}, ["pdf"]),
        ({"filter_tags": ["office"]}, ["mail", "pdf"]),
        ({"filter_tags": ["nothing"]}, []),
        ({"filter_categories": ["documents"]}, ["pdf"]),
        ({"filter_categories": ["other"]}, []),
        ({"filter_tags": ["office"], "filter_categories": ["Documents", "x"]}, ["pdf"]),
    ],
)
async def test_any_of_the_tags_suffices_and_only_the_categories_count(
    folder: Path, filters: dict[str, Any], names: list[str]
) -> None:
    async with agent(folder) as one:
        reply = await one.ask("skill/discover/req", **filters)
        assert [skill["name"] for skill in reply["skills"]] == names


# calls


async def test_a_call_gives_instructions_and_files_as_data(folder: Path) -> None:
    async with agent(folder, Notes) as one:
        reply = await call(one, "pdf", correlation_id="c1", llm_override=SECRET)
        assert (reply["type"], reply["name"], reply["error"]) == ("skill/call/resp", "pdf", None)
        result = reply["data"]
        assert (result["success"], result["truncated"], result["error"], result["events"]) == (True, False, None, [])
        data = result["data"]
        assert (data["instructions"], data["folder"]) == ("# PDF\n\nBegin.", f"{folder}/pdf")
        assert [(one["path"], one["uri"]) for one in data["files"]] == [
            ("SKILL.md", "skill://pdf/SKILL.md"),
            ("ref/x.md", "skill://pdf/ref/x.md"),
            ("x.png", "skill://pdf/x.png"),
        ]
        assert result["summary"].startswith('<skill_content name="pdf">')
        assert "hush" not in str(one.heard)


SECRET = {"provider_name": "x", "provider_credentials": {"key": "hush"}}


async def test_missing_toolkits_are_told_of_and_do_no_harm(folder: Path) -> None:
    async with agent(folder, Notes, caps=("skill", "toolkits")) as one:
        reply = await call(one, "pdf")
        states = [(kit["name"], kit["state"]) for kit in reply["data"]["data"]["toolkits"]]
        assert states == [("notes", "not configured"), ("calendar", "absent")]
        events = [
            (one["type"], one["kind"], one["req_id"], one["seq"]) for one in one.heard if one["type"] == "skill/event"
        ]
        assert events == [("skill/event", "log", reply["req_id"], 0), ("skill/event", "log", reply["req_id"], 1)]
        await one.configure("notes", {"shelf": "a"})
        again = (await call(one, "pdf"))["data"]["data"]["toolkits"]
        assert again[0] == {"name": "notes", "state": "configured"}
        assert "toolkit/configure/req" in reply["data"]["data"]["toolkits"][0]["configure"]


async def test_without_streaming_there_are_no_events(folder: Path) -> None:
    async with agent(folder) as one:
        reply = await call(one, "pdf", streaming=False)
        assert reply["data"]["success"]
        assert [message for message in one.heard if message["type"] == "skill/event"] == []


async def test_a_file_is_read_by_its_path(folder: Path) -> None:
    async with agent(folder) as one:
        told = (await call(one, "pdf", arguments={"file": "ref/x.md"}))["data"]
        assert (told["data"]["text"], told["data"]["media_type"], told["summary"]) == ("told", "text/markdown", "told")
        picture = (await call(one, "pdf", arguments={"file": "x.png"}))["data"]["data"]
        assert (base64.b64decode(picture["data"]), picture["media_type"]) == (b"\x89PNG\0", "image/png")


@pytest.mark.parametrize(
    ("name", "arguments", "code", "said"),
    [
        ("pdff", {}, "unknown_skill", "did you mean pdf?"),
        ("", {}, "unknown_skill", "there are mail, pdf"),
        ("mine", {}, "unknown_skill", "unknown skill 'mine'"),
        ("pdf", {"file": "../mail/SKILL.md"}, "schema_violation", "there is no such file"),
        ("pdf", {"file": "/etc/passwd"}, "schema_violation", "there is no such file"),
        ("pdf", {"file": 7}, "schema_violation", "must be a string"),
    ],
)
async def test_b078_what_there_is_not_is_an_error(
    folder: Path, name: str, arguments: dict[str, Any], code: str, said: str
) -> None:
    """Public case B078: instavm/open-skills#11."""
    async with agent(folder) as one:
        refused = await call(one, name, arguments=arguments)
        assert (refused["type"], refused["code"], refused["capability_name"]) == ("error", code, "skill")
        assert said in refused["message"]


async def test_a_skill_that_changed_is_the_changed_one(folder: Path) -> None:
    async with agent(folder) as one:
        make_skill(folder, "mail", "Is new.", body="New.")
        make_skill(folder, "more")
        listed = await one.ask("skill/discover/req")
        assert {skill["name"]: skill["description"] for skill in listed["skills"]}["mail"] == "Is new."
        assert (await call(one, "mail"))["data"]["data"]["instructions"] == "New."
        assert (await call(one, "more"))["data"]["success"]


class Mine(A2EPlugin):
    """Has skills of its own."""

    name = "mine"

    def supported_messages(self) -> dict[str, Any]:
        return {"skill/discover/req": SkillDiscoverRequest}

    def handle(self, msg: Message) -> Message | None:
        return SkillDiscoverResponse(skills=[])


@pytest.mark.parametrize(("priority", "names"), [(0, []), (-1, ["mail", "pdf"])])
async def test_a_plugin_answers_first_unless_it_wants_to_be_last(folder: Path, priority: int, names: list[str]) -> None:
    plugin = {"name": "mine", "type": "skills", "cls": f"{Mine.__module__}.Mine", "metadata": {"priority": priority}}
    async with agent(folder, plugins=[plugin]) as one:
        reply = await one.ask("skill/discover/req")
        assert [skill["name"] for skill in reply["skills"]] == names
