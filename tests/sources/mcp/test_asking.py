"""What a server asks while it works, in both eras: passed on to whom it belongs to, declined where it must be."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from anykit.capabilities import (
    Answer,
    CapabilityContext,
    ExecutionFailed,
    InvocableResult,
    Log,
    Question,
    Resume,
    Suspension,
)
from anykit.sources.mcp import McpServer, McpSource, Offers

from .at_hand import OBJECT, Hearing, eventually, invoke, python, ready, text, tool
from .peers.script import Out, Peer
from .web import Reply, Request, Web, serving

pytestmark = pytest.mark.anyio

FORM = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def form(message: str = "Which city?", schema: Any = FORM) -> dict[str, Any]:
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": message, "requestedSchema": schema},
    }


def url(address: str = "https://pay.example/1") -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"mode": "url", "message": "Pay", "url": address}}


NOTHING: list[dict[str, Any]] = [{}] * 50


class Asking(Peer):
    """Asks, round by round, what its script says; then answers with the responses that it got."""

    rounds: list[dict[str, Any]]

    def __init__(self, *rounds: dict[str, Any], **script: Any) -> None:
        super().__init__({"eras": ["modern"], **script})
        self.rounds = list(rounds)

    def call(self, name: str, arguments: dict[str, Any], params: dict[str, Any], out: Out) -> dict[str, Any] | None:
        state: Any = json.loads(params.get("requestState") or '{"round": 0, "got": []}')
        state["got"].append(params.get("inputResponses"))
        if state["round"] >= len(self.rounds):
            return {"content": [], "structuredContent": {"got": state["got"][1:], **arguments}}
        asked = self.rounds[int(state["round"])]
        state["round"] += 1
        required: dict[str, Any] = {"resultType": "input_required", "requestState": json.dumps(state)}
        return {**required, "inputRequests": asked} if asked else required


async def suspended(made: McpSource, **arguments: Any) -> Suspension:
    outcome = await invoke(tool(made), arguments)
    assert isinstance(outcome, Suspension)
    return outcome


async def answered(made: McpSource, asked: Suspension, answer: Answer, **arguments: Any) -> Any:
    """Go on with what a later process would have: the state as JSON."""
    state = json.loads(json.dumps(asked.state))
    outcome = await invoke(tool(made), arguments, resume=Resume(state, answer))
    return outcome.structured if isinstance(outcome, InvocableResult) else outcome


async def test_a_question_suspends_the_call_and_its_answer_goes_on_with_it() -> None:
    async with serving(Asking({"k": form()})) as web, ready(McpServer("maps", url=web.url)) as made:
        asked = await suspended(made, a=1)
        assert (asked.kind, asked.prompt, asked.schema, asked.url) == ("input", "maps asks: Which city?", FORM, None)
        assert asked.data == {"source": "maps"}
        got = await answered(made, asked, Answer(True, {"city": "Rome"}), a=1)
        assert got == {"got": [{"k": {"action": "accept", "content": {"city": "Rome"}}}], "a": 1}
        first, second = web.peer.calls("tools/call")
        assert first["params"]["arguments"] == second["params"]["arguments"] == {"a": 1}
        assert first["id"] != second["id"]


async def test_the_call_goes_on_in_another_process_and_session() -> None:
    async with serving(Asking({"k": form()})) as web:
        async with ready(McpServer("maps", url=web.url)) as made:
            asked = await suspended(made)
        async with ready(McpServer("maps", url=web.url)) as later:
            got = await answered(later, asked, Answer(True, {"city": "Rome"}))
    assert got["got"] == [{"k": {"action": "accept", "content": {"city": "Rome"}}}]


async def test_over_stdio_a_question_is_the_same() -> None:
    program = (
        "peer = Peer({'eras': ['modern']})\n"
        "def call(name, arguments, params, out):\n"
        "    if params.get('requestState') == 'S':\n"
        "        return {'content': [], 'structuredContent': params['inputResponses']}\n"
        "    return {'resultType': 'input_required', 'requestState': 'S', 'inputRequests': json.loads(sys.argv[1])}\n"
        "peer.call = call\n"
        "for line in sys.stdin:\n"
        "    answer = peer.handle(json.loads(line), say)\n"
        "    if answer: say(answer)\n"
    )
    async with ready(McpServer("maps", python(program, json.dumps({"k": form()})))) as made:
        asked = await suspended(made)
        got = await answered(made, asked, Answer(True, {"city": "Rome"}))
        assert got == {"k": {"action": "accept", "content": {"city": "Rome"}}}


async def test_a_refusal_is_told_to_the_server() -> None:
    async with serving(Asking({"k": form()})) as web, ready(McpServer("maps", url=web.url)) as made:
        got = await answered(made, await suspended(made), Answer(False))
        assert got["got"] == [{"k": {"action": "decline"}}]


async def test_several_questions_of_one_round_are_asked_one_after_another() -> None:
    async with serving(Asking({"a": form("One?"), "b": url(), "c": form("Three?")})) as web:
        async with ready(McpServer("maps", url=web.url)) as made:
            one = await suspended(made)
            assert one.prompt == "maps asks: One?"
            two = await answered(made, one, Answer(True, {"city": "A"}))
            assert isinstance(two, Suspension)
            assert (two.kind, two.url) == ("authorization", "https://pay.example/1")
            three = await answered(made, two, Answer(True))
            assert isinstance(three, Suspension)
            assert three.prompt == "maps asks: Three?"
            assert len(web.peer.calls("tools/call")) == 1
            got = await answered(made, three, Answer(False))
            assert got["got"] == [
                {
                    "a": {"action": "accept", "content": {"city": "A"}},
                    "b": {"action": "accept"},
                    "c": {"action": "decline"},
                }
            ]


async def test_a_server_may_ask_again_and_may_only_want_more_time() -> None:
    async with serving(Asking({"k": form("One?")}, {}, {"k": form("Two?")})) as web:
        async with ready(McpServer("maps", url=web.url)) as made:
            two = await answered(made, await suspended(made), Answer(True, {"city": "A"}))
            assert isinstance(two, Suspension)
            assert two.prompt == "maps asks: Two?"
            got = await answered(made, two, Answer(True, {"city": "B"}))
            cities = [one["k"]["content"]["city"] if one else None for one in got["got"]]
            assert cities == ["A", None, "B"]


async def test_a_server_that_asks_for_ever_is_stopped() -> None:
    async with serving(Asking(*NOTHING)) as web, ready(McpServer("maps", url=web.url)) as made:
        with pytest.raises(ExecutionFailed, match="asked more than 10 times"):
            await invoke(tool(made))


@pytest.mark.parametrize(
    "field",
    [
        {"password": {"type": "string"}},
        {"apiKey": {"type": "string"}},
        {"access_token": {"type": "string"}},
        {"pin": {"type": "string", "format": "password"}},
        {"x": {"type": "string", "writeOnly": True}},
        {"Client-Secret": {"type": "string"}},
    ],
)
async def test_a_form_never_asks_for_a_secret(field: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": field}
    async with serving(Asking({"k": form("Log in", schema)})) as web, ready(McpServer("maps", url=web.url)) as made:
        hearing = Hearing()
        result = await invoke(tool(made), context=hearing.context)
        assert isinstance(result, InvocableResult)
        assert result.structured == {"got": [{"k": {"action": "decline"}}]}
        [said] = hearing.heard
        assert isinstance(said, Log)
        assert "secrets are not passed on in forms" in said.message


async def test_a_form_about_numbers_of_tokens_is_no_secret() -> None:
    schema = {"type": "object", "properties": {"max_tokens": {"type": "integer"}, "keyboard": {"type": "string"}}}
    async with serving(Asking({"k": form("How many?", schema)})) as web, ready(McpServer("maps", url=web.url)) as made:
        assert (await suspended(made)).schema == schema


@pytest.mark.parametrize("address", ["javascript:alert(1)", "file:///etc/passwd", "http://", "https://a b/"])
async def test_an_address_that_is_no_web_page_is_declined(address: str) -> None:
    async with serving(Asking({"k": url(address)})) as web, ready(McpServer("maps", url=web.url)) as made:
        result = await invoke(tool(made))
        assert isinstance(result, InvocableResult)
        assert result.structured == {"got": [{"k": {"action": "decline"}}]}


async def test_an_answer_that_does_not_fit_is_not_sent() -> None:
    async with serving(Asking({"k": form()})) as web, ready(McpServer("maps", url=web.url)) as made:
        asked = await suspended(made)
        with pytest.raises(ExecutionFailed, match="does not fit"):
            await answered(made, asked, Answer(True, {"town": "Rome"}))
        assert len(web.peer.calls("tools/call")) == 1


@pytest.mark.parametrize("state", [None, "x", {}, {"v": 1}, {"v": 2, "asked": {"k": {}}}, {"v": 1, "asked": {}}])
async def test_a_state_that_is_none_of_ours_is_refused(state: Any) -> None:
    async with serving(Asking({"k": form()})) as web, ready(McpServer("maps", url=web.url)) as made:
        with pytest.raises(ExecutionFailed, match="cannot be gone on with"):
            await invoke(tool(made), resume=Resume(state, Answer(True)))
        assert web.peer.calls("tools/call") == []


# what the workbench itself answers


async def test_nothing_is_offered_that_nobody_answers() -> None:
    for offers, offered in (
        (Offers(questions=False), set[str]()),
        (Offers(), {"elicitation"}),
        (Offers(sampler=_sampled, roots=["/work"]), {"elicitation", "sampling", "roots"}),
    ):
        async with serving(Peer()) as web, ready(McpServer("peer", url=web.url), offers=offers):
            sent = web.peer.calls("tools/list")[0]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
            assert set(sent) == offered
        async with serving(Peer({"eras": ["legacy"]})) as web, ready(McpServer("peer", url=web.url), offers=offers):
            assert set(web.peer.calls("initialize")[0]["params"]["capabilities"]) == offered


async def _sampled(params: dict[str, Any], context: CapabilityContext) -> dict[str, Any]:
    said = params["messages"][0]["content"]["text"]
    content = {"type": "text", "text": f"{context.principal}: {said.upper()}"}
    return {"role": "assistant", "content": content, "model": "m"}


SAMPLE = {
    "method": "sampling/createMessage",
    "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5},
}


async def test_roots_and_a_model_are_answered_without_a_person(tmp_path: Path) -> None:
    peer = Asking({"r": {"method": "roots/list"}, "s": SAMPLE})
    offers = Offers(sampler=_sampled, roots=[tmp_path])
    async with serving(peer) as web, ready(McpServer("peer", url=web.url), offers=offers) as made:
        result = await invoke(tool(made), context=CapabilityContext(principal="ann"))
        assert isinstance(result, InvocableResult)
        [got] = result.structured["got"]
        assert got["r"]["roots"] == [{"uri": tmp_path.as_uri(), "name": tmp_path.name}]
        assert got["s"]["content"]["text"] == "ann: HI"


async def test_what_was_not_offered_is_an_error_of_the_call() -> None:
    async with serving(Asking({"s": SAMPLE})) as web, ready(McpServer("peer", url=web.url)) as made:
        with pytest.raises(ExecutionFailed, match="was not offered"):
            await invoke(tool(made))


# reading and prompts


class AskingReader(Asking):
    def answer(self, method: str, params: dict[str, Any], out: Out) -> dict[str, Any] | None:
        if method not in ("resources/read", "prompts/get"):
            return super().answer(method, params, out)
        asked = self.call("", {}, params, out)
        assert asked is not None
        return super().answer(method, params, out) if "content" in asked else asked


async def test_what_is_asked_while_reading_is_asked_on_the_spot() -> None:
    async def ask(question: Question) -> Answer:
        questions.append(question)
        return Answer(True, {"city": "Rome"})

    questions: list[Question] = []
    peer = AskingReader({"k": form()}, resources=[{"uri": "a://1", "name": "1"}], prompts=[{"name": "p"}])
    async with serving(peer) as web, ready(McpServer("maps", url=web.url)) as made:
        [resources], [prompts] = made.resources(), made.prompts()
        read = await resources.read_resource("a://1", CapabilityContext(ask=ask))
        assert read.id == "a://1"
        await prompts.get_prompt("p", {}, CapabilityContext(ask=ask))
        assert [one.prompt for one in questions] == ["maps asks: Which city?"] * 2
        with pytest.raises(ExecutionFailed, match="nobody can be asked") as raised:
            await resources.read_resource("a://1", CapabilityContext())
        assert raised.value.code == "nobody_to_ask"


# the old era: live questions


class Live(Peer):
    """Asks with a request of its own, and answers the call with what came back."""

    def __init__(self, question: dict[str, Any] | None = None, **script: Any) -> None:
        super().__init__({"eras": ["legacy"], **script})
        self.question = question or form()
        self.open: dict[str, Any] = {}

    def call(self, name: str, arguments: dict[str, Any], params: dict[str, Any], out: Out) -> dict[str, Any] | None:
        number = f"q{len(self.open)}"
        self.open[number] = params
        out({"jsonrpc": "2.0", "id": number, **self.question})
        return None


@asynccontextmanager
async def live(peer: Live) -> AsyncGenerator[Web]:
    """A server whose calls are answered on their own stream once the client's answer was posted."""
    async with serving(peer) as web:

        async def before(request: Request, reply: Reply) -> bool:
            message = request.message
            if request.method != "POST" or "method" in message or "id" not in message:
                return False
            peer.seen.append(message)
            await reply.send(202)
            waiting = next(iter(web.posts))
            stream = web.posts.pop(waiting)
            got: dict[str, Any] = {"got": message.get("result"), "error": message.get("error")}
            result: dict[str, Any] = {"content": [], "structuredContent": got}
            await stream.event({"jsonrpc": "2.0", "id": waiting, "result": result})
            return True

        web.before = before
        yield web


