"""An agent in a workbench: isolated, looked after, named."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable
from typing import Any

import anyio
import pytest

from anykit import Workbench
from anykit.a2a import agent
from anykit.capabilities import CapabilityProvider, Connected
from anykit.runtime import Source
from anykit.sources import Backoff
from anykit.sources.a2a import A2ASource, A2ATool
from transports.peers import http, peer

from .agents import Json, ScriptedAgent, card_1_0, scripted, task

pytestmark = pytest.mark.anyio

QUICK = Backoff(0.01, 0.02)


@pytest.fixture
async def one() -> AsyncGenerator[ScriptedAgent]:
    async with scripted(lambda asked: task("completed", "5")) as made:
        yield made


def source_of(one: ScriptedAgent, **options: Any) -> A2ASource:
    return A2ASource(agent(one.card_url), backoff=QUICK, **options)


async def when(source: A2ASource, true: Callable[[], object]) -> None:
    changed = asyncio.Event()
    unsubscribe = source.subscribe(changed.set)
    try:
        with anyio.fail_after(5):
            while not true():
                changed.clear()
                await changed.wait()
    finally:
        unsubscribe()


async def until(source: A2ASource, status: str) -> None:
    await when(source, lambda: source.state.status == status)


async def test_it_is_a_provider_with_a_life_and_does_nothing_before_its_start(one: ScriptedAgent) -> None:
    source = source_of(one)
    assert isinstance(source, CapabilityProvider)
    assert isinstance(source, Connected)
    assert (source.state.status, source.invocables(), source.dialect) == ("connecting", (), "")
    assert one.peer.requests == []
    await source.close()
    assert source.state.status == "closed"


async def test_its_skills_are_tools_and_its_state_tells_version_dialect_and_what_is_left_out(
    one: ScriptedAgent,
) -> None:
    one.card = card_1_0(one.url + "/", skills=[{"id": "add"}, None, {}])
    source = source_of(one)
    await source.start()
    await until(source, "ready")
    assert [tool.spec.name for tool in source.invocables()] == ["Calc_Agent_add"]
    detail = source.state.detail
    assert (detail["agent"], detail["version"], detail["dialect"]) == ("Calc Agent", "1.0.0", "1.0 JSONRPC")
    assert list(detail["left_out"]) == ["skill #1", "skill #2"]
    assert source.card is not None
    assert (list(source.resources()), list(source.prompts())) == ([], [])
    await source.close()
    await source.close()


async def test_a_dead_and_a_hung_and_a_lying_agent_cost_only_themselves(one: ScriptedAgent) -> None:
    async def hang(request: Any) -> bytes:
        await asyncio.Event().wait()
        return b""

    async def lie(request: Any) -> bytes:
        return http(200, "application/json", b'{"name": "L", "skills": "none"}')

    async def break_down(request: Any) -> bytes:
        return http(500, "text/plain", b"boom")

    async with peer(hang) as hung, peer(lie) as lying, peer(break_down) as broken:
        sources = [
            Source("dead", "a2a", A2ASource(agent("http://127.0.0.1:9/card.json"))),
            Source("hung", "a2a", A2ASource(agent(hung.url + "/card.json"))),
            Source("lying", "a2a", A2ASource(agent(lying.url + "/card.json"))),
            Source("broken", "a2a", A2ASource(agent(broken.url + "/card.json"))),
            Source("good", "a2a", A2ASource(agent(one.card_url))),
        ]
        with anyio.fail_after(3):
            async with Workbench(*sources, settle=0.0) as bench:
                result = await bench.call("Calc_Agent_add", {"task": "x"})
                assert result.output == "5"
                assert [tool.name for tool in bench.tools()] == ["Calc_Agent_add"]
                states = {view.name: view.state for view in bench.sources()}
    assert {name: state.status for name, state in states.items()} == {
        "dead": "failed",
        "hung": "connecting",
        "lying": "failed",
        "broken": "failed",
        "good": "ready",
    }
    assert "refused" in states["dead"].reason
    assert "no list" in states["lying"].reason
    assert "boom" in states["broken"].reason


async def test_an_agent_that_comes_up_later_is_found(one: ScriptedAgent) -> None:
    card, one.card = one.card, http(503, "text/plain", b"starting")
    source = source_of(one)
    await source.start()
    await until(source, "failed")
    assert "503" in source.state.reason
    one.card = card
    await until(source, "ready")
    assert len(source.invocables()) == 1
    await source.close()


async def test_the_tools_of_an_agent_that_went_away_stay_listed_and_say_so() -> None:
    async with scripted(lambda asked: task("completed", "5")) as one:
        source = source_of(one)
        await source.start()
        await until(source, "ready")
        [tool] = source.invocables()
    assert isinstance(tool, A2ATool)
    result = await tool.execute({"task": "x"})
    assert result.code == "unavailable"
    await until(source, "failed")
    assert [tool.spec.name for tool in source.invocables()] == ["Calc_Agent_add"]
    with anyio.fail_after(4):
        result = await tool.execute({"task": "x"})
    assert (result.is_error, result.code) == (True, "unavailable")
    assert "not available" in result.output
    assert result.metadata["agent"] == "Calc Agent"
    await source.close()


async def test_a_card_that_changes_changes_the_tools_and_keeps_those_that_stayed(one: ScriptedAgent) -> None:
    source = source_of(one, refresh=0.05)
    await source.start()
    await until(source, "ready")
    [add] = source.invocables()
    one.card = {**one.card, "skills": [{"id": "add"}, {"id": "sub"}]}
    await when(source, lambda: len(source.invocables()) == 2)
    assert source.invocables()[0] is add
    one.card = http(500, "text/plain", b"boom")
    await until(source, "failed")
    assert len(source.invocables()) == 2
    await source.close()


async def test_a_card_is_looked_at_again_by_its_etag(one: ScriptedAgent) -> None:
    looked = asyncio.Event()
    body = json.dumps(one.card).encode()

    async def serve(request: Any) -> bytes:
        if request.headers.get("if-none-match") == '"1"':
            looked.set()
            return http(304, etag='"1"')
        return http(200, "application/json", body, etag='"1"')

    async with peer(serve) as site:
        source = A2ASource(agent(site.url + "/card.json"), refresh=0.02)
        await source.start()
        with anyio.fail_after(4):
            await looked.wait()
        assert source.state.status == "ready"
        assert len(source.invocables()) == 1
        await source.close()


async def test_closing_ends_what_hangs_within_a_moment() -> None:
    async def hang(request: Any) -> bytes:
        await asyncio.Event().wait()
        return b""

    async with peer(hang) as hung:
        source = A2ASource(agent(hung.url + "/card.json"))
        await source.start()
        await asyncio.sleep(0)
        with anyio.fail_after(3):
            await source.close()


# names


def named(name: Json, *skills: Json) -> Json:
    return {"name": name, "skills": [{"id": skill} for skill in skills]}


async def names_in_bench(*cards: Json) -> list[str]:
    async with scripted(lambda asked: task("completed", "5")) as one:
        given = [{**card, "url": one.url + "/"} for card in cards]
        sources = [
            Source(f"id{index}", "a2a", A2ASource(agent(card, id=f"id{index}"))) for index, card in enumerate(given)
        ]
        async with Workbench(*sources) as bench:
            assert await bench.settled(4)
            names = [tool.name for tool in bench.tools()]
            for name in names:
                assert (await bench.call(name, {"task": "x"})).output == "5"
            assert {tool.source for tool in bench.tools()} <= {"a2a"}
        return names


async def test_a_workbench_names_tools_after_the_card_and_the_skill() -> None:
    assert await names_in_bench(named("Weather Agent", "forecast", "alerts!")) == [
        "Weather_Agent_forecast",
        "Weather_Agent_alerts_",
    ]
    assert await names_in_bench(named("9 Lives", "7")) == ["_9_Lives_7"]


async def test_names_that_cleaning_made_equal_are_told_apart_and_the_valid_one_is_kept() -> None:
    names = await names_in_bench(named("A", "x y", "x_y", "x.y"))
    assert len(set(names)) == 3
    assert "A_x_y" in names


async def test_equal_cards_are_told_apart() -> None:
    names = await names_in_bench(named("A", "s"), named("A", "s"))
    assert len(set(names)) == 2
    assert any("id1" in name for name in names)


async def test_every_source_has_a_name_of_its_own() -> None:
    assert A2ASource(agent("http://user:pw@h:1/x/card.json")).name == "h_1"
    assert A2ASource(agent("http://h", id="calc")).name == "calc"
    assert A2ASource(agent({"name": "My Agent"})).name == "My_Agent"
    assert A2ASource(agent("http://h"), name="mine").name == "mine"


async def test_what_is_left_out_of_a_card_is_logged_without_hidden_characters(
    one: ScriptedAgent, caplog: pytest.LogCaptureFixture
) -> None:
    one.card = {**one.card, "skills": [{"id": "a\u202eb"}, {"id": "a\u202eb"}]}
    source = source_of(one)
    with caplog.at_level(logging.WARNING):
        await source.start()
        await until(source, "ready")
    assert "skill ab is left out" in caplog.text
    assert [tool.spec.name for tool in source.invocables()] == ["Calc_Agent_ab"]
    await source.close()
