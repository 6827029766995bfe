"""RFC 8785: its own examples, and what of a card is signed."""

from __future__ import annotations

import struct

import pytest

from anykit.wire.a2a import NotCanonical, canonical, signed_forms

# RFC 8785, appendix B: IEEE 754 bits and their text.
NUMBERS = [
    ("0000000000000000", "0"),
    ("8000000000000000", "0"),
    ("0000000000000001", "5e-324"),
    ("8000000000000001", "-5e-324"),
    ("7fefffffffffffff", "1.7976931348623157e+308"),
    ("ffefffffffffffff", "-1.7976931348623157e+308"),
    ("4340000000000000", "9007199254740992"),
    ("c340000000000000", "-9007199254740992"),
    ("4430000000000000", "295147905179352830000"),
    ("44b52d02c7e14af5", "9.999999999999997e+22"),
    ("44b52d02c7e14af6", "1e+23"),
    ("44b52d02c7e14af7", "1.0000000000000001e+23"),
    ("444b1ae4d6e2ef4e", "999999999999999700000"),
    ("444b1ae4d6e2ef4f", "999999999999999900000"),
    ("444b1ae4d6e2ef50", "1e+21"),
    ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
    ("3eb0c6f7a0b5ed8d", "0.000001"),
    ("41b3de4355555553", "333333333.3333332"),
    ("41b3de4355555557", "333333333.33333343"),
    ("becbf647612f3696", "-0.0000033333333333333333"),
    ("43143ff3c1cb0959", "1424953923781206.2"),
]


@pytest.mark.parametrize(("bits", "text"), NUMBERS)
def test_numbers_are_written_as_ecmascript_writes_them(bits: str, text: str) -> None:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical(value) == text.encode()


def test_members_are_sorted_by_utf_16_and_texts_are_escaped_as_little_as_can_be() -> None:
    # RFC 8785, 3.2.3
    value = {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\u0080": 6, "\u00f6": 7}
    assert canonical(value).decode() == '{"\\r":2,"1":4,"\u0080":6,"\u00f6":7,"\u20ac":1,"\U0001f600":5,"\ufb33":3}'
    assert (
        canonical({"a": ['\x0f\n"\\/', True, None, 1.0, 56, "é"]})
        == b'{"a":["\\u000f\\n\\"\\\\/",true,null,1,56,"\xc3\xa9"]}'
    )


def test_what_has_no_canonical_form_is_refused() -> None:
    deep: list[object] = []
    for _ in range(200):
        deep = [deep]
    for value in (float("nan"), float("inf"), 2**53, "\ud800", deep, object()):
        with pytest.raises(NotCanonical):
            canonical(value)


def test_a_card_is_signed_without_its_signatures_and_empty_fields() -> None:
    card = {"name": "A", "url": "http://h/", "provider": {"url": ""}, "skills": [], "signatures": [1], "version": ""}
    forms = [data for _, data in signed_forms(card)]
    assert forms[0] == b'{"name":"A","url":"http://h/"}'
    assert forms[1] == b'{"name":"A"}'  # url is a field of 0.3
    assert all(b"signatures" not in data for data in forms)
    assert len(set(forms)) == len(forms)
