"""One endpoint as one tool: its schema, its hints, and the request that arrives at a real server."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from anykit import Workbench
from anykit.sources.http import HttpTool, TemplateError, http_tool
from anykit.stores import UnresolvedReference
from anykit.tools import ToolResult
from transports.peers import Peer, Request, http, peer

pytestmark = pytest.mark.anyio


async def echo(request: Request) -> bytes:
    said = {
        "method": request.method,
        "path": request.path,
        "headers": {k: v for k, v in request.headers.items() if k not in ("host", "accept", "accept-encoding")},
        "body": request.body.decode(),
    }
    return http(200, "application/json", json.dumps(said).encode())


async def sent(arguments: dict[str, Any], url: str = "/x", **options: Any) -> Request:
    """What arrives when the tool of this endpoint is called."""
    async with peer(echo) as server:
        result = await http_tool("t", server.url + url, **options).execute(arguments)
        assert not result.is_error, result.output
        (request,) = server.requests
        return request


async def refused(arguments: dict[str, Any], url: str = "/x", **options: Any) -> ToolResult:
    """The result of a call of which nothing may arrive."""
    async with peer(echo) as server:
        result = await http_tool("t", server.url + url, **options).execute(arguments)
        assert server.connections == 0
        assert (result.is_error, result.code) == (True, "invalid_input")
        return result


# arguments


def test_placeholders_are_required_texts_where_nothing_else_is_said() -> None:
    tool = http_tool("t", "http://h/{a}?b={b}", headers={"X-C": "{c}"}, body={"json": {"d": "{d}"}}, method="POST")
    assert tool.input_schema == {
        "type": "object",
        "properties": {name: {"type": "string"} for name in "abcd"},
        "additionalProperties": False,
        "required": ["a", "b", "c", "d"],
    }


def test_parameters_say_more_about_an_argument() -> None:
    tool = http_tool(
        "t",
        "http://h/{id}",
        parameters={
            "id": "integer",
            "q": {"type": "string", "required": False},
            "n": {"type": "integer", "default": 10},
            "why": "What it is for",
        },
    )
    assert tool.input_schema["properties"] == {
        "id": {"type": "integer"},
        "q": {"type": "string"},
        "n": {"type": "integer", "default": 10},
        "why": {"type": "string", "description": "What it is for"},
    }
    assert tool.input_schema["required"] == ["id", "why"]


async def test_arguments_are_validated_before_anything_is_sent() -> None:
    wrong = await refused({"id": "x", "extra": 1}, "/{id}", parameters={"id": "integer"})
    assert "/id" in wrong.output
    assert "extra" in wrong.output
    for value in ("", ".", ".."):
        assert "/id" in (await refused({"id": value}, "/a/{id}/b")).output
    assert "line breaks" in (await refused({"h": "a\r\nx: y"}, headers={"X-H": "{h}"})).output


async def test_each_argument_goes_to_its_place() -> None:
    request = await sent(
        {"id": "a/b", "v": 3, "lang": "dé", "tags": ["p q", "r&s"], "off": None},
        "/items/{id}?v={v}",
        query={"key": "fixed one", "tag": "{tags}", "off": "{off}", "gone": "{gone}", "mix": "v{v}"},
        headers={"Accept-Language": "{lang}", "X-Gone": "{gone}"},
        parameters={
            "v": "integer",
            "tags": {"type": "array", "items": {"type": "string"}},
            "off": {"type": ["string", "null"]},
            "gone": {"type": "string", "required": False},
        },
    )
    assert request.path == "/items/a%2Fb?v=3&key=fixed%20one&tag=p%20q&tag=r%26s&mix=v3"
    assert request.headers["accept-language"].encode("latin-1").decode() == "dé"
    assert "x-gone" not in request.headers


async def test_a_default_is_sent_where_nothing_is_given() -> None:
    options: dict[str, Any] = {"parameters": {"n": {"type": "integer", "default": 10}}}
    assert (await sent({}, "/x", **options)).path == "/x?n=10"
    assert (await sent({"n": 3}, "/x", **options)).path == "/x?n=3"


async def test_an_argument_without_a_place_goes_to_the_query_or_the_body_as_the_method_says() -> None:
    parameters = {"a": "string", "n": {"type": "integer", "required": False}}
    assert (await sent({"a": "x", "n": 1}, parameters=parameters)).path == "/x?a=x&n=1"
    assert (await sent({"a": "x"}, parameters=parameters, method="DELETE")).path == "/x?a=x"
    posted = await sent({"a": "ü", "n": 12345678901234567890}, parameters=parameters, method="POST")
    assert (posted.path, posted.headers["content-type"]) == ("/x", "application/json")
    assert posted.body == '{"a":"ü","n":12345678901234567890}'.encode()


async def test_properties_that_a_schema_leaves_open_are_passed_on() -> None:
    """A source that allows more by its own schema still gets it (modelcontextprotocol/python-sdk#3067)."""
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert (await sent({"a": "x", "more": 1}, input_schema=schema)).path == "/x?a=x&more=1"


async def test_b048_a_misspelt_argument_is_refused_and_nothing_is_sent() -> None:
    """modelcontextprotocol/python-sdk#3067"""
    wrong = await refused({"path": "x"}, parameters={"topic": {"type": "string", "default": ""}})
    assert "path" in wrong.output
    assert "topic" in wrong.output


async def test_b048_a_text_that_looks_like_json_stays_the_text_it_is() -> None:
    """modelcontextprotocol/python-sdk#3055"""
    parameters = {"s": "string", "t": {"type": ["string", "null"]}}
    for s, t in (("123", '{"a":1}'), ("true", "null"), ("[1]", None)):
        posted = await sent({"s": s, "t": t}, parameters=parameters, method="POST")
        assert json.loads(posted.body) == {"s": s, "t": t}


# bodies


async def test_a_json_body_keeps_the_types_of_its_arguments() -> None:
    request = await sent(
        {"title": 'a "b"', "n": 5, "tags": [1, None]},
        method="POST",
        body={
            "json": {"title": "{title}", "n": "{n}", "all": ["{tags}", "n={n}"], "fixed": [True, None, 1.5], "o": "{o}"}
        },
        parameters={"n": "integer", "tags": "array", "o": {"type": "string", "required": False}},
    )
    assert json.loads(request.body) == {
        "title": 'a "b"',
        "n": 5,
        "all": [[1, None], "n=5"],
        "fixed": [True, None, 1.5],
    }


@pytest.mark.parametrize("value", [[1, 2], 5, "x", None, {"a": 1}])
async def test_b048_a_json_body_may_be_anything(value: Any) -> None:
    """tadata-org/fastapi_mcp#319"""
    request = await sent({"v": value}, method="POST", body={"json": "{v}"}, parameters={"v": {}})
    assert json.loads(request.body) == value


async def test_b048_a_form_is_sent_as_one() -> None:
    """tadata-org/fastapi_mcp#319"""
    request = await sent(
        {"a": "1 &", "b": [2, "ü"]}, method="POST", body="form", parameters={"a": "string", "b": "array"}
    )
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    assert request.body == b"a=1+%26&b=2&b=%C3%BC"


async def test_b048_an_optional_body_that_is_not_given_is_left_out() -> None:
    """tadata-org/fastapi_mcp#319"""
    request = await sent({}, method="PATCH", body={"json": "{v}"}, parameters={"v": {"required": False}})
    assert (request.body, request.headers.get("content-type")) == (b"", None)


async def test_a_file_goes_into_a_part() -> None:
    data = bytes(range(256))
    request = await sent_raw(
        {"data": base64.b64encode(data).decode(), "name": "a.png", "note": "hi"},
        method="POST",
        body={
            "multipart": {"note": "{note}", "file": {"content": "{data}", "filename": "{name}", "encoding": "base64"}}
        },
    )
    assert data in request.body
    assert b'name="file"; filename="a.png"\r\nContent-Type: image/png\r\n' in request.body
    assert b'name="note"\r\n\r\nhi\r\n' in request.body


async def sent_raw(arguments: dict[str, Any], **options: Any) -> Request:
    async def ok(_: Request) -> bytes:
        return http(204)

    async with peer(ok) as server:
        result = await http_tool("t", server.url, **options).execute(arguments)
        assert not result.is_error, result.output
        return server.requests[0]


async def test_a_file_that_is_not_base64_is_refused() -> None:
    body = {"multipart": {"file": {"content": "{data}", "encoding": "base64"}}}
    assert "base64" in (await refused({"data": "!"}, method="POST", body=body)).output


async def test_a_raw_body_is_the_text_with_its_arguments() -> None:
    raw = '{"query": "{ user { {{kept}} } }", "n": {n}, "s": "{s}"}'
    request = await sent(
        {"n": 3, "s": "x"},
        method="POST",
        body={"raw": raw, "content_type": "application/graphql"},
        parameters={"n": "integer"},
    )
    assert request.body == b'{"query": "{ user { {kept} } }", "n": 3, "s": "x"}'
    assert request.headers["content-type"] == "application/graphql"


# references and secrets


async def test_references_are_resolved_once_and_what_they_hold_is_no_placeholder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOKEN", "abc{a}${TOKEN}-long")
    request = await sent_raw({"a": "${TOKEN}"}, headers={"Authorization": "Bearer ${TOKEN}", "X-A": "{a}"})
    assert request.headers["authorization"] == "Bearer abc{a}${TOKEN}-long"
    assert request.headers["x-a"] == "${TOKEN}"


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(UnresolvedReference, match="/headers/X: the environment variable NOPE is not set"):
        http_tool("t", "http://h/", headers={"X": "${NOPE}"})


async def test_no_secret_is_in_a_result_an_error_or_a_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "sesame/open")
    async with peer(echo) as server:
        options: dict[str, Any] = {
            "headers": {"X-Whatever": "v=${TOKEN}"},
            "query": {"k": "${TOKEN}", "api_key": "literal-key"},
            "basic": "me:pass-word",
        }
        tool = http_tool("t", f"{server.url}/bot${{TOKEN}}/x", **options)
        result = await tool.execute({})
        assert server.requests[0].path == "/botsesame/open/x?k=sesame%2Fopen&api_key=literal-key"
        assert server.requests[0].headers["authorization"] == f"Basic {base64.b64encode(b'me:pass-word').decode()}"
        for shown in (repr(result), repr(tool), repr(tool.spec), repr(tool._endpoint), tool.location):  # pyright: ignore[reportPrivateUsage]
            for secret in ("sesame", "literal-key", "pass-word", base64.b64encode(b"me:pass-word").decode()):
                assert secret not in shown
    gone = await tool.execute({})
    assert gone.is_error
    assert "sesame" not in repr(gone)
    assert "/bot***/x" in gone.output


