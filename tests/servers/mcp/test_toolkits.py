"""Toolkits over MCP: what can be configured is there to read, and a person configures it on a page, never a tool's arguments."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, SecretStr

from anykit import ToolError, Toolkit, Workbench, tool
from anykit.runtime import Session
from anykit.servers.identity import Ways
from anykit.servers.mcp.configuring import Desk, Place
from servers.mcp.peers import (
    LEGACY,
    WAIT,
    Fields,
    Http,
    Notes,
    Stream,
    add,
    call,
    envelope,
    http,
    lines,
    modern_headers,
    request,
    shaken,
)

pytestmark = pytest.mark.anyio

URL: Fields = {"elicitation": {"url": {}}}
SECRET = "s3cret-value"
TOOLKIT = "anykit://toolkits/notes"


class Forms(Toolkit):
    """Has a field of each kind."""

    name = "forms"
    alias = "<Forms>"

    class Config(BaseModel):
        """Everything."""

        password: SecretStr
        text: str = Field(min_length=2, title="A <text>", description='Says "it"')
        number: int = 3
        ratio: float | None = None
        choice: Literal["red", "blue"] = "red"
        on: bool = False
        many: list[str] = []
        deep: dict[str, int] = {}
        free: Any = None

    config: Config

    async def setup(self, config: BaseModel) -> None:
        if self.config.text == "refused":
            raise ToolError("the service refuses it")

    @tool
    async def shown(self) -> dict[str, Any]:
        """Shows what it was configured with."""
        return {
            **self.config.model_dump(mode="json", exclude={"password"}),
            "password": self.config.password.get_secret_value() == SECRET,
        }


class Page:
    """What a person's browser does."""

    def __init__(self, client: Http, url: str) -> None:
        self._client = client
        self.url = url

    async def get(self, method: str = "GET") -> tuple[int, str, Any]:
        async with asyncio.timeout(WAIT), self._client.client.request(method, self.url) as answer:
            return answer.status, await answer.text(), answer.headers

    async def post(self, **fields: str) -> tuple[int, str]:
        async with asyncio.timeout(WAIT), self._client.client.post(self.url, data=fields) as answer:
            return answer.status, await answer.text()


# to read


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_toolkit_is_a_resource_with_its_schema_and_its_state(era: str) -> None:
    async with Workbench(Notes) as bench, lines(bench) as client:
        meta: Fields = {} if era == "legacy" else {"_meta": envelope()}
        if era == "legacy":
            await client.shake_hands()
        [listed] = (await client.result("resources/list", **meta))["resources"]
        assert (listed["uri"], listed["title"], listed["mimeType"]) == (TOOLKIT, "Notes", "application/json")
        assert "not configured" in listed["description"]
        [read] = (await client.result("resources/read", uri=TOOLKIT, **meta))["contents"]
        told = json.loads(read["text"])
        assert told["schema"] == Notes.Config.model_json_schema() or told["schema"]["properties"]["folder"]
        assert told["configured"] is False
        assert told["tools"] == ["list_notes"]
        assert "anykit configure notes" in told["configure"]
        assert (await client.result("tools/list", **meta))["tools"] == []


async def test_what_it_is_configured_with_is_not_shown() -> None:
    async with shaken(Notes) as (client, bench):
        await bench.configure("notes", {"folder": "f", "token": SECRET})
        await client.hear()
        read = await client.result("resources/read", uri=TOOLKIT)
        assert json.loads(read["contents"][0]["text"])["configured"] is True
        assert SECRET not in json.dumps(client.heard)


@pytest.mark.parametrize("uri", ["anykit://toolkits/nothing", "anykit://toolkits/", "anykit://toolkits/notes/x"])
async def test_what_is_no_toolkit_is_not_found(uri: str) -> None:
    async with shaken(Notes) as (client, _):
        refused = await client.ask(request(1, "resources/read", uri=uri))
        assert (refused["error"]["code"], refused["error"]["data"]["uri"]) == (-32002, uri)


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {}}, {"elicitation": {"form": {}}}, URL])
async def test_b063_without_a_page_or_a_client_that_opens_it_the_call_says_what_to_do(capabilities: Fields) -> None:
    """ComposioHQ/composio#2455."""
    async with shaken(Notes, capabilities=capabilities) as (client, _):
        result = await client.result("tools/call", name="list_notes", arguments={})
        assert result["isError"] is True
        assert result["_meta"]["anykit/code"] == "not_configured"
        assert "anykit configure notes" in result["content"][0]["text"]
        assert [one for one in client.heard if one.get("method") == "elicitation/create"] == []


# on a page, until 2025-11-25


