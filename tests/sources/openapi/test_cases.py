"""Public reports of what other tools got wrong with OpenAPI documents, each with its tracker issue."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from anykit import Workbench
from anykit.capabilities import JsonObject
from anykit.sources.openapi import LeftOut, OpenApiSource
from transports.peers import Request, http, peer

pytestmark = pytest.mark.anyio

VALID = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


async def echo(request: Request) -> bytes:
    body = {"method": request.method, "path": request.path, "body": request.body.decode("utf-8", "replace")}
    return http(200, "application/json", json.dumps(body).encode())


def document(paths: JsonObject, *, version: str = "3.0.3", url: str = "", **components: Any) -> JsonObject:
    return {
        "openapi": version,
        "info": {"title": "t", "version": "1"},
        "servers": [{"url": url or "http://127.0.0.1:9"}],
        "paths": paths,
        "components": components,
    }


def written(folder: Path, value: JsonObject, name: str = "api.json") -> str:
    (folder / name).write_text(json.dumps(value), "utf-8")
    return str(folder / name)


def body(schema: JsonObject, media_type: str = "application/json", *, required: bool = True) -> JsonObject:
    return {"required": required, "content": {media_type: {"schema": schema}}}


async def test_b095_query_arrays_and_objects_are_written_by_their_styles(tmp_path: Path) -> None:
    """PrefectHQ/fastmcp#5060: query arrays ignore the style-specific explode default."""
    array = {"type": "array", "items": {"type": "string"}}
    parameters = [
        {"name": "tag", "in": "query", "schema": array},
        {"name": "flat", "in": "query", "explode": False, "schema": array},
        {"name": "pipe", "in": "query", "style": "pipeDelimited", "schema": array},
        {"name": "space", "in": "query", "style": "spaceDelimited", "schema": array},
        {"name": "f", "in": "query", "style": "deepObject", "explode": True, "schema": {"type": "object"}},
        {"name": "flag", "in": "query", "schema": {"type": "boolean"}},
        {"name": "text", "in": "query", "schema": {"type": "string"}},
    ]
    wanted: list[tuple[JsonObject, str]] = [
        ({"tag": ["p", "q"]}, "tag=p&tag=q"),
        ({"flat": ["p", "q"]}, "flat=p,q"),
        ({"pipe": ["p", "q"]}, "pipe=p|q"),
        ({"space": ["p", "q"]}, "space=p%20q"),
        ({"f": {"k": 1}}, "f[k]=1"),
        ({"tag": [], "text": None, "pipe": None, "f": None}, ""),
        ({"flag": True}, "flag=true"),
        ({"flag": False}, "flag=false"),
        ({"text": "a&b,c"}, "text=a%26b%2Cc"),
        ({"flat": ["a,b", "c&d"]}, "flat=a%2Cb,c%26d"),
    ]
    async with peer(echo) as server:
        target = written(
            tmp_path, document({"/s": {"get": {"operationId": "s", "parameters": parameters}}}, url=server.url)
        )
        async with Workbench(target) as bench:
            for arguments, query in wanted:
                result = await bench.call("api_s", arguments)
                assert not result.is_error, result.output
                assert server.requests[-1].path == f"/s{'?' if query else ''}{query}"


PROPS: JsonObject = {
    "p": {"type": "number", "nullable": True},
    "e": {"type": "string", "enum": ["A"], "nullable": True},
    "r": {"allOf": [{"$ref": "#/components/schemas/X"}], "nullable": True},
    "n": {"type": "string", "nullable": False},
    "m": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
}


