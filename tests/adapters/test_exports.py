"""A bench's tools for model providers, and their calls back."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable
from typing import Annotated, Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from anykit import Tool, Workbench, tool
from anykit.adapters import PROVIDERS, Exports, StrictRefused
from anykit.adapters.exports import Provider, is_wanted
from anykit.adapters.tool_calls import Intake, call_of, read_arguments
from anykit.capabilities import CapabilityContext, InvocableRequest, InvocableResult, JsonObject
from anykit.runtime.naming import Candidate, Names
from anykit.schema import compile_schema
from anykit.sources import FunctionSource
from anykit.sync import Workbench as SyncWorkbench
from anykit.tools import ToolSpec
from schema.providers import nodes, quirks, real_tools, rules, schema_in

pytestmark = pytest.mark.anyio

ALL: tuple[Provider, ...] = ("openai", "openai-responses", "anthropic", "gemini")
NAMES = r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}"


class Place(BaseModel):
    """Somewhere."""

    city: str
    floor: int = 0


@tool
def book(
    title: str,
    count: Annotated[int, Field(gt=0)] = 1,
    at: Place | None = None,
    tags: tuple[str, ...] = (),
    note: str = "",
) -> dict[str, Any]:
    """Books something."""
    return {"title": title, "count": count, "at": at.model_dump() if at else None, "tags": tags, "note": note}


@tool
def nothing() -> str:
    return "done"


@tool
def total(prices: dict[str, float]) -> float:
    """Adds prices."""
    return sum(prices.values())


class Echo(Tool):
    """Gives back what reached it."""

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult:
        return InvocableResult(structured=request.input)


def echo(schema: JsonObject, name: str = "echo", **more: Any) -> Echo:
    return Echo(ToolSpec(name=name, description="Echoes.", input_schema=schema, **more))


def declared(exported: list[JsonObject], provider: str) -> list[JsonObject]:
    """The tools of an export, whatever stands around them."""
    if provider == "gemini":
        return exported[0]["functionDeclarations"] if exported else []
    return [one.get("function", one) for one in exported]


def export(provider: Provider, *schemas: JsonObject, **options: Any) -> Any:
    specs = [ToolSpec(name=f"t{index}", description="d", input_schema=one) for index, one in enumerate(schemas)]
    return Exports().export(specs, provider, **options)


# shapes


async def test_each_provider_gets_its_own_shape() -> None:
    async with Workbench(nothing) as bench:
        empty: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}
        chat: JsonObject = {"name": "nothing", "description": "nothing", "parameters": empty}
        assert bench.to_openai() == [{"type": "function", "function": chat}]
        assert bench.to_openai_responses() == [{"type": "function", **chat, "strict": False}]
        assert bench.to_anthropic() == [{"name": "nothing", "description": "nothing", "input_schema": empty}]
        assert bench.to_gemini() == [{"functionDeclarations": [{"name": "nothing", "description": "nothing"}]}]
        closed: JsonObject = {**empty, "required": []}
        assert bench.to_openai(strict=True) == [
            {"type": "function", "function": {**chat, "parameters": closed, "strict": True}}
        ]
        assert bench.to_openai_responses(strict=True)[0]["strict"] is True
        assert bench.to_anthropic(strict=True)[0]["strict"] is True


async def test_nothing_gives_an_empty_list_for_every_provider() -> None:
    async with Workbench() as bench:
        assert [bench.exported(provider).tools for provider in ALL] == [[], [], [], []]


def test_a_deferred_tool_is_loaded_later_by_anthropic_only() -> None:
    specs = [ToolSpec(name="a", description="d", input_schema={"type": "object"}, deferred=True)]
    assert Exports().export(specs, "anthropic").tools[0]["defer_loading"] is True
    assert "defer_loading" not in Exports().export(specs, "openai-responses").tools[0]


async def test_exports_are_copies_and_the_tools_stay_as_they_are() -> None:
    async with Workbench(book) as bench:
        before = copy.deepcopy(book.input_schema)
        for provider in ALL:
            first = bench.exported(provider).tools
            kept = copy.deepcopy(first)
            schema_in(declared(first, provider)[0])["properties"].clear()
            assert bench.exported(provider).tools == kept
        assert book.input_schema == before


async def test_a_definition_that_changed_is_exported_anew() -> None:
    async with Workbench() as bench:
        bench.register(echo({"type": "object", "properties": {"a": {"type": "string"}}}))
        assert set(schema_in(bench.to_openai()[0])["properties"]) == {"a"}
        bench.unregister("echo")
        assert bench.to_openai() == []
        bench.register(echo({"type": "object", "properties": {"b": {"type": "string"}}}, name="other"))
        assert set(schema_in(bench.to_openai()[0])["properties"]) == {"b"}


async def test_tools_are_chosen_by_name_and_pattern() -> None:
    async with Workbench(book, nothing, total) as bench:

        def names(tools: str | Iterable[str]) -> list[str]:
            return [one["name"] for one in bench.to_anthropic(tools=tools)]

        assert names("book") == ["book"]
        assert names(["*o*"]) == ["book", "nothing", "total"]
        assert names(["t*", "book"]) == ["book", "total"]
        assert names("elsewhere") == []
    assert is_wanted("a[b]", None)


def test_sync_benches_export_too() -> None:
    with SyncWorkbench(book, total) as bench:
        assert [one["function"]["name"] for one in bench.to_openai()] == ["book", "total"]
        assert bench.to_openai_responses(tools="book", strict=True)[0]["strict"] is True
        assert bench.to_anthropic(tools="total")[0]["name"] == "total"
        assert bench.to_gemini()[0]["functionDeclarations"][1]["name"] == "total"
        assert set(bench.exported("gemini").losses) == {"total"}
        assert bench.execute({"name": "total", "args": {"prices": {"a": 1.5}}}).output == "1.5"


# what they hold to


@pytest.mark.parametrize("provider", ALL)
def test_every_export_keeps_the_rules_of_its_provider(provider: Provider) -> None:
    for name, schema in quirks().items():
        before = json.dumps(schema)
        exported = export(provider, schema)
        assert rules(provider).faults(exported.tools) == [], name
        assert len(declared(exported.tools, provider)) == 1, name
        _check_schema(schema_in(declared(exported.tools, provider)[0]), provider)
        assert json.dumps(schema) == before
        if provider == "gemini":
            continue
        try:
            strict = export(provider, schema, strict=True)
        except StrictRefused:
            continue
        assert rules(provider, strict=True).faults(strict.tools) == [], name
        _check_schema(schema_in(declared(strict.tools, provider)[0]), provider, strict=True)


def _check_schema(schema: JsonObject, provider: str, *, strict: bool = False) -> None:
    """What a rule as a schema cannot say: references lead somewhere, what is required is described."""
    if provider != "gemini":
        compile_schema(schema)  # raises for a reference that leads nowhere
    for node in nodes(schema):
        found: object = node.get("properties")
        if not isinstance(found, dict):
            continue
        properties, required = cast(JsonObject, found), node.get("required")
        if strict or provider == "gemini":
            assert set(required or []) <= set(properties)
        if strict and provider.startswith("openai"):
            assert required == list(properties)
        if provider == "gemini" and properties:
            assert node["propertyOrdering"] == list(properties)


@pytest.mark.parametrize("provider", ALL)
def test_what_public_mcp_servers_list_goes_out_whole(provider: Provider) -> None:
    specs = [
        ToolSpec(name=one["name"], description=one.get("description", ""), input_schema=one["inputSchema"])
        for one in real_tools()
    ]
    exported = Exports().export(specs, provider)
    assert rules(provider).faults(exported.tools) == []
    assert [one["name"] for one in declared(exported.tools, provider)] == [spec.name for spec in specs]
    for spec, one in zip(specs, declared(exported.tools, provider), strict=True):
        assert set(schema_in(one)["properties"]) == set(spec.input_schema.get("properties", {}))
    if provider != "gemini":
        strict = Exports().export(specs, provider, strict=True)
        assert rules(provider, strict=True).faults(strict.tools) == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.text(max_size=70)), min_size=1, max_size=8, unique=True))
def test_every_exported_name_keeps_the_rule_and_is_one_tool(pairs: list[tuple[str, str]]) -> None:
    candidates = [Candidate(source, original, f"{source}_", source) for source, original in pairs]
    given_names = Names().assign(candidates)
    specs = [
        ToolSpec(name=given_names[one.key].exposed, description=f"{one.source} {one.original}", input_schema={})
        for one in candidates
    ]
    for provider in ALL:
        exported = declared(Exports().export(specs, provider).tools, provider)
        back = {one["name"]: one["description"] for one in exported}
        assert len(back) == len(pairs)
        assert [back[spec.name] for spec in specs] == [spec.description for spec in specs]
    assert rules("gemini").is_valid(Exports().export(specs, "gemini").tools)
    assert rules("openai").is_valid(Exports().export(specs, "openai").tools)


def test_a_tool_whose_schema_is_none_costs_only_itself() -> None:
    """anthropics/claude-code#88049 (B021): one malformed definition in a list poisoned the rest."""
    good: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}}}
    for provider in ALL:
        exported = export(provider, good, {"type": "int"}, {"$ref": "#/nowhere"}, good)
        assert [one["name"] for one in declared(exported.tools, provider)] == ["t0", "t3"]
        assert [remark.tool for remark in exported.remarks] == ["t1", "t2"]
        assert "left out: its schema cannot be used" in str(exported.remarks[0])


