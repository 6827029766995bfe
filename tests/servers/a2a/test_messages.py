"""What a message asks for, without a wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from anykit import tool
from anykit.capabilities import Answer, Suspension
from anykit.servers.a2a.answers import answer_of
from anykit.servers.a2a.messages import SPELLED_OUT, Call, Incoming, Needed, is_text, text_parameter, wanted
from anykit.tools import Tool


@tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@tool
def say(text: str) -> str:
    """Says."""
    return text


@tool
def greet(name: str, loud: bool = False) -> str:
    """Greets."""
    return name


@tool
def pick(color: str | None = None) -> str:
    """Picks."""
    return str(color)


@tool
def now() -> str:
    """The time."""
    return "now"


@tool
def use(tool: str, arguments: dict[str, Any]) -> str:
    """Has parameters that are called as a call's members are."""
    return tool


class Offers:
    """What a sender may call."""

    def __init__(self, *tools: Tool) -> None:
        self._tools = tools
        self.listed = 0

    def tools(self) -> Sequence[Tool]:
        self.listed += 1
        return self._tools

    def get(self, name: str) -> Tool | None:
        return next((one for one in self._tools if one.name == name), None)


ARGUMENTS = {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("incoming", "call"),
    [
        (Incoming(data=({"tool": "add", "arguments": ARGUMENTS},)), Call("add", ARGUMENTS)),
        (Incoming(data=({"tool": "now"},)), Call("now", {})),
        (Incoming(data=({"tool": "hidden", "arguments": {}},)), Call("hidden", {})),
        (Incoming(data=(ARGUMENTS,), skill="add"), Call("add", ARGUMENTS)),
        (Incoming(data=({"tool": "add", "arguments": ARGUMENTS},), skill="add"), Call("add", ARGUMENTS)),
        (Incoming(data=({"tool": "add", "arguments": ARGUMENTS},), text="please"), Call("add", ARGUMENTS)),
        (Incoming(data=([1],), skill="add"), Call("add", [1])),
        (Incoming(text="hi", skill="say"), Call("say", {"text": "hi"})),
        (Incoming(text="Ann", skill="greet"), Call("greet", {"name": "Ann"})),
        (Incoming(text="red", skill="pick"), Call("pick", {"color": "red"})),
        (Incoming(text="what time is it", skill="now"), Call("now", {})),
        (Incoming(text='{"a": 1, "b": 2}', skill="add"), Call("add", ARGUMENTS)),
        (Incoming(text='{"tool": "add", "arguments": {"a": 1, "b": 2}}'), Call("add", ARGUMENTS)),
        (Incoming(text="x", skill="hidden"), Call("hidden", {})),
        (Incoming(skill="now"), Call("now", {})),
    ],
)
def test_a_message_that_says_enough_is_a_call(incoming: Incoming, call: Call) -> None:
    assert wanted(incoming, Offers(add, say, greet, pick, now)) == call


def test_a_skill_whose_own_parameter_is_called_tool_gets_its_arguments() -> None:
    arguments = {"tool": "use", "arguments": {"x": 1}}
    assert wanted(Incoming(data=(arguments,), skill="use"), Offers(use, add)) == Call("use", arguments)


@pytest.mark.parametrize(
    ("tools", "call"),
    [
        ((say, add), Call("say", {"text": "hi"})),
        ((greet, add), Call("greet", {"name": "hi"})),
        ((say, greet, add), Call("say", {"text": "hi"})),
        ((now,), Call("now", {})),
    ],
    ids=["the only text", "the only required text", "the one that takes nothing else", "the only skill"],
)
def test_a_text_alone_goes_to_the_only_skill_it_can_mean(tools: tuple[Tool, ...], call: Call) -> None:
    assert wanted(Incoming(text="hi"), Offers(*tools)) == call


def test_the_only_skill_gets_data_that_names_none() -> None:
    assert wanted(Incoming(data=(ARGUMENTS,)), Offers(add)) == Call("add", ARGUMENTS)
    assert wanted(Incoming(text='{"a": 1, "b": 2}'), Offers(add)) == Call("add", ARGUMENTS)


def test_what_an_earlier_message_settled_on_is_the_skill() -> None:
    assert wanted(Incoming(data=(ARGUMENTS,)), Offers(add, say), chosen="add") == Call("add", ARGUMENTS)
    assert wanted(Incoming(text="hi", skill="say"), Offers(add, say), chosen="add") == Call("say", {"text": "hi"})


@pytest.mark.parametrize(
    "incoming",
    [
        Incoming(text="hi"),
        Incoming(),
        Incoming(files=1),
        Incoming(data=(ARGUMENTS,)),
        Incoming(data=({"tool": 5},)),
        Incoming(data=({"tool": "add", "args": {}},)),
        Incoming(data=(1, 2)),
    ],
)
def test_what_could_mean_several_is_asked_with_a_schema(incoming: Incoming) -> None:
    needed = wanted(incoming, Offers(add, say, pick))
    assert isinstance(needed, Needed)
    assert needed.tool == ""
    assert needed.schema["properties"]["tool"] == {"enum": ["add", "say", "pick"]}
    assert "- add(a: integer, b: integer): Adds." in needed.prompt


