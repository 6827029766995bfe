"""Names: one rule for every source."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from anykit.runtime import Candidate, Names, clean
from anykit.runtime.naming import hashed

VALID = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")


def of(source: str, *originals: str, prefix: str | None = None, owner: str = "") -> list[Candidate]:
    return [Candidate(source, name, f"{source}_" if prefix is None else prefix, owner or source) for name in originals]


def names_of(names: Names, candidates: list[Candidate]) -> list[str]:
    given_names = names.assign(candidates)
    return [given_names[candidate.key].exposed for candidate in candidates]


def test_a_valid_name_is_kept_exactly() -> None:
    assert names_of(Names(), of("shop", "find-it", "A_1")) == ["shop_find-it", "shop_A_1"]
    assert names_of(Names(), of("python", "add", prefix="")) == ["add"]


def test_b001_names_that_models_refuse_are_cleaned_and_stay_distinct() -> None:
    """github/copilot-cli#1879: dots, slashes and spaces in names make a provider refuse the whole request."""
    names = names_of(Names(), of("crm", "crm.leads.find", "stock/item", "Open Door"))
    assert names == ["crm_crm_leads_find", "crm_stock_item", "crm_Open_Door"]


def test_b003_two_sources_with_one_name_are_both_listed_whatever_their_order() -> None:
    """langchain-ai/langchain-mcp-adapters#605: duplicate names are silently overwritten across servers."""
    a, b = of("store_a", "lookup", prefix=""), of("store_b", "lookup", prefix="")
    assert names_of(Names(), a + b) == ["store_a_lookup", "store_b_lookup"]
    assert names_of(Names(), b + a) == ["store_b_lookup", "store_a_lookup"]


def test_b005_names_without_an_ascii_letter_are_all_kept() -> None:
    """IBM/mcp-context-forge#2528: a leading underscore or digit, or no ASCII letter at all."""
    names = names_of(Names(), of("s", "_7day_sum", "2fa_check", "地图", "天气", "!!!"))
    assert len(set(names)) == 5
    assert all(VALID.fullmatch(name) for name in names)
    assert names[:2] == ["s__7day_sum", "s_2fa_check"]
    bare = names_of(Names(), of("s", "_7day_sum", "2fa_check", "地图", "天气", "!!!", prefix=""))
    assert bare[:2] == ["_7day_sum", "_2fa_check"]
    assert len(set(bare)) == 5
    assert all(VALID.fullmatch(name) for name in bare)


def test_every_changed_name_that_became_equal_ends_in_a_hash_and_the_valid_one_stays() -> None:
    names = names_of(Names(), of("s", "a.b", "a/b", "a_b"))
    assert names[2] == "s_a_b"
    assert all(re.fullmatch(r"s_a_b_[0-9a-f]{8}", name) for name in names[:2])
    assert len(set(names)) == 3


def test_one_that_comes_later_takes_the_longer_name_and_the_first_keeps_its_own() -> None:
    names = Names()
    first = of("one", "lookup", prefix="")
    assert names_of(names, first) == ["lookup"]
    assert names_of(names, first + of("two", "lookup", prefix="", owner="kit")) == ["lookup", "kit_lookup"]


def test_a_name_is_never_pointed_at_something_else() -> None:
    names = Names()
    assert names_of(names, of("one", "lookup", prefix="")) == ["lookup"]
    assert names_of(names, of("two", "lookup", prefix="")) == ["two_lookup"]
    assert names_of(names, of("one", "lookup", prefix="")) == ["lookup"]


def test_clean_is_the_documented_rule() -> None:
    assert [clean(name) for name in ("Weather Agent", "alerts!", "9lives", "-x", "")] == [
        "Weather_Agent",
        "alerts_",
        "_9lives",
        "_-x",
        "_",
    ]


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.text(max_size=80), st.booleans()), max_size=20))
def test_whatever_the_sources_offer_names_are_valid_distinct_and_stable(offers: list[tuple[str, str, bool]]) -> None:
    unique = {(source, name): prefixed for source, name, prefixed in offers}
    candidates = [
        Candidate(source, name, f"{source}_" if prefixed else "", source) for (source, name), prefixed in unique.items()
    ]
    names = Names()
    given_names = names_of(names, candidates)
    assert len(set(given_names)) == len(candidates)
    assert all(VALID.fullmatch(name) for name in given_names)
    assert names_of(names, candidates[::-1]) == given_names[::-1]


def test_a_name_that_a_hash_would_make_stays_with_whoever_offers_it() -> None:
    forged = hashed("s_a_b", ("s", "a.b"))
    names = names_of(Names(), of("s", forged.removeprefix("s_"), "a.b", "a/b"))
    assert names[0] == forged
    assert len(set(names)) == 3


def test_a_valid_name_is_kept_though_a_longer_one_would_be_equal() -> None:
    candidates = [*of("a", "lookup", prefix=""), *of("b", "lookup", prefix=""), *of("c", "a_lookup", prefix="")]
    names = names_of(Names(), candidates)
    assert names[2] == "a_lookup"
    assert len(set(names)) == 3
    assert set(names_of(Names(), candidates[::-1])) == set(names)


def test_a_name_that_two_wanted_is_nobodys_later_either() -> None:
    names = Names()
    names_of(names, of("a", "lookup", prefix="") + of("b", "lookup", prefix=""))
    assert names_of(names, of("c", "lookup", prefix="")) == ["c_lookup"]


def test_a_chosen_name_is_claimed_unless_callers_know_something_else_by_it() -> None:
    names = Names()
    names_of(names, of("s", "one", "two"))
    names.show(["s_one"])
    assert names.claim(("s", "two"), "find")
    assert not names.claim(("s", "two"), "s_one")
    assert not names.claim(("s", "two"), "not a name")
    assert names_of(names, of("late", "find", prefix="")) == ["late_find"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "a_b"]),
            st.one_of(st.sampled_from(["x", "b_x", "a_x", "x.", "x/", "a_b_x", "_x"]), st.text(max_size=70)),
            st.booleans(),
        ),
        max_size=12,
    ),
    st.data(),
)
def test_hostile_names_in_any_order_and_at_any_time_each_lead_to_one_thing(
    offers: list[tuple[str, str, bool]], data: st.DataObject
) -> None:
    unique = {(source, name): prefixed for source, name, prefixed in offers}
    candidates = [
        Candidate(source, name, f"{source}_" if prefixed else "", source) for (source, name), prefixed in unique.items()
    ]
    # Some names are those that hashes of others make.
    candidates += [
        Candidate("forger", hashed(clean(one.prefix + one.original)[:64], one.key), "", "forger")
        for one in candidates[:2]
    ]
    candidates = list({one.key: one for one in candidates}.values())
    cut = data.draw(st.integers(0, len(candidates)))
    names = Names()
    first = names.assign(candidates[:cut])
    whole = names.assign(candidates)
    assert all(whole[key] == name for key, name in first.items())
    exposed = [name.exposed for name in whole.values()]
    assert len(set(exposed)) == len(candidates)
    assert all(VALID.fullmatch(name) for name in exposed)
    assert all(names.owner(name.exposed) == key for key, name in whole.items())
