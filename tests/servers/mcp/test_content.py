"""Results, resources and prompts as MCP spells them."""

from __future__ import annotations

from typing import Any

import pytest

from anykit.capabilities import (
    AudioPart,
    BlobPart,
    Completed,
    DataReference,
    Denied,
    EmbeddedResource,
    Failed,
    ImagePart,
    InvocableResult,
    PromptContents,
    PromptMessage,
    ResourceContents,
    ResourceLink,
    StructuredPart,
    TextPart,
)
from anykit.servers.mcp.content import block, blocks, call_result, contents, prompt_result
from anykit.servers.mcp.definitions import Offered

PLAIN = Offered({}, None)
PROMISED = Offered({}, False)
WRAPPED = Offered({}, True)


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (TextPart(text="t"), {"type": "text", "text": "t"}),
        (
            TextPart(text="t", metadata={"annotations": {"priority": 1.0}, "_meta": {"k": 1}, "other": 2}),
            {"type": "text", "text": "t", "annotations": {"priority": 1.0}, "_meta": {"k": 1}},
        ),
        (ImagePart(data=b"\x00", media_type="image/webp"), {"type": "image", "data": "AA==", "mimeType": "image/webp"}),
        (AudioPart(data=b"\x00"), {"type": "audio", "data": "AA==", "mimeType": "audio/wav"}),
        (StructuredPart(value={"a": [1]}), {"type": "text", "text": '{"a":[1]}'}),
        (
            BlobPart(data=b"\x00", name="a b.bin"),
            {
                "type": "resource",
                "resource": {
                    "uri": "anykit://part/a%20b.bin",
                    "mimeType": "application/octet-stream",
                    "blob": "AA==",
                },
            },
        ),
        (
            BlobPart(uri="https://x/f.pdf", media_type="application/pdf"),
            {"type": "resource_link", "uri": "https://x/f.pdf", "name": "f.pdf", "mimeType": "application/pdf"},
        ),
        (
            ResourceLink(uri="x://a", name="a", title="A", size=3),
            {"type": "resource_link", "uri": "x://a", "name": "a", "title": "A", "size": 3},
        ),
        (
            EmbeddedResource(uri="x://a", text="t", media_type="text/plain"),
            {"type": "resource", "resource": {"uri": "x://a", "mimeType": "text/plain", "text": "t"}},
        ),
        (EmbeddedResource(uri="x://a", data=b""), {"type": "resource", "resource": {"uri": "x://a", "blob": ""}}),
    ],
)
def test_each_part_is_a_block(part: Any, shown: Any) -> None:
    assert block(part) == shown


def test_blocks_keep_their_order() -> None:
    kinds = [one["type"] for one in blocks([TextPart(text="a"), ImagePart(data=b""), TextPart(text="b")])]
    assert kinds == ["text", "image", "text"]


def done(**fields: Any) -> Completed:
    return Completed(InvocableResult(**fields))


def test_b036_a_value_without_text_is_told_as_both() -> None:
    """microsoft/agent-framework#3313."""
    answer = call_result(done(structured={"id": 7}), PLAIN)
    assert answer["content"] == [{"type": "text", "text": '{"id":7}'}]
    assert answer["structuredContent"] == {"id": 7}
    assert answer["isError"] is False


def test_b036_a_summary_does_not_hide_the_value() -> None:
    """microsoft/agent-framework#3313."""
    summary = TextPart(text="done, 2 rows")
    answer = call_result(done(content=(summary,), structured={"rows": [1, 2]}), PROMISED)
    assert [one["text"] for one in answer["content"]] == ["done, 2 rows", '{"rows":[1,2]}']
    said = TextPart(text='{ "rows": [1, 2] }')
    once = call_result(done(content=(said,), structured={"rows": [1, 2]}), PROMISED)
    assert [one["text"] for one in once["content"]] == ['{ "rows": [1, 2] }']


