"""A tool's arguments as frameworks hand them on to whatever provider stands behind them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from anykit.capabilities import Json, JsonObject
from anykit.schema.dialects import NotStrict, for_anthropic, for_openai, for_openai_strict


@dataclass(frozen=True, slots=True)
class Arguments:
    """A schema that every provider takes, and the way back from it; a call is held against the tool's own."""

    schema: JsonObject
    """An object with `properties`, without alternatives at its root; of the framework, which may change it."""
    is_strict: bool = False
    """Whether it is in OpenAI's strict subset as it stands."""
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    """Parameters whose names a provider refuses: how they are called there, and the tool's own names."""

    @classmethod
    def of(cls, schema: JsonObject) -> Arguments:
        """From a tool's input schema."""
        plain = for_openai(schema)
        named = for_anthropic(plain.schema)
        made = copy.deepcopy(named.schema)
        made.setdefault("properties", {})
        return cls(made, _is_strict(made), named.aliases)

    def back(self, given: Json) -> Json:
        """The arguments of a call by the tool's own names."""
        if not self.aliases or not isinstance(given, dict):
            return given
        return {self.aliases.get(name, name): value for name, value in cast(JsonObject, given).items()}


def _is_strict(schema: JsonObject) -> bool:
    """Whether making it strict changes nothing that it takes: then nothing is lost by it."""
    try:
        strict = for_openai_strict(schema).schema
    except NotStrict:
        return False
    return _bare(strict) == _bare(schema)


def _bare(schema: JsonObject) -> JsonObject:
    return {"properties": {}, "required": [], **schema}
