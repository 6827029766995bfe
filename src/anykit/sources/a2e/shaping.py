"""From A2E's words to the layer's: definitions to specs, results to results, errors to errors, each by one table."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, cast, get_args

from anykit.capabilities import (
    Annotations,
    Artifact,
    AudioPart,
    BlobPart,
    CapabilityError,
    ContentPart,
    Event,
    ExecutionFailed,
    Fault,
    ImagePart,
    InvalidInput,
    InvocableResult,
    Json,
    JsonObject,
    Log,
    LogLevel,
    Progress,
    Status,
    Suspension,
    SuspensionKind,
    TextPart,
    Unavailable,
)
from anykit.capabilities import outcomes as codes
from anykit.schema import SchemaError, compile_schema
from anykit.sources.hostile import Malformed, check_name, clean_schema, clean_tags, clean_text
from anykit.tools import ToolSpec
from anykit.wire.a2e import A2EEvent, ToolDefinition, ToolResult

from .errors import A2ERequestError

FAILURES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "unknown_tool": codes.UNKNOWN_TOOL,
        "tool_denied": codes.POLICY,
        "tool_error": codes.EXECUTION_FAILED,
        "tool_execution_error": codes.EXECUTION_FAILED,
        "timeout": codes.TIMEOUT,
        "capability_missing": codes.UNAVAILABLE,
        "unauthorized": codes.UNAVAILABLE,
        "version_mismatch": codes.UNAVAILABLE,
        "out_of_memory": codes.INTERNAL,
        "sandbox_crash": codes.INTERNAL,
        "parse_error": codes.INVALID_OUTPUT,
    }
)
"""A2E's code to ours; `schema_violation` is `InvalidInput`. A code that is not here stays the host's own word."""

REASONS: Final = frozenset(
    {
        codes.NOT_CONFIGURED,
        codes.DISABLED,
        codes.POLICY,
        codes.BUSY,
        codes.UNAVAILABLE,
        codes.UNKNOWN,
        codes.INTERNAL,
        codes.INVALID_OUTPUT,
        codes.CANCELLED,
    }
)
"""Words of ours that a host may say in `detail.reason`, where A2E's code says less."""

MAX_FAULTS: Final = 100
MAX_ARTIFACTS: Final = 8 * 1024 * 1024
"""Bytes of all artifacts of one call that become parts of its result."""
MAX_PARTS: Final = 64
MAX_MESSAGE: Final = 16_384
"""Characters of an error's text."""
_JSON_TYPES: Final = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
_TYPE_ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object"}
)


def spec_of(definition: ToolDefinition, *, kind: str = "a2e") -> ToolSpec:
    """The spec of a listed tool, made harmless. Raises `Malformed` where the tool cannot be used."""
    name = check_name(definition.name)
    schema = _object_schema(clean_schema(input_schema_of(definition)))
    toolkit = clean_text(definition.toolkit or "", 256)
    return ToolSpec(
        name=name,
        description=clean_text(definition.description),
        input_schema=schema,
        output_schema=_output_schema(definition),
        annotations=Annotations(idempotent=definition.idempotent or None),
        metadata={"a2e": {"toolkit": toolkit or None, "streaming": definition.streaming}},
        tags=clean_tags(definition.tags),
        kind=kind,
        version=clean_text(definition.version, 64),
        deferred=definition.defer_loading,
    )


def _object_schema(schema: JsonObject) -> JsonObject:
    """The schema, known to describe an object and to be one that we can hold arguments against."""
    if "type" not in schema:
        schema = {"type": "object", **schema}
    if schema["type"] != "object":
        raise Malformed(f"its input schema describes no object but {str(schema['type'])[:40]!r}")
    try:
        compile_schema(schema)
    except SchemaError as error:
        raise Malformed(f"its input schema cannot be used: {clean_text(str(error), 300)}") from None
    return schema


def _output_schema(definition: ToolDefinition) -> JsonObject | None:
    """The promise about the result, where it can be understood; else there is none."""
    if definition.output_schema is None:
        return None
    try:
        schema = clean_schema(definition.output_schema)
        compile_schema(schema)
    except (Malformed, SchemaError):
        return None
    return schema


