"""What an agent answers, in any of its dialects: a task, a message, or news of a task. Both spellings of everything.

{"task": {...}}  {"message": {...}}  {"statusUpdate": {...}}  {"artifactUpdate": {...}}       1.0
{"kind": "task", ...}  {"kind": "message", ...}  {"kind": "status-update", ...}  ...          0.3
{"id": ..., "status": {...}}                                                                  the bare ones
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import math
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from anykit.capabilities import BlobPart, ContentPart, Json, JsonObject, StructuredPart, TextPart

from .errors import BY_CODE, BY_REASON, BY_STATUS, RefusalKind, Refused, Unreadable
from .fields import a_list, a_text, an_id, an_object, member, well_formed
from .states import state_of

MAX_PARTS = 1000
"""Parts of one message or artifact."""
MAX_ARTIFACTS = 1000
MAX_HISTORY = 1000
"""Entries of a history that are looked at, the newest."""
MAX_DEPTH = 100
"""How deep a part's data may nest."""
MAX_REASON = 2000
"""Characters of an error's text."""
_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class Message:
    """What was said. `role` is `user`, `agent`, or "" where the peer does not say."""

    role: str
    parts: tuple[ContentPart, ...]
    id: str = ""
    context_id: str = ""
    task_id: str = ""
    left_out: tuple[str, ...] = ()
    """Parts that could not be read, and why."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A result, or a piece of one."""

    id: str
    name: str
    parts: tuple[ContentPart, ...]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """A task as it is."""

    id: str
    context_id: str
    state: str
    message: Message | None = None
    """What its status says."""
    timestamp: str = ""
    artifacts: tuple[Artifact, ...] = ()
    history: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class StatusUpdate:
    """A task is in another state."""

    task_id: str
    context_id: str
    state: str
    message: Message | None = None
    timestamp: str = ""
    final: bool = False


@dataclass(frozen=True, slots=True)
class ArtifactUpdate:
    """A task has a result, or more of one."""

    task_id: str
    context_id: str
    artifact: Artifact
    append: bool = False
    last: bool = False


Item: TypeAlias = Task | Message | StatusUpdate | ArtifactUpdate

_WRAPPERS = (
    ("task", "task"),
    ("statusUpdate", "status-update"),
    ("status_update", "status-update"),
    ("artifactUpdate", "artifact-update"),
    ("artifact_update", "artifact-update"),
    ("message", "message"),
    ("msg", "message"),
)
_KINDS = frozenset({"task", "message", "status-update", "artifact-update"})


# the envelope


