"""A schema as a form, and what a typed word means in it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anykit.cli.arguments import assignments, filled, input_json
from anykit.cli.errors import CommandError
from anykit.cli.fields import Form, assignment, parse_json
from anykit.cli.terminal import Streams, Terminal
from cli.running import Stream

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "Some text"},
        "count": {"type": "integer", "default": 3},
        "ratio": {"type": "number"},
        "on": {"type": "boolean"},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "level": {"enum": [1, 2, "three"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "at": {"$ref": "#/$defs/Place"},
        "free": {},
        "a.b": {"type": "integer"},
        "key": {"type": "string", "writeOnly": True},
        "nested": {"type": "object", "properties": {"key": {"type": "string", "format": "password"}}},
    },
    "required": ["text", "at"],
    "additionalProperties": False,
    "$defs": {
        "Place": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "floor": {"type": "integer"}},
            "required": ["city"],
            "additionalProperties": False,
        }
    },
}


def read(*words: str, base: Any = None) -> Any:
    return filled(Form(SCHEMA), assignments(words), base)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("text=hello", {"text": "hello"}),
        ("text=", {"text": ""}),
        ("text=42", {"text": "42"}),
        ("text=a=b", {"text": "a=b"}),
        ("text=:=", {"text": ":="}),
        ('text:="x"', {"text": "x"}),
        ("count=5", {"count": 5}),
        ("count=-5", {"count": -5}),
        ("count=9007199254740993", {"count": 9007199254740993}),
        ("count=many", {"count": "many"}),
        ("count=1.0", {"count": 1.0}),
        ("ratio=2", {"ratio": 2}),
        ("ratio=.5", {"ratio": 0.5}),
        ("ratio=nan", {"ratio": "nan"}),
        ("ratio=1e400", {"ratio": "1e400"}),
        ("ratio=infinity", {"ratio": "infinity"}),
        ("on=true", {"on": True}),
        ("on=No", {"on": False}),
        ("on=maybe", {"on": "maybe"}),
        ("maybe=7", {"maybe": 7}),
        ("maybe=null", {"maybe": None}),
        ("maybe=", {"maybe": None}),
        ("either=7", {"either": "7"}),
        ("either:=7", {"either": 7}),
        ("level=2", {"level": 2}),
        ("level=three", {"level": "three"}),
        ("tags=a", {"tags": ["a"]}),
        ("tags=a,b", {"tags": ["a,b"]}),
        ('tags:=["a","b"]', {"tags": ["a", "b"]}),
        ('tags=["a","b"]', {"tags": ["a", "b"]}),
        ("numbers=4", {"numbers": [4]}),
        ("at.city=Rome", {"at": {"city": "Rome"}}),
        ("at.floor=2", {"at": {"floor": 2}}),
        ('at={"city":"Rome"}', {"at": {"city": "Rome"}}),
        ("free=7", {"free": "7"}),
        ("free:=7", {"free": 7}),
        ("a.b=7", {"a.b": 7}),
        ("unknown=7", {"unknown": "7"}),
    ],
)
def test_a_word_means_what_its_field_takes(word: str, value: Any) -> None:
    found = read(word)
    assert found == value
    assert repr(found) == repr(value)


def test_b088_text_that_looks_like_json_stays_text_where_text_is_taken() -> None:
    """modelcontextprotocol/python-sdk#3055: a string parameter's value was parsed as JSON."""
    for text in ('{"a":1}', "[1]", "123", "true", "null", "1e3"):
        assert read(f"text={text}") == {"text": text}


def test_b070_numbers_of_any_size_arrive_exactly() -> None:
    """cline/cline#9589: precision was lost where large integers were passed."""
    assert read("free:=123456789012345678901234567890") == {"free": 123456789012345678901234567890}
    assert read("count=123456789012345678901234567890") == {"count": 123456789012345678901234567890}


def test_a_name_that_comes_again_makes_a_list() -> None:
    assert read("tags=a", "tags=b", "tags=c") == {"tags": ["a", "b", "c"]}
    assert read("numbers=1", "numbers:=[2,3]") == {"numbers": [1, 2, 3]}


def test_a_name_that_comes_again_where_one_value_is_taken_is_an_error() -> None:
    with pytest.raises(CommandError, match="count is given twice"):
        read("count=1", "count=2")


