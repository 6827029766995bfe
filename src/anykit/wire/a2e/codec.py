"""One line of the wire to a message, and back.

Reading goes in steps, so that a session can put its own checks between them, in the protocol's order: `read_object` (JSON, an
object), `check_version`, `find_type`, `build`. `decode` is all four.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, cast

import pydantic_core
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from .json_values import Fault, JsonError, find_fault, pointer, read_json
from .messages.envelope import A2E_VERSION, Message
from .messages.registry import MESSAGE_TYPES, TYPE_ALIASES, WireType

_MAX_ERRORS = 20
_MAX_TEXT = 200


class DecodeError(ValueError):
    """A line that is no message. It says what an `error` message says.

    `code` is `parse_error`, `invalid_message`, `schema_violation` or `version_mismatch`; `req_id` the id of the message where it
    could be found, else ""; `detail` never holds a value of the message.
    """

    def __init__(self, code: str, message: str, *, req_id: str = "", detail: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.req_id = req_id
        self.detail: dict[str, Any] = dict(detail or {})


class EncodeError(ValueError):
    """A message that cannot be sent. `path` is a JSON pointer into it."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(f"{reason}, at {path!r}" if path else reason)
        self.reason = reason
        self.path = path


def decode(line: bytes, *, types: Mapping[str, WireType] = MESSAGE_TYPES) -> Message:
    """Read one line (without its newline) as a message of one of `types`.

    Raises:
        DecodeError: and nothing else, whatever the line holds.
    """
    fields = read_object(line)
    check_version(fields)
    return build(find_type(fields, types=types), fields)


def read_object(line: bytes) -> dict[str, Any]:
    """Read one line as a JSON object.

    Raises:
        DecodeError: `parse_error`.
    """
    try:
        value = read_json(line)
    except JsonError as error:
        raise DecodeError("parse_error", str(error), req_id=id_of(error.value)) from None
    if not isinstance(value, dict):
        raise DecodeError("parse_error", "a message is a JSON object")
    return cast("dict[str, Any]", value)


def id_of(fields: Any) -> str:
    """The id that an answer can name: the object's `id` where it is a string that can be sent, else ""."""
    if not isinstance(fields, dict):
        return ""
    value: Any = cast("dict[str, Any]", fields).get("id")
    return value if isinstance(value, str) and find_fault(value) is None else ""


def check_version(fields: dict[str, Any]) -> None:
    """Accept major version 1, under the key `version` or the older documents' `a2e`; neither key means 1.0.

    Raises:
        DecodeError: `version_mismatch`.
    """
    version = fields.get("version")
    if version is None:
        if "version" in fields or (version := fields.pop("a2e", None)) is None:
            return
        fields["version"] = version
    if version == A2E_VERSION or not isinstance(version, str):
        return  # what is not a string is for `build` to refuse
    if version.partition(".")[0] != "1":
        raise DecodeError(
            "version_mismatch",
            f"this side speaks A2E {A2E_VERSION}",
            req_id=id_of(fields),
            detail={"supported": [A2E_VERSION]},
        )


def find_type(fields: dict[str, Any], *, types: Mapping[str, WireType] = MESSAGE_TYPES) -> WireType:
    """The type that the object names, by its own name or an alias.

    Raises:
        DecodeError: `invalid_message`.
    """
    name = fields.get("type")
    if isinstance(name, str):
        if found := types.get(name):
            return found
        if found := types.get(TYPE_ALIASES.get(name, "")):
            return found
        raise DecodeError("invalid_message", f"unknown type {name[:_MAX_TEXT]!r}", req_id=id_of(fields))
    raise DecodeError("invalid_message", "a message names its type in a string", req_id=id_of(fields))


def build(kind: WireType, fields: dict[str, Any]) -> Message:
    """Make the message of an object. Unknown fields are dropped.

    Raises:
        DecodeError: `schema_violation`, detail `{field, errors: [{path, message}]}`.
    """
    try:
        message = kind.validate(fields)
    except ValidationError as error:
        raise _violation(kind, fields, error) from None
    if message.type != kind.name:  # an alias
        message.type = kind.name
    return message


def encode(message: Message, *, exclude: Set[str] | None = None) -> bytes:
    """Write a message as one line, without the newline: ASCII, compact, keys in the order of the fields, nulls written out.

    Raises:
        EncodeError: NaN, Infinity, half a surrogate pair, too deep nesting or a value that JSON does not have.
    """
    kind = type(message)
    if not kind.__pydantic_complete__:
        kind.model_rebuild()
    try:
        line = kind.__pydantic_serializer__.to_json(
            message, ensure_ascii=True, warnings=False, exclude=set(exclude) if exclude else None
        )
    except (PydanticSerializationError, UnicodeError, RecursionError, ValueError) as error:
        fault = _fault_of(message) or Fault("", _reason(error))
        raise EncodeError(fault.reason, fault.path) from None
    if _is_suspect(line) and (fault := _fault_of(message)):
        raise EncodeError(fault.reason, fault.path)
    return line


def encode_fields(fields: dict[str, Any]) -> bytes:
    """Write a message's fields, every one of them and in their order, as `encode` does the message: for the hottest reply.

    Raises:
        EncodeError: as `encode`.
    """
    try:
        line = pydantic_core.to_json(fields, ensure_ascii=True)
    except (PydanticSerializationError, UnicodeError, RecursionError, ValueError) as error:
        fault = find_fault(fields) or Fault("", _reason(error))
        raise EncodeError(fault.reason, fault.path) from None
    if _is_suspect(line) and (fault := find_fault(fields)):
        raise EncodeError(fault.reason, fault.path)
    return line


def _is_suspect(line: bytes) -> bool:
    """Whether a line may hold what JSON does not have, or nests too deep; most do not, and need no second look."""
    return (
        b"NaN" in line
        or b"Infinity" in line
        or b"\\ufffd\\ufffd\\ufffd" in line  # what a lone surrogate in a key becomes
        or line.count(b"[") + line.count(b"{") > 128
    )


def _violation(kind: WireType, fields: dict[str, Any], error: ValidationError) -> DecodeError:
    errors = [
        {"path": pointer(*found["loc"])[:_MAX_TEXT], "message": found["msg"][:_MAX_TEXT]}
        for found in error.errors(include_url=False, include_context=False, include_input=False)[:_MAX_ERRORS]
    ]
    first = errors[0]
    field = first["path"].removeprefix("/")
    return DecodeError(
        "schema_violation",
        f"{kind.name}: {field or 'the message'}: {first['message']}",
        req_id=id_of(fields),
        detail={"field": field, "errors": errors},
    )


def _fault_of(message: Message) -> Fault | None:
    try:
        return find_fault(message.model_dump(warnings=False))
    except (ValueError, RecursionError) as error:
        return Fault("", _reason(error))


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError) or "depth exceeded" in str(error):
        return "nested too deep"
    return f"a value that JSON does not have ({type(error).__name__})"
