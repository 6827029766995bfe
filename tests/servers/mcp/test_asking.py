"""Questions of a running call: the client is asked while the call waits, or comes again with the answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from anykit import Workbench, tool
from anykit.capabilities import (
    CapabilityContext,
    InvocableRequest,
    InvocableResult,
    InvocableSpec,
    Progress,
    Question,
    Suspension,
)
from servers.mcp.peers import FORM, Lines, call, envelope, greet, http, lines, modern_headers, request, shaken, until

pytestmark = pytest.mark.anyio

ASKABLE: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}


@tool
async def picky(context: CapabilityContext) -> str:
    """Asks for a number below ten."""
    answer = await context.ask(Question("input", "How many?", {"type": "integer", "maximum": 9}))
    return f"{answer.ok} {answer.data}"


@tool
async def twice(context: CapabilityContext) -> str:
    """Asks two things."""
    context.emit(Progress(1, 3))
    first = await context.ask(Question("input", "First?"))
    context.emit(Progress(2, 3))
    second = await context.ask(Question("approval", "Really?"))
    context.emit(Progress(3, 3))
    return f"{first.data} {second.ok}"


@tool
async def visit(context: CapabilityContext) -> str:
    """Sends its caller somewhere."""
    answer = await context.ask(Question("authorization", "Log in", url="https://login.example/x"))
    return f"{answer.ok}"


@tool
async def endless(context: CapabilityContext) -> str:
    """Never stops asking."""
    while True:
        await context.ask(Question("input", "More?"))


class Kept:
    """A provider whose question outlives the process: it has a state of its own."""

    @property
    def spec(self) -> InvocableSpec:
        return InvocableSpec(name="kept", description="Asks with a state", input_schema={"type": "object"})

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult | Suspension:
        if request.resume is None:
            return Suspension(id="", kind="input", prompt="Name?", schema=FORM, state={"secret": "of the source"})
        assert request.resume.state == {"secret": "of the source"}
        return InvocableResult(text=f"{request.resume.answer.ok} {request.resume.answer.data}")


SOURCES = (greet, picky, twice, visit, endless, Kept())


async def asked(client: Lines) -> dict[str, Any]:
    """The next thing the server asks."""
    while True:
        message = await client.hear()
        if "method" in message and "id" in message:
            return message


async def respond(client: Lines, question: Mapping[str, Any], **result: Any) -> None:
    await client.say({"jsonrpc": "2.0", "id": question["id"], "result": result})


# until 2025-11-25


@pytest.mark.parametrize("name", ["greet", "kept"])
async def test_the_client_is_asked_while_its_call_waits(name: str) -> None:
    async with shaken(*SOURCES, capabilities={"elicitation": {}}) as (client, _):
        await client.say(call(1, name))
        question = await asked(client)
        assert question["method"] == "elicitation/create"
        assert question["params"]["requestedSchema"] == FORM
        assert "secret" not in json.dumps(question)
        await respond(client, question, action="accept", content={"name": "Ann"})
        text = (await client.answer(1))["result"]["content"][0]["text"]
        assert text == {"greet": "Hello, Ann!", "kept": "True {'name': 'Ann'}"}[name]


async def test_other_requests_are_served_meanwhile() -> None:
    async with shaken(*SOURCES, capabilities={"elicitation": {}}) as (client, _):
        await client.say(call(1, "greet"))
        question = await asked(client)
        assert (await client.ask(request(2, "ping")))["result"] == {}
        await respond(client, question, action="decline")
        assert (await client.answer(1))["result"]["content"][0]["text"] == "Hello, nobody."


async def test_several_questions_come_one_after_the_other() -> None:
    async with shaken(*SOURCES, capabilities={"elicitation": {}}) as (client, _):
        await client.say(call(1, "twice", _meta={"progressToken": 5}))
        await respond(client, await asked(client), action="accept", content={"answer": "x"})
        await respond(client, await asked(client), action="accept")
        assert (await client.answer(1))["result"]["content"][0]["text"] == "x True"
        assert [one["progress"] for one in client.notifications("notifications/progress")] == [1, 2, 3]


async def test_an_answer_that_does_not_fit_is_asked_for_again_with_the_reason() -> None:
    async with shaken(*SOURCES, capabilities={"elicitation": {}}) as (client, _):
        await client.say(call(1, "picky"))
        await respond(client, await asked(client), action="accept", content={"answer": 12})
        again = await asked(client)
        assert again["params"]["message"].startswith("How many?\n(the answer does not fit")
        await respond(client, again, action="accept", content={"answer": 3})
        assert (await client.answer(1))["result"]["content"][0]["text"] == "True 3"


async def test_an_error_for_an_answer_is_a_refusal() -> None:
    async with shaken(*SOURCES, capabilities={"elicitation": {}}) as (client, _):
        await client.say(call(1, "greet"))
        question = await asked(client)
        error = {"code": -32603, "message": "the user is away"}
        await client.say({"jsonrpc": "2.0", "id": question["id"], "error": error})
        assert (await client.answer(1))["result"]["content"][0]["text"] == "Hello, nobody."
        await client.say(call(2, "greet"))
        await respond(client, await asked(client), nonsense=True)
        assert (await client.answer(2))["result"]["content"][0]["text"] == "Hello, nobody."


async def test_a_call_that_asks_without_an_end_is_ended() -> None:
    async with shaken(*SOURCES, capabilities={"elicitation": {}}) as (client, bench):
        await client.say(call(1, "endless"))
        for _ in range(10):
            await respond(client, await asked(client), action="accept", content={"answer": "y"})
        result = (await client.answer(1))["result"]
        assert result["isError"] is True
        assert "asked 10 times" in result["content"][0]["text"]
        await until(lambda: not bench.suspensions())


async def test_a_client_that_cannot_be_asked_gets_the_question_and_its_handle() -> None:
    async with shaken(*SOURCES) as (client, bench):
        result = (await client.ask(call(1, "greet")))["result"]
        assert result["isError"] is True
        [waiting] = bench.suspensions()
        text = result["content"][0]["text"]
        assert "What is your name?" in text
        assert waiting.id in text
        assert result["_meta"]["anykit/suspension"]["id"] == waiting.id
        assert (await bench.answer(waiting.id, data={"name": "Bo"})).output == "Hello, Bo!"


async def test_a_url_is_only_opened_by_clients_that_can() -> None:
    async with shaken(*SOURCES, capabilities={"elicitation": {"url": {}}}) as (client, _):
        await client.say(call(1, "visit"))
        question = await asked(client)
        assert question["params"]["mode"] == "url"
        assert question["params"]["url"] == "https://login.example/x"
        assert question["params"]["elicitationId"]
        await respond(client, question, action="accept")
        assert (await client.answer(1))["result"]["content"][0]["text"] == "True"
    async with shaken(*SOURCES, capabilities={"elicitation": {}}) as (client, _):
        result = (await client.ask(call(1, "visit")))["result"]
        assert result["isError"] is True
        assert "https://login.example/x" in result["content"][0]["text"]


async def test_b026_cancelling_a_call_that_waits_for_an_answer_ends_it() -> None:
    """modelcontextprotocol/python-sdk#1152."""
    ended = asyncio.Event()

    @tool
    async def waits(context: CapabilityContext) -> str:
        """Waits for an answer."""
        try:
            answer = await context.ask(Question("input", "Well?"))
        finally:
            ended.set()
        return f"{answer.ok}"

    async with shaken(waits, capabilities={"elicitation": {}}) as (client, bench):
        await client.say(call(1, "waits"))
        await asked(client)
        await client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        async with asyncio.timeout(1):
            await ended.wait()
        assert (await client.ask(request(2, "ping")))["result"] == {}
        assert bench.suspensions() == []
        assert [one for one in client.heard if one.get("id") == 1 and "method" not in one] == []


