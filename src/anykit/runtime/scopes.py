"""Toolkit instances, and for whom they hold.

An instance lives at (scope, toolkit). A tool never holds one: the executor looks it up for each call, nearest scope
first, so that every door refuses alike and no caller ever meets another's credentials.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import inspect
import logging
import uuid
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import pydantic

from anykit.capabilities import CapabilityError, ExecutionFailed, Fault, InvalidInput, Json, JsonObject
from anykit.schema import compile_schema, merge_masked, secret_texts
from anykit.tools import DISCRETION, Bounds, ToolError, Toolkit, being_cancelled, hide

from .callers import Caller, Scope
from .snapshot import ToolkitEntry

log = logging.getLogger("anykit.scopes")

SETUP_TIMEOUT = 60.0
"""Seconds that a toolkit's `setup` may take."""
CLOSE_TIMEOUT = 10.0
"""Seconds that a toolkit's `close` may take."""

ConfigureStatus: TypeAlias = Literal["ok", "partial"]


class Configured(NamedTuple):
    """How configuring ended: `partial` where some of the tools are switched off, named in `message`."""

    status: ConfigureStatus
    message: str


@dataclass(frozen=True, slots=True)
class ToolkitEvent:
    """Something that everyone in whose scope the toolkit is configured may hear."""

    scope: Scope
    toolkit: str
    kind: str
    data: JsonObject


class Vault(Protocol):
    """Where configurations outlive the process; secrets in it are encrypted."""

    async def save(self, scope: Scope, toolkit: str, schema: JsonObject, config: JsonObject) -> None:
        """Keep a configuration that was accepted."""
        ...

    async def forget(self, scope: Scope, toolkit: str) -> None:
        """Drop it."""
        ...


class UnknownToolkit(InvalidInput):
    """No toolkit of that name."""


@dataclass(frozen=True, slots=True)
class _Slot:
    instance: Toolkit
    config: JsonObject
    bounds: Bounds | None = None
    """What it must not go beyond; None where the operator configured it."""


class Renewal:
    """New instances that wait to take the place of old ones."""

    def __init__(self, problems: tuple[str, ...], swap: Callable[[], None]) -> None:
        self.problems = problems
        """Why the toolkit is not configured any more, where it is not."""
        self.done = False
        self._swap = swap

    def swap(self) -> None:
        """Let them take it."""
        self.done = True
        self._swap()


