"""From the native validator's errors to faults that a person or a model can act on.

A message names what the schema asks for, names of fields and kinds of values; never a value of the instance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, cast

import jsonschema_rs
from jsonschema_rs import ValidationError, ValidationErrorKind

from anykit.capabilities import Fault, Json, JsonObject

from .documents import Document
from .json_values import MAX_FAULTS
from .pointers import Tokens, at, listed, literal, nearest, pointer, quoted
from .secrets import Secrets

MESSAGE_LIMIT: Final = 600
"""Characters of a message."""
POINTER_LIMIT: Final = 2000
"""Characters of a pointer; names come from callers. Of a longer one the first steps stand."""
OPTIONS_LIMIT: Final = 400
"""Characters of allowed values that a message lists."""
NOT_VALID: Final = "is not valid"

_ARTICLES: Final = {
    "array": "an array",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}


def kind_of(value: Json) -> str:
    """What a JSON value is, with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "an array"
    if isinstance(value, str):
        return "a string"
    return "an integer" if isinstance(value, int) or value.is_integer() else "a number"


def _either(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


class Reader:
    """Reads the errors of one instance."""

    def __init__(self, document: Document, secrets: Secrets, instance: Json) -> None:
        self._document = document
        self._secrets = secrets
        self._instance = instance

    def faults(self, errors: Iterable[ValidationError]) -> list[Fault]:
        """Each fault once, in order; at most `MAX_FAULTS`, the last of which says that there are more."""
        found: dict[tuple[str, str], None] = {}
        for error in errors:
            for path, message in self._read(error):
                found[self._shown(path, message)] = None
                if len(found) > MAX_FAULTS:
                    kept = list(found)[: MAX_FAULTS - 1]
                    return [*_faults(kept), {"path": "", "message": "there are more faults than are listed here"}]
        return _faults(found)

    def located(self, problems: Iterable[tuple[Tokens, str]]) -> list[Fault]:
        """Problems found otherwise, shown by the same rules."""
        return _faults(dict.fromkeys(self._shown(path, message) for path, message in problems))

    def _shown(self, path: Tokens, message: str) -> tuple[str, str]:
        if len(message) > MESSAGE_LIMIT:
            message = f"{message[: MESSAGE_LIMIT - 3]}..."
        secret = self._secrets.prefix(path)
        if secret is None:
            while len(shown := pointer(path)) > POINTER_LIMIT:
                path = path[:-1]
            return shown, message
        # A name below a secret is part of it; the schema's options for a secret may be secrets.
        return pointer(secret), message if len(secret) == len(path) and _says_no_option(message) else NOT_VALID

    def _read(self, error: ValidationError) -> Iterator[tuple[Tokens, str]]:
        path = tuple(error.instance_path)
        kind = error.kind
        match kind:
            case ValidationErrorKind.AnyOf() | ValidationErrorKind.OneOfNotValid():
                yield from self._branches(path, kind.context)
            case ValidationErrorKind.Required():
                yield (*path, kind.property), f"{quoted(kind.property)} is required"
            case ValidationErrorKind.AdditionalProperties() | ValidationErrorKind.UnevaluatedProperties():
                for name in kind.unexpected:
                    yield (*path, name), self._unexpected(error, name)
            case ValidationErrorKind.FalseSchema() if _closes_an_object(error):
                for name in cast(JsonObject, at(self._instance, path) or {}):
                    yield (*path, name), self._unexpected(error, name)
            case ValidationErrorKind.PropertyNames():
                inner = next((message for _, message in self._read(kind.error)), NOT_VALID)
                name = kind.error.instance
                yield path, f"has the name {quoted(name)}, which {inner}"
            case _:
                yield path, self._message(error, path)

    def _unexpected(self, error: ValidationError, name: str) -> str:
        schema = at(cast(Any, self._document.root), error.schema_path[:-1])
        properties: object = cast(JsonObject, schema).get("properties") if isinstance(schema, dict) else None
        allowed = list(cast(JsonObject, properties)) if isinstance(properties, dict) else []
        if not allowed:
            return f"{quoted(name)} is not allowed; no names are"
        return f"{quoted(name)} is not allowed; allowed: {listed(allowed)}{nearest(name, allowed)}"

    def _branches(self, path: Tokens, branches: list[list[ValidationError]]) -> Iterator[tuple[Tokens, str]]:
        """What kept a value from every form: the reasons of the one form that it is of, else what forms there are."""
        wrong_kind: list[str] = []
        near: list[list[ValidationError]] = []
        for branch in branches:
            types = [error.kind for error in branch if tuple(error.instance_path) == path]
            mismatch = next((kind for kind in types if isinstance(kind, ValidationErrorKind.Type)), None)
            if mismatch is None:
                near.append(branch)
            else:
                wrong_kind += mismatch.types
        if len(near) > 1:
            # A tagged union: a form whose constant differs is another form.
            tagged = [branch for branch in near if not any(_is_tag(error, path) for error in branch)]
            near = tagged or near
        if len(near) == 1:
            for error in near[0]:
                yield from self._read(error)
        elif not near:
            yield path, self._wrong_kind(wrong_kind, path)
        elif len(options := _constants(near, path)) == len(near) and not wrong_kind:
            yield path, f"must be one of {_options(options)}{self._near_option(options, path)}"
        else:
            reasons = [self._summary(branch, path) for branch in near[:8]]
            reasons += [f"must be {_either(_articles(wrong_kind))}"] if wrong_kind else []
            yield path, f"fits none of the allowed forms: {'; or: '.join(dict.fromkeys(reasons))}"

    def _summary(self, branch: list[ValidationError], above: Tokens) -> str:
        parts: list[str] = []
        for error in branch[:4]:
            for path, message in self._read(error):
                shown, said = self._shown(path, message)
                where = shown[len(pointer(above)) :]
                parts.append(f"{where} {said}" if where and not said.startswith("'") else said)
        return ", ".join(parts[:4])

    def _wrong_kind(self, types: Sequence[str], path: Tokens) -> str:
        return f"must be {_either(_articles(types))}, not {kind_of(at(self._instance, path))}"

    def _message(self, error: ValidationError, path: Tokens) -> str:
        """One error in words, without the value."""
        kind = error.kind
        match kind:
            case ValidationErrorKind.Type():
                return self._wrong_kind(kind.types, path)
            case ValidationErrorKind.Enum():
                return f"must be one of {_options(kind.options)}{self._near_option(kind.options, path)}"
            case ValidationErrorKind.Constant():
                return f"must be {literal(kind.expected_value)}"
            case ValidationErrorKind.Minimum():
                return f"must be at least {literal(cast(Json, kind.limit))}"
            case ValidationErrorKind.Maximum():
                return f"must be at most {literal(cast(Json, kind.limit))}"
            case ValidationErrorKind.ExclusiveMinimum():
                return f"must be greater than {literal(cast(Json, kind.limit))}"
            case ValidationErrorKind.ExclusiveMaximum():
                return f"must be less than {literal(cast(Json, kind.limit))}"
            case ValidationErrorKind.MultipleOf():
                return f"must be a multiple of {kind.multiple_of}"
            case ValidationErrorKind.MinLength():
                return f"must have at least {_count(kind.limit, 'character')}"
            case ValidationErrorKind.MaxLength():
                return f"must have at most {_count(kind.limit, 'character')}"
            case ValidationErrorKind.MinItems():
                return f"must have at least {_count(kind.limit, 'item')}"
            case ValidationErrorKind.MaxItems() | ValidationErrorKind.AdditionalItems():
                return f"must have at most {_count(kind.limit, 'item')}"
            case ValidationErrorKind.MinProperties():
                return f"must have at least {_count(kind.limit, 'field')}"
            case ValidationErrorKind.MaxProperties():
                return f"must have at most {_count(kind.limit, 'field')}"
            case ValidationErrorKind.Pattern():
                return f"must match the pattern {quoted(kind.value)}"
            case ValidationErrorKind.Format():
                return f"must be in the format {quoted(kind.format)}"
            case ValidationErrorKind.UniqueItems():
                return "must not have two equal items"
            case ValidationErrorKind.Contains():
                return "has too few or too many of the items that it must contain"
            case ValidationErrorKind.UnevaluatedItems():
                return "has more items than are allowed"
            case ValidationErrorKind.OneOfMultipleValid():
                return "fits more than one of the allowed forms, and must fit exactly one"
            case ValidationErrorKind.Not():
                return "has a form that is not allowed"
            case ValidationErrorKind.FalseSchema():
                return "is not allowed"
            case ValidationErrorKind.BacktrackLimitExceeded() | ValidationErrorKind.RegexEngineFailure():
                return "cannot be held against its pattern within the limits"
            case _:
                return f"does not fit ({quoted(kind.name)})"

    def _near_option(self, options: Sequence[Json], path: Tokens) -> str:
        given = at(self._instance, path)
        texts = [option for option in options if isinstance(option, str)]
        return nearest(given, texts) if isinstance(given, str) else ""


def _faults(found: Iterable[tuple[str, str]]) -> list[Fault]:
    return [{"path": path, "message": message} for path, message in found]


def _says_no_option(message: str) -> bool:
    return not message.startswith(("must be one of ", "fits none of ", "has the name ")) and (
        not message.startswith("must be ") or message.startswith(_SAFE_MUST)
    )


_SAFE_MUST: Final = ("must be an ", "must be a ", "must be at ", "must be in ", "must be true or", "must be null")


def _closes_an_object(error: ValidationError) -> bool:
    return error.schema_path[-1:] in (["additionalProperties"], ["unevaluatedProperties"])


def _is_tag(error: ValidationError, path: Tokens) -> bool:
    is_constant = isinstance(error.kind, ValidationErrorKind.Constant | ValidationErrorKind.Enum)
    return is_constant and len(error.instance_path) == len(path) + 1


def _constants(branches: Sequence[list[ValidationError]], path: Tokens) -> list[Json]:
    """The values of forms that are one constant each (labelled choices)."""
    return [
        branch[0].kind.expected_value
        for branch in branches
        if len(branch) == 1
        and isinstance(branch[0].kind, ValidationErrorKind.Constant)
        and len(branch[0].instance_path) == len(path)
    ]


def _articles(types: Iterable[str]) -> list[str]:
    return [_ARTICLES.get(name, quoted(name)) for name in sorted(set(types), key=lambda name: (name == "null", name))]


def _options(options: Sequence[Json]) -> str:
    words: list[str] = []
    room = OPTIONS_LIMIT
    for option in options:
        word = literal(option)
        room -= len(word) + 2
        if room < 0 and words:
            return f"{', '.join(words)} and {len(options) - len(words)} more"
        words.append(word)
    return ", ".join(words)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def schema_fault(error: jsonschema_rs.ValidationError) -> str:
    """Why a schema is none, in one line."""
    text = error.message.splitlines()[0] if error.message else NOT_VALID
    where = pointer(error.instance_path)
    return f"{where}: {text}"[:300] if where else text[:300]
