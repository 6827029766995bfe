"""A Python signature as a JSON Schema."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import enum
import functools
import json
import math
import socket
import typing
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NotRequired, Optional, Required, TypedDict, TypeVar, Union, cast

import pytest
import typing_extensions
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, TypeAdapter

from anykit.capabilities import (
    CapabilityContext,
    ImagePart,
    InvalidInput,
    InvocableResult,
    JsonObject,
    TextPart,
)
from anykit.schema import SignatureError, compile_schema, describe, secret_pointers


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Point(TypedDict):
    """Where."""

    x: int
    label: NotRequired[str]


class Loose(TypedDict, total=False):
    title: Required[str]
    default: datetime.date


@dataclasses.dataclass
class Box:
    width: int
    color: Color = Color.RED
    tags: list[str] = dataclasses.field(default_factory=list[str])


class Node(BaseModel):
    """A tree."""

    title: str
    default: int = 3
    kids: list[Node] = []


def properties(fn: Any, **options: Any) -> JsonObject:
    return describe(fn, **options).input_schema["properties"]


def titles(schema: object) -> list[object]:
    """Every `title` keyword: one that stands where a schema is, not among properties."""
    found: list[object] = []

    def walk(node: Any, *, names: bool) -> None:
        if isinstance(node, dict):
            mapping: dict[str, Any] = node  # pyright: ignore[reportUnknownVariableType]
            if not names and "title" in mapping:
                found.append(mapping["title"])
            for key, value in mapping.items():
                walk(value, names=not names and key in ("properties", "$defs"))
        elif isinstance(node, list):
            for item in node:  # pyright: ignore[reportUnknownVariableType]
                walk(item, names=False)

    walk(schema, names=False)
    return found


# B085


def test_b085_optional_and_untyped_parameters() -> None:
    """google/adk-python#2232: a parameter that is optional, or has a default and no annotation."""

    def f(
        a: str | None = None,
        b: Optional[int] = 3,  # noqa: UP045
        c="open",  # pyright: ignore[reportMissingParameterType]
        d=10,  # pyright: ignore[reportMissingParameterType]
        e=None,  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]
        g: str = None,  # noqa: RUF013  # pyright: ignore[reportArgumentType]
    ) -> Any:
        return a, b, c, d, cast(Any, e), g

    described = describe(f)  # pyright: ignore[reportUnknownArgumentType]
    schema = described.input_schema
    assert "required" not in schema
    assert schema["properties"] == {
        "a": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "b": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 3},
        "c": {"type": "string", "default": "open"},
        "d": {"type": "integer", "default": 10},
        "e": {"default": None},
        "g": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    }
    validator = compile_schema(schema)
    assert validator.is_valid({})
    args, kwargs = described.bind({})
    assert f(*args, **kwargs) == (None, 3, "open", 10, None, None)
    assert validator.is_valid({"a": None, "b": None, "e": {"any": ["thing"]}, "g": None})
    assert [fault["path"] for fault in validator.faults({"c": None, "d": None})] == ["/c", "/d"]


@pytest.mark.parametrize(
    ("default", "expected"),
    [
        (True, {"type": "boolean", "default": True}),
        (1.5, {"type": "number", "default": 1.5}),
        ([], {"items": {}, "type": "array", "default": []}),
        ({"a": 1}, {"additionalProperties": True, "type": "object", "default": {"a": 1}}),
        (Color.BLUE, {"enum": ["red", "blue"], "type": "string", "default": "blue"}),
        (Level.LOW, {"enum": [1, 2], "type": "integer", "default": 1}),
        (datetime.date(2026, 1, 2), {"type": "string", "format": "date", "default": "2026-01-02"}),
        (Path("a/b"), {"type": "string", "format": "path", "default": "a/b"}),
        (object(), {}),
        (math.inf, {"type": "number"}),
    ],
)
def test_a_parameter_without_annotation_has_the_type_of_its_default(default: object, expected: JsonObject) -> None:
    def f(x=default): ...  # pyright: ignore[reportMissingParameterType]

    assert properties(f)["x"] == expected


