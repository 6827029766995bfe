"""A tool's schema for model providers: what goes out is what they take, and means what the tool means."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings

from anykit.capabilities import JsonObject
from anykit.schema import SchemaError, compile_schema
from anykit.schema.dialects import (
    Conversion,
    NotStrict,
    for_anthropic,
    for_anthropic_strict,
    for_gemini,
    for_openai,
    for_openai_strict,
    parameter_aliases,
)
from schema.providers import ARGUMENTS, nodes, of_gemini, quirks, tool_schemas

Convert = Callable[[JsonObject], Conversion]
PLAIN: tuple[Convert, ...] = (for_openai, for_anthropic, for_gemini)
STRICT: tuple[Convert, ...] = (for_openai_strict, for_anthropic_strict)
MANY = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)


def refused(convert: Convert, schema: JsonObject) -> set[tuple[str, str]]:
    """Where, and which keywords stand in the way."""
    with pytest.raises(NotStrict) as caught:
        convert(schema)
    return {(refusal.pointer, refusal.keyword) for refusal in caught.value.refusals}


def as_json_schema(convert: Convert, schema: JsonObject) -> JsonObject:
    return of_gemini(schema) if convert is for_gemini else schema


# the public cases


REFERENCES: JsonObject = quirks()["references of every kind"]


@pytest.mark.parametrize("convert", PLAIN)
def test_b006_references_of_every_kind_mean_what_they_meant(convert: Convert) -> None:
    """google-gemini/gemini-cli#13326: references were dropped, left dangling, or only `#/$defs/` was understood."""
    before = copy.deepcopy(REFERENCES)
    made = convert(REFERENCES).schema
    assert before == REFERENCES
    assert "definitions" not in made
    judged = compile_schema(as_json_schema(convert, made))
    assert judged.is_valid({"a": {"t": "x"}, "many": [{"n": "y"}], "old": 3, "pct": 1.5, "anchored": True})
    wrongs: list[JsonObject] = [
        {},
        {"a": {}},
        {"a": {"t": "x"}, "old": "3"},
        {"a": {"t": "x"}, "many": [{"n": 1}]},
        {"a": {"t": "x"}, "pct": "1"},
        {"a": {"t": "x"}, "anchored": 1},
    ]
    for wrong in wrongs:
        assert not judged.is_valid(wrong), wrong
    if convert is for_gemini:
        assert all("$ref" not in node for node in nodes(made))
        assert made["properties"]["many"]["items"]["properties"] == {"n": {"type": "string"}}
    else:
        names = {node["$ref"].removeprefix("#/$defs/") for node in nodes(made) if "$ref" in node}
        assert names == set(made["$defs"])


ONE_OF_TWO: JsonObject = quirks()["alternatives at the root"]


@pytest.mark.parametrize("convert", PLAIN)
def test_b008_alternatives_at_the_root_are_folded_into_it(convert: Convert) -> None:
    """langchain-ai/langchain#39271: a root `anyOf` makes the provider refuse the whole request."""
    made = convert(ONE_OF_TWO)
    assert made.schema["type"] == "object"
    assert set(made.schema["properties"]) == {"city", "zip"}
    assert not made.schema.keys() & {"anyOf", "oneOf", "allOf", "required"}
    assert '{anyOf: [{required: ["city"]}, {required: ["zip"]}]}' in made.schema["description"]
    assert [(loss.pointer, loss.keyword) for loss in made.losses] == [("", "anyOf")]


def test_alternatives_below_the_root_stay() -> None:
    schema = {"type": "object", "properties": {"where": {**ONE_OF_TWO, "oneOf": [{"required": ["city"]}, {}]}}}
    for convert in (for_openai, for_anthropic):
        assert convert(schema).schema == schema


def test_only_what_every_alternative_requires_is_required() -> None:
    made = for_openai(quirks()["discriminated root"]).schema
    assert made["required"] == ["kind"]
    assert made["properties"] == {
        "kind": {"enum": ["circle", "square"]},
        "r": {"type": "number"},
        "side": {"type": "number"},
    }
    assert made["additionalProperties"] is False
    both = for_anthropic(quirks()["allOf at the root"]).schema
    assert both["required"] == ["a"]
    assert both["properties"] == {"a": {"type": "string", "minLength": 2}, "b": {"type": "integer"}}


def test_members_that_a_closed_root_refuses_are_not_offered() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "additionalProperties": False,
        "anyOf": [{"required": ["a"]}, {"properties": {"b": {"type": "string"}}}],
    }
    assert set(for_openai(schema).schema["properties"]) == {"a"}


KEYWORD_NAMES = quirks()["parameters called like keywords"]


