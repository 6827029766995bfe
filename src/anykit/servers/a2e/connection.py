"""One agent's session at work: lines in, calls started, lines out. It knows no transport.

carrier ── receive(line) ──> HostSession ── Request ──> a task that answers ── reply ──> HostSession ── lines ──> carrier
"""

from __future__ import annotations

import asyncio
import base64
import logging
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Protocol, cast

from anykit.capabilities import (
    Artifact,
    AudioPart,
    BlobPart,
    CapabilityContext,
    Completed,
    ContentPart,
    EmbeddedResource,
    Event,
    ExecutionFailed,
    ImagePart,
    InvalidInput,
    InvocableRequest,
    JsonObject,
    Log,
    Outcome,
    Progress,
    StructuredPart,
    Suspended,
    TextPart,
)
from anykit.runtime import CallOptions, CatalogChanged, Change, Session, ToolEntry, ToolkitEvent, UnknownToolkit
from anykit.schema import SchemaError, compile_schema, merge_masked, redact
from anykit.tools import (
    CALL_TIMEOUT,
    OUTPUT_LIMIT,
    attempt,
    check_arguments,
    describe_part,
    repeatable,
    timed_out,
    to_json,
    tool_result,
)
from anykit.wire.a2e import (
    A2EError,
    A2EMessage,
    AnswerRequest,
    AnswerResponse,
    Drained,
    Handshaken,
    HandshakeRefused,
    HostEvent,
    HostSession,
    Message,
    Oversized,
    PeerError,
    PeerReply,
    Request,
    ShutdownRequested,
    ToolCallRequest,
    ToolCallResponse,
    ToolDefinition,
    ToolkitConfigureRequest,
    ToolkitConfigureResponse,
    ToolkitDefinition,
    ToolkitListRequest,
    ToolkitListResponse,
    ToolListRequest,
    ToolListResponse,
    ToolResult,
    normal_code,
)

from .definitions import kind_of, searched, tool_definition, tool_wanted, toolkit_definition, toolkit_wanted
from .mcp import CAPABILITY as MCP
from .mcp import AgentModels, McpMessages
from .outcomes import Refusal, refusal_of
from .plugged import Plugged, PluggedToolkit, PluginTool
from .plugins import CURRENT_CALL
from .skill import CAPABILITY as SKILL
from .skill import SkillMessages

log = logging.getLogger("anykit.a2e")

CANCEL_TIMEOUT = 2.0
"""Seconds that cancelled calls have to end."""
CHUNK = 256 * 1024
"""Bytes of an artifact that travel in one event."""
SHORT = 200
"""Characters of a text that no tool's limit cuts."""
NAME_SHOWN = 128
"""Characters of a name of the peer's that an error repeats."""
WRONG_TOKENS = 5
"""Refused handshakes after which a session ends."""
DEFAULT_MESSAGE = "Toolkit configured successfully"


class Carrier(Protocol):
    """What takes a session's lines to its agent."""

    @property
    def secure(self) -> bool:
        """Whether a secret may travel on it."""
        ...

    def deliver(self, lines: list[bytes]) -> None:
        """Take lines to send, in order. Never waits."""
        ...

    def congested(self) -> bool:
        """Whether so much waits to be sent that events should be dropped."""
        ...

    def over(self, reason: str) -> None:
        """The session has ended by itself: send what was delivered, then close."""
        ...