# 2026-07-28


class Rounds:
    """A client of the new era, over lines or HTTP."""

    def __init__(self, ask: Any) -> None:
        self.ask = ask

    async def call(self, name: str, arguments: Any = None, capabilities: Any = None, **params: Any) -> dict[str, Any]:
        meta = params.pop("_meta", {})
        given: dict[str, Any] = {"name": name, "arguments": arguments or {}, **params}
        return await self.ask(given, {**envelope(ASKABLE if capabilities is None else capabilities), **meta})

    async def go_on(
        self, name: str, result: Mapping[str, Any], arguments: Any = None, **answers: Any
    ) -> dict[str, Any]:
        answer = await self.call(name, arguments, inputResponses=answers, requestState=result["requestState"])
        return answer["result"]


@pytest.fixture(params=["lines", "http"])
async def rounds(request: pytest.FixtureRequest) -> Any:
    if request.param == "lines":
        async with Workbench(*SOURCES) as bench, lines(bench) as client:
            numbers = iter(range(1000))

            async def over_lines(params: Any, meta: Any) -> Any:
                message = {"jsonrpc": "2.0", "id": next(numbers), "method": "tools/call"}
                return await client.ask({**message, "params": {**params, "_meta": meta}})

            yield Rounds(over_lines)
    else:
        async with http(*SOURCES) as client:
            numbers = iter(range(1000))

            async def over_http(params: Any, meta: Any) -> Any:
                message = {"jsonrpc": "2.0", "id": next(numbers), "method": "tools/call"}
                headers = modern_headers("tools/call", params)
                return (await client.post({**message, "params": {**params, "_meta": meta}}, headers=headers)).last

            yield Rounds(over_http)


