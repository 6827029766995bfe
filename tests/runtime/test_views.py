"""Views: what is outside is unknown to whoever has one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anykit.capabilities import (
    CapabilityContext,
    InvalidInput,
    Page,
    PromptContents,
    PromptDescriptor,
    ResourceContents,
    ResourceDescriptor,
    ResourceTemplate,
    TextPart,
)
from anykit.runtime import CatalogChanged, Change, Patterns, Source, ToolEntry, UnknownToolkit, View
from anykit.testing import MemoryProvider
from anykit.tools import Toolkit, tool
from runtime_parts import Bench, Offers, functions, toolkit

pytestmark = pytest.mark.anyio


@tool(tags=["billing"])
async def crm_bill(customer: str) -> str:
    """Bills."""
    return f"billed {customer}"


@tool
async def crm_drop(customer: str) -> str:
    """Drops."""
    return f"dropped {customer}"


@tool
async def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


class Kit(Toolkit):
    """A kit."""

    @tool
    async def poke(self) -> str:
        """Pokes."""
        return "poked"


def bench_with(*views: View, sources: Sequence[Source] = ()) -> Bench:
    bench = Bench(functions(crm_bill, crm_drop, add, name="shop"), toolkit(Kit, name="kits"), *sources)
    bench.catalog.arrange(views=views)
    return bench


def names(bench: Bench, view: str | None) -> list[str]:
    return [one.name for one in bench.session("s", view=view).tools()]


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (View("v"), ["crm_bill", "crm_drop", "add"]),
        (View("v", include=("crm_*",)), ["crm_bill", "crm_drop"]),
        (View("v", include=("crm_*",), exclude=("*_drop",)), ["crm_bill"]),
        (View("v", include=("tag:billing", "add")), ["crm_bill", "add"]),
        (View("v", tags=("billing",)), ["crm_bill"]),
        (View("v", include=("shop/add",)), ["add"]),
        (View("v", include=("source:sh?p",), exclude=("tag:bill*",)), ["crm_drop", "add"]),
        (View("v", include=("toolkit:kit",)), []),
        (View("v", include=("nothing",)), []),
    ],
)
async def test_patterns_say_what_is_in_a_view(view: View, expected: list[str]) -> None:
    assert names(bench_with(view), "v") == expected


async def test_a_tool_outside_is_unknown_and_not_suggested_and_the_inside_works() -> None:
    session = bench_with(View("v", include=("crm_bill",))).session("s", view="v")
    assert (await session.call("crm_bill", {"customer": "x"})).output == "billed x"
    refused = await session.call("crm_drop", {"customer": "x"})
    assert refused.is_error
    assert refused.output == "unknown tool 'crm_drop'"
    assert session.get("crm_drop") is None
    assert session.get("crm_bill") is not None


async def test_a_toolkit_outside_cannot_be_seen_nor_configured_and_its_events_are_not_heard() -> None:
    bench = bench_with(View("shop", include=("source:shop",)), View("kit", include=("toolkit:kit",)))
    session = bench.session("s", view="shop")
    heard: list[Change] = []
    session.subscribe(heard.append)
    assert session.toolkits() == []
    with pytest.raises(UnknownToolkit):
        await session.configure("kit", {})
    await bench.operator().configure("kit", {})
    assert heard == []
    inside = bench.session("s", view="kit")
    assert [one.name for one in inside.toolkits()] == ["kit"]
    assert (await inside.call("poke")).output == "poked"


async def test_through_a_view_that_is_gone_nothing_is_seen() -> None:
    bench = bench_with(View("v"))
    session = bench.session("s", view="v")
    assert session.tools()
    bench.catalog.arrange(views=[])
    assert session.tools() == []
    assert (await session.call("add", {"a": 1, "b": 2})).is_error


async def test_only_changes_that_can_be_seen_are_told() -> None:
    bench = bench_with(View("v", include=("source:shop",)))
    heard: list[Change] = []
    unsubscribe = bench.session("s", view="v").subscribe(heard.append)
    whole: list[Change] = []
    bench.session("t").subscribe(whole.append)
    bench.catalog.add(functions(tool(name="elsewhere")(lambda: 1), name="other"))
    assert (len(heard), len(whole)) == (0, 1)
    bench.catalog.remove("shop")
    assert [type(change) for change in heard] == [CatalogChanged]
    assert isinstance(heard[0], CatalogChanged)
    assert heard[0].snapshot.tools == {}
    unsubscribe()


class Shelf:
    """Resources and prompts."""

    async def list_resources(self, cursor: str | None = None) -> Page[ResourceDescriptor]:
        return Page([ResourceDescriptor(id=f"shelf://{name}", name=name) for name in ("open", "secret")])

    async def list_templates(self, cursor: str | None = None) -> Page[ResourceTemplate]:
        return Page([ResourceTemplate(uri_template="shelf://{name}", name="any")])

    async def read_resource(self, id: str, context: CapabilityContext) -> ResourceContents:
        return ResourceContents(id=id, parts=(TextPart(text=id),))

    async def list_prompts(self, cursor: str | None = None) -> Page[PromptDescriptor]:
        return Page([PromptDescriptor(id="greet"), PromptDescriptor(id="scold")])

    async def get_prompt(self, id: str, args: Any, context: CapabilityContext) -> PromptContents:
        return PromptContents(messages=(), description=id)


def shelf() -> Source:
    return Source("shelf", "test", Offers(resources=[Shelf()], prompts=[Shelf()]))


async def test_resources_and_prompts_are_in_the_view_that_says_so() -> None:
    bench = bench_with(
        View("tools", include=("crm_*",)),
        View("open", exclude=("*secret", "scold")),
        View("one", include=("crm_*",), resources=("shelf://open",), prompts=("greet",)),
        sources=[shelf()],
    )
    nothing = bench.session("s", view="tools")
    assert (await nothing.resources(), await nothing.templates(), await nothing.prompts()) == ([], [], [])
    for view in ("open", "one"):
        session = bench.session("s", view=view)
        assert [one.id for one in await session.resources()] == ["shelf://open"]
        assert [one.id for one in await session.prompts()] == ["greet"]
        assert (await session.read("shelf://open")).id == "shelf://open"
        assert (await session.prompt("greet")).description == "greet"
        with pytest.raises(InvalidInput):
            await session.read("shelf://secret")
        with pytest.raises(InvalidInput):
            await session.watch("shelf://secret", lambda uri: None)
        with pytest.raises(InvalidInput):
            await session.prompt("scold")
        with pytest.raises(InvalidInput):
            await session.complete("scold", "a", "")


class Mute(Shelf):
    """Never answers, and does not let itself be cancelled at once."""

    def __init__(self) -> None:
        self.over = asyncio.Event()

    async def list_resources(self, cursor: str | None = None) -> Page[ResourceDescriptor]:
        await self.over.wait()
        return Page([])

    async def list_prompts(self, cursor: str | None = None) -> Page[PromptDescriptor]:
        raise RuntimeError("broken")


async def test_a_silent_source_holds_no_list_up_and_is_named() -> None:
    mute = Mute()
    bench = Bench(shelf(), Source("mute", "test", Offers(resources=[mute], prompts=[mute])))
    session = bench.session("s")
    session.patience = 0.1
    assert [one.id for one in await session.resources()] == ["shelf://open", "shelf://secret"]
    assert session.missing == {"mute": "mute did not list its resources within 0.1 s"}
    session.patience = 60.0
    assert (await session.read("shelf://open")).id == "shelf://open"  # found before the silent one is waited for
    assert [one.id for one in await session.prompts()] == ["greet", "scold"]
    assert session.missing["mute"] == "mute could not list its prompts: RuntimeError"
    mute.over.set()
    assert len(await session.resources()) == 2
    assert session.missing == {"mute": "mute could not list its prompts: RuntimeError"}


async def test_providers_in_memory_are_listed_together() -> None:
    bench = Bench(*(Source(f"m{index}", "memory", MemoryProvider()) for index in range(3)))
    assert await bench.session("s").resources() == []


@given(st.text(max_size=20), st.text(min_size=1, max_size=20))
def test_any_pattern_can_be_asked_about_any_name(pattern: str, name: str) -> None:
    entry = ToolEntry(add, name, "shop", given="add", key=("shop", name))
    matched = Patterns([pattern]).tool(entry)
    assert isinstance(matched, bool)
    if not set(pattern) & set("*?[:"):
        assert matched == (pattern in entry.names)