class Connection:
    """One session. Used on the loop's thread only.

    Args:
        wire: The protocol's state, which knows the session's id.
        new_id: Gives ids of messages.
        clock: Gives Unix seconds.
        open_session: Gives the caller's verbs, once the agent is known.
        carrier: Where lines go.
        plugged: The session's plugins; None where the host has none.
        mcp: Answers what is asked of MCP servers; None where there is nothing to look at.
        models: Has the agent's model answer what they ask.
        skills: Answers what is asked of skills; None where there is nothing to look at.
    """

    def __init__(
        self,
        wire: HostSession,
        *,
        new_id: Callable[[], str],
        clock: Callable[[], float] = time.time,
        open_session: Callable[[str], Session],
        carrier: Carrier,
        plugged: Callable[[Connection], Plugged | None] = lambda connection: None,
        mcp: Callable[[Connection], McpMessages | None] = lambda connection: None,
        models: AgentModels | None = None,
        skills: Callable[[Connection], SkillMessages | None] = lambda connection: None,
    ) -> None:
        self.wire = wire
        self._new_id = new_id
        self._clock = clock
        self._open_session = open_session
        self._carrier = carrier
        self._plugged = plugged(self)
        self._mcp = mcp(self)
        self._models = models
        self._skills = skills(self)
        self._session: Session | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """What answers each open request."""
        self._configured: dict[str, JsonObject] = {}
        """Of plugins' toolkits."""
        self._deadline: asyncio.TimerHandle | None = None
        self._offer: object = None
        self._refusals = 0
        self._ending = False
        self._closed = False

    @property
    def busy(self) -> bool:
        """Whether a request runs."""
        return bool(self._tasks)

    @property
    def over(self) -> bool:
        """Whether the session has ended."""
        return self._ending or self._closed

    # lines

    def receive(self, line: bytes | Oversized) -> None:
        """Take one line from the agent, and start what it asks for."""
        if self.over:
            return
        for event in self.wire.receive(line, self._clock()):
            self._handle(event)
        self._flush()

    def _flush(self) -> None:
        lines = self.wire.take()
        if lines:
            self._carrier.deliver(lines)

    def _handle(self, event: HostEvent) -> None:
        match event:
            case Request():
                self._tasks[event.req_id] = self._loop.create_task(self._answer(event))
            case Handshaken(renewed=False):
                self._opened()
            case Handshaken():
                log.debug("session %s negotiated anew", self.wire.session_id)
            case HandshakeRefused(reason):
                self._refused(reason)
            case ShutdownRequested(timeout):
                self._deadline = self._loop.call_later(timeout, self._time_is_up)
            case Drained():
                self._end("shutdown")
            case PeerReply(message):
                if self._models is not None:
                    self._models.heard(self.wire.session_id, message)
            case PeerError(error):
                log.debug("the agent reports %s: %s", error.code, error.message[:NAME_SHOWN])

    def _opened(self) -> None:
        self._session = self._open_session(self.wire.agent_id)
        self._offer = self._offered()
        self._unsubscribe = self._session.subscribe(self._changed)
        if self._plugged is not None:
            self._plugged.start()
        if MCP in self.wire.capabilities:
            if self._mcp is not None:
                self._mcp.start()
            if self._models is not None:
                self._models.join(self.wire.session_id, self._ask)

    def _refused(self, reason: str) -> None:
        log.info("a handshake was refused: %s", reason)
        if reason == "auth_failed":
            self._refusals += 1
            if self._refusals >= WRONG_TOKENS:
                self._end("auth_failed")

    # the end

    def _time_is_up(self) -> None:
        """The drain's time is over: what still runs is answered for and cancelled."""
        self.wire.end(self._clock())
        self._end("shutdown")

    def _end(self, reason: str) -> None:
        if self._ending:
            return
        self._ending = True
        self._flush()
        current = asyncio.current_task()
        for task in self._tasks.values():
            if task is not current:
                task.cancel()
        self._carrier.over(reason)

    def end(self, reason: str) -> None:
        """End it from this side: every open request gets an answer, then the carrier closes."""
        if not self.over:
            self.wire.end(self._clock(), "the host is shutting down" if reason == "host" else "the session has ended")
            self._end(reason)

    async def close(self) -> None:
        """The agent is gone, or the carrier closed: cancel what runs, give everything back. Bounded in time."""
        if self._closed:
            return
        self._closed = True
        if self._deadline is not None:
            self._deadline.cancel()
        if self._unsubscribe is not None:
            self._unsubscribe()
        current = asyncio.current_task()
        tasks = [task for task in self._tasks.values() if task is not current]
        for task in tasks:
            task.cancel()
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=CANCEL_TIMEOUT)
        finally:
            if self._session is not None:
                self._session.close()
            if self._models is not None:
                self._models.leave(self.wire.session_id)
            if self._mcp is not None:
                await asyncio.shield(self._mcp.close())
            if self._plugged is not None:
                await asyncio.shield(self._plugged.close())

    async def settle(self, timeout: float) -> None:
        """Wait until nothing runs, at most `timeout` seconds."""
        if self._tasks:
            await asyncio.wait(set(self._tasks.values()), timeout=timeout)
        self._flush()

    # requests

    async def _answer(self, request: Request) -> None:
        req_id = request.req_id
        try:
            message = request.message
            if self._plugged is not None:
                CURRENT_CALL.set(request.req_id)
            if isinstance(message, ToolCallRequest):
                reply = await self._call(request, message)
                if reply is None:
                    return
            else:
                reply = await self._reply(request)
            if isinstance(reply, A2EError):
                raise Refusal(
                    normal_code(reply.code, reply.message),
                    reply.message,
                    detail=reply.detail,
                    retryable=reply.retryable,
                    capability=reply.capability_name or request.capability,
                )
            events = self.wire.reply(req_id, reply, self._clock())
        except Refusal as refusal:
            events = self._fail(req_id, refusal, request.capability)
        except Exception:
            error_id = uuid.uuid4().hex[:12]
            log.exception("%s could not be answered (error %s)", request.kind.name, error_id)
            broken = Refusal(
                "runtime_error", f"it failed unexpectedly (error {error_id})", detail={"error_id": error_id}
            )
            events = self._fail(req_id, broken, request.capability)
        finally:
            self._tasks.pop(req_id, None)
        self._go_on(events)

    def _go_on(self, events: list[HostEvent]) -> None:
        """A request was answered: start what waited for its place, and send."""
        if self._closed:
            return
        for event in events:
            self._handle(event)
        self._flush()

    def _fail(self, req_id: str, refusal: Refusal, capability: str) -> list[HostEvent]:
        return self.wire.fail(
            req_id,
            refusal.code,
            refusal.message,
            self._clock(),
            detail=refusal.detail,
            retryable=refusal.retryable,
            capability_name=refusal.capability or capability,
        )

    async def _reply(self, request: Request) -> Message:
        message = request.message
        match message:
            case ToolListRequest():
                return await self._list_tools(message)
            case ToolkitListRequest():
                return await self._list_toolkits(message)
            case ToolkitConfigureRequest():
                return await self._configure(message)
            case AnswerRequest():
                return await self._answer_question(request, message)
            case _:
                pass
        if self._mcp is not None and request.capability == MCP and not await self._is_plugged(request):
            return await self._mcp.answer(message)
        skills = self._skills if request.capability == SKILL else None
        if skills is not None and skills.offered and not await self._is_plugged(request):
            return await skills.answer(request)
        if self._plugged is None or request.capability in ("tools", "toolkits"):
            raise Refusal("invalid_message", f"{request.kind.name} is not served here")
        if "id" in type(message).model_fields:
            cast("ToolCallRequest", message).id = request.req_id
        return await self._plugged.broadcast(request.capability, message)

    async def _is_plugged(self, request: Request) -> bool:
        """Whether a plugin answers that, before what is the host's own."""
        if self._plugged is None:
            return False
        taking = await self._plugged.taking(request.capability, request.kind.name)
        return any(plugin.plugin.priority >= 0 for plugin in taking)

    def _ask(self, message: A2EMessage) -> str:
        id = self.wire.ask(message, self._clock())
        self._flush()
        return id

    @property
    def session(self) -> Session:
        """The caller's verbs. There are some as soon as a request was let through."""
        assert self._session is not None
        return self._session

    # tools

    async def _list_tools(self, message: ToolListRequest) -> ToolListResponse:
        offered: dict[str, tuple[ToolDefinition, str]] = {}
        alone = self._plugged is not None and await self._plugged.alone("tools")
        if not alone:
            for entry in self._entries():
                offered[entry.tool.name] = (tool_definition(entry), kind_of(entry.tool))
        found: set[str] = set()
        if self._plugged is not None:
            leading: dict[str, tuple[ToolDefinition, str]] = {}
            for name, tool in (await self._plugged.tools(fresh=True)).items():
                definition = tool.definition.model_copy(update={"input_schema": tool.input_schema})
                if name not in offered or tool.plugin.plugin.priority >= 0:
                    leading[name] = (definition, tool.kind)
            offered = {**offered, **leading}
            offered = await self._bound(offered)
            if message.query:
                found = await self._plugged.found_by(message.query, include_deferred=message.include_deferred)
        if self._plugged is not None and not offered and (broken := self._plugged.broken.get("tools")) is not None:
            raise broken
        wanted = [definition for definition, kind in offered.values() if tool_wanted(definition, kind, message)]
        if message.query:
            hits = searched(wanted, message.query)
            named = {definition.name for definition in hits}
            wanted = [*hits, *(tool for tool in wanted if tool.name in found and tool.name not in named)]
        return ToolListResponse(tools=wanted)

    def _entries(self) -> list[ToolEntry]:
        """The tools that are listed. A2E has a word for what is deferred, and searches by itself: the tool that finds others
        is listed only where their number had them deferred.
        """
        snapshot = self.session.snapshot
        entries = self.session.entries()
        if snapshot.finder is None or snapshot.crowded:
            return entries
        return [entry for entry in entries if entry.tool.name != snapshot.finder]

    async def _bound(self, offered: dict[str, tuple[ToolDefinition, str]]) -> dict[str, tuple[ToolDefinition, str]]:
        """The tools less those that wait for a plugin's toolkit; the others of a toolkit say which."""
        assert self._plugged is not None
        bindings = await self._plugged.bindings()
        shown: dict[str, tuple[ToolDefinition, str]] = {}
        for name, (definition, kind) in offered.items():
            toolkits = bindings.get(name)
            if toolkits is None:
                shown[name] = (definition, kind)
                continue
            serving = [toolkit for toolkit in toolkits if toolkit in self._configured]
            if serving:
                shown[name] = (definition.model_copy(update={"toolkit": serving[0]}), kind)
        return shown

    async def _call(self, request: Request, message: ToolCallRequest) -> ToolCallResponse | None:
        """The reply; None where it is on its way already."""
        begun = self._loop.time()
        name = message.tool_name
        tool = None if self._plugged is None else await self._plugin_tool(self._plugged, name)
        if tool is None:
            session = self.session
            outcome = await session.run(
                name,
                message.arguments,
                CallOptions(
                    timeout=request.timeout,
                    call_id=request.req_id,
                    metadata={"correlation_id": message.correlation_id} if message.correlation_id else {},
                    emit=lambda event: self.tell(request.req_id, event),
                ),
            )
        else:
            outcome = await self._run_plugin_tool(tool, request, message)
        ms = int((self._loop.time() - begun) * 1000)
        if isinstance(outcome, Completed):
            result = outcome.result
            text = result.text
            if text is None or len(text) > SHORT or result.content or result.data is not None:
                return self._completed(request, name, outcome, tool, ms)
            events = self.wire.reply_success(
                request.req_id,
                tool_name=name,
                data=result.structured if result.has_structured else text,
                summary=text,
                duration_ms=ms,
                now=self._clock(),
            )
            self._go_on(events)
            return None
        if isinstance(outcome, Suspended):
            return ToolCallResponse(data=_suspended(name, outcome, ms), created_at=self._clock())
        found = tool or self.session.get(name)
        raise refusal_of(outcome, repeatable=found is not None and repeatable(found))

    async def _answer_question(self, request: Request, message: AnswerRequest) -> AnswerResponse:
        """Go on with a suspended call."""
        begun = self._loop.time()
        outcome = await self.session.answer(
            message.suspension_id,
            ok=message.ok,
            data=message.data,
            options=CallOptions(emit=lambda event: self.tell(request.req_id, event)),
        )
        ms = int((self._loop.time() - begun) * 1000)
        if isinstance(outcome, Completed):
            done = self._completed(request, "", outcome, None, ms).data
        elif isinstance(outcome, Suspended):
            done = _suspended("", outcome, ms)
        else:
            raise refusal_of(outcome, repeatable=False)
        return AnswerResponse(data=done, created_at=self._clock())

    async def _plugin_tool(self, plugged: Plugged, name: str) -> PluginTool | None:
        """The plugin's tool that a call means, or None for the host's own. Raises `Refusal` while its toolkit waits."""
        known = name in await plugged.tools()
        own = self.session.get(name)
        tools = await plugged.tools(fresh=not known and own is None)
        toolkits = (await plugged.bindings()).get(name)
        if toolkits is not None and not any(toolkit in self._configured for toolkit in toolkits):
            shown = toolkits[0]
            raise Refusal(
                "tool_denied",
                f"toolkit {shown} is not configured, so {name[:NAME_SHOWN]} cannot run; configure it first",
                detail={"reason": "not_configured", "toolkit": shown},
                capability="tools",
            )
        tool = tools.get(name)
        if await plugged.alone("tools"):
            if tool is None:
                raise Refusal("unknown_tool", f"unknown tool {name[:NAME_SHOWN]!r}", capability="tools")
            return tool
        if tool is not None and own is not None and tool.plugin.plugin.priority < 0:
            return None
        return tool

    async def _run_plugin_tool(self, tool: PluginTool, request: Request, message: ToolCallRequest) -> Outcome:
        if (invalid := check_arguments(tool, message.arguments)) is not None:
            return invalid
        limit = CALL_TIMEOUT if request.timeout is None else request.timeout
        call = InvocableRequest(
            input=message.arguments,
            call_id=request.req_id,
            session_id=self.wire.session_id,
            metadata={"correlation_id": message.correlation_id, "streaming": message.streaming},
        )
        try:
            async with asyncio.timeout(limit):
                return await attempt(tool, call, CapabilityContext(session_id=self.wire.session_id))
        except TimeoutError:
            return timed_out(tool, limit)

    def _completed(
        self, request: Request, name: str, outcome: Completed, tool: PluginTool | None, ms: int
    ) -> ToolCallResponse:
        result = outcome.result
        for index, part in enumerate(result.content):
            if isinstance(part, ImagePart | AudioPart | BlobPart):
                label = (part.name if isinstance(part, BlobPart) else None) or f"content-{index}"
                self.tell(request.req_id, Artifact(label, part))
        found = tool or self.session.get(name)
        shaped = tool_result(outcome, limit=OUTPUT_LIMIT if found is None else found.spec.max_output)
        text = shaped.output
        truncated = "truncated" in shaped.metadata
        data = shaped.structured
        if not result.has_structured or (truncated and data is None):
            data = text
        now = self._clock()
        done = ToolResult(success=True, tool_name=name, data=data, summary=text, truncated=truncated, duration_ms=ms)
        return ToolCallResponse(id=self._new_id(), ts=now, req_id=request.req_id, data=done, created_at=now)

    # toolkits

    async def _toolkit_definitions(self, *, fresh: bool) -> dict[str, ToolkitDefinition]:
        listed: dict[str, ToolkitDefinition] = {}
        alone = self._plugged is not None and await self._plugged.alone("toolkits")
        if not alone:
            listed = {view.name: toolkit_definition(view) for view in self.session.toolkits()}
        if self._plugged is not None:
            plugged = await self._plugged.toolkits(fresh=fresh)
            for name, toolkit in plugged.items():
                if name not in listed or toolkit.leads:
                    configured = name in self._configured
                    listed[name] = toolkit.definition.model_copy(update={"configured": configured})
            await self._look_for_unmatched(self._plugged, plugged)
            if not listed and (broken := self._plugged.broken.get("toolkits")) is not None:
                raise broken
        return listed

    async def _look_for_unmatched(self, plugged: Plugged, toolkits: dict[str, PluggedToolkit]) -> None:
        offered = {entry.tool.name for entry in self.session.entries()} | set(await plugged.tools())
        for name, toolkit in toolkits.items():
            for tool in toolkit.definition.tools:
                if tool not in offered:
                    plugged.unmatched(name, tool)

    async def _list_toolkits(self, message: ToolkitListRequest) -> ToolkitListResponse:
        listed = await self._toolkit_definitions(fresh=True)
        return ToolkitListResponse(toolkits=[one for one in listed.values() if toolkit_wanted(one, message)])

    async def _configure(self, message: ToolkitConfigureRequest) -> Message:
        name = message.toolkit_name
        plugged = None
        if self._plugged is not None:
            listed = await self._plugged.toolkits()
            if name not in listed and self.session.toolkit(name) is None:
                listed = await self._plugged.toolkits(fresh=True)
            plugged = listed.get(name)
            if plugged is None and await self._plugged.alone("toolkits"):
                raise _unknown_toolkit(name, f"unknown toolkit {name[:NAME_SHOWN]!r}")
        view = self.session.toolkit(name)
        if plugged is not None and (view is None or plugged.leads):
            return await self._configure_plugged(plugged, message)
        if view is not None:
            self._check_way(name, view.schema, message.config)
        try:
            status, text = await self.session.configure(name, message.config)
        except UnknownToolkit as error:
            raise _unknown_toolkit(name, error.message) from None
        except InvalidInput as error:
            raise _bad_configuration(name, error.message, error.errors) from None
        except ExecutionFailed as error:
            detail = {"reason": error.code, "toolkit_name": name, **error.detail}
            raise Refusal("runtime_error", error.message, detail=detail, retryable=error.retryable) from None
        return ToolkitConfigureResponse(toolkit_name=name, status=status, message=text)

    def _check_way(self, name: str, schema: JsonObject, config: JsonObject) -> None:
        """A secret must not have travelled where it can be read."""
        if not self._carrier.secure and _has_secret(schema, config):
            raise Refusal(
                "unauthorized",
                f"toolkit {name} takes a secret, which travels only over TLS, loopback, stdio or in one process",
                detail={"reason": "insecure_transport", "toolkit_name": name},
            )

    async def _configure_plugged(self, toolkit: PluggedToolkit, message: ToolkitConfigureRequest) -> Message:
        assert self._plugged is not None
        name = toolkit.definition.name
        schema = toolkit.definition.schema
        self._check_way(name, schema, message.config)
        try:
            validator = compile_schema(schema)
        except SchemaError as error:
            raise Refusal(
                "runtime_error",
                f"toolkit {name} cannot be configured: its schema is wrong: {error}",
                detail={"reason": "invalid_schema", "toolkit_name": name},
            ) from None
        config = merge_masked(schema, message.config, self._configured.get(name))
        faults = validator.faults(config)
        if not faults:
            config = validator.with_defaults(config)
            faults = validator.faults(config)
        if faults:
            raise _bad_configuration(name, f"the configuration of toolkit {name} is not valid", faults)
        given = message.model_copy(update={"config": config, "session_id": self.wire.session_id})
        try:
            reply = await self._plugged.configure(toolkit, given)
        except Refusal as refusal:
            refusal.detail.setdefault("toolkit_name", name)
            raise
        if isinstance(reply, A2EError):
            raise Refusal(
                normal_code(reply.code, reply.message),
                reply.message,
                detail={"toolkit_name": name, **reply.detail},
                retryable=reply.retryable,
            )
        if not isinstance(reply, ToolkitConfigureResponse):
            raise Refusal(
                "runtime_error",
                f"toolkit {name} gave no answer to its configuration",
                detail={"reason": "no_reply", "toolkit_name": name},
            )
        reply.toolkit_name = name
        if reply.status.lower() != "error":
            self._configured[name] = config
            text = reply.message or DEFAULT_MESSAGE
            self._push(name, "status", {"status": reply.status, "configured": True, "message": text})
        return reply

    # what happens meanwhile

    async def toolkits(self) -> dict[str, bool]:
        """Every toolkit, those of plugins among them, and whether it is configured for this session."""
        listed = await self._toolkit_definitions(fresh=False)
        return {name: definition.configured for name, definition in listed.items()}

    def tell(self, req_id: str, event: Event) -> None:
        """An event of a running call."""
        if self._closed or self._carrier.congested():
            return
        for kind, data in _said(event):
            self.wire.event(req_id, kind, data, self._clock())
        self._flush()

    def heard(self, req_id: str, message: Message) -> None:
        """An event of a plugin's: of a running request, or of none."""
        if self.over or self._carrier.congested():
            return
        if not req_id:
            self.wire.push_message(message, self._clock())
        elif not self.wire.emit(req_id, message, self._clock()):
            log.debug("an event came after the reply to %s", req_id[:NAME_SHOWN])
        self._flush()

    def _changed(self, change: Change) -> None:
        if isinstance(change, ToolkitEvent):
            self._push(change.toolkit, change.kind, change.data)
        elif "tools" in self.wire.capabilities or "toolkits" in self.wire.capabilities:
            self._catalog_changed(change)

    def _push(self, toolkit: str, kind: str, data: JsonObject) -> None:
        if "toolkits" in self.wire.capabilities:
            self.wire.push(kind, {"source": "toolkit", "toolkit": toolkit, **data}, self._clock())
            self._flush()

    def _catalog_changed(self, change: CatalogChanged) -> None:
        """The tools on offer changed: say so, once for each difference."""
        offer = self._offered()
        if offer != self._offer:
            self._offer = offer
            data = {"source": "catalog", "version": change.snapshot.version, "message": "The offered tools changed"}
            self.wire.push("status", data, self._clock())
            self._flush()

    def _offered(self) -> object:
        """What is on offer, whatever is configured."""
        tools = {entry.tool.name: entry.tool.spec for entry in self._entries() if entry.tool.toolkit is None}
        return tools, [(view.name, view.tools, view.version) for view in self.session.toolkits()]


