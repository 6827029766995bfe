"""A Python signature as a JSON Schema, and back: JSON arguments as the call that the function expects."""

from __future__ import annotations

import datetime
import decimal
import functools
import inspect
import pathlib
import sys
import typing
import uuid
from collections.abc import AsyncIterable, Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import NoneType
from typing import Annotated, Any, Final, Literal, Union, cast

from pydantic import (
    Field,
    PydanticInvalidForJsonSchema,
    PydanticSchemaGenerationError,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticOmit, PydanticSerializationError, PydanticUndefined
from pydantic_core import SchemaError as CoreSchemaError

from anykit.capabilities import CapabilityContext, Fault, InvalidInput, Json, JsonObject

from .callables import docstrings_of, is_async, label_of, name_of
from .conversion import Convert, conversion
from .docstrings import read_docstring
from .documents import Document
from .errors import SignatureError
from .generation import generate, holds_mask, plain_schema, with_definitions
from .hints import JsonTypes, Scope, accepts_none, awaited, is_union, parts_of
from .json_values import is_json
from .pointers import listed, nearest, pointer, quoted, step
from .secrets import Secrets
from .validation import compile_schema

_EMPTY: Final = inspect.Parameter.empty
_NO_SCHEMA: Final = (
    PydanticSchemaGenerationError,
    PydanticInvalidForJsonSchema,
    PydanticUserError,
    PydanticOmit,
    CoreSchemaError,
    TypeError,
    NameError,
)
_INFERRED: Final[tuple[type[Any], ...]] = (
    bool,
    int,
    float,
    str,
    list,
    dict,
    datetime.datetime,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    decimal.Decimal,
    uuid.UUID,
)
"""Types that a parameter without an annotation has from its default."""
_RESULTS: Final = ("anykit.capabilities", "anykit.tools")
"""Types of these are results already, or parts of one; they promise no structure."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter that a caller gives."""

    name: str
    """In JSON: the alias of its `Field`, else the Python name."""
    python_name: str
    positional: bool
    """It has no name in a call."""
    required: bool
    convert: Convert
    default: Callable[[], Any] | None = None
    """Makes what Python would not: the default inside a `Field`, or one in front of a positional argument."""
    filled: bool = False
    """It must be passed even where it is missing: Python's own default is a `Field`."""


@dataclass(frozen=True, slots=True)
class FunctionSchema:
    """What a function is called, says, takes and gives."""

    name: str
    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None
    """None where the return type promises nothing that JSON Schema can say."""
    is_async: bool
    """Calling it gives something to await. A plain function may still return an awaitable."""
    context_parameter: str | None
    """The Python name of the parameter that takes the `CapabilityContext`."""
    parameters: tuple[Parameter, ...] = ()
    _by_name: dict[str, Parameter] = field(init=False, repr=False, compare=False)
    _required: frozenset[str] = field(init=False, repr=False, compare=False)
    _simple: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {parameter.name: parameter for parameter in self.parameters})
        object.__setattr__(self, "_required", frozenset(p.name for p in self.parameters if p.required))
        object.__setattr__(
            self,
            "_simple",
            not any(p.positional or p.filled or p.name != p.python_name for p in self.parameters),
        )

    def bind(self, arguments: JsonObject) -> tuple[list[Any], dict[str, Any]]:
        """The call for `arguments`, which are valid by `input_schema`: positional and named values.

        Missing arguments are left to Python's own defaults. The context is not among them. Raises `InvalidInput` with
        every fault that only the types know (a bad date, a model's own rule), and where a name is missing or unknown.
        """
        try:
            if self._simple and self._required <= arguments.keys():
                by_name = self._by_name
                named: dict[str, Any] = {}
                for name, value in arguments.items():
                    convert = by_name[name].convert
                    named[name] = value if convert is None else convert(value)
                return [], named
            return self._bind(arguments)
        except (ValidationError, PydanticSerializationError, KeyError, TypeError, AttributeError, RecursionError):
            faults = self._faults(arguments)
            if not faults:
                raise
        raise InvalidInput(f"invalid arguments for {self.name}", faults)

    def _bind(self, arguments: JsonObject) -> tuple[list[Any], dict[str, Any]]:
        if not self._required <= arguments.keys() or not arguments.keys() <= self._by_name.keys():
            raise KeyError
        positional: list[Any] = []
        named: dict[str, Any] = {}
        last = max((i for i, p in enumerate(self.parameters) if p.positional and p.name in arguments), default=-1)
        for index, parameter in enumerate(self.parameters):
            if parameter.name in arguments:
                value = arguments[parameter.name]
                value = value if parameter.convert is None else parameter.convert(value)
            elif parameter.default is not None and (parameter.filled or (parameter.positional and index < last)):
                value = parameter.default()
            else:
                continue
            if parameter.positional:
                positional.append(value)
            else:
                named[parameter.python_name] = value
        return positional, named

    def further_faults(self, arguments: object, faults: Sequence[Fault]) -> list[Fault]:
        """What only the types know of the arguments in which the schema found no fault, where it found some in others."""
        if not is_json(arguments) or not isinstance(arguments, dict):
            return []
        given = cast(JsonObject, arguments)
        found = {fault["path"].split("/")[1] for fault in faults if fault["path"]}
        return self._type_faults(
            {name: value for name, value in given.items() if pointer((name,)).removeprefix("/") not in found}
        )

    def _faults(self, arguments: object) -> list[Fault]:
        """Every fault of arguments that could not be bound."""
        if not isinstance(arguments, dict):
            return [{"path": "", "message": "must be an object"}]
        given = cast(JsonObject, arguments)
        faults: list[Fault] = [
            {"path": pointer((name,)), "message": f"{quoted(name)} is required"}
            for name in self._by_name
            if name in self._required and name not in given
        ]
        for name in given:
            if name not in self._by_name:
                allowed = list(self._by_name)
                faults.append(
                    {
                        "path": pointer((name,)),
                        "message": f"{quoted(name)} is not allowed; allowed: {listed(allowed) or 'none'}"
                        f"{nearest(str(name), allowed)}",
                    }
                )
        return [*faults, *self._type_faults(given)]

    def _type_faults(self, given: JsonObject) -> list[Fault]:
        """What the parameters' types find wrong with their values."""
        secrets = Secrets(Document(self.input_schema))
        hidden = list(secrets.texts(given)) if is_json(given) else []
        faults: list[Fault] = []
        for name, value in given.items():
            parameter = self._by_name.get(name)
            if parameter is not None and parameter.convert is not None:
                faults += _conversion_faults(name, value, parameter.convert, secrets, hidden)
        return faults