async def test_a_live_question_is_asked_inside_its_call() -> None:
    async def ask(question: Question) -> Answer:
        assert (question.kind, question.prompt, question.schema) == ("input", "maps asks: Which city?", FORM)
        return Answer(True, {"city": "Rome"})

    async with live(Live()) as web, ready(McpServer("maps", url=web.url)) as made:
        result = await invoke(tool(made), context=CapabilityContext(ask=ask))
        assert isinstance(result, InvocableResult)
        assert result.structured["got"] == {"action": "accept", "content": {"city": "Rome"}}


async def test_a_live_question_that_nobody_can_answer_is_cancelled_with_its_reason() -> None:
    async with live(Live()) as web, ready(McpServer("maps", url=web.url)) as made:
        hearing = Hearing()
        result = await invoke(tool(made), context=hearing.context)
        assert isinstance(result, InvocableResult)
        assert result.structured["got"] == {"action": "cancel"}
        [said] = hearing.heard
        assert isinstance(said, Log)
        assert "nobody can be asked" in said.message


async def test_the_servers_own_time_stands_still_while_somebody_is_asked() -> None:
    async def ask(question: Question) -> Answer:
        await asyncio.sleep(0.4)  # longer than the server's time for a call
        return Answer(True, {"city": "Rome"})

    async with live(Live()) as web, ready(McpServer("maps", url=web.url, call_timeout=0.2)) as made:
        result = await invoke(tool(made), context=CapabilityContext(ask=ask))
        assert isinstance(result, InvocableResult)
        assert result.structured["got"]["action"] == "accept"


