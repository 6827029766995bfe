"""A2E's `mcp` capability: servers, resources, prompts, and the agent's model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from anykit.capabilities import (
    Annotations,
    BlobPart,
    CapabilityContext,
    EmbeddedResource,
    ExecutionFailed,
    InvalidInput,
    Invocable,
    InvocableRequest,
    InvocableResult,
    InvocableSpec,
    Page,
    PromptArgument,
    PromptContents,
    PromptDescriptor,
    PromptMessage,
    PromptProvider,
    ResourceContents,
    ResourceDescriptor,
    ResourceProvider,
    State,
    TextPart,
    Unavailable,
)
from anykit.runtime import Source
from anykit.servers.a2e import A2EHost, AgentModels
from runtime_parts import Bench, functions
from servers.agents import WAIT, Agent, add, agent_of

pytestmark = pytest.mark.anyio


class Weather:
    """What an MCP server's tool looks like to the catalogue."""

    @property
    def spec(self) -> InvocableSpec:
        return InvocableSpec(
            name="forecast",
            description="Tells the weather",
            input_schema={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            annotations=Annotations(read_only=True),
            metadata={"mcp": {"server": "weather", "tool": "forecast"}},
        )

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult:
        return InvocableResult(text=f"sun in {request.input['city']}")


class Resources:
    """Two resources, of which changes are told."""

    def __init__(self) -> None:
        self.watching: dict[str, Callable[[str], None]] = {}

    async def list_resources(self, cursor: str | None = None) -> Page[ResourceDescriptor]:
        if cursor is None:
            return Page([ResourceDescriptor(id="w://now", name="now", media_type="text/plain")], "more")
        return Page([ResourceDescriptor(id="w://map", name="map", title="The map", description="A picture")])

    async def read_resource(self, id: str, context: CapabilityContext) -> ResourceContents:
        match id:
            case "w://now":
                return ResourceContents(id=id, parts=(TextPart(text="sun"),))
            case "w://map":
                blob = BlobPart(data=b"\x00\x01", media_type="image/png")
                also = EmbeddedResource(uri="w://legend", text="legend", media_type="text/plain")
                return ResourceContents(id=id, parts=(blob, also))
            case "w://away":
                raise Unavailable("weather is away")
            case "w://odd":
                raise ExecutionFailed("weather says nonsense")
            case _:
                raise InvalidInput(f"no resource {id!r}")

    async def subscribe_resource(self, id: str, callback: Callable[[str], None]) -> Callable[[], None]:
        if id == "w://none":
            raise InvalidInput("no resource")
        self.watching[id] = callback

        def undo() -> None:
            del self.watching[id]

        return undo


class Prompts:
    """One prompt."""

    async def list_prompts(self, cursor: str | None = None) -> Page[PromptDescriptor]:
        city = PromptArgument(name="city", description="Where", required=True)
        return Page([PromptDescriptor(id="report", description="A report", arguments=(city,))])

    async def get_prompt(self, id: str, args: dict[str, Any], context: CapabilityContext) -> PromptContents:
        if "city" not in args:
            raise InvalidInput("invalid arguments", [{"path": "/city", "message": "is missing"}])
        text = TextPart(text=f"Weather in {args['city']} for {context.principal}")
        return PromptContents(messages=(PromptMessage(role="user", content=(text,)),), description="A report")


class Server:
    """A source as an MCP server is one."""

    def __init__(self) -> None:
        self.now = State("ready", since=12.5, detail={"protocol": "2025-11-25", "server": "Weather Server 1.2"})
        self.tools: list[Invocable] = [Weather()]
        self.provider = Resources()
        self._callbacks: list[Callable[[], None]] = []

    @property
    def state(self) -> State:
        return self.now

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    def changed(self) -> None:
        for callback in self._callbacks:
            callback()

    def invocables(self) -> Sequence[Invocable]:
        return self.tools

    def resources(self) -> Sequence[ResourceProvider]:
        return [self.provider]

    def prompts(self) -> Sequence[PromptProvider]:
        return [Prompts()]


class Registrar:
    """Takes in what stands on its list."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.added: list[tuple[str, Sequence[str], str]] = []

    def allows(self, command: Sequence[str], url: str) -> bool:
        return list(command) == ["weather", "--stdio"] or url == "https://weather.example/mcp"

    async def add(self, name: str, *, command: Sequence[str], url: str, timeout: float) -> str:
        if name == "broken":
            raise Unavailable("it does not start")
        self.added.append((name, command, url))
        return self.bench.catalog.add(Source(name, "mcp", Server(), prefixed=True))[0].name

    async def remove(self, name: str) -> None:
        self.bench.catalog.remove(name)


def bench_of(server: Server | None = None) -> Bench:
    made = Source("weather", "mcp", server or Server(), prefixed=True, location="https://weather.example/mcp")
    return Bench(functions(add), made)


@asynccontextmanager
async def asking(
    server: Server | None = None, *, models: AgentModels | None = None, registers: bool = False
) -> AsyncGenerator[tuple[Agent, Bench]]:
    bench = bench_of(server)
    registrar = Registrar(bench) if registers else None
    async with agent_of(A2EHost(bench, models=models, registrar=registrar), "tools", "mcp") as agent:
        yield agent, bench


async def test_the_servers_are_listed_with_what_is_known_of_them() -> None:
    async with asking() as (agent, _):
        reply = await agent.ask("mcp/server/list/req")
    assert reply["type"] == "mcp/server/list/resp"
    [server] = reply["servers"]
    assert server == {
        "server_id": "weather",
        "name": "weather",
        "transport": "http",
        "status": "ready",
        "mcp_version": "2025-11-25",
        "server_name": "Weather Server",
        "server_version": "1.2",
        "tools_count": 1,
        "resources_count": 2,
        "prompts_count": 1,
        "last_ping_ms": 0.0,
        "error": "",
        "connected_at": 12.5,
    }


async def test_a_server_that_is_away_is_listed_with_the_reason() -> None:
    server = Server()
    server.now = State("failed", "connection refused")
    async with asking(server) as (agent, _):
        [shown] = (await agent.ask("mcp/server/list/req"))["servers"]
        assert (shown["status"], shown["error"], shown["resources_count"]) == ("error", "connection refused", 0)
        assert (await agent.ask("mcp/server/list/req", status_filter="ready"))["servers"] == []
        assert len((await agent.ask("mcp/server/list/req", status_filter="Error"))["servers"]) == 1


async def test_its_tools_are_tools_with_its_tags_and_no_toolkit() -> None:
    async with asking() as (agent, _):
        listed = (await agent.ask("tool/list/req", filter_tags=["mcp"]))["tools"]
        [tool] = listed
        assert tool["name"] == "weather_forecast"
        assert tool["tags"] == ["mcp", "weather", "forecast"]
        assert tool["toolkit"] is None
        assert [one["name"] for one in tool["input_parameters"]] == ["city"]
        assert tool["input_schema"]["required"] == ["city"]
        assert [one["name"] for one in (await agent.ask("tool/list/req", filter_kind="mcp"))["tools"]] == [tool["name"]]
        reply = await agent.call("weather_forecast", {"city": "Rome"})
        assert reply["data"]["summary"] == "sun in Rome"


async def test_resources_are_listed_whole_and_read() -> None:
    async with asking() as (agent, _):
        listed = (await agent.ask("mcp/resource/list/req", server_id="weather"))["resources"]
        assert [(one["uri"], one["name"], one["server_id"]) for one in listed] == [
            ("w://now", "now", "weather"),
            ("w://map", "The map", "weather"),
        ]
        everywhere = await agent.ask("mcp/resource/list/req")
        assert (everywhere["resources"], everywhere["next_cursor"]) == (listed, "")
        text = await agent.ask("mcp/resource/read/req", uri="w://now")
        assert text["contents"] == [
            {"uri": "w://now", "mime_type": "text/plain", "text": "sun", "blob": "", "type": "text"}
        ]
        assert (text["server_id"], text["error"]) == ("weather", "")
        picture, legend = (await agent.ask("mcp/resource/read/req", uri="w://map", server_id="weather"))["contents"]
        assert (picture["type"], picture["blob"], picture["mime_type"]) == ("blob", "AAE=", "image/png")
        assert (legend["uri"], legend["text"]) == ("w://legend", "legend")


@pytest.mark.parametrize(
    ("type", "fields", "code"),
    [
        ("mcp/resource/read/req", {"uri": "w://nothing"}, "mcp_resource_not_found"),
        ("mcp/resource/read/req", {"uri": "w://now", "server_id": "wether"}, "mcp_server_not_found"),
        ("mcp/resource/read/req", {"uri": "w://away"}, "mcp_server_unavailable"),
        ("mcp/resource/read/req", {"uri": "w://odd"}, "mcp_protocol_error"),
        ("mcp/resource/list/req", {"server_id": "nobody"}, "mcp_server_not_found"),
        ("mcp/resource/list/req", {"cursor": "forged"}, "schema_violation"),
        ("mcp/prompt/get/req", {"name": "nothing"}, "mcp_prompt_not_found"),
        ("mcp/prompt/get/req", {"name": "report"}, "schema_violation"),
        ("mcp/server/unregister/req", {"server_id": "weather"}, "unauthorized"),
        ("mcp/server/unregister/req", {"server_id": "nobody"}, "mcp_server_not_found"),
    ],
)
async def test_what_cannot_be_had_is_refused_with_the_protocols_code(type: str, fields: Any, code: str) -> None:
    async with asking() as (agent, _):
        reply = await agent.ask(type, **fields)
        assert (reply["type"], reply["code"]) == ("error", code)
        assert reply["capability_name"] == "mcp"
        assert reply["retryable"] is (code == "mcp_server_unavailable")
        assert (await agent.ask("ping"))["type"] == "pong"


async def test_a_name_nearly_right_gets_a_hint() -> None:
    async with asking() as (agent, _):
        reply = await agent.ask("mcp/resource/list/req", server_id="wether")
        assert "did you mean weather?" in reply["message"]


async def test_prompts_are_listed_and_filled_in() -> None:
    async with asking() as (agent, _):
        [prompt] = (await agent.ask("mcp/prompt/list/req"))["prompts"]
        assert prompt == {
            "name": "report",
            "description": "A report",
            "server_id": "weather",
            "arguments": [{"name": "city", "description": "Where", "required": True}],
        }
        reply = await agent.ask("mcp/prompt/get/req", name="report", arguments={"city": "Rome"})
        assert reply["messages"] == [{"role": "user", "content": {"type": "text", "text": "Weather in Rome for local"}}]
        assert (reply["description"], reply["server_id"]) == ("A report", "weather")


async def test_a_change_of_a_watched_resource_is_pushed() -> None:
    server = Server()
    async with asking(server) as (agent, _):
        assert (await agent.ask("mcp/resource/subscribe/req", uri="w://now"))["ok"] is True
        assert (await agent.ask("mcp/resource/subscribe/req", uri="w://now"))["ok"] is True
        refused = await agent.ask("mcp/resource/subscribe/req", uri="w://none")
        assert refused["ok"] is False
        assert refused["error"]
        server.provider.watching["w://now"]("w://now")
        push = await agent.receive()
        assert (push["type"], push["server_id"], push["method"], push["params"]) == (
            "mcp/server/push",
            "weather",
            "notifications/resources/updated",
            {"uri": "w://now"},
        )
    assert server.provider.watching == {}


async def test_a_change_of_a_servers_tools_is_pushed() -> None:
    server = Server()
    async with asking(server) as (agent, _):
        server.tools = []
        server.changed()
        pushes = [await agent.receive(), await agent.receive()]
        push = next(one for one in pushes if one["type"] == "mcp/server/push")
        assert (push["server_id"], push["method"]) == ("weather", "notifications/tools/list_changed")


async def test_without_the_capability_nothing_of_it_is_told_or_answered() -> None:
    async with agent_of(A2EHost(bench_of()), "tools") as agent:
        reply = await agent.ask("mcp/server/list/req")
        assert (reply["code"], reply["capability_name"]) == ("capability_missing", "mcp")


@pytest.mark.parametrize(
    "config",
    [
        {"cmd": ["sh", "-c", "touch marker"]},
        {"cmd": ["weather", "--stdio", "--more"]},
        {"cmd": ["weather", "--stdio"], "env": {"LD_PRELOAD": "x.so"}},
        {"cmd": ["weather", "--stdio"], "cwd": "/tmp"},
        {"cmd": ["weather", "--stdio"], "url": "https://weather.example/mcp"},
        {"url": "https://weather.example/mcp/../other"},
        {"url": "https://weather.example/mcp", "headers": {"Authorization": "x"}},
        {},
    ],
)
@pytest.mark.parametrize("registers", [True, False])
async def test_b080_a_server_that_the_operator_did_not_allow_is_refused(config: Any, registers: bool) -> None:
    """kardolus/chatgpt-cli#176: an agent cannot make the host run a command."""
    async with asking(registers=registers) as (agent, bench):
        reply = await agent.ask("mcp/server/register/req", config={"server_id": "x", **config})
        assert (reply["type"], reply["code"], reply["detail"]) == ("error", "unauthorized", {"reason": "not_allowed"})
        assert list(bench.catalog.snapshot.sources) == ["python", "weather"]


async def test_a_server_on_the_operators_list_comes_in_and_goes_with_its_session() -> None:
    async with asking(registers=True) as (agent, bench):
        reply = await agent.ask("mcp/server/register/req", config={"server_id": "mine", "cmd": ["weather", "--stdio"]})
        assert reply["ok"] is True
        assert (reply["server"]["server_id"], reply["server"]["status"]) == ("mine", "ready")
        assert "mine_forecast" in await agent.tools()
        gone = await agent.ask("mcp/server/unregister/req", server_id="mine")
        assert (gone["ok"], gone["server_id"]) == (True, "mine")
        assert "mine_forecast" not in await agent.tools()
        again = await agent.ask(
            "mcp/server/register/req", config={"server_id": "mine", "url": "https://weather.example/mcp"}
        )
        assert again["ok"] is True
        failed = await agent.ask(
            "mcp/server/register/req", config={"server_id": "broken", "cmd": ["weather", "--stdio"]}
        )
        assert (failed["ok"], failed["error"], failed["server"]) == (False, "it does not start", {})
    assert list(bench.catalog.snapshot.sources) == ["python", "weather"]


async def test_another_sessions_server_cannot_be_taken_out() -> None:
    bench = bench_of()
    host = A2EHost(bench, registrar=Registrar(bench))
    async with agent_of(host, "mcp") as mine, agent_of(host, "mcp") as other:
        await mine.ask("mcp/server/register/req", config={"server_id": "mine", "cmd": ["weather", "--stdio"]})
        reply = await other.ask("mcp/server/unregister/req", server_id="mine")
        assert reply["code"] == "unauthorized"


async def test_a_configuration_that_is_none_is_refused_without_its_values() -> None:
    async with asking(registers=True) as (agent, _):
        reply = await agent.ask("mcp/server/register/req", config={"cmd": "secret-command"})
        assert reply["code"] == "schema_violation"
        assert "secret-command" not in json.dumps(reply)


ASKED: dict[str, Any] = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Which city?"}}],
    "maxTokens": 50,
    "systemPrompt": "Be brief",
    "temperature": 0.5,
    "modelPreferences": {"hints": [{"name": "small"}]},
}


