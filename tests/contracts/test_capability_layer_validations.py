"""What the capability-layer design wants validated early ("What we should validate early"): its four points."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import anykit.capabilities
from anykit import Tool, Workbench, tool
from anykit.capabilities import (
    CapabilityContext,
    CapabilityProvider,
    Invocable,
    InvocableRequest,
    InvocableResult,
    InvocableSpec,
    PromptProvider,
    ResourceProvider,
    TextPart,
)
from anykit.testing import MemoryProvider

pytestmark = pytest.mark.anyio


def mcp_like() -> MemoryProvider:
    provider = MemoryProvider("library", page_size=2)
    provider.add_tool("lookup", {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]})
    for number in range(3):
        provider.add_resource(f"memo://{number}", f"memo {number}")
    provider.add_resource("memo://picture", b"\x00\xff", media_type="image/png")
    provider.add_template("memo://of/{day}", lambda values: f"memo of {values['day']}")
    provider.add_prompt("review", "Review {code}", description="Asks for a review.")
    return provider


# 1. a native tool can be implemented cleanly as an invocable-backed tool


async def test_1_a_native_tool_is_an_invocable_and_runs_as_one() -> None:
    @tool(read_only=True)
    def add(a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    assert isinstance(add, Tool)
    assert isinstance(add, Invocable)
    assert isinstance(add.spec, InvocableSpec)
    as_invocable: Invocable = add
    result = await as_invocable.invoke(InvocableRequest(input={"a": 2, "b": 3}, call_id="1"), CapabilityContext())
    assert isinstance(result, InvocableResult)
    assert (result.text, result.structured) == ("5", 5)
    assert (await add.execute({"a": 2, "b": 3})).output == "5"
    assert add(2, 3) == 5


async def test_1_a_bare_invocable_becomes_a_tool_without_a_second_hierarchy() -> None:
    provider = mcp_like()
    async with Workbench(provider) as bench:
        lookup = bench.get("lookup")
        assert isinstance(lookup, Tool)
        assert isinstance(lookup, Invocable)
        result = await bench.call("lookup", {"key": "k"})
        assert not result.is_error
        assert result.structured == {"key": "k"}
        refused = await bench.call("lookup", {})
        assert refused.is_error
    assert [call.input for call in provider.tools["lookup"].calls] == [{"key": "k"}]


# 2. an MCP server can expose tools, resources and prompts through one capability provider


async def test_2_one_provider_offers_all_three_shapes_to_a_workbench() -> None:
    provider = mcp_like()
    assert isinstance(provider, CapabilityProvider)
    async with Workbench(provider) as bench:
        assert [one.name for one in bench.tools()] == ["lookup"]
        assert [one.id for one in await bench.resources()] == [
            "memo://0",
            "memo://1",
            "memo://2",
            "memo://picture",
        ]
        assert (await bench.read("memo://2")).parts == (TextPart(text="memo 2"),)
        assert (await bench.read("memo://of/friday")).parts == (TextPart(text="memo of friday"),)
        assert [(one.id, one.arguments[0].name) for one in await bench.prompts()] == [("review", "code")]
        filled = await bench.prompt("review", {"code": "x = 1"})
        assert filled.messages[0].content == (TextPart(text="Review x = 1"),)


# 3. the abstraction does not force resources and prompts through the tool path


async def test_3_resources_and_prompts_take_no_tool_path() -> None:
    provider = mcp_like()
    async with Workbench(provider) as bench:
        await bench.read("memo://0")
        await bench.prompt("review", {"code": "x"})
        assert [one.name for one in bench.tools()] == ["lookup"], "neither is listed as a tool"
        assert provider.tools["lookup"].calls == []
        for name in ("memo://0", "review"):
            assert (await bench.call(name)).is_error, "neither can be called as one"


def test_3_the_three_shapes_stay_three() -> None:
    provider = mcp_like()
    [resources], [prompts], [invocable] = provider.resources(), provider.prompts(), provider.invocables()
    assert isinstance(resources, ResourceProvider)
    assert isinstance(prompts, PromptProvider)
    assert not isinstance(invocable, ResourceProvider)
    assert not isinstance(invocable, PromptProvider)
    assert not isinstance(resources, Invocable)


def test_3_the_layer_is_lower_than_tools_and_than_every_protocol() -> None:
    folder = Path(anykit.capabilities.__file__ or "").parent
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            modules = (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom) and node.level == 0
                else [name.name for name in node.names]
                if isinstance(node, ast.Import)
                else []
            )
            assert not [module for module in modules if module.startswith("anykit")], file.name


# 4. the extra layer does not add painful boilerplate for simple tools


async def test_4_a_working_tool_is_three_lines() -> None:
    written = (
        "@tool\n"
        "def greet(name: str) -> str:\n"
        "    return f'Hello {name}'\n"
    )  # fmt: skip
    assert len(written.splitlines()) == 3
    space: dict[str, object] = {"tool": tool, "__name__": "three_lines"}
    exec(written, space)
    async with Workbench(space["greet"]) as bench:
        assert (await bench.call("greet", {"name": "Ada"})).output == "Hello Ada"


async def test_4_a_plain_function_needs_not_even_those() -> None:
    def greet(name: str) -> str:
        return f"Hello {name}"

    async with Workbench(greet) as bench:
        assert (await bench.call("greet", {"name": "Ada"})).output == "Hello Ada"
