"""An OpenAPI document as a source: fetched, refreshed, trusted with secrets, and what becomes of answers."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from anykit import Workbench
from anykit.app.config import ConfigError, parse_config
from anykit.capabilities import (
    AudioPart,
    BlobPart,
    CapabilityContext,
    ExecutionFailed,
    ImagePart,
    InvocableRequest,
    InvocableResult,
    JsonObject,
    Unavailable,
)
from anykit.sources.connection import Backoff
from anykit.sources.openapi import DocumentError, OpenApiSource, Options
from anykit.sources.openapi.tools import OpenApiTool
from anykit.tools import ToolResult
from transports.peers import Answer, Request, http, peer

pytestmark = pytest.mark.anyio

SECRET = "a-very-secret-value"
QUICK = Backoff(first=0.01, most=0.02)


def document(paths: JsonObject, **more: Any) -> JsonObject:
    return {"openapi": "3.1.0", "info": {"title": "Pets", "version": "2"}, "paths": paths, **more}


def answering(schema: JsonObject, status: str = "200") -> JsonObject:
    return {status: {"description": "", "content": {"application/json": {"schema": schema}}}}


async def ready(source: OpenApiSource, status: str = "ready") -> None:
    """Wait until the source is so."""
    changed = asyncio.Event()
    unsubscribe = source.subscribe(changed.set)
    async with asyncio.timeout(5):
        while source.state.status != status:
            await changed.wait()
            changed.clear()
    unsubscribe()


async def call(source: OpenApiSource, name: str, arguments: JsonObject | None = None) -> InvocableResult:
    [tool] = [tool for tool in source.invocables() if tool.spec.name == name]
    result = await tool.invoke(InvocableRequest(input=arguments or {}, call_id="1"), CapabilityContext())
    assert isinstance(result, InvocableResult)
    return result


class Api:
    """A server with its document at /openapi.json, whose ETag is its text's length; everything else echoes."""

    def __init__(self, given: JsonObject | str) -> None:
        self.given = given
        self.answers: dict[str, bytes] = {}
        self.up = True

    async def __call__(self, request: Request) -> bytes:
        path = request.path.partition("?")[0]
        if path in self.answers:
            return self.answers[path]
        if path != "/openapi.json":
            return http(200, "application/json", json.dumps({"path": request.path}).encode())
        if not self.up:
            return http(503, "text/plain", b"down")
        text = self.given if isinstance(self.given, str) else json.dumps(self.given)
        etag = f'"{len(text)}"'
        if request.headers.get("if-none-match") == etag:
            return http(304, etag=etag)
        return http(200, "application/json", text.encode(), etag=etag)


# the document


async def test_a_document_at_a_url_is_fetched_once_and_its_servers_are_relative_to_it() -> None:
    api = Api(document({"/pets": {"get": {"operationId": "list"}}}, servers=[{"url": "../v2"}]))
    async with peer(api) as server, Workbench(f"{server.url}/openapi.json") as bench:
        await bench.settled(5)
        [tool] = bench.tools()
        result = await bench.call(tool.name)
        assert result.structured == {"path": "/v2/pets"}
        assert [view.kind for view in bench.sources()] == ["openapi"]
        assert [view.state.detail["title"] for view in bench.sources()] == ["Pets"]


async def test_a_document_in_yaml_at_a_url_is_known_for_one() -> None:
    text = "openapi: 3.0.0\ninfo: {title: Y, version: 2024-01-01}\npaths:\n  /on: {get: {operationId: yes}}\n"
    async with peer(Api(text)) as server, Workbench(f"{server.url}/openapi.json") as bench:
        await bench.settled(5)
        [tool] = bench.tools()
        assert tool.name.endswith("_yes")
        assert (await bench.call(tool.name)).structured == {"path": "/on"}


