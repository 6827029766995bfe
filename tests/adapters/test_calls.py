"""How an adapter's calls reach the bench, and what it says where a framework is missing."""

from __future__ import annotations

import asyncio
import importlib
import json

import pytest

from anykit import Workbench, tool
from anykit.adapters.calls import Calls, MissingFramework, imported
from anykit.adapters.pieces import MEDIA_LIMIT, Media, pieces_of, plain
from anykit.capabilities import BlobPart, ImagePart, InvocableResult, StructuredPart, TextPart
from anykit.capabilities.outcomes import Completed
from anykit.tools import tool_result

pytestmark = pytest.mark.anyio


@tool
async def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def test_a_missing_framework_is_named_with_how_to_install_it() -> None:
    with pytest.raises(MissingFramework, match=r"no_such_framework is not installed: pip install 'anykit\[some\]'"):
        imported("no_such_framework.tools", "some")


@pytest.mark.parametrize("module", ["langchain", "pydantic_ai", "openai_agents"])
async def test_without_the_framework_an_adapter_says_which_extra_brings_it(module: str) -> None:
    adapter = importlib.import_module(f"anykit.adapters.{module}")
    make = {"langchain": "langchain_tools", "pydantic_ai": "toolset", "openai_agents": "function_tools"}[module]
    async with Workbench(add) as bench:
        with pytest.raises(MissingFramework, match=f"anykit.{module.replace('_', '-')}"):
            getattr(adapter, make)(bench)


async def test_a_synchronous_call_from_another_thread_runs_on_the_loop_of_the_bench() -> None:
    async with Workbench(add) as bench:
        calls, (one,) = Calls(bench), bench.tools()
        result = await asyncio.to_thread(calls.run_blocking, one, {"a": 1, "b": 2})
        assert result.output == "3"


async def test_a_call_after_the_loop_of_the_bench_has_ended_says_so() -> None:
    def elsewhere() -> Calls:
        async def make() -> Calls:
            async with Workbench(add) as bench:
                return Calls(bench)

        with asyncio.Runner() as runner:
            return runner.run(make())

    calls = await asyncio.to_thread(elsewhere)
    async with Workbench(add) as bench:
        (one,) = bench.tools()
        with pytest.raises(RuntimeError, match="does not run here"):
            await calls.run(one, {"a": 1, "b": 2})


def test_a_result_of_texts_is_one_piece() -> None:
    result = tool_result(Completed(InvocableResult(content=(TextPart(text="a"), StructuredPart(value={"b": 1})))))
    assert pieces_of(result) == ['a\n{"b":1}']


def test_pictures_keep_their_place_and_the_structured_value_comes_last() -> None:
    given = InvocableResult(content=(TextPart(text="a"), ImagePart(data=b"i"), TextPart(text="b")), structured={"n": 1})
    assert pieces_of(tool_result(Completed(given))) == ["a", Media(b"i", "image/png"), "b", '{"n":1}']


def test_what_is_too_large_for_a_model_is_named() -> None:
    given = InvocableResult(content=(BlobPart(data=b"x" * (MEDIA_LIMIT + 1), name="big.bin"), ImagePart(data=b"i")))
    first, second = pieces_of(tool_result(Completed(given)))
    assert isinstance(first, str)
    assert first.startswith("[file big.bin")
    assert second == Media(b"i", "image/png")


def test_a_cut_text_stays_cut_beside_a_picture() -> None:
    given = InvocableResult(content=(TextPart(text="x" * 100), ImagePart(data=b"i")))
    text, picture = pieces_of(tool_result(Completed(given), limit=10))
    assert text == "xxxxxxxxxx\n[cut: 10 of 127 bytes shown]"
    assert picture == Media(b"i", "image/png")


def test_a_whole_result_is_plain_json() -> None:
    given = InvocableResult(content=(ImagePart(data=b"i"),), structured={"n": 1}, metadata={"k": "v"})
    assert json.loads(json.dumps(plain(tool_result(Completed(given))))) == {
        "status": "completed",
        "structured": {"n": 1},
        "content": [{"kind": "image", "data": "aQ==", "media_type": "image/png", "metadata": {}}],
        "metadata": {"k": "v"},
        "suspension": None,
    }


@pytest.mark.parametrize(
    ("media", "name"),
    [
        (Media(b"", "application/pdf", "a.pdf"), "a.pdf"),
        (Media(b"", "application/pdf"), "file.pdf"),
        (Media(b"", "x/unknown"), "file"),
    ],
)
def test_a_file_has_a_name_that_providers_take(media: Media, name: str) -> None:
    assert media.file_name == name
