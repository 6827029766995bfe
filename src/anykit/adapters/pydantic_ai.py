"""A toolset for pydantic-ai: the tools of a bench, as they are at each step of a run.

    async with Workbench("tools.py") as bench:
        agent = Agent("openai:gpt-5", toolsets=[toolset(bench)])
        await agent.run("...")

Arguments that do not fit are a `ModelRetry`, so that the model tries again; any other failure is told to it as it is. A
call that asks something ends the run with the question where the agent's output type has `DeferredToolRequests`:
an approval is answered by pydantic-ai's own, whatever else with `bench.answer`. Elsewhere the model reads the question.
"""

from __future__ import annotations

import asyncio
import typing
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

from anykit.capabilities import Outcome
from anykit.tools import Tool, ToolResult, to_json, tool_result

from .calls import Answering, Bench, Calls, Threaded, imported
from .pieces import Media, pieces_of, plain
from .schemas import Arguments

EXTRA = "pydantic-ai"
KEY = "anykit_suspension"
"""Under which key of a deferred call's metadata its question stands."""
REMEMBERED = 1000
"""Questions that are remembered by the call that came to them."""


def toolset(
    bench: Bench,
    *,
    id: str | None = "anykit",
    session_id: str | None = None,
    select: Callable[[Tool], bool] | None = None,
    needs_approval: Callable[[Tool], bool] | None = None,
    max_retries: int | None = None,
    deferring: bool | None = None,
) -> Any:
    """The tools of a bench as a pydantic-ai `AbstractToolset`.

    `session_id` is what the tools hear as the session of their caller; without it that is the run's conversation.
    `select` leaves out tools for which it is false; for those for which `needs_approval` is true pydantic-ai asks
    before every call. `max_retries` is how often the model may try again with other arguments, the agent's if None.
    `deferring` says whether a run may end with a question (`DeferredToolRequests`); None looks at the agent's output type.
    Raises `MissingFramework` without `pydantic-ai-slim`.
    """
    made = _toolset_class()
    return made(
        Calls(bench, session_id=session_id),
        id=id,
        select=select,
        needs_approval=needs_approval,
        max_retries=max_retries,
        deferring=deferring,
    )