@pytest.mark.parametrize("convert", [*PLAIN, for_openai_strict, for_anthropic_strict])
def test_b010_parameters_called_like_keywords_survive(convert: Convert) -> None:
    """PrefectHQ/fastmcp#3576: taking metadata away took parameters away that were called title or default."""
    made = convert(KEYWORD_NAMES).schema
    assert set(made["properties"]) == set(KEYWORD_NAMES["properties"])
    assert {"title", "type"} <= set(made["required"]) <= set(made["properties"])
    assert set(made["properties"]["properties"].get("properties", {"type": 1})) == {"type"}
    if convert is for_gemini:
        assert all("title" not in node for node in (made, *made["properties"].values()))


@pytest.mark.parametrize("convert", PLAIN)
def test_b011_literal_data_is_whole_or_gone(convert: Convert) -> None:
    """NousResearch/hermes-agent#84038: const and default were rewritten as if they were schemas."""
    schema = quirks()["literal data"]
    before = json.dumps(schema)
    made = convert(schema).schema["properties"]
    assert json.dumps(schema) == before
    said = schema["properties"]
    assert made["m"].get("const", said["m"]["const"]) == {"type": ["string", "null"], "default": 1}
    assert made["p"]["default"] == ["x1", "x2"]
    assert made["e"].get("enum", said["e"]["enum"]) == [{"$ref": "#/nowhere"}, None, 2, "s"]
    assert made["x"].get("default", {"q": "1"}) == {"q": "1"}
    assert made["x"].get("examples", said["x"]["examples"]) == [{"q": {"type": "string"}}]
    if convert is for_gemini:
        assert made["m"]["description"] == '{enum: [{type: ["string", "null"], default: 1}]}'


def test_b013_gemini_gets_its_subset_and_the_others_everything() -> None:
    """hideya/langchain-mcp-tools-ts#36: one keyword that Gemini does not know makes it refuse the whole request."""
    schema: JsonObject = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "url": {"type": "string", "format": "uri"},
            "n": {"type": "integer", "exclusiveMinimum": 0},
            "lvl": {"type": "integer", "enum": [1, 2, 3]},
        },
    }
    assert for_gemini(schema).schema == {
        "type": "object",
        "properties": {
            "url": {"type": "string", "description": '{format: "uri"}'},
            "n": {"type": "integer", "minimum": 1},
            "lvl": {"type": "integer", "description": "{enum: [1, 2, 3]}"},
        },
        "propertyOrdering": ["url", "n", "lvl"],
    }
    assert for_openai(schema).schema == schema
    assert for_anthropic(schema).schema == schema


def test_b015_older_drafts_are_said_in_the_newest() -> None:
    """modelcontextprotocol/typescript-sdk#2721: a schema was refused, or read wrongly, for the draft that it names."""
    made = for_anthropic(quirks()["draft-07"]).schema
    assert made["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert made["properties"]["pair"] == {
        "type": "array",
        "prefixItems": [{"type": "string"}, {"type": "integer"}],
        "items": False,
    }
    assert made["dependentRequired"] == {"url": ["n"]}
    assert made["dependentSchemas"] == {"lvl": {"required": ["n"]}}
    # What stands beside a reference counted for nothing then.
    assert made["properties"]["ref"] == {"$ref": "#/$defs/D", "description": "beside"}
    older = for_openai(quirks()["draft-04"]).schema
    assert older["properties"]["n"] == {"type": "number", "exclusiveMinimum": 0, "maximum": 9}
    assert older["properties"]["id"] == {"type": "string"}
    assert "id" not in older
    unnamed = for_gemini(quirks()["draft-04 without a name"]).schema
    assert unnamed["properties"]["n"] == {"type": "integer", "minimum": 1}


# what Gemini lacks


def test_what_refers_to_itself_is_cut_for_gemini_and_says_so() -> None:
    made = for_gemini(quirks()["reference at the root"])
    inner = made.schema["properties"]["next"]["properties"]["next"]
    assert inner["type"] == "object"
    assert inner["nullable"] is True
    assert "recursive: again a Node" in inner["description"]
    assert {loss.keyword for loss in made.losses} == {"$ref"}
    assert len(json.dumps(for_gemini(quirks()["mutual recursion"]).schema)) < 2000


def test_references_that_multiply_stay_bounded_for_gemini() -> None:
    definitions = {
        f"D{level}": {"type": "object", "properties": {name: {"$ref": f"#/$defs/D{level + 1}"} for name in "abcd"}}
        for level in range(7)
    }
    schema = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/D0"}},
        "$defs": {**definitions, "D7": {"type": "string"}},
    }
    made = for_gemini(schema)
    assert len(nodes(made.schema)) < 4000
    assert "too large to be shown here" in json.dumps(made.schema)
    assert any(loss.keyword == "$ref" for loss in made.losses)


