"""The official SDK as the client, over HTTP and stdio, in both eras: all that a client does, once."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any, TypeAlias, cast

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.context import ClientRequestContext
from mcp_types import (
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitRequestURLParams,
    ElicitResult,
    LoggingMessageNotificationParams,
    PromptReference,
    TextContent,
    TextResourceContents,
)

from servers.mcp.peers import LEGACY, MODERN, OFFERED, Fields, Http, Notes, add, http
from servers.mcp.process import FILE

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

COMMAND = [sys.executable, "-m", "anykit", "serve", FILE]
Asked: TypeAlias = list[ElicitRequestParams]
ERAS = {"auto": MODERN, "legacy": LEGACY, MODERN: MODERN}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A server over HTTP, in a process of its own, for all tests here."""
    folder = tmp_path_factory.mktemp("served")
    process = subprocess.Popen(
        [*COMMAND, "--port", "0"],
        cwd=folder,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "ANYKIT_DATA_DIR": str(folder / "data")},
    )
    try:
        assert process.stderr is not None
        [listening] = itertools.islice((line for line in process.stderr if "listening on" in line), 1)
        yield f"{listening.split()[-1]}/mcp"
    finally:
        process.terminate()
        process.communicate(timeout=10)
    assert process.returncode == 0


@pytest.fixture(params=["http", "stdio"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "http":
        return request.getfixturevalue("url")
    return StdioServerParameters(
        command=COMMAND[0],
        args=[*COMMAND[1:], "--stdio", "mcp"],
        cwd=tmp_path,
        env={"ANYKIT_DATA_DIR": str(tmp_path / "data")},
    )


@pytest.fixture(params=list(ERAS))
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


class Person:
    """Answers what is asked, and remembers what was told."""

    def __init__(self, action: Any = "accept") -> None:
        self.action = action
        self.asked: Asked = []
        self.logs: list[LoggingMessageNotificationParams] = []
        self.steps: list[tuple[float, float | None, str | None]] = []

    async def answer(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params)
        return ElicitResult(action=self.action, content={"amount": 2} if self.action == "accept" else None)

    async def log(self, params: LoggingMessageNotificationParams) -> None:
        self.logs.append(params)

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.steps.append((progress, total, message))


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture
async def client(target: Any, mode: str, person: Person) -> AsyncGenerator[Client]:
    async with Client(
        target,
        mode=cast(Any, mode),
        elicitation_callback=person.answer,
        logging_callback=person.log,
        log_level="info",
        read_timeout_seconds=20,
    ) as client:
        yield client


def text_of(result: Any) -> str:
    [block] = result.content
    assert isinstance(block, TextContent)
    return block.text


async def test_everything_once(client: Client, mode: str, person: Person, target: Any) -> None:
    assert client.protocol_version == ERAS[mode]
    assert client.server_info is None or client.server_info.name == "anykit"
    assert client.server_info is not None or mode == MODERN  # the SDK asks nothing then

    listed = {one.name: one for one in (await client.list_tools()).tools}
    assert set(listed) >= {"add", "echo", "noisy", "order", "narrate"}
    assert listed["add"].input_schema["required"] == ["a", "b"]

    result = await client.call_tool("add", {"a": 2, "b": 3})
    assert (text_of(result), result.structured_content, result.is_error) == ("5", {"result": 5}, False)

    wrong = await client.call_tool("add", {"a": "two"})
    assert wrong.is_error
    assert "/a" in text_of(wrong)
    assert "b" in text_of(wrong)

    with pytest.raises(MCPError) as unknown:
        await client.call_tool("nothing", {})
    assert unknown.value.error.code == -32602

    value: Fields = {"id": 9007199254740993, "text": "a\u2028b 😀", "none": None, "deep": [[{}]]}
    assert (await client.call_tool("echo", {"value": value})).structured_content == value

    told = await client.call_tool("narrate", {}, progress_callback=person.progress)
    assert text_of(told) == "done"
    assert person.steps == [(1.0, 2.0, "half")]
    assert [(one.level, one.logger, one.data) for one in person.logs] == [("info", "narrate", "did half")]

    assert [str(one.uri) for one in (await client.list_resources()).resources] == ["test://text"]
    [contents] = (await client.read_resource("test://text")).contents
    assert isinstance(contents, TextResourceContents)
    assert contents.text == "text"
    with pytest.raises(MCPError) as missing:
        await client.read_resource("test://nothing")
    assert missing.value.error.code in (-32602, -32002)

    assert (await client.list_prompts()).prompts == []
    with pytest.raises(MCPError) as unknown:
        await client.complete(PromptReference(name="nothing"), {"name": "x", "value": ""})
    assert unknown.value.error.code == -32602

    ordered = await client.call_tool("order", {"item": "tea"})
    assert text_of(ordered) == "2 x tea"
    [question] = person.asked
    assert isinstance(question, ElicitRequestFormParams)
    assert question.message == "How many tea?"

    many = await asyncio.gather(*(client.call_tool("add", {"a": index, "b": 0}) for index in range(30)))
    assert [text_of(one) for one in many] == [str(index) for index in range(30)]


async def test_a_refused_question_is_told_to_the_tool(target: Any, mode: str) -> None:
    person = Person("decline")
    async with Client(target, mode=cast(Any, mode), elicitation_callback=person.answer) as client:
        assert text_of(await client.call_tool("order", {"item": "tea"})) == "nothing ordered"


async def test_b026_a_call_that_is_given_up_is_cancelled_in_the_tool(client: Client, tmp_path: Path) -> None:
    """modelcontextprotocol/python-sdk#1152."""
    marker = tmp_path / "marker"
    started = asyncio.Event()

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        started.set()

    calling = asyncio.create_task(client.call_tool("wait", {"marker": str(marker)}, progress_callback=progress))
    async with asyncio.timeout(5):
        await started.wait()
    calling.cancel()
    async with asyncio.timeout(5):
        while not marker.exists():  # noqa: ASYNC110 - a file of another process
            await asyncio.sleep(0.02)
    assert text_of(await client.call_tool("add", {"a": 1, "b": 1})) == "2"


# changes and toolkits, where the test holds the workbench


async def opened(server: Http, mode: str, person: Person, **options: Any) -> Client:
    return Client(server.url, mode=cast(Any, mode), elicitation_callback=person.answer, **options)


async def test_the_sdk_hears_of_changes_in_the_new_era(person: Person) -> None:
    async with http(*OFFERED) as server, await opened(server, "auto", person) as client:
        before = len((await client.list_tools()).tools)
        async with client.listen(tools_list_changed=True) as changes:
            await server.bench.add(_late())
            async with asyncio.timeout(5):
                event = await anext(aiter(changes))
        assert type(event).__name__ == "ToolsListChanged"
        assert len((await client.list_tools()).tools) == before + 1


async def test_the_sdk_hears_of_changes_in_the_old_era(person: Person) -> None:
    heard: asyncio.Queue[Any] = asyncio.Queue()
    async with (
        http(*OFFERED) as server,
        await opened(server, "legacy", person, message_handler=heard.put) as client,
    ):
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.tools.list_changed is True
        await client.list_tools()
        await server.bench.add(_late())
        async with asyncio.timeout(5):
            while (await heard.get()).method != "notifications/tools/list_changed":
                pass


def _late() -> Any:
    from anykit import tool

    return tool(name="late")(add.function)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_sdk_opens_the_page_on_which_a_toolkit_is_configured(mode: str) -> None:
    async with http(Notes) as server:

        async def open_page(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
            assert isinstance(params, ElicitRequestURLParams)
            async with server.client.post(params.url, data={"folder": "f"}) as page:
                assert page.status == 200
            return ElicitResult(action="accept")

        async with Client(server.url, mode=cast(Any, mode), elicitation_callback=open_page) as client:
            assert (await client.list_tools()).tools == []
            assert text_of(await client.call_tool("list_notes", {})) == "notes in f"
            assert [one.name for one in (await client.list_tools(cache_mode="refresh")).tools] == ["list_notes"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_two_sdks_at_once_share_nothing_that_is_theirs(mode: str, person: Person) -> None:
    async with http(*OFFERED) as server:
        async with await opened(server, mode, person) as one, await opened(server, mode, person) as other:
            results = await asyncio.gather(
                *(client.call_tool("echo", {"value": str(index)}) for index, client in enumerate([one, other] * 10))
            )
            assert [result.structured_content for result in results] == [{"result": str(index)} for index in range(20)]
