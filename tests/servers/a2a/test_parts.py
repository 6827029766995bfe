"""What a result becomes, without a wire."""

from __future__ import annotations

from typing import Any

import pytest

from anykit.capabilities import (
    AudioPart,
    BlobPart,
    Completed,
    EmbeddedResource,
    Failed,
    ImagePart,
    InvocableResult,
    ResourceLink,
    StructuredPart,
    Suspension,
    TextPart,
)
from anykit.servers.a2a.parts import (
    EXACT,
    Data,
    File,
    Part,
    Text,
    inexact,
    is_exact,
    json_part,
    question_parts,
    result_parts,
)
from anykit.tools import result_of

BIG = EXACT + 1


def _parts(value: Any) -> list[Part]:
    result = value if isinstance(value, InvocableResult) else result_of(value)
    return result_parts(Completed(result), limit=1000)


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ("hi", [Text("hi")]),
        ("", [Text("")]),
        (None, [Text("null")]),
        (5, [Text("5"), Data(5)]),
        (False, [Text("false"), Data(False)]),
        ([], [Text("[]"), Data([])]),
        ({"a": [1, None]}, [Text('{"a":[1,null]}'), Data({"a": [1, None]})]),
        (b"raw", [File(b"raw", media_type="application/octet-stream")]),
        (["see", ImagePart(data=b"i")], [Text("see"), File(b"i", media_type="image/png")]),
        (InvocableResult(text="five", structured={"n": 5}), [Text("five"), Data({"n": 5})]),
        (InvocableResult(structured={"n": 5}), [Text('{"n":5}'), Data({"n": 5})]),
        (
            InvocableResult(text="five", structured={"n": 5}, content=(BlobPart(data=b"x", name="f"),)),
            [Text("five"), Data({"n": 5}), File(b"x", name="f", media_type="application/octet-stream")],
        ),
        (
            InvocableResult(structured={"n": 5}, content=(ImagePart(data=b"i"),)),
            [Text('{"n":5}'), Data({"n": 5}), File(b"i", media_type="image/png")],
        ),
        (InvocableResult(content=(StructuredPart(value={"n": 5}),), structured={"n": 5}), [Data({"n": 5})]),
        (
            InvocableResult(
                content=(
                    TextPart(text="# t", media_type="text/markdown"),
                    AudioPart(data=b"a"),
                    ResourceLink(uri="file:///x", name="x"),
                    EmbeddedResource(uri="a://b", text="inside"),
                    EmbeddedResource(uri="a://c", data=b"inside"),
                )
            ),
            [
                Text("# t", "text/markdown"),
                File(b"a", media_type="audio/wav"),
                File(uri="file:///x", name="x"),
                Text("inside"),
                File(b"inside", name="a://c"),
            ],
        ),
        (InvocableResult(), [Text("")]),
    ],
)
def test_a_result_is_its_text_then_its_data_then_its_files(value: Any, parts: list[Part]) -> None:
    assert _parts(value) == parts


def test_what_numbers_would_not_carry_exactly_is_text_only() -> None:
    assert _parts({"id": BIG}) == [Text(f'{{"id":{BIG}}}')]
    assert _parts({"id": EXACT}) == [Text(f'{{"id":{EXACT}}}'), Data({"id": EXACT})]
    assert _parts(InvocableResult(text="found", structured=[BIG])) == [
        Text("found"),
        Text(f"[{BIG}]", "application/json"),
    ]
    assert json_part([-BIG]) == Text(f"[{-BIG}]", "application/json")


def test_a_text_beyond_the_limit_is_cut_and_its_data_left_out() -> None:
    (text,) = result_parts(Completed(result_of(["x" * 3000])), limit=1000)
    assert isinstance(text, Text)
    assert "[cut: 1000 of 3004 bytes shown]" in text.text


def test_a_failure_is_its_message_and_what_it_said_beside() -> None:
    result = InvocableResult(content=(TextPart(text="no"), ImagePart(data=b"i")), structured={"why": 1})
    parts = result_parts(Failed("x", "no", result=result), limit=1000)
    assert parts == [Text("no"), Data({"why": 1}), File(b"i", media_type="image/png")]
    assert result_parts(Failed("x", "no"), limit=1000) == [Text("no")]


def test_where_an_integer_is_that_would_be_rounded() -> None:
    assert inexact({"a": [1, {"b/c": BIG}]}, "data") == "/data/a/1/b~1c"
    assert inexact({"a": [1, 1.5, "9007199254740993", True, None]}) is None
    assert not is_exact([[[[BIG]]]])


def test_a_question_says_how_it_is_answered_without_its_state() -> None:
    question = Suspension("q1", "authorization", "Sign in", url="https://x.example/", state={"secret": 1})
    text, data = question_parts(question)
    assert text == Text("Sign in\nhttps://x.example/")
    assert data == Data({"id": "q1", "kind": "authorization", "prompt": "Sign in", "url": "https://x.example/"})
