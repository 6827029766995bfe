"""From a table of the configuration to tools: what is shared, what is told wrong, and where it is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anykit import Workbench
from anykit.app import ConfigError, config_file_schema, parse_config, read_config
from anykit.app.config import source_config
from anykit.schema import compile_schema
from transports.peers import Request, http, peer

pytestmark = pytest.mark.anyio


async def echo(request: Request) -> bytes:
    said = {"method": request.method, "path": request.path, "body": request.body.decode()}
    return http(200, "application/json", json.dumps(said).encode())


async def reasons(*tables: dict[str, Any]) -> list[str]:
    """Why the sources of these tables are not there."""
    async with Workbench(*tables) as bench:
        return [one.state.reason for one in bench.sources() if one.state.status == "failed"]


async def test_endpoints_of_one_table_share_address_headers_query_and_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KEY", "sesame-open")
    async with peer(echo) as server:
        table: dict[str, Any] = {
            "kind": "http",
            "name": "shop",
            "base_url": f"{server.url}/v1/",
            "headers": {"X-Key": "${KEY}", "X-Tenant": "a"},
            "query": {"v": "1"},
            "auth": {"bearer": "${KEY}"},
            "tags": ["shop"],
            "endpoints": [
                {"name": "get_item", "url": "/items/{id}", "headers": {"x-tenant": "b"}},
                {
                    "name": "add_item",
                    "url": "items",
                    "method": "post",
                    "parameters": {"n": "integer"},
                    "tags": ["write"],
                },
                {"name": "elsewhere", "url": f"{server.url}/other"},
            ],
        }
        async with Workbench(table) as bench:
            assert [(tool.name, tool.source, tool.tags) for tool in bench.tools()] == [
                ("get_item", "shop", ("shop",)),
                ("add_item", "shop", ("shop", "write")),
                ("elsewhere", "shop", ("shop",)),
            ]
            got = await bench.call("get_item", {"id": "x"})
            added = await bench.call("add_item", {"n": 2})
            await bench.call("elsewhere")
    assert got.structured == {"method": "GET", "path": "/v1/items/x?v=1", "body": ""}
    assert added.structured == {"method": "POST", "path": "/v1/items?v=1", "body": '{"n":2}'}
    first, second, third = server.requests
    assert (first.headers["x-key"], first.headers["x-tenant"]) == ("sesame-open", "b")
    assert (second.headers["x-tenant"], second.headers["authorization"]) == ("a", "Bearer sesame-open")
    assert third.path == "/other?v=1"
    assert server.connections == 1


async def test_a_table_may_be_the_endpoint_itself_and_the_tool_keeps_its_name(tmp_path: Path) -> None:
    async with peer(echo) as server:
        file = tmp_path / "anykit.toml"
        file.write_text(
            f'[[sources]]\nname = "ask"\nmethod = "PUT"\nurl = "{server.url}/x/{{a}}"\nbody = {{ raw = "{{a}}!" }}\n'
        )
        async with Workbench(config=read_config(file), data_dir=tmp_path / "data") as bench:
            assert [tool.name for tool in bench.tools()] == ["ask"]
            assert (await bench.call("ask", {"a": "ü"})).structured == {
                "method": "PUT",
                "path": "/x/%C3%BC",
                "body": "ü!",
            }


async def test_what_an_endpoint_does_not_say_it_has_from_its_source() -> None:
    async def never(request: Request) -> bytes | None:
        await request.writer.wait_closed()
        return None

    async with peer(never) as server:
        table = {"base_url": server.url, "timeout": 0.1, "endpoints": [{"name": "slow", "url": "/"}]}
        async with Workbench(table) as bench:
            assert bench.tools()[0].spec.timeout == 0.1
            assert (await bench.call("slow")).code == "timeout"


@pytest.mark.parametrize(
    ("endpoint", "why"),
    [
        ({"name": "a", "url": "http://{host}/"}, "endpoint 'a': .*may not stand in the host"),
        ({"name": "a", "url": "/x"}, "endpoint 'a': .*not a URL with scheme and host"),
        ({"name": "a", "url": "http://h/", "headers": {"X": "${NOPE}"}}, "endpoint 'a': /headers/X: .*NOPE is not set"),
        ({"name": "", "url": "http://h/"}, "endpoint 1: it needs a `name`"),
        ({"name": "a", "url": "http://h/", "body": "yaml"}, "endpoint 'a': body: 'yaml'"),
    ],
)
async def test_an_endpoint_that_cannot_be_one_fails_its_source_with_its_name(
    endpoint: dict[str, Any], why: str
) -> None:
    import re

    (reason,) = await reasons({"kind": "http", "name": "s", "endpoints": [endpoint]})
    assert re.search(why, reason), reason


async def test_a_table_without_any_endpoint_says_what_is_missing() -> None:
    (reason,) = await reasons({"kind": "http", "name": "s"})
    assert "[[sources.endpoints]]" in reason


async def test_two_endpoints_of_one_name_are_told() -> None:
    twice = [{"name": "a", "url": "http://h/1"}, {"name": "a", "url": "http://h/2"}]
    (reason,) = await reasons({"kind": "http", "name": "s", "endpoints": twice})
    assert "the same name" in reason


async def test_one_bad_source_costs_only_itself() -> None:
    async with peer(echo) as server:
        good = {"name": "good", "method": "GET", "url": server.url}
        async with Workbench({"kind": "http", "name": "bad", "url": "http://{h}/"}, good) as bench:
            assert {one.name: one.state.status for one in bench.sources()} == {"bad": "failed", "good": "ready"}
            assert not (await bench.call("good")).is_error


# the tables


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"kind": "http", "endpoint": []}, "sources.0.endpoint: unknown key; did you mean endpoints"),
        (
            {"kind": "http", "endpoints": [{"name": "a", "url": "y", "ulr": "x"}]},
            "sources.0.endpoints.0.ulr: unknown key; did you mean url?",
        ),
        ({"kind": "http", "auth": {"barer": "x"}}, "sources.0.auth.barer: unknown key; did you mean bearer?"),
        ({"kind": "http", "command": "x"}, "sources.0: `command` means nothing to a source of kind http"),
        ({"kind": "http", "endpoints": [{"url": "x"}]}, "sources.0.endpoints.0.name: field required"),
        ({"kind": "http", "timeout": 0}, "sources.0.timeout: "),
        ({"kind": "http", "result": "yaml"}, "sources.0.result: "),
        ({"method": "GET", "urll": "x"}, "sources.0.urll: unknown key; did you mean url?"),
        ({"kind": "mcp", "endpoints": []}, "sources.0.endpoints: unknown key"),
    ],
)
def test_an_unknown_key_is_told_where_it_stands_with_what_was_meant(table: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_config({"sources": [table]})
    assert said in str(refused.value).splitlines()[-1]
    assert compile_schema(config_file_schema()).faults({"sources": [table]})


def test_a_table_given_in_python_is_checked_alike() -> None:
    with pytest.raises(ConfigError, match=r"endpoints\.0\.ulr: unknown key; did you mean url\?"):
        source_config({"kind": "http", "endpoints": [{"name": "a", "ulr": "x"}]})


def test_a_secret_in_a_table_is_in_no_repr() -> None:
    table = source_config(
        {"kind": "http", "auth": {"bearer": "hush-hush", "basic": "me:hush-hush"}, "token": "hush-hush"}
    )
    assert "hush-hush" not in repr(table)


def test_the_published_schema_takes_every_shape_of_a_source() -> None:
    sources: list[Any] = [
        "tools.py",
        {"url": "http://h"},
        {"kind": "mcp", "command": "x"},
        {"kind": "http", "base_url": "http://h", "endpoints": [{"name": "a", "url": "/", "body": {"json": ["{x}"]}}]},
        {"method": "GET", "url": "http://h/{x}", "parameters": {"x": "integer"}},
    ]
    assert compile_schema(config_file_schema()).faults({"sources": sources}) == []
    assert [getattr(one, "own_kind", None) for one in parse_config({"sources": sources}).sources] == [
        None,
        None,
        None,
        "http",
        "http",
    ]