# what is said of them


def test_losses_and_aliases_and_doubts_are_told() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "n": {"type": "number", "multipleOf": 0.5},
            "user-id": {"type": "string"},
            "$ref": {"type": "string"},
        },
    }
    exported = export("gemini", schema)
    assert [str(loss) for loss in exported.losses["t0"]] == ["/properties/n: multipleOf"]
    assert [str(remark) for remark in exported.remarks] == [
        "t0: said in the description instead: /properties/n: multipleOf",
        "t0: its parameter 'user-id' is called 'user_id', and that is put back when it is called",
        "t0: gemini may refuse a parameter called '$ref'",
    ]
    long = ToolSpec(name="long", description="x" * 1025, input_schema={})
    assert "1025 characters" in str(Exports().export([long], "openai").remarks[0])
    assert Exports().export([long], "anthropic").remarks == ()


def test_more_tools_than_a_request_takes_are_told_and_sent() -> None:
    many: list[JsonObject] = [{"type": "object"}] * 129
    for provider in ("openai", "openai-responses", "gemini"):
        exported = export(provider, *many)
        assert len(declared(exported.tools, provider)) == 129
        assert [remark.tool for remark in exported.remarks] == [None]
        assert "takes 128 in one request" in str(exported.remarks[0])
        assert export(provider, *many[:128]).remarks == ()
    assert export("anthropic", *many).remarks == ()


