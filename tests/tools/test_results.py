"""What a returned value becomes."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, SecretStr

from anykit.capabilities import (
    BlobPart,
    Completed,
    Denied,
    EmbeddedResource,
    Failed,
    ImagePart,
    InvocableResult,
    ResourceLink,
    StructuredPart,
    Suspended,
    Suspension,
    TextPart,
)
from anykit.tools import ToolError, ToolResult, UnsendableResult, cut, jsonable, result_of, text_of, tool_result


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    when: dt.date


class Person(BaseModel):
    name: str
    key: SecretStr
    born: dt.date = Field(alias="bornOn")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ("", ""),
        ([], "[]"),
        (0, "0"),
        (False, "false"),
        ({}, "{}"),
        ("é", "é"),
        ({"a": [1, 2.5, None]}, '{"a":[1,2.5,null]}'),
        (dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC), "2026-01-02T03:04:05+00:00"),
        (dt.date(2026, 1, 2), "2026-01-02"),
        (dt.time(3, 4), "03:04:00"),
        (Decimal("1.10"), "1.10"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({3, 1, 2}, "[1,2,3]"),
        (frozenset({"b", "a"}), '["a","b"]'),
        ((1, "a"), '[1,"a"]'),
        (Colour.RED, "red"),
        ({Colour.RED: 1}, '{"red":1}'),
        (Point(1, dt.date(2026, 1, 2)), '{"x":1,"when":"2026-01-02"}'),
        ({"raw": b"\xff"}, '{"raw":"/w=="}'),
        (2**70, str(2**70)),
        (dt.timedelta(seconds=90), "PT1M30S"),
    ],
)
def test_a_returned_value_becomes_its_documented_text(value: object, text: str | None) -> None:
    result = result_of(value)
    assert result.has_structured
    assert text is None or text_of(result) == text
    json.dumps(result.structured, allow_nan=False)


def test_none_empty_text_empty_list_and_zero_stay_apart() -> None:
    values: list[object] = [None, "", [], 0, False, "null"]
    results = [tool_result(Completed(result_of(value))) for value in values]
    seen = [(result.output, result.structured) for result in results]
    assert seen == [("null", None), ("", ""), ("[]", []), ("0", 0), ("false", False), ("null", "null")]
    assert not any(result.is_error for result in results)


def test_a_model_is_sent_by_alias_and_without_its_secret() -> None:
    person = Person(name="Ada", key=SecretStr("hush"), bornOn=dt.date(1815, 12, 10))
    assert result_of(person).structured == {"name": "Ada", "key": "**********", "bornOn": "1815-12-10"}


def test_bytes_become_a_blob_part() -> None:
    assert result_of(b"ab").content == (BlobPart(data=b"ab"),)


def test_parts_keep_their_order_and_media_types() -> None:
    parts = [TextPart(text="a"), ImagePart(data=b"1", media_type="image/webp"), ResourceLink(uri="x:y", name="y")]
    result = tool_result(Completed(result_of(parts)))
    assert list(result.content) == parts
    assert result.output.splitlines() == ["a", "[image image/webp, 1 bytes]", "[resource y: x:y]"]


def test_parts_and_plain_values_mix() -> None:
    result = result_of(["before", ImagePart(data=b"1"), {"n": 1}, b"x"])
    assert [part.kind for part in result.content] == ["text", "image", "structured", "blob"]


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (math.nan, "the root"),
        ({"a": [1, math.inf]}, "/a/1"),
        ({"a/b": {"~": -math.inf}}, "/a~1b/~0"),
        (Decimal("NaN"), "the root"),
        ([object()], "/0"),
        ({"k": "\ud83d"}, "/k"),
        ({"\ud83d": 1}, "the root"),
        (InvocableResult(structured={"x": math.nan}), "/x"),
        (InvocableResult(text="\udc00"), "/text"),
        ([TextPart(text="\udc00")], "/content/0"),
    ],
)
def test_what_json_cannot_carry_is_an_error_that_names_the_place(value: object, place: str) -> None:
    with pytest.raises(UnsendableResult, match=place):
        result_of(value)


def test_b071_a_lone_surrogate_never_reaches_a_wire() -> None:
    """MemPalace/mempalace#503: a lone surrogate in a string kills the server when it writes the reply."""
    with pytest.raises(UnsendableResult, match="lone surrogate"):
        result_of(os.fsdecode(b"\xff"))
    assert result_of("\U0001f600").text == "\U0001f600"


