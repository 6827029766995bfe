"""Docstrings in three styles, however they are spaced."""

from __future__ import annotations

from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anykit.schema import describe, read_docstring

GOOGLE = """\
Draw it.

On paper.

Args:
  x (int): first
    more text
  y (float) : second: with colon
  nobody: is not there

Returns:
  str: a picture
"""


def test_b091_google_sections_are_read_with_odd_spacing() -> None:
    """huggingface/smolagents#1073 and #1088: types in docstrings, a parameter swallowed by the one before."""
    read = read_docstring(GOOGLE)
    assert read.description == "Draw it.\n\nOn paper."
    assert read.parameters["x"] == "first more text"
    assert read.parameters["y"] == "second: with colon"


def test_b091_numpy_sections_are_read() -> None:
    """huggingface/smolagents#1073."""
    read = read_docstring(
        "Draw.\n\nParameters\n----------\nx : int\n    first\ny: {'a', 'b'}, optional\n    second: b\n"
    )
    assert (read.description, read.parameters) == ("Draw.", {"x": "first", "y": "second: b"})


def test_b091_rest_fields_are_read() -> None:
    """huggingface/smolagents#1073."""
    read = read_docstring("Draw.\n\n:param int x: first\n:param str | None y : second\n:type y: str\n:returns: z")
    assert (read.description, read.parameters) == ("Draw.", {"x": "first", "y": "second"})


def test_b091_a_docstring_without_sections_is_all_description() -> None:
    """huggingface/smolagents#1073."""
    assert read_docstring("Draws: lines\n\nand more: of them").description == "Draws: lines\n\nand more: of them"
    assert read_docstring(None).description == ""
    assert read_docstring("  \n ").description == ""


def test_b091_descriptions_reach_the_schema_and_unknown_names_do_not() -> None:
    """huggingface/smolagents#1073."""

    def draw(x: int, y: float) -> None: ...

    draw.__doc__ = GOOGLE
    described = describe(draw)
    assert described.description == "Draw it.\n\nOn paper."
    properties = described.input_schema["properties"]
    assert {name: part["description"] for name, part in properties.items()} == {
        "x": "first more text",
        "y": "second: with colon",
    }


@pytest.mark.parametrize(
    "body",
    [
        "Args:\n    x: first\n    y: second",
        "Args:\n\n    x:\n        first\n\n    y:second",
        "Args:\n\tx (int):\n\t\tfirst\n\ty (dict[str, int], optional) :second",
        "  Args :\n      x - first\n      y -- second",
        "Arguments:\nx: first\ny: second",
        "Parameters:\n    x(int): first\n    y: second\nReturns:\n    nothing: at all",
        "Parameters\n----------\nx\n    first\ny: int\n    second\n\nReturns\n-------\nint\n    x : int",
        "Parameters:\n-----------\nx : int\n    first\ny : int\n    second",
        "parameters\n---\nx : int\n    first\ny : int\n    second\nreturns\n---------------\nx : int\n    no",
        ":param x: first\n:param y:\n    second\n\n:raises ValueError: never",
        ":param dict[str, int] x: first\n:parameter y : second",
        "@param x: first\n@param y: second",
        "Example:\n    z: no\n\nArgs:\n    x: first\n    y: second",
        "Keyword Args:\n    x: first\nOther Parameters:\n    y: second",
    ],
)
def test_every_spacing_gives_the_same_parameters(body: str) -> None:
    for text in (f"Do it.\n\n{body}\n", f"Do it.\n{body}", f"\n    Do it.\n\n{_indented(body)}\n    "):
        read = read_docstring(text)
        assert read.description == "Do it."
        assert read.parameters == {"x": "first", "y": "second"}


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def test_several_names_may_share_a_numpy_entry() -> None:
    read = read_docstring("Parameters\n----------\na, b : int\n    both")
    assert read.parameters == {"a": "both", "b": "both"}


def test_a_section_alone_leaves_the_description_empty() -> None:
    assert read_docstring("Args:\n    x: only").description == ""


def test_stars_are_no_part_of_a_name() -> None:
    assert read_docstring(dedent("Do.\n\nArgs:\n    *rest: others\n    **more: named")).parameters == {
        "rest": "others",
        "more": "named",
    }


SECTIONS = st.sampled_from(
    [
        "Args:",
        "Parameters",
        "----------",
        ":param x:",
        ":type",
        "x (int",
        "  x: y",
        "\tx - y",
        "Returns:",
        "",
        "  ",
        ":",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(SECTIONS, st.text(max_size=20)), max_size=12))
def test_no_docstring_ever_raises(lines: list[str]) -> None:
    text = "\n".join(lines)
    read = read_docstring(text)
    assert len(read.description) <= len(text.expandtabs())
    assert all(value and value == " ".join(value.split()) for value in read.parameters.values())


def test_line_breaks_of_windows_make_no_difference() -> None:
    assert read_docstring(GOOGLE.replace("\n", "\r\n")) == read_docstring(GOOGLE)
