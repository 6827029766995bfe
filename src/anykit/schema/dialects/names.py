"""What parameters are called where a provider limits that: the alias, and the way back.

A parameter that is called like a keyword of JSON Schema (`$ref`) keeps its name everywhere: what looks for it under that
name must find it, and what refuses it is told of (`refused_names`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

ANTHROPIC: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
"""Its API's error: "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'", of the root's."""
GEMINI: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
"""google-genai, `FunctionDeclaration.parameters`."""
KEYWORDS: Final = frozenset(
    (
        "$ref", "$defs", "$schema", "$id", "$anchor", "$comment", "$vocabulary", "$dynamicRef", "$dynamicAnchor",
        "$recursiveRef", "$recursiveAnchor",
    )
)  # fmt: skip
_LENGTH: Final = 64
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_]")


def aliases_of(names: Iterable[str]) -> dict[str, str]:
    """An alias for each name that some provider refuses: name -> one that all of them take, distinct from every other."""
    every = list(names)
    taken = set(every)
    made: dict[str, str] = {}
    for name in every:
        if GEMINI.fullmatch(name) or name in KEYWORDS:
            continue
        alias = _FOREIGN.sub("_", name)
        alias = alias if not alias[:1].isdigit() else f"_{alias}"
        if alias.strip("_") == "" or len(alias) > _LENGTH or alias in taken:
            digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:8]
            alias = f"{alias[: _LENGTH - 9].strip('_') or 'parameter'}_{digest}"
            alias = alias if not alias[:1].isdigit() else f"_{alias}"[:_LENGTH]
        taken.add(alias)
        made[name] = alias
    return made


def refused_names(names: Iterable[str], rule: re.Pattern[str]) -> list[str]:
    """Those that a provider may refuse though they are kept."""
    return [name for name in names if not rule.fullmatch(name)]
