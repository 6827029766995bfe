"""One session's plugins at work: made once the session is open, asked by priority, torn down with it.

Of the plugins of a capability the top one answers alone where it is exclusive. Else all run; of lists the union counts,
of other replies the first.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import threading
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from anykit.capabilities import (
    Annotations,
    CapabilityContext,
    ExecutionFailed,
    InvocableRequest,
    InvocableResult,
    Json,
)
from anykit.capabilities import outcomes as codes
from anykit.schema import secret_texts
from anykit.tools import CALL_TIMEOUT, DISCRETION, Busy, Tool, ToolError, ToolSpec, being_cancelled, jsonable
from anykit.tools.threads import SHARED
from anykit.wire.a2e import (
    MESSAGE_TYPES,
    A2EError,
    Message,
    ToolCallRequest,
    ToolCallResponse,
    ToolDefinition,
    ToolkitConfigureRequest,
    ToolkitDefinition,
    ToolkitListRequest,
    ToolkitListResponse,
    ToolListRequest,
    ToolListResponse,
)

from .definitions import schema_of
from .loading import PluginClass, make_plugin
from .outcomes import Refusal
from .plugins import CURRENT_CALL, event_of, searches

log = logging.getLogger("anykit.a2e")

SETUP_TIMEOUT = 60.0
"""Seconds that a plugin may take to be made."""
TEARDOWN_TIMEOUT = 10.0
LISTED = 10_000
"""More tools or toolkits than that from one plugin are left out."""

Heard = Callable[[str, Message], None]
"""Takes an event and the id of the request that it belongs to ("" for none), on the loop's thread."""


class PluginHost:
    """What a plugin sees of its host."""

    def __init__(self, session_id: str, send: Callable[[object], None]) -> None:
        self.session_id = session_id
        self._sender = send

    def send(self, message: object) -> None:
        """Send an event to the agent, from any thread. What is no event is dropped, and logged."""
        self._sender(message)

    _send = send


class _Kept:
    """As long as it lives, the secrets of one configuration are hidden."""


class Plugin:
    """One instance, asked in a way that no fault of it goes further."""

    def __init__(self, plugin: PluginClass, instance: Any, models: Mapping[str, type[BaseModel]]) -> None:
        self.plugin = plugin
        self.instance = instance
        self.models = models
        self.running: list[str] = []
        """Requests that it works on."""
        self._secrets: dict[str, _Kept] = {}

    async def ask(self, message: Message) -> Message | None:
        """What it answers; None where it does not. Raises `Refusal` where it breaks."""
        model = self.models.get(message.type)
        given: Any = message
        self.running.append(CURRENT_CALL.get())
        try:
            if model is not None and not isinstance(message, model):
                given = model.model_validate(message.model_dump())
            async with asyncio.timeout(CALL_TIMEOUT):
                reply = await self._run(self.instance.handle, given)
            return _message_of(reply)
        except ToolError as error:
            raise Refusal("runtime_error", error.message or "it failed") from None
        except Busy as error:
            raise Refusal("runtime_error", str(error), retryable=True, detail={"reason": "busy"}) from None
        except TimeoutError:
            raise Refusal("timeout", f"plugin {self.plugin.name} did not answer within {CALL_TIMEOUT:g} s") from None
        except Refusal:
            raise
        except (Exception, SystemExit):
            raise self._broken() from None
        except asyncio.CancelledError:
            if being_cancelled():
                raise
            raise self._broken() from None
        finally:
            self.running.remove(CURRENT_CALL.get())

    def _broken(self) -> Refusal:
        error_id = uuid.uuid4().hex[:12]
        DISCRETION.exception(log, "plugin %s broke (error %s)", self.plugin.name, error_id)
        return Refusal(
            "runtime_error",
            f"plugin {self.plugin.name} failed unexpectedly (error {error_id})",
            detail={"error_id": error_id},
        )

    async def _run(self, method: Callable[..., Any], *args: Any) -> Any:
        if inspect.iscoroutinefunction(method):
            return await method(*args)
        value = await SHARED.run(functools.partial(method, *args), key=self.plugin.kind)
        await asyncio.sleep(0)  # what it said in its thread goes first
        return await value if inspect.isawaitable(value) else value

    def keep(self, toolkit: str, secrets: frozenset[str]) -> None:
        """Hide what a toolkit of it is configured with from the log, until it is configured anew."""
        owner = self._secrets[toolkit] = _Kept()
        DISCRETION.keep(secrets, owner)

    async def close(self) -> None:
        """Tear it down, bounded in time."""
        teardown = getattr(self.instance, "teardown", None)
        if not callable(teardown):
            return
        try:
            async with asyncio.timeout(TEARDOWN_TIMEOUT):
                await self._run(teardown)
        except (Exception, SystemExit):
            DISCRETION.exception(log, "plugin %s was not torn down", self.plugin.name)
        except asyncio.CancelledError:
            if being_cancelled():
                raise
            DISCRETION.exception(log, "plugin %s was not torn down", self.plugin.name)


