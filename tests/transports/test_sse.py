"""Server-sent events, there and back, in any chunks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anykit.transports import Oversized, ServerEvent, SseDecoder, encode_comment, encode_event


def decode(data: bytes, size: int = 1 << 20, max_event: int = 1000) -> list[ServerEvent | Oversized]:
    decoder = SseDecoder(max_event)
    events: list[ServerEvent | Oversized] = []
    for start in range(0, len(data), size):
        events += decoder.feed(data[start : start + size])
    return events


def data_of(events: list[ServerEvent | Oversized]) -> list[bytes]:
    return [event.data if isinstance(event, ServerEvent) else b"(oversized)" for event in events]


@given(st.lists(st.binary(max_size=40).filter(lambda data: b"\r" not in data), max_size=5), st.integers(1, 60))
def test_what_is_encoded_is_decoded_whatever_the_chunks(events: list[bytes], size: int) -> None:
    data = b"".join(encode_event(event, id=str(number)) for number, event in enumerate(events))
    decoded = decode(data, size)
    assert data_of(decoded) == events
    assert [event.id for event in decoded if isinstance(event, ServerEvent)] == [str(n) for n in range(len(events))]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_the_standards_examples(size: int, end: bytes) -> None:
    """WHATWG HTML, 9.2.6."""
    stream = (
        b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n"
        b"data\n\ndata\ndata\n\ndata:"
    )
    assert decode(stream.replace(b"\n", end), size) == [
        ServerEvent(b"first event", id="1"),
        ServerEvent(b"second event", id=""),
        ServerEvent(b" third event", id=""),
        ServerEvent(b""),
        ServerEvent(b"\n"),
    ]


@pytest.mark.parametrize("size", [1, 2, 4, 1000])
def test_a_byte_order_mark_goes_only_at_the_start(size: int) -> None:
    assert data_of(decode(b"\xef\xbb\xbfdata: one\n\n\xef\xbb\xbfdata: two\n\ndata: three\n\n", size)) == [
        b"one",
        b"three",
    ]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_b068_u2028_and_its_like_are_data(size: int) -> None:
    """openai/codex#33617: clients that split lines at U+2028 break JSON inside an event."""
    text = '{"t":"a\u2028b\u2029c\u0085d\x0be\x0cf"}'.encode()
    assert data_of(decode(encode_event(text), size)) == [text]


@pytest.mark.parametrize("data", [b"line1\nline2\r\nline3", b"\n", b"a\rb", b"", b" leading", b"end\n"])
def test_several_lines_come_back_with_line_feeds(data: bytes) -> None:
    expected = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    encoded = encode_event(data)
    assert b"\r" not in encoded
    assert data_of(decode(encoded, 1)) == [expected]


def test_fields_are_read_as_the_standard_says() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"event: toolkit\nid: 7\nretry: 250\nunknown: x\ndata: {}\n\ndata: more\n\n") == [
        ServerEvent(b"{}", "toolkit", "7"),
        ServerEvent(b"more", "message", "7"),
    ]
    assert (decoder.last_event_id, decoder.retry) == ("7", 250)
    decoder.feed(b"id: with\0nul\nretry: 1s\nretry: -5\nretry: \xd9\xa1\n\n")
    assert (decoder.last_event_id, decoder.retry) == ("7", 250)
    decoder.feed(b"retry: 99999999999\n")
    assert decoder.retry == 60_000


def test_an_id_counts_only_once_its_event_is_complete() -> None:
    decoder = SseDecoder(last_event_id="3")
    decoder.feed(b"id: 4\ndata: half")
    assert decoder.last_event_id == "3"
    assert decoder.feed(b"\n\n") == [ServerEvent(b"half", id="4")]
    assert decoder.last_event_id == "4"


def test_comments_are_counted_and_make_no_event() -> None:
    decoder = SseDecoder()
    assert decoder.feed(encode_comment() + encode_comment(b"still here")) == []
    assert decoder.comments == 2


@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
def test_an_event_beyond_the_limit_is_reported_once_and_the_next_one_passes(size: int) -> None:
    one_line = encode_event(b"x" * 1101)
    many_lines = encode_event(b"\n".join([b"y" * 90] * 40))
    exact = encode_event(b"z" * 1000)
    stream = one_line + exact + many_lines + encode_event(b"fine", event="e")
    assert data_of(decode(stream, size)) == [b"(oversized)", b"z" * 1000, b"(oversized)", b"fine"]


def test_an_event_that_never_ends_is_reported_when_it_crosses_the_limit() -> None:
    decoder = SseDecoder(1000)
    reports = decoder.feed(b"data: ") + [report for _ in range(50) for report in decoder.feed(b"x" * 100)]
    assert len(reports) == 1
    assert isinstance(reports[0], Oversized)


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "a\0b"])
def test_names_and_ids_of_several_lines_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="one line"):
        encode_event(b"", event=text)
    with pytest.raises(ValueError, match="one line"):
        encode_event(b"", id=text)


def test_a_comment_of_several_lines_is_refused() -> None:
    with pytest.raises(ValueError, match="one line"):
        encode_comment(b"a\nb")