def _conversion_faults(
    name: str, value: Json, convert: Callable[[Any], Any], secrets: Secrets, hidden: Sequence[str]
) -> list[Fault]:
    try:
        convert(value)
    except ValidationError as error:
        faults: list[Fault] = []
        for each in error.errors(include_url=False, include_context=False, include_input=False):
            tokens = (name, *_place(each["loc"], value, missing=each["type"] == "missing"))
            message = _sentence(each["msg"])
            secret = secrets.prefix(tokens)
            if secret is not None:
                tokens, message = secret, "is not valid"
            elif any(text in message for text in hidden):
                message = "is not valid"
            faults.append({"path": pointer(tokens), "message": message})
        return faults
    except (PydanticSerializationError, TypeError, ValueError, AttributeError, RecursionError):
        return [{"path": pointer((name,)), "message": "is not of the type that the schema asks for"}]
    return []


def _place(location: tuple[int | str, ...], value: Json, *, missing: bool) -> tuple[int | str, ...]:
    """The part of pydantic's location that leads through the value; the names of union members are left out."""
    tokens: list[int | str] = []
    for index, token in enumerate(location):
        found, inner = step(value, token)
        if found:
            tokens.append(token)
            value = inner
        elif missing and index == len(location) - 1:
            tokens.append(token)
    return tuple(tokens)


def _sentence(message: str) -> str:
    """pydantic's words in the form of ours: what the value must be."""
    for prefix in ("Value error, ", "Assertion failed, "):
        message = message.removeprefix(prefix)
    if message.startswith("Input should be "):
        message = f"must be {message.removeprefix('Input should be ')}"
    return message if len(message) <= 300 else f"{message[:297]}..."


def describe(
    fn: Callable[..., Any], *, name: str | None = None, description: str | None = None, method: bool = False
) -> FunctionSchema:
    """Read a callable: function, method, partial, lambda, class, object with `__call__`, and what decorates one.

    With `method` the first parameter is the instance and is left out. What a partial has bound is left out too, and so
    is a parameter annotated `CapabilityContext`. A string argument is never read as JSON: where the type is no string, it
    is refused. Raises `SignatureError`.
    """
    return _Reading(fn, method=method).schema(name=name, description=description)