def test_a_default_of_none_lets_null_pass_beside_constraints() -> None:
    def f(x: Annotated[int, Field(ge=3)] = None): ...  # noqa: RUF013  # pyright: ignore[reportArgumentType]

    validator = compile_schema(describe(f).input_schema)
    assert validator.is_valid({"x": None})
    assert not validator.is_valid({"x": 2})


def test_a_default_that_does_not_fit_its_type_is_not_published() -> None:
    def f(x: int = "many"): ...  # pyright: ignore[reportArgumentType]

    assert properties(f)["x"] == {"type": "integer"}
    assert describe(f).bind({}) == ([], {})


# B086


def test_b086_enums_and_literals_are_values() -> None:
    """google/adk-python#398: enum parameters."""

    def f(c: Color, d: Color = Color.RED, n: Literal[1, 2] = 1, e: Level = Level.HIGH) -> bool:
        return c is Color.RED and d is Color.RED and e is Level.HIGH

    described = describe(f)
    assert described.input_schema["properties"] == {
        "c": {"enum": ["red", "blue"], "type": "string"},
        "d": {"enum": ["red", "blue"], "type": "string", "default": "red"},
        "n": {"enum": [1, 2], "type": "integer", "default": 1},
        "e": {"enum": [1, 2], "type": "integer", "default": 2},
    }
    json.dumps(described.input_schema)
    args, kwargs = described.bind({"c": "red"})
    assert f(*args, **kwargs)
    assert describe(f).bind({"c": "blue", "e": 1.0})[1] == {"c": Color.BLUE, "e": Level.LOW}
    for wrong in ("RED", "green"):
        (fault,) = compile_schema(described.input_schema).faults({"c": wrong})
        assert fault["path"] == "/c"
        assert '"red", "blue"' in fault["message"]


def test_a_literal_of_enum_members_takes_their_values() -> None:
    def f(c: Literal[Color.RED]): ...

    assert describe(f).bind({"c": "red"}) == ([], {"c": Color.RED})


# B090


async def add(a: int, b: int = 2) -> int:
    """Adds."""
    return a + b


def scale(x: float, factor: float) -> float:
    """Scales."""
    return x * factor


class Shop:
    """A shop.

    Args:
        good: what to buy
    """

    def buy(self, good: str) -> str:
        """Buy."""
        return good

    @staticmethod
    def rate(x: int) -> int:
        """Rate."""
        return x

    @classmethod
    async def open(cls, name: str) -> str:
        """Open."""
        return name

    async def __call__(self, good: str) -> str:
        return good


def test_b090_partials_are_described_without_what_they_bind() -> None:
    """PrefectHQ/fastmcp#3269, #3266: functools.partial as a tool."""
    scaled = describe(functools.partial(scale, factor=3))
    assert (scaled.name, scaled.description, list(scaled.input_schema["properties"])) == ("scale", "Scales.", ["x"])
    assert scaled.input_schema["required"] == ["x"]
    fn = functools.partial(scale, factor=3)
    args, kwargs = scaled.bind({"x": 2.0})
    assert fn(*args, **kwargs) == 6.0
    added = describe(functools.partial(add, 1))
    assert (added.name, added.is_async, list(added.input_schema["properties"])) == ("add", True, ["b"])


def test_a_secret_that_a_partial_has_bound_is_nowhere_in_the_schema() -> None:
    def fetch(url: str, key: str = "") -> str:
        return url + key

    assert "hunter2" not in json.dumps(describe(functools.partial(fetch, key="hunter2")).input_schema)


