"""pydantic-ai, in its own environment, with its own test models."""

from __future__ import annotations

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
    return ran("pydantic_agent.py")


def returned(content: object, outcome: str = "success") -> dict[str, Any]:
    return {"part": "ToolReturnPart", "content": content, "outcome": outcome}


def test_the_toolset_is_one_of_pydantic_ai_and_defines_each_tool(found: dict[str, Any]) -> None:
    listed = found["listed"]
    assert (listed["is"], listed["id"]) == (True, "mine")
    assert listed["names"][:3] == ["add", "keywords", "nothing"]
    assert (listed["description"], listed["schema"]) == ("Adds two numbers.", SUM)
    assert listed["metadata"] == {
        "source": "python",
        "toolkit": None,
        "tags": ["sums"],
        "annotations": {"read_only": True},
    }


def test_only_tools_that_are_said_to_need_an_approval_are_unapproved(found: dict[str, Any]) -> None:
    assert found["listed"]["kinds"] == {"pay": "unapproved"}


def test_its_test_model_calls_the_tools_by_their_schemas(found: dict[str, Any]) -> None:
    assert found["test_model"] == '{"add":0,"person":{"name":"a","age":null}}'


def test_the_toolset_follows_the_catalogue_while_the_agent_runs(found: dict[str, Any]) -> None:
    assert found["live"]["seen"] == [["add"], ["add", "late"], ["add", "late"], ["add"]]
    assert found["live"]["told"] == [returned(2), returned("late")]


def test_arguments_that_do_not_fit_let_the_model_try_again(found: dict[str, Any]) -> None:
    first, second = found["misfit"]["told"]
    assert first["outcome"] == "retried" or first["part"] == "RetryPromptPart"
    assert "/b: 'b' is required" in first["content"]
    assert second == returned(5)
    assert "max retries" in found["misfit_twice"]


def test_the_model_is_given_structured_values_and_pictures_in_their_order(found: dict[str, Any]) -> None:
    assert found["sum_up"] == {"told": [returned(5)], "end": "done"}
    assert found["nothing"]["told"] == [returned("null")]
    assert found["person"]["told"] == [returned({"name": "Ada", "age": None})]
    (told,) = found["picture"]["told"]
    assert [one if isinstance(one, str) else one["media_type"] for one in told["content"]] == [
        *("before", "image/png", "application/pdf", "after")
    ]


def test_a_parameter_may_be_called_what_the_framework_calls_its_own(found: dict[str, Any]) -> None:
    assert found["keywords"]["told"] == [returned("c////x")]


def test_a_failure_is_told_as_final_and_a_breakdown_shows_no_secret(found: dict[str, Any]) -> None:
    assert found["boom"] == {"told": [returned("the printer is on fire", "failed")], "end": "done"}
    (told,) = found["broken"]["told"]
    assert told["outcome"] == "failed"
    assert "secret" not in told["content"]


def test_an_approval_that_a_tool_asks_is_pydantic_ais_own_and_the_call_happens_once(found: dict[str, Any]) -> None:
    approved = found["approved"]
    assert approved["asked"] == ["Pay 5?", "approval"]
    assert (approved["told"], approved["end"]) == ([returned("paid 5")], "done")
    assert approved["twice"] is True
    assert approved["left"] == []


def test_a_question_ends_the_run_where_the_agent_can_stop_for_it(found: dict[str, Any]) -> None:
    asked = found["asked_outside"]
    assert (asked["asked"], asked["told"], asked["end"]) == ("What is the dog called?", [returned("dog=Rex")], "done")


def test_elsewhere_a_question_is_told_with_how_it_is_answered(found: dict[str, Any]) -> None:
    asked = found["asked_in_text"]
    (told,) = asked["told"]
    assert told["content"].startswith("What is the dog called?")
    assert f"bench.answer('{asked['id']}'" in told["content"]
    assert (asked["end"], asked["then"]) == ("done", "dog=Rex")


def test_the_conversation_is_the_session_unless_one_is_given(found: dict[str, Any]) -> None:
    assert found["conversation"] == [returned("session=talk-7")]
    assert found["session"]["told"] == [returned("session=mine")]


def test_cancelling_the_run_cancels_the_tool(found: dict[str, Any]) -> None:
    assert found["cancelled"] == ["CancelledError", ["cancelled"]]


def test_runs_in_a_thread_and_in_a_script_reach_the_loop_of_the_bench(found: dict[str, Any]) -> None:
    assert found["in_thread"] == [returned(42)]
    assert found["of_a_script"] == [returned(2)]


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
