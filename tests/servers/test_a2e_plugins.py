"""Plugins, written as a newcomer writes them: with the A2E toolkits capability's page open, and little care."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from anykit.a2e import (
    A2EError,
    A2EEvent,
    A2EHost,
    A2EPlugin,
    ToolCallRequest,
    ToolCallResponse,
    ToolDefinition,
    ToolEvent,
    ToolkitConfigureRequest,
    ToolkitConfigureResponse,
    ToolkitDefinition,
    ToolkitListRequest,
    ToolkitListResponse,
    ToolkitPlugin,
    ToolListRequest,
    ToolListResponse,
    ToolParameter,
    ToolPlugin,
    ToolResult,
)
from servers.agents import WAIT, add, agent_of, connected, echo, make_bench, make_host

pytestmark = pytest.mark.anyio


class Filesystem(ToolkitPlugin):
    """The page's example, as someone types it in."""

    name = "toolkit_plugin"

    def _list_toolkits(self, msg: ToolkitListRequest) -> ToolkitListResponse:
        return ToolkitListResponse(
            toolkits=[
                ToolkitDefinition(
                    name="filesystem",
                    alias="fs",
                    description="File I/O toolkit",
                    category="io",
                    tags=["fs", "files"],
                    schema={
                        "type": "object",
                        "properties": {
                            "root_dir": {"type": "string", "description": "Root directory for file operations"},
                            "depth": {"type": "integer", "default": 3},
                            "key": {"type": "string", "writeOnly": True},
                        },
                        "required": ["root_dir"],
                    },
                    tools=["read_file", "add", "nowhere"],
                )
            ]
        )

    def _configure_toolkit(self, msg: ToolkitConfigureRequest) -> ToolkitConfigureResponse:
        if msg.config["root_dir"] == "/status-error":
            return ToolkitConfigureResponse(toolkit_name=msg.toolkit_name, status="error", message="no such folder")
        if msg.config["root_dir"] == "/partial":
            return ToolkitConfigureResponse(toolkit_name=msg.toolkit_name, status="partial", message="half of it")
        if msg.config["root_dir"] == "/none":
            return None  # pyright: ignore[reportReturnType]
        if msg.config["root_dir"] == "/raise":
            raise RuntimeError("secret-of-the-plugin")
        if msg.config["root_dir"] == "/quit":
            raise SystemExit("secret-of-the-plugin")
        if msg.config["root_dir"] == "/leak":
            raise RuntimeError(f"refused {msg.config['key']}")
        if msg.config["root_dir"] == "/wrong":
            answer = ToolkitConfigureResponse(toolkit_name="another's")
            answer.message = 5  # pyright: ignore[reportAttributeAccessIssue]
            return answer
        if msg.config["root_dir"] == "/another":
            return ToolkitConfigureResponse(toolkit_name="another's", message=str(msg.config.get("key")))
        if msg.config["root_dir"] == "/refuse":
            return A2EError(code="RUNTIME_ERROR", message="refused")  # pyright: ignore[reportReturnType]
        self.emit_event(A2EEvent(kind="log", data={"message": "mounted", "depth": msg.config["depth"]}))
        return ToolkitConfigureResponse(toolkit_name=msg.toolkit_name)


class Files(ToolPlugin):
    """A tool plugin beside it."""

    name = "files"

    def _list_tools(self) -> list[ToolDefinition]:
        return [
            ToolDefinition(
                name="read_file",
                description="Reads a file",
                input_parameters=[
                    ToolParameter(name="path", type="string", description="Where", required=True),
                    ToolParameter(name="mode", type="string", description="How", enum=["text", "bytes"]),
                ],
                tags=["fs"],
                idempotent=True,
            ),
            ToolDefinition(name="stat", description="Looks at a file", defer_loading=True),
            ToolDefinition(name="tell", description="Tells while it runs", input_schema={"type": "object"}),
        ]

    def _execute_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        match name:
            case "read_file" if arguments["path"] == "/missing":
                raise FileNotFoundError("secret path")
            case "read_file":
                return {"path": arguments["path"], "thread": threading.current_thread() is not threading.main_thread()}
            case "stat":
                return ToolResult(success=False, tool_name=name, error="not here", error_code="enoent", duration_ms=1)
            case _:
                for step in range(3):
                    self.emit("progress", {"pct": step, "message": arguments.get("who", "")})
                return None


