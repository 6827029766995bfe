"""Our host against the shipped transcripts, and our client against our host."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pydantic
import pytest

from anykit import CapabilityContext, Toolkit, Workbench, tool
from anykit.a2e import A2EClient, A2EEvent, A2EHost, A2ERequestError, A2ESource
from anykit.capabilities import (
    BlobPart,
    Event,
    ImagePart,
    InvalidInput,
    InvocableRequest,
    InvocableResult,
    Progress,
    TextPart,
)
from anykit.capabilities import (
    CapabilityContext as Context,
)
from anykit.testing import play, shipped_talks
from in_process import InProcess, in_process

pytestmark = pytest.mark.anyio

TALKS = shipped_talks()
ODD: dict[str, Any] = {
    "t": "a\u2028b\u2029c\u000bd\ff",
    "u": "line1\nline2\r\nline3",
    "big": 2**70,
    "empty": ["", 0, None, False, {}],
}


class Vault(Toolkit):
    """Keeps a word."""

    class Config(pydantic.BaseModel):
        word: pydantic.SecretStr
        limit: int = 3

    @tool
    async def say(self) -> str:
        """Says the word."""
        return self.config.word.get_secret_value()


@tool
async def echo(value: dict[str, Any]) -> dict[str, Any]:
    """Echoes."""
    return value


@tool
async def fail(text: str) -> str:
    """Fails."""
    raise ValueError(text)


@tool
async def slow(context: CapabilityContext) -> str:
    """Takes its time."""
    context.emit(Progress(1, 2, "half"))
    await asyncio.Event().wait()
    return "never"


@tool
async def picture() -> Any:
    """Shows."""
    return [TextPart(text="look"), ImagePart(data=b"png"), BlobPart(data=b"\x00\x01", name="a.bin")]


@pytest.fixture
async def host() -> AsyncGenerator[InProcess]:
    async with in_process(Vault, echo, fail, slow, picture) as made:
        yield made


@pytest.mark.parametrize("name", TALKS)
async def test_our_host_keeps_the_shipped_talks(host: InProcess, name: str) -> None:
    transport = await host.connect()
    await play(TALKS[name], transport)
    await transport.close()


async def test_the_main_job_works_end_to_end(host: InProcess) -> None:
    async with A2EClient(host.connect) as client:
        [toolkit] = await client.toolkits.list()
        assert (toolkit.name, toolkit.configured, toolkit.tools) == ("vault", False, ["say"])
        assert "say" not in [one.name for one in await client.tools.list()]
        with pytest.raises(A2ERequestError) as denied:
            await client.tools.call("say")
        assert denied.value.code == "tool_denied"
        with pytest.raises(InvalidInput) as invalid:
            await client.toolkits.configure("vault", {"limit": "many"})
        assert sorted(fault["path"] for fault in invalid.value.errors) == ["/limit", "/word"]
        assert (await client.toolkits.configure("vault", {"word": "xyzzy-word"})).status == "ok"
        with anyio.fail_after(5):
            push = await anext(client.events)
        assert isinstance(push, A2EEvent)
        assert push.type == "invoke/event"
        assert (push.data["toolkit"], push.data["configured"]) == ("vault", True)
        said = next(one for one in await client.tools.list() if one.name == "say")
        assert said.toolkit == "vault"
        assert (await client.tools.call("say")).data == "xyzzy-word"


async def test_two_sessions_never_meet(host: InProcess) -> None:
    async with A2EClient(host.connect) as one, A2EClient(host.connect) as two:
        await one.toolkits.configure("vault", {"word": "first"})
        with pytest.raises(A2ERequestError):
            await two.tools.call("say")
        await two.toolkits.configure("vault", {"word": "second"})
        assert [(await client.tools.call("say")).data for client in (one, two)] == ["first", "second"]
        assert one.session_id != two.session_id


async def test_b068_odd_characters_and_numbers_travel_unchanged(host: InProcess) -> None:
    """anthropics/claude-agent-sdk-typescript#137: U+2028 and line ends inside strings break the framing."""
    async with A2EClient(host.connect) as client:
        assert (await client.tools.call("echo", {"value": ODD})).data == ODD


async def test_a_slow_tool_ends_by_its_time_and_its_events_come_first(host: InProcess) -> None:
    heard: list[A2EEvent] = []
    async with A2EClient(host.connect) as client:
        with anyio.fail_after(6), pytest.raises(A2ERequestError) as caught:
            await client.tools.call("slow", timeout=1, on_event=heard.append)
    assert caught.value.code == "timeout"
    assert [(one.kind, one.seq, one.data["message"]) for one in heard] == [("progress", 0, "half")]


async def test_through_a_source_a_result_is_the_same(host: InProcess) -> None:
    source = A2ESource(host.connect, toolkits={"vault": {"word": "third"}})
    changed = asyncio.Event()
    source.subscribe(changed.set)
    await source.start()
    try:
        with anyio.fail_after(5):
            while source.state.status != "ready":
                changed.clear()
                await changed.wait()
        tools = {one.spec.name: one for one in source.invocables()}
        assert set(tools) == {"say", "echo", "fail", "slow", "picture"}
        echoed = await tools["echo"].invoke(InvocableRequest(input={"value": ODD}, call_id="1"), Context())
        assert isinstance(echoed, InvocableResult)
        assert echoed.structured == ODD
        said = await tools["say"].invoke(InvocableRequest(input={}, call_id="2"), Context())
        assert isinstance(said, InvocableResult)
        assert said.text == "third"
        heard: list[Event] = []
        shown = await tools["picture"].invoke(InvocableRequest(input={}, call_id="3"), Context(emit=heard.append))
        assert isinstance(shown, InvocableResult)
        assert ImagePart(data=b"png") in shown.content
        assert BlobPart(data=b"\x00\x01", name="a.bin") in shown.content
        assert "look" in (shown.text or "")
        schema = tools["echo"].spec.input_schema
        assert schema["required"] == ["value"]
    finally:
        await source.close()


async def test_a_client_takes_a_host_of_its_own_process_as_its_target() -> None:
    async with Workbench(echo, Vault) as bench:
        host = A2EHost(bench)
        async with A2EClient(host) as one, A2EClient(host) as two:
            await one.toolkits.configure("vault", {"word": "open sesame"})
            assert (await one.tools.call("say")).data == "open sesame"
            with pytest.raises(A2ERequestError, match="not configured"):
                await two.tools.call("say")
            assert (await two.tools.call("echo", {"value": ODD})).data == ODD
        async with A2EClient(host) as again:
            assert "echo" in [each.name for each in await again.tools.list()]