def _message_of(reply: object) -> Message | None:
    if reply is None:
        return None
    if isinstance(reply, Message):
        return _checked(reply)
    if isinstance(reply, BaseModel):
        return _message_of(reply.model_dump())
    if isinstance(reply, Mapping):
        fields = cast("Mapping[str, Any]", reply)
        kind = MESSAGE_TYPES.get(str(fields.get("type")))
        if kind is not None:
            return kind.validate({**fields})
    if isinstance(reply, list | tuple):
        items = cast("Sequence[object]", reply)
        if all(isinstance(item, ToolkitDefinition) for item in items):
            return ToolkitListResponse(toolkits=cast("list[ToolkitDefinition]", list(items)))
        if all(isinstance(item, ToolDefinition) for item in items):
            return ToolListResponse(tools=cast("list[ToolDefinition]", list(items)))
    name = type(cast(object, reply)).__name__
    raise TypeError(f"handle() returned a {name}, not a message")


def _checked(reply: Message) -> Message:
    """A copy, since it may be the plugin's one and only, held against its model: whoever sets a field is not checked."""
    kind = MESSAGE_TYPES.get(reply.type)
    if kind is None:
        return reply.model_copy()
    fields = reply.model_dump(warnings=False)
    for name in {"id", "ts"} - reply.model_fields_set:
        del fields[name]
    return kind.validate(fields)


class PluginTool(Tool):
    """A plugin's tool. It is run as every tool is, but knows only its session's instance."""

    def __init__(self, spec: ToolSpec, definition: ToolDefinition, plugin: Plugin) -> None:
        super().__init__(spec)
        self.definition = definition
        self.plugin = plugin

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult:
        """Ask the plugin. Raises `ExecutionFailed` for what it says went wrong."""
        message = ToolCallRequest(
            id=request.call_id,
            session_id=request.session_id or "",
            tool_name=self.name,
            arguments=request.input,
            correlation_id=request.metadata.get("correlation_id", ""),
            streaming=request.metadata.get("streaming", False),
        )
        try:
            reply = await self.plugin.ask(message)
        except Refusal as refusal:
            raise ExecutionFailed(
                refusal.message, code=codes.INTERNAL, retryable=refusal.retryable, detail=refusal.detail
            ) from None
        if isinstance(reply, A2EError):
            raise ExecutionFailed(
                reply.message, code=_failure_code(reply.code), retryable=reply.retryable, detail=reply.detail
            )
        if not isinstance(reply, ToolCallResponse):
            raise ExecutionFailed(f"plugin {self.plugin.plugin.name} did not answer the call", code=codes.INTERNAL)
        return _result_of(reply)


def _failure_code(code: str) -> str:
    return codes.EXECUTION_FAILED if code.lower() == "tool_error" else code.lower()


def _result_of(reply: ToolCallResponse) -> InvocableResult:
    data = reply.data
    value: Json = jsonable(data.data)
    text = data.summary if isinstance(data.summary, str) else None
    if data.success:
        return InvocableResult(text=text, structured=value)
    said = InvocableResult(text=text, structured=value) if value is not None else None
    message = data.error or text or "the tool failed"
    raise ExecutionFailed(message, code=data.error_code or codes.EXECUTION_FAILED, result=said)


@dataclass(frozen=True, slots=True)
class PluggedToolkit:
    """A toolkit that plugins list; `plugins` are all that list it, the first first."""

    definition: ToolkitDefinition
    plugins: tuple[Plugin, ...]
    leads: bool
    """Whether it goes before a toolkit of the host's own of that name."""


