"""Toolkits over A2E: listed, configured, pushed, and kept apart between sessions."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic import BaseModel

from anykit import Toolkit, tool
from anykit.servers import A2EHost
from runtime_parts import toolkit
from servers.agents import WAIT, Fields, agent_of, connected, make_bench, make_host

pytestmark = pytest.mark.anyio


async def test_a_toolkit_is_listed_with_its_schema_and_not_configured() -> None:
    async with agent_of(make_host()) as agent:
        reply = await agent.ask("toolkit/list/req")
        assert list(reply) == ["type", "id", "version", "ts", "req_id", "toolkits"]
        (one,) = reply["toolkits"]
        assert list(one) == [
            "name", "alias", "description", "category", "tags", "icon_svg", "schema", "tools", "configured", "version",
        ]  # fmt: skip
        assert (one["name"], one["alias"], one["category"], one["tags"]) == ("notes", "n", "Storage", ["text", "files"])
        assert one["tools"] == ["read_note", "write_note"]
        assert one["configured"] is False
        assert one["version"] == "2.1.0"
        assert one["schema"]["required"] == ["shelf"]
        assert one["schema"]["properties"]["depth"]["default"] == 3


async def test_toolkits_are_filtered_by_category_and_by_all_tags() -> None:
    async with agent_of(make_host()) as agent:
        assert list(await agent.toolkits(filter_kind="storage")) == ["notes"]
        assert list(await agent.toolkits(filter_kind="STORAGE", filter_tags=["files", "text"])) == ["notes"]
        assert list(await agent.toolkits(filter_kind="io")) == []
        assert list(await agent.toolkits(filter_tags=["files", "web"])) == []


async def test_configuring_pushes_then_answers_then_shows_the_tools() -> None:
    async with agent_of(make_host()) as agent:
        assert "read_note" not in await agent.tools()
        agent.heard.clear()
        reply = await agent.configure("notes", {"shelf": "a"}, session_id=agent.session_id)
        assert list(reply) == ["type", "id", "version", "ts", "req_id", "toolkit_name", "status", "message"]
        assert reply["type"] == "toolkit/configure/resp"
        assert (reply["toolkit_name"], reply["status"]) == ("notes", "ok")
        assert reply["message"] == "Toolkit configured successfully"
        push, answer = agent.heard
        assert answer == reply
        assert (push["type"], push["kind"], push["req_id"], push["seq"]) == ("invoke/event", "status", "", 0)
        assert push["data"] == {
            "source": "toolkit",
            "toolkit": "notes",
            "status": "ok",
            "configured": True,
            "message": "Toolkit configured successfully",
        }
        listed = {one["name"]: one for one in (await agent.ask("tool/list/req"))["tools"]}
        assert listed["read_note"]["toolkit"] == "notes"
        assert listed["add"]["toolkit"] is None
        assert (await agent.toolkits())["notes"]["configured"] is True
        assert (await agent.call("read_note"))["data"]["data"] == {"shelf": "a", "depth": 3, "key": 0}


async def test_a_tool_of_a_toolkit_that_is_not_configured_is_denied() -> None:
    async with agent_of(make_host()) as agent:
        reply = await agent.call("write_note", {"text": "x"})
        assert (reply["code"], reply["detail"]["toolkit"]) == ("tool_denied", "notes")


@pytest.mark.parametrize("config", [{}, {"shelf": 1}, {"shelf": "a", "depth": "deep"}, {"shelf": "a", "more": 1}])
async def test_an_invalid_configuration_is_refused_with_every_fault_and_changes_nothing(config: Fields) -> None:
    async with agent_of(make_host()) as agent:
        await agent.configure("notes", {"shelf": "good"})
        agent.heard.clear()
        reply = await agent.configure("notes", config)
        assert (reply["type"], reply["code"]) == ("error", "runtime_error")
        assert reply["detail"]["reason"] == "schema_violation"
        assert reply["detail"]["errors"]
        assert all(set(one) == {"path", "message"} for one in reply["detail"]["errors"])
        assert agent.heard == [reply]
        assert (await agent.call("read_note"))["data"]["data"]["shelf"] == "good"


async def test_a_refused_secret_is_not_repeated() -> None:
    async with agent_of(make_host()) as agent:
        reply = await agent.configure("notes", {"shelf": 5, "key": "hunter2", "more": {"key": "hunter2"}})
        assert reply["detail"]["reason"] == "schema_violation"
        assert "hunter2" not in json.dumps(reply)
        reply = await agent.configure("notes", {"shelf": "a", "key": ["hunter2"]})
        assert "hunter2" not in json.dumps(reply)


async def test_an_unknown_toolkit_is_a_runtime_error_that_names_it() -> None:
    async with agent_of(make_host()) as agent:
        reply = await agent.configure("note", {})
        assert (reply["code"], reply["detail"]["toolkit_name"]) == ("runtime_error", "note")
        assert "did you mean notes" in reply["message"]
        assert len(json.dumps(await agent.configure("n" * 100_000, {}))) < 2000


async def test_a_setup_that_refuses_says_why_and_the_old_one_serves_on() -> None:
    async with agent_of(make_host()) as agent:
        await agent.configure("notes", {"shelf": "good"})
        reply = await agent.configure("notes", {"shelf": "missing"})
        assert (reply["code"], reply["message"]) == ("runtime_error", "there is no such shelf")
        assert (await agent.call("read_note"))["data"]["data"]["shelf"] == "good"


async def test_some_tools_off_is_partial_and_names_them() -> None:
    async with agent_of(make_host()) as agent:
        reply = await agent.configure("notes", {"shelf": "half"})
        assert reply["status"] == "partial"
        assert "write_note" in reply["message"]
        assert "the shelf is read-only" in reply["message"]
        push = next(one for one in agent.heard if one["type"] == "invoke/event")
        assert (push["data"]["status"], push["data"]["configured"]) == ("partial", True)
        assert "write_note" not in await agent.tools()
        assert "read_note" in await agent.tools()
        refused = await agent.call("write_note", {"text": "x"})
        assert (refused["code"], refused["detail"]["toolkit"]) == ("tool_denied", "notes")


async def test_two_sessions_never_see_each_others_configuration() -> None:
    host = make_host()
    async with agent_of(host) as one, agent_of(host) as other:
        await one.configure("notes", {"shelf": "mine", "key": "12345"})
        assert (await other.toolkits())["notes"]["configured"] is False
        assert "read_note" not in await other.tools()
        assert (await other.call("read_note"))["code"] == "tool_denied"
        await other.configure("notes", {"shelf": "theirs"})
        assert (await one.call("read_note"))["data"]["data"] == {"shelf": "mine", "depth": 3, "key": 5}
        assert (await other.call("read_note"))["data"]["data"] == {"shelf": "theirs", "depth": 3, "key": 0}
        assert len([message for message in other.heard if message["type"] == "invoke/event"]) == 1


async def test_a_session_that_ends_takes_its_configuration_with_it() -> None:
    closed = asyncio.Event()

    class Kit(Toolkit):
        name = "kit"

        @tool
        async def work(self) -> str:
            """Works."""
            return "done"

        async def close(self) -> None:
            closed.set()

    host = make_host(sources=(toolkit(Kit, name="more"),))
    async with agent_of(host) as agent:
        await agent.configure("kit", {})
        assert (await agent.call("work"))["data"]["data"] == "done"
        assert not closed.is_set()
    async with asyncio.timeout(WAIT):
        await closed.wait()
    async with agent_of(host) as agent:
        assert (await agent.call("work"))["code"] == "tool_denied"


async def test_what_the_operator_configures_reaches_every_session() -> None:
    bench = make_bench()
    host = A2EHost(bench)
    async with agent_of(host) as one, agent_of(host) as other, connected(host) as silent:
        await bench.operator().configure("notes", {"shelf": "everyone"})
        for agent in (one, other):
            push = await agent.receive()
            assert (push["type"], push["data"]["configured"]) == ("invoke/event", True)
            assert (await agent.toolkits())["notes"]["configured"] is True
            assert (await agent.call("read_note"))["data"]["data"]["shelf"] == "everyone"
        assert (await silent.ask("ping"))["type"] == "pong"
        assert [message["type"] for message in silent.heard] == ["pong"]
        await bench.operator().unconfigure("notes")
        assert (await one.receive())["data"]["configured"] is False
        assert (await one.call("read_note"))["code"] == "tool_denied"


async def test_a_toolkit_may_tell_by_itself_those_who_configured_it() -> None:
    host = make_host()
    async with agent_of(host) as one, agent_of(host) as other:
        for agent in (one, other):
            await agent.configure("notes", {"shelf": "a"})
            agent.heard.clear()
        await one.call("write_note", {"text": "four"})
        while not (told := [message for message in one.heard if message["type"] == "invoke/event"]):
            await one.receive()
        assert told[0]["kind"] == "log"
        assert told[0]["data"] == {"source": "toolkit", "toolkit": "notes", "written": 4}
        await other.ask("ping")
        assert [message["type"] for message in other.heard] == ["pong"]


async def test_pushes_go_only_to_those_who_speak_of_toolkits() -> None:
    bench = make_bench()
    host = A2EHost(bench)
    async with agent_of(host, "tools") as agent:
        await bench.operator().configure("notes", {"shelf": "a"})
        assert (await agent.ask("ping"))["type"] == "pong"
        assert [one["type"] for one in agent.heard] == ["handshake/resp", "pong"]


async def test_configurations_of_one_toolkit_are_taken_in_order() -> None:
    order: list[str] = []
    gates = {"a": asyncio.Event(), "b": asyncio.Event()}
    begun = asyncio.Semaphore(0)

    class Slow(Toolkit):
        name = "slow"

        class Config(BaseModel):
            step: str

        async def setup(self, config: Config) -> None:
            begun.release()
            await gates[config.step].wait()
            order.append(config.step)

        @tool
        async def step(self) -> str:
            """Says its step."""
            return str(self.config.step)

    async with agent_of(make_host(sources=(toolkit(Slow, name="more"),))) as agent:
        gates["b"].set()
        first = await agent.send("toolkit/configure/req", toolkit_name="slow", config={"step": "a"})
        await agent.send("toolkit/configure/req", toolkit_name="slow", config={"step": "b"}, id="second")
        assert (await agent.configure("notes", {"shelf": "beside"}))["status"] == "ok"
        await begun.acquire()
        assert order == []
        gates["a"].set()
        assert (await agent.reply_to(first))["status"] == "ok"
        assert (await agent.reply_to("second"))["status"] == "ok"
        assert order == ["a", "b"]
        assert (await agent.call("step"))["data"]["data"] == "b"


async def test_a_secret_on_an_open_way_is_refused() -> None:
    async with agent_of(make_host(), secure=False) as agent:
        reply = await agent.configure("notes", {"shelf": "a", "key": "hunter2"})
        assert (reply["code"], reply["detail"]["reason"]) == ("unauthorized", "insecure_transport")
        assert "hunter2" not in json.dumps(reply)
        assert (await agent.toolkits())["notes"]["configured"] is False
        assert (await agent.configure("notes", {"shelf": "a"}))["status"] == "ok"
        assert (await agent.configure("notes", {"shelf": "a", "key": None}))["status"] == "ok"


async def test_b060_defaults_are_filled_in_where_the_agent_left_them_out() -> None:
    """python-jsonschema/jsonschema#266: validation passed, but defaults were missing when the tool ran."""
    async with agent_of(make_host()) as agent:
        await agent.configure("notes", {"shelf": "r"})
        assert (await agent.call("read_note"))["data"]["data"]["depth"] == 3


async def test_b063_what_the_list_says_is_what_a_call_does() -> None:
    """ComposioHQ/composio#2455: tools of an inactive account still ran."""
    bench = make_bench()
    host = A2EHost(bench)

    async def agrees(agent: Any, configured: bool) -> None:
        assert (await agent.toolkits())["notes"]["configured"] is configured
        assert ("read_note" in await agent.tools()) is configured
        reply = await agent.call("read_note")
        assert (reply["type"] == "tool/call/resp") is configured
        if not configured:
            assert reply["code"] == "tool_denied"
            assert "notes" in reply["message"]

    async with agent_of(host) as agent:
        await agrees(agent, False)
        await bench.operator().configure("notes", {"shelf": "a"})
        await agrees(agent, True)
        assert (await agent.configure("notes", {"shelf": 1}))["code"] == "runtime_error"
        await agrees(agent, True)
        await bench.operator().unconfigure("notes")
        await agrees(agent, False)
        await agent.configure("notes", {"shelf": "b"})
        await agrees(agent, True)
        await bench.session(agent.session_id).unconfigure("notes")
        await agrees(agent, False)