async def test_an_address_from_a_variable_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    async with peer(echo) as server:
        monkeypatch.setenv("BASE", server.url)
        result = await http_tool("t", "${BASE}/x", body={"raw": server.url}, method="POST").execute({})
        assert server.url in result.output


# hints and names


@pytest.mark.parametrize(
    ("method", "read_only", "destructive", "idempotent"),
    [
        ("GET", True, False, True),
        ("head", True, False, True),
        ("PUT", False, False, True),
        ("DELETE", False, True, True),
        ("POST", False, False, False),
        ("PATCH", False, False, False),
    ],
)
def test_the_method_tells_the_hints(method: str, read_only: bool, destructive: bool, idempotent: bool) -> None:
    hints = http_tool("t", "http://h/", method=method).annotations
    assert (hints.read_only, hints.destructive, hints.idempotent, hints.open_world) == (
        read_only,
        destructive,
        idempotent,
        True,
    )


def test_the_operator_may_know_better_than_the_method() -> None:
    hints = http_tool("t", "http://h/", method="POST", read_only=True).annotations
    assert (hints.read_only, hints.idempotent, hints.destructive) == (True, True, False)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"method": "GE T"}, "method"),
        ({"method": "CONNECT"}, "method"),
        ({"headers": {"X Y": "1"}}, "no name of a header"),
        ({"headers": {"X": "a\nb"}}, "line break"),
        ({"headers": {"Host": "other"}}, "leave it out"),
        ({"body": "yaml"}, "json, form or multipart"),
        ({"body": {"json": 1, "form": {}}}, "exactly one"),
        ({"body": {"jsn": 1}}, "unknown key 'jsn'"),
        ({"body": {"form": []}}, "table from names"),
        ({"result": "yaml"}, "result"),
        ({"basic": "me"}, "user:password"),
        ({"parameters": {"a": 1}}, "JSON Schema or a type"),
        ({"parameters": {"a": {"type": "nope"}}}, "schema cannot be used"),
        ({"parameters": {"id": {"type": "string", "required": False}}, "url": "http://h/{id}"}, "part of the path"),
        ({"input_schema": {"type": "array"}}, "object"),
        ({"input_schema": {"additionalProperties": False}, "url": "http://h/{id}"}, "no property 'id'"),
        ({"input_schema": {"type": "object"}, "parameters": {"a": "string"}}, "not both"),
    ],
)
def test_what_cannot_be_an_endpoint_is_refused_with_the_reason(options: dict[str, Any], why: str) -> None:
    given: Any = {"name": "t", "url": "http://h/", **options}
    with pytest.raises(TemplateError, match=why):
        http_tool(**given)