@pytest.mark.parametrize(("value", "text"), [(None, "null"), (0, "0"), ("", ""), ([], "[]"), (False, "false")])
def test_null_and_what_is_empty_stay_apart(value: Any, text: str) -> None:
    answer = call_result(done(text=text, structured=value), WRAPPED)
    assert answer["structuredContent"] == {"result": value}
    assert answer["content"] == [{"type": "text", "text": text}]


def test_a_result_without_a_value_has_none() -> None:
    assert "structuredContent" not in call_result(done(text="t"), PLAIN)


def test_a_data_reference_is_a_link() -> None:
    data = DataReference(uri="https://x/data.csv", media_type="text/csv", size=9)
    assert call_result(done(text="there", data=data), PLAIN)["content"][-1] == {
        "type": "resource_link",
        "uri": "https://x/data.csv",
        "name": "data.csv",
        "mimeType": "text/csv",
        "size": 9,
    }


@pytest.mark.parametrize(
    ("outcome", "code", "retryable"),
    [
        (Failed("timeout", "too slow", retryable=True), "timeout", True),
        (Failed("own_word", "no"), "own_word", False),
        (Denied("not allowed"), "policy", False),
    ],
)
def test_a_failure_says_its_code(outcome: Any, code: str, retryable: bool) -> None:
    answer = call_result(outcome, PLAIN)
    assert answer["isError"] is True
    assert answer["content"][0]["text"] == outcome.message
    assert answer["_meta"] == {"anykit/code": code, "anykit/retryable": retryable}


def test_what_a_failing_tool_said_beside_its_text_is_kept() -> None:
    result = InvocableResult(structured={"why": "seats"}, content=(TextPart(text="too many seats"),))
    answer = call_result(Failed("execution_failed", "too many seats", result=result), PROMISED)
    assert answer["content"] == [{"type": "text", "text": "too many seats"}]
    assert answer["structuredContent"] == {"why": "seats"}


def test_a_text_that_is_too_long_is_cut_and_says_so() -> None:
    answer = call_result(done(text='"' + "x" * 100 + '"', structured="x" * 100), PLAIN, limit=10)
    assert answer["content"][0]["text"].endswith("[cut: 10 of 102 bytes shown]")
    assert "structuredContent" not in answer or len(str(answer["structuredContent"])) < 100
    assert answer["_meta"]["anykit/truncated"] == {"shown_bytes": 10, "total_bytes": 102}


def test_a_promised_value_is_whole_however_long_its_text() -> None:
    value = {"rows": ["x" * 100]}
    answer = call_result(done(text="y" * 100, structured=value), PROMISED, limit=10)
    assert answer["structuredContent"] == value


def test_meta_of_the_source_is_handed_on() -> None:
    answer = call_result(done(text="t", metadata={"_meta": {"com.example/k": 1}, "own": 2}), PLAIN)
    assert answer["_meta"] == {"com.example/k": 1}


def test_a_resource_is_read_with_all_its_parts() -> None:
    read = ResourceContents(
        id="x://a",
        parts=(
            TextPart(text="t", media_type="text/csv", metadata={"_meta": {"k": 1}}),
            BlobPart(data=b"\x01", media_type="image/png"),
            EmbeddedResource(uri="x://b", text="b"),
            StructuredPart(value=[1]),
        ),
    )
    assert contents(read) == [
        {"uri": "x://a", "mimeType": "text/csv", "text": "t", "_meta": {"k": 1}},
        {"uri": "x://a", "mimeType": "image/png", "blob": "AQ=="},
        {"uri": "x://b", "text": "b"},
        {"uri": "x://a", "mimeType": "application/json", "text": "[1]"},
    ]


def test_a_prompts_message_has_one_part_each() -> None:
    parts = (TextPart(text="a"), ImagePart(data=b""))
    filled = PromptContents(
        messages=(PromptMessage(role="system", content=parts), PromptMessage(role="assistant", content=parts[:1])),
        description="d",
    )
    shown = prompt_result(filled)
    assert [(one["role"], one["content"]["type"]) for one in shown["messages"]] == [
        ("user", "text"),
        ("user", "image"),
        ("assistant", "text"),
    ]
    assert shown["description"] == "d"
