"""Clients are told what changes, each in the words of its era."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from anykit import Workbench, prompt, resource, tool
from anykit.servers.mcp import Limits
from anykit.testing import MemoryProvider
from servers.mcp.offering import Offered
from servers.mcp.peers import (
    WAIT,
    Fields,
    Http,
    Lines,
    Notes,
    Stream,
    add,
    echo,
    envelope,
    fixed,
    http,
    lines,
    modern_headers,
    notification,
    request,
    shaken,
    until,
)

pytestmark = pytest.mark.anyio

ID = "io.modelcontextprotocol/subscriptionId"
ALL: Fields = {"toolsListChanged": True, "resourcesListChanged": True, "promptsListChanged": True}


@tool
def late() -> str:
    """Comes late."""
    return "late"


@resource("test://late")
def late_text() -> str:
    """Comes late."""
    return "late"


@prompt
def late_prompt() -> str:
    """Comes late."""
    return "late"


CHANGES = [("tools", late), ("resources", late_text), ("prompts", late_prompt)]


def listen(id: Any, **wanted: Any) -> Fields:
    return request(id, "subscriptions/listen", notifications=wanted, _meta=envelope())


@asynccontextmanager
async def listening(client: Http, id: Any = 1, **wanted: Any) -> AsyncGenerator[Stream]:
    """A stream of changes that has been acknowledged."""
    headers = modern_headers("subscriptions/listen", {})
    async with client.stream("POST", listen(id, **wanted), headers=headers) as stream:
        told = await stream.message()
        assert told["method"] == "notifications/subscriptions/acknowledged"
        assert told["params"]["_meta"] == {ID: id}
        yield stream


async def quiet(client: Lines) -> None:
    """A while in which whatever is told comes in."""
    await asyncio.sleep(0.2)
    await client.result("ping")


# lists, in the old era


@pytest.mark.parametrize(("kind", "one"), CHANGES)
async def test_a_list_that_changed_is_told_once_over_lines(kind: str, one: Any) -> None:
    async with shaken(add) as (client, bench):
        view = await bench.add(one)
        assert await client.hear() == notification(f"notifications/{kind}/list_changed")
        await bench.remove(view.name)
        assert await client.hear() == notification(f"notifications/{kind}/list_changed")
        await quiet(client)
        assert [one.get("method") for one in client.heard[-1:]] == [None]


@pytest.mark.parametrize(("kind", "one"), CHANGES)
async def test_a_list_that_changed_is_told_on_the_stream_of_a_session(kind: str, one: Any) -> None:
    async with http(add) as client:
        told = await client.shake_hands()
        assert told["capabilities"][kind]["listChanged"] is True
        async with client.stream("GET") as stream:
            await client.bench.add(one)
            assert (await stream.message()) == notification(f"notifications/{kind}/list_changed")


async def test_b063_a_list_is_right_once_its_change_is_told() -> None:
    """ComposioHQ/composio#2455."""
    async with shaken(add) as (client, bench):
        view = await bench.add(echo)
        await client.hear()
        await bench.remove(view.name)
        await client.hear()
        listed = await client.result("tools/list")
        assert [one["name"] for one in listed["tools"]] == ["add"]
        called = await client.ask(request(1, "tools/call", name="echo", arguments={"value": 1}))
        assert called["error"]["code"] == -32602


async def test_many_changes_at_once_are_one_piece_of_news() -> None:
    async with shaken(add) as (client, bench):
        for index in range(20):
            bench.register(tool(name=f"late_{index}")(late.function))
        assert (await client.hear())["method"] == "notifications/tools/list_changed"
        await quiet(client)
        assert len(client.notifications("notifications/tools/list_changed")) == 1
        assert len((await client.result("tools/list"))["tools"]) == 21


async def test_before_the_handshake_is_over_nothing_is_told() -> None:
    async with Workbench(add) as bench, lines(bench) as client:
        await client.ask(request(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=INFO))
        bench.register(echo)
        await quiet(client)
        assert [one for one in client.heard if "method" in one] == []
        await client.say(notification("notifications/initialized"))
        await client.result("ping")
        bench.register(late)
        assert (await client.hear())["method"] == "notifications/tools/list_changed"


