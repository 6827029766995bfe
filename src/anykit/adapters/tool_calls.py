"""A model provider's tool call, taken back: which tool, and its arguments as the tool's own schema means them.

    OpenAI, chat          {"function": {"name", "arguments": "JSON"}}
    OpenAI, responses     {"name", "arguments": "JSON"}
    Anthropic             {"name", "input": {...}}
    Gemini                {"name", "args": {...}}, or the part around it ({"functionCall": ...})

as the SDKs' objects, or as the JSON that they come from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from anykit.capabilities import Json, JsonObject
from anykit.schema import SchemaError, Validator, is_json
from anykit.schema.dialects import parameter_aliases
from anykit.schema.documents import Document, Node
from anykit.schema.pointers import Tokens, pointer

MOST_NULLS: Final = 1000
"""Members that are null, of one call, that are looked at."""
LARGEST_WHOLE: Final = 2**53
_MISSING: Final = object()
_AROUND: Final = ("function", "functionCall", "function_call")
_ARGUMENTS: Final = ("arguments", "input", "args")


def call_of(call: object) -> tuple[str, Any]:
    """The name and the arguments of a provider's tool call. Raises `TypeError` where it is none."""
    for inner in _AROUND:
        if (found := _field(call, inner)) is not _MISSING and found is not None:
            call = found
            break
    name = _field(call, "name")
    if not isinstance(name, str):
        raise TypeError(f"a tool call has a name and arguments; {type(call).__name__} has no name")
    for key in _ARGUMENTS:
        if (arguments := _field(call, key)) is not _MISSING:
            return name, arguments
    return name, None


def _field(call: object, name: str) -> Any:
    if isinstance(call, Mapping):
        return cast("Mapping[str, Any]", call).get(name, _MISSING)
    return getattr(call, name, _MISSING)


def read_arguments(arguments: Any) -> Any:
    """Arguments as JSON values: a string is read, None and "" are {}, mappings of any kind become objects.

    What is no JSON stays as it is, for the call to say so.
    """
    if arguments is None:
        return {}
    if isinstance(arguments, str):
        try:
            read: Any = json.loads(arguments) if arguments.strip() else {}
            return json.loads(read) if isinstance(read, str) else read  # some models encode them twice
        except (ValueError, RecursionError):
            return arguments
    return cast(Any, arguments) if isinstance(arguments, dict) and is_json(cast(Json, arguments)) else _plain(arguments)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return [_plain(item) for item in cast("Sequence[Any]", value)]
    return value


class Intake:
    """What a tool's schema says of arguments that come from a provider."""

    def __init__(self, schema: JsonObject, validator: Validator) -> None:
        self._validator = validator
        self._schema = schema
        self._document: Document | None = None
        self._names = _names_of(schema)

    def take(self, arguments: Any) -> Any:
        """`arguments` under the tool's own names, without nulls that stand for "not given", whole numbers as integers.

        A copy where anything changes.
        """
        if not isinstance(arguments, dict):
            return arguments
        given = self._named(cast(JsonObject, arguments))
        if not is_json(given):
            return given
        if _has_whole_float(given):
            given = self._whole(given)
        return given if self._validator.is_valid(given) else self._without_nulls(given)

    def _named(self, arguments: JsonObject) -> JsonObject:
        names = self._names
        if not names or not any(name in names for name in arguments):
            return arguments
        return {
            names[name] if name in names and names[name] not in arguments else name: value
            for name, value in arguments.items()
        }

    def _whole(self, arguments: JsonObject) -> JsonObject:
        """5.0 as 5 where an integer is wanted: a peer of another language may tell them apart."""
        if self._document is None:
            self._document = Document(self._schema)
        document = self._document

        def walk(value: Any, nodes: list[JsonObject]) -> Any:
            if isinstance(value, float):
                wanted = value.is_integer() and abs(value) <= LARGEST_WHOLE and _wants_integer(nodes)
                return int(value) if wanted else value
            if isinstance(value, dict):
                return {
                    name: walk(item, _below(document, nodes, name)) for name, item in cast(JsonObject, value).items()
                }
            if isinstance(value, list):
                items = cast("list[Any]", value)
                return [walk(item, _below(document, nodes, index)) for index, item in enumerate(items)]
            return value

        return walk(arguments, document.closure([document.root]))

    def _without_nulls(self, arguments: JsonObject) -> JsonObject:
        """Without members that are null where null is no value and that may be left out."""
        nulls = list(_nulls(arguments))
        if not nulls:
            return arguments
        places = [fault["path"] for fault in self._validator.faults(arguments)]
        gone = {tokens for tokens in nulls if any(_is_at_or_below(pointer(tokens), place) for place in places)}
        if not gone:
            return arguments
        trial = _cut(arguments, gone)
        if not self._validator.is_valid(trial):
            # A member that is required, or null by right, is put back: the call then says what is wrong with it.
            missing = {fault["path"] for fault in self._validator.faults(trial)}
            trial = _cut(arguments, {tokens for tokens in gone if pointer(tokens) not in missing})
        return trial


def _names_of(schema: JsonObject) -> Mapping[str, str]:
    """What parameters may have been called: alias -> name."""
    try:
        return parameter_aliases(schema)
    except (SchemaError, RecursionError):
        return {}


def _below(document: Document, nodes: Iterable[JsonObject], token: str | int) -> list[JsonObject]:
    found: list[Node] = [child for node in nodes for child in document.below(node, token)]
    return document.closure(found)


def _wants_integer(nodes: Iterable[JsonObject]) -> bool:
    """Whether some schema of a place names integers, and none names numbers."""
    said = {kind for node in nodes for kind in _types(node)}
    return "integer" in said and "number" not in said


def _types(node: JsonObject) -> list[str]:
    kinds: object = node.get("type")
    return [kinds] if isinstance(kinds, str) else cast("list[str]", kinds) if isinstance(kinds, list) else []


def _has_whole_float(value: Any) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    if isinstance(value, dict):
        return any(map(_has_whole_float, cast(JsonObject, value).values()))
    return isinstance(value, list) and any(map(_has_whole_float, cast("list[Any]", value)))


def _nulls(arguments: JsonObject) -> Iterable[Tokens]:
    """Where members are null."""
    found = 0
    stack: list[tuple[Any, Tokens]] = [(arguments, ())]
    while stack and found < MOST_NULLS:
        value, place = stack.pop()
        if isinstance(value, dict):
            for name, item in cast(JsonObject, value).items():
                if item is None:
                    found += 1
                    yield (*place, name)
                else:
                    stack.append((item, (*place, name)))
        elif isinstance(value, list):
            stack.extend((item, (*place, index)) for index, item in enumerate(cast("list[Any]", value)))


def _is_at_or_below(place: str, other: str) -> bool:
    return place == other or place.startswith(f"{other}/")


def _cut(arguments: JsonObject, gone: set[Tokens]) -> JsonObject:
    """A copy without those members."""

    def copied(value: Any, place: Tokens) -> Any:
        if isinstance(value, dict):
            return {
                name: copied(item, (*place, name))
                for name, item in cast(JsonObject, value).items()
                if (*place, name) not in gone
            }
        if isinstance(value, list):
            return [copied(item, (*place, index)) for index, item in enumerate(cast("list[Any]", value))]
        return value

    return cast(JsonObject, copied(arguments, ()))