@asynccontextmanager
async def sent_to_a_page(client: Http, name: str, version: str = LEGACY) -> AsyncGenerator[tuple[Stream, Page, Any]]:
    """A call whose client has been asked to open a page."""
    if not client.session:
        await client.shake_hands(version, URL)
    async with client.stream("POST", call(1, name)) as stream:
        question = await stream.message()
        assert question["method"] == "elicitation/create", question
        assert question["params"]["mode"] == "url"
        assert question["params"]["url"].startswith(client.url.removesuffix("/mcp") + "/mcp/configure/")
        assert set(question["params"]) == {"mode", "url", "message", "elicitationId"}
        yield stream, Page(client, question["params"]["url"]), question


async def respond(client: Http, question: Any, action: str) -> None:
    answer: Fields = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": action}}
    assert (await client.post(answer)).status == 202


async def test_a_person_configures_and_the_call_goes_on() -> None:
    async with http(Notes) as client, sent_to_a_page(client, "list_notes") as (stream, page, question):
        status, shown, headers = await page.get()
        assert (status, headers["Cache-Control"], headers["Referrer-Policy"]) == (200, "no-store", "no-referrer")
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert '<label for="folder">' in shown
        assert 'type="password"' in shown
        await respond(client, question, "accept")
        assert (await page.post(folder="mine", token=SECRET))[0] == 200
        told = await stream.message()
        while "method" in told and told["method"] != "notifications/elicitation/complete":
            told = await stream.message()
        assert told["params"] == {"elicitationId": question["params"]["elicitationId"]}
        answer = await stream.message()
        assert answer["result"]["content"][0]["text"] == "notes in mine"
        [for_others] = client.bench.session(principal="local").toolkits()
        assert not for_others.configured
        assert (await page.get())[0] == 404  # good once


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_who_does_not_want_to_is_believed(action: str) -> None:
    async with http(Notes) as client, sent_to_a_page(client, "list_notes") as (stream, _, question):
        await respond(client, question, action)
        answer = await stream.message()
        assert answer["result"]["_meta"]["anykit/code"] == "not_configured"


async def test_before_2025_11_25_there_is_no_page_to_be_sent_to() -> None:
    async with http(Notes) as client:
        await client.shake_hands("2025-06-18", URL)
        assert (await client.post(call(1, "list_notes"))).last["result"]["isError"] is True


async def test_a_call_that_waits_for_a_page_can_be_cancelled() -> None:
    async with http(Notes) as client, sent_to_a_page(client, "list_notes") as (stream, _, question):
        await respond(client, question, "accept")
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        assert (await client.post(cancelled)).status == 202
        assert await stream.event() == {}


# on a page, 2026-07-28


async def rounds(client: Http, name: str, **params: Any) -> Any:
    given: Fields = {"name": name, "arguments": {}, **params}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**given, "_meta": envelope(URL)}}
    reply = await client.post(message, headers=modern_headers("tools/call", given))
    return reply.last["result"]


async def test_in_the_new_era_the_client_comes_again_when_it_is_done() -> None:
    async with http(Notes) as client:
        asked = await rounds(client, "list_notes")
        assert asked["resultType"] == "input_required"
        question = asked["inputRequests"]["configure"]
        assert (question["method"], question["params"]["mode"]) == ("elicitation/create", "url")
        page = Page(client, question["params"]["url"])
        back: Fields = {"requestState": asked["requestState"], "inputResponses": {"configure": {"action": "accept"}}}
        waiting = asyncio.create_task(rounds(client, "list_notes", **back))
        assert (await page.post(folder="ours"))[0] == 200
        assert (await waiting)["content"][0]["text"] == "notes in ours"
        assert (await rounds(client, "list_notes"))["content"][0]["text"] == "notes in ours"


@pytest.mark.parametrize("response", [{}, {"configure": {"action": "decline"}}, {"configure": {"action": "cancel"}}])
async def test_in_the_new_era_too_a_person_may_refuse(response: Fields) -> None:
    async with http(Notes) as client:
        asked = await rounds(client, "list_notes")
        back: Fields = {"requestState": asked["requestState"], "inputResponses": response}
        refused = await rounds(client, "list_notes", **back)
        assert refused["_meta"]["anykit/code"] == "not_configured"


# the page


async def test_each_kind_of_field_can_be_filled_in() -> None:
    async with http(Forms) as client, sent_to_a_page(client, "shown") as (stream, page, question):
        _, shown, _ = await page.get()
        assert "&lt;Forms&gt;" in shown
        assert "<Forms>" not in shown
        assert "A &lt;text&gt;" in shown
        await respond(client, question, "accept")
        status, said = await page.post(
            password=SECRET,
            text="ok",
            number="7",
            ratio="0.5",
            choice='"blue"',
            on="true",
            many="a\r\n\r\n b ",
            deep='{"x": 1}',
            free="[null]",
        )
        assert status == 200, said
        answer = await stream.message()
        while "result" not in answer:
            answer = await stream.message()
        assert answer["result"]["structuredContent"] == {
            "password": True,
            "text": "ok",
            "number": 7,
            "ratio": 0.5,
            "choice": "blue",
            "on": True,
            "many": ["a", "b"],
            "deep": {"x": 1},
            "free": [None],
        }


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({}, "password"),
        ({"text": "x"}, "text"),
        ({"text": "refused"}, "refuses"),
        ({"number": "many"}, "number"),
        ({"number": "1.5"}, "number"),
        ({"deep": "{"}, "deep"),
        ({"choice": '"green"'}, "choice"),
        ({"deep": "[" * 100_000}, "deep"),
    ],
)
async def test_what_does_not_fit_is_said_beside_its_field_and_no_secret_comes_back(
    fields: dict[str, str], wrong: str
) -> None:
    async with http(Forms) as client, sent_to_a_page(client, "shown") as (_, page, question):
        sent = {"password": SECRET, "text": "fine", **fields} if fields else {"text": "fine"}
        status, said = await page.post(**sent)
        assert status == 422
        assert wrong in said
        assert 'role="alert"' in said
        assert SECRET not in said
        assert (await page.get())[0] == 200  # to try again
        await respond(client, question, "cancel")


