"""Questions that wait for an answer, each behind a handle that cannot be guessed and that only its principal may use.

kept    the source gave a `state`: a record, the state sealed; any process may go on with it
parked  a running call waits in `context.ask`: a task of this process, gone with it
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from anykit.capabilities import Answer, ExecutionFailed, Json, JsonObject, Outcome, Question, Suspended, Suspension
from anykit.stores import RecordStore, SecretStore

from .callers import Caller

KIND = "suspension"
SCOPE = "suspension"
"""Where the sealed states lie in the secret store."""
LIFETIME = 24 * 3600.0
"""Seconds that a question waits where its asker says nothing."""
PARKED_LIFETIME = 3600.0
"""Seconds that a running call is kept for its answer."""
PARKED = 1000
"""Calls that may be parked at a time."""

WaitFor = Callable[[Suspension], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Kept:
    """A suspended call that can be gone on with."""

    suspension: Suspension
    principal: str
    tool: str
    arguments: Json
    session: str | None
    turn_id: str | None


class ParkedCall:
    """A call in a task of its own, so that it can outlive the caller who is told of its question."""

    def __init__(self, caller: Caller, tool: str, registry: Suspensions) -> None:
        self.caller = caller
        self.tool = tool
        self.suspension: Suspension | None = None
        self._registry = registry
        self._turn: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._answer: asyncio.Future[Answer] | None = None
        self._task: asyncio.Task[None] | None = None
        self._timeout: asyncio.Timeout | None = None

    def start(self, run: Callable[[ParkedCall], Awaitable[Outcome]]) -> None:
        """Begin."""

        async def work() -> None:
            try:
                outcome = await run(self)
            except asyncio.CancelledError:
                if not self._turn.done():
                    self._turn.cancel()
                raise
            finally:
                self._registry.unpark(self)
            if not self._turn.done():
                self._turn.set_result(outcome)

        self._task = asyncio.get_running_loop().create_task(work(), name=f"call {self.tool}")

    async def turn(self) -> Outcome:
        """Its next outcome: a question, or the end. A cancelled waiter cancels the call."""
        try:
            return await asyncio.shield(self._turn)
        except asyncio.CancelledError:
            await self.cancel()
            raise

    @contextlib.asynccontextmanager
    async def time(self, deadline: float) -> AsyncGenerator[None]:
        """The deadline, which stands still while the call waits for an answer."""
        async with asyncio.timeout_at(deadline) as self._timeout:
            yield

    async def ask(self, question: Question) -> Answer:
        """Tell the caller of the question and wait for whoever answers."""
        loop = asyncio.get_running_loop()
        expires = question.expires_at or time.time() + PARKED_LIFETIME
        suspension = Suspension(
            id=new_id(),
            kind=question.kind,
            prompt=question.prompt,
            schema=question.schema,
            url=question.url,
            expires_at=expires,
        )
        self._registry.park(self, suspension)
        self.suspension = suspension
        self._answer = loop.create_future()
        left = None
        if self._timeout is not None and (when := self._timeout.when()) is not None:
            left = when - loop.time()
            self._timeout.reschedule(None)
        told, self._turn = self._turn, loop.create_future()
        told.set_result(Suspended(suspension))
        try:
            async with asyncio.timeout(max(0.0, expires - time.time())):
                return await self._answer
        except TimeoutError:
            raise ExecutionFailed(f"nobody answered in time: {question.prompt}", code="expired") from None
        finally:
            self._registry.unpark(self)
            self.suspension = None
            if self._timeout is not None and left is not None:
                self._timeout.reschedule(loop.time() + left)

    async def answered(self, answer: Answer) -> Outcome:
        """Give the answer, and wait for what becomes of the call."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)
        return await self.turn()

    async def cancel(self) -> None:
        """End it, waiting at most two seconds for it to clean up."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task], timeout=2.0)


class Suspensions:
    """All that waits, of one host."""

    def __init__(self, records: RecordStore, secret_store: SecretStore) -> None:
        self._records = records
        self._secrets = secret_store
        self._parked: dict[str, ParkedCall] = {}
        self._kept: dict[str, tuple[str, Suspension]] = {}

    async def load(self) -> None:
        """Know again what earlier processes kept."""
        for record in await self._records.list(KIND):
            self._kept[record.key] = (record.principal, _suspension(record.value))

    def waiting(self, caller: Caller) -> list[Suspension]:
        """What waits for an answer of this caller."""
        now = time.time()
        kept = [suspension for principal, suspension in self._kept.values() if principal == caller.principal]
        parked = [
            call.suspension
            for call in self._parked.values()
            if call.suspension is not None and call.caller.principal == caller.principal
        ]
        return [one for one in (*kept, *parked) if one.expires_at is None or one.expires_at > now]

    async def keep(
        self, suspension: Suspension, caller: Caller, *, tool: str, arguments: Json, turn_id: str | None
    ) -> Suspension:
        """Write a suspension down; what comes back has its handle and time, and no state."""
        given = replace(
            suspension,
            id=new_id(),
            expires_at=suspension.expires_at or time.time() + LIFETIME,
        )
        sealed = {
            "state": suspension.state,
            "arguments": arguments,
            "tool": tool,
            "session": caller.session,
            "turn": turn_id,
        }
        await self._secrets.put(SCOPE, given.id, json.dumps(sealed))
        await self._records.put(
            KIND, given.id, given.to_json(), principal=caller.principal, expires_at=given.expires_at
        )
        shown = replace(given, state=None)
        self._kept[given.id] = (caller.principal, shown)
        return shown

    async def find(self, id: str, caller: Caller) -> Kept | None:
        """A kept one of this caller's principal, or None: unknown, another's, answered or over."""
        record = await self._records.get(KIND, id, principal=caller.principal)
        if record is None:
            self._kept.pop(id, None)
            return None
        sealed = await self._secrets.get(SCOPE, id)
        if sealed is None:
            return None
        inside: dict[str, Any] = json.loads(sealed)
        return Kept(
            suspension=replace(_suspension(record.value), state=inside["state"]),
            principal=record.principal,
            tool=inside["tool"],
            arguments=inside["arguments"],
            session=inside["session"],
            turn_id=inside["turn"],
        )

    async def claim(self, id: str, caller: Caller) -> bool:
        """Take a kept one out; True for the one who did, so that it is gone on with once."""
        mine = await self._records.delete(KIND, id, principal=caller.principal)
        self._kept.pop(id, None)
        if mine:
            await self._secrets.delete(SCOPE, id)
        return mine

    def parked(self, id: str, caller: Caller) -> ParkedCall | None:
        """A parked call of this caller's principal."""
        call = self._parked.get(id)
        return call if call is not None and call.caller.principal == caller.principal else None

    def park(self, call: ParkedCall, suspension: Suspension) -> None:
        """A running call begins to wait. Raises `ExecutionFailed` where too many do."""
        if len(self._parked) >= PARKED:
            raise ExecutionFailed("too many calls wait for an answer already", code="busy", retryable=True)
        self._parked[suspension.id] = call

    def unpark(self, call: ParkedCall) -> None:
        """It waits no longer."""
        if call.suspension is not None:
            self._parked.pop(call.suspension.id, None)

    async def close(self) -> None:
        """End the parked calls: they die with the process."""
        await asyncio.gather(*(call.cancel() for call in list(self._parked.values())))


def new_id() -> str:
    """A handle that cannot be guessed, short enough to type."""
    return secrets.token_hex(8)


def _suspension(shown: JsonObject) -> Suspension:
    return Suspension(**shown)