def test_a_result_that_contains_itself_is_an_error() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(UnsendableResult, match="nests deeper"):
        result_of(loop)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(codec="utf-8")),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
        max_leaves=12,
    )
)
def test_every_json_value_comes_out_equal(value: object) -> None:
    result = result_of(value)
    assert result.structured == value
    if not isinstance(value, str):
        assert json.loads(text_of(result)) == value


def test_b036_data_that_is_only_structured_reaches_the_model_exactly_once() -> None:
    """microsoft/agent-framework#3313: the payload stands only in structured content, or content has a summary line."""
    only = tool_result(Completed(InvocableResult(structured={"id": 7})))
    assert only.output == '{"id":7}'
    summary = tool_result(
        Completed(InvocableResult(content=(TextPart(text="done, 2 rows"),), structured={"rows": [1, 2]}))
    )
    assert summary.output == 'done, 2 rows\n{"rows":[1,2]}'
    said = tool_result(
        Completed(InvocableResult(content=(TextPart(text='{ "rows": [1, 2] }'),), structured={"rows": [1, 2]}))
    )
    assert said.output == '{ "rows": [1, 2] }'
    for text, value in (("5", 5), ("[1,2]", [1, 2]), ("plain", "plain")):
        wrapped = InvocableResult(content=(TextPart(text=text),), structured={"result": value})
        assert tool_result(Completed(wrapped)).output == text
    assert said.structured == {"rows": [1, 2]}


def test_an_embedded_text_is_read_and_a_file_is_named() -> None:
    parts = (
        EmbeddedResource(uri="f:1", text="inside"),
        BlobPart(name="r.pdf", data=b"12", media_type="application/pdf"),
    )
    assert text_of(InvocableResult(content=parts)) == "inside\n[file r.pdf (application/pdf, 2 bytes)]"


def test_a_structured_part_is_read_as_json() -> None:
    assert text_of(InvocableResult(content=(StructuredPart(value={"a": 1}),))) == '{"a":1}'


def test_a_long_text_is_cut_and_says_so() -> None:
    result = tool_result(Completed(result_of("é" * 100)), limit=51)
    assert result.output == "é" * 25 + "\n[cut: 51 of 200 bytes shown]"
    assert result.metadata["truncated"] == {"shown_bytes": 51, "total_bytes": 200}
    assert cut("short", 100) == ("short", 5)


def test_every_outcome_but_completed_is_an_error() -> None:
    denied = tool_result(Denied("no", "policy"))
    failed = tool_result(Failed("busy", "later", retryable=True))
    asked = tool_result(Suspended(Suspension("s1", "input", "which?", url="https://x.example")))
    assert [one.is_error for one in (denied, failed, asked)] == [True, True, True]
    assert [one.status for one in (denied, failed, asked)] == ["denied", "failed", "suspended"]
    assert (failed.code, failed.metadata["retryable"]) == ("busy", True)
    assert asked.suspension is not None
    assert asked.output.startswith("which?\nhttps://x.example\n[it waits for an answer: bench.answer('s1', ")


def test_keys_that_are_no_strings_become_json_keys() -> None:
    assert jsonable({2: "a", None: "b", dt.date(2026, 1, 2): "c"}) == {"2": "a", "null": "b", "2026-01-02": "c"}


def test_a_tool_result_says_itself() -> None:
    said = result_of(ToolResult("done", structured={"rows": 2}, metadata={"took": 3}))
    assert (said.text, said.structured, said.metadata) == ("done", {"rows": 2}, {"took": 3})
    assert result_of(ToolResult("done")).structured == "done"
    picture = ImagePart(data=b"x", media_type="image/png")
    assert result_of(ToolResult("a picture", content=(picture,))).content == (picture,)
    with pytest.raises(ToolError, match="no such row"):
        result_of(ToolResult("no such row", is_error=True))


def test_views_ranges_and_memory_are_sent_as_what_they_hold() -> None:
    assert result_of({"a": 1, "b": 2}.keys()).structured == ["a", "b"]
    assert result_of({"a": 1}.items()).structured == [["a", 1]]
    assert result_of(range(3)).structured == [0, 1, 2]
    assert result_of(memoryview(b"hi")).content == (BlobPart(data=b"hi"),)
    assert result_of({"raw": memoryview(b"hi")}).structured == {"raw": "aGk="}


def test_an_embedded_text_with_half_a_character_is_refused() -> None:
    with pytest.raises(UnsendableResult, match="/content/0"):
        result_of(EmbeddedResource(uri="x:1", text="\ud83d"))
