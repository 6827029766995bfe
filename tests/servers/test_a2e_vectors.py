"""The wire examples of the A2E toolkits capability, replayed against a host: same keys, same order, same values."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from anykit.servers import A2EHost
from anykit.servers.a2e import ToolkitPlugin
from anykit.wire.a2e import (
    ToolkitConfigureRequest,
    ToolkitConfigureResponse,
    ToolkitDefinition,
    ToolkitListRequest,
    ToolkitListResponse,
)
from servers.agents import add, make_bench

pytestmark = pytest.mark.anyio

LIST = b'{"type":"toolkit/list/req","id":"tk1","version":"1.0","ts":1716123456.789,"filter_kind":"","filter_tags":[]}'
LISTED = (
    b'{"type":"toolkit/list/resp","id":"tk2","version":"1.0","ts":1716123456.8,"req_id":"tk1","toolkits":['
    b'{"name":"filesystem","alias":"fs","description":"File I/O toolkit","category":"io","tags":["fs","files"],'
    b'"icon_svg":null,"schema":{"type":"object","properties":{"root_dir":{"type":"string",'
    b'"description":"Root directory for file operations"}},"required":["root_dir"]},'
    b'"tools":["read_file","write_file","list_dir"],"configured":false,"version":"1.0.0"}]}'
)
CONFIGURE = (
    b'{"type":"toolkit/configure/req","id":"tk3","version":"1.0","ts":1716123457.100,"session_id":"s1",'
    b'"toolkit_name":"filesystem","config":{"root_dir":"/home/user/workspace"}}'
)
CONFIGURED = (
    b'{"type":"toolkit/configure/resp","id":"tk4","version":"1.0","ts":1716123457.2,"req_id":"tk3",'
    b'"toolkit_name":"filesystem","status":"ok","message":"Toolkit configured successfully"}'
)


class Filesystem(ToolkitPlugin):
    """What the page's host offers."""

    def _list_toolkits(self, msg: ToolkitListRequest) -> ToolkitListResponse:
        definition = ToolkitDefinition(
            name="filesystem",
            alias="fs",
            description="File I/O toolkit",
            category="io",
            tags=["fs", "files"],
            schema={
                "type": "object",
                "properties": {"root_dir": {"type": "string", "description": "Root directory for file operations"}},
                "required": ["root_dir"],
            },
            tools=["read_file", "write_file", "list_dir"],
        )
        return ToolkitListResponse(toolkits=[definition])

    def _configure_toolkit(self, msg: ToolkitConfigureRequest) -> ToolkitConfigureResponse:
        return ToolkitConfigureResponse(toolkit_name=msg.toolkit_name, message="Toolkit configured successfully")


class Wire:
    """A carrier that keeps what it is given."""

    secure = True

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def deliver(self, lines: list[bytes]) -> None:
        self.lines += lines

    def congested(self) -> bool:
        return False

    def over(self, reason: str) -> None:
        """Nothing to close."""


async def test_the_pages_wire_examples() -> None:
    ids: Iterator[str] = iter(["hello", "tk2", "push", "tk4"])
    moments = {"now": 1716123456.8}
    wire = Wire()
    host = A2EHost(
        make_bench(add),
        plugins=[{"name": "fs", "type": "toolkits", "cls": Filesystem, "metadata": {"exclusive": True}}],
    )
    connection = host.connection(wire, session_id="s1", ids=lambda: next(ids), clock=lambda: moments["now"])
    connection.receive(b'{"type":"handshake/req","id":"h","agent_caps":["toolkits"]}')
    connection.receive(LIST)
    await connection.settle(5)
    assert wire.lines[1:] == [LISTED]
    moments["now"] = 1716123457.2
    connection.receive(CONFIGURE)
    await connection.settle(5)
    push, configured = wire.lines[2:]
    assert configured == CONFIGURED
    assert json.loads(push) == {
        "type": "invoke/event",
        "id": "push",
        "version": "1.0",
        "ts": 1716123457.2,
        "kind": "status",
        "req_id": "",
        "data": {
            "source": "toolkit",
            "toolkit": "filesystem",
            "status": "ok",
            "configured": True,
            "message": "Toolkit configured successfully",
        },
        "seq": 0,
    }
    await connection.close()
