"""The contracts notice what is broken: each clause against a source that breaks it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from anykit.capabilities import (
    CapabilityContext,
    Invocable,
    InvocableRequest,
    InvocableResult,
    Page,
    ResourceContents,
    ResourceDescriptor,
    ResourceProvider,
    TextPart,
)
from anykit.testing import ContractBroken, MemoryProvider, SourceUnderTest, check_source
from anykit.testing import contracts as clauses
from anykit.testing.contracts import Clause

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Sound(MemoryProvider):
    def __init__(self) -> None:
        super().__init__()
        self.add_tool("t", SCHEMA)
        self.add_resource("memo://1", "one")
        self.add_resource("memo://2", "two")
        self.add_resource("memo://3", "three")
        self.add_prompt("p", "Say {word}")


class TwiceTheName(Sound):
    def invocables(self) -> Sequence[Invocable]:
        return [*super().invocables(), *super().invocables()]


class NoObject(Sound):
    def __init__(self) -> None:
        super().__init__()
        self.add_tool("text", {"type": "string"})


class Circle(Sound):
    async def list_resources(self, cursor: str | None = None) -> Page[ResourceDescriptor]:
        return Page([], "again")


class AnswersAnything(Sound):
    async def read_resource(self, id: str, context: CapabilityContext) -> ResourceContents:
        return ResourceContents(id=id, parts=(TextPart(text=""),))


class RaisesKeyError(Sound):
    async def read_resource(self, id: str, context: CapabilityContext) -> ResourceContents:
        raise KeyError(id)


class ReadsAnother(Sound):
    def resources(self) -> Sequence[ResourceProvider]:
        return (self,)

    async def read_resource(self, id: str, context: CapabilityContext) -> ResourceContents:
        return await super().read_resource("memo://2", context)


async def not_a_number(request: InvocableRequest, context: CapabilityContext) -> InvocableResult:
    return InvocableResult(structured=float("nan"))


async def meddling(request: InvocableRequest, context: CapabilityContext) -> InvocableResult:
    request.input["n"] = 0
    return InvocableResult(text="")


async def a_string(request: InvocableRequest, context: CapabilityContext) -> Any:
    return "text"


def doing(behaviour: Any) -> Callable[[], MemoryProvider]:
    def make() -> MemoryProvider:
        provider = Sound()
        provider.add_tool("t", SCHEMA, behaviour)
        return provider

    return make


class SlowStart(Sound):
    async def start(self) -> None:
        await asyncio.Event().wait()


class WorksAfterClose(Sound):
    def _alive(self) -> None:
        pass


class NeverReady(Sound):
    def __init__(self) -> None:
        super().__init__()
        self.start_as = "failed"


class Deaf(Sound):
    """Whoever unsubscribes is called all the same."""

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        super().subscribe(callback)
        return lambda: None


@pytest.mark.parametrize(
    ("make", "clause", "text"),
    [
        (TwiceTheName, clauses.its_specs_can_be_used, "offered twice"),
        (NoObject, clauses.its_specs_can_be_used, "describes no object"),
        (Circle, clauses.its_lists_end, "turn in a circle"),
        (AnswersAnything, clauses.unknown_ids_are_invalid_input, "raised nothing, not InvalidInput"),
        (RaisesKeyError, clauses.unknown_ids_are_invalid_input, "raised KeyError, not InvalidInput"),
        (ReadsAnother, clauses.its_resources_and_prompts_are_read_without_a_tool, "read as something else"),
        (doing(meddling), clauses.a_call_leaves_its_arguments_alone, "changed the arguments"),
        (doing(not_a_number), clauses.its_results_can_be_sent, "gave what cannot be sent: nan"),
        (doing(a_string), clauses.its_results_can_be_sent, "gave a str"),
        (SlowStart, clauses.starting_does_not_wait, "start took longer"),
        (WorksAfterClose, clauses.closing_ends_it_and_may_be_repeated, "raised nothing, not Unavailable"),
        (NeverReady, clauses.it_offers_three_shapes, "does not become ready: failed"),
        (Deaf, clauses.unsubscribing_may_be_repeated, "who unsubscribed is still called"),
    ],
)
async def test_a_broken_source_breaks_its_clause(make: Callable[[], MemoryProvider], clause: Clause, text: str) -> None:
    subject = SourceUnderTest(make, {"t": {"n": 1}}, ("memo://1",), {"p": {"word": "hi"}})
    with pytest.raises(ContractBroken, match=text):
        await clause(subject)


async def test_what_is_said_to_be_offered_must_be() -> None:
    with pytest.raises(ContractBroken, match="does not offer u"):
        await clauses.it_offers_three_shapes(SourceUnderTest(Sound, {"u": {}}))


async def test_a_sound_source_keeps_them_all() -> None:
    await check_source(SourceUnderTest(Sound, {"t": {"n": 1}}, ("memo://3",), {"p": {"word": "hi"}}))
