"""The workbench: everything together, in process."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from anykit import Toolkit, Workbench, prompt, resource, tool
from anykit.app import SourceUnavailable
from anykit.capabilities import (
    CapabilityContext,
    InvalidInput,
    Invocable,
    InvocableRequest,
    PromptProvider,
    ResourceProvider,
    State,
    Status,
)
from anykit.runtime import CatalogChanged, ToolkitEvent

pytestmark = pytest.mark.anyio


@tool
async def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def plain(text: str) -> str:
    """Says it back."""
    return text


@resource("app://motto", media_type="text/markdown")
def motto() -> str:
    """The motto."""
    return "*one toolbox*"


@prompt
def greet(name: str) -> str:
    """Greets."""
    return f"Greet {name}"


class Keys(Toolkit):
    """Holds a key."""

    class Config(BaseModel):
        api_key: SecretStr
        region: str = "eu"

    @tool
    def length(self) -> int:
        """How long the key is."""
        return len(self.config.api_key.get_secret_value())


def contents_of(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


async def test_three_lines_make_a_working_tool() -> None:
    async with Workbench(add) as bench:
        result = await bench.call("add", {"a": 2, "b": 3})
    assert result.output == "5"


async def test_functions_tools_resources_and_prompts_are_taken_as_they_are() -> None:
    async with Workbench(add, plain, motto, greet) as bench:
        assert [one.name for one in bench.tools()] == ["add", "plain"]
        assert (await bench.call("plain", {"text": "x"})).output == "x"
        assert [one.id for one in await bench.resources()] == ["app://motto"]
        contents = await bench.read("app://motto")
        assert contents.parts[0].model_dump(include={"text", "media_type"}) == {
            "text": "*one toolbox*",
            "media_type": "text/markdown",
        }
        assert [one.id for one in await bench.prompts()] == ["greet"]
        assert (await bench.prompt("greet", {"name": "Ada"})).messages[0].role == "user"


async def test_a_tool_from_get_runs_through_the_bench() -> None:
    async with Workbench(add) as bench:
        found = bench.get("add")
        assert found is not None
        assert (await found.execute({"a": 1, "b": 1})).output == "2"
        await bench.records.flush()
        assert len(await bench.records.tail("calls")) == 1
        assert bench.get("nope") is None


async def test_execute_takes_a_providers_call_as_it_comes() -> None:
    async with Workbench(add) as bench:
        assert (await bench.execute("add", '{"a": 2, "b": 3}')).output == "5"
        assert (await bench.execute("add", {"a": 2, "b": 3})).output == "5"
        bad = await bench.execute("add", "{")
        assert (bad.is_error, bad.code) == (True, "invalid_input")
        assert (await bench.execute("add", "")).code == "invalid_input"


async def test_call_never_raises_for_a_tools_failure() -> None:
    async with Workbench(add) as bench:
        unknown = await bench.call("sub", {})
        assert (unknown.is_error, unknown.status, unknown.code) == (True, "failed", "unknown_tool")


async def test_the_journal_has_one_line_a_call_and_no_value(tmp_path: Path) -> None:
    async with Workbench(plain, data_dir=tmp_path) as bench:
        await bench.call("plain", {"text": "very private"})
        await bench.call("nope")
    with sqlite3.connect(tmp_path / "anykit.sqlite3") as connection:
        dump = "\n".join(connection.iterdump())
    connection.close()
    assert "very private" not in dump
    async with Workbench(data_dir=tmp_path) as bench:
        rows = [entry.row for entry in await bench.records.tail("calls")]
    assert [(row["tool"], row["outcome"], row["code"]) for row in rows] == [
        ("plain", "completed", ""),
        ("nope", "failed", "unknown_tool"),
    ]


async def test_b058_a_configured_secret_lies_encrypted_and_comes_back_whole(tmp_path: Path) -> None:
    """pydantic/pydantic-core#851: a masked secret is saved and later used as if it were the secret."""
    async with Workbench(Keys, data_dir=tmp_path) as bench:
        assert await bench.configure("keys", {"api_key": "k1-very-secret"}) == ("ok", "Toolkit configured successfully")
        assert (await bench.call("length")).structured == 14
        assert await bench.configurations.shown() == {"keys": {"api_key": {"set": True}, "region": "eu"}}
    assert not [name for name, data in contents_of(tmp_path).items() if b"k1-very-secret" in data]
    async with Workbench(Keys, data_dir=tmp_path) as bench:
        assert (await bench.call("length")).structured == 14
        await bench.configure("keys", {"api_key": "**********", "region": "us"})
        assert (await bench.call("length")).structured == 14
        assert await bench.unconfigure("keys")
    async with Workbench(Keys, data_dir=tmp_path) as bench:
        assert (await bench.call("length")).code == "not_configured"