HOSTILE: dict[str, JsonObject] = {
    "alternatives that are itself": {
        "$ref": "#/$defs/A",
        "$defs": {
            "A": {"type": "object", "anyOf": [{"$ref": "#/$defs/A"}] * 50, "properties": {"x": {"type": "string"}}}
        },
    },
    "itself with something beside it": {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/A"}},
        "$defs": {
            "A": {"type": "object", "properties": {name: {"$ref": "#/$defs/A", "minProperties": 1} for name in "abcd"}}
        },
    },
    "hundreds of alternatives": {
        "type": "object",
        "properties": {"x": {"oneOf": [{"type": "object", "properties": {"k": {"const": n}}} for n in range(800)]}},
    },
}
for _ in range(28):
    _deep = HOSTILE.get("deep", {"type": "object", "properties": {}})
    HOSTILE["deep"] = {"type": "object", "properties": {"x": {"type": "array", "items": _deep}}}
    _wide = HOSTILE.get("alternatives in alternatives", {"type": "object", "properties": {}})
    _forms = [{"required": ["x"]}, {"required": ["y"]}, {"minProperties": 1}]
    HOSTILE["alternatives in alternatives"] = {"type": "object", "properties": {"x": {**_wide, "anyOf": _forms}}}


@pytest.mark.parametrize("schema", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_schema_costs_little_and_does_no_harm(schema: JsonObject) -> None:
    for convert in PLAIN:
        made = convert(schema)
        compile_schema(as_json_schema(convert, made.schema))
        assert len(json.dumps(made.schema)) < 100_000
    for convert in STRICT:
        with contextlib.suppress(NotStrict):
            convert(schema)


def test_a_place_has_one_type_for_gemini_or_only_alternatives() -> None:
    made = for_gemini(quirks()["several types"]).schema["properties"]
    assert made["v"] == {
        "anyOf": [
            {"type": "string", "minLength": 1, "description": "either", "nullable": True},
            {"type": "integer", "minimum": 3, "description": "either", "nullable": True},
        ]
    }
    assert made["n"] == {"type": "number"}
    assert made["z"] == {"type": "string", "nullable": True, "description": "(always null)"}
    union = for_gemini(quirks()["unions inside"]).schema["properties"]
    assert [form["type"] for form in union["u"]["anyOf"]] == ["string", "array"]
    assert all("a date or numbers" in form["description"] for form in union["u"]["anyOf"])
    assert [form["required"] for form in union["beside"]["anyOf"]] == [["a"], ["b"]]
    assert [form["type"] for form in union["nested"]["anyOf"]] == ["string", "integer", "boolean"]


def test_gemini_enums_hold_strings_that_are_not_empty() -> None:
    made = for_gemini(quirks()["enums"]).schema["properties"]
    assert made["labels"] == {"type": "string", "enum": ["a", "b"], "description": '{a: "first"}'}
    assert made["nullable"] == {"type": "string", "enum": ["a", "b"], "nullable": True}
    assert made["empty"] == {"type": "string", "description": '{enum: ["", "x"]}'}
    assert made["bools"] == {"type": "boolean", "description": "{enum: [true]}"}
    assert [form["type"] for form in made["mixed"]["anyOf"]] == ["string", "integer"]


def test_what_gemini_cannot_say_is_said_in_the_description() -> None:
    made = for_gemini(quirks()["bounds"])
    text = json.dumps(made.schema)
    for keyword in ("uniqueItems", "contains", "multipleOf", "exclusiveMaximum", "dependentRequired", "if", "not"):
        assert f"{keyword}: " in text
        assert keyword in {loss.keyword for loss in made.losses}
    assert made.schema["properties"]["m"]["maximum"] == 3
    maps = for_gemini(quirks()["maps"]).schema["properties"]
    assert maps["env"] == {"type": "object", "description": '{additionalProperties: {type: "string"}}'}
    assert maps["any"] == {"type": "object"}


def test_a_note_is_bounded() -> None:
    values = list(range(1000))
    made = for_gemini({"type": "object", "properties": {"n": {"type": "integer", "enum": values}}}).schema
    assert len(made["properties"]["n"]["description"]) <= 600
    assert made["properties"]["n"]["description"].endswith("...}")


# names


def test_parameters_are_called_so_that_the_provider_takes_them_and_the_way_back_is_known() -> None:
    schema = quirks()["foreign names"]
    for convert, foreign in ((for_gemini, {"user-id", "a.b"}), (for_anthropic, {"$top", "x y"})):
        made = convert(schema)
        assert len(made.schema["properties"]) == len(schema["properties"])
        assert not foreign & set(made.schema["properties"])
        assert {made.aliases.get(name, name) for name in made.schema["properties"]} == set(schema["properties"])
        assert {made.aliases.get(name, name) for name in made.schema["required"]} == {"user-id", "x y"}
        assert made.aliases.items() <= parameter_aliases(schema).items()
    assert set(for_openai(schema).schema["properties"]) == set(schema["properties"])
    aliases = {name: alias for alias, name in parameter_aliases(schema).items()}
    assert aliases["filter[name]"] == "filter_name_"
    assert aliases["user-id"].startswith("user_id_")  # user_id is there already
    assert "user-id" not in for_anthropic(schema).aliases.values()


# strict


def test_an_optional_parameter_is_nullable_for_openai() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "integer", "default": 10, "description": "B"},
            "e": {"enum": ["x", "y"]},
            "n": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "o": {"type": "object", "properties": {"z": {"type": "boolean"}}},
            "r": {"$ref": "#/$defs/Q", "description": "the q"},
        },
        "required": ["a"],
        "$defs": {"Q": {"type": "string", "maxLength": 9}},
    }
    assert for_openai_strict(schema).schema == {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": ["integer", "null"], "description": "B\n\n{default: 10}"},
            "e": {"type": ["string", "null"], "enum": ["x", "y", None]},
            "n": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "o": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {"z": {"type": ["boolean", "null"]}},
                        "required": ["z"],
                        "additionalProperties": False,
                    },
                    {"type": "null"},
                ]
            },
            "r": {"description": "the q", "anyOf": [{"$ref": "#/$defs/Q"}, {"type": "null"}]},
        },
        "required": ["a", "b", "e", "n", "o", "r"],
        "additionalProperties": False,
        "$defs": {"Q": {"type": "string", "pattern": r"^[\s\S]{0,9}$"}},
    }


