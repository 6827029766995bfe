"""What the room hands out."""

from __future__ import annotations

from anykit.wire import a2e


def test_every_public_name_is_there_and_no_other_is_listed() -> None:
    assert a2e.__all__ == sorted(a2e.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    assert dir(a2e) == sorted(a2e.__all__)
    for name in a2e.__all__:
        assert getattr(a2e, name) is not None


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    assert not hasattr(a2e, "nothing_of_the_kind")
