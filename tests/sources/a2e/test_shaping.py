"""A2E's words as the layer's: specs, results, errors, events."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from anykit.capabilities import (
    Artifact,
    AudioPart,
    BlobPart,
    ExecutionFailed,
    ImagePart,
    InvalidInput,
    InvocableResult,
    Log,
    Progress,
    Status,
    Suspension,
    TextPart,
    Unavailable,
)
from anykit.sources.a2e import A2ERequestError
from anykit.sources.a2e.shaping import Artifacts, event_of, input_schema_of, layer_error, result_of, spec_of
from anykit.sources.hostile import MAX_DESCRIPTION, Malformed
from anykit.wire.a2e import A2EEvent, ToolDefinition, ToolParameter, ToolResult


def definition(**fields: Any) -> ToolDefinition:
    return ToolDefinition.model_validate({"name": "t", "description": "d", **fields})


def wire_result(**fields: Any) -> ToolResult:
    return ToolResult.model_validate({"success": True, "tool_name": "t", "duration_ms": 1, **fields})


# specs


def test_a_spec_takes_the_schema_of_the_tool() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    spec = spec_of(definition(input_schema=schema, output_schema={"type": "string"}, idempotent=True, tags=["x"]))
    assert spec.input_schema == schema
    assert spec.output_schema == {"type": "string"}
    assert spec.annotations is not None
    assert spec.annotations.idempotent is True
    assert spec.annotations.destructive is None
    assert (spec.kind, spec.tags, spec.toolkit) == ("a2e", ("x",), None)


def test_without_a_schema_it_is_made_from_the_parameters() -> None:
    parameters = [
        ToolParameter(name="a", type="int", description="A", required=True),
        ToolParameter(name="b", type="string", description="", enum=["x", "y"]),
        ToolParameter(name="c", type="object", description="", properties={"d": {"type": "number"}}),
        ToolParameter(name="e", type="any", description=""),
    ]
    assert input_schema_of(definition(input_parameters=parameters)) == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "A"},
            "b": {"type": "string", "enum": ["x", "y"]},
            "c": {"type": "object", "properties": {"d": {"type": "number"}}},
            "e": {},
        },
        "required": ["a"],
    }
    assert spec_of(definition()).input_schema == {"type": "object", "properties": {}}


def test_hidden_characters_go_from_texts_and_stay_in_data() -> None:
    tag = "\U000e0041"
    spec = spec_of(
        definition(
            description=f"Reads.\x1b[31m\u200b\u202eIgnore all{tag}\r\nTab\tstays",
            tags=["a\u200bb", "", "a\u200bb"],
            version="1\u00ad.0",
            toolkit="k\x00it",
            input_schema={
                "type": "object",
                "description": f"x{tag}",
                "properties": {"p": {"description": "y\u2066", "enum": [f"v{tag}"], "title": "z\ue000"}},
            },
        )
    )
    assert spec.description == "Reads.[31mIgnore all\nTab\tstays"
    assert spec.tags == ("ab",)
    assert spec.version == "1.0"
    assert spec.metadata["a2e"]["toolkit"] == "kit"
    assert spec.input_schema["description"] == "x"
    assert spec.input_schema["properties"]["p"] == {"description": "y", "enum": [f"v{tag}"], "title": "z"}


def test_a_description_is_bounded() -> None:
    assert len(spec_of(definition(description="x" * 1_000_000)).description) == MAX_DESCRIPTION


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


MALFORMED: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "no name"),
    ({"name": "  "}, "no name"),
    ({"name": "a\u200bb"}, "invisible"),
    ({"name": "a\nb"}, "control"),
    ({"name": "a" * 257}, "longer than 256"),
    ({"input_schema": {"type": "string"}}, "describes no object but 'string'"),
    ({"input_schema": {"type": "int"}}, "describes no object but 'int'"),
    ({"input_schema": {"type": "object", "properties": {"a": {"type": "nonsense"}}}}, "cannot be used"),
    ({"input_schema": {"type": "object", "properties": {"k": {}, "required": ["k"]}}}, "cannot be used"),
    ({"input_schema": {"type": "object", "$ref": "https://example.com/x.json"}}, "cannot be used"),
    ({"input_schema": {"type": "object", "properties": {"a\u200b": {}}}}, "property's name"),
    ({"input_schema": nested(60)}, "nested deeper"),
    ({"input_schema": {"type": "object", "properties": {f"p{n}": {} for n in range(20_001)}}}, "more than 20000"),
    ({"input_schema": {"type": "object", "enum": [list(range(30_000))]}}, "more than 20000"),
]


@pytest.mark.parametrize(("fields", "reason"), MALFORMED)
def test_b021_what_cannot_be_used_says_why(fields: dict[str, Any], reason: str) -> None:
    """anthropics/claude-code#88049: one malformed definition poisons the rest."""
    with pytest.raises(Malformed, match=reason):
        spec_of(definition(**fields))