async def test_whoever_gave_up_a_call_is_asked_no_more() -> None:
    asked = asyncio.Event()
    ended = asyncio.Event()

    async def ask(question: Question) -> Answer:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return Answer(False)

    async with live(Live()) as web, ready(McpServer("maps", url=web.url)) as made:
        waiting = asyncio.create_task(invoke(tool(made), context=CapabilityContext(ask=ask)))
        await asked.wait()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        with anyio.fail_after(3):
            await ended.wait()


async def test_over_http_each_caller_is_asked_the_own_question() -> None:
    def asker(who: str) -> CapabilityContext:
        async def ask(question: Question) -> Answer:
            asked.append(who)
            return Answer(True, {"city": who})

        return CapabilityContext(principal=who, ask=ask)

    asked: list[str] = []
    async with live(Live()) as web, ready(McpServer("maps", url=web.url)) as made:
        await asyncio.gather(
            invoke(tool(made), {"n": 1}, context=asker("ann")), invoke(tool(made), {"n": 2}, context=asker("bob"))
        )
        assert sorted(asked) == ["ann", "bob"]


OVER_STDIO = (
    "peer = Peer({'eras': ['legacy']})\n"
    "waiting = []\n"
    "for line in sys.stdin:\n"
    "    m = json.loads(line)\n"
    "    if m.get('method') == 'tools/call':\n"
    "        waiting.append(m['id'])\n"
    "        if len(waiting) == int(sys.argv[1]):\n"
    "            say({'jsonrpc': '2.0', 'id': 'q', **json.loads(sys.argv[2])})\n"
    "    elif 'method' not in m:\n"
    "        result = {'content': [], 'structuredContent': {'got': m.get('result')}}\n"
    "        for id in waiting: say({'jsonrpc': '2.0', 'id': id, 'result': result})\n"
    "    else:\n"
    "        answer = peer.handle(m, say)\n"
    "        if answer: say(answer)\n"
)


