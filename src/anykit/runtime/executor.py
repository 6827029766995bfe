"""Where a call happens, for every protocol: find, validate, preflight, policy, run with a deadline, record."""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
import types
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from anykit.capabilities import (
    Answer,
    CapabilityContext,
    Denied,
    Event,
    Failed,
    InvocableRequest,
    Json,
    MetadataMap,
    Outcome,
    Question,
    Resume,
    Suspended,
    Suspension,
)
from anykit.capabilities import outcomes as codes
from anykit.schema import SchemaError, compile_schema
from anykit.tools import CALL_TIMEOUT, Tool, Toolkit, attempt, check_arguments, timed_out

from .callers import Caller
from .catalog import Catalog
from .journal import Journal
from .policy import AllowAll, Policy
from .running import Running
from .scopes import Scopes
from .snapshot import Snapshot, ToolEntry, may_come
from .suspensions import ParkedCall, Suspensions, WaitFor, new_id
from .unavailable import told

log = logging.getLogger("anykit.executor")


@dataclass(frozen=True, slots=True)
class CallOptions:
    """What may come with a call. `timeout` is in seconds."""

    timeout: float | None = None
    call_id: str | None = None
    session_id: str | None = None
    """What the tool hears where the caller has no session: a label, and no scope."""
    turn_id: str | None = None
    idempotency_key: str | None = None
    metadata: MetadataMap = field(default_factory=dict[str, Any])
    emit: Callable[[Event], None] | None = None
    """Hears the call's events, on the loop's thread."""
    resume: Resume | None = None


DEFAULT = CallOptions()

ROUNDS = 10
"""How often one call may ask."""


_PROCESS = uuid.uuid4().hex[:16]
_COUNT = itertools.count(1)


def new_call_id() -> str:
    """Unique, not unguessable: a call's id is a label. Asking the system for randomness costs more than the call."""
    return f"{_PROCESS}{next(_COUNT):016x}"


_NO_CONTEXT = CapabilityContext()
"""For tools that look at none."""


class _Life:
    """One call's time: once it is over, nothing is heard of it any more."""

    __slots__ = ("_listener", "_loop", "_thread", "over")

    def __init__(self, listener: Callable[[Event], None] | None, loop: asyncio.AbstractEventLoop) -> None:
        self._listener = listener
        self._loop = loop
        self._thread = threading.get_ident()
        self.over = False

    def is_over(self) -> bool:
        return self.over

    def emit(self, event: Event) -> None:
        if self._listener is None or self.over:
            return
        if threading.get_ident() == self._thread:
            self._tell(event)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._tell, event)

    def _tell(self, event: Event) -> None:
        if self._listener is None or self.over:
            return
        try:
            self._listener(event)
        except Exception:
            log.exception("whoever listened to a call broke")


