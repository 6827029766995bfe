"""The small execution context: what a capability may know about its caller, inside a loop of calls or outside."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from .errors import ExecutionFailed
from .events import Event
from .names import MetadataMap, SessionId, TurnId
from .outcomes import Answer, Question


def _nobody_listens(event: Event) -> None:
    """Outside a call nobody listens."""


def _not_cancelled() -> bool:
    return False


class CapabilityContext:
    """Carries ids, never credentials: no header and no token of the caller can be passed on through it.

    `deadline` is a time of the event loop's clock (seconds) or None. `emit` may be called from any thread.
    """

    __slots__ = ("_ask", "_cancelled", "_emit", "deadline", "metadata", "principal", "session_id", "turn_id")

    def __init__(
        self,
        *,
        session_id: SessionId | None = None,
        turn_id: TurnId | None = None,
        metadata: MetadataMap | None = None,
        principal: str | None = None,
        deadline: float | None = None,
        emit: Callable[[Event], None] | None = None,
        ask: Callable[[Question], Awaitable[Answer]] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> None:
        self.session_id = session_id
        self.turn_id = turn_id
        self.metadata: dict[str, Any] = {} if metadata is None else metadata
        self.principal = principal
        self.deadline = deadline
        self._emit = emit or _nobody_listens
        self._ask = ask
        self._cancelled = cancelled or _not_cancelled

    @property
    def cancelled(self) -> bool:
        """True once the caller is gone or the time is up. A tool in a thread looks here; a coroutine is cancelled."""
        return self._cancelled()

    def emit(self, event: Event) -> None:
        """Tell whoever watches the call. Never blocks, never raises; after the call's end it is dropped."""
        self._emit(event)

    async def ask(self, question: Question) -> Answer:
        """Ask the caller and wait for the answer.

        Raises `ExecutionFailed` where nobody can be asked.
        """
        if self._ask is None:
            raise ExecutionFailed(f"nobody can be asked here: {question.prompt}", code="nobody_to_ask")
        return await self._ask(question)
