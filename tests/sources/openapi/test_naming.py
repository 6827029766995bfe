"""Names and values, for all of them: distinct, valid, the same in any order, and arriving as what they were."""

from __future__ import annotations

import random
import re
from typing import Any
from urllib.parse import parse_qsl, unquote

from hypothesis import given, settings
from hypothesis import strategies as st

from anykit.capabilities import InvalidInput
from anykit.sources.openapi import References, read_document
from anykit.sources.openapi.naming import ORDER, Wish, argument_names, generated, operation_names
from anykit.sources.openapi.styles import Style, query_pairs
from anykit.sources.openapi.yaml_text import parse_yaml

VALID = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=80)
WISHES = st.lists(
    st.builds(Wish, st.sampled_from(ORDER), TEXT | st.sampled_from(["id", "query_id", "a[b]", "a_b"])),
    max_size=12,
    unique=True,
)


@settings(deadline=None)
@given(WISHES, st.randoms(use_true_random=False))
def test_arguments_have_distinct_valid_names_whatever_their_order(wishes: list[Wish], chance: random.Random) -> None:
    names = dict(zip(wishes, argument_names(wishes), strict=True))
    assert len(set(names.values())) == len(wishes)
    assert all(VALID.fullmatch(name) for name in names.values())
    shuffled = list(wishes)
    chance.shuffle(shuffled)
    assert dict(zip(shuffled, argument_names(shuffled), strict=True)) == names


METHODS = st.sampled_from(["GET", "POST", "PUT"])
PATHS = st.text(st.sampled_from("ab/{}-_."), max_size=8).map(lambda text: f"/{text}")
IDS = st.none() | st.sampled_from(["a", "b", "get_a", "pet/all"])


@settings(deadline=None)
@given(
    st.lists(st.tuples(METHODS, PATHS, IDS), max_size=10, unique_by=lambda one: one[:2]),
    st.randoms(use_true_random=False),
)
def test_operations_have_distinct_names_whatever_their_order(
    operations: list[tuple[str, str, str | None]], chance: random.Random
) -> None:
    names = dict(zip(operations, operation_names(operations), strict=True))
    assert len(set(names.values())) == len(operations)
    assert all(names.values())
    shuffled = list(operations)
    chance.shuffle(shuffled)
    assert dict(zip(shuffled, operation_names(shuffled), strict=True)) == names


def test_a_generated_name_says_method_and_path() -> None:
    assert generated("GET", "/pets/{petId}/toys") == "get_pets_petId_toys"
    assert generated("POST", "/") == "post_root"


DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "paths": {
        "/a/{x}/b": {
            "get": {
                "operationId": "a",
                "parameters": [
                    {"name": "x", "in": "path", "required": True, "schema": {"type": "string"}},
                    {"name": "q", "in": "query", "schema": {"type": "string"}},
                ],
            }
        }
    },
}
[OPERATION] = read_document(References(DOCUMENT)).operations


@settings(deadline=None)
@given(TEXT, TEXT)
def test_any_text_is_one_segment_of_a_path_and_one_value_of_a_query(segment: str, value: str) -> None:
    try:
        made = OPERATION.prepared({"x": segment, "q": value})
    except InvalidInput:
        assert segment in (".", "..")
        return
    parts = made.path.split("/")
    assert [len(parts), unquote(parts[2]), parts[3]] == [4, segment, "b"]
    assert parse_qsl("&".join(made.query), keep_blank_values=True) == [("q", value)]


@settings(deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=5), st.sampled_from(["form", "pipeDelimited", "deepObject"]), st.booleans())
def test_lists_in_a_query_come_apart_where_they_were_put_together(items: list[str], style: str, explode: bool) -> None:
    pairs = query_pairs(Style(style, explode), "k", list(items))
    texts = [pair.partition("=")[2] for pair in pairs]
    delimiter = {"form": ",", "pipeDelimited": "|"}.get(style, "\0")
    assert [unquote(word) for text in texts for word in text.split(delimiter)] == items


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="ascii", exclude_categories=["Cc"])),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=4),
        max_leaves=12,
    )
)
def test_json_is_yaml(value: Any) -> None:
    import json

    assert parse_yaml(json.dumps(value)) == value