# results and a workbench


async def test_a_status_that_is_no_success_is_an_error_result() -> None:
    async def missing(_: Request) -> bytes:
        return http(404, "application/json", b'{"why": "gone"}')

    async with peer(missing) as server:
        result = await http_tool("t", server.url).execute({})
    assert (result.is_error, result.status, result.code) == (True, "failed", "execution_failed")
    assert result.output == f'GET {server.url}/ answered 404 Not Found: {{"why": "gone"}}'
    assert result.metadata["detail"]["status"] == 404


async def test_a_lost_request_says_that_its_outcome_is_unknown() -> None:
    async def lost(_: Request) -> None:
        return None

    async with peer(lost) as server:
        posted = await http_tool("t", server.url, method="POST").execute({})
        assert (posted.code, posted.metadata["retryable"]) == ("unknown", False)
        assert len(server.requests) == 1
        got = await http_tool("t", server.url, retries=0).execute({})
        assert (got.code, got.metadata["retryable"]) == ("unavailable", True)


async def test_a_promised_schema_is_held() -> None:
    async def number(_: Request) -> bytes:
        return http(200, "application/json", b"5")

    async with peer(number) as server:
        good = await http_tool("t", server.url, output_schema={"type": "integer"}).execute({})
        assert good.structured == 5
        bad = await http_tool("t", server.url, output_schema={"type": "string"}).execute({})
        assert bad.code == "invalid_output"


