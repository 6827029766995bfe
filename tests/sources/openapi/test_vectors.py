"""Documents with the quirks of public ones: which tools they give, and what each call really sends.

`tests/vectors/openapi/NAME.yaml` (or `.json`) is a document, `NAME.cases.yaml` beside it says what is right: `tools` (names in
order), `arguments` (names by tool), `schemas` and `output_schemas` (a value at a JSON pointer), `requests` (a call and what
arrives at the server), `refuses` (calls that send nothing), `left_out` (what the document's owner is told of). BASE in a
document is the test's server.
"""

from __future__ import annotations

import base64
import email
import email.policy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl

import pytest
import yaml

from anykit.capabilities import CapabilityContext, InvalidInput, InvocableRequest, Json, JsonObject
from anykit.schema import compile_schema
from anykit.sources.openapi import OpenApiSource, OpenApiTool, Options
from anykit.tools import Tool
from transports.peers import Request, http, peer

pytestmark = pytest.mark.anyio

FOLDER = Path(__file__).parents[2] / "vectors" / "openapi"
NAMES = sorted(path.name.removesuffix(".cases.yaml") for path in FOLDER.glob("*.cases.yaml"))


async def ok(_: Request) -> bytes:
    return http(200, "application/json", b"{}")


def cases_of(name: str) -> dict[str, Any]:
    return yaml.safe_load((FOLDER / f"{name}.cases.yaml").read_text("utf-8"))


def source_of(name: str, tmp_path: Path, base: str, cases: Mapping[str, Any]) -> OpenApiSource:
    [path] = [one for one in FOLDER.glob(f"{name}.*") if not one.name.endswith(".cases.yaml")]
    file = tmp_path / path.name
    file.write_text(path.read_text("utf-8").replace("BASE", base), "utf-8")
    server = f"{base}{cases['base']}" if "base" in cases else cases.get("server", "")
    options = Options(
        server=server, security=cases.get("security", {}), server_variables=cases.get("server_variables", {})
    )
    return OpenApiSource(name, file, options)


def tools_of(source: OpenApiSource) -> dict[str, OpenApiTool]:
    return {tool.name: tool for tool in source.invocables() if isinstance(tool, OpenApiTool)}


def at(value: Json, pointer: str) -> Json:
    for token in pointer.split("/")[1:]:
        value = cast("dict[str, Any]", value)[token.replace("~1", "/").replace("~0", "~")]
    return value


async def call(tool: Tool, arguments: JsonObject) -> object:
    return await tool.invoke(InvocableRequest(input=arguments, call_id="1"), CapabilityContext())


@pytest.mark.parametrize("name", NAMES)
def test_a_document_gives_the_tools_arguments_and_schemas_that_its_cases_say(name: str, tmp_path: Path) -> None:
    cases = cases_of(name)
    source = source_of(name, tmp_path, "http://127.0.0.1:9", cases)
    tools = tools_of(source)

    assert list(tools) == cases["tools"]
    for tool, arguments in cases.get("arguments", {}).items():
        assert sorted(tools[tool].input_schema["properties"]) == arguments
    for case in cases.get("schemas", ()):
        assert at(tools[case["call"]].input_schema, case["at"]) == case["is"]
    for case in cases.get("output_schemas", ()):
        assert at(tools[case["call"]].output_schema, case["at"]) == case["is"]
    assert [tool.name for tool in tools.values() if tool.spec.metadata.get("deprecated")] == cases.get("deprecated", [])
    assert [one.place for one in source.left_out] == cases.get("left_out", [])


@pytest.mark.parametrize("name", NAMES)
def test_every_schema_of_a_document_stands_on_its_own_and_says_nothing_that_is_only_openapi(
    name: str, tmp_path: Path
) -> None:
    source = source_of(name, tmp_path, "http://127.0.0.1:9", cases_of(name))
    for tool in tools_of(source).values():
        compile_schema(tool.input_schema)
        if tool.output_schema is not None:
            compile_schema(tool.output_schema)
            assert tool.output_schema["type"] == "object"
        text = json.dumps([tool.input_schema, tool.output_schema])
        assert '"nullable"' not in text
        assert '"discriminator"' not in text
        assert "#/components" not in text
        assert tool.description.isprintable() or "\n" in tool.description


@pytest.mark.parametrize("name", NAMES)
async def test_calls_send_what_the_document_says(name: str, tmp_path: Path) -> None:
    cases = cases_of(name)
    async with peer(ok) as server:
        source = source_of(name, tmp_path, server.url, cases)
        tools = tools_of(source)
        await source.start()
        try:
            for case in cases.get("requests", ()):
                await call(tools[case["call"]], case["arguments"])
                arrived(server.requests[-1], case["sends"])
        finally:
            await source.close()
        assert len(server.requests) == len(cases.get("requests", ()))


@pytest.mark.parametrize("name", [name for name in NAMES if "refuses" in cases_of(name)])
async def test_what_does_not_fit_is_refused_before_anything_is_sent(name: str, tmp_path: Path) -> None:
    cases = cases_of(name)
    async with peer(ok) as server:
        source = source_of(name, tmp_path, server.url, cases)
        tools = tools_of(source)
        for case in cases["refuses"]:
            with pytest.raises(InvalidInput) as refused:
                await call(tools[case["call"]], case["arguments"])
            assert refused.value.errors
        await source.close()
        assert server.requests == []


def arrived(request: Request, wanted: Mapping[str, Any]) -> None:
    """Hold what arrived against what a case says."""
    assert request.method == wanted["method"]
    assert request.path == wanted["path"]
    for header, value in wanted.get("headers", {}).items():
        raw = request.headers[header].encode("latin-1").decode()
        assert (header, raw) == (header, value)
    for header in wanted.get("without", ()):
        assert header not in request.headers
    if "json" in wanted:
        assert json.loads(request.body) == wanted["json"]
    if "body" in wanted:
        assert request.body.decode() == wanted["body"]
    if "base64" in wanted:
        assert request.body == base64.b64decode(wanted["base64"])
    if "form" in wanted:
        assert request.headers["content-type"] == "application/x-www-form-urlencoded"
        form = parse_qsl(request.body.decode(), keep_blank_values=True, strict_parsing=True)
        assert [list(pair) for pair in form] == wanted["form"]
    if "parts" in wanted:
        assert parts_of(request) == [with_bytes(part) for part in wanted["parts"]]


def parts_of(request: Request) -> list[dict[str, Any]]:
    head = f"content-type: {request.headers['content-type']}\r\n\r\n".encode()
    message = email.message_from_bytes(head + request.body, policy=email.policy.HTTP)
    found: list[dict[str, Any]] = []
    for part in cast("list[Any]", message.get_payload()):
        one: dict[str, Any] = {"name": part.get_param("name", header="content-disposition")}
        if (filename := part.get_filename()) is not None:
            one["filename"] = filename.encode("utf-8", "surrogateescape").decode()
        if part["content-type"] is not None:
            one["type"] = str(part["content-type"]).replace('"', "")
        found.append({**one, "data": part.get_payload(decode=True)})
    return found


def with_bytes(part: dict[str, Any]) -> dict[str, Any]:
    known = {key: value for key, value in part.items() if key not in ("text", "base64")}
    return {**known, "data": base64.b64decode(part["base64"]) if "base64" in part else part["text"].encode()}