@pytest.mark.parametrize(
    ("callers", "action"), [(["ann"], "accept"), (["ann", "ann"], "accept"), (["ann", "bob"], "decline")]
)
async def test_over_stdio_a_question_is_attributed_only_if_all_in_flight_are_one_callers(
    callers: list[str], action: str
) -> None:
    async def ask(question: Question) -> Answer:
        return Answer(True, {"city": "Rome"})

    command = python(OVER_STDIO, str(len(callers)), json.dumps(form()))
    async with ready(McpServer("maps", command)) as made:
        calls = [invoke(tool(made), context=CapabilityContext(principal=who, ask=ask)) for who in callers]
        for result in await asyncio.gather(*calls):
            assert isinstance(result, InvocableResult)
            assert result.structured["got"]["action"] == action
        if action == "decline":
            assert any("several callers" in line for line in made.log)


async def test_a_question_outside_of_any_call_is_declined(tmp_path: Path) -> None:
    program = (
        "peer = Peer({'eras': ['legacy']})\n"
        "for line in sys.stdin:\n"
        "    m = json.loads(line)\n"
        "    if 'method' not in m: open(sys.argv[1], 'w').write(json.dumps(m['result'])); continue\n"
        "    answer = peer.handle(m, say)\n"
        "    if answer: say(answer)\n"
        "    if m['method'] == 'tools/list': say({'jsonrpc': '2.0', 'id': 'q', **json.loads(sys.argv[2])})\n"
    )
    note = tmp_path / "note"
    async with ready(McpServer("maps", python(program, str(note), json.dumps(form())))) as made:
        await eventually(lambda: bool(text(note)))
        assert json.loads(text(note)) == {"action": "decline"}
        assert any("no call is running" in line for line in made.log)


