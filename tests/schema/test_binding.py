"""JSON arguments as the call that a function expects."""

from __future__ import annotations

import datetime
import time
import uuid
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator

from anykit.capabilities import InvalidInput
from anykit.schema import compile_schema, describe

HUGE = 123456789012345678901234567890


def test_b070_big_integers_arrive_exactly() -> None:
    """cline/cline#9589: 64-bit ids were rounded."""

    def f(id: int, big: int, f: int, neg: float, many: list[int], by: dict[str, int], any: Any = HUGE): ...

    described = describe(f)
    arguments = {
        "id": 9007199254740993,
        "big": HUGE,
        "f": 1.0,
        "neg": -0.0,
        "many": [2.0, HUGE],
        "by": {"a": 3.0},
        "any": HUGE,
    }
    validator = compile_schema(described.input_schema)
    assert validator.is_valid(arguments)
    _, bound = described.bind(arguments)
    assert (bound["id"], bound["big"], bound["any"]) == (9007199254740993, HUGE, HUGE)
    assert str(bound["neg"]) == "-0.0"
    for value in (bound["f"], *bound["many"], *bound["by"].values()):
        assert type(value) is int
    assert described.input_schema["properties"]["any"]["default"] == HUGE
    assert not validator.is_valid({**arguments, "f": True})
    assert not validator.is_valid({**arguments, "f": 1.5})
    for infinite in (float("inf"), float("nan")):
        (fault,) = validator.faults({**arguments, "any": infinite})
        assert fault["path"] == "/any"


def test_a_whole_float_is_an_int_wherever_an_int_is_asked_for() -> None:
    class Model(BaseModel):
        n: int

    def f(
        a: int | None,
        b: int | str,
        c: Annotated[int, Field(ge=1)],
        d: Literal[1, 2],
        e: Sequence[int | None],
        g: Mapping[str, list[int]],
        h: Model,
        i: list[int] | None = None,
    ): ...

    _, bound = describe(f).bind(
        {"a": 1.0, "b": 2.0, "c": 3.0, "d": 1.0, "e": [4.0, None], "g": {"x": [5.0]}, "h": {"n": 6.0}, "i": [7.0]}
    )
    assert repr(bound) == repr(
        {"a": 1, "b": 2, "c": 3, "d": 1, "e": [4, None], "g": {"x": [5]}, "h": Model(n=6), "i": [7]}
    )


def test_an_integer_for_a_float_is_a_float_where_that_is_exact() -> None:
    def f(x: float, y: float, z: float | None = None): ...

    _, bound = describe(f).bind({"x": 2, "y": 9007199254740993, "z": 10**400})
    assert type(bound["x"]) is float
    assert bound["y"] == 9007199254740993
    assert bound["z"] == 10**400


def test_a_union_of_both_kinds_of_number_keeps_them_apart() -> None:
    def f(x: int | float): ...

    assert repr(describe(f).bind({"x": 1.0})[1]) == "{'x': 1.0}"
    assert repr(describe(f).bind({"x": 1})[1]) == "{'x': 1}"


def test_python_types_are_made_from_their_json() -> None:
    def f(
        day: datetime.date,
        at: datetime.datetime,
        span: datetime.timedelta,
        amount: Decimal,
        key: uuid.UUID,
        path: Path,
        data: bytes,
        names: set[str],
        pair: tuple[int, str],
        numbers: dict[int, str],
        parts: list[bytes] | None = None,
    ): ...

    described = describe(f)
    arguments = {
        "day": "2026-01-02",
        "at": "2026-01-02T03:04:05Z",
        "span": "PT90S",
        "amount": "1.10",
        "key": str(uuid.UUID(int=5)),
        "path": "a/b",
        "data": "aGk=",
        "names": ["a"],
        "pair": [1, "x"],
        "numbers": {"7": "seven"},
        "parts": ["aGk="],
    }
    assert compile_schema(described.input_schema).faults(arguments) == []
    assert described.bind(arguments)[1] == {
        "day": datetime.date(2026, 1, 2),
        "at": datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC),
        "span": datetime.timedelta(seconds=90),
        "amount": Decimal("1.10"),
        "key": uuid.UUID(int=5),
        "path": Path("a/b"),
        "data": b"hi",
        "names": {"a"},
        "pair": (1, "x"),
        "numbers": {7: "seven"},
        "parts": [b"hi"],
    }