def decode(data: bytes) -> Json:
    """The JSON value of an answer. Raises `Unreadable`."""
    try:
        return json.loads(data, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise Unreadable("the answer is no JSON") from None


def read_rpc(payload: Json, status: int = 200) -> Json:
    """The result in a JSON-RPC answer. Raises `Refused`, `Unreadable`."""
    answer = an_object(payload)
    if answer is None:
        raise Unreadable("the answer is no JSON-RPC object")
    error = answer.get("error")
    if error is not None:
        raise _refused(error, status)
    if "result" not in answer:
        raise Unreadable("the answer has neither a result nor an error")
    return answer["result"]


def read_rest_error(payload: Json, status: int) -> Refused:
    """What an HTTP+JSON answer with an error status, or an error in a stream, says."""
    answer = an_object(payload) or {}
    error = answer.get("error", answer)
    return _refused(error, status)


def refused_by_status(status: int) -> Refused | None:
    """The refusal that an HTTP status alone is; None where it may mean anything."""
    kind = BY_STATUS.get(status)
    return None if kind is None else Refused(kind, "", status=status)


def _refused(error: Json, status: int) -> Refused:
    if isinstance(error, str):
        return Refused(BY_STATUS.get(status, "other"), well_formed(error[:MAX_REASON]), status=status)
    given = an_object(error) or {}
    message = a_text(given, "message", "detail", "title", limit=MAX_REASON)
    code = given.get("code")
    code = code if isinstance(code, int) and not isinstance(code, bool) else None
    kind: RefusalKind | None = None if code is None else BY_CODE.get(code)
    for detail in a_list(given.get("details")):
        reason = a_text(an_object(detail) or {}, "reason", limit=64)
        kind = kind or BY_REASON.get(reason)
    kind = kind or BY_REASON.get(a_text(given, "reason", "type", limit=64))
    rpc_code = code if code is not None and code < 0 else None
    return Refused(kind or BY_STATUS.get(status, "other"), message, code=rpc_code, status=status)


# what is in it


def read_item(result: Json) -> Item:
    """A task, message or update from a result, bare or wrapped. Raises `Unreadable`."""
    given = an_object(result)
    if given is None:
        raise Unreadable("the result is no object")
    kind = given.get("kind")
    if not (isinstance(kind, str) and kind in _KINDS):
        kind = ""
        for key, wrapped in _WRAPPERS:
            inner = an_object(given.get(key))
            if inner is not None and "id" not in given and "parts" not in given and "taskId" not in given:
                given, kind = inner, wrapped
                break
    match kind or _shape(given):
        case "task":
            return read_task(given)
        case "message":
            return read_message(given)
        case "status-update":
            return _status_update(given)
        case "artifact-update":
            return _artifact_update(given)
        case _:
            raise Unreadable("the result is neither a task nor a message")


def _shape(given: JsonObject) -> str:
    """What an object without a kind is, by its members."""
    if "artifact" in given:
        return "artifact-update"
    if "status" in given and "id" not in given and ("taskId" in given or "task_id" in given):
        return "status-update"
    if isinstance(member(given, "parts", "content"), list):
        return "message"
    if any(key in given for key in ("status", "artifacts", "history")):
        return "task"
    return ""


def read_task(given: JsonObject) -> Task:
    """A task from its object."""
    status = an_object(given.get("status")) or {}
    artifacts = a_list(given.get("artifacts"))[:MAX_ARTIFACTS]
    history = a_list(given.get("history"))[-MAX_HISTORY:]
    return Task(
        id=an_id(given, "id", "taskId", "task_id"),
        context_id=an_id(given, "contextId", "context_id"),
        state=state_of(member(given, "status", "state")),
        message=_status_message(status),
        timestamp=a_text(status, "timestamp", limit=64),
        artifacts=tuple(read_artifact(item, index) for index, item in enumerate(artifacts) if isinstance(item, dict)),
        history=tuple(read_message(entry) for entry in map(an_object, history) if entry is not None),
    )


def read_message(given: JsonObject) -> Message:
    """A message from its object."""
    parts, left_out = _parts(member(given, "parts", "content"))
    role = a_text(given, "role", limit=32).lower().removeprefix("role_")
    return Message(
        role=role if role in ("user", "agent") else "agent" if role in ("assistant", "model") else "",
        parts=parts,
        id=an_id(given, "messageId", "message_id"),
        context_id=an_id(given, "contextId", "context_id"),
        task_id=an_id(given, "taskId", "task_id"),
        left_out=left_out,
    )


def read_artifact(item: Json, index: int = 0) -> Artifact:
    """An artifact from its object; one without an id is known by its name or place."""
    given = an_object(item) or {}
    parts, left_out = _parts(given.get("parts"))
    name = a_text(given, "name", limit=256)
    return Artifact(an_id(given, "artifactId", "artifact_id") or name or f"#{index}", name, parts, left_out)


def _status_update(given: JsonObject) -> StatusUpdate:
    status = an_object(given.get("status")) or {}
    return StatusUpdate(
        task_id=an_id(given, "taskId", "task_id"),
        context_id=an_id(given, "contextId", "context_id"),
        state=state_of(member(given, "status", "state")),
        message=_status_message(status),
        timestamp=a_text(status, "timestamp", limit=64),
        final=given.get("final") is True,
    )


def _artifact_update(given: JsonObject) -> ArtifactUpdate:
    return ArtifactUpdate(
        task_id=an_id(given, "taskId", "task_id"),
        context_id=an_id(given, "contextId", "context_id"),
        artifact=read_artifact(given.get("artifact")),
        append=given.get("append") is True,
        last=member(given, "lastChunk", "last_chunk") is True,
    )


def _status_message(status: JsonObject) -> Message | None:
    given = an_object(member(status, "message", "update"))
    return None if given is None else read_message(given)


# parts


def _parts(given: Json) -> tuple[tuple[ContentPart, ...], tuple[str, ...]]:
    parts: list[ContentPart] = []
    left_out: list[str] = []
    for index, item in enumerate(a_list(given)):
        if index >= MAX_PARTS:
            left_out.append(f"more than {MAX_PARTS} parts; the rest is left out")
            break
        part = _part(item)
        if isinstance(part, str):
            left_out.append(f"part {index}: {part}")
        else:
            parts.append(part)
    return tuple(parts), tuple(left_out)


def _part(item: Json) -> ContentPart | str:
    """A part, or why it cannot be read."""
    given = an_object(item)
    if given is None:
        return "it is no object"
    text = given.get("text")
    if isinstance(text, str):
        media_type = _media_type(given)
        return (
            TextPart(text=well_formed(text), media_type=media_type) if media_type else TextPart(text=well_formed(text))
        )
    file = an_object(given.get("file"))
    if file is not None:
        return _file(file)
    if "raw" in given or "url" in given:
        return _file(given)
    if "data" in given:
        data = given["data"]
        nested = an_object(data)
        if "kind" not in given and "mediaType" not in given and nested is not None and list(nested) == ["data"]:
            data = nested["data"]  # 0.3 as protobuf: a DataPart is a message of its own
        value, fault = _plain(data, 0)
        return fault or StructuredPart(value=value)
    return "it is of no known kind"


def _media_type(given: JsonObject) -> str:
    return a_text(given, "mediaType", "mimeType", "media_type", "mime_type", limit=256)


def _file(given: JsonObject) -> ContentPart | str:
    name = a_text(given, "filename", "name", limit=1024) or None
    media_type = _media_type(given) or "application/octet-stream"
    uri = a_text(given, "url", "uri", "fileWithUri", "file_with_uri") or None
    written = member(given, "raw", "bytes", "fileWithBytes", "file_with_bytes")
    data: bytes | None = None
    if written is not None:
        if not isinstance(written, str):
            return "its bytes are no text"
        try:
            data = _from_base64(written)
            if "raw" not in given and "bytes" not in given:
                data = _unwrapped(data)
        except ValueError:
            return "its bytes are not base64"
    if data is None and uri is None:
        return "it is a file without bytes or a link"
    return BlobPart(data=data, uri=uri, name=name, media_type=media_type)


def _unwrapped(data: bytes) -> bytes:
    """The official server of 0.3 HTTP+JSON writes base64 of base64: its protobuf field holds what JSON-RPC would."""
    if data and len(data) % 4 == 0:
        with contextlib.suppress(binascii.Error):
            return base64.b64decode(data, validate=True)
    return data


def _from_base64(text: str) -> bytes:
    """Standard or URL-safe, padded or not, as protobuf's JSON may be. Raises `ValueError`."""
    text = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error


def _plain(value: Json, depth: int) -> tuple[Json, str]:
    """A part's data as it is handed on: whole doubles are integers, texts are well-formed. And what is wrong with it."""
    if depth > MAX_DEPTH:
        return None, f"its data nests deeper than {MAX_DEPTH}"
    if isinstance(value, str):
        return well_formed(value), ""
    if isinstance(value, float):
        if not math.isfinite(value):
            return None, "its data holds a number beyond a double"
        # Protobuf knows only doubles, and writes 1 as 1.0.
        return (int(value) if value.is_integer() and abs(value) <= _EXACT else value), ""
    if isinstance(value, list):
        items: list[Any] = []
        for item in cast("list[Any]", value):
            plain, fault = _plain(item, depth + 1)
            if fault:
                return None, fault
            items.append(plain)
        return items, ""
    if isinstance(value, dict):
        members: JsonObject = {}
        for key, item in cast(JsonObject, value).items():
            plain, fault = _plain(item, depth + 1)
            if fault:
                return None, fault
            members[well_formed(key)] = plain
        return members, ""
    return value, ""


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is no JSON")
