"""One line to a message and back, and every way in which a line can be bad."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anykit.wire.a2e import (
    MESSAGE_TYPES,
    DecodeError,
    EncodeError,
    Ping,
    ToolCallRequest,
    ToolCallResponse,
    ToolkitListRequest,
    ToolResult,
    decode,
    encode,
)
from anykit.wire.a2e.messages.env import EnvPlanRequest, EnvStatePush
from anykit.wire.a2e.messages.mcp import MCPSamplingRequest


def refusal(line: bytes) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        decode(line)
    return caught.value


def call(arguments: str) -> bytes:
    return b'{"type":"tool/call/req","id":"c1","arguments":' + arguments.encode() + b"}"


def nested(levels: int) -> str:
    return '{"a":' + "[" * levels + "]" * levels + "}"


def arguments_of(line: bytes) -> dict[str, Any]:
    message = decode(line)
    assert isinstance(message, ToolCallRequest)
    return message.arguments


def answer(data: Any) -> ToolCallResponse:
    return ToolCallResponse(
        id="i", ts=1.0, data=ToolResult(success=True, tool_name="t", data=data, duration_ms=1), created_at=1.0
    )


# -- what is legal passes exactly ----------------------------------------------------------------------------------------


def test_a_message_keeps_its_key_order_nulls_and_escapes() -> None:
    line = encode(ToolkitListRequest(id="tk1", ts=1716123456.789, filter_kind="é"))
    assert line == (
        b'{"type":"toolkit/list/req","id":"tk1","version":"1.0","ts":1716123456.789,'
        b'"filter_kind":"\\u00e9","filter_tags":[]}'
    )
    assert b'"exit_code":null,"error":null' in encode(answer(None))


def test_b070_numbers_pass_exactly() -> None:
    """cline/cline#9589, modelcontextprotocol/go-sdk#1236: integers beyond 2^53 keep every digit."""
    text = '{"id":9007199254740993,"big":123456789012345678901234567890,"f":1.0,"neg":-0.0,"e":' + str(10**4000) + "}"
    arguments = arguments_of(call(text))
    assert arguments == {"id": 2**53 + 1, "big": 123456789012345678901234567890, "f": 1.0, "neg": 0.0, "e": 10**4000}
    assert type(arguments["f"]) is float
    assert math.copysign(1, arguments["neg"]) == -1
    written = json.loads(encode(answer(arguments)))["data"]["data"]
    assert written == arguments
    assert math.copysign(1, written["neg"]) == -1


def test_b071_a_surrogate_pair_is_one_character() -> None:
    """MemPalace/mempalace#503."""
    assert arguments_of(call('{"t":"\\ud83d\\ude00"}')) == {"t": "😀"}
    assert b'"\\ud83d\\ude00"' in encode(answer("😀"))


def test_raw_line_separators_and_escaped_nul_pass() -> None:
    assert arguments_of(call('{"t":"a\u2028b\u2029","n":"\\u0000"}')) == {"t": "a\u2028b\u2029", "n": "\0"}


def test_the_last_of_equal_keys_counts() -> None:
    assert arguments_of(call('{"a":1,"a":2}')) == {"a": 2}
    assert refusal(b'{"type":"ping","type":"nope","id":"d1"}').code == "invalid_message"


def test_nesting_up_to_the_limit_passes() -> None:
    assert arguments_of(call(nested(126)))  # the message, arguments, 126 arrays: 128
    assert refusal(call(nested(127))).code == "parse_error"


def test_a_bare_type_is_a_message() -> None:
    message = decode(b'{"type":"ping"}')
    assert isinstance(message, Ping)
    assert len(message.id) == 32
    assert int(message.id, 16) >= 0
    assert message.ts > 1e9


def test_a_time_may_be_a_numeric_string() -> None:
    message = decode(b'{"type":"ping","ts":"12.5"}')
    assert isinstance(message, Ping)
    assert message.ts == 12.5


