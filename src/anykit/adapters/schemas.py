"""A tool's schema as frameworks hand it on to whatever provider stands behind them."""

from __future__ import annotations

import copy

from anykit.capabilities import JsonObject


def arguments_schema(schema: JsonObject) -> JsonObject:
    """A copy whose root is an object with `properties`, as every provider and framework expects it."""
    return {**copy.deepcopy(schema), "type": "object", "properties": copy.deepcopy(schema.get("properties", {}))}