async def test_refreshing_asks_by_the_etag_and_takes_what_has_changed() -> None:
    api = Api(document({"/a": {"get": {"operationId": "a"}}}))
    async with peer(api) as server:
        source = OpenApiSource("api", f"{server.url}/openapi.json", backoff=QUICK)
        told: list[int] = []
        source.subscribe(lambda: told.append(1))
        await source.start()
        await ready(source)
        assert await source.refresh() is False
        assert server.requests[-1].headers["if-none-match"]
        told.clear()
        api.given = document({"/a": {"get": {"operationId": "a"}}, "/b": {"get": {"operationId": "b"}}})
        assert await source.refresh() is True
        assert [tool.spec.name for tool in source.invocables()] == ["a", "b"]
        assert told
        api.given = "{"
        with pytest.raises(Exception, match="not JSON"):
            await source.refresh()
        assert [tool.spec.name for tool in source.invocables()] == ["a", "b"]
        await source.close()


async def test_an_unreachable_document_is_a_state_and_is_tried_again() -> None:
    api = Api(document({"/a": {"get": {"operationId": "a"}}}))
    api.up = False
    async with peer(api) as server:
        source = OpenApiSource("api", f"{server.url}/openapi.json", backoff=QUICK)
        await source.start()
        await ready(source, "failed")
        assert "503" in source.state.reason
        assert source.state.retry_at is not None
        api.up = True
        await ready(source)
        assert len(source.invocables()) == 1
        await source.close()


async def test_a_page_for_people_says_where_the_document_is() -> None:
    async def page(_: Request) -> bytes:
        return http(200, "text/html", b"<html>Swagger UI</html>")

    async with peer(page) as server:
        source = OpenApiSource("api", f"{server.url}/docs", backoff=QUICK)
        await source.start()
        await ready(source, "failed")
        assert "/openapi.json" in source.state.reason
        await source.close()


async def test_swagger_2_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text('{"swagger": "2.0", "info": {}, "paths": {}}')
    async with Workbench(str(tmp_path / "old.json")) as bench:
        [view] = bench.sources()
        assert view.state.status == "failed"
        assert "Swagger 2.0" in view.state.reason
        assert "swagger2openapi" in view.state.reason


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"openapi": "4.0.0", "paths": {}}', "3.0, 3.1 and 3.2"),
        ('{"openapi": "3.0.0", "paths": {"a": }', "not JSON"),
        ("openapi: 3.0.0\npaths: [1", "not YAML"),
        ("openapi: 3.0.0\na: &a [x]\nb: *c\n", "alias"),
        ('{"openapi": "3.0.0", "x": ' + "[" * 200 + "]" * 200 + "}", "nested deeper"),
        ("openapi: 3.0.0\n" + "x: " + "[" * 200 + "]" * 200, "nested deeper"),
        ('{"openapi": "3.0.0", "x": NaN}', "NaN"),
        ("info: {}", "no `openapi`"),
        ("[]", "no object"),
    ],
)
def test_a_document_that_cannot_be_used_says_why_and_which_file(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "api.yaml"
    file.write_text(text)
    with pytest.raises(DocumentError, match=says) as refused:
        OpenApiSource("api", file)
    assert str(file) in str(refused.value)


def test_aliases_count_as_often_as_they_are_used(tmp_path: Path) -> None:
    lines = ["openapi: 3.0.0", "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    (tmp_path / "bomb.yaml").write_text("\n".join(lines))
    with pytest.raises(DocumentError, match="aliases followed"):
        OpenApiSource("api", tmp_path / "bomb.yaml")


def test_yaml_means_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "api.yaml").write_text(
        """
openapi: 3.1
info: {title: no, version: 1.10}
x-common: &common
  description: shared
  operationId: replaced
paths:
  /on:
    get:
      <<: *common
      operationId: off
      parameters:
        - {name: yes, in: query, schema: {type: string, enum: [on, off, yes, no, 2024-01-01, 12:30, 1_000, 0o17, 0x1F, ~]}}
      responses: {200: {description: !!python/object/apply:os.system [exit]}}
"""
    )
    source = OpenApiSource("api", tmp_path / "api.yaml")
    [tool] = source.invocables()
    assert tool.spec.name == "off"
    assert tool.spec.description == "shared"
    enum = tool.spec.input_schema["properties"]["yes"]["enum"]
    assert enum == ["on", "off", "yes", "no", "2024-01-01", "12:30", "1_000", 15, 31, None]


async def test_documents_that_the_operator_lists_are_followed_from_files_and_from_the_network(tmp_path: Path) -> None:
    schema = {
        "A": {"type": "object", "properties": {"x": {"$ref": "#/B"}, "me": {"$ref": "#/A"}}},
        "B": {"type": "integer"},
    }
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "a.json").write_text(json.dumps(schema))

    async def part(_: Request) -> bytes:
        return http(200, "application/json", json.dumps(schema).encode())

    def of(reference: str) -> JsonObject:
        return {"required": True, "content": {"application/json": {"schema": {"$ref": reference}}}}

    async with peer(part) as server:
        paths: JsonObject = {
            "/file": {"post": {"operationId": "file", "requestBody": of("./schemas/a.json#/A")}},
            "/net": {"post": {"operationId": "net", "requestBody": of(f"{server.url}/a.json#/A")}},
        }
        (tmp_path / "api.json").write_text(json.dumps(document(paths)))
        only_files = OpenApiSource("api", tmp_path / "api.json", Options(allow_refs=("schemas/*",)))
        assert [tool.spec.name for tool in only_files.invocables()] == ["file"]
        assert server.requests == []
        both = OpenApiSource("api", tmp_path / "api.json", Options(allow_refs=("schemas/*", f"{server.url}/*")))
        await both.start()
        await ready(both)
        for tool in both.invocables():
            assert tool.spec.input_schema["properties"]["x"] == {"type": "integer"}
            assert list(tool.spec.input_schema["properties"]) == ["x", "me"]
        assert len(server.requests) == 1
        await both.close()


