"""LangChain and LangGraph, in their own environment, with their own fake model in a loop of an agent."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from adapters.running import ran

pytestmark = pytest.mark.timeout(400)  # the first run makes the environment; later ones take seconds

SUM = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


@pytest.fixture
def found() -> dict[str, Any]:
    return ran("langchain_agent.py")


def test_each_tool_is_a_structured_tool_with_its_schema_as_it_is(found: dict[str, Any]) -> None:
    listed = found["listed"]
    assert listed["all"] is True
    assert listed["names"][:3] == ["add", "keywords", "nothing"]
    assert (listed["description"], listed["args"]) == ("Adds two numbers.", SUM["properties"])
    assert (listed["args_schema"], listed["format"]) == (SUM, "content_and_artifact")
    assert listed["none"] == {}
    assert listed["metadata"] == {"source": "python", "toolkit": None, "annotations": {"read_only": True}}
    assert listed["selected"] == ["add"]


def test_a_model_is_given_the_same_schema(found: dict[str, Any]) -> None:
    function = {"name": "add", "description": "Adds two numbers.", "parameters": SUM}
    assert found["listed"]["bound"] == {"type": "function", "function": function}


def test_an_agent_calls_a_tool_and_goes_on(found: dict[str, Any]) -> None:
    told = found["sum_up"]
    assert (told["content"], told["status"], told["end"]) == ("5", "success", "done")
    assert (told["artifact"]["structured"], told["artifact"]["status"]) == (5, "completed")


def test_the_result_stands_in_the_state_of_the_graph_as_it_came(found: dict[str, Any]) -> None:
    assert [found[name]["kept"] for name in ("sum_up", "person", "picture", "boom")] == [True] * 4


def test_arguments_that_do_not_fit_are_told_to_the_model(found: dict[str, Any]) -> None:
    told = found["misfit"]
    assert told["status"] == "error"
    assert "/b: 'b' is required" in told["content"]
    assert "/a: must be an integer" in told["content"]
    assert told["end"] == "done"


def test_a_parameter_may_be_called_what_the_framework_calls_its_own(found: dict[str, Any]) -> None:
    assert found["keywords"]["content"] == "c/r/k//"


def test_nothing_is_null_and_an_object_is_json_beside_its_value(found: dict[str, Any]) -> None:
    assert found["nothing"]["content"] == "null"
    assert found["person"]["content"] == '{"name":"Ada","age":null}'
    assert found["person"]["artifact"]["structured"] == {"name": "Ada", "age": None}


def test_pictures_and_files_stay_content_in_their_order(found: dict[str, Any]) -> None:
    blocks = found["picture"]["content"]
    assert [one["type"] for one in blocks] == ["text", "image", "file", "text"]
    assert (blocks[0]["text"], blocks[3]["text"]) == ("before", "after")
    assert base64.b64decode(blocks[1]["base64"]).startswith(b"\x89PNG")
    assert (blocks[1]["mime_type"], blocks[2]["mime_type"]) == ("image/png", "application/pdf")
    assert blocks[2]["extras"] == {"filename": "a.pdf"}
    assert [one["kind"] for one in found["picture"]["artifact"]["content"]] == ["text", "image", "blob", "text"]


def test_a_failure_is_an_error_message_and_a_breakdown_shows_no_secret(found: dict[str, Any]) -> None:
    assert (found["boom"]["content"], found["boom"]["status"]) == ("the printer is on fire", "error")
    assert found["broken"]["status"] == "error"
    assert "secret" not in found["broken"]["content"]
    assert found["broken"]["end"] == "done"


def test_a_failure_is_raised_where_it_is_not_to_be_handled(found: dict[str, Any]) -> None:
    assert found["raised"] == "the printer is on fire"


def test_a_question_is_told_with_how_it_is_answered(found: dict[str, Any]) -> None:
    told = found["answered"]
    assert (told["status"], told["end"]) == ("error", "done")
    assert told["content"].startswith("What is the dog called?")
    assert f"bench.answer('{told['id']}'" in told["content"]
    assert told["then"] == "dog=Rex"


def test_the_thread_of_the_graph_is_the_session_unless_one_is_given(found: dict[str, Any]) -> None:
    assert found["thread"]["content"] == "session=thread-7"
    assert found["session"]["content"] == "session=mine"


def test_a_synchronous_agent_in_a_thread_calls_on_the_loop_of_the_bench(found: dict[str, Any]) -> None:
    assert found["in_thread"] == ["42"]


def test_a_synchronous_call_that_would_wait_for_itself_is_refused(found: dict[str, Any]) -> None:
    assert "ainvoke" in found["on_the_loop"]


def test_cancelling_the_agent_cancels_the_tool(found: dict[str, Any]) -> None:
    assert found["cancelled"] == ["CancelledError", ["cancelled"]]


def test_the_bench_of_scripts_works_with_both_kinds_of_call(found: dict[str, Any]) -> None:
    assert found["of_a_script"] == ["2", "4"]


def test_b008_a_schema_with_alternatives_at_its_root_is_handed_on_without_and_still_held_against_calls(
    found: dict[str, Any],
) -> None:
    """langchain-ai/langchain#39271: providers answer 400 for such a root; one parameter has a name that they refuse."""
    either = found["either"]
    assert {"anyOf", "oneOf", "allOf"} & set(either["root"]) == set()
    assert either["alias"].isidentifier()
    right, wrong = either["told"]
    assert right == '{"per cent": 5, "zip": "1"}'
    assert "city" in wrong