class Executor:
    """Runs calls. One for each workbench."""

    def __init__(
        self,
        catalog: Catalog,
        scopes: Scopes,
        journal: Journal,
        *,
        policy: Policy | None = None,
        suspensions: Suspensions | None = None,
        wait_for: WaitFor | None = None,
    ) -> None:
        self._catalog = catalog
        self._scopes = scopes
        self._journal = journal
        self._policy: Policy = policy or AllowAll()
        self._suspensions = suspensions
        self._wait_for = wait_for
        self.running = Running()
        """The calls that run now."""

    async def run(
        self,
        caller: Caller,
        name: str,
        arguments: Json = None,
        options: CallOptions = DEFAULT,
        *,
        own: ToolEntry | None = None,
    ) -> Outcome:
        """One call from its name to its outcome; `own` is a tool that is the caller's alone. Raises nothing but
        `CancelledError`.
        """
        loop = asyncio.get_running_loop()
        begun = loop.time()
        call_id = options.call_id or new_call_id()
        if arguments is None:
            arguments = {}
        outcome: Outcome | None = None
        try:
            outcome = await self._run(caller, name, arguments, options, call_id, begun, own)
            if isinstance(outcome, Suspended):
                outcome = await self._suspended(outcome.suspension, caller, name, arguments, options, call_id)
            return outcome
        finally:
            self._journal.record(
                caller=caller,
                tool=name,
                call_id=call_id,
                turn_id=options.turn_id,
                outcome=outcome,
                seconds=loop.time() - begun,
                arguments=arguments,
            )

    async def _run(
        self,
        caller: Caller,
        name: str,
        arguments: Json,
        options: CallOptions,
        call_id: str,
        begun: float,
        own: ToolEntry | None = None,
    ) -> Outcome:
        snapshot = self._catalog.snapshot if caller.view is None else self._catalog.seen(caller.view)
        entry = own or snapshot.tools.get(name)
        if entry is None and (why := snapshot.denied.get(name)) is not None:
            return Denied(f"{name} cannot run: {why}", codes.DISABLED, {"reason": why})
        if entry is None and caller.view is None and (off := self._catalog.switched_off.get(name)) is not None:
            reason = f"toolkit {off} is switched off in the configuration"
            return Denied(f"{name} cannot run: {reason}", codes.DISABLED, {"toolkit": off, "reason": reason})
        if entry is None:
            entry = await self._await_tool(caller, name, begun + (options.timeout or CALL_TIMEOUT))
            if entry is None:
                return self._unknown(caller, name)
        tool = entry.tool
        if (refused := self.refusal(caller, entry)) is not None:
            return refused
        if (invalid := check_arguments(tool, arguments)) is not None:
            return invalid
        request = InvocableRequest(
            input=arguments,
            call_id=call_id,
            session_id=caller.session or options.session_id,
            turn_id=options.turn_id,
            metadata=options.metadata,
            idempotency_key=options.idempotency_key,
            resume=options.resume,
        )
        if (denied := self._judge(caller, tool, request)) is not None:
            return denied
        calls = self.running.begin(entry.source)
        try:
            return await self._invoke(caller, tool, request, options, begun)
        finally:
            calls.end()

    async def _invoke(
        self, caller: Caller, tool: Tool, request: InvocableRequest, options: CallOptions, begun: float
    ) -> Outcome:
        spec = tool.spec
        limit = spec.timeout or CALL_TIMEOUT
        if options.timeout is not None and (spec.timeout is None or options.timeout < limit):
            limit = options.timeout
        deadline = begun + limit
        instance: Toolkit | None = None
        if spec.toolkit is not None:
            # Looked up here, with no wait before the call begins: what is retired meanwhile waits for it.
            instance = self._scopes.find(caller, spec.toolkit)
            if instance is None:
                return _not_configured(tool.name, spec.toolkit)
        if not tool.uses_context:
            return await self._attempt(tool, request, _NO_CONTEXT, instance, deadline, limit)
        life = _Life(options.emit, asyncio.get_running_loop())
        parking: ParkedCall | None = None
        ask: Callable[[Question], Awaitable[Answer]] | None = None
        if tool.may_ask:
            if self._wait_for is not None:
                ask = _inline(self._wait_for)
            elif self._suspensions is not None:
                parking = ParkedCall(caller, tool.name, self._suspensions)
                ask = parking.ask
        context = CapabilityContext(
            session_id=request.session_id,
            turn_id=request.turn_id,
            metadata=request.metadata,
            principal=caller.principal,
            deadline=deadline,
            emit=life.emit,
            ask=ask,
            cancelled=life.is_over,
        )
        if parking is not None:

            async def run(call: ParkedCall) -> Outcome:
                try:
                    async with call.time(deadline):
                        return await attempt(tool, request, context, instance)
                except TimeoutError:
                    return timed_out(tool, limit)
                finally:
                    life.over = True

            parking.start(run)
            return await parking.turn()
        try:
            return await self._attempt(tool, request, context, instance, deadline, limit)
        finally:
            life.over = True

    async def _attempt(
        self,
        tool: Tool,
        request: InvocableRequest,
        context: CapabilityContext,
        instance: Toolkit | None,
        deadline: float,
        limit: float,
    ) -> Outcome:
        """Run with a deadline. A call that never waits needs no timer, and most of the small ones do not."""
        running = attempt(tool, request, context, instance)
        try:
            waited = running.send(None)
        except StopIteration as done:
            return done.value
        try:
            async with asyncio.timeout_at(deadline):
                return await _rest(running, waited)
        except TimeoutError:
            return timed_out(tool, limit)

    # questions

    async def _suspended(
        self,
        suspension: Suspension,
        caller: Caller,
        name: str,
        arguments: Json,
        options: CallOptions,
        call_id: str,
    ) -> Outcome:
        """Answer a source's question inline where somebody is there to, else keep it."""
        if self._suspensions is None or self._suspensions.parked(suspension.id, caller) is not None:
            return Suspended(suspension)
        if self._wait_for is None:
            kept = await self._suspensions.keep(
                suspension, caller, tool=name, arguments=arguments, turn_id=options.turn_id
            )
            return Suspended(kept)
        for _ in range(ROUNDS):
            answer = await self._wait_for(replace(suspension, state=None))
            resumed = replace(options, resume=Resume(suspension.state, answer))
            outcome = await self._run(caller, name, arguments, resumed, call_id, asyncio.get_running_loop().time())
            if not isinstance(outcome, Suspended):
                return outcome
            suspension = outcome.suspension
        return Failed(codes.EXECUTION_FAILED, f"{name} asked more than {ROUNDS} times")

    def waiting(self, caller: Caller) -> list[Suspension]:
        """What waits for an answer of this caller."""
        return [] if self._suspensions is None else self._suspensions.waiting(caller)

    async def answer(self, caller: Caller, id: str, answer: Answer, options: CallOptions = DEFAULT) -> Outcome:
        """Go on with what waits behind `id`, once. Raises nothing but `CancelledError`."""
        if self._suspensions is None:
            return _not_waiting(id)
        parked = self._suspensions.parked(id, caller)
        if parked is not None and parked.suspension is not None:
            if (wrong := _misfit(parked.suspension, answer)) is not None:
                return wrong
            return await parked.answered(answer)
        kept = await self._suspensions.find(id, caller)
        if kept is None:
            return _not_waiting(id)
        if (wrong := _misfit(kept.suspension, answer)) is not None:
            return wrong
        if not await self._suspensions.claim(id, caller):
            return _not_waiting(id)
        resumed = replace(options, resume=Resume(kept.suspension.state, answer), turn_id=kept.turn_id)
        return await self.run(caller, kept.tool, kept.arguments, resumed)

    def refusal(self, caller: Caller, entry: ToolEntry) -> Denied | None:
        """Why `caller` may not use the tool at all as things stand, or None."""
        toolkit = entry.tool.spec.toolkit
        if toolkit is None or toolkit not in self._catalog.snapshot.toolkits:
            return None
        instance = self._scopes.find(caller, toolkit)
        if instance is None:
            return _not_configured(entry.tool.name, toolkit)
        if instance.disabled and entry.original in instance.disabled:
            reason = instance.disabled[entry.original]
            return Denied(
                f"{entry.tool.name} is switched off: {reason}", codes.DISABLED, {"toolkit": toolkit, "reason": reason}
            )
        return None

    def _judge(self, caller: Caller, tool: Tool, request: InvocableRequest) -> Denied | None:
        try:
            decision = self._policy.decide(caller, tool, request, tool.preflight(request))
        except Exception:
            error_id = uuid.uuid4().hex[:12]
            log.exception("whether %s may run could not be decided (error %s)", tool.name, error_id)
            return Denied(f"{tool.name} may not run: deciding it failed (error {error_id})", codes.POLICY)
        if decision.verdict == "allow":
            return None
        if decision.verdict == "ask":
            return Denied(f"{tool.name} needs an approval and nobody can be asked: {decision.reason}", codes.POLICY)
        return Denied(f"{tool.name} may not run: {decision.reason}", codes.POLICY)

    async def _await_tool(self, caller: Caller, name: str, deadline: float) -> ToolEntry | None:
        """Wait for sources that have no verdict yet: one may bring the tool."""
        view = caller.view
        if not may_come(self._catalog.seen(view), name):
            return None
        changed = asyncio.Event()

        def look(snapshot: Snapshot) -> None:
            changed.set()

        unsubscribe = self._catalog.subscribe(look)
        try:
            async with asyncio.timeout_at(deadline):
                while name not in self._catalog.seen(view).tools and may_come(self._catalog.seen(view), name):
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            pass
        finally:
            unsubscribe()
        return self._catalog.seen(view).tools.get(name)

    def _unknown(self, caller: Caller, name: str) -> Failed:
        snapshot = self._catalog.seen(caller.view)
        usable = [known for known, entry in snapshot.tools.items() if self.refusal(caller, entry) is None]
        if snapshot.finder is not None:
            usable.append(snapshot.finder)
        shown = str(name)[:128]
        text = f"unknown tool {shown!r}{snapshot.suggest(shown, usable)}"
        if down := told(snapshot, shown):
            text += f"; {down}"
        return Failed(codes.UNKNOWN_TOOL, text)


