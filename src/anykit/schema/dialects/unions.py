"""Alternatives: whether at most one of them can fit, and the root of a tool's schema without any."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final, cast

from anykit.capabilities import Json, JsonObject
from anykit.schema.documents import Node

from .losses import Ledger, described
from .merging import Merger
from .nodes import distinct, is_constrained, kinds_of, literals_of, named, same, schemas, strings, types_of

UNIONS: Final = ("anyOf", "oneOf")
_UNSAID: Final = ("not", "enum", "const", "allOf")
"""What no provider takes at the root, beside unions."""
_DEEPEST: Final = 8
"""Alternatives inside alternatives that are looked into."""
_WIDEST: Final = 100
"""Alternatives of one place that are compared with each other."""
_MOST: Final = 2000
"""Alternatives of a root that are looked at in all."""


def are_exclusive(merger: Merger, branches: Sequence[Node]) -> bool:
    """Whether no value can fit two of `branches`, so that `oneOf` says no more than `anyOf`."""
    if len(branches) > _WIDEST:
        return False
    whole = [merger.expanded(branch) for branch in branches]
    return all(_apart(merger, first, second) for first, second in combinations(whole, 2))


def _apart(merger: Merger, first: Node, second: Node) -> bool:
    if isinstance(first, bool) or isinstance(second, bool):
        return first is False or second is False
    mine, theirs = literals_of(first), literals_of(second)
    if mine is not None and theirs is not None:
        return not any(same(one, other) for one in mine for other in theirs)
    kinds, others = _all_types(first), _all_types(second)
    if kinds and others and kinds.isdisjoint(others):
        return True
    if kinds != {"object"} or others != {"object"}:
        return False
    return _told_apart(merger, first, second) or _closed_to(first, second) or _closed_to(second, first)


def _all_types(node: JsonObject) -> set[str]:
    kinds = set(types_of(node) or (kinds_of(node) if literals_of(node) is not None else ()))
    return kinds | {"number", "integer"} if kinds & {"number", "integer"} else kinds


def _told_apart(merger: Merger, first: JsonObject, second: JsonObject) -> bool:
    """Whether both require a member whose values differ."""
    for name in strings(first, "required"):
        if name not in strings(second, "required"):
            continue
        sides = [merger.expanded(named(node, "properties").get(name, True)) for node in (first, second)]
        values = [literals_of(side) if isinstance(side, dict) else None for side in sides]
        if values[0] is not None and values[1] is not None:
            others: list[Json] = values[1]
            if not any(same(one, other) for one in values[0] for other in others):
                return True
    return False


def _closed_to(first: JsonObject, second: JsonObject) -> bool:
    """Whether the first refuses a member that the second requires."""
    if first.get("additionalProperties") is not False or "patternProperties" in first:
        return False
    return any(name not in named(first, "properties") for name in strings(second, "required"))


def rooted(root: Node, merger: Merger, ledger: Ledger) -> JsonObject:
    """The root as a plain object with `type` and `properties`, without reference and alternatives of its own.

    Members of every alternative are kept, and required is what all of them require. What that no longer says goes into
    the description and is a loss; the original is still what calls are held against.
    """
    whole = merger.expanded(root)
    if isinstance(whole, bool):
        if not whole:
            ledger.lose((), "false")
        return {"type": "object", "properties": {}}
    notes: JsonObject = {}
    made = _Folding(merger, ledger, notes).flat(dict(whole), 0)
    for keyword in _UNSAID:
        if keyword in made:
            notes[keyword] = made.pop(keyword)
            ledger.lose((), keyword, notes[keyword])
    first: JsonObject = {"type": "object"}
    made.pop("type", None)
    return described({**first, **made, "properties": named(made, "properties")}, notes)


class _Folding:
    """Alternatives of a root, put into it."""

    def __init__(self, merger: Merger, ledger: Ledger, notes: JsonObject) -> None:
        self._merger = merger
        self._ledger = ledger
        self._notes = notes
        self._seen = 0

    def flat(self, node: JsonObject, depth: int) -> JsonObject:
        """`node` with its alternatives folded into it."""
        for keyword in UNIONS:
            if keyword in node:
                branches = schemas(node, keyword)
                node = self._folded({key: value for key, value in node.items() if key != keyword}, branches, depth)
                if depth == 0:
                    self._notes[keyword] = branches
                    self._ledger.lose((), keyword, branches)
        others: list[Node] = []
        for part in schemas(node, "allOf"):
            # A second union of several parts could not be merged with the first.
            union = next((key for key in UNIONS if isinstance(part, dict) and part.keys() == {key}), None)
            if union is None:
                others.append(part)
                continue
            node = self._folded(node, schemas(cast(JsonObject, part), union), depth)
            if depth == 0:
                self._notes.setdefault("allOf", []).append(part)
                self._ledger.lose((), "allOf", part)
        node = {key: value for key, value in node.items() if key != "allOf"}
        return {**node, "allOf": others} if others else node

    def _branches(self, branches: Sequence[Node], depth: int) -> list[JsonObject]:
        """Those that an object may fit, without alternatives of their own."""
        found: list[JsonObject] = []
        for branch in branches:
            self._seen += 1
            one = self._merger.expanded(branch)
            if one is False:
                continue
            one = {} if one is True or depth >= _DEEPEST or self._seen > _MOST else one
            kinds = types_of(one)
            if not kinds or "object" in kinds:
                found.append(self.flat(dict(one), depth + 1))
        return found

    def _folded(self, base: JsonObject, branches: Sequence[Node], depth: int) -> JsonObject:
        whole = self._branches(branches, depth)
        if not whole:
            return base
        known = named(base, "properties")
        members: dict[str, Node] = dict(known)
        closed = base.get("additionalProperties") is False
        for name in dict.fromkeys(name for one in whole for name in named(one, "properties")):
            mine = known.get(name)
            if mine is None and closed:
                continue  # no alternative can ever be given it
            if mine is None or mine is True or (isinstance(mine, dict) and not is_constrained(mine)):
                forms = [named(one, "properties")[name] for one in whole if name in named(one, "properties")]
                members[name] = _any_of(forms, mine if isinstance(mine, dict) else {})
        made: JsonObject = {**base, "properties": members}
        others = whole[1:]
        for_all = [
            name for name in strings(whole[0], "required") if all(name in strings(one, "required") for one in others)
        ]
        if required := list(dict.fromkeys([*strings(base, "required"), *for_all])):
            made["required"] = required
        if "additionalProperties" not in made and all(one.get("additionalProperties") is False for one in whole):
            made["additionalProperties"] = False
        return made


def _any_of(forms: Sequence[Node], said: JsonObject) -> Node:
    """A member that is one of `forms`; literals of one kind become one list."""
    each: list[Node] = distinct(forms)
    if len(each) == 1:
        return {**each[0], **said} if isinstance(each[0], dict) and said else each[0]
    literals = [literals_of(form) if isinstance(form, dict) and _is_literal(form) else None for form in each]
    if all(values is not None for values in literals):
        types = {tuple(types_of(cast(JsonObject, form))) for form in each}
        if len(types) == 1:
            values = distinct([value for one in literals for value in one or ()])
            kinds: JsonObject = {key: value for key, value in cast(JsonObject, each[0]).items() if key == "type"}
            return {**said, **kinds, "enum": values}
    return {**said, "anyOf": each}


def _is_literal(node: JsonObject) -> bool:
    return literals_of(node) is not None and not (node.keys() - {"type", "const", "enum", "title", "description"})
