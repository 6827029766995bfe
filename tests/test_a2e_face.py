"""`anykit.a2e`: every name of the A2E toolkits capability, with its types, defaults and required flags."""

from __future__ import annotations

import subprocess
import sys
import warnings
from abc import ABC
from importlib import import_module
from pathlib import Path
from typing import Any

import pydantic
import pytest

from anykit import a2e
from anykit.a2e import (
    A2ECapability,
    A2EClient,
    A2EError,
    A2EErrorCode,
    A2EEvent,
    A2EHost,
    A2EMessage,
    A2EPlugin,
    A2ESource,
    ToolkitConfigureRequest,
    ToolkitConfigureResponse,
    ToolkitDefinition,
    ToolkitListRequest,
    ToolkitListResponse,
    ToolkitPlugin,
    open_source,
)
from anykit.app.config import SourceConfig
from anykit.app.opening import Opening
from anykit.runtime import Source


def test_every_name_is_there_and_sorted() -> None:
    assert sorted(a2e.__all__) == sorted(set(a2e.__all__))
    assert dir(a2e) == sorted(a2e.__all__)
    for name in a2e.__all__:
        assert getattr(a2e, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = a2e.Nothing


def test_the_capability_and_its_codes_have_the_documents_values() -> None:
    assert A2ECapability.TOOLKITS == "toolkits"
    assert A2EErrorCode.RUNTIME_ERROR == "runtime_error"
    assert A2EErrorCode.INVALID_MESSAGE == "invalid_message"


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (ToolkitListRequest, {"type": "toolkit/list/req", "version": "1.0", "filter_kind": "", "filter_tags": []}),
        (ToolkitListResponse, {"type": "toolkit/list/resp", "version": "1.0", "req_id": "", "toolkits": []}),
        (
            ToolkitConfigureRequest,
            {"type": "toolkit/configure/req", "version": "1.0", "session_id": "", "toolkit_name": "", "config": {}},
        ),
        (
            ToolkitConfigureResponse,
            {
                "type": "toolkit/configure/resp",
                "version": "1.0",
                "req_id": "",
                "toolkit_name": "",
                "status": "ok",
                "message": None,
            },
        ),
    ],
)
def test_messages_have_the_documents_fields_and_defaults(model: type[A2EMessage], fields: dict[str, Any]) -> None:
    message = model(type=fields["type"])
    dumped = message.model_dump()
    assert list(dumped) == ["type", "id", "version", "ts", *list(fields)[2:]]
    assert {name: dumped[name] for name in fields} == fields
    assert len(message.id) == 32
    assert model(type=fields["type"]).id != message.id
    assert isinstance(message.ts, float)


def test_a_toolkit_definition_requires_name_and_tools_and_calls_its_schema_schema() -> None:
    schema = {"type": "object", "required": ["root_dir"]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        definition = ToolkitDefinition(name="fs", tools=["read_file"], schema=schema)
    assert definition.schema == schema
    assert definition.model_dump() == {
        "name": "fs",
        "alias": "",
        "description": "",
        "category": "",
        "tags": [],
        "icon_svg": None,
        "schema": schema,
        "tools": ["read_file"],
        "configured": False,
        "version": "1.0.0",
    }
    with pytest.raises(pydantic.ValidationError) as caught:
        ToolkitDefinition.model_validate({})
    assert sorted(str(error["loc"][0]) for error in caught.value.errors()) == ["name", "tools"]


def test_the_plugin_contract_is_the_documents() -> None:
    assert issubclass(ToolkitPlugin, A2EPlugin)
    assert issubclass(A2EPlugin, ABC)
    assert ToolkitPlugin.name == "toolkit_plugin"
    assert {"_list_toolkits", "_configure_toolkit"} <= set(ToolkitPlugin.__abstractmethods__)
    with pytest.raises(TypeError, match="abstract"):
        ToolkitPlugin()
    for method in ("set_push_callback", "emit_event", "handle", "supported_messages"):
        assert callable(getattr(ToolkitPlugin, method))


def test_an_error_and_an_event_are_made_by_their_fields() -> None:
    error = A2EError(req_id="r", code=A2EErrorCode.RUNTIME_ERROR, message="no")
    assert error.model_dump()["code"] == "runtime_error"
    assert A2EEvent(kind="status", data={"a": 1}).model_dump()["type"] == "invoke/event"


def test_the_names_are_those_of_the_rooms() -> None:
    assert A2EClient is import_module("anykit.sources.a2e").A2EClient
    assert A2EHost is import_module("anykit.servers.a2e").A2EHost


def test_importing_the_face_is_cheap() -> None:
    code = (
        "import sys, anykit.a2e; from anykit.a2e import ToolkitDefinition; "
        "print([m for m in ('aiohttp', 'uvicorn', 'starlette', 'sqlalchemy', 'mcp') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=9)
    assert done.stdout.strip() == "[]"


# the entry point of configured sources


def opened(**table: Any) -> Source:
    opening = Opening(folder=Path("/srv"), connect_timeout=3.0)
    source = open_source(SourceConfig.model_validate(table), opening)
    assert isinstance(source, Source)
    return source


def test_a_url_is_a_source_without_a_prefix() -> None:
    source = opened(target="http://user:pw@127.0.0.1:7777/a2e")
    assert (source.name, source.kind, source.prefixed) == ("_127_0_0_1_7777", "a2e", False)
    assert source.location == "http://127.0.0.1:7777/a2e"
    assert isinstance(source.provider, A2ESource)


def test_a_named_command_gives_its_tools_its_name_and_is_never_split() -> None:
    source = opened(name="files", command="my host", args=["--stdio", "a b"], token="hush", cwd="sub", kind="a2e")
    assert (source.name, source.prefixed, source.location) == ("files", True, "my host")
    assert "hush" not in repr(source)


def test_what_is_no_host_is_a_source_that_failed() -> None:
    source = opened(name="x", url="ftp://host")
    assert source.provider is None
    assert source.failed is not None
    assert "http or https" in source.failed