def entry(cls: type[Any] | str, name: str = "p", type: str = "toolkits", **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": type, "cls": cls, "metadata": metadata}


BOTH = (entry(Filesystem), entry(Files, "files", "tools"))


async def test_a_plugin_from_the_page_is_listed_beside_the_hosts_own() -> None:
    async with agent_of(make_host(plugins=BOTH)) as agent:
        listed = await agent.toolkits()
        assert set(listed) == {"notes", "filesystem"}
        assert listed["filesystem"]["configured"] is False
        assert listed["filesystem"]["alias"] == "fs"
        assert list(await agent.toolkits(filter_kind="IO")) == ["filesystem"]
        assert list(await agent.toolkits(filter_tags=["files"])) == ["notes", "filesystem"]
        assert list(await agent.toolkits(filter_tags=["fs", "files"])) == ["filesystem"]


async def test_a_toolkits_tools_appear_once_it_is_configured() -> None:
    async with agent_of(make_host(plugins=BOTH)) as agent:
        assert await agent.tools() == ["echo", "fail", "flaky", "narrate", "tell"]
        for name, arguments in (("read_file", {"path": "/a"}), ("add", {"a": 1, "b": 2})):
            reply = await agent.call(name, arguments)
            assert (reply["code"], reply["detail"]["toolkit"]) == ("tool_denied", "filesystem")
        agent.heard.clear()
        reply = await agent.configure("filesystem", {"root_dir": "/data"})
        assert (reply["type"], reply["toolkit_name"], reply["status"]) == (
            "toolkit/configure/resp", "filesystem", "ok",
        )  # fmt: skip
        own, push, answer = agent.heard
        assert answer == reply
        assert (own["type"], own["kind"], own["req_id"], own["data"]["depth"]) == ("invoke/event", "log", "", 3)
        assert push["data"] == {
            "source": "toolkit",
            "toolkit": "filesystem",
            "status": "ok",
            "configured": True,
            "message": "Toolkit configured successfully",
        }
        listed = {one["name"]: one for one in (await agent.ask("tool/list/req"))["tools"]}
        assert listed["read_file"]["toolkit"] == listed["add"]["toolkit"] == "filesystem"
        assert listed["tell"]["toolkit"] is None
        assert listed["read_file"]["input_schema"]["required"] == ["path"]
        assert (await agent.call("read_file", {"path": "/a"}))["data"]["data"] == {"path": "/a", "thread": True}
        assert (await agent.call("add", {"a": 1, "b": 2}))["data"]["data"] == 3
        assert (await agent.toolkits())["filesystem"]["configured"] is True


async def test_the_host_keeps_one_instance_and_one_configuration_a_session() -> None:
    host = make_host(plugins=BOTH)
    async with agent_of(host) as one, agent_of(host) as other:
        await one.configure("filesystem", {"root_dir": "/data"})
        assert (await other.toolkits())["filesystem"]["configured"] is False
        assert (await other.call("read_file", {"path": "/a"}))["code"] == "tool_denied"
        assert (await one.call("read_file", {"path": "/a"}))["data"]["success"] is True
        assert [message["type"] for message in other.heard if message["type"] == "invoke/event"] == []


async def test_the_host_checks_a_configuration_before_the_plugin_sees_it() -> None:
    async with agent_of(make_host(plugins=BOTH)) as agent:
        reply = await agent.configure("filesystem", {"depth": "x"})
        assert (reply["code"], reply["detail"]["reason"]) == ("runtime_error", "schema_violation")
        assert len(reply["detail"]["errors"]) == 2
        reply = await agent.configure("filesystems", {})
        assert (reply["code"], reply["detail"]["toolkit_name"]) == ("runtime_error", "filesystems")


@pytest.mark.parametrize("root", ["/none", "/raise", "/refuse", "/quit", "/wrong"])
async def test_a_careless_plugin_still_gives_an_answer(root: str) -> None:
    async with agent_of(make_host(plugins=BOTH)) as agent:
        reply = await agent.configure("filesystem", {"root_dir": root})
        assert (reply["type"], reply["code"]) == ("error", "runtime_error")
        assert reply["detail"]["toolkit_name"] == "filesystem" or reply["detail"]["error_id"]
        assert "secret-of-the-plugin" not in json.dumps(reply)
        assert (await agent.toolkits())["filesystem"]["configured"] is False
        assert (await agent.configure("filesystem", {"root_dir": "/ok"}))["status"] == "ok"


async def test_a_plugin_that_breaks_tells_the_log_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    async with agent_of(make_host(plugins=BOTH)) as agent:
        reply = await agent.configure("filesystem", {"root_dir": "/leak", "key": "s3cret-value"})
        assert reply["code"] == "runtime_error"
    assert "s3cret-value" not in caplog.text
    assert "refused [secret]" in caplog.text


async def test_the_host_answers_for_the_toolkit_that_was_asked_for() -> None:
    async with agent_of(make_host(plugins=BOTH)) as agent:
        reply = await agent.configure("filesystem", {"root_dir": "/another"})
        assert (reply["toolkit_name"], reply["status"]) == ("filesystem", "ok")


async def test_b058_a_mask_keeps_a_plugins_secret() -> None:
    """pydantic/pydantic-core#851: a mask that is submitted back means "unchanged"."""
    async with agent_of(make_host(plugins=BOTH)) as agent:
        await agent.configure("filesystem", {"root_dir": "/another", "key": "k1"})
        reply = await agent.configure("filesystem", {"root_dir": "/another", "key": "**********"})
        assert reply["message"] == "k1"


async def test_a_plugins_own_status_passes() -> None:
    async with agent_of(make_host(plugins=BOTH)) as agent:
        reply = await agent.configure("filesystem", {"root_dir": "/status-error"})
        assert (reply["type"], reply["status"], reply["message"]) == (
            "toolkit/configure/resp", "error", "no such folder",
        )  # fmt: skip
        assert (await agent.toolkits())["filesystem"]["configured"] is False
        assert [one["type"] for one in agent.heard if one["type"] == "invoke/event"] == []
        assert (await agent.configure("filesystem", {"root_dir": "/partial"}))["status"] == "partial"
        assert (await agent.toolkits())["filesystem"]["configured"] is True
        assert (await agent.configure("filesystem", {"root_dir": "/status-error"}))["status"] == "error"
        assert (await agent.toolkits())["filesystem"]["configured"] is True


async def test_a_plugins_secret_needs_a_safe_way_too() -> None:
    async with agent_of(make_host(plugins=BOTH), secure=False) as agent:
        reply = await agent.configure("filesystem", {"root_dir": "/a", "key": "hunter2"})
        assert (reply["code"], reply["detail"]["reason"]) == ("unauthorized", "insecure_transport")
        assert (await agent.configure("filesystem", {"root_dir": "/a"}))["status"] == "ok"


async def test_a_plugins_tools_are_checked_called_and_searched_like_all() -> None:
    async with agent_of(make_host(echo, plugins=(entry(Files, "files", "tools"),))) as agent:
        assert await agent.tools() == ["echo", "read_file", "tell"]
        assert await agent.tools(query="file") == ["read_file"]
        assert await agent.tools(query="file", include_deferred=True) == ["read_file", "stat"]
        assert await agent.tools(filter_tags=["fs"]) == ["read_file"]
        assert await agent.tools(filter_kind="plugin") == ["read_file", "tell"]
        reply = await agent.call("read_file", {"path": 1, "mode": "x"})
        assert reply["code"] == "schema_violation"
        assert len(reply["detail"]["errors"]) == 2
        reply = await agent.call("read_file", {"path": "/missing"})
        assert (reply["code"], reply["retryable"]) == ("tool_error", True)
        assert "secret path" not in json.dumps(reply)
        reply = await agent.call("stat")
        assert (reply["code"], reply["message"], reply["detail"]["code"]) == ("tool_error", "not here", "enoent")
        assert (await agent.call("nothing"))["code"] == "unknown_tool"
        assert (await agent.call("echo", {"value": 1}))["data"]["data"] == 1


async def test_a_plugins_events_belong_to_the_call_that_they_come_from() -> None:
    async with agent_of(make_host(plugins=(entry(Files, "files", "tools"),))) as agent:
        ids = [
            await agent.send("tool/call/req", tool_name="tell", arguments={"who": who}, streaming=True) for who in "ab"
        ]
        open_ids = set(ids)
        while open_ids:
            message = await agent.receive()
            if message["type"] == "tool/call/resp":
                open_ids.remove(message["req_id"])
                assert message["data"]["data"] is None
        for id, who in zip(ids, "ab", strict=True):
            mine = [one for one in agent.heard if one["type"] == "tool/event" and one["req_id"] == id]
            assert [one["data"] for one in mine] == [{"pct": step, "message": who} for step in range(3)]
            assert [one["seq"] for one in mine] == [0, 1, 2]


class Asynchronous(ToolkitPlugin):
    """All of it asynchronous, and set up in the other way."""

    def __init__(self) -> None:
        self.mine = "made"

    async def setup(self, host: Any, config: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        self.region = config["region"]

    async def _list_toolkits(self, msg: ToolkitListRequest) -> list[ToolkitDefinition]:
        return [ToolkitDefinition(name="cloud", description=f"{self.mine} {self.region}", tools=[])]

    async def _configure_toolkit(self, msg: ToolkitConfigureRequest) -> dict[str, Any]:
        return {"type": "toolkit/configure/resp", "status": "ok", "message": msg.session_id}


async def test_a_plugin_may_be_asynchronous_and_made_without_arguments() -> None:
    async with agent_of(make_host(plugins=(entry(Asynchronous, region="eu"),))) as agent:
        assert (await agent.toolkits())["cloud"]["description"] == "made eu"
        reply = await agent.configure("cloud", {})
        assert (reply["toolkit_name"], reply["status"], reply["message"]) == ("cloud", "ok", agent.session_id)


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError()])
async def test_an_asynchronous_plugin_that_quits_ends_its_request_alone(error: BaseException) -> None:
    class Quitter(Asynchronous):
        async def _configure_toolkit(self, msg: ToolkitConfigureRequest) -> dict[str, Any]:
            raise error

    async with agent_of(make_host(plugins=(entry(Quitter),))) as agent:
        reply = await agent.configure("cloud", {})
        assert (reply["type"], reply["code"]) == ("error", "runtime_error")
        assert (await agent.ask("ping"))["type"] == "pong"


