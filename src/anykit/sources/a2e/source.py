"""A remote A2E host as a source: its tools are invocables, its errors the layer's, its catalogue the last one known."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from anykit.capabilities import (
    Artifact,
    CapabilityContext,
    CapabilityError,
    Invocable,
    InvocableRequest,
    InvocableResult,
    JsonObject,
    PromptProvider,
    ResourceProvider,
    State,
    Suspension,
)
from anykit.sources.connection import CONNECT_TIMEOUT, REASON_LENGTH, Backoff, explain
from anykit.sources.hostile import Malformed, clean_text
from anykit.tools import PermissionRequest, Tool, ToolSpec, repeatable
from anykit.wire.a2e import A2EEvent, Message, ToolDefinition

from .client import LIST_TIMEOUT, A2EClient
from .errors import A2ERequestError
from .link import A2ELink
from .shaping import Artifacts, event_of, is_unnamed, layer_error, result_of, spec_of
from .targets import Target

log = logging.getLogger("anykit.sources.a2e")

MAX_TOOLS = 10_000
"""Tools of one host; the rest is left out."""
REFRESH_PAUSE = 0.05
"""Seconds between two lists that pushes cause, however many pushes come."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A tool that a host listed and that is not offered, with the reason."""

    name: str
    reason: str


class A2ESource:
    """A provider of the tools of one A2E host.

    `toolkits` are configurations that are ensured at each connect; one that fails costs that toolkit only and is told in
    `state`. While the host is away its tools stay listed and calling one says that it is away.
    """

    def __init__(
        self,
        target: Target,
        *,
        name: str = "",
        token: str = "",
        toolkits: Mapping[str, JsonObject] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        connect_timeout: float = CONNECT_TIMEOUT,
        backoff: Backoff | None = None,
    ) -> None:
        caps = ("tools", "toolkits") if toolkits else ("tools",)
        self.client = A2EClient(
            target,
            token=token,
            caps=caps,
            ensure=toolkits,
            env=env,
            cwd=cwd,
            connect_timeout=connect_timeout,
            backoff=backoff,
            while_connected=self._while_connected,
            on_push=self._pushed,
        )
        self.name = name or self.client.name
        self.left_out: tuple[LeftOut, ...] = ()
        """What of the last list is not offered."""
        self._tools: tuple[A2ETool, ...] = ()
        self._stale = asyncio.Event()
        self._callbacks: list[Callable[[], None]] = []
        self._unsubscribe: Callable[[], None] | None = None

    def __repr__(self) -> str:
        return f"<A2ESource {self.name} {self.state.status}>"

    # CapabilityProvider

    def invocables(self) -> Sequence[Invocable]:
        """The host's tools, as last listed."""
        return self._tools

    def resources(self) -> Sequence[ResourceProvider]:
        """None: A2E has no resources."""
        return ()

    def prompts(self) -> Sequence[PromptProvider]:
        """None: A2E has no prompts."""
        return ()

    # Connected

    @property
    def state(self) -> State:
        """How the connection is. `detail` has `toolkits` (not configured, with why) and `left_out` where there are any."""
        if self._unsubscribe is None:
            return State("connecting", "not started")
        detail: JsonObject = {}
        if self.client.faults:
            detail["toolkits"] = dict(self.client.faults)
        if self.left_out:
            detail["left_out"] = {one.name: one.reason for one in self.left_out}
        state = self.client.state
        if not detail:
            return state
        reason = state.reason
        if state.status == "ready" and self.client.faults:
            reason = "; ".join(f"toolkit {name} is not configured: {why}" for name, why in self.client.faults.items())
        return replace(state, reason=reason[:REASON_LENGTH], detail=detail)

    async def start(self) -> None:
        """Begin to connect."""
        if self._unsubscribe is None:
            connection = self.client.open()
            self._unsubscribe = connection.subscribe(self._changed)
            self._changed()

    async def close(self) -> None:
        """End the session with the host."""
        await self.client.close()
        if self._unsubscribe is None:
            self._unsubscribe = lambda: None
        self._changed()

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back when the state or the tools changed."""
        self._callbacks.append(callback)

        def unsubscribe() -> None:
            with contextlib.suppress(ValueError):
                self._callbacks.remove(callback)

        return unsubscribe

    def _changed(self) -> None:
        for callback in list(self._callbacks):
            try:
                callback()
            except Exception:
                log.exception("whoever watches %s broke", self.name)

    # the catalogue

    @asynccontextmanager
    async def _while_connected(self, link: A2ELink) -> AsyncGenerator[None]:
        self._stale.clear()
        await self._load(link)
        refreshing = asyncio.create_task(self._refresh(link), name="anykit-a2e-refresh")
        try:
            yield
        finally:
            refreshing.cancel()
            await asyncio.gather(refreshing, return_exceptions=True)

    def _pushed(self, message: Message) -> None:
        if isinstance(message, A2EEvent) and message.kind == "status":
            self._stale.set()

    async def _refresh(self, link: A2ELink) -> None:
        """List again after pushes: never two lists at a time, and one more where a push came meanwhile."""
        while True:
            await self._stale.wait()
            self._stale.clear()
            try:
                async with asyncio.timeout(LIST_TIMEOUT):
                    await self._load(link)
            except (CapabilityError, TimeoutError) as error:
                log.warning("%s: the tools could not be listed again: %s", self.name, explain(error))
            self._changed()
            await asyncio.sleep(REFRESH_PAUSE)

    async def _load(self, link: A2ELink) -> None:
        listed = await link.list_tools(include_deferred=True)
        left_out = [LeftOut(f"#{index}", clean_text(text, 300)) for index, text in enumerate(link.left_out[:100])]
        tools: dict[str, A2ETool] = {}
        for index, definition in enumerate(listed):
            if index >= MAX_TOOLS:
                left_out.append(LeftOut("", f"more than {MAX_TOOLS} tools; the rest is left out"))
                break
            try:
                if definition.name in tools:
                    raise Malformed("the host lists that name twice")
                tools[definition.name] = self._tool(definition)
            except Malformed as error:
                left_out.append(LeftOut(clean_text(definition.name, 100) or f"#{index}", str(error)))
        for one in left_out:
            if one not in self.left_out:
                log.warning("%s: tool %s is left out: %s", self.name, one.name, one.reason)
        self.left_out = tuple(left_out)
        self._tools = tuple(tools.values())

    def _tool(self, definition: ToolDefinition) -> A2ETool:
        spec = spec_of(definition)
        known = next((tool for tool in self._tools if tool.name == spec.name and tool.spec == spec), None)
        return known or A2ETool(spec, self)


class A2ETool(Tool):
    """A tool of a remote host."""

    def __init__(self, spec: ToolSpec, source: A2ESource) -> None:
        super().__init__(spec)
        self._original = spec.name
        self._remote = source

    def preflight(self, request: InvocableRequest) -> Sequence[PermissionRequest]:
        """It calls a peer."""
        return (PermissionRequest("peer_call", self._remote.client.name, {"tool": self._original}),)

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult | Suspension:
        """Call it over there, with what is left of the caller's time."""
        artifacts = Artifacts()

        def heard(said: A2EEvent) -> None:
            event = event_of(said)
            if isinstance(event, Artifact):
                artifacts.take(event)
                if is_unnamed(event.name):
                    return
            if event is not None:
                context.emit(event)

        timeout = None
        if context.deadline is not None:
            timeout = max(context.deadline - asyncio.get_running_loop().time(), 0.001)
        tools = self._remote.client.tools
        try:
            if request.resume is not None:
                answer = request.resume.answer
                question = str(request.resume.state["a2e"])
                wire = await tools.answer(question, ok=answer.ok, data=answer.data, timeout=timeout, on_event=heard)
            else:
                wire = await tools.call(
                    self._original,
                    request.input,
                    timeout=timeout,
                    on_event=heard,
                    correlation_id=request.turn_id or "",
                    idempotent=repeatable(self),
                )
        except A2ERequestError as error:
            raise layer_error(error) from None
        result = result_of(wire)
        if isinstance(result, InvocableResult) and (parts := artifacts.parts()):
            return result.model_copy(update={"content": (*result.content, *parts)})
        return result