def test_b090_methods_never_show_their_instance() -> None:
    """PrefectHQ/fastmcp#55: self in the schema."""
    shop = Shop()
    for fn, name, is_async, parameters in (
        (shop.buy, "buy", False, ["good"]),
        (Shop.rate, "rate", False, ["x"]),
        (shop.rate, "rate", False, ["x"]),
        (Shop.open, "open", True, ["name"]),
        (vars(Shop)["rate"], "rate", False, ["x"]),
        (vars(Shop)["open"], "open", True, ["name"]),
    ):
        described = describe(fn)
        assert (described.name, described.is_async, list(described.input_schema["properties"])) == (
            name,
            is_async,
            parameters,
        )
    assert list(properties(Shop.buy, method=True)) == ["good"]


def test_b090_objects_with_an_async_call_are_async() -> None:
    """openai/openai-agents-python#3958: async `__call__`; modelcontextprotocol/python-sdk#1974: callable instances."""
    described = describe(Shop())
    assert (described.name, described.is_async, described.description) == ("Shop", True, "A shop.")
    assert described.input_schema["properties"]["good"]["description"] == "what to buy"
    assert describe(functools.partial(Shop(), good="x")).is_async


def test_b090_decorated_functions_and_lambdas_and_builtins() -> None:
    """PrefectHQ/fastmcp#3269."""

    def decorator(fn: Any) -> Any:
        @functools.wraps(fn)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            return await fn(*args, **kwargs)

        return wrapper

    wrapped = describe(decorator(add))
    assert (wrapped.name, wrapped.is_async, list(wrapped.input_schema["properties"])) == ("add", True, ["a", "b"])
    unnamed = describe(cast(Any, lambda x: x))  # pyright: ignore[reportUnknownLambdaType]
    assert (unnamed.name, unnamed.input_schema["required"]) == ("lambda", ["x"])
    length = describe(len)
    assert length.name == "len"
    args, kwargs = length.bind({"obj": [1, 2]})
    assert len(*args, **kwargs) == 2
    with pytest.raises(SignatureError, match=r"max\(\)"):
        describe(max)


def test_names_and_descriptions_can_be_given() -> None:
    described = describe(add, name="plus", description="")
    assert (described.name, described.description) == ("plus", "")


# Definition errors


def test_variable_arguments_are_refused_by_name() -> None:
    def f(*things: int): ...
    def g(a: int, **options: int): ...

    with pytest.raises(SignatureError, match=r"parameter 'things' of .*f\(\)"):
        describe(f)
    with pytest.raises(SignatureError, match=r"parameter 'options' of .*g\(\)"):
        describe(g)


def test_hints_that_do_not_resolve_are_refused_by_name() -> None:
    def f(a: int, b: object) -> object: ...

    f.__annotations__ = {"a": "int", "b": "Ghost", "return": "int"}
    with pytest.raises(SignatureError, match=r"parameter 'b' of .*f\(\).*'Ghost'"):
        describe(f)
    f.__annotations__ = {"a": "list[Ghost]", "b": "int", "return": "int"}
    with pytest.raises(SignatureError, match=r"parameter 'a' of .*f\(\).*Ghost"):
        describe(f)
    f.__annotations__ = {"a": "not python", "b": "int", "return": "int"}
    with pytest.raises(SignatureError, match=r"parameter 'a' of .*f\(\)"):
        describe(f)
    f.__annotations__ = {"a": "int", "b": "int", "return": "Ghost"}
    with pytest.raises(SignatureError, match=r"return type of .*f\(\)"):
        describe(f)


def test_types_without_a_schema_are_refused_by_name() -> None:
    def f(a: int, s: socket.socket): ...
    def g(c: collections.abc.Callable[[int], int]): ...

    with pytest.raises(SignatureError, match=r"parameter 's' of .*f\(\)"):
        describe(f)
    with pytest.raises(SignatureError, match=r"parameter 'c' of .*g\(\)"):
        describe(g)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(SignatureError, match="5"):
        describe(5)  # pyright: ignore[reportArgumentType]