async def test_a_document_from_the_network_never_leads_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"A": {"type": "object"}}')
    place = (tmp_path / "s.json").as_uri()
    body = {"required": True, "content": {"application/json": {"schema": {"$ref": f"{place}#/A"}}}}
    api = Api(document({"/a": {"post": {"operationId": "a", "requestBody": body}}}))
    async with peer(api) as server:
        source = OpenApiSource("api", f"{server.url}/openapi.json", Options(allow_refs=("file:*",)), backoff=QUICK)
        await source.start()
        await ready(source)
        assert source.invocables() == ()
        assert "cannot refer to a file" in source.left_out[0].reason
        await source.close()


# selection


PATHS: JsonObject = {
    "/pets": {
        "get": {"operationId": "listPets", "tags": ["pets"]},
        "post": {"operationId": "addPet", "tags": ["pets"]},
    },
    "/pets/{id}": {"delete": {"operationId": "dropPet", "tags": ["pets", "danger"]}},
    "/shops/{id}/pets": {"get": {"operationId": "shopPets", "tags": ["shops"]}},
}


@pytest.mark.parametrize(
    ("include", "exclude", "names"),
    [
        (["tag:Pets"], [], ["listPets", "addPet", "dropPet"]),
        (["path:/pets"], [], ["listPets", "addPet"]),
        (["/pets/**"], [], ["listPets", "addPet", "dropPet"]),
        (["path:/*/{id}/*"], [], ["shopPets"]),
        (["operation:*Pets"], [], ["listPets", "shopPets"]),
        (["method:get"], ["shops"], ["listPets"]),
        (["GET /**"], [], ["listPets", "shopPets"]),
        ([], ["method:DELETE", "tag:shops"], ["listPets", "addPet"]),
    ],
)
def test_operations_are_chosen_by_tag_path_operation_and_method(
    include: list[str], exclude: list[str], names: list[str], tmp_path: Path
) -> None:
    (tmp_path / "api.json").write_text(json.dumps(document(PATHS)))
    options = Options(include=tuple(include), exclude=tuple(exclude))
    source = OpenApiSource("api", tmp_path / "api.json", options)
    assert [tool.spec.name for tool in source.invocables()] == names


