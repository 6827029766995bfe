"""Questions on the wire: live in the old era, as results that ask in the new one. Imports the SDK."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Final

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import BaseModel, ValidationError

from anykit.capabilities import JsonObject, Suspension
from anykit.runtime import Session

from . import content
from .contexts import Context
from .jsonrpc import INTERNAL_ERROR
from .questions import Request

QUESTION_TIME: Final = 3600.0
"""Seconds that a live question waits where it does not say itself."""


async def ask(context: Context, request: Request, suspension: Suspension | None, note: str = "") -> JsonObject:
    """Ask the client while its call waits. Raises `MCPError` where it does not answer."""
    params = with_note(request, note)
    wanted: types.ServerRequest
    result: type[BaseModel]
    try:
        match request.need:
            case "sampling":
                wanted = types.CreateMessageRequest.model_validate({"method": request.method, "params": params})
                result = types.CreateMessageResultWithTools
            case "roots":
                wanted, result = types.ListRootsRequest(), types.ListRootsResult
            case _:
                wanted = types.ElicitRequest.model_validate({"method": request.method, "params": params})
                result = types.ElicitResult
        left = QUESTION_TIME
        if suspension is not None and suspension.expires_at is not None:
            left = max(1.0, suspension.expires_at - time.time())
        answer = await context.session.send_request(
            wanted, result, left, ServerMessageMetadata(related_request_id=context.request_id)
        )
    except ValidationError:
        raise MCPError(INTERNAL_ERROR, "the question or its answer is not as the protocol wants it") from None
    return answer.model_dump(mode="json", by_alias=True, exclude_none=True)


def with_note(request: Request, note: str) -> JsonObject:
    """A question's params, with why it is asked again."""
    if not note or "message" not in request.params:
        return request.params
    return {**request.params, "message": f"{request.params['message']}\n({note})"}


def input_required(asked: Mapping[str, Request], state: JsonObject, note: str = "") -> JsonObject:
    """A result that asks. The state is sealed on its way out."""
    return {
        "resultType": "input_required",
        "inputRequests": {
            key: {"method": request.method, "params": with_note(request, note)} for key, request in asked.items()
        },
        "requestState": json.dumps(state),
    }


def responses_of(params: types.CallToolRequestParams) -> dict[str, JsonObject]:
    """What the client came back with."""
    return {
        key: one.model_dump(mode="json", by_alias=True, exclude_none=True)
        for key, one in (params.input_responses or {}).items()
    }


def waiting(session: Session, id: str) -> Suspension | None:
    """The question of that id, while it waits."""
    return next((one for one in session.suspensions() if one.id == id), None)


def missing_capability(suspension: Suspension, asked: Mapping[str, Request]) -> MCPError:
    """Nobody there can be asked."""
    required: JsonObject = {}
    for request in asked.values():
        for name, said in request.capability.items():
            required[name] = {**required.get(name, {}), **said}
    return MCPError(
        types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        f"it asks something that this client cannot be asked: {suspension.prompt}",
        {"requiredCapabilities": required},
    )


def open_question(suspension: Suspension, reason: str = "this client cannot be asked") -> JsonObject:
    """A call that waits for an answer that must come another way."""
    where = f"\n{suspension.url}" if suspension.url else ""
    text = f"{suspension.prompt}{where}\n({reason}; it waits for an answer to {suspension.id})"
    answer = content.failure(text, "suspended")
    answer["_meta"]["anykit/suspension"] = suspension.to_json()
    return answer
