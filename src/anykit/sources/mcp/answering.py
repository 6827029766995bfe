"""What a server asks of us of its own accord: answered, passed on to whose call it belongs to, or declined.

Imports the SDK; comes in with `session.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mcp_types as types

from anykit.capabilities import Answer, CapabilityError, ExecutionFailed, JsonObject, Log, Question
from anykit.capabilities import outcomes as codes

from .calls import Call, InFlight
from .listening import Watcher
from .questions import Declined, question_of, response_of
from .servers import Offers
from .shaping import log_of


class Answerer:
    """The SDK's callbacks for one session. Only what `offers` has is offered to the server."""

    def __init__(self, name: str, offers: Offers, flying: InFlight, watcher: Watcher) -> None:
        self._name = name
        self._offers = offers
        self._flying = flying
        self._watcher = watcher

    async def logged(self, params: types.LoggingMessageNotificationParams) -> None:
        """A log line."""
        level, text = log_of(params)
        call = self._flying.addressee()
        if isinstance(call, Call) and call.context is not None:
            call.context.emit(Log(level, text))
        else:
            self._watcher.logged(level, text)

    async def elicited(
        self, context: object, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """A live question of a server of the old era: it waits inside its call's deadline."""
        call = self._flying.addressee()
        if not isinstance(call, Call):
            self._watcher.logged("warning", f"a question was declined: {call}")
            return types.ElicitResult(action="decline")
        question = question_of(self._name, params.model_dump(by_alias=True, mode="json", exclude_none=True))
        if isinstance(question, Declined):
            _remark(call, question.reason)
            return types.ElicitResult(action="decline")
        try:
            answer = await _asked(call, question)
            return types.ElicitResult.model_validate(response_of(question, answer))
        except CapabilityError as error:
            _remark(call, error.message)
            return types.ElicitResult(action="cancel")

    async def sampled(
        self, context: object, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        """It wants to use a model."""
        call = self._flying.addressee()
        if not isinstance(call, Call):
            return types.ErrorData(code=types.INVALID_REQUEST, message=f"declined: {call}")
        given = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        try:
            answer = await self.answer({"method": "sampling/createMessage", "params": given}, call)
        except CapabilityError as error:
            _remark(call, error.message)
            return types.ErrorData(code=types.INVALID_REQUEST, message=error.message)
        return types.CreateMessageResult.model_validate(answer)

    async def roots_listed(self, context: object) -> types.ListRootsResult | types.ErrorData:
        """It wants to know where to work."""
        return types.ListRootsResult.model_validate({"roots": _roots(self._offers.roots or ())})

    async def answer(self, request: JsonObject, call: Call) -> JsonObject:
        """The response to a request that is no question for a person. Raises `ExecutionFailed` for what is not offered."""
        match request.get("method"):
            case "roots/list" if self._offers.roots is not None:
                return {"roots": _roots(self._offers.roots)}
            case "sampling/createMessage" if self._offers.sampler is not None and call.context is not None:
                with call.waiting_for_a_person():
                    return await self._offers.sampler(dict(request.get("params") or {}), call.context)
            case method:
                raise ExecutionFailed(
                    f"{self._name} asks for {str(method)[:60]}, which was not offered to it", code="unsupported"
                )


async def _asked(call: Call, question: Question) -> Answer:
    """Ask the call's caller; whoever's call has ended need not answer any more."""
    assert call.context is not None

    async def ask(context: Any) -> Answer:
        return await context.ask(question)

    async with call.asking:
        with call.waiting_for_a_person():
            asking = asyncio.create_task(ask(call.context))
            over = asyncio.create_task(call.over.wait())
            try:
                await asyncio.wait({asking, over}, return_when=asyncio.FIRST_COMPLETED)
                if not asking.done():
                    raise ExecutionFailed("the call is over", code=codes.CANCELLED)
                return asking.result()
            finally:
                for task in (asking, over):
                    task.cancel()
                await asyncio.gather(asking, over, return_exceptions=True)


def _remark(call: Call, reason: str) -> None:
    if call.context is not None:
        call.context.emit(Log("warning", reason))


def _roots(folders: Sequence[Any]) -> list[JsonObject]:
    paths = [Path(folder).expanduser().absolute() for folder in folders]
    return [{"uri": path.as_uri(), "name": path.name or str(path)} for path in paths]