class TwoArguments(ToolkitPlugin):
    """Made as `cls(host, config)`."""

    def __init__(self, host_instance: Any, config: dict[str, Any]) -> None:
        super().__init__(host_instance, config)
        self.level = config["level"]

    def _list_toolkits(self, msg: ToolkitListRequest) -> ToolkitListResponse:
        text = f"{self.level} {self.config['type']} {self.config['priority']} {self.config['enabled']}"
        return ToolkitListResponse(toolkits=[ToolkitDefinition(name="two", description=text, tools=[])])

    def _configure_toolkit(self, msg: ToolkitConfigureRequest) -> ToolkitConfigureResponse:
        return ToolkitConfigureResponse()


async def test_a_plugin_gets_its_entry_as_configuration() -> None:
    host = make_host(plugins=(entry(TwoArguments, "two", level=9, priority=3),))
    async with connected(host) as agent:
        reply = await agent.handshake()
        caps = {one["capability"]: one["metadata"] for one in reply["accepted_caps"]}
        assert caps["toolkits"] == {"name": "two", "type": "toolkits", "priority": 3, "exclusive": False}
        assert caps["tools"]["name"] == "anykit"
        assert (await agent.toolkits())["two"]["description"] == "9 toolkits 3 True"


class Memory(A2EPlugin):
    """A plugin of another capability."""

    name = "memory"
    type = "memory"
    answers: Any = None
    log: list[str]

    def supported_messages(self) -> Mapping[str, type[BaseModel]]:
        from anykit.wire.a2e.messages.memory import MemoryInitRequest

        return {"memory/init/req": MemoryInitRequest}

    def handle(self, message: Any) -> Any:
        self.config["log"].append(self.config["name"])
        return self.config.get("reply")


