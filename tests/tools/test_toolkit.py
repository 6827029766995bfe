"""Toolkits: what a class says of itself."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from pydantic import BaseModel, Field, SecretStr

from anykit.tools import Toolkit, UnsendableResult, prompt, resource, tool


class Notes(Toolkit):
    """Keeps notes.

    More about it.
    """

    alias = "n"
    category = "io"
    tags = ("notes",)

    class Config(BaseModel):
        folder: str = Field(description="Where they lie")
        key: SecretStr | None = None

    @tool(read_only=True)
    def read(self, name: str) -> str:
        """Read one."""
        return f"{self.config.folder}/{name}"

    @tool
    async def write(self, name: str, text: str) -> None:
        """Write one."""

    @resource("notes://{name}")
    def note(self, name: str) -> str:
        return name

    @prompt
    def summarise(self, name: str) -> str:
        return f"Summarise {name}"


def test_a_toolkit_is_defined_by_its_class() -> None:
    spec = Notes.spec()
    assert (spec.name, spec.alias, spec.description, spec.category, spec.tags) == (
        "notes",
        "n",
        "Keeps notes.",
        "io",
        ("notes",),
    )
    assert list(spec.tools) == ["read", "write"]
    assert list(spec.resources) == ["notes://{name}"]
    assert list(spec.prompts) == ["summarise"]
    assert spec.tools["read"].toolkit == "notes"
    assert spec.tools["read"].kind == "toolkit"


def test_its_schema_is_that_of_its_config() -> None:
    schema = Notes.spec().schema
    assert schema["type"] == "object"
    assert schema["properties"]["folder"] == {"type": "string", "description": "Where they lie"}
    assert schema["required"] == ["folder"]
    assert schema["additionalProperties"] is False
    [secret] = [part for part in schema["properties"]["key"]["anyOf"] if part.get("type") == "string"]
    assert secret == {"type": "string", "format": "password", "writeOnly": True}


def test_a_toolkit_without_config_takes_an_empty_object() -> None:
    class Plain(Toolkit):
        @tool
        def ping(self) -> str:
            return "pong"

    assert Plain.spec().schema == {"type": "object", "properties": {}, "additionalProperties": False}


def test_a_subclass_inherits_and_overrides_tools() -> None:
    class More(Notes):
        name = "more"

        @tool
        def read(self, name: str) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
            """Read better."""
            return name

    assert More.spec().tools["read"].description == "Read better."
    assert list(More.spec().tools) == ["read", "write"]
    assert Notes.spec().tools["read"].description == "Read one."


def test_two_tools_of_one_name_are_refused_at_definition_time() -> None:
    with pytest.raises(TypeError, match="two tools"):

        class Twice(Toolkit):  # pyright: ignore[reportUnusedClass]
            @tool(name="a")
            def one(self) -> None: ...

            @tool(name="a")
            def two(self) -> None: ...


@pytest.mark.parametrize("method", ["setup", "close", "emit"])
def test_a_tool_cannot_stand_in_the_way_of_a_toolkits_life(method: str) -> None:
    def work(self: object) -> None: ...

    work.__qualname__ = "Kit.work"
    with pytest.raises(TypeError, match=f"cannot be the method '{method}'"):
        type("Kit", (Toolkit,), {method: tool(name=method)(work)})


def test_only_a_tool_of_its_own_can_be_switched_off() -> None:
    with pytest.raises(ValueError, match="has no tool 'nope'; it has read, write"):
        Notes().disable("nope", "because")


def test_a_subclass_may_have_its_own_init() -> None:
    class Own(Toolkit):
        def __init__(self) -> None:
            self.state = 1

        @tool
        def get(self) -> int:
            return self.state

    own = Own()
    own.enter()
    own.leave()
    own.disable("get", "off")
    assert own.disabled == {"get": "off"}
    assert own.get() == 1


def test_a_static_method_is_a_tool_and_a_class_method_is_refused_at_once() -> None:
    class Sums(Toolkit):
        @staticmethod
        @tool
        def add(a: int, b: int) -> int:
            return a + b

    assert list(Sums.spec().tools) == ["add"]
    with pytest.raises(TypeError, match="'add' is a class method"):

        class Inside(Toolkit):  # pyright: ignore[reportUnusedClass]
            @classmethod
            @tool
            def add(cls, a: int) -> int:
                return a

    with pytest.raises(TypeError, match="add is a class method"):

        class Outside(Toolkit):  # pyright: ignore[reportUnusedClass]
            @tool
            @classmethod
            def add(cls, a: int) -> int:
                return a


def test_a_config_that_is_no_model_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="toolkit odd: Config must be a pydantic model"):
        type("Odd", (Toolkit,), {"Config": int})


@pytest.mark.parametrize("data", [{"at": float("nan")}, {"half": "\ud83d"}, 5, None, [1]])
def test_what_no_wire_carries_is_not_told(data: Any) -> None:
    heard: list[object] = []
    notes = Notes()
    notes.attach(lambda kind, told: heard.append(told))
    with pytest.raises(UnsendableResult):
        notes.emit("status", data)
    notes.emit("status", {"at": dt.date(2026, 1, 2)})
    assert heard == [{"at": "2026-01-02"}]
