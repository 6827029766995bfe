"""What every source must keep, whoever wrote it. One function a clause; `check_source` runs them all.

    async def test_my_source():
        await check_source(SourceUnderTest(MySource, calls={"add": {"a": 1, "b": 2}}))

A broken clause raises `ContractBroken` and says what was expected.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, TypeVar

from anykit.capabilities import (
    CapabilityContext,
    CapabilityError,
    CapabilityProvider,
    Connected,
    InvalidInput,
    Invocable,
    InvocableRequest,
    InvocableResult,
    JsonObject,
    Page,
    Suspension,
    Unavailable,
)
from anykit.schema import compile_schema
from anykit.tools import lift, result_of

T = TypeVar("T")
Item = TypeVar("Item")

PROMPT_SECONDS = 1.0
"""What `start` and `subscribe` may take: they promise not to wait."""
BOUNDED_SECONDS = 15.0
"""What anything else may take."""
NOWHERE = "nowhere://there-is-no-such-thing"
SEVERAL = 8
"""Calls that are made at the same time."""


class ContractBroken(AssertionError):
    """A clause does not hold."""


@dataclass(frozen=True)
class SourceUnderTest:
    """A source and what may be done with it without harm."""

    make: Callable[[], CapabilityProvider]
    """A new one for each clause."""
    calls: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """By name of an invocable: arguments with which it succeeds."""
    resources: Sequence[str] = ()
    """Ids that can be read."""
    prompts: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """By name: arguments that fill it in."""


Clause: TypeAlias = Callable[[SourceUnderTest], Awaitable[None]]


async def check_source(source: SourceUnderTest) -> None:
    """Run every clause, each on a new source."""
    for clause in SOURCE_CLAUSES:
        await clause(source)


@asynccontextmanager
async def ready(source: SourceUnderTest) -> AsyncGenerator[CapabilityProvider]:
    """A source that is started, and closed behind the block. Raises `ContractBroken` where it does not become ready."""
    provider = source.make()
    if not isinstance(provider, Connected):
        yield provider
        return
    try:
        await _settled(provider)
        if provider.state.status != "ready":
            raise ContractBroken(f"it does not become ready: {provider.state.status}, {provider.state.reason}")
        yield provider
    finally:
        await _within("close", provider.close())


# the clauses


async def it_offers_three_shapes(source: SourceUnderTest) -> None:
    """It is a provider; asking what it offers needs no wait and gives the same each time."""
    async with ready(source) as provider:
        if not isinstance(provider, CapabilityProvider):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ContractBroken("it has not the three methods of a CapabilityProvider")
        names = [one.spec.name for one in provider.invocables()]
        if names != [one.spec.name for one in provider.invocables()]:
            raise ContractBroken("asked twice it offers different invocables")
        missing = source.calls.keys() - names
        if missing:
            raise ContractBroken(f"it does not offer {', '.join(sorted(missing))}")


async def its_specs_can_be_used(source: SourceUnderTest) -> None:
    """Names are there and unique; each input schema compiles and describes an object; a spec survives JSON."""
    async with ready(source) as provider:
        seen: set[str] = set()
        for one in provider.invocables():
            spec = one.spec
            if not spec.name or spec.name in seen:
                raise ContractBroken(f"the name {spec.name!r} is empty or offered twice")
            seen.add(spec.name)
            if spec.input_schema.get("type") != "object":
                raise ContractBroken(f"{spec.name}: its input schema describes no object")
            compile_schema(spec.input_schema)
            if spec.output_schema is not None:
                compile_schema(spec.output_schema)
            if type(spec).model_validate_json(spec.model_dump_json()) != spec:
                raise ContractBroken(f"{spec.name}: its spec is another one after a way through JSON")


async def its_lists_end(source: SourceUnderTest) -> None:
    """Pages follow each other to an end; no id comes twice; what is said to be readable is listed or of a family."""
    async with ready(source) as provider:
        for resources in provider.resources():
            _unique([one.id for one in await _pages(resources.list_resources)])
        for prompts in provider.prompts():
            _unique([one.id for one in await _pages(prompts.list_prompts)])


async def unknown_ids_are_invalid_input(source: SourceUnderTest) -> None:
    """Reading or filling in what is not there raises `InvalidInput`."""
    async with ready(source) as provider:
        for resources in provider.resources():
            await _raises(InvalidInput, f"reading {NOWHERE}", resources.read_resource(NOWHERE, CapabilityContext()))
        for prompts in provider.prompts():
            await _raises(InvalidInput, f"filling in {NOWHERE}", prompts.get_prompt(NOWHERE, {}, CapabilityContext()))


async def its_resources_and_prompts_are_read_without_a_tool(source: SourceUnderTest) -> None:
    """What is said to be readable is read, and has at least one part."""
    async with ready(source) as provider:
        for id in source.resources:
            contents = [
                await _within(f"reading {id}", one.read_resource(id, CapabilityContext()))
                for one in provider.resources()
            ]
            if not contents or contents[0].id != id or not contents[0].parts:
                raise ContractBroken(f"{id} is read as something else")
        for name, arguments in source.prompts.items():
            for prompts in provider.prompts():
                filled = await _within(name, prompts.get_prompt(name, arguments, CapabilityContext()))
                if not filled.messages:
                    raise ContractBroken(f"prompt {name} has no message")


async def its_results_can_be_sent(source: SourceUnderTest) -> None:
    """A call gives an `InvocableResult` (or a `Suspension`) that is finite JSON."""
    async with ready(source) as provider:
        for one, arguments in _samples(source, provider):
            result = await _within(one.spec.name, one.invoke(_request(arguments), CapabilityContext()))
            if not isinstance(result, InvocableResult | Suspension):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ContractBroken(f"{one.spec.name} gave a {type(result).__name__}")
            try:
                if isinstance(result, Suspension):
                    json.dumps(result.to_json(), allow_nan=False)
                else:
                    json.dumps(result_of(result).model_dump(mode="json"), allow_nan=False)
            except ValueError as error:
                raise ContractBroken(f"{one.spec.name} gave what cannot be sent: {error}") from None


async def a_call_leaves_its_arguments_alone(source: SourceUnderTest) -> None:
    """Who calls keeps what it passed."""
    async with ready(source) as provider:
        for one, arguments in _samples(source, provider):
            before = json.dumps(arguments)
            await _within(one.spec.name, one.invoke(_request(arguments), CapabilityContext()))
            if json.dumps(arguments) != before:
                raise ContractBroken(f"{one.spec.name} changed the arguments that it was called with")


async def wrong_arguments_are_told_not_raised(source: SourceUnderTest) -> None:
    """As a tool, a call with arguments of the wrong kind ends as an error that says so, and raises nothing."""
    async with ready(source) as provider:
        for one in provider.invocables():
            wrong = _wrong(one)
            if wrong is None:
                continue
            result = await _within(one.spec.name, lift(one).execute(wrong))
            if not result.is_error or not result.output:
                raise ContractBroken(f"{one.spec.name} took arguments that its schema refuses")


async def calls_run_beside_each_other(source: SourceUnderTest) -> None:
    """Several calls at a time end each with its own result."""
    async with ready(source) as provider:
        for one, arguments in _samples(source, provider):
            calls = [one.invoke(_request(arguments, str(number)), CapabilityContext()) for number in range(SEVERAL)]
            await _within(f"{SEVERAL} calls of {one.spec.name}", asyncio.gather(*calls))


async def a_cancelled_call_costs_only_itself(source: SourceUnderTest) -> None:
    """After a caller went away the next one is served."""
    async with ready(source) as provider:
        for one, arguments in _samples(source, provider):
            gone = asyncio.ensure_future(_invoked(one, arguments))
            await asyncio.sleep(0)
            gone.cancel()
            await _within("a cancelled call", asyncio.gather(gone, return_exceptions=True))
            await _within(f"{one.spec.name} after a cancelled call", _invoked(one, arguments))


async def starting_does_not_wait(source: SourceUnderTest) -> None:
    """`start` returns at once and may be called twice; the verdict comes through `subscribe`."""
    provider = source.make()
    if not isinstance(provider, Connected):
        return
    try:
        async with asyncio.timeout(PROMPT_SECONDS):
            await provider.start()
            await provider.start()
    except TimeoutError:
        raise ContractBroken(f"start took longer than {PROMPT_SECONDS:g} s") from None
    finally:
        await _within("close", provider.close())


async def closing_ends_it_and_may_be_repeated(source: SourceUnderTest) -> None:
    """`close` is bounded, may be called twice, and before `start`; afterwards calls raise `Unavailable`."""
    never_started = source.make()
    if not isinstance(never_started, Connected):
        return
    await _within("close before start", never_started.close())
    async with ready(source) as provider:
        samples = _samples(source, provider)
        if not isinstance(provider, Connected):
            raise ContractBroken("one time it is Connected, one time it is not")
        await _within("close", provider.close())
        await _within("close again", provider.close())
        if provider.state.status != "closed":
            return  # it has no connection that could be lost
        for one, arguments in samples:
            await _raises(Unavailable, f"{one.spec.name} after close", _invoked(one, arguments))


async def unsubscribing_may_be_repeated(source: SourceUnderTest) -> None:
    """Who unsubscribed hears nothing more; doing it twice is allowed."""
    provider = source.make()
    if not isinstance(provider, Connected):
        return
    heard: list[str] = []
    unsubscribe = provider.subscribe(lambda: heard.append(provider.state.status))
    unsubscribe()
    unsubscribe()
    await _settled(provider)
    await _within("close", provider.close())
    if heard:
        raise ContractBroken("who unsubscribed is still called")


SOURCE_CLAUSES: tuple[Clause, ...] = (
    it_offers_three_shapes,
    its_specs_can_be_used,
    its_lists_end,
    unknown_ids_are_invalid_input,
    its_resources_and_prompts_are_read_without_a_tool,
    its_results_can_be_sent,
    a_call_leaves_its_arguments_alone,
    wrong_arguments_are_told_not_raised,
    calls_run_beside_each_other,
    a_cancelled_call_costs_only_itself,
    starting_does_not_wait,
    closing_ends_it_and_may_be_repeated,
    unsubscribing_may_be_repeated,
)
"""Every clause, in order."""


# how they look


class _List(Protocol[Item]):
    async def __call__(self, cursor: str | None = None) -> Page[Item]: ...


async def _pages(list_page: _List[Item]) -> list[Item]:
    items: list[Item] = []
    cursors: set[str] = set()
    cursor: str | None = None
    while True:
        page = await _within("a page", list_page(cursor))
        items += page.items
        cursor = page.next_cursor
        if cursor is None:
            return items
        if cursor in cursors:
            raise ContractBroken(f"its pages turn in a circle: cursor {cursor[:64]!r} comes again")
        cursors.add(cursor)


def _unique(ids: Sequence[str]) -> None:
    seen: set[str] = set()
    for id in ids:
        if not id or id in seen:
            raise ContractBroken(f"the id {id!r} is empty or listed twice")
        seen.add(id)


def _samples(source: SourceUnderTest, provider: CapabilityProvider) -> list[tuple[Invocable, JsonObject]]:
    return [(one, source.calls[one.spec.name]) for one in provider.invocables() if one.spec.name in source.calls]


def _request(arguments: JsonObject, call_id: str = "contract") -> InvocableRequest:
    return InvocableRequest(input=arguments, call_id=call_id)


async def _invoked(one: Invocable, arguments: JsonObject) -> InvocableResult | Suspension:
    return await one.invoke(_request(arguments), CapabilityContext())


def _wrong(one: Invocable) -> JsonObject | None:
    """Arguments that the schema refuses: something missing, of the wrong kind, or too much. None where it takes any."""
    schema = one.spec.input_schema
    refuses = compile_schema(schema)
    properties: JsonObject = schema.get("properties", {})
    tries: list[JsonObject] = [{}, {"there is no such argument": 1}]
    tries += [dict.fromkeys(properties, kind) for kind in ({"an": "object"}, "text", None)]
    return next((arguments for arguments in tries if not refuses.is_valid(arguments)), None)


async def _settled(provider: Connected) -> None:
    changed = asyncio.Event()
    unsubscribe = provider.subscribe(changed.set)
    try:
        await provider.start()
        async with asyncio.timeout(BOUNDED_SECONDS):
            while provider.state.status == "connecting":
                changed.clear()
                if provider.state.status == "connecting":
                    await changed.wait()
    except TimeoutError:
        raise ContractBroken("it has no verdict, or does not tell its subscribers") from None
    finally:
        unsubscribe()


async def _within(what: str, work: Awaitable[T]) -> T:
    limit = asyncio.timeout(BOUNDED_SECONDS)
    try:
        async with limit:
            return await work
    except TimeoutError:
        if limit.expired():
            raise ContractBroken(f"{what} took longer than {BOUNDED_SECONDS:g} s") from None
        raise


async def _raises(kind: type[CapabilityError], what: str, work: Awaitable[object]) -> None:
    try:
        await _within(what, work)
    except kind:
        return
    except ContractBroken:
        raise
    except Exception as error:
        raise ContractBroken(f"{what} raised {type(error).__name__}, not {kind.__name__}") from error
    raise ContractBroken(f"{what} raised nothing, not {kind.__name__}")