@dataclass(slots=True)
class _Read:
    """A parameter as far as it is read."""

    parameter: inspect.Parameter
    field: FieldInfo
    hint: Any
    description: str | None
    default: Any
    """Python's value, or PydanticUndefined."""

    @property
    def name(self) -> str:
        alias = self.field.validation_alias
        return alias if isinstance(alias, str) else self.parameter.name


class _Reading:
    def __init__(self, fn: Any, *, method: bool) -> None:
        self._fn = fn
        self._label = label_of(fn) if callable(fn) or isinstance(fn, staticmethod | classmethod) else repr(fn)
        self._scope = Scope(fn)
        self._types = JsonTypes(self._scope)
        self._signature = self._read_signature(fn, method=method)

    def _read_signature(self, fn: Any, *, method: bool) -> inspect.Signature:
        if isinstance(fn, staticmethod | classmethod):
            method = isinstance(fn, classmethod)
            fn = cast(Any, fn).__func__
        try:
            signature = _signature(fn)
        except (ValueError, TypeError) as error:
            raise SignatureError(
                f"{self._label} cannot be described: Python tells no signature of it; wrap it in a function"
            ) from error
        except NameError as error:
            raise SignatureError(f"{self._label} has an annotation that cannot be resolved: {error}") from error
        parameters = list(signature.parameters.values())
        if method:
            if not parameters or parameters[0].kind not in _POSITIONAL:
                raise SignatureError(f"{self._label} is a method and needs a first parameter for its instance")
            parameters = parameters[1:]
        bound = cast("functools.partial[Any]", fn).keywords if isinstance(fn, functools.partial) else {}
        kept = [parameter for parameter in parameters if parameter.name not in bound]
        return signature.replace(parameters=kept)

    def schema(self, *, name: str | None, description: str | None) -> FunctionSchema:
        documentation = [read_docstring(text) for text in docstrings_of(self._fn)]
        if description is None:
            description = next((read.description for read in documentation if read.description), "")
        documented: dict[str, str] = {}
        for read in documentation:
            documented = {**read.parameters, **documented}
        context: str | None = None
        reads: list[_Read] = []
        for parameter in self._signature.parameters.values():
            read = self._parameter(parameter, documented)
            if read is not None:
                reads.append(read)
            elif context is not None:
                raise SignatureError(f"{self._label} takes the context twice: {context!r} and {parameter.name!r}")
            elif parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
                raise SignatureError(
                    f"parameter {parameter.name!r} of {self._label} takes the context and must not be positional-only"
                )
            else:
                context = parameter.name
        names = [read.name for read in reads]
        if len(set(names)) < len(names):
            raise SignatureError(f"{self._label} has two parameters of one name: {', '.join(names)}")
        adapters = {read.name: _Adapter(self, read) for read in reads}
        return FunctionSchema(
            name=name if name is not None else name_of(self._fn),
            description=description,
            input_schema=self._input_schema(reads, adapters),
            output_schema=self._output_schema(),
            is_async=is_async(self._fn),
            context_parameter=context,
            parameters=tuple(_bound(read, adapters[read.name]) for read in reads),
        )

    def unsuitable(self, parameter: str, why: object) -> SignatureError:
        text = str(why).partition("\n")[0].strip().rstrip(".")
        return SignatureError(f"parameter {parameter!r} of {self._label}: {text}")

    def adapter(self, hint: Any) -> TypeAdapter[Any]:
        """pydantic's adapter; what a dataclass's own annotations name may be local to where the function is."""
        made: TypeAdapter[Any] = TypeAdapter(self._types.of(hint))
        if not made.pydantic_complete:
            made.rebuild(_types_namespace=self._scope.visible)
        return made

    def _resolve(self, name: str, annotation: Any) -> Any:
        try:
            return self._scope.resolve(name, annotation)
        except Exception as error:
            shown = annotation if isinstance(annotation, str) else getattr(annotation, "__forward_arg__", annotation)
            where = f"the return type of {self._label}" if name == "return" else f"parameter {name!r} of {self._label}"
            raise SignatureError(f"{where}: the annotation {shown!r} cannot be resolved: {error}") from error

    def _parameter(self, parameter: inspect.Parameter, documented: dict[str, str]) -> _Read | None:
        """A parameter as a field; None where it takes the context."""
        name = parameter.name
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            stars = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else "**"
            raise self.unsuitable(
                name, f"{stars}{name} has no fixed names and types; give each argument a parameter of its own"
            )
        default: Any = PydanticUndefined if parameter.default is _EMPTY else parameter.default
        if parameter.annotation is _EMPTY:
            hint = _inferred(default.default if isinstance(default, FieldInfo) else default)
        else:
            hint = self._resolve(name, parameter.annotation)
        if _is_context(hint):
            return None
        try:
            info = (
                FieldInfo.from_annotation(hint)
                if default is PydanticUndefined
                else FieldInfo.from_annotated_attribute(hint, default)
            )
        except _NO_SCHEMA as error:
            raise self.unsuitable(name, error) from error
        text = info.description or _annotated_text(info.metadata) or _annotated_text(_inside(info.annotation))
        value = info.default
        if value is Ellipsis:
            value = PydanticUndefined
        return _Read(parameter, info, _field_type(info, value), text or documented.get(name), value)

    def _input_schema(self, reads: list[_Read], adapters: dict[str, _Adapter]) -> JsonObject:
        made, definitions = _generate_each(self, adapters)
        properties: JsonObject = {}
        required: list[str] = []
        for read in reads:
            one: JsonObject = made[read.name]
            one.pop("default", None)
            if read.field.title is not None:
                one["title"] = read.field.title
            if read.field.is_required():
                required.append(read.name)
            else:
                found, value = _json_default(read, adapters[read.name], one, definitions)
                if found:
                    one["default"] = value
            if read.description:
                one["description"] = read.description
            properties[read.name] = one
        schema: JsonObject = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        schema["additionalProperties"] = False
        return {**schema, "$defs": definitions} if definitions else schema

    def _output_schema(self) -> JsonObject | None:
        annotation = self._fn if inspect.isclass(self._fn) else self._signature.return_annotation
        if annotation is _EMPTY:
            return None
        hint = awaited(self._resolve("return", annotation))
        if hint in (Any, object, typing.NoReturn, typing.Never) or _is_result(hint):
            return None
        if (plain := plain_schema(hint)) is not None:
            return plain
        try:
            made, definitions = generate({"return": self.adapter(hint)}, "serialization")
        except _NO_SCHEMA:
            return None
        return with_definitions(made["return"], definitions) or None


