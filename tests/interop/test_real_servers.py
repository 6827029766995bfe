"""MCP servers that many people run, from npm and PyPI, as sources: listed, called, read, asked."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from anykit import Workbench
from anykit.capabilities import Answer, BlobPart, CapabilityContext, ImagePart, ResourceLink, Suspension, TextPart
from anykit.tools import ToolResult
from interop.conftest import made
from interop.environments import NPM_SERVERS, PYPI_SERVERS

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(400)]  # the first run installs; later ones take seconds

SETTLE = 30.0


def npm(name: str, *arguments: str, **more: Any) -> dict[str, Any]:
    return _source(made(NPM_SERVERS).folder / "node_modules" / ".bin" / f"mcp-server-{name}", name, arguments, more)


def pypi(name: str, *arguments: str, **more: Any) -> dict[str, Any]:
    return _source(made(PYPI_SERVERS).folder / "bin" / f"mcp-server-{name}", name, arguments, more)


def _source(program: Path, name: str, arguments: tuple[str, ...], more: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "mcp", "name": name.replace("-", "_"), "command": [str(program), *arguments], **more}


def bench_of(*sources: dict[str, Any], tmp_path: Path, **options: Any) -> Workbench:
    return Workbench(*sources, data_dir=tmp_path / "anykit", settle=SETTLE, **options)


async def well(call: Awaitable[ToolResult]) -> ToolResult:
    result = await call
    assert not result.is_error, result.output
    return result


async def test_everything_gives_every_kind_of_content(tmp_path: Path) -> None:
    async with bench_of(npm("everything"), tmp_path=tmp_path) as bench:
        assert (await well(bench.call("everything_echo", {"message": "ä\u2028😀"}))).output == "Echo: ä\u2028😀"
        structured = await well(bench.call("everything_get-structured-content", {"location": "New York"}))
        assert structured.structured == {"temperature": 33, "conditions": "Cloudy", "humidity": 82}
        picture = await well(bench.call("everything_get-tiny-image"))
        [image] = [part for part in picture.content if isinstance(part, ImagePart)]
        assert image.media_type == "image/png"
        assert image.data.startswith(b"\x89PNG")
        assert [type(part) for part in picture.content] == [TextPart, ImagePart, TextPart]
        links = await well(bench.call("everything_get-resource-links", {"count": 3}))
        assert [type(part) for part in links.content[-3:]] == [ResourceLink] * 3
        wrong = await bench.call("everything_get-sum", {"a": "two", "b": 3})
        assert (wrong.is_error, "/a" in wrong.output) == (True, True)


async def test_everything_sees_only_the_environment_that_was_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_OURS", "must-not-leak")
    async with bench_of(npm("everything", env={"DECLARED": "yes"}), tmp_path=tmp_path) as bench:
        seen = json.loads((await well(bench.call("everything_get-env"))).output)
    assert seen["DECLARED"] == "yes"
    assert "SECRET_OF_OURS" not in seen
    assert "must-not-leak" not in json.dumps(seen)


async def test_everything_reports_progress_and_asks_the_caller(tmp_path: Path) -> None:
    async def answer(question: Suspension) -> Answer:
        assert question.kind == "input"
        assert question.schema is not None
        return Answer(True, {"name": "Ann", "check": True, "firstLine": "one", "integer": 4})

    heard: list[Any] = []
    async with bench_of(npm("everything"), tmp_path=tmp_path, wait_for=answer) as bench:
        context = CapabilityContext(emit=heard.append)
        steps: dict[str, Any] = {"duration": 0.3, "steps": 3}
        await well(bench.call("everything_trigger-long-running-operation", steps, context=context))
        assert [(event.done, event.total) for event in heard] == [(1, 3), (2, 3), (3, 3)]
        told = await well(bench.call("everything_trigger-elicitation-request"))
        assert "Ann" in told.output


async def test_everything_has_resources_templates_prompts_and_completion(tmp_path: Path) -> None:
    async with bench_of(npm("everything"), tmp_path=tmp_path) as bench:
        listed = {one.id for one in await bench.resources()}
        document = "demo://resource/static/document/features.md"
        assert document in listed
        [part] = (await bench.read(document)).parts
        assert isinstance(part, TextPart)
        assert "Features" in part.text
        [made_up] = (await bench.read("demo://resource/dynamic/blob/1")).parts
        assert isinstance(made_up, BlobPart)
        assert b"Resource 1" in (made_up.data or b"")
        assert {"everything_simple-prompt", "everything_args-prompt"} <= {one.id for one in await bench.prompts()}
        filled = await bench.prompt("everything_args-prompt", {"city": "Rome"})
        [said] = [part.text for message in filled.messages for part in message.content if isinstance(part, TextPart)]
        assert "Rome" in said
        messages = await bench.context(resources=[document], prompts=[("everything_args-prompt", {"city": "Rome"})])
        assert "Rome" in json.dumps(messages[-1])


async def test_filesystem_works_in_its_folder_and_nowhere_else(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    async with bench_of(npm("filesystem", str(folder)), tmp_path=tmp_path) as bench:
        file = str(folder / "a.txt")
        await well(bench.call("filesystem_write_file", {"path": file, "content": "hello\n"}))
        assert (folder / "a.txt").read_text() == "hello\n"
        assert (await well(bench.call("filesystem_read_text_file", {"path": file}))).structured == {
            "content": "hello\n"
        }
        outside = await bench.call("filesystem_read_text_file", {"path": "/etc/hostname"})
        assert outside.is_error
        assert "denied" in outside.output
        read = bench.get("filesystem_read_text_file")
        assert read is not None
        assert read.annotations is not None
        assert read.annotations.read_only is True


async def test_memory_keeps_what_it_is_told(tmp_path: Path) -> None:
    kept = tmp_path / "memory.jsonl"
    async with bench_of(npm("memory", env={"MEMORY_FILE_PATH": str(kept)}), tmp_path=tmp_path) as bench:
        entity = {"name": "Ann", "entityType": "person", "observations": ["likes tea"]}
        await well(bench.call("memory_create_entities", {"entities": [entity]}))
        graph = await well(bench.call("memory_read_graph"))
        assert graph.structured == {"entities": [entity], "relations": []}
    assert "likes tea" in kept.read_text()


async def test_sequential_thinking_counts(tmp_path: Path) -> None:
    async with bench_of(npm("sequential-thinking"), tmp_path=tmp_path) as bench:
        thought = {"thought": "a", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
        done = await well(bench.call("sequential_thinking_sequentialthinking", thought))
        assert json.loads(json.dumps(done.structured))["thoughtHistoryLength"] == 1


async def test_time_converts_over_the_new_era(tmp_path: Path) -> None:
    async with bench_of(pypi("time", "--local-timezone", "UTC"), tmp_path=tmp_path) as bench:
        [source] = bench.sources()
        assert source.state.detail["protocol"] == "2026-07-28"
        asked = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        done = await well(bench.call("time_convert_time", asked))
        assert "T21:00:00+09:00" in done.output
        assert (await bench.call("time_convert_time", {**asked, "target_timezone": "Mars/Base"})).is_error


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    repository = tmp_path / "repository"
    quiet = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(repository)], check=True, timeout=20, env=quiet)
    (repository / "new.txt").write_text("new")
    return repository


async def test_git_tells_of_a_repository(repository: Path, tmp_path: Path) -> None:
    async with bench_of(pypi("git"), tmp_path=tmp_path) as bench:
        status = await well(bench.call("git_git_status", {"repo_path": str(repository)}))
        assert "trunk" in status.output
        assert "new.txt" in status.output


async def test_fetch_refuses_a_private_address_by_itself(tmp_path: Path) -> None:
    async with bench_of(pypi("fetch"), tmp_path=tmp_path) as bench:
        refused = await bench.call("fetch_fetch", {"url": "http://127.0.0.1:9/x"})
        assert refused.is_error
        assert "127.0.0.1" in refused.output
        assert [one.id for one in await bench.prompts()] == ["fetch_fetch"]


async def test_all_of_them_at_once_have_their_own_names(tmp_path: Path) -> None:
    sources: list[Callable[[], dict[str, Any]]] = [
        lambda: npm("everything"),
        lambda: npm("filesystem", str(tmp_path)),
        lambda: npm("memory", env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}),
        lambda: npm("sequential-thinking"),
        lambda: pypi("time", "--local-timezone", "UTC"),
        lambda: pypi("git"),
        lambda: pypi("fetch"),
    ]
    async with bench_of(*(source() for source in sources), tmp_path=tmp_path) as bench:
        assert {source.state.status for source in bench.sources()} == {"ready"}
        counts = {source.name: len(source.tools) for source in bench.sources()}
        assert counts["filesystem"] == 14
        assert (counts["memory"], counts["sequential_thinking"], counts["time"]) == (9, 1, 2)
        assert (counts["git"], counts["fetch"]) == (12, 1)
        assert counts["everything"] >= 13
        names = [tool.name for tool in bench.tools()]
        assert len(names) == len(set(names)) == sum(counts.values())