async def test_a_workbench_keeps_the_connections_of_its_tools_and_their_names() -> None:
    async with peer(echo) as server:
        one, two = http_tool("one", f"{server.url}/1"), http_tool("two", f"{server.url}/{{x}}")
        async with Workbench(one, two) as bench:
            assert [tool.name for tool in bench.tools()] == ["one", "two"]
            for _ in range(3):
                assert not (await bench.call("one")).is_error
            assert not (await bench.call("two", {"x": "y"})).is_error
            assert server.connections == 2
        result = await one.execute({})
        assert result.code == "unavailable"


async def test_a_deadline_of_the_caller_ends_the_request() -> None:
    arrived: list[Peer] = []

    async def never(request: Request) -> bytes | None:
        arrived.append(server)
        await request.writer.wait_closed()
        return None

    async with peer(never) as server, Workbench(http_tool("slow", server.url)) as bench:
        result = await bench.call("slow", timeout=0.2)
        assert (result.code, result.metadata["retryable"]) == ("timeout", True)
        assert len(arrived) == 1


def test_a_tool_shows_what_it_is_about_to_touch() -> None:
    from anykit.capabilities import InvocableRequest

    tool: HttpTool = http_tool("t", "http://user:pw@h/{a}?k=v", method="POST")
    (wanted,) = tool.preflight(InvocableRequest({"a": "x"}, "1"))
    assert (wanted.kind, wanted.target, wanted.detail) == ("network", "http://h/{a}", {"method": "POST"})


async def test_user_and_password_of_a_url_are_sent_as_basic_and_shown_nowhere() -> None:
    async with peer(echo) as server:
        tool = http_tool("t", f"http://me:pass%2Fword@127.0.0.1:{server.port}/x", query={"said": "pass/word"})
        result = await tool.execute({})
        assert server.requests[0].headers["authorization"] == f"Basic {base64.b64encode(b'me:pass/word').decode()}"
        for shown in (repr(result), repr(tool), repr(tool.spec), tool.location):
            assert "word" not in shown
