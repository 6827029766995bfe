"""Toolkits: configured for whom, and for how long."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator

from anykit.capabilities import Completed, Denied, ExecutionFailed, InvalidInput
from anykit.runtime import Change, ToolkitEvent, UnknownToolkit
from anykit.tools import Bounds, ToolError, Toolkit, prompt, resource, tool
from runtime_parts import Bench, toolkit

pytestmark = pytest.mark.anyio

log: list[str] = []


@pytest.fixture(autouse=True)
def empty_log() -> None:
    log.clear()


class Net(BaseModel):
    retries: int = 2


class Notes(Toolkit):
    """Keeps notes."""

    class Config(BaseModel):
        root: str = Field(description="Where")
        depth: int = 3
        net: Net = Net()
        key: SecretStr | None = None
        refuse: str = ""
        off: list[str] = []

        @field_validator("depth")
        @classmethod
        def not_thirteen(cls, depth: int) -> int:
            if depth == 13:
                raise ValueError("thirteen is bad luck")
            return depth

    async def setup(self, config: Any) -> None:
        if config.refuse == "politely":
            raise ToolError("this root is taken")
        if config.refuse == "rudely":
            raise RuntimeError("secret internals")
        if config.refuse == "by quitting":
            raise SystemExit("secret internals")
        if config.refuse == "by cancelling":
            raise asyncio.CancelledError("secret internals")
        for name in config.off:
            self.disable(name, "no licence")
        log.append(f"setup {config.root}")

    async def close(self) -> None:
        log.append(f"close {self.config.root}")

    @tool
    def show(self) -> dict[str, Any]:
        """Show what it works with."""
        config = self.config
        key = config.key.get_secret_value() if config.key else ""
        return {"root": config.root, "depth": config.depth, "retries": config.net.retries, "key": len(key)}

    @tool
    async def wait(self) -> str:
        """Wait for the gate."""
        await GATES[self.config.root].wait()
        return str(self.config.root)

    @resource("notes://{name}")
    def note(self, name: str) -> str:
        return f"{self.config.root}/{name}"

    @prompt
    def summarise(self, name: str) -> str:
        return f"Summarise {self.config.root}/{name}"


GATES: dict[str, asyncio.Event] = {}


async def shown(bench: Bench, session: str) -> Any:
    outcome = await bench.session(session).run("show", {})
    return outcome.result.structured if isinstance(outcome, Completed) else outcome


async def test_an_unconfigured_toolkit_is_defined_but_its_tools_are_neither_listed_nor_callable() -> None:
    bench = Bench(toolkit(Notes))
    session = bench.session("s")
    [view] = session.toolkits()
    assert (view.name, view.tools, view.configured) == ("notes", ("show", "wait"), False)
    assert session.tools() == []
    assert session.get("show") is None
    outcome = await session.run("show", {})
    assert isinstance(outcome, Denied)
    assert (outcome.reason, outcome.detail) == ("not_configured", {"toolkit": "notes"})


async def test_b060_defaults_are_there_when_the_tool_runs_and_the_caller_keeps_its_object() -> None:
    """python-jsonschema/jsonschema#266: validation passes but the defaults are missing when the tool runs."""
    bench = Bench(toolkit(Notes))
    config = {"root": "/r"}
    assert await bench.session("s").configure("notes", config) == ("ok", "Toolkit configured successfully")
    assert config == {"root": "/r"}
    assert await shown(bench, "s") == {"root": "/r", "depth": 3, "retries": 2, "key": 0}
    with pytest.raises(InvalidInput) as refused:
        await bench.session("s").configure("notes", {})
    assert any("root" in fault["message"] for fault in refused.value.errors)
    assert (await shown(bench, "s"))["root"] == "/r"


async def test_all_faults_are_told_at_once_and_no_secret_is() -> None:
    bench = Bench(toolkit(Notes))
    with pytest.raises(InvalidInput) as refused:
        await bench.session("s").configure("notes", {"root": 1, "depth": "deep", "key": 12345678, "rot": 1})
    text = str(refused.value.errors)
    assert {"/root", "/depth"} <= {fault["path"] for fault in refused.value.errors}
    assert "12345678" not in text
    assert "rot" in text


async def test_a_models_own_validator_refuses_too() -> None:
    with pytest.raises(InvalidInput) as refused:
        await Bench(toolkit(Notes)).session("s").configure("notes", {"root": "r", "depth": 13})
    assert refused.value.errors == [{"path": "/depth", "message": "Value error, thirteen is bad luck"}]


