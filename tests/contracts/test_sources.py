"""Every source against every clause of the shipped contract."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from anykit.capabilities import CapabilityProvider
from anykit.sources import Backoff, Filtered, FunctionSource, Overridden, Prefixed, Renamed, load_module
from anykit.sources.a2e import A2ESource
from anykit.testing import MemoryProvider, SourceUnderTest, scripted_host
from anykit.testing.contracts import SOURCE_CLAUSES, Clause
from anykit.tools import prompt, resource, tool
from in_process import in_process

pytestmark = pytest.mark.anyio

QUICK = Backoff(0.01, 0.05)
ADD_SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}
CALLS = {"add": {"a": 2, "b": 3}}


@tool(idempotent=True)
async def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@tool
def shout(text: str) -> str:
    """Shouts, in a thread."""
    return text.upper()


@resource("note://today")
def today() -> str:
    """Today's note."""
    return "buy milk"


@prompt
def review(code: str) -> str:
    """Asks for a review."""
    return f"Review {code}"


MEMBERS = (add, shout, today, review)

MODULE = '''
from anykit.tools import prompt, resource, tool

@tool
async def add(a: int, b: int) -> int:
    """Adds."""
    return a + b

@resource("note://today")
def today() -> str:
    """Today's note."""
    return "buy milk"
'''


def memory() -> MemoryProvider:
    provider = MemoryProvider()
    provider.add_tool("add", ADD_SCHEMA)
    for number in range(5):
        provider.add_resource(f"memo://{number}", f"memo {number}")
        provider.add_prompt(f"review_{number}", "Review {code}")
    return provider


Make = Callable[[AsyncExitStack, Path], "SourceUnderTest"]


def of_functions(wrap: Callable[[FunctionSource], CapabilityProvider], calls: dict[str, dict[str, object]]) -> Make:
    def make(stack: AsyncExitStack, folder: Path) -> SourceUnderTest:
        return SourceUnderTest(lambda: wrap(FunctionSource(MEMBERS)), calls, ("note://today",))

    return make


def of_a_module(stack: AsyncExitStack, folder: Path) -> SourceUnderTest:
    file = folder / "contract_tools.py"
    file.write_text(MODULE)
    loaded = load_module(file)
    return SourceUnderTest(lambda: FunctionSource(loaded.members), CALLS, ("note://today",))


def of_memory(stack: AsyncExitStack, folder: Path) -> SourceUnderTest:
    return SourceUnderTest(memory, CALLS, ("memo://4",), {"review_3": {"code": "x"}})


SOURCES: dict[str, Make] = {
    "functions": lambda stack, folder: SourceUnderTest(
        lambda: FunctionSource(MEMBERS),
        {**CALLS, "shout": {"text": "hi"}},
        ("note://today",),
        {"review": {"code": "x"}},
    ),
    "module": of_a_module,
    "memory": of_memory,
    "prefixed": of_functions(lambda inner: Prefixed(inner, "x_"), {"x_add": {"a": 1, "b": 2}}),
    "filtered": of_functions(lambda inner: Filtered(inner, deny=["shout"]), {"add": {"a": 1, "b": 2}}),
    "renamed": of_functions(lambda inner: Renamed(inner, {"add": "plus"}), {"plus": {"a": 1, "b": 2}}),
    "overridden": of_functions(
        lambda inner: Overridden(inner, {"add": {"description": "Other words."}}), {"add": {"a": 1, "b": 2}}
    ),
    "wrapped memory": lambda stack, folder: SourceUnderTest(
        lambda: Prefixed(Filtered(memory()), "m_"), {"m_add": {"a": 1, "b": 2}}, ("memo://0",)
    ),
}


@pytest.fixture(params=[*SOURCES, "a scripted A2E host", "an A2E host in memory"])
async def source(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[SourceUnderTest]:
    kind: str = request.param
    async with AsyncExitStack() as stack:
        if kind == "a scripted A2E host":
            listed = [{"name": "add", "description": "Adds.", "input_schema": ADD_SCHEMA}]
            scripted = await stack.enter_async_context(scripted_host(listed))
            yield SourceUnderTest(lambda: A2ESource(scripted.connect, backoff=QUICK), CALLS)
        elif kind == "an A2E host in memory":
            host = await stack.enter_async_context(in_process(add, shout))
            yield SourceUnderTest(lambda: A2ESource(host.connect, backoff=QUICK), {**CALLS, "shout": {"text": "hi"}})
        else:
            yield SOURCES[kind](stack, tmp_path)


@pytest.mark.parametrize("clause", SOURCE_CLAUSES, ids=lambda clause: clause.__name__)
async def test_every_source_keeps_every_clause(source: SourceUnderTest, clause: Clause) -> None:
    await clause(source)