@cache
def _toolset_class() -> Any:
    toolsets = imported("pydantic_ai.toolsets", EXTRA)
    toolset_tool: Any = imported("pydantic_ai.toolsets.abstract", EXTRA).ToolsetTool
    definition: Any = imported("pydantic_ai.tools", EXTRA).ToolDefinition
    exceptions: Any = imported("pydantic_ai.exceptions", EXTRA)
    messages: Any = imported("pydantic_ai.messages", EXTRA)
    core: Any = imported("pydantic_core", EXTRA)
    takes_all: Any = core.SchemaValidator(core.core_schema.any_schema())
    base: Any = toolsets.AbstractToolset

    class BenchToolset(base):
        """The tools of a bench."""

        def __init__(
            self,
            calls: Calls,
            *,
            id: str | None,
            select: Callable[[Tool], bool] | None,
            needs_approval: Callable[[Tool], bool] | None,
            max_retries: int | None,
            deferring: bool | None,
        ) -> None:
            self._calls = calls
            self._id = id
            self._select = select
            self._needs_approval = needs_approval
            self._max_retries = max_retries
            self._deferring = deferring
            self._tools: dict[str, tuple[Tool, Arguments]] = {}
            self._asked: dict[str, tuple[str, dict[str, Any]]] = {}
            """Calls that wait for an approval: by pydantic-ai's id of the call the question's, and the arguments."""

        @property
        def id(self) -> str | None:
            """See `AbstractToolset`."""
            return self._id

        async def get_tools(self, ctx: Any) -> dict[str, Any]:
            """See `AbstractToolset`: what can be called now."""
            tools = [one for one in self._calls.bench.tools() if self._select is None or self._select(one)]
            self._tools.update((one.name, (one, self._arguments(one))) for one in tools)
            retries = ctx.max_retries if self._max_retries is None else self._max_retries
            return {
                one.name: toolset_tool(
                    toolset=self, tool_def=self._definition(one), max_retries=retries, args_validator=takes_all
                )
                for one in tools
            }

        def _arguments(self, tool: Tool) -> Arguments:
            """Converted once for each definition of the tool."""
            known = self._tools.get(tool.name)
            if known is not None and known[0].input_schema is tool.input_schema:
                return known[1]
            return Arguments.of(tool)

        def _definition(self, tool: Tool) -> Any:
            spec = tool.spec
            hints = {} if spec.annotations is None else spec.annotations.model_dump(exclude_none=True)
            asks = self._needs_approval is not None and self._needs_approval(tool)
            return definition(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=self._tools[tool.name][1].schema,
                return_schema=spec.output_schema,
                kind="unapproved" if asks else "function",
                metadata={
                    "source": tool.source,
                    "toolkit": tool.toolkit,
                    "tags": list(spec.tags),
                    "annotations": hints,
                },
            )

        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
            """See `AbstractToolset`. Raises `ModelRetry`, `ToolFailed`, `ApprovalRequired` or `CallDeferred`."""
            known = self._tools.get(name)
            if known is None:
                await self.get_tools(ctx)
                known = self._tools.get(name)
            if known is None:
                raise exceptions.ToolFailed(f"there is no tool {name!r} any more")
            asked = self._asked_before(ctx, tool_args)
            if asked is not None and isinstance(self._calls.bench, Answering):
                result = await self._answer(self._calls.bench, asked)
            else:
                result = await self._calls.run(
                    known[0],
                    known[1].back(tool_args),
                    session_id=getattr(ctx, "conversation_id", None),
                    turn_id=getattr(ctx, "run_id", None),
                )
            return self._told(result, ctx, tool_args)

        def _asked_before(self, ctx: Any, arguments: dict[str, Any]) -> str | None:
            """The question that there is an approval for now, where the same call had come to one."""
            if not getattr(ctx, "tool_call_approved", False):
                return None
            id, given = self._asked.pop(str(ctx.tool_call_id), (None, arguments))
            if given != arguments:  # approved with others: that is another call, which asks for itself
                return None
            return id or _question_in(getattr(ctx, "tool_call_metadata", None))

        async def _answer(self, bench: Answering, id: str) -> ToolResult:
            if isinstance(bench, Threaded):
                given = cast("ToolResult | Outcome", await asyncio.to_thread(cast(Any, bench).answer, id))
            else:
                given = cast("ToolResult | Outcome", await self._calls.awaited(bench.answer(id)))
            return given if isinstance(given, ToolResult) else tool_result(given)

        def _told(self, result: ToolResult, ctx: Any, arguments: dict[str, Any]) -> Any:
            if not result.is_error:
                return messages.ToolReturn(_value(result, messages.BinaryContent), metadata=plain(result))
            if result.suspension is not None and self._may_defer(ctx):
                question = {KEY: result.suspension.to_json(), "how": result.output}
                if result.suspension.kind == "approval":
                    self._asked[str(ctx.tool_call_id)] = (result.suspension.id, dict(arguments))
                    while len(self._asked) > REMEMBERED:
                        del self._asked[next(iter(self._asked))]
                    raise exceptions.ApprovalRequired(metadata=question)
                raise _deferral(exceptions, question)
            if result.code == "invalid_input":
                raise exceptions.ModelRetry(result.output)
            raise exceptions.ToolFailed(result.output)

        def _may_defer(self, ctx: Any) -> bool:
            if self._deferring is not None:
                return self._deferring
            return _names_deferral(getattr(getattr(ctx, "agent", None), "output_type", None))

    return BenchToolset


def _deferral(exceptions: Any, question: dict[str, Any]) -> Exception:
    try:
        return exceptions.CallDeferred(metadata=question, kind="question")
    except TypeError:  # before 2.6x it had one kind
        return exceptions.CallDeferred(metadata=question)


def _names_deferral(output: object) -> bool:
    """Whether an output type has `DeferredToolRequests` among its members."""
    requests = imported("pydantic_ai.tools", EXTRA).DeferredToolRequests
    if output is requests:
        return True
    if isinstance(output, list | tuple):
        return any(_names_deferral(one) for one in cast("Sequence[object]", output))
    return any(_names_deferral(one) for one in typing.get_args(output))


def _question_in(metadata: Any) -> str | None:
    """The question's id in the metadata of a deferred call, which a program may have kept elsewhere."""
    question: Any = cast("dict[str, Any]", metadata).get(KEY) if isinstance(metadata, dict) else None
    id: Any = cast("dict[str, Any]", question).get("id") if isinstance(question, dict) else None
    return id if isinstance(id, str) else None


def _value(result: ToolResult, binary: Any) -> Any:
    """What the model is given: the structured value where the text says just that, else the pieces."""
    pieces = pieces_of(result)
    if len(pieces) == 1 and isinstance(pieces[0], str):
        said = result.structured is not None and result.output in (result.structured, to_json(result.structured))
        return result.structured if said else result.output
    return [
        binary(data=one.data, media_type=one.media_type, **({"identifier": one.name} if one.name else {}))
        if isinstance(one, Media)
        else one
        for one in pieces
    ]
