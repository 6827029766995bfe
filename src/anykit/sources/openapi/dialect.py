"""Schemas of an OpenAPI document as JSON Schema 2020-12, each standing on its own.

OpenAPI 3.0 has a dialect of its own (`nullable`, a boolean `exclusiveMinimum`, `example`), which is converted; 3.1 and 3.2
have JSON Schema already and keep it as it is. What a schema refers to becomes its `$defs`, converted once for the whole
document and shared: a circle stays a circle. In a request, what is `readOnly` is not asked for; in an answer, what is
`writeOnly` is not promised.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, cast

from anykit.capabilities import Json, JsonObject
from anykit.schema import SchemaError, check_form
from anykit.schema.documents import MANY, NAMED, ONE, Node, is_pattern
from anykit.sources.hostile import MAX_TEXT, clean_text

from .references import Found, Misplaced, References

Mode: TypeAlias = Literal["request", "response"]

MAX_NODES = 100_000
"""Values of one schema, what it refers to not counted."""
MAX_DEPTH = 100
MAX_EXAMPLE = 500
"""Characters of an example that is kept, as Python writes it."""

_TYPES = frozenset({"null", "boolean", "object", "array", "number", "integer", "string"})
_OF_OPENAPI = frozenset({"discriminator", "xml", "externalDocs"})
_OF_THE_DOCUMENT = frozenset(
    {"$id", "$recursiveAnchor", "$schema", "$anchor", "$dynamicAnchor", "$vocabulary", "$defs", "definitions"}
)
"""What has a meaning only where the schema stood: references are resolved already."""
_DATA = frozenset({"enum", "const", "default", "examples", "example", "required", "type"})
_TEXTS = frozenset({"title", "description", "$comment"})
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_LIMITS = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))
_WHOLE = ("$ref", "allOf", "anyOf", "oneOf", "not", "const", "if")
"""Keywords that null has to get past as well, where it is to be allowed."""
_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")
_REFERENCES = ("$ref", "$dynamicRef")


class Schemas:
    """The schemas of one document."""

    def __init__(self, references: References, minor: int) -> None:
        self.references = references
        self.minor = minor
        self.notes: dict[str, None] = {}
        """What was mended, each once."""
        self.places: dict[int, Found] = {}
        """Where a value stands that was referred to, by its identity."""
        self._names: dict[tuple[str, str], str] = {}
        self._taken: set[str] = set()
        self._sources: dict[str, Found] = {}
        self._definitions: dict[tuple[Mode, str], tuple[Node, frozenset[str]]] = {}
        self._faults: dict[tuple[Mode, str], str] = {}
        self._closures: dict[tuple[Mode, str], frozenset[str]] = {}

    def converted(self, schema: object, base: str, mode: Mode) -> tuple[Node, frozenset[str]]:
        """A schema and the names of the definitions that it refers to itself. Raises `Misplaced`."""
        conversion = _Conversion(self, mode)
        return conversion.node(schema, base, 0), frozenset(conversion.uses)

    def opened(self, schema: object, base: str, mode: Mode) -> tuple[Node, frozenset[str]]:
        """The same, but not a reference itself: what it refers to stands in its place. Raises `Misplaced`."""
        schema, base = self.target(schema, base)
        return self.converted(schema, base, mode)

    def target(self, schema: object, base: str) -> tuple[object, str]:
        """What a schema that says nothing of its own refers to; itself otherwise. Raises `Misplaced`."""
        for _ in range(32):
            if not isinstance(schema, dict):
                break
            node = cast(JsonObject, schema)
            said = [key for key in node if not key.startswith("x-")]
            if isinstance(node.get("$ref"), str) and self._only_refers(said, node):
                found = self.references.find(node["$ref"], base)
                self.places[id(found.value)] = found
                schema, base = found.value, found.base
            elif said == ["allOf"] and isinstance(node["allOf"], list) and len(cast("list[Any]", node["allOf"])) == 1:
                schema = cast("list[object]", node["allOf"])[0]
            else:
                break
        return cast(object, schema), base

    def _only_refers(self, said: list[str], node: JsonObject) -> bool:
        return said == ["$ref"] or (self.minor == 0 and node.get("nullable") is not True)

    def definitions(self, uses: Iterable[str], mode: Mode) -> JsonObject:
        """The `$defs` for a schema that uses these, with all that they use. Raises `Misplaced`."""
        names: set[str] = set()
        for name in uses:
            names |= self._closure(name, mode)
        return {name: self._definitions[mode, name][0] for name in sorted(names)}

    def _closure(self, name: str, mode: Mode) -> frozenset[str]:
        known = self._closures.get((mode, name))
        if known is not None:
            return known
        names: dict[str, None] = {name: None}
        waiting = [name]
        while waiting:
            for used in sorted(self._definition(waiting.pop(), mode)):
                if used not in names:
                    names[used] = None
                    waiting.append(used)
        closure = self._closures[mode, name] = frozenset(names)
        return closure

    def _definition(self, name: str, mode: Mode) -> frozenset[str]:
        key = (mode, name)
        if key in self._faults:
            raise Misplaced(self._faults[key])
        if key not in self._definitions:
            found = self._sources[name]
            try:
                schema, uses = self.converted(found.value, found.base, mode)
                check_form(schema)
                self._definitions[key] = schema, uses
            except (Misplaced, SchemaError) as error:
                self._faults[key] = f"schema {name}: {error}"
                raise Misplaced(self._faults[key]) from None
        return self._definitions[key][1]

    def named(self, found: Found) -> str:
        """The name of the definition for what a reference leads to; the same whatever the order of the document."""
        key = (found.base, found.pointer)
        name = self._names.get(key)
        if name is None:
            name = self._name(found)
            self._names[key] = name
            self._taken.add(name)
            self._sources[name] = found
            self.places[id(found.value)] = found
        return name

    def _name(self, found: Found) -> str:
        last = found.pointer.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
        plain = found.pointer == f"/components/schemas/{last}" and not found.base
        if plain and _NAME.fullmatch(last):
            return last
        cleaned = re.sub(r"[^A-Za-z0-9._-]+", "_", last)[:64].strip("_") or "schema"
        digest = hashlib.sha256(f"{found.base}#{found.pointer}".encode(errors="surrogatepass")).hexdigest()[:8]
        return f"{cleaned}_{digest}"


class _Conversion:
    """One schema on its way."""

    def __init__(self, schemas: Schemas, mode: Mode) -> None:
        self._schemas = schemas
        self._mode: Mode = mode
        self._hidden = "readOnly" if mode == "request" else "writeOnly"
        self._nodes = 0
        self._recursive: list[Found] = []
        """The schemas around this one that `$recursiveRef` may mean, innermost last."""
        self.uses: set[str] = set()

    def node(self, schema: object, base: str, depth: int) -> Node:
        self._nodes += 1
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            raise Misplaced(f"a schema of more than {MAX_NODES} parts or {MAX_DEPTH} levels")
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise Misplaced("a schema that is no object")
        given = cast(JsonObject, schema)
        hidden = self._hidden_names(given, base)
        made: JsonObject = {}
        found = self._schemas.places.get(id(given)) if given.get("$recursiveAnchor") is True else None
        if found is not None:
            self._recursive.append(found)
        for key, value in given.items():
            if key in _REFERENCES:
                self._refer(made, self._schemas.references.find(value, base), value)
            elif key == "$recursiveRef":  # 2019-09, which some documents of 3.0 have
                self._refer(made, self._recursive[-1] if self._recursive else None, value)
            elif key not in _OF_OPENAPI and key not in _OF_THE_DOCUMENT and (key[:2] != "x-" or key == "x-secret"):
                self._member(made, key, value, base, depth, hidden)
        if found is not None:
            self._recursive.pop()
        return _of_3_0(made) if self._schemas.minor == 0 else made

    def _refer(self, made: JsonObject, found: Found | None, value: object) -> None:
        if found is None or not isinstance(found.value, dict):
            raise Misplaced(f"{str(value)[:200]!r} leads to no schema")
        name = self._schemas.named(found)
        self.uses.add(name)
        made["$ref"] = f"#/$defs/{name}"

    def _member(self, made: JsonObject, key: str, value: Any, base: str, depth: int, hidden: frozenset[str]) -> None:
        if key in _TEXTS:
            if isinstance(value, str):
                made[key] = clean_text(value, MAX_TEXT)
        elif key == "required":
            if isinstance(value, list):
                names = [name for name in cast("list[Any]", value) if isinstance(name, str) and name not in hidden]
                if names:
                    made[key] = list(dict.fromkeys(names))
        elif key == "type":
            made[key] = self._types(value)
        elif key == "pattern":
            self._pattern(made, value)
        elif key in ("example", "examples"):
            if self._schemas.minor > 0 or (key == "example" and len(repr(value)) <= MAX_EXAMPLE):
                made[key] = value
        elif key in _DATA:
            made[key] = value
        elif key in NAMED:
            self._named(made, key, value, base, depth, hidden)
        elif key in MANY and isinstance(value, list):
            items = cast("list[Any]", value)
            if items or key not in _LISTS:
                made[key] = [self.node(one, base, depth + 1) for one in items]
        elif key in ONE and isinstance(value, dict | bool):
            made[key] = self.node(cast(object, value), base, depth + 1)
        elif key in _LISTS or key in ONE:
            raise Misplaced(f"a schema whose {key} is none")
        else:
            made[key] = value

    def _named(self, made: JsonObject, key: str, value: Any, base: str, depth: int, hidden: frozenset[str]) -> None:
        if not isinstance(value, dict):
            raise Misplaced(f"a schema whose {key} is no object")
        members: JsonObject = {}
        for name, child in cast(JsonObject, value).items():
            if key == "properties" and name in hidden:
                continue
            if not name.isprintable() or any(0xD800 <= ord(c) <= 0xDFFF for c in name):
                raise Misplaced("a property's name holds control or invisible characters")
            if key == "dependencies" and isinstance(child, list):
                members[name] = child
            else:
                members[name] = self.node(child, base, depth + 1)
        made[key] = members

    def _types(self, value: Any) -> Json:
        words = cast("list[Any]", value) if isinstance(value, list) else [value]
        for word in words:
            if not isinstance(word, str) or word not in _TYPES:
                raise Misplaced(f"a schema of the type {str(word)[:40]!r}, which there is not")
        return cast(Json, value)

    def _pattern(self, made: JsonObject, value: Any) -> None:
        if isinstance(value, str) and is_pattern(value):
            made["pattern"] = value
        else:
            self._schemas.notes[f"the pattern {str(value)[:100]!r} cannot be read and is not checked"] = None

    def _hidden_names(self, given: JsonObject, base: str) -> frozenset[str]:
        """The properties that this schema, or a part of it that stands here, says are for the other direction only."""
        names: set[str] = set()
        parts: list[JsonObject] = [given]
        while parts:
            part = parts.pop()
            properties = part.get("properties")
            if isinstance(properties, dict):
                names |= {
                    name for name, child in cast(JsonObject, properties).items() if self._is_hidden(child, base, 0)
                }
            if isinstance(inside := part.get("allOf"), list):
                parts += [cast(JsonObject, one) for one in cast("list[Any]", inside) if isinstance(one, dict)]
        return frozenset(names)

    def _is_hidden(self, child: object, base: str, hops: int) -> bool:
        if not isinstance(child, dict) or hops > 8:
            return False
        node = cast(JsonObject, child)
        if node.get(self._hidden) is True:
            return True
        reference = node.get("$ref")
        if isinstance(reference, str):
            found = self._schemas.references.find(reference, base)
            return self._is_hidden(found.value, found.base, hops + 1)
        inside = node.get("allOf")
        if isinstance(inside, list):
            return any(self._is_hidden(one, base, hops + 1) for one in cast("list[Any]", inside))
        return False


def _of_3_0(made: JsonObject) -> JsonObject:
    """What OpenAPI 3.0 says in its own words, in those of JSON Schema."""
    nullable = made.pop("nullable", None) is True
    if "$ref" in made:  # 3.0: nothing beside a reference counts but what is for readers
        kept = ("$ref", "description", "title", "deprecated", "default", "readOnly", "writeOnly")
        made = {key: value for key, value in made.items() if key in kept}
    for exclusive, limit in _LIMITS:
        flag = made.get(exclusive)
        if isinstance(flag, bool):
            del made[exclusive]
            if flag and limit in made:
                made[exclusive] = made.pop(limit)
    if "example" in made:
        made["examples"] = [made.pop("example")]
    if not nullable:
        return made
    if any(key in made for key in _WHOLE):
        about = {key: made.pop(key) for key in ("title", "description", "default", "deprecated") if key in made}
        return {**about, "anyOf": [made, {"type": "null"}]}
    kind: Any = made.get("type")
    if isinstance(kind, str):
        made["type"] = [kind, "null"] if kind != "null" else kind
    elif isinstance(kind, list) and "null" not in kind:
        made["type"] = [*cast("list[Any]", kind), "null"]
    choices = made.get("enum")
    if isinstance(choices, list) and None not in choices:
        made["enum"] = [*cast("list[Any]", choices), None]
    return made
