"""LangChain and LangGraph with their own fake model: prints what came of each scenario, as one line of JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import StructuredTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from toolbox import ALL, ENDED, STARTED, add, printed, results

from anykit import Workbench, sync
from anykit.adapters.langchain import langchain_tools


class Scripted(FakeMessagesListChatModel):
    """Says what it was told to say, and remembers the tools that it was given."""

    bound: list[Any] = []  # noqa: RUF012 - a field of a pydantic model

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Scripted:
        self.bound[:] = [convert_to_openai_tool(tool) for tool in tools]
        return self


def calling(name: str, arguments: dict[str, Any], id: str = "call-1") -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": id, "type": "tool_call"}])


def shown(message: ToolMessage) -> dict[str, Any]:
    return {"content": message.content, "status": message.status, "artifact": message.artifact}


async def main() -> dict[str, Any]:
    async with Workbench(*ALL) as bench:

        async def agent_calls(name: str, arguments: dict[str, Any], **options: Any) -> dict[str, Any]:
            model = Scripted(responses=[calling(name, arguments), AIMessage("done")])
            agent = create_agent(model, langchain_tools(bench, **options), checkpointer=InMemorySaver())
            config = {"configurable": {"thread_id": "thread-7"}}
            state = await agent.ainvoke({"messages": [("user", "go")]}, config)
            (told,) = [one for one in state["messages"] if isinstance(one, ToolMessage)]
            kept: list[BaseMessage] = (await agent.aget_state(config)).values["messages"]
            (again,) = [one for one in kept if isinstance(one, ToolMessage)]
            return {**shown(told), "kept": shown(again) == shown(told), "end": state["messages"][-1].content}

        async def listed() -> Any:
            tools = langchain_tools(bench)
            model = Scripted(responses=[])
            model.bind_tools(tools)
            return {
                "all": all(isinstance(one, StructuredTool) for one in tools),
                "names": [one.name for one in tools],
                "description": tools[0].description,
                "args": tools[0].args,
                "args_schema": tools[0].args_schema,
                "none": tools[2].args,
                "format": tools[0].response_format,
                "bound": model.bound[0],
                "metadata": tools[0].metadata,
                "selected": [one.name for one in langchain_tools(bench, select=lambda tool: "sums" in tool.tags)],
            }

        async def raised() -> Any:
            (tool,) = langchain_tools(bench, select=lambda tool: tool.name == "boom", handle_errors=False)
            try:
                await tool.ainvoke({})
            except ToolException as error:
                return str(error)
            return None

        async def in_thread() -> Any:
            model = Scripted(responses=[calling("add", {"a": 20, "b": 22}), AIMessage("done")])
            agent = create_agent(model, langchain_tools(bench))
            state = await asyncio.to_thread(agent.invoke, {"messages": [("user", "go")]})
            return [one.content for one in state["messages"] if isinstance(one, ToolMessage)]

        async def on_the_loop() -> Any:
            tools = langchain_tools(bench)
            try:
                tools[0].invoke({"a": 1, "b": 2})
            except RuntimeError as error:
                return str(error)
            return None

        async def cancelled() -> Any:
            (tool,) = langchain_tools(bench, select=lambda tool: tool.name == "forever")
            STARTED.clear()
            running = asyncio.ensure_future(tool.ainvoke({}))
            await STARTED.wait()
            running.cancel()
            (end,) = await asyncio.gather(running, return_exceptions=True)
            return [type(end).__name__, ENDED[-1:]]

        async def answered() -> Any:
            told = await agent_calls("name_it", {})
            (asked,) = bench.suspensions()
            return {**told, "id": asked.id, "then": (await bench.answer(asked.id, data="Rex")).output}

        async def either() -> Any:
            (tool,) = langchain_tools(bench, select=lambda tool: tool.name == "either")
            (alias,) = set(tool.args) - {"city", "zip"}
            told = [await agent_calls("either", given) for given in ({"zip": "1", alias: 5}, {})]
            return {"root": sorted(tool.args_schema), "alias": alias, "told": [one["content"] for one in told]}

        async def sum_up() -> Any:
            return await agent_calls("add", {"a": 2, "b": 3})

        async def misfit() -> Any:
            return await agent_calls("add", {"a": "two"})

        async def keywords() -> Any:
            return await agent_calls("keywords", {"config": "c", "run_manager": "r", "callbacks": "k"})

        async def nothing() -> Any:
            return await agent_calls("nothing", {})

        async def person() -> Any:
            return await agent_calls("person", {"name": "Ada"})

        async def picture() -> Any:
            return await agent_calls("picture", {})

        async def boom() -> Any:
            return await agent_calls("boom", {})

        async def broken() -> Any:
            return await agent_calls("broken", {})

        async def thread() -> Any:
            return await agent_calls("whoami", {})

        async def session() -> Any:
            return await agent_calls("whoami", {}, session_id="mine")

        scenarios = [
            *(listed, raised, in_thread, on_the_loop, cancelled, answered, sum_up, misfit, keywords, nothing, person),
            *(picture, boom, broken, thread, session, either),
        ]
        return await results({one.__name__: one for one in scenarios})


def of_a_script() -> Any:
    """The bench of scripts, with an agent that is not asynchronous, and from another loop."""
    with sync.Workbench(add) as bench:
        (tool,) = langchain_tools(bench)
        model = Scripted(responses=[calling("add", {"a": 1, "b": 1}), AIMessage("done")])
        state = create_agent(model, [tool]).invoke({"messages": [("user", "go")]})
        one = [message.content for message in state["messages"] if isinstance(message, ToolMessage)]
        return [*one, asyncio.run(tool.ainvoke({"a": 2, "b": 2}))]


if __name__ == "__main__":
    found = asyncio.run(main())
    found["of_a_script"] = of_a_script()
    printed(found)
