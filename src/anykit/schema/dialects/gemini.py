"""Gemini's own subset of OpenAPI 3.0 (google-genai, `types.Schema`): no references, one type a place, enums of strings.

const                     enum of one string
exclusiveMinimum: 0       minimum: 1 for integers, else minimum: 0 and a note
type: [string, null]      type: string, nullable: true
several types             anyOf, which stands alone at its place ("it must be the only field set")
allOf                     merged
$ref                      inlined; where it leads back to itself it is cut, and says so
everything else           a note at the end of the description
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from anykit.capabilities import Json, JsonObject
from anykit.schema.documents import Node
from anykit.schema.pointers import Tokens

from .losses import Conversion, Ledger, described
from .merging import Merger
from .modern import modern
from .nodes import (
    ANNOTATIONS,
    KEYWORDS_OF,
    definition_named,
    distinct,
    is_constrained,
    kinds_of,
    literals_of,
    named,
    schemas,
    strings,
    type_of_value,
    types_of,
)
from .plain import aliases_at, renamed
from .unions import UNIONS, are_exclusive, rooted

MAX_NODES: Final = 2000
"""Places of a converted schema; references beyond are cut, and say so."""
MAX_DEPTH: Final = 24
"""Tokens of a place's pointer beyond which references are cut."""
MAX_UNIONS: Final = 2
"""Alternatives in alternatives, each with what stands beside them; deeper ones are noted."""
MOST_NODES: Final = 20_000
DEEPEST: Final = 80
"""Places, and tokens of a place's pointer, beyond which everything is cut: alternatives multiply what stands beside them."""
_KEPT: Final[dict[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength", "pattern"),
    "number": ("minimum", "maximum"),
    "integer": ("minimum", "maximum"),
    "boolean": (),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
"""What passes as it is, by type."""
_FORMATS: Final = {
    "string": frozenset(("enum", "date-time")),
    "number": frozenset(("float", "double")),
    "integer": frozenset(("int32", "int64")),
}
_SILENT: Final = frozenset(
    (
        "title", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment", "default", "description",
        "type", "nullable", "enum", "const", "format", "additionalProperties", "required", "properties", "items",
        "contentEncoding", "contentMediaType", "contentSchema", "if", "then", "else", "anyOf", "oneOf",
        "propertyOrdering",
    )
)  # fmt: skip
"""What is said elsewhere, or says nothing of what is taken."""
_ANY: Final = ("string", "number", "boolean", "object")


def for_gemini(schema: JsonObject) -> Conversion:
    """For Gemini. The root may have no members at all: then the declaration has no parameters."""
    read = modern(schema)
    ledger = Ledger(read.places)
    merger = Merger(read.defs)
    writing = _Writing(merger, ledger)
    root = rooted(read.root, merger, ledger)
    made, aliases = renamed(writing.object_of(root, (), ()), aliases_at(root))
    if aliases:
        made["propertyOrdering"] = list(named(made, "properties"))
    return Conversion(made, tuple(ledger.losses), aliases)


class _Writing:
    def __init__(self, merger: Merger, ledger: Ledger) -> None:
        self._merger = merger
        self._ledger = ledger
        self._nodes = 0

    def write(self, node: Node, where: Tokens, around: tuple[str, ...]) -> JsonObject | None:
        """The schema of one place; None where no value fits. `around` are the definitions that it stands in."""
        self._nodes += 1
        if isinstance(node, bool):
            return self._anything({}, where) if node else None
        names = _references(node, self._merger)
        if names and (names & set(around) or self._nodes > MAX_NODES or len(where) > MAX_DEPTH):
            return self._cut(node, where, names, again=bool(names & set(around)))
        if self._nodes > MOST_NODES or len(where) > DEEPEST:
            return self._cut(node, where, {"schema"}, again=False)
        whole = self._merger.expanded(node)
        if isinstance(whole, bool):
            return self._anything({}, where) if whole else None
        return self._forms(whole, where, (*around, *sorted(names)))

    def _anything(self, said: JsonObject, where: Tokens) -> JsonObject:
        """Any value; arrays in arrays in arrays are not said."""
        self._ledger.lose(where, "type")
        return _anything(said)

    def _cut(self, node: JsonObject, where: Tokens, names: set[str], *, again: bool) -> JsonObject:
        """A place that would lead on without end."""
        name = min(names)
        self._ledger.lose(where, "$ref" if names != {"schema"} else "properties", name)
        whole = self._merger.expanded(node)
        said: JsonObject = {}
        if isinstance(whole, dict):
            said = {key: value for key, value in whole.items() if key == "description"}
            kinds = [kind for kind in kinds_of(whole) if kind != "null"]
            if "null" in kinds_of(whole):
                said["nullable"] = True
        else:
            kinds = []
        why = f"recursive: again a {name}, as above" if again else f"{name} too large to be shown here"
        if len(kinds) != 1:
            return _anything(_with_text(said, why))
        made: JsonObject = {"type": kinds[0], **said}
        if kinds[0] == "array":
            made["items"] = _anything({})
        return _with_text(made, why)

    def _forms(self, node: JsonObject, where: Tokens, around: tuple[str, ...]) -> JsonObject | None:
        """`node` without reference: as alternatives, or as one type."""
        unions = [key for key in UNIONS if schemas(node, key)]
        if not unions:
            return self._typed(node, where, around)
        keyword = unions[0]
        rest = {key: value for key, value in node.items() if key != keyword}
        if len(unions) > 1:  # the second is noted where the rest is written
            rest = {key: value for key, value in rest.items() if key != unions[1]}
            self._ledger.lose(where, unions[1], node[unions[1]])
            rest = described(rest, {unions[1]: node[unions[1]]})
        branches = schemas(node, keyword)
        if is_constrained(rest) and sum(token in UNIONS for token in where) >= MAX_UNIONS:
            self._ledger.lose(where, keyword, branches)
            return self._typed(described(rest, {keyword: branches}), where, around)
        if keyword == "oneOf" and not are_exclusive(self._merger, branches):
            self._ledger.lose(where, keyword, branches)
        base = {key: value for key, value in rest.items() if key not in ANNOTATIONS}
        outer = {key: value for key, value in rest.items() if key in ANNOTATIONS}
        written: list[JsonObject] = []
        nullable = node.get("nullable") is True
        for index, branch in enumerate(branches):
            own = branch if not is_constrained(base) else self._with_base(base, branch)
            if isinstance(own, dict) and types_of(own) == ["null"]:
                nullable = True
                continue
            one = self.write(own, (*where, keyword, index), around)
            if one is None:
                continue
            nullable = nullable or one.pop("nullable", None) is True
            nested = cast("list[JsonObject]", one["anyOf"]) if "anyOf" in one else [one]
            for form in nested:
                nullable = form.pop("nullable", None) is True or nullable
                written.append(form)
        if not written:
            return _null(outer, where, self._ledger) if nullable else None
        return self._joined(written, outer, where, nullable=nullable)

    def _with_base(self, base: JsonObject, branch: Node) -> Node:
        """An alternative with what is said beside it."""
        return self._merger.meet(self._merger.expanded(branch), base)

    def _joined(self, written: Sequence[JsonObject], outer: JsonObject, where: Tokens, *, nullable: bool) -> JsonObject:
        """Alternatives as one place: a single one by itself, strings as one enum, else `anyOf` and nothing beside."""
        forms: list[JsonObject] = distinct(written)
        text: object = outer.get("description")
        description = text if isinstance(text, str) else ""
        if len(forms) > 1 and all("enum" in form and form.get("type") == "string" for form in forms):
            labels = {
                form["enum"][0]: form["description"]
                for form in forms
                if len(form["enum"]) == 1 and "description" in form
            }
            one: JsonObject = {"type": "string", "enum": distinct([value for form in forms for value in form["enum"]])}
            forms = [described(one, labels)]
        if len(forms) == 1:
            made = _with_text(forms[0], description, first=True)
            if nullable:
                made["nullable"] = True
            return self._defaulted(made, outer)
        if "default" in outer and outer["default"] is not None:
            description = str(described({"description": description}, {"default": outer["default"]})["description"])
        shown = [_with_text(form, description, first=True) for form in forms]
        if nullable:
            shown = [{**form, "nullable": True} for form in shown]
        return {"anyOf": shown}

    def _defaulted(self, made: JsonObject, said: JsonObject) -> JsonObject:
        if said.get("default") is not None and "anyOf" not in made:
            made["default"] = said["default"]
        return made

    def _typed(self, node: JsonObject, where: Tokens, around: tuple[str, ...]) -> JsonObject | None:
        kinds = kinds_of(node)
        nullable = node.get("nullable") is True or "null" in kinds
        values = literals_of(node)
        if values is not None:
            nullable = nullable and (None in values)
            fitting = [value for value in values if value is not None]
            if not fitting:
                return _null(node, where, self._ledger) if None in values else None
            kinds = list(dict.fromkeys(type_of_value(value) for value in fitting))
        kinds = [kind for kind in kinds if kind != "null" and not (kind == "integer" and "number" in kinds)]
        if not types_of(node) and values is None and kinds:
            self._ledger.lose(where, "type")
        if not kinds:
            if nullable:
                return _null(node, where, self._ledger)
            return self._noted(self._anything({}, where), node, where, "")
        if len(kinds) == 1:
            return self._single(node, kinds[0], where, around, nullable=nullable)
        outer = {key: value for key, value in node.items() if key in ANNOTATIONS}
        base = {key: value for key, value in node.items() if key not in (*ANNOTATIONS, "nullable", "format")}
        written = [
            one
            for kind in kinds
            if (one := self._single(_only(base, kind), kind, where, around, nullable=False)) is not None
        ]
        return self._joined(written, outer, where, nullable=nullable) if written else None

    def _single(
        self, node: JsonObject, kind: str, where: Tokens, around: tuple[str, ...], *, nullable: bool
    ) -> JsonObject | None:
        if kind == "object":
            made = self.object_of(node, where, around)
        else:
            made: JsonObject = {"type": kind}
            values = literals_of(node)
            if values is not None:
                self._enum(made, [value for value in values if value is not None], kind, where, node)
            if node.get("format") in _FORMATS.get(kind, ()):
                made["format"] = node["format"]
            if kind == "array":
                made["items"] = self._items(node, where, around)
            made |= {key: node[key] for key in _KEPT[kind] if key in node}
            if kind in ("number", "integer"):
                _bounds(made, node, kind)
            made = self._noted(made, node, where, kind)
        if nullable:
            made["nullable"] = True
        return self._defaulted(made, node)

    def _enum(self, made: JsonObject, values: list[Json], kind: str, where: Tokens, node: JsonObject) -> None:
        """Only strings that are not empty can be listed; other values go into the note."""
        if kind == "string" and all(isinstance(value, str) and value for value in values):
            made["enum"] = distinct(values)
        elif kind != "boolean" or len(values) < 2:
            self._ledger.lose(where, "const" if "const" in node else "enum", values)
            made["description"] = described({}, {"enum": values})["description"]

    def _items(self, node: JsonObject, where: Tokens, around: tuple[str, ...]) -> JsonObject:
        first = schemas(node, "prefixItems")
        rest: object = node.get("items", {} if not first else None)
        forms: list[JsonObject] = []
        for index, child in enumerate(first):
            if (one := self.write(child, (*where, "prefixItems", index), around)) is not None:
                forms.append(one)
        if isinstance(rest, dict | bool) and rest is not False:
            if (one := self.write(cast(Node, rest), (*where, "items"), around)) is not None:
                forms.append(one)
        elif first and rest is None:
            return self._anything({}, where)
        flat = [form for one in forms for form in cast("list[JsonObject]", one.get("anyOf", [one]))]
        if not flat:
            return _anything({})
        nullable = any(form.pop("nullable", False) for form in flat)
        return self._joined(flat, {}, where, nullable=nullable)

    def object_of(self, node: JsonObject, where: Tokens, around: tuple[str, ...]) -> JsonObject:
        """An object: its members, those that are required without being described among them."""
        made: JsonObject = {"type": "object"}
        members: dict[str, JsonObject] = {}
        required = list(dict.fromkeys(strings(node, "required")))
        for name, child in named(node, "properties").items():
            written = self.write(child, (*where, "properties", name), around)
            if written is not None:
                members[name] = written
        rest: object = node.get("additionalProperties", True)
        for name in required:
            if name not in members and name not in named(node, "properties"):
                found = self.write(cast(Node, rest), (*where, "properties", name), around)
                members[name] = found or self._anything({}, (*where, "properties", name))
        if members:
            made["properties"] = members
            kept = [name for name in required if name in members]
            if kept:
                made["required"] = kept
            made["propertyOrdering"] = list(members)
        made |= {key: node[key] for key in _KEPT["object"] if key in node}
        if (values := literals_of(node)) is not None:
            self._ledger.lose(where, "const" if "const" in node else "enum", values)
            made["description"] = described({}, {"enum": values})["description"]
        notes: JsonObject = {}
        if isinstance(rest, dict) and rest:
            notes["additionalProperties"] = rest
            self._ledger.lose((*where,), "additionalProperties", rest)
        return self._noted(made, node, where, "object", notes)

    def _noted(
        self, made: JsonObject, node: JsonObject, where: Tokens, kind: str, notes: Mapping[str, Any] | None = None
    ) -> JsonObject:
        """`made` with the description, and with what it cannot say at its end."""
        said: JsonObject = dict(notes or {})
        if kind == "array" and "prefixItems" in node and node.get("items") is False and "items" not in said:
            said["items"] = False
        for key, value in node.items():
            if key in _SILENT or key.startswith("x-") or key in _KEPT.get(kind, ()):
                continue
            if key in ("exclusiveMinimum", "exclusiveMaximum") and kind == "integer":
                continue
            if (key, value) in (("uniqueItems", False), ("unevaluatedProperties", False), ("minContains", 1)):
                continue
            if kind and any(key in keywords for of, keywords in KEYWORDS_OF.items() if of != _family(kind)):
                continue  # it speaks of other kinds of values
            said[key] = value
            self._ledger.lose(where, key, value)
        if "if" in node and ("then" in node or "else" in node):
            said |= {key: node[key] for key in ("if", "then", "else") if key in node}
            self._ledger.lose(where, "if", node["if"])
        if isinstance(node.get("format"), str) and "format" not in made and kind in ("string", "number", "integer"):
            said["format"] = node["format"]
        own: object = node.get("description")
        before: object = made.pop("description", None)
        made = _with_text(made, own if isinstance(own, str) else "")
        made = described(made, said)
        return _with_text(made, before) if isinstance(before, str) else made


def _references(node: JsonObject, merger: Merger) -> set[str]:
    """The definitions that `node` itself is made of."""
    found: set[str] = set()
    stack: list[Node] = [node]
    while stack:
        one = stack.pop()
        if not isinstance(one, dict):
            continue
        name = definition_named(one)
        if name is not None and name not in found:
            found.add(name)
            stack.append(merger.defs.get(name, True))
        stack += schemas(one, "allOf")
    return found


def _family(kind: str) -> str:
    return "number" if kind == "integer" else kind


def _only(node: JsonObject, kind: str) -> JsonObject:
    """What of a schema of several types speaks of one."""
    made: JsonObject = {"type": kind}
    for key, value in node.items():
        if key in ("type", "const", "enum"):
            continue
        if not any(key in keywords for of, keywords in KEYWORDS_OF.items() if of != _family(kind)):
            made[key] = value
    values = literals_of(node)
    if values is not None:
        made["enum"] = [
            value for value in values if type_of_value(value) in (kind, *(["integer"] if kind == "number" else []))
        ]
    return made


def _bounds(made: JsonObject, node: JsonObject, kind: str) -> None:
    """Exclusive bounds as inclusive ones: exact for integers, else the nearest that keeps every value."""
    above, below = _number(node, "exclusiveMinimum"), _number(node, "exclusiveMaximum")
    if above is not None:
        least = math.floor(above) + 1 if kind == "integer" else above
        made["minimum"] = least if (other := _number(made, "minimum")) is None else max(other, least)
    if below is not None:
        most = math.ceil(below) - 1 if kind == "integer" else below
        made["maximum"] = most if (other := _number(made, "maximum")) is None else min(other, most)


def _number(node: JsonObject, keyword: str) -> int | float | None:
    value: object = node.get(keyword)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _anything(said: JsonObject) -> JsonObject:
    """Any value, as near as it comes: each place has a type."""
    inner: list[JsonObject] = [{"type": kind, "nullable": True} for kind in _ANY]
    array: JsonObject = {"type": "array", "items": {"anyOf": inner}, "nullable": True, "description": "of any values"}
    forms: list[JsonObject] = [*inner, array]
    text: object = said.get("description")
    return _with_text({"anyOf": forms}, text if isinstance(text, str) else "")


def _null(node: JsonObject, where: Tokens, ledger: Ledger) -> JsonObject:
    """Nothing but null: a nullable string is the nearest."""
    ledger.lose(where, "type", "null")
    text: object = node.get("description")
    return _with_text({"type": "string", "nullable": True}, f"{text} (always null)" if text else "(always null)")


def _with_text(node: JsonObject, text: str, *, first: bool = False) -> JsonObject:
    """A copy with a line more in its description; of alternatives, in each."""
    if not text:
        return dict(node)
    if "anyOf" in node:
        return {"anyOf": [_with_text(form, text, first=first) for form in cast("list[JsonObject]", node["anyOf"])]}
    before: object = node.get("description")
    if not isinstance(before, str) or not before:
        return {**node, "description": text}
    return {**node, "description": f"{text}\n\n{before}" if first else f"{before}\n\n{text}"}
