"""Questions that wait for an answer: what an answer to one looks like on the line."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from anykit.capabilities import JsonObject, Suspension

from .fields import Form

SETTLED_ELSEWHERE = ("authorization", "approval", "configuration")
"""Kinds of questions to which "go on" is an answer."""


def is_object(schema: JsonObject) -> bool:
    """Whether the answer is an object, with fields of its own."""
    kinds: Any = schema.get("type")
    return kinds == "object" or (kinds is None and "properties" in schema)


def example_of(asked: Suspension, flags: Sequence[str] = ()) -> str:
    """The command that answers, with an answer made from the schema."""
    start, schema, end = f"anykit answer {asked.id}", asked.schema, shlex.join(flags)
    words = [] if asked.kind in SETTLED_ELSEWHERE else ["TEXT"]
    if schema is not None and is_object(schema):
        fields = Form(schema).fields
        words = [field.placeholder for field in [field for field in fields if field.required] or fields]
    return " ".join(filter(None, [start, *words, end]))
