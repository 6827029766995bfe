"""Providers that take JSON Schema 2020-12 as it is, but for the root: OpenAI and Anthropic without `strict`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from anykit.capabilities import JsonObject
from anykit.schema.documents import Node

from .losses import Conversion, Ledger, described
from .merging import Merger
from .modern import Modern, modern
from .names import ANTHROPIC, aliases_of
from .nodes import definition_named, named, rebuilt, strings, types_of
from .unions import rooted


def for_openai(schema: JsonObject) -> Conversion:
    """For OpenAI: an object at the root, no alternatives there, `items` in every array, references into `$defs`."""
    read, root, ledger = _opened(schema)
    defs = {name: _with_items(node) for name, node in read.defs.items()}
    return Conversion(_whole(read, cast(JsonObject, _with_items(root)), defs), tuple(ledger.losses))


def for_anthropic(schema: JsonObject) -> Conversion:
    """For Anthropic: an object at the root, no alternatives there, parameters by names that it takes."""
    read, root, ledger = _opened(schema)
    root, aliases = renamed(root, {name: alias for name, alias in aliases_at(root).items() if not _is_taken(name)})
    return Conversion(_whole(read, root, read.defs), tuple(ledger.losses), aliases)


def parameter_aliases(schema: JsonObject) -> dict[str, str]:
    """What parameters may be called in some provider's export: alias -> the tool's own name. Raises `SchemaError`."""
    return {alias: name for name, alias in aliases_at(_opened(schema)[1]).items()}


def _opened(schema: JsonObject) -> tuple[Modern, JsonObject, Ledger]:
    read = modern(schema)
    ledger = Ledger(read.places)
    return read, rooted(read.root, Merger(read.defs), ledger), ledger


def aliases_at(root: JsonObject) -> dict[str, str]:
    """The aliases of a root's parameters: name -> alias, the same for every provider."""
    return aliases_of(dict.fromkeys([*named(root, "properties"), *strings(root, "required")]))


def _is_taken(name: str) -> bool:
    return ANTHROPIC.fullmatch(name) is not None


def _whole(read: Modern, root: JsonObject, defs: Mapping[str, Node]) -> JsonObject:
    label: JsonObject = {} if read.label is None else {"$schema": read.label}
    return with_defs({**label, **root}, defs)


def with_defs(root: JsonObject, defs: Mapping[str, Node]) -> JsonObject:
    """`root` with the definitions that it leads to."""
    needed: dict[str, Node] = {}
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        if not isinstance(node, dict):
            continue
        name = definition_named(node)
        if name is not None and name in defs and name not in needed:
            needed[name] = defs[name]
            stack.append(defs[name])

        def keep(child: Node) -> Node:
            stack.append(child)
            return child

        rebuilt(node, keep)
    return {**root, "$defs": {name: needed[name] for name in sorted(needed)}} if needed else root


def _with_items(node: Node) -> Node:
    """OpenAI refuses an array without `items` ("array schema missing items"), strict or not."""
    if isinstance(node, bool):
        return node
    made = rebuilt(node, _with_items)
    if "array" in types_of(made) and "items" not in made:
        made["items"] = {}
    return made


def renamed(root: JsonObject, aliases: Mapping[str, str]) -> tuple[JsonObject, dict[str, str]]:
    """The root with its members called by `aliases` (name -> alias), and the way back."""
    if not aliases:
        return root, {}
    made = dict(root)
    made["properties"] = {
        aliases.get(name, name): _saying(child, name) if name in aliases else child
        for name, child in named(root, "properties").items()
    }
    if "required" in root:
        made["required"] = [aliases.get(name, name) for name in strings(root, "required")]
    needed: object = root.get("dependentRequired")
    if isinstance(needed, dict):
        made["dependentRequired"] = {
            aliases.get(name, name): [aliases.get(one, one) for one in cast("list[str]", others)]
            for name, others in cast("dict[str, Any]", needed).items()
        }
    members = named(root, "dependentSchemas")
    if members:
        made["dependentSchemas"] = {aliases.get(name, name): child for name, child in members.items()}
    return made, {alias: name for name, alias in aliases.items()}


def _saying(child: Node, name: str) -> Node:
    """A parameter's schema that says what the tool calls it."""
    return described(child if isinstance(child, dict) else {} if child else {"not": {}}, {"name": name})