def test_what_is_typed_goes_over_what_is_there_and_leaves_that_as_it_was() -> None:
    base = {"text": "old", "at": {"city": "Rome", "floor": 1}}
    assert read("at.floor=2", base=base) == {"text": "old", "at": {"city": "Rome", "floor": 2}}
    assert base == {"text": "old", "at": {"city": "Rome", "floor": 1}}


@pytest.mark.parametrize("word", ["text", "=x", ":=1", ""])
def test_a_word_that_is_no_argument_is_an_error(word: str) -> None:
    with pytest.raises(CommandError, match="is no argument"):
        read(word)


@pytest.mark.parametrize("text", ["x", "{", "NaN", "Infinity", "-Infinity", "1e400", '"\\ud800"', "[" * 100_000, ""])
def test_what_is_no_json_is_an_error(text: str) -> None:
    with pytest.raises(CommandError) as caught:
        read(f"free:={text}")
    assert caught.value.exit == 2


def test_a_secret_that_is_no_json_is_not_shown() -> None:
    with pytest.raises(CommandError) as caught:
        read("key:=s3cr3t")
    assert "s3cr3t" not in caught.value.message


def test_reaching_into_what_is_no_object_is_an_error() -> None:
    with pytest.raises(CommandError, match="text is no object"):
        read("text=x", "text.y=1")


def test_a_form_has_a_field_for_each_property_and_reaches_into_objects() -> None:
    form = Form(SCHEMA)
    fields = {field.name: field for field in form.fields}
    assert list(fields)[:3] == ["text", "count", "ratio"]
    assert fields["text"].required
    assert fields["text"].description == "Some text"
    assert (fields["count"].default, fields["count"].has_default) == (3, True)
    assert fields["at.city"].required
    assert not fields["at.floor"].required
    assert fields["maybe"].kind == "integer | null"
    assert fields["tags"].kind == "list of string"
    assert fields["level"].kind == "1 | 2 | three"
    assert [name for name, field in fields.items() if field.secret] == ["key", "nested.key"]


def test_a_form_knows_what_may_stand_where() -> None:
    form = Form(SCHEMA)
    assert form.takes(("text",))
    assert form.takes(("at", "city"))
    assert not form.takes(("txet",))
    assert not form.takes(("at", "town"))
    assert form.takes(("free", "anything"))
    assert Form({"type": "object"}).takes(("anything",))


def test_a_schema_that_refers_to_itself_has_an_end() -> None:
    node: dict[str, Any] = {"type": "object", "properties": {"next": {"$ref": "#"}, "name": {"type": "string"}}}
    names = [field.name for field in Form(node).fields]
    assert "name" in names
    assert len(names) < 20


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(st.characters(exclude_categories=["Cs"])), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3), max_leaves=8))  # fmt: skip
def test_any_json_value_is_read_as_it_was_written(value: Any) -> None:
    import json

    assert parse_json(json.dumps(value)) == value


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_an_assignment_survives_a_shell(text: str) -> None:
    import shlex

    [word] = shlex.split(assignment("text", text))
    assert read(word) == {"text": text}


def of_stdin(text: str) -> Terminal:
    return Terminal(Streams(Stream(text), Stream(), Stream(), {}))


def test_input_json_is_json_a_file_or_stdin(tmp_path: Any) -> None:
    file = tmp_path / "in.json"
    file.write_text('﻿{"a": 1}', encoding="utf-8")
    assert input_json('{"a": 1}', of_stdin("")) == {"a": 1}
    assert input_json(f"@{file}", of_stdin("")) == {"a": 1}
    assert input_json("-", of_stdin('{"a": 1}')) == {"a": 1}
    assert input_json(None, of_stdin("")) == {}


@pytest.mark.parametrize(
    ("text", "stdin", "message"),
    [
        ("[1]", "", "must be a JSON object, not list"),
        ("x", "", "not JSON"),
        ("-", "", "stdin: not JSON"),
        ("@nowhere.json", "", "nowhere.json: cannot be read"),
        ('{"a": NaN}', "", "NaN is no JSON value"),
    ],
)
def test_wrong_input_json_is_a_usage_error(text: str, stdin: str, message: str, tmp_path: Any) -> None:
    with pytest.raises(CommandError) as caught:
        input_json(text, of_stdin(stdin))
    assert message in caught.value.message
    assert caught.value.exit == 2


def test_a_file_that_is_not_utf8_is_a_usage_error(tmp_path: Any) -> None:
    file = tmp_path / "in.json"
    file.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(CommandError, match="not UTF-8"):
        input_json(f"@{file}", of_stdin(""))
