"""Reading agent cards: all that are served, and what is done about those that are wrong."""

from __future__ import annotations

from typing import Any

import pytest

from anykit.wire.a2a import Card, CardFault, read_card, resolve_url, sanitize

Json = Any
URL = "http://host:1/a/.well-known/agent-card.json"


def read(document: Json, url: str | None = URL) -> Card:
    return read_card(document, url)


def places(card: Card) -> list[tuple[str, str, str]]:
    return [(one.version, one.binding, one.url) for one in card.interfaces]


def test_the_contracts_bare_card_is_called_at_its_origin_in_its_own_dialect() -> None:
    card = read({"name": "Weather Agent", "skills": [{"id": "forecast", "description": "Gives a forecast"}]})
    assert places(card) == [("toolnexus", "JSONRPC", "http://host:1/")]
    assert (card.name, card.version, card.streaming, card.dropped) == ("Weather Agent", "", False, ())


def test_b045_a_card_of_1_0_is_called_at_the_first_interface_that_is_spoken_here() -> None:
    """mezmo/aura#451: a card with no url but supportedInterfaces."""
    card = read(
        {
            "name": "A",
            "supportedInterfaces": [
                {"url": "http://h/grpc", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
                {"url": "http://h/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": "t"},
                {"url": "http://h/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "0.3"},
            ],
            "skills": [{"id": "s", "name": "S"}],
        }
    )
    assert places(card) == [("1.0", "JSONRPC", "http://h/rpc"), ("0.3", "HTTP+JSON", "http://h/rest")]
    assert card.interfaces[0].tenant == "t"
    assert [one.what for one in card.dropped] == ["interface GRPC"]


def test_b045_a_card_of_0_3_is_called_at_its_url_and_then_its_additional_interfaces() -> None:
    """mezmo/aura#451: the other spelling."""
    more = [{"url": "http://h/rest", "transport": "HTTP+JSON"}, {"url": "http://h/", "transport": "JSONRPC"}]
    card = read({"name": "A", "protocolVersion": "0.3.0", "url": "http://h/", "additionalInterfaces": more})
    assert places(card) == [("0.3", "JSONRPC", "http://h/"), ("0.3", "HTTP+JSON", "http://h/rest")]
    card = read({"name": "A", "preferredTransport": "GRPC", "url": "http://h/g", "additionalInterfaces": more})
    assert places(card)[0] == ("0.3", "HTTP+JSON", "http://h/rest")


@pytest.mark.parametrize(
    "card",
    [
        {"supportedInterfaces": [{"url": "http://h/", "protocolBinding": "GRPC", "protocolVersion": "1.0"}]},
        {"url": "http://h/", "preferredTransport": "GRPC"},
        {"url": "ftp://h/"},
    ],
)
def test_b045_a_card_without_an_interface_that_can_be_used_says_which_there_were(card: Json) -> None:
    """mezmo/aura#451: nothing usable."""
    with pytest.raises(CardFault, match=r"no interface that can be used: interface (GRPC|JSONRPC): "):
        read({"name": "A", **card})


def test_a_card_of_both_versions_keeps_the_order_of_1_0_and_loses_no_interface() -> None:
    card = read(
        {
            "name": "A",
            "supportedInterfaces": [{"url": "http://h/new", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
            "protocolVersion": "0.3.0",
            "preferredTransport": "JSONRPC",
            "url": "http://h/old",
        }
    )
    assert places(card) == [("1.0", "JSONRPC", "http://h/new"), ("0.3", "JSONRPC", "http://h/old")]


@pytest.mark.parametrize(
    ("card", "version"),
    [
        ({"url": "http://h/", "protocolVersion": "1.0"}, "1.0"),
        ({"url": "http://h/", "protocolVersion": "0.2.6"}, "0.3"),
        ({"url": "http://h/", "protocolVersion": "2.0"}, "1.0"),
        ({"url": "http://h/", "capabilities": {}}, "0.3"),
        ({"url": "http://h/", "version": "1.0.0", "description": "d"}, "toolnexus"),
    ],
)
def test_the_version_is_what_the_card_says_or_looks_like(card: Json, version: str) -> None:
    assert read({"name": "A", **card}).interfaces[0].version == version


@pytest.mark.parametrize(
    ("url", "resolved"),
    [
        (None, "http://host:1/"),
        ("", "http://host:1/"),
        ("  ", "http://host:1/"),
        ("/rpc", "http://host:1/rpc"),
        ("../rpc", "http://host:1/a/rpc"),
        ("rpc", "http://host:1/a/.well-known/rpc"),
        ("http://0.0.0.0:8000/rpc", "http://host:8000/rpc"),
        ("http://0.0.0.0/", "http://host/"),
        ("http://[::]:8000/", "http://host:8000/"),
        ("//other/x", "http://other/x"),
        ("https://other:8443/x?y=z#f", "https://other:8443/x?y=z"),
        ("http://user:pw@other/", "http://other/"),
        ("HTTP://Other/", "http://Other/"),
    ],
)
def test_a_url_is_resolved_against_where_the_card_came_from(url: str | None, resolved: str) -> None:
    assert resolve_url(url, URL) == resolved


@pytest.mark.parametrize(
    ("url", "card_url", "reason"),
    [
        ("file:///etc/passwd", URL, "'file'"),
        ("gopher://h/", URL, "'gopher'"),
        ("javascript:alert(1)", URL, "'javascript'"),
        ("http:///x", "file:///card.json", "names no host"),
        ("http://h:99999/", URL, "no URL"),
        ("http://[::1/", URL, "no URL"),
        ("http://h/a b", URL, "spaces or control"),
        ("http://h/\x00", URL, "spaces or control"),
        ("http://h\\@evil/", URL, "spaces or control"),
        ("http://h/" + "x" * 3000, URL, "too long"),
        (None, None, "has no place"),
        ("/rpc", None, "relative"),
        ("http://0.0.0.0:8000/", None, "no address"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_with_a_reason(url: str | None, card_url: str | None, reason: str) -> None:
    with pytest.raises(CardFault, match=reason):
        resolve_url(url, card_url)


@pytest.mark.parametrize("document", [None, 5, "card", [], {}, [{"name": "A"}]])
def test_what_is_no_object_is_no_card(document: Json) -> None:
    with pytest.raises(CardFault):
        read(document)


@pytest.mark.parametrize("name", [None, "", "  ", 5, ["A"], "x" * 257])
def test_a_card_needs_a_name(name: Json) -> None:
    with pytest.raises(CardFault, match="name"):
        read({"name": name, "skills": []})


@pytest.mark.parametrize("skills", ["add", {"id": "add"}, 5, True])
def test_skills_that_are_no_list_make_it_no_card(skills: Json) -> None:
    with pytest.raises(CardFault, match="no list"):
        read({"name": "A", "skills": skills})


@pytest.mark.parametrize("card", [{}, {"skills": None}, {"skills": []}])
def test_a_card_without_skills_has_none(card: Json) -> None:
    assert read({"name": "A", **card}).skills == ()


def test_null_and_malformed_skills_are_dropped_one_by_one_and_reported() -> None:
    given: list[Json] = [
        None,
        5,
        "x",
        {},
        {"id": ""},
        {"id": 7},
        {"name": []},
        {"id": "x" * 257},
        {"id": "ok"},
        {"id": "ok"},
    ]
    card = read({"name": "A", "skills": given})
    assert [skill.key for skill in card.skills] == ["ok"]
    assert len(card.dropped) == len(given) - 1
    assert all(one.what.startswith("skill ") and one.reason for one in card.dropped)


def test_a_skill_is_described_by_its_description_else_its_name_else_its_id() -> None:
    given = [{"id": "a", "name": "A", "description": "does a"}, {"id": "b", "name": "B"}, {"id": "c"}, {"name": "d"}]
    card = read({"name": "X", "skills": [*given, {"id": "e", "description": " ", "tags": ["t", 5, None]}]})
    assert [(one.key, one.description) for one in card.skills] == [
        ("a", "does a"),
        ("b", "B"),
        ("c", "c"),
        ("d", "d"),
        ("e", "e"),
    ]
    assert card.skills[-1].tags == ("t",)


def test_a_card_of_too_many_skills_keeps_the_first_thousand() -> None:
    card = read({"name": "X", "skills": [{"id": f"s{index}"} for index in range(1200)]})
    assert len(card.skills) == 1000
    assert "more than 1000" in card.dropped[0].reason


def test_names_are_sanitized_as_the_contract_says() -> None:
    assert sanitize("Weather Agent") == "Weather_Agent"
    assert sanitize("alerts!") == "alerts_"
    assert sanitize("7-é\u200b.x_y") == "7-___x_y"


@pytest.mark.parametrize(
    "schemes",
    [
        {
            "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
            "bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}},
            "oauth": {
                "oauth2SecurityScheme": {"flows": {"clientCredentials": {"tokenUrl": "http://t/", "scopes": {"a": ""}}}}
            },
            "oidc": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "http://o/"}},
            "tls": {"mtlsSecurityScheme": {}},
            "odd": 5,
        },
        {
            "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "bearer": {"type": "http", "scheme": "bearer"},
            "oauth": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "http://t/", "scopes": {"a": ""}}}},
            "oidc": {"type": "openIdConnect", "openIdConnectUrl": "http://o/"},
            "tls": {"type": "mutualTLS"},
            "odd": None,
        },
    ],
)
def test_security_schemes_are_read_in_both_spellings(schemes: Json) -> None:
    card = read({"name": "A", "url": "http://h/", "securitySchemes": schemes})
    assert {name: one.kind for name, one in card.schemes.items()} == {
        "key": "apiKey",
        "bearer": "http",
        "oauth": "oauth2",
        "oidc": "openIdConnect",
    }
    assert (card.schemes["key"].place, card.schemes["key"].parameter) == ("header", "X-Key")
    assert card.schemes["bearer"].scheme == "bearer"
    assert (card.schemes["oauth"].token_url, card.schemes["oauth"].scopes) == ("http://t/", ("a",))
    assert sorted(one.what for one in card.dropped) == ["security scheme odd", "security scheme tls"]


def test_requirements_are_read_in_both_spellings() -> None:
    new = read(
        {"name": "A", "url": "http://h/", "securityRequirements": [{"schemes": {"o": {"list": ["r"]}, "k": {}}}]}
    )
    old = read({"name": "A", "url": "http://h/", "security": [{"o": ["r"], "k": []}]})
    assert new.requirements == old.requirements == ({"o": ("r",), "k": ()},)


@pytest.mark.parametrize(
    "card", [{"capabilities": {"extendedAgentCard": True}}, {"supportsAuthenticatedExtendedCard": True}]
)
def test_an_extended_card_is_promised_in_both_spellings(card: Json) -> None:
    assert read({"name": "A", **card}).extended
    assert not read({"name": "A"}).extended


def test_streaming_is_offered_only_by_a_true_one() -> None:
    assert read({"name": "A", "capabilities": {"streaming": True}}).streaming
    for other in ("yes", 1, None, False):
        assert not read({"name": "A", "capabilities": {"streaming": other}}).streaming
