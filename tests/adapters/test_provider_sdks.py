"""What goes out is what the SDKs' own types and strict conversions take; what their calls hold comes back."""

from __future__ import annotations

import json
import select
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from anykit import Workbench, tool
from anykit.adapters import Exports, StrictRefused
from anykit.adapters.exports import Provider
from anykit.tools import ToolSpec
from interop.environments import PROVIDERS as ENVIRONMENT
from interop.environments import Unreachable
from schema.providers import quirks, real_tools

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(400)]  # the first run makes the environment

ALL: tuple[Provider, ...] = ("openai", "openai-responses", "anthropic", "gemini")
ANSWER = 30.0
"""Seconds that a verdict may take."""


class Sdks:
    """The SDKs in their own process: one question a line, one answer a line."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, str(Path(__file__).parent / "programs" / "provider_sdks.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.versions = self._read()

    def ask(self, **question: Any) -> Any:
        """A verdict, or a call."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        return self._read()

    def _read(self) -> Any:
        out = self._process.stdout
        assert out is not None
        ready, _, _ = select.select([out], [], [], ANSWER)
        assert ready, "the SDKs did not answer"
        line = out.readline()
        assert line, "the SDKs' process ended"
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(5)
        self._process.stdout.close()


@pytest.fixture(scope="module")
def sdks() -> Generator[Sdks]:
    try:
        ENVIRONMENT.make()
    except Unreachable as error:
        pytest.skip(f"PROVIDER SDKS NOT PROVED: {error}")
    running = Sdks(ENVIRONMENT.python)
    yield running
    running.close()


def specs() -> list[ToolSpec]:
    odd = [
        ToolSpec(name=f"odd_{index}", description=name, input_schema=schema)
        for index, (name, schema) in enumerate(quirks().items())
    ]
    return odd + [
        ToolSpec(name=one["name"], description=one.get("description", ""), input_schema=one["inputSchema"])
        for one in real_tools()
    ]


@pytest.mark.parametrize("provider", ALL)
def test_the_types_of_the_sdk_take_every_export(sdks: Sdks, provider: Provider) -> None:
    tools = Exports().export(specs(), provider).tools
    assert sdks.ask(kind="tools", provider=provider, strict=False, tools=tools) == {"faults": []}


@pytest.mark.parametrize("provider", ALL[:3])
def test_the_sdks_own_strict_conversion_finds_nothing_left_to_do(sdks: Sdks, provider: Provider) -> None:
    exports = Exports()
    strict: list[Any] = []
    for spec in specs():
        try:
            strict += exports.export([spec], provider, strict=True).tools
        except StrictRefused:
            continue
    assert len(strict) > len(real_tools())
    assert sdks.ask(kind="tools", provider=provider, strict=True, tools=strict) == {"faults": []}


def test_the_verdicts_are_not_blind(sdks: Sdks) -> None:
    def faults(provider: str, tool: Any, *, strict: bool = False) -> list[str]:
        return sdks.ask(kind="tools", provider=provider, strict=strict, tools=[tool])["faults"]

    open_object = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}
    assert faults("openai", {"type": "function", "function": {"description": "no name"}})
    assert faults("openai-responses", {"type": "function", "name": "a", "parameters": open_object})
    assert faults("anthropic", {"name": "a"})
    assert faults("anthropic", {"name": "a", "input_schema": open_object, "strict": True}, strict=True)
    assert faults("openai", {"type": "function", "function": {"name": "a", "parameters": open_object}}, strict=True)
    for schema in (
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}},
        {"type": "object", "properties": {"a": {"type": "integer", "enum": [1, 2]}}},
        {"type": ["object", "null"]},
        {"type": "object", "properties": {"a": {"const": 1}}},
    ):
        assert faults("gemini", {"functionDeclarations": [{"name": "a", "parameters": schema}]}), schema


@tool
def book(title: str, count: int = 1, tags: tuple[str, ...] = ()) -> dict[str, Any]:
    """Books something."""
    return {"title": title, "count": count, "tags": list(tags)}


@pytest.mark.parametrize("provider", ALL)
async def test_the_call_of_the_sdk_is_taken_as_it_is(sdks: Sdks, provider: Provider) -> None:
    async with Workbench(book) as bench:
        arguments = {"title": "tea", "count": 5.0, "tags": None}
        call = sdks.ask(kind="call", provider=provider, name="book", arguments=arguments)["call"]
        result = await bench.execute(call)
        assert result.structured == {"title": "tea", "count": 5, "tags": []}
