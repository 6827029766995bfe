"""Validation: every fault at once, with its place and a reason, and never a value."""

from __future__ import annotations

import math
import threading
import time
from enum import IntEnum, StrEnum
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anykit.capabilities import InvalidInput, JsonObject
from anykit.schema import MAX_DEPTH, SchemaError, compile_schema, is_json, json_faults
from schema.values import JSON

CONFIG: JsonObject = {
    "type": "object",
    "properties": {
        "root": {"type": "string", "minLength": 1},
        "depth": {"type": "integer", "minimum": 0, "maximum": 9},
        "mode": {"enum": ["read", "write"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2, "uniqueItems": True},
        "a/b~c": {"type": "boolean"},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    },
    "required": ["root", "mode"],
    "additionalProperties": False,
}


def paths(schema: JsonObject, instance: object) -> list[str]:
    return [fault["path"] for fault in compile_schema(schema).faults(instance)]


def messages(schema: JsonObject, instance: object) -> dict[str, str]:
    return {fault["path"]: fault["message"] for fault in compile_schema(schema).faults(instance)}


def test_all_faults_are_reported_at_once_with_pointers_and_reasons() -> None:
    assert messages(
        CONFIG,
        {"depth": 12, "mode": "wirte", "tags": ["a", 1, "b"], "a/b~c": 1, "maybe": "x", "rot": "r"},
    ) == {
        "/root": "'root' is required",
        "/depth": "must be at most 9",
        "/mode": 'must be one of "read", "write"; did you mean \'write\'?',
        "/tags": "must have at most 2 items",
        "/tags/1": "must be a string, not an integer",
        "/a~1b~0c": "must be true or false, not an integer",
        "/maybe": "must be an integer or null, not a string",
        "/rot": (
            "'rot' is not allowed; allowed: 'root', 'depth', 'mode', 'tags', 'a/b~c', 'maybe'; did you mean 'root'?"
        ),
    }


def test_what_fits_has_no_fault() -> None:
    assert compile_schema(CONFIG).faults({"root": "/", "mode": "read", "tags": ["a"], "maybe": None}) == []


@pytest.mark.parametrize(
    ("schema", "instance", "message"),
    [
        ({"const": {"a": 1}}, 2, 'must be {"a": 1}'),
        ({"exclusiveMinimum": 0}, 0, "must be greater than 0"),
        ({"exclusiveMaximum": 5}, 5, "must be less than 5"),
        ({"multipleOf": 3}, 4, "must be a multiple of 3"),
        ({"minLength": 1}, "", "must have at least 1 character"),
        ({"maxLength": 2}, "abc", "must have at most 2 characters"),
        ({"minItems": 2}, [1], "must have at least 2 items"),
        ({"minProperties": 1}, {}, "must have at least 1 field"),
        ({"maxProperties": 0}, {"a": 1}, "must have at most 0 fields"),
        ({"pattern": "^a+$"}, "b", "must match the pattern '^a+$'"),
        ({"uniqueItems": True}, [1, 1.0], "must not have two equal items"),
        ({"contains": {"type": "string"}}, [1], "has too few or too many of the items that it must contain"),
        ({"not": {"type": "string"}}, "x", "has a form that is not allowed"),
        ({"oneOf": [{"type": "integer"}, {"minimum": 1}]}, 3, "fits more than one of the allowed forms"),
        ({"type": ["string", "null"]}, 1, "must be a string or null, not an integer"),
        ({"oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]}, "c", 'must be one of "a", "b"'),
        ({"anyOf": [{"required": ["city"]}, {"required": ["zip"]}]}, {}, "'city' is required; or: 'zip' is required"),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, "has the name 'ab', which must have at most 1 character"),
        (False, 1, "is not allowed"),
    ],
)
def test_reasons_are_readable(schema: JsonObject, instance: object, message: str) -> None:
    (fault,) = compile_schema(schema).faults(instance)
    assert fault["path"] == ""
    assert message in fault["message"]


def test_places_inside_dependencies_and_closed_objects_are_the_fields_own() -> None:
    assert paths({"dependentRequired": {"a": ["b"]}}, {"a": 1}) == ["/b"]
    assert paths({"type": "object", "additionalProperties": False}, {"x": 1, "y": 2}) == ["/x", "/y"]
    assert paths({"properties": {"a": {}}, "unevaluatedProperties": False}, {"a": 1, "b": 2}) == ["/b"]
    assert paths({"properties": {"a": False}}, {"a": 1}) == ["/a"]
    assert paths({"prefixItems": [{}], "items": False}, [1, 2]) == ["/1"]
    assert paths({"if": {"type": "integer"}, "then": {"minimum": 5}}, 1) == [""]


def test_of_a_union_the_form_that_was_meant_says_what_is_wrong() -> None:
    tagged: JsonObject = {
        "oneOf": [
            {"properties": {"kind": {"const": "a"}, "v": {"type": "integer"}}, "required": ["kind"]},
            {"properties": {"kind": {"const": "b"}, "v": {"type": "string"}}, "required": ["kind"]},
        ]
    }
    assert messages(tagged, {"kind": "b", "v": 1}) == {"/v": "must be a string, not an integer"}
    nullable: JsonObject = {"anyOf": [{"type": "object", "required": ["x"]}, {"type": "null"}]}
    assert messages(nullable, {}) == {"/x": "'x' is required"}


def test_a_whole_float_is_an_integer_and_true_is_not() -> None:
    validator = compile_schema({"type": "integer"})
    assert [validator.is_valid(value) for value in (1, 1.0, -0.0, 10**40, True, 1.5, "1")] == [
        True,
        True,
        True,
        True,
        False,
        False,
        False,
    ]
    assert not compile_schema({"enum": [1]}).is_valid(True)
    assert not compile_schema({"const": 9007199254740993}).is_valid(9007199254740992)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, float("1e400")])
