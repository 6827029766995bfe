"""Secret fields: found wherever they are, never shown, kept when a mask comes back."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, SecretBytes, SecretStr

from anykit.capabilities import JsonObject
from anykit.schema import compile_schema, config_schema, merge_masked, redact, secret_pointers

SECRET: JsonObject = {"type": "string", "writeOnly": True}
SERVER: JsonObject = {"type": "object", "properties": {"url": {"type": "string"}, "key": SECRET}}
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "api_key": {**SECRET, "minLength": 4},
        "name": {"type": "string"},
        "servers": {"type": "array", "items": {"$ref": "#/$defs/Server"}},
        "accounts": {"type": "object", "additionalProperties": SECRET, "properties": {"public": {"type": "string"}}},
        "login": {"anyOf": [{"$ref": "#/$defs/Login"}, {"type": "null"}]},
        "vault": {"type": "object", "sensitive": True},
    },
    "required": ["api_key"],
    "$defs": {
        "Server": SERVER,
        "Login": {"allOf": [{"properties": {"user": {"type": "string"}}}, {"properties": {"password": SECRET}}]},
    },
}
VALUE: JsonObject = {
    "api_key": "s3cret-1",
    "name": "n",
    "servers": [{"url": "a", "key": "s3cret-2"}, {"url": "b", "key": "s3cret-3"}],
    "accounts": {"public": "p", "x": "s3cret-4"},
    "login": {"user": "u", "password": "s3cret-5"},
    "vault": {"deep": ["s3cret-6"]},
}


@pytest.mark.parametrize(
    "mark", [{"writeOnly": True}, {"format": "password"}, {"sensitive": True}, {"isSecret": True}, {"x-secret": True}]
)
def test_every_way_to_mark_a_secret_counts(mark: JsonObject) -> None:
    schema: JsonObject = {
        "properties": {"k": {"type": "string", **mark}, "open": {"type": "string", "writeOnly": False}}
    }
    assert secret_pointers(schema) == ["/k"]
    assert redact(schema, {"k": "v", "open": "o"}) == {"k": {"set": True}, "open": "o"}


def test_a_pydantic_secret_is_marked_and_its_default_left_out() -> None:
    class Config(BaseModel):
        key: SecretStr
        raw: SecretBytes | None = None
        other: SecretStr = SecretStr("hunter2")
        title: str = "t"

    schema = config_schema(Config)
    assert secret_pointers(schema) == ["/key", "/raw", "/other"]
    assert "hunter2" not in json.dumps(schema)
    assert "***" not in json.dumps(compile_schema(schema).with_defaults({"key": "k"}))
    assert schema["properties"]["title"] == {"type": "string", "default": "t"}
    assert schema["additionalProperties"] is False


def test_a_property_called_like_a_mark_is_no_mark() -> None:
    schema: JsonObject = {
        "properties": {"sensitive": {"type": "boolean"}, "writeOnly": {}, "format": {"const": "password"}},
        "default": {"writeOnly": True},
    }
    assert secret_pointers(schema) == []
    assert redact(schema, {"sensitive": True, "format": "password"}) == {"sensitive": True, "format": "password"}


def test_secrets_are_found_through_references_unions_arrays_and_open_objects() -> None:
    assert secret_pointers(SCHEMA) == ["/api_key", "/servers/*/key", "/accounts/*", "/login/password", "/vault"]


def test_a_schema_that_refers_to_itself_has_its_secrets_found_at_every_depth() -> None:
    tree: JsonObject = {"properties": {"key": SECRET, "kids": {"type": "array", "items": {"$ref": "#"}}}}
    assert "/key" in secret_pointers(tree)
    assert redact(tree, {"kids": [{"kids": [{"key": "x"}]}]}) == {"kids": [{"kids": [{"key": {"set": True}}]}]}
    doubled: JsonObject = {
        "$ref": "#/$defs/a0",
        "$defs": {
            **{f"a{i}": {"properties": {"l": {"$ref": f"#/$defs/a{i + 1}"}, "r": {"$ref": f"#/$defs/a{i + 1}"}}} for i in range(40)},
            "a40": SECRET,
        },
    }  # fmt: skip
    assert len(secret_pointers(doubled)) < 20_000


def test_tuples_conditions_and_patterns_hide_no_secret() -> None:
    schema: JsonObject = {
        "properties": {"pair": {"prefixItems": [{}, SECRET]}, "old": {"items": [{}, SECRET]}},
        "patternProperties": {"_key$": SECRET},
        "if": {"properties": {"kind": {"const": "a"}}},
        "then": {"properties": {"then": SECRET}},
        "else": {"properties": {"else": SECRET}},
        "dependentSchemas": {"a": {"properties": {"dependent": SECRET}}},
    }
    value = {
        "pair": ["o", "s"],
        "old": ["o", "s"],
        "my_key": "s",
        "then": "s",
        "else": "s",
        "dependent": "s",
        "open": "o",
    }
    hidden = {"set": True}
    assert redact(schema, value) == {
        "pair": ["o", hidden],
        "old": ["o", hidden],
        "my_key": hidden,
        "then": hidden,
        "else": hidden,
        "dependent": hidden,
        "open": "o",
    }


def test_redacting_shows_whether_a_secret_is_set_and_touches_nothing() -> None:
    value = copy.deepcopy(VALUE)
    shown = redact(SCHEMA, value)
    assert value == VALUE
    assert "s3cret" not in json.dumps(shown)
    assert shown["servers"] == [{"url": "a", "key": {"set": True}}, {"url": "b", "key": {"set": True}}]
    assert shown["accounts"] == {"public": "p", "x": {"set": True}}
    assert redact(SCHEMA, {"api_key": "", "vault": None}) == {"api_key": {"set": False}, "vault": {"set": False}}


# Faults


def test_a_fault_never_holds_the_value_or_the_options_of_a_secret() -> None:
    schema: JsonObject = {
        "properties": {
            "k": {**SECRET, "enum": ["opti0n"], "minLength": 30, "pattern": "^opti0n"},
            "c": {**SECRET, "const": "opti0n"},
            "u": {"writeOnly": True, "anyOf": [{"const": "opti0n"}, {"type": "integer"}]},
            "o": {"sensitive": True, "additionalProperties": False, "properties": {"known": {}}},
            "n": {"sensitive": True, "propertyNames": {"maxLength": 2}},
            "deep": {"sensitive": True, "items": {"type": "integer"}},
        }
    }
    instance = {
        "k": "s3cret",
        "c": "s3cret",
        "u": "s3cret",
        "o": {"s3cret": 1},
        "n": {"s3cret": 1},
        "deep": ["s3cret"],
    }
    faults = compile_schema(schema).faults(instance)
    assert {fault["path"] for fault in faults} == {"/k", "/c", "/u", "/o", "/n", "/deep"}
    assert "s3cret" not in repr(faults)
    assert "opti0n" not in repr([fault for fault in faults if fault["path"] != "/k"])
    assert "opti0n" not in repr([fault for fault in faults if "pattern" not in fault["message"]])
    assert {"path": "/k", "message": "must have at least 30 characters"} in faults


def test_a_fault_that_is_no_json_shows_no_name_below_a_secret() -> None:
    schema: JsonObject = {"properties": {"o": {"sensitive": True}}}
    (fault,) = compile_schema(schema).faults({"o": {"s3cret": float("nan")}})
    assert fault == {"path": "/o", "message": "is not valid"}


def test_a_missing_secret_is_named() -> None:
    (fault,) = compile_schema(SCHEMA).faults({})
    assert fault == {"path": "/api_key", "message": "'api_key' is required"}


# Merging


@pytest.mark.parametrize("mask", [{"set": True}, "**********", "*", ""])
def test_b058_a_mask_that_comes_back_keeps_the_secret(mask: Any) -> None:
    """pydantic/pydantic-core#851: a masked secret was saved and used as the secret."""
    old = {"api_key": "k1", "name": "a"}
    new = {"api_key": mask, "name": "b"}
    assert merge_masked(SCHEMA, new, old) == {"api_key": "k1", "name": "b"}
    assert (old, new) == ({"api_key": "k1", "name": "a"}, {"api_key": mask, "name": "b"})