class Careless(Toolkit):
    """Says its key wherever it can."""

    class Config(BaseModel):
        key: str = Field(json_schema_extra={"x-secret": True})
        where: str

        @model_validator(mode="after")
        def _check(self) -> Careless.Config:
            if self.where == "model":
                raise ValueError(f"{self.key} is no key")
            return self

    async def setup(self, config: Any) -> None:
        if config.where == "told":
            raise ToolError(f"cannot log in with {config.key}")
        if config.where == "setup":
            raise RuntimeError(f"cannot log in with {config.key}")

    @tool
    def use(self) -> str:
        raise RuntimeError(f"the server refused {self.config.key}")


@pytest.mark.parametrize("where", ["model", "told", "setup"])
async def test_a_refused_configuration_tells_no_secret(where: str, caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(toolkit(Careless))
    with pytest.raises((InvalidInput, ExecutionFailed)) as refused:
        await bench.session("s").configure("careless", {"key": "s3cret-value", "where": where})
    assert "s3cret-value" not in f"{refused.value} {getattr(refused.value, 'errors', '')} {caplog.text}"


async def test_a_tool_that_breaks_tells_the_log_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    session = Bench(toolkit(Careless)).session("s")
    await session.configure("careless", {"key": "s3cret-value", "where": ""})
    outcome = await session.run("use", {})
    assert "s3cret-value" not in f"{outcome} {caplog.text}"
    assert "the server refused [secret]" in caplog.text


async def test_two_sessions_never_see_each_others_configuration() -> None:
    bench = Bench(toolkit(Notes))
    await bench.session("one").configure("notes", {"root": "1", "key": "aaa"})
    assert isinstance(await shown(bench, "two"), Denied)
    await bench.session("two").configure("notes", {"root": "2", "key": "b"})
    assert (await shown(bench, "one"))["key"] == 3
    assert (await shown(bench, "two"))["key"] == 1


async def test_what_the_operator_configures_holds_for_everyone_and_a_session_may_have_its_own() -> None:
    bench = Bench(toolkit(Notes))
    await bench.operator().configure("notes", {"root": "host"})
    await bench.session("own").configure("notes", {"root": "mine"})
    assert (await shown(bench, "any"))["root"] == "host"
    assert (await shown(bench, "own"))["root"] == "mine"


async def test_bounds_bind_callers_and_not_the_operator() -> None:
    seen: list[Bounds | None] = []

    class Bounded(Toolkit):
        async def setup(self, config: Any) -> None:
            seen.append(self.bounds)

        @tool
        def ping(self) -> str:
            return "pong"

    bounds = Bounds(database_urls=("sqlite://",))
    bench = Bench(toolkit(Bounded), bounds=bounds)
    await bench.session("s").configure("bounded", {})
    await bench.operator().configure("bounded", {})
    assert seen == [bounds, None]


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("politely", "this root is taken"),
        ("rudely", "could not be set up"),
        ("by quitting", "could not be set up"),
        ("by cancelling", "could not be set up"),
    ],
)
async def test_a_failing_setup_leaves_the_old_one_serving(how: str, text: str) -> None:
    bench = Bench(toolkit(Notes))
    session = bench.session("s")
    await session.configure("notes", {"root": "old"})
    with pytest.raises(ExecutionFailed, match=text) as refused:
        await session.configure("notes", {"root": "new", "refuse": how})
    assert "internals" not in str(refused.value)
    assert (await shown(bench, "s"))["root"] == "old"


async def test_running_calls_end_on_the_old_instance_which_closes_after_them() -> None:
    bench = Bench(toolkit(Notes))
    session = bench.session("s")
    GATES["old"] = asyncio.Event()
    await session.configure("notes", {"root": "old"})
    call = asyncio.ensure_future(session.run("wait", {}))
    await asyncio.sleep(0)
    await session.configure("notes", {"root": "new"})
    assert (await shown(bench, "s"))["root"] == "new"
    assert log == ["setup old", "setup new"]
    GATES["old"].set()
    outcome = await call
    assert isinstance(outcome, Completed)
    assert outcome.result.structured == "old"
    await bench.scopes.close()
    assert log == ["setup old", "setup new", "close old", "close new"] or set(log[2:]) == {"close old", "close new"}


async def test_a_thread_that_outlives_its_call_keeps_its_instance_open() -> None:
    gate = threading.Event()
    begun = threading.Event()
    closed = asyncio.Event()

    class Slow(Toolkit):
        async def close(self) -> None:
            closed.set()

        @tool(timeout=0.05)
        def work(self) -> None:
            begun.set()
            gate.wait(5)

    bench = Bench(toolkit(Slow))
    session = bench.session("s")
    await session.configure("slow", {})
    await session.run("work", {})
    assert begun.is_set()
    session.close()
    await asyncio.sleep(0)
    assert not closed.is_set()
    gate.set()
    await asyncio.wait_for(closed.wait(), 5)