def test_nan_and_infinity_fit_nothing(value: float) -> None:
    for schema in ({}, {"type": "number"}, True):
        assert not compile_schema(schema).is_valid(value)
        assert not compile_schema(schema).is_valid({"a": [value]})
    assert paths({}, {"a": [1, value]}) == ["/a/1"]


def test_b071_lone_surrogates_are_a_fault_and_pairs_pass() -> None:
    """MemPalace/mempalace#503: a lone surrogate killed the server."""
    validator = compile_schema({"type": "object"})
    assert validator.is_valid({"a": "\U0001f600", "\U0001f600": 1})
    for bad, path in (
        ({"a": "\ud83d"}, "/a"),
        ({"a": {"b": ["x", "\udcff"]}}, "/a/b/1"),
        ({"\ud83d": 1}, ""),
    ):
        assert not validator.is_valid(bad)
        (fault,) = validator.faults(bad)
        assert fault["path"] == path
        assert "surrogate" in fault["message"]
        str(fault).encode()
    assert validator.is_valid({"a": "next"})


def test_what_is_no_json_is_a_fault_and_no_crash() -> None:
    class Word(StrEnum):
        A = "a"

    class Number(IntEnum):
        A = 1

    validator = compile_schema({})
    assert validator.is_valid({"a": Word.A, "b": Number.A, "c": (1, 2)})
    for bad in ({1}, b"x", object(), {1: 2}, {"a": {2}}, [Exception]):
        assert not validator.is_valid(bad)
        assert validator.faults(bad)


def test_depth_is_bounded() -> None:
    validator = compile_schema({"items": {"$ref": "#"}})
    fits: list[Any] = []
    for _ in range(MAX_DEPTH - 1):
        fits = [fits]
    assert validator.is_valid(fits)
    deep = [fits]
    assert "128" in validator.faults(deep)[0]["message"]
    for _ in range(100_000):
        deep = [deep]
    assert not validator.is_valid({"a": deep})
    (fault,) = validator.faults({"a": deep})
    assert len(fault["path"]) < 100
    circle: list[Any] = []
    circle.append(circle)
    assert not validator.is_valid(circle)


def test_the_number_of_faults_is_bounded() -> None:
    faults = compile_schema({"items": {"type": "string"}}).faults(list(range(5000)))
    assert len(faults) == 256
    assert "more" in faults[-1]["message"]


