"""What people do not see in a peer's texts: found, named, and written out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anykit.sources.hostile import clean_text, hidden_in, hidden_inside, visible

UNSEEN = [
    ("a\u200bb", "U+200B ZERO WIDTH SPACE"),
    ("a\u200db", "U+200D ZERO WIDTH JOINER"),
    ("a\u202eb", "U+202E RIGHT-TO-LEFT OVERRIDE"),
    ("a\u2066b", "U+2066 LEFT-TO-RIGHT ISOLATE"),
    ("a\U000e0041", "U+E0041 TAG LATIN CAPITAL LETTER A"),
    ("\x1b[31mred", "U+001B CONTROL"),
    ("a\ufeff", "U+FEFF ZERO WIDTH NO-BREAK SPACE"),
    ("a\u2028b", "U+2028 LINE SEPARATOR"),
    ("a\u3164b", "U+3164 HANGUL FILLER"),
    ("x\ufe01\ufe02", "U+FE02 VARIATION SELECTOR-3"),
    ("x\U000e0100", "U+E0100 VARIATION SELECTOR-17"),
    ("a\ue000", "U+E000 PRIVATE USE"),
    ("\ud800", "U+D800 HALF A SURROGATE"),
    ("a\u200f", "U+200F RIGHT-TO-LEFT MARK"),
]
SEEN = [
    *("plain", "two\nlines\tand\r\ntabs", "naïve", "地図", "👩\u200d💻", "❤\ufe0f", "1\ufe0f\u20e3", "👍🏽"),
    *(
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u05e9\u05dc\u05d5\u05dd\u200f!",
        "\u0915\u094d\u200d\u0937",
        "",
    ),
]


@pytest.mark.parametrize(("text", "name"), UNSEEN, ids=[name for _, name in UNSEEN])
def test_what_is_not_seen_is_named(text: str, name: str) -> None:
    assert name in hidden_in(text)


@pytest.mark.parametrize("text", SEEN)
def test_what_belongs_to_writing_is_not_taken_for_hidden(text: str) -> None:
    assert hidden_in(text) == ()


@pytest.mark.parametrize(("text", "name"), UNSEEN, ids=[name for _, name in UNSEEN])
def test_written_out_it_is_seen(text: str, name: str) -> None:
    shown = visible(text)
    assert hidden_in(shown) == ()
    assert f"\\{'U' if len(name.split()[0]) > 6 else 'u'}" in shown


def test_it_is_found_in_the_keys_and_the_values_of_json() -> None:
    schema = {"properties": {"a\u200b": {"enum": ["x\u202e", 1, None]}}}
    assert hidden_inside(schema) == ("U+200B ZERO WIDTH SPACE", "U+202E RIGHT-TO-LEFT OVERRIDE")


@given(st.text())
def test_a_text_that_was_cleaned_holds_no_control_and_no_format_character(text: str) -> None:
    kept = "".join(one for one in clean_text(text) if one not in "\t\n")
    assert all(name.startswith(("U+FE0", "U+E01", "U+115F", "U+1160", "U+2800", "U+3164", "U+FFA0", "U+034F", "U+17B"))
               for name in hidden_in(kept))  # fmt: skip


@given(st.text())
def test_written_out_nothing_is_hidden(text: str) -> None:
    assert hidden_in(visible(text).replace("\r", "")) == ()
