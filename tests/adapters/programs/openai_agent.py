"""The OpenAI Agents SDK with a model of its own interface: prints what came of each scenario, as one line of JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, FunctionTool, Model, ModelResponse, Runner, RunState, Usage, set_tracing_disabled
from agents.models.chatcmpl_converter import Converter
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from toolbox import ALL, ENDED, STARTED, add, printed, results

from anykit import Workbench, sync
from anykit.adapters.openai_agents import function_tools

set_tracing_disabled(True)


class Scripted(Model):
    """Calls one tool after another, and then is done."""

    def __init__(self, *calls: tuple[str, str]) -> None:
        self.left = list(calls)
        self.tools: list[Any] = []

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **options: Any) -> ModelResponse:
        self.tools = next(
            (
                one
                for one in (*args, *options.values())
                if isinstance(one, list) and one and isinstance(one[0], FunctionTool)
            ),
            [],
        )
        if self.left:
            name, arguments = self.left.pop(0)
            call: Any = ResponseFunctionToolCall(
                arguments=arguments, call_id=f"call-{len(self.left)}", name=name, type="function_call", id="fc_1"
            )
        else:
            text = ResponseOutputText(annotations=[], text="done", type="output_text", logprobs=[])
            call = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse(output=[call], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


def outputs(run: Any) -> list[Any]:
    items = [one.to_input_item() for one in run.new_items if one.type == "tool_call_output_item"]
    return [one["output"] for one in items if one.get("type") == "function_call_output"]


async def main() -> dict[str, Any]:
    async with Workbench(*ALL) as bench:

        async def calls(*asked: tuple[str, str], **options: Any) -> Any:
            agent = Agent(name="clerk", model=Scripted(*asked), tools=function_tools(bench, **options))
            run = await Runner.run(agent, "go")
            return {"told": outputs(run), "end": run.final_output}

        async def listed() -> Any:
            tools = function_tools(bench)
            model = Scripted()
            await Runner.run(Agent(name="clerk", model=model, tools=tools), "go")
            return {
                "is": all(isinstance(one, FunctionTool) for one in tools),
                "names": [one.name for one in model.tools],
                "description": tools[0].description,
                "schema": tools[0].params_json_schema,
                "strict": {one.name: one.strict_json_schema for one in tools},
                "person": tools[3].params_json_schema,
                "chat": Converter.tool_to_openai(tools[0]),
                "selected": [one.name for one in function_tools(bench, select=lambda tool: "sums" in tool.tags)],
            }

        async def approved() -> Any:
            tools = function_tools(bench, needs_approval=lambda tool: tool.name == "add")
            agent = Agent(name="clerk", model=Scripted(("add", '{"a": 2, "b": 3}')), tools=tools)
            first = await Runner.run(agent, "go")
            (asked,) = first.interruptions
            state: RunState[Any] = first.to_state()
            state.approve(asked)
            second = await Runner.run(agent, state)
            return {"before": outputs(first), "told": outputs(second), "end": second.final_output}

        async def asked() -> Any:
            found = await calls(("name_it", ""))
            (question,) = bench.suspensions()
            return {**found, "id": question.id, "then": (await bench.answer(question.id, data="Rex")).output}

        async def cancelled() -> Any:
            STARTED.clear()
            agent = Agent(name="clerk", model=Scripted(("forever", "{}")), tools=function_tools(bench))
            running = asyncio.ensure_future(Runner.run(agent, "go"))
            await STARTED.wait()
            running.cancel()
            (end,) = await asyncio.gather(running, return_exceptions=True)
            return [type(end).__name__, ENDED[-1:]]

        async def in_thread() -> Any:
            agent = Agent(name="clerk", model=Scripted(("add", '{"a": 20, "b": 22}')), tools=function_tools(bench))

            def work() -> Any:
                with asyncio.Runner() as runner:
                    return runner.run(Runner.run(agent, "go"))

            return outputs(await asyncio.to_thread(work))

        async def either() -> Any:
            (tool,) = function_tools(bench, select=lambda tool: tool.name == "either")
            (alias,) = set(tool.params_json_schema["properties"]) - {"city", "zip"}
            found = await calls(("either", json.dumps({"zip": "1", alias: 5})), ("either", "{}"))
            return {"root": sorted(tool.params_json_schema), "alias": alias, "told": found["told"]}

        async def sum_up() -> Any:
            return await calls(("add", '{"a": 2, "b": 3}'))

        async def misfit() -> Any:
            return await calls(
                ("add", '{"a": "two"}'), ("add", '{"a": 2,'), ("add", "[1]"), ("add", '{"a": 2, "b": 3}')
            )

        async def keywords() -> Any:
            return await calls(("keywords", json.dumps({"config": "c", "run_manager": None, "ctx": "x"})))

        async def nothing() -> Any:
            return await calls(("nothing", ""))

        async def person() -> Any:
            return await calls(("person", '{"name": "Ada"}'))

        async def picture() -> Any:
            return await calls(("picture", "{}"))

        async def boom() -> Any:
            return await calls(("boom", "{}"))

        async def broken() -> Any:
            return await calls(("broken", "{}"))

        async def session() -> Any:
            return await calls(("whoami", "{}"), session_id="mine")

        scenarios = [
            *(listed, approved, asked, cancelled, in_thread, sum_up, misfit, keywords, nothing, person, picture, boom),
            *(broken, session, either),
        ]
        return await results({one.__name__: one for one in scenarios})


def of_a_script() -> Any:
    """The bench of scripts, with a run that is not asynchronous."""
    with sync.Workbench(add) as bench:
        agent = Agent(name="clerk", model=Scripted(("add", '{"a": 1, "b": 1}')), tools=function_tools(bench))
        return outputs(Runner.run_sync(agent, "go"))


if __name__ == "__main__":
    found = asyncio.run(main())
    found["of_a_script"] = of_a_script()
    printed(found)