@pytest.mark.parametrize("schema", [5, None, [], "object", ({},)])
def test_a_schema_is_an_object_or_a_boolean(schema: object) -> None:
    with pytest.raises(SchemaError):
        compile_schema(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "int"},
        {"type": "object", "properties": {"k": {"type": "string"}, "required": ["k"]}},
        {"pattern": "("},
        {"minimum": "3"},
        {"const": math.nan},
        {"description": "\ud83d"},
        {"default": {1}},
        {"maximum": 10**5000},
        {"enum": ["x" * 1024] * 1100},
    ],
)
def test_what_is_no_schema_is_refused_in_one_line(schema: JsonObject) -> None:
    with pytest.raises(SchemaError) as raised:
        compile_schema(schema)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400


def test_a_schema_that_nests_too_deep_is_refused() -> None:
    schema: JsonObject = {}
    for _ in range(100_000):
        schema = {"not": schema}
    with pytest.raises(SchemaError, match="128"):
        compile_schema(schema)


# B015


def test_b015_tuples_of_draft_07_are_honoured() -> None:
    """modelcontextprotocol/typescript-sdk#2721: the dialect that a schema declares."""
    body: JsonObject = {
        "type": "object",
        "properties": {"pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}},
    }
    for label in (
        {"$schema": "http://json-schema.org/draft-07/schema#"},
        {"$schema": "https://json-schema.org/draft-07/schema"},
        {},
    ):
        validator = compile_schema({**label, **body})
        assert validator.is_valid({"pair": ["a", 1]})
        assert paths({**label, **body}, {"pair": ["a", "x"]}) == ["/pair/1"]


def test_b015_an_unknown_dialect_is_named() -> None:
    """modelcontextprotocol/typescript-sdk#2721."""
    for label in ("http://127.0.0.1:9/meta", "urn:x", "", 5, None, {"a": 1}):
        with pytest.raises(SchemaError, match=r"unknown \$schema"):
            compile_schema({"$schema": label, "type": "object"})


def test_other_drafts_are_read_by_their_own_rules() -> None:
    exclusive: JsonObject = {"minimum": 0, "exclusiveMinimum": True}
    assert not compile_schema({"$schema": "http://json-schema.org/draft-04/schema#", **exclusive}).is_valid(0)
    assert not compile_schema(exclusive).is_valid(0)
    with pytest.raises(SchemaError):
        compile_schema({"$schema": "https://json-schema.org/draft/2020-12/schema", **exclusive})
    recursive: JsonObject = {"prefixItems": [{"type": "string"}]}
    assert not compile_schema(recursive).is_valid([1])
    assert compile_schema({"$schema": "http://json-schema.org/draft-07/schema#", **recursive}).is_valid([1])


def test_format_is_a_hint_in_every_draft() -> None:
    for label in ({}, {"$schema": "http://json-schema.org/draft-07/schema#"}):
        assert compile_schema({**label, "format": "date-time"}).is_valid("2026-01-02T03:04:05")


# Compiling once


def test_equal_schemas_are_compiled_once_and_a_changed_one_anew() -> None:
    schema: JsonObject = {"type": "object", "properties": {"only-here": {"type": "integer"}}}
    first = compile_schema(schema)
    assert compile_schema({"type": "object", "properties": {"only-here": {"type": "integer"}}}) is first
    schema["properties"]["only-here"]["type"] = "string"
    assert compile_schema(schema) is not first
    assert first.is_valid({"only-here": 1})
    assert compile_schema(schema).is_valid({"only-here": "x"})


def test_one_validator_serves_several_threads() -> None:
    validator = compile_schema(CONFIG)
    found: list[int] = []

    def work() -> None:
        found.extend(len(validator.faults({"depth": i % 12, "mode": "read", "root": "r"})) for i in range(200))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert sum(found) == 4 * sum(1 for i in range(200) if i % 12 > 9)


# Hostile schemas


def doubling(levels: int) -> JsonObject:
    """A short schema that refers to itself 2^levels times over."""
    definitions: JsonObject = {
        f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}, {"$ref": f"#/$defs/a{i + 1}"}]} for i in range(levels)
    }
    return {"$ref": "#/$defs/a0", "$defs": {**definitions, f"a{levels}": {"type": "integer"}}}


