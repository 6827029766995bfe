"""Reading answers: envelopes, states, items, parts; and putting a result together."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anykit.capabilities import BlobPart, TextPart
from anykit.wire.a2a import (
    ArtifactUpdate,
    Conversation,
    Message,
    Refused,
    StatusUpdate,
    Task,
    Unreadable,
    WireError,
    decode,
    question_of,
    read_item,
    read_rest_error,
    read_rpc,
    read_state,
    result_of,
)

Json = Any


@pytest.mark.parametrize(
    ("written", "state"),
    [
        ("completed", "completed"),
        ("TASK_STATE_COMPLETED", "completed"),
        ("TASK_STATE_INPUT_REQUIRED", "input-required"),
        ("input_required", "input-required"),
        ("auth-required", "auth-required"),
        ("cancelled", "canceled"),
        ("TASK_STATE_CANCELLED", "canceled"),
        ("TASK_STATE_UNSPECIFIED", "unknown"),
        ("unknown", "unknown"),
        ("TASK_STATE_SOME_NEW", "some-new"),
        (3, "completed"),
        (8, "auth-required"),
        (99, "unknown"),
        (True, "unknown"),
        (None, "unknown"),
        ({}, "unknown"),
        ("\x1b[31m", "unknown"),
        ("x" * 100, "unknown"),
    ],
)
def test_a_state_has_the_contracts_spelling_whatever_the_peers(written: Json, state: str) -> None:
    assert read_state(written) == state


def test_a_json_rpc_error_is_a_refusal_in_one_word() -> None:
    for code, kind in [(-32601, "method_not_found"), (-32009, "version_not_supported"), (-32001, "task_not_found")]:
        with pytest.raises(Refused) as caught:
            read_rpc({"error": {"code": code, "message": "m"}})
        assert (caught.value.kind, caught.value.code, caught.value.message) == (kind, code, "m")
    with pytest.raises(Refused, match="plain"):
        read_rpc({"error": "plain"})
    answers: list[Json] = [None, [], {}, {"jsonrpc": "2.0", "id": 1}]
    for odd in answers:
        with pytest.raises(Unreadable):
            read_rpc(odd)
    assert read_rpc({"result": None}) is None


def test_an_error_of_http_json_is_known_by_its_reason_else_by_its_status() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "VERSION_NOT_SUPPORTED"}]
    error = read_rest_error({"error": {"code": 400, "message": "m", "details": details}}, 400)
    assert (error.kind, error.code, error.status) == ("version_not_supported", None, 400)
    assert read_rest_error({"detail": "Not Found"}, 404).kind == "no_route"
    assert read_rest_error({"code": -32001, "message": "m"}, 404).kind == "task_not_found"
    assert read_rest_error([], 418).kind == "other"


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        ({"id": "t", "status": {"state": "working"}}, Task),
        ({"kind": "task", "id": "t"}, Task),
        ({"task": {"id": "t", "status": {}}}, Task),
        ({"id": "t", "status": "working"}, Task),
        ({"role": "agent", "parts": []}, Message),
        ({"msg": {"role": "agent", "content": [{"text": "x"}]}}, Message),
        ({"statusUpdate": {"taskId": "t", "status": {"state": "working"}}}, StatusUpdate),
        ({"status_update": {"task_id": "t", "status": {"state": "working"}}}, StatusUpdate),
        ({"taskId": "t", "status": {"state": "working"}, "final": False}, StatusUpdate),
        ({"artifactUpdate": {"taskId": "t", "artifact": {"parts": []}}}, ArtifactUpdate),
        ({"kind": "artifact-update", "taskId": "t", "artifact": {"parts": []}}, ArtifactUpdate),
        ({"taskId": "t", "artifact": {"parts": []}}, ArtifactUpdate),
    ],
)
def test_items_are_known_by_wrapper_kind_or_shape(result: Json, kind: type) -> None:
    assert type(read_item(result)) is kind


def test_a_task_whose_status_says_something_is_not_taken_for_a_wrapped_message() -> None:
    item = read_item(
        {"id": "t", "status": {"state": "working", "message": {"parts": [{"text": "x"}]}}, "message": {"x": 1}}
    )
    assert isinstance(item, Task)
    assert item.message is not None


KEYS = st.sampled_from(
    [
        "id",
        "kind",
        "status",
        "state",
        "message",
        "parts",
        "text",
        "data",
        "file",
        "raw",
        "url",
        "artifact",
        "artifacts",
        "history",
        "taskId",
        "contextId",
        "task",
        "role",
        "append",
        "lastChunk",
        "name",
        "bytes",
        "uri",
        "mediaType",
        "content",
        "statusUpdate",
        "artifactUpdate",
        "messageId",
        "timestamp",
        "final",
    ]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)


@settings(deadline=None, max_examples=200)
@given(st.dictionaries(KEYS, values, max_size=8), st.dictionaries(KEYS, values, max_size=8))
def test_no_answer_breaks_the_reader(first: Json, second: Json) -> None:
    talk = Conversation(message_id="m")
    for answer in (first, second):
        try:
            talk.take(read_item(answer))
        except WireError:
            continue
    result = result_of(talk, {})
    assert result.text is None or result.text.encode() is not None
    assert question_of(talk).kind in ("input", "authorization")


def test_json_that_is_none_is_unreadable() -> None:
    for data in (b"", b"<html>", b"[1,2", b"NaN", b"{" * 100_000, b"9" * 5000, b"\xff"):
        with pytest.raises(Unreadable):
            decode(data)


def parts_of(*parts: Json) -> tuple[Any, ...]:
    item = read_item({"role": "agent", "parts": list(parts)})
    assert isinstance(item, Message)
    return item.parts


def test_base64_of_base64_is_what_the_official_server_of_0_3_http_json_sends() -> None:
    [twice] = parts_of({"file": {"fileWithBytes": "SlZCRVJpMD0=", "mimeType": "application/pdf", "name": "r.pdf"}})
    [once] = parts_of({"file": {"bytes": "JVBERi0="}})
    assert isinstance(twice, BlobPart)
    assert isinstance(once, BlobPart)
    assert twice.data == once.data == b"%PDF-"
    [kept] = parts_of({"raw": "SlZCRVJpMD0="})
    assert isinstance(kept, BlobPart)
    assert kept.data == b"JVBERi0="


def test_whole_doubles_are_integers_again_and_real_ones_stay() -> None:
    [part] = parts_of({"data": {"a": 1.0, "b": [2.5, -3.0], "c": 1e300, "d": True}})
    assert repr(part.value) == "{'a': 1, 'b': [2.5, -3], 'c': 1e+300, 'd': True}"


def test_a_number_beyond_doubles_is_left_out() -> None:
    item = read_item(decode(b'{"role":"agent","parts":[{"data":{"x":1e999}},{"text":"y"}]}'))
    assert isinstance(item, Message)
    assert item.parts == (TextPart(text="y"),)
    assert "beyond a double" in item.left_out[0]


# conversations


def artifact(text: str, *, id: str = "a", append: bool = False) -> Json:
    return {"taskId": "t", "artifact": {"artifactId": id, "parts": [{"text": text}]}, "append": append}


def test_a_snapshot_takes_the_place_of_pieces_and_later_pieces_add_to_it() -> None:
    talk = Conversation()
    talk.take(read_item(artifact("lost")))
    whole = {"id": "t", "status": {"state": "working"}, "artifacts": [{"artifactId": "a", "parts": [{"text": "he"}]}]}
    talk.take(read_item(whole))
    talk.take(read_item(artifact("llo", append=True)))
    talk.take(read_item({"id": "t", "status": {"state": "completed"}}))
    assert talk.settled
    assert result_of(talk, {}).text == "hello"


def test_a_piece_of_an_artifact_whose_beginning_was_missed_begins_it() -> None:
    talk = Conversation()
    talk.take(read_item(artifact("llo", append=True)))
    assert (talk.state, talk.settled) == ("working", False)
    assert result_of(talk, {}).text == "llo"


def test_the_question_that_was_answered_is_not_taken_for_a_new_one() -> None:
    asking: Json = {
        "id": "t",
        "status": {"state": "input-required", "timestamp": "1", "message": {"messageId": "m", "parts": []}},
    }
    first = Conversation()
    first.take(read_item(asking))
    assert first.settled
    second = Conversation(task_id="t", asked_before=first.question_mark)
    second.take(read_item(asking))
    assert not second.settled
    again = {"id": "t", "status": {"state": "input-required", "timestamp": "2"}}
    second.take(read_item(again))
    assert second.settled
    third = Conversation(task_id="t", asked_before=first.question_mark)
    third.take(read_item(asking))
    third.believe()
    assert third.settled


def test_a_schema_that_comes_with_a_question_is_known_in_a_few_places() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    for data in (schema, {"schema": schema}, {"inputSchema": schema}, {"input_schema": schema}):
        talk = Conversation()
        parts = [{"kind": "text", "text": "Where?"}, {"kind": "data", "data": data}]
        talk.take(read_item({"id": "t", "status": {"state": "input-required", "message": {"parts": parts}}}))
        asked = question_of(talk)
        assert (asked.prompt, asked.schema, asked.data) == ("Where?", schema, (data,))


def test_a_place_to_authorize_is_taken_from_data_or_words_and_is_always_http() -> None:
    def url(state: str, *parts: Json) -> str | None:
        talk = Conversation()
        talk.take(read_item({"id": "t", "status": {"state": state, "message": {"parts": list(parts)}}}))
        return question_of(talk).url

    assert url("auth-required", {"text": "See http://a/1, or not"}) == "http://a/1"
    assert url("auth-required", {"text": "x"}, {"data": {"authorizationUrl": "https://a/2"}}) == "https://a/2"
    assert url("auth-required", {"url": "https://a/3"}) == "https://a/3"
    assert url("input-required", {"text": "See http://a/1"}) is None
    assert url("auth-required", {"text": "javascript:alert(1)"}, {"data": {"url": "file:///etc/passwd"}}) is None
