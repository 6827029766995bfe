"""Schemas that a model provider refuses, and more tools than it takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

from anykit.capabilities import JsonObject
from anykit.schema.dialects import ANTHROPIC, GEMINI, for_anthropic, for_gemini, for_openai, refused_names
from anykit.schema.documents import subschemas
from anykit.schema.pointers import pointer

from .finding import Case, Finding

MOST_TOOLS = 128
"""Tools of one request that OpenAI takes."""
MAX_NODES = 20_000
PLACES = 3
"""Places that one finding names."""


def portability(case: Case) -> Iterator[Finding]:
    """What of the tools' schemas providers refuse, or read in different ways."""
    for name, entry in case.snapshot.tools.items():
        yield from _of_schema(name, entry.source, entry.tool.spec.input_schema)
    count = len(case.snapshot.tools)
    if count > MOST_TOOLS:
        yield Finding(
            "too_many_tools",
            "warning",
            case.where,
            f"{count} tools are listed, and OpenAI takes {MOST_TOOLS} in one request",
            "narrow them by a view, or let the model find them: deferred_after",
        )


def _of_schema(name: str, source: str, schema: JsonObject) -> Iterator[Finding]:
    where = f"{source}/{name}" if source != name else name
    booleans: list[str] = []
    unions: list[str] = []
    remote: list[str] = []
    untyped: list[str] = []
    for at, node in _nodes(schema):
        if isinstance(node, bool):
            if at:
                booleans.append(at)
            continue
        if at and not _TYPING & node.keys() and not _is_part(at):
            untyped.append(at)
        kinds = node.get("type")
        if isinstance(kinds, list) and len([kind for kind in cast("list[Any]", kinds) if kind != "null"]) > 1:
            unions.append(at or "/")
        reference = node.get("$ref")
        if isinstance(reference, str) and not reference.startswith("#"):
            remote.append(at or "/")
    fix = "correct the schema where the tool is made"
    if remote:
        yield Finding(
            "schema_remote_ref",
            "error",
            where,
            f"refers to another document {_places(remote)}; nothing fetches it",
            fix,
        )
    if booleans:
        yield Finding(
            "schema_boolean",
            "warning",
            where,
            f"has true or false for a schema {_places(booleans)}, which some clients refuse",
            "write {} for true, and leave out what false forbids",
        )
    if unions:
        yield Finding(
            "schema_type_union",
            "note",
            where,
            f"lists several types {_places(unions)}, which some providers refuse; ours are sent as anyOf",
            "write anyOf with one type each",
        )
    if untyped:
        yield Finding(
            "schema_untyped",
            "note",
            where,
            f"does not say what it takes {_places(untyped)}, so some models send texts for everything",
            "give it a type, in Python an annotation",
        )
    for provider, convert in (("OpenAI", for_openai), ("Anthropic", for_anthropic), ("Gemini", for_gemini)):
        try:
            made = convert(schema)
        except Exception as error:  # a schema that cannot even be read
            yield Finding("schema_refused", "error", where, f"{provider} cannot be given its schema: {error}", fix)
            continue
        rule = _RULES.get(provider)
        if rule is not None and (names := refused_names(made.schema.get("properties", {}), rule)):
            yield Finding(
                "schema_refused", "error", where, f"{provider} refuses the parameters {', '.join(names[:PLACES])}", fix
            )


_RULES: Final = {"Anthropic": ANTHROPIC, "Gemini": GEMINI}
_TYPING: Final = frozenset(
    ("type", "enum", "const", "$ref", "$dynamicRef", "anyOf", "oneOf", "allOf", "not", "if", "properties", "items")
)


def _is_part(pointer: str) -> bool:
    """Whether it only narrows what is typed above it."""
    steps = pointer.split("/")[1:]
    return any(step in _NARROWING for step in steps) and steps[-2:-1] != ["properties"]


_NARROWING: Final = frozenset(
    ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "propertyNames")
)


def _nodes(schema: JsonObject) -> Iterator[tuple[str, JsonObject | bool]]:
    stack: list[tuple[tuple[str | int, ...], Any]] = [((), schema)]
    for _ in range(MAX_NODES):
        if not stack:
            return
        where, node = stack.pop()
        yield pointer(where), node
        if isinstance(node, dict):
            for tokens, child in subschemas(cast(JsonObject, node)):
                if not (isinstance(child, bool) and tokens[0] in _MAY_BE_BOOLEAN):
                    stack.append(((*where, *tokens), child))


_MAY_BE_BOOLEAN = frozenset({"additionalProperties", "unevaluatedProperties", "additionalItems", "unevaluatedItems"})


def _places(found: list[str]) -> str:
    more = f" and {len(found) - PLACES} more" if len(found) > PLACES else ""
    return f"at {', '.join(sorted(found)[:PLACES])}{more}"
