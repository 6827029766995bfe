"""pydantic-ai with its own test models: prints what came of each scenario, as one line of JSON."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import Agent, models
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults
from pydantic_ai.toolsets import AbstractToolset
from toolbox import ALL, ENDED, STARTED, add, printed, results

from anykit import Workbench, sync, tool
from anykit.adapters.pydantic_ai import toolset

models.ALLOW_MODEL_REQUESTS = False


def scripted(*calls: tuple[str, dict[str, Any]]) -> FunctionModel:
    """A model that calls one tool after another, and then is done."""
    left = list(calls)

    def speak(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if left:
            name, arguments = left.pop(0)
            return ModelResponse([ToolCallPart(name, arguments, tool_call_id=f"call-{len(left)}")])
        return ModelResponse([TextPart("done")])

    return FunctionModel(speak)


def shown(part: Any) -> dict[str, Any]:
    content = part.content
    if isinstance(content, list):
        content = [
            {"data": one.base64, "media_type": one.media_type} if isinstance(one, BinaryContent) else one
            for one in content
        ]
    return {"part": type(part).__name__, "content": content, "outcome": getattr(part, "outcome", None)}


def told(messages: list[ModelMessage]) -> list[dict[str, Any]]:
    parts = [part for message in messages for part in message.parts]
    return [shown(part) for part in parts if isinstance(part, ToolReturnPart | RetryPromptPart)]


async def main() -> dict[str, Any]:
    async with Workbench(*ALL) as bench:

        async def calls(*asked: tuple[str, dict[str, Any]], **options: Any) -> Any:
            agent = Agent(scripted(*asked), toolsets=[toolset(bench, **options)])
            run = await agent.run("go")
            return {"told": told(run.all_messages()), "end": run.output}

        async def listed() -> Any:
            tools = toolset(bench, id="mine", needs_approval=lambda tool: bool(tool.annotations.destructive))
            model = TestModel(call_tools=[])
            await Agent(model, toolsets=[tools], output_type=[str, DeferredToolRequests]).run("go")
            assert model.last_model_request_parameters is not None
            given = model.last_model_request_parameters.function_tools
            return {
                "is": isinstance(tools, AbstractToolset),
                "id": tools.id,
                "names": [one.name for one in given],
                "description": given[0].description,
                "schema": given[0].parameters_json_schema,
                "metadata": given[0].metadata,
                "kinds": {one.name: one.kind for one in given if one.kind != "function"},
            }

        async def test_model() -> Any:
            tools = toolset(bench, select=lambda tool: tool.name in ("add", "person"))
            return (await Agent(TestModel(), toolsets=[tools]).run("go")).output

        async def live() -> Any:
            """A tool that comes while the agent runs is there at its next step, and one that goes is gone."""
            seen: list[list[str]] = []

            @tool
            def late() -> str:
                """Comes late."""
                return "late"

            def speak(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
                seen.append([one.name for one in info.function_tools if one.name in ("late", "add")])
                if len(seen) == 1:
                    bench.register(late)
                    return ModelResponse([ToolCallPart("add", {"a": 1, "b": 1})])
                if len(seen) == 2:
                    return ModelResponse([ToolCallPart("late", {})])
                bench.unregister("late")
                return ModelResponse([TextPart("done")])

            agent = Agent(FunctionModel(speak), toolsets=[toolset(bench)])
            first = await agent.run("go")
            await agent.run("again")
            return {"seen": seen, "told": told(first.all_messages())}

        async def misfit() -> Any:
            return await calls(("add", {"a": "two"}), ("add", {"a": 2, "b": 3}))

        async def misfit_twice() -> Any:
            try:
                await calls(("add", {"a": "two"}), ("add", {"a": "three"}), max_retries=1)
            except UnexpectedModelBehavior as error:
                return str(error)
            return None

        async def approved() -> Any:
            """An agent that may stop gets the tool's question as pydantic-ai's own, and goes on with its answer."""
            agent = Agent(
                scripted(("pay", {"amount": 5})), toolsets=[toolset(bench)], output_type=[str, DeferredToolRequests]
            )
            first = await agent.run("go")
            asked: Any = first.output
            (call,) = asked.approvals
            before = list(ENDED)
            second = await agent.run(
                message_history=first.all_messages(),
                deferred_tool_results=DeferredToolResults(approvals={call.tool_call_id: True}),
            )
            question = asked.metadata[call.tool_call_id]["anykit_suspension"]
            return {
                "asked": [question["prompt"], question["kind"]],
                "twice": [one for one in ENDED if one not in before] == ["paid 5"],
                "told": told(second.all_messages()),
                "end": second.output,
                "left": [one.prompt for one in bench.suspensions()],
            }

        async def asked_in_text() -> Any:
            found = await calls(("name_it", {}))
            (asked,) = bench.suspensions()
            return {**found, "id": asked.id, "then": (await bench.answer(asked.id, data="Rex")).output}

        async def asked_outside() -> Any:
            agent = Agent(
                scripted(("name_it", {})),
                toolsets=[toolset(bench, deferring=True)],
                output_type=[str, DeferredToolRequests],
            )
            first = await agent.run("go")
            requests: Any = first.output
            (call,) = requests.calls
            question = requests.metadata[call.tool_call_id]["anykit_suspension"]
            answer = await bench.answer(question["id"], data="Rex")
            second = await agent.run(
                message_history=first.all_messages(),
                deferred_tool_results=DeferredToolResults(calls={call.tool_call_id: answer.output}),
            )
            return {"asked": question["prompt"], "told": told(second.all_messages()), "end": second.output}

        async def cancelled() -> Any:
            STARTED.clear()
            agent = Agent(scripted(("forever", {})), toolsets=[toolset(bench)])
            running = asyncio.ensure_future(agent.run("go"))
            await STARTED.wait()
            running.cancel()
            (end,) = await asyncio.gather(running, return_exceptions=True)
            return [type(end).__name__, ENDED[-1:]]

        async def in_thread() -> Any:
            agent = Agent(scripted(("add", {"a": 20, "b": 22})), toolsets=[toolset(bench)])
            return told((await asyncio.to_thread(agent.run_sync, "go")).all_messages())

        async def either() -> Any:
            tools = toolset(bench, select=lambda tool: tool.name == "either")
            model = TestModel(call_tools=[])
            await Agent(model, toolsets=[tools]).run("go")
            assert model.last_model_request_parameters is not None
            (given,) = model.last_model_request_parameters.function_tools
            (alias,) = set(given.parameters_json_schema["properties"]) - {"city", "zip"}
            found = await calls(("either", {"zip": "1", alias: 5}), ("either", {}))
            return {
                "root": sorted(given.parameters_json_schema),
                "alias": alias,
                "told": [one["content"] for one in found["told"]],
            }

        async def sum_up() -> Any:
            return await calls(("add", {"a": 2, "b": 3}))

        async def keywords() -> Any:
            return await calls(("keywords", {"config": "c", "ctx": "x"}))

        async def nothing() -> Any:
            return await calls(("nothing", {}))

        async def person() -> Any:
            return await calls(("person", {"name": "Ada"}))

        async def picture() -> Any:
            return await calls(("picture", {}))

        async def boom() -> Any:
            return await calls(("boom", {}))

        async def broken() -> Any:
            return await calls(("broken", {}))

        async def conversation() -> Any:
            agent = Agent(scripted(("whoami", {})), toolsets=[toolset(bench)])
            return told((await agent.run("go", conversation_id="talk-7")).all_messages())

        async def session() -> Any:
            return await calls(("whoami", {}), session_id="mine")

        scenarios = [
            *(listed, test_model, live, misfit, misfit_twice, approved, asked_in_text, asked_outside, cancelled),
            *(in_thread, sum_up, keywords, nothing, person, picture, boom, broken, conversation, session, either),
        ]
        return await results({one.__name__: one for one in scenarios})


def of_a_script() -> Any:
    """The bench of scripts, with an agent that is not asynchronous."""
    with sync.Workbench(add) as bench:
        agent = Agent(scripted(("add", {"a": 1, "b": 1})), toolsets=[toolset(bench)])
        return told(agent.run_sync("go").all_messages())


if __name__ == "__main__":
    found = asyncio.run(main())
    found["of_a_script"] = of_a_script()
    printed(found)
