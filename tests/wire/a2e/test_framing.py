"""Lines out of bytes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anykit.wire.a2e import LineReader, Oversized, decode, encode
from anykit.wire.a2e.messages.tools import ToolCallRequest


def read_all(data: bytes, cuts: list[int], limit: int) -> list[bytes | Oversized]:
    reader = LineReader(limit)
    found: list[bytes | Oversized] = []
    for start, end in pairwise([0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]):
        found += reader.feed(data[start:end])
    return found + reader.finish()


@given(
    st.lists(
        st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b"bc", "é\u2028".encode(), b"\xff", b"0123456789"]), max_size=40
    ),
    st.lists(st.integers(0, 400), max_size=12),
    st.integers(1, 24),
)
def test_the_lines_do_not_depend_on_how_the_bytes_arrive(pieces: list[bytes], cuts: list[int], limit: int) -> None:
    data = b"".join(pieces)
    assert read_all(data, cuts, limit) == read_all(data, [], limit) == read_all(data, list(range(len(data))), limit)


@given(st.lists(st.binary(max_size=12).filter(lambda line: b"\n" not in line and not line.endswith(b"\r"))))
def test_every_line_comes_back(lines: list[bytes]) -> None:
    assert LineReader().feed(b"".join(line + b"\r\n" for line in lines)) == lines


def test_b068_only_a_newline_ends_a_line() -> None:
    """anthropics/claude-agent-sdk-typescript#137, openai/codex#33617: U+2028, U+0085, VT and FF are characters of a string."""
    text = "a\u2028b\u2029c\u0085d\u000be\u000cf"
    inside = text.replace("\u000b", "\\u000b").replace("\u000c", "\\f")
    line = b'{"type":"tool/call/req","arguments":{"t":"' + inside.encode() + b'","u":"1\\n2\\r\\n3"}}'
    [only] = LineReader().feed(line + b"\n")
    assert isinstance(only, bytes)
    message = decode(only)
    assert isinstance(message, ToolCallRequest)
    assert message.arguments == {"t": text, "u": "1\n2\r\n3"}
    written = encode(message)
    assert len(written.decode().splitlines()) == 1
    again = decode(written)
    assert isinstance(again, ToolCallRequest)
    assert again.arguments == message.arguments


def test_b040_a_line_beyond_the_limit_is_reported_once_and_lost_alone() -> None:
    """QwenLM/qwen-code#9298: 200 KB and 5 MB arrive, 9 MB is one clear error, and memory stays bounded."""
    reader = LineReader()
    for size in (200_000, 5_000_000, 8 * 1024 * 1024):
        data = b"x" * size + b"\n"
        found = [line for start in range(0, len(data), 65536) for line in reader.feed(data[start : start + 65536])]
        assert found == [b"x" * size]
    reports: list[bytes | Oversized] = []
    for _ in range(9 * 16):
        reports += reader.feed(b"y" * 65536)
    assert reports == [Oversized(8 * 1024 * 1024, b"y" * 4096)]
    assert reader.feed(b"the rest\nnext\n") == [b"next"]


def test_b040_characters_may_be_cut_in_two() -> None:
    """TokenRhythm/opensquilla#953: a character of several bytes that arrives in two reads."""
    reader = LineReader()
    data = "é€😀\n".encode()
    assert [line for byte in data for line in reader.feed(bytes([byte]))] == ["é€😀".encode()]


def test_b041_bytes_that_are_no_text_are_a_line_like_any_other() -> None:
    """modelcontextprotocol/python-sdk#2873: one line of bad bytes must not end the session."""
    assert LineReader().feed(b"\xff\xfe garbage\n{}\n") == [b"\xff\xfe garbage", b"{}"]


def test_a_line_may_be_as_long_as_the_limit_with_any_ending() -> None:
    for ending in (b"\n", b"\r\n"):
        for step in (1, 3, 100):
            data = b"abcd" + ending + b"abcde" + ending
            reader = LineReader(4)
            found = [line for start in range(0, len(data), step) for line in reader.feed(data[start : start + step])]
            assert found == [b"abcd", Oversized(4, b"abcd")]


def test_the_last_line_needs_no_newline() -> None:
    reader = LineReader()
    assert reader.feed(b"a\nb") == [b"a"]
    assert reader.finish() == [b"b"]
    assert reader.finish() == []


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="max_bytes"):
        LineReader(0)