def test_every_conversion_that_fails_is_reported_with_its_place() -> None:
    class Model(BaseModel):
        when: datetime.date
        key: uuid.UUID

    def f(a: datetime.date, models: list[Model], data: bytes): ...

    arguments = {
        "a": "2026-13-01",
        "models": [{"when": "2026-01-01", "key": str(uuid.UUID(int=1))}, {"when": "x", "key": "y"}],
        "data": "a",
    }
    with pytest.raises(InvalidInput) as raised:
        describe(f).bind(arguments)
    assert [fault["path"] for fault in raised.value.errors] == ["/a", "/models/1/when", "/models/1/key", "/data"]


def test_missing_and_unknown_names_are_faults_and_no_type_error() -> None:
    def f(a: int, b: int = 1): ...

    with pytest.raises(InvalidInput) as raised:
        describe(f).bind({"c": 1})
    assert [fault["path"] for fault in raised.value.errors] == ["/a", "/c"]
    with pytest.raises(InvalidInput):
        describe(f).bind([1])  # pyright: ignore[reportArgumentType]


def test_python_keeps_its_own_defaults() -> None:
    marker = object()

    def f(a: int = 1, b: object = marker, c: datetime.date = datetime.date.max):
        return b, c

    args, kwargs = describe(f).bind({"a": 2})
    assert kwargs == {"a": 2}
    assert f(*args, **kwargs) == (marker, datetime.date.max)


def test_positional_only_parameters_are_given_by_place() -> None:
    marker = object()

    def f(a: int, b: object = marker, c: int = 3, /, d: int = 4):
        return a, b, c, d

    described = describe(f)
    for arguments, expected in (
        ({"a": 1}, (1, marker, 3, 4)),
        ({"d": 5, "a": 1}, (1, marker, 3, 5)),
        ({"c": 9, "a": 1}, (1, marker, 9, 4)),
        ({"a": 1, "b": "x"}, (1, "x", 3, 4)),
    ):
        args, kwargs = described.bind(arguments)
        assert f(*args, **kwargs) == expected


def test_the_arguments_of_the_caller_are_not_touched() -> None:
    def f(many: list[float], by: dict[str, list[int]]): ...

    arguments = {"many": [1], "by": {"a": [1.0]}}
    _, bound = describe(f).bind(arguments)
    assert repr(arguments) == "{'many': [1], 'by': {'a': [1.0]}}"
    assert repr(bound) == "{'many': [1.0], 'by': {'a': [1]}}"


def test_a_secret_never_stands_in_a_conversion_fault() -> None:
    class Login(BaseModel):
        password: SecretStr
        user: str = ""

        @field_validator("password")
        @classmethod
        def _long(cls, value: SecretStr) -> SecretStr:
            raise ValueError(f"{value.get_secret_value()} is short")

    class Pair(BaseModel):
        key: SecretStr

        @model_validator(mode="after")
        def _known(self) -> Pair:
            raise ValueError(f"no account for {self.key.get_secret_value()}")

    def f(login: Login, pair: Pair): ...

    with pytest.raises(InvalidInput) as raised:
        describe(f).bind({"login": {"password": "hunter2"}, "pair": {"key": "hunter2"}})
    assert [fault["path"] for fault in raised.value.errors] == ["/login/password", "/pair"]
    assert "hunter2" not in repr(raised.value.errors) + str(raised.value)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(PLAIN, st.integers(), st.text(max_size=9), st.lists(st.integers()))
def test_plain_json_passes_through_unchanged(anything: Any, number: int, text: str, numbers: list[int]) -> None:
    def f(a: Any, n: int, t: str, many: list[int], maybe: str | int | None): ...

    arguments = {"a": anything, "n": number, "t": text, "many": numbers, "maybe": text}
    assert describe(f).bind(arguments) == ([], arguments)


def test_binding_and_validating_two_integers_takes_microseconds() -> None:
    def add(a: int, b: int) -> int:
        return a + b

    described = describe(add)
    validator = compile_schema(described.input_schema)
    arguments = {"a": 1, "b": 2}

    def best(call: Any) -> float:
        rounds: list[float] = []
        for _ in range(7):
            start = time.process_time()
            for _ in range(2000):
                call(arguments)
            rounds.append((time.process_time() - start) / 2000)
        return min(rounds)

    assert best(described.bind) < 5e-6
    assert best(validator.is_valid) < 5e-6
