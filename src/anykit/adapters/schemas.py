"""A tool's arguments as frameworks hand them on to whatever provider stands behind them."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from anykit.capabilities import Json, JsonObject
from anykit.schema.dialects import NotStrict, for_anthropic, for_openai, for_openai_strict
from anykit.tools import Tool

from .tool_calls import Intake


@dataclass(frozen=True, slots=True)
class Arguments:
    """A schema that every provider takes, and the way back from it; a call is held against the tool's own."""

    schema: JsonObject
    """An object with `properties`, without alternatives at its root; of the framework, which may change it."""
    intake: Intake

    @classmethod
    def of(cls, tool: Tool) -> Arguments:
        """What a tool takes."""
        made = copy.deepcopy(for_anthropic(for_openai(tool.input_schema).schema).schema)
        made.setdefault("properties", {})
        return cls(made, Intake(tool.input_schema, tool.validator))

    def back(self, given: Json) -> Any:
        """The arguments of a call as the tool's own schema means them."""
        return self.intake.take(given)


def strict_schema(schema: JsonObject) -> JsonObject | None:
    """The schema in OpenAI's strict subset, for `Arguments.back` to undo; None where that would mean something else."""
    try:
        made = copy.deepcopy(for_openai_strict(schema).schema)
    except NotStrict:
        return None
    made.setdefault("properties", {})
    return made
