"""Questions as forms that MCP clients can show, and their answers back."""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, SecretStr

from anykit.capabilities import Answer, Suspension
from anykit.servers.mcp.questions import Abilities, Request, Unaskable, answer_of, askable, requests_of


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Trip(BaseModel):
    """Flat."""

    city: str = Field(title="City", min_length=1, description="Where to")
    when: str | None = Field(default=None, json_schema_extra={"format": "date"})
    people: int = Field(default=2, ge=1)
    price: float = 9.5
    window: bool = False
    color: Color = Color.RED
    meals: list[Literal["fish", "meat"]] = []


def asked(schema: Any = None, **fields: Any) -> Suspension:
    return Suspension(id="s1", kind=fields.pop("kind", "input"), prompt="Well?", schema=schema, **fields)


def only(suspension: Suspension) -> Request:
    found = requests_of(suspension)
    assert not isinstance(found, Unaskable), found
    [request] = found.values()
    return request


def answered(suspension: Suspension, response: Any) -> Answer | None:
    found = requests_of(suspension)
    assert not isinstance(found, Unaskable)
    responses: dict[str, Any] = dict.fromkeys(found, response)
    return answer_of(suspension, found, responses)


def test_a_flat_object_is_a_form_of_plain_fields() -> None:
    form = only(asked(Trip.model_json_schema())).params["requestedSchema"]
    assert form["required"] == ["city"]
    fields = form["properties"]
    assert fields["city"] == {"type": "string", "title": "City", "description": "Where to", "minLength": 1}
    assert fields["when"] == {"type": "string", "title": "When", "format": "date"}
    assert fields["people"] == {"type": "integer", "title": "People", "minimum": 1, "default": 2}
    assert fields["price"]["default"] == 9.5
    assert fields["window"] == {"type": "boolean", "title": "Window", "default": False}
    assert fields["color"]["enum"] == ["red", "blue"]
    assert fields["color"]["default"] == "red"
    assert fields["meals"]["items"] == {"type": "string", "enum": ["fish", "meat"]}
    assert "$defs" not in form


def test_choices_with_titles_keep_them() -> None:
    titled = [{"const": "a", "title": "First"}, {"const": "b"}]
    schema = {
        "type": "object",
        "properties": {"one": {"oneOf": titled}, "many": {"type": "array", "items": {"anyOf": titled}}},
    }
    fields = only(asked(schema)).params["requestedSchema"]["properties"]
    options = [{"const": "a", "title": "First"}, {"const": "b", "title": "b"}]
    assert fields["one"] == {"type": "string", "oneOf": options}
    assert fields["many"]["items"] == {"anyOf": options}


def test_the_fields_are_the_answer() -> None:
    response = {"action": "accept", "content": {"city": "Rome", "people": 3}}
    assert answered(asked(Trip.model_json_schema()), response) == Answer(True, {"city": "Rome", "people": 3})


@pytest.mark.parametrize("action", ["decline", "cancel", "odd"])
def test_whatever_is_no_consent_is_a_refusal(action: str) -> None:
    assert answered(asked(Trip.model_json_schema()), {"action": action, "content": {}}) == Answer(False)


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        ({"type": "integer", "maximum": 9}, {"type": "integer", "maximum": 9}),
        ({"enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"type": "boolean"}, {"type": "boolean"}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "string"}),
        ({"type": ["number", "null"], "title": "N"}, {"type": "number", "title": "N"}),
        ({"type": "string", "format": "hostname", "pattern": "x"}, {"type": "string"}),
    ],
)
def test_one_value_is_a_form_of_one_field(schema: Any, field: Any) -> None:
    request = only(asked(schema))
    assert request.params["requestedSchema"]["properties"] == {"answer": field}
    assert answered(asked(schema), {"action": "accept", "content": {"answer": 7}}) == Answer(True, 7)


def test_a_question_without_a_schema_takes_a_text() -> None:
    assert only(asked()).params["requestedSchema"]["required"] == ["answer"]
    assert answered(asked(), {"action": "accept", "content": {"answer": "yes"}}) == Answer(True, "yes")