@pytest.mark.parametrize("old", [None, {}, {"name": "x"}])
def test_b058_a_mask_with_nothing_to_keep_is_left_out(old: Any) -> None:
    """pydantic/pydantic#919."""
    merged = merge_masked(SCHEMA, {"api_key": "**********", "name": "b"}, old)
    assert merged == {"name": "b"}
    assert [fault["path"] for fault in compile_schema(SCHEMA).faults(merged)] == ["/api_key"]


def test_a_new_secret_replaces_the_old_and_one_not_mentioned_is_gone() -> None:
    assert merge_masked(SCHEMA, {"api_key": "k2"}, {"api_key": "k1"}) == {"api_key": "k2"}
    assert merge_masked(SCHEMA, {"name": "b"}, {"api_key": "k1"}) == {"name": "b"}
    assert merge_masked(SCHEMA, {"api_key": None}, {"api_key": "k1"}) == {"api_key": None}


def test_asterisks_in_a_field_that_is_no_secret_are_text() -> None:
    assert merge_masked(SCHEMA, {"name": "***"}, {"name": "x"}) == {"name": "***"}


def test_a_removed_item_does_not_hand_its_secret_to_its_neighbour() -> None:
    mask = {"set": True}
    old = {"servers": [{"url": "a", "key": "A"}, {"url": "b", "key": "B"}, {"url": "c", "key": "C"}]}

    def merged(*servers: Any) -> Any:
        return merge_masked(SCHEMA, {"servers": list(servers)}, old)["servers"]

    assert merged({"url": "b", "key": mask}) == [{"url": "b", "key": "B"}]
    assert merged({"url": "c", "key": mask}, {"url": "a", "key": mask}) == [
        {"url": "c", "key": "C"},
        {"url": "a", "key": "A"},
    ]
    assert merged({"url": "evil", "key": mask}) == [{"url": "evil"}]
    assert merged({"url": "b", "key": mask}, {"url": "evil", "key": mask}, {"url": "c", "key": mask})[1] == {
        "url": "evil"
    }
    edited = merged({"url": "a", "key": mask}, {"url": "b2", "key": mask}, {"url": "c", "key": "new"})
    assert edited == [{"url": "a", "key": "A"}, {"url": "b2", "key": "B"}, {"url": "c", "key": "new"}]


