"""Framing: only 0x0A ends a line, whatever the chunks; too long is skipped and said once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anykit.transports import LineReader, Oversized


def lines_of(data: bytes, size: int, max_line: int = 1000) -> list[bytes | Oversized]:
    reader = LineReader(max_line)
    items: list[bytes | Oversized] = []
    for start in range(0, len(data), size):
        items += reader.feed(data[start : start + size])
    return items + reader.finish()


@given(st.lists(st.binary(min_size=1, max_size=40).filter(lambda line: b"\n" not in line)), st.integers(1, 50))
def test_the_chunks_do_not_matter(lines: list[bytes], size: int) -> None:
    data = b"".join(line + b"\n" for line in lines)
    expected = [line.removesuffix(b"\r") for line in lines]
    assert lines_of(data, size) == [line for line in expected if line.strip()]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_a_carriage_return_before_the_line_feed_goes_and_any_other_stays(size: int) -> None:
    assert lines_of(b"one\r\ntw\ro\nthree\r\r\n", size) == [b"one", b"tw\ro", b"three\r"]


@pytest.mark.parametrize("size", [1, 3, 64])
def test_b068_only_line_feed_ends_a_line(size: int) -> None:
    """volcengine/OpenViking#3984, anthropics/claude-agent-sdk-typescript#137: splitlines() splits JSON strings."""
    text = '{"t":"a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg"}'.encode()
    assert lines_of(text + b"\n" + text + b"\r\n", size) == [text, text]


def test_blank_lines_are_counted_and_dropped() -> None:
    reader = LineReader()
    assert reader.feed(b"\n \t\r\n\r\none\n\n") == [b"one"]
    assert reader.blank == 4


def test_a_last_line_without_an_end_is_given_at_the_end() -> None:
    reader = LineReader()
    assert reader.feed(b"one\ntwo") == [b"one"]
    assert reader.finish() == [b"two"]
    assert reader.finish() == []


@pytest.mark.parametrize("size", [1, 5, 11, 64, 10_000])
def test_a_line_of_exactly_the_limit_passes(size: int) -> None:
    exact = b"x" * 20
    assert lines_of(exact + b"\n" + exact + b"\r\n" + exact, size, 20) == [exact, exact, exact]


@pytest.mark.parametrize("size", [1, 5, 11, 64, 10_000])
def test_a_line_beyond_the_limit_is_reported_once_and_the_next_one_passes(size: int) -> None:
    items = lines_of(b"before\n" + b"x" * 500 + b"\r\nafter\n" + b"y" * 21 + b"\nend\n", size, 20)
    assert [item if isinstance(item, bytes) else "oversized" for item in items] == [
        b"before",
        "oversized",
        b"after",
        "oversized",
        b"end",
    ]


def test_b040_a_line_that_never_ends_is_reported_when_it_crosses_the_limit() -> None:
    """QwenLM/qwen-code#9298: nine megabytes with no newline must not be waited for, nor kept."""
    reader = LineReader(8 * 1024 * 1024)
    chunk = b"z" * 65536
    reports: list[bytes | Oversized] = []
    for _ in range(9 * 16):
        reports += reader.feed(chunk)
    (report,) = reports
    assert isinstance(report, Oversized)
    assert report.limit == 8 * 1024 * 1024
    assert report.limit < report.size <= report.limit + 2 * len(chunk)
    assert "too large" in str(report)
    assert reader.oversized == 1
    assert reader.feed(b"z\nnext\n") == [b"next"]


def test_b041_bytes_that_are_not_text_pass_as_they_are() -> None:
    """modelcontextprotocol/python-sdk#2873: one bad line must not end the stream; who reads it decides."""
    assert lines_of(b"\xff\xfe garbage\n{}\n", 3) == [b"\xff\xfe garbage", b"{}"]


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="max_line"):
        LineReader(0)