async def test_a_model_and_roots_are_offered_live_too(tmp_path: Path) -> None:
    for question, got in ((SAMPLE, "ann: HI"), ({"method": "roots/list"}, tmp_path.as_uri())):
        async with live(Live(question)) as web:
            offers = Offers(sampler=_sampled, roots=[tmp_path])
            async with ready(McpServer("maps", url=web.url), offers=offers) as made:
                result = await invoke(tool(made), context=CapabilityContext(principal="ann"))
                assert isinstance(result, InvocableResult)
                assert got in json.dumps(result.structured)


async def test_addresses_that_must_be_visited_first_suspend_the_call() -> None:
    class Visits(Peer):
        visited = False

        def call(self, name: str, arguments: dict[str, Any], params: dict[str, Any], out: Out) -> dict[str, Any] | None:
            if self.visited:
                return super().call(name, arguments, params, out)
            self.visited = True
            one = {"mode": "url", "message": "Log in", "url": "https://login.example/", "elicitationId": "e1"}
            return {"error": {"code": -32042, "message": "visit", "data": {"elicitations": [one]}}}

    peer = Visits({"eras": ["legacy"], "tools": [{"name": "echo", "inputSchema": OBJECT}]})
    async with serving(peer) as web, ready(McpServer("maps", url=web.url)) as made:
        asked = await suspended(made, a=1)
        assert (asked.kind, asked.url) == ("authorization", "https://login.example/")
        assert await answered(made, asked, Answer(True), a=1) == {"a": 1}
        peer.visited = False
        with pytest.raises(ExecutionFailed, match="was refused"):
            await answered(made, await suspended(made), Answer(False))
