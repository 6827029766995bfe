"""JSON Schema, compiled once per schema. Nothing is ever fetched: a reference that leads out of the schema is an error.

Draft 2020-12 unless `$schema` says another one. A schema that names none and is only valid as draft-07 or draft-04 (tuples
as a list under `items`, a boolean `exclusiveMinimum`) is read as that. `format` is a hint in every draft: whether a date is
one is for whoever reads it as a date to say.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final, NoReturn, cast

import jsonschema_rs

from anykit.capabilities import Fault, InvalidInput, Json, JsonObject

from .defaults import Defaults
from .documents import IN_PLACE, Document, Node, subschemas
from .errors import SchemaError
from .faults import Reader, schema_fault
from .json_values import is_json, json_faults, json_problems
from .pointers import Tokens, quoted
from .secrets import Secrets

MAX_SCHEMA_CHARACTERS: Final = 1024 * 1024
"""Of a schema as JSON."""
MAX_EXPANSION: Final = 200_000
"""Subschemas of a schema whose references are followed; a short schema can refer to itself 2^50 times over."""
MAX_STEPS: Final = 50_000
"""Subschemas times values that are looked at to list every fault; beyond that only that there are faults is said."""
CACHE_SIZE: Final = 1024
"""Compiled schemas that are kept."""
CACHE_CHARACTERS: Final = 16 * 1024 * 1024
"""Of all schemas that are kept, as JSON."""

_DRAFTS: Final[dict[str, tuple[str, type[jsonschema_rs.Validator]]]] = {
    "json-schema.org/draft/2020-12/schema": (
        "https://json-schema.org/draft/2020-12/schema",
        jsonschema_rs.Draft202012Validator,
    ),
    "json-schema.org/draft/2019-09/schema": (
        "https://json-schema.org/draft/2019-09/schema",
        jsonschema_rs.Draft201909Validator,
    ),
    "json-schema.org/draft-07/schema": ("http://json-schema.org/draft-07/schema#", jsonschema_rs.Draft7Validator),
    "json-schema.org/draft-06/schema": ("http://json-schema.org/draft-06/schema#", jsonschema_rs.Draft6Validator),
    "json-schema.org/draft-04/schema": ("http://json-schema.org/draft-04/schema#", jsonschema_rs.Draft4Validator),
    "json-schema.org/schema": ("https://json-schema.org/draft/2020-12/schema", jsonschema_rs.Draft202012Validator),
}
"""By the URI of `$schema` without scheme and trailing `#`, which people write either way."""
_NEWEST: Final = "json-schema.org/draft/2020-12/schema"
_UNNAMED: Final = (_NEWEST, "json-schema.org/draft-07/schema", "json-schema.org/draft-04/schema")


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"unresolvable reference {quoted(uri)}: schemas are never fetched")


class Validator:
    """A compiled schema. Safe to share between threads."""

    __slots__ = ("_children", "_defaults", "_document", "_native", "_secrets", "schema")

    def __init__(self, schema: Node, native: jsonschema_rs.Validator) -> None:
        self.schema = schema
        """The schema, a copy of its own; not to be changed."""
        self._native = native
        self._document = Document(schema)
        self._secrets = Secrets(self._document)
        self._defaults = Defaults(self._document, self._fits)
        self._children: jsonschema_rs.ValidatorMap | None = None

    def is_valid(self, instance: object) -> bool:
        """Whether `instance` is JSON and fits the schema: 1.0 is an integer, true is not, NaN fits nothing."""
        return is_json(instance) and self._native.is_valid(instance)

    def faults(self, instance: object) -> list[Fault]:
        """Every fault of `instance`, in order, each with its JSON pointer; [] where it fits.

        A missing or an unexpected field is at its own place. No message holds a value of the instance. An instance that
        is too large or too deep to look at every fault has one that says so.
        """
        if not is_json(instance):
            return Reader(self._document, self._secrets, None).located(json_problems(instance))
        if self._native.is_valid(instance):
            return []
        if self._costs_too_much(instance):
            return self._first_faults(instance)
        return Reader(self._document, self._secrets, instance).faults(self._native.iter_errors(instance))

    def with_defaults(self, instance: Json) -> Any:
        """A copy of `instance` with the schema's defaults, also nested ones.

        The copy is to be validated: a default may be wrong too. Raises `InvalidInput` where `instance` is no JSON, and
        `SchemaError` where the defaults never end.
        """
        if not is_json(instance):
            raise InvalidInput("the input is not JSON", self.faults(instance))
        return self._defaults.filled(instance)

    def completed(self, instance: Json, message: str = "the input is not valid") -> Any:
        """A copy of `instance` with its defaults, known to be valid. Raises `InvalidInput` with every fault."""
        if not is_json(instance):
            raise InvalidInput(message, self.faults(instance))
        value = self._defaults.filled(instance)
        if not self._native.is_valid(value):
            raise InvalidInput(message, self.faults(value))
        return value

    @property
    def secrets(self) -> Secrets:
        """The secret places of its instances."""
        return self._secrets

    def _fits(self, node: Node, value: Json) -> bool:
        """Whether `value` fits a subschema; False where that cannot be said."""
        if isinstance(node, bool):
            return node
        if self._children is None:
            # A boolean schema has no subschemas, so the schema is an object here.
            self._children = jsonschema_rs.validator_map_for(
                cast(JsonObject, self.schema), retriever=_refuse, validate_formats=False
            )
        place = self._document.place(node)
        child = None if place is None else self._children.get(f"#{place}")
        return child is not None and is_json(value) and child.is_valid(value)

    def _costs_too_much(self, instance: Json) -> bool:
        """Whether listing the faults would take more than `MAX_STEPS`.

        The native validator remembers what it has seen when it judges, not when it lists: forms that refer to
        themselves cost it a power of the depth.
        """
        steps = 0
        stack: list[tuple[Node, Json]] = [(self._document.root, instance)]
        while stack:
            node, value = stack.pop()
            steps += 1
            if steps > MAX_STEPS:
                return True
            if not isinstance(node, dict):
                continue
            stack.extend((target, value) for target in self._document.targets(node))
            stack.extend((child, value) for tokens, child in subschemas(node) if tokens[0] in IN_PLACE)
            if isinstance(value, dict):
                for name, item in cast(JsonObject, value).items():
                    stack.extend((child, item) for child in self._document.below(node, name))
            elif isinstance(value, list | tuple):
                items = cast("Sequence[Any]", value)
                # Each error of a place holds a copy of what stands there.
                steps += len(items) // 10
                for index, item in enumerate(items):
                    stack.extend((child, item) for child in self._document.below(node, index))
                    if len(stack) > MAX_STEPS:
                        return True
        return False

    def _first_faults(self, instance: Json) -> list[Fault]:
        """The top-level fields that do not fit, where it would cost too much to say why."""
        why = "does not fit; it is too large or too deeply nested to list every reason"
        root = self._document.root
        problems: list[tuple[Tokens, str]] = []
        if isinstance(instance, dict) and isinstance(root, dict):
            for name, item in cast(JsonObject, instance).items():
                children = list(self._document.below(root, name))
                if any(isinstance(child, dict) and not self._fits(child, item) for child in children):
                    problems.append(((name,), why))
                if len(problems) > 20:
                    break
        return Reader(self._document, self._secrets, instance).located(problems or [((), why)])


class _Cache:
    """The last compiled schemas, bounded in number and in the characters that they were made of."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, tuple[int, Validator]] = OrderedDict()
        self._characters = 0
        self._lock = threading.Lock()

    def get(self, key: bytes) -> Validator | None:
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][1]

    def put(self, key: bytes, characters: int, validator: Validator) -> None:
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = (characters, validator)
            self._characters += characters
            while len(self._kept) > CACHE_SIZE or self._characters > CACHE_CHARACTERS:
                _, (gone, _) = self._kept.popitem(last=False)
                self._characters -= gone