def test_a_parameter_may_stay_out_for_anthropic_and_bounds_are_said() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1},
            "l": {"type": "array", "items": {"type": "string"}, "minItems": 2},
        },
        "required": ["n"],
    }
    made = for_anthropic_strict(schema)
    assert made.schema == {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "description": "{minimum: 1}"},
            "l": {"type": "array", "items": {"type": "string"}, "description": "{minItems: 2}"},
        },
        "required": ["n"],
        "additionalProperties": False,
    }
    assert [str(loss) for loss in made.losses] == ["/properties/n: minimum", "/properties/l: minItems"]


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        (
            {
                "type": "object",
                "patternProperties": {"^a": {"type": "string"}},
                "properties": {"b": {"type": "string"}},
            },
            "patternProperties",
        ),
        (
            {"type": "object", "propertyNames": {"maxLength": 3}, "properties": {"b": {"type": "string"}}},
            "propertyNames",
        ),
        ({"type": "object", "minProperties": 1, "properties": {"b": {"type": "string"}}}, "minProperties"),
        ({"type": "object", "maxProperties": 1, "properties": {"b": {"type": "string"}}}, "maxProperties"),
        (
            {"type": "object", "properties": {"b": {"type": "string"}}, "dependentRequired": {"b": ["c"]}},
            "dependentRequired",
        ),
        (
            {"type": "object", "properties": {"b": {"type": "string"}}, "unevaluatedProperties": {"type": "string"}},
            "unevaluatedProperties",
        ),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "additionalProperties"),
        (
            {"type": "object", "additionalProperties": True, "properties": {"b": {"type": "string"}}},
            "additionalProperties",
        ),
        ({"type": "object"}, "additionalProperties"),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "uniqueItems"),
        ({"type": "array", "items": {"type": "string"}, "contains": {"const": "x"}}, "contains"),
        ({"type": "array", "prefixItems": [{"type": "string"}]}, "prefixItems"),
        ({"type": "array"}, "items"),
        ({"type": "string", "not": {"const": "a"}}, "not"),
        ({"type": "string", "if": {"const": "a"}, "then": {"minLength": 1}}, "if"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "oneOf"),
        ({"allOf": [{"pattern": "a"}, {"pattern": "b"}], "type": "string"}, "allOf"),
        ({"enum": [{"a": 1}]}, "enum"),
        ({}, "type"),
    ],
)
def test_openai_strict_refuses_with_place_and_keyword(schema: JsonObject, keyword: str) -> None:
    whole: JsonObject = {"type": "object", "properties": {"ok": {"type": "string"}, "p": schema}}
    assert ("/properties/p", keyword) in refused(for_openai_strict, whole)
    behind: JsonObject = {
        "type": "object",
        "properties": {"p": {"$ref": "#/definitions/x~1y"}},
        "definitions": {"x/y": schema},
    }
    assert ("/definitions/x~1y", keyword) in refused(for_openai_strict, behind)