@pytest.mark.parametrize("name", ["greet", "kept"])
async def test_the_client_comes_again_with_the_answer(rounds: Rounds, name: str) -> None:
    result = (await rounds.call(name))["result"]
    assert result["resultType"] == "input_required"
    [(key, asked)] = result["inputRequests"].items()
    assert asked["method"] == "elicitation/create"
    assert asked["params"]["requestedSchema"] == FORM
    assert "secret" not in json.dumps(result)
    done = await rounds.go_on(name, result, **{key: {"action": "accept", "content": {"name": "Ann"}}})
    assert done["resultType"] == "complete"
    assert "Ann" in done["content"][0]["text"]


async def test_each_round_has_a_state_of_its_own(rounds: Rounds) -> None:
    first = (await rounds.call("twice"))["result"]
    second = await rounds.go_on("twice", first, answer={"action": "accept", "content": {"answer": "x"}})
    assert second["resultType"] == "input_required"
    assert second["requestState"] != first["requestState"]
    done = await rounds.go_on("twice", second, answer={"action": "decline"})
    assert done["content"][0]["text"] == "x False"


async def test_an_answer_is_taken_once(rounds: Rounds) -> None:
    first = (await rounds.call("greet"))["result"]
    answer = {"action": "accept", "content": {"name": "Ann"}}
    assert (await rounds.go_on("greet", first, answer=answer))["isError"] is False
    again = await rounds.go_on("greet", first, answer=answer)
    assert again["isError"] is True
    assert again["_meta"]["anykit/code"] == "unknown_suspension"


async def test_without_an_answer_it_is_asked_again(rounds: Rounds) -> None:
    first = (await rounds.call("greet"))["result"]
    again = await rounds.go_on("greet", first)
    assert again["inputRequests"] == first["inputRequests"]
    other = await rounds.go_on("greet", again, wrong={"action": "accept", "content": {"name": "x"}})
    assert other["resultType"] == "input_required"
    done = await rounds.go_on(
        "greet", other, answer={"action": "accept", "content": {"name": "Bo"}}, extra={"action": "decline"}
    )
    assert done["content"][0]["text"] == "Hello, Bo!"


