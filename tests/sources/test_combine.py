"""Providers over providers."""

from __future__ import annotations

from typing import Any

import pytest

from anykit.capabilities import CapabilityContext, CapabilityProvider, InvalidInput, InvocableRequest, InvocableResult
from anykit.sources import Filtered, FunctionSource, Overridden, Prefixed, Renamed
from anykit.tools import PermissionRequest, Tool, prompt, resource, tool

pytestmark = pytest.mark.anyio


@tool(read_only=True)
def read_file(path: str) -> str:
    """Reads."""
    return f"read {path}"


@tool
def write_file(path: str) -> str:
    """Writes."""
    return f"wrote {path}"


@tool
def delete_file(path: str) -> str:
    """Deletes."""
    return f"deleted {path}"


@resource("files://list")
def listing() -> str:
    """Lists."""
    return "a b"


@prompt
def review(path: str) -> str:
    """Asks."""
    return path


class Careful(Tool):
    def preflight(self, request: InvocableRequest) -> tuple[PermissionRequest, ...]:
        return (PermissionRequest("file_write", str(request.input.get("path"))),)


@pytest.fixture
def files() -> FunctionSource:
    return FunctionSource([read_file, write_file, delete_file, listing, review])


def names(provider: CapabilityProvider) -> list[str]:
    return [one.spec.name for one in provider.invocables()]


async def run(provider: CapabilityProvider, name: str) -> Any:
    [found] = [one for one in provider.invocables() if one.spec.name == name]
    result = await found.invoke(InvocableRequest(input={"path": "x"}, call_id="1"), CapabilityContext())
    assert isinstance(result, InvocableResult)
    return result.text


async def test_a_prefix_names_tools_and_prompts_and_leaves_uris(files: FunctionSource) -> None:
    wrapped = Prefixed(files, "fs_")
    assert names(wrapped) == ["fs_read_file", "fs_write_file", "fs_delete_file"]
    assert await run(wrapped, "fs_write_file") == "wrote x"
    [prompts] = wrapped.prompts()
    assert [one.id for one in (await prompts.list_prompts()).items] == ["fs_review"]
    assert (await prompts.get_prompt("fs_review", {"path": "p"}, CapabilityContext())).messages
    with pytest.raises(InvalidInput):
        await prompts.get_prompt("review", {"path": "p"}, CapabilityContext())
    assert (await wrapped.resources()[0].list_resources()).items[0].id == "files://list"


async def test_of_a_filter_deny_wins(files: FunctionSource) -> None:
    assert names(Filtered(files, allow=["*_file"], deny=["delete_*"])) == ["read_file", "write_file"]
    assert names(Filtered(files, allow=["READ_*"])) == []
    assert names(Filtered(files, deny=["*"])) == []
    assert Filtered(files, allow=["read_*", "raed_*"], deny=["x"]).idle == ("raed_*", "x")


async def test_renamed_tools_run_under_their_new_name(files: FunctionSource) -> None:
    wrapped = Renamed(files, {"read_file": "cat"})
    assert names(wrapped) == ["cat", "write_file", "delete_file"]
    assert await run(wrapped, "cat") == "read x"
    assert names(Renamed(files, {"read_file": "write_file", "write_file": "read_file"})) == [
        "write_file",
        "read_file",
        "delete_file",
    ]
    assert names(Renamed(files, {"read_file": "delete_file"})) == ["delete_file", "write_file"]
    with pytest.raises(ValueError, match="same name"):
        Renamed(files, {"read_file": "x", "write_file": "x"})


async def test_words_may_be_overridden_and_nothing_else(files: FunctionSource) -> None:
    wrapped = Overridden(files, {"read_file": {"description": "Shows a file.", "tags": ("fs",)}})
    spec = wrapped.invocables()[0].spec
    assert spec.description == "Shows a file."
    assert spec.annotations is not None
    assert spec.annotations.read_only is True
    assert await run(wrapped, "read_file") == "read x"
    with pytest.raises(ValueError, match="input_schema cannot be overridden"):
        Overridden(files, {"read_file": {"input_schema": {}}})


async def test_wrappers_nest_and_keep_what_a_tool_says_that_it_touches() -> None:
    careful = Careful(write_file.spec)
    wrapped = Prefixed(Overridden(Renamed(FunctionSource([careful]), {"write_file": "put"}), {}), "fs_")
    [found] = wrapped.invocables()
    assert isinstance(found, Tool)
    assert found.preflight(InvocableRequest(input={"path": "p"}, call_id="1"))[0].target == "p"
    assert wrapped.state.status == "ready"
    await wrapped.start()
    wrapped.subscribe(lambda: None)()
    await wrapped.close()
