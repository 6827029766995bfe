"""Suspended calls over A2E: asked, answered, and through a second host."""

from __future__ import annotations

import pytest

from anykit import CapabilityContext, Workbench, tool
from anykit.a2e import A2EClient, A2ERequestError, A2ESource
from anykit.capabilities import Question
from in_process import in_process

pytestmark = pytest.mark.anyio

NIGHTS = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@tool
async def book(city: str, context: CapabilityContext) -> str:
    """Books a room."""
    answer = await context.ask(Question("input", "How many nights?", schema=NIGHTS))
    return f"{city} for {answer.data['n']}" if answer.ok else "not booked"


async def test_a_suspended_call_says_its_question_and_goes_on_with_the_answer() -> None:
    async with in_process(book) as host, A2EClient(host.connect) as client:
        asked = await client.tools.call("book", {"city": "Oslo"})
        assert (asked.success, asked.error_code) == (False, "suspended")
        assert asked.data["prompt"] == "How many nights?"
        with pytest.raises(A2ERequestError) as refused:
            await client.tools.answer(asked.data["id"], data={"n": "three"})
        assert refused.value.code == "schema_violation"
        done = await client.tools.answer(asked.data["id"], data={"n": 3})
        assert (done.success, done.data) == (True, "Oslo for 3")
        with pytest.raises(A2ERequestError):
            await client.tools.answer(asked.data["id"], data={"n": 3})


async def test_a_refusal_reaches_the_tool() -> None:
    async with in_process(book) as host, A2EClient(host.connect) as client:
        asked = await client.tools.call("book", {"city": "Oslo"})
        done = await client.tools.answer(asked.data["id"], ok=False)
        assert done.data == "not booked"


async def test_a_question_passes_through_a_second_host() -> None:
    async with in_process(book) as far, Workbench(A2ESource(far.connect), settle=5) as near:
        asked = await near.call("book", {"city": "Rome"})
        assert asked.status == "suspended"
        assert asked.suspension is not None
        assert asked.suspension.schema == NIGHTS
        assert (await near.answer(asked.suspension.id, data={"n": 2})).output == "Rome for 2"