def input_schema_of(definition: ToolDefinition) -> JsonObject:
    """The JSON Schema of a tool's arguments: its own, or made from the list of parameters."""
    if definition.input_schema is not None:
        return definition.input_schema
    properties: JsonObject = {}
    for parameter in definition.input_parameters:
        kind = _TYPE_ALIASES.get(parameter.type.lower(), parameter.type.lower())
        part: JsonObject = {"type": kind} if kind in _JSON_TYPES else {}
        if parameter.description:
            part["description"] = parameter.description
        if parameter.enum:
            part["enum"] = parameter.enum
        if parameter.properties and kind == "object":
            part["properties"] = parameter.properties
        properties[parameter.name] = part
    required = [parameter.name for parameter in definition.input_parameters if parameter.required]
    schema: JsonObject = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema


def result_of(result: ToolResult) -> InvocableResult | Suspension:
    """What a call gave. Raises `ExecutionFailed`, or `InvalidInput`, where `success` is False."""
    if not result.success:
        return _unsuccessful(result)
    given = _given(result)
    return given if given is not None else InvocableResult(text="null", structured=None, metadata=_facts(result))


def _given(result: ToolResult) -> InvocableResult | None:
    """Data and summary as a result; None where there is neither."""
    summary = result.summary if isinstance(result.summary, str) else None
    if result.data is None:
        if summary is None or summary == "null":
            return None
        return InvocableResult(text=summary, metadata=_facts(result))
    if summary is None and isinstance(result.data, str):
        summary = result.data
    if summary is None:
        return InvocableResult(structured=result.data, metadata=_facts(result))
    return InvocableResult(text=summary, structured=result.data, metadata=_facts(result))


def _facts(result: ToolResult) -> JsonObject:
    facts: JsonObject = {}
    if result.truncated:
        facts["truncated"] = True
    if result.exit_code is not None:
        facts["exit_code"] = result.exit_code
    return facts


def _unsuccessful(result: ToolResult) -> Suspension:
    code = (result.error_code or "tool_error").strip().lower()
    data: object = result.data
    if code == "suspended" and isinstance(data, dict):
        return _suspension(cast(JsonObject, data))
    summary = result.summary if isinstance(result.summary, str) else None
    message = result.error or summary or f"{result.tool_name} failed"
    raise layer_error(A2ERequestError(code, message), _given(result))


def _suspension(data: JsonObject) -> Suspension:
    """A question that the host holds; its id there is what an answer names."""
    kind: object = data.get("kind")
    id, prompt, url = (cast(object, data.get(key)) for key in ("id", "prompt", "url"))
    schema, expires_at = (cast(object, data.get(key)) for key in ("schema", "expires_at"))
    if not isinstance(id, str) or not id:
        raise ExecutionFailed("the call waits for an answer, but the host does not say to which question")
    return Suspension(
        id=id[:256],
        kind=cast(SuspensionKind, kind) if kind in get_args(SuspensionKind) else "input",
        prompt=clean_text(prompt) if isinstance(prompt, str) else "",
        schema=clean_schema(cast(JsonObject, schema)) if isinstance(schema, dict) else None,
        url=clean_text(url, 2048) if isinstance(url, str) else None,
        data=data.get("data"),
        expires_at=float(expires_at) if isinstance(expires_at, int | float) else None,
        state={"a2e": id},
    )


def layer_error(error: A2ERequestError, result: InvocableResult | None = None) -> CapabilityError:
    """The host's error as one of the layer's."""
    message = clean_text(error.message, MAX_MESSAGE)
    detail = error.detail
    if error.code == "schema_violation":
        return InvalidInput(message, _faults(detail.get("errors")))
    reason = detail.get("reason")
    code = reason if isinstance(reason, str) and reason in REASONS else FAILURES.get(error.code)
    own_word = detail.get("code")
    if error.code == "tool_error" and isinstance(own_word, str):
        code = clean_text(own_word, 64)
    if code is None:
        code = clean_text(error.code, 64)
    if code == codes.UNAVAILABLE and reason == codes.UNAVAILABLE:
        return Unavailable(message)
    if result is None and "structured" in detail:
        result = InvocableResult(structured=detail["structured"])
    kept: JsonObject = {
        key: clean_text(value, 1024) for key in ("reason", "toolkit") if isinstance(value := detail.get(key), str)
    }
    return ExecutionFailed(message, code=code, retryable=error.retryable, result=result, detail=kept)


