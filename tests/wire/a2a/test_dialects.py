"""What is written to an agent, in each dialect, and which other dialect is tried after which refusal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from anykit.capabilities import BlobPart, StructuredPart, TextPart
from anykit.wire.a2a import Card, Outgoing, RefusalKind, Refused, Way, other_way, read_card, recalled, ways
from anykit.wire.a2a.cards import Interface

Json = Any
MESSAGE = Outgoing("m1", (TextPart(text="hé"), StructuredPart(value={"n": 1})), "c1", "t1", {"skillId": "s"})


def way_of(version: Any, binding: Any = "JSONRPC", url: str = "http://h/a", **more: Any) -> Way:
    return Way(Interface(url, binding, version), **more)


def body(request: Any) -> Json:
    return json.loads(request.body)


TAGGED = [{"kind": "text", "text": "hé"}, {"kind": "data", "data": {"n": 1}}]
COMMON = {"messageId": "m1", "contextId": "c1", "taskId": "t1", "metadata": {"skillId": "s"}}


@pytest.mark.parametrize(
    ("way", "method", "message", "configuration"),
    [
        (
            way_of("1.0"),
            "SendMessage",
            {"role": "ROLE_USER", "parts": [{"text": "hé"}, {"data": {"n": 1}, "mediaType": "application/json"}]},
            {"returnImmediately": True},
        ),
        (way_of("0.3"), "message/send", {"role": "user", "kind": "message", "parts": TAGGED}, {"blocking": False}),
        (way_of("toolnexus"), "SendMessage", {"role": "user", "parts": TAGGED}, {"blocking": False}),
    ],
)
def test_json_rpc_is_written_as_each_dialect_has_it(way: Way, method: str, message: Json, configuration: Json) -> None:
    request = way.send(MESSAGE, "1")
    assert (request.method, request.url, request.headers["content-type"]) == ("POST", "http://h/a", "application/json")
    assert ("a2a-version" in request.headers) == (way.interface.version == "1.0")
    params = {"message": {**COMMON, **message}, "configuration": configuration}
    assert body(request) == {"jsonrpc": "2.0", "id": "1", "method": method, "params": params}


@pytest.mark.parametrize(
    ("version", "methods"),
    [
        ("1.0", ["SendStreamingMessage", "GetTask", "CancelTask", "SubscribeToTask", "GetExtendedAgentCard"]),
        (
            "0.3",
            [
                "message/stream",
                "tasks/get",
                "tasks/cancel",
                "tasks/resubscribe",
                "agent/getAuthenticatedExtendedCard",
            ],
        ),
    ],
)
def test_the_methods_of_json_rpc_are_the_versions(version: Any, methods: list[str]) -> None:
    way = way_of(version)
    asked = [
        way.send(MESSAGE, "1", stream=True),
        way.get("t1", "1"),
        way.cancel("t1", "1"),
        way.subscribe("t1", "1"),
        way.extended_card("1"),
    ]
    assert [body(request)["method"] for request in asked] == methods
    assert "configuration" not in body(asked[0])["params"]
    assert body(asked[1])["params"] == {"id": "t1"}
    assert "text/event-stream" in asked[0].headers["accept"]


@pytest.mark.parametrize("url", ["http://h/a", "http://h/a/"])
@pytest.mark.parametrize(("version", "prefix"), [("1.0", ""), ("0.3", "/v1")])
def test_http_json_has_its_paths_and_ids_cannot_leave_them(url: str, version: Any, prefix: str) -> None:
    way = way_of(version, "HTTP+JSON", url)
    id = "../x y?z"
    quoted = "..%2Fx%20y%3Fz"
    asked = [
        way.send(MESSAGE, "1"),
        way.send(MESSAGE, "1", stream=True),
        way.get(id, "1"),
        way.cancel(id, "1"),
        way.subscribe(id, "1"),
        way.subscribe(id, "1", http="POST"),
    ]
    assert [(request.method, request.url) for request in asked] == [
        ("POST", f"http://h/a{prefix}/message:send"),
        ("POST", f"http://h/a{prefix}/message:stream"),
        ("GET", f"http://h/a{prefix}/tasks/{quoted}"),
        ("POST", f"http://h/a{prefix}/tasks/{quoted}:cancel"),
        ("GET", f"http://h/a{prefix}/tasks/{quoted}:subscribe"),
        ("POST", f"http://h/a{prefix}/tasks/{quoted}:subscribe"),
    ]
    assert asked[2].body is None


def test_http_json_of_0_3_is_written_as_the_official_server_reads_it_or_as_it_is_specified() -> None:
    official = body(way_of("0.3", "HTTP+JSON").send(MESSAGE, "1"))["message"]
    assert official["role"] == "ROLE_USER"
    assert official["content"] == [{"text": "hé"}, {"data": {"data": {"n": 1}}}]
    specified = body(way_of("0.3", "HTTP+JSON", spelled=True).send(MESSAGE, "1"))["message"]
    assert (specified["role"], specified["kind"], specified["parts"]) == ("user", "message", TAGGED)


def test_a_tenant_stands_where_the_binding_has_it_and_a_query_stays() -> None:
    rpc = Way(Interface("http://h/a?k=v", "JSONRPC", "1.0", "acme"))
    assert (rpc.get("t", "1").url, body(rpc.get("t", "1"))["params"]["tenant"]) == ("http://h/a?k=v", "acme")
    rest = Way(Interface("http://h/a?k=v", "HTTP+JSON", "1.0", "acme"))
    assert rest.get("t", "1").url == "http://h/a/acme/tasks/t?k=v"


def test_values_that_0_3_cannot_hold_are_wrapped_and_files_are_not_sent() -> None:
    message = Outgoing("m", (StructuredPart(value=[1]),))
    assert body(way_of("0.3").send(message, "1"))["params"]["message"]["parts"][0]["data"] == {"value": [1]}
    assert body(way_of("1.0").send(message, "1"))["params"]["message"]["parts"][0]["data"] == [1]
    with pytest.raises(TypeError, match="blob"):
        way_of("1.0").send(Outgoing("m", (BlobPart(data=b"x"),)), "1")


def test_half_a_surrogate_pair_can_be_sent() -> None:
    assert b"?" in (way_of("1.0").send(Outgoing("m", (TextPart(text="\ud800"),)), "1").body or b"")


# falling back


def card(*interfaces: tuple[str, str, str]) -> Card:
    listed = [{"url": url, "protocolBinding": binding, "protocolVersion": v} for url, binding, v in interfaces]
    return read_card({"name": "A", "supportedInterfaces": listed}, "http://h/card.json")


@pytest.mark.parametrize(
    ("way", "kind", "other"),
    [
        (way_of("1.0"), "method_not_found", "0.3 JSONRPC"),
        (way_of("1.0"), "version_not_supported", "0.3 JSONRPC"),
        (way_of("1.0"), "no_route", "1.0 HTTP+JSON"),
        (way_of("0.3"), "method_not_found", "1.0 JSONRPC"),
        (way_of("toolnexus"), "version_not_supported", "1.0 JSONRPC"),
        (way_of("toolnexus"), "method_not_found", "0.3 JSONRPC"),
        (way_of("toolnexus"), "invalid_params", "1.0 JSONRPC"),
        (way_of("1.0", "HTTP+JSON"), "no_route", "0.3 HTTP+JSON"),
        (way_of("1.0", "HTTP+JSON"), "version_not_supported", "0.3 HTTP+JSON"),
        (way_of("0.3", "HTTP+JSON"), "no_route", "1.0 HTTP+JSON"),
        (way_of("0.3", "HTTP+JSON"), "invalid_params", "0.3 HTTP+JSON"),
        (way_of("1.0"), "invalid_params", None),
        (way_of("1.0"), "internal", None),
        (way_of("1.0"), "unauthorized", None),
        (way_of("0.3"), "task_not_found", None),
    ],
)
def test_another_dialect_is_tried_only_where_nothing_can_have_been_done(
    way: Way, kind: RefusalKind, other: str | None
) -> None:
    listed = Card("A", "", "", (way.interface,), ())
    found = other_way(way, Refused(kind, "", code=-1), listed)
    assert (None if found is None else found.dialect) == other
    assert found != way


def test_what_the_card_lists_is_tried_before_what_can_be_guessed() -> None:
    listed = card(
        ("http://h/a", "JSONRPC", "1.0"), ("http://h/old", "JSONRPC", "0.3"), ("http://h/r", "HTTP+JSON", "1.0")
    )
    first = ways(listed)[0]
    version = other_way(first, Refused("version_not_supported", ""), listed)
    assert version is not None
    assert version.interface.url == "http://h/old"
    gone = other_way(first, Refused("no_route", "", status=404), listed)
    assert gone is not None
    assert gone.interface.url == "http://h/old"


def test_a_way_that_worked_can_be_written_down_and_known_again() -> None:
    known = card(("http://h/a", "JSONRPC", "1.0"))
    for way in (way_of("0.3"), way_of("1.0", tagged=True), way_of("0.3", "HTTP+JSON", spelled=True)):
        assert recalled(json.loads(json.dumps(way.to_json())), known) == way
    assert recalled(way_of("0.3", url="http://elsewhere/").to_json(), known) is None
    for odd in (None, {}, "x", {"url": "http://h/a", "version": "9", "binding": "JSONRPC"}):
        assert recalled(odd, known) is None


def test_a_bare_task_in_answer_to_a_tagged_message_is_the_contracts_dialect() -> None:
    way = way_of("1.0", tagged=True)
    assert way.settled_on({"id": "t", "status": {}}).dialect == "toolnexus"
    assert way.settled_on({"task": {"id": "t"}}) == way
    assert way_of("1.0").settled_on({"id": "t", "status": {}}) == way_of("1.0")
