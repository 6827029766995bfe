"""What callers really send, made fit for the SDK: the `toolnexus` dialect, and bodies that 0.3 peers write differently.

toolnexus   method names of 1.0, bodies and answers of 0.3, no version header (the Toolnexus A2A tools contract)
0.3 REST    `parts` as in JSON-RPC where the official server reads `content`; files that the official Python SDK, and
            only it, encodes in base64 twice
0.3         a stream's event that is `final` where a task begins to wait
"""

from __future__ import annotations

import base64
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, cast

from anykit.capabilities import Json, JsonObject

VERSION_HEADER: Final = b"a2a-version"

METHODS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "SendMessage": "message/send",
        "SendStreamingMessage": "message/stream",
        "GetTask": "tasks/get",
        "CancelTask": "tasks/cancel",
        "SubscribeToTask": "tasks/resubscribe",
        "CreateTaskPushNotificationConfig": "tasks/pushNotificationConfig/set",
        "GetTaskPushNotificationConfig": "tasks/pushNotificationConfig/get",
        "ListTaskPushNotificationConfigs": "tasks/pushNotificationConfig/list",
        "DeleteTaskPushNotificationConfig": "tasks/pushNotificationConfig/delete",
    }
)
"""Methods of 1.0 and their names in 0.3."""

STREAMS: Final = frozenset({"message/stream", "tasks/resubscribe"})
"""Methods of 0.3 that answer with a stream."""
WITHOUT_A_WORD: Final = frozenset({"input-required", "auth-required", "rejected", "unknown"})
"""States that the contract of the dialect does not know: it asks again until it reads completed, failed or canceled."""
WAITING_STATES: Final = frozenset(
    {"input-required", "auth-required", "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"}
)
TOLD: Final = 4096


def is_toolnexus(method: str, params: Json, version: str) -> bool:
    """Whether a request is in the dialect: a method of 1.0, no version (or 0.3), no body that only 1.0 has."""
    if method not in METHODS or (version and not version.startswith("0.")):
        return False
    message: object = cast(JsonObject, params).get("message") if isinstance(params, dict) else None
    if not isinstance(message, dict):
        return True
    said = cast(JsonObject, message)
    role: object = said.get("role")
    if isinstance(role, str) and role.startswith("ROLE_"):
        return False
    parts: object = said.get("parts")
    first: object = cast("list[object]", parts)[0] if isinstance(parts, list) and parts else None
    return not isinstance(first, dict) or "kind" in first or "type" in first


def of_toolnexus(request: JsonObject) -> JsonObject:
    """The request as 0.3 writes it."""
    params: object = request.get("params")
    changed: JsonObject = dict(cast(JsonObject, params)) if isinstance(params, dict) else {}
    message: object = changed.get("message")
    if isinstance(message, dict):
        changed["message"] = _whole_message(cast(JsonObject, message))
    return {**request, "method": METHODS[str(request["method"])], "params": changed}


def _whole_message(message: JsonObject) -> JsonObject:
    """A message with what 0.3 requires and the contract leaves out."""
    parts: object = message.get("parts")
    whole: JsonObject = {"kind": "message", "role": "user", **message}
    if not whole.get("messageId"):
        whole["messageId"] = str(uuid.uuid4())
    if isinstance(parts, list):
        whole["parts"] = [_kinded(part) for part in cast("list[Json]", parts)]
    return whole


def _kinded(part: Json) -> Json:
    """A part with `kind`; before 0.2.5 it was called `type`."""
    if not isinstance(part, dict) or "kind" in part:
        return cast(Json, part)
    said = dict(cast(JsonObject, part))
    if isinstance(kind := said.pop("type", None), str):
        return {"kind": kind, **said}
    for kind in ("text", "data", "file"):
        if kind in said:
            return {"kind": kind, **said}
    return said


def without_empty_ids(message: JsonObject) -> JsonObject:
    """A message without ids that are empty or null: some clients send them where they have none yet."""
    stale = [key for key in ("taskId", "contextId", "task_id", "context_id") if key in message and not message[key]]
    return {key: value for key, value in message.items() if key not in stale} if stale else message


