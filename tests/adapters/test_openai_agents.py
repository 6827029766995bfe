"""The OpenAI Agents SDK, in its own environment, with a model of its own interface and tracing off."""

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
    return ran("openai_agent.py")


def test_each_tool_is_a_function_tool_with_its_schema_as_it_is(found: dict[str, Any]) -> None:
    listed = found["listed"]
    assert listed["is"] is True
    assert listed["names"][:3] == ["add", "keywords", "nothing"]
    assert (listed["description"], listed["schema"]) == ("Adds two numbers.", SUM)
    assert listed["selected"] == ["add"]


def test_a_schema_is_sent_as_strict_where_that_can_be_done_without_another_meaning(found: dict[str, Any]) -> None:
    strict = found["listed"]["strict"]
    assert (strict["add"], strict["nothing"], strict["person"]) == (True, True, True)
    assert strict["either"] is False
    assert found["listed"]["person"]["required"] == ["name", "age"]
    assert found["listed"]["chat"]["function"]["parameters"] == SUM


def test_an_agent_calls_a_tool_and_goes_on(found: dict[str, Any]) -> None:
    assert found["sum_up"] == {"told": ["5"], "end": "done"}
    assert found["nothing"] == {"told": ["null"], "end": "done"}
    assert found["person"]["told"] == ['{"name":"Ada","age":null}']


def test_arguments_that_do_not_fit_or_are_no_json_are_told_to_the_model(found: dict[str, Any]) -> None:
    misfit, no_json, no_object, right = found["misfit"]["told"]
    assert "/b: 'b' is required" in misfit
    assert no_json.startswith("the arguments for add are not JSON")
    assert "must be an object" in no_object
    assert right == "5"


def test_a_parameter_may_be_called_what_the_framework_calls_its_own_and_null_is_not_given(
    found: dict[str, Any],
) -> None:
    assert found["keywords"]["told"] == ["c////x"]


def test_pictures_and_files_are_handed_on_as_such_in_their_order(found: dict[str, Any]) -> None:
    (told,) = found["picture"]["told"]
    assert [one["type"] for one in told] == ["input_text", "input_image", "input_file", "input_text"]
    assert told[1]["image_url"].startswith("data:image/png;base64,iVBOR")
    assert told[2] == {
        "type": "input_file",
        "file_data": "data:application/pdf;base64,JVBERi0=",
        "filename": "a.pdf",
    }


def test_a_failure_is_told_and_a_breakdown_shows_no_secret(found: dict[str, Any]) -> None:
    assert found["boom"] == {"told": ["the printer is on fire"], "end": "done"}
    (told,) = found["broken"]["told"]
    assert "failed unexpectedly" in told
    assert "secret" not in told


def test_an_approval_of_the_sdk_stands_before_the_call(found: dict[str, Any]) -> None:
    assert found["approved"] == {"before": [], "told": ["5"], "end": "done"}


def test_a_question_is_told_with_how_it_is_answered(found: dict[str, Any]) -> None:
    (told,) = found["asked"]["told"]
    assert told.startswith("What is the dog called?")
    assert f"bench.answer('{found['asked']['id']}'" in told
    assert (found["asked"]["end"], found["asked"]["then"]) == ("done", "dog=Rex")


def test_tools_hear_the_session_that_is_given(found: dict[str, Any]) -> None:
    assert found["session"]["told"] == ["session=mine"]


def test_cancelling_the_run_cancels_the_tool(found: dict[str, Any]) -> None:
    assert found["cancelled"] == ["CancelledError", ["cancelled"]]


def test_runs_on_other_loops_reach_the_loop_of_the_bench(found: dict[str, Any]) -> None:
    assert found["in_thread"] == ["42"]
    assert found["of_a_script"] == ["2"]


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