async def test_b096_what_only_openapi_3_0_says_is_converted_in_requests_answers_and_parameters(tmp_path: Path) -> None:
    """PrefectHQ/fastmcp#3744: nullable fields in input parameter schemas not converted to JSON Schema."""
    parameters = [{"name": name, "in": "query", "schema": schema} for name, schema in PROPS.items()]
    answers = {
        "200": {"description": "", "content": {"application/json": {"schema": {"type": "object", "properties": PROPS}}}}
    }
    paths: JsonObject = {
        "/q": {"get": {"operationId": "q", "parameters": parameters, "responses": answers}},
        "/b": {"post": {"operationId": "b", "requestBody": body({"type": "object", "properties": PROPS})}},
    }
    async with peer(echo) as server:
        target = written(tmp_path, document(paths, url=server.url, schemas={"X": {"type": "string"}}))
        async with Workbench(target) as bench:
            for tool in ("api_q", "api_b"):
                for name, value, fits in (
                    *(("p", None, True), ("e", None, True), ("r", None, True), ("n", None, False)),
                    *(("m", 0, False), ("m", 0.1, True), ("e", "B", False), ("p", 1, True)),
                ):
                    result = await bench.call(tool, {name: value})
                    assert result.is_error is not fits, (tool, name, value, result.output)
            for tool in bench.tools():
                assert "nullable" not in json.dumps([tool.input_schema, tool.output_schema])
            [answer] = [tool.output_schema for tool in bench.tools() if tool.name == "api_q"]
            assert answer is not None
            assert answer["properties"]["e"] == {"type": ["string", "null"], "enum": ["A", None]}
            assert answer["properties"]["m"] == {"type": "number", "exclusiveMinimum": 0}


async def test_b096_a_document_of_3_1_is_not_altered(tmp_path: Path) -> None:
    """PrefectHQ/fastmcp#3744, its other half."""
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": ["string", "null"], "nullable": False, "example": 1},
            "b": {"exclusiveMinimum": 0},
        },
        "additionalProperties": {"type": "integer"},
    }
    paths = {"/b": {"post": {"operationId": "b", "requestBody": body(schema)}}}
    source = OpenApiSource("api", Path(written(tmp_path, document(paths, version="3.1.0"))))
    [tool] = source.invocables()
    assert tool.spec.input_schema["properties"]["body"] == schema


NAMED: list[tuple[str, str, str | None]] = [
    ("get", "/pets", "pet/all"),
    ("get", "/zoo", "pet.all"),
    ("get", "/x", None),
    ("post", "/x", None),
    ("get", "/a", "dup"),
    ("post", "/a", "dup"),
]


async def test_b098_missing_repeated_and_equal_operation_ids_give_distinct_stable_names(tmp_path: Path) -> None:
    """BerriAI/litellm#26788: sanitization silently drops tools on name collision."""
    seen: list[dict[str, str]] = []
    async with peer(echo) as server:
        for turn in range(3):
            order = list(NAMED)
            random.Random(turn).shuffle(order)
            paths: JsonObject = {}
            for method, path, given in order:
                paths.setdefault(path, {})[method] = {"operationId": given} if given else {}
            folder = tmp_path / str(turn)
            folder.mkdir()
            async with Workbench(written(folder, document(paths, url=server.url))) as bench:
                found: dict[str, str] = {}
                for tool in bench.tools():
                    result = await bench.call(tool.name, {})
                    found[tool.name] = f"{result.structured['method']} {result.structured['path']}"
                seen.append(found)
    assert seen[0] == seen[1] == seen[2]
    assert all(VALID.fullmatch(name) for name in seen[0])
    assert sorted(seen[0].values()) == sorted(f"{method.upper()} {path}" for method, path, _ in NAMED)
    assert {"api_get_x", "api_post_x", "api_get_a", "api_post_a"} <= seen[0].keys()


