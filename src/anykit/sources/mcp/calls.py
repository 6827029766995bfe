"""Who waits for an answer of the server: what the server says meanwhile belongs to one of them, or to nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeAlias

from anykit.capabilities import CapabilityContext, CapabilityError

Caller: TypeAlias = tuple[str | None, str | None]
"""Principal and session."""


@dataclass(eq=False)
class Call:
    """One request on its way, and for whom. `context` is None for what we ask on our own account."""

    context: CapabilityContext | None = None
    failure: CapabilityError | None = None
    """What the transport knows about why there is no answer."""
    remarks: list[str] = field(default_factory=list[str])
    """What was declined on the caller's behalf, and why."""
    clock: asyncio.Timeout | None = None
    """The server's own time for a call; it stands still while somebody is asked."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def caller(self) -> Caller | None:
        """Whose it is; None where it is ours."""
        return None if self.context is None else (self.context.principal, self.context.session_id)

    @contextmanager
    def waiting_for_a_person(self) -> Generator[None, None, None]:
        """Stop the clock."""
        left = None
        loop = asyncio.get_running_loop()
        if self.clock is not None and (when := self.clock.when()) is not None:
            left = when - loop.time()
            self.clock.reschedule(None)
        try:
            yield
        finally:
            if self.clock is not None and left is not None:
                with suppress(RuntimeError):  # the call has ended meanwhile
                    self.clock.reschedule(loop.time() + left)


current: ContextVar[Call | None] = ContextVar("anykit_mcp_call", default=None)
"""The call that a message is sent for, or comes back for where the transport can tell."""


class InFlight:
    """The calls of one link that have no answer yet."""

    def __init__(self) -> None:
        self._calls: list[Call] = []

    @contextmanager
    def flying(self, call: Call) -> Generator[None, None, None]:
        """Have the call in flight, and known to the transport, until the block ends."""
        self._calls.append(call)
        token = current.set(call)
        try:
            yield
        finally:
            current.reset(token)
            self._calls.remove(call)
            call.over.set()

    def __len__(self) -> int:
        return len(self._calls)

    def addressee(self) -> Call | str:
        """Whom the server means by what it just sent: a call, or why that cannot be told.

        Where the transport says (each request of streamable HTTP has a stream of its own) it is that call. Else it is
        the latest one, provided that all in flight are of one caller: an answer must not reach another's call.
        """
        call = current.get()
        if call is not None and call.context is not None and call in self._calls:
            return call
        calls = [one for one in self._calls if one.context is not None]
        if not calls:
            return "no call is running that it could belong to"
        if len({one.caller for one in calls}) > 1:
            return "calls of several callers are running, and which of them it belongs to cannot be told"
        return calls[-1]
