"""Bytes to frames and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anykit.capabilities import InvalidInput
from anykit.sources.mcp.frames import NotAFrame, encode, excerpt, is_frame, parse, stray_id

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_what_is_sent_is_one_line_and_reads_back_the_same(value: Any) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "result": {"value": value}}
    line = encode(message)
    assert b"\n" not in line
    assert parse(line) == [message]


@given(st.binary(max_size=200))
def test_whatever_comes_is_a_frame_or_is_none(data: bytes) -> None:
    try:
        frames = parse(data)
    except NotAFrame:
        return
    assert all(is_frame(frame) for frame in frames)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"7",
        b'"x"',
        b"[]",
        b"{}",
        b"[1,2",
        b'{"level":"info"}',
        b'{"method":7}',
        b'{"id":1}',
        b"\xff",
        b"hi",
    ],
)
def test_noise_is_no_frame(data: bytes) -> None:
    with pytest.raises(NotAFrame):
        parse(data)


def test_a_batch_is_its_frames() -> None:
    assert [one["id"] for one in parse(b'[{"id":1,"result":{}},{"id":2,"error":{}}]')] == [1, 2]
    with pytest.raises(NotAFrame):
        parse(b'[{"id":1,"result":{}}, 7]')


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b'{"id":1,"result":{"t":"a\\ud83db"}}', "a\ufffdb"),
        (b'{"id":1,"result":{"t":"a\xffb"}}', "a\ufffdb"),
        (b'{"id":1,"result":{"t":"\\ud83d\\ude00"}}', "\U0001f600"),
        ('{"id":1,"result":{"t":"\u2028"}}'.encode(), "\u2028"),
    ],
)
def test_half_characters_are_mended_and_whole_ones_kept(data: bytes, text: str) -> None:
    assert parse(data)[0]["result"]["t"] == text


def test_numbers_are_exact_and_what_is_none_is_left_to_whoever_checks() -> None:
    [frame] = parse(b'{"id":1,"result":{"i":123456789012345678901234567890,"f":1.0,"n":NaN}}')
    assert json.dumps(frame["result"]) == '{"i": 123456789012345678901234567890, "f": 1.0, "n": NaN}'


def test_what_nests_too_deep_is_noise_and_no_crash() -> None:
    for depth in (1_000, 100_000):
        with pytest.raises(NotAFrame):
            parse(b'{"id":1,"result":' + b"[" * depth + b"]" * depth + b"}")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", {"\ud800": 1}])
def test_what_json_cannot_carry_is_named(value: Any) -> None:
    with pytest.raises(InvalidInput) as raised:
        encode({"params": {"x": value}})
    assert raised.value.errors[0]["path"].startswith("/params/x")


@pytest.mark.parametrize(
    ("data", "id"),
    [
        (b'{"jsonrpc":"2.0","id": 7,"result":{', 7),
        (b'{"id":"a","result"', "a"),
        (b'{"id":7,"method":"x"', None),
        (b"x", None),
    ],
)
def test_the_id_of_a_broken_answer_is_found(data: bytes, id: Any) -> None:
    assert stray_id(data) == id


def test_an_excerpt_is_short_and_printable() -> None:
    assert excerpt(b"a\x00\x1b[31m\n" + b"x" * 1000).startswith("a [31m xxx")
    assert len(excerpt(b"x" * 1000)) < 150
