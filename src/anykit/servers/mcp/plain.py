"""A part of a schema as a person may be shown it: references followed, null left out."""

from __future__ import annotations

from typing import Any, Final, cast

from anykit.capabilities import JsonObject
from anykit.schema.documents import Document

_HOPS: Final = 16
_LOOKS: Final = ("title", "description", "default")


def resolved(schema: JsonObject, document: Document) -> JsonObject:
    """What a chain of references ends at, with what is said on the way about its looks."""
    looks: JsonObject = {}
    node = schema
    for _ in range(_HOPS):
        reference: object = node.get("$ref")
        target = document.target(node, reference) if isinstance(reference, str) else None
        if not isinstance(target, dict):
            break
        looks = {key: node[key] for key in _LOOKS if key in node} | looks
        node = target
    return {**node, **looks} if looks else node


def without_null(part: JsonObject, document: Document) -> JsonObject:
    """`X | null` as X: a field that is left out is null already."""
    kinds: object = part.get("type")
    if isinstance(kinds, list):
        named = [kind for kind in cast("list[Any]", kinds) if kind != "null"]
        return {**part, "type": named[0]} if len(named) == 1 else part
    for keyword in ("anyOf", "oneOf"):
        branches: object = part.get(keyword)
        if not isinstance(branches, list):
            continue
        every = cast("list[object]", branches)
        kept = [one for one in every if one != {"type": "null"}]
        if len(kept) == 1 < len(every) and isinstance(kept[0], dict):
            rest = {key: value for key, value in part.items() if key != keyword}
            return {**resolved(cast(JsonObject, kept[0]), document), **rest}
    return part
