"""One call, from its name to its outcome."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from anykit.capabilities import (
    CapabilityContext,
    Completed,
    Denied,
    Event,
    Failed,
    InvocableRequest,
    InvocableResult,
    InvocableSpec,
    Progress,
    Suspended,
    Suspension,
)
from anykit.runtime import Caller, CallOptions, Decision
from anykit.tools import PermissionRequest, Tool, ToolSpec, tool
from runtime_parts import Bench, functions

pytestmark = pytest.mark.anyio


@tool
async def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


async def test_a_call_completes_and_leaves_one_line_without_values() -> None:
    bench = Bench(functions(add))
    outcome = await bench.session("s1").run("add", {"a": 40, "b": 2}, CallOptions(turn_id="t1", call_id="c1"))
    assert isinstance(outcome, Completed)
    assert outcome.result.structured == 42
    [line] = bench.lines.rows
    assert (line["tool"], line["outcome"], line["session"], line["turn"], line["call"]) == (
        "add",
        "completed",
        "s1",
        "t1",
        "c1",
    )
    assert (line["principal"], line["face"]) == ("p", "a2e")
    assert line["input_bytes"] == len('{"a":40,"b":2}')
    assert line["output_chars"] == 2
    assert line["ms"] >= 0
    assert not {40, 2, 42} & {
        value for key, value in line.items() if key not in ("output_chars", "input_bytes", "ms", "at")
    }


async def test_an_unknown_name_fails_with_a_hint() -> None:
    outcome = await Bench(functions(add)).session().run("ad", {})
    assert isinstance(outcome, Failed)
    assert outcome.code == "unknown_tool"
    assert "did you mean add?" in outcome.message


@pytest.mark.parametrize("name", ["ADD", "Ad", 5, None])
async def test_an_unknown_name_is_no_exception_whatever_it_is(name: Any) -> None:
    outcome = await Bench(functions(add)).session().run(name, {})
    assert isinstance(outcome, Failed)
    assert outcome.code == "unknown_tool"
    assert ("did you mean add?" in outcome.message) == isinstance(name, str)


async def test_invalid_arguments_fail_before_anything_runs() -> None:
    outcome = await Bench(functions(add)).session().run("add", {"a": "x"})
    assert isinstance(outcome, Failed)
    assert outcome.code == "invalid_input"
    assert {fault["path"] for fault in outcome.detail["errors"]} >= {"/a"}


@pytest.mark.parametrize("arguments", [[], "x", 3, {"a": 1, "b": float("nan")}, {"a": 1, "b": "\ud83d"}])
async def test_arguments_of_any_shape_get_an_answer(arguments: object) -> None:
    outcome = await Bench(functions(add)).session().run("add", arguments)
    assert isinstance(outcome, Failed)
    assert outcome.code == "invalid_input"


async def test_the_smallest_deadline_holds() -> None:
    @tool(timeout=30)
    async def slow() -> None:
        await asyncio.Event().wait()

    outcome = await Bench(functions(slow)).session().run("slow", {}, CallOptions(timeout=0.05))
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.retryable) == ("timeout", False)


async def test_a_timed_out_thread_is_answered_at_once_and_told() -> None:
    told = threading.Event()

    @tool(timeout=0.05)
    def slow(context: CapabilityContext) -> None:
        while not context.cancelled:
            threading.Event().wait(0.005)
        told.set()

    outcome = await Bench(functions(slow)).session().run("slow", {})
    assert isinstance(outcome, Failed)
    assert outcome.code == "timeout"
    assert await asyncio.to_thread(told.wait, 5)


async def test_a_cancelled_caller_cancels_the_tool_and_is_recorded() -> None:
    begun = asyncio.Event()
    cancelled = asyncio.Event()

    @tool
    async def wait() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    bench = Bench(functions(wait))
    call = asyncio.ensure_future(bench.session().run("wait", {}))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert cancelled.is_set()
    assert [line["outcome"] for line in bench.lines.rows] == ["cancelled"]


async def test_events_come_in_order_from_threads_too_and_none_after_the_end() -> None:
    heard: list[Event] = []
    kept: list[CapabilityContext] = []

    @tool
    def count(context: CapabilityContext) -> str:
        for i in range(3):
            context.emit(Progress(i, 3))
        kept.append(context)
        return "done"

    session = Bench(functions(count)).session()
    for _ in range(5):  # also once it is known to be quick
        heard.clear()
        outcome = await session.run("count", {}, CallOptions(emit=heard.append))
        assert isinstance(outcome, Completed)
        assert heard == [Progress(0, 3), Progress(1, 3), Progress(2, 3)]
    kept[0].emit(Progress(9))
    await asyncio.sleep(0)
    assert len(heard) == 3


async def test_a_listener_that_breaks_costs_nothing() -> None:
    @tool
    async def say(context: CapabilityContext) -> str:
        context.emit(Progress(1))
        return "said"

    def broken(event: Event) -> None:
        raise RuntimeError("the listener's own fault")

    outcome = await Bench(functions(say)).session().run("say", {}, CallOptions(emit=broken))
    assert isinstance(outcome, Completed)


class Touching(Tool):
    """Says what it is about to touch."""

    def preflight(self, request: InvocableRequest) -> Sequence[PermissionRequest]:
        return [PermissionRequest("file_delete", request.input["path"])]

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult:
        return InvocableResult(text="deleted")


class Rules:
    def __init__(self, decision: Decision | Exception) -> None:
        self.decision = decision
        self.asked: list[tuple[str, list[PermissionRequest]]] = []

    def decide(
        self, caller: Caller, tool: Tool, request: InvocableRequest, permissions: Sequence[PermissionRequest]
    ) -> Decision:
        self.asked.append((tool.name, list(permissions)))
        if isinstance(self.decision, Exception):
            raise self.decision
        return self.decision


@pytest.mark.parametrize(
    ("decision", "runs"),
    [
        (Decision("allow"), True),
        (Decision("deny", "rule 3"), False),
        (Decision("ask", "rule 4"), False),
        (RuntimeError("the policy broke"), False),
    ],
)
async def test_the_policy_is_asked_with_what_the_call_touches_and_its_word_holds(
    decision: Decision | Exception, runs: bool
) -> None:
    rules = Rules(decision)
    touching = Touching(ToolSpec(name="rm", description="", input_schema={"type": "object"}))
    bench = Bench(functions(touching), policy=rules)
    outcome = await bench.session().run("rm", {"path": "/x"})
    assert rules.asked == [("rm", [PermissionRequest("file_delete", "/x")])]
    assert isinstance(outcome, Completed if runs else Denied)


async def test_a_suspension_is_an_outcome() -> None:
    class Asking:
        @property
        def spec(self) -> InvocableSpec:
            return InvocableSpec(name="ask", description="", input_schema={"type": "object"})

        async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> Suspension:
            return Suspension("s1", "input", "which one?", state={"step": 1})

    outcome = await Bench(functions(Asking())).session().run("ask", {})
    assert isinstance(outcome, Suspended)
    assert outcome.suspension.prompt == "which one?"


async def test_b065_blocking_tools_run_side_by_side_and_never_stop_the_loop() -> None:
    """modelcontextprotocol/python-sdk#1646: a blocking tool stops every other request."""
    together = threading.Barrier(3)

    @tool
    def slow() -> int:
        return together.wait(5)

    bench = Bench(functions(slow, add))
    session = bench.session()
    # The barrier opens only if all three run at the same time; meanwhile the loop answers another call.
    slow_calls = [asyncio.ensure_future(session.run("slow", {})) for _ in range(3)]
    assert isinstance(await session.run("add", {"a": 1, "b": 2}), Completed)
    outcomes = await asyncio.gather(*slow_calls)
    assert all(isinstance(outcome, Completed) for outcome in outcomes)
