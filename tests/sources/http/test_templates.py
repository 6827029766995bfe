"""Texts with placeholders: a value stays in its place, whatever is in it."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anykit.capabilities import InvalidInput, Json
from anykit.sources.http import TemplateError, filled, template, url_template
from anykit.sources.http.templates import header_value

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(TEXT)
def test_any_value_of_a_path_is_one_opaque_segment_or_refused(value: str) -> None:
    try:
        url = filled("http://h/a/{v}/b?x=1", {"v": value})
    except InvalidInput:
        assert value in ("", ".", "..")
        return
    assert url.isascii()
    parts = urlsplit(url)
    assert (parts.netloc, parts.query, parts.fragment) == ("h", "x=1", "")
    first, middle, last = parts.path[1:].split("/")
    assert (first, unquote(middle), last) == ("a", value, "b")


@given(TEXT)
def test_any_value_of_a_query_is_one_value(value: str) -> None:
    parts = urlsplit(filled("http://h/a?x={v}&y=2", {"v": value}))
    first, second = parts.query.split("&")
    assert (parts.path, unquote(first.removeprefix("x=")), second, parts.fragment) == ("/a", value, "y=2", "")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a/b", "a%2Fb"),
        ("a?b#c", "a%3Fb%23c"),
        ("%2e%2e", "%252e%252e"),
        ("..;/x", "..%3B%2Fx"),
        ("日本 ü", "%E6%97%A5%E6%9C%AC%20%C3%BC"),
        ("\r\n\0", "%0D%0A%00"),
        ("...", "..."),
        (" ", "%20"),
        (7, "7"),
        (12345678901234567890123, "12345678901234567890123"),
        (True, "true"),
        (1.5, "1.5"),
        ("{v}", "%7Bv%7D"),
    ],
)
def test_a_value_is_percent_encoded(value: Json, written: str) -> None:
    assert filled("/x/{v}", {"v": value}) == f"/x/{written}"


@pytest.mark.parametrize("value", ["", ".", "..", None, [], ["a"], {}, "\ud800", "x" * 20_000])
def test_what_is_no_segment_is_refused_with_its_name(value: Json) -> None:
    with pytest.raises(InvalidInput) as refused:
        filled("/x/{the_id}", {"the_id": value})
    assert refused.value.errors[0]["path"] == "/the_id"


def test_a_value_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidInput, match="b: it is needed"):
        filled("/x/{a}/{b}", {"a": 1})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("http://{host}/x", "may not stand in the host"),
        ("https://api.{region}.example/x", "may not stand in the host"),
        ("https://h:{port}/x", "may not stand in the host"),
        ("https://{user}@h/x", "may not stand in the host"),
        ("{scheme}://h/x", "must be written out"),
        ("{base}/x", "must be written out"),
        ("http://h/x#{a}", "never sent"),
        ("ftp://h/x", "only http and https"),
        ("file:///etc/passwd", "only http and https"),
        ("/x", "not a URL"),
        ("http:///x", "no host"),
        ("http://h/{+path}", "no placeholder"),
        ("http://h/x{?q}", "no placeholder"),
        ("http://h/{}", "no placeholder"),
        ("http://h/{a", "a brace stands alone"),
        ("http://h/a}", "a brace stands alone"),
        ("http://h:99999/", "no host"),
    ],
)
def test_a_url_that_cannot_be_one_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(TemplateError, match=why):
        url_template(text)


def test_a_fault_shows_neither_user_nor_query() -> None:
    with pytest.raises(TemplateError) as refused:
        url_template("http://me:sesame@h/{a?key=sesame")
    assert "sesame" not in str(refused.value)


def test_what_the_operator_wrote_stays_as_it_is() -> None:
    url = url_template("HTTPS://Bücher.example/a%2Fb/ü x?q[]=%20+&a=b,c")
    assert url.filled({}) == "https://xn--bcher-kva.example/a%2Fb/%C3%BC%20x?q%5B%5D=%20+&a=b,c"


def test_names_come_once_and_in_order() -> None:
    assert url_template("http://h/{b}/{a}/{b}?c={c}").names == ("b", "a", "c")
    assert template("{x}").only == "x"
    assert template("{x}!").only is None


@pytest.mark.parametrize("value", ["a\r\nb: c", "a\nb", "\0", "a\x7f"])
def test_a_header_takes_no_line_break(value: str) -> None:
    with pytest.raises(InvalidInput, match="line breaks"):
        header_value(value, "h")
