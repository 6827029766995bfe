"""OpenAI's strict subset (Structured Outputs, "Supported schemas").

Every member is required; one that may be left out is nullable, and a call that gives null for it is taken as one that does
not give it. A minimal and a maximal length become a pattern, since not every model takes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from anykit.capabilities import JsonObject
from anykit.schema.documents import Node, subschemas
from anykit.schema.pointers import Tokens

from .losses import Conversion
from .nodes import definition_named, kinds_of, named, schemas, type_of_value, types_of
from .strict import Strict

MAX_PROPERTIES: Final = 5000
MAX_LEVELS: Final = 10
MAX_CHARACTERS: Final = 120_000
"""Of all names of properties and definitions and all values of enum and const."""
MAX_ENUM_VALUES: Final = 1000
LONG_ENUM: Final = 250
"""Strings in one enum beyond which their characters are counted."""
LONG_ENUM_CHARACTERS: Final = 15_000
LONGEST_PATTERN: Final = 1000
"""A length up to which a bound becomes a pattern."""
FORMATS: Final = frozenset(("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"))
_KEPT: Final = frozenset(
    ("pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems")
)


def for_openai_strict(schema: JsonObject) -> Conversion:
    """For OpenAI with `strict: true`. Raises `NotStrict` where that would mean something else."""
    return _OpenAI(schema).convert()


class _OpenAI(Strict):
    provider = "OpenAI"
    formats = FORMATS

    def optional(self, members: dict[str, JsonObject], required: Sequence[str]) -> dict[str, JsonObject]:
        return {name: node if name in required else self._nullable(node) for name, node in members.items()}

    def required(self, members: dict[str, JsonObject], required: Sequence[str]) -> list[str]:
        return list(members)

    def _nullable(self, node: JsonObject) -> JsonObject:
        if self._takes_null(node, ()):
            return node
        kinds = types_of(node)
        if kinds and "object" not in kinds and "array" not in kinds and "const" not in node:
            made = {**node, "type": [*kinds, "null"]}
            if "enum" in node:
                made["enum"] = [*node["enum"], None]
            return made
        said = {key: node[key] for key in ("title", "description") if key in node}
        inner = {key: value for key, value in node.items() if key not in said}
        if inner.keys() == {"anyOf"}:
            return {**said, "anyOf": [*inner["anyOf"], {"type": "null"}]}
        return {**said, "anyOf": [inner, {"type": "null"}]}

    def _takes_null(self, node: Node, around: tuple[str, ...]) -> bool:
        if isinstance(node, bool):
            return node
        name = definition_named(node)
        if name is not None:
            # The definition may not be written yet; its original says the same.
            return name not in around and self._original_takes_null(self.merger.defs.get(name, False), (*around, name))
        if "anyOf" in node:
            return any(self._takes_null(form, around) for form in schemas(node, "anyOf"))
        return "null" in kinds_of(node)

    def _original_takes_null(self, node: Node, around: tuple[str, ...]) -> bool:
        whole = self.merger.expanded(node)
        if isinstance(whole, bool):
            return whole
        forms = schemas(whole, "anyOf") or schemas(whole, "oneOf")
        return self._takes_null({"anyOf": forms} if forms else whole, around)

    def typed_literal(self, made: JsonObject, values: list[Any]) -> JsonObject:
        kinds = list(dict.fromkeys(type_of_value(value) for value in values))
        return {"type": kinds[0] if len(kinds) == 1 else kinds, **made} if kinds else made

    def typed(self, node: JsonObject, kind: str, where: Tokens, depth: int) -> JsonObject:
        return super().typed(self._with_length(node, where) if kind == "string" else node, kind, where, depth)

    def _with_length(self, node: JsonObject, where: Tokens) -> JsonObject:
        """Bounds on a string's length as a pattern; it counts code points, as they do."""
        least, most = int(node.get("minLength", 0)), node.get("maxLength")
        keyword = "maxLength" if most is not None else "minLength"
        if not least and most is None:
            return node
        if "pattern" in node:
            self.ledger.refuse(where, keyword, "not every model takes it, and there is a pattern already")
        elif max(least, int(most or 0)) > LONGEST_PATTERN:
            self.ledger.refuse(
                where, keyword, f"not every model takes it, and {LONGEST_PATTERN} is the longest pattern"
            )
        elif most is not None and most < least:
            self.ledger.refuse(where, keyword, "below minLength: no value fits here")
        rest = {key: value for key, value in node.items() if key not in ("minLength", "maxLength")}
        return {"pattern": f"^[\\s\\S]{{{least},{'' if most is None else int(most)}}}$", **rest}

    def keyword(self, made: JsonObject, notes: JsonObject, key: str, value: Any, where: Tokens) -> None:
        if key in _KEPT:
            made[key] = value
        elif not (key == "unevaluatedProperties" and value is False):  # the object is closed anyway
            super().keyword(made, notes, key, value, where)

    def check(self, schema: JsonObject) -> None:
        _check(self, schema)


def _check(strict: Strict, schema: JsonObject) -> None:
    properties = characters = values = 0
    stack: list[tuple[Node, Tokens, int]] = [(schema, (), 1)]
    while stack:
        node, where, level = stack.pop()
        if not isinstance(node, dict):
            continue
        if level > MAX_LEVELS:
            strict.ledger.refuse(where, "properties", f"nested more than {MAX_LEVELS} levels deep")
            continue
        members = named(node, "properties")
        properties += len(members)
        characters += sum(map(len, members)) + sum(map(len, named(node, "$defs")))
        listed = cast("list[Any]", node.get("enum", [node["const"]] if "const" in node else []))
        values += len(listed)
        texts = [value for value in listed if isinstance(value, str)]
        characters += sum(map(len, texts))
        if len(texts) > LONG_ENUM and sum(map(len, texts)) > LONG_ENUM_CHARACTERS:
            strict.ledger.refuse(where, "enum", f"more than {LONG_ENUM_CHARACTERS} characters in one enum of strings")
        for tokens, child in subschemas(node):
            deeper = level + (tokens[0] in ("properties", "items"))
            stack.append((child, (*where, *tokens), 1 if tokens[0] == "$defs" else deeper))
    if properties > MAX_PROPERTIES:
        strict.ledger.refuse((), "properties", f"{properties} of them; OpenAI takes {MAX_PROPERTIES}")
    if values > MAX_ENUM_VALUES:
        strict.ledger.refuse((), "enum", f"{values} values in all; OpenAI takes {MAX_ENUM_VALUES}")
    if characters > MAX_CHARACTERS:
        strict.ledger.refuse(
            (), "properties", f"{characters} characters of names and values; OpenAI takes {MAX_CHARACTERS}"
        )