def test_an_approval_has_nothing_to_fill_in() -> None:
    suspension = asked(kind="approval")
    assert only(suspension).params["requestedSchema"] == {"type": "object", "properties": {}}
    assert answered(suspension, {"action": "accept"}) == Answer(True)
    assert answered(suspension, {"action": "decline"}) == Answer(False)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"inner": {"type": "object", "properties": {"a": {"type": "string"}}}}},
        {"type": "array", "items": {"type": "integer"}},
        {"type": "object", "properties": {"n": {"enum": [1, 2]}}},
        {"type": "object", "properties": {"a": True}},
        {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "object", "properties": {"loop": {"$ref": "#/properties/loop"}}},
    ],
)
def test_what_no_form_can_show_is_asked_for_as_json(schema: Any) -> None:
    suspension = asked(schema)
    [(name, field)] = only(suspension).params["requestedSchema"]["properties"].items()
    assert (name, field["type"]) == ("answer", "string")
    assert "JSON" in field["description"]
    content = {"answer": '{"inner": {"a": 1}}'}
    assert answered(suspension, {"action": "accept", "content": content}) == Answer(True, {"inner": {"a": 1}})
    with pytest.raises(ValueError, match="not JSON"):
        answered(suspension, {"action": "accept", "content": {"answer": "{"}})
    with pytest.raises(ValueError, match="missing"):
        answered(suspension, {"action": "accept", "content": {}})


def test_a_form_never_asks_for_a_secret() -> None:
    class Login(BaseModel):
        user: str
        password: SecretStr

    assert isinstance(requests_of(asked(Login.model_json_schema())), Unaskable)
    assert isinstance(requests_of(asked({"type": "string", "writeOnly": True})), Unaskable)
    assert isinstance(requests_of(asked({"type": "object"}, kind="configuration")), Unaskable)


def test_a_url_is_opened_and_not_filled_in() -> None:
    suspension = asked(kind="authorization", url="https://login.example/x")
    request = only(suspension)
    assert request.params == {
        "mode": "url",
        "message": "Well?",
        "url": "https://login.example/x",
        "elicitationId": "s1",
    }
    assert request.need == "url"
    assert answered(suspension, {"action": "accept"}) == Answer(True)


def test_requests_in_the_protocols_words_are_asked_as_they_are() -> None:
    given: dict[str, Any] = {
        "name": {"method": "elicitation/create", "params": {"message": "m", "requestedSchema": {}}},
        "model": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}},
        "where": {"method": "roots/list"},
    }
    suspension = asked(data={"inputRequests": given})
    found = requests_of(suspension)
    assert not isinstance(found, Unaskable)
    assert [(key, one.need) for key, one in found.items()] == [
        ("name", "form"),
        ("model", "sampling"),
        ("where", "roots"),
    ]
    assert list(askable(found, Abilities(sampling=True))) == ["model"]
    responses: dict[str, Any] = {"name": {"action": "decline"}, "model": {"x": 1}, "where": {"roots": []}, "odd": {}}
    answer = answer_of(suspension, found, responses)
    assert answer == Answer(True, {"inputResponses": {key: responses[key] for key in given}})
    assert answer_of(suspension, found, {"name": {}}) is None


@pytest.mark.parametrize(
    "data",
    [
        None,
        "text",
        [],
        {},
        {"inputRequests": {}},
        {"inputRequests": []},
        {"inputRequests": {"a": {"method": "tools/call"}}},
    ],
)
def test_other_data_of_a_question_changes_nothing(data: Any) -> None:
    assert only(asked(data=data)).params["requestedSchema"]["required"] == ["answer"]


@pytest.mark.parametrize(
    ("need", "request_"),
    [
        ("form", Request("elicitation/create", {"mode": "form"})),
        ("form", Request("elicitation/create", {})),
        ("url", Request("elicitation/create", {"mode": "url"})),
        ("sampling", Request("sampling/createMessage", {})),
        ("roots", Request("roots/list", {})),
    ],
)
def test_each_request_names_the_capability_that_it_needs(need: Any, request_: Request) -> None:
    assert request_.need == need
    assert Abilities(**{need: True}).can(request_.need)
    assert not Abilities().can(request_.need)
    assert need in str(request_.capability)
