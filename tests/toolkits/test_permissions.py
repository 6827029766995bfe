"""What the built-in toolkits say before a call, for the policy."""

from __future__ import annotations

import pytest

from anykit.capabilities import InvocableRequest, JsonObject
from anykit.toolkits.database import Database
from anykit.toolkits.filesystem import Filesystem
from anykit.toolkits.web import Web
from anykit.tools import PermissionRequest, Toolkit


@pytest.mark.parametrize(
    ("toolkit", "name", "arguments", "wanted"),
    [
        (Filesystem, "read_file", {"path": "a"}, PermissionRequest("file_read", "a")),
        (Filesystem, "list_dir", {}, PermissionRequest("file_read", ".")),
        (Filesystem, "glob", {"pattern": "*"}, PermissionRequest("file_read", ".")),
        (Filesystem, "grep", {"pattern": "x", "path": "b"}, PermissionRequest("file_read", "b")),
        (Filesystem, "write_file", {"path": "a", "content": ""}, PermissionRequest("file_write", "a")),
        (Filesystem, "edit_file", {"path": "a", "old": "x", "new": "y"}, PermissionRequest("file_write", "a")),
        (Web, "fetch", {"url": "https://x.example"}, PermissionRequest("network", "https://x.example")),
        (Database, "query", {"sql": "SELECT 1"}, PermissionRequest("custom", "database", {"sql": "SELECT 1"})),
    ],
)
def test_a_tool_says_what_it_is_about_to_touch(
    toolkit: type[Toolkit], name: str, arguments: JsonObject, wanted: PermissionRequest
) -> None:
    request = InvocableRequest(input=arguments, call_id="1")
    assert list(toolkit.spec().tools[name].preflight(request)) == [wanted]