_cache = _Cache()


def compile_schema(schema: object) -> Validator:
    """The validator of `schema`; the same one for an equal schema.

    Raises `SchemaError` where it is no JSON Schema, refers to what is not in it, names an unknown dialect, or is beyond
    the bounds (128 levels, 1 MiB, 200,000 subschemas with its references followed).
    """
    if not isinstance(schema, dict | bool):
        raise SchemaError(f"a schema is an object (or true or false), not {type(schema).__name__}")
    if not is_json(cast(Node, schema)):
        fault = json_faults(cast(Node, schema))[0]
        raise SchemaError(f"the schema is not JSON: {fault['path']} {fault['message']}".replace(":  ", ": "))
    try:
        text = json.dumps(schema, separators=(",", ":"))
    except ValueError as error:  # a number of more digits than Python writes
        raise SchemaError(f"the schema cannot be written as JSON: {error}") from None
    if len(text) > MAX_SCHEMA_CHARACTERS:
        raise SchemaError(f"the schema is larger than {MAX_SCHEMA_CHARACTERS} characters")
    key = hashlib.blake2b(text.encode(), digest_size=32).digest()
    validator = _cache.get(key)
    if validator is None:
        validator = _compiled(json.loads(text))
        _cache.put(key, len(text), validator)
    return validator


