"""From a valid JSON argument to what a parameter's type means.

Most parameters are plain JSON types, whose values pass as they are: only numbers are looked at (1.0 is an integer, and
reaches an `int` as 1). pydantic is asked for the rest, in its reading of JSON.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen, MultipleOf
from pydantic import TypeAdapter
from pydantic_core import to_json

from .hints import is_union

Convert: TypeAlias = Callable[[Any], Any] | None
"""None where a value passes as it is."""

_AS_IT_IS: Final = (str, bool, type(None), None, object, Any)
_LISTS: Final = (list, Sequence, MutableSequence, Iterable)
_MAPPINGS: Final = (dict, Mapping, MutableMapping)
_CONSTRAINTS: Final = (str, Ge, Gt, Le, Lt, MaxLen, MinLen, MultipleOf)
"""What JSON Schema says in full; a string is a description."""


class NotPlainError(Exception):
    """The type is more than JSON."""


def to_int(value: Any) -> Any:
    """A whole float as the integer that it is; anything else as it is."""
    return int(value) if type(value) is float and value.is_integer() else value


def to_float(value: Any) -> Any:
    """An integer as a float where that is exact; a larger one stays an integer, so that no digit is lost."""
    if type(value) is not int:
        return value
    try:
        number = float(value)
    except OverflowError:
        return value
    return number if number == value else value


def conversion(hint: Any, adapter: Callable[[], TypeAdapter[Any]]) -> Convert:
    """How a value for `hint` is converted; `adapter` makes pydantic's, where it is needed."""
    try:
        return plain(hint)
    except NotPlainError:
        return _by(adapter())


def _by(adapter: TypeAdapter[Any]) -> Convert:
    validate = adapter.validator.validate_json

    def convert(value: Any) -> Any:
        return validate(to_json(value))

    return convert


def plain(hint: Any) -> Convert:
    """How a value of a plain JSON type is converted. Raises `NotPlainError` where it is not one."""
    if any(hint is kind for kind in _AS_IT_IS):
        return None
    if hint is int:
        return to_int
    if hint is float:
        return to_float
    if hint is list or hint is dict:
        return _own_list if hint is list else None
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        if all(isinstance(extra, _CONSTRAINTS) for extra in args[1:]):
            return plain(args[0])
    elif origin is Literal:
        return _of_literal(args)
    elif is_union(hint):
        return _of_union([arg for arg in args if arg is not type(None)])
    elif origin in _LISTS and len(args) == 1:
        return _of_list(plain(args[0]))
    elif origin in _MAPPINGS and len(args) == 2 and args[0] is str:
        return _of_mapping(plain(args[1]))
    raise NotPlainError


def _of_literal(members: tuple[Any, ...]) -> Convert:
    if not all(type(member) in (str, int, bool, type(None)) for member in members):
        raise NotPlainError
    return to_int if any(type(member) is int for member in members) else None


def _own_list(value: Any) -> Any:
    return list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value


def _of_list(item: Convert) -> Convert:
    if item is None:
        return _own_list

    def convert(value: Any) -> Any:
        return [item(each) for each in value]

    return convert


def _of_mapping(item: Convert) -> Convert:
    if item is None:
        return None

    def convert(value: Any) -> Any:
        return {name: item(each) for name, each in value.items()}

    return convert


def _of_union(members: list[Any]) -> Convert:
    """Numbers by what the union offers; an array or an object by its only member of that kind."""
    kinds = [_kind(member) for member in members]
    numbers = {kind for kind in kinds if kind in ("integer", "number")}
    number: Convert = None
    if len(numbers) == 1:
        number = to_int if "integer" in numbers else to_float
    if kinds.count("array") > 1 or kinds.count("object") > 1:
        raise NotPlainError
    converts = {kind: plain(member) for kind, member in zip(kinds, members, strict=True)}
    array, mapping = converts.get("array"), converts.get("object")
    if number is None and array is None and mapping is None:
        return None

    def convert(value: Any) -> Any:
        kind = cast("type[Any]", type(value))
        own = array if issubclass(kind, list | tuple) else mapping if issubclass(kind, dict) else number
        return value if own is None else own(value)

    return convert


def _kind(hint: Any) -> str:
    origin = typing.get_origin(hint)
    if origin is Annotated:
        return _kind(typing.get_args(hint)[0])
    if hint is int or (origin is Literal and any(type(member) is int for member in typing.get_args(hint))):
        return "integer"
    if hint is float:
        return "number"
    if hint is list or origin in _LISTS:
        return "array"
    if hint is dict or origin in _MAPPINGS:
        return "object"
    if hint in (str, bool) or origin is Literal:
        return "string"
    raise NotPlainError