# strict


async def test_strict_is_all_or_nothing_unless_told_otherwise() -> None:
    async with Workbench(book, total) as bench:
        with pytest.raises(StrictRefused) as caught:
            bench.to_openai(strict=True)
        assert [(name, refusal.pointer, refusal.keyword) for name, refusal in caught.value.refusals] == [
            ("total", "/properties/prices", "additionalProperties")
        ]
        assert "total: /properties/prices: additionalProperties" in str(caught.value)
        some = bench.exported("openai", strict="auto")
        assert [one["function"].get("strict", False) for one in some.tools] == [True, False]
        assert [remark.tool for remark in some.remarks] == ["total"]
        assert [one["strict"] for one in bench.to_openai_responses(strict="auto")] == [True, False]
        assert bench.to_openai(strict=True, tools="book")[0]["function"]["strict"] is True


async def test_what_is_no_provider_or_has_no_strict_mode_is_refused() -> None:
    async with Workbench(book) as bench:
        with pytest.raises(ValueError, match="gemini has no strict mode"):
            bench.exported("gemini", strict=True)
        unknown: Any = "mistral"
        with pytest.raises(
            ValueError, match="no provider 'mistral'; known: openai, openai-responses, anthropic, gemini"
        ):
            bench.exported(unknown)
    assert set(PROVIDERS) == set(ALL)


# calls back