def test_what_is_no_json_is_neither_shown_nor_merged() -> None:
    deep: Any = "s3cret"
    for _ in range(100_000):
        deep = [deep]
    assert redact(SCHEMA, {"vault": {"a": deep}}) is None
    new = {"api_key": "", "name": deep}
    assert merge_masked(SCHEMA, new, {"api_key": "k"}) is new


TEXT = st.text("abc", min_size=1, max_size=4)
VALUES = st.fixed_dictionaries(
    {"api_key": TEXT},
    optional={
        "name": TEXT,
        "servers": st.lists(st.fixed_dictionaries({"url": TEXT, "key": TEXT}), max_size=4),
        "accounts": st.dictionaries(TEXT, TEXT, max_size=3),
        "login": st.none() | st.fixed_dictionaries({"user": TEXT, "password": TEXT}),
        "vault": st.dictionaries(TEXT, TEXT, max_size=2),
    },
)


@settings(max_examples=300, deadline=None)
@given(VALUES)
def test_what_was_shown_and_comes_back_unchanged_is_what_was_stored(value: JsonObject) -> None:
    before = copy.deepcopy(value)
    assert merge_masked(SCHEMA, redact(SCHEMA, value), value) == before
    assert value == before


@settings(max_examples=300, deadline=None)
@given(VALUES, VALUES)
def test_no_mask_is_ever_left_where_a_secret_should_be(new: JsonObject, old: JsonObject) -> None:
    merged = merge_masked(SCHEMA, redact(SCHEMA, new), old)
    assert '"set"' not in json.dumps(merged)