class Scopes:
    """All instances of one host. Used on the loop's thread only, `Toolkit.emit` excepted."""

    def __init__(self, *, bounds: Bounds, vault: Vault | None = None) -> None:
        self._bounds = bounds
        self._vault = vault
        self._slots: dict[tuple[Scope, str], _Slot] = {}
        self._locks: dict[tuple[Scope, str], asyncio.Lock] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._listeners: list[Callable[[ToolkitEvent], None]] = []

    def subscribe(self, listener: Callable[[ToolkitEvent], None]) -> Callable[[], None]:
        """Call `listener` with each toolkit event, on the loop's thread, until the returned function is called."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def find(self, caller: Caller, toolkit: str) -> Toolkit | None:
        """The instance that serves `caller`, or None where the toolkit is not configured for it."""
        slots = self._slots
        for scope in caller.scopes:
            slot = slots.get((scope, toolkit))
            if slot is not None:
                return slot.instance
        return None

    def config(self, caller: Caller, toolkit: str) -> JsonObject | None:
        """The configuration that serves `caller`, with its secrets: for the operator's own use only."""
        for scope in caller.scopes:
            slot = self._slots.get((scope, toolkit))
            if slot is not None:
                return copy.deepcopy(slot.config)
        return None

    async def configure(self, caller: Caller, entry: ToolkitEntry, config: Json, *, keep: bool = True) -> Configured:
        """Validate, set the new instance up beside the old one, swap, and let the old one's calls end on it.

        Raises `InvalidInput` with every fault where `config` does not fit, `ExecutionFailed` where `setup` refuses;
        after either the old instance serves on.
        """
        scope = caller.scope
        key = (scope, entry.name)
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            old = self._slots.get(key)
            filled = _filled(entry, config, old.config if old else None)
            bounds = None if caller.operator else self._bounds
            instance = await self._set_up(entry, filled, bounds)
            off = dict(instance.disabled)
            if off and len(off) == len(entry.spec.tools):
                await _close(instance, entry.name)
                raise ExecutionFailed(_disabled_text(off), code="configuration_failed")
            self._slots[key] = _Slot(instance, filled, bounds)
            instance.attach(self._emitter(scope, entry.name))
            if old is not None:
                self._retire(old.instance, entry.name)
            if self._vault is not None and keep:
                await self._vault.save(scope, entry.name, entry.spec.schema, filled)
        answer = (
            Configured("partial", f"Toolkit configured without {_disabled_text(off)}")
            if off
            else Configured("ok", "Toolkit configured successfully")
        )
        self.tell(
            ToolkitEvent(
                scope,
                entry.name,
                "status",
                {"status": answer.status, "configured": True, "message": answer.message},
            )
        )
        return answer

    async def remove(
        self, scope: Scope, toolkit: str, reason: str = "Toolkit is no longer configured", *, forget: bool = True
    ) -> bool:
        """Take a configuration away; False where there was none. Running calls end on the old instance.

        With `forget` off what is kept of it outlives the process as before.
        """
        slot = self._slots.pop((scope, toolkit), None)
        if slot is None:
            return False
        self._retire(slot.instance, toolkit)
        if self._vault is not None and forget:
            await self._vault.forget(scope, toolkit)
        self._told_off(scope, toolkit, reason)
        return True

    def withdraw(self, toolkit: str, reason: str) -> None:
        """The toolkit itself is gone: nobody has it configured any more. What is kept of it stays kept."""
        for scope, name in [key for key in self._slots if key[1] == toolkit]:
            self._retire(self._slots.pop((scope, name)).instance, toolkit)
            self._told_off(scope, toolkit, reason)

    def rebound(self, bounds: Bounds) -> None:
        """What callers may configure from now on; what they configured before holds as it is."""
        self._bounds = bounds

    @contextlib.asynccontextmanager
    async def renewing(self, entry: ToolkitEntry) -> AsyncGenerator[Renewal]:
        """Set up instances of a toolkit's new class beside those of the old one, wherever it is configured.

        They take the old ones' place when the renewal is told to, in the same breath as the catalogue changes; the old
        ones close once their calls have ended. Where the kept configuration does not do any more, the toolkit is not
        configured there afterwards, and the renewal says why. Left untold, everything stays as it was.
        """
        async with contextlib.AsyncExitStack() as held:
            made: dict[Scope, _Slot | None] = {}
            problems: list[str] = []
            for scope in [scope for scope, toolkit in self._slots if toolkit == entry.name]:
                await held.enter_async_context(self._locks.setdefault((scope, entry.name), asyncio.Lock()))
                slot = self._slots.get((scope, entry.name))
                if slot is None:
                    continue
                try:
                    made[scope] = await self._again(entry, slot)
                except (InvalidInput, ExecutionFailed) as error:
                    made[scope] = None
                    problems.append(_told(error))
            renewal = Renewal(tuple(problems), lambda: self._renew(entry.name, made, problems))
            try:
                yield renewal
            finally:
                if not renewal.done:
                    for slot in made.values():
                        if slot is not None:
                            await _close(slot.instance, entry.name)

    async def _again(self, entry: ToolkitEntry, slot: _Slot) -> _Slot:
        """The same configuration on an instance of another class. Raises `InvalidInput`, `ExecutionFailed`."""
        filled = compile_schema(entry.spec.schema).completed(copy.deepcopy(slot.config), _refusal(entry.name))
        instance = await self._set_up(entry, filled, slot.bounds)
        off = dict(instance.disabled)
        if off and len(off) == len(entry.spec.tools):
            await _close(instance, entry.name)
            raise ExecutionFailed(_disabled_text(off), code="configuration_failed")
        return _Slot(instance, filled, slot.bounds)

    def _renew(self, toolkit: str, made: dict[Scope, _Slot | None], problems: list[str]) -> None:
        for scope, slot in made.items():
            old = self._slots.pop((scope, toolkit), None)
            if old is not None:
                self._retire(old.instance, toolkit)
            if slot is None:
                self._told_off(scope, toolkit, f"Toolkit was changed and is no longer configured: {problems[0]}")
                continue
            self._slots[(scope, toolkit)] = slot
            slot.instance.attach(self._emitter(scope, toolkit))

    def _told_off(self, scope: Scope, toolkit: str, reason: str) -> None:
        data: JsonObject = {"status": "ok", "configured": False, "message": reason}
        self.tell(ToolkitEvent(scope, toolkit, "status", data))

    def end(self, scope: Scope) -> None:
        """A session is over: its instances close once their calls have ended."""
        for key in [key for key in self._slots if key[0] == scope]:
            self._retire(self._slots.pop(key).instance, key[1])
        for key in [key for key in self._locks if key[0] == scope]:
            del self._locks[key]

    async def close(self, grace: float = CLOSE_TIMEOUT) -> None:
        """Close every instance, waiting at most `grace` seconds for calls that still run."""
        for (_, toolkit), slot in list(self._slots.items()):
            self._retire(slot.instance, toolkit)
        self._slots.clear()
        if self._closing:
            _, late = await asyncio.wait(self._closing, timeout=grace)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=1.0)

    def tell(self, event: ToolkitEvent) -> None:
        """Tell every listener."""
        for listener in list(self._listeners):
            listener(event)

    def _emitter(self, scope: Scope, toolkit: str) -> Callable[[str, JsonObject], None]:
        loop = asyncio.get_running_loop()

        def emit(kind: str, data: JsonObject) -> None:
            event = ToolkitEvent(scope, toolkit, kind, data)
            if not loop.is_closed():
                loop.call_soon_threadsafe(self.tell, event)

        return emit

    async def _set_up(self, entry: ToolkitEntry, config: JsonObject, bounds: Bounds | None) -> Toolkit:
        secrets = secret_texts(entry.spec.schema, config)
        try:
            model = entry.toolkit.Config.model_validate(config)
        except pydantic.ValidationError as error:
            raise InvalidInput(_refusal(entry.name), _faults_of(error, secrets)) from None
        try:
            instance = entry.toolkit()
        except (Exception, SystemExit) as error:
            raise _broken(entry.name, "could not be made") from error
        DISCRETION.keep(secrets, instance)
        instance.config = model
        instance.bounds = bounds
        try:
            async with asyncio.timeout(SETUP_TIMEOUT):
                done: object = instance.setup(model)
                if inspect.isawaitable(done):
                    await done
        except (ToolError, CapabilityError) as error:
            await _close(instance, entry.name)
            raise ExecutionFailed(hide(str(error), secrets), code="configuration_failed") from None
        except TimeoutError:
            await _close(instance, entry.name)
            raise ExecutionFailed(
                f"toolkit {entry.name} was not ready within {SETUP_TIMEOUT:g} s", code="configuration_failed"
            ) from None
        except (Exception, SystemExit) as error:
            await _close(instance, entry.name)
            raise _broken(entry.name, "could not be set up") from error
        except asyncio.CancelledError as error:
            await asyncio.shield(_close(instance, entry.name))
            if being_cancelled():
                raise
            raise _broken(entry.name, "could not be set up") from error
        return instance

    def _retire(self, instance: Toolkit, toolkit: str) -> None:
        instance.attach(None)
        task = asyncio.get_running_loop().create_task(self._drain(instance, toolkit), name=f"close toolkit {toolkit}")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _drain(self, instance: Toolkit, toolkit: str) -> None:
        """Close an instance once no call runs on it. A call that never ends keeps it open until the host closes."""
        loop = asyncio.get_running_loop()
        idle = asyncio.Event()

        def tell() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(idle.set)

        instance.when_idle(tell)
        try:
            await idle.wait()
        finally:
            await _close(instance, toolkit)


