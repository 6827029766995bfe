"""Finding tools by words, and what the tool that finds them says."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anykit.capabilities import State
from anykit.runtime import CatalogChanged, Change, Source, View
from anykit.runtime.search import Index, terms_of
from anykit.tools import ToolSpec, tool
from runtime_parts import Bench, Offers, functions

pytestmark = pytest.mark.anyio


def spec(name: str, description: str = "", **arguments: str) -> ToolSpec:
    properties = {argument: {"type": "string", "description": text} for argument, text in arguments.items()}
    return ToolSpec(name=name, description=description, input_schema={"type": "object", "properties": properties})


def found(query: str, *specs: ToolSpec) -> list[str]:
    return list(Index(specs).search(query))


INVOICES = spec("crm_create_invoice", "Bills a customer.", amount="How much, in euros.")
WEATHER = spec("get_weather", "Tells the weather of a city.", cityName="Where.")
ISSUES = spec("github_search_issues", "Looks for issues in a repository.", query="Words to look for.")


def test_words_are_parts_of_identifiers_in_any_case() -> None:
    assert list(terms_of("getHTTPResponse create_invoice-items")) == [
        "get",
        "http",
        "response",
        "create",
        "invoice",
        "item",
    ]
    assert list(terms_of("STRASSE Straße")) == ["strasse", "strasse"]
    assert list(terms_of("天气预报")) == ["天气", "气预", "预报"]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("make an invoice", "crm_create_invoice"),
        ("euros", "crm_create_invoice"),
        ("city name", "get_weather"),
        ("WEATHER", "get_weather"),
        ("wether", "get_weather"),
        ("repositroy", "github_search_issues"),
        ("issue", "github_search_issues"),
        ("invoi", "crm_create_invoice"),
        ("get_weather", "get_weather"),
    ],
)
def test_a_tool_is_found_by_name_description_argument_and_nearly_by_them(query: str, first: str) -> None:
    assert found(query, INVOICES, WEATHER, ISSUES)[:1] == [first]


def test_nothing_is_found_where_nothing_has_to_do_with_it() -> None:
    assert found("quantum chromodynamics", INVOICES, WEATHER, ISSUES) == []
    assert found("!!!", INVOICES, WEATHER, ISSUES) == []
    assert found("anything") == []


def test_a_rare_word_counts_more_than_a_common_one_and_a_name_more_than_a_text() -> None:
    specs = [spec(f"list_{kind}", "Lists things of the shop.") for kind in ("orders", "customers", "refunds")]
    assert found("list refunds", *specs)[0] == "list_refunds"
    assert found("orders", spec("a", "About orders, orders."), spec("orders"))[0] == "orders"


@given(st.text(max_size=60), st.lists(st.tuples(st.text(min_size=1, max_size=20), st.text(max_size=60)), max_size=8))
def test_whatever_is_asked_the_answer_is_the_same_each_time_and_names_each_tool_once(
    query: str, tools: list[tuple[str, str]]
) -> None:
    specs = [spec(f"{name}{index}", text) for index, (name, text) in enumerate(tools)]
    once = found(query, *specs)
    assert once == found(query, *specs)
    assert len(set(once)) == len(once)
    assert set(once) <= {one.name for one in specs}


@given(st.text(min_size=1, max_size=30).filter(lambda text: list(terms_of(text))))
def test_a_tool_is_found_by_its_whole_description(text: str) -> None:
    assert "wanted" in found(text, spec("wanted", text), spec("other", "something else"))


# the tool


def numbered(count: int) -> list[Any]:
    def made(number: int) -> Any:
        @tool(name=f"tool_{number}")
        async def one(word: str) -> str:
            """Does it."""
            return f"{number} {word}"

        return one

    return [made(number) for number in range(count)]


def crowded(after: int = 2, count: int = 6) -> Bench:
    bench = Bench(functions(*numbered(count)))
    bench.catalog.arrange(deferred_after=after)
    return bench


def listed(session: Any) -> list[str]:
    return [one.name for one in session.tools() if not one.deferred]


async def test_beyond_the_number_tools_are_left_to_be_found_and_can_be_called_all_the_same() -> None:
    session = crowded().session("s")
    assert listed(session) == ["find_tools", "tool_0", "tool_1"]
    assert len(session.tools()) == 7
    assert (await session.call("tool_5", {"word": "x"})).output == "5 x"


async def test_up_to_the_number_everything_is_listed_and_nothing_searches() -> None:
    session = crowded(after=6).session("s")
    assert listed(session) == [f"tool_{number}" for number in range(6)]
    assert session.get("find_tools") is None
    assert (await session.call("find_tools", {"query": "x"})).is_error


async def test_what_is_found_comes_with_its_schema_and_is_listed_to_this_session_from_then_on() -> None:
    bench = crowded()
    session, other = bench.session("s"), bench.session("t")
    heard: list[Change] = []
    session.subscribe(heard.append)
    result = await session.call("find_tools", {"query": "tool 4", "limit": 1})
    [one] = result.structured["tools"]
    assert one["name"] == "tool_4"
    assert one["description"] == "Does it."
    assert one["input_schema"]["required"] == ["word"]
    assert listed(session) == ["find_tools", "tool_0", "tool_1", "tool_4"]
    assert listed(other) == ["find_tools", "tool_0", "tool_1"]
    assert [type(change) for change in heard] == [CatalogChanged]
    await session.call("find_tools", {"query": "tool 4", "limit": 1})
    assert len(heard) == 1


async def test_the_arguments_of_a_search_are_checked_like_any_others() -> None:
    session = crowded().session("s")
    assert len((await session.call("find_tools", {"query": "tool"})).structured["tools"]) == 5
    assert "/limit" in (await session.call("find_tools", {"query": "x", "limit": 0})).output
    assert "/query" in (await session.call("find_tools", {})).output


async def test_tools_marked_as_deferred_are_found_too() -> None:
    @tool(deferred=True)
    async def hidden() -> int:
        """Counts sheep."""
        return 1

    session = Bench(functions(hidden, *numbered(1))).session("s")
    assert listed(session) == ["find_tools", "tool_0"]
    assert (await session.call("find_tools", {"query": "sheep"})).structured["tools"][0]["name"] == "hidden"


async def test_ones_own_tool_of_that_name_takes_a_longer_one_where_tools_have_to_be_found() -> None:
    @tool
    async def find_tools() -> str:
        """Mine."""
        return "mine"

    bench = Bench()
    bench.catalog.arrange(deferred_after=0)
    bench.catalog.add(functions(find_tools, name="shed"))
    session = bench.session("s")
    assert "tools" in (await session.call("find_tools", {"query": "mine"})).structured
    [own] = [one.name for one in session.tools() if one.name != "find_tools"]
    assert own.endswith("_find_tools")
    assert (await session.call(own)).output == "mine"
    alone = Bench(functions(find_tools))
    assert (await alone.session("s").call("find_tools")).output == "mine"


async def test_a_view_defers_by_its_own_number_and_keeps_what_is_to_stay_listed() -> None:
    bench = Bench(functions(*numbered(6)))
    bench.catalog.arrange(views=[View("few", deferred_after=2, listed=("tool_5",))])
    assert listed(bench.session("s")) == [f"tool_{number}" for number in range(6)]
    few = bench.session("s", view="few")
    assert listed(few) == ["find_tools", "tool_0", "tool_5"]


class Away(Offers):
    """A source that is down."""

    def __init__(self, *tools: Any, retry_at: float | None = None) -> None:
        super().__init__(*tools)
        self.state = State("failed", "connection refused\n\u202e", since=43380.0, retry_at=retry_at)

    async def start(self) -> None:
        pass

    async def close(self) -> None:
        pass

    def subscribe(self, callback: Any) -> Any:
        return lambda: None


async def test_what_is_down_is_told_with_since_when_and_why() -> None:
    bench = Bench(functions(*numbered(3)), Source("github", "mcp", Away(), prefixed=True))
    bench.catalog.arrange(deferred_after=1)
    session = bench.session("s")
    assert session.unavailable() == ["github is unavailable since 1970-01-01 12:03 UTC: connection refused"]
    found_some = await session.call("find_tools", {"query": "tool"})
    assert found_some.structured["unavailable"] == session.unavailable()
    lost = await session.call("github_search_issues", {})
    assert "github is unavailable since 1970-01-01 12:03 UTC: connection refused" in lost.output


async def test_a_source_outside_the_view_is_not_spoken_of() -> None:
    bench = Bench(functions(*numbered(3)), Source("github", "mcp", Away(), prefixed=True))
    bench.catalog.arrange(views=[View("mine", include=("tool_*",)), View("theirs", include=("github_*",))])
    assert bench.session("s", view="mine").unavailable() == []
    assert (await bench.session("s", view="mine").call("github_x")).output == "unknown tool 'github_x'"
    assert len(bench.session("s", view="theirs").unavailable()) == 1


def test_a_long_list_is_given_bit_by_bit() -> None:
    index = Index([spec(f"tool_{number}", "the same words") for number in range(1000)])
    assert list(islice(index.search("same words"), 3)) == ["tool_0", "tool_1", "tool_2"]