def test_every_refusal_is_told_at_once() -> None:
    found = refused(for_openai_strict, quirks()["bounds"])
    assert {keyword for _, keyword in found} == {
        "maxLength",
        "uniqueItems",
        "contains",
        "dependentRequired",
        "if",
        "not",
    }


def test_unions_whose_forms_exclude_each_other_are_strict() -> None:
    forms: list[list[JsonObject]] = [
        [{"type": "string"}, {"type": "integer"}],
        [{"const": "a"}, {"enum": ["b", "c"]}],
        [
            {"type": "object", "properties": {"k": {"const": 1}}, "required": ["k"]},
            {"type": "object", "properties": {"k": {"const": 2}, "x": {"type": "string"}}, "required": ["k"]},
        ],
        [
            {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "required": ["a"],
                "additionalProperties": False,
            },
            {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]},
        ],
    ]
    for one in forms:
        schema: JsonObject = {"type": "object", "properties": {"u": {"oneOf": one}}, "required": ["u"]}
        assert len(for_openai_strict(schema).schema["properties"]["u"]["anyOf"]) == 2


def test_the_bounds_of_openai_strict_hold() -> None:
    wide: JsonObject = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(5001)}}
    assert ("", "properties") in refused(for_openai_strict, wide)
    deep: JsonObject = {"type": "string"}
    for _ in range(11):
        deep = {"type": "object", "properties": {"x": deep}}
    assert {keyword for _, keyword in refused(for_openai_strict, deep)} == {"properties"}
    values: JsonObject = {"type": "object", "properties": {"e": {"type": "integer", "enum": list(range(1001))}}}
    assert ("", "enum") in refused(for_openai_strict, values)
    long: JsonObject = {"type": "object", "properties": {"e": {"enum": [f"{n:0100}" for n in range(300)]}}}
    assert {keyword for _, keyword in refused(for_openai_strict, long)} == {"enum"}


def test_what_refers_to_itself_is_strict_for_openai_only() -> None:
    schema = quirks()["reference at the root"]
    made = for_openai_strict(schema).schema
    assert made["properties"]["kids"]["anyOf"][0]["items"] == {"$ref": "#/$defs/Node"}
    assert {keyword for _, keyword in refused(for_anthropic_strict, schema)} == {"$ref"}


def test_an_anthropic_schema_says_what_it_lists_only() -> None:
    found = refused(for_anthropic_strict, quirks()["maps"])
    assert {keyword for _, keyword in found} == {"additionalProperties", "patternProperties"}


# for all


@MANY
@given(tool_schemas(), ARGUMENTS)
def test_what_the_original_takes_the_export_takes_or_it_says_what_is_lost(
    schema: JsonObject, arguments: JsonObject
) -> None:
    try:
        original = compile_schema(schema)
    except SchemaError:
        assume(False)
        return
    before = copy.deepcopy(schema)
    for convert in PLAIN:
        made = convert(schema)
        named = {name: alias for alias, name in made.aliases.items()}
        given_names = {named.get(name, name): value for name, value in arguments.items()}
        judged = compile_schema(as_json_schema(convert, made.schema))
        if original.is_valid(arguments) and not made.losses:
            assert judged.is_valid(given_names), (convert.__name__, made.schema)
        if convert is not for_gemini and not made.losses:
            assert judged.is_valid(given_names) == original.is_valid(arguments), (convert.__name__, made.schema)
    assert schema == before


def without_nulls(value: Any, schema: JsonObject) -> Any:
    """As a call takes it: a null that does not fit stands for a parameter that is not given."""
    from anykit.adapters.tool_calls import Intake

    return Intake(schema, compile_schema(schema)).take(value)


@MANY
@given(tool_schemas(), ARGUMENTS)
def test_a_strict_schema_takes_nothing_that_the_original_refuses(schema: JsonObject, arguments: JsonObject) -> None:
    try:
        original = compile_schema(schema)
        made = for_openai_strict(schema)
    except (SchemaError, NotStrict):
        assume(False)
        return
    judged = compile_schema(made.schema)
    filled = {**dict.fromkeys(made.schema["properties"]), **arguments}
    for given_values in (arguments, filled):
        if judged.is_valid(given_values):
            assert original.is_valid(without_nulls(given_values, schema)), (made.schema, given_values)