def test_references_that_multiply_are_bounded() -> None:
    assert compile_schema(doubling(8)).faults("x") == [
        {"path": "", "message": "must be an integer, not a string"},
    ]
    with pytest.raises(SchemaError, match="references"):
        compile_schema(doubling(60))


def test_forms_that_refer_to_themselves_do_not_cost_a_power_of_the_depth() -> None:
    forms = [{"type": "object", "properties": {"x": {"$ref": "#"}, "op": {"const": op}}} for op in "abc"]
    validator = compile_schema({"anyOf": [{"type": "integer"}, *forms]})
    instance: Any = "wrong"
    for _ in range(100):
        instance = {"x": instance}
    start = time.process_time()
    assert not validator.is_valid(instance)
    faults = validator.faults(instance)
    assert time.process_time() - start < 3
    assert faults
    assert "too deeply nested" in faults[0]["message"]


def test_a_large_array_with_one_fault_says_where_it_is() -> None:
    validator = compile_schema({"properties": {"a": {"items": {"type": "integer"}}}})
    assert [fault["path"] for fault in validator.faults({"a": [*range(20_000), "x"]})] == ["/a/20000"]
    (fault,) = validator.faults({"a": ["x"] * 300_000})
    assert fault["path"] == "/a"


def test_a_pattern_cannot_stall_the_validator() -> None:
    for pattern in ("(a+)+$", "^(?=(a+)+$)b"):
        validator = compile_schema({"pattern": pattern})
        start = time.process_time()
        validator.faults("a" * 5000 + "!")
        assert time.process_time() - start < 2


def test_a_schema_that_is_only_itself_accepts_anything() -> None:
    assert compile_schema({"$ref": "#"}).faults({"a": 1}) == []


# For all


SCHEMAS = st.sampled_from(
    [
        CONFIG,
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"items": {"anyOf": [{"type": "string"}, {"$ref": "#"}]}},
        {"oneOf": [{"type": "integer"}, {"type": "object", "properties": {"a": {"$ref": "#"}}}, {"const": "x"}]},
        {"not": {"type": ["string", "null"]}, "maxProperties": 1, "minItems": 1},
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}], "additionalItems": False},
    ]
)


@settings(max_examples=300, deadline=None)
@given(SCHEMAS, JSON)
def test_faults_and_validity_and_the_reference_agree(schema: JsonObject, instance: Any) -> None:
    validator = compile_schema(schema)
    faults = validator.faults(instance)
    assert validator.is_valid(instance) == (not faults)
    assert validator.is_valid(instance) == jsonschema_rs.is_valid(schema, instance)
    for fault in faults:
        assert fault["path"] == "" or fault["path"].startswith("/")
        assert fault["message"]


ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.floats() | st.binary(max_size=2) | st.text(st.characters(), max_size=3) | st.complex_numbers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.text(st.characters(), max_size=2) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(ANYTHING)
def test_any_python_value_is_either_json_or_has_a_fault_that_can_be_sent(value: Any) -> None:
    faults = json_faults(value)
    assert is_json(value) == (not faults)
    assert compile_schema({}).is_valid(value) == (not faults)
    for fault in faults:
        (fault["path"] + fault["message"]).encode()


@settings(max_examples=200, deadline=None)
@given(st.text(min_size=9, max_size=30).filter(lambda text: text.isascii() and text.strip() == text), SCHEMAS)
def test_no_message_holds_a_value_of_the_instance(value: str, schema: JsonObject) -> None:
    marked = f"<<{value}>>"
    for instance in (marked, {"root": 1, "mode": marked, "depth": marked, "a/b~c": marked}, [marked, marked]):
        for fault in compile_schema(schema).faults(instance):
            assert marked not in fault["message"]


def test_completed_gives_the_whole_value_or_every_fault() -> None:
    schema: JsonObject = {"properties": {"a": {"type": "integer", "default": 1}, "b": {}}, "required": ["a", "b"]}
    assert compile_schema(schema).completed({"b": 2}) == {"a": 1, "b": 2}
    for bad in ({}, {"a": "x"}, {"a": math.nan}):
        with pytest.raises(InvalidInput) as raised:
            compile_schema(schema).completed(bad, "no good")
        assert raised.value.message == "no good"
        assert raised.value.errors
