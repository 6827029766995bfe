"""The bytes that a card's signature covers: RFC 8785 (JCS) of the card without its signatures and empty fields."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, cast

from anykit.capabilities import Json, JsonObject

MAX_DEPTH = 128
SAFE_INTEGER = 2**53 - 1
OF_1_0 = frozenset(
    {
        "name",
        "description",
        "supportedInterfaces",
        "provider",
        "version",
        "documentationUrl",
        "capabilities",
        "securitySchemes",
        "securityRequirements",
        "defaultInputModes",
        "defaultOutputModes",
        "skills",
        "iconUrl",
    }
)
"""Fields of AgentCard in A2A 1.0; a server that also speaks 0.3 adds others, which it does not sign."""


class NotCanonical(ValueError):
    """A value that has no canonical form."""


def canonical(value: Json) -> bytes:
    """A JSON value in its canonical form (RFC 8785). Raises `NotCanonical`."""
    try:
        return _text(value, 0).encode()
    except UnicodeEncodeError:
        raise NotCanonical("half of a surrogate pair") from None


def signed_forms(document: JsonObject) -> Iterator[tuple[JsonObject, bytes]]:
    """What may have been signed, with its bytes: the whole card, or only its 1.0 fields; without or with empty fields.

    Only what a valid signature covers may be believed: read the card from the form that it fits.
    """
    bare = {key: value for key, value in document.items() if key != "signatures"}
    only = {key: value for key, value in bare.items() if key in OF_1_0}
    forms = [_without_empty(bare), _without_empty(only), bare, only]
    seen: set[bytes] = set()
    for form in forms:
        if isinstance(form, dict) and (data := canonical(form)) not in seen:
            seen.add(data)
            yield cast(JsonObject, form), data


def _without_empty(value: Json, depth: int = 0) -> Any:
    if depth > MAX_DEPTH:
        raise NotCanonical(f"nested deeper than {MAX_DEPTH}")
    if isinstance(value, dict):
        kept = {key: _without_empty(item, depth + 1) for key, item in cast(JsonObject, value).items()}
        return {key: item for key, item in kept.items() if item is not None} or None
    if isinstance(value, list):
        items = [_without_empty(item, depth + 1) for item in cast("list[Any]", value)]
        return [item for item in items if item is not None] or None
    return None if value == "" else value


def _text(value: Json, depth: int) -> str:
    if depth > MAX_DEPTH:
        raise NotCanonical(f"nested deeper than {MAX_DEPTH}")
    match value:
        case None | bool() | str():
            return json.dumps(value, ensure_ascii=False)
        case int():
            if abs(value) > SAFE_INTEGER:
                raise NotCanonical("an integer that a double cannot hold")
            return str(value)
        case float():
            return _number(value)
        case list():
            return f"[{','.join(_text(item, depth + 1) for item in cast('list[Any]', value))}]"
        case dict():
            members = sorted(
                cast(JsonObject, value).items(), key=lambda item: item[0].encode("utf-16-be", "surrogatepass")
            )
            return "{" + ",".join(f"{_text(key, depth)}:{_text(item, depth + 1)}" for key, item in members) + "}"
        case _:
            raise NotCanonical(f"a {type(value).__name__} is no JSON")


def _number(value: float) -> str:
    """A double as ECMAScript writes it (ECMA-262, Number::toString)."""
    if not math.isfinite(value):
        raise NotCanonical("a number that is none")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    if fraction == "0":
        fraction = ""
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len((whole + fraction).lstrip("0"))
    point = len(whole) - leading + int(exponent or "0")
    digits = digits.rstrip("0") or "0"
    count = len(digits)
    if count <= point <= 21:
        return f"{sign}{digits}{'0' * (point - count)}"
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    power = point - 1
    head = digits if count == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{sign}{head}e{'+' if power >= 0 else '-'}{abs(power)}"