def _unknown_toolkit(name: str, message: str) -> Refusal:
    return Refusal("runtime_error", message, detail={"reason": "unknown_toolkit", "toolkit_name": name[:NAME_SHOWN]})


def _bad_configuration(name: str, message: str, faults: object) -> Refusal:
    detail = {"reason": "schema_violation", "toolkit_name": name, "errors": faults}
    return Refusal("runtime_error", message, detail=detail)


def _has_secret(schema: JsonObject, config: JsonObject) -> bool:
    """Whether `config` holds the value of a secret field, and not only the word that it is set."""
    return _uncovered(config, redact(schema, config))


def _uncovered(value: Any, shown: Any) -> bool:
    if shown == {"set": True}:
        return value != shown and not (isinstance(value, str) and not value.strip("*"))
    if isinstance(value, dict) and isinstance(shown, dict):
        masked = cast(JsonObject, shown)
        return any(_uncovered(item, masked.get(key)) for key, item in cast(JsonObject, value).items())
    if isinstance(value, list) and isinstance(shown, list):
        pairs = zip(cast("list[Any]", value), cast("list[Any]", shown), strict=False)
        return any(_uncovered(item, mask) for item, mask in pairs)
    return False


def _said(event: Event) -> Iterator[tuple[str, JsonObject]]:
    """An event as A2E's events: their kinds and data."""
    match event:
        case Progress(done, total, message):
            part = done / total * 100 if total else done
            pct = int(min(max(part, 0), 100))
            yield "progress", {"pct": pct, "message": message, "done": done, "total": total}
        case Log(level, message):
            yield "log", {"level": level, "message": message}
        case Artifact(name, part, append, last):
            mime, body = _bytes_of(part)
            pieces = [body[at : at + CHUNK] for at in range(0, len(body), CHUNK)] or [b""]
            for index, piece in enumerate(pieces):
                yield (
                    "artifact",
                    {
                        "name": name,
                        "mime": mime,
                        "chunk": base64.b64encode(piece).decode("ascii"),
                        "final": last and index == len(pieces) - 1,
                        "append": append or index > 0,
                    },
                )
        case _:
            yield "status", {"message": event.message}


def _bytes_of(part: ContentPart) -> tuple[str, bytes]:
    match part:
        case ImagePart() | AudioPart():
            return part.media_type, part.data
        case BlobPart() if part.data is not None:
            return part.media_type, part.data
        case EmbeddedResource() if part.data is not None:
            return part.media_type or "application/octet-stream", part.data
        case StructuredPart():
            return "application/json", to_json(part.value).encode()
        case TextPart():
            return part.media_type, part.text.encode("utf-8", "replace")
        case _:
            return "text/plain", describe_part(part).encode("utf-8", "replace")


def _suspended(name: str, outcome: Suspended, ms: int) -> ToolResult:
    """A call that waits for an answer, as the wire says it."""
    suspension = outcome.suspension
    return ToolResult(
        success=False,
        tool_name=name,
        data=suspension.to_json(),
        summary=suspension.prompt,
        error=suspension.prompt,
        error_code="suspended",
        duration_ms=ms,
    )