def test_a_skill_that_needs_more_than_a_text_is_asked_with_its_own_schema() -> None:
    needed = wanted(Incoming(text="one and two", skill="add"), Offers(add, say))
    assert isinstance(needed, Needed)
    assert (needed.tool, needed.schema) == ("add", add.input_schema)


def test_with_no_skill_there_is_nothing_to_name() -> None:
    needed = wanted(Incoming(text="hi"), Offers())
    assert isinstance(needed, Needed)
    assert "no skill" in needed.prompt


def test_a_question_over_many_skills_stays_small() -> None:
    many = [_copy(add, f"add_{number}") for number in range(500)]
    needed = wanted(Incoming(text="hi"), Offers(*many))
    assert isinstance(needed, Needed)
    assert "oneOf" not in needed.schema
    assert f"and {500 - SPELLED_OUT} more" in needed.prompt
    assert len(needed.prompt) < 4000


def _copy(one: Tool, name: str) -> Tool:
    from anykit.tools import lift

    return lift(one, name=name)


def test_a_call_that_is_spelled_out_lists_nothing() -> None:
    offers = Offers(add, say)
    wanted(Incoming(data=({"tool": "add", "arguments": ARGUMENTS},)), offers)
    assert offers.listed == 0


@pytest.mark.parametrize(
    ("schema", "parameter"),
    [
        ({"properties": {"t": {"type": "string"}}}, "t"),
        ({"properties": {"t": {"type": ["string", "null"]}}}, "t"),
        ({"properties": {"t": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}, "t"),
        ({"properties": {"t": {"$ref": "#/$defs/T"}}, "$defs": {"T": {"type": "string"}}}, "t"),
        ({"properties": {"t": {"enum": ["a"], "type": "string"}}}, None),
        ({"properties": {"t": {"type": "integer"}}}, None),
        ({"properties": {"t": {"type": "string"}, "u": {"type": "string"}}}, None),
        ({"properties": {"t": {"type": "string"}, "u": {"type": "string"}}, "required": ["u"]}, "u"),
        ({"properties": {"t": {"$ref": "#/properties/t"}}}, None),
        ({}, None),
    ],
)
def test_the_parameter_that_a_text_is_for(schema: dict[str, Any], parameter: str | None) -> None:
    assert text_parameter(schema) == parameter


def test_a_schema_that_is_none_takes_no_text() -> None:
    assert not is_text(True, {})
    assert not is_text({"anyOf": True}, {})


# answers

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def _asked(kind: Any = "input", schema: dict[str, Any] | None = None) -> Suspension:
    return Suspension("id", kind, "?", schema=schema)


@pytest.mark.parametrize(
    ("incoming", "question", "answer"),
    [
        (Incoming(text="Rex"), _asked(), Answer(True, "Rex")),
        (Incoming(text="Rex"), _asked(schema={"type": "string"}), Answer(True, "Rex")),
        (Incoming(text="Rex"), _asked(schema=NAME), Answer(True, {"name": "Rex"})),
        (Incoming(text='{"name": "Rex"}'), _asked(schema=NAME), Answer(True, {"name": "Rex"})),
        (Incoming(text="7"), _asked(schema={"type": "integer"}), Answer(True, 7)),
        (Incoming(text="yes"), _asked(schema={"type": "boolean"}), Answer(True, True)),
        (
            Incoming(text="7"),
            _asked(schema={"type": "object", "properties": {"n": {"type": "integer"}}}),
            Answer(True, {"n": 7}),
        ),
        (Incoming(data=({"name": "Rex"},)), _asked(schema=NAME), Answer(True, {"name": "Rex"})),
        (Incoming(data=({"ok": False},)), _asked(schema=NAME), Answer(False)),
        (Incoming(data=({"ok": True, "data": 1},)), _asked(), Answer(True, 1)),
        (
            Incoming(data=({"ok": True},)),
            _asked(schema={"type": "object", "properties": {"ok": {"type": "boolean"}}}),
            Answer(True, {"ok": True}),
        ),
        (Incoming(text="Rex", metadata={"ok": False}), _asked(), Answer(False, "Rex")),
        (Incoming(text="Yes!"), _asked("approval"), Answer(True)),
        (Incoming(text="no"), _asked("approval"), Answer(False)),
        (Incoming(data=(False,)), _asked("approval"), Answer(False)),
        (Incoming(text="I have"), _asked("authorization"), Answer(True, "I have")),
        (Incoming(text="cancel"), _asked("authorization"), Answer(False, "cancel")),
        (Incoming(), _asked("authorization"), Answer(True)),
    ],
)
def test_what_a_message_answers(incoming: Incoming, question: Suspension, answer: Answer) -> None:
    assert answer_of(incoming, question) == answer


@pytest.mark.parametrize(
    ("incoming", "question"),
    [
        (Incoming(), _asked()),
        (Incoming(text="perhaps"), _asked("approval")),
        (Incoming(data=(1, 2)), _asked()),
    ],
)
def test_what_is_no_answer_says_why(incoming: Incoming, question: Suspension) -> None:
    assert isinstance(answer_of(incoming, question), str)