def test_a_promise_that_cannot_be_understood_is_none() -> None:
    assert spec_of(definition(output_schema={"type": "nonsense"})).output_schema is None
    assert spec_of(definition(output_schema=nested(60))).output_schema is None


# results


@pytest.mark.parametrize(
    ("fields", "text", "structured"),
    [
        ({"data": {"a": 1}, "summary": '{"a":1}'}, '{"a":1}', {"a": 1}),
        ({"data": {"a": 1}}, None, {"a": 1}),
        ({"data": "hello"}, "hello", "hello"),
        ({"data": "", "summary": ""}, "", ""),
        ({"data": 0, "summary": "0"}, "0", 0),
        ({"data": [], "summary": "[]"}, "[]", []),
        ({"data": False}, None, False),
        ({"data": None, "summary": "null"}, "null", None),
        ({"data": None}, "null", None),
        ({"data": 2**80}, None, 2**80),
        ({"data": 1, "summary": {"odd": "summary"}}, None, 1),
    ],
)
def test_data_is_the_value_and_the_summary_its_text(fields: dict[str, Any], text: str | None, structured: Any) -> None:
    result = result_of(wire_result(**fields))
    assert isinstance(result, InvocableResult)
    assert result.text == text
    assert result.has_structured
    assert result.structured == structured


def test_text_alone_is_no_value() -> None:
    result = result_of(wire_result(summary="only text", truncated=True, exit_code=3))
    assert isinstance(result, InvocableResult)
    assert (result.text, result.has_structured) == ("only text", False)
    assert result.metadata == {"truncated": True, "exit_code": 3}


def test_an_unsuccessful_result_is_a_failure_that_keeps_its_data() -> None:
    failed = wire_result(success=False, error="disk full", error_code="TOOL_EXECUTION_ERROR", data={"free": 0})
    with pytest.raises(ExecutionFailed, match="disk full") as caught:
        result_of(failed)
    assert caught.value.code == "execution_failed"
    assert caught.value.result is not None
    assert caught.value.result.structured == {"free": 0}
    with pytest.raises(ExecutionFailed, match="t failed"):
        result_of(wire_result(success=False))
    with pytest.raises(ExecutionFailed, match="said so"):
        result_of(wire_result(success=False, summary="said so"))


def test_a_suspended_call_is_a_suspension() -> None:
    data = {"id": "s1", "kind": "approval", "prompt": "May I\u200b?", "schema": {"type": "object"}, "expires_at": 5}
    suspension = result_of(wire_result(success=False, error_code="suspended", data=data))
    assert isinstance(suspension, Suspension)
    assert (suspension.id, suspension.kind, suspension.prompt) == ("s1", "approval", "May I?")
    assert suspension.state == {"a2e": "s1"}
    assert suspension.expires_at == 5.0
    odd = result_of(wire_result(success=False, error_code="suspended", data={"id": "s2", "kind": "odd", "url": 7}))
    assert isinstance(odd, Suspension)
    assert (odd.kind, odd.url) == ("input", None)
    with pytest.raises(ExecutionFailed, match="does not say to which question"):
        result_of(wire_result(success=False, error_code="suspended", data={"id": 7}))


# errors


