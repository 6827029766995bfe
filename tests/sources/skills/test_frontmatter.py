"""A `SKILL.md` is read as the YAML 1.2 that everyone reads, leniently where it is nearly that, and within bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anykit.sources.skills.errors import Unreadable
from anykit.sources.skills.frontmatter import MAX_FRONTMATTER, parted


def fields(yaml: str) -> dict[str, Any]:
    return parted(f"---\n{yaml}\n---\nbody\n").fields


def refused(text: str) -> tuple[str, int | None]:
    with pytest.raises(Unreadable) as error:
        parted(text)
    return error.value.message, error.value.line


def test_the_instructions_are_what_stands_behind_the_second_fence() -> None:
    found = parted("---\nname: a\n---\n\n# Title\n\n---\n\nmore\n\n")
    assert (found.fields, found.body, found.odd) == ({"name": "a"}, "# Title\n\n---\n\nmore", ())


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("2024-05-01", "2024-05-01"),
        ("1:30", "1:30"),
        ("012", 12),
        ("0o17", 15),
        ("0xff", 255),
        ("-1.50", -1.5),
        ("1e3", 1000.0),
        ("1_000", "1_000"),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("[a, 1, {b: c}]", ["a", 1, {"b": "c"}]),
        ('"\\ud83d\\ude00"', "😀"),
        ("a\u2028b", "a\u2028b"),
        ("a\x85b", "a\x85b"),
        (">-\n  a\n  b", "a b"),
        ("|\n  a\n  b", "a\nb\n"),
    ],
)
def test_values_mean_what_yaml_1_2_says(written: str, value: Any) -> None:
    found = fields(f"key: {written}")["key"]
    assert (found, type(found)) == (value, type(value))


def test_a_key_is_a_text_and_merges_nothing() -> None:
    assert fields("1: a\n<<: {b: c}\n") == {"1": "a", "<<": {"b": "c"}}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends_of_every_system_are_read(end: str) -> None:
    found = parted("---\nname: a\ndescription: b\n---\nbody\n".replace("\n", end))
    assert (found.fields, found.body, found.verbatim) == ({"name": "a", "description": "b"}, "body", True)


def test_a_byte_order_mark_and_lines_before_the_fence_are_reported() -> None:
    marked = parted("\ufeff---\nname: a\n---\n")
    assert (marked.fields, marked.odd) == ({"name": "a"}, ("line 1: the file begins with a byte order mark",))
    late = parted("\n\n---\nname: a\n---\n")
    assert (late.fields, late.odd) == ({"name": "a"}, ("line 1: the frontmatter must begin in the first line",))


@pytest.mark.parametrize(
    ("yaml", "value"),
    [
        ("name: a\ndescription: Use when: asked", "Use when: asked"),
        ("name: a\ndescription: Use when: asked\n  and again: now", "Use when: asked and again: now"),
        ('name: a\r\ndescription: It\'s "so": yes\r', 'It\'s "so": yes'),
        ("description: ends with a colon:\nname: a", "ends with a colon:"),
    ],
)
def test_a_plain_value_with_a_colon_is_read_as_if_it_were_quoted(yaml: str, value: str) -> None:
    found = parted(f"---\n{yaml}\n---\n")
    assert found.fields == {"name": "a", "description": value}
    [odd] = found.odd
    assert "`description` holds `: `; put it in quotes" in odd
    assert not found.verbatim


def test_the_line_of_a_value_that_is_read_as_quoted_is_its_own() -> None:
    odd = parted("---\nname: a\nmetadata:\n  one: a: b\n---\n").odd
    assert [line.partition(": ")[0] for line in odd] == ["line 4"]


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("", "has no frontmatter", 1),
        ("# Title\n", "has no frontmatter", 1),
        ("----\nname: a\n---\n", "has no frontmatter", 1),
        ("---\nname: a\n", "never closed", 1),
        ("---\nname: a\n ---\n", "never closed", 1),
        ("---\nname: [a\n---\n", "not YAML", 3),
        ("---\nname: a\n\tb: c\n---\n", "not YAML", 3),
        ("---\nname: \x07\n---\n", "a character that YAML does not allow", 2),
        ("---\n- a\n---\n", "must be a mapping", 2),
        ("---\ntext\n---\n", "must be a mapping", 2),
        ("---\n[a]: b\n---\n", "a field's name must be a text", 2),
        ('---\nname: "\\ud83d"\n---\n', "half a character", 2),
        ("---\na: &a [*a]\n---\n", "", 2),
        ("---\na: *b\n---\n", "not YAML", 2),
        (f"---\na: {'[' * 200}{']' * 200}\n---\n", "nested deeper", 2),
        (f"---\na: {'[' * 30_000}\n---\n", "", 2),
        (f"---\na: {'x' * MAX_FRONTMATTER}\n---\n", "longer than", 2),
    ],
)
def test_what_cannot_be_read_names_the_line(text: str, message: str, line: int) -> None:
    said, at = refused(text)
    assert message in said
    assert at == line


def test_aliases_that_multiply_are_refused_before_they_are_spelled_out() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    message, _ = refused("---\n" + "\n".join(levels) + "\n---\n")
    assert "more than 5000 values" in message


def test_a_field_that_is_there_twice_and_a_tag_are_reported() -> None:
    found = parted("---\na: 1\na: 2\nb: !thing c\nc: .inf\n---\n")
    assert found.fields == {"a": 2, "b": "c", "c": ".inf"}
    assert [odd.partition(": ")[0] for odd in found.odd] == ["line 3", "line 4", "line 5"]


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for whole in (text, f"---\n{text}\n---\n"):
        try:
            found = parted(whole)
        except Unreadable:
            continue
        else:
            json.dumps(found.fields, allow_nan=False).encode()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8"), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1, max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.text("abcxyz", min_size=1, max_size=5), VALUES, max_size=4))
def test_json_in_a_frontmatter_comes_back_as_itself(value: dict[str, Any]) -> None:
    assert parted(f"---\n{json.dumps(value)}\n---\n").fields == value