# Types


def test_types_that_are_local_to_a_function_resolve() -> None:
    class Local(enum.Enum):
        A = "a"

    @dataclasses.dataclass
    class Holder:
        inner: Local

    class Color(enum.Enum):  # hides the module's
        MINE = "mine"

    assert Color.MINE

    def f(x: Local, y: list[Holder], z: Color) -> Holder | None: ...

    described = describe(f)
    assert described.input_schema["properties"]["x"] == {"enum": ["a"], "type": "string"}
    assert described.input_schema["properties"]["z"] == {"enum": ["mine"], "type": "string"}
    assert described.bind({"x": "a", "y": [{"inner": "a"}], "z": "mine"})[1]["y"] == [Holder(Local.A)]
    assert described.output_schema is not None


def test_types_of_a_class_body_resolve() -> None:
    class Kit:
        class Mode(enum.Enum):
            FAST = "fast"

        def run(self, mode: Mode) -> None: ...

        described = describe(run, method=True)

    assert Kit.described.input_schema["properties"]["mode"] == {"enum": ["fast"], "type": "string"}
    assert properties(Kit().run)["mode"] == {"enum": ["fast"], "type": "string"}


def test_models_dataclasses_and_typed_dicts_are_closed_objects_without_titles() -> None:
    def f(node: Node, box: Box, point: Point, loose: Loose, boxes: list[Box]) -> None: ...

    described = describe(f)
    schema = described.input_schema
    assert titles(schema) == []
    assert set(schema["$defs"]["Node"]["properties"]) == {"title", "default", "kids"}
    assert schema["$defs"]["Node"]["required"] == ["title"]
    assert set(schema["$defs"]["Loose"]["properties"]) == {"title", "default"}
    assert schema["$defs"]["Loose"]["required"] == ["title"]
    assert schema["$defs"]["Point"]["required"] == ["x"]
    good = {
        "node": {"title": "t", "kids": [{"title": "u"}]},
        "box": {"width": 1.0, "color": "blue"},
        "point": {"x": 1, "label": "5"},
        "loose": {"title": "x", "default": "2026-01-02"},
        "boxes": [{"width": 2}],
    }
    validator = compile_schema(schema)
    assert validator.faults(good) == []
    assert describe(f).bind(good)[1] == {
        "node": Node(title="t", kids=[Node(title="u")]),
        "box": Box(1, Color.BLUE),
        "point": {"x": 1, "label": "5"},
        "loose": {"title": "x", "default": datetime.date(2026, 1, 2)},
        "boxes": [Box(2)],
    }
    for name, part in (
        ("node", {"title": "t", "tilte": 1}),
        ("box", {"width": 1, "wdith": 2}),
        ("point", {"x": 1, "y": 2}),
    ):
        (fault,) = validator.faults({**good, name: part})
        assert fault["path"].startswith(f"/{name}/")


def test_a_model_that_says_what_to_do_with_extra_fields_is_left_open() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="ignore")
        a: int

    def f(o: Open): ...

    assert compile_schema(describe(f).input_schema).is_valid({"o": {"a": 1, "b": 2}})


def test_b010_parameters_may_be_called_like_keywords() -> None:
    """PrefectHQ/fastmcp#3576: properties called title, default, format, description, type."""

    def f(title: str, type: str, format: str = "f", default: int = 1, description: str = "", properties: int = 0): ...

    schema = describe(f).input_schema
    assert list(schema["properties"]) == ["title", "type", "format", "default", "description", "properties"]
    assert schema["required"] == ["title", "type"]
    assert titles(schema) == []


