"""What a message answers to a question that waits. No SDK in here.

explicit        a data part {"ok": bool, "data": ...}, or metadata.ok
approval        yes or no, in words or as a data part
authorization   any message says that it is done, unless it says no
input           a data part, or a text where the schema asks for one
"""

from __future__ import annotations

import json
from typing import Any, Final, cast

from anykit.capabilities import Answer, Json, JsonObject, Suspension

from .messages import Incoming, text_parameter

YES: Final = frozenset(
    {"yes", "y", "ok", "okay", "approve", "approved", "allow", "accept", "confirm", "true", "done", "go"}
)
NO: Final = frozenset(
    {"no", "n", "deny", "denied", "reject", "rejected", "refuse", "decline", "cancel", "false", "stop"}
)
_EXPLICIT = frozenset({"ok", "data"})


def answer_of(incoming: Incoming, question: Suspension) -> Answer | str:
    """The answer, or why the message is none."""
    if len(incoming.data) > 1:
        return "An answer is one data part, or a text."
    said = incoming.metadata.get("ok")
    if incoming.data:
        data = incoming.data[0]
        if isinstance(data, dict):
            explicit = cast(JsonObject, data)
            if explicit.keys() <= _EXPLICIT and isinstance(explicit.get("ok"), bool) and not _asks_for_ok(question):
                return Answer(bool(explicit["ok"]), explicit.get("data"))
        if isinstance(said, bool):
            return Answer(said, data)
        if question.kind == "approval" and isinstance(data, bool):
            return Answer(data)
        return Answer(True, data)
    if isinstance(said, bool):
        return Answer(said, _typed(incoming.text, question) if incoming.text.strip() else None)
    word = incoming.text.strip().rstrip(".!").lower()
    if question.kind == "approval":
        if word in YES:
            return Answer(True)
        if word in NO:
            return Answer(False)
        return "Answer yes or no."
    if question.kind == "authorization":
        return Answer(word not in NO, incoming.text or None)
    if not incoming.text.strip():
        return "The message is empty."
    return Answer(True, _typed(incoming.text, question))


def _asks_for_ok(question: Suspension) -> bool:
    """Whether the answer itself has a member `ok`."""
    properties: object = (question.schema or {}).get("properties")
    return isinstance(properties, dict) and "ok" in properties


def _typed(text: str, question: Suspension) -> Json:
    """A text as the data that the question's schema asks for, as far as that can be told."""
    schema = question.schema
    if not schema or schema.get("type") == "string":
        return text
    parameter = text_parameter(schema)
    if schema.get("type") == "object" and parameter is not None:
        written = _json(text)
        return cast(Json, written) if isinstance(written, dict) else {parameter: text}
    value: object = _json(text)
    properties: object = schema.get("properties")
    if schema.get("type") == "object" and not isinstance(value, dict) and isinstance(properties, dict):
        names = list(cast("dict[str, Any]", properties))
        if len(names) == 1:
            return {names[0]: value}
    return cast(Json, value)


def _json(text: str) -> Json:
    """The JSON value that a text spells, else the text; yes and no are booleans."""
    word = text.strip().lower()
    if word in ("yes", "no"):
        return word == "yes"
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")