class Plugged:
    """The plugins of one session."""

    def __init__(self, classes: Sequence[PluginClass], session_id: str, heard: Heard) -> None:
        self._classes = classes
        self._session_id = session_id
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._plugins: list[Plugin] = []
        self._ready: asyncio.Task[None] | None = None
        self._closed = False
        self._toolkits: dict[str, PluggedToolkit] | None = None
        self._tools: dict[str, PluginTool] | None = None
        self._unmatched: set[tuple[str, str]] = set()
        self.broken: dict[str, BaseException | None] = {}
        """Why a capability's list is empty, where every plugin that has one broke."""

    def start(self) -> None:
        """Make the instances, in the background; whoever asks waits for them."""
        if self._ready is None:
            self._ready = self._loop.create_task(self._make(), name="a2e plugins")

    async def close(self) -> None:
        """Tear every instance down."""
        self._closed = True
        if self._ready is not None and not self._ready.done():
            self._ready.cancel()
            await asyncio.wait([self._ready], timeout=TEARDOWN_TIMEOUT)
        if self._plugins:
            await asyncio.gather(*(plugin.close() for plugin in self._plugins))

    async def _make(self) -> None:
        made = await asyncio.gather(*(self._make_one(kind) for kind in self._classes))
        self._plugins = [plugin for plugin in made if plugin is not None]

    async def _make_one(self, kind: PluginClass) -> Plugin | None:
        host = PluginHost(self._session_id, functools.partial(self._hear, None))
        config = {**kind.config, "session_id": self._session_id, "audit_log": None}
        try:
            async with asyncio.timeout(SETUP_TIMEOUT):
                instance, left = await SHARED.run(functools.partial(make_plugin, kind, host, config), key=kind.kind)
                for one in left:
                    await cast("Awaitable[object]", one)
                supported = await SHARED.run(instance.supported_messages, key=kind.kind)
                if inspect.isawaitable(supported):
                    supported = await cast("Awaitable[object]", supported)
            models = {str(getattr(key, "value", key)): model for key, model in dict(cast("Any", supported)).items()}
        except (Exception, SystemExit) as error:
            DISCRETION.exception(log, "plugin %s is left out of a session: %s", kind.name, type(error).__name__)
            return None
        except asyncio.CancelledError:
            if being_cancelled():
                raise
            DISCRETION.exception(log, "plugin %s is left out of a session: it cancelled itself", kind.name)
            return None
        plugin = Plugin(kind, instance, models)
        for setter in ("set_push_callback", "set_event_callback"):
            method = getattr(instance, setter, None)
            if callable(method):
                method(functools.partial(self._hear, plugin))
        return plugin

    # what they say by themselves

    def _hear(self, plugin: Plugin | None, event: object) -> None:
        """An event, from any thread."""
        req_id = CURRENT_CALL.get()
        if threading.get_ident() == self._thread:
            self._tell(plugin, req_id, event)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._tell, plugin, req_id, event)

    def _tell(self, plugin: Plugin | None, req_id: str, event: object) -> None:
        if self._closed:
            return
        try:
            message = event_of(event)
        except (TypeError, ValueError) as error:
            name = plugin.plugin.name if plugin else "?"
            log.warning("an event of plugin %s is dropped: %s", name, _reason(error))
            return
        own = getattr(message, "req_id", "")
        if message.type == "tool/event" and not own:
            own = req_id
            if not own and plugin is not None and len(set(plugin.running)) == 1:
                own = plugin.running[0]
        self._heard(own, message)

    # asking them

    async def _all(self) -> list[Plugin]:
        if self._ready is not None and not self._ready.done():
            await asyncio.shield(self._ready)
        return self._plugins

    async def _top(self, capability: str) -> Plugin | None:
        """The one of a capability that is asked first."""
        return next((plugin for plugin in await self._all() if plugin.plugin.capability == capability), None)

    async def taking(self, capability: str, type: str) -> list[Plugin]:
        """The instances that take a message type, in the order in which they answer.

        A plugin may take messages beside its own capability's, as one for a toolkit and its tools does.
        """
        top = await self._top(capability)
        found = [top] if top is not None and top.plugin.exclusive else await self._all()
        return [plugin for plugin in found if type in plugin.models]

    async def alone(self, capability: str) -> bool:
        """Whether an exclusive plugin keeps the host's own out: the host's own has priority 0."""
        top = await self._top(capability)
        return top is not None and top.plugin.exclusive and top.plugin.priority >= 0

    async def broadcast(self, capability: str, message: Message) -> Message:
        """Ask all, give the first reply. Raises `Refusal`: none answers the type, or all break."""
        able = await self.taking(capability, message.type)
        if able:
            return await self._first(able, message, capability)
        if await self._top(capability) is None:
            raise Refusal(
                "capability_missing", f"no plugin serves {capability!r} in this session", capability=capability
            )
        raise Refusal("invalid_message", f"no plugin takes {message.type}", capability=capability)

    async def _first(self, plugins: Sequence[Plugin], message: Message, capability: str) -> Message:
        replies = await asyncio.gather(
            *(plugin.ask(message.model_copy(deep=True)) for plugin in plugins), return_exceptions=True
        )
        for reply in replies:
            if isinstance(reply, Message):
                return reply
        for reply in replies:
            if isinstance(reply, BaseException):
                raise reply
        raise Refusal("runtime_error", f"no plugin answered {message.type}", capability=capability)

    async def configure(self, toolkit: PluggedToolkit, message: ToolkitConfigureRequest) -> Message:
        """Ask those that list the toolkit. Raises `Refusal`."""
        secrets = secret_texts(toolkit.definition.schema, message.config)
        for plugin in toolkit.plugins:
            plugin.keep(toolkit.definition.name, secrets)
        return await self._first(toolkit.plugins, message, "toolkits")

    async def toolkits(self, *, fresh: bool = False) -> dict[str, PluggedToolkit]:
        """What they list, by name."""
        if self._toolkits is None or fresh:
            listed = await self._listed("toolkits", ToolkitListRequest(), ToolkitListResponse)
            found: dict[str, PluggedToolkit] = {}
            for plugin, reply in listed:
                for definition in cast(ToolkitListResponse, reply).toolkits[:LISTED]:
                    before = found.get(definition.name)
                    found[definition.name] = (
                        PluggedToolkit(definition, (plugin,), plugin.plugin.priority >= 0)
                        if before is None
                        else PluggedToolkit(before.definition, (*before.plugins, plugin), before.leads)
                    )
            self._toolkits = found
        return self._toolkits

    async def tools(self, *, fresh: bool = False) -> dict[str, PluginTool]:
        """Their tools, by name."""
        if self._tools is None or fresh:
            listed = await self._listed("tools", ToolListRequest(include_deferred=True), ToolListResponse)
            found: dict[str, PluginTool] = {}
            for plugin, reply in listed:
                for definition in cast(ToolListResponse, reply).tools[:LISTED]:
                    known = (self._tools or {}).get(definition.name)
                    if known is not None and known.plugin is plugin and known.definition == definition:
                        found.setdefault(definition.name, known)
                    else:
                        found.setdefault(definition.name, _tool_of(definition, plugin))
            self._tools = found
        return self._tools

    async def found_by(self, query: str, *, include_deferred: bool) -> set[str]:
        """Names of the tools that plugins' own searches find."""
        names: set[str] = set()
        for plugin in await self.taking("tools", "tool/list/req"):
            if not searches(plugin.instance):
                continue
            request = ToolListRequest(query=query, include_deferred=include_deferred)
            try:
                reply = await plugin.ask(request)
            except Refusal:
                continue
            if isinstance(reply, ToolListResponse):
                names |= {definition.name for definition in reply.tools}
        return names

    async def _listed(self, capability: str, request: Message, kind: type[Message]) -> list[tuple[Plugin, Message]]:
        """Each one's list. One that breaks is left out; `broken` says where all did."""
        plugins = await self.taking(capability, request.type)
        replies = await asyncio.gather(
            *(plugin.ask(request.model_copy(deep=True)) for plugin in plugins), return_exceptions=True
        )
        listed: list[tuple[Plugin, Message]] = []
        broken: BaseException | None = None
        for plugin, reply in zip(plugins, replies, strict=True):
            if isinstance(reply, kind):
                listed.append((plugin, reply))
            elif isinstance(reply, A2EError):
                broken = broken or Refusal(reply.code.lower(), reply.message, detail=reply.detail)
            elif isinstance(reply, BaseException):
                broken = broken or reply
        self.broken[capability] = broken if not listed else None
        return listed

    async def bindings(self) -> dict[str, list[str]]:
        """The toolkits whose configuration each tool name waits for."""
        bound: dict[str, list[str]] = {}
        for name, toolkit in (await self.toolkits()).items():
            for tool in toolkit.definition.tools:
                bound.setdefault(tool, []).append(name)
        return bound

    def unmatched(self, toolkit: str, tool: str) -> None:
        """A toolkit names a tool that nobody offers: say so once."""
        if (toolkit, tool) not in self._unmatched and len(self._unmatched) < LISTED:
            self._unmatched.add((toolkit, tool))
            log.warning("toolkit %s names the tool %s, which no plugin and no source offers", toolkit, tool)


def _tool_of(definition: ToolDefinition, plugin: Plugin) -> PluginTool:
    spec = ToolSpec(
        name=definition.name,
        description=definition.description,
        input_schema=schema_of(definition),
        output_schema=definition.output_schema,
        annotations=Annotations(idempotent=definition.idempotent),
        tags=tuple(definition.tags),
        kind="plugin",
        source=plugin.plugin.name,
        version=definition.version,
        deferred=definition.defer_loading,
    )
    return PluginTool(spec, definition, plugin)


def _reason(error: Exception) -> str:
    """What is wrong, without the values."""
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(str(step) for step in fault['loc'])}: {fault['msg']}" for fault in error.errors())
    return str(error)
