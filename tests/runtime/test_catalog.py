"""The catalogue: definitions from every source, and nothing lost in silence."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from anykit.capabilities import (
    CapabilityContext,
    Completed,
    Failed,
    Invocable,
    InvocableRequest,
    InvocableResult,
    InvocableSpec,
    State,
)
from anykit.runtime import CallOptions, Snapshot, Source
from anykit.tools import Toolkit, tool
from runtime_parts import Bench, Offers, functions, toolkit

pytestmark = pytest.mark.anyio


class Named:
    """An invocable that says its own name."""

    def __init__(self, name: Any, schema: Any = None) -> None:
        self._spec = InvocableSpec.model_construct(
            name=name,
            description="",
            input_schema={"type": "object"} if schema is None else schema,
            metadata={},
            annotations=None,
            output_schema=None,
        )

    @property
    def spec(self) -> InvocableSpec:
        return self._spec

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult:
        return InvocableResult(text=f"{self._spec.name} ran")


def source(name: str, *invocables: Invocable) -> Source:
    return Source(name, "test", Offers(*invocables), prefixed=True)


async def test_b003_every_tool_of_two_equal_sources_is_listed_and_reaches_its_own() -> None:
    """langchain-ai/langchain-mcp-adapters#605."""
    bench = Bench(functions(Named("lookup"), name="store_a"), functions(Named("lookup"), name="store_b"))
    assert sorted(bench.catalog.snapshot.tools) == ["store_a_lookup", "store_b_lookup"]
    assert {report.source for report in bench.catalog.snapshot.reports} == {"store_a", "store_b"}


async def test_b021_one_malformed_tool_costs_only_itself() -> None:
    """anthropics/claude-code#88049: one tool without an object schema drops all tools of its server."""

    class Broken:
        @property
        def spec(self) -> InvocableSpec:
            raise KeyError("name")

        async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult:
            return InvocableResult()

    bench = Bench(
        source(
            "s",
            Named("good"),
            Named("b1", {"type": "string"}),
            Named("b2", {"type": "int"}),
            Named("b3", {"type": "object", "properties": {"k": {"type": "string"}, "required": ["k"]}}),
            Named(None),
            Named(""),
            Named("good"),
            Broken(),
        )
    )
    assert list(bench.catalog.snapshot.tools) == ["s_good"]
    assert len(bench.catalog.snapshot.reports) == 7
    assert all(report.source == "s" and "left out" in report.reason for report in bench.catalog.snapshot.reports)
    assert isinstance(await bench.session().run("s_good", {}), Completed)


async def test_the_original_name_is_what_the_source_hears() -> None:
    bench = Bench(source("crm", Named("stock/item")))
    [entry] = bench.catalog.snapshot.tools.values()
    assert (entry.tool.name, entry.original, entry.tool.source) == ("crm_stock_item", "stock/item", "crm")
    outcome = await bench.session().run("crm_stock_item", {})
    assert isinstance(outcome, Completed)
    assert outcome.result.text == "stock/item ran"


async def test_a_toolkits_tools_follow_it_and_configuring_never_renames() -> None:
    class One(Toolkit):
        @tool
        def find(self) -> str:
            return "one"

    class Two(Toolkit):
        @tool
        def find(self) -> str:
            return "two"

    bench = Bench(toolkit(One, Two))
    assert list(bench.catalog.snapshot.tools) == ["one_find", "two_find"]
    session = bench.session("s")
    await session.configure("two", {})
    assert [one.name for one in session.tools()] == ["two_find"]
    assert (await session.call("two_find", {})).output == "two"


class Flaky:
    """A provider that comes, goes and changes."""

    def __init__(self, status: Any = "connecting") -> None:
        self.status: Any = status
        self.offered: list[Invocable] = []
        self.listeners: list[Callable[[], None]] = []

    @property
    def state(self) -> State:
        return State(self.status, "no route to host" if self.status == "failed" else "")

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        self.listeners.append(callback)
        return lambda: self.listeners.remove(callback)

    def become(self, status: str, *offered: Invocable) -> None:
        self.status = status
        self.offered = list(offered)
        for listener in list(self.listeners):
            listener()

    def invocables(self) -> Sequence[Invocable]:
        return self.offered

    def resources(self) -> Sequence[Any]:
        return ()

    def prompts(self) -> Sequence[Any]:
        return ()


async def test_b035_a_change_gives_one_new_snapshot_to_everyone_who_listens() -> None:
    """smart-mcp-proxy/mcpproxy-go#207: an outdated tool list is kept and removed tools stay callable."""
    flaky = Flaky("ready")
    flaky.offered = [Named("a"), Named("b")]
    bench = Bench(Source("s", "test", flaky, prefixed=True))
    seen: list[Snapshot] = []
    bench.catalog.subscribe(seen.append)
    flaky.become("ready", Named("b", {"type": "object", "required": ["x"]}), Named("c"))
    assert [list(snapshot.tools) for snapshot in seen] == [["s_b", "s_c"]]
    gone = await bench.session().run("s_a", {})
    assert isinstance(gone, Failed)
    assert gone.code == "unknown_tool"
    missing = await bench.session().run("s_b", {})
    assert isinstance(missing, Failed)
    assert missing.code == "invalid_input"


async def test_a_call_waits_inside_its_deadline_for_a_source_that_may_bring_its_tool() -> None:
    flaky = Flaky()
    bench = Bench(Source("s", "test", flaky, prefixed=True))

    async def arrive() -> None:
        flaky.become("ready", Named("late"))

    call = asyncio.ensure_future(bench.session().run("s_late", {}, CallOptions(timeout=5)))
    await asyncio.sleep(0)
    await arrive()
    assert isinstance(await call, Completed)


async def test_a_name_that_no_connecting_source_can_bring_fails_at_once() -> None:
    bench = Bench(Source("s", "test", Flaky(), prefixed=True))
    async with asyncio.timeout(5):
        outcome = await bench.session().run("other_tool", {})
    assert isinstance(outcome, Failed)
    assert outcome.code == "unknown_tool"


async def test_a_call_to_what_a_failed_source_offered_says_so_at_once() -> None:
    flaky = Flaky("failed")
    bench = Bench(Source("s", "test", flaky, prefixed=True))
    outcome = await bench.session().run("s_x", {})
    assert isinstance(outcome, Failed)
    assert "s is unavailable: no route to host" in outcome.message


async def test_a_removed_source_takes_its_tools_along_and_is_not_listened_to() -> None:
    flaky = Flaky("ready")
    flaky.offered = [Named("a")]
    bench = Bench(Source("s", "test", flaky))
    bench.catalog.remove("s")
    assert bench.catalog.snapshot.tools == {}
    assert flaky.listeners == []


async def test_two_sources_of_one_name_get_numbers() -> None:
    bench = Bench(source("s", Named("a")), source("s", Named("b")))
    assert list(bench.catalog.snapshot.tools) == ["s_a", "s_2_b"]


async def test_a_disabled_source_is_listed_and_offers_nothing() -> None:
    bench = Bench(Source("s", "test", Offers(Named("a")), disabled="switched off"))
    assert bench.catalog.snapshot.tools == {}
    assert "s" in bench.catalog.snapshot.sources
