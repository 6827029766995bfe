"""Bytes to messages: what is no message is refused, with the id of the request where it can be told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from anykit.servers.mcp.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    Refused,
    encode,
    read,
)


def refused(data: bytes) -> tuple[int, Any]:
    with pytest.raises(Refused) as caught:
        read(data)
    assert caught.value.answer["error"]["message"]
    encode(caught.value.answer).decode()
    return caught.value.code, caught.value.id


@pytest.mark.parametrize("id", ["1", 1, 0, -1, "é", "", 2**70, "x" * 1024])
def test_b073_an_id_is_kept_in_type_and_value(id: Any) -> None:
    """modelcontextprotocol/python-sdk#961."""
    incoming = read(json.dumps({"jsonrpc": "2.0", "id": id, "method": "ping"}).encode())
    assert (incoming.kind, incoming.id, type(incoming.id)) == ("request", id, type(id))


@pytest.mark.parametrize("id", [None, True, 1.5, [], {}, "x" * 1025])
def test_b073_an_id_that_is_none_is_an_invalid_request_and_no_notification(id: Any) -> None:
    """modelcontextprotocol/python-sdk#961."""
    assert refused(json.dumps({"jsonrpc": "2.0", "id": id, "method": "ping"}).encode()) == (INVALID_REQUEST, None)


@pytest.mark.parametrize(
    ("data", "code", "id"),
    [
        (b"\xff\xfe garbage", PARSE_ERROR, None),
        (b"", PARSE_ERROR, None),
        (b"hello", PARSE_ERROR, None),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"', PARSE_ERROR, None),
        (b"null", INVALID_REQUEST, None),
        (b"42", INVALID_REQUEST, None),
        (b"[]", INVALID_REQUEST, None),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', INVALID_REQUEST, None),
        (b'{"id": 1, "method": "ping"}', INVALID_REQUEST, 1),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}', INVALID_REQUEST, 1),
        (b'{"jsonrpc": "2.0", "id": 1}', INVALID_REQUEST, 1),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 7}', INVALID_REQUEST, 1),
        (b'{"jsonrpc": "2.0", "id": 1, "method": ""}', INVALID_REQUEST, 1),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}', INVALID_PARAMS, 1),
        (b'{"jsonrpc": "2.0", "id": "a", "method": "x", "params": {"v": NaN}}', PARSE_ERROR, "a"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"v": -Infinity}}', PARSE_ERROR, 1),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"v": 1e400}}', PARSE_ERROR, 1),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"v": 1' + b"0" * 400 + b".5}}", PARSE_ERROR, 1),
    ],
)
def test_what_is_no_message_is_refused(data: bytes, code: int, id: Any) -> None:
    assert refused(data) == (code, id)


@pytest.mark.parametrize("where", ['"v": "\\ud83d"', '"\\udc00": 1', '"v": ["a", {"b": "x\\ud83dy"}]'])
def test_b071_half_a_character_is_refused_with_the_requests_id(where: str) -> None:
    """MemPalace/mempalace#503."""
    data = f'{{"jsonrpc": "2.0", "id": 9, "method": "x", "params": {{{where}}}}}'.encode()
    assert refused(data) == (INVALID_PARAMS, 9)


def test_b071_a_whole_pair_is_a_character() -> None:
    """MemPalace/mempalace#503."""
    incoming = read(b'{"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"v": "\\ud83d\\ude00"}}')
    assert incoming.params == {"v": "\N{GRINNING FACE}"}


def nested(levels: int, id: str = "1", *, tail: bool = False) -> bytes:
    """A request whose params nest that deep in all, the message counted."""
    inner = b'{"a":' * (levels - 1) + b"1" + b"}" * (levels - 1)
    if tail:
        return b'{"method":"x","params":' + inner + b',"jsonrpc":"2.0","id":' + id.encode() + b"}"
    return b'{"jsonrpc":"2.0","id":' + id.encode() + b',"method":"x","params":' + inner + b"}"


def test_what_nests_deeper_than_the_limit_is_refused() -> None:
    assert read(nested(128)).id == 1
    assert refused(nested(129)) == (INVALID_PARAMS, 1)


@pytest.mark.parametrize("levels", [300, 3_000, 200_000])
@pytest.mark.parametrize("tail", [False, True])
def test_however_deep_it_nests_its_sender_gets_an_answer(levels: int, tail: bool) -> None:
    code, id = refused(nested(levels, '"deep"', tail=tail))
    assert code in (INVALID_PARAMS, PARSE_ERROR)
    assert id == "deep"


def test_an_id_inside_the_params_is_not_taken_for_the_requests() -> None:
    data = b'{"jsonrpc":"2.0","method":"x","params":{"id":7,"v":' + b"[" * 5_000 + b"]" * 5_000 + b"}}"
    assert refused(data)[1] is None


def test_b070_integers_of_any_size_are_exact() -> None:
    """cline/cline#9589."""
    data = b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"v":[9007199254740993,123456789012345678901234567890,-0.0,1.0]}}'
    incoming = read(data)
    assert incoming.params is not None
    big, bigger, zero, one = incoming.params["v"]
    assert (big, bigger) == (9007199254740993, 123456789012345678901234567890)
    assert (str(zero), type(one)) == ("-0.0", float)
    assert encode(incoming.params) == b'{"v":[9007199254740993,123456789012345678901234567890,-0.0,1.0]}'


def test_an_integer_that_python_cannot_convert_is_refused_with_its_id() -> None:
    data = b'{"jsonrpc":"2.0","id":14,"method":"x","params":{"v":' + b"1" * 5_000 + b"}}"
    assert refused(data) == (PARSE_ERROR, 14)


def test_b068_line_ends_of_some_readers_pass_and_are_escaped_on_the_way_out() -> None:
    """anthropics/claude-agent-sdk-typescript#137."""
    text = "a\u2028b\u2029c\u0085d\x0be\x0cf line1\nline2\r\nline3 \u5730\u56fe"
    raw = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"t": text}}, ensure_ascii=False)
    incoming = read(raw.encode())
    assert incoming.params == {"t": text}
    line = encode(incoming.message)
    assert len(line.decode().splitlines()) == 1
    assert "\u5730\u56fe" in line.decode()
    assert json.loads(line)["params"] == {"t": text}


def test_a_mark_of_the_byte_order_is_no_fault() -> None:
    assert refused(b'\xef\xbb\xbf{"jsonrpc": "2.0"}')[0] == INVALID_REQUEST


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "\ud83d", object()])
def test_an_answer_that_cannot_be_sent_becomes_an_error_with_its_id(bad: Any) -> None:
    sent = json.loads(encode({"jsonrpc": "2.0", "id": "x", "result": {"v": bad}}))
    assert (sent["id"], sent["error"]["code"]) == ("x", INTERNAL_ERROR)


def test_a_response_and_a_notification_are_told_from_requests() -> None:
    assert read(b'{"jsonrpc":"2.0","method":"notifications/x"}').kind == "notification"
    assert read(b'{"jsonrpc":"2.0","id":3,"result":{}}').kind == "response"
    assert read(b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}').kind == "response"
