"""Anthropic's strict subset, as its SDK's `transform_schema` makes it (anthropic 2.14, `lib/_parse/_transform.py`).

Members may be left out. Bounds, patterns and other keywords that refuse a value go into the description, `{minimum: 1}`,
and are losses: a call is held against the original. Refused is what a strict schema would not let through at all (members
that are not listed, any value), and what the API refuses: schemas that refer to themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from anykit.capabilities import JsonObject
from anykit.schema.documents import Node, subschemas
from anykit.schema.pointers import Tokens

from .losses import Conversion
from .nodes import definition_named
from .plain import for_anthropic, renamed
from .strict import Strict

FORMATS: Final = frozenset(
    ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")
)
_REFUSED: Final = frozenset(("patternProperties", "prefixItems"))


def for_anthropic_strict(schema: JsonObject) -> Conversion:
    """For Anthropic with `strict: true`. Raises `NotStrict` where that would mean something else."""
    made = _Anthropic(schema).convert()
    root, aliases = renamed(made.schema, {name: alias for alias, name in for_anthropic(schema).aliases.items()})
    return Conversion(root, made.losses, aliases)


class _Anthropic(Strict):
    provider = "Anthropic"
    formats = FORMATS

    def required(self, members: dict[str, JsonObject], required: Sequence[str]) -> list[str]:
        return [name for name in required if name in members]

    def not_exclusive(self, where: Tokens, branches: Sequence[Node]) -> None:
        self.ledger.lose(where, "oneOf", list(branches))

    def takes_reference(self, name: str, where: Tokens) -> bool:
        if not self._leads_back(name):
            return True
        self.ledger.refuse(where, "$ref", f"{name} refers to itself, which Anthropic does not take in a strict schema")
        return False

    def _leads_back(self, name: str) -> bool:
        seen: set[str] = set()
        stack: list[Node] = [self.merger.defs.get(name, True)]
        while stack:
            node = stack.pop()
            if not isinstance(node, dict):
                continue
            other = definition_named(node)
            if other == name:
                return True
            if other is not None and other not in seen:
                seen.add(other)
                stack.append(self.merger.defs.get(other, True))
            stack += [child for _, child in subschemas(node)]
        return False

    def keyword(self, made: JsonObject, notes: JsonObject, key: str, value: Any, where: Tokens) -> None:
        if key == "minItems" and value in (0, 1):
            made[key] = value
        elif key in _REFUSED or (key == "unevaluatedProperties" and value is not False):
            super().keyword(made, notes, key, value, where)
        elif key != "unevaluatedProperties":
            notes[key] = value
            self.ledger.lose(where, key, value)