async def test_what_is_typed_comes_back_as_text_and_never_as_markup() -> None:
    async with http(Forms) as client, sent_to_a_page(client, "shown") as (_, page, question):
        status, said = await page.post(text='"><script>alert(1)</script>')
        assert status == 422
        assert "<script>" not in said
        await respond(client, question, "cancel")


async def test_other_addresses_and_methods_are_refused() -> None:
    async with http(Notes) as client, sent_to_a_page(client, "list_notes") as (_, page, question):
        assert (await Page(client, page.url + "x").get())[0] == 404
        assert (await Page(client, page.url.rpartition("/")[0] + "/").get())[0] == 404
        assert (await page.get("PUT"))[0] == 405
        status, body, _ = await page.get("HEAD")
        assert (status, body) == (200, "")
        async with client.client.post(page.url, data=io.BytesIO(b"folder=" + b"x" * 2_000_000)) as answer:
            assert answer.status == 413
        await respond(client, question, "cancel")


async def test_a_page_behind_a_token_opens_for_whoever_knows_its_address() -> None:
    async with http(Notes, token="secret") as client:
        opened = await client.post(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "list_notes", "arguments": {}, "_meta": envelope(URL)},
            },
            headers={**modern_headers("tools/call", {"name": "list_notes"}), "Authorization": "Bearer secret"},
        )
        url = opened.last["result"]["inputRequests"]["configure"]["params"]["url"]
        assert (await Page(client, url).get())[0] == 200
        assert (await Page(client, url[:-4] + "AAAA").get())[0] == 404


# who is sent where


def bench_session(bench: Workbench, id: str | None = None, principal: str = "local") -> Session:
    return bench.session(principal=principal, face="mcp", id=id)


async def test_an_address_is_one_callers_for_one_toolkit() -> None:
    here = Place("http://127.0.0.1:1", True)
    async with Workbench(Notes, Forms) as bench:
        desk = Desk()
        mine, theirs = bench_session(bench, "mine"), bench_session(bench, "theirs")
        first = desk.address(mine, "notes", here)
        assert first is not None
        assert desk.address(mine, "notes", here) is first
        others = [desk.address(theirs, "notes", here), desk.address(mine, "forms", here)]
        assert len({one.id for one in [first, *others] if one}) == 3
        assert desk.address(mine, "nothing", here) is None
        desk.leave(mine)
        assert desk.find(first.id) is None
        assert others[0] is not None
        assert desk.find(others[0].id) is others[0]


async def test_nobody_is_sent_to_a_page_that_a_secret_may_not_travel_to() -> None:
    class Open(Toolkit):
        name = "open"

        class Config(BaseModel):
            """Nothing secret."""

            folder: str

    far = Place("http://tools.example", False)
    async with Workbench(Notes, Open) as bench:
        session = bench_session(bench)
        assert Desk().address(session, "notes", far) is None
        assert Desk().address(session, "open", far) is not None
        assert Desk().address(session, "notes", None) is None


async def test_the_page_itself_takes_no_secret_over_an_open_way() -> None:
    async with Workbench(Notes) as bench:
        desk = Desk(Ways())
        address = desk.address(bench_session(bench), "notes", Place("http://127.0.0.1:1", True))
        assert address is not None
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {"type": "http.request", "body": b"folder=x", "more_body": False}

        scope: Fields = {
            "type": "http",
            "method": "POST",
            "path": f"/mcp/configure/{address.id}",
            "scheme": "http",
            "client": ("192.0.2.7", 1),
            "headers": [],
        }
        await desk(scope, receive, send)
        assert sent[0]["status"] == 403
        assert desk.find(address.id) is address


async def test_tools_of_toolkits_take_no_configuration_as_arguments() -> None:
    async with shaken(add, Notes, Forms) as (client, bench):
        await bench.configure("notes", {"folder": "f"})
        await client.hear()
        listed = (await client.result("tools/list"))["tools"]
        assert {one["name"] for one in listed} == {"add", "list_notes"}
        assert "token" not in json.dumps([one["inputSchema"] for one in listed])
