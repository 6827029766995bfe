"""The workbench without `await`."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from anykit import Toolkit, resource, tool
from anykit.capabilities import CapabilityContext, Question
from anykit.sync import Workbench


@tool
async def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@resource("x://y")
def it() -> str:
    return "y"


class Kit(Toolkit):
    class Config(BaseModel):
        n: int

    @tool
    def get(self) -> int:
        return self.config.n


def test_the_verbs_work_without_await() -> None:
    with Workbench(add, it, Kit) as bench:
        assert bench.call("add", {"a": 2, "b": 3}).output == "5"
        assert bench.execute("add", '{"a": 2, "b": 3}').output == "5"
        assert [one.name for one in bench.tools()] == ["add"]
        assert bench.configure("kit", {"n": 4}) == ("ok", "Toolkit configured successfully")
        assert bench.call("get").structured == 4
        assert [one.id for one in bench.resources()] == ["x://y"]
        assert bench.read("x://y").id == "x://y"
        assert len(bench.context(resources=["x://y"])) == 1
        bench.register(lambda_tool)
        assert bench.call("later").output == "1"


@tool(name="later")
def lambda_tool() -> int:
    return 1


def test_outside_of_its_block_it_says_so() -> None:
    bench = Workbench(add)
    with pytest.raises(RuntimeError, match="not open"):
        bench.call("add", {})
    with bench:
        pass
    with pytest.raises(RuntimeError, match="not open"):
        bench.call("add", {})


def test_a_question_is_answered_without_await() -> None:
    @tool
    async def book(seats: int, context: CapabilityContext) -> str:
        answer = await context.ask(Question("approval", f"Book {seats} seats?"))
        return "booked" if answer.ok else "not booked"

    with Workbench(book) as bench:
        asked = bench.call("book", {"seats": 2})
        [waiting] = bench.suspensions()
        assert asked.suspension is not None
        assert waiting.id == asked.suspension.id
        assert bench.answer(waiting.id, ok=False).output == "not booked"
        assert bench.suspensions() == []