@types.coroutine
def _rest(running: Coroutine[Any, Any, Outcome], waited: Any) -> Generator[Any, Any, Outcome]:
    """Await a coroutine that was begun by hand and waits for `waited`."""
    while True:
        try:
            sent = yield waited
        except BaseException as error:
            step = partial(running.throw, error)
        else:
            step = partial(running.send, sent)
        try:
            waited = step()
        except StopIteration as done:
            return done.value


def _inline(wait_for: WaitFor) -> Callable[[Question], Awaitable[Answer]]:
    async def ask(question: Question) -> Answer:
        return await wait_for(
            Suspension(
                id=new_id(),
                kind=question.kind,
                prompt=question.prompt,
                schema=question.schema,
                url=question.url,
                expires_at=question.expires_at,
            )
        )

    return ask


def _misfit(suspension: Suspension, answer: Answer) -> Failed | None:
    """Why an answer cannot be one to the question; the question stays open."""
    if not answer.ok or suspension.schema is None:
        return None
    try:
        faults = compile_schema(suspension.schema).faults(answer.data)
    except SchemaError:
        return None
    if not faults:
        return None
    lines = "; ".join(f"{fault['path'] or '/'}: {fault['message']}" for fault in faults)
    return Failed(codes.INVALID_INPUT, f"the answer does not fit: {lines}", detail={"errors": faults})


def _not_waiting(id: str) -> Failed:
    return Failed(
        "unknown_suspension",
        f"nothing waits for an answer behind {id[:64]!r}: it was answered, is over, or is another's",
    )


def _not_configured(tool: str, toolkit: str) -> Denied:
    return Denied(
        f"toolkit {toolkit} is not configured, so {tool} cannot run; configure it first",
        codes.NOT_CONFIGURED,
        {"toolkit": toolkit},
    )