async def test_in_the_new_era_too_an_answer_must_fit(rounds: Rounds) -> None:
    first = (await rounds.call("picky"))["result"]
    again = await rounds.go_on("picky", first, answer={"action": "accept", "content": {"answer": 99}})
    assert again["resultType"] == "input_required"
    assert "does not fit" in again["inputRequests"]["answer"]["params"]["message"]
    done = await rounds.go_on("picky", again, answer={"action": "accept", "content": {"answer": 4}})
    assert done["content"][0]["text"] == "True 4"


@pytest.mark.parametrize("how", ["forged", "changed", "other_tool", "other_arguments", "empty"])
async def test_a_state_that_was_tampered_with_is_refused(rounds: Rounds, how: str) -> None:
    first = (await rounds.call("greet"))["result"]
    state: str = first["requestState"]
    name, arguments = ("twice" if how == "other_tool" else "greet"), ({"x": 1} if how == "other_arguments" else {})
    given = {
        "forged": json.dumps({"suspension": "x"}),
        "changed": state[:-4] + ("AAAA" if state[-4:] != "AAAA" else "BBBB"),
        "empty": "",
    }.get(how, state)
    answer = await rounds.call(
        name, arguments, requestState=given, inputResponses={"answer": {"action": "accept", "content": {"name": "x"}}}
    )
    assert answer["error"]["code"] == -32602


async def test_the_state_does_not_show_what_it_is(rounds: Rounds) -> None:
    state: str = (await rounds.call("greet"))["result"]["requestState"]
    assert "suspension" not in state
    assert not state.startswith("{")


async def test_a_capability_that_was_not_declared_is_missed_and_named(rounds: Rounds) -> None:
    answer = await rounds.call("greet", capabilities={})
    assert answer["error"]["code"] == -32021
    assert answer["error"]["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}
    form_only = await rounds.call("visit", capabilities={"elicitation": {"form": {}}})
    assert form_only["error"]["data"] == {"requiredCapabilities": {"elicitation": {"url": {}}}}


async def test_a_question_does_not_outlive_a_client_that_cannot_be_asked() -> None:
    async with Workbench(*SOURCES) as bench, lines(bench) as client:
        for id in range(3):
            message = call(id, "greet", _meta=envelope())
            assert (await client.ask(message))["error"]["code"] == -32021
        await until(lambda: not bench.suspensions())


async def test_another_principal_cannot_answer() -> None:
    from anykit.servers.mcp.authorization import ResourceServer
    from servers.mcp.test_authorization import RESOURCE, Verifier

    guard = ResourceServer(Verifier(), RESOURCE, ["https://auth.example"])
    async with http(*SOURCES, authorization=guard) as client:

        async def ask(token: str, **params: Any) -> Any:
            given: dict[str, Any] = {"name": "greet", "arguments": {}, **params}
            message = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {**given, "_meta": envelope(ASKABLE)},
            }
            headers = {**modern_headers("tools/call", given), "Authorization": f"Bearer {token}"}
            return (await client.post(message, headers=headers)).last

        first = (await ask("ann"))["result"]
        answers = {"answer": {"action": "accept", "content": {"name": "x"}}}
        stolen = await ask("bob", requestState=first["requestState"], inputResponses=answers)
        assert stolen["error"]["code"] == -32602
        mine = await ask("ann", requestState=first["requestState"], inputResponses=answers)
        assert mine["result"]["content"][0]["text"] == "Hello, x!"


async def test_progress_goes_to_the_request_that_is_being_answered() -> None:
    async with Workbench(*SOURCES) as bench, lines(bench) as client:
        first = (await client.ask(call(1, "twice", _meta=envelope(ASKABLE, progressToken="one"))))["result"]
        answer = {"answer": {"action": "accept", "content": {"answer": "x"}}}
        meta = envelope(ASKABLE, progressToken="two")
        await client.ask(call(2, "twice", _meta=meta, requestState=first["requestState"], inputResponses=answer))
        told = [(one["progressToken"], one["progress"]) for one in client.notifications("notifications/progress")]
        assert told == [("one", 1), ("two", 2)]