class TestSampling:
    """A server asks a model: the one of the agent whose call it works on."""

    async def test_the_agents_model_answers(self) -> None:
        models = AgentModels()
        async with asking(models=models) as (agent, _):
            context = CapabilityContext(session_id=agent.session_id)
            asked = asyncio.create_task(models.sample(ASKED, context))
            request = await agent.receive()
            assert request["type"] == "mcp/sample/req"
            assert (request["max_tokens"], request["system_prompt"], request["temperature"]) == (50, "Be brief", 0.5)
            assert request["model_preferences"] == {"hints": [{"name": "small"}]}
            await agent.send(
                "mcp/sample/resp",
                req_id=request["id"],
                content={"type": "text", "text": "Rome"},
                model="m1",
                stop_reason="endTurn",
            )
            async with asyncio.timeout(WAIT):
                assert await asked == {
                    "role": "assistant",
                    "content": {"type": "text", "text": "Rome"},
                    "model": "m1",
                    "stopReason": "endTurn",
                }

    async def test_a_refusal_is_one(self) -> None:
        models = AgentModels()
        async with asking(models=models) as (agent, _):
            asked = asyncio.create_task(models.sample(ASKED, CapabilityContext(session_id=agent.session_id)))
            request = await agent.receive()
            await agent.send("mcp/sample/resp", req_id=request["id"], error="not today")
            with pytest.raises(ExecutionFailed, match="not today") as caught:
                await asked
            assert caught.value.code == "mcp_sampling_refused"

    async def test_an_answer_to_nothing_is_dropped(self) -> None:
        async with asking(models=AgentModels()) as (agent, _):
            await agent.send("mcp/sample/resp", req_id="m999", content={"type": "text", "text": "x"})
            await agent.send("mcp/sample/resp", content={"type": "text", "text": "x"})
            assert (await agent.ask("ping"))["type"] == "pong"

    async def test_only_the_callers_own_agent_is_asked(self) -> None:
        models = AgentModels()
        async with asking(models=models) as (agent, _):
            with pytest.raises(ExecutionFailed, match="no model"):
                await models.sample(ASKED, CapabilityContext(session_id="another"))
            assert (await agent.ask("ping"))["type"] == "pong"
            assert [one["type"] for one in agent.heard] == ["handshake/resp", "pong"]

    async def test_an_agent_that_leaves_answers_nothing(self) -> None:
        models = AgentModels()
        async with asking(models=models) as (agent, _):
            asked = asyncio.create_task(models.sample(ASKED, CapabilityContext(session_id=agent.session_id)))
            await agent.receive()
        with pytest.raises(ExecutionFailed, match="gone"):
            await asked

    async def test_its_folders_are_told_as_roots(self) -> None:
        models = AgentModels()
        async with asking(models=models) as (agent, _):
            asked = asyncio.create_task(models.roots(CapabilityContext(session_id=agent.session_id)))
            request = await agent.receive()
            assert request["type"] == "mcp/root/list/req"
            roots = [
                {"uri": "file:///work", "name": "work"},
                {"uri": "https://no"},
                {"nothing": 1},
                {"uri": "file:///b"},
            ]
            await agent.send("mcp/roots/list/resp", req_id=request["id"], roots=roots)
            assert await asked == [{"uri": "file:///work", "name": "work"}, {"uri": "file:///b"}]
