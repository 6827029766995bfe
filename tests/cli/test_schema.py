"""`anykit schema`: the tools as a provider's request, or a protocol's list, has them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.running import anykit
from schema.providers import rules

TOOLS = '''
from typing import Annotated

from pydantic import Field

from anykit import tool


@tool
def add(a: int, b: Annotated[int, Field(gt=0)] = 10) -> int:
    """Adds."""
    return a + b


@tool
def total(prices: dict[str, float]) -> float:
    """Adds prices."""
    return sum(prices.values())
'''


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_tools.py").write_text(TOOLS)
    return "my_tools.py"


@pytest.mark.parametrize("provider", ["openai", "openai-responses", "anthropic", "gemini"])
@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_it_prints_the_value_of_the_requests_tools_field(tools: str, provider: str, flags: tuple[str, ...]) -> None:
    done = anykit("schema", "--format", provider, tools, *flags)
    assert done.code == 0
    assert rules(provider).faults(done.json) == []
    assert '"add"' in done.out
    assert '"total"' in done.out


def test_gemini_is_one_item_with_declarations_and_the_losses_are_told(tools: str) -> None:
    done = anykit("schema", "--format", "gemini", tools)
    assert [one["name"] for one in done.json[0]["functionDeclarations"]] == ["add", "total"]
    assert (
        done.err.strip() == "warning: total: said in the description instead: /properties/prices: additionalProperties"
    )


def test_the_protocols_list_them_with_their_own_schemas(tools: str) -> None:
    mcp = anykit("schema", "--format", "mcp", tools).json
    assert [one["name"] for one in mcp] == ["add", "total"]
    assert mcp[0]["inputSchema"]["properties"]["b"] == {"type": "integer", "exclusiveMinimum": 0, "default": 10}
    assert mcp[0]["outputSchema"]["type"] == "object"
    a2e = anykit("schema", "--format", "a2e", tools).json
    assert [(one["name"], one["toolkit"]) for one in a2e] == [("add", None), ("total", None)]
    assert a2e[0]["input_schema"] == mcp[0]["inputSchema"]


def test_strict_is_exit_code_6_where_a_schema_stands_in_the_way(tools: str) -> None:
    done = anykit("schema", "--format", "openai", "--strict", tools)
    assert (done.code, done.out) == (6, "")
    assert "warning: total: /properties/prices: additionalProperties" in done.err
    assert "error[strict_refused]: total cannot be strict for openai" in done.err
    chosen = anykit("schema", "--format", "openai", "--strict", "--tools", "ad*", tools)
    assert chosen.code == 0
    assert rules("openai", strict=True).faults(chosen.json) == []
    assert anykit("schema", "--format", "anthropic", "--strict", "--tools", "add", tools).json[0]["strict"] is True


@pytest.mark.parametrize("format", ["gemini", "mcp", "a2e"])
def test_what_has_no_strict_mode_says_so(tools: str, format: str) -> None:
    done = anykit("schema", "--format", format, "--strict", tools)
    assert done.code == 2
    assert f"{format} has no strict mode" in done.err


def test_tools_are_chosen_by_name_and_pattern(tools: str) -> None:
    def names(*patterns: str) -> list[str]:
        flags = [word for pattern in patterns for word in ("--tools", pattern)]
        return [one["name"] for one in anykit("schema", "--format", "anthropic", tools, *flags).json]

    assert names("t*") == ["total"]
    assert names("add", "tot*") == ["add", "total"]
    unknown = anykit("schema", "--format", "anthropic", "--tools", "totl", tools)
    assert (unknown.code, unknown.out) == (5, "")
    assert "there is no tool totl" in unknown.err
    assert "did you mean:  total" in unknown.err
    nothing = anykit("schema", "--format", "anthropic", "--tools", "x*", tools)
    assert (nothing.code, nothing.json) == (0, [])
    assert "no tool falls under x*" in nothing.err


def test_a_format_must_be_named_and_known(tools: str) -> None:
    assert anykit("schema", tools).code == 2
    done = anykit("schema", "--format", "mistral", tools)
    assert done.code == 2
    assert "openai-responses" in done.err


def test_tools_of_toolkits_that_are_not_configured_are_left_out_and_named(tools: str) -> None:
    done = anykit("schema", "--format", "openai", tools, "anykit:web")
    assert [one["function"]["name"] for one in done.json] == ["add", "total"]
    assert "left out, toolkit web is not configured: fetch" in done.err


def test_the_sources_of_the_file_are_taken_where_the_line_names_none(tools: str) -> None:
    Path("anykit.toml").write_text('sources = ["my_tools.py"]\n')
    assert len(anykit("schema", "--format", "openai").json) == 2


def test_more_tools_than_a_request_takes_are_a_warning(tools: str) -> None:
    Path("many.py").write_text(
        "from anykit import tool\n" + "".join(f"@tool\ndef t{n}() -> int:\n    return {n}\n" for n in range(129))
    )
    done = anykit("schema", "--format", "openai", "many.py")
    assert len(done.json) == 129
    assert "129 tools; openai takes 128 in one request" in done.err
    assert anykit("schema", "--format", "openai", "many.py", "-q").err == ""
    assert anykit("schema", "--format", "anthropic", "many.py").err == ""


def test_a_source_that_is_not_there_is_no_empty_list_with_success() -> None:
    done = anykit("schema", "--format", "openai", "nowhere.py")
    assert done.code == 2
    assert done.out in ("", "[]\n")
    assert json.dumps("nowhere.py")[1:-1] in done.err


def test_the_format_is_completed() -> None:
    done = anykit("completion", "words", "--", "schema", "--format", "ge")
    assert [line.partition("\t")[0] for line in done.out.splitlines()] == ["gemini"]
