"""The provider in memory."""

from __future__ import annotations

import pytest

from anykit.capabilities import (
    BlobPart,
    CapabilityContext,
    Completing,
    Connected,
    InvalidInput,
    InvocableRequest,
    Subscribable,
    Templated,
    TextPart,
    Unavailable,
)
from anykit.testing import MemoryProvider

pytestmark = pytest.mark.anyio

CONTEXT = CapabilityContext()


async def test_lists_come_in_pages_with_cursors_of_their_own() -> None:
    provider = MemoryProvider(page_size=2)
    await provider.start()
    for number in range(3):
        provider.add_resource(f"memo://{number}", "x")
    first = await provider.list_resources()
    assert ([one.id for one in first.items], first.next_cursor) == (["memo://0", "memo://1"], "2")
    rest = await provider.list_resources(first.next_cursor)
    assert ([one.id for one in rest.items], rest.next_cursor) == (["memo://2"], None)
    for cursor in ("3", "-1", "x"):
        with pytest.raises(InvalidInput, match="no cursor"):
            await provider.list_resources(cursor)


async def test_text_bytes_and_families_are_read() -> None:
    provider = MemoryProvider()
    await provider.start()
    provider.add_resource("memo://text", "t", media_type="text/markdown")
    provider.add_resource("memo://bytes", b"\x00")
    provider.add_template("memo://{a}/{b}", lambda values: values["a"] + values["b"])
    assert (await provider.read_resource("memo://text", CONTEXT)).parts == (
        TextPart(text="t", media_type="text/markdown"),
    )
    assert (await provider.read_resource("memo://bytes", CONTEXT)).parts == (BlobPart(data=b"\x00"),)
    assert (await provider.read_resource("memo://x/y", CONTEXT)).parts == (TextPart(text="xy"),)
    assert isinstance(provider, Templated)
    assert [one.uri_template for one in (await provider.list_templates()).items] == ["memo://{a}/{b}"]


async def test_prompts_need_their_arguments() -> None:
    provider = MemoryProvider()
    await provider.start()
    provider.add_prompt("p", "{a} and {b} and {a}")
    with pytest.raises(InvalidInput) as caught:
        await provider.get_prompt("p", {"a": 1}, CONTEXT)
    assert caught.value.errors == [{"path": "/b", "message": "is required"}]
    filled = await provider.get_prompt("p", {"a": 1, "b": 2}, CONTEXT)
    assert filled.messages[0].content == (TextPart(text="1 and 2 and 1"),)


async def test_while_it_is_not_ready_nothing_can_be_had() -> None:
    provider = MemoryProvider()
    assert isinstance(provider, Connected)
    one = provider.add_tool("t")
    provider.add_resource("memo://1", "x")
    request = InvocableRequest(input={}, call_id="1")
    seen: list[str] = []
    unsubscribe = provider.subscribe(lambda: seen.append(provider.state.status))
    with pytest.raises(Unavailable, match="not started"):
        await one.invoke(request, CONTEXT)
    await provider.start()
    await one.invoke(request, CONTEXT)
    provider.go("failed", "pulled the plug")
    for work in (one.invoke(request, CONTEXT), provider.list_resources(), provider.read_resource("memo://1", CONTEXT)):
        with pytest.raises(Unavailable, match="pulled the plug"):
            await work
    provider.remove_tool("t")
    unsubscribe()
    await provider.close()
    assert seen == ["ready", "failed", "failed"]
    assert one.calls == [request]


async def test_watchers_of_a_resource_are_told_and_arguments_completed() -> None:
    provider = MemoryProvider()
    await provider.start()
    assert isinstance(provider, Subscribable)
    assert isinstance(provider, Completing)
    seen: list[str] = []
    unsubscribe = await provider.subscribe_resource("memo://1", seen.append)
    provider.add_resource("memo://1", "x")
    provider.add_resource("memo://2", "y")
    unsubscribe()
    provider.add_resource("memo://1", "z")
    assert seen == ["memo://1"]
    assert await provider.complete("p", "a", "memo://", CONTEXT) == (["memo://1", "memo://2"], False)
