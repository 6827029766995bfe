"""Secrets in what is logged about foreign code."""

from __future__ import annotations

import gc
import logging

import pytest

from anykit.tools.discretion import Discretion, hide

log = logging.getLogger("anykit.test")


class Owner:
    """Whatever was configured."""


def test_a_secret_is_hidden_for_as_long_as_its_owner_lives() -> None:
    discretion = Discretion()
    owner, other = Owner(), Owner()
    discretion.keep(["s3cret-value", "both-have-it"], owner)
    discretion.keep(["both-have-it"], other)
    assert discretion.hide("key s3cret-value, both-have-it") == "key [secret], [secret]"
    del owner
    gc.collect()
    assert discretion.hide("key s3cret-value, both-have-it") == "key s3cret-value, [secret]"


def test_the_longer_of_two_secrets_goes_first() -> None:
    discretion = Discretion()
    owner = Owner()
    discretion.keep(["abcd", "abcdefgh"], owner)
    assert discretion.hide("abcdefgh") == "[secret]"


def test_what_is_as_short_as_a_word_stays() -> None:
    assert hide("a key", ["a", "key"]) == "a key"


def test_a_traceback_is_logged_without_it(caplog: pytest.LogCaptureFixture) -> None:
    discretion = Discretion()
    owner = Owner()
    discretion.keep(["s3cret-value"], owner)
    try:
        raise ValueError("bad key s3cret-value")
    except ValueError:
        discretion.exception(log, "%s broke", "it")
    assert "s3cret-value" not in caplog.text
    assert "it broke" in caplog.text
    assert "ValueError: bad key [secret]" in caplog.text