def _filled(entry: ToolkitEntry, config: Json, old: JsonObject | None) -> JsonObject:
    """`config` validated, with its defaults, and with the old secrets where it says to keep them."""
    schema = entry.spec.schema
    if isinstance(config, dict):
        config = merge_masked(schema, config, old)
    return compile_schema(schema).completed(config, _refusal(entry.name))


def _told(error: InvalidInput | ExecutionFailed) -> str:
    faults: list[Fault] = getattr(error, "errors", [])
    details = "; ".join(f"{fault['path'] or '/'}: {fault['message']}" for fault in faults)
    return f"{error.message}{': ' if details else ''}{details}"


def _refusal(toolkit: str) -> str:
    return f"the configuration of toolkit {toolkit} is not valid"


def _faults_of(error: pydantic.ValidationError, secrets: frozenset[str]) -> list[Fault]:
    """What a model's own validators say, without the values."""
    return [
        {"path": "".join(f"/{step}" for step in fault["loc"]), "message": hide(fault["msg"], secrets)}
        for fault in error.errors(include_url=False, include_input=False, include_context=False)
    ]


def _disabled_text(off: dict[str, str]) -> str:
    return ", ".join(f"{name} ({reason})" for name, reason in off.items())


def _broken(toolkit: str, what: str) -> ExecutionFailed:
    error_id = uuid.uuid4().hex[:12]
    DISCRETION.exception(log, "toolkit %s %s (error %s)", toolkit, what, error_id)
    return ExecutionFailed(
        f"toolkit {toolkit} {what} (error {error_id})", code="configuration_failed", detail={"error_id": error_id}
    )


async def _close(instance: Toolkit, toolkit: str) -> None:
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT):
            done: Any = instance.close()
            if inspect.isawaitable(done):
                await done
    except (Exception, SystemExit):
        DISCRETION.exception(log, "toolkit %s did not close", toolkit)
    except asyncio.CancelledError:
        if being_cancelled():
            raise
        DISCRETION.exception(log, "toolkit %s did not close", toolkit)
