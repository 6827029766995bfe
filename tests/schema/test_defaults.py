"""Defaults are filled in, in a copy."""

from __future__ import annotations

import copy
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anykit.capabilities import InvalidInput, JsonObject
from anykit.schema import SchemaError, compile_schema
from schema.values import JSON

CONFIG: JsonObject = {
    "type": "object",
    "properties": {
        "root": {"type": "string"},
        "depth": {"type": "integer", "default": 3},
        "net": {"type": "object", "properties": {"retries": {"type": "integer", "default": 2}}, "default": {}},
    },
    "required": ["root"],
}


def filled(schema: JsonObject, instance: Any) -> Any:
    return compile_schema(schema).with_defaults(instance)


def test_b060_nested_defaults_are_filled_in_a_copy() -> None:
    """python-jsonschema/jsonschema#266: validation passed and the values were missing."""
    schema, config = copy.deepcopy(CONFIG), {"root": "/r"}
    whole = filled(schema, config)
    assert whole == {"root": "/r", "depth": 3, "net": {"retries": 2}}
    whole["net"]["retries"] = 9
    assert (schema, config) == (CONFIG, {"root": "/r"})
    assert filled(schema, config)["net"] == {"retries": 2}
    assert [fault["path"] for fault in compile_schema(schema).faults({})] == ["/root"]
    assert "'root'" in compile_schema(schema).faults({})[0]["message"]


def test_b060_defaults_are_validated_too() -> None:
    """horejsek/python-fastjsonschema#194."""
    schema: JsonObject = {"properties": {"depth": {"type": "integer", "default": "deep"}}}
    with pytest.raises(InvalidInput) as raised:
        compile_schema(schema).completed({})
    assert [fault["path"] for fault in raised.value.errors] == ["/depth"]


def test_a_default_makes_a_required_field_optional() -> None:
    schema: JsonObject = {"properties": {"a": {"default": None}}, "required": ["a"]}
    assert compile_schema(schema).completed({}) == {"a": None}


def test_given_values_win_over_defaults() -> None:
    assert filled(CONFIG, {"root": "", "depth": None, "net": {"retries": 0}}) == {
        "root": "",
        "depth": None,
        "net": {"retries": 0},
    }


LEAF = {"type": "object", "properties": {"n": {"default": 1}}}


APPLIED: list[tuple[JsonObject, Any, Any]] = [
        ({"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"default": 5}}}, {}, {"a": 5}),
        ({"$ref": "#/$defs/A", "$defs": {"A": LEAF}}, {}, {"n": 1}),
        ({"allOf": [LEAF, {"properties": {"m": {"default": 2}}}]}, {}, {"n": 1, "m": 2}),
        ({"items": LEAF}, [{}, {"n": 2}], [{"n": 1}, {"n": 2}]),
        ({"prefixItems": [{}, LEAF], "items": {"properties": {"z": {"default": 0}}}}, [{}, {}, {}], [{}, {"n": 1}, {"z": 0}]),
        ({"additionalProperties": LEAF, "properties": {"p": {}}}, {"p": {}, "q": {}}, {"p": {}, "q": {"n": 1}}),
        ({"patternProperties": {"^x": LEAF}}, {"xa": {}, "y": {}}, {"xa": {"n": 1}, "y": {}}),
        ({"properties": {"a": {"anyOf": [LEAF, {"type": "null"}]}}}, {"a": {}}, {"a": {"n": 1}}),
        ({"properties": {"a": {"anyOf": [LEAF, {"type": "null"}]}}}, {"a": None}, {"a": None}),
        ({"if": {"required": ["s"]}, "then": LEAF, "else": {"properties": {"e": {"default": 0}}}}, {"s": 1}, {"s": 1, "n": 1}),
        ({"if": {"required": ["s"]}, "then": LEAF, "else": {"properties": {"e": {"default": 0}}}}, {}, {"e": 0}),
        ({"default": {"a": 1}}, {}, {}),
        ({"const": {"default": 1}}, {"default": 1}, {"default": 1}),
        ({"properties": {"default": {"type": "integer"}}}, {}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "instance", "expected"), APPLIED)
def test_defaults_apply_wherever_the_schema_does(schema: JsonObject, instance: Any, expected: Any) -> None:
    assert filled(schema, instance) == expected


def test_of_several_forms_only_the_one_that_fits_gives_defaults() -> None:
    def form(kind: str, port: int) -> JsonObject:
        return {
            "type": "object",
            "properties": {"kind": {"const": kind}, "port": {"type": "integer", "default": port}},
            "required": ["kind", "port"],
        }

    schema: JsonObject = {
        "properties": {"db": {"oneOf": [form("pg", 5432), {"$ref": "#/$defs/My"}]}},
        "$defs": {"My": form("my", 3306)},
    }
    assert filled(schema, {"db": {"kind": "my"}}) == {"db": {"kind": "my", "port": 3306}}
    assert filled(schema, {"db": {"kind": "pg"}}) == {"db": {"kind": "pg", "port": 5432}}
    assert filled(schema, {"db": {"kind": "other"}}) == {"db": {"kind": "other"}}


def test_defaults_that_lead_to_themselves_end() -> None:
    assert filled({"properties": {"next": {"$ref": "#", "default": {}}}}, {}) == {"next": {}}
    assert filled({"properties": {"next": {"$ref": "#", "default": {"next": {}}}}}, {}) == {"next": {"next": {}}}
    every: JsonObject = {"properties": {f"k{i}": {"$ref": "#", "default": {}} for i in range(9)}}
    with pytest.raises(SchemaError, match="defaults"):
        filled(every, {})


def test_big_integers_in_defaults_are_exact() -> None:
    assert filled({"properties": {"n": {"default": 12345678901234567890123}}}, {}) == {"n": 12345678901234567890123}


def test_what_is_no_json_gets_no_defaults() -> None:
    with pytest.raises(InvalidInput):
        filled(CONFIG, {"root": float("nan")})


@settings(max_examples=200, deadline=None)
@given(st.one_of(JSON, st.fixed_dictionaries({}, optional={"root": JSON, "depth": JSON, "net": JSON})))
def test_filling_never_touches_the_instance_and_filling_twice_changes_nothing(instance: Any) -> None:
    before = copy.deepcopy(instance)
    once = filled(CONFIG, instance)
    assert repr(instance) == repr(before)
    assert filled(CONFIG, once) == once
    if isinstance(instance, dict):
        given_fields = cast(JsonObject, instance)
        assert all(once[name] == value for name, value in given_fields.items() if name != "net")