async def test_configuring_says_every_fault() -> None:
    async with Workbench(Keys) as bench:
        with pytest.raises(InvalidInput) as refused:
            await bench.configure("keys", {"api_key": 123456, "regoin": "x"})
        assert len(refused.value.errors) == 2
        assert "123456" not in json.dumps(refused.value.errors)


async def test_a_file_configures_toolkits_with_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", "abc")
    (tmp_path / "kit.py").write_text(
        "from pydantic import BaseModel, SecretStr\nfrom anykit import Toolkit, tool\n"
        "class Keys(Toolkit):\n    class Config(BaseModel):\n        api_key: SecretStr\n"
        "    @tool\n    def length(self) -> int:\n        return len(self.config.api_key.get_secret_value())\n"
        "class Other(Toolkit):\n    @tool\n    def ping(self) -> str:\n        return 'pong'\n"
    )
    config = tmp_path / "anykit.toml"
    config.write_text(
        "sources = ['kit.py']\n[toolkits.keys.config]\napi_key = '${THE_KEY}'\n[toolkits.other]\nauto_configure = true\n"
    )
    async with Workbench(config=config, data_dir=tmp_path / "data") as bench:
        assert (await bench.call("length")).structured == 3
        assert (await bench.call("ping")).output == "pong"
        assert bench.problems == {}


async def test_b056_an_unset_variable_costs_only_its_toolkit_and_is_named(tmp_path: Path) -> None:
    """mastra-ai/mastra#18240: an unset placeholder is sent literally or becomes empty."""
    config = {"toolkits": {"keys": {"config": {"api_key": "${NOT_SET_ANYWHERE}"}}}}
    async with Workbench(Keys, add, config=config, data_dir=tmp_path) as bench:
        assert (await bench.call("add", {"a": 1, "b": 2})).output == "3"
        assert (await bench.call("length")).code == "not_configured"
        assert "NOT_SET_ANYWHERE" in bench.problems["keys"]
        assert "/toolkits/keys/config/api_key" in bench.problems["keys"]


async def test_a_python_file_is_a_source_and_a_broken_one_costs_only_itself(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text("from anykit import tool\n@tool\ndef hello() -> str:\n    return 'hi'\n")
    (tmp_path / "bad.py").write_text("import anykit\n\nraise RuntimeError('boom')\n")
    async with Workbench(tmp_path / "good.py", tmp_path / "bad.py", tmp_path / "none.py") as bench:
        assert (await bench.call("hello")).output == "hi"
        states = {view.name: view.state for view in bench.sources()}
    assert states["good"].status == "ready"
    assert states["bad"].status == "failed"
    assert "bad.py" in states["bad"].reason
    assert "boom" in states["bad"].reason
    assert states["none"].status == "failed"


async def test_b020_a_required_source_that_fails_makes_the_start_fail(tmp_path: Path) -> None:
    """google/adk-python#5025: one bad source must not take the others down, unless it is required."""
    config = {"sources": [{"target": str(tmp_path / "none.py"), "required": True}]}
    with pytest.raises(SourceUnavailable, match=r"none.*not available"):
        async with Workbench(config=config):
            pass


async def test_a_toolkit_may_be_switched_off(tmp_path: Path) -> None:
    config = {"toolkits": {"keys": {"enabled": False}}}
    async with Workbench(Keys, add, config=config) as bench:
        assert bench.toolkits() == []
        assert {view.name: view.state.status for view in bench.sources()}["keys"] == "disabled"
        for name in Keys.spec().tools:
            refused = await bench.call(name)
            assert (refused.status, refused.code) == ("denied", "disabled")
            assert "toolkit keys is switched off" in refused.output
        assert (await bench.call("nothing")).code == "unknown_tool"


async def test_tools_come_and_go_at_run_time() -> None:
    seen: list[Any] = []
    async with Workbench() as bench:
        bench.session().subscribe(seen.append)
        bench.register(add, plain)
        assert (await bench.call("add", {"a": 1, "b": 2})).output == "3"
        with pytest.raises(ValueError, match="already"):
            bench.register(add)
        assert bench.unregister("add")
        assert not bench.unregister("add")
        assert (await bench.call("add", {"a": 1, "b": 2})).code == "unknown_tool"
        assert [one.name for one in bench.tools()] == ["plain"]
    assert all(isinstance(change, CatalogChanged) for change in seen)
    assert len(seen) == 2


async def test_sources_come_and_go_at_run_time(tmp_path: Path) -> None:
    (tmp_path / "more.py").write_text("from anykit import tool\n@tool\ndef hello() -> str:\n    return 'hi'\n")
    async with Workbench(add) as bench:
        view = await bench.add(tmp_path / "more.py")
        assert view.tools == ("hello",)
        assert (await bench.call("hello")).output == "hi"
        await bench.remove(view.name)
        assert (await bench.call("hello")).code == "unknown_tool"
        with pytest.raises(KeyError):
            await bench.remove("nope")
        await bench.add(Keys)
        await bench.configure("keys", {"api_key": "x"})
        await bench.remove("keys")
        assert (await bench.call("length")).code == "unknown_tool"


async def test_changes_are_told_as_they_come() -> None:
    async with Workbench(Keys) as bench:
        changes = bench.changes()
        first = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0)
        await bench.configure("keys", {"api_key": "x"})
        change = await asyncio.wait_for(first, 5)
        assert isinstance(change, ToolkitEvent)
        assert change.toolkit == "keys"