def test_a_byte_order_mark_is_read_over() -> None:
    assert isinstance(decode(b'\xef\xbb\xbf{"type":"ping"}'), Ping)


@pytest.mark.parametrize("version", ['"version":"1.0"', '"version":"1.7"', '"version":"1"', '"a2e":"1.0"', '"x":1'])
def test_major_version_1_is_accepted_under_either_key(version: str) -> None:
    assert isinstance(decode(b'{"type":"ping",' + version.encode() + b"}"), Ping)


def test_names_from_other_documents_are_accepted_and_never_sent() -> None:
    push = decode(b'{"type":"env/state_push","episode_id":"e","step_id":1,"event_type":"status"}')
    assert isinstance(push, EnvStatePush)
    assert push.type == "env/state/push"
    assert b"env/state_push" not in encode(push)
    assert isinstance(decode(b'{"type":"mcp/sampling/req"}'), MCPSamplingRequest)
    assert isinstance(decode(b'{"type":"env/plan/req"}'), EnvPlanRequest)


# -- what is not legal has its code, its id and no values ------------------------------------------------------------------

BAD = {
    "empty": (b"", "parse_error", ""),
    "words": (b"hello", "parse_error", ""),
    "cut short": (b'{"type": "ping", ', "parse_error", ""),
    "two messages": (b'{"type":"ping"}{"type":"ping"}', "parse_error", ""),
    "an array": (b"[1,2]", "parse_error", ""),
    "an array of messages": (b'[{"type":"ping","id":"a"}]', "parse_error", ""),
    "a number": (b"42", "parse_error", ""),
    "infinity": (b"1e400", "parse_error", ""),
    "null": (b"null", "parse_error", ""),
    "a string": (b'"ping"', "parse_error", ""),
    "NaN": (b'{"type":"ping","id":"d2","ts":NaN}', "parse_error", "d2"),
    "Infinity": (call('{"x":[-Infinity]}'), "parse_error", "c1"),
    "1e400": (call('{"x":1e400}'), "parse_error", "c1"),
    "-1e400": (call('{"x":{"y":[-1e400]}}'), "parse_error", "c1"),
    "309 digits with a fraction": (call('{"x":1' + "0" * 309 + ".0}"), "parse_error", "c1"),
    "an integer that Python will not convert": (call('{"x":' + "9" * 5000 + "}"), "parse_error", "c1"),
    "half a pair": (call('{"x":"\\ud83d"}'), "parse_error", "c1"),
    "half a pair in a key": (call('{"\\ude00":1}'), "parse_error", "c1"),
    "half a pair in an ignored field": (b'{"type":"ping","id":"p","x":"\\ud83d"}', "parse_error", "p"),
    "half a pair in the id": (b'{"type":"ping","id":"\\ud83d"}', "parse_error", ""),
    "not UTF-8": (b'{"type":"ping","id":"p","x":"\xff\xfe"}', "parse_error", "p"),
    "not UTF-8 at all": (b"\xff\xfe{}", "parse_error", ""),
    "a surrogate in UTF-8": (b'{"type":"ping","id":"p","x":"\xed\xa0\xbd"}', "parse_error", "p"),
    "a raw control character": (b'{"type":"ping","id":"p","x":"\x01"}', "parse_error", ""),
    "129 levels": (call(nested(127)), "parse_error", "c1"),
    "250 levels": (call("[" * 250 + "]" * 250), "parse_error", "c1"),
    "100,000 levels": (call('{"a":' * 100_000 + "1" + "}" * 100_000), "parse_error", "c1"),
    "100,000 open levels": (b'{"type":"ping","id":"p","x":' + b"[" * 100_000, "parse_error", "p"),
    "no type": (b'{"id":"x1"}', "invalid_message", "x1"),
    "a list as type": (b'{"type":["ping"],"id":"x2"}', "invalid_message", "x2"),
    "null as type": (b'{"type":null,"id":"x2b"}', "invalid_message", "x2b"),
    "a type of nobody's": (b'{"type":"foo/bar/req","id":"t"}', "invalid_message", "t"),
    "a type of no toolkit": (b'{"type":"toolkit/delete/req","id":"t"}', "invalid_message", "t"),
    "an unknown type with a number as id": (b'{"type":"nope","id":7}', "invalid_message", ""),
    "another case": (b'{"type":"PING","id":"t"}', "invalid_message", "t"),
    "a number as id": (b'{"type":"ping","id":7}', "schema_violation", ""),
    "null as id": (b'{"type":"ping","id":null}', "schema_violation", ""),
    "a word as time": (b'{"type":"ping","id":"x4","ts":"abc"}', "schema_violation", "x4"),
    "true as time": (b'{"type":"ping","id":"x4","ts":true}', "schema_violation", "x4"),
    "a number as version": (b'{"type":"ping","id":"x8","version":1.0}', "schema_violation", "x8"),
    "null as version": (b'{"type":"ping","id":"x8","version":null}', "schema_violation", "x8"),
    "true as an integer": (b'{"type":"shutdown","id":"s","timeout":true}', "schema_violation", "s"),
    "a half as an integer": (b'{"type":"shutdown","id":"s","timeout":1.5}', "schema_violation", "s"),
    "version 2": (b'{"type":"ping","id":"x5","version":"2.0"}', "version_mismatch", "x5"),
    "version 10": (b'{"type":"ping","id":"x5","version":"10.0"}', "version_mismatch", "x5"),
    "an empty version": (b'{"type":"ping","id":"x5","version":""}', "version_mismatch", "x5"),
    "a2e 9.9": (b'{"a2e":"9.9","type":"ping","id":"x7"}', "version_mismatch", "x7"),
    "version 2 of an unknown type": (b'{"type":"nope","id":"x9","version":"2.0"}', "version_mismatch", "x9"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_has_its_code_and_its_id(name: str) -> None:
    line, code, req_id = BAD[name]
    error = refusal(line)
    assert (error.code, error.req_id) == (code, req_id)
    assert error.message
    assert len(error.message) < 1000
    error.message.encode()  # it can be sent
    json.dumps(error.detail, allow_nan=False).encode()


@pytest.mark.parametrize(("literal", "value"), [("1.0", 1), ('"30"', 30), (str(2**70), 2**70)])
def test_one_point_zero_is_an_integer(literal: str, value: int) -> None:
    written = json.loads(encode(decode(b'{"type":"shutdown","timeout":' + literal.encode() + b"}")))
    assert written["timeout"] == value
    assert type(written["timeout"]) is int


def test_a_schema_violation_names_every_field_and_no_value() -> None:
    error = refusal(
        b'{"type":"tool/call/req","id":"x","tool_name":{"s3cret":1},"arguments":"s3cret","timeout":"s3cret"}'
    )
    assert error.detail["field"] == "tool_name"
    assert [found["path"] for found in error.detail["errors"]] == ["/tool_name", "/arguments", "/timeout"]
    assert all(found["message"] for found in error.detail["errors"])
    assert "s3cret" not in json.dumps([error.message, error.detail, str(error), repr(error)])


def test_a_missing_field_is_named() -> None:
    error = refusal(b'{"type":"tool/call/req","id":"x","tool_name":"echo"}')
    assert error.detail == {"field": "arguments", "errors": [{"path": "/arguments", "message": "Field required"}]}


def test_a_fault_deep_inside_is_named_by_its_pointer() -> None:
    error = refusal(b'{"type":"toolkit/list/resp","id":"x","toolkits":[{"name":"a","tools":[]},{"name":"b"}]}')
    assert error.detail["errors"] == [{"path": "/toolkits/1/tools", "message": "Field required"}]


def test_what_is_wrong_with_a_number_is_named_by_its_pointer() -> None:
    assert "'/arguments/a~1b/0'" in refusal(call('{"a/b":[NaN]}')).message


def test_of_a_million_bad_items_one_is_told() -> None:
    line = json.dumps({"type": "tool/list/req", "filter_tags": [1] * 300_000}).encode()
    assert refusal(line).detail["errors"] == [{"path": "/filter_tags/0", "message": "Input should be a valid string"}]


def test_a_bad_line_of_very_many_values_is_answered_by_its_head() -> None:
    error = refusal(call('{"a":[' + "[]," * 60_000 + "NaN]}"))
    assert (error.code, error.req_id) == ("parse_error", "c1")
    assert refusal(call("[" * 100_000)).message == "nested deeper than 128 levels"


def test_the_number_of_errors_told_is_bounded() -> None:
    many = {name: None for name in MESSAGE_TYPES["mcp/sample/req"].model.model_fields if name != "type"}
    assert len(refusal(json.dumps({"type": "mcp/sample/req", **many}).encode()).detail["errors"]) == 13
    nested: Any = [{"name": "n", "config": {}, "status": 7}]
    assert refusal(json.dumps({"type": "SUBAGENT_LIST_RESP", "subagents": nested}).encode()).detail["errors"]


# -- what cannot be sent is said, not sent ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (math.nan, "/data/data"),
        ({"a": [1, math.inf]}, "/data/data/a/1"),
        ({"a/b": -math.inf}, "/data/data/a~1b"),
        ("\ud83d", "/data/data"),
        ({"x": ["ok", "caf\udcff"]}, "/data/data/x/1"),
        ({"x": {"\udcff": 1}}, "/data/data/x"),
    ],
)
def test_b071_a_result_that_json_cannot_hold_is_refused_with_its_path(data: Any, path: str) -> None:
    """MemPalace/mempalace#503: and the writer lives."""
    with pytest.raises(EncodeError) as caught:
        encode(answer(data))
    assert caught.value.path == path
    str(caught.value).encode()