def _faults(errors: Json) -> list[Fault]:
    if not isinstance(errors, list):
        return []
    faults: list[Fault] = []
    for error in cast("list[Any]", errors)[:MAX_FAULTS]:
        if isinstance(error, dict):
            fields = cast(JsonObject, error)
            path, message = fields.get("path", ""), fields.get("message", "")
            if isinstance(path, str) and isinstance(message, str):
                faults.append({"path": clean_text(path, 1024), "message": clean_text(message, 1024)})
    return faults


_LEVELS: Final[Mapping[str, LogLevel]] = MappingProxyType(
    {
        "trace": "debug",
        "debug": "debug",
        "info": "info",
        "notice": "info",
        "warn": "warning",
        "warning": "warning",
        "error": "error",
        "critical": "error",
        "fatal": "error",
    }
)


def event_of(event: A2EEvent) -> Event | None:
    """An event of a call as the layer has it; None for one that says nothing that we know."""
    data = event.data
    message = clean_text(text) if isinstance(text := data.get("message"), str) else ""
    match event.kind:
        case "progress":
            return _progress(data, message)
        case "log":
            level = data.get("level")
            return Log(_LEVELS.get(level.lower(), "info") if isinstance(level, str) else "info", message)
        case "artifact":
            return _artifact(data)
        case "status":
            return Status(message)
        case _:
            return None


def _progress(data: JsonObject, message: str) -> Progress | None:
    done, total = _number(data.get("done")), _number(data.get("total"))
    if done is not None:
        return Progress(done, total, message)
    percent = _number(data.get("pct"))
    if percent is not None:
        return Progress(percent, 100.0, message)
    return Progress(0.0, None, message) if message else None


def _number(value: Json) -> float | None:
    return (
        float(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300 else None
    )


def _artifact(data: JsonObject) -> Artifact | None:
    name, chunk, mime = data.get("name"), data.get("chunk"), data.get("mime")
    if not isinstance(chunk, str):
        return None
    media_type = clean_text(mime, 256) if isinstance(mime, str) and mime else "application/octet-stream"
    label = clean_text(name, 256) if isinstance(name, str) and name else "artifact"
    last = data.get("final", True) is not False
    append = data.get("append", False) is True
    try:
        body = base64.b64decode(chunk, validate=True)
    except ValueError:  # a host that sends text as it is
        return Artifact(label, TextPart(text=chunk), append, last)
    return Artifact(label, BlobPart(data=body, name=label, media_type=media_type), append, last)


class Artifacts:
    """The artifacts of one call, put together as they come: they are pieces of its result."""

    def __init__(self, most_bytes: int = MAX_ARTIFACTS) -> None:
        self._bodies: dict[str, tuple[str, bytearray]] = {}
        self._room = most_bytes

    def take(self, artifact: Artifact) -> None:
        """Add a piece. What goes beyond the bound is dropped."""
        part = artifact.part
        media_type, body = (
            (part.media_type, part.data or b"")
            if isinstance(part, BlobPart)
            else ("text/plain", part.text.encode("utf-8", "replace") if isinstance(part, TextPart) else b"")
        )
        if len(body) > self._room or (artifact.name not in self._bodies and len(self._bodies) >= MAX_PARTS):
            return
        self._room -= len(body)
        known = self._bodies.get(artifact.name)
        if known is None or not artifact.append:
            self._bodies[artifact.name] = (media_type, bytearray(body))
        else:
            known[1].extend(body)

    def parts(self) -> tuple[ContentPart, ...]:
        """What came, as parts of a result, in order."""
        return tuple(_part(name, media_type, bytes(body)) for name, (media_type, body) in self._bodies.items())


def _part(name: str, media_type: str, body: bytes) -> ContentPart:
    if media_type.startswith("image/"):
        return ImagePart(data=body, media_type=media_type)
    if media_type.startswith("audio/"):
        return AudioPart(data=body, media_type=media_type)
    return BlobPart(data=body, name=None if is_unnamed(name) else name, media_type=media_type)


def is_unnamed(name: str) -> bool:
    """Whether a host made the name up for a part of a result (`content-0`): such a part comes with the result anyway."""
    return _UNNAMED.fullmatch(name) is not None


_UNNAMED = re.compile(r"content-\d{1,4}")