def check_form(schema: Node) -> None:
    """Raise `SchemaError` where a schema is none by the rules of 2020-12; cheap, for references are not followed."""
    try:
        jsonschema_rs.meta.validate(schema)
    except jsonschema_rs.ValidationError as error:
        raise SchemaError(f"not a valid JSON Schema: {schema_fault(error)}") from None
    except ValueError as error:
        raise SchemaError(f"not a valid JSON Schema: {str(error)[:300]}") from None


def _compiled(schema: Node) -> Validator:
    if isinstance(schema, bool):
        return Validator(schema, jsonschema_rs.Draft202012Validator(schema))
    _check_expansion(schema)
    if "$schema" in schema:
        return _as_draft(schema, _named_draft(schema["$schema"]))
    first: SchemaError | None = None
    for name in _UNNAMED:
        try:
            return _as_draft(schema, name)
        except _UnresolvedError:
            raise
        except SchemaError as error:
            first = first or error
    raise first or SchemaError("no dialect takes the schema")


def _named_draft(name: object) -> str:
    short = name.partition("://")[2].removesuffix("#") if isinstance(name, str) else ""
    if short not in _DRAFTS:
        known = "2020-12, 2019-09, draft-07, draft-06, draft-04"
        raise SchemaError(f"unknown $schema {quoted(name)}; known dialects: {known}")
    return short


def _as_draft(schema: JsonObject, name: str) -> Validator:
    uri, draft = _DRAFTS[name]
    labelled = {**schema, "$schema": uri}
    try:
        return Validator(labelled, draft(labelled, retriever=_refuse, validate_formats=False))
    except jsonschema_rs.ValidationError as error:
        raise _why_not(error) from None
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise SchemaError(f"not a valid JSON Schema: {str(error)[:300]}") from None


class _UnresolvedError(SchemaError):
    """A reference leads out of the schema: no other dialect is tried."""


def _why_not(error: jsonschema_rs.ValidationError) -> SchemaError:
    text = schema_fault(error)
    if "Resource " in text or "Pointer " in text or "Anchor " in text or "unresolvable" in text:
        where = text.split("'")[1] if text.count("'") > 1 else text
        return _UnresolvedError(
            f"unresolvable reference {quoted(where)}: it is not in the schema, and schemas are never fetched"
        )
    return SchemaError(f"not a valid JSON Schema: {text}")


def _check_expansion(schema: JsonObject) -> None:
    """Raise where the schema, its references followed, is larger than `MAX_EXPANSION`; a circle counts once."""
    document = Document(schema)
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()
    # Depth first without recursion: each node is entered, then, its children known, summed.
    stack: list[tuple[Node, bool]] = [(schema, False)]
    while stack:
        node, entered = stack.pop()
        if not isinstance(node, dict):
            continue
        if entered:
            total = 1 + sum(sizes.get(id(child), 1) for child in _children(document, node))
            if total > MAX_EXPANSION:
                raise SchemaError(f"the schema's references lead to more than {MAX_EXPANSION} subschemas")
            sizes[id(node)] = total
            open_nodes.discard(id(node))
        elif id(node) not in sizes and id(node) not in open_nodes:
            open_nodes.add(id(node))
            stack.append((node, True))
            stack.extend((child, False) for child in _children(document, node))


def _children(document: Document, node: JsonObject) -> list[Node]:
    applied = [child for tokens, child in subschemas(node) if tokens[0] not in ("$defs", "definitions")]
    return [*applied, *document.targets(node)]
