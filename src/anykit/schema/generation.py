"""JSON Schema from Python types, through pydantic, in the form that we publish.

No titles but those that the author wrote; models, dataclasses and typed dicts refuse unknown fields unless their own
`extra` says otherwise, as functions do; no default that holds a secret or is not JSON; enumerations stand where they are
used.
"""

from __future__ import annotations

import typing
from typing import Any, Final, cast

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic.json_schema import DEFAULT_REF_TEMPLATE, GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import PydanticSerializationError, core_schema

from anykit.capabilities import Json, JsonObject

from .documents import subschemas
from .hints import is_union
from .json_values import is_json

_REFERENCE: Final = "#/$defs/"
_MASK: Final = "**********"
"""What pydantic shows for a secret."""


class Generator(GenerateJsonSchema):
    """pydantic's generator with our rules."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default", "skipped-discriminator"}  # noqa: RUF012 - pydantic's own attribute

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never: a name is no title."""
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """A model, closed unless its `extra` is set."""
        cls = schema["cls"]
        made = _untitled(super().model_schema(schema), cls)
        if not schema.get("root_model") and _is_closed(cls, getattr(cls, "model_config", {})):
            self._close(made)
        return made

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        """A dataclass, closed unless its `extra` is set."""
        made = _untitled(super().dataclass_schema(schema), schema["cls"])
        if "extra" not in getattr(schema["cls"], "__pydantic_config__", {}):
            self._close(made)
        return made

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        """A typed dict, closed unless its `extra` is set."""
        cls = schema.get("cls")
        made = super().typed_dict_schema(schema)
        if cls is not None:
            made = _untitled(made, cls)
            if "extra" not in getattr(cls, "__pydantic_config__", {}):
                self._close(made)
        return made

    def generate_inner(self, schema: Any) -> JsonSchemaValue:
        """An enumeration has its class's name as a title by its metadata, which is added last."""
        made = super().generate_inner(schema)
        return _untitled(made, schema["cls"]) if schema.get("type") == "enum" else made

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        """A result's Decimal is a string, with or without an exponent."""
        return {"type": "string"} if self.mode == "serialization" else super().decimal_schema(schema)

    def encode_default(self, dft: Any) -> Any:
        """A default as JSON. One that would show a secret's mask, or is no JSON, is left out."""
        value = super().encode_default(dft)
        if not is_json(value) or holds_mask(value):
            raise PydanticSerializationError("a default that cannot be shown")
        return value

    def _close(self, made: JsonSchemaValue) -> None:
        if self.mode == "validation" and made.get("type") == "object":
            made.setdefault("additionalProperties", False)


def _untitled(made: JsonSchemaValue, cls: type[Any]) -> JsonSchemaValue:
    if made.get("title") == cls.__name__:
        made.pop("title")
    return made


def _is_closed(cls: type[Any], config: Any) -> bool:
    """Whether all names that the model takes stand in its schema."""
    if "extra" in config or config.get("populate_by_name") or config.get("validate_by_name"):
        return False
    fields = cast("dict[str, FieldInfo]", getattr(cls, "__pydantic_fields__", {}))
    return all(field.validation_alias is None or isinstance(field.validation_alias, str) for field in fields.values())


def holds_mask(value: Json) -> bool:
    """Whether a mask of pydantic's stands anywhere in `value`."""
    if isinstance(value, str):
        return value == _MASK
    if isinstance(value, dict):
        return any(holds_mask(item) for item in cast(JsonObject, value).values())
    return isinstance(value, list) and any(holds_mask(item) for item in cast("list[Any]", value))


def generate(
    adapters: dict[str, TypeAdapter[Any]], mode: JsonSchemaMode
) -> tuple[dict[str, JsonSchemaValue], dict[str, JsonSchemaValue]]:
    """The schema of each adapter by its name, and the definitions that they share.

    Raises pydantic's errors where a type has no schema.
    """
    made, shared = TypeAdapter.json_schemas(
        [(name, mode, adapter) for name, adapter in adapters.items()],
        by_alias=True,
        ref_template=DEFAULT_REF_TEMPLATE,
        schema_generator=Generator,
    )
    definitions = cast("dict[str, JsonSchemaValue]", shared.get("$defs", {}))
    return inlined({name: made[name, mode] for name in adapters}, definitions)


def inlined(
    schemas: dict[str, JsonSchemaValue], definitions: dict[str, JsonSchemaValue]
) -> tuple[dict[str, JsonSchemaValue], dict[str, JsonSchemaValue]]:
    """The same with every reference to an enumeration replaced by it: models read a list of values, not a pointer."""
    enums = {f"{_REFERENCE}{name}": made for name, made in definitions.items() if "enum" in made or "const" in made}
    if not enums:
        return schemas, definitions
    for made in enums.values():
        made.pop("title", None)
    kept = {name: made for name, made in definitions.items() if f"{_REFERENCE}{name}" not in enums}
    for made in [*schemas.values(), *kept.values()]:
        _inline(made, enums)
    return schemas, kept


def _inline(node: JsonSchemaValue, enums: dict[str, JsonSchemaValue]) -> None:
    stack: list[JsonSchemaValue] = [node]
    while stack:
        here = stack.pop()
        target = enums.get(here["$ref"]) if isinstance(here.get("$ref"), str) else None
        if target is not None:
            beside = {key: value for key, value in here.items() if key != "$ref"}
            here.clear()
            here.update({**target, **beside})
        stack.extend(child for _, child in subschemas(here) if isinstance(child, dict))


_SCALARS: Final[dict[Any, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    None: "null",
    type(None): "null",
}


def plain_schema(hint: Any) -> JsonObject | None:
    """What pydantic says of a plain JSON type, without asking it (it takes milliseconds); None for any other type."""
    try:
        scalar = _SCALARS.get(hint)
    except TypeError:  # unhashable
        return None
    if scalar is not None:
        return {"type": scalar}
    if hint is Any or hint is object:
        return {}
    if hint is list:
        return {"items": {}, "type": "array"}
    if hint is dict:
        return {"additionalProperties": True, "type": "object"}
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if is_union(hint):
        # pydantic names null last.
        members = [plain_schema(arg) for arg in sorted(args, key=lambda arg: arg is type(None))]
        # pydantic has its own way with members that take anything, and with equal ones.
        if all(members) and all(member not in members[:index] for index, member in enumerate(members)):
            return {"anyOf": members}
    elif origin is list and (items := plain_schema(args[0])) is not None:
        return {"items": items, "type": "array"}
    elif origin is dict and args[0] is str and (values := plain_schema(args[1])) is not None:
        return {"additionalProperties": values or True, "type": "object"}
    return None


def config_schema(model: type[BaseModel]) -> JsonObject:
    """The JSON Schema of a configuration: what a caller may send, its secrets marked, unknown fields refused.

    Raises pydantic's errors where a field has no schema.
    """
    made = model.model_json_schema(mode="validation", schema_generator=Generator)
    definitions = cast("dict[str, JsonSchemaValue]", made.pop("$defs", {}))
    schemas, kept = inlined({"": made}, definitions)
    return with_definitions(schemas[""], kept)


def with_definitions(root: JsonSchemaValue, definitions: dict[str, JsonSchemaValue]) -> JsonObject:
    """`root` with its definitions; a root that is only a reference becomes what it refers to."""
    reference = root.get("$ref")
    if isinstance(reference, str) and (target := definitions.get(reference.removeprefix(_REFERENCE))) is not None:
        root = {**target, **{key: value for key, value in root.items() if key != "$ref"}}
    return {**root, "$defs": definitions} if definitions else root