INFO = {"name": "test", "version": "1"}


async def test_configuring_a_toolkit_changes_what_its_caller_lists() -> None:
    async with http(Notes) as client:
        await client.shake_hands()
        mine = client.bench.session(principal="local", face="mcp", id=client.session)
        async with client.stream("GET") as stream:
            assert (await client.ask("tools/list")).json["result"]["tools"] == []
            await mine.configure("notes", {"folder": "mine"})
            heard = [(await stream.message())["method"] for _ in range(2)]
            assert heard == ["notifications/tools/list_changed", "notifications/resources/list_changed"]
            [listed] = (await client.ask("tools/list")).json["result"]["tools"]
            assert listed["name"] == "list_notes"


async def test_what_a_neighbour_configures_is_no_news() -> None:
    async with http(Notes) as client:
        await client.shake_hands()
        neighbour = client.bench.session(principal="local", face="mcp", id="neighbour")
        async with client.stream("GET") as stream:
            await neighbour.configure("notes", {"folder": "theirs"})
            client.bench.register(late)
            assert (await stream.message())["method"] == "notifications/tools/list_changed"
            listed = (await client.ask("tools/list")).json["result"]["tools"]
            assert [one["name"] for one in listed] == ["late"]


# lists, in the new era


@pytest.mark.parametrize(("kind", "one"), CHANGES)
async def test_a_stream_of_changes_tells_what_was_asked_for(kind: str, one: Any) -> None:
    async with http(add) as client:
        async with listening(client, "s", **{f"{kind}ListChanged": True}) as stream:
            for name, other in CHANGES:
                if name != kind:
                    await client.bench.add(other)
            await client.bench.add(one)
            told = await stream.message()
            assert told["method"] == f"notifications/{kind}/list_changed"
            assert told["params"]["_meta"] == {ID: "s"}


async def test_over_lines_streams_of_changes_are_told_apart_by_their_ids() -> None:
    async with Workbench(add) as bench, lines(bench) as client:
        for id in (1, "1"):
            await client.say(listen(id, toolsListChanged=True))
            told = await client.hear()
            assert told["method"] == "notifications/subscriptions/acknowledged"
            assert told["params"] == {"notifications": {"toolsListChanged": True}, "_meta": {ID: id}}
        bench.register(echo)
        heard = [await client.hear() for _ in range(2)]
        assert {repr(one["params"]["_meta"][ID]) for one in heard} == {"1", "'1'"}
        await client.say(notification("notifications/cancelled", requestId=1))
        assert (await client.ask(request(2, "tools/list", _meta=envelope())))["result"]["tools"]
        bench.register(late)
        assert (await client.hear())["params"]["_meta"] == {ID: "1"}


async def test_a_stream_of_changes_that_wants_nothing_is_acknowledged() -> None:
    async with http(add) as client, listening(client) as stream:
        assert stream.answer.status == 200


async def test_more_streams_of_changes_than_the_limit_are_refused() -> None:
    async with http(add, limits=Limits(listeners=1)) as client:
        async with listening(client, **ALL):
            headers = modern_headers("subscriptions/listen", {})
            refused = await client.post(listen(2, **ALL), headers=headers)
            assert refused.last["error"]["data"] == {"retryable": True}
        statuses: list[str] = []
        async with asyncio.timeout(WAIT):
            while statuses[-1:] != ["notifications/subscriptions/acknowledged"]:
                async with client.stream("POST", listen(3, **ALL), headers=headers) as stream:
                    told = await stream.message() if stream.answer.content_type == "text/event-stream" else {}
                    statuses.append(told.get("method", "refused"))


async def test_the_end_of_the_host_ends_a_stream_of_changes_in_good_order() -> None:
    async with http(add) as client, listening(client, **ALL) as stream:
        assert client.server is not None
        client.server.stop()
        ended = await stream.message()
        assert (ended["id"], ended["result"]["_meta"][ID]) == (1, 1)
        assert await stream.event() == {}