def test_a_rule_that_matches_nothing_is_told_with_what_may_have_been_meant(tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(json.dumps(document(PATHS)))
    source = OpenApiSource(
        "api", tmp_path / "api.json", Options(include=("tag:petz", "method:GET"), exclude=("nothing",))
    )
    told = {one.place: one.reason for one in source.left_out}
    assert "did you mean 'pets'" in told["rule tag:petz"]
    assert "matches no operation" in told["rule nothing"]
    assert "rule method:GET" not in told


def test_hints_come_from_the_method(tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(
        json.dumps(document({"/x": {m: {"operationId": m} for m in ("get", "put", "post", "delete")}}))
    )
    hints = {t.spec.name: t.spec.annotations for t in OpenApiSource("api", tmp_path / "api.json").invocables()}
    told = {name: (one.read_only, one.destructive, one.idempotent) for name, one in hints.items() if one is not None}
    assert told == {
        "get": (True, False, True),
        "put": (False, None, True),
        "post": (False, None, False),
        "delete": (False, True, True),
    }


# servers


async def test_without_an_address_a_call_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(json.dumps(document({"/a": {"get": {"operationId": "a"}}})))
    source = OpenApiSource("api", tmp_path / "api.json")
    with pytest.raises(ExecutionFailed, match='server = "https://'):
        await call(source, "a")
    assert "a" in source.state.detail["not_configured"]


@pytest.mark.parametrize(
    ("server", "variables", "path"),
    [
        ("", {}, "/eu/v1/a"),
        ("staging", {}, "/staging/a"),
        ("", {"region": "us"}, "/us/v1/a"),
        ("BASE/own/", {}, "/own/a"),
    ],
)
async def test_servers_are_chosen_by_the_operator(
    server: str, variables: dict[str, str], path: str, tmp_path: Path
) -> None:
    async with peer(Api({})) as here:
        servers = [
            {"url": f"{here.url}/{{region}}/v1", "variables": {"region": {"default": "eu", "enum": ["eu", "us"]}}},
            {"url": f"{here.url}/staging", "description": "staging"},
        ]
        (tmp_path / "api.json").write_text(json.dumps(document({"/a": {"get": {"operationId": "a"}}}, servers=servers)))
        options = Options(server=server.replace("BASE", here.url), server_variables=variables)
        source = OpenApiSource("api", tmp_path / "api.json", options)
        assert (await call(source, "a")).structured == {"path": path}
        await source.close()


@pytest.mark.parametrize(
    ("server", "variables", "says"),
    [("production", {}, "lists no server 'production'"), ("", {"region": "moon"}, "none of eu, us")],
)
async def test_a_choice_that_there_is_not_is_told(
    server: str, variables: dict[str, str], says: str, tmp_path: Path
) -> None:
    servers = [{"url": "http://127.0.0.1:9/{region}", "variables": {"region": {"default": "eu", "enum": ["eu", "us"]}}}]
    (tmp_path / "api.json").write_text(json.dumps(document({"/a": {"get": {"operationId": "a"}}}, servers=servers)))
    source = OpenApiSource("api", tmp_path / "api.json", Options(server=server, server_variables=variables))
    with pytest.raises(ExecutionFailed, match=says):
        await call(source, "a")


# security


SCHEMES: JsonObject = {
    "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "query": {"type": "apiKey", "in": "query", "name": "key"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "bearer": {"type": "http", "scheme": "Bearer"},
    "basic": {"type": "http", "scheme": "basic"},
    "openid": {"type": "openIdConnect", "openIdConnectUrl": "https://x"},
    "oauth": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "/token", "scopes": {}}}},
    "mutual": {"type": "mutualTLS"},
}


def secured(url: str, *requirements: Any, operation: Any = None) -> JsonObject:
    entry: JsonObject = {"operationId": "a"}
    if operation is not None:
        entry["security"] = operation
    return document(
        {"/a": {"get": entry}},
        servers=[{"url": url}],
        security=list(requirements),
        components={"securitySchemes": SCHEMES},
    )


