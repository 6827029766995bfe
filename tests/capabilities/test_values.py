"""The layer's values: what they keep, and what of them may leave."""

from __future__ import annotations

import json

import pytest
from pydantic import TypeAdapter, ValidationError

from anykit.capabilities import (
    Answer,
    AudioPart,
    BlobPart,
    CapabilityContext,
    ContentPart,
    EmbeddedResource,
    ExecutionFailed,
    ImagePart,
    InvocableResult,
    Progress,
    Question,
    ResourceLink,
    StructuredPart,
    Suspension,
    TextPart,
)

pytestmark = pytest.mark.anyio

PARTS: list[ContentPart] = [
    TextPart(text="a", media_type="text/markdown"),
    ImagePart(data=b"\x00\xff", media_type="image/webp"),
    AudioPart(data=b"1", media_type="audio/ogg"),
    BlobPart(data=b"2", name="r.pdf", media_type="application/pdf"),
    BlobPart(uri="https://x.example/y"),
    ResourceLink(uri="file:///a", name="a", size=3),
    EmbeddedResource(uri="file:///b", text="b"),
    StructuredPart(value={"n": [1, None]}),
]


def test_parts_survive_json_in_order_with_media_types_and_bytes() -> None:
    adapter: TypeAdapter[list[ContentPart]] = TypeAdapter(list[ContentPart])
    assert adapter.validate_json(adapter.dump_json(PARTS)) == PARTS


def test_bytes_are_base64_in_json_and_nothing_else() -> None:
    assert json.loads(ImagePart(data=b"\xff").model_dump_json())["data"] == "/w=="
    with pytest.raises(ValidationError, match="base64"):
        ImagePart.model_validate({"data": "%%%"})


def test_a_structured_null_differs_from_none_given() -> None:
    assert InvocableResult(structured=None).has_structured
    assert not InvocableResult(text="x").has_structured


def test_values_are_immutable() -> None:
    with pytest.raises(ValidationError):
        TextPart(text="a").text = "b"


def test_a_suspension_shows_all_but_its_state() -> None:
    shown = Suspension("s", "input", "which?", schema={"type": "object"}, state={"task": "t"}).to_json()
    assert json.loads(json.dumps(shown)) == shown
    assert "state" not in shown
    assert shown["kind"] == "input"


async def test_a_context_works_outside_of_any_loop_of_calls() -> None:
    context = CapabilityContext()
    context.emit(Progress(1))
    assert not context.cancelled
    assert (context.session_id, context.turn_id, context.metadata) == (None, None, {})
    with pytest.raises(ExecutionFailed, match="nobody can be asked"):
        await context.ask(Question("input", "which?"))


async def test_a_question_goes_to_whoever_answers() -> None:
    async def answer(question: Question) -> Answer:
        return Answer(True, question.prompt.upper())

    assert (await CapabilityContext(ask=answer).ask(Question("input", "which?"))).data == "WHICH?"
