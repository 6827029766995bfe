"""From what an agent answered to what its caller gets: a result, a question, or why it failed.

The text of a result is that of its artifacts (text parts of one join with nothing between, artifacts with a newline),
else of the status, else of the agent's last entry in the history (parts of a message with a newline); never what the
caller said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from anykit.capabilities import (
    BlobPart,
    ContentPart,
    InvocableResult,
    JsonObject,
    MetadataMap,
    StructuredPart,
    TextPart,
)

from .answers import Artifact, Message
from .conversation import Conversation, joined_text
from .fields import an_object

_LINK = re.compile(r"https?://[^\s<>\"'\\\x00-\x1f\x7f]{1,2000}")
_LINK_MEMBERS = (
    "url",
    "auth_url",
    "authUrl",
    "authorization_url",
    "authorizationUrl",
    "verification_uri",
    "verificationUri",
    "verification_uri_complete",
    "login_url",
    "loginUrl",
)
_SCHEMA_MEMBERS = ("schema", "input_schema", "inputSchema", "requestedSchema", "requested_schema")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question in the way of a result."""

    kind: Literal["input", "authorization"]
    prompt: str
    """"" where the agent gave no words."""
    url: str | None
    schema: JsonObject | None
    data: tuple[Any, ...]
    """Structured values that came with it."""


def result_of(talk: Conversation, metadata: MetadataMap) -> InvocableResult:
    """The result of what completed."""
    if talk.reply is not None:
        parts, left_out = list(talk.reply.parts), talk.reply.left_out
    else:
        parts, left_out = _of_task(talk)
    return _result(parts, left_out, metadata)


def _of_task(talk: Conversation) -> tuple[list[ContentPart], Sequence[str]]:
    artifacts = talk.artifacts
    parts = _merged(artifact.parts for artifact in artifacts)
    left_out = [reason for artifact in artifacts for reason in artifact.left_out]
    if any(isinstance(part, TextPart) for part in parts):
        return parts, left_out
    for message in (talk.said, None if parts else _last_of_agent(talk.history)):
        if message is not None and message.parts:
            return [*message.parts, *parts], [*left_out, *message.left_out]
    return parts, left_out


def _last_of_agent(history: Sequence[Message]) -> Message | None:
    return next((entry for entry in reversed(history) if entry.role == "agent" and entry.parts), None)


def _merged(groups: Iterable[Sequence[ContentPart]]) -> list[ContentPart]:
    """The parts of each group with its texts as one, where the first of them stood."""
    merged: list[ContentPart] = []
    for parts in groups:
        texts = [part for part in parts if isinstance(part, TextPart)]
        if len(texts) < 2:
            merged += [part for part in parts if not (isinstance(part, TextPart) and not part.text)]
            continue
        kinds = {part.media_type for part in texts}
        text = "".join(part.text for part in texts)
        whole = TextPart(text=text, media_type=kinds.pop()) if len(kinds) == 1 else TextPart(text=text)
        for part in parts:
            if not isinstance(part, TextPart):
                merged.append(part)
            elif part is texts[0] and text:
                merged.append(whole)
    return merged


def _result(parts: list[ContentPart], left_out: Sequence[str], metadata: MetadataMap) -> InvocableResult:
    metadata = {**metadata, "left_out": list(left_out[:20])} if left_out else metadata
    values = [part.value for part in parts if isinstance(part, StructuredPart)]
    if not parts:
        text = f"[the answer could not be read: {'; '.join(left_out[:3])}]" if left_out else ""
        return InvocableResult(text=text, metadata=metadata)
    if len(parts) == 1 and isinstance(parts[0], TextPart) and parts[0].media_type == "text/plain":
        return InvocableResult(text=parts[0].text, metadata=metadata)
    if values:
        structured = values[0] if len(values) == 1 else values
        texts = [part.text for part in parts if isinstance(part, TextPart)]
        kept = tuple(part for part in parts if not (isinstance(part, StructuredPart) and _says(texts, part.value)))
        return InvocableResult(structured=structured, content=kept, metadata=metadata)
    return InvocableResult(content=tuple(parts), metadata=metadata)


def _says(texts: Sequence[str], value: Any) -> bool:
    """Whether one of the texts is the value already, so that a reader need not see it twice."""
    for text in texts:
        if text == value:
            return True
        if text[:1] in '{["-0123456789tfn':
            try:
                if json.loads(text) == value:
                    return True
            except (ValueError, RecursionError):
                continue
    return False


def reason_of(talk: Conversation) -> str:
    """What the agent says about a task that did not complete; "" where it says nothing."""
    text = "" if talk.said is None else joined_text(talk.said.parts)
    if not text and (last := _last_of_agent(talk.history)) is not None:
        text = joined_text(last.parts)
    return text


def partial_of(talk: Conversation) -> tuple[ContentPart, ...]:
    """What there is of the results of a task that did not complete, each marked as partial."""
    parts: list[ContentPart] = []
    for artifact in talk.artifacts:
        mark = {"partial": True, "artifact": artifact.name or artifact.id}
        parts += [part.model_copy(update={"metadata": {**part.metadata, **mark}}) for part in _merged([artifact.parts])]
    return tuple(parts)


def question_of(talk: Conversation) -> Asked:
    """What a task waits for."""
    said = talk.said if talk.said is not None and talk.said.parts else None
    source: Sequence[ContentPart] = () if said is None else said.parts
    prompt = joined_text(source)
    if not prompt and (last := _last_of_agent(talk.history)) is not None:
        source = (*source, *last.parts)
        prompt = joined_text(last.parts)
    if not prompt:
        prompt = "\n".join(filter(None, (_text_of(artifact) for artifact in talk.artifacts)))
    kind = "authorization" if talk.state == "auth-required" else "input"
    values = tuple(part.value for part in source if isinstance(part, StructuredPart))
    return Asked(kind, prompt, _link(source, prompt, kind), _schema(values), values)


def _text_of(artifact: Artifact) -> str:
    return "".join(part.text for part in artifact.parts if isinstance(part, TextPart))


def _link(parts: Sequence[ContentPart], prompt: str, kind: str) -> str | None:
    """Where a person answers: said in data, as a linked part, or for an authorization in the words."""
    for part in parts:
        if isinstance(part, StructuredPart):
            data = an_object(part.value) or {}
            for name in _LINK_MEMBERS:
                value = data.get(name)
                if isinstance(value, str) and _LINK.fullmatch(value):
                    return value
        if isinstance(part, BlobPart) and kind == "authorization" and part.uri and _LINK.fullmatch(part.uri):
            return part.uri
    found = _LINK.search(prompt) if kind == "authorization" else None
    return found[0].rstrip(".,;:!?)]}") if found else None


def _schema(values: Sequence[Any]) -> JsonObject | None:
    """A JSON Schema of the answer, where a value is one or has one."""
    for value in values:
        data = an_object(value)
        if data is None:
            continue
        if data.get("type") == "object" and isinstance(data.get("properties"), dict):
            return data
        for name in _SCHEMA_MEMBERS:
            nested = an_object(data.get(name))
            if nested is not None and ("type" in nested or "properties" in nested):
                return nested
    return None