async def test_some_tools_off_is_partial_and_all_off_is_an_error() -> None:
    bench = Bench(toolkit(Notes))
    session = bench.session("s")
    status, message = await session.configure("notes", {"root": "r", "off": ["wait"]})
    assert status == "partial"
    assert "wait (no licence)" in message
    assert [one.name for one in session.tools()] == ["show"]
    outcome = await session.run("wait", {})
    assert isinstance(outcome, Denied)
    assert outcome.reason == "disabled"
    with pytest.raises(ExecutionFailed, match="no licence"):
        await session.configure("notes", {"root": "r", "off": ["wait", "show"]})


async def test_b058_a_mask_or_nothing_for_a_secret_keeps_it() -> None:
    """pydantic/pydantic-core#851: a masked secret is saved and later used as if it were the secret."""
    bench = Bench(toolkit(Notes))
    session = bench.session("s")
    await session.configure("notes", {"root": "r", "key": "k1"})
    for mask in ({"set": True}, "**********", ""):
        await session.configure("notes", {"root": "again", "key": mask})
        assert await shown(bench, "s") == {"root": "again", "depth": 3, "retries": 2, "key": 2}


async def test_b063_what_is_no_longer_configured_is_refused_by_its_cached_name() -> None:
    """ComposioHQ/composio#2455: a tool that was listed still runs after its toolkit lost its credential."""
    bench = Bench(toolkit(Notes))
    session = bench.session("s")
    await session.configure("notes", {"root": "r"})
    cached = session.get("show")
    assert cached is not None
    with pytest.raises(InvalidInput):
        await session.configure("notes", {"root": 7})
    assert not (await cached.execute({})).is_error
    assert session.toolkits()[0].configured
    assert await session.unconfigure("notes")
    refused = await cached.execute({})
    assert (refused.status, refused.code) == ("denied", "not_configured")
    assert session.tools() == []
    assert not session.toolkits()[0].configured


async def test_an_unknown_toolkit_is_told_with_a_hint() -> None:
    with pytest.raises(UnknownToolkit, match="did you mean notes") as refused:
        await Bench(toolkit(Notes)).session("s").configure("note", {})
    assert refused.value.detail == {"toolkit_name": "note"}


async def test_events_reach_only_those_in_whose_scope_it_is_configured() -> None:
    heard: dict[str, list[Change]] = {"one": [], "two": []}
    bench = Bench(toolkit(Notes))
    for name, changes in heard.items():
        bench.session(name).subscribe(changes.append)
    await bench.session("one").configure("notes", {"root": "r"})
    [event] = heard["one"]
    assert isinstance(event, ToolkitEvent)
    assert (event.toolkit, event.kind) == ("notes", "status")
    assert event.data == {"status": "ok", "configured": True, "message": "Toolkit configured successfully"}
    assert heard["two"] == []
    await bench.operator().configure("notes", {"root": "host"})
    assert len(heard["one"]) == 2
    assert len(heard["two"]) == 1


async def test_a_toolkit_may_emit_from_any_thread() -> None:
    heard: list[Change] = []

    class Telling(Toolkit):
        @tool
        def tell(self) -> None:
            self.emit("log", {"message": "hi"})

    bench = Bench(toolkit(Telling))
    session = bench.session("s")
    await session.configure("telling", {})
    session.subscribe(heard.append)
    await session.run("tell", {})
    [event] = heard
    assert isinstance(event, ToolkitEvent)
    assert (event.kind, event.data) == ("log", {"message": "hi"})


async def test_configuring_at_once_is_done_one_after_the_other() -> None:
    bench = Bench(toolkit(Notes))
    session = bench.session("s")
    await asyncio.gather(*(session.configure("notes", {"root": str(i)}) for i in range(5)))
    await bench.scopes.close()
    assert len([line for line in log if line.startswith("setup")]) == 5
    assert len([line for line in log if line.startswith("close")]) == 5


async def test_resources_and_prompts_of_a_toolkit_come_with_its_configuration() -> None:
    bench = Bench(toolkit(Notes))
    session = bench.session("s")
    assert await session.prompts() == []
    with pytest.raises(InvalidInput):
        await session.read("notes://a")
    await session.configure("notes", {"root": "r"})
    assert [template.uri_template for template in await session.templates()] == ["notes://{name}"]
    contents = await session.read("notes://a")
    assert [getattr(part, "text", None) for part in contents.parts] == ["r/a"]
    [descriptor] = await session.prompts()
    assert descriptor.id == "summarise"
    filled = await session.prompt("summarise", {"name": "a"})
    assert [getattr(part, "text", None) for part in filled.messages[0].content] == ["Summarise r/a"]
    with pytest.raises(InvalidInput):
        await session.prompt("summarise", {})