class Told:
    """Which waiting tasks a caller in the dialect has been told of.

    The first answer is the truth. Whoever asks again does not know the word: it would ask until its time is up. It is
    then told `failed`, with the question as the reason; the task itself still waits.
    """

    def __init__(self) -> None:
        self._states: OrderedDict[str, str] = OrderedDict()

    def translate(self, task: JsonObject) -> JsonObject:
        """A task of 0.3 as the dialect's caller may read it."""
        identifier: object = task.get("id")
        status: object = task.get("status")
        if not isinstance(identifier, str) or not isinstance(status, dict):
            return task
        said = cast(JsonObject, status)
        state: object = said.get("state")
        if not isinstance(state, str) or state not in WITHOUT_A_WORD:
            self._states.pop(identifier, None)
            return task
        seen = f"{state} {said.get('timestamp')}"
        if self._states.get(identifier) != seen:
            self._states[identifier] = seen
            while len(self._states) > TOLD:
                self._states.popitem(last=False)
            return task
        metadata: object = task.get("metadata")
        kept = cast(JsonObject, metadata) if isinstance(metadata, dict) else {}
        return {**task, "status": {**said, "state": "failed"}, "metadata": {**kept, "state": state}}


# 0.3 over HTTP+JSON


def encodes_twice(user_agent: str) -> bool:
    """Whether a caller is the official Python SDK, whose HTTP+JSON of 0.3 has base64 of base64 in `fileWithBytes`."""
    name = user_agent.lower()
    return name.startswith("python") or "httpx" in name


def rest_03(body: JsonObject, *, twice: bool) -> JsonObject:
    """A body of 0.3 with the names that the official server reads (its protocol buffers).

    Args:
        body: The request's.
        twice: Whether its sender encodes files twice.
    """
    message: object = body.get("message")
    if not isinstance(message, dict):
        return body
    said = dict(cast(JsonObject, message))
    if "parts" not in said:
        content: object = said.get("content")
        if twice or not isinstance(content, list):
            return body
        said["content"] = [each_file(part, _encoded) for part in cast("list[Json]", content)]
        return {**body, "message": said}
    parts: object = said.pop("parts")
    said.pop("kind", None)
    said.setdefault(
        "content", [_rest_part(part) for part in cast("list[Json]", parts)] if isinstance(parts, list) else parts
    )
    role: object = said.get("role")
    if isinstance(role, str) and not role.startswith("ROLE_"):
        said["role"] = f"ROLE_{role.upper()}"
    changed: JsonObject = {**body, "message": said}
    configuration: object = body.get("configuration")
    if isinstance(configuration, dict) and "pushNotificationConfig" in configuration:
        renamed = dict(cast(JsonObject, configuration))
        renamed.setdefault("pushNotification", renamed.pop("pushNotificationConfig"))
        changed["configuration"] = renamed
    return changed


def _rest_part(part: Json) -> Json:
    if not isinstance(part, dict):
        return part
    said: dict[str, Any] = {key: value for key, value in cast(JsonObject, part).items() if key != "kind"}
    data: object = said.get("data")
    if isinstance(data, dict) and ("kind" in part or set(cast(JsonObject, data)) != {"data"}):
        said["data"] = {"data": data}
    file: object = said.get("file")
    if isinstance(file, dict):
        renamed = dict(cast(JsonObject, file))
        for ours, theirs in (("bytes", "fileWithBytes"), ("uri", "fileWithUri")):
            if ours in renamed:
                renamed[theirs] = renamed.pop(ours)
        said["file"] = renamed
    return each_file(said, _encoded)


def each_file(value: Json, change: Callable[[str], str]) -> Json:
    """A value of 0.3's HTTP+JSON with the bytes of every file in it changed."""
    if isinstance(value, list):
        return [each_file(item, change) for item in cast("list[Json]", value)]
    if not isinstance(value, dict):
        return value
    said = cast(JsonObject, value)
    return {
        key: change(item)
        if key == "fileWithBytes" and isinstance(item, str)
        else item
        if key in ("data", "metadata")
        else each_file(item, change)
        for key, item in said.items()
    }


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def decoded(text: str) -> str:
    """Base64 that was encoded twice, once."""
    try:
        return base64.b64decode(text, validate=True).decode("ascii")
    except ValueError:
        return text


# streams of 0.3


def with_final(event: JsonObject) -> JsonObject:
    """A stream's event of 0.3 that is `final` where the task begins to wait: the stream ends there (0.3.0, 7.2.3).

    The SDK says it of tasks that are over only.
    """
    result: object = event.get("result")
    if isinstance(result, dict):
        return {**event, "result": with_final(cast(JsonObject, result))}
    update: object = event.get("statusUpdate")
    if isinstance(update, dict):
        return {**event, "statusUpdate": _final(cast(JsonObject, update))}
    return _final(event) if event.get("kind") == "status-update" else event


def _final(update: JsonObject) -> JsonObject:
    status: object = update.get("status")
    state: object = cast(JsonObject, status).get("state") if isinstance(status, dict) else None
    return {**update, "final": True} if state in WAITING_STATES else update