def memory(name: str, log: list[str], reply: Any = None, **metadata: Any) -> dict[str, Any]:
    return entry(Memory, name, "memory", log=log, reply=reply, **metadata)


def stored(id: str) -> dict[str, Any]:
    return {"type": "memory/init/resp", "memory_id": id, "namespace": "n"}


async def test_a_plugin_makes_its_capability_available() -> None:
    log: list[str] = []
    async with connected(make_host(plugins=(memory("m", log, stored("7")),))) as agent:
        reply = await agent.handshake("tools", "memory")
        assert [one["capability"] for one in reply["accepted_caps"]] == ["tools", "memory"]
        reply = await agent.ask("memory/init/req")
        assert (reply["type"], reply["memory_id"]) == ("memory/init/resp", "7")
        reply = await agent.ask("memory/forget/req", memory_id="7")
        assert (reply["code"], reply["capability_name"]) == ("invalid_message", "memory")


async def test_all_plugins_run_and_the_first_reply_by_priority_is_sent() -> None:
    log: list[str] = []
    plugins = (
        memory("low", log, stored("low")),
        memory("silent", log, None, priority=9),
        memory("high", log, stored("high"), priority=5),
        memory("off", log, stored("off"), priority=99, enabled=False),
    )
    async with connected(make_host(plugins=plugins)) as agent:
        reply = await agent.handshake("memory")
        assert reply["accepted_caps"][0]["metadata"]["name"] == "silent"
        reply = await agent.ask("memory/init/req")
        assert reply["memory_id"] == "high"
        assert sorted(log) == ["high", "low", "silent"]
        assert (await agent.ask("ping"))["type"] == "pong"
        assert len([one for one in agent.heard if one["type"] == "memory/init/resp"]) == 1


