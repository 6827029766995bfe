"""What a server asks of a person: as a question of ours and back, and what it may not ask.

A form never asks for a secret (MCP, elicitation): what is secret goes to a URL of the server's, past us.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from anykit.capabilities import Answer, ExecutionFailed, InvalidInput, Json, JsonObject, Question
from anykit.schema import SchemaError, compile_schema, secret_pointers
from anykit.sources.hostile import Malformed, clean_schema, clean_text
from anykit.transports import OPEN, AddressRefused

MAX_PROMPT: Final = 4_096
_SECRET: Final = re.compile(
    r"(?:^|_)(?:pass(?:word|wd|phrase|code)s?|secrets?|credentials?|(?:api|private|secret|signing|encryption|access)_?keys?"
    r"|(?:access|auth|bearer|refresh|session|api|id|personal_access)_?tokens?|token|otp|cvv|cvc|ssn)(?:$|_)"
)
"""Names of fields that hold secrets, in snake case."""


@dataclass(frozen=True, slots=True)
class Declined:
    """A question that is not passed on, and why."""

    reason: str


def question_of(server: str, params: Mapping[str, Any]) -> Question | Declined:
    """The question in the params of `elicitation/create`, as MCP spells them."""
    message = clean_text(str(params.get("message") or ""), MAX_PROMPT).strip()
    prompt = f"{server} asks: {message}" if message else f"{server} asks"
    if params.get("mode") == "url":
        url = str(params.get("url") or "")
        try:
            OPEN.check_url(url)
        except AddressRefused as refused:
            return Declined(f"{server} asks to open an address that is not opened ({refused.message})")
        return Question("authorization", prompt, url=url)
    given: Any = params.get("requestedSchema")
    try:
        schema = clean_schema(cast(JsonObject, given) if isinstance(given, dict) else {})
        schema = {"type": "object", **schema}
        compile_schema(schema)
        secret = _secrets(schema)
    except (Malformed, SchemaError) as error:
        return Declined(f"{server} asks with a form that cannot be shown: {clean_text(str(error), 300)}")
    if secret:
        return Declined(
            f"{server} asks for {', '.join(secret)} in a form; secrets are not passed on in forms, only over a URL of its own"
        )
    return Question("input", prompt, schema=schema)


def _secrets(schema: JsonObject) -> list[str]:
    """The fields of a form that ask for a secret, by what the schema says of them or by how they are called."""
    marked = {pointer.strip("/").partition("/")[0] for pointer in secret_pointers(schema)}
    properties: Any = schema.get("properties", {})
    names = [str(name) for name in cast(JsonObject, properties)] if isinstance(properties, dict) else []
    return [repr(name[:80]) for name in names if name in marked or _SECRET.search(_snake(name))]


def _snake(name: str) -> str:
    """`apiKey`, `API-Key` and `api key` as `api_key`."""
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())


def response_of(question: Question, answer: Answer) -> JsonObject:
    """An answer as MCP's `ElicitResult`. Raises `ExecutionFailed` where it does not fit what was asked."""
    if not answer.ok:
        return {"action": "decline"}
    if question.url is not None:
        return {"action": "accept"}
    data: Json = {} if answer.data is None else answer.data
    faults = compile_schema(question.schema or {"type": "object"}).faults(data)
    if faults:
        lines = "; ".join(f"{fault['path'] or '/'}: {fault['message']}" for fault in faults)
        raise ExecutionFailed(f"the answer does not fit: {lines}", code="invalid_input", detail={"errors": faults})
    return {"action": "accept", "content": data}


def prompt_arguments(args: Mapping[str, Json]) -> dict[str, str]:
    """Arguments as MCP takes them, texts. Raises `InvalidInput` for what is no text, number or boolean."""
    texts: dict[str, str] = {}
    for name, value in args.items():
        if isinstance(value, str):
            texts[name] = value
        elif isinstance(value, bool | int | float):
            texts[name] = json.dumps(value)
        elif value is not None:
            fault = "must be a text: MCP knows no other arguments for prompts"
            raise InvalidInput(f"{name} {fault}", [{"path": f"/{name}", "message": fault}])
    return texts