_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _signature(fn: Any) -> inspect.Signature:
    if sys.version_info >= (3, 14):
        import annotationlib  # noqa: PLC0415 - new in Python 3.14

        return inspect.signature(fn, annotation_format=annotationlib.Format.FORWARDREF)
    return inspect.signature(fn)


class _Adapter:
    """pydantic's adapter of one parameter, made when something needs it."""

    def __init__(self, reading: _Reading, read: _Read) -> None:
        self._reading = reading
        self._read = read
        self._made: TypeAdapter[Any] | None = None

    @property
    def hint(self) -> Any:
        return self._read.hint

    def __call__(self) -> TypeAdapter[Any]:
        if self._made is None:
            try:
                self._made = self._reading.adapter(self._read.hint)
            except _NO_SCHEMA as error:
                raise self._reading.unsuitable(self._read.parameter.name, error) from error
        return self._made


def _generate_each(
    reading: _Reading, adapters: dict[str, _Adapter]
) -> tuple[dict[str, JsonObject], dict[str, JsonObject]]:
    schemas: dict[str, JsonObject] = {}
    made: dict[str, TypeAdapter[Any]] = {}
    for name, adapter in adapters.items():
        plain = plain_schema(adapter.hint)
        if plain is None:
            made[name] = adapter()
        else:
            schemas[name] = plain
    if not made:
        return schemas, {}
    try:
        others, definitions = generate(made, "validation")
        return {**schemas, **others}, definitions
    except _NO_SCHEMA as error:
        for name, adapter in made.items():
            try:
                generate({name: adapter}, "validation")
            except _NO_SCHEMA as own:
                raise reading.unsuitable(name, own) from own
        raise SignatureError(str(error)) from error


