"""Tools for LangChain and LangGraph: `StructuredTool`s over a bench.

    async with Workbench("tools.py") as bench:
        agent = create_agent(model, langchain_tools(bench))
        await agent.ainvoke({"messages": [...]})

A picture or a file stands in the message as a content block, the whole result beside it as the message's artifact, in
plain JSON. A tool that fails, or asks something, gives a message with the status `error` that says why, or what is asked
and how it is answered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

from anykit.capabilities import JsonObject
from anykit.tools import Tool, ToolResult

from .calls import Bench, Calls, imported
from .pieces import Media, pieces_of, plain
from .schemas import Arguments

EXTRA = "langchain"


def langchain_tools(
    bench: Bench,
    *,
    session_id: str | None = None,
    select: Callable[[Tool], bool] | None = None,
    handle_errors: bool = True,
) -> list[Any]:
    """The tools that can be called now, as LangChain `StructuredTool`s.

    `session_id` is what the tools hear as the session of their caller; without it that is LangGraph's `thread_id`.
    `select` leaves out tools for which it is false. With `handle_errors` false a failure is raised as `ToolException`.
    Made inside `async with Workbench(...)`, or from an `anykit.sync.Workbench`, they work asynchronously and, from another
    thread, synchronously. Raises `MissingFramework` without `langchain-core`.
    """
    calls = Calls(bench, session_id=session_id)
    made = _tool_class()
    return [_made(made, calls, tool, handle_errors) for tool in bench.tools() if select is None or select(tool)]


def _made(made: Any, calls: Calls, tool: Tool, handle_errors: bool) -> Any:
    runnables = imported("langchain_core.runnables", EXTRA)
    taken = Arguments.of(tool)

    def thread() -> str | None:
        configurable: Any = runnables.ensure_config().get("configurable")
        given: Any = cast("dict[str, Any]", configurable).get("thread_id") if isinstance(configurable, dict) else None
        return None if given is None else str(given)

    async def coroutine(arguments: JsonObject | None = None, /, **named: Any) -> tuple[Any, JsonObject]:
        result = await calls.run(tool, taken.back(named if arguments is None else arguments), session_id=thread())
        return _answer(result)

    def func(arguments: JsonObject | None = None, /, **named: Any) -> tuple[Any, JsonObject]:
        result = calls.run_blocking(tool, taken.back(named if arguments is None else arguments), session_id=thread())
        return _answer(result)

    spec = tool.spec
    hints = {} if spec.annotations is None else spec.annotations.model_dump(exclude_none=True)
    return made(
        name=tool.name,
        description=tool.description,
        args_schema=taken.schema,
        coroutine=coroutine,
        func=func,
        response_format="content_and_artifact",
        handle_tool_error=handle_errors,
        tags=list(spec.tags) or None,
        metadata={"source": tool.source, "toolkit": tool.toolkit, "annotations": hints},
    )


@cache
def _tool_class() -> Any:
    tools = imported("langchain_core.tools", EXTRA)
    base: Any = tools.StructuredTool

    class BenchTool(base):
        """A tool whose arguments travel as one object, so that one of them may be called `config` or `run_manager`."""

        def _to_args_and_kwargs(self, tool_input: Any, tool_call_id: str | None) -> tuple[tuple[Any, ...], JsonObject]:
            given: Any = base._to_args_and_kwargs(self, tool_input, tool_call_id)
            return (*given[0], given[1]), {}

    return BenchTool


def _answer(result: ToolResult) -> tuple[Any, JsonObject]:
    """Content and artifact. Raises `ToolException` for whatever is no success."""
    content = _content(result)
    if result.is_error:
        raise imported("langchain_core.tools", EXTRA).ToolException(content)
    return content, plain(result)


def _content(result: ToolResult) -> Any:
    pieces: Sequence[str | Media] = pieces_of(result)
    if len(pieces) == 1 and isinstance(pieces[0], str):
        return pieces[0]
    return [_block(piece) for piece in pieces]


def _block(piece: str | Media) -> JsonObject:
    """LangChain's own content blocks, which its models translate. A tool's message has none for sounds: they are files."""
    if isinstance(piece, str):
        return {"type": "text", "text": piece}
    kind = "image" if piece.is_image else "file"
    block: JsonObject = {"type": kind, "base64": piece.base64, "mime_type": piece.media_type}
    if kind == "file":  # OpenAI refuses one without a name
        block["extras"] = {"filename": piece.file_name}
    return block