# one resource


def memory() -> MemoryProvider:
    provider = MemoryProvider()
    provider.go("ready")
    provider.add_resource("memo://1", "first")
    provider.add_resource("memo://2", "second")
    return provider


async def test_a_resource_is_watched_until_it_is_not_any_more() -> None:
    provider = memory()
    async with lines(Offered(provider)) as client:
        assert (await client.shake_hands())["capabilities"]["resources"]["subscribe"] is True
        for _ in range(2):
            assert await client.result("resources/subscribe", uri="memo://1") == {}
        provider.add_resource("memo://2", "not watched")
        provider.add_resource("memo://1", "changed")
        told = await client.hear()
        while told["method"] != "notifications/resources/updated":
            told = await client.hear()
        assert told["params"] == {"uri": "memo://1"}
        read = await client.result("resources/read", uri="memo://1")
        assert read["contents"][0]["text"] == "changed"
        assert await client.result("resources/unsubscribe", uri="memo://1") == {}
        before = len(client.notifications("notifications/resources/updated"))
        provider.add_resource("memo://1", "again")
        await quiet(client)
        assert len(client.notifications("notifications/resources/updated")) == before == 1


async def test_a_resource_that_is_not_there_cannot_be_watched() -> None:
    async with lines(Offered(memory()), limits=Limits(watched=1)) as client:
        await client.shake_hands()
        refused = await client.ask(request(1, "resources/subscribe", uri="memo://9"))
        assert refused["error"]["code"] == -32002
        refused = await client.ask(request(2, "resources/subscribe", uri="anykit://toolkits/nothing"))
        assert refused["error"]["code"] == -32002
        await client.result("resources/subscribe", uri="memo://1")
        full = await client.ask(request(3, "resources/subscribe", uri="memo://2"))
        assert full["error"]["code"] == -32602
        assert await client.result("resources/unsubscribe", uri="memo://7") == {}


async def test_a_client_that_goes_watches_nothing_any_more() -> None:
    provider = memory()
    async with lines(Offered(provider)) as client:
        await client.shake_hands()
        await client.result("resources/subscribe", uri="memo://1")
        assert provider._watchers["memo://1"]  # pyright: ignore[reportPrivateUsage]
    assert provider._watchers["memo://1"] == []  # pyright: ignore[reportPrivateUsage]


async def test_a_stream_of_changes_watches_resources() -> None:
    provider = memory()
    async with http(bench=Offered(provider)) as client:
        async with listening(client, resourceSubscriptions=["memo://1", "memo://nothing"]) as stream:
            provider.add_resource("memo://2", "not watched")
            provider.add_resource("memo://1", "changed")
            told = await stream.message()
            assert told["method"] == "notifications/resources/updated"
            assert told["params"] == {"uri": "memo://1", "_meta": {ID: 1}}
        await until(lambda: provider._watchers["memo://1"] == [])  # pyright: ignore[reportPrivateUsage]
        headers = modern_headers("subscriptions/listen", {})
        many = listen(2, resourceSubscriptions=[f"memo://{index}" for index in range(5000)])
        assert (await client.post(many, headers=headers)).last["error"]["code"] == -32602


async def test_a_toolkit_that_is_watched_tells_when_it_is_configured() -> None:
    async with shaken(Notes, fixed) as (client, bench):
        await client.result("resources/subscribe", uri="anykit://toolkits/notes")
        await bench.configure("notes", {"folder": "ours"})
        heard = [await client.hear() for _ in range(3)]
        assert notification("notifications/resources/updated", uri="anykit://toolkits/notes") in heard
        assert {one["method"].split("/", 1)[1] for one in heard} == {
            "resources/updated",
            "tools/list_changed",
            "resources/list_changed",
        }


async def test_the_new_era_has_no_subscriptions_of_single_resources() -> None:
    async with Workbench(fixed) as bench, lines(bench) as client:
        refused = await client.ask(request(1, "resources/subscribe", uri="test://fixed", _meta=envelope()))
        assert refused["error"]["code"] == -32601
