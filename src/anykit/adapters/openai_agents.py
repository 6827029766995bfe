"""Tools for the OpenAI Agents SDK: `FunctionTool`s over a bench.

    async with Workbench("tools.py") as bench:
        agent = Agent(name="clerk", tools=function_tools(bench))
        await Runner.run(agent, "...")

Pictures and files are handed on as such. A tool that fails says why in its output, and one that asks says what, and how
it is answered: the run goes on, and the model reads it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

from anykit.capabilities import JsonObject
from anykit.tools import Tool, ToolResult

from .calls import Bench, Calls, imported
from .pieces import Media, pieces_of
from .schemas import Arguments, strict_schema

log = logging.getLogger("anykit.adapters")

EXTRA = "openai-agents"

Approval = bool | Callable[[Any, dict[str, Any], str], Awaitable[bool]]
"""What the SDK takes: yes, no, or a function of its run context, the arguments and the call's id."""


def function_tools(
    bench: Bench,
    *,
    session_id: str | None = None,
    select: Callable[[Tool], bool] | None = None,
    needs_approval: Callable[[Tool], Approval] | None = None,
) -> list[Any]:
    """The tools that can be called now, as `FunctionTool`s of the OpenAI Agents SDK.

    `session_id` is what the tools hear as the session of their caller. `select` leaves out tools for which it is false.
    `needs_approval` says for which tools the SDK asks before a call. The model is held to a schema strictly where that
    can be done without another meaning: what may be left out is null then. Any other goes out as it is, and the bench
    checks the arguments. Raises `MissingFramework` without `openai-agents`.
    """
    calls = Calls(bench, session_id=session_id)
    agents = imported("agents", EXTRA)
    return [
        _made(agents, calls, tool, False if needs_approval is None else needs_approval(tool))
        for tool in bench.tools()
        if select is None or select(tool)
    ]


def _made(agents: Any, calls: Calls, tool: Tool, needs_approval: Approval) -> Any:
    taken = Arguments.of(tool)

    async def on_invoke_tool(context: Any, arguments: str) -> Any:
        try:
            given: object = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError) as error:
            return f"the arguments for {tool.name} are not JSON: {error}"
        result = await calls.run(tool, taken.back(cast(JsonObject, given)))
        return _output(agents, result)

    def made(schema: JsonObject, *, strict: bool) -> Any:
        return agents.FunctionTool(
            name=tool.name,
            description=tool.description,
            params_json_schema=schema,
            on_invoke_tool=on_invoke_tool,
            strict_json_schema=strict,
            needs_approval=needs_approval,
        )

    strict = strict_schema(tool.input_schema)
    if strict is not None:
        try:
            return made(strict, strict=True)
        except agents.UserError as error:  # the SDK has rules of its own
            log.debug("%s is not strict for the SDK: %s", tool.name, error)
    return made(taken.schema, strict=False)


def _output(agents: Any, result: ToolResult) -> Any:
    pieces = pieces_of(result)
    if len(pieces) == 1 and isinstance(pieces[0], str):
        return pieces[0]
    return [_piece(agents, piece) for piece in pieces]


def _piece(agents: Any, piece: str | Media) -> Any:
    if isinstance(piece, str):
        return agents.ToolOutputText(text=piece)
    if piece.is_image:
        return agents.ToolOutputImage(image_url=piece.data_url)
    return agents.ToolOutputFileContent(file_data=piece.data_url, filename=piece.file_name)
