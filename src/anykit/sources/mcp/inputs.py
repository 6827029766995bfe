"""What a server has to be told before it starts (VS Code's `inputs`), as a JSON Schema to be asked for by."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from anykit.capabilities import Json, JsonObject

INPUT: Final = re.compile(r"\$\{input:([^{}]{1,200})\}")
MAX_INPUTS: Final = 200
MAX_DEPTH: Final = 32


def inputs_of(data: Mapping[str, Any]) -> dict[str, JsonObject]:
    """The `inputs` of a file, by id."""
    listed: Any = data.get("inputs")
    found: dict[str, JsonObject] = {}
    for each in cast("list[Any]", listed)[:MAX_INPUTS] if isinstance(listed, list) else ():
        if isinstance(each, dict) and isinstance(id := cast(JsonObject, each).get("id"), str) and id:
            found[id] = cast(JsonObject, each)
    return found


def inputs_in(value: Json, depth: int = MAX_DEPTH) -> dict[str, None]:
    """The ids that the texts of a value name, in their order."""
    found: dict[str, None] = {}
    if isinstance(value, str):
        found |= dict.fromkeys(INPUT.findall(value))
    elif depth and isinstance(value, dict):
        for one in cast(JsonObject, value).values():
            found |= inputs_in(one, depth - 1)
    elif depth and isinstance(value, list):
        for one in cast("list[Json]", value):
            found |= inputs_in(one, depth - 1)
    return found


def schema_of_inputs(ids: Iterable[str], declared: Mapping[str, JsonObject]) -> JsonObject | None:
    """The schema of a server's configuration, secrets marked; None where it asks for nothing.

    An input that is used and nowhere declared is taken for a secret.
    """
    properties: JsonObject = {}
    required: list[str] = []
    for id in ids:
        said = declared.get(id)
        properties[id] = _property(id, {"password": True} if said is None else said)
        if "default" not in properties[id]:
            required.append(id)
    if not properties:
        return None
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _property(id: str, said: JsonObject) -> JsonObject:
    found: JsonObject = {"type": "string"}
    if isinstance(title := said.get("title"), str) and title:
        found["title"] = title
    if isinstance(text := said.get("description"), str) and text:
        found["description"] = text
    if isinstance(placeholder := said.get("placeholder"), str) and placeholder:
        found["examples"] = [placeholder]
    secret = said.get("password") is True
    if secret:
        found |= {"format": "password", "writeOnly": True}
    options: Any = said.get("options")
    if isinstance(options, list) and options:
        choices = [_choice(one) for one in cast("list[Any]", options)]
        if all("title" not in one for one in choices):
            found["enum"] = [one["const"] for one in choices]
        else:
            found["oneOf"] = choices
    default: Any = said.get("default")
    if isinstance(default, str) and not secret:
        found["default"] = default
    return found


def _choice(option: Any) -> JsonObject:
    if isinstance(option, dict):
        table = cast(JsonObject, option)
        value = str(table.get("value", table.get("label", "")))
        label = table.get("label")
        return {"const": value, "title": label} if isinstance(label, str) and label != value else {"const": value}
    return {"const": str(option)}