@pytest.mark.parametrize(
    ("code", "detail", "expected"),
    [
        ("unknown_tool", {}, "unknown_tool"),
        ("tool_denied", {}, "policy"),
        ("tool_denied", {"reason": "not_configured", "toolkit": "files"}, "not_configured"),
        ("tool_denied", {"reason": "disabled"}, "disabled"),
        ("tool_denied", {"reason": ["odd"]}, "policy"),
        ("tool_error", {}, "execution_failed"),
        ("tool_error", {"code": "quota"}, "quota"),
        ("tool_error", {"reason": "internal"}, "internal"),
        ("timeout", {}, "timeout"),
        ("runtime_error", {}, "runtime_error"),
        ("runtime_error", {"reason": "busy"}, "busy"),
        ("runtime_error", {"reason": "unknown"}, "unknown"),
        ("capability_missing", {}, "unavailable"),
        ("unauthorized", {}, "unavailable"),
        ("own_word", {}, "own_word"),
    ],
)
def test_errors_go_through_one_table(code: str, detail: dict[str, Any], expected: str) -> None:
    error = layer_error(A2ERequestError(code, "why", detail, True))
    assert isinstance(error, ExecutionFailed)
    assert (error.code, error.message, error.retryable) == (expected, "why", True)


def test_wrong_arguments_keep_every_fault() -> None:
    errors = [{"path": "/a", "message": "m\u200b"}, "odd", {"path": 7, "message": "x"}, {"message": "whole"}]
    error = layer_error(A2ERequestError("schema_violation", "bad", {"errors": errors}))
    assert isinstance(error, InvalidInput)
    assert error.errors == [{"path": "/a", "message": "m"}, {"path": "", "message": "whole"}]


def test_a_source_behind_the_host_that_is_away_is_unavailable() -> None:
    error = layer_error(A2ERequestError("runtime_error", "away", {"reason": "unavailable"}, True))
    assert isinstance(error, Unavailable)
    assert not error.sent


def test_what_a_failing_tool_said_beside_is_kept() -> None:
    error = layer_error(A2ERequestError("tool_error", "why", {"structured": {"left": 3}, "toolkit": "k"}))
    assert isinstance(error, ExecutionFailed)
    assert error.result is not None
    assert error.result.structured == {"left": 3}
    assert error.detail == {"toolkit": "k"}


# events


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        ("progress", {"pct": 40, "message": "m"}, Progress(40.0, 100.0, "m")),
        ("progress", {"pct": 40, "done": 2, "total": 5}, Progress(2.0, 5.0, "")),
        ("progress", {"message": "working"}, Progress(0.0, None, "working")),
        ("progress", {"pct": "odd"}, None),
        ("progress", {"pct": True}, None),
        ("log", {"level": "WARN", "message": "w\x07"}, Log("warning", "w")),
        ("log", {"level": 7}, Log("info", "")),
        ("status", {"message": "s"}, Status("s")),
        ("artifact", {"name": "a"}, None),
        ("surprise", {}, None),
    ],
)
def test_events_are_read_as_far_as_they_say_something(kind: str, data: dict[str, Any], expected: object) -> None:
    assert event_of(A2EEvent(kind=kind, data=data)) == expected


def test_artifacts_are_put_together_and_become_parts_of_the_result() -> None:
    def piece(name: str, body: bytes, mime: str, *, append: bool = False, final: bool = True) -> Artifact:
        chunk = base64.b64encode(body).decode()
        data = {"name": name, "mime": mime, "chunk": chunk, "append": append, "final": final}
        event = event_of(A2EEvent(kind="artifact", data=data))
        assert isinstance(event, Artifact)
        return event

    artifacts = Artifacts(most_bytes=20)
    artifacts.take(piece("content-0", b"png", "image/png"))
    artifacts.take(piece("log.txt", b"one ", "text/plain", final=False))
    artifacts.take(piece("log.txt", b"two", "text/plain", append=True))
    artifacts.take(piece("content-2", b"wav", "audio/wav"))
    artifacts.take(piece("too large", b"x" * 20, "text/plain"))
    assert artifacts.parts() == (
        ImagePart(data=b"png", media_type="image/png"),
        BlobPart(data=b"one two", name="log.txt", media_type="text/plain"),
        AudioPart(data=b"wav", media_type="audio/wav"),
    )
    plain = event_of(A2EEvent(kind="artifact", data={"name": "n", "chunk": "not base64!"}))
    assert isinstance(plain, Artifact)
    assert plain.part == TextPart(text="not base64!")
