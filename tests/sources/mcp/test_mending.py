"""Answers that servers get wrong, rebuilt so that one wrong part costs only itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_types import methods

from anykit.sources.mcp.mending import LEFT_OUT, NAMES, STRUCTURED, mend, reports_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        "name",
        "title",
        "description",
        "inputSchema",
        "outputSchema",
        "annotations",
        "_meta",
        "uri",
        "uriTemplate",
        "mimeType",
        "size",
        "arguments",
        "required",
        "type",
        "text",
        "data",
        "resource",
        "blob",
        "role",
        "content",
        "properties",
        "audience",
        "priority",
    ]
)
PART = st.dictionaries(
    KEYS,
    JSON | st.dictionaries(KEYS, JSON, max_size=4) | st.sampled_from(["text", "image", "resource", "object"]),
    max_size=6,
)
METHODS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
    "tools/call": "content",
    "resources/read": "contents",
    "prompts/get": "messages",
    "completion/complete": "completion",
}


@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@settings(max_examples=40)
@given(parts=st.lists(PART | JSON, max_size=4), rest=st.dictionaries(st.text(max_size=8), JSON, max_size=3))
def test_whatever_a_server_answers_the_sdk_takes_what_is_left(method: str, version: str, parts: Any, rest: Any) -> None:
    answer: dict[str, Any] = {**rest, METHODS[method]: parts}
    for result in (answer, rest, {METHODS[method]: parts[0] if parts else None}):
        methods.validate_server_result(method, version, mend(method, dict(result), modern=version == "2026-07-28"))


def test_a_good_answer_stays_as_it_was() -> None:
    tool = {
        "name": "t",
        "title": "T",
        "description": "d",
        "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True, "title": "x"},
        "_meta": {"k": 1},
    }
    mended = mend("tools/list", {"tools": [tool], "nextCursor": "c", "_meta": {"m": 1}}, modern=False)
    assert mended == {"tools": [tool], "nextCursor": "c", "_meta": {"m": 1, NAMES: ["t"]}}
    assert reports_of(mended["_meta"]) == []


def test_no_peer_can_say_what_we_left_out() -> None:
    forged: dict[str, Any] = {"content": [], "_meta": {LEFT_OUT: [["x", "y"]], STRUCTURED: 1, "own": 2}}
    assert mend("tools/call", forged, modern=False)["_meta"] == {"own": 2}


def test_what_asks_for_input_is_left_alone() -> None:
    asked = {"resultType": "input_required", "inputRequests": {"k": {"method": "roots/list"}}, "requestState": "s"}
    assert mend("tools/call", asked, modern=True) is asked


def test_a_message_with_several_parts_is_several_messages() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    mended = mend("prompts/get", {"messages": [{"role": "system", "content": parts}]}, modern=False)
    assert [(one["role"], one["content"]["text"]) for one in mended["messages"]] == [("user", "a"), ("user", "b")]
    assert "unknown role" in reports_of(mended["_meta"])[0][1]


def test_what_a_modern_answer_must_have_is_added() -> None:
    mended = mend("tools/list", {"tools": [], "ttlMs": -5, "cacheScope": "everybody"}, modern=True)
    assert (mended["ttlMs"], mended["cacheScope"], mended["resultType"]) == (0, "private", "complete")


def test_an_answer_to_anything_else_passes() -> None:
    answer = {"x": 1}
    assert mend("nobody/knows", answer, modern=True) is answer
