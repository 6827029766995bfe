"""Annotations as types: strings are resolved, and what pydantic reads differently from what JSON carries is replaced."""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import AsyncIterable, Awaitable, Coroutine
from enum import Enum
from functools import cached_property
from typing import Annotated, Any, Literal, Union

import typing_extensions
from pydantic import Base64Encoder, BeforeValidator, EncodedBytes, WithJsonSchema

from .callables import namespaces, visible_names


class Scope:
    """Where the annotations of one function were written."""

    def __init__(self, fn: Any) -> None:
        self._fn = fn

    @cached_property
    def _names(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return namespaces(self._fn)

    def resolve(self, name: str, annotation: Any) -> Any:
        """The type that `annotation` of `name` means. Raises whatever its evaluation raises."""
        if isinstance(annotation, type) and not typing.get_args(annotation):
            return annotation
        globals_, locals_ = self._names
        try:
            return _evaluated(name, annotation, globals_, locals_)
        except NameError:
            return _evaluated(name, annotation, globals_, self.visible)

    @property
    def visible(self) -> dict[str, Any]:
        """Every local name that can still be seen from there."""
        return {**visible_names(self._fn), **self._names[1]}


def _evaluated(name: str, annotation: Any, globals_: dict[str, Any], locals_: dict[str, Any]) -> Any:
    def holder() -> None: ...

    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    holder.__annotations__ = {name: annotation}
    return typing.get_type_hints(holder, globals_, locals_, include_extras=True)[name]


def is_union(hint: Any) -> bool:
    """Whether it is `X | Y`, `Union` or `Optional`."""
    return typing.get_origin(hint) in (Union, types.UnionType)


def parts_of(hint: Any) -> tuple[Any, ...]:
    """The type inside `Annotated`, the members of a union, the parameters of a generic."""
    if typing.get_origin(hint) is Annotated:
        return (typing.get_args(hint)[0],)
    if typing.get_origin(hint) is Literal:
        return ()
    return typing.get_args(hint)


def accepts_none(hint: Any) -> bool:
    """Whether None is one of its values."""
    if hint is Any or hint is object or hint is None or hint is type(None):
        return True
    if typing.get_origin(hint) is Literal:
        return None in typing.get_args(hint)
    if typing.get_origin(hint) is Annotated or is_union(hint):
        return any(accepts_none(part) for part in parts_of(hint))
    return False


def awaited(hint: Any) -> Any:
    """What awaiting gives, where a plain function is annotated as returning an awaitable."""
    origin = typing.get_origin(hint)
    if isinstance(origin, type) and issubclass(origin, Awaitable) and not issubclass(origin, AsyncIterable):
        args = typing.get_args(hint)
        return (args[-1] if origin is Coroutine else args[0]) if args else Any
    return hint


_BYTES = Annotated[
    bytes,
    EncodedBytes(encoder=Base64Encoder),
    WithJsonSchema({"type": "string", "contentEncoding": "base64", "format": "base64"}),
]


class JsonTypes:
    """Types as pydantic is to read them from JSON.

    `bytes` is base64, a `Literal` of enum members takes their values, and `typing.TypedDict`, which pydantic refuses
    before Python 3.12, becomes the one of typing_extensions.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._typed_dicts: dict[Any, Any] = {}

    def of(self, hint: Any) -> Any:
        """The same type, to be read from JSON."""
        if hint is bytes:
            return _BYTES
        if sys.version_info < (3, 12) and typing.is_typeddict(hint) and type(hint).__module__ == "typing":
            return self._typed_dict(hint)
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if origin is None or not args:
            return hint
        if origin is Literal:
            return _literal(hint, args)
        if origin is Annotated:
            inner = self.of(args[0])
            return hint if inner is args[0] else Annotated[(inner, *args[1:])]
        if any(isinstance(arg, list) for arg in args):  # Callable[[...], ...]
            return hint
        new = tuple(self.of(arg) for arg in args)
        if all(one is other for one, other in zip(new, args, strict=True)):
            return hint
        if is_union(hint):
            return Union[new]  # noqa: UP007 - the members are known at run time only
        if hasattr(hint, "copy_with"):
            return hint.copy_with(new)
        return origin[new]

    def _typed_dict(self, kind: Any) -> Any:
        if kind in self._typed_dicts:
            if self._typed_dicts[kind] is None:
                raise TypeError(f"{kind.__name__} refers to itself: use typing_extensions.TypedDict before Python 3.12")
            return self._typed_dicts[kind]
        self._typed_dicts[kind] = None
        try:
            hints = typing.get_type_hints(kind, include_extras=True)
        except NameError:
            hints = typing.get_type_hints(kind, localns=self._scope.visible, include_extras=True)
        make: Any = typing_extensions.TypedDict
        made: Any = make(kind.__name__, {name: self._field(kind, name, hint) for name, hint in hints.items()})
        made.__doc__, made.__module__, made.__qualname__ = kind.__doc__, kind.__module__, kind.__qualname__
        if hasattr(kind, "__pydantic_config__"):
            made.__pydantic_config__ = kind.__pydantic_config__
        self._typed_dicts[kind] = made
        return made

    def _field(self, kind: Any, name: str, hint: Any) -> Any:
        # `__required_keys__` does not see a `Required` that stood in a string.
        origin = typing.get_origin(hint)
        if origin in _PRESENCE:
            required, hint = _PRESENCE[origin], typing.get_args(hint)[0]
        else:
            required = name in kind.__required_keys__
        wrapper: Any = typing_extensions.Required if required else typing_extensions.NotRequired
        return wrapper[self.of(hint)]


def _literal(hint: Any, members: tuple[Any, ...]) -> Any:
    values = {member.value: member for member in members if isinstance(member, Enum)}
    if not values:
        return hint

    def member_of(value: object) -> object:
        try:
            return values.get(value, value)
        except TypeError:  # unhashable: an array or an object
            return value

    return Annotated[hint, BeforeValidator(member_of)]


_PRESENCE: dict[Any, bool] = {
    typing.Required: True,
    typing.NotRequired: False,
    typing_extensions.Required: True,
    typing_extensions.NotRequired: False,
}