async def test_an_exclusive_plugin_runs_alone_only_where_it_is_on_top() -> None:
    log: list[str] = []
    plugins = (memory("top", log, None, priority=2, exclusive=True), memory("below", log, stored("b")))
    async with agent_of(make_host(plugins=plugins), "memory") as agent:
        reply = await agent.ask("memory/init/req")
        assert reply["code"] == "runtime_error"
        assert log == ["top"]
    log.clear()
    plugins = (memory("top", log, stored("t"), priority=2), memory("below", log, stored("b"), exclusive=True))
    async with agent_of(make_host(plugins=plugins), "memory") as agent:
        assert (await agent.ask("memory/init/req"))["memory_id"] == "t"
        assert sorted(log) == ["below", "top"]


async def test_an_exclusive_toolkit_plugin_keeps_the_hosts_own_out() -> None:
    async with agent_of(make_host(plugins=(entry(Filesystem, exclusive=True),))) as agent:
        assert list(await agent.toolkits()) == ["filesystem"]
        assert (await agent.configure("notes", {"shelf": "a"}))["detail"]["toolkit_name"] == "notes"
    async with agent_of(make_host(plugins=(entry(Filesystem, exclusive=True, priority=-1),))) as agent:
        assert set(await agent.toolkits()) == {"notes", "filesystem"}


@pytest.mark.parametrize(
    ("cls", "reason"),
    [
        ("nowhere.to.be.Found", "nowhere"),
        ("anykit.servers.a2e.NoSuchClass", "NoSuchClass"),
        ("anykit.servers.a2e.ToolkitPlugin", "_configure_toolkit"),
        ("json.JSONDecoder", "supported_messages"),
        ("", "cls"),
    ],
)
async def test_a_plugin_that_cannot_be_loaded_costs_only_itself(cls: str, reason: str) -> None:
    host = make_host(plugins=(entry(cls, "bad"), *BOTH))
    (problem,) = host.problems
    assert problem.name == "bad"
    assert reason in problem.reason
    async with agent_of(host) as agent:
        assert set(await agent.toolkits()) == {"notes", "filesystem"}


async def test_a_capability_that_the_protocol_does_not_have_is_a_problem_and_an_alias_is_none() -> None:
    host = make_host(plugins=(entry(Memory, "odd", "telepathy"), entry(Memory, "aliased", "skills")))
    assert [problem.name for problem in host.problems] == ["odd"]
    assert "skill" in host.capabilities