SHAPES: dict[str, Callable[[str, JsonObject], Any]] = {
    "chat": lambda name, arguments: {
        "id": "1",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    },
    "responses": lambda name, arguments: {
        "type": "function_call",
        "name": name,
        "arguments": json.dumps(arguments),
        "call_id": "1",
    },
    "anthropic": lambda name, arguments: {"type": "tool_use", "id": "1", "name": name, "input": arguments},
    "gemini": lambda name, arguments: {"name": name, "args": arguments},
    "a part of gemini": lambda name, arguments: {"functionCall": {"name": name, "args": arguments}},
    "a part of google-genai": lambda name, arguments: {
        "text": None,
        "function_call": {"name": name, "args": arguments},
    },
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
async def test_a_call_is_taken_as_it_comes(shape: Callable[[str, JsonObject], Any]) -> None:
    async with Workbench(book) as bench:
        result = await bench.execute(
            shape("book", {"title": "tea", "count": 2.0, "at": {"city": "Bonn", "floor": 1.0}})
        )
        assert (result.is_error, result.structured["count"], result.structured["at"]) == (
            False,
            2,
            {"city": "Bonn", "floor": 1},
        )


async def test_arguments_that_were_encoded_twice_are_read() -> None:
    async with Workbench(total) as bench:
        assert (await bench.execute("total", json.dumps(json.dumps({"prices": {"a": 2}})))).output == "2.0"


@pytest.mark.parametrize("arguments", [None, "", "  ", "{}", {}])
async def test_no_arguments_are_no_arguments(arguments: Any) -> None:
    async with Workbench(nothing) as bench:
        assert (await bench.execute("nothing", arguments)).output == "done"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [("{", "are not JSON"), ("[1]", "object"), ('"x"', "object"), (7, "object"), ('{"title": 1}', "/title")],
)
async def test_arguments_that_are_wrong_are_a_failed_result(arguments: Any, said: str) -> None:
    async with Workbench(book) as bench:
        result = await bench.execute("book", arguments)
        assert result.is_error
        assert said in result.output


async def test_an_unknown_tool_is_a_failed_result_and_what_is_no_call_a_type_error() -> None:
    async with Workbench(book) as bench:
        assert "did you mean book" in (await bench.execute({"name": "bok", "input": {}})).output
        for wrong in ({}, 7, {"function": {"arguments": "{}"}}, ["book"]):
            with pytest.raises(TypeError, match="a tool call has a name"):
                await bench.execute(wrong)


async def test_null_for_what_may_be_left_out_is_not_given() -> None:
    async with Workbench(book) as bench:
        given_all = {"title": "tea", "count": None, "at": None, "tags": None, "note": None}
        result = await bench.execute("book", json.dumps(given_all))
        assert result.structured == {"title": "tea", "count": 1, "at": None, "tags": [], "note": ""}
        result = await bench.execute("book", {"title": "tea", "at": {"city": "Bonn", "floor": None}})
        assert result.structured["at"] == {"city": "Bonn", "floor": 0}
        refused = await bench.execute("book", {"title": None, "count": None})
        assert refused.is_error
        assert "/title" in refused.output
        assert "/count" not in refused.output
        # A caller who is no model means what it says.
        assert (await bench.call("book", {"title": "tea", "count": None})).is_error


async def test_the_original_is_enforced_whatever_an_export_left_out() -> None:
    """langchain-ai/langchain#39271 (B008) and hideya/langchain-mcp-tools-ts#36 (B013)."""
    two = echo(quirks()["alternatives at the root"], "two")
    bounds = echo(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "url": {"type": "string", "format": "uri"},
                "n": {"type": "integer", "exclusiveMinimum": 0},
                "lvl": {"type": "integer", "enum": [1, 2, 3]},
            },
        },
        "bounds",
    )
    async with Workbench(two, bounds) as bench:
        assert (await bench.execute("two", {})).is_error
        assert (await bench.execute("two", {"zip": "1"})).structured == {"zip": "1"}
        for wrong in ({"n": 0}, {"lvl": 7}, {"extra": 1}):
            assert (await bench.execute("bounds", wrong)).is_error
        assert (await bench.execute("bounds", {"n": 1, "lvl": 2.0})).structured == {"n": 1, "lvl": 2}