def test_descriptions_come_from_field_then_annotation_then_docstring() -> None:
    def f(
        a: Annotated[str, "annotated", Field(description="field")],
        b: Annotated[str, "annotated"],
        c: str,
        d: Annotated[str, "inner"] | None = None,
        e: int = Field(3, description="assigned"),
        g: Annotated[int, typing_extensions.Doc("doc")] = 1,
    ) -> None:
        """Do.

        Args:
            a: docstring
            b: docstring
            c: docstring
            d: docstring
            e: docstring
        """

    assert {name: part["description"] for name, part in properties(f).items()} == {
        "a": "field",
        "b": "annotated",
        "c": "docstring",
        "d": "inner",
        "e": "assigned",
        "g": "doc",
    }


def test_fields_keep_their_constraints_examples_and_own_title() -> None:
    def f(
        n: Annotated[int, Field(ge=1, le=9, examples=[3], title="Number", json_schema_extra={"x-order": 1})],
        word: Annotated[str, Field(min_length=2, pattern="^a")] = "ab",
    ) -> None: ...

    assert properties(f) == {
        "n": {"minimum": 1, "maximum": 9, "examples": [3], "type": "integer", "x-order": 1, "title": "Number"},
        "word": {"minLength": 2, "pattern": "^a", "type": "string", "default": "ab"},
    }


def test_a_default_inside_a_field_reaches_the_function() -> None:
    def f(
        a: int = Field(5), b: list[int] = Field(default_factory=list), c: Annotated[int, Field(alias="from")] = 3
    ): ...

    described = describe(f)
    assert "required" not in described.input_schema
    assert described.input_schema["properties"]["from"] == {"type": "integer", "default": 3}
    first, second = described.bind({})[1], described.bind({"from": 4})[1]
    assert first == {"a": 5, "b": []}
    assert second == {"a": 5, "b": [], "c": 4}
    assert first["b"] is not second["b"]


def test_the_context_is_injected_and_hidden() -> None:
    def f(a: int, ctx: CapabilityContext): ...
    def g(ctx: CapabilityContext | None = None, a: int = 1): ...
    def h(ctx: Annotated[CapabilityContext, "who calls"], a: int): ...

    for fn in (f, g, h):
        described = describe(fn)
        assert described.context_parameter == "ctx"
        assert list(described.input_schema["properties"]) == ["a"]

    def twice(a: CapabilityContext, b: CapabilityContext): ...

    with pytest.raises(SignatureError, match=r"twice\(\)"):
        describe(twice)


def test_a_secret_parameter_is_marked_and_its_default_is_not_shown() -> None:
    class Login(BaseModel):
        user: str = "root"
        password: SecretStr = SecretStr("hunter2")

    def f(
        key: SecretStr,
        login: Login,
        other: SecretStr = SecretStr("hunter2"),
        third=SecretStr("hunter2"),  # pyright: ignore[reportMissingParameterType]
    ): ...

    described = describe(f)
    assert secret_pointers(described.input_schema) == ["/key", "/login/password", "/other"]
    text = json.dumps(described.input_schema)
    assert "hunter2" not in text
    assert "***" not in text
    assert described.bind({"key": "k", "login": {}})[1]["key"].get_secret_value() == "k"


T = TypeVar("T")


class Pair(BaseModel, Generic[T]):
    left: T
    right: T


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (int, {"type": "integer"}),
        (None, {"type": "null"}),
        (list[int], {"items": {"type": "integer"}, "type": "array"}),
        (Color, {"enum": ["red", "blue"], "type": "string"}),
        (Decimal, {"type": "string"}),
        (datetime.datetime, {"format": "date-time", "type": "string"}),
        (uuid.UUID, {"format": "uuid", "type": "string"}),
        (collections.abc.Awaitable[int], {"type": "integer"}),
        (collections.abc.Coroutine[Any, Any, str], {"type": "string"}),
        (Any, None),
        (bytes, None),
        (socket.socket, None),
        (InvocableResult, None),
        (list[TextPart | ImagePart], None),
        (str | ImagePart, None),
        (collections.abc.Iterator[int], None),
        (collections.abc.AsyncIterator[int], None),
        (collections.abc.Callable[[], int], None),
        (typing.NoReturn, None),
    ],
)
def test_the_return_type_is_the_output_schema(hint: Any, expected: JsonObject | None) -> None:
    def f() -> Any: ...

    f.__annotations__["return"] = hint
    assert describe(f).output_schema == expected