class Unmakeable(Filesystem):
    def __init__(self) -> None:
        raise OSError("no disk")


async def test_a_plugin_that_cannot_be_made_costs_only_itself() -> None:
    async with agent_of(make_host(plugins=(entry(Unmakeable, "bad"), entry(Files, "files", "tools")))) as agent:
        assert set(await agent.toolkits()) == {"notes"}
        assert "read_file" in await agent.tools()


class Lists(ToolkitPlugin):
    def _list_toolkits(self, msg: ToolkitListRequest) -> ToolkitListResponse:
        raise RuntimeError("broken")

    def _configure_toolkit(self, msg: ToolkitConfigureRequest) -> ToolkitConfigureResponse:
        raise RuntimeError("broken")


async def test_a_list_that_breaks_is_an_error_where_there_is_no_other() -> None:
    async with agent_of(make_host(plugins=(entry(Lists),))) as agent:
        assert list(await agent.toolkits()) == ["notes"]
    async with agent_of(make_host(plugins=(entry(Lists, exclusive=True),))) as agent:
        assert (await agent.ask("toolkit/list/req"))["code"] == "runtime_error"


async def test_events_may_come_from_any_thread_at_any_time() -> None:
    made: list[ToolkitPlugin] = []

    class Talks(Filesystem):
        def setup(self, host: Any, config: dict[str, Any]) -> object:
            made.append(self)
            return super().setup(host, config)

    async with agent_of(make_host(plugins=(entry(Talks),))) as agent:
        await agent.toolkits()
        plugin = made[0]
        event = A2EEvent(kind="status", data={"n": 1})
        for given in (event, event, {"kind": "status", "data": {"n": 2}}, "nonsense", {"kind": 7}):
            thread = threading.Thread(target=plugin.emit_event, args=(given,))
            thread.start()
            await asyncio.to_thread(thread.join)
        plugin.emit_event(A2EEvent(kind="status", data={"n": 3}))
        pushes = [await agent.receive() for _ in range(4)]
        assert [one["data"]["n"] for one in pushes] == [1, 1, 2, 3]
        assert len({one["id"] for one in pushes}) >= 3
        assert [one["seq"] for one in pushes] == [0, 1, 2, 3]
        assert (await agent.ask("ping"))["type"] == "pong"


async def test_plugins_are_torn_down_with_their_session() -> None:
    gone = threading.Event()

    class Leaves(Filesystem):
        def teardown(self) -> object:
            gone.set()
            raise RuntimeError("too late")

    async with agent_of(make_host(plugins=(entry(Leaves),))) as agent:
        await agent.toolkits()
        assert not gone.is_set()
    assert await asyncio.to_thread(gone.wait, WAIT)


class Raw(A2EPlugin):
    """Tools by hand, as the cookbooks write them."""

    name = "raw"
    type = "tools"

    def supported_messages(self) -> Mapping[str, type[BaseModel]]:
        return {"tool/list/req": ToolListRequest, "tool/call/req": ToolCallRequest}

    def handle(self, message: Any) -> Any:
        if isinstance(message, ToolListRequest):
            return ToolListResponse(req_id=message.id, tools=[ToolDefinition(name="ping_host", description="Pings")])
        if isinstance(message, ToolCallRequest):
            data = ToolResult(success=True, tool_name=message.tool_name, data=message.correlation_id, duration_ms=0)
            return ToolCallResponse(req_id="wrong", data=data)
        return None


async def test_a_plugin_may_answer_the_messages_itself() -> None:
    async with agent_of(make_host(add, plugins=(entry(Raw, "raw", "tools"),))) as agent:
        assert await agent.tools() == ["add", "ping_host"]
        id = await agent.send("tool/call/req", tool_name="ping_host", arguments={}, correlation_id="turn-1")
        reply = await agent.reply_to(id)
        assert (reply["type"], reply["data"]["data"]) == ("tool/call/resp", "turn-1")