@pytest.mark.parametrize(
    ("scheme", "secret", "header", "value"),
    [
        ("header", SECRET, "x-key", SECRET),
        ("cookie", SECRET, "cookie", f"sid={SECRET}"),
        ("bearer", SECRET, "authorization", f"Bearer {SECRET}"),
        ("openid", SECRET, "authorization", f"Bearer {SECRET}"),
        ("oauth", SECRET, "authorization", f"Bearer {SECRET}"),
        ("basic", f"me:{SECRET}", "authorization", "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode()),
        (
            "basic",
            {"username": "me", "password": "p:w"},
            "authorization",
            "Basic " + base64.b64encode(b"me:p:w").decode(),
        ),
    ],
)
async def test_secrets_go_where_their_scheme_says_and_are_never_arguments(
    scheme: str, secret: Any, header: str, value: str, tmp_path: Path
) -> None:
    async with peer(Api({})) as server:
        (tmp_path / "api.json").write_text(json.dumps(secured(server.url, {scheme: []})))
        source = OpenApiSource("api", tmp_path / "api.json", Options(security={scheme: secret}))
        await call(source, "a")
        assert server.requests[-1].headers[header] == value
        [tool] = source.invocables()
        assert tool.spec.input_schema["properties"] == {}
        assert SECRET not in repr(source) + repr(source.options) + repr(tool.spec)
        await source.close()


async def test_a_key_in_the_query_is_not_shown_by_errors_or_answers(tmp_path: Path) -> None:
    api = Api({})
    api.answers["/a"] = http(401, "text/plain", f"the key {SECRET} is not known".encode())
    async with peer(api) as server:
        (tmp_path / "api.json").write_text(json.dumps(secured(server.url, {"query": []})))
        source = OpenApiSource("api", tmp_path / "api.json", Options(security={"query": SECRET}))
        with pytest.raises(ExecutionFailed) as failed:
            await call(source, "a")
        assert server.requests[-1].path == f"/a?key={SECRET}"
        assert "401" in failed.value.message
        assert SECRET not in failed.value.message + json.dumps(failed.value.detail)
        await source.close()


REQUIRED: list[tuple[Any, Any, dict[str, str], dict[str, str]]] = [
    ([{"header": []}, {"bearer": []}], None, {"bearer": SECRET}, {"authorization": f"Bearer {SECRET}"}),
    (
        [{"header": [], "bearer": []}],
        None,
        {"bearer": "b", "header": "h"},
        {"authorization": "Bearer b", "x-key": "h"},
    ),
    ([{"header": []}, {}], None, {}, {}),
    ([{"header": []}], [], {"header": SECRET}, {}),
    ([{"header": []}], [{"bearer": []}], {"header": "h", "bearer": "b"}, {"authorization": "Bearer b"}),
    ([{}, {"header": []}], None, {"header": "h"}, {"x-key": "h"}),
]


@pytest.mark.parametrize(("requirements", "operation", "secrets", "sent"), REQUIRED)
async def test_requirements_are_alternatives_of_schemes_together(
    requirements: list[Any], operation: Any, secrets: dict[str, str], sent: dict[str, str], tmp_path: Path
) -> None:
    async with peer(Api({})) as server:
        (tmp_path / "api.json").write_text(json.dumps(secured(server.url, *requirements, operation=operation)))
        source = OpenApiSource("api", tmp_path / "api.json", Options(security=secrets))
        await call(source, "a")
        got = {name: value for name, value in server.requests[-1].headers.items() if name in ("authorization", "x-key")}
        assert got == sent
        await source.close()


MISSING: list[tuple[Any, str]] = [
    (
        [{"header": []}],
        r"'header' \(an API key, in the header 'X-Key'\).*security = \{ header = \"\$\{HEADER\}\" \}",
    ),
    ([{"header": [], "basic": []}], "'header' .* and 'basic' "),
    ([{"bearer": []}, {"oauth": ["x"]}], "'bearer' .* or 'oauth' "),
    ([{"nowhere": []}], "does not describe"),
]


@pytest.mark.parametrize(("requirements", "says"), MISSING)
async def test_what_is_missing_is_listed_and_a_call_says_how_to_set_it(
    requirements: list[Any], says: str, tmp_path: Path
) -> None:
    async with peer(Api({})) as server:
        (tmp_path / "api.json").write_text(json.dumps(secured(server.url, *requirements)))
        async with Workbench(str(tmp_path / "api.json")) as bench:
            result = await bench.call("api_a")
            assert result.code == "not_configured"
            with pytest.raises(AssertionError, match=says):
                raise AssertionError(result.output)
            [view] = bench.sources()
            assert "a" in view.state.detail["not_configured"]
        assert server.requests == []


class Issuer(Api):
    """An API that takes tokens of its own, and only the newest."""

    def __init__(self) -> None:
        super().__init__({})
        self.forms: list[dict[str, list[str]]] = []
        self.issued = 0

    async def __call__(self, request: Request) -> bytes:
        if request.path == "/token":
            self.issued += 1
            self.forms.append(parse_qs(request.body.decode()))
            answer = {"access_token": f"token-{self.issued:06}", "expires_in": 3600, "token_type": "Bearer"}
            return http(200, "application/json", json.dumps(answer).encode())
        if request.headers.get("authorization") != f"Bearer token-{self.issued:06}":
            return http(401, "application/json", b'{"error": "expired"}')
        return http(200, "application/json", b'{"ok": true}')


async def test_client_credentials_fetch_a_token_keep_it_and_fetch_another_when_it_is_refused() -> None:
    issuer = Issuer()
    async with peer(issuer) as server:
        issuer.given = ""
        api = secured(server.url, {"oauth": ["read", "write"]})
        issuer_document = json.dumps(api)

        async def both(request: Request) -> bytes:
            if request.path == "/openapi.json":
                return http(200, "application/json", issuer_document.encode())
            return await issuer(request)

        server.answer = both
        secret = {"client_id": "me", "client_secret": SECRET}
        source = OpenApiSource("api", f"{server.url}/openapi.json", Options(security={"oauth": secret}), backoff=QUICK)
        await source.start()
        await ready(source)
        assert (await call(source, "a")).structured == {"ok": True}
        assert (await call(source, "a")).structured == {"ok": True}
        assert issuer.forms == [{"grant_type": ["client_credentials"], "scope": ["read write"]}]
        issuer.issued += 1  # what was given before is over
        assert (await call(source, "a")).structured == {"ok": True}
        assert len(issuer.forms) == 2
        await source.close()


async def test_a_document_from_the_network_does_not_say_where_secrets_go() -> None:
    async with peer(Api({})) as elsewhere:
        api = Api(secured(elsewhere.url, {"header": []}))
        async with peer(api) as server:
            url = f"{server.url}/openapi.json"
            source = OpenApiSource("api", url, Options(security={"header": SECRET}), backoff=QUICK)
            await source.start()
            await ready(source)
            with pytest.raises(ExecutionFailed, match=f'server = "{elsewhere.url}"'):
                await call(source, "a")
            assert elsewhere.requests == []
            await source.close()
            named = OpenApiSource("api", url, Options(security={"header": SECRET}, server=elsewhere.url), backoff=QUICK)
            await named.start()
            await ready(named)
            await call(named, "a")
            assert elsewhere.requests[-1].headers["x-key"] == SECRET
            assert all("x-key" not in request.headers for request in server.requests)
            await named.close()


async def test_headers_of_the_table_go_with_calls_and_those_for_the_document_with_the_document() -> None:
    api = Api(document({"/a": {"get": {"operationId": "a"}}}))
    async with peer(api) as server:
        options = Options(headers={"X-Mine": "1"}, document_headers={"X-Doc": "2"})
        source = OpenApiSource("api", f"{server.url}/openapi.json", options, backoff=QUICK)
        await source.start()
        await ready(source)
        await call(source, "a")
        of_document, of_call = server.requests[0].headers, server.requests[-1].headers
        assert (of_document.get("x-doc"), of_document.get("x-mine")) == ("2", None)
        assert (of_call.get("x-doc"), of_call.get("x-mine")) == (None, "1")
        await source.close()


# answers


async def one_answer(tmp_path: Path, answer: bytes, responses: JsonObject | None = None) -> ToolResult:
    async def always(_: Request) -> bytes:
        return answer

    async with peer(always) as server:
        entry: JsonObject = {"operationId": "a", "responses": responses or {}}
        (tmp_path / "api.json").write_text(json.dumps(document({"/a": {"get": entry}}, servers=[{"url": server.url}])))
        async with Workbench(str(tmp_path / "api.json")) as bench:
            return await bench.call("api_a")


async def test_json_is_structured_text_is_text_and_nothing_is_nothing(tmp_path: Path) -> None:
    assert (await one_answer(tmp_path, http(200, "application/json", b'{"a": [1]}'))).structured == {"a": [1]}
    assert (await one_answer(tmp_path, http(200, "application/hal+json", b"[1, 2]"))).structured == [1, 2]
    assert (await one_answer(tmp_path, http(200, "text/plain; charset=utf-8", "ü".encode()))).output == "ü"
    empty = await one_answer(tmp_path, http(204))
    assert (empty.is_error, empty.output, empty.metadata["status"]) == (False, "", 204)


@pytest.mark.parametrize(
    ("media_type", "kind"), [("image/png", ImagePart), ("audio/mpeg", AudioPart), ("application/pdf", BlobPart)]
)
async def test_what_is_no_text_is_kept_as_a_part(media_type: str, kind: type[Any], tmp_path: Path) -> None:
    result = await one_answer(tmp_path, http(200, media_type, b"\x00\x01"))
    [part] = result.content
    assert isinstance(part, kind)
    assert part.model_dump()["data"] == b"\x00\x01"
    assert part.model_dump()["media_type"] == media_type


async def test_a_problem_is_an_error_with_its_status_and_an_excerpt(tmp_path: Path) -> None:
    problem = json.dumps({"title": "Out of credit", "status": 403, "detail": "x" * 5000}).encode()
    result = await one_answer(tmp_path, http(403, "application/problem+json", problem))
    assert result.is_error
    assert "403" in result.output
    assert "Out of credit" in result.output
    assert len(result.output) < 2500


async def test_an_answer_that_does_not_fit_its_schema_is_reported_and_kept(tmp_path: Path) -> None:
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    result = await one_answer(tmp_path, http(200, "application/json", b'{"n": "x", "m": 1}'), answering(schema))
    assert not result.is_error
    assert result.structured == {"n": "x", "m": 1}
    assert "/n" in result.metadata["not_as_described"][0]


async def test_a_promise_that_was_broken_is_not_made_again(tmp_path: Path) -> None:
    schema = {"type": "object", "required": ["n"]}
    async with peer(Api({})) as server:
        entry = {"operationId": "a", "responses": answering(schema)}
        (tmp_path / "api.json").write_text(json.dumps(document({"/a": {"get": entry}}, servers=[{"url": server.url}])))
        async with Workbench(str(tmp_path / "api.json")) as bench:
            assert bench.tools()[0].output_schema == schema
            await bench.call("api_a")
            assert bench.tools()[0].output_schema is None
            assert (await bench.call("api_a")).structured == {"path": "/a"}


@pytest.mark.parametrize(
    ("responses", "promises"),
    [
        (answering({"type": "object"}), True),
        (answering({"type": "object"}, "2XX"), True),
        (answering({"type": "array"}), False),
        ({**answering({"type": "object"}), "204": {"description": "nothing"}}, False),
        ({**answering({"type": "object"}), "404": {"description": "none"}}, True),
        ({"default": answering({"type": "object"})["200"]}, False),
        (answering({"allOf": [{"type": "object"}, {"required": ["a"]}]}), True),
        (answering({"oneOf": [{"type": "object"}, {"type": "string"}]}), False),
        (answering({"type": ["object", "null"]}), False),
    ],
)
def test_only_an_answer_that_is_always_an_object_is_promised(
    responses: JsonObject, promises: bool, tmp_path: Path
) -> None:
    (tmp_path / "api.json").write_text(
        json.dumps(document({"/a": {"get": {"operationId": "a", "responses": responses}}}))
    )
    [tool] = OpenApiSource("api", tmp_path / "api.json").invocables()
    assert isinstance(tool, OpenApiTool)
    assert (tool.output_schema is not None) is promises


async def test_lost_answers_are_unknown_unless_repeating_does_no_harm(tmp_path: Path) -> None:
    async def gone(_: Request) -> bytes | None:
        return None

    lost: Answer = gone
    async with peer(lost) as server:
        paths = {"/a": {"post": {"operationId": "post"}, "put": {"operationId": "put"}}}
        (tmp_path / "api.json").write_text(json.dumps(document(paths, servers=[{"url": server.url}])))
        async with Workbench(str(tmp_path / "api.json")) as bench:
            assert (await bench.call("api_post")).code == "unknown"
            assert len(server.requests) == 1
            assert (await bench.call("api_put")).code == "unavailable"
            assert [request.method for request in server.requests].count("PUT") > 1


# configuration


async def test_a_table_says_everything_that_a_source_can_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PETS_KEY", SECRET)
    async with peer(Api({})) as server:
        (tmp_path / "api.json").write_text(json.dumps(secured("http://127.0.0.1:9", {"header": []})))
        table = {
            "target": "./api.json",
            "name": "pets",
            "server": server.url,
            "security": {"header": "${PETS_KEY}"},
            "include": ["operation:a"],
            "timeout": 5,
        }
        config = parse_config({"sources": [table]}, tmp_path / "anykit.toml")
        assert SECRET not in repr(config)
        async with Workbench(config=config) as bench:
            assert not (await bench.call("pets_a")).is_error
        assert server.requests[-1].headers["x-key"] == SECRET


def test_a_wrong_key_of_the_table_is_named() -> None:
    with pytest.raises(ConfigError, match="did you mean security"):
        parse_config({"sources": [{"target": "a.json", "kind": "openapi", "securty": {}}]})


async def test_a_choice_of_operations_needs_no_kind_where_the_target_is_a_document(tmp_path: Path) -> None:
    (tmp_path / "api.yaml").write_text(json.dumps(document(PATHS)))
    async with Workbench({"target": str(tmp_path / "api.yaml"), "exclude": ["tag:pets"]}) as bench:
        assert [tool.name for tool in bench.tools()] == ["api_shopPets"]


async def test_what_is_left_out_and_secrets_without_a_scheme_are_reports_of_the_catalogue(tmp_path: Path) -> None:
    bad = {"get": {"operationId": "b", "parameters": [{"name": "x", "in": "nowhere"}]}}
    (tmp_path / "api.json").write_text(json.dumps(document({"/a": {"get": {"operationId": "a"}}, "/b": bad})))
    table = {"target": str(tmp_path / "api.json"), "security": {"kee": SECRET}}
    async with Workbench(table) as bench:
        [view] = bench.sources()
        assert view.tools == ("api_a",)
        told = "\n".join(view.reports)
        assert "GET /b: left out: parameters[0]: 'x' is in 'nowhere'" in told
        assert "#/paths/~1b/get" in told
        assert "security.kee: the document has no such scheme" in told
        assert SECRET not in told


async def test_a_document_from_the_network_does_not_lead_to_metadata_services() -> None:
    api = Api(document({"/a": {"get": {"operationId": "a"}}}, servers=[{"url": "http://169.254.169.254/latest"}]))
    async with peer(api) as server:
        source = OpenApiSource("api", f"{server.url}/openapi.json", backoff=QUICK)
        await source.start()
        await ready(source)
        with pytest.raises(Unavailable, match=r"refused.*169\.254\.169\.254"):
            await call(source, "a")
        await source.close()


async def test_a_file_is_read_again_when_it_is_refreshed(tmp_path: Path) -> None:
    file = tmp_path / "api.json"
    file.write_text(json.dumps(document({"/a": {"get": {"operationId": "a"}}})))
    source = OpenApiSource("api", file)
    told: list[int] = []
    source.subscribe(lambda: told.append(1))
    assert await source.refresh() is False
    assert told == []
    file.write_text(json.dumps(document({"/b": {"get": {"operationId": "b"}}})))
    assert await source.refresh() is True
    assert [tool.spec.name for tool in source.invocables()] == ["b"]
    assert told == [1]
    file.write_text("{")
    with pytest.raises(DocumentError, match="not JSON"):
        await source.refresh()
    assert [tool.spec.name for tool in source.invocables()] == ["b"]