async def test_b100_bodies_of_every_kind_have_arguments_and_arrive_as_they_are(tmp_path: Path) -> None:
    """tadata-org/fastapi_mcp#319: request body handling ignores non-object schemas and suffers from name collisions."""
    one = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
    two = {"type": "object", "required": ["b"], "properties": {"b": {"type": "integer"}}, "additionalProperties": False}
    form = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    upload = {"type": "object", "properties": {"file": {"type": "string", "format": "binary"}}}
    parameters = [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}]
    paths: JsonObject = {
        "/bulk": {
            "post": {"operationId": "bulk", "requestBody": body({"type": "array", "items": {"type": "integer"}})}
        },
        "/n": {"post": {"operationId": "n", "requestBody": body({"type": "integer"})}},
        "/form": {"post": {"operationId": "form", "requestBody": body(form, "application/x-www-form-urlencoded")}},
        "/up": {"post": {"operationId": "up", "requestBody": body(upload, "multipart/form-data")}},
        "/u": {"post": {"operationId": "u", "requestBody": body({"oneOf": [one, two]})}},
        "/patch": {"patch": {"operationId": "patch", "requestBody": body(two, required=False)}},
        "/same/{id}": {
            "put": {
                "operationId": "same",
                "parameters": parameters,
                "requestBody": body({"type": "object", "properties": {"id": {"type": "string"}}}),
            }
        },
        "/odd": {"post": {"operationId": "odd", "requestBody": body({"type": "object"}, "application/vnd.odd")}},
    }
    async with peer(echo) as server:
        target = written(tmp_path, document(paths, url=server.url))
        async with Workbench(target) as bench:
            assert "api_odd" not in [tool.name for tool in bench.tools()]
            assert len(bench.tools()) == 7

            async def sent(name: str, arguments: JsonObject) -> tuple[str, bytes]:
                result = await bench.call(f"api_{name}", arguments)
                assert not result.is_error, result.output
                return server.requests[-1].headers.get("content-type", ""), server.requests[-1].body

            assert await sent("bulk", {"body": [1, 2]}) == ("application/json", b"[1,2]")
            assert await sent("n", {"body": 5}) == ("application/json", b"5")
            kind, data = await sent("form", {"a": 1, "b": 2})
            assert (kind, parse_qsl(data.decode())) == ("application/x-www-form-urlencoded", [("a", "1"), ("b", "2")])
            kind, data = await sent("up", {"file": "aGVsbG8="})
            assert kind.startswith("multipart/form-data; boundary=")
            assert b'name="file"; filename="file"' in data
            assert b"\r\n\r\nhello\r\n" in data
            assert await sent("u", {"body": {"b": 1}}) == ("application/json", b'{"b":1}')
            assert await sent("patch", {}) == ("", b"")
            assert await sent("patch", {"body": {"b": 1}}) == ("application/json", b'{"b":1}')
            assert await sent("same", {"id": 1, "body_id": "x"}) == ("application/json", b'{"id":"x"}')
            assert server.requests[-1].path == "/same/1"
            count = len(server.requests)
            for name, arguments in (
                ("bulk", {}),
                ("n", {"body": "5"}),
                ("u", {"body": {"a": 1, "b": 1}}),
                ("patch", {"body": None}),
            ):
                assert (await bench.call(f"api_{name}", arguments)).code == "invalid_input"
            assert len(server.requests) == count
    left = OpenApiSource("api", Path(target)).left_out
    assert left == (
        LeftOut(
            "POST /odd", "left out: its body is application/vnd.odd, which is not supported (at #/paths/~1odd/post)"
        ),
    )


async def test_b075_a_reference_that_leads_out_is_neither_followed_nor_opened(tmp_path: Path) -> None:
    """PrefectHQ/prefect#22252: SSRF via remote $ref in JSON schema validation."""
    async with peer(echo) as server:
        for at, reference in enumerate((f"{server.url}/s.json", "file:///etc/hostname", "other.json#/A", "./x.yaml")):
            (tmp_path / "other.json").write_text('{"A": {"type": "string"}}')
            paths = {
                "/bad": {
                    "post": {
                        "operationId": "bad",
                        "requestBody": body({"type": "object", "properties": {"a": {"$ref": reference}}}),
                    }
                },
                "/good": {"get": {"operationId": "good"}},
            }
            async with Workbench(written(tmp_path, document(paths, url=server.url), f"api{at}.json")) as bench:
                assert [tool.name for tool in bench.tools()] == [f"api{at}_good"]
                assert (await bench.call(f"api{at}_bad", {})).code == "unknown_tool"
                [view] = bench.sources()
                assert "leads out of the document" in view.state.detail["left_out"]["POST /bad"]
        assert server.requests == []