def test_words_that_look_like_numbers_are_words() -> None:
    data = {"NaN": "Infinity", "x": ["-Infinity", "\ufffd\ufffd\ufffd"]}
    assert json.loads(encode(answer(data)))["data"]["data"] == data


def test_a_result_that_is_too_deep_or_a_circle_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(127):
        deep = [deep]
    with pytest.raises(EncodeError, match="nested deeper than 128"):
        encode(answer(deep))
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(EncodeError):
        encode(answer(circle))
    with pytest.raises(EncodeError):
        encode(answer(object()))


def test_many_values_side_by_side_are_not_deep() -> None:
    data = [[{"a": [index]}] for index in range(500)]
    assert json.loads(encode(answer(data)))["data"]["data"] == data


def test_a_field_can_be_left_out() -> None:
    line = encode(ToolCallRequest(arguments={}), exclude={"timeout"})
    assert "timeout" not in json.loads(line)


# -- fuzz --------------------------------------------------------------------------------------------------------------------

text = st.text(alphabet='aZ0é\u2028\0\x7f"\\/\n😀\ufffd', max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_a_decode_error(line: bytes) -> None:
    try:
        decode(line)
    except DecodeError as error:
        error.message.encode()


@given(
    st.sampled_from(
        ["ping", "tool/call/req", "toolkit/configure/req", "handshake/req", "tool/call/resp", "error", "x"]
    ),
    st.dictionaries(
        st.sampled_from(["id", "version", "ts", "arguments", "config", "data", "code", "agent_caps", "a2e", "timeout"]),
        json_values,
    ),
    st.integers(0, 300),
)
def test_no_object_raises_anything_but_a_decode_error(name: str, fields: dict[str, Any], cut: int) -> None:
    line = json.dumps({"type": name, **fields}).encode()
    for text in (line, line[:cut], line[cut:]):
        try:
            message = decode(text)
        except DecodeError as error:
            error.req_id.encode()
        else:
            assert encode(decode(encode(message))) == encode(message)


@given(json_values)
def test_what_is_sent_is_what_arrives(value: Any) -> None:
    line = encode(answer(value))
    assert line.isascii()
    assert b"\n" not in line
    message = decode(line)
    assert isinstance(message, ToolCallResponse)
    assert message.data.data == value
