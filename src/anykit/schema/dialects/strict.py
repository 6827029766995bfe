"""What the strict subsets of OpenAI and Anthropic have in common: the walk, and what it does with each keyword.

A strict schema means what the original means, or there is none: what stands in the way is refused, all of it at once, with
its place and keyword. Two things are no change of meaning: an object that does not speak of further members is closed, and
a union whose forms cannot both fit is said with `anyOf`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, cast

from anykit.capabilities import JsonObject
from anykit.schema.documents import Node
from anykit.schema.errors import SchemaError
from anykit.schema.pointers import Tokens
from anykit.schema.validation import compile_schema

from .losses import Conversion, Ledger, NotStrict, described
from .merging import Merger
from .modern import modern
from .nodes import (
    ANNOTATIONS,
    DEFS,
    JSON_TYPES,
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
from .plain import with_defs
from .unions import UNIONS, are_exclusive

MAX_DEPTH: Final = 40
MAX_NODES: Final = 5000
"""Places of a converted schema; what is said beside a reference, or an alternative, multiplies them."""
ANYTHING: Final = "any JSON value is taken here, which a strict schema cannot say"
_NO_EFFECT: Final[dict[str, tuple[Any, ...]]] = {
    "uniqueItems": (False,),
    "minItems": (0,),
    "minLength": (0,),
    "minProperties": (0,),
    "unevaluatedItems": (True,),
    "unevaluatedProperties": (True,),
    "propertyNames": (True, {}),
    "patternProperties": ({},),
    "dependentRequired": ({},),
    "dependentSchemas": ({},),
    "contains": (True,),
    "required": ([],),
}


class Strict:
    """The walk over one schema. A provider's class says what becomes of what."""

    provider: str
    formats: frozenset[str]

    def __init__(self, schema: JsonObject) -> None:
        self._read = modern(schema)
        self.ledger = Ledger(self._read.places)
        self.merger = Merger(self._read.defs)
        self._defs: dict[str, Node] = {}
        self._waiting: list[str] = []
        self._nodes = 0
        self._is_cut = False

    def convert(self) -> Conversion:
        """The whole schema. Raises `NotStrict`."""
        root = self._root()
        while self._waiting:
            name = self._waiting.pop()
            self._defs[name] = self.write(self._read.defs[name], ("$defs", name), 0)
        schema = with_defs(root, self._defs)
        self.check(schema)
        if self.ledger.refusals:
            raise NotStrict(list(dict.fromkeys(self.ledger.refusals)))
        return Conversion(schema, tuple(self.ledger.losses))

    def _root(self) -> JsonObject:
        root = self.merger.expanded(self._read.root)
        whole: JsonObject = root if isinstance(root, dict) else {} if root else {"not": {}}
        for keyword in ("anyOf", "oneOf", "enum", "const", "not"):
            if keyword in whole:
                self.ledger.refuse((), keyword, "the root must be one plain object")
        rest = {key: value for key, value in whole.items() if key not in (*UNIONS, "enum", "const", "not")}
        if not named(rest, "properties") and "additionalProperties" not in rest:
            rest["additionalProperties"] = False  # a tool without parameters
        return self.typed({**rest, "type": "object"}, "object", (), 0)

    def write(self, node: Node, where: Tokens, depth: int) -> JsonObject:
        """One place."""
        self._nodes += 1
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            if not self._is_cut:
                self.ledger.refuse(
                    where, "$ref" if "$ref" in json.dumps(node) else "properties", "it is too large or too deep"
                )
            self._is_cut = True
            return {}
        if isinstance(node, bool) or not is_constrained(node):
            self._anything(node, where)
            return {}
        plain = self._reference(node, where)
        if plain is not None:
            return plain
        whole = self.merger.expanded(node)
        if isinstance(whole, bool):
            self._anything(whole, where)
            return {}
        if schemas(whole, "allOf"):
            self.ledger.refuse(where, "allOf", "its parts cannot be put together into one schema")
        whole = {key: value for key, value in whole.items() if key != "allOf"}
        unions = [key for key in UNIONS if schemas(whole, key)]
        if unions:
            return self._union(whole, unions, where, depth)
        return self._kinds(whole, where, depth)

    def _anything(self, node: Node, where: Tokens) -> None:
        if node is False:
            self.ledger.refuse(where, "false", "no value fits here")
        else:
            self.ledger.refuse(where, "type", ANYTHING)

    def _reference(self, node: JsonObject, where: Tokens) -> JsonObject | None:
        """A reference with nothing beside it but what describes it; None where it is anything else."""
        rest = {key: value for key, value in node.items() if key != "$ref"}
        name = definition_named(node)
        parts = schemas(rest, "allOf")
        if name is None and len(parts) == 1 and isinstance(parts[0], dict):
            inner = definition_named(parts[0])
            if inner is not None and not is_constrained({k: v for k, v in parts[0].items() if k != "$ref"}):
                name, rest = inner, {key: value for key, value in rest.items() if key != "allOf"}
        if name is None or is_constrained(rest):
            return None
        if not self.takes_reference(name, where):
            return {}
        if name not in self._defs:
            self._defs[name] = {}
            self._waiting.append(name)
        made: JsonObject = {"$ref": f"{DEFS}{name}"}
        said = self.annotated({}, rest)
        return {**said, "anyOf": [made]} if said else made

    def takes_reference(self, name: str, where: Tokens) -> bool:
        """Whether a reference may stay one."""
        return True

    def _union(self, node: JsonObject, unions: Sequence[str], where: Tokens, depth: int) -> JsonObject:
        keyword = unions[0]
        if len(unions) > 1:
            self.ledger.refuse(where, unions[1], f"beside {keyword}")
        branches = schemas(node, keyword)
        if keyword == "oneOf" and not are_exclusive(self.merger, branches):
            self.not_exclusive(where, branches)
        base = {key: value for key, value in node.items() if key not in (*UNIONS, *ANNOTATIONS)}
        forms: list[JsonObject] = []
        for index, branch in enumerate(branches):
            own = branch
            if is_constrained(base):
                own = self.merger.meet(self.merger.expanded(branch), base)
            if own is not False:
                forms.append(self.write(own, (*where, keyword, index), depth + 1))
        if not forms:
            self.ledger.refuse(where, keyword, "no value fits here")
        return self.annotated({"anyOf": distinct(forms)}, node)

    def not_exclusive(self, where: Tokens, branches: Sequence[Node]) -> None:
        """A `oneOf` of which two forms may fit one value."""
        self.ledger.refuse(where, "oneOf", "two of its forms may fit one value, and there is only anyOf")

    def _kinds(self, node: JsonObject, where: Tokens, depth: int) -> JsonObject:
        values = literals_of(node)
        if values is not None:
            return self._literal(node, values, where)
        kinds = kinds_of(node)
        if not kinds or not set(kinds) <= set(JSON_TYPES):
            self.ledger.refuse(where, "type", ANYTHING)
            for key in _ASSERTED & node.keys():
                self.ledger.refuse(where, key, "beside no type")
            return {}
        if len(kinds) == 1:
            return self.typed(node, kinds[0], where, depth)
        kinds = [kind for kind in kinds if not (kind == "integer" and "number" in kinds)]
        forms = [self.typed(only(node, kind), kind, where, depth) for kind in kinds]
        return self.annotated({"anyOf": forms}, node)

    def _literal(self, node: JsonObject, values: list[Any], where: Tokens) -> JsonObject:
        keyword = "const" if "const" in node else "enum"
        if any(isinstance(value, dict | list) for value in values):
            self.ledger.refuse(where, keyword, "only strings, numbers, booleans and null can be listed")
        kinds = types_of(node)
        fitting = [value for value in values if not kinds or type_of_value(value) in (*kinds, *_also(kinds))]
        beside = {key: value for key, value in node.items() if key in _ASSERTED}
        if beside:
            fitting = self._fitting(fitting, beside, keyword, where)
        if not fitting:
            self.ledger.refuse(where, keyword, "none of its values has the type beside it")
        made: JsonObject = {"const": fitting[0]} if keyword == "const" and fitting else {"enum": distinct(fitting)}
        return self.annotated(self.typed_literal(made, fitting), node)

    def _fitting(self, values: list[Any], beside: JsonObject, keyword: str, where: Tokens) -> list[Any]:
        """Of the listed values those that fit what is said beside them."""
        try:
            validator = compile_schema({**beside, "$defs": self._read.defs})
        except SchemaError:
            self.ledger.refuse(where, keyword, f"beside {', '.join(beside)}")
            return values
        return [value for value in values if validator.is_valid(value)]

    def typed_literal(self, made: JsonObject, values: list[Any]) -> JsonObject:
        """Listed values with their types, where the provider wants them."""
        return made

    def typed(self, node: JsonObject, kind: str, where: Tokens, depth: int) -> JsonObject:
        """A place of one type."""
        notes: JsonObject = {}
        made: JsonObject = {"type": kind}
        if kind == "object":
            made |= self.members(node, where, depth)
        elif kind == "array":
            made |= self.items(node, where, depth)
        for key, value in node.items():
            if key in _WRITTEN or key in ANNOTATIONS or key.startswith("x-") or _has_no_effect(key, value):
                continue
            if any(
                key in words for of, words in KEYWORDS_OF.items() if of != ("number" if kind == "integer" else kind)
            ):
                continue
            if key == "format":
                self._format(made, notes, value, kind)
            elif key in _ASSERTED:
                self.keyword(made, notes, key, value, where)
        return self.annotated(made, node, notes)

    def _format(self, made: JsonObject, notes: JsonObject, value: object, kind: str) -> None:
        if kind == "string" and value in self.formats:
            made["format"] = value
        else:
            notes["format"] = value  # no format refuses a value here

    def members(self, node: JsonObject, where: Tokens, depth: int) -> JsonObject:
        """`properties`, `required` and a closed `additionalProperties`."""
        members = {name: child for name, child in named(node, "properties").items() if child is not False}
        rest: object = node.get("additionalProperties")
        open_ended = rest is None and node.get("unevaluatedProperties") is not False
        if rest is not None and rest is not False:
            self.ledger.refuse(where, "additionalProperties", "a strict object takes no member but those it lists")
        elif open_ended and not members:
            self.ledger.refuse(where, "additionalProperties", "an object of any members; a strict one lists them all")
        required = list(dict.fromkeys(strings(node, "required")))
        for name in required:
            if name not in members:
                self.ledger.refuse(where, "required", f"{name!r} is not among the properties")
        written = {name: self.write(child, (*where, "properties", name), depth + 1) for name, child in members.items()}
        return {
            "properties": self.optional(written, required),
            "required": self.required(written, required),
            "additionalProperties": False,
        }

    def optional(self, members: dict[str, JsonObject], required: Sequence[str]) -> dict[str, JsonObject]:
        """The members, with those that may be left out as the provider says so."""
        return members

    def required(self, members: dict[str, JsonObject], required: Sequence[str]) -> list[str]:
        """What is required."""
        return [name for name in required if name in members]

    def items(self, node: JsonObject, where: Tokens, depth: int) -> JsonObject:
        """`items`, which a strict array always has."""
        if "prefixItems" in node:
            return {}  # that is refused
        if "items" not in node:
            self.ledger.refuse(where, "items", "an array of anything; a strict one says of what")
            return {}
        return {"items": self.write(cast(Node, node["items"]), (*where, "items"), depth + 1)}

    def keyword(self, made: JsonObject, notes: JsonObject, key: str, value: Any, where: Tokens) -> None:
        """A keyword that can refuse a value."""
        older = _OLDER.get(key, "")
        self.ledger.refuse(where, key, f"{self.provider} has no such keyword in a strict schema{older}")

    def annotated(self, made: JsonObject, node: JsonObject, notes: JsonObject | None = None) -> JsonObject:
        """`made` with what describes `node`; a default and examples as a note."""
        said: JsonObject = {key: node[key] for key in ("title", "description") if isinstance(node.get(key), str)}
        more: JsonObject = dict(notes or {})
        more |= {key: node[key] for key in ("default", "examples") if node.get(key) is not None}
        return described({**made, **said}, more)

    def check(self, schema: JsonObject) -> None:
        """The provider's bounds on the whole."""