async def test_parameters_that_had_to_be_renamed_reach_the_tool_by_their_own_names() -> None:
    schema = quirks()["foreign names"]
    foreign = echo({key: value for key, value in schema.items() if key != "dependentRequired"})
    async with Workbench(foreign) as bench:
        for exported in (bench.to_gemini()[0]["functionDeclarations"][0], bench.to_anthropic()[0]):
            sent = {
                name: 1 if "integer" in json.dumps(child.get("type")) else "x"
                for name, child in schema_in(exported)["properties"].items()
            }
            result = await bench.execute({"name": "echo", "args": sent})
            assert not result.is_error, result.output
            assert set(result.structured) == set(schema["properties"])
        own = await bench.execute("echo", {"user-id": "u", "x y": "v", "user_id": 3})
        assert own.structured == {"user-id": "u", "x y": "v", "user_id": 3}


def test_a_name_in_a_map_is_never_taken_for_an_alias() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"user-id": {"type": "string"}, "map": {"type": "object"}},
        "additionalProperties": True,
    }
    intake = Intake(schema, compile_schema(schema))
    assert intake.take({"user_id": "1", "map": {"user_id": "2"}}) == {"user-id": "1", "map": {"user_id": "2"}}
    assert intake.take({"user_id": "1", "user-id": "2"}) == {"user_id": "1", "user-id": "2"}


def test_only_nulls_that_stand_in_the_way_are_taken_out() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "n": {"type": ["string", "null"]},
            "any": {},
            "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}}}},
            "form": {
                "oneOf": [
                    {"type": "object", "properties": {"k": {"const": 1}, "y": {"type": "string"}}, "required": ["k"]}
                ]
            },
        },
    }
    intake = Intake(schema, compile_schema(schema))
    sent = {"n": None, "any": {"z": None}, "list": [{"x": None}, {"x": 1}], "form": {"k": 1, "y": None}}
    before = copy.deepcopy(sent)
    assert intake.take(sent) == {"n": None, "any": {"z": None}, "list": [{}, {"x": 1}], "form": {"k": 1}}
    assert sent == before


def test_whole_floats_become_integers_where_integers_are_wanted() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "i": {"$ref": "#/$defs/I"},
            "f": {"type": "number"},
            "l": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
            "any": {},
        },
        "$defs": {"I": {"type": "integer"}},
    }
    taken = Intake(schema, compile_schema(schema)).take({"i": 5.0, "f": 2.0, "l": [1.0, None], "any": 3.0, "j": 1e300})
    assert json.dumps(taken) == '{"i": 5, "f": 2.0, "l": [1, null], "any": 3.0, "j": 1e+300}'


def test_objects_with_attributes_and_other_mappings_are_calls_too() -> None:
    from types import MappingProxyType, SimpleNamespace

    function = SimpleNamespace(name="a", arguments='{"x": 1}')
    assert call_of(SimpleNamespace(function=function)) == ("a", '{"x": 1}')
    assert call_of(SimpleNamespace(name="a", input={"x": 1})) == ("a", {"x": 1})
    assert call_of(SimpleNamespace(name="a")) == ("a", None)
    nested = MappingProxyType({"x": MappingProxyType({"y": (1, 2)})})
    assert read_arguments(nested) == {"x": {"y": [1, 2]}}
    assert read_arguments({"x": nested}) == {"x": {"x": {"y": [1, 2]}}}


async def test_a_source_with_names_that_providers_refuse_is_exported_and_called() -> None:
    """github/copilot-cli#1879 (B001): one name that a model API refuses makes it refuse the whole request."""
    offered = FunctionSource([echo({"type": "object"}, name) for name in ("crm.leads.find", "stock/item", "Open Door")])
    async with Workbench(offered) as bench:
        for provider in ALL:
            exported = bench.exported(provider).tools
            assert rules(provider).faults(exported) == []
            names = [one["name"] for one in declared(exported, provider)]
            assert len(set(names)) == 3
            for name in names:
                assert not (await bench.execute(name, "{}")).is_error