class Database(A2EPlugin):
    """A toolkit and its tools in one plugin, as the cookbook has it."""

    name = "db_toolkit"
    type = "toolkits"
    priority = 5

    def setup(self, host: Any, config: dict[str, Any]) -> None:
        super().setup(host, config)
        self._event_callback: Any = None
        self._dsn: dict[str, Any] = {}

    def supported_messages(self) -> Mapping[str, type[BaseModel]]:
        return {
            "toolkit/list/req": ToolkitListRequest,
            "toolkit/configure/req": ToolkitConfigureRequest,
            "tool/list/req": ToolListRequest,
            "tool/call/req": ToolCallRequest,
        }

    def set_event_callback(self, callback: Any) -> None:
        self._event_callback = callback

    def handle(self, msg: Any) -> Any:
        if isinstance(msg, ToolkitListRequest):
            kit = ToolkitDefinition(name="postgres", tools=["db_query"], schema={"type": "object"})
            return ToolkitListResponse(req_id=msg.id, toolkits=[kit])
        if isinstance(msg, ToolkitConfigureRequest):
            self._dsn[msg.session_id] = msg.config["dsn"]
            return ToolkitConfigureResponse(req_id=msg.id, toolkit_name=msg.toolkit_name, status="ok")
        if isinstance(msg, ToolListRequest):
            return ToolListResponse(req_id=msg.id, tools=[ToolDefinition(name="db_query", description="Queries")])
        if isinstance(msg, ToolCallRequest):
            self._event_callback(ToolEvent(kind="log", req_id=msg.id, data={"message": "asked"}, seq=17))
            data = {"success": True, "tool_name": "db_query", "data": self._dsn[msg.session_id], "duration_ms": 0}
            return {"type": "tool/call/resp", "req_id": msg.id, "data": data}
        return None


async def test_one_plugin_may_serve_a_toolkit_and_its_tools() -> None:
    async with connected(make_host(add, plugins=(entry(Database, "db", metadata="own"),))) as agent:
        reply = await agent.handshake()
        caps = {one["capability"]: one["metadata"] for one in reply["accepted_caps"]}
        assert (caps["toolkits"]["name"], caps["toolkits"]["priority"]) == ("db", 5)
        assert await agent.tools() == ["add"]
        assert (await agent.call("db_query"))["code"] == "tool_denied"
        await agent.configure("postgres", {"dsn": "mine"})
        assert await agent.tools() == ["add", "db_query"]
        reply = await agent.call("db_query", streaming=True)
        assert reply["data"]["data"] == "mine"
        event = next(one for one in agent.heard if one["type"] == "tool/event")
        assert (event["req_id"], event["seq"], event["data"]) == (reply["req_id"], 0, {"message": "asked"})


async def test_a_plugins_call_has_a_deadline() -> None:
    gate = threading.Event()

    class Slow(Files):
        def _execute_tool(self, name: str, arguments: dict[str, Any]) -> Any:
            gate.wait(WAIT)

    async with agent_of(make_host(plugins=(entry(Slow, "slow", "tools"),))) as agent:
        reply = await agent.call("read_file", {"path": "/"}, timeout=0)
        assert (reply["code"], reply["retryable"]) == ("timeout", True)
        gate.set()


def test_handlers_dispatch_as_the_page_says() -> None:
    plugin = Filesystem(None, {})
    assert isinstance(plugin.handle(ToolkitListRequest()), ToolkitListResponse)
    request = ToolkitConfigureRequest(toolkit_name="filesystem", config={"root_dir": "/", "depth": 1})
    assert isinstance(plugin.handle(request), ToolkitConfigureResponse)
    refused = plugin.handle(ToolListRequest(id="q"))
    assert isinstance(refused, A2EError)
    assert (refused.code, refused.req_id) == ("invalid_message", "q")
    assert plugin.name == "toolkit_plugin"
    with pytest.raises(TypeError, match="abstract"):
        ToolkitPlugin()  # pyright: ignore[reportAbstractUsage]
    heard: list[Any] = []
    plugin.set_push_callback(heard.append)
    plugin.emit_event("e")
    assert heard == ["e"]


async def test_a_host_serves_plugins_alone() -> None:
    bench = make_bench(add)
    async with agent_of(A2EHost(bench, plugins=[Filesystem, Files])) as agent:
        assert "filesystem" in await agent.toolkits()
        assert await agent.tools() == ["tell"]