def _inferred(default: Any) -> Any:
    """The type of a parameter without an annotation: its default's, where that is one of the plain ones."""
    if isinstance(default, Enum):
        return cast("type[Any]", type(default))
    if isinstance(default, pathlib.PurePath):
        return pathlib.Path
    kind = cast("type[Any]", type(default))
    return kind if kind in _INFERRED else Any


def _is_context(hint: Any) -> bool:
    if isinstance(hint, type):
        return issubclass(hint, CapabilityContext)
    members = [part for part in parts_of(hint) if part is not NoneType]
    return (typing.get_origin(hint) is Annotated or is_union(hint)) and len(members) == 1 and _is_context(members[0])


def _annotated_text(metadata: Sequence[Any]) -> str | None:
    for extra in metadata:
        text = extra if isinstance(extra, str) else getattr(extra, "documentation", None)
        if isinstance(text, str):
            return text
    return None


def _inside(hint: Any) -> Sequence[Any]:
    """What is annotated on X in `X | None`."""
    members = [part for part in parts_of(hint) if part is not NoneType] if is_union(hint) else []
    if len(members) == 1 and typing.get_origin(members[0]) is Annotated:
        extras = typing.get_args(members[0])[1:]
        texts = [extra.description for extra in extras if isinstance(extra, FieldInfo) and extra.description]
        return [*texts, *extras]
    return ()


def _field_type(info: FieldInfo, default: Any) -> Any:
    """The type of a field with its constraints, without what is said of it elsewhere; None as default is a value."""
    hint = info.annotation
    extras = [extra for extra in info.metadata if not isinstance(extra, str)]
    about: dict[str, Any] = {
        key: getattr(info, key)
        for key in ("discriminator", "examples", "json_schema_extra", "deprecated")
        if getattr(info, key) is not None
    }
    if about:
        extras.append(Field(**about))
    if extras:
        hint = Annotated[(hint, *extras)]
    if default is None and not accepts_none(info.annotation):
        return Union[hint, None]  # noqa: UP007 - the members are known at run time only
    return hint


_PLAIN: Final[dict[type[Any], JsonObject]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
}


def _json_default(
    read: _Read, adapter: _Adapter, schema: JsonObject, definitions: dict[str, JsonObject]
) -> tuple[bool, Json]:
    """Whether the default can be published, and as what: JSON that fits the parameter's own schema and hides nothing."""
    value = read.default
    if value is PydanticUndefined:
        return False, None
    if value is None:
        return True, None
    if schema == _PLAIN.get(cast("type[Any]", type(value))):
        return is_json(value), value
    try:
        shown = adapter().dump_python(value, mode="json", by_alias=True, warnings=False)
    except (PydanticSerializationError, ValueError, TypeError, AttributeError, RecursionError):
        return False, None
    whole = {**schema, "$defs": definitions} if definitions else schema
    if not is_json(shown) or holds_mask(shown) or Secrets(Document(whole)).any:
        return False, None
    return (True, shown) if compile_schema(whole).is_valid(shown) else (False, None)


def _bound(read: _Read, adapter: _Adapter) -> Parameter:
    in_field = isinstance(read.parameter.default, FieldInfo)
    default: Callable[[], Any] | None = None
    if not read.field.is_required():
        own = read.parameter.default
        default = (
            functools.partial(read.field.get_default, call_default_factory=True)
            if in_field or own is _EMPTY
            else lambda: own
        )
    return Parameter(
        name=read.name,
        python_name=read.parameter.name,
        positional=read.parameter.kind is inspect.Parameter.POSITIONAL_ONLY,
        required=read.field.is_required(),
        convert=conversion(read.hint, adapter),
        default=default,
        filled=default is not None and (in_field or read.parameter.default is _EMPTY),
    )


def _is_result(hint: Any) -> bool:
    """Whether a value of the type is a result, a part of one, or bytes: nothing that has a structure to promise."""
    if hint is bytes or hint is bytearray:
        return True
    origin = typing.get_origin(hint)
    if origin is Literal:
        return False
    kind = origin if isinstance(origin, type) else hint
    if isinstance(kind, type):
        if issubclass(kind, Generator | Iterator | AsyncIterable):
            return True
        if any(f"{base.__module__}.".startswith(tuple(f"{room}." for room in _RESULTS)) for base in kind.__mro__):
            return True
    if origin is Annotated or is_union(hint):
        return any(_is_result(part) for part in parts_of(hint))
    return any(_is_result(part) and part is not bytes for part in parts_of(hint))