async def test_two_functions_of_one_name_are_both_there() -> None:
    def make(answer: str) -> Any:
        def same() -> str:
            return answer

        return same

    async with Workbench(make("one"), make("two")) as bench:
        names = [one.name for one in bench.tools()]
        assert len(set(names)) == 2
        assert {(await bench.call(name)).output for name in names} == {"one", "two"}


async def test_a_module_is_a_source() -> None:
    async with Workbench(sys.modules[__name__]) as bench:
        assert [one.name for one in bench.tools()] == ["add"]
        assert [view.name for view in bench.toolkits()] == ["keys"]


async def test_what_is_no_source_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="no source"):
        async with Workbench(3):
            pass


async def test_a_workbench_is_entered_once() -> None:
    bench = Workbench(add)
    async with bench:
        pass
    with pytest.raises(RuntimeError, match="once"):
        async with bench:
            pass


async def test_a_provider_that_breaks_costs_only_itself() -> None:
    class Broken:
        def prompts(self) -> Sequence[PromptProvider]:
            return ()

        def resources(self) -> Sequence[ResourceProvider]:
            raise RuntimeError("sesame")

        def invocables(self) -> Sequence[Invocable]:
            raise RuntimeError("sesame")

    class Stuck(Broken):
        state = State("connecting")

        async def start(self) -> None:
            raise OSError("sesame")

        async def close(self) -> None: ...

        def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
            return lambda: None

    async with Workbench(plain, Broken(), Stuck()) as bench:
        assert (await bench.call("plain", {"text": "a"})).output == "a"
        assert await bench.resources() == []
        said = [text for view in bench.sources() for text in (*view.reports, view.state.reason)]
    assert any("asking it failed with RuntimeError" in text for text in said)
    assert any("did not start: OSError" in text for text in said)
    assert "sesame" not in " ".join(said)


async def test_a_tool_sees_the_context_that_its_caller_gave() -> None:
    @tool
    async def seen(context: CapabilityContext) -> list[Any]:
        context.emit(Status("here"))
        return [context.session_id, context.turn_id, context.metadata]

    told: list[Any] = []
    context = CapabilityContext(session_id="s", turn_id="t", metadata={"trace": "1"}, emit=told.append)
    async with Workbench(seen) as bench:
        called = await bench.call("seen", context=context)
        held = bench.get("seen")
        assert held is not None
        executed = await held.execute({}, context)
    assert called.structured == executed.structured == ["s", "t", {"trace": "1"}]
    assert told == [Status("here")] * 2


async def test_a_tool_of_the_bench_says_what_it_is_about_to_touch(tmp_path: Path) -> None:
    async with Workbench("anykit:filesystem") as bench:
        await bench.configure("filesystem", {"root_dir": str(tmp_path)})
        writing = bench.get("write_file")
        assert writing is not None
        [asked] = writing.preflight(InvocableRequest(input={"path": "a", "content": ""}, call_id="1"))
    assert (asked.kind, asked.target) == ("file_write", "a")