def test_without_a_return_type_nothing_is_promised() -> None:
    def f(): ...

    assert describe(f).output_schema is None


def test_a_model_that_refers_to_itself_is_an_object_at_the_root() -> None:
    def f() -> Node: ...
    def g() -> Pair[int]: ...

    tree, pair = describe(f).output_schema, describe(g).output_schema
    assert tree is not None
    assert pair is not None
    assert (tree["type"], pair["type"]) == ("object", "object")
    assert titles(tree) == titles(pair) == []
    assert compile_schema(tree).is_valid(Node(title="a", kids=[Node(title="b")]).model_dump(mode="json"))


# B093, B088, B070: arguments


def test_b093_misspelled_arguments_are_named() -> None:
    """modelcontextprotocol/python-sdk#3067: unknown arguments were dropped."""

    def read(topic: str = "") -> str:
        return topic

    schema = describe(read).input_schema
    assert schema["additionalProperties"] is False
    (fault,) = compile_schema(schema).faults({"path": "x"})
    assert fault["path"] == "/path"
    assert "'path'" in fault["message"]
    assert "'topic'" in fault["message"]
    (fault,) = compile_schema(schema).faults({"topci": "x"})
    assert "did you mean 'topic'?" in fault["message"]
    with pytest.raises(InvalidInput) as raised:
        describe(read).bind({"topci": "x"})
    assert "did you mean 'topic'?" in raised.value.errors[0]["message"]


def test_b088_strings_that_look_like_json_stay_strings() -> None:
    """modelcontextprotocol/python-sdk#3055: JSON-looking strings were parsed."""

    def f(s: str, t: str | None, u: list[int]): ...

    described = describe(f)
    validator = compile_schema(described.input_schema)
    for s, t in (("123", '{"a":1}'), ("true", "null"), ("[1]", None)):
        arguments = {"s": s, "t": t, "u": [1]}
        assert validator.is_valid(arguments)
        assert described.bind(arguments) == ([], arguments)
    (fault,) = validator.faults({"s": "[1]", "t": None, "u": "[1,2]"})
    assert fault == {"path": "/u", "message": "must be an array, not a string"}


def test_a_parameter_with_its_own_validator_is_checked_by_it() -> None:
    def even(value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value

    def f(n: Annotated[int, AfterValidator(even)], when: datetime.date): ...

    with pytest.raises(InvalidInput) as raised:
        describe(f).bind({"n": 3, "when": "yesterday"})
    assert [(fault["path"], fault["message"].split(",")[0]) for fault in raised.value.errors] == [
        ("/n", "must be even"),
        ("/when", "must be a valid date or datetime"),
    ]


def list_of(item: Any) -> Any:
    return list[item]


def dict_of(item: Any) -> Any:
    return dict[str, item]


def either(one: Any, other: Any) -> Any:
    return Union[one, other]  # noqa: UP007


PLAIN_HINTS: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([str, int, float, bool, None, Any, object, list, dict, datetime.date, Literal[1, "a"]]),
    lambda inner: st.builds(list_of, inner) | st.builds(dict_of, inner) | st.builds(either, inner, inner | st.none()),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None)
@given(PLAIN_HINTS)
def test_plain_types_have_the_schema_that_pydantic_gives_them(hint: Any) -> None:
    def f(x: Any) -> Any: ...

    f.__annotations__ = {"x": hint, "return": hint}
    described = describe(f)
    expected = TypeAdapter(hint).json_schema()
    assert described.input_schema["properties"]["x"] == expected
    assert described.output_schema == (expected or None)  # what promises nothing has none
