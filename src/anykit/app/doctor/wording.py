"""What a tool's words hide, or try to make a model do: invisible characters, and talk of other sources' tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

from anykit.capabilities import InvocableSpec, JsonObject
from anykit.runtime import state_of
from anykit.sources.hostile import HIDDEN, hidden_in, hidden_inside, visible

from .finding import Case, Finding
from .names import left_out_of

_ORDERS: Final = (
    ("tells the model to disregard what it was told", re.compile(
        r"\b(ignore|disregard|forget|override)\b[^.\n]{0,40}\b(previous|prior|above|earlier|all|other|system)\b[^.\n]{0,30}"
        r"\b(instructions?|prompts?|rules?|messages?|guidelines?)\b", re.IGNORECASE)),
    ("tells the model to keep something from the person", re.compile(
        r"\b(do not|don't|never|without)\b[^.\n]{0,30}\b(tell|mention|inform|reveal|show|notify|telling|mentioning"
        r"|informing)\b[^.\n]{0,30}\b(user|person|human|them|anyone)\b", re.IGNORECASE)),
    ("is dressed up as an order of the system", re.compile(
        r"<\s*/?\s*(important|system|secret|instructions?|admin)\s*>|\[\s*(system|inst)\s*\]", re.IGNORECASE)),
    ("asks for files that hold secrets", re.compile(
        r"(~|/home/\w+|/root)?/?\.(ssh|aws|gnupg|netrc|env)\b|\bid_(rsa|ed25519)\b|\bmcp\.json\b", re.IGNORECASE)),
)  # fmt: skip
SHORTEST: Final = 4
"""Letters of a tool's name that is looked for in others' words."""


def wording(case: Case) -> Iterator[Finding]:
    """What is hidden in names, descriptions and schemas, and what only a model would take for a request."""
    yield from _taken_out(case)
    for entry in case.snapshot.tools.values():
        yield from hidden(f"{entry.source}/{entry.original}", entry.tool.spec)
    yield from _orders(case)
    yield from _shadows(case)


def hidden(where: str, spec: InvocableSpec) -> Iterator[Finding]:
    """A finding where people do not see all of a tool's definition."""
    found: dict[str, tuple[str, ...]] = {
        "name": hidden_in(spec.name),
        "title": hidden_in(getattr(spec, "title", None) or ""),
        "description": hidden_in(spec.description),
        "input schema": hidden_inside(spec.input_schema),
        "output schema": hidden_inside(spec.output_schema),
    }
    for what, characters in found.items():
        if characters:
            yield _hidden(where, f"its {what} holds characters that people do not see: {', '.join(characters[:3])}")


def hidden_in_definition(where: str, definition: Mapping[str, Any]) -> Iterator[Finding]:
    """The same for a definition as the lock keeps it."""
    for key, value in definition.items():
        if characters := hidden_inside(value):
            yield _hidden(
                where,
                f"its {key.replace('_', ' ')} holds characters that people do not see: {', '.join(characters[:3])}",
            )


def _hidden(where: str, message: str) -> Finding:
    return Finding(
        "hidden_characters",
        "error",
        visible(where),
        message,
        "a model reads them: ask whoever makes the tool, or take it out with deny",
    )


def _taken_out(case: Case) -> Iterator[Finding]:
    """What a source found hidden in its peer's words, and took out before anybody read them."""
    for name, source in case.snapshot.sources.items():
        for what, why in left_out_of(source).items():
            if why.startswith(HIDDEN):
                yield Finding(
                    "hidden_characters",
                    "warning",
                    visible(f"{name}/{what.removeprefix('tools/')}"),
                    why.replace("it holds", "its definition holds", 1),
                    "ask whoever makes the server why they are there, or take the tool out with deny",
                )


def _orders(case: Case) -> Iterator[Finding]:
    for entry in case.snapshot.tools.values():
        text = _words_of(entry.tool.spec)
        for what, pattern in _ORDERS:
            found = pattern.search(text)
            if found is not None:
                yield Finding(
                    "suspicious_wording",
                    "warning",
                    f"{entry.source}/{entry.original}",
                    f"its description {what}: {visible(found[0])[:80]!r}",
                    "read it whole (anykit show), and take the tool out with deny unless it is meant so",
                )


def _shadows(case: Case) -> Iterator[Finding]:
    """Descriptions that speak of the tool of another source: they may change how that one is used."""
    snapshot = case.snapshot
    foreign = {name for name, source in snapshot.sources.items() if state_of(source).status == "ready"}
    known: dict[str, tuple[str, str]] = {}
    for exposed, entry in snapshot.tools.items():
        for name in (exposed, entry.original):
            if len(name) >= SHORTEST and ("_" in name or "-" in name or name != name.lower()):
                known.setdefault(name, (entry.source, exposed))
    for entry in snapshot.tools.values():
        words = set(_WORD.findall(_words_of(entry.tool.spec)))
        named = [known[word] for word in words & known.keys() if known[word][0] != entry.source]
        own = {entry.original, entry.tool.name}
        for source, exposed in sorted(set(named)):
            if source in foreign and exposed not in own:
                yield Finding(
                    "shadowing",
                    "note",
                    f"{entry.source}/{entry.original}",
                    f"its description speaks of {exposed}, a tool of {source}; words of one source can change how a model"
                    " uses another's",
                    "read it (anykit show), and take the tool out with deny unless it is meant so",
                )


_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def _words_of(spec: InvocableSpec) -> str:
    return "\n".join([spec.description, *_texts(spec.input_schema)])


def _texts(value: Any, depth: int = 0) -> Iterable[str]:
    """The descriptions in a schema."""
    if depth > 64:
        return
    if isinstance(value, dict):
        for key, item in cast(JsonObject, value).items():
            if key == "description" and isinstance(item, str):
                yield item
            else:
                yield from _texts(item, depth + 1)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _texts(item, depth + 1)