_OLDER: Final = {
    "prefixItems": " (a tuple: `items` as a list)",
    "dependentRequired": " (`dependencies`)",
    "dependentSchemas": " (`dependencies`)",
}
"""What older drafts call a keyword."""
_WRITTEN: Final = frozenset(
    ("type", "properties", "required", "additionalProperties", "items", "enum", "const", "$ref", "allOf", "$defs")
)
_ASSERTED: Final = frozenset(
    (
        *("not", "if", "dependentRequired", "dependentSchemas", "patternProperties", "propertyNames", "minProperties"),
        *("maxProperties", "unevaluatedProperties", "unevaluatedItems", "contains", "minContains", "maxContains"),
        *("uniqueItems", "prefixItems", "minItems", "maxItems", "minLength", "maxLength", "pattern", "minimum"),
        *("maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    )
)


def _has_no_effect(key: str, value: object) -> bool:
    return any(type(value) is type(one) and value == one for one in _NO_EFFECT.get(key, ()))


def _also(kinds: Sequence[str]) -> tuple[str, ...]:
    return ("integer",) if "number" in kinds else ()


def only(node: JsonObject, kind: str) -> JsonObject:
    """What of a schema of several types speaks of one, without what describes it."""
    family = "number" if kind == "integer" else kind
    others = frozenset(key for of, words in KEYWORDS_OF.items() if of != family for key in words)
    return {key: value for key, value in node.items() if key not in ANNOTATIONS and key not in others} | {"type": kind}
